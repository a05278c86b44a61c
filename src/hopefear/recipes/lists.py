"""Learners of candidate lists."""

from __future__ import annotations

from hopefear.costs.regret import Regret
from hopefear.losses.hinge import Hinge
from hopefear.losses.hope_fear import HopeFear
from hopefear.losses.linear import Linear
from hopefear.losses.log import Log
from hopefear.losses.nbest_mira import NBestMIRA
from hopefear.losses.perceptron import Perceptron
from hopefear.losses.ramp import Ramp
from hopefear.losses.risk import Risk
from hopefear.losses.sapo import SAPO
from hopefear.losses.structured_hinge import StructuredHinge
from hopefear.losses.weighted_log import WeightedLog
from hopefear.readouts.averaged import Averaged
from hopefear.recipes.base import made
from hopefear.rules.adagrad import AdaGrad
from hopefear.rules.adagrad_rda import AdaGradRDA
from hopefear.rules.arow import AROW
from hopefear.rules.confidence import ConfidenceWeighted
from hopefear.rules.fobos import FOBOS
from hopefear.rules.ftrl import FTRL
from hopefear.rules.passive_aggressive import PassiveAggressive
from hopefear.rules.rda import RDA
from hopefear.rules.sgd import SGD
from hopefear.rules.truncated import TruncatedGradient

# Strengths and lengths of steps were chosen on the dev lists of the Penn Treebank sample, with the
# features "rich,consensus"; "auto" carries them over to lists of other features and costs.
LIST_RECIPES = {
    recipe.name: recipe
    for recipe in (
        made(
            "maxent",
            "log loss, every candidate wanted by its cost, by AdaGrad, averaged",
            *(WeightedLog, AdaGrad, Averaged, "every"),
            price="auto",
            auto=lambda s: 1.6 / s.reach,
        ),
        made(
            "perceptron",
            "averaged perceptron on lists (Collins, 2002)",
            *(Perceptron, SGD, Averaged, "mistakes"),
        ),
        made(
            "mira",
            "MIRA between hope and fear, averaged (Chiang, 2012)",
            *(HopeFear, PassiveAggressive, Averaged, "every"),
            C=0.001,
            price="auto",
        ),
        made(
            "nbest-mira",
            "n-best MIRA, averaged (McDonald et al., 2005)",
            *(NBestMIRA, SGD, Averaged, "every"),
            C=0.001,
            cost=Regret(),
            price="auto",
        ),
        made(
            "risk",
            "expected cost (Smith and Eisner, 2006)",
            *(Risk, AdaGrad, Averaged, "every"),
            price="auto",
            auto=lambda s: 4.0 / s.reach,
        ),
        made(
            "rampion",
            "ramp loss, from fear to hope (Gimpel and Smith, 2012)",
            *(Ramp, SGD, Averaged, "every"),
            decay=0.9,
            cost=Regret(),
            price="auto",
            auto=lambda s: 2.0 / s.square,
        ),
        made(
            "ssvm",
            "structured SVM by stochastic subgradient (Taskar et al., 2003)",
            *(StructuredHinge, SGD, Averaged, "every"),
            decay=0.9,
            cost=Regret(),
            price="auto",
            auto=lambda s: 2.0 / s.square,
        ),
        made(
            "sapo",
            "probabilities over the n best (Sun et al.)",
            *(SAPO, SGD, Averaged, "every"),
            decay=0.9,
            auto=lambda s: 2.0 / s.square,
        ),
        made(
            "sgd",
            "stochastic gradient descent with L2 and cumulative L1 (Tsuruoka et al., 2009)",
            *(Log, SGD, Averaged, "every"),
            decay=0.9,
            auto=lambda s: 2.0 / s.square,
        ),
        made(
            "pa",
            "passive-aggressive against the best rival (Crammer et al., 2006)",
            *(Hinge, PassiveAggressive, Averaged, "every"),
            C=0.001,
        ),
        made(
            "adagrad",
            "AdaGrad, composite mirror descent (Duchi et al., 2011)",
            *(Log, AdaGrad, Averaged, "every"),
            auto=lambda s: 1.6 / s.reach,
        ),
        made(
            "adagrad-rda",
            "adaptive dual averaging with L1 (Duchi et al., 2011): strong and sparse",
            *(WeightedLog, AdaGradRDA, Averaged, "every"),
            price="auto",
            l1=3e-4,
            on_last_support=True,
            auto=lambda s: 4.0 / s.reach,
        ),
        made(
            "rda",
            "regularized dual averaging with L1 (Xiao, 2010)",
            *(WeightedLog, RDA, Averaged, "every"),
            price="auto",
            l1=1e-4,
            on_last_support=True,
            auto=lambda s: 400.0 / s.square,
        ),
        made(
            "vrda",
            "voted RDA: dual averaging on mistakes (Gao, Xiao, Xu and He)",
            *(Hinge, RDA, Averaged, "mistakes"),
            l1=1e-3,
            auto=lambda s: 40.0 / s.square,
        ),
        made(
            "tg",
            "truncated gradient (Langford et al., 2009)",
            *(Hinge, TruncatedGradient, Averaged, "every"),
            gravity=1e-5,
            auto=lambda s: 4.0 / s.square,
        ),
        made(
            "fobos",
            "forward-backward splitting (Duchi and Singer, 2009)",
            *(WeightedLog, FOBOS, Averaged, "every"),
            price="auto",
            l1=1e-5,
            auto=lambda s: 40.0 / s.square,
        ),
        made(
            "ftrl",
            "FTRL-proximal (McMahan et al., 2013)",
            *(WeightedLog, FTRL, Averaged, "every"),
            price="auto",
            l1=0.0,
            auto=lambda s: 1.6 / s.reach,
        ),
        made(
            "cw",
            "confidence-weighted, variance form (Dredze et al., 2008)",
            *(Linear, ConfidenceWeighted, Averaged, "every"),
        ),
        made(
            "arow",
            "adaptive regularisation of weights (Crammer et al., 2009)",
            *(Hinge, AROW, Averaged, "every"),
        ),
    )
}
