"""Why an answer is what it is, in one form for every task: a paragraph, or a line of JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from hopefear.cli import options
from hopefear.errors import HopefearError

if TYPE_CHECKING:
    from hopefear.tasks.base import Explanation


def explain_options(group: argparse._ArgumentGroup) -> None:
    """``--explain`` of predict, and how it is told."""
    options.flag(group, "--explain", "the features behind every answer, in place of answers")
    options.whole(group, "--top", "with --explain: features to show of each, strongest first", 10)
    options.flag(group, "--json", "with --explain: one JSON object an answer, a line each")


def check_explained(args: argparse.Namespace) -> bool:
    """Whether predict shall explain; wrong usage where options do not go with that."""
    asked = args.explain or getattr(args, "explain_token", None) is not None
    if asked and (args.nbest or args.proba):
        args.usage_error("--explain is about single answers: leave out --nbest and --proba")
    if args.json and not asked:
        args.usage_error("--json belongs to --explain here; the output of predict is a file")
    return asked


def check_linear(model: Any, path: str) -> None:
    """Refuse a model without weights that features could be told of; networks have scores."""
    if not (model.predictor.linear or model.predictor.keeps_scale):
        raise HopefearError(
            f"{path}: a voted model has no single weight for a feature; train with "
            "-p averaging=averaged to have its answers explained"
        )


def wanted_tokens(
    starts: Any, source: str, place: tuple[int, int] | None
) -> Iterator[tuple[int, int]]:
    """(sentence, token), from 0, of all that are to be explained: one, or all.

    >>> list(wanted_tokens([0, 1, 3], "a file", (2, 1))), len(list(wanted_tokens([0, 2], "", None)))
    ([(1, 0)], 2)
    """
    sizes = [int(after) - int(start) for start, after in pairwise(starts)]
    if place is None:
        yield from ((i, t) for i, size in enumerate(sizes) for t in range(size))
        return
    sentence, token = place
    if sentence > len(sizes) or token > sizes[sentence - 1]:
        raise HopefearError(
            f"--explain-token {sentence}:{token}: there is no such token in {source}"
        )
    yield sentence - 1, token - 1


def told(
    head: str, place: Mapping[str, Any], reason: Explanation | str, args: argparse.Namespace
) -> bytes:
    """One answer explained; ``reason`` is a text where there is nothing to explain.

    Parameters
    ----------
    head : str
        What is explained, in words.
    place : mapping
        The same for ``--json``.
    reason : Explanation or str
        Why the answer beat the runner-up.
    args : Namespace
        ``json`` and ``top``.
    """
    facts = {**place, **({"note": reason} if isinstance(reason, str) else reason.facts(args.top))}
    if args.json:
        return json.dumps(facts, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
    if isinstance(reason, str):
        lines = [f"  {reason}"]
    else:
        lines = [f"  {reason.label}, not {reason.runner_up}, by {reason.gap:.4f}"]
        lines += feature_lines(facts["features"], facts["more"])
    return "\n".join([head, *lines, "\n"]).encode("utf-8", "backslashreplace")


def feature_lines(features: Sequence[Mapping[str, Any]], more: int) -> Iterator[str]:
    """Features and what they add, one a line.

    >>> list(feature_lines([{"name": "word=Rome", "amount": 1.5}], 3))
    ['     +1.5000  word=Rome', '  … and 3 more; --top N shows them']
    """
    for feature in features:
        yield f"  {feature['amount']:+10.4f}  {feature['name']}"
    if more:
        yield f"  … and {more:,} more; --top N shows them"
