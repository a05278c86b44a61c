"""What every experiment stands on: corpora, runs that are kept, trails, files that are written."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numba
import numpy as np

from hopefear import __version__
from hopefear.errors import HopefearError
from hopefear.report import Page
from hopefear.storage import write_atomically

BESIDE = Path("..", "shared", "data")


def find_data(data: Path | None) -> Path | None:
    """The folder of the corpora: the one given, HOPEFEAR_DATA, ``../shared/data``, or none.

    >>> find_data(Path("corpora")).name
    'corpora'
    """
    if data is not None:
        return data
    if named := os.environ.get("HOPEFEAR_DATA"):
        return Path(named)
    return BESIDE if BESIDE.is_dir() else None


def find_files(
    data: Path | None, folder: str, wanted: Iterable[str], what: str, otherwise: str = ""
) -> Path:
    """A folder of the corpora that an experiment cannot do without.

    Parameters
    ----------
    data : path, optional
        As in :func:`find_data`.
    folder : str
        Its name there.
    wanted : iterable of str
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
    found = (find_data(data) or BESIDE) / folder
    if lost := [name for name in wanted if not (found / name).is_file()]:
        raise HopefearError(
            f"{found} has no {', '.join(lost)}: this experiment needs {what}; give --data, or set "
            f"HOPEFEAR_DATA, to a folder that holds {folder}{otherwise}"
        )
    return found


class KeptRuns:
    """A folder with a file for every run.

    A file is used again when what it says of its making is what is wanted now: signature, data,
    version. It does not know of edits in the code; remove the folder after those.

    Parameters
    ----------
    folder : path
        Made when missing.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kept = KeptRuns(Path(folder) / "runs")
    ...     kept.of("times", {"seed": 1}, lambda: {"a": [1.0]})
    ...     kept.of("times", {"seed": 1}, lambda: {"a": [2.0]})
    {'a': [1.0]}
    {'a': [1.0]}
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise HopefearError(
                f"{folder}: cannot be made a folder ({error.strerror}); give another --out"
            ) from error

    def of(self, name: str, identity: Mapping[str, Any], make: Callable[[], Any]) -> Any:
        """What has this name, if JSON can hold it; made, and kept, where none is like it yet."""
        path = self.folder / (re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-") + ".json")
        wanted = {**identity, "v": __version__}
        found = _read(path)
        if found.get("identity") == wanted:
            return found["content"]
        content = make()
        text = json.dumps({"identity": wanted, "content": content}, allow_nan=False)
        write_atomically(path, text.encode())
        return content


def _read(path: Path) -> dict[str, Any]:
    """What a file holds; nothing where it is missing or was not written by us."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and "content" in found else {}


class JudgedClaim(Protocol):
    """A verdict of any experiment: a named tuple."""

    def _asdict(self) -> dict[str, Any]: ...


def versions() -> dict[str, str]:
    """Of what the numbers depend on."""
    return {
        "hopefear": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
    }


def signature_of(**parts: object) -> str:
    """What numbers came from, in one line that ends with our version.

    >>> signature_of(experiment="sapo", n=5).rpartition("|")[0]
    'experiment:sapo|n:5'
    """
    return "|".join(f"{key}:{value}" for key, value in (parts | {"v": __version__}).items())


def signed(signature: str) -> str:
    """A signature with all versions, as a page has it."""
    return signature + "\n" + " ".join(f"{k}:{v}" for k, v in versions().items())


def results_file(
    signature: str, quick: bool, content: Mapping[str, Any], verdicts: Iterable[JudgedClaim]
) -> bytes:
    """The file ``results.json``: what the numbers came from, the numbers, and the verdicts.

    >>> file = results_file("experiment:sapo", True, {"tests": []}, [])
    >>> list(json.loads(file))
    ['signature', 'versions', 'quick', 'tests', 'verdicts']
    """
    whole = {
        "signature": signature,
        "versions": versions(),
        "quick": quick,
        **content,
        "verdicts": [v._asdict() for v in verdicts],
    }
    return (json.dumps(whole, indent=1, allow_nan=False) + "\n").encode()


def runs_in(out: Path, quick: bool) -> KeptRuns:
    """Where the runs of an experiment are kept."""
    return KeptRuns(out / ("runs-quick" if quick else "runs"))


def telling(progress: Callable[[str], None], share: float = 1.0) -> Callable[[float, str], None]:
    """Tells how far a measurement is that makes up this share of the whole.

    >>> telling(print, 0.5)(1.0, "MERT, seed 1")
     50%  MERT, seed 1
    """
    return lambda done, text: progress(f"{share * done:4.0%}  {text}")


def write_files(
    out: Path, page: Page, results: bytes, table: str, progress: Callable[[str], None]
) -> Path:
    """Write ``results.json`` and ``report.html``, tell the table, and return the page's path."""
    path = out / "report.html"
    page.write(path)
    write_atomically(out / "results.json", results)
    progress(table)
    return path


@dataclass(frozen=True)
class Trail:
    """A learner on its way: what it had at some numbers of samples."""

    strength: float
    samples: np.ndarray
    nnz: np.ndarray  # of the weights at that moment
    mistakes: np.ndarray


def exponent(trail: Trail, n: int) -> float:
    """b of ``mistakes ~ samples^b``, least squares over the first pass in logarithms.

    >>> samples = np.array([0, 100, 1000, 10000])
    >>> round(exponent(Trail(0.0, samples, samples, np.array([0, 10, 100, 1000])), 10000), 6)
    1.0
    """
    use = (trail.samples >= 50) & (trail.samples <= n) & (trail.mistakes > 0)
    if use.sum() < 2:
        return float("nan")
    return float(np.polyfit(np.log(trail.samples[use]), np.log(trail.mistakes[use]), 1)[0])


def order_of(first: Iterable[float], second: Iterable[float]) -> float:
    """Spearman's rank correlation; 0 where one side is all alike.

    >>> order_of([1, 2, 3], [30, 20, 10]), order_of([1, 2, 3], [5, 5, 5])
    (-1.0, 0.0)
    """
    a, b = (_ranks(np.asarray(list(v), float)) for v in (first, second))
    if a.std() == 0.0 or b.std() == 0.0:
        return 0.0
    return round(float(np.corrcoef(a, b)[0, 1]), 12)


def _ranks(values: np.ndarray) -> np.ndarray:
    """Ranks, the mean of their places for equal ones."""
    below = (values[:, None] > values).sum(axis=1)
    return below + ((values[:, None] == values).sum(axis=1) - 1) / 2.0


def spread(values: np.ndarray) -> str:
    """Mean and deviation over seeds.

    >>> spread(np.array([93.0, 93.2]))
    '93.10 ± 0.14'
    """
    return f"{values.mean():.2f} ± {values.std(ddof=1) if values.size > 1 else 0.0:.2f}"
