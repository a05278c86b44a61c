"""Named entities the way sklearn-crfsuite's users find them; only the imports are this library's.

Run: python examples/sklearn_crfsuite_tutorial.py [FILE]

FILE has a token a line, its columns word, part of speech and label, and an empty line after each
sentence; without one, sentences are made up.
"""

from __future__ import annotations

import random
import sys
from collections import Counter

from scipy import stats
from sklearn.metrics import make_scorer
from sklearn.model_selection import RandomizedSearchCV, train_test_split

# These two lines are the whole change; they were:
#     import sklearn_crfsuite
#     from sklearn_crfsuite import metrics
from hopefear import crfsuite as sklearn_crfsuite
from hopefear.crfsuite import metrics


def made_up(n, seed):
    """Sentences about who met whom where; a few words are names and other words too."""
    rng = random.Random(seed)
    people = ["Ana", "Luis Soto", "Eva Mora", "Paz", "Rosa Lima", "Hugo"]
    towns = ["Lima", "Soria", "La Paz", "Leon", "San Juan", "Mora"]
    firms = ["Soto Hermanos", "Banco Leon", "Rosa", "Telefonos Lima"]
    frames = [
        ["PER", "met", "PER", "in", "LOC", "."],
        ["ORG", "sold", "its", "shop", "in", "LOC", "to", "ORG", "."],
        ["after", "years", "in", "LOC", "PER", "left", "ORG", "."],
        ["the", "head", "of", "ORG", "is", "PER", ",", "born", "in", "LOC", "."],
    ]
    tags = {"in": "IN", "of": "IN", "after": "IN", "to": "TO", "the": "DT", "its": "PRP$"}
    tags |= {"met": "VBD", "sold": "VBD", "left": "VBD", "is": "VBZ", "born": "VBN"}
    names = {"PER": people, "LOC": towns, "ORG": firms}
    sentences = []
    for _ in range(n):
        sentence = []
        for piece in rng.choice(frames):
            if piece in names:
                for i, word in enumerate(rng.choice(names[piece]).split()):
                    sentence.append((word, "NNP", f"{'I' if i else 'B'}-{piece}"))
            else:
                sentence.append((piece, tags.get(piece, "NN" if piece.isalpha() else piece), "O"))
        sentences.append(sentence)
    return sentences


def read(path):
    with open(path, encoding="utf-8") as file:
        blocks = file.read().strip().split("\n\n")
    return [[tuple(line.split()[:3]) for line in block.splitlines()] for block in blocks]


def describe(word, pos, prefix=""):
    return {
        f"{prefix}word": word.lower(),
        f"{prefix}title": word.istitle(),
        f"{prefix}upper": word.isupper(),
        f"{prefix}pos": pos,
    }


def word2features(sentence, i):
    word, pos, _ = sentence[i]
    features = {"bias": 1.0, "ending": word[-3:], "digit": word.isdigit(), **describe(word, pos)}
    if i > 0:
        features.update(describe(*sentence[i - 1][:2], "-1:"))
    else:
        features["BOS"] = True
    if i < len(sentence) - 1:
        features.update(describe(*sentence[i + 1][:2], "+1:"))
    else:
        features["EOS"] = True
    return features


def sent2features(sentence):
    return [word2features(sentence, i) for i in range(len(sentence))]


def sent2labels(sentence):
    return [label for _, _, label in sentence]


def main():
    sentences = read(sys.argv[1]) if len(sys.argv) > 1 else made_up(300, seed=1)
    train, test = train_test_split(sentences, test_size=0.25, random_state=0)
    X_train, y_train = [sent2features(s) for s in train], [sent2labels(s) for s in train]
    X_test, y_test = [sent2features(s) for s in test], [sent2labels(s) for s in test]

    crf = sklearn_crfsuite.CRF(
        algorithm="lbfgs", c1=0.1, c2=0.1, max_iterations=100, all_possible_transitions=True
    )
    crf.fit(X_train, y_train)

    labels = list(crf.classes_)
    labels.remove("O")
    y_pred = crf.predict(X_test)
    f1 = metrics.flat_f1_score(y_test, y_pred, average="weighted", labels=labels)
    print(f"F1 of the labels but O: {f1:.3f}")
    by_type = sorted(labels, key=lambda name: (name[1:], name[0]))
    print(metrics.flat_classification_report(y_test, y_pred, labels=by_type, digits=3))

    search = RandomizedSearchCV(
        sklearn_crfsuite.CRF(algorithm="lbfgs", max_iterations=20, all_possible_transitions=True),
        {"c1": stats.expon(scale=0.5), "c2": stats.expon(scale=0.05)},
        scoring=make_scorer(metrics.flat_f1_score, average="weighted", labels=labels),
        cv=3,
        n_iter=4,
        random_state=0,
    )
    search.fit(X_train, y_train)
    print(
        "best parameters:", {name: round(value, 3) for name, value in search.best_params_.items()}
    )
    print(f"their F1 in cross-validation: {search.best_score_:.3f}")

    crf = search.best_estimator_
    print("\nlikely transitions:")
    for (before, after), weight in Counter(crf.transition_features_).most_common(5):
        print(f"  {before:6} -> {after:6} {weight:.3f}")
    print("unlikely transitions:")
    for (before, after), weight in Counter(crf.transition_features_).most_common()[-5:]:
        print(f"  {before:6} -> {after:6} {weight:.3f}")
    print("heavy attributes:")
    for (attribute, label), weight in Counter(crf.state_features_).most_common(8):
        print(f"  {weight:.3f} {label:6} {attribute}")

    sure = crf.predict_marginals_single(X_test[0])
    for (word, _, _), chances in zip(test[0], sure, strict=True):
        best = max(chances, key=chances.get)
        print(f"{word:10} {best:6} {chances[best]:.2f}")


if __name__ == "__main__":
    main()
