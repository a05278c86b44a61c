"""A phrase-based stack decoder, small enough to read, that really searches.

It covers a source sentence with phrases of a table in any order a distortion limit allows, keeps
the best partial translations by the number of words they cover, and writes the best whole ones as
a Moses N-best list with the phrase pairs of each.

Run: python examples/decoder/decoder.py --input examples/decoder/data/dev.de --nbest 3
"""

from __future__ import annotations

import argparse
import heapq
import math
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from language_model import LanguageModel, Words
from search_graph import Arc, Node, Option, derivations

HERE = Path(__file__).resolve().parent / "data"
# Untuned on purpose: the first score of the table is trusted most, and fluency little.
DEFAULTS = {
    "LM0": (0.1,),
    "Distortion0": (0.3,),
    "WordPenalty0": (-0.3,),
    "PhrasePenalty0": (0.2,),
    "TranslationModel0": (0.8, 0.1),
}
UNKNOWN = math.log(1e-4)  # each score of a word that the table cannot translate and that is copied


class Translation(NamedTuple):
    """A whole translation: its phrases in target order, its features and its score."""

    phrases: tuple[Option, ...]
    features: dict[str, tuple[float, ...]]
    score: float

    @property
    def words(self) -> Words:
        return tuple(word for phrase in self.phrases for word in phrase.words)

    def line(self, number: int) -> str:
        """The translation as a line of a Moses N-best list."""
        features = " ".join(
            f"{name}= {' '.join(map(_number, values))}" for name, values in self.features.items()
        )
        pairs, at = [], 0
        for phrase in self.phrases:
            pairs.append(f"{_range(phrase.start, phrase.end)}={_range(at, at + len(phrase.words))}")
            at += len(phrase.words)
        text, pairs_text = " ".join(self.words), " ".join(pairs)
        return f"{number} ||| {text} ||| {features} ||| {_number(self.score)} ||| {pairs_text}\n"


