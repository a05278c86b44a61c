"""Tag schemes: spans survive every conversion, and what is illegal is named with its line."""

from __future__ import annotations

import gzip
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import DATA

from hopefear.data.schemes import convert, detect_scheme, legal, spans
from hopefear.data.sequences import Column
from hopefear.errors import HopefearError, InputError
from hopefear.metrics import chunk_scores

pytestmark = pytest.mark.interpreted

SCHEMES = ("bio", "iob1", "iobes", "bilou", "bmes")


@st.composite
def spanned(draw):
    """Sentences of tokens with spans: lengths, and (first, after, type) over all tokens."""
    lengths = draw(st.lists(st.integers(0, 7), min_size=1, max_size=4))
    found, k = [], 0
    for length in lengths:
        end = k + length
        while k < end:
            step = draw(st.integers(1, end - k))
            if draw(st.booleans()):
                found.append((k, k + step, draw(st.sampled_from(["X", "Y-Z", ""]))))
            k += step
    return np.cumsum([0, *lengths]), found


def written(n, found, scheme):
    """Labels by the definition of each scheme."""
    labels = ["O"] * n
    letters = {"iobes": "BIES", "bilou": "BILU", "bmes": "BMES"}.get(scheme, "BIIB")
    for first, after, kind in found:
        for k in range(first, after):
            role = 3 if after - first == 1 else 0 if k == first else 2 if k == after - 1 else 1
            labels[k] = f"{letters[role]}-{kind}"
    return labels


def written_iob1(starts, found):
    labels = ["O"] * int(starts[-1])
    ends = {(after, kind) for _, after, kind in found}
    for first, after, kind in found:
        for k in range(first, after):
            touches = k == first and (first, kind) in ends and first not in starts
            labels[k] = f"{'B' if touches else 'I'}-{kind}"
    return labels


def listed(found):
    return list(
        zip(found.first.tolist(), found.after.tolist(), found.kinds.texts(), strict=True)
    )  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(spanned())
def test_every_scheme_spells_and_reads_the_same_spans(case):
    starts, found = case
    n = int(starts[-1])
    labels = {s: written(n, found, s) for s in SCHEMES} | {"iob1": written_iob1(starts, found)}
    for source, target in product(SCHEMES, SCHEMES):
        assert convert(labels[source], starts, source, target) == labels[target]
        column = convert(Column.of(labels[source]), starts, source, target)
        assert column.texts() == labels[target]
        assert len(set(column.strings)) == len(column.strings)
    for scheme in SCHEMES:
        assert listed(spans(labels[scheme], starts, scheme)) == found


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(["O", "B-X", "I-X", "B-Y", "I-Y"]), min_size=1), min_size=1)
)
def test_repair_reads_what_the_scorer_reads(sentences):
    starts = np.cumsum([0, *map(len, sentences)])
    flat = [x for s in sentences for x in s]
    for scheme in ("bio", "iob1"):
        mended = convert(flat, starts, scheme, "bio", repair=True)
        assert detect_scheme(mended, starts) in ("bio", None)
        scores = chunk_scores(flat, mended, starts).as_dict()
        assert scores["correct"] == scores["found"] == scores["gold"]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_constraints_allow_exactly_what_can_be_written(scheme):
    letters = {"iobes": "BIES", "bilou": "BILU", "bmes": "BMES"}.get(scheme, "BI")
    names = ["O", *(f"{c}-{kind}" for c in letters for kind in "XY")]
    rules = legal(names, scheme)
    for codes in product(range(len(names)), repeat=3):
        labels = [names[i] for i in codes]
        allowed = (
            rules.start[codes[0]]
            and rules.step[codes[0], codes[1]]
            and rules.step[codes[1], codes[2]]
            and rules.end[codes[2]]
        )
        whole = convert(labels, None, scheme, scheme, repair=True) == labels
        # Repair changes exactly what is illegal, as a legal text is the only spelling of its spans.
        assert allowed == whole, labels
        if allowed:
            spans(labels, None, scheme)
        else:
            with pytest.raises(InputError):
                spans(labels, None, scheme)


@pytest.mark.parametrize(
    ("labels", "scheme"),
    [
        (["B-X", "I-X", "O"], "bio"),
        (["O", "I-X", "B-X"], "iob1"),
        (["I-X", "I-Y"], "iob1"),
        (["S-X", "B-X", "I-X", "E-X", "O"], "iobes"),
        (["U-X", "B-X", "L-X", "O"], "bilou"),
        (["B", "M", "E", "S"], "bmes"),
        (["B", "E", "S"], "iobes"),
        (["B", "I", "O"], "bio"),
        (["DT", "NN", "VB"], None),
        (["O", "O"], None),
        ([], None),
        (["N", "V", "O", "S", "U"], None),
        (["B-X", "NN", "VB", "DT"], None),
    ],
)
def test_detection(labels, scheme):
    assert detect_scheme(labels) == scheme


