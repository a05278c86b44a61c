"""Any file the command line reads, as Python objects that estimators take."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np

from hopefear.data.crfsuite import read_crfsuite
from hopefear.data.examples import FORMATS as EXAMPLES
from hopefear.data.examples import examples
from hopefear.data.files import ReadReport
from hopefear.data.lists.files import read_lists
from hopefear.data.lists.input import MOSES
from hopefear.data.sequences import Column
from hopefear.data.sources import Source
from hopefear.data.token_files import read_sentences
from hopefear.errors import HopefearError

TOKENS = ("columns", "conllu", "crfsuite")
LISTS = ("json", "ptb", "bllip", "moses")
TASKS = {"classify": EXAMPLES, "tag": TOKENS, "rerank": LISTS}

_ENDINGS = {"conllu": r"\.conllu", "crfsuite": r"\.crfsuite(\.txt)?"}
_ATTRIBUTE = re.compile(rb"=|:[-+]?[0-9.]+(e[-+]?[0-9]+)?$")
_LOOKED_AT = 200


class Contents(NamedTuple):
    """What a file holds: inputs, answers (None where it has none), names of columns."""

    X: Any
    y: Any
    names: Sequence[str] | None


def read(
    path: str | os.PathLike[str],
    format: str = "auto",
    *,
    task: str | None = None,
    encoding: str | None = None,
    column: str | None = None,
    on_error: str = "raise",
    report: ReadReport | None = None,
    **how: Any,
) -> Contents:
    """Read a file as the command line does: ``(X, y, names)`` for estimators.

    Of examples, X is a sparse matrix, y an array of labels, and names are those of the columns
    where they have any. Of tokens, X is a list of lists of tokens (strings, or tuples of the
    columns that names tells), y a list of lists of labels. Of lists of candidates, X is a list of
    dicts with ``candidates``, y a list of lists of costs, and names are those of features.

    Parameters
    ----------
    path : str or path
        Plain or compressed file; ``-`` is standard input.
    format : str
        As ``--format`` has it, or ``auto``.
    task : {"classify", "tag", "rerank"}, optional
        What the file is for, where its first lines do not tell.
    encoding : str, optional
        What it is written in, UTF-8 unless said.
    column : str, optional
        Of tokens, the column of the labels, as ``--column``.
    on_error : {"raise", "skip"}
        Stop at the first bad line, or leave bad lines out.
    report : ReadReport, optional
        Filled in with counts, messages of skipped lines, and what was recognised.
    **how
        More for the reader of the format: ``ngrams``, ``min_count``, ``text_column`` … of texts,
        ``columns`` of tokens, ``refs`` and ``metric`` of lists.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as f:
    ...     _ = f.write("text,label\\ngood fun,pos\\nno fun,neg\\n")
    ...     f.flush()
    ...     X, y, names = read(f.name)
    >>> X.toarray().tolist(), y.tolist(), list(names)
    ([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]], ['pos', 'neg'], ['good', 'fun', 'no'])
    """
    source = Source(path, encoding)
    report = ReadReport() if report is None else report
    if task is not None and task not in TASKS:
        raise HopefearError(f"task must be one of {', '.join(TASKS)}, not {task!r}")
    known = {form for forms in TASKS.values() for form in forms}
    if format != "auto" and format not in known:
        raise HopefearError(f"format must be auto or one of {', '.join(sorted(known))}")
    if task is None:
        tasks = [name for name, forms in TASKS.items() if format in forms]
        task = tasks[0] if len(tasks) == 1 else _task_of(source, tasks or list(TASKS))
    how |= {"on_error": on_error, "report": report}
    if column is not None and task != "tag":
        raise HopefearError(f"column={column!r} is for tokens, and {source} holds none")
    if task == "classify":
        return _examples(source, format, **how)
    if task == "tag":
        return _tokens(source, format, column, **how)
    return _lists(source, format, **how)


def _task_of(source: Source, tasks: Sequence[str]) -> str:
    """What a file is for, from its first lines."""
    lines = [line.rstrip(b"\r") for line in islice(source.look(), _LOOKED_AT)]
    spoken = [line for line in lines if line.strip()]
    first = spoken[0] if spoken else b""
    if MOSES.match(first) or re.match(rb"\s*\{.*\"candidates\"", first):
        return "rerank"
    if re.fullmatch(rb"\s*[0-9]{1,9}\s+\S+\s*", first) and any(
        b"(" in line for line in spoken[1:3]
    ):
        return "rerank"  # as BLLIP's parser prints them
    if "tag" not in tasks:
        return tasks[0]
    if named_tokens(source) or has_attributes(spoken) or first.startswith((b"-DOCSTART-", b"# ")):
        return "tag"
    widths = {len(line.split()) for line in spoken}
    return "tag" if len(widths) == 1 and min(widths) > 1 and b"" in lines[:-1] else "classify"


def named_tokens(path: str) -> str | None:
    """The format of tokens that the name of a file tells, if any."""
    for form, ending in _ENDINGS.items():
        if re.search(rf"{ending}(\.(gz|xz|bz2|zst))?$", path, re.IGNORECASE):
            return form
    return None


def has_attributes(lines: Sequence[bytes]) -> bool:
    """Whether the first token looks as in CRFsuite's files.

    >>> has_attributes([b"B-NP\\tw[0]=He\\tpos=PRP"]), has_attributes([b"He\\tPRP\\tB-NP"])
    (True, False)
    """
    spoken = (line for line in lines if line.strip() and line[:1] not in b"#@")
    first, *fields = next(spoken, b"").split(b"\t")
    fields = [name for name in fields if name.strip()]
    conllu = first.isdigit() and len(fields) == 9
    return not conllu and 2 * sum(map(bool, map(_ATTRIBUTE.search, fields))) > len(fields)


def token_format(path: str, form: str, columns: Sequence[str] | None = None) -> str:
    """The format asked for, or what name or content say; ``auto`` where the reader shall see."""
    if form != "auto":
        return form
    if columns is not None:
        return "columns"
    attributes = named_tokens(path) is None and has_attributes([*islice(Source(path).look(), 50)])
    return named_tokens(path) or ("crfsuite" if attributes else "auto")


def _examples(source: Source, format: str, **how: Any) -> Contents:
    looks = {key: how.pop(key) for key in ("text_column", "label_column") if key in how}
    common = {key: how[key] for key in ("on_error", "report")}
    data = examples(source, format, **looks, **common).read(**how)
    labels = np.array([*data.classes, ""], object)[data.rows.labels]
    named = data.features.kind in ("ngrams", "named")
    names = data.features.names(range(data.n_features)) if named else None
    return Contents(data.to_csr(), labels, names)


def _tokens(source: Source, format: str, column: str | None, **how: Any) -> Contents:
    form = token_format(source, format, how.get("columns"))
    if form == "crfsuite":
        given = read_crfsuite(source, **how)
        rows, values = given.rows, given.rows.values
        names = [rows.strings.get(i) for i in range(rows.strings.size)]
        ids = rows.ids.tolist()
        worth = values.tolist() if values.size else [1.0] * len(ids)
        bags = [
            {names[i]: v for i, v in zip(ids[a:b], worth[a:b], strict=True)}
            for a, b in pairwise(rows.indptr.tolist())
        ]
        return Contents(_cut(bags, rows.starts), _cut(given.labels.texts(), rows.starts), ())
    file = read_sentences(source, format=form, **how)
    sentences = file.sentences
    columns: Any = sentences.columns
    inputs = list(columns)
    wanted = column or ("upos" if file.format == "conllu" else inputs[-1])
    gold: Column | None = None
    if column is not None or len(inputs) > 1:
        if wanted not in columns:
            raise HopefearError(f"{source} has no column {wanted!r}; there are {', '.join(inputs)}")
        gold = columns[wanted]
        inputs.remove(columns.aliases.get(wanted, wanted))
    texts = [columns[name].texts() for name in inputs]
    tokens: list[Any] = texts[0] if len(texts) == 1 else list(zip(*texts, strict=True))
    y = None if gold is None else _cut(gold.texts(), sentences.starts)
    return Contents(_cut(tokens, sentences.starts), y, tuple(inputs))


def _lists(source: Source, format: str, **how: Any) -> Contents:
    X: list[dict[str, Any]] = []
    y: list[list[float]] = []
    names: list[str] = []
    for block in read_lists(source, format, **how):
        names = list(block.named.names) if block.named is not None else names
        text = "text" if block.trees is None else "tree"
        for i, (a, b) in enumerate(pairwise(block.starts.tolist())):
            candidates = [
                {
                    text: block.texts[c],
                    "score": float(block.scores[c]),
                    "features": _named(block, c),
                }
                for c in range(a, b)
            ]
            one: dict[str, Any] = {"candidates": candidates}
            if block.references is not None:
                one["reference"] = list(block.references[i])
            X.append(one)
            if block.costs is not None:
                y.append(block.costs[a:b].tolist())
    return Contents(X, y or None, names)


def _named(block: Any, c: int) -> dict[str, float]:
    if block.named is None:
        return {}
    some = slice(int(block.named.indptr[c]), int(block.named.indptr[c + 1]))
    ids, values = block.named.ids[some].tolist(), block.named.values[some].tolist()
    return {block.named.names[i]: v for i, v in zip(ids, values, strict=True)}


def _cut(items: list[Any], starts: np.ndarray) -> list[list[Any]]:
    return [items[a:b] for a, b in pairwise(starts.tolist())]
