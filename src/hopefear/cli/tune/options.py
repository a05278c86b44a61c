"""``hopefear tune``: from N-best lists and references to weights; its options and checks.

Light to import: help must not wait for the package to load.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from hopefear.cli.console import Console, check_folder, check_output, print_json
from hopefear.cli.options import (
    ALLOW_COMMANDS,
    COMMAND,
    allow_outside,
    choice,
    flag,
    json_option,
    named,
    number,
    on_error,
    params,
    run_folder,
    seed,
    whole,
)
from hopefear.cli.shards import cluster, cluster_of
from hopefear.cli.surface import Rehearsal

USAGE = (
    "(--nbest FILE... | --decoder CMD --run DIR) --refs FILE... [--learner NAME] [-p KEY=VALUE]... "
    "--weights OUT"
)
DESCRIPTION = """
Find weights for the features of a decoder, or of anything that scores translations, under which
the best candidate of each list scores high. Lists are in the format of Moses, or in JSON as
`train rerank` reads them; features may be a dozen dense scores, millions of sparse ones, or the
phrase pairs of derivations (--source). The
learner is any of `hopefear learners --task tune`. With held-out lists (--dev-nbest, --held-out)
the best round is the one that scores best on them. What is told: the score before and after, of
the decoder's own first choices and of the best choice there is, how far each weight moved, and
how seeds and restarts differ. The same data, options and seed give the same weights, byte for
byte. Weights that are worth nothing are reported and not written.

With --decoder a command is run in rounds: weights in, N-best list out; see docs/decoder.md. What
is written then are the weights that the decoder itself did best with. Lists of --nbest are merged
with those of its rounds.
"""
EXAMPLES = """
examples:
  hopefear tune --nbest dev.nbest.gz --refs dev.en --weights tuned.txt
  hopefear tune --nbest run1.gz run2.gz --refs ref0 ref1 ref2 ref3 --learner mert --seeds 3 \\
      --weights moses.ini
  hopefear tune --nbest train.nbest --refs train.en --source train.de --learner vrda \\
      --features phrases --fixed tuned.txt --min-count 2 --weights phrases.json
  hopefear tune --nbest dev.nbest --refs dev.en --source dev.de --features dense \\
      --add Phrases0=phrases.json --learner mert --weights all.json
  hopefear tune --decoder 'decode.sh {weights} {nbest}' \\
      --refs dev.en --rounds 8 --run runs/dev --weights tuned.txt
