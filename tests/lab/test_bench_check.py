"""What `inga bench check` measures besides Spark works on a small trace."""

from pathlib import Path

import pytest

from inga.cli.main import main
from inga.lab.bench_check import RIVALS, _is_there, _Rival, alone
from inga.lab.traces import TraceRecipe, make


@pytest.mark.parametrize("name", RIVALS)
def test_each_other_way_passes_a_clean_trace(tmp_path: Path, name: str) -> None:
    pytest.importorskip(RIVALS[name].package, reason=f"{RIVALS[name].package} is not installed")
    make(tmp_path / "trace", TraceRecipe(2000, 3), segment_rows=300)
    cpu, peak = alone(RIVALS[name].function, tmp_path / "trace")
    assert cpu >= 0 and peak > 1


def test_what_is_not_installed_is_said() -> None:
    told: list[str] = []
    assert not _is_there("Nothing", _Rival("no_such_package", print), told.append)
    assert told == ["nothing for Nothing: no_such_package is not installed (pip install 'inga[bench]')"]


def test_help_tells_of_the_large_trace(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["bench", "--help"])
    assert "--large" in capsys.readouterr().out
