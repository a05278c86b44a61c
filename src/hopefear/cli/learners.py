"""``hopefear learners``: every learner, its parts, its parameters and what each does."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from hopefear.cli import options
from hopefear.cli.console import print_json, text_table
from hopefear.tasks import TASKS

USAGE = "[NAME] [--task TASK] [--json]"
DESCRIPTION = """
List the learners of the literature that hopefear knows, task by task: each is a loss, a rule that
moves the weights and an averaging that is kept, with defaults that work. With a name, show its
parameters, their defaults and the effect of each; `-p KEY=VALUE` of train sets them, and `-p
loss=…`, `-p rule=…`, `-p averaging=…` and `-p update_on=…` swap the parts.
"""
EXAMPLES = """
examples:
  hopefear learners
  hopefear learners vrda
  hopefear learners sapo --task tag
"""
_PRICE = "Margin asked for by one unit of cost; larger separates more strictly."


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="show one learner in full")
    parser.add_argument(
        "--task", choices=tuple(TASKS), help="only learners for this task (default: all)"
    )
    options.json_option(parser)


def run(args: argparse.Namespace) -> int:
    tasks = [args.task] if args.task else list(TASKS)
    tables = {task: [facts(r) for r in _chosen(task, args)] for task in tasks}
    tables = {task: learners for task, learners in tables.items() if learners}
    if args.json:
        learners = {task: {r["name"]: r for r in rows} for task, rows in tables.items()}
        print_json({"learners": learners, **_parts()})
        return 0
    for number, (task, rows) in enumerate(tables.items()):
        print(f"{chr(10) * bool(number)}task {task}: {TASKS[task].words}\n")
        if args.name:
            _show(rows[0])
        else:
            _list(rows)
    if not args.name:
        for kind, table in _parts().items():
            print(f"\n{kind}: {', '.join(table)}")
        print("\n`hopefear learners NAME` explains the parameters of one.")
    return 0


def _chosen(task: str, args: argparse.Namespace) -> list[Any]:
    """The recipes to show; a name that any task knows is no mistake unless a task is asked for."""
    from hopefear.tasks import recipe, recipes_of

    if not args.name:
        return list(recipes_of(task).values())
    elsewhere = any(args.name in recipes_of(other) for other in TASKS)
    if args.name not in recipes_of(task) and elsewhere and not args.task:
        return []
    return [recipe(args.name, task)]


def facts(recipe: Any) -> dict[str, Any]:
    """Everything there is to say about a recipe."""
    from hopefear.core.learner import part_name
    from hopefear.recipes import AVERAGINGS, LOSSES, RULES

    if hasattr(recipe, "tuner"):
        return _tuner_facts(recipe)
    if not hasattr(recipe, "rule"):
        return _batch_facts(recipe)
    effects = {
        "loss": f"Part: what a mistake costs. One of {', '.join(LOSSES)}.",
        "rule": f"Part: how weights move. One of {', '.join(RULES)}.",
        "averaging": f"Part: which weights are returned. One of {', '.join(AVERAGINGS)}.",
        "update_on": "Which examples update the weights: all, or mistakes only.",
        "lam": "Strength of the penalty over a whole pass, whatever the size of the data; larger "
        "keeps weights smaller.",
        "penalty": "What lam counts: l2 or l1.",
        "price": _PRICE,
    }
    if hasattr(recipe, "passes"):  # over lists to tune
        from hopefear.translation.tuners.online_tuner import OnlineTuner

        effects |= parameters_of(OnlineTuner)
    parts = (recipe.loss, recipe.rule, recipe.averaging)
    for part in parts:
        effects |= parameters_of(part)
    names = (*map(part_name, parts), recipe.update_on)
    return _facts(recipe, names, formula_of(recipe.rule), effects)


def _facts(
    recipe: Any, parts: Sequence[str], formula: str, effects: Mapping[str, str]
) -> dict[str, Any]:
    """What is said of every recipe; ``parts`` are loss, rule, averaging and when it moves."""
    from hopefear.recipes.advice import WHEN

    parameters = recipe.parameters().items()
    return {
        "name": recipe.name,
        "summary": recipe.summary,
        "when": WHEN.get(recipe.name, ""),
        **dict(zip(("loss", "rule", "averaging", "update_on"), parts, strict=True)),
        "formula": formula,
        "parameters": {
            key: {"default": value, "effect": effects.get(key, "")} for key, value in parameters
        },
    }


def _batch_facts(recipe: Any) -> dict[str, Any]:
    """Of a learner that sees all data before it moves, and so has no rule that could be swapped."""
    from hopefear.core.learner import part_name

    built = recipe.build()
    learner = getattr(built, "learner", built)  # of a tuner
    loss = getattr(learner, "loss", None)
    effects = {} if loss is None else parameters_of(type(loss))
    parts = ("log" if loss is None else part_name(type(loss)), "batch", "last", "all at once")
    if not learner.batch:  # a network
        parts = (parts[0], "adam", "averaged", learner.update_on)
    effects |= {"price": _PRICE, **_batch_effects(type(built)), **_batch_effects(type(learner))}
    return _facts(recipe, parts, formula_of(type(learner)), effects)


def _tuner_facts(recipe: Any) -> dict[str, Any]:
    """Of a tuner that looks at all lists before it moves; what it maximises is its formula."""
    effects: dict[str, str] = {}
    for field in dataclasses.fields(recipe.tuner):
        if dataclasses.is_dataclass(own := field.default):  # a part with parameters of its own
            usual = f"With {field.name}={_short(recipe.parameters()[field.name])}. "
            effects |= {key: usual + text for key, text in parameters_of(type(own)).items()}
    effects |= _batch_effects(recipe.tuner)
    parts = ("-", "whole lists", "best", "all at once")
    return _facts(recipe, parts, formula_of(recipe.tuner), effects)


def _batch_effects(part_class: type) -> dict[str, str]:
    """Effects of parameters; a class leaves those of the class it extends to that."""
    effects: dict[str, str] = {}
    for part in reversed(part_class.__mro__[:-1]):
        effects |= parameters_of(part)
    return effects


def parameters_of(part: type) -> dict[str, str]:
    """Name and effect of each parameter, from the Parameters section of a docstring.

    >>> from hopefear.losses.hinge import Hinge
    >>> parameters_of(Hinge)
    {'asked': 'Margin asked for. Larger separates more strictly and updates more often.'}
    """
    lines = inspect.getdoc(part).split("\n")  # type: ignore[union-attr]
    effects: dict[str, list[str]] = {}
    if "Parameters" not in lines:
        return {}
    names: list[str] = []
    for line in lines[lines.index("Parameters") + 2 :]:
        head = re.fullmatch(r"(\w[\w, ]*) : .*", line)
        if head:
            names = [name.strip() for name in head[1].split(",")]
            effects |= {name: [] for name in names}
        elif line.startswith("    ") and names:
            for name in names:
                effects[name].append(line.strip())
        elif line.strip():
            break
    return {name: _plain(" ".join(words)) for name, words in effects.items()}


def _plain(text: str) -> str:
    """Text without the marks of documentation pages.

    >>> _plain("See :func:`hopefear.core.learner.describe`, or ``none``.")
    'See hopefear.core.learner.describe, or `none`.'
    """
    # Files are named as the functions in them, and shorter.
    text = re.sub(r":(?:func|class|mod):`~?([\w.]+?)\.(\w+)`", _place, text)
    return text.replace("``", "`")


def _place(match: re.Match[str]) -> str:
    module, name = match.groups()
    return module if module.endswith(f".{name}") else f"{module}.{name}"


def formula_of(part: type) -> str:
    """The formula under the first line of a docstring, if there is one."""
    paragraphs = inspect.getdoc(part).split("\n\n")  # type: ignore[union-attr]
    second = paragraphs[1] if len(paragraphs) > 1 else ""
    return " ".join(second.replace("``", "").split()) if second.startswith("``") else ""


def _parts() -> dict[str, dict[str, str]]:
    from hopefear.recipes import AVERAGINGS, LOSSES, RULES

    return {
        kind: {name: (inspect.getdoc(part) or "").split("\n")[0] for name, part in table.items()}
        for kind, table in (("losses", LOSSES), ("rules", RULES), ("averaging", AVERAGINGS))
    }


def _list(learners: list[dict[str, Any]]) -> None:
    print(
        text_table(
            ["learner", "loss", "rule", "averaging", "update_on"],
            [[r[k] for k in ("name", "loss", "rule", "averaging", "update_on")] for r in learners],
        )
    )
    for learner in learners:
        values = ", ".join(
            f"{key}={_short(p['default'])}"
            for key, p in learner["parameters"].items()
            if key not in ("loss", "rule", "averaging", "update_on")
        )
        print(f"\n{learner['name']}: {learner['summary']}\n  {values}")


def _show(learner: dict[str, Any]) -> None:
    print(f"{learner['name']}: {learner['summary']}\n")
    if learner["when"]:
        print(f"  {learner['when']}\n")
    print(
        f"  loss {learner['loss']}, rule {learner['rule']}, averaging {learner['averaging']}, "
        f"on {learner['update_on']}"
    )
    if learner["formula"]:
        print(f"  {learner['formula']}")
    for key, parameter in learner["parameters"].items():
        print(f"\n  -p {key}={_short(parameter['default'])}")
        print(
            textwrap.fill(
                parameter["effect"], 92, initial_indent="      ", subsequent_indent="      "
            )
        )


def _short(value: Any) -> str:
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value).__name__.lower()
    if value is None:
        return "auto"
    return f"{value:g}" if isinstance(value, float) else str(value).lower()
