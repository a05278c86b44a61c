"""Learners of classes."""

from __future__ import annotations

from hopefear.losses.hinge import Hinge
from hopefear.losses.linear import Linear
from hopefear.losses.logistic import Logistic
from hopefear.losses.perceptron import Perceptron
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

RECIPES = {
    recipe.name: recipe
    for recipe in (
        made(
            "perceptron",
            "averaged perceptron (Freund and Schapire, 1999; Collins, 2002)",
            Perceptron,
            SGD,
            Averaged,
            "mistakes",
        ),
        made(
            "sgd",
            "stochastic gradient descent with L2 and cumulative L1 (Tsuruoka et al., 2009)",
            Logistic,
            SGD,
            Last,
            "every",
            power=0.5,
            l2=1e-6,
            auto=lambda s: 50.0 / s.square,
        ),
        made(
            "pa",
            "passive-aggressive; variant 0, 1 (PA-I) or 2 (PA-II) (Crammer et al., 2006)",
            Hinge,
            PassiveAggressive,
            Averaged,
            "every",
        ),
        made(
            "adagrad",
            "AdaGrad, composite mirror descent (Duchi et al., 2011)",
            Logistic,
            AdaGrad,
            Last,
            "every",
            rate=0.5,
        ),
        made(
            "adagrad-rda",
            "adaptive dual averaging with L1 (Duchi et al., 2011): strong and sparse",
            Logistic,
            AdaGradRDA,
            Last,
            "every",
            rate=0.5,
            l1=1e-6,
        ),
        made(
            "rda",
            "regularized dual averaging with L1 (Xiao, 2010)",
            Logistic,
            RDA,
            Last,
            "every",
            l1=1e-5,
            auto=lambda s: 100.0 / s.square,
        ),
        made(
            "vrda",
            "voted RDA: dual averaging on mistakes (Xu, Gao, Xiao and Regan)",
            Hinge,
            RDA,
            Averaged,
            "mistakes",
            l1=1e-6,
            auto=lambda s: 100.0 / s.square,
        ),
        made(
            "tg",
            "truncated gradient (Langford et al., 2009)",
            Logistic,
            TruncatedGradient,
            Last,
            "every",
            gravity=1e-6,
            power=0.5,
            auto=lambda s: 50.0 / s.square,
        ),
        made(
            "fobos",
            "forward-backward splitting (Duchi and Singer, 2009)",
            Logistic,
            FOBOS,
            Last,
            "every",
            l1=1e-6,
            auto=lambda s: 50.0 / s.square,
        ),
        made(
            "ftrl",
            "FTRL-proximal (McMahan et al., 2013)",
            Logistic,
            FTRL,
            Last,
            "every",
            rate=1.0,
            l1=0.0,
        ),
        made(
            "cw",
            "confidence-weighted, variance form (Dredze et al., 2008)",
            Linear,
            ConfidenceWeighted,
            Last,
            "every",
        ),
        made(
            "arow",
            "adaptive regularisation of weights (Crammer et al., 2009)",
            Hinge,
            AROW,
            Last,
            "every",
        ),
    )
}
