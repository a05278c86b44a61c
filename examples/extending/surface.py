"""The task of ``task.py`` on the command line: its entry, its words, what it prints.

Nothing heavy is imported before its time: every command reads this file.
"""

from __future__ import annotations

import json

from hopefear.cli.surface import Score, Surface, Words
from hopefear.tasks import TaskEntry

ENTRY = TaskEntry(
    "some of several items",
    "task:RECIPES",
    ("ssvm",),
    "task:ChoiceModel",
    surface="surface:SURFACE",
    prepare="task:prepare",
)


class Choices(Surface):
    """Words and defaults; options would be added by methods such as ``feature_options``."""

    name, noun = "choose", "choices"
    passes = "5"
    words = {  # noqa: RUF012
        "train": Words("Learn which items to choose.", "  hopefear train choose --train a.jsonl"),
        "compare": Words("Compare learners that choose.", ""),
        "predict": Words("Of items, one JSON list of numbers a line is written.", ""),
        "evaluate": Words("Of items, whole choices and chosen items are counted.", ""),
        "inspect": Words("", ""),
    }

    def examples(self, which, args, report, prepared=None):
        return getattr(args, which)  # a path is all that this task needs of its files

    def scores(self, prepared):
        return Score("accuracy", "accuracy"), Score("items", "items")

    def answers(self, args, model, console, report):
        from task import read

        for chosen in model.predict(read(args.input, model.features)):
            yield f"{json.dumps(chosen)}\n".encode()

    def evaluate(self, args, model, console, report):
        from task import read

        return model.scores(read(args.data, model.features))


SURFACE = Choices()
