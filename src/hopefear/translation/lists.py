"""Lists of translations from whatever users have: files, arrays, Python objects."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np

from hopefear.core.arrays import Strings, frozen
from hopefear.data.files import ReadReport
from hopefear.data.lists.files import read_lists
from hopefear.data.lists.input import Names, finite, number_wanted
from hopefear.data.moses.lists import NamedEntries, TuningLists
from hopefear.data.moses.reading import read_moses
from hopefear.data.moses.words import check_parallel, parallel_sentences, read_sentences
from hopefear.data.sources import Source
from hopefear.errors import HopefearError
from hopefear.metrics.lists import ListMetric, metric_named
from hopefear.translation.derived import check_groups, derived
from hopefear.translation.names import Layout
from hopefear.translation.weights import Weights

Path = str | os.PathLike[str]
PATH = (str, os.PathLike)


def tuning_metric(metric: str | ListMetric = "bleu") -> ListMetric:
    """The metric meant, of text that is split into words already.

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
    **more: Any,
) -> TuningLists:
    """Read lists and compare their candidates with references.

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
        :mod:`hopefear.translation.derived`.
    layout : tuple of (str, int), optional
        The dense features of lists as JSON, as in :func:`lists_in_memory`; lists of Moses tell
        which they are.
    more
        As in :func:`hopefear.data.moses.reading.read_moses`.
    """
    check_groups(derive)
    paths = [*map(Source, [nbest] if isinstance(nbest, PATH) else nbest)]
    if any(map(holds_json, paths)):
        if source is not None:
            raise HopefearError(
                f"source is for N-best lists of Moses, whose phrase pairs are positions in it; "
                f"leave it out with {os.fspath(paths[0])}, whose lists are JSON"
            )
        return derived(_json_lists(paths, refs, metric, layout, **more), derive)
    if refs is None:
        raise HopefearError(
            f"{os.fspath(paths[0])}: N-best lists of Moses need references to be compared with; "
            "give refs (--refs FILE)"
        )
    if derive:
        more["texts"] = True
    judge, phrases = tuning_metric(metric), source is not None
    lists = read_moses(paths, refs, metric=judge, source=source, phrases=phrases, **more)
    return derived(lists, derive)


def holds_json(path: Path) -> bool:
    """Whether a file begins as lists in JSON do; what is looked at stays to be read."""
    lines = (line.strip() for line in Source(path).look())
    return next(filter(None, lines), b"").startswith(b"{")


def json_candidates(
    paths: Sequence[Path], *, dedup: str = "none", **reading: Any
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, Sequence[str]]]:
    """``(candidates, references)`` of lists as JSON, by id; those of one id make one list.

    Parameters
    ----------
    paths : sequence of paths
        As `hopefear train rerank` reads them.
    dedup : {"first", "none"}
        Of the candidates of a list with equal words and features, keep the first, or all.
    **reading
        As in :func:`hopefear.data.lists.files.read_lists`.
    """
    lists: dict[str, dict[Any, dict[str, Any]]] = {}
    references: dict[str, Sequence[str]] = {}
    for path in paths:
        for block in read_lists(path, "json", dedup="none", **reading):
            values = block.named
            for i, name in enumerate(block.ids):
                candidates = lists.setdefault(name, {})
                if block.references is not None:
                    references.setdefault(name, block.references[i])
                for c in range(int(block.starts[i]), int(block.starts[i + 1])):
                    features = {}
                    if values is not None:
                        entries = slice(int(values.indptr[c]), int(values.indptr[c + 1]))
                        names = (values.names[j] for j in values.ids[entries].tolist())
                        features = dict(zip(names, values.values[entries].tolist(), strict=True))
                    one = {"text": block.texts[c], "features": features, "score": block.scores[c]}
                    same = block.texts[c], frozenset(features.items())
                    candidates.setdefault(same if dedup == "first" else len(candidates), one)
    return {name: list(candidates.values()) for name, candidates in lists.items()}, references


def _json_lists(
    paths: Sequence[Path],
    refs: Any,
    metric: str | ListMetric,
    layout: Layout | None,
    *,
    dedup: str = "first",
    on_error: str = "raise",
    report: ReadReport | None = None,
    **of_moses: Any,
) -> TuningLists:
    """The lists, compared with the references of files or with their own.

    ``of_moses`` is what only N-best lists of Moses leave open.
    """
    lists, own = json_candidates(paths, dedup=dedup, on_error=on_error, report=report)
    source = ", ".join(os.fspath(path) for path in paths)
    if refs is not None:
        columns = [file.lines() for file in parallel_sentences(refs)]
        references: Iterable[Reference] = list(map(list, zip(*columns, strict=True)))
    elif own.keys() == lists.keys():
        references = [list(own[name]) for name in lists]
    else:
        raise HopefearError(
            f"{source}: {len(lists) - len(own)} of {len(lists)} lists have no references to be "
            "compared with; write them into the lists, or give refs (--refs FILE)"
        )
    return lists_in_memory(lists.values(), references, metric=metric, layout=layout, source=source)


Reference = str | Sequence[str]


