"""Classes on the command line: words, options and files."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from hopefear.cli import options
from hopefear.cli.classify_output import ShownClasses, cells_of, labels_of
from hopefear.cli.surface import Rehearsal, Sample, Score, Words, load_model
from hopefear.errors import HopefearError

_TRAIN = Words(
    """
Train a model on a file of labelled lines and write it as one file. With held-out data (--dev)
every pass is scored on it, training stops when that no longer improves, and the best model is
kept. The same data, options and seed give the same model, byte for byte, also when the run was
killed and resumed.
""",
    """
  hopefear train classify --train train.svm --dev dev.svm --model news.model
  hopefear train classify --train reviews.tsv.gz --ngrams 2 --learner vrda -p l1=1e-5 \\
      --epochs 10 --checkpoint state/ --resume --run runs/vrda --model reviews.model
  hopefear train classify --train reviews.tsv.gz --ngrams 2 --chars 2-5 --values nb \\
      --model reviews.model
""",
)
_COMPARE = Words(
    """
Train several learners on the same data, test them on the same test data and show error, F1,
sparsity and speed in one table, with a test of whether each is really worse than the best. With
held-out data (--dev) each keeps its best pass on it, without it the last one. The report is one
HTML page with learning curves. A learner may bring parameters: NAME:KEY=VALUE:KEY=VALUE.
""",
    """
  hopefear compare classify --train train.svm --test test.svm \\
      --learners perceptron,vrda,adagrad-rda
  hopefear compare classify --train a.tsv --test b.tsv --ngrams 2 --epochs 3 \\
      --learners rda:l1=1e-5,rda:l1=1e-4,vrda:averaging=voted --report rda.html --json
""",
)
_PREDICT = Words(
    """
A classifier prints one label for every line, in order. The file is read in blocks, so it may be
of any size and may come from a pipe; labels in it are ignored and may be missing. With --proba the
label is followed by CLASS:PROBABILITY for every class; with --nbest N a line holds the N best
classes as CLASS:SCORE, best first, or as CLASS:PROBABILITY when both are given. Columns are
separated by tabs. With --unknown P the label is `unknown`, or what --unknown-label says, where no
class is as probable as P. With --output-format json it is an object a line, into which fields go
where the file has objects; with --output-format columns the rows of a CSV file, or lines, come as
they are with columns more: label, probability. --input-format text takes every line for a text.
""",
    """
  hopefear predict --model news.model --input new.svm --output labels.txt
  zcat reviews.tsv.gz | hopefear predict --model reviews.model --input - --nbest 3 --proba
  hopefear predict --model intents.model --input new.txt --input-format text --unknown 0.4
  hopefear predict --model reviews.model --input new.csv --output-format columns --output out.csv
""",
)
_EVALUATE = Words(
    """
Score a classifier on labelled lines: accuracy, error, precision, recall and F1 in percent, log
loss, Brier score and expected calibration error (ECE) of its probabilities, a 95 % confidence
interval, and a row for every class. Examples of classes that training lacked are mistakes.
With two classes precision, recall and F1 are those of the second one, with more they are means
over classes. The file is read in blocks and may be of any size.
""",
    """
  hopefear evaluate --model news.model --data test.svm
  hopefear evaluate --model news.model --data test.svm.xz --json | python -m json.tool
