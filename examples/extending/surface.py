"""The task of ``task.py`` on the command line: its entry, its words, what verbs ask of it.

Nothing heavy is imported before its time: every verb reads this file.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from hopefear.cli.surface import Corpus, Score, Surface, Use, Words
from hopefear.tasks import TaskEntry

ENTRY = TaskEntry(
    "some of several items",
    "task:RECIPES",
    ("ssvm",),
    "task:ChoiceModel",
    surface="surface:SURFACE",
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

    def read(self, args, console):
        from task import read

        return ChoiceCorpus(data=read(args.train))

    @property
    def use(self):
        return ChoiceUse()


@dataclass(frozen=True, kw_only=True)
class ChoiceCorpus(Corpus):
    """What train and compare ask of the data."""

    @property
    def scores(self):
        return Score("accuracy", "accuracy"), Score("items", "items")

    def task(self, args):
        from task import Choosing

        return Choosing()

    def held_out(self, which, args, console):
        from task import read

        return read(getattr(args, which), self.data.features)

    def judge(self, model, test):
        chosen, gold = model.predict(test), test.chosen()
        rows = [[a == b, 1] for a, b in zip(chosen, gold, strict=True)]
        return model.scores(test), rows

    def tester(self):
        from hopefear.metrics import Accuracy

        return Accuracy()


class ChoiceUse(Use):
    """What predict and evaluate ask of a model; inspect is content with the usual answers."""

    def answers(self, args, model, console, report):
        from task import read

        for chosen in model.predict(read(args.input, model.features)):
            yield f"{json.dumps(chosen)}\n".encode()

    def evaluate(self, args, model, console, report):
        from task import read

        return model.scores(read(args.data, model.features))


SURFACE = Choices()
