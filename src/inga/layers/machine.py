"""The common part of the machines of CO and SCO: events, buffers accounted for by sender, and timers.

A machine is a protocol that orders, repairs and confirms by itself. Its inputs are messages, the reports of other
members, and the time; it lists in `events` what happened as a consequence. The layer that drives it is a `MachineOrder`
(`machine_order`).
"""

from typing import Any, ClassVar, NamedTuple

from inga.model.compiled import mypyc_attr
from inga.session.alarms import Alarms
from inga.stack.budget import Supply

ALL = -1
"""In place of a member's index, in the key of an alarm: it concerns the whole group."""


class Discarded(NamedTuple):
    """A message was not kept. `reason` is "duplicate", "overrun" (its sender's share of the buffers is full), or
    another reason to drop it."""

    reason: str
    message: Any


class GaveUp(NamedTuple):
    """Missing messages of a member were requested in vain for too long."""

    src: int


@mypyc_attr(allow_interpreted_subclasses=True)
class Machine:
    """The protocol at one member. Inputs take effect with the next call of `stages`."""

    handlers: ClassVar[list[str]]  # names of methods by kind of alarm; each gets the member

    def __init__(self, me: int, members: int, capacity: int, now: float) -> None:
        """`capacity` is the number of messages that can be held of all senders together."""
        self.me = me
        self.now = now
        self.events: list[Any] = []
        self.capacity = capacity  # C
        self.held = [0] * members  # messages held of each sender
        self.held_in_all = 0
        # Departed senders: messages held of them are not counted against the buffers.
        self.uncounted: set[int] = set()
        self.is_behind = False  # our application does not keep up: we report no free buffers
        self._answers = [Supply() for _ in range(members)]  # budgets for answers to each member
        self._alarms = Alarms()

    def tick(self, now: float) -> None:
        """Run the handlers of all alarms that are due."""
        self.now = now
        for kind, member in self._alarms.due(now):
            getattr(self, self.handlers[kind])(member)
        self.stages()

    def stages(self) -> None:
        """Draw all conclusions from the state. Called after every input, or after a batch of them."""
        raise NotImplementedError

    @property
    def wake(self) -> float | None:
        """The time at which `tick` should be called next; None: no alarm is set."""
        return self._alarms.next

    @property
    def buffers_free(self) -> int:
        return 0 if self.is_behind else max(0, self.capacity - self.held_in_all)

    def _hold(self, src: int) -> None:
        if src not in self.uncounted:
            self.held[src] += 1
            self.held_in_all += 1

    def _let_go(self, src: int) -> None:
        if src not in self.uncounted:
            self.held[src] -= 1
            self.held_in_all -= 1

    def _stop_counting(self, src: int) -> None:
        """Count no messages of a departed member any more. They may be held for an unknown time, and other senders must not
        wait for that room."""
        self.uncounted.add(src)
        self.held_in_all -= self.held[src]
        self.held[src] = 0
