"""Trees that come in pieces: the arrays of the whole treebank, byte for byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support import small_trees

from hopefear.data.cache import cache_header, open_cache, source_of
from hopefear.data.treebank import Treebank, parse_treebank, read_treebank
from hopefear.data.treebank_parts import TreebankParts
from hopefear.errors import HopefearError, InputError
from hopefear.tasks.parse.cached import TreeCache, completed
from hopefear.tasks.parse.model import ParseModel
from hopefear.tasks.parse.task import dataset, train
from hopefear.training import passes

# Sums of 64 bits wrap on purpose; only plain Python tells of it.
pytestmark = [pytest.mark.interpreted, pytest.mark.filterwarnings("ignore:overflow")]
quick = small_trees.quick
HEADER = {"source": source_of("-"), "options": {}}


def cached(path: Path, bank: Treebank, cuts: list[int], **how: Any) -> Any:
    with TreeCache(path) as cache:
        for begin, end in zip(cuts, [*cuts[1:], len(bank)], strict=True):
            cache.add(bank.take(np.arange(begin, end)))
        cache.write(HEADER, **how)
    return completed(open_cache(path, verify=True), cache_header(path))


@pytest.mark.parametrize("crossing", [0.0, 0.02, 0.5])
@pytest.mark.parametrize(
    "how",
    [
        {"order": 1, "heads": 0},
        {"order": 2, "heads": 3, "seed": 4},
        {"order": 1, "heads": 0, "dictionary": True},
        {"order": 1, "heads": 2, "tree": "projective", "labelled": False, "tags": "cpos"},
    ],
)
def test_pieces_give_the_arrays_of_the_whole(tmp_path, how, crossing) -> None:
    bank = small_trees.small_treebank(60 if crossing == 0.02 else 9, 5, crossing)
    whole = dataset(bank, features="light", **how)
    for cuts in ([0], [0, 1, 4]):
        data = cached(tmp_path / "c", bank, cuts, features="light", **how)
        for ours, theirs in zip(data.rows, whole.rows, strict=True):
            assert ours.dtype == theirs.dtype and np.array_equal(ours, theirs)
        assert (data.labels, data.kind, data.lifted) == (whole.labels, whole.kind, whole.lifted)
        assert data.digest == whole.digest
        assert data.features.to_header() == whole.features.to_header()
        for name, array in whole.features.arrays().items():
            assert np.array_equal(data.features.arrays()[name], array)
        assert (data.pruner is None) == (whole.pruner is None) == (how["heads"] == 0)
        if whole.pruner is not None:
            assert data.pruner.to_header() == whole.pruner.to_header()
            for name, array in whole.pruner.arrays().items():
                assert np.array_equal(data.pruner.arrays()[name], array)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_pruner_of_several_blocks_is_that_of_memory(tmp_path, monkeypatch, n_jobs) -> None:
    monkeypatch.setattr(passes, "_BLOCK", 1500)
    bank = small_trees.small_treebank(16, 5, 0.5)
    how = {"order": 1, "heads": 2, "features": "light"}
    whole = dataset(bank, **how)
    memory = dataset(bank, **how, by_block=True, n_jobs=n_jobs)
    mapped = cached(tmp_path / "c", bank, [0, 3, 8], **how, n_jobs=n_jobs)
    assert mapped.pruner.to_header() == memory.pruner.to_header() and memory.pruner.by_block
    assert "by_block" not in whole.pruner.to_header()
    assert same_weights(mapped.pruner, memory.pruner)
    assert not same_weights(whole.pruner, memory.pruner)
    assert mapped.digest == memory.digest
    models = [train(data, "perceptron", epochs=2, by_block=True).model for data in (memory, mapped)]
    assert models[0].signature == models[1].signature
    assert same_weights(models[0].predictor, models[1].predictor)
    assert ParseModel.from_bytes(models[0].to_bytes()).pruner.by_block


def same_weights(one: Any, other: Any) -> bool:
    theirs = other.arrays()
    return all(np.array_equal(array, theirs[name]) for name, array in one.arrays().items())


def test_what_a_treebank_in_memory_refuses_is_refused(tmp_path) -> None:
    bank = small_trees.small_treebank(3)
    for how, said in (
        ({"order": 3}, "order must be 1 or 2"),
        ({"order": 2, "heads": 0}, "heads"),
        ({"tree": "flat"}, "tree"),
        ({"tags": "nothing"}, "no column 'nothing'"),
        ({"features": "many"}, "template sets"),
    ):
        with pytest.raises(HopefearError, match=said):
            cached(tmp_path / "c", bank, [0], **how)
    with TreeCache(tmp_path / "c") as cache, pytest.raises(HopefearError, match="no sentences"):
        cache.write(HEADER)
    assert list(tmp_path.iterdir()) == []


LINE = "1\tGo\tgo\t{}\tVB\t_\t0\troot\t{}\t_\n\n"


@pytest.mark.parametrize(
    "text",
    [
        LINE.format("VERB", "_") * 9,
        LINE.format("VERB", "_") * 8 + LINE.format("VB", "_"),  # a tag of CoNLL-X, late
        LINE.format("VERB", "_") * 8 + LINE.format("VERB", "0"),
        LINE.format("VB", "_") * 8 + "# a comment\n" + LINE.format("VERB", "0"),
        LINE.format("VB", "_") * 8 + "# the end\n",
        "Go\tVB\t0\n\n" * 9,
        "\ufeff" + "Go\tVB\t0\troot\n\n" * 9,
        "1\tGo\tgo\tVERB\tVB\t_\t0\troot\n\n" * 9,
    ],
)
def test_parts_are_the_whole_and_its_format(tmp_path, text) -> None:
    path = tmp_path / "trees"
    path.write_text(text)
    whole, parts = read_treebank(path), TreebankParts(path, piece_bytes=60)
    banks = list(parts)
    assert len(banks) > 1 and parts.format == whole.format
    assert sum(map(len, banks)) == len(whole)
    assert np.array_equal(np.concatenate([bank.heads for bank in banks]), whole.heads)
    for name, column in whole.sentences.columns.items():
        if name != "head":
            texts = [text for bank in banks for text in bank.sentences.columns[name].texts()]
            assert texts == column.texts()


@pytest.mark.parametrize(
    "text", ["", "# only this\n", "\n\n", LINE.format("X", "_").replace("\t0\t", "\t5\t"), "a b\n"]
)
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_a_file_without_trees_is_refused(tmp_path, text, on_error) -> None:
    path = tmp_path / "trees"
    path.write_text(text)
    with pytest.raises(InputError) as whole:
        parse_treebank(text.encode(), str(path), on_error=on_error)
    with pytest.raises(InputError) as parts:
        list(TreebankParts(path, on_error=on_error))
    assert parts.value.line == whole.value.line
