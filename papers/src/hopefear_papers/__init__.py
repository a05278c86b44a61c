"""The papers behind hopefear: experiments, run again beside their numbers, and theorems measured.

An experiment is a folder of this package; its name on the command line has dashes where the folder
has underscores. :class:`hopefear_papers.frame.Experiment` puts it to work.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path

from hopefear.errors import HopefearError

Progress = Callable[[str], None]

EXPERIMENTS: dict[str, str] = {
    "vrda-classification": "voted RDA against perceptron, truncated gradient and RDA: Table 1 and "
    "Figures 1 to 5 of Xu, Gao, Xiao and Regan",
    "vrda-reranking": "voted RDA against perceptron and truncated gradient on lists of parses: "
    "Tables 1 and 2 and Figures 3 to 6 of Gao, Xiao, Xu and He",
    "swvp-synthetic": "structured weighted violations perceptron against the perceptron on hidden "
    "Markov chains: Table 1 of Dror and Reichart",
    "swvp-parsing": "structured weighted violations perceptron against the perceptron on "
    "dependency trees of first and second order: Table 2 of Dror and Reichart",
    "dptm": "a discriminative phrase model on lists of translations, four losses by SGD, voted RDA "
    "and truncated gradient: Tables 3 and 4 and Figures 7 and 8 of Gao, Xiao, Xu and He",
    "sapo": "SAPO against CRF, perceptron, MIRA and BiLSTM on tagging, entities and chunking: "
    "Figures 1 to 5 of Sun, Ma, Zhang and Ren",
    "tuning": "MERT, MIRA, PRO and all other tuners of translation weights, with few and with many "
    "features: the comparison of the slides on large-scale discriminative training",
}


def silent(text: str) -> None:
    """A progress report that nobody sees."""


def run_experiment(
    name: str, data: Path | None, out: Path, *, quick: bool = False, progress: Progress = silent
) -> Path:
    """Run an experiment and return its page; ``results.json`` with every number lies beside it.

    Parameters
    ----------
    name : str
        One of ``EXPERIMENTS``.
    data : path, optional
        Folder that holds the corpora, a folder each. Without it the environment variable
        HOPEFEAR_DATA is asked, then ``../shared/data``; with none of them only generated data is
        used, and the page says so.
    out : path
        Folder for the results; made when missing, older results are replaced.
    quick : bool
        A small version on generated data, for a look at the page: seconds, not minutes.
    progress : callable
        Told, in a line each, how far the work is and what comes next.

    Examples
    --------
    >>> run_experiment("swvp-syn", None, Path("out"))
    Traceback (most recent call last):
        ...
    hopefear.errors.HopefearError: there is no experiment 'swvp-syn'; did you mean 'swvp-synthetic'?
    """
    if name not in EXPERIMENTS:
        near = difflib.get_close_matches(name, EXPERIMENTS, 1, cutoff=0.3)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(EXPERIMENTS)}"
        raise HopefearError(f"there is no experiment {name!r}; {hint}")
    from hopefear_papers.frame import Experiment  # the numerics; only names are needed before

    folder = None if data is None else Path(data)
    return Experiment(name).run(folder, Path(out), progress, quick=quick)
