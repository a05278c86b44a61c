"""``hopefear reproduce``: a paper's experiments, next to the paper's numbers."""

from __future__ import annotations

import argparse
from pathlib import Path

from hopefear.cli.console import Console
from hopefear.errors import HopefearError
from hopefear_papers import EXPERIMENTS, run_experiment

USAGE = "EXPERIMENT [--data DIR] --out DIR [--quick]"
DESCRIPTION = """
Run the experiments of a paper and write one HTML page with its tables and figures, the paper's
own numbers beside ours, and a text on what agrees and what does not; results.json beside it holds
every number.
"""
EXAMPLES = """
examples:
  hopefear reproduce vrda-classification --out results/
  hopefear reproduce vrda-classification --data data/ --out results/ --quick
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "experiment",
        metavar="EXPERIMENT",
        help="; ".join(f"{name}: {what}" for name, what in EXPERIMENTS.items()),
    )
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="folder of the corpora; by default $HOPEFEAR_DATA, then ../shared/data; generated "
        "data takes their place where there is neither",
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="folder for the results")
    parser.add_argument(
        "--quick", action="store_true", help="a small version on generated data, in seconds"
    )


def run(args: argparse.Namespace) -> int:
    console, data = Console(args.quiet), None if args.data is None else Path(args.data)
    if args.experiment not in EXPERIMENTS:
        args.usage_error(
            f"there is no experiment {args.experiment!r}; there is {', '.join(EXPERIMENTS)}"
        )
    if data is not None and not data.is_dir():
        raise HopefearError(f"--data {data}: there is no such folder")
    page = run_experiment(
        args.experiment, data, Path(args.out), quick=args.quick, progress=console.say
    )
    console.say(f"wrote {page}")
    return 0
