"""Ways to find the n best outputs of a chain."""

from __future__ import annotations

from typing import Any, NamedTuple

from hopefear.core.component import component, interface, python_only, required
from hopefear.errors import HopefearError
from hopefear.structures.lattice import astar, beam, list_viterbi


@interface
class Search:
    """Finds the n best outputs."""

    @python_only
    def room(self):
        """What ``new_space`` must be told."""
        return {}

    @required
    def find(self, shape, T, scores, space, n, ratio):
        """Leave up to ``n`` paths and their scores in ``space``; returns how many."""


@component(Search)
class AStar(NamedTuple):
    """Exact: A* with the backward Viterbi scores for a heuristic (SAPO, section 2.1)."""

    unused: int = 0

    def find(self, shape, T, scores, space, n, ratio):
        return astar(shape, T, scores, space, n, ratio)


@component(Search)
class ListViterbi(NamedTuple):
    """Exact: every state keeps its n best."""

    unused: int = 0

    def room(self):
        return {"lists": True}

    def find(self, shape, T, scores, space, n, ratio):
        return list_viterbi(shape, T, scores, space, n, ratio)


@component(Search)
class Beam(NamedTuple):
    """Not exact: from left to right, the ``keep`` best beginnings stay."""

    keep: int = 50

    def room(self):
        return {"width": self.keep}

    def find(self, shape, T, scores, space, n, ratio):
        return beam(shape, T, scores, space, n, self.keep, ratio)


SEARCHES = {"astar": AStar, "list": ListViterbi, "beam": Beam}


def search_named(name: str, keep: int = 50) -> Any:
    """A search by the name the command line has for it.

    >>> search_named("beam", 10)
    Beam(keep=10)
    """
    if name not in SEARCHES:
        raise HopefearError(f"search is one of {', '.join(SEARCHES)}, not {name!r}")
    if keep < 1:
        raise HopefearError(f"a beam keeps at least 1 output, not {keep}")
    return Beam(keep) if name == "beam" else SEARCHES[name]()
