"""The last messages of a group: what is kept of them, and what a member gives a newcomer, of which nothing but messages with an
age is read."""

from math import inf, nan

import pytest

from inga.model.delivery import Batch
from inga.model.errors import WireError
from inga.model.packet import Packet
from inga.model.view import View
from inga.recipes import Options
from inga.session.history import EACH, HISTORY_MAX, KIND, LastMessages, read_history
from inga.wire.packet import COUNT_MAX
from inga.wire.value import put

from .town import Town

ROW = ["alice", 0, 1, 5, b"hello", 2.5]


def encoded(rows: object) -> bytes:
    out = bytearray()
    put(out, rows)
    return bytes(out)


def test_a_message_is_as_old_as_its_giver_says() -> None:
    (kept,) = read_history(encoded([ROW]), 10.0)
    assert (kept.sender, kept.src, kept.view, kept.seq, kept.data, kept.at) == (
        "alice",
        0,
        1,
        5,
        b"hello",
        7.5,
    )
    assert read_history(encoded([]), 10.0) == []


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (0, b"alice"),
        (1, -1),
        (1, COUNT_MAX + 1),
        (2, -1),
        (3, COUNT_MAX + 1),
        (3, True),
        (4, "hello"),
        (5, -0.5),
        (5, inf),
        (5, nan),
        (5, 2),
    ],
)
def test_what_is_no_message(place: int, value: object) -> None:
    row = [*ROW[:place], value, *ROW[place + 1 :]]
    with pytest.raises(WireError, match="no history"):
        read_history(encoded([ROW, row]), 10.0)


@pytest.mark.parametrize("rows", [ROW, [ROW[:5]], [[*ROW, 1]], {}, None])
def test_what_is_no_list_of_messages(rows: object) -> None:
    with pytest.raises(WireError, match="no history"):
        read_history(encoded(rows), 10.0)


def test_nothing_follows() -> None:
    with pytest.raises(WireError, match="no history"):
        read_history(encoded([ROW]) + b"\0", 10.0)


LARGE = HISTORY_MAX // 4 - EACH
"""Octets of a message of which four are kept."""


def founders(*names: str) -> tuple[Town, LastMessages]:
    """The first of them keeps messages, as many as there is room for."""
    town = Town(len(names), options=Options(gives=KIND, wants=KIND))
    return town, LastMessages(100, View.of(*names), town.session(names[0]).transfer)


def test_what_is_kept_is_bounded_in_octets_together_with_what_another_gave() -> None:
    _, memory = founders("alice", "bob")
    kept = memory.restore(encoded([[*ROW[:4], bytes(LARGE), 2.5]] * 3), 10.0)
    assert len(kept) == len(memory) == 3
    for count in (4, 4, 4):
        memory.sent("alice", 0, 2, [bytes(LARGE)], 11.0)
        assert len(memory) == count


def test_what_is_for_all_of_the_view_in_force_is_kept() -> None:
    _, memory = founders("alice", "bob")
    memory.follow([View.of("alice", "bob", "cathy")], 1.0)
    for dst, data in ((0b110, b"to both"), (0b010, b"to bob alone"), (None, b"to all")):
        packet = Packet(0, 1, b"")
        packet.dst, packet.payloads = dst, [data]
        memory.follow([Batch("alice", packet)], 2.0)
    assert [each.data for each in memory._kept] == [b"to both", b"to all"]


def test_what_was_kept_before_a_state_that_comes_is_no_part_of_what_is_kept() -> None:
    town = Town(1, each={"alice": Options(gives=KIND)}, options=Options(gives=KIND, wants=KIND))
    town.quiet()
    town.knock("bob", wants=KIND)
    town.wait(0.5)
    transfer = town.session("bob").transfer
    assert transfer.lacks and transfer.incoming is not None
    memory = LastMessages(100, View.of("bob"), transfer)
    memory.sent("bob", 0, 1, [bytes(LARGE)] * 4, 1.0)
    memory.follow([transfer.incoming.cut], 1.0)
    assert len(memory) == 0
    memory.sent("bob", 1, 2, [bytes(LARGE)] * 4, 2.0)
    assert len(memory) == 4
