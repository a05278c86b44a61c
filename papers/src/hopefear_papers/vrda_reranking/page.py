"""The page: verdicts first, then the paper's tables and figures beside ours, then our own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from hopefear.metrics.lists import Parseval
from hopefear.report.plot import Plot
from hopefear_papers import pages
from hopefear_papers.frame import Call, at_most, frontier, plain, short, spread
from hopefear_papers.pages import Code, Table, crossed
from hopefear_papers.parses import FEATURES, MIN_COUNT, f_score
from hopefear_papers.vrda_reranking import claims
from hopefear_papers.vrda_reranking.plan import (
    AVERAGED,
    GOAL,
    KEPT,
    LOSSES,
    SUPPORT,
    TG,
    Plan,
)
from hopefear_papers.vrda_reranking.runs import (
    TABLE,
    TOP,
    VOTED,
    Results,
    Scored,
    at,
    edges,
    sparse,
    tenth,
    text_of,
    truncated,
)

RULES = {"vrda": "VRDA", **{tg: f"TG, {rate}" for tg, rate in TG.items()}}


def signature(plan: Plan) -> dict[str, object]:
    return {
        "features": FEATURES,
        "min_count": MIN_COUNT,
        "passes": "/".join(map(str, plan.marks)),
        "seeds": ",".join(map(str, plan.seeds)),
        "folds": plan.folds,
        "metric": Parseval().signature,
    }


def scores_of(counts: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """F, precision and recall of each seed."""
    scores = [Parseval().scores(c.sum(axis=0)) for c in counts]
    return {name: np.array([s[name] for s in scores]) for name in ("f1", "precision", "recall")}


def table_text(results: Results) -> str:
    """Table 1, for a terminal."""
    lines = [f"{'':18}{'dev F':>9}{'test F':>16}{'weights':>10}"]
    for name in ("baseline", *TABLE, TOP):
        f1 = f_scores(results, name, "test")
        if name == "baseline":
            lines.append(f"{name:18}{'':9}{f1.mean():>16.2f}")
            continue
        dev = mean_dev(results, name)
        lines.append(f"{name:18}{dev:>9.2f}{spread(f1):>16}{results.nnz(name):>10,.0f}")
    return "\n".join(lines)


def content(results: Results, call: Call) -> dict[str, Any]:
    return {
        "settings": asdict(call.plan),
        "lists": results.lists,
        "features": results.features,
        "baseline": {where: f_score(results.baseline[where]) for where in claims.PLACES},
        "oracle": {where: f_score(results.oracle[where]) for where in claims.PLACES},
        "trials": {
            key: [{**t._asdict(), "kept": KEPT[t.kept]} for t in trials]
            for key, trials in results.trials.items()
        },
        "choices": {name: _choice(results, name) for name in results.choices},
        "published": {name: _scored(scored) for name, scored in results.published.items()},
        "votes": {k: [f_score(c) for c in counts] for k, counts in results.votes.items()},
        "trails": {key: [plain(t) for t in trails] for key, trails in results.trails.items()},
        "bounds": {key: [plain(b) for b in runs] for key, runs in results.bounds.items()},
        "tests": results.against.plain(),
    }


def _choice(results: Results, name: str) -> dict[str, Any]:
    trial = results.choices[name]
    numbers: dict[str, Any] = {**trial._asdict(), "kept": KEPT[trial.kept]}
    numbers["test"] = _scored(results.test[name])
    if name in results.folds:
        (whole,) = results.counts(name, "folds")
        numbers["folds"] = {**_scored(results.folds[name]), "f1_of_all": f_score(whole)}
    return numbers


def _scored(scored: Sequence[Scored]) -> dict[str, Any]:
    return {
        "signature": scored[0].signature,
        "dev": [s.dev for s in scored],
        "nnz": [s.nnz for s in scored],
        **{k: values.tolist() for k, values in scores_of([s.counts for s in scored]).items()},
    }


def title_of(results: Results, name: str) -> str:
    """Name of the learner of a choice."""
    title = results.plan.spec(results.choices[name].spec).title
    return f"Best by dev: {title}" if name == TOP else title


def f_scores(results: Results, name: str, where: str) -> np.ndarray:
    """F of a choice, by seed."""
    return scores_of(results.counts(name, where))["f1"]


def mean_f(results: Results, name: str, where: str) -> float:
    """F of a choice, mean over seeds."""
    return float(f_scores(results, name, where).mean())


def mean_dev(results: Results, name: str) -> float:
    """F of a choice on development lists, mean over seeds."""
    return float(np.mean([s.dev for s in results.test[name]]))


def all_settings(results: Results, loss: str) -> Plot:
    """Every setting that was tried, on development lists."""
    title = f"{loss}: all settings"
    plot = Plot(title, "non-zero weights", "F on development lists, %", "log", "linear")
    for look, (rule, name) in enumerate(RULES.items()):
        trials = [t for t in results.trials[f"{rule}-{loss}"] if t.nnz > 0 and t.dev > 82.0]
        plot.points([t.nnz for t in trials], [t.dev for t in trials], name, look=look)
    return plot


def frontiers(results: Results, loss: str, where: str) -> Plot:
    """The best of each with at most so many weights, as chosen on development lists."""
    plan = results.plan
    title = "test lists" if where == "test" else f"{plan.folds} folds"
    plot = Plot(f"{loss}: {title}", "non-zero weights, mean", "F, %", "log", "linear")
    curves = {
        title: [
            (results.nnz(key, where), f_scores(results, key, where))
            for key in (at_most(f"{rule}-{loss}", level) for level in plan.levels)
            if key in getattr(results, where)
        ]
        for rule, title in RULES.items()
    }
    lines = {name: mean_f(results, name, where) for name in ("baseline", "perceptron")}
    return frontier(plot, curves, lines)


def trails_plot(plot: Plot, results: Results, loss: str, what: str) -> Plot:
    """Weights or mistakes while training, by strength, and the perceptron's."""
    trails = results.trails[loss]
    for look, trail in enumerate(trails):
        trail.draw(plot, what, f"VRDA, λ = {short(trail.strength)}", look)
    return results.trails["perceptron"][0].draw(plot, what, "perceptron", len(trails), True)


