"""``hopefear completion``: scripts that complete commands in shells, made of the parsers."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple

from hopefear.errors import HopefearError

USAGE = "SHELL"
DESCRIPTION = """
Print a script with which a shell completes verbs, tasks, options, their choices and the names of
learners. It is made of this version and changes with it.
"""
EXAMPLES = """
examples:
  source <(hopefear completion bash)                     # or put this line into ~/.bashrc
  source <(hopefear completion zsh)                      # or put this line into ~/.zshrc
  hopefear completion fish > ~/.config/fish/completions/hopefear.fish
"""


class Completed(NamedTuple):
    """An option of a verb (of a task) that can be completed."""

    names: tuple[str, ...]
    choices: tuple[str, ...]  # of its value
    takes_value: bool
    words: str


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", metavar="SHELL", choices=("bash", "zsh", "fish"),
                        help="bash, zsh or fish")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    from hopefear.cli.guard import write_out

    write_out({"bash": in_bash, "zsh": in_zsh, "fish": in_fish}[args.shell]())
    return 0


def commands() -> Iterator[tuple[str, str | None, list[Completed], tuple[str, ...]]]:
    """(verb, task, options, words that are no options) of every command."""
    from hopefear.cli import BY_TASK, VERBS, parser_of
    from hopefear.cli.surface import task_names

    for verb in VERBS:
        for task in task_names() if verb in BY_TASK else (None,):
            options, plain = [], tuple[str, ...]()
            try:
                actions = parser_of(verb, task)._actions
            except HopefearError:  # its distribution is not installed
                continue
            for action in actions:
                choices = _choices(action, verb, task)
                if action.option_strings:
                    help_text = " ".join((action.help or "").split())
                    taken = action.nargs != 0
                    names = tuple(action.option_strings)
                    options.append(Completed(names, choices, taken, help_text))
                else:
                    plain += choices
            yield verb, task, options, plain


def _choices(action: argparse.Action, verb: str, task: str | None) -> tuple[str, ...]:
    from hopefear.tasks import TASKS, recipes_of

    if action.choices is not None:
        return tuple(map(str, action.choices))
    if action.dest in ("learner", "learners") or (verb, action.dest) == ("learners", "name"):
        named = TASKS if task is None and verb != "tune" else (task or verb,)
        return tuple(sorted({name for each in named for name in recipes_of(each)}))
    return tuple(TASKS) if (verb, action.dest) == ("warm-up", "tasks") else ()


def in_bash() -> str:
    """The script for bash."""
    from hopefear.cli import BY_TASK, VERBS
    from hopefear.cli.surface import task_names

    options, values = [], []
    for verb, task, known, plain in commands():
        place = verb if task is None else f"{verb}:{task}"
        names = [name for option in known for name in option.names if name.startswith("--")]
        options.append(f'    {place}) words="{" ".join((*plain, *names))}" ;;')
        for option in known:
            if option.choices:
                patterns = "|".join(f"{place}:{name}" for name in option.names)
                values.append(f'    {patterns}) words="{" ".join(option.choices)}" ;;')
            elif option.takes_value:
                values.append(f"    {'|'.join(f'{place}:{n}' for n in option.names)}) return ;;")
    return f"""_hopefear() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} words=""
  local verb=${{COMP_WORDS[1]}} place=${{COMP_WORDS[1]}}
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{" ".join((*VERBS, "--help", "--version"))}" -- "$cur")); return
  fi
  case "$verb" in {"|".join(BY_TASK)})
    if [ "$COMP_CWORD" -eq 2 ]; then
      COMPREPLY=($(compgen -W "{" ".join(task_names())} --help" -- "$cur")); return
    fi
    place="$verb:${{COMP_WORDS[2]}}" ;;
  esac
  case "$place:$prev" in
{chr(10).join(values)}
  esac
  [ -n "$words" ] || case "$place" in
{chr(10).join(options)}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -o default -F _hopefear hopefear
"""


def in_zsh() -> str:
    """The script for zsh, which can use that of bash."""
    loaded = ("compinit", "bashcompinit")
    return "".join(f"autoload -U +X {name} && {name}\n" for name in loaded) + in_bash()


def in_fish() -> str:
    """The script for fish."""
    from hopefear.cli import BY_TASK, VERBS
    from hopefear.cli.surface import task_names
    from hopefear.tasks import TASKS

    seen = "__fish_seen_subcommand_from"
    lines = [
        f"complete -c hopefear -n __fish_use_subcommand -f -a {verb} -d {_quoted(words)}"
        for verb, words in VERBS.items()
    ]
    tasks = " ".join(task_names())
    for verb in BY_TASK:
        for name in task_names():
            where = f"{seen} {verb}; and not {seen} {tasks}"
            what = _quoted(TASKS[name].words)
            lines.append(f"complete -c hopefear -n '{where}' -f -a {name} -d {what}")
    for verb, task, known, plain in commands():
        where = f"{seen} {verb}" + (f"; and {seen} {task}" if task else "")
        start = f"complete -c hopefear -n '{where}'"
        if plain:
            lines.append(f"{start} -f -a {_quoted(' '.join(plain))}")
        for option in known:
            names = " ".join(
                f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in option.names
            )
            value = f" -x -a {_quoted(' '.join(option.choices))}" if option.choices else ""
            value = value or (" -r" if option.takes_value else "")
            lines.append(f"{start} {names}{value} -d {_quoted(option.words)}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """Text between single quotes, as fish reads it.

    >>> print(_quoted("the paper's"))
    'the paper\\'s'
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
