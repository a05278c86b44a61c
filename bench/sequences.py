"""The speed goals of sequence labelling, in passes of CRFsuite's averaged perceptron.

    python bench/sequences.py
    python bench/sequences.py --only passes gradient --repeats 7 --json figures.json
    python bench/sequences.py --quick

CoNLL-2000 with the 19 templates of CRFsuite's chunking example, one thread. R is the mean CPU time
of passes 1 to 10 of CRFsuite's averaged perceptron on the same attributes. Everything takes turns
with it; the minimum over the runs counts, of passes pass by pass. Compilation is left out. What
is shown without a goal is there for comparison.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import common
import numpy as np
import sequences_corpus as corpus
import sequences_goals as goals
import sequences_memory as memory
import sequences_passes as ours
import sequences_whole as whole
from crfsuite_reference import Reference

from hopefear_papers.frame import find_data

QUICK = (400, 200)  # sentences of training and test


def main() -> None:
    chosen = arguments()
    with tempfile.TemporaryDirectory() as folder:
        files = corpus.files(find_data(chosen.data))
        if chosen.quick:
            files = corpus.shortened(files, QUICK, Path(folder))
        result = measure(files, chosen, Path(folder))
    print(goals.table(result["rows"]), file=sys.stderr)
    print(f"R = {result['R']:.4f} CPU seconds; load {result['machine']['load']}", file=sys.stderr)
    text = json.dumps(result, ensure_ascii=False) + "\n"
    if chosen.json == "-":
        sys.stdout.write(text)
    elif chosen.json is not None:
        Path(chosen.json).write_text(text, "utf-8")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder that holds conll2000")
    parser.add_argument("--only", nargs="+", choices=list(goals.GOALS), default=list(goals.GOALS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--passes", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="a few sentences, to see that it runs")
    parser.add_argument("--json", nargs="?", const="-", metavar="FILE", help="also write as JSON")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.repeats, chosen.passes = 1, 2
    if chosen.passes < 1 or chosen.repeats < 1:
        parser.error("--passes and --repeats must be 1 or more")
    return chosen


def measure(files: corpus.Files, chosen: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Let everything that was chosen take turns; the figures of all rows."""
    log("reference")
    reference = Reference(corpus.read(files.train))
    tasks: dict[str, Any] = {"R": lambda: np.array(reference.passes(chosen.passes))}
    tokens, needed = 0, {}
    data = whole.data_of(files.train)
    if "passes" in chosen.only:
        log("passes")
        tasks |= ours.pass_tasks(data, list(ours.LEARNERS), chosen.passes)
    if "gradient" in chosen.only:
        tasks |= ours.gradient_tasks(data)
    if "text" in chosen.only:
        tasks |= whole.text_tasks(files.train)
    if "lists" in chosen.only:
        tasks |= whole.list_tasks(files.train)
    if "tagging" in chosen.only:
        log("tagging")
        tagging, tokens = whole.tagging_tasks(files, chosen.passes)
        tasks |= tagging
    if "f1" in chosen.only:
        for name in ("sapo", "perceptron"):
            log(f"passes to F1, {name}")
            scores = whole.f1_by_pass(files, name)
            needed[name] = whole.passes_needed(scores), scores
            tasks |= whole.f1_tasks(files, name, needed[name][0] or len(scores), folder)
    least = {
        name: np.min(np.array(runs), axis=0) for name, runs in turns(tasks, chosen.repeats).items()
    }
    check_attributes(data.features.size, reference.attributes)
    R = float(np.mean(least.pop("R")))
    values, notes = figures(least, tokens)
    values["text crfsuite"] = reference.reading + reference.numbering
    for name, (passes, scores) in needed.items():
        note = f"{passes} passes" if passes else f"not reached: {max(scores):.2f}"
        for key in (f"f1 {name}", f"f1 {name} process"):
            values[key], notes[key] = (values[key], note) if passes else (None, note)
    peaks = {}
    if "memory" in chosen.only:
        log("memory")
        peaks = memory.measure(files.train, folder)
        values |= memory.figures(peaks)
    rows = [
        goals.line(key, goal, values[key], R, notes.get(key, ""))
        for group in chosen.only
        for key, goal in goals.GOALS[group].items()
    ]
    return {
        "R": R,
        "rows": rows,
        "repeats": chosen.repeats,
        "passes": chosen.passes,
        "sentences": len(data),
        "attributes": data.features.size,
        "f1_by_pass": {name: scores for name, (_, scores) in needed.items()},
        "least": {name: np.asarray(seconds).tolist() for name, seconds in least.items()},
        "memory_mb": peaks,
        "machine": common.machine(),
        "versions": {name: version(name) for name in ("hopefear", "numba", "python-crfsuite")},
    }


def turns(tasks: dict[str, Any], repeats: int) -> dict[str, Any]:
    log(f"{len(tasks)} tasks take turns, {repeats} times")
    return common.interleave(tasks, repeats)


def figures(least: dict[str, Any], tokens: int) -> tuple[dict[str, Any], dict[str, str]]:
    """Seconds, tokens a second and ratios from the minima of all tasks, and notes on them."""
    values: dict[str, Any] = {}
    notes: dict[str, str] = {}
    for name, seconds in least.items():
        if name.startswith("pass "):
            values[name] = float(np.mean(seconds[:-1]))
            notes[name] = f"first {seconds[0]:.3f} s, last {seconds[-2]:.3f} s"
        elif name in ("tag", "decode"):
            values[name] = tokens / float(np.min(seconds))
        elif name in ("text", "lists", "tuples") or name.startswith("f1 "):
            values[name] = float(seconds)
    if "pass perceptron" in least:
        values["average"] = float(least["pass perceptron"][-1])
    if "text process" in least:
        values["text imports"], values["text process"] = map(float, least["text process"])
    if "gradient 1" in least:
        single, double = (np.min(least[f"gradient {jobs}"], axis=0) for jobs in (1, 2))
        values["gradient"], values["threads"] = float(single[0]), float(single[1] / double[1])
    return values, notes


def check_attributes(our_count: int, their_count: int) -> None:
    if our_count != their_count:
        raise SystemExit(
            f"our templates make {our_count:,} attributes and CRFsuite counts {their_count:,}; "
            "epochs over different attributes cannot be compared"
        )


def log(message: str) -> None:
    print(f"… {message}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
