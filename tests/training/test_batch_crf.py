"""CRFs in batch: objective against enumeration, optimum against CRFsuite, runs against reruns."""

from __future__ import annotations

import functools
import gzip
import itertools
import re
import signal

import numba
import numpy as np
import pytest
from places import DATA

from hopefear.core.interfaces import n_weights
from hopefear.data.sequences import SequenceDataset, TokenRows
from hopefear.errors import CombinationError, HopefearError
from hopefear.recipes import CHAIN_RECIPES
from hopefear.structures.chain import likelihood
from hopefear.structures.chain.chain import Chain
from hopefear.structures.chain.likelihood import CRFObjective
from hopefear.training.batch import Batch
from hopefear.training.checkpoints import Checkpoints, InterruptedTrainingError
from hopefear.training.decoders.chains import ChainDecoder
from hopefear.training.loop import fit
from hopefear.training.passes import Whole
from hopefear.training.predictors import LinearPredictor
from hopefear.training.stopping import Stopping

INTERPRETED = bool(numba.config.DISABLE_JIT)
ATTRIBUTES, EDGE_ATTRIBUTES = 7, 3
BatchCRF = functools.partial(Batch, observed=True)


def fit_batch(structure, learner, rows, **more):
    return fit(structure, learner, Whole(rows), **more)


def draw(seed, lengths=(3, 1, 4, 2), labels=3, *, valued=False, rich=False, weighted=False):
    """Random sentences; every token has some attributes."""
    rng = np.random.default_rng(seed)
    tokens = sum(lengths)

    def attributes(most):
        bags = [rng.permutation(most)[: rng.integers(1, 4)] for _ in range(tokens)]
        return np.cumsum([0, *map(len, bags)]), np.concatenate(bags)

    indptr, indices = attributes(ATTRIBUTES)
    edge_indptr, edge_indices = attributes(EDGE_ATTRIBUTES) if rich else ([0], [])
    rows = TokenRows(
        np.cumsum([0, *lengths]),
        indptr,
        indices,
        rng.normal(size=len(indices)) if valued else [],
        edge_indptr,
        edge_indices,
        rng.normal(size=len(edge_indices)) if valued else [],
        rng.integers(0, labels, tokens),
        rng.uniform(0.0, 2.0, len(lengths)) if weighted else np.ones(len(lengths)),
    )
    return frozen(rows)


def frozen(rows):
    """The rows as datasets hold them; other types of arrays would compile again."""
    return SequenceDataset(rows, [str(c) for c in range(max(rows.labels) + 1)], None).rows


def chain(labels=3, order=1, rich=False):
    return Chain.new(ATTRIBUTES, labels, EDGE_ATTRIBUTES if rich else 0, order)


def features(structure, rows, i, y):
    """Coordinates and counts of a labelled sentence, straight from the layout."""
    width, counts = structure.width, np.zeros(n_weights(structure))
    pairs = structure.attributes * width
    triples = pairs + (1 + structure.edge_attributes) * width * width

    def entries(indptr, indices, values, k):
        for p in range(indptr[k], indptr[k + 1]):
            yield int(indices[p]), float(values[p]) if values.size else 1.0

    for t, label in enumerate(y):
        k = rows.starts[i] + t
        for a, value in entries(rows.indptr, rows.indices, rows.values, k):
            counts[a * width + label] += value
        if t > 0:
            pair = label * width + y[t - 1]
            counts[pairs + pair] += 1.0
            if structure.edge_attributes:
                for a, value in entries(rows.edge_indptr, rows.edge_indices, rows.edge_values, k):
                    counts[pairs + (1 + a) * width * width + pair] += value
        if t > 1 and structure.order == 2:
            counts[triples + pair * width + y[t - 2]] += 1.0
    return counts


def enumerated(structure, rows, weights):
    """Minus the log likelihood and its gradient, over all label sequences."""
    loss, gradient = 0.0, np.zeros(n_weights(structure))
    for i, weight in enumerate(rows.weights):
        gold = rows.labels[rows.starts[i] : rows.starts[i + 1]]
        every = [
            features(structure, rows, i, y)
            for y in itertools.product(range(structure.labels), repeat=len(gold))
        ]
        scores = np.array(every) @ weights
        right = features(structure, rows, i, gold)
        log_z = np.logaddexp.reduce(scores)
        loss += weight * (log_z - right @ weights)
        gradient += weight * (np.exp(scores - log_z) @ np.array(every) - right)
    return loss, gradient


