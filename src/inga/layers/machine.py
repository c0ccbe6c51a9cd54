"""What the machines of CO and SCO have in common: events, buffers shared out by sender, and timers.

A machine is a protocol that orders, repairs and confirms by itself. It is given messages,
what other members say they have, and the time, and lists in `events` what that made happen; the layer around it is a
`machine_order`.
"""

from typing import Any, ClassVar, NamedTuple

from inga.model.compiled import mypyc_attr
from inga.session.alarms import Alarms
from inga.stack.budget import Supply

ALL = -1
"""In the place of a member: the alarm concerns the whole group."""


class Discarded(NamedTuple):
    """A message was not kept: "duplicate", "overrun" of its sender's share, or why it cannot be right."""

    reason: str
    message: Any


class GaveUp(NamedTuple):
    """Missing messages of a member were asked for in vain for too long."""

    src: int


@mypyc_attr(allow_interpreted_subclasses=True)
class Machine:
    """One member. Inputs take effect with the next call of `stages`."""

    handlers: ClassVar[list[str]]  # names of methods, by what an alarm is about; they are told which member

    def __init__(self, me: int, members: int, capacity: int, now: float) -> None:
        """`capacity` is in messages held of all senders."""
        self.me = me
        self.now = now
        self.events: list[Any] = []
        self.capacity = capacity  # C
        self.held = [0] * members  # messages of each sender
        self.held_in_all = 0
        # Senders that are gone: messages held of them are not counted against the buffers.
        self.uncounted: set[int] = set()
        self.is_behind = False  # our application does not keep up: nobody is told of free buffers
        self._answers = [Supply() for _ in range(members)]  # to each member, for what it asks
        self._alarms = Alarms()

    def tick(self, now: float) -> None:
        """Run the handlers of all alarms whose time has come."""
        self.now = now
        for kind, member in self._alarms.due(now):
            getattr(self, self.handlers[kind])(member)
        self.stages()

    def stages(self) -> None:
        """Draw all conclusions from what is known: called after every input, or after a batch of them."""
        raise NotImplementedError

    @property
    def wake(self) -> float | None:
        """When `tick` is wanted."""
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
        """Messages of a member that is gone may be held for an unknown time, so other senders do not wait for that room."""
        self.uncounted.add(src)
        self.held_in_all -= self.held[src]
        self.held[src] = 0
