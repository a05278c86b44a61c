"""Online learners as tuners: started from given weights, priced by a pseudo-corpus if wanted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hopefear.averaging.voted import Voted
from hopefear.core.checks import check_parameters
from hopefear.core.learner import Learner, parameters_by_part
from hopefear.costs.given import Given
from hopefear.costs.pseudo_corpus import PseudoCorpus
from hopefear.data.lists.dataset import counts_of, fixed_scores
from hopefear.errors import CombinationError
from hopefear.structures.nbest import NBest
from hopefear.training.decoders.lists import ListDecoder
from hopefear.training.online import OnlineTrainer
from hopefear.training.passes import Passes
from hopefear.training.predictors import LinearPredictor
from hopefear.translation.tuners.problem import Round, RoundsTuner, TuningProblem

BACKGROUNDS = ("none", *PseudoCorpus.choices["enters"])  # type: ignore[attr-defined]
KEEPS = ("auto", "best", "last")


@dataclass(frozen=True)
class OnlineTuner(RoundsTuner):
    """Passes over the lists with any learner of the core.

    What is learned is added to the weights there are at the start: their score is a fixed part of
    every candidate's, so that a rule that shrinks weights shrinks the change.

    Parameters
    ----------
    learner : Learner
        Loss, rule, averaging.
    epochs : int
        Passes over the lists, at most.
    background : {"none", "hope", "prediction", "oracle"}
        Costs come from the BLEU of a pseudo-corpus that this choice of each list enters, or from
        that of single sentences (none).
    memory : float
        Share of a sentence, and of all before it, that is left for the next one (0.9 in the
        slides). Larger remembers longer.
    keep : {"auto", "best", "last"}
        Epoch of the returned weights. The best is that on held-out lists, or without them that
        on the tuning lists; the start counts as epoch 0, unless it is 0: then the order of
        candidates would be judged, and no weights. ``auto`` is the best where lists are held out,
        else the last.
    patience : int
        Passes without a better score before tuning stops; 0 never stops early.

    Notes
    -----
    Scores of the lists that were tuned on choose nothing by default. The decoder's weights were
    often tuned on the very same lists, and then no epoch beats their score there, though it may
    anywhere else; the best epoch there is the one that fits these lists most. The last is
    an average over all of them, where the averaging averages.

    Examples
    --------
    >>> from hopefear.losses.hope_fear import HopeFear
    >>> from hopefear.averaging.averaged import Averaged
    >>> from hopefear.rules.passive_aggressive import PassiveAggressive
    >>> OnlineTuner(Learner(HopeFear(), PassiveAggressive(C=0.01), Averaged())).memory
    0.9
    """

    learner: Learner
    epochs: int = 30
    background: str = "none"
    memory: float = 0.9
    keep: str = "auto"
    patience: int = 0

    def __post_init__(self) -> None:
        check_parameters(
            self,
            at_least={"epochs": 1},
            shares=("memory",),
            choices={"background": BACKGROUNDS, "keep": KEEPS},
        )
        if isinstance(self.learner.averaging, Voted):
            raise CombinationError(
                "tuning and Voted: a decoder reads one weight for each feature, and votes are "
                "many; use averaging=averaged"
            )

    def parameters(self) -> dict[str, Any]:
        """All parameters, as JSON has them."""
        parameters = super().parameters()
        return parameters_by_part(parameters.pop("learner")) | parameters

    def signature(self, **fields: Any) -> str:
        """Returns one line that identifies this tuner exactly."""
        corpus = "none" if self.background == "none" else f"{self.background}({self.memory:g})"
        return self.learner.signature(
            background=corpus,
            epochs=self.epochs,
            keep=self.keep,
            **({"patience": self.patience} if self.patience else {}),
            **fields,
        )

    def following(self) -> dict[str, Any]:
        keep, patience = self.keep, self.patience
        return {"of": self.epochs, "keep": keep, "patience": patience, "from_start": True}

    def each_round(self, problem: TuningProblem, seed: int) -> Iterator[Round]:
        """Yields the weights after each epoch over the lists."""
        data, start = problem.data, np.asarray(problem.start, np.float64)
        scores = ListDecoder(NBest(len(start)), LinearPredictor(start)).scores(data.rows)
        lists = data.replaced(offsets=fixed_scores(scores, data.rows.starts))
        passes = Passes(lists, seed)
        if self.background != "none":
            # A pseudo-corpus writes costs and oracles anew, list by list.
            copies = {"costs": data.rows.costs.copy(), "oracles": data.rows.oracles.copy()}
            passes.rows = passes.rows._replace(**copies)
        trainer = OnlineTrainer(NBest(len(start), False, self._pricing(problem)), self.learner)
        loss, updates = 0.0, 0
        for _ in trainer.learn_passes(passes, self.epochs):
            weights = start + trainer.predictor().weights  # type: ignore[union-attr]
            mean = (trainer.loss - loss) / max(1, passes.n)
            yield Round(weights, {"loss": mean, "pass_updates": trainer.updates - updates})
            loss, updates = trainer.loss, trainer.updates

    def _pricing(self, problem: TuningProblem) -> Any:
        if self.background == "none":
            return Given()
        if problem.metric.name != "bleu":
            raise CombinationError(
                f"background={self.background} and {problem.metric.name}: a pseudo-corpus is there "
                "to make BLEU of sentences, and other metrics need none; use background=none"
            )
        counts = counts_of(problem.data, problem.metric)
        cost = getattr(self.learner.loss, "cost", None)
        reach = float(counts[problem.data.rows.starts[:-1], -1].mean(dtype=np.float64))
        return PseudoCorpus(
            np.ascontiguousarray(counts),
            np.ones(counts.shape[1]),
            max(reach, 1.0),
            self.memory,
            BACKGROUNDS.index(self.background) - 1,
            float(getattr(cost, "each", 1.0)),
        )
