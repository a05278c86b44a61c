"""A tagger that is asked in JSON."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from hopefear.data.sequences import Column, SequenceDataset
from hopefear.data.token_input import TokenInput
from hopefear.errors import HopefearError
from hopefear.tasks.base import cut
from hopefear.tasks.serving import Marks, SentenceService, measured
from hopefear.tasks.tag.model import SequenceModel
from hopefear.tasks.tag.text import spans_by_sentence, word_columns


class TagService(SentenceService):
    """Labels of tokens, and the spans that they spell.

    Examples
    --------
    >>> from hopefear import Tagger
    >>> X, y = [["Ann", "Lee", "sings"]] * 2, [["B-PER", "I-PER", "O"]] * 2
    >>> service = TagService(Tagger("perceptron").fit(X, y).model_)
    >>> (answer,) = service.predict([service.read("Ann Lee sings.")])
    >>> [(span["label"], span["text"]) for span in answer["sentences"][0]["spans"]]
    [('PER', 'Ann Lee')]
    """

    def __init__(self, model: SequenceModel, tagger: Any = None) -> None:
        super().__init__(model, tagger)
        columns = model.about.get("estimator", {}).get("columns")
        self._columns = tuple(getattr(model.features, "needs", ()) if columns is None else columns)
        self._reader = TokenInput(self._columns)
        try:
            word_columns(model)
            self.text = True
        except HopefearError as error:
            self._no_text = error
        n = len(self._columns)
        words = "The quick brown fox jumps over the lazy dog ."
        tokens: list[Any] = [[word, *["_"] * (n - 1)] for word in words.split()]
        row = f"a list of tokens, each a list of {', '.join(self._columns)}"
        if n == 1:
            tokens, row = words.split(), f"a list of tokens (the column {self._columns[0]})"
        elif n == 0:
            tokens = [[f"word={word}"] for word in words.split()]
            row = "a list of tokens, each a list of attributes or an object of attribute: value"
        self.forms = (*(["a text"] if self.text else []), row)
        self.example = "The quick brown fox jumps over the lazy dog." if self.text else tokens

    @cached_property
    def tokenizer(self) -> Any:
        if not self.text:
            raise self._no_text
        return self.model.tokenizer

    @cached_property
    def _decoder(self) -> Any:
        return self.model.decoder()

    def token(self, word: str) -> Any:
        return word if len(self._columns) == 1 else (word,) * len(self._columns)

    def word(self, token: Any) -> str:
        if isinstance(token, dict):
            token = [token.get(self._columns[0])] if self._columns else list(token)
        if isinstance(token, str):
            return token
        return str(token[0]) if self._columns else " ".join(map(str, token))

    def check(self, sentence: list[Any]) -> None:
        self._reader.read([sentence])

    def best(self, sentences: list[list[Any]]) -> list[Marks]:
        data = self._data(sentences)
        return list(self._marks(self._decoder.predict(data.rows), data.rows.starts))

    def ranked(self, sentences: list[list[Any]], n: int) -> list[list[Marks]]:
        data = self._data(sentences)
        lists = []
        for ranked in self._decoder.k_best(data.rows, n):
            count, size = ranked.labels.shape
            starts = np.arange(count + 1, dtype=np.int64) * size
            facts = map(measured, ranked.scores, ranked.probabilities, ranked.shares)
            marks = self._marks(ranked.labels.ravel(), starts)
            lists.append([one._replace(facts=fact) for one, fact in zip(marks, facts, strict=True)])
        return lists

    def reason(self, sentence: list[Any], t: int, top: int) -> dict[str, Any]:
        return self.model.explain(self._data([sentence]), 0, t).facts(top)

    def search_steps(self, size: int, n: int) -> int:
        # A network takes as long as some twenty times the features, and labels count beyond a few.
        network = hasattr(self.model.predictor, "decoder")
        return size * (2 + n) * (20 if network else 1 + len(self.model.labels) // 100)

    def reason_steps(self, size: int) -> int:
        return 750 + size

    def _data(self, sentences: list[list[Any]]) -> SequenceDataset:
        return self.model.encode(self._reader.read(sentences).content)

    def _marks(self, tags: np.ndarray, starts: np.ndarray) -> Iterator[Marks]:
        labels = Column(self.model.labels, tags)
        groups: list[Any] = [None] * (len(starts) - 1)
        if self.model.scheme is not None:
            groups = spans_by_sentence(labels, starts, self.model.scheme)
        for some, spans in zip(cut(labels.texts(), starts), groups, strict=True):
            yield Marks({"label": some}, spans)
