"""Two lists of translations, small enough to be looked at; for documentation and tests."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hopefear.data.moses.lists import TuningLists
from hopefear.data.moses.reading import read_moses
from hopefear.metrics.lists.bleu import BleuCounts

_NBEST = """\
0 ||| the house is the small ||| LM0= -3 TM0= -1 -2 ||| -4
0 ||| the house is small ||| LM0= -2 TM0= -2 -2 ||| -3
1 ||| hope it is ||| LM0= -1 TM0= -1 -2 ||| -2
1 ||| it is hope ||| LM0= -2 TM0= -1 -1 ||| -2.5
"""
_REFERENCES = "the house is small\nit is hope\n"


def tiny_lists() -> TuningLists:
    """Two lists of two candidates, with BLEU statistics.

    >>> tiny_lists().names
    ('LM0', 'TM0.0', 'TM0.1')
    """
    with tempfile.TemporaryDirectory() as folder:
        nbest, references = Path(folder, "nbest"), Path(folder, "references")
        nbest.write_text(_NBEST)
        references.write_text(_REFERENCES)
        return read_moses(nbest, references, metric=BleuCounts())
