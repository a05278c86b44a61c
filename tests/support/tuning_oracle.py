"""Small tuning problems in plain NumPy, and real ones where their data is there."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from list_oracle import rows_of
from places import DATA

from hopefear.data.lists.dataset import ListDataset
from hopefear.metrics.lists import Bleu, GivenCost
from hopefear.translation.tuners.problem import TuningProblem

# What Moses starts from: word and phrase penalty, translation, reordering, distortion, LM.
DEFAULTS = np.array([-1.0, 0.2, *[0.2] * 4, *[0.3] * 6, 0.3, 0.5])


def small_problem(seed=1, lists=24, features=5, bleu=True, dev=False, sizes=(1, 9)):
    """(problem, dense features of all candidates): lists whose cost some weights know, noisily.

    The first three features are dense; each other one occurs in some candidates only.
    """
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=features)

    def made():
        matrices = [
            np.where(np.arange(features) < 3, 1.0, rng.random((n, features)) < 0.3)
            * np.round(rng.normal(size=(n, features)), 2)
            for n in rng.integers(*sizes, size=lists)
        ]
        matrix = np.concatenate(matrices).astype(np.float32)
        good = 1.0 / (1.0 + np.exp(-matrix @ truth - 0.3 * rng.normal(size=len(matrix))))
        counts = bleu_counts(good, rng)
        costs = Bleu(tokenize="none").costs(counts) if bleu else 1.0 - good
        cuts = np.cumsum([len(m) for m in matrices])[:-1]
        rows = rows_of(matrices, np.split(costs, cuts))
        found = ListDataset(rows, None, counts if bleu else None, "bleu" if bleu else "cost")
        return found, matrix

    data, matrix = made()
    metric = Bleu(tokenize="none") if bleu else GivenCost()
    start = np.round(rng.normal(size=features), 2)
    return TuningProblem(data, metric, start, made()[0] if dev else None), matrix


def bleu_counts(good, rng):
    """Counts of made-up sentences: the better, the more n-grams match."""
    length = rng.integers(8, 14, size=len(good))
    totals = length[:, None] - np.arange(4)
    matches = np.floor(totals * good[:, None] ** (1 + np.arange(4)))
    wanted = np.full(len(good), 10)
    return np.column_stack([matches, totals, length, wanted]).astype(np.int64)


@functools.cache
def real_lists(name="val"):
    """The 100-best lists of Multi30k with their 14 dense features."""
    from hopefear.data.moses.reader import read_moses
    from hopefear.metrics.lists import Bleu
    from hopefear.translation.features import learned

    folder = DATA / "multi30k-nbest"
    if not (folder / f"{name}.nbest.xz").exists():
        pytest.skip(f"no lists at {folder}; set HOPEFEAR_DATA to a folder with multi30k-nbest")
    lists = read_moses(
        str(folder / f"{name}.nbest.xz"), str(folder / f"{name}.en"), metric=Bleu(tokenize="none")
    )
    return learned(lists, Bleu(tokenize="none"), ("dense",))


def real_problem():
    """Those of val, to be tuned from the weights that Moses starts with."""
    return TuningProblem(real_lists(), Bleu(tokenize="none"), DEFAULTS)
