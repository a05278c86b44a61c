"""What a parser says of files, what it is worth, and what it weighs."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from hopefear.cli.console import (
    BEST_SCORES,
    Console,
    in_percent,
    labels_in_words,
    long_table,
    weights_table,
)
from hopefear.cli.explain import told, wanted_tokens
from hopefear.cli.options import threads
from hopefear.cli.parse.corpus import read_for, with_taggers
from hopefear.cli.surface import Sample, Score
from hopefear.core.interfaces import n_weights
from hopefear.data.files import ReadReport
from hopefear.data.token_stream import arriving_text
from hopefear.data.treebank import Treebank, with_trees
from hopefear.errors import HopefearError
from hopefear.features.arcs.token_arcs import TokenArcs
from hopefear.metrics import Dependencies, reliability, tree_errors
from hopefear.report import text_tree
from hopefear.tasks.base import Explanation
from hopefear.tasks.parse.answers import ParseAnswers, answer, read_text
from hopefear.tasks.parse.explaining import arc_in_words
from hopefear.tasks.parse.model import ParseModel
from hopefear.tasks.parse.prepare import recall_of, warn_of_unknown
from hopefear.tasks.parse.task import judged

_SHOWN = 40  # relations on a screen


def answers(
    args: argparse.Namespace, model: ParseModel, console: Console, report: ReadReport
) -> Iterator[bytes]:
    """``--input`` with heads and relations, and the tags of taggers."""
    model = with_taggers(model, args)
    rows = rows_of(args, model, report)
    trees = answer(model, rows, args.nbest, args.proba, threads(args.jobs))
    if args.output_format == "json":
        numbers = trees.numbers.tolist()
        for i, tree in zip(numbers, trees.trees(), strict=True):
            line = {"sentence": i + 1, **tree.as_dict()}
            yield (json.dumps(line, ensure_ascii=False) + "\n").encode()
    elif args.output_format == "drawn":
        for tree in trees.trees():
            facts = tree.as_dict()
            names = ("rank", "score", "probability")
            head = "".join(f"# {name} = {facts[name]:.6g}\n" for name in names if name in facts)
            words, heads = [t.text for t in tree.tokens], [t.head for t in tree.tokens]
            drawn = text_tree(words, heads, [t.relation for t in tree.tokens if t.relation])
            yield f"{head}{drawn}\n\n".encode()
    else:
        yield from _columns(trees)


def _columns(trees: ParseAnswers) -> Iterator[bytes]:
    """The file with its new trees."""
    bank = trees.bank
    assert bank.file is not None
    own = bank.file.sentences.columns
    more: dict[str, Any] = {name: column for name, column in trees.tags.items() if name in own}
    if trees.arcs is not None:
        if bank.format == "conllx" and "misc" not in own:
            raise HopefearError(
                f"{bank.source} has eight columns and no room for probabilities; use "
                "--output-format json"
            )
        more["Probability"] = [f"{p:.4f}" for p in trees.arcs.tolist()]
    comments = None
    if trees.facts is not None:
        comments = [
            [" ".join(f"{k} = {x:.6g}" for k, x in fact.items() if k != "share")]
            for fact in trees.facts
        ]
    columns = {"comments": comments, "more": more, "counts": trees.counts}
    yield from with_trees(bank, trees.heads, trees.relations, **columns)


def rows_of(args: argparse.Namespace, model: ParseModel, report: ReadReport) -> Any:
    """What ``--input`` holds: a treebank, or text."""
    if args.format != "text":
        return read_for(args.input, args, report)
    return read_text("".join(arriving_text(args.input)), model.tokenizer, args.input)


def reasons(
    args: argparse.Namespace, model: ParseModel, console: Console, report: ReadReport
) -> Iterator[bytes]:
    """Why each word got its head."""
    model = with_taggers(model, args)
    rows = rows_of(args, model, report)
    bank = rows if isinstance(rows, Treebank) else rows.bank
    words = bank.sentences.columns["form"]

    for i, t in wanted_tokens(bank.starts, bank.source, args.explain_token):
        k = int(bank.starts[i]) + t
        place = {"sentence": i + 1, "token": t + 1, "line": bank.sentences.place(k)}
        reason: Explanation | str
        try:
            reason = model.explain(bank, i, t)
            sentence = [words[k] for k in range(*bank.starts[i : i + 2].tolist())]
            answers = reason.label, reason.runner_up
            best, other = (arc_in_words(sentence, each) for each in answers)
            reason = reason._replace(label=best, runner_up=other)
        except HopefearError as error:
            if args.explain_token:
                raise
            reason = str(error)
        head = f"sentence {i + 1}, token {t + 1}: {words[k]}"
        yield told(head, {**place, "word": words[k]}, reason, args)


def evaluate(
    args: argparse.Namespace, model: ParseModel, console: Console, report: ReadReport
) -> dict[str, Any]:
    """Attachment scores, errors by kind of arc, calibration."""
    bank, model = read_for(args.data, args, report, heads=True), with_taggers(model, args)
    data = model.encode(bank)
    unknown = warn_of_unknown(bank, model.labels)
    decoder = model.decoder(threads(args.jobs))
    codes = decoder.predict(data.rows)
    gold, output = judged(bank, codes, model.labels, data.bank)
    metric = Dependencies(bool(model.labels))
    score = Score("LAS", "las") if model.labels else Score("UAS", "uas")
    sample = Sample(metric, metric.statistics(gold, output), score)
    facts: dict[str, Any] = dict.fromkeys(metric.reads)
    facts |= metric.scores(sample.rows.sum(axis=0))
    for name in ("uas", "las"):
        if facts[name] is not None:
            facts[f"{name}_interval"] = sample.interval(name)
    facts |= {
        "tokens": facts.pop("words"),
        "recall": recall_of(data),
        "unknown_relations": unknown,
        "order": model.kind.order,
        "tree": model.kind.name,
        **({} if (proved := decoder.proved) is None else {"proved_best": proved}),
        "signature": metric.signature,
        "errors": tree_errors(gold, output),
        "sample": sample,
    }
    if args.proba or (args.report is not None and decoder.sums):
        heads = codes // max(1, len(model.labels))
        shares = model.arc_probabilities(data, heads, threads(args.jobs))
        bins = reliability(np.minimum(shares, 1.0), heads == bank.heads).as_dict()
        facts["calibration"] = {"heads": bins}
    if args.report is not None:
        from hopefear.report.evaluation import Evidence
        from hopefear.tasks.parse.cases import judgement

        errors = judgement(model, data.bank, data, codes, gold, output, threads(args.jobs))
        facts["page"] = Evidence(errors, _sizes(bank, facts))
    return facts


def _sizes(bank: Treebank, facts: dict[str, Any]) -> dict[str, Any]:
    lengths = np.diff(bank.starts)
    return {
        "sentences": f"{len(lengths):,}, with {lengths.mean():.1f} words on average and "
        f"{lengths.max()} at most",
        "words": f"{facts['tokens']:,}",
        "relations": f"{len(np.unique(bank.relations.ids))}, and {facts['unknown_relations']:,} "
        "words whose relation the model does not know",
        "sentences with arcs that cross": f"{int(np.sum(~bank.projective)):,}",
    }


_TITLES = {
    **{"uas": "UAS", "las": "LAS", "las_universal": "LAS of CoNLL 2018", "clas": "CLAS"},
    **{"mlas": "MLAS", "labels": "relations", "uas_nopunct": "UAS without punctuation"},
    **{"las_nopunct": "LAS without punctuation", "trees": "whole trees", "roots": "roots"},
}
_TABLES = {
    "length": "Errors by length of arcs",
    "direction": "Errors by side of the head",
    "relation": "Errors by relation",
    "sentence": "Errors by length of sentences",
}


def findings(facts: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    """The same for people: words, and tables of errors."""
    words: dict[str, Any] = {
        "sentences": f"{facts['sentences']:,} with {facts['tokens']:,} words",
        **{
            title: None if facts[name] is None else in_percent(facts, name)
            for name, title in _TITLES.items()
        },
        "right heads looked at": in_percent(facts, "recall"),
        "kind of trees": f"{facts['tree']}, order {facts['order']}",
        "trees proved best": f"{facts['proved_best']:,} of {facts['sentences']:,}"
        if "proved_best" in facts
        else None,
        "non-zeros": f"{facts['nnz']:,}",
    }
    tables = []
    for key, title in _TABLES.items():
        rows = facts["errors"][key]
        if key == "relation" and facts["las"] is None:
            continue
        heads = list(rows[0]) if rows else [key]
        cells = [[f"{v:.2f}" if isinstance(v, float) else v for v in row.values()] for row in rows]
        tables.append((title, ["F1" if head == "f1" else head for head in heads], cells))
    return words, tables


def show_scores(console: Console, facts: dict[str, Any]) -> None:
    """The same on a screen."""
    words, tables = findings(facts)
    console.pairs(words)
    for title, heads, rows in tables:
        console.say(f"\n{title.lower()}")
        long_table(console, heads, rows, _SHOWN, "rows", BEST_SCORES)
    console.say(f"\n{facts['signature']}\n{facts['model_signature']}")


def model_facts(model: ParseModel, top: int) -> dict[str, Any]:
    """What there is to say of this model."""
    features, pruner = model.features, model.pruner
    facts: dict[str, Any] = {
        "labels": list(model.labels),
        "order": model.kind.order,
        "tree": model.kind.name,
        "single_root": model.kind.single,
        "temperature": model.temperature,
        "features": features.size,
        "coordinates": n_weights(model.structure()),
        "columns": list(features.columns),
        "taggers": [] if model.taggers is None else model.taggers.describe(),
        "pruner": None if pruner is None else {**pruner.to_header(), "nnz": pruner.predictor.nnz},
    }
    if isinstance(features, TokenArcs):
        predictor: Any = model.predictor
        layers = predictor.layers()
        size = sum(math.prod(shape) for shape in layers.values())
        return facts | {"coordinates": size, "layers": layers}
    templates = features.templates.__dict__.items()
    return facts | {
        "tags": list(features.tags),
        "templates": {name: len(texts) for name, texts in templates},
        "top": model.heaviest_features(top),
    }


def facts_in_words(facts: dict[str, Any]) -> dict[str, Any]:
    """The same for people."""
    pruner, sizes = facts["pruner"], facts.get("templates", {})
    roots = "one root" if facts["single_root"] else "any number of roots"
    columns = ", ".join(filter(None, facts["columns"]))
    return {
        "relations": labels_in_words(facts["labels"]) if facts["labels"] else "none",
        "trees": f"{facts['tree']}, order {facts['order']}, {roots}",
        "heads of a word": None
        if pruner is None
        else f"{pruner['heads']} at most, chosen by {pruner['nnz']:,} weights",
        "temperature": f"{facts['temperature']:.3g}",
        "taggers": ", ".join(f"{t['columns']} ({t['labels']} labels)" for t in facts["taggers"])
        or None,
        "columns": columns,
        "tags": labels_in_words(facts["tags"]) if "tags" in facts else None,
        "templates": ", ".join(f"{n} of {name}" for name, n in sizes.items() if n) or None,
        "features": f"{facts['features']:,} {'places, hashed' if sizes else 'words and other'}",
    }


def show_weights(console: Console, facts: dict[str, Any]) -> None:
    """The heaviest features of tags, which are the ones that can be named; layers of networks."""
    if "layers" in facts:
        rows = [[name, " × ".join(map(str, shape))] for name, shape in facts["layers"].items()]
        console.table(["weights", "shape"], rows)
        return
    heads = ["feature of tags", "relation"]
    weights_table(console, "features of tags alone, heaviest", heads, facts["top"])
