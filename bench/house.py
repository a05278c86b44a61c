"""How the house stands: sizes, layers, tables, loops, what each verb loads, how soon it starts.

    python bench/house.py                       # of this repository
    python bench/house.py --src OTHER/src --json figures.json --only size layers

It reads sources as text and runs the command line in processes of their own, so that it can measure
any version of hopefear. Counting is by rule, not by judgement:

- a *table of tasks* is a dictionary, tuple, list or set at the top of a module whose keys or
  entries hold at least three of the names of tasks;
- a *loop over data* asks a dataset for its ``pieces`` or tells a trainer to ``learn``;
- a module or file is *loaded* if it is in ``sys.modules`` at the end, and *run* if one of its
  functions was called, interpreted; what a module does while it is imported does not count;
- a loss *runs* on a structure if ``train TASK --learner sgd -p loss=NAME`` ends well on tiny data,
  with ``-p on=mistakes`` where it does not without;
- *start-up* is a whole process with kernels in the cache, the least of ``--repeats``.
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
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TASKS = {"classify", "tag", "rerank"}
PARTS = ("size", "layers", "tables", "loops", "verbs", "start", "losses")
VERBS = {
    "train tag": "train tag --train tag.txt --epochs 2 --model t.model",
    "train classify": "train classify --train classify.svm --epochs 2 --model c.model",
    "train rerank": "train rerank --train rerank.jsonl --epochs 2 --model r.model",
    "tune": "tune --nbest tune.nbest --refs tune.ref --learner mert -p restarts=2 --weights w.txt",
    "predict": "predict --model tagger.model --input tag.txt --output out.txt",
}
_MADE_BEFORE = "train tag --train tag.txt --learner perceptron --epochs 1 --model tagger.model"

# Runs in a child: hopefear's modules at the end, and which of its functions were called.
_WALK = """
import json, os, sys
import hopefear
root = os.path.dirname(hopefear.__file__)
calls = set()
imports = 0  # modules whose bodies are being run
def look(frame, event, argument):
    global imports
    code = frame.f_code
    if code.co_name == "<module>":
        imports += (event == "call") - (event == "return")
    elif event == "call" and not imports and code.co_filename.startswith(root):
        calls.add((code.co_filename, code.co_qualname))
from hopefear.cli import main
if os.environ.get("HOUSE_CALLS"):
    sys.setprofile(look)
status = main(sys.argv[1].split() + ["--quiet"])
sys.setprofile(None)
modules = [n for n in sys.modules if n == "hopefear" or n.startswith("hopefear.")]
result = [status, len(modules), len({f for f, _ in calls}), len(calls)]
sys.__stderr__.write("HOUSE " + json.dumps(result) + "\\n")
"""

# Runs in a child: which losses each task takes.
_LOSSES = """
import contextlib, io, json, os, sys
import numpy as np
from hopefear.cli import main
from hopefear.recipes import LOSSES
result = {}
for task, file in (("classify", "classes.svm"), ("tag", "tag.txt"), ("rerank", "rerank.jsonl")):
    result[task] = {}
    for loss in sorted(LOSSES):
        words = f"train {task} --train {file} --learner sgd -p loss={loss} --epochs 1"
        for more in ("", " -p on=mistakes"):
            with contextlib.redirect_stderr(io.StringIO()) as said, np.errstate(all="ignore"):
                status = main(f"{words}{more} --model l.model --quiet".split())
            result[task][loss] = said.getvalue().strip() if status else ""
            if not status:
                break
