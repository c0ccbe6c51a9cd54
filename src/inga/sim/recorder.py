"""A run in virtual time, recorded as a schedule: which message reached which site, in which order.

Stacks know packets, schedules know messages. The trace rows that order layers write connect the two: a
`send` row says that a bundle of so many messages became a packet, a `receive` row that a copy of that packet has arrived.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any

from inga.model.steps import GROUP, Trace
from inga.sim.schedule import Arrive, Event, Send, Take


class Recorder:
    """Collects the events of one run, over all its sites."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._unpacked: dict[int, deque[int]] = {}  # per site, messages sent that are in no packet yet
        self._packed: dict[tuple[int, int], list[int]] = {}  # messages of each packet, by sender and number
        self._arrived: set[tuple[int, int]] = set()  # (message, site)

    def send(self, site: int, message: int, dst: int | None) -> None:
        self.events.append(Send(site, message, dst))
        self._unpacked.setdefault(site, deque()).append(message)

    def take(self, site: int, message: int) -> None:
        self.events.append(Take(site, message))

    def packed(self, site: int, seq: int, messages: int) -> None:
        waiting = self._unpacked[site]
        self._packed[site, seq] = [waiting.popleft() for _ in range(messages)]

    def arrived(self, site: int, src: int, seq: int) -> None:
        for message in self._packed.get((src, seq), ()):
            key = (message, site)
            self.events.append(Arrive(message, site, key in self._arrived))
            self._arrived.add(key)


class RecordingTrace:
    """Takes the place of a site's trace: informs the recorder, and passes rows on to the trace."""

    def __init__(self, recorder: Recorder, site: int, trace: Trace | None) -> None:
        self.full = True
        self._recorder = recorder
        self._site = site
        self._trace = trace
        self._passes_all = trace is not None and trace.full

    def row(
        self,
        step: str,
        now: float,
        view: int,
        src: int | None = None,
        seq: int | None = None,
        **columns: Any,
    ) -> None:
        if src is not None and seq is not None:
            if step == "send":
                self._recorder.packed(self._site, seq, columns["n"])
            elif step == "receive":
                self._recorder.arrived(self._site, src, seq)
        if self._trace is not None and (self._passes_all or step in LEAN):
            self._trace.row(step, now, view, src, seq, **columns)

    def grow(self, n: int) -> None:
        if self._trace is not None:
            self._trace.grow(n)

    def cut(self, view: int, seqs: Sequence[int] | int, indices: Sequence[int] | None = None) -> None:
        if self._trace is not None:
            self._trace.cut(view, seqs, indices)


LEAN = frozenset("send deliver take accept causal".split()) | frozenset(GROUP)
