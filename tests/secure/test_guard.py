"""Guards that meet, give each other keys, and go from view to view."""

import pickle

import pytest

pytest.importorskip("cryptography")

from inga.model.errors import WireError
from inga.model.view import Member
from inga.secure.guard import (
    ADDRESSES_EACH,
    CHANNELS_EACH,
    EXPECTED_MAX,
    HEARD_WITHIN,
    SILENT_MAX,
    GroupGuard,
)
from inga.secure.handshake import ANSWER, CONFIRM, COOKIE, GOOD_FOR, KNOCK, Other, PairKeys
from inga.secure.sealing import AES, EPOCH_SECONDS, EPOCHS_AHEAD
from inga.secure.useless import PLACES_MAX
from inga.secure.views import ViewKeys
from inga.secure.whereabouts import MOVED
from inga.session.newcomer import Newcomer
from inga.stack.native import Direct, Outsider
from inga.stack.stack import EVERYBODY, joined

from .helpers import AUTHORITY, MOMENT, OTHER_SECRET, Wire, certified, known, meet, packet, tag, view_of, word

FIRST = view_of("alice", "bob", "cathy")
SECOND = view_of("alice", "bob", number=2, attempt=1)


@pytest.fixture(params=["secret", "certificate"])
def wire(request: pytest.FixtureRequest) -> Wire:
    """Three guards that have never met."""
    wire = Wire()
    for name in FIRST.names:
        wire.add(name, known() if request.param == "secret" else certified(name))
    return wire


def in_first_view(wire: Wire) -> Wire:
    wire.enter(FIRST, *FIRST.names)
    wire.run(seconds=1.0)
    return wire


def test_members_of_a_first_view_find_each_other(wire: Wire) -> None:
    in_first_view(wire)
    hello = packet(FIRST, 0, b"hello")
    wire.run(("alice", EVERYBODY, hello))
    assert wire.heard == {"alice": [], "bob": [hello], "cathy": [hello]}
    assert all(wire.rejected(name) == {} for name in wire.guards)


def test_nothing_is_said_that_is_not_sealed(wire: Wire) -> None:
    in_first_view(wire)
    wire.run(("alice", EVERYBODY, packet(FIRST, 0, b"the cake is a lie")))
    wire.run(("alice", EVERYBODY, word(b"the cake is a lie")))
    assert len(wire.tape) > 10
    assert not any(b"cake" in data or b"alice" in data for _, _, data in wire.tape)


def test_words_that_belong_to_no_view_come_to_those_who_are_not_known_yet(wire: Wire) -> None:
    wire.run(("alice", EVERYBODY, word(b"hello")))
    assert wire.heard == {"alice": [], "bob": [word(b"hello")], "cathy": [word(b"hello")]}
    wire.now += 10.0
    wire.run(("bob", Outsider("cathy"), word(b"hi")))
    assert wire.heard["cathy"] == [word(b"hello"), word(b"hi")]


def test_lost_words_of_handshakes_are_said_again(wire: Wire) -> None:
    lost = []

    def loses_each_once(source: str, to: str, data: bytes) -> bool:
        which = (source, to, data[3])
        lost.append(which)
        return data[3] == AES or lost.count(which) > 1

    wire.passes = loses_each_once
    in_first_view(wire)
    wire.run(seconds=5.0)
    for source, me in (("alice", 0), ("bob", 1), ("cathy", 2)):
        wire.run((source, EVERYBODY, packet(FIRST, me, b"hello")))
    assert [len(heard) for heard in wire.heard.values()] == [2, 2, 2]
    assert {kind for _, _, kind in lost} >= {KNOCK, ANSWER, CONFIRM, AES}


def test_the_secret_of_the_next_view_comes_over_the_channel(wire: Wire) -> None:
    in_first_view(wire)
    alice, bob = wire.guards["alice"], wire.guards["bob"]
    go_on(wire)
    hello = packet(SECOND, 0, b"hello")
    wire.run(("alice", EVERYBODY, hello))
    assert wire.heard == {"alice": [], "bob": [hello], "cathy": []}
    assert alice.secret_for("bob") is not None
    wire.run(("bob", EVERYBODY, packet(SECOND, 1, b"hi")))
    assert wire.heard["alice"] == [packet(SECOND, 1, b"hi")]
    assert bob.secret_for("nobody") is None


