"""Estimate a translation system from parallel text: alignments, phrases, a language model.

Run: python papers/decoder/estimate.py --source train.de.gz --target train.en.gz --out model
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from phrasal import alignment, extraction, kneser_ney
from phrasal.corpus import numbered, read_sentences, write_lines

# What Moses gives an untuned system; each name has as many weights as its tables have scores.
FIRST = {
    "LM0": (0.5,),
    "Distortion0": (0.3,),
    "WordPenalty0": (-1.0,),
    "PhrasePenalty0": (0.2,),
    "UnknownWordPenalty0": (1.0,),
    "TranslationModel0": (0.2,) * 4,
    "LexicalReordering0": (0.3,) * 6,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--source", type=Path, required=True, help="sentences, words split")
    parser.add_argument("--target", type=Path, required=True, help="their translations")
    parser.add_argument("--out", type=Path, required=True, help="folder for the model")
    parser.add_argument("--model1", type=int, default=5, help="rounds of EM of IBM model 1")
    parser.add_argument("--markov", type=int, default=5, help="rounds of the Markov model")
    parser.add_argument("--longest", type=int, default=5, help="words of a phrase")
    parser.add_argument("--order", type=int, default=4, help="of the language model")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    began = time.process_time()

    def say(what: str) -> None:
        print(f"{time.process_time() - began:7.1f} CPU s  {what}", flush=True)

    sides = read_sentences(args.source), read_sentences(args.target)
    if len(sides[0]) != len(sides[1]):
        parser.error(
            f"{args.source} has {len(sides[0])} lines, {args.target} {len(sides[1])}; "
            "line i of one must translate line i of the other"
        )
    f, e = map(numbered, sides)
    say(f"{len(f):,} pairs of sentences, {len(f.words):,} and {len(e.words):,} words")

    directions = []
    for one, other in ((f, e), (e, f)):
        cells = alignment.cells(one, other)
        model = alignment.train(one, other, cells, args.model1, args.markov)
        directions.append((cells, alignment.best_origins(one, other, cells, model)))
        say(f"aligned; log-likelihood of a word {model.likelihoods[-1] / len(one.words):.3f}")
    links = alignment.symmetrised(f, e, directions[0][1], directions[1][1])
    say(f"{links.sum():,} links")

    cells = directions[0][0], directions[1][0]
    found = extraction.occurrences(f, e, links, *cells, args.longest)
    table = extraction.scored(f, e, found, args.longest)
    say(f"{len(found.rows):,} phrase pairs, {len(table.best):,} different ones")
    pairs, reordering = extraction.table_lines(f, e, links, found, table)
    write_lines(args.out / "phrase-table.gz", pairs)
    write_lines(args.out / "reordering-table.gz", reordering)
    say("tables written")

    model = kneser_ney.estimate(sides[1], args.order)
    write_lines(args.out / "lm.arpa.gz", kneser_ney.arpa_lines(model))
    sizes = ", ".join(f"{len(grams.p):,}" for grams in model.grams)
    say(f"language model of {sizes} runs of words")
    weights = (f"{name}= {' '.join(map(str, values))}" for name, values in FIRST.items())
    write_lines(args.out / "weights.txt", weights)


if __name__ == "__main__":
    main()
