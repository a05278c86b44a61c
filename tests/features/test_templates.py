"""Templates: numbers that mean what the templates say, names, cut-off, hashing, refusals."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from template_reference import (
    FEATURES,
    decoded,
    expand,
    sentences_of,
    small_texts,
    templates_of,
)

from hopefear.errors import HopefearError, InputError, ModelError
from hopefear.features import FeatureMap
from hopefear.features.templates import (
    TemplateFeatures,
    load_templates,
    parse_templates,
)
from hopefear.features.templates.string_features import MAPS, all_classes, classes, mapped

pytestmark = pytest.mark.interpreted

CATS = sentences_of([[("the", "D"), ("cat", "N"), ("sat", "V")], [("cat", "N")]], "word", "tag")


def fitted(*features: str, sentences=CATS, padding=False, edges="false", **options):
    return TemplateFeatures.fit_encode(templates_of(features, padding, edges), sentences, **options)


def names_of(features, attributes) -> list[list[str]]:
    rows = decoded(features.name, attributes.indptr, attributes.indices, attributes.values)
    return [[name for name, _ in row] for row in rows]


@settings(max_examples=60, deadline=None)
@given(
    small_texts(),
    small_texts(),
    st.lists(st.sampled_from(FEATURES), min_size=1, max_size=8, unique=True),
    st.booleans(),
    st.sampled_from(["false", "true", '"both"']),
)
def test_numbers_mean_what_templates_say(train, test, features, padding, edges) -> None:
    templates = templates_of(features, padding, edges)
    fitted, found = TemplateFeatures.fit_encode(templates, train)
    label_rows, edge_rows = expand(templates, train, False), expand(templates, train, True)
    assert decoded(fitted.name, *found[:3]) == label_rows
    if edges != "false":
        assert decoded(fitted.edge_name, *found[3:]) == edge_rows
    else:
        assert found.edge_indptr.tolist() == [0] and fitted.edge_size == 0
    for a, b in zip(fitted.encode(train), found, strict=True):
        assert a.dtype == b.dtype and np.array_equal(a, b)
    known = {name for row in label_rows for name, _ in row}
    assert fitted.size == len(known)
    again = TemplateFeatures.from_parts(json.loads(json.dumps(fitted.to_header())), fitted.arrays())
    seen = [[pair for pair in row if pair[0] in known] for row in expand(templates, test, False)]
    assert decoded(again.name, *again.encode(test)[:3]) == seen
    assert again.names(range(again.size)) == fitted.names(range(fitted.size))


def test_numbers_come_in_the_order_of_first_appearance() -> None:
    features, found = fitted("word[0]", "word[-1] word[0]")
    assert found.indices.tolist() == [0, 1, 2, 3, 4, 1]
    assert features.names(range(5)) == [
        "word[0]=the",
        "word[0]=cat",
        "word[-1]|word[0]=the|cat",
        "word[0]=sat",
        "word[-1]|word[0]=cat|sat",
    ]
    assert isinstance(features, FeatureMap)


def test_one_token_is_padded_on_both_sides() -> None:
    alone = sentences_of([[("a",)]], "word")
    features, found = fitted("word[-3] word[4]", "word[1]", sentences=alone, padding=True)
    assert names_of(features, found) == [["word[-3]|word[4]=_B-3|_B+4", "word[1]=_B+1"]]
    features, found = fitted("word[-3] word[4]", "word[0]", sentences=alone)
    assert names_of(features, found) == [["word[0]=a"]]


def test_a_string_is_the_same_attribute_in_every_file() -> None:
    features, _ = fitted("word[0]", "suffix(word, 2)")
    other = sentences_of([[("sat", "?"), ("new", "?"), ("the", "?")]], "word", "tag")
    assert names_of(features, features.encode(other)) == [
        ["word[0]=sat", "suffix(word,2)[0]=at"],
        [],
        ["word[0]=the", "suffix(word,2)[0]=he"],
    ]


@pytest.mark.parametrize("keep_names", [True, False])
def test_rare_attributes_are_left_out(keep_names: bool) -> None:
    features, found = fitted("word[0]", "bias", min_count=2, keep_names=keep_names)
    assert features.size == 2 and found.indptr.tolist() == [0, 1, 3, 4, 6]
    assert found.indices.tolist() == [0, 1, 0, 0, 1, 0]
    assert features.names([0, 1]) == (["bias", "word[0]=cat"] if keep_names else ["#0", "#1"])
    again = TemplateFeatures.from_parts(features.to_header(), features.arrays())
    for a, b in zip(again.encode(CATS), found, strict=True):
        assert np.array_equal(a, b)


def test_rare_numbers_leave_with_their_values() -> None:
    scored = sentences_of([[("a", "2"), ("b", "3")], [("a", "5")]], "word", "score")
    _, found = fitted("word[0] number(score)", "word[0]", sentences=scored, min_count=2)
    assert found.values.tolist() == [2.0, 1.0, 5.0, 1.0]


def test_hashed_attributes_fall_on_few_numbers() -> None:
    many = sentences_of([[(f"w{i}",) for i in range(300)]], "word")
    features, found = fitted("word[0]", sentences=many, hash_bits=8)
    assert (features.size, features.edge_size, features.hash_bits) == (256, 0, 8)
    counts = np.bincount(found.indices, minlength=256)
    assert features.collisions == counts[counts > 1].sum() / 300
    first = {number: k for k, number in reversed(list(enumerate(found.indices.tolist())))}
    assert features.names(range(256)) == [
        f"word[0]=w{first[i]}" if i in first else f"#{i}" for i in range(256)
    ]
    again = TemplateFeatures.from_parts(features.to_header(), features.arrays())
    assert np.array_equal(again.encode(many).indices, found.indices)
    assert again.names(range(256)) == features.names(range(256))
    assert again.collisions == features.collisions


def test_hashing_without_names() -> None:
    features, found = fitted("word[0]", edges='"both"', hash_bits=4, keep_names=False)
    again = TemplateFeatures.from_parts(features.to_header(), features.arrays())
    assert (again.name(3), again.edge_name(1), again.edge_size) == ("#3", "#1", 2)
    for a, b in zip(again.encode(CATS), found, strict=True):
        assert np.array_equal(a, b)


def test_selected_attributes_keep_names_and_keys() -> None:
    features, _ = fitted("word[0]", "tag[-1] tag[0]", edges='"both"')
    few = features.select(np.array([3, 0]), np.array([1]))
    assert few.names([0, 1]) == features.names([3, 0])
    assert few.edge_name(0) == features.edge_name(1)
    assert (few.size, few.edge_size) == (2, 1)
    rows = names_of(few, few.encode(CATS))
    assert sorted(name for row in rows for name in row) == sorted(few.names([0, 1]))
    with pytest.raises(HopefearError, match="hashed"):
        fitted("word[0]", hash_bits=3)[0].select(np.array([0]), np.array([], int))


def test_a_growing_table_loses_nothing() -> None:
    rng = np.random.default_rng(0)
    words = [[(f"w{i}",) for i in rng.integers(0, 3000, 4000)]]
    many = sentences_of(words, "word")
    features, found = fitted("word[0]", "word[-1] word[0]", "word[0] word[1]", sentences=many)
    assert features.size > 8192
    rows = expand(features.templates, many, False)
    assert names_of(features, found) == [[name for name, _ in row] for row in rows]


def test_a_long_token_has_all_its_substrings() -> None:
    long = sentences_of([[("ab" * 500 + "c" * 500,)]], "word")
    features, found = fitted("substrings(word, 1..4)", sentences=long)
    assert features.size == len(found.indices) == 3 + 4 + 5 + 6


def test_values_are_numbers_of_a_column() -> None:
    scored = sentences_of([[("a", "0.5"), ("b", "-2")]], "word", "score")
    features, found = fitted("number(score)", "number(score)[-1]", "word[0]", sentences=scored)
    assert names_of(features, found) == [
        ["score", "word[0]=a"],
        ["score", "number(score)[-1]", "word[0]=b"],
    ]
    assert found.values.tolist() == [0.5, 1.0, -2.0, 0.5, 1.0]


@pytest.mark.parametrize("bad", ["nan", "inf", "-Infinity", "1e99", "x", "", "1_0"])
def test_no_number_is_refused_with_its_line(bad: str) -> None:
    scored = sentences_of([[("a", "1"), ("b", bad)]], "word", "score")
    with pytest.raises(InputError, match=r"test\.txt:2: expected a finite number .*'score'"):
        fitted("number(score)", sentences=scored)


def test_a_lexicon_matches_the_longest_entry(tmp_path) -> None:
    (tmp_path / "places.txt").write_text("New York\nNew York City\nYork\n\n", "utf-8")
    path = tmp_path / "t.toml"
    path.write_text(
        '[lexicons]\nplace = "places.txt"\n[[templates]]\n'
        'features = ["lexicon(place, lower(word))", "lexicon(place, lower(word))[-1] word[0]"]',
        "utf-8",
    )
    text = sentences_of(
        [[("in",), ("new",), ("YORK",), ("city",), ("York",), ("to",), ("new",)], [("york",)]],
        "word",
    )
    features, found = TemplateFeatures.fit_encode(load_templates(path), text)
    (tmp_path / "places.txt").unlink()
    again = TemplateFeatures.from_parts(features.to_header(), features.arrays())
    mark = "lexicon(place,lower(word))[0]"
    rows = names_of(again, again.encode(text))
    assert [[n.removeprefix(mark) for n in row if n.startswith(mark + "=")] for row in rows] == [
        [], ["=B"], ["=I"], ["=I"], ["=B"], [], [], ["=B"]
    ]  # fmt: skip
    assert rows[2][1] == "lexicon(place,lower(word))[-1]|word[0]=B|YORK"
    assert np.array_equal(again.encode(text).indices, found.indices)


def test_a_lexicon_must_be_there(tmp_path) -> None:
    path = tmp_path / "t.toml"
    path.write_text('[lexicons]\ng = "g.txt"\n[[templates]]\nfeatures = "lexicon(g)"', "utf-8")
    with pytest.raises(InputError, match=r"t\.toml: expected a readable lexicon .*No such file"):
        load_templates(path)
    (tmp_path / "g.txt").write_bytes(b"good\n\xff\n")
    with pytest.raises(InputError, match=r"g\.txt:2: expected text in UTF-8"):
        load_templates(path)
    (tmp_path / "g.txt").write_bytes(b"\n \n")
    with pytest.raises(InputError, match=r"g\.txt: expected at least one word"):
        load_templates(path)


def test_classes_of_words() -> None:
    wanted = {
        "Paris": {"initial-capital", "has-capital"},
        "USA": {"initial-capital", "has-capital", "inner-capital", "all-capitals"},
        "eBay": {"has-capital", "inner-capital", "mixed-case"},
        "1,000.5": {"has-digit", "number", "has-period", "has-punctuation"},
        "1999": {"has-digit", "all-digits", "four-digits", "number"},
        "XIV": {"initial-capital", "has-capital", "inner-capital", "all-capitals", "roman"},
        "NF-kappa": {"initial-capital", "has-capital", "inner-capital", "mixed-case",
                     "has-hyphen", "has-punctuation", "has-greek"},
        "β": {"lower-case", "greek", "has-greek"},
        "Alpha": {"initial-capital", "has-capital", "greek", "has-greek"},
        "J.": {"initial-capital", "has-capital", "initial", "has-period", "has-punctuation"},
        "p53": {"has-digit", "alphanumeric"},
        "--": {"has-hyphen", "has-punctuation", "punctuation"},
        "": set(),
    }  # fmt: skip
    assert {word: set(classes(word)) for word in wanted} == wanted


def test_lone_surrogates_survive_a_model_file() -> None:
    odd = sentences_of([[("a\ud800",), ("b",)]], "word")
    features, found = fitted("word[0]", "prefix(word, 2)", sentences=odd)
    again = TemplateFeatures.from_parts(features.to_header(), features.arrays())
    assert np.array_equal(again.encode(odd).indices, found.indices)


def test_no_tokens_have_no_attributes() -> None:
    empty = sentences_of([], "word")
    features, found = fitted("word[0]", sentences=empty)
    assert features.size == 0 and found.indptr.tolist() == [0]
    assert len(features.encode(CATS).indices) == 0


def test_templates_for_absent_columns_are_left_out_if_they_say_so() -> None:
    templates = parse_templates(
        '[[templates]]\nfeatures = "word"\n[[templates]]\nwhen = "pos"\nfeatures = "pos"'
    )
    assert TemplateFeatures.fit(templates, CATS).needs == ("word",)
    tagged = sentences_of([[("a", "N")]], "word", "pos")
    assert TemplateFeatures.fit(templates, tagged).needs == ("word", "pos")


def test_an_unknown_column_is_refused_with_its_place() -> None:
    templates = parse_templates('[[templates]]\nfeatures = [\n "word",\n "lemma[-1]"]', "my.toml")
    with pytest.raises(HopefearError, match=r"my\.toml:4: template 'lemma\[-1\]' needs .*'lemma'"
                       r".*columns word, tag"):  # fmt: skip
        TemplateFeatures.fit(templates, CATS)
    features, _ = fitted("tag[0]")
    with pytest.raises(HopefearError, match=r"needs the column 'tag'.*columns word"):
        features.encode(sentences_of([[("a",)]], "word"))


def test_a_template_that_fires_on_nothing_is_refused() -> None:
    templates = parse_templates('[[templates]]\nfeatures = ["word", "word[-9]"]', "my.toml")
    with pytest.raises(HopefearError, match=r"my\.toml:2: template 'word\[-9\]' fires on nothing"):
        TemplateFeatures.fit(templates, CATS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("padding = ", r"t\.toml:1: expected TOML"),
        ("padding = true", r"expected at least one group \[\[templates\]\]"),
        ("padding = 1\n[[templates]]\nfeatures='word'", "expected padding = true or false"),
        ("pading = true", r"t\.toml:1: expected padding, .* found 'pading'"),
        ("[[templates]]\nfeature = 'word'", r"t\.toml:2: expected features, .*found 'feature'"),
        ("[[templates]]\nfeatures = []", r"t\.toml:2: expected features"),
        ("[[templates]]\nfeatures = [\n1]", "expected templates as strings"),
        ("[[templates]]\nedges = 1\nfeatures = 'word'", "expected edges = true"),
        ("[[templates]]\nwhen = 1\nfeatures = 'word'", "expected when"),
        ("[[templates]]\noptional = 1\nfeatures = 'word'", "expected optional"),
        ("[[templates]]\nfeatures = [\n'word',\n'']", r"t\.toml:4: expected a term"),
        ("[[templates]]\nfeatures = 'word['", r"t\.toml:2: expected an offset"),
        ("[[templates]]\nfeatures = 'word[x]'", "expected an offset .*found 'x'"),
        ("[[templates]]\nfeatures = 'word[2..1]'", "smaller end of a range first"),
        ("[[templates]]\nfeatures = 'word[0'", r"expected '\]' after 'word\[0'"),
        ("[[templates]]\nfeatures = 'sufix(word, 2)'", "expected one of classes, .*'sufix'"),
        ("[[templates]]\nfeatures = 'suffix(word)'", "expected ',' after"),
        ("[[templates]]\nfeatures = 'suffix(word, 0)'", "1 to 32"),
        ("[[templates]]\nfeatures = 'shape(suffix(word, 2))'", "inside of another view"),
        ("[[templates]]\nfeatures = 'is(word, tall)'", "expected one of the classes"),
        ("[[templates]]\nfeatures = 'classes(word) classes(word)[1]'", "several strings"),
        ("[[templates]]\nfeatures = 'number(a) number(b)'", r"at most one number\(\)"),
        ("[[templates]]\nfeatures = 'a[0..999] b[0..999]'", "at most 1000 templates"),
        ("[[templates]]\nfeatures = ['word',\n 'word[0]']", r"t\.toml:3: .* line 2 has this one"),
        ("[[templates]]\nfeatures = 'lexicon(g)'", "lexicon 'g' to have a file"),
    ],
)
def test_bad_files_are_refused_with_their_line(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_templates(text, "t.toml")


def test_bad_options_are_refused() -> None:
    for options in ({"min_count": 0}, {"hash_bits": 0}, {"hash_bits": 40}):
        with pytest.raises(HopefearError, match="must be"):
            fitted("word", **options)
    with pytest.raises(HopefearError, match="use one of them"):
        fitted("word", min_count=2, hash_bits=4)
    with pytest.raises(HopefearError, match="built in are pos, chunking"):
        load_templates("no-such-set")
    features, _ = fitted("word")
    for call in (features.name, features.edge_name):
        with pytest.raises(HopefearError, match="does not exist"):
            call(99)
    with pytest.raises(HopefearError, match="columns of text"):
        features.columns(np.array([1]))


def _forged(change) -> None:
    features, _ = fitted("word[-1..0]", "substrings(word, 2)", padding=True, edges='"both"')
    parts = SimpleNamespace(
        header=json.loads(json.dumps(features.to_header())), arrays=dict(features.arrays())
    )
    change(parts)
    with pytest.raises(ModelError, match="feature map"):
        TemplateFeatures.from_parts(parts.header, parts.arrays)


@pytest.mark.parametrize("key", ["syntax", "padding", "transitions", "source", "templates",
                                 "fields", "lexicons", "bits", "size", "edge_size", "named",
                                 "collisions"])  # fmt: skip
@pytest.mark.parametrize("value", [None, -1, "x", [[]], {}, 10**12])
def test_forged_headers_are_refused(key: str, value) -> None:
    if key == "source" and value == "x":
        return
    _forged(lambda parts: parts.header.update({key: value}))


@pytest.mark.parametrize("row", [["word[0..1]", "labels", 1], ["word[", "labels", 1],
                                 ["word", "all", 1], ["word", "labels", -1], ["", "labels", 1],
                                 ["lexicon(g)", "labels", 1], ["lemma", "labels", 1]])  # fmt: skip
def test_forged_templates_are_refused(row) -> None:
    _forged(lambda parts: parts.header["templates"].__setitem__(0, row))


def test_forged_arrays_are_refused() -> None:
    features, _ = fitted("word[-1..0]", "substrings(word, 2)", padding=True, edges='"both"')
    for name, array in features.arrays().items():
        _forged(lambda parts, name=name: parts.arrays.pop(name))
        _forged(lambda parts, name=name, a=array: parts.arrays.update({name: a[:-1]}))
        _forged(lambda parts, name=name, a=array: parts.arrays.update({name: a.astype("f4")}))
        if name.endswith("parts"):
            for value in (2**31 - 1, -(2**31), 1000, -3):
                forged = array.copy()
                forged[:] = value
                _forged(lambda parts, name=name, a=forged: parts.arrays.update({name: a}))
        if name.endswith("template"):
            forged = array + np.uint16(3)
            _forged(lambda parts, name=name, a=forged: parts.arrays.update({name: a}))
    _forged(lambda parts: parts.arrays.update({"more": np.zeros(1)}))


@settings(deadline=None)
@given(st.lists(st.text("aΑσςΣİǅ'-7²\0", max_size=4), max_size=6), st.sampled_from([*MAPS]))
def test_strings_are_seen_together_as_each_alone(strings, name) -> None:
    assert mapped(name, strings) == list(map(MAPS[name], strings))


_PIECES = ["alpha", "Mu", "-", "IV", "MC", "x", "A7", ".", "\u212aappa", "\u03a3", "\u0130", "\0"]


@settings(deadline=None)
@given(st.lists(st.lists(st.sampled_from(_PIECES), max_size=4).map("".join), max_size=6))
def test_classes_are_found_together_as_of_each_alone(strings) -> None:
    assert all_classes(strings) == [classes(text) for text in strings]
