"""Lists on the command line: the best of several candidates."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hopefear.cli import options
from hopefear.cli.surface import Rehearsal, Sample, Score, Surface, Words
from hopefear.errors import HopefearError

if TYPE_CHECKING:  # which help need not load
    from hopefear.cli.console import Console
    from hopefear.data.files import ReadReport
    from hopefear.data.lists.candidates import CandidateLists
    from hopefear.metrics.lists import ListMetric
    from hopefear.tasks.rerank.model import RerankModel

_TITLES = {"f1": "F1", "bleu": "BLEU", "chrf": "chrF", "ter": "TER", "wer": "WER", "cer": "CER"}
_FAMILIES = 60  # shown at most
_BASELINES = {"feature": "a feature", "offset": "a fixed part of every score", "none": "ignored"}
OTHERS = "others"  # family of features whose names tell none
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
text prints the texts alone, one a line. With --explain it tells why the best candidate of a list
beats the next, or, with --list ID and --pair I:J, why one candidate beats another: the features
that differ, each with its weight times the difference. Costs and references are not needed. The
file is read in blocks, so it may be of any size and may come from a pipe.
""",
    """
  hopefear predict --model parses.model --input nbest.jsonl.xz --output-format text > trees.mrg
  hopefear predict --model speech.model --input hypotheses.jsonl --nbest 5 --proba
  hopefear predict --model parses.model --input nbest.jsonl --explain --list wsj_0001.0 --pair 3:0
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


class Lists(Surface):
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
        "inspect": Words("", ""),
    }
    passes = "5; of batch learners, their max_iter"
    outputs: ClassVar[Mapping[str, str]] = {
        "json": "one object a list",
        "text": "the texts of the best candidates, one a line; of --nbest with a blank line behind "
        "each list",
    }
    files = ("gold", "dev_gold", "test_gold", "refs", "dev_refs", "test_refs")
    no_parameters = (*files, "metric_option")

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
        elif verb == "predict":
            options.named(
                groups["output"], "--list", "with --explain: only the list of this id", "ID"
            )
            groups["output"].add_argument(
                "--pair",
                type=_pair,
                metavar="I:J",
                help="with --explain: why candidate I beats candidate J; positions in the list, "
                "from 0 (default: the best and the next)",
            )

    def check(self, args: argparse.Namespace, verb: str) -> None:
        if verb in ("train", "compare"):
            for of in ("gold", "refs"):
                if not options.paths(args, ["dev"]) and getattr(args, f"dev_{of}") is not None:
                    args.usage_error(f"--dev-{of} belongs to the lists of --dev: give --dev FILE")
        elif verb == "predict" and not args.explain and (args.list or args.pair):
            args.usage_error("--list and --pair belong to --explain")

    def build(self, name: str, params: Mapping[str, Any], args: argparse.Namespace) -> Any:
        from hopefear.features.lists.extraction import Extraction

        learner = super().build(name, params, args)
        metric_asked(args.metric, args.metric_option, args.refs)
        if args.features is not None:
            Extraction.of(args.features)
        return learner

    def parameters(self, args: argparse.Namespace) -> dict[str, Any]:
        metric = metric_asked(args.metric, args.metric_option, args.refs)
        return {**super().parameters(args), "metric": metric}

    def examples(
        self, which: str, args: argparse.Namespace, report: Any, prepared: Any = None
    ) -> Iterator[CandidateLists]:
        if prepared is None:
            self.check_memory(args)
            metric = metric_asked(args.metric, args.metric_option, args.refs)
        else:
            metric = prepared.metric
        return _judged(args, which, metric, report)

    def scores(self, prepared: Any) -> tuple[Score, ...]:
        main, higher = prepared.metric.main, prepared.metric.higher
        score = Score(_TITLES.get(main, main), main, higher, unit="")
        return score, Score("oracle first", "oracle_rate", unit=" % of lists")

    def describe(self, prepared: Any) -> str:
        data, seen, least = prepared.data, prepared.data.features.seen, prepared.task.min_count
        features = f"{data.features.size:,} of {seen:,} features kept"
        often = f", in {least} lists or more" if least > 1 else ""
        return (
            f"{data.source}: {len(data):,} lists, {data.n_candidates:,} candidates, {features} "
            f"({prepared.task.features}{often}), judged by {prepared.metric.name}"
        )

    def facts(self, prepared: Any) -> dict[str, Any]:
        sizes = prepared.sizes()
        return {
            "digest": prepared.data.digest,
            "examples": sizes["lists"],
            "candidates": sizes["candidates"],
            "idle": sizes["idle_lists"],
            "features": sizes["features"],
        }

    def settings(self, prepared: Any, args: argparse.Namespace) -> dict[str, Any]:
        return {
            "features": prepared.task.features,
            "min_count": prepared.task.min_count,
            "metric": prepared.metric.cost_signature(),
            **{name: getattr(args, name) for name in ("baseline", "dedup", "oracle", "tied")},
        }

    def outcome(self, prepared: Any, trained: Any) -> dict[str, Any]:
        return {
            **prepared.sizes(),
            "feature_set": prepared.task.features,
            "main_score": prepared.metric.main,
            "temperature": trained.model.temperature,
        }

    def summary(self, prepared: Any, result: Mapping[str, Any], trained: Any) -> dict[str, Any]:
        return {"temperature": f"{result['temperature']:.3g}"}

    def tested_on(self, prepared: Any, test: Any) -> str:
        from hopefear.cli.console import scored
        from hopefear.tasks.rerank.task import limits

        metric, score = prepared.metric, self.scores(prepared)[0]
        first, oracle = (scored(score.name, value) for value in limits(test, metric).values())
        words = super().tested_on(prepared, test)
        return f"{words}, {score.title} of 1-best {first}, of the oracle {oracle}"

    def comparison(self, prepared: Any, test: Any) -> dict[str, Any]:
        from hopefear.tasks.rerank.task import limits

        return {**super().comparison(prepared, test), **limits(test, prepared.metric)}

    def answers(
        self, args: argparse.Namespace, model: RerankModel, console: Console, report: ReadReport
    ) -> Iterator[bytes]:
        from hopefear.tasks.answers import Question
        from hopefear.tasks.rerank.answers import answer

        for block in _given(args, report):
            ranking = answer(model, block, Question(args.nbest, args.proba))
            if args.output_format == "text":
                if len(block) and not any(block.texts):
                    raise HopefearError(
                        f"{args.input}: the candidates of list {block.ids[0]!r} have no texts to "
                        "write; leave out --output-format text"
                    )
                behind = "" if args.nbest is None else "\n"
                lines = [[each["text"] for each in record.candidates] for record in ranking]
                text = "".join(
                    "".join(" ".join(line.splitlines()) + "\n" for line in texts) + behind
                    for texts in lines
                )
            else:
                text = "".join(
                    json.dumps(record.as_dict(), ensure_ascii=False) + "\n" for record in ranking
                )
            yield text.encode("utf-8", "backslashreplace")  # as JSON writes half a character

    def reasons(
        self, args: argparse.Namespace, model: RerankModel, console: Console, report: ReadReport
    ) -> Iterator[bytes]:
        from hopefear.cli.explain import told
        from hopefear.tasks.rerank.answers import ALONE, reasons

        known = False
        for block in _given(args, report):
            if args.list is not None and args.list not in block.ids:
                continue
            known, i = True, None if args.list is None else list(block.ids).index(args.list)
            for reason in reasons(model, block, i, args.pair or (None, None)):
                place = {"list": reason.id, "line": reason.line}
                if reason.reason is not None:
                    place["texts"] = [each["text"] for each in reason.candidates]
                texts = [f"  {e['position']}: {e['text']}" for e in reason.candidates if e["text"]]
                head = "\n".join([f"list {reason.id}", *texts])
                yield told(head, place, reason.reason or ALONE, args)
        if args.list is not None and not known:
            raise HopefearError(f"--list {args.list}: there is no list of this id in {args.input}")

    def evaluate(
        self, args: argparse.Namespace, model: RerankModel, console: Console, report: ReadReport
    ) -> dict[str, Any]:
        from hopefear.tasks.rerank import answers as task

        lists: Any = _judged(args, "data", model.metric, report)
        if args.report is not None:
            lists = list(lists)  # which the page looks at again
        scores = task.evaluate(model, lists)
        if not args.json:
            console.say(scores.text().rstrip("\n"))
        facts = {**scores.as_dict(), "learner": model.about.get("learner")}
        main = Score(model.metric.main, model.metric.main, model.metric.higher, "")
        facts["sample"] = Sample(model.metric, scores.model.rows, main)
        if args.report is not None:
            from hopefear.metrics import reliability
            from hopefear.report.evaluation import ReportData

            judgement, shares = task.choices(model, lists)
            bins = reliability(shares.clip(max=1.0), judgement.errors <= 0.0).as_dict()
            sizes = {"lists": f"{facts['lists']:,}", "candidates": f"{facts['candidates']:,}"}
            facts |= {"calibration": {"choices": bins}, "main": model.metric.main}
            facts["page"] = ReportData(judgement, sizes)
        return facts

    def findings(self, scores: Mapping[str, Any]) -> tuple[dict[str, Any], list[Any]]:
        """The same for people: words, and the model between its bounds."""
        main, gap = scores["main"], scores["gap_closed"]
        words = {
            "lists": f"{scores['lists']:,} with {scores['candidates']:,} candidates",
            "better, worse than 1-best": f"{scores['better']:,}, {scores['worse']:,}",
            "model − 1-best": f"{scores['difference']:+.4f} (95 % of resamples: "
            f"{scores['difference_low']:+.4f} to {scores['difference_high']:+.4f}), "
            f"p = {scores['p_value']:.3g}",
            "way to the oracle": None if gap is None else f"{gap:.1f} %",
            "oracle first": f"{scores['oracle_rate']:.1f} %, of 1-best "
            f"{scores['baseline_oracle_rate']:.1f} %",
            "non-zeros": f"{scores['nnz']:,}",
        }
        choices = {"model": "", "1-best": "baseline_", "oracle": "oracle_", "worst": "worst_"}
        rows = [
            [name, *(scores[f"{who}{main}{end}"] for end in ("", "_low", "_high"))]
            for name, who in choices.items()
        ]
        return words, [("Choices", ["choice", main, "low", "high"], rows)]

    def show_scores(self, console: Console, scores: Mapping[str, Any]) -> None:
        """What the table of `evaluate` leaves out."""
        console.say(f"{scores['nnz']:,} non-zeros, {scores['model_signature']}")

    def model_facts(self, model: RerankModel, top: int) -> dict[str, Any]:
        """What there is to say of this model."""
        from hopefear.cli.inspect import votes_of

        facts: dict[str, Any] = {
            "baseline": model.baseline,
            "temperature": model.temperature,
            "metric": model.metric.cost_signature(),
            "features": model.about.get("data", {}).get("features", model.features.size),
            "extraction": model.features.extraction.to_header(),
        }
        if not model.predictor.linear:
            return {**facts, "votes": votes_of(model.predictor, "lists")}
        weights = {"top": model.top(top), "bottom": model.bottom(top)}
        return {**facts, "families": families(model), **weights}

    def facts_in_words(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """The same for people."""
        extraction = facts["extraction"]
        parts = [name for name in ("named", "score", "consensus") if extraction[name]]
        if extraction["trees"]:
            kinds = extraction["trees"]["kinds"]
            parts.append(f"trees, by {len(kinds)} kinds of features ({kinds[0]} to {kinds[-1]})")
        return {
            "looks at": ", ".join(parts) or "nothing",
            "generator's score": _BASELINES[facts["baseline"]],
            "costs": facts["metric"].removeprefix("cost:"),
            "temperature": f"{facts['temperature']:.3g}",
        }

    def show_weights(self, console: Console, facts: Mapping[str, Any]) -> None:
        """Families of features, and what speaks for and against a candidate."""
        from hopefear.cli.console import long_table, weights_table

        if facts.get("families"):
            rows = [
                [
                    row["family"],
                    row["nnz"],
                    row["positive"],
                    row["nnz"] - row["positive"],
                    f"{row['sum']:.4f}",
                    f"{row['largest']:.4f}",
                ]
                for row in facts["families"]
            ]
            heads = ["family", "non-zeros", "for", "against", "sum of |weight|", "largest"]
            long_table(console, heads, rows, _FAMILIES, "families")
        weights_table(console, "for a candidate", ["feature"], facts.get("top", ()))
        weights_table(console, "against a candidate", ["feature"], facts.get("bottom", ()))


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


def metric_asked(
    name: str | None, options: Sequence[tuple[str, str]], refs: Sequence[str] | None = None
) -> ListMetric | None:
    """The metric of ``--metric`` and ``--metric-option``; None where files bring their costs.

    Of lists of Moses, which are split into words, with ``--refs`` it is BLEU unless said.

    >>> metric_asked("bleu", [("lowercase", "true")]).lowercase
    True
    """
    from hopefear.metrics.lists import metric_named
    from hopefear.recipes.base import number

    if name is None:
        if options:
            raise HopefearError("--metric-option belongs to a metric: give --metric NAME too")
        return None if refs is None else metric_named("bleu", tokenize="none")
    usual = metric_named(name).parameters()
    parameters = dict(options)
    for key, text in options:
        like = usual.get(key, "")  # what a metric does not know, it refuses itself
        if not isinstance(like, str):
            parameters[key] = number(key, text, 0.0 if like is None else like)
    return metric_named(name, **parameters)


def _judged(
    args: argparse.Namespace, which: str, metric: ListMetric | None, report: ReadReport
) -> Iterator[CandidateLists]:
    """Blocks of the file of an option, in which every candidate must have a cost."""
    from hopefear.core.progress import counted
    from hopefear.data.lists.files import read_lists
    from hopefear.data.lists.input import UnjudgedError

    path, prefix = getattr(args, which), "" if which in ("train", "data") else f"{which}_"
    gold, refs = getattr(args, f"{prefix}gold"), getattr(args, f"{prefix}refs")
    form = {"prefer": args.format} if prefix else {"format": args.format}
    blocks = read_lists(
        path,
        metric=metric,
        require_costs=True,
        gold=gold,
        refs=refs,
        dedup=getattr(args, "dedup", "none"),  # a model knows what to leave out
        on_error=args.on_error,
        report=report,
        **form,
    )
    try:
        yield from counted(blocks, path, "lists")
    except UnjudgedError as error:
        option = f"--{prefix}".replace("_", "-")
        remedies = {
            "bllip": f"give them with {option}gold FILE",
            "moses": f"give them with {option}refs FILE" if refs is None else None,
            "json": "--metric NAME makes them of texts and references" if metric is None else None,
        }
        remedy = remedies.get(error.format)
        if remedy is None:
            raise
        raise HopefearError(f"{error}; {remedy}") from error


def _given(args: argparse.Namespace, report: ReadReport) -> Iterator[CandidateLists]:
    """Blocks of ``--input`` with all candidates, so that positions are those in the file."""
    from hopefear.core.progress import counted
    from hopefear.data.lists.files import read_lists

    how: dict[str, Any] = {"judged": False, "dedup": "none"}
    blocks = read_lists(args.input, args.format, on_error=args.on_error, report=report, **how)
    return counted(blocks, args.input, "lists")


def families(model: RerankModel) -> list[dict[str, Any]]:
    """Weights by family of features, the heaviest family first.

    A family is what a name says before the first ``|``, or ``=`` where there is none; names
    without either go together.
    """
    import numpy as np

    groups: dict[str, list[float]] = {}
    for j in model.weights.nonzero()[0].tolist():
        groups.setdefault(family(model.features.name(j)), []).append(float(model.weights[j]))
    rows = [
        {
            "family": name,
            "nnz": len(weights),
            "positive": sum(w > 0.0 for w in weights),
            "sum": float(np.abs(weights).sum()),
            "largest": max(weights, key=abs),
        }
        for name, weights in groups.items()
    ]
    return sorted(rows, key=lambda row: -row["sum"])


def family(name: str) -> str:
    """What a feature is one of.

    >>> family("Rule.up|NP -> DT NN ^ VP"), family("source=web"), family("lm")
    ('Rule.up', 'source', 'others')
    """
    kind, mark, _ = name.partition("|" if "|" in name else "=")
    return kind if kind and mark else OTHERS
