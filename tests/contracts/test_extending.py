"""Parts of one's own: the files of the guide hold the contracts, and the guide quotes them."""

from __future__ import annotations

import doctest
import importlib
import json
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from doc_pages import ROOT, links_lead_somewhere, text_of

from hopefear import testing
from hopefear.averaging.last import Last
from hopefear.core.learner import Learner
from hopefear.costs.regret import Regret
from hopefear.errors import CombinationError, HopefearError, InputError, ModelError
from hopefear.losses.log import Log
from hopefear.losses.structured_hinge import StructuredHinge
from hopefear.recipes import LOSSES
from hopefear.rules.sgd import SGD
from hopefear.tasks import TASKS, find_tasks
from hopefear.tasks.base import train
from hopefear.training.online import OnlineTrainer
from hopefear.training.stopping import Stopping

FOLDER = ROOT / "examples/extending"
FILES = sorted(path.name for path in FOLDER.glob("*.py"))
PAGE = text_of("docs/extending.md")


@pytest.fixture(scope="module")
def parts():
    """The modules of the folder; tables of the library are as before when all is over."""
    names = [name.removesuffix(".py") for name in FILES]
    before, path = set(sys.modules), list(sys.path)
    sys.path.insert(0, str(FOLDER))
    try:
        yield SimpleNamespace(**{name: importlib.import_module(name) for name in names})
    finally:
        TASKS.pop("choose", None)
        sys.path[:] = path
        for name in set(sys.modules) - before & set(names):
            del sys.modules[name]


@pytest.fixture
def files(parts, tmp_path):
    for name, n, seed in (("train", 60, 1), ("test", 20, 2)):
        parts.task.write_example(tmp_path / f"{name}.jsonl", n, seed)
    return tmp_path


def test_all_parts_hold_their_contracts(parts, capsys):
    parts.contracts.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 * len(testing.registered_parts("rule"))
    assert sum(line.endswith("as its oracle") for line in lines) == len(lines) - 2


@pytest.mark.parametrize("skip", [0, 7, 1000])
def test_a_tail_of_any_length(parts, skip):
    def kept(snapshots):
        return snapshots[skip:].mean(axis=0) if skip < len(snapshots) else snapshots[-1]

    testing.check_averaging(parts.averaging.TailAveraged(skip), kept)


def test_parts_of_the_folder_go_together(parts):
    loss, rule = parts.loss.Savage(), parts.rule.SignDescent(0.1)
    learner = Learner(loss, rule, parts.averaging.TailAveraged(2))
    structure = parts.structure.Subset(4)
    trainer = OnlineTrainer(structure, learner, np.float64)
    rows = testing.tiny_rows(structure)
    for _ in range(20):
        trainer.learn(rows, np.arange(len(rows.weights)))
    assert trainer.mistakes < 0.6 * trainer.examples
    assert trainer.predictor().nnz == 4


@pytest.mark.parametrize(
    ("loss", "words"),
    [(Log(), "use the loss structured-hinge"), (StructuredHinge(Regret()), "use the cost hamming")],
)
def test_the_structure_says_what_it_lacks(parts, loss, words):
    learner = Learner(loss, SGD(), Last())
    with pytest.raises(CombinationError, match=words):
        OnlineTrainer(parts.structure.Subset(4), learner)


def test_parameters_that_make_no_sense_are_refused(parts):
    for part in (parts.loss.Savage(0), parts.rule.SignDescent(0)):
        assert "above zero" in part.parameter_error()
    assert "negative" in parts.averaging.TailAveraged(-1).parameter_error()


def test_the_task_learns_and_its_model_comes_back(parts, files):
    task = parts.task
    data = task.read(files / "train.jsonl")
    test = task.read(files / "test.jsonl", data.features)
    for learner in task.RECIPES:
        trained = train(task.Choosing(), data, learner, epochs=8, dev=test)
        assert trained.fit.history[-1]["dev"]["items"] > 85.0
    trained.model.save(files / "model")
    model = task.ChoiceModel.load(files / "model")
    assert model.predict(test) == trained.model.predict(test)
    assert model.to_bytes() == trained.model.to_bytes()
    assert model.about["data"]["examples"] == 60
    lines = (files / "test.jsonl").read_text("utf-8").splitlines()
    wanted = [json.loads(line)["chosen"] for line in lines]
    assert np.mean([a == b for a, b in zip(model.predict(test), wanted, strict=True)]) > 0.7


def test_the_task_has_what_all_tasks_have(parts, files):
    task = parts.task
    data = task.read(files / "train.jsonl")
    stopped = train(task.Choosing(), data, dev=data, stopping=Stopping("accuracy"), epochs=9)
    assert stopped.fit.best_epoch is not None
    with pytest.raises(HopefearError, match="no learner 'svm'"):
        train(task.Choosing(), data, "svm")
    other = task.read(files / "test.jsonl")
    with pytest.raises(HopefearError, match=r"features=data\.features"):
        train(task.Choosing(), data, dev=other)
    with pytest.raises(ModelError, match="expected a model for the task 'choose'"):
        task.ChoiceModel.from_file_parts({"task": "tag"}, {})


