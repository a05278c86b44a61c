"""What a tagger says of sentences: one columnar answer, and a record for each output of it.

Every channel reads these: the command line, the estimator, the HTTP service, notebooks, spaCy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, repeat
from typing import Any, NamedTuple

import numpy as np

from hopefear.data.schemes import convert, scheme_name, spans
from hopefear.data.sequences import Column, SequenceDataset
from hopefear.data.token_examples import TokenExamples
from hopefear.errors import HopefearError
from hopefear.tasks.answers import Answers
from hopefear.tasks.base import Explanation, cut
from hopefear.tasks.tag.model import SequenceModel

_SENTENCES = 1000  # at a time, where every span needs a search of its own
Paint = Callable[[str, str], str]


class TextToken(NamedTuple):
    """A token and its label; where it stands, of text."""

    text: str
    start: int | None
    end: int | None
    label: Any
    probability: float | None = None


class Span(NamedTuple):
    """A labelled stretch of a sentence, such as a name.

    It goes from ``start`` to before ``end``: characters of a text, tokens (from 0) of a sentence
    whose tokens were given.
    """

    start: int
    end: int
    label: str
    probability: float | None = None  # that exactly this span is there
    text: str = ""


@dataclass(frozen=True, repr=False)
class TaggedSentence:
    """A label sequence for a sentence.

    Parameters
    ----------
    tokens : tuple of TextToken
        All tokens, with their labels.
    spans : tuple of Span
        What the labels spell; empty where they are no spans.
    scheme : str, optional
        The tag scheme of the labels; None where they are no spans.
    text, start, end : str, int, int
        Of a text, the sentence and its characters: ``text[start:end]`` of the whole.
    rank, score, probability : int, float, float
        Of one of the n best its rank, from 1, and its score; the probability of all labels.
    """

    tokens: tuple[TextToken, ...]
    spans: tuple[Span, ...] = ()
    scheme: str | None = None
    text: str | None = None
    start: int | None = None
    end: int | None = None
    rank: int | None = None
    score: float | None = None
    probability: float | None = None

    @property
    def labels(self) -> list[Any]:
        """The labels of the tokens."""
        return [token.label for token in self.tokens]

    def __repr__(self) -> str:
        words = [token.text for token in self.tokens]
        places = None if self.scheme is None else self._places()
        return f"<{inline(words, self.labels, places)}>"

    def as_dict(self) -> dict[str, Any]:
        """Returns the sentence for JSON.

        >>> token = TextToken("Ann", 4, 7, "B-P")
        >>> TaggedSentence((token,), (), "bio", "Ann", 4, 7).as_dict()["tokens"]
        [{'text': 'Ann', 'start': 4, 'end': 7, 'label': 'B-P'}]
        """
        names = ("rank", "score", "probability", "text", "start", "end")
        record = _without_none({name: getattr(self, name) for name in names})
        record["tokens"] = [_without_none(token._asdict()) for token in self.tokens]
        if self.scheme is not None:
            order = ("label", "start", "end", "text", "probability")
            record["spans"] = [
                _without_none({name: getattr(span, name) for name in order}) for span in self.spans
            ]
        return record

    def in_text(self, text: str, bounds: Sequence[tuple[int, int]], at: int = 0) -> TaggedSentence:
        """Returns the same with the places of tokens and spans in a text.

        Parameters
        ----------
        text : str
            The text.
        bounds : sequence of (start, end)
            Its characters that are tokens.
        at : int
            Where the text begins in a longer one.
        """
        tokens = tuple(
            token._replace(text=text[a:b], start=at + a, end=at + b)
            for token, (a, b) in zip(self.tokens, bounds, strict=True)
        )
        spans = []
        for span in self.spans:
            a, b = bounds[span.start][0], bounds[span.end - 1][1]
            spans.append(span._replace(start=at + a, end=at + b, text=text[a:b]))
        a, b = bounds[0][0], bounds[-1][1]
        start, end = at + a, at + b
        return replace(
            self, tokens=tokens, spans=tuple(spans), text=text[a:b], start=start, end=end
        )

    def view(self) -> Any:
        """Returns the sentence to look at; see :func:`hopefear.show`."""
        from hopefear.report.examples import MarkedText

        words, labels = [token.text for token in self.tokens], map(str, self.labels)
        spans = self._places() or [
            (t, t + 1, label) for t, label in enumerate(labels) if label != "O"
        ]
        return MarkedText(words, spans)

    def _repr_html_(self) -> str:
        from hopefear.report.notebook import Shown

        return Shown(self.view())._repr_html_()

    def _places(self) -> list[tuple[int, int, str]]:
        """The spans by tokens: the first, the one behind the last, the label."""
        if self.text is None:
            return [(span.start, span.end, span.label) for span in self.spans]
        starts = {token.start: t for t, token in enumerate(self.tokens)}
        ends = {token.end: t + 1 for t, token in enumerate(self.tokens)}
        return [(starts[span.start], ends[span.end], span.label) for span in self.spans]


class SpanTable(NamedTuple):
    """Spans of several label sequences, in their order; tokens are counted through all of them."""

    first: np.ndarray  # int64[spans]
    after: np.ndarray  # int64[spans]
    kinds: Column
    bounds: np.ndarray  # int64[sequences + 1]: where the spans of each sequence begin

    def of(self, starts: np.ndarray, i: int) -> list[tuple[int, int, str]]:
        """Returns the spans of sequence ``i``: its tokens, and the label."""
        begin, some = int(starts[i]), slice(*self.bounds[i : i + 2])
        columns = self.first[some] - begin, self.after[some] - begin
        kinds = [self.kinds.strings[k] for k in self.kinds.ids[some].tolist()]
        return list(zip(*(column.tolist() for column in columns), kinds, strict=True))


def span_table(labels: Column, starts: np.ndarray, scheme: str) -> SpanTable:
    """Returns the spans that labels spell, illegal ones as the scorer reads them.

    >>> table = span_table(Column.of(["B-X", "O", "B-Y"]), np.array([0, 2, 3]), "bio")
    >>> [table.of(np.array([0, 2, 3]), i) for i in range(2)]
    [[(0, 1, 'X')], [(0, 1, 'Y')]]
    """
    first, after, kinds = spans(labels, starts, scheme, repair=True)
    return SpanTable(first, after, kinds, np.searchsorted(first, starts))


class TagDecoder:
    """The decoder of a tagger, asked about sentences; nobody else decodes.

    Parameters
    ----------
    model : SequenceModel
        The tagger.
    constrained, allowed, n_jobs
        As for :meth:`SequenceModel.decoder`.
    scheme : str, optional
        Spell spans in this scheme, rather than in that of the model.
    values : sequence, optional
        Labels as they are to be given, in the order of their numbers; their names unless said.
    """

    def __init__(
        self,
        model: SequenceModel,
        constrained: Any = True,
        allowed: Any = None,
        n_jobs: int = 1,
        scheme: str | None = None,
        values: Sequence[Any] | None = None,
    ) -> None:
        self.model, self.values = model, values
        self.limits = {"constrained": constrained, "allowed": allowed}
        self._n_jobs = n_jobs
        self.scheme = None if scheme is None else scheme_name(scheme)
        if self.scheme is not None and model.scheme is None:
            raise HopefearError(f"--scheme {scheme}: the model's labels are no spans; leave it out")

    @cached_property
    def search(self) -> Any:
        """The decoder that finds labels."""
        return self.model.decoder(**self.limits, n_jobs=self._n_jobs)

    @cached_property
    def judge(self) -> Any:
        """The decoder that says how sure they are: sentences without legal labels count once."""
        return self.model.decoder(**self.limits, n_jobs=self._n_jobs)

    @property
    def unlimited(self) -> int:
        """Number of sentences that have no legal labels and were tagged without limits."""
        return self.search.unlimited

    def answers(
        self,
        examples: TokenExamples,
        n: int | None = None,
        proba: bool = False,
        data: SequenceDataset | None = None,
    ) -> TagAnswers:
        """Returns the best labels of sentences, or the n best; ``data`` is what they encode to."""
        data = self.model.encode(examples) if data is None else data
        return TagAnswers(self, examples, data, n, proba)

    def explain(self, data: SequenceDataset, sentence: int, token: int) -> Explanation:
        """Returns what made the label of a token beat the runner-up, both counted from 0."""
        return self.model.explain(data, sentence, token, **self.limits)


class TagAnswers(Answers):
    """Outputs for sentences, one after the other: labels, and on request how sure they are.

    Iterating gives a record, :class:`TaggedSentence`, for every output.

    Parameters
    ----------
    decoder : TagDecoder
        Who answers.
    examples, data
        The sentences, and what they encode to.
    n : int, optional
        The n best outputs of every sentence, rather than the best one.
    proba : bool
        Whether records have all probabilities.

    Attributes
    ----------
    starts : int64 array
        Output i has the tokens ``starts[i] .. starts[i + 1] - 1``.
    tags : int32 array
        The label of every token, in the model's numbers.
    counts : int array or None
        Of the n best, outputs of each sentence; they follow each other.
    """

    starts: np.ndarray
    tags: np.ndarray
    counts: np.ndarray | None = None

    def __init__(
        self,
        decoder: TagDecoder,
        examples: TokenExamples,
        data: SequenceDataset,
        n: int | None = None,
        proba: bool = False,
    ) -> None:
        self.decoder, self.examples, self.data, self.proba = decoder, examples, data, proba
        self.model, self._outputs = decoder.model, data
        self.scheme = decoder.scheme or self.model.scheme
        if n is None:
            self.tags = decoder.search.predict(data.rows)
        else:
            lists = decoder.search.k_best(data.rows, n)
            self.counts = np.array([len(ranked.scores) for ranked in lists], np.int64)
            self._outputs = data.take(self.sentences)
            tags = [np.empty(0, np.int32), *(ranked.labels.ravel() for ranked in lists)]
            self.tags = np.concatenate(tags).astype(np.int32)
            self.ranks = np.concatenate([np.empty(0, int), *map(np.arange, self.counts)]) + 1
            self.scores, self._sure, self.shares = (
                np.concatenate([np.empty(0), *(getattr(ranked, name) for ranked in lists)])
                for name in ("scores", "probabilities", "shares")
            )
        self.starts = self._outputs.rows.starts

    def __len__(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def sentences(self) -> np.ndarray:
        """The sentence of each output."""
        numbers = np.arange(len(self.data))
        return numbers if self.counts is None else np.repeat(numbers, self.counts)

    @cached_property
    def labels(self) -> Column:
        """The labels by name, spelled in the scheme that was asked for."""
        column, model = Column(self.model.labels, self.tags), self.model
        if model.scheme is None or self.scheme in (None, model.scheme):
            return column
        return convert(column, self.starts, model.scheme, str(self.scheme), repair=True)

    @cached_property
    def marginals(self) -> np.ndarray:
        """Probability of each label at every token of the sentences."""
        return self.decoder.judge.probabilities(self.data.rows)

    @cached_property
    def token_probabilities(self) -> np.ndarray:
        """Probability of the label of every token of the outputs."""
        table = self.marginals
        if self.counts is not None:
            tokens = [np.arange(a, b) for a, b in pairwise(self.data.rows.starts)]
            table = table[np.concatenate([tokens[i] for i in self.sentences])]
        # Sums of rounded numbers may pass 1 by the last digit.
        return np.minimum(table[np.arange(len(self.tags)), self.tags], 1.0)

    @cached_property
    def probabilities(self) -> np.ndarray:
        """Probability of every output, under the whole model."""
        if self.counts is not None:
            return self._sure
        self.tags.flags.writeable = False  # as rows are; kernels would compile again for others
        rows = self.data.rows._replace(labels=self.tags)
        return np.exp(self.decoder.judge.log_likelihoods(rows))

    @cached_property
    def spans(self) -> SpanTable | None:
        """The spans that the labels spell; None where these are no spans."""
        if self.model.scheme is None:
            return None
        return span_table(Column(self.model.labels, self.tags), self.starts, self.model.scheme)

    @cached_property
    def span_probabilities(self) -> np.ndarray:
        """Probability of every span: that it is there, with exactly these bounds and this label."""
        if self.spans is None:
            raise HopefearError("labels without a tag scheme make no spans")
        shares = [np.empty(0)]
        for begin in range(0, len(self), _SENTENCES):
            end = min(begin + _SENTENCES, len(self))
            some = self._outputs.take(np.arange(begin, end))
            tags = self.tags[self.starts[begin] : self.starts[end]]
            limits = dict(self.decoder.limits)
            if limits["allowed"] is not None:
                limits["allowed"] = [limits["allowed"][i] for i in self.sentences[begin:end]]
            confidences = self.model.span_probabilities(some, tags, **limits)
            shares.append(np.array([span.probability for span in confidences]))
        return np.concatenate(shares)

    def values(self) -> list[Any]:
        """Returns the labels of all tokens as they are to be given."""
        known = self.decoder.values
        if known is None or self.scheme != self.model.scheme:
            return self.labels.texts()
        return [known[c] for c in self.tags.tolist()]

    def __iter__(self) -> Iterator[TaggedSentence]:
        proba = self.proba
        labels, characters = self.values(), self.examples.characters
        shares = self.token_probabilities.tolist() if proba else [None] * len(labels)
        spans = self.span_lists(proba) if self.spans is not None else repeat(())
        bounds, sentences = pairwise(self.starts.tolist()), self.sentences.tolist()
        for i, ((begin, end), words, some) in enumerate(
            zip(bounds, self.words(), spans, strict=False)
        ):
            rows = zip(words, labels[begin:end], shares[begin:end], strict=True)
            tokens = tuple(TextToken(word, None, None, label, p) for word, label, p in rows)
            record = TaggedSentence(tokens, some, self.scheme, **self._facts(i))
            if characters is not None:
                places = characters.bounds[sentences[i]]
                record = record.in_text(characters.text, places, characters.at)
            yield record

    def as_dicts(self) -> list[dict[str, Any]]:
        """Returns the records for JSON; those of the n best of a sentence under ``outputs``."""
        records = super().as_dicts()
        if self.counts is None:
            return records
        return [{"outputs": some} for some in cut(records, np.cumsum([0, *self.counts]))]

    def words(self) -> Iterator[list[str]]:
        """Yields the tokens of every output, as they stand in the input."""
        texts, bounds = self.examples.texts(), list(pairwise(self.data.rows.starts.tolist()))
        return (texts[slice(*bounds[i])] for i in self.sentences.tolist())

    def span_lists(self, proba: bool = False) -> Iterator[tuple[Span, ...]]:
        """Yields the spans of every output, by tokens."""
        sure: Any = self.span_probabilities.tolist() if proba else None
        table = self.spans
        if table is None:
            raise HopefearError("labels without a tag scheme make no spans")
        for i, words in enumerate(self.words()):
            places = enumerate(table.of(self.starts, i), int(table.bounds[i]))
            yield tuple(
                Span(a, b, label, None if sure is None else sure[k], " ".join(words[a:b]))
                for k, (a, b, label) in places
            )

    def _facts(self, i: int) -> dict[str, Any]:
        """What is said of a whole output."""
        if self.counts is None:
            return {"probability": float(self.probabilities[i])} if self.proba else {}
        return {
            "rank": int(self.ranks[i]),
            "score": float(self.scores[i]),
            "probability": float(self.probabilities[i]),
        }


def inline(
    words: Sequence[str],
    labels: Sequence[Any],
    spans: Sequence[tuple[int, int, str]] | None,
    paint: Paint | None = None,
) -> str:
    """Returns a sentence in one line, with brackets around its spans.

    Parameters
    ----------
    words : sequence of str
        The tokens.
    labels : sequence of labels
        Theirs; written behind them where there are no spans.
    spans : sequence of (first, after, label), optional
        Tokens from ``first`` to ``after - 1`` make a span; None where labels are no spans.
    paint : callable, optional
        ``paint(text, label)`` takes the place of brackets and slashes.

    Examples
    --------
    >>> inline(["Ann", "Lee", "left"], [], [(0, 2, "PER")])
    '[PER Ann Lee] left'
    >>> inline(["Ann", "left"], ["NNP", "VBD"], None)
    'Ann/NNP left/VBD'
    """
    if spans is None:
        write = paint or (lambda word, label: f"{word}/{label}")
        return " ".join(write(word, str(label)) for word, label in zip(words, labels, strict=True))
    write = paint or (lambda text, label: f"[{label} {text}]")
    parts, done = [], 0
    for first, after, label in spans:
        parts += [*words[done:first], write(" ".join(words[first:after]), label)]
        done = after
    return " ".join([*parts, *words[done:]])


def _without_none(record: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if value is not None}
