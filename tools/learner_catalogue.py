"""The catalogue of learners, docs/learners.md, from the code and from docs/results.md.

python tools/learner_catalogue.py            # print it
python tools/learner_catalogue.py --write    # write the page
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from formulas import formulas

from hopefear.cli.learners import facts, formula_of
from hopefear.recipes import AVERAGINGS, LOSSES, RULES
from hopefear.recipes.advice import WHEN
from hopefear.tasks import TASKS, recipes_of

BREAK = " \\"  # at the end of a line that goes on
DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "learners.md"
HEAD = """\
# Learners

Every learner that `--learner NAME` and the estimators take: what it does, who published it, when to
take it, what can be set, and what was measured. A learner is a loss (what a mistake costs), a rule
(how weights move) and an averaging (what is kept); `-p loss=…`, `-p rule=…` and `-p averaging=…`
swap them. `w` are the weights, `g` the direction of the loss (gold minus what the model chose),
`score` the score of an output; equations with numbers are those of the paper. Figures are those of
[Results](results.md), which tells how each was measured.

*Made by `python tools/learner_catalogue.py --write` from the code and from the tables of Results.*
"""
# What Results calls a learner in the first column of its tables.
CALLED = {
    "averaged perceptron": "perceptron",
    "ours rda": "rda", "ours adagrad-rda": "adagrad-rda", "ours perceptron": "perceptron",
    "ours vrda": "vrda",
    "n-best MIRA": "nbest-mira", "n-best MIRA, n = 5": "nbest-mira",
    "n-best MIRA (n = 5)": "nbest-mira",
    "SAPO": "sapo", "SAPO, n = 5": "sapo", "SAPO (n = 5)": "sapo", "sapo (default)": "sapo",
    "MIRA": "mira", "MIRA, 1-best, averaged": "mira", "MIRA, hope and fear": "mira",
    "CRF by SGD": "crf", "CRF by SGD, all attribute × label pairs": "crf",
    "crf`, SGD (default)": "crf",
    "CRF by L-BFGS, observed pairs (262 iterations)": "crf-lbfgs",
    "structured SVM": "ssvm", "SWVP (balanced, WM, checked)": "swvp",
    "swvp (balanced, WM, β = 1)": "swvp",
    "AdaGrad-RDA, log loss": "adagrad-rda", "AdaGrad-RDA": "adagrad-rda", "RDA, log loss": "rda",
    "RDA": "rda", "voted RDA, averaged": "vrda", "voted RDA, averaged (hinge)": "vrda",
    "AROW": "arow", "FTRL": "ftrl", "PA": "pa", "Rampion": "rampion",
    "confidence-weighted": "cw", "SGD, log loss": "sgd", "AdaGrad, log loss": "adagrad",
    "truncated gradient (hinge)": "tg", "risk": "risk",
    "maxent (weighted log, AdaGrad)": "maxent",
    "mert, 20 starts": "mert",
}  # fmt: skip


def page() -> str:
    """The whole page."""
    learners: dict[str, dict[str, Any]] = {}
    for task in TASKS:
        for name, recipe in recipes_of(task).items():
            learners.setdefault(name, {})[task] = recipe
    figures = measured((DOCS / "results.md").read_text("utf-8"), set(learners))
    rows = [
        f"| [`{name}`](#{name}) | {WHEN[name]} | {', '.join(tasks)} |"
        for name, tasks in sorted(learners.items())
    ]
    parts = [HEAD, "| learner | take it when | tasks |\n|---|---|---|\n" + "\n".join(rows) + "\n"]
    parts += [entry(name, learners[name], figures.get(name, [])) for name in sorted(learners)]
    return "\n".join(parts)


def entry(name: str, recipes: dict[str, Any], figures: list[str]) -> str:
    """One learner."""
    facts_by_task = {task: facts(recipe) for task, recipe in recipes.items()}
    first = next(iter(facts_by_task.values()))
    recipe = next(iter(recipes.values()))
    summaries = dict.fromkeys(facts_of_task["summary"] for facts_of_task in facts_by_task.values())
    lines = [f"## {name}", "", "; ".join(summaries) + ".", "", f"**When.** {WHEN[name]}", ""]
    lines += [f"**Tasks.** {', '.join(f'`{task}`' for task in facts_by_task)}.", ""]
    for kind, table in (("loss", LOSSES), ("rule", RULES), ("averaging", AVERAGINGS)):
        lines += [f"- {line}" for line in part(kind, first[kind], table, facts_by_task)]
    if first["rule"] not in RULES and first["formula"]:
        lines.append(f"- What it solves: {formulas()[first['formula']].rstrip('.')}.")
    lines += ["", "| parameter | default | search tries | effect |", "|---|---|---|---|"]
    spaces = recipe.space if hasattr(recipe, "space") else {}
    spaces = spaces() if callable(spaces) else spaces
    keys = dict.fromkeys(
        key for facts_of_task in facts_by_task.values() for key in facts_of_task["parameters"]
    )
    for key in keys:
        if key in ("loss", "rule", "averaging", "update_on"):
            continue
        values: dict[str, list[str]] = {}
        for task, facts_of_task in facts_by_task.items():
            if key in facts_of_task["parameters"]:
                values.setdefault(shown(facts_of_task["parameters"][key]["default"]), []).append(
                    task
                )
        default = (
            next(iter(values))
            if len(values) == 1
            else "; ".join(f"{value} ({', '.join(tasks)})" for value, tasks in values.items())
        )
        effects = (
            facts_of_task["parameters"][key]["effect"]
            for facts_of_task in facts_by_task.values()
            if key in facts_of_task["parameters"]
        )
        effect = next((text for text in effects if text), "").replace("|", "\\|")
        lines.append(f"| `{key}` | {default} | {tried(spaces.get(key))} | {effect} |")
    if figures:
        lines += ["", "Measured:", "", *(f"- {figure}" for figure in figures)]
    return "\n".join([*lines, ""])


def part(kind: str, name: str, table: Any, facts_by_task: dict[str, Any]) -> Iterator[str]:
    """Describes a part by its docstring, and the tasks with another one."""
    other_parts = {
        task: facts_of_task[kind]
        for task, facts_of_task in facts_by_task.items()
        if facts_of_task[kind] != name
    }
    for name_of_part in dict.fromkeys([name, *other_parts.values()]):
        tasks = [
            task
            for task, facts_of_task in facts_by_task.items()
            if facts_of_task[kind] == name_of_part
        ]
        where = f" ({', '.join(tasks)})" if other_parts else ""
        if name_of_part not in table:
            yield f"{kind.capitalize()}{where}: {name_of_part}."
            continue
        part = table[name_of_part]
        text = inspect.getdoc(part).split("\n")[0].rstrip(".")
        formula = formulas().get(formula_of(part), "").rstrip(".")
        source = (sys.modules[part.__module__].__doc__ or "").split("\n")[0].rstrip(".")
        yield f"{kind.capitalize()}{where} `{name_of_part}`: {text}." + (
            f" {formula}." if formula else "") + f" *{source}.*"  # fmt: skip


def shown(value: Any) -> str:
    """A default as `-p` takes it."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value).__name__.lower()
    if value is None:
        return "auto"
    return f"{value:g}" if isinstance(value, float) else str(value).lower()


