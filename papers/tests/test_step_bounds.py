"""Theorems on MIRA, SWVP and SAPO, and those of voted RDA on lists, beside plain NumPy."""

from __future__ import annotations

import itertools
import json
from functools import partial

import numpy as np
import pytest
from list_oracle import rows_of

from hopefear.averaging.averaged import Averaged
from hopefear.averaging.last import Last
from hopefear.cli import main
from hopefear.core.interfaces import n_weights
from hopefear.core.learner import Learner
from hopefear.costs.regret import Regret
from hopefear.data.generators import candidate_lists, chunks, sparse_linear
from hopefear.data.sequences import SequenceDataset, TokenRows
from hopefear.errors import CombinationError, HopefearError
from hopefear.features.arcs.templates import ArcTemplates
from hopefear.losses.hinge import Hinge
from hopefear.losses.hope_fear import WORST, HopeFear
from hopefear.losses.prediction_hinge import PredictionHinge
from hopefear.losses.ramp import Ramp
from hopefear.losses.sapo import SAPO
from hopefear.losses.structured_hinge import StructuredHinge
from hopefear.losses.swvp import BALANCED, OWN, SWVP, WMR_PRINTED, substructures
from hopefear.recipes import CHAIN_RECIPES
from hopefear.rules.fobos import FOBOS
from hopefear.rules.passive_aggressive import PassiveAggressive
from hopefear.rules.rda import RDA
from hopefear.rules.sgd import SGD
from hopefear.structures.chain.chain import Chain
from hopefear.structures.nbest import NBest
from hopefear.tasks.base import train as train_task
from hopefear.tasks.classify.task import Classification
from hopefear.tasks.rerank.prepare import dataset as lists_dataset
from hopefear.tasks.rerank.task import Reranking
from hopefear.tasks.tag import task as tag
from hopefear.training.online import OnlineTrainer
from hopefear_papers.theorems import bounds
from hopefear_papers.theorems.steps import (
    MeasuredMIRA,
    MeasuredSAPO,
    MeasuredSWVP,
    instrument,
)
from hopefear_papers.theorems.watched import Watched
from tests.support import small_trees
from tests.support.small_trees import small_treebank

pytestmark = pytest.mark.interpreted
COSTS = (0.55, 0.3, 0.1)


def orthogonal():
    """Lists of two: a wrong candidate without features, the right one with a feature of its own."""
    matrices = [[np.zeros(3), np.eye(3)[t]] for t in range(3)]
    return rows_of(matrices, [[cost, 0.0] for cost in COSTS])


def test_the_theorem_of_the_slides_is_false_as_printed_and_true_as_corrected():
    rows, rule = orthogonal(), PassiveAggressive(C=1.0)
    u = np.array(COSTS)  # asks for each margin exactly: no loss at all
    trainer = MeasuredMIRA(
        NBest(3), Learner(PredictionHinge(Regret()), rule, Last()), rows, u, np.float64
    )
    trainer.learn(rows, np.arange(3))
    said = trainer.theory()
    assert said["comparator_loss"] == pytest.approx(0.0, abs=1e-7)
    assert said["cost"] == pytest.approx(0.95)
    assert said["right"] == pytest.approx(0.4025)
    assert not said["printed_holds"]
    assert said["holds"] and said["left"] == pytest.approx(0.4025)  # equality: no better theorem
    root = Learner(PredictionHinge(Regret(), root=True), rule, Last())
    trainer = MeasuredMIRA(NBest(3), root, rows, np.sqrt(COSTS), np.float64)
    trainer.learn(rows, np.arange(3))
    said = trainer.theory()
    assert said["left"] == pytest.approx(0.95) == said["cost"]
    assert said["right"] == pytest.approx(0.95) and said["holds"] and said["printed_holds"]


def drawn_lists(rng, n=12, features=5):
    sizes = rng.integers(2, 5, n)
    matrices = [rng.normal(size=(k, features)).astype(np.float32) for k in sizes]
    return matrices, [np.round(8 * rng.random(k)) / 8 for k in sizes]


def foremost(scores, gold):
    """The first of the best candidates; gold only where no other is as good."""
    best = np.flatnonzero(scores == scores.max())
    return int((*best[best != gold], gold)[0])


