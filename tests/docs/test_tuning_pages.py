"""The pages about tuning: commands run in order, tables are complete, theory names real tests."""

from __future__ import annotations

import re

import pytest
from doc_pages import (
    named_tests_exist,
    table,
    text_of,
)

from hopefear.cli.tune.options import GROUPS, METRICS, SMOOTHINGS
from hopefear.errors import InputError
from hopefear.losses.hope_fear import HopeFear
from hopefear.recipes import LOSSES
from hopefear.translation.lists import read
from hopefear.translation.recipes import TUNE_RECIPES
from hopefear.translation.task import DEFAULT_LEARNER, STARTS
from hopefear.translation.tuners.mert import Mert
from hopefear.translation.tuners.online_tuner import BACKGROUNDS, OnlineTuner

PAGE = text_of("docs/tuning.md")
(CODE,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files that the page makes, fewer lists of each."""
    made = tmp_path_factory.mktemp("page")
    few = CODE.replace("1500", "90").replace("300", "40")
    few = re.sub(r'open\(f"', f'open(f"{made}/', few)
    exec(compile(few, "tuning.md", "exec"), {})
    assert len(list(made.iterdir())) == 9
    return made


def told(page: str) -> str:
    """Words of a message, without what depends on the files."""
    return re.sub(r"^hopefear: \S+?:\d+: |\S+\.ref has \d+|'.*'|\d+", "", page).strip()


def test_messages_are_those_of_bad_files(folder):
    lines = (folder / "dev.nbest").read_text().splitlines(keepends=True)
    shown = re.findall(r"^    (hopefear: dev\.nbest:.*)$", PAGE, re.MULTILINE)
    changes = (
        lambda text: re.sub(r"LM0= \S+", "LM0= nan", text),
        lambda text: re.sub(r"TM0= \S+", "TM0=", text),
        lambda text: re.sub(r"^0", "99", text),
    )
    for message, change in zip(shown, changes, strict=True):
        at = 6 if "reference" not in message else len(lines)
        bad = [*lines[:at], change(lines[6]), *lines[at + 1 :]]
        (folder / "bad.nbest").write_text("".join(bad))
        absent = "skip" if at == len(lines) else "raise"
        with pytest.raises(InputError) as error:
            read(folder / "bad.nbest", folder / "dev.ref", absent=absent)
        assert told(f"hopefear: {error.value}") == told(message)


def test_the_tables_have_every_tuner_choice_and_group():
    assert set(table(PAGE, "tuner")) == set(TUNE_RECIPES)
    assert f"The default is `{DEFAULT_LEARNER}`" in PAGE
    chosen = " ".join(table(PAGE, "`-p`"))
    for name in ("toward", "away"):
        assert set(re.findall(rf"{name}=(\w+)", chosen)) == set(HopeFear.choices[name])
    for name in BACKGROUNDS:
        assert re.search(rf"`(background=)?{name}`", PAGE), name
    assert tuple(table(PAGE, "group")) == GROUPS
    assert tuple(table(PAGE, "`--metric`")) == METRICS
    for name in (*SMOOTHINGS, *STARTS):
        assert re.search(rf"`(--start )?{name}`", PAGE), name


def test_numbers_in_the_table_are_the_defaults():
    rows = table(PAGE, "tuner")
    assert f"{Mert().restarts} starts" in rows["mert"][1]
    for name in ("kbmira", "mira"):
        assert f"{TUNE_RECIPES[name].parameters()['epochs']} passes" in rows[name][1]
    for name, word in (("risk", "six"), ("expected-bleu", "three")):
        count = {"six": 6, "three": 3}[word]
        assert TUNE_RECIPES[name].parameters()["levels"] == count and word in rows[name][1]
    assert TUNE_RECIPES["mira"].parameters()["memory"] == OnlineTuner.memory == 0.9
    assert TUNE_RECIPES["vrda"].parameters()["l1"] == 1e-4 and "| 0.0001 (default) |" in PAGE


def test_parameters_that_the_page_names_are_known():
    for loss in set(re.findall(r"-p loss=([\w-]+)", PAGE)):
        assert loss in LOSSES
        TUNE_RECIPES["sgd"].build(loss=loss)
    TUNE_RECIPES["pro"].build(classifier="arow", r="2")
    TUNE_RECIPES["mert"].build(keep="dev")
    for name in ("expected-bleu", "pro", "sgd", "adagrad", "vrda"):
        assert "l1" in TUNE_RECIPES[name].parameters()


def test_tests_that_the_theory_names_exist():
    named_tests_exist("Tuning", 50)
