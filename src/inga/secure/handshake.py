"""The handshake: how two processes that have never met agree on keys that only they know.

    knock     A, to all or to one: a fresh public key; with a secret, proof that its sender knows it
    cookie    B to A, when many processes knock: repeat the knock with this cookie, which shows that you receive at your address
    answer    B to A: a fresh public key of its own; sealed: B's name and proof
    confirm   A to B; sealed: A's name and proof

Both private keys are forgotten two minutes later at most: an attacker that finds a secret or a private key after that cannot read what was
sent before. B keeps no state for A until A has proven who it is: B's private key is derived from A's knock and from octets that only
B knows, and is computed again when A confirms.

A knock is as long as a cookie and, nearly always, as an answer; if an answer is longer, B asks for a cookie first. So B cannot be
used to flood a victim whose address an attacker has forged.

Handshake messages also return a value that was sent to the address from which they come: a cookie and an answer return the token of the knock,
a confirmation the cookie of the answer. Both values are derived from an address. Checking them is cheap, and when many messages arrive only
those are processed whose senders receive at their addresses.

A process is identified by a number derived from its name and a random value. That value is sent, sealed, together with the name,
so a number has one name, and no process can prove another name for it.

The two resulting keys, one for each direction, depend on both public keys, on who knocked and who answered, on the group's name
and on its secret. Rejected: a key that all members share from the start, as the group's secret could be; an attacker that
learns it later could read everything that was ever recorded.
"""

import hmac
from collections.abc import Callable
from hashlib import sha256
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from inga.model.errors import WireError
from inga.model.packet import Buffer
from inga.secure.credentials import CERTIFICATE, SECRET, Credentials
from inga.secure.sealing import HEAD, KEY, MAGIC, TAG, VERSION, Forged, NotPickled, derive
from inga.wire.told import Told, said

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

KNOCK, COOKIE, ANSWER, CONFIRM = 1, 2, 3, 4

KIND_AT = 3
"""The offset of the kind in a handshake message."""

ID = 16
"""Octets of a process number, which is made when the process starts; and of the random value from which it is derived."""

PROOF = 16
TALKS = Struct(">HBBB4s")
"""Magic, version, kind; kind of credentials; the first octets of a hash of the group's name."""

CONFIRM_HEAD = TALKS.size + 2 * ID + KEY
"""Octets of a confirmation before its cookie. The cookie is not sealed, since it proves only the sender's address, which may change."""

PADDED = {SECRET: 256, CERTIFICATE: 1024}
"""Octets of a knock and of a cookie, by kind of credentials: answers contain credentials, and should not be longer than knocks."""

WORD_MAX = 4096
"""Octets of a handshake message; longer ones are ignored. No member sends longer ones."""

FRESH_FOR, GOOD_FOR = 60.0, 120.0
"""Seconds for which a key starts handshakes, and for which it can finish them, both since it was made. Then it is forgotten."""

SECURED = MAGIC.to_bytes(2, "big")
"""The first octets of every datagram in secured groups."""

NO_COOKIE = bytes(PROOF)


class Knock(NamedTuple):
    """A knock: a process announces itself."""

    id: bytes
    public: bytes
    cookie: bytes
    token: bytes = bytes(PROOF)


class GivenCookie(NamedTuple):
    """A cookie: we are asked to repeat our knock with it."""

    cookie: bytes
    token: bytes


class AnsweredKnock(NamedTuple):
    """An answer to our knock."""

    id: bytes
    public: bytes
    salt: bytes
    token: bytes
    cookie: bytes
    head: bytes
    sealed: bytes


class ConfirmedKnock(NamedTuple):
    """A confirmation: a process whose knock was answered proves who it is."""

    knock: Knock
    head: bytes
    sealed: bytes


class PairKeys(NamedTuple):
    """The keys that both sides of one handshake compute, and the hash of its public data."""

    transcript: bytes
    answer: bytes
    confirm: bytes
    forth: bytes  # for traffic from the process that knocked
    back: bytes

    def __repr__(self) -> str:
        return "<PairKeys of a handshake>"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:  # a named tuple cannot inherit from NotPickled
        raise TypeError("keys are not pickled")


