"""Tags on the command line: words, options and printing.

Reading, learning and answering are in :mod:`hopefear.tasks.tag`. Heavy imports stand inside
methods, since help reads this file, too.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from hopefear.cli import options
from hopefear.cli.streaming import BITS, Incoming, head_of, known
from hopefear.cli.surface import Rehearsal, Sample, Score, Surface, Words
from hopefear.errors import HopefearError
from hopefear.tasks import recipe

if TYPE_CHECKING:
    from hopefear.data.token_examples import TokenExamples
    from hopefear.tasks.tag.answers import Paint, TagAnswers
    from hopefear.tasks.tag.model import SequenceModel
    from hopefear.tasks.tag.prepare import PreparedTags

# Bytes of text to encode at a time, whose attributes take some 40 times as much; and bytes by which
# the scheme of the labels and the templates of a cache are chosen.
PIECE_BYTES, LOOK_BYTES = 1 << 20, 1 << 23
_SHOWN = 40  # rows of the table of types or labels
_TEMPLATES = 60  # shown at most
_COLOURS = (32, 34, 35, 36, 33, 31)  # green, blue, magenta, cyan, yellow, red
_BLANKS = re.compile(r"\s+")

_TRAIN = Words(
    """
Train a tagger on a file of labelled tokens and write it as one file. Columns, CoNLL-U, CRFsuite
files and JSON lines are read as they are; features and tag scheme are chosen by what is in the file
unless told. With held-out data (--dev) every pass is scored on it, training stops when that no
longer improves, and the best model is kept. The same data, options and seed give the same model,
byte for byte, also when the run was killed and resumed.
""",
    """
  hopefear train tag --train train.txt --dev dev.txt --model chunks.model
  hopefear train tag --train train.conllu.gz --column upos --learner crf --epochs 15 \\
      --model pos.model
  hopefear train tag --train train.iob2 --features bioner --convert iobes --learner sapo -p n=10 \\
      --min-count 2 --run runs/sapo --model genes.model
  hopefear train tag --train train.crfsuite --learner perceptron --model attributes.model
""",
)
_COMPARE = Words(
    """
Train several taggers on the same data with the same features, test them on the same test data and
show span F1, accuracy, sparsity and speed in one table, with a test of whether each is really
worse than the best. With held-out data (--dev) each keeps its best pass on it, without it the last
one. The report is one HTML page with learning curves. A learner may bring parameters:
NAME:KEY=VALUE:KEY=VALUE.
""",
    """
  hopefear compare tag --train train.txt --test test.txt --learners perceptron,mira,sapo,crf \\
      --report taggers.html
  hopefear compare tag --train train.conllu --test test.conllu --epochs 5 \\
      --learners sapo:n=1,sapo:n=5,sapo:n=20 --report n.html --json
""",
)
_PREDICT = Words(
    """
A tagger writes the file as it is, comments included, with the labels as one more column (CoNLL-U:
in place of the column it was trained on; JSON lines: as one more list; CRFsuite files: the labels
alone). With --proba there are also the probability of each label, that of the span it belongs to
(_ outside spans) and, in a comment, that of all labels of the sentence; in CoNLL-U they go to MISC,
of JSON lines the output is that of --output-format json. With --nbest N every
sentence comes N times, best first, each behind a comment `# rank = K score = S probability = P`.
With --input-format text the input is any text: sentences and tokens are found by rules that follow
those of the training data; on a terminal they come in colours. From a pipe every sentence is
answered as soon as it is there.
""",
    """
  hopefear predict --model names.model --input-format text --input article.txt
  hopefear predict --model chunks.model --input new.txt --proba --output tagged.txt
  hopefear predict --model names.model --input new.txt --explain-token 3:7 --top 20
""",
)
_EVALUATE = Words(
    """
