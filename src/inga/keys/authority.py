"""Authorities issue certificates. Members that trust an authority admit any process with a certificate from it.

    authority = Authority.make("lunch")
    authority.save("authority")                  # authority.pem for everybody, authority.key for nobody else
    authority.issue("alice", hosts=["alice.example.org"]).save("alice.pem")

With the authority's private key one can impersonate any member. The key is needed only to issue certificates, and need not be on a
machine with a member.
"""

import datetime
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self

from inga.keys.files import PRIVATE, PUBLIC, read_keys, write_new
from inga.keys.identity import Identity
from inga.model.errors import KeysError
from inga.model.text import printable

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

CERTIFICATE, KEY = "authority.pem", "authority.key"
AUTHORITY_DAYS, MEMBER_DAYS = 3650.0, 365.0


class Authority:
    """A name, a private key, and the certificate by which others know what it has signed."""

    __slots__ = ("name", "certificate", "_key")

    def __init__(self, certificate: bytes, key: "Ed25519PrivateKey") -> None:
        from inga.keys.certificates import facts, is_of_key

        known = facts(certificate)
        if not known.is_authority:
            raise KeysError(
                "not_an_authority", f"this is the certificate of the member {printable(known.name)}"
            )
        if not is_of_key(certificate, key):
            raise KeysError("wrong_key", "the private key is not that of the authority's certificate")
        self.name = known.name
        self.certificate = certificate
        """In DER: what members trust."""
        self._key = key

    @classmethod
    def make(cls, name: str, days: float = AUTHORITY_DAYS, *, now: float | None = None) -> Self:
        """A new authority. `now` is in seconds since 1970, by default by the machine's clock."""
        from inga.keys.certificates import make_authority, make_key

        key = make_key()
        return cls(make_authority(key, name, days, _moment(now)), key)

    def issue(
        self, name: str, hosts: Sequence[str] = (), days: float = MEMBER_DAYS, *, now: float | None = None
    ) -> Identity:
        """A new member of this name; `hosts` are names and addresses under which foreign programs reach it by TLS."""
        from inga.keys.certificates import make_key, make_member

        key = make_key()
        made = make_member(self.certificate, self._key, key.public_key(), name, hosts, days, _moment(now))
        return Identity(made, key, (self.certificate,))

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> Self:
        """The authority that was saved there."""
        from inga.keys.certificates import read_pem

        folder = Path(directory)
        certificates, _ = read_pem(read_keys(folder / CERTIFICATE), printable(str(folder / CERTIFICATE)))
        _, key = read_pem(read_keys(folder / KEY), printable(str(folder / KEY)))
        if not certificates or key is None:
            raise KeysError(
                "malformed", f"{printable(str(folder))} holds no authority; `inga keys authority` makes one"
            )
        return cls(certificates[0], key)

    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Write certificate and private key to new files of a directory; the latter its owner alone can read."""
        from inga.keys.certificates import certificate_pem, private_pem

        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        write_new(folder / KEY, private_pem(self._key), PRIVATE)
        write_new(folder / CERTIFICATE, certificate_pem(self.certificate), PUBLIC)
        return folder

    def __repr__(self) -> str:
        return f"<Authority {printable(self.name)}>"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("an Authority is not pickled; Authority.save writes it to files")


def _moment(now: float | None) -> datetime.datetime:
    if now is None:
        return datetime.datetime.now(datetime.UTC)
    return datetime.datetime.fromtimestamp(now, datetime.UTC)
