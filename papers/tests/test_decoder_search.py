"""The example decoder for real sentences finds what enumerating every derivation finds."""

from __future__ import annotations

import gzip
import itertools
import json
import math
import re
import subprocess
import sys
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from doc_pages import links_lead_somewhere, text_of
from example_decoder import FOLDER, phrasal
from places import DATA, ROOT
from snippets import command_is_understood

from hopefear.data.moses.reader import read_moses
from hopefear.metrics.lists.bleu import Bleu
from hopefear.translation.lists import read
from hopefear.translation.rounds import iterate
from hopefear.translation.task import tune
from hopefear.translation.weights import Weights

pytestmark = pytest.mark.interpreted
TOY = ROOT / "examples" / "decoder" / "data"

arpa = phrasal("arpa")
decoding = phrasal("decoding")
kneser_ney = phrasal("kneser_ney")
options = phrasal("options")
search = phrasal("search")

NAMES = ("LM0", "Distortion0", "WordPenalty0", "PhrasePenalty0", "UnknownWordPenalty0")
DENSE = [0.7, 0.2, -0.4, -0.1, 3.0]
TEXT = [line.split() for line in ["a b c", "b c a d", "d a", "c c b a", "e a b"]]
WIDE = search.Beam(10**6, 10**6, 2)


class System:
    """A random table over three source words, a language model, and weights."""

    def __init__(self, seed, order=3, reordering=True):
        random = Random(seed)
        self.order, self.reordering, self.pairs = order, reordering, {}
        for source in ["x", "y", "z", "x y", "y z", "z x", "x y z"]:
            targets = {" ".join(random.choices("abcdeq", k=random.randint(1, 2))) for _ in range(2)}
            self.pairs[source] = [
                options.Pair(
                    source,
                    target,
                    (math.log(random.random()), math.log(random.random())),
                    tuple(math.log(random.random()) for _ in range(6 * reordering)),
                    sparse=options.sparse_features(
                        source, target, ["0-0", "3 2 2"], options.SPARSE
                    ),
                )
                for target in sorted(targets)
            ]
        lines = "\n".join(kneser_ney.arpa_lines(kneser_ney.estimate(TEXT, order))).split("\n")
        self.model = arpa.read_arpa(lines)
        orders = [("LexicalReordering0", 6)] if reordering else []
        layout = (*((name, 1) for name in NAMES), ("TranslationModel0", 2), *orders)
        dense = [*DENSE, 0.3, 0.6, *[0.3, 0.1, 0.2, 0.4, 0.15, 0.25][: 6 * reordering]]
        first = self.pairs["x"][0]
        sparse = {"pair_z,x~d": 0.2, "wt_x~a": 0.3, "wt_y~b": -0.6, "pl_1,2": 0.1, "pc_2": -0.05}
        self.weights = Weights(layout, dense, sparse, {first.name: 0.8})

    def decoder(self, source, beam=WIDE, **more):
        return decoding.Decoder(self.pairs, self.model, [source], self.weights, beam, **more)

    def enumerated(self, source, limit):
        """Every derivation that the limit allows: score, text, phrases, dense features."""
        found = []

        def extend(covered, end, phrases):
            if len(covered) == len(source):
                found.append(self.scored(source, phrases))
                return
            for a, b in itertools.combinations(range(len(source) + 1), 2):
                span = set(range(a, b))
                gaps = set(range(len(source))) - covered - span
                far = abs(a - end) > limit or (gaps and b - min(gaps) > limit)
                if covered & span or far:
                    continue
                words = " ".join(source[a:b])
                entries = self.pairs.get(words, [])
                if b == a + 1 and not entries:
                    blank = (0.0,) * (6 * self.reordering)
                    entries = [options.Pair(words, words, (0.0, 0.0), blank, unknown=True)]
                for pair in entries:
                    extend(covered | span, b, [*phrases, (a, b, pair)])

        extend(set(), 0, [])
        return sorted(found, key=lambda one: -one[0])

    def scored(self, source, phrases):
        words = [word for _, _, pair in phrases for word in pair.target.split()]
        line = ["<s>", *words, "</s>"]
        values = [
            sum(self.model.log_p(line[:i], line[i]) for i in range(1, len(line))),
            -float(sum(abs(b[0] - a) for a, b in self.ends(phrases))),
            -len(words),
            len(phrases),
            -sum(pair.unknown for _, _, pair in phrases),
            *(sum(pair.scores[k] for _, _, pair in phrases) for k in (0, 1)),
        ]
        orders = [0.0] * (6 * self.reordering)
        framed = [(0, 0, None), *phrases, (len(source), len(source) + 1, None)]
        for (a, b, one), (c, d, other) in itertools.pairwise(framed):
            way = 0 if c == b else 1 if d == a else 2
            if self.reordering and other:
                orders[way] += other.reordering[way]
            if self.reordering and one:
                orders[3 + way] += one.reordering[3 + way]
        values += orders
        own = sum(
            self.weights.phrases.get(pair.name, 0.0)
            + sum(self.weights.sparse.get(name, 0.0) * n for name, n in pair.sparse.items())
            for _, _, pair in phrases
        )
        score = float(np.dot(values, self.weights.dense)) + own
        return score, " ".join(words), [(a, pair) for a, _, pair in phrases], values

    @staticmethod
    def ends(phrases):
        return zip([0, *(b for _, b, _ in phrases)], phrases, strict=False)


