"""Weights of tuners: what files hold is what was written, whatever the names."""

import copy
import gzip
import math
import os
import resource
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hopefear.core.arrays import Strings
from hopefear.errors import HopefearError
from hopefear.storage import atomic
from hopefear.translation.features import TuningFeatures
from hopefear.translation.names import escaped, phrase_name, phrase_pair, unescaped
from hopefear.translation.weights import Weights, changes

pytestmark = pytest.mark.interpreted

ODD = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6),
    st.text("ab_=~,%#[]{}|. \t\n\r:41\u00a0\u2028", min_size=1, max_size=8),
    st.sampled_from(["pp_a~b", "pp_", "LM0", "TM_0", "#: sparse", "[weight]", "a=1", "=", "nan"]),
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
WORDS = st.lists(ODD.filter(lambda word: " " not in word and "|||" not in word), max_size=3)
PAIRS = st.tuples(WORDS, WORDS).map(lambda pair: " ||| ".join(map(" ".join, pair)))
ABOUT = st.dictionaries(st.text(max_size=5), st.one_of(FLOATS, st.text(max_size=5)), max_size=2)
FORMATS = ["text", "moses", "json"]


@st.composite
def some_weights(draw):
    names = draw(st.lists(ODD, unique=True, max_size=6))
    n_dense = draw(st.integers(0, len(names)))
    values = [draw(st.lists(FLOATS, min_size=1, max_size=3)) for _ in names[:n_dense]]
    layout = tuple((name, len(v)) for name, v in zip(names, values, strict=False))
    sparse = {name: draw(FLOATS) for name in names[n_dense:]}
    phrases = draw(st.dictionaries(PAIRS, FLOATS, max_size=3))
    if not names and not phrases:
        sparse = {"a_b": 1.0}
    dense = np.array([v for several in values for v in several])
    return Weights(layout, dense, sparse, phrases, draw(ABOUT))


@pytest.mark.parametrize("format", FORMATS)
@settings(deadline=None, max_examples=150)
@given(weights=some_weights())
@example(Weights((("A_b", 1), ("pp_x~y", 1)), [1.0, 2.0], {"LM0": -0.0}, {"x ||| y": 5e-324}))
def test_every_format_gives_the_same_weights_back(tmp_path_factory, format, weights):
    folder = tmp_path_factory.mktemp("weights")
    weights.write(folder / "w", format)
    found = Weights.read(folder / "w")
    assert found == weights
    assert found.dense.tobytes() == weights.dense.tobytes()
    assert list(found.sparse) == list(weights.sparse)
    assert list(found.phrases) == list(weights.phrases)


@given(ODD, st.lists(WORDS, min_size=2, max_size=2))
@example("%41", [["%41"], ["50%", "%2C"]])
@example("#%%20", [["a", "|||"], ["", ",~"]])
def test_names_are_one_word_and_come_back(name, sides):
    assert unescaped(escaped(name)) == name
    assert len(escaped(name).split()) == 1
    pair = " ||| ".join(map(" ".join, sides))
    assert phrase_pair(phrase_name(pair)) == pair
    assert len(phrase_name(pair).split()) == 1 and "=" not in phrase_name(pair)


def small(**more):
    return Weights((("LM0", 1), ("TM0", 2)), [0.5, 0.25, -0.25], **more)


def test_text_reads_as_people_write_it(tmp_path):
    path = tmp_path / "w"
    path.write_bytes(
        b"\xef\xbb\xbf# mine\r\n\r\nLM0 0.5\r\n  TM0=\t0.25  -.25 \r\nwt_a~b=1e-3\n"
        b"wt_x=y= 2\npp_das,%2C~the= 3"
    )
    sparse, phrases = {"wt_a~b": 1e-3, "wt_x=y": 2.0}, {"das , ||| the": 3.0}
    assert Weights.read(path) == small(sparse=sparse, phrases=phrases)


def test_marks_are_written_only_where_names_do_not_tell(tmp_path):
    small(sparse={"a_b": 1.0}, phrases={"x ||| y": 2.0}).write(tmp_path / "plain")
    assert "#" not in (tmp_path / "plain").read_text()
    small(sparse={"pp_x~y": 1.0}).write(tmp_path / "marked")
    assert (tmp_path / "marked").read_text().splitlines()[::2] == ["#: dense", "TM0= 0.25 -0.25",
                                                                   "pp_x~y= 1.0"]  # fmt: skip


