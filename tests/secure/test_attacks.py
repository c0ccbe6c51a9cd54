"""What an attacker can try against a secured group; docs/security.md lists these, each with its test.

The attacker has recorded everything, can write what it likes from wherever it likes, and knows all there is to know but
the secret, or a certificate of its own name. Some have been members and kept every key.
"""

import pickle
from collections.abc import Callable, Sequence
from random import Random

import pytest

pytest.importorskip("cryptography")

from inga.model.errors import WireError
from inga.model.packet import Packet
from inga.model.view import Member, View
from inga.secure import guard as guard_module
from inga.secure import handshake
from inga.secure.credentials import Credentials, KnownSecret
from inga.secure.guard import (
    CHANNELS_EACH,
    COOKIES,
    EXPECTED_MAX,
    HANDSHAKES_A_SECOND,
    HEARD_WITHIN,
    KNOCK_EVERY,
    OF_NAME,
    PAST_MAX,
    PROCESSES_EACH,
    GroupGuard,
)
from inga.secure.handshake import (
    ANSWER,
    CONFIRM,
    COOKIE,
    GOOD_FOR,
    KNOCK,
    PADDED,
    WORD_MAX,
    Handshake,
    Other,
    PairKeys,
)
from inga.secure.sealing import AES, EPOCHS_AHEAD, HEAD, ReceivingKey, SendingKey, derive
from inga.secure.shares import SHARES_MAX, SupplyOfEach
from inga.secure.views import ViewKeys
from inga.session.description import described
from inga.session.newcomer import Newcomer
from inga.session.session import Session
from inga.sim.simulator import Sim
from inga.stack.native import Direct, Outsider
from inga.stack.stack import EVERYBODY, Address, Datagram, joined
from inga.wire.packet import encode
from inga.wire.told import Told, said

from .helpers import OTHER_SECRET, SECRET, Wire, certified, known, meet, packet, tag, view_of, word

FIRST = view_of("alice", "bob", "cathy")
SECOND = view_of("alice", "cathy", number=2, attempt=1)
HANDSHAKES = 64.0


