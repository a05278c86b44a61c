"""The page of the server in a real browser: every task, markup, long input, keys, looks."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from served import MARKUP, Serving, saved

pytestmark = [
    pytest.mark.interpreted,
    pytest.mark.needs("serve"),
]
SHOTS = os.environ.get("HOPEFEAR_SHOTS")  # a folder that screenshots go to
NARROW = {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def serving(browser, tmp_path_factory):
    one = Serving("--model", *saved(tmp_path_factory.mktemp("served")), "--timeout", "60")
    yield one
    assert one.end() == 0


@pytest.fixture
def opened(serving, browser_page):
    """Open the page with a model chosen; nothing may complain."""
    pages = []

    def page_of(model, **options):
        page = browser_page(**options)
        pages.append(page)
        page.goto(serving.address)
        page.locator("#model option").first.wait_for(state="attached")
        page.select_option("#model", model)
        return page

    yield page_of
    for page in pages:
        assert page.complaints == []
        assert page.title() == "hopefear: try a model"


def ask(page, text=None):
    if text is not None:
        page.fill("#input", text)
    page.click("button.main")
    page.get_by_text("answered in").wait_for()


def shot(page, name):
    if SHOTS:
        page.screenshot(path=Path(SHOTS) / f"serve-{name}.png", full_page=True)


@pytest.mark.parametrize("model", ["names", "tags", "news", "rows", "trees", "lists"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_task_can_be_tried(opened, model, scheme):
    page = opened(model, color_scheme=scheme)
    ask(page)
    assert page.locator(".best li").count() > 0
    whys = page.locator("[data-token]")
    (whys.first if whys.count() else page.get_by_text("Why the first?")).click()
    page.locator("#why tbody tr").first.wait_for()
    assert page.locator("#why .bar").count() > 0
    paper = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert (int(paper.removeprefix("rgb(").split(",")[0]) < 128) == (scheme == "dark")
    shot(page, f"{model}-{scheme}")


def test_spans_and_arcs_are_drawn(opened):
    page = opened("names")
    ask(page, "Ann Lee sings.")
    mark = page.locator("mark").first
    assert mark.inner_text().split() == ["Ann", "Lee", "PER"]
    page.select_option("#model", "trees")
    ask(page, "Ann Lee sings.")
    assert page.locator(".tree path.tip").count() == 4
    assert (
        "nsubj" in page.locator(".tree text").all_inner_texts()
        or page.locator(".tree text", has_text="nsubj").count()
    )


def test_another_of_the_best_can_be_looked_at(opened):
    page = opened("names")
    ask(page, "Ann Lee sings.")
    before = page.locator(".words").inner_text()
    page.locator("[data-pick='0-1']").click()
    assert page.locator("[data-pick='0-1']").get_attribute("aria-pressed") == "true"
    assert page.locator(".words").inner_text() != before


def test_markup_stays_text(opened):
    page = opened("tags")
    ask(page, f"{MARKUP} <script>document.title=2</script>.")
    page.locator("[data-token]").first.click()
    page.locator("#why tbody tr").first.wait_for()
    assert page.locator("#output img, #output script, #why img").count() == 0
    assert MARKUP in page.locator("#output").inner_text()
    page.select_option("#model", "lists")
    candidates = [{MARKUP: 1.0}, {"hope": 1.0}]
    ask(page, json.dumps(candidates))
    page.get_by_text("Why the first?").click()
    page.locator("#why td.name", has_text=MARKUP).first.wait_for()


def test_mistakes_are_shown(opened):
    page = opened("rows")
    page.fill("#input", "{")
    page.click("button.main")
    page.get_by_text("The input is no JSON").wait_for()
    page.fill("#input", '{"x": 1}')
    page.click("button.main")
    page.get_by_text("'x' is none").wait_for()
    # What the browser says of an answer of status 400 is no complaint of the page.
    page.complaints[:] = [line for line in page.complaints if "status of 400" not in line]


def test_long_input(opened):
    page = opened("names")
    page.fill("#n", "1")
    ask(page, " ".join(["Ann"] * 5000))
    assert page.locator("[data-token]").count() == 5000
    assert page.locator("[data-token][tabindex='0']").count() == 1


def test_keys_are_enough(opened):
    page = opened("names")
    page.focus("#input")
    page.keyboard.press("Control+a")
    page.keyboard.type("Ann Lee sings.")
    page.keyboard.press("Control+Enter")
    page.get_by_text("answered in").wait_for()
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement.hasAttribute('data-token')"):
            break
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("() => document.activeElement.textContent") == "sings"
    page.keyboard.press("Enter")
    page.locator("#why tbody tr").first.wait_for()
    assert page.evaluate("() => document.activeElement.id") == "why"


def test_narrow_windows_do_not_scroll_sideways(opened):
    for model in ("names", "news", "trees", "lists"):
        page = opened(model, viewport=NARROW)
        ask(page)
        sizes = page.evaluate("() => [document.documentElement.scrollWidth, innerWidth]")
        assert sizes[0] <= sizes[1], model
        shot(page, f"{model}-narrow")


def test_answers_are_copied(opened, serving):
    page = opened("names", permissions=["clipboard-read", "clipboard-write"])
    ask(page, "Ann Lee's dog sings.")
    texts = {}
    for name in ("conll", "asjson", "curl"):
        page.click(f"#{name}")
        page.get_by_text("copied").first.wait_for()
        texts[name] = page.evaluate("() => navigator.clipboard.readText()")
    assert texts["conll"].startswith("Ann\tB-PER\nLee's\t")
    assert json.loads(texts["asjson"])["model"] == "names"
    assert f"{serving.address}/predict" in texts["curl"] and "Lee'\\''s" in texts["curl"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nobody_is_shut_out(opened, scheme):
    checker = Axe()
    for model in ("names", "trees", "news"):
        page = opened(model, color_scheme=scheme, bypass_csp=True)
        ask(page)
        whys = page.locator("[data-token]")
        (whys.first if whys.count() else page.get_by_text("Why the first?")).click()
        page.locator("#why tbody tr").first.wait_for()
        found = checker.run(page).response["violations"]
        worst = [one["id"] for one in found if one["impact"] in ("serious", "critical")]
        assert worst == [], [one["nodes"][0]["html"] for one in found]
