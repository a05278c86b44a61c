"""N-grams of characters, case, shares and learned values against plain Python and scikit-learn."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import FeatureUnion

from hopefear.data import text as text_module
from hopefear.data.cache import open_cache
from hopefear.data.cached_examples import cache_examples
from hopefear.data.sparse import SparseDataset
from hopefear.data.text import as_strings, read_strings, read_text
from hopefear.errors import HopefearError, ModelError
from hopefear.features import from_parts

pytestmark = pytest.mark.interpreted

MARKED = re.compile(r"[^\W_]+(?:['_][^\W_]+)*|[!-/:-@\[-`{-~]", re.UNICODE)
TOKEN = re.compile(r"[^\W_]+(?:['_][^\W_]+)*|[!?$]", re.UNICODE)


def tokens(text: str, lowercase: bool = True, pattern: re.Pattern[str] = TOKEN) -> list[str]:
    text = text.replace("’", "'")
    return pattern.findall(text.lower() if lowercase else text)


def words(text: str, order: int, lowercase: bool = True) -> list[str]:
    parts = tokens(text, lowercase)
    return [
        " ".join(parts[i : i + n]) for n in range(1, order + 1) for i in range(len(parts) - n + 1)
    ]


def chars(text: str, low: int, high: int, lowercase: bool = True) -> list[str]:
    grams = []
    for token in tokens(text, lowercase):
        padded = f" {token} "
        for n in range(low, high + 1):
            grams += [padded[i : i + n] for i in range(len(padded) - n + 1)]
    return ["c=" + gram.replace(" ", "·") for gram in grams if gram != " "]


def counts(data: SparseDataset, i: int) -> dict[str, int]:
    a, b = data.rows.indptr[i : i + 2]
    assert (np.diff(data.rows.indices[a:b]) > 0).all()
    names = data.features.names(data.rows.indices[a:b])
    return dict(zip(names, data.rows.values[a:b].astype(int).tolist(), strict=True))


TEXTS = [
    "Good, GOOD fun! Isn't it? ÉTÉ naïve — “quoted” 'tis rock'n'roll",
    "",
    "$5 not good... not good\nat\tall",
    "the don’t of été 𝔘nicode US us",
]


@pytest.mark.parametrize("lengths", [(1, 1), (2, 5), (3, 3), (1, 8)])
@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("order", [0, 2])
def test_equals_a_plain_count(order: int, lowercase: bool, lengths: tuple[int, int]) -> None:
    data = read_strings(TEXTS, ngrams=order, chars=lengths, lowercase=lowercase)
    for i, text in enumerate(TEXTS):
        grams = words(text, order, lowercase) + chars(text, *lengths, lowercase)
        assert counts(data, i) == Counter(grams)
    split = data.features.split
    assert all(name.startswith("c=") == (j >= split) for j, name in enumerate(names_of(data)))


def test_marks_are_words(tmp_path: Path) -> None:
    texts = [*TEXTS, "(a-b), 'c' \"d\"; x_y _z_ don't... 50% a+b=c [e] {f} g|h ~ @ # `"]
    data = read_strings(texts, marks=True)
    for i, text in enumerate(texts):
        assert counts(data, i) == Counter(tokens(text, True, MARKED))
    back = from_parts(data.features.to_header(), data.features.arrays())
    assert back.grams.marks
    assert read_strings(texts, features=back).digest == data.digest


def names_of(data: SparseDataset) -> list[str]:
    return data.features.names(range(data.n_features))


PIECES = st.lists(st.sampled_from(["a", "Ab", "don't", "!", "é", "x_y", "--", "abab"]), max_size=9)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(PIECES, min_size=1, max_size=8),
    st.integers(0, 3),
    st.integers(1, 3),
    st.sampled_from([0.3, 0.6, 1.0]),
)
def test_limits_on_how_many_texts_have_an_ngram(
    rows: list[list[str]], order: int, least: int, share: float
) -> None:
    texts = [" ".join(row) for row in rows]
    limits = {"min_count": least, "max_share": share}
    data = read_strings(texts, ngrams=order, chars=(2, 3), **limits)
    wanted = [Counter(words(text, order) + chars(text, 2, 3)) for text in texts]
    seen = Counter(name for row in wanted for name in row)
    for i, row in enumerate(wanted):
        enough = {n: c for n, c in row.items() if least <= seen[n] <= share * len(texts)}
        assert counts(data, i) == enough
    back = from_parts(data.features.to_header(), data.features.arrays())
    assert read_strings(texts, features=back).digest == data.digest


def test_files_strings_blocks_and_caches_give_the_same(tmp_path: Path) -> None:
    texts = [text.replace("\n", " ") for text in TEXTS if text] * 3
    path = tmp_path / "data.tsv"
    path.write_text("".join(f"{i % 2}\t{text}\n" for i, text in enumerate(texts)), "utf-8")
    options = {"ngrams": 2, "chars": (2, 4), "lowercase": False, "max_share": 0.5}
    whole = read_text(path, **options)
    small = read_text(path, block_bytes=16, **options)
    strings = read_strings(texts, **options)
    assert whole.digest == small.digest
    assert names_of(whole) == names_of(small) == names_of(strings)
    for field in ("indptr", "indices", "values"):
        assert np.array_equal(getattr(whole.rows, field), getattr(strings.rows, field))
    cache_examples(path, tmp_path / "cache", format="text", values="log", norm="l2", **options)
    cached = open_cache(tmp_path / "cache")
    assert cached.digest == whole.digest
    assert np.array_equal(cached.rows.values, whole.transformed("log", "l2").rows.values)
    assert cached.features.to_header() == whole.features.to_header()
    with pytest.raises(HopefearError, match="without a cache"):
        cache_examples(path, tmp_path / "other", format="text", values="tfidf", **options)


def test_rows_go_on_where_tables_were_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [" ".join(f"w{i}x{j}" * 3 for j in range(40)) for i in range(20)]
    texts.append("é" * 3000)  # longer than any token
    data = read_strings(texts, ngrams=1, chars=(2, 6))
    for i in (0, 7, 19):
        assert counts(data, i) == Counter(words(texts[i], 1) + chars(texts[i], 2, 6))
    monkeypatch.setattr(text_module, "BLOCK_BYTES", 64)
    again = read_strings(texts, ngrams=1, chars=(2, 6))
    assert again.digest == data.digest


def test_hashed_ngrams_of_words_and_characters_share_no_column() -> None:
    exact = read_strings(TEXTS, ngrams=2, chars=(2, 3))
    data = read_strings(TEXTS, ngrams=2, chars=(2, 3), hash_bits=24)
    assert [counts(data, i) for i in range(4)] == [counts(exact, i) for i in range(4)]
    back = from_parts(data.features.to_header(), data.features.arrays())
    again = read_strings(TEXTS, features=back)
    assert again.digest == data.digest
    assert back.names(data.rows.indices) == data.features.names(data.rows.indices)
    tight = read_strings(TEXTS, chars=(2, 3), hash_bits=2)
    assert tight.n_features == 4
    for options in ({"hash_bits": 1}, {"hash_bits": 20, "max_share": 0.5}):
        with pytest.raises(HopefearError):
            read_strings(TEXTS, chars=(2, 3), **options)


def sentences(n: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    vocabulary = [f"{a}{b}n't" for a in ("good", "bad", "été", "x") for b in ("", "s", "ly")]
    return [" ".join(rng.choice(vocabulary, rng.integers(1, 12))) for _ in range(n)]


@pytest.mark.parametrize("norm", ["l2", "none"])
@pytest.mark.parametrize("least", [1, 2])
def test_tfidf_is_that_of_scikit_learn(norm: str, least: int) -> None:
    train, test = sentences(30, 1), sentences(8, 2)
    usual = {"norm": None if norm == "none" else norm, "min_df": least}
    theirs = TfidfVectorizer(analyzer=lambda text: words(text, 2), **usual).fit(train)
    data = read_strings(train, ngrams=2, min_count=least)
    order = [names_of(data).index(name) for name in theirs.get_feature_names_out()]
    assert len(order) == data.n_features
    scale = data.column_scale("tfidf")
    ours = data.transformed("tfidf", norm).to_csr().toarray()[:, order]
    np.testing.assert_allclose(ours, theirs.transform(train).toarray(), atol=1e-5)
    new = read_strings(test, features=data.features).transformed("tfidf", norm, scale)
    wanted = theirs.transform(test).toarray()
    np.testing.assert_allclose(new.to_csr().toarray()[:, order], wanted, atol=1e-5)


def test_words_and_characters_have_equal_shares_of_a_row() -> None:
    train = sentences(30, 1)
    union = FeatureUnion(
        [
            ("words", TfidfVectorizer(analyzer=lambda text: words(text, 2))),
            ("chars", TfidfVectorizer(analyzer=lambda text: chars(text, 2, 4))),
        ]
    )
    theirs = union.fit_transform(train).toarray() / np.sqrt(2.0)
    data = read_strings(train, ngrams=2, chars=(2, 4))
    order = [names_of(data).index(name.split("__")[1]) for name in union.get_feature_names_out()]
    ours = data.transformed("tfidf", "l2").to_csr().toarray()[:, order]
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    alone = read_strings(train, ngrams=0, chars=(2, 4)).transformed("counts", "l2")
    np.testing.assert_allclose(np.linalg.norm(alone.to_csr().toarray(), axis=1), 1.0, atol=1e-5)


def test_log_count_ratios() -> None:
    rng = np.random.default_rng(3)
    X = rng.integers(0, 3, (12, 6)).astype(float)
    y = np.repeat(["a", "b", "c"], 4)
    present = (X > 0).astype(float)

    def ratios(name: str) -> np.ndarray:
        p, q = 1 + present[y == name].sum(0), 1 + present[y != name].sum(0)
        return np.log((p / p.sum()) / (q / q.sum()))

    data = SparseDataset.from_csr(X, y)
    wanted = np.max([np.abs(ratios(name)) for name in "abc"], axis=0)
    np.testing.assert_allclose(data.column_scale("nb"), wanted, atol=1e-6)
    np.testing.assert_allclose(
        data.transformed("nb").to_csr().toarray(), present * wanted, atol=1e-6
    )
    two = SparseDataset.from_csr(X, np.where(y == "c", "a", y))
    np.testing.assert_allclose(two.column_scale("nb"), np.abs(ratios("b")), atol=1e-6)
    with pytest.raises(HopefearError, match="needs a label on every row"):
        SparseDataset.from_csr(X).transformed("nb")


@pytest.mark.parametrize("values", ["tfidf", "nb"])
def test_weights_are_repetitions(values: str) -> None:
    X, y = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0], [1.0, 1.0, 0.0]]), ["a", "b", "a"]
    weighted = SparseDataset.from_csr(X, y, [2.0, 1.0, 0.0])
    repeated = SparseDataset.from_csr(X[[0, 0, 1]], ["a", "a", "b"])
    np.testing.assert_allclose(weighted.column_scale(values), repeated.column_scale(values))


@pytest.mark.parametrize(
    "options",
    [
        {"ngrams": 0},
        {"ngrams": 4, "chars": (2, 3)},
        {"chars": (0, 3)},
        {"chars": (3, 2)},
        {"chars": (2, 9)},
        {"max_share": 0.0},
        {"max_share": 1.5},
        {"min_count": 0},
    ],
)
def test_senseless_options_are_refused(options: dict) -> None:
    with pytest.raises(HopefearError):
        read_strings(TEXTS, **options)


def test_what_is_no_text() -> None:
    assert as_strings([["a", "b"]]) is None
    assert as_strings(np.zeros((2, 2))) is None
    assert as_strings({"a": 1}) is None
    assert as_strings(np.array(["a", "b"])) == ["a", "b"]
    with pytest.raises(HopefearError, match="give a list of texts"):
        as_strings("one")
    with pytest.raises(HopefearError, match=r"X\[1\] is None"):
        as_strings(["a", None])
    with pytest.raises(HopefearError, match="text 1 has half a surrogate pair"):
        read_strings(["a", "\ud800"])


PLAIN = read_strings(TEXTS, ngrams=2, chars=(2, 3), max_share=0.4).features
HASHED = read_strings(TEXTS, ngrams=1, chars=(2, 3), lowercase=False, hash_bits=10).features
NONSENSE = {
    "one length": (PLAIN, {"chars": [2]}, {}),
    "lengths backwards": (PLAIN, {"chars": [3, 2]}, {}),
    "lengths as words": (PLAIN, {"chars": ["2", "3"]}, {}),
    "lengths as text": (HASHED, {"chars": "23"}, {}),
    "no order": (PLAIN, {"order": 0}, {}),
    "marks": (PLAIN, {"marks": "yes"}, {}),
    "case": (HASHED, {"lowercase": 1}, {}),
    "no lengths": (PLAIN, {"chars": None}, {}),
    "fewer characters": (PLAIN, {}, {"chars_offsets": np.zeros(1, np.int64)}),
    "missing characters": (PLAIN, {}, {"chars_text": None}),
    "ignored beyond": (PLAIN, {}, {"ignored": np.array([PLAIN.size], np.int32)}),
    "ignored as numbers": (PLAIN, {}, {"ignored": np.zeros(1)}),
}


@pytest.mark.parametrize("case", NONSENSE)
def test_maps_trust_nothing(case: str) -> None:
    features, header, arrays = NONSENSE[case]
    changed = {**features.arrays(), **arrays}
    changed = {name: array for name, array in changed.items() if array is not None}
    with pytest.raises(ModelError):
        from_parts({**features.to_header(), **header}, changed)


def test_maps_of_words_are_stored_as_before() -> None:
    words_only = read_strings(TEXTS, ngrams=2).features
    assert words_only.to_header() == {"kind": "ngrams", "size": words_only.size, "order": 2}
    assert set(words_only.arrays()) == {"tokens_text", "tokens_offsets", "parent", "token"}


@pytest.mark.parametrize("limits", [{"min_count": 2}, {"max_share": 0.5}])
def test_hashed_ngrams_have_no_limits(limits: dict) -> None:
    with pytest.raises(HopefearError, match="hash_bits keeps none"):
        read_strings(["a b", "b c"], hash_bits=8, **limits)
