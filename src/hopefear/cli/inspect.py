"""``hopefear inspect``: what a model is, what it weighs and where it came from."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from typing import Any

from hopefear.cli import options
from hopefear.cli.config import config_of
from hopefear.cli.console import Console, check_output, print_json
from hopefear.cli.guard import put, write_out
from hopefear.cli.surface import opened, use_options

USAGE = "--model PATH | --weights FILE [--top N] [--card FILE.md] [--export FILE.json] [--config]"
DESCRIPTION = """
Show the size and sparsity of a model, how it was trained and on what, and the heaviest features
of every label; of a tagger also its templates and its strongest transitions, those it seeks and
those it shuns; of a reranker its families of features, and what speaks for and against a
candidate. Of a voted model, which has no single weight for a feature, the votes are described
instead.

{tasks}

Of weights, as `hopefear tune` writes them, the dense ones are shown, the largest of the others,
and where they came from, as far as the file says it (JSON does).
"""
EXAMPLES = """
examples:
{tasks}
  hopefear inspect --weights tuned.json --top 30
  hopefear inspect --model chunks.model --card chunks.md
  hopefear inspect --model chunks.model --config > chunks.toml
  hopefear inspect --model chunks.model --export chunks.json
"""
_VOTED = (
    "\nA voted model has no single weight for a feature; train with "
    "-p averaging=averaged to see the heaviest ones."
)


def configure(parser: argparse.ArgumentParser) -> None:
    options.named(parser, "--model", "model file", "PATH")
    options.weights(parser)
    options.whole(
        parser, "--top", "features to show for each label, or for and against", 10, least=0
    )
    use_options("inspect", parser)
    parser.add_argument(
        "--card",
        metavar="FILE.md",
        help="write a model card: what it is, scores, heaviest features, how to use it, and "
        "questions for whoever hands it on; - is standard output",
    )
    parser.add_argument(
        "--export",
        metavar="FILE.json",
        help="write a tagger or classifier as JSON that predicts without hopefear, as "
        "examples/portable does; - is standard output",
    )
    options.flag(
        parser,
        "--config",
        "print the file with which `hopefear train --config` makes such a model again",
    )
    options.json_option(parser)


def run(args: argparse.Namespace) -> int:
    if options.by_weights(args, shared=("top",), needed={}):
        from hopefear.cli.tune.weights import run_inspect

        run_inspect(args)
        return 0
    for output in (args.export, args.card):
        if output:
            check_output(output, [args.model])
    surface, model = opened(args, "inspect")
    console = Console(args.quiet)
    if args.config:
        write_out(config_of(model.about, surface.name))
        return 0
    if args.export:
        from hopefear.integrations.portable import as_json

        put(args.export, [as_json(model)])
        return 0
    own = surface.model_facts(model, args.top)
    size = own.get("coordinates", own["features"])
    facts = {
        "model": args.model,
        "task": surface.name,
        "bytes": None if args.model == "-" else os.path.getsize(args.model),
        **own,
        "nnz": model.nnz,
        "density": 100.0 * model.nnz / max(1, size),
        "signature": model.signature,
        "about": dict(model.about),
    }
    if args.json:
        print_json(facts)
        return 0
    words = _in_words(facts, size, surface.facts_in_words(facts))
    if args.card:
        from hopefear.cli.card import card

        put(args.card, [card(facts, words).encode()])
        return 0
    console.pairs(words)
    surface.show_weights(console, facts)
    if "top" not in facts and "layers" not in facts:
        console.say(_VOTED)
    return 0


def votes_of(predictor: Any, unit: str) -> dict[str, Any]:
    """What there is to say of votes; ``unit`` is what they saw."""
    return {
        "predictors": int(predictor.drops.size),
        "entries": int(predictor.begin.size),
        unit: float(predictor.survived[-1]),
    }


def _in_words(facts: Mapping[str, Any], size: int, own: Mapping[str, Any]) -> dict[str, Any]:
    about, votes = facts["about"], None
    training = about.get("training", {})
    last = training.get("last_nnz")
    if "votes" in facts:
        predictors, entries, (unit, number) = facts["votes"].items()
        votes = (
            f"{predictors[1]:,} predictors, kept as {entries[1]:,} changes of weights; "
            f"they saw {number:,.0f} {unit}"
        )
    kinds = ("source", "examples", "lists", "tokens", "candidates", "features", "digest")
    return {
        "model": facts["model"] + (f"  ({facts['bytes']:,} bytes)" if facts["bytes"] else ""),
        **own,
        "non-zeros": f"{facts['nnz']:,} of {size:,} weights ({facts['density']:.3g} %)"
        + ("" if last is None else f"; the last weights had {last:,}"),
        "votes": votes,
        "learner": about.get("learner"),
        "data": _listed(about.get("data", {}), *kinds),
        "training": _listed(training, "examples", "updates", "mistakes"),
        "read as": _listed(about.get("reading", {}), "format", "column", "scheme", "dedup"),
        "best epoch": training.get("best_epoch"),
        "signature": facts["signature"],
    }


def _listed(values: Mapping[str, Any], *keys: str) -> str | None:
    """What is there of some keys, in words; models made elsewhere may lack any."""
    pairs = [(key, values[key]) for key in keys if values.get(key) is not None]
    return ", ".join(f"{key} {f'{v:,}' if isinstance(v, int) else v}" for key, v in pairs) or None