@pytest.fixture(params=["secret", "certificate"])
def wire(request: pytest.FixtureRequest) -> Wire:
    """Three members of a first view that have met."""
    wire = Wire()
    for name in FIRST.names:
        wire.add(name, known() if request.param == "secret" else certified(name))
    wire.enter(FIRST, *FIRST.names)
    wire.run(seconds=1.0)
    return wire


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not many handshakes are a flood."""
    monkeypatch.setattr(guard_module, "HANDSHAKES", HANDSHAKES)


def without(wire: Wire) -> bytes:
    """The next view has alice and cathy in it, and not bob any more; its secret."""
    alice = wire.guards["alice"]
    secret = alice.fresh()
    for name, me in (("alice", 0), ("cathy", 1)):
        wrapped = alice.wrap(name, secret)
        assert wrapped is not None
        wire.guards[name].expect(tag(SECOND), SECOND, me, wire.guards[name].unwrap("alice", wrapped))
    wire.enter(SECOND, "alice", "cathy")
    return secret


def opens(view: View, secret: bytes, data: bytes) -> bool:
    """Whether one that knows this, and what the view is, can open that."""
    keys: dict[bytes, ReceivingKey] = {}
    ViewKeys(tag(view), view, len(view), secret, 0.0, is_first=False, kind=AES).learn_all(keys)
    return data[4:12] in keys


def state(guard: GroupGuard) -> tuple[object, ...]:
    """What a guard remembers."""
    return (
        set(guard._by_id),
        set(guard._channels),
        set(guard._made),
        set(guard._by_name),
        set(guard._by_address),
        set(guard._waiting),
    )


# Words of handshakes


def test_words_that_are_replayed_change_nothing(wire: Wire) -> None:
    """Everything that was ever said, to everybody, from everywhere, at once, later, and after keys were renewed."""
    tape = list(wire.tape)
    hello = packet(FIRST, 0, b"hello")
    wire.run(("alice", EVERYBODY, hello))
    for _ in range(3):
        wire.heard = {name: [] for name in wire.guards}
        before = {name: state(guard) for name, guard in wire.guards.items()}
        for source, _, data in tape:
            for name in wire.guards:
                assert wire.give(name, data, source) == []
                assert wire.give(name, data, "stranger") == []
        wire.run()
        assert {name: state(guard) for name, guard in wire.guards.items()} == before
        assert wire.heard == {name: [] for name in wire.guards}
        wire.now += 1.5 * GOOD_FOR
    wire.run(("alice", EVERYBODY, hello))
    assert wire.heard["bob"] == wire.heard["cathy"] == [hello]


def test_words_that_come_back_change_nothing(wire: Wire) -> None:
    before = {name: state(guard) for name, guard in wire.guards.items()}
    for source, _, data in list(wire.tape):
        assert wire.give(source, data, source) == []
    wire.run()
    assert {name: state(guard) for name, guard in wire.guards.items()} == before


@pytest.mark.parametrize("kind", [ANSWER, CONFIRM])
def test_a_handshake_is_not_played_again_to_one_that_has_forgotten_it(wire: Wire, kind: int) -> None:
    """The same keys would be made once more, and counted from the start: two datagrams with one nonce."""
    used = {data[4:20] for _, _, data in wire.tape if data[3] == AES}
    tape, size = list(wire.tape), len(wire.tape)
    for guard in wire.guards.values():
        for process in list(guard._channels):
            guard._drop(process)
        guard.failures.clear()
    for source, to, data in tape:
        if data[3] in (KNOCK, kind):
            assert wire.give(to, data, source) == []
    assert all(guard.strangers == [] for guard in wire.guards.values())  # nobody is accused of it
    meet(wire, *FIRST.names)
    again = {data[4:20] for _, _, data in wire.tape[size:] if data[3] == AES}
    assert again and not used & again


def test_no_two_datagrams_have_one_nonce(wire: Wire) -> None:
    """Handshakes that are lost, repeated, crossed and forgotten."""
    rng = Random(3)
    wire.passes = lambda source, to, data: rng.random() < 0.6
    for _ in range(30):
        name = rng.choice(FIRST.names)
        wire.run((name, EVERYBODY, word(b"%d" % rng.randrange(1000))))
        wire.run((name, EVERYBODY, packet(FIRST, FIRST.names.index(name), rng.randbytes(4))))
        for source, to, data in rng.choices(wire.tape[-100:], k=20):
            wire.give(to, data, source)
        wire.now += rng.choice([0.01, 0.5, 20.0, 70.0])
        if rng.random() < 0.2 and (processes := list(wire.guards[name]._channels)):
            wire.guards[name]._drop(rng.choice(processes))
    sealed: dict[bytes, bytes] = {}
    for _, _, data in wire.tape:
        if data[3] == AES:
            assert sealed.setdefault(data[4:20], data) == data
    assert len(sealed) > 60


def test_a_process_that_starts_again_makes_other_keys() -> None:
    """With the same secret, name and group, and everything that was said to it before."""
    wire = Wire()
    wire.add("alice", known())
    wire.add("bob", known())
    meet(wire, "alice", "bob")
    used = {data[4:12] for data in wire.said(AES)}
    tape, wire.tape = list(wire.tape), []
    wire.add("bob", known())
    for source, to, data in tape:
        wire.give(to, data, source)
    meet(wire, "bob", "alice")
    mine = {data[4:12] for data in wire.said(AES, "bob")}
    assert mine and not used & mine


def test_answers_to_strangers_are_not_longer_than_their_words(wire: Wire) -> None:
    """So nobody can be flooded in its own name, by whichever word, recorded or made."""
    alice = wire.guards["alice"]
    kind = alice._handshake._credentials.kind
    for guard in wire.guards.values():
        for channel in guard._channels.values():
            channel.heard -= 10.0
    fresh = Handshake("lunch", alice._handshake._credentials, Random(5).randbytes, "anybody")
    words = [data for _, _, data in wire.tape] + [fresh.knock(0.0)]
    read = fresh.read_knock(fresh.read(fresh.knock(0.0))[1])._replace(id=alice._handshake.id)
    words.append(fresh.cookie(read, "alice", 0.0))
    assert {word[3] for word in words} == {KNOCK, COOKIE, ANSWER, CONFIRM, AES}
    # And by such as know nothing: of no group that is secured, and of others with another secret or with certificates.
    words.append(packet(FIRST, 1, b"")[: HEAD.size])
    for other in (known(OTHER_SECRET), certified("bob")):
        words += [
            (word := Handshake("lunch", other, Random(6).randbytes, "bob").knock(0.0)),
            word[:-1],
            word[:40],
        ]
    provoked = set()
    for number, data in enumerate(words):
        alice.open([(data, f"victim{number}")], wire.now)
        for _, answer in alice.seal([], wire.now):
            assert len(joined(answer)) <= len(data), (data[3], joined(answer)[3])
            provoked.add((data[3], joined(answer)[3]))
        wire.now += KNOCK_EVERY
    assert provoked >= {(KNOCK, ANSWER), (COOKIE, KNOCK), (words[-7][3], KNOCK)}
    assert PADDED[kind] == len(fresh.knock(0.0))


@pytest.mark.parametrize("size", [138, None])
def test_answers_that_are_shorter_than_knocks_bring_forth_none(
    few: None, wire: Wire, size: int | None
) -> None:
    """In a flood whoever answers what all have heard is knocked at, wherever it says it is."""
    alice = wire.guards["alice"]
    stranger = Handshake("lunch", alice._handshake._credentials, Random(9).randbytes, "anybody")
    size = size or PADDED[stranger._credentials.kind] - 1
    for number in range(int(HANDSHAKES)):
        parts = alice._handshake.id + number.to_bytes(16, "big") + handshake.public_of(bytes(31) + b"x")
        answer = stranger._proven((stranger._head(ANSWER) + parts).ljust(size - 16, b"x"))
        assert len(answer) == size
        alice.open([(answer, f"victim{number}")], wire.now)
    assert wire.answers("alice") == []


def test_who_knocks_in_a_flood_has_to_be_where_it_says(few: None, wire: Wire) -> None:
    """A bounded number of answers costs more than a check, and none of them goes where nobody asked."""
    alice, where = wire.guards["alice"], wire.now
    credentials = alice._handshake._credentials
    before = state(alice)
    answered = asked = 0
    for number in range(int(HANDSHAKES)):
        data = Handshake("lunch", credentials, Random(100 + number).randbytes, "anybody").knock(0.0)
        alice.open([(data, f"spoofed{number}")], where)
        kinds = [each[3] for each in wire.answers("alice")]
        answered += kinds.count(ANSWER)
        asked += kinds.count(COOKIE)
    assert answered == HANDSHAKES / 2 + 1
    assert asked == HANDSHAKES - answered
    assert state(alice) == before  # nothing is remembered of any of them
    # One that is there comes through.
    wire.add("late", credentials, alice._name)
    wire.run(("late", Direct("alice"), word(b"hello")))
    assert wire.heard["alice"] == [word(b"hello")]
    assert [data[3] for _, to, data in wire.tape if to == "late"][:2] == [COOKIE, ANSWER]
    # And when it is over, no cookies are needed.
    wire.now += HANDSHAKES / HANDSHAKES_A_SECOND
    wire.add("later", credentials, alice._name)
    wire.run(("later", Direct("alice"), word(b"hello")))
    assert [data[3] for _, to, data in wire.tape if to == "later"][:1] == [ANSWER]


@pytest.mark.parametrize("kind", [COOKIE, ANSWER, CONFIRM])
def test_a_flood_of_other_words_costs_no_more(few: None, wire: Wire, kind: int) -> None:
    """By one that knows what everybody knows; with a secret it is by one that has it."""
    alice = wire.guards["alice"]
    stranger = Handshake("lunch", alice._handshake._credentials, Random(9).randbytes, "anybody")
    before = state(alice)
    for number in range(int(HANDSHAKES) + 100):
        rest = stranger._head(kind) + (
            number.to_bytes(16, "big") + alice._handshake.id
            if kind == CONFIRM
            else alice._handshake.id + number.to_bytes(16, "big")
        )
        size = PADDED[stranger._credentials.kind] - 16
        alice.open(
            [(stranger._proven(rest.ljust(size, b"\x09" if kind != COOKIE else b"\0")), "x")], wire.now
        )
    alice.seal([], wire.now)
    assert wire.rejected("alice")["flood"] >= 100
    assert state(alice) == before


@pytest.mark.parametrize("begins", ["alice", "late"])
@pytest.mark.parametrize("is_there", [False, True])
def test_words_of_strangers_keep_nobody_out(few: None, wire: Wire, begins: str, *, is_there: bool) -> None:
    """They take every turn that they get: from addresses made up, or from one host that is there and has all its cookies."""
    alice, credentials = wire.guards["alice"], wire.guards["alice"]._handshake._credentials
    late = wire.add("late", credentials, alice._name)
    strangers = [Handshake("lunch", credentials, Random(number).randbytes, "eve") for number in range(100)]

    def floods(source: str, to: str, said: bytes) -> bool:
        """Before anything else comes to one of the two, from hosts that have not said anything yet, or from one that has."""
        guard = {"alice": alice, "late": late}.get(to)
        for number, stranger in enumerate(strangers if guard is not None else ()):
            where = f"eve:{number}" if is_there else f"made up {len(wire.tape)} {number}"
            knock = guard._handshake.read_knock(guard._handshake.read(stranger.knock(wire.now))[1])
            cookie, token = (
                handshake._cookie(local(guard), knock, where),
                handshake._token(local(guard), where),
            )
            proofs = cookie + token if is_there else bytes(32)
            answer = guard._handshake.id + stranger.id + knock.public + bytes(16) + proofs[16:] + bytes(16)
            confirm = stranger.id + guard._handshake.id + knock.public + proofs[:16]
            asked = knock._replace(id=guard._handshake.id, token=proofs[16:])
            for data in (
                stranger.knock(wire.now, proofs[:16]),
                stranger.cookie(asked, where, wire.now),
                stranger._proven(
                    (stranger._head(ANSWER) + answer).ljust(PADDED[credentials.kind] - 16, b"x")
                ),
                stranger._proven((stranger._head(CONFIRM) + confirm).ljust(200, b"x")),
            ):
                guard.open([(data, where)], wire.now)
            guard._out.clear()
        return True

    def local(guard: GroupGuard) -> bytes:
        return guard._handshake._locals.newest(wire.now)

    wire.passes = floods
    names = {"alice": "late", "late": "alice"}
    for _ in range(4):
        wire.run((begins, Direct(names[begins]), word(b"hello")))
        wire.now += KNOCK_EVERY
    assert word(b"hello") in wire.heard[names[begins]]
    assert wire.rejected("alice")["flood"] > 100


@pytest.mark.parametrize("make", [lambda name: known(), certified])
def test_one_that_was_answered_elsewhere_first_is_heard_in_a_flood(
    make: Callable[[str], Credentials],
) -> None:
    """A stranger who has heard alice knock does so as well, is quicker to hand on the answer, and keeps bob busy: what alice
    confirms has the cookie of the stranger's place."""
    wire = Wire()
    for name in ("alice", "bob"):
        wire.add(name, make(name))
    alice, bob = wire.guards["alice"], wire.guards["bob"]
    (knock,) = (joined(data) for _, data in alice.seal([(EVERYBODY, word(b"hello"))], wire.now))
    bob.open([(knock, "stranger")], wire.now)
    alice.open([(data, "stranger") for data in wire.answers("bob")], wire.now)
    assert [data[3] for data in wire.answers("alice")][:1] == [CONFIRM]  # which goes to the stranger

    def floods(source: str, to: str, said: bytes) -> bool:
        while not bob._confirms.is_busy(wire.now):
            bob._confirms.take("eve", wire.now)
        return True

    wire.passes = floods
    wire.now += KNOCK_EVERY
    wire.run(("alice", EVERYBODY, word(b"are you there?")))
    wire.run(("alice", EVERYBODY, word(b"at last")))
    assert wire.heard["bob"][-1:] == [word(b"at last")]


