"""The command ``hopefear``: one verb, one module, imported when it is asked for."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import importlib
import os
import stat
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from hopefear import __version__
from hopefear.cli.config import (
    add_option,
    read_config,
    settings_typed,
    with_config,
    with_place_of_best,
)
from hopefear.cli.console import Console
from hopefear.cli.options import look_ahead, paths
from hopefear.cli.surface import said_of_all, surface_of, task_names
from hopefear.core.progress import watched
from hopefear.tasks import TASKS, find_tasks

__all__ = ["main"]

VERBS = {
    "demo": "train several learners on built-in data and write report.html",
    "learners": "list every learner, its parts, parameters and defaults",
    "train": "train a model on a file",
    "predict": "label a file, or choose from its lists",
    "evaluate": "score a model on data with known answers",
    "compare": "train several learners on the same data and test them",
    "search": "find good parameters of learners by trial",
    "inspect": "show what a model is, what it weighs and where it came from",
    "serve": "answer questions over HTTP, with a page to try models on",
    "tune": "find weights for a decoder's features on its N-best lists",
    "report": "turn run folders into one HTML page",
    "reproduce": "run a paper's experiments, next to the paper's numbers",
    "warm-up": "compile kernels now, so that nobody waits for them later",
    "completion": "write a script that completes commands in bash, zsh, fish or tcsh",
}
# Verbs that take a TASK first: each task has options of its own.
BY_TASK = ("train", "compare", "search")

_DESCRIPTION = (
    "Fast linear structured prediction: any learner on any structure. Predictions, --json and "
    "what is written to - go to standard output, what people read to standard error."
)
_EXAMPLES = """
examples:
  hopefear demo
  hopefear train classify --train train.svm --dev dev.svm --model news.model
  hopefear evaluate --model news.model --data test.svm --json
  hopefear train tag --train train.txt --dev dev.txt --model chunks.model
  hopefear predict --model chunks.model --input new.txt --proba
  hopefear train parse --train train.conllu --dev dev.conllu --model parser.model
  hopefear train rerank --train lists.jsonl --model lists.model
  hopefear tune --nbest dev.nbest.gz --refs dev.en --weights tuned.txt

`hopefear VERB --help` explains a verb.
"""


class Help(argparse.HelpFormatter):
    """Paragraphs are filled, examples and tables stay as they are."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n\n".join(
            part.rstrip()
            if part.startswith(("examples:", "  ", "verbs:", "tasks:"))
            else textwrap.fill(
                " ".join(part.split()), width, initial_indent=indent, subsequent_indent=indent
            )
            for part in text.strip("\n").split("\n\n")
        )


