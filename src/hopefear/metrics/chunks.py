"""Labels of tokens as codes, and where chunks begin and end, as the CoNLL shared tasks count them.

The official scorer of CoNLL-2000 to 2003, ``conlleval`` (version of 2004-01-26), decides from two
neighbouring labels whether a chunk ends or begins between them (Tjong Kim Sang and Veenstra, 1999).
A label is a tag, a hyphen and a type: ``B-NP``; the first hyphen counts. Between sentences stands
one ``O``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopefear.errors import HopefearError


class Coded(NamedTuple):
    """Taggings of the same tokens, over the same names."""

    names: list[str]
    codes: tuple[NDArray[np.intp], ...]
    starts: NDArray[np.int64]


def coded(
    taggings: Sequence[Any], starts: ArrayLike | None = None, labels: Sequence[str] | None = None
) -> Coded:
    """Give every label of every tagging its place in one list of names.

    Parameters
    ----------
    taggings : sequence of taggings
        Each a list of strings, a list of such lists (one for each sentence), a `Column`, or an
        array of positions in ``labels``.
    starts : int array, optional
        Sentence i has the tokens ``starts[i] .. starts[i + 1] - 1``. Without it, lists of lists
        boundaries of sentences, and flat lists are one sentence.
    labels : sequence of str, optional
        Names of positions; also fixes the first names of the list.

    Examples
    --------
    >>> result = coded([["O", "B-X"], ["O", "O"]])
    >>> result.names, result.codes[1].tolist(), result.starts.tolist()
    (['O', 'B-X'], [0, 0], [0, 2])
    """
    code_of: dict[str, int] = {name: i for i, name in enumerate(labels or ())}
    if starts is None:
        starts = _nested_starts(taggings)
        taggings = [_flat(tagging) for tagging in taggings]
    codes = tuple(_codes(tagging, code_of, labels) for tagging in taggings)
    starts = np.asarray(starts, np.int64)
    n = int(starts[-1]) if starts.ndim == 1 and starts.size else -1
    if n < 0 or starts[0] != 0 or (np.diff(starts) < 0).any():
        raise HopefearError("starts must rise from 0 to the number of tokens")
    for column in codes:
        if len(column) != n:
            raise HopefearError(
                f"{len(column)} labels for {n} tokens; give one label for each token"
            )
    return Coded(list(code_of), codes, starts)


def _codes(tagging: Any, code_of: dict[str, int], labels: Sequence[str] | None) -> NDArray[np.intp]:
    if hasattr(tagging, "strings") and hasattr(tagging, "ids"):
        table = [code_of.setdefault(name, len(code_of)) for name in tagging.strings]
        return np.asarray(table, np.intp)[tagging.ids]
    if isinstance(tagging, np.ndarray) and tagging.dtype.kind in "iu":
        if labels is None:
            raise HopefearError("positions of labels need the names they stand for; give labels")
        outside = (tagging < 0) | (tagging >= len(labels))
        if outside.any():
            k = int(np.argmax(outside))
            raise HopefearError(
                f"token {k + 1} has label position {tagging[k]}, outside 0 to {len(labels) - 1}; "
                "give labels as strings where some are not among the names"
            )
        return tagging.astype(np.intp)
    texts = tagging.tolist() if isinstance(tagging, np.ndarray) else tagging
    for name in dict.fromkeys(texts):
        if not isinstance(name, str):
            raise HopefearError(
                f"a label is {name!r}; labels are strings, or an integer array with labels"
            )
        code_of.setdefault(name, len(code_of))
    return np.fromiter(map(code_of.__getitem__, texts), np.intp, len(texts))


def _is_nested(tagging: Any) -> bool:
    if not isinstance(tagging, list | tuple) or not tagging:
        return False
    return all(isinstance(sentence, list | tuple | np.ndarray) for sentence in tagging)


def _flat(tagging: Any) -> Any:
    if not _is_nested(tagging):
        return tagging
    return [label for sentence in tagging for label in sentence]


def _nested_starts(taggings: Sequence[Any]) -> NDArray[np.int64]:
    lengths = []
    for tagging in taggings:
        if _is_nested(tagging):
            lengths.append(np.cumsum([0, *map(len, tagging)]))
        else:
            lengths.append(np.array([0, len(getattr(tagging, "ids", tagging))]))
    for further in lengths[1:]:
        if not np.array_equal(lengths[0], further):
            raise HopefearError(
                "taggings differ in their sentences; give each token one label in every tagging"
            )
    return lengths[0]


OUT, DOT, BEGIN, INSIDE, END, SINGLE, OPEN, CLOSE, NO_CHUNK = range(9)
READINGS = ("conlleval", "iobes")
_CONLLEVAL = {"O": OUT, ".": DOT, "B": BEGIN, "I": INSIDE, "E": END, "[": OPEN, "]": CLOSE}
_IOBES = _CONLLEVAL | {"S": SINGLE, "L": END, "U": SINGLE, "M": INSIDE, "W": SINGLE}


def split_label(
    label: str, reading: str = "conlleval", raw: bool = False, outside: str = "O"
) -> tuple[str, str]:
    """Returns the tag and the type of a label; parameters as of `Tagging`.

    >>> split_label("B-X-Y"), split_label("NN"), split_label("NN", raw=True)
    (('B', 'X-Y'), ('NN', ''), ('B', 'NN'))
    """
    if raw:
        label = "O" if label in ("O", outside) else f"B-{label}"
    tag, _, kind = label.partition("-")
    # The script tests types for truth, and in Perl "0" is false.
    return tag, "" if kind == "0" and reading == "conlleval" else kind


class Chunking(NamedTuple):
    """One tagging with a place for ``O`` after each sentence, and its chunk boundaries."""

    kinds: NDArray[np.intp]  # type of the label
    starts: NDArray[np.bool_]  # a chunk begins with this label
    ends: NDArray[np.bool_]  # a chunk ended with the label before


class Chunked(NamedTuple):
    """Taggings read as chunks over one list of types; ``kinds[0]`` is the empty type."""

    kinds: list[str]
    taggings: list[Chunking]
    label_groups: NDArray[np.intp]  # label code -> code shared by labels with the same tag and type
    sentence: NDArray[np.int64]  # sentence of each place


def chunked(
    data: Coded, reading: str = "conlleval", raw: bool = False, outside: str = "O"
) -> Chunked:
    """Reads taggings as chunks; parameters as of `Tagging`."""
    if reading not in READINGS:
        raise HopefearError(f"no reading {reading!r} of chunks; choose {' or '.join(READINGS)}")
    parts = [split_label(name, reading, raw, outside) for name in [*data.names, "O"]]
    kinds: dict[str, int] = {"": 0}
    kind = np.array([kinds.setdefault(k, len(kinds)) for _, k in parts])
    tags = _CONLLEVAL if reading == "conlleval" else _IOBES
    tag = np.array([tags.get(t, NO_CHUNK) for t, _ in parts])
    pairs: dict[tuple[str, str], int] = {}
    codes_of_pairs = np.array([pairs.setdefault(p, len(pairs)) for p in parts])
    n = len(data.starts) - 1
    lengths = np.diff(data.starts)
    sentence = np.repeat(np.arange(n), lengths + 1)
    tokens = np.arange(data.starts[-1]) + np.repeat(np.arange(n), lengths)
    taggings = []
    for codes in data.codes:
        padded = np.full(len(sentence), len(data.names))
        padded[tokens] = codes
        taggings.append(_boundaries(tag[padded], kind[padded], *_TABLES[reading]))
    return Chunked(list(kinds), taggings, codes_of_pairs, sentence)


def agreements(gold: Chunking, output: Chunking) -> NDArray[np.intp]:
    """Places right after chunks that both taggings have.

    A chunk is right when both begin it together with one type, and the first change after that is
    the end of both. Equal to the script's single pass also where tags make chunks that never end.
    """
    same_kind = gold.kinds == output.kinds
    opened = gold.starts & output.starts & same_kind
    changes = np.flatnonzero(gold.ends | output.ends | ~same_kind)
    count = np.concatenate([[0], np.cumsum(opened)])
    # At one place, ends precede starts, so a place opens the next chunk after closing one.
    since = np.diff(count[changes], prepend=0) > 0
    right = changes[since & gold.ends[changes] & output.ends[changes]]
    if len(opened) and count[-1] > (count[changes[-1]] if len(changes) else 0):
        right = np.append(right, len(opened))  # still open when the text is over
    return right


def spans(chunking: Chunking) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """First place, place after the last, and type of each chunk."""
    first = np.flatnonzero(chunking.starts)
    stops = np.flatnonzero(chunking.starts | chunking.ends)
    after = np.append(stops, len(chunking.starts))[np.searchsorted(stops, first, "right")]
    return first, after, chunking.kinds[first]


def _boundaries(
    tag: np.ndarray, kind: np.ndarray, starting: np.ndarray, finishes: np.ndarray
) -> Chunking:
    tag_before = np.concatenate([[OUT], tag[:-1]])
    kind_before = np.concatenate([[0], kind[:-1]])
    change = kind != kind_before
    starts = starting[tag_before, tag] | (change & _typed[tag])
    ends = finishes[tag_before, tag] | (change & _typed[tag_before])
    return Chunking(kind, starts, ends)


def _table(pairs: Sequence[tuple[int, int]]) -> NDArray[np.bool_]:
    table = np.zeros((9, 9), bool)
    for before, tag in pairs:
        table[before, tag] = True
    return table


def _tables() -> dict[str, tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    starting = _table([(b, BEGIN) for b in (OUT, BEGIN, INSIDE)])
    starting |= _table([(b, t) for b in (OUT, END) for t in (INSIDE, END)])
    starting[:, [OPEN, CLOSE]] = True
    finishes = _table([(b, t) for b in (BEGIN, INSIDE) for t in (BEGIN, OUT)])
    finishes |= _table([(END, t) for t in (END, INSIDE, OUT)])
    finishes[[OPEN, CLOSE]] = True
    full_begins, full_finishes = starting.copy(), finishes.copy()
    full_begins[:, [BEGIN, SINGLE]] = True
    full_begins[SINGLE, [INSIDE, END]] = True
    full_finishes[[END, SINGLE]] = True
    full_finishes[[BEGIN, INSIDE], SINGLE] = True
    return {"conlleval": (starting, finishes), "iobes": (full_begins, full_finishes)}


_typed = np.array([tag not in (OUT, DOT) for tag in range(9)])
_TABLES = _tables()
