"""The slides' comparison of tuners: few and many features, by round, on lists of translations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hopefear.experiments.frame import runs_in, telling, write_files
from hopefear.experiments.tuning.claims import Judge, judge
from hopefear.experiments.tuning.page import table_text, to_json, write_page
from hopefear.experiments.tuning.plan import FULL, QUICK, Plan, find_sets
from hopefear.experiments.tuning.runs import measure


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
        As in :func:`hopefear.experiments.run_experiment`; quick tunes on a few made-up lists.
    plan : Plan, optional
        How much to run; by default all of it, or a little if quick.
    """
    plan = plan or (QUICK if quick else FULL)
    sets = find_sets(data, quick, lambda text: progress(f"  0%  {text}"))
    made = measure(sets, plan, runs_in(out, quick), telling(progress, 0.95))
    progress(" 95%  tests")
    judged = Judge(made, plan)
    verdicts = judge(judged)
    page = write_page(made, judged, verdicts, plan, quick)
    results = to_json(made, judged, verdicts, plan, quick)
    return write_files(out, page, results, table_text(made, plan), progress)
