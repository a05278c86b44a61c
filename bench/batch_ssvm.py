"""Structured SVMs in batch beside the online one on chunking: objective, gap, F1, CPU seconds.

    python bench/batch_ssvm.py
    python bench/batch_ssvm.py --only bcfw m3n --sentences 500

Learns from the first sentences of CoNLL-2000 with the templates ``chunking``, all learners with the
same penalty, and prints one line of JSON for each. The objective is that of the structured SVM, or
of the ramp loss for those that minimise it, under the weights that were kept; F1 is that on the
test part, which chooses nothing. Kernels are compiled before the clock starts.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from hopefear.data.token_files import read_sentences
from hopefear.losses.ramp import Ramp
from hopefear.losses.structured_hinge import StructuredHinge
from hopefear.tasks.tag.task import Tagging, dataset, scores, train
from hopefear.training.batch import LossObjective
from hopefear_papers.frame import find_data

ROWS: dict[str, tuple[str, dict[str, Any], int]] = {
    "online": ("ssvm", {}, 10),
    "cp-one": ("ssvm-cp", {"gap": 0.05}, 150),
    "cp-n": ("ssvm-cp", {"gap": 0.05, "slack": "n"}, 60),
    "bcfw": ("ssvm-bcfw", {"gap": 0.05}, 80),
    "bcfw-average": ("ssvm-bcfw", {"gap": 0.05, "average": True}, 80),
    "m3n": ("m3n", {"gap": 0.05}, 80),
    "ramp-online": ("ssvm", {"loss": "ramp"}, 10),
    "cccp": ("rampion-cccp", {}, 15),
    "cccp-sgd": ("rampion-cccp", {"inner": "sgd", "rate": 0.02}, 15),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of the corpora")
    parser.add_argument("--sentences", type=int, default=2000, metavar="N")
    parser.add_argument(
        "--l2", type=float, default=3.0, metavar="X", help="strength of the penalty"
    )
    parser.add_argument("--only", nargs="+", choices=ROWS, default=list(ROWS), metavar="ROW")
    chosen = parser.parse_args()
    folder = find_data(chosen.data)
    if folder is None:
        raise SystemExit("no data; set HOPEFEAR_DATA, or give --data the folder of the corpora")
    text, test = (
        read_sentences(
            folder / f"conll2000/{name}.txt.gz", columns=("word", "pos", "label")
        ).sentences
        for name in ("train", "test")
    )
    data = dataset(text.take(np.arange(chosen.sentences)), "chunking")
    for row in chosen.only:
        print(json.dumps({"row": row, **measured(row, data, test, chosen.l2)}), flush=True)


def measured(row: str, data: Any, test: Any, l2: float) -> dict[str, Any]:
    """Returns time and scores of a learner."""
    learner, params, epochs = ROWS[row]
    params = params | ({"lam": l2} if learner == "ssvm" else {"l2": l2})
    train(data.take(np.arange(20)), learner, params, epochs=2, calibrate=False)
    events: list[dict[str, Any]] = []
    start = time.process_time()
    trained = train(data, learner, params, epochs=epochs, calibrate=False, on_event=[events.append])
    seconds = time.process_time() - start
    structure = Tagging().structure(data)
    weights = np.asarray(trained.model.predictor.weights, np.float64)
    loss: Any = Ramp() if "ramp" in trained.model.signature.split("|")[0] else StructuredHinge()
    held = trained.model.encode(test, "label")
    tags = trained.model.decoder().predict(held.rows)
    return {
        "iterations": len(events),
        "objective": float(LossObjective(structure, loss, data.rows, l2)(weights)[0]),
        "dual": events[-1].get("dual"),
        "gap": events[-1].get("gap", events[-1].get("inner_gap")),
        "f1": scores(held, tags, "bio")["f1"],
        "seconds": round(seconds, 2),
    }


if __name__ == "__main__":
    main()
