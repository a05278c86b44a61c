"""Tagged text: tokens and spans as stretches of its characters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from hopefear.data.schemes import spans
from hopefear.data.sequences import Column, Sentences
from hopefear.errors import HopefearError

Paint = Callable[[str, str], str]


class TextToken(NamedTuple):
    """A token, where it stands in the text, and its label."""

    text: str
    start: int
    end: int
    label: Any


class TextSpan(NamedTuple):
    """A stretch of the text that has a label of its own, such as a name."""

    label: str
    start: int
    end: int
    text: str


@dataclass(frozen=True, repr=False)
class TaggedSentence:
    """A sentence of a text: ``text[start:end]`` of the whole.

    Parameters
    ----------
    text : str
        The sentence as it stands there.
    start, end : int
        Where it begins and ends, in characters; so of tokens and spans.
    tokens : tuple of TextToken
        All of them.
    spans : tuple of TextSpan
        What the labels spell; empty where they are no spans.
    """

    text: str
    start: int
    end: int
    tokens: tuple[TextToken, ...]
    spans: tuple[TextSpan, ...]

    @property
    def labels(self) -> list[Any]:
        """The labels of the tokens."""
        return [token.label for token in self.tokens]

    def __repr__(self) -> str:
        words = [token.text for token in self.tokens]
        if not self.spans:
            return f"<{inline(words, self.labels, None)}>"
        return f"<{inline(words, [], self._places())}>"

    def _places(self) -> list[tuple[int, int, str]]:
        starts = {token.start: k for k, token in enumerate(self.tokens)}
        ends = {token.end: k + 1 for k, token in enumerate(self.tokens)}
        return [(starts[a], ends[b], kind) for kind, a, b, _ in self.spans]

    def view(self) -> Any:
        """The sentence to look at; see :func:`hopefear.show`."""
        from hopefear.report.examples import MarkedText

        words, labels = [token.text for token in self.tokens], map(str, self.labels)
        spans = self._places() or [
            (t, t + 1, label) for t, label in enumerate(labels) if label != "O"
        ]
        return MarkedText(words, spans)

    def _repr_html_(self) -> str:
        from hopefear.report.notebook import Shown

        return Shown(self.view())._repr_html_()


def inline(
    words: Sequence[str],
    labels: Sequence[Any],
    spans: Sequence[tuple[int, int, str]] | None,
    paint: Paint | None = None,
) -> str:
    """A sentence in one line, with brackets around its spans.

    Parameters
    ----------
    words : sequence of str
        The tokens.
    labels : sequence of labels
        Theirs; written behind them where there are no spans.
    spans : sequence of (first, after, kind), optional
        Tokens from ``first`` to ``after - 1`` make a span; None where labels are no spans.
    paint : callable, optional
        ``paint(text, kind)`` takes the place of brackets and slashes.

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
    write = paint or (lambda text, kind: f"[{kind} {text}]")
    parts, done = [], 0
    for first, after, kind in spans:
        parts += [*words[done:first], write(" ".join(words[first:after]), kind)]
        done = after
    return " ".join([*parts, *words[done:]])


class CharacterSpans(NamedTuple):
    """The sentences of a text, as a model reads them and as they stand there."""

    sentences: Sentences
    text: str
    bounds: list[list[tuple[int, int]]]  # begin and end of the tokens of each sentence
    at: int = 0  # where the text begins in a longer one

    def repeated(self, starts: np.ndarray, counts: np.ndarray | None) -> CharacterSpans:
        """Every sentence so many times; ``starts`` are those of the copies."""
        if counts is None:
            return self
        which = np.repeat(np.arange(len(self.bounds)), counts).tolist()
        return self._replace(
            sentences=Sentences(starts, {}, "text"), bounds=[self.bounds[i] for i in which]
        )

    def tagged(
        self, labels: Sequence[Any], names: Column | None, scheme: str | None
    ) -> Iterator[TaggedSentence]:
        """The sentences with their labels.

        Parameters
        ----------
        labels : sequence of labels
            One for every token.
        names : Column
            The same by name, which spell spans.
        scheme : str, optional
            Their tag scheme.
        """
        starts = self.sentences.starts
        groups = spans_by_sentence(names, starts, scheme) if scheme and names is not None else None
        for i, (begin, after) in enumerate(pairwise(starts.tolist())):
            bounds = self.bounds[i]
            tokens = tuple(
                TextToken(self.text[a:b], self.at + a, self.at + b, label)
                for (a, b), label in zip(bounds, labels[begin:after], strict=True)
            )
            some = []
            for first, last, kind in groups[i] if groups else ():
                a, b = bounds[first][0], bounds[last - 1][1]
                some.append(TextSpan(kind, self.at + a, self.at + b, self.text[a:b]))
            a, b = bounds[0][0], bounds[-1][1]
            yield TaggedSentence(self.text[a:b], self.at + a, self.at + b, tokens, tuple(some))


