"""Answers of a reranker: the best candidates of lists, scores, probabilities, reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np

from hopefear.data.lists.candidates import CandidateLists, without_copies
from hopefear.data.lists.dataset import Blocks, ListDataset, counts_of, each
from hopefear.errors import HopefearError
from hopefear.metrics.lists import ListScores, evaluate_lists
from hopefear.report.error_examples import ErrorExample, Judgement
from hopefear.report.examples import BracketedText, Rival
from hopefear.tasks.answers import Answers, Question
from hopefear.tasks.base import Explanation
from hopefear.tasks.rerank.model import RerankModel

_MOST = 300  # lists on a page
_RIVALS = 5
ALONE = "one candidate, which beats no other"


class RerankRecord(NamedTuple):
    """The best candidates of one list."""

    id: str
    candidates: list[dict[str, Any]]  # best first
    trees: bool = False  # whether the texts are trees
    several: bool = False  # whether a list in a new order was asked for, not the best alone

    def as_dict(self) -> dict[str, Any]:
        """The same for JSON; several candidates are a list again, as readers of files know it.

        >>> RerankRecord("a", [{"position": 1, "text": "hope", "score": 2.0}]).as_dict()
        {'id': 'a', 'best': 1, 'text': 'hope', 'score': 2.0}
        """
        if not self.several:
            best = {key: value for key, value in self.candidates[0].items() if key != "position"}
            return {"id": self.id, "best": self.candidates[0]["position"], **best}
        names = {"text": "tree"} if self.trees else {}
        return {
            "id": self.id,
            "candidates": [
                {names.get(key, key): value for key, value in candidate.items()}
                for candidate in self.candidates
            ],
        }


@dataclass(frozen=True)
class RerankAnswers(Answers):
    """Scores and order of the candidates of some lists; going through it gives records.

    Parameters
    ----------
    given, lists : CandidateLists
        The lists as they came, and as the model reads them: without copies, where it was trained
        so.
    positions : int64 array
        Where each candidate of ``lists`` stands in its list of ``given``.
    data : ListDataset
        ``lists`` in the features of the model.
    scores, order : array
        Of each candidate its score (float64); positions in ``lists``, best first (int64).
    probabilities : float64 array, optional
        Of each candidate, where they were asked for.
    n : int, optional
        Candidates of a record; None for the best alone.
    """

    given: CandidateLists
    lists: CandidateLists
    positions: np.ndarray
    data: ListDataset
    scores: np.ndarray
    order: np.ndarray
    probabilities: np.ndarray | None = None
    n: int | None = None

    def __len__(self) -> int:
        return len(self.lists)

    def __iter__(self) -> Iterator[RerankRecord]:
        trees = self.lists.trees is not None
        for i, (start, end) in enumerate(pairwise(self.lists.starts.tolist())):
            best = (start + self.order[start:end][: self.n or 1]).tolist()
            candidates = [self._candidate(c) for c in best]
            yield RerankRecord(self.lists.ids[i], candidates, trees, self.n is not None)

    @property
    def best(self) -> np.ndarray:
        """Position of the best candidate of each list as it was given (int64)."""
        starts = self.lists.starts[:-1]
        return self.positions[starts + self.order[starts]]

    @property
    def ranks(self) -> list[np.ndarray]:
        """Positions of the candidates of each list as it was given, best first."""
        starts = self.lists.starts.tolist()
        return [self.positions[a:b][self.order[a:b]] for a, b in pairwise(starts)]

    def by_list(self, values: np.ndarray, absent: float) -> list[np.ndarray]:
        """Returns one number for each candidate given, ``absent`` for copies left out, by list."""
        lengths = np.diff(self.lists.starts)
        values_given = np.full(self.given.n_candidates, absent)
        values_given[np.repeat(self.given.starts[:-1], lengths) + self.positions] = values
        return [values_given[a:b] for a, b in pairwise(self.given.starts.tolist())]

    def _candidate(self, c: int) -> dict[str, Any]:
        lists = self.lists
        candidate: dict[str, Any] = {
            "position": int(self.positions[c]),
            "text": lists.texts[c],
            "score": float(self.scores[c]),
        }
        if lists.derivations is not None and lists.derivations[c] is not None:
            candidate["derivation"] = lists.derivations[c]
        if self.probabilities is not None:
            candidate["probability"] = float(self.probabilities[c])
        return candidate


class AnswersOfBlocks(Answers):
    """Answers to the lists of several blocks, one behind the other."""

    def __init__(self, parts: Sequence[RerankAnswers]) -> None:
        self.parts = parts

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __iter__(self) -> Iterator[RerankRecord]:
        return chain.from_iterable(self.parts)


def answer(model: RerankModel, rows: CandidateLists, question: Question) -> RerankAnswers:
    """Returns scores and order of candidates.

    Parameters
    ----------
    model : RerankModel
        What ranks.
    rows : CandidateLists
        The lists, with all of their candidates, so that positions are those in the file.
    question : Question
        How many candidates, and whether with probabilities.

    Examples
    --------
    >>> from hopefear import Reranker
    >>> from hopefear.data.lists.objects import ListReader
    >>> X = [[{"fear": 1}, {"hope": 1}]] * 2
    >>> model = Reranker("perceptron").fit(X, [[1, 0]] * 2).model_
    >>> [block] = ListReader().read(X)
    >>> [record.as_dict()["best"] for record in answer(model, block, Question())]
    [1, 1]
    """
    lists, positions = read_by_model(model, rows)
    data, decoder = model.encode(lists), model.ranker()
    scores = decoder.scores(data.rows)
    order = decoder.ranked(data.rows, scores)
    shares = decoder.probabilities(data.rows, scores) if question.proba else None
    return RerankAnswers(rows, lists, positions, data, scores, order, shares, question.n)


def read_by_model(model: RerankModel, block: CandidateLists) -> tuple[CandidateLists, np.ndarray]:
    """Returns lists as a model reads them, and the positions of their candidates in those given."""
    mask = without_copies(block, model.about.get("reading", {}).get("dedup", "first"))
    lengths = np.diff(block.starts)
    positions = np.arange(block.n_candidates) - np.repeat(block.starts[:-1], lengths)
    return (block, positions) if mask.all() else (block.keep(mask), positions[mask])


class RerankReason(NamedTuple):
    """Reason for the order of two candidates of a list."""

    id: str
    line: int
    candidates: list[dict[str, Any]]  # the one and the other
    reason: Explanation | None  # None where there is no other

    def as_dict(self, top: int) -> dict[str, Any]:
        """The same for JSON, with the ``top`` strongest features."""
        head = {"list": self.id, "line": self.line}
        if self.reason is None:
            return {**head, "note": ALONE}
        texts = [candidate["text"] for candidate in self.candidates]
        return {**head, "texts": texts, **self.reason.facts(top)}


def reasons(
    model: RerankModel,
    block: CandidateLists,
    i: int | None = None,
    pair: tuple[int | None, int | None] = (None, None),
) -> Iterator[RerankReason]:
    """Yields why the best candidate of each list beats the next.

    Parameters
    ----------
    model : RerankModel
        What ranks.
    block : CandidateLists
        The lists, with all of their candidates.
    i : int, optional
        The only list to explain, by its number in the block.
    pair : (int or None, int or None)
        Positions of the candidate to explain and of its rival; None for the best, and for the next.
    """
    model.check_linear()
    ranking = answer(model, block, Question())
    for k in range(len(ranking)) if i is None else [i]:
        yield _reason(model, ranking, k, pair)


def _reason(
    model: RerankModel, ranking: RerankAnswers, i: int, pair: tuple[int | None, int | None]
) -> RerankReason:
    lists = ranking.lists
    start, end = lists.starts[i : i + 2].tolist()
    positions = ranking.positions[start:end].tolist()
    for position in pair:
        if position is not None and position not in positions:
            raise HopefearError(
                f"list {lists.ids[i]!r} has no candidate {position}; it has 0 to {positions[-1]}, "
                "where texts that came before are left out"
            )
    numbers = [None if position is None else positions.index(position) for position in pair]
    reason, pair_positions = None, [0]
    if end - start > 1:
        reason = model.explain(ranking.data, i, *numbers)
        pair_positions = [reason.label, reason.runner_up]
        label, runner_up = (positions[c] for c in pair_positions)
        reason = reason._replace(label=label, runner_up=runner_up)
    candidates = [ranking._candidate(start + c) for c in pair_positions]
    return RerankReason(lists.ids[i], ranking.given.line_of(i), candidates, reason)


def evaluate(
    model: RerankModel, lists: Blocks | ListDataset, *, samples: int = 1000, seed: int = 1
) -> ListScores:
    """Returns scores of the choices beside those of the 1-best, the oracle and the worst.

    Parameters
    ----------
    model : RerankModel
        What chooses.
    lists : CandidateLists, several, or ListDataset
        Lists with costs, or with references.
    samples, seed : int
        Resamples behind bounds and p-values.
    """
    if not isinstance(lists, ListDataset):
        lists = (read_by_model(model, block)[0] for block in each(lists))
    data, decoder = model.encode(lists, judged=True), model.ranker()
    points = decoder.scores(data.rows)
    return evaluate_lists(
        model.metric,
        counts_of(data, model.metric),
        data.rows.starts,
        decoder.predict(data.rows, points),
        data.rows.costs,
        scores=data.scores,
        model_scores=points,
        n_references=data.n_references,
        samples=samples,
        seed=seed,
    )


def choices(model: RerankModel, blocks: Sequence[CandidateLists]) -> tuple[Judgement, np.ndarray]:
    """Returns what the chosen candidates cost above the cheapest, and their probabilities."""
    ranker, blocks = model.ranker(), [read_by_model(model, block)[0] for block in blocks]
    encoded = [model.encode(block, judged=True) for block in blocks]
    gaps, shares = [np.zeros(0)], [np.zeros(0)]
    for data in encoded:
        rows = data.rows
        best = rows.starts[:-1] + ranker.predict(rows)
        gaps.append(rows.costs[best] - np.minimum.reduceat(rows.costs, rows.starts[:-1]))
        shares.append(ranker.probabilities(rows)[best])
    starts = np.cumsum([0, *map(len, blocks)])

    def cases(order: np.ndarray) -> list[ErrorExample]:
        chosen = []
        for i in order.tolist():
            k = int(np.searchsorted(starts, i, "right")) - 1
            chosen.append(_case(model, blocks[k], encoded[k], i - int(starts[k]), i))
        return chosen

    judgement = Judgement(
        np.concatenate(gaps), cases, "lists", "that lose most", _MOST, graded=True
    )
    return judgement, np.concatenate(shares)


def _case(
    model: RerankModel, block: CandidateLists, lists: Any, i: int, number: int
) -> ErrorExample:
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
    return ErrorExample(
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
