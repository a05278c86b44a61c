"""The application, asked in this process: answers, refusals, bounds, and nonsense."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from served import MARKUP, small_models
from starlette.testclient import TestClient

import hopefear
from hopefear.errors import HopefearError
from hopefear.serve import app as application
from hopefear.serve import batcher as batcher_module
from hopefear.serve.app import App, Limits
from hopefear.serve.batcher import MAX_STEPS, RequestBatcher
from hopefear.serve.openapi import document
from hopefear.serve.registry import ModelRegistry
from hopefear.serve.requests import read_request
from hopefear.tasks import service_of

# Kernels that are not compiled warn, in threads, where compiled ones do not.
pytestmark = [
    pytest.mark.needs("serve"),
    pytest.mark.interpreted,
    pytest.mark.filterwarnings("ignore:overflow"),
]
VERBS = ("predict", "nbest", "explain")


@pytest.fixture(scope="module")
def models():
    return small_models()


@pytest.fixture(scope="module")
def registry(models):
    registry = ModelRegistry([])
    registry.services = {name: service_of(one.model_) for name, one in models.items()}
    return registry


@pytest.fixture(scope="module")
def errors():
    return []


class Alive:
    """An application in one event loop for all requests of a client, as servers run it."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] != "lifespan":
            return await self.app(scope, receive, send)
        for event in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{event}.complete"})


@contextlib.contextmanager
def served(registry, batcher=None, url="http://localhost", **how):
    """A client of an application."""
    app = App(registry, RequestBatcher() if batcher is None else batcher, **how)
    with TestClient(Alive(app), base_url=url) as client:
        yield client
    app.batcher.close()


@pytest.fixture(scope="module")
def client(registry, errors):
    batcher = RequestBatcher(n_jobs=2)
    with served(registry, batcher, limits=Limits(seconds=60.0), on_error=errors.append) as client:
        yield client
    assert not errors


def ask(client, verb, **fields):
    answer = client.post(f"/{verb}", json=fields)
    return answer.status_code, answer.json()


def test_answers_are_those_of_the_estimators(client, models):
    sentences = [["Bo", "likes", "Lee"], ["Ann", "sings", "."]]
    for name in ("names", "tags"):
        answer = ask(client, "predict", model=name, inputs=sentences)[1]["outputs"]
        labels = [[t["label"] for t in one["sentences"][0]["tokens"]] for one in answer]
        assert labels == models[name].predict(sentences)
        ranked = ask(client, "nbest", model=name, input=sentences[0], n=3)[1]["output"]
        expected = models[name].predict_nbest(sentences[:1], 3)[0]
        outputs = ranked["sentences"][0]["outputs"]
        assert [[t["label"] for t in one["tokens"]] for one in outputs] == [
            one.labels for one in expected
        ]
        assert [one["probability"] for one in outputs] == [one.probability for one in expected]
    answer = ask(client, "predict", model="trees", inputs=sentences)[1]["outputs"]
    trees = [[(t["head"], t["relation"]) for t in one["sentences"][0]["tokens"]] for one in answer]
    assert trees == models["trees"].predict(sentences)
    texts = ["all good", "bad fun"]
    answer = ask(client, "predict", model="news", inputs=texts)[1]["outputs"]
    assert [one["label"] for one in answer] == models["news"].predict(texts).tolist()
    shares = models["news"].predict_proba(texts).max(axis=1)
    assert np.allclose([one["probability"] for one in answer], shares)
    rows = [[3.0, 1.0], [0.5, 2.0]]
    answer = ask(client, "predict", model="rows", inputs=rows)[1]["outputs"]
    assert [one["label"] for one in answer] == models["rows"].predict(rows).tolist()
    named = [{"0": 3.0, "1": 1.0}, {"1": 2.0, "0": 0.5, "77": 1.0}]
    assert ask(client, "predict", model="rows", inputs=named)[1]["outputs"] == answer
    lists = [[{"hope": 2.0}, {"fear": 1.0}], [{"fear": 1.0}, {"hope": 1.0}]]
    answer = ask(client, "predict", model="lists", inputs=lists)[1]["outputs"]
    assert [one["best"] for one in answer] == models["lists"].predict(lists).tolist()


