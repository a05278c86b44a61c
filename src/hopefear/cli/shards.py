"""Options of learning in shards and of running on a cluster."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from typing import Any

from hopefear.cli.options import named, whole


def shards(parser: argparse.ArgumentParser) -> None:
    """Options of learning on several cores or machines at once."""
    group = parser.add_argument_group("shards")
    whole(
        group,
        "--shards",
        "deal the examples to N shards that learn side by side, and merge what they learned after "
        "every epoch; the model depends on N, not on where shards run",
    )
    group.add_argument(
        "--merge",
        choices=("mean-of-updated", "mean", "sum"),
        help="how shards are merged: means over those that updated a weight; over all; or sums, "
        "for rules that add up directions (rda, adagrad-rda, arow, confidence-weighted), which "
        "need many --merges (default: mean-of-updated)",
    )
    whole(
        group,
        "--merges",
        "merge N times in an epoch; more come nearer to one learner, and cost more (default: 1)",
    )
    whole(
        group,
        "--max-features",
        "keep the N features of the largest norm over all shards after every merge, and drop the "
        "weights of all others",
    )
    named(
        group,
        "--cluster",
        "run shards on a Ray cluster: its address, or auto for the one that this machine is part "
        "of, else one of its own (needs hopefear[ray])",
        "ADDRESS",
    )


def shards_of(args: argparse.Namespace) -> Any:
    """Returns what these options say, or None; wrong usage where they contradict each other."""
    names = ("merge", "merges", "max_features", "cluster")
    given = {name: value for name in names if (value := getattr(args, name)) is not None}
    if args.shards is None:
        for name in given:
            args.usage_error(f"--{name.replace('_', '-')} is about shards: give --shards N too")
        return None
    from hopefear.training.shards import Shards

    if (address := given.pop("cluster", None)) is not None:
        from hopefear.distributed import Cluster

        given["pool"] = Cluster(address)
    return Shards(args.shards, **given)


def cluster(group: argparse._ActionsContainer, what: str) -> None:
    """``--cluster`` of independent runs."""
    named(
        group,
        "--cluster",
        f"{what} side by side on a Ray cluster: its address, or auto for the one that this "
        "machine is part of, else one of its own (needs hopefear[ray])",
        "ADDRESS",
    )


@contextlib.contextmanager
def cluster_of(args: argparse.Namespace, cores: int = 1) -> Iterator[Any]:
    """The cluster of ``--cluster``, connected, or None; a run takes up so many cores."""
    if args.cluster is None:
        yield None
        return
    from hopefear.distributed import Runs

    with Runs(args.cluster, cores) as runs:
        yield runs
