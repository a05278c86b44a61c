"""Lists for documentation, tests and benchmarks: two that can be looked at, or many made up.

They are functions of their arguments and the seed alone: the same call gives the same lists.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.moses.reader import read_moses
from hopefear.errors import HopefearError
from hopefear.metrics.lists import Bleu

_NBEST = """\
0 ||| the house is the small ||| LM0= -3 TM0= -1 -2 ||| -4
0 ||| the house is small ||| LM0= -2 TM0= -2 -2 ||| -3
1 ||| hope it is ||| LM0= -1 TM0= -1 -2 ||| -2
1 ||| it is hope ||| LM0= -2 TM0= -1 -1 ||| -2.5
"""
_REFERENCES = "the house is small\nit is hope\n"


def tiny_lists() -> CandidateLists:
    """Two lists of two candidates, with BLEU statistics.

    >>> tiny_lists().names
    ('LM0', 'TM0.0', 'TM0.1')
    """
    with tempfile.TemporaryDirectory() as folder:
        nbest, references = Path(folder, "nbest"), Path(folder, "references")
        nbest.write_text(_NBEST)
        references.write_text(_REFERENCES)
        return read_moses(nbest, references, metric=Bleu(tokenize="none"))


# What the decoder thinks of LM0, TM0.0, TM0.1, WordPenalty0 and Distortion0.
DECODER = (0.1, 0.05, 0.4, 0.3, 0.15)
_WORDS = 60


def translations(
    n: int, candidates: int = 20, *, noise: float = 1.0, seed: int = 1
) -> tuple[list[list[dict[str, Any]]], list[str]]:
    """``(lists, references)`` of made-up sentences.

    A candidate is its reference with some words replaced, left out, put in or exchanged. Five dense
    features count these mistakes, each its own kinds and all with errors; their weights in the
    decoder's score are poor. The decoder lists what it likes best first.

    Parameters
    ----------
    n, candidates : int
        Lists, and candidates of each.
    noise : float
        How far features are off, beside mistakes that count 1. More makes tuning gain less.
    seed : int
        Same seed, same lists.

    Examples
    --------
    >>> lists, references = translations(2, 3, seed=1)
    >>> len(lists), len(lists[0]), sorted(lists[0][0]["features"])
    (2, 3, ['Distortion0', 'LM0', 'TM0', 'WordPenalty0'])
    """
    if min(n, candidates) < 1 or noise < 0.0:
        raise HopefearError(
            f"{n} lists of {candidates} candidates with noise {noise:g}: give at least one of "
            "each, and noise from 0 on"
        )
    random = np.random.default_rng(seed)
    lists, references = [], []
    for _ in range(n):
        # Few words are frequent, as in language.
        right = np.minimum(random.geometric(0.06, random.integers(6, 15)), _WORDS).tolist()
        rivals = [_candidate(random, right, noise) for _ in range(candidates)]
        rivals.sort(key=lambda candidate: -candidate["score"])
        lists.append(rivals)
        references.append(_text(right))
    return lists, references


def _candidate(random: np.random.Generator, right: Sequence[int], noise: float) -> dict[str, Any]:
    words = list(right)
    replaced, lost, added, moved = random.poisson((2.0, 0.8, 0.8, 0.8)).tolist()
    for _ in range(replaced):
        words[random.integers(len(words))] = int(random.integers(1, _WORDS + 1))
    for _ in range(moved):
        k = int(random.integers(len(words) - 1))
        words[k], words[k + 1] = words[k + 1], words[k]
    for _ in range(min(lost, len(words) - 2)):
        del words[random.integers(len(words))]
    for _ in range(added):
        words.insert(int(random.integers(len(words) + 1)), int(random.integers(1, _WORDS + 1)))
    off = noise * random.normal(size=5)
    values = [
        -0.5 * len(words) - replaced - moved - added + off[0],
        -replaced - lost + off[1],
        -2.0 * lost + off[2],
        -float(len(words)),
        -moved + off[4],
    ]
    values = [round(float(value), 3) for value in values]
    return {
        "text": _text(words),
        "features": {
            "LM0": values[0],
            "TM0": values[1:3],
            "WordPenalty0": values[3],
            "Distortion0": values[4],
        },
        "score": float(np.dot(DECODER, values)),
    }


def _text(words: Sequence[int]) -> str:
    return " ".join(f"w{word}" for word in words)
