"""The page: verdicts first, then Table 1 beside the paper's, then what the paper does not show."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from hopefear.report.plot import Plot
from hopefear_papers import pages
from hopefear_papers.claims import p_cell
from hopefear_papers.frame import Call
from hopefear_papers.pages import Block, Code, Details, Table
from hopefear_papers.swvp_synthetic.claims import (
    TABLE_1,
    Cell,
    Datasets,
    cell,
    conditions,
    control,
    gain,
    patient_csp,
)
from hopefear_papers.swvp_synthetic.plan import (
    AVERAGED,
    CHECKED,
    KEPT,
    LAST,
    SETTINGS,
    TOLERANCE,
    VARIANTS,
    Plan,
    perceptron,
)
from hopefear_papers.swvp_synthetic.runs import Dataset, Run, Settings

_EVERY = (*VARIANTS, *CHECKED)


def signature(plan: Plan) -> dict[str, object]:
    return {
        "datasets": plan.datasets,
        "items": "/".join(map(str, plan.items)),
        "passes": plan.passes,
        "betas": f"{plan.betas[0]:g}..{plan.betas[-1]:g}",
        "seeds": f"100*setting+0..{plan.datasets - 1}",
        "order": "as drawn",
    }


def content(settings: Settings, call: Call) -> dict[str, Any]:
    return {
        "settings": asdict(call.plan),
        "table_1": {
            str(s): {kept: _cells(datasets, k) for k, kept in enumerate(KEPT)}
            for s, datasets in settings.items()
        },
        "control": {
            str(s): {
                "CSP, pass chosen": patient_csp(datasets, LAST).tolist(),
                **{v.title: _control_numbers(datasets, v.title) for v in _EVERY},
            }
            for s, datasets in settings.items()
        },
        "conditions": {
            str(s): {v.title: asdict(conditions(datasets, v.title)) for v in _EVERY}
            for s, datasets in settings.items()
        },
        "paper": {str(s): {k: c._asdict() for k, c in t.items()} for s, t in TABLE_1.items()},
        "datasets": [_dataset(d) for datasets in settings.values() for d in datasets],
    }


def table_text(settings: Settings) -> str:
    """Table 1 of the last weights beside the paper's, for a terminal."""
    lines = []
    for setting, datasets in settings.items():
        lines.append(f"setting {setting}: {SETTINGS[setting]}")
        lines.append("          accuracy (std)  wins  gener.  | paper")
        n = len(datasets)
        for variant in VARIANTS:
            ours, theirs = cell(datasets, variant.key, LAST), TABLE_1[setting][variant.key]
            lines.append(
                f"  {variant.key:6}  {_mean_std(ours.accuracy):>14}  {f'{ours.wins}/{n}':5} "
                f"{f'{ours.generalises}/{n}':6} | {theirs}  {theirs.wins}/10  "
                f"{theirs.generalises}/10"
            )
        csp = _mean_std(_csp(datasets, LAST))
        lines.append(f"  {'CSP':6}  {csp:>14}{'':15} | {TABLE_1[setting]['CSP']}")
    return "\n".join(lines)


def _std(values: np.ndarray) -> float:
    return float(values.std(ddof=1))


def _csp(datasets: Datasets, kept: int) -> np.ndarray:
    """Test accuracy of CSP after the last pass, by dataset."""
    return np.array([m.csp.test[kept, -1] for m in datasets])


def _cells(datasets: Datasets, kept: int) -> dict[str, Any]:
    cells = {v.title: cell(datasets, v.title, kept) for v in _EVERY}
    csp = _csp(datasets, kept)
    return {
        title: {
            "accuracy": float(c.accuracy.mean()),
            "std": _std(c.accuracy),
            **{
                name: getattr(c, name)
                for name in ("gain", "wins", "generalises", "better_on_dev_only", "p_datasets")
            },
            "p_sequences": c.pooled.p_value,
            "betas": c.betas.tolist(),
            "by_dataset": c.accuracy.tolist(),
        }
        for title, c in cells.items()
    } | {
        "CSP": {"accuracy": float(csp.mean()), "std": _std(csp), "by_dataset": csp.tolist()},
        "best possible": {"accuracy": float(np.mean([m.best_possible for m in datasets]))},
    }


def _control_numbers(datasets: Datasets, title: str) -> dict[str, float]:
    numbers = asdict(control(datasets, title, LAST))
    return {name: number for name, number in numbers.items() if name != "csp"}