def texts(decoder, found):
    return [decoder.text(found, k) for k in range(len(found.scores))]


@pytest.mark.parametrize("reordering", [True, False])
@pytest.mark.parametrize(
    ("source", "order", "limit"),
    [("x y z", 3, 2), ("z u y x", 2, 3), ("y y x z", 3, 1), ("z y x", 1, 0), ("x y z u", 2, 9)],
)
def test_an_unpruned_search_finds_the_n_best_of_all(source, order, limit, reordering):
    system = System(len(source) + limit, order, reordering)
    source = source.split()
    everything = system.enumerated(source, limit)
    best = {}
    for one in everything:
        best.setdefault(one[1], one)
    decoder = system.decoder(source, WIDE._replace(limit=limit))
    found = decoder.translate(0, len(best) + 5, factor=10**4)
    words = texts(decoder, found)
    assert len(words) == len(set(words)) and set(words) == set(best)
    assert found.scores == pytest.approx([one[0] for one in best.values()], abs=1e-9)
    for k, text in enumerate(words):
        here = slice(found.ways.first[k], found.ways.first[k + 1])
        used = [decoder.table.pairs[row] for row in found.ways.row[here]]
        phrases = list(zip(found.ways.start[here].tolist(), used, strict=True))
        same = [one for one in everything if one[1] == text and one[0] > best[text][0] - 1e-9]
        (values,) = (one[3] for one in same if one[2] == phrases)
        assert found.values[k] == pytest.approx(values, abs=1e-9)
    few = decoder.translate(0, 5)
    assert few.scores == pytest.approx(found.scores[:5])


def test_derivations_come_best_first_and_once():
    system = System(3)
    source = ["x", "y", "z"]
    decoder = system.decoder(source, WIDE._replace(limit=9))
    table = decoder.table
    lattice = search.search(
        3, table.places[0], table.options, system.model.graph, decoder.steps, decoder.beam
    )
    everything = system.enumerated(source, 9)
    scores = lattice.score[lattice.first[-2] :]
    assert scores[0] == pytest.approx(everything[0][0])
    assert all(b <= a for a, b in itertools.pairwise(scores))


def test_narrow_searches_find_no_more_than_wide_ones_and_never_get_stuck():
    for seed in range(5):
        system = System(seed)
        source = list("xyzuzyxuyxz")
        beams = [search.Beam(*sizes) for sizes in ((1, 1, 0), (1, 1, 3), (40, 10, 3))]
        results = [system.decoder(source, beam).translate(0, 20) for beam in beams]
        assert all(len(result.scores) for result in results)
        short = source[:4]
        exact = system.enumerated(short, 3)[0][0]
        for beam in beams[1:]:
            assert system.decoder(short, beam).translate(0, 1).scores[0] <= exact + 1e-9


def test_a_table_is_cut_to_the_best_pairs_of_each_phrase():
    system = System(1)
    cut = system.decoder(["x", "y"], most=1).table
    whole = system.decoder(["x", "y"]).table
    assert np.all(np.diff(cut.options.first) == 1)
    for first, last in itertools.pairwise(whole.options.first.tolist()):
        assert np.all(np.diff(whole.options.estimate[first:last]) <= 0)
        assert whole.pairs[first] in cut.pairs


