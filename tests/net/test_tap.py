"""The tap: a silent member, whose log has what every other member was given."""

import asyncio
from pathlib import Path
from threading import Event

import pytest

from inga.model.errors import UsageError
from inga.net.tap import Tap
from inga.trace.log import LoggedMessage, LogWriter, log_files, read_records

from .helpers import Party, Run, until

pytestmark = pytest.mark.network


class Kept:
    """A log in memory, with a disk that may be full."""

    def __init__(self, full: bool = False) -> None:
        self.files: list[list[LoggedMessage]] = []
        self.full = full

    def append(self, records: list[LoggedMessage]) -> None:
        if self.full:
            raise OSError(28, "No space left on device")
        self.files.append(list(records))


def test_the_log_has_everything_in_causal_order(party: Party, run: Run, tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "log", "lunch")

    async def main() -> None:
        async with party(3, "unicast") as (one, two, listener):
            tap = Tap(listener, log, flush=0.01)
            task = asyncio.ensure_future(tap.run())
            await one.send_many([b"question %d" % n for n in range(20)])
            asked = [each async for each in _first(two, 20)]
            assert len(asked) == 20
            for n in range(20):
                await two.send(b"answer %d" % n)
            await until(lambda: tap.records == 40)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    run(main())
    log.close()
    rows = [row for file in log_files(log.directory) for row in read_records(file, 0, 99).to_pylist()]
    assert [row["record"] for row in rows] == list(range(40))
    said = [row["data"].decode() for row in rows]
    assert said == [f"question {n}" for n in range(20)] + [f"answer {n}" for n in range(20)]
    assert {(row["sender"], row["src"]) for row in rows} == {("alice", 0), ("bob", 1)}
    assert all(row["height"] == sum(row["deps"]) + 1 for row in rows)
    assert len({(row["src"], row["seq"], row["part"]) for row in rows}) == 40


async def _first(group, count):  # type: ignore[no-untyped-def]
    async for delivery in group:
        yield delivery
        count -= 1
        if not count:
            return


def test_what_was_taken_is_written_at_the_end(party: Party, run: Run) -> None:
    kept = Kept()

    async def main() -> None:
        async with party(2, "unicast") as (one, listener):
            tap = Tap(listener, kept, flush=1e6)  # type: ignore[arg-type]
            task = asyncio.ensure_future(tap.run())
            await one.send(b"last words")
            await until(lambda: tap._waiting)
            assert not kept.files
            assert tap._bytes == len(b"last words")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not tap._waiting and tap._bytes == 0

    run(main())
    assert [record.data for file in kept.files for record in file] == [b"last words"]


def test_a_full_disk_ends_it(party: Party, run: Run) -> None:
    async def main() -> None:
        async with party(2, "unicast") as (one, listener):
            tap = Tap(listener, Kept(full=True), flush=0.001)  # type: ignore[arg-type]
            task = asyncio.ensure_future(tap.run())
            await one.send(b"too much")
            with pytest.raises(OSError, match="No space left"):
                await task

    run(main())


@pytest.mark.parametrize("full", [False, True])
def test_the_end_comes_in_the_middle_of_writing(party: Party, run: Run, full: bool) -> None:
    """What is being written is counted all the same, and a disk that is full is told."""
    begun, go_on = Event(), Event()

    class Slow(Kept):
        def append(self, records: list[LoggedMessage]) -> None:
            begun.set()
            assert go_on.wait(10)
            super().append(records)

    async def main() -> None:
        async with party(2, "unicast") as (one, listener):
            tap = Tap(listener, Slow(full), flush=0.001)  # type: ignore[arg-type]
            task = asyncio.ensure_future(tap.run())
            await one.send(b"last words")
            await until(begun.is_set)
            await listener.close()
            for _ in range(10):  # the tap sees that the group is closed
                await asyncio.sleep(0)
            go_on.set()
            if full:
                with pytest.raises(OSError, match="No space left"):
                    await task
            else:
                await task
                assert tap.records == 1

    run(main())


def test_many_records_are_written_before_they_are_due(
    party: Party, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inga.net.tap.RECORDS_MAX", 10)
    kept = Kept()

    async def main() -> None:
        async with party(2, "unicast") as (one, listener):
            tap = Tap(listener, kept, flush=1e6)  # type: ignore[arg-type]
            task = asyncio.ensure_future(tap.run())
            for n in range(95):
                await one.send(b"%d" % n)
                if n % 9 == 0:  # else all of them share a packet
                    await until(lambda last=n: tap.records + len(tap._waiting) > last)  # type: ignore[misc]
            await until(lambda: tap.records + len(tap._waiting) == 95)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    run(main())
    assert [int(record.data) for file in kept.files for record in file] == list(range(95))
    assert len(kept.files) > 1


def test_two_taps_need_two_logs(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "log", "lunch")
    with pytest.raises(UsageError, match="another tap"):
        LogWriter(tmp_path / "log", "lunch")
    log.close()