def _dataset(data: Dataset) -> dict[str, Any]:
    numbers: dict[str, Any] = {
        name: getattr(data, "digest" if name == "train_digest" else name)
        for name in ("setting", "dataset", "seed", "train_digest", "best_possible")
    }
    swvp = {title: [_run(run) for run in runs] for title, runs in data.swvp.items()}
    return {**numbers, "csp": _run(data.csp), "swvp": swvp}


def _run(run: Run) -> dict[str, Any]:
    scores = {
        name: dict(zip(KEPT, values.round(4).tolist(), strict=True))
        for name, values in (("dev", run.dev), ("test", run.test))
    }
    names = ("none_usable", "condition_broken", "backed_off", "unsuitable", "used")
    counts = dict(zip(names, run.counts[1:].tolist(), strict=True))
    return {"beta": run.beta, **scores, "mistakes": run.mistakes.tolist(), **counts}


class Report(pages.Report):
    """Tables and plots of the page; results are datasets by setting."""

    results: Settings
    plan: Plan
    place = "setting"

    def places(self) -> dict[int, str]:
        return {s: f"setting {s}" for s in self.results}

    def values(self) -> dict[str, Any]:
        quick = "**This is the quick version: too small to conclude from.**"
        return super().values() | {
            "TOLERANCE": TOLERANCE,
            "quick": quick if self.call.quick else "",
            "n_betas": len(self.plan.betas),
            "items": sum(self.plan.items),
        }

    def table_1(self) -> Iterator[Block]:
        for setting, datasets in self.results.items():
            yield _one_table(setting, datasets, LAST)
        if 3 in self.results:
            best = [m.best_possible for m in self.results[3]]
            yield (
                "**Setting 3 is not like the paper's.** With the parameters that footnote 6 "
                "prints, each state emits 5 of 20 symbols and moves to 3 of 7 states, so states "
                f"are easy to tell: the true model gets {min(best):.1f} to {max(best):.1f} % of "
                "them right, and every learner comes near. The paper's "
                f"{TABLE_1[3]['CSP'].accuracy:g} % for CSP is far from that; what was different "
                "there we do not know."
            )

    def control(self) -> Table:
        rows: list[list[object]] = []
        for setting, datasets in self.results.items():
            csp = patient_csp(datasets, LAST).mean()
            plain = _csp(datasets, LAST).mean()
            rows.append([setting, "CSP, pass chosen", csp, csp - plain, *[None] * 4])
            for v in _EVERY:
                c, ours = control(datasets, v.title, LAST), cell(datasets, v.title, LAST)
                cells = [c.gain, p_cell(c.p), c.unchosen, p_cell(c.p_unchosen)]
                rows.append([setting, v.title, ours.accuracy.mean(), ours.gain, *cells])
        heads = ["accuracy", "over CSP", "over CSP, pass chosen", "p", "mean over β, over CSP", "p"]
        return Table(
            ["setting", "learner", *heads],
            rows,
            "Test accuracy of the last weights in percent, and points gained.",
            align="rlr",
        )

    def averaged(self) -> Iterator[Table]:
        for setting, datasets in self.results.items():
            yield _one_table(setting, datasets, AVERAGED)
        yield Table(
            ["setting", "learner", "last weights", "averaged weights"],
            [
                [s, v.key, *(_betas(cell(datasets, v.key, kept)) for kept in (LAST, AVERAGED))]
                for s, datasets in self.results.items()
                for v in VARIANTS
            ],
            "β chosen on the development items, and how often if more than once.",
            align="rl",
        )

    def conditions(self) -> Table:
        rows = []
        for setting, datasets in self.results.items():
            for v in _EVERY:
                c = conditions(datasets, v.title)
                shares = (f"{share:.1%}" for share in (c.broken, c.none_usable, c.backed_off))
                cells = (cell(datasets, v.title, kept) for kept in (LAST, AVERAGED))
                means = (float(scores.accuracy.mean()) for scores in cells)
                rows.append([setting, v.title, *shares, *means])
        heads = ["condition (2) broken", "nothing to use", "backed off", "last, %", "averaged, %"]
        caption = "Updates, and test accuracy at the chosen β."
        return Table(["setting", "learner", *heads], rows, caption, align="rlr")

    def by_beta(self) -> Iterator[Plot]:
        """Mean test accuracy at every beta; the dashed line is CSP."""
        for kept, datasets in itertools.product((LAST, AVERAGED), self.results.values()):
            plot = Plot(f"setting {datasets[0].setting}, {KEPT[kept]}", "β", "accuracy, %")
            for look, variant in enumerate(VARIANTS):
                means = np.mean(
                    [[run.test[kept, -1] for run in m.swvp[variant.key]] for m in datasets], 0
                )
                plot.line(list(self.plan.betas), means, variant.key, look=look)
            yield plot.hline(float(_csp(datasets, kept).mean()), "CSP")

    def by_dataset(self) -> Iterator[Plot]:
        """What each variant wins over CSP on each dataset, last weights."""
        for datasets in self.results.values():
            plot = Plot(f"setting {datasets[0].setting}", "dataset", "points over CSP")
            names = [str(m.dataset + 1) for m in datasets]
            for look, variant in enumerate(VARIANTS):
                scores = cell(datasets, variant.key, LAST)
                plot.bars(names, scores.accuracy - scores.csp, group=variant.key, look=look)
            yield plot

    def by_pass(self) -> Iterator[Plot]:
        """Mean test accuracy after every pass, at the betas chosen for the last pass."""
        for kept, datasets in itertools.product((LAST, AVERAGED), self.results.values()):
            plot = Plot(f"setting {datasets[0].setting}, {KEPT[kept]}", "pass", "accuracy, %")
            passes = np.arange(1, self.plan.passes + 1)
            for look, variant in enumerate(VARIANTS):
                runs = [m.chosen(variant.key, kept) for m in datasets]
                plot.line(
                    passes, np.mean([run.test[kept] for run in runs], 0), variant.key, look=look
                )
            csp = np.mean([m.csp.test[kept] for m in datasets], 0)
            yield plot.line(passes, csp, "CSP", True, look=len(VARIANTS))

    def datasets(self) -> Iterator[Details]:
        columns = ["setting", "seed", *(v.key for v in VARIANTS), "CSP", "true model"]
        for kept, name in ((LAST, "last weights"), (AVERAGED, "averaged weights")):
            rows = []
            for setting, datasets in self.results.items():
                for m in datasets:
                    runs = (m.chosen(v.key, kept) for v in VARIANTS)
                    ours = (f"{r.test[kept, -1]:.2f} (β {r.beta:g})" for r in runs)
                    ends = [float(m.csp.test[kept, -1]), m.best_possible]
                    rows.append([setting, m.seed, *ours, *ends])
            yield Details(f"Test accuracy, {name}", [Table(columns, rows, align="r")])

    def signatures(self) -> Details:
        learners = [v.learner(1.0) for v in _EVERY] + [perceptron()]
        lines = (learner.signature(epochs=self.plan.passes) for learner in learners)
        return Details("Signatures of the learners", [Code("\n".join(lines))])


