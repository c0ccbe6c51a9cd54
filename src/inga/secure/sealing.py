"""Datagrams that only those can read and make who have the key.

    0   2  magic  "iS"
    2   1  version           2; of 1 were words of the handshake by which one could take another's number
    3   1  kind              how it is sealed
    4   8  key id            which key it is: says nothing to anybody else
    12  8  counter           never twice with one key
    20  .  what is sealed, and 16 octets that prove it

A key has one sender. That sender counts, so no nonce is ever used twice, and whoever opens knows what came before. A key
that has served for long is replaced by the next one, which follows from it and not the other way round: who finds a
key cannot read what was sealed before it.
"""

import hmac
import os
from struct import Struct
from typing import TYPE_CHECKING, Any, NoReturn

from inga.model.errors import UsageError
from inga.model.packet import Buffer
from inga.wire.packet import GATHERED_FROM, SEALED_MAGIC

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

MAGIC = SEALED_MAGIC
VERSION = 2
HEAD = Struct(">HBB8sQ")
NONCE = Struct(">IQ")

AES, CHACHA = 5, 6
"""Kinds of sealed datagrams: AES-256-GCM, or ChaCha20-Poly1305. Each sender takes what its machine does faster."""

TAG = 16
OVERHEAD = HEAD.size + TAG
"""Octets that a datagram grows by."""

WINDOW = 2048
"""How far behind the newest of a sender a datagram may come; what is later counts as replayed."""

EPOCH_DATAGRAMS = 1 << 26
"""Datagrams that one key seals at most, far below what either cipher allows."""

EPOCH_SECONDS = 600.0
"""Seconds after which a sender takes the next key, at the latest."""

EPOCHS_AHEAD = 4
"""Keys of a sender that are known before it uses them: who has heard nothing of it for so many still understands it."""

KEY = 32

_forks = 0  # from the first of our processes to this one


def _forked() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class Forged(Exception):
    """A datagram that is not what it claims to be, with the reason that is counted."""


def derive(secret: Buffer, *labels: bytes | str) -> bytes:
    """A key of its own for every purpose: HMAC-SHA-256 over the labels, each with its length."""
    message = bytearray()
    for label in labels:
        octets = label.encode() if isinstance(label, str) else label
        message += len(octets).to_bytes(4, "big") + octets
    return hmac.digest(bytes(secret), bytes(message), "sha256")


def load_ciphers() -> None:
    """Raise a clear error where the package with the ciphers is missing."""
    try:
        import cryptography.hazmat.primitives.ciphers.aead  # noqa: F401
    except ImportError:
        raise UsageError("secured groups need the package cryptography: pip install 'inga[secure]'") from None


class NotPickled:
    """Something with keys in it, which stay in the memory of this process."""

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("keys are not pickled")


class _Epoch:
    """One key of a sender, and what both sides derive from it."""

    __slots__ = ("_ciphers", "id", "number", "secret")

    def __init__(self, secret: bytes, number: int = 0) -> None:
        self.secret = secret
        self.number = number
        self.id = derive(secret, "id")[:8]
        self._ciphers: dict[int, AESGCM | ChaCha20Poly1305] = {}

    def cipher(self, kind: int) -> "AESGCM | ChaCha20Poly1305":
        cipher = self._ciphers.get(kind)
        if cipher is None:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

            key = derive(self.secret, "cipher", bytes([kind]))  # no key serves two ciphers
            cipher = self._ciphers[kind] = AESGCM(key) if kind == AES else ChaCha20Poly1305(key)
        return cipher

    def next(self) -> "_Epoch":
        return _Epoch(derive(self.secret, "next"), self.number + 1)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("keys are not pickled")


