"""Enumerated worlds, dense rules and contract checks, for parts of one's own."""

from __future__ import annotations

from hopefear.testing.contracts import (
    check_averaging,
    check_learner,
    check_loss,
    check_rule,
    check_structure,
)
from hopefear.testing.registered import registered_parts
from hopefear.testing.rules import DenseRule, dense_rule, soft
from hopefear.testing.trees import tiny_structures
from hopefear.testing.worlds import (
    Force,
    Outputs,
    World,
    formula_of,
    outputs_of,
    tiny_rows,
)

__all__ = [
    "DenseRule",
    "Force",
    "Outputs",
    "World",
    "check_averaging",
    "check_learner",
    "check_loss",
    "check_rule",
    "check_structure",
    "dense_rule",
    "formula_of",
    "outputs_of",
    "registered_parts",
    "soft",
    "tiny_rows",
    "tiny_structures",
]
