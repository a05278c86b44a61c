"""Sections of the page that go beyond the paper, and how everything was done."""

from __future__ import annotations

import numpy as np

from hopefear.experiments.common.differences import gap_text, p_values
from hopefear.experiments.common.scores import spread
from hopefear.experiments.vrda_reranking.choosing import edges, text_of
from hopefear.experiments.vrda_reranking.measuring import TABLE, TOP, Measured
from hopefear.experiments.vrda_reranking.plan import KEPT, Plan
from hopefear.experiments.vrda_reranking.problems import FEATURES, MIN_COUNT
from hopefear.experiments.vrda_reranking.results import scores_of
from hopefear.experiments.vrda_reranking.verdicts import Judge
from hopefear.experiments.vrda_reranking.words import mean_dev, title_of
from hopefear.report import Page


def votes(page: Page, made: Measured, judge: Judge) -> None:
    page.section("Voting and averaging")
    page.text(
        "The paper tests by the vote of all predictors there were (its Figure 2). The same runs, "
        "voted and averaged:"
    )
    rows = []
    for key, voted in made.votes.items():
        found = judge.votes(key)
        rows.append(
            [
                key,
                spread(scores_of(voted)["f1"]),
                f"{found.first:.2f}",
                gap_text(found),
                p_values(found),
            ]
        )
    page.table(
        ["learner", "F, voted", "F, average", "average − voted [95 %]", "p"],
        rows,
        "Test lists, settings of Table 1.",
        align="lrrrr",
    )


def extensions(page: Page, made: Measured, judge: Judge, plan: Plan) -> None:
    page.section("Other losses and rules")
    page.text(
        "Not in the paper's section 4: losses over the whole list, by VRDA (on mistakes), RDA "
        "(every list) and SGD (rate falling by a tenth a pass). Settings by one seed on "
        "development lists, small grids; sorted by F on development lists, mean over seeds. "
        f"**{title_of(made, plan, TOP)}** is what would have been chosen."
    )
    keys = sorted((s.key for s in plan.every), key=lambda key: -mean_dev(made, key))
    rows = []
    for key in keys:
        f1 = scores_of(made.counts(key, "test"))["f1"]
        found = None if key == "perceptron" else judge.against(key, "perceptron", "test")
        rows.append(
            [
                plan.spec(key).title,
                f"{mean_dev(made, key):.2f}",
                spread(f1),
                f"{made.nnz(key):,.0f}",
                None if found is None else gap_text(found),
                None if found is None else p_values(found),
            ]
        )
    page.table(
        ["learner", "dev F", "test F", "NNZ", "− perceptron [95 %]", "p"], rows, align="l" + "r" * 5
    )


def published(page: Page, made: Measured, plan: Plan) -> None:
    page.section("Families of features")
    page.text(
        f"All above uses `{FEATURES}`: the families of Charniak and Johnson (2005), our own "
        "families of spans and subcategories, and agreement with the rest of the list. With the "
        "published families alone (`ptb`), settings unchanged:"
    )
    whole, alone = made.features["split"], made.features["published"]
    rows = []
    for name in (*TABLE, TOP):
        few = made.published[name]
        rows.append(
            [
                title_of(made, plan, name),
                f"{mean_dev(made, name):.2f}",
                spread(scores_of(made.counts(name, "test"))["f1"]),
                f"{np.mean([s.dev for s in few]):.2f}",
                spread(scores_of([s.counts for s in few])["f1"]),
                f"{np.mean([s.nnz for s in few]):,.0f}",
            ]
        )
    page.table(
        ["learner", "all: dev F", "all: test F", "ptb: dev F", "ptb: test F", "ptb: NNZ"],
        rows,
        f"{whole:,} features in all, {alone:,} of the published families.",
        align="l" + "r" * 5,
    )


def setup(page: Page, made: Measured, plan: Plan) -> None:
    page.section("How it was done")
    sizes = made.lists
    page.text(
        f"Lists of the 50 best parses of {sizes['train']:,} training, {sizes['dev']:,} development "
        f"and {sizes['test']:,} test sentences (the part of the Penn Treebank that NLTK has), made "
        "by a first-stage parser that was itself trained on those sentences, by jackknife. The "
        "paper has sections 2 to 19, 20 to 21 and 22, parsed by one trained on 40,000 sentences: "
        "its baseline is four points higher, and it has 1.2 million features where we have "
        f"{made.features['split']:,}. A feature is kept when it tells candidates apart in "
        f"{MIN_COUNT} training lists or more; values are relative within a list. F is that of "
        "labelled brackets as EVALB counts them with COLLINS.prm."
    )
    page.text(
        "The oracle is the cheapest parse, the first of equals, and any other is a mistake, as in "
        "the paper. The perceptron is averaged. TG moves on every list with loss, with a constant "
        "rate, and pulls every K lists. VRDA moves on mistakes only; under the hinge its rate "
        "changes nothing. Folds take the settings chosen on the development lists, which are not "
        "scored in them; features are counted anew in every fold."
    )


def settings(page: Page, made: Measured, plan: Plan) -> None:
    page.section("Settings")
    rows = []
    for key, trial in made.choices.items():
        spec = plan.spec(trial.spec)
        rows.append(
            [
                key,
                text_of(trial.params) or None,
                trial.passes,
                KEPT[trial.kept],
                f"{trial.dev:.2f}",
                f"{trial.nnz:,.0f}",
                " and ".join(edges(trial, spec.grid, plan.marks)) or None,
            ]
        )
    with page.details("Everything that was chosen on development lists"):
        page.table(
            ["name", "parameters", "passes", "kept", "dev F", "NNZ", "at the edge of its grid"],
            rows,
            align="llrlrrl",
        )
    with page.details("Signatures of the runs"):
        page.code("\n".join(found[0].signature for found in made.test.values()))
