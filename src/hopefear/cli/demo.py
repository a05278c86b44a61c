"""``hopefear demo``: every task on small data that comes with the package, by usual commands."""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from hopefear.cli.compare import Study, read_study
from hopefear.cli.console import Console, check_output
from hopefear.tasks import TASKS

if TYPE_CHECKING:
    from hopefear.report import Page

USAGE = "[--out FILE.html] [--files DIR]"
DESCRIPTION = """
Tag, parse and classify a small sample of real text with the default learner of each task and
others, rerank lists of candidates and tune a translator on generated ones, classify rows of
numbers, and print how they did: new sentences tagged, a tree drawn, questions answered with
probabilities, and why. Every table names the command that makes it. All goes to a page as well.
Takes about 90 seconds the first time, when kernels are compiled, and some seconds from then on.
"""
EXAMPLES = """
examples:
  hopefear demo
  hopefear demo --out /tmp/demo.html
  hopefear demo --files sample          # the files alone, to try commands on
"""
_SENTENCES = (
    "The waiter at Pizza Bella kindly found us a table .",
    "Can anyone recommend a vet who will book an appointment online ?",
    "Time flies like an arrow .",
)
_ASKED = 2  # the token of the last sentence that is explained
_QUESTIONS = (
    "My card still has not arrived, where is it?",
    "Somebody took money out of my account!",
)
_SECTIONS = {
    "tag": (
        "Parts of speech",
        "compare tag --train english-train.conllu --test english-test.conllu --column upos "
        "--epochs 5",
    ),
    "parse": (
        "Dependency trees",
        "compare parse --train english-train.conllu --test english-test.conllu --order 1 "
        "--epochs 3",
    ),
    "texts": (
        "Questions of bank customers, 77 intents",
        "compare classify --train questions-train.tsv --test questions-test.tsv",
    ),
    "rows": (
        "People with an income above 50,000 dollars, from 123 features",
        "compare classify --train income-train.svm --test income-test.svm",
    ),
}
_RIVAL = "perceptron"
_TUNING = {"epochs": 20}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out",
        default="report.html",
        metavar="FILE.html",
        help="page to write (default: report.html)",
    )
    parser.add_argument(
        "--files", metavar="DIR", help="write the sample files into DIR and do nothing else"
    )


def run(args: argparse.Namespace) -> int:
    from hopefear.data.samples import write_samples

    if args.files is not None:
        for path in write_samples(args.files):
            print(path)
        return 0
    check_output(args.out)
    from hopefear.cli.progress import announced
    from hopefear.report import Page

    console, started = Console(args.quiet), time.perf_counter()
    out = os.path.abspath(args.out)
    page = Page("hopefear demo", "every task on small data that comes with the package")
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        announced(console, "these learners") as compiling,
    ):
        write_samples(folder)
        signatures = [
            *_tags(console, page),
            *_texts(console, page),
            *_trees(console, page),
            *_lists(console, page, _study_lists(1_000, 300, 5)),
            *_translations(console, page, _tunings(200)),
            *_rows(console, page, _study("rows")),
        ]
    page.signature = "\n".join(signatures)
    page.write(out)
    took = time.perf_counter() - started
    share = f", {compiling.seconds:.0f} s of it compiling, once" if compiling.seconds > 1 else ""
    console.say(f"\n{took:.0f} s{share}. The report:")
    print(out)
    return 0


def learners_of(task: str) -> tuple[str, ...]:
    """Returns the learners that are shown for a task, its default first."""
    return tuple(dict.fromkeys((TASKS[task].learner, _RIVAL)))


def _read(section: str) -> Study:
    """Reads the files of a section; its learners have yet to run."""
    from hopefear.cli import parsed

    return read_study(parsed(_command(section)), Console(quiet=True))


def _study(section: str) -> Study:
    """Reads the files of a section, trains its learners and tests them."""
    return _learned(_read(section), learners_of(_command(section)[1]))


def _command(section: str) -> list[str]:
    words = _SECTIONS[section][1].split()
    return [*words, "--learners", ",".join(learners_of(words[1]))]


def _learned(study: Study, learners: Sequence[str]) -> Study:
    study.run([(name, name, {}) for name in learners], Console(quiet=True))
    return study