Score a tagger on labelled tokens: accuracy and, where labels have a scheme, precision, recall and
F1 of spans, equal to the conlleval script to the last digit, with a row for every type; accuracy
on words that training did not see, commonest mistakes, a 95 % confidence interval; with --proba
how well probabilities agree with accuracy.
""",
    "  hopefear evaluate --model chunks.model --data test.txt.gz --conlleval",
)
_REHEARSAL = Rehearsal(
    (
        "train tag --train words.txt --dev words.txt --epochs 2 --model m",
        "predict --model m --input words.txt --output out",
        "predict --model m --input words.txt --output out --proba",
        "predict --model m --input words.txt --output out --nbest 5",
        "predict --model m --input words.txt --output out --nbest 5 --proba",
        "evaluate --model m --data words.txt --report r.html",
        "serve --model m",
    ),
    (
        "train tag --train words.conllu --epochs 1 --model m",
        "train tag --train words.crfsuite --epochs 1 --model m",
        "train tag --train words.txt --epochs 1 --model m",
        "predict --model m --input words.txt --output out --explain",
        "inspect --model m",
    ),
)


class Tags(Surface):
    """The task ``tag``."""

    name, noun = "tag", "tags"
    title, unit = "Taggers compared", "sentences"
    rehearsal = _REHEARSAL
    words: ClassVar[Mapping[str, Words]] = {
        "train": _TRAIN,
        "compare": _COMPARE,
        "predict": _PREDICT,
        "evaluate": _EVALUATE,
        "inspect": Words(
            "", "  hopefear inspect --model chunks.model --json | python -m json.tool"
        ),
    }
    passes = (
        "by the size of the data: 30, fewer from 170,000 tokens on, 10 from 480,000 on; of batch "
        "learners, their max_iter; of networks 20"
    )
    metrics = (
        "f1, precision, recall, accuracy or sentence_accuracy (default: f1 where labels are "
        "spans, else accuracy)"
    )
    files = ("features", "vectors")
    texts = ("text",)
    no_parameters = ("column", "conlleval")
    jobs = 1
    outputs: ClassVar[Mapping[str, str]] = {
        "columns": "a token a line",
        "inline": "a sentence a line, [PER Ann Lee] left",
        "json": "an object a sentence, a line each, of text with the places of characters",
    }

    def data_options(self, group: argparse._ArgumentGroup, verb: str) -> None:
        options.one_format(
            group,
            self.name,
            "columns (a token a line, a blank line between sentences), conllu, crfsuite "
            '(label<TAB>attribute…), or json (lines of {"tokens": […], "tags": […]}); auto looks '
            "at the file's name and first token",
        )
        _columns(group)
        options.named(
            group,
            "--column",
            "the column of the labels, by name or number from 0 (default: the last one; of "
            "CoNLL-U, upos; of JSON, ner_tags, tags or labels)",
            "NAME",
        )
        group.add_argument(
            "--scheme",
            default="auto",
            metavar="NAME",
            help="tag scheme of the labels: bio, iob1, iobes, bilou, bmes, none, or auto (default: "
            "auto)",
        )
        _scheme_errors(group)
        options.named(
            group, "--convert", "learn the same spans in another scheme, such as iobes", "NAME"
        )
        options.on_error(group)

    def learning_options(
        self, group: argparse._ArgumentGroup, verb: str, shared: Callable[[], None]
    ) -> None:
        shared()
        options.networks(group)
        options.class_weights(
            group,
            "what it costs to miss each label, 1 unless named; for mira, nbest-mira, ssvm, arow",
        )

    def feature_options(self, parser: argparse.ArgumentParser, verb: str) -> None:
        group = parser.add_argument_group("features")
        options.named(
            group,
            "--features",
            "pos, chunking, ner, bioner, crfsuite-chunking, sapo-pos, sapo-chunking, sapo-bioner, "
            "or a template file, TOML or CRF++ (default: chunking for chunks of words with parts "
            "of speech, ner for other spans, pos for other labels); networks read words, and "
            "templates with -p wide=true",
            "SET|FILE",
        )
        options.allow_outside(group, "read lexicons that a template file names")
        options.whole(group, "--min-count", "keep features seen at least N times", 1)
        options.whole(
            group,
            "--hash-bits",
            "hash features to 2^N columns: bounded memory; the share of collisions is told",
        )
        options.flag(
            group,
            "--no-names",
            "leave the names of features out of the model: smaller, but nothing to inspect",
        )
        group = parser.add_argument_group("labels")
        group.add_argument(
            "--order",
            type=int,
            choices=(1, 2),
            default=1,
            help="how many labels before it a label depends on (default: 1)",
        )
        options.whole(
            group,
            "--segments",
            "label segments of up to N tokens as wholes, with features of their own, rather than "
            "tokens",
        )
        options.choice(
            group,
            "--search",
            ("astar", "list", "beam"),
            "how the n best are found: astar and list exactly, beam not",
        )
        options.whole(
            group,
            "--beam",
            "beginnings that --search beam keeps; more is slower and finds more",
            50,
        )
        options.choice(
            group,
            "--constraints",
            ("predict", "always", "never"),
            "when labels must be legal in their scheme: when tagging, in training too, or never",
        )
        if verb == "train":
            options.no_temperature(group)
        options.learning_jobs(group, ", of templates and of tagging held-out data")

    def use_options(
        self, verb: str, parser: argparse.ArgumentParser, **groups: argparse._ArgumentGroup
    ) -> None:
        if verb == "inspect":
            return
        _columns(groups["data"])
        tags = parser.add_argument_group("tags")
        if verb == "predict":
            self._predict_options(tags)
        else:
            options.named(
                groups["data"],
                "--column",
                "tags: column of the labels (default: as trained)",
                "NAME",
            )
            options.flag(
                groups["output"],
                "--conlleval",
                "tags: print what the conlleval script prints on standard output",
            )
            _scheme_errors(tags)
            options.flag(tags, "--proba", "calibration of the probabilities; of trees too")
            _unconstrained(tags)
        options.jobs(tags)
        options.device(tags)

    def _predict_options(self, tags: argparse._ArgumentGroup) -> None:
        options.named(
            tags,
            "--scheme",
            "write spans in this scheme: bio, iob1, iobes, bilou or bmes (default: as trained)",
            "NAME",
        )
        _unconstrained(tags)
        options.flag(
            tags,
            "--stream",
            "answer every sentence as soon as it is there, as from pipes, and hold no more",
        )
        tags.add_argument(
            "--explain-token",
            type=_place,
            metavar="I:J",
            help="explain token J of sentence I only, both from 1; of trees too",
        )

    def check(self, args: argparse.Namespace, verb: str) -> None:
        if verb == "evaluate" and args.json and args.conlleval:
            args.usage_error("--json and --conlleval would share standard output")
        if verb == "predict":
            explained = args.explain or args.explain_token
            if explained and (args.stream or args.output_format):
                args.usage_error(
                    "--explain reads the whole file and has a form of its own: leave out --stream "
                    "and --output-format"
                )
            if args.output_format == "inline" and (args.nbest or args.proba):
                args.usage_error(
                    "--output-format inline has no place for --nbest and --proba: say json or "
                    "columns"
                )
            if args.format == "text" and args.columns:
                args.usage_error("--columns belongs to a file of columns: text has none")

    def build(self, name: str, params: Mapping[str, Any], args: argparse.Namespace) -> Any:
        inputs = recipe(name, "tag").inputs(params, args.features)
        if args.features and hasattr(args, "learner") and not getattr(inputs, "templates", True):
            raise HopefearError(
                f"--features {args.features}: {name} reads words; leave it out, or add the "
                "templates by -p wide=true"
            )
        if "cost" not in params and args.class_weight is None:
            return super().build(name, params, args)
        from hopefear.tasks.tag.label_costs import check_class_weight, resolved_early

        learner = super().build(name, resolved_early(params), args)
        check_class_weight(params, name, args.class_weight)
        return learner

    # Files.

    def examples(
        self, which: str, args: argparse.Namespace, report: Any, prepared: Any = None
    ) -> Any:
        from dataclasses import replace

        from hopefear.data.token_examples import read_tokens

        if which == "train":
            self.check_memory(args)
            form, columns, column = args.format, args.columns, args.column
            if getattr(args, "cache", None) is not None:
                return lambda given: _cached(args, report, given)
        else:
            names = ("format", "columns", "column")
            form, columns, column = (prepared.reading[name] for name in names)
        how: dict[str, Any] = {"on_error": args.on_error, "report": report}
        examples = read_tokens(getattr(args, which), form, columns=columns, **how)
        return replace(examples.labelled(column), file=None)  # which is not written back

    def prepare(self, examples: Any, options: Mapping[str, Any]) -> Any:
        return examples(options) if callable(examples) else super().prepare(examples, options)

    def needs_all(self, args: argparse.Namespace) -> str | None:
        if args.min_count > 1:
            return f"--min-count {args.min_count}"
        return "--format crfsuite" if args.format == "crfsuite" else None

    def stream(self, args: argparse.Namespace, console: Any, report: Any) -> Incoming:
        from hopefear.data.files import ReadReport
        from hopefear.data.token_examples import read_tokens
        from hopefear.data.token_files import token_format
        from hopefear.tasks.tag.prepare import Options, Plan, StreamedSentences

        if option := self.needs_all(args):
            raise HopefearError(
                f"{option} belongs to data that is read as a whole; leave it out with --stream"
            )
        form = token_format(args.train, args.format, args.columns)
        if form == "crfsuite":
            raise HopefearError(
                f"--stream: {args.train} is a CRFsuite file, whose attributes would need a table "
                "that grows without end; give columns or CoNLL-U"
            )
        how: dict[str, Any] = {"columns": args.columns, "on_error": args.on_error}
        with head_of(args) as head:
            _whole_sentences(head, b"\n" if form == "json" else b"\n\n")
            start = read_tokens(head, form, **how).labelled(args.column)
            parameters = self.parameters(args)
            plan = Plan.of(start, Options.of(parameters))
        sentences = StreamedSentences(plan, start, args.hash_bits or BITS, args.classes)
        known(sentences.labels, args.train)

        def blocks() -> Iterator[Any]:
            for part in _parts(args, form, report, None):
                yield sentences.encoded(part, args.on_error, report)

        def held_out(path: str) -> Any:
            examples = read_tokens(path, form, **how).labelled(plan.reading["column"])
            return sentences.held_out(examples)

        first = sentences.encoded(start, "skip", ReadReport())
        return Incoming(plan.task(parameters), first, blocks, held_out, plan.reading)

    # Words about data and training.

    def scores(self, prepared: PreparedTags) -> tuple[Score, ...]:
        spans = () if prepared.task.scheme is None else (Score("F1", "f1"),)
        return (*spans, Score("accuracy", "accuracy"))

    def describe(self, prepared: PreparedTags) -> str:
        from hopefear.data.schemes import no_spans

        data, schemes = prepared.data, prepared.plan.schemes
        edges = f" and {data.features.edge_size:,} of edges" if data.features.edge_size else ""
        scheme = no_spans(data.labels)
        if schemes.source is not None:
            scheme = f"{schemes.source.upper()} spans"
        if schemes.model != schemes.source:
            scheme += f" learned as {str(schemes.model).upper()}"
        return (
            f"{data.source}: {len(data):,} sentences, {data.n_tokens:,} tokens, "
            f"{len(data.labels)} labels ({scheme}), {data.features.size:,} features{edges} "
            f"({prepared.feature_set})"
        )

    def facts(self, prepared: PreparedTags) -> dict[str, Any]:
        facts = super().facts(prepared)
        facts["examples"] = facts.pop("sentences")
        return facts

    def settings(self, prepared: PreparedTags, args: argparse.Namespace) -> dict[str, Any]:
        names = ("order", "search", "constraints", "class_weight")
        features, scheme = prepared.feature_set, prepared.task.scheme
        typed = {name: getattr(args, name) for name in names}
        return {"features": features, "scheme": scheme, **typed}

    def outcome(self, prepared: PreparedTags, trained: Any) -> dict[str, Any]:
        return {
            **prepared.sizes(),
            **({"skipped": prepared.skipped} if prepared.skipped else {}),
            "mended": prepared.mended,
            "edge_features": prepared.data.features.edge_size,
            "feature_set": prepared.feature_set,
            "scheme": prepared.task.scheme,
            "temperature": trained.model.temperature,
            "hash_collisions": _collisions(prepared.data.features),
        }

    def summary(
        self, prepared: PreparedTags, result: Mapping[str, Any], trained: Any
    ) -> dict[str, str | None]:
        hashed, fewer, text = result["hash_collisions"], prepared.words_alone(), None
        if fewer:
            names = (prepared.reading or {})["columns"]
            columns = ", ".join(name for name in names if name not in fewer)
            text = (
                f"the model cannot tag text, since features look at the column {columns}; "
                f"--columns {','.join(fewer)} makes one that can"
            )
        return {
            "hash collisions": None if hashed is None else f"{hashed:.2f} % of features",
            "temperature": f"{result['temperature']:.3g}",
            "text": text,
        }

    def comparison(self, prepared: PreparedTags, test: Any) -> dict[str, Any]:
        tokens, scheme = test.n_tokens, prepared.plan.schemes.source
        return {**super().comparison(prepared, test), "test_tokens": tokens, "scheme": scheme}

    def each_by(self, prepared: PreparedTags) -> tuple[str, bool]:
        return "accuracy", True  # a sentence may have no spans

    def shown(self, prepared: PreparedTags, test: Any, i: int) -> str:
        words = prepared.words.get(id(test))
        if words is None:
            return super().shown(prepared, test, i)
        tokens = words.ids[slice(*test.rows.starts[i : i + 2])]
        return f"{i + 1}: {' '.join(words.strings[k] for k in tokens)}"

    # What is asked of models.

    def answers(
        self, args: argparse.Namespace, model: Any, console: Any, report: Any
    ) -> Iterator[bytes]:
        from hopefear.data.files import is_pipe
        from hopefear.tasks.tag.answers import TagDecoder

        jobs, scheme = options.threads(args.jobs), args.scheme
        decoder = TagDecoder(model, not args.no_constraints, n_jobs=jobs, scheme=scheme)
        bit_by_bit = args.stream or args.format == "text" or is_pipe(args.input)
        for examples in (
            _arriving(model, args, report)
            if bit_by_bit
            else [_read_for(model, args.input, args, report)]
        ):
            if isinstance(examples, bytes):
                yield b"" if args.output_format in ("inline", "json") else examples
                continue
            pieces = _written(args, decoder.answers(examples, args.nbest, args.proba))
            # What has come at once goes at once: a system call a sentence would be slow.
            yield from [b"".join(pieces)] if bit_by_bit else pieces
        if n := decoder.unlimited:
            console.say(f"{n:,} sentences have no legal labels and were tagged without limits")

    def reasons(
        self, args: argparse.Namespace, model: Any, console: Any, report: Any
    ) -> Iterator[bytes]:
        from hopefear.cli.explain import told, wanted_tokens
        from hopefear.tasks.tag.answers import TagDecoder

        examples = _read_for(model, args.input, args, report)
        decoder, data = TagDecoder(model, not args.no_constraints), model.encode(examples)
        words = examples.words
        for i, t in wanted_tokens(data.rows.starts, data.source, args.explain_token):
            k = int(data.rows.starts[i]) + t
            word = None if words is None else words[k]
            place = {"sentence": i + 1, "token": t + 1, "line": examples.place(k)[1], "word": word}
            head = f"sentence {i + 1}, token {t + 1}" + ("" if word is None else f": {word}")
            reason: Any
            try:
                reason = decoder.explain(data, i, t)
            except HopefearError as error:
                if args.explain_token:
                    raise
                reason = str(error)
            yield told(head, place, reason, args)

    def evaluate(
        self, args: argparse.Namespace, model: Any, console: Any, report: Any
    ) -> dict[str, Any]:
        from hopefear.cli.guard import write_out
        from hopefear.tasks.tag.answers import TagDecoder
        from hopefear.tasks.tag.evaluation import evaluation
        from hopefear.tasks.tag.prepare import Schemes, encode_held_out

        reading = _reading(model)
        examples = _read_for(model, args.data, args, report)
        examples = examples.labelled(args.column or reading["column"])
        schemes = Schemes(reading["scheme"], model.scheme)
        how = model.features, model.labels, schemes, args.scheme_errors
        held = encode_held_out(examples, *how)
        jobs, scheme = options.threads(args.jobs), schemes.source
        decoder = TagDecoder(model, not args.no_constraints, n_jobs=jobs, scheme=scheme)
        found = decoder.answers(held.examples, data=held.data)
        score = Score("accuracy", "accuracy") if scheme is None else Score("F1", "f1")
        result = evaluation(found, held, args.proba, args.report is not None)
        if args.conlleval:
            write_out(result.chunks.report())
        sample = Sample(result.metric, result.chunks.statistics, score)
        facts = {"sample": sample, **result.facts}
        for name in ("accuracy", *(["f1"] if scheme is not None else [])):
            facts[f"{name}_interval"] = sample.interval(name)
        if args.report is not None:
            from hopefear.report.evaluation import ReportData

            facts["page"] = ReportData(result.judgement(), result.sizes(), _pairs(model))
        return facts

    def findings(self, facts: Mapping[str, Any]) -> tuple[dict[str, Any], list[Any]]:
        from hopefear.cli.console import in_percent

        spans_, unknown = facts["scheme"] is not None, facts.get("accuracy_unknown")
        calibration = facts.get("calibration", {})
        words = {
            "sentences": f"{facts['sentences']:,} with {facts['tokens']:,} tokens",
            "F1": in_percent(facts, "f1") if spans_ else None,
            "precision": in_percent(facts, "precision") if spans_ else None,
            "recall": in_percent(facts, "recall") if spans_ else None,
            "accuracy": in_percent(facts, "accuracy"),
            "whole sentences": in_percent(facts, "sentence_accuracy"),
            "unknown words": None
            if unknown is None
            else f"{unknown:.2f} % of {facts['unknown_words']:,} right, of the known "
            f"{facts['accuracy_known']:.2f} %",
            "calibration": ", ".join(
                f"{key} {bins['ece']:.2f} %" for key, bins in calibration.items() if bins
            )
            + " off (ECE)"
            if calibration
            else None,
            "non-zeros": f"{facts['nnz']:,}",
        }
        if spans_:
            errors = (f"{name} {n:,}" for name, n in facts["span_errors"].items())
            words["spans wrong by"] = ", ".join(errors)
        what = "type" if spans_ else "label"
        rows = [
            [
                name,
                *(f"{row[key]:.2f}" for key in ("precision", "recall", "f1")),
                *(row[key] for key in ("gold", "found", "correct")),
            ]
            for name, row in facts[f"{what}s"].items()
        ]
        heads = [what, "precision", "recall", "F1", "gold", "found", "correct"]
        return words, [(f"{what.capitalize()}s", heads, rows)]

    def show_scores(self, console: Any, facts: Mapping[str, Any]) -> None:
        from hopefear.cli.console import BEST_SCORES, long_table, show_confusion

        words, [(title, heads, rows)] = self.findings(facts)
        console.pairs(words)
        long_table(console, heads, rows, _SHOWN, title.lower(), BEST_SCORES)
        show_confusion(console, facts)
        console.say(f"\n{facts['signature']}\n{facts['model_signature']}")

    def model_facts(self, model: Any, top: int) -> dict[str, Any]:
        from hopefear.core.interfaces import n_weights

        features, header = model.features, model.features.to_header()
        header = header.get("tokens", header)  # of segments
        names = ("order", "scheme", "constrained", "search", "temperature")
        facts: dict[str, Any] = {
            "labels": list(model.labels),
            **{name: getattr(model, name) for name in names},
            "segments": getattr(features, "longest", None),
            "features": features.size,
            "edge_features": features.edge_size,
            "feature_kind": features.kind,
            "feature_set": header.get("source"),
            "templates": [text for text, *_ in header.get("templates", ())],
            "hash_collisions": _collisions(features),
            "coordinates": n_weights(model.structure()),
        }
        if hasattr(model.predictor, "layers"):
            layers = model.predictor.layers()
            size = sum(math.prod(shape) for shape in layers.values())
            facts |= {"coordinates": size, "layers": layers}
            facts["transitions"] = _transitions(model, top)
        elif model.predictor.linear:
            facts |= {
                "top": model.top(top),
                "bottom": model.bottom(top),
                "transitions": _transitions(model, top),
                "edges": model.edge_top(top),
                "triples": model.triples(top),
            }
        return facts

    def facts_in_words(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        from hopefear.cli.console import labels_in_words

        edges = f" and {facts['edge_features']:,} of edges" if facts["edge_features"] else ""
        origin, shared = facts["feature_set"] or facts["feature_kind"], facts["hash_collisions"]
        scheme = "none: any labels may follow each other"
        if facts["scheme"] is not None:
            free = "" if facts["constrained"] else ", which outputs need not follow"
            scheme = facts["scheme"] + free
        structure = {"chain": f"order {facts['order']}, search {facts['search']}"}
        if facts["segments"] is not None:
            structure = {"segments": f"up to {facts['segments']} tokens"}
        return {
            "labels": labels_in_words(facts["labels"]),
            "scheme": scheme,
            **structure,
            "temperature": f"{facts['temperature']:.3g}",
            "features": f"{facts['features']:,}{edges} ({origin})",
            "hash collisions": None if shared is None else f"{shared:.2f} %",
        }

    def show_weights(self, console: Any, facts: Mapping[str, Any]) -> None:
        from hopefear.cli.console import weights_table

        if facts["templates"]:
            console.say("\ntemplates\n  " + "\n  ".join(facts["templates"][:_TEMPLATES]))
            if len(facts["templates"]) > _TEMPLATES:
                console.say(f"  … and {len(facts['templates']) - _TEMPLATES} more")
        if "layers" in facts:
            console.say("\nlayers")
            rows = [[name, " × ".join(map(str, shape))] for name, shape in facts["layers"].items()]
            console.table(["weights", "shape"], rows)
        for name, pairs in facts.get("transitions", {}).items():
            weights_table(console, f"transitions {name}", ["from", "to"], pairs)
        if "top" not in facts:
            return
        heads = ["two before", "before", "label"]
        weights_table(console, "label triples, heaviest", heads, facts["triples"])
        heads = ["feature", "from", "to"]
        weights_table(console, "features of label pairs, heaviest", heads, facts["edges"])
        for name, features in facts["top"].items():
            # What speaks for the label, then what speaks against it, the strongest last.
            weights_table(console, name, ["feature"], [*features, *facts["bottom"][name][::-1]])


SURFACE = Tags()


def _columns(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--columns",
        type=options.names,
        metavar="NAME,…",
        help="tags: names of the columns of a file of columns (default: word, label; of three, "
        "word, pos, label; of more, word, 1, 2, …, label)",
    )


def _scheme_errors(group: argparse._ArgumentGroup) -> None:
    options.choice(
        group,
        "--scheme-errors",
        ("begin", "skip", "raise"),
        "labels that the scheme forbids, such as I-LOC behind O: take them as the beginning of a "
        "span, leave their sentences out, or stop",
    )


def _unconstrained(group: argparse._ArgumentGroup) -> None:
    options.flag(group, "--no-constraints", "also allow label sequences that the scheme forbids")


def _place(text: str) -> tuple[int, int]:
    """Sentence and token, from 1.

    >>> _place("3:7")
    (3, 7)
    """
    sentence, colon, token = text.partition(":")
    if not (colon and sentence.isdecimal() and token.isdecimal() and int(sentence) * int(token)):
        raise argparse.ArgumentTypeError(
            f"expected SENTENCE:TOKEN, both from 1, such as 3:7, found {text!r}"
        )
    return int(sentence), int(token)


def _whole_sentences(path: str, mark: bytes) -> None:
    """Cut a file behind the last mark of a sentence's end, where it has one."""
    with open(path, "rb+") as file:
        lines = file.read()
        end = lines.rfind(mark)
        if end > 0:
            file.truncate(end + len(mark))


