"""The page: verdicts first, then tables of all tuners and BLEU by round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from hopefear.experiments.claims import gap_text, p_text, tally
from hopefear.experiments.frame import results_file, signature_of, signed
from hopefear.experiments.translations import METRIC
from hopefear.experiments.tuning.claims import (
    FEATURES,
    MARGIN,
    NOT_THEIRS,
    PEERS,
    SOURCE,
    TITLE,
    Judge,
    Verdict,
)
from hopefear.experiments.tuning.plan import (
    AWAY,
    CORPORA,
    TESTS,
    TOWARD,
    VAL,
    Part,
    Plan,
    choice_key,
)
from hopefear.experiments.tuning.runs import Measured, Result, best_so_far
from hopefear.report import Page
from hopefear.report.plot import Plot

WHERE = (VAL, *TESTS)


def signature(plan: Plan) -> str:
    """What the numbers came from, in one line."""
    parts = {
        "experiment": "tuning",
        "parts": ",".join(part.key for part in plan.parts),
        "start": "moses",
        "seeds": ",".join(map(str, plan.seeds)),
        "metric": METRIC.signature(),
    }
    return signature_of(**parts)


def mean_range(values: np.ndarray) -> str:
    """Mean, and the range where there are several.

    >>> mean_range(np.array([1.0, 2.0])), mean_range(np.array([1.0]))
    ('1.50 (1.00–2.00)', '1.00')
    """
    mean = f"{values.mean():.2f}"
    return f"{mean} ({values.min():.2f}–{values.max():.2f})" if len(values) > 1 else mean


def table_text(made: Measured, plan: Plan) -> str:
    """All tuners, for a terminal."""
    lines = []
    for part in plan.parts:
        size = made.features[part.key]
        lines.append(f"{part.title} ({size:,} features)")
        lines.append(f"  {'':32}" + "".join(f"{where:>11}" for where in WHERE) + f"{'CPU s':>9}")
        for result in made.results[part.key].values():
            if result.refused:
                lines.append(f"  {result.entry.title:32}refuses")
                continue
            scores = "".join(f"{result.scores(where).mean():>11.2f}" for where in WHERE)
            lines.append(f"  {result.entry.title:32}{scores}{result.seconds:>9.2f}")
    return "\n".join(lines)


def to_json(
    made: Measured, judge: Judge, verdicts: Sequence[Verdict], plan: Plan, quick: bool
) -> bytes:
    """The file ``results.json``."""
    content = {
        "seeds": list(plan.seeds),
        "lists": made.lists,
        "features": made.features,
        "fixed": made.fixed,
        "results": {
            part: {key: _result(result) for key, result in found.items()}
            for part, found in made.results.items()
        },
        "tests": judge.to_json(),
    }
    return results_file(signature(plan), quick, content, verdicts)


def _result(result: Result) -> dict[str, Any]:
    return {
        "title": result.entry.title,
        "recipe": result.entry.recipe,
        "params": dict(result.params),
        "trials": [trial._asdict() for trial in result.trials],
        "runs": [{k: v for k, v in asdict(run).items() if k != "choices"} for run in result.runs],
    }


SHOWN = ("mert", "kbmira", "mira", "pro-slow", "pro", "rampion", "ssvm", "risk", "expected-bleu")
_RESTARTED = "mert"  # its rounds are starts, which know no order: the best so far counts


def by_round(made: Measured, part: Part) -> list[Plot]:
    """A plot for val and one for each test set."""
    plots = []
    for where in (VAL, *TESTS):
        plot = Plot(f"{where}", "round (MERT: start)", "BLEU")
        for look, key in enumerate(key for key in SHOWN if made.has(part.key, key)):
            _curve(plot, made.of(part.key, key), where, look)
        for way in ("start", "decoder"):
            plot.hline(made.fixed[way][where], "untuned" if way == "start" else "decoder")
        plots.append(plot)
    return plots


def _curve(plot: Plot, result: Result, where: str, look: int) -> None:
    found = []
    for run in result.runs:
        rounds = best_so_far(run) if result.entry.recipe == _RESTARTED else run.rounds
        key = where if where != VAL else ("dev" if "dev" in rounds else "train")
        found.append(rounds[key])
    length = min(map(len, found))
    if not length:
        return
    curves = np.array([values[:length] for values in found])
    x = np.arange(1, length + 1)
    if length == 1:
        plot.points(x, curves.mean(axis=0), result.entry.title, look=look)
        return
    band = (curves.min(axis=0), curves.max(axis=0)) if len(found) > 1 else None
    plot.line(x, curves.mean(axis=0), result.entry.title, band=band, look=look)


def times(made: Measured, parts: Sequence[Part]) -> Plot:
    """CPU seconds against BLEU on both test sets, a point for each tuner."""
    plot = Plot("time and BLEU", "CPU seconds of tuning", "BLEU, mean of both tests", "log")
    for look, part in enumerate(parts):
        done = [r for r in made.results[part.key].values() if not r.refused and r.seconds > 0.0]
        if done:
            points = [np.mean([r.scores(test).mean() for test in TESTS]) for r in done]
            plot.points([r.seconds for r in done], points, part.title, look=look)
    return plot


_FIXED = {"start": "untuned", "decoder": "decoder's first", "oracle": "oracle"}


def write_page(
    made: Measured, judge: Judge, verdicts: Sequence[Verdict], plan: Plan, quick: bool
) -> Page:
    """Build the whole page."""
    page = Page(
        "Tuners of translation weights, compared",
        TITLE,
        signature=signed(signature(plan)),
    )
    _verdicts(page, verdicts, plan, quick)
    for part in plan.parts:
        _part(page, made, judge, part)
        if part.key == "dense":
            _choices(page, made, judge)
    _time(page, made, plan)
    _setup(page, made, plan)
    return page


def _verdicts(page: Page, verdicts: Sequence[Verdict], plan: Plan, quick: bool) -> None:
    theirs = [v for v in verdicts if not v.claim.startswith(NOT_THEIRS)]
    page.section("What agrees and what does not")
    if quick:
        page.text("**This version has a few made-up lists only: too few to conclude from.**")
    page.text(
        f"Of {len(theirs)} checks of what the slides say {tally(theirs, '')}. The slides show "
        f"curves for {FEATURES['dense']} and {FEATURES['extended']:,} features of another system, "
        "and no numbers; so their words are judged. Two tuners are compared on both test sets "
        f"together, {len(plan.seeds)} seeds pooled. One is better when a paired bootstrap and "
        "approximate randomisation over sentences both give p < 0.05; “as good” means that the "
        f"95 % interval of the difference stays above −{MARGIN:g} BLEU, “about as good” that it "
        f"stays within {MARGIN:g} on both sides. Nothing is corrected for the number of checks."
    )
    page.table(
        ["claim", "verdict", "evidence"], [list(v) for v in verdicts], "Verdicts.", align="lll"
    )


def _part(page: Page, made: Measured, judge: Judge, part: Part) -> None:
    lists, candidates = made.lists[part.tuned_on]
    page.section(part.title)
    page.text(
        f"{made.features[part.key]:,} features; tuned on {part.tuned_on} ({lists:,} lists, "
        f"{candidates:,} candidates) from the weights of an untuned Moses. "
        + (
            f"{VAL} is held out: it chooses parameters where there is a grid, and rounds; HOLS "
            "takes its steps on it, so that its BLEU there is not that of unseen lists. "
            if part.held_out
            else "Rounds, and parameters where there is a grid, are chosen on the tuning lists. "
        )
        + "Tests were looked at after each round, and nothing was chosen by them. BLEU: mean, and "
        f"range over seeds. p against the decoder's first candidates on both tests. {SOURCE}: "
        "beside ours where there is such a tool."
    )
    peers = PEERS.get(part.key, {})
    rows: list[list[object]] = [
        [_FIXED[way], *(f"{made.fixed[way][w]:.2f}" for w in WHERE), *[None] * 6, _peer(peers, way)]
        for way in _FIXED
    ]
    shown = [r for r in made.results[part.key].values() if not r.entry.key.startswith("mira-")]
    for result in sorted(shown, key=_order):
        rows.append(_row(judge, result, _peer(peers, result.entry.key)))
    page.table(
        [
            *("tuner", *WHERE, "tests − decoder", "p", "CPU s", "rounds", "kept", "NNZ"),
            "peer: val, 2016, 2017; CPU s",
        ],
        rows,
        f"**{part.title}**, by BLEU on {VAL}.",
        align="l" + "r" * 10,
    )
    for result in shown:
        if result.refused:
            page.text(f"{result.entry.title} refuses: {result.refused}")
    page.text("**Axes do not start at 0.** Shades: range over seeds.")
    page.figures(by_round(made, part))
    if any(result.trials for result in shown):
        with page.details("Grids"):
            page.table(
                ["tuner", "parameters", VAL],
                [[r.entry.title, _text(t.params), t.val] for r in shown for t in r.trials],
                "One seed each.",
                align="llr",
            )


def _order(result: Result) -> float:
    return np.inf if result.refused else -float(result.scores(VAL).mean())


def _row(judge: Judge, result: Result, peer: str | None) -> list[object]:
    title = result.entry.title
    if result.trials:
        changed = {k: v for k, v in result.params.items() if k in result.entry.grid}
        title += f" ({_text(changed)})"
    if result.refused:
        return [title, *["refuses"] * len(WHERE), *[None] * 6, peer]
    found = judge.against((result.part, result.entry.key), ("fixed", "decoder"))
    return [
        title,
        *(mean_range(result.scores(where)) for where in WHERE),
        gap_text(found),
        p_text(max(found.p_bootstrap, found.p_randomisation)).removeprefix("= "),
        f"{result.seconds:.2f}",
        max(len(run.rounds["train"]) for run in result.runs),
        ", ".join(str(run.kept) for run in result.runs),
        f"{np.mean([run.nnz for run in result.runs]):,.0f}",
        peer,
    ]


def _peer(peers: Mapping[str, Any], key: str) -> str | None:
    if key not in peers:
        return None
    found = peers[key]
    scores = ", ".join(f"{score:.2f}" for score in found[:3])
    return f"{scores}; {found.seconds}" if found.seconds else scores


def _choices(page: Page, made: Measured, judge: Judge) -> None:
    if not any(made.has("dense", choice_key("hope", "fear", corpus)) for corpus in CORPORA):
        return
    page.section("MIRA: what to hope for, what to fear, and BLEU in a context")
    page.text(
        "Toward hope (score − cost) or the oracle (least cost), away from fear (score + cost), the "
        "prediction (highest score) or the worst (highest cost); costs by smoothed BLEU of single "
        "sentences, or of a pseudo-corpus that remembers 0.9 or 0.999 of itself. C is chosen on "
        f"{VAL} for each. * marks p < 0.05 against hope and fear of the same column."
    )
    for where in (VAL, *TESTS):
        rows = []
        for toward in TOWARD:
            for away in AWAY:
                row: list[object] = [f"{toward} / {away}"]
                for corpus in CORPORA:
                    key = choice_key(toward, away, corpus)
                    if not made.has("dense", key):
                        row.append(None)
                        continue
                    ours = ("dense", choice_key("hope", "fear", corpus))
                    other = ("dense", key)
                    star = "*" if other != ours and judge.against(ours, other).significant else ""
                    shown = mean_range(made.of(*other).scores(where))
                    row.append(shown + (star if where != VAL else ""))
                rows.append(row)
        page.table(
            ["toward / away", *CORPORA], rows, f"**{where}**; tests are compared together.", "lrrr"
        )
    page.section("Parameters and differences", 3)
    with page.details("C that was chosen"):
        page.table(
            ["toward / away", *CORPORA],
            [
                [
                    f"{toward} / {away}",
                    *(
                        _text(_gridded(made.of("dense", key)))
                        if made.has("dense", key := choice_key(toward, away, corpus))
                        else None
                        for corpus in CORPORA
                    ),
                ]
                for toward in TOWARD
                for away in AWAY
            ],
            align="llll",
        )


def _gridded(result: Result) -> dict[str, Any]:
    return {k: v for k, v in result.params.items() if k in result.entry.grid}


def _time(page: Page, made: Measured, plan: Plan) -> None:
    page.section("Time")
    page.text(
        "CPU seconds of one run, all rounds, looks at the tests taken off. Rounds of online tuners "
        "are passes; those of MERT are starts; that of PRO draws its pairs anew."
    )
    page.plot(times(made, plan.parts))
    rows = [
        [
            part.title,
            result.entry.title,
            result.seconds,
            float(np.mean([run.each for run in result.runs])),
        ]
        for part in plan.parts
        for result in made.results[part.key].values()
        if not result.refused and not result.entry.key.startswith("mira-")
    ]
    with page.details("Table"):
        page.table(
            ["part", "tuner", "CPU s", "s, quickest round (wall)"], rows, "Means over seeds."
        )


def _setup(page: Page, made: Measured, plan: Plan) -> None:
    page.section("Setting")
    page.keyvalues(
        {f"{name}: lists, candidates": f"{a:,}, {b:,}" for name, (a, b) in made.lists.items()}
        | {f"features, {part.key}": made.features[part.key] for part in plan.parts}
        | {"seeds": list(plan.seeds), "draws of each test": plan.replicates}
    )
    with page.details("Signatures"):
        page.table(
            ["part", "tuner", "signature"],
            [
                [part.key, r.entry.title, r.runs[0].signature]
                for part in plan.parts
                for r in made.results[part.key].values()
            ],
            align="lll",
        )


def _text(params: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in params.items()
    )
