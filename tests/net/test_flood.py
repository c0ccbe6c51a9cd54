"""When a member of a secured group takes what comes for a flood, whom it then hears less of, and when that ends."""

from collections.abc import Hashable

import pytest

from inga.net import flood
from inga.net.address import HostPort
from inga.net.flood import (
    EVERY,
    MOVED_AFTER,
    NOISY_A_SECOND,
    REMEMBERED_FOR,
    REMEMBERED_MAX,
    STRICT_FOR,
    USELESS_A_SECOND,
    WORDS_A_SECOND,
    FloodWatch,
    PlainSenders,
)
from inga.net.sieve import SAMPLE, WORDS_SAMPLE, StrictRules
from inga.secure.handshake import KNOCK
from inga.stack.native import Direct

from ..secure.helpers import Wire, known, meet, packet, view_of, word

LUNCH = view_of("alice", "bob")
FLOOD = int(USELESS_A_SECOND * EVERY)


class Scene:
    """Alice and bob in a view, mallory who has proven who she is, and alice's watch."""

    def __init__(self) -> None:
        self.wire = Wire()
        for name in ("alice", "bob", "mallory"):
            self.wire.add(name, known())
        meet(self.wire, "alice", "bob", "mallory")
        self.wire.enter(LUNCH, "alice", "bob")
        self.wire.run(seconds=0.1)
        self.alice = self.wire.guards["alice"]
        self.watch = FloodWatch(self.alice.senders)
        self.watch.look(self.wire.now)
        self.alice.senders.useless()  # what they said to each other

    def comes(self, count: int, source: Hashable = "stranger", data: bytes = b"in" + bytes(60)) -> None:
        for _ in range(count):
            self.wire.give("alice", data, source)

    def later(self, seconds: float = EVERY) -> bool:
        self.wire.now += seconds
        return self.watch.look(self.wire.now)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_flood_is_as_much_as_nobody_needs(scene: Scene) -> None:
    scene.comes(FLOOD - 1)
    assert not scene.later() and scene.watch.strict is None
    scene.comes(FLOOD)
    assert not scene.later(EVERY / 2) and scene.watch.strict is None  # it is not looked yet
    assert scene.later(EVERY / 2)
    strict = scene.watch.strict
    assert strict is not None and strict.members == {"bob"} and not strict.noisy and not strict.samples_words
    assert scene.alice.places == {"bob", "mallory"}


def test_many_places_are_one_flood(scene: Scene) -> None:
    for number in range(FLOOD * 3):
        scene.comes(1, ("10.0.0.1", number))
    assert scene.later() and scene.watch.strict is not None


def test_what_members_send_is_no_flood(scene: Scene) -> None:
    """What comes late from the view before, or what a member repeats."""
    scene.comes(10 * FLOOD, "bob")
    assert not scene.later() and scene.watch.strict is None


