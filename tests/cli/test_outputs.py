"""Outputs that would destroy an input, or come of options that cannot work."""

from __future__ import annotations

import pytest

from hopefear.cli import main
from hopefear.data.generators import sparse_linear
from hopefear.data.write_svmlight import write_svmlight

pytestmark = pytest.mark.interpreted


@pytest.fixture
def data():
    return sparse_linear(120, 20, per_row=(3, 6), true_weights=8, seed=4).dataset()


@pytest.mark.parametrize("option", ["--train", "--dev", "--names"])
def test_a_model_does_not_replace_what_it_is_made_from(data, tmp_path, capsys, option):
    path = tmp_path / "data.svm"
    write_svmlight(path, data)
    before = path.read_bytes()
    given = {"--train": str(path)} | {option: str(tmp_path / "." / "data.svm")}
    words = ["train", "classify", "--quiet", "--model", str(path)]
    assert main([*words, *(word for pair in given.items() for word in pair)]) == 1
    assert "it is also an input" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_a_wrong_metric_leaves_no_trace(data, tmp_path, capsys):
    path = tmp_path / "data.svm"
    write_svmlight(path, data)
    words = ["train", "classify", "--quiet", "--train", str(path), "--dev", str(path)]
    words += ["--metric", "bleu", "--run", str(tmp_path / "run"), "--model", str(tmp_path / "m")]
    assert main(words) == 1
    assert "no score 'bleu' to stop on; there are accuracy" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["data.svm"]
