"""The page: verdicts first, then tables of all tuners and BLEU by round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hopefear.experiments.common.differences import gap_text, p_text
from hopefear.experiments.common.files import signed
from hopefear.experiments.common.verdict_table import tally
from hopefear.experiments.tuning import figures
from hopefear.experiments.tuning.measuring import Measured, Result
from hopefear.experiments.tuning.plan import AWAY, CORPORA, TOWARD, Part, Plan, choice_key
from hopefear.experiments.tuning.problems import TESTS, VAL
from hopefear.experiments.tuning.results import WHERE, mean_range, signature
from hopefear.experiments.tuning.slides import FEATURES, PEERS, SOURCE, TITLE
from hopefear.experiments.tuning.verdicts import MARGIN, NOT_THEIRS, Judge, Verdict
from hopefear.report import Page

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
    page.figures(figures.by_round(made, part))
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
    page.plot(figures.times(made, plan.parts))
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
