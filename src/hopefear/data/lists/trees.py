"""Lists of trees as a block of arrays: parsed, checked word by word, scored.

Strings of trees are numbered by one table that outlives a block.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate, chain

import numpy as np

from hopefear.core.arrays import frozen
from hopefear.core.hashing import StringTable
from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.lists.input import FeatureNames, ListInput, RawList, common_arrays, given_costs
from hopefear.errors import HopefearError, InputError
from hopefear.features.brackets import (
    EXPECTED,
    NOT_TEXT,
    BracketRows,
    BracketTrees,
    Scanned,
    bracket_counts,
    scan_trees,
    take_trees,
)
from hopefear.metrics.parseval import Parseval


class TreeTextError(HopefearError):
    """A text that is no tree.

    Parameters
    ----------
    tree : int
        Which of the texts, from 0.
    expected : str
        What should have stood there.
    character : int
        Where, from 1.
    found : str
        The actual text.
    """

    def __init__(self, tree: int, expected: str, character: int, actual: str) -> None:
        super().__init__(
            f"tree {tree + 1}: expected {expected} (character {character}: {actual[:30]!r})"
        )
        self.tree, self.expected, self.character, self.found = tree, expected, character, actual


class Symbols:
    """Labels, tags and words by number; a number once given stays.

    Examples
    --------
    >>> symbols = Symbols()
    >>> symbols.numbers(["NP", "dog", "NP"]).tolist(), symbols.names[1]
    ([0, 1, 0], 'dog')
    """

    def __init__(self) -> None:
        self._table = StringTable()
        self._names: list[str] = []

    @property
    def names(self) -> list[str]:
        """All strings by their numbers; the same list every time, and it only grows."""
        if len(self._names) < self._table.size:
            strings = self._table.strings()
            self._names += map(strings.get, range(len(self._names), strings.size))
        return self._names

    def numbers(self, strings: Sequence[str]) -> np.ndarray:
        """Returns numbers (int32) of strings; new ones get the next."""
        return self._table.intern(strings)

    def spans(self, text: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Returns numbers (int32) of stretches of UTF-8 bytes that follow one another."""
        return self._table.intern_spans(text, starts, ends)


def parse_trees(texts: Sequence[str], symbols: Symbols | None = None) -> BracketTrees:
    """Trees of bracketed texts; TreeTextError for the first that is none.

    Parameters
    ----------
    texts : sequence of str
        One tree each, such as ``(S1 (S (NP (PRP it)) (VP (VBZ is))))``. A root without label, as in
        ``( (S …))``, has the label ``""``. White space does not matter.
    symbols : Symbols, optional
        Strings known already, as from other blocks of a file; new ones are added.

    Examples
    --------
    >>> trees = parse_trees(["(S (NP (PRP it)) (VP (VBZ is)))", "(NP (NN -LRB-))"])
    >>> len(trees), trees.symbols[trees.rows.words[2]], trees.rows.ends.tolist()
    (2, 'it', [2, 1, 1, 2, 2, 1, 1])
    >>> try:
    ...     parse_trees(["(S (NP it) (VP is)"])
    ... except TreeTextError as error:
    ...     print(error)
    tree 1: expected a ')' for every '(' (character 1: '(S (NP it) (VP is)')
    """
    trees, errors = scan_texts(texts, Symbols() if symbols is None else symbols)
    for error in errors:
        raise error
    return trees


def scan_texts(texts: Sequence[str], symbols: Symbols) -> tuple[BracketTrees, list[TreeTextError]]:
    """Trees of texts, and what is wrong with those that are none and have no nodes."""
    text, offsets, broken = _joined(texts)
    nodes = scan_trees(text, offsets)
    nodes.codes[broken] = NOT_TEXT
    errors = [_error(texts, t, text, offsets, nodes) for t in np.flatnonzero(nodes.codes).tolist()]
    labels = symbols.spans(text, nodes.label_begins, nodes.label_ends)
    words = np.full(len(labels), -1, np.int32)
    words[nodes.tags] = symbols.spans(text, nodes.word_begins, nodes.word_ends)
    rows = BracketRows(
        frozen(nodes.starts),
        frozen(labels),
        frozen(words),
        *map(frozen, (nodes.parents, nodes.nexts, nodes.begins, nodes.ends)),
    )
    return BracketTrees(rows, symbols.names), errors


