"""Tests say which extra they need and how long they take; the package needs nothing of tests."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from extras import EXTRAS, PROJECT, extras_of_marks, needed_by
from packaging.requirements import Requirement
from places import ROOT

pytestmark = pytest.mark.interpreted
TESTS = sorted((ROOT / "tests").rglob("*.py"))
SOURCES = sorted((ROOT / "src").rglob("*.py"))
# Packages whose modules have another name.
MODULES = {
    "import-linter": "importlinter",
    "mkdocs-material": "material",
    "mkdocstrings-python": "mkdocstrings",
    "mlflow-skinny": "mlflow",
    "pytest-timeout": "pytest_timeout",
    "pytest-xdist": "xdist",
    "python-crfsuite": "pycrfsuite",
    "scikit-learn": "sklearn",
}


def modules(requirements: list[Requirement]) -> set[str]:
    return {MODULES.get(r.name, r.name.replace("-", "_")) for r in requirements}


ALWAYS = modules([Requirement(line) for line in PROJECT["dependencies"]])
DEV = modules(EXTRAS["dev"])
OPTIONAL = modules([r for name, extra in EXTRAS.items() if name != "dev" for r in extra])
OPTIONAL -= {PROJECT["name"]}  # extras of extras


def imports(node: ast.AST, extras: tuple[str, ...]) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    """Yields (module, line, extras that the surroundings are marked with) of every import."""
    for child in ast.iter_child_nodes(node):
        inner = extras
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            for decorator in child.decorator_list:
                inner += extras_of_marks(decorator)
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield alias.name.partition(".")[0], child.lineno, inner
        elif isinstance(child, ast.ImportFrom) and child.module:
            yield child.module.partition(".")[0], child.lineno, inner
        yield from imports(child, inner)


def marked(path: Path) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    return imports(ast.parse(path.read_text("utf-8")), needed_by(path))


def fixtures_and_programs(path: Path) -> bool:
    """Whether a file is imported, or run, by tests that carry the marks themselves."""
    return not path.name.startswith("test_")


def test_only_marked_tests_import_what_an_extra_brings():
    only_extras = OPTIONAL - ALWAYS - DEV
    assert {"torch", "ray", "optuna", "starlette", "polars"} <= only_extras
    unmarked = [
        f"{path.relative_to(ROOT)}:{line}: {module}"
        for path in TESTS
        if not fixtures_and_programs(path)
        for module, line, extras in marked(path)
        if module in only_extras and not extras
    ]
    assert unmarked == []


def test_the_package_imports_nothing_that_only_development_brings():
    only_dev = DEV - ALWAYS - OPTIONAL
    assert {"pytest", "hypothesis", "pandas"} <= only_dev
    assert [
        f"{path.relative_to(ROOT)}:{line}: {module}"
        for path in SOURCES
        for module, line, _ in marked(path)
        if module in only_dev
    ] == []


def test_helpers_of_tests_are_not_collected(request):
    ignored = request.config.hook.pytest_ignore_collect
    assert ignored(collection_path=ROOT / "tests" / "support", config=request.config)
    assert not ignored(collection_path=Path(__file__), config=request.config)


def test_every_test_has_a_limit_and_what_takes_longer_says_why(request):
    assert request.config.getini("timeout") == "240"
    for path in TESTS:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                assert name != "pytest.mark.timeout", f"{path}:{node.lineno}: use mark.long"
                if name == "pytest.mark.long":
                    given = {key.arg: key.value for key in node.keywords}
                    assert set(given) == {"seconds", "why"}, f"{path}:{node.lineno}"
