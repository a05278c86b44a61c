"""The table of docs/cli.md: losses by structures and rules.

python bench/grid.py            # print it
python bench/grid.py --write    # put it between its marks in docs/cli.md
"""

from __future__ import annotations

import sys
from pathlib import Path

from hopefear.core.learner import Learner
from hopefear.errors import CombinationError
from hopefear.recipes import CHAIN_RECIPES, LIST_RECIPES, LOSSES, RECIPES, RULES, TREE_RECIPES
from hopefear.structures.chain import Chain
from hopefear.structures.classes import Multiclass
from hopefear.structures.nbest import NBest
from hopefear.testing.trees import tiny_structures
from hopefear.training.online import OnlineTrainer

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"
FIRST, LAST = "<!-- grid: python bench/grid.py --write -->\n", "<!-- end of grid -->\n"
TINY = tiny_structures()
# Structures of one kind, by what sets them apart.
STRUCTURES = {
    "classes": ({"": Multiclass(2, 3)}, RECIPES),
    "chains": ({"": Chain.new(2, 3)}, CHAIN_RECIPES),
    "segments": ({"": TINY["segments"]}, CHAIN_RECIPES),
    "lists": ({"": NBest(2)}, LIST_RECIPES),
    "trees": (
        {
            "order 1": TINY["nonprojective trees"],
            "order 2, projective": TINY["second-order trees"],
            "order 2, crossing": TINY["nonprojective second-order trees"],
        },
        TREE_RECIPES,
    ),
}


def table() -> str:
    """The grid as a table of Markdown, with the reason of each hole."""
    lines = [
        f"| loss | {' | '.join(STRUCTURES)} | rules |",
        "|---|" + ":-:|" * len(STRUCTURES) + "---|",
    ]
    reasons: list[str] = []
    for name in LOSSES:
        cells = []
        for kind, (structures, recipes) in STRUCTURES.items():
            learner = recipes["vrda"].build(loss=name, update_on="mistakes", rule="sgd")
            served = []
            for variant, structure in structures.items():
                try:
                    OnlineTrainer(structure, learner)
                    served.append(variant)
                except CombinationError as error:
                    why = str(error).partition(": ")[2]
                    location = f"{kind} of {variant}" if variant else kind
                    reasons.append(f"`{name}` on {location}: {why}.")
            cell = "; ".join(served) or "no"
            cells.append("yes" if len(served) == len(structures) else cell)
        lines.append(f"| `{name}` | {' | '.join(cells)} | {_rules(name)} |")
    return "\n".join([*lines, "", "  \n".join(reasons)]) + "\n"


def _rules(loss: str) -> str:
    """With which rules a loss works, and where only on mistakes."""
    refused, later = [], []
    for rule in RULES:
        if not _works(loss, rule, "mistakes"):
            refused.append(rule)
        elif not _works(loss, rule, "all"):
            later.append(rule)
    text = f"all but {', '.join(refused)}" if refused else "all"
    if later:
        free = [rule for rule in RULES if rule not in (*refused, *later)]
        text += f"; on mistakes only, but with {', '.join(free)}"
    return text


def _works(loss: str, rule: str, on: str) -> bool:
    try:
        return isinstance(RECIPES["sgd"].build(loss=loss, rule=rule, update_on=on), Learner)
    except CombinationError:
        return False


def main() -> None:
    if "--write" not in sys.argv[1:]:
        print(table(), end="")
        return
    before, _, remainder = PAGE.read_text(encoding="utf-8").partition(FIRST)
    after = remainder.partition(LAST)[2]
    PAGE.write_text(f"{before}{FIRST}{table()}{LAST}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