print(json.dumps(result))
"""


def size(package: Path) -> dict[str, Any]:
    """Lines, files, names at the root, the longest modules and the shortest."""
    lengths = {
        str(path.relative_to(package)): len(path.read_text(encoding="utf-8").splitlines())
        for path in sorted(package.rglob("*.py"))
    }
    root = [
        path.name.removesuffix(".py")
        for path in sorted(package.iterdir())
        if path.suffix == ".py" or (path.is_dir() and any(path.glob("*.py")))
    ]
    names = [name for name in root if not name.startswith("__")]
    by_length = sorted(lengths.items(), key=lambda item: -item[1])
    return {
        "lines": sum(lengths.values()),
        "files": len(lengths),
        "names at the root": len(names),
        "root": names,
        "longest": dict(by_length[:10]),
        "modules under 40 lines": sum(
            n < 40 for path, n in lengths.items() if not path.endswith("__init__.py")
        ),
        "inits under 40 lines": sum(
            n < 40 for path, n in lengths.items() if path.endswith("__init__.py")
        ),
    }


def layers(package: Path) -> dict[str, Any]:
    """Lines of the exhaustive contract, those of its containers, and its exceptions."""
    with (package.parents[1] / "pyproject.toml").open("rb") as file:
        linter = tomllib.load(file)["tool"]["importlinter"]
    contracts = [c for c in linter["contracts"] if c["type"] == "layers"]
    main = max(contracts, key=lambda c: (bool(c.get("exhaustive")), len(c["layers"])))
    return {
        "layers": len(main["layers"]),
        "contract": main["layers"],
        "exceptions": sum(len(c.get("ignore_imports", ())) for c in contracts),
        "contracts": len(linter["contracts"]),
    }


def tables(package: Path) -> dict[str, Any]:
    places = []
    for path, tree in _trees(package):
        for node in tree.body:
            value = getattr(node, "value", None)
            if isinstance(node, ast.Assign | ast.AnnAssign) and _entries(value) >= TASKS:
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                places.append(f"{path}:{node.lineno} {ast.unparse(target)}")
    return {"tables of tasks": len(places), "places": places}


def loops(package: Path) -> dict[str, Any]:
    """Innermost loops that call ``.pieces`` in their head or ``.learn`` in their body."""
    places = []
    for path, tree in _trees(package):
        if path.startswith("data/"):
            continue
        lines = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.For | ast.comprehension | ast.While):
                head = node.test if isinstance(node, ast.While) else node.iter
                body = [] if isinstance(node, ast.comprehension) else node.body
                inner = [x for part in body for x in _outside_loops(part)]
                if _calls(ast.walk(head), "pieces") or _calls(inner, "learn", "learn_pass"):
                    lines.add(head.lineno)
            elif isinstance(node, ast.Call) and _calls([node], "pieces"):
                lines.add(node.lineno)
        places += [f"{path}:{line}" for line in sorted(lines)]
    return {"loops over data": len(places), "places": places}


def verbs(source: Path, folder: Path) -> dict[str, Any]:
    """Modules loaded, files run and functions run of each verb, interpreted."""
    table = {}
    for verb, line in VERBS.items():
        plain = {"NUMBA_DISABLE_JIT": "1"}
        _, modules, _, _ = _walked(source, folder, line, plain)
        status, _, files, functions = _walked(source, folder, line, plain | {"HOUSE_CALLS": "1"})
        if status:
            raise SystemExit(f"house.py: `hopefear {line}` ended with status {status}")
        table[verb] = {"modules loaded": modules, "files run": files, "functions run": functions}
    return table


def start(source: Path, folder: Path, repeats: int) -> dict[str, Any]:
    """CPU and wall-clock seconds of whole processes, kernels in the cache."""
    table = {}
    for verb in ("predict", "train classify", "train tag"):
        words = [sys.executable, "-m", "hopefear", *VERBS[verb].split(), "--quiet"]
        _timed(words, source, folder)
        times = [_timed(words, source, folder) for _ in range(repeats)]
        cpu, wall = (round(min(column), 3) for column in zip(*times, strict=True))
        table[verb] = {"cpu": cpu, "wall": wall}
    return table


def losses(source: Path, folder: Path) -> dict[str, Any]:
    """How many losses train a model of each task, and what the others say."""
    env = _environment(source) | {"NUMBA_DISABLE_JIT": "1"}
    words = [sys.executable, "-c", _LOSSES]
    child = subprocess.run(words, cwd=folder, env=env, check=True, stdout=subprocess.PIPE)
    table = {}
    for task, answers in json.loads(child.stdout.splitlines()[-1]).items():
        refused = {name: said for name, said in answers.items() if said}
        table[task] = {
            "run": len(answers) - len(refused),
            "of": len(answers),
            "refused": refused,
        }
    return table


def write_files(folder: Path) -> None:
    """A tiny file of every task."""
    words = "hope fear sea ship wind rain night day".split()  # noqa: SIM905
    rows = [f"{1 + i % 3} {1 + i % 3}:1 {4 + i % 5}:0.5 {9 + i % 7}:1\n" for i in range(40)]
    two = [f"{1 - 2 * (i % 2)} {1 + i % 2}:1 {4 + i % 5}:0.5 {9 + i % 7}:1\n" for i in range(40)]
    sentences, lists, nbest, references = [], [], [], []
    for i in range(16):
        tokens = [words[(i + 3 * j) % 8] for j in range(5)]
        labels = ["B-X" if len(word) == 4 else "O" for word in tokens]
        sentences.append("".join(f"{w} {y}\n" for w, y in zip(tokens, labels, strict=True)))
        candidates = [
            {"text": f"{words[c]} {i}", "cost": c / 4, "features": {"lm": -0.1 * (c + i % 3)}}
            for c in range(4)
        ]
        lists.append(json.dumps({"id": i, "candidates": candidates}) + "\n")
        for c in range(4):
            text = " ".join([*tokens[: 5 - c % 2], words[(i + c) % 8]])
            dense = f"LM0= {-0.4 * (c + 1) - 0.1 * (i % 3):.2f} TM0= {-0.3 * (3 - c):.2f}"
            nbest.append(f"{i} ||| {text} ||| {dense} ||| {-1.0 * c - 0.5:.2f}\n")
        references.append(" ".join([*tokens, words[i % 8]]) + "\n")
    texts = {"classes.svm": rows, "classify.svm": two, "tag.txt": ["\n".join(sentences)]}
    texts |= {"rerank.jsonl": lists, "tune.nbest": nbest, "tune.ref": references}
    for name, lines in texts.items():
        (folder / name).write_text("".join(lines), encoding="utf-8")


def _trees(package: Path) -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(package.rglob("*.py")):
        yield str(path.relative_to(package)), ast.parse(path.read_text(encoding="utf-8"))


def _entries(value: ast.expr | None) -> set[str]:
    """The texts that are keys or entries of a literal, or first in its entries."""
    if isinstance(value, ast.Call):
        keywords = {keyword.arg for keyword in value.keywords if keyword.arg}
        return keywords.union(*(_entries(part) for part in value.args))
    parts: list[Any] = []
    if isinstance(value, ast.Dict):
        parts = value.keys
    elif isinstance(value, ast.Tuple | ast.List | ast.Set):
        parts = [_first(entry) for entry in value.elts]
    return {p.value for p in parts if isinstance(p, ast.Constant) and isinstance(p.value, str)}


def _first(entry: ast.expr) -> ast.expr:
    if isinstance(entry, ast.Call) and entry.args:
        return entry.args[0]
    return entry.elts[0] if isinstance(entry, ast.Tuple) and entry.elts else entry


def _outside_loops(node: ast.AST) -> Iterator[ast.AST]:
    """The node and what is in it, without the bodies of inner loops and functions."""
    if isinstance(node, ast.For | ast.While | ast.FunctionDef | ast.ClassDef):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _outside_loops(child)


def _calls(nodes: Any, *names: str) -> bool:
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in names
        for node in nodes
    )


def _environment(source: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(source), "OPENBLAS_NUM_THREADS": "1"}


def _walked(source: Path, folder: Path, line: str, more: dict[str, str]) -> list[int]:
    env, words = _environment(source) | more, [sys.executable, "-W", "ignore", "-c", _WALK, line]
    child = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True)
    answer = re.search(r"^HOUSE (.*)$", child.stderr, re.MULTILINE)
    if answer is None:
        raise SystemExit(f"house.py: `hopefear {line}` failed:\n{child.stderr}")
    return json.loads(answer[1])


def _timed(words: list[str], source: Path, folder: Path) -> tuple[float, float]:
    before, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(words, cwd=folder, env=_environment(source), check=True)
    wall = time.perf_counter() - clock
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def _shown(figures: dict[str, Any], indent: str = "") -> Iterator[str]:
    for key, value in figures.items():
        if (
            isinstance(value, dict)
            and value
            and not any(isinstance(entry, dict | list) for entry in value.values())
        ):
            numbers = all(isinstance(entry, int | float) for entry in value.values())
            if numbers and len(value) < 4:
                pairs = ", ".join(f"{name} {number}" for name, number in value.items())
                yield f"{indent}{key:<24}{pairs}"
                continue
        if isinstance(value, dict):
            yield f"{indent}{key}"
            yield from _shown(value, indent + "  ")
        elif isinstance(value, list):
            yield f"{indent}{key}"
            yield from (f"{indent}  {entry}" for entry in value)
        else:
            yield f"{indent}{key:<23} {value}"


def main() -> None:
    here = Path(__file__).resolve().parents[1]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--src", type=Path, default=here / "src", help="folder of the package")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path, help="file for all figures")
    args = parser.parse_args()
    source = args.src.resolve()
    package = source / "hopefear"
    figures: dict[str, Any] = {}
    for name, count in (("size", size), ("layers", layers), ("tables", tables), ("loops", loops)):
        if name in args.only:
            figures[name] = count(package)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_files(folder)
        if {"verbs", "start", "losses"} & set(args.only):
            words = [sys.executable, "-m", "hopefear", *_MADE_BEFORE.split(), "--quiet"]
            env = _environment(source) | {"NUMBA_DISABLE_JIT": "1"}
            subprocess.run(words, cwd=folder, env=env, check=True)
        if "verbs" in args.only:
            figures["verbs"] = verbs(source, folder)
        if "start" in args.only:
            figures["start"] = start(source, folder, args.repeats)
        if "losses" in args.only:
            figures["losses"] = losses(source, folder)
    print("\n".join(_shown(figures)))
    if args.json:
        args.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