def counted(
    lists: TuningLists, references: Iterable[Reference], metric: str | ListMetric = "bleu"
) -> TuningLists:
    """The lists with counts of their candidates against these references.

    Parameters
    ----------
    lists : TuningLists
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
    if lists.texts is None:
        raise HopefearError(
            f"{lists.source}: candidates without their words cannot be compared with references; "
            "read the lists with texts=True"
        )
    judge = tuning_metric(metric)
    sets = [_several(i, one) for i, one in enumerate(references)]
    _check_number(lists, len(sets))
    spread = np.repeat(lists.ids, np.diff(lists.starts)).tolist()
    texts = [lists.texts.get(c) for c in range(lists.n_candidates)]
    counts = judge.statistics([sets[i] for i in spread], texts)
    numbers = {len(several) for several in sets}
    return replace(
        lists,
        counts=frozen(counts),
        metric=judge.name,
        columns=judge.columns,
        n_references=numbers.pop() if len(numbers) == 1 else -1,
    )


def _several(i: int, one: Reference) -> list[str]:
    several = [one] if isinstance(one, str) else list(one) if isinstance(one, list | tuple) else []
    if not several or not all(isinstance(text, str) for text in several):
        raise HopefearError(f"references[{i}]: expected a text or a list of texts, found {one!r}")
    if not any(text.strip() for text in several):
        raise HopefearError(f"references[{i}] is empty; give a reference, or leave the list out")
    return several


def _check_number(lists: TuningLists, n: int) -> None:
    """There must be references for all lists, and where ids have no gaps no others."""
    following = int(lists.ids[-1]) + 1 if len(lists) else 0
    if n < following or (n > following and len(lists) == following):
        raise HopefearError(
            f"{lists.source} has {len(lists)} lists (ids up to {following - 1}), and there are "
            f"references for {n}; give one entry for each"
        )


KEYS = ("text", "features", "score", "phrases")


def lists_in_memory(
    lists: Iterable[Sequence[Any]],
    references: Iterable[Reference] | None = None,
    *,
    metric: str | ListMetric = "bleu",
    layout: Layout | None = None,
    source: str = "memory",
) -> TuningLists:
    """Lists as tuning wants them, from what programs hold.

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
    >>> lists.sparse.names.get(0), lists.sparse.indptr.tolist()
    ('short', [0, 0, 1])
    """
    gathering = _Made(source)
    for i, candidates in enumerate(_outer(lists, source)):
        gathering.add(i, candidates)
    tuning_lists = gathering.lists(gathering.dense_layout() if layout is None else layout)
    return tuning_lists if references is None else counted(tuning_lists, references, metric)


def _outer(lists: Any, source: str) -> Iterable[Any]:
    if isinstance(lists, str | bytes | Mapping) or not isinstance(lists, Iterable):
        raise HopefearError(f"{source}: expected lists of candidates, found {lists!r:.60}")
    return lists


class _Made:
    """Candidates so far, checked one by one."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.ends: list[int] = []
        self.texts: list[str] = []
        self.scores: list[float] = []
        self.features: list[dict[str, list[float]]] = []
        self.pairs: list[list[str]] = []
        self.has_pairs = False

    def add(self, i: int, candidates: Any) -> None:
        """Take in list ``i``."""
        if not isinstance(candidates, list | tuple):
            raise HopefearError(
                f"list {i}: expected a list of candidates, found {candidates!r:.60}"
            )
        if not candidates:
            raise HopefearError(f"list {i} has no candidates; leave it out, and its reference")
        for c, one in enumerate(candidates):
            self._candidate(f"list {i}, candidate {c}", one)
        self.ends.append(len(self.texts))

    def dense_layout(self) -> Layout:
        """Features that all candidates have, in the order of the first."""
        if not self.features:
            raise HopefearError(f"{self.source}: expected at least one list, found none")
        often: dict[str, int] = {}
        for features in self.features:
            for name in features:
                often[name] = often.get(name, 0) + 1
        first, n = self.features[0], len(self.features)
        return tuple((name, len(first[name])) for name in first if often[name] == n)

    def lists(self, layout: Layout) -> TuningLists:
        """All of them; HopefearError where a candidate lacks a dense feature."""
        n, width = len(self.texts), sum(size for _, size in layout)
        dense = np.empty((n, width), np.float32)
        names, widths = Names(), dict(layout)
        indptr, ids, values = [0], [], []
        for c, features in enumerate(self.features):
            row: list[float] = []
            for name, size in layout:
                numbers = features.get(name, [])
                if len(numbers) != size:
                    raise HopefearError(
                        f"{self._place(c)}: expected {size} numbers under {name!r}, which is dense "
                        f"in others, found {len(numbers)}"
                    )
                row += numbers
            dense[c] = row
            for name, numbers in features.items():
                if name in widths:
                    continue
                if len(numbers) != 1:
                    raise HopefearError(
                        f"{self._place(c)}: {len(numbers)} numbers under {name!r}, which not all "
                        "candidates have; a sparse feature has one"
                    )
                ids.append(names[name])
                values.append(numbers[0])
            indptr.append(len(ids))
        sparse = _entries(names, indptr, ids)._replace(values=frozen(np.array(values, np.float32)))
        return TuningLists(
            ids=frozen(np.arange(len(self.ends))),
            starts=frozen(np.array([0, *self.ends], np.int64)),
            layout=layout,
            dense=frozen(dense),
            scores=frozen(np.array(self.scores, np.float32)),
            sparse=sparse if ids else None,
            phrases=self._phrases() if self.has_pairs else None,
            texts=Strings.pack(self.texts),
            source=self.source,
        )

    def _phrases(self) -> NamedEntries:
        names, indptr, ids = Names(), [0], []
        for pairs in self.pairs:
            ids += sorted({names[pair] for pair in pairs})
            indptr.append(len(ids))
        return _entries(names, indptr, ids)

    def _candidate(self, where: str, one: Any) -> None:
        if isinstance(one, list | tuple) and len(one) <= len(KEYS):
            one = dict(zip(KEYS, one, strict=False))
        if not isinstance(one, Mapping):
            raise HopefearError(
                f"{where}: expected a dict with some of {', '.join(KEYS)}, or a tuple of them, "
                f"found {one!r:.60}"
            )
        if strange := sorted(map(str, set(one) - set(KEYS))):
            raise HopefearError(f"{where}: no key {strange[0]!r}; there are {', '.join(KEYS)}")
        text, features = one.get("text", ""), one.get("features") or {}
        if not isinstance(text, str):
            raise HopefearError(f"{where}: expected a text, found {text!r:.60}")
        if not isinstance(features, Mapping):
            raise HopefearError(f"{where}: expected features in a dict, found {features!r:.60}")
        score = one.get("score")
        self.texts.append(text)
        self.scores.append(0.0 if score is None else _number(where, "score", score))
        self.features.append(
            {_name(where, name): _numbers(where, name, value) for name, value in features.items()}
        )
        pairs = one.get("phrases")
        self.has_pairs |= pairs is not None
        self.pairs.append([_pair(where, pair) for pair in pairs or ()])

    def _place(self, c: int) -> str:
        i = int(np.searchsorted(self.ends, c, "right"))
        return f"list {i}, candidate {c - ([0, *self.ends][i])}"


