"""The task ``tune``: lists of translations and the name of a learner in, weights out."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hopefear.core.arrays import frozen
from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.lists.dataset import ListDataset
from hopefear.errors import HopefearError
from hopefear.metrics.lists import ListMetric, ListScores, compare_lists, evaluate_lists
from hopefear.recipes.scales import scale_of
from hopefear.tasks import TASKS, recipe
from hopefear.translation.features import (
    TuningFeatures,
    check_start,
    chosen_features,
    fingerprint,
    kinds,
    learned,
    signed_groups,
    summed_weights,
    tuned_lists,
    with_earlier,
)
from hopefear.translation.lists import tuning_metric
from hopefear.translation.scoring import best, scores
from hopefear.translation.tuners.corpus import oracle_choice
from hopefear.translation.tuners.problem import Event, Listener, Tuned, TuningProblem, tell
from hopefear.translation.weights import Weights

DEFAULT_LEARNER = TASKS["tune"].learner


@dataclass(frozen=True)
class SeedResult:
    """Result of one seed."""

    seed: int
    train: float
    dev: float | None
    tuned: Tuned = field(repr=False)


@dataclass(frozen=True)
class Tuning:
    """Weights that were found, and what they are worth.

    Parameters
    ----------
    weights, start : Weights
        What was found, and what tuning began with.
    metric : ListMetric
        Behind all scores.
    before, after, oracle : mapping
        Scores of choices by set of lists (``train``, ``dev``): under the weights at the start and
        at the end, and of the best choice there is.
    runs : tuple of Run
        One for each seed.
    chosen : Run
        The one the weights are from.
    signature : str
        Exactly how they were found.
    features : TuningFeatures
        What was tuned; those whose weight is 0 are not among the weights by name.
    """

    weights: Weights
    start: Weights
    metric: ListMetric
    before: Mapping[str, float]
    after: Mapping[str, float]
    oracle: Mapping[str, float]
    runs: tuple[SeedResult, ...]
    chosen: SeedResult
    signature: str
    features: TuningFeatures = field(repr=False)

    @property
    def history(self) -> list[Event]:
        """Round by round, of the run that was chosen."""
        return self.chosen.tuned.history


def tune(
    lists: CandidateLists,
    learner: str = DEFAULT_LEARNER,
    params: Mapping[str, Any] | None = None,
    *,
    metric: str | ListMetric = "bleu",
    start: str | Weights = "auto",
    fixed: Weights | None = None,
    features: Sequence[str] | None = None,
    min_count: int = 1,
    dev: CandidateLists | None = None,
    held_out: float = 0.0,
    seeds: Sequence[int] = (1,),
    on_event: Sequence[Listener] = (),
    elsewhere: Callable[..., Iterable[SeedResult]] | None = None,
) -> Tuning:
    """Find weights under which the best candidates score high.

    Parameters
    ----------
    lists : CandidateLists
        Candidates with counts of the metric (:func:`hopefear.translation.lists.read`).
    learner, params
        Name of a recipe of the task ``tune`` and the parameters to replace.
    metric : str or ListMetric
        The metric behind the counts.
    start : str or Weights
        See :func:`hopefear.translation.task.start_weights`. Sparse features and phrase pairs
        that the lists say nothing about keep the weights that they have there.
    fixed : Weights, optional
        Weights whose score is a fixed part of every candidate's. Dense features that they know get
        no others; what is tuned starts from 0, and of sparse names that are in both the weights
        add up. Steps are taken in the unit of the fixed dense weights, whose sizes may have any
        sum.
    features : sequence of {"dense", "sparse", "phrases", "consensus", "ngrams"}, optional
        What gets weights: all that the lists have, unless said; without ``fixed`` the dense ones
        must be among them, if there are any. The last two are made from the
        words of candidates, and go with the dense and with the sparse ones: see
        :mod:`hopefear.translation.text_features`.
    min_count : int
        Sparse features and phrase pairs that distinguish candidates in fewer lists are left out.
    dev : CandidateLists, optional
        Held-out lists: the best round and the best seed are those that score best on them.
    held_out : float
        Without ``dev``, the share of the lists to hold out, at random by the first seed.
    seeds : sequence of int
        Tune once with each, and keep the best.
    on_event : sequence of callables
        Each gets every event as it happens.
    elsewhere : callable, optional
        Makes the runs of all seeds side by side, as ``map`` of ``hopefear.distributed.Runs`` does,
        with the same weights. Events are then told seed by seed, each once its run has ended.

    Examples
    --------
    >>> from hopefear.translation.examples import tiny_lists
    >>> result = tune(tiny_lists(), "perceptron", {"epochs": 2}, start="uniform")
    >>> result.before["train"] <= result.after["train"] <= result.oracle["train"]
    True
    """
    judge = judge_of(lists, metric)
    seeds = check_seeds(seeds)
    lists, dev = split(lists, dev, held_out, seeds[0])
    groups = chosen_features(lists, features, fixed)
    unit, unit_fixed = 1.0, fixed
    if fixed is not None and fixed.layout:
        if isinstance(start, Weights) or start != "auto":
            raise HopefearError(
                "weights to start from, and fixed ones of the dense features: what is tuned beside "
                "those starts from 0; leave one of the two out"
            )
        unit = float(np.abs(fixed.dense).sum()) or 1.0
        unit_fixed = fixed.scaled(1.0 / unit)
    plain, (lists, offsets) = lists, tuned_lists(lists, groups, unit_fixed)
    data = learned(lists, judge, kinds(groups), min_count, offsets)
    begin = Weights((), np.zeros(0))
    if isinstance(start, Weights):
        check_start(start, groups, plain)
    if "dense" in kinds(groups):
        begin = begun(plain, lists, start, fixed)
    vector = begin.on(data.features)
    dev_data = None
    if dev is not None:
        dev, offsets = tuned_lists(dev, groups, unit_fixed)
        dev_data = data.features.encode(dev, judge, offsets)
    problem = TuningProblem(data, judge, vector, dev_data)
    check_problem(problem)
    tuner = built(learner, data, judge, params or {})
    before = problem.report(vector)
    several = len(seeds) > 1
    if elsewhere is None:
        runs = tuple(one_run(tuner, problem, seed, on_event, several) for seed in seeds)
    else:
        runs = tuple(
            told_again(run, on_event, several)
            for run in elsewhere(silent_run, (tuner, problem), seeds)
        )
    winner = max(runs, key=lambda run: worth(run, judge))
    check_collapse(problem, winner.tuned.weights, winner.train, before)
    main = judge.main
    after = {"train": winner.train} | ({} if winner.dev is None else {"dev": winner.dev})
    signature = tuner.signature(
        start="given" if isinstance(start, Weights) else begin.about.get("start", "zero"),
        features=signed_groups(groups, fixed),
        min_count=min_count,
        cost=judge.cost_signature().removeprefix("cost:"),
        **({} if fixed is None else {"fixed": fingerprint(fixed)}),
        **({} if dev_data is None else {"dev": dev_data.digest[:8]}),
        seed=winner.seed,
    )
    oracle = {"train": corpus_oracle(lists, judge)}
    if dev is not None:
        oracle["dev"] = corpus_oracle(dev, judge)
    metadata = {
        "learner": learner,
        "parameters": tuner.parameters(),
        "signature": signature,
        "metric": judge.signature_for(lists.n_references),
        "seed": winner.seed,
        "data": {
            "source": os.path.basename(lists.source),
            "digest": data.digest,
            "lists": len(lists),
            "candidates": lists.n_candidates,
            "features": data.features.size,
        },
        "scores": after,
    }
    weights = Weights.of(data.features, unit * winner.tuned.weights, metadata)
    weights = with_earlier(weights, begin, data.features, lists, min_count)
    return Tuning(
        weights if fixed is None else summed_weights(fixed, weights),
        begin,
        judge,
        {name: value[main] for name, value in before.items()},
        after,
        oracle,
        runs,
        winner,
        signature,
        data.features,
    )


def begun(
    plain: CandidateLists, lists: CandidateLists, start: str | Weights, fixed: Weights | None = None
) -> Weights:
    """Makes the first weights; 0 for computed features, and beside fixed weights."""
    if fixed is not None and fixed.layout:
        return Weights(lists.layout, np.zeros(lists.dense.shape[1]))
    gained = lists.layout[len(plain.layout) :]
    if isinstance(start, Weights) and {name for name, _ in gained} & dict(start.layout).keys():
        return start_weights(lists, start)
    begin = start_weights(plain, start)
    none = np.zeros(sum(width for _, width in gained))
    return replace(begin, layout=lists.layout, dense=np.concatenate([begin.dense, none]))


def built(learner: str, data: ListDataset, metric: ListMetric, params: Mapping[str, Any]) -> Any:
    """The tuner of that name; by default only BLEU, which needs one, gets a pseudo-corpus."""
    entry = recipe(learner, "tune")
    if metric.name != "bleu" and "background" in entry.parameters():
        params = {"background": "none", **params}
    return entry.build(scale_of(data), **params)


def one_run(
    tuner: Any, problem: TuningProblem, seed: int, on_event: Sequence[Listener], several: bool
) -> SeedResult:
    """Tunes with one seed; its number is in events where there are several."""
    listeners = _tagged(on_event, seed) if several else on_event
    tuned = tuner.tune(problem, seed=seed, on_event=listeners)
    if not np.isfinite(tuned.weights).all():
        return SeedResult(seed, math.nan, None if problem.dev is None else math.nan, tuned)
    report = problem.report(tuned.weights)
    main = problem.metric.main
    return SeedResult(seed, report["train"][main], report.get("dev", {}).get(main), tuned)


def silent_run(shared: tuple[Any, TuningProblem], seed: int) -> SeedResult:
    """Tunes with one seed without events; (tuner, problem) are shared by all seeds."""
    return one_run(*shared, seed, (), False)


def told_again(run: SeedResult, on_event: Sequence[Listener], several: bool) -> SeedResult:
    """Sends the events of a run after it has ended."""
    for event in run.tuned.history:
        tell(_tagged(on_event, run.seed) if several else on_event, event)
    return run


def _tagged(listeners: Sequence[Listener], seed: int) -> list[Listener]:
    def tagged(listener: Listener) -> Listener:
        return lambda event: listener({**event, "seed": seed})

    return [tagged(listener) for listener in listeners]


def worth(run: SeedResult, metric: ListMetric) -> float:
    """Returns the score of a run on held-out lists, else on its own; higher is better."""
    score = run.train if run.dev is None else run.dev
    if not math.isfinite(score):
        return -math.inf
    return score if metric.higher else -score


def split(
    lists: CandidateLists, dev: CandidateLists | None, held_out: float, seed: int
) -> tuple[CandidateLists, CandidateLists | None]:
    """Lists to tune on and lists to hold out."""
    if not 0.0 <= held_out < 1.0:
        raise HopefearError(f"held_out is a share of the lists, from 0 to 1, not {held_out:g}")
    if dev is not None or held_out == 0.0:
        if dev is not None and held_out:
            raise HopefearError("give dev lists or held_out, not both")
        return lists, dev
    n = round(held_out * len(lists))
    if not 0 < n < len(lists):
        raise HopefearError(
            f"held_out={held_out:g} of {len(lists)} lists leaves none on one side; use more lists"
        )
    order = np.random.default_rng(seed).permutation(len(lists))
    return lists.take(np.sort(order[n:])), lists.take(np.sort(order[:n]))


def score_of(lists: CandidateLists, metric: ListMetric, choice: np.ndarray) -> float:
    """The metric's main score of one candidate of each list, given by their positions."""
    assert lists.counts is not None
    sums = lists.counts[lists.starts[:-1] + choice].sum(axis=0)
    return float(metric.scores(sums)[metric.main])


