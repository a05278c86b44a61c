"""Lists of texts put together into a block of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, Protocol

import numpy as np

from hopefear.core.arrays import frozen
from hopefear.data.lists.candidates import CandidateLists, NamedValues
from hopefear.data.lists.input import ListInput, RawList


class TextMetric(Protocol):
    """What is needed of a metric here: statistics of candidates, and costs from them."""

    @property
    def name(self) -> str: ...

    def counts(self, texts: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray: ...

    def costs(self, counts: np.ndarray) -> np.ndarray: ...


class Names(dict[str, int]):
    """Numbers for the names of features, in order of first appearance.

    Examples
    --------
    >>> names = Names()
    >>> names["length"], names["lm"], names["length"], names.order
    (0, 1, 0, ['length', 'lm'])
    """

    def __init__(self) -> None:
        super().__init__()
        self.order: list[str] = []

    def __missing__(self, name: str) -> int:
        number = self[name] = len(self.order)
        self.order.append(name)
        return number


def text_block(
    source: ListInput, raws: Sequence[RawList], names: Names, metric: TextMetric | None
) -> CandidateLists:
    """A block of lists of texts.

    Parameters
    ----------
    source : ListInput
        The file.
    raws : sequence of RawList
        Lists that all have references, or all have costs, or none.
    names : Names
        Numbers for names of features; new ones are added.
    metric : TextMetric, optional
        Makes costs and counts where lists have references.
    """
    common = common_arrays(source, raws, names)
    references = None
    if all(raw.references is not None for raw in raws):
        references = [raw.references or [] for raw in raws]
    if metric is not None and references is not None:
        spread = [ref for ref, raw in zip(references, raws, strict=True) for _ in raw.texts]
        counts = np.ascontiguousarray(metric.counts(common["texts"], spread))
        common |= {
            "counts": frozen(counts),
            "costs": frozen(np.asarray(metric.costs(counts), np.float64)),
            "metric": metric.name,
        }
    else:
        common["costs"] = given_costs(raws)
    return CandidateLists(**common, references=references)


def common_arrays(source: ListInput, raws: Sequence[RawList], names: Names) -> dict[str, Any]:
    """What lists of every kind have."""
    starts = np.zeros(len(raws) + 1, np.int64)
    np.cumsum([len(raw.texts) for raw in raws], out=starts[1:])
    weights = None
    if any(raw.weight is not None for raw in raws):
        weights = numbers(1.0 if raw.weight is None else raw.weight for raw in raws)
    return {
        "ids": [raw.id for raw in raws],
        "starts": frozen(starts),
        "texts": list(chain.from_iterable(raw.texts for raw in raws)),
        "scores": numbers(chain.from_iterable(raw.scores for raw in raws)),
        "named": _named(raws, names),
        "weights": weights,
        "derivations": _derivations(raws),
        "source": source.name,
        "lines": frozen(np.array([raw.line for raw in raws], np.int64)),
    }


def given_costs(raws: Sequence[RawList]) -> np.ndarray | None:
    """The costs of the file, where all lists have them."""
    if any(raw.costs is None for raw in raws):
        return None
    return numbers(chain.from_iterable(raw.costs or () for raw in raws))


def numbers(values) -> np.ndarray:
    """Read-only float64 array of an iterable."""
    return frozen(np.fromiter(values, np.float64))


def _derivations(raws: Sequence[RawList]) -> list[str | None] | None:
    if all(raw.derivations is None for raw in raws):
        return None
    return list(chain.from_iterable(raw.derivations or [None] * len(raw.texts) for raw in raws))


def _named(raws: Sequence[RawList], names: Names) -> NamedValues | None:
    if all(raw.features is None for raw in raws):
        return None
    sizes = [0]
    ids: list[int] = []
    values: list[float] = []
    for raw in raws:
        for features in raw.features or [{}] * len(raw.texts):
            sizes.append(len(features))
            ids.extend(map(names.__getitem__, features))
            values.extend(features.values())
    return NamedValues(
        names.order,
        frozen(np.cumsum(sizes)),
        frozen(np.array(ids, np.int32)),
        frozen(np.array(values, np.float64)),
    )
