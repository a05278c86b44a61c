"""Section 5 of Gao, Xiao, Xu and He: a discriminative phrase model on lists of translations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hopefear.experiments.dptm.claims import Judge, judge
from hopefear.experiments.dptm.page import table_text, to_json, write_page
from hopefear.experiments.dptm.plan import FULL, QUICK, Plan, find_problem
from hopefear.experiments.dptm.runs import measure
from hopefear.experiments.frame import runs_in, telling, write_files


def run(
    data: Path | None,
    out: Path,
    progress: Callable[[str], None],
    quick: bool = False,
    plan: Plan | None = None,
) -> Path:
    """Measure, judge and write ``results.json`` and ``report.html`` into ``out``.

    Every run that ends is kept in ``out/runs``, so the same call goes on where it was broken off.

    Parameters
    ----------
    data, out, progress, quick
        As in :func:`hopefear.experiments.run_experiment`; quick uses generated lists.
    plan : Plan, optional
        How much to run; by default all of it, or a little if quick.
    """
    plan = plan or (QUICK if quick else FULL)
    problem = find_problem(data, quick, progress)
    made = measure(problem, plan, runs_in(out, quick), telling(progress))
    progress(" 95%  tests")
    judged = Judge(made, plan)
    verdicts = judge(judged)
    page = write_page(made, judged, verdicts, plan, quick)
    results = to_json(made, judged, verdicts, plan, quick)
    return write_files(out, page, results, table_text(made), progress)
