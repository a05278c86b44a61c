"""What the decoders of all structures share: their questions, and blocks of examples on threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from hopefear.core.parallel import parallel
from hopefear.errors import HopefearError

T = TypeVar("T")


class KBest(NamedTuple):
    """The k best outputs of one example, best first."""

    labels: np.ndarray  # int[count, positions]: labels of the output, or its number
    scores: np.ndarray  # float64[count]
    probabilities: np.ndarray  # float64[count]: under the whole model
    shares: np.ndarray  # float64[count]: among these


class Decoder:
    """A structure under a predictor; subclasses decode the outputs of one structure.

    Parameters
    ----------
    structure : Structure
        What outputs look like.
    predictor : Predictor
        Weights, or votes.
    temperature : float
        Scores under weights are divided by it before they become probabilities. Higher evens out.
    n_jobs : int
        Threads that decode sentences. Results do not depend on it.
    """

    def __init__(
        self, structure: Any, predictor: Any, temperature: float = 1.0, n_jobs: int = 1
    ) -> None:
        self.structure, self.predictor = structure, predictor
        self.temperature, self.n_jobs = float(temperature), max(1, int(n_jobs))

    @classmethod
    def of(
        cls, structure: Any, predictor: Any, temperature: float = 1.0, n_jobs: int = 1
    ) -> Decoder:
        """Returns the decoder that a predictor brings, as networks do, else one of this class."""
        if hasattr(predictor, "decoder"):
            return predictor.decoder(structure, temperature, n_jobs)
        return cls(structure, predictor, temperature, n_jobs)

    def predict(self, rows: Any) -> np.ndarray:
        """Returns the best outputs, one after another."""
        raise NotImplementedError

    def k_best(self, rows: Any, k: int) -> list[KBest]:
        """Returns the ``k`` best outputs of every example."""
        raise NotImplementedError

    def scores(self, rows: Any) -> np.ndarray:
        """Returns scores of classes or candidates; of sentences those of the best outputs."""
        raise NotImplementedError

    def probabilities(self, rows: Any) -> np.ndarray:
        """Returns probabilities of classes, candidates, labels at tokens, or arcs."""
        raise NotImplementedError

    def log_likelihoods(self, rows: Any) -> np.ndarray:
        """Returns the log probability of the right output of every example."""
        raise NotImplementedError


def check_k(k: int) -> None:
    """Refuses numbers of outputs below one."""
    if k < 1:
        raise HopefearError(f"n must be at least 1, not {k}")


def in_blocks(
    rows: Any, offsets: np.ndarray, work: Callable[[np.ndarray], T], n_jobs: int
) -> list[T]:
    """Returns what ``work`` makes of the sentences that have words, in ``n_jobs`` blocks.

    Parameters
    ----------
    rows
        Sentences.
    offsets : int array
        Where the parts of each sentence start; blocks have about equally many.
    work : callable
        Gets the numbers of the sentences of a block.
    n_jobs : int
        Blocks and threads, at most.
    """
    which = np.flatnonzero(np.diff(rows.starts) > 0)
    cuts = np.searchsorted(offsets[which], np.linspace(0, offsets[-1], n_jobs + 1)[1:-1])
    blocks = [block for block in np.split(which, cuts) if block.size]
    return list(parallel(blocks, work, n_jobs))


def chosen(
    outputs: np.ndarray, scores: np.ndarray, probabilities: np.ndarray, order: np.ndarray
) -> KBest:
    """Returns the outputs named by ``order``, with their shares of their joint probability."""
    some = probabilities[order]
    return KBest(outputs[order], scores[order], some, some / max(some.sum(), 1e-300))


def k_best_paths(
    starts: np.ndarray,
    paths: np.ndarray,
    scores: np.ndarray,
    counts: np.ndarray,
    temperature: float,
    totals: np.ndarray | None,
) -> list[KBest]:
    """Returns the k best of sentences, from where searches left them.

    Parameters
    ----------
    starts : int array
        Sentence i has the tokens ``starts[i] .. starts[i + 1] - 1``.
    paths, scores, counts : arrays
        Labels of k outputs a sentence, one after another; their scores; how many there are.
    temperature : float
        Scores are divided by it before they become probabilities.
    totals : float array, optional
        Log sums over all outputs; without them probabilities are shares of these.
    """
    k, lists = scores.shape[1], []
    for i, (count, length) in enumerate(
        zip(counts.tolist(), np.diff(starts).tolist(), strict=True)
    ):
        start, best = k * int(starts[i]), scores[i, :count]
        logs = best / temperature
        within = np.exp(logs - logs[:1])
        within = within / within.sum() if count else within
        whole = within if totals is None else np.exp(np.minimum(0.0, logs - totals[i]))
        outputs = paths[start : start + count * length].reshape(count, length)
        lists.append(KBest(outputs, best, whole, within))
    return lists
