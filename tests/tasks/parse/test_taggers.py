"""Taggers of a parser: what they give, what they learn from, how a model file holds them."""

from __future__ import annotations

import numpy as np
import pytest

import hopefear
from hopefear import Parser
from hopefear.data.sequences import Column
from hopefear.errors import HopefearError, ModelError
from hopefear.features.arcs.templates import ArcTemplates
from hopefear.tasks.estimator import ArgumentError
from hopefear.tasks.parse.model import ParseModel
from hopefear.tasks.parse.taggers import Taggers, joined, values_of
from tests.support import small_trees

pytestmark = [pytest.mark.interpreted, pytest.mark.filterwarnings("ignore:overflow")]
quick = small_trees.quick
FEW = ArcTemplates.of({**small_trees.FEW, "arc": "h.tag m.tag / m.word distance / m.morph h.tag"})
SMALL = {"order": 1, "features": FEW, "hash_bits": 12, "epochs": 2}
KINDS = {"D": "Def=Yes", "N": "Number=Sing|Case=Nom", "V": "Tense=Past", "A": "_", "R": "_"}


@pytest.fixture(scope="module")
def bank():
    bank = small_trees.written_treebank(24, seed=1)
    columns = bank.sentences.columns
    feats = Column.of([KINDS[tag] for tag in columns["upos"].texts()])
    return bank.with_tags({"upos": columns["upos"], "xpos": columns["xpos"], "feats": feats})


@pytest.fixture(scope="module")
def parser(bank):
    return Parser("perceptron", **SMALL, tagger="auto", jackknife=2).fit(bank)


def test_tags_are_those_of_strangers(bank):
    known, as_they_are, said = Taggers.new(bank, ["upos", "feats"]).learned(bank, 0)
    assert "as it is (they are not jackknifed)" in said[0]
    again, strange, said = known.learned(bank, 3)
    assert "% of upos, " in said[0] and again.parts[0].estimator is known.parts[0].estimator
    gold = np.array(bank.sentences.columns["upos"].texts())
    right = [np.mean(np.array(each.sentences.columns["upos"].texts()) == gold)
             for each in (as_they_are, strange)]  # fmt: skip
    assert right[0] >= right[1] > 0.5
    assert set(as_they_are.sentences.columns["lemma"].texts()) == {"_"}


def test_taggers_trained_by_threads_are_the_same(bank):
    one, two = (Taggers.new(bank, ["upos", "feats"]).learned(bank, 3, n_jobs=n) for n in (1, 2))
    assert one[1].digest == two[1].digest and one[2] == two[2]


def test_morphology_is_split_and_joined(bank):
    taggers = Taggers.new(bank, ["feats"])
    assert [part.attributes for part in taggers.parts] == [{"Number", "Case", "Tense", "Def"}]
    (part,) = taggers.parts
    one = part._replace(attributes=frozenset({"Case", "Tense"}))
    two = part._replace(attributes=frozenset({"Number", "Def"}))
    assert set(one.gold(bank)) == {"_", "Case=Nom", "Tense=Past"}
    split, _, _ = Taggers((one, two)).learned(bank, 0)
    found = split.tagged(bank).sentences.columns["feats"].texts()
    assert [set(values_of(text)) for text in found] == [
        set(values_of(text)) for text in bank.sentences.columns["feats"].texts()
    ]
    assert joined([["B"], ["a"]]) == ["a|B"]


def test_a_parser_reads_words_alone_with_the_taggers_of_its_file(parser, bank, tmp_path):
    parser.save(tmp_path / "m")
    loaded = hopefear.load(tmp_path / "m")
    assert loaded.to_bytes() == parser.to_bytes() == Parser.from_bytes(parser.to_bytes()).to_bytes()
    words = [["the", "cat", "left"]]
    assert loaded.predict(words) == parser.predict(words)
    (record,) = loaded.predict_records(words)
    assert [token["upos"] for token in record["tokens"]] == ["D", "N", "V"]
    assert record["tokens"][1]["feats"] == "Number=Sing|Case=Nom"
    (tree,) = loaded.predict_text("the cat left", proba=True)
    assert tree.tree == loaded.predict(words)[0] and tree.tokens[2].start == 8
    assert 0.0 < tree.tokens[2].probability <= 1.0 and "cat" in repr(tree)
    best, second = loaded.predict_records(words, n=2)[0]["outputs"]
    assert (best["rank"], second["rank"]) == (1, 2) and best["probability"] > second["probability"]
    assert loaded.explain(words, 0, 1).label == loaded.predict(words)[0][1]
    assert parser.score(bank) > 0.9


def test_nothing_of_a_file_is_trusted(parser):
    header, arrays = parser.model_._header(), parser.model_._arrays()
    first = header["taggers"][0]
    for forged in (
        *([], 3, [3], [{**first, "columns": ["form"]}], [{**first, "model": 3}]),
        [{**first, "model": {**first["model"], "task": "parse"}}],
        [{**first, "model": {**first["model"], "order": 9}}],
    ):
        with pytest.raises(ModelError):
            ParseModel.from_file_parts({**header, "taggers": forged}, arrays)
    with pytest.raises(ModelError):
        ParseModel.from_file_parts(header, {k: v for k, v in arrays.items() if "tagger0" not in k})


def test_taggers_of_ones_own(bank, tmp_path):
    X = [["the", "cat", "left"], ["dogs", "bark"]]
    y = [[(2, "det"), (3, "subj"), (0, "root")], [(2, "subj"), (0, "root")]]
    coarse = hopefear.Tagger("perceptron", epochs=3).fit(X, [["D", "N", "V"], ["N", "V"]])
    feats = hopefear.Tagger("perceptron", epochs=3).fit(X, [["_", "S", "T"], ["P", "T"]])
    given = {"upos": coarse, "feats": feats}
    parser = Parser("perceptron", **SMALL, tagger=given).fit(X, y)
    assert parser.model_.taggers.columns == ("upos", "feats") and parser.predict(X) == y
    parser.save(tmp_path / "m")
    assert hopefear.load(tmp_path / "m").predict(X) == y

    class Other:
        def predict(self, X):
            return [["N"] * len(words) for words in X]

    parser = Parser("perceptron", **SMALL, tagger=Other()).fit(X, y)
    assert len(parser.predict(X)) == 2
    with pytest.raises(HopefearError, match="Other is no tagger of hopefear"):
        parser.save(tmp_path / "m")
    of_attributes = hopefear.Tagger("perceptron").fit([[["a"], ["b"]]], [["N", "V"]])
    of_pairs = hopefear.Tagger("perceptron").fit([[("a", "b")] * 2], [["N", "V"]])
    for wrong, said in (
        ({"form": coarse}, "not 'form'"),
        ([coarse, coarse], "two taggers give the column upos"),
        (3, "int is no tagger"),
        (of_attributes, "attributes made elsewhere"),
        (of_pairs, "reads the columns word, pos"),
    ):
        with pytest.raises(ArgumentError, match=said):
            Parser("perceptron", **SMALL, tagger=wrong).fit(X, y)
    with pytest.raises(ArgumentError, match="has no tags that taggers of its words could learn"):
        Parser("perceptron", **SMALL, tagger="auto").fit(X, y)


def test_streams_are_tagged_by_the_taggers_of_the_first_call(bank):
    parser = Parser("perceptron", **SMALL, tagger="auto", jackknife=0)
    parser.partial_fit(bank.take(range(16))).partial_fit(bank.take(range(16, 24)))
    assert parser.score(bank) > 0.8
