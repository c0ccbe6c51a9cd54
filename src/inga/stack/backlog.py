"""Datagrams that came too early to be read, within bounds: whoever can send one can send any number of them."""

from collections import Counter
from collections.abc import Callable, Hashable

from inga.model.packet import Buffer

SOURCE_BYTES_MAX = 1 << 20
"""Bytes of one source: a window of a sender that is a step ahead of us."""

BYTES_MAX = 4 << 20
"""Bytes in all; what is more is repaired."""


class Backlog(list[tuple[bytes, Hashable]]):
    """Datagrams, and where they came from."""

    def __init__(self, most: int) -> None:
        """`most`: datagrams, however small."""
        super().__init__()
        self._most = most
        self._bytes: Counter[int] = Counter()  # of each source
        self._total = 0

    def keep(self, data: Buffer, source: int, address: Hashable) -> bool:
        """Keep a copy, if there is room for it. `source` is who says that it sent it."""
        size = len(data)
        is_full = len(self) >= self._most or self._total + size > BYTES_MAX
        if is_full or self._bytes[source] + size > SOURCE_BYTES_MAX:
            return False
        self._bytes[source] += size
        self._total += size
        self.append((bytes(data), address))
        return True

    def retain(self, is_wanted: Callable[[bytes], bool]) -> None:
        """Forget what is of no use any more; there is no more room by that."""
        self[:] = [each for each in self if is_wanted(each[0])]
