"""Modules that need an extra cannot be imported without it, so their examples are left out."""

import importlib.util

NEEDS = {"torch": "neural", "httptools": "serve"}
collect_ignore_glob = [
    f"src/hopefear/{package}/*"
    for module, package in NEEDS.items()
    if importlib.util.find_spec(module) is None
]
