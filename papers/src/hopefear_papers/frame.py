"""What every experiment stands on: the call, corpora, runs on disk, training, files written.

An experiment is four modules: ``plan`` (what is run, on which data), ``runs`` (what is measured),
``claims`` (what the paper reports and says, judged) and ``page`` (tables, figures, numbers), with
the text of the page in ``page.md``.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np

from hopefear import __version__
from hopefear.errors import HopefearError
from hopefear.report import Page
from hopefear.report.plot import Plot
from hopefear.storage import write_atomically
from hopefear.training.online import OnlineTrainer
from hopefear.training.passes import Passes, Pieces
from hopefear_papers.pages import Block, Details, Heading, Table, blocks_of, show

BESIDE = Path("..", "shared", "data")
_DIGEST = re.compile(r"[0-9a-f]{64}")
Tell = Callable[[float, str], None]
Record = TypeVar("Record")


@dataclass
class Call:
    """One call of an experiment, see :func:`hopefear_papers.run_experiment`."""

    plan: Any  # how much is run
    data: Path | None
    out: Path
    quick: bool
    progress: Callable[[str], None]
    note: str = ""  # what the page must say of the data
    digests: dict[str, str] = field(default_factory=dict)  # of data that was read, by its digest

    @property
    def runs(self) -> KeptRuns:
        """Where the runs are kept."""
        return KeptRuns(self.out / ("runs-quick" if self.quick else "runs"), self.digests)

    def saw(self, name: str, data: Any) -> None:
        """Note the digest of data, for the page."""
        self.digests.setdefault(data.digest, name)

    def teller(self, start: float = 0.0, share: float = 1.0) -> Tell:
        """Tells how far a part of the work is: it begins at ``start``, and is so much of the whole.

        >>> Call(None, None, Path("out"), True, print).teller(0.5, 0.5)(0.2, "MERT, seed 1")
         60%  MERT, seed 1
        """
        return lambda done, text: self.progress(f"{start + share * done:4.0%}  {text}")


class Experiment:
    """Plan, runs, claims and page of a paper, put to work.

    Parameters
    ----------
    name : str
        Of its folder, with dashes or underscores. There ``plan`` has FULL and QUICK; ``runs`` has
        ``measure(call)``, which gives the results; ``claims`` has ``judge(results)``; ``page`` has
        ``signature(plan)``, ``content(results, call)`` for ``results.json``,
        ``table_text(results)`` for a terminal, and ``Report``, the tables and plots that
        ``page.md`` names (see :mod:`hopefear_papers.pages`).
    """

    def __init__(self, name: str) -> None:
        folder = f"hopefear_papers.{name.replace('-', '_')}"
        parts = ("plan", "runs", "claims", "page")
        self.plan, self.runs, self.claims, self.page = (
            importlib.import_module(f"{folder}.{part}") for part in parts
        )
        self.name, self.text = name.replace("_", "-"), files(folder).joinpath("page.md")

    def run(
        self,
        data: Path | None,
        out: Path,
        progress: Callable[[str], None],
        quick: bool = False,
        plan: Any = None,
    ) -> Path:
        """Measure, judge and write ``results.json`` and ``report.html`` into ``out``.

        Every run that ends is kept in ``out/runs``, so the same call goes on where it was broken
        off.

        Parameters
        ----------
        data, out, progress, quick
            As in :func:`hopefear_papers.run_experiment`.
        plan : Plan, optional
            How much to run; by default all of it, or a little if quick.
        """
        plan = plan or (self.plan.QUICK if quick else self.plan.FULL)
        call = Call(plan, data, made_folder(out), quick, progress)
        results = self.runs.measure(call)
        progress(" 99%  tests")
        verdicts = self.claims.judge(results)
        report = self.page.Report(results, verdicts, call)
        parts = {"experiment": self.name, **self.page.signature(plan), "v": __version__}
        signature = "|".join(f"{key}:{value}" for key, value in parts.items())
        signed = signature + "\n" + " ".join(f"{k}:{v}" for k, v in versions().items())
        title, paper, text = self.text.read_text("utf-8").split("\n\n", 2)
        page = Page(title.removeprefix("# "), paper, signature=signed)
        show(page, [*blocks_of(text, report), *_origin(parts, call)])
        whole = {
            "signature": signature,
            "versions": versions(),
            "quick": quick,
            **self.page.content(results, call),
            "verdicts": [verdict.plain(report.place) for verdict in verdicts],
        }
        page.write(out / "report.html")
        write_atomically(
            out / "results.json",
            (json.dumps(whole, indent=1, allow_nan=False) + "\n").encode(),
        )
        if table := self.page.table_text(results):
            progress(table)
        return out / "report.html"


def _origin(parts: Mapping[str, object], call: Call) -> Iterator[Block]:
    """What it takes to get the same numbers again."""
    size = "a little (--quick)" if call.quick else "all"
    yield Heading("Origin")
    yield {**parts, "run": size, "versions": versions()}
    rows = [[name, digest] for digest, name in call.digests.items()]
    if rows:
        title = f"Digests of the data ({len(rows)})"
        yield Details(title, [Table(["data", "digest"], rows, align="l")])


def made_folder(path: Path) -> Path:
    """The folder, made when missing."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HopefearError(
            f"{path}: cannot be made a folder ({error.strerror}); give another --out"
        ) from error
    return path


