"""Tuners on real lists that a decoder of Moses wrote, compiled: uncompiled, each takes minutes."""

from __future__ import annotations

import pytest
from tuning_oracle import real_problem

from hopefear.translation.tuners.annealed_risk import AnnealedRisk
from hopefear.translation.tuners.hols import Hols
from hopefear.translation.tuners.oro import Oro
from hopefear.translation.tuners.pro import Pro


@pytest.fixture(scope="module")
def problem():
    return real_problem()


# What they must be above; Pro the score of the peer, 40.72.
@pytest.mark.parametrize(
    ("tuner", "score"),
    [(Oro(epochs=2), 40.5), (Hols(), 40.5), (AnnealedRisk(), 41.0), (Pro(), 40.72)],
)
def test_real_lists_are_tuned(problem, tuner, score):
    assert problem.score(problem.start) == pytest.approx(39.59, abs=0.005)
    assert problem.score(tuner.tune(problem).weights) > score
