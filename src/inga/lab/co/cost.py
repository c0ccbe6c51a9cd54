"""Processing time and delay of a message at the paper's load: each member sends 512 bytes every 100 ms.

Processing time is CPU time of the protocol for one message at one member, measured in this process over groups in
virtual time, so that sockets and scheduling are not part of it. Delay is measured between real processes over
loopback multicast, from the call of `send` to the delivery at level `acknowledged`.
"""

from random import Random
from statistics import fmean, median
from time import process_time

from inga.lab.co.played import PlayedGroup, R
from inga.runs.cluster import Cluster
from inga.runs.live import free_ports

INTERVAL = 0.1
REPEAT = 5


class Paced(PlayedGroup):
    """All members send at a steady rate, each with its own phase."""

    def __init__(self, members: int, messages: int) -> None:
        super().__init__(members, resend=10 * R, poll=10 * R)
        self.cpu = 0.0
        random = Random(members)
        self._due = [[INTERVAL * (k + random.random()) for k in range(messages)] for _ in range(members)]
        for member, times in enumerate(self._due):
            for at in times:
                self.at(at, self.turn, member)

    def run(self) -> None:
        started = process_time()
        super().run()
        self.cpu = process_time() - started

    def wants_to_send(self, member: int) -> bool:
        if self._due[member] and self._due[member][0] <= self.now:
            del self._due[member][0]
            return True
        return False


def processing(members: int, messages: int) -> float:
    """Return the seconds of CPU for one message at one member, confirmations included: the median of some runs."""

    def once() -> float:
        group = Paced(members, messages)
        group.run()
        return group.cpu / (messages * members * members)

    return median(once() for _ in range(REPEAT))


def delay(members: int, messages: int) -> dict[str, float]:
    """Measure real processes: mean and median of the seconds from send to delivery, and CPU for one message."""
    port = free_ports(1, 2)[0]
    config = {
        "members": [f"member{i}" for i in range(members)],
        "via": f"udp://239.7.7.7:{port}",
        "interface": "lo",
        "messages": messages,
        "interval": INTERVAL,
    }
    with Cluster("inga.lab.co.job:paced", [{**config, "me": me} for me in range(members)]) as cluster:
        cluster.gather("ready", timeout=30)
        cluster.tell("go")
        ends = cluster.gather("done", timeout=30 + messages * INTERVAL)
        cluster.tell("close")
    delays = [each for end in ends for each in end["delays"]]
    cpu = sum(end["cpu"] for end in ends) / (messages * members * members)
    return {"mean": fmean(delays), "median": median(delays), "cpu": cpu}
