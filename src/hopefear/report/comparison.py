"""Several models on the same data, on one page: scores, tests, labels, and where they differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hopefear.report.error_examples import Disagreements
from hopefear.report.evaluation import (
    BARS,
    Evaluation,
    Table,
    add_confusion,
    add_weights,
    calibration_plots,
)
from hopefear.report.page import Page, value_text
from hopefear.report.plot import Plot

_SIDE = 8  # models that are shown in turn; more are listed one below another


@dataclass(frozen=True)
class ModelComparison:
    """Evaluations of several models on the same examples.

    Parameters
    ----------
    title, subtitle : str
        Heading, and the line under it.
    models : mapping
        From the name of a model to its evaluation.
    score : str
        The score that they are compared by, as ``facts`` of the evaluations call it.
    heading : str
        What tables call it.
    higher : bool
        Whether more of it is better.
    tests : mapping
        From the name of a model to how it differs from the best: ``difference``, its bounds ``low``
        and ``high``, and ``p_value``; None for the best.
    contests : Disagreements
        Examples on which they differ.

    Examples
    --------
    >>> scores = {"a": 90.0, "b": 91.5}
    >>> models = {
    ...     name: Evaluation(name, "", {"F1": f"{f1} %"}, facts={"f1": f1})
    ...     for name, f1 in scores.items()
    ... }
    >>> test = {"difference": -1.5, "low": -2.0, "high": -1.0, "p_value": 0.01}
    >>> page = ModelComparison("Two", "", models, "f1", "F1", tests={"a": test, "b": None}).page()
    >>> "−1.50" in page.html()
    True
    """

    title: str
    subtitle: str
    models: Mapping[str, Evaluation]
    score: str
    heading: str
    higher: bool = True
    tests: Mapping[str, Mapping[str, float] | None] = field(default_factory=dict)
    contests: Disagreements = field(default_factory=Disagreements, repr=False)

    def page(self) -> Page:
        """The page, from scores to where they came from."""
        facts = [model.facts for model in self.models.values()]
        signatures = [fact.get(key) for key in ("signature", "model_signature") for fact in facts]
        lines = dict.fromkeys(filter(None, signatures))
        page = Page(self.title, self.subtitle, signature="\n".join(lines))
        self._scores(page.section("Scores"))
        for name, heads, rows in _merged({k: m.tables for k, m in self.models.items()}):
            self._labels(page.section(name), heads, rows)
        if self.contests.wrong:
            self._wins(page.section("Where they differ"))
            page.cases(self.contests)
        if any(fact.get("confusion") or fact.get("confusion_matrix") for fact in facts):
            page.section("Confusion")
            self._for_each(page, lambda model: add_confusion(page, model.facts))
        self._calibration(page)
        if any(model.weights or model.findings.pairs for model in self.models.values()):
            page.section("What they weigh")
            self._for_each(
                page, lambda model: add_weights(page, model.weights, model.findings.pairs)
            )
        data = next(iter(self.models.values())).findings.data
        if data:
            page.section("Data").keyvalues(data)
        self._origin(page)
        return page

    def _scores(self, page: Page) -> None:
        rows = []
        for name, model in self.models.items():
            facts, test = model.facts, self.tests.get(name)
            low, high = _bounds(facts, self.score)
            rows.append(
                [
                    name,
                    f"{facts[self.score]:.2f}",
                    None if low is None else f"{low:.2f} to {high:.2f}",
                    "best" if test is None else _signed(test["difference"]),
                    None if test is None else f"{_signed(test['low'])} to {_signed(test['high'])}",
                    None if test is None else f"{test['p_value']:.4f}",
                    facts.get("nnz"),
                    model.origin.get("learner"),
                ]
            )
        page.table(
            [
                *("model", self.heading, "95 % interval", "difference to the best"),
                *("95 % interval of it", "p", "non-zeros", "learner"),
            ],
            rows,
            f"{self.heading}, of which {'more' if self.higher else 'less'} is better, and how far "
            "each model is from the best.",
            align="lrrrrrrl",
            highlight={self.heading: "max" if self.higher else "min"},
            notes="Intervals are those of resamples of whole examples (bootstrap). The difference "
            "is that of both models on the same examples (paired bootstrap); p says how often "
            "one as large comes about by chance (approximate randomisation).",
        )
        names = dict.fromkeys(key for model in self.models.values() for key in model.scores)
        words = [
            [key, *(value_text(model.scores.get(key)) for model in self.models.values())]
            for key in names
            if any(model.scores.get(key) is not None for model in self.models.values())
        ]
        with page.details("All scores"):
            page.table(["score", *self.models], words, align="l")

    def _labels(self, page: Page, heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        columns = [heads.index(head) for name in self.models if (head := f"F1, {name}") in heads]
        sides = "lr"[: len(heads)]
        if len(columns) < len(self.models):
            page.table(heads, rows, align=sides)
            return
        scores = [[float(row[k] or 0.0) for k in columns] for row in rows]
        if 1 < len(rows) <= BARS:
            plot = Plot(f"F1 by {heads[0]}", y_label="F1")
            for name, values in zip(self.models, zip(*scores, strict=True), strict=True):
                plot.bars([row[0] for row in rows], values, group=name)
            page.plot(plot)
        shared = [k for k, head in enumerate(heads) if k and ", " not in head]
        first, *_, last = self.models
        page.table(
            [heads[0], *(heads[k] for k in shared), *self.models, f"{last} − {first}"],
            [
                [row[0], *(row[k] for k in shared), *values, _signed(values[-1] - values[0])]
                for row, values in zip(rows, scores, strict=True)
            ],
            f"F1 of every {heads[0]}.",
            align=sides,
        )
        with page.details("Precision, recall and counts"):
            page.table(heads, rows, align=sides)

    def _wins(self, page: Page) -> None:
        rows = self.contests.ahead
        if rows:
            unit = self.contests.unit
            verdict = "better than" if self.contests.graded else "right and"
            end = "." if self.contests.graded else " wrong."
            page.matrix(
                [*self.models],
                rows,
                f"On how many of {self.contests.total:,} {unit} the model of a row is {verdict} "
                f"that of a column{end}",
            )

    def _for_each(self, page: Page, add: Callable[[Evaluation], Any]) -> None:
        """A part of each model, of which the reader sees one."""

        def part(model: Evaluation) -> Callable[[], Page]:
            def put() -> Page:
                add(model)
                return page

            return put

        if len(self.models) <= _SIDE:
            parts = {name: part(model) for name, model in self.models.items()}
            page.choices("Model", parts, next(iter(parts)))
            return
        for name, model in self.models.items():
            with page.details(name):
                add(model)

    def _calibration(self, page: Page) -> None:
        kinds = {name: model.facts.get("calibration") or {} for name, model in self.models.items()}
        plots, words = calibration_plots(kinds)
        if plots:
            page.section("Calibration").figures(plots, words)

    def _origin(self, page: Page) -> None:
        origins = [model.origin for model in self.models.values()]
        names = dict.fromkeys(key for origin in origins for key in origin)
        texts = {key: [value_text(origin.get(key)) for origin in origins] for key in names}
        if not names:
            return
        page.section("Origin")
        differ = {key: row for key, row in texts.items() if len({*row}) > 1}
        if differ:
            rows = [[key, *row] for key, row in differ.items()]
            page.table(["", *self.models], rows, "What differs.", align="l")
        page.keyvalues({key: row[0] for key, row in texts.items() if key not in differ})


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def _bounds(facts: Mapping[str, Any], name: str) -> tuple[float | None, float | None]:
    """Returns the interval of a score, by the keys that tasks use."""
    low, high = facts.get(f"{name}_interval") or (None, None)
    return facts.get(f"{name}_low", low), facts.get(f"{name}_high", high)


def _merged(tables: Mapping[str, Sequence[Table]]) -> list[Table]:
    """Joins tables of several models side by side; columns in which all agree are merged.

    >>> one = [("Types", ["type", "F1", "gold"], [["A", 1.0, 3]])]
    >>> two = [("Types", ["type", "F1", "gold"], [["A", 2.0, 3], ["B", 0.0, 0]])]
    >>> [(_, heads, rows)] = _merged({"x": one, "y": one})
    >>> heads, rows
    (['type', 'F1', 'gold'], [['A', 1.0, 3]])
    >>> [(_, heads, rows)] = _merged({"x": one, "y": two})
    >>> heads, rows
    (['type', 'F1, x', 'F1, y', 'gold, x', 'gold, y'], [['A', 1.0, 2.0, 3, 3], \
['B', None, 0.0, None, 0]])
    """
    merged: list[Table] = []
    titles = dict.fromkeys(
        title for model_tables in tables.values() for title, _, _ in model_tables
    )
    for title in titles:
        by_model = {
            name: (heads, {row[0]: row for row in rows})
            for name, model_tables in tables.items()
            for model_title, heads, rows in model_tables
            if model_title == title
        }
        heads = next(iter(by_model.values()))[0]
        keys = list(dict.fromkeys(key for _, rows in by_model.values() for key in rows))
        columns, cells = [heads[0]], [keys]
        for head in heads[1:]:
            values = {
                name: [rows[key][heads.index(head)] if key in rows else None for key in keys]
                for name, (heads, rows) in by_model.items()
                if head in heads
            }
            first = next(iter(values.values()))
            if len(by_model) == len(values) and all(value == first for value in values.values()):
                values = {"": first}
            columns += [f"{head}, {name}" if name else head for name in values]
            cells += values.values()
        merged.append((title, columns, [list(row) for row in zip(*cells, strict=True)]))
    return merged