def _announce(console: Console, section: str) -> None:
    console.say(f"\n{_SECTIONS[section][0]}\n\n$ hopefear {' '.join(_command(section))}\n")


def _show(study: Study, console: Console, page: Page, title: str, text: str = "") -> list[str]:
    """Shows the table and adds it to the page; returns the signatures of the models."""
    study.show(console)
    study.section(page, title, text or study.describe())
    main, names = study.scores[0], [result.name for result in study.results]
    scores = [result.scores[main.name] * (1 if main.higher else -1) for result in study.results]
    if scores[0] < min(scores[1:]):
        console.say(f"\nThe default, {names[0]}, is last on this small sample.")
    return study.signatures()


def _tags(console: Console, page: Page) -> list[str]:
    """Parts of speech: learners compared, and what the default says of new sentences."""
    _announce(console, "tag")
    study, text = _read("tag"), ""
    for name in learners_of("tag"):
        _learned(study, [name])
        text = text or _sentences(console, study)
    signatures = _show(study, console, page, _SECTIONS["tag"][0])
    page.section("What it says of new sentences", level=3).code(text)
    return signatures


def _sentences(console: Console, study: Study) -> str:
    """Shows new sentences with their tags, the best readings of one, and why."""
    import hopefear.tasks

    tagger = hopefear.tasks.estimator_of(study.results[0].runs[0].model)
    words = [line.split() for line in _SENTENCES]
    lines: list[str] = []

    def say(text: str = "") -> None:
        console.say(text)
        lines.append(text)

    say("Sentences that it has not seen:\n")
    for sentence, labels in zip(words, tagger.predict(words), strict=True):
        say(_beside(sentence, labels))
    say("Readings of the last one, with their probabilities:\n")
    for output in tagger.predict_nbest(words[-1:], n=3)[0]:
        say(f"  {100 * output.probability:5.1f} %  {' '.join(output.labels)}")
    reason = tagger.explain(words[-1:], 0, _ASKED)
    word = words[-1][_ASKED]
    say(f"\nWhy is “{word}” {reason.label}, and not {reason.runner_up}? Because of\n")
    for name, gain in reason.contributions[:5]:
        say(f"  {gain:+7.2f}  {name}")
    say()
    return "\n".join(lines).strip()


def _beside(words: Sequence[str], labels: Sequence[str]) -> str:
    """Returns words above their labels.

    >>> print(_beside(["a", "hotel"], ["DET", "NOUN"]).rstrip())
      a    hotel
      DET  NOUN
    """
    widths = [max(map(len, pair)) for pair in zip(words, labels, strict=True)]
    rows = (
        "  ".join(f"{text:<{width}}" for text, width in zip(texts, widths, strict=True))
        for texts in (words, labels)
    )
    return "".join(f"  {row.rstrip()}\n" for row in rows)


def _texts(console: Console, page: Page) -> list[str]:
    """Texts: learners compared, and new questions answered."""
    import hopefear.tasks

    _announce(console, "texts")
    study = _study("texts")
    signatures = _show(study, console, page, _SECTIONS["texts"][0])
    classifier = hopefear.tasks.estimator_of(study.results[0].runs[0].model)
    console.say("\nQuestions that it has not seen:\n")
    for question, row in zip(_QUESTIONS, classifier.predict_proba(list(_QUESTIONS)), strict=True):
        best = row.argsort()[::-1][:2]
        answers = ", ".join(f"{classifier.classes_[k]} {100 * row[k]:.0f} %" for k in best)
        console.say(f"  {question}\n    {answers}")
    return signatures


def _trees(console: Console, page: Page) -> list[str]:
    """Trees: learners compared, and a new sentence drawn."""
    from hopefear.report import ArcDiagram, text_tree

    _announce(console, "parse")
    study = _study("parse")
    signatures = _show(study, console, page, _SECTIONS["parse"][0])
    bank = study.test.bank
    lengths = [after - first for first, after in pairwise(bank.starts.tolist())]
    bank = bank.take([next(i for i, length in enumerate(lengths) if 8 <= length <= 11)])
    heads, relations = study.results[0].runs[0].model.parse(bank)
    words = bank.sentences.columns["form"].texts()
    parts = words, heads.tolist(), relations.texts()
    console.say(f"\nA sentence that it has not seen:\n\n{text_tree(*parts)}")
    page.section("A tree of a new sentence", level=3).tree(ArcDiagram(*parts))
    return signatures


