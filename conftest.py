"""What tests and examples in docstrings share."""

import importlib.util

import numba
import pytest

from hopefear.metrics import best_temperature

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
def less_work(request):
    """Few weights for the parsers' pruner, rough temperatures, no look at installed packages.

    Uncompiled, a million weights took a second each time, the 39 likelihoods of a temperature a
    tenth of all tests, and each command reads the metadata of all packages for tasks. Only what
    is compared with older bytes, or read by another process, is made as users have it.
    """
    whole = request.path.parent.name in ("golden", "browser")
    with pytest.MonkeyPatch.context() as patch:
        if numba.config.DISABLE_JIT and not whole:
            patch.setattr("hopefear.tasks.parse.pruning.BITS", 13)
            patch.setattr("hopefear.tasks.base.best_temperature", _rough_temperature)
            patch.setattr("hopefear.cli.find_tasks", lambda: None)
        yield


def _rough_temperature(log_likelihood, tolerance):
    return best_temperature(log_likelihood, tolerance=0.01)
