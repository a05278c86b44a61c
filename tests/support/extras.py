"""The extras of pyproject.toml: which are installed, and which a test module says it needs."""

from __future__ import annotations

import ast
import tomllib
from functools import cache
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from places import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = {
    name: [Requirement(line) for line in lines]
    for name, lines in PROJECT["optional-dependencies"].items()
}
# Sources whose examples, or whose import, need an extra.
SOURCES = {
    "src/hopefear/neural": "neural",
    "src/hopefear/serve": "serve",
    "src/hopefear/integrations/search": "search",
    "src/hopefear/integrations/spacy_pipes.py": "spacy",
}


@cache
def is_installed(extra: str) -> bool:
    """Whether all packages of an extra are installed, of whatever version."""
    for requirement in EXTRAS[extra]:
        if requirement.marker is None or requirement.marker.evaluate():
            if requirement.name == PROJECT["name"]:
                if not all(is_installed(part) for part in requirement.extras):
                    return False
                continue
            try:
                metadata.version(requirement.name)
            except metadata.PackageNotFoundError:
                return False
    return True


def why_skipped(extras: tuple[str, ...]) -> str | None:
    """Returns the reason to skip what needs `extras`, or None where all are installed."""
    missing = [extra for extra in extras if not is_installed(extra)]
    if not missing:
        return None
    return f"needs the extra {' and '.join(missing)}"


@cache
def needed_by(path: Path) -> tuple[str, ...]:
    """Returns the extras that a whole file needs: its ``pytestmark``, or the table of sources."""
    place = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else ""
    for source, extra in SOURCES.items():
        if place == source or place.startswith(source + "/"):
            return (extra,)
    text = path.read_text("utf-8") if place.startswith("tests/") else ""
    if "mark.needs(" not in text:
        return ()
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            return extras_of_marks(node.value)
    return ()


def extras_of_marks(node: ast.AST) -> tuple[str, ...]:
    """Returns the arguments of every ``pytest.mark.needs(…)`` below a node of the syntax tree."""
    return tuple(
        argument.value
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.needs"
        for argument in call.args
    )
