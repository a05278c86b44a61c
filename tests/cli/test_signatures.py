"""A signature says everything that changes a model: every option of train, by reflection.

Of each option one of three things is said: another value gives other weights *and* another
signature; or it gives neither, for the reason that stands here; or another test shows it, which
is named. An option that is in no table fails.
"""

from __future__ import annotations

import contextlib
import functools
import json
from pathlib import Path

import numpy as np
import pytest

from hopefear.cli import main, parser_of
from hopefear.cli.surface import task_names
from hopefear.errors import HopefearError
from hopefear.recipes.base import ON
from hopefear.recipes.parts import AVERAGINGS, COSTS, LOSSES, RULES
from hopefear.storage import load
from hopefear.tasks import TASKS, recipes_of
from hopefear.training.cccp import INNER
from hopefear.training.cutting_plane import SLACKS
from hopefear.translation.tuners import mert
from hopefear.translation.tuners.online_tuner import BACKGROUNDS, KEEPS

pytestmark = pytest.mark.interpreted

TSV = "--train texts.tsv --ngrams 1 --chars 0 --no-marks --values counts"
CSV = "--train texts.csv"
TEXT = "--train words.txt"
SPANS = "--train spans.txt"
LISTS = "--train lists.jsonl --learner mira"
RANKED = "--train lists.jsonl --learner perceptron"
TREES = "--train bank.conllu --order 1 --features arcs.toml --hash-bits 12"
# What is common to all: quick, and on text with mistakes to learn from.
COMMON = {"classify": "--learner perceptron --epochs 2", "tag": "--learner perceptron --epochs 2",
          "rerank": "--epochs 2", "parse": "--learner perceptron --epochs 1"}  # fmt: skip

