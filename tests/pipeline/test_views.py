"""Runs over views, certified through Spark: live ones in which somebody joins, and one with failures in which defects
are planted."""

import asyncio
import socket
from pathlib import Path
from random import Random
from typing import Any

import pytest

import inga
from inga.cli.main import main
from inga.pipeline.jobs import check_trace
from inga.recipes import find
from inga.trace.manifest import Manifest, ProcessFile
from inga.trace.writer import segment_name, write_segment

from ..certify.test_views import DEFECTS, copied
from ..certify.views_world import Run, failing
from ..certify.world import Trace, renumbered, table

pytestmark = [pytest.mark.spark, pytest.mark.network, pytest.mark.xdist_group("spark")]

CHECKED = ["integrity", "complete", "fifo", "stamps", "causal"]


async def talk(groups: list[inga.Group], tag: str) -> None:
    """Everybody speaks and reads all of it; half of it answers something."""
    for number in range(10):
        for group in groups:
            group.post(f"{tag} {number}".encode())
        await asyncio.sleep(0)
    for group in groups:
        left = 10 * (len(groups) - 1)
        async for _ in group:
            left -= 1
            if not left:
                break
        assert not left


async def run(path: Path, port: int, orders: tuple[str, str]) -> None:
    where: dict[str, Any] = {"via": f"udp://239.7.7.7:{port}", "interface": "lo", "members": ["alice", "bob"]}
    options = {**where, "trace": path, "order": "vector"}
    async with (
        inga.join("changes", "alice", **options) as alice,
        inga.join("changes", "bob", **options) as bob,
    ):
        await asyncio.gather(alice.ready(), bob.ready())
        await talk([alice, bob], "two")
        async with inga.join("changes", "cathy", late=True, **options) as cathy:
            groups = [alice, bob, cathy]
            await asyncio.gather(*(group.ready(3) for group in groups))
            for group, order in zip((bob, cathy), orders, strict=True):
                await talk(groups, order)
                view = await group.use(order)
                while any(each.view.number < view.number for each in groups):
                    await asyncio.sleep(0.001)
            await talk(groups, "end")


@pytest.mark.parametrize("orders", [("fifo", "vector"), ("none", "fifo")])
def test_a_live_run_over_views(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], orders: tuple[str, str]
) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    path = tmp_path / "trace"
    asyncio.run(asyncio.wait_for(run(path, port, orders), 60))
    _, certificate = check_trace(str(path), None, session=spark)
    promised = CHECKED[:4] if "none" not in orders else ["integrity", "complete", "stamps"]
    assert {check.name: check.verdict for check in certificate.checks} == dict.fromkeys(
        [*promised, "views"], "pass"
    )
    _, certificate = check_trace(str(path), ["causal"], session=spark)
    assert [check.verdict for check in certificate.checks] == ["pass"], "everybody read before it went on"


def test_processes_that_came_later(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`inga live --join`, one process a member."""
    path = tmp_path / "trace"
    words = f"live --members 2 --join 2 --messages 60 --loss 0.02 --seed 1 --quiet --trace {path}"
    assert main(words.split()) == 0
    capsys.readouterr()
    _, certificate = check_trace(str(path), None, session=spark)
    assert {check.name: check.verdict for check in certificate.checks} == dict.fromkeys(
        [*CHECKED, "views"], "pass"
    )


def stored(run: Run, trace: Trace, path: Path) -> str:
    """A trace in memory as one on disk."""
    recipe = find(run.order)
    receipt, guarantees = recipe.receipt, list(recipe.guarantees)
    Manifest("g", list(run.names), "sim", run.order, receipt, "virtual", guarantees).write(path)
    (path / "events").mkdir()
    for at, rows in enumerate(map(renumbered, trace)):
        write_segment(table(rows, len(trace)), path / "events" / segment_name(at, 0))
        first = min(row.view for row in rows)
        known = ProcessFile(at, run.names[at], first, len(rows), complete=True, crashed=at in run.crashed)
        known.write(path)
    return str(path)


def test_what_is_planted_in_views_is_found(spark: Any, tmp_path: Path) -> None:
    run = failing("total")
    checks = ["complete", "total", "views"]
    _, certificate = check_trace(stored(run, run.trace, tmp_path / "good"), checks, session=spark)
    assert certificate.verdict == "pass"
    for number, defect in enumerate(
        (
            "a survivor lacks what another survivor sent",
            "a delivery is in the next view",
            "a member is missing in a view row",
            "deliveries are in another order",
        )
    ):
        trace = copied(run)
        _, check, plant = DEFECTS[defect]
        plant(run, trace, Random(1))
        path = stored(run, trace, tmp_path / str(number))
        _, certificate = check_trace(path, checks, session=spark)
        failed = {each.name: each for each in certificate.checks if each.verdict == "fail"}
        assert check in failed
        witness = failed[check].witnesses[0]
        assert witness.chain or witness.against, "there is something to follow"
