"""What tests and examples in docstrings share."""

import importlib.util

import numba
import pytest

# Modules that need a package of an extra cannot be imported without it: no examples of theirs.

_NEED = {
    "torch": "src/hopefear/neural/*",
    "httptools": "src/hopefear/serve/*",
    "spacy": "src/hopefear/neighbours/spacy_pipes.py",
}
collect_ignore_glob = [
    path for package, path in _NEED.items() if importlib.util.find_spec(package) is None
]


@pytest.fixture(autouse=True, scope="module")
def small_pruner(request):
    """The parsers' pruner with few weights: uncompiled, a million of them took a second each time.

    Only what is compared with older bytes, or read by another process, has them all.
    """
    whole = request.path.parent.name in ("golden", "browser")
    with pytest.MonkeyPatch.context() as patch:
        if numba.config.DISABLE_JIT and not whole:
            patch.setattr("hopefear.tasks.parse.pruning.BITS", 13)
        yield
