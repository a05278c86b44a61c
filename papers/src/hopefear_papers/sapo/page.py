"""The page: verdicts first, then scores and tests, then the paper's figures from our numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from hopefear.report import Page
from hopefear.report.plot import Plot
from hopefear_papers.claims import Verdict, p_text, tally, verdict_section, verdict_table
from hopefear_papers.frame import Call, banded, crossed, spread
from hopefear_papers.sapo import claims
from hopefear_papers.sapo.networks import ENCODERS
from hopefear_papers.sapo.plan import (
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
    NETWORKS,
    SAPO,
    SAPO_AVERAGED,
    SEARCHERS,
    Entry,
    Plan,
)
from hopefear_papers.sapo.runs import Results
from hopefear_papers.sapo.settings import Run

TITLE = "Search-based probabilistic online learning (SAPO), run again"
PAPER = (
    "Sun, Ma, Zhang and Ren, Towards Easier and Faster Sequence Labeling for Natural Language "
    "Processing: Figures 1 to 5"
)
Tasks = Sequence[Results]


def signature(plan: Plan) -> dict[str, object]:
    return {
        "passes": "/".join(str(task.passes) for task in plan.tasks),
        "seeds": ",".join(map(str, plan.seeds)),
        "n": plan.n,
        "decay": DECAY,
        "constraints": "never",
    }


def content(tasks: Tasks, call: Call) -> dict[str, Any]:
    return {
        "note": call.note,
        "settings": asdict(call.plan) | {"held_out": HELD_OUT},
        "tasks": {task.name: _task(task) for task in tasks},
    }


def table_text(tasks: Tasks) -> str:
    """Scores at the last pass, for a terminal."""
    lines = [f"{'':18}" + "".join(f"{task.name:>16}" for task in tasks)]
    for entry in (*ENTRIES, *NETWORKS):
        cells = [spread(task.curve(entry)[:, -1]) if task.has(entry) else "" for task in tasks]
        lines.append(f"{entry.title:18}" + "".join(f"{cell:>16}" for cell in cells))
    return "\n".join(lines)


def _task(task: Results) -> dict[str, Any]:
    problem = task.problem
    return {
        "about": problem.task.about,
        "metric": task.metric,
        "data": {
            name: {"sentences": len(data), "tokens": data.n_tokens, "digest": data.digest}
            for name, data in (("train", problem.train), ("test", problem.test))
        },
        "labels": list(problem.train.labels),
        "attributes": problem.train.features.size,
        "weights": problem.weights,
        "trials": [trial._asdict() for trial in task.trials],
        "chosen": task.chosen._asdict() | {"edges": task.edges},
        **{
            name: {str(key): [_run(r) for r in runs] for key, runs in getattr(task, name).items()}
            for name in ("runs", "by_n", "by_search", "letter")
        },
        "grid": {
            f"{loss}, {encoder}": [_run(r) for r in runs]
            for (loss, encoder), runs in task.grid.items()
        },
        "seconds": {key: values.tolist() for key, values in task.times.items()},
        "tests": {
            f"SAPO against {e.title}": asdict(task.against(SAPO, e))
            for e in (CRF, *SEARCHERS, *task.networks)
        },
    }


def _run(run: Run) -> dict[str, Any]:
    kept = KEPT[-len(run.scores) :]
    return {
        "signature": run.signature,
        "scores": dict(zip(kept, run.scores.round(4).tolist(), strict=True)),
        "magnitude": dict(zip(kept, run.magnitude.tolist(), strict=True)),
        "seconds": run.seconds.round(4).tolist(),
        "mistakes": run.mistakes.tolist(),
    }


LOOKS = {entry.title: look for look, entry in enumerate((*ENTRIES, *NETWORKS))}
_ROWS = {entry.title: entry for entry in ENTRIES}
NAMES = {"f1": "F, %", "accuracy": "accuracy, %"}


def figure_1(task: Results) -> Plot:
    """SAPO, CRF and networks by pass; dashed are averages, which the paper does not have."""
    entries = (SAPO, CRF, *task.networks, SAPO_AVERAGED, CRF_AVERAGED)
    return _curves(task, entries, f"{task.name}: " + ", ".join(e.title for e in entries[:-2]))


def figure_2(task: Results, naive: bool) -> Plot:
    """SAPO beside perceptron and MIRA, by pass."""
    which, word = (NAIVE, "naive") if naive else (AVERAGES, "averaged")
    return _curves(task, (SAPO, *which), f"{task.name}: {word}")


def figure_3(task: Results) -> Plot:
    """Mean size of the weights by pass."""
    plot = Plot(f"{task.name}", "pass", "mean |w|", y_scale="log")
    for entry in (SAPO, CRF, *NAIVE, *AVERAGES):
        sizes = task.magnitude(entry)
        passes = np.arange(1, sizes.size + 1)
        plot.line(passes, sizes, entry.title, entry in AVERAGES, look=LOOKS[entry.title])
    return plot


def figure_4(task: Results) -> Plot:
    """CPU seconds a pass."""
    entries = [e for e in ENTRIES if e.timing in task.times]
    plot = Plot(task.name, "", "CPU seconds a pass")
    plot.bars([_short(e) for e in entries], [task.seconds(e) for e in entries], look=0)
    return plot


def figure_5(task: Results) -> Plot:
    """CPU seconds a pass of SAPO and of networks."""
    entries = (SAPO, *task.networks)
    plot = Plot(task.name, "", "CPU seconds a pass")
    plot.bars([e.title for e in entries], [task.seconds(e) for e in entries], look=0)
    return plot


def scores_by_n(task: Results) -> Plot:
    """Score at the last pass by n, mean and deviation over seeds."""
    plot = Plot(task.name, "n", f"test {NAMES[task.metric]}", x_scale="log")
    for kept, name, entry in ((LAST, "SAPO", CRF), (AVERAGED, "SAPO-Avg", CRF_AVERAGED)):
        scores = [_ends(runs, kept) for runs in task.by_n.values()]
        banded(plot, list(task.by_n), scores, name, dashed=kept == AVERAGED, look=LOOKS[name])
        plot.hline(float(task.curve(entry)[:, -1].mean()), entry.title)
    return plot


def seconds_by_n(task: Results) -> Plot:
    """CPU seconds a pass by n."""
    plot = Plot(task.name, "n", "CPU seconds a pass", x_scale="log", y_scale="log")
    plot.line(list(task.by_n), [seconds_of(runs) for runs in task.by_n.values()], "SAPO", look=0)
    return plot.hline(seconds_of(task.runs["crf"]), "CRF")


def seconds_of(runs: Sequence[Any]) -> float:
    """CPU seconds of the typical pass of some runs: median over passes, least over seeds."""
    return float(min(np.median(r.seconds) for r in runs))


def _curves(task: Results, entries: Sequence[Entry], title: str) -> Plot:
    plot = Plot(title, "pass", f"test {NAMES[task.metric]}")
    for entry in entries:
        name, curve = entry.title, task.curve(entry)
        passes = np.arange(1, curve.shape[1] + 1)
        banded(plot, passes, curve.T, name, dashed=entry in EXTRAS, look=LOOKS[name])
    return plot


def _short(entry: Entry) -> str:
    """Names as under the bars of the paper's Figure 4."""
    return entry.title.replace("-Nbest-", "-N").replace("Naive", "N").replace("Avg", "A")


