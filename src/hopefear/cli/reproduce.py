"""``hopefear reproduce``: a paper's experiments, next to the paper's numbers."""

from __future__ import annotations

import argparse
import importlib
import inspect
import os
from pathlib import Path

from hopefear.cli.console import Console
from hopefear.errors import HopefearError

USAGE = "EXPERIMENT [--data DIR] --out DIR [--quick]"
DESCRIPTION = """
Run the experiments of a paper and write one HTML page with its tables and figures, the paper's
own numbers beside ours, and a text on what agrees and what does not.
"""
EXPERIMENTS = {
    "vrda-classification": (
        "vrda_classification",
        "voted RDA against perceptron, truncated gradient and RDA: table 1 and "
        "figures 1 to 5 (Xu, Gao, Xiao and Regan)",
    ),
}
EXAMPLES = """
examples:
  hopefear reproduce vrda-classification --out results/
  hopefear reproduce vrda-classification --data data/ --out results/ --quick
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "experiment",
        metavar="EXPERIMENT",
        type=_experiment,
        help="; ".join(f"{name}: {text}" for name, (_, text) in EXPERIMENTS.items()),
    )
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="folder of the corpora; without it only generated data is used",
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="folder for the page")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="smaller data and fewer passes: minutes instead of an hour",
    )


def run(args: argparse.Namespace) -> int:
    console, out = Console(args.quiet), Path(args.out)
    data = None if args.data is None else Path(args.data)
    if data is not None and not data.is_dir():
        raise HopefearError(f"--data {data}: there is no such folder")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HopefearError(f"--out {out}: cannot be made: {error.strerror}") from error
    if not os.access(out, os.W_OK):
        raise HopefearError(f"--out {out}: permission denied")
    module = importlib.import_module(f"hopefear.experiments.{EXPERIMENTS[args.experiment][0]}")
    quick = {"quick": args.quick} if "quick" in inspect.signature(module.run).parameters else {}
    if args.quick and not quick:
        raise HopefearError(f"{args.experiment} has no quick form; leave --quick out")
    page = module.run(data, out, console.say, **quick)
    console.say(f"wrote {page}")
    return 0


def _experiment(name: str) -> str:
    if name not in EXPERIMENTS:
        raise argparse.ArgumentTypeError(
            f"there is no experiment {name!r}; there is {', '.join(EXPERIMENTS)}"
        )
    return name
