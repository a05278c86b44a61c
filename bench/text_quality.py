"""Classes of raw text: accuracy and CPU seconds of scikit-learn and of ours.

    python bench/text_quality.py
    python bench/text_quality.py --repeats 3 --json figures.json

Everybody gets the same lists of strings. CPU seconds are those of training and answering the test
texts, from strings on, minima; compilation and the choice of settings are left out. Our settings
are chosen for each set by cross-validation inside train and dev together, since dev alone has too
few lines to tell them apart; scikit-learn's are given. Everybody is then trained on train, and
once more on train and dev together (`test of both`), as one would before using a model.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import common
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.svm import LinearSVC

from hopefear import Classifier
from hopefear.data.sparse import SparseDataset
from hopefear.data.text import read_strings
from hopefear.tasks.base import train
from hopefear.tasks.classify.task import Classification
from hopefear.training.decoders.classes import ClassDecoder
from hopefear.training.predictors import LinearPredictor

SETS = ("rt_polarity", "subjectivity")
FOLDS = 4
# Of an earlier choice, also by cross-validation; docs/results.md has it.
COUNTED: dict[str, Any] = {"marks": True, "ngrams": 3}
LEARNED: dict[str, Any] = {"learner": "adagrad", "epochs": 5}
CHARS = ((1, 4), (2, 5), (3, 6))
RATES = (0.12, 0.25, 0.5)
SHARES = {"tfidf": (0.0,), "nb": (0.0, 0.4, 0.5, 0.6, 0.75)}  # of naive Bayes, by values


class Texts(NamedTuple):
    """The parts of a set, each a pair of texts and labels."""

    train: tuple[list[str], np.ndarray]
    dev: tuple[list[str], np.ndarray]
    test: tuple[list[str], np.ndarray]

    def both(self) -> tuple[list[str], np.ndarray]:
        """Train and dev, one behind the other."""
        return [*self.train[0], *self.dev[0]], np.concatenate([self.train[1], self.dev[1]])


def load(name: str) -> Texts:
    """A set by its name."""

    def part(name_of_part: str) -> tuple[list[str], np.ndarray]:
        path = common.data_folder() / name / f"{name_of_part}.tsv.gz"
        with gzip.open(path, "rt", encoding="utf-8") as file:
            rows = [line.rstrip("\n").split("\t", 1) for line in file]
        return [text for _, text in rows], np.array([label for label, _ in rows])

    return Texts(part("train"), part("dev"), part("test"))


def words() -> Any:
    """scikit-learn on n-grams of words."""
    return make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LinearSVC(C=0.5))


def words_and_chars() -> Any:
    """scikit-learn on n-grams of words and characters."""
    union = FeatureUnion(
        [
            ("words", TfidfVectorizer(ngram_range=(1, 2))),
            ("chars", TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5))),
        ]
    )
    return make_pipeline(union, LinearSVC(C=0.5))


def choose(name: str, data: Texts) -> dict[str, Any]:
    """The settings with the best accuracy in cross-validation."""
    texts, answers = data.both()
    classes, labels = np.unique(answers, return_inverse=True)
    fold = np.arange(len(labels)) % FOLDS
    rights = Counter[tuple[Any, ...]]()
    for chars in CHARS:
        counted = read_strings(texts, chars=chars, **COUNTED)
        rows = counted.rows._replace(labels=labels.astype(np.int32))
        all_rows = SparseDataset(
            rows, counted.n_features, classes.tolist(), counted.features, counted.source
        )
        for k in range(FOLDS):
            training, held = all_rows.take(fold != k), all_rows.take(fold == k)
            is_used = np.bincount(training.rows.indices, minlength=training.n_features) > 0
            for values in SHARES:
                # A model of these rows would not know the columns of the others.
                scale = np.asarray(training.column_scale(values)) * is_used
                fitted, held_out = (
                    part.transformed(values, "l2", scale) for part in (training, held)
                )
                for rate in RATES:
                    model = train(
                        Classification(),
                        fitted,
                        LEARNED["learner"],
                        {"rate": rate},
                        epochs=LEARNED["epochs"],
                    ).model
                    for share in SHARES[values]:
                        weights = (1.0 - share) * model.predictor.weights
                        size = np.abs(model.predictor.weights[:-1][is_used]).mean()
                        weights[:-1] += share * size * training.naive_bayes()[:, 0]
                        mixed = LinearPredictor(weights)
                        decided, _ = ClassDecoder(model.structure, mixed).decide(held_out.rows)
                        right = np.count_nonzero(decided == held.rows.labels)
                        rights[chars, values, share, rate] += int(right)
    for point, count in rights.most_common():
        print(name, *point, f"{100.0 * count / len(labels):.2f}", flush=True)
    chars, values, share, rate = rights.most_common(1)[0][0]
    chosen = {"chars": chars, "values": values, "nb_share": share, "rate": rate}
    print(f"{name}: chosen {chosen}", flush=True)
    return {**COUNTED, **LEARNED, **chosen}


def measure(build: Callable[[], Any], data: Texts, repeats: int) -> dict[str, float]:
    """Accuracy on dev and test in percent, and CPU seconds."""
    build().fit(*data.train)  # compiles
    seconds = [
        common.cpu_seconds(lambda: build().fit(*data.train).predict(data.test[0]))
        for _ in range(repeats)
    ]
    model = build().fit(*data.train)
    scores = {part: 100.0 * model.score(*getattr(data, part)) for part in ("dev", "test")}
    of_both = 100.0 * build().fit(*data.both()).score(*data.test)
    return {**scores, "test of both": of_both, "seconds": min(seconds)}


def rivals(settings: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    """Everybody, by name."""
    return {
        "scikit-learn, words 1-2": words,
        "scikit-learn, words 1-2 and characters 2-5": words_and_chars,
        "ours, words 1-2": lambda: Classifier(chars=None, marks=False, values="counts"),
        "ours, as nothing is said": lambda: Classifier(),
        "ours, chosen": lambda: Classifier(**settings),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    sets = {name: load(name) for name in args.sets}
    figures: dict[str, Any] = common.machine()
    for name, data in sets.items():
        settings = figures[f"{name}: settings"] = choose(name, data)
        for rival, build in rivals(settings).items():
            row = figures[f"{name}: {rival}"] = measure(build, data, args.repeats)
            print(
                f"{name:14} {rival:45} dev {row['dev']:.2f}  test {row['test']:.2f}  "
                f"of both {row['test of both']:.2f}  {row['seconds']:.2f} s",
                flush=True,
            )
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
