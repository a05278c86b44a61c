"""The task ``rerank``: from lists to data, training, votes, evaluation."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, pairwise

import numpy as np
import pytest
from places import DATA as CORPORA

from hopefear.averaging.voted import Voted
from hopefear.core.learner import Learner
from hopefear.data.generators import candidate_lists
from hopefear.data.lists.candidates import CandidateLists, NamedEntries
from hopefear.data.lists.dataset import ListDataset, ListRows, encoded, idle_lists
from hopefear.errors import CombinationError, HopefearError, InputError
from hopefear.losses.hinge import Hinge
from hopefear.metrics.lists import metric_named
from hopefear.recipes.scales import mean_distances, mean_regret
from hopefear.rules.rda import RDA
from hopefear.rules.sgd import SGD
from hopefear.structures.nbest import NBest
from hopefear.tasks.base import train
from hopefear.tasks.rerank.answers import evaluate
from hopefear.tasks.rerank.estimator import Reranker
from hopefear.tasks.rerank.prepare import chosen, dataset
from hopefear.tasks.rerank.task import Reranking, scores
from hopefear.training.checkpoints import Checkpoints
from hopefear.training.decoders.lists import ListDecoder
from hopefear.training.loop import LearningWarning
from hopefear.training.online import OnlineTrainer, read_last
from hopefear.training.predictors import LinearPredictor
from hopefear.training.stopping import Stopping

pytestmark = pytest.mark.interpreted

LISTS = candidate_lists(60, candidates=6, features=20, doubt=2.0, seed=3)
DATA = dataset(LISTS)


def dense(rows: ListRows, size: int) -> list[np.ndarray]:
    """The features of each list as a table, candidates by features."""
    tables = []
    for i in range(len(rows.weights)):
        features = rows.features[rows.scopes[i] : rows.scopes[i + 1]]
        table = np.zeros((rows.starts[i + 1] - rows.starts[i], size))
        for c in range(rows.starts[i], rows.starts[i + 1]):
            for e in range(rows.indptr[c], rows.indptr[c + 1]):
                table[c - rows.starts[i], features[rows.columns[e]]] = rows.values[e]
        tables.append(table)
    return tables


TABLES = dense(DATA.rows, DATA.features.size)


def texts(costs, scores=None, **more) -> CandidateLists:
    """One list after the other, from nested costs."""
    flat = [cost for one in costs for cost in one]
    starts = np.cumsum([0, *map(len, costs)])
    ids = [f"s{i}" for i in range(len(costs))]
    names = NamedEntries(
        [f"f{c}" for c in range(len(flat))],
        np.arange(len(flat) + 1),
        np.arange(len(flat), dtype=np.int32),
        np.ones(len(flat)),
    )
    given = np.zeros(len(flat)) if scores is None else np.array(scores, float)
    return CandidateLists(
        ids, starts, [""] * len(flat), given, np.array(flat), sparse=names, **more
    )


def test_a_ranker_scores_as_dot_products_do():
    w = np.random.default_rng(1).normal(size=DATA.features.size).astype(np.float32)
    ranker = ListDecoder(NBest(w.size), LinearPredictor(w), temperature=2.0)
    wanted = [table @ w.astype(np.float64) for table in TABLES]
    np.testing.assert_allclose(ranker.scores(DATA.rows), np.concatenate(wanted), atol=1e-9)
    assert ranker.predict(DATA.rows).tolist() == [int(s.argmax()) for s in wanted]
    order = [c for s in wanted for c in np.argsort(-s, kind="stable").tolist()]
    assert ranker.ranked(DATA.rows).tolist() == order
    shares = [np.exp(s / 2) / np.exp(s / 2).sum() for s in wanted]
    np.testing.assert_allclose(ranker.probabilities(DATA.rows), np.concatenate(shares), atol=1e-9)


def test_equal_candidates_rank_as_they_stand():
    ranker = ListDecoder(
        NBest(DATA.features.size), LinearPredictor(np.zeros(DATA.features.size, "f4"))
    )
    assert not ranker.predict(DATA.rows).any()
    assert ranker.ranked(DATA.rows).tolist() == list(range(6)) * 60
    nothing = DATA.take([]).rows
    assert [len(f(nothing)) for f in (ranker.predict, ranker.ranked, ranker.probabilities)] == [
        0
    ] * 3


@pytest.mark.parametrize(
    ("rule", "on"),
    [(RDA(rate=0.5, l1=0.05), "mistakes"), (SGD(rate=0.3), "all")],
    ids=["vrda", "sgd"],
)
def test_votes_are_those_of_all_predictors_there_were(rule, on):
    n = DATA.features.size
    trainer = OnlineTrainer(NBest(n), Learner(Hinge(), rule, Voted(), on), np.float64)
    wanted = [np.zeros(len(table)) for table in TABLES]
    order = np.random.default_rng(2).integers(0, 30, 150)
    w = np.empty(n)
    for t in range(len(order)):
        trainer.learn(DATA.rows, order[t : t + 1])
        read_last(rule, trainer.state, w)
        for votes, table in zip(wanted, TABLES, strict=True):
            found = table @ w
            votes[found.argmax()] += found.any()
    ranker = ListDecoder(NBest(n), trainer.predictor())
    counted = ranker.scores(DATA.rows) * len(order)
    np.testing.assert_allclose(counted, np.concatenate(wanted), atol=1e-9)
    assert ranker.predict(DATA.rows).tolist() == [int(votes.argmax()) for votes in wanted]
    sums = np.add.reduceat(ranker.probabilities(DATA.rows), DATA.rows.starts[:-1])
    np.testing.assert_allclose(sums, 1.0)


def test_votes_of_nobody_are_spread_evenly():
    trainer = OnlineTrainer(NBest(DATA.features.size), Learner(Hinge(), SGD(), Voted()))
    found = ListDecoder(trainer.structure, trainer.predictor()).probabilities(DATA.rows)
    np.testing.assert_allclose(found, 1 / 6)


def test_the_scale_is_the_mean_distance_from_the_oracle():
    wanted = []
    for i, table in enumerate(TABLES):
        o = DATA.rows.oracles[i]
        apart = np.delete(table, o, 0) - table[o]
        wanted.append([(apart**2).sum(axis=1).mean(), np.abs(apart).sum(axis=1).mean()])
    np.testing.assert_allclose(mean_distances(DATA.rows), wanted, rtol=1e-6)
    assert not mean_distances(dataset(texts([[0.0], [0.0, 1.0]])).rows)[0].any()


def test_costs_in_another_unit_make_the_same_model():
    dear = DATA.replaced(costs=100.0 * DATA.rows.costs)
    assert mean_regret(dear.rows) == pytest.approx(100.0 * mean_regret(DATA.rows))
    one, other = (
        train(Reranking(), data, "maxent", epochs=2).model.predictor.weights
        for data in (DATA, dear)
    )
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


def test_lists_that_teach_nothing_stay_without_weight():
    block = texts([[0.5], [1.0, 1.0], [0.0, 1.0]], weights=np.array([1.0, 1.0, 3.0]))
    data = dataset(block)
    assert idle_lists(data).tolist() == [True, True, False]
    assert data.rows.weights.tolist() == [0.0, 0.0, 3.0]
    assert train(Reranking(), data, "perceptron", epochs=1).model.about["data"]["idle"] == 2
    assert encoded(block, data.features).rows.weights.tolist() == [1.0, 1.0, 3.0]
    with pytest.raises(HopefearError, match="in every list all candidates cost the same"):
        train(Reranking(), dataset(texts([[0.5], [1.0, 1.0]])), "perceptron")


def test_equally_cheap_candidates_are_told_apart_by_a_named_rule():
    block = texts([[1.0, 0.0, 0.0, 0.0]], [9.0, 1.0, 3.0, 3.0])
    assert dataset(block).rows.oracles.tolist() == [1]
    assert dataset(block, oracle="score").rows.oracles.tolist() == [2]
    with pytest.raises(HopefearError, match="oracle is one of first, score, not 'last'"):
        dataset(block, oracle="last")


@pytest.mark.filterwarnings("ignore:the model is empty")  # offsets alone are right already
def test_the_score_is_a_feature_an_offset_or_nothing():
    block = texts([[1.0, 0.0]], [-1e6 - 0.25, -1e6])
    data = dataset(block)
    assert "score" in data.features.names(range(data.features.size))
    for baseline, offsets in (("offset", [-0.25, 0.0]), ("none", [0.0, 0.0])):
        data = dataset(block, baseline=baseline)
        assert "score" not in data.features.names(range(data.features.size))
        assert data.rows.offsets.tolist() == offsets
        model = train(Reranking(), data, "perceptron", epochs=1).model
        assert model.baseline == baseline
        assert model.encode(block).rows.offsets.tolist() == offsets
    assert not dataset(block, "named").features.extraction.score


def test_what_is_fixed_is_not_unlearned():
    """Where costs do not count, all is wanted as the generator has it, and nothing is learned."""
    data = dataset(LISTS, baseline="offset")
    with pytest.warns(LearningWarning, match="all weights are zero"):
        assert (
            train(Reranking(), data, "maxent", {"inverse_temperature": 0.0}, epochs=2).model.nnz
            == 0
        )


def test_the_default_gains_on_lists_of_a_sure_generator():
    """As lists of a tagger are: mostly right at the first place, costs of whole errors."""
    dice = np.random.default_rng(2)
    parts = []
    for n in (400, 400):
        lists, costs = [], []
        for _ in range(n):
            sure, words = dice.normal(2.0, 1.5, 4), dice.zipf(1.6, 4) % 200
            wrong = dice.random(4) > 1.0 / (1.0 + np.exp(-sure - (words % 3 - 1.0)))
            flips = [np.array(list(f"{c:04b}"), int) for c in range(16)]
            candidates = [(float(-sure @ f), float(np.sum(f != wrong)), f) for f in flips]
            lists.append(
                [
                    {"score": s, "features": {f"{w}:{k}": 1 for w, k in zip(words, f, strict=True)}}
                    for s, _, f in candidates
                ]
            )
            costs.append([cost for _, cost, _ in candidates])
        parts.append((lists, costs))
    reranker = Reranker().fit(*parts[0])
    result = reranker.evaluate(*parts[1]).as_dict()
    assert result["cost"] < result["baseline_cost"]


def test_votes_cannot_take_a_fixed_score():
    data = dataset(LISTS, baseline="offset")
    with pytest.raises(CombinationError, match=r"Voted and baseline=offset: .*baseline=feature"):
        train(Reranking(), data, "vrda", {"averaging": "voted"}, epochs=1)


def test_blocks_give_what_they_give_together():
    parts = [cut(LISTS, 0, 25), cut(LISTS, 25, 60)]
    data = dataset(iter(parts))
    assert len(data) == 60
    for a, b in zip(dense(data.rows, data.features.size), TABLES, strict=True):
        names = data.features.names(range(data.features.size))
        order = [names.index(DATA.features.name(j)) for j in range(DATA.features.size)]
        np.testing.assert_array_equal(a[:, order], b)


def cut(lists: CandidateLists, first: int, stop: int) -> CandidateLists:
    a, b = lists.starts[first], lists.starts[stop]
    named = lists.sparse
    entries = slice(named.indptr[a], named.indptr[b])
    return replace(
        lists,
        ids=lists.ids[first:stop],
        starts=lists.starts[first : stop + 1] - a,
        texts=lists.texts[a:b],
        scores=lists.scores[a:b],
        costs=lists.costs[a:b],
        sparse=NamedEntries(
            named.names,
            named.indptr[a : b + 1] - named.indptr[a],
            named.ids[entries],
            named.values[entries],
        ),
    )


def test_missing_costs_are_named_by_file_line_and_id():
    block = replace(texts([[0.0, 1.0]]), costs=None, source="x.jsonl", lines=np.array([7]))
    with pytest.raises(InputError, match=r"x\.jsonl:7: expected a cost .*list 's0'.*there are"):
        dataset(block)
    with pytest.raises(InputError, match=r"x\.jsonl:7: expected references, to count bleu"):
        dataset(block, metric="bleu")
    assert dataset(replace(block, costs=np.array([0.0, 1.0]))).metric == "cost"


def test_metrics_judge_texts_against_references():
    block = texts([[9.0, 9.0], [9.0, 9.0]], references=[["a b"], ["c d e"]])
    block = replace(block, costs=None, texts=["a", "a b", "c d e", "x y z"])
    metric = metric_named("wer")
    data = dataset(block, metric=metric)
    assert data.rows.costs.tolist() == [0.5, 0.0, 0.0, 1.0]
    assert data.rows.oracles.tolist() == [1, 0]
    assert scores(data, np.array([0, 0]), metric)["wer"] == pytest.approx(20.0)
    with pytest.raises(HopefearError, match="was judged by wer, not by bleu"):
        train(Reranking(metric="bleu"), data, "perceptron")
    mixed = [block, replace(texts([[1.0, 0.0]]), source="two")]
    with pytest.raises(HopefearError, match="expected references"):
        dataset(mixed, metric="wer")
    judged = [replace(block, costs=np.zeros(4), metric="wer"), mixed[1]]
    with pytest.raises(HopefearError, match=r"judged by cost, wer.* name one metric"):
        dataset(judged)


def test_a_feature_must_not_be_called_as_the_score_is():
    block = texts([[0.0, 1.0]], [1.0, 2.0])
    block = replace(block, sparse=block.sparse._replace(names=["score", "b"]))
    with pytest.raises(HopefearError, match="a score and a feature of the name 'score' too"):
        dataset(block)
    assert dataset(replace(block, scores=np.zeros(2))).features.size == 2


def test_automatic_features_are_those_of_the_candidates():
    extraction, count = chosen("auto", LISTS)
    assert (extraction.named, extraction.score, extraction.trees, count) == (True, True, None, 1)
    assert chosen("auto", LISTS, 3)[1] == 3
    with pytest.raises(HopefearError, match="min_count must be at least 1"):
        dataset(LISTS, min_count=0)
    with pytest.raises(HopefearError, match="no lists to learn from"):
        dataset([])


def test_training_gains_on_the_generator_and_repeats_itself():
    whole = candidate_lists(400, doubt=3.0, seed=5)
    data = dataset(cut(whole, 0, 300))
    test = encoded(cut(whole, 300, 400), data.features)
    first = train(Reranking(), data, "perceptron", epochs=4)
    found = scores(test, first.model.predict(test), first.model.metric)
    base = scores(test, np.zeros(100, np.int64), first.model.metric)
    assert found["cost"] < 0.5 * base["cost"] and found["oracle_rate"] > base["oracle_rate"]
    again = train(Reranking(), data, "perceptron", epochs=4).model
    assert again.to_bytes() == first.model.to_bytes()
    assert (
        train(Reranking(), data, "perceptron", epochs=4, seed=2).model.to_bytes()
        != again.to_bytes()
    )
    told = evaluate(first.model, cut(whole, 300, 400), samples=50).as_dict()
    assert told["cost"] == pytest.approx(found["cost"])
    assert told["oracle_cost"] < told["cost"] < told["baseline_cost"] < told["worst_cost"]


def test_training_stops_where_the_cost_is_lowest():
    data, dev = DATA.take(np.arange(40)), DATA.take(np.arange(40, 60))
    made = train(Reranking(), data, "perceptron", epochs=8, dev=dev, stopping=Stopping("cost", 0))
    costs = [event["dev"]["cost"] for event in made.fit.history]
    assert made.fit.best_epoch == 1 + int(np.argmin(costs))
    got = scores(dev, made.model.predict(dev), made.model.metric)
    assert got.items() <= made.fit.history[made.fit.best_epoch - 1]["dev"].items()
    rates = [event["dev"]["oracle_rate"] for event in made.fit.history]
    made = train(
        Reranking(), data, "perceptron", epochs=8, dev=dev, stopping=Stopping("oracle_rate", 0)
    )
    assert made.fit.best_epoch == 1 + int(np.argmax(rates))
    with pytest.raises(HopefearError, match=r"no score 'f1' .*there are cost, oracle_rate"):
        train(Reranking(), data, "perceptron", dev=dev, stopping=Stopping("f1"))


def test_a_run_goes_on_where_it_was_broken_off(tmp_path):
    whole = train(Reranking(), DATA, "perceptron", epochs=4).model.to_bytes()
    seen = []

    def stop(event):
        seen.append(event)
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(
            Reranking(),
            DATA,
            "perceptron",
            epochs=4,
            checkpoints=Checkpoints(tmp_path),
            on_event=[stop],
        )
    found = train(
        Reranking(), DATA, "perceptron", epochs=4, checkpoints=Checkpoints(tmp_path), resume=True
    )
    assert found.model.to_bytes() == whole


def test_batch_learners_settle_and_start_where_they_are_told():
    made = train(Reranking(), DATA, "maxent-lbfgs")
    assert made.fit.converged and made.model.about["update_on"] == "batch"
    start = made.model.weights
    again = train(Reranking(), DATA, "maxent-lbfgs", start=start)
    assert len(again.fit.history) < len(made.fit.history)
    np.testing.assert_allclose(again.model.weights, start, atol=0.05)
    assert len(train(Reranking(), DATA, "maxent-lbfgs", epochs=2).fit.history) == 2
    with pytest.raises(HopefearError, match="only batch learners start from given weights"):
        train(Reranking(), DATA, "perceptron", start=start)


def test_data_of_other_features_is_refused():
    other = dataset(candidate_lists(5, features=7))
    with pytest.raises(HopefearError, match="read the data with the model's feature map"):
        train(Reranking(), DATA, "perceptron", dev=other)
    with pytest.raises(HopefearError, match="its features have no meaning"):
        train(Reranking(), ListDataset(DATA.rows), "perceptron")


def test_equally_cheap_candidates_may_all_be_right():
    block = texts([[0.0, 0.0, 1.0]] * 3)
    block = replace(
        block,
        sparse=NamedEntries(
            ["a", "b", "c"], np.arange(10), np.tile(np.arange(3, dtype=np.int32), 3), np.ones(9)
        ),
    )
    data = dataset(block)
    plain, tied = (train(Reranking(tied=t), data, "sgd", epochs=3).model for t in (False, True))
    alone, both = (
        dict(zip(data.features.names(range(3)), m.weights, strict=True)) for m in (plain, tied)
    )
    assert alone["b"] < 0.0 < alone["a"]
    assert both["a"] == pytest.approx(both["b"]) and both["c"] < 0.0 < both["a"]
    assert "tied:true" in tied.signature and "tied" not in plain.signature


def test_generated_lists_depend_on_their_seed_alone():
    one, two = candidate_lists(5, seed=1), candidate_lists(5, seed=1)
    np.testing.assert_array_equal(one.costs, two.costs)
    assert not np.array_equal(one.costs, candidate_lists(5, seed=2).costs)
    for a, b in pairwise(one.starts):
        assert one.costs[a:b].min() == 0.0 and one.costs[a:b].max() == 1.0
        assert (np.diff(one.scores[a:b]) <= 0.0).all()
    with pytest.raises(HopefearError, match="at least one of each"):
        candidate_lists(1, features=2, per_candidate=3)


@pytest.mark.compiled
def test_parse_lists_end_to_end():
    folder = CORPORA / "ptb-nbest"
    files = sorted(folder.glob("dev.jsonl*"))
    if not files:
        pytest.skip(f"no parse lists in {folder}; set HOPEFEAR_DATA to the folder of the corpora")
    from hopefear.data.lists.files import read_lists

    blocks = list(islice(read_lists(files[0], block_lists=40), 2))
    data = dataset(blocks[0], "ptb,consensus", min_count=2)
    test = encoded(blocks[1], data.features)
    assert (data.metric, data.counts.shape[1]) == ("parseval", 3)
    made = train(Reranking(), data, "perceptron", epochs=3, dev=test, stopping=Stopping("f1", 0))
    found = evaluate(made.model, blocks[1], samples=50).as_dict()
    assert found["f1"] == pytest.approx(max(e["dev"]["f1"] for e in made.fit.history))
    assert found["worst_f1"] < found["baseline_f1"] < found["oracle_f1"]
    assert found["worst_f1"] < found["f1"] < found["oracle_f1"]


def test_lists_without_features_are_refused():
    found = texts([[0.0, 1.0], [1.0, 0.0]])
    bare = replace(found, sparse=None, scores=np.zeros(4))
    with pytest.raises(HopefearError, match="memory: no feature tells the candidates of a list ap"):
        train(Reranking(), dataset(bare), "perceptron")


def test_costs_below_zero_teach_by_their_differences():
    less = replace(LISTS, costs=LISTS.costs - 7.0)
    for learner in ("perceptron", "mira", "nbest-mira", "maxent", "risk", "rampion", "ssvm"):
        one, other = (
            train(Reranking(), dataset(lists), learner, epochs=2).model for lists in (LISTS, less)
        )
        np.testing.assert_allclose(one.weights, other.weights, rtol=1e-4, atol=1e-6)
    found = evaluate(other, less)
    assert found.oracle.scores["cost"] == pytest.approx(-7.0)
    assert found.gap_closed == pytest.approx(evaluate(one, LISTS).gap_closed)
