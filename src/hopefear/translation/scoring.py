"""Scores of candidates under weights that are known by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from hopefear.core.arrays import Strings, frozen
from hopefear.core.hashing import StringTable
from hopefear.data.lists.candidates import CandidateLists, NamedEntries, packed
from hopefear.data.lists.dataset import cheapest
from hopefear.errors import HopefearError
from hopefear.translation.names import slices_by_name
from hopefear.translation.text_features import derived, needed
from hopefear.translation.weights import Weights


def scores(lists: CandidateLists, weights: Weights) -> np.ndarray:
    """Returns scores (float64) of all candidates; names that the weights lack count 0.

    Features of the text (:mod:`hopefear.translation.text_features`) are computed where the weights
    name them and the lists lack them.

    Examples
    --------
    >>> from hopefear.translation.examples import tiny_lists
    >>> scores(tiny_lists(), Weights((("LM0", 1), ("TM0", 2)), [1.0, 0.0, 0.5])).tolist()
    [-4.0, -3.0, -2.0, -2.5]
    """
    lists = derived(lists, needed(weights))
    totals = np.zeros(lists.n_candidates)
    if weights.layout:
        totals += lists.dense @ weights.arranged(lists.layout, lists.source).dense
    if weights.sparse and lists.sparse is not None:
        totals += _summed(lists.sparse, weights.sparse)
    if weights.phrases:
        if lists.phrases is None:
            raise HopefearError(
                f"{lists.source}: the weights are for phrase pairs too, and those were not read; "
                "give the sentences that were translated (--source)"
            )
        totals += _summed(lists.phrases, weights.phrases)
    return totals


def choice(lists: CandidateLists, weights: Weights) -> np.ndarray:
    """Returns the position of the best candidate of each list (int64); of equals the first."""
    return best(scores(lists, weights), lists)


def best(points: np.ndarray, lists: CandidateLists) -> np.ndarray:
    """Returns the position of the highest number of each list (int64); of equals the first."""
    return cheapest(-points, lists.starts).astype(np.int64)


def with_scores(lists: CandidateLists, added: Mapping[str, Weights]) -> CandidateLists:
    """Adds a dense feature for each of these weights: the score under them.

    So a model of millions of features, learned elsewhere, becomes one feature that is tuned with
    the others.

    Examples
    --------
    >>> from hopefear.translation.examples import tiny_lists
    >>> model = Weights((("LM0", 1), ("TM0", 2)), [1.0, 0.0, 0.0])
    >>> with_scores(tiny_lists(), {"Again0": model}).names
    ('LM0', 'TM0.0', 'TM0.1', 'Again0')
    """
    names = {name for name, _ in lists.layout}
    if clash := names & added.keys():
        raise HopefearError(
            f"{lists.source} has a feature {min(clash)} already; call the added one something else"
        )
    columns = [scores(lists, weights).astype(np.float32)[:, None] for weights in added.values()]
    return replace(
        lists,
        layout=(*lists.layout, *((name, 1) for name in added)),
        dense=frozen(np.ascontiguousarray(np.hstack([lists.dense, *columns]))),
    )


def without_scores(weights: Weights, added: Mapping[str, Weights]) -> Weights:
    """Weights of the original features that score as these do with the added ones.

    ``w·f + v (u·g) = w·f + (v u)·g``
    """
    where = slices_by_name(weights.layout)
    layout = tuple(entry for entry in weights.layout if entry[0] not in added)
    dense, sparse, phrases = (
        np.concatenate([np.zeros(0), *(weights.dense[where[name]] for name, _ in layout)]),
        dict(weights.sparse),
        dict(weights.phrases),
    )
    for name, model in added.items():
        factor = weights.dense[where[name]].item()
        if model.layout:
            model.matches(layout)
            dense = dense + factor * model.dense
        for remaining, added_values in ((sparse, model.sparse), (phrases, model.phrases)):
            for key, value in added_values.items():
                remaining[key] = remaining.get(key, 0.0) + factor * value
    return replace(weights, layout=layout, dense=dense, sparse=sparse, phrases=phrases)


def values_by_id(names: Sequence[str], weights: Mapping[str, float]) -> np.ndarray:
    """Returns a weight (float64) for every name; 0 where there is none."""
    table = StringTable.of(Strings.pack(weights))
    indices = table.find(packed(names))
    values = np.append(np.fromiter(weights.values(), np.float64, len(weights)), 0.0)
    return values[indices]  # -1 is the last


def _summed(entries: NamedEntries, weights: Mapping[str, float]) -> np.ndarray:
    values = values_by_id(entries.names, weights)[entries.ids]
    if entries.values is not None:
        values = values * entries.values
    # Candidate by candidate: differences of running sums would differ for equal candidates.
    n = len(entries.indptr) - 1
    return np.bincount(np.repeat(np.arange(n), np.diff(entries.indptr)), values, n)
