"""The page: verdicts first, then the paper's tables and figures beside our numbers."""

from __future__ import annotations

from collections.abc import Sequence

from hopefear.experiments.common.differences import gap_text, p_values
from hopefear.experiments.common.files import signed
from hopefear.experiments.common.scores import spread
from hopefear.experiments.common.verdict_table import tally, verdict_table
from hopefear.experiments.vrda_reranking import figures, further
from hopefear.experiments.vrda_reranking.choosing import at, at_most, sparse, tenth
from hopefear.experiments.vrda_reranking.measuring import TABLE, TOP, Measured
from hopefear.experiments.vrda_reranking.paper import TABLE_1, TABLE_2, WORSE
from hopefear.experiments.vrda_reranking.plan import (
    AVERAGED,
    GOAL,
    LOSSES,
    SUPPORT,
    Plan,
    short,
)
from hopefear.experiments.vrda_reranking.results import scores_of, signature
from hopefear.experiments.vrda_reranking.verdicts import (
    MARGIN,
    ORDERED,
    OURS,
    PLACES,
    ROOM,
    Judge,
    Verdict,
    levels,
)
from hopefear.experiments.vrda_reranking.words import mean_f, title_of
from hopefear.report import Page

TITLE = "Voted dual averaging on lists of parses, run again"


def write_page(
    made: Measured, judge: Judge, verdicts: Sequence[Verdict], plan: Plan, quick: bool
) -> Page:
    """Build the whole page."""
    page = Page(
        TITLE,
        "Gao, Xiao, Xu and He, A Voted Regularized Dual Averaging Method for Large-Scale "
        "Discriminative Training in Natural Language Processing: section 4",
        signature=signed(signature(plan)),
    )
    _verdicts(page, made, verdicts, plan, quick)
    _table_1(page, made, judge, plan)
    _sparse(page, made, judge, plan)
    _table_2(page, made, judge, plan)
    _frontiers(page, made, judge, plan)
    _training(page, made, plan)
    further.votes(page, made, judge)
    further.extensions(page, made, judge, plan)
    further.published(page, made, plan)
    further.setup(page, made, plan)
    further.settings(page, made, plan)
    return page


def _verdicts(
    page: Page, made: Measured, verdicts: Sequence[Verdict], plan: Plan, quick: bool
) -> None:
    theirs = [v for v in verdicts if not v.claim.startswith(OURS)]
    page.section("What agrees and what does not")
    if quick:
        page.text("**This version reads a few lists only: too few to conclude from.**")
    page.text(
        f"Of {len(theirs)} checks {tally(theirs)}. The paper learns from "
        "36,000 sentences of the Penn Treebank and tests on 1,700; ours are far fewer "
        f"({made.lists['train']:,}, and {made.lists['test']:,} for the test), so every comparison "
        f"is made twice: on the **test** lists, {len(plan.seeds)} seeds pooled, and over "
        f"**{plan.folds} folds** of whole documents ({made.lists['folds']:,} lists, one seed; "
        "development lists are learnt from but not scored). One model is better than another when "
        "a paired bootstrap and approximate randomisation both give p < 0.05; “as good” means that "
        f"the 95 % interval of the difference stays above −{MARGIN:g} points of F. A number "
        f"follows λ when their rank correlation is {ORDERED:g} or more. NNZ has settled when it "
        f"stays within {ROOM:.0%} of the perceptron's weights from its end. Nothing is corrected "
        "for the number of checks."
    )
    places = {where: where for where in (*PLACES, "training")}
    verdict_table(page, verdicts, places, "lists", "claim")


