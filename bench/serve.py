"""Load tests of `hopefear serve`: single sentences to a tagger, overload, and hostile input.

    python bench/serve.py                       # everything, on a tagger of CoNLL-2000
    python bench/serve.py --only load --seconds 10 --repeats 5

Server and clients share the machine's cores. Clients are plain sockets in this process, each with
one connection and one request at a time; they only look for the end of an answer, and its time is
the kernel's stamp of its arrival, so that it does not matter when this process comes to read it.
``seen_p99_ms`` is what it would be if that mattered. Where other jobs run, ``chrt -r 10`` before it
gives server and clients the cores first. Prints one line of JSON for each part.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import resource
import selectors
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

DATA = Path(os.environ.get("HOPEFEAR_DATA", "data")) / "conll2000"
SENTENCES = 4000  # to train on
WARMING = 0.5  # seconds
SO_TIMESTAMPNS = 35  # of Linux; Python has no name for it


class Client:
    """One connection that sends a request, waits for the answer and repeats.

    Answers are timed by the stamp that the kernel gives to what arrives, so that it does not matter
    when this process comes to read it.
    """

    def __init__(self, requests: list[bytes], port: int) -> None:
        self.requests, self.turn = requests, random.randrange(len(requests))
        self.link = socket.create_connection(("127.0.0.1", port))
        self.link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.link.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.buffer, self.asked = b"", 0

    def ask(self) -> None:
        self.turn += 1
        self.asked = time.time_ns()
        self.link.sendall(self.requests[self.turn % len(self.requests)])

    def answer(self) -> Answer | None:
        """Returns the answer once it is complete."""
        data, notes, *_ = self.link.recvmsg(1 << 18, 64)
        if not data:
            raise ConnectionError("the server has hung up")
        self.buffer += data
        head, separator, body = self.buffer.partition(b"\r\n\r\n")
        if not separator:
            return None
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        if len(body) < length:
            return None
        self.buffer = b""
        now = time.time_ns()
        came = _nanoseconds(notes[0][2]) if notes else now  # the first ones have no stamp yet
        took, noticed = (came - self.asked) / 1e9, (now - self.asked) / 1e9
        return Answer(int(head[9:12]), took, noticed, self.asked / 1e9)


def _nanoseconds(stamp: bytes) -> int:
    seconds, nanoseconds = struct.unpack("qq", stamp)
    return 10**9 * seconds + nanoseconds


class Answer(NamedTuple):
    """An answer: until it came, and until this process had read it, both in seconds."""

    status: int
    took: float
    seen: float
    asked: float


def http(path: str, body: bytes, port: int) -> bytes:
    """A request as bytes."""
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json"
    return f"{head}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


def ask(
    port: int, requests: list[bytes], clients: int, seconds: float, max_requests: int
) -> list[Answer]:
    """Returns all answers to ``clients`` connections."""
    answers: list[Answer] = []
    callers = [Client(requests, port) for _ in range(clients)]
    until = time.monotonic() + seconds
    with selectors.EpollSelector() as selector:
        for client in callers:
            selector.register(client.link, selectors.EVENT_READ, client)
        asking = callers[: min(clients, max_requests)]
        for client in asking:
            client.ask()
        n_sent, waiting = len(asking), len(asking)
        while waiting:
            for key, _ in selector.select():
                answer = key.data.answer()
                if answer is None:
                    continue
                answers.append(answer)
                if n_sent < max_requests and time.monotonic() < until:
                    key.data.ask()
                    n_sent += 1
                else:
                    waiting -= 1
    for client in callers:
        client.link.close()
    return answers


def summary(answers: list[Answer], seconds: float) -> dict[str, Any]:
    """Rates, and percentiles of what was answered well, in milliseconds.

    The first half second, in which all clients ask at once, is left out. ``seen_p99_ms`` has what
    this process adds when it reads late.
    """
    begin = min(answer.asked for answer in answers) + WARMING
    answers = [answer for answer in answers if answer.asked > begin]
    seconds -= WARMING
    good = sorted(answer.took for answer in answers if answer.status == 200)
    noticed = sorted(answer.seen for answer in answers if answer.status == 200)
    points = {"p50": 0.5, "p99": 0.99, "p999": 0.999}
    figures = {f"{k}_ms": round(1e3 * good[int(p * (len(good) - 1))], 2) for k, p in points.items()}
    figures["seen_p99_ms"] = round(1e3 * noticed[int(0.99 * (len(noticed) - 1))], 2)
    counts = dict(Counter(answer.status for answer in answers))
    return {"answers_per_s": round(len(good) / seconds), **figures, "statuses": counts}


def memory(pid: int) -> float:
    """Resident megabytes of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return round(pages * resource.getpagesize() / 1e6, 1)


