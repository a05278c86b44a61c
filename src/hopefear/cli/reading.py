"""What readers of all tasks share: the beginning of a file, and bad lines told."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from hopefear.cli.console import Console
from hopefear.data.sources import Source

if TYPE_CHECKING:
    from hopefear.data.files import ReadReport

_LISTED = 10


def look_ahead(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Let options that name files hold Sources: what is looked at is then read, in its encoding."""
    encoding = getattr(args, "encoding", None)
    for action in parser._actions:
        value = getattr(args, action.dest, None)
        if action.metavar == "FILE" and value is not None:
            many = value if isinstance(value, list) else [value]
            sources = [Source(path, encoding) for path in many]
            setattr(args, action.dest, sources if isinstance(value, list) else sources[0])


def tell_skipped(report: ReadReport, console: Console) -> None:
    """List what was recognised, put right and left out."""
    for note in report.notes:
        console.say(note)
    if report.unsorted or report.repeated:
        console.say(
            f"{report.unsorted:,} lines with ids out of order, which were sorted; "
            f"{report.repeated:,} ids came again in a line, and their values were summed"
        )
    if report.tabbed:
        console.say(
            f"{report.tabbed:,} lines have a tab behind what is no class; they are texts as a whole"
        )
    if report.skipped:
        lines = "line" if report.skipped == 1 else "lines"
        console.say(f"{report.skipped:,} bad {lines} skipped:")
        for message in report.messages[:_LISTED]:
            console.say(f"  {message}")
        if report.skipped > _LISTED:
            console.say(f"  … and {report.skipped - _LISTED:,} more")