def fill(page: Page, tasks: Tasks, verdicts: Sequence[Verdict], call: Call) -> None:
    plan = call.plan
    _verdicts(page, tasks, verdicts, call.note)
    _scores(page, tasks, plan)
    _by_pass(page, tasks)
    _weights(page, tasks)
    _times(page, tasks, plan)
    if deep := [task for task in tasks if task.networks]:
        _networks(page, deep, plan)
    for task in tasks:
        if task.grid:
            _grid(page, task, plan)
    if lettered := [task for task in tasks if task.letter]:
        _letter(page, lettered)
    if lists := [task for task in tasks if task.by_n]:
        _by_n(page, lists, plan)
        _by_search(page, lists, plan)
    _setup(page, tasks)
    _settings(page, tasks)


def _verdicts(page: Page, tasks: Tasks, verdicts: Sequence[Verdict], note: str) -> None:
    verdict_section(
        page,
        note,
        f"Of {len(verdicts)} checks (a claim on a task) {tally(verdicts)}. SAPO and CRF are judged "
        "by their last weights, as in the paper. One learner is better than another when a paired "
        "bootstrap and approximate randomisation over test sentences, counts summed over seeds, "
        "both give p < 0.05; nothing is corrected for the number of checks. “As good” means that "
        f"the 95 % interval of the difference stays above −{claims.MARGIN:g} points. A curve falls "
        f"when its last three passes are {claims.FALLS:g} points or more below its best three in a "
        "row (mean over seeds), and has settled when that and its swing over the later passes are "
        f"at most {claims.SETTLES:g}. Weights grow linearly when mean |w| goes like "
        f"pass^{claims.LINEAR:g} or faster, and have settled at {claims.STILL:.0%} growth in the "
        f"second half. “Several times” is {claims.TIMES:g} times, “almost as fast” "
        f"{claims.COMPARABLE:g} times the time.",
    )
    verdict_table(page, verdicts, {task.name: task.name for task in tasks}, "task")


