"""Lists on the command line: the best of several candidates."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from hopefear.cli import options
from hopefear.cli.old import OldSurface
from hopefear.cli.surface import Rehearsal, Words

METRICS = ("bleu", "chrf", "ter", "wer", "edit", "f1", "parseval", "cost")
_TRAIN = Words(
    """
Train a reranker on lists of candidates and write it as one file. A list has the candidates of some
generator (a parser, a translation system, a speech recogniser), each with its score, features if
there are any, and a cost; costs of texts are counted against references (--metric), those of
parse trees against the gold tree. The model puts the cheapest candidate first. With held-out lists
(--dev) every pass is scored on them, training stops when that no longer improves, and the best
model is kept. The same data, options and seed give the same model, byte for byte, also when the
run was killed and resumed.
""",
    """
  hopefear train rerank --train train.jsonl.xz --dev dev.jsonl.xz --model parses.model
  hopefear train rerank --train lists.jsonl --metric bleu --metric-option smoothing=exp \\
      --learner mira --model translations.model
  hopefear train rerank --train hypotheses.jsonl --metric wer --learner vrda -p l1=1e-3 \\
      --run runs/vrda --model speech.model
  hopefear train rerank --train nbest.txt --format bllip --gold gold.mrg --learner perceptron \\
      --features ptb --min-count 3 --model parses.model
  hopefear train rerank --train nbest.gz --refs train.en --dev dev.gz --dev-refs dev.en \\
      --learner mira --model translations.model
""",
)
_COMPARE = Words(
    """
Train several rerankers on the same lists with the same features, test them on the same test lists
and show their score, sparsity and speed in one table, with a test of whether each is really worse
than the best. With held-out lists (--dev) each keeps its best pass on them, without it the last
one. The report is one HTML page with learning curves and the score against the number of weights.
A learner may bring parameters: NAME:KEY=VALUE:KEY=VALUE.
""",
    """
  hopefear compare rerank --train train.jsonl.xz --dev dev.jsonl.xz --test test.jsonl.xz \\
      --learners perceptron,vrda,tg,maxent --report parses.html
  hopefear compare rerank --train lists.jsonl --test test.jsonl --metric bleu --epochs 5 \\
      --learners mira,rampion,risk,vrda:l1=1e-3:loss=logistic --report bleu.html --json
""",
)
_PREDICT = Words(
    """
A reranker prints one JSON object for every list: its id, the position of the best candidate (from
0, as in the file), its text and its score. With --nbest N it is the reranked list, N candidates,
best first, which is a file of lists again; with --proba each has its probability. --output-format
text prints the texts alone, one a line. Costs and references are not needed. The file is read in
blocks, so it may be of any size and may come from a pipe.
""",
    """
  hopefear predict --model parses.model --input nbest.jsonl.xz --output-format text > trees.mrg
  hopefear predict --model speech.model --input hypotheses.jsonl --nbest 5 --proba
""",
)
_EVALUATE = Words(
    """
Score a reranker on lists with costs, references or gold trees: its choices beside the generator's
1-best, the oracle and the worst candidates, each with a 95 % confidence interval, and a paired test
of whether the model beats the 1-best. The metric is the one that the model was trained on.
""",
    "  hopefear evaluate --model parses.model --data test.jsonl.xz",
)
_INSPECT = Words(
    """
