"""The task ``rerank``: from lists of candidates and the name of a learner to a model."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hopefear.core.learner import Learner, parameters_by_part
from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.lists.dataset import Blocks, Gathered, ListDataset, Noting, each, encoded
from hopefear.errors import HopefearError
from hopefear.features.lists.extraction import Extraction
from hopefear.features.lists.list_features import ListNumbering
from hopefear.metrics.lists import ListMetric, ListScores, evaluate_lists, metric_named
from hopefear.recipes.scales import scale_of
from hopefear.structures.nbest import NBest
from hopefear.tasks import TASKS, recipe
from hopefear.tasks.rerank.model import RerankModel, check_features
from hopefear.training.checkpoints import Checkpoints
from hopefear.training.fit import Event, Fit, fit
from hopefear.training.judging import (
    counts_of,
    evaluator,
    fitted_temperature,
    metric_of,
    score_names,
    scores,
)
from hopefear.training.passes import Passes
from hopefear.training.predictors import LinearPredictor, Predictor
from hopefear.training.ranking import Ranker, check_offsets, in_lists
from hopefear.training.stopping import Stopping

__all__ = [
    "DEFAULT_LEARNER",
    "EPOCHS",
    "Trained",
    "dataset",
    "encoded",
    "evaluate",
    "idle_lists",
    "metric_of",
    "scores",
    "train",
]

DEFAULT_LEARNER = TASKS["rerank"].learner
EPOCHS = 5
# What "auto" features are, and the fewest lists a feature must tell apart: of trees, of others.
TREE_FEATURES, TREE_COUNT = "rich,consensus", 5
OTHER_FEATURES, OTHER_COUNT = "named,score", 1
# Losses whose scores are log probabilities up to a constant: temperature 1.
_PROBABILISTIC = ("Log", "WeightedLog")


@dataclass(frozen=True)
class Trained:
    """A model and how it came about."""

    model: RerankModel
    learner: Any
    fit: Any


def dataset(
    blocks: Blocks,
    features: str | Extraction = "auto",
    *,
    min_count: int | None = None,
    baseline: str = "feature",
    oracle: str = "first",
    metric: str | ListMetric | None = None,
    folder: str | os.PathLike[str] | None = None,
) -> ListDataset:
    """Look at candidates for training, and number what tells them apart.

    Lists that teach nothing, of one candidate or of candidates that all cost the same, stay in
    their place with the weight 0; :func:`idle_lists` finds them.

    Parameters
    ----------
    blocks : CandidateLists, or several
        The lists, as readers give them.
    features : str or Extraction
        A comma list of ``named`` (those that files name), ``score`` (of the generator), ``ptb``,
        ``rich`` or single families of tree features, and ``consensus``. ``"auto"`` is
        ``rich,consensus`` where candidates are trees, else ``named,score``.
    min_count : int, optional
        Features that tell candidates apart in fewer lists are left out; 5 for trees and 1
        elsewhere, unless said. More makes smaller models.
    baseline : {"feature", "offset", "none"}
        What the generator's score is: one of the features, if it is among them; a fixed part of
        every score; or ignored.
    oracle : {"first", "score"}
        Which of equally cheap candidates is to be learned: the first, or that of highest score.
    metric : str or ListMetric, optional
        Makes the costs of candidates against references; without it costs must be given.
    folder : path, optional
        Keep features in files there, for lists that memory would not hold; they go with the data.

    Examples
    --------
    >>> from hopefear.data.generators import candidate_lists
    >>> dataset(candidate_lists(20, features=12)).features.size
    13
    """
    made = metric_named(metric) if isinstance(metric, str) else metric
    gathered = Gathered(baseline, oracle, made)
    numbering: ListNumbering | None = None
    try:
        for block in each(blocks):
            judged = gathered.add(block)
            if numbering is None:
                extraction, count = chosen(features, block, min_count)
                score = extraction.score and baseline == "feature"
                numbering = ListNumbering(replace(extraction, score=score), count, folder)
            numbering.add(judged)
        if numbering is None:
            raise HopefearError("there are no lists to learn from")
        found, numbered = numbering.finish()
    except BaseException:
        if numbering is not None:
            numbering.close()
        raise
    return teaching(gathered.dataset(numbered, found))


def teaching(data: ListDataset) -> ListDataset:
    """The data with the weight 0 for lists that teach nothing."""
    idle = idle_lists(data)
    if not idle.any():
        return data
    return data.replaced(weights=np.where(idle, 0.0, data.rows.weights))


def chosen(
    features: str | Extraction, block: CandidateLists, min_count: int | None = None
) -> tuple[Extraction, int]:
    """What to look at in lists such as these, and in how many of them."""
    trees = block.trees is not None
    if isinstance(features, str):
        auto = TREE_FEATURES if trees else OTHER_FEATURES
        features = Extraction.of(auto if features == "auto" else features)
    count = (TREE_COUNT if trees else OTHER_COUNT) if min_count is None else min_count
    if count < 1:
        raise HopefearError(f"min_count must be 1 or more, not {count}")
    return features, count


def idle_lists(data: ListDataset) -> np.ndarray:
    """Which lists teach nothing (bool): all of their candidates cost the same.

    Examples
    --------
    >>> from hopefear.data.generators import candidate_lists
    >>> idle_lists(dataset(candidate_lists(2, candidates=1))).tolist()
    [True, True]
    """
    costs, starts = data.rows.costs, data.rows.starts
    return in_lists(np.minimum, costs, starts) == in_lists(np.maximum, costs, starts)


def train(
    data: ListDataset,
    learner: str = DEFAULT_LEARNER,
    params: Mapping[str, Any] | None = None,
    *,
    epochs: int | None = None,
    seed: int = 1,
    shuffle: bool = True,
    tied: bool = False,
    metric: str | ListMetric | None = None,
    start: np.ndarray | None = None,
    dev: ListDataset | None = None,
    stopping: Stopping | None = None,
    on_event: Sequence[Callable[[Event], None]] = (),
    trace: bool = False,
    checkpoints: Checkpoints | None = None,
    resume: bool = False,
    pieces: int = 1,
    n_jobs: int = 1,
    dtype: Any = np.float32,
) -> Trained:
    """Train a reranker.

    Parameters
    ----------
    data : ListDataset
        Lists with a cost for every candidate; see :func:`dataset`.
    learner, params
        Name of a recipe and the parameters to replace.
    epochs, seed, shuffle
        Passes over the data, 5 unless said, and their order. For a batch learner the most
        iterations; by default it goes on until it has settled.
    tied : bool
        Treat all candidates as cheap as the oracle as right, not the oracle alone.
    metric : str or ListMetric, optional
        Scores choices; that of the data unless said.
    start : float array, optional
        Weights of all features that a batch learner starts from.
    dev, stopping
        Held-out data in the same features, scored after each pass, and when to stop on it (the
        best model is kept).
    on_event, trace, checkpoints, resume, pieces
        As in :func:`hopefear.training.fit.fit`.
    n_jobs : int
        Threads for batch learners; the model does not depend on it.
    dtype : numpy dtype
        Of the weights while they are learned.

    Examples
    --------
    >>> from hopefear.data.generators import candidate_lists
    >>> data = dataset(candidate_lists(200, doubt=3.0))
    >>> model = train(data, "perceptron", epochs=5).model
    >>> found = scores(data, model.predict(data), model.metric)["cost"]
    >>> found < scores(data, np.zeros(200, int), model.metric)["cost"]
    True
    """
    check(data)
    judge = metric_of(metric, data)
    if dev is not None:
        check_features(dev, data.features)
    structure = NBest(data.features.size, tied)
    passes = Passes(data, seed, shuffle, pieces)  # type: ignore[arg-type]
    made = recipe(learner, "rerank").build(scale_of(data), **(params or {}))
    online = isinstance(made, Learner)
    check_offsets(getattr(made, "readout", None), data.rows)
    if online and start is not None:
        raise HopefearError(
            f"{learner} learns online, and only batch learners start from given weights"
        )
    if stopping is not None:
        stopping.check(score_names(judge, data))
    evaluate = None if dev is None else evaluator(structure, dev, judge)
    if not online and epochs is not None:
        made = replace(made, max_iter=epochs)
    epochs = EPOCHS if epochs is None and online else epochs
    length = {} if epochs is None else {"epochs": epochs}
    signature = made.signature(**({"tied": "true"} if tied else {}), **length, seed=seed)
    common: dict[str, Any] = {
        "evaluate": evaluate,
        "stopping": stopping,
        "on_event": on_event,
        "checkpoints": checkpoints,
        "resume": resume,
        "identity": {
            "signature": signature,
            "data": data.digest,
            "shuffle": shuffle,
            "pieces": passes.n_pieces,
            "metric": judge.cost_signature(),
            "dev": None if dev is None else dev.digest,
            "stopping": None if stopping is None else [stopping.metric, stopping.patience],
        },
    }
    result: Any
    if online:
        result = fit(
            structure, made, passes, epochs=int(epochs or 0), dtype=dtype, trace=trace, **common
        )
    else:
        if start is not None:
            digest = hashlib.sha256(np.asarray(start, np.float64).tobytes()).hexdigest()
            common["identity"]["start"] = digest
        result = made.fit(structure, data.rows, n_jobs=n_jobs, w0=start, **common)
    temperature = 1.0
    if needs_temperature(made, result.predictor):
        ranker = Ranker(structure, result.predictor)
        temperature = fitted_temperature(ranker, data if dev is None else dev)
    model = RerankModel(
        result.predictor,
        data.features,
        baseline_of(data),
        temperature,
        judge,
        signature,
        about(data, learner, made, result, epochs, seed),
    )
    return Trained(model, made, result)


def evaluate(
    model: RerankModel, lists: Blocks | ListDataset, *, samples: int = 1000, seed: int = 1
) -> ListScores:
    """Scores of the model's choices beside the generator's 1-best, the oracle and the worst.

    Parameters
    ----------
    model : RerankModel
        What chooses.
    lists : CandidateLists, several, or ListDataset
        Lists with costs, or with references. In a ListDataset the first candidate is the
        generator's.
    samples, seed : int
        Resamples behind bounds and p-values.
    """
    ready, noting = isinstance(lists, ListDataset), Noting()
    data = model.encode(lists if isinstance(lists, ListDataset) else noting(lists), judged=True)
    rows, ranker = data.rows, model.ranker()
    found = ranker.scores(rows)
    return evaluate_lists(
        model.metric,
        counts_of(data, model.metric),
        rows.starts,
        ranker.best(rows, found),
        rows.costs,
        scores=None if ready else noting.scores,
        model_scores=found,
        n_references=noting.n_references,
        samples=samples,
        seed=seed,
    )


def check(data: ListDataset) -> None:
    """Training needs lists with a choice that matters, and features."""
    if len(data) == 0:
        raise HopefearError(f"{data.source}: there are no lists to learn from")
    if data.features is None:
        raise HopefearError(f"{data.source}: its features have no meaning; read it with dataset()")
    if idle_lists(data).all():
        raise HopefearError(
            f"{data.source}: in every list all candidates cost the same, so that there is nothing "
            "to learn; give costs that differ"
        )
    if not data.rows.weights.any():
        raise HopefearError(f"{data.source}: every list that could teach has the weight 0")
    if data.features.size == 0:
        raise HopefearError(
            f"{data.source}: no feature tells the candidates of a list apart, so that there is "
            "nothing to weigh; give candidates features or scores that differ, look at more of "
            "them (features), or keep features of fewer lists (min_count)"
        )


def baseline_of(data: ListDataset) -> str:
    """What the generator's score is in this data."""
    if data.features.extraction.score:
        return "feature"
    return "offset" if data.rows.offsets.any() else "none"


def needs_temperature(learner: Any, predictor: Predictor) -> bool:
    """Whether scores must be scaled before they can pass for log probabilities."""
    loss = type(learner.loss).__name__
    return loss not in _PROBABILISTIC and isinstance(predictor, LinearPredictor)


def about(
    data: ListDataset, name: str, learner: Any, result: Fit, epochs: int | None, seed: int
) -> dict[str, Any]:
    """What goes into the model file about its making; nothing that changes from run to run."""
    return {
        "learner": name,
        "on": getattr(learner, "on", "batch"),
        "parameters": parameters_by_part(learner),
        "epochs": epochs,
        "seed": seed,
        "data": {
            "source": os.path.basename(data.source),
            "digest": data.digest,
            "lists": len(data),
            "idle": int(idle_lists(data).sum()),
            "candidates": data.n_candidates,
            "features": data.features.size,
        },
        "training": {"best_epoch": result.best_epoch, "history": result.history},
    }
