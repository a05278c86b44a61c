"""``hopefear train``: from a file to a model; each task has a module of its own."""

from __future__ import annotations

import argparse

from hopefear.cli.verbs import tasks_in_words

USAGE = "TASK --train FILE [--dev FILE] [--learner NAME] [-p KEY=VALUE]... [OPTIONS] --model PATH"
DESCRIPTION = f"""
Train a model on a file and write it as one file. `hopefear train TASK --help` shows the options
of a task.

{tasks_in_words()}
"""
EXAMPLES = """
examples:
  hopefear train classify --train train.svm --dev dev.svm --model news.model
  hopefear train tag --train train.txt --dev dev.txt --model chunks.model
  hopefear train tag --train train.conllu --column upos --learner crf --model pos.model
  hopefear train rerank --train parses.jsonl.xz --dev dev.jsonl.xz --model parses.model
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Options are those of the tasks."""
