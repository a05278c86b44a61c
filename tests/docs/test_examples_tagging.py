"""The tutorial of sklearn-crfsuite's users runs here, and with the original's imports there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

TUTORIAL = ROOT / "examples" / "sklearn_crfsuite_tutorial.py"
IMPORTS = {
    "from hopefear import crfsuite as sklearn_crfsuite\n": "import sklearn_crfsuite\n",
    "from hopefear.crfsuite import metrics\n": "from sklearn_crfsuite import metrics\n",
}


def run(path: Path, *more: str) -> list[str]:
    answer = subprocess.run(
        [sys.executable, str(path), *more], capture_output=True, text=True, timeout=300
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.splitlines()


def f1(lines: list[str]) -> float:
    return float(re.fullmatch(r"F1 of the labels but O: ([\d.]+)", lines[0]).group(1))


@pytest.mark.needs("bench")
def test_only_the_imports_are_ours(tmp_path):
    text = TUTORIAL.read_text("utf-8")
    for ours, theirs in IMPORTS.items():
        assert text.count(ours) == 1
        text = text.replace(ours, theirs)
    assert "hopefear" not in text.split('"""', 2)[2]
    original = tmp_path / "original.py"
    original.write_text(text, "utf-8")
    ours, theirs = run(TUTORIAL), run(original)
    assert f1(ours) == pytest.approx(f1(theirs), abs=0.02)
    assert f1(ours) > 0.9
    assert len(ours) == len(theirs)
    heads = ("best parameters", "likely", "unlikely", "heavy")
    assert [s for s in ours if s.startswith(heads)][1:] == [
        s for s in theirs if s.startswith(heads)
    ][1:]


def test_a_file_may_be_given(tmp_path):
    tokens = [
        ("Ann", "NNP", "B-PER"),
        ("saw", "VBD", "O"),
        ("Rome", "NNP", "B-LOC"),
        (".", ".", "O"),
    ]
    block = "\n".join(" ".join(token) for token in tokens)
    path = tmp_path / "some.conll"
    path.write_text("\n\n".join([block] * 24) + "\n", "utf-8")
    assert f1(run(TUTORIAL, str(path))) == 1.0