MOST_SEED = 2**32 - 1
# A share of the score at the start below which weights count as collapsed.
_COLLAPSED = 0.5


class CollapseError(HopefearError):
    """Tuning ended in weights that are worth nothing."""


def judge_of(lists: CandidateLists, metric: str | ListMetric) -> ListMetric:
    """The metric meant; HopefearError unless the lists were compared with references by it."""
    judge = tuning_metric(metric)
    if lists.counts is None or lists.metric != judge.name:
        has = f"counts of {lists.metric}" if lists.counts is not None else "no counts"
        raise HopefearError(
            f"{lists.source} has {has}, and tuning is by {judge.name}; read the lists with "
            f"metric={judge.name!r} and references"
        )
    return judge


def check_seeds(seeds: Any) -> list[int]:
    """The seeds as numbers; HopefearError unless there are some, whole and of 32 bits.

    >>> check_seeds(range(2))
    [0, 1]
    """
    numbers = list(seeds) if isinstance(seeds, Iterable) and not isinstance(seeds, str) else None
    if not numbers:
        raise HopefearError(f"seeds are some whole numbers, such as (1, 2, 3), not {seeds!r:.60}")
    for seed in numbers:
        is_integer = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
        if not is_integer or not 0 <= seed <= MOST_SEED:
            raise HopefearError(
                f"a seed is a whole number from 0 to {MOST_SEED}, not {seed!r:.60}; choose another"
            )
    return [int(seed) for seed in numbers]


