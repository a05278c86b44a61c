"""The picture of the README: chunk F1 pass by pass, from the table in docs/results.md.

python bench/picture.py            # print the SVG
python bench/picture.py --write    # put it into docs/img/chunking.svg
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from hopefear.report import Plot

DOCS = Path(__file__).parents[1] / "docs"
PICTURE = DOCS / "img" / "chunking.svg"
ROWS = {
    "SAPO (n = 5)": "SAPO",
    "CRF by SGD, all attribute × label pairs": "CRF by SGD",
    "averaged perceptron": "averaged perceptron",
}


def picture() -> str:
    """SVG of the learners of `ROWS` beside CRFsuite."""
    text = (DOCS / "results.md").read_text(encoding="utf-8")
    table = text.partition("| CoNLL-2000, 19 templates of CRFsuite |")[2].partition("\n\n")[0]
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    cells = {line[0]: line for line in lines if line}
    plot = Plot("Chunking CoNLL-2000: F1 on the test data", "passes over the data", "chunk F1")
    for row, name in ROWS.items():
        _, last, passes, *_ = cells[row]
        scores = [*map(float, passes.split()), float(last.split()[0])]
        plot.line([1, 3, 5, 10], scores, name)
    (peer,) = re.findall(r"CRFsuite lbfgs ([\d.]+)", table)
    plot.hline(float(peer), f"CRFsuite, L-BFGS: {peer}")
    # With a margin and a ground of its own, since pages may be dark.
    svg = plot.to_svg(680, 300).replace('viewBox="0 0 680 300"', 'viewBox="-16 -8 712 316"', 1)
    head, end, body = svg.partition("</defs>")
    return f'{head}{end}<rect x="-16" y="-8" width="712" height="316" fill="#fff"/>{body}\n'


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PICTURE.parent.mkdir(exist_ok=True)
        PICTURE.write_text(picture(), encoding="utf-8")
    else:
        print(picture(), end="")
