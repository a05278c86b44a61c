"""Fields of named tuples must not bear the names of interface methods: kernels would call them."""

import importlib
import inspect
import pkgutil

import hopefear
from hopefear.core.component import _SIGNATURES

# These never enter a kernel.
OUTSIDE = {
    "Characters.at",
    "DealtRows.places",
    "Force.margin",
    "Force.value",
    "Interval.value",
    "Minimum.value",
    "Output.score",
    "ParsedTree.score",
    "RawRows.line",
    "Reading.reading",
    "Rival.right",
    "Sample.score",
    "Scanned.places",
    "Tagging.reading",
    "TaggingScores.reading",
    "Temperature.value",
    "TextRows.line",
    "Tokens.content",
    "Trial.score",
    "Wanted.places",
}


def test_no_field_is_named_like_a_method():
    clashes = []
    for module in pkgutil.walk_packages(hopefear.__path__, "hopefear."):
        if module.name.endswith("__main__"):
            continue
        try:
            names = vars(importlib.import_module(module.name))
        except ModuleNotFoundError as error:  # of an extra; it has no kernels of its own
            if (error.name or "hopefear").startswith("hopefear"):
                raise
            continue
        for name, value in names.items():
            if inspect.isclass(value) and issubclass(value, tuple) and hasattr(value, "_fields"):
                clashes += [f"{name}.{field}" for field in set(value._fields) & set(_SIGNATURES)]
    assert set(clashes) <= OUTSIDE