@pytest.mark.parametrize("kind", ["prediction", "root", "fear", "hope"])
@pytest.mark.parametrize("C", [0.05, 10.0])
@pytest.mark.parametrize("weights", [(1.0,), (0.5, 0.25)])
@pytest.mark.parametrize("seed", range(4))
def test_both_sides_for_mira_are_those_of_plain_numpy(kind, C, weights, seed):
    rng = np.random.default_rng(seed)
    matrices, costs = drawn_lists(rng)
    weights = np.resize(weights, len(costs))
    rows = rows_of(matrices, costs, weights=weights)
    loss = {
        "prediction": PredictionHinge(Regret()),
        "root": PredictionHinge(Regret(), root=True),
        "fear": StructuredHinge(Regret()),
        "hope": HopeFear(Regret()),
    }[kind]
    u = rng.normal(size=5)
    trainer = MeasuredMIRA(
        NBest(5), Learner(loss, PassiveAggressive(C=C), Last()), rows, u, np.float64
    )
    order = np.tile(np.arange(len(costs)), 3)
    w, cost, asked, margins, deltas = np.zeros(5), 0.0, [], [], []
    for i in order:
        F, c = matrices[i], costs[i] - costs[i].min()
        gold = int(np.argmin(c))
        scores = F @ w
        guess = foremost(scores, gold)
        away = foremost(scores + c, gold) if kind in ("fear", "hope") else guess
        aim = foremost(scores - c, gold) if kind == "hope" else gold
        price = weights[i] * (np.sqrt(c[away]) if kind == "root" else c[away] - c[aim])
        delta = weights[i] * (np.float64(F[aim]) - F[away])
        value = price - w @ delta
        wrong = guess != gold
        if away == aim or value <= 0.0:
            continue
        square = delta @ delta
        w = w + (min(C, value / square) if square else 0.0) * delta
        asked.append(price)
        short = max(0.0, c[guess] - c[aim]) * wrong
        margins.append(weights[i] * (np.sqrt(short) if kind == "root" else short))
        deltas.append(delta)
        cost += weights[i] * short
    trainer.learn(rows, order)
    said = trainer.theory()
    R2 = max(d @ d for d in deltas)
    loss_u = sum(max(0.0, m - u @ d) for m, d in zip(asked, deltas, strict=True))
    np.testing.assert_allclose(trainer.weights(), w, atol=1e-5)
    assert said["updates"] == len(deltas)
    assert said["cost"] == pytest.approx(cost, rel=1e-5)
    assert said["comparator_loss"] == pytest.approx(loss_u, rel=1e-4, abs=1e-4)
    assert said["right"] == pytest.approx(R2 * (u @ u + 2 * C * loss_u), rel=1e-4)
    assert said["left"] == pytest.approx(sum(min(C * R2 * m, m * m) for m in margins), rel=1e-5)
    assert said["holds"]


def test_the_corrected_theorem_holds_on_every_structure_and_looking_changes_nothing():
    classes = sparse_linear(80, 20, per_row=(3, 6), true_weights=12, seed=2).dataset()
    text = tag.dataset(chunks(10, 30, seed=1), "ner")
    lists = lists_dataset(candidate_lists(30, 5, 12, doubt=2.0, seed=1))
    bank = small_treebank(40, seed=1)
    short = bank.take(np.flatnonzero(np.diff(bank.starts) <= 3)[:6])
    assert len(short)
    few = ArcTemplates(("h.tag m.tag",), ("m.tag",))
    trees = small_trees.dataset(short, 1, features=few, heads=0, hash_bits=10)

    for train, data, name in (
        (partial(train_task, Classification()), classes, "pa"),
        (tag.train, text, "mira"),
        (partial(train_task, Reranking()), lists, "mira"),
        (small_trees.train, trees, "mira"),
    ):
        how = {"epochs": 2, "seed": 3}
        events = []
        looked = train(data, name, instrument=bounds(), on_event=[events.append], **how)
        plain = train(data, name, **how)
        assert looked.model.to_bytes() == plain.model.to_bytes()
        said = [event["theory"] for event in events if event.get("theory")]
        assert said and all(one["holds"] for one in said)
        assert said[-1]["name"] == "mira" and said[-1]["updates"] > 0


