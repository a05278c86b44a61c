"""``CRF`` with the parameters and attributes of sklearn-crfsuite."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple, Self

import numpy as np

from hopefear.crfsuite.features import GeneratedCRF, generated
from hopefear.data.token_examples import TokenExamples
from hopefear.data.token_input import TokenInput, read_labels, with_labels
from hopefear.errors import DataWarning, HopefearError
from hopefear.features.attributes import AttributeRows
from hopefear.structures.lattice import padded_width
from hopefear.tasks.base import objects
from hopefear.tasks.estimator import as_value_errors, given_together, say
from hopefear.tasks.tag.estimator import SequencePredictor
from hopefear.tasks.tag.model import encoded
from hopefear.tasks.tag.prepare import check_filled, check_known
from hopefear.tasks.tag.task import train


class CRF(SequencePredictor):
    """Labels for sequences of attributes, with the parameters of ``sklearn_crfsuite.CRF``.

    None is the default of the original.

    Parameters
    ----------
    algorithm : {"lbfgs", "l2sgd", "ap", "pa", "arow"}
        A CRF by L-BFGS (OWL-QN with ``c1``), a CRF by stochastic gradient, the averaged perceptron,
        1-best MIRA (the original's PA; without ``error_sensitive`` passive-aggressive with margin
        1), AROW.
    min_freq : float
        Leave out pairs of attribute and label whose values have a smaller sum, and pairs of labels
        that occur fewer times. Online learners leave out attributes that have no pair left.
    all_possible_states, all_possible_transitions : bool
        For ``"lbfgs"``: weights for pairs of attribute and label, or of labels, that the data lack
        too. Online learners give a weight to every pair that they need.
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
    model_filename : str
        File of the model: :meth:`fit` writes it, and an estimator that has not been fitted reads
        it. It is a model file of hopefear, not of CRFsuite.
    trainer_cls
        Refused: training is no object here.

    Attributes
    ----------
    classes_ : array
        The labels in order of first appearance. This and what follows ``history_`` is None before
        :meth:`fit`.
    history_ : list of dict
        The event of every iteration; scores of ``X_dev`` under ``dev``.
    tagger_ : FittedTagger
        The model with the methods of python-crfsuite's ``Tagger``.
    state_features_, transition_features_ : dict
        Weights other than zero: ``{(attribute, label): weight}``, ``{(from, to): weight}``.
    attributes_, num_attributes_, size_
        Attributes with such weights, their number, and the bytes of the model file.

    Examples
    --------
    >>> X = [[{"w": "the"}, {"w": "cat"}], [{"w": "a"}, {"w": "cat"}]]
    >>> crf = CRF(algorithm="ap", max_iterations=5).fit(X, [["D", "N"], ["D", "N"]])
    >>> crf.predict([[{"w": "a"}]]).tolist()
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
            if self.trainer_cls is not None:
                raise HopefearError("trainer_cls belongs to CRFsuite itself; leave it out")
            learner, params, epochs = choice(self.get_params())
            reader = TokenInput.of(X, None, "attributes")
            rows = AttributeRows.of(X, exact=True)
            content = rows.nonzero()
            tokens = TokenExamples(content)
            check_filled(tokens)
            gold, labels = read_labels(y, tokens.starts)
            counting: dict[str, Any] = {
                "min_freq": float(self.min_freq or 0.0),
                "possible_states": bool(self.all_possible_states),
                "possible_transitions": bool(self.all_possible_transitions),
            }
            features, mask = generated(rows, gold, **counting)
            data = encoded(tokens, features.encode(content), (), gold, features)
            dev = None
            if pair:
                held = with_labels(reader.read(X_dev), y_dev)
                attributes = features.encode(held.inputs)
                dev = encoded(held, attributes, data.labels, held.gold, features)
            fitting: Any = (learner, params)
            if learner == "crf-lbfgs":
                fitting = (GeneratedCRF(**params, **counting, marks=mask),)
            trained = train(
                data,
                *fitting,
                epochs=epochs,
                scheme=None,
                dev=dev,
                on_event=[say] if self.verbose else [],
            )
        metadata = {**trained.model.about, "learner": learner, "given": params}
        has_numbers = not isinstance(labels[0], str)
        self._settle(reader, has_numbers, replace(trained.model, about=metadata))
        self.history_ = trained.fit.history
        if self.model_filename is not None:
            self.save(self.model_filename)
        return self

    def predict(self, X: Any, **options: Any) -> OutputArray:  # type: ignore[override]
        """The best labels of every sequence; parameters as of :meth:`hopefear.Tagger.predict`."""
        return objects(super().predict(X, **options)).view(OutputArray)

    def predict_marginals(self, X: Any, **options: Any) -> OutputArray:  # type: ignore[override]
        """For every token a dict with the probability of each label."""
        return objects(super().predict_marginals(X, **options)).view(OutputArray)

    def __sklearn_is_fitted__(self) -> bool:
        path = self.model_filename
        if not hasattr(self, "_model") and path is not None and os.path.exists(path):
            with as_value_errors():
                loaded = type(self).load(path)
            has_numbers = not isinstance(loaded.classes_[0], str)
            self._settle(loaded._reader, has_numbers, loaded._model)
        return super().__sklearn_is_fitted__()

    @property
    def classes_(self) -> Any:
        """The labels in order of first appearance."""
        return self.__dict__["classes_"] if self.__sklearn_is_fitted__() else None

    @classes_.setter
    def classes_(self, labels: np.ndarray) -> None:
        self.__dict__["classes_"] = labels

    @property
    def tagger_(self) -> FittedTagger | None:
        """The model with the methods of python-crfsuite's ``Tagger``."""
        return FittedTagger(self) if self.__sklearn_is_fitted__() else None

    @property
    def state_features_(self) -> dict[tuple[str, Any], float] | None:
        """Weights of attributes with labels, without zeros."""
        if not self.__sklearn_is_fitted__():
            return None
        model, labels = self.model_, self.classes_.tolist()
        width = padded_width(len(labels))
        table = model.weights[: model.features.size * width].reshape(-1, width)[:, : len(labels)]
        names = {int(a): model.features.name(int(a)) for a in np.flatnonzero(table.any(axis=1))}
        return {
            (names[a], labels[c]): float(table[a, c])
            for a, c in zip(*(part.tolist() for part in np.nonzero(table)), strict=True)
        }

    @property
    def transition_features_(self) -> dict[tuple[Any, Any], float] | None:
        """Weights of label pairs, ``(from, to)``, without zeros."""
        if not self.__sklearn_is_fitted__():
            return None
        table, labels = self.model_.transitions(), self.classes_.tolist()
        return {
            (labels[a], labels[b]): float(table[a, b])
            for a, b in zip(*(part.tolist() for part in np.nonzero(table)), strict=True)
        }

    @property
    def attributes_(self) -> list[str] | None:
        """Attributes with a weight other than zero."""
        features = self.state_features_
        return None if features is None else list(dict.fromkeys(name for name, _ in features))

    @property
    def num_attributes_(self) -> int | None:
        """Number of attributes with a weight other than zero."""
        attributes = self.attributes_
        return None if attributes is None else len(attributes)

    @property
    def size_(self) -> int | None:
        """Bytes of the model file."""
        return len(self.to_bytes()) if self.__sklearn_is_fitted__() else None


