"""Sentences that a tagger got wrong, for people to look at: how, what came close, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hopefear.data.sequences import Column, SequenceDataset
from hopefear.errors import HopefearError
from hopefear.report.error_examples import Case, Judgement
from hopefear.report.examples import MarkedText, Rival, Span
from hopefear.tasks.base import Explanation
from hopefear.tasks.tag.explaining import against
from hopefear.tasks.tag.model import SequenceModel
from hopefear.tasks.tag.text import spans_by_sentence

_RIVALS = 5


def judgement(
    model: SequenceModel,
    data: SequenceDataset,
    tags: np.ndarray,
    words: Sequence[str] | None,
    gold: Column,
    output: Column,
    scheme: str | None,
    constrained: bool = True,
    n_jobs: int = 1,
) -> Judgement:
    """How many tokens of every sentence are wrong, and those sentences to look at.

    Parameters
    ----------
    model : SequenceModel
        Who tagged.
    data : SequenceDataset
        The sentences with their gold labels, in the model's numbers.
    tags : int array
        What the model says, in its numbers.
    words : sequence of str, optional
        The tokens; numbers where there are none.
    gold, output : Column
        The same labels in the scheme of the file.
    scheme : str, optional
        That scheme; None where labels are no spans.
    constrained, n_jobs
        As for :meth:`SequenceModel.decoder`.
    """
    starts = data.rows.starts
    texts = [gold.texts(), output.texts()]
    wrong = np.array(texts[0]) != np.array(texts[1])
    errors = np.diff(np.concatenate([[0], np.cumsum(wrong)])[starts])

    def cases(order: np.ndarray) -> list[Case]:
        some = data.take(order)
        ranked, reasons = [], []
        if len(order):
            ranked = model.decoder(constrained, n_jobs=n_jobs).k_best(some.rows, _RIVALS)
            outputs = [tags[starts[i] : starts[i + 1]] for i in order]
            reasons = _reasons(model, some, outputs, constrained)
        groups = None
        if scheme is not None:
            groups = [spans_by_sentence(labels, starts, scheme) for labels in (gold, output)]
        rows = []
        for k, i in enumerate(order.tolist()):
            first, after = starts[i : i + 2].tolist()
            numbers = [str(t + 1) for t in range(after - first)]
            own = numbers if words is None else words[first:after]
            places = np.flatnonzero(wrong[first:after]).tolist()
            if groups is not None:
                right, mine = groups[0][i], groups[1][i]
                kinds, labels = _span_kinds(right, mine), sorted({s[2] for s in {*right} ^ {*mine}})
            else:
                right, mine = ([(t, t + 1, text[first + t]) for t in places] for text in texts)
                kinds = sorted({f"{a[2]} → {b[2]}" for a, b in zip(right, mine, strict=True)})
                labels = sorted({span[2] for span in [*right, *mine]})
            reason = reasons[k]
            if reason is not None and places:
                reason = reason._replace(label=f"{own[places[0]]}: {reason.label}")
            rows.append(
                Case(
                    {"sentence": i + 1, "wrong tokens": int(errors[i])},
                    MarkedText(own, right, {*right} - {*mine}),
                    MarkedText(own, mine, {*mine} - {*right}),
                    kinds,
                    labels,
                    _rivals(model, ranked[k], own, data.rows.labels[first:after]),
                    reason,
                    i,
                )
            )
        return rows

    return Judgement(errors, cases, "sentences", "with most wrong tokens")


def _span_kinds(gold: Sequence[Span], output: Sequence[Span]) -> list[str]:
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
    model: SequenceModel, data: SequenceDataset, outputs: Sequence[np.ndarray], constrained: bool
) -> list[Explanation | None]:
    """Why each output beat gold; None where votes decide, or the model has no such label."""
    reasons: list[Explanation | None] = []
    try:
        decoder, data = model._linear(data, {"constrained": constrained})
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
