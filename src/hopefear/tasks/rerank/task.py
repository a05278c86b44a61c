"""The task ``rerank``: from lists of candidates and the name of a learner to a model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from hopefear.core.checks import check_at_least
from hopefear.core.learner import Learner
from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.lists.dataset import Blocks, DatasetBuilder, ListDataset, each
from hopefear.errors import HopefearError
from hopefear.features.lists.extraction import Extraction
from hopefear.features.lists.list_features import ListNumbering
from hopefear.metrics.lists import ListMetric, ListScores, evaluate_lists, metric_named
from hopefear.recipes import Scale
from hopefear.recipes.scales import scale_of
from hopefear.structures.nbest import NBest
from hopefear.tasks import TASKS, base
from hopefear.tasks.base import Task, Trained, best_of
from hopefear.tasks.rerank.judging import counts_of, limits, metric_of, score_names, scores
from hopefear.tasks.rerank.model import RerankModel, check_features
from hopefear.training.decoders.lists import ListDecoder, check_offsets, in_lists
from hopefear.training.loop import Fit, LearningWarning
from hopefear.training.passes import Passes
from hopefear.training.predictors import Predictor

DEFAULT_LEARNER = TASKS["rerank"].learner
# Lists that a temperature is fitted on, at most, and the parts in which they are scored.
_FITTED_ON, _PARTS = 5_000, 100
EPOCHS = 5
# What "auto" features are, and the fewest lists a feature must tell apart: of trees, of others.
TREE_FEATURES, TREE_COUNT = "rich,consensus", 5
OTHER_FEATURES, OTHER_COUNT = "named,score", 1


@dataclass(frozen=True)
class Reranking(Task):
    """The options of :func:`train` that only rerankers have."""

    name: ClassVar[str] = "rerank"
    epochs: ClassVar[int] = EPOCHS
    tied: bool = False
    metric: str | ListMetric | None = None

    def check(self, data: ListDataset, dev: ListDataset | None) -> None:
        check(data)
        metric_of(self.metric, data)
        if dev is not None:
            check_features(dev, data.features)

    def structure(self, data: ListDataset) -> NBest:
        return NBest(data.features.size, self.tied)

    def scale(self, passes: Passes) -> Scale:
        return scale_of(passes.dataset)

    def check_together(self, structure: NBest, learner: Any, data: ListDataset) -> None:
        if not learner.batch:
            check_offsets(learner.readout, data.rows)

    def score_names(self, data: ListDataset) -> tuple[str, ...]:
        return score_names(metric_of(self.metric, data), data)

    def evaluator(
        self, structure: NBest, data: ListDataset, dev: ListDataset, n_jobs: int
    ) -> Callable[[Predictor], dict[str, float]]:
        metric = metric_of(self.metric, data)
        bounds = limits(dev, metric)
        return lambda predictor: {
            **scores(dev, ListDecoder(structure, predictor).predict(dev.rows), metric),
            **bounds,
        }

    def review(self, data: ListDataset, result: Fit) -> None:
        metric = metric_of(self.metric, data)
        main, sign = metric.main, 1.0 if metric.higher else -1.0
        if result.best_epoch is None:  # curves on test lists choose no pass
            return
        dev = [event["dev"] for event in result.history]
        first, oracle = dev[-1][f"baseline_{main}"], dev[-1][f"oracle_{main}"]
        best = max((scores[main] for scores in dev), key=lambda score: sign * score)
        if sign * best <= sign * first < sign * oracle:
            warnings.warn(
                "no epoch beats the generator's 1-best on the held-out lists "
                f"({main} {best:.4g} at best, 1-best {first:.4g}, oracle {oracle:.4g}), so this "
                "model is no use; train on more lists, from a generator that has not seen them, or "
                "try another learner or other features",
                LearningWarning,
                stacklevel=3,
            )

    def words(self, data: Any) -> dict[str, Any]:
        # What choices cost is part of the data; scores of held-out lists are the metric's own.
        return {"cost": metric_of(self.metric, data).cost_signature().removeprefix("cost:")} | (
            {"tied": "true"} if self.tied else {}
        )

    def identity(self, data: ListDataset, structure: NBest) -> dict[str, Any]:
        return {"metric": metric_of(self.metric, data).cost_signature()}

    def temperature(
        self, structure: NBest, predictor: Any, data: ListDataset, n_jobs: int
    ) -> float:
        parts: Any = [data.rows]
        if len(data) > _FITTED_ON:  # some are enough for one number; few are in memory at a time
            some = np.linspace(0, len(data) - 1, _FITTED_ON).astype(np.int64)
            parts = (data.take(few).rows for few in np.array_split(some, _PARTS))
        plain = ListDecoder(structure, predictor)
        nothing = dict.fromkeys(("features", "columns", "values"))  # scores are all it takes
        scored = []
        for rows in parts:
            scored.append((rows._replace(**nothing), plain.scores(rows)))

        def log_likelihood(temperature: float) -> float:
            warm = ListDecoder(structure, predictor, temperature)
            return sum(float(warm.log_likelihoods(rows, points).sum()) for rows, points in scored)

        return best_of(log_likelihood)

    def facts(self, data: ListDataset) -> dict[str, Any]:
        return {
            "lists": len(data),
            "idle": int(idle_lists(data).sum()),
            "candidates": data.n_candidates,
            "features": data.features.size,
        }

    def model(
        self,
        data: Any,
        structure: Any,
        predictor: Any,
        temperature: float,
        signature: str,
        about: dict[str, Any],
    ) -> RerankModel:
        judge = metric_of(self.metric, data)
        return RerankModel(
            predictor, data.features, baseline_of(data), temperature, judge, signature, about
        )


def dataset(
    blocks: Blocks,
    features: str | Extraction = "auto",
    *,
    min_count: int | None = None,
    baseline: str = "feature",
    oracle: str = "first",
    metric: str | ListMetric | None = None,
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

    Examples
    --------
    >>> from hopefear.data.generators import candidate_lists
    >>> dataset(candidate_lists(20, features=12)).features.size
    13
    """
    judge = metric_named(metric) if isinstance(metric, str) else metric
    builder = DatasetBuilder(baseline, oracle, judge)
    numbering: ListNumbering | None = None
    for block in each(blocks):
        judged = builder.add(block)
        if numbering is None:
            extraction, count = chosen(features, block, min_count)
            score = extraction.score and baseline == "feature"
            numbering = ListNumbering(replace(extraction, score=score), count)
        numbering.add(judged)
    if numbering is None:
        raise HopefearError("there are no lists to learn from")
    feature_map, numbered = numbering.finish()
    return teaching(builder.dataset(numbered, feature_map))


