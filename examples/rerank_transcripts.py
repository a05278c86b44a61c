"""Choose among transcripts: texts and references in, word errors down, reasons and a file out.

Run: python examples/rerank_transcripts.py
"""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import hopefear

SENTENCES = ["we see the calm sea", "two ships sail by the sea", "they hear the sea from here"]
HEARD = {"sea": "see", "see": "sea", "two": "to", "by": "buy", "hear": "here", "here": "hear"}


def hypotheses(reference: str, n: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Returns hypotheses of a recogniser, with an uninformative acoustic score."""
    texts = {reference}
    for _ in range(n):
        words = [HEARD.get(w, w) if rng.random() < 0.4 else w for w in reference.split()]
        texts.add(" ".join(words))
    return [
        {
            "text": text,
            "score": float(rng.normal()),
            "features": {f"pair={a} {b}": 1 for a, b in pairwise(["<s>", *text.split(), "</s>"])},
        }
        for text in sorted(texts)
    ]


def spoken(n: int, seed: int) -> tuple[list[list[dict[str, Any]]], list[str]]:
    """Returns lists of hypotheses, and the transcripts."""
    rng = np.random.default_rng(seed)
    y = [str(rng.choice(SENTENCES)) for _ in range(n)]
    return [hypotheses(reference, 6, rng) for reference in y], y


def main() -> None:
    X, y = spoken(60, seed=1)
    new, truth = spoken(30, seed=2)
    model = hopefear.Reranker("mira", metric="wer", epochs=5).fit(X, y)
    evaluation = model.evaluate(new, truth)
    print(
        f"word error rate {evaluation.model.scores['wer']:.1f}, of the recogniser's first choices "
        f"{evaluation.baseline.scores['wer']:.1f} (p = {evaluation.test['p_bootstrap']:.3f})"
    )

    order, chances = model.rank(new)[0], model.predict_proba(new)[0]
    print(f"said: {truth[0]}")
    for c in order:
        print(f"  {chances[c]:.3f} {new[0][c]['text']}")
    print("pairs of words that speak for a transcript, and against:")
    liked, disliked = model.model_.top(3), model.model_.bottom(3)
    for (liked_word, up), (disliked_word, down) in zip(liked, disliked, strict=True):
        print(f"  {up:+.2f} {liked_word:20} {down:+.2f} {disliked_word}")

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "speech.model"
        model.save(path)
        again = hopefear.Reranker.load(path)
        print(f"from a file of {path.stat().st_size:,} bytes:", again.predict(new[:5]))


if __name__ == "__main__":
    main()