class Decoder:
    """Searches translations under weights.

    Parameters
    ----------
    table : dict
        Translations of source phrases with the logarithms of their scores.
    model : LanguageModel
        Scores target words.
    weights : dict
        Names of features and their weights, as ``DEFAULTS``.
    beam : int
        Nodes of a stack that are expanded; larger searches more and takes longer.
    limit : int
        Words that may lie between the end of a phrase and the start of the next in target order.
    pairs : dict, optional
        Weights of single phrase pairs.
    """

    def __init__(
        self,
        table: dict[Words, list[tuple[Words, tuple[float, ...]]]],
        model: LanguageModel,
        weights: dict[str, tuple[float, ...]],
        beam: int = 20,
        limit: int = 5,
        pairs: dict[tuple[Words, Words], float] | None = None,
    ) -> None:
        self.table, self.model, self.weights = table, model, weights
        self.beam, self.limit, self.pairs = beam, limit, pairs or {}
        self.longest = max(map(len, table), default=1)
        self.n_scores = len(weights["TranslationModel0"])

    def decode(self, source: Words, n: int = 1, factor: int = 20) -> list[Translation]:
        """The n best translations with different words, best first.

        ``factor * n`` derivations are looked at, at most.
        """
        options = self.options(source)
        goal = self.search(len(source), options)
        best: dict[Words, Translation] = {}
        for _, phrases in zip(range(factor * n), derivations(goal), strict=False):
            translation = self.translation(phrases)
            best.setdefault(translation.words, translation)
            if len(best) == n:
                break
        return sorted(best.values(), key=lambda translation: -translation.score)

    def options(self, source: Words) -> list[list[Option]]:
        """Returns the phrase pairs for the words from each position on."""
        options_by_start: list[list[Option]] = []
        for start in range(len(source)):
            here = []
            for end in range(start + 1, min(start + self.longest, len(source)) + 1):
                targets = self.table.get(source[start:end], [])
                if end == start + 1 and not targets:
                    targets = [(source[start:end], (UNKNOWN,) * self.n_scores)]
                for words, scores in targets:
                    pair_weight = self.pairs.get((source[start:end], words), 0.0)
                    here.append(self._option(start, end, words, scores, pair_weight))
            options_by_start.append(here)
        return options_by_start

    def _option(
        self, start: int, end: int, words: Words, scores: tuple[float, ...], pair_weight: float
    ) -> Option:
        worth = pair_weight + self.weights["PhrasePenalty0"][0]
        worth -= self.weights["WordPenalty0"][0] * len(words)
        worth += sum(w * s for w, s in zip(self.weights["TranslationModel0"], scores, strict=True))
        fluent = sum(
            self.model.log_p(words[max(0, i + 1 - self.model.order) : i], word)
            for i, word in enumerate(words)
        )
        estimate = worth + self.weights["LM0"][0] * fluent
        return Option(start, end, words, scores, pair_weight, worth, estimate)

    def search(self, size: int, options: list[list[Option]]) -> Node:
        """Fill stacks by the number of covered words; the node all whole translations lead to."""
        future = Future(size, options)
        stacks: list[dict[tuple[int, int, Words], Node]] = [{} for _ in range(size + 1)]
        stacks[0][0, 0, self.model.start()] = Node(0, 0, self.model.start(), 0.0)
        for stack in stacks[:-1]:
            # Stacks fill from smaller ones only, so these nodes get no more arcs.
            for node in heapq.nlargest(
                self.beam, stack.values(), key=lambda node: node.score + future(node.covered)
            ):
                for option in self._extensions(node, options, size):
                    covered = node.covered | _mask(option)
                    gain, history = self._gain(node, option)
                    key = covered, option.end, history
                    following = stacks[covered.bit_count()]
                    if key not in following:
                        following[key] = Node(*key)
                    following[key].join(Arc(node, option, gain))
        goal = Node((1 << size) - 1, size, ())
        for node in stacks[-1].values():
            goal.join(Arc(node, None, self._lm(node.history, "</s>")))
        return goal

    def _extensions(self, node: Node, options: list[list[Option]], size: int) -> Iterator[Option]:
        """Options that fit and leave the first gap within reach, so that no search gets stuck."""
        gap = _first_gap(node.covered)
        for start in range(gap, min(size, node.end + self.limit + 1)):
            if start < node.end - self.limit:
                continue
            for option in options[start]:
                if node.covered & _mask(option):
                    continue
                first = gap if start > gap else _first_gap(node.covered | _mask(option))
                if option.end - first <= self.limit:
                    yield option

    def _gain(self, node: Node, option: Option) -> tuple[float, Words]:
        gain = option.worth - self.weights["Distortion0"][0] * abs(option.start - node.end)
        history = node.history
        for word in option.words:
            gain += self._lm(history, word)
            history = self.model.shift(history, word)
        return gain, history

    def _lm(self, history: Words, word: str) -> float:
        return self.weights["LM0"][0] * self.model.log_p(history, word)

    def translation(self, phrases: tuple[Option, ...]) -> Translation:
        """Features of a derivation, none of which depends on the weights, and their score."""
        words = [word for phrase in phrases for word in phrase.words]
        history, fluent = self.model.start(), 0.0
        for word in [*words, "</s>"]:
            fluent += self.model.log_p(history, word)
            history = self.model.shift(history, word)
        ends = [0, *(phrase.end for phrase in phrases)]
        jumps = sum(abs(p.start - end) for p, end in zip(phrases, ends, strict=False))
        scores = zip(*(phrase.scores for phrase in phrases), strict=True)
        features: dict[str, tuple[float, ...]] = {
            "LM0": (fluent,),
            "Distortion0": (-float(jumps),),
            "WordPenalty0": (-float(len(words)),),
            "PhrasePenalty0": (float(len(phrases)),),
            "TranslationModel0": tuple(map(sum, scores)) if phrases else (0.0,) * self.n_scores,
        }
        score = sum(
            w * value
            for name, values in features.items()
            for w, value in zip(self.weights[name], values, strict=True)
        )
        return Translation(phrases, features, score + sum(phrase.own for phrase in phrases))


