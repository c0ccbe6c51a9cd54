"""Two guards that do not hear each other, and a third that hears both: what it can do for them, and to them."""

import pytest

pytest.importorskip("cryptography")

from inga.model.errors import WireError
from inga.secure.carrying import (
    CARRIED,
    CARRIED_MAX,
    CARRIES_FOR,
    CARRY,
    ERRANDS_MAX,
    HANDED_MAX,
    Errands,
    Handed,
    WayRound,
)
from inga.secure.guard import GroupGuard
from inga.secure.sealing import AES, Forged
from inga.stack.native import Direct, Outsider
from inga.stack.stack import EVERYBODY, joined

from .helpers import AUTHORITY, IDENTITIES, MOMENT, Wire, certified, known, packet, view_of, word

FIRST = view_of("alice", "bob")
WORDS = 4
"""That are handed on until two know each other."""


@pytest.fixture(params=["secret", "certificate"])
def wire(request: pytest.FixtureRequest) -> Wire:
    """Alice leads, bob is a member, cathy asks to be let in; nothing passes between her and alice."""
    wire = Wire()
    for name in ("alice", "bob", "cathy"):
        wire.add(name, known() if request.param == "secret" else certified(name))
    wire.passes = lambda source, to, data: {source, to} != {"alice", "cathy"}
    wire.enter(FIRST, *FIRST.names)
    wire.run(("cathy", EVERYBODY, word(b"hello")), seconds=1.0)
    assert "cathy" not in wire.guards["alice"]._by_name
    return wire


def introduce(wire: Wire, by: str = "bob") -> WayRound:
    """As the sessions of bob and alice do. How alice reaches cathy."""
    alice, porter = wire.guards["alice"], wire.guards[by]
    process = porter.ways.introduce("cathy", "alice", wire.now)
    alice.ways.introduced(by, process, wire.now)
    wire.run()
    return WayRound(porter._handshake.id, bytes.fromhex(process))


def is_met(one: GroupGuard, name: str) -> bool:
    return name in one._by_name and one._by_name[name].is_sure


def test_two_that_do_not_hear_each_other_agree_on_keys(wire: Wire) -> None:
    alice, cathy = wire.guards["alice"], wire.guards["cathy"]
    way = introduce(wire)
    assert is_met(alice, "cathy") and is_met(cathy, "alice")
    assert alice.speaks_for(way, "cathy") and not alice.speaks_for(way, "alice", "bob")
    assert alice.address_of("cathy") == way
    wire.run(("cathy", EVERYBODY, word(b"let me in")))
    assert wire.heard["alice"] == [word(b"let me in")]
    wire.run(("alice", Outsider(way), word(b"come in")))
    assert wire.heard["cathy"] == [word(b"come in")]
    wrapped = alice.wrap("cathy", bytes(32))
    assert wrapped is not None and cathy.unwrap("alice", wrapped) == bytes(32)


@pytest.mark.parametrize("dead", [("alice", "cathy"), ("cathy", "alice")], ids=["hears not", "not heard"])
def test_a_way_that_is_good_in_one_direction_is_gone_round_in_both(wire: Wire, dead: tuple[str, str]) -> None:
    wire.passes = lambda source, to, data: (source, to) != dead
    way = introduce(wire)
    for _ in range(3):
        wire.heard = {name: [] for name in wire.guards}
        wire.run(("cathy", EVERYBODY, word(b"let me in")))
        wire.run(("alice", Outsider(way), word(b"come in")))
        assert set(wire.heard["alice"]) == {word(b"let me in")}
        assert set(wire.heard["cathy"]) == {word(b"come in")}
        wire.now += 0.3
        introduce(wire)


def test_two_that_have_met_before_find_the_way_round(wire: Wire) -> None:
    """They keep their channel, and each thinks that it is good as it was."""
    wire.passes = lambda source, to, data: True
    wire.run(("cathy", EVERYBODY, word(b"hello")), seconds=1.0)
    wire.passes = lambda source, to, data: {source, to} != {"alice", "cathy"}
    wire.heard["alice"].clear()
    introduce(wire)
    wire.run(("cathy", EVERYBODY, word(b"let me in")))
    assert wire.heard["alice"] == [word(b"let me in")]