class OutputArray(np.ndarray):
    """Array of lists, one a sequence, of any lengths; ``==`` compares their entries.

    So folds can be joined; the original gives a table where all sequences are equally long.
    """

    def __eq__(self, value: Any) -> Any:
        return _nested(self) == _nested(value)

    def __ne__(self, value: Any) -> Any:
        return _nested(self) != _nested(value)

    __hash__ = None


def _nested(outputs: Any) -> np.ndarray:
    listed = outputs.tolist() if isinstance(outputs, np.ndarray) else outputs
    return np.array(listed, dtype=object)


class FittedTagger:
    """A fitted :class:`CRF` with the methods of python-crfsuite's ``Tagger``."""

    def __init__(self, crf: CRF) -> None:
        self._crf = crf
        self.set([])

    def labels(self) -> list[Any]:
        """The labels in order of first appearance."""
        return list(self._crf.classes_)

    def set(self, xseq: Any) -> None:
        """Take the sequence that the other methods speak of."""
        self._sequence = xseq
        self._marginals: Any = None

    def tag(self, xseq: Any = None) -> list[Any]:
        """The best labels of a sequence, which is taken as by :meth:`set`."""
        if xseq is not None:
            self.set(xseq)
        return self._crf.predict_single(self._sequence)

    def marginal(self, y: Any, pos: int) -> float:
        """Probability of the label ``y`` at a position of the sequence."""
        if self._marginals is None:
            self._marginals = self._crf.predict_marginals_single(self._sequence)
        return float(self._marginals[pos][y])

    def probability(self, yseq: Sequence[Any]) -> float:
        """Probability of the labels ``yseq`` of the sequence."""
        with as_value_errors(), warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # unknown labels are refused below
            data, _ = self._crf._judged([self._sequence], [yseq])
            check_known(data, len(self.labels()))
        return float(np.exp(self._crf.model_.decoder().log_likelihoods(data.rows)[0]))

    def info(self) -> SimpleNamespace:
        """``labels`` and ``attributes`` with numbers, ``state_features`` and ``transitions``."""
        crf = self._crf
        return SimpleNamespace(
            header={"size": str(crf.size_), "num_attrs": str(crf.num_attributes_)},
            labels={label: str(i) for i, label in enumerate(self.labels())},
            attributes={name: str(i) for i, name in enumerate(crf.attributes_ or ())},
            transitions=crf.transition_features_,
            state_features=crf.state_features_,
        )


