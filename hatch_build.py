"""Put compiled kernels into the wheel, where `make wheel` has made some."""

from __future__ import annotations

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
            build_data["infer_tag"] = True
