"""Secrets that all members of a group share.

A new secret has 256 random bits, so that it cannot be guessed, however fast the machine. As text it is a prefix, then in base32
the secret and a checksum of three octets, which detects typing errors:

    inga-secret-wq3bdqi6-…-5uv4n7ka

Capitals, spaces and hyphens do not matter. A passphrase is refused: an eavesdropper could try millions of them a second.
"""

import base64
import binascii
import hashlib
import hmac
import os
from pathlib import Path
from typing import Any, NoReturn, Self

from inga.keys.files import PRIVATE, SECRET_PREFIX, read_keys, write_new
from inga.model.errors import KeysError
from inga.model.text import printable

SIZE = 32
"""Octets of a new secret."""
SIZE_MIN, SIZE_MAX = 16, 64
CHECK_SIZE = 3
GROUPED = 8
"""Letters between hyphens."""
HOW_TO = "`inga keys secret FILE` makes a good one"


class Secret:
    """What every member of a group knows and nobody else. Neither printing nor pickling shows it."""

    __slots__ = ("_octets",)

    def __init__(self, octets: bytes) -> None:
        if not isinstance(octets, bytes):
            raise KeysError("malformed", f"a secret is octets (bytes), not {type(octets).__name__}: {HOW_TO}")
        if not SIZE_MIN <= len(octets) <= SIZE_MAX:
            raise KeysError(
                "weak", f"a secret has {SIZE_MIN} to {SIZE_MAX} octets, not {len(octets)}: {HOW_TO}"
            )
        self._octets = octets

    @classmethod
    def make(cls) -> Self:
        """A new one, by the system's generator."""
        return cls(os.urandom(SIZE))

    @classmethod
    def parse(cls, text: str) -> Self:
        """The secret that a text says."""
        plain = "".join(text.split()).lower()
        if not plain.startswith(SECRET_PREFIX):
            raise KeysError(
                "weak",
                f"this is no secret, which begins with {SECRET_PREFIX}; passphrases can be guessed, and {HOW_TO}, which "
                "is then named as 'file:PATH'",
            )
        letters = plain.removeprefix(SECRET_PREFIX).replace("-", "").upper()
        try:
            octets = base64.b32decode(letters + "=" * (-len(letters) % 8))
        except (binascii.Error, ValueError):
            octets = b""
        body, check = octets[:-CHECK_SIZE], octets[-CHECK_SIZE:]
        if not body or not hmac.compare_digest(check, _checksum(body)):
            raise KeysError(
                "mistyped", "this secret was mistyped, or a part of it is missing: its checksum is wrong"
            )
        return cls(body)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The secret in a file, which nobody but its owner and group may be able to read."""
        try:
            text = read_keys(path).decode("ascii")
        except UnicodeDecodeError:
            text = ""
        if not "".join(text.split()).lower().startswith(SECRET_PREFIX):
            raise KeysError("malformed", f"{printable(str(path))} holds no secret: {HOW_TO}")
        try:
            return cls.parse(text)
        except KeysError as error:
            raise KeysError(error.reason, f"{printable(str(path))}: {error}") from None

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write it to a new file that its owner alone can read."""
        return write_new(path, self.text().encode() + b"\n", PRIVATE)

    @property
    def octets(self) -> bytes:
        """The secret itself: to derive keys from, never to be shown or sent."""
        return self._octets

    @property
    def bits(self) -> int:
        """How long it is."""
        return 8 * len(self._octets)

    def text(self) -> str:
        """The secret as text, for the file or the person that keeps it."""
        letters = base64.b32encode(self._octets + _checksum(self._octets)).decode().rstrip("=").lower()
        return SECRET_PREFIX + "-".join(letters[i : i + GROUPED] for i in range(0, len(letters), GROUPED))

    def fingerprint(self) -> str:
        """A short text by which two people see that they have the same secret; it does not help to guess it."""
        return hashlib.sha256(b"inga: fingerprint of a secret\0" + self._octets).hexdigest()[:16]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._octets, other._octets)

    def __repr__(self) -> str:
        return f"<Secret of {self.bits} bits>"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # it never changes, and one copy in memory is enough

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("a Secret is not pickled; Secret.save writes it to a file")


def _checksum(octets: bytes) -> bytes:
    return hashlib.sha256(b"inga: checksum of a secret\0" + octets).digest()[:CHECK_SIZE]
