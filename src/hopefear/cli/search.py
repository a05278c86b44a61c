"""``hopefear search``: good parameters of learners, by trial, as a file that train takes."""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hopefear.cli import options, shards
from hopefear.cli.config import TRIAL, config_text
from hopefear.cli.console import Console, check_output, print_json, scored
from hopefear.cli.guard import put
from hopefear.cli.surface import Surface, surface_of
from hopefear.cli.train import held_out, read_train
from hopefear.core.progress import stage
from hopefear.errors import HopefearError
from hopefear.tasks import TASKS, recipe

USAGE = (
    "TASK --train FILE (--dev FILE | --folds K) [--learner NAME,…] --trials N [--study FILE] "
    "--out FILE.toml [--report FILE.html] [OPTIONS]"
)
DESCRIPTION = """
Try parameters of one or several learners, and write the best as a file that `hopefear train
--config` takes. Every learner has a space around its defaults; these are tried first, then what
Optuna draws, near what was good. A trial is scored after every pass on held-out data (--dev), or
on each of K parts of the training data in turn (--folds), and is given up where it falls behind.
With --study the trials go to a file: an interrupted search goes on from there, and so does one
that is to try more. The same seed gives the same trials, unless several run at once (--jobs,
--cluster). Test data has no place here.

Needs Optuna: pip install 'hopefear[search]'.
"""
EXAMPLES = """
examples:
  hopefear search tag --train train.txt --dev dev.txt --learner sapo,adagrad-rda --trials 20 \\
      --out best.toml
  hopefear train tag --config best.toml --model best.model
  hopefear search classify --train reviews.tsv --folds 5 --learner adagrad-rda --trials 50 \\
      --objective quality,nonzeros --study reviews.jsonl --jobs 4 --out best.toml \\
      --report search.html
  hopefear search parse --train train.conllu --dev dev.conllu --learner mira --trials 10 \\
      --space C=0.001..1 --out best.toml
"""
_OBJECTIVES = ("quality", "nonzeros", "seconds")


def configure(parser: argparse.ArgumentParser, surface: Surface | None) -> None:
    """All options are those of a task."""
    if surface is None:
        return
    data = options.data_files(parser, "search")
    data.add_argument(
        "--folds",
        type=options.at_least(2),
        metavar="K",
        help="in place of --dev: score on each of K parts of --train, learned from the others",
    )
    surface.data_options(data, "search")
    output = parser.add_argument_group("output")
    options.named(
        output,
        "--out",
        "file for the best; --config FILE.toml, of a file that is not there yet, says the same",
        "FILE.toml",
        required=True,
    )
    options.named(output, "--report", "page to write, with all trials", "FILE.html")
    options.json_option(output)
    _search_options(parser.add_argument_group("search"))
    options.learning(parser, surface, "search", lambda group: _learners(group, surface))
    surface.feature_options(parser, "search")
    for action in parser._actions:
        if action.dest == "jobs":  # elsewhere threads of one training
            action.help = "trials side by side (default: 1)"


def _search_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--trials",
        type=options.at_least(1),
        required=True,
        metavar="N",
        help="how many in all, with those of --study",
    )
    group.add_argument(
        "--seconds",
        type=options.number,
        metavar="S",
        help="stop after this time, even if fewer were tried",
    )
    group.add_argument(
        "--objective",
        type=_objectives,
        default=_OBJECTIVES[:1],
        metavar="NAME,…",
        help="what is sought: quality (the score), nonzeros and seconds (of learning), fewer of "
        "either; with several all that no other trial beats are written (default: quality)",
    )
    group.add_argument(
        "--space",
        type=_space,
        action="append",
        default=[],
        metavar="KEY=A..B",
        help="try these values of a parameter: numbers between A and B, multiples of an automatic "
        "rate (0.1x..10x), or words (last|averaged); may be repeated",
    )
    options.named(
        group, "--study", "journal of the trials, JSON lines; gone on with if it is there", "PATH"
    )
    shards.cluster(group, "try")