@pytest.mark.parametrize("words", range(WORDS + 1))
@pytest.mark.parametrize("proof", ["secret", "certificate"])
def test_who_hands_words_on_dies_in_the_middle_of_a_handshake(proof: str, words: int) -> None:
    """So many words have come through. Another member hears both as well, and from then on all goes by that one."""
    wire, view = Wire(), view_of("alice", "bob", "dave")
    for name in (*view.names, "cathy"):
        identity = IDENTITIES.get(name) or AUTHORITY.issue(name, now=MOMENT)
        wire.add(name, known() if proof == "secret" else certified(identity))
    wire.passes = lambda source, to, data: {source, to} != {"alice", "cathy"}
    wire.enter(view, *view.names)
    wire.run(("cathy", EVERYBODY, word(b"hello")), seconds=1.0)
    alice, cathy = wire.guards["alice"], wire.guards["cathy"]
    handed: list[str] = []

    def passes(source: str, to: str, data: bytes) -> bool:
        if source == "bob":
            handed.append(to)
        return {source, to} != {"alice", "cathy"} and ("bob" not in (source, to) or len(handed) <= words)

    wire.passes = passes
    introduce(wire)
    assert len(handed) == min(words + 1, WORDS)
    wire.passes = lambda source, to, data: {source, to} != {"alice", "cathy"} and "bob" not in (source, to)
    way = introduce(wire, "dave")
    assert is_met(alice, "cathy") and is_met(cathy, "alice")
    wire.run(("cathy", EVERYBODY, word(b"let me in")))
    assert wire.heard["alice"][-1:] == [word(b"let me in")] and alice.address_of("cathy") == way
    wire.run(("alice", Outsider(way), word(b"come in")))
    assert wire.heard["cathy"][-1:] == [word(b"come in")]


def test_who_hands_words_on_can_drop_them_and_nothing_else(wire: Wire) -> None:
    """Bob does with them what he likes: he changes them, repeats them, says that they are of another, and reads none."""
    alice, bob, cathy = wire.guards["alice"], wire.guards["bob"], wire.guards["cathy"]
    way = introduce(wire)
    handed: list[Handed] = []
    original = bob.ways.hear
    bob.ways.hear = lambda channel, plain, now: handed.append(Handed.read(plain))  # type: ignore[method-assign]
    wire.run(("cathy", EVERYBODY, word(b"let me in")))
    assert wire.heard["alice"] == []
    (kept,) = handed
    process, datagram, channel = cathy._handshake.id, kept.datagram, bob._by_name["alice"]
    assert kept[:2] == (CARRY, alice._handshake.id)
    assert b"let me in" not in datagram and datagram[4:12] not in bob._by_id

    def hand(octets: bytes, of: bytes = process) -> None:
        bob._say_at("alice", channel, Handed(CARRIED, of, octets).encode())
        wire.run()

    for at in range(0, len(datagram), 3):
        hand(datagram[:at] + bytes([datagram[at] ^ 1]) + datagram[at + 1 :])
    hand(datagram[:-1])
    assert wire.heard["alice"] == [] and alice._by_name["cathy"].via == way
    hand(datagram)
    hand(datagram)
    assert wire.heard["alice"] == [word(b"let me in")], "once"
    wire.run(("cathy", EVERYBODY, word(b"let me in")))
    hand(handed[1].datagram, bob._handshake.id)
    assert len(wire.heard["alice"]) == 1, "in the name of another it is not heard"
    bob.ways.hear = original  # type: ignore[method-assign]
    wire.run(("cathy", EVERYBODY, word(b"please")))
    assert wire.heard["alice"][1:] == [word(b"please")]


def test_words_of_a_handshake_are_of_the_process_whose_words_are_handed_on(wire: Wire) -> None:
    """Else bob could speak as cathy, under the number of another."""
    alice, bob, cathy = wire.guards["alice"], wire.guards["bob"], wire.guards["cathy"]
    way = WayRound(bob._handshake.id, b"somebody".ljust(16))
    for data in (cathy._handshake.knock(wire.now), bob._handshake.knock(wire.now)):
        assert alice.open([(data, way)], wire.now) == []
    assert alice.rejected["impostor"] == 2 and wire.answers("alice") == []


