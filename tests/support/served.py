"""Small models of every task, and a server of them in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import hopefear
from hopefear.tasks.estimator import ModelEstimator

MARKUP = '<img src=x onerror="document.title=1">&amp;'


def small_models() -> dict[str, ModelEstimator]:
    """An estimator of every task, by the name of its file; labels of one are markup."""
    X = [["Ann", "Lee", "sings", "."], ["Bo", "sings", "."], ["He", "likes", "Ann", "."]]
    y = [["B-PER", "I-PER", "O", "O"], ["B-PER", "O", "O"], ["O", "O", "B-PER", "O"]]
    z = [["N", "N", "V", MARKUP], ["N", "V", MARKUP], ["P", "V", "N", MARKUP]]
    trees = [
        [(3, "nsubj"), (1, "flat"), (0, "root"), (3, "punct")],
        [(2, "nsubj"), (0, "root"), (2, "punct")],
        [(2, "nsubj"), (0, "root"), (2, "obj"), (2, "punct")],
    ]
    lists = [[{"fear": 1.0}, {"hope": 1.0, MARKUP: 2.0}]] * 2
    return {
        "names": hopefear.Tagger("perceptron", epochs=3).fit(X, y),
        "tags": hopefear.Tagger("perceptron", epochs=3, scheme=None).fit(X, z),
        "news": hopefear.Classifier("perceptron").fit(
            ["good fun", "so good", "no fun", "so bad"], ["hope", "hope", "fear", "fear"]
        ),
        "rows": hopefear.Classifier("perceptron").fit([[2.0, 0.0], [0.0, 1.0]], ["a", "b"]),
        "trees": hopefear.Parser("perceptron", order=1, epochs=3).fit(X, trees),
        "lists": hopefear.Reranker("perceptron", epochs=2).fit(lists, [[1, 0]] * 2),
    }


def saved(folder: Path) -> list[str]:
    """Paths of the models, written to a folder."""
    paths = []
    for name, model in small_models().items():
        paths.append(str(folder / f"{name}.model"))
        model.save(paths[-1])
    return paths


class Serving:
    """``hopefear serve`` as a process, interpreted, on a free port; its lines are kept."""

    def __init__(self, *words: str) -> None:
        code = "import sys; from hopefear.cli import main; sys.exit(main())"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, "serve", "--port", "0", *words],
            env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        line = self.told("serving")
        self.port = int(line.rpartition(":")[2].partition("/")[0])
        self.address = f"http://127.0.0.1:{self.port}"

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.lines.extend(iter(self.process.stderr.readline, ""))

    def told(self, words: str, seconds: float = 60.0) -> str:
        """The first line with these words, which may be yet to come."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for line in list(self.lines):
                if words in line:
                    return line
            assert self.process.poll() is None or words in "".join(self.lines), self.lines
            time.sleep(0.02)
        raise AssertionError(f"{words!r} was not said: {self.lines}")

    def link(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), 60)

    def request(self, path: str, body: bytes, *more: str) -> bytes:
        lines = [f"POST {path} HTTP/1.1", f"host: localhost:{self.port}", *more]
        lines += ["content-type: application/json", f"content-length: {len(body)}", "", ""]
        return "\r\n".join(lines).encode() + body

    def ask(self, path: str, **fields: object) -> tuple[int, dict]:
        """Status and JSON of an answer."""
        with self.link() as link:
            link.sendall(self.request(path, json.dumps(fields).encode(), "connection: close"))
            return parted(everything(link))

    @property
    def megabytes(self) -> float:
        """Resident memory."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal; the status that the process ends with."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        status = self.process.wait(30)
        self._reader.join(10)
        assert self.process.stderr is not None
        self.process.stderr.close()
        return status


def everything(link: socket.socket) -> bytes:
    """All that comes until the other side hangs up."""
    data = b""
    while piece := link.recv(1 << 16):
        data += piece
    return data


def parted(answer: bytes) -> tuple[int, dict]:
    """Status and JSON of an answer."""
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head[9:12]), json.loads(body)
