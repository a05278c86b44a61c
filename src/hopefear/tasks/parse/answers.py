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
from hopefear.errors import HopefearError, InputError
from hopefear.metrics import Dependencies, Trees, reliability, tree_errors
from hopefear.tasks.answers import Answers, Question
from hopefear.tasks.base import Explanation
from hopefear.tasks.parse.explaining import against, arc_in_words
from hopefear.tasks.parse.model import ParseModel, needs_tags
from hopefear.tasks.parse.prepare import recall_of, sentences_of, warn_of_unknown
from hopefear.tasks.parse.task import judged
from hopefear.tasks.serving import Marks, SentenceService

BEST: Question = Question()
_BLANKS = re.compile(r"\s+")
_MOST = 3000  # sentences of a report
_EXPLAINED = 100  # of them, those with reasons and n best trees, which take time
_SHORT = 40  # words of a sentence whose n best are sought: time grows with their cube
_RIVALS = 5
# Of sentences for a service that a parser with tags needs: the columns of English treebanks.
_TAGGED = [
    {"form": "Dogs", "upos": "NOUN", "xpos": "NNS"},
    {"form": "chase", "upos": "VERB", "xpos": "VBP"},
    {"form": "cats", "upos": "NOUN", "xpos": "NNS"},
    {"form": ".", "upos": "PUNCT", "xpos": "."},
]


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

    def __repr__(self) -> str:
        known = ", ".join(f"{k}={v!r}" for k, v in self._asdict().items() if v is not None)
        return f"ParsedToken({known})"


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
class ParseAnswers(Answers):
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
    facts: Sequence[Mapping[str, Any]] | None = None
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
    model: ParseModel, rows: Treebank | TextWords, question: Question = BEST, n_jobs: int = 1
) -> ParseAnswers:
    """Asks a parser for trees; nobody else asks its decoder for what is shown.

    Parameters
    ----------
    model : ParseModel
        What parses.
    rows : Treebank or TextWords
        Sentences.
    question : Question
        The number of trees of each sentence; whether trees and heads get probabilities.
    n_jobs : int
        Threads; answers do not depend on it.
    """
    n, proba = question.n, question.proba
    text = rows if isinstance(rows, TextWords) else None
    bank = rows.bank if isinstance(rows, TextWords) else rows
    decoder, data = model.decoder(n_jobs), model.encode(bank)
    counts, facts, copies = None, None, data
    if n is None and not (proba and decoder.sums):
        codes = decoder.predict(data.rows)
    else:
        ranked = decoder.k_best(data.rows, n or 1)
        codes = np.concatenate([np.zeros(0, np.int32), *(one.labels.ravel() for one in ranked)])
        numbers = [
            (k + 1, *map(float, tree))
            for one in ranked
            for k, tree in enumerate(zip(one.scores, one.probabilities, one.shares, strict=True))
        ]
        facts = [
            {"rank": k, "score": score, "probability": p, "share": share}
            if n
            else {"probability": p}
            for k, score, p, share in numbers
        ]
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
    >>> words.bank.sentences.columns["form"].texts(), words.bounds[:2].tolist()
    (['It', 'rains', '.', 'Stay', '!'], [[0, 2], [3, 8]])
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


class Judged(NamedTuple):
    """How good the trees of a model are.

    Parameters
    ----------
    metric : Dependencies
        What scores.
    rows : array
        Its statistics of every sentence.
    facts : dict
        Scores, and what goes wrong.
    errors : Judgement, optional
        Sentences to look at.
    """

    metric: Dependencies
    rows: np.ndarray
    facts: dict[str, Any]
    errors: Any = None


def judge(
    model: ParseModel,
    bank: Treebank,
    proba: bool = False,
    errors: bool = False,
    n_jobs: int = 1,
) -> Judged:
    """Returns how good the trees of a model are.

    Parameters
    ----------
    model : ParseModel
        What parses.
    bank : Treebank
        Sentences with their trees.
    proba : bool
        Whether probabilities of heads are compared with their accuracy.
    errors : bool
        Whether sentences to look at are wanted.
    n_jobs : int
        Threads.
    """
    data, decoder = model.encode(bank), model.decoder(n_jobs)
    codes = decoder.predict(data.rows)
    gold, output = judged(bank, codes, model.labels, data.bank)
    metric = Dependencies(bool(model.labels))
    rows = metric.statistics(gold, output)
    facts: dict[str, Any] = dict.fromkeys(metric.reads)
    facts |= metric.scores(rows.sum(axis=0))
    facts |= {
        "tokens": facts.pop("words"),
        "recall": recall_of(data),
        "unknown_relations": warn_of_unknown(bank, model.labels),
        "order": model.kind.order,
        "tree": model.kind.name,
        **({} if (proved := decoder.proved) is None else {"proved_best": proved}),
        "signature": metric.signature,
        "errors": tree_errors(gold, output),
    }
    if proba or (errors and decoder.sums):
        heads = codes // max(1, len(model.labels))
        shares = model.arc_probabilities(data, heads, n_jobs)
        bins = reliability(np.minimum(shares, 1.0), heads == bank.heads).as_dict()
        facts["calibration"] = {"heads": bins}
    cases = _cases(model, data, codes, gold, output, n_jobs) if errors else None
    return Judged(metric, rows, facts, cases)