@dataclass(frozen=True)
class Entrant:
    """Who takes part in a comparison: a recipe, and those of its parameters that are fixed."""

    key: str
    title: str
    recipe: str
    fixed: Mapping[str, Any] = field(default_factory=dict)


def versions() -> dict[str, str]:
    """Of what the numbers depend on."""
    return {
        "hopefear": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
    }


def find_data(data: Path | None) -> Path | None:
    """The folder of the corpora: the one given, HOPEFEAR_DATA, ``../shared/data``, or none.

    >>> find_data(Path("corpora")).name
    'corpora'
    """
    if data is not None:
        return data
    if folder := os.environ.get("HOPEFEAR_DATA"):
        return Path(folder)
    return BESIDE if BESIDE.is_dir() else None


def find_files(
    data: Path | None, folder: str, names: Iterable[str], what: str, otherwise: str = ""
) -> Path:
    """A folder of the corpora that an experiment cannot do without.

    Parameters
    ----------
    data : path, optional
        As in :func:`find_data`.
    folder : str
        Its name there.
    names : iterable of str
        Files it must hold.
    what, otherwise : str
        What they are, and another way out, for the message.

    Examples
    --------
    >>> find_files(Path("nowhere"), "ptb-nbest", ["dev.jsonl.xz"], "lists of parses")
    Traceback (most recent call last):
        ...
    hopefear.errors.HopefearError: nowhere/ptb-nbest has no dev.jsonl.xz: this experiment needs \
lists of parses; give --data, or set HOPEFEAR_DATA, to a folder that holds ptb-nbest
    """
    path = (find_data(data) or BESIDE) / folder
    if absent := [name for name in names if not (path / name).is_file()]:
        raise HopefearError(
            f"{path} has no {', '.join(absent)}: this experiment needs {what}; give --data, or set "
            f"HOPEFEAR_DATA, to a folder that holds {folder}{otherwise}"
        )
    return path


class KeptRuns:
    """A folder with a file for every run, so that what was broken off goes on where it was.

    A file is used again when what it says of its making is what is wanted now: signature, data,
    version. It does not know of edits in the code; remove the folder after those.

    Parameters
    ----------
    folder : path
        Made when missing.
    digests : dict, optional
        Gets the digests that the identities of runs have, and what they are of.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     runs = KeptRuns(Path(folder) / "runs")
    ...     runs.of("times", {"seed": 1}, lambda: {"a": [1.0]})
    ...     runs.of("times", {"seed": 1}, lambda: {"a": [2.0]})
    {'a': [1.0]}
    {'a': [1.0]}
    """

    def __init__(self, folder: Path, digests: dict[str, str] | None = None) -> None:
        self.folder, self.digests = made_folder(folder), {} if digests is None else digests
        self.always: dict[str, Any] = {}  # what the identity of every run has

    def of(self, name: str, identity: Mapping[str, Any], make: Callable[[], Any]) -> Any:
        """What has this name, if JSON can hold it; made, and kept, where none is like it yet."""
        path = self.folder / (re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-") + ".json")
        whole = {**identity, **self.always, "v": __version__}
        for what, value in whole.items():
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, str) and _DIGEST.fullmatch(one):
                    self.digests.setdefault(one, what)
        file = _read(path)
        if file.get("identity") == whole:
            return file["content"]
        content = make()
        text = json.dumps({"identity": whole, "content": content}, allow_nan=False)
        write_atomically(path, text.encode())
        return content

    def record(
        self, kind: type[Record], name: str, identity: Mapping[str, Any], make: Callable[[], Record]
    ) -> Record:
        """As :meth:`of`, for a dataclass of numbers, texts and arrays."""
        content = self.of(name, identity, lambda: plain(make()))
        return from_plain(kind, content)


