"""What pages and the workflow say of the project is what `pyproject.toml` says."""

from __future__ import annotations

import importlib.util
import itertools
import re
import sys
import tomllib
from types import SimpleNamespace

import pytest
from places import ROOT

pytestmark = pytest.mark.interpreted
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
WORKFLOW = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")


def test_every_extra_has_its_reason():
    page = (ROOT / "docs" / "dependencies.md").read_text("utf-8")
    table = page.partition("Extras, needed by")[2]
    named = {name for row in table.splitlines() for name in re.findall("`(.*?)`", row[:60])}
    assert set(PROJECT["project"]["optional-dependencies"]) <= named
    install = (ROOT / "Makefile").read_text("utf-8").partition("$(EXTRAS)/.ready:")[2]
    installed = set(re.search(r"\.\[(.*?)\]", install)[1].split(","))
    (integrations, *_) = PROJECT["project"]["optional-dependencies"]["integrations"]
    installed |= set(re.search(r"\[(.*)\]", integrations)[1].split(","))
    assert installed == set(PROJECT["project"]["optional-dependencies"])


def test_layers_are_those_of_the_contract():
    page = (ROOT / "docs" / "design.md").read_text("utf-8")
    lines = re.findall("^    (.*)", page.partition("## Layers")[2].partition("\n## ")[0], re.M)
    shown = [set(re.findall(r"\w+", re.split("  +", line)[0])) for line in lines]
    contract = PROJECT["tool"]["importlinter"]["contracts"][0]["layers"]
    layers = [set(re.findall(r"\w+", layer)) for layer in contract]
    assert shown == [*layers[:-1], layers[-1] - {"errors"}, {"errors"}]
    assert "classify | tag | rerank | parse" in page


def test_the_workflow_tests_every_python_that_is_promised():
    prefix = "Programming Language :: Python :: "
    names = [one.removeprefix(prefix) for one in PROJECT["project"]["classifiers"] if prefix in one]
    versions = [name for name in names if re.fullmatch(r"3\.\d+", name)]
    assert PROJECT["project"]["requires-python"] == f">={versions[0]}"
    lists = re.findall(r"python: \[(.*)\]", WORKFLOW)
    assert lists and all(one.replace('"', "").split(", ") == versions for one in lists)
    assert set(re.findall(r'python-version: "(3.*?)"', WORKFLOW)) <= set(versions)


def test_the_workflow_runs_what_make_has():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    assert set(re.findall(r"run: make (\S+)", WORKFLOW)) <= targets


def test_make_leaves_no_test_out():
    """Some command takes each test: the extras' environment what needs one, and what is slow."""
    text = (ROOT / "Makefile").read_text("utf-8")
    for name, value in re.findall(r"^(PLAIN|COMPILED) := (.*)$", text, re.M):
        text = text.replace(f"$({name})", value)
    command = r'^\t.*\$\((VENV|EXTRAS)\)/(.*) -m "(.*?)"(?: (\$\(CORE\)))?$'
    core, *commands = [match.groups() for match in re.finditer(command, text, re.M)]
    assert [where for where, *_ in commands] == ["VENV", "VENV", "EXTRAS", "EXTRAS", "EXTRAS"]
    # One takes the core alone, the next the same marks of all others.
    (where, _, words, files), (_, rest, others, _) = core, commands[0]
    assert (where, words, files) == ("VENV", others, "$(CORE)")
    assert "$(addprefix --ignore=,$(CORE))" in rest
    marks = ["needs", "slow", "interpreted", "compiled"]
    for values in itertools.product([False, True], repeat=len(marks)):
        own = dict(zip(marks, values, strict=True))
        place = "EXTRAS" if own["needs"] or own["slow"] else "VENV"
        assert any(eval(words, own) for where, _, words, _ in commands if where == place), own


def test_wheels_with_kernels_have_a_tag_that_an_index_takes(monkeypatch):
    name = "hatchling.builders.hooks.plugin.interface"  # builds happen in places of their own
    monkeypatch.setitem(sys.modules, name, SimpleNamespace(BuildHookInterface=object))
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    for platform, expected in {
        "linux-x86_64": "manylinux_2_28_x86_64",
        "macosx-14.0-arm64": "macosx_14_0_arm64",
        "win-amd64": "win_amd64",
    }.items():
        monkeypatch.setattr("sysconfig.get_platform", lambda platform=platform: platform)
        python, abi, found = build._tag().split("-")
        assert python == abi == f"cp{sys.version_info.major}{sys.version_info.minor}"
        assert found == expected
