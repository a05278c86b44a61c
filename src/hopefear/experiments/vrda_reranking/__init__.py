"""Section 4 of Gao, Xiao, Xu and He: voted dual averaging on lists of parses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hopefear.experiments.sapo.kept_runs import KeptRuns
from hopefear.experiments.vrda_reranking.measuring import measure
from hopefear.experiments.vrda_reranking.page import write_page
from hopefear.experiments.vrda_reranking.plan import FULL, QUICK, Plan
from hopefear.experiments.vrda_reranking.problems import find_problem
from hopefear.experiments.vrda_reranking.results import table_text, to_json
from hopefear.experiments.vrda_reranking.verdicts import Judge, judge
from hopefear.storage import write_atomically


def run(
    data: Path | None,
    out: Path,
    progress: Callable[[str], None],
    quick: bool = False,
    plan: Plan | None = None,
) -> Path:
    """Measure, judge and write ``results.json`` and ``report.html`` into ``out``.

    The features of all lists are kept in ``out/lists.bin`` and every run that ends in
    ``out/runs``, so the same call goes on where it was broken off.

    Parameters
    ----------
    data, out, progress, quick
        As in :func:`hopefear.experiments.run_experiment`; quick reads a few lists only.
    plan : Plan, optional
        How much to run: grids, seeds, levels, folds; by default all of it, or a little if quick.
    """
    plan = plan or (QUICK if quick else FULL)
    problem = find_problem(data, out, quick, progress)
    kept = KeptRuns(out / ("runs-quick" if quick else "runs"))
    made = measure(problem, plan, kept, lambda done, text: progress(f"{done:4.0%}  {text}"))
    progress(" 95%  tests")
    judged = Judge(made, plan)
    verdicts = judge(judged)
    page = out / "report.html"
    write_page(made, judged, verdicts, plan, quick).write(page)
    write_atomically(out / "results.json", to_json(made, judged, verdicts, plan, quick))
    progress(table_text(made))
    return page
