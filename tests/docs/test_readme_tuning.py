"""The commands of the README's section on tuning run as they stand."""

from __future__ import annotations

import re
import shlex

import tuning_files
from places import ROOT

from hopefear.cli import main
from hopefear.translation.weights import Weights

README = ROOT / "README.md"


def test_commands_run_in_order(tmp_path, monkeypatch, capsys):
    for name, first, after in (("train", 0, 60), ("dev", 60, 100), ("test", 100, 130)):
        tuning_files.write(tmp_path, name, first, after)
        (tmp_path / f"{name}.ref").rename(tmp_path / f"{name}.en")
        (tmp_path / f"{name}.src").rename(tmp_path / f"{name}.de")
    monkeypatch.chdir(tmp_path)
    text = README.read_text(encoding="utf-8")
    section = text.split("## Tune a translation system\n")[1].split("\n## ")[0]
    joined = section.replace("\\\n", " ")
    commands = re.findall(r"^    hopefear (.*)", joined, re.MULTILINE)
    assert len(commands) == 6
    for command in commands:
        assert main(shlex.split(command)) == 0, f"{command}\n{capsys.readouterr().err}"
    assert len((tmp_path / "test.out").read_text().splitlines()) == 30
    assert Weights.read("phrases.json").phrases
    assert "Phrases0" in Weights.read("all.json").about["added"]
    assert "all.json - tuned.txt: " in capsys.readouterr().err
