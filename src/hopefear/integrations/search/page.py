"""The page of a search: its trials, the front, and which parameters mattered."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from hopefear.integrations.search.study import Finding, Search
from hopefear.report import Page, Plot
from hopefear.training.stopping import sign_of

_TITLES = {"nonzeros": "non-zero weights kept", "seconds": "seconds of learning"}


def heads(metric: str) -> list[str]:
    """Returns the heads of the table of trials."""
    return ["trial", "learner", "parameters", metric, "non-zeros", "seconds", "epochs", "ended"]


def row(finding: Finding) -> list[Any]:
    """Returns a trial as a row of that table.

    >>> row(Finding(3, "pa", {"C": 0.5}, "pruned", epochs=2))
    [3, 'pa', 'C=0.5', None, None, None, 2, 'pruned']
    """
    seconds = None if finding.seconds is None else round(finding.seconds, 3)
    ended = "default" if finding.defaults and finding.state == "complete" else finding.state
    return [
        finding.number,
        finding.learner,
        in_words(finding.params),
        None if finding.quality is None else f"{finding.quality:.3f}",
        finding.nonzeros,
        seconds,
        finding.epochs,
        ended,
    ]


def in_words(params: Mapping[str, Any]) -> str:
    """Returns parameters as they are typed.

    >>> in_words({"rate": "0.5x", "n": 5})
    'rate=0.5x n=5'
    """
    return " ".join(f"{name}={value}" for name, value in params.items())


def write_page(path: str, search: Search, study: Any, title: str, description: str) -> None:
    """Writes the page; one HTML file that needs nothing else."""
    findings, metric = search.findings(study), search.plan.metric
    signature = json.dumps(search.signature(), ensure_ascii=False, default=str)
    page = Page(title, description, signature=signature)
    page.section("Results").text(
        f"{len(findings)} trials have ended. The best by {search.objectives[0]} is trial "
        f"{search.best(study).number}; `default` marks the parameters that a recipe has."
    )
    front = search.front(study)
    page.table(heads(metric), [row(finding) for finding in front], "Trials that no other beats.")
    page.figures(_plots(search, findings, front))
    shares = importances(search, study)
    if shares:
        page.section("Which parameters mattered").text(
            "Shares of what tells the better trials of a learner from all of them (PED-ANOVA of "
            "the score); few trials say little."
        )
        page.table(
            ["learner", "parameter", "share"],
            [[label, name, f"{share:.2f}"] for label, name, share in shares],
        )
    page.section("All trials").table(heads(metric), [row(finding) for finding in findings])
    page.write(path)


def _plots(search: Search, findings: Sequence[Finding], front: Sequence[Finding]) -> list[Plot]:
    """Returns quality against sparsity and time, and the best score so far."""
    labels = [candidate.label for candidate in search.candidates]
    complete = [finding for finding in findings if finding.state == "complete"]
    plots = []
    for name, title in _TITLES.items():
        plot = Plot(f"{search.plan.metric} against {name}", title, search.plan.metric, "log")
        for look, label in enumerate(labels):
            of_learner = [finding for finding in complete if finding.learner == label]
            if of_learner:
                x = [max(getattr(finding, name), 1e-6) for finding in of_learner]
                plot.points(x, [finding.quality or 0.0 for finding in of_learner], label, look=look)
        if len(search.objectives) > 1:
            ends = sorted(front, key=lambda finding: getattr(finding, name))
            x = [max(getattr(finding, name), 1e-6) for finding in ends]
            plot.line(x, [f.quality or 0.0 for f in ends], "front", look=len(labels))
        plots.append(plot)
    rising = Plot("The best so far", "trial", search.plan.metric)
    better = max if sign_of(search.plan.metric) > 0 else min
    best = list(accumulate((f.quality or 0.0 for f in complete), better))
    rising.step([finding.number for finding in complete], best, "best")
    return [*plots, rising]


def importances(search: Search, study: Any) -> list[tuple[str, str, float]]:
    """Returns (learner, parameter, share), largest first; only where there are trials enough."""
    import optuna

    complete = [f for f in search.findings(study) if f.state == "complete"]
    sign = -sign_of(search.plan.metric)
    losses = {finding.number: sign * (finding.quality or 0.0) for finding in complete}
    shares = []
    for candidate in search.candidates:
        if sum(f.learner == candidate.label for f in complete) < 8 or len(candidate.space) < 2:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            table = optuna.importance.get_param_importances(
                study,
                evaluator=optuna.importance.PedAnovaImportanceEvaluator(),
                params=[f"{candidate.label} {name}" for name in candidate.space],
                target=lambda trial: losses[trial.number],  # lower is better
            )
        names = {f"{candidate.label} {name}": name for name in candidate.space}
        shares += [(candidate.label, names[key], float(share)) for key, share in table.items()]
    return shares
