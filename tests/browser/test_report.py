"""Reports in a real browser: their controls, by mouse and by keyboard, light, dark and narrow."""

from __future__ import annotations

import numpy
import pytest
from axe_playwright_python.sync_playwright import Axe

from hopefear.report import (
    ArcDiagram,
    ErrorExample,
    ErrorExamples,
    Evaluation,
    Findings,
    Judgement,
    MarkedText,
    ModelComparison,
    Page,
    Plot,
    Rival,
    disagreements,
)
from hopefear.tasks.base import Explanation

pytestmark = pytest.mark.interpreted
HOSTILE = "<img src=x onerror=\"document.title='hacked'\">"


@pytest.fixture
def opened(browser_page, tmp_path):
    """Opens a page of ours; nothing may be said on its console."""
    tabs = []

    def open_page(page: Page, **how):
        page.write(tmp_path / "page.html")
        tab = browser_page(reduced_motion="reduce", **how)
        tabs.append(tab)
        tab.goto((tmp_path / "page.html").as_uri())
        return tab

    yield open_page
    assert not any(tab.complaints for tab in tabs)


def case(k: int, kind: str, label: str, word: str) -> ErrorExample:
    return ErrorExample(
        {"sentence": k + 1, "wrong tokens": 9 - k},
        MarkedText([word, "went"], [(0, 1, label)], {(0, 1, label)}),
        MarkedText([word, "went"], []),
        [kind],
        [label],
        [Rival("as predicted", 0.1 * (k + 1)), Rival(word, 0.05, True)],
        Explanation("O", label, 0.5, [("word=" + word, 1.0), ("bias", -0.5)]),
        9 - k,
    )


def evaluation() -> Page:
    cases = [
        case(0, "missed", "PER", "Ann"),
        case(1, "type", "LOC", "Rome"),
        case(2, "missed", HOSTILE, HOSTILE),
    ]
    rows = [["PER", 90.0, 12], ["LOC", 9.5, 1200], [HOSTILE, 50.0, None]]
    facts = {
        "confusion_matrix": {"labels": ["PER", "LOC", HOSTILE], "counts": [[3, 1, 0]] * 3},
        "calibration": {
            "tokens": {"confidence": [50.0, 90.0], "accuracy": [40.0, 95.0], "counts": [5, 9],
                       "ece": 1.0},
        },
    }  # fmt: skip
    return Evaluation(
        "A tagger evaluated",
        "made-up text",
        {"F1": "83.33 %"},
        [("Types", ["type", "F1", "gold"], rows)],
        facts,
        Findings(ErrorExamples(cases, 3, 10, "sentences"), {"sentences": "10"}),
        {"PER": [("word=Ann", 1.0)], HOSTILE: [(HOSTILE, -1.0)]},
        {"seed": 1},
    ).page()


def comparison() -> Page:
    page = Page("Compared").section("Curves")

    def add(name: str) -> Page:
        plots = [Plot(f"{what} by {name}", name, what) for what in ("F1", "non-zeros")]
        for plot in plots:
            plot.line([1, 2, 3], [1, 2, 4], "rda").line([1, 2, 3], [3, 2, 1], HOSTILE)
        return page.figures(plots)

    parts = {name: lambda name=name: add(name) for name in ("passes", "seconds")}
    return page.choices("Along", parts, "passes")


def side_by_side() -> Page:
    """Two models: of sentence 1 both are right, 2 the first, 3 the second, 4 none."""

    def judgement(errors: list[int]) -> Judgement:
        def cases(order):
            tree = ArcDiagram(["It", HOSTILE], [2, 0], ["expl", "root"], gold_heads=[2, 1])
            return [
                case(i, "missed", "PER", f"word{i}")
                if i < 3
                else ErrorExample({"sentence": i + 1, "wrong words": 1}, None, tree, ["head"], at=i)
                for i in order.tolist()
            ]

        return Judgement(numpy.array(errors), cases, "sentences")

    names = ("one", HOSTILE)
    models = {
        name: Evaluation(
            name,
            "",
            {"F1": "83.33 %"},
            [("Types", ["type", "F1", "gold"], [["PER", 90.0 + k, 12], ["LOC", 9.5, 1200]])],
            {
                "f1": 80.0 + k,
                "confusion_matrix": {"labels": ["PER", "LOC"], "counts": [[3, 1], [k, 2]]},
            },
            weights={"PER": [(f"feature of {name}", 1.0)]},
            origin={"seed": 1, "model": name},
        )
        for k, name in enumerate(names)
    }
    test = {"difference": -1.0, "low": -2.0, "high": 0.5, "p_value": 0.2}
    shown = disagreements(
        dict(zip(names, map(judgement, ([0, 0, 1, 2], [0, 1, 0, 1])), strict=True))
    )
    return ModelComparison(
        "Two models", "made-up", models, "f1", "F1", tests={names[0]: test}, contests=shown
    ).page()


def by(tab, name: str):
    return tab.locator(f".controls [data-by={name}]")


def first_column(tab) -> list[str]:
    return tab.locator("table.sort").first.locator("tbody th").all_inner_texts()


def test_tables_sort_by_mouse_and_keyboard(opened):
    tab = opened(evaluation())
    head = tab.locator("table.sort thead th").nth(1)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert first_column(tab) == ["PER", HOSTILE, "LOC"]
    head.locator("button").focus()
    tab.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert first_column(tab) == ["LOC", HOSTILE, "PER"]
    tab.locator("table.sort thead th button").nth(2).click()  # what is not there comes last
    assert first_column(tab) == ["LOC", "PER", HOSTILE]
    assert head.get_attribute("aria-sort") is None


