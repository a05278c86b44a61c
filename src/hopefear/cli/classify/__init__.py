"""Classes on the command line: one label a line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import ClassVar

from hopefear.cli import options
from hopefear.cli.old import OldSurface as Surface
from hopefear.cli.surface import Rehearsal, Words

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
      --learners rda:l1=1e-5,rda:l1=1e-4,vrda:readout=voted --report rda.html --json
""",
)
_PREDICT = Words(
    """
A classifier prints one label for every line, in order. The file is read in blocks, so it may be
of any size and may come from a pipe; labels in it are ignored and may be missing. With --proba the
label is followed by CLASS:PROBABILITY for every class; with --nbest N a line holds the N best
classes as CLASS:SCORE, best first, or as CLASS:PROBABILITY when both are given. Columns are
separated by tabs. With --unknown P the label is `unknown`, or what --unknown-label says, where no
class is as probable as P.
""",
    """
  hopefear predict --model news.model --input new.svm --output labels.txt
  zcat reviews.tsv.gz | hopefear predict --model reviews.model --input - --nbest 3 --proba
  hopefear predict --model intents.model --input new.txt --unknown 0.4 --unknown-label other
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


class Classes(Surface):
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
            type=_orders,
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
            type=_share,
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
            type=_less_than_one,
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
            type=_intercept,
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
                type=_share,
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


SURFACE = Classes()


def _columns(group: argparse._ArgumentGroup) -> None:
    for what in ("text", "label"):
        options.named(
            group,
            f"--{what}-column",
            f"csv, json: the column or field of the {what} (default: {what}, or another usual "
            "name)",
            "NAME",
        )


def _orders(text: str) -> int | str:
    """A whole number, or ``auto``."""
    return text if text == "auto" else options.at_least(0)(text)


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


def _share(text: str) -> float:
    value = options.number(text)
    if not 0.0 < value <= 1.0:
        raise argparse.ArgumentTypeError(f"must be above 0 and at most 1, not {text!r}")
    return value


def _less_than_one(text: str) -> float:
    value = options.number(text)
    if not 0.0 <= value < 1.0:
        raise argparse.ArgumentTypeError(f"must be from 0 to below 1, not {text!r}")
    return value


def _intercept(text: str) -> float | str:
    """``auto`` or a number."""
    if text == "auto":
        return text
    value = options.number(text)
    if value < 0.0:
        raise argparse.ArgumentTypeError(f"must be auto or not negative, not {text!r}")
    return value
