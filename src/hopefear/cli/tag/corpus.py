"""Files of tokens, as commands that learn want them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hopefear.cli.console import Console, tell_skipped
from hopefear.cli.guard import complain
from hopefear.cli.old import Corpus
from hopefear.cli.options import first_learner, threads
from hopefear.cli.surface import Score
from hopefear.data.files import ReadReport
from hopefear.data.schemes import no_spans
from hopefear.data.sequences import SequenceDataset
from hopefear.data.token_examples import TokenExamples, read_tokens, token_parts
from hopefear.data.token_files import token_format
from hopefear.errors import HopefearError
from hopefear.metrics import Tagging as TaggingScores
from hopefear.tasks.tag.model import SequenceModel
from hopefear.tasks.tag.prepare import HeldOut, Options, Prepared, cached, prepare
from hopefear.tasks.tag.task import Tagging, check, reading_of, score_names

# Bytes of text to encode at a time, whose attributes take some 40 times as much; and bytes by which
# the scheme of the labels and the templates are chosen.
PIECE_BYTES, LOOK_BYTES = 1 << 20, 1 << 23


def options_of(args: argparse.Namespace) -> Options:
    """Returns how sentences are prepared."""
    learner, params = first_learner(args)
    return Options(
        learner=learner,
        params=params,
        features=args.features or "auto",
        scheme=None if args.scheme == "none" else args.scheme,
        scheme_errors=args.scheme_errors,
        convert=args.convert,
        min_count=args.min_count,
        hash_bits=args.hash_bits,
        names=not args.no_names,
        allow_outside=args.allow_outside,
    )


def tell_mended(console: Console, args: argparse.Namespace, *messages: str) -> None:
    """Says what was wrong with labels."""
    for message in filter(None, messages):
        console.say(f"{message} (--scheme-errors {args.scheme_errors})")


def read(args: argparse.Namespace, console: Console) -> Tokens:
    """Returns the tokens of ``--train``."""
    report = ReadReport()
    if getattr(args, "cache", None) is not None:
        prepared = _cached(args, console, report)
        tell_skipped(report, console)
    else:
        how: dict[str, Any] = {"columns": args.columns, "on_error": args.on_error}
        examples = read_tokens(args.train, args.format, report=report, **how)
        tell_skipped(report, console)
        prepared = prepare(examples.labelled(args.column), options_of(args))
        tell_mended(console, args, *prepared.messages)
        prepared = replace(prepared, skipped=report.skipped)
        check(prepared.data)
        inputs = prepared.plan.inputs
        if args.features and hasattr(args, "learner") and not getattr(inputs, "templates", True):
            raise HopefearError(
                f"--features {args.features}: {args.learner} reads words; leave it out, or add "
                "the templates by -p wide=true"
            )
    typed = args.columns or args.features or hasattr(args, "learners")
    fewer = () if typed else prepared.words_alone()
    # Other learners may want other inputs, where several are compared, and --dev may choose fewer
    # columns (networks take too long to try); else the text may go.
    both = fewer and args.dev and prepared.plan.inputs is prepared.plan.templates
    if not (hasattr(args, "learners") or both):
        prepared = replace(prepared, examples=None)
    return Tokens(
        data=prepared.data,
        skipped=prepared.skipped,
        reading=prepared.reading,
        jobs=threads(args.jobs),
        prepared=prepared,
        fewer=fewer,
    )


def parts(
    args: argparse.Namespace, form: str, report: ReadReport, piece_bytes: int | None
) -> Iterator[TokenExamples]:
    """Yields the labelled tokens of ``--train`` piece by piece."""
    how: dict[str, Any] = {"columns": args.columns, "on_error": args.on_error}
    for part in token_parts(args.train, format=form, report=report, piece_bytes=piece_bytes, **how):
        yield part.labelled(args.column)


def _cached(args: argparse.Namespace, console: Console, report: ReadReport) -> Prepared:
    """The tokens of ``--train`` as a cache has them."""
    form = token_format(args.train, args.format, args.columns)
    if form == "crfsuite":
        raise HopefearError(
            f"--cache {args.cache}: {args.train} is a CRFsuite file, and caches are made of "
            "columns and CoNLL-U; leave it out"
        )

    def beginning(first: TokenExamples) -> TokenExamples:
        if args.train == "-":  # which is not read twice
            return first
        return next(parts(args, form, ReadReport(), LOOK_BYTES))

    names = ("format", "columns", "column", "on_error", "encoding")
    return cached(
        args.cache,
        args.train,
        options_of(args),
        lambda: parts(args, form, report, PIECE_BYTES),
        beginning,
        {name: getattr(args, name) for name in names},
        report,
        console.say,
    )


@dataclass(frozen=True, kw_only=True)
class Tokens(Corpus):
    """What a tagger is trained on.

    Parameters
    ----------
    data, skipped, reading, jobs
        As in `Corpus`.
    prepared : Prepared
        The same, and how it came about.
    fewer : tuple of str
        Names of columns with which the model could tag text, where with its own it cannot.
    held : dict
        By identity, held-out datasets with what they come from.
    """

    prepared: Prepared
    fewer: tuple[str, ...] = ()
    held: dict[int, tuple[TokenExamples, HeldOut]] = field(default_factory=dict)

    title, unit = "Taggers compared", "sentences"

    @property
    def scores(self) -> tuple[Score, ...]:
        spans = () if self.prepared.plan.schemes.model is None else (Score("F1", "f1"),)
        return (*spans, Score("accuracy", "accuracy"))

    def describe(self) -> str:
        data, schemes = self.data, self.prepared.plan.schemes
        edges = f" and {data.features.edge_size:,} of edges" if data.features.edge_size else ""
        scheme = no_spans(data.labels)
        if schemes.source is not None:
            scheme = f"{schemes.source.upper()} spans"
        if schemes.model != schemes.source:
            scheme += f" learned as {str(schemes.model).upper()}"
        return (
            f"{data.source}: {len(data):,} sentences, {data.n_tokens:,} tokens, "
            f"{len(data.labels)} labels ({scheme}), {data.features.size:,} features{edges} "
            f"({self.prepared.feature_set})"
        )

    def held_out(self, which: str, args: argparse.Namespace, console: Console) -> SequenceDataset:
        report, like = ReadReport(), self.reading or {}
        how: dict[str, Any] = {"columns": like["columns"], "on_error": args.on_error}
        examples = read_tokens(getattr(args, which), like["format"], report=report, **how)
        tell_skipped(report, console)
        examples = examples.labelled(like["column"])
        found = self.prepared.held_out(examples)
        tell_mended(console, args, found.message)
        if found.warning:
            complain(f"warning: {found.warning}")
        if self.prepared.examples is not None:
            self.held[id(found.data)] = examples, found
        return found.data

    @property
    def remarks(self) -> tuple[str, ...]:
        if not self.fewer:
            return ()
        columns = ", ".join(n for n in (self.reading or {})["columns"] if n not in self.fewer)
        typed = f"--columns {','.join(self.fewer)}"
        if self.prepared.examples is not None:
            return (f"features look at the column {columns}: words alone ({typed}) are tried too",)
        return (
            f"features look at the column {columns}, so the model cannot tag text; {typed} makes "
            "one that can",
        )

    def rival(self, args: argparse.Namespace) -> Tokens | None:
        if not self.fewer or self.prepared.examples is None:
            return None
        return replace(self._of(self.prepared.renamed(self.fewer)), fewer=())

    def suiting(self, learner: str, params: Mapping[str, Any]) -> Tokens:
        if self.prepared.examples is None:
            return self
        return self._of(self.prepared.for_learner(learner, params))

    def _of(self, prepared: Prepared) -> Tokens:
        return replace(self, prepared=prepared, data=prepared.data, reading=prepared.reading)

    def encoded(self, data: SequenceDataset) -> SequenceDataset:
        if data.features is self.data.features or id(data) not in self.held:
            return data
        examples, _ = self.held[id(data)]
        if self.fewer == () and examples.form == "columns":
            examples = examples.renamed((self.reading or {})["columns"])
        return self.prepared.held_out(examples).data

    def alone(self, jobs: int) -> Tokens:
        return replace(self, jobs=jobs, prepared=replace(self.prepared, examples=None), held={})

    def task(self, args: argparse.Namespace) -> Any:
        model = self.prepared.plan.schemes.model
        how = args.order, args.search, args.beam, model, args.constraints, args.class_weight
        return Tagging(*how)

    def facts(self) -> dict[str, Any]:
        facts = super().facts()
        facts["examples"] = facts.pop("sentences")
        return facts

    def settings(self, args: argparse.Namespace) -> dict[str, Any]:
        names = ("order", "search", "constraints", "class_weight")
        return {
            "features": self.prepared.feature_set,
            "scheme": self.prepared.plan.schemes.model,
            **{name: getattr(args, name) for name in names},
        }

    def sizes(self) -> dict[str, Any]:
        data = self.data
        return {
            "sentences": len(data),
            "tokens": data.n_tokens,
            "features": data.features.size,
            "labels": len(data.labels),
        }

    def outcome(self, trained: Any, last: Mapping[str, Any]) -> dict[str, Any]:
        return {
            **super().outcome(trained, last),
            "mended": self.prepared.mended,
            "edge_features": self.data.features.edge_size,
            "feature_set": self.prepared.feature_set,
            "scheme": self.prepared.plan.schemes.model,
            "temperature": trained.model.temperature,
            "hash_collisions": collisions(self.data.features),
        }

    def summary(self, result: Mapping[str, Any], trained: Any) -> dict[str, str | None]:
        hashed = result["hash_collisions"]
        return {
            "hash collisions": None if hashed is None else f"{hashed:.2f} % of features",
            "temperature": f"{result['temperature']:.3g}",
        }

    def comparison(self, test: SequenceDataset) -> dict[str, Any]:
        tokens, scheme = test.n_tokens, self.prepared.plan.schemes.source
        return {**super().comparison(test), "test_tokens": tokens, "scheme": scheme}

    def judge(
        self, model: SequenceModel, test: SequenceDataset
    ) -> tuple[dict[str, float], np.ndarray]:
        rows, metric = test.rows, self.tester()
        tags = model.decoder(n_jobs=self.jobs).predict(rows)
        statistics = metric.statistics(rows.labels, tags, rows.starts, test.labels)
        values = metric.scores(statistics.sum(axis=0))
        return {name: values[name] for name in score_names(model.scheme)}, statistics

    @property
    def each_by(self) -> tuple[str, bool]:
        return "accuracy", True  # a sentence may have no spans

    def shown(self, test: SequenceDataset, i: int) -> str:
        kept = self.held.get(id(test))
        words = None if kept is None else kept[1].examples.words
        if words is None:
            return super().shown(test, i)
        tokens = words.ids[slice(*test.rows.starts[i : i + 2])]
        return f"{i + 1}: {' '.join(words.strings[k] for k in tokens)}"

    def tester(self) -> TaggingScores:
        return TaggingScores(reading_of(self.prepared.plan.schemes.model))


def collisions(features: Any) -> float | None:
    """Returns the percent of hashed features that share a column; None without hashing."""
    return 100.0 * features.collisions if getattr(features, "hash_bits", None) else None
