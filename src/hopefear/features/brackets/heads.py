"""Which child of a constituent is its head: rules of Magerman (1995) and Collins (1999).

A rule is a series of searches through the children, each from one end; the first that finds one of
its labels has found the head. Rules are written for labels and used on numbers: `HeadRules` holds
them as ranks, so that a kernel finds a head in one pass over the children.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

FIRST, LAST = False, True  # from which end a search starts
SYNTACTIC, SEMANTIC = 0, 1  # kinds of heads: what governs the form, what carries the content
NO_RANK = 255

PUNCTUATION = frozenset([",", ":", "``", "''", "."])
_NEVER_HEADS = PUNCTUATION | {"-LRB-", "-RRB-"}

Searches = tuple[tuple[bool, str], ...]
"""End to start from, and labels: ``A B`` looks for A, then for B; ``A|B`` for whichever is met."""

_NOUNS = (
    (LAST, "NN|NNP|NNPS|NNS|NX|POS|JJR"),
    (FIRST, "NP"),
    (LAST, "$|ADJP|PRN CD JJ|JJS|RB|QP"),
    (LAST, "*"),
)

SYNTACTIC_RULES: Mapping[str, Searches] = {
    "ADJP": ((FIRST, "NNS QP NN $ ADVP JJ VBN VBG ADJP JJR NP JJS DT FW RBR RBS SBAR RB *"),),
    "ADVP": ((LAST, "RB RBR RBS FW ADVP TO CD JJR JJ IN NP JJS NN *"),),
    "CONJP": ((LAST, "CC RB IN *"),),
    "FRAG": ((LAST, "*"),),
    "INTJ": ((FIRST, "*"),),
    "LST": ((LAST, "LS : *"),),
    "NAC": ((FIRST, "NN NNS NNP NNPS NP NAC EX $ CD QP PRP VBG JJ JJS JJR ADJP FW *"),),
    "NP": _NOUNS,
    "NX": _NOUNS,
    "PP": ((LAST, "IN TO VBG VBN RP FW *"),),
    "PRN": ((FIRST, "*"),),
    "PRT": ((LAST, "RP *"),),
    "QP": ((FIRST, "$ IN NNS NN JJ RB DT CD NCD QP JJR JJS *"),),
    "RRC": ((LAST, "VP NP ADVP ADJP PP *"),),
    "S": ((FIRST, "TO IN VP S SBAR ADJP UCP NP *"),),
    "SBAR": ((FIRST, "WHNP WHPP WHADVP WHADJP IN DT S SQ SINV SBAR FRAG *"),),
    "SBARQ": ((FIRST, "SQ S SINV SBARQ FRAG *"),),
    "SINV": ((FIRST, "VBZ VBD VBP VB MD VP S SINV ADJP NP *"),),
    "SQ": ((FIRST, "VBZ VBD VBP VB MD VP SQ *"),),
    "UCP": ((LAST, "*"),),
    "VP": ((FIRST, "TO VBD VBN MD VBZ VB VBG VBP VP ADJP NN NNS NP *"),),
    "WHADJP": ((FIRST, "CC WRB JJ ADJP *"),),
    "WHADVP": ((LAST, "CC WRB *"),),
    "WHNP": ((FIRST, "WDT WP WP$ WHADJP WHPP WHNP *"),),
    "WHPP": ((LAST, "IN TO FW *"),),
    "X": ((LAST, "*"),),
}

# The content stands below auxiliaries, prepositions, complementisers and the genitive 's.
SEMANTIC_RULES: Mapping[str, Searches] = {
    **SYNTACTIC_RULES,
    "NP": ((LAST, "NN|NNP|NNPS|NNS|NX|JJR"), *_NOUNS[1:]),
    "PP": ((LAST, "NP|S|VP|SBAR|ADJP|ADVP|PP VBG VBN IN TO RP FW *"),),
    "QP": ((LAST, "CD NN NNS $ *"),),
    "S": ((FIRST, "VP S SBAR ADJP UCP NP *"),),
    "SBAR": ((FIRST, "S SQ SINV SBAR FRAG WHNP WHPP WHADVP WHADJP IN DT *"),),
    "SINV": ((FIRST, "VP VBD VBZ VBP VB MD S SINV ADJP NP *"),),
    "SQ": ((FIRST, "VP VBD VBZ VBP VB MD SQ *"),),
    "VP": ((FIRST, "VP VBD VBN VBZ VB VBG VBP TO MD ADJP NN NNS NP *"),),
    "WHNP": ((LAST, "NN NNS NNP NP WHNP WDT WP WP$ WHADJP WHPP *"),),
    "WHPP": ((LAST, "WHNP WHADVP NP IN TO FW *"),),
}

_OTHERWISE: Searches = ((FIRST, "*"),)


class HeadRules(NamedTuple):
    """Head rules of both kinds in the numbers of some symbols.

    Of the children of a node, ``head`` has the least ``rank[kind, row[node], column[child]]``; of
    several, the last where ``late[kind, row, rank]``, else the first.
    """

    row: np.ndarray  # uint8[symbols]: which rule a parent follows
    column: np.ndarray  # uint8[symbols]: as what rules see a child
    rank: np.ndarray  # uint8[2, rows, columns]; NO_RANK for what is never a head
    late: np.ndarray  # bool[2, rows, ranks]
    joins: np.ndarray  # bool[symbols]: conjunctions, whose left conjunct is the head


def head_rules(symbols: Sequence[str]) -> HeadRules:
    """The rules for symbols by their numbers.

    Examples
    --------
    >>> rules = head_rules(["PP", "IN", "NP"])
    >>> rules.rank[:, rules.row[0], rules.column[1:]].argmin(axis=1).tolist()
    [0, 1]
    """
    tables = (SYNTACTIC_RULES, SEMANTIC_RULES)
    rows = sorted(SYNTACTIC_RULES)
    searches = [[_searches(table[name]) for name in rows] for table in tables]
    names = {label for table in searches for rule in table for _, found in rule for label in found}
    columns = sorted((names | _NEVER_HEADS) - {"*"})
    place = {label: 1 + c for c, label in enumerate(columns)}
    rank = np.full((2, 1 + len(rows), 1 + len(columns)), NO_RANK, np.uint8)
    late = np.zeros((2, 1 + len(rows), 64), bool)
    punctuation = [place[label] for label in _NEVER_HEADS]
    for kind in (SYNTACTIC, SEMANTIC):
        for r, rule in enumerate([_searches(_OTHERWISE), *searches[kind]]):
            for step, (end, found) in enumerate(rule):
                late[kind, r, step] = end
                for label in found:
                    if label == "*":
                        others = rank[kind, r] == NO_RANK
                        others[punctuation] = False
                        rank[kind, r, others] = step
                    else:
                        rank[kind, r, place[label]] = step
    row = {label: 1 + r for r, label in enumerate(rows)}
    return HeadRules(
        np.array([row.get(s, 0) for s in symbols], np.uint8),
        np.array([place.get(s, 0) for s in symbols], np.uint8),
        rank,
        late,
        np.array([s in ("CC", "CONJP") for s in symbols], bool),
    )


def _searches(rule: Searches) -> list[tuple[bool, list[str]]]:
    return [(end, group.split("|")) for end, labels in rule for group in labels.split()]
