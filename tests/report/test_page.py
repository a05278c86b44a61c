"""Pages: self-contained, escaped, accessible, small."""

import base64
import hashlib
import re
from html.parser import HTMLParser
from importlib.resources import files

import pytest

import hopefear
from hopefear.errors import HopefearError
from hopefear.report import Page, Plot
from hopefear.report.theme import inline

pytestmark = pytest.mark.interpreted

HOSTILE = "<img src=x onerror=alert(1)>\"'&`**x**`\ud800"
VOID = {"meta", "br", "img", "link"}


class Outline(HTMLParser):
    """Elements and texts of a page; fails where tags do not nest."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.texts = [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if data.strip():
            self.texts.append(data.strip())

    def named(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]


def full_page():
    page = Page("Title", "about `this`", signature="seed:1\nseed:2")
    page.section("First").text("One **bold**.\n\nTwo [link](https://example.org).")
    page.table(["name", "score"], [["a", 1.5], ["b", None]], caption="Scores", notes="A note.")
    page.section("Second").plot(Plot("P", "x", "y").line([1, 2], [1, 2], "a"), "below")
    page.figures([Plot("Q").bars(["a"], [1]), Plot("R")], ["one", "two"])
    with page.details("More"):
        page.keyvalues({"rate": 0.1, "on": True}).code("a < b\n  c")
    return page


def test_page_nests_and_names_its_parts():
    outline = Outline(full_page().html())
    assert outline.named("html")[0]["lang"] == "en"
    assert len(outline.named("h1")) == 1
    assert outline.named("caption")
    assert [a["scope"] for a in outline.named("th")] == ["col", "col", "row", "row"]
    regions = [a for a in outline.named("div") if a.get("role") == "region"]
    assert all(a["tabindex"] == "0" and a["aria-label"] for a in regions)
    assert f"hopefear {hopefear.__version__}" in outline.texts
    assert {"seed:1", "seed:2"} <= set(outline.texts)


def test_ids_are_unique_and_links_lead_somewhere():
    outline = Outline(full_page().html())
    ids = [attrs["id"] for _, attrs in outline.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    inside = [a["href"][1:] for a in outline.named("a") if a["href"].startswith("#")]
    assert len(inside) == 3
    assert set(inside) <= set(ids)
    named = [name for a in outline.named("svg") for name in a["aria-labelledby"].split()]
    assert set(named) <= set(ids)


def test_nothing_is_loaded_and_nothing_runs():
    text = full_page().html()
    outline = Outline(text)
    assert not {"link", "img", "iframe", "object"} & {tag for tag, _ in outline.elements}
    script = (files("hopefear.report") / "script.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert text.count("<script") == 1 and f"<script>{script}</script>" in text
    assert f"script-src 'sha256-{digest}'" in text  # and no other script may run
    assert not [a for _, attrs in outline.elements for a in attrs if a == "src" or a[:2] == "on"]
    assert "@import" not in text
    assert all(u.startswith("#") for u in re.findall(r"url\(([^)]*)\)", text))
    addresses = re.findall(r'"(https?://[^"]*)"', text)
    assert set(addresses) == {"http://www.w3.org/2000/svg", "https://example.org"}
    policy = next(a["content"] for a in outline.named("meta") if "http-equiv" in a)
    assert "default-src 'none'" in policy
    assert "COLOURS" not in text


def test_hostile_text_stays_text_everywhere():
    page = Page(HOSTILE, HOSTILE, signature=HOSTILE).section(HOSTILE).section(HOSTILE, level=3)
    page.text(HOSTILE).keyvalues({HOSTILE: HOSTILE}).code(HOSTILE)
    page.table([HOSTILE, "n"], [[HOSTILE, 1]], HOSTILE, notes=[HOSTILE])
    page.plot(Plot(HOSTILE), HOSTILE)
    with page.details(HOSTILE):
        pass
    outline = Outline(page.html())
    assert not outline.named("img")
    assert page.html().encode("utf-8")


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:x",
        "data:text/html,x",
        "vbscript:x",
        "java\tscript:x",
        "&#106;avascript:x",
    ],
)
def test_links_that_could_run_code_stay_text(address):
    # An address is safe when a browser, after decoding, finds no scheme but the permitted ones.
    for attrs in Outline(inline(f"[x]({address})")).named("a"):
        assert ":" not in attrs["href"].split("/")[0].split("#")[0].split("?")[0]


@pytest.mark.parametrize("address", ["https://a.org/b?c=1&d=2", "#s1", "other.html", "a/b:c"])
def test_harmless_links_work(address):
    assert Outline(inline(f"[x]({address})")).named("a") == [{"href": address}]


def test_numbers_stand_right_and_share_decimals():
    text = (
        Page("t")
        .table(
            ["a", "b", "c", "d"],
            [
                ["x", 1.5, 1234567, "93.1 ± 0.2"],
                ["y", 2.25, 3, "–"],
            ],
        )
        .html()
    )
    cells = re.findall('<td class="r">([^<]*)</td>', text)
    assert cells == ["1.50", "1,234,567", "93.1 ± 0.2", "2.25", "3", "–"]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ([0.5, 0.25], ["0.50", "0.25"]),
        ([1e-7, 2.5], ["1e-07", "2.5"]),
        ([12345.6, 2.0], ["12,346", "2"]),
        ([float("nan"), -1.5], ["–", "−1.5"]),
        ([float("inf"), 2.0], ["∞", "2.0"]),
        ([True, None], ["yes", "–"]),
        ([3.0, 4.0], ["3.0", "4.0"]),
    ],
)
def test_cells_read_well(column, expected):
    text = Page("t").table(["n", "v"], [["r", v] for v in column]).html()
    assert re.findall(r"<td[^>]*>([^<]*)</td>", text) == expected


def test_best_values_stand_out_and_ties_all_do():
    text = (
        Page("t")
        .table(
            ["n", "err", "f"],
            [["a", 2.0, "1 ± 2"], ["b", 1.0, "3 ± 1"], ["c", 1.0, None]],
            highlight={"err": "min", "f": "max"},
        )
        .html()
    )
    assert re.findall("<strong>([^<]*)</strong>", text) == ["1.0", "3 ± 1", "1.0"]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda p: p.table(["a"], [[1, 2]]), "row 0 has 2 cells but the table has 1 columns"),
        (lambda p: p.table(["a"], [[1]], align="lr"), "does not fit 1 columns"),
        (lambda p: p.table(["a"], [[1]], highlight={"b": "max"}), "which the table lacks"),
        (lambda p: p.figures([Plot("x")], []), "0 captions for 1 plots"),
    ],
)
def test_misuse_is_explained(act, message):
    with pytest.raises(ValueError, match=message):
        act(Page("t"))


def test_a_section_cannot_begin_inside_details():
    page = Page("t")
    with pytest.raises(ValueError, match="began inside details"), page.details("d"):
        page.section("s")


def test_page_is_small_and_always_the_same():
    first, second = full_page().html(), full_page().html()
    assert first == second
    assert len(first) < 32_000


def test_write_replaces_whole_files_only(tmp_path):
    target = tmp_path / "page.html"
    full_page().write(target)
    assert target.read_text(encoding="utf-8") == full_page().html()
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]
    with pytest.raises(HopefearError, match="absent"):
        full_page().write(tmp_path / "absent" / "page.html")
