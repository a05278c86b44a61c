"""Where the corpora of experiments are."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from hopefear.errors import HopefearError

BESIDE = Path("..", "shared", "data")


def find_data(data: Path | None) -> Path | None:
    """The folder of the corpora: the one given, HOPEFEAR_DATA, ``../shared/data``, or none.

    >>> find_data(Path("corpora")).name
    'corpora'
    """
    if data is not None:
        return data
    if named := os.environ.get("HOPEFEAR_DATA"):
        return Path(named)
    return BESIDE if BESIDE.is_dir() else None


def find_files(
    data: Path | None, folder: str, wanted: Iterable[str], what: str, otherwise: str = ""
) -> Path:
    """A folder of the corpora that an experiment cannot do without.

    Parameters
    ----------
    data : path, optional
        As in :func:`find_data`.
    folder : str
        Its name there.
    wanted : iterable of str
        Files it must hold.
    what, otherwise : str
        What they are, and another way out, for the message.

    Examples
    --------
    >>> find_files(Path("nowhere"), "ptb-nbest", ["dev.jsonl.xz"], "lists of parses")
    Traceback (most recent call last):
        ...
    hopefear.errors.HopefearError: nowhere/ptb-nbest has no dev.jsonl.xz: this experiment needs \
lists of parses; give --data, or set HOPEFEAR_DATA, to a folder that holds ptb-nbest
    """
    found = (find_data(data) or BESIDE) / folder
    if lost := [name for name in wanted if not (found / name).is_file()]:
        raise HopefearError(
            f"{found} has no {', '.join(lost)}: this experiment needs {what}; give --data, or set "
            f"HOPEFEAR_DATA, to a folder that holds {folder}{otherwise}"
        )
    return found
