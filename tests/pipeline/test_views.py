"""A live run over views: one joins late, the order changes twice; certified through Spark."""

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest

import inga
from inga.cli.main import main
from inga.pipeline.jobs import check_trace

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
    assert {check.name: check.verdict for check in certificate.checks} == dict.fromkeys(promised, "pass")
    _, certificate = check_trace(str(path), ["causal", "views"], session=spark)
    assert [check.verdict for check in certificate.checks] == ["pass"] * 2, "everybody read before it went on"


def test_processes_that_came_later(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`inga live --join`, one process a member."""
    path = tmp_path / "trace"
    words = f"live --members 2 --join 2 --messages 60 --loss 0.02 --seed 1 --quiet --trace {path}"
    assert main(words.split()) == 0
    capsys.readouterr()
    _, certificate = check_trace(str(path), None, session=spark)
    assert {check.name: check.verdict for check in certificate.checks} == dict.fromkeys(CHECKED, "pass")
