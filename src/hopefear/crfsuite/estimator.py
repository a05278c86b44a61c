"""``CRF`` with the parameters and attributes of sklearn-crfsuite."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from hopefear.errors import HopefearError
from hopefear.structures.lattice import padded_width
from hopefear.tasks.estimator import as_value_errors, given_together, say
from hopefear.tasks.tag.estimator import SequencePredictor
from hopefear.tasks.tag.input import labelled, prepared
from hopefear.tasks.tag.task import train


class CRF(SequencePredictor):
    """Labels for sequences of attributes, with the parameters of ``sklearn_crfsuite.CRF``.

    None stands for the default of the original.

    Parameters
    ----------
    algorithm : {"lbfgs", "l2sgd", "ap", "pa", "arow"}
        A CRF by L-BFGS (OWL-QN with ``c1``), a CRF by stochastic gradient, the averaged perceptron,
        1-best MIRA (the original's PA; without ``error_sensitive`` passive-aggressive with margin
        1), AROW.
    min_freq : float
        Leave out attributes seen fewer times; the original counts attributes with their labels.
    all_possible_states, all_possible_transitions : bool
        For ``"lbfgs"``: weights for pairs that the data lack too. Here either means both. Online
        learners give a weight to every pair that they need.
    c1, c2 : float
        Strength of L1 (``"lbfgs"``) and L2 (``"lbfgs"``, ``"l2sgd"``): larger makes fewer, and
        smaller, weights.
    max_iterations : int
        Iterations or passes at most: without limit for ``"lbfgs"``, 50 for ``"l2sgd"``, else 100.
    num_memories, period, delta
        For ``"lbfgs"``: steps it remembers; it ends when ``period`` iterations made the objective
        smaller by less than the share ``delta``.
    pa_type, c, error_sensitive, averaging
        For ``"pa"``: variant, aggressiveness, margins that grow with the square root of the number
        of wrong labels, and whether weights are averaged.
    gamma : float
        For ``"arow"``: larger makes smaller steps.
    verbose : bool
        A line on the standard error stream after each iteration.
    epsilon, linesearch, max_linesearch, variance, keep_tempfiles
        Accepted. Line searches and their ends are this library's own, the variance must be 1, and
        there are no temporary files.
    calibration_eta, calibration_rate, calibration_samples, calibration_candidates, \
