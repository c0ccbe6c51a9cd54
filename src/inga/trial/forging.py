"""Forged packets in the name of members, as an attacker who knows the wire format would send them: for the forger of the
simulator and that of `inga bench hostile`.

There is a control message of every kind that would harm a group that believed it. Each has the fields of all of them, so
that no decoder refuses it before its contents are examined.
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
"""Control messages of members of a view. Those that ask for an order name a recipe."""


def outside_word(do: str, name: str, incarnation: int, group: str, view: int) -> Datagram:
    """A forged control message outside views, from or about the process of that name and incarnation."""
    packet = Packet(0, OUTSIDE, kind=Session.id)
    packet.ext = said(
        do, name=name, incarnation=incarnation, group=f"{group_id(group):08x}", view=view, itself=True,
        bound=False, address="", size=99, spoken_in=1, leader=[], slow=False, birth=0, wants="", host=[],
        was=[], bound_=[], part=[], next=0, attempt=1, company=True,
    )  # fmt: skip
    return encode(packet, group_id(group))


def data(rng: Random, source: int, view: int, tag: int, following: int) -> Datagram:
    """A forged data packet whose sequence number was used before, is the next one (`following`), or is far ahead."""
    packet = Packet(source, view, b"forged", kind=DATA)
    packet.seq = rng.choice((1, 2, following, 10**6))
    return encode(packet, tag)


def view_word(rng: Random, source: int, view: int, tag: int) -> Datagram:
    """A forged control message within a view that would change the view or its order."""
    packet = Packet(source, view, kind=Session.id)
    packet.ext = said(rng.choice(VIEW_WORDS), recipe="none")
    return encode(packet, tag)


def ahead(source: int, view: int, tag: int) -> Datagram:
    """A forged data packet of the next view."""
    packet = Packet(source, view + 1, b"ahead", kind=DATA)
    packet.seq = 1
    return encode(packet, tag)


def anything(
    rng: Random, source: int, view: int, tag: int, following: int, word: Callable[[str], Datagram]
) -> Datagram:
    """A random one of these packets. `word` makes a control message of a kind in `OUTSIDE_WORDS`, and chooses the process that it
    names."""
    match rng.randrange(4):
        case 0:
            return word(rng.choice(OUTSIDE_WORDS))
        case 1:
            return data(rng, source, view, tag, following)
        case 2:
            return view_word(rng, source, view, tag)
    return ahead(source, view, tag)
