"""Choose among parses: bracketed lists in a file, a sparse model, scores beside the parser's.

Sentences say who saw whom with what. The parser cannot tell whether "with" belongs to the verb or
to the noun; the words can.

Run: python examples/rerank_parses.py
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np

import hopefear

PEOPLE = ["ann", "bob", "carl", "dora", "eve", "finn"]
SEEN = ["dog", "man", "horse", "child", "bird", "king"]
TOOLS = ["telescope", "mirror", "lens", "camera"]
BELONGINGS = ["collar", "hat", "tail", "crown", "smile"]


def low(who: str, whom: str, what: str) -> str:
    """The one who is seen has it."""
    phrase = f"(PP (IN with) (NP (DT a) (NN {what})))"
    return f"(S1 (S (NP (NNP {who})) (VP (VBD saw) (NP (NP (DT the) (NN {whom})) {phrase}))))"


def high(who: str, whom: str, what: str) -> str:
    """It is seen with."""
    phrase = f"(PP (IN with) (NP (DT a) (NN {what})))"
    return f"(S1 (S (NP (NNP {who})) (VP (VBD saw) (NP (DT the) (NN {whom})) {phrase})))"


def flat(who: str, whom: str, what: str) -> str:
    """A poor parse."""
    phrase = f"(DT the) (NN {whom}) (IN with) (DT a) (NN {what})"
    return f"(S1 (S (NP (NNP {who})) (VP (VBD saw)) (NP {phrase})))"


def write(path: Path, n: int, seed: int) -> None:
    """Lists of three parses, the likeliest first, of a parser that ignores words."""
    rng = np.random.default_rng(seed)
    with path.open("w") as out:
        for i in range(n):
            tool = bool(rng.random() < 0.5)
            words = [
                str(rng.choice(nouns)) for nouns in (PEOPLE, SEEN, TOOLS if tool else BELONGINGS)
            ]
            gold = (high if tool else low)(*words)
            candidates = [
                {"tree": parse(*words), "logprob": -20.0 + float(rng.normal(scale=2)) - poor}
                for parse, poor in ((low, 0.0), (high, 0.5), (flat, 2.0))
            ]
            candidates.sort(key=lambda candidate: -candidate["logprob"])
            out.write(json.dumps({"id": f"s{i}", "gold": gold, "candidates": candidates}) + "\n")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for seed, (name, n) in enumerate((("train", 300), ("dev", 60), ("test", 100))):
            write(Path(folder) / name, n, seed)
        model = hopefear.Reranker("vrda", features="ptb", l1=1e-2, sparse_average=True)
        model.fit(model.read(f"{folder}/train"), X_val=model.read(f"{folder}/dev"))
        test = model.read(f"{folder}/test")

    evaluation = model.evaluate(test)
    print(evaluation.text())
    sizes = f"{model.model_.nnz} of {model.model_.about['data']['features']}"
    print(f"{sizes} features have a weight; the heaviest:")
    for name, weight in model.model_.top(3):
        print(f"  {weight:+.3f} {name}")

    block = test[0]
    chosen = model.predict(block)
    i = int(np.argmax(chosen > 0))  # the parser's first stands first
    begin = int(block.starts[i])
    print(f"the parser's first: {block.texts[begin]}")
    print(f"the model's choice: {block.texts[begin + int(chosen[i])]}")


if __name__ == "__main__":
    main()
