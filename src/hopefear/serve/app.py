"""The ASGI application: checks requests and answers them."""

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
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from hopefear import __version__
from hopefear.errors import HopefearError
from hopefear.serve.batcher import MAX_STEPS, BusyError, Job, RequestBatcher
from hopefear.serve.counts import Counts
from hopefear.serve.openapi import document
from hopefear.serve.registry import ModelRegistry, UnknownModelError
from hopefear.serve.requests import NUMBERS, read_request

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
# Files of the page, which are open to all: they hold no data.
PAGE = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
_OPEN = {*PAGE, "/health"}
HEAD = 1 << 16  # bytes of a request before its body
_SHORT = 1 << 12  # bytes of a body that the event loop reads; threads read longer ones
_HELD = 1 << 25  # bytes of all bodies that wait; parsed, they take up to thirty times that
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]
_PAGE_HEADERS = {"content-security-policy": _POLICY, "referrer-policy": "no-referrer"}
_AGAIN = {"retry-after": "1"}
_BUSY = "too many requests wait already; try again later"
_PAUSE = (0.1, 0.5)  # seconds before a request is refused


class Limits(NamedTuple):
    """Limits of one request.

    Parameters
    ----------
    body : int
        Bytes of its body.
    seconds : float
        Until it is answered; then it gets an error.
    """

    body: int = 1 << 20
    seconds: float = 10.0


class App:
    """Models behind HTTP.

    Parameters
    ----------
    registry : ModelRegistry
        The models.
    batcher : RequestBatcher
        Answers requests.
    limits : Limits
        Limits of one request.
    token : str, optional
        Bearer token of requests. Without it only those to a name of this machine are answered, so
        that no page on the web can send requests under a name of its own.
    counts : Counts, optional
        Counts requests.
    on_error : callable, optional
        Gets every error that is no user's.
    """

    def __init__(
        self,
        registry: ModelRegistry,
        batcher: RequestBatcher,
        limits: Limits | None = None,
        *,
        token: str | None = None,
        counts: Counts | None = None,
        on_error: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        self.registry, self.batcher, self.limits = registry, batcher, limits or Limits()
        self.token = None if token is None else token.encode()
        self.counts, self.on_error = counts or Counts(), on_error
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
        answers = {f"/{verb}": partial(self._answer, verb) for verb in NUMBERS}
        routes += [Route(path, view, methods=["POST"]) for path, view in answers.items()]
        handlers: Any = {HTTPException: _http_error, HopefearError: _user_error, Exception: _fault}
        self._app = Starlette(routes=routes, exception_handlers=handlers)
        self._paths = {*views, *answers}

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
            await (self._refusal(scope) or self._app)(scope, receive, watched)
        except Exception as error:
            self.on_error(error)  # Starlette has answered 500 before it passes on an error
        finally:
            path = path if path in self._paths else "other"
            self.counts.request(path, status, time.perf_counter() - started)

    def _refusal(self, scope: Any) -> Response | None:
        """Returns the answer to a request that its head alone refuses."""
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
        if path[1:] not in NUMBERS or scope["method"] != "POST":
            return None
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != b"application/json":  # pages of others cannot send that unasked
            return _error(415, "the body must be JSON: content-type: application/json")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self.limits.body:
            return _error(413, self._too_large())
        return None

    async def _answer(self, verb: str, request: Request) -> Response:
        """Returns the answer to a request."""
        chunks: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self.limits.seconds):
                self.batcher.check_room()
                async for chunk in request.stream():
                    chunks.append(chunk)
                    size += len(chunk)
                    self._held += len(chunk)
                    if size > self.limits.body:
                        raise HTTPException(413, self._too_large(), {"connection": "close"})
                    if self._held > max(_HELD, self.limits.body):
                        raise BusyError
                result = await self._result(verb, chunks, size, request.receive)
                return Response(result, media_type="application/json")
        except TimeoutError:
            words = f"no answer within {self.limits.seconds:g} s; ask for less, or later"
            return _error(504, words, _AGAIN)
        except ClientDisconnect:
            return _error(499, "the connection was lost")  # is counted, and goes nowhere
        except BusyError:
            pass
        finally:
            chunks.clear()
            self._held -= size
        await asyncio.sleep(pause())
        return _error(503, _BUSY, _AGAIN)

    def _job(self, verb: str, chunks: list[bytes]) -> Job:
        """Reads a request and its inputs; of its body nothing is kept."""
        request = read_request(verb, b"".join(chunks))
        chunks.clear()
        name, service = self.registry.find(request.model)
        # At the usual pace, half of the time is enough.
        max_steps = min(MAX_STEPS, int(MAX_STEPS * self.limits.seconds / 2))
        return Job(name, service, request, max_steps)

    async def _result(self, verb: str, chunks: list[bytes], size: int, receive: Any) -> bytes:
        """Returns the answer as JSON; the request is given up where its client disconnects."""

        async def work() -> bytes:
            if size <= _SHORT:
                job = self._job(verb, chunks)
            else:
                loop = asyncio.get_running_loop()
                job = await loop.run_in_executor(self.batcher.pool, self._job, verb, chunks)
            return await self.batcher.submit(job)

        working, disconnected = asyncio.ensure_future(work()), asyncio.ensure_future(receive())
        disconnected.add_done_callback(lambda _: working.cancel())
        try:
            return await working
        except asyncio.CancelledError:
            if disconnected.done():
                raise ClientDisconnect from None
            raise
        finally:
            disconnected.cancel()

    def _too_large(self) -> str:
        return f"a body has at most {self.limits.body:,} bytes; send several requests"

    async def _models(self, request: Request) -> Response:
        services = self.registry.services
        return _json({"models": [{"name": n, **one.facts()} for n, one in services.items()]})

    async def _health(self, request: Request) -> Response:
        return _json({"status": "ok", "version": __version__})

    async def _metrics(self, request: Request) -> Response:
        gauges = {name: float(value()) for name, value in self.gauges.items()}
        gauges |= {
            "hopefear_waiting": len(self.batcher),
            "hopefear_models": len(self.registry.services),
        }
        return Response(self.counts.text(gauges), media_type="text/plain; version=0.0.4")


def pause() -> float:
    """Returns seconds after which a request is refused.

    Clients that ask again at once would take the time of others; random pauses spread them.
    """
    return random.uniform(*_PAUSE)


def is_loopback(host: str) -> bool:
    """Whether a name or address reaches this machine alone.

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


async def _http_error(request: Request, error: HTTPException) -> Response:
    words = {
        404: f"there is no {request.url.path:.60} here; GET /openapi.json tells what there is",
        405: f"{request.method} is not for {request.url.path:.60}",
    }
    return _error(error.status_code, words.get(error.status_code, error.detail), error.headers)


async def _user_error(request: Request, error: HopefearError) -> Response:
    return _error(404 if isinstance(error, UnknownModelError) else 400, str(error))


async def _fault(request: Request, error: Exception) -> Response:
    return _error(500, "internal error, please report it")


@cache
def resource(name: str) -> bytes:
    """Returns a file of the page."""
    return (files("hopefear.serve") / "page" / name).read_bytes()


async def _page(path: str, request: Request) -> Response:
    name, kind = PAGE[path]
    return Response(resource(name), headers=_PAGE_HEADERS, media_type=kind)


async def _openapi(request: Request) -> Response:
    return _json(document())