def test_texts_have_offsets(client):
    text = "Oh 😀 — Ann Lee sings.\nBo isn't here."
    first, second = ask(client, "predict", model="names", input=text)[1]["output"]["sentences"]
    for sentence in (first, second):
        assert text[sentence["start"] : sentence["end"]] == sentence["text"]
        for one in (*sentence["tokens"], *sentence["spans"]):
            assert text[one["start"] : one["end"]].split() == one["text"].split()
    assert "Ann Lee" in [span["text"] for span in first["spans"]]


def test_reasons_add_up(client, models):
    sentence = ["Ann", "Lee", "sings", "."]
    place = {"sentence": 0, "token": 1}
    answer = ask(client, "explain", model="names", input=sentence, top=1000, **place)[1]
    (reason,) = answer["output"]["reasons"]
    expected = models["names"].explain([sentence], 0, 1)
    assert (reason["label"], reason["runner_up"]) == (expected.label, expected.runner_up)
    assert sum(one["amount"] for one in reason["features"]) == pytest.approx(reason["gap"])
    every = ask(client, "explain", model="trees", input=sentence)[1]["output"]["reasons"]
    assert [one["token"] for one in every] == [0, 1, 2, 3]
    assert any(" of " in one.get("label", "") for one in every)
    for name, value in {"news": "so good", "lists": [{"hope": 1.0}, {"fear": 1.0}]}.items():
        assert ask(client, "explain", model=name, input=value)[1]["output"]["reasons"]


def test_every_model_says_what_it_reads(client, registry):
    facts = client.get("/models").json()["models"]
    assert [one["name"] for one in facts] == list(registry.services)
    for one in facts:
        for verb in VERBS:
            status, answer = ask(client, verb, model=one["name"], input=one["example"])
            assert status == 200, answer


def test_forms_of_candidates_are_those_that_are_read(registry):
    rich = [[{"features": {"fear": 1.0}}, {"features": {"hope": 1.0}}]] * 2
    records = service_of(hopefear.Reranker("perceptron", epochs=2).fit(rich, [[1, 0]] * 2).model_)
    bare = registry.services["lists"]
    assert "score" in records.forms[0]
    assert "score" not in bare.forms[0] and "feature: number" in bare.forms[0]
    with pytest.raises(HopefearError):
        records.read([{"hope": 1.0, "score": 0.5}])
    with pytest.raises(HopefearError):
        bare.read([{"text": "hope", "features": {"hope": 1.0}}])


WIDE = [["a"] * 4000] * 2
HEAVY = [
    ("predict", {"model": "names", "inputs": [["a"] * 5000] * 51}, "515,100 steps", "inputs"),
    ("nbest", {"model": "names", "inputs": WIDE, "n": 100}, "832,000 steps", "smaller n"),
    ("nbest", {"model": "names", "input": "a b. " * 3000, "n": 100}, "steps", "smaller n"),
    ("nbest", {"model": "names", "input": ["a" * 300_000], "n": 100}, "600,102 steps", "shorter"),
    ("nbest", {"model": "trees", "input": ["a"] * 256, "n": 100}, "steps", "smaller n"),
    ("nbest", {"model": "trees", "input": ["a"] * 256}, "steps", "smaller n"),
    ("predict", {"model": "trees", "inputs": [["a"] * 256] * 40}, "steps", "fewer"),
    ("explain", {"model": "trees", "input": ["a"] * 64}, "steps", "one word by sentence"),
    ("explain", {"model": "names", "inputs": [["a"] * 60] * 20}, "steps", "one word"),
    ("explain", {"model": "news", "inputs": ["a"] * 1000, "top": 1000}, "steps", "smaller top"),
    ("explain", {"model": "lists", "inputs": [[{"hope": 1.0}]] * 1000}, "steps", "fewer"),
]