def _table_1(page: Page, made: Measured, judge: Judge, plan: Plan) -> None:
    page.section("Table 1: learners at their best")
    page.text(
        "Settings (strength, rate, passes, and what is kept of the weights) have the highest F on "
        f"development lists, mean over {len(plan.tuning_seeds)} seeds. F, precision and recall in "
        "percent on test lists, mean and deviation over seeds; * marks p < 0.05 against the "
        "baseline by both tests."
    )
    theirs = {name: row for name, *row in TABLE_1}
    rows: list[list[object]] = []
    for name in ("baseline", *TABLE, TOP):
        scores = scores_of(made.counts(name, "test"))
        title, nnz, star, folds = "Baseline", None, "", None
        if name != "baseline":
            title, nnz = title_of(made, plan, name), f"{made.nnz(name):,.0f}"
            star = "*" if judge.against(name, "baseline", "test").significant else ""
        if made.has(name, "folds"):
            folds = f"{scores_of(made.counts(name, 'folds'))['f1'].mean():.2f}"
        f, p, r, k = theirs.get(name, (None,) * 4)
        rows.append(
            [
                title,
                f"{scores['f1'].mean():.2f}" if nnz is None else f"{spread(scores['f1'])}{star}",
                f"{scores['precision'].mean():.2f}",
                f"{scores['recall'].mean():.2f}",
                nnz,
                folds,
                *(None if v is None else f"{100 * v:.2f}" for v in (f, p, r)),
                None if k is None else f"{k}K",
            ]
        )
    heads = ["learner", "F", "P", "R", "NNZ", "F, folds"]
    page.table(
        [*heads, "paper: F", "paper: P", "paper: R", "paper: NNZ"],
        rows,
        f"The oracle of the lists has F {mean_f(made, 'oracle', 'test'):.2f} on test lists and "
        f"{mean_f(made, 'oracle', 'folds'):.2f} over folds.",
        align="l" + "r" * 9,
    )
    pairs = [(name, "perceptron") for name in (*TABLE[1:], TOP)]
    pairs += [(f"vrda-{loss}", f"tg-{loss}") for loss in LOSSES]
    _differences(page, made, judge, plan, pairs)


def _sparse(page: Page, made: Measured, judge: Judge, plan: Plan) -> None:
    page.section("Few weights at the perceptron's F")
    floor = made.choices["perceptron"].dev
    page.text(
        f"Of the settings with at least the perceptron's F on development lists ({floor:.2f}), the "
        "one with the fewest weights (the best, where none has that F). Then the best setting with "
        f"at most {GOAL:.0%} of the perceptron's weights: our goal is an F no worse than its. "
        "Losses other than hinge and logistic are not the paper's."
    )
    keys = (*(spec.key for spec in plan.voted), *(f"tg-{loss}" for loss in LOSSES))
    for naming, caption in (
        (sparse, "Fewest weights at the perceptron's F on development lists"),
        (tenth, f"Best with at most {GOAL:.0%} of the perceptron's weights"),
    ):
        rows = []
        for where in PLACES:
            for key in keys:
                name = naming(key)
                found = judge.against(name, "perceptron", where)
                rows.append(
                    [
                        plan.spec(key).title,
                        where,
                        f"{made.nnz(name, where):,.0f}",
                        f"{judge.share(name, 'perceptron', where):.1%}",
                        f"{found.first:.2f}",
                        gap_text(found),
                        p_values(found),
                    ]
                )
        page.table(
            ["learner", "lists", "NNZ", "share", "F", "F − perceptron's [95 %]", "p"],
            rows,
            f"{caption}; p by paired bootstrap / approximate randomisation.",
            align="llrrrrr",
        )


