"""Why tokens got their labels: the features that made each beat the runner-up."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from hopefear.cli.tag.reading import Text
from hopefear.data.sequences import SequenceDataset
from hopefear.errors import HopefearError
from hopefear.tasks.tag.model import SequenceModel
from hopefear.training.predictors import LinearPredictor


def explanations(
    model: SequenceModel, text: Text, data: SequenceDataset, args: argparse.Namespace
) -> Iterator[bytes]:
    """A paragraph for each token, or a line of JSON."""
    if not isinstance(model.predictor, LinearPredictor):
        raise HopefearError(
            f"{args.model}: a voted model has no single weight for a feature; train with "
            "-p readout=averaged to have labels explained"
        )
    shown = _as_json if args.json else _as_text
    for i, t in _wanted(data, args.explain_token):
        k = int(data.rows.starts[i]) + t
        facts: dict[str, Any] = {
            "sentence": i + 1,
            "token": t + 1,
            "line": text.place(k)[1],
            "word": None if text.words is None else text.words[k],
        }
        try:
            found = model.explain(data, i, t, constrained=not args.no_constraints)
        except HopefearError as error:
            if args.explain_token:
                raise
            yield shown({**facts, "note": str(error)})
            continue
        features = [{"name": n, "amount": a} for n, a in found.contributions[: args.top]]
        facts |= {
            "label": found.label,
            "runner_up": found.runner_up,
            "gap": found.gap,
            "features": features,
            "more": len(found.contributions) - len(features),
        }
        yield shown(facts)


def _wanted(data: SequenceDataset, place: tuple[int, int] | None) -> Iterator[tuple[int, int]]:
    sizes = np.diff(data.rows.starts).tolist()
    if place is not None:
        sentence, token = place
        if sentence > len(sizes) or token > sizes[sentence - 1]:
            raise HopefearError(
                f"--explain-token {sentence}:{token}: there is no such token in {data.source}"
            )
        yield sentence - 1, token - 1
        return
    for i, size in enumerate(sizes):
        yield from ((i, t) for t in range(size))


def _as_json(facts: dict[str, Any]) -> bytes:
    return json.dumps(facts, ensure_ascii=False).encode() + b"\n"


def _as_text(facts: dict[str, Any]) -> bytes:
    place = f"sentence {facts['sentence']}, token {facts['token']}"
    word = "" if facts["word"] is None else f": {facts['word']}"
    if "note" in facts:
        return f"{place}{word}\n  {facts['note']}\n\n".encode()
    lines = [
        f"{place}{word}",
        f"  {facts['label']}, not {facts['runner_up']}, by {facts['gap']:.4f}",
    ]
    lines += [f"  {f['amount']:+10.4f}  {f['name']}" for f in facts["features"]]
    if facts["more"]:
        lines.append(f"  … and {facts['more']} more")
    return ("\n".join(lines) + "\n\n").encode()
