"""Lists of trees put together into a block of arrays: parsed, checked word by word, scored."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain

import numpy as np

from hopefear.core.arrays import frozen
from hopefear.data.lists.blocks import Names, common_arrays, given_costs
from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.lists.input import ListInput, RawList
from hopefear.data.trees import Symbols, scan_texts
from hopefear.errors import InputError
from hopefear.features.brackets.matching import bracket_costs, bracket_counts
from hopefear.features.brackets.rows import TreeRows, Trees
from hopefear.features.brackets.take import take_trees

_BRACKETS = str.maketrans(
    {"(": "-LRB-", ")": "-RRB-", "{": "-LCB-", "}": "-RCB-", "[": "-LSB-", "]": "-RSB-"}
)
_TRACE = re.compile(r"\(\s*-NONE-\s+[^\s()]+\s*\)")
_EMPTY = re.compile(r"\(\s*[^\s()]*\s*\)")


def tree_block(
    source: ListInput,
    raws: Sequence[RawList],
    names: Names,
    symbols: Symbols,
    recount: bool = False,
    given: bool = False,
) -> CandidateLists | None:
    """A block of lists of trees; None where no list is good.

    Costs are ``1 - F1`` of brackets, where counts are given or gold trees are, else those of the
    file.

    Parameters
    ----------
    source : ListInput
        The file; it refuses lists with a text that is no tree, or one of other words.
    raws : sequence of RawList
        Lists that all have counts or a gold tree, or none.
    names : Names
        Numbers for names of features; new ones are added.
    symbols : Symbols
        Numbers for labels and words; new ones are added.
    recount : bool
        Count brackets against the gold trees even where the file gives counts.
    given : bool
        Take the costs of the file, and count no brackets.
    """
    if not raws:
        return None
    parsed = _Parsed(source, raws, symbols)
    if parsed.errors:
        for i in sorted(parsed.errors):
            source.refuse(parsed.errors[i])
        good = [raw for i, raw in enumerate(raws) if i not in parsed.errors]
        return tree_block(source, good, names, symbols, recount, given)
    common = common_arrays(source, raws, names)
    counts = None if given else _counts(raws, parsed, recount)
    references = None
    if all(raw.references is not None for raw in raws):
        references = [raw.references or [] for raw in raws]
    return CandidateLists(
        **common,
        trees=parsed.trees,
        counts=None if counts is None else frozen(counts),
        costs=given_costs(raws) if counts is None else frozen(bracket_costs(counts)),
        metric="cost" if counts is None else "parseval",
        references=references,
    )


class _Parsed:
    """Trees of all candidates, then those of gold; what is wrong, by list."""

    def __init__(self, source: ListInput, raws: Sequence[RawList], symbols: Symbols) -> None:
        self.source, self.raws, self.symbols = source, raws, symbols
        self.with_gold = [i for i, raw in enumerate(raws) if raw.references]
        sizes = [len(raw.texts) for raw in raws]
        self.owners = np.concatenate([np.repeat(np.arange(len(raws)), sizes), self.with_gold])
        self.owners = self.owners.astype(np.int64)
        self.firsts = np.concatenate([[0], np.cumsum(sizes)])
        texts = list(chain.from_iterable(raw.texts for raw in raws))
        texts += [gold_text(raw.references[0], raw.texts[0]) for raw in raws if raw.references]
        both, wrong = scan_texts(texts, symbols)
        self.errors: dict[int, InputError] = {}
        for error in wrong:
            self._add(error.tree, error.expected, f", character {error.character}", error.found)
        if not wrong:
            self._compare_words(both)
        n = int(self.firsts[-1])
        self.trees, self.golds = _part(both, 0, n), _part(both, n, len(both))

    def _add(self, t: int, expected: str, behind: str, found: str) -> None:
        i = int(self.owners[t])
        raw = self.raws[i]
        c = t - int(self.firsts[i]) if t < self.firsts[-1] else None
        where = f"the gold tree of {raw.where()}" if c is None else raw.where(c)
        error = self.source.error(raw.place(c), f"{expected} in {where}{behind}", found)
        self.errors.setdefault(i, error)

    def _compare_words(self, both: Trees) -> None:
        words = both.rows.words[both.rows.words >= 0]
        sizes = both.rows.ends[both.rows.starts[:-1]].astype(np.int64)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        wanted = self._sentences(words, offsets)
        begins = np.concatenate([[0], np.cumsum([len(part) for part in wanted])])
        whole = np.concatenate([*wanted, [-1]])
        bad = sizes != np.diff(begins)[self.owners]
        at = np.repeat(begins[self.owners] - offsets[:-1], sizes) + np.arange(len(words))
        differ = words != whole[np.minimum(at, len(whole) - 1)]
        bad[np.repeat(np.arange(len(sizes)), sizes)[differ]] = True
        name = self.symbols.names
        for t in np.flatnonzero(bad).tolist():
            ours = [name[w] for w in words[offsets[t] : offsets[t + 1]].tolist()]
            theirs = [name[w] for w in wanted[self.owners[t]].tolist()]
            pairs = enumerate(zip(map(_escaped, ours), map(_escaped, theirs), strict=False))
            k = next((k for k, (a, b) in pairs if a != b), min(len(ours), len(theirs)))
            if k == len(ours) == len(theirs):
                continue  # brackets by another name
            told = theirs[k] if k < len(theirs) else "no more words"
            found = ours[k] if k < len(ours) else "the end of the tree"
            self._add(t, f"{told!r} as word {k + 1}, as in the sentence,", "", found)

    def _sentences(self, words: np.ndarray, offsets: np.ndarray) -> list[np.ndarray]:
        """Words of each list: its tokens, those of the gold tree, or of the first candidate."""
        told = [raw.tokens for raw in self.raws]
        flat = [_escaped(token) for tokens in told if tokens is not None for token in tokens]
        numbers = iter(np.split(self.symbols.numbers(flat), _ends(told)))
        gold_of = {i: int(self.firsts[-1]) + g for g, i in enumerate(self.with_gold)}
        found = []
        for i, tokens in enumerate(told):
            t = gold_of.get(i, int(self.firsts[i]))
            own = words[offsets[t] : offsets[t + 1]]
            found.append(own if tokens is None else next(numbers))
        return found


def _counts(raws: Sequence[RawList], parsed: _Parsed, recount: bool) -> np.ndarray | None:
    counts = np.full((int(parsed.firsts[-1]), 3), -1, np.int64)
    for i, raw in enumerate(raws):
        if raw.counts is not None:
            counts[parsed.firsts[i] : parsed.firsts[i + 1]] = raw.counts
    scored = np.full(len(raws), -1, np.int64)
    scored[parsed.with_gold] = np.arange(len(parsed.with_gold))
    of = scored[parsed.owners[: len(counts)]]
    todo = of >= 0 if recount else (of >= 0) & (counts[:, 0] < 0)
    if todo.any():
        trees = parsed.trees if todo.all() else take_trees(parsed.trees, todo)
        counts[todo] = bracket_counts(parsed.golds, trees, of[todo])
    return None if (counts[:, 0] < 0).any() else counts


def _part(trees: Trees, first: int, stop: int) -> Trees:
    rows = trees.rows
    begin, end = int(rows.starts[first]), int(rows.starts[stop])
    starts = frozen(rows.starts[first : stop + 1] - begin)
    return Trees(TreeRows(starts, *(array[begin:end] for array in rows[1:])), trees.symbols)


def _ends(told: Sequence[list[str] | None]) -> np.ndarray:
    return np.cumsum([len(tokens) for tokens in told if tokens is not None])[:-1]


def _escaped(token: str) -> str:
    """A token as trees write it, where brackets have names."""
    return token if token.isalnum() else token.translate(_BRACKETS)


def without_traces(text: str) -> str:
    """A tree without empty elements, and without constituents that hold nothing else.

    >>> without_traces("(S (NP-SBJ (-NONE- *)) (VP (VB go)))")
    '(S  (VP (VB go)))'
    """
    if "-NONE-" not in text:
        return text
    text = _TRACE.sub("", text)
    while (shorter := _EMPTY.sub("", text)) != text:
        text = shorter
    return text


def gold_text(text: str, candidate: str) -> str:
    """A gold tree with the words that candidates such as this have."""
    return text if "-NONE-" in candidate else without_traces(text)
