"""The verbs that take weights: ``predict``, ``evaluate`` and ``inspect`` with ``--weights``."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from hopefear.cli.console import Console, print_json, tell_skipped
from hopefear.cli.guard import put
from hopefear.cli.tune.learning import metric_asked, read_lists, told
from hopefear.core.arrays import Strings
from hopefear.core.hashing import StringTable
from hopefear.core.progress import counted
from hopefear.data.files import ReadReport
from hopefear.data.lists.candidates import CandidateLists, NamedEntries, packed
from hopefear.data.moses.reader import moses_blocks, read_moses
from hopefear.translation.lists import holds_json, plain_lists
from hopefear.translation.scoring import scores
from hopefear.translation.task import compare, corpus_oracle, evaluate
from hopefear.translation.text_features import PREFIX, needed
from hopefear.translation.weights import Weights


def run_predict(args: argparse.Namespace, console: Console) -> None:
    """Write what the weights choose from the lists of ``--input``."""
    weights, report = Weights.read(args.weights, args.allow_outside), ReadReport()
    unused = Unused(weights, args.weights)
    blocks = counted(_seen(_blocks(args, weights, report), unused), args.input[0], "lists")
    put(args.output, (_written(block, weights, args.nbest) for block in blocks))
    tell_skipped(report, console)
    unused.tell(console)


def _blocks(
    args: argparse.Namespace, weights: Weights, report: ReadReport
) -> Iterator[CandidateLists]:
    """Whole lists; of one file of Moses block by block, as a pipe brings them."""
    if any(map(holds_json, args.input)):
        yield plain_lists(args.input, args.source, weights, on_error=args.on_error, report=report)
        return
    reading: dict[str, Any] = {
        "texts": True,
        "derivations": args.nbest is not None,
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


def _seen(blocks: Iterator[CandidateLists], unused: Unused) -> Iterator[CandidateLists]:
    for block in blocks:
        unused.see(block)
        yield block


def _written(lists: CandidateLists, weights: Weights, nbest: int | None) -> bytes:
    points = scores(lists, weights)
    out: list[str] = []
    for name, (start, end) in zip(lists.ids, pairwise(lists.starts.tolist()), strict=True):
        # Stable, so that of equals the decoder's first comes first.
        order = start + np.argsort(-points[start:end], kind="stable")
        if nbest is None:
            out.append(f"{lists.texts[int(order[0])]}\n")
            continue
        for c in order[:nbest].tolist():
            fields = [name, lists.texts[c], _features(lists, c), f"{points[c]:.6g}"]
            if lists.derivations is not None and (tail := (lists.derivations[c] or "").strip()):
                fields.append(tail)
            out.append(" ||| ".join(fields) + "\n")
    return "".join(out).encode()


def _features(lists: CandidateLists, c: int) -> str:
    """Features of a candidate as Moses writes them."""
    fields, first = [], 0
    for name, width in lists.layout:
        # A number of single precision in its own shortest form is what the file had.
        numbers = (_plain(value) for value in lists.dense[c, first : first + width])
        fields.append(f"{name}= {' '.join(numbers)}")
        first += width
    if lists.sparse is not None:
        fields += _sparse(lists.sparse, c)
    return " ".join(fields)


def _sparse(entries: NamedEntries, c: int) -> Iterator[str]:
    for e in range(int(entries.indptr[c]), int(entries.indptr[c + 1])):
        value = "1" if entries.values is None else _plain(entries.values[e])
        yield f"{entries.names[int(entries.ids[e])]}= {value}"


def _plain(value: np.floating) -> str:
    """A number without a point where it needs none.

    >>> _plain(np.float32(-2.5)), _plain(np.float32(3))
    ('-2.5', '3')
    """
    return str(value).removesuffix(".0")


def run_evaluate(args: argparse.Namespace, console: Console) -> None:
    """Score the candidates that the weights put first."""
    started = time.perf_counter()
    metric = metric_asked(args)
    weights = Weights.read(args.weights, args.allow_outside)
    other = None if args.against is None else Weights.read(args.against, args.allow_outside)
    both = [weights] if other is None else [weights, other]
    words = any(map(needed, both))
    lists = read_lists(args, metric, console, texts=words, layout=weights.layout)
    console.say(told(lists, "lists"))
    for each, path in zip(both, (args.weights, args.against), strict=False):
        unused = Unused(each, path)
        unused.see(lists)
        unused.tell(console)
    scores = evaluate(lists, weights, metric=metric)
    oracle = corpus_oracle(lists, metric)
    test: dict[str, Any] | None = None
    if other is not None:
        test = compare(lists, weights, other, metric=metric)
    if args.json:
        print_json(
            {
                **scores.as_dict(),
                f"corpus_oracle_{metric.main}": oracle,
                **({} if test is None else {"against": {"weights": args.against, **test}}),
                "nnz": weights.nnz,
                "weights": args.weights,
                "seconds": round(time.perf_counter() - started, 3),
            }
        )
        return
    console.say(scores.text().rstrip("\n"))
    console.say(f"best choice for all lists together: {metric.main} {oracle:.2f} or better")
    if test is not None:
        console.say(
            f"{args.weights} - {args.against}: {test['difference']:+.2f} "
            f"({test['low']:+.2f} to {test['high']:+.2f}), {test['first']:.2f} against "
            f"{test['second']:.2f}, p = {test['p_bootstrap']:.3g} (bootstrap), "
            f"{test['p_randomisation']:.3g} (randomisation)"
        )


def run_inspect(args: argparse.Namespace) -> None:
    """Show a file of weights."""
    contents = facts(Weights.read(args.weights, args.allow_outside), args.weights, args.top)
    if args.json:
        print_json(contents)
    else:
        show(Console(args.quiet), contents)


def facts(weights: Weights, path: str, top: int) -> dict[str, Any]:
    """What there is to say."""
    return {
        "weights": path,
        "task": "tune",
        "nnz": weights.nnz,
        "dense": dict(zip(weights.names, weights.dense.tolist(), strict=True)),
        "sparse": _part(weights.sparse, top),
        "phrases": _part(weights.phrases, top),
        "about": dict(weights.about),
    }


def show(console: Console, facts: Mapping[str, Any]) -> None:
    """The same for people."""
    about = facts["about"]
    console.pairs(
        {
            "weights": facts["weights"],
            "non-zeros": f"{facts['nnz']:,}",
            "dense": len(facts["dense"]),
            "sparse": f"{facts['sparse']['count']:,}",
            "phrase pairs": f"{facts['phrases']['count']:,}",
            "learner": about.get("learner"),
            "signature": about.get("signature"),
            "metric": about.get("metric"),
            "scores": ", ".join(f"{k} {v:.2f}" for k, v in about.get("scores", {}).items()) or None,
        }
    )
    rows = [[name, f"{value:.6f}"] for name, value in facts["dense"].items()]
    for part in ("sparse", "phrases"):
        rows += [[name, f"{value:.6f}"] for name, value in facts[part]["top"].items()]
    console.say()
    console.table(["feature", "weight"], rows)


def _part(weights: Mapping[str, float], top: int) -> dict[str, Any]:
    """How many, how large, and the heaviest either way."""
    values = np.fromiter(weights.values(), np.float64, len(weights))
    order = np.argsort(-np.abs(values), kind="stable")[:top].tolist()
    names = list(weights)
    return {
        "count": len(weights),
        "mean_abs": float(np.abs(values).mean()) if len(values) else 0.0,
        "top": {names[j]: float(values[j]) for j in order},
    }


class Unused:
    """Kinds of features that weights have and no list has shown so far.

    Parameters
    ----------
    weights : Weights
        What is used.
    path : str
        Where they are from.
    """

    def __init__(self, weights: Weights, path: str) -> None:
        # N-grams are made from words, whatever the lists say.
        sparse = [name for name in weights.sparse if not name.startswith(PREFIX)]
        names = {"sparse features": sparse, "phrase pairs": list(weights.phrases)}
        self.path = path
        self.kinds = {kind: group for kind, group in names.items() if group}

    def see(self, lists: CandidateLists) -> None:
        """Strike out kinds of which the lists have some."""
        there = {"sparse features": lists.sparse, "phrase pairs": lists.phrases}
        for kind, names in list(self.kinds.items()):
            entries = there[kind]
            if entries is None or not entries.names:
                continue
            if (StringTable.of(Strings.pack(names)).find(packed(entries.names)) >= 0).any():
                del self.kinds[kind]

    def tell(self, console: Console) -> None:
        """Say which are left."""
        for kind, names in self.kinds.items():
            console.say(
                f"note: of the {len(names):,} {kind} of {self.path} none is in these lists; "
                "their weights change no choice"
            )