def test_who_answers_what_all_have_heard_shows_in_a_flood_that_it_is_there() -> None:
    """A knock for everybody says nothing that only one place has heard."""
    wire = Wire()
    for name in ("alice", "bob"):
        wire.add(name, known())
    bob = wire.guards["bob"]
    while not bob._answers.is_busy(wire.now):
        bob._answers.take("eve", wire.now)
    wire.run(("bob", EVERYBODY, word(b"hello")))
    assert wire.heard["alice"] == [word(b"hello")]
    assert [data[3] for _, _, data in wire.tape[:5]] == [KNOCK, ANSWER, KNOCK, ANSWER, CONFIRM]
    assert {len(data) for _, _, data in wire.tape[:4]} == {PADDED[1]}  # and nobody says more for it
    assert wire.rejected("bob") == {"flood": 1}


def test_those_who_ask_get_so_many_cookies_and_no_more(wire: Wire) -> None:
    alice = wire.guards["alice"]
    knock = Handshake("lunch", alice._handshake._credentials, Random(5).randbytes, "eve").knock(0.0)
    for number in range(5000):
        alice.open([(knock, f"made up {number}")], wire.now)
    kinds = [data[3] for data in wire.answers("alice")]
    assert kinds.count(COOKIE) == COOKIES
    assert kinds.count(ANSWER) <= guard_module.HANDSHAKES


@pytest.mark.parametrize("kind", [ANSWER, CONFIRM])
def test_words_that_are_repeated_are_not_answered_for_ever(few: None, kind: int) -> None:
    wire = Wire()
    for name in ("alice", "bob"):
        wire.add(name, known())
    wire.passes = lambda source, to, data: data[3] != AES  # so that what was confirmed may have been lost
    meet(wire, "alice", "bob")
    source, to, data = next(each for each in wire.tape if each[2][3] == kind)
    for _ in range(1000):
        wire.guards[to].open([(data, source)], wire.now)
    assert 1 <= len(wire.answers(to)) <= 2 * HANDSHAKES
    assert wire.rejected(to)["flood"] >= 1000 - HANDSHAKES


def test_answers_that_were_not_asked_for_bring_forth_so_many_knocks_and_no_more(
    few: None, wire: Wire
) -> None:
    alice = wire.guards["alice"]
    stranger = Handshake("lunch", alice._handshake._credentials, Random(9).randbytes, "eve")
    answer = stranger._head(ANSWER) + alice._handshake.id + stranger.id
    data = stranger._proven(answer.ljust(PADDED[stranger._credentials.kind] - 16, b"x"))
    while not alice._answers.is_busy(wire.now):
        alice._answers.take("eve", wire.now)
    for number in range(5000):
        alice.open([(data, f"made up {number}")], wire.now)
    assert [each[3] for each in wire.answers("alice")] == [KNOCK] * int(COOKIES)