def go_on(wire: Wire) -> bytes:
    """Alice leads the change to the second view, which has her and bob."""
    alice, bob = wire.guards["alice"], wire.guards["bob"]
    secret = alice.fresh()
    for guard, me in ((alice, 0), (bob, 1)):
        wrapped = alice.wrap(guard._name, secret)
        assert wrapped is not None
        assert secret.hex() not in wrapped
        guard.expect(tag(SECOND), SECOND, me, guard.unwrap("alice", wrapped))
    wire.enter(SECOND, "alice", "bob")
    return secret


def test_what_is_said_in_the_next_view_can_be_read_before_it_is_in_force(wire: Wire) -> None:
    in_first_view(wire)
    alice, bob = wire.guards["alice"], wire.guards["bob"]
    secret = alice.fresh()
    wrapped = alice.wrap("bob", secret)
    assert wrapped is not None
    alice.expect(tag(SECOND), SECOND, 0, secret)
    bob.expect(tag(SECOND), SECOND, 1, bob.unwrap("alice", wrapped))
    wire.enter(SECOND, "alice")
    wire.run(("alice", EVERYBODY, packet(SECOND, 0, b"early")))
    assert wire.heard["bob"] == [packet(SECOND, 0, b"early")]
    wire.run(("bob", EVERYBODY, packet(FIRST, 1, b"late")))
    assert wire.heard["alice"] == [packet(FIRST, 1, b"late")]


def test_a_member_that_is_met_long_after_is_understood(wire: Wire) -> None:
    """The keys in use are given, not those of the beginning."""
    wire.passes = lambda source, to, data: "cathy" not in (source, to)
    in_first_view(wire)
    for _ in range(EPOCHS_AHEAD + 3):
        wire.run(("alice", EVERYBODY, packet(FIRST, 0, b"talk")))
        wire.now += EPOCH_SECONDS
    before = next(data for source, _, data in wire.tape if source == "alice" and data[3] == AES)
    wire.passes = lambda source, to, data: True
    wire.run(seconds=3.0)
    wire.run(("alice", EVERYBODY, packet(FIRST, 0, b"hello")))
    assert wire.heard["cathy"] == [packet(FIRST, 0, b"hello")]
    assert wire.give("cathy", before) == []


def test_who_is_not_yet_known_gets_no_secret(wire: Wire) -> None:
    alice = wire.guards["alice"]
    assert alice.wrap("bob", bytes(32)) is None
    assert [data[3] for data in wire.answers("alice")] == [KNOCK]


def test_a_process_that_is_silent_and_in_no_view_is_forgotten(wire: Wire) -> None:
    meet(wire, "alice", "bob")
    alice = wire.guards["alice"]
    assert alice.has_company
    assert alice.address_of("bob") == "bob"
    wire.now += SILENT_MAX + 1.0
    del wire.guards["bob"]
    alice.seal([(EVERYBODY, word(b"hello"))], wire.now)
    assert alice.address_of("bob") is None
    assert not alice._channels and not alice._by_id and not alice._made and not alice._by_address


def test_one_that_was_forgotten_comes_back(wire: Wire) -> None:
    meet(wire, "alice", "bob")
    wire.guards["alice"]._drop(wire.guards["bob"]._handshake.id)
    wire.now += 2 * HEARD_WITHIN
    wire.heard = {name: [] for name in wire.guards}
    wire.run(("alice", EVERYBODY, word(b"again")))
    assert wire.heard["bob"] == [word(b"again")]


def test_handshakes_of_a_long_time_leave_nothing_behind(wire: Wire) -> None:
    """Two that do not hear what they say to each other meet again and again."""
    del wire.guards["cathy"]
    wire.passes = lambda source, to, data: data[3] != AES
    for _ in range(2 * CHANNELS_EACH):
        meet(wire, "alice", "bob")
        wire.now += SILENT_MAX - 1.0  # not long enough to be forgotten
    assert len(set(wire.said(CONFIRM))) > CHANNELS_EACH + 4
    for guard in wire.guards.values():
        assert len(guard._made) == CHANNELS_EACH
        assert len(guard._by_id) == CHANNELS_EACH * EPOCHS_AHEAD
    wire.passes = lambda source, to, data: True
    wire.run(("alice", EVERYBODY, word(b"at last")))
    assert wire.heard["bob"] == [word(b"at last")]


