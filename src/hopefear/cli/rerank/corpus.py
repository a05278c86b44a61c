"""Files of lists, as the verbs want them: by the metric asked for, or as a model wants them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hopefear.cli.console import Console, scored, tell_skipped
from hopefear.cli.old import Corpus
from hopefear.cli.options import threads
from hopefear.cli.surface import Score
from hopefear.core.progress import counted
from hopefear.data.files import ReadReport
from hopefear.data.lists.candidates import CandidateLists, without_copies
from hopefear.data.lists.dataset import ListDataset, encoded
from hopefear.data.lists.files import read_lists
from hopefear.data.lists.input import UnjudgedError
from hopefear.errors import HopefearError
from hopefear.metrics.lists import ListMetric, metric_named
from hopefear.tasks.rerank.model import RerankModel

_TITLES = {"f1": "F1", "bleu": "BLEU", "chrf": "chrF", "ter": "TER", "wer": "WER", "cer": "CER"}


def read(args: argparse.Namespace, console: Console) -> Candidates:
    """The lists of ``--train``."""
    from hopefear.tasks.rerank import judging, task

    metric, report = metric_asked(args.metric, args.metric_option, args.refs), ReadReport()
    how = {**_how(args), "format": args.format}
    blocks = judged_blocks(args.train, metric, report, args.gold, refs=args.refs, **how)
    data = task.dataset(
        counted(blocks, args.train, "lists"),
        args.features or "auto",
        min_count=args.min_count,
        baseline=args.baseline,
        oracle=args.oracle,
        metric=metric,
    )
    tell_skipped(report, console)
    task.check(data)
    trees = data.features.extraction.trees is not None
    return Candidates(
        data=data,
        skipped=report.skipped,
        reading={"dedup": args.dedup},
        jobs=threads(args.jobs),
        judged_by=judging.metric_of(metric, data),
        features=args.features or (task.TREE_FEATURES if trees else task.OTHER_FEATURES),
        min_count=args.min_count or (task.TREE_COUNT if trees else task.OTHER_COUNT),
    )


@dataclass(frozen=True, kw_only=True)
class Candidates(Corpus):
    """What a reranker is trained on.

    Parameters
    ----------
    data, skipped, reading, jobs
        As in `Corpus`.
    judged_by : ListMetric
        What makes costs and scores.
    features : str
        Name of the feature set.
    min_count : int
        Lists that a feature must tell candidates apart in.
    """

    data: ListDataset
    judged_by: ListMetric
    features: str = ""
    min_count: int = 1

    title, unit = "Rerankers compared", "lists"
    notes = ("oracle first: lists, in percent, where the choice is as cheap as the cheapest.",)

    @property
    def scores(self) -> tuple[Score, ...]:
        main, higher = self.judged_by.main, self.judged_by.higher
        score = Score(_TITLES.get(main, main), main, higher, unit="")
        return score, Score("oracle first", "oracle_rate", unit=" % of lists")

    @property
    def idle(self) -> int:
        """Lists that teach nothing."""
        from hopefear.tasks.rerank.task import idle_lists

        return int(idle_lists(self.data).sum())

    @property
    def seen(self) -> int | None:
        """Features there were before the rare ones were left out, where the map knows."""
        return getattr(self.data.features, "seen", None)

    def describe(self) -> str:
        data, features = self.data, f"{self.data.features.size:,} features"
        if self.seen is not None:
            features = f"{data.features.size:,} of {self.seen:,} features kept"
        often = f", in {self.min_count} lists or more" if self.min_count > 1 else ""
        return (
            f"{data.source}: {len(data):,} lists, {data.n_candidates:,} candidates, {features} "
            f"({self.features}{often}), judged by {self.judged_by.name}"
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        idle = f"lists that teach nothing, of one candidate or of equal costs: {self.idle:,}"
        return (idle,) if self.idle else ()

    def held_out(self, which: str, args: argparse.Namespace, console: Console) -> ListDataset:
        path, gold = getattr(args, which), getattr(args, f"{which}_gold")
        report, option = ReadReport(), f"--{which}-gold"
        how = {**_how(args), "prefer": args.format, "refs": getattr(args, f"{which}_refs")}
        blocks = judged_blocks(path, self.judged_by, report, gold, option, **how)
        data = encoded(
            counted(blocks, path, "lists"),
            self.data.features,
            args.baseline,
            oracle=args.oracle,
            metric=self.judged_by,
        )
        tell_skipped(report, console)
        return data

    def task(self, args: argparse.Namespace) -> Any:
        from hopefear.tasks.rerank.task import Reranking

        return Reranking(args.tied, self.judged_by)

    def facts(self) -> dict[str, Any]:
        data = self.data
        return {
            "digest": data.digest,
            "examples": len(data),
            "candidates": data.n_candidates,
            "idle": self.idle,
            "features": data.features.size,
        }

    def settings(self, args: argparse.Namespace) -> dict[str, Any]:
        return {
            "features": self.features,
            "min_count": self.min_count,
            "metric": self.judged_by.cost_signature(),
            "baseline": args.baseline,
            "dedup": args.dedup,
            "oracle": args.oracle,
            "tied": args.tied,
        }

    def sizes(self) -> dict[str, Any]:
        data = self.data
        return {
            "lists": len(data),
            "idle_lists": self.idle,
            "candidates": data.n_candidates,
            "features": data.features.size,
            "features_seen": self.seen,
            "metric": self.judged_by.name,
        }

    def outcome(self, trained: Any, last: Mapping[str, Any]) -> dict[str, Any]:
        return {
            **super().outcome(trained, last),
            "feature_set": self.features,
            "main_score": self.judged_by.main,
            "temperature": trained.model.temperature,
        }

    def summary(self, result: Mapping[str, Any], trained: Any) -> dict[str, str | None]:
        return {"temperature": f"{result['temperature']:.3g}"}

    def tested_on(self, test: ListDataset) -> str:
        from hopefear.tasks.rerank.judging import limits

        first, oracle = (scored(self.metric, n) for n in limits(test, self.judged_by).values())
        title = self.scores[0].title
        return f"{super().tested_on(test)}, {title} of 1-best {first}, of the oracle {oracle}"

    def comparison(self, test: ListDataset) -> dict[str, Any]:
        from hopefear.tasks.rerank.judging import limits

        return {**super().comparison(test), **limits(test, self.judged_by)}

    def judge(self, model: RerankModel, test: ListDataset) -> tuple[dict[str, float], np.ndarray]:
        from hopefear.tasks.rerank.judging import counts_of, scores

        best = model.predict(test)
        stats = counts_of(test, self.judged_by)[test.rows.starts[:-1] + best]
        return scores(test, best, self.judged_by), stats

    def tester(self) -> Any:
        return self.judged_by


def _how(args: argparse.Namespace) -> dict[str, Any]:
    return {"dedup": args.dedup, "on_error": args.on_error}


def metric_asked(
    name: str | None, options: Sequence[tuple[str, str]], refs: Sequence[str] | None = None
) -> ListMetric | None:
    """The metric of ``--metric`` and ``--metric-option``; None where files bring their costs.

    Of lists of Moses, which are split into words, with ``--refs`` it is BLEU unless said.

    >>> metric_asked("bleu", [("lowercase", "true")]).lowercase
    True
    """
    if name is None:
        if options:
            raise HopefearError("--metric-option belongs to a metric: give --metric NAME too")
        return None if refs is None else metric_named("bleu", tokenize="none")
    from hopefear.recipes.base import number

    usual = metric_named(name).parameters()
    parameters = dict(options)
    for key, text in options:
        like = usual.get(key, "")  # what a metric does not know, it refuses itself
        if not isinstance(like, str):
            parameters[key] = number(key, text, 0.0 if like is None else like)
    return metric_named(name, **parameters)


def judged_blocks(
    path: str,
    metric: ListMetric | None,
    report: ReadReport,
    gold: str | None = None,
    option: str = "--gold",
    refs: Sequence[str] | None = None,
    **how: Any,
) -> Iterator[CandidateLists]:
    """Blocks of a file in which every candidate must have a cost.

    Parameters
    ----------
    path : str
        The file.
    metric : ListMetric, optional
        Makes the costs; None takes those of the file.
    report : ReadReport
        Where lists are counted.
    gold, option : str
        The file of gold trees, if there is one, and the option that gives it.
    refs : sequence of str, optional
        Files of references, for lists of Moses.
    **how
        As :func:`hopefear.data.lists.files.read_lists` has it.
    """
    try:
        yield from read_lists(
            path, metric=metric, require_costs=True, gold=gold, refs=refs, report=report, **how
        )
    except UnjudgedError as error:
        if error.format == "bllip":
            raise HopefearError(f"{error}; give them with {option} FILE") from error
        if error.format == "moses" and refs is None:
            refs_option = option.replace("gold", "refs")
            raise HopefearError(f"{error}; give them with {refs_option} FILE") from error
        if error.format == "json" and metric is None:
            raise HopefearError(
                f"{error}; --metric NAME makes them of texts and references"
            ) from error
        raise


def reading_of(model: RerankModel) -> dict[str, Any]:
    """How the training data of a model was read; models made elsewhere may not say."""
    return {"dedup": "first", **model.about.get("reading", {})}


def seen_by_model(block: CandidateLists, policy: str) -> tuple[CandidateLists, np.ndarray]:
    """The block as a model sees it, and where its candidates stand in the lists of the file.

    >>> block = CandidateLists(["a"], np.array([0, 3]), ["x", "x", "y"], np.zeros(3))
    >>> seen_by_model(block, "first")[1].tolist()
    [0, 2]
    """
    mask = without_copies(block, policy)
    lengths = np.diff(block.starts)
    places = np.arange(block.n_candidates) - np.repeat(block.starts[:-1], lengths)
    return block.keep(mask), places[mask]
