"""``hopefear completion``: scripts that complete commands in shells, made by shtab."""

from __future__ import annotations

import argparse
from typing import Any

from hopefear.errors import HopefearError

USAGE = "SHELL"
DESCRIPTION = """
Print a script with which a shell completes commands, tasks, options, their choices, files and the
names of learners. It is made of this version and changes with it.
"""
EXAMPLES = """
examples:
  source <(hopefear completion bash)                     # or put this line into ~/.bashrc
  hopefear completion zsh > ~/.zfunc/_hopefear           # a folder of $fpath
  hopefear completion fish > ~/.config/fish/completions/hopefear.fish
"""
_SHELLS = ("bash", "zsh", "fish", "tcsh")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", metavar="SHELL", choices=_SHELLS, help=", ".join(_SHELLS))


def run(args: argparse.Namespace) -> int:
    import shtab

    from hopefear.cli.guard import write_out

    write_out(shtab.complete(all_commands(), args.shell))
    return 0


def all_commands() -> argparse.ArgumentParser:
    """Returns the parsers of all commands and tasks as one."""
    from hopefear.cli import BY_TASK, VERBS
    from hopefear.cli.surface import task_names
    from hopefear.tasks import TASKS

    def given(parser: argparse.ArgumentParser, **_: Any) -> argparse.ArgumentParser:
        return parser

    top = argparse.ArgumentParser("hopefear")
    top.add_argument("--version", action="version", version="", help="print the version")
    commands = top.add_subparsers(parser_class=given)  # type: ignore[call-overload]
    for command, words in VERBS.items():
        try:
            parser = _parser_of(command)
        except HopefearError:  # its distribution is not installed
            continue
        commands.add_parser(command, parser=parser, help=words)
        if command in BY_TASK:
            tasks = parser.add_subparsers(parser_class=given)  # type: ignore[call-overload]
            for task in task_names():
                tasks.add_parser(task, parser=_parser_of(command, task), help=TASKS[task].words)
    return top


def _parser_of(command: str, task: str | None = None) -> argparse.ArgumentParser:
    """Returns the parser of a command, with files and learners to complete."""
    import shtab

    from hopefear.cli import parser_of
    from hopefear.tasks import TASKS, recipes_of

    parser = parser_of(command, task)
    for action in parser._actions:
        metavar = str(action.metavar)
        if action.choices is not None or action.nargs == 0:
            continue
        if action.dest in ("learner", "learners") or (command, action.dest) == ("learners", "name"):
            named = TASKS if task is None and command != "tune" else (task or command,)
            action.choices = sorted({name for each in named for name in recipes_of(each)})
        elif (command, action.dest) == ("warm-up", "tasks"):
            action.choices = list(TASKS)
        elif metavar == "DIR":
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        elif "FILE" in metavar or "PATH" in metavar:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    return parser