# Option: a command line, and what is added to it (or takes the place of a word of it).
CHANGING: dict[str, dict[str, tuple[str, str]]] = {
    "classify": {
        "--train": (TSV, "texts.tsv => others.tsv"),
        "--shards": (TSV, "--shards 2"),
        "--merge": (f"{TSV} --shards 2", "--merge mean"),
        "--merges": (f"{TSV} --shards 2", "--merges 2"),
        "--max-features": (f"{TSV} --shards 2", "--max-features 3"),
        "--nb-share": (f"{TSV} --values nb", "--nb-share 0.5"),
        "--dev": (f"{TSV} --epochs 6", "--dev others.tsv --patience 1"),
        "--format": ("--train mixed.tsv", "--format svmlight"),
        "--text-column": (CSV, "--text-column other"),
        "--label-column": (CSV, "--label-column kind"),
        "--encoding": ("--train latin.tsv --encoding latin-1", "latin-1 => cp1251"),
        "--weights": (TSV, "--weights ones.txt"),
        "--epochs": (TSV, "--epochs 3"),
        "--seed": (TSV, "--seed 2"),
        "--no-shuffle": (TSV, "--no-shuffle"),
        "--class-weight": (TSV, "--class-weight hope=3"),
        "--learner": (TSV, "--learner arow"),
        "-p": (TSV, "-p averaging=last"),
        "--patience": (f"{TSV} --dev others.tsv --epochs 9 --patience 1 -p averaging=last",
                       "--patience 8"),
        "--metric": (f"{TSV} --dev others.tsv --epochs 9 -p averaging=last", "--metric log_loss"),
        "--ngrams": (TSV, "--ngrams 2"),
        "--chars": (TSV, "--chars 2-3"),
        "--lowercase": (TSV, "--no-lowercase"),
        "--marks": (TSV, "--marks"),
        "--min-count": (TSV, "--min-count 9"),
        "--max-share": (TSV, "--max-share 0.4"),
        "--hash-bits": (TSV, "--hash-bits 3"),
        "--values": (TSV, "--values tfidf"),
        "--norm": (TSV, "--norm none"),
        "--intercept": (TSV, "--intercept 2"),
        "--no-temperature": (f"{TSV} --weights ones.txt", "--no-temperature"),
    },
    "tag": {
        "--train": (TEXT, "words.txt => spans.txt"),
        "--shards": (TEXT, "--shards 2"),
        "--merge": (f"{TEXT} --shards 2", "--merge mean"),
        "--merges": (f"{TEXT} --shards 2", "--merges 2"),
        "--max-features": (f"{TEXT} --shards 2", "--max-features 3"),
        "--dev": (f"{TEXT} --epochs 6 -p averaging=last", "--dev others.txt --patience 1"),
        "--format": ("--train mixed.txt", "--format crfsuite"),
        "--columns": ("--train three.txt", "--columns pos,word,label"),
        "--column": ("--train three.txt", "--column pos --features pos"),
        "--scheme": (f"{SPANS} --constraints always", "--scheme none"),
        "--scheme-errors": ("--train broken.txt", "--scheme-errors skip"),
        "--convert": (SPANS, "--convert iobes"),
        "--encoding": ("--train latin.txt --encoding latin-1", "latin-1 => cp1251"),
        "--epochs": (TEXT, "--epochs 3"),
        "--seed": (TEXT, "--seed 2"),
        "--no-shuffle": (TEXT, "--no-shuffle"),
        "--learner": (TEXT, "--learner mira"),
        "-p": (TEXT, "-p averaging=last"),
        "--patience": (f"{TEXT} --dev others.txt --epochs 9 --patience 1 -p averaging=last",
                       "--patience 8"),
        "--class-weight": (f"{TEXT} --learner mira", "--class-weight N=3"),
        "--features": (TEXT, "--features ner"),
        "--min-count": (TEXT, "--min-count 2"),
        "--hash-bits": (TEXT, "--hash-bits 3"),
        "--order": (TEXT, "--order 2"),
        "--segments": (SPANS, "--segments 2"),
        "--search": (f"{TEXT} --learner sapo -p n=3 --beam 1", "--search beam"),
        "--beam": (f"{TEXT} --learner sapo -p n=3 --search beam --beam 1", "--beam 30"),
        "--constraints": (SPANS, "--constraints always"),
        "--no-temperature": (TEXT, "--no-temperature"),
    },
    "rerank": {
        "--train": (LISTS, "lists.jsonl => others.jsonl"),
        "--shards": (RANKED, "--shards 2"),
        "--merge": (f"{RANKED} --learner vrda --shards 2", "--merge sum"),
        "--merges": (f"{RANKED} --shards 2", "--merges 2"),
        "--max-features": (f"{RANKED} --shards 2", "--max-features 3"),
        "--dev": (f"{LISTS} --epochs 6 -p averaging=last", "--dev others.jsonl --patience 1"),
        "--gold": ("--train nbest.bllip --format bllip --gold gold.mrg --features ptb "
                   "--min-count 1", "gold.mrg => other.mrg"),
        "--dev-gold": ("--train nbest.bllip --format bllip --gold gold.mrg --dev nbest.bllip "
                       "--dev-gold gold.mrg --features ptb --min-count 1 --epochs 4 "
                       "--learner perceptron -p averaging=last", "--dev-gold other.mrg"),
        "--refs": ("--train nbest.moses --refs one.ref", "one.ref => two.ref"),
        "--dev-refs": ("--train nbest.moses --refs one.ref --dev nbest.moses --dev-refs one.ref "
                       "--epochs 4 --learner perceptron -p averaging=last",
                       "--dev-refs two.ref"),
        "--metric": (f"{LISTS} --dev others.jsonl", "--metric wer"),
        "--metric-option": (f"{LISTS} --metric bleu", "--metric-option lowercase=true"),
        "--dedup": (LISTS, "--dedup none"),
        "--epochs": (LISTS, "--epochs 3"),
        "--seed": (LISTS, "--seed 2"),
        "--no-shuffle": (LISTS, "--no-shuffle"),
        "--learner": (LISTS, "--learner perceptron"),
        "-p": (LISTS, "-p C=0.5"),
        "--patience": (f"{RANKED} --dev others.jsonl --epochs 9 --patience 1 -p averaging=last",
                       "--patience 8"),
        "--oracle": (RANKED, "--oracle score"),
        "--tied": (RANKED, "--tied"),
        "--features": (LISTS, "--features named"),
        "--min-count": (LISTS, "--min-count 15"),
        "--baseline": (LISTS, "--baseline none"),
    },
    "parse": {
        "--train": (TREES, "bank.conllu => other.conllu"),
        "--dev": (f"{TREES} --epochs 4 -p averaging=last", "--dev other.conllu --patience 1"),
        "--no-temperature": (TREES, "--no-temperature"),
        "--tagger": (TREES, "--tagger tagger.model --jackknife 0"),
        "--jackknife": (f"{TREES} --tagger tagger.model --jackknife 0", "--jackknife 2"),
    },
}  # fmt: skip

