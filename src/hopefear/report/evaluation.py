"""Evaluation of a model on one page: scores, confusion, errors, weights, origin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hopefear.report.error_examples import ErrorExamples, Judgement
from hopefear.report.page import Page
from hopefear.report.plot import Plot

Table = tuple[str, Sequence[str], Sequence[Sequence[Any]]]
BARS = 30  # labels in the plot of F1
_SQUARE = 40  # labels of a matrix of weights
_NAMED = 8  # features in the row of a label


class Findings(NamedTuple):
    """Tables and figures of a task about a model on some data, besides its scores.

    Parameters
    ----------
    cases : ErrorExamples
        Errors, with what decided them.
    data : mapping
        Sizes of the data, in words.
    pairs : (labels, weights), optional
        How much the model likes a label (column) behind another (row).
    """

    cases: ErrorExamples = ErrorExamples()
    data: Mapping[str, Any] = {}
    pairs: tuple[Sequence[str], Sequence[Sequence[float]]] | None = None


class ReportData(NamedTuple):
    """As `Findings`, of which the cases are yet to be chosen."""

    judgement: Judgement
    data: Mapping[str, Any] = {}
    pairs: tuple[Sequence[str], Sequence[Sequence[float]]] | None = None

    def findings(self) -> Findings:
        """With the worst errors."""
        return Findings(self.judgement.worst(), self.data, self.pairs)


@dataclass(frozen=True)
class Evaluation:
    """Scores and errors of a model, as a page or in a notebook.

    Parameters
    ----------
    title, subtitle : str
        Heading, and the line under it.
    scores : mapping
        Names and values in words, with their bounds.
    tables : sequence of (title, heads, rows)
        A row for each label or other group; a column ``F1`` is drawn, too.
    facts : mapping
        What else is known of ``confusion_matrix``, ``confusion`` and ``calibration``, as
        ``evaluate --json`` says it, and the ``signature`` of scores and model.
    findings : Findings
        Errors and more.
    weights : mapping or sequence
        The heaviest features of the model: ``(feature, …, weight)``, by label if it is a mapping.
    origin : mapping
        Where model and data came from: seed, versions, hashes.

    Examples
    --------
    >>> facts = {"confusion_matrix": {"labels": ["a", "b"], "counts": [[3, 1], [0, 2]]}}
    >>> page = Evaluation("A model", "on data", {"accuracy": "83.33 %"}, facts=facts).page()
    >>> "83.33 %" in page.html() and "Confusion" in page.html()
    True
    """

    title: str
    subtitle: str
    scores: Mapping[str, object]
    tables: Sequence[Table] = ()
    facts: Mapping[str, Any] = field(default_factory=dict, repr=False)
    findings: Findings = field(default_factory=Findings, repr=False)
    weights: Any = field(default=(), repr=False)
    origin: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def page(self) -> Page:
        """The page, from scores to where they came from."""
        signatures = (self.facts.get("signature"), self.facts.get("model_signature"))
        page = Page(self.title, self.subtitle, signature="\n".join(filter(None, signatures)))
        page.section("Scores").keyvalues({k: v for k, v in self.scores.items() if v is not None})
        for name, heads, rows in self.tables:
            page.section(name)
            if "F1" in heads and 1 < len(rows) <= BARS:
                values = [float(row[heads.index("F1")]) for row in rows]
                plot = Plot(f"F1 by {heads[0]}", y_label="F1")
                page.plot(plot.bars([row[0] for row in rows], values))
            page.table(heads, rows)
        if self.facts.get("confusion_matrix") or self.facts.get("confusion"):
            add_confusion(page.section("Confusion"), self.facts)
        if self.findings.cases.wrong:
            page.section("Errors").cases(self.findings.cases)
        plots, words = calibration_plots({"": self.facts.get("calibration") or {}})
        if plots:
            page.section("Calibration").figures(plots, words)
        if self.weights or self.findings.pairs is not None:
            add_weights(page.section("What it weighs"), self.weights, self.findings.pairs)
        if self.findings.data:
            page.section("Data").keyvalues(self.findings.data)
        if self.origin:
            page.section("Origin").keyvalues(self.origin)
        return page

    def _repr_html_(self) -> str:
        from hopefear.report.notebook import evaluation_html

        return evaluation_html(self)


def add_confusion(page: Page, facts: Mapping[str, Any]) -> None:
    """Adds the confusions that ``facts`` of an evaluation hold."""
    matrix, pairs = facts.get("confusion_matrix"), facts.get("confusion")
    if matrix:
        page.matrix(
            matrix["labels"],
            matrix["counts"],
            "A row for every right answer, a column for every prediction; the darker, the larger "
            "the share of its row.",
        )
    if pairs:
        rows = [[pair["gold"], pair["predicted"], pair["count"]] for pair in pairs]
        page.table(["gold", "predicted", "times"], rows, "Commonest mistakes.")


def calibration_plots(
    models: Mapping[str, Mapping[str, Mapping[str, Any] | None]],
) -> tuple[list[Plot], list[str]]:
    """Plots accuracy by predicted probability, with the figures as sentences.

    Parameters
    ----------
    models : mapping
        From the name of a model, which may be empty where there is one, to its bins by kind.
    """
    plots, words = [], []
    for kind in dict.fromkeys(kind for kinds in models.values() for kind in kinds):
        plot = Plot(f"Probabilities of {kind}", "probability in percent", "right, in percent")
        plot.line([0.0, 100.0], [0.0, 100.0], "as it should be", dashed=True, look=7)
        sizes = []
        for look, (name, kinds) in enumerate(models.items()):
            bins = kinds.get(kind)
            if not bins:
                continue
            columns = (bins["confidence"], bins["accuracy"], bins["counts"])
            points = [(x, y) for x, y, n in zip(*columns, strict=True) if n]
            plot.line([x for x, _ in points], [y for _, y in points], name or kind, look=look)
            sizes.append(f"{name} {bins['ece']:.2f} %".lstrip())
        if sizes:
            plots.append(plot)
            words.append(
                "Of all answers with a probability of 80 %, 80 % should be right: above the dashed "
                "line a model is too modest, below it too sure. Off on average (expected "
                f"calibration error): {', '.join(sizes)}."
            )
    return plots, words


def add_weights(page: Page, weights: Any, pairs: Any) -> None:
    """The heaviest features, and the weights of pairs of labels."""
    if isinstance(weights, Mapping):
        rows = [
            [label, ", ".join(f"{name} {weight:+.3f}" for name, weight in features[:_NAMED])]
            for label, features in weights.items()
        ]
        page.table(["label", "features"], rows, "What speaks most for each label.", align="l")
    elif weights:
        heads = ["feature", "of", "weight"] if len(weights[0]) == 3 else ["feature", "weight"]
        page.table(heads, weights, "The heaviest features.")
    if pairs is not None and len(pairs[0]) <= _SQUARE:
        labels, table = pairs
        caption = "From the label of a row to that of a column: what a pair adds to the score."
        page.matrix(labels, table, caption)