def test_the_channel_that_is_spoken_over_is_never_forgotten_for_newer_ones(wire: Wire) -> None:
    """Bob has not heard of any of the handshakes that followed, and goes on with the first."""
    meet(wire, "alice", "bob")
    alice, bob = wire.guards["alice"], wire.guards["bob"]
    for number in range(2 * CHANNELS_EACH):
        key = bytes([number]) * 32
        other = Other(bob._handshake.id, "bob", PairKeys(key, key, key, key, key))
        alice._open_channel(alice._channel(other, "bob", is_ours=True), key, "bob")
    wire.heard = {name: [] for name in wire.guards}
    wire.now += GOOD_FOR + 1.0
    for text in (b"one", b"two"):
        wire.run(("bob", Direct("alice"), word(text)))
        alice._expire()
    assert wire.heard["alice"] == [word(b"one"), word(b"two")]


def test_keys_of_handshakes_are_forgotten_also_by_one_that_says_nothing(wire: Wire) -> None:
    in_first_view(wire)
    guard = wire.guards["alice"]
    assert guard._handshake.expire(wire.now) is not None
    wire.run(seconds=GOOD_FOR + 1.0)
    assert guard._handshake._privates._known == guard._handshake._locals._known == []
    assert guard.wake is None  # there is nothing more to do
    wire.add("late", guard._handshake._credentials, "alice")
    wire.run(("late", EVERYBODY, word(b"hello")), seconds=1.0)
    assert guard._handshake._locals._known != []
    wire.run(seconds=GOOD_FOR + 1.0)
    assert guard._handshake._privates._known == guard._handshake._locals._known == []


def test_keys_of_handshakes_are_forgotten_also_by_one_that_waits_to_be_let_in() -> None:
    wire = Wire()
    guard = wire.add("alice", known())
    newcomer = Newcomer("lunch", Member("alice", 1), now=0.0, guard=guard)
    while newcomer.wake < 10 * GOOD_FOR:
        newcomer.tick(newcomer.wake)
    assert 1 <= len(guard._handshake._privates._known) <= 3


def test_one_that_speaks_from_many_places_is_known_by_few(wire: Wire) -> None:
    meet(wire, "alice", "bob")
    alice, bob = wire.guards["alice"], wire.guards["bob"]
    for number in range(50):
        sealed = [data for to, data in bob.seal([(Direct("alice"), word(b"x"))], wire.now)]
        assert alice.open([(bytes(sealed[0]), ("there", number))], wire.now)  # type: ignore[arg-type]
    places = [where for where, channel in alice._by_address.items() if channel.name == "bob"]
    assert places == [f"there:{number}" for number in range(50 - ADDRESSES_EACH, 50)]
    assert alice.speaks_for(("there", 49), "bob")
    assert not alice.speaks_for(("there", 3), "bob")


def sealed_by(wire: Wire, name: str, said: bytes) -> bytes:
    """What that one says to everybody, which nobody hears."""
    return bytes(joined(wire.guards[name].seal([(EVERYBODY, said)], wire.now)[0][1]))


def test_where_those_speak_who_have_proven_who_they_are(wire: Wire) -> None:
    alice = wire.guards["alice"]
    assert alice.places == frozenset()
    assert wire.give("alice", packet(FIRST, 1, b"plain")) == []
    assert alice.places == frozenset()
    in_first_view(wire)
    known = alice.places
    assert known == {"bob", "cathy"}
    wire.run(("bob", EVERYBODY, packet(FIRST, 1, b"hello")))
    assert alice.places is known  # nothing is made anew for each datagram
    wire.add("port 2", wire.guards["bob"]._handshake._credentials, "bob")
    wire.run(("port 2", EVERYBODY, word(b"I am back")), seconds=1.0)
    assert alice.places == {"bob", "cathy", "port 2"}


def test_those_who_are_forgotten_speak_from_nowhere(wire: Wire) -> None:
    in_first_view(wire)
    wire.run(("cathy", EVERYBODY, packet(FIRST, 2, b"goodbye")))
    go_on(wire)
    assert wire.guards["alice"].places == {"bob", "cathy"}
    late = sealed_by(wire, "cathy", packet(FIRST, 2, b"late"))
    wire.passes = lambda source, to, data: source != "cathy"
    wire.run(seconds=SILENT_MAX + 1.0)
    wire.run(("alice", EVERYBODY, word(b"is anybody there?")))
    assert wire.guards["alice"].places == {"bob"}
    assert wire.give("alice", late, "cathy") == [packet(FIRST, 2, b"late")]
    assert wire.guards["alice"].places == {"bob"}  # who was a member has kept its keys, and is none


