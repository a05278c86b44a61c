"""The folder of a run with a decoder: rounds, events, and the state to resume from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from hopefear.errors import HopefearError
from hopefear.storage import write_atomically
from hopefear.training.events import EventLog, plain
from hopefear.translation.decoder_command import LOG, NBEST, WEIGHTS
from hopefear.translation.layouts import Layout
from hopefear.translation.tuners.problem import Event
from hopefear.translation.weights import Weights

STATE, START = "state.json", "start.txt"
_FORMAT = 1


class RoundsFolder:
    """What is known of a run, on disk as soon as it is known.

    ``round-K/weights.txt`` is there before round K begins, ``round-K/nbest.gz`` and the round's
    event in ``state.json`` when it has ended. Every file is whole or not there, so a killed run
    goes on behind the last of them.

    Parameters
    ----------
    folder : path
        Made if missing.
    identity : mapping
        What runs: the decoder, and what judges it.
    first : Weights, optional
        Weights of round 0; None leaves them to the decoder.
    resume : bool
        Go on with the rounds that are there; without it they are an error, for they took long.
    about : mapping
        Settings, for ``run.json``. A run that is resumed must have these, but for ``versions``, and
        its identity in common with this one.
    """

    def __init__(
        self,
        folder: Path,
        identity: Mapping[str, Any],
        first: Weights | None,
        resume: bool,
        about: Mapping[str, Any],
    ) -> None:
        settings = {key: value for key, value in about.items() if key != "versions"}
        self.folder, self.identity = folder, plain({**settings, **identity})
        self.events: list[Event] = []
        self.layout: Layout = ()  # of the lists, known when there are some
        self._known: dict[int, Weights | None] = {}
        self._load(resume)
        if not self.events:
            self._clear()
        log = EventLog(folder)
        try:
            log.describe({"task": "tune", "decoder": dict(identity), **about})
            for event in self.events:
                log(event)
            self._begin(first)
        except BaseException:
            log.close()
            raise
        self._log = log

    def __enter__(self) -> RoundsFolder:
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        self._log.__exit__(kind, value, trace)

    def round(self, number: int) -> Path:
        """The folder of a round."""
        return self.folder / f"round-{number}"

    def lists(self, number: int) -> list[Path]:
        """The lists of the rounds up to this one."""
        return [self.round(k) / NBEST for k in range(number + 1)]

    def weights(self, number: int) -> Weights | None:
        """The weights of a round; None where it has none, or none that are known."""
        if self._known.get(number) is None:
            path = self.round(number) / WEIGHTS
            there = path.exists() and path.stat().st_size
            self._known[number] = Weights.read(path) if there else None
        return self._known[number]

    def keep(self, number: int, weights: Weights | None) -> None:
        """Write the weights of a round; None is an empty file."""
        folder = self.round(number)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise HopefearError(f"{folder}: cannot be made: {error.strerror}") from error
        if weights is None:
            write_atomically(folder / WEIGHTS, b"")
        else:
            weights.write(folder / WEIGHTS, "text")

    def start(self, number: int) -> Weights:
        """The weights to tune from in a round: its own, or those found for the decoder's."""
        return self.weights(number) or Weights.read(self.round(number) / START)

    def keep_start(self, weights: Weights) -> None:
        """Write the weights to tune from in round 0, whose own are not known."""
        weights.write(self.round(0) / START, "text")

    def enter(self, event: Event, layout: Layout) -> None:
        """Add a round that has ended, and the dense features of its lists."""
        self.events.append(plain(event))
        self.layout = layout
        self._save()
        self._log(event)

    def _begin(self, first: Weights | None) -> None:
        if not (self.round(0) / WEIGHTS).exists():
            self.keep(0, first)
            self._save()
        elif self.weights(0) != first:
            raise HopefearError(
                f"{self.folder}: the run began from other weights; resume it with those in "
                f"{self.round(0) / WEIGHTS} (an empty file: the decoder's own), or use another "
                "folder"
            )

    def _save(self) -> None:
        state = {
            "format": _FORMAT,
            "identity": self.identity,
            "layout": self.layout,
            "rounds": self.events,
        }
        text = json.dumps(plain(state), indent=1, ensure_ascii=False)
        write_atomically(self.folder / STATE, f"{text}\n".encode())

    def _load(self, resume: bool) -> None:
        path = self.folder / STATE
        try:
            state = json.loads(path.read_bytes())
            identity, events = dict(state["identity"]), list(state["rounds"])
            layout = tuple((str(name), int(width)) for name, width in state["layout"])
            known = state["format"] == _FORMAT
        except FileNotFoundError:
            return
        except OSError as error:
            raise HopefearError(f"{path}: cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise HopefearError(
                f"{path}: not the state of a run with a decoder; use another folder"
            ) from error
        if not known:
            raise HopefearError(f"{path}: written by another version; use another folder")
        if events:
            self._check(identity, resume)
            self.events, self.layout = events, layout

    def _check(self, identity: Mapping[str, Any], resume: bool) -> None:
        """HopefearError unless the rounds in the folder are to go on, and as they began."""
        if not resume:
            raise HopefearError(
                f"{self.folder} has rounds of an earlier run: --resume (resume=True) goes on with "
                "it, another folder starts afresh"
            )
        differ = [
            f"{key} {identity.get(key)!r}, not {self.identity.get(key)!r}"
            for key in dict.fromkeys((*self.identity, *identity))
            if identity.get(key) != self.identity.get(key)
        ]
        if differ:
            raise HopefearError(
                f"{self.folder}: the run is another one, with {', and '.join(differ)}; resume it "
                "as it began, or use another folder"
            )

    def _clear(self) -> None:
        """Remove the files of an earlier run, and nothing else."""
        with suppress(FileNotFoundError):
            (self.folder / STATE).unlink()
        for folder in self.folder.glob("round-*"):
            for name in (WEIGHTS, START, NBEST, LOG):
                with suppress(FileNotFoundError):
                    (folder / name).unlink()
