"""Tuning with a decoder in the loop: decode, add the new lists to the old ones, tune, again."""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hopefear.core.interrupts import interruptible
from hopefear.data.lists.candidates import CandidateLists, Layout
from hopefear.data.moses.reader import read_moses
from hopefear.data.moses.word_hashes import HashedText, parallel_sentences
from hopefear.data.sources import open_bytes
from hopefear.errors import HopefearError, NewerFormatError
from hopefear.metrics.lists import ListMetric
from hopefear.storage import atomic_file, untrusted, write_atomically
from hopefear.training.checkpoints import InterruptedTrainingError
from hopefear.training.events import EventLog, plain
from hopefear.translation.lists import read, tuning_metric
from hopefear.translation.names import slices_by_name
from hopefear.translation.task import CollapseError, score_of
from hopefear.translation.tuners.problem import Event, Listener, tell
from hopefear.translation.weights import Weights, changes

PathLike = str | os.PathLike[str]
Tune = Callable[[list[Path], Weights, int], Weights]
First = Weights | Callable[[CandidateLists], Weights]


@dataclass(frozen=True)
class Iterated:
    """Weights that the decoder itself did best with, and how they were found.

    Parameters
    ----------
    weights : Weights
        Those of the best round.
    rounds : list of events
        One for each time the decoder ran: ``{"epoch": 0, "dev": {"bleu": …}, "best": 0, "new": …,
        …}``; ``best`` is the best round so far, of those whose weights are known.
    best : int
        The round the weights are from; round 0 ran with the first ones.
    stopped : str
        Why there was no further round.
    """

    weights: Weights
    rounds: list[Event]
    best: int
    stopped: str


def iterate(
    command: str,
    refs: PathLike | Sequence[PathLike],
    first: First,
    tune: Tune,
    *,
    folder: PathLike,
    rounds: int = 10,
    patience: int = 5,
    tolerance: float = 1e-6,
    metric: str | ListMetric = "bleu",
    dense: Collection[str] = (),
    sparse: Collection[str] = (),
    about: Mapping[str, Any] | None = None,
    resume: bool = False,
    timeout: float | None = None,
    on_event: Sequence[Listener] = (),
) -> Iterated:
    """Tune in rounds, each on all the lists that a decoder has written so far.

    Round r runs the decoder under weights r. If it brought hypotheses that no earlier round had,
    and its own first choices scored better than in all earlier rounds, all lists together give
    weights r + 1. What is returned was decoded with: no score on merged lists decides.

    Parameters
    ----------
    command : str
        Runs the decoder, see :class:`~hopefear.translation.rounds.DecoderCommand`.
    refs : path or sequence of paths
        References of the sentences that it translates.
    first : Weights, or a function from CandidateLists to Weights
        Weights of round 0. With a function, such as
        :func:`hopefear.translation.task.start_weights`, the decoder runs round 0 with its own
        weights (the file it is given is empty), and the function makes weights to tune from out
        of the lists of that round.
    tune : function
        ``tune(paths of all lists so far, weights of this round, round)`` gives the next weights;
        a :class:`~hopefear.translation.task.CollapseError` of it ends the rounds.
    folder : path
        Keeps each round's weights, list and log, the events, and the state to resume from.
    rounds : int
        How often to tune at most; the decoder runs once more, to judge the last weights.
    patience : int
        Rounds without a better score of the decoder's first choices before it ends.
    tolerance : float
        It ends when no weight has moved by more, both vectors having length 1.
    metric : str or ListMetric
        Scores the decoder's first choices, see :func:`hopefear.translation.lists.read`.
    dense, sparse : collection of str
        As for :func:`hopefear.data.moses.reader.read_moses`.
    about : mapping, optional
        Further fields of the folder's ``run.json``.
    resume : bool
        Go on behind the last finished step that the folder knows of, if it knows any.
    timeout : float, optional
        Seconds a run of the decoder may take.
    on_event : sequence of listeners
        Called after every run of the decoder.
    """
    if rounds < 1 or patience < 1:
        raise HopefearError(
            f"rounds={rounds}, patience={patience}: both must be 1 or more, or nothing is tuned"
        )
    paths = [refs] if isinstance(refs, str | os.PathLike) else list(refs)
    metric = tuning_metric(metric)
    identity = {
        "command": command,
        "refs": [os.fspath(path) for path in paths],
        "words of refs": _digest(parallel_sentences(paths)),
        "metric": metric.signature_for(len(paths)),
    }
    decoder = DecoderCommand(command, timeout)
    judge = paths, metric, {"dense": dense, "sparse": sparse}
    first_weights = first if isinstance(first, Weights) else None
    settings = Path(folder), identity, first_weights, resume, about or {}, metric.main
    with RoundsFolder(*settings) as folder_of_rounds:
        return _Rounds(
            folder_of_rounds, decoder, *judge, first, rounds, patience, tolerance, on_event
        ).run(tune)


