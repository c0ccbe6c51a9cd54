"""Well-formed datagrams that no member sent, against a group without keys: what holds, and what only a key could mend.

Whoever can write packets can write any of these, with the right check. What holds: it is counted and dropped where no honest
member could have said it, work and memory for it are bounded, and what was only rumoured ends without harm.
"""

from collections.abc import Callable
from dataclasses import replace
from time import process_time
from typing import Any

import pytest

from inga.lab.fuzz.native import WORDS as VOCABULARY
from inga.layers.reliable import EARLY_BYTES, Reliable
from inga.layers.sco.layer import Sco
from inga.model.packet import DATA, Packet
from inga.model.stamp import Stamp
from inga.model.view import MEMBERS_MAX, Member, View
from inga.recipes import Options
from inga.session.changes import VIEWS_MAX
from inga.session.closing import LENT_MAX
from inga.session.description import PROCESSES_MAX, described, named
from inga.session.door import NAME_MAX, REFUSED_MAX
from inga.session.hearing import ADDRESSES_MAX, OUTSIDE_WORDS_MAX, REMEMBERED_FOR, WORDS, Hearing
from inga.session.newcomer import Newcomer
from inga.session.pieces import ANSWER_MAX, PIECE_MIN
from inga.session.session import Session
from inga.stack.budget import ANSWERS_MAX
from inga.stack.chain import ELSEWHERE_MAX
from inga.stack.hooks import SPREAD_MAX
from inga.stack.stack import Stack, joined
from inga.wire import selective
from inga.wire.co import CoExtension, pack
from inga.wire.packet import COUNT_MAX, OUTSIDE, encode
from inga.wire.told import TEXT_MAX, said

from ..stack.harness import Net
from .town import Town

REPAIRED = ("fifo", "vector", "relay", "co", "sco", "total")
"""Orders that ask for what they lack."""

UDP_MAX = 65_507
"""Bytes of the largest datagram there is."""

FLOOD = int(1.25 * ANSWERS_MAX)
"""Datagrams at one moment: more than anybody's budget."""


def forged(stack: Stack, packet: Packet) -> bytes:
    """A datagram that a member of this view could have sent."""
    return joined(encode(packet, stack.wire.group_of(packet)))


def words(stack: Stack, src: int, do: str, /, **what: Any) -> bytes:
    """The same, of the session."""
    packet = Packet(src, stack.view.number, kind=Session.id)
    packet.ext = said(do, **what)
    return forged(stack, packet)


def outside(stack: Stack, do: str, **what: Any) -> bytes:
    packet = Packet(0, OUTSIDE, kind=Session.id)
    packet.ext = said(do, **what)
    return forged(stack, packet)


def control(order: str, src: int, *, sent: int, lacks: tuple[tuple[int, int], ...] = ()) -> Packet:
    """What a member says of itself between messages: that it has sent so much, and lacks these."""
    kind = {"co": 5, "sco": Sco.id}.get(order, Reliable.id)
    packet = Packet(src, 1, kind=kind)
    if order == "co":
        numbers = (1, 1, 1)
        if lacks:
            packet.ext = pack(CoExtension(100, numbers, runs=lacks))
        else:
            packet.seq, packet.ext = sent + 1, pack(CoExtension(100, numbers, confirmed=numbers))
    elif order == "sco":
        packet.ext = selective.pack(100, 1, (), ())
        if lacks:
            packet.runs = lacks
        else:
            packet.seq = packet.lsn = sent + 1
    else:
        packet.ack = (0, 0, 0)
        if lacks:
            packet.runs = lacks
        else:
            packet.lsn, packet.asks = sent, True
    return packet


def check_talk(net: Net, *members: int) -> None:
    """Everybody says something, and everybody hears it, for longer than anybody is waited for."""
    for number in range(3):
        for member in members:
            net.send(member, b"%d of %d" % (number, member))
        net.wait(60.0)
    for member in members:
        heard = net.texts(member)
        assert {f"{n} of {m}" for n in range(3) for m in members if m != member} <= set(heard)
        assert net.errors[member] is None and net.stacks[member].writable