@pytest.mark.parametrize("errors", ["begin", "raise"])
@pytest.mark.parametrize("odd", ["S-X", "E-X", "U-X"])
@pytest.mark.parametrize("k", [1, 150])
def test_one_stray_label_does_not_change_the_scheme(odd, k, errors):
    labels = ["B-X", "O", "O", "B-X", "I-X", "O"] * 50
    labels[k] = odd
    words = f"a label of the scheme BIO, as 299 others are, found '{odd}'"
    with pytest.raises(InputError, match=words) as caught:
        detect_scheme(labels, line_of=lambda k: ("a.txt", k + 1), errors=errors)
    assert caught.value.line == k + 1
    assert detect_scheme(labels, errors="skip") == "bio"


def test_detection_looks_at_sentences():
    labels = ["O", "B-X", "I-X"]
    assert detect_scheme(labels, [0, 1, 3]) == "bio"
    with pytest.raises(InputError):
        detect_scheme(labels, [0, 2, 3])


def test_unused_names_of_a_column_do_not_count():
    column = Column(["B-X", "nonsense", "O"], np.array([0, 2], np.int32))
    assert detect_scheme(column) == "bio"
    assert convert(column, None, "bio", "iobes").texts() == ["S-X", "O"]


@pytest.mark.parametrize(
    ("labels", "scheme", "line", "words"),
    [
        (["O", "I-X"], "bio", 12, "a label that BIO allows after 'O', found 'I-X'"),
        (["I-X"], "bio", 11, "BIO allows at the start of a sentence, found 'I-X'"),
        (["B-X", "I-Y"], "bio", 12, "BIO allows after 'B-X', found 'I-Y'"),
        (["O", "B-X"], "iob1", 12, "IOB1 allows after 'O', found 'B-X'"),
        (["B-X", "I-X"], "iobes", 12, "IOBES allows at the end of a sentence, found 'I-X'"),
        (["O", "S-X"], "bio", 12, "a label of the scheme BIO, found 'S-X'"),
        (["O-X"], "iobes", 11, "a label of the scheme IOBES, found 'O-X'"),
        (["NN"], "bilou", 11, "a label of the scheme BILOU, found 'NN'"),
    ],
)
def test_illegal_labels_are_named_with_file_and_line(labels, scheme, line, words):
    with pytest.raises(InputError, match=words) as caught:
        convert(labels, None, scheme, "bio", line_of=lambda k: ("a.txt", 11 + k))
    assert (caught.value.path, caught.value.line) == ("a.txt", line)


@pytest.mark.parametrize(
    ("labels", "line"),
    [
        (["B-X", "I-X", "O", "U-Y"], 4),
        (["B-X", "O", "I-X", "B-X", "O", "B-X"], 3),
        (["B-X", "I-X", "O", "NP"], 4),
        (["S-X", "U-X"], 2),
    ],
)
def test_mixed_schemes_are_reported(labels, line):
    with pytest.raises(InputError, match="one scheme in all labels") as caught:
        detect_scheme(labels, line_of=lambda k: ("a.txt", k + 1))
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: legal(["O", "X"], "bio"), "label 'X' is outside the scheme BIO"),
        (lambda: legal([""], "bio"), "label '' is outside the scheme BIO"),
        (lambda: legal(["O"], "bioz"), "no tag scheme 'bioz'"),
        (lambda: convert(["O"], None, "bio", "x"), "no tag scheme 'x'"),
        (lambda: convert(["O"], [0, 2], "bio", "iobes"), "starts must rise"),
        (lambda: convert(["X"], None, "bio", "iobes", repair=True), "memory:1: expected a label"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(HopefearError, match=message):
        call()


def test_other_names_of_schemes():
    assert convert(["B-X"], None, "IOB2", "BIOES") == ["S-X"]


@pytest.mark.parametrize("name", ["conll2000/test.txt.gz", "jnlpba/test.iob2.gz"])
def test_real_corpora_are_bio_and_come_back(name):
    path = DATA / name
    if not path.exists():
        pytest.skip(f"needs the corpus {name} under HOPEFEAR_DATA")
    labels, starts = [], [0]
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            fields = line.split()
            if fields and not line.startswith("###"):
                labels.append(fields[-1])
            elif starts[-1] < len(labels):
                starts.append(len(labels))
    if starts[-1] < len(labels):
        starts.append(len(labels))
    assert detect_scheme(labels, starts) == "bio"
    for target in SCHEMES:
        other = convert(labels, starts, "bio", target)
        assert convert(other, starts, target, "bio") == labels
    iobes = convert(labels, starts, "bio", "iobes")
    n = chunk_scores(labels, labels, starts).as_dict()["gold"]
    assert chunk_scores(iobes, iobes, starts, reading="iobes").as_dict()["gold"] == n
