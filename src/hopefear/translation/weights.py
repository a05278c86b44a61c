"""Weights that a tuner finds and a decoder reads."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hopefear.core.arrays import frozen
from hopefear.data.lists.candidates import Layout, dense_names
from hopefear.errors import HopefearError
from hopefear.translation.formats import read_parts, write_parts
from hopefear.translation.names import WeightParts, check_parts, check_same, plain, slices_by_name

if TYPE_CHECKING:
    from hopefear.translation.features import TuningFeatures

Path = str | os.PathLike[str]


@dataclass(frozen=True, eq=False)
class Weights:
    """Numbers by name: dense features, sparse features, phrase pairs.

    ``score(candidate) = dense · weights + Σ sparse + Σ phrases``

    Parameters
    ----------
    layout : tuple of (str, int)
        Names of the dense features and how many numbers each has.
    dense : float64 array
        Their weights, one after the other.
    sparse : mapping of str to float
        Weights of the others, named as N-best lists name them. One that is absent is 0.
    phrases : mapping of str to float
        Weights of phrase pairs, ``source words ||| target words``.
    about : mapping
        Where the weights came from: learner, parameters, signature, metric, scores; whatever JSON
        holds.
    source : str
        The file that they were read from, for messages.

    Examples
    --------
    >>> weights = Weights((("LM0", 1), ("TM0", 2)), [0.5, 0.25, -0.25], {"wt_a~b": 0.1})
    >>> weights.names, weights.nnz
    (('LM0', 'TM0.0', 'TM0.1'), 4)
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "weights.txt")
    ...     weights.write(path)
    ...     print(path.read_text(), end="")
    ...     Weights.read(path) == weights
    LM0= 0.5
    TM0= 0.25 -0.25
    wt_a~b= 0.1
    True
    """

    layout: Layout
    dense: np.ndarray
    sparse: Mapping[str, float] = field(default_factory=dict)
    phrases: Mapping[str, float] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    source: str = field(default="the weights", repr=False)

    def __post_init__(self) -> None:
        layout = tuple((str(name), int(width)) for name, width in self.layout)
        dense = np.array(self.dense, np.float64, ndmin=1)
        sparse = {name: float(value) for name, value in self.sparse.items()}
        phrases = {pair: float(value) for pair, value in self.phrases.items()}
        check_parts(WeightParts(layout, dense.tolist(), sparse, phrases, {}))
        metadata = plain(self.about)
        for name, value in zip(
            ("layout", "dense", "sparse", "phrases", "about"),
            (layout, frozen(dense), sparse, phrases, metadata),
            strict=True,
        ):
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Weights) and self._parts() == other._parts()

    @classmethod
    def of(
        cls, features: TuningFeatures, values: np.ndarray, metadata: Mapping[str, Any] | None = None
    ) -> Weights:
        """The weights of numbered features, as a tuner finds them; zeros need no name.

        Parameters
        ----------
        features : TuningFeatures
            Features of the numbers.
        values : float array
            A weight for every feature.
        metadata : mapping, optional
            Where they came from.
        """
        if len(values) != features.size:
            raise HopefearError(
                f"weights: {len(values)} numbers for {features.size} features; give one for each"
            )
        values = np.asarray(values, np.float64)
        first = features.n_dense
        middle = first + features.sparse.size
        numbers = (first + np.flatnonzero(values[first:])).tolist()
        pairs = [(features.name(j), values[j]) for j in numbers]
        n = int(np.count_nonzero(values[first:middle]))
        return cls(
            features.layout, values[:first], dict(pairs[:n]), dict(pairs[n:]), metadata or {}
        )

    @classmethod
    def read(cls, path: Path, allow_outside: bool = False) -> Weights:
        """Reads weights in any format, recognised by its content.

        Parameters
        ----------
        path : str or path
            Plain or compressed file of text, JSON or a ``moses.ini``; ``-`` is standard input.
        allow_outside : bool
            Also read a file of sparse weights that a ``moses.ini`` names outside of its folder.
            A file from others could name any file there is.
        """
        parts = read_parts(path, allow_outside)
        name = "standard input" if path == "-" else os.fspath(path)
        return cls(
            parts.layout, np.array(parts.dense), parts.sparse, parts.phrases, parts.about, name
        )

    def write(self, path: Path, format: str | None = None) -> None:
        """Write a file that is whole or not there; equal weights give equal bytes.

        Numbers have all their digits, so that reading gives the same weights again.

        Parameters
        ----------
        path : str or path
            Replaced when all is written, and packed if it ends in ``.gz``, ``.xz`` or ``.bz2``;
            ``-`` is standard output.
        format : {"text", "moses", "json"}, optional
            ``moses`` writes a ``[weight]`` section, and sparse weights and phrase pairs to the
            file ``PATH.sparse`` that it names. Without it the suffix decides: ``.ini`` is
            ``moses``, ``.json`` JSON, any other text.
        """
        write_parts(self._parts(), path, format)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the dense features: ``LM0``, or ``TM0.0``, ``TM0.1`` … where it has several."""
        return dense_names(self.layout)

    @property
    def nnz(self) -> int:
        """Returns the number of weights that are not zero."""
        values = (*self.sparse.values(), *self.phrases.values())
        return int(np.count_nonzero(self.dense) + np.count_nonzero(values))

    def on(self, features: TuningFeatures) -> np.ndarray:
        """A number for each of these features: its weight, 0 where it has none."""
        if features.layout:
            self.matches(features.layout)
        names, pairs = features.sparse, features.phrases
        return np.concatenate(
            [
                self.dense if features.layout else [],
                [self.sparse.get(names.get(j), 0.0) for j in range(names.size)],
                [self.phrases.get(pairs.get(j), 0.0) for j in range(pairs.size)],
            ]
        )

    def matches(self, layout: Layout, source: str = "the lists") -> None:
        """HopefearError, naming the first that differs, unless the dense features are these.

        Parameters
        ----------
        layout : tuple of (str, int)
            Names in order and how many numbers each has.
        source : str
            Who has that layout, for the message.
        """
        check_same(self.layout, layout, self.source, source)

    def arranged(
        self,
        layout: Layout,
        source: str = "the lists",
        drop: Collection[str] = ("UnknownWordPenalty0",),
    ) -> Weights:
        """The same weights in the order of these dense features.

        Parameters
        ----------
        layout : tuple of (str, int)
            Names in order and how many numbers each has.
        source : str
            Who has that layout, for the message.
        drop : collection of str
            Dense features that may be left out. Moses has one in every ``moses.ini`` that it
            never puts on lists.
        """
        values = {name: self.dense[where] for name, where in slices_by_name(self.layout).items()}
        order = [name for name, _ in layout]
        names = [name for name in order if name in values]
        names += [name for name in values if name not in order and name not in drop]
        arranged = replace(
            self,
            layout=tuple((name, len(values[name])) for name in names),
            dense=np.concatenate([np.zeros(0), *(values[name] for name in names)]),
        )
        arranged.matches(layout, source)
        return arranged

    def scaled(self, factor: float) -> Weights:
        """All weights times a positive number, which changes no choice."""
        if not (math.isfinite(factor) and factor > 0.0):
            raise HopefearError(f"weights are scaled by a positive number, not {factor}")
        return replace(
            self,
            dense=self.dense * factor,
            sparse={name: value * factor for name, value in self.sparse.items()},
            phrases={pair: value * factor for pair, value in self.phrases.items()},
        )

    def normalized(self) -> Weights:
        """Scaled so that the sizes of the dense weights sum to 1, as decoders like them."""
        total = float(np.abs(self.dense).sum())
        if not total > 0.0:
            raise HopefearError("weights that are all 0 cannot be normalized; tune them first")
        return self.scaled(1.0 / total)

    def _parts(self) -> WeightParts:
        return WeightParts(
            self.layout,
            self.dense.tolist(),
            dict(self.sparse),
            dict(self.phrases),
            dict(self.about),
        )


def changes(before: Weights, after: Weights) -> list[tuple[str, float, float]]:
    """``(name, before, after)`` of features, those that changed most first.

    All dense features are there; others only if they changed. What one side lacks is 0 there.

    Examples
    --------
    >>> layout = (("LM0", 1), ("TM0", 2))
    >>> changes(Weights(layout, [0.5, 0.2, 0.2]), Weights(layout, [0.4, 0.2, 0.6]))
    [('TM0.1', 0.2, 0.6), ('LM0', 0.5, 0.4), ('TM0.0', 0.2, 0.2)]
    """
    pairs = []
    for group in ("dense", "sparse", "phrases"):
        old, new = (_by_name(weights, group) for weights in (before, after))
        for name in dict.fromkeys((*old, *new)):
            pair = old.get(name, 0.0), new.get(name, 0.0)
            if group == "dense" or pair[0] != pair[1]:
                pairs.append((name, *pair))
    return sorted(pairs, key=lambda change: -abs(change[2] - change[1]))


def _by_name(weights: Weights, group: str) -> Mapping[str, float]:
    if group == "dense":
        return dict(zip(weights.names, weights.dense.tolist(), strict=True))
    return weights.sparse if group == "sparse" else weights.phrases
