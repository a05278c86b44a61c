"""Flips signs and comparisons of the learning core, one at a time, and counts what tests catch.

    python tools/mutants.py                     60 mutants, with the seed 0
    python tools/mutants.py --n 10 --seed 3 --only training
    python tools/mutants.py --again 7,31        only these of the 60

The tests are those of `make check`. A first run of them finds out which tests call which functions;
a mutant then meets the tests that call its function, the quickest first and those of different test
functions in turn, until one fails or `--limit` seconds are over. Survivors are printed with their
lines: each is a hole in the tests, or equivalent, or takes longer than the limit to find.

Left out is what changes nothing but time (`SKIPPED`), and modules that are about compiling, files
and signals (`ELSEWHERE`): these have their own tests, which are compiled.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("losses", "rules", "averaging", "structures", "training", "core")
ELSEWHERE = {
    f"core/{name}.py"
    for name in ("component", "interrupts", "kernel_cache", "memory", "numba_private", "progress")
}
SKIPPED = re.compile("prefetch.*")
FLIPS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Lt: ast.Gt,
    ast.Gt: ast.Lt,
    ast.LtE: ast.GtE,
    ast.GtE: ast.LtE,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
ORDER, CALLS = "MUTANTS_ORDER", "MUTANTS_CALLS"  # files by which this talks to pytest's processes


class Mutant(NamedTuple):
    """One operator of a source, flipped."""

    path: str
    function: str  # its qualified name
    number: int  # of the operators of the file
    line: int

    def flipped(self, source: str) -> tuple[str, str]:
        """Returns the whole source with the operator flipped, and (before -> after) in words."""
        tree = ast.parse(source)
        node = list(_operators(tree))[self.number][0]
        before = ast.unparse(node)
        _flip(node)
        words = f"{self.path}:{self.line} {self.function}: {before}  ->  {ast.unparse(node)}"
        return ast.unparse(tree), words


def _operators(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Yields (node with an operator that can be flipped, function) of what functions calculate."""

    def walk(node: ast.AST, path: tuple[str, ...]) -> Iterator[tuple[ast.AST, str]]:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            if SKIPPED.fullmatch(node.name):
                return
            inner = (*path, node.name)
            for child in node.body:
                yield from walk(child, inner)
            return
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.AnnAssign) and not path:
            return
        if isinstance(node, ast.Raise | ast.JoinedStr):  # words
            return
        if path and _is_flippable(node):
            yield node, ".".join(path)
        for child in ast.iter_child_nodes(node):
            yield from walk(child, path)

    yield from walk(tree, ())


def _is_flippable(node: ast.AST) -> bool:
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.USub)
    if isinstance(node, ast.BinOp | ast.AugAssign):
        texts = isinstance(node, ast.BinOp) and isinstance(node.left, ast.JoinedStr | ast.List)
        return type(node.op) in FLIPS and not texts
    return isinstance(node, ast.Compare) and type(node.ops[0]) in FLIPS


def _flip(node: Any) -> None:
    if isinstance(node, ast.UnaryOp):
        node.op = ast.UAdd()
    elif isinstance(node, ast.Compare):
        node.ops[0] = FLIPS[type(node.ops[0])]()
    else:
        node.op = FLIPS[type(node.op)]()


def all_mutants(package_folder: Path, only: str = "") -> list[Mutant]:
    """Returns all of them, by file; ``only`` is a part of the paths."""
    mutants = []
    for package in PACKAGES:
        for source in sorted((package_folder / package).rglob("*.py")):
            path = source.relative_to(package_folder).as_posix()
            if path in ELSEWHERE or only not in path:
                continue
            tree = ast.parse(source.read_text(encoding="utf-8"))
            mutants += [
                Mutant(path, function, number, node.lineno)  # type: ignore[attr-defined]
                for number, (node, function) in enumerate(_operators(tree))
            ]
    return mutants


def sampled(mutants: list[Mutant], n: int, seed: int) -> list[Mutant]:
    """Returns ``n`` of them at random, of each package as many as of the others."""
    shuffled = random.Random(seed).sample(mutants, len(mutants))
    turns: Counter[str] = Counter()
    ranked = []
    for mutant in shuffled:
        package = mutant.path.split("/")[0]
        ranked.append((turns[package], PACKAGES.index(package), mutant))
        turns[package] += 1
    return [mutant for *_, mutant in sorted(ranked)[:n]]


