"""The page: verdicts first, then scores and tests, then the paper's figures from our numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from hopefear.experiments.claims import p_values, tally, verdict_table
from hopefear.experiments.frame import results_file, signature_of, signed, spread
from hopefear.experiments.sapo.claims import (
    COMPARABLE,
    FALLS,
    LINEAR,
    MARGIN,
    SETTLES,
    STILL,
    TIMES,
    Verdict,
    against,
    compare,
    exponent,
)
from hopefear.experiments.sapo.plan import (
    AVERAGED,
    AVERAGES,
    CRF,
    CRF_AVERAGED,
    DECAY,
    ENTRIES,
    EXTRAS,
    HELD_OUT,
    KEPT,
    LAST,
    NAIVE,
    SAPO,
    SAPO_AVERAGED,
    SEARCHERS,
    Entry,
    Plan,
)
from hopefear.experiments.sapo.runs import Measured, Run
from hopefear.report import Page
from hopefear.report.plot import Plot


def signature(plan: Plan) -> str:
    """What the numbers came from, in one line."""
    parts = {
        "experiment": "sapo",
        "passes": "/".join(str(task.passes) for task in plan.tasks),
        "seeds": ",".join(map(str, plan.seeds)),
        "n": plan.n,
        "decay": DECAY,
        "constraints": "never",
    }
    return signature_of(**parts)


def to_json(
    measured: Sequence[Measured],
    verdicts: Sequence[Verdict],
    plan: Plan,
    quick: bool,
    note: str,
) -> bytes:
    """The file ``results.json``."""
    content = {
        "note": note,
        "settings": asdict(plan) | {"held_out": HELD_OUT},
        "tasks": {made.name: _task(made, plan) for made in measured},
    }
    return results_file(signature(plan), quick, content, verdicts)


def table_text(measured: Sequence[Measured]) -> str:
    """Scores at the last pass, for a terminal."""
    lines = [f"{'':18}" + "".join(f"{made.name:>16}" for made in measured)]
    for entry in ENTRIES:
        cells = [spread(made.curve(entry)[:, -1]) for made in measured]
        lines.append(f"{entry.title:18}" + "".join(f"{cell:>16}" for cell in cells))
    return "\n".join(lines)


def _task(made: Measured, plan: Plan) -> dict[str, Any]:
    problem = made.problem
    return {
        "about": problem.task.about,
        "metric": made.metric,
        "data": {
            name: {"sentences": len(data), "tokens": data.n_tokens, "digest": data.digest}
            for name, data in (("train", problem.train), ("test", problem.test))
        },
        "labels": list(problem.train.labels),
        "attributes": problem.train.features.size,
        "weights": problem.weights,
        "trials": [trial._asdict() for trial in made.trials],
        "chosen": made.chosen._asdict() | {"edges": made.edges},
        "runs": {key: [_run(r) for r in runs] for key, runs in made.runs.items()},
        "by_n": {str(n): [_run(r) for r in runs] for n, runs in made.by_n.items()},
        "by_search": {key: [_run(r) for r in runs] for key, runs in made.by_search.items()},
        "seconds": {key: values.tolist() for key, values in made.times.items()},
        "tests": {
            f"SAPO against {e.title}": asdict(against(made, plan, SAPO, e))
            for e in (CRF, *SEARCHERS)
        },
    }


def _run(made: Run) -> dict[str, Any]:
    return {
        "signature": made.signature,
        "scores": dict(zip(KEPT, made.scores.round(4).tolist(), strict=True)),
        "magnitude": dict(zip(KEPT, made.magnitude.tolist(), strict=True)),
        "seconds": made.seconds.round(4).tolist(),
        "mistakes": made.mistakes.tolist(),
    }


LOOKS = {entry.title: look for look, entry in enumerate(ENTRIES)}
NAMES = {"f1": "F, %", "accuracy": "accuracy, %"}


def figure_1(made: Measured) -> Plot:
    """SAPO and CRF by pass; dashed are their averages, which the paper does not have."""
    return _curves(made, (SAPO, CRF, SAPO_AVERAGED, CRF_AVERAGED), f"{made.name}: SAPO and CRF")


def figure_2(made: Measured, naive: bool) -> Plot:
    """SAPO beside perceptron and MIRA, by pass."""
    which, word = (NAIVE, "naive") if naive else (AVERAGES, "averaged")
    return _curves(made, (SAPO, *which), f"{made.name}: {word}")


def figure_3(made: Measured) -> Plot:
    """Mean size of the weights by pass."""
    plot = Plot(f"{made.name}", "pass", "mean |w|", y_scale="log")
    for entry in (SAPO, CRF, *NAIVE, *AVERAGES):
        sizes = made.magnitude(entry)
        passes = np.arange(1, sizes.size + 1)
        plot.line(passes, sizes, entry.title, entry in AVERAGES, look=LOOKS[entry.title])
    return plot


def figure_4(made: Measured) -> Plot:
    """CPU seconds a pass."""
    entries = [e for e in ENTRIES if e.timing in made.times]
    plot = Plot(made.name, "", "CPU seconds a pass")
    plot.bars([_short(e) for e in entries], [made.seconds(e) for e in entries], look=0)
    return plot


def scores_by_n(made: Measured) -> Plot:
    """Score at the last pass by n, mean and deviation over seeds."""
    plot = Plot(made.name, "n", f"test {NAMES[made.metric]}", x_scale="log")
    for kept, name, entry in ((LAST, "SAPO", CRF), (AVERAGED, "SAPO-Avg", CRF_AVERAGED)):
        found = np.array([[r.scores[kept, -1] for r in runs] for runs in made.by_n.values()])
        mean, std = found.mean(axis=1), found.std(axis=1)
        band = (mean - std, mean + std)
        plot.line(list(made.by_n), mean, name, kept == AVERAGED, band, look=LOOKS[name])
        plot.hline(float(made.curve(entry)[:, -1].mean()), entry.title)
    return plot


def seconds_by_n(made: Measured) -> Plot:
    """CPU seconds a pass by n."""
    plot = Plot(made.name, "n", "CPU seconds a pass", x_scale="log", y_scale="log")
    plot.line(list(made.by_n), [seconds_of(runs) for runs in made.by_n.values()], "SAPO", look=0)
    return plot.hline(seconds_of(made.runs["crf"]), "CRF")


def seconds_of(runs: Sequence) -> float:
    """CPU seconds of the typical pass of some runs: median over passes, least over seeds."""
    return float(min(np.median(r.seconds) for r in runs))


def _curves(made: Measured, entries: Sequence[Entry], title: str) -> Plot:
    plot = Plot(title, "pass", f"test {NAMES[made.metric]}")
    for entry in entries:
        curve = made.curve(entry)
        mean, std = curve.mean(axis=0), curve.std(axis=0)
        plot.line(
            np.arange(1, mean.size + 1),
            mean,
            entry.title,
            entry in EXTRAS,
            (mean - std, mean + std),
            look=LOOKS[entry.title],
        )
    return plot


def _short(entry: Entry) -> str:
    """Names as under the bars of the paper's Figure 4."""
    return entry.title.replace("-Nbest-", "-N").replace("Naive", "N").replace("Avg", "A")