def test_shares_of_those_who_asked_long_ago_are_forgotten() -> None:
    supply = SupplyOfEach(1.0, 2.0)
    for number in range(2 * SHARES_MAX):
        assert supply.take(number, 0.0)
    assert len(supply._supplies) == SHARES_MAX


def test_long_words_are_not_looked_at(wire: Wire) -> None:
    alice = wire.guards["alice"]
    stranger = Handshake("lunch", alice._handshake._credentials, Random(9).randbytes, "eve")
    for size in (WORD_MAX + 1, 1 << 20):
        assert wire.give("alice", stranger._head(ANSWER).ljust(size, b"x")) == []
    assert wire.rejected("alice") == {"malformed": 2}


def test_a_name_that_nobody_can_write_is_one_malformed_word(wire: Wire) -> None:
    """JSON has an escape for half a character. It is read before anything is proven: with certificates anybody can say it."""
    alice, before = wire.guards["alice"], state(wire.guards["alice"])
    eve = Handshake("lunch", alice._handshake._credentials, Random(9).randbytes, "eve")
    eve._name = "\ud800"
    alice.open([(eve.knock(wire.now), "eve")], wire.now)
    answer = eve.read_answer(eve.read(wire.answers("alice")[0])[1])
    assert answer is not None
    other, public = eve.judge(answer, wire.now)
    assert wire.give("alice", eve.confirm(public, other, answer.cookie), "eve") == []
    assert (
        wire.give("alice", eve.answer(alice._handshake.read_knock(knock_of(alice)), "alice", wire.now)) == []
    )
    assert wire.rejected("alice") == {"malformed": 2}
    assert state(alice) == before


def knock_of(guard: GroupGuard) -> bytes:
    """What it says to all, as one reads it that knows what it knows."""
    return guard._handshake.read(guard._handshake.knock(0.0))[1]


def test_a_cookie_cannot_be_made_or_used_elsewhere(few: None, wire: Wire) -> None:
    alice = wire.guards["alice"]
    stranger = Handshake("lunch", alice._handshake._credentials, Random(9).randbytes, "anybody")
    for _ in range(int(HANDSHAKES)):  # from now on cookies are asked for
        if not alice._knocks.is_busy(wire.now):
            alice._knocks.take("here", wire.now)
    alice.open([(stranger.knock(0.0), "here")], wire.now)
    given = stranger.read_cookie(stranger.read(wire.answers("alice")[0])[1])
    assert given is not None
    cookie = given.cookie
    made = derive(stranger._entropy(32), "cookie", stranger.id, "victim")[:16]
    for shown, where in ((cookie, "victim"), (made, "victim"), (bytes(16), "here")):
        alice.open([(stranger.knock(0.0, shown), where)], wire.now)
        assert [each[3] for each in wire.answers("alice")] == [COOKIE]
    alice.open([(stranger.knock(0.0, cookie), "here")], wire.now)
    assert [each[3] for each in wire.answers("alice")] == [ANSWER]


def test_nobody_takes_the_place_of_another_process() -> None:
    """Mallory, who is certified, says that she is the process that alice is: ids of processes are for all to see."""
    wire = Wire()
    for name in ("alice", "bob"):
        wire.add(name, certified(name))
    meet(wire, "alice", "bob")
    wire.add("mallory", certified("mallory"))
    wire.guards["mallory"]._handshake.id = wire.guards["alice"]._handshake.id
    wire.now += 5.0
    wire.heard["bob"].clear()
    wire.run(("mallory", Direct("bob"), word(b"I am alice")))
    assert wire.heard["bob"] == []
    assert wire.rejected("bob") == {"impostor": 2, "key": 1}
    bob = wire.guards["bob"]
    assert bob.speaks_for("alice", "alice") and not bob.speaks_for("mallory", "alice")
    wire.run(("bob", Direct("alice"), word(b"still you?")))
    assert wire.heard["alice"][-1] == word(b"still you?")
    assert word(b"still you?") not in wire.heard["mallory"]


def test_nobody_keeps_a_process_out_by_taking_its_number() -> None:
    """Mallory, who is certified, has heard bob's number on the wire, and meets alice before he does."""
    wire = Wire()
    for name in ("alice", "bob", "mallory"):
        wire.add(name, certified(name))
    bob = wire.guards.pop("bob")
    wire.guards["mallory"]._handshake.id = bob._handshake.id
    wire.run(("mallory", Direct("alice"), word(b"I am the one")))
    assert wire.heard["alice"] == []
    wire.guards["bob"] = bob
    wire.run(("mallory", Direct("alice"), word(b"I am the one")), ("bob", Direct("alice"), word(b"hello")))
    assert wire.heard["alice"] == [word(b"hello")]


