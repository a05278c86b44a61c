"""Learners of label chains."""

from __future__ import annotations

from hopefear.recipes.base import BatchRecipe, Kind, Recipe
from hopefear.recipes.margins import margin_recipes
from hopefear.recipes.spaces import Range

CHAINS = Kind(
    {
        "sgd": {"rate": 0.1, "power": 0.0, "decay": 0.85, "l2": 1e-6},
        "passive-aggressive": {"C": 0.05},
        "adagrad": {"rate": 0.1},
        "adagrad-rda": {"rate": 0.1, "l1": 1e-6},
        "rda": {"rate": 10.0, "l1": 1e-6},
        "truncated-gradient": {"rate": 0.1, "gravity": 1e-6},
        "fobos": {"rate": 0.1, "l1": 1e-6},
        "ftrl": {"rate": 0.2, "l1": 0.0},
    },
    cost="hamming",
    network="hopefear.neural.learner:Network",
)
_USUAL, _made, _shared = CHAINS.rules, CHAINS.recipe, CHAINS.shared_recipe
_network = CHAINS.network_recipe

CHAIN_RECIPES: dict[str, Recipe | BatchRecipe] = {
    recipe.name: recipe
    for recipe in (
        _shared("perceptron", "perceptron sgd averaged mistakes", {"decay": Range(0.7, 1.0)}),
        _made(
            "mira",
            "1-best MIRA, averaged (Crammer and Singer, 2003)",
            "prediction-hinge passive-aggressive averaged all",
            C=0.05,
            root=True,
        ),
        _shared("nbest-mira", "nbest-mira sgd averaged all", C=0.05, root=True),
        _shared("sapo", "sapo sgd averaged all", rate=0.1, decay=0.9, lam=0.05),
        _made(
            "crf",
            "conditional random field by stochastic gradient (Lafferty et al., 2001)",
            "log sgd averaged all",
            rate=0.2,
            decay=0.9,
            lam=0.1,
        ),
        _shared("ssvm", "structured-hinge sgd averaged all", rate=0.2, decay=0.9, lam=0.05),
        _shared("swvp", "swvp sgd averaged mistakes", approach="balanced"),
        _shared("sgd", "log sgd last all", **_USUAL["sgd"]),
        _shared("pa", "hinge passive-aggressive averaged all"),
        _shared("adagrad", "log adagrad last all", **_USUAL["adagrad"]),
        _made(
            "adagrad-rda",
            "adaptive dual averaging with L1 (Duchi et al., 2011)",
            "log adagrad-rda last all",
            **_USUAL["adagrad-rda"],
        ),
        _shared("rda", "log rda last all", **_USUAL["rda"]),
        _shared("vrda", "hinge rda averaged mistakes", rate=1.0, l1=1e-6),
        _shared("tg", "log truncated-gradient last all", **_USUAL["truncated-gradient"]),
        _shared("fobos", "log fobos last all", **_USUAL["fobos"]),
        _shared("ftrl", "log ftrl last all", **_USUAL["ftrl"]),
        _shared("cw", "linear confidence-weighted averaged all"),
        _shared("arow", "structured-hinge arow averaged all"),
        # Strengths chosen on the last 936 training sentences of CoNLL-2000; of margins that of
        # ssvm-bcfw was, and the others have the same.
        BatchRecipe(
            "crf-lbfgs",
            "conditional random field by L-BFGS with L2 (Sha and Pereira, 2003)",
            "hopefear.training.batch:Batch",
            {"l2": 0.1, "observed": True},
        ),
        BatchRecipe(
            "crf-owlqn",
            "conditional random field by OWL-QN with L1: sparse (Andrew and Gao, 2007)",
            "hopefear.training.batch:Batch",
            {"l1": 0.3, "l2": 0.01, "observed": False},
        ),
        *margin_recipes(3.0, 0.2, cost="hamming"),
        BatchRecipe(
            "m3n",
            "max-margin Markov network, its dual kept as marginals (Taskar et al., 2003)",
            "hopefear.training.m3n:M3N",
            {"l2": 3.0},
            "structured-hinge",
            {"cost": "hamming"},
        ),
        _network(
            "bilstm",
            "bidirectional LSTM, every label by itself (Graves and Schmidhuber, 2005)",
            "log",
            transitions=False,
        ),
        _network("bilstm-crf", "BiLSTM under a CRF (Huang, Xu and Yu, 2015)", "log"),
        _network("bilstm-sapo", "BiLSTM with probabilities over the n best (Sun et al.)", "sapo"),
        _network("bilstm-mira", "BiLSTM with the hinge of 1-best MIRA", "prediction-hinge"),
        _network("bilstm-ssvm", "BiLSTM with the hinge of structured SVMs", "structured-hinge"),
        _network("bilstm-perceptron", "BiLSTM with the structured perceptron's loss", "perceptron"),
        _network("bilstm-risk", "BiLSTM with expected cost (Smith and Eisner, 2006)", "risk"),
    )
}
