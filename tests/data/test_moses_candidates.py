"""N-best lists of Moses as lists of candidates: what `train rerank` reads, and `tune` counts."""

from __future__ import annotations

import io
import json
import sys

import numpy as np
import pytest
import tuning_files

from hopefear.data.files import ReadReport
from hopefear.data.lists.files import read_lists
from hopefear.data.lists.input import UnjudgedError
from hopefear.data.moses.reader import moses_blocks, read_moses
from hopefear.errors import HopefearError, InputError
from hopefear.metrics.lists import metric_named
from hopefear.tasks.base import train
from hopefear.tasks.rerank.prepare import dataset
from hopefear.tasks.rerank.task import Reranking
from hopefear.translation.lists import read

pytestmark = pytest.mark.interpreted

BLEU = metric_named("bleu", tokenize="none")
LINES = """\
0 ||| the house is small ||| LM0= -2 TM0= -2 -2 ||| -3 ||| 0-1=0-3
0 ||| the house is the small ||| LM0= -3 TM0= -1 -2 wt_the= 2 ||| -4 ||| 0=0
0 ||| the house is small ||| LM0= -4 TM0= -1 -2 pp_x~y= 0.5 ||| -5
1 ||| it is hope ||| LM0= -2 TM0= -1 -1 wt_it= 1 wt_the= 1 ||| -2.5
"""


@pytest.fixture
def nbest(tmp_path):
    tuning_files.write(tmp_path, "a", 0, 12, candidates=6)
    (tmp_path / "b.nbest").write_text(LINES)
    (tmp_path / "b.ref").write_text("the house is small\nit is hope\n")
    return tmp_path


def named(block):
    """Features of each candidate by name, as a dict would hold them."""
    return [block.features_of(c) for c in range(block.n_candidates)]


def test_features_texts_scores_and_references(nbest):
    (block,) = read_lists(nbest / "b.nbest", refs=nbest / "b.ref", metric=BLEU, dedup="none")
    assert block.ids == ["0", "1"] and block.starts.tolist() == [0, 3, 4]
    assert block.texts[1] == "the house is the small" and block.texts[3] == "it is hope"
    assert block.scores.tolist() == [-3.0, -4.0, -5.0, -2.5]
    assert block.references == [["the house is small"], ["it is hope"]]
    assert named(block) == [
        {"LM0": -2.0, "TM0.0": -2.0, "TM0.1": -2.0},
        {"LM0": -3.0, "TM0.0": -1.0, "TM0.1": -2.0, "wt_the": 2.0},
        {"LM0": -4.0, "TM0.0": -1.0, "TM0.1": -2.0, "pp_x~y": 0.5},
        {"LM0": -2.0, "TM0.0": -1.0, "TM0.1": -1.0, "wt_it": 1.0, "wt_the": 1.0},
    ]
    assert block.metric == "bleu" and block.costs[0] == block.costs[2] < block.costs[1]
    assert block.lines.tolist() == [1, 4]
    (both,) = read_lists(nbest / "b.nbest", refs=[nbest / "b.ref"] * 2, metric=BLEU)
    assert (block.n_references, both.n_references) == (1, 2)
    (once,) = read_lists(nbest / "b.nbest", refs=nbest / "b.ref", metric=BLEU)
    assert once.starts.tolist() == [0, 2, 3]


@pytest.mark.parametrize("metric", [BLEU, metric_named("ter"), metric_named("bleu")])
def test_costs_are_those_that_tuning_sees(nbest, metric):
    lists = read(nbest / "a.nbest", nbest / "a.ref", metric=metric, dedup="none")
    (block,) = read_lists(
        nbest / "a.nbest", "moses", refs=[nbest / "a.ref"], metric=metric, dedup="none"
    )
    assert np.array_equal(block.counts, lists.counts)
    assert np.array_equal(block.costs, metric.costs(lists.counts))
    assert named(block) == named(lists)


def test_blocks_number_names_alike(nbest):
    blocks = list(moses_blocks(nbest / "a.nbest", dedup="none", block_candidates=7))
    whole = read_moses(nbest / "a.nbest", dedup="none")
    assert len(blocks) > 1 and sum(map(len, blocks)) == len(whole) == 12
    assert [one for block in blocks for one in named(block)] == named(whole)
    first, last = (list(block.sparse.names) for block in (blocks[0], blocks[-1]))
    assert last[: len(first)] == first


@pytest.mark.parametrize("format", ["auto", "moses"])
def test_standard_input_is_read_once(nbest, monkeypatch, format):
    class Piped:
        buffer = io.BytesIO((nbest / "b.nbest").read_bytes())

    monkeypatch.setattr(sys, "stdin", Piped)
    (block,) = read_lists("-", format, judged=False)
    assert len(block) == 2 and block.costs is None and block.references is None


def test_bad_lines_are_left_out_and_counted(nbest):
    lines = LINES.splitlines()
    lines.insert(1, "0 ||| no features")
    (nbest / "b.nbest").write_text("\n".join(lines))
    with pytest.raises(InputError, match=r"b\.nbest:2: "):
        list(read_lists(nbest / "b.nbest"))
    report = ReadReport()
    (block,) = read_lists(nbest / "b.nbest", on_error="skip", report=report, dedup="none")
    assert block.n_candidates == 4 and report.skipped == 1 and report.rows == 2
    assert "b.nbest:2" in report.messages[0]


def test_what_is_missing_is_said(nbest):
    path, refs = nbest / "b.nbest", nbest / "b.ref"
    with pytest.raises(UnjudgedError, match="expected references, from which lists") as error:
        list(read_lists(path, metric=BLEU, require_costs=True))
    assert error.value.format == "moses"
    with pytest.raises(UnjudgedError, match="a metric of texts, such as bleu"):
        list(read_lists(path, refs=refs, require_costs=True))
    with pytest.raises(HopefearError, match="parseval is for trees, and these candidates are tex"):
        list(read_lists(path, refs=refs, metric=metric_named("parseval")))
    refs.write_text("one\n")
    with pytest.raises(InputError, match=r"b\.nbest:4: expected a list with a reference"):
        list(read_lists(path, refs=refs, metric=BLEU))
    refs.write_text("one\ntwo\nthree\n")
    with pytest.raises(InputError, match=r"b\.ref:3: expected list 2"):
        list(read_lists(path, refs=refs, metric=BLEU))
    record = {"id": 1, "reference": "a", "candidates": [{"text": "a"}]}
    (nbest / "c.jsonl").write_text(json.dumps(record))
    with pytest.raises(HopefearError, match="references go with lists in the format moses"):
        list(read_lists(nbest / "c.jsonl", refs=refs, metric=BLEU))


def test_a_reranker_learns_from_them(nbest):
    blocks = read_lists(nbest / "a.nbest", refs=nbest / "a.ref", metric=BLEU)
    data = dataset(blocks, metric=BLEU)
    names = {data.features.name(j) for j in range(data.features.size)}
    assert {"LM0", "TM0.0", "TM0.1"} <= {name.split(":")[-1] for name in names}
    assert train(Reranking(), data, "perceptron", epochs=1).model.metric.name == "bleu"