@pytest.mark.parametrize(("verb", "fields", "number", "remedy"), HEAVY)
def test_what_takes_too_long_is_not_begun(
    client, registry, monkeypatch, verb, fields, number, remedy
):
    def begun(*_):
        raise AssertionError("it was begun")

    monkeypatch.setattr(registry.services[fields["model"]], verb, begun)
    status, answer = ask(client, verb, **fields)
    assert status == 400
    assert number in answer["error"] and remedy in answer["error"]
    assert "500,000 are the most" in answer["error"]


def test_what_is_usual_is_not_too_much(registry):
    def steps(name, verb, size, **numbers):
        service = registry.services[name]
        return service.steps(service.read(["a"] * size), verb, numbers)

    assert 1000 * steps("names", "predict", 25) <= MAX_STEPS
    assert 1000 * steps("trees", "predict", 20) <= MAX_STEPS
    assert 100 * steps("names", "nbest", 25, n=100) <= MAX_STEPS
    assert 100 * steps("trees", "nbest", 25, n=5) <= MAX_STEPS
    assert steps("trees", "nbest", 200, n=5) <= MAX_STEPS
    assert steps("trees", "explain", 256, top=10, token=255) <= MAX_STEPS
    assert steps("trees", "explain", 10, top=10) <= MAX_STEPS
    assert steps("names", "explain", 64, top=10) <= MAX_STEPS


LONG = ["a"] * 5001
MISTAKES = [
    ("predict", b"", 400, "no JSON"),
    ("predict", b"{", 400, "no JSON"),
    ("predict", b"\xff\xfe", 400, "no JSON"),
    ("predict", b"[1]", 400, "JSON object"),
    ("predict", b'{"input": NaN}', 400, "NaN is no number"),
    ("predict", b'{"input": "\\ud800"}', 400, "half a character"),
    ("predict", b"[" * 100_000, 400, "brackets"),
    ("predict", {}, 400, "either input"),
    ("predict", {"input": "a", "inputs": ["a"]}, 400, "either input"),
    ("predict", {"inputs": []}, 400, "1 to 1,000"),
    ("predict", {"inputs": "a"}, 400, "1 to 1,000"),
    ("predict", {"inputs": ["a"] * 1001}, 400, "1,001"),
    ("predict", {"input": "a", "modle": "x"}, 400, "did you mean 'model'"),
    ("predict", {"input": "a", "n": 3}, 400, "no field 'n'"),
    ("predict", {"input": "a", "model": 3}, 400, "model is a name"),
    ("predict", {"input": "a", "model": "x"}, 404, "there are names"),
    ("predict", {"input": "a"}, 400, "which model"),
    ("nbest", {"input": "a", "n": 0}, 400, "from 1 to 100"),
    ("nbest", {"input": "a", "n": True}, 400, "from 1 to 100"),
    ("nbest", {"input": "a", "n": 1e9}, 400, "from 1 to 100"),
    ("explain", {"input": "Ann", "token": 9, "model": "names"}, 400, "no token 9"),
    ("explain", {"input": "Ann", "token": 0, "sentence": 4, "model": "names"}, 400, "sentence 4"),
    ("explain", {"input": "a", "token": 0, "model": "news"}, 400, "token"),
    ("explain", {"input": ["a"] * 99, "model": "names"}, 400, "99 tokens"),
    ("predict", {"input": 3, "model": "names"}, 400, "input: expected a text"),
    ("predict", {"input": " ", "model": "names"}, 400, "no words"),
    ("predict", {"inputs": ["a", ["a", 1]], "model": "names"}, 400, "inputs[1]: token 1"),
    ("predict", {"input": LONG, "model": "names"}, 400, "5,001 tokens"),
    ("predict", {"input": LONG, "model": "trees"}, 400, "256 are the most"),
    ("predict", {"input": [["a", "b", "c"]], "model": "trees"}, 400, "input: a word is"),
    ("predict", {"input": [1], "model": "news"}, 400, "expected a text"),
    ("predict", {"input": [1.0], "model": "rows"}, 400, "2 numbers"),
    ("predict", {"input": {"0": "x"}, "model": "rows"}, 400, "found 'x'"),
    ("predict", {"input": {"0": 1e300}, "model": "rows"}, 400, "1e15"),
    ("predict", {"input": {"x": 1}, "model": "rows"}, 400, "'x' is none"),
    ("predict", {"input": [], "model": "lists"}, 400, "list of candidates"),
    ("predict", {"input": [[]], "model": "lists"}, 400, "candidate"),
]