_OUTPUT = "what is written or said beside the model"
_SAVED = "a run that goes on is the same run"
_LOOKS_ON = "looks at what is learned, and changes nothing"
_ONE_BLOCK = "a copy of the data; of several blocks, by_block says so"
_JOBS = "threads share work that is then put together in a fixed order"
# Option: a command line, what is added, and why that must not change weights.
KEEPING: dict[str, dict[str, tuple[str, str, str]]] = {
    "": {
        "--model": ("", "", _OUTPUT),
        "--config": ("", "", "the same options, from a file"),
        "--cluster": ("", "", _JOBS),
        "--run": ("", "--run runs", _OUTPUT),
        "--json": ("", "--json", _OUTPUT),
        "--quiet": ("", "", _OUTPUT),
        "--debug": ("", "--debug", _OUTPUT),
        "--help": ("", "", _OUTPUT),
        "--on-error": ("", "--on-error skip", "decides whether there is a model at all"),
        "--folds": ("", "--folds 2", "models that are scored and thrown away, before the model"),
        "--checkpoint": ("", "--checkpoint state", _SAVED),
        "--checkpoint-every": ("", "--checkpoint state --checkpoint-every 0", _SAVED),
        "--resume": ("", "--checkpoint none --resume", _SAVED),
    },
    "classify": {
        "--cache": (TSV, "--cache caches", _ONE_BLOCK),
        "--many-classes": (TSV, "--many-classes", "decides whether there is a model at all"),
        "--names": ("--train rows.svm", "--names names.txt", "words for what weights weigh"),
        "--jobs": (f"{TSV}", "--jobs 3", _JOBS),
        "--bounds": (f"{TSV} --learner vrda", "--bounds", _LOOKS_ON),
        "--comparator": (f"{TSV} --learner vrda --bounds", "--comparator vrda.model", _LOOKS_ON),
    },
    "tag": {
        "--cache": (TEXT, "--cache caches", _ONE_BLOCK),
        "--allow-outside": (TEXT, "--allow-outside", "lets files be read, which features name"),
        "--no-names": (TEXT, "--no-names", "words for what weights weigh"),
        "--jobs": (f"{TEXT}", "--jobs 3", _JOBS),
        "--bounds": (f"{TEXT} --learner mira", "--bounds", _LOOKS_ON),
    },
    "rerank": {
        "--format": ("--train lists.jsonl", "--format json", "a file fits one format alone"),
        "--encoding": (LISTS, "--encoding utf-16", "JSON is Unicode; of texts it makes others"),
        "--jobs": (f"{LISTS}", "--jobs 3", _JOBS),
        "--bounds": (LISTS, "--bounds", _LOOKS_ON),
    },
    "parse": {
        "--encoding": (TREES, "--encoding latin-1", "the words are ASCII; others it would change"),
        "--jobs": (f"{TREES}", "--jobs 3", _JOBS),
    },
}  # fmt: skip

