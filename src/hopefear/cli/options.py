"""Options that several verbs share, and how their values are read."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hopefear.cli.surface import Surface, surfaces
from hopefear.errors import HopefearError
from hopefear.tasks import TASKS, recipe


def flag(group: argparse._ActionsContainer, option: str, words: str) -> None:
    """An option without a value."""
    group.add_argument(option, action="store_true", help=words)


def named(
    group: argparse._ActionsContainer,
    option: str,
    words: str,
    metavar: str = "FILE",
    **more: Any,
) -> None:
    """An option with a name as its value, most often that of a file."""
    group.add_argument(option, metavar=metavar, help=words, **more)


def whole(
    group: argparse._ActionsContainer,
    option: str,
    words: str,
    default: int | None = None,
    least: int = 1,
) -> None:
    """An option with a whole number as its value; a default is told."""
    usual = "" if default is None else f" (default: {default})"
    group.add_argument(
        option, type=at_least(least), default=default, metavar="N", help=f"{words}{usual}"
    )


def choice(
    group: argparse._ActionsContainer, option: str, choices: tuple[str, ...], words: str
) -> None:
    """An option with one of some words as its value, the first unless said."""
    group.add_argument(
        option, choices=choices, default=choices[0], help=f"{words} (default: {choices[0]})"
    )


def on_error(group: argparse._ArgumentGroup) -> None:
    """``--on-error``."""
    choice(
        group,
        "--on-error",
        ("raise", "skip"),
        "stop at the first bad line, or leave bad lines (of tokens their sentences, of "
        "candidates in JSON their lists) out, count and list them",
    )
    encoding(group)


def encoding(group: argparse._ArgumentGroup) -> None:
    """``--encoding``."""
    named(
        group,
        "--encoding",
        "what texts are written in, such as latin-1, windows-1252, utf-16 (default: utf-8); output "
        "is UTF-8",
        "NAME",
    )


def one_format(group: argparse._ArgumentGroup, task: str, words: str) -> None:
    """``--format`` of files of one task."""
    group.add_argument(
        "--format",
        choices=("auto", *TASKS[task].formats),
        default="auto",
        help=f"{words} (default: auto)",
    )


def any_format(group: argparse._ArgumentGroup, verb: str) -> None:
    """``--format`` where the model says which task it is for."""
    formats = {each.noun: each.formats(verb) for each in surfaces()}
    words = (
        f"{noun}: {', '.join(names[:-1])} or {names[-1]}"
        for noun, names in formats.items()
        if names
    )
    group.add_argument(
        *(("--format", "--input-format") if verb == "predict" else ("--format",)),
        metavar="NAME" if verb == "predict" else None,
        choices=tuple(
            dict.fromkeys(("auto", *(name for names in formats.values() for name in names)))
        ),
        default="auto",
        help=f"{'; '.join(words)}; auto asks the model and the file (default: auto)",
    )


def output_format(group: argparse._ArgumentGroup) -> None:
    """``--output-format`` of what models answer."""
    outputs = {each.noun: each.outputs for each in surfaces() if each.outputs}
    words = (
        f"{noun}: " + ", ".join(f"{name} ({text})" for name, text in choices.items())
        for noun, choices in outputs.items()
    )
    names = dict.fromkeys(name for choices in outputs.values() for name in choices)
    group.add_argument(
        "--output-format",
        choices=tuple(names),
        help=f"{'; '.join(words)}; the first of a task unless told",
    )


def class_weights(group: argparse._ArgumentGroup, words: str) -> None:
    """``--class-weight``."""
    group.add_argument(
        "--class-weight", type=class_weight, metavar="balanced|LABEL=W,…", help=words
    )


def jobs(group: argparse._ArgumentGroup) -> None:
    """``--jobs`` of what answers."""
    whole(
        group,
        "--jobs",
        "tags and trees: threads that search; results do not depend on it (default: one a core)",
    )


def no_temperature(group: argparse._ArgumentGroup) -> None:
    """``--no-temperature``, where scores have probabilities only through one."""
    flag(
        group,
        "--no-temperature",
        "do not fit the temperature that makes probabilities of scores; they are then "
        "surer or less sure than they should be",
    )


def learning_jobs(
    group: argparse._ArgumentGroup, more: str = "", usual: str = "one a core"
) -> None:
    """``--jobs`` of what learns; ``more`` is what else its threads do."""
    whole(
        group,
        "--jobs",
        f"threads of batch learners{more}; the model does not depend on it (default: {usual})",
    )


def threads(number: int | None) -> int:
    """So many threads as asked for, or as this process may use."""
    if number is not None:
        return number
    count = getattr(os, "sched_getaffinity", None)
    return len(count(0)) if count else os.cpu_count() or 1


def data_files(parser: argparse.ArgumentParser, verb: str) -> argparse._ArgumentGroup:
    """``--train``, of compare ``--test``, and ``--dev``."""
    data = parser.add_argument_group("data")
    packed = "; .gz, .xz, .bz2, .zst and - (standard input) work too"
    words, use = f"labelled lines{packed}", "to score every pass on"
    if verb == "compare":
        words, use = "labelled lines to learn from", "that choose the pass to keep"
    named(data, "--train", words, required=True)
    if verb == "compare":
        of_test = "labelled lines to test on; nothing is chosen on them"
        named(data, "--test", of_test, required=True)
    if verb == "train":
        words = f"held-out data {use}; 10%% holds out that part of --train, drawn by --seed"
        named(data, "--dev", words, "FILE", type=_file_or_share)
        whole(
            data,
            "--folds",
            "cross-validate first: learn N times, each time without another part of --train, and "
            "score that part",
            least=2,
        )
    else:
        named(data, "--dev", f"held-out data {use}")
    return data


class Share(str):
    """A part of the training data, as it was typed."""

    @property
    def fraction(self) -> float:
        """The same as a number.

        >>> Share("12.5%").fraction
        0.125
        """
        return float(self[:-1]) / 100.0


def _file_or_share(text: str) -> str:
    """The type of ``--dev``."""
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?%", text):
        return text
    share = Share(text)
    if not 0.0 < share.fraction < 1.0:
        raise argparse.ArgumentTypeError(f"expected a file or a part such as 10%, found {text!r}")
    return share


def model_and_run(parser: argparse.ArgumentParser) -> None:
    """What training writes."""
    output = parser.add_argument_group("output")
    output.add_argument("--model", required=True, metavar="PATH", help="model file to write")
    run_folder(output)
    json_option(output)


def run_folder(group: argparse._ArgumentGroup, more: str = "") -> None:
    """``--run``; ``more`` is what else goes there."""
    named(
        group,
        "--run",
        f"folder for run.json and events.jsonl, which `hopefear report` reads{more}",
        "DIR",
    )


def learning(
    parser: argparse.ArgumentParser, surface: Surface, verb: str, shared: Callable[[Any], None]
) -> None:
    """Passes and their order, and the learners, which ``shared`` adds."""
    group = parser.add_argument_group("learning")
    group.add_argument(
        "--epochs",
        type=at_least(1),
        metavar="N",
        help=f"passes over the data, at most (default: {surface.passes})",
    )
    seed(group, "model")
    flag(group, "--no-shuffle", "keep the order of the file in every pass")
    surface.learning_options(group, verb, lambda: shared(group))


def seed(group: argparse._ArgumentGroup, same: str) -> None:
    """``--seed``; ``same`` is what comes out the same."""
    group.add_argument(
        "--seed",
        type=at_least(0),
        default=1,
        metavar="N",
        help=f"fixes every random choice: same seed, same {same} (default: 1)",
    )


class _Once(argparse.Action):
    """Collects pairs, and refuses a key that was given before: which one is meant?"""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        pairs = [*getattr(namespace, self.dest), values]
        keys = [key for key, _ in pairs]
        if keys.count(values[0]) > 1:
            parser.error(f"-p {values[0]} twice; give it once")
        setattr(namespace, self.dest, pairs)


def params(group: argparse._ArgumentGroup, such_as: str) -> None:
    """``-p``."""
    group.add_argument(
        "-p",
        "--param",
        type=parameter,
        action=_Once,
        default=[],
        metavar="KEY=VALUE",
        help=f"a parameter or part of the learner, such as {such_as}; may be repeated",
    )


def one_learner(group: argparse._ArgumentGroup, surface: Surface) -> None:
    """The learner to train, its parameters, and when it stops."""
    named(
        group,
        "--learner",
        f"see `hopefear learners` (default: {TASKS[surface.name].learner})",
        "NAME",
    )
    params(group, "l1=1e-5, loss=logistic or averaging=voted")
    patience(group, "; either way the best model is kept")
    if surface.metrics is not None:
        named(group, "--metric", f"score on --dev that counts: {surface.metrics}", "NAME")


def several(group: argparse._ArgumentGroup) -> None:
    """The learners to compare, and when they stop."""
    group.add_argument(
        "--learners",
        required=True,
        type=several_learners,
        metavar="A,B,C",
        help="names from `hopefear learners`, each with parameters if wanted",
    )
    patience(group)


def networks(group: argparse._ActionsContainer) -> None:
    """``--vectors`` and ``--device`` of verbs that learn."""
    named(
        group,
        "--vectors",
        "networks: word vectors to begin with, as text (a word and its numbers a line) or .npz "
        "(words, vectors)",
    )
    device(group)


def device(group: argparse._ActionsContainer) -> None:
    """``--device``."""
    group.add_argument(
        "--device",
        choices=("auto", "cpu", "cuda"),
        help="networks: where they are computed; auto takes a GPU where there is one (default: "
        "auto)",
    )


def with_network(
    args: argparse.Namespace, learner: str, params: Mapping[str, Any]
) -> dict[str, Any]:
    """Parameters of a learner with what ``--vectors`` and ``--device`` add to those of networks.

    Learners that are no networks get theirs as they are.
    """
    values = dict(params)
    if not hasattr(args, "vectors") or not is_network(args, learner):
        return values
    for name in ("vectors", "device"):
        if (value := getattr(args, name)) is not None:
            if name in values:
                args.usage_error(f"--{name} and the parameter {name} of {learner}: give one")
            values[name] = value
    return values


def check_networks(args: argparse.Namespace, learners: Iterable[str]) -> None:
    """Wrong usage: options of networks where there are none."""
    given = [name for name in ("vectors", "device") if getattr(args, name, None) is not None]
    if given and not any(is_network(args, name) for name in learners):
        args.usage_error(f"--{given[0]} is for networks, such as bilstm-crf of the task tag")


def first_learner(args: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """Name and parameters of the learner that data is read for; others encode it when they come."""
    if hasattr(args, "learners"):
        _, learner, params = args.learners[0]
        return learner, params
    return args.learner, dict(args.param)


def is_network(args: argparse.Namespace, learner: str) -> bool:
    """Whether a learner of the task is a network."""
    from hopefear.recipes import NetworkRecipe  # with numpy, which help need not load

    return isinstance(recipe(learner, args.task), NetworkRecipe)


def patience(group: argparse._ArgumentGroup, more: str = "") -> None:
    """``--patience``."""
    whole(
        group,
        "--patience",
        "stop after N passes without a better score on --dev; 0 never stops "
        f"early{more} (default: a third of the passes, 3 at least; of batch learners 20, of "
        "networks, where there are some, 5)",
        least=0,
    )


def checkpoints(parser: argparse.ArgumentParser) -> None:
    """How a long run survives."""
    group = parser.add_argument_group("long runs")
    named(
        group,
        "--checkpoint",
        "save everything there after each pass and every --checkpoint-every",
        "DIR",
    )
    group.add_argument(
        "--checkpoint-every",
        type=number,
        default=30.0,
        metavar="SECONDS",
        help="time between checkpoints inside a pass (default: 30)",
    )
    flag(group, "--resume", "go on from the checkpoint, if there is one")


def of_papers(name: str, typed: str = "") -> list[Any]:
    """Returns what the distribution hopefear-papers brings under a name.

    Parameters
    ----------
    name : str
        Of its entry points.
    typed : str
        What the user typed that cannot do without; empty where nothing is missed.
    """
    from importlib.metadata import entry_points

    objects = [point.load() for point in entry_points(group="hopefear.papers", name=name)]
    if typed and not objects:
        raise HopefearError(
            f"{typed} comes with hopefear-papers, which is not installed; in a checkout of "
            "hopefear: pip install ./papers"
        )
    return objects


def bounds(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """``--bounds``."""
    group = parser.add_argument_group("theory")
    flag(
        group,
        "--bounds",
        "show what theorems say of the run, live and in --run, for the average so far as "
        "comparator: mistakes and the bound of voted RDA (classes and lists), costs and the bound "
        "of MIRA, updates and the bound of SWVP, what SAPO leaves out",
    )
    return group


# An option of this metavar holds a command of the shell; in a file of --config it needs the other.
COMMAND, ALLOW_COMMANDS = "CMD", "--allow-commands"


def allow_outside(group: argparse._ActionsContainer, words: str) -> None:
    """``--allow-outside``."""
    flag(group, "--allow-outside", f"{words} in other folders than its own")


def weights(group: argparse._ArgumentGroup | argparse.ArgumentParser) -> None:
    """``--weights``, in place of ``--model``."""
    named(
        group,
        "--weights",
        "weights as `hopefear tune` writes them (text, moses or json), in place of --model",
    )
    allow_outside(group, "read sparse weights that a moses.ini names")


# Options that make sense with models and with weights, as argparse calls them.
_EITHER = {"model", "weights", "json", "quiet", "debug", "task", "usage_error", "default_of"}
_EITHER |= {"encoding"}
_OF_WEIGHTS = {"refs", "source", "metric", "smoothing", "absent", "against", "allow_outside"}


def by_weights(
    args: argparse.Namespace, *, shared: Iterable[str] = (), needed: Mapping[str, Iterable[str]]
) -> bool:
    """Whether ``--weights`` is meant and not ``--model``; wrong usage where that is not clear.

    Parameters
    ----------
    args : Namespace
        What was typed.
    shared : iterable of str
        Options of the verb that make sense with both.
    needed : mapping
        Options that must be there with ``model`` and with ``weights``.
    """
    if (args.model is None) == (args.weights is None):
        both = "not both" if args.model is not None else "one is needed"
        args.usage_error(f"give --model PATH or --weights FILE, {both}")
    which, other = ("model", "weights") if args.weights is None else ("weights", "model")
    for name in needed.get(which, ()):
        if getattr(args, name) is None:
            args.usage_error(f"--{which} needs --{name} FILE")
    of_weights = _OF_WEIGHTS | set(needed.get("weights", ()))
    for name, value in vars(args).items():
        if name in _EITHER or name in shared or (name in of_weights) == (which == "weights"):
            continue
        if value != args.default_of(name):
            option = name.replace("_", "-")
            args.usage_error(f"--{option} belongs to --{other}: leave it out with --{which}")
    return which == "weights"


def paths(args: argparse.Namespace, options: Iterable[str]) -> list[str]:
    """Files that options name, one or several each."""
    values = [getattr(args, name, None) for name in options]
    return [
        path
        for value in values
        if value is not None
        for path in (value if isinstance(value, list) else [value])
        if not isinstance(path, Share)
    ]


def read_once(args: argparse.Namespace, *options: str) -> None:
    """Wrong usage: two files from standard input, which has but one."""
    clashes = [
        f"--{name.replace('_', '-')}"
        for name in options
        for path in paths(args, [name])
        if path == "-"
    ]
    if len(clashes) > 1:
        args.usage_error(f"{' and '.join(clashes)} cannot both be standard input")


def json_option(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """``--json``."""
    flag(parser, "--json", "print one JSON object on standard output")


def at_least(least: int) -> Callable[[str], int]:
    """An argparse type: whole numbers from ``least`` on."""

    def whole(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"expected a whole number, found {text!r}") from None
        if value < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}, not {value}")
        return value

    return whole


def parameter(text: str) -> tuple[str, str]:
    """``KEY=VALUE`` of a learner.

    >>> parameter("l1=1e-5")
    ('l1', '1e-5')
    """
    key, equals, value = text.partition("=")
    if not (key and equals and value):
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, such as l1=1e-5, found {text!r}")
    return key.strip(), value.strip()


def class_weight(text: str) -> str | dict[str, float]:
    """``balanced``, or a weight for each label.

    >>> class_weight("spam=2,ham=0.5")
    {'spam': 2.0, 'ham': 0.5}
    """
    if text == "balanced":
        return text
    weights: dict[str, float] = {}
    for part in text.split(","):
        label, equals, value = part.rpartition("=")
        if not (label and equals) or number(value) < 0.0:
            raise argparse.ArgumentTypeError(
                f"expected balanced or LABEL=WEIGHT,… with weights from 0 on, found {text!r}"
            )
        weights[label] = number(value)
    return weights


def number(text: str) -> float:
    """A finite number."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if value - value != 0.0:
        raise argparse.ArgumentTypeError(f"expected a number, found {text!r}")
    return value