def test_one_certificate_takes_the_place_of_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mallory starts more processes than a guard remembers; those of members stay, and so do some of hers."""
    monkeypatch.setattr(guard_module, "CHANNELS_MAX", 6)
    wire = Wire()
    for name in FIRST.names:
        wire.add(name, certified(name))
    wire.enter(FIRST, *FIRST.names)
    wire.run(seconds=1.0)
    alice, members = wire.guards["alice"], set(wire.guards["alice"]._channels)
    wire.now += 30.0  # members need not talk
    for number in range(10):
        wire.guards = {"alice": alice}
        wire.add(f"m{number}", certified("mallory"), "mallory")
        wire.run((f"m{number}", Direct("alice"), word(b"x")))
        wire.now += 1.0
    assert members < set(alice._channels)
    assert len(alice._channels) == 6
    assert alice.wrap("bob", bytes(32)) is not None


def test_processes_of_one_name_are_few() -> None:
    wire = Wire()
    alice = wire.add("alice", certified("alice"))
    for number in range(3 * int(OF_NAME)):
        wire.guards = {"alice": alice}
        wire.add(f"m{number}", certified("mallory"), "mallory")
        wire.run((f"m{number}", Direct("alice"), word(b"x")))
        wire.now += 0.02
    assert len(wire.heard["alice"]) <= OF_NAME + 10
    assert len(alice._channels) == PROCESSES_EACH
    assert len(alice._by_id) <= PROCESSES_EACH * CHANNELS_EACH * EPOCHS_AHEAD
    assert wire.rejected("alice")["flood"] > OF_NAME
    wire.add("bob", certified("bob"))
    wire.run(("bob", Direct("alice"), word(b"hello")))
    assert wire.heard["alice"][-1] == word(b"hello")


def test_half_a_handshake_leaves_nothing_behind(wire: Wire) -> None:
    alice = wire.guards["alice"]
    before = state(alice)
    for number in range(50):
        stranger = Handshake(
            "lunch", alice._handshake._credentials, Random(100 + number).randbytes, "anybody"
        )
        alice.open([(stranger.knock(0.0), f"somewhere{number}")], wire.now)
        alice.seal([], wire.now)
    assert state(alice) == before


# Datagrams


def test_noise_changes_nothing(wire: Wire) -> None:
    rng = Random(4)
    before = {name: state(guard) for name, guard in wire.guards.items()}
    tape = [data for _, _, data in wire.tape]
    for _ in range(400):
        data = bytearray(rng.choice(tape))
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        noise = bytes(data[: rng.choice([len(data), rng.randrange(len(data) + 1)])])
        for given in (noise, data[:3] + bytes([rng.randrange(8)]) + rng.randbytes(rng.randrange(60))):
            assert wire.give(rng.choice(FIRST.names), bytes(given)) == []
    assert {name: state(guard) for name, guard in wire.guards.items()} == before


def test_datagrams_that_are_replayed_or_come_back_are_not_opened(wire: Wire) -> None:
    hello = packet(FIRST, 0, b"hello")
    wire.run(("alice", EVERYBODY, hello))
    sealed = wire.tape[-1][2]
    assert wire.heard["bob"] == [hello]
    for name in wire.guards:
        assert wire.give(name, sealed, "alice") == []
    assert wire.rejected("alice") == {"key": 1}
    assert wire.rejected("bob") == {"replayed": 1}


def hear_from_elsewhere(wire: Wire, speaker: str, hearer: str, elsewhere: str) -> None:
    """A stranger is faster than the network, or the network lost it: what one says comes as if from elsewhere."""
    sealed = wire.guards[speaker].seal([(Direct(hearer), word(b"I am here"))], wire.now)
    assert wire.give(hearer, joined(sealed[0][1]), elsewhere) == [word(b"I am here")]


def test_two_who_were_heard_from_elsewhere_still_find_each_other() -> None:
    wire = Wire()
    for name in ("alice", "bob"):
        wire.add(name, known())
    meet(wire, "alice", "bob")
    hear_from_elsewhere(wire, "alice", "bob", "bob")
    hear_from_elsewhere(wire, "bob", "alice", "alice")
    wire.heard = {name: [] for name in wire.guards}
    wire.run(("alice", Outsider("bob"), word(b"are you there?")))
    assert wire.heard["bob"] == [word(b"are you there?")]
    assert wire.guards["bob"].address_of("alice") == "alice"


def test_one_whose_answer_came_from_elsewhere_is_confirmed_where_it_is() -> None:
    wire = Wire()
    for name in ("alice", "bob"):
        wire.add(name, known())
    wire.passes = lambda source, to, data: data[3] != ANSWER
    wire.run(("bob", EVERYBODY, word(b"hello")))
    (answer,) = wire.said(ANSWER)
    wire.give("bob", answer, "elsewhere")
    wire.passes = lambda source, to, data: True
    wire.now += 2 * HEARD_WITHIN
    wire.run(("bob", Outsider("alice"), word(b"are you there?")))
    assert wire.guards["bob"].address_of("alice") == "alice"
    wire.run(("bob", Outsider("alice"), word(b"at last")))
    assert wire.heard["alice"] == [word(b"at last")]


@pytest.mark.parametrize("is_gone", [False, True])
def test_nobody_is_hidden_by_one_that_was_heard_in_its_place(wire: Wire, *, is_gone: bool) -> None:
    """Cathy seemed to speak from where the others are: what is for them is sealed for her."""
    hear_from_elsewhere(wire, "cathy", "alice", "bob")
    hear_from_elsewhere(wire, "cathy", "bob", "alice")
    wire.now += 2 * HEARD_WITHIN
    if is_gone:
        del wire.guards["cathy"]
    else:
        wire.run(*(("cathy", Direct(name), word(b"I am here")) for name in ("alice", "bob")))
    wire.heard = {name: [] for name in wire.guards}
    for _ in range(2):
        wire.run(("alice", Outsider("bob"), word(b"are you there?")))
    assert wire.heard["bob"] == [word(b"are you there?")]
    wire.run(("bob", Outsider("alice"), word(b"I am")))
    assert wire.heard["alice"] == [word(b"I am")]


def test_a_member_does_not_speak_for_another(wire: Wire) -> None:
    """Bob is a member, and says something with alice's index in front."""
    wire.run(("bob", EVERYBODY, packet(FIRST, 0, b"I am alice")))
    assert wire.heard == {"alice": [], "bob": [], "cathy": []}
    assert wire.rejected("cathy") == {"impostor": 1}
    lent = packet(FIRST, 0, b"she said", lent=True)  # of one that is gone, which the stack decides
    wire.run(("bob", EVERYBODY, lent))
    assert wire.heard["cathy"] == [lent]


def test_what_belongs_to_a_view_does_not_come_over_a_channel_nor_the_other_way_round(wire: Wire) -> None:
    alice, bob = wire.guards["alice"], wire.guards["bob"]
    channel, keys = bob._by_name["alice"], bob._keys
    assert keys is not None
    over_channel = joined(channel.sending.seal(packet(FIRST, 1, b"x"), wire.now))
    in_view = joined(keys.sending.seal(word(b"x", source=1), wire.now))
    assert alice.open([(over_channel, "bob"), (in_view, "bob")], wire.now) == []
    assert wire.rejected("alice") == {"impostor": 2}


def test_datagrams_of_another_group_are_not_opened() -> None:
    """With the same secret, names and view."""
    wire = Wire()
    for where, name, group in (
        ("a", "alice", "lunch"),
        ("b", "bob", "lunch"),
        ("c", "alice", "dinner"),
        ("d", "bob", "dinner"),
    ):
        wire.add(where, known(), name, group=group)
    pair = view_of("alice", "bob")
    wire.enter(pair, *wire.guards)
    wire.run(seconds=1.0)
    wire.run(("a", EVERYBODY, packet(pair, 0, b"soup")), ("d", EVERYBODY, packet(pair, 1, b"wine")))
    assert wire.heard == {"a": [], "b": [packet(pair, 0, b"soup")], "c": [packet(pair, 1, b"wine")], "d": []}
    assert {*wire.rejected("b")} == {"group", "key"}


