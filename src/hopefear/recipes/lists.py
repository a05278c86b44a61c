"""Learners of candidate lists."""

from __future__ import annotations

from hopefear.recipes.base import Auto, BatchRecipe, Kind, Recipe
from hopefear.recipes.margins import margin_recipes
from hopefear.recipes.spaces import Range

LISTS = Kind(
    {
        "sgd": {"rate": Auto(2.0), "decay": 0.9},
        "passive-aggressive": {"C": 0.001},
        "adagrad": {"rate": Auto(1.6, "reach")},
        "adagrad-rda": {"rate": Auto(4.0, "reach"), "l1": 3e-4},
        "rda": {"rate": Auto(400.0), "l1": 1e-4},
        "truncated-gradient": {"rate": Auto(4.0), "gravity": 1e-5},
        "fobos": {"rate": Auto(40.0), "l1": 1e-5},
        "ftrl": {"rate": Auto(1.6, "reach"), "l1": 0.0},
    }
)
_USUAL, _made, _shared = LISTS.rules, LISTS.recipe, LISTS.shared_recipe

# Strengths and lengths of steps were chosen on the dev lists of the Penn Treebank sample, with the
# features "rich,consensus"; "auto" carries them over to lists of other features and costs.
LIST_RECIPES: dict[str, Recipe | BatchRecipe] = {
    recipe.name: recipe
    for recipe in (
        _made(
            "maxent",
            "log loss, every candidate wanted by its cost, by AdaGrad, averaged",
            "weighted-log adagrad averaged all",
            # With less, candidates of one error are wanted nearly as much as the oracle is.
            inverse_temperature=30.0,
            price="auto",
            **_USUAL["adagrad"],
        ),
        _made(
            "perceptron",
            "averaged perceptron on lists (Collins, 2002)",
            "perceptron sgd averaged mistakes",
            {"decay": Range(0.7, 1.0)},
        ),
        _made(
            "mira",
            "MIRA between hope and fear, averaged (Chiang, 2012)",
            "hope-fear passive-aggressive averaged all",
            price="auto",
            **_USUAL["passive-aggressive"],
        ),
        _shared("nbest-mira", "nbest-mira sgd averaged all", C=0.001, cost="regret", price="auto"),
        _shared("risk", "risk adagrad averaged all", price="auto", rate=Auto(4.0, "reach")),
        _made(
            "rampion",
            "ramp loss, from fear to hope (Gimpel and Smith, 2012)",
            "ramp sgd averaged all",
            cost="regret",
            price="auto",
            **_USUAL["sgd"],
        ),
        _shared(
            "ssvm",
            "structured-hinge sgd averaged all",
            cost="regret",
            price="auto",
            **_USUAL["sgd"],
        ),
        _shared("sapo", "sapo sgd averaged all", **_USUAL["sgd"]),
        _shared("sgd", "log sgd averaged all", **_USUAL["sgd"]),
        _shared("pa", "hinge passive-aggressive averaged all", **_USUAL["passive-aggressive"]),
        _shared("adagrad", "log adagrad averaged all", **_USUAL["adagrad"]),
        _shared(
            "adagrad-rda",
            "weighted-log adagrad-rda averaged all",
            price="auto",
            sparse_average=True,
            **_USUAL["adagrad-rda"],
        ),
        _shared(
            "rda",
            "weighted-log rda averaged all",
            price="auto",
            sparse_average=True,
            **_USUAL["rda"],
        ),
        _made(
            "vrda",
            "voted RDA: dual averaging on mistakes (Gao, Xiao, Xu and He)",
            "hinge rda averaged mistakes",
            l1=1e-3,
            rate=Auto(40.0),
        ),
        _shared("tg", "hinge truncated-gradient averaged all", **_USUAL["truncated-gradient"]),
        _shared("fobos", "weighted-log fobos averaged all", price="auto", **_USUAL["fobos"]),
        _shared("ftrl", "weighted-log ftrl averaged all", price="auto", **_USUAL["ftrl"]),
        _shared("cw", "linear confidence-weighted averaged all"),
        _shared("arow", "hinge arow averaged all"),
        BatchRecipe(
            "maxent-lbfgs",
            "log loss over the list by L-BFGS with L2 (Charniak and Johnson, 2005)",
            "hopefear.training.batch:Batch",
            {"l2": 10.0},
            "log",
        ),
        BatchRecipe(
            "maxent-owlqn",
            "log loss over the list by OWL-QN with L1: sparse (Andrew and Gao, 2007)",
            "hopefear.training.batch:Batch",
            {"l1": 1.0, "l2": 0.0},
            "log",
        ),
        *margin_recipes(1.0, _USUAL["sgd"]["rate"], cost="regret", price="auto"),
    )
}
