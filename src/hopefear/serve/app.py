"""The ASGI application: who may ask, how much, and what is answered."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import random
import time
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib.resources import files
from itertools import chain
from typing import Any, NamedTuple

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hopefear import __version__
from hopefear.errors import HopefearError
from hopefear.serve.counts import Counts
from hopefear.serve.desk import BusyError, Desk, Job
from hopefear.serve.openapi import document
from hopefear.serve.questions import NUMBERS, Question, read_question
from hopefear.serve.shelf import Shelf, UnknownModelError

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
# What the page is made of; whoever may reach the server may have it, and it holds no data.
PAGE = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
_OPEN = {*PAGE, "/health"}
HEAD = 1 << 16  # bytes of a request before its body
_SHORT = 1 << 12  # bytes of a body whose inputs are read in the loop
_LONG = 1 << 16  # bytes of a body that is read beside the loop
_HELD = 1 << 25  # bytes of the bodies of all that wait; read, they take up to thirty times that
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]
_PAGE_HEADERS = {"content-security-policy": _POLICY, "referrer-policy": "no-referrer"}
_AGAIN = {"retry-after": "1"}
_BUSY = "too many requests wait already; try again later"
_PAUSE = (0.1, 0.5)  # seconds before a request is sent away


class Limits(NamedTuple):
    """What one request may take.

    Parameters
    ----------
    body : int
        Bytes of its body.
    seconds : float
        Until it is answered; after that it gets an error.
    """

    body: int = 1 << 20
    seconds: float = 10.0


class Asker:
    """A connection as the application sees it, in the ``state`` of a request's scope."""

    left = False  # whether nothing more will come from it
    lost = False  # whether nothing more can be sent to it
    waits: asyncio.Future[Any] | None = None  # the answer

    def lose(self) -> None:
        """Give up the place of what it asked."""
        self.left = self.lost = True
        if self.waits is not None:
            self.waits.cancel()


