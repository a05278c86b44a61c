"""Runs: learn a phrase model pass after pass, and choose translations with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.arrays import frozen
from hopefear.core.learner import Learner
from hopefear.data.lists.dataset import ListDataset, cheapest
from hopefear.data.moses.lists import TuningLists
from hopefear.experiments.common.translations import METRIC
from hopefear.experiments.dptm.plan import Spec
from hopefear.experiments.dptm.problems import WINDOW, Part, Problem, bleu
from hopefear.structures.nbest import NBest
from hopefear.training.predictors import LinearPredictor
from hopefear.training.ranking import Ranker
from hopefear.translation.features import learned
from hopefear.translation.phrase_model import (
    KEPT,
    NAME,
    kept_weights,
    phrase_learner,
    phrase_passes,
)
from hopefear.translation.tuners.envelope import Step
from hopefear.translation.tuners.mert import Mert
from hopefear.translation.tuners.problem import TuningProblem

LINE, MERT = "line", "mert"  # how a model is added: its weight alone is tuned, or all weights


class Mark(NamedTuple):
    """A model after some passes, on development lists."""

    passes: int
    kept: str
    bleu: float  # with the best weight of the model, the decoder's weights as they are
    weight: float  # that weight
    plain: float  # BLEU with weight 1
    nnz: int


@dataclass(frozen=True)
class Scored:
    """What a model, or the dense features alone, choose from test lists."""

    signature: str
    nnz: int
    weight: float  # of the model on the line
    dev: dict[str, float]  # BLEU on development lists, by how the model was added
    positions: dict[str, dict[str, list[int]]]  # by how, by test set: one candidate of each list


def build(spec: Spec, params: Mapping[str, float]) -> Learner:
    """The learner of a spec with these parameters."""
    given: dict[str, Any] = {k: v for k, v in params.items() if k != "sharp"}
    if "every" in given:
        given["every"] = int(given["every"])
    return phrase_learner(spec.loss, spec.rule, **given)


def follow(
    problem: Problem, spec: Spec, params: Mapping[str, float], seed: int, marks: Sequence[int]
) -> list[Mark]:
    """Learn as many passes as the last mark; test lists are not looked at."""
    found = []
    for epoch, trainer in _passes(problem, spec, params, seed, marks[-1]):
        if epoch not in marks:
            continue
        for kept in KEPT:
            w = kept_weights(trainer, kept) / params["sharp"]
            points = pair_scores(problem.dev, w)
            step = line(problem, points)
            plain = bleu(problem.dev.chosen(best(problem.dev, problem.dev.b + points)))
            found.append(Mark(epoch, kept, step.worth, step.t, plain, int(np.count_nonzero(w))))
    return found


def score(
    problem: Problem,
    spec: Spec,
    params: Mapping[str, float],
    passes: int,
    kept: str,
    seed: int,
    mert: Mert,
) -> Scored:
    """Learn, add the model to the dense features both ways, and choose from the test lists."""
    *_, (_, trainer) = _passes(problem, spec, params, seed, passes)
    w = kept_weights(trainer, kept) / params["sharp"]
    points = {name: pair_scores(part, w) for name, part in _parts(problem).items()}
    step = line(problem, points[""])
    tuned = retuned(problem, mert, seed, points[""], step.t)
    dev, positions = _choices(
        problem,
        lambda name, part: (
            part.b + step.t * points[name],
            part.lists.dense @ tuned[:-1] + tuned[-1] * points[name],
        ),
    )
    signature = build(spec, params).signature(
        sharp=f"{params['sharp']:g}", kept=kept, epochs=passes, seed=seed
    )
    return Scored(signature, int(np.count_nonzero(w)), step.t, dev, positions)


def score_dense(problem: Problem, seed: int, mert: Mert) -> Scored:
    """The dense features alone, tuned anew by MERT; on the line they are the decoder's."""
    tuned = retuned(problem, mert, seed)
    dev, positions = _choices(problem, lambda _, part: (part.b, part.lists.dense @ tuned))
    return Scored(mert.signature(seed=seed), 0, 0.0, dev, positions)


def _choices(
    problem: Problem, values: Callable[[str, Part], tuple[np.ndarray, np.ndarray]]
) -> tuple[dict[str, float], dict[str, dict[str, list[int]]]]:
    """BLEU on development lists and positions in test lists, from scores of either way."""
    dev: dict[str, float] = {}
    positions: dict[str, dict[str, list[int]]] = {LINE: {}, MERT: {}}
    for name, part in _parts(problem).items():
        for how, points in zip((LINE, MERT), values(name, part), strict=True):
            chosen = best(part, points)
            if name:
                positions[how][name] = chosen.tolist()
            else:
                dev[how] = bleu(part.chosen(chosen))
    return dev, positions


def retuned(
    problem: Problem, mert: Mert, seed: int, points: np.ndarray | None = None, weight: float = 0.0
) -> np.ndarray:
    """Weights of the dense features, and of the model's score if there is one, by MERT."""
    lists, start = problem.dev.lists, problem.start
    if points is not None:
        lists, start = _with_column(lists, points), np.append(start, weight)
    data: ListDataset = learned(lists, METRIC, ("dense",))
    return mert.tune(TuningProblem(data, METRIC, start), seed=seed).weights


def line(problem: Problem, points: np.ndarray) -> Step:
    """The best weight of a model on development lists, the other weights as they are."""
    return problem.search.best(problem.dev.b, points, low=0.0, smooth="average", window=WINDOW)


def pair_scores(part: Part, w: np.ndarray) -> np.ndarray:
    """Scores of all candidates by their phrase pairs."""
    return Ranker(NBest(len(w)), LinearPredictor(w)).scores(part.pairs.rows)


def best(part: Part, values: np.ndarray) -> np.ndarray:
    """Position of the best candidate of each list; of equals the first."""
    return cheapest(-values, part.lists.starts).astype(np.int64)


def _passes(
    problem: Problem, spec: Spec, params: Mapping[str, float], seed: int, passes: int
) -> Any:
    b = problem.train.rows.offsets.astype(np.float64)
    data = problem.train.replaced(offsets=params["sharp"] * b)
    return phrase_passes(data, build(spec, params), passes, seed)


def _with_column(lists: TuningLists, points: np.ndarray) -> TuningLists:
    dense = np.hstack([lists.dense, points.astype(np.float32)[:, None]])
    return replace(lists, layout=(*lists.layout, (NAME, 1)), dense=frozen(dense))


def _parts(problem: Problem) -> dict[str, Part]:
    return {"": problem.dev, **problem.tests}