With --explain a reranker tells why a candidate of a list beats another: the features that differ,
each with its weight times the difference. They are the model's best and the generator's, or the
runner-up where these are the same, or those of --pair.
""",
    "  hopefear inspect --model parses.model --explain nbest.jsonl --list wsj_0001.0 --pair 3:0",
)
_REHEARSAL = Rehearsal(
    (
        "train rerank --train lists.jsonl --dev lists.jsonl --epochs 2 --model m",
        "predict --model m --input lists.jsonl --output out",
        "predict --model m --input lists.jsonl --output out --proba",
        "evaluate --model m --data lists.jsonl --report r.html",
        "serve --model m",
    ),
    (
        "train rerank --train trees.jsonl --features rich --epochs 1 --model m",
        "predict --model m --input trees.jsonl --output out",
        "train rerank --train nbest.txt --refs refs.txt --epochs 1 --model m",
        "inspect --model m",
    ),
)


class Lists(OldSurface):
    """The task ``rerank``."""

    name, noun = "rerank", "lists"
    title, unit = "Rerankers compared", "lists"
    notes = ("oracle first: lists, in percent, where the choice is as cheap as the cheapest.",)
    rehearsal = _REHEARSAL
    words: ClassVar[Mapping[str, Words]] = {
        "train": _TRAIN,
        "compare": _COMPARE,
        "predict": _PREDICT,
        "evaluate": _EVALUATE,
        "inspect": _INSPECT,
    }
    passes = "5; of batch learners, their max_iter"
    outputs: ClassVar[Mapping[str, str]] = {
        "json": "one object a list",
        "text": "the texts of the best candidates, one a line; of --nbest with a blank line behind "
        "each list",
    }
    files = ("gold", "dev_gold", "test_gold", "refs", "dev_refs", "test_refs")

    def data_options(self, group: argparse._ArgumentGroup, verb: str) -> None:
        others = ("dev", "test") if verb == "compare" else ("dev",)
        for prefix, of in (("", "train"), *((f"{other}-", other) for other in others)):
            options.named(
                group,
                f"--{prefix}gold",
                f"gold trees for the lists of --{of}, one a line, where they are in the format "
                "bllip",
            )
        for prefix, of in (("", "train"), *((f"{other}-", other) for other in others)):
            group.add_argument(
                f"--{prefix}refs",
                nargs="+",
                metavar="FILE",
                help=f"references for the lists of --{of}, one sentence a line, where they are in "
                "the format moses; several files are several references of each",
            )
        options.one_format(
            group,
            self.name,
            'json ({"id", "candidates": [{"text", "score", "cost", "features"}]} a line), ptb '
            "(the same with trees), bllip (what that parser prints) or moses (ID ||| words ||| "
            "Name= numbers … ||| score); auto looks at the first lines; taken for held-out lists "
            "where it fits",
        )
        group.add_argument(
            "--metric",
            choices=METRICS,
            metavar="NAME",
            help=f"what makes costs of texts and their references, and scores choices: "
            f"{', '.join(METRICS)} (default: parseval, F1 of brackets, for trees with gold trees; "
            "with --refs bleu of words as they are; else cost, those in the file)",
        )
        group.add_argument(
            "--metric-option",
            type=options.parameter,
            action="append",
            default=[],
            metavar="KEY=VALUE",
            help="a parameter of the metric, such as smoothing=exp or lowercase=true; may be "
            "repeated",
        )
        options.choice(
            group,
            "--dedup",
            ("first", "best", "none"),
            "of candidates with equal texts keep the first, the one of highest score, or all",
        )
        options.on_error(group)

    def learning_options(
        self, group: argparse._ArgumentGroup, verb: str, shared: Callable[[], None]
    ) -> None:
        shared()
        options.choice(
            group,
            "--oracle",
            ("first", "score"),
            "which of the cheapest candidates to learn: the first, or that of the highest score",
        )
        options.flag(
            group, "--tied", "all of the cheapest candidates are right, not one of them alone"
        )
        options.learning_jobs(group)

    def feature_options(self, parser: argparse.ArgumentParser, verb: str) -> None:
        group = parser.add_argument_group("features")
        options.named(
            group,
            "--features",
            "a comma list: named (those in the file), score, ptb, rich (all that is known "
            "of trees) or families such as Rule,Heads, and consensus (default: rich,consensus for "
            "trees, else named,score)",
            "SET",
        )
        options.whole(
            group,
            "--min-count",
            "keep features that tell candidates apart in at least N lists (default: 5 for "
            "trees, else 1)",
        )
        options.choice(
            group,
            "--baseline",
            ("feature", "offset", "none"),
            "the generator's score: a feature, a fixed part of every score, or ignored",
        )

    def use_options(
        self, verb: str, parser: argparse.ArgumentParser, **groups: argparse._ArgumentGroup
    ) -> None:
        if verb == "evaluate":
            options.named(
                groups["data"], "--gold", "lists: gold trees, one a line, where the format is bllip"
            )
        elif verb == "inspect":
            lists = parser.add_argument_group("lists")
            options.named(lists, "--explain", "file with a list whose order is to be explained")
            options.named(lists, "--list", "id of that list (default: the first)", "ID")
            lists.add_argument(
                "--pair",
                type=_pair,
                metavar="I:J",
                help="why candidate I beats candidate J; positions in the list, from 0",
            )
            options.one_format(lists, self.name, "of that file; auto looks at its first lines")

    def check(self, args: argparse.Namespace, verb: str) -> None:
        if verb in ("train", "compare"):
            for of in ("gold", "refs"):
                if args.dev is None and getattr(args, f"dev_{of}") is not None:
                    args.usage_error(f"--dev-{of} belongs to the lists of --dev: give --dev FILE")
        elif verb == "inspect":
            if args.explain is None and (args.list or args.pair or args.format != "auto"):
                args.usage_error("--list, --pair and --format belong to --explain FILE")
            options.read_once(args, "model", "explain")

    def build(self, name: str, params: Mapping[str, Any], args: argparse.Namespace) -> Any:
        from hopefear.cli.rerank.corpus import metric_asked
        from hopefear.features.lists.extraction import Extraction

        learner = super().build(name, params, args)
        metric_asked(args.metric, args.metric_option, args.refs)
        if args.features is not None:
            Extraction.of(args.features)
        return learner

    def explain(self, args: argparse.Namespace, model: Any, console: Any) -> bool:
        if args.explain is None:
            return False
        from hopefear.cli.rerank.answers import explain

        explain(args, model, console)
        return True


SURFACE = Lists()


def _pair(text: str) -> tuple[int, int]:
    """Two positions, from 0.

    >>> _pair("3:0")
    (3, 0)
    """
    one, colon, other = text.partition(":")
    if not (colon and one.isdecimal() and other.isdecimal() and int(one) != int(other)):
        raise argparse.ArgumentTypeError(
            f"expected two different positions from 0, such as 3:0, found {text!r}"
        )
    return int(one), int(other)
