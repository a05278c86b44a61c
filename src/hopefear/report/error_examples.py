"""Errors of models, to browse: examples of one model, disagreements between several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

from hopefear.report.arcs import ArcDiagram
from hopefear.report.examples import (
    BracketedText,
    MarkedText,
    Rival,
    View,
    WeighedText,
    nbest_html,
    reason_html,
    view_html,
    view_text,
)
from hopefear.report.theme import escape

_KINDS = 40  # in a list to choose from
BYTES = 1_500_000  # of examples on a page, so that it stays below 2 MB
DRAWN = 600_000  # of them, after which errors of trees are listed and not drawn
LONGEST = 60  # words of a tree that is drawn
_NAMED = 4  # kinds in the heading of a case
_AGREES = '<p class="hf-text same">{}</p>'


@dataclass(frozen=True)
class ErrorExample:
    """An example that a model got wrong.

    Parameters
    ----------
    facts : mapping
        Where it stands and how wrong it is, in words and numbers: ``{"sentence": 3, "wrong
        tokens": 2}``.
    gold, predicted : View, ArcDiagram or str
        How it should be, and how it is; None where the other shows both.
    kinds, labels : sequences of str
        Kinds of error and labels in it, to choose by.
    rivals : sequence of Rival
        The n best.
    reason : Explanation, optional
        Why the answer beat the right one, of the first error where there are several.
    at : int
        Its place in the file, to put errors in the order they have there.
    texts : mapping
        What else belongs to it, by name: the sentence that is translated, its reference.
    """

    facts: Mapping[str, Any]
    gold: View | ArcDiagram | str | None
    predicted: View | ArcDiagram | str
    kinds: Sequence[str] = ()
    labels: Sequence[str] = ()
    rivals: Sequence[Rival] = ()
    reason: Any = None
    at: int = 0
    texts: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The same for JSON."""
        if isinstance(self.predicted, ArcDiagram):
            return {**self.facts, "tree": asdict(self.predicted)}
        if self.gold is None:
            return {**self.facts, "text": view_text(self.predicted)}
        views = {"gold": self.gold, "predicted": self.predicted}
        return {**self.facts, **{name: view_text(view) for name, view in views.items()}}

    def to_html(self, prefix: str, drawn: bool = True) -> str:
        """An article; the n best and the reason are folded."""
        words = self.amounts()
        views = _view(self.predicted, f"{prefix}p", drawn)
        if self.gold is not None:
            gold = f"<dt>gold</dt><dd>{view_html(self.gold, f'{prefix}g')}</dd>"
            views = f"<dl>{gold}<dt>predicted</dt><dd>{views}</dd></dl>"
        texts = [f"<dt>{escape(k)}</dt><dd>{view_html(v)}</dd>" for k, v in self.texts.items()]
        views = f"<dl>{''.join(texts)}</dl>{views}" if texts else views
        first = self.rivals[0].probability if self.rivals else None
        data = {} if first is None else {"p": f"{first:.4g}"}
        return _article(self, words, views + self.folded(), data)

    def amounts(self) -> list[str]:
        """Describes the size and kinds of the error; names of labels are among the kinds."""
        _, *details = self.facts.items()
        words = [
            f"{value} {key}" if isinstance(value, int) else f"{key} {value:g}"
            for key, value in details
            if not isinstance(value, str)
        ]
        return [*words, *self.kinds[:_NAMED], *(["…"] if len(self.kinds) > _NAMED else [])]

    def folded(self, before: str = "") -> str:
        """Returns HTML that opens to the reasons of the answer, after ``before``."""
        details = before + (nbest_html(self.rivals) if self.rivals else "")
        details += reason_html(self.reason) if self.reason is not None else ""
        if not details:
            return ""
        title = "What came close" if self.reason is None else "Why, and what came close"
        return f"<details><summary>{title}</summary>{details}</details>"


@dataclass(frozen=True)
class Disagreement:
    """An example as several models answer it.

    Parameters
    ----------
    cases : mapping
        Answer of each model, by name.
    errors : sequence of float
        How wrong each of them is, 0 where it is right.
    graded : bool
        Whether it matters how wrong they are, and not only who is right.

    Examples
    --------
    >>> both = {name: ErrorExample({"sentence": 1}, "gold", name) for name in ("a", "b")}
    >>> Disagreement(both, [0.0, 2.0]).who
    ['a right, b wrong']
    >>> Disagreement(both, [3.0, 2.0]).who
    ['all wrong', 'both wrong, b less than a']
    >>> Disagreement(both, [3.0, 2.0], graded=True).who
    ['b better than a']
    """

    cases: Mapping[str, ErrorExample]
    errors: Sequence[float]
    graded: bool = False
    rivals: Sequence[Rival] = ()  # each model has its own

    @property
    def first(self) -> ErrorExample:
        """Example as the first model answers it."""
        return next(iter(self.cases.values()))

    @property
    def facts(self) -> Mapping[str, Any]:
        """Its place."""
        name, position = next(iter(self.first.facts.items()))
        return {name: position}

    @property
    def at(self) -> int:
        """The number of the example."""
        return self.first.at

    @property
    def kinds(self) -> list[str]:
        """Kinds of error of all models."""
        return sorted({kind for case in self.wrong.values() for kind in case.kinds})

    @property
    def labels(self) -> list[str]:
        """Labels in errors of all models."""
        return sorted({label for case in self.wrong.values() for label in case.labels})

    @property
    def wrong(self) -> dict[str, ErrorExample]:
        """Answers of the models that are wrong."""
        pairs = zip(self.cases.items(), self.errors, strict=True)
        return {name: case for (name, case), error in pairs if error}

    @property
    def who(self) -> list[str]:
        """Pairs of models of which the first is right and the second wrong, for filters."""
        pairs = permutations(zip(self.cases, self.errors, strict=True), 2)
        if self.graded:
            words = [
                f"{a} better than {b}"
                for (a, first_errors), (b, second_errors) in pairs
                if first_errors < second_errors
            ]
            return words or ["equally good"]
        words = ["all wrong"] if all(self.errors) else []
        for (a, first_errors), (b, second_errors) in pairs:
            if second_errors and not first_errors:
                words.append(f"{a} right, {b} wrong")
            elif first_errors and first_errors < second_errors:
                words.append(f"both wrong, {a} less than {b}")
        return words

    def to_dict(self) -> dict[str, Any]:
        """The same for JSON."""
        name = next(iter(self.facts))
        answers = {
            model: {key: fact for key, fact in case.to_dict().items() if key != name}
            for model, case in self.cases.items()
        }
        return {**self.facts, "wrong": list(self.wrong), "answers": answers}

    def to_html(self, prefix: str, drawn: bool = True) -> str:
        """Returns an article: the gold answer, and below it the answer of every model."""
        rows = [(name, view_html(text)) for name, text in self.first.texts.items()]
        if (gold := self._gold()) is not None:
            rows.append(("gold", view_html(gold, f"{prefix}g")))
        labelled = gold is None and "predicted" in self.first.facts  # one label for all of it
        if labelled:
            rows.append(("example", view_html(view_text(self.first.predicted))))
            rows.append(("gold", view_html(str(self.first.facts["gold"]))))
        wrong = self.wrong
        for k, (name, case) in enumerate(self.cases.items()):
            equal = (a for a, answer in self.cases.items() if answer.predicted == case.predicted)
            if labelled:
                text = isinstance(case.predicted, WeighedText)
                shaded = view_html(case.predicted) if text else ""
                view = view_html(str(case.facts["predicted"])) + case.folded(shaded)
            elif name not in wrong and not self.graded:
                view = _AGREES.format("as it should be") + case.folded()
            elif (before := next(equal)) != name:
                view = _AGREES.format(f"as {escape(before)}") + case.folded()
            else:
                view = _view(case.predicted, f"{prefix}p{k}", drawn) + case.folded()
            rows.append((name, view))
        signs = {name: "✗" if name in wrong else "✓" for name in self.cases}
        body = "".join(
            f"<dt>{escape(name)}{' ' + signs[name] if k >= len(rows) - len(signs) else ''}</dt>"
            f"<dd>{view}</dd>"
            for k, (name, view) in enumerate(rows)
        )
        words = [
            f"{name}: {', '.join(case.amounts()) if name in wrong or self.graded else 'right'}"
            for name, case in self.cases.items()
        ]
        return _article(self, words, f"<dl>{body}</dl>", {"who": "\n".join(self.who)})

    def _gold(self) -> View | ArcDiagram | str | None:
        """Returns the gold answer, without the marks of one model's errors."""
        views = [case.gold for case in self.cases.values()]
        if isinstance(views[0], BracketedText):
            return BracketedText(views[0].text)
        texts = [view for view in views if isinstance(view, MarkedText)]
        if texts:
            return replace(texts[0], spans=sorted({s for t in texts for s in t.spans}), wrong=())
        return views[0]


def _view(view: View | ArcDiagram | str, prefix: str, drawn: bool) -> str:
    long = isinstance(view, ArcDiagram) and len(view.words) > LONGEST
    return view_html(view, prefix, drawn and not long)


def _article(
    case: ErrorExample | Disagreement, words: Sequence[str], body: str, data: dict[str, str]
) -> str:
    name, position = next(iter(case.facts.items()))
    data = {"kinds": "\n".join(case.kinds), "labels": "\n".join(case.labels), **data}
    attributes = "".join(f' data-{key}="{escape(value)}"' for key, value in data.items())
    return (
        f'<article class="case" data-at="{case.at}"{attributes}>'
        f"<h3>{escape(name)} {escape(position)} <small>{escape(' · '.join(words))}</small></h3>"
        f"{body}</article>"
    )


@dataclass(frozen=True)
class ErrorExamples:
    """Errors of a model, the worst first; a page shows those that fit.

    Parameters
    ----------
    cases : sequence of ErrorExample
        The errors.
    wrong, total : int
        Examples with errors, and all of them.
    unit : str
        What they are: ``sentences``.
    order : str
        Order of the examples, as a phrase.
    """

    cases: Sequence[ErrorExample | Disagreement] = ()
    wrong: int = 0
    total: int = 0
    unit: str = "examples"
    order: str = "worst"
    most: int = field(default=BYTES, repr=False)

    def to_html(self, prefix: str) -> str:
        """Articles, with controls that only the script of a page shows."""
        articles: list[str] = []
        size = 0
        for k, case in enumerate(self.cases):
            article = case.to_html(f"{prefix}-{k}", size < DRAWN)
            size += len(article.encode())
            if size > self.most:
                break
            articles.append(article)
        displayed = self.cases[: len(articles)]
        note = f"the {len(displayed):,} {self.order} are here"
        text = f"{self.summary()}; " + (
            "all are here." if len(displayed) == self.wrong else f"{note}."
        )
        if any('class="hf-arcs"' in article for article in articles):
            drawn = sum("<svg" in article for article in articles)
            note = "of the others wrong arcs are told, the right ones marked"
            text += f" {drawn:,} are drawn; {note}."
        return (
            f'<div class="cases" id="{prefix}"><p>{text}</p>{_controls(displayed, prefix)}'
            + "\n".join(articles)
            + "</div>"
        )

    def summary(self) -> str:
        """Returns the number of examples with errors, as a sentence."""
        return f"{self.wrong:,} of {self.total:,} {self.unit} have errors"


@dataclass(frozen=True)
class Disagreements(ErrorExamples):
    """Examples that some of several models got wrong, those first that others got right.

    ``differ`` says how many these are, or, where answers are ``graded``, how many have answers that
    are not equally good, of which the most different come first.
    """

    differ: int = 0
    graded: bool = False
    ahead: Sequence[Sequence[int]] = ()  # on how many one is better than another

    def summary(self) -> str:
        if self.graded:
            return f"On {self.differ:,} of {self.total:,} {self.unit} answers are not equally good"
        sentence = f"On {self.wrong:,} of {self.total:,} {self.unit} at least one model errs"
        return f"{sentence}, on {self.differ:,} of them another is right"


class Judgement(NamedTuple):
    """Errors of a model on every example, any of which can be shown.

    Parameters
    ----------
    errors : array
        How wrong it is, 0 where it is right.
    cases : callable
        From numbers of examples to their cases, in that order.
    unit, order : str
        Name and order of the examples, as a phrase.
    most : int
        How many cases are made, which takes time.
    graded : bool
        Whether it matters how wrong an answer is, and not only whether it is.
    """

    errors: np.ndarray
    cases: Callable[[np.ndarray], Sequence[ErrorExample]]
    unit: str = "examples"
    order: str = "worst"
    most: int = 400
    graded: bool = False

    def worst(self) -> ErrorExamples:
        """The errors, the worst first."""
        wrong = int(np.count_nonzero(self.errors))
        order = np.argsort(-self.errors, kind="stable")[: min(self.most, wrong)]
        return ErrorExamples(self.cases(order), wrong, len(self.errors), self.unit, self.order)


def disagreements(judgements: Mapping[str, Judgement]) -> Disagreements:
    """Selects the examples on which models differ most, with each model's answer.

    Parameters
    ----------
    judgements : mapping
        From the name of a model to its judgement of the same examples.

    Examples
    --------
    >>> def cases(name):
    ...     return lambda order: [
    ...         ErrorExample({"sentence": i + 1}, "gold", name) for i in order.tolist()
    ...     ]
    >>> a, b = np.array([0.0, 1.0, 0.0]), np.array([0.0, 1.0, 2.0])
    >>> both = disagreements({"a": Judgement(a, cases("a")), "b": Judgement(b, cases("b"))})
    >>> [contest.facts["sentence"] for contest in both.cases], both.wrong, both.differ
    ([3, 2], 2, 1)
    """
    first = next(iter(judgements.values()))
    errors = np.stack([judgement.errors for judgement in judgements.values()], axis=1)
    max_errors, least = errors.max(axis=1), errors.min(axis=1)
    mixed = (max_errors > least) & ((least == 0) | first.graded)
    differ = int(np.count_nonzero(mixed))
    wrong = differ if first.graded else int(np.count_nonzero(max_errors))
    order = np.lexsort((-max_errors, least - max_errors, ~mixed, max_errors == 0))[
        : min(first.most, wrong)
    ]
    answers = zip(*(judgement.cases(order) for judgement in judgements.values()), strict=True)
    rows = [
        Disagreement(dict(zip(judgements, cases, strict=True)), errors[i].tolist(), first.graded)
        for i, cases in zip(order.tolist(), answers, strict=True)
    ]
    words = "on which they differ most"
    ahead = [[int(np.sum((a < b) & ((a == 0) | first.graded))) for b in errors.T] for a in errors.T]
    return Disagreements(
        rows, wrong, len(errors), first.unit, words, differ=differ, graded=first.graded, ahead=ahead
    )


def _controls(cases: Sequence[ErrorExample | Disagreement], prefix: str) -> str:
    boxes = []
    compared = any(isinstance(case, Disagreement) for case in cases)
    for name, title in (("who", "who"), ("kinds", "kind"), ("labels", "label")):
        values = Counter(value for case in cases for value in set(getattr(case, name, ())))
        if len(values) > 1:
            choices = "".join(
                f'<option value="{escape(value)}">{escape(value)} ({n})</option>'
                for value, n in sorted(values.items(), key=lambda pair: (-pair[1], pair[0]))[
                    :_KINDS
                ]
            )
            boxes.append(
                f'<label>{title} <select data-by="{name}"><option value="">all</option>'
                f"{choices}</select></label>"
            )
    sure = '<option value="p">most probable first</option>'
    return (
        f'<div class="controls" role="search" aria-label="Errors" hidden>{"".join(boxes)}'
        '<label>text <input type="search" data-by="text"></label>'
        '<label>order <select data-by="order">'
        f'<option value="">{"most different" if compared else "worst"} first</option>'
        f"{sure if any(case.rivals for case in cases) else ''}"
        '<option value="place">as in the file</option></select></label>'
        '<output aria-live="polite"></output></div>'
    )
