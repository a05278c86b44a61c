"""Small files of every task, the same bytes on every machine.

Nothing but the standard library makes them, and of `random.Random` nothing but ``random()``, whose
numbers no version of Python changes.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

_WORDS = """
hope fear sea ship wind rain night day storm calm harbour sail mast rope anchor
tide deck crew captain island shore gull wave star map gold chest letter king war
"""
WORDS = _WORDS.split()


class Dice(random.Random):
    """Choices made of ``random()`` alone."""

    def below(self, n: int) -> int:
        return int(self.random() * n)

    def pick(self, values: Sequence):
        return values[self.below(len(values))]

    def noise(self, size: float) -> float:
        """A number around 0, nearly normal."""
        return size * (sum(self.random() for _ in range(6)) - 3.0)


def svmlight(dice: Dice, n: int, classes: Sequence[str]) -> str:
    """Rows of 40 columns; two columns in five lean to one class."""
    lines = []
    for _ in range(n):
        label = dice.below(len(classes))
        columns = {1 + dice.below(40) for _ in range(3 + dice.below(5))}
        columns |= {1 + (5 * dice.below(8) + label) % 40 for _ in range(2)}
        values = (f"{j}:{0.25 + 0.25 * dice.below(6):g}" for j in sorted(columns))
        noisy = label if dice.random() < 0.9 else dice.below(len(classes))
        lines.append(f"{classes[noisy]} {' '.join(values)}\n")
    return "".join(lines)


def tsv(dice: Dice, n: int, classes: Sequence[str]) -> str:
    """Labelled texts; every class has words of its own."""
    lines = []
    for _ in range(n):
        label = dice.below(len(classes))
        own = WORDS[label :: len(classes)]
        text = (dice.pick(own if dice.random() < 0.5 else WORDS) for _ in range(4 + dice.below(5)))
        lines.append(f"{classes[label]}\t{' '.join(text)}\n")
    return "".join(lines)


def tagged(dice: Dice) -> list[tuple[str, str, str]]:
    """Words, parts of speech and chunks of a sentence."""
    tokens = []
    for _ in range(2 + dice.below(2)):
        for kind, share in (("DT", 0.6), ("JJ", 0.4), ("NN", 1.0)):
            if dice.random() < share:
                inside = tokens and tokens[-1][2] != "B-VP"
                label = "I-NP" if inside and tokens[-1][1] in ("DT", "JJ") else "B-NP"
                tokens.append((_word(dice, kind), kind, label))
        tokens.append((_word(dice, "VB"), "VB", "B-VP"))
    tokens.append((".", ".", "O"))
    return [
        (word, dice.pick(("NN", "VB")) if dice.random() < 0.15 else kind, label)
        for word, kind, label in tokens
    ]


def _word(dice: Dice, kind: str) -> str:
    place = ("DT", "JJ", "NN", "VB").index(kind)
    word = dice.pick(WORDS if dice.random() < 0.2 else WORDS[place::4])
    return word.capitalize() if dice.random() < 0.1 else word


def columns(dice: Dice, n: int) -> str:
    return "".join(
        "".join(f"{' '.join(token)}\n" for token in tagged(dice)) + "\n" for _ in range(n)
    )


def conllu(dice: Dice, n: int) -> str:
    sentences = []
    for s in range(n):
        lines = [f"# sent_id = {s}\n"]
        for i, (word, kind, _) in enumerate(tagged(dice), start=1):
            lines.append(f"{i}\t{word}\t{word.lower()}\t{kind}\t_\t_\t{i - 1}\tdep\t_\t_\n")
        sentences.append("".join(lines))
    return "\n".join(sentences) + "\n"


_SHAPES = (
    ("DT NN VB", (2, 3, 0), "det subj root"),
    ("NN VB NN", (2, 0, 2), "subj root obj"),
    ("DT JJ NN VB", (3, 3, 4, 0), "det mod subj root"),
    ("NN JJ VB JJ", (3, 4, 0, 1), "subj mod root mod"),  # its arcs cross
)
# Of the parts of trees, few features: uncompiled, the usual ones take long.
ARCS = """
arc = ["h.tag m.tag", "h.tag m.tag distance", "m.word distance"]
label = ["m.tag", "h.tag m.tag"]
sibling = ["s.tag m.tag"]
grandparent = ["g.tag m.tag"]
"""


def bank(dice: Dice, n: int) -> str:
    """Sentences of three or four words with their trees."""
    lines = []
    for _ in range(n):
        tags, heads, names = dice.pick(_SHAPES[: 3 + (dice.random() < 0.5)])
        for i, row in enumerate(zip(tags.split(), heads, names.split(), strict=True), start=1):
            word = _word(dice, row[0])
            columns = (i, word, word, row[0], row[0], "_", *row[1:], "_", "_")
            lines.append("\t".join(map(str, columns)))
        lines.append("")
    return "\n".join(lines) + "\n"


def attributes(dice: Dice, n: int) -> str:
    """The format of CRFsuite."""
    sentences = []
    for _ in range(n):
        tokens = tagged(dice)
        before = ["BOS", *(word for word, _, _ in tokens)]
        sentences.append(
            "".join(
                f"{label}\tw={word}\tp={kind}\tprevious={last}\tlength:{len(word) / 8:g}\n"
                for (word, kind, label), last in zip(tokens, before, strict=False)
            )
        )
    return "\n".join(sentences) + "\n"


def lists(dice: Dice, n: int) -> str:
    """Candidates with scores, costs, named features and a reference."""
    lines = []
    for i in range(n):
        reference = [dice.pick(WORDS) for _ in range(4 + dice.below(4))]
        candidates = []
        for c in range(3 + dice.below(4)):
            words = [dice.pick(WORDS) if dice.random() < 0.12 * c else word for word in reference]
            wrong = sum(a != b for a, b in zip(words, reference, strict=True))
            named = {"lm": round(-0.3 * wrong + dice.noise(0.4), 3), "long": len(words) > 5}
            named["source"] = "web" if dice.random() < 0.3 + 0.1 * wrong else "book"
            named |= {f"has={word}": 1 for word in words[:2]}
            score = round(-0.2 * wrong + dice.noise(0.5), 3)
            cost = round(wrong / len(reference), 4)
            text = " ".join(words)
            candidates.append({"text": text, "score": score, "cost": cost, "features": named})
        entry = {"id": f"l{i}", "reference": " ".join(reference), "candidates": candidates}
        lines.append(json.dumps(entry) + "\n")
    return "".join(lines)


def trees(dice: Dice, n: int) -> str:
    """Candidate trees of a sentence, and its gold tree."""
    lines = []
    for i in range(n):
        a, b, c, d = (dice.pick(WORDS) for _ in range(4))
        shapes = [
            f"(S1 (S (NP (DT {a}) (NN {b})) (VP (VB {c}) (NP (NN {d})))))",
            f"(S1 (S (NP (DT {a})) (VP (NN {b}) (VB {c}) (NP (NN {d})))))",
            f"(S1 (S (NP (DT {a}) (NN {b}) (VB {c})) (NP (NN {d}))))",
            f"(S1 (FRAG (DT {a}) (VP (NN {b}) (VB {c})) (NP (NN {d}))))",
        ]
        gold = shapes[0 if dice.random() < 0.7 else 1]
        shapes.sort(key=lambda _: dice.random())
        candidates = [
            {"tree": tree, "logprob": round(-9.0 + dice.noise(1.0) + (tree == gold), 3)}
            for tree in shapes
        ]
        tokens = [a, b, c, d]
        entry = {"id": f"t{i}", "tokens": tokens, "gold": gold, "candidates": candidates}
        lines.append(json.dumps(entry) + "\n")
    return "".join(lines)


def moses(dice: Dice, n: int) -> tuple[str, str, str]:
    """N-best lists, references and sources.

    The decoder likes its language model too much: words left out cost it nothing, although the
    second number of TM0 tells them.
    """
    nbest, references, sources = [], [], []
    for i in range(n):
        words = [dice.pick(WORDS[:12]) for _ in range(6 + dice.below(4))]
        for c in range(6):
            wrong = [dice.pick(WORDS[:12]) if dice.random() < 0.08 * c else w for w in words]
            text = wrong[: len(wrong) - dice.below(4)] if c % 2 else wrong
            errors = sum(x != y for x, y in zip(wrong, words, strict=True))
            lm = round(-0.4 * len(text) + dice.noise(0.3), 4)
            tm = (round(-0.5 * errors + dice.noise(0.5), 4), len(text) - len(words))
            sparse = "".join(f" wt_{word}= 1" for word in sorted(set(text)) if word < "h")
            spans = " ".join(f"{k}={k}" for k in range(len(text)))
            score = lm + 0.2 * tm[0] + 0.1 * tm[1]
            dense = f"LM0= {lm:g} TM0= {tm[0]:g} {tm[1]}"
            nbest.append(
                f"{i} ||| {' '.join(text)} ||| {dense}{sparse} ||| {score:.5f} ||| {spans}\n"
            )
        references.append(" ".join(words) + "\n")
        sources.append(" ".join(f"s{word}" for word in words) + "\n")
    return "".join(nbest), "".join(references), "".join(sources)


_PLAIN: dict[str, Callable[[Dice, int], str]] = {
    "two.svm": lambda dice, n: svmlight(dice, n, ("-1", "+1")),
    "many.svm": lambda dice, n: svmlight(dice, n, ("1", "2", "3", "5")),
    "two.tsv": lambda dice, n: tsv(dice, n, ("bad", "good")),
    "many.tsv": lambda dice, n: tsv(dice, n, ("land", "sea", "sky")),
    "chunks.txt": columns,
    "words.conllu": conllu,
    "spans.crfsuite": attributes,
    "lists.jsonl": lists,
    "trees.jsonl": trees,
    "bank.conllu": bank,
}
# Rows of the files for training, development and test.
_SIZES = {"svm": (60, 30, 20), "tsv": (60, 30, 20)}


def write(folder: Path) -> None:
    """Write ``train-NAME``, ``dev-NAME`` and ``test-NAME`` of every format."""
    (folder / "arcs.toml").write_text(ARCS, encoding="utf-8")
    for part, kind in enumerate(("train", "dev", "test")):
        for place, (name, generator) in enumerate(_PLAIN.items()):
            dice = Dice(100 * part + place)
            n = _SIZES.get(name.split(".")[1], (24, 12, 8))[part]
            (folder / f"{kind}-{name}").write_text(generator(dice, n), encoding="utf-8")
        texts = moses(Dice(100 * part + 50), (24, 12, 8)[part])
        for suffix, text in zip(("nbest", "ref", "src"), texts, strict=True):
            (folder / f"{kind}-moses.{suffix}").write_text(text, encoding="utf-8")
