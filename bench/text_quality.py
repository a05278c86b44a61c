"""Classes of raw text: accuracy and CPU seconds of scikit-learn and of ours, settings by dev.

    python bench/text_quality.py
    python bench/text_quality.py --repeats 3 --json figures.json

Everybody gets the same lists of strings. CPU seconds are those of training and answering the test
texts, from strings on, minima; compilation and the choice of settings are left out. Our settings
are chosen once for all sets, by the mean accuracy on dev; scikit-learn's are given.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import common
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.svm import LinearSVC

from hopefear import Classifier

SETS = ("rt_polarity", "subjectivity")
PASSES = 8
GRID: dict[str, tuple[Any, ...]] = {
    "ngrams": (2, 3),
    "chars": (None, (2, 5), (3, 6), (2, 6)),
    "values": ("tfidf", "nb"),
    "learner": ("adagrad-rda", "adagrad"),
    "rate": (0.25, 0.5),
}


class Texts(NamedTuple):
    """The parts of a set, each a pair of texts and labels."""

    train: tuple[list[str], np.ndarray]
    dev: tuple[list[str], np.ndarray]
    test: tuple[list[str], np.ndarray]


def load(name: str) -> Texts:
    """A set by its name."""

    def part(which: str) -> tuple[list[str], np.ndarray]:
        path = common.data_folder() / name / f"{which}.tsv.gz"
        with gzip.open(path, "rt", encoding="utf-8") as file:
            rows = [line.rstrip("\n").split("\t", 1) for line in file]
        return [text for _, text in rows], np.array([label for label, _ in rows])

    return Texts(part("train"), part("dev"), part("test"))


def words() -> Any:
    """scikit-learn on n-grams of words."""
    return make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LinearSVC(C=0.5))


def words_and_chars() -> Any:
    """scikit-learn on n-grams of words and characters."""
    both = FeatureUnion(
        [
            ("words", TfidfVectorizer(ngram_range=(1, 2))),
            ("chars", TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5))),
        ]
    )
    return make_pipeline(both, LinearSVC(C=0.5))


def choose(sets: dict[str, Texts]) -> dict[str, Any]:
    """The settings, passes among them, that are best on the mean of all dev parts."""
    best, chosen = 0.0, dict[str, Any]()
    for values in itertools.product(*GRID.values()):
        settings = dict(zip(GRID, values, strict=True))
        scores = np.zeros(PASSES)
        for data in sets.values():
            model = Classifier(**settings, epochs=PASSES, patience=0)
            model.fit(*data.train, X_val=data.dev[0], y_val=data.dev[1])
            scores += [event["dev"]["accuracy"] / len(sets) for event in model.history_]
        print(settings, *(f"{score:.2f}" for score in scores), flush=True)
        if scores.max() > best:
            best = float(scores.max())
            chosen = {**settings, "epochs": int(scores.argmax()) + 1}
    print(f"chosen: {chosen}")
    return chosen


def measure(build: Callable[[], Any], data: Texts, repeats: int) -> dict[str, float]:
    """Accuracy on dev and test in percent, and CPU seconds."""
    build().fit(*data.train)  # compiles
    seconds = [
        common.cpu_seconds(lambda: build().fit(*data.train).predict(data.test[0]))
        for _ in range(repeats)
    ]
    model = build().fit(*data.train)
    scores = {part: 100.0 * model.score(*getattr(data, part)) for part in ("dev", "test")}
    return {**scores, "seconds": min(seconds)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", metavar="FILE")
    asked = parser.parse_args()
    sets = {name: load(name) for name in SETS}
    settings = choose(sets)
    rivals: dict[str, Callable[[], Any]] = {
        "scikit-learn, words 1-2": words,
        "scikit-learn, words 1-2 and characters 2-5": words_and_chars,
        "ours, words 1-2, counts, defaults": lambda: Classifier(ngrams=2),
        "ours, words 1-2, nb, defaults": lambda: Classifier(ngrams=2, values="nb"),
        "ours, chosen on dev": lambda: Classifier(**settings),
    }
    figures: dict[str, Any] = {"settings": settings, **common.machine()}
    for name, data in sets.items():
        for rival, build in rivals.items():
            row = figures[f"{name}: {rival}"] = measure(build, data, asked.repeats)
            print(
                f"{name:14} {rival:45} dev {row['dev']:.2f}  test {row['test']:.2f}  "
                f"{row['seconds']:.2f} s",
                flush=True,
            )
    if asked.json:
        with open(asked.json, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
