"""Models by what their files say they are for."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

from hopefear import storage
from hopefear.cli.options import FORMATS
from hopefear.errors import HopefearError
from hopefear.tasks import model_from_parts

# Options that only one task knows, as argparse calls them, by verb.
_OWN: dict[str, dict[str, tuple[str, ...]]] = {
    "predict": {
        "tag": ("columns", "scheme", "explain", "explain_token", "no_constraints", "jobs"),
        "rerank": ("output_format",),
    },
    "evaluate": {
        "tag": ("columns", "column", "no_constraints", "jobs", "report", "proba"),
        "rerank": ("gold", "refs"),
    },
    "inspect": {"rerank": ("explain", "list", "pair")},
}


def load_model(path: str) -> tuple[str, Any]:
    """Task and model of a file, or of standard input; any changed byte is refused."""
    if path == "-":
        header, arrays = storage.unpack(sys.stdin.buffer.read(), kind="model", name="the model")
    else:
        header, arrays = storage.load(path, "model")
    return str(header.get("task")), model_from_parts(path, header, arrays)


def verb_of(task: str, verb: str, args: Any) -> ModuleType:
    """The module that does a verb for a task, after a check that all options make sense for it."""
    for owner, names in _OWN.get(verb, {}).items():
        for name in names if owner != task else ():
            if getattr(args, name, None):
                option = f"--{name.replace('_', '-')}"
                raise HopefearError(
                    f"{option} is for the task {owner}, and {args.model} is a model of the task "
                    f"{task}; leave it out"
                )
    form = getattr(args, "format", "auto")
    if form not in FORMATS[task]:
        raise HopefearError(
            f"--format {form}: {args.model} is a model of the task {task}, whose files are "
            f"{', '.join(FORMATS[task][1:])}"
        )
    return importlib.import_module(f"hopefear.cli.{task}.{verb}")