def test_the_command_line_takes_the_task_of_an_installed_package(files):
    """All verbs, by an entry point as installed packages have them, each in a process."""
    about = files / "choosing-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: choosing\nVersion: 1\n")
    (point,) = re.findall(r"\[project\.entry-points\.(.*)\]\n(.*)\n", PAGE)
    assert point == ('"hopefear.tasks"', 'choose = "surface:ENTRY"')
    (about / "entry_points.txt").write_text("[hopefear.tasks]\nchoose = surface:ENTRY\n")
    places = [str(files), str(FOLDER), os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(places), "NUMBA_DISABLE_JIT": "1"}

    def run(line):
        words = [sys.executable, "-m", "hopefear", *line.split()]
        done = subprocess.run(words, cwd=files, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    commands = re.findall(r"^\$ hopefear (.*)$", PAGE, re.M)
    assert [line.split()[0] for line in commands] == ["train", "predict", "evaluate", "compare"]
    train, predict, evaluate, compare = commands
    trained = json.loads(run(f"{train} --dev test.jsonl --json --quiet"))
    assert (trained["task"], trained["examples"]) == ("choose", 60)
    assert trained["dev"]["items"] > 80.0
    chosen = [json.loads(line) for line in run(predict).splitlines()]
    assert len(chosen) == 20
    assert all(len(items) == 2 for items in chosen)
    scores = json.loads(run(f"{evaluate} --json"))
    assert scores["items"] == pytest.approx(trained["dev"]["items"])
    table = json.loads(run(f"{compare} --json --quiet"))["learners"]
    assert [row["learner"] for row in table] == ["perceptron", "ssvm", "mira"]
    facts = json.loads(run("inspect --model choice.model --json"))
    assert {name for name, _ in facts["top"]} == {"early", "says"}
    assert set(json.loads(run("learners --task choose --json"))["learners"]) == {"choose"}


def test_a_broken_package_is_warned_of(tmp_path, monkeypatch):
    about = tmp_path / "broken-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[hopefear.tasks]\nbroken = no_such_module:ENTRY\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.warns(UserWarning, match="'broken' is left out.*no_such_module:ENTRY"):
        find_tasks()
    assert "broken" not in TASKS


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "items and chosen"),
        ('{"items": [1], "chosen": []}', "items and chosen"),
        ('{"items": [{"a": 1}], "chosen": [1]}', "numbers of items"),
    ],
)
def test_files_that_make_no_sense_are_refused(parts, tmp_path, line, words):
    (tmp_path / "bad.jsonl").write_text(line + "\n")
    with pytest.raises(InputError, match=rf"bad\.jsonl:1: .*{words}"):
        parts.task.read(tmp_path / "bad.jsonl")
    (tmp_path / "empty.jsonl").write_text("")
    empty = parts.task.read(tmp_path / "empty.jsonl")
    with pytest.raises(HopefearError, match="no examples"):
        train(parts.task.Choosing(), empty)


# --- the page -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_line_counts_are_true(name):
    counts = dict(re.findall(r"`examples/extending/(\w+\.py)`, (\d+) lines", PAGE))
    assert int(counts[name]) == len((FOLDER / name).read_text("utf-8").splitlines())


def test_blocks_are_the_files():
    marks = re.findall(r"<!-- examples/extending/(\w+\.py) -->\n```python\n(.*?)\n```", PAGE, re.S)
    assert len(marks) == PAGE.count("```python")
    assert {name for name, _ in marks} == set(FILES)
    for name, block in marks:
        source = (FOLDER / name).read_text("utf-8")
        assert block in source, f"docs/extending.md quotes {name} as it was"
    whole = [name for name, block in marks if block + "\n" == (FOLDER / name).read_text("utf-8")]
    assert whole == [
        "rule.py",
        "loss.py",
        "averaging.py",
        "structure.py",
        "kernels.py",
        "surface.py",
    ]


def test_the_output_shown_is_what_the_task_prints(parts, capsys):
    parts.task.main()
    (shown,) = re.findall(r"```console\n\$ python \S+task\.py\n(.*?)```", PAGE, re.S)
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize("name", ["rule", "loss", "averaging", "kernels"])
def test_examples_of_the_files_are_true(parts, name):
    results = doctest.testmod(getattr(parts, name))
    assert results.attempted > 0
    assert results.failed == 0


def test_examples_of_the_page_are_true(parts, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(LOSSES, "_places", dict(LOSSES._places))
    (block,) = re.findall(r"```pycon\n(.*?)```", PAGE, re.DOTALL)
    test = doctest.DocTestParser().get_doctest(block, {}, "extending.md", None, 0)
    assert doctest.DocTestRunner().run(test) == (0, 6)


def test_the_page_can_be_found():
    links_lead_somewhere("extending.md")
    for page in ("docs/index.md", "mkdocs.yml", "README.md"):
        assert "extending.md" in text_of(page)
