"""Treebanks as the verbs want them: trees, and the tags they are learned with."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hopefear.cli.console import Console, tell_skipped
from hopefear.cli.guard import complain
from hopefear.cli.old import Corpus
from hopefear.cli.options import first_learner, threads
from hopefear.cli.surface import Score, load_model
from hopefear.data.files import ReadReport
from hopefear.data.sequences import Column, Sentences
from hopefear.data.tree_rows import TreeDataset
from hopefear.data.treebank import MISSING, Treebank, read_treebank
from hopefear.errors import HopefearError
from hopefear.features.arcs.token_arcs import TokenArcs
from hopefear.metrics import Dependencies
from hopefear.tasks import recipe
from hopefear.tasks.parse import task
from hopefear.tasks.parse.model import ParseModel

_LABELS = "(labels)"
_LISTED = 5
# Bits fewer for rows of relations, which are wider.
_FEWER = 2


def read(args: argparse.Namespace, console: Console) -> Parsed:
    """The treebank of ``--train``."""
    report = ReadReport()
    bank = read_treebank(args.train, on_error=args.on_error, report=report)
    tell_skipped(report, console)
    tagger = None if args.tagger is None else tagger_of(args.tagger)
    if tagger is not None:
        bank = jackknifed(bank, tagger, args.jackknife, console)
    source = Source(args, bank)
    inputs = source.inputs(*first_learner(args))
    data = source.dataset(inputs)
    reading = {
        "format": bank.format,
        "column": data.features.columns[2],
        "tagger": None if tagger is None else os.path.basename(args.tagger),
    }
    return Parsed(
        data=data,
        skipped=report.skipped,
        reading=reading,
        jobs=threads(args.jobs),
        described=bank.describe(),
        crossing=int((~bank.projective).sum()),
        tagger=tagger,
        origin=source,
        inputs=inputs,
    )


def _how(args: argparse.Namespace) -> dict[str, Any]:
    """What the command line says of trees and features, as the task wants it."""
    bits = {}
    if args.hash_bits is not None:
        bits = {"plain_bits": args.hash_bits, "row_bits": max(8, args.hash_bits - _FEWER)}
    return {
        "tags": None if args.tags == "gold" else args.tags,
        "labelled": not args.unlabelled,
        "heads": args.heads,
        "dictionary": args.dictionary,
        "seed": args.seed,
        "n_jobs": threads(args.jobs),
        **bits,
    }


@dataclass(frozen=True)
class Source:
    """What training data is encoded from, for one learner or another."""

    args: argparse.Namespace
    bank: Treebank

    def inputs(self, learner: str, params: Mapping[str, Any]) -> Any:
        """What a learner wants its data to be encoded with."""
        args, templates = self.args, self.args.features or "standard"
        inputs = recipe(learner, "parse").inputs(params, templates)
        if inputs is not templates and hasattr(args, "learner"):
            for option in ("features", "hash_bits", "dictionary"):
                if getattr(args, option):
                    raise HopefearError(
                        f"--{option.replace('_', '-')}: {learner} reads words and tags; leave it "
                        "out"
                    )
        return inputs

    def dataset(self, inputs: Any) -> TreeDataset:
        """The data as some features see it."""
        args = self.args
        # Among learners that are compared, a network has the one order that it can have.
        network = not isinstance(inputs, str) and not hasattr(args, "learner")
        order = None if network else args.order
        return task.dataset(self.bank, order, args.tree, features=inputs, **_how(args))


@dataclass(frozen=True, kw_only=True)
class Parsed(Corpus):
    """What a parser is trained on.

    Parameters
    ----------
    data, skipped, reading, jobs
        As in `Corpus`.
    described : str
        Size and oddities of the treebank in one line.
    crossing : int
        Sentences whose arcs cross.
    tagger : SequenceModel, optional
        What tags the words.
    origin, inputs : Source, templates or TokenIdSettings, optional
        What the data was encoded from, so that it can be encoded for other learners, and how.
    """

    data: TreeDataset
    described: str = ""
    crossing: int = 0
    tagger: Any = None
    origin: Source | None = None
    inputs: Any = None

    title, unit = "Parsers compared", "sentences"

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
        tags = "tags of a tagger" if self.tagger else f"tags {data.features.columns[2]}"
        return (
            f"{data.source}: {self.described}{relations}, {tags}; {kind.name} trees of "
            f"order {kind.order}"
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        data = self.data
        arcs = f"{data.rows.heads.size / max(1, data.n_tokens):.1f} heads a word are looked at"
        lines = [arcs]
        if data.lifted:
            lines.append(
                f"{data.lifted:,} arcs that cross others, in {self.crossing:,} sentences, were "
                "lifted: trees are projective (--tree nonprojective keeps them)"
            )
        return tuple(lines)

    def held_out(self, which: str, args: argparse.Namespace, console: Console) -> TreeDataset:
        report = ReadReport()
        bank = read_treebank(getattr(args, which), on_error=args.on_error, report=report)
        tell_skipped(report, console)
        if self.tagger is not None:
            bank = bank.with_tags(self.tagger.tag(bank.sentences))
        data = task.held_out(self.data, bank)
        warn_of_strangers(bank, data.labels)
        console.say(f"{bank.source}: {bank.describe()}; {recall_in_words(data)}")
        return data

    def suiting(self, learner: str, params: Mapping[str, Any]) -> Parsed:
        if self.origin is None:
            return self
        inputs = self.origin.inputs(learner, params)
        if isinstance(inputs, str) and inputs == self.inputs:  # what all linear learners share
            return self
        return replace(self, data=self.origin.dataset(inputs), inputs=inputs)

    def adapted(self, task: task.Parsing) -> task.Parsing:
        return replace(task, kind=self.data.kind)

    def encoded(self, data: TreeDataset) -> TreeDataset:
        same = data.features is self.data.features
        return data if same else task.held_out(self.data, data.bank)

    def alone(self, jobs: int) -> Parsed:
        return replace(self, jobs=jobs, origin=None)

    def task(self, args: argparse.Namespace) -> task.Parsing:
        return task.Parsing(self.data.kind)

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


def warn_of_strangers(bank: Treebank, labels: tuple[str, ...]) -> int:
    """Tell of relations that training did not see; the number of words that have one."""
    counts = np.bincount(bank.relations.ids, minlength=len(bank.relations.strings))
    names = zip(bank.relations.strings, counts.tolist(), strict=True)
    strange = {name: n for name, n in names if n and labels and name not in labels}
    if strange:
        examples = ", ".join(list(strange)[:_LISTED]) + (", …" if len(strange) > _LISTED else "")
        complain(
            f"warning: {bank.source}: {sum(strange.values()):,} words have relations that training "
            f"did not see ({examples}); they count as mistakes"
        )
    return sum(strange.values())


def recall_of(data: TreeDataset) -> float:
    """Percent of the words whose head is among those that are looked at."""
    rows = data.rows
    owners = np.repeat(np.arange(rows.labels.size), np.diff(rows.ptr))
    return 100.0 * np.count_nonzero(rows.heads == data.bank.heads[owners]) / max(1, data.n_tokens)


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


def jackknifed(bank: Treebank, tagger: Any, folds: int, console: Console) -> Treebank:
    """The treebank with tags as bad as those of text that a tagger has not seen.

    For each of so many parts the tagger's learner is trained on all others.
    """
    column = tagger.about.get("reading", {}).get("column") or "upos"
    columns = bank.sentences.columns
    known = column in columns and any(text != MISSING for text in columns[column].strings)
    reason = ""
    if len(bank) < folds:
        reason = f"there are only {len(bank)} sentences"
    elif folds and not known:
        reason = f"the treebank has no tags in the column {column}"
    elif folds and tagger.features.kind != "templates":
        reason = "its features are given, not made by templates"
    if folds < 2 or reason:
        said = f" ({reason})" if reason else ""
        console.say(f"the tagger tags the training trees as it is{said}; if it has learned from")
        console.say("the same text, its tags are better here than they will be later")
        return bank.with_tags(tagger.tag(bank.sentences))
    parts = np.array_split(np.arange(len(bank)), folds)
    texts: list[str] = []
    for part, model in zip(parts, _folds(bank, tagger, parts, column), strict=True):
        texts += model.tag(bank.take(part).sentences).texts()
    right = np.mean(np.array(texts) == np.array(columns[column].texts()))
    console.say(f"the tagger, trained anew on parts of the treebank: {100 * right:.2f} % right")
    return bank.with_tags(Column.of(texts))


def _folds(bank: Treebank, tagger: Any, parts: list[np.ndarray], column: str) -> Iterator[Any]:
    """A tagger like this one for each part, trained on all others."""
    from hopefear.tasks.tag.task import dataset, train

    columns = bank.sentences.columns
    table = {name: columns[name] for name in tagger.features.needs}
    table[_LABELS] = columns[column]
    text = Sentences(bank.starts, table, bank.source, bank.sentences.lines)
    given = tagger.features.templates
    # In a part of the data some of them may fire on nothing.
    templates = replace(
        given, templates=tuple(replace(each, optional=True) for each in given.templates)
    )
    learner, seed = str(tagger.about.get("learner")), int(tagger.about.get("seed", 1))
    for part in parts:
        rest = text.take(np.setdiff1d(np.arange(len(bank)), part))
        data = dataset(rest, templates, _LABELS)
        length = tagger.about.get("training", {}).get("best_epoch") or tagger.about.get("epochs")
        options = {"order": tagger.order, "scheme": None, "epochs": length, "seed": seed}
        yield train(data, learner, tagger.about.get("given"), **options).model


def tagged(
    bank: Treebank, model: ParseModel, args: argparse.Namespace, console: Console
) -> Treebank:
    """The words with the tags that a parser looks at; others than it learned from are told."""
    if args.tagger is not None:
        return bank.with_tags(tagger_of(args.tagger).tag(bank.sentences))
    origin = model.about.get("reading", {}).get("tagger")
    if origin is not None:
        console.say(
            f"{args.model} has learned from the tags of {origin}; give --tagger {origin} unless "
            f"those of {bank.source} are like them"
        )
    return bank


def read_for(
    path: str, args: argparse.Namespace, report: ReadReport, heads: bool = False
) -> Treebank:
    """A treebank, or words without trees; another format than that of ``--format`` is refused."""
    bank = read_treebank(path, heads=heads, on_error=args.on_error, report=report)
    if args.format != "auto" and (args.format == "columns") != (bank.format == "columns"):
        raise HopefearError(f"--format {args.format}: {path} is {bank.format}; leave it out")
    return bank
