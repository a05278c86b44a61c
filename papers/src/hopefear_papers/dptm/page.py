"""The page: verdicts first, then the paper's tables and figures beside our numbers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from hopefear.report import Page
from hopefear.report.plot import Plot
from hopefear_papers.claims import Verdict, tally, verdict_section, verdict_table
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
from hopefear_papers.translations import FOLDER, METRIC

TITLE = "A discriminative phrase model, run again"
PAPER = (
    "Gao, Xiao, Xu and He, A Voted Regularized Dual Averaging Method for Large-Scale "
    "Discriminative Training in Natural Language Processing: section 5"
)
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


def fill(page: Page, results: Results, verdicts: Sequence[Verdict], call: Call) -> None:
    _verdicts(page, results, verdicts, call.note)
    for section in (_question, _table_3, _table_4, _figures, _settings, _setup):
        section(page, results)


def _verdicts(page: Page, results: Results, verdicts: Sequence[Verdict], note: str) -> None:
    plan, theirs = results.plan, [v for v in verdicts if not v.claim.startswith(claims.OURS)]
    verdict_section(
        page,
        note,
        f"Of {len(theirs)} checks {tally(theirs)}. One model is better than another when a paired "
        f"bootstrap and approximate randomisation both give p < 0.05, {len(plan.seeds)} seeds "
        "pooled; “as good” means that the 95 % interval of the difference stays above "
        f"−{claims.MARGIN:g} points of BLEU. On 1,000 sentences a difference has a standard error "
        "of about 0.2, so that those below 0.4 are seldom shown by one test set. All weights are "
        f"tuned by MERT on development lists, except in the last column ({claims.STEADY}), where "
        "the decoder's weights stay and only that of the phrase model is searched for: steadier, "
        "since MERT moves BLEU by chance. Nothing is corrected for the number of checks.",
    )
    places = {where: label(where) for where in (*results.places, claims.STEADY)}
    verdict_table(page, verdicts, places, "lists", "claim")


def _question(page: Page, results: Results) -> None:
    page.section("What the phrase model is worth").text(
        "Bayes risk against the decoder's own choice and against its dense weights tuned anew, "
        f"on both test sets together ({POOLED}). The paper has +0.7 to +0.9 over its baseline."
    )
    ways, rows = {MERT: "MERT", LINE: "its own weight"}, []
    names = ("vrda-risk", "sgd-risk", RETUNED)
    for name, how, other in itertools.product(names, ways, (DECODER, RETUNED)):
        if name == other or (RETUNED in (name, other) and how == LINE):
            continue
        score, _, *cells = results.against(name, other, POOLED, how).row
        rows.append([_title(name), ways[how], _NAMES[other], score, *cells])
    caption = "p by paired bootstrap / approximate randomisation; BLEU of all seeds together."
    heads = ["model", "added by", "against", "BLEU", "difference [95 %]", "p"]
    page.table(heads, rows, caption, align="lllr")


def _table_3(page: Page, results: Results) -> None:
    plan = results.plan
    page.section("Table 3: losses and rules").text(
        "Scale of the scores, rate, passes and what is kept (average or last weights) have the "
        "highest BLEU on development lists, the model's weight searched for; mean over "
        f"{len(plan.tuning_seeds)} seeds. Then all weights are tuned by MERT. BLEU, mean and "
        f"deviation over {len(plan.seeds)} seeds. Marks, p < 0.05 by both tests: α different from "
        "the decoder's choice, α′ from its weights tuned anew, β from SGD with the same loss. The "
        "lower half has the baseline's score in the loss as it is, as the paper seems to "
        f"({len(plan.level_seeds)} seeds). A mark does not say which is the better one."
    )
    heads = ["model", "dev", *map(label, results.places), claims.STEADY, "paper: TEST1, TEST2"]
    rows = []
    for name in (DECODER, RETUNED, *TABLE, *(as_is(key) for key in TABLE)):
        if name not in results.scored and name != DECODER:
            continue
        cells: list[str | None]
        cells = [_cell(results, name, where, MERT) for where in results.places]
        cells.append(None if name == RETUNED else _cell(results, name, POOLED, LINE))
        theirs = (f"{claims.BASELINE}",) * 2 if name == DECODER else claims.TABLE_3.get(name, ())
        rows.append([_title(name), f"{results.dev(name):.2f}", *cells, ", ".join(theirs) or None])
    page.table(heads, rows, align="lr")


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


def _table_4(page: Page, results: Results) -> None:
    plan = results.plan
    page.section("Table 4: strength of regularisation").text(
        "VRDA with Bayes risk at each λ; scale, rate, passes and what is kept (the average where "
        "the last weights are not zero, or the last weights) have the highest BLEU on development "
        "lists for that λ. α marks p < 0.05 against λ = 0. The paper has 751,000 sentences to "
        "learn from and 2.5 million phrase pairs, so its λ are other ones."
    )
    rows = []
    for l1 in plan.strengths:
        name = at(l1)
        row = [f"{l1:g}", f"{results.nnz(name):,.0f}", f"{claims.share(results, l1):.2%}"]
        row.append(f"{results.dev(name):.2f}")
        for where, how in (*((where, MERT) for where in results.places), (POOLED, LINE)):
            differs = l1 and results.against(name, at(0.0), where, how).significant
            row.append(spread(results.bleus(name, where, how)) + (" α" if differs else ""))
        rows.append(row)
    heads = ["λ", "NNZ", "share", "dev", *map(label, results.places), claims.STEADY]
    page.table(heads, rows, "Ours.", align="r")
    rows = []
    for l1 in plan.strengths[1:]:
        ways = (results.against(at(l1), at(0.0), POOLED, how) for how in (MERT, LINE))
        rows.append([f"{l1:g}", *(cell for difference in ways for cell in difference.cells)])
    heads = ["λ", "difference to λ = 0 [95 %]", "p", f"{LINE}: difference", "p"]
    page.table(heads, rows, "Both test sets together.", align="r")
    rows = [[f"{l1:g}", f"{nnz:,}", one, two] for l1, nnz, one, two in claims.TABLE_4]
    page.table(["λ", "NNZ", "TEST1", "TEST2"], rows, "The paper.", align="r")


def _figures(page: Page, results: Results) -> None:
    plan = results.plan
    page.section("Figures 7 and 8: BLEU against the number of weights").text(
        "The paper: VRDA makes sparser models than TG, with less loss of BLEU. Ours: at each "
        "number of weights the setting of highest BLEU on development lists that has at most so "
        f"many; mean and deviation over {len(plan.level_seeds)} seeds. The rate of TG is constant, "
        "as Langford, Li and Zhang (2009) have it, or η′/√k at the k-th list, as eqs. 12 to 14 of "
        "the paper have it; the paper does not say which of them its figures used. **Axes do not "
        "start at 0.**"
    )
    page.figures(
        [frontiers(results, where, how) for how in (MERT, LINE) for where in results.places]
        + [all_settings(results)]
    )
    rows = []
    for tg, rate in TG.items():
        for (level, pair), how in itertools.product(claims.levels(results, tg), (MERT, LINE)):
            sizes = (f"{results.nnz(name):,.0f}" for name in pair)
            test = results.against(*pair, POOLED, how)
            rows.append([rate, f"{level:,}", how, *sizes, *test.row])
    heads = ["TG's rate", "at most", "added by", "VRDA: NNZ", "TG: NNZ", "VRDA", "TG"]
    caption = "VRDA against TG, both test sets together."
    page.table([*heads, "difference [95 %]", "p"], rows, caption, align="lrlr")


def _settings(page: Page, results: Results) -> None:
    plan = results.plan
    page.section("What was chosen").text(
        "On development lists: BLEU with the best weight of the model, and with weight 1, which is "
        "how it was learned. An end of a grid may mean that a better value lies beyond."
    )
    rows = []
    for name, trial in results.choices.items():
        specs = plan.sweeps if "λ" in name or "≤" in name else plan.table
        ends = edges(trial, next(s for s in specs if s.key == trial.spec), plan.marks)
        setting = [name, text_of(trial.params), trial.passes, trial.kept]
        scores = [f"{trial.dev:.2f}", f"{trial.plain:.2f}", f"{trial.nnz:,.0f}"]
        rows.append([*setting, *scores, ", ".join(ends)])
    heads = ["choice", "setting", "passes", "kept", "dev", "weight 1", "NNZ", "at an end"]
    page.table(heads, rows, align="llrlrrrl")


def _setup(page: Page, results: Results) -> None:
    plan, problem = results.plan, results.problem
    page.section("How").text(
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
