"""Learners of candidate lists."""

from __future__ import annotations

from hopefear.costs.regret import Regret
from hopefear.losses.hinge import Hinge
from hopefear.losses.hope_fear import HopeFear
from hopefear.losses.linear import Linear
from hopefear.losses.log import Log
from hopefear.losses.logistic import Logistic
from hopefear.losses.nbest_mira import NBestMIRA
from hopefear.losses.perceptron import Perceptron
from hopefear.losses.ramp import Ramp
from hopefear.losses.risk import Risk
from hopefear.losses.sapo import SAPO
from hopefear.losses.structured_hinge import StructuredHinge
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

LIST_RECIPES = {
    recipe.name: recipe
    for recipe in (
        made(
            "perceptron",
            "averaged perceptron on lists (Collins, 2002)",
            *(Perceptron, SGD, Averaged, "mistakes"),
        ),
        made(
            "mira",
            "MIRA between hope and fear, averaged (Chiang, 2012)",
            *(HopeFear, PassiveAggressive, Averaged, "every"),
            C=0.01,
        ),
        made(
            "nbest-mira",
            "n-best MIRA, averaged (McDonald et al., 2005)",
            *(NBestMIRA, SGD, Averaged, "every"),
            C=0.01,
            cost=Regret(),
        ),
        made(
            "maxent",
            "log loss over the list (Charniak and Johnson, 2005)",
            *(Log, SGD, Averaged, "every"),
            rate=0.1,
            decay=0.9,
            l2=1e-5,
        ),
        made(
            "risk",
            "expected cost (Smith and Eisner, 2006)",
            *(Risk, SGD, Averaged, "every"),
            rate=0.1,
            decay=0.9,
            l2=1e-5,
        ),
        made(
            "rampion",
            "ramp loss, from fear to hope (Gimpel and Smith, 2012)",
            *(Ramp, SGD, Averaged, "every"),
            rate=0.1,
            decay=0.9,
            l2=1e-5,
        ),
        made(
            "ssvm",
            "structured SVM by stochastic subgradient (Taskar et al., 2003)",
            *(StructuredHinge, SGD, Averaged, "every"),
            rate=0.1,
            decay=0.9,
            l2=1e-5,
            cost=Regret(),
        ),
        made(
            "sapo",
            "probabilities over the n best (Sun et al.)",
            *(SAPO, SGD, Averaged, "every"),
            rate=0.1,
            decay=0.9,
            l2=1e-5,
        ),
        made(
            "sgd",
            "stochastic gradient descent with L2 and cumulative L1 (Tsuruoka et al., 2009)",
            *(Logistic, SGD, Averaged, "every"),
            rate=0.1,
            decay=0.9,
            l2=1e-5,
        ),
        made(
            "pa",
            "passive-aggressive against the best rival (Crammer et al., 2006)",
            *(Hinge, PassiveAggressive, Averaged, "every"),
            C=0.01,
        ),
        made(
            "adagrad",
            "AdaGrad, composite mirror descent (Duchi et al., 2011)",
            *(Log, AdaGrad, Averaged, "every"),
            rate=0.05,
        ),
        made(
            "adagrad-rda",
            "adaptive dual averaging with L1 (Duchi et al., 2011)",
            *(Log, AdaGradRDA, Averaged, "every"),
            rate=0.05,
            l1=1e-4,
        ),
        made(
            "rda",
            "regularized dual averaging with L1 (Xiao, 2010)",
            *(Log, RDA, Averaged, "every"),
            rate=1.0,
            l1=1e-4,
        ),
        made(
            "vrda",
            "voted RDA: dual averaging on mistakes (Gao, Xiao, Xu and He)",
            *(Hinge, RDA, Averaged, "mistakes"),
            rate=1.0,
            l1=1e-4,
        ),
        made(
            "tg",
            "truncated gradient (Langford et al., 2009)",
            *(Hinge, TruncatedGradient, Averaged, "every"),
            rate=0.1,
            gravity=1e-5,
        ),
        made(
            "fobos",
            "forward-backward splitting (Duchi and Singer, 2009)",
            *(Log, FOBOS, Averaged, "every"),
            rate=0.1,
            l1=1e-5,
        ),
        made(
            "ftrl",
            "FTRL-proximal (McMahan et al., 2013)",
            *(Log, FTRL, Averaged, "every"),
            rate=0.05,
            l1=0.0,
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
