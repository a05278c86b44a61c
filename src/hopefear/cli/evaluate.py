"""``hopefear evaluate``: scores of a model on data with known answers."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hopefear.cli import options
from hopefear.cli.console import Console, check_output, print_json, scored
from hopefear.cli.origin import hashed, versions
from hopefear.cli.surface import Score, Surface, against_best, opened, use_options
from hopefear.cli.tune import options as own
from hopefear.core.progress import stage
from hopefear.errors import HopefearError

if TYPE_CHECKING:
    from hopefear.report import Evaluation, Findings
    from hopefear.report.evaluation import ReportData

USAGE = (
    "--model PATH... --data FILE [--report FILE.html] [--json] | --weights FILE --nbest FILE... "
    "--refs FILE... [--json]"
)
DESCRIPTION = """
{tasks}

With --report the same goes to an HTML page, with a plot of every label, calibration, the heaviest
features, where all came from, and the errors, to be chosen by kind, label and text: how it should
be and how it is, the n best with their probabilities, and the features that decided. Several
models of a task stand side by side: scores and how they differ from the best, with a paired test,
every label, and the examples that one got right and another wrong.

Score weights, as `hopefear tune` writes them, on N-best lists with references: the metric of the
candidates that they put first, equal to sacreBLEU's, beside the decoder's 1-best, the sentence
oracles and the best choice for all lists together; --against tests them against other weights.
"""
_ERRORS = 20  # in --json
_HEAVIEST = 20  # features of a label
EXAMPLES = """
examples:
{tasks}
  hopefear evaluate --model crf.model sapo.model --data test.txt --report both.html
  hopefear evaluate --weights tuned.txt --nbest test.nbest.gz --refs test.en --against old.txt