def test_learners_without_a_theorem_and_losses_it_does_not_cover():
    chain = Chain.new(3, 2)
    rows = orthogonal()
    with pytest.raises(CombinationError, match="variant=1 and a finite C"):
        MeasuredMIRA(NBest(3), Learner(Hinge(), PassiveAggressive(variant=2), Last()), rows)
    for loss in (Ramp(Regret()), HopeFear(away=WORST)):
        with pytest.raises(CombinationError, match="does not cover"):
            instrument(NBest(3), Learner(loss, PassiveAggressive(), Last()), rows)
    with pytest.raises(CombinationError, match="classes and lists, not for Chain"):
        instrument(chain, CHAIN_RECIPES["perceptron"].build(rule="rda", loss="hinge"), rows)
    with pytest.raises(CombinationError, match="no theorem is measured on log with adagrad"):
        instrument(chain, CHAIN_RECIPES["adagrad"].build(), rows)
    learner = Learner(Hinge(), RDA(), Averaged(), update_on="mistakes")
    with pytest.raises(CombinationError, match="one right candidate"):
        instrument(NBest(3, tied=True), learner, rows)
    text = tag.dataset(chunks(4, 30, seed=1), "ner")
    with pytest.raises(HopefearError, match="theorems on online learners"):
        tag.train(text, "crf-lbfgs", instrument=bounds())


@pytest.mark.parametrize("l1", [0.0, 0.01])
@pytest.mark.parametrize("seed", range(3))
def test_theorem_1_of_voted_rda_on_lists_is_that_of_plain_numpy(l1, seed):
    rng = np.random.default_rng(seed)
    matrices, costs = drawn_lists(rng, 20)
    rows, u = rows_of(matrices, costs), rng.normal(size=5)
    learner = Learner(Hinge(), RDA(rate=0.5, l1=l1), Averaged(), update_on="mistakes")
    trainer = Watched(NBest(5), learner, rows, u, np.float64)
    order = np.tile(np.arange(20), 2)
    total, w, M, weights, G, loss_u = np.zeros(5), np.zeros(5), 0, [], 0.0, 0.0
    for i in order:
        F, gold = matrices[i], int(np.argmin(costs[i]))
        deltas = np.delete(F[gold] - F, gold, axis=0)
        rival = deltas[np.argmin(deltas @ w)]
        if rival @ w > 0.0:
            continue
        M, weights = M + 1, [*weights, w]
        G = max(G, float(np.linalg.norm(rival)))
        loss_u += max(0.0, 1.0 - float((deltas @ u).min()))
        total = total + rival
        shrunk = np.sign(total) * np.maximum(0.0, np.abs(total) - l1 * M)
        w = shrunk * 0.5 / np.sqrt(M)
    trainer.learn(rows, order)
    said = trainer.bound()
    norm, eta = np.linalg.norm(u), 1.0 / 0.5
    delta = np.abs(u).sum() - np.mean([np.abs(one).sum() for one in weights])
    a, b = 1.0 - l1 * delta, eta / 2 * norm**2 + G**2 / eta
    assert said["mistakes"] == M and said["holds"]
    assert said["G"] == pytest.approx(G, rel=1e-5)
    assert said["comparator_loss"] == pytest.approx(loss_u, rel=1e-5)
    assert said["delta"] == pytest.approx(delta if l1 else said["delta"], rel=1e-4)
    assert said["theorem1"] == pytest.approx((np.sqrt(loss_u / a) + b / a) ** 2, rel=1e-4)
    R = max(np.linalg.norm(F[np.argmin(c)] - f) for F, c in zip(matrices, costs, strict=True)
            for f in F)  # fmt: skip
    assert said["R"] == pytest.approx(R, rel=1e-6) and said["G"] <= said["R"] * (1 + 1e-6)


LABELS, SYMBOLS = 3, 4


def chains(words, labels):
    """Sequences whose symbols fire on labels."""

    class Sizes:
        size, edge_size = SYMBOLS, 0

    lengths = [len(w) for w in words]
    flat = np.array([s for w in words for s in w])
    rows = TokenRows(
        np.concatenate(([0], np.cumsum(lengths))),
        np.arange(flat.size + 1),
        flat,
        np.empty(0),
        np.zeros(flat.size + 1, np.int64),
        np.empty(0, np.int64),
        np.empty(0),
        np.array([y for path in labels for y in path]),
        np.ones(len(words)),
    )
    return SequenceDataset(rows, [str(k) for k in range(LABELS)], Sizes()).rows


def phi(chain, symbols, y):
    out = np.zeros(n_weights(chain))
    for t, (x, label) in enumerate(zip(symbols, y, strict=True)):
        out[x * chain.width + label] += 1.0
        if t > 0:
            out[(SYMBOLS + label) * chain.width + y[t - 1]] += 1.0
    return out


def drawn_chains(seed, separable=False, longest=4):
    rng = np.random.default_rng(seed)
    words = [rng.integers(0, SYMBOLS, n).tolist() for n in rng.integers(1, longest + 1, 8)]
    labels = [[s % LABELS if separable else int(rng.integers(LABELS)) for s in w] for w in words]
    return words, labels


