"""Lists of translations for tests of tuning, and their features as dense tables."""

from __future__ import annotations

import random

import numpy as np
from tuning_plain import slices

from hopefear.metrics.lists import metric_named
from hopefear.translation.examples import translations
from hopefear.translation.lists import lists_in_memory

BLEU = metric_named("bleu", tokenize="none")
WORDS = ["the", "house", ",", "50%", "%2C", "a=b", "~", "größe", "本", "x,y", "#", "ng_", "[", "A"]
# What str.split splits at, beside blanks.
BLANKS = [" ", "  ", "\t", "\n", "\r\n", "\x1c", "\x85", "\xa0", "\u2003", "\u3000"]


def rich(n=20, seed=1, names=30):
    """Lists with dense, sparse and phrase features; a phrase pair may come twice."""
    rng = np.random.default_rng(seed)
    lists, references = translations(n, 5, seed=seed)
    for candidates in lists:
        for one in candidates:
            for j in rng.choice(names, 3, replace=False).tolist():
                one["features"][f"s_{j}"] = float(rng.integers(1, 4)) / 2
            pairs = rng.integers(names, size=4).tolist()
            one["phrases"] = [(f"q{j} x", f"t{j}") for j in pairs]
    return lists_in_memory(lists, references)


def named_values(entries, c):
    """Names and summed values of candidate ``c``."""
    found = {}
    for e in range(entries.indptr[c], entries.indptr[c + 1]):
        name = entries.names[entries.ids[e]]
        found[name] = found.get(name, 0.0) + (
            1.0 if entries.values is None else float(entries.values[e])
        )
    return found


def matrix(lists, features):
    """All candidates by all features, as the lists have them."""
    table = np.zeros((lists.n_candidates, features.size))
    place = {}
    for j in range(features.size):
        group = "dense" if j < features.n_dense else "named"
        place[group, features.name(j)] = j
    for c in range(lists.n_candidates):
        if features.layout:
            table[c, : features.n_dense] = lists.dense[c]
        for entries in (lists.sparse, lists.phrases):
            for name, value in {} if entries is None else named_values(entries, c).items():
                if ("named", name) in place:
                    table[c, place["named", name]] += value
    return table


def encoded_matrix(data):
    rows, table = data.rows, np.zeros((data.n_candidates, data.features.size))
    for i in range(len(data)):
        features = rows.features[rows.scopes[i] : rows.scopes[i + 1]]
        for c in range(rows.starts[i], rows.starts[i + 1]):
            for e in range(rows.indptr[c], rows.indptr[c + 1]):
                table[c, features[rows.columns[e]]] += rows.values[e]
    return table


def differences(table, lists):
    """Values less those of the first candidate of each list: all that a choice depends on."""
    return np.concatenate([table[s] - table[s][:1] for s in slices(lists)])


def odd_lists(n=8, candidates=6, seed=1, **more):
    """Lists over few words, so that n-grams repeat; some candidates are empty or equal."""
    draw = random.Random(seed)
    lists = []
    for i in range(n):
        base = [draw.choice(WORDS) for _ in range(draw.randint(1, 9))]
        found = []
        for c in range(1 if i == 3 else candidates):
            words = [draw.choice(WORDS) if draw.random() < 0.2 else word for word in base]
            if draw.random() < 0.3:
                words += base[:2]
            if i == 5 and c == 2:
                words = []
            text = "".join(word + draw.choice(BLANKS) for word in words)
            features = {"LM0": draw.gauss(0.0, 1.0)}
            if draw.random() < 0.5:
                features["s_1"] = 0.5
            found.append((text, features, draw.gauss(-50.0, 1.0)))
        lists.append(found)
    references = [found[-1][0].strip() or "the house" for found in lists]
    return lists_in_memory(lists, references, **more)


def written(folder, lists, references):
    """The same lists as files of Moses."""
    lines = []
    for i, candidates in enumerate(lists):
        for one in candidates:
            features = " ".join(
                f"{name}= {' '.join(map(repr, value if isinstance(value, list) else [value]))}"
                for name, value in one["features"].items()
            )
            lines.append(f"{i} ||| {one['text']} ||| {features} ||| {one['score']!r}\n")
    nbest, refs = folder / "nbest", folder / "refs"
    nbest.write_text("".join(lines))
    refs.write_text("".join(f"{line}\n" for line in references))
    return nbest, refs