# What is only rumoured


@pytest.mark.parametrize("order", REPAIRED)
@pytest.mark.parametrize("sent", [1, 100, 8000])
def test_a_rumour_of_packets_that_were_never_sent(order: str, sent: int) -> None:
    """Whoever searches for them asks the member that is said to have sent them, and is told that there are none."""
    net = Net(3, order, options=Options(echo=False))
    net.send(0, b"before")
    net.wait(1.0)
    for member in (1, 2):
        net.inject(member, forged(net.stacks[member], control(order, 0, sent=sent + 1)))
    check_talk(net, 0, 1, 2)
    assert all(stack.counts["nack"] < 50 for stack in net.stacks)


@pytest.mark.parametrize("order", REPAIRED)
def test_a_rumour_beyond_every_window_is_dropped(order: str) -> None:
    net = Net(3, order, options=Options(echo=False))
    net.inject(1, forged(net.stacks[1], control(order, 0, sent=1 << 20)))
    (reason,) = net.stacks[1].rejected
    assert reason in ("lsn", "forged") and not net.under_way
    check_talk(net, 0, 1, 2)


# Floods


@pytest.mark.parametrize("order", REPAIRED)
def test_a_flood_of_requests_for_repair(order: str) -> None:
    net = Net(3, order, options=Options(echo=False))
    for number in range(20):
        net.send(0, b"%d" % number)
    net.under_way.clear()
    alice, before = net.stacks[0], len(net.log)
    request = forged(alice, control(order, 1, sent=0, lacks=((1, 20),)))
    for _ in range(FLOOD // 64):
        net.inject(0, *[request] * 64)
    assert alice.rejected["budget"] > FLOOD // 8
    assert len(net.log) - before <= ANSWERS_MAX + 64
    net.under_way.clear()
    net.wait(1.0)
    check_talk(net, 0, 1, 2)


@pytest.mark.parametrize("order", REPAIRED)
def test_a_flood_of_heartbeats_and_polls(order: str) -> None:
    net = Net(3, order, options=Options(echo=False))
    net.send(0, b"x")
    net.wait(1.0)
    beat = control(order, 0, sent=1)
    beat.asks = True
    before = len(net.log)
    for _ in range(FLOOD // 64):
        net.inject(1, *[forged(net.stacks[1], beat)] * 64)
    assert len(net.log) - before <= ANSWERS_MAX + 64
    assert net.stacks[1].rejected["budget"] > FLOOD // 8
    net.under_way.clear()
    check_talk(net, 0, 1, 2)


@pytest.mark.parametrize("order", REPAIRED)
def test_one_who_loses_nearly_half_stays_within_its_budget(order: str) -> None:
    """As quickly as it can ask and be answered, in virtual time that counts each of it."""
    net = Net(3, order, options=Options(echo=False), seed=1)
    for number in range(100):
        for member in range(3):
            if net.stacks[member].writable:
                net.send(member, b"%d" % number)
        net.wait(0.0005, lose=lambda flight: flight.target == 1 and net.rng.random() < 0.4)
    net.wait(10.0)
    assert not any(stack.rejected["budget"] for stack in net.stacks)
    assert net.stacks[0].counts["repair"] > 10


@pytest.mark.parametrize("order", ("fifo", "vector"))
def test_packets_ahead_of_a_hole_are_bounded_in_bytes(order: str) -> None:
    net = Net(3, order)
    bob, body = net.stacks[1], bytes(50_000)
    for lsn in range(2, 302):
        packet = Packet(0, 1, body, kind=DATA)
        packet.lsn, packet.seq, packet.frag, packet.count = lsn, lsn, (0, 9), 0
        packet.stamp = Stamp((), 1)
        net.inject(1, forged(bob, packet))
    most = EARLY_BYTES // 3 + len(body)
    assert 300 - most // len(body) == bob.rejected["early"]
    reliable: Any = bob.layer("reliable")
    assert reliable._arrived[0].early_bytes <= most
    fragment: Any = bob.layer("fragment")
    assert fragment.held <= most


def test_a_flood_of_words() -> None:
    """Of one address, of a member, and of invented addresses: others are still heard."""
    town = Town(3)
    town.quiet()
    alice = town.member("alice")
    hello = outside(alice, "who", people=[])
    alice.receive([(hello, "mallory")] * 1000, now=town.now)
    assert alice.rejected["budget"] == 1000 - OUTSIDE_WORDS_MAX
    alice.receive([(words(alice, 1, "alive"), "mallory")] * 6000, now=town.now)
    assert alice.rejected["budget"] == 7000 - OUTSIDE_WORDS_MAX - WORDS
    alice.rejected.clear()
    alice.receive([(hello, f"mallory {n}") for n in range(5000)], now=town.now)
    assert alice.rejected["budget"] == 5001 - ADDRESSES_MAX
    alice.rejected.clear()
    alice.receive([(hello, "mallory 7")], now=town.now)
    assert not alice.rejected
    town.now += 1.0
    town.knock("dave")
    town.wait(3.0)  # bob was met at an address that was not his, and does not answer there
    town.check("vector", "alice", "bob", "cathy", "dave")


@pytest.mark.parametrize("kind", ["again", "far ahead", "small", "new"])
def test_pieces_of_a_state_use_up_the_budget_unless_they_bring_it_on(kind: str) -> None:
    """Whoever invents those that do has invented a state, and no more of it than a state can have."""
    town = Town(1, each={"alice": Options(gives="state")}, options=Options(wants="state"))
    town.quiet()
    town.knock("bob", wants="state")
    town.wait(0.5)
    bob, count = town.member("bob"), int(WORDS) + 100
    places, size = {
        "again": ([0] * count, PIECE_MIN),
        "far ahead": ([ANSWER_MAX] * count, PIECE_MIN),
        "small": (range(0, count * (PIECE_MIN - 1), PIECE_MIN - 1), PIECE_MIN - 1),
        "new": (range(0, count * PIECE_MIN, PIECE_MIN), PIECE_MIN),
    }[kind]
    bob.now = town.now
    town.session("bob").hearing.view(2)
    for offset in places:
        packet = Packet(0, bob.view.number, bytes(size), kind=Session.id)
        packet.ext = said("state", offset=offset, ask=False, all=False)
        bob.receive([(forged(bob, packet), None)], now=town.now)
    wanted = {"again": 1, "new": count}.get(kind, 0)
    assert bob.rejected["budget"] == max(count - WORDS - wanted, 0)


ANSWERS_EACH = 16
"""Copies of datagrams that one word brings forth in a group of three, at most: a state goes in pieces, all else in few."""


def told_often(content: dict[str, Any], times: int) -> dict[str, Any]:
    """The same, and every list holds all that it holds so often."""
    return {key: value * times if isinstance(value, list) else value for key, value in content.items()}


@pytest.mark.parametrize("do", VOCABULARY)
def test_who_is_named_many_times_in_one_word_is_answered_for_once(do: str) -> None:
    """To a member that misses nobody, and to one that knows of a goodbye that others have not heard."""
    town = Town(3, options=Options(detect=2.0, greet=True, echo=False))
    town.wait(3.0)
    alice, cathy = town.member("alice"), town.member("cathy").member
    who = {**named(cathy), "group": town.session("alice").digest}
    for _ in range(2):
        for member in range(3):
            what = {**VOCABULARY[do], **who, "people": [[*cathy.identity, ""]], "members": [member]}
            what = {**what, "members": [["cathy", 1, ""]]} if "recipe" in VOCABULARY[do] else what
            often = told_often(what, 500)
            for data in (words(alice, 1, do, **often), outside(alice, do, **often)):
                before = len(town.log)
                town.inject("alice", data, source="bob")
                assert len(town.log) - before <= ANSWERS_EACH
        town.inject("alice", outside(alice, "goodbye", **of_cathy(alice), group=who["group"]))


def test_an_address_that_is_silent_for_long_is_forgotten() -> None:
    hearing = Hearing()
    now = 1000.0
    assert hearing.hears_from("dave", now) and hearing.hears_from("erin", now)
    assert hearing.hears_from("dave", now + 1.0)
    now += REMEMBERED_FOR
    assert sum(hearing.hears_from(f"mallory {n}", now) for n in range(5000)) == ADDRESSES_MAX
    assert not hearing.hears_from("erin", now)
    assert hearing.hears_from("dave", now), "who was heard lately is heard although strangers flood us"


@pytest.mark.parametrize("order", REPAIRED)
def test_a_flood_from_elsewhere_uses_up_nothing_of_a_members_own(order: str) -> None:
    """Requests in bob's name, from an address that is not his: his own are answered all the same."""
    net = Net(3, order, options=Options(echo=False))
    alice = net.stacks[0]
    net.send(1, b"hello")
    alice.receive([(flight.data, "bob's") for flight in net.to(0)], now=net.now)
    net.wait(1.0)
    net.send(0, b"lost")
    net.under_way.clear()
    request = forged(alice, control(order, 1, sent=1, lacks=((1, 9),)))
    alice.receive([(request, "mallory's")] * 1000, now=net.now)
    assert alice.rejected["budget"] == 1000 - ELSEWHERE_MAX
    net.turn(0)
    net.under_way.clear()
    net.now += 0.006
    alice.receive([(request, "bob's")], now=net.now)
    net.turn(0)
    assert net.to(1, kind=DATA) and alice.rejected["budget"] == 1000 - ELSEWHERE_MAX


# Numbers that would use up all others


def flush(view: View, **change: Any) -> dict[str, Any]:
    """A change to a view of the same members, as a leader asks for it."""
    following = {**described(view), "number": view.number + 1, "attempt": 1, **change}
    return {**following, "gone": [], "slow": [], "wants": []}


@pytest.mark.parametrize("change", [{"attempt": COUNT_MAX}, {"number": COUNT_MAX}, {"number": VIEWS_MAX + 2}])
def test_a_change_with_a_huge_number_is_none(change: dict[str, int]) -> None:
    town = Town(3)
    town.quiet()
    for name in ("bob", "cathy"):
        stack = town.member(name)
        town.inject(name, words(stack, 0, "flush", **flush(stack.view, **change)))
        assert stack.rejected.pop("malformed") == 1 and not stack.closing
        refusal = {"number": 2, "attempt": COUNT_MAX, "asker": 1, "wish": 9, "why": "no"}
        town.inject(name, words(stack, 0, "refused", **refusal))
    outcome = town.use("bob", "fifo")
    town.quiet()
    assert outcome == [None]
    town.check("fifo", "alice", "bob", "cathy")


@pytest.mark.parametrize(
    ("traced", "total", "taken"),
    [
        (True, PROCESSES_MAX, True),
        (True, PROCESSES_MAX + 1, False),
        (False, PROCESSES_MAX + 1, True),
        (False, COUNT_MAX, True),
    ],
)
def test_a_view_of_a_traced_group_that_had_very_many_members(traced: bool, total: int, taken: bool) -> None:
    """Of each of them a number is kept, in every row."""
    town = Town(3, traced=traced)
    town.quiet()
    bob = town.member("bob")
    install(town, replace(bob.view, number=2, attempt=1, total=total))
    assert (bob.view.number == 2) is taken
    assert bob.rejected == ({} if taken else {"malformed": 1})
    if taken:
        install(town, replace(bob.view, number=3, attempt=1, traced=True))
        assert (bob.view.number == 3) is (total <= PROCESSES_MAX)
    assert len(town.changes("bob").cuts) <= PROCESSES_MAX


def install(town: Town, view: View) -> None:
    """Bob is told of a view, that all have reached its cut, and hears somebody in it."""
    bob = town.member("bob")
    none = [0] * len(bob.view)
    town.inject("bob", words(bob, 0, "flush", **described(view), gone=[], slow=[]))
    cut = {"sent": none, "counts": none, "most": none, "whole": none, "dealt": {}, "missed": {}}
    states = {"lack": [], "give": [], "released": [], "secret": ""}
    town.inject("bob", words(bob, 0, "cut", number=view.number, attempt=1, round=1, **cut, **states))
    town.session("bob").ahead(view.number)
    town.turn("bob")


@pytest.mark.parametrize("members", [MEMBERS_MAX, MEMBERS_MAX + 1])
def test_a_view_of_very_many_members(members: int) -> None:
    """What is kept of everybody about everybody would fill the memory."""
    people = tuple(Member(name) for name in ("dave", *map(str, range(1, members))))
    view = described(View(2, people, "none", leader=1, attempt=1))
    newcomer = Newcomer("", Member("dave"), now=0.0)
    packet = Packet(0, OUTSIDE, kind=Session.id)
    packet.ext = said("welcome", **view, group=f"{newcomer.group:08x}", cuts=[], secret="", host="dave")
    newcomer.receive([(joined(encode(packet, newcomer.lobby)), "mallory")], now=0.1)
    assert newcomer.refused is None
    assert (newcomer.view is None) is (members > MEMBERS_MAX)


def test_a_newcomer_from_a_view_of_a_huge_number() -> None:
    town = Town(3)
    town.quiet()
    alice = town.member("alice")
    who = {"name": "ghost", "incarnation": 1, "address": "", "group": town.session("alice").digest}
    asks = {"host": [alice.member.signed], "was": [], "spoken_in": 0, "bound": [], "part": [], "wants": ""}
    town.inject("alice", outside(alice, "hello", **who, **asks, view=COUNT_MAX), source="mallory")
    assert alice.rejected.pop("malformed") == 1
    town.knock("dave")
    town.wait(1.0)
    town.check("vector", "alice", "bob", "cathy", "dave")


@pytest.mark.parametrize(
    ("ghosts", "more"),
    [
        (17, {"wants": "x" * NAME_MAX}),
        (17, {"wants": "x" * (NAME_MAX + 1)}),
        (17, {"wants": "x" * TEXT_MAX}),
        (REFUSED_MAX, {"address": "\U0001f600" * NAME_MAX, "wants": "\U0001f600" * NAME_MAX}),
    ],
    ids=["wants", "wants more", "wants much", "all is long"],
)
def test_newcomers_with_long_words_do_not_make_those_of_a_change_too_long(
    ghosts: int, more: dict[str, str]
) -> None:
    """All at once, as if they came from another part of the group: a datagram that is too long never leaves, and the view stays
    closed for good."""
    town = Town(3, "fifo", options=Options(detect=1.0, greet=True, echo=False))
    town.wait(1.0)
    alice = town.member("alice")
    asks = {"host": [alice.member.signed], "was": [], "spoken_in": 0, "bound": [], "part": ["nobody"]}
    what = {"incarnation": 1, "address": "", "group": town.session("alice").digest, "view": 0, **asks, **more}
    for number in range(ghosts):
        name = f"{number:02}".ljust(NAME_MAX if "address" in more else 2, "\U0001f600")
        town.inject("alice", outside(alice, "hello", **what, name=name), source="mallory")
    town.wait(40.0)
    assert max(len(copy.data) for copy in town.log) < UDP_MAX
    if len(more["wants"]) > NAME_MAX:
        assert alice.rejected == {"malformed": ghosts} and alice.view.number == 1
    else:
        assert any(len(view) > 3 for view in town.views("bob")), "some were let in"
    assert all(town.names(name) == ("alice", "bob", "cathy") for name in town.members)
    town.send("alice", b"and on")
    town.wait(1.0)
    assert b"and on" in town.texts("bob") and not town.errors


def closing_without_cathy(order: str, *said_before: bytes) -> Town:
    """Bob closes a view that cathy has left in the middle of it, as alice is said to have told him."""
    town = Town(3, order)
    town.quiet()
    bob = town.member("bob")
    for data in said_before:
        town.send("cathy", data)
        town.arrive(next(copy for copy in town.under_way if copy.target == "bob"))
    view = bob.view
    following = replace(
        view, number=2, attempt=1, members=view.members[:2], processes=(0, 1), failed=("cathy",)
    )
    told = {**described(following), "gone": [2], "slow": []}
    town.inject("bob", words(bob, 0, "flush", **told))
    assert bob.closing and not bob.rejected
    return town


def hear_cut(town: Town, **change: Any) -> Stack:
    """Bob hears this cut, and then somebody in the next view."""
    bob, none = town.member("bob"), [0, 0, 0]
    closing = town.changes("bob").closing
    assert closing is not None
    told = {"number": 2, "attempt": 1, "round": 1, "sent": none, "counts": none, "most": none, "whole": none}
    told |= {"dealt": {}, "missed": {}, "lack": [], "give": [], "released": [], "secret": ""}
    town.inject("bob", words(bob, 0, "cut", **told | change))
    town.session("bob").ahead(2)
    town.turn("bob")
    return bob


@pytest.mark.parametrize("order", REPAIRED)
@pytest.mark.parametrize(
    "change",
    [
        {"missed": {"2": [[0, 0, 0], [0, 0, 0]]}},
        {"missed": {"2": []}},
        {"missed": {"77": [[0, 0, 0]]}},
        {"missed": {"1": [[0, 0, 0]]}},  # of one that is here
        {"dealt": {"2": [[0, 5, 5]]}},
        {"dealt": {"2": [[0, 5, 3]]}},
        {"dealt": {"2": [[0, 0, 3]]}},
        {"dealt": {"2": [[3, 5, 6]]}},
        {"dealt": {"2": [[0, 1, SPREAD_MAX + 2]]}},
        {"dealt": {"2": [[0, 1, SPREAD_MAX]] * 2}},
        {"dealt": {"1": [[0, 1, 2]]}},
    ],
    ids=str,
)
def test_a_cut_that_nobody_can_have_made(order: str, change: dict[str, Any]) -> None:
    bob = hear_cut(closing_without_cathy(order), **change)
    assert bob.rejected == {"malformed": 1} and bob.closing and bob.view.number == 1


@pytest.mark.parametrize("order", REPAIRED)
def test_a_cut_that_says_what_one_missed(order: str) -> None:
    town = closing_without_cathy(order)
    bob = hear_cut(town, missed={"2": [[0, 3, 0]]})
    assert not bob.rejected and bob.view.number == 2
    assert town.session("bob").slow.missed_by(Member("cathy", 9)) == {"bob": 3}


@pytest.mark.parametrize("order", REPAIRED)
def test_a_cut_that_deals_as_much_as_there_can_be(order: str) -> None:
    """It is looked at for each thing that is heard meanwhile, and never comes."""
    town = closing_without_cathy(order)
    bob = hear_cut(town, dealt={"2": [[0, 1, SPREAD_MAX + 1], [1, 1, SPREAD_MAX + 1]]})
    assert not bob.rejected and bob.closing
    began = process_time()
    for _ in range(20):
        town.session("bob").changes.tick(town.now)
    assert process_time() - began < 4.0, "a second is much too long already"


@pytest.mark.parametrize(("before", "lent"), [(LENT_MAX - 1, 1), (LENT_MAX, 0)])
def test_a_request_for_what_is_lent_with_very_many_runs(before: int, lent: int) -> None:
    """As many are looked at as there can be packets in the answer."""
    town = closing_without_cathy("vector", b"of cathy")
    bob = town.member("bob")
    runs = [[number, number + 1] for number in range(100, 100 + before)] + [[1, 2]]
    town.inject("bob", words(bob, 0, "want", number=2, attempt=1, src=2, runs=runs))
    assert bob.counts["lent"] == lent


# Where members are


@pytest.mark.parametrize("order", REPAIRED)
def test_a_replay_while_an_address_is_doubted_does_not_move_it(order: str) -> None:
    net = Net(2, order, options=Options(echo=False))
    bob = net.stacks[1]

    def hear(where: str, data: bytes) -> None:
        bob.receive([(data, where)], now=net.now)
        net.turn(1)

    net.send(0, b"one")
    for flight in net.to(1):
        hear("home", flight.data)
    net.send(1, b"from bob")
    net.wait(1.0)
    controls = [flight for flight in net.log if flight.target == 1 and flight.kind not in (DATA, Session.id)]
    assert bob.addresses == {0: "home"} and controls
    bob.doubt(0)
    for flight in controls:
        hear("mallory", flight.data)
    assert bob.addresses == {}, "what is for alice goes to everybody"
    net.send(0, b"two")
    for flight in net.to(1, kind=DATA):
        hear("home", flight.data)
    assert bob.addresses == {0: "home"}


# What a plain group cannot know


def test_a_ghost_that_is_let_in_is_excluded_again() -> None:
    """Until then everybody waits for it, and it can be forged again: keys are for that."""
    town = Town(3, "fifo", options=Options(detect=1.0, greet=True, echo=False))
    town.wait(1.0)
    alice = town.member("alice")
    who = {"name": "ghost", "incarnation": 1, "address": "", "group": town.session("alice").digest}
    asks = {"host": [alice.member.signed], "was": [], "spoken_in": 0, "bound": [], "part": [], "wants": ""}
    town.inject("alice", outside(alice, "hello", **who, **asks, view=0), source="mallory")
    town.wait(0.5)
    assert "ghost" in town.names("bob")
    town.wait(5.0)
    assert all(town.names(name) == ("alice", "bob", "cathy") for name in town.members)
    town.send("alice", b"and on")
    town.wait(1.0)
    assert b"and on" in town.texts("bob")


@pytest.mark.parametrize("order", REPAIRED)
@pytest.mark.parametrize("source", ["cathy", "mallory"])
def test_who_repeats_what_a_dead_member_said_keeps_it_a_member_and_no_longer(order: str, source: str) -> None:
    """A member may have moved and have nothing new to say, so what was said before counts as a sign of life from anywhere."""
    town = Town(3, order, options=Options(detect=1.0, greet=True, echo=False))
    town.wait(2.0)
    said_by = [copy for copy in town.log if (copy.source, copy.do) == ("cathy", "alive")]
    town.crash("cathy")
    for _ in range(20):
        for name in ("alice", "bob"):
            town.inject(name, next(copy.data for copy in said_by if copy.target == name), source=source)
        town.wait(0.25)
    assert "cathy" in town.names("alice") and town.member("alice").addresses[2] == "cathy"
    town.wait(3.0)
    assert all(town.names(name) == ("alice", "bob") for name in town.members)
    town.send("alice", b"and on")
    town.wait(1.0)
    assert b"and on" in town.texts("bob") and not town.errors


def of_cathy(stack: Stack) -> dict[str, Any]:
    cathy: Member = stack.view.members[2]
    signed = {"name": cathy.name, "incarnation": cathy.incarnation, "view": stack.view.number}
    return {**signed, "itself": True, "bound": False, "birth": 0}


def false_body(stack: Stack) -> bytes:
    packet = Packet(2, stack.view.number, b"\0false")
    packet.lsn = packet.seq = 1
    packet.stamp = Stamp((), 1)
    return forged(stack, packet)


REMAINS: dict[str, tuple[Callable[[Town], bytes], Callable[[Town], bool]]] = {
    "a goodbye of another member": (
        lambda town: outside(
            town.member("bob"), "goodbye", **of_cathy(town.member("bob")), group=town.session("bob").digest
        ),
        lambda town: "cathy" not in town.names("bob"),
    ),
    "another order, asked for in a member's name": (
        lambda town: words(town.member("alice"), 1, "use", recipe="none", wish=1),
        lambda town: town.member("alice").view.recipe == "none",
    ),
    "the next number with a false body": (
        lambda town: false_body(town.member("bob")),
        lambda town: b"false" in town.texts("bob"),
    ),
}


@pytest.mark.parametrize("what", REMAINS)
def test_what_remains_for_groups_with_keys(what: str) -> None:
    """In a plain group these are believed, as they are said to be; nobody fails by it."""
    forge, is_believed = REMAINS[what]
    town = Town(3, "vector", options=Options(echo=False))
    town.quiet()
    data = forge(town)
    for name in town.members:
        town.inject(name, data, source="mallory")
    town.wait(5.0)
    assert is_believed(town)
    assert not town.errors or set(town.errors) == {"cathy"}