TITLE = "Search-based probabilistic online learning (SAPO), run again"


def write_page(
    measured: Sequence[Measured], verdicts: Sequence[Verdict], plan: Plan, note: str
) -> Page:
    """Build the whole page."""
    page = Page(
        TITLE,
        "Sun, Ma, Zhang and Ren, Towards Easier and Faster Sequence Labeling for Natural Language "
        "Processing: Figures 1 to 4",
        signature=signed(signature(plan)),
    )
    _verdicts(page, measured, verdicts, note)
    _scores(page, measured, plan)
    _by_pass(page, measured)
    _weights(page, measured)
    _times(page, measured, plan)
    lists = [made for made in measured if made.by_n]
    if lists:
        _by_n(page, lists, plan)
        _by_search(page, lists, plan)
    _setup(page, measured, plan)
    _settings(page, measured)
    return page


def _verdicts(
    page: Page, measured: Sequence[Measured], verdicts: Sequence[Verdict], note: str
) -> None:
    page.section("What agrees and what does not")
    if note:
        page.text(f"**{note}**")
    page.text(
        f"Of {len(verdicts)} checks (a claim on a task) {tally(verdicts)}. SAPO and CRF are "
        "judged by their last weights, as in the paper. One learner is better than another when a "
        "paired bootstrap and approximate randomisation over test sentences, counts summed over "
        "seeds, both give p < 0.05; nothing is corrected for the number of checks. “As good” means "
        f"that the 95 % interval of the difference stays above −{MARGIN:g} points. A curve falls "
        f"when its last three passes are {FALLS:g} points or more below its best three in a row "
        "(mean over seeds), and has settled when that and its swing over the later passes are at "
        f"most {SETTLES:g}. Weights grow linearly when mean "
        f"|w| goes like pass^{LINEAR:g} or faster, and have settled at {STILL:.0%} growth in the "
        f"second half. “Several times” is {TIMES:g} times, “almost as fast” {COMPARABLE:g} times "
        "the time. The paper's neural networks are not run."
    )
    verdict_table(page, verdicts, {made.name: made.name for made in measured}, "task")