def _one_table(setting: int, datasets: Datasets, kept: int) -> Table:
    """Ours, and for the last weights the paper's beside it."""
    n, beside = len(datasets), kept == LAST
    rows: list[list[object]] = []
    for variant in VARIANTS:
        c, theirs = cell(datasets, variant.key, kept), TABLE_1[setting][variant.key]
        pairs = [
            (_mean_std(c.accuracy), str(theirs)),
            (f"{c.gain:+.2f}", f"{gain(setting, variant.key):+.2f}"),
            (f"{c.wins}/{n}", f"{theirs.wins}/10"),
            (f"{c.generalises}/{n}", f"{theirs.generalises}/10"),
        ]
        cells = [text for pair in pairs for text in (pair if beside else pair[:1])]
        rows.append([variant.key, *cells, p_cell(c.p_datasets), p_cell(c.pooled.p_value)])
    best = np.array([m.best_possible for m in datasets])
    for name, values, paper in (
        ("CSP", _csp(datasets, kept), str(TABLE_1[setting]["CSP"])),
        ("true model", best, None),
    ):
        absent: list[object] = [paper, *[None] * 8] if beside else [None] * 5
        rows.append([name, _mean_std(values), *absent])
    names = ["accuracy (std)", "gain", "wins", "gener."]
    heads = [h for name in names for h in ((name, "paper") if beside else (name,))]
    return Table(
        ["learner", *heads, "p, sets", "p, items"],
        rows,
        f"**Setting {setting}: {SETTINGS[setting]}**, {n} datasets.",
        align="lr",
    )


def _mean_std(values: np.ndarray) -> str:
    return f"{values.mean():.2f} ({_std(values):.2f})"


def _betas(datasets: Cell) -> str:
    """Values in rising order, with how often each was chosen.

    >>> from types import SimpleNamespace
    >>> _betas(SimpleNamespace(betas=np.array([2.0, 0.5, 2.0])))
    '0.5, 2 (2)'
    """
    counts = Counter(datasets.betas.tolist())
    return ", ".join(
        f"{beta:g}" + (f" ({times})" if times > 1 else "") for beta, times in sorted(counts.items())
    )
