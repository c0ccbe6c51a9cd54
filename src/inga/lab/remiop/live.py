"""Round trips between real processes, over a path that carries everything and over one that does not.

The narrow path is loopback in a network namespace of its own, with a token bucket before it: a rate and a queue. Where that is
not permitted, it is loopback with small receive buffers and readers that take their time over each datagram. The queue
holds a little more than 50 K: that much plain MIOP brought over in the paper.
"""

import json
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from math import inf
from selectors import EVENT_READ, DefaultSelector
from time import monotonic, sleep
from types import TracebackType
from typing import Any, Self

from inga.lab.bench import SayProgress
from inga.lab.remiop.trips import DATAGRAM, MEMBERS, Setup, Trip, packets, summed_up
from inga.model.errors import UsageError
from inga.runs.cluster import Cluster
from inga.runs.live import free_ports
from inga.runs.namespaces import is_permitted

NETWORK, FIRST_HOST = "239.7.7", 10
"""Multicast addresses; groups beside each other have different ones."""
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
    """What is between the members, at most `rate` Kbit/s, and the address of their group. `buffer` and `pause` (seconds for each datagram) are those of
    slow readers."""

    name: str
    rate: float | None = None
    prefix: tuple[str, ...] = ()
    buffer: int = 0
    pause: float = 0.0
    host: str = f"{NETWORK}.{FIRST_HOST}"

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


ONE_PACKET = 30
"""Times as many round trips of one packet as of others: of these the shortest is judged, by fractions of a millisecond."""


def measure(trials: list[Setup], path: NetworkPath, rounds: int, say: SayProgress) -> list[Trip]:
    """All trials, in their order; over a path that loses nothing one after the other, over a narrow one side by side.

    Messages of one packet make ten times as many round trips, since each takes a moment only.
    """
    if path.rate is None:
        return measure_here(trials, path, rounds, say)
    with SideBySide(trials, path, rounds) as trips:
        return trips.gather(say)


class SideBySide:
    """Trials over a narrow path, those of each stack and rate beside those of the others, while we do something else.

    Nearly all the time is spent waiting for the path, and each stack and rate has one of its own: what is measured is what would be measured
    one after the other, only sooner. Use as a context manager.
    """

    def __init__(self, trials: list[Setup], path: NetworkPath, rounds: int) -> None:
        self._trials = trials
        self._path = path
        self._rounds = rounds
        self._found: dict[Setup, Trip] = {}
        self._selector = DefaultSelector()  # of what each process says
        self._silent: set[object] = set()  # of those that have not begun yet
        self._open = ExitStack()

    def __enter__(self) -> Self:
        curves: dict[str, list[Setup]] = {}
        for trial in self._trials:
            curves.setdefault(trial.name, []).append(trial)
        with ExitStack() as opened:
            opened.enter_context(self._selector)
            for number, curve in enumerate(curves.values(), FIRST_HOST + 1):
                path = replace(self._path, host=f"{NETWORK}.{number}")
                process = opened.enter_context(_start_inside(curve, path, self._rounds))
                assert process.stdout is not None
                self._selector.register(process.stdout, EVENT_READ, bytearray())
                self._silent.add(process.stdout)
            self._open = opened.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._open.close()

    def wait_until_begun(self, say: SayProgress) -> None:
        """Until each has begun with its first trial: from there on it waits for its packets, and disturbs nobody."""
        while self._silent:
            self._hear(say)

    def gather(self, say: SayProgress) -> list[Trip]:
        """What was found, in the order of the trials."""
        while self._selector.get_map():
            self._hear(say)
        if len(self._found) < len(self._trials):
            raise UsageError(f"the experiment ended early within {self._path.name}")
        return [self._found[trial] for trial in self._trials]

    def _hear(self, say: SayProgress) -> None:
        for key, _ in self._selector.select():
            self._silent.discard(key.fileobj)
            data = key.fileobj.read1(1 << 16)  # type: ignore[union-attr]
            if not data:
                self._selector.unregister(key.fileobj)
            *lines, rest = (key.data + data).split(b"\n")
            key.data[:] = rest
            for line in lines:
                self._take(json.loads(line), say)

    def _take(self, told: dict[str, Any], say: SayProgress) -> None:
        if "say" in told:
            say(told["say"])
        elif "error" in told:
            raise UsageError(told["error"])
        else:
            trip = Trip(**{**told, "trial": Setup(**told["trial"])})
            self._found[trip.trial] = trip


def _start_inside(trials: list[Setup], path: NetworkPath, rounds: int) -> "subprocess.Popen[bytes]":
    """A process that measures these one after the other, within the namespace of the path if it has one."""
    process = subprocess.Popen(
        [*path.prefix, sys.executable, "-m", "inga.lab.remiop.inside"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    order = {
        "path": asdict(replace(path, prefix=())),
        "trials": [asdict(each) for each in trials],
        "rounds": rounds,
    }
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # that it has ended is noticed where its answers are missing
        process.stdin.write(json.dumps(order).encode())
        process.stdin.close()
    return process


def measure_here(trials: list[Setup], path: NetworkPath, rounds: int, say: SayProgress) -> list[Trip]:
    """The same where we are, by processes of our own."""
    # The one that asks reads at once: it is its path to the others that is narrow.
    slow = {"buffer": path.buffer, "pause": path.pause}
    configs = [
        {"me": me, "host": path.host, **(slow if me else {"buffer": 0, "pause": 0.0})}
        for me in range(len(MEMBERS))
    ]
    with Cluster("inga.lab.remiop.job:member", configs) as cluster:
        trips = [_trial(cluster, trial, path, rounds, say) for trial in trials]
        cluster.tell("close")
        cluster.gather("over", timeout=TIMEOUT)
    return trips


def _trial(cluster: Cluster, trial: Setup, path: NetworkPath, rounds: int, say: SayProgress) -> Trip:
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
    rate = " Kbit/s" if trial.rmax else ""
    say(f"{trial.name}{rate}, {trial.bytes} bytes")
    before = _quiet(cluster)
    ms: list[float | None] = []
    others = frozenset(range(1, len(MEMBERS)))
    for _ in range(rounds if trial.packets > 1 else ONE_PACKET * rounds):
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