def test_swvp_is_refused_where_its_theorem_does_not_apply():
    words, labels = drawn_chains(4, True, 2)
    rows, chain = chains(words, labels), Chain.new(SYMBOLS, LABELS)
    for rule in (SGD(l2=0.5), SGD(l1=0.1), SGD(power=0.5), SGD(decay=0.9), FOBOS()):
        with pytest.raises(CombinationError, match="steps of one length and no penalty"):
            instrument(chain, Learner(SWVP(), rule, Last()), rows)
    printed = Learner(SWVP(weighting=WMR_PRINTED), SGD(), Last())
    with pytest.raises(CombinationError, match="gamma that sum to 1"):
        instrument(chain, printed, rows)
    learner, half = Learner(SWVP(), SGD(rate=0.5), Last()), np.full(len(words), 0.5)
    with pytest.raises(CombinationError, match="weigh all examples alike"):
        instrument(chain, learner, rows._replace(weights=np.append(half[1:], 1.0)))
    # One weight for all is a rate, and an example of weight 0 moves nothing.
    for weights in (half, np.append(half[1:], 0.0)):
        alike = rows._replace(weights=weights)
        trainer = instrument(chain, learner, alike)
        trainer.learn(alike, np.tile(np.arange(len(words)), 3))
        assert trainer.theory()["holds"] is True


@pytest.mark.parametrize("jj", ["single", "own"])
@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize("separable", [True, False])
def test_radius_and_margin_of_swvp_are_those_of_plain_python(jj, checked, separable):
    words, labels = drawn_chains(4, separable, 2)  # halves are exact, thirds part what ties
    rows, chain = chains(words, labels), Chain.new(SYMBOLS, LABELS)
    u = np.zeros(n_weights(chain))
    u[[s * chain.width + s % LABELS for s in range(SYMBOLS)]] = 1.0
    own = {"jj": OWN, "own": substructures([[0, 1, 2, 3]])} if jj == "own" else {}
    loss = SWVP(BALANCED, beta=0.0, checked=checked, **own)
    trainer = MeasuredSWVP(chain, Learner(loss, SGD(), Last(), "mistakes"), rows, u, np.float64)
    w, square, least, updates = np.zeros(n_weights(chain)), 0.0, np.inf, 0
    for _ in range(3):
        for symbols, gold in zip(words, labels, strict=True):
            outputs = itertools.product(range(LABELS), repeat=len(gold))
            y = list(max(outputs, key=lambda z: round(float(w @ phi(chain, symbols, z)), 9)))
            if y == gold:
                continue
            sets = [range(4)] if jj == "own" else [[t] for t in range(len(gold)) if y[t] != gold[t]]
            mixed = [[y[t] if t in J else gold[t] for t in range(len(gold))] for J in sets]
            deltas = [phi(chain, symbols, gold) - phi(chain, symbols, m) for m in mixed]
            if checked and w @ sum(deltas) > 1e-9:  # condition (2)
                deltas = [phi(chain, symbols, gold) - phi(chain, symbols, y)]
            w, updates = w + sum(deltas) / len(deltas), updates + 1
            square = max(square, *(d @ d for d in deltas), 0.0)
            least = min(least, *(u @ d for d in deltas), np.inf)
    for _ in range(3):
        trainer.learn(rows, np.arange(len(words)))
    said = trainer.theory()
    np.testing.assert_allclose(trainer.weights(), w, atol=1e-5)
    assert said["updates"] == updates and said["R_JJ"] == pytest.approx(np.sqrt(square))
    assert said["delta_JJ"] == pytest.approx(least / np.linalg.norm(u))
    assert (said["bound"] is not None) == (least > 0)
    assert said["holds"] is (True if checked else None)
    assert not separable or updates <= said["bound"]


@pytest.mark.parametrize("n", [1, 2, 5])
def test_what_sapo_leaves_out_is_that_of_enumeration(n):
    words, labels = drawn_chains(5)
    rows, chain = chains(words, labels), Chain.new(SYMBOLS, LABELS)
    learner = Learner(SAPO(n=n), SGD(rate=0.5), Averaged())
    trainer = MeasuredSAPO(chain, learner, rows, None, np.float64)
    plain = OnlineTrainer(chain, learner, np.float64)
    for i in (*range(len(words)), *range(len(words))):
        w = plain.weights()
        outputs = itertools.product(range(LABELS), repeat=len(labels[i]))
        scores = np.sort([w @ phi(chain, words[i], z) for z in outputs])[::-1]
        gold = w @ phi(chain, words[i], labels[i])
        g_n, g_all = (np.log(np.exp(scores[:k] - gold).sum()) for k in (n, None))
        trainer.learn(rows, np.array([i]))
        plain.learn(rows, np.array([i]))
        said = trainer.theory()
        assert (said["sampled"], said["n"]) == (1, n)
        assert said["g_n"] == pytest.approx(g_n, abs=1e-6)
        assert said["gap"] == pytest.approx(g_all - g_n, abs=1e-6)
        inside = np.exp(scores[:n]).sum() / np.exp(scores).sum()
        assert said["rho"] == pytest.approx(1.0 - inside, abs=1e-6)
    assert trainer.weights().tolist() == plain.weights().tolist()
    assert trainer.theory() is None  # nothing new since