class ShortLived(NotPickled):
    """Random octets that only we know: the newest for handshakes that start, earlier ones for handshakes in progress."""

    def __init__(self, entropy: Callable[[int], bytes]) -> None:
        self._entropy = entropy
        self._known: list[tuple[float, bytes]] = []  # with the time when they were made, the newest first

    def newest(self, now: float) -> bytes:
        if not self._known or now - self._known[0][0] >= FRESH_FOR:
            self._known.insert(0, (now, self._entropy(KEY)))
        return self._known[0][1]

    def good(self, now: float) -> list[bytes]:
        self.expire(now)
        return [octets for _, octets in self._known]

    def expire(self, now: float) -> float | None:
        """Forget expired octets; return when the next ones expire."""
        # The same expression as below: with another rounding the time could come without anything to forget, again and again.
        self._known = [each for each in self._known if now < each[0] + GOOD_FOR]
        return self._known[-1][0] + GOOD_FOR if self._known else None

    def clear(self) -> None:
        self._known.clear()


class Handshake(NotPickled):
    """Makes and reads the handshake messages of one process in one group."""

    def __init__(
        self, group: str, credentials: Credentials, entropy: Callable[[int], bytes], name: str
    ) -> None:
        """`entropy(n)` returns `n` random octets. `name` is our own."""
        self._credentials = credentials
        self._entropy = entropy
        self.padded: int = PADDED[credentials.kind]
        self._privates = ShortLived(entropy)  # private keys of our knocks
        # Octets from which the private keys of our answers, cookies and tokens are derived.
        self._locals = ShortLived(entropy)
        self._group = derive(b"", "group", group)
        self._knocking = derive(credentials.base, "knock", self._group)
        self._name = name
        self._chance: bytes = entropy(ID)
        self.id: bytes = process_of(name, self._chance)

    def _head(self, kind: int) -> bytes:
        return TALKS.pack(MAGIC, VERSION, kind, self._credentials.kind, self._group[:4])

    @property
    def begin(self) -> bytes:
        """The first octets of each of our handshake messages; the kind in it, at `KIND_AT`, is that of a knock."""
        return self._head(KNOCK)

    def read(self, data: Buffer) -> tuple[int, bytes]:
        """Return the kind of a handshake message, and the message without its proof; Forged if it is not one of this group, or if its sender
        does not know the secret."""
        try:
            magic, version, kind, credentials, group = TALKS.unpack_from(data)
        except Exception:
            raise Forged("truncated") from None
        if (magic, version) != (MAGIC, VERSION):
            raise Forged("version")
        if len(data) > WORD_MAX:
            raise Forged("malformed")
        if group != self._group[:4]:
            raise Forged("group")
        if credentials != self._credentials.kind:
            raise Forged("credentials")
        content, proof = bytes(data[:-PROOF]), bytes(data[-PROOF:])
        if not hmac.compare_digest(proof, self._proof(content)):
            raise Forged("unproven")
        return int(kind), content

    def forget(self) -> None:
        """Forget all keys: handshakes in progress fail, and no message of an earlier one is accepted if it is replayed."""
        self._privates.clear()
        self._locals.clear()

    def expire(self, now: float) -> float | None:
        """Forget expired keys; return when the next ones expire."""
        due = self._privates.expire(now), self._locals.expire(now)
        return min((each for each in due if each is not None), default=None)

    # Messages

    def knock(self, now: float, cookie: bytes = NO_COOKIE, where: str = "") -> bytes:
        """Make a knock for the process at the address `where`; for all, if it is empty."""
        public = public_of(self._privates.newest(now))
        token = _token(self._locals.newest(now), where)
        return self._proven(self._pad(self._head(KNOCK) + self.id + public + cookie + token))

    def sign(self) -> bytes:
        """Make a message that shows a process without our keys that this group is secured: the beginning of a knock. It is as short as
        the shortest datagram that we accept, since any process can make us send it, with a forged address."""
        return self._head(KNOCK).ljust(HEAD.size, b"\0")

    def read_knock(self, data: bytes) -> Knock:
        knock, public, cookie, token, rest = self._parts(data, ID, KEY, PROOF, PROOF)
        self._check_padding(data, rest)
        return Knock(knock, public, cookie, token)

    @property
    def is_long(self) -> bool:
        """Whether our answers are longer than knocks."""
        return self.longest > self.padded

    @property
    def longest(self) -> int:
        """Octets of our answers, which are our longest handshake messages."""
        sealed = self._proof_of_us("answer", b"")
        return TALKS.size + 2 * ID + KEY + 3 * PROOF + len(sealed) + TAG + PROOF

    def is_there(self, knock: Knock, address: str, now: float) -> bool:
        """Whether the knock has a cookie that we recently sent to that address."""
        return any(
            hmac.compare_digest(knock.cookie, _cookie(local, knock, address))
            for local in self._locals.good(now)
        )

    def cookie(self, knock: Knock, address: str, now: float) -> bytes:
        """Make the cookie for a process that knocks from that address."""
        cookie = _cookie(self._locals.newest(now), knock, address)
        return self._proven(self._pad(self._head(COOKIE) + knock.id + self.id + cookie + knock.token))

    def read_cookie(self, data: bytes) -> "GivenCookie | None":
        """Read a cookie that we got for our knock; None if it is not for us."""
        whose, _, cookie, token, rest = self._parts(data, ID, ID, PROOF, PROOF)
        self._check_padding(data, rest)
        return GivenCookie(cookie, token) if whose == self.id else None

    def is_expected(self, token: bytes, address: str, now: float) -> bool:
        """Whether we recently knocked at that address alone: a knock for all does not count, since every process gets its token."""
        return any(hmac.compare_digest(token, _token(local, address)) for local in self._locals.good(now))

    def answer(self, knock: Knock, address: str, now: float) -> bytes:
        """Make our answer to a knock from that address."""
        local = self._locals.newest(now)
        private = _private_for(local, knock)
        public = public_of(private)
        keys = self._keys(private, knock.public, knock.id, knock.public, self.id, public)
        # A repeated answer may have other contents, so it is sealed with another key.
        salt = self._entropy(PROOF)
        head = (
            self._head(ANSWER)
            + knock.id
            + self.id
            + public
            + salt
            + knock.token
            + _cookie(local, knock, address)
        )
        content = self._proof_of_us("answer", keys.transcript)
        content = content.ljust(
            self.padded - len(head) - TAG - PROOF
        )  # so that an answer is never shorter than a knock
        return self._proven(head + _seal(derive(keys.answer, salt), content, head))

    def read_answer(self, data: bytes) -> "AnsweredKnock | None":
        """Read an answer to our knock; None if it is not for us."""
        whose, other, public, salt, token, cookie, sealed = self._parts(
            data, ID, ID, KEY, PROOF, PROOF, PROOF
        )
        # No answer is that short, and it may make us send a knock, which must not be longer.
        if len(data) < self.padded - PROOF:
            raise Forged("malformed")
        if whose != self.id:
            return None
        return AnsweredKnock(other, public, salt, token, cookie, data[: -len(sealed)], sealed)

    def judge(self, answer: "AnsweredKnock", now: float) -> "tuple[Other, bytes]":
        """Authenticate the sender of an answer; return it, and the public key of our knock that it answers."""
        for private in self._privates.good(now):
            public = public_of(private)
            keys = self._keys(private, answer.public, self.id, public, answer.id, answer.public)
            try:
                content = _open(derive(keys.answer, answer.salt), answer.sealed, answer.head)
            except Forged:
                continue
            return self._judged("answer", keys, answer.id, content), public
        raise Forged("stale")

    def confirm(self, public: bytes, other: "Other", cookie: bytes) -> bytes:
        """Make our confirmation of an answer with that cookie. It is made once for each handshake, and only repeated, perhaps with another cookie."""
        head = self._head(CONFIRM) + self.id + other.id + public
        content = self._proof_of_us("confirm", other.keys.transcript)
        return self._proven(head + cookie + _seal(other.keys.confirm, content, head))

    def confirm_again(self, confirm: bytes, cookie: bytes) -> bytes:
        """Return the same confirmation with another cookie, for another answer in the same handshake, which reached us from elsewhere."""
        return self._proven(confirm[:CONFIRM_HEAD] + cookie + confirm[CONFIRM_HEAD + PROOF : -PROOF])

    def read_confirm(self, data: bytes) -> "ConfirmedKnock | None":
        """Read a confirmation, with the knock of which its sender claims to be the author; None if it is not for us."""
        other, whose, public, cookie, sealed = self._parts(data, ID, ID, KEY, PROOF)
        if whose != self.id:
            return None
        return ConfirmedKnock(Knock(other, public, cookie), data[:CONFIRM_HEAD], sealed)

    def finish(self, confirmed: "ConfirmedKnock", now: float) -> "Other":
        """Authenticate the sender of a confirmation, which knocked."""
        knock = confirmed.knock
        for local in self._locals.good(now):
            private = _private_for(local, knock)
            keys = self._keys(private, knock.public, knock.id, knock.public, self.id, public_of(private))
            try:
                content = _open(keys.confirm, confirmed.sealed, confirmed.head)
            except Forged:
                continue
            return self._judged("confirm", keys, knock.id, content)
        raise Forged("stale")

    # Inside

    def _proof(self, content: bytes) -> bytes:
        """Return a code over the contents: where there is a secret, messages of processes without it are dropped before they cost more than this."""
        return hmac.digest(self._knocking, content, "sha256")[:PROOF]

    def _proven(self, content: bytes) -> bytes:
        return content + self._proof(content)

    def _pad(self, content: bytes) -> bytes:
        return content.ljust(self.padded - PROOF, b"\0")

    def _check_padding(self, data: bytes, rest: bytes) -> None:
        if len(data) != self.padded - PROOF or rest.strip(b"\0"):
            raise Forged("malformed")

    def _parts(self, data: bytes, *sizes: int) -> list[bytes]:
        """Return the parts of a message behind its head, and the rest."""
        parts, at = [], TALKS.size
        for size in sizes:
            parts.append(data[at : at + size])
            at += size
        if len(data) < at:
            raise Forged("truncated")
        return [*parts, data[at:]]

    def _proof_of_us(self, role: str, transcript: bytes) -> bytes:
        """Return the contents to seal: the random value behind our number, our name, and the proof that it is ours."""
        return self._chance + said(role, name=self._name, **self._credentials.prove(role, transcript))

    def _judged(self, role: str, keys: PairKeys, other: bytes, content: bytes) -> "Other":
        chance, told = content[:ID], Told.read(content[ID:])
        name = told.text("name")
        if told.do != role:
            raise WireError("malformed", f"{told.do!r} is not {role!r}")
        if process_of(name, chance) != other:
            raise Forged("impostor")
        self._credentials.judge(role, keys.transcript, name, told)
        return Other(other, name, keys)

    def _keys(
        self, private: bytes, theirs: bytes, a: bytes, from_a: bytes, b: bytes, from_b: bytes
    ) -> PairKeys:
        shared = _exchange(private, theirs)
        kind = bytes([self._credentials.kind])
        transcript = sha256(b"inga secure 2" + kind + self._group + a + from_a + b + from_b).digest()
        root = derive(self._credentials.base, "pair", shared, transcript)
        answer, confirm, forth, back = (derive(root, name) for name in ("answer", "confirm", "forth", "back"))
        return PairKeys(transcript, answer, confirm, forth, back)


