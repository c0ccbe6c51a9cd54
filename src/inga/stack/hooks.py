"""The hooks that a layer may have besides those of `Layer`: small protocols, each for one purpose.

The stack looks for them by name, in the table `HOOKS`, once when it binds its layers: a layer that has the name
has the hook. A layer need not derive from these classes; they say what a hook takes, returns and means.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from inga.model.packet import Buffer, Packet, Runs
from inga.model.receipt import Receipt
from inga.model.steps import Book
from inga.model.view import View
from inga.stack.figures import Figures
from inga.stack.layer import Layer

TOP_DOWN, BOTTOM_UP = False, True

Holdings = list[list[int]]
"""Which packets a layer has, or is to get: rows of three numbers, see `layers.lending`."""

SPREAD_MAX = 1 << 15
"""The largest distance in sequence numbers between the slowest and the fastest member: more than any window admits."""

HOOKS = {
    "taken": TOP_DOWN,
    "turn": TOP_DOWN,
    "tick": TOP_DOWN,
    "gone": BOTTOM_UP,
    "bereft": BOTTOM_UP,
    "holdings": TOP_DOWN,
    "restore": TOP_DOWN,
    "seen": TOP_DOWN,
    "forgo": BOTTOM_UP,
    "released": TOP_DOWN,
    "holds": TOP_DOWN,
    "conform": BOTTOM_UP,
    "late": TOP_DOWN,
    "send": TOP_DOWN,
    "flush": TOP_DOWN,
    "drain": TOP_DOWN,
    "store": TOP_DOWN,
    "read": TOP_DOWN,
    "ride": BOTTOM_UP,
    "note": BOTTOM_UP,
    "acknowledged": BOTTOM_UP,
    "is_open": TOP_DOWN,
    "held": TOP_DOWN,
    "begun": TOP_DOWN,
    "fit": TOP_DOWN,
    "settled": TOP_DOWN,
    "extend": BOTTOM_UP,
    "base": BOTTOM_UP,
    "adopt": BOTTOM_UP,
    "closing": TOP_DOWN,
    "closed": TOP_DOWN,
    "abandoned": TOP_DOWN,
    "inherit": TOP_DOWN,
    "lacks": TOP_DOWN,
    "hand_over": TOP_DOWN,
    "take_over": TOP_DOWN,
    "complete": TOP_DOWN,
    "incomplete": TOP_DOWN,
    "sent": TOP_DOWN,
    "gate": TOP_DOWN,
    "overhead": TOP_DOWN,
    "outside": TOP_DOWN,
    "earlier": TOP_DOWN,
    "ahead": TOP_DOWN,
    "propose": TOP_DOWN,
    "goodbye": TOP_DOWN,
    "tally": TOP_DOWN,
    "reviewed": TOP_DOWN,
    "introduce": TOP_DOWN,
    "introduced": TOP_DOWN,
    "delay": TOP_DOWN,
    "record": TOP_DOWN,
    "copies": TOP_DOWN,
    "recall": TOP_DOWN,
    "packet_max": TOP_DOWN,
    "account": TOP_DOWN,
}
"""Every hook that the stack looks up by name (it calls all of them, or the first), and the order in which it asks the layers."""


class Entrance(Protocol):
    """Takes messages from the application. If several layers have this hook, the topmost is used."""

    def send(self, payloads: list[bytes], dst: int | None) -> Receipt: ...

    def flush(self) -> None:
        """Send messages that wait for more messages, or ask for acknowledgements that receivers delay."""


class Wire(Protocol):
    """A wire format other than the native one. The lowest layer of such a recipe reads datagrams and passes outgoing ones
    to `stack.transmit`."""

    def read(self, batch: Iterable[tuple[Buffer, Hashable]]) -> list[Packet]:
        """The packets in these datagrams. Invalid ones are counted as rejected; nothing is raised."""


class Cutting(Protocol):
    """Cuts our packets into smaller ones of another wire format."""

    def packet_max(self) -> int:
        """The octets of our packet that one of those carries."""


class Store(Protocol):
    """Brings a packet that is held for later delivery into the form in which it is kept. `stack.store` asks the topmost layer."""

    def store(self, packet: Packet) -> None: ...


class Rider(Protocol):
    """Has counters that are piggybacked on packets of other layers."""

    def ride(self, packet: Packet) -> None:
        """Write this layer's section into an outgoing packet that carries counters."""

    def note(self, packet: Packet) -> None:
        """Read this layer's section of a packet that arrived and is of another layer's kind."""