def test_long_sentences_empty_ones_and_unknown_words():
    system = System(2)
    decoder = system.decoder(list("xyzu") * 20, search.Beam(5, 3, 4))
    found = decoder.translate(0, 3)
    assert texts(decoder, found)[0].split().count("u") == 20
    assert found.values[0][4] == -20.0
    decoder = system.decoder([])
    (line,) = decoder.lines(0, 5)
    assert line.startswith("0 |||  ||| LM0= -")
    with pytest.raises(ValueError, match="limit=41"):
        system.decoder([], search.Beam(1, 1, 41))


def test_lists_are_read_with_their_scores_and_phrase_pairs(tmp_path):
    system = System(4)
    system.weights = replace(system.weights, phrases={})
    source = ["x", "y", "z", "x"]
    decoder = system.decoder(source)
    (tmp_path / "nbest").write_text("".join(f"{line}\n" for line in decoder.lines(0, 60)))
    (tmp_path / "source").write_text(" ".join(source) + "\n")
    lists = read_moses(tmp_path / "nbest", source=tmp_path / "source", phrases=True)
    assert lists.layout == system.weights.layout and lists.dropped == 0
    total = lists.dense @ system.weights.dense
    names = [lists.sparse.names[j] for j in range(len(lists.sparse.names))]
    own = np.array([system.weights.sparse.get(name, 0.0) for name in names])
    for k in range(len(total)):
        here = slice(lists.sparse.indptr[k], lists.sparse.indptr[k + 1])
        total[k] += own[lists.sparse.ids[here]] @ lists.sparse.values[here]
    assert total == pytest.approx(lists.scores, abs=2e-3)
    assert np.all(np.diff(lists.scores) <= 1e-4)
    known = {pair.name for pairs in system.pairs.values() for pair in pairs}
    pairs = {lists.phrases.names[j] for j in range(len(lists.phrases.names))}
    assert pairs and pairs <= known


def test_sparse_features_say_pairs_words_lengths_and_counts():
    more = ["0-0 1-1 1-2", "9 8 5"]
    names = options.sparse_features("a b", "c , d", more, options.SPARSE)
    assert names == {
        "pair_a,b~c,%2C,d": 1,
        "wt_a~c": 1,
        "wt_b~%2C": 1,
        "wt_b~d": 1,
        "pl_2,3": 1,
        "pc_3": 1,
    }
    assert options.sparse_features("a", "b", [], ["words", "lengths", "counts"]) == {"pl_1,1": 1}