def is_secured(data: Buffer, group: str) -> bool:
    """Whether the datagram is a knock, or the beginning of one, in a secured group of that name."""
    if len(data) < TALKS.size or data[:2] != SECURED:
        return False
    _, _, kind, _, which = TALKS.unpack_from(data)
    return kind == KNOCK and bool(which == derive(b"", "group", group)[:4])


class Other(NamedTuple):
    """The other process of a handshake, authenticated."""

    id: bytes
    name: str
    keys: PairKeys

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("keys are not pickled")


def process_of(name: str, chance: bytes) -> bytes:
    """Return the number of a process of that name, from its random value."""
    return derive(chance, "process", name)[:ID]


def _private_for(local: bytes, knock: Knock) -> bytes:
    return derive(local, "private", knock.id, knock.public)


def _cookie(local: bytes, knock: Knock, address: str) -> bytes:
    return derive(local, "cookie", knock.id, address)[:PROOF]


def _token(local: bytes, address: str) -> bytes:
    return derive(local, "token", address)[:PROOF]


def public_of(private: bytes) -> bytes:
    return _load(private).public_key().public_bytes_raw()


def _load(private: bytes) -> "X25519PrivateKey":
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    return X25519PrivateKey.from_private_bytes(private)


def _exchange(private: bytes, theirs: bytes) -> bytes:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

    try:
        return _load(private).exchange(X25519PublicKey.from_public_bytes(theirs))
    except ValueError:  # a point of small order, for which anybody knows the result
        raise Forged("forged") from None


def _seal(key: bytes, content: bytes, head: bytes) -> bytes:
    """Encrypt with a key that is used once, so that it needs no counter."""
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    return ChaCha20Poly1305(key).encrypt(bytes(12), content, head)


def _open(key: bytes, content: bytes, head: bytes) -> bytes:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    try:
        return ChaCha20Poly1305(key).decrypt(bytes(12), content, head)
    except Exception:  # InvalidTag, whose module is imported late
        raise Forged("stale") from None