# Views, and those who have left


def test_one_that_has_left_reads_nothing_of_later_views(wire: Wire) -> None:
    """It has recorded everything and has all its keys; channels with those who stay, too."""
    secret = without(wire)
    wire.run(("alice", EVERYBODY, packet(SECOND, 0, b"about bob")))
    assert wire.heard["cathy"] == [packet(SECOND, 0, b"about bob")]
    assert wire.heard["bob"] == []
    sealed, old = wire.tape[-1][2], wire.guards["bob"]._keys
    assert old is not None
    known_to_bob = [bytes(32), old.sending.secret]
    known_to_bob += [epoch.secret for key in old.receiving.values() for epoch in key._epochs.values()]
    assert not any(opens(SECOND, each, sealed) for each in known_to_bob)
    assert opens(SECOND, secret, sealed)


def test_one_that_has_left_says_nothing_in_later_views(wire: Wire) -> None:
    """It knows what the next view is, and its own key of the one before is still opened: others may be late. Its index
    belongs to cathy now."""
    bob = wire.guards["bob"]
    old = bob._keys
    assert old is not None
    without(wire)
    for forged in (
        packet(SECOND, 1, b"I am cathy"),
        packet(SECOND, 1, b"I am cathy", lent=True),
        packet(SECOND, 0, b"I am alice", lent=True),
    ):
        assert wire.give("alice", joined(old.sending.seal(forged, wire.now)), "bob") == []
    assert wire.rejected("alice") == {"impostor": 3}
    late = packet(FIRST, 1, b"late")
    assert wire.give("alice", joined(old.sending.seal(late, wire.now)), "bob") == [late]


def test_one_that_has_left_a_first_view_ends_no_change() -> None:
    """Its key of the first view opens any tag, and which comes next can be told. Who speaks in the next view has seen that all
    have what they need for it."""
    rng = Random(1)
    sim = Sim(
        *("alice", "bob", "cathy", "mallory"),
        seed=1,
        record=False,
        guard=lambda name: GroupGuard("lunch", name, known(), entropy=rng.randbytes, kind=AES),
    )
    sim.run(until=1.0)
    guard = sim["mallory"].stack.guard
    assert isinstance(guard, GroupGuard) and guard._keys is not None and guard._keys.is_first
    secret = guard._keys.sending.secret
    sim["mallory"].crash()
    bob = sim["bob"].stack
    bob.wire.next_tag = 12345  # a change is under way
    key = SendingKey(secret, sim.now, AES)
    key._counter = 10**6
    forged = joined(encode(Packet(3, 1, b"x"), 12345, covers="nothing"))
    bob.receive([(joined(key.seal(forged, sim.now)), "anywhere")], now=sim.now)
    assert bob.counts["ahead"] == 0 and not bob.wire.ahead
    assert bob.rejected["group"] == 1


def test_keys_of_one_view_open_nothing_of_another_of_the_same_number(wire: Wire) -> None:
    """Two parts of a group that went on by themselves: numbers of views are the same, and one may know both."""
    other = view_of("alice", "bob", number=2, attempt=7)
    alice, bob = wire.guards["alice"], wire.guards["bob"]
    secret = alice.fresh()
    alice.expect(tag(other), other, 0, secret)
    bob.expect(tag(other), other, 1, secret)
    wire.enter(other, "alice", "bob")
    old = bob._keys
    assert old is not None
    without(wire)
    assert wire.give("alice", joined(old.sending.seal(packet(SECOND, 1, b"I am cathy"), wire.now))) == []
    assert wire.rejected("alice") == {"impostor": 1}


def test_one_that_comes_reads_nothing_of_earlier_views(wire: Wire) -> None:
    wire.run(("alice", EVERYBODY, packet(FIRST, 0, b"before you came")))
    tape = list(wire.tape)
    without(wire)
    wire.run(("alice", EVERYBODY, packet(SECOND, 0, b"still before")))
    tape += wire.tape
    name = "mallory"
    third = view_of("alice", "cathy", name, number=3, attempt=1)
    alice = wire.guards["alice"]
    has_secret = alice._handshake._credentials.kind == KnownSecret.kind
    newcomer = wire.add(name, known() if has_secret else certified(name))
    wire.run((name, EVERYBODY, word(b"hello")))
    secret = alice.fresh()
    alice.expect(tag(third), third, 0, secret)
    wire.enter(third, "alice")
    wrapped = alice.secret_for(name)
    assert wrapped is not None
    newcomer.expect(tag(third), third, 2, newcomer.unwrap("alice", wrapped))
    wire.enter(third, name)
    for source, _, data in tape:
        assert wire.give(name, data, source) == []
        assert not opens(SECOND, secret, data)
    wire.run(("alice", EVERYBODY, packet(third, 0, b"welcome")))
    assert wire.heard[name][-1] == packet(third, 0, b"welcome")


def test_every_sender_in_every_view_has_a_key_of_its_own() -> None:
    secrets = set()
    for number, secret in ((2, bytes(32)), (3, bytes(32)), (2, bytes(31) + b"x")):
        view = view_of("alice", "bob", "cathy", number=number, attempt=1)
        for me in range(3):
            keys = ViewKeys(tag(view), view, me, secret, 0.0, is_first=False, kind=AES)
            secrets.add(keys.sending.secret)
    assert len(secrets) == 9
    own = ViewKeys(0, FIRST, 0, bytes(range(32)), 0.0, is_first=True, kind=AES)
    assert own.secret == b""  # nothing is kept by which what was said before could be read


def test_the_secret_of_a_view_is_for_one_member(wire: Wire) -> None:
    alice, bob, cathy = (wire.guards[name] for name in FIRST.names)
    wrapped = alice.wrap("bob", alice.fresh())
    assert wrapped is not None
    with pytest.raises(WireError, match="no channel"):
        cathy.unwrap("alice", wrapped)
    with pytest.raises(WireError, match="no channel"):
        bob.unwrap("cathy", wrapped)  # it was not cathy who wrapped it
    assert len(bob.unwrap("alice", wrapped)) == 32
    with pytest.raises(WireError, match="replayed"):
        bob.unwrap("alice", wrapped)


