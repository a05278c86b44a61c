"""The command ``hopefear``: one verb, one module; nothing heavy is imported before its time."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status; never raises for a user's mistake.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments without the program's name; those of the process by default.
    """
    # Nothing here multiplies large matrices; idle BLAS threads would only wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from hopefear.cli.guard import fill_standard_streams, guarded
    from hopefear.cli.verbs import dispatch, options_of

    fill_standard_streams()
    words = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in words
    return guarded(lambda: dispatch(words), debug, lambda: options_of(words))
