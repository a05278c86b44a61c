"""``hopefear report``: training runs side by side on one page."""

from __future__ import annotations

import argparse

from hopefear.cli import options
from hopefear.cli.console import Console, check_folder, check_output

USAGE = "RUN... [--out FILE.html] [--to TRACKER=DIR]"
DESCRIPTION = """
Turn run folders, as `hopefear train --run DIR` writes them, into one HTML page that needs
nothing else: a summary, curves of mistakes, loss and sparsity, scores on held-out data,
what theorems say of them, and the settings that differ. A run that is still going on
or was killed can be shown too. With --to the events go to a tracker of runs as well, or instead:
files in a folder, nothing over the network.
"""
EXAMPLES = """
examples:
  hopefear report runs/vrda --out vrda.html
  hopefear report runs/* --out all.html
  hopefear report runs/* --to tensorboard=logs
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run folder")
    parser.add_argument("--out", metavar="FILE.html", help="page to write")
    parser.add_argument(
        "--to",
        type=options.parameter,
        action="append",
        default=[],
        metavar="TRACKER=DIR",
        help="write the runs as mlflow, tensorboard or wandb keep them (each an extra of that "
        "name); may be repeated",
    )


def run(args: argparse.Namespace) -> int:
    if args.out is None and not args.to:
        args.usage_error("--out FILE.html or --to TRACKER=DIR is needed: where runs are shown")
    if args.out is not None:
        check_output(args.out)
    from hopefear.integrations.tracking import check_tracker, replay
    from hopefear.report import run_report

    for tracker, folder in args.to:
        check_tracker(tracker)
        check_folder(folder)
    console = Console(args.quiet)
    if args.out is not None:
        run_report(args.runs, args.out, options.of_papers("sections"))
        console.say(f"wrote {args.out}")
    for tracker, folder in args.to:
        replay(args.runs, tracker, folder)
        console.say(f"wrote {len(args.runs)} runs to {folder} for {tracker}")
    return 0
