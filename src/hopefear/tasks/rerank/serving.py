"""A reranker that is asked in JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.lists.objects import ListReader
from hopefear.errors import HopefearError
from hopefear.tasks.answers import Question
from hopefear.tasks.rerank.answers import answer, reasons
from hopefear.tasks.rerank.model import RerankModel
from hopefear.tasks.serving import Service

_TREES = ("(S1 (S (NP (NN fear)) (VP (VBZ fades))))", "(S1 (S (NP (NN fear) (NNS fades))))")

_BARE, _RECORD = "an object of feature: number", "with some of features, score, text and tree"
# What a candidate is, by what the reader knows of records.
_FORMS = {True: f"an object {_RECORD}, or {_BARE}", False: _BARE}


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

    asked = frozenset({"proba"})

    def __init__(self, model: RerankModel, tagger: Any = None) -> None:
        super().__init__(model, tagger)
        records = model.about.get("reading", {}).get("records", True)
        self._reader = ListReader(records)
        if model.features.extraction.trees:
            candidates: list[Any] = [{"tree": tree, "score": -1.0} for tree in _TREES]
        else:
            named = [model.features.name(j) for j in range(min(2, model.features.size))]
            candidates = [{"features": {name: 1.0}} for name in named] or [{"features": {}}]
            if not records:
                candidates = [one["features"] for one in candidates]
        self.example = {"candidates": candidates}
        self.forms = (
            f"a list of candidates, each {_FORMS[records]}",
            "an object with such a list as candidates",
        )

    def read(self, value: Any) -> Any:
        candidates = value.get("candidates") if isinstance(value, dict) else value
        if not isinstance(candidates, list) or not candidates:
            raise self.refuse(value)
        self.model.encode(self._lists([candidates]))
        return value

    def steps(self, one: Any, verb: str, numbers: Mapping[str, int]) -> int:
        most, size = numbers.get("n", 1), len(one["candidates"] if isinstance(one, dict) else one)
        return 3 * size + (800 + numbers["top"] if verb == "explain" else 200 + most)

    def predict(self, inputs: Sequence[Any], proba: bool = False) -> list[dict[str, Any]]:
        return self._records(inputs, Question(None, proba))

    def nbest(self, inputs: Sequence[Any], n: int) -> list[dict[str, Any]]:
        return self._records(inputs, Question(n, True))

    def explain(self, one: Any, top: int, place: Mapping[str, int]) -> dict[str, Any]:
        if place:
            raise HopefearError(f"{' and '.join(place)}: an input here has none; leave it out")
        return {
            "reasons": [reason.as_dict(top) for reason in reasons(self.model, self._lists([one]))]
        }

    def _records(self, inputs: Sequence[Any], question: Question) -> list[dict[str, Any]]:
        """Records, which have an id where the input has one."""
        dicts = answer(self.model, self._lists(inputs), question).as_dicts()
        for value, record in zip(inputs, dicts, strict=True):
            if not (isinstance(value, dict) and "id" in value):
                del record["id"]
        return dicts

    def _lists(self, inputs: Sequence[Any]) -> CandidateLists:
        [block] = self._reader.read(inputs, judged=False)
        return block
