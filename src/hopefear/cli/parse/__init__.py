"""Dependency trees on the command line: a head and a relation for every word."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import ClassVar

from hopefear.cli import options
from hopefear.cli.old import OldSurface
from hopefear.cli.surface import Rehearsal, Words

_TRAIN = Words(
    """
Train a parser on a treebank and write it as one file. CoNLL-U, the columns of CoNLL-X (2006, 2007)
and lines of word, tag and head are told apart by themselves. By default heads and relations are
learned together by a second-order model, among the heads that a small first-order parser leaves;
arcs may cross where over 5 % of the sentences have such arcs. With held-out data (--dev) every pass
is scored on it, training stops when that no longer improves, and the best model is kept. With
--tagger auto the parser learns from the tags and morphology of taggers, which are trained with it and
are part of the model, so that it takes raw text; --tagger MODEL takes taggers of your own.
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
the tags it gives to words, and takes text (--format text), which comes out as CoNLL-U.
""",
    """
  hopefear predict --model parser.model --input new.conllu --output parsed.conllu
  hopefear predict --model raw.model --format text --input text.txt --output parsed.conllu
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


class Parses(OldSurface):
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
                help="trees: taggers that give all words their tags, in place of those in the model",
            )

    def check(self, args: argparse.Namespace, verb: str) -> None:
        if verb in ("train", "compare") and args.dictionary and args.hash_bits is not None:
            args.usage_error("features of a --dictionary are not hashed: leave out --hash-bits")
        if verb in ("train", "compare") and args.tagger is None:
            if args.jackknife != args.default_of("jackknife"):
                args.usage_error("--jackknife is for tags of taggers: give --tagger")


SURFACE = Parses()
