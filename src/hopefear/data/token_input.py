"""Sequences as Python objects: tokens, labels and permitted labels for a tagger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from numbers import Integral
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from hopefear.data.labels import class_name
from hopefear.data.sequences import Column, Sentences
from hopefear.data.token_examples import TokenExamples
from hopefear.data.token_files import default_names
from hopefear.errors import HopefearError
from hopefear.features.attributes import AttributeRows, flattened, place

AUTO, ATTRIBUTES = "auto", "attributes"


class TokenInput(NamedTuple):
    """Reader of tokens: as rows of named columns or, without columns, as sets of attributes.

    A token with columns is a string (one column), a list or tuple of as many strings as there are
    columns, or a dict that has them as keys. Without columns it is what CRFsuite's users write, as
    :meth:`hopefear.features.attributes.AttributeRows.of` says.

    Parameters
    ----------
    columns : tuple of str
        Names of the columns.

    Examples
    --------
    >>> tokens = TokenInput(("word", "pos")).read([[("the", "DT"), ("cat", "NN")], []])
    >>> tokens.starts.tolist(), tokens.content.columns["pos"].texts()
    ([0, 2, 2], ['DT', 'NN'])
    """

    columns: tuple[str, ...] = ()

    @classmethod
    def of(cls, X: Any, columns: str | Sequence[str] | None, features: Any) -> TokenInput:
        """Chooses how to read sequences, by the user's columns, the features and the first token.

        Parameters
        ----------
        X : list of lists of tokens
            The sequences.
        columns : str or sequence of str, optional
            Names of the columns of a token.
        features : str or Templates
            ``"attributes"``, ``"auto"``, or templates, which need columns.

        Examples
        --------
        >>> TokenInput.of([["the", "cat"]], None, "auto").columns
        ('word',)
        >>> TokenInput.of([[("the", "DT"), ("cat", "NN")]], None, "auto").columns
        ('word', 'pos')
        >>> TokenInput.of([[["w=the", "bos"]]], None, "auto").columns
        ()
        """
        if columns is not None:
            return cls(_column_names(columns, features))
        _, tokens = flattened(X, "tokens")
        first = tokens[0] if tokens else ""
        if isinstance(first, str):
            if features == ATTRIBUTES:
                raise HopefearError(
                    f"features='attributes' needs tokens that are dicts or lists of strings, "
                    f"but the first one is the string {first!r:.60}"
                )
            return cls(("word",))
        if features != ATTRIBUTES and (names := _columns_of(tokens)):
            return cls(names)
        if features in (AUTO, ATTRIBUTES):
            return cls()
        if isinstance(first, dict):
            return cls(_column_names(list(first), features))
        raise HopefearError(
            f"templates read columns, and the tokens, such as {first!r:.60}, do not name them; "
            "say columns=('word', 'pos') or whatever they are"
        )

    def read(self, X: Any) -> TokenExamples:
        """Sequences of tokens; what does not fit is refused with the numbers of X[i][j]."""
        if not self.columns:
            rows = AttributeRows.of(X)
            return TokenExamples(rows)
        starts, tokens = flattened(X, "tokens")
        columns = {}
        for name, texts in zip(self.columns, self._split(starts, tokens), strict=True):
            columns[name] = _text_column(texts, f"the column {name!r}", starts)
        return TokenExamples(Sentences(starts, columns))

    def _split(self, starts: np.ndarray, tokens: list[Any]) -> list[list[Any]]:
        """The columns of all tokens, without a step of Python for a token."""
        n = len(self.columns)
        kinds = set(map(type, tokens))
        if not tokens:
            return [[] for _ in range(n)]
        if n == 1 and _all_are(kinds, str):
            return [tokens]
        if _all_are(kinds, list | tuple) and set(map(len, tokens)) == {n}:
            flat = list(chain.from_iterable(tokens))
            return [flat[i::n] for i in range(n)]
        if _all_are(kinds, dict):
            try:
                return [list(map(itemgetter(name), tokens)) for name in self.columns]
            except KeyError:
                pass
        expected = f"the columns {', '.join(self.columns)}" if n > 1 else f"a {self.columns[0]}"
        k = next(
            k
            for k, token in enumerate(tokens)
            if not self._fits(token) or type(token) is not type(tokens[0])
        )
        like = "" if k == 0 else f" in the form of the first token, {tokens[0]!r:.60}"
        raise HopefearError(f"{place(starts, k)}: expected {expected}{like}, not {tokens[k]!r:.60}")

    def _fits(self, token: Any) -> bool:
        if isinstance(token, str):
            return len(self.columns) == 1
        if isinstance(token, dict):
            return all(name in token for name in self.columns)
        return isinstance(token, list | tuple) and len(token) == len(self.columns)


def read_labels(y: Any, starts: np.ndarray) -> tuple[Column, list[Any]]:
    """``(names, labels)``: the name of every token's label, and the labels as they were given.

    Parameters
    ----------
    y : list of lists of labels
        All strings, or all whole numbers.
    starts : int64 array
        Where the sequences of X begin, and the number of tokens.

    Examples
    --------
    >>> names, labels = read_labels([[7, 3], [7]], np.array([0, 2, 3]))
    >>> names.texts(), labels
    (['7', '3', '7'], [7, 3])
    """
    bounds, flat = flattened(y, "labels")
    _check_lengths(bounds, starts, "labels")
    kinds = set(map(type, flat))
    if not _all_are(kinds, str) and not all(map(_is_whole, kinds)):
        k = next(k for k, label in enumerate(flat) if not _goes_with(label, flat[0]))
        raise HopefearError(
            f"{place(starts, k)}: labels are all strings or all whole numbers, "
            f"so {flat[k]!r:.60} cannot be one"
        )
    if _all_are(kinds, str):
        column = _text_column(flat, "the label", starts)
        return column, [str(label) for label in column.strings]
    column = Column.of(flat)
    return Column([class_name(label) for label in column.strings], column.ids), list(column.strings)


def with_labels(examples: TokenExamples, y: Any) -> TokenExamples:
    """Returns sequences with these labels, which are as for :func:`read_labels`."""
    return replace(examples, gold=read_labels(y, examples.starts)[0])


def weighted(examples: TokenExamples, sample_weight: Any) -> TokenExamples:
    """Returns sequences with these weights, without those of weight 0.

    >>> examples = TokenInput(("word",)).read([["a"], ["b"]])
    >>> weighted(examples, [0, 2]).texts()
    ['b']
    """
    if sample_weight is None:
        return examples
    weights = np.asarray(sample_weight, np.float64)
    if weights.shape != (len(examples),):
        raise HopefearError(
            f"{len(examples)} sequences need as many weights, not an array of {weights.shape}"
        )
    sound = (weights >= 0.0) & np.isfinite(weights)
    if not sound.all():
        i = int(np.argmin(sound))
        raise HopefearError(f"sample_weight[{i}] is {weights[i]}, not a finite number from 0 on")
    if not weights.any():
        raise HopefearError("every sample weight is zero; there is nothing to learn from")
    examples = replace(examples, weights=weights)
    return examples if weights.all() else examples.take(np.flatnonzero(weights))


def read_allowed(allowed: Any, starts: np.ndarray, label_of: Mapping[Any, str]) -> list[Any]:
    """Names of the labels that tokens may have; None where any will do.

    Parameters
    ----------
    allowed : list of lists of sets of labels
        For every sequence, for every token; None instead of a set or a sequence permits all.
    starts : int64 array
        Where the sequences of X begin, and the number of tokens.
    label_of : mapping
        Label to name.

    Examples
    --------
    >>> read_allowed([[{"N"}, None], None], np.array([0, 2, 3]), {"N": "N", "V": "V"})
    [[['N'], None], [None]]
    """
    if not isinstance(allowed, Sequence | np.ndarray) or isinstance(allowed, str):
        raise HopefearError(f"allowed is a list with an entry a sequence, not {allowed!r:.60}")
    lengths = np.diff(starts).tolist()
    if len(allowed) != len(lengths):
        raise HopefearError(
            f"{len(lengths)} sequences of tokens, but {len(allowed)} of allowed labels"
        )
    full = [
        [None] * length if sequence is None else sequence
        for sequence, length in zip(allowed, lengths, strict=True)
    ]
    bounds, sets = flattened(full, "allowed labels")
    _check_lengths(bounds, starts, "allowed labels")
    names: list[Any] = []
    for k, labels in enumerate(sets):
        if labels is None:
            names.append(None)
            continue
        if isinstance(labels, str) or not isinstance(labels, Iterable):
            labels = [labels]
        # In the order of the labels, because that of a set changes from run to run.
        requested = set(labels)
        names.append([name for label, name in label_of.items() if label in requested])
        if not requested or len(names[-1]) < len(requested):
            unknown = sorted(map(repr, requested - label_of.keys()))
            raise HopefearError(
                f"{place(starts, k)}: allowed labels {', '.join(unknown) or '(none)'}, "
                f"but the labels are {', '.join(map(str, label_of))}"
            )
    return [names[a:b] for a, b in pairwise(starts)]


def _columns_of(tokens: list[Any]) -> tuple[str, ...]:
    """Names for tokens that are rows: tuples of equally many strings, the first of them a word."""
    if set(map(type, tokens)) != {tuple} or len(set(map(len, tokens))) != 1:
        return ()
    if not tokens[0] or any(
        isinstance(token[0], str) and "=" in token[0][1:] for token in tokens[:100]
    ):
        return ()  # attributes, as CRFsuite's users write them
    return default_names(len(tokens[0]) + 1)[:-1]


def _column_names(columns: str | Sequence[str], features: Any) -> tuple[str, ...]:
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    if features == ATTRIBUTES:
        raise HopefearError(
            "features='attributes' and columns exclude each other: attributes have no columns; "
            "leave out one of the two"
        )
    if not names or not all(isinstance(name, str) and name for name in names):
        raise HopefearError(f"columns are names, such as ('word', 'pos'), not {columns!r:.60}")
    if len(set(names)) < len(names):
        raise HopefearError(f"two of the columns {', '.join(names)} have one name; rename one")
    return names


def _text_column(texts: list[Any], field: str, starts: np.ndarray) -> Column:
    if not _all_are(set(map(type, texts)), str):
        k = next(k for k, text in enumerate(texts) if not isinstance(text, str))
        raise HopefearError(f"{place(starts, k)}: {field} holds strings, not {texts[k]!r:.60}")
    column = Column.of(texts)
    try:
        "".join(column.strings).encode()
    except UnicodeEncodeError:
        odd = [not _is_text(text) for text in column.strings]
        k = int(np.argmax(np.array(odd)[column.ids]))
        raise HopefearError(
            f"{place(starts, k)}: {field} holds {texts[k]!r:.60}, which is no Unicode text"
        ) from None
    return column


def _check_lengths(bounds: np.ndarray, starts: np.ndarray, field: str) -> None:
    if len(bounds) != len(starts):
        raise HopefearError(
            f"{len(starts) - 1} sequences of tokens, but {len(bounds) - 1} of {field}"
        )
    wrong = np.diff(bounds) != np.diff(starts)
    if wrong.any():
        i = int(np.argmax(wrong))
        tokens, n_values = int(np.diff(starts)[i]), int(np.diff(bounds)[i])
        raise HopefearError(f"sequence {i}: {tokens} tokens, but {n_values} {field}")


def _goes_with(label: Any, first: Any) -> bool:
    return isinstance(label, str) if isinstance(first, str) else _is_whole(type(label))


def _is_whole(kind: type) -> bool:
    return issubclass(kind, Integral) and not issubclass(kind, bool)


def _all_are(kinds: set[type], types: Any) -> bool:
    return all(issubclass(kind, types) for kind in kinds)


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
