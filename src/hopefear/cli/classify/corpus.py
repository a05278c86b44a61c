"""Files of examples, as the verbs want them: whole, cached on disk, or block by block."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hopefear.cli.console import Console, tell_skipped
from hopefear.cli.old import Corpus
from hopefear.cli.options import threads
from hopefear.cli.surface import Score, load_model
from hopefear.data.cache import sound_header, use_cache
from hopefear.data.examples import examples
from hopefear.data.files import ReadReport
from hopefear.data.labels import check_classes
from hopefear.data.sidecars import read_names, read_weights
from hopefear.data.sparse import SparseDataset, norm_for
from hopefear.data.text_formats import class_label
from hopefear.errors import HopefearError
from hopefear.features import IdentityFeatures
from hopefear.features.ngrams import PLAIN, WHOLE, settled
from hopefear.metrics import Accuracy, classification_scores
from hopefear.storage import field_of
from hopefear.tasks.classify.model import Model
from hopefear.training.predictors import LinearPredictor

_WORDS = 30  # features that stand for an example
_MOST_NEW = 1000  # classes that a model lacks
_USUAL = {
    "ngrams": "auto",
    "chars": "auto",
    "lowercase": True,
    "marks": "auto",
    "min_count": 1,
    "max_share": 1.0,
    "hash_bits": None,
}


def read(args: argparse.Namespace, console: Console) -> Examples:
    """The examples of ``--train``."""
    from hopefear.tasks.classify.task import check_labels

    report = ReadReport()
    file = file_of(args.train, args, report)
    if file.kind != "text" and text_options(args) != _USUAL:
        raise HopefearError(
            f"{args.train} is {file.format}, whose features are given: --ngrams, --chars, "
            "--no-lowercase, --marks, --min-count, --max-share and --hash-bits belong to tsv and "
            "other texts; leave them out, or say --format tsv"
        )
    folder = getattr(args, "cache", None)
    cached = folder is not None
    if cached and file.message:
        raise HopefearError(f"--cache {folder} is for svmlight and tsv, and {file.message}")
    texts = file.kind == "text" and not cached
    vars(args).update(settled(vars(args), WHOLE if texts else PLAIN))
    data = (
        _cached(file, folder, args, report, console)
        if folder is not None
        else _read(file, args, report)
    )
    tell_skipped(report, console)
    if args.names:
        data = named(data, args.names)
    if getattr(args, "weights", None):
        data = with_weights(data, args.weights, report.skipped)
    check_labels(data)
    check_classes(args.train, data.classes, len(data), args.many_classes)
    say_norm(args, data, console)
    jobs = getattr(args, "jobs", None) or 1
    return Examples(data=data, skipped=report.skipped, prepared=cached, texts=texts, jobs=jobs)


@dataclass(frozen=True, kw_only=True)
class Examples(Corpus):
    """What a classifier is trained on.

    ``prepared`` where a cache holds values and norm already, ``texts`` where these are whole.
    """

    data: SparseDataset
    prepared: bool = False
    texts: bool = False

    @property
    def scores(self) -> tuple[Score, ...]:
        return Score("error", "error", higher=False), Score("F1", "f1")

    @property
    def metric(self) -> str:
        return "accuracy"

    def describe(self) -> str:
        data = self.data
        return (
            f"{data.source}: {len(data):,} examples, {data.n_features:,} features, "
            f"{len(data.classes)} classes, {data.rows.values.size:,} values"
        )

    def held_out(self, which: str, args: argparse.Namespace, console: Console) -> SparseDataset:
        path, report = getattr(args, which), ReadReport()
        like = {"features": self.data.features, "classes": self.data.classes}
        data = _read(file_of(path, args, report, **like), args, report, **like)
        tell_skipped(report, console)
        return data

    def task(self, args: argparse.Namespace) -> Any:
        from hopefear.tasks.classify.task import Classification

        return Classification(
            **self.settings(args),
            class_weight=args.class_weight,
            nb_share=args.nb_share,
            texts=self.texts,
            transformed=self.prepared,
        )

    def comparator(self, args: argparse.Namespace) -> Any:
        if (path := args.comparator) is None:
            return None
        task, model = load_model(path)
        if (
            task != "classify"
            or model.classes != self.data.classes
            or model.features.to_header() != self.data.features.to_header()
        ):
            raise HopefearError(
                f"--comparator {path}: the model has other classes or features than "
                f"{self.data.source}; give one trained on the same columns"
            )
        if not isinstance(model.predictor, LinearPredictor):
            raise HopefearError(
                f"--comparator {path}: a voted model has no single weights; give one "
                "trained with readout=averaged or last"
            )
        return model.predictor.weights

    def sizes(self) -> dict[str, Any]:
        data = self.data
        return {
            "examples": len(data),
            "features": data.n_features,
            "classes": len(data.classes),
        }

    def settings(self, args: argparse.Namespace) -> dict[str, Any]:
        norm = norm_of(args, self.data)
        return {"values": args.values, "norm": norm, "intercept": args.intercept}

    def outcome(self, trained: Any, last: Mapping[str, Any]) -> dict[str, Any]:
        return {**super().outcome(trained, last), "temperature": trained.model.temperature}

    def summary(self, result: Mapping[str, Any], trained: Any) -> dict[str, str | None]:
        return {
            "updates": f"{result['updates']:,} on {trained.fit.trainer.examples:,} examples",
            **super().summary(result, trained),
            "temperature": f"{result['temperature']:.3g}",
        }

    def judge(self, model: Model, test: SparseDataset) -> tuple[dict[str, float], np.ndarray]:
        labels, decisions = model.decide(test)
        scores = classification_scores(
            test.rows.labels,
            labels,
            n_classes=len(model.classes),
            probabilities=model.answers().shares(decisions),
        )
        names = ("error", "accuracy", "f1", "precision", "recall", "log_loss")
        return {key: scores[key] for key in names}, Accuracy().statistics(test.rows.labels, labels)

    def shown(self, test: SparseDataset, i: int) -> str:
        names = test.features.names(test.rows.indices[slice(*test.rows.indptr[i : i + 2])][:_WORDS])
        return f"{i + 1}: {' '.join(map(str, names))}"

    def tester(self) -> Accuracy:
        return Accuracy()


def norm_of(args: argparse.Namespace, data: SparseDataset) -> str:
    """``--norm``, or what suits the data."""
    return norm_for(args.norm, data.features, len(data), data.rows.values.size)


def say_norm(args: argparse.Namespace, data: SparseDataset, console: Console) -> None:
    """Say that the data decided against a norm."""
    if args.norm != norm_of(args, data) == "none":
        console.say(
            f"{args.train}: {data.n_features} columns that most rows fill, so rows keep their "
            "length (--norm l2 divides them by it)"
        )


def named(data: SparseDataset, path: str) -> SparseDataset:
    """The data with names for its columns."""
    if not isinstance(data.features, IdentityFeatures):
        raise HopefearError(
            f"--names {path}: names belong to svmlight ids below 2^26, and "
            f"{data.source} has other features; leave --names out"
        )
    features = read_names(path, data.n_features)
    renamed = SparseDataset(
        data.rows, data.n_features, data.classes, features, data.source, data.digest
    )
    renamed.cache = data.cache
    return renamed


def with_weights(data: SparseDataset, path: str, skipped: int) -> SparseDataset:
    """The data with example weights from a file."""
    if skipped:
        raise HopefearError(
            f"--weights {path}: {skipped} bad lines were left out, so weights and examples no "
            "longer pair; mend the lines"
        )
    from hopefear.tasks.classify.task import reweighted

    return reweighted(data, read_weights(path, len(data)))


def blocks(
    path: str, model: Model, args: Any, report: ReadReport, require_labels: bool
) -> Iterator[SparseDataset]:
    """A file of any size, some rows at a time, in the columns of the model."""
    given = {"features": model.features, "classes": model.classes}
    file = file_of(path, args, report, require_labels=require_labels, **given)
    yield from file.blocks(
        require_labels=require_labels, on_error=args.on_error, report=report, **given
    )


def judged(path: str, model: Model, args: Any, report: ReadReport) -> Iterator[SparseDataset]:
    """The rows of a labelled file; classes that the model lacks come behind those it has."""
    names = [*model.classes]
    codes = {class_label(name): i for i, name in enumerate(names)}
    codes.update((name, i) for i, name in enumerate(names))
    file = file_of(path, args, report, features=model.features)
    how = {"on_error": args.on_error, "report": report}
    for data in file.blocks(features=model.features, classes=None, **how):
        for name in data.classes:
            if name not in codes:
                codes[name] = len(names)
                names.append(name)
        new = names[len(model.classes) :]
        if len(new) > _MOST_NEW:
            raise HopefearError(
                f"{path} has more than {_MOST_NEW:,} classes that the model lacks, such as "
                f"{', '.join(new[:5])}; give labels, not targets, of the model's kind"
            )
        table = np.array([*(codes[name] for name in data.classes), -1], np.int32)
        rows = data.rows._replace(labels=table[data.rows.labels])
        yield SparseDataset(rows, data.n_features, names, data.features, data.source)


def file_of(path: str, args: Any, report: ReadReport, **like: Any) -> Any:
    """The file as it is to be read."""
    columns = {"text_column": args.text_column, "label_column": args.label_column}
    how = {"on_error": args.on_error, "report": report}
    return examples(path, args.format, **columns, **how, **like)


def _read(file: Any, args: Any, report: ReadReport, **like: Any) -> SparseDataset:
    counted = text_options(args) if file.kind == "text" else {}
    n_jobs = threads(getattr(args, "jobs", None))
    return file.read(on_error=args.on_error, report=report, n_jobs=n_jobs, **counted, **like)


def text_options(args: Any) -> dict[str, Any]:
    """What the command line says of n-grams, as readers of texts want it."""
    return {name: getattr(args, name) for name in _USUAL}


def _cached(
    file: Any, folder: str, args: Any, report: ReadReport, console: Console
) -> SparseDataset:
    from hopefear.data.cached_examples import cache_examples

    own = {"format": file.kind, "values": args.values, "norm": args.norm, **text_options(args)}
    more = {"on_error": args.on_error, "encoding": args.encoding}

    def build(target: Any) -> None:
        how = {"on_error": args.on_error, "report": report, "options": more}
        cache_examples(args.train, target, n_jobs=threads(args.jobs), **how, **own)

    options, told = {**own, **more}, report.skipped
    data = use_cache(folder, args.train, "examples", options, build, console.say)
    if report.skipped == told:  # of a cache that was there already
        with sound_header(data.cache.path):
            facts = field_of(data.cache.header, "facts", dict)
            report.skipped += field_of(facts, "skipped", int)
    return data
