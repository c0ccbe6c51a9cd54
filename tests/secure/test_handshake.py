"""The four words by which two processes agree on keys, and what becomes of them in the hands of others."""

import gc
from collections.abc import Callable
from random import Random
from typing import NamedTuple

import pytest

pytest.importorskip("cryptography")

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from inga.keys.authority import Authority
from inga.keys.secret import Secret
from inga.model.errors import KeysError, WireError
from inga.secure import handshake
from inga.secure.credentials import SECRET, Credentials, signed
from inga.secure.handshake import (
    ANSWER,
    CONFIRM,
    CONFIRM_HEAD,
    COOKIE,
    FRESH_FOR,
    GOOD_FOR,
    ID,
    KNOCK,
    PADDED,
    PROOF,
    TALKS,
    Handshake,
    Other,
    ShortLived,
    public_of,
)
from inga.secure.sealing import KEY, TAG, Forged
from inga.wire.told import Told, said

from .helpers import AUTHORITY, DAY, IDENTITIES, MOMENT, OTHER_SECRET, certified, known

Made = Callable[..., Credentials]
CREDENTIALS: dict[str, Made] = {"secret": lambda name: known(), "certificate": certified}

SMALL = [
    bytes(32),
    (1).to_bytes(32, "little"),
    (2**255 - 20).to_bytes(32, "little"),
    (2**255 - 19).to_bytes(32, "little"),
    (2**255 - 18).to_bytes(32, "little"),
    bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
    bytes.fromhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"),
]
"""Public keys of which everybody knows what comes out."""


class NotForUs(Exception):
    """A word for another process."""


class Sides(NamedTuple):
    """Alice knocks at bob's door."""

    alice: Handshake
    bob: Handshake

    def knock(self, now: float = 0.0) -> bytes:
        return self.alice.knock(now)

    def answer(self, knock: bytes, now: float = 0.0) -> bytes:
        return self.bob.answer(self.bob.read_knock(content(self.bob, knock, KNOCK)), "there", now)

    def judge(self, answer: bytes, now: float = 0.0) -> tuple[Other, bytes]:
        read = self.alice.read_answer(content(self.alice, answer, ANSWER))
        if read is None:
            raise NotForUs
        other, public = self.alice.judge(read, now)
        return other, self.alice.confirm(public, other, read.cookie)

    def finish(self, confirm: bytes, now: float = 0.0) -> Other:
        read = self.bob.read_confirm(content(self.bob, confirm, CONFIRM))
        if read is None:
            raise NotForUs
        return self.bob.finish(read, now)


@pytest.fixture(params=CREDENTIALS)
def make(request: pytest.FixtureRequest) -> Made:
    return CREDENTIALS[request.param]


@pytest.fixture
def sides(make: Made) -> Sides:
    entropy = Random(1).randbytes
    return Sides(
        Handshake("lunch", make("alice"), entropy, "alice"), Handshake("lunch", make("bob"), entropy, "bob")
    )


def content(reader: Handshake, word: bytes, kind: int) -> bytes:
    found, read = reader.read(word)
    assert found == kind
    return read


def proven(maker: Handshake, word: bytes) -> bytes:
    """The word as one says it who knows the secret, which with certificates is anybody."""
    return maker._proven(word[:-PROOF])


def changed(word: bytes, at: int, part: bytes) -> bytes:
    return word[:at] + part + word[at + len(part) :]


def test_both_sides_end_with_the_same_keys(sides: Sides) -> None:
    bob, confirm = sides.judge(sides.answer(sides.knock()))
    alice = sides.finish(confirm)
    assert (alice.name, alice.id, bob.name, bob.id) == ("alice", sides.alice.id, "bob", sides.bob.id)
    assert alice.keys == bob.keys
    assert len({alice.keys.answer, alice.keys.confirm, alice.keys.forth, alice.keys.back}) == 4