"""


def configure(parser: argparse.ArgumentParser) -> None:
    data = parser.add_argument_group("data")
    options.named(data, "--model", "model file, or several to compare", "PATH", nargs="+")
    options.named(
        data,
        "--data",
        "labelled lines; a class or a tag that the model does not know is a mistake; of a "
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
        check_output(args.report, (*args.model, args.data))
    if len(args.model) > 1:
        return _several(args)
    console = Console(args.quiet)
    one = _judged(args, args.model[0], console)
    scores = one.scores
    if args.report is not None:
        with stage("errors for the page"):
            evaluation = one.evaluation(f"{os.path.basename(one.path)} evaluated", args)
            evaluation.page().write(args.report)
        scores["costliest"] = [c.to_dict() for c in evaluation.findings.cases.cases[:_ERRORS]]
    if args.json:
        print_json(scores)
    else:
        one.surface.show_scores(console, scores)
    if args.report is not None:
        console.say(f"\nwrote {args.report}")
    return 0


class _Judged(NamedTuple):
    """A model, and how it did."""

    path: str
    surface: Surface
    model: Any
    scores: dict[str, Any]
    sample: Any  # a Sample, of tasks whose models can be compared
    evidence: ReportData | None  # of tasks that show errors, where a page is wanted

    def evaluation(
        self, title: str, args: argparse.Namespace, findings: Findings | None = None
    ) -> Evaluation:
        """Everything that a page shows of it; its worst errors unless there are findings."""
        from hopefear.report import Evaluation, Findings

        if findings is None:
            findings = Findings() if self.evidence is None else self.evidence.findings()
        words, tables = self.surface.findings(self.scores)
        return Evaluation(
            title,
            f"{os.path.basename(args.data)}, {self.model.about.get('learner') or 'model'}",
            {**words, "counted by": self.scores.get("signature")},
            tables,
            self.scores,
            findings,
            self.surface.model_facts(self.model, _HEAVIEST).get("top", ()),
            _origin(self.path, args.data, self.model),
        )


def _judged(
    args: argparse.Namespace, path: str, console: Console, first: _Judged | None = None
) -> _Judged:
    """Load a model and score it; it must be of the task of the first."""
    from hopefear.cli.console import tell_skipped
    from hopefear.cli.progress import announced
    from hopefear.data.files import ReadReport

    report, started = ReadReport(), time.perf_counter()
    own = argparse.Namespace(**{**vars(args), "model": path})
    with announced(console, "prediction"):
        surface, model = opened(own, "evaluate")
        if first is not None and model.task != first.model.task:
            raise HopefearError(
                f"{first.path} is a model of the task {first.model.task} and {path} one of "
                f"{model.task}; give models of one task"
            )
        scores = surface.evaluate(own, model, console, report)
    tell_skipped(report, console)
    scores |= {
        "skipped": report.skipped,
        "nnz": model.nnz,
        "model_signature": model.signature,
        "seconds": round(time.perf_counter() - started, 3),
    }
    sample, evidence = scores.pop("sample", None), scores.pop("page", None)
    return _Judged(path, surface, model, scores, sample, evidence)


def _several(args: argparse.Namespace) -> int:
    """Models side by side."""
    if args.data == "-":
        args.usage_error("--data - can be read once, and several models read it: give a file")
    if args.proba and args.report is None and not args.json:
        args.usage_error("--proba of several models goes to --report or --json")
    if args.conlleval:
        args.usage_error("--conlleval is of one model: leave out the others")
    console = Console(args.quiet)
    names, models = _names(args.model), list[_Judged]()
    for name, path in zip(names, args.model, strict=True):
        one = _judged(args, path, Console(quiet=True), models[0] if models else None)
        _check_pair(models[0] if models else one, one, args.data)
        models.append(one)
        score = one.sample.score
        console.say(
            f"{name}: {score.title} {scored(score.name, one.scores[score.name])}{score.unit}"
        )
    tests = against_best([one.sample for one in models])
    score = models[0].sample.score
    result: dict[str, Any] = {
        "data": args.data,
        "task": models[0].model.task,
        "score": score.name,
        "models": [
            {
                "model": one.path,
                "name": name,
                **one.scores,
                "p_value": None if test is None else test["p_value"],
                "against_best": test and {k: test[k] for k in ("difference", "low", "high")},
            }
            for name, one, test in zip(names, models, tests, strict=True)
        ],
    }
    if args.report is not None:
        with stage("differences for the page"):
            result["differences"] = _write_comparison(args, names, models, tests)
    if args.json:
        print_json(result)
    else:
        heads = ["model", score.title, "difference to the best", "95 % interval", "p", "non-zeros"]
        rows = [_row(*each, score) for each in zip(names, models, tests, strict=True)]
        console.say()
        console.table(heads, rows, {score.title: "max" if score.higher else "min"})
        console.say(f"\n{models[0].scores.get('signature', '')}")
    if args.report is not None:
        console.say(f"\nwrote {args.report}")
    return 0


def _row(name: str, one: _Judged, test: Mapping[str, float] | None, score: Score) -> list[Any]:
    row: list[Any] = [name, scored(score.name, one.scores[score.name])]
    row += (
        ["best", None, None]
        if test is None
        else [
            f"{test['difference']:+.2f}",
            f"{test['low']:+.2f} to {test['high']:+.2f}",
            f"{test['p_value']:.4f}",
        ]
    )
    return [*row, f"{one.scores['nnz']:,}"]


def _check_pair(first: _Judged, other: _Judged, data: str) -> None:
    """Models can be told apart by examples only where these are the same."""
    if first.sample is None or other.sample is None:
        raise HopefearError(
            f"models of the task {first.model.task} tell no counts of single examples, which tests "
            "of several need; evaluate them one by one"
        )
    if first.sample.score != other.sample.score:
        raise HopefearError(
            f"{first.path} is judged by {first.sample.score.title} and {other.path} by "
            f"{other.sample.score.title}; give models that are trained for the same"
        )
    if len(first.sample.rows) != len(other.sample.rows):
        raise HopefearError(
            f"{data} has {len(first.sample.rows):,} examples for {first.path} and "
            f"{len(other.sample.rows):,} for {other.path}: bad lines are not the same; mend them"
        )


def _names(paths: Sequence[str]) -> list[str]:
    """Short names that tell files apart.

    >>> _names(["runs/a.model", "runs/b.model"]), _names(["x/a.model", "y/a.model"])
    (['a', 'b'], ['x/a', 'y/a'])
    >>> _names(["a.model", "a.model"])
    ['a #1', 'a #2']
    """
    stems = [os.path.splitext(path)[0] for path in paths]
    for parts in (1, 2):
        names = ["/".join(stem.replace(os.sep, "/").split("/")[-parts:]) for stem in stems]
        if len({*names}) == len(names):
            return names
    return [name if names.count(name) == 1 else f"{name} #{k + 1}" for k, name in enumerate(names)]


def _write_comparison(
    args: argparse.Namespace, names: Sequence[str], models: Sequence[_Judged], tests: Sequence[Any]
) -> list[dict[str, Any]]:
    """Write the page of several models; the examples on which they differ most."""
    from hopefear.report import Findings, ModelComparison, disagreements
    from hopefear.report.error_examples import Disagreements

    score = models[0].sample.score
    evaluations, judgements = {}, {}
    for name, one in zip(names, models, strict=True):
        findings = Findings()
        if one.evidence is not None:
            findings = Findings(data=one.evidence.data, pairs=one.evidence.pairs)
            judgements[name] = one.evidence.judgement
        evaluations[name] = one.evaluation(name, args, findings)
    shared = disagreements(judgements) if len(judgements) == len(models) else Disagreements()
    comparison = ModelComparison(
        f"{len(models)} models compared",
        f"{os.path.basename(args.data)}: {', '.join(names)}",
        evaluations,
        score.name,
        score.title,
        score.higher,
        dict(zip(names, tests, strict=True)),
        shared,
    )
    comparison.page().write(args.report)
    return [contest.to_dict() for contest in shared.cases[:_ERRORS]]


def _origin(path: str, data: str, model: Any) -> dict[str, Any]:
    """What it takes to get the same numbers again."""
    about = model.about
    trained = about.get("data", {})
    return {
        "model": hashed(path),
        "data": hashed(data),
        "trained on": f"{trained.get('source')}, {trained.get('digest')}" if trained else None,
        "learner": about.get("learner"),
        "given": dict(about.get("given") or {}) or None,
        "seed": about.get("seed"),
        "versions": versions(),
        "signature": model.signature,
    }


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
