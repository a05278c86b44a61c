"""Learners of classes."""

from __future__ import annotations

from hopefear.recipes.base import Auto, BatchRecipe, Kind, Recipe
from hopefear.recipes.margins import margin_recipes
from hopefear.recipes.spaces import Range

CLASSES = Kind(
    {
        "sgd": {"rate": Auto(50.0), "power": 0.5, "l2": 1e-6},
        "adagrad": {"rate": 0.5},
        "adagrad-rda": {"rate": 0.5, "l1": 1e-6},
        "rda": {"rate": Auto(100.0), "l1": 1e-5},
        "truncated-gradient": {"rate": Auto(50.0), "gravity": 1e-6, "power": 0.5},
        "fobos": {"rate": Auto(50.0), "l1": 1e-6},
        "ftrl": {"rate": 1.0, "l1": 0.0},
    },
    cost="hamming",
)
_USUAL, _made, _shared = CLASSES.rules, CLASSES.recipe, CLASSES.shared_recipe

RECIPES: dict[str, Recipe | BatchRecipe] = {
    recipe.name: recipe
    for recipe in (
        _made(
            "perceptron",
            "averaged perceptron (Freund and Schapire, 1999; Collins, 2002)",
            "perceptron sgd averaged mistakes",
            {"decay": Range(0.7, 1.0)},
        ),
        _shared("sgd", "logistic sgd last all", **_USUAL["sgd"]),
        _made(
            "pa",
            "passive-aggressive; variant 0, 1 (PA-I) or 2 (PA-II) (Crammer et al., 2006)",
            "hinge passive-aggressive averaged all",
        ),
        _shared("adagrad", "logistic adagrad last all", **_USUAL["adagrad"]),
        _shared("adagrad-rda", "logistic adagrad-rda last all", **_USUAL["adagrad-rda"]),
        _shared("rda", "logistic rda last all", **_USUAL["rda"]),
        _shared("vrda", "hinge rda averaged mistakes", l1=1e-6, rate=Auto(100.0)),
        _shared("tg", "logistic truncated-gradient last all", **_USUAL["truncated-gradient"]),
        _shared("fobos", "logistic fobos last all", **_USUAL["fobos"]),
        _shared("ftrl", "logistic ftrl last all", **_USUAL["ftrl"]),
        _shared("cw", "linear confidence-weighted last all"),
        _shared("arow", "hinge arow last all"),
        _made(
            "softmax",
            "multinomial logistic regression by AdaGrad (Berger et al., 1996)",
            "log adagrad last all",
            **_USUAL["adagrad"],
        ),
        _made(
            "mira",
            "MIRA against the predicted class, averaged (Crammer and Singer, 2003)",
            "prediction-hinge passive-aggressive averaged all",
        ),
        _made(
            "nbest-mira",
            "MIRA against the n best classes, averaged (McDonald et al., 2005)",
            "nbest-mira sgd averaged all",
        ),
        _made(
            "sapo",
            "probabilities over the n best classes (Sun et al.)",
            "sapo sgd averaged all",
            **_USUAL["sgd"],
        ),
        _made(
            "ssvm",
            "margins in proportion to costs, by stochastic subgradient (Crammer and Singer, 2001)",
            "structured-hinge sgd averaged all",
            **_USUAL["sgd"],
        ),
        _made(
            "ramp",
            "ramp loss, from fear to hope: outliers count little (Collobert et al., 2006)",
            "ramp sgd averaged all",
            **_USUAL["sgd"],
        ),
        _shared("risk", "risk adagrad averaged all", **_USUAL["adagrad"]),
        *margin_recipes(0.5, _USUAL["sgd"]["rate"], cost="hamming"),
    )
}
