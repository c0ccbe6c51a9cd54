"""From one view to the next: what goes along under other indices, and what the traces of a new member say."""

from collections.abc import Sequence
from dataclasses import replace

from inga.model.view import Member, View
from inga.recipes import Options, find
from inga.session.session import Session
from inga.stack.stack import Ready, Stack, joined
from inga.trace.memory import MemoryTrace

from .harness import Net

ALICE, BOB, CATHY = range(3)


class Shelf:
    """A book whose traces stay in memory."""

    def __init__(self, processes: int) -> None:
        self.processes = processes
        self.traces: dict[int, MemoryTrace] = {}

    def number(self, process: int, name: str = "") -> int:
        return process

    def trace(self, process: int, name: str = "") -> MemoryTrace:
        return self.traces.setdefault(process, MemoryTrace(process, self.processes))

    def reserve(self, count: int, least: int) -> Sequence[int]:
        return range(least, least + count)

    def past(self, view: int) -> int | None:
        return None


def install(stack: Stack, view: View, cut: Sequence[int] | None) -> Ready:
    stack.views.install(view, find(view.recipe).build(Options()), cut, (0,) * view.total)
    return stack.ready()


def without_bob(stack: Stack, *newcomers: str) -> View:
    alice, _, cathy = stack.view.members
    members = (alice, cathy, *map(Member, newcomers))
    return replace(stack.view, number=2, attempt=1, members=members, joined=newcomers, left=("bob",))


def test_addresses_go_along_under_other_indices() -> None:
    alice = Net(3, "fifo").stacks[ALICE]
    alice.addresses |= {BOB: "where bob was", CATHY: "where cathy is"}
    known = alice.addresses
    install(alice, without_bob(alice, "dave"), [0, 0, 0])
    assert known == {1: "where cathy is"}, "nobody knows where dave is"
    assert known is alice.addresses, "drivers look into it"


def test_what_was_said_before_still_leaves_unless_it_is_for_one_that_is_gone() -> None:
    alice = Net(3, "fifo").stacks[ALICE]
    session = alice.layer(Session.name)
    assert isinstance(session, Session)
    for to in (None, BOB, CATHY):
        session.say(to, 1, "alive", {})
    said = install(alice, without_bob(alice), [0, 0, 0]).send
    assert [to for to, datagram in said if b'"alive"' in joined(datagram)] == [None, 1]


def come_back(stack: Stack) -> None:
    """The others went on without alice: she is a new member, process 3, of a later view with bob."""
    stack.views.abandon()
    stack.member = stack.member.reborn()
    members = (stack.view.members[BOB], stack.member)
    later = replace(
        stack.view, number=4, attempt=1, members=members, joined=("alice",), processes=(1, 3), total=4
    )
    install(stack, later, None)


def traced() -> tuple[Net, Shelf]:
    net, book = Net(3, "vector", traced=True), Shelf(4)
    net.stacks[ALICE].record(book)
    return net, book


def test_rows_of_one_that_came_back_are_in_the_numbers_of_its_new_view() -> None:
    net, book = traced()
    alice = net.stacks[ALICE]
    come_back(alice)
    alice.send(b"back again", now=1.0)
    alice.ready()
    rows = {row.step: row for row in book.traces[3].rows}
    assert rows["view"].dst == 1 << 1 | 1 << 3
    assert (rows["send"].view, rows["send"].src) == (4, 3)


def test_what_one_took_late_of_a_view_in_which_it_was_another_leaves_no_row() -> None:
    net, book = traced()
    net.takes = False
    alice = net.stacks[ALICE]
    net.send(ALICE, b"hers")
    net.send(BOB, b"his")
    net.settle()
    (unread,) = net.batches[ALICE]
    come_back(alice)
    before = [row.step for row in book.traces[3].rows]
    alice.taken([unread.packet], now=1.0)
    assert [row.step for row in book.traces[3].rows] == before
