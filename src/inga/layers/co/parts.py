"""What the CO machine is set to, reads and says: settings, messages, and the events they cause."""

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from inga.layers.numbers import check_delay, check_number, check_seconds
from inga.model.compiled import mypyc_attr
from inga.model.errors import UsageError
from inga.model.packet import Runs
from inga.model.stamp import Deps, MemberNumbers

LEVELS: Final = ("causal", "confirmed", "acknowledged")

AHEAD_MAX = 8192
"""How far beyond the expected number another can be: twice what any window allows."""

WINDOW_MAX = AHEAD_MAX // 2

QUOTA_WINDOWS = 4
"""Windows of each sender for which there are buffers by default: a message takes three round trips until it is
acknowledged, and one more is to spare."""

ExpectedNumbers = tuple[int, ...]
"""The number that is expected next from each member."""

Claims = list[tuple[int, int]]
"""(member, number it was expected to send next) where that rose since the sender's message before."""


@mypyc_attr(native_class=False)
@dataclass(frozen=True, slots=True)
class CoSettings:
    """What can be chosen. Times are in seconds."""

    window: int = 32  # messages of ours that not all members have accepted (W)
    window_bytes: int | None = None  # their charged bytes; None = as many as they are
    # Messages held of all senders, shared out equally (C); None = four windows of each.
    capacity: int | None = None
    units: int = 1  # what a message counts against a buffer (H)
    confirm_delay: float = 0.005  # T_def: how long a confirmation waits for data to ride on
    # Messages of one sender after which it does not wait; None = half a window, 0 = it always waits.
    confirm_every: int | None = None
    nack_delay: float = 0.001  # a missing message may only have been overtaken
    nack_again: float = 0.02  # T_ret
    resend: float = 0.05  # T_rtx
    poll: float = 0.05  # T_poll
    patience: float = 60.0  # without progress, after which a hole is lost for good

    def __post_init__(self) -> None:
        said: Any = self  # what somebody said, of whatever type
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
        """Messages that a member of such a group holds at most."""
        least = self.units * members
        capacity = self.capacity or QUOTA_WINDOWS * self.window * least
        if capacity < least:
            raise UsageError(f"capacity is at least {least}, a message of each member, not {capacity}")
        return capacity


@mypyc_attr(allow_interpreted_subclasses=True)
class CoMessage:
    """A data message: what its sender put on it, and what is known of it here."""

    __slots__ = (
        "src",
        "seq",  # which of its sender's messages
        "vector",  # what its sender expected of all members; None = not in full, and not rebuilt yet
        "rises",  # by how much that is more than in its sender's message before; None = `vector` came in full
        "free",  # free buffers of its sender
        "body",  # the payload, which the machine does not look at
        "size",  # of our own messages, bytes charged to the window; of others, bytes held here
        "claims",  # what rose in its vector, once it is accepted
        "deps",  # its vector as counts of messages that precede it; empty = it is not accepted yet
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
    """The numbers that a member expects, and those up to which it has confirmed (CNF). `seq` is that of its next message."""

    src: int
    seq: int
    expected: ExpectedNumbers
    confirmed: ExpectedNumbers
    free: int
    poll: bool = False  # the receiver is asked for its own confirmation
    denies: bool = False  # the receiver has asked for numbers that were never used


class CoNack(NamedTuple):
    """Please send these again (RET)."""

    src: int
    runs: Runs
    expected: ExpectedNumbers
    free: int


class CoSent(NamedTuple):
    """A message of ours got its number, and leaves for everybody."""

    message: CoMessage


class SentAgain(NamedTuple):
    """Messages of ours leave again, as they are, for one member."""

    to: int
    messages: list[CoMessage]


class CoControlSent(NamedTuple):
    """A confirmation leaves for one member or for all (None), or a request for one."""

    to: int | None
    what: Confirmation | CoNack
    again: bool = False  # a repeated request


class Reached(NamedTuple):
    """Messages reached a level, in this order."""

    level: str
    messages: list[CoMessage]