def _table_2(page: Page, made: Measured, judge: Judge, plan: Plan) -> None:
    page.section("Table 2: strength of regularisation")
    page.text(
        "VRDA at each λ; rate and passes have the highest F on development lists for that λ. An "
        "average has a weight wherever any of its predictors had one, so its NNZ falls late; "
        "**on the last support** it is kept only where the last weights are not zero, and for the "
        "two features that all candidates have (score and expected agreement). * marks p < 0.05 "
        "against λ = 0 by both tests. Sums of directions are compared with λ times their number, "
        "and the paper has twelve times our lists: its λ prunes more than the same λ here."
    )
    for n, loss in enumerate(LOSSES):
        rows = []
        for l1 in plan.sweep:
            row: list[object] = [short(l1)]
            for kept in (AVERAGED, SUPPORT):
                name, free = at(loss, l1, kept), at(loss, 0.0, kept)
                star = ""
                if l1:
                    star = "*" if judge.against(name, free, "test").significant else ""
                f1 = scores_of(made.counts(name, "test"))["f1"]
                row += [f"{spread(f1)}{star}", f"{made.nnz(name):,.0f}"]
            row.append(
                f"{mean_f(made, at(loss, l1), 'folds'):.2f}"
                if made.has(at(loss, l1), "folds")
                else None
            )
            theirs = TABLE_2.get(l1)
            mark = "*" if l1 in WORSE else ""
            row += (
                [None, None]
                if theirs is None
                else [f"{100 * theirs[2 * n]:.2f}{mark}", f"{theirs[2 * n + 1]}K"]
            )
            rows.append(row)
        ours = ["average: F", "NNZ", "last support: F", "NNZ", "last support: F, folds"]
        page.table(["λ", *ours, "paper: F", "paper: NNZ"], rows, f"**{loss} loss**.", align="r" * 8)


def _frontiers(page: Page, made: Measured, judge: Judge, plan: Plan) -> None:
    page.section("Figures 3 and 4: F against the number of weights")
    page.text(
        "The paper: where sparse models are wanted, VRDA loses less F than TG. Ours: at each "
        "number of weights the setting of highest F on development lists that has at most so many "
        "(grids: λ, rate and passes for VRDA; gravity, K, rate and passes for TG; average or the "
        "average on the last support for both, last weights for TG). **Axes do not start at 0.**"
    )
    page.figures(
        [figures.frontier(made, plan, loss, where) for where in PLACES for loss in LOSSES]
        + [figures.settings(made, loss) for loss in LOSSES]
    )
    for where in PLACES:
        rows = []
        for loss in LOSSES:
            for level, found in levels(judge, loss, where):
                names = [at_most(f"{rule}-{loss}", level) for rule in ("vrda", "tg")]
                rows.append(
                    [
                        loss,
                        f"{level:,}",
                        *(f"{made.nnz(name, where):,.0f}" for name in names),
                        f"{found.first:.2f}",
                        f"{found.second:.2f}",
                        gap_text(found),
                        p_values(found),
                    ]
                )
        page.table(
            ["loss", "at most", "VRDA: NNZ", "TG: NNZ", "VRDA: F", "TG: F", "difference", "p"],
            rows,
            f"VRDA against TG, {'test lists, seeds pooled' if where == 'test' else 'folds'}.",
            align="l" + "r" * 7,
        )


def _training(page: Page, made: Measured, plan: Plan) -> None:
    page.section("Figure 5: weights while training")
    page.text(
        "The paper: more λ, sparser models that converge more quickly. Ours: non-zero weights of "
        f"the predictor at that moment, one seed, {plan.trail_passes} passes."
    )
    page.figures([figures.figure_5(made, loss) for loss in LOSSES])
    page.section("Figure 6: mistakes while training")
    page.text(
        "The paper: mistakes grow more slowly than samples; λ = 0 makes no more of them than the "
        "perceptron, and more λ makes more."
    )
    page.figures([figures.figure_6(made, loss) for loss in LOSSES])


def _differences(
    page: Page, made: Measured, judge: Judge, plan: Plan, pairs: Sequence[tuple[str, str]]
) -> None:
    rows = []
    for first, second in pairs:
        row: list[object] = [f"{title_of(made, plan, first)} − {title_of(made, plan, second)}"]
        for where in PLACES:
            found = judge.against(first, second, where)
            row += [gap_text(found), p_values(found)]
        rows.append(row)
    page.table(
        ["difference of F", *(head for where in PLACES for head in (f"{where} [95 %]", "p"))],
        rows,
        f"p by paired bootstrap / approximate randomisation ({plan.replicates:,} draws each).",
        align="lrrrr",
    )
