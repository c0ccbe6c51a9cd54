"""Vector time at one site, and what two stamps say about each other.

A stamp names the causal past of a packet: for each member, how many of its packets came before. It
travels as the difference from the sender's previous stamp, since whoever delivered that one already
has what it named. Two vectors exist at each site (`Inbox.vector` and `SiteClock.vector`): what was
released decides deliverability, what the application has taken makes stamps. If stamps came from the
released counts, a user who sends while a delivery waits unread would claim it as a cause.

From Dewan's "Causality" lectures; the rules are docs/protocols/causality.md.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

from inga.model.compiled import mypyc_attr
from inga.model.errors import UsageError
from inga.model.stamp import Delta, Deps, Stamp, delta_of, is_past


@mypyc_attr(allow_interpreted_subclasses=True)
class SiteClock:
    """What this site would stamp now: its own sends, and what its application has taken."""

    def __init__(self, me: int, members: int) -> None:
        self.me = me
        self.vector = [0] * members
        self.height = 0  # sum of the vector
        self.changed: set[int] = set()  # members whose count rose since the last stamp

    def stamp(self) -> tuple[int, Deps, Stamp]:
        """Count one send; its number, its full causal past, and the stamp that travels."""
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
        """The application has begun packet `seq` of `src`, whose causes it has taken before."""
        have = self.vector[src]
        if seq > have:
            self.vector[src] = seq
            self.height += seq - have
            self.changed.add(src)

    def join(self, deps: Deps) -> None:
        """Take over a past that may name packets never addressed to this site."""
        vector, me = self.vector, self.me
        for k, count in enumerate(deps):
            if count > vector[k] and k != me:
                self.height += count - vector[k]
                vector[k] = count
                self.changed.add(k)

    def restate(self) -> None:
        """Let the next stamp carry the full vector: somebody may not have our previous ones."""
        self.changed = {k for k, count in enumerate(self.vector) if count and k != self.me}

    def grow(self, members: int) -> None:
        """A view was extended: newcomers count from 0, and get the full vector first."""
        self.vector.extend([0] * (members - len(self.vector)))
        self.restate()

    def adopt(self, bases: Sequence[int]) -> None:
        """Start as a newcomer does: what the others had sent before is past."""
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
