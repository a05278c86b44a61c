"""Settings of every loss, rule and averaging, small enough to run the whole matrix."""

from __future__ import annotations

import math

from hopefear.averaging.averaged import Averaged
from hopefear.averaging.last import Last
from hopefear.averaging.voted import Voted
from hopefear.costs.hamming import Hamming
from hopefear.losses.exponential import Exponential
from hopefear.losses.hinge import Hinge
from hopefear.losses.hope_fear import HopeFear
from hopefear.losses.linear import Linear
from hopefear.losses.log import Log
from hopefear.losses.logistic import Logistic
from hopefear.losses.nbest_mira import NBestMIRA
from hopefear.losses.perceptron import Perceptron
from hopefear.losses.prediction_hinge import PredictionHinge
from hopefear.losses.ramp import Ramp
from hopefear.losses.risk import Risk
from hopefear.losses.sapo import SAPO
from hopefear.losses.squared_hinge import SquaredHinge
from hopefear.losses.structured_hinge import StructuredHinge
from hopefear.losses.weighted_log import WeightedLog
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
from hopefear.structures.classes import Binary, Multiclass
from hopefear_papers.theorems.observed import Observed

LOSSES = [
    Perceptron(),
    Hinge(),
    SquaredHinge(),
    Logistic(),
    Logistic(base=2),
    Exponential(limit=2),
    Linear(),
]

# Losses that look at more than gold and its best rival, for outputs that are made of labels.
SEARCHING = [
    Log(),
    SAPO(n=3),
    StructuredHinge(Hamming(0.7)),
    PredictionHinge(root=True),
    NBestMIRA(n=3, C=0.3, rounds=5000),
    Ramp(Hamming(0.7)),
    HopeFear(Hamming(0.7)),
    Risk(Hamming(), inverse_temperature=2.0),
    WeightedLog(Hamming(), inverse_temperature=2.0),
]
# Losses whose force is not one wherever it is not zero.
CURVED = ("SquaredHinge", "Logistic", "Exponential", "Log", "SAPO", "Risk", "WeightedLog")
# Their directions are not from one rival to gold, so the rule gets another margin than it needs.
LOOSE = ("StructuredHinge", "NBestMIRA", "Ramp", "HopeFear")
# One setting of every rule, for grids that are large in other ways.
FEW_RULES = ["sgd-exponential", "sgd-l1-l2", "pa-1", "adagrad-l1", "adagrad-rda-l1", "rda-elastic",
             "tg-every-4", "fobos-elastic", "ftrl-elastic", "cw", "arow"]  # fmt: skip

RULES = {
    "sgd": SGD(rate=0.3),
    "sgd-sqrt": SGD(rate=0.5, power=0.5),
    "sgd-exponential": SGD(rate=0.5, decay=0.7, period=20),
    "sgd-l2": SGD(rate=0.3, l2=0.2),
    "sgd-l1": SGD(rate=0.3, l1=0.0217),
    "sgd-l1-l2": SGD(rate=0.5, power=0.5, l1=0.0217, l2=0.1),
    "pa": PassiveAggressive(variant=0),
    "pa-1": PassiveAggressive(C=0.2, variant=1),
    "pa-2": PassiveAggressive(C=0.5, variant=2),
    "adagrad": AdaGrad(rate=0.3),
    "adagrad-l1": AdaGrad(rate=0.3, l1=0.0217),
    "adagrad-rda": AdaGradRDA(rate=0.5),
    "adagrad-rda-l1": AdaGradRDA(rate=0.5, l1=0.0217),
    "rda": RDA(rate=0.5),
    "rda-l1": RDA(rate=0.5, l1=0.0217),
    "rda-l2": RDA(rate=0.5, l2=0.1),
    "rda-elastic": RDA(rate=0.5, l1=0.0217, l2=0.1),
    "rda-strongly-convex": RDA(rate=math.inf, l1=0.01, l2=0.5),
    "tg": TruncatedGradient(rate=0.3, gravity=0.0217, every=1, power=0.1),
    "tg-every-4": TruncatedGradient(rate=0.5, gravity=0.0217, every=4, power=0.5),
    "tg-threshold": TruncatedGradient(rate=0.3, gravity=0.0513, every=3, threshold=0.25, power=0.1),
    "fobos": FOBOS(rate=0.5),
    "fobos-l1": FOBOS(rate=0.3, power=0.1, l1=0.0217),
    "fobos-l2": FOBOS(rate=0.5, l2=0.2),
    "fobos-elastic": FOBOS(rate=0.5, l1=0.0217, l2=0.1),
    "ftrl": FTRL(rate=0.5),
    "ftrl-elastic": FTRL(rate=0.5, beta=0.5, l1=0.1, l2=0.1),
    "cw": ConfidenceWeighted(phi=0.7),
    "arow": AROW(r=0.5),
}

AVERAGINGS = [Last(), Averaged(), Averaged(sparse_average=True), Voted(), Observed(Averaged())]

# Odd numbers: weights then never meet a penalty or each other exactly, where rounding would decide.
STRUCTURES = [Binary(12, bias=0.6180339887), Multiclass(12, 3)]


def hole(loss, rule, on) -> str | None:
    """Why these cannot work together, as a pattern of the message; None when they can."""
    name, force = type(rule).__name__, type(loss).__name__
    if name == "ConfidenceWeighted" and force in CURVED:
        return f"ConfidenceWeighted and {force}: .* needs a loss of force one; use .* AROW"
    if name in ("PassiveAggressive", "AROW") and force in ("Perceptron", "Linear"):
        return f"{name} and {force}: steps are in proportion to the loss, .*; use Hinge"
    if force == "Linear" and on == "all" and name != "ConfidenceWeighted":
        return f"{name} and Linear: the loss has no minimum, .*; use Hinge, or update_on='mistakes'"
    return None


def natural_loss(rule):
    """The loss a rule was published with."""
    names = {"ConfidenceWeighted": Linear(), "PassiveAggressive": Hinge(), "AROW": Hinge()}
    return names.get(type(rule).__name__, Logistic())
