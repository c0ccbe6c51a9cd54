"""Vector time at one member (a *site*), and the causal relation between two stamped packets.

A stamp names the causal past of a packet: for each member, how many of its packets came before. It travels as the difference from
the sender's previous stamp, since a member that has released the previous packet has also released everything that packet named.
Each member keeps two vectors: `Inbox.vector` counts released packets and decides what may be released, `SiteClock.vector` counts
packets that the application has taken and makes stamps. If stamps counted released packets, an application that sends while a
delivery waits unread would claim that delivery as a cause.

From Dewan's "Causality" lectures; the rules are docs/protocols/causality.md.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

from inga.model.compiled import mypyc_attr
from inga.model.errors import UsageError
from inga.model.stamp import Delta, Deps, Stamp, delta_of, is_past


@mypyc_attr(allow_interpreted_subclasses=True)
class SiteClock:
    """The vector that this member would stamp on a packet now: its own sends, and the packets its application has taken."""

    def __init__(self, me: int, members: int) -> None:
        self.me = me
        self.vector = [0] * members
        self.height = 0  # sum of the vector
        self.changed: set[int] = set()  # members whose count rose since the last stamp

    def stamp(self) -> tuple[int, Deps, Stamp]:
        """Count one send. Returns its number, its full causal past, and the stamp that travels."""
        vector, me = self.vector, self.me
        deps = tuple(vector)
        delta: Delta = ()
        if self.changed:
            members = tuple(sorted(self.changed))
            delta = delta_of(members, tuple([vector[k] for k in members]))
            self.changed.clear()
        vector[me] = seq = vector[me] + 1
        self.height += 1
        return seq, deps, Stamp(delta, self.height)

    def take(self, src: int, seq: int) -> None:
        """The application has taken packet `seq` of `src`, whose causes it has taken before."""
        have = self.vector[src]
        if seq > have:
            self.vector[src] = seq
            self.height += seq - have
            self.changed.add(src)

    def join(self, deps: Deps) -> None:
        """Merge a causal past that may name packets which were not addressed to this member."""
        vector, me = self.vector, self.me
        for k, count in enumerate(deps):
            if count > vector[k] and k != me:
                self.height += count - vector[k]
                vector[k] = count
                self.changed.add(k)

    def restate(self) -> None:
        """Let the next stamp carry the full vector, for members that do not have our previous stamps."""
        self.changed = {k for k, count in enumerate(self.vector) if count and k != self.me}

    def grow(self, members: int) -> None:
        """Extend the vector by newcomers: their counts begin at 0, and our next stamp carries the full vector for them."""
        self.vector.extend([0] * (members - len(self.vector)))
        self.restate()

    def adopt(self, bases: Sequence[int]) -> None:
        """Start as a newcomer: the packets that each member had sent before are in our past."""
        self.vector[:] = bases
        self.height = sum(bases)
        self.restate()


class Stamped(Protocol):
    """Anything with a view, a sender, a number and a past: packets, batches, deliveries."""

    @property
    def view(self) -> int: ...
    @property
    def src(self) -> int: ...
    @property
    def seq(self) -> int: ...
    @property
    def deps(self) -> Deps | None: ...


Relation = Literal["<", ">", "||", "=="]


def relation(a: Stamped, b: Stamped) -> Relation:
    """Whether a caused b ("<"), b caused a (">"), neither ("||"), or they are one ("=="). O(1).

    Of two senders that is known only where messages carry vectors; else it is a UsageError. Each view has numbers of its
    own, and whoever sends in it has delivered all that was delivered in those before: their messages are its past.
    """
    if a.view != b.view:
        return "<" if a.view < b.view else ">"
    if a.src == b.src:
        return "==" if a.seq == b.seq else "<" if a.seq < b.seq else ">"
    if a.deps is None or b.deps is None:
        bare = a if a.deps is None else b
        raise UsageError(
            f"message {bare.seq} of member {bare.src} has no vector, so what caused it is not known; under the orders "
            "vector, co and sco messages carry one"
        )
    if is_past(b.deps, a.src, a.seq):
        return "<"
    if is_past(a.deps, b.src, b.seq):
        return ">"
    return "||"
