"""For `make dist`: puts compiled modules into the wheel, which is then for this system and Python alone."""

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledModules(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        folder = os.environ.get("INGA_COMPILED")
        made = sorted(Path(folder).rglob("*.so")) if folder else []
        if folder and made:
            build_data["pure_python"], build_data["infer_tag"] = False, True
            for path in made:
                build_data["force_include"][str(path)] = str(path.relative_to(folder))
