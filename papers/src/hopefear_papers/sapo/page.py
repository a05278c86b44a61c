"""The page: verdicts first, then scores and tests, then the paper's figures from our numbers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from hopefear.report.plot import Plot
from hopefear_papers import pages
from hopefear_papers.claims import p_cell
from hopefear_papers.frame import Call, banded, spread
from hopefear_papers.pages import Block, Code, Table, crossed
from hopefear_papers.sapo import claims
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
from hopefear_papers.sapo.settings import ENCODERS, Run

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


class Report(pages.Report):
    """Tables and plots of the page; results are the tasks."""

    results: Tasks
    plan: Plan
    place = "task"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.deep = [task for task in self.results if task.networks]
        self.lists = [task for task in self.results if task.by_n]

    def places(self) -> dict[str, str]:
        return {task.name: task.name for task in self.results}

    def values(self) -> dict[str, Any]:
        tasks, nets = self.results, self.plan.networks
        letters = (f"{t.name}: `{t.problem.task.letter}`" for t in tasks if t.letter)
        timed = (f"{task.problem.task.timed_passes} for {task.name}" for task in tasks)
        return super().values() | {
            "claims": claims,
            "timed": ", ".join(timed),
            "network_params": ", ".join(f"`{key}={value}`" for key, value in nets.params.items()),
            "network_seeds": ", ".join(map(str, nets.seeds)),
            "templates": ", ".join(t.problem.task.features for t in tasks if t.grid),
            "letters": "; ".join(letters),
            "HELD_OUT": HELD_OUT,
            "DECAY": DECAY,
        }

    def scores(self) -> Table:
        return crossed(
            "learner",
            _ROWS,
            self.results,
            lambda task: [f"{task.name}, {_metric(task)}"],
            lambda entry, task: [spread(task.curve(entry)[:, -1])],
            "After "
            + ", ".join(f"{t.problem.task.passes} passes ({t.name})" for t in self.results)
            + ".",
        )

    def differences(self) -> Table:
        pairs = [(SAPO, e) for e in (CRF, *SEARCHERS)]
        pairs += [(SAPO_AVERAGED, e) for e in (CRF_AVERAGED, *SEARCHERS[1::2])]
        return crossed(
            "difference",
            {f"{first.title} − {second.title}": (first, second) for first, second in pairs},
            self.results,
            lambda task: (f"{task.name} [95 %]", "p"),
            lambda pair, task: task.against(*pair).cells,
            "Differences in points, and p by paired bootstrap / approximate randomisation "
            f"({self.plan.replicates:,} draws each).",
        )

    def t_tests(self) -> Table:
        entries = (CRF, *SEARCHERS, *NETWORKS)
        return crossed(
            "SAPO against",
            {e.title: e for e in entries if all(t.has(e) for t in self.results)},
            self.results,
            lambda task: (task.name, "p by t", "by bootstrap, randomisation"),
            lambda e, task: (
                task.against(SAPO, e).gap,
                p_cell(task.t_test(SAPO, e)),
                task.against(SAPO, e).cells[1],
            ),
            "The paper's test beside ours: a paired t-test over sentences of the number of right "
            "tokens (its footnote 7 puts accuracy in place of F).",
        )

    def figure_1(self) -> Iterator[Plot]:
        """SAPO, CRF and networks by pass; dashed are averages, which the paper does not have."""
        for task in self.results:
            entries = (SAPO, CRF, *task.networks, SAPO_AVERAGED, CRF_AVERAGED)
            yield _curves(
                task, entries, f"{task.name}: " + ", ".join(e.title for e in entries[:-2])
            )

    def figure_2(self) -> Iterator[Plot]:
        """SAPO beside perceptron and MIRA, by pass."""
        for task, naive in itertools.product(self.results, (True, False)):
            which, word = (NAIVE, "naive") if naive else (AVERAGES, "averaged")
            yield _curves(task, (SAPO, *which), f"{task.name}: {word}")

    def figure_3(self) -> Iterator[Plot]:
        """Mean size of the weights by pass."""
        for task in self.results:
            plot = Plot(f"{task.name}", "pass", "mean |w|", y_scale="log")
            for entry in (SAPO, CRF, *NAIVE, *AVERAGES):
                sizes = task.magnitude(entry)
                passes = np.arange(1, sizes.size + 1)
                plot.line(passes, sizes, entry.title, entry in AVERAGES, look=LOOKS[entry.title])
            yield plot

    def growth(self) -> Table:
        return crossed(
            "learner",
            _ROWS,
            self.results,
            lambda task: (f"{task.name}: mean |w|", "exponent"),
            lambda e, task: (
                f"{task.magnitude(e)[-1]:.3g}",
                f"{claims.exponent(task.magnitude(e)):.2f}",
            ),
            "At the last pass, and b of mean |w| ~ pass^b over all passes.",
        )

    def figure_4(self) -> Iterator[Plot]:
        """CPU seconds a pass."""
        for task in self.results:
            entries = [e for e in ENTRIES if e.timing in task.times]
            plot = Plot(task.name, "", "CPU seconds a pass")
            plot.bars([_short(e) for e in entries], [task.seconds(e) for e in entries], look=0)
            yield plot

    def seconds(self) -> Table:
        return crossed(
            "learner",
            {e.title: e for e in ENTRIES if all(e.timing in task.times for task in self.results)},
            self.results,
            lambda task: (f"{task.name}, s", "× SAPO"),
            lambda e, t: (f"{t.seconds(e):.3f}", f"{t.seconds(e) / t.seconds(SAPO):.2f}"),
            "CPU seconds a pass, and as a multiple of SAPO's.",
        )

    def figure_5(self) -> Iterator[Plot]:
        """CPU seconds a pass of SAPO and of networks."""
        for task in self.deep:
            entries = (SAPO, *task.networks)
            plot = Plot(task.name, "", "CPU seconds a pass")
            plot.bars([e.title for e in entries], [task.seconds(e) for e in entries], look=0)
            yield plot

    def networks(self) -> Table | None:
        if not self.deep:
            return None
        passes = (f"{t.problem.task.network_passes} for {t.name}" for t in self.deep)
        return crossed(
            "learner",
            {e.title: e for e in (SAPO, *NETWORKS)},
            self.deep,
            lambda task: (f"{task.name}, {_metric(task)}", "best pass", "CPU s a pass", "× SAPO"),
            lambda e, t: (
                spread(t.curve(e)[:, -1]),
                f"{t.curve(e).mean(axis=0).max():.2f}",
                f"{t.seconds(e):.2f}",
                f"{t.seconds(e) / t.seconds(SAPO):.1f}",
            ),
            f"After the last pass ({', '.join(passes)} of networks), and the best of all passes.",
        )

    def network_differences(self) -> Table | None:
        if not self.deep:
            return None
        return crossed(
            "difference",
            {f"SAPO − {e.title}": e for e in NETWORKS},
            self.deep,
            lambda task: (f"{task.name} [95 %]", "p"),
            lambda e, task: task.against(SAPO, e).cells,
            "Differences in points, seeds pooled: the first seed of SAPO where networks have one.",
        )

    def grid(self) -> Iterator[Table]:
        nets = self.plan.networks
        for task in self.results:
            if not task.grid:
                continue
            n = min(nets.sentences, len(task.problem.train))
            first, *others = losses = list(dict.fromkeys(loss for loss, _ in task.grid))
            ends = {k: np.array([r.scores[-1, -1] for r in runs]) for k, runs in task.grid.items()}
            yield Table(
                ["loss", *ENCODERS],
                [[loss, *(spread(ends[loss, e]) for e in ENCODERS)] for loss in losses],
                f"**{task.name}**, {_metric(task)} after {nets.passes} passes over the first {n:,} "
                f"training sentences, mean and deviation over {len(nets.grid_seeds)} seeds.",
                align="lrrr",
            )
            cells = {
                key: task.compare(task.grid[key], task.grid[first, key[1]], (-1, -1)).cells
                for key in task.grid
                if key[0] != first
            }
            yield Table(
                ["loss", *(part for e in ENCODERS for part in (f"{e} [95 %]", "p"))],
                [[loss, *(part for e in ENCODERS for part in cells[loss, e])] for loss in others],
                f"Difference to `{first}` on the same encoder in points, counts summed over seeds, "
                "and p by paired bootstrap / approximate randomisation.",
            )

    def letter(self) -> Table | None:
        rows = []
        for task in self.results:
            for key, runs in task.letter.items():
                plain = [task.runs[key][0].scores[kept, -1] for kept in (LAST, AVERAGED)]
                bare = [runs[0].scores[kept, -1] for kept in (LAST, AVERAGED)]
                rows.append([task.name, key, *(f"{x:.2f}" for x in (*bare, *plain))])
        heads = ["to the letter, last", "averaged", "with more, last", "averaged"]
        caption = "Test scores after the last pass."
        return Table(["task", "learner", *heads], rows, caption, align="llr") if rows else None

    def plots_by_n(self) -> list[Plot]:
        return [f(task) for task in self.lists for f in (scores_by_n, seconds_by_n)]

    def by_n(self) -> Iterator[Table]:
        for task in self.lists:
            rows = []
            for n, runs in task.by_n.items():
                last, mean = (
                    task.curve(e)[:, -1] if n == self.plan.n else _ends(runs, e.kept)
                    for e in (SAPO, SAPO_AVERAGED)
                )
                rows.append([n, spread(last), spread(mean), f"{seconds_of(runs):.3f}"])
            ends = (spread(task.curve(e)[:, -1]) for e in (CRF, CRF_AVERAGED))
            rows.append(["CRF", *ends, f"{seconds_of(task.runs['crf']):.3f}"])
            heads = ["n", "last weights", "average", "CPU s a pass"]
            yield Table(heads, rows, f"**{task.name}**, {_metric(task)}.", align="r")

    def by_search(self) -> Table | None:
        titles, rows = {"astar": "A*", "beam": "beam 50", "list": "list Viterbi"}, []
        for task in self.lists:
            exact = task.by_search["astar"]
            for key, runs in task.by_search.items():
                test = task.compare(exact, runs, (LAST, LAST))
                ends = [f"{runs[0].scores[kept, -1]:.2f}" for kept in (LAST, AVERAGED)]
                cells = [None] * 2 if runs is exact else [f"{-test.points:+.2f}", test.cells[1]]
                rows.append([task.name, titles[key], *ends, *cells, f"{seconds_of(runs):.3f}"])
        heads = ["task", "search", "last weights", "average", "last − A*", "p", "CPU s a pass"]
        return Table(heads, rows, f"SAPO with n = {self.plan.n}.", align="llr") if rows else None

    def data(self) -> Table:
        rows = []
        for p in (task.problem for task in self.results):
            sizes = [len(p.train), len(p.test), p.train.n_tokens, len(p.train.labels)]
            rows.append([p.task.name, p.task.about, *sizes, p.train.features.size])
        caption = "Data: sentences, training tokens, labels, and attributes of the training text."
        heads = ["task", "what", "train", "test", "tokens", "labels", "attributes"]
        return Table(heads, rows, caption)

    def chosen(self) -> Table:
        rows = []
        for task in self.results:
            rate, lam, score = task.chosen
            edges = " and ".join(task.edges) or None
            rows.append([task.name, f"{rate:g}", f"{lam:g}", score, edges])
        return Table(
            ["task", "rate", "λ", "held-out score", "at the edge of its grid"],
            rows,
            "Chosen for the CRF, used by CRF and SAPO. The paper: λ = 2 (POS), 5 (Bio-NER), 1 "
            "(chunking); its rate is not given.",
            align="lrrrl",
        )

    def tried(self) -> Iterator[Table]:
        for task in self.results:
            rates, lams = (sorted({trial[k] for trial in task.trials}) for k in (0, 1))
            by = {(t.rate, t.lam): t.score for t in task.trials}
            yield Table(
                ["rate", *(f"λ = {lam:g}" for lam in lams)],
                [[f"{rate:g}", *(by.get((rate, lam)) for lam in lams)] for rate in rates],
                f"**{task.name}**: {_metric(task)} on held-out sentences after "
                f"{task.problem.task.tuning_passes} passes.",
            )

    def signatures(self) -> Iterator[Block]:
        for task in self.results:
            yield f"**{task.name}**"
            yield Code("\n".join(runs[0].signature for runs in task.runs.values()))


def _ends(runs: Sequence[Run], kept: int) -> np.ndarray:
    return np.array([r.scores[kept, -1] for r in runs])


def _metric(task: Results) -> str:
    return {"f1": "F", "accuracy": "accuracy"}[task.metric]
