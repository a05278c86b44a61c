"""``hopefear predict`` with a reranker: the best of every list, or lists in a new order."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

from hopefear.cli.console import Console
from hopefear.cli.progress import Counting
from hopefear.cli.reading import tell_skipped
from hopefear.cli.rerank.reading import reading_of, seen_by_model
from hopefear.cli.tag.writing import put
from hopefear.data.files import ReadReport
from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.lists.files import read_lists
from hopefear.errors import HopefearError
from hopefear.tasks.rerank.model import RerankModel, cut

Candidate = dict[str, Any]


def run(args: argparse.Namespace, model: RerankModel, console: Console) -> None:
    """Write what the model thinks of the lists of ``--input``, block by block."""
    report = ReadReport()
    with Counting(console, "lists") as counting:
        # All candidates are read, so that places are those in the file.
        blocks = read_lists(
            args.input,
            args.format,
            judged=False,
            dedup="none",
            on_error=args.on_error,
            report=report,
        )
        put(args.output, _pieces(counting(blocks, args.input), model, args))
    tell_skipped(report, console)


def _pieces(
    blocks: Iterator[CandidateLists], model: RerankModel, args: argparse.Namespace
) -> Iterator[bytes]:
    policy = reading_of(model)["dedup"]
    write = _as_text if args.output_format == "text" else _as_json
    for block in blocks:
        ranked = _ranked(block, model, args, policy)
        text = "".join(write(name, best, block, args) for name, best in ranked)
        yield text.encode("utf-8", "backslashreplace")  # as JSON writes half a character


def _ranked(
    block: CandidateLists, model: RerankModel, args: argparse.Namespace, policy: str
) -> Iterator[tuple[str, list[Candidate]]]:
    """The id of each list, and as many of its candidates as asked for, best first."""
    lists, places = seen_by_model(block, policy)
    rows, ranker = model.encode(lists).rows, model.ranker()
    scores = ranker.scores(rows)
    sure = ranker.probabilities(rows, scores) if args.proba else None
    orders = cut(ranker.ranked(rows, scores), rows.starts)
    for name, order, start in zip(lists.ids, orders, rows.starts.tolist(), strict=False):
        found: list[Candidate] = []
        for c in (start + order[: args.nbest or 1]).tolist():
            candidate: Candidate = {
                "position": int(places[c]),
                "text": lists.texts[c],
                "score": float(scores[c]),
            }
            if lists.derivations is not None and lists.derivations[c] is not None:
                candidate["derivation"] = lists.derivations[c]
            if sure is not None:
                candidate["probability"] = float(sure[c])
            found.append(candidate)
        yield name, found


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
