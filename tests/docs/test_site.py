"""The built site: works from a disk, asks no other host, and sets its formulas."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pytest
from places import ROOT
from playwright.sync_api import sync_playwright

pytestmark = [pytest.mark.slow, pytest.mark.needs("docs")]
LOADED = re.compile(r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["\']?([^"\'\s>]+)""")
RELATIONS = "stylesheet|icon|preload|preconnect|prefetch"
LINKED = re.compile(
    rf"""<link\b(?=[^>]*\brel=["\']?(?:{RELATIONS}))[^>]*\bhref=["\']?([^"\'\s>]+)"""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=1200)
    return folder


def test_nothing_is_loaded_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
        text = page.read_text("utf-8")
        for address in [*LOADED.findall(text), *LINKED.findall(text)]:
            assert not re.match(r"(https?:)?//", address), f"{page.name} loads {address}"
    for sheet in site.rglob("*.css"):
        assert not re.search(r"""(url\(|@import )["\']?(https?:)?//""", sheet.read_text("utf-8"))


def test_formulas_are_set(site):
    text = (site / "theory.html").read_text("utf-8")
    assert text.count("<math ") > 200 and "arithmatex" not in text
    assert (site / "learners.html").read_text("utf-8").count("<math ") > 100
    assert (site / "api" / "rules.html").read_text("utf-8").count("<math ") > 10


def test_marks_of_the_snippets_are_left_out(site):
    assert not [page for page in site.rglob("*.html") if "<!-- snippet" in page.read_text("utf-8")]


def test_search_works_from_a_disk(site):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no chromium is installed")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1300, "height": 900})
        addresses: list[str] = []
        page.on("request", lambda request: addresses.append(request.url))
        page.goto(f"file://{site}/index.html")
        page.wait_for_function("document.querySelector('iframe') !== null", timeout=60_000)
        page.keyboard.press("s")
        page.keyboard.type("perceptron")
        page.wait_for_selector(".md-search-result__item", timeout=60_000)
        browser.close()
    assert addresses
    assert [one for one in addresses if not one.startswith(("file:", "data:", "blob:"))] == []