@pytest.mark.parametrize(("verb", "body", "status", "words"), MISTAKES)
def test_mistakes_are_told(client, verb, body, status, words):
    content = body if isinstance(body, bytes) else json.dumps(body)
    head = {"content-type": "application/json"}
    answer = client.post(f"/{verb}", content=content, headers=head)
    assert answer.status_code == status, answer.text
    assert words in answer.json()["error"]


def test_null_is_what_is_usual(client):
    for verb, name in (("nbest", "n"), ("explain", "top"), ("explain", "token")):
        plain = ask(client, verb, model="news", input="so good")
        assert plain[0] == 200
        assert ask(client, verb, model="news", input="so good", **{name: None}) == plain


def test_heads_of_requests_are_looked_at(client, registry):
    assert client.get("/predict").status_code == 405
    assert client.post("/health").status_code == 405
    assert "openapi" in client.get("/nowhere").json()["error"]
    assert client.post("/predict", content="{}").status_code == 415
    strange = client.get("/models", headers={"host": "evil.example:8000"})
    assert strange.status_code == 403 and "evil.example" in strange.json()["error"]
    hosts = ("localhost:1", "127.0.0.1", "127.0.0.2:8000", "127.1.2.3", "[::1]:8000", "[::1]")
    for host in hosts:
        assert client.get("/health", headers={"host": host}).status_code == 200


def test_others_need_the_token(registry):
    with served(registry, url="http://models.example", token="a" * 16) as client:
        assert client.get("/health").status_code == client.get("/").status_code == 200
        for given_ in ("", "Bearer ", "Bearer " + "b" * 16, "a" * 16):
            answer = client.get("/models", headers={"authorization": given_})
            assert answer.status_code == 401 and "token" in answer.json()["error"]
        right = {"authorization": "Bearer " + "a" * 16}
        assert client.get("/models", headers=right).status_code == 200


def test_bodies_are_bounded(registry):
    with served(registry, limits=Limits(body=1000)) as client:
        answer = client.post("/predict", json={"input": "a" * 2000})
        assert answer.status_code == 413 and "1,000 bytes" in answer.json()["error"]
        head = {"content-type": "application/json"}
        pieces = (b" " * 100 for _ in range(100))  # nobody knows how many will come
        assert client.post("/predict", content=pieces, headers=head).status_code == 413


class Slow:
    """A service whose answers take their time."""

    asked = frozenset()

    def __init__(self) -> None:
        self.free, self.sizes = threading.Event(), []

    def read(self, value):
        if value == "bad":
            raise HopefearError("that is bad")
        return value

    def steps(self, one, verb, numbers):
        return 20_000 if one.startswith(("heavy", "long")) else 1

    def predict(self, inputs):
        if inputs[0].startswith("long"):
            time.sleep(0.1)
        else:
            self.free.wait(20)
        self.sizes.append(len(inputs))
        if "odd" in inputs:
            raise HopefearError("odd things are refused")
        if "broken" in inputs:
            raise ZeroDivisionError
        if "short" in inputs:
            return []  # a fault of the service
        return [{"label": one} for one in inputs]


