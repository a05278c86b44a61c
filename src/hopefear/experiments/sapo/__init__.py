"""Figures 1 to 4 of Sun, Ma, Zhang and Ren: SAPO against CRF, perceptron and MIRA."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hopefear.experiments.frame import KeptRuns, write_files
from hopefear.experiments.sapo.claims import judge
from hopefear.experiments.sapo.page import table_text, to_json, write_page
from hopefear.experiments.sapo.plan import FULL, QUICK, Plan, find_problems
from hopefear.experiments.sapo.runs import Measured, measure


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
        As in :func:`hopefear.experiments.run_experiment`.
    plan : Plan, optional
        How much to run: tasks, passes, seeds, grids; by default all of it, or a little if quick.
    """
    plan = plan or (QUICK if quick else FULL)
    progress("reading the data; then compiling, if this was not done before")
    readers, note = find_problems(data, plan, quick)
    kept = KeptRuns(out / "runs")
    whole, done = sum(r.task.cost for r in readers), 0.0
    measured: list[Measured] = []
    for reader in readers:
        share = reader.task.cost / whole

        def tell(part: float, text: str, done: float = done, share: float = share) -> None:
            progress(f"{done + share * part:4.0%}  {text}")

        measured.append(measure(reader.read(), plan, kept, tell))
        done += share
    progress(" 99%  tests")
    verdicts = [verdict for made in measured for verdict in judge(made, plan)]
    page = write_page(measured, verdicts, plan, note)
    results = to_json(measured, verdicts, plan, quick, note)
    return write_files(out, page, results, table_text(measured), progress)