def test_no_two_handshakes_end_with_the_same_keys(sides: Sides) -> None:
    first, _ = sides.judge(sides.answer(sides.knock()))
    sides.alice.forget()
    second, _ = sides.judge(sides.answer(sides.knock()))
    sides.bob.forget()
    third, _ = sides.judge(sides.answer(sides.knock()))
    assert len({key for other in (first, second, third) for key in other.keys}) == 15


# Those who are not let in


def test_another_secret_proves_nothing() -> None:
    entropy = Random(1).randbytes
    bob = Handshake("lunch", known(), entropy, "bob")
    stranger = Handshake("lunch", known(OTHER_SECRET), entropy, "bob")
    with pytest.raises(Forged, match="unproven"):
        bob.read(stranger.knock(0.0))


def test_words_of_another_group_are_not_taken(sides: Sides, make: Made) -> None:
    """Also where somebody writes the right name in front of them."""
    elsewhere = Handshake("dinner", make("alice"), Random(2).randbytes, "alice")
    word = elsewhere.knock(0.0)
    with pytest.raises(Forged, match="group"):
        sides.bob.read(word)
    renamed = changed(word, TALKS.size - 4, sides.knock()[TALKS.size - 4 : TALKS.size])
    for each in (renamed, proven(elsewhere, renamed)):
        with pytest.raises(Forged, match="unproven"):
            sides.bob.read(each)


def test_the_group_is_part_of_the_keys(make: Made) -> None:
    """The same private keys in a group of another name: nothing in common."""
    found = []
    for group in ("lunch", "dinner"):
        entropy = Random(1).randbytes
        sides = Sides(
            Handshake(group, make("alice"), entropy, "alice"), Handshake(group, make("bob"), entropy, "bob")
        )
        found.append(sides.judge(sides.answer(sides.knock()))[0].keys)
    assert not set(found[0]) & set(found[1])


def test_a_secret_is_no_certificate_nor_the_other_way_round() -> None:
    entropy = Random(1).randbytes
    with_secret = Handshake("lunch", known(), entropy, "bob")
    with_certificate = Handshake("lunch", certified("bob"), entropy, "bob")
    for one, other in ((with_secret, with_certificate), (with_certificate, with_secret)):
        with pytest.raises(Forged, match="credentials"):
            one.read(other.knock(0.0))
        kind = bytes([one._credentials.kind])
        with pytest.raises(Forged, match="unproven"):
            one.read(changed(other.knock(0.0), 4, kind))


def test_no_older_version_is_taken(sides: Sides) -> None:
    word = sides.knock()
    for version in (0, 1, 3, 255):
        with pytest.raises(Forged, match="version"):
            sides.bob.read(proven(sides.alice, changed(word, 2, bytes([version]))))


def answered_by(credentials: Credentials, name: str) -> tuple[Other, bytes]:
    """What alice thinks of one that answers so."""
    entropy = Random(1).randbytes
    sides = Sides(
        Handshake("lunch", certified("alice"), entropy, "alice"),
        Handshake("lunch", credentials, entropy, name),
    )
    knock = sides.bob.read_knock(content(sides.bob, sides.knock(), KNOCK))
    return sides.judge(sides.bob.answer(knock, "there", 0.0))


def test_certificates_that_are_not_taken() -> None:
    foreign = Authority.make("office", now=MOMENT).issue("bob", now=MOMENT)
    old = AUTHORITY.issue("bob", days=1, now=MOMENT - 2 * DAY)
    early = AUTHORITY.issue("bob", now=MOMENT + DAY)
    assert answered_by(certified("bob"), "bob")[0].name == "bob"
    for identity, name, reason in (
        (foreign, "bob", "unknown_authority"),
        (old, "bob", "expired"),
        (early, "bob", "not_yet_valid"),
        (IDENTITIES["mallory"], "bob", "wrong_name"),
    ):
        with pytest.raises(KeysError) as raised:
            answered_by(certified(identity), name)
        assert raised.value.reason == reason


