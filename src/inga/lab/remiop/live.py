"""Round trips between real processes, over a path that carries everything and over one that does not.

The narrow path is loopback in a network namespace of its own, with a token bucket before it: a rate and a queue. Where that is
not permitted, it is loopback with small receive buffers and readers that take their time over each datagram. The queue
holds a little more than 50 K: that much plain MIOP brought over in the paper.
"""

import json
import socket
import subprocess
import sys
from dataclasses import asdict, dataclass, replace
from math import inf
from time import monotonic, sleep

from inga.lab.bench import SayProgress
from inga.lab.remiop.trips import DATAGRAM, MEMBERS, Setup, Trip, packets, summed_up
from inga.model.errors import UsageError
from inga.runs.cluster import Cluster
from inga.runs.live import free_ports
from inga.runs.namespaces import is_permitted

HOST = "239.7.7.10"
TIMEOUT = 60.0
PAUSE = 0.02
"""Seconds between two round trips."""
QUIET = 0.25
"""Seconds in which nothing must move for a trial to be over."""
QUIET_MAX = 20.0

RATE = 150
"""Kbit/s of the narrow path: more than the slow rates of the experiment, less than the fast ones."""
QUEUE = 56 * 1024
"""Bytes that wait before it; what comes when it is full is lost."""
FRAME = 1514
"""Bytes of a full packet on the path, with the header of its link."""


@dataclass(frozen=True, slots=True)
class NetworkPath:
    """What is between the members, at most `rate` Kbit/s. `buffer` and `pause` (seconds for each datagram) are those of
    slow readers."""

    name: str
    rate: float | None = None
    prefix: tuple[str, ...] = ()
    buffer: int = 0
    pause: float = 0.0

    def patience(self, trial: Setup) -> float:
        """Seconds after which a message will not arrive any more."""
        seconds, rate = 2.0, self.rate or inf
        if trial.rmax is not None:
            rate = min(rate, trial.rmax / 2)
            seconds += 30.0  # for repairs
        return seconds + 1.25 * packets(trial.bytes) * 8 * FRAME / (1000 * rate)


FREE = NetworkPath("loopback, which loses nothing")
SLOW_READERS = NetworkPath(
    f"loopback with receive buffers of {QUEUE // 1024} KiB and readers that take {RATE} Kbit/s",
    rate=RATE,
    buffer=QUEUE // 2,  # the kernel doubles it
    pause=8 * FRAME / (1000 * RATE),
)


def narrow_path() -> NetworkPath:
    """The best that is permitted here."""
    shape = f"tc qdisc add dev lo root tbf rate {RATE}kbit burst {2 * FRAME} limit {QUEUE}"
    for options in (["-n"], ["-r", "-n"]):
        prefix = ("unshare", *options, "sh", "-c", f'ip link set lo up && {shape} && exec "$@"', "sh")
        if is_permitted((*prefix, "true"), "ip", "tc"):
            name = f"a network namespace with {RATE} Kbit/s and a queue of {QUEUE // 1024} KiB (token bucket on loopback)"
            return NetworkPath(name, rate=RATE, prefix=prefix)
    return SLOW_READERS


def measure(trials: list[Setup], path: NetworkPath, rounds: int, say: SayProgress) -> list[Trip]:
    """All trials, one after the other; here, or within the namespace of the path.

    Messages of one packet make ten times as many round trips, since each takes a moment only.
    """
    if not path.prefix:
        return measure_here(trials, path, rounds, say)
    order = {
        "path": asdict(replace(path, prefix=())),
        "trials": [asdict(each) for each in trials],
        "rounds": rounds,
    }
    with subprocess.Popen(
        [*path.prefix, sys.executable, "-m", "inga.lab.remiop.inside"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(order))
        process.stdin.close()
        trips = []
        for line in process.stdout:
            told = json.loads(line)
            if "say" in told:
                say(told["say"])
            elif "error" in told:
                raise UsageError(told["error"])
            else:
                trips.append(Trip(**{**told, "trial": Setup(**told["trial"])}))
    if len(trips) < len(trials):
        raise UsageError(f"the experiment ended early within {path.name}")
    return trips


def measure_here(trials: list[Setup], path: NetworkPath, rounds: int, say: SayProgress) -> list[Trip]:
    """The same where we are, by processes of our own."""
    # The one that asks reads at once: it is its path to the others that is narrow.
    slow = {"buffer": path.buffer, "pause": path.pause}
    configs = [
        {"me": me, "host": HOST, **(slow if me else {"buffer": 0, "pause": 0.0})}
        for me in range(len(MEMBERS))
    ]
    trips = []
    with Cluster("inga.lab.remiop.job:member", configs) as cluster:
        for trial in trials:
            say(
                f"{trial.name} Kbit/s, {trial.bytes} bytes"
                if trial.rmax
                else f"{trial.name}, {trial.bytes} bytes"
            )
            trips.append(_trial(cluster, trial, path, rounds))
        cluster.tell("close")
        cluster.gather("over", timeout=TIMEOUT)
    return trips


def _trial(cluster: Cluster, trial: Setup, path: NetworkPath, rounds: int) -> Trip:
    patience = path.patience(trial)
    cluster.tell(
        "trial",
        port=free_ports(1, socket.SOCK_DGRAM)[0],
        stack=trial.stack,
        protocol=trial.protocol,
        bytes=trial.bytes,
        patience=patience,
    )
    cluster.gather("ready", timeout=TIMEOUT)
    before = _quiet(cluster)
    ms: list[float | None] = []
    others = frozenset(range(1, len(MEMBERS)))
    for _ in range(rounds if trial.packets > 1 else 10 * rounds):
        cluster.tell("go", 0)
        ms.append(cluster.gather("done", timeout=TIMEOUT + patience, without=others)[0]["ms"])
        if ms[-1] is None:
            break
        # Our own answer waits for its turn; the next message does not wait for that.
        sleep(PAUSE + (2 * 8 * DATAGRAM / (500 * trial.rmax) if trial.rmax else 0.0))
    after = _quiet(cluster)
    cluster.tell("end")
    cluster.gather("left", timeout=TIMEOUT)
    grown = {name: after[name] - before[name] for name in before}
    lost = (len(MEMBERS) - 1) * grown["sent"] - grown["got"]
    return summed_up(trial, ms, lost, grown["nack"], grown["repair"])


def _quiet(cluster: Cluster) -> dict[str, int]:
    """What all members together have counted, once data and repairs have stopped moving."""
    last: dict[str, int] = {}
    until = monotonic() + QUIET_MAX
    while True:
        cluster.tell("count")
        counts = cluster.gather("counts", timeout=TIMEOUT)
        now = {name: sum(each[name] for each in counts) for name in ("sent", "got", "nack", "repair")}
        if now == last or monotonic() > until:
            return now
        last = now
        sleep(QUIET)
