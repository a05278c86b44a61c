"""The README's example runs as it stands, its picture and the grid are what the code gives."""

import importlib.util
import re

from places import ROOT

README = ROOT / "README.md"


def bench(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "bench" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_grid_is_what_the_code_gives():
    grid = bench("grid")
    text = grid.PAGE.read_text(encoding="utf-8")
    block = text.partition(grid.FIRST)[2].partition(grid.LAST)[0]
    assert block == grid.table(), "run python bench/grid.py --write"


def test_the_picture_is_drawn_from_the_results():
    picture = bench("picture")
    text = README.read_text(encoding="utf-8")
    assert str(picture.PICTURE.relative_to(ROOT)) in text
    assert picture.PICTURE.read_text(encoding="utf-8") == picture.picture(), (
        "run python bench/picture.py --write"
    )


def test_the_numbers_are_those_of_the_results():
    text, results = README.read_text(encoding="utf-8"), (ROOT / "docs" / "results.md").read_text()
    table = text.partition("| beside the tools")[2].partition("\n\n")[0]
    scores = re.findall(r"\d+\.\d{2,}", table)
    assert len(scores) >= 12 and [score for score in scores if score not in results] == []