# Somebody in the middle


@pytest.mark.parametrize("at", ["knock", "answer", "confirm"])
def test_a_key_that_somebody_put_in_the_place_of_another_ends_it(sides: Sides, at: str) -> None:
    """Also one that can prove words, as with certificates everybody can."""
    evil = X25519PrivateKey.from_private_bytes(bytes(range(7, 39))).public_key().public_bytes_raw()
    place = {"knock": TALKS.size + ID, "answer": TALKS.size + 2 * ID, "confirm": TALKS.size + 2 * ID}[at]

    def between(word: bytes, which: str) -> bytes:
        return proven(sides.alice, changed(word, place, evil)) if which == at else word

    with pytest.raises(Forged, match="stale"):
        answer = sides.answer(between(sides.knock(), "knock"))
        _, confirm = sides.judge(between(answer, "answer"))
        sides.finish(between(confirm, "confirm"))


def test_the_processes_are_part_of_what_is_proven(sides: Sides) -> None:
    """Nobody is put in the place of another, by changing who knocks, or who answers, or who confirms."""
    nobody, knock = bytes(ID), sides.knock()
    answer = sides.answer(knock)
    _, confirm = sides.judge(answer)
    for_nobody = sides.answer(proven(sides.alice, changed(knock, TALKS.size, nobody)))
    with pytest.raises(Forged, match="stale"):
        sides.judge(proven(sides.alice, changed(for_nobody, TALKS.size, sides.alice.id)))
    with pytest.raises(Forged, match="stale"):
        sides.judge(proven(sides.alice, changed(answer, TALKS.size + ID, nobody)))
    with pytest.raises(Forged, match="stale"):
        sides.finish(proven(sides.alice, changed(confirm, TALKS.size, nobody)))


def test_who_knocks_and_who_answers_is_part_of_every_key(sides: Sides) -> None:
    """Four keys and what is signed, of handshakes with the same private keys that differ in one thing."""
    private, public = bytes(range(32)), public_of(bytes(range(1, 33)))
    a, b, one, two = b"a" * ID, b"b" * ID, b"1" * KEY, b"2" * KEY
    said = [(a, one, b, two), (b, one, a, two), (a, two, b, one), (b, one, b, two), (a, one, b, one)]
    found = [sides.alice._keys(private, public, *each) for each in said]
    assert len({key for keys in found for key in keys}) == 5 * len(said)


@pytest.mark.parametrize("point", SMALL)
def test_points_of_small_order_are_refused(sides: Sides, point: bytes) -> None:
    knock = proven(sides.alice, changed(sides.knock(), TALKS.size + ID, point))
    with pytest.raises(Forged, match="forged"):
        sides.answer(knock)
    answer = sides.answer(sides.knock())
    with pytest.raises(Forged, match="forged"):
        sides.judge(proven(sides.alice, changed(answer, TALKS.size + 2 * ID, point)))
    _, confirm = sides.judge(answer)
    with pytest.raises(Forged, match="forged"):
        sides.finish(proven(sides.alice, changed(confirm, TALKS.size + 2 * ID, point)))


def test_every_octet_of_a_word_counts(sides: Sides) -> None:
    """For those who can prove words: no change of one goes unnoticed, at whatever place but where a confirmation says where
    its sender is."""
    knock = sides.knock()
    answer = sides.answer(knock)
    _, confirm = sides.judge(answer)
    for at in range(TALKS.size, len(answer) - PROOF, 11):
        with pytest.raises((Forged, NotForUs)):
            sides.judge(proven(sides.alice, changed(answer, at, bytes([answer[at] ^ 1]))))
    cookie = range(CONFIRM_HEAD, CONFIRM_HEAD + PROOF)
    for at in {*range(TALKS.size, len(confirm) - PROOF, 11)} - {*cookie}:
        with pytest.raises((Forged, NotForUs)):
            sides.finish(proven(sides.alice, changed(confirm, at, bytes([confirm[at] ^ 1]))))
    again = sides.alice.confirm_again(confirm, bytes(PROOF))
    assert again == proven(sides.alice, changed(confirm, cookie.start, bytes(PROOF))) != confirm
    assert sides.finish(again).name == "alice"