class SendingKey:
    """Seals what one process sends, to those who have the same key."""

    __slots__ = ("_counter", "_epoch", "_forks", "_kind", "_since")

    def __init__(self, secret: bytes, now: float, kind: int) -> None:
        self._forks = _forks
        self._epoch = _Epoch(secret)
        self._kind = kind
        self._counter = 0
        self._since = now

    @property
    def secret(self) -> bytes:
        """What opens everything from the key in use on, and nothing from before."""
        return self._epoch.secret

    def seal(self, data: Buffer, now: float) -> Buffer | list[Buffer]:
        if self._forks != _forks:  # it would seal with the same numbers as the process that it came from
            raise UsageError(
                "a member of a secured group does not go on in a forked process: join there anew"
            )
        if self._counter >= EPOCH_DATAGRAMS or now - self._since >= EPOCH_SECONDS:
            self._epoch, self._counter, self._since = self._epoch.next(), 0, now
        counter = self._counter
        self._counter = counter + 1
        epoch = self._epoch
        head = HEAD.pack(MAGIC, VERSION, self._kind, epoch.id, counter)
        sealed = epoch.cipher(self._kind).encrypt(NONCE.pack(0, counter), data, head)
        return [head, sealed] if len(sealed) >= GATHERED_FROM else head + sealed


class ReceivingKey:
    """Opens what one process has sealed, each datagram once."""

    __slots__ = ("_epochs", "_newest", "_table", "_windows", "owner")

    def __init__(self, secret: bytes, owner: Any, table: "dict[bytes, ReceivingKey]") -> None:
        """`owner`: whose it is, for whoever opens. `table`: where it is found by the ids that datagrams say."""
        self._epochs: dict[bytes, _Epoch] = {}
        self._windows: dict[bytes, _Window] = {}
        self._newest = -1  # the newest epoch of which something has come
        self._table = table
        self.owner = owner
        self._learn(_Epoch(secret))
        self._reach()

    @property
    def is_used(self) -> bool:
        """Whether anything has come that was sealed with it."""
        return self._newest >= 0

    def forget(self) -> None:
        """Nothing is opened with it any more."""
        for key_id in self._epochs:
            self._table.pop(key_id, None)

    def open(self, data: Buffer, kind: int, key_id: bytes, counter: int) -> bytes:
        """What was sealed; Forged if nobody with the key has sealed it, or it was opened before."""
        window = self._windows[key_id]
        if window.has(counter):
            raise Forged("replayed")
        epoch = self._epochs[key_id]
        view = memoryview(data)
        try:
            plain = epoch.cipher(kind).decrypt(NONCE.pack(0, counter), view[HEAD.size :], view[: HEAD.size])
        except (
            Exception
        ):  # InvalidTag, or too short to have one: a module that is imported late has no name here
            raise Forged("forged") from None
        window.add(counter)
        if epoch.number > self._newest:
            # Its sender has gone on: what is older than the key before this one is forgotten.
            self._newest = epoch.number
            self._reach()
            for old in [each for each in self._epochs.values() if each.number < epoch.number - 1]:
                del self._epochs[old.id], self._windows[old.id], self._table[old.id]
        return plain

    def _reach(self) -> None:
        """Know the keys that may come next."""
        last = max(self._epochs.values(), key=lambda epoch: epoch.number)
        while last.number < self._newest + EPOCHS_AHEAD:
            last = last.next()
            self._learn(last)

    def _learn(self, epoch: _Epoch) -> None:
        self._epochs[epoch.id], self._windows[epoch.id] = epoch, _Window()
        self._table[epoch.id] = self


class _Window:
    """Which counters of one key have come."""

    __slots__ = ("_bits", "_top")

    def __init__(self) -> None:
        self._top = -1  # the newest
        self._bits = 0  # bit k: the one k before it has come

    def has(self, counter: int) -> bool:
        """Whether it has come, or is too old to tell."""
        behind = self._top - counter
        return behind >= WINDOW or (behind >= 0 and bool(self._bits >> behind & 1))

    def add(self, counter: int) -> None:
        ahead = counter - self._top
        if ahead > 0:
            self._bits = ((self._bits << ahead) | 1) & _MASK if ahead < WINDOW else 1
            self._top = counter
        else:
            self._bits |= 1 << -ahead


_MASK = (1 << WINDOW) - 1
