"""Sealed datagrams: encrypted and authenticated, so that only processes that have the key can read and make them.

    0   2  magic  "iS"
    2   1  version           2; the handshake of version 1 let a process take another's number
    3   1  kind              a cipher, or a handshake message
    4   8  key id            identifies the key; meaningless to processes that do not have it
    12  8  counter           never twice with one key
    20  .  the encrypted contents, and an authentication tag of 16 octets

A key has one sender, which counts its datagrams, so no nonce is ever used twice, and the receiver recognises replayed datagrams. After a
while the sender switches to the next key, which is derived from the one before by a one-way function: an attacker that finds a
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
"""Kinds of sealed datagrams: AES-256-GCM, or ChaCha20-Poly1305. Each sender uses the one that is faster on its machine."""

TAG = 16
OVERHEAD = HEAD.size + TAG
"""Octets by which sealing makes a datagram longer."""

WINDOW = 2048
"""How far the counter of a datagram may be behind its sender's newest; anything older counts as replayed."""

EPOCH_DATAGRAMS = 1 << 26
"""Datagrams that one key seals at most, far below the limits of both ciphers."""

EPOCH_SECONDS = 600.0
"""Seconds after which a sender switches to the next key, at the latest."""

EPOCHS_AHEAD = 4
"""Keys of a sender that are derived in advance, for a sender that was not heard while it switched keys, perhaps several times."""

KEY = 32

_forks = 0  # how many forks lie between the original process and this one


def _forked() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class Forged(Exception):
    """A datagram was not authentic or not allowed; the argument is the reason under which it is counted."""


def derive(secret: Buffer, *labels: bytes | str) -> bytes:
    """Derive a separate key for each purpose: HMAC-SHA-256 over the labels, each with its length."""
    message = bytearray()
    for label in labels:
        octets = label.encode() if isinstance(label, str) else label
        message += len(octets).to_bytes(4, "big") + octets
    return hmac.digest(bytes(secret), bytes(message), "sha256")


def load_ciphers() -> None:
    """Raise a clear error if the package with the ciphers is missing."""
    try:
        import cryptography.hazmat.primitives.ciphers.aead  # noqa: F401
    except ImportError:
        raise UsageError("secured groups need the package cryptography: pip install 'inga[secure]'") from None


class NotPickled:
    """An object that holds keys, which must not leave the memory of this process."""

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("keys are not pickled")


class _Epoch:
    """One key of a sender, and the values that both sides derive from it."""

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
    """Seals datagrams of one process, for receivers that have the same key."""

    __slots__ = ("_counter", "_epoch", "_forks", "_kind", "_since")

    def __init__(self, secret: bytes, now: float, kind: int) -> None:
        self._forks = _forks
        self._epoch = _Epoch(secret)
        self._kind = kind
        self._counter = 0
        self._since = now

    @property
    def secret(self) -> bytes:
        """The secret that opens everything sealed under the key in use and later ones, and nothing from before."""
        return self._epoch.secret

    def seal(self, data: Buffer, now: float) -> Buffer | list[Buffer]:
        if self._forks != _forks:  # this process and its parent would use the same counters
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
    """Opens the datagrams that one process has sealed, each once."""

    __slots__ = ("_epochs", "_newest", "_table", "_windows", "owner")

    def __init__(self, secret: bytes, owner: Any, table: "dict[bytes, ReceivingKey]") -> None:
        """`owner`: the sender that has the key, as the caller of `open` knows it. `table`: maps the key ids in datagrams to receiving keys."""
        self._epochs: dict[bytes, _Epoch] = {}
        self._windows: dict[bytes, _Window] = {}
        self._newest = -1  # the newest epoch of which a datagram was opened
        self._table = table
        self.owner = owner
        self._learn(_Epoch(secret))
        self._reach()

    @property
    def is_used(self) -> bool:
        """Whether a datagram sealed with this key was opened."""
        return self._newest >= 0

    def forget(self) -> None:
        """Remove the key from the table: nothing is opened with it any more."""
        for key_id in self._epochs:
            self._table.pop(key_id, None)

    def open(self, data: Buffer, kind: int, key_id: bytes, counter: int) -> bytes:
        """Return the contents; Forged if they were not sealed with this key, or the datagram was opened before."""
        window = self._windows[key_id]
        if window.has(counter):
            raise Forged("replayed")
        epoch = self._epochs[key_id]
        view = memoryview(data)
        try:
            plain = epoch.cipher(kind).decrypt(NONCE.pack(0, counter), view[HEAD.size :], view[: HEAD.size])
        except Exception:
            # InvalidTag, or the datagram is too short to have a tag. The module is imported late, so the exception has no name here.
            raise Forged("forged") from None
        window.add(counter)
        if epoch.number > self._newest:
            # Its sender has switched to this key: forget all keys older than the one before it.
            self._newest = epoch.number
            self._reach()
            for old in [each for each in self._epochs.values() if each.number < epoch.number - 1]:
                del self._epochs[old.id], self._windows[old.id], self._table[old.id]
        return plain

    def _reach(self) -> None:
        """Derive the keys that the sender may use next."""
        last = max(self._epochs.values(), key=lambda epoch: epoch.number)
        while last.number < self._newest + EPOCHS_AHEAD:
            last = last.next()
            self._learn(last)

    def _learn(self, epoch: _Epoch) -> None:
        self._epochs[epoch.id], self._windows[epoch.id] = epoch, _Window()
        self._table[epoch.id] = self


class _Window:
    """The counters of one key that were seen: the replay window."""

    __slots__ = ("_bits", "_top")

    def __init__(self) -> None:
        self._top = -1  # the newest counter
        self._bits = 0  # bit k: the counter k below the newest was seen

    def has(self, counter: int) -> bool:
        """Whether the counter was seen, or is too old to tell."""
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
