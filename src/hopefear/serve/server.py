"""What listens: uvicorn, with bounds for connections that are slow, many or half closed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from typing import Any

from h11 import IDLE, SEND_BODY
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from hopefear.errors import HopefearError
from hopefear.serve.app import HEAD, App, Asker

_IDLE = 15  # seconds that a connection may wait for its next request
_FILES = 64  # descriptors that are no connections
# Threads that compute give way to the loop this soon, in seconds; Python's own 5 ms are felt.
_SWITCH = 0.0005


class Connection(H11Protocol):
    """A connection whose requests must come in time; uvicorn bounds their heads and trailers.

    ``most`` and ``seconds`` are set on a subclass: connections at once, and the time that a request
    has to arrive, and an answer to be read.
    """

    most: int
    seconds: float
    _clock: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._asker = Asker()
        self.app_state = {"asker": self._asker}  # uvicorn copies it into each request's scope
        self._clock = self.loop.call_later(self.seconds, self._late)
        if len(self.connections) > self.most:
            self._end(b"503 Service Unavailable", b"too many connections")

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        self._unset_keepalive_if_required()
        if self._unread is not None:
            self._unread.cancel()
        self._asker.lose()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        super().handle_events()
        # The clock runs from the first byte of a request to its last one.
        state = self.conn.their_state
        if state is not SEND_BODY and not (state is IDLE and self.conn.trailing_data[0]):
            self._stop()
        elif self._clock is None:
            self._clock = self.loop.call_later(self.seconds, self._late)

    def eof_received(self) -> Any:  # true: asyncio leaves the connection open
        # Who has said everything may still listen.
        asked = self.cycle is not None and not self.cycle.response_complete
        if asked and not self.cycle.more_body:
            self.cycle.keep_alive = False
            self._asker.left = True
            return True
        return False

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
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _late(self) -> None:
        self._clock = None
        if not self.transport.is_closing():
            self._end(b"408 Request Timeout", b"the request did not come in time")

    def _end(self, status: bytes, words: bytes) -> None:
        """Say why, unless an answer has begun, and hang up."""
        cycle = self.cycle
        if cycle is not None and cycle.response_started and not cycle.response_complete:
            self.transport.abort()
            return
        body = b'{"error": "%s"}' % words
        head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close"
        answer = b"HTTP/1.1 %s\r\n" + head + b"\r\n\r\n%s"
        self.transport.write(answer % (status, len(body), body))
        self.transport.close()


class _Quiet(Server):
    """uvicorn's server without its signals: ours end it well, and say so."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections; port 0 finds a free one."""
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
    taken: socket.socket,
    *,
    connections: int = 1000,
    on_ready: Callable[[], None] = lambda: None,
    on_reload: Callable[[], None] = lambda: None,
) -> None:
    """Answer requests until SIGINT or SIGTERM; what has been asked by then is answered.

    Parameters
    ----------
    app : App
        What answers.
    taken : socket
        Where to listen.
    connections : int
        How many there may be at once.
    on_ready : callable
        Is called when requests are answered.
    on_reload : callable
        Is called in a thread of its own after SIGHUP.
    """
    seconds = app.limits.seconds
    bounds = {"most": _with_files(connections), "seconds": seconds}
    config = Config(
        app,
        http=type("BoundedConnection", (Connection,), bounds),
        h11_max_incomplete_event_size=HEAD,
        loop="auto",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=min(2048, connections),
        timeout_keep_alive=_IDLE,
        timeout_graceful_shutdown=int(seconds) + 1,
    )
    # Its lines are about requests that others sent; ours are written by the application.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL + 1)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL + 1)
    server = _Quiet(config)
    app.gauges["hopefear_connections"] = lambda: len(server.server_state.connections)
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH)
    try:
        with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            runner.run(_served(server, taken, on_ready, on_reload))
    finally:
        sys.setswitchinterval(before)
        app.desk.close()


async def _served(
    server: Server,
    taken: socket.socket,
    on_ready: Callable[[], None],
    on_reload: Callable[[], None],
) -> None:
    loop = asyncio.get_running_loop()
    turn = asyncio.Lock()

    def stop() -> None:
        server.force_exit, server.should_exit = server.should_exit, True

    async def reload() -> None:
        async with turn:  # one after another
            await loop.run_in_executor(None, on_reload)

    tasks: set[asyncio.Task[None]] = set()

    def hang_up() -> None:
        task = loop.create_task(reload())
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    handlers = {"SIGINT": stop, "SIGTERM": stop, "SIGHUP": hang_up}
    for name, handler in handlers.items():
        if hasattr(signal, name):
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(getattr(signal, name), handler)
    serving = loop.create_task(server.serve([taken]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.01)
    if server.started:
        on_ready()
    await serving


def _with_files(connections: int) -> int:
    """As many connections as asked for, or as the system lets this process have."""
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
