"""How weights of every round of tuning do on other sentences: a table and figures.

Run: python papers/decoder/curves.py --model model --runs runs/* --test 2016 t.de t.en --out out
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from phrasal.arpa import LanguageModel, read_arpa
from phrasal.corpus import read_lines, read_sentences, write_lines
from phrasal.decoding import Decoder
from phrasal.options import SPARSE, read_pairs

from hopefear.metrics.lists import metric_named
from hopefear.metrics.significance import paired_tests
from hopefear.report import Plot
from hopefear.translation.weights import Weights

METRICS = {"bleu": metric_named("bleu", tokenize="none"), "chrf": metric_named("chrf")}
DEV = "val"
Curves = dict[str, list[dict[str, Any]]]  # of runs, rounds and sets


def scores(texts: Sequence[str], refs: Sequence[str]) -> dict[str, float]:
    """BLEU and chrF of translations with one reference each."""
    found = {}
    for name, metric in METRICS.items():
        counts = metric.statistics([[ref] for ref in refs], list(texts))
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


class Translator:
    """Translates sets of sentences under the weights of rounds; what it has done is in files.

    Parameters
    ----------
    model : path
        A folder of ``estimate.py``.
    tests : sequence of (name, source, target)
        Names of sets and paths of their sentences and references.
    folder : path
        Keeps translations.
    """

    def __init__(self, model: Path, tests: Sequence[Sequence[str]], folder: Path) -> None:
        self.model, self.folder = model, folder
        self.sources = {name: read_sentences(Path(source)) for name, source, _ in tests}
        self.refs = {name: read_lines(Path(target)) for name, _, target in tests}
        self._pairs: dict[str, Any] = {}
        folder.mkdir(parents=True, exist_ok=True)

    @cached_property
    def language(self) -> LanguageModel:
        return read_arpa(read_lines(self.model / "lm.arpa.gz"))

    def texts(self, run: Path, number: int, name: str) -> list[str]:
        """Best translations of a set under the weights of a round."""
        path = self.folder / f"{run.name}.{number}.{name}"
        if not path.exists():
            sentences = self.sources[name]
            if name not in self._pairs:
                tables = self.model / "phrase-table.gz", self.model / "reordering-table.gz"
                self._pairs = {name: read_pairs(*tables, sentences, SPARSE)}
            weights = Weights.read(run / f"round-{number}" / "weights.txt")
            decoder = Decoder(self._pairs[name], self.language, sentences, weights)
            best = [decoder.text(decoder.translate(k, 1), 0) for k in range(len(sentences))]
            write_lines(path, best)
        return read_lines(path)

    def counts(self, run: Path, number: int) -> np.ndarray:
        """Statistics of BLEU of all sentences of all sets."""
        rows = [
            METRICS["bleu"].statistics([[ref] for ref in refs], self.texts(run, number, name))
            for name, refs in self.refs.items()
        ]
        return np.concatenate(rows)


def measured(runs: Sequence[Path], refs: Path, translator: Translator, known: Path) -> Curves:
    """Scores of every round on the first set, on others of the first and the kept one.

    What an earlier call has measured is taken from a file.
    """
    curves: Curves = json.loads(known.read_text()) if known.exists() else {}
    for run in runs:
        state = json.loads((run / "state.json").read_text("utf-8"))
        rounds = curves.setdefault(run.name, [])
        for number in range(len(rounds), len(state["rounds"])):
            weights = Weights.read(run / f"round-{number}" / "weights.txt")
            texts = first_choices(run / f"round-{number}" / "nbest.gz")
            new = state["rounds"][number]["new"]
            entry = {"weights": weights.nnz, "new": new, DEV: scores(texts, read_lines(refs))}
            rounds.append(entry)
    for place, (name, lines) in enumerate(translator.refs.items()):
        for run in runs:
            for number, entry in enumerate(curves[run.name]):
                wanted = place == 0 or number in (0, kept(curves[run.name]))
                if wanted and name not in entry:
                    entry[name] = scores(translator.texts(run, number, name), lines)
                    known.write_text(json.dumps(curves, indent=1) + "\n")
    return curves


def kept(rounds: Sequence[dict[str, Any]]) -> int:
    """The round that did best on the sentences that were tuned on."""
    values = [entry[DEV]["bleu"] for entry in rounds]
    return values.index(max(values))


def tests_against(
    base: Path, runs: Sequence[Path], curves: Curves, translator: Translator
) -> list[str]:
    """Paired tests of the kept rounds of runs against those of one, all test sets together."""
    rows = [
        "| run | difference | 95 % | p, bootstrap | p, randomisation |",
        "|---|---|---|---|---|",
    ]
    second = translator.counts(base, kept(curves[base.name]))
    for run in runs:
        if run.name != base.name:
            first = translator.counts(run, kept(curves[run.name]))
            test = paired_tests(METRICS["bleu"], first, second, "bleu", 1000, 1)
            rows.append(
                f"| {run.name} | {test['difference']:+.2f} | {test['low']:+.2f} to "
                f"{test['high']:+.2f} | {test['p_bootstrap']:.3f} | "
                f"{test['p_randomisation']:.3f} |"
            )
    return rows


def figure(curves: Curves, name: str, title: str) -> str:
    """BLEU by round on one set; runs whose names begin alike look alike.

    Rounds that lost a quarter of the best score or more are off the axis, which says so.
    """
    all_values = np.array([entry[name]["bleu"] for rounds in curves.values() for entry in rounds])
    usual = all_values[all_values > 0.75 * all_values.max()]
    limits = float(np.floor(usual.min())), float(np.ceil(usual.max()))
    plot = Plot(title, "round", "BLEU", y_range=limits)
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
        values, best = [entry[DEV]["bleu"] for entry in rounds], kept(rounds)
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
        "--test",
        nargs=3,
        action="append",
        default=[],
        metavar=("NAME", "SOURCE", "TARGET"),
        help="other sentences: the first set for every round, others for the kept one",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for figures and numbers")
    parser.add_argument("--against", help="name of a run to compare the others with")
    args = parser.parse_args()
    translator = Translator(args.model, args.test, args.out / "texts")
    curves = measured(args.runs, args.refs, translator, args.out / "curves.json")
    curves = {run.name: curves[run.name] for run in args.runs}
    for name in (DEV, *list(translator.refs)[:1]):
        title = f"BLEU on {name} by round of tuning with a decoder"
        (args.out / f"{name}.svg").write_text(figure(curves, name, title) + "\n", "utf-8")
    print("\n".join(table(curves, list(translator.refs))))
    if args.against:
        (base,) = (run for run in args.runs if run.name == args.against)
        print("", *tests_against(base, args.runs, curves, translator), sep="\n")


if __name__ == "__main__":
    main()