def _scores(page: Page, measured: Sequence[Measured], plan: Plan) -> None:
    page.section("Scores after the last pass")
    page.text(
        "Test scores in percent (F of chunks or entities as `conlleval` counts them, accuracy of "
        f"tags), mean and deviation over {len(plan.seeds)} seeds, which shuffle the passes. The "
        "paper gives its scores as figures only, so there are no numbers of it to set beside. "
        "SAPO-Avg and CRF-Avg are not in the paper: they show what averaging does for SAPO and the "
        "CRF, so that averages can be compared with averages."
    )
    page.table(
        ["learner", *(f"{made.name}, {_metric(made)}" for made in measured)],
        [[e.title, *(spread(made.curve(e)[:, -1]) for made in measured)] for e in ENTRIES],
        "After " + ", ".join(f"{m.problem.task.passes} passes ({m.name})" for m in measured) + ".",
        align="l" + "r" * len(measured),
    )
    rows = []
    pairs = [(SAPO, e) for e in (CRF, *SEARCHERS)]
    pairs += [(SAPO_AVERAGED, e) for e in (CRF_AVERAGED, *SEARCHERS[1::2])]
    for first, second in pairs:
        row: list[object] = [f"{first.title} − {second.title}"]
        for made in measured:
            found = against(made, plan, first, second)
            row.append(f"{found.points:+.2f} [{found.low:+.2f}, {found.high:+.2f}]")
            row.append(p_values(found))
        rows.append(row)
    heads = [head for made in measured for head in (f"{made.name} [95 %]", "p")]
    page.table(
        ["difference", *heads],
        rows,
        "Differences in points, and p by paired bootstrap / approximate randomisation "
        f"({plan.replicates:,} draws each).",
        align="l" + "rr" * len(measured),
    )


def _by_pass(page: Page, measured: Sequence[Measured]) -> None:
    page.section("Figure 1: SAPO and CRF by pass")
    page.text(
        "The paper: both converge, SAPO above CRF. Ours: mean and deviation over seeds. **Axes do "
        "not start at 0.**"
    )
    page.figures([figure_1(made) for made in measured])
    page.section("Figure 2: SAPO, perceptron and MIRA by pass")
    page.text(
        "The paper: perceptron, MIRA and n-best MIRA diverge as training goes on, and SAPO is "
        "above all of them. Ours: naive (last weights) and averaged."
    )
    page.figures([figure_2(made, naive) for made in measured for naive in (True, False)])