def _digest(files: Sequence[HashedText]) -> str:
    """Returns a short hash of references, which a resumed folder is checked against."""
    return hashlib.sha256(b"\0".join(file.text.tobytes() for file in files)).hexdigest()[:8]


@dataclass
class _Rounds:
    store: RoundsFolder
    decoder: DecoderCommand
    refs: list[Any]
    metric: ListMetric
    reading: dict[str, Any]
    first: First
    max_rounds: int
    patience: int
    tolerance: float
    on_event: Sequence[Listener]

    def run(self, tune: Tune) -> Iterated:
        number = max(0, len(self.store.events) - 1)
        while True:
            if number == len(self.store.events):
                self.decode(number)
            reason = self.ended(number)
            if reason is None and self.store.weights(number + 1) is None:
                reason = self.tune(tune, number)
            if reason is None and self.moved(number + 1) <= self.tolerance:
                reason = "the weights stand still"
            if reason is not None:
                return self.result(reason)
            number += 1

    def decode(self, number: int) -> None:
        """Run the decoder, judge what it wrote, and enter it in the folder."""
        folder = self.store.round(number)
        began = time.monotonic()
        path = self.decoder.run(folder, number)
        seconds = time.monotonic() - began
        try:
            lists = read(path, self.refs, metric=self.metric, **self.reading)
            score = score_of(lists, self.metric, np.zeros(len(lists), np.int64))
            self.start(number, lists)
            # Hypotheses with different words or features in all rounds together.
            total = read_moses(self.store.lists(number), **self.reading).n_candidates
        except HopefearError as error:
            raise self.decoder.unusable(folder, number, error) from error
        earlier = self.store.events[-1]["candidates"] if number else 0
        event: Event = {
            "epoch": number,
            "dev": {self.metric.main: score},
            "best": None if (best := self.best(score)) < 0 else best,
            "candidates": total,
            "new": total - earlier,
            "moved": self.moved(number) if number and self.known(number - 1) else None,
            "seconds": seconds,
        }
        self.store.enter(event, lists.layout)
        tell(self.on_event, event)

    def start(self, number: int, lists: CandidateLists) -> None:
        """Find weights to tune from that fit the lists of a round."""
        if self.known(number) or isinstance(self.first, Weights):
            self.store.start(number).arranged(lists.layout)  # an error where a feature is lacking
        else:
            self.store.keep_start(self.first(lists).arranged(lists.layout))

    def known(self, number: int) -> bool:
        """Whether a round's weights are known; the decoder's own, in round 0, are not."""
        return self.store.weights(number) is not None

    def tune(self, tune: Tune, number: int) -> str | None:
        """Find and keep the next weights; a reason to end where they are none."""
        before = self.store.start(number)
        try:
            weights = tune(self.store.lists(number), before.arranged(self.store.layout), number)
            if not weights.nnz:
                raise CollapseError("tuning collapsed: all weights are 0; nothing is kept")
        except CollapseError as error:
            if self.best() < 0:
                raise
            return str(error)
        self.store.keep(number + 1, completed(weights, before))
        return None

    def moved(self, number: int) -> float:
        """Returns the distance of weights before this round, where it is known."""
        before, after = self.store.weights(number - 1), self.store.weights(number)
        return np.inf if before is None or after is None else moved(before, after)

    def best(self, *additional: float) -> int:
        """Returns the round whose first choices scored best, the first of equals; or -1.

        Rounds whose weights are not known do not count; ``additional`` scores follow the stored.
        """
        scores = [*map(self.score, self.store.events), *additional]
        sign = 1 if self.metric.higher else -1
        finished = filter(self.known, range(len(scores)))
        return max(finished, key=lambda number: sign * scores[number], default=-1)

    def score(self, event: Event) -> float:
        return event["dev"][self.metric.main]

    def ended(self, number: int) -> str | None:
        """Returns the reason to stop before this round, if there is one."""
        best = self.best()
        if number and self.store.events[number]["new"] == 0:
            return "no new hypotheses"
        if 0 <= best <= number - self.patience:
            return f"no gain for {self.patience} round{'s' * (self.patience > 1)}"
        return f"all {self.max_rounds} rounds done" if number >= self.max_rounds else None

    def result(self, reason: str) -> Iterated:
        best = self.best()
        weights = self.store.weights(best)
        assert weights is not None
        return Iterated(weights, list(self.store.events), best, reason)