@pytest.fixture
def slow(monkeypatch):
    monkeypatch.setattr(application, "_PAUSE", (0.0, 0.01))
    registry, service, errors = ModelRegistry([]), Slow(), []
    registry.services = {"slow": service}
    with contextlib.ExitStack() as scope:

        def new_client(waiting=8, seconds=20.0):
            batcher, limits = RequestBatcher(1, waiting), Limits(seconds=seconds)
            how = {"limits": limits, "on_error": errors.append}
            client = scope.enter_context(served(registry, batcher, **how))
            return client, batcher, service, errors

        yield new_client
        service.free.set()


def together(client, batcher, values):
    """Answers to requests that wait at the same moment, behind one that is being answered."""
    answers = {}

    def one(k, value):
        answers[k] = client.post("/predict", json={"input": value})

    threads = []
    for k, value in enumerate(values):
        threads.append(threading.Thread(target=one, args=(k, value)))
        threads[-1].start()
        until = time.monotonic() + 10
        held = sum(value != "bad" for value in values[1 : k + 1])  # what is bad is told at once
        while len(batcher) < min(held, batcher.max_waiting) and time.monotonic() < until:
            time.sleep(0.005)
        if k == 0:
            time.sleep(0.1)  # a thread has taken it
    time.sleep(0.3)  # those who are sent away are
    client.app.app.registry.services["slow"].free.set()
    for thread in threads:
        thread.join()
    return [answers[k] for k in range(len(values))]


def test_what_waits_together_is_answered_together(slow):
    client, batcher, service, errors = slow()
    answers = together(client, batcher, ["first", "a", "bad", "b"])
    assert [one.status_code for one in answers] == [200, 200, 400, 200]
    assert answers[3].json()["output"] == {"label": "b"}
    assert service.sizes == [1, 2] and not errors


def test_what_is_answered_together_is_not_too_much(slow):
    client, batcher, service, errors = slow()
    answers = together(client, batcher, ["first", "heavy a", "heavy b", "heavy c", "d"])
    assert [one.status_code for one in answers] == [200] * 5
    assert answers[3].json()["output"] == {"label": "heavy c"}
    assert service.sizes == [1, 2, 2] and not errors  # 50,000 steps a slice


def test_a_mistake_is_nobody_elses(slow):
    client, batcher, _service, errors = slow()
    answers = together(client, batcher, ["first", "a", "odd", "broken", "b"])
    assert [one.status_code for one in answers] == [200, 200, 400, 500, 200]
    assert "please report" in answers[3].json()["error"] and len(errors) == 1


def test_answers_that_are_missing_end_nothing(slow):
    client, _batcher, service, errors = slow()
    service.free.set()
    assert client.post("/predict", json={"input": "short"}).status_code == 500
    assert client.post("/predict", json={"input": "a"}).status_code == 200
    assert len(errors) == 1


def test_a_long_request_lets_others_pass(slow):
    client, _batcher, service, _errors = slow()
    service.free.set()
    done = []

    def ask(values):
        assert client.post("/predict", json={"inputs": values}).status_code == 200
        done.append(values[0])

    threads = [threading.Thread(target=ask, args=(v,)) for v in (["long"] * 20, ["a"], ["b"])]
    for thread in threads:
        thread.start()
        time.sleep(0.15)
    for thread in threads:
        thread.join()
    assert done == ["a", "b", "long"]
    assert sum(service.sizes) == 22 and max(service.sizes) <= 3


def test_too_many_are_sent_away(slow):
    client, batcher, _service, _errors = slow(waiting=2)
    answers = together(client, batcher, ["first", "a", "b", "c", "d"])
    assert [one.status_code for one in answers[:3]] == [200] * 3
    assert [one.status_code for one in answers[3:]] == [503] * 2
    assert answers[3].headers["retry-after"] == "1"


