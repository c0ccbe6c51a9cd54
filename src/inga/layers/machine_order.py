"""The common part of the layers of CO and SCO, whose machines order, repair and keep a window by themselves.

The layer turns packets into inputs of its machine, and the machine's events into packets, trace rows and receipts.
"""

from collections.abc import Collection, Sized
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from inga.layers.flow import share_of
from inga.layers.numbers import check_choice
from inga.layers.order import Order
from inga.layers.settings import settle
from inga.model.compiled import mypyc_attr
from inga.model.errors import Gap, WireError
from inga.model.packet import Packet
from inga.model.view import View
from inga.session.pressure import Unread, queued_in
from inga.stack.figures import Figures


class Driven(Protocol):
    """The interface of a machine, as far as this base class uses it."""

    now: float
    is_behind: bool
    window_bytes: float

    def tick(self, now: float) -> None: ...

    def stages(self) -> None: ...

    def leave_out(self, member: int) -> None: ...

    def caught_up(self) -> None: ...

    def counted(self, src: int) -> int: ...

    def kept(self, src: int) -> Collection[int]: ...

    def blockers(self) -> list[int]: ...

    def unaccepted_by(self, member: int) -> tuple[int, float]: ...

    def awaited(self, level: str) -> list[int]: ...

    @property
    def wake(self) -> float | None: ...

    @property
    def waiting(self) -> Sized: ...

    @property
    def unreleased(self) -> Sized: ...

    @property
    def is_open(self) -> bool: ...

    @property
    def round_trip(self) -> float: ...


M = TypeVar("M", bound=Driven)


@mypyc_attr(allow_interpreted_subclasses=True)
class MachineOrder(Order, Generic[M]):
    """Drives a machine, and implements the stack's hooks on behalf of it. A subclass reads packets and acts on events."""

    provides = frozenset({"reliable", "flow", "fifo", "causal"})
    no_gate = "what it has not ordered it has not accepted"
    delivers: ClassVar[tuple[str, ...]]  # levels at which messages can be delivered
    settings: ClassVar[type[Any]]
    machine: M  # the protocol, made anew for every view

    def __init__(
        self, *, deliver: str, machine: type[Any], echo: bool = False, queue_max: int = 16 << 20, **said: Any
    ) -> None:
        """`deliver` is the level at which messages are delivered. `machine` is the class of the protocol, which an experiment may
        replace. Above `queue_max` unread bytes we report no free buffers. All other arguments are fields of `settings`."""
        super().__init__(echo=echo)
        check_choice("deliver", deliver, self.delivers)
        self.deliver = deliver
        self.queue_max = queue_max
        self._kind = machine
        self._settings = settle(self.settings, self.name, said)

    def view(self, view: View) -> None:
        super().view(view)
        self._unread = Unread(self.queue_max)
        self.held = 0

    # What happens

    def tick(self, now: float) -> None:
        self.machine.tick(now)
        self._act()

    def control(self, packet: Packet) -> None:
        self.machine.now = self.stack.now
        try:
            reason = self._heed(packet)
        except WireError as error:
            reason = error.reason
        if reason is None:
            self.stack.meet(packet)
        else:
            self.stack.reject(reason, packet)
        self._run()

    def gone(self, member: int) -> None:
        self.machine.leave_out(member)
        self._run()

    def taken(self, packets: list[Packet]) -> None:
        if self.stack.trace is not None:
            for packet in packets:
                if packet.src != self.me:
                    self._took(packet)
        if self.stack.is_silenced:
            return  # in a closed view nothing is reported, and no waiting message is sent
        if self.machine.is_behind and not self._is_behind():
            self.machine.now = self.stack.now
            self.machine.caught_up()
            self._run()

    def fit(self, granted: int) -> None:
        self.machine.window_bytes = share_of(granted, len(self.stack.view))

    def _run(self) -> None:
        self.machine.now = self.stack.now
        self.machine.stages()
        self._act()

    def _heed(self, packet: Packet) -> str | None:
        """Process a control packet of this layer. Returns the reason to reject it, if there is one."""
        raise NotImplementedError

    def _act(self) -> None:
        """Carry out the machine's events."""
        raise NotImplementedError

    def _acted(self, released: list[Packet]) -> None:
        """After all events: pass up the packets that they released, and update whether our application keeps up."""
        if released:
            self.above(released)
        if not self.machine.is_behind:
            self.machine.is_behind = self._is_behind()
        self.stack.review()

    def _word(self, to: int | None, section: bytes) -> Packet:
        """Make a packet of this layer's own kind."""
        packet = Packet(self.me, self.stack.view.number, kind=self.id)
        packet.to, packet.ext = to, section
        return packet

    def _give_up(self, src: int) -> None:
        name, patience = self.stack.view.names[src], self._settings.patience
        if self.stack.views.forgives(patience):
            return
        self.stack.row("gave_up", src)
        self.stack.fail(Gap(f"{name} did not repair what was lost within {patience:g} s"))

    def _is_behind(self) -> bool:
        return self._unread.is_behind(queued_in(self.stack))

    # What can be asked

    def seen(self, member: int) -> int:
        return max([*self.machine.kept(member), self.machine.counted(member)])

    @property
    def wake(self) -> float | None:  # type: ignore[override]  # an attribute elsewhere
        return self.machine.wake

    @property
    def waiting(self) -> int:
        return len(self.machine.waiting)

    @property
    def is_open(self) -> bool:
        return not self.machine.waiting

    @property
    def is_passable(self) -> bool:
        return self.machine.is_open

    @property
    def outstanding(self) -> int:
        return len(self.machine.unreleased)

    def blockers(self) -> list[int]:
        return self.machine.blockers()

    def account(self, figures: Figures) -> None:
        figures.limits[self.name] = self._settings.window
        figures.round_trip = self.machine.round_trip or None
        for member in self.stack.peers:
            packets, since = self.machine.unaccepted_by(member)
            if packets:
                figures.lacks(member, packets, since)

    def awaited(self) -> list[int]:
        return self.machine.awaited(self.deliver)