def _parts(
    args: argparse.Namespace, form: str, report: Any, piece_bytes: int | None
) -> Iterator[TokenExamples]:
    """Yields the labelled tokens of ``--train`` piece by piece."""
    from hopefear.data.token_examples import token_parts

    how: dict[str, Any] = {"columns": args.columns, "on_error": args.on_error, "report": report}
    for part in token_parts(args.train, format=form, piece_bytes=piece_bytes, **how):
        yield part.labelled(args.column)


def _cached(args: argparse.Namespace, report: Any, parameters: Mapping[str, Any]) -> PreparedTags:
    """The tokens of ``--train`` as a cache has them."""
    from hopefear.cli.console import Console
    from hopefear.data.files import ReadReport
    from hopefear.data.token_files import token_format
    from hopefear.tasks.tag.prepare import cached

    form = token_format(args.train, args.format, args.columns)
    if form == "crfsuite":
        raise HopefearError(
            f"--cache {args.cache}: {args.train} is a CRFsuite file, and caches are made of "
            "columns and CoNLL-U; leave it out"
        )

    def beginning(first: TokenExamples) -> TokenExamples:
        if args.train == "-":  # which is not read twice
            return first
        return next(_parts(args, form, ReadReport(), LOOK_BYTES))

    names = ("format", "columns", "column", "on_error", "encoding")
    return cached(
        args.cache,
        args.train,
        parameters,
        lambda: _parts(args, form, report, PIECE_BYTES),
        beginning,
        {name: getattr(args, name) for name in names},
        report,
        Console(args.quiet).say,
    )


