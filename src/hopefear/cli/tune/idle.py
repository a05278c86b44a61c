"""Options of ``tune`` that would change nothing, which are refused: people meant something."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from typing import Any

from hopefear.data.moses.lists import TuningLists
from hopefear.errors import HopefearError
from hopefear.translation.groups import kinds
from hopefear.translation.tuners.annealed_risk import AnnealedRisk
from hopefear.translation.tuners.expected_score import ExpectedScore
from hopefear.translation.tuners.mert import Mert
from hopefear.translation.tuners.online_tuner import OnlineTuner
from hopefear.translation.tuners.pro import Pro
from hopefear.translation.weights import Weights


def check_learner(args: argparse.Namespace, tuner: Any, params: Collection[str]) -> None:
    """Refuse what this tuner does not look at; ``params`` are those that were given."""
    if args.smoothing is not None and not of_sentences(tuner):
        raise HopefearError(
            f"--smoothing is of the BLEU of single sentences, and {args.learner} does not look at "
            "that here; leave it out, or use -p background=none where there is a pseudo-corpus"
        )
    if "memory" in params and isinstance(tuner, OnlineTuner) and tuner.background == "none":
        raise HopefearError(
            f"-p memory=… is of a pseudo-corpus, and {args.learner} has none here; leave it out, "
            "or name what enters one with -p background=hope"
        )
    if args.seeds > 1 and isinstance(tuner, AnnealedRisk | ExpectedScore):
        raise HopefearError(
            f"--seeds {args.seeds}: {args.learner} draws nothing at random, so that all seeds give "
            "the same weights; leave it out"
        )


def of_sentences(tuner: Any) -> bool:
    """Whether costs of single sentences make a difference to a tuner."""
    if isinstance(tuner, OnlineTuner):
        return tuner.background == "none"
    if isinstance(tuner, Pro):
        return tuner.corpus < 1.0
    return not isinstance(tuner, Mert | ExpectedScore)


def check_files(
    args: argparse.Namespace, fixed: Weights | None, added: Collection[Weights] = ()
) -> None:
    """Refuse what these weights and ``--features`` leave no room for."""
    if fixed is not None and fixed.layout and args.start != "auto":
        raise HopefearError(
            f"--start {args.start} and --fixed {args.fixed}: dense features keep the weights of "
            "the latter, and all else begins with 0; leave out --start"
        )
    if args.features is None:
        return
    groups, named = kinds(args.features), ",".join(args.features)
    if args.min_count > 1 and groups == ("dense",):
        raise HopefearError(_uncounted(args, f"--features {named} has none of them"))
    others = [*added, *([] if fixed is None else [fixed])]
    if args.source is not None and "phrases" not in groups and not any(w.phrases for w in others):
        raise HopefearError(
            f"--source is for phrase pairs, and nothing here has weights for them: leave it out, "
            f"or use --features {named},phrases"
        )


def check_lists(args: argparse.Namespace, lists: TuningLists) -> None:
    """Refuse what these lists have nothing for."""
    none = lists.sparse is None and lists.phrases is None
    if args.min_count > 1 and args.features is None and none:
        raise HopefearError(_uncounted(args, f"{lists.source} has none of them"))


def _uncounted(args: argparse.Namespace, reason: str) -> str:
    return (
        f"--min-count {args.min_count} is for sparse features, n-grams and phrase pairs, and "
        f"{reason}; leave it out"
    )