def _learners(group: argparse._ArgumentGroup, surface: Surface) -> None:
    usual = TASKS[surface.name].learner
    group.add_argument(
        "--learner",
        dest="learners",
        type=options.several_learners,
        default=options.several_learners(usual),
        metavar="NAME,…",
        help="names from `hopefear learners`; parameters that stay as they are may follow, "
        f"NAME:KEY=VALUE (default: {usual})",
    )
    options.patience(group)
    if surface.metrics is not None:
        options.named(group, "--metric", f"score that counts: {surface.metrics}", "NAME")


def run(args: argparse.Namespace) -> int:
    surface = surface_of(args.task)
    if (args.dev is None) == (args.folds is None):
        args.usage_error("trials are scored on --dev FILE or by --folds K: give one of them")
    if args.out == "-" and (args.json or len(args.objective) > 1):
        args.usage_error("--out - is for one file, and --json would share standard output")
    if args.cluster is not None and args.jobs is not None:
        args.usage_error("--cluster and --jobs both say where trials run: give one")
    networks = [name for _, name, _ in args.learners if options.is_network(args, name)]
    if args.jobs not in (None, 1) and networks:
        args.usage_error(f"--jobs is not for networks ({networks[0]}), which use all cores")
    options.read_once(args, "train", "dev", *surface.files)
    surface.check(args, "compare")
    inputs = options.paths(args, ("train", "dev", *surface.files))
    for output in filter(None, (args.out, args.report, args.study)):
        check_output(output, inputs)
    _check_distinct(args, inputs)
    options.check_networks(args, [name for _, name, _ in args.learners])
    args.learners = [
        (label, name, options.with_network(args, name, params))
        for label, name, params in args.learners
    ]
    spaces = [_tried(args, name, params) for _, name, params in args.learners]
    for _, name, params in args.learners:
        surface.build(name, params, args)
    from hopefear.cli.progress import announced
    from hopefear.integrations.search import Search

    console, n_jobs = Console(args.quiet), args.jobs or 1
    args.jobs = 1  # threads of a trial
    with (
        shards.cluster_of(args) as cluster,
        announced(console, "these learners"),
    ):
        parameters = surface.parameters(args)
        _, parameters["learner"], parameters["params"] = args.learners[0]
        prepared, _ = read_train(args, surface, parameters, console)
        console.say(surface.describe(prepared))
        plan = _plan(args, prepared)
        candidates = _candidates(args, surface, prepared, spaces, console)
        search = Search(candidates, plan, args.objective, args.study)
        study = search.open_study()
        known = len(search.findings(study))
        if known:
            console.say(f"going on from {args.study}, which has {known} trials")
        interruption: BaseException | None = None
        try:
            with stage("searching", args.trials, "trials") as work:
                work.advance(known)

                def on_finding(finding: Any) -> None:
                    work.advance()
                    console.say(_trial_line(plan.metric, finding))

                search.run(study, args.trials, args.seconds, n_jobs, on_finding, cluster)
        except (HopefearError, KeyboardInterrupt) as error:
            if not hasattr(error, "signum") and not isinstance(error, KeyboardInterrupt):
                raise
            interruption = error
        if interruption is not None and not study.best_trials:
            raise interruption
        result = _written(args, surface, search, study)
        _show(console, search, study)
        if args.report is not None:
            from hopefear.integrations.search.page import write_page

            held = args.dev or f"{args.folds} folds"
            about = f"{os.path.basename(args.train)}, scored on {os.path.basename(held)}"
            write_page(args.report, search, study, "Search for settings", about)
    console.say(f"\nwrote {', '.join(result['files'])}")
    if args.json:
        print_json(result)
    if interruption is not None:
        raise interruption
    return 0


def _check_distinct(args: argparse.Namespace, inputs: Iterable[str | None]) -> None:
    """Refuse outputs that would replace each other, or of the front an input."""
    outputs = {"--out": args.out, "--report": args.report, "--study": args.study}
    places: dict[str, str] = {}
    for option, path in outputs.items():
        if path is None or path == "-" or os.path.realpath(path) == os.devnull:
            continue
        if (other := places.setdefault(os.path.realpath(path), option)) != option:
            raise HopefearError(
                f"{other} and {option} are the same file, {path}; give them two names"
            )
    if len(args.objective) == 1:
        return
    folder, name = os.path.split(args.out)
    stem, ending = os.path.splitext(os.path.join(os.path.realpath(folder), name))
    for path in filter(None, (args.report, args.study, *inputs)):
        if re.fullmatch(rf"{re.escape(stem)}-\d+{re.escape(ending)}", os.path.realpath(path)):
            raise HopefearError(
                f"{path} has a name that trials beside --out {args.out} get; give another name"
            )


