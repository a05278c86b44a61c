"""Labels that their scheme forbids, as the most used corpora have them."""

from __future__ import annotations

import json

import pytest

from hopefear import Tagger
from hopefear.cli import main
from hopefear.data.schemes import are_spans, detect_scheme, mend, no_spans
from hopefear.errors import InputError

pytestmark = pytest.mark.interpreted

GOOD = "Ann B-PER\nLee I-PER\nsees O\nRome B-LOC\n\n" * 10
BAD = "Rome I-LOC\nsees O\n\nAnn B-PER\nNato I-ORG\n\n"


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.txt").write_text(GOOD + BAD)
    (tmp_path / "good.txt").write_text(GOOD)
    return tmp_path


def run(capsys, *words, status=0):
    capsys.readouterr()
    assert main([*words]) == status
    out, err = capsys.readouterr()
    return json.loads(out) if out else None, err


def train(capsys, *more, status=0):
    return run(capsys, "train", "tag", "--train", "train.txt", "--model", "m", "--epochs", "2",
               "--json", *more, status=status)  # fmt: skip


def test_labels_are_mended_counted_and_listed(files, capsys) -> None:
    result, err = train(capsys, "--dev", "train.txt")
    assert (result["scheme"], result["mended"], result["sentences"]) == ("bio", 2, 12)
    line = next(line for line in err.splitlines() if "break BIO" in line)
    assert line == (
        "hopefear: warning: 2 labels break BIO and are mended: train.txt:51 'I-LOC' as 'B-LOC', "
        "train.txt:55 'I-ORG' as 'B-ORG'"
    )
    scores, err = run(capsys, "evaluate", "--model", "m", "--data", "train.txt", "--json")
    assert scores["gold"] == 23 and "break BIO" in err


def test_sentences_are_left_out_or_refused(files, capsys) -> None:
    result, err = train(capsys, "--scheme-errors", "skip")
    assert (result["mended"], result["sentences"], result["labels"]) == (2, 10, 4)
    assert "2 sentences break BIO and are left out: train.txt:51 'I-LOC'" in err
    scores, _ = run(capsys, "evaluate", "--model", "m", "--data", "train.txt", "--json",
                    "--scheme-errors", "skip")  # fmt: skip
    assert scores["sentences"] == 10
    _, err = train(capsys, "--scheme-errors", "raise", status=1)
    assert "train.txt:51" in err and "--scheme none" in err
    run(capsys, "evaluate", "--model", "m", "--data", "train.txt", "--json", "--scheme-errors",
        "raise", status=1)  # fmt: skip


def test_a_stray_label_is_named_not_followed(files, capsys) -> None:
    (files / "train.txt").write_text(GOOD + "Rome S-LOC\nsees O\n\n")
    _, err = train(capsys, status=1)
    assert "train.txt:51: expected" in err and "scheme BIO, as 41 others are, found 'S-LOC'" in err
    assert "--scheme-errors skip" in err
    result, err = train(capsys, "--scheme-errors", "skip")
    assert (result["scheme"], result["mended"], result["sentences"]) == ("bio", 1, 10)


def test_no_scheme_keeps_the_features(files, capsys) -> None:
    assert train(capsys)[0]["feature_set"] == "ner"
    result, _ = train(capsys, "--scheme", "none")
    assert (result["feature_set"], result["scheme"]) == ("ner", None)


def test_crfsuite_files_are_mended_too(files, capsys) -> None:
    text = "".join(
        f"{line.split()[1]}\tw={line.split()[0]}\n" if line else "\n"
        for line in (GOOD + BAD).split("\n")
    )
    (files / "train.txt").write_text(text)
    assert train(capsys)[0]["mended"] == 2
    assert train(capsys, "--scheme-errors", "skip")[0]["sentences"] == 10


def test_labels_that_are_nearly_spans_are_said(files, capsys) -> None:
    (files / "train.txt").write_text("Ann B_PER\nLee I_PER\nsees O\n\n" * 5)
    assert "no spans: labels such as 'B_PER' need a hyphen, 'B-PER'" in train(capsys)[1]
    (files / "train.txt").write_text("Ann PER\nsees O\n\n" * 5)
    assert "no spans: 'PER' beside 'O' does not say where a span begins" in train(capsys)[1]


def test_python_mends_with_a_warning() -> None:
    X = [["Ann", "Lee"], ["Rome", "is"], ["Bo", "Nato"]]
    y = [["B-PER", "I-PER"], ["I-LOC", "O"], ["B-PER", "I-ORG"]]
    with pytest.warns(UserWarning, match=r"2 labels break BIO .*'I-LOC' as 'B-LOC'"):
        tagger = Tagger("perceptron").fit(X, y)
    assert list(tagger.classes_) == ["B-PER", "I-PER", "B-LOC", "O", "B-ORG"]
    with pytest.warns(UserWarning, match="break BIO"):
        assert tagger.score(X, y) == 1.0
    with pytest.warns(UserWarning, match="2 sentences .* left out"):
        tagger = Tagger("perceptron", scheme_errors="skip").fit(X, y, sample_weight=[1, 2, 3])
    assert list(tagger.classes_) == ["B-PER", "I-PER"]
    with pytest.raises(ValueError, match="allows"):
        Tagger("perceptron", scheme_errors="raise").fit(X, y)
    with pytest.raises(ValueError, match="scheme_errors must be"):
        Tagger("perceptron", scheme_errors="mend").fit(X, y)


def test_the_scheme_with_the_fewest_errors_is_meant() -> None:
    labels = ["B-X", "I-X", "O", "I-X", "B-Y", "O"]
    assert detect_scheme(labels, errors="begin") == "bio"
    assert mend(labels, None, "bio").labels.texts() == ["B-X", "I-X", "O", "B-X", "B-Y", "O"]
    iobes = ["B-X", "E-X", "O", "B-Y", "O", "S-X", "I-X"]
    assert detect_scheme(iobes, errors="begin") == "iobes"
    mended = mend(iobes, None, "iobes").labels.texts()
    assert mended == ["B-X", "E-X", "O", "S-Y", "O", "S-X", "S-X"]
    assert detect_scheme(mended) == "iobes"


def test_strange_labels_stay_in_held_out_data() -> None:
    with pytest.raises(InputError, match="a label of the scheme BIO"):
        mend(["B-X", "?", "I-X"], None, "bio")
    assert mend(["B-X", "?", "I-X"], None, "bio", strangers=True).labels.texts() == [
        "B-X",
        "?",
        "B-X",
    ]
    assert are_spans(["I-X", "I-Y"]) and no_spans(["B", "C"]) == "no spans"
