"""The decoder of the examples finds what enumerating every derivation finds, and reports it."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from random import Random

import pytest
from places import ROOT

from hopefear.data.moses.reader import read_moses
from hopefear.translation.weights import Weights

FOLDER = ROOT / "examples" / "decoder"
DATA = FOLDER / "data"
WEIGHTS = {
    "LM0": (0.7,),
    "Distortion0": (0.2,),
    "WordPenalty0": (-0.4,),
    "PhrasePenalty0": (-0.1,),
    "TranslationModel0": (0.3, 0.6),
}
TEXT = ["a b c", "b c a d", "d a", "c c b a", "e a b"]


@pytest.fixture(scope="module")
def parts():
    """The example's modules, imported as a script imports them."""
    sys.path.insert(0, str(FOLDER))
    try:
        import decoder
        import language_model
    finally:
        sys.path.remove(str(FOLDER))
    return decoder, language_model


def made(parts, seed, order=3, beam=10**6, limit=2):
    """A decoder of a random table over four source words, one of which has no entry."""
    module, lm = parts
    random = Random(seed)
    table = {}
    for source in ["x", "y", "z", "x y", "y z", "z x", "x y z"]:
        targets = {" ".join(random.choices("abcde", k=random.randint(1, 2))) for _ in range(2)}
        table[tuple(source.split())] = [
            (tuple(target.split()), (math.log(random.random()), math.log(random.random())))
            for target in sorted(targets)
        ]
    model = lm.LanguageModel([tuple(line.split()) for line in TEXT], order)
    pairs = {(s, table[s][0][0]): random.uniform(-1, 1) for s in [("x",), ("y", "z")]}
    return module.Decoder(table, model, WEIGHTS, beam, limit, pairs)


def log_p(order, history, word):
    """Witten-Bell from its definition, by counting the text anew."""
    padded = [["<s>"] * (order - 1) + line.split() + ["</s>"] for line in TEXT]
    words = {w for line in padded for w in line[order - 1 :]}
    p = 1 / (len(words) + 1)
    for n in range(order):
        h = history[len(history) - n :] if n else []
        behind = [
            line[i]
            for line in padded
            for i in range(order - 1, len(line))
            if line[i - n : i] == list(h)
        ]
        if behind:
            t = len(set(behind))
            p = (behind.count(word) + t * p) / (len(behind) + t)
    return math.log(p)


def enumerated(decoder, source):
    """Every derivation the limit allows, as ``score, words, [(start, end, target)]``."""
    found = []

    def extend(covered, end, phrases):
        if len(covered) == len(source):
            found.append(scored(decoder, source, phrases))
            return
        for a, b in itertools.combinations(range(len(source) + 1), 2):
            span = set(range(a, b))
            if covered & span or abs(a - end) > decoder.limit:
                continue
            gaps = set(range(len(source))) - covered - span
            if gaps and b - min(gaps) > decoder.limit:
                continue
            entries = decoder.table.get(source[a:b], [])
            if b == a + 1 and not entries:
                entries = [(source[a:b], (math.log(1e-4),) * 2)]
            for target, scores in entries:
                extend(covered | span, b, [*phrases, (a, b, target, scores)])

    extend(set(), 0, [])
    return sorted(found, key=lambda one: -one[0])


def scored(decoder, source, phrases):
    order = decoder.model.order
    words = [w for phrase in phrases for w in phrase[2]]
    line = ["<s>"] * (order - 1) + words + ["</s>"]
    features = {
        "LM0": [
            sum(log_p(order, line[i - order + 1 : i], line[i]) for i in range(order - 1, len(line)))
        ],
        "Distortion0": [0.0],
        "WordPenalty0": [-len(words)],
        "PhrasePenalty0": [len(phrases)],
        "TranslationModel0": [sum(phrase[3][k] for phrase in phrases) for k in range(2)],
    }
    end = 0
    for a, b, _, _ in phrases:
        features["Distortion0"][0] -= abs(a - end)
        end = b
    score = sum(w * v for k in WEIGHTS for w, v in zip(WEIGHTS[k], features[k], strict=True))
    score += sum(decoder.pairs.get((source[a:b], target), 0.0) for a, b, target, _ in phrases)
    return score, tuple(words), [phrase[:3] for phrase in phrases], features


@pytest.mark.parametrize(
    ("source", "order", "limit"),
    [("x y z", 3, 2), ("z u y x", 2, 3), ("y y x z", 3, 1), ("z y x", 1, 0), ("x y z u", 2, 9)],
)
def test_an_unpruned_search_finds_the_n_best_of_all(parts, source, order, limit):
    decoder = made(parts, seed=len(source) + limit, order=order, limit=limit)
    source = tuple(source.split())
    everything = enumerated(decoder, source)
    best = {}
    for one in everything:
        best.setdefault(one[1], one)
    wanted = list(best.values())
    assert len(wanted) > (20 if limit > 1 else 7)
    n = len(wanted) + 5  # more than there are
    found = decoder.decode(source, n, factor=10**6)
    assert [one.score for one in found] == pytest.approx([one[0] for one in wanted], abs=1e-9)
    assert {one.words for one in found} == set(best)
    for one in found:
        score, _, phrases, features = best[one.words]
        same = [e for e in everything if e[1] == one.words and e[0] > score - 1e-9]
        pairs = [(p.start, p.end, p.words) for p in one.phrases]
        assert pairs in [e[2] for e in same]
        if len(same) == 1:
            assert pairs == phrases
            for name, values in features.items():
                assert one.features[name] == pytest.approx(values, abs=1e-9)
    few = decoder.decode(source, 7)
    assert [one.score for one in few] == pytest.approx([one[0] for one in wanted[:7]], abs=1e-9)


