"""The identity of a member: a name, a private key, and a certificate in which an authority states that they belong together.

me = Identity.load("alice.pem")              # made by `inga keys member alice --authority DIR`
signature = me.sign(data)
check_certificate(me.certificate, trusted, "alice", now).verify(signature, data)     # at another member
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self

from inga.keys.files import PRIVATE, read_keys, write_new
from inga.model.errors import KeysError
from inga.model.text import printable

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from inga.keys.certificates import Verifier


class Identity:
    """One member's name, key and certificate, and the authorities that it trusts. Neither printing nor pickling shows the key."""

    __slots__ = ("name", "certificate", "trusted", "_key")

    def __init__(self, certificate: bytes, key: "Ed25519PrivateKey", trusted: Iterable[bytes]) -> None:
        from inga.keys.certificates import facts, is_of_key

        known = facts(certificate)
        if known.is_authority:
            raise KeysError("not_a_member", "this certificate is an authority's, not a member's")
        if not is_of_key(certificate, key):
            raise KeysError(
                "wrong_key", f"the private key is not that of {printable(known.name)}'s certificate"
            )
        self.name = known.name
        self.certificate = certificate
        """In DER."""
        self.trusted = tuple(trusted)
        """The certificates of the authorities that it trusts, in DER."""
        self._key = key

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], key: str | os.PathLike[str] | None = None,
        authority: str | os.PathLike[str] | None = None,
    ) -> Self:  # fmt: skip
        """The identity in a file that has it all, or in a file for the certificate, for the key and for the authorities."""
        from inga.keys.certificates import facts, is_of_key, read_pem

        certificates: list[bytes] = []
        found = None
        for file in (path, key, authority):
            if file is not None:
                more, private = read_pem(read_keys(file), printable(str(file)))
                certificates += more
                found = found or private
        where = printable(str(path))
        if found is None:
            raise KeysError("malformed", f"{where}: there is no private key; `inga keys member` makes one")
        own = [each for each in certificates if is_of_key(each, found)]
        if not own:
            raise KeysError("wrong_key", f"{where}: there is no certificate of the private key")
        trusted = [each for each in certificates if each != own[0] and facts(each).is_authority]
        if not trusted:
            raise KeysError(
                "malformed", f"{where}: there is no certificate of an authority, so nobody could be trusted"
            )
        return cls(own[0], found, trusted)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write all of it to one new file that its owner alone can read."""
        from inga.keys.certificates import certificate_pem

        certificates = b"".join(map(certificate_pem, (self.certificate, *self.trusted)))
        return write_new(path, self.private_pem() + certificates, PRIVATE)

    def sign(self, data: bytes) -> bytes:
        """A signature that nobody else can make."""
        from inga.keys.certificates import sign

        return sign(self._key, data)

    def check(self, now: float) -> "Verifier":
        """Whether others would take this identity at that time, in seconds since 1970; a KeysError says why not."""
        from inga.keys.certificates import check_certificate

        return check_certificate(self.certificate, self.trusted, self.name, now)

    def private_pem(self, password: bytes | None = None) -> bytes:
        """The private key as text: for a file that nobody else reads, or encrypted."""
        from inga.keys.certificates import private_pem

        return private_pem(self._key, password)

    def __repr__(self) -> str:
        return f"<Identity of {printable(self.name)}>"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # it never changes, and one copy in memory is enough

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("an Identity is not pickled; Identity.save writes it to a file")
