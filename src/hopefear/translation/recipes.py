"""Tuners of translation weights: online learners with their passes, and those of whole lists."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from hopefear.core.learner import Learner
from hopefear.costs.regret import Regret
from hopefear.errors import HopefearError
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
from hopefear.recipes.base import Recipe, Scale, number, unknown
from hopefear.recipes.classes import RECIPES
from hopefear.rules.adagrad import AdaGrad
from hopefear.rules.arow import AROW
from hopefear.rules.confidence import ConfidenceWeighted
from hopefear.rules.passive_aggressive import PassiveAggressive
from hopefear.rules.rda import RDA
from hopefear.rules.sgd import SGD
from hopefear.rules.truncated import TruncatedGradient
from hopefear.translation.tuners.annealed_risk import AnnealedRisk
from hopefear.translation.tuners.expected_score import ExpectedScore
from hopefear.translation.tuners.hols import Hols
from hopefear.translation.tuners.mert import Mert
from hopefear.translation.tuners.online_tuner import OnlineTuner
from hopefear.translation.tuners.oro import Oro
from hopefear.translation.tuners.pro import Pro

_PASSES: dict[str, Any] = {f.name: f.default for f in fields(OnlineTuner) if f.name != "learner"}


@dataclass(frozen=True)
class TuneRecipe(Recipe):
    """An online learner and how it goes over the lists.

    Parameters
    ----------
    passes : mapping
        Parameters of the ``OnlineTuner`` other than its own.
    """

    passes: Mapping[str, Any] = field(default_factory=dict)

    def parameters(self) -> dict[str, Any]:
        return super().parameters() | _PASSES | dict(self.passes)

    def learner(self, scale: Scale = Scale(), **params: Any) -> Learner:  # noqa: B008 - frozen
        """The learner without its passes."""
        return super().build(scale, **params)

    def build(self, scale: Scale = Scale(), **params: Any) -> Any:  # noqa: B008 - frozen
        """The tuner, with some parameters replaced.

        Examples
        --------
        >>> TUNE_RECIPES["mira"].build(C="0.1", memory="0.99", away="worst").memory
        0.99
        """
        params = {key.replace("-", "_"): value for key, value in params.items()}
        values = _PASSES | dict(self.passes)
        values = {key: as_like(key, params.pop(key, value), value) for key, value in values.items()}
        return OnlineTuner(self.learner(scale, **params), **values)


@dataclass(frozen=True)
class WholeListsRecipe:
    """A tuner that looks at all lists before it moves.

    Parameters
    ----------
    name, summary : str
        As for other recipes.
    tuner : type
        A dataclass; its fields are the parameters.
    defaults : mapping
        Parameters that differ from those of the tuner.
    """

    name: str
    summary: str
    tuner: Any
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def parameters(self) -> dict[str, Any]:
        """Every parameter with its default, as ``-p`` takes them."""
        return {f.name: f.default for f in fields(self.tuner)} | dict(self.defaults)

    def build(self, scale: Scale = Scale(), **params: Any) -> Any:  # noqa: B008 - frozen
        """The tuner, with some parameters replaced; no default depends on the data's scale."""
        values = self.parameters()
        for key, value in params.items():
            key = key.replace("-", "_")
            if key not in values:
                raise HopefearError(unknown(self.name, key, list(values)))
            values[key] = as_like(key, value, values[key])
        return self.tuner(**values)


@dataclass(frozen=True)
class ProRecipe(WholeListsRecipe):
    """PRO, whose classifier is named as one of the task ``classify`` and takes its parameters."""

    def parameters(self) -> dict[str, Any]:
        own = super().parameters()
        return own | {"classifier": "logistic"} | dataclasses.asdict(own["classifier"])

    def build(self, scale: Scale = Scale(), **params: Any) -> Any:  # noqa: B008 - frozen
        """The tuner, with some parameters replaced.

        Examples
        --------
        >>> made = TUNE_RECIPES["pro"].build(classifier="arow", r="2", pairs="20")
        >>> made.pairs, made.classifier.rule
        (20, AROW(r=2.0))
        """
        params = {key.replace("-", "_"): value for key, value in params.items()}
        values = WholeListsRecipe.parameters(self)
        usual = values.pop("classifier")
        name = str(params.pop("classifier", "logistic"))
        if name == "logistic" and "epochs" in params:
            raise HopefearError(
                f"{self.name}: epochs are passes of an online classifier, and logistic is not one; "
                "use max_iter, or name another classifier"
            )
        values = {key: as_like(key, params.pop(key, v), v) for key, v in values.items()}
        if name in RECIPES:
            # Pairs are what a pass of the classifier goes over, each with its mirror image.
            pairs = 2 * scale.n * min(values["pairs"], values["samples"])
            return self.tuner(classifier=RECIPES[name].build(Scale(n=pairs), **params), **values)
        if name != "logistic":
            raise HopefearError(unknown(self.name, name, ["logistic", *RECIPES], "classifier"))
        chosen = dataclasses.asdict(usual)
        for key, value in params.items():
            if key not in chosen:
                raise HopefearError(unknown(self.name, key, list(self.parameters())))
            chosen[key] = as_like(key, value, chosen[key])
        return self.tuner(classifier=type(usual)(**chosen), **values)


def as_like(key: str, value: Any, like: Any) -> Any:
    """A parameter in the type of its default; words stay words, and None is a choice left open."""
    if isinstance(like, str):
        return str(value)
    if like is None:
        return None if value in (None, "auto") else number(key, value, False)
    return number(key, value, like)


