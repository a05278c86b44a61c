"""``hopefear evaluate``: scores of a model on data with known answers."""

from __future__ import annotations

import argparse
import hashlib
import os
import time
from collections.abc import Mapping
from typing import Any

from hopefear.cli import options
from hopefear.cli.console import Console, check_output, print_json
from hopefear.cli.surface import Surface, opened, use_options
from hopefear.cli.tune import options as own

USAGE = (
    "--model PATH --data FILE [--report FILE.html] [--json] | --weights FILE --nbest FILE... "
    "--refs FILE... [--json]"
)
DESCRIPTION = """
{tasks}

With --report the same goes to an HTML page, with a plot of every label, calibration, the heaviest
features, where all came from, and the errors, to be chosen by kind, label and text: how it should
be and how it is, the n best with their probabilities, and the features that decided.

Score weights, as `hopefear tune` writes them, on N-best lists with references: the metric of the
candidates that they put first, equal to sacreBLEU's, beside the decoder's 1-best, the sentence
oracles and the best choice for all lists together; --against tests them against other weights.
"""
_ERRORS = 20  # in --json
_HEAVIEST = 20  # features of a label
EXAMPLES = """
examples:
{tasks}
  hopefear evaluate --weights tuned.txt --nbest test.nbest.gz --refs test.en --against old.txt
"""


def configure(parser: argparse.ArgumentParser) -> None:
    data = parser.add_argument_group("data")
    options.named(data, "--model", "model file", "PATH")
    options.named(
        data,
        "--data",
        "labelled lines; a class the model does not know is an error, a tag a mistake; of a "
        "reranker, lists",
    )
    options.any_format(data, "evaluate")
    output = parser.add_argument_group("output")
    options.named(output, "--report", "page to write: scores, confusion, errors", "FILE.html")
    options.json_option(output)
    use_options("evaluate", parser, data=data, output=output)
    options.on_error(data)
    weights = parser.add_argument_group("weights")
    options.weights(weights)
    own.lists(weights)
    own.metric(weights)
    own.absent(weights)
    options.named(weights, "--against", "other weights, for a paired test on the same lists")


def run(args: argparse.Namespace) -> int:
    needed = {"model": ("data",), "weights": ("nbest",)}
    if options.by_weights(args, shared=("on_error", "refs"), needed=needed):
        return _by_weights(args)
    options.read_once(args, "model", "data")
    if args.report is not None:
        check_output(args.report, (args.model, args.data))
    from hopefear.cli.console import tell_skipped
    from hopefear.cli.progress import announced
    from hopefear.data.files import ReadReport

    console, report, started = Console(args.quiet), ReadReport(), time.perf_counter()
    with announced(console, "prediction"):
        surface, model = opened(args, "evaluate")
        scores = surface.use.evaluate(args, model, console, report)
    tell_skipped(report, console)
    scores |= {
        "skipped": report.skipped,
        "nnz": model.nnz,
        "model_signature": model.signature,
        "seconds": round(time.perf_counter() - started, 3),
    }
    findings = scores.pop("page", None)
    if args.report is not None:
        _write_page(args, surface, model, scores, findings)
        scores["costliest"] = [case.to_dict() for case in findings.cases.cases[:_ERRORS]]
    if args.json:
        print_json(scores)
    else:
        surface.use.show_scores(console, scores)
    if args.report is not None:
        console.say(f"\nwrote {args.report}")
    return 0


def _write_page(
    args: argparse.Namespace, surface: Surface, model: Any, scores: Mapping[str, Any], findings: Any
) -> None:
    from hopefear.report import Evaluation

    words, tables = surface.use.findings(scores)
    evaluation = Evaluation(
        f"{os.path.basename(args.model)} evaluated",
        f"{os.path.basename(args.data)}, {model.about.get('learner') or 'model'}",
        {**words, "counted by": scores.get("signature")},
        tables,
        scores,
        findings,
        surface.use.model_facts(model, _HEAVIEST).get("top", ()),
        _origin(args, model),
    )
    evaluation.page().write(args.report)


def _origin(args: argparse.Namespace, model: Any) -> dict[str, Any]:
    """What it takes to get the same numbers again."""
    import platform

    import numpy

    from hopefear import __version__
    from hopefear.core.kernel_cache import version

    about, versions = model.about, {"hopefear": __version__, "python": platform.python_version()}
    versions |= {"numpy": numpy.__version__, "numba": version("numba")}
    trained = about.get("data", {})
    return {
        "model": _hashed(args.model),
        "data": _hashed(args.data),
        "trained on": f"{trained.get('source')}, {trained.get('digest')}" if trained else None,
        "learner": about.get("learner"),
        "given": dict(about.get("given") or {}) or None,
        "seed": about.get("seed"),
        "versions": versions,
        "signature": model.signature,
    }


def _hashed(path: str) -> str:
    """A file by name and content."""
    if not os.path.isfile(path):
        return path
    with open(path, "rb") as file:
        return (
            f"{os.path.basename(path)}, SHA-256 {hashlib.file_digest(file, 'sha256').hexdigest()}"
        )


def _by_weights(args: argparse.Namespace) -> int:
    if args.refs is None and not own.own_references(args.nbest):
        args.usage_error("--weights needs --refs FILE")
    options.read_once(args, "weights", "against", "source", "nbest", "refs")
    from hopefear.cli.progress import announced
    from hopefear.cli.tune.weights import run_evaluate

    console = Console(args.quiet)
    with announced(console, "reading and scoring"):
        run_evaluate(args, console)
    return 0
