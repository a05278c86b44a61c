"""The modules of the decoder for real sentences, imported as its scripts import them."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

from places import ROOT

FOLDER = ROOT / "papers" / "decoder"


def phrasal(name: str) -> ModuleType:
    """A module of the package that stands beside the scripts."""
    sys.path.insert(0, str(FOLDER))
    try:
        return import_module(f"phrasal.{name}")
    finally:
        sys.path.remove(str(FOLDER))