def number_from(least: float, below: float = float("inf")) -> Callable[[str], float]:
    """An argparse type: numbers from ``least`` to below ``below``."""

    def convert(text: str) -> float:
        value = number(text)
        if not least <= value < below:
            bound = "" if below == float("inf") else f" and below {below:g}"
            raise argparse.ArgumentTypeError(f"must be at least {least:g}{bound}, not {text!r}")
        return value

    return convert


def fraction(text: str) -> float:
    """A number above 0 and up to 1."""
    value = number(text)
    if not 0.0 < value <= 1.0:
        raise argparse.ArgumentTypeError(f"must be above 0 and at most 1, not {text!r}")
    return value


def auto_or(convert: Callable[[str], Any]) -> Callable[[str], Any]:
    """An argparse type: ``auto``, or what another type takes."""
    return lambda text: text if text == "auto" else convert(text)


def names(text: str) -> list[str]:
    """Names between commas.

    >>> names("word,pos,label")
    ['word', 'pos', 'label']
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(parts) or len(set(parts)) < len(parts):
        raise argparse.ArgumentTypeError(f"expected different names between commas, found {text!r}")
    return parts


def several_learners(text: str) -> list[tuple[str, str, dict[str, str]]]:
    """(label, name, parameters) of each learner named.

    >>> several_learners("rda:l1=1e-5,vrda")
    [('rda:l1=1e-5', 'rda', {'l1': '1e-5'}), ('vrda', 'vrda', {})]
    """
    learners = []
    for label in filter(None, (part.strip() for part in text.split(","))):
        name, *words = label.split(":")
        pairs = [parameter(word) for word in words]
        if len(dict(pairs)) < len(pairs):
            raise argparse.ArgumentTypeError(f"a parameter of {label} is given twice in {text!r}")
        learners.append((label, name, dict(pairs)))
    if not learners:
        raise argparse.ArgumentTypeError("expected names of learners, such as perceptron,vrda")
    if len({label for label, _, _ in learners}) < len(learners):
        raise argparse.ArgumentTypeError(f"a learner is named twice in {text!r}")
    return learners


def look_ahead(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Let options that name files hold Sources: what is looked at is then read, in its encoding."""
    from hopefear.data.sources import Source

    encoding = getattr(args, "encoding", None)
    for action in parser._actions:
        value = getattr(args, action.dest, None)
        if action.metavar == "FILE" and not isinstance(value, Share | None):
            many = value if isinstance(value, list) else [value]
            sources = [Source(path, encoding) for path in many]
            setattr(args, action.dest, sources if isinstance(value, list) else sources[0])