def test_errors_are_chosen_by_kind_label_and_text(opened):
    tab = opened(evaluation())
    seen = tab.locator("article:visible h3")
    assert seen.count() == 3 and tab.locator(".controls output").inner_text() == "3 of 3 shown"
    by(tab, "kinds").select_option("type")
    assert seen.first.text_content().startswith("sentence 2") and seen.count() == 1
    by(tab, "kinds").select_option("")
    by(tab, "labels").select_option(HOSTILE)
    assert seen.count() == 1 and tab.title() == "A tagger evaluated"
    by(tab, "labels").select_option("")
    by(tab, "text").fill("ROME")
    assert tab.locator(".controls output").inner_text() == "1 of 3 shown"
    by(tab, "text").fill("")
    for order, first in (("p", 3), ("place", 3), ("", 1)):
        by(tab, "order").select_option(order)
        assert seen.first.text_content().startswith(f"sentence {first}")


def test_examples_are_chosen_by_who_was_right(opened):
    tab = opened(side_by_side())
    seen = tab.locator("article:visible h3")
    assert seen.count() == 3
    for who, number in (
        (f"one right, {HOSTILE} wrong", 2),
        (f"{HOSTILE} right, one wrong", 3),
        ("all wrong", 4),
    ):
        by(tab, "who").select_option(who)
        assert seen.count() == 1 and seen.first.text_content().startswith(f"sentence {number}")
        assert tab.locator(".controls output").inner_text() == "1 of 3 shown"
    assert tab.locator("article:visible svg").count() == 1  # of both, for they say the same
    assert tab.locator("article:visible .same").all_text_contents() == ["as one"]
    assert tab.title() == "Two models"


def test_each_model_has_a_part_that_is_chosen_by_keyboard(opened):
    tab = opened(side_by_side())
    place = tab.locator("section").filter(has_text="What they weigh").locator(".choices")
    assert place.get_by_text("feature of one").is_visible()
    place.get_by_role("radio").first.focus()
    tab.keyboard.press("ArrowDown")
    assert not place.get_by_text("feature of one").is_visible()
    assert place.get_by_text("feature of <img").is_visible()


def test_keyboard_alone_opens_a_reason(opened):
    tab = opened(evaluation())
    by(tab, "text").focus()
    for _ in range(20):
        tab.keyboard.press("Tab")
        if tab.evaluate("document.activeElement.tagName") == "SUMMARY":
            break
    tab.keyboard.press("Enter")
    assert tab.locator("article details[open]").count() == 1
    assert tab.get_by_text("word=Ann").first.is_visible()


def test_a_learner_hides_in_all_plots(opened):
    tab = opened(comparison())
    curves = tab.locator('.part0 svg > g > [data-of="rda"]')
    assert curves.count() == 2 and curves.first.is_visible()
    tab.locator(".part0 .keys button").filter(has_text="rda").click()
    assert not curves.first.is_visible() and not curves.last.is_visible()
    pressed = [b.get_attribute("aria-pressed") for b in tab.locator('[data-name="rda"]').all()]
    assert pressed == ["false", "false"]
    tab.get_by_role("radio", name="seconds").check()
    assert tab.locator(".part1").is_visible() and not tab.locator(".part0").is_visible()
    assert not tab.locator('.part1 svg > g > [data-of="rda"]').first.is_visible()
    tab.locator(".part1 .keys button").filter(has_text="rda").press("Space")
    assert tab.locator('.part1 svg > g > [data-of="rda"]').first.is_visible()
    assert tab.title() == "Compared"


def test_plots_grow_and_zoom(opened):
    tab = opened(comparison())
    figure = tab.locator(".part0 figure").first
    svg, grow = figure.locator("svg"), figure.locator("button.grow")
    before, whole = svg.bounding_box()["width"], svg.get_attribute("viewBox")
    grow.press("Enter")
    box = svg.bounding_box()
    assert box["width"] > 1.5 * before and grow.get_attribute("aria-pressed") == "true"
    tab.mouse.move(box["x"] + 200, box["y"] + 150)
    tab.mouse.down()
    tab.mouse.move(box["x"] + 400, box["y"] + 300)
    tab.mouse.up()
    assert float(svg.get_attribute("viewBox").split()[2]) < 200
    grow.press("Enter")
    assert svg.get_attribute("viewBox") == whole


@pytest.mark.parametrize("make", [evaluation, comparison, side_by_side])
def test_narrow_windows_scroll_only_downwards(opened, make):
    tab = opened(make(), viewport={"width": 360, "height": 640})
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_page_is_whole_without_its_script(opened):
    tab = opened(evaluation(), java_script_enabled=False)
    assert tab.locator("article").count() == 3 and not tab.locator(".controls").is_visible()
    plots = opened(comparison(), java_script_enabled=False)
    plots.get_by_role("radio", name="seconds").check()
    assert plots.locator(".part1").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("make", [evaluation, comparison, side_by_side])
def test_no_serious_barrier(opened, make, scheme):
    tab = opened(make(), color_scheme=scheme)
    tab.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    paper = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
    faults = Axe().run(tab).response["violations"]
    serious = [f for f in faults if f["impact"] in ("serious", "critical")]
    assert serious == [], [(f["id"], [n["html"][:120] for n in f["nodes"]][:4]) for f in serious]