def test_theorems_on_lists_and_chains_from_the_command_line_to_the_report(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    some = candidate_lists(20, 4, 10, doubt=2.0, seed=1)
    with open("lists.jsonl", "w") as file:
        for i in range(20):
            candidates = [
                {"text": f"text {c}", "score": some.scores[c], "cost": some.costs[c],
                 "features": {f"f{c % 5}": 1.0}}
                for c in range(some.starts[i], some.starts[i + 1])
            ]  # fmt: skip
            file.write(json.dumps({"id": str(i), "candidates": candidates}) + "\n")
    text = chunks(10, 30, seed=1)
    words, labels = text.columns["word"], text.columns["label"]
    with open("words.txt", "w") as file:
        for i in range(len(text)):
            for k in range(text.starts[i], text.starts[i + 1]):
                file.write(f"{words[k]} {labels[k]}\n")
            file.write("\n")
    lines = {
        "rda": "rerank --train lists.jsonl --learner vrda",
        "mira": "rerank --train lists.jsonl --learner mira",
        "swvp": "tag --train words.txt --learner swvp",
        "sapo": "tag --train words.txt --learner sapo",
    }
    for name, line in lines.items():
        more = f"--epochs 2 --bounds --run {name} --model {name}.model --json --quiet"
        assert main(["train", *line.split(), *more.split()]) == 0
        said = json.loads(capsys.readouterr().out)
        assert said["theory"]["holds"] if name == "rda" else said["theory"]["name"] == name
    assert main(["report", *lines, "--out", "page.html"]) == 0
    page = (tmp_path / "page.html").read_text()
    for words in ("Mistakes against the bounds", "theory says of MIRA", "theory says of SWVP",
                  "theory says of SAPO"):  # fmt: skip
        assert words in page
    stopped = "tag --train words.txt --learner sapo --bounds --checkpoint c --model x --quiet"
    assert main(["train", *stopped.split()]) == 1
    assert "leave out the checkpoints, or the bounds" in capsys.readouterr().err


@pytest.mark.parametrize("decaying", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_the_bound_of_voted_rda_with_the_regret_of_fobos(decaying, seed):
    """Section 7 of the paper: FOBOS on mistakes, hinge loss, L1; both regrets of docs/theory.md."""
    rng = np.random.default_rng(seed)
    matrices, costs = drawn_lists(rng, 25)
    rate, l1 = 10.0 ** rng.uniform(-2, 1), rng.choice([0.0, 0.003, 0.1])
    w, run, losses, G = np.zeros(5), [], [], 0.0
    for i in np.tile(np.arange(25), 3):
        F, gold = np.float64(matrices[i]), int(np.argmin(costs[i]))
        deltas = np.delete(F[gold] - F, gold, axis=0)
        rival = deltas[np.argmin(deltas @ w)]
        if rival @ w > 0.0:
            continue
        run, losses, G = [*run, w], [*losses, deltas], max(G, np.linalg.norm(rival))
        eta = rate / np.sqrt(len(run)) if decaying else rate
        half = w + eta * rival
        w = np.sign(half) * np.maximum(0.0, np.abs(half) - eta * l1)
    M = len(run)
    for u in (np.zeros(5), rng.normal(size=5), 5.0 * rng.normal(size=5), np.mean(run, axis=0)):
        loss = sum(max(0.0, 1.0 - float((deltas @ u).min())) for deltas in losses)
        penalty = l1 * (M * np.abs(u).sum() - sum(np.abs(one).sum() for one in run))
        if decaying:
            D = max(np.linalg.norm(one - u) for one in [*run, w])
            regret = (D**2 / (2 * rate) + rate * G**2) * np.sqrt(M)
        else:
            regret = u @ u / (2 * rate) + rate * M * G**2 / 2
        assert loss + penalty + regret >= M - 1e-9
