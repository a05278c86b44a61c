"""Dense features as lists and weights have them: names in order, and how many numbers each has."""

from __future__ import annotations

from hopefear.errors import HopefearError

Layout = tuple[tuple[str, int], ...]


def places(layout: Layout) -> dict[str, slice]:
    """Where the numbers of each name are.

    >>> places((("LM0", 1), ("TM0", 2)))
    {'LM0': slice(0, 1, None), 'TM0': slice(1, 3, None)}
    """
    found, first = {}, 0
    for name, width in layout:
        found[name] = slice(first, first + width)
        first += width
    return found


def check_same(
    ours: Layout, theirs: Layout, whose: str = "the weights", source: str = "the lists"
) -> None:
    """HopefearError, naming the first that differs, unless the features of two are the same.

    Parameters
    ----------
    ours, theirs : tuple of (str, int)
        The features of weights and of lists.
    whose, source : str
        Who has them, for the message.
    """
    for k in range(max(len(ours), len(theirs))):
        mine, other = (_feature(layout, k) for layout in (ours, theirs))
        if mine != other:
            raise HopefearError(
                f"dense features differ: {mine} in {whose}, {other} in {source}; use lists of the "
                "decoder that the weights are for"
            )


def _feature(layout: Layout, k: int) -> str:
    if k >= len(layout):
        return "no more dense features"
    name, width = layout[k]
    return f"{name} ({width} number{'s' if width > 1 else ''})"