def test_words_that_are_cut_are_refused(sides: Sides) -> None:
    knock = sides.knock()
    answer = sides.answer(knock)
    _, confirm = sides.judge(answer)
    cookie = sides.bob.cookie(sides.bob.read_knock(content(sides.bob, knock, KNOCK)), "there", 0.0)
    for word, hear in (
        (knock, sides.answer),
        (answer, sides.judge),
        (confirm, sides.finish),
        (cookie, lambda word: sides.alice.read_cookie(content(sides.alice, word, COOKIE))),
    ):
        for size in [*range(60), *range(60, len(word) - PROOF, 13)]:
            with pytest.raises((Forged, WireError)):
                hear(word[:size])
            with pytest.raises((Forged, WireError)):
                hear(proven(sides.alice, word[:size] + bytes(PROOF)))


def test_nobody_speaks_to_itself(sides: Sides) -> None:
    """What one has said comes back to it."""
    answer = sides.answer(sides.knock())
    _, confirm = sides.judge(answer)
    cookie = sides.bob.cookie(sides.bob.read_knock(content(sides.bob, sides.knock(), KNOCK)), "there", 0.0)
    assert sides.bob.read_answer(content(sides.bob, answer, ANSWER)) is None
    assert sides.alice.read_confirm(content(sides.alice, confirm, CONFIRM)) is None
    assert sides.bob.read_cookie(content(sides.bob, cookie, COOKIE)) is None


def test_a_number_of_a_process_has_one_name(sides: Sides) -> None:
    """Mallory has heard bob's number, and is the first to say that it is hers. Or even knows from what it follows."""
    make = (lambda name: known()) if sides.bob._credentials.kind == SECRET else certified
    mallory = Handshake("lunch", make("mallory"), Random(3).randbytes, "mallory")
    mallory.id = sides.bob.id
    for chance in (mallory._chance, sides.bob._chance):
        mallory._chance = chance
        for forged in (sides._replace(bob=mallory), Sides(mallory, sides.alice)):
            with pytest.raises(Forged, match="impostor"):
                forged.finish(forged.judge(forged.answer(forged.knock()))[1])


def test_an_answer_is_no_confirmation(sides: Sides) -> None:
    """One side's proof does not serve as the other's, whatever stands around it."""
    bob, _ = sides.judge(sides.answer(sides.knock()))
    assert bob.keys.answer != bob.keys.confirm
    for role, other in (("answer", "confirm"), ("confirm", "answer")):
        credentials = certified("bob")
        told = Told(credentials.prove(role, bytes(32)))
        credentials.judge(role, bytes(32), "bob", told)
        with pytest.raises(KeysError, match="not signed"):
            credentials.judge(other, bytes(32), "bob", told)
    assert signed("answer", bytes(32)) != signed("confirm", bytes(32))


