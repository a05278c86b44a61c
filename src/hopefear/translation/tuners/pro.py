"""Pairwise ranking optimisation (Hopkins and May, 2011): tuning as classification of pairs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hopefear import __version__
from hopefear.averaging.voted import Voted
from hopefear.core.checks import check_parameters
from hopefear.core.component import helper, kernel
from hopefear.core.learner import Learner, parameters_by_part
from hopefear.data.lists.dataset import ListDataset
from hopefear.data.sparse import SparseDataset, SparseRows
from hopefear.errors import CombinationError, HopefearError
from hopefear.structures.classes import Binary
from hopefear.training.lbfgs import minimise, norm
from hopefear.training.loop import fit
from hopefear.training.passes import Passes, mixed
from hopefear.translation.tuners.corpus import corpus_costs
from hopefear.translation.tuners.envelope import WeightSearch
from hopefear.translation.tuners.problem import Round, RoundsTuner, TuningProblem, listed


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
        check_parameters(self, at_least={"l1": 0, "l2": 0, "tolerance": 0, "max_iter": 1})

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
        """Returns one line that identifies this classifier exactly."""
        return f"pair-logistic({listed(asdict(self))})"


@dataclass(frozen=True)
class Pro(RoundsTuner):
    """Ranking by a binary classifier of pairs of candidates that differ much.

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
    rounds_parameter: ClassVar[str] = "rounds"

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
        counts = dict.fromkeys(("samples", "pairs", "epochs", "rounds"), 1)
        check_parameters(
            self, at_least={**counts, "threshold": 0}, shares=("corpus", "interpolate")
        )
        if self.line_search and self.interpolate != 1.0:
            raise CombinationError(
                "Pro: line_search finds how far to go from old to new weights, and interpolate "
                f"says so ({self.interpolate:g}); use one of them"
            )
        if isinstance(self.classifier, Learner) and isinstance(self.classifier.averaging, Voted):
            raise CombinationError(
                "Pro and Voted: a decoder reads one weight for each feature, and votes are many; "
                "use averaging=averaged"
            )

    def each_round(self, problem: TuningProblem, seed: int) -> Iterator[Round]:
        """Weights that rank pairs drawn from the lists."""
        data = problem.data.replaced(costs=corpus_costs(problem, self.corpus))
        weights = np.asarray(problem.start, np.float64)
        for turn in range(self.rounds):
            pairs = draw_pairs(data, self.samples, self.pairs, self.threshold, seed, turn)
            if not len(pairs):
                raise HopefearError(self._why_no_pairs(problem))
            new = self._learned(differences(data, pairs), len(weights), seed)
            weights = self._mixed(problem, weights, new)
            yield Round(weights, {"pairs": len(pairs)})

    def parameters(self) -> dict[str, Any]:
        """All parameters, as JSON has them."""
        return super().parameters() | {"classifier": _parts(self.classifier)}

    def signature(self, **fields: Any) -> str:
        """Returns one line that identifies this tuner exactly."""
        classifier = self.classifier.signature().removesuffix(f"|v:{__version__}")
        return super().signature(classifier=classifier, **fields)

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
        result = fit(
            Binary(n_features), self.classifier, Passes(examples, seed), epochs=self.epochs
        )
        return scale * np.asarray(result.predictor.weights, np.float64)  # type: ignore[union-attr]

    def _mixed(self, problem: TuningProblem, old: np.ndarray, new: np.ndarray) -> np.ndarray:
        if not problem.data.rows.offsets.any():
            if not old.any():
                return new
            new = new * (norm(old) / (norm(new) or 1.0))
        if not self.line_search:
            return self.interpolate * new + (1.0 - self.interpolate) * old
        step = WeightSearch(problem).best(new, old - new, low=0.0, high=1.0)
        return new + step.t * (old - new)

    def _why_no_pairs(self, problem: TuningProblem) -> str:
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


class Pairs(NamedTuple):
    """Differences ``f(better) - f(worse)`` of pairs, list after list; arrays of kernels."""

    indptr: np.ndarray  # int64[pairs + 1]
    indices: np.ndarray  # int32[nnz], rising in a pair
    values: np.ndarray  # float32[nnz]
    offsets: np.ndarray  # float64[pairs]: what fixed scores differ by
    weights: np.ndarray  # float32[pairs]: of the lists

    def square(self) -> float:
        """Mean squared length of a difference."""
        return float(np.square(self.values, dtype=np.float64).sum()) / max(1, len(self.weights))


def draw_pairs(
    data: ListDataset, samples: int, keep: int, threshold: float, seed: int, turn: int = 0
) -> np.ndarray:
    """``(better, worse)`` candidates (int64[pairs, 2]) as Hopkins and May (2011) choose them.

    Of ``samples`` pairs of a list, drawn at random, those whose costs differ by more than
    ``threshold``; of these the ``keep`` that differ most, and of equals those drawn first.

    Parameters
    ----------
    seed, turn : int
        Fix what is drawn, for each list on its own: lists before it do not matter, but its number.

    Examples
    --------
    >>> from hopefear.data.lists.dataset import ListRows
    >>> rows = ListRows([0, 2], [0, 1], [7], [0, 0, 1], [0], [1.0], [0, 0], [0.5, 0], [1], [1])
    >>> draw_pairs(ListDataset(rows), samples=20, keep=1, threshold=0.1, seed=1).tolist()
    [[1, 0]]
    """
    rows = data.rows
    n, keep = len(data), min(keep, samples)
    pairs, counts = np.zeros((n * keep, 2), np.int64), np.zeros(n, np.int64)
    _draw(rows.starts, rows.costs, rows.weights, samples, threshold, seed, turn, pairs, counts)
    rank = np.arange(n * keep) % keep
    return pairs[rank < np.repeat(counts, keep)]


