"""Runs the application by uvicorn, with limits for slow and for many connections."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from h11 import IDLE, SEND_BODY
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from hopefear.errors import HopefearError
from hopefear.serve.app import HEAD, App

_IDLE = 15  # seconds that a connection may wait for its next request
_FILES = 64  # descriptors that are no connections
# Seconds until threads give way to the event loop; Python's default of 5 ms delays answers.
_SWITCH = 0.0005


class LimitedConnection(H11Protocol):
    """A connection whose requests must come in time; uvicorn bounds their heads and trailers.

    A subclass sets ``max_connections`` and ``seconds``, which a request has to arrive, and an
    answer to be read.
    """

    max_connections: int
    seconds: float
    _arriving: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._arriving = self.loop.call_later(self.seconds, self._late)
        if len(self.connections) > self.max_connections:
            self._end(b"503 Service Unavailable", b"too many connections")

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        self._unset_keepalive_if_required()
        if self._unread is not None:
            self._unread.cancel()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        super().handle_events()
        # The time runs from the first byte of a request to its last.
        state = self.conn.their_state
        if state is not SEND_BODY and not (state is IDLE and self.conn.trailing_data[0]):
            self._stop()
        elif self._arriving is None:
            self._arriving = self.loop.call_later(self.seconds, self._late)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.loop.call_later(self.seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()

    def timeout_keep_alive_handler(self) -> None:
        if self.transport.get_write_buffer_size():
            self.transport.abort()  # nobody reads the answer
        super().timeout_keep_alive_handler()

    def send_400_response(self, msg: str) -> None:
        if len(self.conn.trailing_data[0]) > HEAD:
            self._end(b"431 Request Header Fields Too Large", b"the head is too long")
        else:
            self._end(b"400 Bad Request", b"this is no HTTP request")

    def _stop(self) -> None:
        if self._arriving is not None:
            self._arriving.cancel()
            self._arriving = None

    def _late(self) -> None:
        self._arriving = None
        if not self.transport.is_closing():
            self._end(b"408 Request Timeout", b"the request did not come in time")

    def _end(self, status: bytes, words: bytes) -> None:
        """Sends the reason, unless an answer has begun, and closes the connection."""
        cycle = self.cycle
        if cycle is not None and cycle.response_started and not cycle.response_complete:
            self.transport.abort()
            return
        body = b'{"error": "%s"}' % words
        head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close"
        answer = b"HTTP/1.1 %s\r\n" + head + b"\r\n\r\n%s"
        self.transport.write(answer % (status, len(body), body))
        self.transport.close()


class _Server(Server):
    """uvicorn's server; signals end it with status 0, and SIGHUP reloads models.

    Parameters
    ----------
    config : Config
        Settings of uvicorn.
    on_ready : callable
        Called when requests are answered.
    on_reload : callable
        Called in a thread after SIGHUP.
    """

    def __init__(
        self, config: Config, on_ready: Callable[[], None], on_reload: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self.should_exit = False
        self._on_ready, self._on_reload = on_ready, on_reload
        self._reloads = ThreadPoolExecutor(1)  # one after another

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()

        def stop() -> None:
            if self.should_exit:
                self.force_exit = True
            self.should_exit = True

        handlers: dict[str, Callable[[], Any]] = {"SIGINT": stop, "SIGTERM": stop}
        handlers["SIGHUP"] = lambda: self._reloads.submit(self._on_reload)
        for name, handler in handlers.items():
            if hasattr(signal, name):
                with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                    loop.add_signal_handler(getattr(signal, name), handler)
        yield


def listen(host: str, port: int) -> socket.socket:
    """Returns a socket that takes connections; port 0 finds a free one."""
    kind = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With its protocol named, loops send small packets at once.
    taken = socket.socket(kind, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((host, port))
    except OSError as error:
        taken.close()
        reason = error.strerror or error
        raise HopefearError(
            f"cannot listen on {host} port {port}: {reason}; --port 0 finds a free one"
        ) from None
    return taken


def run(
    app: App,
    listening: socket.socket,
    *,
    max_connections: int = 1000,
    on_ready: Callable[[], None] = lambda: None,
    on_reload: Callable[[], None] = lambda: None,
) -> None:
    """Answers requests until SIGINT or SIGTERM; those that came by then are answered.

    Parameters
    ----------
    app : App
        The application.
    listening : socket
        That takes connections.
    max_connections : int
        Connections at once.
    on_ready : callable
        Called when requests are answered.
    on_reload : callable
        Called in a thread after SIGHUP.
    """
    seconds = app.limits.seconds
    limits = {"max_connections": _with_files(max_connections), "seconds": seconds}
    config = Config(
        app,
        http=type("Connection", (LimitedConnection,), limits),
        h11_max_incomplete_event_size=HEAD,
        loop="auto",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=min(2048, max_connections),
        timeout_keep_alive=_IDLE,
        timeout_graceful_shutdown=int(seconds) + 1,
    )
    # Their lines are about what clients send; the application writes those about its own errors.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL + 1)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL + 1)
    server = _Server(config, on_ready, on_reload)
    app.gauges["hopefear_connections"] = lambda: len(server.server_state.connections)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH)
    try:
        server.run([listening])
    finally:
        sys.setswitchinterval(interval)
        app.batcher.close()


def _with_files(connections: int) -> int:
    """Returns the connections that the system lets this process have, at most those wanted."""
    try:
        import resource
    except ImportError:  # not on Windows
        return connections
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _FILES
    if soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return min(connections, max(1, soft - _FILES))
