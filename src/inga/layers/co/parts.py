"""The settings, messages and events of the CO machine."""

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from inga.layers.numbers import check_delay, check_number, check_seconds
from inga.model.compiled import mypyc_attr
from inga.model.errors import UsageError
from inga.model.packet import Runs
from inga.model.stamp import Deps, MemberNumbers

LEVELS: Final = ("causal", "confirmed", "acknowledged")

AHEAD_MAX = 8192
"""How far beyond the expected number a number may be: twice as far as any window allows."""

WINDOW_MAX = AHEAD_MAX // 2

QUOTA_WINDOWS = 4
"""How many windows of each sender the default buffers can hold: a message takes three round trips until it is
acknowledged, and one is a reserve."""

ExpectedNumbers = tuple[int, ...]
"""For each member, the number that is expected next from it."""

Claims = list[tuple[int, int]]
"""(member, number expected next from it), for the entries of a vector that are higher than in its sender's previous message."""


@mypyc_attr(native_class=False)
@dataclass(frozen=True, slots=True)
class CoSettings:
    """The settings of `co`. Times are in seconds."""

    window: int = 32  # messages of ours that not all members have accepted, at most (W)
    window_bytes: int | None = None  # charged bytes of these, at most; None: no limit
    # The most messages held of all senders, in equal shares (C); None: four windows of each.
    capacity: int | None = None
    units: int = 1  # buffer units reckoned for each message (H)
    confirm_delay: float = 0.005  # T_def: how long a confirmation waits to be piggybacked on data
    # Accepted messages of one sender after which a confirmation does not wait; None: half a window, 0: it always waits.
    confirm_every: int | None = None
    nack_delay: float = 0.001  # a missing message may only have been overtaken
    nack_again: float = 0.02  # T_ret
    resend: float = 0.05  # T_rtx
    poll: float = 0.05  # T_poll
    patience: float = 60.0  # time without progress after which a missing message is given up

    def __post_init__(self) -> None:
        said: Any = self  # values from the caller, of any type
        check_number("window", said.window, 1, WINDOW_MAX)
        check_number("units", said.units, 1, 1 << 20)
        for name in ("capacity", "window_bytes"):
            if getattr(said, name) is not None:
                check_number(name, getattr(said, name), 1)
        if said.confirm_every is not None:
            check_number("confirm_every", said.confirm_every, 0, WINDOW_MAX)
        for name in ("confirm_delay", "nack_again", "resend", "poll", "patience"):
            check_seconds(name, getattr(said, name))
        check_delay("nack_delay", said.nack_delay)

    def capacity_for(self, members: int) -> int:
        """The most messages that a member holds in a group of that size."""
        least = self.units * members
        capacity = self.capacity or QUOTA_WINDOWS * self.window * least
        if capacity < least:
            raise UsageError(f"capacity is at least {least}, a message of each member, not {capacity}")
        return capacity


@mypyc_attr(allow_interpreted_subclasses=True)
class CoMessage:
    """A data message: the fields from its sender, and what this member knows about it."""

    __slots__ = (
        "src",
        "seq",  # which of its sender's messages
        "vector",  # numbers that its sender expected of all members; None: it came as `rises` and is not rebuilt yet
        "rises",  # the increments since the vector of its sender's previous message; None: `vector` came in full
        "free",  # free buffers that its sender reports
        "body",  # the payload, which the machine does not examine
        "size",  # of our own messages, bytes charged to the window; of others, bytes held here
        "claims",  # the entries that rose in its vector; set on acceptance
        "deps",  # its vector as counts of preceding messages; empty: it is not accepted yet
        "sent_at",
    )

    def __init__(
        self,
        src: int,
        seq: int,
        vector: ExpectedNumbers | None,
        rises: MemberNumbers | None,
        free: int,
        body: Any = None,
        size: int = 0,
    ) -> None:
        self.src = src
        self.seq = seq
        self.vector = vector
        self.rises = rises
        self.free = free
        self.body = body
        self.size = size
        self.claims: Claims = []
        self.deps: Deps = ()
        self.sent_at = 0.0

    def __repr__(self) -> str:
        return f"<Message {self.src}:{self.seq}>"


class Confirmation(NamedTuple):
    """A confirmation (CNF): the numbers that a member expects, and those below which it has confirmed. `seq` is the number
    of its next message."""

    src: int
    seq: int
    expected: ExpectedNumbers
    confirmed: ExpectedNumbers
    free: int
    poll: bool = False  # the receiver is asked for its own confirmation
    denies: bool = False  # the receiver has asked for numbers that were never used


class CoNack(NamedTuple):
    """A nack (RET): a request to send these messages again."""

    src: int
    runs: Runs
    expected: ExpectedNumbers
    free: int


class CoSent(NamedTuple):
    """A message of ours was numbered; it leaves for all members."""

    message: CoMessage


class SentAgain(NamedTuple):
    """Messages of ours are sent again, unchanged, to one member."""

    to: int
    messages: list[CoMessage]


class CoControlSent(NamedTuple):
    """A confirmation leaves for one member or for all (None), or a nack for one member."""

    to: int | None
    what: Confirmation | CoNack
    again: bool = False  # the nack is a repeated one


class Reached(NamedTuple):
    """Messages reached a level, in this order."""

    level: str
    messages: list[CoMessage]
