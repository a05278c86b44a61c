"""``hopefear inspect``: what a model is, what it weighs and where it came from."""

from __future__ import annotations

import argparse
import os
from typing import Any

from hopefear.cli import options
from hopefear.cli.console import Console, print_json

USAGE = "--model PATH [--top N]"
DESCRIPTION = """
Show the size and sparsity of a model, how it was trained and on what, and the heaviest features
of every label; of a tagger also its templates and its strongest transitions, those it seeks and
those it shuns. Of a voted model, which has no single weight for a feature, the votes are
described instead.
"""
EXAMPLES = """
examples:
  hopefear inspect --model news.model --top 20
  hopefear inspect --model chunks.model --json | python -m json.tool
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True, metavar="PATH", help="model file")
    parser.add_argument(
        "--top",
        type=options.at_least(0),
        default=10,
        metavar="N",
        help="features to show for each label (default: 10)",
    )
    options.json_option(parser)


def run(args: argparse.Namespace) -> int:
    from hopefear.cli.models import load_model, verb_of

    task, model = load_model(args.model)
    shower = verb_of(task, "inspect", args)
    size = None if args.model == "-" else os.path.getsize(args.model)
    facts = {"model": args.model, "task": task, "bytes": size, **shower.facts(model, args.top)}
    if args.json:
        print_json(facts)
    else:
        shower.show(Console(), facts)
    return 0


def listed(values: Any, *keys: str) -> str | None:
    """What is there of some keys, in words; models made elsewhere may lack any."""
    found = [(key, values[key]) for key in keys if values.get(key) is not None]
    return ", ".join(f"{key} {f'{v:,}' if isinstance(v, int) else v}" for key, v in found) or None


def labels_in_words(names: list[str]) -> str:
    """How many there are, and the first of them."""
    return f"{len(names)}: {', '.join(names[:8])}" + (", …" if len(names) > 8 else "")
