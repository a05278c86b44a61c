"""What the example decoder estimates from text agrees with definitions written out."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from random import Random

import numpy as np
import pytest
from example_decoder import phrasal

pytestmark = pytest.mark.interpreted

corpus = phrasal("corpus")
alignment = phrasal("alignment")
extraction = phrasal("extraction")
kneser_ney = phrasal("kneser_ney")
arpa = phrasal("arpa")

SEEDS = range(4)
TEXT = [line.split() for line in ["a b a", "b a b c", "c a", "a b a b", "d b a", "c", "a b c"]]


def parallel(seed, n=6, most=4):
    """Two sides of made-up sentences that translate word for word, more or less."""
    random = Random(seed)
    sides = [], []
    for _ in range(n):
        words = random.choices("uvwxy", k=random.randint(1, most))
        turned = [word.upper() for word in words if random.random() < 0.9] or ["Q"]
        random.shuffle(turned)
        sides[0].append(words)
        sides[1].append(turned)
    return tuple(map(corpus.numbered, sides))


def sentence(side, s):
    return side.words[side.starts[s] : side.starts[s + 1]].tolist()


@pytest.mark.parametrize("seed", SEEDS)
def test_likelihood_never_falls_and_probabilities_add_up(seed):
    f, e = parallel(seed, n=10, most=6)
    cells = alignment.cells(f, e)
    model = alignment.train(f, e, cells, model1=6, markov=6)
    for part in (model.likelihoods[:6], model.likelihoods[6:]):
        assert all(b >= a - 1e-9 for a, b in itertools.pairwise(part))
        assert part[-1] > part[0]
    totals = np.bincount(cells.origin, model.t)
    assert totals[totals > 0] == pytest.approx(1.0)
    assert model.jumps.sum() == pytest.approx(1.0)


def paths(f, e, s, t, jumps):
    """Every way to make a sentence: the places words come from (-1 for none), its probability."""
    made, origins = sentence(f, s), sentence(e, s)
    for way in itertools.product(range(-1, len(origins)), repeat=len(made)):
        p, before = 1.0, -1
        for word, place in zip(made, way, strict=True):
            if place < 0:
                p *= alignment.ALONE * t[0, word]
            else:
                p *= (1 - alignment.ALONE) * jumps[place - before + alignment.FARTHEST]
                p *= t[origins[place] + 1, word]
                before = place
        yield p, way


def words_given(cells, t):
    keys = zip(cells.origin.tolist(), cells.word.tolist(), strict=True)
    return dict(zip(keys, t.tolist(), strict=True))


@pytest.mark.parametrize("seed", SEEDS)
def test_both_models_sum_over_all_alignments(seed):
    f, e = parallel(seed)
    cells = alignment.cells(f, e)
    one = alignment.train(f, e, cells, model1=3, markov=0)
    model = alignment.train(f, e, cells, model1=3, markov=2)
    last = alignment.train(f, e, cells, model1=3, markov=3)
    t = words_given(cells, one.t)
    flat = 0.0
    for s in range(len(f)):
        origins = [0, *(origin + 1 for origin in sentence(e, s))]
        flat += sum(
            math.log(sum(t[origin, word] for origin in origins) / len(origins))
            for word in sentence(f, s)
        )
    assert alignment.train(f, e, cells, model1=4, markov=0).likelihoods[-1] == pytest.approx(flat)
    t = words_given(cells, model.t)
    ways = [list(paths(f, e, s, t, model.jumps)) for s in range(len(f))]
    total = sum(math.log(sum(p for p, _ in each)) for each in ways)
    assert last.likelihoods[-1] == pytest.approx(total)
    places = alignment.best_origins(f, e, cells, model)
    for s, each in enumerate(ways):
        chosen = tuple(places[f.starts[s] : f.starts[s + 1]].tolist())
        assert {way: p for p, way in each}[chosen] == pytest.approx(max(each)[0], rel=1e-6)


def linked(seed):
    f, e = parallel(seed, n=8, most=6)
    random = np.random.default_rng(seed)
    starts = alignment.matrix_starts(f, e)
    return f, e, random.random(starts[-1]) < 0.25


def matrix(f, e, links, s):
    start = alignment.matrix_starts(f, e)[s]
    shape = len(sentence(f, s)), len(sentence(e, s))
    return links[start : start + shape[0] * shape[1]].reshape(shape)


@pytest.mark.parametrize("seed", SEEDS)
def test_symmetrised_links_grow_from_what_both_directions_say(seed):
    f, e = parallel(seed, n=8, most=6)
    random = np.random.default_rng(seed)
    sizes = np.diff(f.starts), np.diff(e.starts)
    forward = random.integers(-1, np.repeat(sizes[1], sizes[0]))
    backward = random.integers(-1, np.repeat(sizes[0], sizes[1]))
    links = alignment.symmetrised(f, e, forward, backward)
    for s in range(len(f)):
        one = {(j, i) for j, i in enumerate(forward[f.starts[s] : f.starts[s + 1]]) if i >= 0}
        other = {(j, i) for i, j in enumerate(backward[e.starts[s] : e.starts[s + 1]]) if j >= 0}
        here = {tuple(point) for point in np.argwhere(matrix(f, e, links, s)).tolist()}
        assert one & other <= here <= one | other
        for j, i in (one | other) - here:  # what is left out links no word that has no link
            rows, columns = {y for y, _ in here}, {x for _, x in here}
            assert j in rows or i in columns


def test_a_neighbour_joins_and_a_far_link_between_linked_words_does_not():
    f, e = (corpus.numbered([words.split()]) for words in ("a b c", "A B C"))
    links = alignment.symmetrised(f, e, np.array([0, 0, 2]), np.array([0, 2, 2]))
    # (0,0) and (2,2) are in both; (1,0) is beside (0,0), (2,1) beside (2,2).
    assert np.argwhere(matrix(f, e, links, 0)).tolist() == [[0, 0], [1, 0], [2, 1], [2, 2]]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("longest", [2, 7])
def test_phrase_pairs_are_those_of_the_definition(seed, longest):
    f, e, links = linked(seed)
    cells = alignment.cells(f, e), alignment.cells(e, f)
    found = extraction.occurrences(f, e, links, *cells, longest)
    rows = Counter(tuple(row) for row in found.rows[:, :5].tolist())
    wanted = Counter()
    for s in range(len(f)):
        points = {tuple(point) for point in np.argwhere(matrix(f, e, links, s)).tolist()}
        size, n = matrix(f, e, links, s).shape
        for a, b in itertools.combinations(range(size + 1), 2):
            for c, d in itertools.combinations(range(n + 1), 2):
                inside = [(j, i) for j, i in points if a <= j < b and c <= i < d]
                crossing = [(j, i) for j, i in points if (a <= j < b) != (c <= i < d)]
                if inside and not crossing and max(b - a, d - c) <= longest:
                    wanted[s, f.starts[s] + a, b - a, e.starts[s] + c, d - c] += 1
    assert rows == wanted and max(rows.values()) == 1
    for row, lexical in zip(found.rows.tolist(), found.lexical, strict=True):
        s, place, size, at, n = row[:5]
        a, b = place - f.starts[s], at - e.starts[s]
        here = matrix(f, e, links, s)
        assert row[5:] == [
            orientation(here, a - 1, a + size, b - 1),
            orientation(here, a + size, a - 1, b + n),
        ]
        part = here[a : a + size, b : b + n]
        words = sentence(f, s)[a : a + size], sentence(e, s)[b : b + n]
        assert lexical[0] == pytest.approx(weight(part, *words, shares(f, e, links, False)))
        assert lexical[1] == pytest.approx(weight(part.T, *words[::-1], shares(f, e, links, True)))


def orientation(here, straight, turned, i):
    """By links of the neighbouring words; before and behind a sentence both sides are linked."""
    framed = np.pad(here, 1)
    framed[0, 0] = framed[-1, -1] = True
    if framed[straight + 1, i + 1]:
        return extraction.MONOTONE
    return extraction.SWAP if framed[turned + 1, i + 1] else extraction.OTHER


def shares(f, e, links, turned):
    """p(word | origin) by counting links, words without one being linked to None."""
    counts = Counter()
    for s in range(len(f)):
        here, words, origins = matrix(f, e, links, s), sentence(f, s), sentence(e, s)
        if turned:
            here, words, origins = here.T, origins, words
        for j, word in enumerate(words):
            for origin in [origins[i] for i in np.flatnonzero(here[j])] or [None]:
                counts[origin, word] += 1
    totals = Counter()
    for (origin, _), n in counts.items():
        totals[origin] += n
    return {key: n / totals[key[0]] for key, n in counts.items()}


def weight(part, words, origins, p):
    value = 1.0
    for j, word in enumerate(words):
        choices = [origins[i] for i in np.flatnonzero(part[j])] or [None]
        value *= sum(p[origin, word] for origin in choices) / len(choices)
    return value


@pytest.mark.parametrize("seed", SEEDS)
def test_tables_say_what_was_counted(seed, tmp_path):
    f, e, links = linked(seed)
    cells = alignment.cells(f, e), alignment.cells(e, f)
    found = extraction.occurrences(f, e, links, *cells, 3)
    table = extraction.scored(f, e, found, 3)
    pairs, reordering = (list(each) for each in extraction.table_lines(f, e, links, found, table))
    names = Counter((f.text(row[1], row[2]), e.text(row[3], row[4])) for row in found.rows.tolist())
    sources, targets = Counter(), Counter()
    for (source, target), n in names.items():
        sources[source] += n
        targets[target] += n
    assert {tuple(line.split(" ||| ")[:2]) for line in pairs} == set(names)
    ones, twos = (sum(n == k for n in names.values()) for k in (1, 2))
    discount = ones / (ones + 2 * twos) if ones and twos else 0.5
    for line, other in zip(pairs, reordering, strict=True):
        source, target, scores, inside, counts = line.split(" ||| ")
        n = names[source, target]
        assert counts.split() == [str(targets[target]), str(sources[source]), str(n)]
        kinds = sum(a == source for a, _ in names)
        lower = sum(b == target for _, b in names) / len(names)
        p = (n - discount + discount * kinds * lower) / sources[source]
        assert float(scores.split()[2]) == pytest.approx(p, rel=1e-5)
        sizes = len(source.split()), len(target.split())
        assert all(int(point.split("-")[k]) < sizes[k] for point in inside.split() for k in (0, 1))
        assert other.split(" ||| ")[:2] == [source, target]
        orders = list(map(float, other.split(" ||| ")[2].split()))
        assert sum(orders[:3]) == pytest.approx(1.0, abs=1e-5)
        assert sum(orders[3:]) == pytest.approx(1.0, abs=1e-5)
    few = extraction.scored(f, e, found, 3, most=1)
    rows = found.rows[few.best]
    left = [f.text(row[1], row[2]) for row in rows]
    assert sorted(left) == sorted(sources)


def by_definition(order, history, word):
    """Interpolated modified Kneser-Ney by counting the text for every question anew."""
    lines = [["<s>", *words, "</s>"] for words in TEXT]
    words = {w for line in lines for w in line} - {"<s>"} | {"<unk>"}

    def grams(size):
        return Counter(
            tuple(line[i : i + size]) for line in lines for i in range(len(line) - size + 1)
        )

    def counts(size):
        plain = grams(size)
        if size == order:
            return plain
        longer = grams(size + 1)
        counted = Counter(gram[1:] for gram in longer)
        return Counter({g: n if g[0] == "<s>" else counted[g] for g, n in plain.items()})

    p = 1.0 / len(words)
    for size in range(1, min(order, len(history) + 1) + 1):
        head = tuple(history[len(history) - size + 1 :])
        all_counts = counts(size)
        if size == 1:
            del all_counts[("<s>",)]
        discount = kneser_ney.discounts(np.array(list(all_counts.values())))
        behind = {g[-1]: n for g, n in all_counts.items() if g[:-1] == head}
        if behind:
            total = sum(behind.values())
            n = behind.get(word, 0)
            mass = sum(discount[min(3, each)] for each in behind.values()) / total
            p = (n - discount[min(3, n)]) / total + mass * p
    return p


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_kneser_ney_is_its_definition_and_adds_up_to_one(order):
    lines = "\n".join(kneser_ney.arpa_lines(kneser_ney.estimate(TEXT, order))).split("\n")
    model = arpa.read_arpa(lines)
    words = sorted(set(model.words) - {"<s>"})
    assert set(words) == {w for line in TEXT for w in line} | {"</s>", "<unk>"}
    histories = [
        ("<s>",),
        ("<s>", "a", "b"),
        *itertools.product(["a", "c", "d", "<unk>"], repeat=3),
    ]
    for history in histories:
        logs = {word: model.log_p(history, word) for word in words}
        assert sum(map(math.exp, logs.values())) == pytest.approx(1.0, abs=1e-5)
        for word in ("a", "b", "</s>", "<unk>"):
            p = by_definition(order, list(history), word)
            assert math.exp(logs[word]) == pytest.approx(p, rel=1e-5)


def test_discounts_are_those_of_chen_and_goodman():
    counts = np.repeat([1, 2, 3, 4, 9], [10, 4, 2, 1, 3])
    y = 10 / 18
    wanted = [0, 1 - 2 * y * 4 / 10, 2 - 3 * y * 2 / 4, 3 - 4 * y * 1 / 2]
    assert kneser_ney.discounts(counts) == pytest.approx(wanted)
    assert kneser_ney.discounts(np.array([1, 1, 5])).tolist() == [0.0, 0.5, 1.0, 1.5]


ARPA = """\\data\\
ngram 1=4
ngram 2=2
ngram 3=1