def teaching(data: ListDataset) -> ListDataset:
    """Returns the data with the weight 0 for lists that teach nothing."""
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
    check_at_least("min_count", count, 1)
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
    learner: str | Learner = DEFAULT_LEARNER,
    params: Mapping[str, Any] | None = None,
    *,
    tied: bool = False,
    metric: str | ListMetric | None = None,
    **common: Any,
) -> Trained:
    """Train a reranker.

    Parameters
    ----------
    data : ListDataset
        Lists with a cost for every candidate; see :func:`dataset`.
    learner, params
        Name of a recipe and the parameters to replace, or a learner.
    tied : bool
        Treat all candidates as cheap as the oracle as right, not the oracle alone.
    metric : str or ListMetric, optional
        Scores choices; that of the data unless said.
    **common
        What all tasks share: passes (5 unless said), their order, held-out data, events,
        checkpoints; see :func:`hopefear.tasks.base.train`.

    Examples
    --------
    >>> from hopefear.data.generators import candidate_lists
    >>> data = dataset(candidate_lists(200, doubt=3.0))
    >>> model = train(data, "perceptron", epochs=5).model
    >>> found = scores(data, model.predict(data), model.metric)["cost"]
    >>> found < scores(data, np.zeros(200, int), model.metric)["cost"]
    True
    """
    return base.train(Reranking(tied, metric), data, learner, params, **common)


def evaluate(
    model: RerankModel, lists: Blocks | ListDataset, *, samples: int = 1000, seed: int = 1
) -> ListScores:
    """Scores of the model's choices beside the generator's 1-best, the oracle and the worst.

    Parameters
    ----------
    model : RerankModel
        What chooses.
    lists : CandidateLists, several, or ListDataset
        Lists with costs, or with references.
    samples, seed : int
        Resamples behind bounds and p-values.
    """
    data = model.encode(lists, judged=True)
    rows, ranker = data.rows, model.ranker()
    points = ranker.scores(rows)
    return evaluate_lists(
        model.metric,
        counts_of(data, model.metric),
        rows.starts,
        ranker.predict(rows, points),
        rows.costs,
        scores=data.scores,
        model_scores=points,
        n_references=data.n_references,
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
