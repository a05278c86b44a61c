"""A server in a process of its own: signals, slow and broken connections, bounds."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import struct
import time

import pytest
from served import Serving, everything, parted, saved, small_models

from hopefear.serve import server

pytestmark = [pytest.mark.needs("serve"), pytest.mark.interpreted]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    saved(folder)
    return folder


@pytest.fixture(scope="module")
def serving(folder):
    words = ["--timeout", "2", "--max-body", "8", "--connections", "20"]
    one = Serving("--model", str(folder / "names.model"), str(folder / "news.model"), *words)
    yield one
    assert one.end() == 0
    assert "Traceback" not in "".join(one.lines)


def whole(link):
    """An answer in JSON on a connection that stays open."""
    answer = b""
    while not answer.endswith(b"}"):
        piece = link.recv(1 << 16)
        assert piece, answer
        answer += piece
    return answer


def healthy(serving):
    status, answer = serving.ask("/predict", model="names", input="Ann sings.")
    return status == 200 and answer["output"]["sentences"]


def test_it_answers(serving):
    assert healthy(serving)
    status, answer = serving.ask("/predict", model="news", inputs=["so good", "so bad"])
    assert status == 200
    assert [one["label"] for one in answer["outputs"]] == ["hope", "fear"]


def test_connections_stay_open(serving):
    request = serving.request("/predict", b'{"model": "news", "input": "good"}')
    with serving.link() as link:
        for _ in range(3):
            link.sendall(request)
            assert parted(whole(link))[0] == 200


def test_long_bodies_are_refused(serving):
    body = b'{"input": "' + b"a" * 9000 + b'"}'
    with serving.link() as link:
        link.sendall(serving.request("/predict", body, "connection: close"))
        status, answer = parted(everything(link))
    assert status == 413 and "8,192" in answer["error"]
    with serving.link() as link:
        head = serving.request("/predict", b"").replace(
            b"content-length: 0", b"transfer-encoding: chunked"
        )
        link.sendall(head)
        pieces = 0
        with contextlib.suppress(OSError):  # it hangs up
            while pieces < 100_000:
                link.sendall(b"400\r\n" + b" " * 1024 + b"\r\n")
                pieces += 1
        assert 7 < pieces < 100_000
    assert healthy(serving)


def test_slow_clients_are_left(serving):
    request = serving.request("/predict", b'{"model": "news", "input": "good"}')
    chunked = request.replace(b"content-length: 34", b"transfer-encoding: chunked")
    trailers = chunked[:-34] + b"0\r\nx: "
    begun = time.monotonic()
    links = [serving.link() for _ in range(6)]
    links[1].sendall(request[:30])
    links[2].sendall(request[:-30])
    links[3].sendall(trailers)
    links[4].sendall(request + request[:30])  # answers the first
    links[5].sendall(request + request[:-30])
    for _ in range(50):  # a byte now and then is as slow
        for link in links[1:]:
            with contextlib.suppress(OSError):
                link.sendall(b"a")
        time.sleep(0.1)
    for link in links:
        answer = b""
        with contextlib.suppress(OSError):  # a reset
            answer = everything(link)
        late = answer.rfind(b"HTTP/1.1 ")
        assert not answer or answer[late:].startswith((b"HTTP/1.1 408", b"HTTP/1.1 200"))
        link.close()
    assert time.monotonic() - begun < 15
    assert healthy(serving)


def test_heads_are_bounded_also_in_one_piece(serving):
    for size, status in ((60_000, 200), (120_000, 431)):
        head = b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx: "
        with serving.link() as link:
            serving.process.send_signal(signal.SIGSTOP)  # so that it finds all of it at once
            link.sendall(head + b"a" * size + b"\r\n\r\n")
            serving.process.send_signal(signal.SIGCONT)
            assert parted(everything(link))[0] == status


def test_two_hosts_are_refused(serving):
    with serving.link() as link:
        link.sendall(serving.request("/predict", b'{"input": "x"}', "Host: evil.example"))
        assert parted(everything(link))[0] == 400


def test_trailers_are_bounded(serving):
    """Whatever the protocol, headers behind the last chunk fill no memory and stop no others."""
    body = b'{"model": "news", "input": "good"}'
    head = serving.request("/predict", body).replace(
        b"content-length: 34", b"transfer-encoding: chunked"
    )
    assert healthy(serving)
    before = serving.megabytes
    for line in (b"x: " + b"a" * 8000 + b"\r\n", b"a" * 8000, b"x: y\r\n" * 1000):
        with serving.link() as link, contextlib.suppress(OSError):  # it hangs up
            link.sendall(head.replace(body, b"22\r\n" + body + b"\r\n0\r\nx: y\r\n"))
            for k in range(20_000):  # 160 MB
                link.sendall(line)
                if k % 1000 == 0:
                    begun = time.monotonic()
                    assert healthy(serving)
                    assert time.monotonic() - begun < 10
        assert serving.megabytes < before + 50
    assert healthy(serving)


def test_who_reads_no_answer_is_left(serving):
    with socket.socket() as link:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        link.settimeout(1)
        link.connect(("127.0.0.1", serving.port))
        link.sendall(b"GET /page.js HTTP/1.1\r\nhost: localhost\r\n\r\n" * 1000)  # 20 MB
        until = time.monotonic() + 30
        while connections(serving) > 1:
            assert time.monotonic() < until, "the connection is still there"
            time.sleep(0.2)


def asked_at_once(serving, request):
    """Twenty connections with a request each, all of which the server sees at once."""
    links = [serving.link() for _ in range(20)]
    until = time.monotonic() + 20
    while connections(serving) < 21 and time.monotonic() < until:  # it takes them one by one
        time.sleep(0.05)
    serving.process.send_signal(signal.SIGSTOP)
    for link in links:
        link.sendall(request)
    serving.process.send_signal(signal.SIGCONT)
    return links


def connections(serving):
    """Those that the server counts, that which asks among them."""
    with serving.link() as link:
        link.sendall(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        text = everything(link).decode()
    return int(text.partition("\nhopefear_connections ")[2].partition("\n")[0])


def test_who_will_send_no_more_is_taken_to_be_gone(serving):
    for cut in (0, -3):
        with serving.link() as link:
            request = serving.request("/predict", b'{"model": "names", "input": "a"}')
            link.sendall(request[: cut or None])
            link.shutdown(socket.SHUT_WR)
            assert everything(link) in (b"",) or cut == 0
    assert healthy(serving)


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\xff\x16\x03\x01",
        b"GET\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: localhost\r\nx: " + b"a" * 300_000,
        b"GET /" + b"a" * 300_000 + b" HTTP/1.1\r\n",
        b"POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n",
    ],
)
def test_what_is_no_http_is_refused(serving, data):
    with serving.link() as link:
        try:
            link.sendall(data)
            answer = everything(link)
        except OSError:
            answer = b""
    assert not answer or answer.startswith(b"HTTP/1.1 4")
    assert healthy(serving)


def test_connections_are_counted(serving):
    links = [serving.link() for _ in range(40)]
    time.sleep(0.3)
    refused = 0
    for link in links:
        link.settimeout(0.05)
        try:
            refused += link.recv(100).startswith(b"HTTP/1.1 503")
        except OSError:
            continue
    for link in links:
        link.close()
    assert refused >= 20
    time.sleep(0.3)
    assert healthy(serving)


def test_models_are_read_again(folder, tmp_path):
    path = tmp_path / "news.model"
    path.write_bytes((folder / "news.model").read_bytes())
    one = Serving("--model", str(path))
    ask = {"input": "so good"}
    assert one.ask("/predict", **ask)[1]["output"]["label"] == "hope"
    path.write_bytes(b"nothing")
    one.process.send_signal(signal.SIGHUP)
    assert "the model before it stays" in one.told("is not loaded")
    assert one.ask("/predict", **ask)[1]["output"]["label"] == "hope"
    news = small_models()["news"]
    news.fit(["so good", "so bad"], ["better", "worse"]).save(path)
    one.process.send_signal(signal.SIGHUP)
    one.told("have been read again")
    assert one.ask("/predict", **ask)[1]["output"]["label"] == "better"
    assert one.end(signal.SIGINT) == 0
    assert "ended" in one.lines[-1]


def test_what_was_asked_is_answered_before_the_end(folder):
    one = Serving("--model", str(folder / "names.model"))
    values = [["Ann", "sings"] * 20] * 30
    body = json.dumps({"inputs": values}).encode()
    with one.link() as link:
        link.sendall(one.request("/predict", body))
        time.sleep(0.3)
        one.process.send_signal(signal.SIGTERM)
        status, answer = parted(everything(link))
    assert status == 200 and len(answer["outputs"]) == 30
    assert one.end() == 0


def test_twenty_clients_at_once_are_answered(folder):
    one = Serving("--model", str(folder / "news.model"), "--timeout", "60")
    long = json.dumps({"inputs": ["so good"] * 700}).encode()  # is read beside the loop
    for body in (b'{"input": "so good"}', long):
        links = asked_at_once(one, one.request("/predict", body, "connection: close"))
        assert [parted(everything(link))[0] for link in links] == [200] * 20
        for link in links:
            link.close()
    assert one.end() == 0


def test_too_many_are_sent_away_and_may_come_again(folder):
    one = Serving("--model", str(folder / "news.model"), "--queue", "1")
    request = one.request("/predict", b'{"input": "so good"}')
    last = one.request("/predict", b'{"input": "so good"}', "connection: close")
    links = asked_at_once(one, request)
    answers = list(map(whole, links))
    statuses = [parted(answer)[0] for answer in answers]
    refused = [answer for answer in answers if answer.startswith(b"HTTP/1.1 503 ")]
    assert statuses.count(200) + len(refused) == 20 and len(refused) >= 10
    assert all(b"\r\nretry-after: 1\r\n" in answer for answer in refused)
    assert all("try again" in parted(answer)[1]["error"] for answer in refused)
    for link in links:  # one after another, on the same connections
        with link:
            link.sendall(last)
            assert parted(everything(link))[0] == 200
    with one.link() as link:
        link.sendall(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        text = everything(link).decode()
    assert f'path="/predict",status="503"}} {len(refused)}' in text
    assert one.end() == 0


def test_who_hangs_up_is_not_answered(folder):
    # Kernels that are not compiled take seconds for a slice of which others see the end.
    one = Serving("--model", str(folder / "names.model"), "--timeout", "60")
    body = json.dumps({"inputs": [["Ann", "sings"] * 40] * 400}).encode()
    for _ in range(3):
        link = one.link()
        link.sendall(one.request("/predict", body))
        time.sleep(0.1)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        link.close()  # with a reset
    assert one.ask("/predict", input=["Ann", "sings"])[0] == 200
    with one.link() as link:
        link.sendall(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        text = everything(link).decode()
    assert 'path="/predict",status="499"} 3' in text and "hopefear_waiting 0" in text
    assert one.end() == 0


def test_ports_that_are_taken_are_told():
    taken = server.listen("127.0.0.1", 0)
    taken.listen()
    with pytest.raises(server.HopefearError, match="--port 0 finds a free one"):
        server.listen("127.0.0.1", taken.getsockname()[1])
    taken.close()
