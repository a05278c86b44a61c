"""Put compiled kernels into the wheel, where `make wheel` has made some."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Kernels(BuildHookInterface):
    """A wheel with kernels is for one Python and one kind of machine; one without, for all."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        kernels = Path(self.root, "build", "kernels")
        if version == "standard" and (kernels / "level.json").is_file():
            build_data["force_include"][str(kernels)] = "hopefear/kernels"
            build_data["pure_python"] = False
            build_data["tag"] = _tag()


def _tag() -> str:
    """This Python and this kind of machine, in words that an index takes.

    Kernels call no library but numba's, whose own wheels are for this manylinux.
    """
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return f"{python}-{python}-{platform.replace('linux_', 'manylinux_2_28_', 1)}"
