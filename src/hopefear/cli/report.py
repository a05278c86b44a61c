"""``hopefear report``: training runs side by side on one page."""

from __future__ import annotations

import argparse

from hopefear.cli.console import Console, check_output

USAGE = "RUN... --out FILE.html"
DESCRIPTION = """
Turn run folders, as `hopefear train --run DIR` writes them, into one HTML page that needs
nothing else: a summary, curves of mistakes, loss and sparsity, scores on held-out data,
mistakes against their bounds, and the settings that differ. A run that is still going on or was
killed can be shown too.
"""
EXAMPLES = """
examples:
  hopefear report runs/vrda --out vrda.html
  hopefear report runs/* --out all.html
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run folder")
    parser.add_argument("--out", required=True, metavar="FILE.html", help="page to write")


def run(args: argparse.Namespace) -> int:
    check_output(args.out)
    from hopefear.report import run_report

    run_report(args.runs, args.out)
    Console(args.quiet).say(f"wrote {args.out}")
    return 0
