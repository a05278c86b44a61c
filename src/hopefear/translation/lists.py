"""Lists of translations from files, arrays or Python objects."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from hopefear.core.arrays import frozen
from hopefear.data.lists.candidates import CandidateLists, Layout, concatenated, merged
from hopefear.data.lists.files import read_lists
from hopefear.data.lists.input import FeatureNames
from hopefear.data.lists.objects import TRANSLATION, ListBuilder, densified
from hopefear.data.moses.reader import read_moses
from hopefear.data.moses.word_hashes import check_parallel, parallel_sentences, read_sentences
from hopefear.data.sources import Source
from hopefear.errors import HopefearError
from hopefear.metrics.lists import ListMetric, metric_named
from hopefear.translation.text_features import check_groups, derived
from hopefear.translation.weights import Weights

Path = str | os.PathLike[str]
PATH = (str, os.PathLike)


def tuning_metric(metric: str | ListMetric = "bleu") -> ListMetric:
    """Returns the metric meant, of text that is split into words already.

    >>> tuning_metric("bleu").tokenize
    'none'
    """
    if isinstance(metric, ListMetric):
        return metric
    return metric_named(metric, **({"tokenize": "none"} if metric == "bleu" else {}))


def read(
    nbest: Path | Sequence[Path],
    refs: Path | Sequence[Path] | None = None,
    *,
    metric: str | ListMetric = "bleu",
    source: Path | None = None,
    derive: Sequence[str] = (),
    layout: Layout | None = None,
    **options: Any,
) -> CandidateLists:
    """Reads lists and compares their candidates with references.

    Parameters
    ----------
    nbest : path or sequence of paths
        N-best lists in the format of Moses, or lists as JSON, one to a line, as rerankers read
        them (:func:`hopefear.data.lists.files.read_lists`); several files, as of several rounds,
        are merged.
    refs : path or sequence of paths, optional
        References, one file for each. Lists as JSON may bring their own.
    metric : str or ListMetric
        ``bleu``, ``chrf``, ``ter``, or any metric of text; BLEU by name is that of words as they
        are, and ``Bleu()`` splits them as sacreBLEU does.
    source : path, optional
        The sentences that were translated; with them phrase pairs are read too.
    derive : sequence of {"consensus", "ngrams"}
        Features to make from the words of candidates, which are kept then; see
        :mod:`hopefear.translation.text_features`.
    layout : tuple of (str, int), optional
        The dense features of lists as JSON, as in :func:`lists_in_memory`; lists of Moses tell
        which they are.
    more
        As in :func:`hopefear.data.moses.reader.read_moses`.
    """
    check_groups(derive)
    paths = [*map(Source, [nbest] if isinstance(nbest, PATH) else nbest)]
    if any(map(holds_json, paths)):
        if source is not None:
            raise HopefearError(
                f"source is for N-best lists of Moses, whose phrase pairs are positions in it; "
                f"leave it out with {os.fspath(paths[0])}, whose lists are JSON"
            )
        reading = {name: options[name] for name in ("on_error", "report") if name in options}
        lists, file_references = json_lists(paths, layout, options.get("dedup", "first"), **reading)
        return derived(
            counted(lists, _json_references(lists.source, file_references, refs), metric), derive
        )
    if refs is None:
        raise HopefearError(
            f"{os.fspath(paths[0])}: N-best lists of Moses need references to be compared with; "
            "give refs (--refs FILE)"
        )
    if derive:
        options["texts"] = True
    judge, phrases = tuning_metric(metric), source is not None
    lists = read_moses(paths, refs, metric=judge, source=source, phrases=phrases, **options)
    return derived(lists, derive)


def holds_json(path: Path) -> bool:
    """Returns whether a file begins as lists in JSON do; what is looked at stays to be read."""
    lines = (line.strip() for line in Source(path).look())
    return next(filter(None, lines), b"").startswith(b"{")


def json_lists(
    paths: Sequence[Path], layout: Layout | None = None, dedup: str = "none", **reading: Any
) -> tuple[CandidateLists, list[Sequence[str] | None]]:
    """Returns the lists of JSON files, those of one id merged, and their own references.

    Parameters
    ----------
    paths : sequence of paths
        As `hopefear train rerank` reads them.
    layout : tuple of (str, int), optional
        The dense features, as in `densified`.
    dedup : {"first", "none"}
        Of the candidates of a list with equal words and features, keep the first, or all.
    **reading
        As in :func:`hopefear.data.lists.files.read_lists`.
    """
    names = FeatureNames()
    file_references: dict[str, Sequence[str]] = {}
    files = []
    for path in paths:
        blocks = []
        for block in read_lists(path, "json", dedup="none", **reading):
            file_references |= zip(block.ids, block.references or (), strict=False)
            blocks.append(replace(block, references=None, derivations=None, weights=None))
        files.append(_renumbered(concatenated(blocks), names))
    lists, order = concatenated(files), FeatureNames()
    lists = merged(lists, np.array([order[name] for name in lists.ids], np.int64))
    if dedup == "first":
        lists = lists.keep(_distinct(lists))
    references = [file_references.get(name) for name in lists.ids]
    source = ", ".join(os.fspath(path) for path in paths)
    lists = replace(lists, source=source, ids=[str(i) for i in range(len(lists))])
    return densified(lists, layout), references


def _renumbered(lists: CandidateLists, names: FeatureNames) -> CandidateLists:
    """The lists with features numbered alike for all files."""
    if lists.sparse is None:
        return lists
    new = np.array([names[name] for name in lists.sparse.names], np.int32)
    sparse = lists.sparse._replace(names=names.order, ids=frozen(new[lists.sparse.ids]))
    return replace(lists, sparse=sparse)


def _distinct(lists: CandidateLists) -> np.ndarray:
    """Masks the candidates that are the first of their list with their text and features."""
    mask = np.zeros(lists.n_candidates, bool)
    for start, end in pairwise(lists.starts.tolist()):
        first: dict[Any, int] = {}
        for c in range(start, end):
            features = () if lists.sparse is None else frozenset(lists.sparse.of(c))
            first.setdefault((lists.texts[c], features), c)
        mask[list(first.values())] = True
    return mask


def _json_references(
    source: str, file_references: Sequence[Sequence[str] | None], refs: Any
) -> Iterable[Reference]:
    """References of files, or those that lists bring along."""
    if refs is not None:
        columns = [file.lines() for file in parallel_sentences(refs)]
        return list(map(list, zip(*columns, strict=True)))
    if lacking := file_references.count(None):
        raise HopefearError(
            f"{source}: {lacking} of {len(file_references)} lists have no references to be "
            "compared with; write them into the lists, or give refs (--refs FILE)"
        )
    return [list(references) for references in file_references if references is not None]


Reference = str | Sequence[str]


def counted(
    lists: CandidateLists, references: Iterable[Reference], metric: str | ListMetric = "bleu"
) -> CandidateLists:
    """Returns the lists with counts of their candidates against these references.

    Parameters
    ----------
    lists : CandidateLists
        With texts.
    references : iterable of str or of sequences of str
        Entry i, from 0, is for the list with id i: one reference or several.
    metric : str or ListMetric
        What counts: ``bleu``, ``chrf``, ``ter`` or another metric of text.

    Examples
    --------
    >>> from hopefear.translation.lists import lists_in_memory
    >>> lists = lists_in_memory([[("a b", {"LM0": -1.0}), ("a c", {"LM0": -2.0})]])
    >>> counted(lists, ["a c"], "ter").counts.tolist()
    [[1, 2], [0, 2]]
    """
    if not lists.texts:
        raise HopefearError(
            f"{lists.source}: candidates without their words cannot be compared with references; "
            "read the lists with texts=True"
        )
    judge = tuning_metric(metric)
    sets = [_several(i, reference) for i, reference in enumerate(references)]
    _check_number(lists, len(sets))
    numbers = np.repeat(np.array([int(name) for name in lists.ids]), np.diff(lists.starts)).tolist()
    counts = judge.statistics([sets[i] for i in numbers], lists.texts)
    sizes = set(map(len, sets))
    return replace(
        lists,
        counts=frozen(np.ascontiguousarray(counts)),
        metric=judge.name,
        n_references=sizes.pop() if len(sizes) == 1 else -1,
    )


def _several(i: int, reference: Reference) -> list[str]:
    several = (
        [reference]
        if isinstance(reference, str)
        else list(reference)
        if isinstance(reference, list | tuple)
        else []
    )
    if not several or not all(isinstance(text, str) for text in several):
        raise HopefearError(
            f"references[{i}]: expected a text or a list of texts, found {reference!r}"
        )
    if not any(text.strip() for text in several):
        raise HopefearError(f"references[{i}] is empty; give a reference, or leave the list out")
    return several


def _check_number(lists: CandidateLists, n: int) -> None:
    """There must be references for all lists, and where ids have no gaps no others."""
    following = int(lists.ids[-1]) + 1 if len(lists) else 0
    if n < following or (n > following and len(lists) == following):
        raise HopefearError(
            f"{lists.source} has {len(lists)} lists (ids up to {following - 1}), and there are "
            f"references for {n}; give one entry for each"
        )


def lists_in_memory(
    lists: Iterable[Sequence[Any]],
    references: Iterable[Reference] | None = None,
    *,
    metric: str | ListMetric = "bleu",
    layout: Layout | None = None,
    source: str = "memory",
) -> CandidateLists:
    """Builds lists from what programs hold, dense features apart from sparse ones.

    Parameters
    ----------
    lists : iterable of sequences of candidates
        A candidate is a dict with ``text``, ``features`` (a number or several by name), ``score``
        (what the decoder thought of it) and ``phrases`` (pairs of source and target words,
        each counted once), all optional; or a tuple of the first of these in this order. All
        candidates stay, in their order.
    references : iterable of str or of sequences of str, optional
        One reference or several for each list.
    metric : str or ListMetric
        Counts candidates against references.
    layout : tuple of (str, int), optional
        The dense features and how many numbers each has, as weights know them. Without it a
        feature is dense if all candidates have it, and sparse if some lack it.
    source : str
        What messages call the lists.

    Examples
    --------
    >>> lists = lists_in_memory(
    ...     [[{"text": "hope and fear", "features": {"LM0": -3, "TM0": [-1, -2]}, "score": -1.5},
    ...       {"text": "hope", "features": {"LM0": -1, "TM0": [-1, -4], "short": 1}}]],
    ...     ["hope and fear"],
    ... )
    >>> lists.names, lists.dense.tolist(), lists.scores.tolist()
    (('LM0', 'TM0.0', 'TM0.1'), [[-3.0, -1.0, -2.0], [-1.0, -1.0, -4.0]], [-1.5, 0.0])
    >>> lists.sparse.names[0], lists.sparse.indptr.tolist()
    ('short', [0, 0, 1])
    """
    builder = ListBuilder(TRANSLATION, tuples=True, source=source)
    builder.add_all(lists)
    tuning_lists = densified(builder.lists(), layout)
    return tuning_lists if references is None else counted(tuning_lists, references, metric)


def judged_lists(
    nbest: Any,
    refs: Any,
    metric: str | ListMetric,
    source: Any = None,
    weights: Weights | None = None,
) -> CandidateLists:
    """Reads or builds lists whose candidates are compared with references.

    Parameters
    ----------
    nbest : path, sequence of paths, CandidateLists, or lists of candidates
        As :meth:`Tuner.fit` takes them.
    refs : path, sequence of paths, or texts
        With N-best files, files; else texts, or files named by a string or by paths. None where
        CandidateLists have counts.
    metric : str or ListMetric
        What counts.
    source : path, optional
        The sentences that were translated, beside N-best files.
    weights : Weights, optional
        Their dense features are dense here too.
    """
    if is_files(nbest):
        if refs is not None and not is_files(refs):
            raise HopefearError(
                "refs: N-best files need files of references, for their ids are lines there; found "
                f"{refs!r:.60}"
            )
        layout = None if weights is None else weights.layout
        kinds = _kinds(weights)
        return read(nbest, refs, metric=metric, source=source, layout=layout, **kinds)
    if isinstance(nbest, CandidateLists):
        return nbest if refs is None else counted(nbest, _texts(refs), metric)
    if refs is None:
        raise HopefearError("refs: lists of candidates need references to be tuned for; give refs")
    return counted(_in_memory(nbest, source, weights), _texts(refs), metric)


def plain_lists(nbest: Any, source: Any, weights: Weights, **reading: Any) -> CandidateLists:
    """Reads or builds lists to choose from: all candidates, with their texts.

    Parameters
    ----------
    nbest, source
        As for :func:`judged_lists`.
    weights : Weights
        What will score them.
    **reading
        What becomes of bad lines of files: ``on_error``, ``report``.
    """
    if isinstance(nbest, CandidateLists):
        return nbest
    if not is_files(nbest):
        return _in_memory(nbest, source, weights)
    paths = [*map(Source, [nbest] if isinstance(nbest, PATH) else nbest)]
    if any(map(holds_json, paths)):
        _refuse_source(source)
        return json_lists(paths, weights.layout, judged=False, **reading)[0]
    pairs = bool(weights.phrases) and source is not None
    return read_moses(
        paths,
        texts=True,
        source=source if pairs else None,
        phrases=pairs,
        dedup="none",
        absent="skip",
        **reading,
        **_kinds(weights),
    )


def is_files(value: Any) -> bool:
    """Returns whether this is a path, or several."""
    if isinstance(value, PATH):
        return True
    return (
        isinstance(value, list | tuple) and bool(value) and all(isinstance(p, PATH) for p in value)
    )


def _in_memory(nbest: Any, source: Any, weights: Weights | None) -> CandidateLists:
    _refuse_source(source)
    return lists_in_memory(nbest, layout=None if weights is None else weights.layout)


def _refuse_source(source: Any) -> None:
    if source is not None:
        raise HopefearError(
            "source is for N-best files, whose phrase pairs are positions in it; candidates in "
            "memory bring their phrase pairs along, as 'phrases'"
        )


def _kinds(weights: Weights | None) -> dict[str, Any]:
    """Returns the names that are dense or sparse although they look otherwise."""
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
    return [list(several) for several in zip(*(file.lines() for file in files), strict=True)]
