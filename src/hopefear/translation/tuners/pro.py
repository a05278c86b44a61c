"""Pairwise ranking optimisation (Hopkins and May, 2011): tuning as classification of pairs."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

import numpy as np

from hopefear import __version__
from hopefear.core.learner import Learner, parameters_by_part
from hopefear.errors import CombinationError, HopefearError
from hopefear.readouts.voted import Voted
from hopefear.structures.classes import Binary
from hopefear.training.fit import fit
from hopefear.training.lbfgs import minimise, norm
from hopefear.training.passes import Passes
from hopefear.training.stopping import Stopping
from hopefear.translation.tuners.corpus_costs import corpus_costs
from hopefear.translation.tuners.pro_pairs import LogLoss, Pairs, differences, draw_pairs, mirrored
from hopefear.translation.tuners.problem import Listener, Tuned, TuningProblem, tell
from hopefear.translation.tuners.weight_search import WeightSearch
from hopefear.translation.tuners.whole_lists import WholeListsTuner, listed


@dataclass(frozen=True)
class PairLogistic:
    """Logistic regression on pairs, by L-BFGS or OWL-QN.

    ``min_w  2 * sum_p log(1 + exp(-w.d_p)) + l2 * sum_j w_j**2 + l1 * sum_j |w_j|``

    Parameters
    ----------
    l2 : float
        Larger means smaller weights. The default is ``C=1`` of LIBLINEAR and scikit-learn, right
        for a few dense features; thousands of sparse ones need much more, or ``l1``.
    l1 : float
        Above 0, weights that do not pay become exactly 0.
    max_iter : int
        Iterations at most.
    tolerance : float
        Stop when ten iterations gain less than this share of the objective.

    Examples
    --------
    >>> PairLogistic(l1=1.0).signature()
    'pair-logistic(l2=0.5,l1=1,max_iter=200,tolerance=1e-05)'
    """

    l2: float = 0.5
    l1: float = 0.0
    max_iter: int = 200
    tolerance: float = 1e-5

    def __post_init__(self) -> None:
        for name in ("l1", "l2", "tolerance"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise CombinationError(
                    f"PairLogistic: {name} must be finite and not negative, but is "
                    f"{getattr(self, name)!r}"
                )
        if self.max_iter < 1:
            raise CombinationError(f"PairLogistic: max_iter must be 1 or more, not {self.max_iter}")

    def weights(self, pairs: Pairs, n_features: int) -> np.ndarray:
        """The weights that rank these pairs best."""
        return minimise(
            LogLoss(pairs, n_features, self.l2),
            np.zeros(n_features),
            l1=self.l1,
            max_iter=self.max_iter,
            tolerance=self.tolerance,
        ).w

    def parameters(self) -> dict[str, Any]:
        """All parameters, as JSON has them."""
        return asdict(self)

    def signature(self) -> str:
        """One line that says exactly what this classifier is."""
        return f"pair-logistic({listed(asdict(self))})"


@dataclass(frozen=True)
class Pro(WholeListsTuner):
    """Pairs of candidates that differ much, told apart by a binary classifier.

    ``w = interpolate * w_new + (1 - interpolate) * w_old``

    Parameters
    ----------
    samples : int
        Pairs drawn from each list, Γ. More draws find pairs that differ more.
    pairs : int
        Of these the most different that are kept, Ξ. Fewer look at the extremes only.
    threshold : float
        Pairs whose costs differ by this or less are dropped.
    corpus : float
        Share of the corpus in costs: see ``corpus_costs``. 0 is the paper's,
        sentence BLEU; larger keeps lengths right.
    classifier : PairLogistic or Learner
        Logistic regression in batch, or any online learner of the core but those that vote.
    epochs : int
        Passes of an online learner over the pairs.
    interpolate : float
        Share of the new weights, Ψ. The paper takes 0.1 from one decoding to the next; lists that
        do not change need no such brake, so all of them are taken here.
    line_search : bool
        Choose that share instead by what scores best on the lists.
    rounds : int
        Times that pairs are drawn anew and learned, each starting where the one before ended. The
        best round counts, on held-out lists where there are any.

    Notes
    -----
    Pairs are drawn with replacement and may come twice, as in Moses; the paper leaves it open. An
    online learner sees differences divided by their root mean square length, so that its rate
    means the same whatever the features are measured in; its weights are given back in the
    features' own unit. Logistic regression needs only one of a difference and its mirror image,
    and counts it twice.

    How long the classifier's weights are is a matter of its ``l2``, and says nothing about the
    share they should have: they are made as long as the old ones first. Not so where candidates
    have fixed scores besides, against which the length counts; and where the old weights are all
    0, the new ones stand alone.

    The default of ``corpus`` had the best score among 0, 0.25, 0.5, 0.75 and 1 on the tuning lists
    this library was developed with.

    Examples
    --------
    >>> Pro(pairs=100).signature()[:77]
    'tuner:pro(samples=5000,pairs=100,threshold=0.05,corpus=0.75,epochs=5,interpol'
    """

    name: ClassVar[str] = "pro"

    samples: int = 5000
    pairs: int = 50
    threshold: float = 0.05
    corpus: float = 0.75
    classifier: Any = PairLogistic()
    epochs: int = 5
    interpolate: float = 1.0
    line_search: bool = False
    rounds: int = 1

    def __post_init__(self) -> None:
        for name in ("samples", "pairs", "epochs", "rounds"):
            if getattr(self, name) < 1:
                raise HopefearError(f"Pro: {name} must be 1 or more, not {getattr(self, name)}")
        if not 0.0 <= self.threshold < math.inf:
            raise HopefearError(f"Pro: threshold must not be negative, but is {self.threshold:g}")
        for name in ("corpus", "interpolate"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise HopefearError(
                    f"Pro: {name} is a share from 0 to 1, not {getattr(self, name)}"
                )
        if self.line_search and self.interpolate != 1.0:
            raise CombinationError(
                "Pro: line_search finds how far to go from old to new weights, and interpolate "
                f"says so ({self.interpolate:g}); use one of them"
            )
        if isinstance(self.classifier, Learner) and isinstance(self.classifier.readout, Voted):
            raise CombinationError(
                "Pro and Voted: a decoder reads one weight for each feature, and votes are many; "
                "use readout=averaged"
            )

    def tune(
        self, problem: TuningProblem, *, seed: int = 1, on_event: Sequence[Listener] = ()
    ) -> Tuned:
        """Weights that rank pairs drawn from the lists."""
        data = problem.data.replaced(costs=corpus_costs(problem, self.corpus))
        weights = best = np.asarray(problem.start, np.float64)
        stopping, history = Stopping(problem.metric.main, 0), []
        for turn in range(self.rounds):
            began = time.perf_counter()
            drawn = draw_pairs(data, self.samples, self.pairs, self.threshold, seed, turn)
            if not len(drawn):
                raise HopefearError(self._nothing(problem))
            found = differences(data, drawn)
            weights = self._mixed(problem, weights, self._learned(found, len(weights), seed))
            event = {
                "epoch": turn + 1,
                "of": self.rounds,
                "pairs": len(drawn),
                **problem.report(weights),
                "nnz": int(np.count_nonzero(weights)),
                "seconds": round(time.perf_counter() - began, 6),
            }
            history.append(event)
            tell(on_event, event)
            if stopping.see(turn + 1, event.get("dev", event["train"])):
                best = weights
        return Tuned(best, history, best_epoch=stopping.best_epoch)

    def parameters(self) -> dict[str, Any]:
        """All parameters, as JSON has them."""
        known = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**known, "classifier": _parts(self.classifier)}

    def signature(self, **more: Any) -> str:
        """One line that says exactly what this tuner is."""
        shown = self.classifier.signature().removesuffix(f"|v:{__version__}")
        return super().signature(classifier=shown, **more)

    def _learned(self, pairs: Pairs, n_features: int, seed: int) -> np.ndarray:
        if not isinstance(self.classifier, Learner):
            return self.classifier.weights(pairs, n_features)
        if pairs.offsets.any():
            raise CombinationError(
                "Pro and online learners: candidates with fixed scores need a classifier that "
                "knows them; use PairLogistic"
            )
        scale = 1.0 / math.sqrt(pairs.square() or 1.0)
        examples = mirrored(pairs, n_features, scale)
        found = fit(Binary(n_features), self.classifier, Passes(examples, seed), epochs=self.epochs)
        return scale * np.asarray(found.predictor.weights, np.float64)  # type: ignore[union-attr]

    def _mixed(self, problem: TuningProblem, old: np.ndarray, new: np.ndarray) -> np.ndarray:
        if not problem.data.rows.offsets.any():
            if not old.any():
                return new
            new = new * (norm(old) / (norm(new) or 1.0))
        if not self.line_search:
            return self.interpolate * new + (1.0 - self.interpolate) * old
        step = WeightSearch(problem).best(new, old - new, low=0.0, high=1.0)
        return new + step.t * (old - new)

    def _nothing(self, problem: TuningProblem) -> str:
        rows = problem.data.rows
        if not len(rows.costs) or int(np.diff(rows.starts).max()) < 2:
            return f"Pro and {problem.data.source}: no list has two candidates to compare"
        return (
            f"Pro and {problem.data.source}: no two candidates of a list were found whose costs "
            f"differ by more than {self.threshold:g}; lower the threshold, or draw more samples "
            f"than {self.samples}"
        )


def _parts(classifier: Any) -> dict[str, Any]:
    if isinstance(classifier, Learner):
        return parameters_by_part(classifier)
    return classifier.parameters()
