"""A tagger that is asked in JSON."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import islice
from typing import Any

from hopefear.data.sequences import SequenceDataset
from hopefear.data.token_input import TokenInput
from hopefear.errors import HopefearError
from hopefear.tasks.serving import Passage, SentenceService
from hopefear.tasks.tag.answers import TagAnswers, TagDecoder
from hopefear.tasks.tag.model import SequenceModel


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

    asked = frozenset({"proba"})

    def __init__(self, model: SequenceModel, tagger: Any = None) -> None:
        super().__init__(model, tagger)
        columns = model.about.get("estimator", {}).get("columns")
        self._columns = tuple(getattr(model.features, "needs", ()) if columns is None else columns)
        self._reader = TokenInput(self._columns)
        try:
            model.text_columns()
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
    def _decoder(self) -> TagDecoder:
        return TagDecoder(self.model)

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

    def predict(self, inputs: Any, proba: bool = False) -> list[dict[str, Any]]:
        records = iter(self._answers(inputs, proba=proba))
        return [
            {
                "sentences": [
                    _placed(record, passage, i).as_dict()
                    for i, record in enumerate(islice(records, len(passage.sentences)))
                ]
            }
            for passage in inputs
        ]

    def nbest(self, inputs: Any, n: int) -> list[dict[str, Any]]:
        answers = self._answers(inputs, n)
        assert answers.counts is not None
        records, counts, outputs = iter(answers), iter(answers.counts.tolist()), []
        for passage in inputs:
            sentences = []
            for i, count in zip(range(len(passage.sentences)), counts, strict=False):
                ranked = [_placed(r, passage, i).as_dict() for r in islice(records, count)]
                sentences.append({"outputs": ranked})
            outputs.append({"sentences": sentences})
        return outputs

    def reason(self, sentence: list[Any], t: int, top: int) -> dict[str, Any]:
        return self._decoder.explain(self._data([sentence]), 0, t).facts(top)

    def steps(self, one: Passage, verb: str, numbers: Mapping[str, int]) -> int:
        steps = super().steps(one, verb, numbers)
        if numbers.get("proba"):  # every span needs a search of its own
            spans = [len(sentence) // 2 for sentence in one.sentences]
            sizes = map(len, one.sentences)
            steps += sum(
                self.search_steps(size, 0) * (1 + n) for size, n in zip(sizes, spans, strict=True)
            )
        return steps

    def search_steps(self, size: int, n: int) -> int:
        # A network takes as long as some twenty times the features, and labels count beyond a few.
        network = hasattr(self.model.predictor, "decoder")
        return size * (2 + n) * (20 if network else 1 + len(self.model.labels) // 100)

    def reason_steps(self, size: int) -> int:
        return 750 + size

    def _data(self, sentences: list[list[Any]]) -> SequenceDataset:
        return self.model.encode(self._reader.read(sentences))

    def _answers(self, inputs: Any, n: int | None = None, proba: bool = False) -> TagAnswers:
        tokens = [sentence for passage in inputs for sentence in passage.sentences]
        return self._decoder.answers(self._reader.read(tokens), n, proba)


def _placed(record: Any, passage: Passage, i: int) -> Any:
    """The record of sentence ``i`` of an input, with places where that is a text."""
    return record if passage.text is None else record.in_text(passage.text, passage.bounds[i])