def _reading(model: SequenceModel) -> Mapping[str, Any]:
    """Returns how the training data of a model was written; models made elsewhere may not say."""
    plain = {"format": "auto", "columns": None, "column": None, "scheme": model.scheme}
    return {**plain, **model.about.get("reading", {})}


def _read_for(
    model: SequenceModel, path: str, args: argparse.Namespace, report: Any
) -> TokenExamples:
    """Returns a file for a model: its columns bear the names they had in training.

    Columns behind the last that features need may be missing, as labels are in new text.
    """
    from hopefear.data.token_examples import read_tokens, text_parts

    if args.format == "text":
        return next(text_parts(path, model.tokenizer, model.text_columns(), whole=True))
    form, columns, optional = _as_trained(model, path, args)
    options: dict[str, Any] = {"on_error": args.on_error, "report": report}
    return read_tokens(path, form, columns=columns, optional=optional, **options)


def _arriving(
    model: SequenceModel, args: argparse.Namespace, report: Any
) -> Iterator[TokenExamples | bytes]:
    """Yields ``--input`` bit by bit, as sentences come; bytes where there are none to be tagged."""
    from hopefear.data.token_examples import of_file, text_parts
    from hopefear.data.token_stream import read_parts

    if args.format == "text":
        yield from text_parts(args.input, model.tokenizer, model.text_columns(), whole=False)
        return
    form, columns, optional = _as_trained(model, args.input, args)
    options: dict[str, Any] = {"on_error": args.on_error, "report": report}
    for part in read_parts(args.input, format=form, columns=columns, optional=optional, **options):
        if part.file is not None:
            yield of_file(part.file)
        elif form != "crfsuite":
            yield part.text


