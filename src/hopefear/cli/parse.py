"""Dependency trees on the command line: words, options and printing."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from hopefear.cli import options
from hopefear.cli.explain import told, wanted_tokens
from hopefear.cli.surface import Rehearsal, Sample, Score, Surface, Words, load_model
from hopefear.errors import HopefearError

_TRAIN = Words(
    """
Train a parser on a treebank and write it as one file. CoNLL-U, the columns of CoNLL-X (2006, 2007)
and lines of word, tag and head are told apart by themselves. By default heads and relations are
learned together by a second-order model, among the heads that a small first-order parser leaves;
arcs may cross where over 5 % of the sentences have such arcs. With held-out data (--dev) every pass
is scored on it, training stops when that no longer improves, and the best model is kept. With
--tagger auto the parser learns from the tags and morphology of taggers, which are trained with it
and are part of the model, so that it takes raw text; --tagger MODEL takes taggers of your own.
""",
    """
  hopefear train parse --train train.conllu --dev dev.conllu --model parser.model
  hopefear train parse --train train.conllx --order 1 --tree projective --learner perceptron \\
      --model quick.model
  hopefear train parse --train train.conllu --tagger auto --model raw.model
""",
)
_COMPARE = Words(
    """
Train several parsers on the same treebank, parse the same test data with all of them and show LAS,
UAS, sparsity and speed in one table, with a test over sentences of whether each is really worse
than the best. The report is one HTML page with learning curves. A learner may bring parameters:
NAME:KEY=VALUE:KEY=VALUE.
""",
    """
  hopefear compare parse --train train.conllu --test test.conllu --order 1 \\
      --learners perceptron,mira,swvp --report parsers.html
  hopefear compare parse --train train.conllu --dev dev.conllu --test test.conllu \\
      --learners perceptron,swvp:beta=0.5 --json
""",
)
_PREDICT = Words(
    """
A parser writes the file as it is, comments, multiword tokens and empty nodes included, with new
heads and relations. With --proba each word has the probability of its head (CoNLL: in the last
column; of projective trees and trees of first order exact, else a share of the 20 best trees), and
a comment that of the tree. With --nbest N every sentence comes N times, best first, each behind a
comment `# rank = K score = S probability = P`. A parser that was trained with --tagger also writes
the tags it gives to words, and takes text (--input-format text), which comes out as CoNLL-U.
""",
    """
  hopefear predict --model parser.model --input new.conllu --output parsed.conllu
  hopefear predict --model raw.model --input-format text --input text.txt --output parsed.conllu
""",
)
_EVALUATE = Words(
    """
