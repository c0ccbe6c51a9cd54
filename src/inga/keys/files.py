"""Files that hold secrets: only the owner and the group of a file may read it, and none is ever overwritten."""

import os
import stat
from pathlib import Path

from inga.model.errors import KeysError
from inga.model.text import printable

SECRET_PREFIX = "inga-secret-"
PRIVATE, PUBLIC = 0o600, 0o644
SECRETS = (b"PRIVATE KEY", SECRET_PREFIX.encode())
"""Bytes by which a file is known to hold a secret."""
OTHERS = stat.S_IROTH | stat.S_IWOTH
FILE_MAX = 1 << 20
"""Octets; a file of keys has a few thousand."""


def read_keys(path: str | os.PathLike[str]) -> bytes:
    """The content of a file. One that holds a secret is refused if every user of the machine can read or write it.

    The file's group may read it, unlike with ssh: that is how services are given their secrets.
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
    """Write a file that does not exist yet. It has this mode from the start, so that a private one is never readable by others."""
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        raise KeysError(
            "exists", f"{printable(str(path))} is there already, and is not written over"
        ) from None
    with open(number, "wb") as file:
        file.write(content)
    return Path(path)
