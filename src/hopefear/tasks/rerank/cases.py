"""Lists of which a reranker chose a dearer candidate than it could, for people to look at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hopefear.data.lists.candidates import CandidateLists
from hopefear.report.examples import BracketedText, Case, Cases, Rival
from hopefear.tasks.base import cut
from hopefear.tasks.rerank.model import RerankModel

_MOST = 300  # lists
_RIVALS = 5


def cases(
    model: RerankModel, blocks: Sequence[CandidateLists]
) -> tuple[Cases, np.ndarray, np.ndarray]:
    """The lists whose chosen candidate costs most beside the cheapest.

    Also how probable the chosen candidates are, and which of them are the cheapest.
    """
    worst: list[tuple[float, Case]] = []
    probabilities, gaps = [np.zeros(0)], [np.zeros(0)]
    for block in blocks:
        data, ranker = model.encode(block, judged=True), model.ranker()
        choices = ranker.best(data.rows)
        probabilities.append(ranker.probabilities(data.rows)[data.rows.starts[:-1] + choices])
        costs = cut(data.rows.costs, data.rows.starts)
        losses = [each[choice] - each.min() for each, choice in zip(costs, choices, strict=True)]
        before = sum(map(len, gaps))
        for i in np.argsort(losses, kind="stable")[::-1][:_MOST].tolist():
            if losses[i] > 0.0:
                worst.append((losses[i], _case(model, block, data, i, before + i)))
        worst = sorted(worst, key=lambda pair: (-pair[0], pair[1].at))[:_MOST]
        gaps.append(np.array(losses))
    right = np.concatenate(gaps) <= 0.0
    wrong = int(np.count_nonzero(~right))
    errors = Cases([case for _, case in worst], wrong, len(right), "lists", "that lose most")
    return errors, np.concatenate(probabilities), right


def _case(model: RerankModel, block: CandidateLists, lists: Any, i: int, number: int) -> Case:
    first, after = block.starts[i : i + 2].tolist()
    data = lists.take([i])
    costs, texts = data.rows.costs, block.texts[first:after]
    [ranked] = model.ranker().nbest(data.rows, _RIVALS)
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
    reason = model.explain(data, 0, choice, best) if linear else None
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
