"""Options that messages name exist where they are named; what cannot be written is said at once."""

from __future__ import annotations

import ast
import os
import re
from functools import cache
from pathlib import Path

import pytest

import hopefear
from hopefear.cli import BY_TASK, VERBS, main, options_of
from hopefear.cli.guard import explained
from hopefear.cli.surface import task_names
from hopefear.errors import HopefearError
from hopefear.storage import check_writable
from hopefear.tasks import TASKS, recipes_of

pytestmark = pytest.mark.interpreted

SOURCE = Path(hopefear.__file__).parent
COMMANDS = [
    command
    for verb in VERBS
    for command in ([(verb, task) for task in task_names()] if verb in BY_TASK else [(verb,)])
]
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
PARAMETER = re.compile(r"(?<![\w-])-p ([a-z]\w*)=")
# Style sheets have variables of this form; experiments are scripts of their own; commands that run
# are no messages.
ELSEWHERE = ("report/", "cli/warm_up.py", "cli/demo.py")


@cache
def options(command):
    return frozenset(options_of(command))


@cache
def literals():
    """(file, text) of all strings in the source, docstrings apart."""
    return list(_literals())


def _literals():
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if name.startswith(ELSEWHERE):
            continue
        tree = ast.parse(path.read_text("utf-8"))
        nodes = list(ast.walk(tree))
        documents = {
            node.body[0].value
            for node in nodes
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body
            if isinstance(node.body[0], ast.Expr)
        }
        whole = [node for node in nodes if isinstance(node, ast.JoinedStr)]
        others = documents | {piece for node in whole for piece in node.values}
        for node in whole:
            yield (
                name,
                "".join(
                    piece.value if isinstance(piece, ast.Constant) else "…" for piece in node.values
                ),
            )
        for node in nodes:
            alone = isinstance(node, ast.Constant) and node not in others
            if alone and isinstance(node.value, str):
                yield name, node.value


def commands_of(name):
    """The commands whose messages a file may hold."""
    parts = name.removesuffix(".py").split("/")
    if parts[0] == "cli" and len(parts) == 2 and parts[1] in VERBS:
        return [command for command in COMMANDS if command[0] == parts[1]]
    if parts[0] == "cli" and parts[1] in TASKS:
        own = [command for command in COMMANDS if parts[1] in command]
        return [*own, *((verb,) for verb in ("predict", "evaluate", "inspect"))]
    return COMMANDS


def test_options_in_messages_exist():
    wrong = []
    for name, text in literals():
        known = frozenset().union(*map(options, commands_of(name)))
        own = re.sub(r"hopefear [a-z][^`]*?(`|\n(?! {4})|$)", "", text)  # commands given in full
        unknown = {*OPTION.findall(own)} - known - {"--version", "--help"}
        wrong += [f"{name}: {option} in {text!r:.200}" for option in sorted(unknown)]
    assert not wrong


def test_parameters_in_messages_exist():
    for name, text in literals():
        for key in PARAMETER.findall(text):
            tables = [recipes_of(task).values() for task in TASKS]
            parameters = {p for table in tables for recipe in table for p in recipe.parameters()}
            assert key in parameters | {"loss", "rule", "averaging", "cost"}, (
                f"{name}: {text!r:.200}"
            )


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_advice_for_memory_names_options_that_the_command_has(command):
    status, message = explained(MemoryError("8 GiB"), lambda: options(command))
    assert status == 1 and message.startswith("not enough memory (8 GiB); ")
    assert set(OPTION.findall(message)) <= options(command)
    if command == ("train", "classify"):
        assert "--cache DIR" in message and "--hash-bits N" in message
    if command == ("inspect",):
        assert "use less data" in message


@pytest.mark.parametrize("task", ["parse", "rerank"])
def test_a_cache_is_not_advised_where_there_is_none(task):
    _, message = explained(MemoryError(), lambda: options_of(["train", task]))
    assert "not enough memory" in message and "--cache" not in message


def test_a_cache_is_not_advised_for_weights(tmp_path, capsys, monkeypatch):
    def none_left(*args, **options):
        raise MemoryError("Unable to allocate 37.3 GiB")

    (tmp_path / "rows").write_text("1 1:1\n2 2:1\n")
    words = ["train", "classify", "--train", f"{tmp_path}/rows", "--model", f"{tmp_path}/m"]
    monkeypatch.setattr("hopefear.training.loop.OnlineTrainer", none_left)
    assert main(words) == 1
    error = capsys.readouterr().err
    assert "37.3 GiB); give --hash-bits N" in error and "--cache" not in error


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("rows").write_text("1 1:1\n2 2:1\n")

    def call(*argv):
        status = main([str(word) for word in argv])
        return status, capsys.readouterr().err

    return call


TRAIN = ("train", "classify", "--train", "rows")


def test_a_parameter_is_given_once(run):
    status, err = run(*TRAIN, "-p", "l1=1", "--param", "l1=2", "--model", "m")
    assert status == 2 and "-p l1 twice; give it once" in err
    compare = ("compare", "classify", "--train", "rows", "--test", "rows", "--report", "r.html")
    status, err = run(*compare, "--learners", "rda:l1=1:l1=2")
    assert status == 2 and "twice" in err
    assert not list(Path().glob("m*"))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--model", "x" * 300), "File name too long"),
        (("--model", "rows/m"), "no folder"),
        (("--model", "none/m"), "there is no folder"),
        (("--model", "m", "--run", "rows"), "is no folder"),
        (("--model", "m", "--run", "rows/run"), "is no folder"),
        (("--model", "m", "--checkpoint", "rows/state"), "is no folder"),
    ],
)
def test_what_cannot_be_written_is_said_before_anything_is_read(run, more, said):
    os.remove("rows")
    Path("rows").write_text("this is no data\n")
    status, err = run(*TRAIN, *more)
    assert status == 1 and said in err and err.count("\n") == 1
    assert sorted(p.name for p in Path().iterdir()) == ["rows"]


def test_a_folder_that_takes_no_file(tmp_path):
    with pytest.raises(HopefearError, match="cannot write /proc/m: "):
        check_writable("/proc/m")
    check_writable(tmp_path / "m")
    assert not list(tmp_path.iterdir())
