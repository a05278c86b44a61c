"""Errors that users can correct: one message, no traceback."""

from __future__ import annotations


class HopefearError(Exception):
    """Base of every error that a user can cause and correct.

    The command line prints its message and leaves with status 1.
    """


class Problem(str):
    """Problem with an input, as a clause that messages add unquoted: only user text is quoted."""


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
    found : str or Problem, optional
        Text that stood there instead, which is quoted, shortened to 60 characters; or what the
        problem is.

    Examples
    --------
    >>> print(InputError("a.svm", 3, "a number after ':'", "x"))
    a.svm:3: expected a number after ':', found 'x'
    >>> print(InputError("a.svm", 0, "at least one row", Problem("the file is empty")))
    a.svm: expected at least one row; the file is empty
    """

    def __init__(self, path: str, line: int, expected: str, found: str | None = None) -> None:
        place = f"{path}:{line}" if line else path
        if isinstance(found, Problem):
            actual = f"; {found}"
        else:
            actual = "" if found is None else f", found {shortened(found)!r}"
        super().__init__(f"{place}: expected {expected}{actual}")
        self.path, self.line = path, line


class ModelError(HopefearError):
    """A model or checkpoint file that cannot be trusted, read or used for this task."""


class NewerFormatError(ModelError):
    """A file that a later version wrote, and wrote whole: no accident, so it must not be lost."""


class CombinationError(HopefearError, ValueError):
    """Two parts of a learner that cannot work together; the message names both and a way out."""


class OptionError(HopefearError):
    """A parameter that does not go with the data; the command line calls it by its option.

    Parameters
    ----------
    name : str
        The parameter.
    value : object
        What it was given.
    reason : str
        What is wrong with it, and the remedy.

    Examples
    --------
    >>> error = OptionError("min_count", 3, "is for texts; leave it out")
    >>> str(error), error.typed()
    ('min_count=3 is for texts; leave it out', '--min-count 3 is for texts; leave it out')
    """

    def __init__(self, name: str, value: object, reason: str) -> None:
        super().__init__(f"{name}={value!r} {reason}")
        self.name, self.value, self.reason = name, value, reason

    def typed(self) -> str:
        """The message in the words of the command line."""
        name = f"no_{self.name}" if self.value is False else self.name
        option = f"--{name.replace('_', '-')}"
        if self.value is None:
            option += " 0"
        elif not isinstance(self.value, bool):
            value = self.value
            option += f" {'-'.join(map(str, value)) if isinstance(value, tuple) else value}"
        return f"{option} {self.reason}"


class DataWarning(UserWarning):
    """Data that was read, but probably not as the user meant: mended, unknown, of no use."""


def shortened(text: str, limit: int = 60) -> str:
    """Text for a message, cut where it has more than ``limit`` characters.

    >>> shortened("9" * 5000, 8)
    '9999999…'
    """
    return text if len(text) <= limit else text[: limit - 1] + "…"