def cpu(pid: int) -> float:
    """Seconds of a core that all threads of a process have taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def sentences() -> list[list[list[str]]]:
    """The first sentences of CoNLL-2000: rows of word, tag and chunk."""
    with gzip.open(DATA / "train.txt.gz", "rt") as file:
        blocks = file.read().split("\n\n")[:SENTENCES]
    return [[line.split() for line in block.splitlines()] for block in blocks if block.strip()]


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "hopefear", *words]


class Serving:
    """A server in a child process, as a context manager."""

    def __init__(self, model: str, *options: str) -> None:
        self.words = command("serve", "--model", model, "--port", "0", *options)

    def __enter__(self) -> Serving:
        self.process = subprocess.Popen(self.words, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if line.startswith("serving"):
                self.port = int(line.rpartition(":")[2].partition("/")[0])
                return self
        raise SystemExit("the server did not start")

    def __exit__(self, *_: Any) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)

    @property
    def megabytes(self) -> float:
        return memory(self.process.pid)

    def alive(self) -> bool:
        """Whether the server still answers."""
        with socket.create_connection(("127.0.0.1", self.port), 10) as link:
            link.sendall(f"GET /health HTTP/1.1\r\nhost: localhost:{self.port}\r\n\r\n".encode())
            return link.recv(100).startswith(b"HTTP/1.1 200")


def load(server: Serving, texts: list[str], args: argparse.Namespace) -> dict[str, Any]:
    """Single sentences, from as many clients as asked for: the best of several turns."""
    requests = [http("/predict", json.dumps({"input": t}).encode(), server.port) for t in texts]
    turns = []
    for _ in range(args.repeats + 1):
        before = cpu(server.process.pid)
        answers = ask(server.port, requests, args.clients, args.seconds, 1 << 40)
        cpu_seconds = (cpu(server.process.pid) - before) / len(answers)
        extra = {"server_cpu_ms": round(1e3 * cpu_seconds, 3)}  # of an answer of any status
        turns.append({**summary(answers, args.seconds), **extra})
    best = max(turns[1:], key=lambda turn: turn["answers_per_s"])
    rates = [(t["answers_per_s"], t["p99_ms"], t["server_cpu_ms"]) for t in turns[1:]]
    return {"clients": args.clients, **best, "turns": rates}


def overload(server: Serving, texts: list[str], args: argparse.Namespace) -> dict[str, Any]:
    """Ten times as many clients, which repeat at once whatever the answer."""
    return load(server, texts, argparse.Namespace(**{**vars(args), "clients": 10 * args.clients}))


def flood(server: Serving, texts: list[str], args: argparse.Namespace) -> dict[str, Any]:
    """The same from nearly as many clients as may connect."""
    return load(server, texts, argparse.Namespace(**{**vars(args), "clients": 950}))


def leaks(server: Serving, texts: list[str], args: argparse.Namespace) -> dict[str, Any]:
    """Memory after every tenth of the requests."""
    requests = [http("/predict", json.dumps({"input": t}).encode(), server.port) for t in texts]
    sizes = []
    for _ in range(10):
        ask(server.port, requests, args.clients, 1e9, args.requests // 10)
        sizes.append(server.megabytes)
    return {"requests": args.requests, "rss_mb": sizes}


def mangled(body: bytes, draw: random.Random) -> bytes:
    """A body with something wrong in it."""
    kind = draw.randrange(6)
    if kind == 0:
        return bytes(draw.randrange(256) for _ in range(draw.randrange(60)))
    if kind == 1:
        return body[: draw.randrange(len(body))]
    if kind == 2:
        at = draw.randrange(len(body))
        return body[:at] + bytes([draw.randrange(256)]) + body[at + 1 :]
    if kind == 3:
        return b"[" * draw.randrange(1, 3000)
    values: list[Any] = [
        None,
        -1,
        1e308,
        "",
        "\ud800",
        [],
        {},
        [[]],
        ["a", 1],
        "\x00<b>",
        [[["a"]]],
    ]
    fields = {
        draw.choice(["model", "input", "inputs", "n", "top", "token", "x"]): draw.choice(values)
        for _ in range(draw.randrange(4))
    }
    return json.dumps(fields if kind == 4 else {**fields, "input": draw.choice(values)}).encode()


def fuzz(server: Serving, texts: list[str], args: argparse.Namespace) -> dict[str, Any]:
    """Broken bodies: every one gets an answer, and none of them a 500."""
    draw, requests = random.Random(1), []
    for _ in range(20_000):
        text = {"input": draw.choice(texts)[:30]}  # reasons for whole sentences take their time
        body = mangled(json.dumps(text).encode(), draw)
        requests.append(http(draw.choice(["/predict", "/nbest", "/explain"]), body, server.port))
    before = server.megabytes
    answers = ask(server.port, requests, args.clients, 1e9, args.requests)
    counts = dict(Counter(answer.status for answer in answers))
    return {
        "requests": args.requests,
        "statuses": counts,
        "rss_mb": [before, server.megabytes],
        "alive": server.alive(),
    }


def hostile(server: Serving, texts: list[str], args: argparse.Namespace) -> dict[str, Any]:
    """Bodies of a gigabyte, slow clients, and 10,000 connections."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 12_000), hard))
    before, figures = server.megabytes, {}
    where = ("127.0.0.1", server.port)
    figures["gigabyte"] = _gigabyte(server, where)
    body = json.dumps({"input": texts[0]}).encode()
    slow = [socket.create_connection(where, 10) for _ in range(100)]
    for link in slow:
        link.sendall(http("/predict", body, server.port)[:-20])
    links = []
    for _ in range(10_000):
        try:
            links.append(socket.create_connection(where, 5))
        except OSError:
            break
    figures["connections"] = len(links)
    time.sleep(0.5)
    figures["rss_mb"] = [before, server.megabytes]
    for link in links:
        link.close()
    time.sleep(12)  # slow requests have 10 s
    figures["slow"] = dict(Counter(link.recv(1 << 16)[9:12].decode() or "closed" for link in slow))
    figures["rss_mb"].append(server.megabytes)
    return {**figures, "alive": server.alive()}


