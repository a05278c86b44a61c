"""``hopefear compare``: several learners on the same data; each task has a module of its own."""

from __future__ import annotations

import argparse

from hopefear.cli.verbs import tasks_in_words

USAGE = "TASK --train FILE --test FILE --learners A,B,C --report FILE.html [OPTIONS]"
DESCRIPTION = f"""
Train several learners on the same data, test them on the same test data, and show scores, speed,
sparsity and significance in a table and on a page. `hopefear compare TASK --help` shows the
options of a task.

{tasks_in_words()}
"""
EXAMPLES = """
examples:
  hopefear compare classify --train train.svm --test test.svm \\
      --learners perceptron,vrda,adagrad-rda --report comparison.html
  hopefear compare tag --train train.txt --test test.txt --learners perceptron,sapo:n=10,crf \\
      --report taggers.html
  hopefear compare rerank --train lists.jsonl --test test.jsonl --learners perceptron,vrda,maxent \\
      --report rerankers.html
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Options are those of the tasks."""