_NETWORKS = (
    "tests/neural/test_network_commands.py",
    "test_training_says_what_it_read_and_made",
    "networks train for seconds",
)
_TREES = (
    "tests/tasks/parse/test_parsing_task.py",
    "test_every_option_that_changes_a_model_is_in_its_signature",
    "quicker without commands",
)
_SHARED = (
    "tests/cli/test_signatures.py",
    "test_what_changes_a_model_changes_its_signature",
    "code that all tasks share, shown for another one",
)
_STREAMS = dict.fromkeys(
    ("--stream", "--classes", "--save-every", "--save-seconds"),
    (
        "tests/cli/test_streams.py",
        "test_the_model_does_not_depend_on_how_lines_come",
        "a stream has its own run",
    ),
)
_NO_CACHE = (
    "tests/cli/test_cache.py",
    "test_tasks_that_hold_their_data_in_memory_have_no_cache",
    "it is refused",
)
# Option: the file and the test that show it, and why it is not shown here.
ELSEWHERE: dict[str, dict[str, tuple[str, str, str]]] = {
    "classify": {**_STREAMS},
    "tag": {**_STREAMS, "--vectors": _NETWORKS, "--device": _NETWORKS, "--metric": _SHARED},
    "rerank": {**_STREAMS, "--cache": _NO_CACHE},
    "parse": {
        **_STREAMS,
        "--cache": _NO_CACHE,
        **dict.fromkeys(("--vectors", "--device"), ("tests/neural/test_biaffine.py", "test_verbs",
                                                    _NETWORKS[-1])),
        **dict.fromkeys(("--order", "--tree", "--features", "--heads", "--tags", "--unlabelled",
                         "--hash-bits", "--dictionary"), _TREES),
        **dict.fromkeys(("--epochs", "--seed", "--no-shuffle", "--learner", "-p", "--patience",
                         "--metric", "--shards", "--merge", "--merges", "--max-features"), _SHARED),
        "--bounds": ("papers/tests/test_step_bounds.py",
                     "test_the_corrected_theorem_holds_on_every_structure_and_looking_changes_"
                     "nothing", "quicker without commands"),
    },
}  # fmt: skip
USUAL = {"classify": TSV, "tag": TEXT, "rerank": LISTS, "parse": TREES}


def options(task: str) -> set[str]:
    """Every option of train, by the first of its names."""
    return {action.option_strings[0] for action in parser_of("train", task)._actions}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("signatures")
    write_texts(place)
    write_tokens(place)
    write_lists(place)
    write_trees(place)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        trained("classify", f"{TSV} --learner vrda", "vrda.model")
        trained("tag", "--train bank.conllu --column xpos", "tagger.model")
    return place


def write_texts(place):
    rng = np.random.default_rng(3)
    words = np.array(
        ["Hope", "fear", "Sea", "ship,", "wind", "Rain!", "night", "day;", "storm", "sea"]
    )
    rows = []
    for i in range(24):
        label = i % 2
        some = rng.choice(words[label:], 4)
        rows.append((("fear", "hope")[label if rng.random() < 0.8 else 1 - label], " ".join(some)))
    text = "".join(f"{label}\t{line}\n" for label, line in rows)
    (place / "texts.tsv").write_text(text)
    (place / "others.tsv").write_text(
        "".join(f"{label}\t{line.swapcase()} calm\n" for label, line in rows[::-1][:16])
    )
    # Signs in Latin-1, but a capital and its small letter in Cyrillic.
    latin = text.replace("sea", "x\xd7").replace("Sea", "x\xf7").encode("latin-1")
    (place / "latin.tsv").write_bytes(latin)
    ones = "".join(f"{1 + i % 3}\n" for i in range(24))
    (place / "ones.txt").write_text(ones)
    table = "".join(
        f"{label},{('x', 'y')[i % 3 > 0]},{line.replace(',', '')},{words[i % 10].strip(',')} calm\n"
        for i, (label, line) in enumerate(rows)
    )
    (place / "texts.csv").write_text(f"label,kind,text,other\n{table}")
    lines = "".join(f"{i % 2}\t1:{i % 5 + 1} 2:{i % 3 + 1}\n" for i in range(12))
    (place / "mixed.tsv").write_text(lines)  # texts to some, rows of numbers to others
    (place / "rows.svm").write_text(lines.replace("\t", " "))
    (place / "names.txt").write_text("one\ntwo\n")