def _rows(console: Console, page: Page, study: Study) -> list[str]:
    """Rows of features: learners compared."""
    _announce(console, "rows")
    return _show(study, console, page, _SECTIONS["rows"][0])


def _lists(console: Console, page: Page, study: Study) -> list[str]:
    """Lists of candidates: learners compared."""
    title = "Lists of candidates, generated"
    text = (
        f"{len(study.prepared.data):,} lists of 20 candidates, {study.tested_on()}. A candidate "
        "costs the more the less it is worth under hidden weights of 300 sparse features, of "
        "which its generator has a vague idea."
    )
    console.say(f"\n{title}: {text}\n")
    return _show(study, console, page, title, text)


def _study_lists(train: int, test: int, epochs: int) -> Study:
    import numpy as np

    from hopefear.cli.surface import surface_of
    from hopefear.data.generators import candidate_lists
    from hopefear.tasks.rerank.prepare import prepare

    lists = candidate_lists(train + test, 20, 300, doubt=4.0, seed=1)
    prepared = prepare(lists, {})
    test_data = prepared.held_out(lists).take(np.arange(train, train + test))
    prepared = replace(prepared, data=prepared.data.take(np.arange(train)))
    study = Study(surface_of("rerank"), prepared, lambda own: test_data, None, {"epochs": epochs})
    return _learned(study, learners_of("rerank"))


class _Tunings(NamedTuple):
    """Tuned weights: (learner, tuning, BLEU on test lists), and BLEU without tuning."""

    n_lists: int
    results: list[tuple[str, Any, float]]
    decoder: float
    oracle: float


def _tunings(n: int) -> _Tunings:
    from hopefear.translation.examples import translations
    from hopefear.translation.lists import lists_in_memory
    from hopefear.translation.task import corpus_oracle, corpus_score, tune

    data, dev, test = (lists_in_memory(*translations(n, seed=seed)) for seed in (1, 2, 3))
    results = []
    for learner in learners_of("tune"):
        tuning = tune(data, learner, _TUNING, dev=dev)
        results.append((learner, tuning, corpus_score(test, tuning.weights)))
    return _Tunings(n, results, corpus_score(test, results[0][1].start), corpus_oracle(test))


def _translations(console: Console, page: Page, tunings: _Tunings) -> list[str]:
    """Made-up translations and five features of them; the signatures of the tuners."""
    from hopefear.report import Plot

    n = tunings.n_lists
    title, text = (
        "Translations, generated",
        f"Weights tuned on {n} lists of 20 made-up translations, with {n} held out and {n} to "
        "test; five features know something of what is wrong with a translation, and the weights "
        f"that the decoder gives them are poor. Test BLEU of the decoder {tunings.decoder:.2f}, of "
        f"the oracle {tunings.oracle:.2f}.",
    )
    columns = ["tuner", "tuned BLEU", "held-out BLEU", "test BLEU", "passes"]
    rows = [
        [
            name,
            *(f"{score:.2f}" for score in (tuning.after["train"], tuning.after["dev"], score)),
            len(tuning.history),
        ]
        for name, tuning, score in tunings.results
    ]
    console.say(f"\n{title}: {text}\n")
    best: dict[str, Any] = {name: "max" for name in columns if name.endswith("BLEU")}
    console.table(columns, rows, best)
    page.section(title).text(text)
    page.table(
        columns,
        rows,
        "Corpus BLEU of the candidates that tuned weights put first.",
        highlight=best,
    )
    plot = Plot("Held-out BLEU after each pass", "pass", "BLEU")
    for look, (name, tuning, *_) in enumerate(tunings.results):
        passes = [event["epoch"] for event in tuning.history]
        plot.line(passes, [event["dev"]["bleu"] for event in tuning.history], name, look=look)
    page.plot(plot)
    return [tuning.signature for _, tuning, *_ in tunings.results]
