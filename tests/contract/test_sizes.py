"""Messages of every size around a datagram's: none is larger than the network takes, and what fits is not cut."""

import pytest

from inga.layers.bundle import HEAD, LENGTH
from inga.recipes import Options

from ..stack.harness import Net

DATAGRAM = 1472
BOUNDARIES = [*range(1281, 1473, 12), 2600, 2950]
"""Sizes around what fits beside a header, a vector and what the order adds; and around twice that."""

GROUPS = [
    *[(order, 2) for order in ("none", "fifo", "vector", "co", "sco", "object", "total")],
    *[
        (order, 8) for order in ("vector", "matrix", "relay", "co", "sco")
    ],  # whose packets grow with the group
]


def talked(order: str, members: int) -> Net:
    """A group in which everybody has heard everybody, so that there is much to say on a packet."""
    options = Options(matrix=order == "matrix")
    net = Net(members, "vector" if order == "matrix" else order, options=options, datagram_max=DATAGRAM)
    for member in range(members):
        net.send(member, b"hello")
        net.settle()
    for member in range(1, members):
        net.send(member, b"and again")
    net.quiet()
    return net


def heard_by(net: Net, member: int) -> list[str]:
    return [text for text in net.texts(member) if not text.startswith(("hello", "and"))]


@pytest.mark.parametrize(("order", "members"), GROUPS)
def test_any_size_passes_and_the_next_message_does_not_wait_for_it(order: str, members: int) -> None:
    net, said = talked(order, members), []
    before = len(net.log)
    for size in BOUNDARIES:
        said += ["x" * size, f"after {size}"]
        for text in said[-2:]:
            net.send(0, text.encode())
        net.quiet()
    assert max(len(flight.data) for flight in net.log[before:]) <= DATAGRAM
    for member in range(1, members):
        assert heard_by(net, member) == said


BUNDLED = [group for group in GROUPS if group[0] not in ("object", "total", "matrix")]


# With more members than four a column of the matrix may be longer than what is left for it.
@pytest.mark.parametrize(("order", "members"), [*BUNDLED, ("matrix", 4)])
def test_what_the_application_may_put_into_a_datagram_has_its_place_there(order: str, members: int) -> None:
    """The largest message that a bundle takes for one that fits, with all that its order has to say: not cut."""
    net = talked(order, members)
    largest = net.stacks[0].wire.payload_max - HEAD - LENGTH
    assert largest > 0.8 * DATAGRAM - 10 * members
    before = len(net.log)
    net.send(0, b"x" * largest)
    first = [flight for flight in net.log[before:] if flight.target == 1 and b"xxx" in flight.data]
    (packet,) = net.packets(first)
    assert packet.frag is None
    net.quiet()
    assert heard_by(net, 1) == ["x" * largest]


@pytest.mark.parametrize("size", [117, 600])
@pytest.mark.parametrize(("order", "members"), GROUPS)
def test_bundles_fill_datagrams(order: str, members: int, size: int) -> None:
    net = talked(order, members)
    before = len(net.log)
    texts = [f"{number:03d}".ljust(size, "x") for number in range(4 * DATAGRAM // size)]
    net.stacks[0].send_many([text.encode() for text in texts], now=net.now)
    net.turn(0)
    burst = [flight for flight in net.log[before:] if flight.target == 1 and b"xxx" in flight.data]
    net.quiet()
    assert heard_by(net, 1) == texts
    assert not any(packet.frag for packet in net.packets(burst))
    assert all(DATAGRAM - 2 * size - 40 * members < len(flight.data) <= DATAGRAM for flight in burst[:-1])