def tried(dimension: Any) -> str:
    """Describes the search space of a parameter."""
    if dimension is None:
        return ""
    if not hasattr(dimension, "low"):
        return ", ".join(map(str, dimension))
    return f"{dimension.low:g}{'x' if dimension.auto else ''} to {dimension.high:g}" + (
        "x the automatic rate" if dimension.auto else "")  # fmt: skip


def measured(results: str, names: set[str]) -> dict[str, list[str]]:
    """Rows of the tables of Results by learner, with section, command and commit."""
    figures: dict[str, list[str]] = {}
    for section in re.split(r"^## ", results, flags=re.MULTILINE)[1:]:
        title = section.split("\n", 1)[0]
        anchor = re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")
        command = re.search(r"^    ((?:python|hopefear) .*?)(?:  +#.*)?$", section, re.MULTILINE)
        commit = re.search(r"`([0-9a-f]{7})`", section.partition("\n- ")[0])  # not of remarks
        origin_parts = [f"`{command[1].rstrip(BREAK)}`"] if command else []
        origin_parts += [f"at `{commit[1]}`"] if commit else []
        origin = f" ({', '.join(origin_parts)})" if origin_parts else ""
        for table in re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE):
            head, _, *rows = (
                [cell.strip() for cell in line.strip().strip("|").split(" | ")]
                for line in table.splitlines()
            )
            for row in rows:
                called = row[0].strip("`*| ").strip()
                name = CALLED.get(called, called)
                cells = [
                    f"{label.strip('| ') or 'figure'} {cell.strip('|* ')}"
                    for label, cell in zip(head[1:], row[1:], strict=False)
                    if cell.strip("|* ") and label.strip("| ") not in ("peers", "peer")
                ]
                if name in names and cells:
                    setting = (
                        f"{head[0].strip('| ')}: "
                        if head[0].strip("| ") not in ("", "learner")
                        else ""
                    )
                    figures.setdefault(name, []).append(
                        f"[{title}](results.md#{anchor}){origin}: {setting}{'; '.join(cells)}."
                    )
    return figures


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.write_text(page(), "utf-8")
    else:
        print(page())
