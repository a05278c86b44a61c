"""CRFsuite's attribute files: escapes, values, weights, and lines that are refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopefear.data.crfsuite import AttributeFile, read_crfsuite
from hopefear.data.files import ReadReport
from hopefear.errors import InputError
from hopefear.features.attributes import AttributeFeatures

pytestmark = pytest.mark.interpreted


def saved(folder: Path, content: str | bytes) -> Path:
    path = folder / "a.crfsuite"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def named(file: AttributeFile) -> list[list[tuple[str, float]]]:
    rows = file.rows
    values = rows.values if rows.values.size else np.ones(len(rows.ids), np.float32)
    return [
        [(rows.strings.get(rows.ids[e]), float(values[e])) for e in range(a, b)]
        for a, b in zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
    ]


def test_the_whole_format(tmp_path: Path) -> None:
    text = (
        "B-NP\tw[0]=a\tb:2\tb\\:2\tc\\\\:0.5\td\\e\n"
        "O\n\n\n@weight:2.5\nB\\:X\tw\t\tv:\t\nO\tz:0\tw:-1e-1\n"
    )
    file = read_crfsuite(saved(tmp_path, text))
    assert named(file) == [
        [("w[0]=a", 1.0), ("b", 2.0), ("b:2", 1.0), ("c\\", 0.5), ("d\\e", 1.0)],
        [],
        [("w", 1.0), ("v", 1.0)],
        [("w", pytest.approx(-0.1))],
    ]
    assert file.labels.texts() == ["B-NP", "O", "B:X", "O"]
    assert file.rows.starts.tolist() == [0, 2, 4]
    assert file.weights.tolist() == [1.0, 2.5]
    assert file.lines.tolist() == [1, 2, 6, 7]


def test_line_ends_marks_and_compression(tmp_path: Path) -> None:
    plain = read_crfsuite(saved(tmp_path, "O\ta\n\nB\tb\n"))
    packed = gzip.compress(b"\xef\xbb\xbfO\ta\r\n\r\nB\tb")
    other = read_crfsuite(saved(tmp_path, packed))
    assert named(plain) == named(other) == [[("a", 1.0)], [("b", 1.0)]]
    assert plain.labels.texts() == other.labels.texts() == ["O", "B"]
    assert other.rows.values.size == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("O\ta\n\tb\n", ":2: expected a label before the first tab, found ''"),
        ("O\ta\nB:X\tb\n", r":2: expected a label whose colons are written"),
        ("O\ta\nO\ta\tw:x\n", ":2: expected a number behind the colon .*found 'w:x'"),
        ("O\tw:1:2\n", ":1: expected a number behind the colon"),
        ("O\tw:nan\n", ":1: expected a number behind the colon"),
        ("O\tw:1_0\n", ":1: expected a number behind the colon"),
        ("O\tw:1e39\n", ":1: expected a number within float32"),
        ("O\t:1\n", ":1: expected a name before the colon"),
        ("O\ta\n@group:1\n", ":2: expected the declaration @weight.*found '@group'"),
        ("@weight:-1\nO\ta\n", ":1: expected a weight that is a number from 0 on, found '-1'"),
        ("@weight\nO\ta\n", ":1: expected a weight"),
        (b"O\ta\nO\t\xff\n", r":2: expected UTF-8 text"),
        ("", ": expected at least one token; the file is empty"),
        ("\n@weight:1\n\n", ": expected at least one token"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=r"a\.crfsuite" + message):
        read_crfsuite(saved(tmp_path, content))


def test_skipping_leaves_out_whole_sequences(tmp_path: Path) -> None:
    report = ReadReport()
    text = "A\ta\n\n@weight:3\nB\tb:x\tc:y\nC\tc\n\n@weight:2\nD\td\n"
    file = read_crfsuite(saved(tmp_path, text), on_error="skip", report=report)
    assert file.labels.texts() == ["A", "D"]
    assert file.labels.strings == ["A", "D"]
    assert file.weights.tolist() == [1.0, 2.0]
    assert (report.rows, report.skipped) == (2, 1)
    features = AttributeFeatures.fit(file.rows)
    assert features.names(range(features.size)) == ["a", "d"]


NAME = st.text(
    st.characters(exclude_characters="\t\n\r", exclude_categories=["Cs"]), min_size=1
).filter(lambda s: s.strip(" \x0b\x0c") and s[0] != "@" and s[0] != "\ufeff")
VALUE = st.none() | st.integers(-1000, 1000).filter(bool).map(lambda n: n / 8)
TOKEN = st.tuples(NAME, st.lists(st.tuples(NAME, VALUE), max_size=4))


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace(":", "\\:")


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(TOKEN, min_size=1, max_size=3), min_size=1, max_size=4))
def test_escaped_text_comes_back(tmp_path_factory: pytest.TempPathFactory, sequences) -> None:
    lines = []
    for sequence in sequences:
        for label, attributes in sequence:
            fields = [escaped(n) + (f":{v}" if v is not None else "") for n, v in attributes]
            lines.append("\t".join([escaped(label), *fields]))
        lines.append("")
    file = read_crfsuite(saved(tmp_path_factory.mktemp("crf"), "\n".join(lines)))
    tokens = [token for sequence in sequences for token in sequence]
    assert file.labels.texts() == [label for label, _ in tokens]
    assert named(file) == [[(n, 1.0 if v is None else v) for n, v in a] for _, a in tokens]
    assert np.diff(file.rows.starts).tolist() == [len(s) for s in sequences]
