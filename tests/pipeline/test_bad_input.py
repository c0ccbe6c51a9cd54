"""Bad input through the commands: one clear sentence, exit code 2, and nothing left behind."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inga.cli.main import main
from inga.lab.traces import TraceRecipe, make

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("lent")]


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bad") / "clean"
    make(path, TraceRecipe(1500, 3), segment_rows=200)
    return path


@pytest.fixture
def trace(clean: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(clean, tmp_path / "trace"))


def segment(trace: Path) -> Path:
    return trace / "events" / "1-00001.parquet"


def half(trace: Path) -> None:
    data = segment(trace).read_bytes()
    segment(trace).write_bytes(data[: len(data) // 2])


def nothing(trace: Path) -> None:
    segment(trace).write_bytes(b"")


def foreign(trace: Path) -> None:
    pq.write_table(pa.table({"clock": [1, 2], "message": ["a", "b"]}), segment(trace))


def gap(trace: Path) -> None:
    segment(trace).unlink()


def change(trace: Path, column: str, values: Callable[[pa.ChunkedArray], pa.Array]) -> None:
    table = pq.read_table(segment(trace))
    at = table.column_names.index(column)
    pq.write_table(table.set_column(at, column, values(table.column(column))), segment(trace))


def negative(trace: Path) -> None:
    change(trace, "seq", lambda column: pa.array([-value for value in column.to_pylist()], pa.int64()))


def wide(trace: Path) -> None:
    change(trace, "deps", lambda column: pa.array([bytes(16)] * len(column), pa.binary(16)))


def crooked(trace: Path) -> None:
    change(trace, "deps", lambda column: pa.array([bytes(10)] * len(column), pa.binary(10)))


def claims(trace: Path) -> None:
    path = trace / "manifest.json"
    content = json.loads(path.read_text())
    content["processes"] += [f"ghost{number}" for number in range(10**6)]
    path.write_text(json.dumps(content))


def torn(trace: Path) -> None:
    path = trace / "manifest.json"
    path.write_text(path.read_text()[:40])


DAMAGES = [
    (half, "1-00001.parquet is not a readable Parquet file: "),
    (nothing, "1-00001.parquet is not a readable Parquet file: "),
    (foreign, "1-00001.parquet has no column process."),
    (gap, "segment 1 of process 1 is missing before it."),
    (negative, "which cannot be."),
    (wide, "deps of 16 bytes is longer than 4 x 3 processes."),
    (crooked, "deps of 10 bytes is not a multiple of 4."),
    (claims, "The manifest names 1000003 processes, but the vectors in all segments are those of 3."),
    (torn, "manifest.json is not JSON: "),
]


@pytest.mark.parametrize(
    ("command", "damage", "message"),
    # What `stamp` replaces it does not read.
    [
        (command, damage, message)
        for command in ("check", "stamp")
        for damage, message in DAMAGES
        if command == "check" or damage not in (wide, crooked)
    ],
    ids=lambda value: getattr(value, "__name__", str(value)[:6]),
)
def test_one_sentence_and_nothing_left(
    trace: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    command: str,
    damage: Callable[[Path], None],
    message: str,
) -> None:
    damage(trace)
    before = sorted(trace.rglob("*"))
    words = [
        command,
        str(trace),
        *([str(tmp_path / "out")] if command == "stamp" else []),
        "--quiet",
        "--json",
    ]
    assert main(words) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert message in told.err and told.err.startswith(f"inga {command}: ")
    assert told.err.count("\n") == 1 and told.err.endswith(".\n")
    assert sorted(trace.rglob("*")) == before
    assert [path.name for path in tmp_path.iterdir()] == ["trace"]
