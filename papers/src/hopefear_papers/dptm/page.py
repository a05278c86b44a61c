"""The page: verdicts first, then the paper's tables and figures beside our numbers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from hopefear.report.plot import Plot
from hopefear_papers import pages
from hopefear_papers.dptm import claims
from hopefear_papers.dptm.plan import TABLE, TG, Plan, Spec, at, label
from hopefear_papers.dptm.runs import (
    DECODER,
    LINE,
    MERT,
    POOLED,
    RETUNED,
    Results,
    as_is,
    edges,
    text_of,
)
from hopefear_papers.frame import Call, at_most, frontier, spread
from hopefear_papers.pages import Table
from hopefear_papers.translations import FOLDER, METRIC

SWEPT = ("vrda-risk", *(f"{tg}-risk" for tg in TG))
_NAMES = {DECODER: "Baseline: the decoder's choice", RETUNED: "Baseline, weights tuned anew"}


def signature(plan: Plan) -> dict[str, object]:
    return {
        "lists": FOLDER,
        "passes": "/".join(map(str, plan.marks)),
        "seeds": ",".join(map(str, plan.seeds)),
        "restarts": plan.restarts,
        "metric": METRIC.signature,
    }


def table_text(results: Results) -> str:
    """Table 3, for a terminal."""
    lines = [f"{'':20}{'dev':>8}" + "".join(f"{label(where):>19}" for where in results.places)]
    for name in (DECODER, RETUNED, *TABLE):
        cells = [
            f"{scores[0]:.2f}" if len(scores) == 1 else spread(scores)
            for scores in (results.bleus(name, where) for where in results.places)
        ]
        lines.append(f"{name:20}{results.dev(name):>8.2f}" + "".join(f"{c:>19}" for c in cells))
    return "\n".join(lines)


def content(results: Results, call: Call) -> dict[str, Any]:
    return {
        "settings": asdict(results.plan),
        "pairs": results.problem.size,
        "lists": {
            "train": len(results.problem.train),
            "dev": len(results.problem.dev.lists),
            **{name: len(part.lists) for name, part in results.problem.tests.items()},
        },
        "table": {key: [t._asdict() for t in trials] for key, trials in results.table.items()},
        "sweeps": {key: [t._asdict() for t in trials] for key, trials in results.sweeps.items()},
        "decoder": {where: float(results.bleus(DECODER, where)[0]) for where in results.places},
        "choices": {name: _choice(results, name) for name in results.scored},
        "tests": results.tests.plain(),
    }


def _choice(results: Results, name: str) -> dict[str, Any]:
    scored = results.scored[name]
    numbers: dict[str, Any] = {"signature": scored[0].signature}
    numbers |= {key: [getattr(s, key) for s in scored] for key in ("nnz", "weight")}
    for how in (LINE, MERT):
        bleus = {where: results.bleus(name, where, how).tolist() for where in results.places}
        numbers[how] = {"dev": [s.dev[how] for s in scored], **bleus}
    return (results.choices[name]._asdict() if name in results.choices else {}) | numbers


def frontiers(results: Results, where: str, how: str) -> Plot:
    """The best of each with at most so many weights, as chosen on development lists."""
    added = "all weights by MERT" if how == MERT else "the model's weight alone"
    plot = Plot(f"{label(where)}, {added}", "non-zero weights, mean", "BLEU", "log", "linear")
    lines = {"decoder": float(results.bleus(DECODER, where).mean())}
    if how == MERT:
        lines["tuned anew"] = float(results.bleus(RETUNED, where).mean())
    curves = {
        Spec(key).rule_title: [
            (results.nnz(name), results.bleus(name, where, how))
            for name in (at_most(key, level) for level in results.plan.levels)
            if name in results.scored
        ]
        for key in SWEPT
    }
    return frontier(plot, curves, lines)


def all_settings(results: Results) -> Plot:
    """Every setting that was tried, on development lists."""
    plot = Plot("all settings", "non-zero weights", "BLEU on development lists", "log", "linear")
    for look, key in enumerate(SWEPT):
        trials = [t for t in results.sweeps[key] if t.nnz > 0]
        nnz, dev = [t.nnz for t in trials], [t.dev for t in trials]
        plot.points(nnz, dev, Spec(key).rule_title, look=look)
    return plot.hline(results.dev(DECODER, LINE), "decoder")


class Report(pages.Report):
    """Tables and plots of the page."""

    results: Results
    plan: Plan
    place, place_title = "where", "lists"
    claim, ours = "claim", (claims.OURS,)

    def places(self) -> dict[str, str]:
        return {where: label(where) for where in (*self.results.places, claims.STEADY)}

    def values(self) -> dict[str, Any]:
        return super().values() | {
            "claims": claims,
            "POOLED": POOLED,
            "n_tuning_seeds": len(self.plan.tuning_seeds),
            "n_level_seeds": len(self.plan.level_seeds),
        }

    def worth(self) -> Table:
        ways, rows = {MERT: "MERT", LINE: "its own weight"}, []
        names = ("vrda-risk", "sgd-risk", RETUNED)
        for name, how, other in itertools.product(names, ways, (DECODER, RETUNED)):
            if name == other or (RETUNED in (name, other) and how == LINE):
                continue
            score, _, *cells = self.results.against(name, other, POOLED, how).row
            rows.append([_title(name), ways[how], _NAMES[other], score, *cells])
        caption = "p by paired bootstrap / approximate randomisation; BLEU of all seeds together."
        heads = ["model", "added by", "against", "BLEU", "difference [95 %]", "p"]
        return Table(heads, rows, caption, align="lllr")

    def table_3(self) -> Table:
        results, rows = self.results, []
        for name in (DECODER, RETUNED, *TABLE, *(as_is(key) for key in TABLE)):
            if name not in results.scored and name != DECODER:
                continue
            cells: list[str | None]
            cells = [_cell(results, name, where, MERT) for where in results.places]
            cells.append(None if name == RETUNED else _cell(results, name, POOLED, LINE))
            base = (f"{claims.BASELINE}",) * 2
            theirs = base if name == DECODER else claims.TABLE_3.get(name, ())
            dev = f"{results.dev(name):.2f}"
            rows.append([_title(name), dev, *cells, ", ".join(theirs) or None])
        heads = ["model", "dev", *map(label, results.places), claims.STEADY]
        return Table([*heads, "paper: TEST1, TEST2"], rows, align="lr")

    def table_4(self) -> Iterator[Table]:
        results, plan, rows = self.results, self.plan, []
        for l1 in plan.strengths:
            name = at(l1)
            row = [f"{l1:g}", f"{results.nnz(name):,.0f}", f"{claims.share(results, l1):.2%}"]
            row.append(f"{results.dev(name):.2f}")
            for where, how in (*((where, MERT) for where in results.places), (POOLED, LINE)):
                differs = l1 and results.against(name, at(0.0), where, how).significant
                row.append(spread(results.bleus(name, where, how)) + (" α" if differs else ""))
            rows.append(row)
        heads = ["λ", "NNZ", "share", "dev", *map(label, results.places), claims.STEADY]
        yield Table(heads, rows, "Ours.", align="r")
        rows = []
        for l1 in plan.strengths[1:]:
            ways = (results.against(at(l1), at(0.0), POOLED, how) for how in (MERT, LINE))
            rows.append([f"{l1:g}", *(cell for difference in ways for cell in difference.cells)])
        heads = ["λ", "difference to λ = 0 [95 %]", "p", f"{LINE}: difference", "p"]
        yield Table(heads, rows, "Both test sets together.", align="r")
        theirs = [[f"{l1:g}", f"{nnz:,}", one, two] for l1, nnz, one, two in claims.TABLE_4]
        yield Table(["λ", "NNZ", "TEST1", "TEST2"], theirs, "The paper.", align="r")

    def figures_7_and_8(self) -> list[Plot]:
        pairs = itertools.product((MERT, LINE), self.results.places)
        plots = [frontiers(self.results, where, how) for how, where in pairs]
        return [*plots, all_settings(self.results)]

    def against_tg(self) -> Table:
        results, rows = self.results, []
        for tg, rate in TG.items():
            for (level, pair), how in itertools.product(claims.levels(results, tg), (MERT, LINE)):
                sizes = (f"{results.nnz(name):,.0f}" for name in pair)
                test = results.against(*pair, POOLED, how)
                rows.append([rate, f"{level:,}", how, *sizes, *test.row])
        heads = ["TG's rate", "at most", "added by", "VRDA: NNZ", "TG: NNZ", "VRDA", "TG"]
        caption = "VRDA against TG, both test sets together."
        return Table([*heads, "difference [95 %]", "p"], rows, caption, align="lrlr")

    def chosen(self) -> Table:
        plan, rows = self.plan, []
        for name, trial in self.results.choices.items():
            specs = plan.sweeps if "λ" in name or "≤" in name else plan.table
            ends = edges(trial, next(s for s in specs if s.key == trial.spec), plan.marks)
            setting = [name, text_of(trial.params), trial.passes, trial.kept]
            scores = [f"{trial.dev:.2f}", f"{trial.plain:.2f}", f"{trial.nnz:,.0f}"]
            rows.append([*setting, *scores, ", ".join(ends)])
        heads = ["choice", "setting", "passes", "kept", "dev", "weight 1", "NNZ", "at an end"]
        return Table(heads, rows, align="llrlrrrl")

    def sizes(self) -> dict[str, object]:
        problem = self.results.problem
        return {
            "training lists": len(problem.train),
            "development lists": len(problem.dev.lists),
            **{name: len(part.lists) for name, part in problem.tests.items()},
            "phrase pairs": problem.size,
            "MERT": f"{self.plan.restarts} restarts, from the decoder's weights",
            "draws of each test": self.plan.replicates,
        }


def _cell(results: Results, name: str, where: str, how: str) -> str:
    scores = results.bleus(name, where, how)
    if name == DECODER:
        return f"{scores[0]:.2f}"
    marks = ""
    if results.against(name, DECODER, where, how).significant:
        marks += "α"
    anew = how == MERT and name != RETUNED
    if anew and results.against(name, RETUNED, where).significant:
        marks += "α′"
    other = name.replace("vrda-", "sgd-")
    if other != name and other in results.scored and "λ" not in name:
        marks += "β" if results.against(name, other, where, how).significant else ""
    return f"{spread(scores)} {marks}".rstrip()


def _title(name: str) -> str:
    if name in _NAMES:
        return _NAMES[name]
    key, *rest = name.split(", ", 1)
    return ", ".join([Spec(key).title, *rest])
