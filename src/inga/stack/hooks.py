"""What a layer may have besides the hooks of `Layer`: small protocols, each for one purpose.

The stack looks for them by name when it binds its layers, once, by the table `HOOKS`: a layer that has the name
has the hook. Deriving from these classes is not needed; they say what a hook takes, gives and means.
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
"""What a layer says of packets that it has, or of those that it is to get: rows of three numbers."""

SPREAD_MAX = 1 << 15
"""Numbers between the slowest and the fastest member: more than any window lets a sender be ahead."""

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
"""Every hook of which the stack calls all, or the first, and in which order it asks the layers."""


class Entrance(Protocol):
    """Takes what the application sends; the topmost that can is the one that does."""

    def send(self, payloads: list[bytes], dst: int | None) -> Receipt: ...

    def flush(self) -> None:
        """Let go of what was sent and waits for company, or ask for acknowledgements that do."""


class Wire(Protocol):
    """A wire that is not the native one. The lowest layer of such a recipe reads datagrams and passes what leaves
    to `stack.transmit`."""

    def read(self, batch: Iterable[tuple[Buffer, Hashable]]) -> list[Packet]:
        """What datagrams hold. What cannot be read is rejected, never raised."""


class Cutting(Protocol):
    """Cuts packets of ours into smaller ones of another wire."""

    def packet_max(self) -> int:
        """Octets of ours that one of those carries."""


class Store(Protocol):
    """Knows in which form a packet is kept that is to come up later; the topmost is asked, by `stack.store`."""

    def store(self, packet: Packet) -> None: ...


class Rider(Protocol):
    """Has counters that travel on packets of other layers."""

    def ride(self, packet: Packet) -> None:
        """Counters are about to leave on this packet: put in this layer's section."""

    def note(self, packet: Packet) -> None:
        """Counters came in on a packet of another layer's kind: read this layer's section."""


class Listener(Protocol):
    """Wants to know how far our packets got."""

    def acknowledged(self, lsn: int) -> None:
        """Some member has everything up to `lsn`."""


class Window(Protocol):
    """May keep back what is sent. It calls `stack.review()` whenever one of its answers may have changed."""

    is_open: bool  # more may be sent
    is_passable: bool  # what is passed down now leaves at once; else company is worth waiting for
    waiting: int  # packets it was given and has not passed on
    outstanding: int  # what is on its way, in the unit of its window

    def blockers(self) -> Iterable[int]:
        """Members because of whom it is closed; none if our own application is the one that does not read."""


class Beginner(Protocol):
    """Lets something begin that is no delivery, and is progress all the same."""

    begun: int  # calls of objects that have begun here in this view


class Holder(Protocol):
    """Holds packets that arrived before others which have to be delivered first."""

    held: int  # bytes that wait here and that nobody has delivered

    def awaited(self) -> Iterable[int]:
        """Members whose packets or acknowledgements are missing for what is held."""


class Fitting(Protocol):
    """Has a window in bytes."""

    def fit(self, granted: int) -> None:
        """The kernel keeps so many charged bytes for a receiver: all senders together stay within."""


class Settling(Protocol):
    """Knows whether we may leave."""

    settled: bool  # nothing of ours waits here, and everybody met has all that left here


class Growing(Protocol):
    """Lets members join while it counts on, as the lecture's groups do."""

    def extend(self, view: View) -> None:
        """Members were appended to the view; nothing stops, all counts go on."""

    def base(self) -> dict[str, int]:
        """What we have counted of our own so far: where a newcomer starts with us."""

    def adopt(self, bases: dict[str, list[int]]) -> None:
        """We are the newcomer: start with each member where its `base` says."""


class Bereft(Protocol):
    """Waits for packets of others."""

    def bereft(self, member: int) -> None:
        """A member is gone, and nobody hands round what it sent last: what is missing of it will never come."""


class Lender(Protocol):
    """Numbers packets and keeps those of others until everybody has them, so that they can be handed round when their
    sender is gone. What it says of them travels, and nobody else knows the meaning."""

    def count(self) -> int:
        """How many packets of ours there are."""

    def come(self, counts: list[int]) -> bool:
        """Whether so many of each member that is here have come."""

    def holdings(self, member: int) -> Holdings:
        """What we have of a member that is gone."""

    def deal(self, held: Mapping[int, Holdings]) -> dict[int, Holdings]:
        """What each member lacks that another has; WireError if such holdings cannot be."""

    def lacking(self, member: int, dealt: Holdings) -> dict[int, Runs]:
        """Of what was dealt to us, what has not come yet, by the member that has it."""

    def lend(self, member: int, runs: Runs, to: int) -> list[Packet]:
        """Packets of one that is gone, as they came, for one (`to`) that lacks them. What carries the session's words sends them
        itself, and gives none."""

    def bereft(self, member: int) -> None:
        """All that anybody has of one that is gone has come: what is missing will never come."""


class MessageCounts(NamedTuple):
    """Messages of applications in the view in force."""

    said: list[int]  # of ours, to each member
    whole: int  # of these, those to everybody
    heard: list[int]  # of each member, that were delivered here


class Tallying(Protocol):
    """Knows messages, of which packets have one or more."""

    def tally(self) -> MessageCounts:
        """How many there were so far."""


