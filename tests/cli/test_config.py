"""Options from a file, completion by shells, and the card of a model, as a user asks for them."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib

import pytest

from hopefear.cli import BY_TASK, VERBS, main, options_of
from hopefear.cli.surface import task_names
from hopefear.data.generators import sparse_linear
from hopefear.data.write_svmlight import write_svmlight
from hopefear.tasks.classify.model import Model

pytestmark = pytest.mark.interpreted


@pytest.fixture
def place(tmp_path, monkeypatch):
    data = sparse_linear(60, 20, per_row=(3, 6), true_weights=8, seed=3).dataset()
    write_svmlight(tmp_path / "train.svm", data)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def config(place, text):
    (place / "run.toml").write_text(text)
    return "--config", "run.toml"


FULL = """
task = "classify"
train = "train.svm"
dev = "train.svm"
model = "m.model"
learner = "rda"
epochs = 2
no-shuffle = true
quiet = true
class_weight = {"1" = 2, "-1" = 0.5}
param = {l1 = 1e-3, averaging = "last"}
"""


def test_a_file_alone_does_what_the_same_words_do(place):
    assert main(["train", *config(place, FULL)]) == 0
    words = ["--train", "train.svm", "--dev", "train.svm", "--model", "w.model", "--learner", "rda",
             "--epochs", "2", "--no-shuffle", "--quiet", "--class-weight", "1=2,-1=0.5",
             "-p", "l1=0.001", "-p", "averaging=last"]  # fmt: skip
    assert main(["train", "classify", *words]) == 0
    assert (place / "m.model").read_bytes() == (place / "w.model").read_bytes()


@pytest.mark.parametrize(
    ("line", "streams"),
    [("no-stream = true", False), ("no_stream = false", True), ("stream = true", True)],
)
def test_what_says_no_is_not_yes(place, capsys, line, streams):
    bits = "hash-bits = 8" if streams else ""
    text = f'train = "train.svm"\nmodel = "m"\n{line}\n{bits}\n'
    assert main(["train", "classify", *config(place, text)]) == 0
    assert ("256 columns" in capsys.readouterr().err) == streams


def test_what_is_typed_goes_first(place):
    words = ["--learner", "vrda", "-p", "l1=0.5", "--epochs=3", "--model=typed.model"]
    assert main(["train", "classify", *config(place, FULL), *words]) == 0
    signature = Model.load("typed.model").signature
    assert "l1=0.5" in signature and "averaging:last" in signature and "epochs:3" in signature
    assert not (place / "m.model").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("epoch = 2", ("no option 'epoch'", "did you mean 'epochs'?", "run.toml")),
        ("epochs = 'many'", ("--epochs", "expected a whole number")),
        ("quiet = 'yes'", ("quiet takes true or false",)),
        ("param = 'l1=2'", ("param is a table",)),
        ("train = {a = [1]}", ("train.a is neither text nor a number",)),
        ("epochs = [", ("run.toml is not TOML",)),
        ("epochs = " + "[" * 5000, ("run.toml is not TOML",)),
        ("task = 'dance'", ("there is no task 'dance'",)),
    ],
)
def test_what_is_wrong_is_said_with_the_name_of_the_file(place, capsys, text, words):
    command = ["train"] if "task" in text else ["train", "classify"]
    assert main([*command, *config(place, text)]) in (1, 2)
    said = capsys.readouterr().err
    assert all(word in said for word in words), said
    assert "Traceback" not in said


def test_a_missing_file_and_a_missing_name_are_said(place, capsys):
    assert main(["train", "classify", "--config", "none.toml"]) == 1
    assert "cannot read none.toml" in capsys.readouterr().err
    assert main(["train", "classify", "--config"]) == 2
    assert "expected one argument" in capsys.readouterr().err


def test_flags_with_an_opposite_and_lists_of_files(place):
    from hopefear.cli import parser_of
    from hopefear.cli.config import with_config

    def spelled(verb, task, values, *typed):
        return with_config(typed, parser_of(verb, task), "run.toml", values)

    assert spelled("tune", None, {"refs": ["a.en", "b.en"]}) == ["--refs", "a.en", "b.en"]
    assert spelled("compare", "tag", {"learners": ["sapo", "crf"]}) == ["--learners=sapo,crf"]
    assert spelled("report", None, {"runs": ["a", "b"], "out": "p.html"}) == [
        "--out=p.html", "a", "b",
    ]  # fmt: skip


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "tcsh"])
def test_scripts_know_every_option_of_every_verb(capsys, shell):
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    for verb in VERBS:
        for task in task_names() if verb in BY_TASK else (None,):
            for option in options_of([verb, *([task] if task else [])]):
                if option.startswith("--"):
                    name = option.removeprefix("--") if shell in ("fish", "tcsh") else option
                    assert name in text


@pytest.fixture(scope="module")
def bash_script(tmp_path_factory):
    script = tmp_path_factory.mktemp("bash") / "script"
    words = [sys.executable, "-m", "hopefear", "completion", "bash"]
    script.write_bytes(subprocess.run(words, capture_output=True, check=True).stdout)
    return script


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["tr"], {"train"}),
        (["train", ""], {*task_names()}),
        (["train", "tag", "--lea"], {"--learner"}),
        (["train", "tag", "--learner", "sap"], {"sapo"}),
        (["compare", "parse", "--ep"], {"--epochs"}),
        (["tune", "--learner", "mer"], {"mert"}),
        (["train", "tag", "--train", "full"], {"full.toml"}),
    ],
)
def test_bash_completes(bash_script, tmp_path, typed, offered):
    (tmp_path / "full.toml").touch()
    words = " ".join(f"'{word}'" for word in ["hopefear", *typed])
    last, before = typed[-1], ["hopefear", *typed][-2]
    script = (
        f"source {bash_script}\nCOMP_WORDS=({words})\nCOMP_CWORD={len(typed)}\n"
        f"_shtab_hopefear hopefear '{last}' '{before}'\n"
    )
    out = subprocess.run(
        ["bash", "-c", script + 'echo "${COMPREPLY[@]}"'],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert set(out.stdout.split()) == offered


def test_a_card_says_what_a_model_is_and_asks_what_no_file_knows(place, capsys):
    assert main(["train", *config(place, FULL)]) == 0
    assert main(["inspect", "--model", "m.model", "--card", "card.md"]) == 0
    card = (place / "card.md").read_text()
    assert card.startswith("# m.model") and "`rda`" in card and "To be filled in" in card
    before = (place / "m.model").read_bytes()
    for option in ("--card", "--export"):
        assert main(["inspect", "--model", "m.model", option, "m.model"]) == 1
        assert "it is also an input" in capsys.readouterr().err
    assert (place / "m.model").read_bytes() == before
    assert "| pass | " in card and " error |" in card
    assert Model.load("m.model").signature.split("|")[0] in card
    assert main(["inspect", "--model", "m.model", "--card", "-"]) == 0
    assert capsys.readouterr().out == card
    assert main(["inspect", "--model", "m.model", "--card", "no/such/card.md"]) == 1
    assert "no/such" in capsys.readouterr().err


def test_a_model_tells_the_file_that_makes_it_again(place, capsys):
    assert main(["train", *config(place, FULL)]) == 0
    assert main(["inspect", "--model", "m.model", "--config"]) == 0
    told = capsys.readouterr().out
    assert 'dev = "train.svm"' in told and "no-shuffle = true" in told and "quiet" not in told
    (place / "again.toml").write_text(told)
    assert main(["train", "--config", "again.toml", "--quiet"]) == 0
    assert (place / "NEW.model").read_bytes() == (place / "m.model").read_bytes()


def test_settings_of_a_forged_model_do_no_harm(place, capsys):
    from hopefear.storage import load, save

    assert main(["train", *config(place, FULL)]) == 0
    header, arrays = load("m.model", "model")
    header["about"]["config"] = {'x"\n[a]': {"y": 1}, "z": [None]}
    save("forged.model", "model", header, arrays)
    assert main(["inspect", "--model", "forged.model", "--config"]) == 0
    told = tomllib.loads(capsys.readouterr().out)
    assert told['x"\n[a]'] == {"y": 1} and "z" not in told