def _scores(page: Page, tasks: Tasks, plan: Plan) -> None:
    page.section("Scores after the last pass").text(
        "Test scores in percent (F of chunks or entities as `conlleval` counts them, accuracy of "
        f"tags), mean and deviation over {len(plan.seeds)} seeds, which shuffle the passes. The "
        "paper gives its scores as figures only, so there are no numbers of it to set beside. "
        "SAPO-Avg and CRF-Avg are not in the paper: they show what averaging does for SAPO and the "
        "CRF, so that averages can be compared with averages."
    )
    crossed(
        page,
        "learner",
        _ROWS,
        tasks,
        lambda task: [f"{task.name}, {_metric(task)}"],
        lambda entry, task: [spread(task.curve(entry)[:, -1])],
        f"After {', '.join(f'{t.problem.task.passes} passes ({t.name})' for t in tasks)}.",
    )
    pairs = [(SAPO, e) for e in (CRF, *SEARCHERS)]
    pairs += [(SAPO_AVERAGED, e) for e in (CRF_AVERAGED, *SEARCHERS[1::2])]
    crossed(
        page,
        "difference",
        {f"{first.title} − {second.title}": (first, second) for first, second in pairs},
        tasks,
        lambda task: (f"{task.name} [95 %]", "p"),
        lambda pair, task: task.against(*pair).cells,
        "Differences in points, and p by paired bootstrap / approximate randomisation "
        f"({plan.replicates:,} draws each).",
    )
    _t_tests(page, tasks)


def _t_tests(page: Page, tasks: Tasks) -> None:
    crossed(
        page,
        "SAPO against",
        {e.title: e for e in (CRF, *SEARCHERS, *NETWORKS) if all(t.has(e) for t in tasks)},
        tasks,
        lambda task: (task.name, "p by t", "by bootstrap, randomisation"),
        lambda e, task: (
            task.against(SAPO, e).gap,
            p_text(task.t_test(SAPO, e)).removeprefix("= "),
            task.against(SAPO, e).cells[1],
        ),
        "The paper's test beside ours: a paired t-test over sentences of the number of right "
        "tokens (its footnote 7 puts accuracy in place of F).",
    )