CASES = [
    {"order": order, "rich": rich, "valued": valued, "weighted": weighted}
    for order, rich in [(1, False), (1, True), (2, False), (2, True)]
    for valued, weighted in [(False, False), (True, True)]
]


@pytest.mark.parametrize("observed", [True, False])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_value_and_gradient_are_those_of_enumeration(case, observed, monkeypatch):
    monkeypatch.setattr(likelihood, "_WAVE", 100)  # edge attributes come in several waves
    case = dict(case)
    structure = chain(order=case.pop("order"), rich=case["rich"])
    rows = draw(3, **case)
    objective = CRFObjective(structure, rows, l2=0.25, observed=observed)
    rng = np.random.default_rng(1)
    w = rng.normal(size=objective.n).astype(np.float32).astype(np.float64)
    weights = np.zeros(n_weights(structure))
    weights[objective.coordinates] = w
    loss, gradient = enumerated(structure, rows, weights)
    for _ in range(2):  # nothing is left over from the call before
        value, g = objective(w)
        assert value == pytest.approx(loss + 0.25 * w @ w, rel=1e-6)
        np.testing.assert_allclose(
            g, gradient[objective.coordinates] + 0.5 * w, rtol=1e-5, atol=1e-5
        )
    assert objective.loss == pytest.approx(loss, rel=1e-6)
    np.testing.assert_array_equal(objective.spread(w), weights.astype(np.float32))
    np.testing.assert_array_equal(objective.gather(weights), w)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("rich", [True, False])
def test_observed_means_used_by_gold_and_all_means_no_padding(order, rich):
    structure, rows = chain(order=order, rich=rich), draw(5, rich=rich)
    gold = np.zeros(n_weights(structure))
    every = np.zeros(n_weights(structure))
    for i in range(len(rows.weights)):
        y = rows.labels[rows.starts[i] : rows.starts[i + 1]]
        gold += features(structure, rows, i, y)
    seen = CRFObjective(structure, rows, observed=True).coordinates
    np.testing.assert_array_equal(seen, np.flatnonzero(gold))
    n = ATTRIBUTES * 3 + (1 + rich * EDGE_ATTRIBUTES) * 9 + (order == 2) * 27
    everything = CRFObjective(structure, rows, observed=False).coordinates
    every[everything] = 1.0
    assert everything.size == n
    assert np.all(every[seen] == 1.0)


@pytest.mark.parametrize(("order", "rich"), [(1, False), (2, False), (1, True)])
def test_threads_change_no_bit(order, rich):
    structure = chain(order=order, rich=rich)
    rows = draw(2, lengths=tuple(1 + k % 6 for k in range(60)), rich=rich, weighted=True)
    models = [
        fit_batch(structure, BatchCRF(l2=0.1, max_iter=8), rows, n_jobs=jobs) for jobs in (1, 2, 3)
    ]
    assert len({model.predictor.weights.tobytes() for model in models}) == 1
    assert len({model.trainer.search.value for model in models}) == 1


