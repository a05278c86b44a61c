"""The map of a run in docs/design.md: a tiny run calls its functions, in its order."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

pytestmark = pytest.mark.interpreted
TEXT = "Ann B-P\nLee I-P\nleft O\n\nBo B-P\nwaits O\n\n" * 4
# Prints the functions of the package that a program calls, in the order of their first calls.
TRACED = """
import json, os, sys, threading
import hopefear
root, names, seen = os.path.dirname(hopefear.__file__), [], set()
def look(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(root) and code not in seen:
        seen.add(code)
        module = os.path.relpath(code.co_filename, root)[:-3].replace(os.sep, ".")
        names.append(module.removesuffix(".__init__") + "." + code.co_qualname)
threading.setprofile(look)
sys.setprofile(look)
{program}
sys.setprofile(None)
print("TRACE " + json.dumps(names))
"""
COMMAND = "from hopefear.cli import main\nassert main(sys.argv[1:]) == 0"
REQUEST = """
import asyncio
from hopefear.serve.app import App
from hopefear.serve.batcher import RequestBatcher
from hopefear.serve.registry import ModelRegistry
async def ask(path):
    registry = ModelRegistry([path])
    registry.load()  # which tries an example
    names.clear(), seen.clear()
    app, body = App(registry, RequestBatcher()), [b'{"input": ["Ann", "left"]}']
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    scope = {
        "type": "http", "method": "POST", "path": "/predict", "raw_path": b"/predict",
        "query_string": b"", "root_path": "", "scheme": "http", "http_version": "1.1",
        "headers": headers, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2),
    }
    async def receive():
        if not body:
            await asyncio.sleep(60)
        return {"type": "http.request", "body": body.pop(), "more_body": False}
    answers = []
    async def send(message):
        answers.append(message)
    await app(scope, receive, send)
    app.batcher.close()
    assert answers[0]["status"] == 200, answers
asyncio.run(ask(sys.argv[1]))
"""


def steps_of(heading: str) -> list[str]:
    """Returns the functions that a section of the map names."""
    page = (ROOT / "docs" / "design.md").read_text("utf-8")
    section = re.search(rf"^### {re.escape(heading)}\n(.*?)(?=^##)", page, re.M | re.S)
    assert section, heading
    return re.findall(r"^\d+\. `([\w.]+)`", section[1], re.M)


def calls(program: str, *words: str, cwd: Path) -> list[str]:
    """Returns the functions that a program calls, in the order of their first calls."""
    code = TRACED.replace("{program}", program)
    child = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *words],
        cwd=cwd,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
    )
    assert child.returncode == 0, child.stderr
    (line,) = re.findall(r"^TRACE (.*)$", child.stdout, re.M)
    return list(json.loads(line))


def check(steps: list[str], names: list[str]) -> None:
    """Every step is called, for the first time behind the step before it."""
    assert len(steps) > 5
    assert [step for step in steps if step not in names] == []
    assert sorted(steps, key=names.index) == steps


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file of tokens, the functions of its training, and the model."""
    path = tmp_path_factory.mktemp("run")
    (path / "tag.txt").write_text(TEXT, encoding="utf-8")
    words = "train tag --train tag.txt --epochs 2 --model tag.model --quiet"
    (path / "trained.json").write_text(json.dumps(calls(COMMAND, *words.split(), cwd=path)))
    return path


def test_training(folder: Path) -> None:
    check(steps_of("`hopefear train tag`"), json.loads((folder / "trained.json").read_text()))


def test_prediction(folder: Path) -> None:
    words = "predict --model tag.model --input tag.txt --output out.txt --quiet"
    check(steps_of("`hopefear predict`"), calls(COMMAND, *words.split(), cwd=folder))


@pytest.mark.needs("serve")
def test_a_request(folder: Path) -> None:
    check(steps_of("A request to `hopefear serve`"), calls(REQUEST, "tag.model", cwd=folder))
