"""The speed goals: our learners and every rival in one run, taking turns; ratios decide.

    python bench/classification.py --data imdb
    python bench/classification.py --data synth --rivals sklearn limits --repeats 5

A ratio above its goal passes. Times are CPU seconds of one thread, minima; see README.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import common
import hopefear_online as ours
import limits
import sklearn_sgd
import vowpal

OURS = ["rda", "adagrad-rda", "perceptron", "vrda"]
SKLEARN = ["log-l1", "log-l2", "perceptron-average"]

# (what, our learner, rival, least ratio of the rival's seconds per pass to ours)
GOALS = [
    ("RDA log L1 / sklearn SGD log L1", "rda", "sklearn log-l1", 2.5),
    ("RDA log L1 / sklearn SGD log L2", "rda", "sklearn log-l2", 1.0),
    ("RDA / VW cached pass", "rda", "vw logistic", 6.0),
    ("AdaGrad-RDA / VW cached pass", "adagrad-rda", "vw logistic", 4.0),
    ("averaged perceptron / sklearn's", "perceptron", "sklearn perceptron-average", 1.2),
    ("voted RDA, exact average / sklearn's", "vrda", "sklearn perceptron-average", 1.2),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", nargs="+", default=["imdb"], metavar="FILE")
    parser.add_argument(
        "--rivals",
        nargs="+",
        default=["sklearn", "vw", "limits"],
        choices=["sklearn", "vw", "limits"],
    )
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--passes", type=int, default=6)
    chosen = parser.parse_args()
    problem = common.load(chosen.data)
    data = ours.dataset(problem)
    with tempfile.TemporaryDirectory() as folder:
        tasks = ours.tasks(data, OURS, chosen.passes) | ours.votes(problem, data)
        if "sklearn" in chosen.rivals:
            tasks |= sklearn_sgd.tasks(problem, SKLEARN, chosen.passes)
        if "limits" in chosen.rivals:
            tasks |= limits.tasks(problem)
        if "vw" in chosen.rivals:
            files = vowpal.prepare(problem, Path(folder))
            tasks |= vowpal.tasks(files, ["logistic"], chosen.passes)
        times = common.interleave(tasks, chosen.repeats)
    names = sorted({name.rpartition(" x")[0] for name in tasks if " x" in name})
    seconds = {name: common.per_pass(times, name, chosen.passes)["seconds_pass"] for name in names}
    least = common.best(times)
    ratios = [
        {"what": what, "ratio": seconds[rival] / seconds[f"ours {mine}"], "goal": goal}
        for what, mine, rival, goal in GOALS
        if rival in seconds
    ]
    ratios.append(
        {
            "what": "votes / NumPy's sums of their lines",
            "ratio": least["votes numpy"] / least["votes ours"],
            "goal": 1.0,
        }
    )
    if "limits" in chosen.rivals:
        bound = limits.summary(problem, least)
        for kind in ("gather+scatter", "rows"):
            ratios.append(
                {
                    "what": f"RDA as a fraction of the {kind} limit",
                    "goal": 0.7,
                    "ratio": bound[kind]["seconds_pass"] / seconds["ours rda"],
                }
            )
    for row in ratios:
        mark = "ok  " if row["ratio"] >= row["goal"] else "MISS"
        print(
            f"{mark} {row['what']:48s} {row['ratio']:6.2f}  (goal {row['goal']})", file=sys.stderr
        )
    common.report(
        "all",
        "hopefear",
        problem,
        {"seconds_pass": seconds},
        ratios=ratios,
        repeats=chosen.repeats,
        passes=chosen.passes,
    )
    print(json.dumps({k: round(v, 5) for k, v in least.items()}), file=sys.stderr)


if __name__ == "__main__":
    main()
