"""Round trips between real processes, over a path that carries everything and over one that does not.

The narrow path is loopback in a network namespace of its own, behind a token bucket: a rate and a queue. If that is
not permitted, it is loopback with small receive buffers and readers that pause at each datagram. The queue
holds a little more than 50 K, the largest message that plain MIOP completed in the paper.
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
"""Multicast addresses; concurrent groups have different ones."""
TIMEOUT = 60.0
PAUSE = 0.02
"""Seconds between two round trips."""
QUIET = 0.25
"""A trial is over when no counter has changed for so many seconds."""
QUIET_MAX = 20.0

RATE = 150
"""Kbit/s of the narrow path: more than the slow rates of the experiment, less than the fast ones."""
QUEUE = 56 * 1024
"""Bytes of its queue; datagrams that arrive when it is full are lost."""
FRAME = 1514
"""Bytes of a full packet on the path, with the header of its link."""


@dataclass(frozen=True, slots=True)
class NetworkPath:
    """The network between the members, which carries at most `rate` Kbit/s, and the address of their group. `buffer` and `pause`
    (seconds per datagram) are those of slow readers."""

    name: str
    rate: float | None = None
    prefix: tuple[str, ...] = ()
    buffer: int = 0
    pause: float = 0.0
    host: str = f"{NETWORK}.{FIRST_HOST}"

    def patience(self, trial: Setup) -> float:
        """Return the seconds after which a message counts as lost."""
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
    """Return the best narrow path that is permitted on this machine."""
    shape = f"tc qdisc add dev lo root tbf rate {RATE}kbit burst {2 * FRAME} limit {QUEUE}"
    for options in (["-n"], ["-r", "-n"]):
        prefix = ("unshare", *options, "sh", "-c", f'ip link set lo up && {shape} && exec "$@"', "sh")
        if is_permitted((*prefix, "true"), "ip", "tc"):
            name = f"a network namespace with {RATE} Kbit/s and a queue of {QUEUE // 1024} KiB (token bucket on loopback)"
            return NetworkPath(name, rate=RATE, prefix=prefix)
    return SLOW_READERS


ONE_PACKET = 30
"""The number of round trips of one packet, as a multiple of those of larger messages: of these the shortest is judged, by
fractions of a millisecond."""


def measure(trials: list[Setup], path: NetworkPath, rounds: int, say: SayProgress) -> list[Trip]:
    """Measure all trials: over a path that loses nothing one after the other, over a narrow one side by side.

    Messages of one packet make `ONE_PACKET` times as many round trips, since each takes only a moment.
    """
    if path.rate is None:
        return measure_here(trials, path, rounds, say)
    with SideBySide(trials, path, rounds) as trips:
        return trips.gather(say)


class SideBySide:
    """Trials over a narrow path in processes of their own: those of each stack and rate run concurrently with the others and with us.

    Nearly all the time is spent waiting for the path, and each stack and rate has one of its own, so the results are the same as
    if the trials ran one after the other, only sooner. Use as a context manager.
    """

    def __init__(self, trials: list[Setup], path: NetworkPath, rounds: int) -> None:
        self._trials = trials
        self._path = path
        self._rounds = rounds
        self._found: dict[Setup, Trip] = {}
        self._selector = DefaultSelector()  # of the output of each process
        self._silent: set[object] = set()  # outputs of processes that have not begun yet
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
        """Wait until each process has begun its first trial: from then on it waits for its packets, and does not disturb other
        measurements."""
        while self._silent:
            self._hear(say)

    def gather(self, say: SayProgress) -> list[Trip]:
        """Return the results, in the order of the trials."""
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
    """Start a process that measures these trials one after the other, within the namespace of the path if it has one."""
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
    with suppress(BrokenPipeError):  # if it has ended, `gather` misses its results
        process.stdin.write(json.dumps(order).encode())
        process.stdin.close()
    return process


def measure_here(trials: list[Setup], path: NetworkPath, rounds: int, say: SayProgress) -> list[Trip]:
    """Measure trials in the namespace of this process, by member processes of its own."""
    # The asking member reads at once: only the path from it to the others is narrow.
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
        # The asking member's own answer may still wait for its sending rate; it must not delay the next message.
        sleep(PAUSE + (2 * 8 * DATAGRAM / (500 * trial.rmax) if trial.rmax else 0.0))
    after = _quiet(cluster)
    cluster.tell("end")
    cluster.gather("left", timeout=TIMEOUT)
    grown = {name: after[name] - before[name] for name in before}
    lost = (len(MEMBERS) - 1) * grown["sent"] - grown["got"]
    return summed_up(trial, ms, lost, grown["nack"], grown["repair"])


def _quiet(cluster: Cluster) -> dict[str, int]:
    """Return the sums of all members' counters, once these have stopped growing."""
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
