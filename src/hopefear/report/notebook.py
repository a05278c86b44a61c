"""HTML and text of models, explanations, evaluations and answers for notebooks and terminals."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from hopefear.report.examples import Rival, nbest_html, reason_html, view_html, view_text
from hopefear.report.page import table, value_text
from hopefear.report.theme import escape

_HEAVIEST = 5


class Shown:
    """Something to look at: HTML in a notebook, text (in colours on a terminal) elsewhere.

    Parameters
    ----------
    view : View, ArcDiagram or str
        What is shown; several, below each other, where it is a list.
    """

    def __init__(self, *views: Any) -> None:
        self.views = views

    def __repr__(self) -> str:
        coloured = sys.stdout.isatty()
        return "\n".join(view_text(view, coloured) for view in self.views)

    def _repr_html_(self) -> str:
        return styled("".join(view_html(view, f"s{k}") for k, view in enumerate(self.views)))


def styled(html: str) -> str:
    """HTML with the style of its pieces; it needs no page around it."""
    css = files("hopefear.report").joinpath("examples.css").read_text(encoding="utf-8")
    return f'<div class="hf-view"><style>{css}</style>{html}</div>'


def explanation_html(reason: Any) -> str:
    """An explanation: what fired, and how much it added."""
    return styled(reason_html(reason))


def nbest_list_html(outputs: Sequence[Any]) -> str:
    """The n best outputs of an example, each a tuple that begins with the output.

    >>> from collections import namedtuple
    >>> Output = namedtuple("Output", "labels probability")
    >>> "75.0 %" in nbest_list_html([Output(["A", "B"], 0.75)])
    True
    """
    rivals = []
    for output in outputs:
        best = output[0] if isinstance(output[0], list | tuple) else [output[0]]
        rivals.append(Rival(" ".join(map(value_text, best)), output.probability))
    return styled(nbest_html(rivals))


def model_html(model: Any) -> str:
    """A model: what it is, and what it weighs."""
    metadata = model.about
    summary = {
        "learner": metadata.get("learner"),
        "labels": ", ".join(map(str, getattr(model, "classes", ()))) or None,
        "features": model.features.size,
        "weights other than 0": model.nnz,
        "trained on": metadata.get("data", {}).get("source"),
        "signature": model.signature,
    }
    top: Any = None
    if model.predictor.linear and hasattr(model, "top"):
        top = model.top(_HEAVIEST)
    weights = ""
    if isinstance(top, Mapping):
        rows = [[k, ", ".join(f"{n} {w:+.3f}" for n, w in pairs)] for k, pairs in top.items()]
        weights = _folded("What it weighs", table(["label", "features"], rows, align="l"))
    elif top:
        weights = _folded("What it weighs", table(["feature", "weight"], top))
    return styled(f"<p><b>{escape(type(model).__name__)}</b></p>{_pairs(summary)}{weights}")


def estimator_html(estimator: Any) -> str:
    """An estimator: its parameters, and what came of them where it is fitted."""
    defaults = type(estimator)().get_params() if _has_defaults(type(estimator)) else {}
    params = estimator.get_params()
    rows = [
        [name, value] for name, value in params.items() if repr(defaults.get(name)) != repr(value)
    ]
    html = f"<p><b>{escape(type(estimator).__name__)}</b></p>"
    html += _pairs({"learner": params.get("learner"), **dict(rows)})
    if not estimator.__sklearn_is_fitted__():
        return styled(html + "<p>not fitted yet</p>")
    html += model_html(estimator.model_)
    history = [event for event in getattr(estimator, "history_", ()) if "dev" in event]
    if history:
        names = list(history[-1]["dev"])
        lines = [[event["epoch"], *(event["dev"].get(name) for name in names)] for event in history]
        html += _folded("Scores of held-out data", table(["epoch", *names], lines))
    return styled(html)


def evaluation_html(evaluation: Any) -> str:
    """An evaluation: its scores and tables, without the page around them."""
    html = f"<p><b>{escape(evaluation.title)}</b>, {escape(evaluation.subtitle)}</p>"
    html += _pairs(evaluation.scores)
    for name, heads, rows in evaluation.tables:
        html += _folded(name, table(heads, rows))
    return styled(html)


def _pairs(table_rows: Mapping[str, Any]) -> str:
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(value_text(value))}</td></tr>"
        for name, value in table_rows.items()
        if value is not None
    )
    return f'<table class="facts">{rows}</table>'


def _folded(title: str, html: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{html}</details>"


def _has_defaults(kind: type) -> bool:
    try:
        kind()
    except TypeError:
        return False
    return True
