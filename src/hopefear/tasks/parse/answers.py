"""What a parser answers: trees, how sure they are, and the tags that they were made from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.arrays import stretches
from hopefear.data.sequences import Column
from hopefear.data.treebank import Treebank, parse_treebank
from hopefear.errors import InputError
from hopefear.tasks.parse.model import ParseModel

_BLANKS = re.compile(r"\s+")


class ParsedToken(NamedTuple):
    """A word in a tree; ``text[start:end]`` of the text where it came from one."""

    text: str
    head: int
    relation: str | None = None
    probability: float | None = None  # of the head
    start: int | None = None
    end: int | None = None
    upos: str | None = None  # given by a tagger, as the two below
    xpos: str | None = None
    feats: str | None = None


@dataclass(frozen=True, repr=False)
class ParsedSentence:
    """A sentence with one of its trees.

    Parameters
    ----------
    tokens : tuple of ParsedToken
        The words.
    text, start, end : str and int, optional
        The sentence in the text that it came from.
    rank, score, probability, share : optional
        Of one of the n best trees: its rank from 1, its score, its probability, and its share of
        the probability of the n.

    Examples
    --------
    >>> ParsedSentence((ParsedToken("It", 2, "expl"), ParsedToken("rains", 0, "root")))
    <It 2:expl rains 0:root>
    """

    tokens: tuple[ParsedToken, ...]
    text: str | None = None
    start: int | None = None
    end: int | None = None
    rank: int | None = None
    score: float | None = None
    probability: float | None = None
    share: float | None = None

    @property
    def tree(self) -> list[Any]:
        """A head and a relation of each word; its head alone where there are no relations."""
        if all(token.relation is None for token in self.tokens):
            return [token.head for token in self.tokens]
        return [(token.head, token.relation) for token in self.tokens]

    def as_dict(self) -> dict[str, Any]:
        """The same for JSON, without what is not known."""
        names = ("text", "start", "end", "rank", "score", "probability")
        known = {name: value for name in names if (value := getattr(self, name)) is not None}
        order = ("text", "start", "end", "upos", "xpos", "feats", "head", "relation", "probability")
        tokens = [
            {name: value for name in order if (value := getattr(token, name)) is not None}
            for token in self.tokens
        ]
        return {**known, "tokens": tokens}

    def __repr__(self) -> str:
        words = (f"{t.text} {t.head}{'' if t.relation is None else ':' + t.relation}"
                 for t in self.tokens)  # fmt: skip
        return f"<{' '.join(words)}>"

    def view(self) -> Any:
        """The sentence to look at; see :func:`hopefear.show`."""
        from hopefear.report.arcs import ArcDiagram

        words, heads = [t.text for t in self.tokens], [t.head for t in self.tokens]
        tags = [t.upos or t.xpos or "" for t in self.tokens]
        return ArcDiagram(words, heads, [t.relation or "" for t in self.tokens], tags)

    def _repr_html_(self) -> str:
        from hopefear.report.notebook import Shown

        return Shown(self.view())._repr_html_()


class TextWords(NamedTuple):
    """The words of a text.

    Parameters
    ----------
    bank : Treebank
        The words as the model knows them; its file is the text as CoNLL-U.
    text : str
        The text.
    bounds : int64 array [words, 2]
        Where each word begins and ends in the text.
    """

    bank: Treebank
    text: str
    bounds: np.ndarray


@dataclass(frozen=True)
class ParseAnswers:
    """Trees of all sentences, in arrays.

    Parameters
    ----------
    bank : Treebank
        The sentences as they were read.
    heads : int array [words of all trees]
        Heads of the words.
    relations : Column, optional
        Their relations.
    tags : mapping of str to Column
        Columns that taggers gave to the words of all trees.
    arcs : float array, optional
        How probable the head of each word is.
    counts : int array, optional
        Trees of each sentence, where the n best were asked for.
    facts : list of dict, optional
        Of each tree ``rank``, ``score``, ``probability`` and ``share``, as far as asked for.
    text : TextWords, optional
        Where the words stand in the text that they came from.
    """

    bank: Treebank
    heads: np.ndarray
    relations: Column | None
    tags: Mapping[str, Column] = field(default_factory=dict)
    arcs: np.ndarray | None = None
    counts: np.ndarray | None = None
    facts: Sequence[Mapping[str, float]] | None = None
    text: TextWords | None = None

    def __len__(self) -> int:
        return len(self.bank)

    def __iter__(self) -> Iterator[Any]:
        """One record a sentence: its tree, or the list of its n best."""
        trees = self.trees()
        if self.counts is None:
            yield from trees
            return
        for n in self.counts.tolist():
            yield [next(trees) for _ in range(n)]

    def as_dicts(self) -> list[dict[str, Any]]:
        """All records for JSON."""
        if self.counts is None:
            return [one.as_dict() for one in self]
        return [{"outputs": [one.as_dict() for one in ranked]} for ranked in self]

    def trees(self) -> Iterator[ParsedSentence]:
        """The trees of all sentences, one after the other."""
        starts, sizes = self.bank.starts, np.diff(self.bank.starts)
        words = self.bank.sentences.columns["form"].texts()
        which = np.arange(len(self)) if self.counts is None else self.numbers
        begins = np.concatenate([[0], np.cumsum(sizes[which])]).tolist()
        heads = self.heads.tolist()
        relations = None if self.relations is None else self.relations.texts()
        arcs = None if self.arcs is None else self.arcs.tolist()
        tags = {name: column.texts() for name, column in self.tags.items()}
        for k, (i, (a, b)) in enumerate(zip(which.tolist(), pairwise(begins), strict=True)):
            first, after = starts[i : i + 2].tolist()
            columns: dict[str, Sequence[Any]] = {"text": words[first:after], "head": heads[a:b]}
            place: dict[str, Any] = {}
            if self.text is not None:
                text, bounds = self.text.text, self.text.bounds[first:after].tolist()
                begin, end = bounds[0][0], bounds[-1][1]
                place = {"text": text[begin:end], "start": begin, "end": end}
                columns["text"] = [text[x:y] for x, y in bounds]
                columns["start"], columns["end"] = zip(*bounds, strict=True)
            if relations is not None:
                columns["relation"] = relations[a:b]
            if arcs is not None:
                columns["probability"] = arcs[a:b]
            columns |= {name: texts[a:b] for name, texts in tags.items()}
            rows = zip(*columns.values(), strict=True)
            tokens = tuple(ParsedToken(**dict(zip(columns, row, strict=True))) for row in rows)
            yield ParsedSentence(tokens, **place, **({} if self.facts is None else self.facts[k]))

    @property
    def numbers(self) -> np.ndarray:
        """The number of the sentence of each tree."""
        counts = np.ones(len(self), int) if self.counts is None else self.counts
        return np.repeat(np.arange(len(self)), counts)


def answer(
    model: ParseModel,
    rows: Treebank | TextWords,
    n: int | None = None,
    proba: bool = False,
    n_jobs: int = 1,
) -> ParseAnswers:
    """Asks a parser for trees; nobody else asks its decoder for what is shown.

    Parameters
    ----------
    model : ParseModel
        What parses.
    rows : Treebank or TextWords
        Sentences.
    n : int, optional
        So many trees of each sentence, best first; the best alone unless said.
    proba : bool
        Probabilities of trees and heads.
    n_jobs : int
        Threads; answers do not depend on it.
    """
    text = rows if isinstance(rows, TextWords) else None
    bank = rows.bank if isinstance(rows, TextWords) else rows
    decoder, data = model.decoder(n_jobs), model.encode(bank)
    counts, facts, copies = None, None, data
    if n is None and not (proba and decoder.sums):
        codes = decoder.predict(data.rows)
    else:
        ranked = decoder.k_best(data.rows, n or 1)
        names = ("rank", "score", "probability", "share") if n else ("probability",)
        codes = np.concatenate([np.zeros(0, np.int32), *(one.labels.ravel() for one in ranked)])
        facts = [
            {name: value for name, value in zip(("rank", "score", "probability", "share"), row)
             if name in names}
            for one in ranked
            for k, of_one in enumerate(zip(one.scores, one.probabilities, one.shares, strict=True))
            for row in [(k + 1, *map(float, of_one))]
        ]  # fmt: skip
        if n:
            counts = np.array([len(one.scores) for one in ranked])
            copies = data.take(np.repeat(np.arange(len(data)), counts)) if proba else data
    heads, relations = model.trees(codes)
    arcs = model.arc_probabilities(copies, heads, n_jobs) if proba else None
    tags = {}
    if model.taggers is not None:
        columns = data.bank.sentences.columns
        tags = {name: columns[name] for name in model.taggers.columns}
    answers = ParseAnswers(bank, heads, relations, tags, arcs, counts, facts, text)
    if counts is not None and tags:
        sizes, starts = np.diff(bank.starts)[answers.numbers], bank.starts[answers.numbers]
        words = stretches(starts, sizes)
        tags = {name: Column(c.strings, c.ids[words]) for name, c in tags.items()}
        answers = replace(answers, tags=tags)
    return answers


def read_text(text: str, tokenizer: Any, source: str = "text") -> TextWords:
    """Returns the words of a text.

    >>> from hopefear.data.tokenizer import Tokenizer
    >>> words = read_text("It rains. Stay!", Tokenizer())
    >>> print(words.bank.file.text.decode().splitlines()[1:4])
    ['# text = It rains.', '1\\tIt\\t_\\t_\\t_\\t_\\t_\\t_\\t_\\t_', '2\\trains\\t_\\t_\\t_\\t_\\t_\\t_\\t_\\tSpaceAfter=No']
    """
    sentences = [one for one in tokenizer.sentences(text) if one]
    if not sentences:
        raise InputError(source, 0, "text", "nothing but blanks")
    lines = []
    for i, spans in enumerate(sentences):
        a, b = spans[0][0], spans[-1][1]
        lines += [f"# sent_id = {i + 1}", f"# text = {_BLANKS.sub(' ', text[a:b])}"]
        ends = [*(begin for begin, _ in spans[1:]), None]
        for m, ((begin, end), following) in enumerate(zip(spans, ends, strict=True)):
            space = "SpaceAfter=No" if end == following else "_"
            lines.append("\t".join([str(m + 1), text[begin:end], *"_______", space]))
        lines.append("")
    lines.append("")
    bank = parse_treebank("\n".join(lines).encode(), f"{source}.conllu", heads=False)
    words = [word for spans in sentences for word in tokenizer.words(text, spans)]
    bounds = np.array([span for spans in sentences for span in spans], np.int64)
    breaks = np.array([match.start() for match in re.finditer("\n", text)], np.int64)
    places = 1 + np.searchsorted(breaks, bounds[:, 0])
    columns = bank.sentences.columns
    columns["form"] = Column.of(words)
    shown = replace(bank.sentences, source=source, lines=places)
    return TextWords(replace(bank, sentences=shown), text, bounds)