@pytest.mark.parametrize("begins", ["alice", "cathy"])
def test_proofs_of_a_process_are_not_taken_under_the_number_of_another(wire: Wire, begins: str) -> None:
    """Though they are right: else what is for her would go the way that somebody else is said to speak by."""
    alice, bob, cathy = wire.guards["alice"], wire.guards["bob"], wire.guards["cathy"]
    ours, theirs, now = alice._handshake, cathy._handshake, wire.now
    right, wrong = (WayRound(bob._handshake.id, process) for process in (theirs.id, b"somebody".ljust(16)))
    asks, asked = (ours, theirs) if begins == "alice" else (theirs, ours)
    proof = asked.answer(asked.read_knock(asked.read(asks.knock(now))[1]), str(right), now)
    if begins == "cathy":
        answer = theirs.read_answer(theirs.read(proof)[1])
        assert answer is not None
        other, public = theirs.judge(answer, now)
        proof = theirs.confirm(public, other, answer.cookie)
    assert alice.open([(proof, wrong)], now) == []
    assert alice.rejected["impostor"] == 1 and wire.answers("alice") == []
    assert alice.address_of("cathy") is None
    alice.open([(proof, right)], now)
    assert alice.rejected["impostor"] == 1 and alice.address_of("cathy") == right


def test_nothing_is_handed_on_for_those_who_were_not_introduced(wire: Wire) -> None:
    """Nor between any others, nor to those who are not known."""
    alice, bob, cathy = wire.guards["alice"], wire.guards["bob"], wire.guards["cathy"]
    cathy._knock(Direct(WayRound(bob._handshake.id, alice._handshake.id)))
    wire.run()
    assert bob.rejected["impostor"] == 1 and "cathy" not in alice._by_name
    introduce(wire)
    for process in (cathy._handshake.id, b"nobody".ljust(16)):
        cathy._knock(Direct(WayRound(bob._handshake.id, process)))
    wire.run()
    assert bob.rejected["impostor"] == 3


def test_a_way_round_ends_by_itself(wire: Wire) -> None:
    alice, bob = wire.guards["alice"], wire.guards["bob"]
    introduce(wire)
    wire.now += CARRIES_FOR
    before = bob.rejected["impostor"]
    wire.run(("cathy", EVERYBODY, word(b"let me in")))
    assert wire.heard["alice"] == [] and alice.address_of("cathy") is None
    assert bob.rejected["impostor"] == before, "cathy does not even ask"
    introduce(wire)
    wire.run(("cathy", EVERYBODY, word(b"let me in")))
    assert wire.heard["alice"] == [word(b"let me in")]


def test_what_was_handed_on_is_not_handed_on_again(wire: Wire) -> None:
    alice, cathy = wire.guards["alice"], wire.guards["cathy"]
    way = introduce(wire)
    for kind in (CARRY, CARRIED):
        inside = Handed(kind, cathy._handshake.id, cathy._handshake.knock(wire.now)).encode()
        sealed = joined(cathy._by_name["alice"].sending.seal(inside, wire.now))
        assert alice.open([(sealed, way)], wire.now) == []
    assert alice.rejected["impostor"] == 2 and alice.ways.inside == []


def test_what_belongs_to_a_view_is_not_handed_on_so(wire: Wire) -> None:
    alice, bob = wire.guards["alice"], wire.guards["bob"]
    way = introduce(wire)
    assert bob._keys is not None
    sealed = joined(bob._keys.sending.seal(packet(FIRST, 1, b"hello"), wire.now))
    assert alice.open([(sealed, way)], wire.now) == []
    assert alice.rejected["impostor"] == 1