def check_problem(problem: TuningProblem) -> None:
    """Tuning needs a choice that matters, and features."""
    data: ListDataset = problem.data
    if not data.features.size:
        raise HopefearError(
            f"{data.source}: no feature is left to tune; keep rarer ones (min_count), or name "
            "other features"
        )
    costs, first_candidates = data.rows.costs, data.rows.starts[:-1]
    differ = np.maximum.reduceat(costs, first_candidates) > np.minimum.reduceat(
        costs, first_candidates
    )
    if not len(data.rows.values):
        raise HopefearError(
            f"{data.source}: all candidates of a list have the same features, so that weights "
            "choose nothing; tune other features, or use lists with more candidates"
        )
    if not differ.any():
        raise HopefearError(
            f"{data.source}: no candidate of a list is better than the others by "
            f"{problem.metric.name}; see whether the references are those of these lists, or use "
            "lists with more candidates"
        )


def check_collapse(
    problem: TuningProblem, weights: np.ndarray, ended: float, before: Event
) -> None:
    """CollapseError where the weights found are no weights, or worth next to nothing.

    Parameters
    ----------
    problem : TuningProblem
        What was tuned on.
    weights : float64 array
        What was found.
    ended : float
        Their score on the tuning lists.
    before : mapping
        Scores of the weights at the start, as `TuningProblem.report` gives them.
    """
    main, higher = problem.metric.main, problem.metric.higher
    began = before["train"][main]
    reason = ""
    remedy = "shorter steps (a smaller C or rate), another start or another learner may help"
    if not np.isfinite(weights).all():
        reason = "some weights are not finite"
    elif not weights.any() and not problem.data.rows.offsets.any():
        reason = "all weights are 0"
    elif not math.isfinite(ended):
        reason = f"{main} is not finite"
    elif higher and began <= 0.0 and ended <= 0.0:
        reason = f"{main} is 0, as it was at the start"
        remedy = "see whether the references are those of these lists, and longer than three words"
    elif higher and ended <= _COLLAPSED * began:
        reason = f"{main} fell from {began:.2f} to {ended:.2f}"
    elif not higher and ended >= began / _COLLAPSED + 1.0:  # the 1 is for starts next to 0
        reason = f"{main} rose from {began:.2f} to {ended:.2f}, and less is better"
    if reason:
        raise CollapseError(f"tuning collapsed: {reason}, and nothing is kept; {remedy}")