def test_the_content_of_a_word_says_which_one_it_is(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who may be a member says one word in the place of the other."""
    answer = sides.answer(sides.knock())
    monkeypatch.setattr(handshake, "said", lambda do, **what: said("answer", **what))
    _, confirm = sides.judge(answer)
    with pytest.raises(WireError, match="malformed"):
        sides.finish(confirm)


def test_a_proof_of_another_handshake_proves_nothing() -> None:
    """Mallory, who is certified, cannot make bob's words her own, nor hers his: a signature is for one handshake."""
    bob = certified("bob")
    told = Told(bob.prove("answer", bytes(32)))
    with pytest.raises(KeysError, match="not signed"):
        bob.judge("answer", bytes(31) + b"x", "bob", told)
    mallory = Told({**told._content, "certificate": certified("mallory").prove("answer", b"")["certificate"]})
    with pytest.raises(KeysError, match="not signed"):
        bob.judge("answer", bytes(32), "mallory", mallory)


def test_who_steals_a_key_is_not_everybody_to_its_owner() -> None:
    """With alice's private key one can be alice, and not bob to alice."""
    with pytest.raises(KeysError, match="not of"):
        answered_by(certified("alice"), "bob")


# What is kept, and for how long


def test_keys_of_a_handshake_are_forgotten(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who takes over a process later finds nothing in it by which what was recorded can be read."""
    _, confirm = sides.judge(sides.answer(sides.knock()))
    sides.finish(confirm)
    secrets = {
        octets
        for each in (sides.alice._privates, sides.bob._locals)
        for octets in each.good(0.0)
        if len(octets) == KEY
    }
    assert len(secrets) == 2
    assert secrets <= reachable(sides.alice) | reachable(sides.bob)
    assert sides.alice.expire(1.0) == sides.bob.expire(1.0) == GOOD_FOR
    for side in sides:
        assert side.expire(GOOD_FOR) is None
    assert not secrets & (reachable(sides.alice) | reachable(sides.bob))


@pytest.mark.parametrize("start", [tenths / 10 for tenths in range(100)])
def test_what_is_to_be_forgotten_is_when_its_time_has_come(start: float) -> None:
    keys = ShortLived(bytes)
    keys.newest(start)
    due = keys.expire(start)
    assert due is not None and keys.expire(due) is None


def reachable(start: object) -> set[bytes]:
    """All octets that an object holds, directly or not."""
    found, seen, left = set(), set(), [start]
    while left:
        each = left.pop()
        if id(each) in seen or isinstance(each, type) or callable(each):
            continue
        seen.add(id(each))
        if isinstance(each, bytes):
            found.add(each)
        left += gc.get_referents(each)
        left += vars(each).values() if hasattr(each, "__dict__") else ()
    return found


def test_a_handshake_takes_two_minutes_at_most(sides: Sides) -> None:
    answer = sides.answer(sides.knock())
    _, confirm = sides.judge(answer, now=GOOD_FOR - 1)
    sides.finish(confirm, now=GOOD_FOR - 1)
    with pytest.raises(Forged, match="stale"):
        sides.judge(answer, now=GOOD_FOR)
    with pytest.raises(Forged, match="stale"):
        sides.finish(confirm, now=GOOD_FOR)


def test_keys_to_begin_with_are_renewed(sides: Sides) -> None:
    knocks = [sides.knock(now) for now in (0.0, FRESH_FOR - 1, FRESH_FOR, 2 * FRESH_FOR)]
    assert knocks[0] == knocks[1]
    assert len(set(knocks)) == 3
    _, confirm = sides.judge(sides.answer(knocks[0]), now=FRESH_FOR + 1)  # one that is under way goes on
    assert sides.finish(confirm, now=FRESH_FOR + 1).name == "alice"


def test_an_answer_that_is_said_again_is_sealed_with_another_key(sides: Sides) -> None:
    """It may say something else by then, as a new certificate, and there is only one nonce."""
    knock = sides.knock()
    one, two = sides.answer(knock), sides.answer(knock)
    sealed = TALKS.size + 2 * ID + KEY + PROOF
    assert one[: sealed - PROOF] == two[: sealed - PROOF]
    assert one[sealed - PROOF : sealed] != two[sealed - PROOF : sealed]
    assert one[sealed : -PROOF - TAG] != two[sealed : -PROOF - TAG]


def test_after_it_has_forgotten_nothing_can_be_said_again(sides: Sides) -> None:
    answer = sides.answer(sides.knock())
    _, confirm = sides.judge(answer)
    sides.finish(confirm)
    sides.bob.forget()
    sides.alice.forget()
    with pytest.raises(Forged, match="stale"):
        sides.finish(confirm)
    with pytest.raises(Forged, match="stale"):
        sides.judge(answer)


# Cookies, and what costs whom how much


def test_a_cookie_is_for_one_process_at_one_place_and_not_for_long(sides: Sides) -> None:
    first = sides.bob.read_knock(content(sides.bob, sides.knock(), KNOCK))
    assert not sides.bob.is_there(first, "there", 0.0)
    word = sides.bob.cookie(first, "there", 0.0)
    given = sides.alice.read_cookie(content(sides.alice, word, COOKIE))
    assert given is not None and given.token == first.token
    again = sides.bob.read_knock(content(sides.bob, sides.alice.knock(0.0, given.cookie), KNOCK))
    assert again.public == first.public
    assert sides.bob.is_there(again, "there", 0.0)
    assert not sides.bob.is_there(again, "elsewhere", 0.0)
    assert not sides.bob.is_there(again._replace(id=bytes(ID)), "there", 0.0)
    assert not sides.bob.is_there(again._replace(cookie=bytes(PROOF)), "there", 0.0)
    assert sides.bob.is_there(again, "there", GOOD_FOR - 1)
    assert not sides.bob.is_there(again, "there", GOOD_FOR)


def test_nothing_that_is_answered_is_longer_than_what_asked_for_it(sides: Sides) -> None:
    knock = sides.knock()
    assert len(knock) == PADDED[sides.alice._credentials.kind]
    assert len(sides.answer(knock)) <= len(knock)
    assert not sides.bob.is_long
    read = sides.bob.read_knock(content(sides.bob, knock, KNOCK))
    cookie = sides.bob.cookie(read, "there", 0.0)
    assert len(cookie) == len(knock)
    for word, read_it in ((knock, sides.bob.read_knock), (cookie, sides.alice.read_cookie)):
        for size in (TALKS.size + 64 + PROOF, len(word) - 1, len(word) + 1):
            with pytest.raises(Forged):
                read_it(word[:-PROOF].ljust(size, b"\0")[: size - PROOF])


def test_whose_answers_are_longer_asks_for_cookies() -> None:
    entropy = Random(1).randbytes
    wordy = AUTHORITY.issue("bob", hosts=[f"host{i}.example.org" for i in range(9)], now=MOMENT)
    for credentials, name in ((certified(wordy), "bob"), (known(), "b" * 200)):
        sides = Sides(
            Handshake("lunch", credentials, entropy, name), Handshake("lunch", credentials, entropy, name)
        )
        knock = sides.knock()
        read = sides.bob.read_knock(content(sides.bob, knock, KNOCK))
        assert sides.bob.is_long
        assert len(sides.bob.answer(read, "there", 0.0)) > len(knock)


def test_is_long_counts_right(sides: Sides) -> None:
    """To the octet: the longest name that is not long."""
    credentials, entropy = sides.bob._credentials, Random(2).randbytes
    named = [Handshake("lunch", credentials, entropy, "b" * size) for size in range(1, 250)]
    first = next(index for index, each in enumerate(named) if each.is_long)
    bob, long = named[first - 1 : first + 1]
    knock = sides.knock()
    read = bob.read_knock(content(bob, knock, KNOCK))
    assert len(bob.answer(read, "there", 0.0)) == bob.longest == len(knock)
    assert len(long.answer(read, "there", 0.0)) == long.longest == len(knock) + 1


# Nothing is shown


def test_nothing_secret_is_shown(sides: Sides) -> None:
    other, _ = sides.judge(sides.answer(sides.knock()))
    shown = repr(other) + repr(other.keys) + str(other.keys) + repr(sides.alice)
    for key in other.keys:
        assert repr(key)[2:-1] not in shown


def test_a_secret_is_at_least_128_bits() -> None:
    """So that nothing can be guessed by one that has recorded a handshake."""
    with pytest.raises(KeysError, match="octets"):
        Secret(bytes(15))