def _entries(names: Names, indptr: list[int], ids: list[int]) -> NamedEntries:
    return NamedEntries(
        Strings.pack(names.order),
        frozen(np.array(indptr, np.int64)),
        frozen(np.array(ids, np.int32)),
    )


def _name(where: str, name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise HopefearError(f"{where}: names of features are strings, not {name!r:.60}")
    return name


def _numbers(where: str, name: str, value: Any) -> list[float]:
    several = value if isinstance(value, list | tuple | np.ndarray) else [value]
    numbers = [_number(where, f"feature {name!r}", one) for one in several]
    if not numbers:
        raise HopefearError(f"{where}: feature {name!r} has no number; leave it out")
    return numbers


def _number(where: str, what: str, value: Any) -> float:
    if isinstance(value, Real | np.bool_) and finite([value]):
        return float(value)
    raise HopefearError(f"{where}: {what} must be {number_wanted(value)}, not {value!r:.60}")


def _pair(where: str, pair: Any) -> str:
    sides = pair.split(" ||| ") if isinstance(pair, str) else list(pair)
    if len(sides) != 2 or not all(isinstance(side, str) and side.split() for side in sides):
        raise HopefearError(
            f"{where}: a phrase pair is its source words and its target words, not {pair!r:.60}"
        )
    return " ||| ".join(" ".join(side.split()) for side in sides)


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
        if refs is not None and not is_files(refs):
            raise HopefearError(
                "refs: N-best files need files of references, for their ids are lines there; found "
                f"{refs!r:.60}"
            )
        layout = None if weights is None else weights.layout
        kinds = _kinds(weights)
        return read(nbest, refs, metric=metric, source=source, layout=layout, **kinds)
    if isinstance(nbest, TuningLists):
        return nbest if refs is None else counted(nbest, _texts(refs), metric)
    if refs is None:
        raise HopefearError("refs: lists of candidates need references to be tuned for; give refs")
    return counted(_made(nbest, source, weights), _texts(refs), metric)


def plain_lists(nbest: Any, source: Any, weights: Weights, **reading: Any) -> TuningLists:
    """Lists to choose from: all candidates, with their texts.

    Parameters
    ----------
    nbest, source
        As for :func:`judged_lists`.
    weights : Weights
        What will score them.
    **reading
        What becomes of bad lines of files: ``on_error``, ``report``.
    """
    if isinstance(nbest, TuningLists):
        return nbest
    if not is_files(nbest):
        return _made(nbest, source, weights)
    paths = [*map(Source, [nbest] if isinstance(nbest, PATH) else nbest)]
    if any(map(holds_json, paths)):
        lists, _ = json_candidates(paths, judged=False, **reading)
        return _made(list(lists.values()), source, weights)
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
    return [list(several) for several in zip(*(file.lines() for file in files), strict=True)]
