"""First views, where a packet is known by the process that sent it: what is of nobody we have met is not read."""

from random import Random

import pytest

from inga.model.packet import Packet
from inga.model.view import View
from inga.recipes import Options, find
from inga.stack.stack import Stack, joined
from inga.wire.bundle import join
from inga.wire.packet import HEAD, encode


def begun() -> Stack:
    """Alice, who has met bob and not cathy."""
    view = View.of("alice", "bob", "cathy", recipe="none")
    stack = Stack(find("none").build(Options()), 0, view, rng=Random(0), birth=5)
    stack.begin()
    assert stack.wire.births is not None
    stack.wire.births[1] = 7
    return stack


def datagram(stack: Stack, src: int, birth: int) -> bytes:
    packet = Packet(src, 1, join([b"hello"]))
    packet.seq = packet.lsn = packet.count = 1
    return joined(encode(packet, stack.wire.tag ^ birth))


def heard(stack: Stack, data: bytes) -> int:
    stack.receive([(data, None)], now=0.0)
    return len(stack.ready().deliver)


def test_what_the_process_says_that_was_met_is_read() -> None:
    stack = begun()
    assert heard(stack, datagram(stack, 1, 7)) == 1 and not stack.rejected


@pytest.mark.parametrize("src, birth", [(1, 8), (2, 7), (2, 0), (3, 7), (9, 7)])
def test_another_process_one_not_met_and_one_that_is_no_member_are_not(src: int, birth: int) -> None:
    stack = begun()
    assert heard(stack, datagram(stack, src, birth)) == 0 and stack.rejected == {"group": 1}


def test_what_is_too_short_for_a_header_is_of_nobody() -> None:
    stack = begun()
    for size in range(HEAD.size):
        assert heard(stack, datagram(stack, 1, 7)[:size]) == 0
    assert stack.rejected == {"truncated": HEAD.size}
