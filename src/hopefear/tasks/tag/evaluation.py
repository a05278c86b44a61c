"""What a tagger is worth on labelled sentences: scores, mistakes, calibration, worst sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hopefear.data.sequences import Column, SequenceDataset
from hopefear.errors import HopefearError
from hopefear.metrics import (
    ChunkScores,
    Confusion,
    chunk_scores,
    label_confusion,
    reliability,
    span_errors,
    unknown_word_accuracy,
    unknown_words,
)
from hopefear.metrics import Tagging as TaggingScores
from hopefear.report.error_examples import ErrorExample, Judgement
from hopefear.report.examples import MarkedText, Rival
from hopefear.report.examples import Span as Stretch
from hopefear.tasks.base import Explanation
from hopefear.tasks.tag.answers import SpanTable, TagAnswers, span_table
from hopefear.tasks.tag.explaining import against
from hopefear.tasks.tag.model import SequenceModel
from hopefear.tasks.tag.prepare import HeldOut
from hopefear.tasks.tag.task import reading_of

_RIVALS = 5


@dataclass(frozen=True)
class TagEvaluation:
    """What a tagger says of sentences, against their labels.

    Parameters
    ----------
    answers : TagAnswers
        Its labels, in the scheme of the sentences.
    held : HeldOut
        The sentences.
    chunks : ChunkScores
        Spans and tokens that are right.
    metric : Tagging
        The metric that makes scores of what was counted in every sentence.
    facts : dict
        Scores by name, in percent.
    """

    answers: TagAnswers
    held: HeldOut
    chunks: ChunkScores
    metric: TaggingScores
    facts: dict[str, Any]

    def judgement(self) -> Judgement:
        """Returns how many tokens of every sentence are wrong, and those to look at."""
        return judgement(self.answers, self.held.gold)

    def sizes(self) -> dict[str, Any]:
        """Returns what there is to score on, in words."""
        facts, lengths = self.facts, np.diff(self.answers.starts)
        unknown, used = facts.get("unknown_words"), len(np.unique(self.held.gold.ids))
        return {
            "sentences": f"{len(lengths):,}, with {lengths.mean():.1f} tokens on average and "
            f"{lengths.max()} at most",
            "tokens": f"{facts['tokens']:,}",
            "labels": f"{used}, and {self.held.unseen:,} tokens whose label the model does not "
            "know",
            "scheme": facts["scheme"] or "none",
            "unknown words": "not known" if unknown is None else f"{unknown:,}",
        }


def evaluation(
    answers: TagAnswers, held: HeldOut, proba: bool = False, calibrated: bool = False
) -> TagEvaluation:
    """Returns scores of tokens and spans, mistakes and, where asked for, calibration.

    Parameters
    ----------
    answers : TagAnswers
        What the tagger says, in the scheme of the sentences.
    held : HeldOut
        Labelled sentences.
    proba : bool
        Whether the probabilities of tokens and spans are scored.
    calibrated : bool
        Whether those of tokens are in any case.
    """
    model, gold, output = answers.model, held.gold, answers.labels
    scheme = answers.scheme
    reading = reading_of(scheme)
    chunks = chunk_scores(gold, output, answers.starts, reading=reading)
    facts = {
        **_scores(answers, gold, chunks, reading),
        "sentences": len(held.data),
        "mended": held.mended,
        "unknown_labels": held.unseen,
        "scheme": scheme,
    }
    vocabulary, words = model.known_words(), held.examples.words
    if vocabulary is not None and words is not None:
        known = unknown_word_accuracy(gold, output, unknown_words(words, vocabulary))
        facts |= {
            "unknown_words": known["unknown"],
            "accuracy_unknown": known["accuracy_unknown"] if known["unknown"] else None,
            "accuracy_known": known["accuracy_known"],
        }
    if proba or calibrated:
        right = answers.tags == held.data.rows.labels
        facts["calibration"] = {"tokens": _reliability(answers.token_probabilities, right)}
    if proba:
        facts["calibration"]["spans"] = _span_calibration(answers)
    return TagEvaluation(answers, held, chunks, TaggingScores(reading), facts)


def _scores(answers: TagAnswers, gold: Column, chunks: ChunkScores, reading: str) -> dict[str, Any]:
    scores, output = chunks.as_dict(), answers.labels
    confusion = label_confusion(gold, output, answers.starts)
    facts = {key: scores[key] for key in ("accuracy", "sentence_accuracy", "tokens", "signature")}
    facts |= confusion.as_dict()
    if answers.scheme is None:
        return facts | {"labels": _per_label(confusion)}
    names = ("precision", "recall", "f1", "correct", "found", "gold")
    errors = span_errors(gold, output, answers.starts, reading=reading)._asdict()
    kinds = ("type", "bounds", "both", "missed", "spurious")
    return {
        **{key: scores[key] for key in names},
        **facts,
        "types": chunks.per_type(),
        "span_errors": {key: errors[key] for key in kinds},
    }


def _per_label(confusion: Confusion) -> dict[str, dict[str, float]]:
    right = np.diag(confusion.counts)
    gold, output = confusion.counts.sum(axis=1), confusion.counts.sum(axis=0)
    return {
        name: {
            "precision": 100.0 * right[i] / max(output[i], 1),
            "recall": 100.0 * right[i] / max(gold[i], 1),
            "f1": 200.0 * right[i] / max(output[i] + gold[i], 1),
            "correct": int(right[i]),
            "found": int(output[i]),
            "gold": int(gold[i]),
        }
        for i, name in enumerate(confusion.names)
        if gold[i] or output[i]
    }


def _span_calibration(answers: TagAnswers) -> dict[str, Any] | None:
    table, rows, scheme = answers.spans, answers.data.rows, answers.model.scheme
    if table is None or scheme is None:
        return None
    gold = set(_places(span_table(Column(answers.data.labels, rows.labels), rows.starts, scheme)))
    right = np.array([place in gold for place in _places(table)], bool)
    return _reliability(answers.span_probabilities, right)


def _places(table: SpanTable) -> Iterator[tuple[int, int, str]]:
    columns = table.first.tolist(), table.after.tolist(), table.kinds.texts()
    return zip(*columns, strict=True)


def _reliability(shares: np.ndarray, right: np.ndarray) -> dict[str, Any]:
    # Sums of rounded numbers may pass 1 by the last digit.
    return reliability(np.minimum(shares, 1.0), right).as_dict()


def judgement(answers: TagAnswers, gold: Column) -> Judgement:
    """Returns how many tokens of every sentence are wrong, and those sentences to look at.

    Parameters
    ----------
    answers : TagAnswers
        What the tagger says of sentences with gold labels, in the scheme of these.
    gold : Column
        The right labels.
    """
    starts, model, tags = answers.starts, answers.model, answers.tags
    texts, words = [gold.texts(), answers.labels.texts()], list(answers.words())
    wrong = np.array(texts[0]) != np.array(texts[1])
    errors = np.diff(np.concatenate([[0], np.cumsum(wrong)])[starts])

    def cases(order: np.ndarray) -> list[ErrorExample]:
        some = answers.data.take(order)
        ranked, reasons = [], []
        if len(order):
            ranked = answers.decoder.search.k_best(some.rows, _RIVALS)
            outputs = [tags[starts[i] : starts[i + 1]] for i in order]
            reasons = _reasons(model, some, outputs, answers.decoder.limits)
        tables: list[SpanTable] = []
        if answers.scheme is not None:
            tables = [
                span_table(labels, starts, answers.scheme) for labels in (gold, answers.labels)
            ]
        rows = []
        for k, i in enumerate(order.tolist()):
            first, after = starts[i : i + 2].tolist()
            own = words[i]
            places = np.flatnonzero(wrong[first:after]).tolist()
            if tables:
                right, mine = (table.of(starts, i) for table in tables)
                kinds, labels = _span_kinds(right, mine), sorted({s[2] for s in {*right} ^ {*mine}})
            else:
                right, mine = ([(t, t + 1, text[first + t]) for t in places] for text in texts)
                kinds = sorted({f"{a[2]} → {b[2]}" for a, b in zip(right, mine, strict=True)})
                labels = sorted({span[2] for span in [*right, *mine]})
            reason = reasons[k]
            if reason is not None and places:
                reason = reason._replace(label=f"{own[places[0]]}: {reason.label}")
            rows.append(
                ErrorExample(
                    {"sentence": i + 1, "wrong tokens": int(errors[i])},
                    MarkedText(own, right, {*right} - {*mine}),
                    MarkedText(own, mine, {*mine} - {*right}),
                    kinds,
                    labels,
                    _rivals(model, ranked[k], own, answers.data.rows.labels[first:after]),
                    reason,
                    i,
                )
            )
        return rows

    return Judgement(errors, cases, "sentences", "with most wrong tokens")


def _span_kinds(gold: Sequence[Stretch], output: Sequence[Stretch]) -> list[str]:
    """What is wrong with spans, as `hopefear.metrics.span_errors` counts it."""
    kinds = set()
    for first, after, kind in set(gold) - set(output):
        touching = [span for span in output if span[0] < after and first < span[1]]
        if any(span[:2] == (first, after) for span in touching):
            kinds.add("type")
        elif any(span[2] == kind for span in touching):
            kinds.add("bounds")
        else:
            kinds.add("both" if touching else "missed")
    for first, after, _ in output:
        if not any(span[0] < after and first < span[1] for span in gold):
            kinds.add("spurious")
    return sorted(kinds)


def _rivals(
    model: SequenceModel, ranked: Any, words: Sequence[str], gold: np.ndarray
) -> list[Rival]:
    """The n best, each by how it differs from the first."""
    rivals, first = [], ranked.labels[0]
    for tags, share in zip(ranked.labels, ranked.probabilities, strict=True):
        others = [
            f"{words[t]}/{model.labels[tags[t]]}" for t in np.flatnonzero(tags != first).tolist()
        ]
        text = " ".join(others) or "as predicted"
        rivals.append(Rival(text, float(share), bool(np.array_equal(tags, gold))))
    return rivals


def _reasons(
    model: SequenceModel,
    data: SequenceDataset,
    outputs: Sequence[np.ndarray],
    limits: Mapping[str, Any],
) -> list[Explanation | None]:
    """Why each output beat gold; None where votes decide, or the model has no such label."""
    reasons: list[Explanation | None] = []
    try:
        decoder, data = model._linear(data, limits)
    except HopefearError:
        return [None] * len(outputs)
    for k, best in enumerate(outputs):
        one = data.take([k])
        gold = one.rows.labels
        known = (gold >= 0).all() and (gold < len(model.labels)).all()
        reason = None
        if known and not np.array_equal(best, gold):
            reason = against(decoder, data.features, model.labels, one, best, gold)
        reasons.append(reason)
    return reasons
