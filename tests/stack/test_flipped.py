"""A network that changes bits is a network that loses datagrams: nothing of a damaged one is believed."""

from collections.abc import Iterable
from random import Random
from typing import Any

import pytest

from .harness import Flight, Net

ORDERS = ("none", "fifo", "vector", "relay", "co", "sco", "total")
DAMAGED = {"check", "foreign", "version", "truncated"}


class Flipping(Net):
    """One of five datagrams comes with some of its bits changed."""

    flipped = 0
    is_bad = True

    def post(self, source: Any, targets: Iterable[Any], data: bytes) -> None:
        for target in targets:
            changed = bytearray(data)
            if self.is_bad and self.rng.random() < 0.2:
                for _ in range(self.rng.choice((1, 1, 2, 3, 8))):
                    changed[self.rng.randrange(len(data))] ^= 1 << self.rng.randrange(8)
                self.flipped += 1
            super().post(source, [target], bytes(changed))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", range(4))
def test_messages_over_a_network_that_changes_bits(order: str, seed: int) -> None:
    net, rng = Flipping(3, order, group="lunch", seed=seed), Random(seed)
    said: list[tuple[int, str]] = []
    for number in range(40):
        member = rng.randrange(3)
        if net.stacks[member].writable:
            said.append((member, f"{number}" + "." * rng.choice((0, 0, 90))))
            net.send(member, said[-1][1].encode())
        net.wait(0.02 * rng.random())
    net.is_bad = False
    net.quiet()
    assert net.flipped > 10 and len(said) > 10
    for member, stack in enumerate(net.stacks):
        meant = sorted(text for sender, text in said if sender != member or order == "total")
        heard = sorted(net.texts(member))
        assert heard == meant or (order == "none" and set(heard) <= set(meant))
        assert net.errors[member] is None
        assert stack.rejected["check"] and set(stack.rejected) <= DAMAGED


def every_kind(order: str) -> list[Flight]:
    """A datagram of every kind that a run with losses makes, each with another set of sections."""
    net, rng = Net(3, order, group="lunch"), Random(1)
    for number in range(30):
        net.send(rng.randrange(3), b"%d" % number)
        net.wait(0.03, lose=lambda flight: rng.random() < 0.3)
    net.stacks[2].goodbye(now=net.now)
    net.turn(2)
    found = {(flight.kind, flight.data[8:10]): flight for flight in net.log if flight.target == 1}
    return list(found.values())


@pytest.mark.parametrize("order", ORDERS)
def test_every_bit_of_every_kind_of_datagram(order: str) -> None:
    net = Net(3, order, group="lunch")
    net.send(0, b"before")
    net.quiet()
    bob, count, heard = net.stacks[1], 0, len(net.log)
    kinds = every_kind(order)
    assert len({flight.kind for flight in kinds}) >= 2
    for flight in kinds:
        data = bytearray(flight.data)
        for bit in range(8 * len(data)):
            data[bit // 8] ^= 1 << bit % 8
            bob.receive([(bytes(data), "mallory")], now=net.now)
            data[bit // 8] ^= 1 << bit % 8
            count += 1
    net.turn(1)
    assert sum(bob.rejected.values()) == count and set(bob.rejected) <= DAMAGED
    assert net.texts(1) == ["before"] and len(net.log) == heard and not bob.addresses
    net.send(2, b"after")
    net.quiet()
    assert net.texts(1) == ["before", "after"]
