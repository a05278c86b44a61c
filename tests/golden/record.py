"""Record anew what the command line answers: ``python tests/golden/record.py [TASK]...``

Do so only where a change is meant, then read the difference of ``tests/golden/*.json`` line by line
before it is committed. Without a task all are recorded; ``surface`` is help and learners. Values
are taken interpreted, then those of one learner of each task compiled, each in its own process.
Digests belong to the machine that is written beside them: on another one, tests look at numbers and
keys alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))


def everything(task: str, folder: Path) -> dict[str, Any]:
    """All entries of a task, in the mode of this process."""
    from golden import files, runs

    files.write(folder)
    run = runs.Command(folder)
    if task == "surface":
        return runs.surface(run)
    if runs.mode() == "compiled":
        name = runs.COMPILED[task]
        return {name: runs.learner(task, name, run)}
    entries = {name: runs.learner(task, name, run) for name in runs.CASES[task]}
    entries["estimator"] = runs.estimator(task)
    if task != "tune":
        entries["compare"] = runs.comparison(task, run)
    return entries


def lines(value: Any, indent: str = "") -> str:
    """JSON, an entry on a line of its own only where it would not fit on one."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(flat) <= 110 or not value or not isinstance(value, dict | list):
        return flat
    deeper = indent + "  "
    if isinstance(value, dict):
        rows = [
            f"{json.dumps(k, ensure_ascii=False)}: {lines(v, deeper)}" for k, v in value.items()
        ]
        return "{\n" + ",\n".join(deeper + row for row in rows) + f"\n{indent}}}"
    if all(isinstance(entry, str) and " " not in entry for entry in value):
        text = json.dumps(value, ensure_ascii=False)[1:-1]
        rows = textwrap.wrap(
            text, 110 - len(deeper), break_long_words=False, break_on_hyphens=False
        )
        return "[\n" + "\n".join(deeper + row for row in rows) + f"\n{indent}]"
    return "[\n" + ",\n".join(deeper + lines(entry, deeper) for entry in value) + f"\n{indent}]"


def record(task: str) -> None:
    values: dict[str, Any] = {}
    for mode, off in (("interpreted", "1"), ("compiled", "0")):
        if task == "surface" and mode == "compiled":
            continue
        print(f"{task}, {mode}", file=sys.stderr)
        env = {**os.environ, "NUMBA_DISABLE_JIT": off}
        words = [sys.executable, __file__, "--print", task]
        child = subprocess.run(words, env=env, check=True, stdout=subprocess.PIPE, text=True)
        values |= json.loads(child.stdout)
    (HERE / f"{task}.json").write_text(lines(values) + "\n", encoding="utf-8")


if __name__ == "__main__":
    from golden import runs

    if sys.argv[1:2] == ["--print"]:
        with tempfile.TemporaryDirectory() as place:
            entries = everything(sys.argv[2], Path(place))
        print(json.dumps({"machine": runs.machine(), runs.mode(): entries}))
    else:
        for wanted in sys.argv[1:] or ["surface", *runs.CASES]:
            record(wanted)
