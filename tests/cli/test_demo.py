"""Parts of the demo, interpreted; test_process runs all of it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from hopefear.cli import demo, main, parsed
from hopefear.cli.console import Console
from hopefear.data.samples import sample_names
from hopefear.report import Page
from hopefear.tasks import TASKS

pytestmark = pytest.mark.interpreted


def test_sample_files_are_written_for_everybody(tmp_path, capsys):
    assert main(["demo", "--files", str(tmp_path / "sample")]) == 0
    printed = capsys.readouterr().out.split()
    assert printed == [str(tmp_path / "sample" / name) for name in sample_names()]
    tags = (tmp_path / "sample" / "english-train.conllu").read_text("utf-8")
    assert tags.count("\n\n") == 1_200 and "\tVERB\t" in tags and "\tnsubj\t" in tags
    questions = (tmp_path / "sample" / "questions-test.tsv").read_text("utf-8").splitlines()
    assert len(questions) == 616 and len({line.partition("\t")[0] for line in questions}) == 77


@pytest.mark.parametrize("section", demo._SECTIONS)
def test_commands_shown_are_commands_that_run(section):
    words = demo._command(section)
    args = parsed(words)
    assert {args.train, args.test} <= set(sample_names())
    assert [name for _, name, _ in args.learners] == list(demo.learners_of(words[1]))


def test_the_default_learner_is_shown_first():
    for task, entry in TASKS.items():
        assert demo.learners_of(task)[0] == entry.learner
        assert len(set(demo.learners_of(task))) == len(demo.learners_of(task))


@pytest.mark.parametrize(("scores", "last"), [((90.0, 91.0), True), ((91.0, 90.0), False)])
def test_a_default_that_is_last_is_said_to_be(capsys, scores, last):
    results = [
        SimpleNamespace(name=name, scores={"accuracy": score})
        for name, score in zip(("nbest-mira", "perceptron"), scores, strict=True)
    ]
    study = SimpleNamespace(
        scores=[SimpleNamespace(name="accuracy", higher=True)],
        results=results,
        show=lambda console: None,
        section=lambda page, title, text: None,
        signatures=lambda: [],
    )
    demo._show(study, Console(), Page("demo"), "Tags", "text")
    assert ("The default, nbest-mira, is last" in capsys.readouterr().err) == last