def _as_trained(
    model: SequenceModel, path: str, args: argparse.Namespace
) -> tuple[str, Sequence[str] | None, int]:
    """Format, names of columns, and how many of the last may be missing."""
    from hopefear.data.sources import Source
    from hopefear.data.token_files import named_tokens
    from hopefear.data.token_objects import begins_with_object

    reading = _reading(model)
    attributes = model.features.kind == "attributes"
    form = args.format
    if form == "auto":
        form = "crfsuite" if attributes else named_tokens(path) or reading["format"]
        if not attributes and form in ("columns", "json"):
            line = next(Source(path).look(), b"")
            form = "json" if begins_with_object(line) else "columns"
    if attributes != (form == "crfsuite"):
        kind = "attributes of CRFsuite files" if attributes else "templates over columns"
        raise HopefearError(f"{path}: {args.model} has features from {kind}, and this is {form}")
    columns, optional = args.columns, 0
    if form == "columns":
        columns = columns or reading["columns"] or None
    if columns is not None:
        needed = [_position(name, columns) for name in model.features.needs]
        optional = len(columns) - 1 - max(needed, default=0)
    return form, columns, optional


def _position(name: str, columns: Sequence[str]) -> int:
    """Where a column stands; it may be called by its number, and what is missing is told later."""
    if name in columns:
        return columns.index(name)
    return min(int(name), len(columns) - 1) if name.isdecimal() else 0


