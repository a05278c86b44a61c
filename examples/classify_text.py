"""Tell hopeful sentences from fearful ones: text in, labels, reasons and a model file out.

Run: python examples/classify_text.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

import hopefear

OPENINGS = ["today", "this year", "tomorrow", "after all", "once again", "in the end", "by now"]
MIDDLES = ["the harvest", "our journey", "the news", "her letter", "the match", "the weather"]
HOPEFUL = ["looks bright", "brings joy", "will surely go well", "gives us courage", "is promising"]
FEARFUL = ["looks grim", "brings sorrow", "may well go wrong", "gives us the shivers", "is ominous"]


def sentences(n: int, seed: int) -> tuple[list[str], list[str]]:
    """Sentences put together at random, one in twenty with the wrong label."""
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for _ in range(n):
        hope = bool(rng.random() < 0.5)
        ending = rng.choice(HOPEFUL if hope else FEARFUL)
        texts.append(f"{rng.choice(OPENINGS)} {rng.choice(MIDDLES)} {ending}")
        labels.append("hope" if hope != (rng.random() < 0.05) else "fear")
    return texts, labels


def main() -> None:
    texts, labels = sentences(2000, seed=1)
    new_texts, new_labels = sentences(500, seed=2)

    words = CountVectorizer(ngram_range=(1, 2))
    X = words.fit_transform(texts)
    model = hopefear.Classifier(learner="adagrad-rda", l1=1e-4, norm="l2", early_stopping=True)
    model.fit(X, labels)
    print(f"accuracy on new sentences {model.score(words.transform(new_texts), new_labels):.3f}")
    print(f"{model.model_.nnz} of {X.shape[1]} weights are not zero; pass {model.best_epoch_} kept")

    question = words.transform(["the harvest looks grim but tomorrow is promising"])
    print(model.predict(question)[0], model.predict_proba(question).round(2))
    names = words.get_feature_names_out()
    for column, gain in model.explain(question).contributions[:3]:
        name = names[int(column)] if column.isdigit() else column
        print(f"  {name:15} {gain:+.2f}")

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "hope.model"
        model.save(path)
        print(
            f"the model file has {path.stat().st_size:,} bytes:",
            hopefear.load_model(path).signature,
        )


if __name__ == "__main__":
    main()
