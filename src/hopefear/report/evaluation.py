"""What a model got right and wrong, on one page: scores, confusion, calibration, errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hopefear.report.arcs import ArcDiagram
from hopefear.report.page import Page
from hopefear.report.plot import Plot

_BARS = 30  # labels in the plot of F1


def evaluation_page(
    title: str,
    subtitle: str,
    scores: Mapping[str, object],
    tables: Sequence[tuple[str, Sequence[str], Sequence[Sequence[Any]]]],
    facts: Mapping[str, Any],
) -> Page:
    """A page on how a model did.

    Parameters
    ----------
    title, subtitle : str
        Heading, and the line under it.
    scores : mapping
        Names and values in words, with their bounds.
    tables : sequence of (title, heads, rows)
        A row a label, or whatever else is told apart; a column ``F1`` is drawn, too.
    facts : mapping
        What else is known of ``confusion_matrix``, ``confusion``, ``calibration`` and
        ``costliest``, as ``evaluate --json`` says it, and the ``signature``.

    Examples
    --------
    >>> facts = {"confusion_matrix": {"labels": ["a", "b"], "counts": [[3, 1], [0, 2]]}}
    >>> page = evaluation_page("A model", "on data", {"accuracy": "83.33 %"}, [], facts)
    >>> "83.33 %" in page.html() and "Confusion" in page.html()
    True
    """
    signatures = (facts.get("signature"), facts.get("model_signature"))
    page = Page(title, subtitle, signature="\n".join(filter(None, signatures)))
    page.section("Scores").keyvalues({k: v for k, v in scores.items() if v is not None})
    for name, heads, rows in tables:
        page.section(name)
        if "F1" in heads and 1 < len(rows) <= _BARS:
            values = [float(row[heads.index("F1")]) for row in rows]
            page.plot(
                Plot(f"F1 by {heads[0]}", y_label="F1").bars([row[0] for row in rows], values)
            )
        page.table(heads, rows)
    _confusion(page, facts)
    _calibration(page, facts.get("calibration") or {})
    _costliest(page, facts.get("costliest") or ())
    return page


def _confusion(page: Page, facts: Mapping[str, Any]) -> None:
    matrix, pairs = facts.get("confusion_matrix"), facts.get("confusion")
    if not matrix and not pairs:
        return
    page.section("Confusion")
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


def _calibration(page: Page, kinds: Mapping[str, Mapping[str, Any] | None]) -> None:
    plots, words = [], []
    for name, bins in kinds.items():
        if not bins:
            continue
        points = [
            (sure, right)
            for sure, right, n in zip(
                bins["confidence"], bins["accuracy"], bins["counts"], strict=True
            )
            if n
        ]
        plot = Plot(f"Probabilities of {name}", "probability in percent", "right, in percent")
        plot.line([0.0, 100.0], [0.0, 100.0], "as it should be", dashed=True, look=1)
        plots.append(plot.line([x for x, _ in points], [y for _, y in points], name, look=0))
        words.append(f"Off by {bins['ece']:.2f} % on average (expected calibration error).")
    if plots:
        page.section("Calibration").text(
            "Of all answers with a probability of 80 %, 80 % should be right: above the dashed "
            "line a model is too modest, below it too sure."
        )
        page.figures(plots, words)


def _costliest(page: Page, errors: Sequence[Mapping[str, Any]]) -> None:
    if errors:
        page.section("The most costly errors")
        for error in errors:
            if "tree" in error:
                diagram = ArcDiagram(**error["tree"])
                words = (f"{key} {value}" for key, value in error.items() if key != "tree")
                page.tree(diagram, ", ".join(words))
        if "tree" in errors[0]:
            return
        heads = list(errors[0])
        page.table(heads, [[error[head] for head in heads] for error in errors], align="l")
