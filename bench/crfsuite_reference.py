"""CRFsuite's averaged perceptron through python-crfsuite: its pass is the unit R of sequences.py.

    python bench/crfsuite_reference.py train.txt.gz --passes 10

Sentences are read, turned into attributes in Python and handed over one at a time, so that only
CRFsuite keeps them. Prints the CPU seconds of every step as one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import sequences_corpus as corpus

PASS = re.compile(r"Seconds required for this iteration: ([0-9.]+)")
NUMBERING = re.compile(r"Number of features: [0-9]+\s+Seconds required: ([0-9.]+)")
ATTRIBUTES = re.compile(r"Number of active attributes: [0-9]+ \(([0-9]+)\)")


class Reference:
    """Sentences inside CRFsuite, ready to be trained on again and again."""

    def __init__(self, sentences: Iterable[corpus.Sentence]) -> None:
        try:
            import pycrfsuite
        except ImportError as error:
            raise SystemExit(f"{error}; install the extra hopefear[bench]") from None
        start = time.process_time()
        self._trainer = pycrfsuite.Trainer(algorithm="ap", verbose=False)
        for sentence in sentences:
            self._trainer.append(corpus.attributes(sentence), corpus.labels(sentence))
        self.reading = time.process_time() - start  # reading and templates included
        self.numbering = 0.0  # CPU seconds at the beginning of every training
        self.attributes = 0

    def passes(self, n: int) -> list[float]:
        """Train from zero; CPU seconds of every pass by CRFsuite's own clock."""
        # It stops by itself when a pass has no mistakes; a negative threshold asks for all passes.
        self._trainer.set_params({"max_iterations": n, "epsilon": -1.0})
        with tempfile.TemporaryDirectory() as folder:
            self._trainer.train(str(Path(folder) / "model"))
        log = "".join(self._trainer.logparser.log)
        self.numbering, self.attributes = facts(log)
        seconds = pass_seconds(log)
        if len(seconds) != n:
            raise SystemExit(
                f"CRFsuite was asked for {n} passes and told of {len(seconds)}:\n{log}"
            )
        return seconds


def pass_seconds(log: str) -> list[float]:
    """Returns the seconds of every epoch in the log.

    >>> pass_seconds("Loss: 1.5\\nSeconds required for this iteration: 0.104\\n\\n")
    [0.104]
    """
    return [float(seconds) for seconds in PASS.findall(log)]


def facts(log: str) -> tuple[float, int]:
    """Seconds of feature numbering, and attributes."""
    numbering, attributes = NUMBERING.search(log), ATTRIBUTES.search(log)
    if numbering is None or attributes is None:
        raise SystemExit(f"this log of CRFsuite lacks what is looked for:\n{log}")
    return float(numbering[1]), int(attributes[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("train", type=Path)
    parser.add_argument("--passes", type=int, default=10)
    parser.add_argument("--quiet", action="store_true", help="print nothing")
    chosen = parser.parse_args()
    reference = Reference(corpus.read(chosen.train))
    seconds = reference.passes(chosen.passes)
    result: dict[str, Any] = {"passes": seconds, "reading": reference.reading}
    if not chosen.quiet:
        print(json.dumps(result | {"numbering": reference.numbering}))


if __name__ == "__main__":
    main()
