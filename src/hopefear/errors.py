"""What goes wrong for reasons the user can mend: one message, no traceback."""

from __future__ import annotations


class HopefearError(Exception):
    """Base of every error a user can cause and mend.

    The command line prints its message and leaves with status 1.
    """


class InputError(HopefearError):
    """Bad input at a known place.

    Parameters
    ----------
    path : str
        File the text came from (``-`` for standard input).
    line : int
        Line counted from 1; 0 when the whole file is meant.
    expected : str
        What should have stood there.
    found : str
        What stood there instead, shortened to 60 characters.

    Examples
    --------
    >>> print(InputError("a.svm", 3, "a number after ':'", "x"))
    a.svm:3: expected a number after ':', found 'x'
    """

    def __init__(self, path: str, line: int, expected: str, found: str | None = None) -> None:
        place = f"{path}:{line}" if line else path
        shown = "" if found is None else f", found {shortened(found)!r}"
        super().__init__(f"{place}: expected {expected}{shown}")
        self.path, self.line = path, line


class ModelError(HopefearError):
    """A model or checkpoint file that cannot be trusted, read or used for this task."""


class NewerFormatError(ModelError):
    """A file that a later version wrote, and wrote whole: no accident, so it must not be lost."""


class CombinationError(HopefearError, ValueError):
    """Two parts of a learner that cannot work together; the message names both and a way out."""


def shortened(text: str, limit: int = 60) -> str:
    """Text for a message, cut where it has more than ``limit`` characters.

    >>> shortened("9" * 5000, 8)
    '9999999…'
    """
    return text if len(text) <= limit else text[: limit - 1] + "…"
