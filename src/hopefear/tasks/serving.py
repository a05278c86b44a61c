"""Models that are asked in JSON: what comes in, and answers as programs and pages show them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from hopefear.data.tokenizer import MAX_SENTENCE, Tokenizer
from hopefear.errors import HopefearError

MOST_REASONS = 64  # words of one input that are explained at once


class Service:
    """A model that answers what was parsed from JSON; several threads may ask at once.

    A subclass stands beside its task, whose entry in ``tasks.TASKS`` names it. What :meth:`read`
    gave for many inputs, whoever they came from, is answered together.

    Parameters
    ----------
    model : Model
        What answers.
    tagger : estimator, optional
        What gives words their tags, where the model needs some.
    """

    forms: Sequence[str] = ()  # what an input may be, in words
    text: bool = False  # whether it may be a text
    example: Any = None  # an input that can be read
    asked: ClassVar[frozenset[str]] = frozenset()  # what predict takes beside inputs

    def __init__(self, model: Any, tagger: Any = None) -> None:
        self.model, self.tagger = model, tagger

    def facts(self) -> dict[str, Any]:
        """What users of the model want to know."""
        model = self.model
        return {
            "task": model.task,
            "learner": model.about.get("learner"),
            "labels": list(getattr(model, "classes", ())),
            "features": model.features.size,
            "nonzeros": model.nnz,
            "input": list(self.forms),
            "text": self.text,
            "example": self.example,
            "signature": model.signature,
        }

    def read(self, value: Any) -> Any:
        """An input as the other methods take it; HopefearError where it cannot be one."""
        raise NotImplementedError

    def steps(self, one: Any, verb: str, numbers: Mapping[str, int]) -> int:
        """About how much a question about one input takes, in steps of 2 microseconds.

        ``verb`` names one of the methods below, ``numbers`` are those of the question. A step also
        makes less than 100 bytes of an answer.
        """
        raise NotImplementedError

    def predict(self, inputs: Sequence[Any]) -> list[dict[str, Any]]:
        """The best output of every input."""
        raise NotImplementedError

    def nbest(self, inputs: Sequence[Any], n: int) -> list[dict[str, Any]]:
        """The n best outputs of every input, best first, with probabilities."""
        raise NotImplementedError

    def explain(self, one: Any, top: int, place: Mapping[str, int]) -> dict[str, Any]:
        """What made answers to one input beat the runners-up; ``place`` says which, if not all."""
        raise NotImplementedError

    def refuse(self, value: Any) -> HopefearError:
        """What to say of an input that is of no known form."""
        return HopefearError(f"expected {', or '.join(self.forms)}; found {value!r:.60}")


class Passage(NamedTuple):
    """An input of words: a text, or one sentence whose tokens are given."""

    sentences: list[list[Any]]  # tokens, as the model reads them
    text: str | None = None
    bounds: Sequence[list[tuple[int, int]]] = ()  # where tokens stand in the text, by sentence


class Marks(NamedTuple):
    """What is said of one sentence."""

    columns: Mapping[str, Sequence[Any]]  # of tokens, by name
    spans: Sequence[tuple[int, int, str]] | None = None  # first token, the one behind the last
    facts: Mapping[str, float] = {}  # how good the output is


class SentenceService(Service):
    """A model whose inputs are texts or sentences, and whose outputs say something of tokens."""

    longest: ClassVar[int] = MAX_SENTENCE  # tokens of a sentence

    @cached_property
    def tokenizer(self) -> Any:
        """What finds sentences and tokens; HopefearError where text is not enough."""
        return Tokenizer(quotes="plain")

    def token(self, word: str) -> Any:
        """A word of a text as a token of the model."""
        return word

    def word(self, token: Any) -> str:
        """What is shown of a token."""
        return str(token)

    def check(self, sentence: list[Any]) -> None:
        """HopefearError where tokens are not what the model reads."""
        raise NotImplementedError

    def best(self, sentences: list[list[Any]]) -> list[Marks]:
        """The best output of every sentence."""
        raise NotImplementedError

    def ranked(self, sentences: list[list[Any]], n: int) -> list[list[Marks]]:
        """The n best outputs of every sentence."""
        raise NotImplementedError

    def reason(self, sentence: list[Any], t: int, top: int) -> dict[str, Any]:
        """Why token ``t`` got what it got."""
        raise NotImplementedError

    def search_steps(self, size: int, n: int) -> int:
        """What the n best outputs of a sentence of this size take; 0 is for the best alone."""
        raise NotImplementedError

    def reason_steps(self, size: int) -> int:
        """What the reason for one token of a sentence of this size takes."""
        raise NotImplementedError

    def read(self, value: Any) -> Passage:
        if isinstance(value, str):
            tokenizer = self.tokenizer
            bounds = [one for one in tokenizer.sentences(value) if one]
            words = [tokenizer.words(value, one) for one in bounds]
            passage = Passage([[*map(self.token, some)] for some in words], value, bounds)
        elif isinstance(value, list) and value:
            self.check(value)
            passage = Passage([value])
        else:
            raise self.refuse(value)
        if not passage.sentences:
            raise HopefearError("the text has no words; give some")
        size = max(map(len, passage.sentences))
        if size > self.longest:
            raise HopefearError(
                f"a sentence has {size:,} tokens, and {self.longest:,} are the most; split it"
            )
        return passage

    def steps(self, one: Passage, verb: str, numbers: Mapping[str, int]) -> int:
        if verb == "explain":
            sizes = [len(one.sentences[i]) for i, _ in self._places(one, numbers)]
            return sum(map(self.reason_steps, sizes))
        n = numbers.get("n", 0)
        if one.text is None:
            letters = sum(len(self.word(token)) for token in one.sentences[0])
        else:
            letters = len(one.text)
        searches = sum(self.search_steps(len(sentence), n) for sentence in one.sentences)
        return searches + max(1, n) * letters // 50  # every output spells its words

    def predict(self, inputs: Sequence[Passage]) -> list[dict[str, Any]]:
        marks = iter(self.best([one for passage in inputs for one in passage.sentences]))
        return [
            {
                "sentences": [
                    {**head, **shown(next(marks), tokens)} for head, tokens in self._heads(passage)
                ]
            }
            for passage in inputs
        ]

    def nbest(self, inputs: Sequence[Passage], n: int) -> list[dict[str, Any]]:
        lists = iter(self.ranked([one for passage in inputs for one in passage.sentences], n))
        return [
            {
                "sentences": [
                    {**head, "outputs": [shown(marks, tokens) for marks in next(lists)]}
                    for head, tokens in self._heads(passage)
                ]
            }
            for passage in inputs
        ]

    def explain(self, one: Passage, top: int, place: Mapping[str, int]) -> dict[str, Any]:
        places = self._places(one, place)
        reasons = []
        for i, t in places:
            sentence = one.sentences[i]
            where = {"sentence": i, "token": t, "text": self.word(sentence[t])}
            try:
                reasons.append({**where, **self.reason(sentence, t, top)})
            except HopefearError as error:
                if len(places) == 1:
                    raise
                reasons.append({**where, "note": str(error)})
        return {"reasons": reasons}

    def _places(self, one: Passage, place: Mapping[str, int]) -> list[tuple[int, int]]:
        """The (sentence, token), from 0, that are asked about."""
        if "token" not in place:
            some = range(len(one.sentences)) if "sentence" not in place else [place["sentence"]]
            places = [(i, t) for i in some for t in range(_size(one, i))]
            if len(places) > MOST_REASONS:
                raise HopefearError(
                    f"there are {len(places):,} tokens to explain, and {MOST_REASONS} are the "
                    "most; name one by sentence and token"
                )
            return places
        i, t = place.get("sentence", 0), place["token"]
        if not t < _size(one, i):
            raise HopefearError(f"sentence {i} has no token {t}; both are counted from 0")
        return [(i, t)]

    def _heads(self, passage: Passage) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
        """Of every sentence what stands before its output, and its tokens."""
        text = passage.text
        if text is None:
            yield {}, [{"text": self.word(token)} for token in passage.sentences[0]]
            return
        for bounds in passage.bounds:
            a, b = bounds[0][0], bounds[-1][1]
            tokens = [{"text": text[a:b], "start": a, "end": b} for a, b in bounds]
            yield {"text": text[a:b], "start": a, "end": b}, tokens


def _size(passage: Passage, i: int) -> int:
    if i >= len(passage.sentences):
        raise HopefearError(f"there is no sentence {i}; they are counted from 0")
    return len(passage.sentences[i])


def measured(score: float, probability: float, share: float) -> dict[str, float]:
    """How good an output is, in plain numbers."""
    return {"score": float(score), "probability": float(probability), "share": float(share)}


def shown(marks: Marks, tokens: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What is said of a sentence, for JSON.

    >>> shown(Marks({"label": ["B-P"]}, [(0, 1, "P")]), [{"text": "Ann"}])["spans"]
    [{'label': 'P', 'first': 0, 'after': 1, 'text': 'Ann'}]
    """
    rows: list[dict[str, Any]] = [{**token} for token in tokens]
    for name, values in marks.columns.items():
        for row, value in zip(rows, values, strict=True):
            row[name] = value
    output = {**marks.facts, "tokens": rows}
    if marks.spans is not None:
        output["spans"] = [_span(tokens, *span) for span in marks.spans]
    return output


def _span(tokens: Sequence[Mapping[str, Any]], first: int, after: int, kind: str) -> dict[str, Any]:
    begin = tokens[first]
    text = begin["text"]
    if after > first + 1:
        text = " ".join([token["text"] for token in tokens[first:after]])
    span = {"label": kind, "first": first, "after": after, "text": text}
    if "start" in begin:
        span["start"], span["end"] = begin["start"], tokens[after - 1]["end"]
    return span
