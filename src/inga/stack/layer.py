"""The part a stack is made of: a state machine with a neighbour above and one below."""

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from inga.model.packet import Buffer, Packet
from inga.model.receipt import Receipt
from inga.model.view import View

if TYPE_CHECKING:
    from inga.stack.stack import Stack

Pass = Callable[[list[Packet]], None]


class Layer:
    """Passes everything on. A layer overrides what it cares for, and costs nothing elsewhere:
    the stack binds `above` and `below` past layers that do not override a direction.

    No clocks, no sockets, no chance but `self.stack.now` and `self.stack.rng`.
    """

    name: ClassVar[str] = "forward"
    id: ClassVar[int] = 0  # the `kind` of this layer's own packets; 0 = it has none
    requires: ClassVar[frozenset[str]] = frozenset()  # services needed from below
    provides: ClassVar[frozenset[str]] = frozenset()  # services added for above
    levels: ClassVar[tuple[str, ...]] = ()  # levels a receipt can reach by this layer
    transparent: ClassVar[bool] = False  # sees packets of every kind; only at the bottom
    grows: ClassVar[bool] = False  # knows `extend`, so that members can join while it works
    stays: ClassVar[bool] = False  # nobody but us notices it: kept when the recipe changes

    stack: "Stack"
    above: Pass
    below: Pass
    wake: float | None = None  # when tick() is wanted

    # What happens to packets

    def send(self, payloads: list[bytes], dst: int | None) -> Receipt:
        """From the application; the topmost layer that has it takes all sends."""
        raise NotImplementedError

    def down(self, batch: list[Packet]) -> None:
        """Data on its way out."""
        self.below(batch)

    def up(self, batch: list[Packet]) -> None:
        """Data on its way in."""
        self.above(batch)

    def read(self, batch: Iterable[tuple[Buffer, Hashable]]) -> list[Packet]:
        """What datagrams hold, where the wire is not the native one: the lowest layer of such a recipe has
        this, and passes what leaves to `stack.transmit`. What cannot be read is rejected, never raised."""
        raise NotImplementedError

    def store(self, packet: Packet) -> None:
        """A packet is to come up later: copy what it borrows, in the form in which it will be wanted. The
        topmost layer that has this is asked, by way of `stack.store`."""
        packet.keep()

    def control(self, packet: Packet) -> None:
        """A packet of this layer's own kind came in. It is invisible above."""

    def outside(self, packet: Packet, address: Hashable) -> None:
        """A packet of this layer's own kind came from somebody who is no member. What such a one says
        is refused, unless a layer knows better; `stack.answer` answers."""
        self.stack.reject("stranger", packet)

    def ride(self, packet: Packet) -> None:
        """Counters are about to leave on this packet: put in this layer's section, if any."""

    def note(self, packet: Packet) -> None:
        """Counters came in on a packet of another layer's kind: read this layer's section."""

    @property
    def waiting(self) -> int:
        """Packets it was given to send and has not passed on."""
        return 0

    # What happens otherwise

    def view(self, view: View) -> None:
        """A view is installed, in which everything is counted anew; in band, bottom to top."""

    def extend(self, view: View) -> None:
        """Members were appended to the view; nothing stops, all counts go on. Bottom to top."""

    def base(self) -> dict[str, int]:
        """What we have counted of our own so far: where a newcomer starts with us."""
        return {}

    def adopt(self, bases: dict[str, list[int]]) -> None:
        """We are the newcomer: start with each member where its `base` says."""

    def closed(self) -> None:
        """The view has ended, and everybody has everything that was sent in it."""

    def ahead(self, number: int) -> None:
        """A packet came of a view that is not installed here yet."""

    def taken(self, packets: list[Packet]) -> None:
        """The application has begun these; top to bottom."""

    def heard(self, lsn: int) -> None:
        """Some member has everything up to `lsn`; bottom to top."""

    def gone(self, member: int) -> None:
        """A member has left for good: nothing is to be expected of it any more; bottom to top."""

    def turn(self) -> None:
        """The turn ends: what waited for company leaves now; top to bottom."""

    def tick(self, now: float) -> None:
        """The time `wake` named has come."""

    def drain(self) -> list[Packet]:
        """Before removal: what is held, in order."""
        return []

    # What a driver wants to know, or do, whatever layer it is that provides it

    @property
    def settled(self) -> bool:
        """Whether nothing of ours waits here, and everybody ever heard of has all that left here."""
        return True

    def goodbye(self) -> None:
        """We leave: tell everybody, wait for nothing any more."""

    def fit(self, granted: int) -> None:
        """The kernel keeps so many charged bytes for a receiver: all senders together stay within."""

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        for bound in ("stack", "above", "below"):
            state.pop(bound, None)
        return state
