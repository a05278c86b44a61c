"""What limits do to searches and learners that could stumble over them."""

import numpy as np
import pytest
from chain_oracle import corpus

from hopefear.core.interfaces import UNRIVALLED, n_weights
from hopefear.core.workspace import DenseWeights, Example
from hopefear.costs.hamming import Hamming
from hopefear.data.sequences import SequenceDataset, TokenRows
from hopefear.losses.hinge import Hinge
from hopefear.losses.log import Log
from hopefear.losses.logistic import Logistic
from hopefear.losses.nbest_mira import NBestMIRA
from hopefear.losses.perceptron import Perceptron
from hopefear.losses.sapo import SAPO
from hopefear.losses.structured_hinge import StructuredHinge
from hopefear.structures.chain.chain import Chain
from hopefear.structures.chain.searches import Beam
from hopefear.tasks.tag import task as tagging
from hopefear.tasks.tag.model import scheme_limits
from hopefear.training.decoders.chains import ChainDecoder
from hopefear.training.predictors import LinearPredictor

pytestmark = pytest.mark.interpreted

LABELS = ("O", "B-X", "I-X")


class Nothing:
    """A feature map of two attributes."""

    kind, size, edge_size = "attributes", 2, 0


def two_tokens():
    rows = TokenRows([0, 2], [0, 1, 2], [0, 1], [], [0], [], [], [0, 1], [1.0])
    return SequenceDataset(rows, LABELS, Nothing())


def test_a_beam_that_lost_all_that_is_allowed_is_searched_exactly():
    allowed = [[["O", "B-X"], ["I-X"]]]
    chain = Chain.new(2, 3, search=Beam(1), limits=scheme_limits(LABELS, "bio", allowed))
    weights = np.zeros(n_weights(chain), np.float32)
    weights[0] = 1.0  # O at the first token, after which I-X is illegal
    decoder = ChainDecoder(chain, LinearPredictor(weights))
    (found,) = decoder.k_best(two_tokens().rows, 1)
    assert found.labels.tolist() == [[1, 2]] and decoder.unlimited == 0


def test_limits_of_tokens_hold_even_where_the_scheme_cannot():
    chain = Chain.new(2, 3, limits=scheme_limits(LABELS, "bio", [[["I-X"], ["O"]]]))
    decoder = ChainDecoder(chain, LinearPredictor(np.zeros(n_weights(chain), np.float32)))
    assert decoder.predict(two_tokens().rows).tolist() == [2, 0]
    assert decoder.unlimited == 1


def test_votes_keep_the_limits_of_tokens_too():
    data = two_tokens()
    voted = tagging.train(data, "perceptron", {"averaging": "voted"}, epochs=2, scheme="bio").model
    decoder = voted.decoder(allowed=[[["I-X"], ["B-X"]]])
    assert decoder.predict(data.rows).tolist() == [2, 1] and decoder.unlimited == 1


@pytest.mark.parametrize("weighting", ["wm", "wmr"])
@pytest.mark.parametrize("approach", ["aggressive", "balanced"])
def test_swvp_learns_among_legal_outputs(weighting, approach):
    rows = TokenRows(
        *([0, 3, 6, 8], np.arange(9), [0, 1, 1, 0, 1, 0, 0, 1], [], [0], [], []),
        *([1, 2, 2, 1, 2, 0, 1, 2], np.ones(3)),
    )
    data = SequenceDataset(rows, LABELS, Nothing())
    trained = tagging.train(
        data,
        "swvp",
        {"weighting": weighting, "approach": approach, "averaging": "last"},
        epochs=20,
        constraints="always",
        scheme="bio",
    )
    weights = trained.model.weights
    assert np.isfinite(weights).all() and weights.any()


def test_the_first_of_the_feared_is_the_fear():
    data = corpus(3)
    chain = Chain.new(data.features.size, len(data.labels), data.features.edge_size)
    loss = NBestMIRA(n=3, augmented=True)
    work = chain.workspace(data.rows, loss, np.float64)
    rng = np.random.default_rng(0)
    weights = rng.normal(size=n_weights(chain))
    for i in range(5):
        x = Example(data.rows, i)
        chain.score(x, DenseWeights(weights), work.theta)
        chain.cost_augmented_argmax(x, work.theta, Hamming(), 1.0, work.y)
        T = int(data.rows.starts[i + 1] - data.rows.starts[i])
        assert chain.k_best(x, work.theta, Hamming(), 0.0, work.outputs) >= 1
        np.testing.assert_array_equal(work.outputs[0, :T], work.y[:T])
        assert loss.subgradient(chain, x, work) in (0, 1)


@pytest.mark.parametrize("order", [1, 2])
def test_gold_without_a_rival_has_no_margin_to_win(order):
    """As lists of one candidate and sentences of one tree: no loss, no mistake."""
    data = two_tokens()
    limits = scheme_limits(LABELS, "bio", [[["O"], ["B-X"]]])
    for chain in (Chain.new(2, 3, order=order, limits=limits), Chain.new(2, 1, order=order)):
        rows = data.rows if chain.labels > 1 else data.rows._replace(labels=np.zeros(2, np.int32))
        for loss in (Hinge(), Logistic(), Perceptron(), Log(), StructuredHinge(), SAPO(n=3)):
            work = chain.workspace(rows, loss, np.float64)
            x = Example(rows, 0)
            chain.score(x, DenseWeights(np.zeros(n_weights(chain))), work.theta)
            loss.subgradient(chain, x, work)
            assert work.gold_margin[0] > 0.0 and work.loss[0] == pytest.approx(0.0), type(
                loss
            ).__name__
        assert chain.margin(x, work.theta, work.y, True) == UNRIVALLED
