"""CO over real sockets: every carrier, levels of receipts, leaving, and a member that stands still for a while."""

import asyncio
import os
import signal
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

import inga
from inga.layers.co.parts import CoSettings
from inga.runs.cluster import Cluster
from inga.trial.workload import Workload

from .helpers import CARRIERS, SECONDS, FreePort, Party, Run, texts, until
from .trials import ROUGH, judged, play

pytestmark = pytest.mark.network


@pytest.mark.parametrize("via", CARRIERS)
@pytest.mark.parametrize("deliver", ["causal", "acknowledged"])
def test_a_rough_network(run: Run, party: Party, via: str, deliver: str) -> None:
    workload = Workload(4, 150, 300)

    async def main() -> None:
        async with party(4, via, order="co", deliver=deliver, faults=ROUGH, seed=3) as groups:
            diaries = await play(groups, workload)
            assert judged(diaries, workload) == {}

    run(main())


def test_receipts_reach_all_levels(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(3, order="co") as (alice, bob, _cathy):
            receipt = await alice.send(b"x")
            await receipt.reached("causal")
            assert not receipt.has("acknowledged")
            await receipt.reached("confirmed")
            await receipt.reached("acknowledged")
            assert await texts(bob, 1) == ["x"]
            with pytest.raises(
                inga.UsageError,
                match=r"'received' is not a level of this group's order; .* causal, confirmed, ack",
            ):
                await receipt.reached("received")

    run(main())


def test_large_messages_and_subsets(run: Run, party: Party) -> None:
    large = bytes(range(256)) * 1024

    async def main() -> None:
        async with party(3, order="co", datagram_max=1472) as (alice, bob, cathy):
            await alice.send(large)
            await alice.send(b"psst", to="bob")
            await alice.send(b"all")
            got = [bytes(d.data) for d in [await anext(aiter(bob)) for _ in range(1)]]
            assert got == [large]
            assert await texts(bob, 2) == ["psst", "all"]
            assert [bytes((await anext(aiter(cathy))).data), *await texts(cathy, 1)] == [large, "all"]

    run(main(), seconds=SECONDS)


def test_levels_and_options_that_are_none(run: Run, party: Party) -> None:
    async def main() -> None:
        for options, why in (
            ({"deliver": "received"}, "'co' delivers at level 'causal' or 'confirmed' or 'acknowledged'"),
            ({"protocol": {"widow": 1}}, "'co' has no option 'widow'"),
            ({"protocol": {"window": 0}}, "window is a whole number"),
        ):
            with pytest.raises(inga.UsageError, match=why):
                async with party(2, order="co", **options):
                    pass

    run(main())


def test_when_all_is_said_nobody_speaks(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(3, order="co", detect=None) as groups:
            receipts = [await group.send(b"x") for group in groups]
            for receipt in receipts:
                await receipt.reached("acknowledged")

            def sent() -> int:
                return sum(group.stack.counts["control"] for group in groups)

            await until(lambda: all(group.stack.ready().wake is None for group in groups))
            before = sent()
            await asyncio.sleep(0.05)
            assert sent() == before

    run(main())


def test_the_others_go_on_when_one_leaves(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(3, order="co") as (alice, bob, cathy):
            await alice.send(b"before")
            assert await texts(cathy, 1) == ["before"]
            await cathy.close()
            receipt = await alice.send(b"after")
            await receipt.reached("acknowledged")
            assert await texts(bob, 2) == ["before", "after"]

    run(main())


# A member that stops


@pytest.fixture
def jobs_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent.parent / "runs"), prepend=os.pathsep)


PEOPLE = ["alice", "bob", "cathy"]


@pytest.mark.usefixtures("jobs_can_be_imported")
def test_a_member_stopped_for_two_seconds(free_port: FreePort, group_name: str) -> None:
    """Nobody loses anything, buffers stay within their bound, and the stopped one catches up."""
    where = {
        "group": group_name,
        "members": PEOPLE,
        "via": f"udp://239.7.7.7:{free_port()}",
        "interface": "lo",
    }
    with Cluster("jobs:chatter", [{**where, "order": "co", "me": me} for me in range(3)]) as cluster:

        def report(without: int | None = None) -> list[dict[str, Any]]:
            others = frozenset() if without is None else frozenset({without})
            for index in set(range(3)) - others:
                cluster.tell("report", index)
            return cluster.gather("report", timeout=SECONDS, without=others)

        def wait_for(sent: int) -> None:
            deadline = monotonic() + SECONDS
            while any(each["sent"] < sent for each in report()):
                assert monotonic() < deadline, "they do not go on"
                sleep(0.01)

        cluster.gather("ready", timeout=SECONDS)
        cluster.tell("go")
        wait_for(1000)
        os.kill(cluster.processes[2], signal.SIGSTOP)
        try:
            sleep(2)
            stopped = report(without=2)
            assert report(without=2)[0]["sent"] == stopped[0]["sent"], "the window is closed"
        finally:
            os.kill(cluster.processes[2], signal.SIGCONT)
        wait_for(max(each["sent"] for each in stopped[:2]) + 500)
        cluster.tell("stop")
        answers = cluster.gather("stopped", timeout=SECONDS)
        sent = {name: each["sent"] for name, each in zip(PEOPLE, answers, strict=True)}
        cluster.tell("finish", sent=sent)
        for name, each in zip(PEOPLE, cluster.gather("done", timeout=SECONDS), strict=True):
            assert each["taken"] == {**sent, name: 0}
        for each in report():
            assert 0 < each["held_max"] <= 4 * CoSettings().window
        cluster.tell("close")
        cluster.gather("closed", timeout=SECONDS)
        assert [cluster.stderr(index) for index in range(3)] == [""] * 3


# Another order for all


def test_to_another_order_and_back(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(3, order="co", protocol={"window": 4}) as (alice, bob, cathy):
            await alice.send(b"1")
            assert (await cathy.use("fifo")).recipe == "fifo"
            await alice.send(b"2")
            assert (await bob.use("co")).recipe == "co"
            receipt = await alice.send(b"3")
            await receipt.reached("acknowledged")
            assert await texts(bob, 3) == await texts(cathy, 3) == ["1", "2", "3"]

    run(main())


# From sockets to a verdict


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_live_run_is_certified(spark: Any, tmp_path: Path) -> None:
    """Real processes, loss, and everything that the order claims."""
    from inga.pipeline.jobs import check_trace
    from inga.runs.live import run
    from inga.trial.trial import Trial

    trace = tmp_path / "trace"
    result = run(Trial("co", members=5, messages=300, size=512, loss=0.05), trace)
    assert (result.violations, result.delivered) == (0, 6000)
    _, certificate = check_trace(str(trace), session=spark)
    assert {each.name: each.verdict for each in certificate.checks} == dict.fromkeys(
        "integrity complete fifo stamps causal atomic quiet views".split(), "pass"
    )