def test_weights_count_sentences():
    twice = draw(4, lengths=(3, 2, 3, 2))
    tokens, entries = 5, twice.indptr[5]
    twice = twice._replace(
        indptr=np.concatenate([twice.indptr[:6], twice.indptr[1:6] + entries]),
        indices=np.tile(twice.indices[:entries], 2),
        labels=np.tile(twice.labels[:tokens], 2),
    )
    once = twice._replace(
        starts=twice.starts[:3],
        indptr=twice.indptr[:6],
        indices=twice.indices[:entries],
        labels=twice.labels[:tokens],
        weights=np.full(2, 2.0, np.float32),
    )
    a, b = CRFObjective(chain(), frozen(twice)), CRFObjective(chain(), frozen(once))
    w = np.random.default_rng(0).normal(size=a.n)
    assert a(w)[0] == pytest.approx(b(w)[0], rel=1e-12)
    np.testing.assert_allclose(a(w)[1], b(w)[1], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("order", [1, 2])
def test_mistakes_are_sentences_that_are_labelled_wrong(order):
    structure, rows = chain(order=order), draw(6, lengths=(4, 1, 3, 2) * 5)
    objective = CRFObjective(structure, rows)
    w = np.random.default_rng(1).normal(size=objective.n)
    wrong, unsure = 0, 0
    objective(w)
    decoder = ChainDecoder(structure, LinearPredictor(objective.spread(w)))
    predicted, probabilities = decoder.predict(rows), np.exp(decoder.log_likelihoods(rows))
    wrong = sum(
        not np.array_equal(predicted[a:b], rows.labels[a:b])
        for a, b in itertools.pairwise(rows.starts)
    )
    unsure = int((probabilities <= 0.5).sum())
    assert objective.mistakes == wrong < unsure


def test_the_optimum_does_not_depend_on_the_start():
    structure, rows = chain(), draw(8, lengths=(4,) * 12)
    crf = BatchCRF(l2=0.5, tolerance=1e-9)
    cold = fit_batch(structure, crf, rows)
    w0 = np.random.default_rng(3).normal(size=n_weights(structure))
    warm = fit_batch(structure, crf, rows, start=w0)
    assert cold.converged and warm.converged
    np.testing.assert_allclose(warm.predictor.weights, cold.predictor.weights, atol=2e-3)
    again = fit_batch(structure, crf, rows, start=cold.predictor.weights)
    assert len(again.history) < len(cold.history)


def test_l1_gives_zeros_and_satisfies_the_conditions_of_the_optimum():
    structure, rows = chain(), draw(9, lengths=(4,) * 12)
    crf = BatchCRF(l1=1.0, l2=0.1, tolerance=1e-9, observed=False)
    found = fit_batch(structure, crf, rows)
    w = found.trainer.search.w
    _, g = found.trainer.objective(w)
    zero = w == 0.0
    assert 0 < zero.sum() < w.size
    assert np.all(np.abs(g[zero]) <= 1.0 + 1e-4)
    np.testing.assert_allclose(g[~zero], -np.sign(w[~zero]), atol=2e-3)
    assert found.predictor.nnz == (~zero).sum() == found.history[-1]["nnz"]


def test_events_tell_what_happened():
    events = []
    result = fit_batch(chain(), BatchCRF(max_iter=5), draw(1), on_event=[events.append])
    assert [event["epoch"] for event in events] == [1, 2, 3, 4, 5]
    assert [event["samples"] for event in events] == [4, 8, 12, 16, 20]
    assert all(event["seconds"] >= 0.0 for event in events)
    assert np.all(np.diff([event["objective"] for event in events]) < 0.0)
    last = events[-1]
    assert last["mistakes"] == sum(event["pass_mistakes"] for event in events)
    assert last["loss"] * 4 + (result.trainer.search.w**2).sum() == pytest.approx(last["objective"])
    assert (result.converged, result.trainer.updates) == (False, 5)


def test_early_stopping_gives_the_best_model_back():
    scores = iter([50.0, 70.0, 60.0, 65.0, 99.0])
    seen = []

    def evaluate(predictor):
        seen.append(predictor)
        return {"accuracy": next(scores)}

    result = fit_batch(
        *(chain(), BatchCRF(), draw(1)),
        evaluate=evaluate,
        stopping=Stopping("accuracy", patience=2),
    )
    assert result.best_epoch == 2
    assert result.predictor is seen[1]
    assert len(result.history) == 4


def test_an_interrupted_run_goes_on_to_the_same_model(tmp_path):
    structure, rows = chain(), draw(1, lengths=(4,) * 10)
    crf = BatchCRF(l1=0.1, l2=0.1, memory=3, max_iter=25)

    def run(folder, listeners=(), resume=False):
        n = iter(range(100))
        return fit_batch(
            *(structure, crf, rows),
            evaluate=lambda predictor: {"accuracy": float(-abs(next(n) - 3))},
            stopping=Stopping("accuracy", patience=0),
            on_event=listeners,
            checkpoints=Checkpoints(folder, every=0.0),
            resume=resume,
        )

    def interrupt(event):
        if event["epoch"] == 9:
            signal.raise_signal(signal.SIGINT)

    whole = run(tmp_path / "whole")
    with pytest.raises(InterruptedTrainingError, match="interrupted after iteration 9; saved in"):
        run(tmp_path / "parts", [interrupt])
    resumed = run(tmp_path / "parts", resume=True)
    assert resumed.trainer.search.w.tobytes() == whole.trainer.search.w.tobytes()
    assert resumed.predictor.weights.tobytes() == whole.predictor.weights.tobytes()
    assert [e["objective"] for e in resumed.history] == [e["objective"] for e in whole.history]
    assert (resumed.best_epoch, len(resumed.history)) == (whole.best_epoch, len(whole.history))
    finished = run(tmp_path / "parts", resume=True)
    assert finished.trainer.search.w.tobytes() == whole.trainer.search.w.tobytes()
    with pytest.raises(HopefearError, match="another run: its signature"):
        fit_batch(
            *(structure, BatchCRF(), rows),
            checkpoints=Checkpoints(tmp_path / "parts"),
            resume=True,
        )


def test_what_cannot_be_learned_from_is_refused():
    rows = draw(1)
    with pytest.raises(HopefearError, match="gold labels, numbers from 0 to 2; the data has -1"):
        fit_batch(chain(), BatchCRF(), rows._replace(labels=np.full(10, -1, np.int32)))
    nothing = rows._replace(starts=rows.starts[:1], weights=rows.weights[:0])
    with pytest.raises(HopefearError, match="no examples"):
        fit_batch(chain(), BatchCRF(), nothing)


@pytest.mark.parametrize(("key", "value"), [("l1", -1.0), ("l2", np.inf), ("max_iter", 0)])
def test_senseless_parameters_are_refused(key, value):
    with pytest.raises(CombinationError, match=f"Batch: {key} must be"):
        BatchCRF(**{key: value})


def test_recipes_build_and_refuse_as_others_do():
    recipe = CHAIN_RECIPES["crf-lbfgs"]
    assert recipe.build(**{"max-iter": "7", "l2": 1, "observed": "false"}) == BatchCRF(
        max_iter=7, observed=False
    )
    assert recipe.parameters()["l2"] == recipe.build().l2
    assert CHAIN_RECIPES["crf-owlqn"].build().l1 > 0.0
    with pytest.raises(HopefearError, match="crf-lbfgs has no parameter 'memry'; did you mean"):
        recipe.build(memry=1)
    with pytest.raises(HopefearError, match="max_iter must be a whole number, not 'many'"):
        recipe.build(max_iter="many")


def test_signatures_tell_what_else_was_said():
    assert "|epochs:3|v:" in BatchCRF().signature(epochs=3)
    fitted = fit_batch(chain(), BatchCRF(max_iter=50), draw(1), epochs=2, n_jobs=2)
    assert len(fitted.history) == fitted.trainer.updates == 2


def conll(sentences):
    """Attributes and labels of the first sentences of CoNLL-2000: words and tags around a token."""
    path = DATA / "conll2000" / "train.txt.gz"
    if not path.exists():
        pytest.skip(f"CoNLL-2000 is not here: no {path.name} in HOPEFEAR_DATA or shared/data")
    with gzip.open(path, "rt") as file:
        blocks = file.read().split("\n\n")[:sentences]
    for block in blocks:
        tokens = [line.split() for line in block.splitlines()]
        yield (
            [
                [
                    f"{column}[{offset}]={tokens[t + offset][column]}"
                    for column, offset in itertools.product((0, 1), (-1, 0, 1))
                    if 0 <= t + offset < len(tokens)
                ]
                for t in range(len(tokens))
            ],
            [token[2] for token in tokens],
        )


@pytest.mark.needs("bench")
@pytest.mark.skipif(INTERPRETED, reason="500 sentences take too long interpreted")
def test_the_optimum_is_that_of_crfsuite(tmp_path, capfd):
    import pycrfsuite

    attributes: dict[str, int] = {}
    labels: dict[str, int] = {}
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=True)
    trainer.set_params({"c2": 0.7, "feature.possible_states": False, "epsilon": 1e-6})
    starts, indptr, indices, y = [0], [0], [], []
    for tokens, tags in conll(500):
        trainer.append(tokens, tags)
        for token in tokens:
            indices += [attributes.setdefault(a, len(attributes)) for a in token]
            indptr.append(len(indices))
        y += [labels.setdefault(tag, len(labels)) for tag in tags]
        starts.append(len(y))
    trainer.train(str(tmp_path / "model"))
    logged = "".join(trainer.logparser.log) + capfd.readouterr().out
    theirs = float(re.findall(r"Loss: ([\d.]+)", logged)[-1])
    rows = TokenRows(*(starts, indptr, indices, [], [0], [], [], y, np.ones(len(starts) - 1)))
    structure = Chain.new(len(attributes), len(labels))
    ours = fit_batch(structure, BatchCRF(l2=0.7, tolerance=1e-7), frozen(rows))
    assert ours.trainer.objective.n == int(re.findall(r"Number of features: (\d+)", logged)[-1])
    assert ours.trainer.search.value == pytest.approx(theirs, rel=1e-5)