def _letter(page: Page, tasks: Tasks) -> None:
    page.section("Features to the letter").text(
        "The sets above have more than section 4.2 names: words with parts of speech, suffixes and "
        "shapes for chunking; suffixes of neighbours and shapes for parts of speech. "
        + "; ".join(f"{t.name}: `{t.problem.task.letter}`" for t in tasks)
        + " has what it names and no more. First seed, same rate and λ."
    )
    rows = []
    for task in tasks:
        for key, runs in task.letter.items():
            plain = [task.runs[key][0].scores[kept, -1] for kept in (LAST, AVERAGED)]
            bare = [runs[0].scores[kept, -1] for kept in (LAST, AVERAGED)]
            rows.append([task.name, key, *(f"{x:.2f}" for x in (*bare, *plain))])
    heads = ["task", "learner", "to the letter, last", "averaged", "with more, last", "averaged"]
    page.table(heads, rows, "Test scores after the last pass.", align="llr")


def _by_pass(page: Page, tasks: Tasks) -> None:
    page.section("Figure 1: SAPO, CRF and networks by pass").text(
        "The paper: SAPO and CRF converge, networks diverge, and SAPO is above all of them. Ours: "
        "mean and deviation over seeds. **Axes do not start at 0.**"
    )
    page.figures([figure_1(task) for task in tasks])
    page.section("Figure 2: SAPO, perceptron and MIRA by pass").text(
        "The paper: perceptron, MIRA and n-best MIRA diverge as training goes on, and SAPO is "
        "above all of them. Ours: naive (last weights) and averaged."
    )
    page.figures([figure_2(task, naive) for task in tasks for naive in (True, False)])


def _weights(page: Page, tasks: Tasks) -> None:
    page.section("Figure 3: size of the weights by pass").text(
        "Mean |w| over all weights, those that are zero included. The paper: SAPO's stays small "
        "and settles, that of perceptron and MIRA grows linearly or faster. The perceptron's unit "
        "of weight is a step of 1, MIRA's the margin, SAPO's a log probability: sizes of different "
        "learners are not on one scale, their growth is."
    )
    page.figures([figure_3(task) for task in tasks])
    crossed(
        page,
        "learner",
        _ROWS,
        tasks,
        lambda task: (f"{task.name}: mean |w|", "exponent"),
        lambda e, task: (
            f"{task.magnitude(e)[-1]:.3g}",
            f"{claims.exponent(task.magnitude(e)):.2f}",
        ),
        "At the last pass, and b of mean |w| ~ pass^b over all passes.",
    )


def _times(page: Page, tasks: Tasks, plan: Plan) -> None:
    page.section("Figure 4: CPU time a pass").text(
        "The paper: SAPO is several times as fast as CRF and about as fast as perceptron and MIRA. "
        f"Ours: CPU seconds of one thread, without scoring, the least of {plan.repeats} runs for "
        "every pass, mean over the first passes ("
        + ", ".join(f"{task.problem.task.timed_passes} for {task.name}" for task in tasks)
        + ")."
    )
    page.figures([figure_4(task) for task in tasks])
    crossed(
        page,
        "learner",
        {e.title: e for e in ENTRIES if all(e.timing in task.times for task in tasks)},
        tasks,
        lambda task: (f"{task.name}, s", "× SAPO"),
        lambda e, t: (f"{t.seconds(e):.3f}", f"{t.seconds(e) / t.seconds(SAPO):.2f}"),
        "CPU seconds a pass, and as a multiple of SAPO's.",
    )