def plain(record: Any) -> dict[str, Any]:
    """The fields of a dataclass as they are, but for arrays, which become lists.

    >>> plain(Trail(0.5, *np.arange(3, dtype=np.int64)[:, None]))
    {'strength': 0.5, 'samples': [0], 'nnz': [1], 'mistakes': [2]}
    """
    values = {f.name: getattr(record, f.name) for f in fields(record)}
    return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in values.items()}


def from_plain(kind: type[Record], content: Mapping[str, Any]) -> Record:
    """The dataclass whose fields :func:`plain` gave."""
    arrays = {f.name for f in fields(kind) if "ndarray" in str(f.type)}  # type: ignore[arg-type]
    return kind(**{k: np.array(v) if k in arrays else v for k, v in content.items()})


def _read(path: Path) -> dict[str, Any]:
    """What a file holds; nothing where it is missing or was not written by us."""
    try:
        file = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return file if isinstance(file, dict) and "content" in file else {}


def learn(
    trainer: OnlineTrainer,
    data: Any,
    passes: int,
    seed: int = 1,
    shuffle: bool = True,
    stops: Callable[[int, int], np.ndarray] | None = None,
) -> Iterator[float]:
    """Learn pass after pass; CPU seconds of learning, after each pass or at each stop in it.

    Parameters
    ----------
    trainer, data
        Who learns from what.
    passes, seed, shuffle
        How often, and in which order.
    stops : callable, optional
        From the number of a pass and its length to rising places in it, the last its end.
    """
    source = Passes(data, seed, shuffle)
    for epoch in range(passes):
        order = source.order(epoch)
        ends = np.array([order.size]) if stops is None else stops(epoch, order.size)
        pieces = Pieces(source.rows, np.split(order, ends[:-1]))
        start = time.process_time()
        for _ in trainer.learn_pieces(pieces):
            yield time.process_time() - start
            start = time.process_time()


def violations(trainer: OnlineTrainer) -> np.ndarray:
    """What the loss of SWVP wrote down about its updates: ``losses.swvp.Violations``."""
    work = trainer._work
    assert work is not None
    counts: np.ndarray = work.scratch.counts.copy()
    return counts


def first_marks(n: int) -> np.ndarray:
    """Places in the first pass, about as far apart as they are far from the start."""
    places = np.rint(np.geomspace(min(20, n), n, 24)).astype(np.int64)
    return places[np.diff(places, prepend=0) > 0]


