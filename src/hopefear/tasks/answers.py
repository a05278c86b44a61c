"""What models answer: one question, one form of answers for everybody who asks.

There is one way out. A task brings ``tasks/TASK/answers.py`` with

    def answer(model, rows, question) -> Answers

the one place that calls decoders. `Answers` are columnar, so that a writer of a file never makes an
object a token; iterating gives *records*, whose ``as_dict()`` is what JSON lines, HTTP and
``predict_records`` of the estimator show, with the same keys everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol


class Question(NamedTuple):
    """What is asked of a model.

    Parameters
    ----------
    n : int, optional
        So many outputs, best first; the best alone unless said.
    proba : bool
        Whether all probabilities are wanted, not only those of what is answered.
    unknown : float, optional
        Classes: least probability of a label; below it the answer is ``unknown_label``.
    unknown_label : str
        Classes: what is answered there.
    constrained, allowed, scheme
        Tags: as for ``Tagger.predict``.
    """

    n: int | None = None
    proba: bool = False
    unknown: float | None = None
    unknown_label: Any = "unknown"
    constrained: Any = True
    allowed: Any = None
    scheme: str | None = None


class Record(Protocol):
    """The answer to one input."""

    def as_dict(self) -> dict[str, Any]:
        """The same for JSON."""


class Answers:
    """Answers to many inputs, in arrays."""

    def __len__(self) -> int:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Record]:
        """One record an input, in their order."""
        raise NotImplementedError

    def as_dicts(self) -> list[dict[str, Any]]:
        """All records for JSON."""
        return [record.as_dict() for record in self]