\\1-grams:
-99\t<s>\t-0.3
-0.5\ta\t-0.2
-0.6\tb
-0.7\t</s>

\\2-grams:
-0.1\t<s> a\t-0.4
-0.3\ta b

\\3-grams:
-0.05\t<s> a a

\\end\\"""


def test_a_model_that_leaves_runs_out_falls_back_on_what_it_has():
    model = arpa.read_arpa(ARPA.split("\n"))
    tens = math.log(10)
    for history, word, wanted in [
        (["<s>"], "a", -0.1),
        (["<s>", "a"], "a", -0.05),
        (["<s>", "a"], "b", -0.4 - 0.3),
        (["<s>", "a", "a"], "b", -0.3),  # "a a" is no run of the model: "a" is what counts
        (["a"], "</s>", -0.2 - 0.7),
        (["b"], "a", -0.5),
        ([], "b", -0.6),
    ]:
        assert model.log_p(history, word) == pytest.approx(wanted * tens)
    assert model.log_p(["b"], "never") == pytest.approx(arpa.LOWEST)
    with pytest.raises(ValueError, match="'x y' without 'x' before it"):
        arpa.read_arpa([*ARPA.split("\n")[:-2], "\\2-grams:", "-1\tx y"])


def test_histories_that_later_words_cannot_tell_apart_share_a_node():
    model = arpa.read_arpa(ARPA.split("\n"))
    nodes = []
    for history in (["a", "b"], ["b"], ["</s>"]):
        node = 0
        for number in model.numbers(history):
            _, node = arpa.follow(model.graph, node, number)
        nodes.append(node)
    assert nodes == [0, 0, 0]


@pytest.mark.parametrize("name", ["text", "text.gz"])
def test_texts_come_back(tmp_path, name):
    lines = ["ein haus", "", "ä\u2028b"]
    corpus.write_lines(tmp_path / name, lines)
    first = (tmp_path / name).read_bytes()
    assert corpus.read_lines(tmp_path / name) == lines
    corpus.write_lines(tmp_path / name, lines)
    assert (tmp_path / name).read_bytes() == first