def spans_by_sentence(
    labels: Column, starts: np.ndarray, scheme: str
) -> list[list[tuple[int, int, str]]]:
    """The spans of each sentence: first token, token behind the last, kind; from 0 in each.

    >>> spans_by_sentence(Column.of(["B-X", "O", "B-Y"]), np.array([0, 2, 3]), "bio")
    [[(0, 1, 'X')], [(0, 1, 'Y')]]
    """
    first, after, kinds = spans(labels, starts, scheme, repair=True)
    groups: list[list[tuple[int, int, str]]] = [[] for _ in range(len(starts) - 1)]
    sentence = np.searchsorted(starts, first, "right") - 1
    for i, a, b, kind in zip(
        sentence.tolist(), first.tolist(), after.tolist(), kinds.texts(), strict=True
    ):
        begin = int(starts[i])
        groups[i].append((a - begin, b - begin, kind))
    return groups


def read_text(
    text: str,
    tokenizer: Any,
    model: Any,
    found: list[list[tuple[int, int]]] | None = None,
    at: int = 0,
) -> CharacterSpans:
    """The sentences of a text in the columns that a model needs, which must be words alone.

    Parameters
    ----------
    text : str
        What is read.
    tokenizer : Tokenizer
        What finds sentences and says how their tokens are written.
    model : SequenceModel
        Whose columns they get.
    found : list of lists of (begin, end), optional
        The sentences, where they are known.
    at : int
        Where the text begins in a longer one.
    """
    names = word_columns(model)
    bounds = [list(one) for one in (tokenizer.sentences(text) if found is None else found) if one]
    words = [word for one in bounds for word in tokenizer.words(text, one)]
    starts = np.concatenate([[0], np.cumsum([len(one) for one in bounds])]).astype(np.int64)
    column = Column.of(words)
    sentences = Sentences(starts, dict.fromkeys(names, column), "text")
    return CharacterSpans(sentences, text, bounds, at)


def word_columns(model: Any) -> tuple[str, ...]:
    """What the features of a model call words; HopefearError where they need more than these."""
    features, reading = model.features, model.about.get("reading", {})
    if features.kind == "attributes":
        raise HopefearError(
            "text has words, and this model's features are attributes that were made elsewhere; "
            "make them of the tokens that hopefear.data.tokenizer finds, and ask predict"
        )
    known = {"word", "form"}
    if reading.get("format") != "conllu":
        known |= {"0", *(reading.get("columns") or ("word",))[:1]}
    more = [name for name in features.needs if name not in known]
    if more:
        raise HopefearError(
            f"text has words alone, and this model's features need the column {', '.join(more)} "
            "too; tag it elsewhere and give columns, or train on words alone (--columns "
            "word,_,label leaves out the column between)"
        )
    return tuple(features.needs) or ("word",)


def as_dict(sentence: TaggedSentence) -> Mapping[str, Any]:
    """A sentence for JSON.

    >>> as_dict(TaggedSentence("Ann", 4, 7, (TextToken("Ann", 4, 7, "B-P"),), ()))["tokens"]
    [{'text': 'Ann', 'start': 4, 'end': 7, 'label': 'B-P'}]
    """
    return {
        "text": sentence.text,
        "start": sentence.start,
        "end": sentence.end,
        "tokens": [token._asdict() for token in sentence.tokens],
        "spans": [span._asdict() for span in sentence.spans],
    }
