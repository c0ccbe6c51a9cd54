"""Where to look for a group whose members nobody has named, if not by multicast: at addresses, or in a file.

A file that processes share has one line for each of them, its name and its address. Whoever comes adds its own and reads
those of the others under one lock, so that of any two the later one knows of the earlier; what else there is to know, they
tell each other. Whoever leaves takes its line away. The line of one that was killed stays, until somebody else is at its
address or many others have come: nobody answers there, which harms nobody.
"""

import fcntl
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from inga.model.errors import UsageError
from inga.net.address import parse_host_port

FILE = "file:"
"""What seeds begin with that are a file."""

LINES_MAX = 256
"""Processes that are kept in a file: of more, those that came first are taken for gone."""

Seeds = str | os.PathLike[str] | Sequence[str]
"""As users say it: addresses, or a file by its path or as `file:PATH`."""


class SeedFile:
    """Our line in a file that processes share."""

    def __init__(self, path: Path, name: str, address: str) -> None:
        self._path = path
        self._line = f"{address} {' '.join(name.split())}"

    def enter(self) -> list[str]:
        """Add our line; the addresses of the others."""
        found: list[str] = []

        def add(lines: list[str]) -> list[str]:
            mine, _, _ = self._line.partition(" ")
            others = [line for line in lines if line.partition(" ")[0] != mine][1 - LINES_MAX :]
            found.extend(line.partition(" ")[0] for line in others)
            return [*others, self._line]

        try:
            self._rewrite(add)
        except OSError as error:
            raise UsageError(f"seeds: {self._path} cannot be written: {error.strerror}") from None
        return [address for address in found if _is_place(address)]

    def leave(self) -> None:
        """Take our line away; if that cannot be done, nobody answers there any more."""
        with suppress(OSError):
            self._rewrite(lambda lines: [line for line in lines if line != self._line])

    def _rewrite(self, change: Callable[[list[str]], list[str]]) -> None:
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        with open(descriptor, "r+", encoding="utf-8", errors="replace") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # until it is closed
            lines = change([line for line in file.read().splitlines() if line.strip()])
            file.seek(0)
            file.truncate()
            file.writelines(f"{line}\n" for line in lines)


def look_for(seeds: Seeds | None, name: str, address: str) -> tuple[list[str], SeedFile | None]:
    """Addresses, or the file that has some; `name` and `address` are our own. One address needs no list. Whether a name among
    them can be resolved is seen later: one seed that is there is enough."""
    if seeds is None:
        return [], None
    if isinstance(seeds, os.PathLike):
        return [], SeedFile(Path(seeds), name, address)
    if isinstance(seeds, str) and seeds.startswith(FILE):
        return [], SeedFile(Path(seeds.removeprefix(FILE)), name, address)
    places = [seeds] if isinstance(seeds, str) else list(seeds)
    if not places:
        raise UsageError(
            "seeds names nobody: give the address of at least one member, your own if you are first"
        )
    for number, place in enumerate(places, 1):
        parse_host_port(place, f"seed {number}")
    return places, None


def _is_place(text: str) -> bool:
    """Whether somebody could be there: anybody may have written into the file."""
    try:
        parse_host_port(text, "somebody")
    except UsageError:
        return False
    return True
