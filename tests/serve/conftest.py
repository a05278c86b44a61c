"""Without the extra there is nothing to serve with."""

from __future__ import annotations

import importlib.util

NEEDS = ("starlette", "uvicorn", "httptools", "httpx2")
MISSING = [name for name in NEEDS if importlib.util.find_spec(name) is None]
collect_ignore_glob = ["test_*.py"] if MISSING else []


def pytest_report_header() -> str | None:
    return f"tests/serve are left out: {', '.join(MISSING)} not installed" if MISSING else None
