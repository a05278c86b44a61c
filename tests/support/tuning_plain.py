"""Tuning in plain NumPy and Python: MIRA as the slides have it, BLEU in a growing corpus."""

from __future__ import annotations

import itertools
import math

import numpy as np
from list_oracle import rows_of

from hopefear.data.lists.dataset import ListDataset
from hopefear.translation.examples import translations
from hopefear.translation.lists import lists_in_memory


def small_lists(n=12, candidates=6, seed=1, **more):
    """Generated lists with counts of BLEU."""
    return lists_in_memory(*translations(n, candidates, seed=seed), **more)


def oracles_first(data, matrix):
    """Lists with these dense features, the cheapest candidates first."""
    starts, costs = data.rows.starts, data.rows.costs
    order = np.lexsort((costs, np.repeat(np.arange(len(data)), np.diff(starts))))
    rows = rows_of(*(np.split(array[order], starts[1:-1]) for array in (matrix, costs)))
    return ListDataset(rows, data.features, data.counts[order], data.metric)


def slices(lists):
    return [slice(a, b) for a, b in itertools.pairwise(lists.starts.tolist())]


def sentence_costs(counts):
    """1 - BLEU of each candidate by itself, orders above the first with one more of each."""
    found = []
    for row in np.asarray(counts, float):
        matched, total, length, reference = row[:4], row[4:8], row[8], row[9]
        if length == 0 or matched[0] == 0:
            found.append(1.0)
            continue
        logs = [math.log(matched[0] / total[0])]
        logs += [math.log((matched[n] + 1) / (total[n] + 1)) for n in range(1, 4)]
        short = min(0.0, 1.0 - reference / length)
        found.append(1.0 - math.exp(short + sum(logs) / 4))
    return np.array(found)


def corpus_bleu(sums):
    """BLEU, 0 to 1, of summed counts, without smoothing."""
    matched, total = np.asarray(sums[:4], float), np.asarray(sums[4:8], float)
    if (matched == 0).any():
        return 0.0
    short = math.exp(1 - sums[9] / sums[8]) if sums[8] < sums[9] else 1.0
    return short * math.exp(np.log(matched / total).mean())


class PlainCorpus:
    """Costs of a list's candidates by what each would add to the corpus of those before it."""

    def __init__(self, reach, memory, enters, price):
        self.first, self.entered = np.ones(10), []
        self.reach, self.memory, self.enters, self.price = reach, memory, enters, price

    @property
    def sums(self):
        """What the slides have beside the sentence in hand: 0.9² stats(i-2) + 0.9 stats(i-1)."""
        n, past = len(self.entered), [self.first, *self.entered]
        powers = [n, *range(n, 0, -1)]
        return sum(self.memory**k * stats for k, stats in zip(powers, past, strict=True))

    def costs(self, counts, points):
        sums = self.sums
        costs = np.array([-corpus_bleu(sums + c) * (sums[9] + c[9]) / self.reach for c in counts])
        chosen = {
            "hope": np.argmax(points - self.price * costs),
            "prediction": np.argmax(points),
            "oracle": np.argmin(costs),
        }[self.enters]
        self.entered.append(counts[chosen])
        return costs


def mira(lists, start, orders, *, C, price, toward, away, background="none", memory=0.9):
    """Weights after every list of every order, as the slides update them.

    ``w += lambda (h_up - h_down)``, ``lambda = min(C, (rho - w·(h_up - h_down)) / |…|²)`` where the
    margin ``rho`` is the price of what ``down`` costs more.
    """
    features, w = lists.dense.astype(np.float64), np.array(start, np.float64)
    counts = np.asarray(lists.counts, np.float64)
    own, where, ticks = sentence_costs(counts), slices(lists), []
    reach = np.mean([counts[s][0, 9] for s in where])
    corpus = None if background == "none" else PlainCorpus(reach, memory, background, price)
    for order in orders:
        for i in order:
            h = features[where[i]]
            points = h @ w
            costs = own[where[i]] if corpus is None else corpus.costs(counts[where[i]], points)
            up = np.argmax(points - price * costs) if toward == "hope" else np.argmin(costs)
            down = {
                "fear": np.argmax(points + price * costs),
                "prediction": np.argmax(points),
                "worst": np.argmax(costs),
            }[away]
            delta = h[up] - h[down]
            broken = price * (costs[down] - costs[up]) - w @ delta
            if broken > 0 and delta @ delta > 0:
                w = w + min(C, broken / (delta @ delta)) * delta
            ticks.append(w)
    return np.array(ticks)
