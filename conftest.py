"""Modules that need a package of an extra cannot be imported without it: no examples of theirs."""

import importlib.util

_NEED = {
    "torch": "src/hopefear/neural/*",
    "httptools": "src/hopefear/serve/*",
    "spacy": "src/hopefear/neighbours/spacy_pipes.py",
}
collect_ignore_glob = [
    path for package, path in _NEED.items() if importlib.util.find_spec(package) is None
]