def _weights(page: Page, measured: Sequence[Measured]) -> None:
    page.section("Figure 3: size of the weights by pass")
    page.text(
        "Mean |w| over all weights, those that are zero included. The paper: SAPO's stays small "
        "and settles, that of perceptron and MIRA grows linearly or faster. The perceptron's unit "
        "of weight is a step of 1, MIRA's the margin, SAPO's a log probability: sizes of different "
        "learners are not on one scale, their growth is."
    )
    page.figures([figure_3(made) for made in measured])
    page.table(
        ["learner", *(head for m in measured for head in (f"{m.name}: mean |w|", "exponent"))],
        [
            [
                e.title,
                *(
                    cell
                    for m in measured
                    for cell in (
                        f"{m.magnitude(e)[-1]:.3g}",
                        f"{exponent(m.magnitude(e)):.2f}",
                    )
                ),
            ]
            for e in ENTRIES
        ],
        "At the last pass, and b of mean |w| ~ pass^b over all passes.",
        align="l" + "rr" * len(measured),
    )


def _times(page: Page, measured: Sequence[Measured], plan: Plan) -> None:
    page.section("Figure 4: CPU time a pass")
    page.text(
        "The paper: SAPO is several times as fast as CRF and about as fast as perceptron and MIRA. "
        f"Ours: CPU seconds of one thread, without scoring, the least of {plan.repeats} runs for "
        "every pass, mean over the first passes ("
        + ", ".join(f"{m.problem.task.timed_passes} for {m.name}" for m in measured)
        + ")."
    )
    page.figures([figure_4(made) for made in measured])
    timed = [e for e in ENTRIES if all(e.timing in made.times for made in measured)]
    page.table(
        ["learner", *(head for m in measured for head in (f"{m.name}, s", "× SAPO"))],
        [
            [
                e.title,
                *(
                    cell
                    for m in measured
                    for cell in (f"{m.seconds(e):.3f}", f"{m.seconds(e) / m.seconds(SAPO):.2f}")
                ),
            ]
            for e in timed
        ],
        "CPU seconds a pass, and as a multiple of SAPO's.",
        align="l" + "rr" * len(measured),
    )


def _by_n(page: Page, lists: Sequence[Measured], plan: Plan) -> None:
    page.section("Effect of n")
    page.text(
        "The paper: n = 5 or 10 is enough. n = 1 is the perceptron's direction with SAPO's rate "
        "and regulariser, all outputs would be the CRF's. Last pass, mean and deviation over "
        "seeds; CPU seconds with the average, median over passes."
    )
    page.figures([f(m) for m in lists for f in (scores_by_n, seconds_by_n)])
    for made in lists:
        rows = []
        for n, runs in made.by_n.items():
            last, mean = (
                made.curve(e)[:, -1] if n == plan.n else _ends(runs, e.kept)
                for e in (SAPO, SAPO_AVERAGED)
            )
            rows.append([n, spread(last), spread(mean), f"{seconds_of(runs):.3f}"])
        rows.append(
            [
                "CRF",
                *(spread(made.curve(e)[:, -1]) for e in (CRF, CRF_AVERAGED)),
                f"{seconds_of(made.runs['crf']):.3f}",
            ]
        )
        page.table(
            ["n", "last weights", "average", "CPU s a pass"],
            rows,
            f"**{made.name}**, {_metric(made)}.",
            align="rrrr",
        )


def _ends(runs: Sequence[Run], kept: int) -> np.ndarray:
    return np.array([r.scores[kept, -1] for r in runs])