def write_tokens(place):
    rng = np.random.default_rng(5)
    words = ["sun", "rises", "The", "sea", "old", "Ships", "sail", "calm", "night", "falls"]

    def text(n, line, clean=False):
        sentences = []
        for _ in range(n):
            some = rng.integers(0, 10, int(rng.integers(2, 6)))
            noisy = [k if clean or rng.random() < 0.8 else (k + 3) % 10 for k in some]
            sentences.append(
                "\n".join(line(words[k], int(j)) for k, j in zip(some, noisy, strict=True))
            )
        return "\n\n".join(sentences) + "\n"

    tags = ("N", "V", "D", "N", "A", "N", "V", "A", "N", "V")
    chunks = ("B-X", "O", "B-Y", "B-X", "B-Y", "B-X", "O", "O", "B-X", "B-Y")
    plain = text(14, lambda word, k: f"{word} {tags[k]}")
    (place / "words.txt").write_text(plain)
    (place / "others.txt").write_text(text(10, lambda word, k: f"{word} {tags[k]}"))
    spans = text(14, lambda word, k: f"{word} {chunks[k]}")
    spans = spans.replace(" B-X\nsea B-X", " B-X\nsea I-X").replace(
        " B-Y\nold B-Y", " B-Y\nold I-Y"
    )
    (place / "spans.txt").write_text(spans + "\nThe B-Y\nsea I-Y\nold I-Y\nsail O\n")
    three = text(14, lambda word, k: f"{word} {tags[k]} {chunks[k]}")
    (place / "three.txt").write_text(three)
    (place / "broken.txt").write_text("sun O\nrises I-X\nsea I-X\n\n" + spans)
    (place / "latin.txt").write_bytes(plain.replace("sea", "s\xe9\xc9\xd7").encode("latin-1"))
    (place / "mixed.txt").write_text(plain.replace(" ", "\t"))


def write_lists(place):
    rng = np.random.default_rng(7)

    def lists(n):
        lines = []
        for i in range(n):
            candidates = [
                {
                    "text": f"The {('cat', 'dog', 'cow')[k]} sat {'down' * (k > 0)}".strip(),
                    "score": float(rng.normal()),
                    "cost": float(rng.integers(0, 3)),
                    "features": {f"f{j}": float(rng.normal()) for j in rng.integers(0, 6, 3)},
                }
                for k in rng.integers(0, 3, 5).tolist()
            ]
            refs = [f"the {('cat', 'dog')[i % 2]} sat down here"]
            lines.append(json.dumps({"id": str(i), "references": refs, "candidates": candidates}))
        return "\n".join(lines) + "\n"

    text = lists(20)
    (place / "lists.jsonl").write_text(text)
    (place / "others.jsonl").write_text(lists(12))
    moses, one, two = [], [], []
    for i in range(12):
        for k in rng.permutation(3):
            words = ("the cat sat down", "a dog sat there", "the cow lay")[int(k)]
            numbers = " ".join(f"{x:.3f}" for x in rng.normal(size=3))
            moses.append(f"{i} ||| {words} ||| A= {numbers} ||| {rng.normal():.3f}\n")
        one.append("the cat sat down\n" if i % 3 else "a dog sat there\n")
        two.append("the cow lay\n" if i % 2 else "a dog sat there\n")
    (place / "nbest.moses").write_text("".join(moses))
    (place / "one.ref").write_text("".join(one))
    (place / "two.ref").write_text("".join(two))
    trees = (
        "(S1 (S (NP (DT the) (NN cat)) (VP (VBD sat) (PP (IN on) (NP (NN mat))))))",
        "(S1 (S (NP (DT the) (NN cat)) (VP (VBD sat)) (PP (IN on) (NP (NN mat)))))",
        "(S1 (S (NP (NP (DT the) (NN cat)) (VP (VBD sat))) (PP (IN on) (NP (NN mat)))))",
    )
    bllip = []
    for i in range(8):
        bllip.append(f"3 s{i}\n")
        bllip += [f"{-k - rng.random():.3f}\n{trees[int(j)]}\n" for k, j in
                  enumerate(rng.permutation(3))]  # fmt: skip
        bllip.append("\n")
    (place / "nbest.bllip").write_text("".join(bllip))
    (place / "gold.mrg").write_text("".join(trees[i % 2] + "\n" for i in range(8)))
    (place / "other.mrg").write_text("".join(trees[(i + 1) % 3] + "\n" for i in range(8)))