def _joined(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Texts one behind the other in UTF-8, where each begins, and which cannot be written so."""
    sizes = list(map(len, texts))
    joined_texts = "".join(texts)
    broken: list[int] = []
    if joined_texts.isascii():
        data = joined_texts.encode("ascii")
    else:
        pieces = []
        for t, text in enumerate(texts):
            try:
                pieces.append(text.encode())
            except UnicodeEncodeError:
                pieces.append(b"")
                broken.append(t)
        sizes = list(map(len, pieces))
        data = b"".join(pieces)
    offsets = np.fromiter(accumulate(sizes, initial=0), np.int64, len(sizes) + 1)
    return np.frombuffer(data, np.uint8), offsets, broken


def _error(
    texts: Sequence[str], t: int, text: np.ndarray, offsets: np.ndarray, nodes: Scanned
) -> TreeTextError:
    code = int(nodes.codes[t])
    if code == NOT_TEXT:
        character = next(i for i, c in enumerate(texts[t]) if "\ud800" <= c <= "\udfff")
    else:
        character = len(text[offsets[t] : nodes.positions[t]].tobytes().decode())
    excerpt = texts[t][character : character + 40].encode("utf-8", "replace").decode()
    return TreeTextError(t, EXPECTED[code], character + 1, excerpt or "the end of the text")


_BRACKETS = str.maketrans(
    {"(": "-LRB-", ")": "-RRB-", "{": "-LCB-", "}": "-RCB-", "[": "-LSB-", "]": "-RSB-"}
)
_TRACE = re.compile(r"\(\s*-NONE-\s+[^\s()]+\s*\)")
_EMPTY = re.compile(r"\(\s*[^\s()]*\s*\)")


def tree_block(
    source: ListInput,
    raws: Sequence[RawList],
    names: FeatureNames,
    symbols: Symbols,
    recount: bool = False,
    has_costs: bool = False,
) -> CandidateLists | None:
    """Builds a block of lists of trees; None where no list is good.

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
    parsed = _ParsedTrees(source, raws, symbols)
    if parsed.errors:
        for i in sorted(parsed.errors):
            source.refuse(parsed.errors[i])
        good = [raw for i, raw in enumerate(raws) if i not in parsed.errors]
        return tree_block(source, good, names, symbols, recount, has_costs)
    common = common_arrays(source, raws, names)
    counts = None if has_costs else _counts(raws, parsed, recount)
    return CandidateLists(
        **common,
        trees=parsed.trees,
        counts=None if counts is None else frozen(counts),
        costs=given_costs(raws) if counts is None else frozen(Parseval().costs(counts)),
        metric="cost" if counts is None else "parseval",
    )


class _ParsedTrees:
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
        parsed, wrong = scan_texts(texts, symbols)
        self.errors: dict[int, InputError] = {}
        for error in wrong:
            self._add(error.tree, error.expected, f", character {error.character}", error.found)
        if not wrong:
            self._compare_words(parsed)
        n = int(self.firsts[-1])
        self.trees, self.golds = _part(parsed, 0, n), _part(parsed, n, len(parsed))

    def _add(self, t: int, expected: str, behind: str, actual: str) -> None:
        i = int(self.owners[t])
        raw = self.raws[i]
        c = t - int(self.firsts[i]) if t < self.firsts[-1] else None
        where = f"the gold tree of {raw.where()}" if c is None else raw.where(c)
        error = self.source.error(raw.line_of(c), f"{expected} in {where}{behind}", actual)
        self.errors.setdefault(i, error)

    def _compare_words(self, parsed: BracketTrees) -> None:
        words = parsed.rows.words[parsed.rows.words >= 0]
        sizes = parsed.rows.ends[parsed.rows.starts[:-1]].astype(np.int64)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        expected_words = self._sentences(words, offsets)
        word_starts = np.concatenate([[0], np.cumsum([len(part) for part in expected_words])])
        flat_words = np.concatenate([*expected_words, [-1]])
        bad = sizes != np.diff(word_starts)[self.owners]
        indices = np.repeat(word_starts[self.owners] - offsets[:-1], sizes) + np.arange(len(words))
        differ = words != flat_words[np.minimum(indices, len(flat_words) - 1)]
        bad[np.repeat(np.arange(len(sizes)), sizes)[differ]] = True
        name = self.symbols.names
        for t in np.flatnonzero(bad).tolist():
            tree_words = [name[w] for w in words[offsets[t] : offsets[t + 1]].tolist()]
            list_words = [name[w] for w in expected_words[self.owners[t]].tolist()]
            pairs = enumerate(
                zip(map(_escaped, tree_words), map(_escaped, list_words), strict=False)
            )
            k = next((k for k, (a, b) in pairs if a != b), min(len(tree_words), len(list_words)))
            if k == len(tree_words) == len(list_words):
                continue  # brackets by another name
            list_word = list_words[k] if k < len(list_words) else "no more words"
            tree_word = tree_words[k] if k < len(tree_words) else "the end of the tree"
            self._add(t, f"{list_word!r} as word {k + 1}, as in the sentence,", "", tree_word)

    def _sentences(self, words: np.ndarray, offsets: np.ndarray) -> list[np.ndarray]:
        """Words of each list: its tokens, those of the gold tree, or of the first candidate."""
        token_lists = [raw.tokens for raw in self.raws]
        flat = [_escaped(token) for tokens in token_lists if tokens is not None for token in tokens]
        numbers = iter(np.split(self.symbols.numbers(flat), _ends(token_lists)))
        gold_of = {i: int(self.firsts[-1]) + g for g, i in enumerate(self.with_gold)}
        sentences = []
        for i, tokens in enumerate(token_lists):
            t = gold_of.get(i, int(self.firsts[i]))
            tree_words = words[offsets[t] : offsets[t + 1]]
            sentences.append(tree_words if tokens is None else next(numbers))
        return sentences


def _counts(raws: Sequence[RawList], parsed: _ParsedTrees, recount: bool) -> np.ndarray | None:
    counts = np.full((int(parsed.firsts[-1]), 3), -1, np.int64)
    for i, raw in enumerate(raws):
        if raw.counts is not None:
            counts[parsed.firsts[i] : parsed.firsts[i + 1]] = raw.counts
    scored = np.full(len(raws), -1, np.int64)
    scored[parsed.with_gold] = np.arange(len(parsed.with_gold))
    of = scored[parsed.owners[: len(counts)]]
    todo = of >= 0 if recount else (of >= 0) & (counts[:, 0] < 0)
    if todo.any():
        trees = parsed.trees if todo.all() else take_trees(parsed.trees, np.flatnonzero(todo))
        counts[todo] = bracket_counts(parsed.golds, trees, of[todo])
    return None if (counts[:, 0] < 0).any() else counts


def _part(trees: BracketTrees, first: int, stop: int) -> BracketTrees:
    rows = trees.rows
    begin, end = int(rows.starts[first]), int(rows.starts[stop])
    starts = frozen(rows.starts[first : stop + 1] - begin)
    return BracketTrees(
        BracketRows(starts, *(array[begin:end] for array in rows[1:])), trees.symbols
    )


def _ends(sentences: Sequence[list[str] | None]) -> np.ndarray:
    return np.cumsum([len(tokens) for tokens in sentences if tokens is not None])[:-1]


def _escaped(token: str) -> str:
    """A token as trees write it, where brackets have names."""
    return token if token.isalnum() else token.translate(_BRACKETS)


def without_traces(text: str) -> str:
    """Returns a tree without empty elements, and without constituents that hold nothing else.

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
    """Returns a gold tree with the words that candidates such as this have."""
    return text if "-NONE-" in candidate else without_traces(text)