def test_one_that_has_left_takes_no_place_of_a_member(wire: Wire) -> None:
    """It knows how everybody sealed in the view before, and a member that is silent there may be believed to be elsewhere."""
    in_first_view(wire)
    go_on(wire)
    third = view_of("alice", "bob", number=3, attempt=1)
    alice, bob = wire.guards["alice"], wire.guards["bob"]
    old = alice.fresh()
    for guard, me in ((alice, 0), (bob, 1)):
        guard.expect(tag(third), third, me, old)
    wire.enter(third, "alice", "bob")
    go_on_to = view_of("alice", "bob", number=4, attempt=1)
    new = alice.fresh()
    for guard, me in ((alice, 0), (bob, 1)):
        guard.expect(tag(go_on_to), go_on_to, me, new)
    wire.enter(go_on_to, "alice", "bob")
    wire.run(("bob", EVERYBODY, packet(go_on_to, 1, b"I am here")), seconds=2 * MOVED)
    known = alice.places
    past = ViewKeys(tag(third), third, 1, old, wire.now, is_first=False, kind=AES)
    late = packet(third, 1, b"late")
    assert wire.give("alice", joined(past.sending.seal(late, wire.now)), "port 2") == [late]
    assert alice.places == known
    assert wire.give("alice", sealed_by(wire, "bob", packet(go_on_to, 1, b"I moved")), "port 3")
    assert alice.places == known | {"port 3"}


def test_who_repeats_what_was_lost_is_not_taken_for_the_member(wire: Wire) -> None:
    in_first_view(wire)
    alice = wire.guards["alice"]
    for _ in range(3):
        lost = sealed_by(wire, "bob", packet(FIRST, 1, b"hello"))
        assert wire.give("alice", lost) == [packet(FIRST, 1, b"hello")]
        assert alice.places == {"bob", "cathy"}
        wire.run(("bob", EVERYBODY, packet(FIRST, 1, b"and another")), seconds=MOVED * 0.9)


def test_a_member_that_has_moved_is_where_it_speaks(wire: Wire) -> None:
    in_first_view(wire)
    alice = wire.guards["alice"]
    wire.run(("bob", EVERYBODY, packet(FIRST, 1, b"here")), seconds=MOVED + 0.1)
    assert wire.give("alice", sealed_by(wire, "bob", packet(FIRST, 1, b"there")), "port 2")
    assert alice.places == {"bob", "cathy", "port 2"}


def test_a_member_without_a_channel_is_where_it_speaks(wire: Wire) -> None:
    """Who leads gives everybody the keys of all; these two have never met."""
    third = view_of("alice", "bob", "dave", number=3, attempt=1)
    wire.add("dave", wire.guards["bob"]._handshake._credentials)
    alice, dave = wire.guards["alice"], wire.guards["dave"]
    secret = alice.fresh()
    alice.expect(tag(third), third, 0, secret)
    dave.expect(tag(third), third, 2, secret)
    wire.enter(third, "alice", "dave")
    dave.seal([], wire.now)  # it knocks, and nobody hears it
    assert wire.give("alice", sealed_by(wire, "dave", packet(third, 2, b"hello")), "port 2")
    assert alice.places == {"port 2"}
    wire.now += MOVED + 0.1
    assert wire.give("alice", sealed_by(wire, "dave", packet(third, 2, b"by another")), None)  # handed on
    assert alice.places == {"port 2"}


def test_two_processes_of_one_name_do_not_keep_secrets_from_each_other(wire: Wire) -> None:
    """Somebody starts bob twice: the change of the view does not wait for the wrong one."""
    in_first_view(wire)
    wire.add("twin", wire.guards["bob"]._handshake._credentials, "bob")
    wire.run(("twin", EVERYBODY, word(b"hello")))
    alice = wire.guards["alice"]
    assert alice.address_of("bob") == "twin"  # it was heard last
    secret = alice.fresh()
    wrapped = alice.wrap("bob", secret)
    assert wrapped is not None
    assert wire.guards["bob"].unwrap("alice", wrapped) == secret


