"""What a parser says of files, what it is worth, and what it weighs."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

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
from hopefear.cli.parse.corpus import read_for, recall_of, tagged, warn_of_strangers
from hopefear.cli.surface import Sample, Score
from hopefear.core.interfaces import n_weights
from hopefear.data.files import ReadReport
from hopefear.data.sequences import Column
from hopefear.data.treebank import Treebank, with_trees
from hopefear.errors import HopefearError
from hopefear.features.arcs.token_arcs import TokenArcs
from hopefear.metrics import Dependencies, reliability, tree_errors
from hopefear.report import text_tree
from hopefear.tasks.base import Explanation
from hopefear.tasks.parse.explaining import arc_in_words
from hopefear.tasks.parse.model import ParseModel
from hopefear.tasks.parse.task import judged

_SHOWN = 40  # relations on a screen


class Outputs(NamedTuple):
    """Trees of all sentences, some several times, and how sure they are."""

    codes: np.ndarray
    counts: np.ndarray | None  # how often each sentence comes
    facts: list[dict[str, float]] | None  # of each tree
    shares: np.ndarray | None  # probability of each word's head


def answers(
    args: argparse.Namespace, model: ParseModel, console: Console, report: ReadReport
) -> Iterator[bytes]:
    """``--input`` with heads and relations."""
    bank = read_for(args.input, args, report)
    outputs = _outputs(model, tagged(bank, model, args, console), args)
    heads, relations = model.trees(outputs.codes)
    if args.output_format in ("json", "drawn"):
        yield from _shown(bank, outputs, heads, relations, args.output_format)
        return
    more = {}
    if outputs.shares is not None:
        assert bank.file is not None
        if bank.format == "conllx" and "misc" not in bank.file.sentences.columns:
            raise HopefearError(
                f"{bank.source} has eight columns and no room for probabilities; use "
                "--output-format json"
            )
        more["Probability"] = [f"{p:.4f}" for p in outputs.shares.tolist()]
    comments = None
    if outputs.facts is not None:
        comments = [[" ".join(f"{k} = {n:.6g}" for k, n in fact.items())] for fact in outputs.facts]
    yield from with_trees(
        bank, heads, relations, comments=comments, more=more, counts=outputs.counts
    )


def _outputs(model: ParseModel, bank: Treebank, args: argparse.Namespace) -> Outputs:
    decoder, data = model.decoder(threads(args.jobs)), model.encode(bank)
    if not args.nbest and not args.proba:
        return Outputs(decoder.predict(data.rows), None, None, None)
    ranked = decoder.k_best(data.rows, args.nbest or 1)
    counts = np.array([len(some.scores) for some in ranked])
    codes = np.concatenate([np.zeros(0, np.int32), *(some.labels.ravel() for some in ranked)])
    names = ("rank", "score", "probability") if args.nbest else ("probability",)
    facts: list[dict[str, float]] | None = [
        {name: fact[name] for name in names}
        for some in ranked
        for k, (score, p) in enumerate(zip(some.scores, some.probabilities, strict=True))
        for fact in [{"rank": k + 1, "score": float(score), "probability": float(p)}]
    ]
    if not decoder.sums and not args.nbest:
        facts = None  # of one tree, its share of the n best says nothing
    shares = None
    if args.proba:
        copies = data.take(np.repeat(np.arange(len(data)), counts)) if args.nbest else data
        shares = model.arc_probabilities(copies, model.trees(codes)[0], threads(args.jobs))
    return Outputs(codes, counts if args.nbest else None, facts, shares)


def _shown(
    bank: Treebank, outputs: Outputs, heads: np.ndarray, relations: Column | None, form: str
) -> Iterator[bytes]:
    """Trees as JSON objects or drawings."""
    words = bank.sentences.columns["form"].texts()
    names = None if relations is None else relations.texts()
    counts = np.ones(len(bank), int) if outputs.counts is None else outputs.counts
    begin = 0
    for k, i in enumerate(np.repeat(np.arange(len(bank)), counts).tolist()):
        first, after = bank.starts[i : i + 2].tolist()
        some, end = words[first:after], begin + after - first
        tree, labels = heads[begin:end].tolist(), [] if names is None else names[begin:end]
        fact = {} if outputs.facts is None else outputs.facts[k]
        if form == "drawn":
            head = "".join(f"# {key} = {n:.6g}\n" for key, n in fact.items())
            yield f"{head}{text_tree(some, tree, labels)}\n\n".encode()
        else:
            columns = {"text": some, "head": tree}
            if names is not None:
                columns["relation"] = labels
            if outputs.shares is not None:
                columns["probability"] = outputs.shares[begin:end].round(6).tolist()
            rows = [
                dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
            ]
            line = {"sentence": i + 1, **fact, "tokens": rows}
            yield (json.dumps(line, ensure_ascii=False) + "\n").encode()
        begin = end


def reasons(
    args: argparse.Namespace, model: ParseModel, console: Console, report: ReadReport
) -> Iterator[bytes]:
    """Why each word got its head."""
    bank = read_for(args.input, args, report)
    words, data = bank.sentences.columns["form"], tagged(bank, model, args, console)

    for i, t in wanted_tokens(bank.starts, bank.source, args.explain_token):
        k = int(bank.starts[i]) + t
        place = {"sentence": i + 1, "token": t + 1, "line": bank.sentences.place(k)}
        reason: Explanation | str
        try:
            reason = model.explain(data, i, t)
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
    bank = read_for(args.data, args, report, heads=True)
    data = model.encode(tagged(bank, model, args, console))
    strange = warn_of_strangers(bank, model.labels)
    decoder = model.decoder(threads(args.jobs))
    codes = decoder.predict(data.rows)
    gold, output = judged(bank, codes, model.labels)
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
        "recall": recall_of(data.known(bank, 0)),
        "unknown_relations": strange,
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

        errors = judgement(model, bank, data, codes, gold, output, threads(args.jobs))
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
