"""A language model by interpolated modified Kneser-Ney smoothing, written in the format of ARPA.

    p(w | h) = (c(h w) - D(c(h w))) / c(h) + γ(h) p(w | h without its first word)

Below the highest order c counts the different words seen before a run, where there are any (Chen
and Goodman, 1998); one word falls back on all words being alike, the unknown one among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from phrasal.corpus import Corpus, numbered, runs_of_words

UNKNOWN, BEGIN, END = "<unk>", "<s>", "</s>"


class Grams(NamedTuple):
    """Runs of one length: where each stands, its probability, and its share for shorter ones."""

    place: np.ndarray
    p: np.ndarray
    gamma: np.ndarray  # 1 where nothing was seen behind it


class Estimate(NamedTuple):
    """What is known of the runs of 1, 2, … words of a text."""

    text: Corpus
    grams: list[Grams]


def estimate(sentences: Sequence[Sequence[str]], order: int) -> Estimate:
    """Estimate a model from sentences; raising the order looks further back."""
    text = numbered(([BEGIN, *sentence, END] for sentence in sentences), (UNKNOWN, BEGIN, END))
    runs = runs_of_words(text, order)
    counts = [np.bincount(r.number[r.number >= 0], minlength=len(r.place)) for r in runs]
    for shorter in range(order - 1):
        longer = runs[shorter + 1]
        behind = runs[shorter].number[longer.place + 1]
        kinds = np.bincount(behind, minlength=len(runs[shorter].place))
        # Nothing stands before the beginning of a sentence: such runs keep their counts.
        inner = text.words[runs[shorter].place] != 1
        counts[shorter] = np.where(inner, kinds, counts[shorter])
    counts[0][[0, 1]] = 0  # never seen; never predicted
    p = np.full(len(text.vocabulary), 1.0 / (len(text.vocabulary) - 1))
    grams = []
    for size, (run, count) in enumerate(zip(runs, counts, strict=True), 1):
        kinds = np.minimum(count, 3)
        discount = discounts(count)[kinds]
        if size == 1:
            head, tail, n_heads = np.zeros(len(count), int), np.arange(len(count)), 1
        else:
            head, n_heads = runs[size - 2].number[run.place], len(runs[size - 2].place)
            tail = runs[size - 2].number[run.place + 1]
        total = np.bincount(head, count, n_heads)
        seen = total > 0
        gamma = np.ones(n_heads)
        gamma[seen] = np.bincount(head, discount, n_heads)[seen] / total[seen]
        p = (count - discount) / np.maximum(total, 1)[head] + gamma[head] * p[tail]
        if size > 1:
            grams[-1] = grams[-1]._replace(gamma=gamma)
        grams.append(Grams(run.place, p, np.ones(len(p))))
    return Estimate(text, grams)


def discounts(counts: np.ndarray) -> np.ndarray:
    """What is taken from runs that were counted 0, 1, 2 and more times.

    A text too small to have runs of each count is given one half for each time, as far as 3.
    """
    n1, n2, n3, n4 = (int((counts == k).sum()) for k in (1, 2, 3, 4))
    wanted = np.array([0.0, 0.5, 1.0, 1.5])
    if min(n1, n2, n3) > 0:
        y = n1 / (n1 + 2 * n2)
        exact = [0.0, 1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3]
        if all(0 < d <= k for k, d in enumerate(exact) if k):
            wanted = np.array(exact)
    return wanted


def arpa_lines(model: Estimate) -> Iterator[str]:
    """Lines of the model in the format of ARPA, logarithms to base 10."""
    text = model.text
    yield "\\data\\"
    for size, grams in enumerate(model.grams, 1):
        yield f"ngram {size}={len(grams.p)}"
    for size, grams in enumerate(model.grams, 1):
        yield f"\n\\{size}-grams:"
        with np.errstate(divide="ignore"):
            logs, backs = np.log10(grams.p).tolist(), np.log10(grams.gamma).tolist()
        last = size == len(model.grams)
        for k, (log, back) in enumerate(zip(logs, backs, strict=True)):
            words = text.vocabulary[k] if size == 1 else text.text(grams.place[k], size)
            if words == BEGIN:
                log = -99.0
            yield f"{log:.7f}\t{words}" + ("" if last or not back else f"\t{back:.7f}")
    yield "\n\\end\\"