def bounds_plot(plot: Plot, results: Results) -> Plot:
    """Mistakes after each pass, and Theorem 1 where it says something."""
    for look, run in enumerate(results.bounds[plot.title]):
        plot.line(run.samples, run.mistakes, f"λ = {short(run.strength)}", look=look)
        some = run.theorem1 > 0.0
        if some.any():
            name = f"bound, λ = {short(run.strength)}"
            plot.line(run.samples[some], run.theorem1[some], name, dashed=True, look=look)
    return plot


class Report(pages.Report):
    """Tables and plots of the page."""

    results: Results
    plan: Plan
    place, place_title = "where", "lists"
    claim, ours = "claim", (claims.OURS,)

    def places(self) -> dict[str, str]:
        return {where: where for where in (*claims.PLACES, "training")}

    def values(self) -> dict[str, Any]:
        return super().values() | {
            "claims": claims,
            "lists": self.results.lists,
            "features": self.results.features,
            "n_tuning_seeds": len(self.plan.tuning_seeds),
            "floor": self.results.choices["perceptron"].dev,
            "top": title_of(self.results, TOP),
            "GOAL": GOAL,
            "FEATURES": FEATURES,
            "MIN_COUNT": MIN_COUNT,
        }

    def table_1(self) -> Table:
        results, theirs = self.results, {name: row for name, *row in claims.TABLE_1}
        rows: list[list[object]] = []
        for name in ("baseline", *TABLE, TOP):
            scores = scores_of(results.counts(name, "test"))
            title, nnz, star, folds = "Baseline", None, "", None
            if name != "baseline":
                title, nnz = title_of(results, name), f"{results.nnz(name):,.0f}"
                star = "*" if results.against(name, "baseline", "test").significant else ""
            if results.has(name, "folds"):
                folds = f"{mean_f(results, name, 'folds'):.2f}"
            *paper, k = theirs.get(name.replace("tg-printed", "tg"), (None,) * 4)
            f1 = f"{scores['f1'].mean():.2f}" if nnz is None else f"{spread(scores['f1'])}{star}"
            row: list[object] = [
                title,
                f1,
                *(f"{scores[key].mean():.2f}" for key in ("precision", "recall")),
            ]
            row += [nnz, folds, *(None if v is None else f"{100 * v:.2f}" for v in paper)]
            rows.append([*row, None if k is None else f"{k}K"])
        heads = ["learner", "F", "P", "R", "NNZ", "F, folds"]
        oracle = (f"{mean_f(results, 'oracle', where):.2f}" for where in claims.PLACES)
        return Table(
            [*heads, "paper: F", "paper: P", "paper: R", "paper: NNZ"],
            rows,
            "The oracle of the lists has F {} on test lists and {} over folds.".format(*oracle),
            align="lr",
        )

    def differences(self) -> Table:
        results = self.results
        pairs = [(name, "perceptron") for name in (*TABLE[1:], TOP)]
        pairs += [(f"vrda-{loss}", f"{tg}-{loss}") for tg in TG for loss in LOSSES]
        return crossed(
            "difference of F",
            {f"{title_of(results, a)} − {title_of(results, b)}": (a, b) for a, b in pairs},
            claims.PLACES,
            lambda where: (f"{where} [95 %]", "p"),
            lambda pair, where: results.against(*pair, where).cells,
            "p by paired bootstrap / approximate randomisation "
            f"({self.plan.replicates:,} draws each).",
        )

    def sparse(self) -> Iterator[Table]:
        results, plan = self.results, self.plan
        keys = (*(spec.key for spec in plan.voted), *truncated())
        for naming, caption in (
            (sparse, "Fewest weights at the perceptron's F on development lists"),
            (tenth, f"Best with at most {GOAL:.0%} of the perceptron's weights"),
        ):
            rows = []
            for where, key in itertools.product(claims.PLACES, keys):
                name = naming(key)
                f1, _, *cells = results.against(name, "perceptron", where).row
                nnz, share = results.nnz(name, where), results.share(name, "perceptron", where)
                row = [plan.spec(key).title, where, f"{nnz:,.0f}", f"{share:.1%}", f1, *cells]
                rows.append(row)
            yield Table(
                ["learner", "lists", "NNZ", "share", "F", "F − perceptron's [95 %]", "p"],
                rows,
                f"{caption}; p by paired bootstrap / approximate randomisation.",
                align="llr",
            )

    def table_2(self) -> Iterator[Table]:
        results = self.results
        for n, loss in enumerate(LOSSES):
            rows = []
            for l1 in results.plan.sweep:
                row: list[object] = [short(l1)]
                for kept in (AVERAGED, SUPPORT):
                    name, free = at(loss, l1, kept), at(loss, 0.0, kept)
                    differs = l1 and results.against(name, free, "test").significant
                    f1 = spread(f_scores(results, name, "test")) + ("*" if differs else "")
                    row += [f1, f"{results.nnz(name):,.0f}"]
                on_folds = results.has(at(loss, l1), "folds")
                row.append(f"{mean_f(results, at(loss, l1), 'folds'):.2f}" if on_folds else None)
                if theirs := claims.TABLE_2.get(l1):
                    f, k = theirs[2 * n : 2 * n + 2]
                    row += [f"{100 * f:.2f}" + ("*" if l1 in claims.WORSE else ""), f"{k}K"]
                rows.append(row + [None] * (8 - len(row)))
            ours = ["average: F", "NNZ", "last support: F", "NNZ", "last support: F, folds"]
            heads = ["λ", *ours, "paper: F", "paper: NNZ"]
            yield Table(heads, rows, f"**{loss} loss**.", align="r")

    def figures_3_and_4(self) -> list[Plot]:
        pairs = itertools.product(claims.PLACES, LOSSES)
        plots = [frontiers(self.results, loss, where) for where, loss in pairs]
        return plots + [all_settings(self.results, loss) for loss in LOSSES]

    def against_tg(self) -> Iterator[Table]:
        results = self.results
        heads = ["loss", "TG's rate", "at most", "VRDA: NNZ", "TG: NNZ", "VRDA: F", "TG: F"]
        for where in claims.PLACES:
            rows = []
            for loss, tg in itertools.product(LOSSES, TG):
                for level, difference in claims.levels(results, loss, where, tg):
                    names = [at_most(f"{rule}-{loss}", level) for rule in ("vrda", tg)]
                    sizes = (f"{results.nnz(name, where):,.0f}" for name in names)
                    rows.append([loss, TG[tg], f"{level:,}", *sizes, *difference.row])
            lists = "test lists, seeds pooled" if where == "test" else "folds"
            caption = f"VRDA against TG, {lists}."
            yield Table([*heads, "difference", "p"], rows, caption, align="llr")

    def figure_5(self) -> list[Plot]:
        logs = [Plot(loss, "samples", "non-zero weights", y_scale="log") for loss in LOSSES]
        return [trails_plot(plot, self.results, plot.title, "nnz") for plot in logs]

    def figure_6(self) -> list[Plot]:
        plots = [Plot(loss, "samples", "mistakes") for loss in LOSSES]
        return [trails_plot(plot, self.results, plot.title, "mistakes") for plot in plots]

    def bounds(self) -> list[Plot]:
        plots = [Plot(loss, "samples", "mistakes", y_scale="log") for loss in self.results.bounds]
        return [bounds_plot(plot, self.results) for plot in plots]

    def votes(self) -> Table:
        rows = []
        for key, votes in self.results.votes.items():
            average, _, *cells = self.results.against(key, key + VOTED, "test").row
            rows.append([key, spread(scores_of(votes)["f1"]), average, *cells])
        heads = ["learner", "F, voted", "F, average", "average − voted [95 %]", "p"]
        return Table(heads, rows, "Test lists, settings of Table 1.", align="lr")

    def extensions(self) -> Table:
        results, plan = self.results, self.plan
        keys = sorted((s.key for s in plan.every), key=lambda key: -mean_dev(results, key))
        rows = []
        for key in keys:
            cells: list[Any] = [None, None]
            if key != "perceptron":
                cells = [*results.against(key, "perceptron", "test").cells]
            scores = [f"{mean_dev(results, key):.2f}", spread(f_scores(results, key, "test"))]
            rows.append([plan.spec(key).title, *scores, f"{results.nnz(key):,.0f}", *cells])
        heads = ["learner", "dev F", "test F", "NNZ", "− perceptron [95 %]", "p"]
        return Table(heads, rows, align="lr")

    def published(self) -> Table:
        results, rows = self.results, []
        whole, alone = results.features["split"], results.features["published"]
        for name in (*TABLE, TOP):
            row = [title_of(results, name)]
            for scored in (results.test[name], results.published[name]):
                f1 = scores_of([s.counts for s in scored])["f1"]
                row += [f"{np.mean([s.dev for s in scored]):.2f}", spread(f1)]
            rows.append([*row, f"{np.mean([s.nnz for s in scored]):,.0f}"])
        caption = f"{whole:,} features in all, {alone:,} of the published families."
        heads = ["learner", "all: dev F", "all: test F", "ptb: dev F", "ptb: test F", "ptb: NNZ"]
        return Table(heads, rows, caption, align="lr")

    def chosen(self) -> Table:
        plan, rows = self.plan, []
        for key, trial in self.results.choices.items():
            ends = " and ".join(edges(trial, plan.spec(trial.spec).grid, plan.marks))
            setting = [key, text_of(trial.params) or None, trial.passes, KEPT[trial.kept]]
            rows.append([*setting, f"{trial.dev:.2f}", f"{trial.nnz:,.0f}", ends or None])
        heads = ["name", "parameters", "passes", "kept", "dev F", "NNZ", "at the edge of its grid"]
        return Table(heads, rows, align="llrlrrl")

    def signatures(self) -> Code:
        return Code("\n".join(scored[0].signature for scored in self.results.test.values()))