def _written(args: argparse.Namespace, found: TagAnswers) -> Iterator[bytes]:
    """Answers in the format that is asked for."""
    from hopefear.data.token_objects import with_labels
    from hopefear.data.write_tokens import repeated, with_columns

    form, proba, given = args.output_format, args.proba, found.examples.form
    coloured = is_coloured(args.output)
    if form is None and given == "text" and coloured and not (args.nbest or proba):
        form = "inline"
    if form == "inline":
        return _lines(found, coloured)
    if form == "json" or (form is None and given == "json" and (args.nbest or proba)):
        return _objects(found)
    if given == "text" or (given == "json" and form == "columns"):
        return _token_lines(found, proba, texts=True)
    file, name = found.examples.file, _reading(found.model)["column"] or "label"
    if file is None:
        return _token_lines(found, proba, texts=False)
    if given == "json":
        return with_labels(file, name, found.labels)
    if found.counts is not None:
        file = repeated(file, found.counts)
    return with_columns(file, dict(_table(found, name, proba)), comments=_comments(found, proba))


def _table(found: TagAnswers, name: str, proba: bool) -> Iterator[tuple[str, Any]]:
    """The columns to write, by name."""
    yield name, found.labels
    if not proba:
        return
    yield "Probability", [f"{p:.4f}" for p in found.token_probabilities.tolist()]
    if (table := found.spans) is not None:
        column = ["_"] * len(found.tags)
        places = zip(table.first.tolist(), table.after.tolist(), strict=True)
        for (first, after), p in zip(places, found.span_probabilities.tolist(), strict=True):
            column[first:after] = [f"{p:.4f}"] * (after - first)
        yield "SpanProbability", column


