"""Answers to look at: words with their labels, trees, explanations, n-best lists."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

from hopefear.errors import HopefearError

if TYPE_CHECKING:
    from hopefear.report.notebook import Shown


def show(doc: Any, answer: Any = None) -> Shown:
    """Something of the library to look at: in colours in a notebook and on a terminal.

    Parameters
    ----------
    doc : object
        What :meth:`hopefear.Tagger.predict_text` gives, a model, an estimator, an explanation, an
        n-best list; or the words of a sentence, with its answer.
    answer : sequence, optional
        What ``predict`` says of these words: labels, or heads with or without relations.

    Examples
    --------
    >>> import hopefear
    >>> hopefear.show(["Ann", "Lee", "left"], ["B-PER", "I-PER", "O"])
    [PER Ann Lee] left
    >>> hopefear.show(["It", "rains"], [(2, "expl"), (0, "root")])
    ╭─→ It     expl
    ╰─● rains  root
    """
    from hopefear.report.notebook import Shown

    if answer is not None:
        return Shown(_answered([_word(word) for word in doc], list(answer)))
    if hasattr(doc, "view"):
        return Shown(doc.view())
    if isinstance(doc, list) and doc and all(hasattr(each, "view") for each in doc):
        return Shown(*(each.view() for each in doc))
    if hasattr(doc, "_repr_html_"):
        return Shown(_Own(doc))
    raise HopefearError(
        f"there is no picture of {type(doc).__name__}; give words and what predict says of them, "
        "or a model, an explanation, an n-best list or tagged text"
    )


class _Own:
    """What knows how it looks."""

    def __init__(self, doc: Any) -> None:
        self.doc = doc

    def to_html(self, prefix: str) -> str:
        return self.doc._repr_html_()

    def to_text(self, coloured: bool) -> str:
        return repr(self.doc)


def _word(word: Any) -> str:
    """A token as people know it: itself, the first of its columns, or its form."""
    if isinstance(word, dict):
        return str(word.get("form", word.get("word", next(iter(word.values()), ""))))
    return str(word[0]) if isinstance(word, tuple) else str(word)


def _answered(words: Sequence[str], answer: list[Any]) -> Any:
    from hopefear.data.schemes import are_spans, detect_scheme, spans
    from hopefear.report import ArcDiagram, MarkedText

    if len(words) != len(answer):
        raise HopefearError(f"{len(words)} words need as many answers, not {len(answer)}")
    if answer and isinstance(answer[0], tuple):
        heads, relations = (list(column) for column in zip(*answer, strict=True))
        return ArcDiagram(words, heads, [relation or "" for relation in relations])
    # Whole numbers are heads where they can be: one of them is the root, and none is too large.
    if all(isinstance(head, Integral) for head in answer):
        heads = [int(head) for head in answer]
        if 0 in heads and 0 <= min(heads) <= max(heads) <= len(words):
            return ArcDiagram(words, heads)
    labels = [str(label) for label in answer]
    if are_spans(labels):
        table = spans(labels, None, detect_scheme(labels, errors="begin") or "bio", repair=True)
        places = zip(table.first.tolist(), table.after.tolist(), table.kinds.texts(), strict=True)
        return MarkedText(words, list(places))
    marked = [(t, t + 1, label) for t, label in enumerate(labels) if label != "O"]
    return MarkedText(words, marked)