def test_a_second_process_of_one_name_has_no_key_in_a_first_view(wire: Wire) -> None:
    in_first_view(wire)
    hello = packet(FIRST, 1, b"I am bob")
    wire.add("twin", wire.guards["bob"]._handshake._credentials, "bob")
    wire.enter(FIRST, "twin")
    wire.run(("twin", EVERYBODY, hello), seconds=1.0)
    wire.heard["alice"].clear()
    wire.run(("twin", EVERYBODY, hello))
    assert wire.heard["alice"] == []
    wire.run(("bob", EVERYBODY, hello))
    assert wire.heard["alice"] == [hello]


def test_a_secret_that_is_not_one_is_refused(wire: Wire) -> None:
    in_first_view(wire)
    alice, bob = wire.guards["alice"], wire.guards["bob"]
    wrapped = alice.wrap("bob", alice.fresh())
    assert wrapped is not None
    for text in ("", "zz", "00", wrapped[:-2], "00" + wrapped[2:], wrapped[:-1] + "g", "00" * 68):
        with pytest.raises(WireError):
            bob.unwrap("alice", text)
    bob.unwrap("alice", wrapped)


def test_one_without_a_secret_is_told_apart_and_told_of(wire: Wire) -> None:
    assert wire.give("alice", packet(FIRST, 1, b"plain")) == []
    assert wire.rejected("alice") == {"plain": 1}
    assert wire.guards["alice"].told() == [
        "whoever is at stranger speaks in this group without a secret or certificate"
    ]
    wire.give("alice", packet(FIRST, 1, b"plain"))
    assert wire.guards["alice"].told() == []  # once


def test_another_secret_is_told_of_on_both_sides() -> None:
    wire = Wire()
    wire.add("alice", known())
    wire.add("bob", known(OTHER_SECRET))
    wire.run(("bob", EVERYBODY, word(b"hello")))
    for name, other in (("alice", "bob"), ("bob", "alice")):
        assert wire.guards[name].strangers == [f"whoever is at {other} has another secret"]
        assert not wire.guards[name].has_company
        assert wire.heard[name] == []


def test_long_certificates_cost_a_cookie() -> None:
    wire = Wire()
    hosts = [f"host{number}.example.org" for number in range(9)]
    for name in ("alice", "bob"):
        wire.add(name, certified(AUTHORITY.issue(name, hosts=hosts, now=MOMENT)))
    wire.run(("alice", EVERYBODY, word(b"hello")))
    assert wire.heard["bob"] == [word(b"hello")]
    assert [data[3] for _, _, data in wire.tape[:5]] == [KNOCK, COOKIE, KNOCK, ANSWER, CONFIRM]


def test_a_guard_is_not_pickled() -> None:
    guard = GroupGuard("lunch", "alice", known(), entropy=bytes, kind=AES)
    with pytest.raises(TypeError, match="keys"):
        pickle.dumps(guard)


def test_the_attempt_that_is_under_way_is_the_last_to_be_forgotten(wire: Wire) -> None:
    """However many were expected besides: what is repeated of it counts as much as what is new of others."""
    in_first_view(wire)
    alice = wire.guards["alice"]
    attempts = [
        view_of("alice", "cathy", number=2, attempt=attempt) for attempt in range(1, EXPECTED_MAX + 2)
    ]
    secrets = {each: bytes([each.attempt]) * 32 for each in attempts}
    under_way, *others = attempts
    for each in (under_way, *others[:-1], under_way, others[-1]):
        alice.expect(tag(each), each, 0, secrets[each])
    wire.enter(under_way, "alice")
    keys = ViewKeys(tag(under_way), under_way, 1, secrets[under_way], 0.0, is_first=False, kind=AES)
    said = packet(under_way, 1, b"hello")
    assert wire.give("alice", joined(keys.sending.seal(said, wire.now)), "cathy") == [said]


def test_what_is_of_no_use_is_counted_by_place_up_to_a_bound() -> None:
    wire = Wire()
    alice = wire.add("alice", known())
    for number in range(PLACES_MAX + 2):
        wire.give("alice", b"noise", ("10.0.0.1", number))
    wire.give("alice", b"noise", ("10.0.0.1", 0))  # one that is counted already
    by_place, elsewhere, words = alice.senders.useless()
    assert len(by_place) == PLACES_MAX and by_place["10.0.0.1", 0] == 2 and elsewhere == 2 and words == 0
    wire.give("alice", b"noise", ("10.0.0.1", PLACES_MAX))
    assert alice.senders.useless() == ({("10.0.0.1", PLACES_MAX): 1}, 0, 0)
