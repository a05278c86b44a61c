"""What a reranker says of lists: the best of each, lists in a new order, and why."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from hopefear.cli.console import Console, print_json
from hopefear.cli.explain import feature_lines, told
from hopefear.cli.progress import announced
from hopefear.cli.rerank.corpus import reading_of, seen_by_model
from hopefear.core.progress import counted
from hopefear.data.files import ReadReport
from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.lists.files import read_lists
from hopefear.errors import HopefearError
from hopefear.tasks.base import cut
from hopefear.tasks.rerank.model import RerankModel

Candidate = dict[str, Any]


def answers(
    args: argparse.Namespace, model: RerankModel, console: Console, report: ReadReport
) -> Iterator[bytes]:
    """What the model thinks of the lists of ``--input``, block by block."""
    policy = reading_of(model)["dedup"]
    write = _as_text if args.output_format == "text" else _as_json
    # All candidates are read, so that places are those in the file.
    blocks = read_lists(
        args.input, args.format, judged=False, dedup="none", on_error=args.on_error, report=report
    )
    for block in counted(blocks, args.input, "lists"):
        ranked = _ranked(block, model, args, policy)
        text = "".join(write(name, best, block, args) for name, best in ranked)
        yield text.encode("utf-8", "backslashreplace")  # as JSON writes half a character


def reasons(
    args: argparse.Namespace, model: RerankModel, console: Console, report: ReadReport
) -> Iterator[bytes]:
    """Why the best candidate of each list comes before the next; both by position in the file."""
    how = {"judged": False, "dedup": "none", "on_error": args.on_error, "report": report}
    for block in read_lists(args.input, args.format, **how):
        yield from _reasons(block, model, args)


def _reasons(
    block: CandidateLists, model: RerankModel, args: argparse.Namespace
) -> Iterator[bytes]:
    lists, places = seen_by_model(block, reading_of(model)["dedup"])
    data = model.encode(lists)
    for i, (name, start) in enumerate(zip(lists.ids, lists.starts.tolist(), strict=False)):
        place: dict[str, Any] = {"list": name, "line": block.line_of(i)}
        if lists.starts[i + 1] - start < 2:
            yield told(f"list {name}", place, "one candidate, which beats no other", args)
            continue
        reason = model.explain(data, i)
        both = [start + reason.label, start + reason.runner_up]
        place["texts"] = texts = [lists.texts[c] for c in both]
        head = "\n".join(
            [
                f"list {name}",
                *(f"  {places[c]}: {t}" for c, t in zip(both, texts, strict=True) if t),
            ]
        )
        label, runner_up = (int(places[c]) for c in both)
        yield told(head, place, reason._replace(label=label, runner_up=runner_up), args)


def _ranked(
    block: CandidateLists, model: RerankModel, args: argparse.Namespace, policy: str
) -> Iterator[tuple[str, list[Candidate]]]:
    """The id of each list, and as many of its candidates as asked for, best first."""
    lists, places = seen_by_model(block, policy)
    rows, ranker = model.encode(lists).rows, model.ranker()
    scores = ranker.scores(rows)
    shares = ranker.probabilities(rows, scores) if args.proba else None
    orders = cut(ranker.ranked(rows, scores), rows.starts)
    for name, order, start in zip(lists.ids, orders, rows.starts.tolist(), strict=False):
        candidates: list[Candidate] = []
        for c in (start + order[: args.nbest or 1]).tolist():
            candidate: Candidate = {
                "position": int(places[c]),
                "text": lists.texts[c],
                "score": float(scores[c]),
            }
            if lists.derivations is not None and lists.derivations[c] is not None:
                candidate["derivation"] = lists.derivations[c]
            if shares is not None:
                candidate["probability"] = float(shares[c])
            candidates.append(candidate)
        yield name, candidates


def _as_json(
    name: str, best: list[Candidate], block: CandidateLists, args: argparse.Namespace
) -> str:
    record: dict[str, Any]
    if args.nbest is None:
        record = {"id": name, "best": best[0].pop("position"), **best[0]}
    else:
        # A list in a new order is a list again: trees are called what readers call them.
        text = "text" if block.trees is None else "tree"
        record = {
            "id": name,
            "candidates": [
                {text if key == "text" else key: value for key, value in candidate.items()}
                for candidate in best
            ],
        }
    return json.dumps(record, ensure_ascii=False) + "\n"


def _as_text(
    name: str, best: list[Candidate], block: CandidateLists, args: argparse.Namespace
) -> str:
    texts = [candidate["text"] for candidate in best]
    if not any(texts) and not any(block.texts):
        raise HopefearError(
            f"{args.input}: the candidates of list {name!r} have no texts to write; leave out "
            "--output-format text"
        )
    lines = "".join(" ".join(text.splitlines()) + "\n" for text in texts)
    return lines if args.nbest is None else f"{lines}\n"


def explain(args: argparse.Namespace, model: RerankModel, console: Console) -> None:
    """Say what puts a candidate of ``--list`` before another."""
    with announced(console, "prediction"):
        facts = explanation(model, args)
    if args.json:
        print_json(facts)
    else:
        _show(console, facts)


def explanation(model: RerankModel, args: argparse.Namespace) -> dict[str, Any]:
    """What puts a candidate of ``--list`` before another."""
    block, i = _found(args)
    lists, places = seen_by_model(block, reading_of(model)["dedup"])
    data = model.encode(lists).take([i])
    first, after = lists.starts[i : i + 2].tolist()
    places, texts = places[first:after], lists.texts[first:after]
    scores = model.ranker().scores(data.rows)
    one, other = _pair(args, block.ids[i], places, scores, lists.scores[first:after])
    reason = model.explain(data, 0, one, other).facts(args.top)
    return {
        "list": block.ids[i],
        "line": block.line_of(i),
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
        "features": reason["features"],
        "more": reason["more"],
    }


def _show(console: Console, facts: dict[str, Any]) -> None:
    one, other = facts["candidates"]
    beats = "beats" if facts["gap"] > 0.0 else "does not beat"
    console.say(
        f"list {facts['list']}: candidate {one['position']} {beats} candidate {other['position']}, "
        f"by {facts['gap']:+.4f}"
    )
    for candidate in (one, other):
        console.say(
            f"  {candidate['position']}: score {candidate['score']:.4f} (the generator's "
            f"{candidate['generator_score']:.4f})  {candidate['text']}"
        )
    console.say()
    console.say("\n".join(feature_lines(facts["features"], facts["more"])))


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
    first_scores: np.ndarray,
) -> tuple[int, int]:
    if args.pair is not None:
        return _kept(args, name, places, args.pair[0]), _kept(args, name, places, args.pair[1])
    if len(scores) < 2:
        raise HopefearError(
            f"{args.explain}: list {name!r} has one candidate, which beats no other; --list ID "
            "names another list"
        )
    order = np.argsort(-scores, kind="stable")
    best, rival = int(order[0]), int(np.argmax(first_scores))
    return best, rival if rival != best else int(order[1])


def _kept(args: argparse.Namespace, name: str, places: np.ndarray, place: int) -> int:
    """Number, among those that the model sees, of the candidate at a position of the file."""
    hits = np.flatnonzero(places == place)
    if not len(hits):
        raise HopefearError(
            f"--pair {args.pair[0]}:{args.pair[1]}: list {name!r} has no candidate {place}; it "
            f"has 0 to {places[-1]}, where texts that came before are left out"
        )
    return int(hits[0])