def test_nobody_hands_us_a_secret_of_our_own(wire: Wire) -> None:
    """What one says to itself is not sealed. Somebody else says that it was us who said so."""
    alice = wire.guards["alice"]
    for text in ("", bytes(32).hex()):
        with pytest.raises(WireError, match="key"):
            alice.unwrap("alice", text)
    secret = alice.fresh()
    assert alice.wrap("alice", secret) == ""  # nor is it in what could be written down
    assert alice.unwrap("alice", "") == secret
    with pytest.raises(WireError, match="key"):
        alice.unwrap("alice", "")


def test_a_key_of_a_view_wraps_no_secret(wire: Wire) -> None:
    """What cathy knows of alice in a view is known to bob as well."""
    bob = wire.guards["bob"]
    assert bob._keys is not None
    with pytest.raises(WireError, match="no channel"):
        wire.guards["cathy"].unwrap("bob", joined(bob._keys.sending.seal(bytes(32), wire.now)).hex())


def test_a_process_that_starts_again_gets_no_key_that_was_counted_with(wire: Wire) -> None:
    """Cathy is started again under the very same name and number: she would seal with the same nonces."""
    without(wire)
    alice = wire.guards["alice"]
    assert alice.secret_for("cathy") is not None  # she may not have heard it
    wire.run(("cathy", EVERYBODY, packet(SECOND, 1, b"I am here")))
    assert alice.secret_for("cathy") is None


def test_a_view_that_was_is_not_entered_again(wire: Wire) -> None:
    """Its keys would be made once more, and counted from the start; what was said in it could be replayed."""
    secret = without(wire)
    wire.run(("cathy", EVERYBODY, packet(SECOND, 1, b"pay")))
    sealed = wire.tape[-1][2]
    third = view_of("alice", number=3, attempt=1)
    alice = wire.guards["alice"]
    for _ in range(2):
        alice.expect(tag(SECOND), SECOND, 0, secret)
        assert wire.give("alice", sealed, "cathy") == []
        wire.enter(third, "alice")
    assert wire.rejected("alice") == {"replayed": 2}


def test_keys_of_views_that_were_are_forgotten(wire: Wire) -> None:
    """And those of attempts of a change of which nothing came."""
    bob, alice = wire.guards["bob"], wire.guards["alice"]
    old = bob._keys
    assert old is not None
    attempts = [
        view_of("alice", "cathy", number=2, attempt=attempt) for attempt in range(2, EXPECTED_MAX + 2)
    ]
    for each in attempts:
        alice.expect(tag(each), each, 0, bytes([each.attempt]) * 32)
    given_up = [key for keys in alice._expected.values() for key in keys.receiving.values()]
    without(wire)
    assert not set(alice._by_id.values()) & set(given_up)
    for number in range(3, PAST_MAX + 3):
        assert old.receiving and wire.give(
            "alice", joined(old.sending.seal(packet(FIRST, 1, b"late"), wire.now))
        )
        view = view_of("alice", number=number, attempt=1)
        alice.expect(tag(view), view, 0, bytes(32))
        wire.enter(view, "alice")
    assert wire.give("alice", joined(old.sending.seal(packet(FIRST, 1, b"too late"), wire.now))) == []
    assert wire.rejected("alice")["key"] == 1


def test_a_view_that_may_follow_is_not_expected_anew(wire: Wire) -> None:
    """What was opened of it could be replayed: another key would not know that it has come."""
    secret = without(wire)
    third = view_of("alice", "cathy", number=3, attempt=1)
    alice, keys = wire.guards["alice"], ViewKeys(tag(third), third, 1, secret, 0.0, is_first=False, kind=AES)
    sealed = joined(keys.sending.seal(packet(third, 1, b"pay"), wire.now))
    alice.expect(tag(third), third, 0, secret)
    assert wire.give("alice", sealed, "cathy") == [packet(third, 1, b"pay")]
    alice.expect(tag(third), third, 0, secret)
    assert wire.give("alice", sealed, "cathy") == []


def test_one_that_is_certified_and_no_member_gets_no_keys_of_the_first_view() -> None:
    wire = Wire()
    for name in (*FIRST.names, "mallory"):
        wire.add(name, certified(name))
    wire.enter(FIRST, *FIRST.names)
    mallory = wire.guards["mallory"]
    mallory.enter(tag(FIRST), FIRST, 0, 0.0)  # as if she were alice
    wire.views["mallory"] = FIRST
    wire.run(seconds=1.0)
    for name in ("bob", "cathy"):
        channel = mallory._by_name[name]
        assert mallory._keys is not None
        mallory._give_key(channel, mallory._keys, asks=True)
    wire.run(seconds=1.0)
    assert mallory._keys is not None and mallory._keys.receiving == {}
    wire.run(("alice", EVERYBODY, packet(FIRST, 0, b"among us")))
    assert wire.heard["mallory"] == [] and wire.heard["bob"] == [packet(FIRST, 0, b"among us")]
    wire.run(("mallory", EVERYBODY, packet(FIRST, 0, b"I am alice")))
    assert wire.heard["bob"] == [packet(FIRST, 0, b"among us")]


def test_nobody_hands_out_a_view_of_others() -> None:
    """Mallory, who is certified, makes a view in which everybody is but she, and knows all its keys."""
    for names in (("alice", "bob", "cathy"), ("alice", "mallory", "cathy")):
        wire = Wire()
        for name in ("alice", "mallory"):
            wire.add(name, certified(name))
        meet(wire, "alice", "mallory")
        view = View(2, tuple(map(Member, names)), "causal", leader=1, attempt=1)
        newcomer = Newcomer("lunch", view.members[0], now=0.0, guard=wire.guards["alice"])
        secret = wire.guards["mallory"].wrap("alice", bytes(32))
        told = Told.read(
            said(
                "welcome",
                **described(view),
                group=f"{newcomer.group:08x}",
                host="mallory",
                secret=secret,
                cuts=[],
            )
        )
        if "mallory" in names:
            newcomer._learn(told, 0.0)  # as any member can, and docs/security.md says so
            assert newcomer.view == view
        else:
            with pytest.raises(WireError, match="impostor"):
                newcomer._learn(told, 0.0)
            assert newcomer.view is None