def test_the_suffix_chooses_the_format(tmp_path):
    for name, begin in (("a.json", b"{"), ("a.ini", b"[weight]"), ("a.txt", b"LM0="), ("a", b"L")):
        small().write(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(begin)
    small().write(tmp_path / "b.ini", "json")
    assert Weights.read(tmp_path / "b.ini") == small()  # known by its content


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2"])
def test_packed_files(tmp_path, suffix):
    path = tmp_path / f"w.json{suffix}"
    small().write(path)
    before = path.read_bytes()
    assert Weights.read(path) == small() and b"LM0" not in before[:4]
    small().write(path)
    assert path.read_bytes() == before
    with pytest.raises(HopefearError, match=r"not packed as \.zst"):
        small().write(tmp_path / "w.zst")
    (tmp_path / "plain").write_bytes(gzip.compress(b"LM0= 1\n"))
    assert Weights.read(tmp_path / "plain").names == ("LM0",)


def test_standard_streams(capfdbinary):
    small(about={"learner": "mert"}).write("-", "text")
    out = capfdbinary.readouterr().out
    assert out == b'#: about {"learner": "mert"}\nLM0= 0.5\nTM0= 0.25 -0.25\n'
    code = "from hopefear.translation.weights import Weights; print(Weights.read('-').about)"
    answer = subprocess.run(
        [sys.executable, "-c", code], input=out, capture_output=True, timeout=60
    )
    assert answer.stdout.strip() == b"{'learner': 'mert'}", answer.stderr
    with pytest.raises(HopefearError, match="second file"):
        small(sparse={"a_b": 1.0}).write("-", "moses")


def test_a_failed_write_leaves_the_old_files(tmp_path, monkeypatch):
    old = small(sparse={"a_b": 1.0})
    new = old.scaled(2.0)
    for format in FORMATS:
        folder = tmp_path / format
        folder.mkdir()
        old.write(folder / "w", format)
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
        replace, calls = os.replace, []

        def fail(source, target, limit, replace=replace, calls=calls):
            # The first file of two may take its name; the second may not.
            calls.append(target)
            if str(source).endswith(".tmp") and len(calls) >= limit:
                raise OSError(28, "No space left on device")
            replace(source, target)

        for limit in (1, len(files)):
            calls.clear()
            with monkeypatch.context() as patch:
                patch.setattr(atomic.os, "replace", lambda a, b, n=limit: fail(a, b, n))
                with pytest.raises(HopefearError, match="No space left"):
                    new.write(folder / "w", format)
            assert {path.name: path.read_bytes() for path in folder.iterdir()} == files
    assert Weights.read(tmp_path / "moses" / "w") == old


def test_a_failed_first_write_leaves_nothing(tmp_path, monkeypatch):
    (tmp_path / "w").mkdir()  # the section cannot be written, the sidecar can
    with pytest.raises(HopefearError, match="Is a directory"):
        small(sparse={"a_b": 1.0}).write(tmp_path / "w", "moses")
    assert os.listdir(tmp_path) == ["w"]


@pytest.mark.parametrize("format", FORMATS)
def test_no_room_for_the_file(tmp_path, format):
    small(sparse={"a_b": 1.0}).write(tmp_path / "w", format)
    names = sorted(os.listdir(tmp_path))
    large = small(sparse={f"a_{k}": 1.0 for k in range(20_000)})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))
    try:
        with pytest.raises(HopefearError, match=r"cannot write .*needs at least"):
            large.write(tmp_path / "w", format)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert sorted(os.listdir(tmp_path)) == names
    assert Weights.read(tmp_path / "w") == small(sparse={"a_b": 1.0})


def test_layouts_are_compared_by_name():
    weights = small()
    weights.matches((("LM0", 1), ("TM0", 2)))
    for layout, message in (
        ((("LM0", 1), ("TM0", 4)), r"TM0 \(2 numbers\) in the weights, TM0 \(4 numbers\) in dev"),
        ((("LM0", 1),), r"TM0 \(2 numbers\) in the weights, no more dense features in dev"),
        ((("TM0", 2), ("LM0", 1)), r"LM0 \(1 number\) in the weights, TM0 \(2 numbers\) in dev"),
    ):
        with pytest.raises(HopefearError, match=message):
            weights.matches(layout, "dev")
    turned = weights.arranged((("TM0", 2), ("LM0", 1)))
    assert turned.dense.tolist() == [0.25, -0.25, 0.5]
    moses = Weights((("UnknownWordPenalty0", 1), *weights.layout), [1.0, *weights.dense])
    assert moses.arranged(weights.layout) == weights
    with pytest.raises(HopefearError, match=r"LM0 \(1 number\) in the weights, no more"):
        weights.arranged((("TM0", 2),))
    with pytest.raises(HopefearError, match=r"D0 \(1 number\) in the lists"):
        weights.arranged((("TM0", 2), ("D0", 1), ("LM0", 1)))


