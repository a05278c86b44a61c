"""A reranker that is asked in JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hopefear.errors import HopefearError
from hopefear.tasks.base import cut
from hopefear.tasks.rerank.input import ListReader
from hopefear.tasks.rerank.model import RerankModel
from hopefear.tasks.serving import Service, measured

_TREES = ("(S1 (S (NP (NN fear)) (VP (VBZ fades))))", "(S1 (S (NP (NN fear) (NNS fades))))")

_BARE, _RECORD = "an object of feature: number", "with some of features, score, text and tree"
# What a candidate is, by what the reader knows of records.
_FORMS = {None: f"{_BARE}, or one {_RECORD}", True: f"an object {_RECORD}", False: _BARE}


class RerankService(Service):
    """The best of lists of candidates.

    Examples
    --------
    >>> from hopefear import Reranker
    >>> X, y = [[{"fear": 1}, {"hope": 1}]] * 2, [[1, 0]] * 2
    >>> service = RerankService(Reranker("perceptron").fit(X, y).model_)
    >>> service.predict([service.read([{"hope": 2}, {"fear": 2}])])[0]["best"]
    0
    """

    def __init__(self, model: RerankModel, tagger: Any = None) -> None:
        super().__init__(model, tagger)
        records = model.about.get("estimator", {}).get("records")
        self._reader = ListReader(None if records is None else bool(records))
        records = self._reader.records
        self._ranker = model.ranker()
        if model.features.extraction.trees:
            candidates: list[Any] = [{"tree": tree, "score": -1.0} for tree in _TREES]
        else:
            named = [model.features.name(j) for j in range(min(2, model.features.size))]
            candidates = [{"features": {name: 1.0}} for name in named] or [{"features": {}}]
            if records is False:
                candidates = [one["features"] for one in candidates]
        self.example = {"candidates": candidates}
        self.forms = (
            f"a list of candidates, each {_FORMS[records]}",
            "an object with such a list as candidates",
        )

    def read(self, value: Any) -> list[Any]:
        candidates = value.get("candidates") if isinstance(value, dict) else value
        if not isinstance(candidates, list) or not candidates:
            raise self.refuse(value)
        self._encoded([candidates])
        return candidates

    def steps(self, one: list[Any], verb: str, numbers: Mapping[str, int]) -> int:
        most = numbers.get("n", 1)
        return 3 * len(one) + (800 + numbers["top"] if verb == "explain" else 200 + most)

    def predict(self, inputs: Sequence[list[Any]]) -> list[dict[str, Any]]:
        return [
            {"best": best.pop("position"), **{k: v for k, v in best.items() if k != "share"}}
            for answer in self.nbest(inputs, 1)
            for best in answer["outputs"]
        ]

    def nbest(self, inputs: Sequence[list[Any]], n: int) -> list[dict[str, Any]]:
        rows = self._encoded(inputs).rows
        scores = self._ranker.scores(rows)
        shares = self._ranker.probabilities(rows, scores)
        orders = cut(self._ranker.ranked(rows, scores), rows.starts)
        lists = []
        for candidates, order, start in zip(inputs, orders, rows.starts.tolist(), strict=False):
            best = order[:n].tolist()
            total = max(1e-300, float(shares[start + order[:n]].sum()))
            outputs = []
            for c in best:
                p = shares[start + c]
                output = {"position": c, **measured(scores[start + c], p, p / total)}
                given = candidates[c] if isinstance(candidates[c], dict) else {}
                text = given.get("text", given.get("tree"))
                outputs.append(output | ({"text": text} if isinstance(text, str) else {}))
            lists.append({"outputs": outputs})
        return lists

    def explain(self, one: list[Any], top: int, place: Mapping[str, int]) -> dict[str, Any]:
        if place:
            raise HopefearError(f"{' and '.join(place)}: an input here has none; leave it out")
        return {"reasons": [self.model.explain(self._encoded([one])).facts(top)]}

    def _encoded(self, inputs: Sequence[list[Any]]) -> Any:
        return self.model.encode(self._reader.read(list(inputs), judged=False))