class Listener(Protocol):
    """Is notified of acknowledgements."""

    def acknowledged(self, lsn: int) -> None:
        """Some member has all our packets up to `lsn`."""


class Window(Protocol):
    """May hold back outgoing packets. It calls `stack.review()` whenever one of its answers may have changed."""

    is_open: bool  # more may be sent
    is_passable: bool  # a packet passed down now leaves at once; else a bundle can wait for more
    waiting: int  # packets it was given and has not passed on
    outstanding: int  # how much is in flight, in the unit of its window

    def blockers(self) -> Iterable[int]:
        """The members that keep it closed; none if the reason is that our own application does not read."""


class Beginner(Protocol):
    """Can make progress without a delivery: calls of objects begin."""

    begun: int  # object calls that have begun here in this view


class Holder(Protocol):
    """Holds packets that arrived before others which have to be delivered first."""

    held: int  # bytes that wait here and are not delivered yet

    def awaited(self) -> Iterable[int]:
        """The members whose packets or acknowledgements the held packets wait for."""


class Fitting(Protocol):
    """Has a window in bytes."""

    def fit(self, granted: int) -> None:
        """The kernel buffers up to `granted` bytes for a receiver, as it counts them: size the window so that all senders together
        stay within that."""


class Settling(Protocol):
    """Knows whether we may leave."""

    settled: bool  # no packet of ours waits here, and every member that was met has all that left here


class Growing(Protocol):
    """Lets members join without restarting its counts, as in the lecture's groups."""

    def extend(self, view: View) -> None:
        """Members were appended to the view; nothing stops, all counts go on."""

    def base(self) -> dict[str, int]:
        """Our own counts so far: a newcomer starts from these when it counts our packets."""

    def adopt(self, bases: dict[str, list[int]]) -> None:
        """We are the newcomer: start to count each member's packets from its `base`."""


class Bereft(Protocol):
    """Waits for packets of others."""

    def bereft(self, member: int) -> None:
        """A member is gone, and no other member will lend its last packets: those missing will never arrive."""


class Lender(Protocol):
    """Numbers packets, and keeps those of others until all members have them, so that they can be lent when their
    sender is gone. The session carries its numbers between members and does not interpret them."""

    def count(self) -> int:
        """The number of packets that we have sent."""

    def come(self, counts: list[int]) -> bool:
        """Whether so many packets of each member that is still present have arrived."""

    def holdings(self, member: int) -> Holdings:
        """Which packets we have of a member that is gone."""

    def deal(self, held: Mapping[int, Holdings]) -> dict[int, Holdings]:
        """For each member, which packets it lacks and which other member lends them. Raises WireError if such holdings are
        impossible."""

    def lacking(self, member: int, dealt: Holdings) -> dict[int, Runs]:
        """Which of the packets dealt to us have not arrived yet, by the member that has them."""

    def lend(self, member: int, runs: Runs, to: int) -> list[Packet]:
        """Packets of a member that is gone, as they arrived, for member `to`, which lacks them. A layer that carries the session's
        control messages sends them itself, and returns none."""

    def bereft(self, member: int) -> None:
        """All packets that any member has of a member that is gone have arrived: those missing will never arrive."""


class MessageCounts(NamedTuple):
    """Counts of application messages in the view in force."""

    said: list[int]  # our messages to each member
    whole: int  # those of them that were for all members
    heard: list[int]  # messages of each member that were delivered here


class Tallying(Protocol):
    """Counts application messages, of which a packet has one or more."""

    def tally(self) -> MessageCounts:
        """The counts so far."""


class Accounting(Protocol):
    """Has figures for the operators of a group."""

    def account(self, figures: Figures) -> None:
        """Fill in what this layer keeps anyway. Called for a snapshot, and when a view ends."""


class Seeing(Protocol):
    """Knows packets by the sequence numbers of the order."""

    def seen(self, member: int) -> int:
        """The highest number of the packets of a member that is gone which have arrived here, released or not."""


class Restoring(Protocol):
    """Changes the bodies of packets on their way up."""

    def restore(self, packet: Packet) -> None:
        """Undo the changes, so that the packet is as it arrived."""


class Forgoing(Protocol):
    """May hold packets that wait for packets which no member has, since their sender is gone."""

    def forgo(self) -> None:
        """All packets that any member has have arrived: no longer hold back packets of members that are still present."""