WEIGHTS, NBEST, LOG = "weights.txt", "nbest.gz", "log"
_WRITTEN = "nbest"  # what the decoder writes, before it is packed
_TAIL = 10  # lines of the log that a message shows
_LOOK = 0.05  # seconds between two looks at the decoder
_GRACE = 5.0  # seconds to end in before it is killed


@dataclass(frozen=True)
class DecoderCommand:
    """A command that decodes the development sentences once, under weights it is given.

    Parameters
    ----------
    command : str
        For the shell. ``{weights}``, ``{nbest}`` and ``{round}`` become the quoted path of the
        weights to read, that of the list to write, and the number of the round; the environment
        has the same as ``HOPEFEAR_WEIGHTS``, ``HOPEFEAR_NBEST`` and ``HOPEFEAR_ROUND``.
    timeout : float, optional
        Seconds after which a run is ended and fails.

    Examples
    --------
    >>> DecoderCommand("moses -f moses.ini -n-best-list {nbest} 100").filled(Path("my run"), 2)
    "moses -f moses.ini -n-best-list 'my run/nbest' 100"
    """

    command: str
    timeout: float | None = None

    def __post_init__(self) -> None:
        if not self.command.strip():
            raise HopefearError("the decoder's command is empty; give one the shell can run")
        if self.timeout is not None and not self.timeout > 0.0:
            raise HopefearError(f"timeout={self.timeout}: a decoder needs more than 0 seconds")

    def filled(self, folder: Path, number: int) -> str:
        """The command of a round, with paths in the places held for them."""
        # Not str.format: braces mean something to shells.
        text = self.command
        for name, value in self._arguments(folder, number).items():
            text = text.replace(f"{{{name}}}", shlex.quote(value))
        return text

    def run(self, folder: Path, number: int) -> Path:
        """Run it in a round's folder, which holds the weights; the packed list.

        What it prints goes to the file ``log`` there. The list it wrote is packed, and has its
        name only when it is whole.
        """
        log, output = folder / LOG, folder / _WRITTEN
        with suppress(FileNotFoundError):
            output.unlink()
        status = self._run(folder, number, log)
        if status:
            raise self.failed(folder, number, _status(status))
        if not output.exists() or not output.stat().st_size:
            lack = "is empty" if output.exists() else "is not there"
            raise self.failed(
                folder,
                number,
                f"ended well (status 0), but the N-best list {output} {lack}; it must write to "
                "the path in HOPEFEAR_NBEST, or where the command says {nbest}",
            )
        try:
            _pack(output, folder / NBEST)
        except HopefearError as error:
            raise self.unusable(folder, number, error) from error
        output.unlink()
        return folder / NBEST

    def unusable(self, folder: Path, number: int, error: HopefearError) -> HopefearError:
        """Makes the error for an N-best list that cannot be used."""
        problem = f"ended well (status 0), but its N-best list cannot be used: {error}"
        return self.failed(folder, number, problem)

    def failed(self, folder: Path, number: int, problem: str) -> HopefearError:
        """Makes the error for a failed run, with the last lines it printed."""
        log = folder / LOG
        tail = log.read_text("utf-8", "replace").splitlines()[-_TAIL:] if log.exists() else []
        words = f"; the end of {log}:" if tail else f"; {log} is empty"
        excerpt = "".join(f"\n    {line}" for line in tail)
        return HopefearError(f"decoder, round {number}: {self.command!r} {problem}{words}{excerpt}")

    def _arguments(self, folder: Path, number: int) -> dict[str, str]:
        return {
            "weights": os.fspath(folder / WEIGHTS),
            "nbest": os.fspath(folder / _WRITTEN),
            "round": str(number),
        }

    def _run(self, folder: Path, number: int, log: Path) -> int:
        """Returns the exit status of the command; an interrupt ends it and its children."""
        arguments = self._arguments(folder.resolve(), number)
        variables = {f"HOPEFEAR_{name.upper()}": value for name, value in arguments.items()}
        until = None if self.timeout is None else time.monotonic() + self.timeout
        with open(log, "wb") as out, interruptible() as interrupted:
            process = subprocess.Popen(
                self.filled(folder.resolve(), number),
                shell=True,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, **variables},
                start_new_session=True,  # a process group, which can be ended as one
            )
            try:
                while True:
                    with suppress(subprocess.TimeoutExpired):
                        return process.wait(_LOOK)
                    if interrupted:
                        raise InterruptedTrainingError(
                            f"stopped while the decoder ran in round {number}; what it would have "
                            "written is lost, earlier rounds are kept",
                            interrupted.signum,
                        )
                    if until is not None and time.monotonic() > until:
                        problem = f"took longer than {self.timeout:g} s (timeout) and was ended"
                        raise self.failed(folder, number, problem)
            finally:
                _end(process)


