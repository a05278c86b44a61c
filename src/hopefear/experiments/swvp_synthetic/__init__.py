"""Table 1 of Dror and Reichart: SWVP against the perceptron on hidden Markov chains."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hopefear.experiments.frame import write_files
from hopefear.experiments.swvp_synthetic.claims import judge
from hopefear.experiments.swvp_synthetic.page import table_text, to_json, write_page
from hopefear.experiments.swvp_synthetic.plan import FULL, QUICK
from hopefear.experiments.swvp_synthetic.runs import measure_all


def run(data: Path | None, out: Path, progress: Callable[[str], None], quick: bool = False) -> Path:
    """Measure, judge and write ``results.json`` and ``report.html`` into ``out``.

    Parameters
    ----------
    data, out, progress, quick
        As in :func:`hopefear.experiments.run_experiment`; no corpora are needed.
    """
    plan = QUICK if quick else FULL
    progress("compiling, if this was not done before; then the first datasets")
    measured = measure_all(plan, progress)
    verdicts = [verdict for found in measured.values() for verdict in judge(found, plan)]
    page = write_page(measured, verdicts, plan, quick)
    results = to_json(measured, verdicts, plan, quick)
    return write_files(out, page, results, table_text(measured), progress)
