"""What readers of all tasks share: the beginning of a file, and bad lines told."""

from __future__ import annotations

import sys

from hopefear.cli.console import Console
from hopefear.data.files import ReadReport, open_bytes
from hopefear.errors import HopefearError

_LISTED = 10


def head(path: str, formats: str) -> bytes:
    """The beginning of a file, unpacked; what is on standard input stays there."""
    if path == "-":
        peek = getattr(sys.stdin.buffer, "peek", None)
        found = peek(1 << 12) if peek else b""
        if found[:2] == b"\x1f\x8b" or found[:6] == b"\xfd7zXZ\x00":
            raise HopefearError(
                "standard input is compressed, so its first line cannot be seen; "
                f"give --format {formats}"
            )
        return found
    with open_bytes(path) as stream:
        return stream.read(1 << 16)


def tell_skipped(report: ReadReport, console: Console) -> None:
    """List what was left out."""
    if report.skipped:
        lines = "line" if report.skipped == 1 else "lines"
        console.say(f"{report.skipped:,} bad {lines} skipped:")
        for message in report.messages[:_LISTED]:
            console.say(f"  {message}")
        if report.skipped > _LISTED:
            console.say(f"  … and {report.skipped - _LISTED:,} more")