""",
)
_REHEARSAL = Rehearsal(
    (
        "train classify --train two.svm --epochs 2 --model m",
        "train classify --train two.svm --dev two.svm --epochs 2 --model m",
        "predict --model m --input two.svm --output out",
        "predict --model m --input two.svm --output out --proba",
        "evaluate --model m --data two.svm --report r.html",
        "serve --model m",
        "train classify --train six.svm --epochs 2 --model m",
        "train classify --train six.svm --dev six.svm --epochs 2 --model m",
        "predict --model m --input six.svm --output out",
        "predict --model m --input six.svm --output out --proba",
        "evaluate --model m --data six.svm --report r.html",
        "serve --model m",
    ),
    (
        "train classify --train texts.tsv --epochs 2 --model m",
        "train classify --train texts.tsv --dev texts.tsv --epochs 2 --model m",
        "predict --model m --input texts.tsv --output out",
        "serve --model m",
        "inspect --model m",
    ),
)

_WORDS = 30  # features that stand for an example
_CELLS = 1 << 28  # bytes of statistics that an interval may take
# To read of a stream at a time, at most. Of texts a bad line takes those before it in its block
# along; of svmlight it does not, and threads that parse and learn meet less often where blocks are
# large.
STREAM_BYTES = {"text": 1 << 16, "svmlight": 1 << 21}


class Classes(ShownClasses):
    """The task ``classify``."""

    name, noun = "classify", "classes"
    rehearsal = _REHEARSAL
    words: ClassVar[Mapping[str, Words]] = {
        "train": _TRAIN,
        "compare": _COMPARE,
        "predict": _PREDICT,
        "evaluate": _EVALUATE,
        "inspect": Words("", "  hopefear inspect --model news.model --top 20"),
    }
    passes = "5, of texts 10; of batch learners, their max_iter"
    metrics = "accuracy, f1, precision, recall, log_loss, … (default: accuracy)"
    files = ("names", "comparator", "weights")
    no_parameters = ("names", "weights", "text_column", "label_column", "comparator")
    jobs = 1
    texts = ("text",)
    outputs: ClassVar[Mapping[str, str]] = {
        "labels": "one a line",
        "columns": "the rows of the file, with columns more",
        "json": "an object a line; those of the file, with fields more",
    }

    def data_options(self, group: argparse._ArgumentGroup, verb: str) -> None:
        options.one_format(
            group,
            self.name,
            "svmlight (label id:value …), tsv (label<TAB>text), csv (with a header), json (an "
            "object a line), fasttext (__label__x text) or vw (Vowpal Wabbit); auto looks at the "
            "file's name and first line",
        )
        _columns(group)
        options.flag(
            group,
            "--many-classes",
            "take labels for classes also where there is one for every second line, or many have a "
            "fraction, as targets of regression",
        )
        options.on_error(group)
        if verb == "train":
            options.named(
                group, "--weights", "weights of the examples of --train, one number a line"
            )

    def learning_options(
        self, group: argparse._ArgumentGroup, verb: str, shared: Callable[[], None]
    ) -> None:
        options.class_weights(group, "weight of the examples of each class")
        shared()
        options.learning_jobs(
            group,
            ", and rarely pays where search is as cheap as here",
            "1, but one a core to parse svmlight",
        )
        if verb == "train":
            options.flag(
                group,
                "--no-temperature",
                "do not fit the temperature that makes probabilities of scores, which takes "
                "up to as long again as training where there is no --dev",
            )

    def feature_options(self, parser: argparse.ArgumentParser, verb: str) -> None:
        group = parser.add_argument_group("features")
        whole = ", of texts in caches and streams"
        group.add_argument(
            "--ngrams",
            type=options.auto_or(options.at_least(0)),
            default="auto",
            metavar="N",
            help="texts: longest n-gram of words, 1 to 3; 0 for none but --chars (default: 2; 1"
            f"{whole})",
        )
        group.add_argument(
            "--chars",
            type=_lengths,
            default="auto",
            metavar="A-B",
            help="texts: n-grams of A to B characters too, within words whose edges are marked; 0 "
            f"for none (default: 2-5; 0{whole})",
        )
        group.add_argument(
            "--lowercase",
            action=argparse.BooleanOptionalAction,
            default=True,
            help="texts: fold letters to lower case (default: --lowercase)",
        )
        group.add_argument(
            "--marks",
            action=argparse.BooleanOptionalAction,
            default="auto",
            help="texts: count every punctuation mark as a word, not only ! ? $ (default: --marks; "
            f"--no-marks{whole})",
        )
        options.whole(group, "--min-count", "texts: keep n-grams seen in at least N lines", 1)
        group.add_argument(
            "--max-share",
            type=options.fraction,
            default=1.0,
            metavar="SHARE",
            help="texts: leave out n-grams that more than this share of the lines have, such as "
            "0.5 (default: 1)",
        )
        options.whole(
            group, "--hash-bits", "texts: hash n-grams to 2^N columns: bounded memory, no names"
        )
        options.choice(
            group,
            "--values",
            ("auto", "counts", "presence", "log", "tfidf", "nb"),
            "values as they are, 1 for each present, log(1 + value), values times inverse document "
            "frequencies, or 1 times how much a feature tells of a class (NB-SVM); auto is tfidf "
            "for texts but those in caches and streams, counts for all else",
        )
        group.add_argument(
            "--nb-share",
            type=options.number_from(0.0, below=1.0),
            default=0.0,
            metavar="SHARE",
            help="with --values nb, the share of naive Bayes in the weights when they are learned, "
            "such as 0.6 (default: 0)",
        )
        options.choice(
            group,
            "--norm",
            ("auto", "l2", "none"),
            "l2 divides every row by its length, so that one set of rates suits all data; auto is "
            "l2, but none for at most 50 columns that most rows fill",
        )
        group.add_argument(
            "--intercept",
            type=options.auto_or(options.number_from(0.0)),
            default="auto",
            metavar="VALUE",
            help="value of a constant feature: auto (that of a typical feature), a "
            "number, or 0 for none (default: auto)",
        )
        options.named(
            group, "--names", "svmlight: names of the features, line i for id i; kept in the model"
        )

    def use_options(
        self, verb: str, parser: argparse.ArgumentParser, **groups: argparse._ArgumentGroup
    ) -> None:
        if verb != "inspect":
            _columns(groups["data"])
        if verb == "predict":
            group = groups["output"]
            group.add_argument(
                "--unknown",
                type=options.fraction,
                metavar="P",
                help="classes: print --unknown-label where no class is as probable as P",
            )
            options.named(
                group,
                "--unknown-label",
                "what --unknown prints (default: unknown)",
                "LABEL",
                default="unknown",
            )

    def last_options(self, parser: argparse.ArgumentParser, verb: str) -> None:
        group = options.bounds(parser)
        options.named(
            group, "--comparator", "take the weights of this model as comparator instead", "MODEL"
        )

    def check(self, args: argparse.Namespace, verb: str) -> None:
        if getattr(args, "nb_share", 0.0) and args.values != "nb":
            args.usage_error("--nb-share belongs to --values nb")
        if verb == "predict" and args.unknown is None and args.unknown_label != "unknown":
            args.usage_error("--unknown-label belongs to --unknown P")
        if verb == "predict" and args.unknown is not None and (args.nbest or args.explain):
            args.usage_error("--unknown is about single labels: leave out --nbest and --explain")
        if verb == "train" and args.comparator and not args.bounds:
            args.usage_error("--comparator belongs to --bounds")

    # Files.

    def examples(
        self, which: str, args: argparse.Namespace, report: Any, prepared: Any = None
    ) -> Any:
        from hopefear.cli.console import Console
        from hopefear.data.cached_examples import cached_examples
        from hopefear.data.sidecars import named, weighted
        from hopefear.tasks.classify.prepare import Examples, grams_of

        path, data = getattr(args, which), getattr(prepared, "data", None)
        if data is None:
            self.check_memory(args)
        known = {} if data is None else {"features": data.features, "classes": data.classes}
        file, folder = _file(path, args, report, **known), getattr(args, "cache", None)
        if data is None and folder is not None and file.message:
            raise HopefearError(f"--cache {folder} is for svmlight and tsv, and {file.message}")
        how = {"on_error": args.on_error, "report": report}
        how["n_jobs"] = options.threads(getattr(args, "jobs", None))

        def read(settled: Mapping[str, Any]) -> Any:
            counted = grams_of(settled) if file.kind == "text" or folder is not None else {}
            if folder is not None:
                counted |= {name: settled[name] for name in ("values", "norm")}
                more = {"encoding": args.encoding, "say": Console(args.quiet).say}
                rows = cached_examples(path, folder, format=file.kind, **how, **more, **counted)
            else:
                rows = file.read(**how, **counted)
            if args.names:
                rows = named(rows, args.names)
            if getattr(args, "weights", None):
                rows = weighted(rows, args.weights, report.skipped)
            return rows

        return Examples(
            source=str(path),
            read=read,
            like=lambda features, classes: file.read(features=features, classes=classes, **how),
            texts=file.kind == "text",
            held="memory" if folder is None else "cache",
        )

    def needs_all(self, args: argparse.Namespace) -> str | None:
        from hopefear.data.sparse import MEASURED

        whole = {
            f"--values {args.values}": args.values in MEASURED,
            "--class-weight balanced": args.class_weight == "balanced",
            "--weights": args.weights is not None,
            "--names": args.names is not None,
            f"--min-count {args.min_count}": args.min_count > 1,
            f"--max-share {args.max_share}": args.max_share < 1.0,
            "--format vw": args.format == "vw",
        }
        return next((option for option, given in whole.items() if given), None)

    def stream(self, args: argparse.Namespace, console: Any, report: Any) -> Any:
        from hopefear.cli.streaming import BITS, Incoming, head_of, known
        from hopefear.data.files import ReadReport
        from hopefear.data.labels import check_classes
        from hopefear.features import HashedFeatures, IdentityFeatures
        from hopefear.features.ngrams import PLAIN, Grams, settled
        from hopefear.tasks.classify.prepare import Examples, grams_of, prepare

        if option := self.needs_all(args):
            raise HopefearError(
                f"{option} is measured on, or belongs to, data that is read as a whole; leave it "
                "out with --stream"
            )
        file = _file(args.train, args, ReadReport())
        if file.kind == "vw":
            raise HopefearError(
                f"--stream: {args.train} has the names of Vowpal Wabbit, whose table would grow "
                "without end; give svmlight or texts"
            )
        parameters = self.parameters(args)
        bits, texts = parameters.setdefault("hash_bits", BITS), file.kind == "text"
        features: Any = IdentityFeatures(1 << bits)
        if texts:
            chosen = grams_of(settled(parameters, PLAIN))
            names = ("ngrams", "chars", "lowercase", "marks")
            features = HashedFeatures(Grams(*(chosen[name] for name in names)), bits)
        elif args.hash_bits is None:
            del parameters["hash_bits"]
        args.format, how = file.format, {"on_error": args.on_error}
        with head_of(args) as head:
            report_of_head = ReadReport()
            hashed: dict[str, Any] = {"hash_bits": 16} if texts else {}
            seen = _file(head, args, report_of_head).read(**how, **hashed)
            classes = args.classes
            if classes is None:
                classes = seen.classes
                check_classes(args.train, classes, len(seen), args.many_classes)
            known(classes, args.train)
            like = {"features": features, "classes": tuple(classes)}
            first = _file(head, args, report_of_head, **like).read(**how, **like)
        first.source = str(args.train)
        given = Examples(
            source=first.source,
            read=lambda _: first,
            like=lambda *_: first,
            texts=texts,
            held="stream",
            sample=seen,
        )
        prepared = prepare(given, parameters)
        for message in prepared.messages:
            console.say(message)
        if not texts:
            console.say(
                f"{args.train}: {1 << bits:,} columns; ids from there on are left out (--hash-bits "
                "N gives 2^N)"
            )

        def blocks() -> Iterator[Any]:
            read = {"block_bytes": STREAM_BYTES[file.kind], "n_jobs": options.threads(args.jobs)}
            yield from _file(args.train, args, report, **like).blocks(
                report=report, **read, **how, **like
            )

        def held_out(path: str) -> Any:
            return _file(path, args, ReadReport(), **like).read(**how, **like)

        return Incoming(prepared.task, prepared.data, blocks, held_out)

    # Words about data and training.

    def scores(self, prepared: Any) -> tuple[Score, ...]:
        return Score("error", "error", higher=False), Score("F1", "f1")

    def describe(self, prepared: Any) -> str:
        data = prepared.data
        return (
            f"{data.source}: {len(data):,} examples, {data.n_features:,} features, "
            f"{len(data.classes)} classes, {data.rows.values.size:,} values"
        )

    def settings(self, prepared: Any, args: argparse.Namespace) -> dict[str, Any]:
        task = prepared.task
        return {"values": task.values, "norm": task.norm, "intercept": task.intercept}

    def outcome(self, prepared: Any, trained: Any) -> dict[str, Any]:
        messages = list(prepared.messages)
        return {**prepared.sizes(), "temperature": trained.model.temperature, "messages": messages}

    def summary(self, prepared: Any, result: Mapping[str, Any], trained: Any) -> dict[str, Any]:
        return {
            "updates": f"{result['updates']:,} on {trained.fit.trainer.examples:,} examples",
            "temperature": f"{result['temperature']:.3g}",
        }

    def comparator(self, prepared: Any, args: argparse.Namespace) -> Any:
        if (path := args.comparator) is None:
            return None
        from hopefear.training.predictors import LinearPredictor

        (task, model), data = load_model(path), prepared.data
        if (
            task != "classify"
            or model.classes != data.classes
            or model.features.to_header() != data.features.to_header()
        ):
            raise HopefearError(
                f"--comparator {path}: the model has other classes or features than "
                f"{data.source}; give one trained on the same columns"
            )
        if not isinstance(model.predictor, LinearPredictor):
            raise HopefearError(
                f"--comparator {path}: a voted model has no single weights; give one "
                "trained with averaging=averaged or last"
            )
        return model.predictor.weights

    def shown(self, prepared: Any, test: Any, i: int) -> str:
        row = slice(*test.rows.indptr[i : i + 2])
        names = test.features.names(test.rows.indices[row][:_WORDS])
        return f"{i + 1}: {' '.join(map(str, names))}"

    # What is asked of models.

    def answers(
        self, args: argparse.Namespace, model: Any, console: Any, report: Any
    ) -> Iterator[bytes]:
        from hopefear.data.write_rows import RowWriter
        from hopefear.tasks.answers import Question
        from hopefear.tasks.classify.answers import answer

        question = Question(args.nbest, args.proba, args.unknown, args.unknown_label)
        form, rows = args.output_format or "labels", list[bytes]()
        kept = None if form == "labels" else rows
        file = _file_like(args.input, model, args, report, False, kept)
        if form == "columns" and file.kind != "text":
            raise HopefearError(
                f"--output-format columns: {args.input} is {file.format}, which has no columns; "
                "give csv, tsv, json or text"
            )
        writer = RowWriter(file, rows)
        for data in _blocks(file, model, args, report):
            found = answer(model, data, question)
            if form == "labels":
                lines = labels_of(found)
            elif form == "json" or file.format == "json":
                lines = writer.with_fields(found.as_dicts())
            else:
                lines = writer.with_columns(*cells_of(found))
            yield "".join(lines).encode()

    def reasons(
        self, args: argparse.Namespace, model: Any, console: Any, report: Any
    ) -> Iterator[bytes]:
        from hopefear.cli.explain import told
        from hopefear.tasks.classify.answers import explain

        number, file = 0, _file_like(args.input, model, args, report, False)
        for data in _blocks(file, model, args, report):
            for row in range(len(data)):
                number += 1
                reason = explain(model, data, row)
                yield told(f"example {number}", {"example": number}, reason, args)

    def evaluate(
        self, args: argparse.Namespace, model: Any, console: Any, report: Any
    ) -> dict[str, Any]:
        import numpy as np

        from hopefear.metrics import Accuracy, Classification, Confusion, Probabilities
        from hopefear.metrics import joined_scores as joined
        from hopefear.tasks.classify.answers import judge

        judged = judge(model, _judged(model, args, report), args.report is not None)
        classes, counts = judged.classes, judged.counts
        metric = Classification(len(classes))
        scores = joined([(metric, counts), (Probabilities(len(classes)), judged.sums)])
        rows = np.stack([judged.hits, np.ones_like(judged.hits)], axis=1)
        scores["sample"] = Sample(Accuracy(), rows, Score("accuracy", "accuracy"))
        scores["accuracy_interval"] = scores["sample"].interval("accuracy")
        if counts.sum() * counts.size <= _CELLS:
            cells = np.repeat(np.eye(counts.size, dtype=np.uint8), counts, axis=0)
            scores["f1_interval"] = Sample(metric, cells, Score("F1", "f1")).interval("f1")
        scores["ece"] = judged.calibration["ece"]
        scores["examples"] = scores.pop("count")
        each = metric.per_class(counts)
        scores["classes"] = {
            name: {key: column[i].item() for key, column in each.items()}
            for i, name in enumerate(classes)
        }
        scores["new_classes"] = list(classes[len(model.classes) :])
        confusion = Confusion(classes, counts.reshape(len(classes), -1))
        scores |= confusion.as_dict() | {"calibration": {"classes": judged.calibration}}
        if args.report is not None:
            scores["page"] = _evidence(model, args, judged, confusion)
        return scores


SURFACE = Classes()


# Files, as they are read.


def _file(path: str, args: argparse.Namespace, report: Any, **like: Any) -> Any:
    """Returns the file as it is to be read."""
    from hopefear.data.examples import examples

    columns = {"text_column": args.text_column, "label_column": args.label_column}
    how = {"on_error": args.on_error, "report": report}
    return examples(path, args.format, **columns, **how, **like)


def _file_like(
    path: str, model: Any, args: Any, report: Any, labels: bool, rows: list[Any] | None = None
) -> Any:
    """Returns a file whose rows a model reads; ``rows`` gets them as they are."""
    like = {"features": model.features, "classes": model.classes}
    return _file(path, args, report, require_labels=labels, rows=rows, **like)


def _blocks(file: Any, model: Any, args: Any, report: Any) -> Iterator[Any]:
    """Gives a file of any size, some rows at a time, in the columns of the model."""
    like = {"features": model.features, "classes": model.classes}
    yield from file.blocks(require_labels=False, on_error=args.on_error, report=report, **like)


def _judged(model: Any, args: Any, report: Any) -> Iterator[Any]:
    """Gives the rows of ``--data``; classes that the model lacks come behind those it has."""
    file = _file(args.data, args, report, features=model.features)
    how = {"on_error": args.on_error, "report": report}
    yield from file.blocks_with_new_classes(model.features, model.classes, **how)


# Errors, as a page shows them.


def _evidence(model: Any, args: argparse.Namespace, judged: Any, confusion: Any) -> Any:
    """Returns what a page shows of errors."""
    from hopefear.data.files import ReadReport
    from hopefear.report.error_examples import Judgement
    from hopefear.report.evaluation import ReportData
    from hopefear.tasks.classify.answers import MOST, cases, some_mistakes

    def chosen(order: Any) -> list[Any]:
        numbers, texts = order.tolist(), dict[int, str]()
        some = {mistake.number: mistake for mistake in judged.mistakes}
        if os.path.isfile(args.data):  # what came through a pipe is gone
            if not some.keys() >= {*numbers}:
                again = some_mistakes(model, _judged(model, args, ReadReport()), numbers)
                some = {mistake.number: mistake for mistake in again}
            file = _file_like(args.data, model, args, ReadReport(), True)
            texts = file.texts({*numbers}, len(judged.errors))
        found = [some[number] for number in numbers if number in some]
        return cases(model, confusion.names, found, texts)

    gold, n = confusion.counts.sum(axis=1), len(judged.errors)
    sizes = {
        "examples": f"{n:,}",
        "classes": f"{len(gold)}; the commonest has {100.0 * gold.max() / n:.1f} %",
    }
    order = "whose right class was thought least probable"
    return ReportData(Judgement(judged.errors, chosen, "examples", order, MOST), sizes)


# Values of options.


def _columns(group: argparse._ArgumentGroup) -> None:
    for what in ("text", "label"):
        options.named(
            group,
            f"--{what}-column",
            f"csv, json: the column or field of the {what} (default: {what}, or another usual "
            "name)",
            "NAME",
        )


def _lengths(text: str) -> tuple[int, int] | str | None:
    """``A-B``, or one number for both; 0 for none, or ``auto``.

    >>> _lengths("2-5"), _lengths("3"), _lengths("0")
    ((2, 5), (3, 3), None)
    """
    if text in ("auto", "0"):
        return None if text == "0" else text
    low, dash, high = text.partition("-")
    lengths = low, (high if dash else low)
    if not all(n.isdecimal() and len(n) < 3 for n in lengths):
        raise argparse.ArgumentTypeError(f"must be two lengths such as 2-5, not {text!r}")
    return int(lengths[0]), int(lengths[1])
