"""One tree as the families see it: symbols behind the specials, heads, leaves by token, and a tape.

Heads follow rules of Magerman (1995) and Collins (1999). A rule is a series of searches through the
children, each from one end; the first that finds one of its labels has found the head. Rules are
written for labels and used on numbers: `HeadRules` holds them as ranks, so that a kernel finds a
head in one pass over the children. Features are spelt on a tape: symbols one after another, and
where each feature ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hopefear.core.arrays import Strings
from hopefear.core.component import helper, kernel
from hopefear.core.hashing import load_part, mix
from hopefear.features.trees.families import EMPTY, N_SPECIALS, OUTSIDE, SPECIALS, ZERO

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

# The head is below auxiliaries, prepositions, complementisers and the genitive 's.
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
    names = {
        label for table in searches for rule in table for _, labels in rule for label in labels
    }
    columns = sorted((names | _NEVER_HEADS) - {"*"})
    column_of = {label: 1 + c for c, label in enumerate(columns)}
    rank = np.full((2, 1 + len(rows), 1 + len(columns)), NO_RANK, np.uint8)
    late = np.zeros((2, 1 + len(rows), 64), bool)
    punctuation = [column_of[label] for label in _NEVER_HEADS]
    for kind in (SYNTACTIC, SEMANTIC):
        for r, rule in enumerate([_searches(_OTHERWISE), *searches[kind]]):
            for step, (end, labels) in enumerate(rule):
                late[kind, r, step] = end
                for label in labels:
                    if label == "*":
                        is_unranked = rank[kind, r] == NO_RANK
                        is_unranked[punctuation] = False
                        rank[kind, r, is_unranked] = step
                    else:
                        rank[kind, r, column_of[label]] = step
    row = {label: 1 + r for r, label in enumerate(rows)}
    return HeadRules(
        np.array([row.get(s, 0) for s in symbols], np.uint8),
        np.array([column_of.get(s, 0) for s in symbols], np.uint8),
        rank,
        late,
        np.array([s in ("CC", "CONJP") for s in symbols], bool),
    )


def _searches(rule: Searches) -> list[tuple[bool, list[str]]]:
    return [(end, group.split("|")) for end, labels in rule for group in labels.split()]


PUNCTUATES, FUNCTIONAL = 1, 2  # bits of SymbolFacts.bits

_FUNCTION_TAGS = "AUX AUXG CC DT EX IN MD PDT POS PRP PRP$ RP TO WDT WP WP$ WRB"
FUNCTION_TAGS = frozenset(_FUNCTION_TAGS.split())


class SymbolFacts(NamedTuple):
    """Properties of symbols for kernels; all but ``lower`` by their number after the specials."""

    hashes: np.ndarray  # uint64: from the strings, so that they mean the same in every file
    bits: np.ndarray  # uint8
    lower: np.ndarray  # int32[symbols of the trees]: symbol to show for a word
    heads: HeadRules


def symbol_facts(symbols: Sequence[str], lower: bool) -> tuple[SymbolFacts, list[str]]:
    """Facts, and the strings of all symbols: specials, those of the trees, lower-case forms."""
    strings = [*SPECIALS, *symbols]
    displayed = np.arange(len(SPECIALS), len(strings), dtype=np.int32)
    if lower:
        number = {s: i for i, s in reversed(list(enumerate(strings))) if i >= len(SPECIALS)}
        for i, symbol in enumerate(symbols):
            form = symbol.lower()
            if form not in number:
                number[form] = len(strings)
                strings.append(form)
            displayed[i] = number[form]
    bits = [PUNCTUATES * (s in PUNCTUATION) | FUNCTIONAL * (s in FUNCTION_TAGS) for s in strings]
    # No string of a tree holds a zero byte, so no word is taken for a mark.
    packed = Strings.pack(["\0" + s for s in SPECIALS] + strings[len(SPECIALS) :])
    with np.errstate(over="ignore"):  # uncompiled kernels warn where compiled ones do not
        hashes = _hashes(packed.text, packed.offsets)
    properties = SymbolFacts(hashes, np.array(bits, np.uint8), displayed, head_rules(strings))
    return properties, strings


@kernel
def _hashes(text, offsets):
    hashes = np.empty(len(offsets) - 1, np.uint64)
    for i in range(len(hashes)):
        begin, end = offsets[i], offsets[i + 1]
        h = np.uint64(end - begin)
        for p in range(begin, end, 8):
            h = mix(h, load_part(text, p, min(8, end - p)))
        hashes[i] = h
    return hashes


# A longer feature is left out: it spells a sentence, and no other sentence has it.
LONGEST = 48
AT, COUNT, FULL = 0, 1, 2  # positions in Tape.used


class Tape(NamedTuple):
    """Features of one tree: feature f is ``symbols[ends[f]:ends[f + 1]]``, its kind first."""

    on: np.ndarray  # bool[specials]: kinds to write
    symbols: np.ndarray  # int32
    ends: np.ndarray  # int32
    amounts: np.ndarray  # float32
    used: np.ndarray  # int64[3]: symbols; whole features; 1 where one did not fit


def new_tape(on: np.ndarray, features: int) -> Tape:
    """Allocates a tape for ``features`` features of common length."""
    return Tape(
        on,
        np.zeros(8 * features, np.int32),
        np.zeros(features + 1, np.int32),
        np.zeros(features, np.float32),
        np.zeros(3, np.int64),
    )


def kinds_on(numbers: list[int]) -> np.ndarray:
    """``Tape.on`` for these kinds."""
    on = np.zeros(N_SPECIALS, bool)
    on[numbers] = True
    return on


@helper(inline=True)
def put(tape, symbol):
    """Write a symbol of the feature that is being spelt."""
    at = tape.used[AT]
    if at < len(tape.symbols):
        tape.symbols[at] = symbol
    tape.used[AT] = at + 1


@helper(inline=True)
def start(tape, kind):
    """Begins a feature; returns False where its kind is not selected."""
    if not tape.on[kind]:
        return False
    put(tape, kind)
    return True


@helper(inline=True)
def close(tape, amount):
    """End a feature."""
    f, at = tape.used[COUNT], tape.used[AT]
    first = tape.ends[f]
    fits = at <= len(tape.symbols) and f + 1 < len(tape.ends)
    if at - first <= LONGEST and fits:
        tape.ends[f + 1] = at
        tape.amounts[f] = amount
        tape.used[COUNT] = f + 1
        return
    if at - first <= LONGEST:
        tape.used[FULL] = 1
    tape.used[AT] = first


NODES, TOKENS = 0, 1  # positions in Tree.size


class TreeScratch(NamedTuple):
    """Room for what is worked out of one tree; [2, nodes] is by kind of head."""

    labels: np.ndarray  # int32[nodes]
    words: np.ndarray  # int32[nodes]: what to show under a leaf; EMPTY above
    bits: np.ndarray  # uint8[nodes]: of the label
    depths: np.ndarray  # int32[nodes]
    lefts: np.ndarray  # int32[nodes]: sibling before; -1 where there is none
    lasts: np.ndarray  # int32[nodes]: last child; -1 where there is none
    leaves: np.ndarray  # int32[nodes]: node above each token
    heads: np.ndarray  # int32[2, nodes]: the child that is the head; -1 at leaves
    leads: np.ndarray  # int32[2, nodes]: the leaf that is the head of a node
    tops: np.ndarray  # int32[2, nodes]: the highest node a leaf is the head of
    size: np.ndarray  # int64[2]: nodes, tokens


class TreeArrays(NamedTuple):
    """A tree: positions of nodes count from its root."""

    parents: np.ndarray
    nexts: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    labels: np.ndarray
    words: np.ndarray
    bits: np.ndarray
    depths: np.ndarray
    lefts: np.ndarray
    lasts: np.ndarray
    leaves: np.ndarray
    heads: np.ndarray
    leads: np.ndarray
    tops: np.ndarray
    size: np.ndarray


def new_scratch(nodes: int) -> TreeScratch:
    """Allocates scratch for trees of up to ``nodes`` nodes."""

    def vector() -> np.ndarray:
        return np.zeros(nodes, np.int32)

    def two() -> np.ndarray:
        return np.zeros((2, nodes), np.int32)

    bits = np.zeros(nodes, np.uint8)
    return TreeScratch(
        vector(),
        vector(),
        bits,
        vector(),
        vector(),
        vector(),
        vector(),
        two(),
        two(),
        two(),
        np.zeros(2, np.int64),
    )


@helper(inline=True)
def view(rows, t, s):
    """Tree t, with what `prepare` worked out of it."""
    a, b = rows.starts[t], rows.starts[t + 1]
    return TreeArrays(
        rows.parents[a:b],
        rows.nexts[a:b],
        rows.begins[a:b],
        rows.ends[a:b],
        s.labels,
        s.words,
        s.bits,
        s.depths,
        s.lefts,
        s.lasts,
        s.leaves,
        s.heads,
        s.leads,
        s.tops,
        s.size,
    )


@kernel
def prepare(rows, t, bits, lower, tree):
    """Fill in the scratch arrays of tree t, but for heads."""
    a = rows.starts[t]
    n = rows.starts[t + 1] - a
    tokens = 0
    for v in range(n):
        label = N_SPECIALS + rows.labels[a + v]
        tree.labels[v] = label
        tree.bits[v] = bits[label]
        word = rows.words[a + v]
        tree.words[v] = lower[word] if word >= 0 else EMPTY
        if word >= 0:
            tree.leaves[rows.begins[a + v]] = v
            tokens += 1
        parent = rows.parents[a + v]
        tree.lasts[v] = -1
        tree.lefts[v] = -1
        tree.depths[v] = 0
        if parent >= 0:
            tree.depths[v] = tree.depths[parent] + 1
            tree.lefts[v] = tree.lasts[parent]
            tree.lasts[parent] = v
    tree.size[NODES] = n
    tree.size[TOKENS] = tokens


@kernel
def find_heads(tree, rules):
    """Fill in heads, leads and tops of a tree whose other arrays are there."""
    row, column, rank, late, joins = rules.row, rules.column, rules.rank, rules.late, rules.joins
    labels, lefts = tree.labels, tree.lefts
    for kind in range(2):
        for v in range(tree.size[NODES] - 1, -1, -1):
            rule = row[labels[v]]
            child = tree.lasts[v]
            head, best = child, NO_RANK
            while child >= 0:  # from the last to the first
                step = rank[kind, rule, column[labels[child]]]
                if step < best or (step == best < NO_RANK and not late[kind, rule, step]):
                    head, best = child, step
                child = lefts[child]
            if head >= 0 and lefts[head] >= 0 and joins[labels[lefts[head]]]:
                sibling = lefts[lefts[head]]
                while sibling >= 0 and tree.bits[sibling] & PUNCTUATES:
                    sibling = lefts[sibling]
                head = sibling if sibling >= 0 else head
            lead = tree.leads[kind, head] if head >= 0 else v
            tree.heads[kind, v] = head
            tree.leads[kind, v] = lead
            # Nodes of one lead are a chain, visited from below, so the highest stays.
            tree.tops[kind, lead] = v


@helper(inline=True)
def inner(tree, v):
    """Whether a node has children."""
    return tree.lasts[v] >= 0


@helper(inline=True)
def punctuates(tree, v):
    return (tree.bits[v] & PUNCTUATES) != 0


@helper(inline=True)
def functional(tree, v):
    """Whether a node is the tag of a function word."""
    return (tree.bits[v] & FUNCTIONAL) != 0


@helper(inline=True)
def label_above(tree, v):
    """Label of the parent, `OUTSIDE` above the root."""
    return tree.labels[tree.parents[v]] if v >= 0 and tree.parents[v] >= 0 else OUTSIDE


@helper(inline=True)
def binned(length):
    """Number to show for a length: the least of those that count as the same."""
    if length <= 4:
        least = length
    elif length <= 6:
        least = 5
    elif length <= 9:
        least = 7
    elif length <= 14:
        least = 10
    elif length <= 21:
        least = 15
    else:
        least = 22
    return ZERO + least