def test_the_places_of_lost_connections_are_free(slow):
    client, batcher, service, errors = slow(waiting=1)
    threading.Thread(target=client.post, args=("/predict",), kwargs={"json": HELD}).start()
    time.sleep(0.2)
    body = json.dumps({"input": "a"}).encode()

    async def status_of_lost():
        lost = asyncio.Event()
        asking = asyncio.ensure_future(posted(client.app, body, lost))
        await asyncio.sleep(0.1)
        assert len(batcher) == 1
        lost.set()
        status = await asking
        assert not len(batcher)
        return status

    assert client.portal.call(status_of_lost) == 499
    service.free.set()
    assert client.post("/predict", json={"input": "b"}).status_code == 200
    assert service.sizes == [1, 1] and not errors
    assert client.app.app.counts.requests["/predict", 499] == 1


def test_nobody_waits_for_ever(slow):
    client, _batcher, service, _errors = slow(seconds=0.2)
    answer = client.post("/predict", json={"input": "a"})
    assert answer.status_code == 504 and "0.2 s" in answer.json()["error"]
    service.free.set()
    assert client.post("/predict", json={"input": "b"}).status_code == 200


def test_a_flood_is_answered_as_far_as_there_is_room(slow):
    client, batcher, service, errors = slow(waiting=9)
    threading.Thread(target=client.post, args=("/predict",), kwargs={"json": HELD}).start()
    time.sleep(0.2)  # a thread has taken it

    async def all_at_once():
        body = json.dumps({"input": "a"}).encode()
        asking = [asyncio.ensure_future(posted(client.app, body)) for _ in range(100)]
        await asyncio.sleep(0.1)
        service.free.set()
        return await asyncio.gather(*asking)

    assert sorted(client.portal.call(all_at_once)) == [200] * 9 + [503] * 91
    assert service.sizes == [1, 9] and not errors and not len(batcher)


def test_what_nobody_waits_for_is_left(slow, monkeypatch):
    client, batcher, service, _errors = slow(seconds=0.3)
    monkeypatch.setattr(batcher_module, "SLICE", 20_000)
    answers = []

    def ask(value):
        answers.append(client.post("/predict", json={"inputs": [value] * 3}).status_code)

    threads = [threading.Thread(target=ask, args=(value,)) for value in ("heavy a", "heavy b")]
    for thread in threads:
        thread.start()
        time.sleep(0.1)
    for thread in threads:
        thread.join()
    assert answers == [504, 504] and not len(batcher)  # its place is free, though a thread computes
    service.free.set()
    time.sleep(0.1)
    assert service.sizes == [1]  # the first slice of the first was begun, and nothing else
    status = client.post("/predict", json={"input": "a" * 60}).status_code
    assert status == 200


def test_steps_are_bounded_by_the_time_there_is(slow):
    client, *_ = slow(seconds=0.1)
    answer = client.post("/predict", json={"inputs": ["heavy"] * 2})
    assert answer.status_code == 400 and "25,000 are the most" in answer.json()["error"]


HELD = {"input": "held"}


def scope(body):
    headers = {"host": "localhost", "content-type": "application/json", "content-length": len(body)}
    heads = [(name.encode(), str(value).encode()) for name, value in headers.items()]
    return {"type": "http", "path": "/predict", "method": "POST", "headers": heads}


async def posted(app, body, lost=None):
    """The status of an answer to a body, without a client; its connection may be lost."""
    statuses, messages = [], [{"type": "http.request", "body": body}]

    async def receive():
        if messages:
            return messages.pop()
        await (lost or asyncio.Event()).wait()
        return {"type": "http.disconnect"}

    async def send(message):
        statuses.append(message.get("status"))

    await app(scope(body), receive, send)
    return statuses[0]


def test_bodies_are_held_until_they_are_answered(slow, monkeypatch):
    client, _batcher, service, errors = slow(waiting=100)
    body = json.dumps({"input": "a" * 100_000}).encode()
    monkeypatch.setattr(application, "_HELD", 5 * len(body))

    async def one_after_another():
        asking = []
        for _ in range(20):
            asking.append(asyncio.ensure_future(posted(client.app, body)))
            await asyncio.sleep(0.02)
        service.free.set()
        return await asyncio.gather(*asking)

    client.app.app.limits = Limits(len(body), 20.0)
    statuses = client.portal.call(one_after_another)
    assert sorted(statuses) == [200] * 5 + [503] * 15 and not errors
    assert client.app.app._held == 0


