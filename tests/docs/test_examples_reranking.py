"""The examples of reranking run, and what they show is so."""

from __future__ import annotations

import re
import subprocess
import sys

from places import ROOT

EXAMPLES = ROOT / "examples"


def output(name: str) -> str:
    answer = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def test_transcripts():
    said = output("rerank_transcripts.py")
    ours, theirs = map(float, re.findall(r"word error rate ([\d.]+), .*?([\d.]+) \(p", said)[0])
    assert ours < theirs / 2
    best = re.findall(r"said: (.*)\n  [\d.]+ (.*)\n", said)
    assert best and best[0][0] == best[0][1]


def test_parses():
    said = output("rerank_parses.py")
    scores = {k: float(v) for k, v in re.findall(r"^(model|1-best|oracle) +([\d.]+)", said, re.M)}
    assert scores["1-best"] + 3 < scores["model"] <= scores["oracle"]
    kept, all_ = map(int, re.findall(r"(\d+) of (\d+) features have a weight", said)[0])
    assert 0 < kept < all_
    first, chosen = re.findall(r"(?:first|choice): (.*)", said)
    assert first != chosen