# In pytest's processes


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leaves the tests of the file `ORDER` in its order."""
    if ORDER not in os.environ:
        return
    order = {name: k for k, name in enumerate(Path(os.environ[ORDER]).read_text().splitlines())}
    items[:] = sorted((i for i in items if i.nodeid in order), key=lambda i: order[i.nodeid])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: Any) -> Iterator[None]:
    """Writes down a test with its seconds and the functions of the library that it calls."""
    if CALLS not in os.environ:
        return (yield)
    codes: set[Any] = set()
    add = codes.add

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            add(frame.f_code)

    begun = time.perf_counter()
    threading.setprofile(note)
    sys.setprofile(note)
    result = yield
    sys.setprofile(None)
    threading.setprofile(None)
    seconds, package = time.perf_counter() - begun, "/src/hopefear/"
    functions = sorted(
        f"{code.co_filename.split(package)[1]} {code.co_qualname.replace('.<locals>', '')}"
        for code in codes
        if package in code.co_filename
    )
    with open(f"{os.environ[CALLS]}.{os.getpid()}", "a", encoding="utf-8") as file:
        file.write(json.dumps([item.nodeid, round(seconds, 3), functions]) + "\n")
    return result


# Runs


def tests_of_check() -> list[str]:
    """Returns the paths of the tests that `make check` runs."""
    words = ["make", "--silent", "--no-print-directory", "core-tests"]
    return subprocess.run(
        words, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()


def _run(folder: Path, *words: str, limit: float | None = None, **variables: str) -> int | None:
    """Returns the status of a run of tests in a copy of the tree; None where it took too long."""
    paths = [folder / "src", folder / "papers/src", Path(__file__).parent]
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONDONTWRITEBYTECODE": "1", **variables}
    env["PYTHONPATH"] = os.pathsep.join(map(str, paths))
    flags = ["-x", "-p", "mutants", "-p", "no:cacheprovider", "--no-header", "--tb=no"]
    flags += ["-m", "interpreted and not compiled and not slow"]
    command = [sys.executable, "-m", "pytest", *flags, *words]
    null = subprocess.DEVNULL
    try:
        return subprocess.run(command, cwd=folder, env=env, stdout=null, timeout=limit).returncode
    except subprocess.TimeoutExpired:
        return None


class Calls(NamedTuple):
    """Calls of the tests: seconds of each test, and the tests of each function."""

    seconds: dict[str, float]
    tests: dict[str, list[str]]

    @classmethod
    def observed(cls, folder: Path) -> Calls:
        """Runs all tests once."""
        status = _run(folder, *tests_of_check(), "-n", "2", **{CALLS: str(folder / "calls")})
        if status != 0:
            raise SystemExit(f"the tests fail without a mutant: status {status}")
        seconds, tests = {}, defaultdict(list)
        for path in folder.glob("calls.*"):
            for line in path.read_text(encoding="utf-8").splitlines():
                name, duration, functions = json.loads(line)
                seconds[name] = duration
                for function in functions:
                    tests[function].append(name)
        return cls(seconds, dict(tests))

    def of(self, mutant: Mutant) -> list[str]:
        """Returns the tests that call a mutant's function, quick ones of all kinds first."""
        names = sorted(self.tests.get(f"{mutant.path} {mutant.function}", ()), key=self.seconds.get)
        turns: Counter[str] = Counter()
        ranked = []
        for name in names:
            kind = re.sub(r"\[.*", "", name)
            ranked.append((turns[kind], self.seconds[name], name))
            turns[kind] += 1
        return [name for *_, name in sorted(ranked)]


def try_mutant(folder: Path, mutant: Mutant, calls: Calls, limit: float) -> tuple[bool, str]:
    """Returns whether a test fails with this mutant in the copy, or hangs; and what it flips."""
    path, order = folder / "src/hopefear" / mutant.path, folder / "order"
    plain, tests = path.read_text(encoding="utf-8"), calls.of(mutant)
    source, words = mutant.flipped(plain)
    if not tests:
        return False, f"{words}  (called by no test)"
    order.write_text("".join(f"{name}\n" for name in tests), encoding="utf-8")
    files = sorted({name.split("::")[0] for name in tests})
    hang = 30.0 + 20.0 * max(calls.seconds[name] for name in tests)
    path.write_text(source, encoding="utf-8")
    try:
        status = _run(folder, *files, f"--timeout={hang}", limit=limit, **{ORDER: str(order)})
        return status not in (0, None), words
    finally:
        path.write_text(plain, encoding="utf-8")


def _read_calls(path: Path | None) -> Calls | None:
    if path is None or not path.exists():
        return None
    return Calls(*json.loads(path.read_text(encoding="utf-8")))


def _copied(folder: Path) -> Path:
    """Copies what git has of this tree."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in names.stdout.decode().split("\0"):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def main() -> int:
    """Tries mutants; the status is 1 where fewer than `--rate` of them are caught."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=60, help="mutants (default 60)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="part of the path, as training/")
    parser.add_argument("--again", default="", help="numbers of mutants to try, with commas")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for each (default 120)")
    parser.add_argument("--calls", type=Path, help="file of what tests call, kept between runs")
    parser.add_argument("--rate", type=float, default=0.9)
    args = parser.parse_args()
    caught = []
    with tempfile.TemporaryDirectory() as name:
        folder = _copied(Path(name))
        mutants = all_mutants(folder / "src/hopefear", args.only)
        chosen = sampled(mutants, args.n, args.seed)
        calls = _read_calls(args.calls) or Calls.observed(folder)
        if args.calls:
            args.calls.write_text(json.dumps(calls), encoding="utf-8")
        for k in [int(k) for k in args.again.split(",") if k] or range(len(chosen)):
            begun = time.perf_counter()
            is_caught, words = try_mutant(folder, chosen[k], calls, args.limit)
            took, word = time.perf_counter() - begun, "caught" if is_caught else "SURVIVED"
            print(f"{k:3} {word:8} {took:4.0f} s  {words}", flush=True)
            caught.append(is_caught)
    print(f"{sum(caught)} of {len(caught)} caught; {len(mutants):,} operators can be flipped")
    return int(sum(caught) < args.rate * len(caught))


if __name__ == "__main__":
    sys.exit(main())