"""
REHEARSAL = Rehearsal(
    (
        "tune --nbest nbest.txt --refs refs.txt --weights w.txt",
        "evaluate --nbest nbest.txt --refs refs.txt --weights w.txt --json",
    ),
    (
        "evaluate --nbest nbest.txt --refs refs.txt --metric chrf --weights start.txt --json",
        "evaluate --nbest nbest.txt --refs refs.txt --metric ter --weights start.txt --json",
        "predict --input nbest.txt --weights start.txt --output out",
    ),
)


def configure(parser: argparse.ArgumentParser) -> None:
    data = parser.add_argument_group("data")
    lists(data)
    metric(data)
    features(data)
    reading(data)
    held_out(parser)
    learning(parser, LEARNER)
    decoder(parser)
    output(parser)


def run(args: argparse.Namespace) -> int:
    check(args)
    from hopefear.cli.progress import announced
    from hopefear.cli.tune.learning import metric_asked, parameters

    console, started = Console(args.quiet), time.perf_counter()
    metric = metric_asked(args)
    params = parameters(args, metric, console)
    with cluster_of(args) as runs, announced(console, "this data and learner") as compiling:
        if args.decoder is not None:
            from hopefear.cli.tune.rounds import iterated

            outcome: Any = iterated(args, metric, params, console, runs)
        else:
            from hopefear.cli.tune.learning import tuned

            outcome = tuned(args, metric, params, console, runs)
    outcome.weights.write(args.weights, args.format)
    result = {"task": "tune", "weights": args.weights, **outcome.facts()}
    result["seconds"] = round(time.perf_counter() - started, 3)
    outcome.show(console, result, compiling.seconds)
    if args.report:
        outcome.page(result).write(args.report)
        console.say(f"  wrote {args.report}")
    if args.json:
        print_json(result)
    return 0


def check(args: argparse.Namespace) -> None:
    """Tell what cannot work before anything is read or run."""
    wrong = args.usage_error
    if args.refs is None and (args.decoder is not None or not own_references(args.nbest)):
        wrong("references are needed: give --refs FILE")
    if args.decoder is None:
        if args.nbest is None:
            wrong("lists are needed: give --nbest FILE, or --decoder CMD that makes them")
        for name in ("rounds", "patience", "timeout", "resume"):
            if getattr(args, name) != args.default_of(name):
                wrong(f"--{name} belongs to --decoder CMD")
    else:
        if not args.run:
            wrong("--decoder needs --run DIR, where its rounds are kept")
        for name in ("fixed", "add"):
            if getattr(args, name):
                wrong(f"--{name} and --decoder: a decoder needs a weight for each of its features")
    if args.fixed and args.add:
        wrong("--fixed and --add: what is added is tuned with the dense ones, fixed here")
    names = [name for name, _ in args.add]
    for name in {name for name in names if names.count(name) > 1}:
        wrong(f"--add {name}=… twice: features need names of their own")
    if args.seed + args.seeds > 2**32:
        wrong(f"--seed and --seeds: seeds are whole numbers from 0 to {2**32 - 1}")
    if args.cluster is not None and args.seeds == 1:
        wrong("--cluster tunes with several seeds at once: give --seeds N too")
    check_held_out(args)
    if "-" in (args.weights, args.report) and args.json:
        wrong("--weights - or --report - and --json would share standard output")
    read = inputs(args)
    if read.count("-") > 1:
        wrong("standard input (-) can be read once only")
    if args.report == args.weights:
        wrong("--report and --weights are the same file")
    check_output(args.weights, read)
    if args.report:
        check_output(args.report, read)
    check_folder(args.run)


def check_held_out(args: argparse.Namespace) -> None:
    """Wrong usage: half of what held-out lists need, or too much."""
    wrong = args.usage_error
    if (args.dev_nbest is None) != (args.dev_refs is None) and not own_references(args.dev_nbest):
        wrong("--dev-nbest and --dev-refs belong together")
    if args.dev_nbest is None and args.dev_source is not None:
        wrong("--dev-source belongs to --dev-nbest")
    if args.dev_nbest is not None:
        if args.held_out:
            wrong("give --dev-nbest or --held-out, not both")
        if (args.source is None) != (args.dev_source is None):
            wrong("--source and --dev-source: give both, or neither")


def own_references(paths: list[str] | None) -> bool:
    """Whether lists may bring their references along: those in JSON do."""
    from hopefear.errors import HopefearError
    from hopefear.translation.lists import holds_json

    try:
        return any(map(holds_json, paths or ()))
    except HopefearError:  # a file that cannot be read is told of when it is
        return False


def inputs(args: argparse.Namespace) -> list[str]:
    """All files that are read."""
    many = [
        *(args.nbest or ()),
        *(args.refs or ()),
        *(args.dev_nbest or ()),
        *(args.dev_refs or ()),
    ]
    added = [path for _, path in args.add]
    single = [args.source, args.dev_source, args.fixed, args.start]
    return [*many, *added, *(path for path in single if path is not None)]


# Names of translation.features and translation.text_features, which import more slowly.
WORDS = ("consensus", "ngrams")
GROUPS = ("dense", "sparse", "phrases", *WORDS)
METRICS = ("bleu", "chrf", "ter")
SMOOTHINGS = ("none", "floor", "add-k", "exp", "add-one")


def lists(group: argparse._ArgumentGroup, *, needed: bool = False) -> None:
    """``--nbest``, ``--refs`` and ``--source``."""
    named(
        group,
        "--nbest",
        "N-best lists of Moses (ID ||| words ||| Name= numbers … ||| score), or lists in JSON "
        "as `train rerank` reads them; several, as of several runs of a decoder, are merged",
        nargs="+",
        required=needed,
    )
    named(
        group,
        "--refs",
        "references, one sentence a line; several files are several references of each; lists "
        "in JSON may bring their own",
        nargs="+",
        required=needed,
    )
    source(group)


def source(group: argparse._ArgumentGroup) -> None:
    """``--source``."""
    named(group, "--source", "the sentences that were translated; phrase pairs are read too then")


def metric(group: argparse._ArgumentGroup) -> None:
    """``--metric`` and ``--smoothing``; None where nothing is said."""
    group.add_argument(
        "--metric",
        choices=METRICS,
        help="what scores choices, of text as it is split already (default: bleu)",
    )
    group.add_argument(
        "--smoothing",
        choices=SMOOTHINGS,
        help="of the BLEU of single sentences, which learners look at (default: add-one)",
    )


def reading(group: argparse._ArgumentGroup) -> None:
    """What becomes of equal candidates and of gaps."""
    choice(
        group,
        "--dedup",
        ("first", "none"),
        "of the candidates of a list with equal words and features keep the first, or all",
    )
    absent(group)
    on_error(group)


def absent(group: argparse._ArgumentGroup) -> None:
    """``--absent``."""
    choice(
        group,
        "--absent",
        ("raise", "skip"),
        "a reference without a list, or a gap among the ids of lists: stop, or leave the "
        "sentence out",
    )


def held_out(parser: argparse.ArgumentParser) -> None:
    """Lists to stop and to choose by."""
    group = parser.add_argument_group("held-out lists")
    named(
        group,
        "--dev-nbest",
        "other lists: the best round and the best seed are those that score best on them",
        nargs="+",
    )
    named(group, "--dev-refs", "their references", nargs="+")
    named(group, "--dev-source", "their sentences, if --source is given")
    named(
        group,
        "--held-out",
        "instead: hold out this share of the lists, such as 0.2, at random by --seed",
        "SHARE",
        type=_share,
        default=0.0,
    )


def learning(parser: argparse.ArgumentParser, default: str) -> None:
    """The learner, where it starts, and its seeds."""
    group = parser.add_argument_group("learning")
    named(
        group,
        "--learner",
        f"see `hopefear learners --task tune` (default: {default})",
        "NAME",
        default=default,
    )
    params(group, "C=0.01 or loss=ramp")
    named(
        group,
        "--start",
        "weights to begin with: decoder (those behind the scores in the lists), moses (what "
        "it gives an untuned system), uniform, or a file; auto takes the decoder's where they can "
        "be found, else those of moses (default: auto)",
        "WHERE",
        default="auto",
    )
    allow_outside(group, "read sparse weights that a moses.ini names")
    named(
        group,
        "--fixed",
        "the score under these weights is a fixed part of every candidate's; dense features "
        "keep them, and to those of other features is added what is learned",
    )
    named(
        group,
        "--add",
        "the score under these weights becomes one more dense feature NAME; in what is "
        "written it is spread over the features again; may be repeated",
        "NAME=FILE",
        type=_named_file,
        action="append",
        default=[],
    )
    whole(group, "--epochs", "passes over the lists (default: learner's)")
    seed(group, "weights")
    whole(
        group,
        "--seeds",
        "tune N times, with seeds from --seed on: keep the best, tell how they differ",
        1,
    )
    cluster(group, "tune with these seeds")


def features(group: argparse._ArgumentGroup) -> None:
    """What gets weights."""
    named(
        group,
        "--features",
        "what gets weights, of dense, sparse, phrases, consensus (agreement with the rest of "
        "the list) and ngrams (of one to three words); default: dense, sparse and phrases as far "
        "as the lists have them, with --fixed all of these but dense, which is needed without it",
        "A,B",
        type=_groups,
    )
    whole(
        group,
        "--min-count",
        "keep sparse features and phrase pairs that tell candidates apart in at least N lists",
        1,
    )


def decoder(parser: argparse.ArgumentParser) -> None:
    """The loop around a decoder."""
    group = parser.add_argument_group("a decoder in the loop")
    named(
        group,
        "--decoder",
        "a shell command that reads weights from {weights} and writes an N-best list to "
        "{nbest}; it is run, its lists are added to the earlier ones and to those of --nbest, if "
        "given, and tuned on, in rounds",
        COMMAND,
    )
    flag(group, ALLOW_COMMANDS, "run a command that stands in the file of --config")
    whole(
        group,
        "--rounds",
        "rounds at most; it ends before when nothing new comes or nothing is gained (default: 10)",
    )
    whole(
        group,
        "--patience",
        "rounds without a better score of the decoder's own choices before it ends (default: 5)",
    )
    flag(
        group,
        "--resume",
        "go on with the rounds in the folder of --run, which must have the same settings",
    )
    named(group, "--timeout", "that one run of the decoder may take", "SECONDS", type=number)


def output(parser: argparse.ArgumentParser) -> None:
    """What is written."""
    group = parser.add_argument_group("output")
    named(group, "--weights", "file to write; - is standard output", "OUT", required=True)
    group.add_argument(
        "--format",
        choices=("text", "moses", "json"),
        help="of that file: NAME= NUMBER … lines, a [weight] section, or all that is known of "
        "them (default: .ini is moses, .json is json, others are text)",
    )
    run_folder(group, ", and for the rounds of a decoder")
    named(group, "--report", "page of scores, rounds and weights", "FILE.html")
    json_option(group)


def _share(text: str) -> float:
    value = number(text)
    if not 0.0 < value < 1.0:
        raise argparse.ArgumentTypeError(f"expected a share between 0 and 1, found {text!r}")
    return value


def _groups(text: str) -> list[str]:
    """Groups of features between commas.

    >>> _groups("dense,phrases")
    ['dense', 'phrases']
    """
    groups = [part.strip() for part in text.split(",")]
    if not set(groups) <= set(GROUPS) or len(set(groups)) < len(groups):
        raise argparse.ArgumentTypeError(
            f"expected some of {', '.join(GROUPS)} between commas, found {text!r}"
        )
    return groups


def _named_file(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not (name and equals and path) or name.split() != [name]:
        raise argparse.ArgumentTypeError(f"expected NAME=FILE, found {text!r}")
    return name, path


LEARNER = "kbmira"
ROUNDS, PATIENCE = 10, 5
