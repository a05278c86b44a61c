"""``hopefear demo``: the main job on built-in data, without any file."""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

from hopefear.cli.console import Console, check_output

USAGE = "[--out FILE.html]"
DESCRIPTION = """
Generate sparse problems with a known truth, train several learners on two and on six classes,
print how they did, and write a page with their curves, the sparsity of their weights, and the
mistakes of voted RDA against the bound of its theorem. Takes under a minute; kernels are
compiled on the first run.
"""
EXAMPLES = """
examples:
  hopefear demo
  hopefear demo --out /tmp/demo.html
"""
Wanted = tuple[tuple[str, str, dict[str, Any]], ...]
_BINARY: Wanted = (
    ("perceptron", "perceptron", {}),
    ("tg", "tg", {"gravity": 1e-5}),
    ("rda", "rda", {"l1": 1e-4}),
    ("vrda", "vrda", {"l1": 1e-4}),
    ("adagrad-rda", "adagrad-rda", {"l1": 1e-4}),
    ("arow", "arow", {}),
)
_CLASSES: Wanted = (
    ("perceptron", "perceptron", {}),
    ("vrda", "vrda", {"l1": 1e-5}),
    ("adagrad-rda", "adagrad-rda", {"l1": 1e-5}),
    ("pa", "pa", {"C": 0.1}),
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out",
        default="report.html",
        metavar="FILE.html",
        help="page to write (default: report.html)",
    )


def run(args: argparse.Namespace) -> int:
    check_output(args.out)
    from hopefear.cli.classify.study import COLUMNS, bounds_plot, page_section, study
    from hopefear.cli.compiling import announced
    from hopefear.data.generators import sparse_linear
    from hopefear.report import Page

    console, started = Console(args.quiet), time.perf_counter()
    page = Page("hopefear demo", "several learners on generated sparse problems")
    signatures = []
    with announced(console, "these learners") as compiling:
        for classes, wanted in ((2, _BINARY), (6, _CLASSES)):
            problem = sparse_linear(
                24_000, 10_000, per_row=(20, 50), true_weights=600, classes=classes, seed=7
            )
            first, rest = problem.split(20_000)
            data, test = first.dataset(), rest.dataset()
            title = "Two classes" if classes == 2 else f"{classes} classes"
            text = (
                f"{len(data):,} examples of 20 to 50 out of {data.n_features:,} features, of "
                "which 600 matter; 5 % of the labels are wrong, so no error below 5 % can be "
                "expected."
            )
            console.say(f"\n{title}: {text}")
            results = study(
                wanted, data, test, console, {"epochs": 3}, bounds=("vrda",) if classes == 2 else ()
            )
            console.say()
            console.table(list(COLUMNS), [r.row() for r in results])
            page_section(page, title, text, results)
            signatures += [r.trained.model.signature for r in results]
            for result in results:
                if any(event.get("bound") for event in result.events):
                    page.plot(
                        bounds_plot(result),
                        "Theorem 1 bounds the mistakes of voted RDA for "
                        "any comparator; here it is the average so far, at its best scale.",
                    )
    page.signature = "\n".join(signatures)
    page.write(args.out)
    took = time.perf_counter() - started
    compiled = f", {compiling.seconds:.0f} s of them compiling" if compiling.seconds > 1 else ""
    console.say(f"\n{took:.0f} s{compiled}. The report:")
    print(os.path.abspath(args.out))
    return 0
