"""Decoders of secured groups: for what they read of processes that are not members yet (handshake messages, also those that others
forward, certificates, files of keys), and guards that open sealed datagrams.

A handshake message carries a proof that its sender knows the secret, so a mutated one would be dropped unread. So the proof is
recomputed: the search covers what a process that knows the secret could send.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any

from inga.keys.secret import Secret
from inga.lab.fuzz.decoder import FuzzedDecoder
from inga.lab.fuzz.mutate import Field, Form, FuzzSample, json_texts, sample, tokens
from inga.model.errors import KeysError, WireError
from inga.model.packet import Packet
from inga.model.view import Member, View
from inga.secure.carrying import CARRIED, CARRY, Handed
from inga.secure.credentials import Certified, Credentials, KnownSecret
from inga.secure.guard import GroupGuard
from inga.secure.handshake import ANSWER, CONFIRM, COOKIE, ID, KNOCK, PROOF, TALKS, Handshake, process_of
from inga.secure.sealing import AES, KEY, Forged
from inga.stack.stack import EVERYBODY, joined
from inga.wire.packet import encode, view_tag
from inga.wire.told import said

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from inga.keys.identity import Identity

NOW = 1e9
ALICE, BOB = 0, 1


@cache
def _handshakes() -> tuple[Handshake, Handshake]:
    """Return the handshakes of alice, which has knocked, and bob, which has answered."""
    credentials = KnownSecret(Secret(bytes(range(32))))
    alice, bob = (
        Handshake("lunch", credentials, Random(each).randbytes, name)
        for each, name in ((ALICE, "alice"), (BOB, "bob"))
    )
    bob.answer(bob.read_knock(bob.read(alice.knock(0.0))[1]), "here", 0.0)
    return alice, bob


def _words() -> list[FuzzSample]:
    """Make samples: one octet for the reader, then a handshake message without its proof."""
    alice, bob = _handshakes()
    knocked = alice.knock(0.0)
    knock = bob.read_knock(bob.read(knocked)[1])
    answered = bob.answer(knock, "here", 0.0)
    answer = alice.read_answer(alice.read(answered)[1])
    assert answer is not None
    other, public = alice.judge(answer, 0.0)
    said = (
        (BOB, knocked),
        (ALICE, bob.cookie(knock, "here", 0.0)),
        (ALICE, answered),
        (BOB, alice.confirm(public, other, answer.cookie)),
    )
    return [sample(bytes((reader,)) + word[:-PROOF], _word_fields) for reader, word in said]


def _word_fields(data: bytes) -> list[Field]:
    head = [Field(1 + at, 2 + at, Form.BIG) for at in range(TALKS.size)]
    borders = [
        1 + TALKS.size + size
        for size in (0, ID, 2 * ID, 2 * ID + KEY, 2 * ID + KEY + PROOF, 2 * ID + KEY + 3 * PROOF)
    ]
    return [*head, *(Field(low, high, Form.OCTETS) for low, high in pairwise(borders))]


def _hear(octets: bytes) -> Any:
    """Process a handshake message as a member does if the sender knows the secret."""
    reader = _handshakes()[(octets[0] if octets else 0) % 2]
    kind, content = reader.read(reader._proven(octets[1:]))
    if kind == KNOCK:
        knock = reader.read_knock(content)
        return len(reader.answer(knock, "here", 0.0)), reader.is_there(knock, "here", 0.0)
    if kind == COOKIE:
        return reader.read_cookie(content)
    if kind == ANSWER:
        answer = reader.read_answer(content)
        return None if answer is None else reader.judge(answer, 0.0)[0].name
    if kind == CONFIRM:
        confirmed = reader.read_confirm(content)
        return None if confirmed is None else reader.finish(confirmed, 0.0).name
    raise Forged("malformed")


def _handed() -> list[FuzzSample]:
    """Make samples: handshake messages that one process sends to another by way of a third."""
    alice, bob = _handshakes()
    said = (Handed(CARRY, bob.id, alice.knock(0.0)), Handed(CARRIED, alice.id, alice.knock(0.0)))
    return [sample(each.encode(), _handed_fields) for each in said]


def _handed_fields(data: bytes) -> list[Field]:
    head = [Field(at, at + 1, Form.BIG) for at in range(3)]
    return [*head, Field(3, 3 + ID, Form.OCTETS), Field(3 + ID, len(data), Form.OCTETS)]


@cache
def _authority() -> tuple[bytes, "Ed25519PrivateKey"]:
    from datetime import UTC, datetime

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from inga.keys.certificates import make_authority

    key = Ed25519PrivateKey.from_private_bytes(bytes(32))
    return make_authority(key, "office", 900.0, datetime.fromtimestamp(NOW, UTC)), key


@cache
def _certificate() -> bytes:
    from inga.keys.authority import Authority

    return Authority(*_authority()).issue("alice", ["host.example", "127.0.0.1"], 90.0, now=NOW).certificate


def _certificates() -> list[FuzzSample]:
    return [sample(each, _octet_fields) for each in (_certificate(), _authority()[0])]


def _octet_fields(data: bytes) -> list[Field]:
    return [Field(at, at + 1, Form.BIG) for at in range(len(data))]


def _check(octets: bytes) -> Any:
    from inga.keys.certificates import check_certificate, facts

    facts(octets)
    return check_certificate(octets, [_authority()[0]], "alice", NOW + 60).ends


def _pems() -> list[FuzzSample]:
    from inga.keys.certificates import certificate_pem, private_pem

    both = certificate_pem(_certificate()) + private_pem(_authority()[1])
    return [sample(each, tokens) for each in (both, certificate_pem(_authority()[0]))]


def _read_pem(octets: bytes) -> int:
    from inga.keys.certificates import read_pem

    return len(read_pem(octets, "a file")[0])


# ---- guards

NAMES = ("alice", "bob")
VIEW = View(1, tuple(map(Member, NAMES)), "fifo")
CHANNEL, SECRET_OF_VIEW, PROOFS = 0, 1, 2
"""What alice sends to bob: any message over their channel; the secret of a view; from `PROOFS` on, the message of a handshake by
which she proves her identity, in a handshake that bob or alice began, with a secret or a certificate."""

OURS = b'"$"'
"""A placeholder for her certificate and her signature, which differ each time."""


@cache
def _identities() -> "dict[str, Identity]":
    from inga.keys.authority import Authority

    return {name: Authority(*_authority()).issue(name, now=NOW) for name in NAMES}


def _sealed() -> list[FuzzSample]:
    """Make samples: one octet for what alice sends, then its content."""
    key = said("key", tag=view_tag("lunch", VIEW), key="00" * KEY, asks=True)
    outside = joined(encode(Packet(7, 0, b"hello"), 0, covers="nothing"))
    handed = Handed(CARRIED, bytes(ID), _handshakes()[ALICE].knock(0.0)).encode()
    who = {"name": "alice", "certificate": "$", "signature": "$"}
    found = [(CHANNEL, key), (CHANNEL, outside), (CHANNEL, handed), (SECRET_OF_VIEW, b'"00 00"')]
    found += [(mode, said(("answer", "confirm")[mode % 2], **who)) for mode in range(PROOFS, PROOFS + 4)]
    return [sample(bytes((mode,)) + content, _sealed_fields) for mode, content in found]


def _sealed_fields(data: bytes) -> list[Field]:
    if data[1:2] in (b"{", b'"'):
        return [Field(start + 1, end + 1, form) for start, end, form in json_texts(data[1:])]
    return _octet_fields(data)[1:]


def _open_sealed(octets: bytes) -> None:
    """Let bob receive what alice seals for him, and go on from there."""
    mode, content = (octets[0] if octets else 0) % (PROOFS + 4), octets[1:]
    is_certified = mode >= PROOFS + 2
    alice, bob = guards = [
        GroupGuard(
            "lunch",
            name,
            Certified(_identities()[name], lambda: NOW + 60)
            if is_certified
            else KnownSecret(Secret(bytes(range(32)))),
            entropy=Random(name).randbytes,
            kind=AES,
        )
        for name in NAMES
    ]
    if mode >= PROOFS:
        _claim(alice._handshake, alice._handshake._credentials, content)
    for me, guard in enumerate(guards):
        guard.enter(view_tag("lunch", VIEW), VIEW, me, 0.0)
    starter, other = (bob, alice) if mode % 2 == 0 and mode >= PROOFS else (alice, bob)
    starter.seal([(EVERYBODY, joined(encode(Packet(7, 0, b"hello"), 0, covers="nothing")))], 0.0)
    starter._knocked.clear()
    starter._knock(EVERYBODY)
    for _ in range(4):
        for source, target in ((starter, other), (other, starter)):
            for _, word in source.seal([], 0.0):
                target.open([(joined(word), source._name)], 0.0)
    channel = alice._by_name.get("bob")
    if mode == CHANNEL and channel is not None:
        bob.open([(joined(channel.sending.seal(content, 0.0)), "alice")], 0.0)
    if mode == SECRET_OF_VIEW:
        with suppress(ValueError, RecursionError, WireError):
            text = json.loads(content)
            bob.unwrap("alice", text if isinstance(text, str) else "")
    for now in (0.0, 1.0, 70.0):
        bob.tick(now)
        bob.seal([(EVERYBODY, joined(encode(Packet(7, 0, b"hello"), 0, covers="nothing")))], now)
        for text in (*map(str, bob.told()), *bob.strangers, *bob._by_name, *bob.places, *bob.rejected):
            text.encode()


def _claim(handshake: Handshake, credentials: Credentials, content: bytes) -> None:
    """Let a process claim this identity in its handshake, under the id that belongs to the claimed name."""
    with suppress(ValueError, RecursionError, TypeError, KeyError, AttributeError):
        handshake.id = process_of(json.loads(content)["name"], handshake._chance)

    def proof(role: str, transcript: bytes) -> bytes:
        words = content
        for each in credentials.prove(role, transcript).values():
            words = words.replace(OURS, json.dumps(each).encode(), 1)
        return handshake._chance + words

    handshake._proof_of_us = proof  # type: ignore[method-assign]


DECODERS: Sequence[FuzzedDecoder] = (
    ()
    if find_spec("cryptography") is None
    else (
        FuzzedDecoder("secure", _words, _hear, (Forged, WireError, KeysError), weight=300),
        FuzzedDecoder(
            "secure/handed",
            _handed,
            Handed.read,
            (Forged,),
            again=lambda found: Handed.read(found.encode()),
            weight=300,
        ),
        FuzzedDecoder("secure/guard", _sealed, _open_sealed, (), weight=50, seconds=0.3),
        FuzzedDecoder("secure/certificate", _certificates, _check, (KeysError,), weight=300),
        FuzzedDecoder("secure/pem", _pems, _read_pem, (KeysError,), weight=100, seconds=0.3),
    )
)
