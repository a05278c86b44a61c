"""From labelled sentences to data that a learner reads: schemes, mended labels, features, numbers.

Files and Python objects come here as :class:`~hopefear.data.token_examples.TokenExamples`; caches
and streams, which come piece by piece, are in :mod:`hopefear.tasks.tag.streamed`. Nothing is
printed: what there is to say is in messages.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np

from hopefear.data.labels import class_name
from hopefear.data.schemes import (
    LETTERS,
    are_spans,
    check_scheme,
    convert,
    detect_scheme,
    mend,
    scheme_name,
    spans,
    split_label,
)
from hopefear.data.segments import shorten_spans
from hopefear.data.sequences import Column, Sentences, SequenceDataset
from hopefear.data.token_examples import TokenExamples
from hopefear.errors import DataWarning, HopefearError, InputError
from hopefear.features.attributes import AttributeFeatures, place
from hopefear.features.segments import SegmentFeatures
from hopefear.features.templates import load_templates
from hopefear.metrics import Tagging as TaggingScores
from hopefear.tasks import prepare as base
from hopefear.tasks import recipe
from hopefear.tasks.tag.answers import TagDecoder
from hopefear.tasks.tag.model import encoded
from hopefear.tasks.tag.task import (
    DEFAULT_LEARNER,
    Tagging,
    check,
    check_needs,
    fit_encode,
    reading_of,
    score_names,
    suitable,
)

_LISTED = 5  # labels in a message


@dataclass(frozen=True, kw_only=True)
class Options:
    """How sentences are prepared: parameters of :class:`hopefear.Tagger`, by the same names.

    Parameters
    ----------
    learner, params : str, mapping
        Who reads the data, and its parameters.
    features, columns, scheme, scheme_errors, convert, min_count, hash_bits, names, allow_outside
        As in :class:`hopefear.Tagger`, and ``segments``.
    classes : sequence of labels, optional
        Labels that come first, in this order, whether they occur or not.
    """

    learner: str = DEFAULT_LEARNER
    params: Mapping[str, Any] = field(default_factory=dict)
    features: Any = "auto"
    scheme: str | None = "auto"
    scheme_errors: str = "begin"
    convert: str | None = None
    min_count: int = 1
    hash_bits: int | None = None
    names: bool = True
    allow_outside: bool = False
    columns: Any = None
    segments: int | None = None
    classes: Sequence[Any] | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Options:
        """Returns what parameters of the estimator say of it; others are left out."""
        known = {name: given[name] for name in {f.name for f in fields(cls)} & given.keys()}
        if known.get("scheme") == "none":
            known["scheme"] = None
        known["learner"] = known.get("learner") or DEFAULT_LEARNER
        return cls(**known)


class Labelled(NamedTuple):
    """Sentences whose labels are as they are learned."""

    examples: TokenExamples
    gold: Column  # the same labels in the scheme of their source
    changes: int  # labels that were mended, or sentences that were left out


class Schemes(NamedTuple):
    """How spans are spelled; None where labels are no spans."""

    source: str | None
    model: str | None

    @classmethod
    def of(
        cls,
        examples: TokenExamples,
        scheme: str | None = "auto",
        target: str | None = None,
        errors: str = "begin",
    ) -> Schemes:
        """Returns the scheme of gold labels, and the one to learn them in.

        Parameters
        ----------
        examples : TokenExamples
            Labelled sentences.
        scheme : str, optional
            Name of their scheme; ``"auto"`` detects it, None is for labels that are no spans.
        target : str, optional
            The scheme to convert to.
        errors : {"begin", "skip", "raise"}
            What becomes of labels that the scheme forbids.
        """
        gold, starts = examples.gold, examples.starts
        assert gold is not None
        try:
            if scheme == "auto":
                scheme = detect_scheme(gold, starts, line_of=examples.place, errors=errors)
            elif scheme is not None:
                scheme = scheme_name(scheme)
                check_scheme(gold, starts, scheme, errors, line_of=examples.place)
        except InputError as error:
            raise HopefearError(
                f"{error}; --scheme none (scheme=None) takes labels as they are, --scheme-errors "
                "skip (scheme_errors='skip') leaves sentences out"
            ) from error
        if target is None:
            return cls(scheme, scheme)
        if scheme is None:
            raise HopefearError(
                f"--convert {target}: the labels of {examples.source} are no spans; leave it out"
            )
        return cls(scheme, scheme_name(target))

    def of_segments(self, target: str | None, source: str) -> Schemes:
        """Returns the same for segments, which are learned in BIO."""
        if self.source is None:
            raise HopefearError(f"--segments: the labels of {source} are no spans; leave it out")
        if target is not None and self.model != "bio":
            raise HopefearError(
                f"--convert {target}: segments are learned in BIO; leave it out, and write other "
                "schemes by predict --scheme"
            )
        return Schemes(self.source, "bio")

    def labelled(
        self, examples: TokenExamples, errors: str = "begin", held_out: bool = False
    ) -> Labelled:
        """Returns sentences whose labels keep to the scheme, in the one that is learned.

        Of held-out data labels outside the scheme stay as they are.
        """
        gold = examples.gold
        assert gold is not None
        if self.source is None:
            return Labelled(examples, gold, 0)
        result = mend(
            gold, examples.starts, self.source, errors, line_of=examples.place, strangers=held_out
        )
        if result.message:
            _warn(result.message)
        if not result.keep.all():
            examples = examples.take(np.flatnonzero(result.keep))
        gold = learned = result.labels
        if self.model not in (None, self.source):
            # Held-out data is scored, not learned from: read as the scorer reads it.
            how: Any = {"line_of": examples.place, "repair": True}
            learned = convert(gold, examples.starts, self.source, str(self.model), **how)
        return Labelled(replace(examples, gold=learned), gold, result.changes)

    def in_order(self, labels: Sequence[str], original: Sequence[str]) -> Sequence[str]:
        """Returns labels as they are numbered in memory: converted ones by role, others as given.

        ``original`` are the labels before, in order of appearance.
        """
        if self.model == self.source or self.source is None or self.model is None:
            return labels
        parts = (split_label(label, self.source) for label in original)
        suffixes = dict.fromkeys(part[1] for part in parts if part is not None)
        rank, letters = {suffix: i for i, suffix in enumerate(suffixes)}, LETTERS[self.model]
        return sorted(labels, key=lambda label: (letters.index(label[0]), rank.get(label[1:], 0)))


@dataclass(frozen=True)
class Plan:
    """What is decided of the first sentences, for all that follow.

    Parameters
    ----------
    options : Options
        What was asked for.
    schemes : Schemes
        How spans are spelled.
    features : str
        Name of the feature set.
    templates : Templates, optional
        The templates; None where attributes are given.
    inputs : Templates or settings, optional
        What the learner encodes sentences with.
    reading : dict
        What a model must know to read more of this.
    """

    options: Options
    schemes: Schemes
    features: str
    templates: Any
    inputs: Any
    reading: Mapping[str, Any]

    @classmethod
    def of(cls, examples: TokenExamples, options: Options) -> Plan:
        """Returns what suits labelled sentences."""
        how = options.scheme, options.convert, options.scheme_errors
        schemes, gold = Schemes.of(examples, *how), examples.gold
        if options.segments is not None:
            schemes = schemes.of_segments(options.convert, examples.source)
        assert gold is not None
        reading: dict[str, Any] = {"format": examples.form, "columns": None, "column": "label"}
        name, templates = _feature_set(examples, options)
        if templates is not None:
            columns: Any = list(examples.names) if examples.form == "columns" else None
            if examples.form == "objects":
                columns, reading["format"] = [*examples.names, "label"], "columns"
            reading |= {"columns": columns, "column": examples.column}
        else:
            reading |= {"format": "crfsuite", "column": None}
        reading |= {"scheme": schemes.source, "trained_scheme": schemes.model}
        plan = cls(options, schemes, name, templates, None, reading)
        return plan.for_learner(options.learner, options.params, examples.source)

    def for_learner(self, learner: str, params: Mapping[str, Any], source: str = "memory") -> Plan:
        """Returns the same for another learner, which may read other inputs."""
        inputs = recipe(learner, "tag").inputs(params, self.templates)
        if inputs is not self.templates and self.templates is None:
            raise HopefearError(
                f"{learner} reads words, and {source} has attributes alone; give columns or "
                "CoNLL-U, or take another learner"
            )
        return replace(self, inputs=inputs)

    def task(self, options: Mapping[str, Any]) -> Tagging:
        """Returns what is learned; ``options`` are parameters of the estimator."""
        names = ("order", "search", "beam", "constraints", "class_weight")
        given = {name: options[name] for name in names if name in options}
        return Tagging(scheme=self.schemes.model, **given)

    def labelled(self, examples: TokenExamples) -> Labelled:
        """Returns further sentences as they are learned from."""
        labelled = self.schemes.labelled(examples, self.options.scheme_errors)
        longest, gold = self.options.segments, labelled.examples.gold
        if longest is None or gold is None or longest < 1:
            return labelled
        short = shorten_spans(gold, longest)
        if short.n_cut:
            _warn(
                f"{examples.source}: {short.n_cut:,} spans of more than {longest} tokens are "
                f"learned as spans of {longest} and what is left; more --segments (segments) keep "
                "them whole"
            )
        return labelled._replace(examples=replace(labelled.examples, gold=short.labels))

    def fit_encode(self, examples: TokenExamples) -> tuple[Any, Any]:
        """Returns a feature map of sentences, and what it makes of them."""
        options = self.options
        if self.templates is None:
            rows: Any = examples.content
            features = AttributeFeatures.fit(rows, options.min_count)
            return features, features.encode(rows)
        inputs: Any = examples.inputs
        how: dict[str, Any] = {"min_count": options.min_count, "hash_bits": options.hash_bits}
        how["keep_names"] = options.names
        assert examples.gold is not None
        if options.segments is None:
            found = fit_encode(self.inputs, inputs, **how)
        else:
            self.check_templates("--segments")
            bounds = spans(examples.gold, examples.starts, "bio")[:2]
            found = SegmentFeatures.fit_encode(self.inputs, inputs, bounds, options.segments, **how)
        check_needs(found[0], inputs, examples.gold, examples.column)
        return found

    def check_templates(self, where: str) -> None:
        """HopefearError where the learner reads something else than templates."""
        if self.inputs is not self.templates:
            raise HopefearError(
                f"{where}: {self.options.learner} is a network, which learns from data in memory; "
                "take another learner"
            )

    def check_tokens(self, where: str) -> None:
        """HopefearError where segments are learned."""
        if self.options.segments is not None:
            raise HopefearError(
                f"{where}: segments are learned from data in memory; leave out --segments"
            )

    def set_of(self, features: Any) -> str:
        """Returns a feature map in a few words."""
        if features.kind != "token-ids":
            return self.features
        wide = f" and {self.features}" if self.inputs.templates is not None else ""
        return ", ".join((*features.columns, "shapes", "characters")) + wide


@dataclass(frozen=True, kw_only=True)
class PreparedTags(base.Prepared):
    """Sentences to learn from, and what it takes to read more of their kind.

    Parameters
    ----------
    plan : Plan
        What was decided.
    examples : TokenExamples, optional
        The sentences, their labels mended and in the scheme that is learned; None where nobody
        needs them any more.
    mended : int
        Labels that were mended, or sentences that were left out.
    skipped : int
        Sentences that a cache left out for bad lines.
    words : dict
        Words of held-out datasets, by identity.
    again : bool
        Whether the sentences were encoded before, so that what is wrong with held-out ones is said.
    """

    task: Tagging
    data: SequenceDataset
    plan: Plan
    examples: TokenExamples | None = None
    mended: int = 0
    skipped: int = 0
    words: dict[int, Column | None] = field(default_factory=dict)
    again: bool = False

    @property
    def feature_set(self) -> str:
        """The features in a few words."""
        return self.plan.set_of(self.data.features)

    def sizes(self) -> dict[str, Any]:
        data = self.data
        return {
            "sentences": len(data),
            "tokens": data.n_tokens,
            "features": data.features.size,
            "labels": len(data.labels),
        }

    def held_out(self, examples: TokenExamples | SequenceDataset) -> SequenceDataset:
        if isinstance(examples, SequenceDataset):
            return examples
        errors, labels = self.plan.options.scheme_errors, self.data.labels
        with warnings.catch_warnings():
            if self.again:
                warnings.simplefilter("ignore", DataWarning)
            held = encode_held_out(examples, self.data.features, labels, self.plan.schemes, errors)
        self.words[id(held.data)] = held.examples.words
        return held.data

    def split(self, fraction: float, seed: int) -> tuple[PreparedTags, SequenceDataset]:
        return self._parted(*base.held_out(len(self.data), fraction, seed, "sequences"))

    def folds(self, k: int, seed: int) -> Iterator[tuple[PreparedTags, SequenceDataset]]:
        return (self._parted(*parts) for parts in base.folds(len(self.data), k, seed))

    def _parted(self, rest: np.ndarray, part: np.ndarray) -> tuple[PreparedTags, SequenceDataset]:
        """Sentences to learn from, with the features of these alone, and others as held out."""
        if self.examples is None:
            return replace(self, data=self.data.take(rest)), self.data.take(part)
        dev = self.examples.take(part)
        prepared = replace(self, examples=self.examples.take(rest))._encoded(self.plan)
        features, labels = prepared.data.features, prepared.data.labels
        return prepared, encoded(dev, features.encode(dev.inputs), labels, dev.gold, features)

    def for_learner(self, name: str, params: Mapping[str, Any]) -> PreparedTags:
        if self.examples is None:
            return self
        plan = self.plan.for_learner(name, params, self.data.source)
        # Templates are what all linear learners share.
        return self if plan.inputs is self.plan.inputs else self._encoded(plan)

    def words_alone(self) -> tuple[str, ...]:
        """Returns names of the columns with which the model could tag text.

        None where it can, or where columns or features were asked for.
        """
        options, names = self.plan.options, self.plan.reading["columns"] or ()
        more = {*getattr(self.data.features, "needs", ())} & {*names[1:]}
        if not more or options.columns is not None or options.features != "auto":
            return ()
        return tuple("_" if name in more else name for name in names)

    def rival(self) -> PreparedTags | None:
        names = self.words_alone()
        if not names or self.examples is None or self.plan.inputs is not self.plan.templates:
            return None
        options = replace(self.plan.options, columns=names)
        examples = self.examples.renamed(names)
        name, templates = _feature_set(examples, options)
        reading = {**self.plan.reading, "columns": list(names)}
        plan = Plan(options, self.plan.schemes, name, templates, None, reading)
        plan = plan.for_learner(options.learner, options.params)
        return replace(self, examples=examples, reading=reading)._encoded(plan)

    def alone(self) -> PreparedTags:
        return replace(self, examples=None, words={})

    def judge(
        self, model: Any, test: SequenceDataset, n_jobs: int = 1
    ) -> tuple[dict[str, float], np.ndarray]:
        rows, metric = test.rows, self.tester()
        tags = TagDecoder(model, n_jobs=n_jobs).search.predict(rows)
        statistics = metric.statistics(rows.labels, tags, rows.starts, test.labels)
        values = metric.scores(statistics.sum(axis=0))
        return {name: values[name] for name in score_names(model.scheme)}, statistics

    def tester(self) -> TaggingScores:
        return TaggingScores(reading_of(self.plan.schemes.model))

    def _encoded(self, plan: Plan) -> PreparedTags:
        assert self.examples is not None
        data = _dataset(plan, self.examples)
        return replace(self, plan=plan, data=data, words={}, again=True)


class HeldOut(NamedTuple):
    """Sentences to score a model on."""

    data: SequenceDataset
    examples: TokenExamples
    gold: Column  # the labels in the scheme of their source
    mended: int
    unseen: int  # tokens whose label training did not see


def prepare(examples: TokenExamples, options: Mapping[str, Any]) -> PreparedTags:
    """Returns labelled sentences as a learner reads them.

    Parameters
    ----------
    examples : TokenExamples
        Sentences with gold labels.
    options : mapping
        Parameters of :class:`hopefear.Tagger`.

    Examples
    --------
    >>> from hopefear.data.token_input import TokenInput, with_labels
    >>> examples = with_labels(TokenInput(("word",)).read([["Ann", "left"]] * 2), [["P", "O"]] * 2)
    >>> prepared = prepare(examples, {"features": "pos"})
    >>> prepared.data.labels, prepared.feature_set
    (('P', 'O'), 'pos')
    """
    plan = Plan.of(examples, Options.of(options))
    labelled = plan.labelled(examples)
    data = _dataset(plan, labelled.examples)
    return prepared_by(plan, data, options, examples=labelled.examples, mended=labelled.changes)


def prepared_by(
    plan: Plan, data: SequenceDataset, options: Mapping[str, Any], **more: Any
) -> PreparedTags:
    """Returns data that was made by a plan, with what is to be learned of it."""
    metric = options.get("metric") or "auto"
    if metric == "auto":
        metric = "accuracy" if plan.schemes.model is None else "f1"
    check(data)
    how = {"stop_on": metric, "reading": plan.reading, "plan": plan, **more}
    return PreparedTags(task=plan.task(options), data=data, **how)


def encode_held_out(
    examples: TokenExamples,
    features: Any,
    labels: Sequence[str],
    schemes: Schemes,
    errors: str = "begin",
) -> HeldOut:
    """Returns labelled sentences as a model sees them; labels it does not know come behind its own.

    Parameters
    ----------
    examples : TokenExamples
        Labelled sentences.
    features, labels, schemes
        Those of the model.
    errors : {"begin", "skip", "raise"}
        What becomes of labels that the scheme forbids.
    """
    examples, gold, changes = schemes.labelled(examples, errors, held_out=True)
    attributes = features.encode(examples.inputs)
    data = encoded(examples, attributes, labels, examples.gold, features)
    unseen = int((data.rows.labels >= len(labels)).sum())
    if unseen:
        names = data.labels[len(labels) :]
        some = ", ".join(names[:_LISTED]) + (", …" if len(names) > _LISTED else "")
        _warn(
            f"{data.source}: {unseen:,} tokens have labels that training did not see ({some}); "
            "they count as mistakes"
        )
    return HeldOut(data, examples, gold, changes, unseen)


def _warn(message: str) -> None:
    warnings.warn(message, DataWarning, stacklevel=3)


def _dataset(plan: Plan, examples: TokenExamples) -> SequenceDataset:
    features, attributes = plan.fit_encode(examples)
    names = tuple(map(class_name, plan.options.classes or ()))
    return encoded(examples, attributes, names, examples.gold, features)


def _feature_set(examples: TokenExamples, options: Options) -> tuple[str, Any]:
    """Name and templates of the features: those asked for, or what suits; no templates for
    attributes."""
    if options.segments is not None and not isinstance(examples.content, Sentences):
        raise HopefearError(
            f"{examples.source} has attributes of tokens, and segments have words: give columns or "
            "CoNLL-U, or leave out --segments (segments)"
        )
    if isinstance(examples.content, Sentences):
        features = options.features
        if features == "auto":
            assert examples.gold is not None
            labels = examples.gold.strings
            features = suitable(examples.names, labels, are_spans(examples.gold))
        if not isinstance(features, str):
            return features.source, features
        return features, load_templates(features, options.allow_outside)
    asked = {
        "features": options.features not in (None, "auto", "attributes"),
        "hash-bits": options.hash_bits is not None,
        "no-names": not options.names,
    }
    for name in filter(asked.get, asked):
        raise HopefearError(
            f"{examples.source} has attributes, whose features are given: --{name} "
            f"({name.replace('-', '_')}) belongs to columns and CoNLL-U; leave it out"
        )
    return "attributes", None


# From Python objects


def check_filled(examples: TokenExamples) -> None:
    """Refuses sequences without tokens, which cannot be learned from."""
    empty = np.diff(examples.starts) == 0
    if empty.any():
        raise HopefearError(f"sequence {int(np.argmax(empty))} has no tokens; leave it out")


def check_known(data: SequenceDataset, n: int) -> None:
    """Refuses labels behind the first n."""
    if data.rows.labels.max(initial=-1) >= n:
        k = int(np.argmax(data.rows.labels >= n))
        name = data.labels[int(data.rows.labels[k])]
        raise HopefearError(
            f"{place(data.rows.starts, k)}: the label {name!r} is not one of "
            f"{', '.join(data.labels[:n][:20])}: a model cannot take on new labels; name all of "
            "them in the first call (classes), or fit again"
        )


def same_features(one: Any, other: Any) -> bool:
    """Whether two feature maps give every attribute the same number."""
    if one.to_header() != other.to_header():
        return False
    arrays, others = one.arrays(), other.arrays()
    return arrays.keys() == others.keys() and all(
        np.array_equal(array, others[name]) for name, array in arrays.items()
    )