def test_a_flood_is_over_when_its_samples_say_so(scene: Scene) -> None:
    scene.comes(FLOOD)
    assert scene.later()
    for _ in range(20):  # it goes on, and one of so many comes in
        scene.comes(FLOOD // SAMPLE + 1)
        assert not scene.later() and scene.watch.strict is not None
    end = scene.wire.now + STRICT_FOR
    while scene.wire.now < end - EVERY:
        scene.comes(FLOOD // SAMPLE - 1)
        assert not scene.later() and scene.watch.strict is not None
    assert scene.later() and scene.watch.strict is None
    scene.comes(FLOOD // SAMPLE + 1)  # few that are all there are
    assert not scene.later() and scene.watch.strict is None


def test_words_are_sampled_when_it_is_words_that_come(scene: Scene) -> None:
    knock = scene.wire.said(KNOCK, "mallory")[0]
    spoiled = knock[:-1] + bytes([knock[-1] ^ 1])
    scene.comes(int(WORDS_A_SECOND * EVERY) - 1, "stranger", spoiled)
    scene.later()
    assert scene.watch.strict is None or not scene.watch.strict.samples_words
    scene.comes(int(WORDS_A_SECOND * EVERY), "stranger", spoiled)
    assert scene.later()
    assert scene.watch.strict is not None and scene.watch.strict.samples_words
    for _ in range(20):
        scene.comes(int(WORDS_A_SECOND * EVERY) // WORDS_SAMPLE + 1, "stranger", spoiled)
        assert not scene.later()
    assert scene.watch.strict is not None and scene.watch.strict.samples_words
    scene.later(STRICT_FOR)
    scene.later(STRICT_FOR)
    assert scene.watch.strict is None


def test_one_that_has_proven_who_it_is_and_is_no_member_is_heard_less_of_alone(scene: Scene) -> None:
    noise = int(NOISY_A_SECOND * EVERY)
    scene.comes(noise - 1, "mallory")
    assert not scene.later() and scene.watch.strict is None
    scene.comes(noise, "mallory")
    assert scene.later()
    assert scene.watch.strict is not None and scene.watch.strict.noisy == {"mallory"}
    for _ in range(20):
        scene.comes(noise // SAMPLE + 1, "mallory")
        assert not scene.later()
    scene.later(STRICT_FOR)
    assert scene.watch.strict is None


def test_what_she_says_over_her_channel_counts_too(scene: Scene) -> None:
    for _ in range(int(NOISY_A_SECOND * EVERY)):
        scene.wire.run(("mallory", Direct("alice"), word(b"hear me")))
    assert scene.later()
    assert scene.watch.strict is not None and scene.watch.strict.noisy == {"mallory"}


def test_noisy_places_are_bounded_and_forgotten(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flood, "NOISY_MAX", 2)
    names = [f"visitor{i}" for i in range(4)]
    for name in names:
        scene.wire.add(name, known())
        meet(scene.wire, name)
    scene.later()
    for name in names:
        scene.comes(int(NOISY_A_SECOND * EVERY), name)
    assert scene.later()
    assert scene.watch.strict is not None and scene.watch.strict.noisy == set(names[2:])
    scene.wire.enter(view_of("alice", names[-1], number=2, attempt=1), "alice")  # who is let in is a member
    scene.later()
    assert names[-1] not in scene.watch.strict.noisy and names[-1] in scene.watch.strict.members


def test_nobody_is_protected_from_strangers_that_is_alone() -> None:
    wire = Wire()
    alice = wire.add("alice", known())
    watch = FloodWatch(alice.senders)
    for _ in range(3):
        for _ in range(10 * FLOOD):
            wire.give("alice", b"in" + bytes(60))
        wire.now += EVERY
        assert not watch.look(wire.now) and watch.strict is None


def test_a_view_that_is_over_is_of_no_use_and_the_one_in_force_is(scene: Scene) -> None:
    """One that was in a view keeps its keys, and may send under them as long as it likes."""
    wire = scene.wire
    wire.run(("bob", 0, packet(LUNCH, 1, b"now")))
    old = [data for source, to, data in wire.tape if (source, to) == ("bob", "alice")][-1]
    assert scene.alice.senders.useless().by_place == {}
    wire.passes = lambda source, to, data: False
    wire.run(("bob", 0, packet(LUNCH, 1, b"late")))
    late = [data for source, to, data in wire.tape if (source, to) == ("bob", "alice")][-1]
    wire.enter(view_of("alice", "cathy", number=2, attempt=1), "alice")
    assert wire.give("alice", late, "elsewhere")
    wire.give("alice", old, "elsewhere")
    assert scene.alice.senders.useless().by_place == {"elsewhere": 2}
    assert scene.alice.senders.useless() == ({}, 0, 0)


MEMBER, STRANGER = ("127.0.0.1", 7), ("127.0.0.1", 8)


def places(senders: PlainSenders) -> set[HostPort]:
    """Where members are."""
    return {(host, int(port)) for host, port in (each.split(":") for each in senders.members)}


def test_in_a_plain_group_all_that_comes_from_elsewhere_than_members_counts() -> None:
    """There nothing else tells what is of use: what a stranger repeats or makes up may well be accepted."""
    senders = PlainSenders()
    watch = FloodWatch(senders)
    watch.look(0.0)
    senders.note(STRANGER, 10 * FLOOD, 0.0)
    assert not watch.look(EVERY) and watch.strict is None  # nobody was met yet
    senders.locate({1: MEMBER}, 2 * EVERY)
    senders.note(STRANGER, FLOOD - 1, 2 * EVERY)
    senders.note(MEMBER, FLOOD, 2 * EVERY)
    assert not watch.look(2 * EVERY)
    senders.note(STRANGER, FLOOD, 3 * EVERY)
    assert watch.look(3 * EVERY)
    assert watch.strict == StrictRules(frozenset(["127.0.0.1:7"]), frozenset(), False, None)
    senders.note(STRANGER, FLOOD // SAMPLE + 1, 4 * EVERY)
    assert not watch.look(4 * EVERY)
    senders.locate({1: MEMBER, 2: ("127.0.0.1", 9)}, 5 * EVERY)
    assert watch.look(5 * EVERY) and len(watch.strict.members) == 2
    assert watch.look(4 * EVERY + STRICT_FOR) and watch.strict is None


def test_who_repeats_what_a_member_sends_is_not_taken_for_it_while_the_member_sends() -> None:
    """However much of what it repeats is accepted; and it goes on to count as one that floods."""
    senders = PlainSenders()
    watch = FloodWatch(senders)
    senders.locate({1: MEMBER}, 0.0)
    watch.look(0.0)
    for look in range(1, 1000):
        now = look * EVERY
        senders.note(MEMBER, 1, now - MOVED_AFTER + EVERY if look % 19 else now)
        senders.note(STRANGER, FLOOD, now)
        senders.locate({1: STRANGER}, now)
        assert places(senders) == {MEMBER}
        watch.look(now)
        assert watch.strict is not None and watch.strict.members == {"127.0.0.1:7"}


def test_a_member_that_has_moved_is_found_when_nothing_has_come_from_where_it_was() -> None:
    senders = PlainSenders()
    senders.locate({1: MEMBER}, 0.0)
    senders.note(MEMBER, 1, 3.0)
    senders.locate({1: STRANGER}, 3.0 + MOVED_AFTER - 0.1)
    assert places(senders) == {MEMBER}
    senders.locate({1: STRANGER}, 3.0 + MOVED_AFTER)
    assert places(senders) == {MEMBER, STRANGER}
    senders.note(STRANGER, 1, 20.0)
    senders.locate({1: MEMBER}, 20.0 + MOVED_AFTER - 0.1)  # back again, and not yet believed
    senders.locate({1: MEMBER}, 20.0 + MOVED_AFTER)
    senders.locate({}, 20.0 + MOVED_AFTER - 0.2 + REMEMBERED_FOR)
    assert places(senders) == {MEMBER, STRANGER}
    senders.locate({}, 20.0 + MOVED_AFTER + REMEMBERED_FOR)
    assert places(senders) == {MEMBER}, "of which no packet was accepted of late, but it is where it was"


def test_a_place_counts_as_a_members_for_a_while_in_the_next_view() -> None:
    """In which numbers are others. Whoever is taken for a member there keeps out nothing of what the member sends, and is not
    remembered for ever."""
    senders = PlainSenders()
    senders.locate({1: MEMBER}, 0.0)
    senders.renumber()
    for now in (1.0, 59.9):
        senders.locate({2: STRANGER}, now)
        assert places(senders) == {MEMBER, STRANGER}
    senders.locate({2: STRANGER}, 60.0)
    assert places(senders) == senders._heard.keys() == {STRANGER}


@pytest.mark.parametrize("members", [1, 2 * REMEMBERED_MAX])
def test_places_of_members_are_all_remembered_and_few_of_former_ones(members: int) -> None:
    senders = PlainSenders()
    for port in range(9, 9 + 2 * REMEMBERED_MAX):
        senders.renumber()
        senders.locate({1: ("127.0.0.1", port)}, 61.0)
    senders.renumber()
    here = {member: ("127.0.0.2", member) for member in range(members)}
    for _ in range(2):
        senders.locate(here, 61.0)
    assert len(senders.members) == len(senders._heard) == members + REMEMBERED_MAX
    assert places(senders) >= {*here.values(), ("127.0.0.1", port)}


def test_one_that_is_left_alone_in_a_flood_hears_everybody_again(scene: Scene) -> None:
    """Whoever comes back could be kept out otherwise, and there is nobody to protect."""
    scene.comes(FLOOD)
    assert scene.later() and scene.watch.strict is not None
    scene.wire.enter(view_of("alice", number=2, attempt=1), "alice")
    scene.comes(FLOOD)
    assert scene.later() and scene.watch.strict is None
