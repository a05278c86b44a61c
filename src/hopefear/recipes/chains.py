"""Learners of label chains."""

from __future__ import annotations

from hopefear.losses.hinge import Hinge
from hopefear.losses.linear import Linear
from hopefear.losses.log import Log
from hopefear.losses.nbest_mira import NBestMIRA
from hopefear.losses.perceptron import Perceptron
from hopefear.losses.prediction_hinge import PredictionHinge
from hopefear.losses.sapo import SAPO
from hopefear.losses.structured_hinge import StructuredHinge
from hopefear.losses.swvp import SWVP
from hopefear.readouts.averaged import Averaged
from hopefear.readouts.last import Last
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

CHAIN_RECIPES = {
    recipe.name: recipe
    for recipe in (
        made(
            "perceptron",
            "structured perceptron, averaged (Collins, 2002)",
            *(Perceptron, SGD, Averaged, "mistakes"),
        ),
        made(
            "mira",
            "1-best MIRA, averaged (Crammer and Singer, 2003)",
            *(PredictionHinge, PassiveAggressive, Averaged, "every"),
            C=0.05,
            root=True,
        ),
        made(
            "nbest-mira",
            "n-best MIRA, averaged (McDonald et al., 2005)",
            *(NBestMIRA, SGD, Averaged, "every"),
            C=0.05,
            root=True,
        ),
        made(
            "sapo",
            "probabilities over the n best (Sun et al.)",
            *(SAPO, SGD, Averaged, "every"),
            rate=0.1,
            decay=0.9,
            lam=0.05,
        ),
        made(
            "crf",
            "conditional random field by stochastic gradient (Lafferty et al., 2001)",
            *(Log, SGD, Last, "every"),
            rate=0.2,
            decay=0.9,
            lam=0.1,
        ),
        made(
            "ssvm",
            "structured SVM by stochastic subgradient (Taskar et al., 2003)",
            *(StructuredHinge, SGD, Averaged, "every"),
            rate=0.2,
            decay=0.9,
            lam=0.05,
        ),
        made(
            "swvp",
            "structured weighted violations perceptron (Dror and Reichart, 2016)",
            *(SWVP, SGD, Averaged, "mistakes"),
            approach="balanced",
        ),
        made(
            "sgd",
            "stochastic gradient descent with L2 and cumulative L1 (Tsuruoka et al., 2009)",
            *(Log, SGD, Last, "every"),
            rate=0.1,
            power=0.0,
            decay=0.85,
            l2=1e-6,
        ),
        made(
            "pa",
            "passive-aggressive against the best rival (Crammer et al., 2006)",
            *(Hinge, PassiveAggressive, Averaged, "every"),
        ),
        made(
            "adagrad",
            "AdaGrad, composite mirror descent (Duchi et al., 2011)",
            *(Log, AdaGrad, Last, "every"),
            rate=0.1,
        ),
        made(
            "adagrad-rda",
            "adaptive dual averaging with L1 (Duchi et al., 2011)",
            *(Log, AdaGradRDA, Last, "every"),
            rate=0.1,
            l1=1e-6,
        ),
        made(
            "rda",
            "regularized dual averaging with L1 (Xiao, 2010)",
            *(Log, RDA, Last, "every"),
            rate=10.0,
            l1=1e-6,
        ),
        made(
            "vrda",
            "voted RDA: dual averaging on mistakes (Xu, Gao, Xiao and Regan)",
            *(Hinge, RDA, Averaged, "mistakes"),
            rate=1.0,
            l1=1e-6,
        ),
        made(
            "tg",
            "truncated gradient (Langford et al., 2009)",
            *(Log, TruncatedGradient, Last, "every"),
            rate=0.1,
            gravity=1e-6,
        ),
        made(
            "fobos",
            "forward-backward splitting (Duchi and Singer, 2009)",
            *(Log, FOBOS, Last, "every"),
            rate=0.1,
            l1=1e-6,
        ),
        made(
            "ftrl",
            "FTRL-proximal (McMahan et al., 2013)",
            *(Log, FTRL, Last, "every"),
            rate=0.2,
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
            *(StructuredHinge, AROW, Averaged, "every"),
        ),
    )
}
