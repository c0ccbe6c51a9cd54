"""The log of a tap: whole files, counted records, one writer; and what readers make of damage."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inga.model.errors import TraceError, UsageError
from inga.trace.log import LoggedMessage, LogWriter, log_files, read_records

pytest.importorskip("pyarrow")


def records(first: int, count: int) -> list[LoggedMessage]:
    return [
        LoggedMessage(
            1_700_000_000_000_000_000 + n, "alice", 1, 0, n + 1, 0, (n, 0), n + 1, n % 2 == 1, b"%d" % n
        )
        for n in range(first, first + count)
    ]


def write(path: Path, *sizes: int) -> LogWriter:
    writer = LogWriter(path, "lunch")
    for size in sizes:
        writer.append(records(writer.next, size))
    return writer


def read(path: Path, first: int, end: int) -> list[int]:
    return [
        number
        for file in log_files(path)
        if file.first < end and file.next > first
        for number in read_records(file, first, end)["record"].to_pylist()
    ]


def test_records_come_back_as_they_were(tmp_path: Path) -> None:
    write(tmp_path / "log", 3).close()
    (file,) = log_files(tmp_path / "log")
    row = read_records(file, 1, 2).to_pylist()[0]
    assert row.pop("time").timestamp() == 1_700_000_000
    assert row == {
        "record": 1, "sender": "alice", "view": 1, "src": 0, "seq": 2, "part": 0, "deps": [1, 0], "height": 2,
        "concurrent": True, "data": b"1",
    }  # fmt: skip


@settings(deadline=None, max_examples=40)  # files are written and synced
@given(st.lists(st.integers(0, 9), max_size=8), st.data())
def test_any_range_is_read_once(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], data: Any
) -> None:
    path = tmp_path_factory.mktemp("log") / "log"
    for size in sizes:  # each by a writer of its own: a tap that was restarted
        write(path, size).close()
    write(path).close()
    total = sum(sizes)
    first = data.draw(st.integers(0, total))
    end = data.draw(st.integers(first, total))
    assert read(path, first, end) == list(range(first, end))


def test_what_was_not_finished_is_as_if_it_had_not_been(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before the file got its name."""
    writer = write(tmp_path / "log", 4)

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", killed)
        with pytest.raises(KeyboardInterrupt):
            writer.append(records(4, 2))
    writer.close()
    assert [(file.first, file.next) for file in log_files(tmp_path / "log")] == [(0, 4)]
    again = write(tmp_path / "log", 3)
    again.close()
    assert read(tmp_path / "log", 0, 99) == list(range(7))
    assert not list((tmp_path / "log" / "records").glob(".*"))


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    writer = write(tmp_path / "log", 1)
    with pytest.raises(UsageError, match="another tap writes to"):
        LogWriter(tmp_path / "log", "lunch")
    writer.close()
    LogWriter(tmp_path / "log", "lunch").close()


def test_the_log_of_another_group_is_left_alone(tmp_path: Path) -> None:
    write(tmp_path / "log", 1).close()
    with pytest.raises(UsageError, match="is the log of group 'lunch': name another directory"):
        LogWriter(tmp_path / "log", "dinner")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.png").touch()
    with pytest.raises(TraceError, match=r"photos has no log.json, so it is not the log of a tap."):
        LogWriter(tmp_path / "photos", "lunch")


def test_a_beginning_may_be_thrown_away_but_nothing_in_between(tmp_path: Path) -> None:
    write(tmp_path / "log", 2, 2, 2, 2).close()
    files = [Path(file.path) for file in log_files(tmp_path / "log")]
    files[0].unlink()
    assert log_files(tmp_path / "log")[0].first == 2
    files[2].unlink()
    with pytest.raises(TraceError, match=r"record 4 is missing before 000000000006-000000000008.parquet"):
        log_files(tmp_path / "log")


def test_damage_is_one_sentence(tmp_path: Path) -> None:
    write(tmp_path / "log", 5).close()
    (file,) = log_files(tmp_path / "log")
    content = Path(file.path).read_bytes()
    Path(file.path).write_bytes(content[:50])
    with pytest.raises(TraceError, match="cannot be read"):
        read_records(file, 0, 5)
    Path(file.path).write_bytes(content)
    longer = Path(file.path).with_name("000000000000-000000000009.parquet")
    Path(file.path).rename(longer)
    with pytest.raises(TraceError, match="promises 9 records and has 5"):
        read_records(log_files(tmp_path / "log")[0], 0, 9)
    (tmp_path / "log" / "log.json").write_text('{"format": 7}')
    with pytest.raises(TraceError, match="the format is 7, and only 1 is known here"):
        log_files(tmp_path / "log")