def _networks(page: Page, tasks: Tasks, plan: Plan) -> None:
    page.section("Figure 5: CPU time a pass of networks").text(
        "The paper: SAPO is better than BiLSTM and BiLSTM-CRF, and several times as fast. Ours: "
        f"networks of the settings {_shown(plan.networks.params)}, with words, shapes, characters "
        "and, for chunking, parts of speech, beginning with the vectors of "
        f"`{plan.networks.vectors}` where they are found; a running average of the weights is "
        f"scored; seeds {', '.join(map(str, plan.networks.seeds))}. Nothing was chosen on test "
        "sentences. CPU seconds with one thread, median over passes."
    )
    page.figures([figure_5(task) for task in tasks])
    entries = (SAPO, *NETWORKS)
    crossed(
        page,
        "learner",
        {e.title: e for e in entries},
        tasks,
        lambda task: (f"{task.name}, {_metric(task)}", "best pass", "CPU s a pass", "× SAPO"),
        lambda e, t: (
            spread(t.curve(e)[:, -1]),
            f"{t.curve(e).mean(axis=0).max():.2f}",
            f"{t.seconds(e):.2f}",
            f"{t.seconds(e) / t.seconds(SAPO):.1f}",
        ),
        "After the last pass ("
        + ", ".join(f"{t.problem.task.network_passes} for {t.name}" for t in tasks)
        + " of networks), and the best of all passes.",
    )
    crossed(
        page,
        "difference",
        {f"SAPO − {e.title}": e for e in NETWORKS},
        tasks,
        lambda task: (f"{task.name} [95 %]", "p"),
        lambda e, task: task.against(SAPO, e).cells,
        "Differences in points, seeds pooled: the first seed of SAPO where networks have one.",
    )


def _grid(page: Page, task: Results, plan: Plan) -> None:
    nets = plan.networks
    n = min(nets.sentences, len(task.problem.train))
    page.section("Every loss on every encoder").text(
        "Not in the paper, which says that SAPO can be put on top of an LSTM. Linear: templates "
        f"`{task.problem.task.features}`, `{nets.linear}`, averaged weights. BiLSTM: as above, "
        "with learned transitions. Wide and deep: the sum of both scores, learned together. Same "
        "rule and rate for all losses of an encoder, nothing tuned for any: a loss whose scale "
        "wants another rate is at a disadvantage."
    )
    losses = list(dict.fromkeys(loss for loss, _ in task.grid))
    ends = {key: np.array([r.scores[-1, -1] for r in runs]) for key, runs in task.grid.items()}
    page.table(
        ["loss", *ENCODERS],
        [[loss, *(spread(ends[loss, e]) for e in ENCODERS)] for loss in losses],
        f"**{task.name}**, {_metric(task)} after {nets.passes} passes over the first {n:,} "
        f"training sentences, mean and deviation over {len(nets.grid_seeds)} seeds.",
        align="lrrr",
    )
    first, rest = losses[0], losses[1:]

    def cells(loss: str, encoder: str) -> list[str]:
        pair = task.grid[loss, encoder], task.grid[first, encoder]
        return task.compare(*pair, (-1, -1)).cells

    page.table(
        ["loss", *(part for e in ENCODERS for part in (f"{e} [95 %]", "p"))],
        [[loss, *(part for e in ENCODERS for part in cells(loss, e))] for loss in rest],
        f"Difference to `{first}` on the same encoder in points, counts summed over seeds, and p "
        "by paired bootstrap / approximate randomisation.",
    )


def _shown(params: Mapping[str, Any]) -> str:
    return ", ".join(f"`{key}={value}`" for key, value in params.items())


def _by_n(page: Page, lists: Tasks, plan: Plan) -> None:
    page.section("Effect of n").text(
        "The paper: n = 5 or 10 is enough. n = 1 is the perceptron's direction with SAPO's rate "
        "and regulariser, all outputs would be the CRF's. Last pass, mean and deviation over "
        "seeds; CPU seconds with the average, median over passes."
    )
    page.figures([f(task) for task in lists for f in (scores_by_n, seconds_by_n)])
    for task in lists:
        rows = []
        for n, runs in task.by_n.items():
            last, mean = (
                task.curve(e)[:, -1] if n == plan.n else _ends(runs, e.kept)
                for e in (SAPO, SAPO_AVERAGED)
            )
            rows.append([n, spread(last), spread(mean), f"{seconds_of(runs):.3f}"])
        ends = (spread(task.curve(e)[:, -1]) for e in (CRF, CRF_AVERAGED))
        rows.append(["CRF", *ends, f"{seconds_of(task.runs['crf']):.3f}"])
        heads = ["n", "last weights", "average", "CPU s a pass"]
        page.table(heads, rows, f"**{task.name}**, {_metric(task)}.", align="r")


