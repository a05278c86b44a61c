"""Figures of the code base: sizes, interfaces, parallel training, the code that a command runs.

    python bench/house.py                       # of this repository
    python bench/house.py --src OTHER/src --json figures.json --only size walk

It reads sources as text and runs the command line in processes of their own, so that it can measure
any version of hopefear beside this one. Counting is by rule, not by judgement:

- an *interface method* is a public method of a class in ``core/interfaces.py``;
- what runs *one learner in parallel* are the modules of ``PARALLEL`` that exist;
- a *private name of numba* is a name imported from ``numba.core``, ``numba._…`` or llvmlite in any
  module but ``core/numba_private.py``;
- the *core* are the packages of ``CORE``, which one must know to change a learner;
- a file *runs* if one of its functions is called, interpreted; what a module does while it is
  imported does not count; the *deepest frame* counts functions of hopefear alone;
- *start* is a whole process with kernels in the cache, the least of ``--repeats``.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PARTS = ("size", "interfaces", "parallel", "numba", "walk", "start")
CORE = ("core", "training", "structures", "losses", "rules", "readouts", "averaging", "costs",
        "recipes", "testing")  # fmt: skip
FIVE = (("Structure",), ("Rule", "UpdateRule"), ("Readout", "Averaging"), ("Loss",),
        ("Row", "GradientSink"))  # fmt: skip
POSITIONS = {"places", "above", "wrong_at", "mix", "n_positions", "gold_head", "mix_labels"}
PARALLEL = (
    "core/crew.py",
    "structures/chain/halves.py",
    *(f"training/{name}.py" for name in ("blocks", "changes", "marks", "synchronous", "workers")),
    "training/shards.py",
    "distributed/cluster.py",
    "distributed/parcels.py",
    "data/located.py",
)
COMMANDS = {
    "train tag": "train tag --train tag.txt --epochs 2 --model t.model",
    "train classify": "train classify --train classify.svm --epochs 2 --model c.model",
    "predict": "predict --model tagger.model --input tag.txt --output out.txt",
}
_MADE_BEFORE = "train tag --train tag.txt --learner perceptron --epochs 1 --model tagger.model"

# Runs in a child: which files have functions that were called, and how deep calls went.
_WALK = """
import json, os, sys
import hopefear
root = os.path.dirname(hopefear.__file__)
files, imports, depth, deepest = set(), 0, 0, 0
def look(frame, event, argument):
    global imports, depth, deepest
    code = frame.f_code
    if code.co_name == "<module>":
        imports += (event == "call") - (event == "return")
    elif not imports and code.co_filename.startswith(root):
        if event == "call":
            files.add(code.co_filename)
            depth += 1
            deepest = max(deepest, depth)
        elif event == "return":
            depth -= 1
