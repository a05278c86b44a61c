"""Batch learners as tuners: started from given weights, costs those a corpus agrees with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from hopefear.core.checks import check_parameters
from hopefear.core.learner import parameters_by_part
from hopefear.data.lists.dataset import cheapest, fixed_scores
from hopefear.errors import HopefearError
from hopefear.structures.nbest import NBest
from hopefear.training.batch import BatchLearner
from hopefear.training.decoders.lists import ListDecoder
from hopefear.training.passes import Whole
from hopefear.training.predictors import LinearPredictor
from hopefear.translation.tuners.corpus import corpus_costs
from hopefear.translation.tuners.online_tuner import KEEPS
from hopefear.translation.tuners.problem import Round, RoundsTuner, TuningProblem


@dataclass(frozen=True)
class BatchTuner(RoundsTuner):
    """Iterations of a learner that looks at all lists before it moves.

    What is learned is added to the weights there are at the start: their score is a fixed part of
    every candidate's, so that the penalty is on the change, as in Rampion.

    Parameters
    ----------
    learner : BatchLearner
        What is minimised, and how.
    corpus : float
        Share of the corpus in costs: 0 is the BLEU of single sentences, 1 what a corpus of oracles
        loses.
    keep : {"auto", "best", "last"}
        Which iteration the weights are from. The best is that on held-out lists, or without them
        that on the tuning lists; ``auto`` is the best where lists are held out, else the last.
    patience : int
        Iterations without a better score before tuning stops; 0 never stops early.

    Examples
    --------
    >>> from hopefear.training.frank_wolfe import FrankWolfe
    >>> BatchTuner(FrankWolfe()).corpus
    0.25
    """

    learner: BatchLearner
    corpus: float = 0.25
    keep: str = "auto"
    patience: int = 0

    def __post_init__(self) -> None:
        check_parameters(
            self, at_least={"patience": 0}, shares=("corpus",), choices={"keep": KEEPS}
        )

    def parameters(self) -> dict[str, Any]:
        """All parameters, as JSON has them."""
        parameters = super().parameters()
        return parameters_by_part(parameters.pop("learner")) | parameters

    def signature(self, **fields: Any) -> str:
        """Returns one line that identifies this tuner exactly."""
        return self.learner.signature(
            corpus=f"{self.corpus:g}",
            keep=self.keep,
            **({"patience": self.patience} if self.patience else {}),
            **fields,
        )

    def following(self) -> dict[str, Any]:
        return {
            "of": self.learner.max_iter,
            "keep": self.keep,
            "patience": self.patience,
            "from_start": True,
        }

    def each_round(self, problem: TuningProblem, seed: int) -> Iterator[Round]:
        """Weights after each iteration."""
        data, start = problem.data, np.asarray(problem.start, np.float64)
        costs = corpus_costs(problem, self.corpus)
        if not len(costs) or not data.rows.weights.any():
            raise HopefearError(f"{data.source}: there are no lists of weight above 0 to tune on")
        scores = ListDecoder(NBest(len(start)), LinearPredictor(start)).scores(data.rows)
        lists = data.replaced(
            costs=costs,
            oracles=cheapest(costs, data.rows.starts),
            offsets=fixed_scores(scores, data.rows.starts),
        )
        passes = Whole(lists.rows, seed)
        learner: Any = self.learner
        with closing(learner.trainer(NBest(len(start)), passes.rows)) as trainer:
            for _ in trainer.learn_passes(passes, learner.max_iter):
                yield Round(start + trainer.w, trainer.details())