def _by_search(page: Page, lists: Sequence[Measured], plan: Plan) -> None:
    page.section("A*, beam and list Viterbi")
    page.text(
        "Footnote 3 of the paper: a beam of 50 makes almost no difference. A* and list Viterbi are "
        "exact, so they must come out the same but for rounding. One seed."
    )
    rows = []
    titles = {"astar": "A*", "beam": "beam 50", "list": "list Viterbi"}
    for made in lists:
        exact = made.by_search["astar"][0]
        for key, (found,) in made.by_search.items():
            test = compare(exact.counts[LAST], found.counts[LAST], made.metric, plan.replicates)
            rows.append(
                [
                    made.name,
                    titles[key],
                    f"{found.scores[LAST, -1]:.2f}",
                    f"{found.scores[AVERAGED, -1]:.2f}",
                    None if key == "astar" else f"{-test.points:+.2f}",
                    None if key == "astar" else p_values(test),
                    f"{seconds_of([found]):.3f}",
                ]
            )
    page.table(
        ["task", "search", "last weights", "average", "last − A*", "p", "CPU s a pass"],
        rows,
        f"SAPO with n = {plan.n}.",
        align="llrrrrr",
    )


def _setup(page: Page, measured: Sequence[Measured], plan: Plan) -> None:
    page.section("How it was done")
    page.table(
        ["task", "what", "train", "test", "tokens", "labels", "attributes"],
        [
            [
                m.name,
                m.problem.task.about,
                len(m.problem.train),
                len(m.problem.test),
                m.problem.train.n_tokens,
                len(m.problem.train.labels),
                m.problem.train.features.size,
            ]
            for m in measured
        ],
        "Data: sentences, training tokens, labels, and attributes of the training text.",
    )
    page.text(
        "Features are the built-in sets `chunking`, `pos` and `sapo-bioner`, which follow section "
        "4.2 but are not the paper's to the letter; attributes fire with every label, transitions "
        "with every pair. All learners see the same attributes and the same shuffles, start from "
        "zero, and any label may follow any other, also when tagging."
    )
    page.text(
        "Rate and λ are chosen **for the CRF only** and by its last weights on held-out sentences "
        f"(the development part where a corpus has one, else the last {HELD_OUT:.0%} of the "
        "training sentences, where the paper has 4-fold cross-validation); SAPO takes both over. "
        f"The rate falls by a factor of {DECAY:g} a pass. λ is equation (5)'s, with R the squared "
        "length. No test sentence was looked at for this. MIRA and n-best MIRA ask for a margin of "
        "the root of the number of wrong tags; n-best MIRA solves its programme; C = 1 bounds "
        "practically nothing. The perceptron has no parameters."
    )


def _settings(page: Page, measured: Sequence[Measured]) -> None:
    page.section("Settings")
    page.table(
        ["task", "rate", "λ", "held-out score", "at the edge of its grid"],
        [
            [
                m.name,
                f"{m.chosen.rate:g}",
                f"{m.chosen.lam:g}",
                m.chosen.score,
                " and ".join(m.edges) or None,
            ]
            for m in measured
        ],
        "Chosen for the CRF, used by CRF and SAPO. The paper: λ = 2 (POS), 5 (Bio-NER), 1 "
        "(chunking); its rate is not given.",
        align="lrrrl",
    )
    with page.details("All that was tried for the CRF"):
        for m in measured:
            lams = sorted({t.lam for t in m.trials})
            by = {(t.rate, t.lam): t.score for t in m.trials}
            page.table(
                ["rate", *(f"λ = {lam:g}" for lam in lams)],
                [
                    [f"{rate:g}", *(by.get((rate, lam)) for lam in lams)]
                    for rate in sorted({t.rate for t in m.trials})
                ],
                f"**{m.name}**: {_metric(m)} on held-out sentences after "
                f"{m.problem.task.tuning_passes} passes.",
            )
    with page.details("Signatures of the runs"):
        for m in measured:
            page.text(f"**{m.name}**")
            page.code("\n".join(runs[0].signature for runs in m.runs.values()))


def _metric(made: Measured) -> str:
    return {"f1": "F", "accuracy": "accuracy"}[made.metric]