def differences(data: ListDataset, pairs: np.ndarray) -> Pairs:
    """The differences of features of these pairs, both of one list each, lists rising."""
    rows = data.rows
    owners = np.searchsorted(rows.starts, pairs[:, 0], side="right") - 1
    sizes = np.diff(rows.indptr)[pairs].sum(axis=1) if len(pairs) else np.zeros(0, np.int64)
    room = np.concatenate([[0], np.cumsum(np.minimum(sizes, np.diff(rows.scopes)[owners]))])
    out = Pairs(
        np.zeros(len(pairs) + 1, np.int64),
        np.zeros(int(room[-1]), np.int32),
        np.zeros(int(room[-1]), np.float32),
        np.subtract(*rows.offsets[pairs].T.astype(np.float64)),
        rows.weights[owners],
    )
    buffer = np.zeros(int(np.diff(rows.scopes).max(initial=1)), np.float32)
    _subtract(rows, pairs, owners, buffer, out)
    nnz = int(out.indptr[-1])
    return out._replace(indices=out.indices[:nnz], values=out.values[:nnz])


def mirrored(pairs: Pairs, n_features: int, scale: float = 1.0) -> SparseDataset:
    """Every difference times ``scale``, labelled better, and its mirror image, labelled worse."""
    n = len(pairs.weights)
    values = (scale * pairs.values).astype(np.float32)
    rows = SparseRows(
        np.concatenate([pairs.indptr, pairs.indptr[-1] + pairs.indptr[1:]]),
        np.concatenate([pairs.indices, pairs.indices]),
        np.concatenate([values, -values]),
        np.repeat([1, 0], n),
        np.concatenate([pairs.weights, pairs.weights]),
    )
    return SparseDataset(rows, n_features, ("worse", "better"), source="pairs of candidates")


class LogLoss:
    """Log loss of pairs and their mirror images, with L2, and its gradient.

    ``2 * sum_p weight_p log(1 + exp(-w.d_p - b_p)) + l2 * sum_j w_j**2``
    """

    def __init__(self, pairs: Pairs, n_features: int, l2: float) -> None:
        self.pairs, self.n, self.l2 = pairs, n_features, l2

    def __call__(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        gradient = 2.0 * self.l2 * w
        value = _log_loss(self.pairs, w, gradient)
        return value + self.l2 * float(w @ w), gradient


@kernel
def _draw(starts, costs, weights, samples, threshold, seed, turn, pairs, counts):
    keep = pairs.shape[0] // max(1, counts.size)
    gaps = np.zeros(keep)
    for i in range(counts.size):
        first, n = starts[i], starts[i + 1] - starts[i]
        if n < 2 or weights[i] <= 0.0:
            continue
        # A hash of the seed, the turn, the list and the draw: no state is handed on.
        key = mixed(mixed(mixed(np.uint64(seed)) + np.uint64(turn)) + np.uint64(i))
        base, count = i * keep, 0
        for k in range(samples):
            bits = mixed(key + np.uint64(k))
            a = first + below(bits >> np.uint64(32), n)
            b = first + below(bits & np.uint64(0xFFFFFFFF), n)
            gap = abs(costs[a] - costs[b])
            if not gap > threshold or (count == keep and gap <= gaps[keep - 1]):
                continue
            at = min(count, keep - 1)
            while at > 0 and gaps[at - 1] < gap:
                gaps[at] = gaps[at - 1]
                pairs[base + at] = pairs[base + at - 1]
                at -= 1
            gaps[at] = gap
            better = a if costs[a] < costs[b] else b
            pairs[base + at, 0], pairs[base + at, 1] = better, a + b - better
            count = min(count + 1, keep)
        counts[i] = count


@helper
def below(bits, n):
    """A number from 0 to n - 1, from 32 random bits."""
    return np.int64((bits * np.uint64(n)) >> np.uint64(32))


@kernel
def _subtract(rows, pairs, owners, buffer, out):
    used, order, before = 0, np.zeros(0, np.int64), -1
    for p in range(pairs.shape[0]):
        i = owners[p]
        scope = rows.features[rows.scopes[i] : rows.scopes[i + 1]]
        if i != before:
            order, before = np.argsort(scope), i
        for side in range(2):
            sign = np.float32(1.0 - 2.0 * side)
            c = pairs[p, side]
            for e in range(rows.indptr[c], rows.indptr[c + 1]):
                buffer[rows.columns[e]] += sign * rows.values[e]
        for k in order:
            if buffer[k] != 0.0:
                out.indices[used], out.values[used] = scope[k], buffer[k]
                buffer[k] = 0.0
                used += 1
        out.indptr[p + 1] = used


@kernel
def _log_loss(pairs, w, gradient):
    """Add to the gradient; returns the sum of losses."""
    total = 0.0
    for p in range(pairs.weights.size):
        z = pairs.offsets[p]
        for e in range(pairs.indptr[p], pairs.indptr[p + 1]):
            z += pairs.values[e] * w[pairs.indices[e]]
        small = np.exp(-abs(z))
        weight = 2.0 * pairs.weights[p]
        total += weight * (np.log1p(small) + max(0.0, -z))
        pull = weight * (small if z > 0.0 else 1.0) / (1.0 + small)
        for e in range(pairs.indptr[p], pairs.indptr[p + 1]):
            gradient[pairs.indices[e]] -= pull * pairs.values[e]
    return total
