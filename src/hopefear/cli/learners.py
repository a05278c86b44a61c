"""``hopefear learners``: every learner, its parts, its parameters and what each does."""

from __future__ import annotations

import argparse
import inspect
import re
import textwrap
from typing import Any

from hopefear.cli import options
from hopefear.cli.console import print_json, text_table

USAGE = "[NAME] [--json]"
DESCRIPTION = """
List the learners of the literature that hopefear knows: each is a loss, a rule that moves the
weights and a readout that is kept, with defaults that work. With a name, show its parameters,
their defaults and the effect of each; `-p KEY=VALUE` of train sets them, and `-p loss=…`, `-p
readout=…` and `-p on=…` swap the parts.
"""
EXAMPLES = """
examples:
  hopefear learners
  hopefear learners vrda
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="show one learner in full")
    options.json_option(parser)


def run(args: argparse.Namespace) -> int:
    from hopefear.recipes import RECIPES, recipe

    chosen = [recipe(args.name)] if args.name else list(RECIPES.values())
    if args.json:
        print_json({"learners": {r.name: facts(r) for r in chosen}, **_parts()})
    elif args.name:
        _show(facts(chosen[0]))
    else:
        _list([facts(r) for r in chosen])
    return 0


def facts(recipe: Any) -> dict[str, Any]:
    """Everything there is to say about a recipe."""
    from hopefear.learner import part_name
    from hopefear.recipes import LOSSES, READOUTS

    effects = {
        "loss": f"Part: what a mistake costs. One of {', '.join(LOSSES)}.",
        "readout": f"Part: what is kept of all weights there were. One of {', '.join(READOUTS)}.",
        "on": "Which examples move the weights: every, or mistakes only.",
    }
    for part in (recipe.loss, recipe.rule, recipe.readout):
        effects |= parameters_of(part)
    return {
        "name": recipe.name,
        "summary": recipe.summary,
        "loss": part_name(recipe.loss),
        "rule": part_name(recipe.rule),
        "readout": part_name(recipe.readout),
        "on": recipe.on,
        "formula": formula_of(recipe.rule),
        "parameters": {
            key: {"default": value, "effect": effects.get(key, "")}
            for key, value in recipe.parameters().items()
        },
    }


def parameters_of(part: type) -> dict[str, str]:
    """Name and effect of each parameter, from the Parameters section of a docstring.

    >>> from hopefear.losses.hinge import Hinge
    >>> parameters_of(Hinge)
    {'asked': 'Margin asked for. Larger separates more strictly and updates more often.'}
    """
    lines = inspect.getdoc(part).split("\n")  # type: ignore[union-attr]
    found: dict[str, list[str]] = {}
    if "Parameters" not in lines:
        return {}
    names: list[str] = []
    for line in lines[lines.index("Parameters") + 2 :]:
        head = re.fullmatch(r"(\w[\w, ]*) : .*", line)
        if head:
            names = [name.strip() for name in head[1].split(",")]
            found |= {name: [] for name in names}
        elif line.startswith("    ") and names:
            for name in names:
                found[name].append(line.strip())
        elif line.strip():
            break
    return {name: " ".join(words).replace("``", "`") for name, words in found.items()}


def formula_of(part: type) -> str:
    """The formula under the first line of a docstring, if there is one."""
    paragraphs = inspect.getdoc(part).split("\n\n")  # type: ignore[union-attr]
    second = paragraphs[1] if len(paragraphs) > 1 else ""
    return " ".join(second.replace("``", "").split()) if second.startswith("``") else ""


def _parts() -> dict[str, dict[str, str]]:
    from hopefear.recipes import LOSSES, READOUTS, RULES

    return {
        kind: {name: (inspect.getdoc(part) or "").split("\n")[0] for name, part in table.items()}
        for kind, table in (("losses", LOSSES), ("rules", RULES), ("readouts", READOUTS))
    }


def _list(learners: list[dict[str, Any]]) -> None:
    print(
        text_table(
            ["learner", "loss", "rule", "readout", "on"],
            [[r[k] for k in ("name", "loss", "rule", "readout", "on")] for r in learners],
        )
    )
    for found in learners:
        values = ", ".join(
            f"{key}={_short(p['default'])}"
            for key, p in found["parameters"].items()
            if key not in ("loss", "readout", "on")
        )
        print(f"\n{found['name']}: {found['summary']}\n  {values}")
    for kind, table in _parts().items():
        print(f"\n{kind}: {', '.join(table)}")
    print("\n`hopefear learners NAME` explains the parameters of one.")


def _show(found: dict[str, Any]) -> None:
    print(f"{found['name']}: {found['summary']}\n")
    print(
        f"  loss {found['loss']}, rule {found['rule']}, readout {found['readout']}, "
        f"on {found['on']}"
    )
    if found["formula"]:
        print(f"  {found['formula']}")
    for key, parameter in found["parameters"].items():
        print(f"\n  -p {key}={_short(parameter['default'])}")
        print(
            textwrap.fill(
                parameter["effect"], 92, initial_indent="      ", subsequent_indent="      "
            )
        )


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).lower()
