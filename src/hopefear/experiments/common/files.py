"""What an experiment leaves in its folder: a page, every number as JSON, and its runs."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

import numba
import numpy as np

from hopefear import __version__
from hopefear.experiments.common.kept_runs import KeptRuns
from hopefear.report import Page
from hopefear.storage import write_atomically


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
