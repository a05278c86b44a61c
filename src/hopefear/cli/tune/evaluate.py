"""``hopefear evaluate --weights``: what weights are worth on N-best lists."""

from __future__ import annotations

import argparse
import time
from typing import Any

from hopefear.cli.console import Console, print_json
from hopefear.cli.tune.lists import metric_asked, read_lists, told
from hopefear.cli.tune.unused import Unused
from hopefear.translation.derived import needed
from hopefear.translation.evaluation import compare, corpus_oracle, evaluate
from hopefear.translation.weights import Weights


def run(args: argparse.Namespace, console: Console) -> None:
    """Score the candidates that the weights put first."""
    started = time.perf_counter()
    metric = metric_asked(args)
    weights = Weights.read(args.weights)
    other = None if args.against is None else Weights.read(args.against)
    both = [weights] if other is None else [weights, other]
    lists = read_lists(args, metric, console, texts=any(map(needed, both)))
    console.say(told(lists, "lists"))
    for each, path in zip(both, (args.weights, args.against), strict=False):
        unused = Unused(each, path)
        unused.see(lists)
        unused.tell(console)
    found = evaluate(lists, weights, metric=metric)
    oracle = corpus_oracle(lists, metric)
    test: dict[str, Any] | None = None
    if other is not None:
        test = compare(lists, weights, other, metric=metric)
    if args.json:
        print_json(
            {
                **found.as_dict(),
                f"corpus_oracle_{metric.main}": oracle,
                **({} if test is None else {"against": {"weights": args.against, **test}}),
                "nnz": weights.nnz,
                "weights": args.weights,
                "seconds": round(time.perf_counter() - started, 3),
            }
        )
        return
    console.say(found.text().rstrip("\n"))
    console.say(f"best choice for all lists together: {metric.main} {oracle:.2f} or better")
    if test is not None:
        console.say(
            f"{args.weights} - {args.against}: {test['difference']:+.2f} "
            f"({test['low']:+.2f} to {test['high']:+.2f}), {test['first']:.2f} against "
            f"{test['second']:.2f}, p = {test['p_bootstrap']:.3g} (bootstrap), "
            f"{test['p_randomisation']:.3g} (randomisation)"
        )
