"""The page: verdicts first, then Table 2 beside the paper's, controls, variants, figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from hopefear.losses.swvp import BACKED_OFF, CONDITION_BROKEN, MISTAKES, NONE_USABLE
from hopefear.report.plot import Plot
from hopefear_papers import pages
from hopefear_papers.claims import p_cell
from hopefear_papers.frame import Call, plain
from hopefear_papers.pages import Code, Details, Table
from hopefear_papers.swvp_parsing.claims import (
    MARGIN,
    TABLE_2,
    by_order,
    gain,
    having,
    pooled,
    their_gain,
    their_mean,
)
from hopefear_papers.swvp_parsing.plan import (
    HELD_OUT,
    NEAR,
    ORDERS,
    OTHERS,
    SCORES,
    Plan,
)
from hopefear_papers.swvp_parsing.runs import CONTROL, TABLE, Pick, Results, Run

_HEADS = {"uas": "UAS", "uas_nopunct": "no punct.", "las": "LAS", "las_nopunct": "no punct."}


def signature(plan: Plan) -> dict[str, object]:
    banks = "/".join(f"{work.bank}({work.order}x{work.passes})" for work in plan.works)
    betas = sorted({beta for work in plan.works for beta in work.betas})
    return {
        "banks": banks.replace(" ", ""),
        "betas": "/".join(f"{beta:g}" for beta in betas),
        "weights": "averaged",
        "order": "as in the file",
    }


def content(results: Sequence[Results], call: Call) -> dict[str, Any]:
    return {
        "settings": asdict(call.plan),
        "results": [_plain(one) for one in results],
        "treebanks": {
            str(order): {
                f"{first} against {second}": _gain_numbers(several, first, second)
                for first, second in _PAIRS
                if (several := having(some, first, second))
            }
            for order, some in by_order(results).items()
        },
        "paper": {
            str(order): {name: cell._asdict() for name, cell in table.items()}
            for order, table in TABLE_2.items()
        },
    }


_PAIRS = (
    ("B-WM", "CSP"),
    ("Top B-WM", "CSP"),
    ("Test B-WM", "CSP"),
    ("CSP, pass chosen", "CSP"),
    ("B-WM, pass chosen", "CSP, pass chosen"),
    ("Top B-WM, pass chosen", "Top CSP, pass chosen"),
    ("Test B-WM, pass chosen", "Test CSP, pass chosen"),
)
# Pairs in which nothing was chosen on test, so that a test on the test sentences means something.
_HONEST = (_PAIRS[0], *_PAIRS[3:5])


def _plain(one: Results) -> dict[str, Any]:
    for first, second in _HONEST:
        one.against(first, second)
    return {
        "bank": one.bank.name,
        "order": one.work.order,
        "facts": one.facts,
        "picks": {title: _pick_numbers(pick) for title, pick in one.picks.items()},
        "runs": {key: [_run_numbers(run) for run in runs] for key, runs in one.runs.items()},
        "tests": one.against.plain(),
    }


def _pick_numbers(pick: Pick) -> dict[str, Any]:
    scores = {name: score for name in SCORES if (score := pick.score(name)) is not None}
    return {"beta": pick.run.beta, "pass": pick.place + 1, "dev": pick.dev, "test": scores}


def _run_numbers(run: Run) -> dict[str, Any]:
    """All but what single sentences have."""
    return {name: value for name, value in plain(run).items() if name != "right"}


def _gain_numbers(several: Sequence[Results], first: str, second: str) -> dict[str, Any]:
    one = gain(several, first, second)
    numbers = {"points": one.points.tolist(), "mean": one.mean, "wins": one.wins}
    return {**numbers, "p_exact": one.p_exact, "p_t": one.p_t}


def table_text(results: Sequence[Results]) -> str:
    """Table 2, for a terminal."""
    lines = []
    for order, several in by_order(results).items():
        lines.append(f"{ORDERS[order]:20}" + "".join(f"{title:>11}" for title in TABLE))
        for one in several:
            scores = "".join(f"{one.picks[title].test:11.2f}" for title in TABLE)
            lines.append(f"  {one.bank.name:18}{scores}")
        means = (np.mean([one.picks[title].test for one in several]) for title in TABLE)
        lines.append(f"  {'Average':18}" + "".join(f"{mean:11.2f}" for mean in means))
        theirs = "".join(f"{score:11.2f}" for score in their_mean(order))
        lines.append(f"  {'paper, 9 languages':18}{theirs}")
    return "\n".join(lines)


class Report(pages.Report):
    """Tables and plots of the page; results are those of each treebank."""

    results: Sequence[Results]
    plan: Plan
    place = "order"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.orders = by_order(self.results)

    def places(self) -> dict[int, str]:
        return {order: ORDERS[order] for order in self.orders}

    def values(self) -> dict[str, Any]:
        return super().values() | {"MARGIN": MARGIN, "NEAR": NEAR, "HELD_OUT": HELD_OUT}

    def table_2(self) -> Iterator[Table]:
        heads = [*TABLE, "β", "β of Top", "β of Test", "B-WM − CSP", "p"]
        for order, several in self.orders.items():
            rows: list[list[object]] = []
            for one in several:
                picks = [one.picks[title] for title in TABLE]
                betas = [f"{pick.run.beta:g}" for pick in picks[1:]]
                cells = one.against("B-WM", "CSP").cells
                rows.append([one.bank.name, *(pick.test for pick in picks), *betas, *cells])
            means = [float(np.mean([one.picks[title].test for one in several])) for title in TABLE]
            rows.append(["average", *means, *[None] * 3, f"{means[1] - means[0]:+.2f}", None])
            gap = f"{their_gain(order, 'B-WM'):+.2f}"
            rows.append(["paper, 9 languages", *their_mean(order), *[None] * 3, gap, None])
            yield Table(["treebank", *heads], rows, _title(order), align="lr")

    def theirs(self) -> Details:
        tables = []
        for order, table in TABLE_2.items():
            caption = f"{ORDERS[order].capitalize()}; “Average” as printed."
            body = [[name, *cell] for name, cell in table.items()]
            tables.append(Table(["language", *TABLE], body, caption, align="lr"))
        return Details("Table 2 of the paper", tables)

    def control(self) -> Iterator[Table]:
        for order, several in self.orders.items():
            rows: list[list[object]] = []
            for title in CONTROL:
                picks = [one.picks[title] for one in several]
                cells = [cell for pick in picks for cell in (pick.test, _place(pick))]
                rows.append([title, *cells, float(np.mean([pick.test for pick in picks]))])
            names = [name for one in several for name in (one.bank.name, "pass")]
            yield Table(["system", *names, "average"], rows, _title(order), align="lr")

    def over_treebanks(self) -> Iterator[Table]:
        for order, several in self.orders.items():
            rows: list[list[object]] = []
            for pair in _PAIRS:
                one = gain(several, *pair)
                ps = [None if p is None else p_cell(p) for p in (one.p_exact, one.p_t)]
                cells = pooled(several, *pair).cells if pair in _HONEST else [None, None]
                points = [f"{value:+.2f}" for value in one.points]
                rows.append([f"{pair[0]} − {pair[1]}", *points, f"{one.mean:+.2f}", *ps, *cells])
            names = [one.bank.name for one in several]
            heads = ["mean", "p, signs", "p, t", "all sentences", "p, sentences"]
            yield Table(["difference", *names, *heads], rows, _title(order), align="lr")

    def variants(self) -> Iterator[Table]:
        for order, several in self.orders.items():
            titles = ("CSP", "B-WM, β 1", *OTHERS)
            rows = [_variant_row(one, t) for one in several for t in titles if t in one.picks]
            heads = [*("treebank", "learner", "UAS", "last weights", "over CSP", "p"), *_SHARES]
            yield Table(heads, rows, _title(order), align="llr")

    def scores(self) -> Table:
        rows: list[list[object]] = []
        for one in self.results:
            for title in ("CSP", "B-WM", "CSP, pass chosen", "B-WM, pass chosen"):
                scores = [one.picks[title].score(name) for name in SCORES]
                rows.append([one.bank.name, ORDERS[one.work.order], title, *scores])
        return Table(["treebank", "trees", "system", *_HEADS.values()], rows, align="lllr")

    def by_pass(self) -> Iterator[Plot]:
        """UAS on test trees after every pass: CSP, and B-WM with each β."""
        for one in self.results:
            plot = Plot(one.work.title, "pass", "UAS, %")
            passes = np.arange(1, one.work.passes + 1)
            for look, run in enumerate(one.runs["B-WM"], 1):
                plot.line(passes, run.test[0], f"B-WM, β {run.beta:g}", look=look)
            yield plot.line(passes, one.runs["CSP"][0].test[0], "CSP", True, look=0)

    def by_beta(self) -> Iterator[Plot]:
        """UAS after the last pass at every β, on development and on test trees."""
        for one in self.results:
            plot = Plot(one.work.title, "β", "UAS, %")
            runs = one.runs["B-WM"]
            betas, csp = [run.beta for run in runs], one.runs["CSP"][0]
            for look, part in enumerate(("dev", "test")):
                plot.line(
                    betas, [getattr(run, part)[0, -1] for run in runs], f"B-WM, {part}", look=look
                )
                plot.hline(float(getattr(csp, part)[0, -1]), f"CSP, {part}")
            yield plot

    def works(self) -> Table:
        rows: list[list[object]] = []
        for one in self.results:
            work, facts = one.work, one.facts
            trees = f"{facts['trees']}, {facts['roots']} root{'s' * (facts['roots'] != 'one')}"
            betas = " ".join(f"{beta:g}" for beta in work.betas)
            seconds = [float(min(one.runs[key][0].seconds)) for key in ("CSP", "B-WM")]
            row = [one.bank.name, ORDERS[work.order], trees, facts["lifted"], facts["relations"]]
            row += [round(facts["heads"], 1), round(facts["recall"], 2), work.passes, betas]
            rows.append([*row, len(work.others), *(round(value, 2) for value in seconds)])
        heads = [
            *("treebank", "order", "trees", "arcs lifted", "relations", "heads a word"),
            *("right head among them, %", "passes", "β of B-WM", "variants"),
            *("CSP, CPU s a pass", "B-WM, CPU s a pass"),
        ]
        return Table(heads, rows, "Seconds are of the quickest pass.", align="lllr")

    def banks(self) -> Table:
        rows = [[bank.name, bank.about] for bank in self.plan.banks]
        return Table(["treebank", "what it is"], rows, align="ll")

    def runs(self) -> Table:
        rows = [
            [
                *(one.bank.name, ORDERS[one.work.order], key, f"{run.beta:g}"),
                *(float(run.dev[0, -1]), float(run.test[0, -1])),
                *(int(run.mistakes[0]), int(run.mistakes[-1])),
            ]
            for one in self.results
            for key, runs in one.runs.items()
            for run in runs
        ]
        heads = ["treebank", "trees", "learner", "β", "dev", "test", "wrong, first pass", "last"]
        return Table(heads, rows, align="lllr")

    def signatures(self) -> Code:
        runs = (run for one in self.results for runs in one.runs.values() for run in runs)
        return Code("\n".join(dict.fromkeys(run.signature for run in runs)))


def _title(order: int) -> str:
    return f"**{ORDERS[order].capitalize()}.**"


def _place(pick: Pick) -> str:
    beta = f", β {pick.run.beta:g}" if pick.run.beta else ""
    return f"{pick.place + 1}{beta}"


_SHARES = {
    "condition (2) broken": CONDITION_BROKEN,
    "nothing to use": NONE_USABLE,
    "backed off": BACKED_OFF,
}


def _variant_row(one: Results, title: str) -> list[object]:
    pick = one.picks[title]
    row: list[object] = [one.bank.name, title, pick.test, float(pick.run.last[1, 0])]
    if title == "CSP":
        return [*row, *[None] * 5]
    mistakes = max(1, int(pick.run.counts[MISTAKES]))
    shares = [f"{pick.run.counts[kind] / mistakes:.1%}" for kind in _SHARES.values()]
    return [*row, *one.against(title, "CSP").cells, *shares]
