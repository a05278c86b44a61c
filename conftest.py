"""What tests and examples in docstrings share."""

import numba
import pytest
from extras import needed_by, why_skipped

from hopefear.metrics import best_temperature

collect_ignore = ["tests/support"]  # helpers and programs, imported by tests


class _WithoutExtra(pytest.File):
    """A file that cannot be imported where an extra is missing; skipped as a whole."""

    def collect(self):
        pytest.skip(why_skipped(needed_by(self.path)), allow_module_level=True)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path, parent):
    nodes = yield
    if nodes and why_skipped(needed_by(file_path)):
        return [_WithoutExtra.from_parent(parent, path=file_path)]
    return nodes


def pytest_collection_modifyitems(items):
    """Examples in docstrings carry the marks of their files, and marks their limits of time."""
    for item in items:
        if isinstance(item, pytest.DoctestItem) and needed_by(item.path):
            item.add_marker(pytest.mark.needs(*needed_by(item.path)))
        for mark in item.iter_markers("long"):
            item.add_marker(pytest.mark.timeout(mark.kwargs["seconds"]))


def pytest_runtest_setup(item):
    for mark in item.iter_markers("needs"):
        if reason := why_skipped(mark.args):
            pytest.skip(reason)


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
