"""Any file the command line reads, as Python objects that estimators take."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

from hopefear.data.files import ReadReport
from hopefear.data.lists.input import MOSES
from hopefear.data.python_input import Contents
from hopefear.data.sources import Source
from hopefear.data.token_files import has_attributes, named_tokens
from hopefear.data.token_objects import begins_with_object
from hopefear.errors import HopefearError
from hopefear.tasks import TASKS, named_object

_LOOKED_AT = 200


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

    An estimator learns the same of X and y as ``hopefear train`` does of the file. Of texts, X is a
    list of strings, of rows whose columns have names, which are ``names``, a list of dicts, and of
    other rows a sparse matrix; y is an array of labels. Of tokens, X is a list of lists of tokens
    (strings, or tuples of the columns that names tells, of CoNLL-U ``word``, ``lemma`` … without
    ``id``), y a list of lists of labels. Of lists of candidates, X is a list of dicts with
    ``candidates``, y a list of lists of costs, or of references where the file has no costs, and
    names are those of features. Of treebanks, X is a list of lists of words as dicts, y a list of
    lists of ``(head, relation)``.

    Parameters
    ----------
    path : str or path
        Plain or compressed file; ``-`` is standard input.
    format : str
        As ``--format`` has it, or ``auto``.
    task : {"classify", "tag", "rerank", "parse"}, optional
        What the file is for, where its first lines do not tell; CoNLL-U is taken for tags.
    encoding : str, optional
        What it is written in, UTF-8 unless said.
    column : str, optional
        Of tokens, the column of the labels, as ``--column``.
    on_error : {"raise", "skip"}
        Stop at the first bad line, or leave bad lines out.
    report : ReadReport, optional
        Filled in with counts, messages of skipped lines, and what was recognised.
    **how
        More for the reader of the format: ``text_column`` and ``label_column`` of texts,
        ``many_classes=True`` for examples with a class for every second row or more, ``columns`` of
        tokens, ``refs`` and ``gold`` of lists.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as f:
    ...     _ = f.write("text,label\\ngood fun,pos\\nno fun,neg\\n")
    ...     f.flush()
    ...     X, y, names = read(f.name)
    >>> X, y.tolist(), names
    (['good fun', 'no fun'], ['pos', 'neg'], None)
    """
    source, readers = Source(path, encoding), {k: e for k, e in TASKS.items() if e.contents}
    report = ReadReport() if report is None else report
    if task is not None and task not in readers:
        raise HopefearError(f"task must be one of {', '.join(readers)}, not {task!r}")
    known = {form for entry in readers.values() for form in entry.formats}
    if format != "auto" and format not in known:
        raise HopefearError(f"format must be auto or one of {', '.join(sorted(known))}")
    if task is None:
        tasks = [name for name, entry in readers.items() if format in entry.formats]
        task = tasks[0] if len(tasks) == 1 else _task_of(source, tasks or list(readers))
    if column is not None:
        if task != "tag":
            raise HopefearError(f"column={column!r} is for tokens, and {source} holds none")
        how["column"] = column
    contents = named_object(str(readers[task].contents))
    try:
        return contents(source, format, on_error=on_error, report=report, **how)
    except TypeError as error:
        if "unexpected keyword" not in str(error):
            raise
        option = str(error).rpartition("argument ")[2]
        raise HopefearError(f"{source}: files of the task {task} have no option {option}") from None


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
    if begins_with_object(first):
        words = re.search(rb'"(tokens|words)"\s*:\s*\[', first)
        tags = re.search(rb'"(ner_tags|tags|labels)"\s*:\s*\[', first)
        tokens = words and (tags or not re.search(rb'"text"\s*:', first))
        wanted = "tag" if tokens else "classify"
        return wanted if wanted in tasks else tasks[0]
    if "tag" not in tasks:
        return tasks[0]
    if named_tokens(source) or has_attributes(spoken) or first.startswith(b"-DOCSTART-"):
        return "tag"
    told = next((line for line in spoken if not line.startswith(b"#")), b"")
    if first.startswith(b"# ") and not re.search(rb"\s[0-9]+:[-+.0-9]", told):
        return "tag"  # comments, as CoNLL-U has them, and no features of svmlight behind them
    widths = {len(line.split()) for line in spoken}
    table = len(widths) == 1 and min(widths) > 1 and b"" in lines[:-1]
    return "tag" if table or "classify" not in tasks else "classify"
