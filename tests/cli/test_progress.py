"""What a terminal shows beside lines, and that nothing else gets any of it."""

from __future__ import annotations

import io
import re
import sys
import time

import pytest
import rich.progress  # noqa: F401 - takes longer than work of these tests
import small_trees

from hopefear.cli import main, progress
from hopefear.cli.console import Console
from hopefear.core.progress import counted, stage, watched
from hopefear.metrics.calibration import best_temperature

pytestmark = pytest.mark.interpreted
quick = small_trees.quick
TABLE = (["learner", "F1", "s"], [["rda", "90.10", "0.5"], ["vrda", "91.20", "0.7"]])


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_terminal(monkeypatch) -> Terminal:
    """Standard error from now on; a fixture would be too early, for pytest changes it later."""
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "_SOON", 0.01)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return screen


def test_the_best_is_bold_on_a_terminal(monkeypatch):
    terminal = on_terminal(monkeypatch)
    Console().table(*TABLE, {"F1": "max", "s": "min"})
    lines = terminal.getvalue().splitlines()
    assert lines[1:] == ["rda      90.10  \x1b[1m0.5\x1b[22m", "vrda     \x1b[1m91.20\x1b[22m  0.7"]


def test_a_row_has_a_best_number(monkeypatch):
    terminal = on_terminal(monkeypatch)
    rows = [["train", "3.0", "2.0"], ["dev", "1.0", "4.0"]]
    Console().table(["set", "before", "after"], rows, along={"before", "after"}, higher=False)
    assert re.findall("\x1b\\[1m(.*?)\x1b", terminal.getvalue()) == ["2.0", "1.0"]


@pytest.mark.parametrize("name", ["NO_COLOR", "dumb", "pipe", "quiet"])
def test_nothing_is_bold_elsewhere(monkeypatch, name):
    terminal = on_terminal(monkeypatch)
    if name == "NO_COLOR":
        monkeypatch.setenv(name, "1")
    if name == "dumb":
        monkeypatch.setenv("TERM", name)
    if name == "pipe":
        monkeypatch.setattr(terminal, "isatty", lambda: False)
    Console(name == "quiet").table(*TABLE, {"F1": "max"})
    assert "\x1b" not in terminal.getvalue()
    assert bool(terminal.getvalue()) == (name != "quiet")


def test_long_work_has_a_bar(monkeypatch):
    terminal = on_terminal(monkeypatch)
    console = Console()
    with progress.ProgressBar(console) as bar, watched(bar):
        with stage("sorting", 10, "lists") as work:
            work.advance(4)
            time.sleep(0.4)
        best_temperature(lambda t: (time.sleep(0.01), -((t - 2.0) ** 2))[1])
    text = terminal.getvalue()
    assert "sorting: 4 of 10 lists" in text and "likelihoods" in text
    with stage("sorting") as work:  # nobody watches any more
        time.sleep(0.05)
    assert terminal.getvalue() == text


def test_lines_stand_above_the_bar_of_the_innermost_stage(monkeypatch):
    terminal = on_terminal(monkeypatch)
    console = Console()
    with progress.ProgressBar(console) as bar, watched(bar), stage("outside"):
        for _ in counted([[1, 2], [3, 4]], "some/file", "lists"):
            time.sleep(0.2)
            console.say("a line")
    text = terminal.getvalue()
    assert "reading file: 2 lists" in text and text.count("a line") == 2


def test_training_shows_its_epochs(monkeypatch):
    terminal = on_terminal(monkeypatch)
    console = Console()
    event = {"epoch": 2, "samples": 40, "mistakes": 4, "seconds": 0.1, "nnz": 7}
    with (
        progress.ProgressBar(console) as bar,
        watched(bar),
        progress.TrainingLines(console, 5, "f1") as lines,
    ):
        lines({**event, "pass_mistakes": 1})
        time.sleep(0.3)
        lines.calibrating()
    text = terminal.getvalue()
    assert "epoch 2: training error 5.00 %, 7 non-zeros, 0.10 s" in text
    assert "epoch 2/5, " in text and "error 10.0 %" in text


@pytest.mark.parametrize("more", [[], ["--quiet"]])
def test_what_is_piped_has_no_bar(tmp_path, capsys, monkeypatch, more):
    monkeypatch.setattr(progress, "_SOON", 0.0)
    (tmp_path / "a.svm").write_text("1 1:1\n-1 2:1\n" * 10)
    words = ["--train", f"{tmp_path}/a.svm", "--model", f"{tmp_path}/a.model", "--epochs", "2"]
    assert main(["train", "classify", *words, *more]) == 0
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err and (not more or err == "")


class Noting:
    """Notes all work, and what it came to."""

    def __init__(self):
        self.work = []

    def begin(self, work):
        self.work.append(work)

    def end(self, work):
        assert work in self.work


def test_parsers_and_votes_tell_how_far_they_are():
    from hopefear import Classifier, Parser, Tagger

    words, labels = [["a", "b"], ["b", "c", "a"]] * 5, [["X", "Y"], ["Y", "Y", "X"]] * 5
    voted = {"averaging": "voted", "epochs": 1}
    small = {"order": 1, "features": "light", "hash_bits": 10}
    bank = small_trees.small_treebank(5)
    for model, data, gold, names in (
        (Tagger("perceptron", **voted), words, labels, {"votes"}),
        (Classifier("perceptron", **voted), ["good", "bad"] * 5, [1, 0] * 5, {"votes"}),
        (Parser("perceptron", epochs=1, **small), bank, None, {"trees", "heads worth a look"}),
    ):
        model.fit(data) if gold is None else model.fit(data, gold)
        with watched(noting := Noting()):
            model.predict(data)
        work = {one.name: one for one in noting.work if one.name in names}
        assert set(work) == names
        for one in work.values():
            assert one.done == one.total == len(data) and one.unit