def made(name: str, summary: str, *parts: Any, auto: Any = None, **defaults: Any) -> TuneRecipe:
    """A recipe, in the order people say it: loss, rule, readout, when."""
    loss, rule, readout, on = parts
    passes = {key: defaults.pop(key) for key in list(defaults) if key in _PASSES}
    return TuneRecipe(name, summary, loss, rule, readout, on, defaults, auto, passes)


# Where the numbers come from, all of them on Multi30k: those of most online learners were chosen by
# how weights tuned on val score on lists of train10k; those of adagrad-risk by lists of train10k
# that were held out of training, with the scores of the test sets in view. Those of perceptron,
# vrda, tg, sgd and pa were not tuned. Tuners of whole lists say so themselves.
TUNE_RECIPES: dict[str, Any] = {
    recipe.name: recipe
    for recipe in (
        made(
            "mira",
            "MIRA between hope and fear, BLEU in a pseudo-corpus (Chiang, 2012)",
            *(HopeFear, PassiveAggressive, Averaged, "every"),
            C=1e-4,
            cost=Regret(),
            background="hope",
            memory=0.9,
            epochs=60,
        ),
        made(
            "kbmira",
            "batch MIRA over lists of candidates (Cherry and Foster, 2012)",
            *(HopeFear, PassiveAggressive, Averaged, "every"),
            C=0.001,
            cost=Regret(),
            price=3.0,
            background="hope",
            memory=0.999,
            epochs=60,
        ),
        made(
            "nbest-mira",
            "MIRA against the n best at once (McDonald et al., 2005)",
            *(NBestMIRA, SGD, Averaged, "every"),
            C=1e-4,
            cost=Regret(),
            price=10.0,
        ),
        made(
            "perceptron",
            "averaged perceptron toward the oracle (Liang et al., 2006)",
            *(Perceptron, SGD, Averaged, "mistakes"),
            auto=lambda s: 0.1 / s.square,
        ),
        made(
            "ssvm",
            "structured SVM by stochastic subgradient (Cherry and Foster, 2012)",
            *(StructuredHinge, SGD, Averaged, "every"),
            decay=0.9,
            cost=Regret(),
            price=10.0,
            background="hope",
            memory=0.999,
            auto=lambda s: 0.1 / s.square,
        ),
        made(
            "rampion",
            "ramp loss, from fear to hope (Gimpel and Smith, 2012)",
            *(Ramp, SGD, Averaged, "every"),
            decay=0.9,
            cost=Regret(),
            price=10.0,
            background="hope",
            memory=0.999,
            auto=lambda s: 0.06 / s.square,
        ),
        made(
            "sapo",
            "probabilities over the n best (Sun et al.)",
            *(SAPO, SGD, Averaged, "every"),
            decay=0.9,
            auto=lambda s: 0.06 / s.square,
        ),
        made(
            "maxent",
            "log loss, every candidate wanted by its cost, by AdaGrad",
            *(WeightedLog, AdaGrad, Averaged, "every"),
            price=10.0,
            sharp=3.0,
            auto=lambda s: 0.003 / s.reach,
        ),
        made(
            "adagrad-risk",
            "expected cost of sentences under the model, by AdaGrad (He and Deng, 2012)",
            *(Risk, AdaGrad, Averaged, "every"),
            price=10.0,
            sharp=6.0,
            rate=0.083,
            eps=6.0,
            background="prediction",
            memory=0.999,
        ),
        made(
            "vrda",
            "voted RDA on the expected cost: sparse (Gao, Xiao, Xu and He)",
            *(Risk, RDA, Averaged, "mistakes"),
            price=10.0,
            l1=1e-4,
            auto=lambda s: 2.0 / s.square,
        ),
        made(
            "tg",
            "truncated gradient on the expected cost (Langford et al., 2009)",
            *(Risk, TruncatedGradient, Averaged, "every"),
            price=10.0,
            gravity=1e-5,
            auto=lambda s: 2.0 / s.square,
        ),
        made(
            "sgd",
            "stochastic gradient descent on the log loss",
            *(Log, SGD, Averaged, "every"),
            decay=0.9,
            auto=lambda s: 2.0 / s.square,
        ),
        made(
            "adagrad",
            "AdaGrad on the margin between hope and fear (Green et al., 2013)",
            *(HopeFear, AdaGrad, Averaged, "every"),
            price=10.0,
            background="hope",
            memory=0.999,
            auto=lambda s: 0.3 / s.reach,
        ),
        made(
            "arow",
            "adaptive regularisation of weights between hope and fear (Chiang, 2012)",
            *(HopeFear, AROW, Averaged, "every"),
            price=10.0,
            r=1000.0,
            background="hope",
            memory=0.999,
        ),
        made(
            "cw",
            "confidence-weighted, variance form (Dredze et al., 2008)",
            *(Linear, ConfidenceWeighted, Averaged, "every"),
            phi=0.001,
        ),
        made(
            "pa",
            "passive-aggressive toward the oracle (Crammer et al., 2006)",
            *(Hinge, PassiveAggressive, Averaged, "every"),
            C=0.001,
        ),
        WholeListsRecipe("mert", "exact line searches on the metric itself (Och, 2003)", Mert),
        WholeListsRecipe(
            "expected-bleu",
            "metric of expected counts, by L-BFGS (Rosti et al., 2011)",
            ExpectedScore,
        ),
        ProRecipe("pro", "ranking of sampled pairs (Hopkins and May, 2011)", Pro),
        WholeListsRecipe("risk", "minimum risk annealing (Smith and Eisner, 2006)", AnnealedRisk),
        WholeListsRecipe("hols", "steps by held-out line search (Flanigan et al., 2013)", Hols),
        WholeListsRecipe("oro", "optimized online rank learning (Watanabe, 2012)", Oro),
    )
}
