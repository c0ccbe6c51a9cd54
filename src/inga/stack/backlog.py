"""Datagrams that arrived too early to be read, kept within bounds: a process that can send one can send any number of them."""

from collections import Counter
from collections.abc import Callable, Hashable

from inga.model.packet import Buffer

SOURCE_BYTES_MAX = 1 << 20
"""The most bytes kept of one source: about the window of a sender that has installed the next view before us."""

BYTES_MAX = 4 << 20
"""The most bytes kept in all; the rest is dropped, and repaired later."""


class Backlog(list[tuple[bytes, Hashable]]):
    """Datagrams with the addresses that they came from."""

    def __init__(self, most: int) -> None:
        """`most`: the largest number of datagrams, however small they are."""
        super().__init__()
        self._most = most
        self._bytes: Counter[int] = Counter()  # of each source
        self._total = 0

    def keep(self, data: Buffer, source: int, address: Hashable) -> bool:
        """Keep a copy if there is room for it, and return whether there was. `source` is the sender that the datagram claims."""
        size = len(data)
        is_full = len(self) >= self._most or self._total + size > BYTES_MAX
        if is_full or self._bytes[source] + size > SOURCE_BYTES_MAX:
            return False
        self._bytes[source] += size
        self._total += size
        self.append((bytes(data), address))
        return True

    def retain(self, is_wanted: Callable[[bytes], bool]) -> None:
        """Drop the datagrams that are not wanted any more. The byte counts stay as they are, so this makes no room for more bytes."""
        self[:] = [each for each in self if is_wanted(each[0])]
