"""Runs: train pass after pass, and score three readings of the weights at some of the passes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hopefear.core.learner import Learner
from hopefear.data.lists.dataset import ListDataset
from hopefear.experiments.common.trails import Trail
from hopefear.experiments.vrda_reranking.plan import KEPT, Spec
from hopefear.experiments.vrda_reranking.problems import Split
from hopefear.metrics.lists import Brackets
from hopefear.recipes import Scale
from hopefear.structures.nbest import NBest
from hopefear.tasks import recipe
from hopefear.training.online import OnlineTrainer
from hopefear.training.passes import Passes
from hopefear.training.predictors import LinearPredictor, Predictor
from hopefear.training.ranking import Ranker


@dataclass(frozen=True)
class Run:
    """A learner at some of its passes; the first axis is ``KEPT``."""

    signature: str
    dev: np.ndarray  # float64[3, marks]: F on development lists, percent
    nnz: np.ndarray  # int64[3, marks]
    mistakes: np.ndarray  # int64[marks]: so far
    counts: np.ndarray  # int64[3, lists, 3]: brackets of test lists at the last mark; or no lists


def build(spec: Spec, params: Mapping[str, Any], n: int, readout: str = "averaged") -> Learner:
    """The learner of a spec with these parameters, for so many lists a pass."""
    given = {**spec.fixed, **params, "readout": readout}
    made: Learner = recipe(spec.recipe, "rerank").build(Scale(n=n), **given)
    return made


def run(
    spec: Spec,
    params: Mapping[str, Any],
    split: Split,
    seed: int,
    marks: Sequence[int],
    tested: bool = False,
) -> Run:
    """Train as many passes as the last mark; test lists are looked at only if ``tested``.

    Parameters
    ----------
    spec, params
        The learner.
    split : Split
        What is learnt from, and scored.
    seed : int
        Of the shuffles.
    marks : sequence of int
        Numbers of passes, rising, after which development lists are scored.
    tested : bool
        Whether to choose from the test lists too, after the last pass.
    """
    learner = build(spec, params, len(split.train))
    trainer = OnlineTrainer(NBest(split.size), learner)
    dev, nnz, mistakes = [], [], []
    for epoch in _epochs(trainer, split.train, seed, marks[-1]):
        if epoch not in marks:
            continue
        found = readings(trainer, split.dense)
        dev.append([f_score(chosen(p, trainer.structure, split.dev)) for p in found])
        nnz.append([p.nnz for p in found])
        mistakes.append(trainer.mistakes)
    counts = np.zeros((len(KEPT), 0, 3), np.int64)
    if tested:
        counts = np.stack([chosen(p, trainer.structure, split.test) for p in found])
    return Run(
        learner.signature(epochs=marks[-1], seed=seed),
        np.array(dev).T,
        np.array(nnz).T,
        np.array(mistakes),
        counts,
    )


def vote(spec: Spec, params: Mapping[str, Any], split: Split, seed: int, passes: int) -> Any:
    """Brackets that the vote of all predictors there were chooses on test lists (Figure 2)."""
    learner = build(spec, params, len(split.train), "voted")
    trainer = OnlineTrainer(NBest(split.size), learner)
    for _ in _epochs(trainer, split.train, seed, passes):
        pass
    return chosen(trainer.predictor(), trainer.structure, split.test)


def follow(
    spec: Spec, params: Mapping[str, Any], train: ListDataset, size: int, seed: int, passes: int
) -> Trail:
    """Train, and note NNZ and mistakes ever more rarely in the first pass, then four times each."""
    trainer = OnlineTrainer(NBest(size), build(spec, params, len(train)))
    seen, source = [(0, 0, 0)], Passes(train, seed)  # type: ignore[arg-type]
    for epoch in range(passes):
        pieces = list(source.pieces(epoch))
        order = np.concatenate([order for _, order in pieces])
        for piece in np.split(order, _stops(epoch, order.size)[:-1]):
            trainer.learn(pieces[0][0], piece)
            seen.append((trainer.examples, trainer.support()[0], trainer.mistakes))
    return Trail(params.get(spec.strength, 0.0), *np.array(seen).T)


def chosen(predictor: Predictor, structure: NBest, data: ListDataset) -> np.ndarray:
    """Counts of the brackets of the best candidate of each list (int64[lists, 3])."""
    best = Ranker(structure, predictor).best(data.rows)
    return brackets(data, best)


def brackets(data: ListDataset, positions: np.ndarray) -> np.ndarray:
    """Counts of brackets of one candidate of each list (int64[lists, 3])."""
    if data.counts is None:
        raise TypeError("lists of parses come with counts of brackets")
    found: np.ndarray = data.counts[data.rows.starts[:-1] + positions]
    return found


def f_score(counts: np.ndarray) -> float:
    """F from counts, in percent.

    >>> f_score(np.array([[3, 4, 4], [4, 4, 4]]))
    87.5
    """
    return float(Brackets().scores(counts.sum(axis=0))["f1"]) if len(counts) else 0.0


def _epochs(trainer: OnlineTrainer, train: ListDataset, seed: int, passes: int) -> Iterator[int]:
    """Learn; numbers of passes, each when it is over."""
    source = Passes(train, seed)  # type: ignore[arg-type]
    for epoch in range(passes):
        for rows, order in source.pieces(epoch):
            trainer.learn(rows, order)
        yield epoch + 1


def readings(trainer: Any, dense: np.ndarray) -> list[LinearPredictor]:
    """In the order of ``KEPT``; an average on the last support has the dense features too."""
    mean, last = trainer.average().astype(np.float32), trainer.weights()
    used = last != 0.0
    used[dense] = True
    return [LinearPredictor(w) for w in (mean, np.where(used, mean, np.float32(0.0)), last)]


def _stops(epoch: int, n: int) -> np.ndarray:
    if epoch:
        return np.array([n * q // 4 for q in range(1, 5)])
    wanted = np.rint(np.geomspace(min(20, n), n, 24)).astype(np.int64)
    return wanted[np.diff(wanted, prepend=0) > 0]