class Future:
    """The best score of the uncovered words, without jumps and across no border."""

    def __init__(self, size: int, options: list[list[Option]]) -> None:
        self.best: dict[tuple[int, int], float] = defaultdict(lambda: -math.inf)
        for option in (option for here in options for option in here):
            span = option.start, option.end
            self.best[span] = max(self.best[span], option.estimate)
        for width in range(2, size + 1):
            for start in range(size - width + 1):
                end = start + width
                splits = (self.best[start, m] + self.best[m, end] for m in range(start + 1, end))
                self.best[start, end] = max(self.best[start, end], *splits)
        self.size, self.known = size, dict[int, float]()

    def __call__(self, covered: int) -> float:
        if covered not in self.known:
            total, start = 0.0, None
            for i in range(self.size + 1):
                open_ = i < self.size and not covered >> i & 1
                if open_ and start is None:
                    start = i
                elif not open_ and start is not None:
                    total += self.best[start, i]
                    start = None
            self.known[covered] = total
        return self.known[covered]


def _mask(option: Option) -> int:
    return (1 << option.end) - (1 << option.start)


def _first_gap(covered: int) -> int:
    return (~covered & (covered + 1)).bit_length() - 1


def _number(value: float) -> str:
    return f"{round(value, 4) + 0.0:.4f}".rstrip("0").rstrip(".")  # adding 0 mends minus zero


def _range(start: int, end: int) -> str:
    return str(start) if end == start + 1 else f"{start}-{end - 1}"


def read_table(
    path: Path, max_entries: int = 20
) -> dict[Words, list[tuple[Words, tuple[float, ...]]]]:
    """Reads lines ``source ||| target ||| p p …``; keeps those with the highest first scores."""
    table: dict[Words, list[tuple[Words, tuple[float, ...]]]] = defaultdict(list)
    for line in path.read_text("utf-8").splitlines():
        source, target, scores = (field.split() for field in line.split("|||")[:3])
        table[tuple(source)].append((tuple(target), tuple(math.log(float(s)) for s in scores)))
    for entries in table.values():
        entries.sort(key=lambda entry: -entry[1][0])
        del entries[max_entries:]
    return dict(table)


def read_weights(
    path: str | None,
) -> tuple[dict[str, tuple[float, ...]], dict[tuple[Words, Words], float]]:
    """Lines ``Name= w w …`` over the defaults, and ``pp_source,words~target,words= w``.

    Without a file, or with an empty one, there are only the defaults.
    """
    weights, pairs = dict(DEFAULTS), {}
    for line in Path(path).read_text("utf-8").splitlines() if path else []:
        name, *numbers = line.split() or ["#"]
        name = name.removesuffix("=")
        if name in weights:
            weights[name] = tuple(map(float, numbers))
        elif name.startswith("pp_"):
            source, target = (
                tuple(map(unquote, side.split(","))) for side in name[3:].split("~", 1)
            )
            pairs[source, target] = float(numbers[0])
    return weights, pairs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--input", type=Path, required=True, help="sentences to translate")
    parser.add_argument("--table", type=Path, default=HERE / "phrase-table.txt")
    parser.add_argument(
        "--text", type=Path, default=HERE / "text.en", help="for the language model"
    )
    parser.add_argument("--weights", default=os.environ.get("HOPEFEAR_WEIGHTS"))
    parser.add_argument("--output", default=os.environ.get("HOPEFEAR_NBEST"))
    parser.add_argument("--nbest", type=int, default=100)
    parser.add_argument("--beam", type=int, default=20)
    parser.add_argument("--limit", type=int, default=5, help="longest jump")
    parser.add_argument("--order", type=int, default=3, help="of the language model")
    args = parser.parse_args()
    sentences = [tuple(line.split()) for line in args.text.read_text("utf-8").splitlines()]
    model = LanguageModel(sentences, args.order)
    weights, pairs = read_weights(args.weights)
    decoder = Decoder(read_table(args.table), model, weights, args.beam, args.limit, pairs)
    lines = []
    for number, text in enumerate(args.input.read_text("utf-8").splitlines()):
        lines += [
            candidate.line(number) for candidate in decoder.decode(tuple(text.split()), args.nbest)
        ]
    if args.output:
        Path(args.output).write_text("".join(lines), "utf-8")
    else:
        sys.stdout.writelines(lines)


if __name__ == "__main__":
    main()
