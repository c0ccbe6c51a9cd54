"""The credentials by which a process proves that it may be in a group, and verifies the proofs of others.

secret        all members know one secret of at least 128 bits; a process that knows it may join under any name
certificate   an authority has signed each member's name and key; all members know the authority
"""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable
from typing import Any, Protocol

from inga.keys.identity import Identity
from inga.keys.secret import Secret
from inga.model.errors import WireError
from inga.secure.sealing import NotPickled, derive
from inga.wire.told import Told

SECRET, CERTIFICATE = 1, 2


class Credentials(Protocol):
    """What a handshake needs of credentials of either kind."""

    kind: int
    base: bytes
    """The octets on which all keys of the group's handshakes depend."""

    def prove(self, role: str, transcript: bytes) -> dict[str, Any]:
        """Return the fields that prove our name to the other side, in this handshake only."""
        ...

    def judge(self, role: str, transcript: bytes, name: str, told: Told) -> None:
        """Raise KeysError unless the other side has proven that it may be a member of that name."""
        ...


class KnownSecret(NotPickled):
    """A shared secret: only processes that know it can make and open handshake messages, so there is nothing more to prove."""

    kind = SECRET

    def __init__(self, secret: Secret) -> None:
        self.base = derive(secret.octets, "inga secure 1", "secret")

    def prove(self, role: str, transcript: bytes) -> dict[str, Any]:
        return {}

    def judge(self, role: str, transcript: bytes, name: str, told: Told) -> None:
        return


class Certified(NotPickled):
    """A certificate: the proof is a signature over the handshake, by the key that the authority has certified for a name."""

    kind = CERTIFICATE
    base = derive(b"", "inga secure 1", "certificate")

    def __init__(self, identity: Identity, clock: Callable[[], float]) -> None:
        """`clock` returns the seconds since 1970, for certificates that expire."""
        self._identity = identity
        self._clock = clock

    def prove(self, role: str, transcript: bytes) -> dict[str, Any]:
        signature = self._identity.sign(signed(role, transcript))
        return {
            "certificate": b64encode(self._identity.certificate).decode(),
            "signature": b64encode(signature).decode(),
        }

    def judge(self, role: str, transcript: bytes, name: str, told: Told) -> None:
        try:
            certificate = b64decode(told.text("certificate"), validate=True)
            signature = b64decode(told.text("signature"), validate=True)
        except (Base64Error, ValueError):
            raise WireError("malformed", "no certificate, or no signature") from None
        from inga.keys.certificates import check_certificate

        verifier = check_certificate(certificate, self._identity.trusted, name, self._clock())
        verifier.verify(signature, signed(role, transcript))


def signed(role: str, transcript: bytes) -> bytes:
    """Return the octets to sign. The role in them prevents that one side's signature is sent back to it as the other side's."""
    return b"inga secure 1 " + role.encode() + b" " + transcript
