"""Why one candidate of a list beats another."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from hopefear.cli.console import Console
from hopefear.cli.rerank.reading import reading_of, seen_by_model
from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.lists.files import read_lists
from hopefear.errors import HopefearError
from hopefear.tasks.rerank.model import RerankModel


def explanation(model: RerankModel, args: argparse.Namespace) -> dict[str, Any]:
    """What puts a candidate of ``--list`` before another."""
    block, i = _found(args)
    lists, places = seen_by_model(block, reading_of(model)["dedup"])
    data = model.encode(lists).take([i])
    first, after = lists.starts[i : i + 2].tolist()
    places, texts = places[first:after], lists.texts[first:after]
    scores = model.ranker().scores(data.rows)
    one, other = _pair(args, block.ids[i], places, scores, lists.scores[first:after])
    everything = model.explain(data, 0, one, other, len(data.rows.features))
    if fixed := float(data.rows.offsets[one] - data.rows.offsets[other]):
        everything.insert(0, ("the generator's score, fixed", fixed))
    shown = everything[: args.top]
    return {
        "list": block.ids[i],
        "line": block.place(i),
        "candidates": [
            {
                "position": int(places[c]),
                "text": texts[c],
                "score": float(scores[c]),
                "generator_score": float(lists.scores[first + c]),
            }
            for c in (one, other)
        ],
        "gap": float(scores[one] - scores[other]),
        "features": [{"name": name, "amount": amount} for name, amount in shown],
        "more": len(everything) - len(shown),
    }


def show(console: Console, found: dict[str, Any]) -> None:
    """Say it."""
    one, other = found["candidates"]
    beats = "beats" if found["gap"] > 0.0 else "does not beat"
    console.say(
        f"list {found['list']}: candidate {one['position']} {beats} candidate {other['position']}, "
        f"by {found['gap']:+.4f}"
    )
    for candidate in (one, other):
        console.say(
            f"  {candidate['position']}: score {candidate['score']:.4f} (the generator's "
            f"{candidate['generator_score']:.4f})  {candidate['text']}"
        )
    console.say()
    for feature in found["features"]:
        console.say(f"  {feature['amount']:+10.4f}  {feature['name']}")
    if found["more"]:
        console.say(f"  … and {found['more']:,} more; --top N shows them")


def _found(args: argparse.Namespace) -> tuple[CandidateLists, int]:
    """The block with the list asked for, and where it stands there."""
    for block in read_lists(args.explain, args.format, judged=False, dedup="none"):
        if args.list is None:
            return block, 0
        if args.list in block.ids:
            return block, list(block.ids).index(args.list)
    raise HopefearError(f"--list {args.list}: there is no list of this id in {args.explain}")


def _pair(
    args: argparse.Namespace,
    name: str,
    places: np.ndarray,
    scores: np.ndarray,
    given: np.ndarray,
) -> tuple[int, int]:
    if args.pair is not None:
        return _kept(args, name, places, args.pair[0]), _kept(args, name, places, args.pair[1])
    if len(scores) < 2:
        raise HopefearError(
            f"{args.explain}: list {name!r} has one candidate, which beats no other; --list ID "
            "names another list"
        )
    order = np.argsort(-scores, kind="stable")
    best, rival = int(order[0]), int(np.argmax(given))
    return best, rival if rival != best else int(order[1])


def _kept(args: argparse.Namespace, name: str, places: np.ndarray, wanted: int) -> int:
    """Number, among those that the model sees, of the candidate at a position of the file."""
    hits = np.flatnonzero(places == wanted)
    if not len(hits):
        raise HopefearError(
            f"--pair {args.pair[0]}:{args.pair[1]}: list {name!r} has no candidate {wanted}; it "
            f"has 0 to {places[-1]}, where texts that came before are left out"
        )
    return int(hits[0])