def _comments(found: TagAnswers, proba: bool) -> list[list[str]] | None:
    """Lines before each output."""
    if found.counts is not None:
        facts = zip(found.ranks, found.scores, found.probabilities, strict=True)
        return [[f"rank = {k} score = {s:.6g} probability = {p:.6g}"] for k, s, p in facts]
    return [[f"probability = {p:.6g}"] for p in found.probabilities] if proba else None


def _token_lines(found: TagAnswers, proba: bool, texts: bool) -> Iterator[bytes]:
    """A token a line: its label and what is said of it between tabs, behind its text if wanted."""
    table = [column for _, column in _table(found, "label", proba)]
    table[0] = table[0].texts()
    comments, words = _comments(found, proba), found.words()
    for i, (start, end) in enumerate(pairwise(found.starts.tolist())):
        columns = [column[start:end] for column in table]
        rows = zip(*([next(words), *columns] if texts else columns), strict=True)
        head = [f"# {line}" for line in comments[i]] if comments else []
        yield ("\n".join([*head, *map("\t".join, rows)]) + "\n\n").encode()


def _lines(found: TagAnswers, coloured: bool) -> Iterator[bytes]:
    """A sentence a line, with brackets around its spans, or in colours."""
    from hopefear.data.sequences import Sentences
    from hopefear.tasks.tag.answers import inline

    if not isinstance(found.examples.content, Sentences):
        raise HopefearError(
            f"{found.examples.source} has attributes and no words: --output-format inline is for "
            "columns, CoNLL-U and text"
        )
    table = found.spans
    paint = painter(found.model.labels, table is not None) if coloured else None
    labels, sentences = found.labels.texts(), found.sentences.tolist()
    bounds = pairwise(found.starts.tolist())
    for i, ((start, end), words) in enumerate(zip(bounds, found.words(), strict=True)):
        spans = None if table is None else table.of(found.starts, i)
        if found.examples.characters is not None and paint is not None and spans is not None:
            line = _painted(found.examples, sentences[i], spans, paint)
        else:
            line = inline(words, labels[start:end], spans, paint)
        yield f"{line}\n".encode()


