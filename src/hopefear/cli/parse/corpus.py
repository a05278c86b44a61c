"""Treebanks as the verbs want them: trees, and the tags they are learned with."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hopefear.cli.console import Console, tell_skipped
from hopefear.cli.old import Corpus
from hopefear.cli.options import first_learner, threads
from hopefear.cli.surface import Score, load_model
from hopefear.data.files import ReadReport
from hopefear.data.tree_rows import TreeDataset
from hopefear.data.treebank import Treebank, read_treebank
from hopefear.errors import HopefearError
from hopefear.features.arcs.token_arcs import TokenArcs
from hopefear.metrics import Dependencies
from hopefear.tasks.parse import task
from hopefear.tasks.parse.model import ParseModel
from hopefear.tasks.parse.prepare import AUTO, USUAL, Prepared, of_learner, prepare, recall_of


def read(args: argparse.Namespace, console: Console) -> Parsed:
    """The treebank of ``--train``."""
    report = ReadReport()
    bank = read_treebank(args.train, on_error=args.on_error, report=report)
    tell_skipped(report, console)
    given = {**vars(args), "random_state": args.seed, "n_jobs": threads(args.jobs)}
    options = {name: given[name] for name in USUAL if given.get(name) is not None}
    options["learner"], options["params"] = first_learner(args)
    if args.tagger not in (None, [AUTO]):
        options["tagger"] = [tagger_of(path) for path in args.tagger]
    elif args.tagger:
        options["tagger"] = AUTO
    options = {**USUAL, **options}
    # Of learners that are compared, each takes those of the options that are for it.
    prepared = prepare(bank, options if hasattr(args, "learner") else of_learner(options))
    return Parsed.of(replace(prepared, options=options), report.skipped)


@dataclass(frozen=True, kw_only=True)
class Parsed(Corpus):
    """What a parser is trained on."""

    prepared: Prepared

    title, unit = "Parsers compared", "sentences"

    @classmethod
    def of(cls, prepared: Prepared, skipped: int) -> Parsed:
        return cls(
            data=prepared.data,
            skipped=skipped,
            reading=prepared.reading,
            jobs=prepared.options["n_jobs"],
            prepared=prepared,
        )

    @property
    def scores(self) -> tuple[Score, ...]:
        labelled = (Score("LAS", "las"),) if self.data.labels else ()
        return (*labelled, Score("UAS", "uas"))

    def sizes(self) -> dict[str, Any]:
        data = self.data
        return {
            "sentences": len(data),
            "tokens": data.n_tokens,
            "features": data.features.size,
            "relations": len(data.labels),
        }

    def describe(self) -> str:
        data, kind = self.data, self.data.kind
        relations = f", {len(data.labels)} relations" if data.labels else ", no relations"
        taggers = self.prepared.task.taggers
        tags = f"tags {data.features.columns[2]}"
        if taggers is not None:
            tags = f"{', '.join(taggers.columns)} of {len(taggers.parts)} taggers"
        return (
            f"{data.source}: {data.bank.describe()}{relations}, {tags}; {kind.name} trees of "
            f"order {kind.order}"
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        return tuple(self.prepared.messages)

    def held_out(self, which: str, args: argparse.Namespace, console: Console) -> TreeDataset:
        report = ReadReport()
        bank = read_treebank(getattr(args, which), on_error=args.on_error, report=report)
        tell_skipped(report, console)
        data = self.prepared.held_out(bank)
        console.say(f"{bank.source}: {bank.describe()}; {recall_in_words(data)}")
        return data

    def suiting(self, learner: str, params: Mapping[str, Any]) -> Parsed:
        prepared = self.prepared.for_learner(learner, params)
        return self if prepared is self.prepared else Parsed.of(prepared, self.skipped)

    def adapted(self, task: task.Parsing) -> task.Parsing:
        return replace(task, kind=self.data.kind)

    def encoded(self, data: TreeDataset) -> TreeDataset:
        same = data.features is self.data.features
        return data if same else self.prepared.held_out(data)

    def alone(self, jobs: int) -> Parsed:
        return replace(self, jobs=jobs)

    def task(self, args: argparse.Namespace) -> task.Parsing:
        return self.prepared.task

    def facts(self) -> dict[str, Any]:
        facts = super().facts()
        facts["examples"] = facts.pop("sentences")
        return facts

    def settings(self, args: argparse.Namespace) -> dict[str, Any]:
        kind, network = self.data.kind, self.data.features.kind == TokenArcs.kind
        return {
            "tree": kind.name,
            "features": None if network else args.features or "standard",
            "order": kind.order,
            "tags": args.tags,
            "hash_bits": args.hash_bits,
            "dictionary": args.dictionary,
        }

    def outcome(self, trained: Any, last: Mapping[str, Any]) -> dict[str, Any]:
        data = self.data
        return {
            **super().outcome(trained, last),
            "order": data.kind.order,
            "tree": data.kind.name,
            "arcs": int(data.rows.heads.size),
            "lifted": data.lifted,
            "temperature": trained.model.temperature,
        }

    def summary(self, result: Mapping[str, Any], trained: Any) -> dict[str, str | None]:
        return {"temperature": f"{result['temperature']:.3g}"}

    def comparison(self, test: TreeDataset) -> dict[str, Any]:
        kind = {"order": self.data.kind.order, "tree": self.data.kind.name}
        return {**super().comparison(test), "test_tokens": test.n_tokens, **kind}

    def judge(self, model: ParseModel, test: TreeDataset) -> tuple[dict[str, float], np.ndarray]:
        codes, metric = model.decoder(self.jobs).predict(test.rows), self.tester()
        rows = metric.statistics(*task.judged(test.bank, codes, model.labels))
        return metric.scores(rows.sum(axis=0)), rows

    def shown(self, test: TreeDataset, i: int) -> str:
        words = test.bank.take([i]).sentences.columns["form"].texts()
        return f"{i + 1}: {' '.join(words)}"

    def tester(self) -> Dependencies:
        return Dependencies(bool(self.data.labels))


def recall_in_words(data: TreeDataset) -> str:
    """How good the choice of arcs is."""
    arcs = data.rows.heads.size / max(1, data.n_tokens)
    return f"{recall_of(data):.2f} % of the right heads are among the {arcs:.1f} looked at"


def tagger_of(path: str) -> Any:
    """The tagger in a model file; models of other tasks are refused."""
    name, model = load_model(path)
    if name != "tag":
        raise HopefearError(
            f"--tagger {path}: this is a model of the task {name}; give one of the task tag"
        )
    return model


def with_taggers(model: ParseModel, args: argparse.Namespace) -> ParseModel:
    """The model, with the taggers of ``--tagger`` where there are some."""
    if not args.tagger:
        return model
    return model.with_tagger([tagger_of(path) for path in args.tagger])


def read_for(
    path: str, args: argparse.Namespace, report: ReadReport, heads: bool = False
) -> Treebank:
    """A treebank, or words without trees; another format than that of ``--format`` is refused."""
    bank = read_treebank(path, heads=heads, on_error=args.on_error, report=report)
    if args.format != "auto" and (args.format == "columns") != (bank.format == "columns"):
        raise HopefearError(f"--format {args.format}: {path} is {bank.format}; leave it out")
    return bank
