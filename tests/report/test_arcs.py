"""Pictures of trees: well-formed, nothing that touches, and text that tells who is whose head."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from hopefear.data.grammar import synthetic_treebank
from hopefear.errors import HopefearError
from hopefear.report import ArcDiagram, Page, text_tree
from hopefear.report.arcs import _feet, _levels

pytestmark = pytest.mark.interpreted

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</svg><script>alert('x')</script> \"&\x00\ud800 ]]>"
WORDS = ["She", "saw", "the", "man", "with", "the", "telescope", "."]
HEADS = [2, 0, 4, 2, 7, 7, 4, 2]
RELATIONS = ["nsubj", "root", "det", "obj", "case", "det", "nmod", "punct"]
GOLD = [2, 0, 4, 2, 7, 7, 2, 2]
GOLD_RELATIONS = ["nsubj", "root", "det", "obj", "case", "det", "obl", "punct"]


def drawn(rng: np.random.Generator, n: int) -> list[int]:
    order = (rng.permutation(n) + 1).tolist()
    tree = {m: int(rng.choice([0, *order[:k]])) for k, m in enumerate(order)}
    return [tree[m] for m in range(1, n + 1)]


def groups(diagram: ArcDiagram):
    """Style, path and label of each arc."""
    root = ET.fromstring(diagram.to_svg())
    for group in root.findall(f"{SVG}g"):
        lines = [line for line in group.findall(f"{SVG}path") if line.get("stroke") is None]
        labels = [label.text for label in group.iterfind(f"{SVG}g/{SVG}text")]
        assert not labels or len(labels) == len(lines)
        for line, label in zip(lines, labels or [None] * len(lines), strict=True):
            yield group.get("style"), line, label


def test_every_arc_is_there_once_with_its_label() -> None:
    diagram = ArcDiagram(WORDS, HEADS, RELATIONS, ["T"] * 8)
    assert sorted(label for _, _, label in groups(diagram)) == sorted(RELATIONS)
    texts = [node.text for node in ET.fromstring(diagram.to_svg()).iter(f"{SVG}text")]
    assert texts.count("T") == 8 and set(WORDS) < set(texts)


def test_wrong_arcs_are_dashed_above_and_the_right_ones_stand_below() -> None:
    diagram = ArcDiagram(WORDS, HEADS, RELATIONS, (), GOLD, GOLD_RELATIONS)
    dashed = [label for _, line, label in groups(diagram) if line.get("stroke-dasharray")]
    assert dashed == ["nmod"]
    styles = {label: style for style, _, label in groups(diagram)}
    assert styles["obl"] != styles["nmod"] != styles["obj"] != styles["obl"]
    assert diagram.describe().endswith("It should be: telescope is obl of saw.")
    taller = ET.fromstring(diagram.to_svg()).get("height")
    plain = ET.fromstring(ArcDiagram(WORDS, HEADS, RELATIONS).to_svg()).get("height")
    assert float(taller or 0) > float(plain or 0)


def test_a_wrong_relation_alone_is_not_dashed() -> None:
    diagram = ArcDiagram(WORDS, GOLD, RELATIONS, (), GOLD, GOLD_RELATIONS)
    assert not any(line.get("stroke-dasharray") for _, line, _ in groups(diagram))
    assert [arc.label for arc in diagram.missing] == ["obl"]


def test_a_right_tree_has_nothing_below() -> None:
    diagram = ArcDiagram(WORDS, HEADS, RELATIONS, (), HEADS, RELATIONS)
    assert diagram.to_svg() == ArcDiagram(WORDS, HEADS, RELATIONS).to_svg()
    assert diagram.missing == []


@pytest.mark.parametrize("seed", range(20))
def test_arcs_do_not_lie_on_each_other(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 14))
    diagram = ArcDiagram(["w"] * n, drawn(rng, n), ["label"] * n)
    arcs = diagram.arcs
    levels = _levels(arcs)
    centres, width = diagram._centres(arcs)
    feet = _feet(arcs, centres)
    assert len(set(feet.values())) == len(feet)  # every end stands on its own
    assert all(0 < x < width for x in feet.values())
    for a in arcs:
        for b in arcs:
            overlap = a.span[0] < b.span[1] and b.span[0] < a.span[1]
            if a != b and a.head and b.head and overlap:
                assert levels[a] != levels[b]
            if a != b and a.head and b.head and a.span[0] <= b.span[0] and b.span[1] <= a.span[1]:
                assert levels[a] > levels[b]
    for _, line, _ in groups(diagram):
        numbers = [float(x) for x in re.findall(r"-?[\d.]+", line.get("d") or "")]
        assert min(numbers) >= 0


@pytest.mark.parametrize("words", [[HOSTILE, "b"], ["漢字", "é́"], ["", " "]])
def test_strange_text_is_escaped(words: list[str]) -> None:
    diagram = ArcDiagram(words, [2, 0], [HOSTILE, "x"], [HOSTILE, "y"], [0, 1], ["a", HOSTILE])
    root = ET.fromstring(diagram.to_svg())
    assert root.tag == f"{SVG}svg" and not list(root.iter(f"{SVG}script"))


def test_odd_sizes() -> None:
    ET.fromstring(ArcDiagram([], []).to_svg())
    ET.fromstring(ArcDiagram(["Go"], [0]).to_svg())
    ET.fromstring(ArcDiagram(["No", "heads"], [-1, -1]).to_svg())
    assert text_tree([], []) == "" and text_tree(["Go"], [0], ["root"]) == "● Go  root"
    assert text_tree(["a", "b"], [-1, 1]).splitlines() == ["╭─  a", "╰─→ b"]
    bank = synthetic_treebank(25)
    words = bank.take([24]).sentences.columns["form"].texts()
    ET.fromstring(ArcDiagram(words, bank.take([24]).heads.tolist()).to_svg())


@pytest.mark.parametrize(
    ("heads", "more"),
    [
        ([1, 0], {}),
        ([3, 0], {}),
        ([0], {}),
        ([2, 0], {"relations": ["a"]}),
        ([2, 0], {"tags": ["a"]}),
        ([2, 0], {"gold_heads": [0, 3]}),
        ([2, 0], {"gold_heads": [0]}),
    ],
)
def test_what_cannot_be_drawn_is_refused(heads: list[int], more: dict) -> None:
    with pytest.raises(HopefearError):
        ArcDiagram(["a", "b"], heads, **more)


def test_a_page_takes_trees_and_gives_them_ids() -> None:
    diagram = ArcDiagram(WORDS, HEADS, RELATIONS)
    html = Page("Trees").tree(diagram, "One.").tree(diagram).html()
    assert html.count("<svg") == 2 and 'id="p1-t"' in html and 'id="p2-t"' in html
    assert "<figcaption>One.</figcaption>" in html


def test_text_in_the_order_of_the_words() -> None:
    assert text_tree(WORDS, HEADS, RELATIONS).splitlines() == [
        "      ╭─→ She        nsubj",
        "╭───┬─┴─● saw        root",
        "│   │ ╭─→ the        det",
        "│ ╭─┴─┴─→ man        obj",
        "│ │ ╭───→ with       case",
        "│ │ │ ╭─→ the        det",
        "│ ╰─┴─┴─→ telescope  nmod",
        "╰───────→ .          punct",
    ]


@pytest.mark.parametrize("seed", range(30))
def test_no_two_arcs_of_a_text_share_a_stretch_of_a_column(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    heads = drawn(rng, n)
    text = text_tree(["w"] * n, heads)
    marks = [line.split(" w")[0][-1] for line in text.splitlines()]
    assert marks == ["●" if h == 0 else "→" for h in heads]
    arcs = [arc for arc in ArcDiagram(["w"] * n, heads).arcs if arc.head]
    levels = _levels(arcs, joined=True)
    for a in arcs:
        for b in arcs:
            if a != b and levels[a] == levels[b]:
                assert a.span[1] <= b.span[0] or b.span[1] <= a.span[0]
                # Where they meet, both hang on the same head.
                assert not set(a.span) & set(b.span) or a.head == b.head
    assert len({len(line) for line in text.splitlines()}) == 1
