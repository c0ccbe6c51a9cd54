"""A member is killed: the others go on without it and agree on that, and it comes back under its name."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

import inga
from inga.runs.cluster import Cluster

from .helpers import SECONDS, FreePort, Place, Run, texts, until

pytestmark = pytest.mark.network

DETECT = 0.5
"""Seconds of silence that members are forgiven."""

PAUSE_MAX = DETECT + 10.0
"""Seconds for which nobody may be kept from sending: much more than it takes, as machines may be busy."""

LOSS = 0.1
"""Of all datagrams: what the one that is killed said last, some have and some have not."""

FOUNDERS = ["alice", "bob", "cathy"]


@pytest.fixture(autouse=True)
def talkers_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)


@pytest.mark.parametrize("order", ["vector", "co", "sco", "total"])
def test_one_fails_while_another_has_not_come_yet(
    run: Run, place: Place, group_name: str, order: str
) -> None:
    """Who never was there has no say in it; the others go on without it, and let it in once it comes."""

    async def main() -> None:
        where = {**place(members=3), "order": order, "detect": DETECT, "partition": "all"}
        async with (
            inga.join(group_name, "alice", **where) as alice,
            inga.join(group_name, "bob", **where) as bob,
        ):
            await asyncio.gather(alice.ready(2), bob.ready(2))
            await bob.send(b"one")
            await until(lambda: alice.stack.delivered or alice.stack.held)
            bob.carrier.close()
            await until(lambda: alice.view.failed == ("bob", "cathy"))
            await alice.send(b"two")
            async with inga.join(group_name, "cathy", **where) as cathy:
                await until(lambda: alice.view.joined == cathy.view.joined == ("cathy",))
                await alice.send(b"three")
                assert await texts(cathy, 1) == ["three"]
            await bob.close(linger=0)

    run(main())


class Talk:
    """Three members that talk, and one that waits to come back in the place of one of them."""

    def __init__(self, cluster: Cluster, victim: int) -> None:
        self.cluster = cluster
        self.victim = victim
        self.survivors = [index for index in range(3) if index != victim]

    def report(self, *members: int) -> list[dict[str, Any]]:
        for index in members:
            self.cluster.tell("report", index)
        others = frozenset(range(4)) - set(members)
        told = self.cluster.gather("report", timeout=SECONDS, without=others)
        return [told[index] for index in members]

    def wait_for(
        self, happened: Callable[[list[dict[str, Any]]], object], *members: int
    ) -> list[dict[str, Any]]:
        deadline = monotonic() + SECONDS
        while not happened(told := self.report(*members)):
            assert monotonic() < deadline, told
            sleep(0.01)
        return told

    def start(self) -> None:
        self.cluster.gather("ready", timeout=SECONDS, without=frozenset({3}))
        for index in range(3):
            self.cluster.tell("go", index)
        self.wait_for(lambda told: all(len(each["heard"]) >= 2 for each in told), 0, 1, 2)

    def kill(self) -> None:
        os.kill(self.cluster.processes[self.victim], signal.SIGKILL)


def configs(
    where: dict[str, Any], group: str, order: str, victim: int, address: str | None
) -> list[dict[str, Any]]:
    """Of the founders, and of the one that comes back."""
    common = {**where, "group": group, "order": order, "detect": DETECT}
    people = [*FOUNDERS, FOUNDERS[victim]]
    may_lose = order == "relay" and victim == 0  # what was sent to one that passes on nothing any more
    return [
        {
            "join": {**common, "name": name, "late": index == 3, "address": address if index == 3 else None},
            "may_lose": may_lose,
            "loss": LOSS,
        }
        for index, name in enumerate(people)
    ]


@pytest.mark.parametrize(
    ("order", "via", "victim"),
    [
        ("fifo", "udp", 1),
        ("vector", "udp", 0),
        ("vector", "udp", 2),
        ("vector", "unicast", 1),
        ("vector", "tcp", 0),
        ("vector", "tcp", 2),
        ("co", "udp", 0),
        ("sco", "udp", 1),
        ("relay", "udp", 0),
        ("relay", "udp", 2),
        ("total", "udp", 1),
    ],
)
def test_a_member_is_killed_and_comes_back(
    place: Place, free_port: FreePort, group_name: str, order: str, via: str, victim: int
) -> None:
    name = FOUNDERS[victim]
    others = [each for each in FOUNDERS if each != name]
    address = None if via == "udp" else f"127.0.0.1:{free_port()}"
    told = configs(place(via, 3), group_name, order, victim, address)
    with Cluster("talker:talk", told) as cluster:
        talk = Talk(cluster, victim)
        talk.start()
        talk.kill()

        # The others go on without it, and have heard the same of it.
        before = talk.wait_for(lambda told: all(len(each["views"]) > 1 for each in told), *talk.survivors)
        first = {"number": 1, "names": FOUNDERS, "joined": FOUNDERS, "left": [], "failed": []}
        second = {"number": 2, "names": others, "joined": [], "left": [], "failed": [name]}
        assert [each["views"] for each in before] == [[first, second]] * 2
        assert before[0]["heard"][name] == before[1]["heard"][name]
        after = talk.wait_for(
            lambda told: all(
                "2" in each["heard"][other] for each, other in zip(told, reversed(others), strict=True)
            ),
            *talk.survivors,
        )
        assert [each["here"] for each in after] == [others, others]

        # It comes back, and everybody hears everybody.
        cluster.tell("go", 3)
        everybody = (*talk.survivors, 3)
        ends = talk.wait_for(
            lambda told: (
                all("3" in each["heard"].get(name, {}) for each in told[:2])
                and told[2]["heard"].keys() >= set(others)
            ),
            *everybody,
        )
        third = {"number": 3, "names": [*others, name], "joined": [name], "left": [], "failed": []}
        assert [each["views"] for each in ends] == [[first, second, third], [first, second, third], [third]]
        assert all(each["heard"][name].keys() == {"1", "3"} for each in ends[:2])
        assert all(each["pause_max"] < PAUSE_MAX for each in ends[:2])
        for index in everybody:
            cluster.tell("close", index)
        cluster.gather("closed", timeout=SECONDS, without=frozenset({victim}))
        said = cluster.stderr(talk.survivors[0])
        assert f"{name} has failed: not heard for {DETECT:g} s" in said
