"""Sealed datagrams: opened once, by those who have the key, and by nobody else."""

import os
import pickle
from functools import cache
from random import Random

import pytest

pytest.importorskip("cryptography")

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

from inga.model.errors import UsageError
from inga.secure import sealing
from inga.secure.sealing import (
    AES,
    CHACHA,
    EPOCH_DATAGRAMS,
    EPOCH_SECONDS,
    EPOCHS_AHEAD,
    HEAD,
    NONCE,
    WINDOW,
    Forged,
    ReceivingKey,
    SendingKey,
    derive,
)
from inga.stack.stack import joined

SECRET = bytes(range(32))
Table = dict[bytes, ReceivingKey]


class Pair:
    """One that seals, and one that opens."""

    def __init__(self, kind: int = AES) -> None:
        self.sending = SendingKey(SECRET, 0.0, kind)
        self.table: Table = {}
        self.receiving = ReceivingKey(SECRET, "owner", self.table)

    def seal(self, data: bytes = b"lunch?", now: float = 0.0) -> bytes:
        return joined(self.sending.seal(data, now))

    def open(self, data: bytes) -> bytes | str:
        """What was sealed, or why it is not opened."""
        _, _, kind, key_id, counter = HEAD.unpack_from(data)
        if key_id not in self.table:
            return "key"
        try:
            return self.table[key_id].open(data, kind, key_id, counter)
        except Forged as error:
            return str(error)


@pytest.mark.parametrize("kind", [AES, CHACHA])
@pytest.mark.parametrize("size", [0, 1, 1000, 20_000])
def test_what_is_sealed_is_opened_once(kind: int, size: int) -> None:
    pair, data = Pair(kind), Random(size).randbytes(size)
    sealed = pair.seal(data)
    assert len(sealed) == size + sealing.OVERHEAD
    assert pair.open(sealed) == data
    assert pair.open(sealed) == "replayed"


