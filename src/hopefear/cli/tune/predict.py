"""``hopefear predict --weights``: the best translation of each list, or lists in a new order."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from hopefear.cli.console import Console
from hopefear.cli.guard import put
from hopefear.cli.progress import Counting
from hopefear.cli.reading import tell_skipped
from hopefear.cli.tune.unused import Unused
from hopefear.data.moses.lists import NamedEntries, TuningLists
from hopefear.data.moses.reading import moses_blocks, read_moses
from hopefear.data.report import ReadReport
from hopefear.translation.scoring import scores
from hopefear.translation.weights import Weights


def run(args: argparse.Namespace, console: Console) -> None:
    """Write what the weights choose from the lists of ``--input``."""
    weights, report = Weights.read(args.weights), ReadReport()
    unused = Unused(weights, args.weights)
    with Counting(console, "lists") as counting:
        blocks = counting(_seen(_blocks(args, report), unused), args.input[0])
        put(args.output, (_written(block, weights, args.nbest) for block in blocks))
    tell_skipped(report, console)
    unused.tell(console)


def _blocks(args: argparse.Namespace, report: ReadReport) -> Iterator[TuningLists]:
    """Whole lists; of one file block by block, as a pipe brings them."""
    reading: dict[str, Any] = {
        "texts": True,
        "tails": args.nbest is not None,
        "on_error": args.on_error,
        "report": report,
        "source": args.source,
        "phrases": args.source is not None,
        "absent": args.absent,
    }
    if len(args.input) == 1:
        yield from moses_blocks(args.input[0], **reading)
    else:
        yield read_moses(args.input, **reading)


def _seen(blocks: Iterator[TuningLists], unused: Unused) -> Iterator[TuningLists]:
    for block in blocks:
        unused.see(block)
        yield block


def _written(lists: TuningLists, weights: Weights, nbest: int | None) -> bytes:
    assert lists.texts is not None
    points = scores(lists, weights)
    out: list[str] = []
    for name, (start, end) in zip(lists.ids.tolist(), pairwise(lists.starts.tolist()), strict=True):
        # Stable, so that of equals the decoder's first comes first.
        order = start + np.argsort(-points[start:end], kind="stable")
        if nbest is None:
            out.append(f"{lists.texts.get(int(order[0]))}\n")
            continue
        for c in order[:nbest].tolist():
            fields = [str(name), lists.texts.get(c), _features(lists, c), f"{points[c]:.6g}"]
            if lists.tails is not None and (tail := lists.tails.get(c).strip()):
                fields.append(tail)
            out.append(" ||| ".join(fields) + "\n")
    return "".join(out).encode()


def _features(lists: TuningLists, c: int) -> str:
    """Features of a candidate as Moses writes them."""
    found, first = [], 0
    for name, width in lists.layout:
        # A number of single precision in its own shortest form is what the file had.
        numbers = (_plain(value) for value in lists.dense[c, first : first + width])
        found.append(f"{name}= {' '.join(numbers)}")
        first += width
    if lists.sparse is not None:
        found += _sparse(lists.sparse, c)
    return " ".join(found)


def _sparse(entries: NamedEntries, c: int) -> Iterator[str]:
    for e in range(int(entries.indptr[c]), int(entries.indptr[c + 1])):
        value = "1" if entries.values is None else _plain(entries.values[e])
        yield f"{entries.names.get(int(entries.ids[e]))}= {value}"


def _plain(value: np.floating) -> str:
    """A number without a point where it needs none.

    >>> _plain(np.float32(-2.5)), _plain(np.float32(3))
    ('-2.5', '3')
    """
    return str(value).removesuffix(".0")
