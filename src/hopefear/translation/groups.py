"""Which features get weights, and which weights are fixed beside them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from hopefear.core.arrays import Strings, frozen
from hopefear.core.hashing import StringTable
from hopefear.data.lists.dataset import fixed_scores
from hopefear.data.moses.lists import NamedEntries, TuningLists
from hopefear.errors import HopefearError
from hopefear.translation.derived import DERIVED, derived, needed
from hopefear.translation.features import GROUPS, TuningFeatures
from hopefear.translation.scoring import scores
from hopefear.translation.weights import Weights


def chosen_features(
    lists: TuningLists, features: Sequence[str] | None, fixed: Weights | None
) -> tuple[str, ...]:
    """Groups of features that get weights, those that words tell among them."""
    given = fixed is not None and bool(fixed.layout)
    if features is None:
        there = {"dense": not given, "sparse": lists.sparse, "phrases": lists.phrases}
        return tuple(name for name, found in there.items() if found)
    known = ", ".join((*GROUPS, *DERIVED))
    if not features:
        raise HopefearError(f"there are no features to tune; name some of {known}")
    for group in features:
        if group not in (*GROUPS, *DERIVED):
            raise HopefearError(f"features are {known}, not {group!r}")
    if not given and lists.layout and "dense" not in kinds(features):
        raise HopefearError(
            f"{lists.source} has dense features, which would count nothing beside tuned "
            f"{', '.join(features)}: name dense too, or give weights for them that are fixed "
            "(fixed, --fixed)"
        )
    if fixed is not None and given:
        same = dict(fixed.layout).keys() & set(told_names(features))
        if "dense" in features or same:
            raise HopefearError(
                "fixed weights of dense features and tuned ones of the same: name features "
                f"without {'dense' if 'dense' in features else min(same)}, or start from those "
                "weights instead"
            )
    return tuple(features)


def kinds(groups: Sequence[str]) -> tuple[str, ...]:
    """The groups, and for those that words tell the ones that they go with.

    >>> kinds(["phrases", "consensus", "ngrams"])
    ('phrases', 'dense', 'sparse')
    """
    return tuple(dict.fromkeys(DERIVED[g].kind if g in DERIVED else g for g in groups))


def signed_groups(groups: Sequence[str], fixed: Weights | None) -> str:
    """What gets weights, as signatures say it.

    >>> signed_groups(["dense", "ngrams"], None)
    'dense+sparse+ngrams'
    """
    every = dict.fromkeys((*kinds(groups), *groups))
    if fixed is not None and fixed.layout:  # of the dense ones those that words tell, which is said
        every.pop("dense", None)
    return "+".join(every)


def told_names(groups: Sequence[str]) -> list[str]:
    """Dense features that words tell, of these groups."""
    return [name for group in groups if group in DERIVED for name in DERIVED[group].dense]


def tuned_lists(
    lists: TuningLists, groups: Sequence[str], fixed: Weights | None
) -> tuple[TuningLists, np.ndarray | None]:
    """(The lists with all that gets weights, fixed scores of candidates if there are any).

    Where dense weights are fixed, of the dense features only those that words tell stay. Scores
    are relative to the best of each list.
    """
    whole = derived(lists, [group for group in groups if group in DERIVED])
    if fixed is None:
        return whole, None
    if not fixed.layout:
        return whole, fixed_scores(scores(lists, fixed), lists.starts)
    told = told_names(groups)
    plain = _columns(lists, [name for name, _ in lists.layout if name not in told])
    return _columns(whole, told), fixed_scores(scores(plain, fixed), lists.starts)


def joined(fixed: Weights, found: Weights) -> Weights:
    """Fixed weights and those that were found beside them; of a name in both, the sum.

    Examples
    --------
    >>> both = joined(Weights((("LM0", 1),), [0.5], {"a_b": 1.0}), Weights((), [], {"a_b": 0.25}))
    >>> both.dense.tolist(), both.sparse
    ([0.5], {'a_b': 1.25})
    """
    return Weights(
        (*fixed.layout, *found.layout),
        np.concatenate([fixed.dense, found.dense]),
        _sums(fixed.sparse, found.sparse),
        _sums(fixed.phrases, found.phrases),
        found.about,
    )


def check_start(start: Weights, groups: Sequence[str], lists: TuningLists) -> None:
    """HopefearError where weights to start from count for candidates and would get lost."""
    told = [name for name in needed(start) if not DERIVED[name].there(lists)]
    lost = [name for name in told if name not in groups]
    if start.sparse and lists.sparse is not None and "sparse" not in kinds(groups):
        lost.append("sparse")
    if start.phrases and "phrases" not in groups:  # lists do not say whether they have any
        lost.append("phrases")
    if lost:
        raise HopefearError(
            f"the weights to start from have some of {' and '.join(lost)}, which are not tuned "
            "here: tune those too (phrases with the sentences that were translated), or start from "
            "weights without them"
        )


def with_earlier(
    found: Weights, start: Weights, features: TuningFeatures, lists: TuningLists, min_count: int
) -> Weights:
    """Weights that were found, and those of the start that these lists say nothing about.

    What ``min_count`` has left out, on purpose, is left out here too.
    """

    def earlier(group: str) -> dict[str, float]:
        there: NamedEntries | None = getattr(lists, group)
        left_out = [] if there is None or min_count == 1 else [there.names]
        return _without(getattr(start, group), [getattr(features, group), *left_out])

    return replace(
        found,
        sparse={**earlier("sparse"), **found.sparse},
        phrases={**earlier("phrases"), **found.phrases},
    )


def fingerprint(weights: Weights) -> str:
    """A few letters that tell weights from others, whatever they say about themselves.

    >>> fingerprint(Weights((("LM0", 1),), [0.5])) == fingerprint(Weights((("LM0", 1),), [0.25]))
    False
    """
    parts = [weights.layout, weights.dense.tolist(), weights.sparse, weights.phrases]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:8]


def _columns(lists: TuningLists, names: Collection[str]) -> TuningLists:
    """The lists with these dense features only."""
    layout = tuple(entry for entry in lists.layout if entry[0] in names)
    kept = np.repeat(
        [name in names for name, _ in lists.layout], [width for _, width in lists.layout]
    ).astype(bool)
    if kept.all():
        return lists
    return replace(lists, layout=layout, dense=frozen(np.ascontiguousarray(lists.dense[:, kept])))


def _sums(ours: Mapping[str, float], theirs: Mapping[str, float]) -> dict[str, float]:
    return {**ours, **{name: ours.get(name, 0.0) + value for name, value in theirs.items()}}


def _without(weights: Mapping[str, float], tables: Sequence[Strings]) -> dict[str, float]:
    """Those of the weights whose names are in none of these tables."""
    if not weights:
        return {}
    own, known = StringTable.of(Strings.pack(weights)), np.zeros(len(weights) + 1, bool)
    for names in tables:
        known[own.find(names)] = True  # -1, the last, for those that have no weight
    pairs = zip(weights.items(), known[:-1].tolist(), strict=True)
    return {name: value for (name, value), there in pairs if not there}
