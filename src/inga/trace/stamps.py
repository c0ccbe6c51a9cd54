"""The stamps of all messages of a trace, for exports: most rows name a message, but only some carry its past.

Stamps are kept in pages of consecutive messages of one sender. The few thousand pages that were used last are in memory; the
others are in an anonymous temporary file, which is created when memory does not suffice. The rows of a process refer to the
messages of each sender in about the order of their numbers, so nearly every page that is needed is in memory.

Rejected: a database, which takes ten times as long although the place of a stamp is just a number times a width; a mapping of
the file into memory, which the system counts as the process's own memory.
"""

from collections.abc import Iterable
from struct import Struct
from tempfile import TemporaryFile
from types import TracebackType
from typing import IO, Self

from inga.model.stamp import Deps
from inga.trace.reader import TracePath, read_manifest, read_pieces, segments
from inga.trace.schema import Row, load_pyarrow, pack_deps, unpack_deps

PAGE_OCTETS = 1 << 14
STAMPS_OCTETS_MAX = 1 << 26
"""The most octets of pages in memory."""
GAP_MAX = 1 << 16
"""How far the number of a send may exceed its sender's highest number so far. A higher one is taken for an error and ignored."""

_POSITION = Struct("<q")  # 0 for a message whose send is not known
_Page = tuple[int, int]  # sender, and number of the page among those of the sender


class Stamps:
    """The stamps of the messages of a trace, by sender and number, and the positions of their sends."""

    def __init__(self, processes: int, octets_max: int = STAMPS_OCTETS_MAX) -> None:
        self._n = processes
        self._width = 4 * processes + _POSITION.size
        self._per_page = max(PAGE_OCTETS // self._width, 1)
        self._pages_max = max(octets_max // (self._per_page * self._width), 1)
        self._pages: dict[_Page, bytearray] = {}  # in memory, the most recently used page last
        self._changed: set[_Page] = set()  # pages in memory that differ from the file
        self._places: dict[_Page, int] = {}  # the places of pages that are in the file
        self._file: IO[bytes] | None = None
        self._last: list[int] = [0] * processes  # the highest number of each sender
        self.unstamped = 0  # messages that were sent without a past

    # ---- messages

    def add(self, src: int, seq: int, deps: bytes, pos: int = 1) -> None:
        """Record the send of a message: its past, and its position at the sender. A number far beyond the sender's others
        (`GAP_MAX`), as a broken trace may have, is ignored."""
        if not 0 < seq <= self._last[src] + GAP_MAX:
            return
        self._last[src] = max(self._last[src], seq)
        key, at = self._place(src, seq)
        page = self._page(key)
        page[at : at + self._width] = _POSITION.pack(pos) + deps
        self._changed.add(key)

    def find(self, src: int | None, seq: int | None) -> list[int] | None:
        """The stamp of a message; None if its send is not known."""
        if src is None or seq is None or not 0 < seq <= self._last[src]:
            return None
        key, at = self._place(src, seq)
        page = self._page(key)
        if not _POSITION.unpack_from(page, at)[0]:
            return None
        return stamp(unpack_deps(bytes(page[at + _POSITION.size : at + self._width])), src, seq)

    def sent_at(self, src: int, seq: int) -> int:
        """The position of a message's send at its sender, or of the sender's last known send if the number is higher; 0 if
        that send is not known."""
        seq = min(seq, self._last[src])
        if seq < 1:
            return 0
        key, at = self._place(src, seq)
        found: int = _POSITION.unpack_from(self._page(key), at)[0]
        return found

    # ---- pages

    def _place(self, src: int, seq: int) -> tuple[_Page, int]:
        page, line = divmod(seq - 1, self._per_page)
        return (src, page), line * self._width

    def _page(self, key: _Page) -> bytearray:
        page = self._pages.pop(key, None)
        if page is None:
            if len(self._pages) >= self._pages_max:
                self._put_away(next(iter(self._pages)))
            page = self._fetch(key)
        self._pages[key] = page
        return page

    def _fetch(self, key: _Page) -> bytearray:
        size = self._per_page * self._width
        if key not in self._places:
            return bytearray(size)
        assert self._file is not None
        self._file.seek(self._places[key] * size)
        return bytearray(self._file.read(size))

    def _put_away(self, key: _Page) -> None:
        page = self._pages.pop(key)
        if key not in self._changed:
            return
        self._changed.discard(key)
        if self._file is None:
            self._file = TemporaryFile(prefix="inga-export-")  # noqa: SIM115 - closed by close()
        place = self._places.setdefault(key, len(self._places))
        self._file.seek(place * len(page))
        self._file.write(page)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Delete the temporary file."""
        if self._file is not None:
            self._file.close()

    # ---- sources

    @classmethod
    def of(cls, sent: Iterable[Row], processes: int) -> Self:
        """Collect the stamps from rows."""
        stamps = cls(processes)
        for row in sent:
            if row.step == "send" and row.src is not None and row.seq is not None and row.deps is not None:
                stamps.add(row.src, row.seq, pack_deps(row.deps, processes), row.pos)
        return stamps

    @classmethod
    def read(cls, trace: TracePath) -> Self:
        """Collect the stamps from the files of a trace. Reads only the columns that are needed."""
        compute = load_pyarrow().compute
        processes = len(read_manifest(trace).processes)
        stamps = cls(processes)
        columns = ("process", "step", "src", "seq", "deps", "pos")
        for segment in segments(trace, empty_ok=True):
            for part in read_pieces(segment.path, processes, process=segment.process, columns=columns):
                part = part.filter(compute.equal(part.column("step"), "send"))
                stamps.unstamped += part.column("deps").null_count
                values = (part.column(name).to_pylist() for name in columns[2:])
                for src, seq, deps, pos in zip(*values, strict=True):
                    if src is not None and seq is not None and deps is not None:
                        stamps.add(src, seq, deps, pos)
        return stamps


def stamp(deps: Deps, src: int, seq: int) -> list[int]:
    """The time stamp of a message as the lecture writes it: its past, itself included."""
    vector = list(deps)
    vector[src] = seq
    return vector
