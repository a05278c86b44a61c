"""Verdicts as pages show them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from hopefear.experiments.common.verdicts import AGREES, DISAGREES, OPEN
from hopefear.report import Page


class HasWord(Protocol):
    """A verdict of any experiment."""

    @property
    def verdict(self) -> str: ...


# A claim, the place it is judged on, the word, and the evidence.
Judged = tuple[str, Any, str, str]


def tally(verdicts: Iterable[HasWord], whom: str = " with the paper") -> str:
    """How many of them say what.

    >>> from hopefear.experiments.common.verdicts import Verdict
    >>> tally([Verdict("a < b", "dev", "agrees", ""), Verdict("a < b", "test", "not shown", "")])
    '**1 agree** with the paper, **0 disagree**, and 1 show neither'
    """
    found = Counter(one.verdict for one in verdicts)
    return (
        f"**{found[AGREES]} agree**{whom}, **{found[DISAGREES]} disagree**, and {found[OPEN]} show "
        "neither"
    )


def verdict_table(
    page: Page,
    verdicts: Sequence[Judged],
    places: Mapping[Any, str],
    place: str,
    claim: str = "claim of the paper",
) -> None:
    """A row a claim, a column a place; the numbers behind them are there to be opened.

    Parameters
    ----------
    page : Page
        Where to.
    verdicts : sequence of (claim, place, word, evidence)
        A claim that is judged on none of the places is among the numbers only.
    places : mapping of place to str
        Columns and their heads.
    place, claim : str
        What a place is, and a claim.
    """
    by = {(said, where): word for said, where, word, _ in verdicts}
    claims = dict.fromkeys(said for said, where, _, _ in verdicts if where in places)
    page.table(
        [claim, *places.values()],
        [[said, *(by.get((said, where)) for where in places)] for said in claims],
        "Verdicts.",
    )
    with page.details("The numbers behind each verdict"):
        page.table(
            ["claim", place, "verdict", "evidence"], [list(v) for v in verdicts], align="llll"
        )