def _trial_line(metric: str, finding: Any) -> str:
    """Returns a line on a trial that has ended."""
    from hopefear.integrations.search.page import in_words

    end = f"{finding.state}: {finding.error}" if finding.error else finding.state
    if finding.state == "complete":
        end = (
            f"{metric} {scored(metric, finding.quality)} (epoch {finding.epochs}), "
            f"{finding.nonzeros:,} non-zeros, {finding.seconds:.2f} s"
        )
    elif finding.state == "pruned":
        end = f"pruned after epoch {finding.epochs}"
    words = "defaults" if finding.defaults else in_words(finding.params)
    return f"trial {finding.number}: {finding.learner} {words}: {end}"


def _plan(args: argparse.Namespace, prepared: Any) -> Any:
    from hopefear.integrations.search import Plan
    from hopefear.training.stopping import Stopping

    metric = prepared.stop_on
    Stopping(metric, args.patience).check(prepared.task.score_names(prepared.data))
    return Plan(metric, args.epochs, args.patience, args.seed, not args.no_shuffle)


def _tried(
    args: argparse.Namespace, name: str, params: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is tried of a learner, and its defaults."""
    fixed = {key.replace("-", "_") for key in params}
    table = recipe(name, args.task).with_parts(params)
    usual = table.parameters()
    space = {key: part for key, part in table.space().items() if key not in fixed}
    for key, text in args.space:
        if key in usual and key not in fixed:
            space[key] = _dimension(key, text, usual[key])
    if not space:
        args.usage_error(f"--learner {name}: nothing is left to try; give --space KEY=A..B")
    for key, _ in args.space:
        if not any(
            key in recipe(each, args.task).with_parts(given).parameters()
            for _, each, given in args.learners
        ):
            args.usage_error(f"--space {key}: no learner here has such a parameter")
    return space, {key: usual[key] for key in space}


def _candidates(
    args: argparse.Namespace,
    surface: Surface,
    prepared: Any,
    spaces: Sequence[Any],
    console: Console,
) -> list[Any]:
    from hopefear.integrations.search import Candidate, folds
    from hopefear.integrations.search.trials import Split

    candidates, read = [], dict[int, Any]()
    for (label, name, params), (space, usual) in zip(args.learners, spaces, strict=True):
        own = prepared.for_learner(name, params)
        if args.dev is None:
            splits = folds(own.data, args.folds, args.seed)
        else:
            if id(own) not in read:
                read[id(own)] = held_out("dev", args, surface, own, console)
            splits = [Split(own.data, read[id(own)])]
        candidates.append(Candidate(label, name, own.task, splits, space, usual, params))
    return candidates


def _written(args: argparse.Namespace, surface: Surface, search: Any, study: Any) -> dict[str, Any]:
    """Writes the best, and others of the front beside it; returns what ``--json`` prints."""
    findings, best, paths = search.findings(study), search.best(study), {}
    front = search.front(study) if len(search.objectives) > 1 else [best]
    stem, ending = os.path.splitext(args.out)
    for finding in front:
        path = args.out if finding == best else f"{stem}-{finding.number}{ending}"
        put(path, [_config(args, surface, search, finding).encode()])
        paths[finding.number] = path
    states = [finding.state for finding in findings]
    return {
        "task": args.task,
        "metric": search.plan.metric,
        "objectives": list(search.objectives),
        "trials": len(findings),
        **{state: states.count(state) for state in ("complete", "pruned", "failed")},
        "best": _facts(best),
        "front": [{**_facts(finding), "config": paths[finding.number]} for finding in front],
        "defaults": [_facts(finding) for finding in findings if finding.defaults],
        "files": [*paths.values(), *filter(None, (args.report,))],
        "study": args.study,
    }


def _facts(finding: Any) -> dict[str, Any]:
    unsaid = ("curve", "error", "defaults")
    return {key: value for key, value in finding._asdict().items() if key not in unsaid}


def _config(args: argparse.Namespace, surface: Surface, search: Any, finding: Any) -> str:
    """A trial as a file for ``train --config``, which trains the same model again."""
    name, fixed = next((n, p) for label, n, p in args.learners if label == finding.learner)
    epochs = args.epochs if args.folds is None else finding.epochs
    settings = {
        "task": args.task,
        "train": str(args.train),
        "dev": None if args.dev is None else str(args.dev),
        "model": "NEW.model",
        "learner": name,
        "epochs": epochs,
        "seed": args.seed,
        "param": {**fixed, **finding.params},
    }
    typed = {key: value for key, value in args.settings.items() if key not in settings}
    if args.folds is not None:
        typed.pop("patience", None)
        if surface.metrics is not None:  # train has it for --dev alone
            typed.pop("metric", None)
    place = "the held-out data" if args.folds is None else f"{args.folds} folds"
    return config_text(
        {**settings, **typed},
        f"{TRIAL}{finding.number} of a search: {search.plan.metric} {finding.quality:.4f} on "
        f"{place}, epoch {finding.epochs}, {finding.nonzeros:,} non-zeros",
    )


def _show(console: Console, search: Any, study: Any) -> None:
    """Shows the best and what no other beats, beside the defaults."""
    from hopefear.integrations.search.page import heads, row
    from hopefear.training.stopping import sign_of

    best = search.best(study)
    front = search.front(study) if len(search.objectives) > 1 else []
    shown = [best, *(f for f in front if f != best)]
    usual = [
        f for f in search.findings(study) if f.defaults and f.state == "complete" and f not in shown
    ]
    console.say()
    marked = {"non-zeros": "min", "seconds": "min"}
    marked[search.plan.metric] = "max" if sign_of(search.plan.metric) > 0 else "min"
    console.table(heads(search.plan.metric), [row(one) for one in (*shown, *usual)], marked)


def _objectives(text: str) -> tuple[str, ...]:
    """Objectives between commas.

    >>> _objectives("quality,seconds")
    ('quality', 'seconds')
    """
    names = tuple(options.names(text))
    if set(names) - set(_OBJECTIVES):
        raise argparse.ArgumentTypeError(f"objectives are {', '.join(_OBJECTIVES)}, not {text!r}")
    return names


def _space(text: str) -> tuple[str, str]:
    key, value = options.parameter(text)
    if ".." not in value and "|" not in value:
        raise argparse.ArgumentTypeError(
            f"expected KEY=A..B or KEY=WORD|WORD, such as C=0.001..1, found {text!r}"
        )
    return key.replace("-", "_"), value


def _dimension(key: str, text: str, usual: Any) -> Any:
    """What ``--space`` says; logarithms are drawn where the ends are far apart.

    >>> _dimension("C", "0.001..1", 0.05)
    Range(low=0.001, high=1.0, log=True, whole=False, auto=False)
    >>> _dimension("averaging", "last|averaged", "last")
    Choice(values=('last', 'averaged'))
    """
    from hopefear.recipes.spaces import Choice, Range

    if "|" in text:
        return Choice(tuple(text.split("|")))
    auto = "x" in text
    measured = key in ("rate", "price") and usual == "auto"
    if isinstance(usual, bool) or not (measured or isinstance(usual, int | float)):
        raise HopefearError(f"--space {key}={text}: {key} is no number; give words, as in A|B")
    if auto and not (key == "rate" and measured):
        raise HopefearError(f"--space {key}={text}: {key} has no automatic rate; give numbers")
    try:
        low, high = (float(end.removesuffix("x")) for end in text.split(".."))
    except ValueError:
        raise HopefearError(f"--space {key}={text}: expected two numbers, as in 0.001..1") from None
    if not low < high:
        raise HopefearError(f"--space {key}={text}: the first number must be the smaller one")
    whole = isinstance(usual, int)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise HopefearError(f"--space {key}={text}: both ends must be finite")
    if whole and not (low.is_integer() and high.is_integer()):
        raise HopefearError(f"--space {key}={text}: {key} takes whole numbers")
    return Range(low, high, low > 0.0 and high >= 10.0 * low, whole, auto)