Score a parser on trees: UAS, LAS, CLAS, MLAS, complete trees and roots, with and without
punctuation, equal to the scripts of CoNLL-X and CoNLL 2018, with 95 % confidence intervals, and
what goes wrong by length of arcs, relation and length of sentences. A relation that training did
not see is a mistake.
""",
    "  hopefear evaluate --model parser.model --data test.conllu --report errors.html",
)
_LEARN = "train parse --train heads.conllu"
_REHEARSAL = Rehearsal(
    (
        f"{_LEARN} --dev heads.conllu --epochs 2 --model m",
        "predict --model m --input heads.conllu --output out",
        "predict --model m --input heads.conllu --output out --nbest 3",
        "predict --model m --input heads.conllu --output out --proba",
        "evaluate --model m --data heads.conllu --report r.html",
        "serve --model m",
        f"{_LEARN} --dev heads.conllu --epochs 2 --order 1 --model m",
        "predict --model m --input heads.conllu --output out",
    ),
    (
        f"{_LEARN} --tree nonprojective --epochs 1 --model m",
        "predict --model m --input heads.conllu --output out --nbest 3 --proba",
        f"{_LEARN} --tree nonprojective --order 1 --epochs 1 --model m",
        "predict --model m --input heads.conllu --output out --nbest 3 --proba",
        "evaluate --model m --data heads.conllu --report r.html",
        "predict --model m --input heads.conllu --output out --explain",
        "serve --model m",
        "inspect --model m",
    ),
)


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
_SHOWN = 40  # rows on a screen


class Parses(Surface):
    """The task ``parse``."""

    name, noun = "parse", "trees"
    title, unit = "Parsers compared", "sentences"
    rehearsal = _REHEARSAL
    words: ClassVar[Mapping[str, Words]] = {
        "train": _TRAIN,
        "compare": _COMPARE,
        "predict": _PREDICT,
        "evaluate": _EVALUATE,
        "inspect": Words("", "  hopefear inspect --model parser.model --top 20"),
    }
    passes = "10; of batch learners, their max_iter; of networks 20"
    metrics = "las or uas (default: las where relations are learned)"
    files = ("vectors",)
    shares = ("jobs", "explain_token", "proba", "device")
    texts = ("text",)
    outputs: ClassVar[Mapping[str, str]] = {
        "columns": "the file with its new trees",
        "json": "an object a tree, a line each",
        "drawn": "trees as people draw them",
    }

    def data_options(self, group: argparse._ArgumentGroup, verb: str) -> None:
        options.named(
            group,
            "--tags",
            "the column of the fine tags (default: xpos, or upos where that is empty)",
            "COLUMN",
        )
        group.add_argument(
            "--tagger",
            nargs="+",
            metavar="auto|MODEL",
            help="taggers that give all words their tags first, and are part of the model: auto "
            "trains them for the tags and the morphology that the features look at; a model gives "
            "the column it was trained on",
        )
        options.whole(
            group,
            "--jackknife",
            "with --tagger: each of N parts of the training trees is tagged by taggers that have "
            "learned from the others, so that tags are as bad in training as later; 0 takes the "
            "taggers as they are",
            5,
            least=0,
        )
        options.on_error(group)

    def learning_options(
        self, group: argparse._ArgumentGroup, verb: str, shared: Callable[[], None]
    ) -> None:
        shared()
        options.networks(group)

    def feature_options(self, parser: argparse.ArgumentParser, verb: str) -> None:
        group = parser.add_argument_group("trees")
        group.add_argument(
            "--order",
            type=int,
            choices=(1, 2),
            help="1: arcs are scored one by one; 2: with siblings and grandparents (default: 2, of "
            "networks 1)",
        )
        options.choice(
            group,
            "--tree",
            ("auto", "projective", "nonprojective"),
            "whether arcs may cross; crossing arcs of the training data are lifted where they must "
            "not; auto: where over 5 %% of the sentences have some",
        )
        options.whole(
            group,
            "--heads",
            "most heads of a word that are looked at, the likeliest of a small parser",
            10,
        )
        options.flag(group, "--unlabelled", "learn heads alone, no relations")
        group = parser.add_argument_group("features")
        options.named(
            group,
            "--features",
            "standard, light (fewer: quicker, worse), or a TOML file of templates by family "
            "(default: standard); networks read words and tags",
            "SET|FILE",
        )
        group.add_argument(
            "--hash-bits",
            type=options.at_least(10),
            metavar="N",
            help="features share 2^N weights, and a quarter as many rows with relations (default: "
            "22): fewer make smaller files, and at last worse parsers",
        )
        options.flag(
            group,
            "--dictionary",
            "only features of the training trees count, and no two share a weight; slower",
        )
        if verb == "train":
            options.no_temperature(group)
        options.learning_jobs(group, ", of choosing heads and of parsing held-out data")

    def use_options(
        self, verb: str, parser: argparse.ArgumentParser, **groups: argparse._ArgumentGroup
    ) -> None:
        if verb != "inspect":
            groups["data"].add_argument(
                "--tagger",
                nargs="+",
                metavar="MODEL",
                help="trees: taggers that give all words their tags, in place of the model's own",
            )

    def check(self, args: argparse.Namespace, verb: str) -> None:
        if verb not in ("train", "compare"):
            return
        if args.dictionary and args.hash_bits is not None:
            args.usage_error("features of a --dictionary are not hashed: leave out --hash-bits")
        if args.tagger is None and args.jackknife != args.default_of("jackknife"):
            args.usage_error("--jackknife is for tags of taggers: give --tagger")

    # Files.

    def examples(
        self, which: str, args: argparse.Namespace, report: Any, prepared: Any = None
    ) -> Any:
        from hopefear.data.treebank import read_treebank

        if which == "train":
            self.check_memory(args)
        return read_treebank(getattr(args, which), on_error=args.on_error, report=report)

    def parameters(self, args: argparse.Namespace) -> dict[str, Any]:
        parameters = super().parameters(args)
        if args.tagger and args.tagger != ["auto"]:
            parameters["tagger"] = _taggers(args)
        elif args.tagger:
            parameters["tagger"] = "auto"
        return {**parameters, "shared": hasattr(args, "learners")}

    # Words about data and training.

    def scores(self, prepared: Any) -> tuple[Score, ...]:
        labelled = (Score("LAS", "las"),) if prepared.data.labels else ()
        return (*labelled, Score("UAS", "uas"))

    def describe(self, prepared: Any) -> str:
        data, kind, taggers = prepared.data, prepared.data.kind, prepared.task.taggers
        relations = f"{len(data.labels)} relations" if data.labels else "no relations"
        tags = f"tags {data.features.columns[2]}"
        if taggers is not None:
            tags = f"{', '.join(taggers.columns)} of {len(taggers.parts)} taggers"
        return (
            f"{data.source}: {data.bank.describe()}, {relations}, {tags}; {kind.name} trees of "
            f"order {kind.order}"
        )

    def facts(self, prepared: Any) -> dict[str, Any]:
        facts = super().facts(prepared)
        facts["examples"] = facts.pop("sentences")
        return facts

    def settings(self, prepared: Any, args: argparse.Namespace) -> dict[str, Any]:
        kind, network = prepared.data.kind, prepared.data.features.kind == "token-arcs"
        return {
            "tree": kind.name,
            "features": None if network else args.features or "standard",
            "order": kind.order,
            "tags": args.tags,
            "hash_bits": args.hash_bits,
            "dictionary": args.dictionary,
        }

    def outcome(self, prepared: Any, trained: Any) -> dict[str, Any]:
        data = prepared.data
        return {
            **prepared.sizes(),
            "order": data.kind.order,
            "tree": data.kind.name,
            "arcs": int(data.rows.heads.size),
            "lifted": data.lifted,
            "temperature": trained.model.temperature,
            "messages": list(prepared.messages),
        }

    def summary(self, prepared: Any, result: Mapping[str, Any], trained: Any) -> dict[str, Any]:
        return {"temperature": f"{result['temperature']:.3g}"}

    def comparison(self, prepared: Any, test: Any) -> dict[str, Any]:
        kind = {"order": prepared.data.kind.order, "tree": prepared.data.kind.name}
        return {**super().comparison(prepared, test), "test_tokens": test.n_tokens, **kind}

    def shown(self, prepared: Any, test: Any, i: int) -> str:
        words = test.bank.take([i]).sentences.columns["form"].texts()
        return f"{i + 1}: {' '.join(words)}"

    # What is asked of models.

    def answers(
        self, args: argparse.Namespace, model: Any, console: Any, report: Any
    ) -> Iterator[bytes]:
        from hopefear.report import text_tree
        from hopefear.tasks.answers import Question
        from hopefear.tasks.parse.answers import answer

        model = _with_taggers(model, args)
        question = Question(args.nbest, args.proba)
        trees = answer(model, _rows(args, model, report), question, options.threads(args.jobs))
        if args.output_format not in ("json", "drawn"):
            yield from _columns(trees)
            return
        for tree in trees.trees():
            record = tree.as_dict()
            if args.output_format == "json":
                line = json.dumps(record, ensure_ascii=False)
            else:
                names = [name for name in ("rank", "score", "probability") if name in record]
                head = "".join(f"# {name} = {record[name]:.6g}\n" for name in names)
                words, heads = [t.text for t in tree.tokens], [t.head for t in tree.tokens]
                relations = [t.relation for t in tree.tokens if t.relation]
                line = f"{head}{text_tree(words, heads, relations)}\n"
            yield f"{line}\n".encode()

    def reasons(
        self, args: argparse.Namespace, model: Any, console: Any, report: Any
    ) -> Iterator[bytes]:
        from hopefear.tasks.parse.explaining import arc_in_words

        model = _with_taggers(model, args)
        rows = _rows(args, model, report)
        bank = getattr(rows, "bank", rows)
        words = bank.sentences.columns["form"]
        for i, t in wanted_tokens(bank.starts, bank.source, args.explain_token):
            k = int(bank.starts[i]) + t
            place = {"sentence": i + 1, "token": t + 1, "line": bank.sentences.place(k)}
            reason: Any
            try:
                reason = model.explain(bank, i, t)
                sentence = [words[k] for k in range(*bank.starts[i : i + 2].tolist())]
                pair = (arc_in_words(sentence, arc) for arc in (reason.label, reason.runner_up))
                reason = reason._replace(**dict(zip(("label", "runner_up"), pair, strict=True)))
            except HopefearError as error:
                if args.explain_token:
                    raise
                reason = str(error)
            head = f"sentence {i + 1}, token {t + 1}: {words[k]}"
            yield told(head, {**place, "word": words[k]}, reason, args)

    def evaluate(
        self, args: argparse.Namespace, model: Any, console: Any, report: Any
    ) -> dict[str, Any]:
        from hopefear.tasks.parse.answers import judge

        bank, model = _treebank(args.data, args, report, heads=True), _with_taggers(model, args)
        judged = judge(model, bank, args.proba, args.report is not None, options.threads(args.jobs))
        score = Score("LAS", "las") if model.labels else Score("UAS", "uas")
        sample = Sample(judged.metric, judged.rows, score)
        facts = dict(judged.facts)
        for name in ("uas", "las"):
            if facts[name] is not None:
                facts[f"{name}_interval"] = sample.interval(name)
        if judged.errors is not None:
            from hopefear.report.evaluation import ReportData

            facts["page"] = ReportData(judged.errors, _sizes(bank, facts))
        return {**facts, "sample": sample}

    def findings(self, scores: Mapping[str, Any]) -> tuple[dict[str, Any], list[Any]]:
        from hopefear.cli.console import in_percent

        words: dict[str, Any] = {
            "sentences": f"{scores['sentences']:,} with {scores['tokens']:,} words",
            **{
                title: None if scores[name] is None else in_percent(scores, name)
                for name, title in _TITLES.items()
            },
            "right heads looked at": in_percent(scores, "recall"),
            "kind of trees": f"{scores['tree']}, order {scores['order']}",
            "trees proved best": f"{scores['proved_best']:,} of {scores['sentences']:,}"
            if "proved_best" in scores
            else None,
            "non-zeros": f"{scores['nnz']:,}",
        }
        tables = []
        for key, title in _TABLES.items():
            rows = scores["errors"][key]
            if key == "relation" and scores["las"] is None:
                continue
            heads = list(rows[0]) if rows else [key]
            cells = [[f"{v:.2f}" if isinstance(v, float) else v for v in r.values()] for r in rows]
            tables.append((title, ["F1" if head == "f1" else head for head in heads], cells))
        return words, tables

    def show_scores(self, console: Any, scores: Mapping[str, Any]) -> None:
        from hopefear.cli.console import BEST_SCORES, long_table

        words, tables = self.findings(scores)
        console.pairs(words)
        for title, heads, rows in tables:
            console.say(f"\n{title.lower()}")
            long_table(console, heads, rows, _SHOWN, "rows", BEST_SCORES)
        console.say(f"\n{scores['signature']}\n{scores['model_signature']}")

    def model_facts(self, model: Any, top: int) -> dict[str, Any]:
        from hopefear.core.interfaces import n_weights

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
            "pruner": None
            if pruner is None
            else {**pruner.to_header(), "nnz": pruner.predictor.nnz},
        }
        if features.kind == "token-arcs":
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

    def facts_in_words(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        from hopefear.cli.console import labels_in_words

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

    def show_weights(self, console: Any, facts: Mapping[str, Any]) -> None:
        from hopefear.cli.console import weights_table

        if "layers" in facts:
            rows = [[name, " × ".join(map(str, shape))] for name, shape in facts["layers"].items()]
            console.table(["weights", "shape"], rows)
            return
        heads = ["feature of tags", "relation"]
        weights_table(console, "features of tags alone, heaviest", heads, facts["top"])


SURFACE = Parses()


def _taggers(args: argparse.Namespace) -> list[Any]:
    """The taggers of ``--tagger``; models of other tasks are refused."""
    models = []
    for path in args.tagger:
        name, model = load_model(path)
        if name != "tag":
            raise HopefearError(
                f"--tagger {path}: this is a model of the task {name}; give one of the task tag"
            )
        models.append(model)
    return models


def _with_taggers(model: Any, args: argparse.Namespace) -> Any:
    return model.with_tagger(_taggers(args)) if args.tagger else model


def _treebank(path: str, args: argparse.Namespace, report: Any, heads: bool = False) -> Any:
    """A treebank, or words without trees; another format than that of ``--format`` is refused."""
    from hopefear.data.treebank import read_treebank

    bank = read_treebank(path, heads=heads, on_error=args.on_error, report=report)
    if args.format != "auto" and (args.format == "columns") != (bank.format == "columns"):
        raise HopefearError(f"--format {args.format}: {path} is {bank.format}; leave it out")
    return bank


def _rows(args: argparse.Namespace, model: Any, report: Any) -> Any:
    """What ``--input`` holds: a treebank, or text."""
    if args.format != "text":
        return _treebank(args.input, args, report)
    from hopefear.data.token_stream import arriving_text
    from hopefear.tasks.parse.answers import read_text

    return read_text("".join(arriving_text(args.input)), model.tokenizer, args.input)


def _columns(trees: Any) -> Iterator[bytes]:
    """The file with its new trees, and the tags of taggers."""
    from hopefear.data.treebank import with_trees

    bank = trees.bank
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


def _sizes(bank: Any, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What a page says of the data."""
    n, lengths = len(bank), bank.starts[1:] - bank.starts[:-1]
    return {
        "sentences": f"{n:,}, with {lengths.mean():.1f} words on average and {lengths.max()} at "
        "most",
        "words": f"{facts['tokens']:,}",
        "relations": f"{len(set(bank.relations.ids.tolist()))}, and "
        f"{facts['unknown_relations']:,} words whose relation the model does not know",
        "sentences with arcs that cross": f"{int((~bank.projective).sum()):,}",
    }
