"""Measures how long it takes until processes that join at the same moment, without a list of members, are in one
view. The same processes found one group after the other, so that the start of Python is not measured."""

import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any, NamedTuple

from inga.lab.bench import SayProgress
from inga.lab.experiments import HOLDS, NOT_REPRODUCED, Claim
from inga.net.join import join
from inga.runs.cluster import Cluster
from inga.runs.live import free_ports
from inga.runs.worker import WorkerLink
from inga.trial.people import member_names

MEMBERS = 8
START_MAX = 2.0
TIMEOUT = 60.0


class MeasuredStarts(NamedTuple):
    """All rounds of an order, in seconds. `check`: the verdict of `inga check` on the last one."""

    order: str
    seconds: list[float]
    check: str

    @property
    def in_time(self) -> int:
        return sum(each <= START_MAX for each in self.seconds)

    def row(self) -> list[object]:
        times = [round(median(self.seconds), 3), round(max(self.seconds), 3)]
        return [self.order, len(self.seconds), self.in_time, *times, self.check]

    def claim(self) -> Claim:
        rounds = len(self.seconds)
        return Claim(
            id=f"{self.order}: start",
            statement=f"{self.order}: {MEMBERS} processes that start at once are one view within {START_MAX:g} s",
            published=f"{rounds} of {rounds}",
            measured=f"{self.in_time} of {rounds}; {max(self.seconds):.2f} s at most; check: {self.check}",
            verdict=HOLDS if self.in_time == rounds and self.check == "pass" else NOT_REPRODUCED,
        )


def measure_starts(
    traces: Mapping[str, Path], rounds: int, say: SayProgress
) -> Iterator[tuple[str, list[float]]]:
    """Yield the seconds of all rounds of each order, with the same processes throughout. The last round writes the order's trace."""
    if not traces:
        return
    people = member_names(MEMBERS)
    with Cluster("inga.lab.members.start:play", [{"name": name} for name in people]) as cluster:
        cluster.gather("here", timeout=TIMEOUT)
        for order, trace in traces.items():
            say(f"{order}: {MEMBERS} members start at once, {rounds} times")
            yield (
                order,
                [_round(cluster, order, trace if at == rounds else None) for at in range(1, rounds + 1)],
            )
        cluster.tell("over")


def _round(cluster: Cluster, order: str, trace: Path | None) -> float:
    port = free_ports(1, socket.SOCK_DGRAM)[0]
    how = {"group": f"start-{os.getpid()}-{port}", "via": f"udp://239.7.7.7:{port}", "order": order}
    begun = monotonic()
    cluster.tell(
        "join", join={**how, "interface": "127.0.0.1", "trace": None if trace is None else str(trace)}
    )
    together: float = max(line["at"] for line in cluster.gather("together", timeout=TIMEOUT))
    cluster.tell("greet")
    cluster.gather("greeted", timeout=TIMEOUT)
    cluster.tell("leave")
    cluster.gather("left", timeout=TIMEOUT)
    return together - begun


async def play(config: dict[str, Any], link: WorkerLink) -> None:
    """Run one process, which is a member of one group after the other."""
    link.say("here")
    while (told := await link.hear())["kind"] == "join":
        async with join(name=config["name"], **told["join"]) as group:
            await group.ready(at_least=MEMBERS)
            link.say("together", at=monotonic())
            await link.hear()
            await group.send(b"hello")
            senders = {group.me}
            async for delivery in group:
                senders.add(delivery.sender)
                if len(senders) == MEMBERS:
                    break
            link.say("greeted")
            await link.hear()
        link.say("left")
