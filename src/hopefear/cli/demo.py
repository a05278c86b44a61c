"""``hopefear demo``: the main job on built-in data, without any file."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from hopefear.cli.compare import Result, Study
from hopefear.cli.console import Console, check_output

if TYPE_CHECKING:
    from hopefear.report import Page, Plot

USAGE = "[--out FILE.html]"
DESCRIPTION = """
Generate problems with a known truth, train several learners on two classes, on six classes, on
names in sentences, on dependency trees and on lists of candidates, tune the weights of a
translator, and print how they did; tag new sentences, show the best readings of one, say in words
why a name is what it is, and draw the tree of a sentence.
All goes to a page as well, with curves, the sparsity of the weights, and the mistakes of voted RDA
against the bound of its theorem. Takes a minute or two the first time, when kernels are compiled,
and some seconds from then on.
"""
EXAMPLES = """
examples:
  hopefear demo
  hopefear demo --out /tmp/demo.html
"""
Wanted = tuple[tuple[str, str, dict[str, Any]], ...]
_BINARY: Wanted = (
    ("perceptron", "perceptron", {}),
    ("tg", "tg", {"gravity": 1e-5}),
    ("rda", "rda", {"l1": 1e-4}),
    ("vrda", "vrda", {"l1": 1e-4}),
    ("adagrad-rda", "adagrad-rda", {"l1": 1e-4}),
    ("arow", "arow", {}),
)
_CLASSES: Wanted = (
    ("perceptron", "perceptron", {}),
    ("vrda", "vrda", {"l1": 1e-5}),
    ("adagrad-rda", "adagrad-rda", {"l1": 1e-5}),
    ("pa", "pa", {"C": 0.1}),
)
_CHAINS: Wanted = (
    ("perceptron", "perceptron", {}),
    ("sapo", "sapo", {}),
    ("sapo:n=20", "sapo", {"n": 20}),
)
_TREES: Wanted = (("perceptron", "perceptron", {}), ("mira", "mira", {}))
_LISTS: Wanted = (
    ("perceptron", "perceptron", {}),
    ("vrda", "vrda", {"l1": 1e-2}),
    ("maxent", "maxent", {}),
)
_TUNERS: Wanted = (
    ("kbmira", "kbmira", {"epochs": 20}),
    ("mert", "mert", {"restarts": 5}),
    ("pro", "pro", {}),
)
_SENTENCES = (
    "Washington , who grew up in Washington , now works for Washington Airways .",
    "Clara Berlin of Bank of Lima will visit Ghent on Friday .",
    "Rosa Petersen wrote three novels before Moretti & Sons hired him .",
    "Sydney is in trouble again .",
)
_ASKED = 6  # the token of the first sentence that is explained
_COLOURS = {"PER": 35, "LOC": 32, "ORG": 36}
_PLACES = {
    -2: "two before, the word",
    -1: "the word before",
    0: "the word itself",
    1: "the word behind it",
    2: "two behind, the word",
}
_SAYINGS = {
    "": "is",
    "normal": "is, case aside,",
    "classes": "has",
    "prefix": "begins with",
    "suffix": "ends in",
    "shape": "is written like",
    "short_shape": "is written like",
}
# Another process compiles the kernels of sentences and lists while this one is busy with classes.
_AHEAD = "from hopefear.cli.demo import compile_ahead; compile_ahead()"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out",
        default="report.html",
        metavar="FILE.html",
        help="page to write (default: report.html)",
    )


def run(args: argparse.Namespace) -> int:
    check_output(args.out)
    from hopefear.cli.progress import announced
    from hopefear.report import Page

    console, started = Console(args.quiet), time.perf_counter()
    page = Page("hopefear demo", "several learners on generated problems")
    with announced(console, "these learners") as compiling, _meanwhile() as ahead:
        signatures = _classes(console, page)
        if ahead.poll() is None:
            console.say("\nwaiting for the kernels of sentences and lists")
            ahead.wait()
        signatures += _chains(console, page) + _trees(console, page) + _lists(console, page)
        signatures += _translations(console, page)
    page.signature = "\n".join(signatures)
    page.write(args.out)
    took = time.perf_counter() - started
    compiled = f", {compiling.seconds:.0f} s of them compiling" if compiling.seconds > 1 else ""
    console.say(f"\n{took:.0f} s{compiled}. The report:")
    print(os.path.abspath(args.out))
    return 0


def compile_ahead() -> None:
    """Train on next to nothing of each structure, so that kernels are in the cache."""
    from hopefear.report import Page

    quiet = Console(quiet=True)
    _language(quiet, Page(""), _study_chains(quiet, 20, 10, 1))
    _study_trees(quiet, 20, 10, 1)
    _study_lists(quiet, 20, 10, 1)
    _study_translations(quiet, 10)


@contextlib.contextmanager
def _meanwhile() -> Iterator[subprocess.Popen[bytes]]:
    nothing = subprocess.DEVNULL
    process = subprocess.Popen([sys.executable, "-c", _AHEAD], stdout=nothing, stderr=nothing)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def _classes(console: Console, page: Page) -> list[str]:
    """Two classes, then six; the signatures of the models."""
    from hopefear.cli.classify.corpus import Examples
    from hopefear.data.generators import sparse_linear
    from hopefear.tasks.classify.task import Classification

    signatures = []
    for classes, learners in ((2, _BINARY), (6, _CLASSES)):
        problem = sparse_linear(
            24_000, 10_000, per_row=(20, 50), true_weights=600, classes=classes, seed=7
        )
        first, rest = problem.split(20_000)
        data, test = first.dataset(), rest.dataset()
        title = "Two classes" if classes == 2 else f"{classes} classes"
        text = (
            f"{len(data):,} examples of 20 to 50 out of {data.n_features:,} features, of "
            "which 600 matter; 5 % of the labels are wrong, so no error below 5 % can be "
            "expected."
        )
        console.say(f"\n{title}: {text}")
        study = Study(Classification(), Examples(data=data), test)
        watched = {"vrda": Classification(bounds=True)} if classes == 2 else None
        study.run(learners, console, {"epochs": 3}, watched)
        signatures += _shown(study, console, page, title, text)
        for result in study.results:
            if any(event.get("bound") for event in result.events):
                page.plot(
                    _bounds_plot(result),
                    "Theorem 1 bounds the mistakes of voted RDA for "
                    "any comparator; here it is the average so far, at its best scale.",
                )
    return signatures


def _shown(study: Study, console: Console, page: Page, title: str, text: str) -> list[str]:
    """Table and curves of a study; the signatures of its models."""
    console.say()
    study.show(console)
    study.section(page, title, text)
    return study.signatures()


def _bounds_plot(result: Result) -> Plot:
    """Mistakes of a watched run beside Theorem 1."""
    from hopefear.report import Plot

    bounds = [(e["samples"], e["bound"]) for e in result.events if e.get("bound")]
    plot = Plot(f"Mistakes of {result.name} against the bound", "samples", "mistakes")
    plot.line([x for x, _ in bounds], [bound["mistakes"] for _, bound in bounds], "mistakes")
    limits = [(x, bound["theorem1"]) for x, bound in bounds if bound["theorem1"] is not None]
    plot.line([x for x, _ in limits], [y for _, y in limits], "Theorem 1", dashed=True)
    return plot


def _chains(console: Console, page: Page) -> list[str]:
    """Names in sentences: learners compared, and what one says of new sentences."""
    train, test = 600, 200
    title, text = (
        "Names in sentences",
        f"{train} sentences with names of persons, places and organisations, tested on {test}; "
        "persons are called after places and companies after both, so neighbours and their labels "
        "must help.",
    )
    console.say(f"\n{title}: {text}")
    study = _study_chains(console, train, test, 5)
    signatures = _shown(study, console, page, title, text)
    _language(console, page, study)
    return signatures


def _study_chains(console: Console, train: int, test: int, epochs: int) -> Study:
    from hopefear.cli.tag.corpus import Schemes, Tokens
    from hopefear.data.generators import news
    from hopefear.tasks.tag.model import encoded
    from hopefear.tasks.tag.task import Tagging, dataset

    data, rest = dataset(news(train, seed=1), "ner"), news(test, seed=2)
    test_data = encoded(
        rest, data.features.encode(rest), data.labels, rest.columns["label"], data.features
    )
    tokens = Tokens(data=data, schemes=Schemes("bio", "bio"))
    study = Study(Tagging(scheme="bio"), tokens, test_data)
    study.run(_CHAINS, console, {"epochs": epochs})
    return study


def _language(console: Console, page: Page, study: Study) -> None:
    """New sentences with the names that SAPO sees, the n best of one, and why."""
    import numpy as np

    from hopefear.cli.tag.answers import in_brackets
    from hopefear.data.sequences import Column, Sentences

    model = next(result.runs[0].model for result in study.results if result.name == "sapo")
    words = [line.split() for line in _SENTENCES]
    starts = np.cumsum([0, *map(len, words)])
    column = Column.of([word for line in words for word in line])
    data = model.encode(Sentences(starts, {"word": column}, "the demo"))
    labels = [model.labels[k] for k in model.decoder().best(data.rows)]
    said: list[str] = []

    def say(text: str, plain: str | None = None) -> None:
        console.say(text)
        said.append(text if plain is None else plain)

    colour = console.terminal and not os.environ.get("NO_COLOR")
    say("\nSentences that it has not seen:\n")
    for line, start, after in zip(words, starts, starts[1:], strict=False):
        plain = in_brackets(line, labels[start:after], "bio")
        painted = in_brackets(line, labels[start:after], "bio", _painted) if colour else plain
        say(f"  {painted}", f"  {plain}")
    say("\nThe three best readings of the last one, with their probabilities:\n")
    last = data.take([len(words) - 1])
    (ranked,) = model.decoder().nbest(last.rows, 3)
    for path, share in zip(ranked.labels, ranked.probabilities, strict=True):
        names = [model.labels[k] for k in path]
        say(f"  {100 * share:5.1f} %  {in_brackets(words[-1], names, 'bio')}")
    reason = model.explain(data, 0, _ASKED)
    asked = f"{words[0][_ASKED - 1]} {words[0][_ASKED]}"
    say(f"\nWhy is “{asked}” {reason.label}, and not {reason.runner_up}? Because\n")
    for name, gain in reason.contributions[:5]:
        say(f"  {gain:+7.2f}  {in_words(name)}")
    page.section("What it says of new sentences", level=3).code("\n".join(said).strip())


def _painted(text: str, kind: str) -> str:
    return f"\x1b[1;{_COLOURS[kind]}m{text}\x1b[0;2m {kind}\x1b[0m"


def in_words(feature: str) -> str:
    """A feature of the set ``ner`` as people say it; others as they are called.

    >>> in_words("word[-1]=in"), in_words("suffix(word,2)[0]=on at token +1")
    ('the word before is “in”', 'the word itself ends in “on”, at token +1')
    >>> in_words("transition O B-PER (not O B-LOC)")
    'B-PER follows O, not B-LOC behind O'
    """
    if pair := re.match(r"transition (\S+) (\S+) \(not (\S+) (\S+)\)(.*)", feature):
        return f"{pair[2]} follows {pair[1]}, not {pair[4]} behind {pair[3]}{pair[5]}"
    match = re.fullmatch(
        r"(?:(\w+)\()?word(?:,\s*\d+)?\)?\[([-+]?\d)\]=(\S+)(?: at (token .*))?", feature
    )
    if match is None or (match[1] or "") not in _SAYINGS:
        return feature
    where = _PLACES.get(int(match[2]), f"the word at {int(match[2]):+d}")
    place = f", at {match[4]}" if match[4] else ""
    return f"{where} {_SAYINGS[match[1] or '']} “{match[3]}”{place}"


def _trees(console: Console, page: Page) -> list[str]:
    """Trees of sentences: learners compared, and a sentence drawn."""
    from hopefear.report import ArcDiagram, text_tree

    train, test = 300, 100
    title, text = (
        "Dependency trees",
        f"{train} sentences of a small grammar, tested on {test}; what a phrase with “with” "
        "belongs to, only its noun tells.",
    )
    console.say(f"\n{title}: {text}")
    study = _study_trees(console, train, test, 3)
    signatures = _shown(study, console, page, title, text)
    model = study.results[-1].runs[0].model
    # One of a usual length with such a phrase.
    words = study.test.bank.sentences.columns["form"].texts()
    starts = study.test.bank.starts.tolist()
    i = next(
        i
        for i, (first, after) in enumerate(pairwise(starts))
        if after - first < 15 and "with" in words[first:after]
    )
    bank = study.test.bank.take([i])
    heads, relations = model.parse(bank)
    parts = bank.sentences.columns["form"].texts(), heads.tolist(), relations.texts()
    console.say(f"\nA sentence that it has not seen:\n\n{text_tree(*parts)}")
    page.section("A tree of a new sentence", level=3).tree(ArcDiagram(*parts))
    return signatures


def _study_trees(console: Console, train: int, test: int, epochs: int) -> Study:
    from hopefear.cli.parse.corpus import Parsed
    from hopefear.data.grammar import synthetic_treebank
    from hopefear.tasks.parse.task import Parsing, dataset, held_out

    data = dataset(synthetic_treebank(train, seed=1), order=1, plain_bits=18, row_bits=16)
    test_data = held_out(data, synthetic_treebank(test, seed=2))
    study = Study(Parsing(data.kind), Parsed(data=data), test_data)
    study.run(_TREES, console, {"epochs": epochs})
    return study


def _lists(console: Console, page: Page) -> list[str]:
    """Lists whose best candidate follows from hidden weights; the signatures of the models."""
    train, test = 2_000, 500
    title, text = (
        "Lists of candidates",
        f"{train:,} lists of 20 candidates, tested on {test}; a candidate costs the more the less "
        "it is worth under hidden weights of 300 sparse features, of which its generator has a "
        "vague idea.",
    )
    console.say(f"\n{title}: {text}")
    study = _study_lists(console, train, test, 5)
    about_test = study.corpus.tested_on(study.test)
    console.say(f"\n{about_test}")
    return _shown(study, console, page, title, f"{text} Models are {about_test}.")


def _study_lists(console: Console, train: int, test: int, epochs: int) -> Study:
    import numpy as np

    from hopefear.cli.rerank.corpus import Candidates
    from hopefear.data.generators import candidate_lists
    from hopefear.data.lists.dataset import encoded
    from hopefear.tasks.rerank.judging import metric_of
    from hopefear.tasks.rerank.task import Reranking, dataset

    lists = candidate_lists(train + test, 20, 300, doubt=4.0, seed=1)
    data = dataset(lists)
    first, rest = np.arange(train), np.arange(train, train + test)
    data, test_data = data.take(first), encoded(lists, data.features).take(rest)
    # The generator's candidates come best first.
    corpus = Candidates(
        data=data,
        judged_by=metric_of(None, test_data),
        first={"test": np.zeros(test, np.int64)},
    )
    study = Study(Reranking(), corpus, test_data)
    study.run(_LISTS, console, {"epochs": epochs})
    return study


def _translations(console: Console, page: Page) -> list[str]:
    """Made-up translations and five features of them; the signatures of the tuners."""
    from hopefear.report import Plot

    n = 300
    title, text = (
        "Translations",
        f"Weights tuned on {n} lists of 20 made-up translations, with {n} held out and {n} to "
        "test; five features know something of what is wrong with a translation, and the weights "
        "that the decoder gives them are poor.",
    )
    console.say(f"\n{title}: {text}")
    results, bounds = _study_translations(console, n)
    limits = (
        f"Test BLEU of the decoder {bounds['decoder']:.2f}, of the oracle {bounds['oracle']:.2f}."
    )
    columns = ["tuner", "tuned BLEU", "held-out BLEU", "test BLEU", "rounds", "s"]
    rows = [
        [
            name,
            *(f"{score:.2f}" for score in (tuning.after["train"], tuning.after["dev"], score)),
            len(tuning.history),
            f"{seconds:.2f}",
        ]
        for name, tuning, score, seconds in results
    ]
    console.say(f"\n{limits}")
    best: dict[str, Any] = {name: "max" for name in columns if name.endswith("BLEU")}
    console.table(columns, rows, best)
    page.section(title).text(f"{text} {limits}")
    page.table(
        columns,
        rows,
        "Corpus BLEU of the candidates that tuned weights put first.",
        highlight=best,
        notes=["rounds: passes of kbmira, of which held-out lists choose one, and starts of MERT."],
    )
    plot = Plot("Held-out BLEU after each round", "round", "BLEU")
    for look, (name, tuning, *_) in enumerate(results):
        draw = plot.line if len(tuning.history) > 1 else plot.points
        rounds = [event["epoch"] for event in tuning.history]
        draw(rounds, [event["dev"]["bleu"] for event in tuning.history], name, look=look)
    page.plot(plot)
    return [tuning.signature for _, tuning, *_ in results]


def _study_translations(
    console: Console, n: int
) -> tuple[list[tuple[str, Any, float, float]], dict[str, float]]:
    from hopefear.translation.examples import translations
    from hopefear.translation.lists import lists_in_memory
    from hopefear.translation.task import corpus_oracle, corpus_score, tune

    data, dev, test = (lists_in_memory(*translations(n, seed=seed)) for seed in (1, 2, 3))
    results = []
    for label, learner, params in _TUNERS:
        began = time.perf_counter()
        tuning = tune(data, learner, params, dev=dev)
        seconds = time.perf_counter() - began
        score = corpus_score(test, tuning.weights)
        results.append((label, tuning, score, seconds))
        console.say(f"  {label}: test BLEU {score:.2f}")
    bounds = {"decoder": corpus_score(test, tuning.start), "oracle": corpus_oracle(test)}
    return results, bounds
