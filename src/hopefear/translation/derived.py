"""Features that lists have without saying so: what their words tell.

Decoders write none of them; whoever has the words of candidates can make them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from hopefear.data.moses.lists import TuningLists
from hopefear.errors import HopefearError
from hopefear.translation.consensus import CONSENSUS, has_consensus, with_consensus
from hopefear.translation.ngrams import PREFIX, has_ngrams, with_ngrams
from hopefear.translation.weights import Weights

__all__ = ["DERIVED", "check_groups", "derived", "needed", "with_consensus", "with_ngrams"]


class _Group(NamedTuple):
    kind: str  # the features they go with
    add: Callable[[TuningLists], TuningLists]
    there: Callable[[TuningLists], bool]
    wanted: Callable[[Weights], bool]
    dense: tuple[str, ...] = ()  # names of dense features


DERIVED = {
    "consensus": _Group(
        "dense",
        with_consensus,
        has_consensus,
        lambda weights: any(name == CONSENSUS for name, _ in weights.layout),
        (CONSENSUS,),
    ),
    "ngrams": _Group(
        "sparse",
        with_ngrams,
        has_ngrams,
        lambda weights: any(name.startswith(PREFIX) for name in weights.sparse),
    ),
}


def derived(lists: TuningLists, groups: Sequence[str]) -> TuningLists:
    """The lists with these features too; those that they have already stay as they are.

    Parameters
    ----------
    lists : TuningLists
        With texts.
    groups : sequence of {"consensus", "ngrams"}
        See :func:`with_consensus` and :func:`with_ngrams`, whose defaults are used.

    Examples
    --------
    >>> from hopefear.translation.memory import lists_in_memory
    >>> lists = lists_in_memory([[("a b", {"LM0": -1.0}), ("a c", {"LM0": -2.0})]])
    >>> found = derived(lists, ["consensus", "ngrams"])
    >>> len(found.names), found.sparse.names.size
    (5, 4)
    """
    check_groups(groups)
    for group in groups:
        if not DERIVED[group].there(lists):
            lists = DERIVED[group].add(lists)
    return lists


def check_groups(groups: Sequence[str]) -> None:
    """HopefearError where a name is none of these groups."""
    for group in groups:
        if group not in DERIVED:
            known = ", ".join(DERIVED)
            raise HopefearError(f"features that words tell are {known}, not {group!r}")


def needed(weights: Weights) -> tuple[str, ...]:
    """The groups that weights speak of and that decoders do not write.

    Examples
    --------
    >>> needed(Weights((("LM0", 1),), [0.5], {"ng_the,house": 0.1}))
    ('ngrams',)
    """
    return tuple(name for name, group in DERIVED.items() if group.wanted(weights))