class App:
    """Models behind HTTP.

    Parameters
    ----------
    shelf : Shelf
        The models.
    desk : Desk
        Where requests wait.
    limits : Limits
        What one request may take.
    token : str, optional
        What requests must bear; without it only those to a name of this machine are answered, so
        that no page on the web can ask under a name of its own.
    counts : Counts, optional
        Where requests are counted.
    complain : callable, optional
        Gets a line on every error that is ours.
    """

    def __init__(
        self,
        shelf: Shelf,
        desk: Desk,
        limits: Limits | None = None,
        *,
        token: str | None = None,
        counts: Counts | None = None,
        complain: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        self.shelf, self.desk, self.limits = shelf, desk, limits or Limits()
        self.token = None if token is None else token.encode()
        self.counts, self.complain = counts or Counts(), complain
        self.gauges: dict[str, Callable[[], float]] = {}
        self._held = 0
        views: dict[str, Any] = {
            "/models": self._models,
            "/health": self._health,
            "/metrics": self._metrics,
            "/openapi.json": _openapi,
            **{path: partial(_page, path) for path in PAGE},
        }
        routes = [Route(path, view) for path, view in views.items()]
        handlers: Any = {HTTPException: _refused}
        self._views = Starlette(routes=routes, exception_handlers=handlers)
        self._paths = {*views, *(f"/{verb}" for verb in NUMBERS)}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            raise NotImplementedError(f"there is no {scope['type']} here")
        started, path, status = time.perf_counter(), scope["path"], 500

        async def watched(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] += _HEADERS
            await send(message)

        try:
            answer: Any = self._refusal(scope)
            if answer is None:
                # Questions take the short way: of their time, routes would be a tenth.
                question = path[1:] in NUMBERS
                answer = await self._answer(scope, receive) if question else self._views
            await answer(scope, receive, watched)
        except Exception as error:
            self.complain(error)  # Starlette has answered 500 before it passes on an error
        finally:
            path = path if path in self._paths else "other"
            self.counts.request(path, status, time.perf_counter() - started)

    def _refusal(self, scope: Any) -> Response | None:
        """An answer to what is refused by its head alone."""
        head = chain((scope["path"], scope.get("query_string", b"")), *scope["headers"])
        if sum(map(len, head)) > HEAD:  # servers bound what they wait for, not what came at once
            return _error(431, f"the head of a request has at most {HEAD:,} bytes")
        headers = dict(scope["headers"])
        path = scope["path"]
        if self.token is None:
            host = headers.get(b"host", b"").decode("latin-1").lower()
            name = host if host.endswith("]") else host.rpartition(":")[0] or host
            if name not in LOOPBACK and not is_loopback(name.strip("[]")):
                return _error(
                    403,
                    f"requests to this machine name localhost or 127.0.0.1 as their host, not "
                    f"{host!r:.60}; hopefear serve --host H --token-file F serves others",
                )
        elif path not in _OPEN:
            given = headers.get(b"authorization", b"")
            if not hmac.compare_digest(given, b"Bearer " + self.token):
                words = "a token is needed: Authorization: Bearer TOKEN"
                return _error(401, words, {"www-authenticate": "Bearer"})
        if path[1:] not in NUMBERS:
            return None
        if scope["method"] != "POST":
            return _error(405, f"{path} is asked by POST", {"allow": "POST"})
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != b"application/json":  # pages of others cannot send that unasked
            return _error(415, "the body must be JSON: content-type: application/json")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self.limits.body:
            return _error(413, self._too_large())
        return None

    async def _answer(self, scope: Any, receive: Any) -> Any:
        """The answer to a question, whatever comes of it."""
        started, size = asyncio.get_running_loop().time(), 0
        try:
            if not self.desk.has_room():
                raise BusyError
            question, size = await self._question(scope["path"][1:], receive)
            deadline = started + self.limits.seconds
            asker = scope.get("state", {}).get("asker", scope.get("client"))
            return await self._ask(question, size <= _SHORT, deadline, asker)
        except HopefearError as error:
            return _error(404 if isinstance(error, UnknownModelError) else 400, str(error))
        except HTTPException as error:
            return _error(error.status_code, error.detail, error.headers)
        except BusyError:
            await asyncio.sleep(pause())
            return _error(503, _BUSY, _AGAIN)
        except Exception as error:
            self.complain(error)
            return _error(500, "internal error, please report it")
        finally:
            self._held -= size

    async def _ask(self, question: Question, short: bool, deadline: float, asker: Any) -> Any:
        loop = asyncio.get_running_loop()
        name, service = self.shelf.find(question.model)
        if getattr(asker, "lost", False):
            return _error(499, "the connection was lost")  # is counted, and goes nowhere
        if loop.time() >= deadline:
            return self._late()
        job = Job(name, service, question, loop.create_future(), self.limits.seconds, asker)
        self.desk.put(job, short)
        if isinstance(asker, Asker):
            asker.waits = job.future
        timer = loop.call_at(deadline, job.future.cancel)
        try:
            answer = await job.future
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise  # the server ends
            if getattr(asker, "lost", False):
                return _error(499, "the connection was lost")  # is counted, and goes nowhere
            return self._late()
        finally:
            timer.cancel()
            self.desk.drop(job)
        if isinstance(answer, Exception):
            raise answer
        return _Ready(answer)

    async def _question(self, verb: str, receive: Any) -> tuple[Question, int]:
        """The question in a body, and its bytes; that it comes in time, connections see to.

        They count as held until the caller has answered.
        """
        chunks: list[bytes] = []
        message: Any = None
        size = 0
        try:
            more = True
            while more:
                message = await receive()
                if message["type"] != "http.request":
                    raise HTTPException(400, "the body did not come whole")
                chunks.append(message.get("body", b""))
                size += len(chunks[-1])
                self._held += len(chunks[-1])
                if size > self.limits.body:
                    raise HTTPException(413, self._too_large(), {"connection": "close"})
                if self._held > max(_HELD, self.limits.body):
                    raise BusyError
                more = message.get("more_body", False)
            body = b"".join(chunks)
            chunks.clear()
            message = None
            if size <= _LONG:
                return read_question(verb, body), size
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(None, read_question, verb, body), size
        except BaseException:
            self._held -= size
            raise
        finally:
            chunks.clear()  # errors keep this frame, for as long as those sent away wait
            message = None

    def _late(self) -> Response:
        words = f"no answer within {self.limits.seconds:g} s; ask for less, or later"
        return _error(504, words, _AGAIN)

    def _too_large(self) -> str:
        return f"a body has at most {self.limits.body:,} bytes; send several requests"

    async def _models(self, request: Request) -> Response:
        services = self.shelf.services
        return _json({"models": [{"name": n, **one.facts()} for n, one in services.items()]})

    async def _health(self, request: Request) -> Response:
        return _json({"status": "ok", "version": __version__})

    async def _metrics(self, request: Request) -> Response:
        gauges = {name: float(value()) for name, value in self.gauges.items()}
        gauges |= {"hopefear_waiting": len(self.desk), "hopefear_models": len(self.shelf.services)}
        return Response(self.counts.text(gauges), media_type="text/plain; version=0.0.4")


class _Ready:
    """JSON that is sent as it is; a Response would look through headers of its own."""

    def __init__(self, body: bytes) -> None:
        self.body = body

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        length = b"%d" % len(self.body)
        headers = [(b"content-length", length), (b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


def pause() -> float:
    """Seconds after which a request is sent away.

    Who asks again at once would take the time of those who are answered; and who was sent away
    together shall not come back together.
    """
    return random.uniform(*_PAUSE)


def is_loopback(host: str) -> bool:
    """Whether a name or an address is of this machine alone.

    >>> [is_loopback(host) for host in ("localhost", "127.0.0.2", "::1", "0.0.0.0")]
    [True, True, True, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _json(facts: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    body = json.dumps(facts, ensure_ascii=False).encode("utf-8", "backslashreplace")
    return Response(body, status, headers, "application/json")


def _error(status: int, words: str, headers: Mapping[str, str] | None = None) -> Response:
    return _json({"error": words}, status, headers)


def _refused(request: Request, error: HTTPException) -> Response:
    words = {
        404: f"there is no {request.url.path:.60} here; GET /openapi.json tells what there is",
        405: f"{request.method} is not for {request.url.path:.60}",
    }
    return _error(error.status_code, words.get(error.status_code, error.detail), error.headers)


@cache
def resource(name: str) -> bytes:
    """A file that comes with the package."""
    return (files("hopefear.serve") / "page" / name).read_bytes()


async def _page(path: str, request: Request) -> Response:
    name, kind = PAGE[path]
    return Response(resource(name), headers=_PAGE_HEADERS, media_type=kind)


async def _openapi(request: Request) -> Response:
    return _json(document())
