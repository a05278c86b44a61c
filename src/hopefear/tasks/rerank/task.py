"""The task ``rerank``: its options, how it is learned, and how choices are scored."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hopefear.data.lists.dataset import ListDataset, counts_of, idle_lists
from hopefear.errors import HopefearError
from hopefear.features.lists.extraction import Extraction
from hopefear.metrics.lists import ListMetric, metric_named
from hopefear.recipes import Scale
from hopefear.recipes.scales import scale_of
from hopefear.structures.nbest import NBest
from hopefear.tasks import TASKS
from hopefear.tasks.base import Task, best_of
from hopefear.tasks.rerank.model import RerankModel, check_features
from hopefear.training.decoders.lists import ListDecoder, check_offsets
from hopefear.training.loop import Fit, LearningWarning
from hopefear.training.passes import Passes
from hopefear.training.predictors import Predictor

DEFAULT_LEARNER = TASKS["rerank"].learner
# Lists that a temperature is fitted on, at most, and the parts in which they are scored.
_FITTED_ON, _PARTS = 5_000, 100
EPOCHS = 5


@dataclass(frozen=True)
class Reranking(Task):
    """How lists become features and costs, and which of their candidates are to be learned.

    Parameters
    ----------
    features, min_count, baseline, oracle, tied, metric, dedup
        As of :class:`hopefear.Reranker`.
    """

    name: ClassVar[str] = "rerank"
    epochs: ClassVar[int] = EPOCHS
    features: str | Extraction = "auto"
    min_count: int | None = None
    baseline: str = "feature"
    oracle: str = "first"
    tied: bool = False
    metric: str | ListMetric | None = "auto"
    dedup: str = "first"

    @property
    def judge(self) -> ListMetric | None:
        """What makes the costs; None where lists have them already."""
        return named_metric(self.metric)

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
            check_offsets(learner.averaging, data.rows)

    def score_names(self, data: ListDataset) -> tuple[str, ...]:
        oracles = np.asarray(data.rows.oracles, np.int64)
        return tuple(scores(data, oracles, metric_of(self.metric, data)))

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


def named_metric(metric: str | ListMetric | None) -> ListMetric | None:
    """Returns the metric of that name; None where lists are judged already.

    >>> named_metric("auto"), named_metric("wer").name
    (None, 'wer')
    """
    if metric is None or metric == "auto":
        return None
    return metric_named(metric) if isinstance(metric, str) else metric


def metric_of(metric: str | ListMetric | None, data: ListDataset) -> ListMetric:
    """Returns the metric meant, which must be the one that the data was judged by."""
    judge = named_metric(metric) or metric_named(data.metric)
    if judge.name not in (data.metric, "cost"):
        raise HopefearError(
            f"{data.source} was judged by {data.metric}, not by {judge.name}; make the dataset "
            f"with metric={judge.name!r}"
        )
    return judge


def scores(data: ListDataset, best: np.ndarray, metric: ListMetric) -> dict[str, float]:
    """Returns scores of a choice: the metric's, and how often it is as cheap as the oracle."""
    rows, first = data.rows, data.rows.starts[:-1]
    values = dict(metric.scores(counts_of(data, metric)[first + best].sum(axis=0)))
    right = rows.costs[first + best] == rows.costs[first + rows.oracles]
    return {**values, "oracle_rate": 100.0 * float(right.mean()) if len(right) else 0.0}


def limits(data: ListDataset, metric: ListMetric) -> dict[str, float]:
    """Returns the main score of the generator's first choices and of the oracle."""
    rows, main = data.rows, metric.main
    choices = {"baseline": data.first_choices, "oracle": np.asarray(rows.oracles, np.int64)}
    return {f"{who}_{main}": scores(data, best, metric)[main] for who, best in choices.items()}


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
