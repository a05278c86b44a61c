"""The shape of the package: imports point down, heavy imports are few, nothing can run code."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from places import ROOT

PACKAGE = ROOT / "src" / "hopefear"
SOURCES = sorted(PACKAGE.rglob("*.py"))

LINT = "from importlinter.cli import lint_imports_command as lint; lint()"
FOUNDATION = {"", "errors", "storage", "core"}
AROUND = {
    "data": FOUNDATION | {"data", "features", "metrics"},
    "features": FOUNDATION | {"features"},
    "metrics": FOUNDATION | {"metrics", "features"},
    "report": FOUNDATION | {"report"},
}
RUNS_CODE = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
# Compiled kernels are code, and never leave the machine but in a wheel.
CODE = {"core/kernel_cache.py", "core/numba_private.py"}


@cache
def nodes(path: Path) -> list[ast.AST]:
    return [
        node
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Call)
    ]


def imported(path: Path) -> set[str]:
    """Every module a file imports, at any depth of its functions."""
    names: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import; write the full name"
            assert node.module is not None
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def lint(folder: Path, source: Path) -> subprocess.CompletedProcess[str]:
    config = str(ROOT / "pyproject.toml")
    return subprocess.run(
        [sys.executable, "-c", LINT, "--config", config, "--no-cache"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_imports_point_down(tmp_path):
    answer = lint(tmp_path, PACKAGE.parent)
    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.parametrize(
    ("module", "target"),
    [
        ("losses/hinge", "training.online"),
        ("losses/hinge", "rules.sgd"),
        ("rules/sgd", "data.sparse"),
        ("structures/nbest", "features.templates"),
        ("training/online", "tasks.base"),
        ("core/learner", "tasks.base"),
        ("tasks/base", "cli.main"),
        ("tasks/tag/task", "tasks.rerank.task"),
        ("errors", "core.learner"),
        ("report/page", "data.sparse"),
        ("metrics/base", "data.sparse"),
        ("data/sparse", "structures.nbest"),
    ],
)
def test_an_upward_import_breaks_the_contract(tmp_path, module, target):
    files = [module, target.replace(".", "/"), "errors", "tasks/base"]
    for name in files:
        path = tmp_path / "hopefear" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        for parent in path.relative_to(tmp_path).parents[:-1]:
            (tmp_path / parent / "__init__.py").touch()
    sound = lint(tmp_path, tmp_path)
    assert sound.returncode == 0, sound.stdout + sound.stderr
    (tmp_path / "hopefear" / f"{module}.py").write_text(f"import hopefear.{target}\n")
    broken = lint(tmp_path, tmp_path)
    assert broken.returncode == 1
    assert "BROKEN" in broken.stdout


@pytest.mark.parametrize("part", AROUND)
def test_what_surrounds_the_learners_stands_on_the_foundation(part):
    for path in SOURCES:
        if path.relative_to(PACKAGE).parts[0].removesuffix(".py") != part:
            continue
        ours = {name for name in imported(path) if name.split(".")[0] == "hopefear"}
        tops = {name.split(".")[1] for name in ours if "." in name and name != "hopefear"}
        tops.discard("__version__")
        assert tops <= AROUND[part], f"{path.relative_to(ROOT)} imports {tops - AROUND[part]}"


def test_scikit_learn_is_imported_where_estimators_are():
    users = {
        path.relative_to(PACKAGE).as_posix()
        for path in SOURCES
        if any(name.split(".")[0] == "sklearn" for name in imported(path))
    }
    assert users <= {
        "crfsuite/metrics.py",
        "crfsuite/scorers.py",
        "tasks/classify/estimator.py",
        "tasks/estimator.py",
        "tasks/parse/estimator.py",
        "tasks/parse/taggers.py",
        "tasks/rerank/estimator.py",
        "tasks/tag/estimator.py",
        "translation/estimator.py",
    }


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_source_file_is_safe_and_small(path):
    text = path.read_text("utf-8")
    assert len(text.splitlines()) <= 700, "past 700 lines: ask whether it is two concepts"
    roots = {name.split(".")[0] for name in imported(path)}
    if path.relative_to(PACKAGE).as_posix() not in CODE:
        assert not roots & RUNS_CODE, "files must not be able to run code"
    for node in nodes(path):
        if isinstance(node, ast.Call):
            assert not (isinstance(node.func, ast.Name) and node.func.id in {"eval", "exec"})
            for keyword in node.keywords:
                allowed = isinstance(keyword.value, ast.Constant) and not keyword.value.value
                assert keyword.arg != "allow_pickle" or allowed


PRIVATE_NUMBA = re.compile(r"numba\.(core|_)|llvmlite")


def test_private_names_of_numba_stand_in_one_module():
    private = {
        f"{path.relative_to(PACKAGE)}: {name}"
        for path in SOURCES
        if path.name != "numba_private.py"
        for name in imported(path)
        if PRIVATE_NUMBA.match(name)
    }
    assert not private


def test_importing_the_package_is_light():
    code = "import sys, hopefear; print(*{name.split('.')[0] for name in sys.modules})"
    answer = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    loaded = set(answer.stdout.split())
    assert "hopefear" in loaded
    assert not loaded & {"numba", "llvmlite", "scipy", "sklearn", "rich", "safetensors"}
