"""Packets that somebody makes up who knows the wire, in the name of members: by the forger of the simulator and by the one
of `inga bench hostile`.

Of control messages there is one for whatever would harm a group that believed it. Each has all the fields that any of them
has, so that no decoder refuses it before its contents are looked at.
"""

from collections.abc import Callable
from random import Random

from inga.model.packet import DATA, Packet
from inga.session.session import Session
from inga.stack.stack import Datagram
from inga.wire.packet import OUTSIDE, encode, group_id
from inga.wire.told import said

OUTSIDE_WORDS = ("goodbye", "hello", "part", "excluded", "double", "lost")
"""Control messages about a member that belong to no view."""

VIEW_WORDS = ("use", "suspect", "dissolve", "refused", "cannot")
"""Control messages of members of a view: what is asked for names a recipe."""


def outside_word(do: str, name: str, incarnation: int, group: str, view: int) -> Datagram:
    """As if that process had said it, or it were about that process."""
    packet = Packet(0, OUTSIDE, kind=Session.id)
    packet.ext = said(
        do, name=name, incarnation=incarnation, group=f"{group_id(group):08x}", view=view, itself=True,
        bound=False, address="", size=99, spoken_in=1, leader=[], slow=False, birth=0, wants="", host=[],
        was=[], bound_=[], part=[], next=0, attempt=1, company=True,
    )  # fmt: skip
    return encode(packet, group_id(group))


def data(rng: Random, source: int, view: int, tag: int, following: int) -> Datagram:
    """A message with a number that was used, that comes next (`following`), or that is far ahead."""
    packet = Packet(source, view, b"forged", kind=DATA)
    packet.seq = rng.choice((1, 2, following, 10**6))
    return encode(packet, tag)


def view_word(rng: Random, source: int, view: int, tag: int) -> Datagram:
    """A wish that would change the view or its order."""
    packet = Packet(source, view, kind=Session.id)
    packet.ext = said(rng.choice(VIEW_WORDS), recipe="none")
    return encode(packet, tag)


def ahead(source: int, view: int, tag: int) -> Datagram:
    """A message of the view after this one."""
    packet = Packet(source, view + 1, b"ahead", kind=DATA)
    packet.seq = 1
    return encode(packet, tag)


def anything(
    rng: Random, source: int, view: int, tag: int, following: int, word: Callable[[str], Datagram]
) -> Datagram:
    """One of all these. `word` makes a control message of that kind, about whomever it likes."""
    match rng.randrange(4):
        case 0:
            return word(rng.choice(OUTSIDE_WORDS))
        case 1:
            return data(rng, source, view, tag, following)
        case 2:
            return view_word(rng, source, view, tag)
    return ahead(source, view, tag)
