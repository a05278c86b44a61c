"""The page: verdicts first, then every part of the comparison, what MIRA chooses, and times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from hopefear.losses.exponential import Exponential
from hopefear.losses.hinge import Hinge
from hopefear.losses.logistic import Logistic
from hopefear.report.plot import Plot
from hopefear_papers import pages
from hopefear_papers.claims import p_cell, tally
from hopefear_papers.frame import Call
from hopefear_papers.pages import Block, Details, Heading, Table
from hopefear_papers.translations import METRIC
from hopefear_papers.tuning.claims import DRAWN, FEATURES, MARGIN, NOT_THEIRS, PEERS, SOURCE
from hopefear_papers.tuning.plan import (
    AWAY,
    CORPORA,
    TESTS,
    TOWARD,
    VAL,
    Part,
    Plan,
    choice_key,
)
from hopefear_papers.tuning.runs import Result, Results, best_so_far

WHERE = (VAL, *TESTS)
_FIXED = {"start": "untuned", "decoder": "decoder's first", "oracle": "oracle"}
_PAIRS = [(toward, away) for toward in TOWARD for away in AWAY]
SHOWN = ("mert", "kbmira", "mira", "pro-slow", "pro", "rampion", "ssvm", "risk", "expected-bleu")
_RESTARTED = "mert"  # its rounds are starts, which know no order: the best so far counts


def signature(plan: Plan) -> dict[str, object]:
    return {
        "parts": ",".join(part.key for part in plan.parts),
        "start": "moses",
        "seeds": ",".join(map(str, plan.seeds)),
        "metric": METRIC.signature,
    }


def mean_range(values: np.ndarray) -> str:
    """Mean, and the range where there are several.

    >>> mean_range(np.array([1.0, 2.0])), mean_range(np.array([1.0]))
    ('1.50 (1.00–2.00)', '1.00')
    """
    mean = f"{values.mean():.2f}"
    return f"{mean} ({values.min():.2f}–{values.max():.2f})" if len(values) > 1 else mean


def table_text(results: Results) -> str:
    """All tuners, for a terminal."""
    lines = []
    for part in results.plan.parts:
        size = results.features[part.key]
        lines.append(f"{part.title} ({size:,} features)")
        lines.append(f"  {'':32}" + "".join(f"{where:>11}" for where in WHERE) + f"{'CPU s':>9}")
        for result in results.results[part.key].values():
            if result.refused:
                lines.append(f"  {result.entry.title:32}refuses")
                continue
            scores = "".join(f"{result.scores(where).mean():>11.2f}" for where in WHERE)
            lines.append(f"  {result.entry.title:32}{scores}{result.seconds:>9.2f}")
    return "\n".join(lines)


def content(results: Results, call: Call) -> dict[str, Any]:
    return {
        "seeds": list(call.plan.seeds),
        "lists": results.lists,
        "features": results.features,
        "fixed": results.fixed,
        "results": {
            part: {key: _result(result) for key, result in tuners.items()}
            for part, tuners in results.results.items()
        },
        "tests": results.against.plain(),
    }


def _result(result: Result) -> dict[str, Any]:
    return {
        "title": result.entry.title,
        "recipe": result.entry.recipe,
        "params": dict(result.params),
        "trials": [trial._asdict() for trial in result.trials],
        "runs": [{k: v for k, v in asdict(run).items() if k != "choices"} for run in result.runs],
    }


def by_round(results: Results, part: Part) -> list[Plot]:
    """A plot for val and one for each test set."""
    plots = []
    for where in (VAL, *TESTS):
        plot = Plot(f"{where}", "round (MERT: start)", "BLEU")
        for look, key in enumerate(key for key in SHOWN if results.has((part.key, key))):
            _curve(plot, results.of(part.key, key), where, look)
        for way in ("start", "decoder"):
            plot.hline(results.fixed[way][where], "untuned" if way == "start" else "decoder")
        plots.append(plot)
    return plots


def _curve(plot: Plot, result: Result, where: str, look: int) -> None:
    runs = []
    for run in result.runs:
        rounds = best_so_far(run) if result.entry.recipe == _RESTARTED else run.rounds
        key = where if where != VAL else ("dev" if "dev" in rounds else "train")
        runs.append(rounds[key])
    length = min(map(len, runs))
    if not length:
        return
    curves = np.array([values[:length] for values in runs])
    x = np.arange(1, length + 1)
    if length == 1:
        plot.points(x, curves.mean(axis=0), result.entry.title, look=look)
        return
    band = (curves.min(axis=0), curves.max(axis=0)) if len(runs) > 1 else None
    plot.line(x, curves.mean(axis=0), result.entry.title, band=band, look=look)


def times(results: Results, parts: Sequence[Part]) -> Plot:
    """CPU seconds against BLEU on both test sets, a point for each tuner."""
    plot = Plot("time and BLEU", "CPU seconds of tuning", "BLEU, mean of both tests", "log")
    for look, part in enumerate(parts):
        every = results.results[part.key].values()
        tuners = [r for r in every if not r.refused and r.seconds > 0.0]
        if tuners:
            points = [np.mean([r.scores(test).mean() for test in TESTS]) for r in tuners]
            plot.points([r.seconds for r in tuners], points, part.title, look=look)
    return plot


class Report(pages.Report):
    """Tables and plots of the page."""

    results: Results
    plan: Plan
    ours = (DRAWN, NOT_THEIRS)

    def values(self) -> dict[str, Any]:
        drawn = [v for v in self.all_verdicts if v.claim.startswith(DRAWN)]
        said = [v for v in self.all_verdicts if not v.claim.startswith((DRAWN, NOT_THEIRS))]
        return super().values() | {
            "said": tally(said, ""),
            "drawn": tally(drawn, ""),
            "n_drawn": len(drawn),
            "FEATURES": FEATURES,
            "MARGIN": MARGIN,
        }

    def verdicts(self) -> Iterator[Block]:
        rows = [[v.claim, v.verdict, v.evidence] for v in self.all_verdicts]
        yield Table(["claim", "verdict", "evidence"], rows, "Verdicts.", align="l")

    def parts(self) -> Iterator[Block]:
        for part in self.plan.parts:
            yield from self.part(part)
            if part.key == "dense":
                yield from self.choices()

    def part(self, part: Part) -> Iterator[Block]:
        """One section: every tuner of a part."""
        results = self.results
        lists, candidates = results.lists[part.tuned_on]
        yield Heading(part.title)
        yield (
            f"{results.features[part.key]:,} features; tuned on {part.tuned_on} ({lists:,} lists, "
            f"{candidates:,} candidates) from the weights of an untuned Moses. "
            + (
                f"{VAL} is held out: it chooses parameters where there is a grid, and rounds; HOLS "
                "takes its steps on it, so that its BLEU there is not that of unseen lists. "
                if part.held_out
                else "Rounds, and parameters where there is a grid, are chosen on the tuning "
                "lists. "
            )
            + "Tests were looked at after each round, and nothing was chosen by them. BLEU: mean, "
            "and range over seeds. p against the decoder's first candidates on both tests. "
            f"{SOURCE}: beside ours where there is such a tool."
        )
        peers = PEERS.get(part.key, {})
        rows: list[list[object]] = []
        for way, title in _FIXED.items():
            scores = (f"{results.fixed[way][where]:.2f}" for where in WHERE)
            rows.append([title, *scores, *[None] * 6, _peer(peers, way)])
        tuners = [r for r in results.results[part.key].values() if _has_row(r)]
        for result in sorted(tuners, key=_order):
            rows.append(_row(results, result, _peer(peers, result.entry.key)))
        heads = ["tuner", *WHERE, "tests − decoder", "p", "CPU s", "rounds", "kept", "NNZ"]
        yield Table(
            [*heads, "peer: val, 2016, 2017; CPU s"],
            rows,
            f"**{part.title}**, by BLEU on {VAL}.",
            align="lr",
        )
        for result in tuners:
            if result.refused:
                yield f"{result.entry.title} refuses: {result.refused}"
        yield "**Axes do not start at 0.** Shades: range over seeds."
        yield by_round(results, part)
        trials = [[r.entry.title, _text(t.params), t.val] for r in tuners for t in r.trials]
        if trials:
            table = Table(["tuner", "parameters", VAL], trials, "One seed each.", align="llr")
            yield Details("Grids", [table])

    def choices(self) -> Iterator[Block]:
        """A section on what MIRA hopes for and fears."""
        results, keys = self.results, [choice_key("hope", "fear", c) for c in CORPORA]
        if not any(results.has(("dense", key)) for key in keys):
            return
        yield Heading("MIRA: what to hope for, what to fear, and BLEU in a context")
        yield (
            "Toward hope (score − cost) or the oracle (least cost), away from fear (score + cost), "
            "the prediction (highest score) or the worst (highest cost); costs by smoothed BLEU of "
            "single sentences, or of a pseudo-corpus that remembers 0.9 or 0.999 of itself. C is "
            f"chosen on {VAL} for each. * marks p < 0.05 against hope and fear of the same column."
        )
        for where in WHERE:
            rows = []
            for toward, away in _PAIRS:
                row: list[object] = [f"{toward} / {away}"]
                for corpus in CORPORA:
                    ours, other = (
                        ("dense", choice_key(*pair, corpus)) for pair in (_PAIRS[0], (toward, away))
                    )
                    if not results.has(other):
                        row.append(None)
                        continue
                    better = other != ours and results.against(ours, other).significant
                    scores = mean_range(results.of(*other).scores(where))
                    row.append(scores + ("*" if better and where != VAL else ""))
                rows.append(row)
            caption = f"**{where}**; tests are compared together."
            yield Table(["toward / away", *CORPORA], rows, caption, "lrrr")
        yield Heading("Parameters and differences", 3)
        rows = []
        for pair in _PAIRS:
            tuners = [("dense", choice_key(*pair, corpus)) for corpus in CORPORA]
            texts = (_text(_gridded(results.of(*t))) if results.has(t) else None for t in tuners)
            rows.append([" / ".join(pair), *texts])
        yield Details(
            "C that was chosen", [Table(["toward / away", *CORPORA], rows, "", align="l")]
        )

    def times(self) -> Plot:
        return times(self.results, self.plan.parts)

    def time_table(self) -> Details:
        rows: list[list[object]] = []
        for part in self.plan.parts:
            for result in self.results.results[part.key].values():
                if not result.refused and _has_row(result):
                    each = float(np.mean([run.each for run in result.runs]))
                    rows.append([part.title, result.entry.title, result.seconds, each])
        heads = ["part", "tuner", "CPU s", "s, quickest round (wall)"]
        return Details("Table", [Table(heads, rows, "Means over seeds.")])

    def losses(self) -> list[Plot]:
        """What the slides draw under "a comparison of the loss function"."""
        margins = np.linspace(-2.0, 3.0, 101)
        curves: dict[str, Any] = {
            "direct loss": (margins <= 0.0).astype(float),
            "hinge (MIRA)": [Hinge().value(m) for m in margins],
            "log loss, base 2": [Logistic(base=2.0).value(m) for m in margins],
            "exponential": [min(4.0, Exponential().value(m)) for m in margins],
            "perceptron": np.maximum(0.0, -margins),
            "ramp": np.clip(1.0 - margins, 0.0, 2.0),
        }
        plot = Plot("losses by margin", "margin M", "loss")
        for look, (title, values) in enumerate(curves.items()):
            plot.line(margins, values, title, dashed=look == 0, look=look)
        return [plot]

    def sizes(self) -> dict[str, object]:
        results, plan = self.results, self.plan
        lists = results.lists.items()
        return (
            {f"{name}: lists, candidates": f"{a:,}, {b:,}" for name, (a, b) in lists}
            | {f"features, {part.key}": results.features[part.key] for part in plan.parts}
            | {"seeds": list(plan.seeds), "draws of each test": plan.replicates}
        )

    def signatures(self) -> Details:
        tuners = [
            [part.key, r.entry.title, r.runs[0].signature]
            for part in self.plan.parts
            for r in self.results.results[part.key].values()
        ]
        table = Table(["part", "tuner", "signature"], tuners, align="l")
        return Details("Signatures", [table])


def _has_row(result: Result) -> bool:
    """Whether a tuner has a row of its own: choices of MIRA have a table."""
    return not result.entry.key.startswith("mira-")


def _order(result: Result) -> float:
    return np.inf if result.refused else -float(result.scores(VAL).mean())


def _row(results: Results, result: Result, peer: str | None) -> list[object]:
    title = result.entry.title
    if result.trials:
        title += f" ({_text(_gridded(result))})"
    if result.refused:
        return [title, *["refuses"] * len(WHERE), *[None] * 6, peer]
    difference = results.against((result.part, result.entry.key), ("fixed", "decoder"))
    scores = (mean_range(result.scores(where)) for where in WHERE)
    test = [difference.gap, p_cell(difference.p), f"{result.seconds:.2f}"]
    rounds = max(len(run.rounds["train"]) for run in result.runs)
    nnz = f"{np.mean([run.nnz for run in result.runs]):,.0f}"
    return [title, *scores, *test, rounds, ", ".join(str(r.kept) for r in result.runs), nnz, peer]


def _peer(peers: Mapping[str, Any], key: str) -> str | None:
    if key not in peers:
        return None
    peer = peers[key]
    scores = ", ".join(f"{score:.2f}" for score in peer[:3])
    return f"{scores}; {peer.seconds}" if peer.seconds else scores


def _gridded(result: Result) -> dict[str, Any]:
    return {k: v for k, v in result.params.items() if k in result.entry.grid}


def _text(params: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in params.items()
    )
