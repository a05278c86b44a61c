"""Every reader on damaged files: one of the package's errors, or rows that fit each other."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import hopefear
from hopefear.data.files import ReadReport
from hopefear.errors import HopefearError

pytestmark = pytest.mark.interpreted

FILES = 400  # of each kind, the same in every run
SEEDS = {
    "svmlight": [b"1 1:1 2:0.5\n-1 2:1\n", b"1 3:1 2:1 3:1 # x\n0 qid:3 1:2\n",
                 b"spam 1:1\nham 2:3\n"],
    "tsv": [b"a\tfine film\nb\tno\ttab\n", b"label\ttext\na\t\"Well,\" he\nb\tno\n"],
    "csv": [b'text,label\n"a, ""b""\nc",x\nplain,y\n', b"review;stars\nfine;5\nbad;1\n"],
    "json": [b'{"text": "a", "label": "x"}\n{"text": "b\\u00e9", "label": 2}\n'],
    "fasttext": [b"__label__a fine film\n__label__b no\n"],
    "vw": [b"1 2.0 'tag |ns:2 a b:3 |x c\n-1 |x c:-1\n"],
    "columns": [b"He PRP B-NP\nis VBZ I-VP\n\n-DOCSTART- -X- O\n\nWhy\tWRB O\n",
                b"a\tX B-A\nb\tY O\n"],
    "conllu": [b"# c\n1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_\n1\tde\tde\tADP\t_\t_\t0\tr\t_\t_\n"
               b"2\tle\tle\tDET\t_\t_\t1\td\t_\t_\n"],
    "crfsuite": [b"B-NP\tw=He\tlen:2\nO\tw=\\:\n\n@weight:0.5\nO\tw=is\n"],
    "lists": [b'{"candidates": [{"text": "a", "cost": 0, "features": {"f": 1}}, {"cost": 1}]}\n'
              b'{"id": "x", "candidates": [{"text": "a", "cost": 0}]}\n'],
    "ptb": [b'{"id": 1, "gold": "(S (A a))", '
            b'"candidates": [{"tree": "(S (A a))", "logprob": -1}]}\n'],
    "bllip": [b"2\ts1\n-1\n(S1 (S (A a)))\n-2\n(S1 (X (A a)))\n\n1\ts2\n-1\n(S1 (S (A b)))\n"],
    "moses": [b"0 ||| a b ||| LM0= -1 TM0= -2 3 ||| -3\n"
              b"0 ||| x ||| LM0= -2 TM0= 0 0 w_x= 1 ||| -4\n"],
}  # fmt: skip
TASK = {"lists": ("json", "rerank")}
PIECES = [
    b"\n", b"\t", b" ", b"\r\n", b"\0", b"\xff", b"\xc3", b"\xef\xbb\xbf", b'"', b"|", b"|||",
    b":", b"1e999", b"nan", b"-", b"{", b"}", b"[", b"__label__", b"\\u0000", b"\\ud800",
    b"999999999999", b"I-LOC", b"B_PER", b"label\ttext\n", b"0.123 1:1\n", b"\xff\xfe",
    b"\x1f\x8b", b"# ", b"@",
]  # fmt: skip


def mutated(rng: random.Random, seeds: list[bytes]) -> bytes:
    data = rng.choice(seeds)
    for _ in range(rng.randint(0, 4)):
        a = rng.randint(0, len(data))
        b = rng.choice([a, min(len(data), a + rng.randint(0, 9))])
        c = rng.randint(0, len(data))
        middle = rng.choice(
            [b"", rng.choice(PIECES), rng.randbytes(2), data[min(a, c) : max(a, c)]]
        )
        data = data[:a] + middle + data[b:]
    return data


@pytest.mark.parametrize("name", SEEDS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_damaged_files_are_read_or_refused(name: str, tmp_path: Path) -> None:
    rng, path = random.Random(name), tmp_path / "data"
    form, task = TASK.get(name, (name, None))
    for count in range(FILES):
        refused = 0
        data = mutated(rng, SEEDS[name]) if count else SEEDS[name][0]
        path.write_bytes(data)
        for chosen, on_error in (("auto", "raise"), (form, "skip")):
            report = ReadReport()
            try:
                X, y, _ = hopefear.read(
                    path, chosen, task=task if chosen != "auto" else None, on_error=on_error,
                    report=report,
                )  # fmt: skip
            except HopefearError:
                refused += 1
                continue
            sound(X, y, data)
        assert count or not refused, "the first seed is sound"


def sound(X, y, data: bytes) -> None:
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    assert n > 0 and (y is None or len(y) == n), data
    if isinstance(y, np.ndarray):
        assert not hasattr(X, "shape") or np.isfinite(X.data).all(), data
        header = data.startswith(b"label\ttext\n") and data.count(b"label") == 1
        assert "label" not in y or not header, data
        assert sum(float(c) % 1 != 0 for c in set(y) if _is_number(c)) <= max(3, n / 4), data
    elif y is not None and not isinstance(X[0], str):
        assert all(len(a) == len(b) for a, b in zip(X, y, strict=True) if not isinstance(a, dict))


def _is_number(text: str) -> bool:
    try:
        return np.isfinite(float(text))
    except ValueError:
        return False
