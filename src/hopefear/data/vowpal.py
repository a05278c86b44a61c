"""Vowpal Wabbit's text format: ``label importance 'tag |namespace:weight feature:value …``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from hopefear.data.files import ReadReport, check_on_error, read_blocks, require_rows
from hopefear.data.labels import sort_classes
from hopefear.data.parse_numbers import LARGEST
from hopefear.data.sources import utf8_wanted
from hopefear.data.sparse import SparseDataset, SparseRows
from hopefear.data.text_formats import class_label, input_error, unknown_label
from hopefear.errors import HopefearError, InputError
from hopefear.features import FeatureMap, NamedFeatures

BLOCK_ROWS = 10_000


class Line(NamedTuple):
    """One example: its label (None: it has none), importance, and features by name."""

    label: str | None
    weight: float
    features: dict[str, float]


def parse_line(text: str) -> Line:
    """Parses one line; raises ValueError with the expected text.

    A feature of the namespace ``title`` is named ``title^feature``. Values are multiplied by the
    weight of their namespace, and those of a feature that comes again are summed.

    Examples
    --------
    >>> parse_line("1 2.0 'one |title:2 good fun:0.5 | plain")
    Line(label='1', weight=2.0, features={'title^good': 2.0, 'title^fun': 1.0, 'plain': 1.0})
    """
    head, *sections = text.split("|")
    if not sections:
        raise ValueError(f"'|' before the features; found {head.strip()[:40]!r}")
    words = head.split()
    if words and (not head[-1].isspace() or words[-1].startswith("'")):
        words.pop()  # a tag touches the bar
    if words and (":" in words[0] or "," in words[0] or words[0] == "shared"):
        raise ValueError(
            "one number or word as the label (costs, bandits and several labels are for other "
            f"reductions of Vowpal Wabbit, and a classifier gives one label); found {words[0]!r}"
        )
    if len(words) > 3:
        raise ValueError(f"a label, an importance and a base before '|'; found {head.strip()!r}")
    weight = 1.0
    for i, word in enumerate(words[1:]):
        number = _number(word, "a number as importance or base")
        if i == 0:
            weight = number
    if weight < 0.0:
        raise ValueError(f"an importance of 0 or more; found {words[1]!r}")
    features: dict[str, float] = {}
    for section in sections:
        names, scale, space = section.split(), 1.0, ""
        if section and not section[0].isspace():
            space, colon, value = names.pop(0).partition(":")
            scale = _number(value, "a number as weight of a namespace") if colon else 1.0
            space = f"{space}^" if space else ""
        for name in names:
            name, colon, value = name.rpartition(":") if ":" in name else (name, "", "")
            if not name:
                raise ValueError("a name before ':'; found nothing")
            number = _number(value, "a number after ':'") if colon else 1.0
            name = space + name
            features[name] = features.get(name, 0.0) + scale * number
            if not abs(features[name]) <= LARGEST:
                raise ValueError(f"a finite number of at most 1e15 in size; found {value!r}")
    return Line(class_label(words[0]) if words else None, weight, features)


def _number(text: str, expected: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not abs(number) <= LARGEST or "_" in text:
        raise ValueError(f"{expected}, finite and at most 1e15 in size; found {text!r}")
    return number


def iter_vowpal(
    path: str | os.PathLike[str],
    *,
    features: NamedFeatures | None = None,
    classes: Sequence[str] | None = None,
    require_labels: bool = True,
    on_error: str = "raise",
    report: ReadReport | None = None,
    block_rows: int = BLOCK_ROWS,
) -> Iterator[SparseDataset]:
    """Yield the rows of a file block by block; parameters as for :func:`read_vowpal`.

    Without ``features`` and ``classes`` both grow at their ends from block to block.

    Parameters
    ----------
    block_rows : int
        Rows in a block; more need more memory.
    """
    check_on_error(on_error)
    if features is not None and not isinstance(features, NamedFeatures):
        raise HopefearError(
            "these features have no names as Vowpal Wabbit's files do; give lines of the format "
            "that the model was trained on"
        )
    report = ReadReport() if report is None else report
    name, count = os.fspath(path), 0
    columns: dict[str, int] = {}
    codes: dict[str, int] = {label: i for i, label in enumerate(classes or ())}
    rows: list[tuple[int, float, list[tuple[int, float]]]] = []

    def block() -> SparseDataset:
        feature_map = NamedFeatures(list(columns)) if features is None else features
        data = _dataset(
            rows, feature_map, list(codes)[: None if classes is None else len(classes)], name
        )
        rows.clear()
        return data

    for number, text in _lines(name, path, on_error, report):
        try:
            line = parse_line(text)
            code = _code(line.label, codes, classes, require_labels)
        except ValueError as error:
            bad = input_error(name, number, error)
            if on_error == "raise":
                raise bad from None
            report.skip(str(bad))
            continue
        if features is None:
            entries = [(columns.setdefault(f, len(columns)), v) for f, v in line.features.items()]
        else:
            columns_of_line = features.find(line.features).tolist()
            pairs = zip(columns_of_line, line.features.values(), strict=True)
            entries = [(column, value) for column, value in pairs if column >= 0]
            report.unknown_features += len(columns_of_line) - len(entries)
        report.unknown_labels += code < 0
        report.rows += 1
        count += 1
        rows.append((code, line.weight, sorted(entries)))
        if len(rows) == block_rows:
            yield block()
    if rows:
        yield block()
    require_rows(path, count, report)


def read_vowpal(
    path: str | os.PathLike[str],
    *,
    features: FeatureMap | None = None,
    classes: Sequence[str] | None = None,
    require_labels: bool = True,
    on_error: str = "raise",
    report: ReadReport | None = None,
) -> SparseDataset:
    """Read a whole file in the format of Vowpal Wabbit.

    Labels are numbers or words, the importance becomes the weight of the example, and features are
    named ``namespace^feature``.

    Parameters
    ----------
    path : str or path
        Plain or compressed UTF-8 file; ``-`` is standard input.
    features : NamedFeatures, optional
        Columns to use, as those of a model; other names are dropped and counted in the report.
    classes, require_labels, on_error, report
        As for :func:`hopefear.data.svmlight.read_svmlight`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w") as f:
    ...     _ = f.write("1 |t good fun:2\\n-1 0.5 |t bad\\n")
    ...     f.flush()
    ...     data = read_vowpal(f.name)
    >>> data.classes, data.features.names([0, 1, 2]), data.rows.weights.tolist()
    (('-1', '1'), ['t^good', 't^fun', 't^bad'], [1.0, 0.5])
    """
    options = {"require_labels": require_labels, "on_error": on_error, "report": report}
    data = next(
        iter_vowpal(path, features=features, classes=classes, block_rows=2**62, **options)  # type: ignore[arg-type]
    )
    if classes is not None:
        return data
    names = sort_classes(data.classes)
    codes = np.array([*(names.index(label) for label in data.classes), -1], np.int32)
    rows = data.rows._replace(labels=codes[data.rows.labels])
    return SparseDataset(rows, data.n_features, names, data.features, data.source)


def _lines(
    name: str, path: str | os.PathLike[str], on_error: str, report: ReadReport
) -> Iterator[tuple[int, str]]:
    for block, first in read_blocks(path):
        for i, line in enumerate(block.split(b"\n")):
            if not line.strip():
                continue
            try:
                yield first + i, line.decode()
            except UnicodeDecodeError:
                excerpt = line[:60].decode("utf-8", "backslashreplace")
                error = InputError(name, first + i, utf8_wanted(line), excerpt)
                if on_error == "raise":
                    raise error from None
                report.skip(str(error))


def _code(
    label: str | None, codes: dict[str, int], classes: Sequence[str] | None, required: bool
) -> int:
    if label is None:
        if required:
            raise ValueError("a label before '|', with a blank between (else it is a tag)")
        return -1
    if classes is None:
        return codes.setdefault(label, len(codes))
    if required and label not in codes:
        raise unknown_label(label, classes)
    return codes.get(label, -1)


def _dataset(
    rows: list[tuple[int, float, list[tuple[int, float]]]],
    features: NamedFeatures,
    classes: Sequence[str],
    name: str,
) -> SparseDataset:
    indptr = np.concatenate([[0], np.cumsum([len(entries) for _, _, entries in rows])])
    flat = [entry for _, _, entries in rows for entry in entries]
    return SparseDataset(
        SparseRows(
            indptr.astype(np.int64),
            np.array([column for column, _ in flat], np.int32),
            np.array([value for _, value in flat], np.float32),
            np.array([code for code, _, _ in rows], np.int32),
            np.array([weight for _, weight, _ in rows], np.float32),
        ),
        features.size,
        classes,
        features,
        name,
    )
