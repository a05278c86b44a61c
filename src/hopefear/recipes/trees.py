"""Learners of dependency trees."""

from __future__ import annotations

from hopefear.recipes.base import BatchRecipe, Kind, Recipe
from hopefear.recipes.margins import margin_recipes
from hopefear.recipes.spaces import Range

TREES = Kind(
    {
        "sgd": {"rate": 0.05, "power": 0.0, "decay": 0.85, "l2": 1e-6},
        "passive-aggressive": {"C": 0.05},
        "adagrad": {"rate": 0.05},
        "adagrad-rda": {"rate": 0.05, "l1": 1e-6},
        "rda": {"rate": 5.0, "l1": 1e-6},
        "truncated-gradient": {"rate": 0.05, "gravity": 1e-6},
        "fobos": {"rate": 0.05, "l1": 1e-6},
        "ftrl": {"rate": 0.1, "l1": 0.0},
    },
    cost="hamming",
    network="hopefear.neural.learner:Biaffine",
)
_USUAL, _made, _shared = TREES.rules, TREES.recipe, TREES.shared_recipe
_network = TREES.network_recipe

TREE_RECIPES: dict[str, Recipe | BatchRecipe] = {
    recipe.name: recipe
    for recipe in (
        _shared("perceptron", "perceptron sgd averaged mistakes", {"decay": Range(0.7, 1.0)}),
        _made(
            "mira",
            "MIRA against the most feared tree, averaged (Crammer et al., 2006)",
            "structured-hinge passive-aggressive averaged all",
            C=0.05,
        ),
        _made(
            "mira-1best",
            "MIRA against the predicted tree, averaged (McDonald et al., 2005)",
            "prediction-hinge passive-aggressive averaged all",
            C=0.05,
        ),
        _shared("nbest-mira", "nbest-mira sgd averaged all", C=0.05),
        _shared("swvp", "swvp sgd averaged mistakes", approach="balanced"),
        _shared("sapo", "sapo sgd averaged all", rate=0.05, decay=0.9, lam=0.05),
        _made(
            "crf",
            "conditional random field by stochastic gradient (Paskin, 2001; Koo et al., 2007)",
            "log sgd averaged all",
            rate=0.05,
            decay=0.9,
            lam=0.05,
        ),
        _made(
            "ssvm",
            "structured SVM by stochastic subgradient (Taskar et al., 2004)",
            "structured-hinge sgd averaged all",
            rate=0.05,
            decay=0.9,
            lam=0.05,
        ),
        _made(
            "ramp",
            "ramp loss between hope and fear (Do et al., 2009)",
            "ramp sgd averaged all",
            rate=0.05,
            decay=0.9,
            lam=0.05,
        ),
        _made(
            "risk",
            "expected number of wrong words (Smith and Eisner, 2006)",
            "risk sgd averaged all",
            rate=0.05,
            decay=0.9,
            lam=0.05,
        ),
        _shared("pa", "hinge passive-aggressive averaged all"),
        _shared("adagrad", "structured-hinge adagrad averaged all", **_USUAL["adagrad"]),
        _made(
            "adagrad-rda",
            "adaptive dual averaging with L1 (Duchi et al., 2011): a sparse parser",
            "structured-hinge adagrad-rda last all",
            **_USUAL["adagrad-rda"],
        ),
        _shared("rda", "structured-hinge rda last all", **_USUAL["rda"]),
        _shared("vrda", "perceptron rda averaged mistakes", rate=1.0, l1=1e-6),
        _shared("fobos", "structured-hinge fobos averaged all", **_USUAL["fobos"]),
        BatchRecipe(
            "crf-lbfgs",
            "conditional random field by L-BFGS with L2 (Paskin, 2001; Koo et al., 2007)",
            "hopefear.training.batch:Batch",
            {"l2": 0.1},
        ),
        *margin_recipes(0.05, 0.05, cost="hamming"),
        _network(
            "biaffine",
            "biaffine network, the head of every word by itself (Dozat and Manning, 2017)",
            "log",
            trees=False,
        ),
        _network(
            "biaffine-crf",
            "biaffine network with probabilities of whole trees (Ma and Hovy, 2017)",
            "log",
        ),
        _network(
            "biaffine-ssvm",
            "biaffine network with the hinge of structured SVMs (Kiperwasser and Goldberg, 2016)",
            "structured-hinge",
        ),
        _network(
            "biaffine-sapo",
            "biaffine network with probabilities over the n best (Sun et al.)",
            "sapo",
        ),
    )
}
