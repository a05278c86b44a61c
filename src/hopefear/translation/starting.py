"""Weights to begin with."""

from __future__ import annotations

import numpy as np

from hopefear.core.arrays import frozen
from hopefear.data.moses.lists import TuningLists
from hopefear.errors import HopefearError
from hopefear.translation.weights import Weights

STARTS = ("auto", "decoder", "moses", "uniform")
# What Moses gives an untuned system, by the beginning of a feature's name.
_MOSES = {
    "WordPenalty": -1.0,
    "PhrasePenalty": 0.2,
    "TranslationModel": 0.2,
    "PhraseDictionary": 0.2,
    "LexicalReordering": 0.3,
    "Distortion": 0.3,
    "LM": 0.5,
    "KENLM": 0.5,
    "SRILM": 0.5,
    "Generation": 0.3,
}
# Share of the variance of decoder scores that weights must explain to pass for the decoder's.
_CLOSE = 0.99
# Lists that are looked at together: copies in double precision of all would need much room.
_BLOCK = 1024


def start_weights(lists: TuningLists, start: str | Weights = "auto") -> Weights:
    """Weights of the dense features to begin with; their sizes sum to 1.

    Lengths of steps and prices of costs mean something beside scores of a known scale only, and
    the scale of weights changes no choice.

    Parameters
    ----------
    lists : TuningLists
        The lists that will be tuned on.
    start : Weights or {"auto", "decoder", "moses", "uniform"}
        ``decoder``: those that explain the decoder's scores, by least squares within the lists.
        ``moses``: what Moses gives an untuned system, 0.1 for names that it does not know.
        ``uniform``: all alike. ``auto``: the decoder's where they explain its scores, else those
        of Moses. Which one it was, ``about["start"]`` of the result says.

    Examples
    --------
    >>> from hopefear.translation.examples import tiny_lists
    >>> start_weights(tiny_lists(), "moses").dense.tolist()
    [0.7142857142857143, 0.14285714285714288, 0.14285714285714288]
    """
    if isinstance(start, Weights):
        return _of_one_scale(start.arranged(lists.layout, lists.source))
    if start not in STARTS:
        raise HopefearError(f"start is a weights file or one of {', '.join(STARTS)}, not {start!r}")
    if start in ("auto", "decoder"):
        values, explained = decoder_weights(lists)
        if explained >= _CLOSE:
            return _of_one_scale(Weights(lists.layout, values, about={"start": "decoder"}))
        if start == "decoder":
            raise HopefearError(
                f"{lists.source}: no weights of the dense features explain the decoder's scores "
                f"(the best explain {100 * explained:.1f} %); give its weights, or start from moses"
            )
    if start == "uniform":
        alike = np.full(len(lists.names), 1.0 / max(1, len(lists.names)))
        return Weights(lists.layout, alike, about={"start": "uniform"})
    usual = [_moses(name) for name, width in lists.layout for _ in range(width)]
    return _of_one_scale(Weights(lists.layout, np.array(usual), about={"start": "moses"}))


def _of_one_scale(weights: Weights) -> Weights:
    """Normalized, unless there are sparse weights only."""
    return weights.normalized() if weights.dense.any() else weights


def _moses(name: str) -> float:
    known = [value for begin, value in _MOSES.items() if name.startswith(begin)]
    return known[0] if known else 0.1


def decoder_weights(lists: TuningLists) -> tuple[np.ndarray, float]:
    """(weights that explain the decoder's scores best, share of their variance that they explain).

    Only differences within a list count: what is the same for all of its candidates, such as a
    penalty for unknown words, has no weight here.
    """
    width = lists.dense.shape[1]
    squares, products, total = np.zeros((width, width)), np.zeros(width), 0.0
    for first in range(0, len(lists), _BLOCK):
        block = lists.slice(first, min(first + _BLOCK, len(lists)))
        features = _centred(block.dense, block.starts)
        scores = _centred(block.scores[:, None], block.starts)[:, 0]
        squares += features.T @ features
        products += features.T @ scores
        total += float(scores @ scores)
    if total == 0.0 or not width:
        return frozen(np.zeros(width)), 0.0
    found = np.linalg.lstsq(squares, products, rcond=1e-10)[0]
    missed = total - 2.0 * float(found @ products) + float(found @ squares @ found)
    return found, 1.0 - max(0.0, missed) / total


def _centred(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    sizes, exact = np.diff(starts), values.astype(np.float64)
    means = np.add.reduceat(exact, starts[:-1], axis=0) / sizes[:, None]
    return exact - np.repeat(means, sizes, axis=0)
