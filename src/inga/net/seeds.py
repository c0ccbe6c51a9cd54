"""Seeds: where to look for a group without listed members and without multicast, at addresses or in a file.

A file that processes share has one line for each of them, its address and its name. A process that starts adds its line and reads
the others' under one lock, so that of any two the later one knows the earlier; all other addresses they learn from each
other. A process that leaves removes its line. The line of a killed process stays until another process has its
address or many others have started: nobody answers there, which does no harm.
"""

import fcntl
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from inga.model.errors import UsageError
from inga.net.address import parse_host_port

FILE = "file:"
"""The prefix of seeds that name a file."""

LINES_MAX = 256
"""The most lines in a file: if there are more, the oldest are dropped, as if their processes were gone."""

Seeds = str | os.PathLike[str] | Sequence[str]
"""The option `seeds`: addresses, or a file by its path or as `file:PATH`."""


class SeedFile:
    """Our line in a file that processes share."""

    def __init__(self, path: Path, name: str, address: str) -> None:
        self._path = path
        self._line = f"{address} {' '.join(name.split())}"

    def enter(self) -> list[str]:
        """Add our line, and return the addresses of the others."""
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
        """Remove our line. If that is not possible, it stays and does no harm: nobody answers there."""
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
    """The addresses in `seeds`, or the file with them; `name` and `address` are our own. A single address needs no list. Host names
    are resolved later: one seed that can be reached is enough."""
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
    """Whether a text is a valid `host:port`: other programs may have written to the file."""
    try:
        parse_host_port(text, "somebody")
    except UsageError:
        return False
    return True