class Parser(argparse.ArgumentParser):
    """A parser whose help, unlike others', does not get lost on a full disk without a word."""

    def _print_message(self, message: str, file: Any = None) -> None:
        if file is sys.stdout:
            from hopefear.cli.guard import write_out

            write_out(message)
        else:
            super()._print_message(message, file)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status; never raises for a user's mistake.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments without the program's name; those of the process by default.
    """
    # Nothing here multiplies large matrices; idle BLAS threads would only wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from hopefear.cli.guard import fill_standard_streams, guarded

    fill_standard_streams()
    words = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in words
    return guarded(lambda: dispatch(words), debug, lambda: options_of(words))


def dispatch(argv: Sequence[str]) -> int:
    """Parse and run; SystemExit on wrong usage, as argparse does it."""
    top = _top()
    if not argv:
        top.error("a verb is needed; `hopefear --help` lists them, `hopefear demo` is a start")
    if argv[0].startswith("-"):
        top.parse_args(argv[:1])
        top.error(f"options come after the verb: hopefear VERB {argv[0]}")
    verb = argv[0]
    if verb not in VERBS:
        near = difflib.get_close_matches(verb, VERBS, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(VERBS)}"
        top.error(f"there is no verb {verb!r}; {hint}")
    find_tasks()
    words, tasks = list(argv[1:]), task_names()
    if verb == "search":
        words = with_place_of_best(words)
    # Inspect has no use for a file of options, and --config of it writes one.
    path, config = ("", {}) if verb == "inspect" else read_config(words)
    task = None
    if verb in BY_TASK:
        task = config.pop("task", None)
        if words and not words[0].startswith("-"):
            task = words.pop(0)
    if task is not None and task not in tasks:
        hint = "; `hopefear tune` is a verb" if task == "tune" else ""
        top.error(f"there is no task {task!r}; there are {', '.join(tasks)}{hint}")
    parser = parser_of(verb, task)
    if verb in BY_TASK and task is None:
        parser.parse_known_args(words)  # --help ends here
        parser.error(f"a task comes first: hopefear {verb} {' or '.join(tasks)} …")
    args = _arguments(parser, with_config(words, parser, path, config))
    if verb in ("train", "search"):
        args.settings = settings_typed(args, parser, paths=verb == "search")
    look_ahead(args, parser)
    console = Console(args.quiet)
    with _as_private_as(paths(args, ("train", "dev", "test", "nbest", "refs"))):
        if not console.terminal:
            return _module(verb).run(args)
        from hopefear.cli.progress import ProgressBar

        with ProgressBar(console) as bar, watched(bar):
            return _module(verb).run(args)


@contextlib.contextmanager
def _as_private_as(data: Iterable[str]) -> Iterator[None]:
    """Has caches, models and runs made from these files hidden from those who cannot read them."""
    before = os.umask(0o077)
    hidden = before
    for path in data:
        with contextlib.suppress(OSError, ValueError):
            mode = os.stat(path).st_mode
            if stat.S_ISREG(mode):
                hidden |= (0 if mode & stat.S_IRGRP else 0o070) | (0 if mode & stat.S_IROTH else 7)
    os.umask(hidden)
    try:
        yield
    finally:
        os.umask(before)


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """Returns the arguments of a command with a task, as the command's module takes them.

    >>> parsed(["evaluate", "--model", "m", "--data", "test.txt"]).model
    ['m']
    """
    task = argv[1] if argv[0] in BY_TASK else None
    return _arguments(parser_of(argv[0], task), list(argv[1 if task is None else 2 :]))


def _arguments(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.Namespace:
    args = parser.parse_args(words)
    args.usage_error, args.default_of = parser.error, parser.get_default
    return args


def options_of(argv: Sequence[str]) -> list[str]:
    """Returns the options that help shows for the verb and task of a command line.

    >>> "--cache" in options_of(["train", "classify"]), "--cache" in options_of(["train", "parse"])
    (True, False)
    """
    verb, task = argv[0], argv[1] if argv[0] in BY_TASK else None
    actions = parser_of(verb, task)._actions
    shown = [action for action in actions if action.help != argparse.SUPPRESS]
    return [option for action in shown for option in action.option_strings]


def parser_of(verb: str, task: str | None = None) -> argparse.ArgumentParser:
    """The parser of one verb, for one task, with the options that all share."""
    module, surface = _module(verb), None
    name, usage = f"hopefear {verb}", module.USAGE
    description, examples = module.DESCRIPTION, module.EXAMPLES
    if verb not in BY_TASK:
        description, examples = said_of_all(verb, description, examples)
    elif task is None:
        listed = "\n".join(f"  {name:<10} {TASKS[name].words}" for name in task_names())
        description = f"{description}\ntasks:\n{listed}"
    else:
        surface = surface_of(task)
        name, usage = f"{name} {task}", usage.removeprefix("TASK ")
        if verb in surface.words:  # else what the verb says will do
            description, examples = surface.words[verb]
            examples = f"examples:{examples}"
    parser = Parser(
        name,
        usage=f"{name} {usage}",
        epilog=examples,
        description=description,
        formatter_class=Help,
        allow_abbrev=False,
    )
    parser.set_defaults(task=task)
    if verb in BY_TASK:
        module.configure(parser, surface)
    else:
        module.configure(parser)
    if verb != "inspect":
        add_option(parser.add_argument_group("settings"))
    shared = parser.add_argument_group("messages")
    shared.add_argument("--quiet", action="store_true", help="say nothing but errors and warnings")
    shared.add_argument("--debug", action="store_true", help="show where an error came from")
    return parser


def _module(verb: str) -> Any:
    if verb == "reproduce":
        from hopefear.cli.options import of_papers

        return of_papers(verb, "hopefear reproduce")[0]
    return importlib.import_module(f"hopefear.cli.{verb.replace('-', '_')}")


def _top() -> argparse.ArgumentParser:
    verbs = "\n".join(f"  {verb:<10} {what}" for verb, what in VERBS.items())
    parser = Parser(
        "hopefear",
        usage="hopefear VERB [OPTIONS]",
        formatter_class=Help,
        allow_abbrev=False,
        description=f"{_DESCRIPTION}\n\nverbs:\n{verbs}",
        epilog=_EXAMPLES,
    )
    parser.add_argument("--version", action="version", version=f"hopefear {__version__}")
    return parser
