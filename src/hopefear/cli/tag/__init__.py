"""Tags on the command line: one label a token."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from hopefear.cli import options
from hopefear.cli.old import OldSurface
from hopefear.cli.surface import Rehearsal, Words

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


class Tags(OldSurface):
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
        if "cost" not in params and args.class_weight is None:
            return super().build(name, params, args)
        from hopefear.tasks.tag.label_costs import check_class_weight, resolved_early

        learner = super().build(name, resolved_early(params), args)
        check_class_weight(params, name, args.class_weight)
        return learner


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
