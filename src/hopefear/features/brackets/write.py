"""Trees back into text."""

from __future__ import annotations

from hopefear.features.brackets.rows import Trees


def bracketed(trees: Trees, t: int) -> str:
    """Tree ``t`` in brackets on one line, as treebanks write it.

    Examples
    --------
    >>> from hopefear.data.lists.trees import parse_trees
    >>> bracketed(parse_trees(["( (S (NP(PRP it))  (VP (VBZ is))))"]), 0)
    '( (S (NP (PRP it)) (VP (VBZ is))))'
    """
    rows, symbols = trees.rows, trees.symbols
    span = slice(int(rows.starts[t]), int(rows.starts[t + 1]))
    pieces: list[str] = []
    open_ends: list[int] = []
    nodes = zip(
        rows.labels[span].tolist(),
        rows.words[span].tolist(),
        rows.nexts[span].tolist(),
        strict=True,
    )
    for position, (label, word, behind) in enumerate(nodes):
        while open_ends and open_ends[-1] <= position:
            pieces.append(")")
            open_ends.pop()
        pieces.append(f" ({symbols[label]}" if position else f"({symbols[label]}")
        if word >= 0:
            pieces.append(f" {symbols[word]}")
        open_ends.append(behind)
    return "".join(pieces) + ")" * len(open_ends)


def words_of(trees: Trees, t: int) -> list[str]:
    """The words under tree ``t``."""
    words = trees.rows.words[int(trees.rows.starts[t]) : int(trees.rows.starts[t + 1])]
    return [trees.symbols[word] for word in words[words >= 0].tolist()]
