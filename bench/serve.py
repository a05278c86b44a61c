"""How `hopefear serve` bears load: single sentences to a tagger, too many of them, and nonsense.

    python bench/serve.py                       # everything, on a tagger of CoNLL-2000
    python bench/serve.py --only load --seconds 10 --repeats 5

Server and clients share the machine's cores. Clients are plain sockets in this process, each with
one connection and one request at a time. Prints one line of JSON for each part.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

DATA = Path(os.environ.get("HOPEFEAR_DATA", "data")) / "conll2000"
SENTENCES = 4000  # to train on
WARMING = 0.5  # seconds


class Client(asyncio.Protocol):
    """One connection that asks, waits for the answer and asks again, until ``until``."""

    def __init__(self, requests: list[bytes], until: float, left: list[int], out: list) -> None:
        self.requests, self.until, self.left, self.out = requests, until, left, out
        self.over = asyncio.get_running_loop().create_future()
        self.buffer, self.turn = b"", random.randrange(len(requests))

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.ask()

    def ask(self) -> None:
        if time.perf_counter() >= self.until or self.left[0] <= 0:
            self.transport.close()
            return
        self.left[0] -= 1
        self.turn += 1
        self.asked = time.perf_counter()
        self.transport.write(self.requests[self.turn % len(self.requests)])

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, found, body = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        if len(body) >= length:
            self.out.append((int(head[9:12]), time.perf_counter() - self.asked, self.asked))
            self.buffer = b""
            self.ask()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.over.done():
            self.over.set_result(None)


def http(path: str, body: bytes, port: int) -> bytes:
    """A request as bytes."""
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json"
    return f"{head}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


async def ask(port: int, requests: list[bytes], clients: int, seconds: float, most: int) -> list:
    """(status, seconds, when) of all answers to so many clients."""
    loop, out, left = asyncio.get_running_loop(), [], [most]
    until = time.perf_counter() + seconds
    made = [
        await loop.create_connection(lambda: Client(requests, until, left, out), "127.0.0.1", port)
        for _ in range(clients)
    ]
    await asyncio.gather(*(client.over for _, client in made))
    return out


def summary(answers: list, seconds: float) -> dict[str, Any]:
    """Rates, and percentiles of what was answered well, in milliseconds.

    The first half second, in which all connections are made at once, is left out.
    """
    begin = min(asked for *_, asked in answers) + WARMING
    answers = [answer for answer in answers if answer[2] > begin]
    seconds -= WARMING
    good = sorted(took for status, took, _ in answers if status == 200)
    points = {"p50": 0.5, "p99": 0.99, "p999": 0.999}
    facts = {f"{k}_ms": round(1e3 * good[int(p * (len(good) - 1))], 2) for k, p in points.items()}
    counts = dict(Counter(status for status, *_ in answers))
    return {"answers_per_s": round(len(good) / seconds), **facts, "statuses": counts}


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
    """A server in a process of its own, while it is entered."""

    def __init__(self, model: str, *more: str) -> None:
        self.words = command("serve", "--model", model, "--port", "0", *more)

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
        """Whether it still answers."""
        with socket.create_connection(("127.0.0.1", self.port), 10) as link:
            link.sendall(f"GET /health HTTP/1.1\r\nhost: localhost:{self.port}\r\n\r\n".encode())
            return link.recv(100).startswith(b"HTTP/1.1 200")


def load(server: Serving, texts: list[str], args: argparse.Namespace) -> dict[str, Any]:
    """Single sentences, from as many clients as asked for: the best of several turns."""
    requests = [http("/predict", json.dumps({"input": t}).encode(), server.port) for t in texts]
    turns = []
    for _ in range(args.repeats + 1):
        before = cpu(server.process.pid)
        answers = asyncio.run(ask(server.port, requests, args.clients, args.seconds, 1 << 40))
        spent = (cpu(server.process.pid) - before) / len(answers)
        facts = {"server_cpu_ms": round(1e3 * spent, 3)}  # of an answer of any status
        turns.append({**summary(answers, args.seconds), **facts})
    best = max(turns[1:], key=lambda turn: turn["answers_per_s"])
    rates = [(t["answers_per_s"], t["p99_ms"], t["server_cpu_ms"]) for t in turns[1:]]
    return {"clients": args.clients, **best, "turns": rates}


def overload(server: Serving, texts: list[str], args: argparse.Namespace) -> dict[str, Any]:
    """Ten times as many clients, which ask again at once whatever they are told."""
    return load(server, texts, argparse.Namespace(**{**vars(args), "clients": 10 * args.clients}))


def leaks(server: Serving, texts: list[str], args: argparse.Namespace) -> dict[str, Any]:
    """Memory after every tenth of the requests."""
    requests = [http("/predict", json.dumps({"input": t}).encode(), server.port) for t in texts]
    sizes = []
    for _ in range(10):
        asyncio.run(ask(server.port, requests, args.clients, 1e9, args.requests // 10))
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
    answers = asyncio.run(ask(server.port, requests, args.clients, 1e9, args.requests))
    counts = dict(Counter(status for status, *_ in answers))
    return {
        "requests": args.requests,
        "statuses": counts,
        "rss_mb": [before, server.megabytes],
        "alive": server.alive(),
    }


def hostile(server: Serving, texts: list[str], args: argparse.Namespace) -> dict[str, Any]:
    """Bodies of a gigabyte, slow and half-closed clients, and 10,000 connections."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 12_000), hard))
    before, facts = server.megabytes, {}
    where = ("127.0.0.1", server.port)
    facts["gigabyte"] = _gigabyte(server, where)
    body = json.dumps({"input": texts[0]}).encode()
    with socket.create_connection(where, 10) as link:
        link.sendall(http("/predict", body, server.port))
        link.shutdown(socket.SHUT_WR)
        facts["half_closed"] = link.recv(15).decode()
    slow = [socket.create_connection(where, 10) for _ in range(100)]
    for link in slow:
        link.sendall(http("/predict", body, server.port)[:-20])
    links = []
    for _ in range(10_000):
        try:
            links.append(socket.create_connection(where, 5))
        except OSError:
            break
    facts["connections"] = len(links)
    time.sleep(0.5)
    facts["rss_mb"] = [before, server.megabytes]
    for link in links:
        link.close()
    time.sleep(12)  # slow requests have 10 s
    facts["slow"] = dict(Counter(link.recv(1 << 16)[9:12].decode() or "closed" for link in slow))
    facts["rss_mb"].append(server.megabytes)
    return {**facts, "alive": server.alive()}


def _gigabyte(server: Serving, where: tuple[str, int]) -> str:
    """What is said to a body of a gigabyte whose length nobody told before."""
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


PARTS = {"load": load, "overload": overload, "leaks": leaks, "fuzz": fuzz, "hostile": hostile}


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
    texts = [" ".join(row[0] for row in one) for one in rows[:1000]]
    more = [f"--{word}" if i % 2 == 0 else word for i, word in enumerate(args.options)]
    with tempfile.TemporaryDirectory() as folder:
        model = args.model or f"{folder}/chunks.model"
        if args.model is None:
            lines = "\n".join("".join(f"{r[0]} {r[2]}\n" for r in one) for one in rows)
            Path(folder, "chunks.txt").write_text(lines)
            learn = ["--learner", "perceptron", "--columns", "word,label", "--quiet"]
            train = ["train", "tag", "--train", f"{folder}/chunks.txt", "--model", model]
            subprocess.run(command(*train, *learn), check=True)
        for name in args.only:
            with Serving(model, *more) as server:
                facts = PARTS[name](server, texts, args)
            machine = {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 2)}
            print(json.dumps({"part": name, **facts, **machine}), flush=True)


if __name__ == "__main__":
    main()
