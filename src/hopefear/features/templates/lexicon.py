"""Lists of words and phrases, found in sentences longest first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hopefear.core.component import kernel
from hopefear.errors import InputError

POSITIONS = ("B", "I")  # strings of the column that matching makes


class Trie(NamedTuple):
    """Entries as paths of word numbers; node 0 is the root."""

    edges: np.ndarray  # int64, rising: node << 32 | word
    target: np.ndarray  # int64, node an edge leads to
    ends: np.ndarray  # bool[nodes], whether an entry ends there


class Lexicon:
    """Entries ready to be matched.

    Parameters
    ----------
    entries : sequence of str
        Words, or phrases with spaces between their words.
    view : callable
        Applied to every word of an entry, as the templates apply it to tokens; None drops the
        entry.

    Examples
    --------
    >>> lexicon = Lexicon(["new york", "york"], str.lower)
    >>> words = ["in", "new", "york"]
    >>> lexicon.match(np.array([0, 3]), words, np.array([0, 1, 2], np.int32)).tolist()
    [-1, 0, 1]
    """

    def __init__(self, entries: Sequence[str], view: Callable[[str], str | None]) -> None:
        self._code: dict[str, int] = {}
        children: list[dict[int, int]] = [{}]
        ends = [False]
        for entry in entries:
            words = [view(word) for word in entry.split()]
            if not words or None in words:
                continue
            node = 0
            for word in words:
                number = self._code.setdefault(str(word), len(self._code))
                if number not in children[node]:
                    children[node][number] = len(children)
                    children.append({})
                    ends.append(False)
                node = children[node][number]
            ends[node] = True
        edges = [
            (a << 32 | word, b) for a, below in enumerate(children) for word, b in below.items()
        ]
        edges.sort()
        table = np.array(edges, np.int64).reshape(-1, 2)
        self._trie = Trie(table[:, 0].copy(), table[:, 1].copy(), np.array(ends))

    def match(self, starts: np.ndarray, strings: Sequence[str], ids: np.ndarray) -> np.ndarray:
        """For every token 0 where an entry begins, 1 where it goes on, -1 elsewhere.

        ``strings`` are the distinct strings of the tokens as the entries' view leaves them.
        """
        code = np.fromiter((self._code.get(s, -1) for s in strings), np.int64, len(strings))
        words = code[ids] if len(ids) else np.zeros(0, np.int64)
        return _match(np.array(starts, np.int64), words, self._trie)


def read_lexicon(path: Path, shown: str) -> tuple[str, ...]:
    """Entries of a file, one on each line; empty lines do not count.

    Parameters
    ----------
    path : Path
        The file.
    shown : str
        Template file that names it, for messages.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(
            shown, 0, f"a readable lexicon ({error.strerror or error})", str(path)
        ) from None
    entries = []
    for number, row in enumerate(raw.removeprefix(b"\xef\xbb\xbf").splitlines(), 1):
        try:
            entry = " ".join(row.decode("utf-8").split())
        except UnicodeDecodeError:
            raise InputError(str(path), number, "text in UTF-8", repr(row)) from None
        if entry:
            entries.append(entry)
    if not entries:
        raise InputError(str(path), 0, "at least one word or phrase")
    return tuple(dict.fromkeys(entries))


@kernel
def _match(starts, words, trie):
    found = np.full(len(words), -1, np.int32)
    for i in range(len(starts) - 1):
        k = starts[i]
        while k < starts[i + 1]:
            node, p, size = 0, k, 0
            while p < starts[i + 1] and words[p] >= 0:
                key = np.int64(node) << 32 | words[p]
                place = np.searchsorted(trie.edges, key)
                if place == len(trie.edges) or trie.edges[place] != key:
                    break
                node = trie.target[place]
                p += 1
                if trie.ends[node]:
                    size = p - k
            for q in range(size):
                found[k + q] = 0 if q == 0 else 1
            k += max(size, 1)
    return found
