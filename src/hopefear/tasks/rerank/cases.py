"""Lists of which a reranker chose a dearer candidate than it could, for people to look at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hopefear.data.lists.candidates import CandidateLists
from hopefear.report.error_examples import Case, Judgement
from hopefear.report.examples import BracketedText, Rival
from hopefear.tasks.rerank.model import RerankModel

_MOST = 300  # lists
_RIVALS = 5


class Choices(NamedTuple):
    """What a reranker chose from all lists."""

    judgement: Judgement
    probabilities: np.ndarray  # of the chosen candidates


def choices(model: RerankModel, blocks: Sequence[CandidateLists]) -> Choices:
    """How much more than the cheapest the chosen candidates cost, and those lists to look at."""
    ranker = model.ranker()
    encoded = [model.encode(block, judged=True) for block in blocks]
    gaps, shares = [np.zeros(0)], [np.zeros(0)]
    for data in encoded:
        rows = data.rows
        best = rows.starts[:-1] + ranker.predict(rows)
        gaps.append(rows.costs[best] - np.minimum.reduceat(rows.costs, rows.starts[:-1]))
        shares.append(ranker.probabilities(rows)[best])
    starts = np.cumsum([0, *map(len, blocks)])

    def cases(order: np.ndarray) -> list[Case]:
        some = []
        for i in order.tolist():
            k = int(np.searchsorted(starts, i, "right")) - 1
            some.append(_case(model, blocks[k], encoded[k], i - int(starts[k]), i))
        return some

    judgement = Judgement(
        np.concatenate(gaps), cases, "lists", "that lose most", _MOST, graded=True
    )
    return Choices(judgement, np.concatenate(shares))


def _case(model: RerankModel, block: CandidateLists, lists: Any, i: int, number: int) -> Case:
    first, after = block.starts[i : i + 2].tolist()
    data = lists.take([i])
    costs, texts = data.rows.costs, block.texts[first:after]
    [ranked] = model.ranker().k_best(data.rows, _RIVALS)
    choice, best = int(ranked.labels[0, 0]), int(np.argmin(costs))
    decoder = int(np.argmax(block.scores[first:after]))
    kind = "as the generator's first choice"
    if costs[choice] != costs[decoder]:
        kind = f"{'worse' if costs[choice] > costs[decoder] else 'better'} than the generator's"
    trees = block.trees is not None

    def view(one: int, other: int) -> Any:
        return BracketedText(texts[one], texts[other]) if trees else texts[one]

    rivals = []
    for (c,), share in zip(ranked.labels.tolist(), ranked.probabilities.tolist(), strict=True):
        text = f"candidate {c}, cost {costs[c]:.4g}" + ("" if trees else f": {texts[c]}")
        rivals.append(Rival(text, share, costs[c] == costs[best]))
    linear = model.predictor.linear
    reason = model.explain(data, 0, choice, best) if linear and choice != best else None
    if reason is not None:
        names = [f"candidate {c} (cost {costs[c]:.4g})" for c in (choice, best)]
        reason = reason._replace(label=names[0], runner_up=names[1])
    return Case(
        {
            "list": block.ids[i],
            "cost": round(float(costs[choice]), 6),
            "lowest": round(float(costs[best]), 6),
        },
        view(best, choice),
        view(choice, best),
        [kind],
        (),
        rivals,
        reason,
        number,
    )