def _ends(runs: Sequence[Run], kept: int) -> np.ndarray:
    return np.array([r.scores[kept, -1] for r in runs])


def _by_search(page: Page, lists: Tasks, plan: Plan) -> None:
    page.section("A*, beam and list Viterbi").text(
        "Footnote 3 of the paper: a beam of 50 makes almost no difference. A* and list Viterbi are "
        "exact, so they must come out the same but for rounding. One seed."
    )
    titles, rows = {"astar": "A*", "beam": "beam 50", "list": "list Viterbi"}, []
    for task in lists:
        exact = task.by_search["astar"]
        for key, runs in task.by_search.items():
            test = task.compare(exact, runs, (LAST, LAST))
            ends = [f"{runs[0].scores[kept, -1]:.2f}" for kept in (LAST, AVERAGED)]
            cells = [None] * 2 if runs is exact else [f"{-test.points:+.2f}", test.cells[1]]
            rows.append([task.name, titles[key], *ends, *cells, f"{seconds_of(runs):.3f}"])
    heads = ["task", "search", "last weights", "average", "last − A*", "p", "CPU s a pass"]
    page.table(heads, rows, f"SAPO with n = {plan.n}.", align="llr")


def _setup(page: Page, tasks: Tasks) -> None:
    page.section("How it was done")
    rows = []
    for p in (task.problem for task in tasks):
        sizes = [len(p.train), len(p.test), p.train.n_tokens, len(p.train.labels)]
        rows.append([p.task.name, p.task.about, *sizes, p.train.features.size])
    caption = "Data: sentences, training tokens, labels, and attributes of the training text."
    heads = ["task", "what", "train", "test", "tokens", "labels", "attributes"]
    page.table(heads, rows, caption)
    page.text(
        "Features are the built-in sets `chunking`, `pos` and `sapo-bioner`, which follow section "
        "4.2 and have more. The paper counts 17,484 training sentences of Bio-NER, the corpus has "
        "18,546; it speaks of base noun phrases, and chunking here is all 22 labels of CoNLL-2000, "
        "as its numbers of sentences say. Attributes fire with every label, transitions "
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


def _settings(page: Page, tasks: Tasks) -> None:
    page.section("Settings")
    rows = []
    for task in tasks:
        rate, lam, score = task.chosen
        rows.append([task.name, f"{rate:g}", f"{lam:g}", score, " and ".join(task.edges) or None])
    page.table(
        ["task", "rate", "λ", "held-out score", "at the edge of its grid"],
        rows,
        "Chosen for the CRF, used by CRF and SAPO. The paper: λ = 2 (POS), 5 (Bio-NER), 1 "
        "(chunking); its rate is not given.",
        align="lrrrl",
    )
    with page.details("All that was tried for the CRF"):
        for task in tasks:
            rates, lams = (sorted({trial[k] for trial in task.trials}) for k in (0, 1))
            by = {(t.rate, t.lam): t.score for t in task.trials}
            page.table(
                ["rate", *(f"λ = {lam:g}" for lam in lams)],
                [[f"{rate:g}", *(by.get((rate, lam)) for lam in lams)] for rate in rates],
                f"**{task.name}**: {_metric(task)} on held-out sentences after "
                f"{task.problem.task.tuning_passes} passes.",
            )
    with page.details("Signatures of the runs"):
        for task in tasks:
            page.text(f"**{task.name}**")
            page.code("\n".join(runs[0].signature for runs in task.runs.values()))


def _metric(task: Results) -> str:
    return {"f1": "F", "accuracy": "accuracy"}[task.metric]
