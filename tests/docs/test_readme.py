"""The README's Python example runs as it stands, and its grid is what the code gives."""

import importlib.util
import re

from places import ROOT

README = ROOT / "README.md"


def test_python_example_runs(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(code, str(README), "exec"), {})
    accuracy = float(capsys.readouterr().out.split()[0])
    assert accuracy > 0.8


def test_the_grid_is_what_the_code_gives():
    spec = importlib.util.spec_from_file_location("grid", README.parent / "bench" / "grid.py")
    grid = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(grid)
    text = README.read_text(encoding="utf-8")
    block = text.partition(grid.FIRST)[2].partition(grid.LAST)[0]
    assert block == grid.table(), "run python bench/grid.py --write"
