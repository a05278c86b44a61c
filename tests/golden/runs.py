"""What is recorded of every run: digests, a few numbers, and the keys that programs look for.

Everything goes through the command line, the four estimators and the documented format of files
(docs/files.md), so that it stays as it is when modules move.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import io
import json
import os
import platform
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numba
import numpy as np

import hopefear
from hopefear.cli import main

_ARCS = "--features arcs.toml --hash-bits 12"
# Of each task five learners: the options that train them, and the suffix of their data.
CASES: dict[str, dict[str, tuple[str, str]]] = {
    "classify": {
        "adagrad-rda": ("two.svm", "--dev dev-two.svm --epochs 3"),
        "perceptron": ("many.svm", "--dev dev-many.svm --epochs 4"),
        "vrda": ("two.tsv", "-p averaging=voted -p l1=1e-3 --epochs 2"),
        "arow": ("many.tsv", "--ngrams 2 --epochs 2 --seed 3"),
        "ftrl": ("two.svm", "-p l1=0.1 --no-shuffle --norm none --epochs 2"),
    },
    "tag": {
        "sapo": ("chunks.txt", "--dev dev-chunks.txt --epochs 2"),
        "perceptron": ("chunks.txt", "-p averaging=voted --epochs 2 --convert iobes --min-count 2"),
        "mira": ("chunks.txt", "--order 2 --dev dev-chunks.txt --epochs 2 --min-count 2"),
        "crf": ("words.conllu", "--epochs 2 --seed 3"),
        "crf-lbfgs": ("spans.crfsuite", "--dev dev-spans.crfsuite --epochs 6"),
    },
    "rerank": {
        "maxent": ("lists.jsonl", "--dev dev-lists.jsonl --epochs 4"),
        "vrda": ("trees.jsonl", "--dev dev-trees.jsonl --min-count 2 --epochs 3"),
        "mira": ("lists.jsonl", "--metric bleu --metric-option smoothing=exp --epochs 2"),
        "risk": ("lists.jsonl", "--metric wer --baseline offset --tied --epochs 2 --seed 3"),
        "maxent-lbfgs": ("lists.jsonl", "--dev dev-lists.jsonl --epochs 8"),
    },
    "parse": {
        "mira": ("bank.conllu", f"{_ARCS} --order 2 --heads 3 --dev dev-bank.conllu --epochs 2"),
        "perceptron": ("bank.conllu", f"{_ARCS} --order 1 --dev dev-bank.conllu --epochs 2"),
        "swvp": ("bank.conllu", f"{_ARCS} --order 1 --tree projective -p jj=subtrees --epochs 2"),
        "crf": ("bank.conllu", f"{_ARCS} --order 1 --tree projective --epochs 2 --seed 3"),
        "vrda": ("bank.conllu", f"{_ARCS} --order 1 --unlabelled -p l1=1e-3 --epochs 2"),
    },
    "tune": {
        "mert": ("txt", "-p restarts=3"),
        "pro": ("ini", "--held-out 0.25 -p max_iter=20"),
        "mira": ("json", "--dev-nbest dev-moses.nbest --dev-refs dev-moses.ref --epochs 4"),
        "perceptron": ("txt", "--metric chrf --epochs 3 --seeds 2"),
        "vrda": ("json", "--source train-moses.src --features dense,phrases --epochs 3"),
    },
}
# The one of each task that is compiled as well.
COMPILED = {"classify": "adagrad-rda", "tag": "crf-lbfgs", "rerank": "maxent"}
COMPILED |= {"parse": "perceptron", "tune": "perceptron"}
VERBS = (
    *("demo", "learners", "train", "train classify", "train tag", "train rerank", "predict"),
    *("evaluate", "compare", "compare classify", "compare tag", "compare rerank", "inspect"),
    *("train parse", "compare parse", "tune", "report", "reproduce"),
    *("search", "search classify", "search tag", "search rerank", "search parse"),
)
_COMPARED = {
    "classify": ("two.svm", "perceptron,ftrl:l1=0.1"),
    "tag": ("chunks.txt", "perceptron,crf"),
    "rerank": ("lists.jsonl", "perceptron,maxent"),
    "parse": ("bank.conllu", "perceptron,mira"),
}
_TIMES = {"seconds", "seconds_per_pass", "versions"}


def mode() -> str:
    """``interpreted`` or ``compiled``: sums are not made in the same order."""
    return "interpreted" if numba.config.DISABLE_JIT else "compiled"


def machine() -> dict[str, str]:
    """What the last digits of numbers may depend on."""
    cpu = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        facts = dict(
            re.findall(r"^(model name|cpu family|model|flags)\s*: (.*)$", text, re.MULTILINE)
        )
        vectors = [flag for flag in facts.pop("flags", "").split() if re.match("avx|fma", flag)]
        cpu = " ".join([*facts.values(), *sorted(vectors)]) or cpu
    versions = {name: importlib.import_module(name).__version__ for name in ("numpy", "scipy")}
    python = ".".join(platform.python_version_tuple()[:2])
    return {"cpu": cpu, "python": python, "numba": numba.__version__, **versions}


def surface(run: Command) -> dict[str, Any]:
    """Help of every verb, and the table of learners."""
    learners = {}
    for task in CASES:
        table = json.loads(run(f"learners --task {task} --json")[1])["learners"][task]
        learners[task] = {name: _recipe(entry) for name, entry in table.items()}
    return {
        "help": {verb: run(f"{verb} --help")[1].splitlines() for verb in ("", *VERBS)},
        "learners": learners,
    }


def learner(task: str, name: str, run: Command) -> dict[str, Any]:
    """One learner: trained, asked, scored and looked into."""
    return (_tuner if task == "tune" else _model)(task, name, run)


def comparison(task: str, run: Command) -> Any:
    suffix, names = _COMPARED[task]
    files = f"--train train-{suffix} --test test-{suffix} --report compare-{task}.html"
    own = f" {_ARCS} --order 1" if task == "parse" else ""
    line = f"{files}{own} --learners {names} --epochs 2 --json --quiet"
    return _answer(run, f"compare {task} {line}")


def estimator(task: str) -> dict[str, Any]:
    """The estimator of a task: what it predicts, and the names of its parameters."""
    with np.errstate(over="ignore"):
        made, answers, extra = _ESTIMATORS[task]()
    text = json.dumps(answers, default=lambda value: value.tolist())
    numbers = np.round(np.concatenate([np.ravel(array) for array in extra]), 4) + 0.0
    return {
        "parameters": sorted(made.get_params()),
        "numbers": _summary(numbers),
        "exact": {"predictions": _digest(text)},
    }


class Command:
    """The program, in this process and in a folder: (status, standard output, standard error)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, line: str) -> tuple[int, str, str]:
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
        plain = {"COLUMNS": "80", "LINES": "24", "TERM": "dumb", "NO_COLOR": "1"}
        with (
            _inside(self.folder),
            mock.patch.dict(os.environ, plain),
            mock.patch.object(sys, "argv", ["hopefear"]),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            np.errstate(over="ignore"),  # of hashes; compiled, they go round without a word
        ):
            try:
                status = main(line.split())
            except SystemExit as end:
                status = int(end.code or 0)
        texts = []
        for stream in (out, err):
            stream.flush()
            texts.append(stream.buffer.getvalue().decode())
        return status, texts[0], texts[1]