def _painted(
    examples: TokenExamples, i: int, spans: Sequence[tuple[int, int, str]], paint: Paint
) -> str:
    """Sentence ``i`` as it stands in the text, in one line, its spans in colours."""
    assert examples.characters is not None
    text, bounds = examples.characters.text, examples.characters.bounds[i]
    parts, done = [], bounds[0][0]
    for first, after, label in spans:
        a, b = bounds[first][0], bounds[after - 1][1]
        parts += [_BLANKS.sub(" ", text[done:a]), paint(_BLANKS.sub(" ", text[a:b]), label)]
        done = b
    return "".join([*parts, _BLANKS.sub(" ", text[done : bounds[-1][1]])])


def painter(labels: Sequence[str], spans: bool) -> Paint:
    """Returns colours for a terminal, one a kind of span; other labels stand dim behind words.

    >>> painter(["O", "B-X"], True)("Ann", "X")
    '\\x1b[1;32mAnn\\x1b[0;2m X\\x1b[0m'
    """
    if not spans:
        return lambda word, label: f"{word}\x1b[2m/{label}\x1b[0m"
    kinds = sorted({label.partition("-")[2] for label in labels if "-" in label})
    colour = {kind: _COLOURS[i % len(_COLOURS)] for i, kind in enumerate(kinds)}
    return lambda text, kind: f"\x1b[1;{colour.get(kind, 32)}m{text}\x1b[0;2m {kind}\x1b[0m"


def is_coloured(output: str) -> bool:
    """Whether an output is a terminal that shows colours."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return output == "-" and not plain and sys.stdout.isatty()


def _objects(found: TagAnswers) -> Iterator[bytes]:
    """A JSON object an output, with what else the object of its sentence has, where it is one."""
    from hopefear.data.token_objects import other_fields

    file, fields = found.examples.file, None
    if found.examples.form == "json" and file is not None:
        fields, name = other_fields(file), _reading(found.model)["column"] or "label"
    for i, record in zip(found.sentences.tolist(), found, strict=True):
        given = {} if fields is None else {**fields[i], name: record.labels}
        line = json.dumps({**given, **record.as_dict()}, ensure_ascii=False)
        yield f"{line}\n".encode()


def _pairs(model: SequenceModel) -> tuple[Sequence[str], list[list[float]]] | None:
    """Weights of label pairs, where there are any."""
    if not (model.predictor.linear or hasattr(model.predictor, "transitions")):
        return None
    table = model.transitions()
    return (model.labels, table.astype(float).tolist()) if table.any() else None


def _transitions(model: SequenceModel, top: int) -> dict[str, list[tuple[str, str, float]]]:
    """Pairs of labels that the model seeks, and pairs that it shuns, strongest first."""
    import numpy as np

    table = model.transitions()
    order = np.argsort(table, axis=None, kind="stable")

    def pairs(which: Any, sign: float) -> list[tuple[str, str, float]]:
        places = zip(*np.unravel_index(which[:top], table.shape), strict=True)
        return [
            (model.labels[a], model.labels[b], float(table[a, b]))
            for a, b in places
            if sign * table[a, b] > 0.0
        ]

    return {"sought": pairs(order[::-1], 1.0), "shunned": pairs(order, -1.0)}


def _collisions(features: Any) -> float | None:
    """Returns the percent of hashed features that share a column; None without hashing."""
    return 100.0 * features.collisions if getattr(features, "hash_bits", None) else None
