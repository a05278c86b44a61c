"""Examples that a classifier got wrong, for people to look at: how sure it was, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from hopefear.report.error_examples import Case
from hopefear.report.examples import Rival, View, WeighedText
from hopefear.tasks.classify.model import Model

MOST = 400  # examples
_RIVALS = 5
_VALUES = 40  # features that stand for an example without a text


class Mistake(NamedTuple):
    """An example of which the model thought something else, or might have."""

    number: int  # in the file, from 0
    row: Any  # a dataset of it alone
    label: int
    gold: int
    shares: np.ndarray  # probability of every class


def worst(
    before: Sequence[Mistake], data: Any, labels: np.ndarray, table: np.ndarray, number: int
) -> list[Mistake]:
    """Those of before and of a block whose right class was thought least probable.

    Parameters
    ----------
    before : sequence of Mistake
        Of the blocks before.
    data : SparseDataset
        The block.
    labels, table : arrays
        The model's classes, and the probabilities of all.
    number : int
        Of the block's first example.
    """
    gold = data.rows.labels
    shares = table[np.arange(len(gold)), gold]
    wrong = np.flatnonzero(labels != gold)
    some = [
        Mistake(number + k, data.take([k]), int(labels[k]), int(gold[k]), table[k])
        for k in wrong[np.argsort(shares[wrong], kind="stable")[:MOST]].tolist()
    ]
    return sorted([*before, *some], key=lambda mistake: mistake.shares[mistake.gold])[:MOST]


def losses(gold: np.ndarray, labels: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Log loss of the examples that are wrong, 0 of the others.

    >>> losses(np.array([0, 1]), np.array([0, 0]), np.array([[0.9, 0.1], [0.75, 0.25]])).round(3)
    array([0.   , 1.386])
    """
    shares = table[np.arange(len(gold)), gold].astype(np.float64)
    return np.where(labels != gold, np.maximum(-np.log(np.maximum(shares, 1e-300)), 1e-9), 0.0)


def cases(
    model: Model, classes: Sequence[str], mistakes: Sequence[Mistake], texts: Mapping[int, str]
) -> list[Case]:
    """The mistakes with what misled the model; ``texts`` by number, where there are any.

    ``classes`` are those of the model, and behind them those that it lacks.
    """
    rows = []
    for number, row, label, gold, shares in mistakes:
        explained = model.predictor.linear and label != gold and gold < len(model.classes)
        reason = model.explain(row, 0, label, gold) if explained else None
        names = classes[gold], classes[label]
        order = np.argsort(-shares, kind="stable")[:_RIVALS].tolist()
        view: View | str
        if number in texts:
            view = WeighedText.of(texts[number], () if reason is None else reason.contributions)
        else:
            values = zip(row.rows.indices[:_VALUES], row.rows.values[:_VALUES], strict=True)
            view = " ".join(f"{model.feature_name(j)}:{value:g}" for j, value in values)
        rows.append(
            Case(
                {
                    "example": number + 1,
                    "p(gold)": round(float(shares[gold]), 4),
                    "gold": names[0],
                    "predicted": names[1],
                },
                None,
                view,
                [f"{names[0]} → {names[1]}"],
                sorted({*names}),
                [Rival(classes[k], float(shares[k]), k == gold) for k in order],
                reason,
                number,
            )
        )
    return rows