class CRFChoice(NamedTuple):
    """A learner, its parameters and the passes it makes."""

    learner: str
    params: dict[str, Any]
    epochs: int


# Steps of a search whose end the data decide.
_NO_LIMIT = 1_000_000
# Passes where none are asked for. After 50 passes a rate that loses a tenth in each has come to
# half a percent of its start, so the 1000 of the original would change nothing.
_PASSES = {"l2sgd": 50, "ap": 100, "pa": 100, "arow": 100}


def choice(settings: Mapping[str, Any]) -> CRFChoice:
    """The learner for some parameters of ``CRF``; None means the default.

    Examples
    --------
    >>> choice({"algorithm": "pa", "c": 0.5, "max_iterations": 10})
    CRFChoice(learner='mira', params={'C': 0.5, 'variant': 1, 'averaging': 'averaged'}, epochs=10)
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
        }
        return CRFChoice("crf-lbfgs", params, passes)
    if algorithm == "l2sgd":
        return CRFChoice("crf", {"lam": value("c2", 1.0)}, passes)
    if algorithm == "ap":
        return CRFChoice("perceptron", {}, passes)
    if algorithm == "pa":
        params = {
            "C": value("c", 1.0),
            "variant": value("pa_type", 1),
            "averaging": "averaged" if value("averaging", True) else "last",
        }
        return CRFChoice("mira" if value("error_sensitive", True) else "pa", params, passes)
    if algorithm == "arow":
        if value("variance", 1.0) != 1.0:
            raise HopefearError(
                f"arow starts with the variance 1, not {settings['variance']}; scale gamma instead"
            )
        return CRFChoice("arow", {"r": value("gamma", 1.0)}, passes)
    raise HopefearError(f"algorithm is one of lbfgs, {', '.join(_PASSES)}, not {algorithm!r}")
