"""Votes on lists: every predictor is kept, and counts as often as it survived a list."""

from __future__ import annotations

import numpy as np
import pytest
from learner_catalogue import RULES, natural_loss
from list_oracle import tiny_lists
from reference import stepwise

from hopefear.averaging.voted import Voted
from hopefear.core.learner import Learner, describe
from hopefear.losses.hinge import Hinge
from hopefear.losses.log import Log
from hopefear.losses.logistic import Logistic
from hopefear.losses.risk import Risk
from hopefear.rules.rda import RDA
from hopefear.structures.nbest import NBest
from hopefear.testing import World
from hopefear.training.decoders.lists import ListDecoder
from hopefear.training.online import OnlineTrainer

FEATURES, SIZES = 6, (3, 2, 4, 2, 5, 3, 4, 2)
ORDER = np.array([0, 1, 2, 3, 4, 5, 6, 7, 3, 2, 0, 5, 4, 4])


def votes_of(kept, n):
    """(weights of every predictor up to a positive factor, how often it survived)."""
    W = np.zeros((kept.drops.size, n))
    for place, j in enumerate(kept.coordinates):
        for e in range(kept.starts[place], kept.starts[place + 1]):
            lives = slice(kept.begin[e], kept.end[e])
            W[lives, j] += kept.level[e] - kept.fall[e] * kept.drops[lives]
    return W, np.diff(kept.survived)


@pytest.mark.parametrize("on", ["all", "mistakes"])
@pytest.mark.parametrize("name", RULES)
def test_predictors_are_the_weights_there_were(name, on):
    loss, rows = natural_loss(RULES[name]), tiny_lists(12, SIZES)
    learner = Learner(loss, RULES[name], Voted(), on if describe(loss)[:6] != "linear" else "all")
    whole, voted = (OnlineTrainer(NBest(FEATURES), learner, np.float64) for _ in range(2))
    copies = stepwise(whole, rows, ORDER)
    voted.learn(rows, ORDER)
    W, counts = votes_of(voted.predictor(), voted.n)
    assert counts.sum() == len(ORDER) and len(counts) == voted.ticks + 1
    for w, snapshot in zip(np.repeat(W, counts.astype(int), axis=0), copies, strict=True):
        sizes = np.linalg.norm(w), np.linalg.norm(snapshot)
        assert (sizes[0] > 1e-9) == (sizes[1] > 1e-9)
        if sizes[1] > 1e-9:
            np.testing.assert_allclose(w / sizes[0], snapshot / sizes[1], atol=1e-6)


@pytest.mark.parametrize("loss", [Hinge(), Logistic(), Log(), Risk()], ids=describe)
def test_the_majority_of_all_predictors_decides(loss):
    """Figures 1 and 2: the stored updates vote as copies of the weights would."""
    rows, structure = tiny_lists(21, SIZES, offsets=False), NBest(FEATURES)
    learner = Learner(loss, RDA(rate=0.5, l1=0.0217), Voted(), "mistakes")
    order = np.tile(np.arange(8), 3)
    trainer = OnlineTrainer(structure, learner, np.float64)
    wanted = np.zeros(len(rows.costs))
    for w in stepwise(trainer, rows, order):
        for i, start in enumerate(rows.starts[:-1]):
            scores = World.at(structure, rows, i, w).F @ w
            if scores.any():  # else it abstains
                # Rounding must not decide between candidates with the same features that count.
                wanted[start + int(np.round(scores, 9).argmax())] += 1
    shares = ListDecoder(structure, trainer.predictor()).scores(rows)
    np.testing.assert_allclose(shares * order.size, wanted, atol=1e-9)
    assert trainer.updates > 3
