"""Peak memory of training a tagger, every line in a child process; Linux only.

    python bench/sequences_memory.py train.txt.gz

``bare`` is the interpreter, ``imports`` adds what `hopefear train tag` imports, ``kernels`` trains
on the first twenty sentences, ``train`` on all, ``crfsuite`` is python-crfsuite fed one sentence at
a time. See memory.py for what is counted.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import memory
import sequences_corpus as corpus

PASSES = 3
IMPORTS = "import hopefear.tasks.tag.prepare"


def measure(text: Path, folder: Path) -> dict[str, dict[str, float]]:
    """``peak_mb`` and ``anonymous_mb`` of every process."""
    few = corpus.shortened(corpus.Files(text, text), (20, 1), folder).train
    memory.measured(train(few, folder))  # compiles what is not on disk yet
    reference = str(Path(__file__).with_name("crfsuite_reference.py"))
    commands = {
        "bare": [sys.executable, "-c", "import time; time.sleep(0.1)"],
        "imports": [sys.executable, "-c", IMPORTS],
        "kernels": train(few, folder),
        "train": train(text, folder),
        "crfsuite": [sys.executable, reference, str(text), "--passes", str(PASSES), "--quiet"],
    }
    return {name: memory.measured(command) for name, command in commands.items()}


def train(text: Path, folder: Path) -> list[str]:
    command = [sys.executable, "-m", "hopefear", "train", "tag", "--quiet"]
    command += ["--learner", "perceptron", "--features", corpus.FEATURES, "--epochs", str(PASSES)]
    return [*command, "--train", str(text), "--model", str(folder / "model")]


def figures(peaks: dict[str, dict[str, float]]) -> dict[str, float]:
    """The differences that count, in MB."""
    bare, training = peaks["bare"], peaks["train"]
    return {
        "memory": training["peak_mb"] - bare["peak_mb"],
        "memory own": training["peak_mb"] - peaks["kernels"]["peak_mb"],
        "memory anonymous": training["anonymous_mb"] - bare["anonymous_mb"],
        "memory crfsuite": peaks["crfsuite"]["peak_mb"] - bare["peak_mb"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("train", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(chosen.train, Path(folder))))


if __name__ == "__main__":
    main()