@dataclass(frozen=True)
class Trail:
    """A learner on its way: what it had at some numbers of samples."""

    strength: float
    samples: np.ndarray
    nnz: np.ndarray  # of the weights at that moment
    mistakes: np.ndarray

    @classmethod
    def of(
        cls, strength: float, trainer: OnlineTrainer, data: Any, passes: int, seed: int
    ) -> Trail:
        """Train, noting numbers ever more rarely in the first pass, then four times each."""

        def stops(epoch: int, n: int) -> np.ndarray:
            return np.array([n * q // 4 for q in range(1, 5)]) if epoch else first_marks(n)

        notes = [(0, 0, 0)]
        for _ in learn(trainer, data, passes, seed, stops=stops):
            notes.append((trainer.examples, trainer.support()[0], trainer.mistakes))
        return cls(strength, *np.array(notes).T)

    def exponent(self, n: int) -> float:
        """b of ``mistakes ~ samples^b``, least squares over the first pass in logarithms.

        >>> samples = np.array([0, 100, 1000, 10000])
        >>> trail = Trail(0.0, samples, samples, np.array([0, 10, 100, 1000]))
        >>> round(trail.exponent(10000), 6)
        1.0
        """
        use = (self.samples >= 50) & (self.samples <= n) & (self.mistakes > 0)
        if use.sum() < 2:
            return float("nan")
        return float(np.polyfit(np.log(self.samples[use]), np.log(self.mistakes[use]), 1)[0])

    def by_pass(self, n: int, passes: int) -> np.ndarray:
        """Mistakes in each pass of ``n`` samples."""
        return np.diff(self.mistakes[np.searchsorted(self.samples, n * np.arange(passes + 1))])

    def draw(
        self,
        plot: Plot,
        what: str,
        label: str,
        look: int,
        dashed: bool = False,
        zeros: bool = False,
    ) -> Plot:
        """A line of ``nnz`` or ``mistakes`` by samples; a logarithmic axis has no zeros."""
        values = getattr(self, what)
        use = (values > 0) | zeros
        return plot.line(self.samples[use], values[use], label, dashed, look=look)


def banded(plot: Plot, x: Any, values: Iterable[Any], name: str, **more: Any) -> Plot:
    """A line of means over seeds with a band of one deviation; ``values`` has the seeds of each x.

    >>> banded(Plot("F", "n", "%"), [1, 2], [[1.0, 3.0], [2.0, 2.0]], "SAPO").title
    'F'
    """
    each = [np.asarray(v, np.float64) for v in values]
    mean, std = np.array([v.mean() for v in each]), np.array([v.std() for v in each])
    return plot.line(x, mean, name, band=(mean - std, mean + std), **more)


def frontier(
    plot: Plot, curves: Mapping[str, Iterable[tuple[float, np.ndarray]]], lines: Mapping[str, float]
) -> Plot:
    """Scores against numbers of weights: mean and deviation over seeds; lines to compare with."""
    for look, (name, points) in enumerate(curves.items()):
        pairs = list(points)
        banded(plot, [nnz for nnz, _ in pairs], [scores for _, scores in pairs], name, look=look)
    for name, value in lines.items():
        plot.hline(value, name)
    return plot


def spread(values: np.ndarray) -> str:
    """Mean and deviation over seeds.

    >>> spread(np.array([93.0, 93.2]))
    '93.10 ± 0.14'
    """
    return f"{values.mean():.2f} ± {values.std(ddof=1) if values.size > 1 else 0.0:.2f}"


def paced(
    tell: Tell,
    start: float,
    end: float,
    items: Iterable[Any],
    text: Callable[[Any], str],
    by: int = 1,
) -> Iterator[Any]:
    """The items one by one; every so many of them, how far the work is and what comes next.

    >>> list(paced(Call(None, None, Path("out"), True, print).teller(), 0.5, 1.0, "ab", str.upper))
     50%  A
     75%  B
    ['a', 'b']
    """
    whole = list(items)
    for k, item in enumerate(whole):
        if k % by == 0:
            tell(start + (end - start) * k / len(whole), text(item))
        yield item


def grid_points(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Every point of a grid.

    >>> grid_points({"rate": (0.1,), "gravity": (0.0, 1e-3)})
    [{'rate': 0.1, 'gravity': 0.0}, {'rate': 0.1, 'gravity': 0.001}]
    """
    points: list[dict[str, Any]] = [{}]
    for name, values in grid.items():
        points = [{**point, name: value} for point in points for value in values]
    return points


def at_most(key: str, level: int) -> str:
    """The choice of a learner with at most so many weights."""
    return f"{key} ≤ {level}"


def short(value: float) -> str:
    """A strength in few letters.

    >>> short(3e-4), short(0.0), short(1.5e-3), short(0.05)
    ('3e-4', '0', '1.5e-3', '0.05')
    """
    if value == 0.0 or value >= 0.01:
        return f"{value:.2g}"
    digits, exponent = f"{value:.1e}".split("e")
    return f"{digits.removesuffix('.0')}e{int(exponent)}"


def at_edges(values: Mapping[str, Any], grid: Mapping[str, Sequence[Any]]) -> list[str]:
    """Parameters whose chosen value is an end of its grid.

    >>> at_edges({"rate": 1.0, "l1": 0.0}, {"rate": (0.1, 1.0, 10.0), "l1": (0.0, 1e-3)})
    ['l1']
    """
    return [k for k, of in grid.items() if len(of) > 1 and values[k] in (of[0], of[-1])]
