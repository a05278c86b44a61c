"""``hopefear predict`` with a tagger: the file as it was, with labels."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np

from hopefear.cli.console import Console
from hopefear.cli.options import threads
from hopefear.cli.tag.explain import explanations
from hopefear.cli.tag.labels import spelled
from hopefear.cli.tag.reading import how, read_for
from hopefear.cli.tag.writing import Table, put, tagged
from hopefear.data.schemes import scheme_name
from hopefear.data.sequences import Column, SequenceDataset
from hopefear.tasks.tag.model import SequenceModel

_SENTENCES = 1000  # at a time, where every span needs a search of its own


def run(args: argparse.Namespace, model: SequenceModel, console: Console) -> None:
    """Write ``--input`` with the labels of its tokens."""
    target = None if args.scheme is None else scheme_name(args.scheme)
    text, _ = read_for(model, args.input, args, console)
    data = text.encode(model.features)
    if args.explain or args.explain_token:
        put(args.output, explanations(model, text, data, args))
        return
    # One searches and another says how sure it is: sentences without legal labels count once.
    decoder, judge = (
        model.decoder(not args.no_constraints, n_jobs=threads(args.jobs)) for _ in range(2)
    )
    make = _ranked if args.nbest else _best
    table = make(model, decoder, judge, data, args, target)
    put(args.output, tagged(text, how(model)["column"] or "label", table))
    if decoder.unlimited:
        console.say(
            f"{decoder.unlimited:,} sentences have no legal labels and were tagged without limits"
        )


def _best(
    model: SequenceModel,
    decoder: Any,
    judge: Any,
    data: SequenceDataset,
    args: Any,
    target: str | None,
) -> Table:
    tags = decoder.best(data.rows)
    table = Table(data.rows.starts, _column(model, tags, data.rows.starts, target))
    if not args.proba:
        return table
    tags.flags.writeable = False  # as all rows are; kernels would compile again for others
    logs = judge.log_likelihoods(data.rows._replace(labels=tags))
    return table._replace(
        probabilities=_taken(judge.probabilities(data.rows), tags),
        spans=_span_column(model, data, tags, args),
        comments=[[f"probability = {p:.6g}"] for p in np.exp(logs)],
    )


def _ranked(
    model: SequenceModel,
    decoder: Any,
    judge: Any,
    data: SequenceDataset,
    args: Any,
    target: str | None,
) -> Table:
    """Every sentence as often as it has candidates."""
    found = decoder.nbest(data.rows, args.nbest)
    counts = np.array([len(ranked.scores) for ranked in found])
    tags = np.concatenate([ranked.labels.ravel() for ranked in found]).astype(np.int32)
    copies = data.take(np.repeat(np.arange(len(data)), counts))
    table = Table(
        copies.rows.starts,
        _column(model, tags, copies.rows.starts, target),
        counts=counts,
        comments=[
            [f"rank = {k + 1} score = {score:.6g} probability = {p:.6g}"]
            for ranked in found
            for k, (score, p) in enumerate(zip(ranked.scores, ranked.probabilities, strict=True))
        ],
    )
    if not args.proba:
        return table
    each = judge.probabilities(data.rows)
    tokens = np.concatenate(
        [
            np.tile(np.arange(start, end), count)
            for start, end, count in zip(
                data.rows.starts[:-1], data.rows.starts[1:], counts, strict=True
            )
        ]
    )
    return table._replace(
        probabilities=_taken(each[tokens], tags), spans=_span_column(model, copies, tags, args)
    )


def _column(
    model: SequenceModel, tags: np.ndarray, starts: np.ndarray, target: str | None
) -> Column:
    return spelled(Column(model.labels, tags), starts, how(model)["trained_scheme"], target)


def _taken(marginals: np.ndarray, tags: np.ndarray) -> list[str]:
    """The probability of each label that was given."""
    return [f"{p:.4f}" for p in marginals[np.arange(len(tags)), tags].tolist()]


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