class Accounting(Protocol):
    """Knows something that those who operate a group want to know."""

    def account(self, figures: Figures) -> None:
        """Fill in what this layer knows, of what it keeps anyway. Called for a snapshot, and when a view ends."""


class Seeing(Protocol):
    """Knows packets by the numbers that the order gave them."""

    def seen(self, member: int) -> int:
        """The highest of a member that is gone, of those that are here, released or not."""


class Restoring(Protocol):
    """Changes the bodies of packets on their way up."""

    def restore(self, packet: Packet) -> None:
        """Make it what it was when it came."""


class Forgoing(Protocol):
    """May hold packets for want of others that nobody has, since their sender is gone."""

    def forgo(self) -> None:
        """All there is has come: let go of what is held of members that are here."""


class Conforming(Protocol):
    """May hold packets of members that are gone, for want of others that nobody has, which other members release: they agree
    on how much of them is delivered."""

    def released(self, member: int) -> int:
        """The highest number of a member that is gone, of those that were released here."""

    def holds(self) -> bool:
        """Whether something waits here, or for others, that may have to be let go."""

    def conform(self, most: list[int]) -> None:
        """So much of each member that is gone was released by some member, after `forgo`: let go of that here, and of
        nothing else that is held."""


class Introduced(Protocol):
    """Has to know something of a member before its first packet."""

    def introduce(self) -> dict[str, int]:
        """What others have to know of us; it travels in our greetings."""

    def introduced(self, member: int, what: dict[str, int]) -> None:
        """Another member has told that of itself."""


class Closing(Protocol):
    """Has something to end with the view."""

    def closing(self) -> None:
        """The view is about to end: nothing more begins, what is under way ends."""

    def closed(self) -> None:
        """The view has ended, and everybody has everything that was sent in it."""

    def abandoned(self) -> None:
        """We are no member of it any more, and what was under way is lost for us."""


class Inheriting(Protocol):
    """Has something that outlives the view."""

    def inherit(self, before: Layer) -> None:
        """The layer of the same name in the view before; `view` comes next."""


class Lack(NamedTuple):
    """A state that we, having joined, need before we can begin."""

    holders: list[int]  # who was there before and has it
    others: list[int]  # who has joined with us, and needs it, too
    since: int  # the number of the latest view in which we had one ourselves; 0: none


class Stateful(Protocol):
    """Begins a view with a state that newcomers do not have."""

    def lacks(self) -> dict[str, Lack]:
        """What we, having joined, need of others before we can begin."""

    def hand_over(self, topic: str) -> bytes:
        """What we had of that when the view began, or got since; UsageError if there is no such thing."""

    def take_over(self, topic: str, state: bytes | None) -> None:
        """What we lacked; None: nobody has it any more, and what we have ourselves goes on."""

    def complete(self, member: int) -> None:
        """A newcomer lacks nothing any more, or is gone."""

    def incomplete(self) -> set[int]:
        """Newcomers that may still lack something, if we keep that."""


class OrderKeeping(Protocol):
    """The order of a recipe: counts what was sent and what was released.

    One with `flags = True` says in `taken` of each packet whether it is concurrent with something known, and in
    `taken` nothing to others: it goes on with that after our goodbye."""

    def sent(self) -> list[int]:
        """How many packets of ours each member has to have, as things stand."""

    def has(self, counts: list[int]) -> bool:
        """Whether so many packets of each member were released here."""

    def gate(self, is_open: bool) -> None:
        """Open: stop holding here, deliver on arrival and go on counting. Local, and harmless to others."""

    def overhead(self, members: int) -> int:
        """Bytes that it adds to a packet besides its stamp, at most, as far as that can be said beforehand."""


class Recalling(Protocol):
    """Keeps the newest packet of each member, for an error that has to show it."""

    def recall(self, member: int, seq: int) -> Packet | None:
        """That packet, if it is the newest that the application knows of its sender."""


class Recorded(Protocol):
    """Has rows that belong to other processes of a trace than the member's own, as copies of objects are."""

    def record(self, book: Book) -> None:
        """From now on rows go to the traces of their processes."""

    def copies(self, view: View) -> list[tuple[int, str]]:
        """Those processes of a view: whose they are, and what they are called. Rows number them after the members."""


class Replaceable(Protocol):
    """Can be replaced while the group runs."""

    def drain(self) -> list[Packet]:
        """Before removal: what is held, in order."""


class Doorkeeper(Protocol):
    """The session: speaks with those who are no members, changes views, says goodbye."""

    changes_views: bool  # members come, go and fail; else they are those of the first view, and may leave it

    def outside(self, packet: Packet, address: Hashable) -> None:
        """A packet of this layer's own kind came that belongs to no view."""

    def earlier(self, cuts: Sequence[int]) -> None:
        """What each process had sent in views before our first, for those who join after us."""

    def ahead(self, number: int) -> None:
        """A packet came of a view that is not installed here yet."""

    def late(self, view: View, source: int, address: Hashable) -> None:
        """A packet came of a view that is closed here."""

    def propose(self, recipe: str, done: "object") -> None:
        """Ask for another recipe in the whole group."""

    def goodbye(self) -> None:
        """We leave: tell everybody until they know."""

    def reviewed(self, is_open: bool) -> None:
        """The windows have closed, or are open again."""
