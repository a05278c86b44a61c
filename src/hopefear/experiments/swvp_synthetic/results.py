"""Every number as plain JSON, and Table 1 as text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from hopefear.experiments.common.files import signature_of, versions
from hopefear.experiments.swvp_synthetic import paper
from hopefear.experiments.swvp_synthetic.measuring import Measured
from hopefear.experiments.swvp_synthetic.plan import CHECKED, KEPT, LAST, VARIANTS, Plan
from hopefear.experiments.swvp_synthetic.problems import SETTINGS
from hopefear.experiments.swvp_synthetic.runs import Run
from hopefear.experiments.swvp_synthetic.tables import cell, conditions, control, patient_csp
from hopefear.experiments.swvp_synthetic.verdicts import Verdict


def signature(plan: Plan) -> str:
    """What the numbers came from, in one line."""
    parts = {
        "experiment": "swvp-synthetic",
        "datasets": plan.datasets,
        "items": "/".join(map(str, plan.items)),
        "passes": plan.passes,
        "betas": f"{plan.betas[0]:g}..{plan.betas[-1]:g}",
        "seeds": f"100*setting+0..{plan.datasets - 1}",
        "order": "as drawn",
    }
    return signature_of(**parts)


def to_json(
    measured: Mapping[int, Sequence[Measured]],
    verdicts: Sequence[Verdict],
    plan: Plan,
    quick: bool,
) -> bytes:
    """The file ``results.json``."""
    content = {
        "signature": signature(plan),
        "versions": versions(),
        "quick": quick,
        "settings": asdict(plan),
        "table_1": {
            str(s): {kept: _cells(found, k) for k, kept in enumerate(KEPT)}
            for s, found in measured.items()
        },
        "control": {
            str(s): {
                "CSP, pass chosen": patient_csp(found, LAST).tolist(),
                **{v.title: _control(found, v.title) for v in (*VARIANTS, *CHECKED)},
            }
            for s, found in measured.items()
        },
        "conditions": {
            str(s): {v.title: asdict(conditions(found, v.title)) for v in (*VARIANTS, *CHECKED)}
            for s, found in measured.items()
        },
        "paper": {str(s): {k: c._asdict() for k, c in t.items()} for s, t in paper.TABLE_1.items()},
        "verdicts": [v._asdict() for v in verdicts],
        "datasets": [_dataset(m) for found in measured.values() for m in found],
    }
    return (json.dumps(content, allow_nan=False) + "\n").encode()


def table_text(measured: Mapping[int, Sequence[Measured]]) -> str:
    """Table 1 of the last weights beside the paper's, for a terminal."""
    lines = []
    for setting, found in measured.items():
        lines.append(f"setting {setting}: {SETTINGS[setting]}")
        lines.append("          accuracy (std)  wins  gener.  | paper")
        n = len(found)
        for variant in VARIANTS:
            ours, theirs = cell(found, variant.key, LAST), paper.TABLE_1[setting][variant.key]
            accuracy = f"{ours.accuracy.mean():.2f} ({_std(ours.accuracy):.2f})"
            lines.append(
                f"  {variant.key:6}  {accuracy:>14}  {f'{ours.wins}/{n}':5} "
                f"{f'{ours.generalises}/{n}':6} | {theirs.accuracy:.2f} ({theirs.std:.2f})  "
                f"{theirs.wins}/10  {theirs.generalises}/10"
            )
        csp, theirs = np.array([m.csp.test[LAST, -1] for m in found]), paper.TABLE_1[setting]["CSP"]
        accuracy = f"{csp.mean():.2f} ({_std(csp):.2f})"
        lines.append(
            f"  {'CSP':6}  {accuracy:>14}{'':15} | {theirs.accuracy:.2f} ({theirs.std:.2f})"
        )
    return "\n".join(lines)


def _std(values: np.ndarray) -> float:
    return float(values.std(ddof=1))


def _cells(found: Sequence[Measured], kept: int) -> dict[str, Any]:
    cells = {v.title: cell(found, v.title, kept) for v in (*VARIANTS, *CHECKED)}
    csp = np.array([m.csp.test[kept, -1] for m in found])
    return {
        title: {
            "accuracy": float(c.accuracy.mean()),
            "std": _std(c.accuracy),
            "gain": c.gain,
            "wins": c.wins,
            "generalises": c.generalises,
            "better_on_dev_only": c.better_on_dev_only,
            "p_datasets": c.p_datasets,
            "p_sequences": c.pooled.p_value,
            "betas": c.betas.tolist(),
            "by_dataset": c.accuracy.tolist(),
        }
        for title, c in cells.items()
    } | {
        "CSP": {"accuracy": float(csp.mean()), "std": _std(csp), "by_dataset": csp.tolist()},
        "best possible": {"accuracy": float(np.mean([m.best_possible for m in found]))},
    }


def _control(found: Sequence[Measured], title: str) -> dict[str, float]:
    c = control(found, title, LAST)
    return {"gain": c.gain, "p": c.p, "unchosen": c.unchosen, "p_unchosen": c.p_unchosen}


def _dataset(made: Measured) -> dict[str, Any]:
    return {
        "setting": made.setting,
        "dataset": made.dataset,
        "seed": made.seed,
        "train_digest": made.digest,
        "best_possible": made.best_possible,
        "csp": _run(made.csp),
        "swvp": {title: [_run(run) for run in runs] for title, runs in made.swvp.items()},
    }


def _run(run: Run) -> dict[str, Any]:
    return {
        "beta": run.beta,
        "dev": dict(zip(KEPT, run.dev.round(4).tolist(), strict=True)),
        "test": dict(zip(KEPT, run.test.round(4).tolist(), strict=True)),
        "mistakes": run.mistakes.tolist(),
        "none_usable": int(run.counts[1]),
        "condition_broken": int(run.counts[2]),
        "backed_off": int(run.counts[3]),
    }