def test_a_view_whose_tag_somebody_chose_has_keys_of_its_own(wire: Wire) -> None:
    """Who comes chooses its incarnation until the next view has the tag of the one in force."""
    without(wire)
    third = view_of("alice", "cathy", number=3, attempt=1)
    for name, me in (("alice", 0), ("cathy", 1)):
        wire.guards[name].expect(tag(SECOND), third, me, bytes(32))
        wire.guards[name].enter(tag(SECOND), third, me, wire.now)
    sealed = joined(
        wire.guards["cathy"].seal(
            [(EVERYBODY, joined(encode(Packet(1, 3, b"x"), tag(SECOND), covers="nothing")))], wire.now
        )[0][1]
    )
    assert len(wire.give("alice", sealed, "cathy")) == 1


def test_a_hello_of_a_member_of_a_first_view_gets_no_secret(wire: Wire) -> None:
    assert wire.guards["alice"].secret_for("bob") is None


# Words of the session


class Outside:
    """A process with a certificate that is in no view, and speaks to alice of a group of three."""

    def __init__(self, name: str, where: str = "outside") -> None:
        rng = Random(1)
        self.sim = Sim(
            "alice",
            "bob",
            "cathy",
            seed=1,
            record=False,
            guard=lambda name: GroupGuard("lunch", name, certified(name), entropy=rng.randbytes, kind=AES),
        )
        self.sim.run(until=1.0)
        self.alice = self.sim["alice"].stack
        self.session = next(layer for layer in self.alice.layers if isinstance(layer, Session))
        self.guard = GroupGuard("lunch", name, certified(name), entropy=rng.randbytes, kind=AES)
        self.where = where

    def says(self, do: str, *, then: Sequence[bytes] = (), **what: object) -> None:
        """`then`: what it hands on of others, at once."""
        made = Packet(9, 0, kind=Session.id)
        made.ext = said(do, **what, group=self.session.digest)
        datagram = encode(made, self.alice.lobby, covers="nothing")
        sends = self.guard.seal([(Direct("alice"), datagram)], self.sim.now)
        self.talk([*sends, *((EVERYBODY, data) for data in then)])

    def talk(self, sends: Sequence[tuple[Address, Datagram]]) -> None:
        while sends:
            self.alice.receive([(joined(data), self.where) for _, data in sends], now=self.sim.now)
            heard = [
                (joined(data), "alice")
                for to, data in self.alice.ready(now=self.sim.now).send
                if to == Direct(self.where)
            ]
            self.guard.open(heard, self.sim.now)
            sends = self.guard.seal([], self.sim.now)


@pytest.mark.parametrize("do", ["goodbye", "excluded", "double", "farewell", "here", "hello"])
def test_one_that_is_no_member_sends_nobody_away(do: str) -> None:
    mallory = Outside("mallory")
    who = "alice" if do in ("excluded", "double") else "bob"
    mallory.says(do, name=who, incarnation=1, view=1, itself=False, bound=False)
    assert mallory.alice.rejected["impostor"] == 1
    assert mallory.alice.left == set()


@pytest.mark.parametrize("do", ["goodbye", "excluded", "double", "farewell", "here", "hello"])
def test_nobody_speaks_for_one_whose_words_it_hands_on(do: str) -> None:
    """Bob says something to whoever has knocked as alice did. Behind what mallory says, both from one place, it looks as if
    bob had said all of it."""
    mallory = Outside("mallory")
    mallory.says("who", people=[])
    sim, alice, bob = mallory.sim, mallory.alice.guard, mallory.sim["bob"].stack
    assert isinstance(alice, GroupGuard) and isinstance(bob.guard, GroupGuard)
    sim.run(until=3.0)
    words = mallory.guard._handshake
    known = next(public for process, public in bob.guard._made if process == alice._handshake.id)
    knock = words._proven(words._pad(words._head(KNOCK) + alice._handshake.id + known + bytes(16)))
    bob.receive([(knock, mallory.where)], now=sim.now)
    said_by_bob = [joined(data) for to, data in bob.ready(now=sim.now).send if to == Direct(mallory.where)]
    assert [data[3] for data in said_by_bob] == [AES]
    birth = bob.member.incarnation
    mallory.says(do, then=said_by_bob, name="bob", incarnation=birth, view=1, itself=False, bound=False)
    assert mallory.alice.rejected["impostor"] == 1
    assert mallory.alice.left == set()


def test_a_member_says_that_another_has_left() -> None:
    cathy = Outside("cathy")
    cathy.says("goodbye", name="bob", incarnation=1, view=1, itself=False, bound=False)
    assert cathy.alice.rejected["impostor"] == 0
    assert cathy.alice.left == {1}


# Nothing is shown


def test_no_key_is_in_what_people_see(wire: Wire) -> None:
    """Representations, errors, notices and counts of guards that have talked, and been talked to by strangers."""
    without(wire)
    wire.run(("alice", EVERYBODY, word(b"x")), seconds=1.0)
    alice = wire.guards["alice"]
    for data in (bytes(50), wire.tape[0][2][:-1] + b"x", packet(FIRST, 0, b"plain")):
        wire.give("alice", data)
    seen = [repr(alice), repr(alice._keys), *alice.told(), *alice.strangers, repr(alice.rejected)]
    seen += [repr(each) for each in (*alice._channels.values(), *alice._by_id.values(), alice._handshake)]
    for text in (alice.wrap("bob", bytes(32)), "00" * 68):
        with pytest.raises(WireError) as raised:
            wire.guards["cathy"].unwrap("alice", text or "")
        seen.append(str(raised.value))
    assert alice._keys is not None
    keys = {
        alice._keys.secret,
        alice._keys.sending.secret,
        *(c.sending.secret for c in alice._channels.values()),
    }
    keys |= {SECRET.octets, known().base}
    for key in keys:
        assert not any(key.hex()[:12] in text or repr(key)[2:14] in text for text in seen)


def test_nothing_with_keys_in_it_is_pickled(wire: Wire) -> None:
    alice = wire.guards["alice"]
    channel = next(iter(alice._channels.values()))
    words, keys = alice._handshake, PairKeys(*(bytes([number]) * 32 for number in range(5)))
    secrets = (alice, alice._keys, channel, channel.receiving, SendingKey(bytes(32), 0.0, AES), SECRET)
    words_have = (words, words._credentials, words._privates, keys, Other(words.id, "alice", keys))
    for each in (*secrets, *words_have):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            with pytest.raises(TypeError):
                pickle.dumps(each, protocol)