class Conforming(Protocol):
    """May hold packets of departed members that other members have released, since they wait for packets which no member has.
    So the members agree on how many of them are delivered."""

    def released(self, member: int) -> int:
        """The highest number of the packets of a member that is gone which were released here."""

    def holds(self) -> bool:
        """Whether packets are held that may have to be released or dropped before the view ends."""

    def conform(self, most: list[int]) -> None:
        """Some member has released the packets of each departed member up to these numbers, after `forgo`: release the same
        here, and drop the rest."""


class Introduced(Protocol):
    """Needs to know something about a member before its first packet."""

    def introduce(self) -> dict[str, int]:
        """What other members have to know about us; sent in our greetings."""

    def introduced(self, member: int, what: dict[str, int]) -> None:
        """Take what another member has sent about itself in its greeting."""


class Closing(Protocol):
    """Has work to finish with the view."""

    def closing(self) -> None:
        """The view is about to end: begin nothing more, and end what is in progress."""

    def closed(self) -> None:
        """The view has ended, and every member that stays has all that was sent in it."""

    def abandoned(self) -> None:
        """We are no longer a member of the view, and what was in progress is lost for us."""


class Inheriting(Protocol):
    """Has state that outlives the view."""

    def inherit(self, before: Layer) -> None:
        """Take over the state of the layer of the same name in the view before; the hook `view` is called next."""


class Lack(NamedTuple):
    """A state that we lack as a newcomer, and need before we can begin."""

    holders: list[int]  # members of the view before, which have it
    others: list[int]  # members that have joined with us, and need it, too
    since: int  # the number of the latest view in which we had one ourselves; 0: none


class Stateful(Protocol):
    """Begins a view with a state that newcomers do not have."""

    def lacks(self) -> dict[str, Lack]:
        """The states, by topic, that we lack as a newcomer."""

    def hand_over(self, topic: str) -> bytes:
        """The state of that topic, as we had it when the view began or have received it since. Raises UsageError if there is no
        such topic."""

    def take_over(self, topic: str, state: bytes | None) -> None:
        """Take a state that we lacked. None: no member has it any more, and we go on with what we have ourselves."""

    def complete(self, member: int) -> None:
        """A newcomer has all states now, or is gone."""

    def incomplete(self) -> set[int]:
        """The newcomers that may still lack a state, if we keep it for them."""


class OrderKeeping(Protocol):
    """The order of a recipe: counts sent and released packets.

    With `flags = True`, its `taken` marks each packet that is concurrent with a known one, and sends nothing. So the
    stack calls it even after our goodbye."""

    def sent(self) -> list[int]:
        """How many packets of ours each member has to receive, so far."""

    def has(self, counts: list[int]) -> bool:
        """Whether so many packets of each member were released here."""

    def gate(self, is_open: bool) -> None:
        """Open: hold nothing here, deliver on arrival, and go on counting. Local, and harmless to others."""

    def overhead(self, members: int) -> int:
        """The bytes that it adds to a packet besides its stamp: an upper bound where one is known beforehand, else an estimate."""


class Recalling(Protocol):
    """Keeps the newest packet of each member, for an error that has to show it."""

    def recall(self, member: int, seq: int) -> Packet | None:
        """That packet, if it is the newest of its sender that the application has taken."""


class Recorded(Protocol):
    """Writes rows for other processes of a trace than the member itself, such as copies of objects."""

    def record(self, book: Book) -> None:
        """From now on, write rows to the traces of their processes."""

    def copies(self, view: View) -> list[tuple[int, str]]:
        """Those processes in a view: the member of each, and its name. Rows number them after the members."""


class Replaceable(Protocol):
    """Can be replaced while the group runs."""

    def drain(self) -> list[Packet]:
        """Return the held packets, in order; the layer is about to be removed."""


class Doorkeeper(Protocol):
    """The session: talks to processes that are not members, changes views, says goodbye."""

    changes_views: bool  # members may join and fail; if not, the members are those of the first view, and may only leave it

    def outside(self, packet: Packet, address: Hashable) -> None:
        """A packet of this layer's own kind has arrived that belongs to no view."""

    def earlier(self, cuts: Sequence[int]) -> None:
        """Remember how much each process had sent in views before our first, for members that join after us."""

    def ahead(self, number: int) -> None:
        """A packet has arrived of a view that is not installed here yet."""

    def late(self, view: View, source: int, address: Hashable) -> None:
        """A packet has arrived of a view that is closed here."""

    def propose(self, recipe: str, done: "object") -> None:
        """Ask for another recipe in the whole group."""

    def goodbye(self) -> None:
        """We leave: repeat our goodbye until all members know."""

    def reviewed(self, is_open: bool) -> None:
        """All windows are open again, or one has closed."""
