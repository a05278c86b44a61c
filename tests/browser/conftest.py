"""A page in Debian's chromium, driven by playwright; tests are skipped where either is missing."""

from __future__ import annotations

import os
import shutil

import pytest
from playwright.sync_api import sync_playwright


@pytest.fixture(scope="module")
def browser():
    """Closed with its file: as long as it is open, tests in this process cannot run a loop."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("chromium is not installed")
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def browser_page(browser):
    """Open a page: ``browser_page(color_scheme="dark", viewport=...)``; it may complain of nothing.

    What the console says and what goes wrong is in its ``complaints``.
    """
    contexts = []

    def opened(**options):
        context = browser.new_context(**options)
        context.set_default_timeout(20_000)
        contexts.append(context)
        page = context.new_page()
        page.complaints = []
        page.on("console", lambda line: page.complaints.append(line.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        return page

    yield opened
    for context in contexts:
        context.close()


def pytest_configure(config):
    # Playwright's loop must not be taken for the one of a test.
    os.environ.setdefault("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1")