def differences(old: Any, new: Any, exact: bool, path: str = "") -> Iterator[str]:
    """Lines that say where ``new`` departs from ``old``.

    Numbers may differ by one in ten thousand; what stands under ``exact`` is looked at only where
    the machine is the same.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys(), key=str):
            place = f"{path}/{key}"
            if key == "exact" and not exact:
                continue
            if key not in new:
                yield f"{place}: was {_short(old[key])}, is gone"
            elif key not in old:
                yield f"{place}: is new: {_short(new[key])}"
            else:
                yield from differences(old[key], new[key], exact, place)
    elif isinstance(old, list) and isinstance(new, list):
        if _words(old) and _words(new):
            yield from (f"{path}: removed {x!r}" for x in old if x not in new)
            yield from (f"{path}: added {x!r}" for x in new if x not in old)
            if old != new and sorted(old) == sorted(new):
                yield f"{path}: the order was {_short(old)}, is {_short(new)}"
            elif old != new and set(old) == set(new):
                yield f"{path}: had {len(old)} lines, has {len(new)}, with others repeated"
        elif len(old) != len(new):
            yield f"{path}: had {len(old)} entries, has {len(new)}"
        else:
            for i, (a, b) in enumerate(zip(old, new, strict=True)):
                yield from differences(a, b, exact, f"{path}/{i}")
    elif _number(old) and _number(new):
        if abs(old - new) > 1e-4 * max(abs(old), abs(new)) + 1e-6:
            yield f"{path}: was {old}, is {new}"
    elif old != new:
        yield f"{path}: was {_short(old)}, is {_short(new)}"


def _model(task: str, name: str, run: Command) -> dict[str, Any]:
    suffix, options = CASES[task][name]
    folder, file, test = f"{task}-{name}", f"{task}-{name}.model", f"test-{suffix}"
    line = f"--train train-{suffix} --learner {name} {options} --run {folder} --model {file}"
    report: dict[str, Any] = _answer(run, f"train {task} {line} --json", messages=True)
    if "error" in report:
        return report
    if mode() == "compiled":  # every kernel costs seconds
        said = _said(run, f"predict --model {file} --input {test}")
        report |= _container(run.folder / file)
        report["exact"]["predictions"] = said
        return report
    ask = f"predict --model {file} --input {test}"
    asked = {"plain": ask, "nbest": f"{ask} --nbest 3", "proba": f"{ask} --proba"}
    asked["both"] = f"{ask} --nbest 3 --proba"
    if task in ("tag", "rerank"):
        asked["explain"] = f"{ask} --explain --top 3 --json"
    report |= _container(run.folder / file) | _events(run.folder / folder)
    report["exact"] |= {"predictions": {key: _said(run, words) for key, words in asked.items()}}
    report["evaluate"] = _answer(run, f"evaluate --model {file} --data {test} --json")
    if task == "tag":
        report["evaluate --proba"] = _answer(
            run, f"evaluate --model {file} --data {test} --proba --json"
        )
    report["inspect"] = _answer(run, f"inspect --model {file} --top 2 --json")
    return report


def _tuner(task: str, name: str, run: Command) -> dict[str, Any]:
    suffix, options = CASES[task][name]
    folder, file = f"{task}-{name}", f"{task}-{name}.{suffix}"
    line = f"--nbest train-moses.nbest --refs train-moses.ref --learner {name} {options}"
    report: dict[str, Any] = _answer(
        run, f"tune {line} --run {folder} --weights {file} --json", messages=True
    )
    if "error" in report:
        return report
    source = " --source test-moses.src" if "--source" in options else ""
    ask = f"predict --weights {file} --input test-moses.nbest{source}"
    asked = {"plain": ask, "nbest": f"{ask} --nbest 3"}
    report |= _events(run.folder / folder)
    report["exact"] = {"file": _digest((run.folder / file).read_bytes())}
    if mode() == "compiled":
        return report
    report["exact"]["predictions"] = {key: _said(run, words) for key, words in asked.items()}
    lists = f"--nbest test-moses.nbest --refs test-moses.ref{source}"
    report["evaluate"] = _answer(run, f"evaluate --weights {file} {lists} --json")
    report["inspect"] = _answer(run, f"inspect --weights {file} --top 5 --json")
    return report


def _answer(run: Command, line: str, messages: bool = False) -> Any:
    """The object that a command prints with --json, or the error."""
    status, out, err = run(line)
    if status:
        return {"status": status, "error": _masked(err).splitlines()}
    answer = json.loads(out)
    for key in ("about", "model_about"):
        if key in answer:
            answer[key] = sorted(set(_paths(answer[key])))
    answer = json.loads(_masked(json.dumps(_timeless(answer))))
    if not messages:
        return answer
    if mode() == "compiled":  # what is said depends on which kernels are in the cache
        return {"--json": answer}
    lines = (" ".join(re.sub(r"\d[\d,.]*(e-?\d+)?", "#", x).split()) for x in err.splitlines())
    said = [x for x in lines if x and not x.startswith(("signature", "metric "))]
    return {"--json": answer, "messages": list(dict.fromkeys(said))}


def _said(run: Command, line: str) -> Any:
    """Digest of what a command prints, numbers rounded; or the error."""
    status, out, err = run(f"{line} --quiet")
    if status:
        return {"status": status, "error": _masked(err).splitlines()}
    return _digest(re.sub(r"-?\d+\.\d+(e[-+]?\d+)?", lambda m: f"{float(m[0]) + 0.0:.4g}", out))


def _container(path: Path) -> dict[str, Any]:
    """A model file, read as docs/files.md says it is made."""
    content = path.read_bytes()
    size = int.from_bytes(content[12:20], "little")
    manifest = json.loads(content[52 : 52 + size])
    arrays = content[-manifest["sections"]["arrays"]["length"] :]
    start = 8 + int.from_bytes(arrays[:8], "little")
    kinds = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U64": "<u8", "U8": "u1"}
    kinds |= {"BOOL": "?", "I8": "i1", "U32": "<u4", "I16": "<i2", "U16": "<u2"}
    numbers, digests = {}, {}
    for name, entry in sorted(json.loads(arrays[8:start]).items()):
        if name == "__metadata__":
            continue
        first, after = (start + offset for offset in entry["data_offsets"])
        array = np.frombuffer(arrays[first:after], kinds[entry["dtype"]])
        digests[name] = _digest(arrays[first:after])
        numbers[name] = {"type": entry["dtype"], "shape": entry["shape"]}
        if array.dtype.kind == "f":
            numbers[name] |= _summary(array)
    header = manifest["header"]
    masked = _masked(json.dumps(_timeless(header), sort_keys=True))
    return {
        "header": sorted(set(_paths(header))),
        "arrays": numbers,
        "exact": {"file": _digest(content), "header": _digest(masked), "arrays": digests},
    }


def _events(folder: Path) -> dict[str, Any]:
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    lines = (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    return {
        "run.json": sorted(set(_paths(run))),
        "events.jsonl": {
            "count": len(events),
            "keys": sorted({key for event in events for key in _paths(event)}),
            "last": json.loads(_masked(json.dumps(_timeless(events[-1])))),
        },
    }


def _recipe(entry: dict[str, Any]) -> dict[str, Any]:
    """Parts and defaults as they are, all the words as a digest."""
    words = {key: value for key, value in entry.items() if isinstance(value, str)}
    effects = {key: value.get("effect") for key, value in entry["parameters"].items()}
    defaults = {key: value["default"] for key, value in entry["parameters"].items()}
    return {
        "parts": [f"{key}:{entry.get(key)}" for key in ("loss", "rule", "averaging", "update_on")],
        "defaults": defaults,
        "words": _digest(json.dumps([words, effects], sort_keys=True)),
    }


def _summary(array: np.ndarray) -> dict[str, Any]:
    values = array[np.isfinite(array)].astype(np.float64)
    sizes = np.abs(values)
    nonzero = values[sizes > 0]
    return {
        "nonzeros": len(nonzero),
        "sum": float(f"{values.sum():.8g}"),
        "sizes": float(f"{sizes.sum():.8g}"),
        "first": [float(f"{value:.6g}") for value in nonzero[:5]],
    }


def _timeless(value: Any) -> Any:
    """The same without what differs from run to run or from version to version."""
    if isinstance(value, dict):
        return {k: "*" if k in _TIMES else _timeless(v) for k, v in value.items()}
    return [_timeless(v) for v in value] if isinstance(value, list) else value


def _masked(text: str) -> str:
    text = re.sub(r"\|(data|dev):[0-9a-f]{8}\b", r"|\1:*", text)  # rounding differs by machine
    return re.sub(r"\b(v|version):\d+(\.\w+)*", r"\1:*", text)


def _paths(value: Any, path: str = "") -> Iterator[str]:
    """Names of all entries of an object; of a list those of its entries."""
    if isinstance(value, dict) and value:
        for key, entry in value.items():
            yield from _paths(entry, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and any(isinstance(entry, dict) for entry in value):
        for entry in value:
            yield from _paths(entry, f"{path}[]")
    else:
        yield path


def _digest(content: str | bytes) -> str:
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _words(values: list) -> bool:
    return all(isinstance(value, str) for value in values)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 160 else f"{text[:157]}..."


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _classifier() -> tuple[Any, Any, list[np.ndarray]]:
    X = np.array([[(7 * i + 3 * j) % 5 - 2.0 for j in range(6)] for i in range(30)])
    y = np.array(["fear" if row[0] + 0.5 * row[3] > 0 else "hope" for row in X])
    made = hopefear.Classifier("adagrad-rda", epochs=2).fit(X, y)
    return made, made.predict(X), [made.predict_proba(X), made.decision_function(X)]


def _tagger() -> tuple[Any, Any, list[np.ndarray]]:
    words = [["the", "old", "ship"], ["a", "storm", "rises"], ["hope", "rises"], ["old", "hope"]]
    labels = [["D", "A", "N"], ["D", "N", "V"], ["N", "V"], ["A", "N"]]
    made = hopefear.Tagger("perceptron", epochs=3, n_jobs=1).fit(words, labels)
    asked = [["the", "storm"], ["old", "ship", "rises"]]
    numbers = [token.values() for sentence in made.predict_marginals(asked) for token in sentence]
    return made, made.predict(asked), [np.array(list(row)) for row in numbers]


def _reranker() -> tuple[Any, Any, list[np.ndarray]]:
    lists = [
        [{"lm": -1.0 - (i + c) % 3, "long": c % 2, f"w{(i * c) % 4}": 1.0} for c in range(4)]
        for i in range(12)
    ]
    costs = [[((i + 2 * c) % 5) / 4 for c in range(4)] for i in range(12)]
    made = hopefear.Reranker("mira", epochs=3).fit(lists, costs)
    return made, made.predict(lists), list(made.predict_proba(lists))


def _tuner_estimator() -> tuple[Any, Any, list[np.ndarray]]:
    texts = ["so it is hope", "hope it is so", "is it so", "it is"]
    lists = [
        [
            {"text": text, "features": {"LM0": -1.0 - (i + c) % 3, "TM0": -0.5 * c}}
            for c, text in enumerate(texts[i % 2 :])
        ]
        for i in range(8)
    ]
    made = hopefear.Tuner("perceptron", start="uniform", epochs=3)
    made.fit(lists, [texts[i % 3] for i in range(8)])
    return made, made.predict(lists), [np.array([made.score(lists, texts[:1] * 8)])]


def _parser() -> tuple[Any, Any, list[np.ndarray]]:
    words = [["the", "ship", "sails"], ["hope", "rises"], ["the", "storm", "rises"]]
    tags = [["D", "N", "V"], ["N", "V"], ["D", "N", "V"]]
    trees = [[(2, "det"), (3, "subj"), (0, "root")], [(2, "subj"), (0, "root")]]
    made = hopefear.Parser("perceptron", order=1, features="light", hash_bits=12, epochs=2)
    X = [list(zip(*each, strict=True)) for each in zip(words, tags, strict=True)]
    made.fit(X, [*trees, trees[0]])
    return made, made.predict(X), [np.array([made.score(X, [*trees, trees[0]])])]


_ESTIMATORS: dict[str, Callable[[], tuple[Any, Any, list[np.ndarray]]]] = {
    "classify": _classifier,
    "tag": _tagger,
    "rerank": _reranker,
    "parse": _parser,
    "tune": _tuner_estimator,
}
