"""Files that name other files: in their own folder, or by leave of the user only."""

from __future__ import annotations

import pytest

from hopefear.cli import main
from hopefear.errors import HopefearError
from hopefear.features.templates import load_templates
from hopefear.translation.weights import Weights

pytestmark = pytest.mark.interpreted


@pytest.fixture
def folder(tmp_path):
    own = tmp_path / "own"
    (own / "below").mkdir(parents=True)
    for place in (tmp_path / "words", own / "words", own / "below" / "words"):
        place.write_text("cat\ndog\n")
    for place in (tmp_path / "w.sparse", own / "w.sparse", own / "below" / "w.sparse"):
        place.write_text("a_b 0.5\n")
    (own / "link").symlink_to(tmp_path)
    return own


INSIDE = ["{}", "below/{}", "below/../{}"]
OUTSIDE = ["../{}", "link/{}", "{folder}/../{}", "below/../../{}"]


def templates(folder, name):
    path = folder / "t.toml"
    text = f'[lexicons]\na = "{name}"\n[[templates]]\nfeatures = ["lexicon(a)", "word[0]"]\n'
    path.write_text(text)
    return path


def weights(folder, name):
    path = folder / "moses.ini"
    path.write_text(f"[weight-file]\n{name}\n[weight]\nLM0= 1\n")
    return path


@pytest.mark.parametrize("name", [*INSIDE, "{folder}/{}"])
def test_files_in_the_same_folder_are_read(folder, name):
    lexicon, sparse = (name.format(n, folder=folder) for n in ("words", "w.sparse"))
    assert load_templates(templates(folder, lexicon)).lexicons == {"a": ("cat", "dog")}
    assert Weights.read(weights(folder, sparse)).sparse == {"a_b": 0.5}


@pytest.mark.parametrize("name", OUTSIDE)
def test_others_need_leave(folder, name):
    path = templates(folder, name.format("words", folder=folder))
    with pytest.raises(HopefearError, match=r"in the folder of the template file; .*allow_outside"):
        load_templates(path)
    assert load_templates(path, allow_outside=True).lexicons == {"a": ("cat", "dog")}
    path = weights(folder, name.format("w.sparse", folder=folder))
    with pytest.raises(HopefearError, match=r"moses.ini:2: .*in the folder of this one; .*--allow"):
        Weights.read(path)
    assert Weights.read(path, allow_outside=True).sparse == {"a_b": 0.5}


def test_the_command_line_asks_too(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "text").write_text("a D\ncat N\n\na D\ndog N\n\n")
    templates(folder, "../words")
    train = ["train", "tag", "--train", "text", "--features", "t.toml", "--learner", "perceptron",
             "--epochs", "1", "--quiet", "--model", "m"]  # fmt: skip
    assert main(train) == 1
    assert "give --allow-outside" in capsys.readouterr().err
    assert main([*train, "--allow-outside"]) == 0
    weights(folder, "../w.sparse")
    inspect = ["inspect", "--weights", "moses.ini", "--quiet"]
    assert main(inspect) == 1
    assert main([*inspect, "--allow-outside"]) == 0
