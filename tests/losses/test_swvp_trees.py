"""Sets of words that a gold tree makes: by lengths of arcs, and subtrees."""

from __future__ import annotations

import numpy as np
import pytest

from hopefear.averaging.last import Last
from hopefear.core.learner import Learner
from hopefear.errors import CombinationError
from hopefear.losses.swvp import (
    AGGRESSIVE,
    BALANCED,
    LENGTHS,
    OWN,
    SUBTREES,
    SWVP,
    WM,
    WMR,
    substructures,
)
from hopefear.rules.sgd import SGD
from hopefear.structures.chain.chain import Chain
from hopefear.training.online import OnlineTrainer
from tests.support.small_trees import dataset, quick, small_treebank, train  # noqa: F401 - a fixture

pytestmark = pytest.mark.interpreted


def by_length(heads):
    lengths = [abs(m - h) for m, h in enumerate(heads, 1)]
    return [[m for m, one in enumerate(lengths) if one == each] for each in sorted(set(lengths))]


def subtrees(heads):
    def above(m):
        return [m, *above(heads[m - 1])] if m else []

    words = range(1, len(heads) + 1)
    return [[m - 1 for m in words if w in above(m)] for w in words]


@pytest.mark.parametrize("approach", [AGGRESSIVE, BALANCED])
@pytest.mark.parametrize("weighting", [WM, WMR])
@pytest.mark.parametrize(("jj", "sets"), [(LENGTHS, by_length), (SUBTREES, subtrees)])
@pytest.mark.parametrize("seed", range(4))
def test_sets_are_those_of_the_gold_tree(jj, sets, approach, weighting, seed):
    bank = small_treebank(1, seed, crossing=0.5)
    data = dataset(bank, 1, features="light", hash_bits=10)

    def weights(loss):
        return train(data, Learner(loss, SGD(), Last(), "mistakes"), epochs=4).model.weights

    own = SWVP(approach, weighting, 2.0, OWN, False, own=substructures(sets(bank.heads.tolist())))
    ours = weights(SWVP(approach, weighting, 2.0, jj, False))
    np.testing.assert_array_equal(ours, weights(own))
    assert ours.any()


def test_tokens_of_a_chain_have_no_heads():
    with pytest.raises(CombinationError, match=r"needs heads.*tokens have no heads; use jj=runs"):
        OnlineTrainer(Chain.new(3, 2), Learner(SWVP(jj=SUBTREES), SGD(), Last()))