def _pack(path: Path, packed: Path) -> None:
    with (
        open_bytes(path) as text,
        atomic_file(packed) as out,
        # Without a time of writing: equal lists are equal files.
        gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0) as pack,
    ):
        shutil.copyfileobj(text, pack, 1 << 20)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process that still runs, and everything in its group."""
    if process.poll() is not None:
        return
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        until = time.monotonic() + _GRACE
        while time.monotonic() < until:
            process.poll()
            os.killpg(process.pid, 0)  # the group is gone: ProcessLookupError
            time.sleep(_LOOK)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _status(code: int) -> str:
    if code > 0:
        return f"ended with status {code}"
    with suppress(ValueError):
        return f"was killed by {signal.Signals(-code).name} (status {code})"
    return f"was killed by signal {-code} (status {code})"


STATE, START = "state.json", "start.txt"
_FORMAT = 1
_WIDEST = 1 << 20  # numbers of a dense feature that a state may claim


class RoundsFolder:
    """State of a run of rounds, written to disk at once.

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
    score : str
        The score that every round has.
    """

    def __init__(
        self,
        folder: Path,
        identity: Mapping[str, Any],
        first: Weights | None,
        resume: bool,
        metadata: Mapping[str, Any],
        score: str,
    ) -> None:
        self._score = score
        settings = {key: value for key, value in metadata.items() if key != "versions"}
        self.folder, self.identity = folder, plain({**settings, **identity})
        self.events: list[Event] = []
        self.layout: Layout = ()  # of the lists, known when there are some
        self._weights: dict[int, Weights | None] = {}
        self._load(resume)
        if not self.events:
            self._clear()
        self._begin(first)
        log = EventLog(folder)
        try:
            log.describe({"task": "tune", "decoder": dict(identity), **metadata})
            for event in self.events:
                log(event)
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
        if self._weights.get(number) is None:
            path = self.round(number) / WEIGHTS
            there = path.exists() and path.stat().st_size
            self._weights[number] = Weights.read(path) if there else None
        return self._weights[number]

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
            text = path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            raise HopefearError(f"{path}: cannot be read: {error.strerror}") from error
        remedy = "restore it from a copy, or use another folder; nothing was changed"
        with untrusted(f"{path}, the state of a run with a decoder,", remedy):
            state = json.loads(text)
            number = state["format"]
            if type(number) is int and number > _FORMAT:
                raise NewerFormatError(
                    f"{path} was made by a newer version (format {number}, this one reads up to "
                    f"{_FORMAT}); upgrade hopefear, or use another folder; nothing was changed"
                )
            identity, events = state["identity"], state["rounds"]
            if type(identity) is not dict or type(events) is not list:
                raise ValueError(f"identity {identity!r:.60}, rounds {events!r:.60}")
            layout = tuple((name, width) for name, width in state["layout"])
            is_current = type(number) is int and number == _FORMAT
            if not is_current or any(map(_is_no_feature, layout)) or (events and not layout):
                raise ValueError(f"format {number!r:.60}, layout {layout!r:.60}")
        if not events:
            return
        self._check(identity, resume)
        with untrusted(f"{path}, the state of a run with a decoder,", remedy):
            for place, event in enumerate(events):
                _check_event(place, event, self._score)
            Weights(layout, np.zeros(sum(width for _, width in layout)))
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


def _is_no_feature(entry: tuple[Any, Any]) -> bool:
    name, width = entry
    return type(name) is not str or type(width) is not int or width > _WIDEST


def _check_event(number: int, event: Any, score: str) -> None:
    """ValueError unless that is what a round of this number enters."""
    counts = event["epoch"], event["candidates"], event["new"]
    scores = event["seconds"], event["dev"][score]
    if (
        not all(type(count) is int for count in counts)
        or (number, 0) != (counts[0], min(0, *counts))
        or not all(type(score) in (int, float) and math.isfinite(score) for score in scores)
    ):
        raise ValueError(f"round {number} is {event!r:.60}")


def completed(weights: Weights, before: Weights) -> Weights:
    """Tuned weights with those that the decoder reads but its lists do not show, as they were.

    Where there are such, tuned weights get the size that they had, for a decoder sees proportions.

    Examples
    --------
    >>> before = Weights((("TM0", 2), ("UnknownWordPenalty0", 1)), [0.5, 0.5, 1.0])
    >>> completed(Weights((("TM0", 2),), [3.0, -1.0]), before).dense.tolist()
    [0.75, -0.25, 1.0]
    """
    names = {name for name, _ in weights.layout}
    hidden = [(name, width) for name, width in before.layout if name not in names]
    if not hidden:
        return weights
    old, new = (
        _size(weights_of, names & dict(before.layout).keys()) for weights_of in (before, weights)
    )
    if old > 0.0 and new > 0.0:
        weights = weights.scaled(old / new)
    where = slices_by_name(before.layout)
    return replace(
        weights,
        layout=(*weights.layout, *hidden),
        dense=np.concatenate([weights.dense, *(before.dense[where[name]] for name, _ in hidden)]),
    )


def moved(before: Weights, after: Weights) -> float:
    """The largest change of a weight, both vectors having length 1: decoders ignore lengths.

    Examples
    --------
    >>> layout = (("LM0", 1), ("TM0", 1))
    >>> moved(Weights(layout, [0.5, 0.0]), Weights(layout, [3.0, 4.0]))
    0.8
    """
    scaled = [weights.scaled(1.0 / _length(weights)) for weights in (before, after)]
    return max((abs(new - old) for _, old, new in changes(*scaled)), default=0.0)


def _length(weights: Weights) -> float:
    values = [*weights.dense.tolist(), *weights.sparse.values(), *weights.phrases.values()]
    return float(np.linalg.norm(values)) or 1.0


def _size(weights: Weights, names: Collection[str]) -> float:
    """Sum of the sizes of some dense weights."""
    where = slices_by_name(weights.layout)
    return float(sum(np.abs(weights.dense[where[name]]).sum() for name in names))
