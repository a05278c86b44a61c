"""``hopefear serve``: models behind HTTP, and a page to try them on."""

from __future__ import annotations

import argparse
import warnings

from hopefear.cli import options
from hopefear.cli.console import Console
from hopefear.cli.guard import complain, explained
from hopefear.errors import HopefearError

USAGE = "--model PATH [PATH ...] [--port N] [--host H --token-file F]"
DESCRIPTION = """
Answer questions in JSON over HTTP, by one model or several, and show a page to try them on: open
the address it prints. POST /predict, /nbest and /explain take {"input": …} or {"inputs": […]}; GET
/models says what each model reads, /openapi.json all of it, /metrics how it goes.

Requests that wait at the same moment are answered together. Where more wait than --queue, others
get 503 and are to try again. SIGHUP reads the model files again, without a pause; a file that
cannot be read is told, and its old model stays. SIGTERM and Ctrl-C answer what was asked, and end.

It listens on this machine alone, unless --host and --token-file open it to others, who must
send `Authorization: Bearer TOKEN`. What goes over the wire is not encrypted: put a proxy before it
that does.
"""
EXAMPLES = """
examples:
  hopefear serve --model chunks.model
  hopefear serve --model parser.model news.model --tagger pos.model --port 9000
  hopefear serve --model chunks.model --host 0.0.0.0 --token-file token.txt
"""
_SHORTEST = 16  # characters of a token


def configure(parser: argparse.ArgumentParser) -> None:
    data = parser.add_argument_group("models")
    data.add_argument(
        "--model",
        nargs="+",
        required=True,
        metavar="PATH",
        help="model files, each named by its file without folder and suffix",
    )
    options.named(data, "--tagger", "model of a tagger that gives parsers their tags", "PATH")
    place = parser.add_argument_group("address")
    options.whole(place, "--port", "where to listen; 0 finds a free one", 8000, least=0)
    options.named(
        place, "--host", "address to listen on (default: 127.0.0.1)", "H", default="127.0.0.1"
    )
    options.named(place, "--token-file", "file with the bearer token of requests")
    bounds = parser.add_argument_group("bounds")
    options.whole(bounds, "--jobs", "threads that answer", 1)
    options.whole(bounds, "--queue", "requests that may wait", 256)
    options.whole(bounds, "--timeout", "seconds that a request may take", 10)
    options.whole(bounds, "--max-body", "kilobytes of a request", 1024)
    options.whole(bounds, "--connections", "connections at once", 1000)


def run(args: argparse.Namespace) -> int:
    if args.port > 65535:
        args.usage_error(f"--port {args.port}: the largest is 65535")
    token = None if args.token_file is None else _token(args.token_file)
    try:
        from hopefear.serve import server
    except ImportError as error:
        raise HopefearError(
            f"hopefear serve needs {error.name}, which is not installed; pip install "
            "'hopefear[serve]'"
        ) from None
    from hopefear.cli.progress import announced
    from hopefear.serve.app import App, Limits, is_loopback
    from hopefear.serve.batcher import RequestBatcher
    from hopefear.serve.counts import Counts
    from hopefear.serve.registry import ModelRegistry

    if token is None and not is_loopback(args.host):
        raise HopefearError(
            f"--host {args.host} is open to others; give --token-file FILE with a token that "
            "requests must bear"
        )
    console, counts = Console(args.quiet), Counts()
    registry = ModelRegistry(args.model, args.tagger)
    limits = Limits(args.max_body << 10, float(args.timeout))

    def reload() -> None:
        errors: list[HopefearError] = []
        registry.load(errors.append)
        counts.reloads["bad" if errors else "good"] += 1
        for error in errors:
            complain(str(error))
        if not errors:
            console.say("the models have been read again")

    warnings.simplefilter("once", UserWarning)  # not for every request
    with server.listen(args.host, args.port) as listening:
        with announced(console, "serving"):
            registry.load()
        app = App(
            registry,
            RequestBatcher(args.jobs, args.queue, on_batch=counts.batch),
            limits,
            token=token,
            counts=counts,
            on_error=lambda error: complain(explained(error)[1]),
        )
        host, port = listening.getsockname()[:2]
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
        names = ", ".join(f"{name} ({one.model.task})" for name, one in registry.services.items())
        server.run(
            app,
            listening,
            max_connections=args.connections,
            on_ready=lambda: console.say(f"serving {names} on {address}; Ctrl-C ends"),
            on_reload=reload,
        )
    console.say("ended")
    return 0


def _token(path: str) -> str:
    from hopefear.storage import read_small

    with open(path, "rb") as file:
        token = read_small(file, path).decode("utf-8", "replace").strip()
    if len(token) < _SHORTEST or not token.isascii() or len(token.split()) != 1:
        raise HopefearError(
            f"{path}: expected a token of at least {_SHORTEST} letters and digits without blanks, "
            "as `openssl rand -hex 32` makes one"
        )
    return token
