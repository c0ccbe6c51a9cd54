"""The vocabulary of traces, and the protocol by which layers and drivers write rows.

A row says what happened at one member. Order layers write the message steps, `reliable`
the repair steps, drivers the network steps. docs/trace.md has the columns.
"""

from collections.abc import Sequence
from typing import Protocol

from inga.model.stamp import Deps

MESSAGE = (
    "send receive hold accept causal confirm acknowledge deliver take duplicate concurrent branch merge"
).split()
REPAIR = "gap nack nack_suppressed repair repair_suppressed gave_up".split()
CONTROL = "control poll rate window_closed window_opened".split()
NETWORK = "datagram_out datagram_in lost delayed rejected".split()
GROUP = "view join leave suspect flush crash state".split()
OBJECT = "request start commit abort response undo".split()
FOREIGN = ["event"]

STEPS = frozenset(MESSAGE + REPAIR + CONTROL + NETWORK + GROUP + OBJECT + FOREIGN)


class Trace(Protocol):
    """Where rows go. `full` is False for a lean trace: sends, receipts, deliveries, group steps only."""

    full: bool

    def row(
        self,
        step: str,
        now: float,
        view: int,
        src: int | None = None,
        seq: int | None = None,
        *,
        dst: int | None = None,
        deps: Deps | None = None,
        height: int | None = None,
        peer: int | None = None,
        n: int | None = None,
        op: str | None = None,
        ref: str | None = None,
        note: str | None = None,
    ) -> None:
        """Append one row, at `now` in seconds; the writer adds position and process."""
        ...

    def grow(self, n: int) -> None:
        """From now on there are `n` members: those of the view, followed by newcomers."""
        ...

    def cut(self, view: int, seqs: Sequence[int] | int, indices: Sequence[int] | None = None) -> None:
        """View `view` was closed after `seqs` packets of each member, and counts begin anew. If `seqs` is one number, each process
        counts on from that."""
        ...


class Book(Protocol):
    """The traces of a member: its own, and those of its copies of objects. Members are identified by their process numbers in
    `View.processes`; a member that returns as a new member has another number, and other traces."""

    def number(self, process: int, name: str = "") -> int:
        """The process of the trace that a member is, or that its copy of the object `name` is."""
        ...

    def trace(self, process: int, name: str = "") -> Trace:
        """The trace of that process, opened when it is first requested."""
        ...

    def reserve(self, count: int, least: int) -> Sequence[int]:
        """Numbers for `count` new members, from `least` on, that no other part of the group gives to any process."""
        ...

    def past(self, view: int) -> int | None:
        """The number from which each process counts its messages in a view; None if counts continue from the view before. With
        objects they cannot: no member knows how many messages the copies of others have sent."""
        ...
