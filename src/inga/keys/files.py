"""Files that hold secrets: only their owner may read them, and none is ever written over."""

import os
import stat
from pathlib import Path

from inga.model.errors import KeysError
from inga.model.text import printable

SECRET_PREFIX = "inga-secret-"
PRIVATE, PUBLIC = 0o600, 0o644
SECRETS = (b"PRIVATE KEY", SECRET_PREFIX.encode())
"""What a file holds that only its owner may read."""
OTHERS = stat.S_IROTH | stat.S_IWOTH
FILE_MAX = 1 << 20
"""Octets; a file of keys has a few thousand."""


def read_keys(path: str | os.PathLike[str]) -> bytes:
    """The content of a file. One that holds something secret and that everybody on the machine can read or write is refused.

    The group of the file may read it, other than with ssh: that is how services are given their secrets.
    """
    name = printable(str(path))
    with open(path, "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        content = file.read(FILE_MAX + 1)
    if len(content) > FILE_MAX:
        raise KeysError("malformed", f"{name} is too large to hold keys")
    if os.name == "posix" and mode & OTHERS and any(each in content for each in SECRETS):
        raise KeysError(
            "exposed", f"{name} is open to everybody on this machine ({mode & 0o777:o}): chmod 600 {name}"
        )
    return content


def write_new(path: str | os.PathLike[str], content: bytes, mode: int) -> Path:
    """Write a file that is not there yet, from its first moment with this mode."""
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        raise KeysError(
            "exists", f"{printable(str(path))} is there already, and is not written over"
        ) from None
    with open(number, "wb") as file:
        file.write(content)
    return Path(path)
