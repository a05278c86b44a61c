"""Treebanks in pieces, for text that memory need not hold."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

from hopefear.core.arrays import frozen_as
from hopefear.data.conllu import NAMES
from hopefear.data.files import ReadReport, check_on_error
from hopefear.data.sequences import Sentences
from hopefear.data.sources import BOM
from hopefear.data.token_files import Lines, named_tokens
from hopefear.data.token_stream import arriving, blocks
from hopefear.data.treebank import (
    _FEW,
    _INT32,
    UPOS,
    Treebank,
    _constant,
    _has_other_lines,
    _has_second_heads,
    _named,
    _names,
    _with_trees,
    _words,
)
from hopefear.errors import InputError


class TreebankParts:
    """A treebank in pieces, each read when it is asked for, never more than one in memory.

    Together they are what :func:`read_treebank` gives, and what it refuses is refused.

    Parameters
    ----------
    path, on_error, report
        As of :func:`read_treebank`.
    piece_bytes : int
        Text of a piece, rounded up to whole sentences.

    Attributes
    ----------
    format : str
        That of the file, when all pieces have been read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w") as f:
    ...     _ = f.write("Wait\\tVB\\t0\\n\\n" * 3)
    ...     f.flush()
    ...     parts = TreebankParts(f.name, piece_bytes=20)
    ...     [len(bank) for bank in parts], parts.format
    ([1, 2], 'columns')
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        on_error: str = "raise",
        report: ReadReport | None = None,
        piece_bytes: int = 1 << 20,
    ) -> None:
        check_on_error(on_error)
        self._path, self._piece_bytes = path, piece_bytes
        self.source, self._skip = os.fspath(path), on_error == "skip"
        self._report = ReadReport() if report is None else report
        self._names: tuple[str, ...] = ()
        self._declared = False
        # Whether ten columns hold what tells CoNLL-U, CoNLL-X, and again CoNLL-X.
        self._other_lines = self._number = self._strange = False

    @property
    def format(self) -> str:
        if self._names == _FEW[: len(self._names)]:
            return "columns"
        named = named_tokens(self.source) == "conllu" or self._other_lines
        universal = named or not (self._number or self._strange)
        universal = universal and len(self._names) == len(NAMES)
        return "conllu" if self._declared or universal else "conllx"

    def __iter__(self) -> Iterator[Treebank]:
        before, empty = 0, True
        for text in blocks(arriving(self._path, self._piece_bytes), self.source):
            lines = Lines.of(
                text if before else text.removeprefix(BOM), self.source, self._skip, self._report
            )
            bank = self._part(replace(lines, before=before), empty)
            before += text.count(b"\n")
            if bank is not None:
                empty = False
                yield bank
        if empty:
            reason = "only lines that were skipped" if self._report.skipped else "an empty file"
            raise InputError(self.source, 0, "at least one tree", reason)

    def _part(self, lines: Lines, first: bool) -> Treebank | None:
        """The trees of some lines; None where they have none."""
        try:
            if not self._names:
                self._names, self._declared = _names(lines, True)
            words, _ = _words(lines, self._names)
            self._look(lines, words)
            words, numbers = _with_trees(lines, words)
        except InputError as error:
            # Comments may end a file, and where bad sentences are left out all may be bad.
            if error.line or (first and not self._skip):
                raise
            self._other_lines = True
            return None
        relations = words.columns.get("deprel") or _constant(words.n_tokens)
        named = _named(words, None, relations)
        return Treebank(named, frozen_as(numbers, _INT32), relations, None, self.format)

    def _look(self, lines: Lines, words: Sentences) -> None:
        if self._declared or self._other_lines or len(self._names) < len(NAMES):
            return
        self._other_lines = _has_other_lines(lines, words)
        self._number = self._number or _has_second_heads(words)
        self._strange = self._strange or not UPOS.issuperset(words.columns["upos"].strings)
