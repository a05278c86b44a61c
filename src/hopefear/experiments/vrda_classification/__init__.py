"""Table 1 and Figures 1 to 5 of Xu, Gao, Xiao and Regan, on text classification."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hopefear.experiments.vrda_classification.claims import judge, judge_bound
from hopefear.experiments.vrda_classification.page import to_json, write_page
from hopefear.experiments.vrda_classification.plan import FULL, QUICK, find_problems
from hopefear.experiments.vrda_classification.runs import bound_curves, measure
from hopefear.storage import write_atomically


def run(data: Path | None, out: Path, progress: Callable[[str], None], quick: bool = False) -> Path:
    """Measure, judge and write ``results.json`` and ``report.html`` into ``out``.

    Parameters
    ----------
    data, out, progress, quick
        As in :func:`hopefear.experiments.run_experiment`.
    """
    plan = QUICK if quick else FULL
    progress("reading the data")
    found, note = find_problems(data, quick)
    measured = []
    for n, problem in enumerate(found):

        def tell(done: float, text: str, n: int = n) -> None:
            progress(f"{(n + done) / len(found):4.0%}  {text}")

        measured.append(measure(problem, plan, tell))
    progress(" 99%  bounds and tests")
    curves = bound_curves(plan)
    verdicts = [v for made in measured for v in judge(made, plan)] + [judge_bound(curves)]
    write_atomically(out / "results.json", to_json(measured, curves, verdicts, plan, quick, note))
    page = out / "report.html"
    write_page(measured, curves, verdicts, plan, note).write(page)
    return page