def write_trees(place):
    rng = np.random.default_rng(9)
    kinds = (
        ("NN VB NN", (2, 0, 2), "subj root obj"),
        ("DT JJ NN VB", (3, 3, 4, 0), "det mod subj root"),
        ("NN VB JJ", (2, 0, 1), "subj root mod"),
        ("NN JJ VB JJ", (3, 4, 0, 1), "subj mod root mod"),  # its arcs cross
    )

    def bank(n):
        text = ""
        for _ in range(n):
            tags, heads, names = kinds[rng.integers(4)]
            for k, (tag, head, name) in enumerate(
                zip(tags.split(), heads, names.split(), strict=True)
            ):
                word, noisy = f"w{rng.integers(6)}", name if rng.random() < 0.7 else "obj"
                text += f"{k + 1}\t{word}\t_\t{tag[0]}\t{tag}\t_\t{head}\t{noisy}\t_\t_\n"
            text += "\n"
        return text

    (place / "bank.conllu").write_text(bank(5))
    (place / "other.conllu").write_text(bank(5))
    families = 'label = ["m.tag"]\nsibling = ["s.tag m.tag"]\ngrandparent = ["g.tag m.tag"]\n'
    (place / "arcs.toml").write_text(f'arc = ["h.tag m.tag", "m.word"]\n{families}')
    (place / "more.toml").write_text(f'arc = ["h.tag m.tag", "h.word"]\n{families}')


@functools.cache
def trained(task, line, model="a.model"):
    """Signature of a model, and all of it that decides."""
    # Of an option that is given twice the last one counts.
    words = f"{COMMON[task]} {line} --model {model} --quiet".split()
    with np.errstate(over="ignore"):
        assert main(["train", task, *words]) == 0, line
    header, arrays = load(model, "model")
    weights = [(k, a.tobytes()) for k, a in sorted(arrays.items()) if not k.startswith("features.")]
    return header["signature"], (weights, header.get("temperature"))


def changed(line: str, other: str) -> str:
    """A command line with something added, or with one word in the place of another."""
    old, arrow, new = other.partition(" => ")
    if arrow:
        assert old in line
        return line.replace(old, new)
    return f"{line} {other}"


@pytest.mark.parametrize("task", task_names())
def test_every_option_is_in_one_table(task):
    tables = CHANGING[task], KEEPING[""], KEEPING[task], ELSEWHERE[task]
    assert sorted(option for table in tables for option in table) == sorted(
        name if name != "-h" else "--help" for name in options(task)
    )


def test_what_is_shown_elsewhere_is_shown_there():
    root = Path(__file__).parents[2]
    for file, name, reason in (where for table in ELSEWHERE.values() for where in table.values()):
        assert f"def {name}(" in (root / file).read_text() and reason
    for option, where in ((o, w) for table in ELSEWHERE.values() for o, w in table.items()):
        assert where != _SHARED or any(option in table for table in CHANGING.values()), option


