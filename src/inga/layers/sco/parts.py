"""The settings, messages and events of the SCO machine."""

from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

from inga.layers.numbers import check_choice, check_delay, check_number, check_seconds, check_switch
from inga.model.compiled import mypyc_attr
from inga.model.packet import Runs
from inga.model.stamp import Deps, Noted

NumberPairs = tuple[tuple[int, int], ...]
"""(member, number), for the members whose number differs from the one that the reader knows already."""

ACK_LEVELS = ("causal", "continuous")


@mypyc_attr(native_class=False)
@dataclass(frozen=True, slots=True)
class ScoSettings:
    """The settings of `sco`. Times are in the unit of the clock that is passed in."""

    ack_level: str = "causal"  # what a confirmation confirms: causal or continuous acceptance
    window: int = 256  # our messages from the oldest that not all destinations have accepted, at most (W)
    window_bytes: int | None = None  # charged bytes of these, at most; None: no limit
    quota: int = 256  # messages held per source, at most
    buffers_per_message: int = 1  # buffer units reckoned for each message (H)
    throttle: bool = True  # keep senders within the free buffers that their receivers report
    confirm_delay: float = 0.005  # k: how long a confirmation waits to be piggybacked on data
    # Accepted messages of one source after which a confirmation does not wait; None: half a window, 0: it always waits.
    confirm_every: int | None = None
    nack_delay: float = 0.001  # a missing copy may only have been overtaken
    nack_again: float = 0.01  # T_ret
    resend_after: float = 0.05  # T_rtx
    poll_after: float = 0.05  # T_poll
    probe_after: float = 0.005  # T_probe
    patience: float = 60.0  # time without progress after which a missing message is given up
    resends_max: int = 16  # copies sent again for one request, at most
    # The most notes of messages that may be in flight to other members, on one message; with more, receivers ask.
    noted_max: int = 256
    multicast_from: int = 0  # from so many remote destinations on, one datagram replaces copies; 0: never

    def __post_init__(self) -> None:
        said: Any = self  # values from the caller, of any type
        check_choice("ack_level", said.ack_level, ACK_LEVELS)
        check_switch("throttle", said.throttle)
        for name in ("window", "quota", "buffers_per_message", "resends_max"):
            check_number(name, getattr(said, name), 1)
        if said.window_bytes is not None:
            check_number("window_bytes", said.window_bytes, 1)
        for name in ("confirm_every", "multicast_from", "noted_max"):
            check_number(name, getattr(said, name) or 0, 0)
        for name in ("nack_again", "resend_after", "poll_after", "patience"):
            check_seconds(name, getattr(said, name), inf)
        for name in ("confirm_delay", "probe_after", "nack_delay"):
            check_delay(name, getattr(said, name), inf)


@mypyc_attr(allow_interpreted_subclasses=True)
class ScoMessage:
    """One copy of a data message: the fields from its sender, and how far it got at this member."""

    __slots__ = (
        "src",
        "dst",  # bit set of its destinations
        "seq",  # which of its sender's messages (sqn)
        "lsn",  # which of its sender's messages to this destination
        "delta",  # the stamp, as (member, newest that precedes) that changed since the link's last message
        "whole",  # the stamp is complete, so that it can be read without the previous message
        "noted",  # messages in its past that may not have arrived at their destinations; None: unknown
        "needs",  # by source, the number of the newest of these that is for us; None: unknown
        "ack",  # (source, number its sender expects) for sources whose messages concern this destination
        "buf",  # free buffers of the sender
        "have",  # the lsn that its sender expects next from this destination
        "body",  # the payload, which the machine does not examine
        "size",  # of our own messages, bytes charged to the window; of others, bytes held here
        "deps",  # the full stamp; rebuilt at acceptance
        "missing",  # bit set of destinations not known to have accepted it; set when it is ordered
        "seen",  # how many entries of the stamp were found to be clear: their messages are ordered
        "passed",  # how many entries of the stamp were found to name no message that is still in the log
        "own",  # at its sender: the message of which it is a copy
        "since",  # at its sender: when it was last sent; else: since when it is a top, or in the log
        "given",  # whether it was delivered to the application
    )

    def __init__(
        self,
        src: int,
        dst: int,
        seq: int,
        lsn: int,
        delta: NumberPairs,
        *,
        ack: NumberPairs = (),
        buf: int = 0,
        have: int = 1,
        body: Any = None,
        whole: bool = False,
        noted: Noted | None = None,
    ) -> None:
        self.src = src
        self.dst = dst
        self.seq = seq
        self.lsn = lsn
        self.delta = delta
        self.whole = whole
        self.noted = noted
        self.needs: dict[int, int] | None = None
        self.ack = ack
        self.buf = buf
        self.have = have
        self.body = body
        self.size = 0
        self.deps: Deps = ()
        self.missing = 0
        self.seen = 0
        self.passed = 0
        self.own: Own | None = None
        self.since = 0.0
        self.given = False

    def __repr__(self) -> str:
        return f"<Message {self.src}:{self.seq} lsn={self.lsn}>"


@mypyc_attr(allow_interpreted_subclasses=True)
class Own:
    """A message of ours, kept until every remote destination has accepted it."""

    __slots__ = ("body", "dst", "lsns", "remaining", "sent_at", "seq", "size")

    def __init__(self, seq: int, dst: int, body: Any, size: int, sent_at: float) -> None:
        self.seq = seq
        self.dst = dst
        self.body = body
        self.size = size
        self.sent_at = sent_at
        self.remaining = 0  # remote destinations that are not known to have accepted it
        self.lsns: NumberPairs = ()  # (destination, lsn) of all of them, if they get one common datagram


class Control(NamedTuple):
    """A confirmation or a poll (CTL). `seq` and `lsn` are those of its sender's next data message."""

    src: int
    seq: int
    lsn: int
    ack: NumberPairs
    buf: int
    poll: bool
    have: int = 1  # the lsn expected next from the receiver
    denies: bool = False  # the receiver has asked for numbers that were never used


class ScoNack(NamedTuple):
    """A request to send messages again (RET)."""

    src: int
    runs: Runs
    ack: NumberPairs
    buf: int
    have: int = 1


class ScoSent(NamedTuple):
    """A message of ours left the queue of waiting messages and was numbered."""

    own: Own


class Copies(NamedTuple):
    """Copies of one message leave, if `together` as one datagram for all destinations. `again`: they are repeated."""

    copies: list[ScoMessage]
    to: list[int]
    together: bool = False
    again: bool = False


class ScoControlSent(NamedTuple):
    """A control message or a request leaves."""

    to: int
    what: Control | ScoNack


class Happened(NamedTuple):
    """A message reached a level here: received, accepted, causal or confirmed."""

    level: str
    message: ScoMessage


class Released(NamedTuple):
    """All remote destinations have accepted a message of ours."""

    own: Own


class Heard(NamedTuple):
    """A destination has accepted our message `seq` and all our earlier ones to it, or was left out; or the message has no
    remote destination."""

    seq: int
