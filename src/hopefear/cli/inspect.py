"""``hopefear inspect``: what a model is, what it weighs and where it came from."""

from __future__ import annotations

import argparse
import os
from typing import Any

from hopefear.cli import options
from hopefear.cli.console import Console, print_json

USAGE = "--model PATH | --weights FILE [--top N] [--explain FILE --list ID]"
DESCRIPTION = """
Show the size and sparsity of a model, how it was trained and on what, and the heaviest features
of every label; of a tagger also its templates and its strongest transitions, those it seeks and
those it shuns; of a reranker its families of features, and what speaks for and against a
candidate. Of a voted model, which has no single weight for a feature, the votes are described
instead.

With --explain a reranker tells why a candidate of a list beats another: the features that differ,
each with its weight times the difference. They are the model's best and the generator's, or the
runner-up where these are the same, or those of --pair.

Of weights, as `hopefear tune` writes them, the dense ones are shown, the largest of the others,
and where they came from, as far as the file says it (JSON does).
"""
EXAMPLES = """
examples:
  hopefear inspect --model news.model --top 20
  hopefear inspect --model chunks.model --json | python -m json.tool
  hopefear inspect --model parses.model --explain nbest.jsonl --list wsj_0001.0 --pair 3:0
  hopefear inspect --weights tuned.json --top 30
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", metavar="PATH", help="model file")
    options.weights(parser)
    parser.add_argument(
        "--top",
        type=options.at_least(0),
        default=10,
        metavar="N",
        help="features to show for each label, or for and against (default: 10)",
    )
    lists = parser.add_argument_group("lists")
    lists.add_argument(
        "--explain", metavar="FILE", help="file with a list whose order is to be explained"
    )
    lists.add_argument("--list", metavar="ID", help="id of that list (default: the first)")
    lists.add_argument(
        "--pair",
        type=_pair,
        metavar="I:J",
        help="why candidate I beats candidate J; positions in the list, from 0",
    )
    lists.add_argument(
        "--format",
        choices=options.FORMATS["rerank"],
        default="auto",
        help="of that file: json, ptb or bllip; auto looks at its first lines (default: auto)",
    )
    options.json_option(parser)


def run(args: argparse.Namespace) -> int:
    if options.by_weights(args, shared=("top",), needed={}):
        from hopefear.cli.tune.weights import run_inspect

        run_inspect(args)
        return 0
    if args.explain is None and (args.list or args.pair or args.format != "auto"):
        args.usage_error("--list, --pair and --format belong to --explain FILE")
    if args.model == args.explain == "-":
        args.usage_error("--model and --explain cannot both be standard input")
    from hopefear.cli.models import load_model, verb_of

    task, model = load_model(args.model)
    shower = verb_of(task, "inspect", args)
    if args.explain is not None:
        return _explain(args, model)
    size = None if args.model == "-" else os.path.getsize(args.model)
    facts = {"model": args.model, "task": task, "bytes": size, **shower.facts(model, args.top)}
    if args.json:
        print_json(facts)
    else:
        shower.show(Console(), facts)
    return 0


def _explain(args: argparse.Namespace, model: Any) -> int:
    from hopefear.cli.compiling import announced
    from hopefear.cli.rerank.explain import explanation, show

    console = Console(args.quiet)
    with announced(console, "prediction"):
        found = explanation(model, args)
    if args.json:
        print_json(found)
    else:
        show(console, found)
    return 0


def _pair(text: str) -> tuple[int, int]:
    """Two positions, from 0.

    >>> _pair("3:0")
    (3, 0)
    """
    one, colon, other = text.partition(":")
    if not (colon and one.isdecimal() and other.isdecimal() and int(one) != int(other)):
        raise argparse.ArgumentTypeError(
            f"expected two different positions from 0, such as 3:0, found {text!r}"
        )
    return int(one), int(other)


def listed(values: Any, *keys: str) -> str | None:
    """What is there of some keys, in words; models made elsewhere may lack any."""
    found = [(key, values[key]) for key in keys if values.get(key) is not None]
    return ", ".join(f"{key} {f'{v:,}' if isinstance(v, int) else v}" for key, v in found) or None


def labels_in_words(names: list[str]) -> str:
    """How many there are, and the first of them."""
    return f"{len(names)}: {', '.join(names[:8])}" + (", …" if len(names) > 8 else "")
