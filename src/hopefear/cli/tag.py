"""Tags on the command line: words, options and what they ask for.

Files are read by :mod:`hopefear.cli.tag_input` and written by :mod:`hopefear.cli.tag_output`;
learning and answering are in :mod:`hopefear.tasks.tag`. Heavy imports stand inside methods, since
help reads this file, too.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from hopefear.cli import options
from hopefear.cli.streaming import BITS, Incoming, head_of, known
from hopefear.cli.surface import Rehearsal, Sample, Score, Words
from hopefear.cli.tag_input import (
    arriving,
    cached_tags,
    parts,
    read_for,
    reading_of_model,
    whole_sentences,
)
from hopefear.cli.tag_output import ShownTags, collisions, pairs_of_labels, written
from hopefear.errors import HopefearError
from hopefear.tasks import recipe

if TYPE_CHECKING:
    from hopefear.tasks.tag.prepare import PreparedTags

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


class Tags(ShownTags):
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
                return lambda given: cached_tags(args, report, given)
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
        from hopefear.tasks.tag.prepare import Options, Plan
        from hopefear.tasks.tag.streamed import StreamedSentences

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
            whole_sentences(head, b"\n" if form == "json" else b"\n\n")
            start = read_tokens(head, form, **how).labelled(args.column)
            parameters = self.parameters(args)
            plan = Plan.of(start, Options.of(parameters))
        sentences = StreamedSentences(plan, start, args.hash_bits or BITS, args.classes)
        known(sentences.labels, args.train)

        def blocks() -> Iterator[Any]:
            for part in parts(args, form, report, None):
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
            "hash_collisions": collisions(prepared.data.features),
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
            arriving(model, args, report)
            if bit_by_bit
            else [read_for(model, args.input, args, report)]
        ):
            if isinstance(examples, bytes):
                yield b"" if args.output_format in ("inline", "json") else examples
                continue
            pieces = written(args, decoder.answers(examples, args.nbest, args.proba))
            # What has come at once goes at once: a system call a sentence would be slow.
            yield from [b"".join(pieces)] if bit_by_bit else pieces
        if n := decoder.unlimited:
            console.say(f"{n:,} sentences have no legal labels and were tagged without limits")

    def reasons(
        self, args: argparse.Namespace, model: Any, console: Any, report: Any
    ) -> Iterator[bytes]:
        from hopefear.cli.explain import told, wanted_tokens
        from hopefear.tasks.tag.answers import TagDecoder

        examples = read_for(model, args.input, args, report)
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

        reading = reading_of_model(model)
        examples = read_for(model, args.data, args, report)
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

            facts["page"] = ReportData(result.judgement(), result.sizes(), pairs_of_labels(model))
        return facts


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
