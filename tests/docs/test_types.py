"""What is not compiled is annotated; the type checker lets modules with kernels do without."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from places import ROOT

pytestmark = pytest.mark.interpreted
PACKAGE = ROOT / "src" / "hopefear"
# Numba finds the types of what these decorate.
COMPILED = {"kernel", "shared_kernel", "helper", "njit", "intrinsic", "overload"}
COMPONENTS = {"component", "interface"}


def _named(decorators: list[ast.expr]) -> set[str]:
    calls = (one.func if isinstance(one, ast.Call) else one for one in decorators)
    return {one.id for one in calls if isinstance(one, ast.Name)}


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Functions and methods that Python runs; what stands inside of one is its own affair."""
    # Python's version of what is written for the compiler otherwise has the shape of a kernel.
    twins = {
        ast.unparse(one.args[0])
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        for one in node.decorator_list
        if isinstance(one, ast.Call) and ast.unparse(one.func) == "overload"
    }
    classes = [
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not _named(node.decorator_list) & COMPONENTS
    ]
    # And what `intrinsic` turns into code has the shape that numba asks for.
    twins |= {
        ast.unparse(node.args[0])
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "intrinsic"
    }
    for node in [*tree.body, *(one for each in classes for one in each.body)]:
        if (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and not _named(node.decorator_list) & COMPILED
            and node.name not in twins
        ):
            yield node


def bare(path: Path) -> list[str]:
    """Functions of a file that lack an annotation."""
    names = []
    for node in _functions(ast.parse(path.read_text("utf-8"))):
        given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        if node.args.args and node.args.args[0].arg in ("self", "cls"):
            given.remove(node.args.args[0])
        given += [one for one in (node.args.vararg, node.args.kwarg) if one is not None]
        needs_return = node.returns is None and not (node.name == "__init__" and given)
        if needs_return or any(one.annotation is None for one in given):
            names.append(f"{path.relative_to(PACKAGE)}:{node.lineno} {node.name}")
    return names


def test_what_python_runs_is_annotated():
    lacking = [name for path in sorted(PACKAGE.rglob("*.py")) for name in bare(path)]
    assert not lacking, "\n".join(lacking)


def test_what_lacks_annotations_is_found(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    text = "@kernel\ndef a(x): ...\ndef b(x): ...\nclass C:\n    def d(self): ...\n"
    (tmp_path / "one.py").write_text(text + "@component(C)\nclass E:\n    def f(self): ...\n")
    assert bare(tmp_path / "one.py") == ["one.py:3 b", "one.py:5 d"]


def test_types_are_shipped():
    assert (PACKAGE / "py.typed").exists()
