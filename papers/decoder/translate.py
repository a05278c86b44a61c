"""Translate sentences with a phrase table of Moses and an ARPA language model, N-best lists out.

Run: python papers/decoder/translate.py --model model --input val.de.gz --nbest 100
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from phrasal.arpa import read_arpa
from phrasal.corpus import read_lines, read_sentences, write_lines
from phrasal.decoding import Decoder
from phrasal.options import SPARSE, read_pairs
from phrasal.search import Beam

from hopefear.translation.weights import Weights


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=Path, required=True, help="folder of estimate.py")
    parser.add_argument("--input", type=Path, required=True, help="sentences, words split")
    parser.add_argument("--weights", default=os.environ.get("HOPEFEAR_WEIGHTS"))
    parser.add_argument("--output", default=os.environ.get("HOPEFEAR_NBEST"))
    parser.add_argument("--nbest", type=int, default=100, help="0: words of the best ones only")
    parser.add_argument("--most", type=int, default=20, help="entries of a source phrase")
    parser.add_argument("--pops", type=int, default=Beam().pops, help="extensions of a stack")
    parser.add_argument("--stack", type=int, default=Beam().stack, help="nodes to extend of each")
    parser.add_argument("--limit", type=int, default=Beam().limit, help="longest jump")
    parser.add_argument("--sparse", nargs="*", default=(), choices=SPARSE, help="features to add")
    args = parser.parse_args()
    began = time.process_time()
    sentences = read_sentences(args.input)
    # An empty file says: use your own weights.
    given = args.weights if args.weights and os.path.getsize(args.weights) else None
    weights = Weights.read(given or args.model / "weights.txt")
    reordering = args.model / "reordering-table.gz"
    pairs = read_pairs(
        args.model / "phrase-table.gz",
        reordering if reordering.exists() else None,
        sentences,
        args.sparse,
    )
    model = read_arpa(read_lines(args.model / "lm.arpa.gz"))
    beam = Beam(args.pops, args.stack, args.limit)
    decoder = Decoder(pairs, model, sentences, weights, beam, args.most)
    ready = time.process_time()
    lines = []
    for number in range(len(sentences)):
        if args.nbest:
            lines += decoder.lines(number, args.nbest)
        else:
            lines.append(decoder.text(decoder.translate(number, 1), 0))
    if args.output:
        write_lines(Path(args.output), lines)
    else:
        sys.stdout.writelines(f"{line}\n" for line in lines)
    ended = time.process_time()
    print(
        f"{len(sentences)} sentences, {len(lines)} lines: {ready - began:.1f} CPU s to read, "
        f"{ended - ready:.1f} to translate and write",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
