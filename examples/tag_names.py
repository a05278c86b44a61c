"""Find names in sentences: words in, spans with probabilities, alternatives and reasons out.

Run: python examples/tag_names.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import hopefear

FIRST = ["Ada", "Ben", "Cleo", "Dan", "Eve", "Finn"]
LAST = ["Abbot", "Baker", "Carter", "Dyer", "Ewing"]
TOWNS = ["Abbot Falls", "Bakersville", "Port Carter", "Dyer", "New Ewing"]


def sentences(n: int, seed: int) -> tuple[list[list[str]], list[list[str]]]:
    """Returns sentences of names and places, as words and as BIO labels."""
    rng = np.random.default_rng(seed)

    def person() -> list[str]:
        name = [str(rng.choice(FIRST)), str(rng.choice(LAST))]
        return name[slice(*rng.choice([(0, 1), (0, 2), (1, 2)]))]

    X, y = [], []
    for _ in range(n):
        object_ = (
            (person(), "PER") if rng.random() < 0.3 else (str(rng.choice(TOWNS)).split(), "LOC")
        )
        parts = [(person(), "PER"), ([str(rng.choice(["left", "likes", "saw"]))], ""), object_]
        X.append([word for words, _ in parts for word in words])
        y.append(
            [
                f"{'I' if i else 'B'}-{kind}" if kind else "O"
                for words, kind in parts
                for i in range(len(words))
            ]
        )
    return X, y


def main() -> None:
    X, y = sentences(300, seed=1)
    tagger = hopefear.Tagger("sapo", n=5, early_stopping=True, patience=2).fit(X, y)
    scores = tagger.metrics(*sentences(200, seed=2))
    print(f"new sentences: F1 {scores['f1']:.1f}, {scores['accuracy']:.1f} % of the labels right")

    question = ["Eve", "Dyer", "saw", "Dyer"]
    for span in tagger.predict_spans([question])[0]:
        words = " ".join(question[span.start : span.end])
        print(f"  {span.label} {words} (probability {span.probability:.2f})")
    print("the three best labellings:")
    for output in tagger.predict_nbest([question], n=3)[0]:
        print(f"  {output.probability:.4f} {' '.join(output.labels)}")
    reason = tagger.explain([question], sequence=0, token=3)
    print(f"why the last word is {reason.label} and not {reason.runner_up}:")
    for name, gain in reason.contributions[:3]:
        print(f"  {gain:+.2f} {name}")
    print(
        "if it must be a person:", tagger.predict([question], allowed=[[None] * 3 + [["B-PER"]]])[0]
    )

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "names.model"
        tagger.save(path)
        again = hopefear.Tagger.load(path)
        print(f"from a file of {path.stat().st_size:,} bytes:", again.predict_single(question))


if __name__ == "__main__":
    main()
