"""How weights of every round of tuning do on other sentences: a table and figures.

Run: python examples/decoder/curves.py --model model --runs runs/* --test 2016 t.de t.en --out out
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from phrasal.arpa import read_arpa
from phrasal.corpus import read_lines, read_sentences
from phrasal.decoding import Decoder
from phrasal.options import SPARSE, read_pairs

from hopefear.metrics.lists import metric_named
from hopefear.report import Plot
from hopefear.translation.weights import Weights

METRICS = {"bleu": metric_named("bleu", tokenize="none"), "chrf": metric_named("chrf")}
DEV = "val"
Curves = dict[str, list[dict[str, Any]]]  # of runs, rounds and sets


def scores(texts: Sequence[str], refs: Sequence[str]) -> dict[str, float]:
    """BLEU and chrF of translations with one reference each."""
    found = {}
    for name, metric in METRICS.items():
        counts = metric.counts(list(texts), [[ref] for ref in refs])
        found[name] = metric.scores(counts.sum(axis=0))[name]
    return found


def first_choices(path: Path) -> list[str]:
    """The first translation of each sentence in a round's list."""
    first: dict[str, str] = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            number, words, _ = line.split(" ||| ", 2)
            first.setdefault(number, words)
    return list(first.values())


def measured(
    runs: Sequence[Path], model: Path, refs: Path, tests: Sequence[Sequence[str]], known: Path
) -> Curves:
    """Scores of all rounds on all sets; what an earlier call has measured is taken from a file."""
    curves: Curves = json.loads(known.read_text()) if known.exists() else {}
    for run in runs:
        state = json.loads((run / "state.json").read_text("utf-8"))
        rounds = curves.setdefault(run.name, [])
        for number in range(len(rounds), len(state["rounds"])):
            weights = Weights.read(run / f"round-{number}" / "weights.txt")
            texts = first_choices(run / f"round-{number}" / "nbest.gz")
            rounds.append(
                {
                    "weights": weights.nnz,
                    "new": state["rounds"][number]["new"],
                    DEV: scores(texts, read_lines(refs)),
                }
            )
    language = read_arpa(read_lines(model / "lm.arpa.gz"))
    for name, source, target in tests:
        sentences, lines = read_sentences(Path(source)), read_lines(Path(target))
        tables = model / "phrase-table.gz", model / "reordering-table.gz"
        pairs = read_pairs(*tables, sentences, SPARSE)
        for run in runs:
            for number, entry in enumerate(curves[run.name]):
                if name not in entry:
                    weights = Weights.read(run / f"round-{number}" / "weights.txt")
                    decoder = Decoder(pairs, language, sentences, weights)
                    texts = [
                        decoder.text(decoder.translate(k, 1), 0) for k in range(len(sentences))
                    ]
                    entry[name] = scores(texts, lines)
                    known.write_text(json.dumps(curves, indent=1) + "\n")
    return curves


def figure(curves: Curves, name: str, title: str) -> str:
    """BLEU by round on one set; runs whose names end alike look alike."""
    plot = Plot(title, "round", "BLEU")
    learners = list(dict.fromkeys(run.partition("-")[0] for run in curves))
    for run, rounds in curves.items():
        learner, _, kind = run.partition("-")
        values = [entry[name]["bleu"] for entry in rounds]
        look = learners.index(learner)
        plot.line(range(len(rounds)), values, run, dashed=kind == "many", look=look)
    return plot.to_svg(720, 420)


def table(curves: Curves, tests: Sequence[str]) -> list[str]:
    """Rows of Markdown: BLEU on val by round, and what the best round of each run is worth."""
    longest = max(map(len, curves.values()))
    numbers = [str(number) for number in range(longest)]
    heads = ["run", *numbers, "kept", "weights", *(f"{t}: BLEU, chrF" for t in (DEV, *tests))]
    rows = [heads, ["---"] * len(heads)]
    for run, rounds in curves.items():
        values = [entry[DEV]["bleu"] for entry in rounds]
        best = values.index(max(values))
        cells = [f"**{v:.2f}**" if k == best else f"{v:.2f}" for k, v in enumerate(values)]
        cells += [""] * (longest - len(cells))
        ends = [
            f"{rounds[best][t]['bleu']:.2f}, {rounds[best][t]['chrf']:.2f}" for t in (DEV, *tests)
        ]
        rows.append([run, *cells, str(best), f"{rounds[best]['weights']:,}", *ends])
    return [f"| {' | '.join(row)} |" for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=Path, required=True, help="folder of estimate.py")
    parser.add_argument("--runs", type=Path, nargs="+", required=True, help="folders of tune --run")
    parser.add_argument("--refs", type=Path, required=True, help="references tuned on")
    parser.add_argument(
        "--test", nargs=3, action="append", default=[], metavar=("NAME", "SOURCE", "TARGET")
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for figures and numbers")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    curves = measured(args.runs, args.model, args.refs, args.test, args.out / "curves.json")
    names = [name for name, _, _ in args.test]
    for name in (DEV, *names):
        title = f"BLEU on {name} by round of tuning with a decoder"
        (args.out / f"{name}.svg").write_text(figure(curves, name, title) + "\n", "utf-8")
    print("\n".join(table(curves, names)))


if __name__ == "__main__":
    main()
