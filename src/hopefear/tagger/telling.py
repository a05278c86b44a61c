"""Progress for people."""

from __future__ import annotations

import sys

from hopefear.training.fit import Event


def say(event: Event) -> None:
    """A line on the standard error stream for every pass."""
    if "pass_mistakes" in event:
        said = {key: event[key] for key in ("epoch", "loss", "pass_mistakes", "nnz")}
        said |= {f"dev {key}": value for key, value in event.get("dev", {}).items()}
        print(*(f"{key} {value:.6g}" for key, value in said.items()), sep=", ", file=sys.stderr)