def test_time_runs_while_a_body_is_read(slow, monkeypatch):
    client, batcher, service, _errors = slow(seconds=0.2)
    service.free.set()

    def read(verb, body):
        time.sleep(0.3)
        return read_request(verb, body)

    monkeypatch.setattr(application, "read_request", read)
    assert client.post("/predict", json={"input": "a" * 100_000}).status_code == 504
    assert not service.sizes and not len(batcher)


def test_counts_are_those_of_prometheus(client):
    client.get("/health")
    text = client.get("/metrics").text
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        assert line.startswith("# TYPE ") or (name.startswith("hopefear_") and float(value) >= 0)
    assert 'hopefear_requests_total{path="/health",status="200"}' in text
    assert 'le="+Inf"' in text and "hopefear_waiting 0" in text


def test_the_page_is_strict(client):
    page = client.get("/")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    assert "style=" not in page.text and "<script>" not in page.text
    script = client.get("/page.js").text
    assert "innerHTML" not in script and "eval(" not in script
    assert client.get("/page.css").headers["content-type"].startswith("text/css")


def test_the_document_names_what_there_is(client):
    paths = client.get("/openapi.json").json()
    assert paths == document()
    for verb in VERBS:
        assert "post" in paths["paths"][f"/{verb}"]


def test_markup_is_only_text(client):
    answer = client.post("/predict", json={"model": "tags", "input": [MARKUP, "."]})
    assert answer.headers["content-type"] == "application/json"
    tokens = answer.json()["output"]["sentences"][0]["tokens"]
    assert tokens[0]["text"] == MARKUP and tokens[1]["label"] == MARKUP


leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
values = st.recursive(
    leaves,
    lambda some: (
        st.lists(some, max_size=4) | st.dictionaries(st.text(max_size=4), some, max_size=3)
    ),
    max_leaves=12,
)
names = st.sampled_from(["names", "tags", "news", "rows", "trees", "lists", "x", ""])
fields = st.sampled_from(["input", "inputs", "n", "top", "token", "sentence", "candidates"])
bodies = st.builds(
    lambda model, more: json.dumps({"model": model, **more}).encode(),
    names,
    st.dictionaries(fields, values, max_size=4),
)


@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(VERBS), bodies | st.binary(max_size=60))
def test_nonsense_is_refused_in_words(client, errors, verb, body):
    answer = client.post(f"/{verb}", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (200, 400, 404), (body, answer.text, errors)
    facts = answer.json()
    assert ("error" in facts) == (answer.status_code != 200)


def test_a_classifier_answers_unknown_below_a_probability(client, models):
    texts = ["so good", "neither"]
    plain = ask(client, "predict", model="news", inputs=texts)[1]["outputs"]
    least = (plain[0]["probability"] + plain[1]["probability"]) / 2
    for more, label in (({}, "unknown"), ({"unknown_label": "other"}, "other")):
        fields = {"model": "news", "inputs": texts, "unknown": least, **more}
        answer = ask(client, "predict", **fields)[1]["outputs"]
        assert [one["label"] for one in answer] == ["hope", label]
        assert [one["probability"] for one in answer] == [one["probability"] for one in plain]
    for fields, words in (
        ({"model": "news", "unknown": 2}, "unknown is a number from 0 to 1"),
        ({"model": "news", "unknown": "much"}, "unknown is a number from 0 to 1"),
        ({"model": "news", "unknown_label": "other"}, "beside unknown"),
        ({"model": "tags", "unknown": 0.5}, "unknown is for classifiers"),
    ):
        status, answer = ask(client, "predict", input="so good", **fields)
        assert status == 400 and words in answer["error"]
