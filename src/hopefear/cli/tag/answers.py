"""Tagged text: the file as it was with labels, labels alone, or why tokens got theirs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from hopefear.cli.console import Console
from hopefear.cli.explain import told, wanted_tokens
from hopefear.cli.options import threads
from hopefear.cli.tag.corpus import spelled
from hopefear.cli.tag.inputs import Text, arriving_for, how, read_for
from hopefear.cli.tag.showing import columns, is_coloured, lines, objects, painter
from hopefear.data.files import ReadReport, is_pipe
from hopefear.data.schemes import scheme_name, spans
from hopefear.data.sequences import Column, SequenceDataset
from hopefear.data.token_objects import with_labels
from hopefear.data.write_tokens import repeated, with_columns
from hopefear.errors import HopefearError
from hopefear.tasks.base import Explanation
from hopefear.tasks.tag.model import SequenceModel
from hopefear.tasks.tag.text import inline

_SENTENCES = 1000  # at a time, where every span needs a search of its own


def answers(
    args: argparse.Namespace, model: SequenceModel, console: Console, report: ReadReport
) -> Iterator[bytes]:
    """``--input`` with the labels of its tokens."""
    target = None if args.scheme is None else scheme_name(args.scheme)
    # One searches and another says how sure it is: sentences without legal labels count once.
    decoder, judge = (
        model.decoder(not args.no_constraints, n_jobs=threads(args.jobs)) for _ in range(2)
    )
    bit_by_bit = args.stream or args.format == "text" or is_pipe(args.input)
    for text in (
        arriving_for(model, args.input, args, report)
        if bit_by_bit
        else [read_for(model, args.input, args, report)]
    ):
        if isinstance(text, bytes):
            yield b"" if args.output_format in ("inline", "json") else text
            continue
        data = text.encode(model.features)
        table = _table(model, decoder, judge, data, args, target)
        pieces = _shown(args, model, text, table, target)
        # What has come at once goes at once: a system call a sentence would be slow.
        yield from [b"".join(pieces)] if bit_by_bit else pieces
    if decoder.unlimited:
        console.say(
            f"{decoder.unlimited:,} sentences have no legal labels and were tagged without limits"
        )


def _shown(
    args: argparse.Namespace, model: SequenceModel, text: Text, table: Table, target: str | None
) -> Iterator[bytes]:
    """Tagged sentences in the format that is asked for."""
    scheme, form = target or how(model)["trained_scheme"], args.output_format
    coloured = is_coloured(args.output)
    if form is None and text.form == "text" and coloured and not (args.nbest or args.proba):
        form = "inline"
    if form == "inline":
        paint = painter(model.labels, scheme is not None) if coloured else None
        return lines(text, table, scheme, paint)
    if form == "json" or (form is None and text.form == "json" and (args.nbest or args.proba)):
        return objects(text, table, scheme)
    if text.form == "text" or (text.form == "json" and form == "columns"):
        return columns(text, table)
    return tagged(text, how(model)["column"] or "label", table)


class Table(NamedTuple):
    """What is said of tokens."""

    starts: np.ndarray
    labels: Column
    probabilities: Sequence[str] | None = None
    spans: Sequence[str] | None = None
    facts: Sequence[Mapping[str, float]] | None = None  # of each sentence
    counts: np.ndarray | None = None  # how often each sentence of the file comes

    @property
    def comments(self) -> list[list[str]] | None:
        """Lines before each sentence."""
        if self.facts is None:
            return None
        return [[" ".join(f"{key} = {n:.6g}" for key, n in fact.items())] for fact in self.facts]

    def columns(self, name: str) -> dict[str, Column | Sequence[str]]:
        """Columns by name, without those that are not there."""
        all_ = {name: self.labels, "Probability": self.probabilities, "SpanProbability": self.spans}
        return {key: column for key, column in all_.items() if column is not None}


def _table(
    model: SequenceModel, decoder: Any, judge: Any, data: SequenceDataset, args: Any, target: Any
) -> Table:
    """Labels and what else is asked for; with ``--nbest`` sentences come several times."""
    copies, counts, facts = data, None, None
    if args.nbest:
        lists = decoder.k_best(data.rows, args.nbest)
        counts = np.array([len(ranked.scores) for ranked in lists])
        copies = data.take(np.repeat(np.arange(len(data)), counts))
        tags = np.concatenate([ranked.labels.ravel() for ranked in lists]).astype(np.int32)
        facts = [
            {"rank": k + 1, "score": float(score), "probability": float(p)}
            for ranked in lists
            for k, (score, p) in enumerate(zip(ranked.scores, ranked.probabilities, strict=True))
        ]
    else:
        tags = decoder.predict(data.rows)
    starts = copies.rows.starts
    labels = spelled(Column(model.labels, tags), starts, how(model)["trained_scheme"], target)
    table = Table(starts, labels, facts=facts, counts=counts)
    if not args.proba:
        return table
    marginals = judge.probabilities(data.rows)
    if counts is None:
        tags.flags.writeable = False  # as all rows are; kernels would compile again for others
        logs = judge.log_likelihoods(data.rows._replace(labels=tags))
        table = table._replace(facts=[{"probability": float(p)} for p in np.exp(logs)])
    else:
        tokens = [np.arange(first, after) for first, after in pairwise(data.rows.starts)]
        marginals = marginals[np.concatenate(list(map(np.tile, tokens, counts)))]
    shares = marginals[np.arange(len(tags)), tags].tolist()
    return table._replace(
        probabilities=[f"{p:.4f}" for p in shares], spans=_span_column(model, copies, tags, args)
    )


def _span_column(
    model: SequenceModel, data: SequenceDataset, tags: np.ndarray, args: Any
) -> list[str] | None:
    """The probability of the span that each token belongs to; None where labels make no spans."""
    if model.scheme is None:
        return None
    column = ["_"] * data.n_tokens
    for first, after, p in span_confidences(model, data, tags, not args.no_constraints):
        column[first:after] = [f"{p:.4f}"] * (after - first)
    return column


def span_confidences(
    model: SequenceModel, data: SequenceDataset, tags: np.ndarray, constrained: bool
) -> Iterator[tuple[int, int, float]]:
    """(first token, token behind it, probability) of every span."""
    starts = data.rows.starts
    for begin in range(0, len(data), _SENTENCES):
        end = min(begin + _SENTENCES, len(data))
        some = data.take(np.arange(begin, end))
        shift = int(starts[begin])
        for span in model.span_probabilities(
            some, tags[shift : starts[end]], constrained=constrained
        ):
            yield span.first + shift, span.after + shift, span.probability


def tagged(text: Text, name: str, table: Table) -> Iterator[bytes]:
    """The text with its labels in a column of that name."""
    if text.file is None:
        return _labels_alone(table)
    if text.form == "json":
        return with_labels(text.file, name, table.labels)
    file = text.file if table.counts is None else repeated(text.file, table.counts)
    return with_columns(file, table.columns(name), comments=table.comments)


def _labels_alone(table: Table) -> Iterator[bytes]:
    """Lines of labels, and what is said of them, between tabs."""
    columns = [c.texts() if isinstance(c, Column) else c for c in table.columns("label").values()]
    for i, (start, after) in enumerate(pairwise(table.starts.tolist())):
        head = "".join(f"# {text}\n" for text in table.comments[i]) if table.comments else ""
        rows = zip(*(column[start:after] for column in columns), strict=True)
        yield (head + "".join("\t".join(row) + "\n" for row in rows) + "\n").encode()


def reasons(
    args: argparse.Namespace, model: SequenceModel, console: Console, report: ReadReport
) -> Iterator[bytes]:
    """Why each token got its label."""
    text = read_for(model, args.input, args, report)
    data = text.encode(model.features)
    for i, t in wanted_tokens(data.rows.starts, data.source, args.explain_token):
        k = int(data.rows.starts[i]) + t
        word = None if text.words is None else text.words[k]
        place = {"sentence": i + 1, "token": t + 1, "line": text.place(k)[1], "word": word}
        head = f"sentence {i + 1}, token {t + 1}" + ("" if word is None else f": {word}")
        reason: Explanation | str
        try:
            reason = model.explain(data, i, t, constrained=not args.no_constraints)
        except HopefearError as error:
            if args.explain_token:
                raise
            reason = str(error)
        yield told(head, place, reason, args)


def in_brackets(
    words: Sequence[str],
    labels: Sequence[str],
    scheme: str | None,
    paint: Callable[[str, str], str] | None = None,
) -> str:
    """A sentence in one line with its spans marked, or labels behind words that are no spans.

    >>> in_brackets(["Ann", "Lee", "left"], ["B-PER", "I-PER", "O"], "bio")
    '[PER Ann Lee] left'
    >>> in_brackets(["Ann", "left"], ["NNP", "VBD"], None)
    'Ann/NNP left/VBD'
    """
    places = None
    if scheme is not None:
        table = spans(list(labels), None, scheme, repair=True)
        places = list(zip(table.first, table.after, table.kinds.texts(), strict=True))
    return inline(words, labels, places, paint)
