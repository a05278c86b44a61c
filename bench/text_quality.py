"""Classes of raw text: accuracy and CPU seconds of scikit-learn and of ours.

    python bench/text_quality.py
    python bench/text_quality.py --repeats 3 --json figures.json

Everybody gets the same lists of strings. CPU seconds are those of training and answering the test
texts, from strings on, minima; compilation and the choice of settings are left out. Our settings
are chosen for each set by cross-validation inside train and dev together, since dev alone has too
few lines to tell them apart; scikit-learn's are given. Everybody is then trained on train.
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
PASSES, FOLDS = 6, 3
# Of an earlier choice, also by cross-validation; docs/results.md has it.
FIXED: dict[str, Any] = {"marks": True, "ngrams": 3, "learner": "adagrad"}
GRID: dict[str, tuple[Any, ...]] = {
    "chars": ((1, 4), (2, 5), (3, 6)),
    "weighting": (("tfidf", 0.0), ("nb", 0.0), ("nb", 0.5), ("nb", 0.6)),
    "rate": (0.12, 0.25),
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


def choose(name: str, data: Texts) -> dict[str, Any]:
    """The settings, passes among them, with the best accuracy in cross-validation."""
    texts = np.array([*data.train[0], *data.dev[0]], dtype=object)
    labels = np.concatenate([data.train[1], data.dev[1]])
    fold = np.arange(len(labels)) % FOLDS
    best, chosen = 0.0, dict[str, Any]()
    for point in itertools.product(*GRID.values()):
        settings = {**FIXED, **dict(zip(GRID, point, strict=True))}
        settings["values"], settings["nb_share"] = settings.pop("weighting")
        scores = np.zeros(PASSES)
        for k in range(FOLDS):
            rest, held = fold != k, fold == k
            model = Classifier(**settings, epochs=PASSES, patience=0)
            model.fit(texts[rest], labels[rest], X_val=texts[held], y_val=labels[held])
            scores += [event["dev"]["accuracy"] / FOLDS for event in model.history_]
        print(name, settings, *(f"{score:.2f}" for score in scores), flush=True)
        if scores.max() > best:
            best = float(scores.max())
            chosen = {**settings, "epochs": int(scores.argmax()) + 1}
    print(f"{name}: chosen {chosen}", flush=True)
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


def rivals(settings: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    """Everybody, by name."""
    return {
        "scikit-learn, words 1-2": words,
        "scikit-learn, words 1-2 and characters 2-5": words_and_chars,
        "ours, words 1-2": lambda: Classifier(ngrams=2),
        "ours, words 1-2 and characters 2-5, tfidf": lambda: Classifier(
            ngrams=2, chars=(2, 5), values="tfidf"
        ),
        "ours, chosen": lambda: Classifier(**settings),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--json", metavar="FILE")
    asked = parser.parse_args()
    sets = {name: load(name) for name in asked.sets}
    figures: dict[str, Any] = common.machine()
    for name, data in sets.items():
        settings = figures[f"{name}: settings"] = choose(name, data)
        for rival, build in rivals(settings).items():
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