STARTS = ("auto", "decoder", "moses", "uniform")
# What Moses gives an untuned system, by the beginning of a feature's name.
_MOSES = {
    "WordPenalty": -1.0,
    "PhrasePenalty": 0.2,
    "TranslationModel": 0.2,
    "PhraseDictionary": 0.2,
    "LexicalReordering": 0.3,
    "Distortion": 0.3,
    "LM": 0.5,
    "KENLM": 0.5,
    "SRILM": 0.5,
    "Generation": 0.3,
}
# Share of the variance of decoder scores that weights must explain to pass for the decoder's.
_CLOSE = 0.99
# Lists that are looked at together: copies in double precision of all would need much room.
_BLOCK = 1024


def start_weights(lists: CandidateLists, start: str | Weights = "auto") -> Weights:
    """Weights of the dense features to begin with; their sizes sum to 1.

    Lengths of steps and prices of costs mean something beside scores of a known scale only, and
    the scale of weights changes no choice.

    Parameters
    ----------
    lists : CandidateLists
        The lists that will be tuned on.
    start : Weights or {"auto", "decoder", "moses", "uniform"}
        ``decoder``: those that explain the decoder's scores, by least squares within the lists.
        ``moses``: what Moses gives an untuned system, 0.1 for names that it does not know.
        ``uniform``: all alike. ``auto``: the decoder's where they explain its scores, else those
        of Moses. ``about["start"]`` of the result names it.

    Examples
    --------
    >>> from hopefear.translation.examples import tiny_lists
    >>> start_weights(tiny_lists(), "moses").dense.tolist()
    [0.7142857142857143, 0.14285714285714288, 0.14285714285714288]
    """
    if isinstance(start, Weights):
        return _of_one_scale(start.arranged(lists.layout, lists.source))
    if start not in STARTS:
        raise HopefearError(f"start is a weights file or one of {', '.join(STARTS)}, not {start!r}")
    if start in ("auto", "decoder"):
        values, explained = decoder_weights(lists)
        if explained >= _CLOSE:
            return _of_one_scale(Weights(lists.layout, values, about={"start": "decoder"}))
        if start == "decoder":
            raise HopefearError(
                f"{lists.source}: no weights of the dense features explain the decoder's scores "
                f"(the best explain {100 * explained:.1f} %); give its weights, or start from moses"
            )
    if start == "uniform":
        alike = np.full(len(lists.names), 1.0 / max(1, len(lists.names)))
        return Weights(lists.layout, alike, about={"start": "uniform"})
    defaults = [_moses(name) for name, width in lists.layout for _ in range(width)]
    return _of_one_scale(Weights(lists.layout, np.array(defaults), about={"start": "moses"}))