def test_scaling_keeps_the_proportions():
    weights = small(sparse={"a_b": 1.0}, phrases={"x ||| y": 3.0}).scaled(2.0)
    assert weights.dense.tolist() == [1.0, 0.5, -0.5]
    even = weights.normalized()
    assert math.isclose(np.abs(even.dense).sum(), 1.0)
    assert (even.sparse, even.phrases) == ({"a_b": 1.0}, {"x ||| y": 3.0})
    for factor in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(HopefearError, match="positive number"):
            weights.scaled(factor)
    with pytest.raises(HopefearError, match="all 0"):
        Weights((("LM0", 1),), [0.0]).normalized()


def test_numbered_features_and_names_go_both_ways():
    features = TuningFeatures(
        (("LM0", 1), ("TM0", 2)), Strings.pack(["a_b", "a_c"]), Strings.pack(["x ||| y"])
    )
    values = np.array([0.5, 0.25, 0.0, 0.0, -1.0, 2.0])
    weights = Weights.of(features, values, {"learner": "pro"})
    assert (weights.sparse, weights.phrases) == ({"a_c": -1.0}, {"x ||| y": 2.0})
    assert weights.nnz == 4 and weights.about == {"learner": "pro"}
    assert weights.on(features).tolist() == values.tolist()
    only = TuningFeatures((), phrases=Strings.pack(["q ||| r", "x ||| y"]))
    assert weights.on(only).tolist() == [0.0, 2.0]
    with pytest.raises(HopefearError, match="3 numbers for 6 features"):
        Weights.of(features, values[:3])


def test_changes_come_by_size():
    before = small(sparse={"a_b": 1.0, "a_c": 1.0})
    after = Weights(before.layout, [0.5, 0.0, -0.25], {"a_c": 1.0}, {"x ||| y": 0.5})
    assert changes(before, after) == [
        ("a_b", 1.0, 0.0),
        ("x ||| y", 0.0, 0.5),
        ("TM0.0", 0.25, 0.0),
        ("LM0", 0.5, 0.5),
        ("TM0.1", -0.25, -0.25),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((("LM0", 1),), [math.nan]), "weight of 'LM0' is nan"),
        (((("TM0", 2),), [1.0, math.inf]), r"weight of 'TM0\.1' is inf"),
        (((), [], {"a_b": -math.inf}), "weight of 'a_b' is -inf"),
        (((("LM0", 2),), [1.0]), "layout has 2 dense numbers, dense has 1"),
        (((("LM0", 1), ("LM0", 1)), [1.0, 1.0]), "'LM0' is there twice"),
        (((("LM0", 1),), [1.0], {"LM0": 1.0}), "'LM0' is there twice"),
        (((("", 1),), [1.0]), "has a name"),
        (((), [], {}, {"das haus": 1.0}), "phrase pair is"),
        (((), [], {}, {}, {"time": math.nan}), "about holds what JSON cannot"),
        (((), [], {}, {}, {"x": {1, 2}}), "about holds what JSON cannot"),
    ],
)
def test_weights_that_no_file_could_hold(arguments, message):
    with pytest.raises(HopefearError, match=message):
        Weights(*arguments)


def test_weights_are_values(tmp_path):
    values = np.ones(3)
    weights = Weights((("A", 3),), values, about={"shape": (1, 2)})
    values[0] = 5.0
    assert weights.dense.tolist() == [1.0, 1.0, 1.0] and not weights.dense.flags.writeable
    assert weights.about == {"shape": [1, 2]}
    assert copy.deepcopy(weights) == weights != small()
    with pytest.raises(HopefearError, match="no weights to write"):
        Weights((), []).write(tmp_path / "w")
    with pytest.raises(HopefearError, match="text, moses, json, not 'yaml'"):
        weights.write(tmp_path / "w", "yaml")
    with pytest.raises(HopefearError, match="no Unicode text"):
        Weights((), [], {"a_\ud800": 1.0}).write(tmp_path / "w")
    assert os.listdir(tmp_path) == []
