"""The page: verdicts first, then the paper's tables and figures beside our numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from hopefear.experiments.claims import gap_text, p_values, tally, verdict_table
from hopefear.experiments.dptm.claims import (
    BASELINE,
    MARGIN,
    OURS,
    STEADY,
    TABLE_3,
    TABLE_4,
    Judge,
    Verdict,
    levels,
)
from hopefear.experiments.dptm.plan import RULES, TABLE, Plan, Spec, at, label
from hopefear.experiments.dptm.runs import (
    DECODER,
    LINE,
    MERT,
    POOLED,
    RETUNED,
    Measured,
    as_is,
    at_most,
    edges,
    text_of,
)
from hopefear.experiments.frame import results_file, signature_of, signed, spread
from hopefear.experiments.translations import FOLDER, METRIC
from hopefear.report import Page
from hopefear.report.plot import Plot


def signature(plan: Plan) -> str:
    """What the numbers came from, in one line."""
    parts = {
        "experiment": "dptm",
        "lists": FOLDER,
        "passes": "/".join(map(str, plan.marks)),
        "seeds": ",".join(map(str, plan.seeds)),
        "restarts": plan.restarts,
        "metric": METRIC.signature(),
    }
    return signature_of(**parts)


def table_text(made: Measured) -> str:
    """Table 3, for a terminal."""
    lines = [f"{'':20}{'dev':>8}" + "".join(f"{label(where):>19}" for where in made.places)]
    for name in (DECODER, RETUNED, *TABLE):
        cells = [
            f"{found[0]:.2f}" if len(found) == 1 else spread(found)
            for found in (made.bleus(name, where) for where in made.places)
        ]
        lines.append(f"{name:20}{made.dev(name):>8.2f}" + "".join(f"{c:>19}" for c in cells))
    return "\n".join(lines)


def to_json(
    made: Measured, judge: Judge, verdicts: Sequence[Verdict], plan: Plan, quick: bool
) -> bytes:
    """The file ``results.json``."""
    content = {
        "settings": asdict(plan),
        "pairs": made.problem.size,
        "lists": {
            "train": len(made.problem.train),
            "dev": len(made.problem.dev.lists),
            **{name: len(part.lists) for name, part in made.problem.tests.items()},
        },
        "table": {key: [t._asdict() for t in found] for key, found in made.table.items()},
        "sweeps": {key: [t._asdict() for t in found] for key, found in made.sweeps.items()},
        "decoder": {where: float(made.bleus(DECODER, where)[0]) for where in made.places},
        "choices": {name: _choice(made, name) for name in made.scored},
        "tests": judge.to_json(),
    }
    return results_file(signature(plan), quick, content, verdicts)


def _choice(made: Measured, name: str) -> dict[str, Any]:
    found: dict[str, Any] = made.choices[name]._asdict() if name in made.choices else {}
    scored = made.scored[name]
    found |= {"signature": scored[0].signature, "nnz": [s.nnz for s in scored]}
    found["weight"] = [s.weight for s in scored]
    for how in (LINE, MERT):
        found[how] = {
            "dev": [s.dev[how] for s in scored],
            **{where: made.bleus(name, where, how).tolist() for where in made.places},
        }
    return found


SWEPT = ("vrda-risk", "tg-risk")


def frontier(made: Measured, plan: Plan, where: str, how: str) -> Plot:
    """The best of each with at most so many weights, as chosen on development lists."""
    added = "all weights by MERT" if how == MERT else "the model's weight alone"
    plot = Plot(f"{label(where)}, {added}", "non-zero weights, mean", "BLEU", "log", "linear")
    for look, key in enumerate(SWEPT):
        x, y, spread = [], [], []
        for level in plan.levels:
            if (name := at_most(key, level)) in made.scored:
                found = made.bleus(name, where, how)
                x.append(made.nnz(name))
                y.append(float(found.mean()))
                spread.append(float(found.std()))
        low, high = ([v + s * d for v, d in zip(y, spread, strict=True)] for s in (-1.0, 1.0))
        plot.line(x, y, RULES[key.split("-")[0]], band=(low, high), look=look)
    plot.hline(float(made.bleus(DECODER, where).mean()), "decoder")
    if how == MERT:
        plot.hline(float(made.bleus(RETUNED, where).mean()), "tuned anew")
    return plot


def settings(made: Measured) -> Plot:
    """Every setting that was tried, on development lists."""
    plot = Plot("all settings", "non-zero weights", "BLEU on development lists", "log", "linear")
    for look, key in enumerate(SWEPT):
        found = [t for t in made.sweeps[key] if t.nnz > 0]
        plot.points(
            [t.nnz for t in found], [t.dev for t in found], RULES[key.split("-")[0]], look=look
        )
    plot.hline(made.dev(DECODER, LINE), "decoder")
    return plot


TITLE = "A discriminative phrase model, run again"
_NAMES = {DECODER: "Baseline: the decoder's choice", RETUNED: "Baseline, weights tuned anew"}


def write_page(
    made: Measured, judge: Judge, verdicts: Sequence[Verdict], plan: Plan, quick: bool
) -> Page:
    """Build the whole page."""
    page = Page(
        TITLE,
        "Gao, Xiao, Xu and He, A Voted Regularized Dual Averaging Method for Large-Scale "
        "Discriminative Training in Natural Language Processing: section 5",
        signature=signed(signature(plan)),
    )
    _verdicts(page, made, verdicts, plan, quick)
    _question(page, made, judge)
    _table_3(page, made, judge, plan)
    _table_4(page, made, judge, plan)
    _figures(page, made, judge, plan)
    _settings(page, made, plan)
    _setup(page, made, plan)
    return page


def _verdicts(
    page: Page, made: Measured, verdicts: Sequence[Verdict], plan: Plan, quick: bool
) -> None:
    theirs = [v for v in verdicts if not v.claim.startswith(OURS)]
    page.section("What agrees and what does not")
    if quick:
        page.text("**This version uses generated lists: nothing can be concluded from it.**")
    page.text(
        f"Of {len(theirs)} checks {tally(theirs)}. One model is better "
        "than another when a paired bootstrap and approximate randomisation both give p < 0.05, "
        f"{len(plan.seeds)} seeds pooled; “as good” means that the 95 % interval of the difference "
        f"stays above −{MARGIN:g} points of BLEU. On 1,000 sentences a difference has a standard "
        "error of about 0.2, so that those below 0.4 are seldom shown by one test set. All weights "
        f"are tuned by MERT on development lists, except in the last column ({STEADY}), where "
        "the decoder's weights stay and only that of the phrase model is searched for: steadier, "
        "since MERT moves BLEU by chance. Nothing is corrected for the number of checks."
    )
    places = {where: label(where) for where in (*made.places, STEADY)}
    verdict_table(page, verdicts, places, "lists", "claim")


def _question(page: Page, made: Measured, judge: Judge) -> None:
    page.section("What the phrase model is worth")
    page.text(
        "Bayes risk against the decoder's own choice and against its dense weights tuned anew, "
        f"on both test sets together ({POOLED}). The paper has +0.7 to +0.9 over its baseline."
    )
    rows = []
    for name in ("vrda-risk", "sgd-risk", RETUNED):
        for how in (MERT, LINE):
            for other in (DECODER, RETUNED):
                if name == other or (RETUNED in (name, other) and how == LINE):
                    continue
                found = judge.against(name, other, POOLED, how)
                rows.append(
                    [
                        _title(name),
                        "MERT" if how == MERT else "its own weight",
                        _NAMES[other],
                        f"{found.first:.2f}",
                        gap_text(found),
                        p_values(found),
                    ]
                )
    page.table(
        ["model", "added by", "against", "BLEU", "difference [95 %]", "p"],
        rows,
        "p by paired bootstrap / approximate randomisation; BLEU of all seeds together.",
        align="lllrrr",
    )


def _table_3(page: Page, made: Measured, judge: Judge, plan: Plan) -> None:
    page.section("Table 3: losses and rules")
    page.text(
        "Scale of the scores, rate, passes and what is kept (average or last weights) have the "
        "highest BLEU on development lists, the model's weight searched for; mean over "
        f"{len(plan.tuning_seeds)} seeds. Then all weights are tuned by MERT. BLEU, mean and "
        f"deviation over {len(plan.seeds)} seeds. Marks, p < 0.05 by both tests: α different from "
        "the decoder's choice, α′ from its weights tuned anew, β from SGD with the same loss. The "
        "lower half has the baseline's score in the loss as it is, as the paper seems to "
        f"({len(plan.level_seeds)} seeds). A mark does not say which is the better one."
    )
    heads = ["model", "dev", *map(label, made.places), STEADY, "paper: TEST1, TEST2"]
    rows: list[list[object]] = []
    for name in (DECODER, RETUNED, *TABLE, *(as_is(key) for key in TABLE)):
        if name not in made.scored and name != DECODER:
            continue
        cells = [_cell(made, judge, name, where, MERT) for where in made.places]
        theirs = (f"{BASELINE}",) * 2 if name == DECODER else TABLE_3.get(name)
        rows.append(
            [
                _title(name),
                f"{made.dev(name):.2f}",
                *cells,
                None if name == RETUNED else _cell(made, judge, name, POOLED, LINE),
                None if theirs is None else ", ".join(theirs),
            ]
        )
    page.table(heads, rows, align="l" + "r" * (len(heads) - 1))


def _cell(made: Measured, judge: Judge, name: str, where: str, how: str) -> str:
    found = made.bleus(name, where, how)
    if name == DECODER:
        return f"{found[0]:.2f}"
    marks = ""
    if judge.against(name, DECODER, where, how).significant:
        marks += "α"
    anew = how == MERT and name != RETUNED
    if anew and judge.against(name, RETUNED, where).significant:
        marks += "α′"
    other = name.replace("vrda-", "sgd-")
    if other != name and other in made.scored and "λ" not in name:
        marks += "β" if judge.against(name, other, where, how).significant else ""
    return f"{spread(found)} {marks}".rstrip()


def _table_4(page: Page, made: Measured, judge: Judge, plan: Plan) -> None:
    page.section("Table 4: strength of regularisation")
    page.text(
        "VRDA with Bayes risk at each λ; scale, rate, passes and what is kept (the average where "
        "the last weights are not zero, or the last weights) have the highest BLEU on development "
        "lists for that λ. α marks p < 0.05 against λ = 0. The paper has 751,000 sentences to "
        "learn from and 2.5 million phrase pairs, so its λ are other ones."
    )
    rows = []
    for l1 in plan.strengths:
        name = at(l1)
        row: list[object] = [f"{l1:g}", f"{made.nnz(name):,.0f}", f"{judge.share(l1):.2%}"]
        row.append(f"{made.dev(name):.2f}")
        for where, how in (*((where, MERT) for where in made.places), (POOLED, LINE)):
            mark = ""
            if l1 and judge.against(name, at(0.0), where, how).significant:
                mark = " α"
            row.append(f"{spread(made.bleus(name, where, how))}{mark}")
        rows.append(row)
    page.table(
        ["λ", "NNZ", "share", "dev", *map(label, made.places), STEADY], rows, "Ours.", align="r" * 8
    )
    rows = []
    for l1 in plan.strengths[1:]:
        found = judge.against(at(l1), at(0.0), POOLED)
        line = judge.against(at(l1), at(0.0), POOLED, LINE)
        rows.append([f"{l1:g}", gap_text(found), p_values(found), gap_text(line), p_values(line)])
    page.table(
        ["λ", "difference to λ = 0 [95 %]", "p", f"{LINE}: difference", "p"],
        rows,
        "Both test sets together.",
        align="rrrrr",
    )
    page.table(
        ["λ", "NNZ", "TEST1", "TEST2"],
        [[f"{l1:g}", f"{nnz:,}", one, two] for l1, nnz, one, two in TABLE_4],
        "The paper.",
        align="rrrr",
    )


def _figures(page: Page, made: Measured, judge: Judge, plan: Plan) -> None:
    page.section("Figures 7 and 8: BLEU against the number of weights")
    page.text(
        "The paper: VRDA makes sparser models than TG, with less loss of BLEU. Ours: at each "
        "number of weights the setting of highest BLEU on development lists that has at most so "
        f"many; mean and deviation over {len(plan.level_seeds)} seeds. **Axes do not start at 0.**"
    )
    page.figures(
        [frontier(made, plan, where, how) for how in (MERT, LINE) for where in made.places]
        + [settings(made)]
    )
    rows = []
    for level, (voted, pulled) in levels(judge):
        for how in (MERT, LINE):
            found = judge.against(voted, pulled, POOLED, how)
            rows.append(
                [
                    f"{level:,}",
                    how,
                    f"{made.nnz(voted):,.0f}",
                    f"{made.nnz(pulled):,.0f}",
                    f"{found.first:.2f}",
                    f"{found.second:.2f}",
                    gap_text(found),
                    p_values(found),
                ]
            )
    page.table(
        ["at most", "added by", "VRDA: NNZ", "TG: NNZ", "VRDA", "TG", "difference [95 %]", "p"],
        rows,
        "VRDA against TG, both test sets together.",
        align="rlrrrrrr",
    )


def _settings(page: Page, made: Measured, plan: Plan) -> None:
    page.section("What was chosen")
    page.text(
        "On development lists: BLEU with the best weight of the model, and with weight 1, which is "
        "how it was learned. An end of a grid may mean that a better value lies beyond."
    )
    rows = []
    for name, trial in made.choices.items():
        swept = "λ" in name or "≤" in name
        spec = next(s for s in (plan.sweeps if swept else plan.table) if s.key == trial.spec)
        rows.append(
            [
                name,
                text_of(trial.params),
                trial.passes,
                trial.kept,
                f"{trial.dev:.2f}",
                f"{trial.plain:.2f}",
                f"{trial.nnz:,.0f}",
                ", ".join(edges(trial, spec, plan.marks)),
            ]
        )
    page.table(
        ["choice", "setting", "passes", "kept", "dev", "weight 1", "NNZ", "at an end"],
        rows,
        align="llrlrrrl",
    )


def _setup(page: Page, made: Measured, plan: Plan) -> None:
    page.section("How")
    problem = made.problem
    page.text(
        "Lists are of a phrase-based decoder, 100 translations each. The model has a weight for "
        "every phrase pair that tells translations of a training list apart; a pair counts once "
        "in a derivation. The decoder's score is a fixed part of all scores. **The paper's "
        "gradient of the risk has a slip**: with loss = −Σ P sBleu it is Σ P (−sBleu − loss) φ, "
        "not (loss − sBleu). Sentence BLEU adds one to counts of the orders above 1. VRDA votes "
        "in the paper; a feature of a decoder cannot, so averages and last weights stand for it."
    )
    page.keyvalues(
        {
            "training lists": len(problem.train),
            "development lists": len(problem.dev.lists),
            **{name: len(part.lists) for name, part in problem.tests.items()},
            "phrase pairs": problem.size,
            "MERT": f"{plan.restarts} restarts, from the decoder's weights",
            "draws of each test": plan.replicates,
        }
    )


def _title(name: str) -> str:
    if name in _NAMES:
        return _NAMES[name]
    key, *rest = name.split(", ", 1)
    return ", ".join([Spec(key).title, *rest])
