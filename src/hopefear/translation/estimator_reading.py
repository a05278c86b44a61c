"""Lists of translations from whatever users have: files, arrays, Python objects."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from hopefear.data.moses.lists import TuningLists
from hopefear.data.moses.reading import read_moses
from hopefear.data.moses.words import Sentences, check_parallel, read_sentences
from hopefear.errors import HopefearError
from hopefear.metrics.lists import ListMetric
from hopefear.translation.counting import counted
from hopefear.translation.memory import lists_in_memory
from hopefear.translation.reading import read
from hopefear.translation.weights import Weights

PATH = (str, os.PathLike)


def judged_lists(
    nbest: Any,
    refs: Any,
    metric: str | ListMetric,
    source: Any = None,
    weights: Weights | None = None,
) -> TuningLists:
    """Lists whose candidates were compared with references.

    Parameters
    ----------
    nbest : path, sequence of paths, TuningLists, or lists of candidates
        As :meth:`Tuner.fit` takes them.
    refs : path, sequence of paths, or texts
        With N-best files, files; else texts, or files named by a string or by paths. None where
        TuningLists have counts.
    metric : str or ListMetric
        What counts.
    source : path, optional
        The sentences that were translated, beside N-best files.
    weights : Weights, optional
        Their dense features are dense here too.
    """
    if is_files(nbest):
        if not is_files(refs):
            raise HopefearError(
                "refs: N-best files need files of references, for their ids are lines there; found "
                f"{refs!r:.60}"
            )
        return read(nbest, refs, metric=metric, source=source, **_kinds(weights))
    if isinstance(nbest, TuningLists):
        return nbest if refs is None else counted(nbest, _texts(refs), metric)
    if refs is None:
        raise HopefearError("refs: lists of candidates need references to be tuned for; give refs")
    return counted(_made(nbest, source, weights), _texts(refs), metric)


def plain_lists(nbest: Any, source: Any, weights: Weights) -> TuningLists:
    """Lists to choose from: all candidates, with their texts.

    Parameters
    ----------
    nbest, source
        As for :func:`judged_lists`.
    weights : Weights
        What will score them.
    """
    if isinstance(nbest, TuningLists):
        return nbest
    if not is_files(nbest):
        return _made(nbest, source, weights)
    pairs = bool(weights.phrases) and source is not None
    return read_moses(
        nbest,
        texts=True,
        source=source if pairs else None,
        phrases=pairs,
        dedup="none",
        absent="skip",
        **_kinds(weights),
    )


def is_files(what: Any) -> bool:
    """Whether this is a path, or several."""
    if isinstance(what, PATH):
        return True
    return isinstance(what, list | tuple) and bool(what) and all(isinstance(p, PATH) for p in what)


def _made(nbest: Any, source: Any, weights: Weights | None) -> TuningLists:
    if source is not None:
        raise HopefearError(
            "source is for N-best files, whose phrase pairs are positions in it; candidates in "
            "memory bring their phrase pairs along, as 'phrases'"
        )
    return lists_in_memory(nbest, layout=None if weights is None else weights.layout)


def _kinds(weights: Weights | None) -> dict[str, Any]:
    """Which names are dense or sparse although they look otherwise."""
    if weights is None:
        return {}
    dense = [name for name, width in weights.layout if "_" in name and width == 1]
    return {"dense": dense, "sparse": [name for name in weights.sparse if "_" not in name]}


def _texts(refs: Any) -> Iterable[Any]:
    """References of lists in memory; lines of files where those are given."""
    if isinstance(refs, PATH):
        refs = [os.fspath(refs)]
    elif not isinstance(refs, Iterable):
        raise HopefearError(f"refs: expected texts or files of them, found {refs!r:.60}")
    else:
        refs = list(refs)
        if not refs or not all(isinstance(path, os.PathLike) for path in refs):
            return refs
    files = [read_sentences(path) for path in refs]
    check_parallel(files)
    return [list(several) for several in zip(*map(_lines, files), strict=True)]


def _lines(file: Sentences) -> list[str]:
    begins, ends, ptr = file.begins, file.ends, file.ptr.tolist()
    return [
        file.text[begins[a] : ends[b - 1]].tobytes().decode() if b > a else ""
        for a, b in pairwise(ptr)
    ]