@pytest.mark.parametrize(
    ("task", "option"), [(task, option) for task in CHANGING for option in CHANGING[task]]
)
def test_what_changes_a_model_changes_its_signature(folder, monkeypatch, task, option):
    monkeypatch.chdir(folder)
    line, other = CHANGING[task][option]
    one, two = trained(task, line), trained(task, changed(line, other))
    assert one[1] != two[1], "the same weights: choose data on which it matters"
    assert one[0] != two[0]


@pytest.mark.parametrize(
    ("task", "option"),
    # Of trees, which take seconds uncompiled, not what the others show already.
    [
        (task, name)
        for task in USUAL
        for name in {**KEEPING[""], **KEEPING[task]}
        if task != "parse" or name in ("--run", "--jobs")
    ],
)
def test_what_keeps_a_model_keeps_its_signature(folder, monkeypatch, capsys, task, option):
    monkeypatch.chdir(folder)
    line, other, reason = {**KEEPING[""], **KEEPING[task]}[option]
    assert reason
    if other and option != "--encoding":
        line = line or USUAL[task]
        one, two = trained(task, line), trained(task, f"{line} {other}")
        assert one[1] == two[1]
        assert one[0] == two[0]


# Words that parameters of learners in batch and of tuners may have; a component says its own.
WORDS = {
    **{"slack": SLACKS, "inner": INNER, "background": BACKGROUNDS, "keep": (*KEEPS, *mert.KEEPS)},
    **{"steps": mert.STEPS, "smooth": mert.SMOOTHINGS, "classifier": ("perceptron", "pa")},
    **{"loss": LOSSES, "rule": RULES, "averaging": AVERAGINGS, "update_on": ON, "cost": COSTS},
    "penalty": ("l1", "l2"),
}
# Parameters that mean something only together with others: what is built in place of the usual.
TOGETHER = {
    "swvp own": ({"jj": "own", "own": "0"}, {"jj": "own", "own": "0; 1"}),
    "tune memory": ({"background": "hope", "memory": 0.5}, {"background": "hope", "memory": 0.75}),
    "pro epochs": ({"classifier": "pa", "epochs": 3}, {"classifier": "pa", "epochs": 4}),
}
# Of a learner and its parameter: one value alone builds.
ALONE = {("cw", "rule"), ("cw", "force"), ("rampion-cccp", "loss")}


def others(recipe, key, value):
    """Other values of a parameter."""
    if isinstance(value, bool) or value is None:
        return [not value]
    if isinstance(value, int):
        return [value + 1]
    if isinstance(value, float):  # some must stay below 1, or below that by a rate
        return [1.5] if np.isinf(value) else [value + 0.5, 0.75 * value or 1e-3]
    for part in (getattr(recipe, name, None) for name in ("loss", "rule", "averaging")):
        words = getattr(part, "choices", {}).get(key) or getattr(part, "parts", {}).get(key)
        if words:
            return [word for word in words if word != value]
    return [word for word in WORDS.get(key, (0.375,)) if word != value]  # "auto", else


@pytest.mark.parametrize("task", [*TASKS])
def test_every_parameter_of_every_learner_is_in_its_signature(task):
    for name, recipe in recipes_of(task).items():
        if type(recipe).__name__ == "NetworkRecipe":
            continue
        usual = recipe.build().signature()
        for key, value in recipe.parameters().items():
            pairs = TOGETHER.get(f"{task} {key}") or TOGETHER.get(f"{name} {key}")
            signatures = [] if pairs else [usual]
            for other in pairs or [{key: other} for other in others(recipe, key, value)]:
                with contextlib.suppress(HopefearError):  # parts that do not fit, or need another
                    signatures.append(recipe.build(**other).signature())
            assert len(signatures) > 1 or (name, key) in ALONE, (name, key)
            assert len(set(signatures)) == len(signatures), (name, key)
