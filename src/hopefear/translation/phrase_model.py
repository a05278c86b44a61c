"""The discriminative phrase model (Gao, Xiao, Xu and He, section 5): a weight for phrase pairs.

It is learned beside a baseline whose score is a fixed part of every candidate's, and then becomes
one more feature of the decoder, which is tuned with the others: two calls,
`train_phrase_model` and `add_phrase_model`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hopefear.averaging.averaged import Averaged
from hopefear.core.checks import check_at_least
from hopefear.core.learner import Learner
from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.lists.dataset import ListDataset, fixed_scores
from hopefear.errors import HopefearError
from hopefear.losses.hinge import Hinge
from hopefear.losses.log import Log
from hopefear.losses.logistic import Logistic
from hopefear.losses.risk import Risk
from hopefear.metrics.lists import ListMetric
from hopefear.rules.rda import RDA
from hopefear.rules.sgd import SGD
from hopefear.rules.truncated import TruncatedGradient
from hopefear.structures.nbest import NBest
from hopefear.training.online import OnlineTrainer
from hopefear.training.passes import Passes
from hopefear.translation.features import learned
from hopefear.translation.lists import tuning_metric
from hopefear.translation.scoring import scores, with_scores, without_scores
from hopefear.translation.task import check_problem, check_seeds, judge_of, start_weights, tune
from hopefear.translation.tuners.problem import Listener, Round, TuningProblem, follow
from hopefear.translation.weights import Weights

LOSSES: dict[str, Any] = {"risk": Risk, "hinge": Hinge, "logistic": Logistic, "log": Log}
RULES = ("vrda", "sgd", "tg")
KEPT = ("average", "support", "last")
NAME = "DPTM0"
# Steps of the losses other than the risk, whose directions are short; best on development lists
# of the experiment with inverse_temperature = 1.
_RATES = {"vrda": 0.03, "sgd": 0.001, "tg": 0.001}


def phrase_data(
    lists: CandidateLists,
    baseline: Weights | None = None,
    *,
    inverse_temperature: float = 1.0,
    min_count: int = 1,
    metric: str | ListMetric = "bleu",
) -> ListDataset:
    """Lists in their phrase pairs, ``inverse_temperature`` times the baseline's score fixed.

    Parameters
    ----------
    lists : CandidateLists
        Candidates with phrase pairs and counts of the metric.
    baseline : Weights, optional
        Gives the score b; without them it is the decoder's own.
    inverse_temperature, min_count, metric
        As in `train_phrase_model`.
    """
    judge = judge_of(lists, metric)
    _pairs(lists)
    if not 0.0 < inverse_temperature < math.inf:
        raise HopefearError(f"inverse_temperature is a number above 0, not {inverse_temperature:g}")
    return learned(
        lists, judge, ("phrases",), min_count, _offsets(lists, baseline, inverse_temperature)
    )


def phrase_learner(
    loss: str = "risk",
    rule: str = "vrda",
    *,
    rate: float | None = None,
    l1: float = 0.0,
    every: int = 10,
    power: float = 0.0,
) -> Learner:
    """The learner of a phrase model; ``every`` is the K of the truncated gradient.

    Its rate is ``rate / k**power`` at the k-th list: constant, or with 0.5 that of eq. 12.

    Examples
    --------
    >>> phrase_learner("hinge", "sgd", rate=0.1).signature()[:40]
    'loss:hinge(asked=1)|rule:sgd(rate=0.1,po'
    """
    for name, value, choices in (("loss", loss, LOSSES), ("rule", rule, RULES)):
        if value not in choices:
            raise HopefearError(f"a phrase model has no {name} {value!r}: {', '.join(choices)}")
    default = 1.0 if loss == "risk" else _RATES[rule]
    step = default if rate is None else float(rate)
    step_rule: Any = {
        "vrda": lambda: RDA(rate=step, l1=l1),
        "sgd": lambda: SGD(rate=step, l1=l1),
        "tg": lambda: TruncatedGradient(step, l1, every, power=power),
    }[rule]()
    return Learner(LOSSES[loss](), step_rule, Averaged(), "mistakes" if rule == "vrda" else "all")


def kept_weights(trainer: OnlineTrainer, kept: str) -> np.ndarray:
    """Returns the weights that ``kept`` selects: see `train_phrase_model`."""
    if kept == "last":
        return trainer.weights().astype(np.float64)
    mean = trainer.average().astype(np.float64)
    return mean if kept == "average" else np.where(trainer.weights() != 0.0, mean, 0.0)


def phrase_passes(
    data: ListDataset, learner: Learner, epochs: int, seed: int = 1
) -> Iterator[tuple[int, OnlineTrainer]]:
    """Learns; yields the number of the epoch and the trainer after each epoch."""
    trainer = OnlineTrainer(NBest(data.features.size), learner)
    for epoch in trainer.learn_passes(Passes(data, seed), epochs):
        yield epoch, trainer


def train_phrase_model(
    train: CandidateLists,
    baseline: Weights | None = None,
    *,
    loss: str = "risk",
    rule: str = "vrda",
    rate: float | None = None,
    l1: float = 0.0,
    epochs: int = 5,
    inverse_temperature: float = 1.0,
    min_count: int = 1,
    kept: str = "average",
    dev: CandidateLists | None = None,
    metric: str | ListMetric = "bleu",
    seed: int = 1,
    on_event: Sequence[Listener] = (),
) -> Weights:
    """Learn a weight for every phrase pair, beside a baseline.

    ``P(y) = softmax(inverse_temperature * (w . phi(y) + b(y)))``, phi_i is 1 where y has pair i

    Parameters
    ----------
    train : CandidateLists
        Lists with phrase pairs, of sentences that the decoder's own phrase table has not seen.
    baseline : Weights, optional
        Weights of the baseline, whose score is b; without them b is the decoder's own score.
    loss : {"risk", "hinge", "logistic", "log"}
        ``risk`` is minus the expected sentence BLEU (eq. 21). Its gradient in the paper has a slip
        in the sign; see `hopefear.losses.risk`.
    rule : {"vrda", "sgd", "tg"}
        Voted dual averaging (on mistakes), gradient steps, or truncated gradient.
    rate : float, optional
        Length of steps. Larger learns faster and less evenly.
    l1 : float
        Larger gives fewer weights; for ``tg`` it is the gravity.
    epochs : int
        Passes over the lists.
    inverse_temperature : float
        Scale of all scores before they become probabilities or margins; 1 in the paper. Decoders'
        weights sum to about 1, so that their scores hardly tell candidates apart; larger trusts
        the baseline more.
    min_count : int
        Pairs that distinguish candidates in fewer lists get no weight.
    kept : {"average", "support", "last"}
        Average of the weights, the average where the last weights are not zero (sparser), or the
        last weights. Votes are not offered: a feature of a decoder is one weight for each pair.
    dev : CandidateLists, optional
        Held-out lists: the best epoch is kept, by the score of ``w . phi + b``. Without them the
        last.
    metric : str or ListMetric
        The metric behind the counts.
    seed : int
        Of the order of lists.
    on_event : sequence of callables
        Each gets an event after every epoch.

    Returns
    -------
    Weights
        Of phrase pairs only.
    """
    judge = tuning_metric(metric)
    if kept not in KEPT:
        raise HopefearError(f"kept is one of {', '.join(KEPT)}, not {kept!r}")
    check_at_least("epochs", epochs, 1)
    check_seeds([seed])
    data = phrase_data(
        train, baseline, inverse_temperature=inverse_temperature, min_count=min_count, metric=judge
    )
    dev_data = None
    if dev is not None:
        judge_of(dev, judge)
        _pairs(dev)
        dev_data = data.features.encode(dev, judge, _offsets(dev, baseline, inverse_temperature))
    problem = TuningProblem(data, judge, np.zeros(data.features.size), dev_data)
    check_problem(problem)
    learner = phrase_learner(loss, rule, rate=rate, l1=l1)
    passes = phrase_passes(data, learner, epochs, seed)
    rounds = (Round(kept_weights(trainer, kept)) for _, trainer in passes)
    tuned = follow(rounds, problem, on_event, of=epochs, keep="auto")
    options = {"features": "phrases", "min_count": min_count}
    metadata = {
        "learner": f"phrase model ({rule}, {loss})",
        "signature": learner.signature(
            **options,
            inverse_temperature=f"{inverse_temperature:g}",
            kept=kept,
            epochs=tuned.best_epoch,
            seed=seed,
        ),
        "metric": judge.signature_for(train.n_references),
        "data": {
            "source": os.path.basename(train.source),
            "digest": data.digest,
            "lists": len(train),
            "candidates": train.n_candidates,
            "features": data.features.size,
        },
    }
    # In the baseline's unit again, so that 1 is the weight that the model was learned with.
    return Weights.of(data.features, tuned.weights / inverse_temperature, metadata)


def add_phrase_model(
    dev: CandidateLists,
    model: Weights,
    learner: str = "mert",
    params: Mapping[str, Any] | None = None,
    *,
    name: str = NAME,
    start: str | Weights = "auto",
    metric: str | ListMetric = "bleu",
    seeds: Sequence[int] = (1,),
    on_event: Sequence[Listener] = (),
) -> Weights:
    """Tune the dense features and the score of a phrase model together.

    Parameters
    ----------
    dev : CandidateLists
        Lists with phrase pairs that the model was not learned from.
    model : Weights
        As `train_phrase_model` gives them.
    learner, params, metric, seeds, on_event
        As in :func:`hopefear.translation.task.tune`; only dense features are tuned.
    name : str
        Of the feature that the model becomes.
    start : str or Weights
        Weights of the other dense features to begin with; the model begins with 1.

    Returns
    -------
    Weights
        Of the dense features and of phrase pairs, the latter times the weight of the model.
    """
    _pairs(dev)
    begin = start_weights(dev, start)
    joined = Weights((*begin.layout, (name, 1)), np.append(begin.dense, 1.0))
    tuning = tune(
        with_scores(dev, {name: model}),
        learner,
        params,
        metric=metric,
        start=joined,
        features=("dense",),
        seeds=seeds,
        on_event=on_event,
    )
    metadata = {
        **tuning.weights.about,
        "weight of the phrase model": float(tuning.weights.dense[-1]),
    }
    return replace(without_scores(tuning.weights, {name: model}), about=metadata)


def _pairs(lists: CandidateLists) -> Any:
    if lists.phrases is None:
        raise HopefearError(
            f"{lists.source}: phrase pairs were not read; give the sentences that were translated "
            "(source)"
        )
    return lists.phrases


def _offsets(
    lists: CandidateLists, baseline: Weights | None, inverse_temperature: float
) -> np.ndarray:
    points = lists.scores if baseline is None else scores(lists, baseline)
    return inverse_temperature * fixed_scores(np.asarray(points, np.float64), lists.starts)
