from collections.abc import Callable
from pathlib import Path

import pytest

from inga.trace import Manifest

MakeTrace = Callable[..., Path]


@pytest.fixture
def make_trace(tmp_path: Path) -> MakeTrace:
    """Make directories with a manifest and nothing else."""

    def make(processes: int = 3, name: str = "trace", **changes: object) -> Path:
        directory = tmp_path / name
        described = {
            "group": "lunch",
            "processes": [f"p{index}" for index in range(processes)],
            "source": "sim",
            "order": "vector",
            "receipt": "take",
            "clock": "virtual",
            **changes,
        }
        Manifest(**described).write(directory)  # type: ignore[arg-type]
        return directory

    return make
