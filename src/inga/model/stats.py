"""What a member of a group knows about itself and the group at one moment, for the operators of the group.

A snapshot consists of counters that are kept anyway and of figures that the layers compute on request: taking one costs tens of
microseconds, and not taking one costs nothing. Every figure is defined in docs/operating.md. Counters (`sent`, `delivered`,
`repairs_*`, `packets_*`, `datagrams_*`, `bytes_*`, `dropped`, `rejected`, `waited`) only grow while a member lives; all others rise
and fall.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

STATES = ("open", "waiting", "closing", "paused", "leaving", "failed", "closed")
"""The states of a member, in this order: it may send; a window is closed; the view is about to change; too few members are here;
it has said goodbye; it has failed; its sockets are closed."""


@dataclass(frozen=True, slots=True)
class MemberStats:
    """What one member knows about another, or about itself."""

    name: str
    here: bool  # it was met and has not left
    silent: float  # seconds since a packet of it last arrived
    delivered: int  # messages of it that were delivered here
    behind: int  # packets of ours that it is not known to have
    behind_for: float  # seconds since the oldest of these was sent
    blocks: bool  # sending waits for it now
    awaited: bool  # packets held here wait for packets or control messages of it
    waited: float  # seconds that sending has waited for it in all: `group.waits`


@dataclass(frozen=True, slots=True)
class WindowStats:
    """Flow control of one layer, in the unit of its window: bytes or messages."""

    layer: str
    open: bool
    used: int  # in flight: not all members are known to have it, or to have room for it
    limit: int | None  # how much may be in flight; None: the layer does not say
    waiting: int  # packets that it holds back


@dataclass(frozen=True, slots=True)
class Traffic:
    """The traffic of a member's sockets. A datagram for all members counts once by multicast; by unicast, once for each."""

    datagrams_in: int = 0
    datagrams_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    dropped: int = 0  # datagrams that the kernel, or a full backlog of ours, has dropped


@dataclass(frozen=True, slots=True)
class Stats:
    """One member of one group at one moment; see docs/operating.md."""

    group: str
    me: str
    order: str
    state: str  # one of STATES
    view: int  # the number of the view in force
    view_age: float  # seconds since it was installed here
    members: tuple[MemberStats, ...]  # of the view, ourselves included
    sent: int  # messages that our application has sent and that have left the bundle
    delivered: int  # messages that were delivered to our application
    calls: int  # calls of objects that have begun here in this view
    unread_packets: int  # delivered, and not yet taken by our application
    unread_bytes: int
    held_bytes: int  # arrived, and wait for other messages that have to be delivered first
    held_for: float  # seconds since anything was delivered, while something is held
    windows: tuple[WindowStats, ...]
    blocked_for: float  # seconds since sending waits for a window
    repairs_asked: int  # requests for packets that did not arrive
    repairs_given: int  # packets that were sent again
    packets_data: int  # packets sent with messages of applications, repairs included
    packets_control: int  # packets sent without
    round_trip: float | None  # seconds until all members were known to have a packet of ours: of a recent one
    rejected: Mapping[str, int]  # datagrams and packets that were dropped, by reason
    traffic: Traffic

    @property
    def here(self) -> tuple[str, ...]:
        """Members that were met and have not left, ourselves included."""
        return tuple(member.name for member in self.members if member.here)

    @property
    def held_by(self) -> tuple[str, ...]:
        """Members for which delivery waits."""
        return tuple(member.name for member in self.members if member.awaited)

    @property
    def blocked_by(self) -> tuple[str, ...]:
        """Members for which sending waits."""
        return tuple(member.name for member in self.members if member.blocks)

    @property
    def slowest(self) -> MemberStats | None:
        """The member that holds us up most: sending waits for it now, or it has lacked packets of ours for longest, or sending
        has waited for it longest in all. None if nobody does or has."""
        worst = max(
            self.members,
            key=lambda each: (each.blocks, each.behind_for, each.waited, each.behind),
            default=None,
        )
        return worst if worst is not None and (worst.blocks or worst.behind or worst.waited) else None

    def as_dict(self) -> dict[str, Any]:
        """Everything as dictionaries, lists, numbers and text, as JSON has them."""
        return {**asdict(self), "rejected": dict(self.rejected)}