def _cases(
    model: ParseModel, data: Any, codes: np.ndarray, gold: Trees, output: Trees, n_jobs: int
) -> Any:
    """How many words of every sentence are wrong, and those sentences to look at."""
    from hopefear.report.arcs import ArcDiagram
    from hopefear.report.error_examples import ErrorExample, Judgement

    bank = data.bank
    right, heads = (np.asarray(trees.heads) for trees in (gold, output))
    names = [[] if t.relations is None else t.relations.texts() for t in (gold, output)]
    wrong_head = right != heads
    wrong = wrong_head | (np.array(names[0]) != np.array(names[1]) if names[0] else False)
    errors = np.diff(np.concatenate([[0], np.cumsum(wrong)])[bank.starts])

    def cases(order: np.ndarray) -> list[Any]:
        explained = order[:_EXPLAINED]
        short = explained[np.diff(bank.starts)[explained] <= _SHORT]
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
                ErrorExample(
                    {"sentence": i + 1, "wrong words": int(errors[i])},
                    None,
                    tree,
                    sorted(kinds),
                    sorted({each[m] for m in missed for each in (mine, true) if each}),
                    _rivals(model, ranked[i], words[some], own[1][some]) if i in ranked else (),
                    _reason(model, bank, i, own[0][some], own[1][some]) if k < _EXPLAINED else None,
                    i,
                )
            )
        return rows

    return Judgement(errors, cases, "sentences", "with most wrong words", _MOST)


def _rivals(model: ParseModel, ranked: Any, words: list[str], gold: np.ndarray) -> list[Any]:
    """The n best, each by how it differs from the first."""
    from hopefear.report.examples import Rival

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


class ParseService(SentenceService):
    """Heads and relations of words.

    Examples
    --------
    >>> from hopefear import Parser
    >>> parser = Parser("perceptron", order=1, epochs=2).fit([["It", "rains"]], [[2, 0]])
    >>> service = ParseService(parser.model_)
    >>> (answer,) = service.predict([service.read("It rains")])
    >>> [token["head"] for token in answer["sentences"][0]["tokens"]]
    [2, 0]
    """

    # All pairs of words are looked at, and a parse cannot be given up once it has begun.
    longest = 256

    text = True
    example: Any = "The quick brown fox jumps over the lazy dog."

    def __init__(self, model: ParseModel, tagger: Any = None) -> None:
        super().__init__(model if tagger is None else model.with_tagger(tagger))
        model = self.model
        tags = ""
        if model.taggers is None and needs_tags(model.features):
            self.text, self.example = False, _TAGGED
            tags = "; a parser that has learned from tags needs taggers: train it with --tagger"
        self.forms = (
            f"a text{tags}",
            "a list of words, each a string, a pair of word and tag, or an object with form, "
            "lemma, upos, xpos and feats",
        )

    @property
    def tokenizer(self) -> Any:
        return self.model.tokenizer

    def word(self, token: Any) -> str:
        if isinstance(token, str):
            return token
        return str(token["form"] if isinstance(token, dict) else token[0])

    def check(self, sentence: list[Any]) -> None:
        sentences_of([sentence])

    def best(self, sentences: list[list[Any]]) -> list[Marks]:
        return [_marks(tree) for tree in self._answer(sentences)]

    def ranked(self, sentences: list[list[Any]], n: int) -> list[list[Marks]]:
        return [
            [_marks(tree) for tree in ranked] for ranked in self._answer(sentences, Question(n))
        ]

    def _answer(self, sentences: list[list[Any]], question: Question = BEST) -> ParseAnswers:
        return answer(self.model, Treebank.bare(sentences_of(sentences)), question)

    def reason(self, sentence: list[Any], t: int, top: int) -> dict[str, Any]:
        reason = self.model.explain(Treebank.bare(sentences_of([sentence])), 0, t)
        words = [self.word(token) for token in sentence]
        label, rival = (arc_in_words(words, arc) for arc in (reason.label, reason.runner_up))
        return reason._replace(label=label, runner_up=rival).facts(top)

    def search_steps(self, size: int, n: int) -> int:
        # Measured: the best tree takes about the square, the n best n times the fourth power.
        return size * (20 + size // 5 + n) + n * size**4 // 20_000

    def reason_steps(self, size: int) -> int:
        return 25_000 + 1600 * size


def _marks(tree: ParsedSentence) -> Marks:
    """What is said of a sentence."""
    record = tree.as_dict()
    tokens = record.pop("tokens")
    columns = {name: [token[name] for token in tokens] for name in tokens[0] if name != "text"}
    return Marks(columns, facts=record)
