"""Sentences that a parser got wrong, for people to look at: both trees, what came close, why."""

from __future__ import annotations

from typing import Any

import numpy as np

from hopefear.data.treebank import Treebank
from hopefear.errors import HopefearError
from hopefear.metrics.dependencies import Trees
from hopefear.report.arcs import ArcDiagram
from hopefear.report.error_examples import Case, Judgement
from hopefear.report.examples import Rival
from hopefear.tasks.base import Explanation
from hopefear.tasks.parse.explaining import against
from hopefear.tasks.parse.model import ParseModel

_MOST = 3000  # sentences
_TOLD = 100  # of them, with why, and with what came close, which takes time
_SHORT = 40  # words of a sentence whose n best are sought: time grows with their cube
_RIVALS = 5


def judgement(
    model: ParseModel,
    bank: Treebank,
    data: Any,
    codes: np.ndarray,
    gold: Trees,
    output: Trees,
    n_jobs: int = 1,
) -> Judgement:
    """How many words of every sentence are wrong, and those sentences to look at.

    Parameters
    ----------
    model : ParseModel
        Who parsed.
    bank, data : Treebank, TreeDataset
        The sentences, and as the model sees them.
    codes : int array
        What the model says, in its numbers.
    gold, output : Trees
        The right trees, and those of the model.
    n_jobs : int
        Threads.
    """
    right, heads = (np.asarray(trees.heads) for trees in (gold, output))
    names = [[] if t.relations is None else t.relations.texts() for t in (gold, output)]
    wrong_head = right != heads
    wrong = wrong_head | (np.array(names[0]) != np.array(names[1]) if names[0] else False)
    errors = np.diff(np.concatenate([[0], np.cumsum(wrong)])[bank.starts])

    def cases(order: np.ndarray) -> list[Case]:
        told = order[:_TOLD]
        short = told[np.diff(bank.starts)[told] <= _SHORT]
        lists = model.decoder(n_jobs).k_best(data.take(short).rows, _RIVALS) if len(short) else []
        ranked = dict(zip(short.tolist(), lists, strict=True))
        words, tags = (bank.sentences.columns[name].texts() for name in ("form", "xpos"))
        own = np.array(codes), data.rows.labels
        rows = []
        for k, i in enumerate(order.tolist()):
            some = slice(*bank.starts[i : i + 2].tolist())
            mine, true = (each[some] for each in names[::-1])
            tree = ArcDiagram(
                words[some],
                heads[some].tolist(),
                mine,
                tags[some],
                right[some].tolist(),
                true if names[0] else None,
            )
            kinds = {"relation"} if (wrong & ~wrong_head)[some].any() else set()
            kinds |= {"head"} if wrong_head[some].any() else set()
            kinds |= {"root"} if (wrong_head & ((right == 0) | (heads == 0)))[some].any() else set()
            missed = np.flatnonzero(wrong[some]).tolist()
            rows.append(
                Case(
                    {"sentence": i + 1, "wrong words": int(errors[i])},
                    None,
                    tree,
                    sorted(kinds),
                    sorted({each[m] for m in missed for each in (mine, true) if each}),
                    _rivals(model, ranked[i], words[some], own[1][some]) if i in ranked else (),
                    _reason(model, bank, i, own[0][some], own[1][some]) if k < _TOLD else None,
                    i,
                )
            )
        return rows

    return Judgement(errors, cases, "sentences", "with most wrong words", _MOST)


def _rivals(model: ParseModel, ranked: Any, words: list[str], gold: np.ndarray) -> list[Rival]:
    """The n best, each by how it differs from the first."""
    rivals, first, n = [], ranked.labels[0], max(1, len(model.labels))
    for codes, share in zip(ranked.labels, ranked.probabilities, strict=True):
        arcs = []
        for m in np.flatnonzero(codes != first).tolist():
            head = int(codes[m]) // n
            relation = model.labels[int(codes[m]) % n] if model.labels else "below"
            arcs.append(f"{words[m]}: {relation} {words[head - 1] if head else 'the root'}")
        right = bool(np.array_equal(codes, gold))
        rivals.append(Rival("; ".join(arcs) or "as predicted", float(share), right))
    return rivals


def _reason(
    model: ParseModel, bank: Treebank, i: int, best: np.ndarray, gold: np.ndarray
) -> Explanation | None:
    """Why the tree beat gold; None where the model has no such relation, or no weights."""
    if (gold < 0).any() or np.array_equal(best, gold):
        return None
    try:
        reason = against(model, bank, i, best, gold)
    except HopefearError:
        return None
    words = bank.take([i]).sentences.columns["form"]

    def arc(answer: tuple[int, str | None]) -> str:
        head, relation = answer
        return f"{relation or 'below'} {words[head - 1] if head else 'the root'}"

    word = words[int(np.flatnonzero(best != gold)[0])]
    return reason._replace(label=f"{word}: {arc(reason.label)}", runner_up=arc(reason.runner_up))
