"""Choices of weights from lists of translations, as error examples beside those of other
weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hopefear.data.lists.candidates import CandidateLists
from hopefear.metrics.lists import ListMetric
from hopefear.report.error_examples import ErrorExample, Judgement
from hopefear.report.examples import ChangedText, Rival
from hopefear.tasks.base import Explanation, explanation
from hopefear.translation.scoring import best, scores
from hopefear.translation.text_features import derived, needed
from hopefear.translation.weights import Weights

_MAX_LISTS = 300  # lists
_RIVALS = 5


def judgements(
    lists: CandidateLists,
    metric: ListMetric,
    first: tuple[str, Weights],
    second: tuple[str, Weights],
    texts: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Judgement]:
    """Compares the choices of two weights: the additional cost, and the reasons.

    Parameters
    ----------
    lists : CandidateLists
        With texts and counts of the metric.
    metric : ListMetric
        Tells the cost of a candidate.
    first, second : (str, Weights)
        Names and weights.
    texts : mapping, optional
        Other texts by name, such as references: line i is for the list with id i.

    Examples
    --------
    >>> from hopefear.metrics.lists import metric_named
    >>> from hopefear.translation.lists import lists_in_memory
    >>> lists = lists_in_memory([[("a b", {"LM0": 1.0}), ("a c", {"LM0": 2.0})]], ["a c"])
    >>> weights = [Weights((("LM0", 1),), [w]) for w in (-1.0, 1.0)]
    >>> both = judgements(lists, metric_named("bleu"), *zip(("before", "after"), weights))
    >>> [judgement.errors[0] > 0 for judgement in both.values()]
    [np.True_, np.False_]
    >>> [case] = both["after"].cases(np.array([0]))
    >>> case.predicted.to_text(), case.reason.contributions
    ('a c', [('LM0', 1.0)])
    """
    models = dict((first, second))
    assert lists.counts is not None
    costs = metric.costs(lists.counts)
    lowest = np.minimum.reduceat(costs, lists.starts[:-1])
    # Some weights need features that are computed from the text.
    own_lists = {name: derived(lists, needed(weights)) for name, weights in models.items()}
    points = {name: scores(own_lists[name], weights) for name, weights in models.items()}
    choices = {
        name: lists.starts[:-1] + best(scores_of, lists) for name, scores_of in points.items()
    }

    def judgement(name: str, rival_name: str) -> Judgement:
        def cases(order: np.ndarray) -> list[ErrorExample]:
            return [example(i) for i in order.tolist()]

        def example(i: int) -> ErrorExample:
            choice, rival = int(choices[name][i]), int(choices[rival_name][i])
            first, after = lists.starts[i : i + 2].tolist()
            ranked = first + np.argsort(-points[name][first:after], kind="stable")[:_RIVALS]
            rivals = [
                Rival(
                    f"cost {costs[c]:.3f}: {lists.texts[c]}",
                    right=bool(costs[c] <= lowest[i]),
                    note=f"{points[name][c]:.4f}",
                )
                for c in ranked.tolist()
            ]
            number = int(lists.ids[i])
            example_texts = {key: lines[number] for key, lines in (texts or {}).items()}
            return ErrorExample(
                {
                    "sentence": number + 1,
                    "cost": round(float(costs[choice]), 4),
                    "lowest": round(float(lowest[i]), 4),
                },
                None,
                ChangedText(lists.texts[choice], lists.texts[rival]),
                rivals=rivals,
                reason=None
                if choice == rival
                else _reason(own_lists[name], models[name], choice, rival, rival_name),
                at=number,
                texts=example_texts,
            )

        errors = costs[choices[name]] - lowest
        return Judgement(errors, cases, "lists", "that lose most", _MAX_LISTS, graded=True)

    (a, b) = models
    return {a: judgement(a, b), b: judgement(b, a)}


def _reason(
    lists: CandidateLists, weights: Weights, choice: int, rival: int, rival_name: str
) -> Explanation:
    """Explains why weights prefer a candidate to that of other weights."""
    gains: dict[str, float] = {}
    if weights.layout:
        arranged = weights.arranged(lists.layout, lists.source)
        steps = arranged.dense * (lists.dense[choice].astype(float) - lists.dense[rival])
        gains |= dict(zip(lists.names, steps.tolist(), strict=True))
    for entries, weights_of in ((lists.sparse, weights.sparse), (lists.phrases, weights.phrases)):
        if entries is None or not weights_of:
            continue
        for c, sign in ((choice, 1.0), (rival, -1.0)):
            for name, value in entries.of(c):
                gains[name] = gains.get(name, 0.0) + sign * value * weights_of.get(name, 0.0)
    return explanation("this candidate", f"that of {rival_name}", gains.items())
