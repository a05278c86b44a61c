"""``--cache``: where data larger than memory is kept, and when it is without being asked for."""

from __future__ import annotations

import argparse
import os
from typing import Any

from hopefear.cli import options
from hopefear.errors import HopefearError
from hopefear.tasks import TASKS


def option(group: argparse._ArgumentGroup, task: str) -> None:
    """``--cache``; of a task that has none it is known, so that it can be refused in words."""
    large = TASKS[task].large
    if large is None:
        group.add_argument("--cache", metavar="DIR", help=argparse.SUPPRESS)
        return
    usual = f"; without being asked for from {large >> 20} MiB on"
    options.named(
        group,
        "--cache",
        "for data larger than memory: a folder for a binary copy of --train, which is built when "
        f"missing or stale, and mapped instead of read{usual}",
        "DIR",
    )


def check(args: argparse.Namespace) -> None:
    """Wrong usage of ``--cache``, before anything is read."""
    if args.cache is not None and TASKS[args.task].large is None:
        raise HopefearError(
            f"--cache {args.cache}: the task {args.task} holds its data in memory, and has no "
            "cache; leave it out"
        )
    if args.cache is not None and os.path.exists(args.cache) and not os.path.isdir(args.cache):
        raise HopefearError(
            f"--cache {args.cache}: is a file, and caches lie in a folder; name one, which need "
            "not exist"
        )


def cache_folder(args: argparse.Namespace, console: Any, able: bool = True) -> str | None:
    """The folder of ``--cache``; of large files the usual one, and a line that says so.

    Where the file is one that cannot be cached (``able``), nothing is done without being asked for.
    """
    folder = getattr(args, "cache", None)
    if folder is not None or not hasattr(args, "cache") or not able:
        return folder
    # What takes data in memory only, and would refuse a cache.
    if args.bounds or args.cluster is not None or args.workers == "processes":
        return None
    from hopefear.data.cache import usual_folder
    from hopefear.data.files import file_size

    size, large = file_size(args.train), TASKS[args.task].large
    if large is None or size < large:
        return None
    folder = str(usual_folder())
    console.say(
        f"{args.train}: {size >> 20:,} MiB, so it is cached in {folder} and read from there "
        f"block by block (from {large >> 20} MiB on; --cache DIR names another folder)"
    )
    return folder
