"""How two processes that have never met agree on keys that only they know.

    knock     A, to anybody: a fresh public key; with a secret, proof that its sender knows it
    cookie    B, when many knock: come again with this, so that we know that you are where you say
    answer    B to A: a fresh public key of its own, and, sealed, who B is and its proof
    confirm   A to B: sealed, who A is and its proof

Both keys are forgotten two minutes later at most: who finds a secret or a private key after that cannot read what was
said before. B remembers nothing of A until A has proven who it is: B's key follows from A's knock and from something only
B knows, and is computed once more when A confirms.

A knock is as long as a cookie and, nearly always, as an answer; where it is not, a cookie is asked for. So nobody can be
flooded in somebody else's name.

Words also bring back what was said to where they come from: a cookie and an answer the token of the knock, a confirmation
the cookie of the answer. Both follow from an address. They cost nothing to check, and when many words come only those are
looked at whose senders are where they say.

A process is known by a number that follows from its name and from chance. What chance gave is told with the name, sealed,
so a number has one name, and nobody can prove another for it.

The two results, one key for each direction, depend on both public keys, on who takes which part, on the group's name
and on its secret. Rejected: a key that all members share from the start, as the group's secret could be; then
whoever learns it later reads everything that was ever recorded.
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
"""Where in these the kind is."""

ID = 16
"""Octets by which a process is known, made when it starts; and as many by chance, from which they follow."""

PROOF = 16
TALKS = Struct(">HBBB4s")
"""Magic, version, kind; credentials; which group."""

CONFIRM_HEAD = TALKS.size + 2 * ID + KEY
"""Octets of a confirmation in front of its cookie, which is not sealed: it says where its sender is, as an address does."""

PADDED = {SECRET: 256, CERTIFICATE: 1024}
"""Octets of a knock, and of a cookie, by credentials: answers hold these, and should not be longer."""

WORD_MAX = 4096
"""Octets of a word: of what is longer nothing is looked at. No member says more."""

FRESH_FOR, GOOD_FOR = 60.0, 120.0
"""Seconds for which a key begins handshakes, and for which it ends them. Then it is forgotten."""

SECURED = MAGIC.to_bytes(2, "big")
"""How everything begins that is said in secured groups."""

NO_COOKIE = bytes(PROOF)


class Knock(NamedTuple):
    """Somebody is there."""

    id: bytes
    public: bytes
    cookie: bytes
    token: bytes = bytes(PROOF)


class GivenCookie(NamedTuple):
    """We are to come again, and say this."""

    cookie: bytes
    token: bytes


class AnsweredKnock(NamedTuple):
    """Somebody has heard us knock."""

    id: bytes
    public: bytes
    salt: bytes
    token: bytes
    cookie: bytes
    head: bytes
    sealed: bytes


class ConfirmedKnock(NamedTuple):
    """Somebody whose knock was answered shows who it is."""

    knock: Knock
    head: bytes
    sealed: bytes


class PairKeys(NamedTuple):
    """What both sides of one handshake know: the beginning of all they agree on."""

    transcript: bytes
    answer: bytes
    confirm: bytes
    forth: bytes  # from the one that knocked
    back: bytes

    def __repr__(self) -> str:
        return "<PairKeys of a handshake>"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:  # a named tuple inherits from nothing else
        raise TypeError("keys are not pickled")


class ShortLived(NotPickled):
    """Octets made by chance that only we know: the newest for what begins, those before for what is under way."""

    def __init__(self, entropy: Callable[[int], bytes]) -> None:
        self._entropy = entropy
        self._known: list[tuple[float, bytes]] = []  # since when, the newest first

    def newest(self, now: float) -> bytes:
        if not self._known or now - self._known[0][0] >= FRESH_FOR:
            self._known.insert(0, (now, self._entropy(KEY)))
        return self._known[0][1]

    def good(self, now: float) -> list[bytes]:
        self.expire(now)
        return [octets for _, octets in self._known]

    def expire(self, now: float) -> float | None:
        """Forget what was good for long enough; when there is more to forget."""
        # As that moment is told below: rounded differently, it could come and nothing be forgotten, again and again.
        self._known = [each for each in self._known if now < each[0] + GOOD_FOR]
        return self._known[-1][0] + GOOD_FOR if self._known else None

    def clear(self) -> None:
        self._known.clear()


class Handshake(NotPickled):
    """Makes and reads the words of handshakes of one group, by one process."""

    def __init__(
        self, group: str, credentials: Credentials, entropy: Callable[[int], bytes], name: str
    ) -> None:
        """`entropy(n)` gives `n` random octets. `name` is our own."""
        self._credentials = credentials
        self._entropy = entropy
        self.padded: int = PADDED[credentials.kind]
        self._privates = ShortLived(entropy)  # with which we knock
        self._locals = ShortLived(entropy)  # from which those follow with which we answer
        self._group = derive(b"", "group", group)
        self._knocking = derive(credentials.base, "knock", self._group)
        self._name = name
        self._chance: bytes = entropy(ID)
        self.id: bytes = process_of(name, self._chance)

    def _head(self, kind: int) -> bytes:
        return TALKS.pack(MAGIC, VERSION, kind, self._credentials.kind, self._group[:4])

    @property
    def begin(self) -> bytes:
        """How each of our words begins; its kind, at `KIND_AT`, is that of a knock."""
        return self._head(KNOCK)

    def read(self, data: Buffer) -> tuple[int, bytes]:
        """The kind of a word of this group, and the word; Forged if it is none, or of another one, or if its sender does not
        know the secret."""
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
        """No handshake that is under way comes to an end, and nothing that was said in one can be said again."""
        self._privates.clear()
        self._locals.clear()

    def expire(self, now: float) -> float | None:
        """Forget keys that nobody needs any more; when there is more to forget."""
        due = self._privates.expire(now), self._locals.expire(now)
        return min((each for each in due if each is not None), default=None)

    # What is said

    def knock(self, now: float, cookie: bytes = NO_COOKIE, where: str = "") -> bytes:
        """For the one that is there; for all, if that is not said."""
        public = public_of(self._privates.newest(now))
        token = _token(self._locals.newest(now), where)
        return self._proven(self._pad(self._head(KNOCK) + self.id + public + cookie + token))

    def sign(self) -> bytes:
        """What shows somebody without our keys that this group has some: the beginning of a knock, as short as anything that
        we look at, since who asks for it may be anybody."""
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
        """Octets of our answers, which are the longest words that we say."""
        sealed = self._proof_of_us("answer", b"")
        return TALKS.size + 2 * ID + KEY + 3 * PROOF + len(sealed) + TAG + PROOF

    def is_there(self, knock: Knock, address: str, now: float) -> bool:
        """Whether it shows a cookie that was sent there, and not long ago."""
        return any(
            hmac.compare_digest(knock.cookie, _cookie(local, knock, address))
            for local in self._locals.good(now)
        )

    def cookie(self, knock: Knock, address: str, now: float) -> bytes:
        """What one that knocks from there is to say when it knocks once more."""
        cookie = _cookie(self._locals.newest(now), knock, address)
        return self._proven(self._pad(self._head(COOKIE) + knock.id + self.id + cookie + knock.token))

    def read_cookie(self, data: bytes) -> "GivenCookie | None":
        """What somebody gives us that has heard us knock; None if it is not for us."""
        whose, _, cookie, token, rest = self._parts(data, ID, ID, PROOF, PROOF)
        self._check_padding(data, rest)
        return GivenCookie(cookie, token) if whose == self.id else None

    def is_expected(self, token: bytes, address: str, now: float) -> bool:
        """Whether we knocked there, and not long ago: at that door alone, as everybody hears what is for all."""
        return any(hmac.compare_digest(token, _token(local, address)) for local in self._locals.good(now))

    def answer(self, knock: Knock, address: str, now: float) -> bytes:
        """Our part, for one that knocked from there."""
        local = self._locals.newest(now)
        private = _private_for(local, knock)
        public = public_of(private)
        keys = self._keys(private, knock.public, knock.id, knock.public, self.id, public)
        salt = self._entropy(PROOF)  # what is said may differ when it is said again, and so does its key
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
        )  # so that a knock is no longer than an answer
        return self._proven(head + _seal(derive(keys.answer, salt), content, head))

    def read_answer(self, data: bytes) -> "AnsweredKnock | None":
        """What somebody says that has heard us knock; None if it is not for us."""
        whose, other, public, salt, token, cookie, sealed = self._parts(
            data, ID, ID, KEY, PROOF, PROOF, PROOF
        )
        if len(data) < self.padded - PROOF:  # nobody answers so, and we may say a knock for it
            raise Forged("malformed")
        if whose != self.id:
            return None
        return AnsweredKnock(other, public, salt, token, cookie, data[: -len(sealed)], sealed)

    def judge(self, answer: "AnsweredKnock", now: float) -> "tuple[Other, bytes]":
        """Who has answered our knock, and the public key of ours that it was made for."""
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
        """Who we are, for one that answered with that cookie. Made once for each handshake, and repeated but for the cookie."""
        head = self._head(CONFIRM) + self.id + other.id + public
        content = self._proof_of_us("confirm", other.keys.transcript)
        return self._proven(head + cookie + _seal(other.keys.confirm, content, head))

    def confirm_again(self, confirm: bytes, cookie: bytes) -> bytes:
        """The same, for an answer to the same knock that came elsewhere, and has the cookie of that place."""
        return self._proven(confirm[:CONFIRM_HEAD] + cookie + confirm[CONFIRM_HEAD + PROOF : -PROOF])

    def read_confirm(self, data: bytes) -> "ConfirmedKnock | None":
        """Of which knock somebody wants to prove that it was its own; None if that is not for us."""
        other, whose, public, cookie, sealed = self._parts(data, ID, ID, KEY, PROOF)
        if whose != self.id:
            return None
        return ConfirmedKnock(Knock(other, public, cookie), data[:CONFIRM_HEAD], sealed)

    def finish(self, confirmed: "ConfirmedKnock", now: float) -> "Other":
        """Who it is that knocked, and has confirmed."""
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
        """Keeps those out who do not know the secret, before anything costs more than this."""
        return hmac.digest(self._knocking, content, "sha256")[:PROOF]

    def _proven(self, content: bytes) -> bytes:
        return content + self._proof(content)

    def _pad(self, content: bytes) -> bytes:
        return content.ljust(self.padded - PROOF, b"\0")

    def _check_padding(self, data: bytes, rest: bytes) -> None:
        if len(data) != self.padded - PROOF or rest.strip(b"\0"):
            raise Forged("malformed")

    def _parts(self, data: bytes, *sizes: int) -> list[bytes]:
        """The parts of a word behind its head, and the rest."""
        parts, at = [], TALKS.size
        for size in sizes:
            parts.append(data[at : at + size])
            at += size
        if len(data) < at:
            raise Forged("truncated")
        return [*parts, data[at:]]

    def _proof_of_us(self, role: str, transcript: bytes) -> bytes:
        """What is sealed in a word: from what our number follows, our name, and what shows that it is ours."""
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
    """Whether it is a word of somebody in a secured group of that name."""
    if len(data) < TALKS.size or data[:2] != SECURED:
        return False
    _, _, kind, _, which = TALKS.unpack_from(data)
    return kind == KNOCK and bool(which == derive(b"", "group", group)[:4])


class Other(NamedTuple):
    """One that has proven who it is."""

    id: bytes
    name: str
    keys: PairKeys

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("keys are not pickled")


def process_of(name: str, chance: bytes) -> bytes:
    """The number of a process of that name, from what chance gave it."""
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
    except ValueError:  # a point that would make the result known to all
        raise Forged("forged") from None


def _seal(key: bytes, content: bytes, head: bytes) -> bytes:
    """A key that seals one thing only needs no counter."""
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    return ChaCha20Poly1305(key).encrypt(bytes(12), content, head)


def _open(key: bytes, content: bytes, head: bytes) -> bytes:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    try:
        return ChaCha20Poly1305(key).decrypt(bytes(12), content, head)
    except Exception:  # InvalidTag, of a package that is imported late
        raise Forged("stale") from None