@pytest.mark.parametrize("kind", [AES, CHACHA])
def test_every_bit_counts(kind: int) -> None:
    pair = Pair(kind)
    sealed = pair.seal()
    magic_and_version = 3  # those who look for a key have looked at these
    for bit in range(8 * magic_and_version, 8 * len(sealed)):
        changed = bytearray(sealed)
        changed[bit // 8] ^= 1 << bit % 8
        if changed[3] in (AES, CHACHA):
            assert pair.open(bytes(changed)) in ("forged", "key")
    assert pair.open(sealed) == b"lunch?"  # nothing of that has moved the window


def test_the_head_is_sealed_with_the_rest() -> None:
    pair = Pair()
    sealed = bytearray(pair.seal())
    sealed[0] ^= 1
    assert pair.open(bytes(sealed)) == "forged"


def test_what_is_cut_is_not_opened() -> None:
    pair = Pair()
    sealed = pair.seal()
    for size in range(HEAD.size, len(sealed)):
        assert pair.open(sealed[:size]) == "forged"
    assert pair.open(sealed + b"x") == "forged"


@cache
def many() -> list[bytes]:
    pair = Pair()
    return [pair.seal(b"%d" % number) for number in range(3 * WINDOW)]


@pytest.mark.parametrize("seed", range(8))
def test_the_window_is_that_of_a_set(seed: int) -> None:
    """Against everything that ever came: opened if it is new and not too old to tell, and only then."""
    rng, pair, sealed = Random(seed), Pair(), many()
    came: set[int] = set()
    at = 0
    for _ in range(1000):
        at = min(max(0, at + rng.choice([1, 1, 1, 2, 7, -3, WINDOW // 2, -WINDOW // 3])), len(sealed) - 1)
        counter = rng.choice([at, at, rng.randrange(max(0, at - WINDOW - 20), at + 1)])
        top = max(came, default=-1)
        is_right = counter not in came and counter > top - WINDOW
        assert pair.open(sealed[counter]) == (b"%d" % counter if is_right else "replayed")
        if is_right:
            came.add(counter)


def test_the_edges_of_the_window() -> None:
    pair = Pair()
    sealed = [pair.seal() for _ in range(2 * WINDOW + 1)]
    assert pair.open(sealed[WINDOW]) == b"lunch?"
    assert pair.open(sealed[0]) == "replayed"  # too old to tell
    assert pair.open(sealed[1]) == b"lunch?"  # the oldest that can be told
    assert pair.open(sealed[1]) == "replayed"
    assert pair.open(sealed[2 * WINDOW]) == b"lunch?"  # exactly one window further
    assert pair.open(sealed[WINDOW]) == "replayed"
    assert pair.open(sealed[WINDOW + 1]) == b"lunch?"


def test_a_counter_that_nobody_has_reached_moves_no_window() -> None:
    pair = Pair()
    sealed = pair.seal()
    for counter in (1, EPOCH_DATAGRAMS, (1 << 64) - 1):
        forged = HEAD.pack(*HEAD.unpack_from(sealed)[:4], counter) + sealed[HEAD.size :]
        assert pair.open(forged) == "forged"
    assert pair.open(sealed) == b"lunch?"


def test_no_nonce_is_used_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where a key has sealed all that it may, or for long enough."""
    monkeypatch.setattr(sealing, "EPOCH_DATAGRAMS", 5)
    pair, used = Pair(), set()
    for number in range(40):
        head = pair.seal(now=number * EPOCH_SECONDS / 3)[: HEAD.size]
        _, _, _, key_id, counter = HEAD.unpack(head)
        assert (key_id, counter) not in used
        assert counter < 5
        used.add((key_id, counter))
    assert len({key_id for key_id, _ in used}) == 14  # three to a key, by age


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings(
    "ignore:.*fork:DeprecationWarning"
)  # of processes with threads, as those of the tests
def test_a_forked_process_seals_nothing_with_the_keys_of_its_parent() -> None:
    pair, (reading, writing) = Pair(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            pair.seal()
        except UsageError:
            fresh = Pair().seal()
            os.write(writing, b"fresh" if fresh else b"nothing")
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as answer:
        assert answer.read() == b"fresh"
    assert pair.seal(), "and its parent goes on"


def test_a_key_that_has_sealed_enough_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing, "EPOCH_DATAGRAMS", 5)
    pair = Pair()
    ids = [pair.seal()[4:12] for _ in range(12)]
    assert [len(set(ids[at : at + 5])) for at in (0, 5, 10)] == [1, 1, 1]
    assert len(set(ids)) == 3


def test_no_key_serves_two_ciphers() -> None:
    """One and the same plain text, at one and the same counter: the streams have nothing in common."""
    for kind, right, wrong in ((AES, AESGCM, ChaCha20Poly1305), (CHACHA, ChaCha20Poly1305, AESGCM)):
        sealed = Pair(kind).seal()
        args = NONCE.pack(0, 0), sealed[HEAD.size :], sealed[: HEAD.size]
        assert right(derive(SECRET, "cipher", bytes([kind]))).decrypt(*args) == b"lunch?"
        for other in (derive(SECRET, "cipher", bytes([AES + CHACHA - kind])), SECRET):
            for cipher in (right, wrong):
                with pytest.raises(InvalidTag):
                    cipher(other).decrypt(*args)


def test_datagrams_of_the_key_before_come_late() -> None:
    pair = Pair()
    late, older = pair.seal(), pair.seal()
    newer = pair.seal(now=EPOCH_SECONDS)
    assert newer[4:12] != late[4:12]
    assert pair.open(newer) == b"lunch?"
    assert pair.open(late) == b"lunch?"
    assert pair.open(late) == "replayed"
    assert pair.open(pair.seal(now=2 * EPOCH_SECONDS)) == b"lunch?"
    assert pair.open(older) == "key"  # two keys back: forgotten
    assert len(pair.table) == EPOCHS_AHEAD + 2


@pytest.mark.parametrize("missed", range(EPOCHS_AHEAD + 1))
def test_who_has_missed_some_keys_understands_the_next(missed: int) -> None:
    pair = Pair()
    assert pair.open(pair.seal()) == b"lunch?"
    for number in range(missed):
        pair.seal(now=(number + 1) * EPOCH_SECONDS)
    newest = pair.seal(now=(missed + 1) * EPOCH_SECONDS)
    assert pair.open(newest) == (b"lunch?" if missed < EPOCHS_AHEAD else "key")


def test_a_forged_datagram_of_the_next_key_moves_nothing() -> None:
    pair = Pair()
    first = pair.seal()
    known = set(pair.table)
    for key_id in known:
        assert pair.open(HEAD.pack(*HEAD.unpack_from(first)[:3], key_id, 0) + bytes(40)) == "forged"
    assert set(pair.table) == known
    assert pair.open(first) == b"lunch?"


def test_who_finds_a_key_cannot_read_what_was_sealed_before() -> None:
    pair = Pair()
    before = pair.seal()
    pair.seal(now=EPOCH_SECONDS)
    found: Table = {}
    ReceivingKey(pair.sending.secret, "thief", found)
    assert before[4:12] not in found
    assert pair.seal(now=EPOCH_SECONDS)[4:12] in found


def test_what_is_forgotten_opens_nothing() -> None:
    pair = Pair()
    pair.receiving.forget()
    assert pair.table == {}


def test_labels_do_not_run_into_each_other() -> None:
    assert len({derive(SECRET, "a", "bc"), derive(SECRET, "ab", "c"), derive(SECRET, "abc")}) == 3


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_keys_are_not_pickled(protocol: int) -> None:
    pair = Pair()
    for key in (pair.sending, pair.receiving):
        with pytest.raises(TypeError):
            pickle.dumps(key, protocol)


def test_keys_are_not_shown() -> None:
    pair = Pair()
    shown = repr(pair.sending) + repr(pair.receiving) + repr(pair.sending._epoch)
    assert "object at" in shown and repr(SECRET)[2:10] not in shown