def test_derivations_come_best_first_and_once(parts):
    module, _ = parts
    decoder = made(parts, seed=3, limit=9)
    source = ("x", "y", "z")
    everything = enumerated(decoder, source)
    goal = decoder.search(3, decoder.options(source))
    ways = list(module.derivations(goal))
    assert len(set(ways)) == len(ways) == len(everything)
    scores = [decoder.translation(way).score for way in ways]
    assert scores == pytest.approx([one[0] for one in everything], abs=1e-9)


def test_a_beam_prunes_and_its_lists_go_beyond_what_survives_it(parts):
    wide, narrow = made(parts, seed=5, limit=3), made(parts, seed=5, limit=3, beam=2)
    source = ("x", "y", "z", "y", "x")
    best = wide.decode(source, 30)
    found = narrow.decode(source, 30)
    assert len(found) > 2
    assert all(a.score <= b.score + 1e-9 for a, b in zip(found, best, strict=False))
    assert sum(a.score < b.score - 1e-6 for a, b in zip(found, best, strict=False)) > 0


@pytest.mark.parametrize("limit", [0, 1, 2, 3])
def test_no_narrow_search_gets_stuck(parts, limit):
    for seed in range(5):
        decoder = made(parts, seed=seed, beam=1, limit=limit)
        assert decoder.decode(tuple("xyzuzyxuyxz"), 1)


def test_words_without_entries_are_copied_and_nothing_is_nothing(parts):
    decoder = made(parts, seed=1)
    assert [one.words for one in decoder.decode(("u",), 5)] == [("u",)]
    (nothing,) = decoder.decode((), 5)
    assert nothing.words == () and nothing.features["PhrasePenalty0"] == (0.0,)
    assert nothing.line(0).startswith("0 |||  ||| LM0= -")


@pytest.mark.parametrize("order", [1, 2, 3])
def test_probabilities_add_up_to_one(parts, order):
    model = made(parts, seed=1, order=order).model
    words = {w for line in TEXT for w in line.split()} | {"</s>", "never seen"}
    for history in itertools.product(["<s>", "a", "c", "q"], repeat=order - 1):
        total = sum(math.exp(model.log_p(history, word)) for word in words)
        assert total == pytest.approx(1.0)
        for word in words:
            assert model.log_p(history, word) == pytest.approx(log_p(order, list(history), word))


def test_weights_of_phrase_pairs_are_those_that_tuning_writes(parts, tmp_path):
    module, _ = parts
    pairs = {"a , ||| one, two": 0.5, "50% = ||| half": -2.0, "ü~b ||| c": 1e-3}
    Weights((("LM0", 1),), [0.25], {"other_thing": 3.0}, pairs).write(tmp_path / "weights.txt")
    weights, found = module.read_weights(str(tmp_path / "weights.txt"))
    assert weights == {**module.DEFAULTS, "LM0": (0.25,)}
    assert {f"{' '.join(s)} ||| {' '.join(t)}": w for (s, t), w in found.items()} == pairs
    (tmp_path / "empty").touch()
    assert module.read_weights(str(tmp_path / "empty")) == (module.DEFAULTS, {})


def test_lists_are_read_with_their_phrase_pairs(tmp_path):
    nbest, weights = tmp_path / "nbest", tmp_path / "weights.txt"
    source = tmp_path / "source"
    source.write_text("\n".join((DATA / "dev.de").read_text("utf-8").split("\n")[:6]), "utf-8")
    weights.write_text("# mine\nLM0= 0.5\nTranslationModel0= 0.1 0.6\nother_thing= 3\n")
    command = [sys.executable, str(FOLDER / "decoder.py"), "--input", str(source)]
    environment = {"HOPEFEAR_WEIGHTS": str(weights), "HOPEFEAR_NBEST": str(nbest)}
    subprocess.run([*command, "--nbest", "40"], env=environment, check=True, timeout=60)
    lists = read_moses(nbest, source=source, phrases=True, texts=True)
    assert lists.layout == (*((name, 1) for name in list(WEIGHTS)[:4]), ("TranslationModel0", 2))
    assert len(lists) == 6 and lists.dropped == 0 and lists.n_candidates == 6 * 40
    used = [0.5, 0.3, -0.3, 0.2, 0.1, 0.6]
    assert lists.dense @ used == pytest.approx(lists.scores, abs=1e-3)
    table = (DATA / "phrase-table.txt").read_text("utf-8")
    known = {" ||| ".join(line.split(" ||| ")[:2]) for line in table.splitlines()}
    names = [lists.phrases.names[j] for j in range(len(lists.phrases.names))]
    assert names and set(names) <= known


def test_data_is_what_its_maker_makes(tmp_path):
    subprocess.run([sys.executable, str(FOLDER / "make_data.py"), str(tmp_path)], check=True)
    names = {path.name for path in DATA.iterdir()}
    assert names == {path.name for path in tmp_path.iterdir()}
    for name in names:
        assert (tmp_path / name).read_bytes() == (DATA / name).read_bytes()