from hopefear.cli import main
sys.setprofile(look)
status = main(sys.argv[1].split() + ["--quiet"])
sys.setprofile(None)
sys.__stderr__.write("HOUSE " + json.dumps([status, sorted(files), deepest]) + "\\n")
"""


def lines_in(paths: Any) -> int:
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def size(package: Path) -> dict[str, Any]:
    """Lines and files of the library, its core, the papers, the tests and two pages."""
    root = package.parents[1]
    sources = sorted(package.rglob("*.py"))
    core = [path for name in CORE for path in (package / name).rglob("*.py")]
    pages = {name: root / "docs" / name for name in ("design.md", "results.md")}
    return {
        "lines": lines_in(sources),
        "files": len(sources),
        "lines of the core": lines_in(core),
        "lines of the papers": lines_in((root / "papers" / "src").rglob("*.py")),
        "lines of tests": lines_in(
            path for name in ("tests", "papers/tests") for path in (root / name).rglob("*.py")
        ),
        **{name: lines_in([page]) for name, page in pages.items() if page.exists()},
    }


def interfaces(package: Path) -> dict[str, Any]:
    tree = ast.parse((package / "core/interfaces.py").read_text("utf-8"))
    methods = {
        node.name: {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }
    counted = {}
    for names in FIVE:
        (name,) = (name for name in names if name in methods)
        public = {method for method in methods[name] if not method.startswith("_")}
        positions = public & POSITIONS if name == "Structure" else set()
        counted[name] = len(public - positions)
        if positions:
            counted["positions"] = len(positions)
    return {**counted, "of all five": sum(counted.values())}


def parallel(package: Path) -> dict[str, Any]:
    there = [package / name for name in PARALLEL if (package / name).exists()]
    classes = [
        node.name
        for path in there
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef)
    ]
    return {"lines": lines_in(there), "classes": len(classes), "named": ", ".join(classes)}


def numba(package: Path) -> dict[str, Any]:
    uses = []
    for path in sorted(package.rglob("*.py")):
        if path.name == "numba_private.py":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            module = getattr(node, "module", None) or ""
            names = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom) and re.match(r"numba\.core|llvmlite", module):
                uses += [f"{path.relative_to(package)}: {module}.{name}" for name in names]
            elif isinstance(node, ast.ImportFrom) and module == "numba":
                private = (name for name in names if name.startswith("_") or name == "core")
                uses += [f"{path.relative_to(package)}: numba.{name}" for name in private]
            elif isinstance(node, ast.Import):
                private = (name for name in names if re.match(r"numba\.core|llvmlite", name))
                uses += [f"{path.relative_to(package)}: {name}" for name in private]
    return {"private names outside one module": len(uses), "places": uses}


def walk(source: Path, folder: Path) -> dict[str, Any]:
    """Lines of the files that run, and the deepest frame, of each command."""
    table = {}
    for name, line in COMMANDS.items():
        env = _environment(source) | {"NUMBA_DISABLE_JIT": "1"}
        words = [sys.executable, "-W", "ignore", "-c", _WALK, line]
        child = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True)
        answer = re.search(r"^HOUSE (.*)$", child.stderr, re.MULTILINE)
        if answer is None:
            raise SystemExit(f"house.py: `hopefear {line}` failed:\n{child.stderr}")
        status, files, deepest = json.loads(answer[1])
        if status:
            raise SystemExit(f"house.py: `hopefear {line}` ended with status {status}")
        lines = lines_in(map(Path, files))
        table[name] = {"files": len(files), "lines": lines, "deepest frame": deepest}
    return table


def start(source: Path, folder: Path, repeats: int) -> dict[str, Any]:
    """CPU and wall-clock seconds of whole processes, kernels in the cache."""
    table = {}
    for name in ("predict", "train tag"):
        words = [sys.executable, "-m", "hopefear", *COMMANDS[name].split(), "--quiet"]
        _timed(words, source, folder)
        times = [_timed(words, source, folder) for _ in range(repeats)]
        cpu, wall = (round(min(column), 3) for column in zip(*times, strict=True))
        table[name] = {"cpu": cpu, "wall": wall}
    return table


def write_files(folder: Path) -> None:
    """A tiny file of every task that is walked through."""
    words = "hope fear sea ship wind rain night day".split()  # noqa: SIM905
    rows = [f"{1 - 2 * (i % 2)} {1 + i % 2}:1 {4 + i % 5}:0.5 {9 + i % 7}:1\n" for i in range(40)]
    sentences = []
    for i in range(16):
        tokens = [words[(i + 3 * j) % 8] for j in range(5)]
        labels = ["B-X" if len(word) == 4 else "O" for word in tokens]
        sentences.append("".join(f"{w} {y}\n" for w, y in zip(tokens, labels, strict=True)))
    (folder / "classify.svm").write_text("".join(rows), encoding="utf-8")
    (folder / "tag.txt").write_text("\n".join(sentences), encoding="utf-8")


def _environment(source: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(source), "OPENBLAS_NUM_THREADS": "1"}


def _timed(words: list[str], source: Path, folder: Path) -> tuple[float, float]:
    before, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(words, cwd=folder, env=_environment(source), check=True)
    wall = time.perf_counter() - clock
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def _shown(figures: dict[str, Any], indent: str = "") -> Iterator[str]:
    for key, value in figures.items():
        if isinstance(value, dict):
            yield f"{indent}{key}"
            yield from _shown(value, indent + "  ")
        elif isinstance(value, list):
            yield from (f"{indent}  {entry}" for entry in value)
        else:
            yield f"{indent}{key:<34} {value}"


def main() -> None:
    here = Path(__file__).resolve().parents[1]
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--src", type=Path, default=here / "src", help="folder of the package")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path, help="file for all figures")
    args = parser.parse_args()
    source = args.src.resolve()
    package = source / "hopefear"
    counts = {"size": size, "interfaces": interfaces, "parallel": parallel, "numba": numba}
    figures: dict[str, Any] = {k: count(package) for k, count in counts.items() if k in args.only}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_files(folder)
        if "walk" in args.only:
            words = [sys.executable, "-m", "hopefear", *_MADE_BEFORE.split(), "--quiet"]
            env = _environment(source) | {"NUMBA_DISABLE_JIT": "1"}
            subprocess.run(words, cwd=folder, env=env, check=True)
            figures["walk"] = walk(source, folder)
        if "start" in args.only:
            words = [sys.executable, "-m", "hopefear", *_MADE_BEFORE.split(), "--quiet"]
            subprocess.run(words, cwd=folder, env=_environment(source), check=True)
            figures["start"] = start(source, folder, args.repeats)
    print("\n".join(_shown(figures)))
    if args.json:
        args.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
