"""Files of tokens, as the verbs want them: their columns, labels, schemes and features."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from hopefear.cli.console import Console, tell_skipped
from hopefear.cli.guard import complain
from hopefear.cli.old import Corpus
from hopefear.cli.options import first_learner, threads
from hopefear.cli.surface import Score
from hopefear.cli.tag.inputs import Text, read_text
from hopefear.data.files import ReadReport
from hopefear.data.schemes import (
    are_spans,
    check_scheme,
    convert,
    detect_scheme,
    mend,
    no_spans,
    scheme_name,
)
from hopefear.data.sequences import Column, ColumnTable, Sentences, SequenceDataset
from hopefear.errors import HopefearError, InputError
from hopefear.features.attributes import AttributeFeatures
from hopefear.metrics import Tagging
from hopefear.tasks import recipe
from hopefear.tasks.tag.model import SequenceModel

_LABELS = "(labels)"
_LISTED = 5


class Schemes(NamedTuple):
    """How spans are spelled; None where labels are no spans."""

    file: str | None
    model: str | None

    def read(self, text: Text, gold: Column) -> Column:
        """Labels of a file as the model has them."""
        if self.file == self.model or self.file is None or self.model is None:
            return gold
        # Held-out data is scored, not learned from: read as the scorer reads it.
        return convert(gold, text.starts, self.file, self.model, place=text.place, repair=True)


def mended(
    text: Text, gold: Column, scheme: str | None, errors: str, console: Console, **how: Any
) -> tuple[Text, Column, int]:
    """The tokens and labels that keep to a scheme, and how many labels did not."""
    if scheme is None:
        return text, gold, 0
    result = mend(gold, text.starts, scheme, errors, place=text.place, **how)
    if result.message:
        console.say(f"{result.message} (--scheme-errors {errors})")
    return text.take(result.keep), result.labels, result.changes


def schemes_of(
    text: Text, gold: Column, scheme: str, target: str | None, errors: str = "begin"
) -> Schemes:
    """The scheme of training labels, and the one to learn them in.

    Parameters
    ----------
    scheme : str
        A name, ``none``, or ``auto``.
    target : str, optional
        The scheme to convert to.
    errors : {"begin", "skip", "raise"}
        What becomes of labels that the scheme forbids.
    """
    try:
        if scheme == "auto":
            source = detect_scheme(gold, text.starts, place=text.place, errors=errors)
        elif scheme == "none":
            source = None
        else:
            source = scheme_name(scheme)
            check_scheme(gold, text.starts, source, errors, place=text.place)
    except InputError as error:
        raise HopefearError(
            f"{error}; --scheme none takes labels as they are, --scheme-errors skip leaves "
            "sentences out"
        ) from error
    if target is None:
        return Schemes(source, source)
    if source is None:
        raise HopefearError(
            f"--convert {target}: the labels of {text.source} are no spans; leave it out"
        )
    return Schemes(source, scheme_name(target))


def spelled(column: Column, starts: Any, source: str | None, target: str | None) -> Column:
    """Predicted spans in another scheme; illegal sequences are read as the scorer reads them."""
    if target is None or target == source:
        return column
    if source is None:
        raise HopefearError(f"--scheme {target}: the model's labels are no spans; leave it out")
    return convert(column, starts, source, target, repair=True)


def warn_of_strangers(data: SequenceDataset, known: int) -> int:
    """Tell of labels that training did not see; the number of tokens that have one."""
    strange = int((data.rows.labels >= known).sum())
    if strange:
        names = data.labels[known:]
        examples = ", ".join(names[:_LISTED]) + (", …" if len(names) > _LISTED else "")
        complain(
            f"warning: {data.source}: {strange:,} tokens have labels that training did not see "
            f"({examples}); they count as mistakes"
        )
    return strange


def read(args: argparse.Namespace, console: Console) -> Tokens:
    """The tokens of ``--train``."""
    from hopefear.tasks.tag.task import check

    report = ReadReport()
    if (folder := getattr(args, "cache", None)) is not None:
        from hopefear.cli.tag.cached import read as read_cached

        tokens = read_cached(args, folder, console, report)
        tell_skipped(report, console)
        return tokens
    how = {"columns": args.columns, "on_error": args.on_error}
    text = read_text(args.train, args.format, report, **how)
    tell_skipped(report, console)
    name, gold = text.column(args.column)
    schemes = schemes_of(text, gold, args.scheme, args.convert, args.scheme_errors)
    text, gold, count = mended(text, gold, schemes.file, args.scheme_errors, console)
    features = features_named(args, text, gold)
    source = Source(args, text, name, schemes.read(text, gold), features)
    inputs = source.inputs(*first_learner(args))
    data = source.dataset(inputs)
    check(data)
    reading = {
        "format": text.form,
        "columns": list(text.names) if text.form == "columns" else None,
        "column": None if text.form == "crfsuite" else name,
        "scheme": schemes.file,
        "trained_scheme": schemes.model,
    }
    fewer = fewer_columns(args, reading, data.features)
    tries_both = fewer and args.dev and inputs is source.templates  # networks take too long
    return Tokens(
        data=data,
        skipped=report.skipped,
        reading=reading,
        schemes=schemes,
        features=described(inputs, data.features, features),
        jobs=threads(args.jobs),
        mended=count,
        # Other learners may want other inputs, where several are compared, and --dev may choose
        # fewer columns; else the text may go.
        origin=source if hasattr(args, "learners") or tries_both else None,
        inputs=inputs,
        fewer=fewer,
    )


def features_named(args: argparse.Namespace, text: Text, gold: Column) -> str:
    """Name of the feature set: the one that was typed, or what suits the text."""
    from hopefear.tasks.tag.task import suitable

    auto = "attributes" if text.form == "crfsuite" else None
    return args.features or auto or suitable(text.names, gold.strings, are_spans(gold))


def fewer_columns(
    args: argparse.Namespace, reading: Mapping[str, Any], features: Any
) -> tuple[str, ...]:
    """Names of columns that leave words alone to features, where nobody asked for more than that.

    Empty where they look at words alone, where features or columns were typed, or where models are
    compared and not kept.
    """
    names, typed = reading["columns"], args.columns or args.features
    if typed or not names or hasattr(args, "learners"):
        return ()
    more = {*features.needs} & {*names[1:]}
    return tuple("_" if name in more else name for name in names) if more else ()


@dataclass(frozen=True, kw_only=True)
class Tokens(Corpus):
    """What a tagger is trained on.

    Parameters
    ----------
    data, skipped, reading, jobs
        As in `Corpus`.
    schemes : Schemes
        How spans are spelled.
    features : str
        Name of the feature set.
    mended : int
        Labels that the scheme forbids, or sentences that were left out for them.
    origin : Source, optional
        What the data was encoded from, so that it can be encoded for other learners.
    inputs : Templates or TokenIdSettings, optional
        What it was encoded with.
    fewer : tuple of str
        Names of columns with which the model could tag text, where with its own it cannot.
    """

    data: SequenceDataset
    schemes: Schemes
    features: str = ""
    mended: int = 0
    origin: Source | None = None
    inputs: Any = None
    fewer: tuple[str, ...] = ()

    title, unit = "Taggers compared", "sentences"

    @property
    def scores(self) -> tuple[Score, ...]:
        spans = () if self.schemes.model is None else (Score("F1", "f1"),)
        return (*spans, Score("accuracy", "accuracy"))

    def describe(self) -> str:
        data, schemes = self.data, self.schemes
        edges = f" and {data.features.edge_size:,} of edges" if data.features.edge_size else ""
        scheme = no_spans(data.labels) if schemes.file is None else f"{schemes.file.upper()} spans"
        if schemes.model != schemes.file:
            scheme += f" learned as {str(schemes.model).upper()}"
        return (
            f"{data.source}: {len(data):,} sentences, {data.n_tokens:,} tokens, "
            f"{len(data.labels)} labels ({scheme}), {data.features.size:,} features{edges} "
            f"({self.features})"
        )

    def held_out(self, which: str, args: argparse.Namespace, console: Console) -> SequenceDataset:
        report, like = ReadReport(), self.reading or {}
        text = read_text(
            getattr(args, which),
            like["format"],
            report,
            columns=like["columns"],
            on_error=args.on_error,
        )
        tell_skipped(report, console)
        _, gold = text.column(like["column"])
        how = self.schemes.file, args.scheme_errors, console
        text, gold, _ = mended(text, gold, *how, strangers=True)
        gold = self.schemes.read(text, gold)
        data = text.encode(self.data.features, self.data.labels, gold)
        warn_of_strangers(data, len(self.data.labels))
        if self.origin is not None:
            self.origin.held_out[id(data)] = data, text, gold
        return data

    @property
    def remarks(self) -> tuple[str, ...]:
        if not self.fewer:
            return ()
        assert self.reading is not None
        columns = ", ".join(name for name in self.reading["columns"] if name not in self.fewer)
        typed = f"--columns {','.join(self.fewer)}"
        if self.origin is not None:
            return (f"features look at the column {columns}: words alone ({typed}) are tried too",)
        return (
            f"features look at the column {columns}, so the model cannot tag text; {typed} makes "
            "one that can",
        )

    def rival(self, args: argparse.Namespace) -> Tokens | None:
        if not self.fewer or self.origin is None:
            return None
        source = self.origin.renamed(self.fewer)
        inputs = source.inputs(*first_learner(args))
        data = source.dataset(inputs)
        return replace(
            self,
            data=data,
            reading={**(self.reading or {}), "columns": list(self.fewer)},
            features=described(inputs, data.features, source.features),
            origin=source,
            inputs=inputs,
            fewer=(),
        )

    def suiting(self, learner: str, params: Mapping[str, Any]) -> Tokens:
        if self.origin is None:
            return self
        inputs = self.origin.inputs(learner, params)
        if inputs is self.inputs:  # the templates, which all linear learners share
            return self
        data = self.origin.dataset(inputs)
        name = described(inputs, data.features, self.origin.features)
        return replace(self, data=data, inputs=inputs, features=name)

    def encoded(self, data: SequenceDataset) -> SequenceDataset:
        if self.origin is None or data.features is self.data.features:
            return data
        _, text, gold = self.origin.held_out[id(data)]
        return text.encode(self.data.features, self.data.labels, gold)

    def alone(self, jobs: int) -> Tokens:
        return replace(self, jobs=jobs, origin=None)

    def task(self, args: argparse.Namespace) -> Any:
        from hopefear.tasks.tag.task import Tagging

        return Tagging(
            args.order,
            args.search,
            args.beam,
            self.schemes.model,
            args.constraints,
            args.class_weight,
        )

    def facts(self) -> dict[str, Any]:
        facts = super().facts()
        facts["examples"] = facts.pop("sentences")
        return facts

    def settings(self, args: argparse.Namespace) -> dict[str, Any]:
        return {
            "features": self.features,
            "scheme": self.schemes.model,
            "order": args.order,
            "search": args.search,
            "constraints": args.constraints,
            "class_weight": args.class_weight,
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
            "mended": self.mended,
            "edge_features": self.data.features.edge_size,
            "feature_set": self.features,
            "scheme": self.schemes.model,
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
        return {
            **super().comparison(test),
            "test_tokens": test.n_tokens,
            "scheme": self.schemes.file,
        }

    def judge(
        self, model: SequenceModel, test: SequenceDataset
    ) -> tuple[dict[str, float], np.ndarray]:
        from hopefear.tasks.tag.task import score_names

        rows, metric = test.rows, self.tester()
        tags = model.decoder(n_jobs=self.jobs).predict(rows)
        statistics = metric.statistics(rows.labels, tags, rows.starts, test.labels)
        values = metric.scores(statistics.sum(axis=0))
        return {name: values[name] for name in score_names(self.schemes.model)}, statistics

    @property
    def each_by(self) -> tuple[str, bool]:
        return "accuracy", True  # a sentence may have no spans

    def shown(self, test: SequenceDataset, i: int) -> str:
        kept = None if self.origin is None else self.origin.held_out.get(id(test))
        words = None if kept is None else kept[1].words
        if words is None:
            return super().shown(test, i)
        tokens = words.ids[slice(*test.rows.starts[i : i + 2])]
        return f"{i + 1}: {' '.join(words.strings[k] for k in tokens)}"

    def tester(self) -> Tagging:
        from hopefear.tasks.tag.task import reading_of

        return Tagging(reading_of(self.schemes.model))


def collisions(features: Any) -> float | None:
    """Percent of the hashed features that share a column with another; None without hashing."""
    return 100.0 * features.collisions if getattr(features, "hash_bits", None) else None


def described(inputs: Any, features: Any, templates: str) -> str:
    """The features of a learner in a few words."""
    if features.kind != "token-ids":
        return templates
    wide = f" and {templates}" if inputs.templates is not None else ""
    return ", ".join((*features.columns, "shapes", "characters")) + wide


@dataclass(frozen=True)
class Source:
    """What training data is encoded from, for one learner or another.

    Parameters
    ----------
    args : Namespace
        What was typed.
    text, name, gold : Text, str, Column
        The tokens, the name of the column of labels, and the labels to learn.
    features : str
        Name of the templates.
    held_out : dict
        By identity, held-out datasets with the text and labels they come from.
    """

    args: argparse.Namespace
    text: Text
    name: str
    gold: Column
    features: str
    held_out: dict[int, tuple[SequenceDataset, Text, Column]] = field(default_factory=dict)

    @cached_property
    def templates(self) -> Any:
        """The templates; None where attributes are given."""
        if not isinstance(self.text.content, Sentences):
            return None
        from hopefear.features.templates import load_templates

        return load_templates(self.features, self.args.allow_outside)

    def inputs(self, learner: str, params: Mapping[str, Any]) -> Any:
        """What a learner wants its data to be encoded with."""
        inputs = recipe(learner, "tag").inputs(params, self.templates)
        if inputs is self.templates:
            return inputs
        if not isinstance(self.text.content, Sentences):
            raise HopefearError(
                f"{learner} reads words, and {self.text.source} is a CRFsuite file, which has "
                "attributes alone; give columns or CoNLL-U, or take another learner"
            )
        if self.args.features and inputs.templates is None and hasattr(self.args, "learner"):
            raise HopefearError(
                f"--features {self.args.features}: {learner} reads words; leave it out, or add "
                "the templates by -p wide=true"
            )
        return inputs

    def renamed(self, names: Sequence[str]) -> Source:
        """The same with other names of columns, and the features that suit those."""
        sentences = self.text.content
        assert isinstance(sentences, Sentences)
        table = ColumnTable(dict(zip(names, sentences.columns.values(), strict=True)), {})
        text = replace(self.text, content=replace(sentences, columns=table))
        return replace(self, text=text, features=features_named(self.args, text, self.gold))

    def dataset(self, inputs: Any) -> SequenceDataset:
        """The data as some features see it."""
        return _dataset(self.args, self.text, self.name, self.gold, inputs)


def _dataset(
    args: argparse.Namespace, text: Text, name: str, gold: Column, inputs: Any
) -> SequenceDataset:
    if not isinstance(text.content, Sentences):
        for option in ("features", "hash_bits", "no_names"):
            if getattr(args, option):
                raise HopefearError(
                    f"{text.source} is a CRFsuite file, whose features are given: "
                    f"--{option.replace('_', '-')} belongs to columns and CoNLL-U; leave it out"
                )
        fitted = AttributeFeatures.fit(text.content, args.min_count)
        return text.encode(fitted, (), gold)
    from hopefear.tasks.tag.task import dataset

    return dataset(
        labelled_columns(text, name, gold),
        inputs,
        _LABELS,
        min_count=args.min_count,
        hash_bits=args.hash_bits,
        keep_names=not args.no_names,
    )


def labelled_columns(text: Text, name: str, gold: Column) -> Sentences:
    """The sentences with their labels under a name that no template has."""
    sentences = text.content
    assert isinstance(sentences, Sentences)
    # Under another name, or a set with templates "when" there is a column of this one takes them.
    columns = {
        (_LABELS if key == name else key): (gold if key == name else column)
        for key, column in sentences.columns.items()
    }
    aliases = {
        alias: key
        for alias, key in getattr(sentences.columns, "aliases", {}).items()
        if key != name
    }
    table = ColumnTable(columns, aliases)
    return Sentences(sentences.starts, table, sentences.source, sentences.lines)