def _gigabyte(server: Serving, where: tuple[str, int]) -> str:
    """Returns the status for a body of a gigabyte without a declared length."""
    head = "POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    with socket.create_connection(where, 10) as link:
        try:
            link.sendall(f"{head}transfer-encoding: chunked\r\n\r\n".encode())
            for _ in range(1024):
                link.sendall(b"100000\r\n" + b" " * (1 << 20) + b"\r\n")
        except OSError:
            pass  # the server has hung up
        try:
            return link.recv(15).decode()
        except OSError:
            return "reset"


PARTS = {
    "load": load,
    "overload": overload,
    "flood": flood,
    "leaks": leaks,
    "fuzz": fuzz,
    "hostile": hostile,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--model", help="a tagger of text; without it one is trained")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=5.0, help="of one turn")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--requests", type=int, default=100_000, help="of leaks and fuzz")
    parser.add_argument("--options", nargs="*", default=[], help="more for serve, without --")
    args = parser.parse_args()
    rows = sentences()
    texts = [" ".join(row[0] for row in sentence) for sentence in rows[:1000]]
    options = [f"--{word}" if i % 2 == 0 else word for i, word in enumerate(args.options)]
    with tempfile.TemporaryDirectory() as folder:
        model = args.model or f"{folder}/chunks.model"
        if args.model is None:
            lines = "\n".join("".join(f"{r[0]} {r[2]}\n" for r in sentence) for sentence in rows)
            Path(folder, "chunks.txt").write_text(lines)
            learn = ["--learner", "perceptron", "--columns", "word,label", "--quiet"]
            train = ["train", "tag", "--train", f"{folder}/chunks.txt", "--model", model]
            subprocess.run(command(*train, *learn), check=True)
        for name in args.only:
            with Serving(model, *options) as server:
                figures = PARTS[name](server, texts, args)
            machine = {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 2)}
            print(json.dumps({"part": name, **figures, **machine}), flush=True)


if __name__ == "__main__":
    main()