calibration_max_trials
        Accepted. The rate is fixed, so nothing is calibrated.
    model_filename, trainer_cls
        Refused: models of CRFsuite cannot be read, and training is no object here.

    Attributes
    ----------
    classes_ : array
        The labels in order of first appearance.
    history_ : list of dict
        The event of every iteration; scores of ``X_dev`` under ``dev``.
    state_features_, transition_features_ : dict
        Weights other than zero: ``{(attribute, label): weight}``, ``{(from, to): weight}``.
    attributes_, num_attributes_, size_
        Attributes with such weights, their number, and the bytes of the model file.

    Examples
    --------
    >>> X = [[{"w": "the"}, {"w": "cat"}], [{"w": "a"}, {"w": "cat"}]]
    >>> crf = CRF(algorithm="ap", max_iterations=5).fit(X, [["D", "N"], ["D", "N"]])
    >>> crf.predict([[{"w": "a"}]])
    [['D']]
    """

    def __init__(
        self,
        algorithm: str | None = None,
        min_freq: float | None = None,
        all_possible_states: bool | None = None,
        all_possible_transitions: bool | None = None,
        c1: float | None = None,
        c2: float | None = None,
        max_iterations: int | None = None,
        num_memories: int | None = None,
        epsilon: float | None = None,
        period: int | None = None,
        delta: float | None = None,
        linesearch: str | None = None,
        max_linesearch: int | None = None,
        calibration_eta: float | None = None,
        calibration_rate: float | None = None,
        calibration_samples: int | None = None,
        calibration_candidates: int | None = None,
        calibration_max_trials: int | None = None,
        pa_type: int | None = None,
        c: float | None = None,
        error_sensitive: bool | None = None,
        averaging: bool | None = None,
        variance: float | None = None,
        gamma: float | None = None,
        verbose: bool = False,
        model_filename: str | None = None,
        keep_tempfiles: bool = False,
        trainer_cls: Any = None,
    ) -> None:
        self._keep(locals())

    def fit(self, X: Any, y: Any, X_dev: Any = None, y_dev: Any = None) -> Self:
        """Learn from all sequences.

        Parameters
        ----------
        X : list of lists of dicts or of lists of strings
            Attributes of every token.
        y : list of lists of labels
            A label for each token.
        X_dev, y_dev : like X and y, optional
            Scored after each iteration, for ``history_``; :class:`hopefear.Tagger` stops on them.
        """
        with as_value_errors():
            pair = given_together(X_dev=X_dev, y_dev=y_dev)
            for name in ("model_filename", "trainer_cls"):
                if getattr(self, name) is not None:
                    raise HopefearError(f"{name} belongs to CRFsuite itself; leave it out")
            learner, params, epochs = choice(self.get_params())
            ready = prepared(
                X, y, features="attributes", scheme=None, min_count=min_count(self.min_freq)
            )
            dev = None
            if pair:
                tokens = ready.reader.read(X_dev)
                dev = labelled(tokens, y_dev, ready.data.features, ready.data.labels)
            trained = train(
                ready.data,
                learner,
                params,
                epochs=epochs,
                scheme=None,
                dev=dev,
                on_event=[say] if self.verbose else [],
            )
        self._settle(ready.reader, ready.labels, None, trained.model)
        self.history_ = trained.fit.history
        return self

    @property
    def state_features_(self) -> dict[tuple[str, Any], float]:
        """Weights of attributes with labels, without zeros."""
        model, table = self.model_, self._table()
        labels = self.classes_.tolist()
        names = {int(a): model.features.name(int(a)) for a in np.flatnonzero(table.any(axis=1))}
        return {
            (names[a], labels[c]): float(table[a, c])
            for a, c in zip(*(part.tolist() for part in np.nonzero(table)), strict=True)
        }

    @property
    def transition_features_(self) -> dict[tuple[Any, Any], float]:
        """Weights of label pairs, ``(from, to)``, without zeros."""
        table, labels = self.model_.transitions(), self.classes_.tolist()
        return {
            (labels[a], labels[b]): float(table[a, b])
            for a, b in zip(*(part.tolist() for part in np.nonzero(table)), strict=True)
        }

    @property
    def attributes_(self) -> list[str]:
        """Attributes with a weight other than zero."""
        features, columns = self.model_.features, np.flatnonzero(self._table().any(axis=1))
        return [features.name(int(a)) for a in columns]

    @property
    def num_attributes_(self) -> int:
        """Number of attributes with a weight other than zero."""
        return int(self._table().any(axis=1).sum())

    @property
    def size_(self) -> int:
        """Bytes of the model file."""
        return len(self.to_bytes())

    def _table(self) -> np.ndarray:
        """Weights of attributes, a column a label."""
        model = self.model_
        n, width = len(model.labels), padded_width(len(model.labels))
        weights = model.weights[: model.features.size * width]
        return weights.reshape(-1, width)[:, :n]


class Choice(NamedTuple):
    """A learner, its parameters and the passes it makes."""

    learner: str
    params: dict[str, Any]
    epochs: int


# Steps of a search whose end the data decide.
_NO_LIMIT = 1_000_000
# Passes where none are asked for. After 50 passes a rate that loses a tenth in each has come to
# half a percent of its start, so the 1000 of the original would change nothing.
_PASSES = {"l2sgd": 50, "ap": 100, "pa": 100, "arow": 100}


def choice(settings: Mapping[str, Any]) -> Choice:
    """The learner for some parameters of ``CRF``; None means the default.

    Examples
    --------
    >>> choice({"algorithm": "pa", "c": 0.5, "max_iterations": 10})
    Choice(learner='mira', params={'C': 0.5, 'variant': 1, 'readout': 'averaged'}, epochs=10)
    """

    def value(name: str, default: Any) -> Any:
        return default if settings.get(name) is None else settings[name]

    algorithm = value("algorithm", "lbfgs")
    passes = value("max_iterations", _PASSES.get(algorithm, _NO_LIMIT))
    if algorithm == "lbfgs":
        params = {
            "l1": value("c1", 0.0),
            "l2": value("c2", 1.0),
            "memory": value("num_memories", 6),
            "tolerance": value("delta", 1e-5),
            "period": value("period", 10),
            "observed": not (
                value("all_possible_states", False) or value("all_possible_transitions", False)
            ),
        }
        return Choice("crf-lbfgs", params, passes)
    if algorithm == "l2sgd":
        return Choice("crf", {"lam": value("c2", 1.0)}, passes)
    if algorithm == "ap":
        return Choice("perceptron", {}, passes)
    if algorithm == "pa":
        params = {
            "C": value("c", 1.0),
            "variant": value("pa_type", 1),
            "readout": "averaged" if value("averaging", True) else "last",
        }
        return Choice("mira" if value("error_sensitive", True) else "pa", params, passes)
    if algorithm == "arow":
        if value("variance", 1.0) != 1.0:
            raise HopefearError(
                f"arow starts with the variance 1, not {settings['variance']}; scale gamma instead"
            )
        return Choice("arow", {"r": value("gamma", 1.0)}, passes)
    raise HopefearError(f"algorithm is one of lbfgs, {', '.join(_PASSES)}, not {algorithm!r}")


def min_count(min_freq: float | None) -> int:
    """Times an attribute must be seen.

    >>> min_count(None), min_count(2), min_count(2.5)
    (1, 2, 3)
    """
    return max(1, math.ceil(min_freq or 0))