def run(script, *words):
    command = [sys.executable, str(FOLDER / script), *map(str, words)]
    return subprocess.run(command, check=True, timeout=600, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """A system estimated from the toy sentences of the small decoder."""
    folder = tmp_path_factory.mktemp("toy")
    for side in ("de", "en"):
        lines = (TOY / f"test.{side}").read_text("utf-8").splitlines()[:40]
        (folder / f"train.{side}").write_text("\n".join(lines) + "\n", "utf-8")
        lines = (TOY / f"dev.{side}").read_text("utf-8").splitlines()[:4]
        (folder / f"dev.{side}").write_text("\n".join(lines) + "\n", "utf-8")
    sides = "--source", folder / "train.de", "--target", folder / "train.en"
    run("estimate.py", *sides, "--out", folder / "model", "--order", 3)
    return folder


def test_scripts_estimate_and_translate(toy):
    common = "--model", toy / "model", "--input", toy / "dev.de", "--pops", 30, "--stack", 10
    run("translate.py", *common, "--nbest", 20, "--sparse", "words", "--output", toy / "nbest.gz")
    lists = read_moses(toy / "nbest.gz", source=toy / "dev.de", phrases=True, texts=True)
    weights = Weights.read(toy / "model" / "weights.txt")
    assert lists.layout == weights.layout and len(lists.names) == 15 and len(lists) == 4
    assert lists.dense @ weights.dense == pytest.approx(lists.scores, abs=2e-3)
    assert len(lists.sparse.names) and len(lists.phrases.names)
    best = run("translate.py", *common, "--nbest", 0).splitlines()
    assert best == [lists.texts[k] for k in lists.starts[:-1]]
    sides = "--source", toy / "train.de", "--target", toy / "dev.en"
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run("estimate.py", *sides, "--out", toy / "other")
    assert "line i of one must translate line i of the other" in caught.value.stderr


def test_weights_that_tuning_writes_are_obeyed(toy):
    common = "--model", toy / "model", "--input", toy / "dev.de", "--pops", 30, "--stack", 10
    plain = run("translate.py", *common, "--nbest", 1)
    _, words, _, _, pairs = plain.splitlines()[0].split(" ||| ")
    source = (toy / "dev.de").read_text("utf-8").split("\n")[0].split()
    span = pairs.split()[0].split("=")
    f, e = (
        " ".join(words[int(one.split("-")[0]) : int(one.split("-")[-1]) + 1])
        for one, words in zip(span, (source, words.split()), strict=True)
    )
    first = Weights.read(toy / "model" / "weights.txt")
    against = Weights(first.layout, first.dense, phrases={f"{f} ||| {e}": -50.0})
    against.write(toy / "against.txt")
    other = run("translate.py", *common, "--nbest", 1, "--weights", toy / "against.txt")
    assert other.splitlines()[0].split(" ||| ")[4].split()[0] != pairs.split()[0] or (
        other.splitlines()[0].split(" ||| ")[1] != words
    )
    (toy / "empty").write_text("")
    assert run("translate.py", *common, "--nbest", 1, "--weights", toy / "empty") == plain


def test_rounds_of_tuning_are_drawn(toy):
    refs, run_folder = toy / "dev.en", toy / "runs" / "sgd-15"
    decoder = f"{sys.executable} {FOLDER / 'translate.py'} --model {toy / 'model'}"
    found = iterate(
        f"{decoder} --input {toy / 'dev.de'} --pops 30 --stack 10 --nbest 10",
        refs,
        Weights.read(toy / "model" / "weights.txt"),
        lambda paths, weights, _: (
            tune(read(paths, refs), "sgd", {"epochs": 2}, start=weights).weights
        ),
        folder=run_folder,
        rounds=1,
    )
    test = "--test", "toy", toy / "dev.de", refs
    common = "--model", toy / "model", "--runs", run_folder, "--refs", refs, *test
    head, _, row = run("curves.py", *common, "--out", toy / "curves").splitlines()
    assert "toy: BLEU, chrF" in head and row.startswith("| sgd-15 | ")
    assert f"**{max(e['dev']['bleu'] for e in found.rounds):.2f}**" in row
    curves = json.loads((toy / "curves" / "curves.json").read_text())["sgd-15"]
    assert len(curves) == len(found.rounds)
    for name in ("val", "toy"):
        assert (toy / "curves" / f"{name}.svg").read_text().startswith("<svg")
    assert run("curves.py", *common, "--out", toy / "curves").splitlines()[2] == row


def test_commands_of_the_page_are_understood():
    values: dict[str, str] = {}
    commands = []
    for line in text_of("papers/docs/decoder.md").splitlines():
        for name, value in sorted(values.items(), reverse=True):
            line = line.replace(f"${name}", value)
        if found := re.fullmatch(r'    ([A-Z]+)="?([^"]*)"?', line):
            values[found[1]] = found[2]
        elif line.startswith("    hopefear "):
            commands.append(line)
    assert len(commands) == 7
    for command in commands:
        command_is_understood(command)
    links_lead_somewhere("../papers/docs/decoder.md")


@pytest.mark.slow
@pytest.mark.long(seconds=300, why="estimates a translator from 4,000 sentences, and runs it")
def test_real_sentences(tmp_path, monkeypatch):
    folder = DATA / "multi30k_de_en"
    if not folder.exists():
        pytest.skip(f"no {folder}; set HOPEFEAR_DATA to a folder with multi30k_de_en")
    for name, n in (("train", 4000), ("val", 200)):
        for side in ("de", "en"):
            lines = gzip.decompress((folder / f"{name}.{side}.gz").read_bytes()).decode()
            (tmp_path / f"{name}.{side}").write_text("\n".join(lines.split("\n")[:n]), "utf-8")
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")
    sides = "--source", tmp_path / "train.de", "--target", tmp_path / "train.en"
    run("estimate.py", *sides, "--out", tmp_path)
    text = run("translate.py", "--model", tmp_path, "--input", tmp_path / "val.de", "--nbest", 0)
    refs = (tmp_path / "val.en").read_text("utf-8").splitlines()
    bleu = Bleu(tokenize="none")
    counts = bleu.statistics([[ref] for ref in refs], text.splitlines())
    assert bleu.scores(counts.sum(axis=0))["bleu"] > 25