def _of_one_scale(weights: Weights) -> Weights:
    """Normalized, unless there are sparse weights only."""
    return weights.normalized() if weights.dense.any() else weights


def _moses(name: str) -> float:
    return next((value for begin, value in _MOSES.items() if name.startswith(begin)), 0.1)


def decoder_weights(lists: CandidateLists) -> tuple[np.ndarray, float]:
    """(weights that explain the decoder's scores best, share of their variance that they explain).

    Only differences within a list count: what is the same for all of its candidates, such as a
    penalty for unknown words, has no weight here.
    """
    width = lists.dense.shape[1]
    squares, products, total = np.zeros((width, width)), np.zeros(width), 0.0
    for first in range(0, len(lists), _BLOCK):
        starts = lists.starts[first : first + _BLOCK + 1]
        candidates = slice(int(starts[0]), int(starts[-1]))
        features = _centred(lists.dense[candidates], starts - starts[0])
        scores = _centred(lists.scores[candidates, None], starts - starts[0])[:, 0]
        squares += features.T @ features
        products += features.T @ scores
        total += float(scores @ scores)
    if total == 0.0 or not width:
        return frozen(np.zeros(width)), 0.0
    weights = np.linalg.lstsq(squares, products, rcond=1e-10)[0]
    residual = total - 2.0 * float(weights @ products) + float(weights @ squares @ weights)
    return weights, 1.0 - max(0.0, residual) / total


def _centred(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    sizes, exact = np.diff(starts), values.astype(np.float64)
    means = np.add.reduceat(exact, starts[:-1], axis=0) / sizes[:, None]
    return exact - np.repeat(means, sizes, axis=0)


def evaluate(
    lists: CandidateLists,
    weights: Weights,
    *,
    metric: str | ListMetric = "bleu",
    samples: int = 1000,
    seed: int = 1,
) -> ListScores:
    """Scores of the candidates that weights put first, the decoder's, and the best there are.

    Parameters
    ----------
    lists : CandidateLists
        Candidates with counts of the metric.
    weights : Weights
        What chooses.
    metric : str or ListMetric
        The metric behind the counts.
    samples, seed : int
        Resamples behind bounds and p-values.

    Examples
    --------
    >>> from hopefear.translation.examples import tiny_lists
    >>> weights = Weights((("LM0", 1), ("TM0", 2)), [0.0, 0.0, 1.0])
    >>> round(evaluate(tiny_lists(), weights, samples=10).model.scores["bleu"], 1)
    52.0
    """
    judge = judge_of(lists, metric)
    assert lists.counts is not None
    points = scores(lists, weights)
    return evaluate_lists(
        judge,
        lists.counts,
        lists.starts,
        best(points, lists),
        scores=lists.scores,
        model_scores=points,
        n_references=lists.n_references,
        samples=samples,
        seed=seed,
    )


def corpus_score(
    lists: CandidateLists, weights: Weights, metric: str | ListMetric = "bleu"
) -> float:
    """The main score of the candidates that weights put first, and nothing else of them.

    Examples
    --------
    >>> from hopefear.translation.examples import tiny_lists
    >>> round(corpus_score(tiny_lists(), Weights((("LM0", 1), ("TM0", 2)), [0.0, 0.0, 1.0])), 1)
    52.0
    """
    return score_of(lists, judge_of(lists, metric), best(scores(lists, weights), lists))


def corpus_oracle(lists: CandidateLists, metric: str | ListMetric = "bleu") -> float:
    """The highest score of a choice from the lists that exchanging one at a time finds."""
    judge = judge_of(lists, metric)
    return score_of(lists, judge, oracle_choice(lists, judge))


def compare(
    lists: CandidateLists,
    first: Weights,
    second: Weights,
    *,
    metric: str | ListMetric = "bleu",
    samples: int = 1000,
    seed: int = 1,
) -> dict[str, Any]:
    """Paired tests of two weights on the same lists, as `compare_lists` gives them."""
    judge = judge_of(lists, metric)
    assert lists.counts is not None
    choices = [best(scores(lists, weights), lists) for weights in (first, second)]
    return compare_lists(
        judge,
        lists.counts,
        lists.starts,
        *choices,
        samples=samples,
        seed=seed,
        n_references=lists.n_references,
    )