def test_one_word_makes_one_of_the_same_length(wire: Wire) -> None:
    """So nobody is flooded by those who hand words on."""
    size = len(wire.tape)
    introduce(wire)
    wire.run(("cathy", EVERYBODY, word(b"let me in")))
    said = [(source, to, len(data)) for source, to, data in wire.tape[size:] if data[3] == AES]
    comes = sorted(length for source, to, length in said if to == "bob" and length > 200)
    leaves = sorted(length for source, to, length in said if source == "bob" and length > 200)
    assert comes == leaves != []


def test_words_that_are_handed_on_are_not_too_many(wire: Wire) -> None:
    alice, bob, cathy = wire.guards["alice"], wire.guards["bob"], wire.guards["cathy"]
    process = bytes.fromhex(bob.ways.introduce("cathy", "alice", wire.now))
    way = WayRound(bob._handshake.id, alice._handshake.id)
    for _ in range(round(CARRIED_MAX) + 3):
        cathy._out.append((Direct(way), b"x" * 40))
    wire.run()
    assert bob.rejected["flood"] == 3
    handed = Handed(CARRIED, process, b"x" * 40).encode()
    for _ in range(round(HANDED_MAX - CARRIED_MAX) + 2):
        bob._say_at("alice", bob._by_name["alice"], handed)
    wire.run()
    assert alice.rejected["flood"] == 2
    with pytest.raises(WireError, match="too often"):
        alice.ways.introduced("bob", process.hex(), wire.now)
    assert not alice._waiting and process not in alice._channels


def test_half_a_handshake_by_others_leaves_nothing_behind(wire: Wire) -> None:
    """Who says that somebody asks makes the leader knock, now and then, and remember nothing of it."""
    alice = wire.guards["alice"]
    before = set(alice._channels), set(alice._by_address), set(alice._by_id), dict(alice._waiting)
    for number in range(20):
        alice.ways.introduced("bob", number.to_bytes(16, "big").hex(), wire.now)
        alice.ways.introduced("bob", number.to_bytes(16, "big").hex(), wire.now)
    assert len(wire.answers("alice")) == 20
    assert (set(alice._channels), set(alice._by_address), set(alice._by_id), dict(alice._waiting)) == before


def test_who_is_introduced_is_a_process_that_others_know(wire: Wire) -> None:
    alice, bob = wire.guards["alice"], wire.guards["bob"]
    for process in ("", "00" * 15, "no octets"):
        with pytest.raises(WireError):
            alice.ways.introduced("bob", process, wire.now)
    for who, process in (("bob", bob._handshake.id), ("bob", alice._handshake.id), ("zoe", bytes(16))):
        alice.ways.introduced(who, process.hex(), wire.now)
    assert wire.answers("alice") == []
    assert (
        bob.ways.introduce("nowhere", "alice", wire.now) == bob.ways.introduce(None, "alice", wire.now) == ""
    )
    assert bob.ways.introduce(WayRound(bytes(16), bytes(16)), "alice", wire.now) == ""


def test_a_way_round_is_no_place_from_where_large_datagrams_are_let_in(wire: Wire) -> None:
    before = wire.guards["alice"].places
    introduce(wire)
    wire.run(("cathy", EVERYBODY, word(b"let me in")))
    assert wire.guards["alice"].places == before


def test_those_for_whom_words_are_handed_on_are_not_too_many() -> None:
    errands = Errands()
    for number in range(ERRANDS_MAX + 1):
        errands.begin(number.to_bytes(16, "big"), "alice", 0.0)
    first, second = bytes(16), (1).to_bytes(16, "big")
    errands.spend((second, "dave"), (b"a", "alice"), 1.0)
    errands.spend((b"a", "alice"), (second, "dave"), 1.0)
    for process, name, now in ((first, "alice", 1.0), (second, "bob", 1.0), (second, "alice", CARRIES_FOR)):
        with pytest.raises(Forged, match="impostor"):
            errands.spend((process, "dave"), (b"a", name), now)


def test_what_is_handed_on_can_be_read() -> None:
    handed = Handed(CARRY, bytes(range(16)), b"octets")
    assert Handed.read(handed.encode()) == handed
    for octets in (b"", b"iC", b"iC\x03" + bytes(16), b"iX\x01" + bytes(16)):
        with pytest.raises(Forged):
            Handed.read(octets)
