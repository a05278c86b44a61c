"""Marks and profiles are those of the library's tests, where these run alone too."""

from tests.conftest import pytest_collection_modifyitems, pytest_configure  # noqa: F401
