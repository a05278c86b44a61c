"""Labelled sentences that come piece by piece: streams, and the caches of files.

What is decided of the first of them is a :class:`~hopefear.tasks.tag.prepare.Plan`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hopefear.data.cache import sound_header, source_of, use_cache
from hopefear.data.cached_sentences import SentenceCache
from hopefear.data.files import ReadReport
from hopefear.data.schemes import LETTERS
from hopefear.data.sequences import SequenceDataset
from hopefear.data.token_examples import TokenExamples
from hopefear.errors import HopefearError, InputError, ModelError
from hopefear.features.templates import TemplateFeatures, load_templates
from hopefear.features.templates.streamed import StreamedTemplates
from hopefear.storage import field_of
from hopefear.tasks.tag.model import encoded
from hopefear.tasks.tag.prepare import (
    Options,
    Plan,
    PreparedTags,
    Schemes,
    encode_held_out,
    prepared_by,
)
from hopefear.tasks.tag.task import check_needs


class StreamedSentences:
    """Sentences of a stream in hashed features, whose numbers are known before they come.

    Parameters
    ----------
    plan : Plan
        What was decided of the first sentences.
    first : TokenExamples
        The first sentences.
    bits : int
        There are ``2**bits`` features.
    classes : sequence of str, optional
        All labels there will be; those of the first sentences unless said.
    """

    def __init__(
        self, plan: Plan, first: TokenExamples, bits: int, classes: Sequence[str] | None = None
    ) -> None:
        plan.check_templates("--stream")
        plan.check_tokens("--stream")
        self.plan = plan
        self.features = TemplateFeatures.hashed(plan.inputs, first.inputs.columns, bits)
        gold = plan.labelled(first).examples.gold
        assert gold is not None
        self.labels = tuple(classes or gold.strings)

    def encoded(
        self, examples: TokenExamples, on_error: str, report: ReadReport
    ) -> SequenceDataset:
        """Returns some more sentences as they are learned from.

        Those with a label that is not known are refused, or left out and counted.
        """
        examples, labels = self.plan.labelled(examples).examples, self.labels
        data = self._dataset(examples)
        strange = np.flatnonzero(data.rows.labels >= len(labels))
        if strange.size:
            k = int(strange[0])
            error = InputError(
                *examples.place(k),
                f"one of the labels {', '.join(labels[:10])}{', …' * (len(labels) > 10)} "
                "(--classes names all)",
                data.labels[int(data.rows.labels[k])],
            )
            if on_error == "raise":
                raise error
            bad = np.unique(np.searchsorted(data.rows.starts, strange, "right") - 1)
            report.skip(str(error))
            report.skipped += len(bad) - 1
            data = data.take(np.setdiff1d(np.arange(len(data)), bad))
        return SequenceDataset(data.rows, labels, data.features, data.source)

    def held_out(self, examples: TokenExamples) -> SequenceDataset:
        """Returns held-out sentences in the same features and labels."""
        plan = self.plan
        errors = plan.options.scheme_errors
        return encode_held_out(examples, self.features, self.labels, plan.schemes, errors).data

    def _dataset(self, examples: TokenExamples) -> SequenceDataset:
        attributes = self.features.encode(examples.inputs)
        return encoded(examples, attributes, self.labels, examples.gold, self.features)


def cached(
    folder: str,
    path: str,
    given: Mapping[str, Any],
    parts: Callable[[], Iterator[TokenExamples]],
    beginning: Callable[[TokenExamples], TokenExamples],
    key: Mapping[str, Any],
    report: ReadReport,
    say: Callable[[str], None],
) -> PreparedTags:
    """Returns the sentences of a file as a cache has them, which is built if missing or stale.

    Parameters
    ----------
    folder, path : str
        Of the cache, and of the file.
    given : mapping
        Parameters of :class:`hopefear.Tagger`.
    parts : callable
        Yields the labelled sentences of the file, piece by piece.
    beginning : callable
        Returns as many sentences as tell the scheme and the features, given the first piece.
    key : mapping
        How the file is read: a cache made otherwise is stale.
    report : ReadReport
        Counts the lines that ``parts`` leaves out.
    say : callable
        Gets what is going on.
    """
    options = Options.of(given)
    key = {**key, **_key(options)}
    plan: Plan | None = None

    def build(target: Any) -> None:
        nonlocal plan
        plan = _build(target, path, options, parts(), beginning, key, report)

    data = use_cache(folder, path, "sentences", key, build, say)
    with sound_header(data.cache.path):
        facts = field_of(data.cache.header, "facts", dict)
        schemes = Schemes(*facts["schemes"])
        if not {*schemes} <= {*LETTERS, None}:
            raise ModelError(f"its schemes are {facts['schemes']!r:.60}")
        if plan is None:
            features = field_of(facts, "features", str)
            plan = Plan(options, schemes, features, None, None, field_of(facts, "reading", dict))
        counts = {name: field_of(facts, name, int) for name in ("mended", "skipped")}
        return prepared_by(plan, data, given, **counts)


def _key(options: Options) -> dict[str, Any]:
    """What a cache must have been made with."""
    names = ("scheme", "convert", "scheme_errors", "min_count", "hash_bits", "names")
    key = {name: getattr(options, name) for name in names} | {"features": None}
    if options.features != "auto":  # a file may say something else than it did
        templates = load_templates(options.features, options.allow_outside)
        rows = [[t.text, t.on] for t in templates.templates]
        lexicons = {name: list(words) for name, words in templates.lexicons.items()}
        text = json.dumps([rows, lexicons]).encode()
        key["features"] = [options.features, hashlib.sha256(text).hexdigest()]
    return key


def _build(
    target: Any,
    path: str,
    options: Options,
    parts: Iterator[TokenExamples],
    beginning: Callable[[TokenExamples], TokenExamples],
    key: Mapping[str, Any],
    report: ReadReport,
) -> Plan:
    """Encodes a file piece by piece into a cache."""
    plan: Plan | None = None
    cache: SentenceCache | None = None
    numbering: Any = None
    original: dict[str, None] = {}
    changes = 0
    origin = source_of(path)  # what comes to the file while it is read makes it another
    try:
        for part in parts:
            if plan is None:
                plan = Plan.of(beginning(part), options)
                plan.check_templates("--cache")
                plan.check_tokens("--cache")
                how: dict[str, Any] = {"hash_bits": options.hash_bits}
                how |= {"min_count": options.min_count, "keep_names": options.names}
                numbering = StreamedTemplates(plan.inputs, **how)
                cache = SentenceCache(target, numbering)
            examples, gold, count = plan.labelled(part)
            changes += count
            if not len(examples):
                continue
            assert cache is not None and examples.gold is not None
            original |= dict.fromkeys(gold.strings)
            cache.add(examples.inputs, examples.gold)
            check_needs(numbering, examples.inputs, examples.gold, examples.column)
        if plan is None or cache is None or not cache.n_sentences:
            raise HopefearError(f"{path}: there are no sentences to learn from")
        facts = {
            "reading": plan.reading,
            "schemes": list(plan.schemes),
            "features": plan.features,
            "mended": changes,
            "skipped": report.skipped,
        }
        header = {"source": origin, "options": key, "facts": facts}
        schemes = plan.schemes
        cache.write(header, lambda names: schemes.in_order(names, list(original)))
    finally:
        if cache is not None:
            cache.__exit__()
    return plan
