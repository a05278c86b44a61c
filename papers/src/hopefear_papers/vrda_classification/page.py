"""The page: verdicts first, then the paper's table and figures with ours beside them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from hopefear.report.page import Best
from hopefear.report.plot import Plot
from hopefear_papers import pages
from hopefear_papers.claims import AGREES, DISAGREES, tally
from hopefear_papers.frame import Call, plain, short
from hopefear_papers.pages import Block, Code, Table
from hopefear_papers.parses import MIN_COUNT
from hopefear_papers.vrda_classification.claims import SETTINGS, TABLE_1, TIME_RATIO
from hopefear_papers.vrda_classification.plan import (
    HELD_OUT,
    LOSSES,
    MARGIN,
    SEED,
    SWING,
    TRANSFORM,
    Plan,
)
from hopefear_papers.vrda_classification.runs import (
    SEPARATION,
    Measurement,
    Results,
    Run,
    Scores,
    compare_scores,
)


def signature(plan: Plan) -> dict[str, object]:
    return {
        "passes": plan.passes,
        "seed": SEED,
        **TRANSFORM,
        "intercept": "none",
        "held-out": HELD_OUT,
    }


def table_text(measurement: Measurement) -> str:
    """Nothing is told at the end."""
    return ""


def content(measurement: Measurement, call: Call) -> dict[str, Any]:
    fixed = {"seed": SEED, "held_out": HELD_OUT, "transform": TRANSFORM}
    return {
        "note": call.note,
        "settings": asdict(call.plan) | fixed,
        "problems": {results.name: _problem(results) for results in measurement.problems},
        "bound": [
            {"noise": c.noise, "l1": c.strength, "reports": [r.to_dict() for r in c.reports]}
            for c in measurement.curves
        ],
    }


def _problem(results: Results) -> dict[str, Any]:
    problem = results.problem
    parts = {"train": problem.train, "test": problem.test}
    if problem.dev is not None:
        parts["dev"] = problem.dev
    order = ("best", "sparse", "edges", "trials")
    choices = {key: asdict(choice) for key, choice in results.choices.items()}
    return {
        "data": {
            "about": problem.about,
            **{name: len(part) for name, part in parts.items()},
            "features": problem.n_features,
            **({"classes": list(problem.train.classes)} if problem.task == "classify" else {}),
            **{f"{name}_digest": part.digest for name, part in parts.items()},
        },
        "baseline": None if results.baseline is None else _scores(results.baseline),
        "chosen": {key: {name: c[name] for name in order} for key, c in choices.items()},
        "best": {key: _run(r) for key, r in results.best.items()},
        "sparse": {key: _run(r) for key, r in results.sparse.items()},
        "trails": {
            key: [{"l1" if k == "strength" else k: v for k, v in plain(t).items()} for t in trails]
            for key, trails in results.trails.items()
        },
        "votes": {
            loss: {
                "voted": float(v.voted.series(results.task.main)[0]),
                "averaged": float(v.averaged.series(results.task.main)[0]),
                "examples": v.voted.choices.shape[1],
                "predictors": v.predictors,
                "seconds_per_1000": v.seconds,
                "megabytes": v.megabytes,
            }
            for loss, v in results.votes.items()
        },
        "seconds_per_pass": results.times,
    }


def _run(run: Run) -> dict[str, Any]:
    return {
        "setting": run.setting,
        "signature": run.signature,
        "mistakes": run.mistakes.tolist(),
        "averaged": _scores(run.averaged),
        "last": _scores(run.last),
    }


def _scores(scores: Scores) -> dict[str, Any]:
    series = {name: scores.series(name).tolist() for name in scores.task.names}
    return {"mean": scores.summary(), "nnz": scores.nnz.tolist(), **series}


def _bars(title: str, groups: dict[str, list[Scores]], plan: Plan) -> Plot:
    bars = {
        name: [
            (float(v.mean()), float(v.std())) for v in (s.series("f1")[plan.settled] for s in of)
        ]
        for name, of in groups.items()
    }
    ends = [mean + sign * std for pairs in bars.values() for mean, std in pairs for sign in (-1, 1)]
    # Bars from zero would hide differences of a point; the axis says where it starts.
    room = max(0.5, 0.4 * (max(ends) - min(ends)))
    low, high = max(0.0, float(np.floor(min(ends) - room))), min(100.0, max(ends) + room)
    plot = Plot(title, "", "F, %", y_range=(low, high))
    for name, pairs in bars.items():
        means, stds = zip(*pairs, strict=True)
        plot.bars(list(LOSSES), list(means), list(stds), group=name)
    return plot


class Report(pages.Report):
    """Tables and plots of the page."""

    results: Measurement
    plan: Plan
    place = "problem"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.problems = self.results.problems
        self.whole = [results for results in self.problems if results.whole]

    def places(self) -> dict[str, str]:
        return {results.name: results.name for results in self.problems}

    def values(self) -> dict[str, Any]:
        return super().values() | {
            "MARGIN": MARGIN,
            "SWING": SWING,
            "HELD_OUT": HELD_OUT,
            "MIN_COUNT": MIN_COUNT,
            "TIME_RATIO": TIME_RATIO,
            "SEPARATION": SEPARATION,
            "late": len(range(self.plan.passes)[self.plan.settled]),
        }

    def tallies(self) -> Iterator[str]:
        """Verdicts counted on the paper's own task and on classes, and where claims hold."""
        for task, title in (("rerank", "lists, the paper's own task"), ("classify", "classes")):
            places = [results.name for results in self.problems if results.problem.task == task]
            if places:
                yield f"On {title}: {tally([v for v in self.all_verdicts if v.where in places])}."
        claims: dict[str, set[str]] = {}
        for v in self.all_verdicts:
            if v.where in self.places():
                claims.setdefault(v.claim, set()).add(v.verdict)
        piles: dict[str, list[str]] = {
            "Holds on all problems": [],
            "Contradicted on all problems": [],
            "Depends on the problem, or is not shown": [],
        }
        holds, contradicted, depends = piles.values()
        for claim, words in claims.items():
            pile = holds if words == {AGREES} else contradicted if words == {DISAGREES} else depends
            pile.append(claim)
        for title, pile in piles.items():
            if pile:
                yield f"**{title}**: {'; '.join(pile)}."

    def data(self) -> Table:
        rows: list[list[object]] = []
        for p in (results.problem for results in self.problems):
            values = round(p.train.rows.values.size / len(p.train), 1)
            rows.append([p.name, p.about, len(p.train), len(p.test), p.n_features, values])
        heads = ["problem", "what", "train", "test", "features", "values a row"]
        return Table(heads, rows, "Data.")

    def table_1(self) -> Iterator[Table]:
        yield Table(
            ["learner", "precision", "recall", "F", "weights"],
            [[name, p, r, f, None if n is None else f"{n} K"] for name, p, r, f, n in TABLE_1],
            "The paper's own Table 1: **parse reranking** (labelled brackets), 1.2 M features.",
            align="lr",
            notes=f"Their settings: {SETTINGS}.",
        )
        for results in self.problems:
            rows = self._rows(results, results.best)
            if results.baseline is not None:
                rows.insert(0, _baseline(results.baseline))
            problem = results.problem
            many = problem.task == "classify" and len(problem.train.classes) > 2
            yield Table(
                _columns(results),
                rows,
                f"**{results.name}**: test scores in percent"
                f"{', macro over the classes' if many else ''}, mean ± "
                f"deviation over {self.plan.passes} passes.",
                highlight={**_best(results), "F": "max", f"last: {results.task.title}": "max"},
            )

    def sparsest(self) -> Iterator[Table]:
        for results in self.problems:
            rows = self._rows(results, results.sparse)
            caption = f"**{results.name}**, sparsest within one standard error."
            yield Table(_columns(results), rows, caption, highlight=_best(results))

    def _rows(self, results: Results, runs: dict[str, Run]) -> list[list[object]]:
        titles = {spec.key: spec.title for spec in self.plan.learners(results.problem)}
        return [_row(titles[key], run) for key, run in runs.items()]

    def figure_1(self) -> Iterator[Plot]:
        """Non-zero weights while training, by strength of regularisation."""
        for results, loss in itertools.product(self.whole, LOSSES):
            plot = Plot(f"{results.name}, {loss}", "samples", "non-zero weights", y_scale="log")
            for look, trail in enumerate(results.trails[loss]):
                trail.draw(plot, "nnz", f"λ = {short(trail.strength)}", look)
            yield plot

    def figure_2(self) -> Iterator[Plot]:
        """Sparsity against quality on the held-out rows, over the strengths."""
        for results in self.whole:
            size = results.problem.n_features
            heads = "non-zero weights as a share of the features", "F on held-out rows, %"
            plot = Plot(results.name, *heads, x_scale="log")
            for look, loss in enumerate(LOSSES):
                trials = results.choices[f"vrda-{loss}"].along("l1")
                average, last = (
                    [(t.nnz, t.f1) for t in trials],
                    [(t.last_nnz, t.last_f1) for t in trials],
                )
                for dashed, (name, pairs) in enumerate((("average", average), ("last", last))):
                    nnz, f1 = np.array([pair for pair in pairs if pair[0] > 0]).reshape(-1, 2).T
                    plot.line(
                        nnz / size, f1, f"{loss}, {name}", bool(dashed), look=look + 2 * dashed
                    )
            yield plot

    def figure_3(self) -> Iterator[Plot]:
        """Training mistakes against samples."""
        for results, loss in itertools.product(self.whole, LOSSES):
            plot, trails = (
                Plot(f"{results.name}, {loss}", "samples", "mistakes"),
                results.trails[loss],
            )
            for look, trail in enumerate(trails):
                trail.draw(plot, "mistakes", f"vRDA, λ = {short(trail.strength)}", look, zeros=True)
            (other,) = results.trails["perceptron"]
            yield other.draw(plot, "mistakes", "(voted) perceptron", len(trails), True, zeros=True)

    def figure_4(self) -> Iterator[Plot]:
        """Last weights against the average: mean and deviation of F over the settled passes."""
        for results in self.whole:
            runs = [results.best[f"vrda-{loss}"] for loss in LOSSES]
            groups = {
                "single (last)": [r.last for r in runs],
                "averaged": [r.averaged for r in runs],
            }
            yield _bars(results.name, groups, self.plan)

    def figure_5(self) -> Iterator[Plot]:
        """RDA against voted RDA: mean and deviation of F over the settled passes."""
        for results in self.whole:
            groups = {
                title: [results.best[f"{key}-{loss}"].averaged for loss in LOSSES]
                for title, key in (("RDA", "rda"), ("vRDA", "vrda"))
            }
            yield _bars(results.name, groups, self.plan)

    def times(self) -> Table:
        rows = []
        for results in self.whole:
            for loss in LOSSES:
                row: list[object] = [results.name, loss]
                for averaging in ("averaged", "last"):
                    keys = (f"{rule}-{loss} {averaging}" for rule in ("rda", "vrda"))
                    row += [1000.0 * results.times[key] for key in keys]
                    row.append(f"{results.ratio(loss, averaging):.1%}")
                rows.append([*row, f"{TIME_RATIO[loss]:.1%}"])
        return Table(
            [
                *("problem", "loss", "RDA", "vRDA", "share"),
                *("RDA, last", "vRDA, last", "share, last", "paper"),
            ],
            rows,
            f"CPU milliseconds a pass and vRDA's share of RDA's, with the exact average and for "
            f"the last weights only: the least of {self.plan.repeats} runs of "
            f"{self.plan.timed_passes} passes, taken in turn, each learner at its chosen setting.",
            align="llr",
        )

    def votes(self) -> Table:
        rows = []
        for results in self.whole:
            for loss, votes in results.votes.items():
                test = compare_scores(votes.averaged, votes.voted)
                costs = (f"{a:.3g} / {b:.2g}" for a, b in (votes.seconds, votes.megabytes))
                scores = [test.second, test.first, test.gap]
                rows.append([results.name, loss, votes.predictors, *scores, *costs])
        examples = ", ".join(
            f"{results.votes['hinge'].voted.choices.shape[1]:,} ({results.name})"
            for results in self.whole
        )
        return Table(
            [
                *("problem", "loss", "predictors", "voted, %", "averaged, %"),
                *("difference [95 %]", "seconds", "megabytes"),
            ],
            rows,
            "Test accuracy (lists: F) after one pass; CPU seconds for 1,000 examples and the size "
            "of what is kept, voted / averaged.",
            align="llr",
            notes=f"On the first {examples} test examples.",
        )

    def bound_plots(self) -> Iterator[Plot]:
        """Mistakes, and the most that Theorem 1 allows."""
        for noise in dict.fromkeys(c.noise for c in self.results.curves):
            title = "separable" if noise == 0.0 else f"{noise:.0%} of the labels wrong"
            plot = Plot(title, "samples", "mistakes", x_scale="log", y_scale="log")
            for look, curve in enumerate(c for c in self.results.curves if c.noise == noise):
                samples, mistakes, most = zip(
                    *((r.samples, r.mistakes, r.theorem1) for r in curve.reports), strict=True
                )
                plot.line(samples, mistakes, f"mistakes, {curve.label}", look=2 * look)
                plot.line(samples, most, f"Theorem 1, {curve.label}", True, look=2 * look + 1)
            yield plot

    def bounds(self) -> Table:
        rows = []
        for c in self.results.curves:
            r = c.reports[-1]
            corollary = None if r.corollary1 is None else round(r.corollary1, 3)
            bounds = [round(r.theorem1, 1), corollary, r.lam * r.delta + 0.0, r.regime]
            rows.append([f"{c.noise:.0%}", short(c.strength), r.samples, r.mistakes, *bounds])
        return Table(
            ["noise", "λ", "samples", "mistakes", "Theorem 1", "Corollary 1", "λ Δ(u)", "regime"],
            rows,
            "At the end of the pass.",
            notes="Corollary 1 bounds the probability of an error on a new example; above 1 it "
            "says nothing.",
        )

    def chosen(self) -> Table:
        rows = []
        for results in self.problems:
            specs = {spec.key: spec for spec in self.plan.learners(results.problem)}
            for key, choice in results.choices.items():
                spec, best, sparse = specs[key], choice.best, choice.sparse.setting
                values = (_value(best.setting.get(name)) for name in (spec.strength, "rate"))
                ends = [_value(sparse.get(spec.strength)), " and ".join(choice.edges) or None]
                rows.append([results.name, spec.title, *values, best.score, *ends])
        heads = ["problem", "learner", "λ or gravity", "rate", "held-out score", "λ, sparse"]
        return Table([*heads, "at the edge of its grid"], rows, align="llrrrrl")

    def grids(self) -> Iterator[Block]:
        for name, learners in (("texts", self.plan.specs), ("lists", self.plan.list_specs)):
            yield f"**{name}**"
            yield {
                s.title: {s.strength: s.strengths, "rate": s.rates or "fixed"}
                for s in learners
                if s.strength
            }

    def signatures(self) -> Iterator[Block]:
        for results in self.problems:
            yield f"**{results.name}**"
            yield Code("\n".join(run.signature for run in results.best.values()))


def _columns(results: Results) -> list[str]:
    title = results.task.title
    scores = dict.fromkeys(("precision", "recall", "F", title))
    return ["learner", *scores, "weights", f"last: {title}", "last: weights"]


def _best(results: Results) -> dict[str, Best]:
    return {results.task.title: "max", "weights": "min", "last: weights": "min"}


def _row(title: str, run: Run) -> list[object]:
    average, last, main = run.averaged.summary(), run.last.summary(), run.averaged.task.main
    scores = (_spread(average, name) for name in dict.fromkeys(("f1", main)))
    means = [average["precision"], average["recall"], *scores, round(average["nnz"])]
    return [title, *means, _spread(last, main), round(last["nnz"])]


def _baseline(scores: Scores) -> list[object]:
    means = scores.summary()
    row = [means["precision"], means["recall"], f"{means['f1']:.2f}"]
    return ["Baseline: the first of each list", *row, None, None, None]


def _spread(means: dict[str, float], name: str) -> str:
    return f"{means[name]:.2f} ± {means[f'{name}_std']:.2f}"


def _value(value: float | None) -> str | None:
    return None if value is None else f"{value:g}"
