"""The stamps of all messages of a trace, for exports: most rows name a message, and only some carry its past.

They are kept in pages, each with some messages of one sender. A few thousand pages are in memory, those that were asked for
last; the others lie in a file without a name, which is made when there are too many. Rows of a process ask for the
messages of each sender in about their order, so nearly all that is asked for is in memory.

Rejected: a database, which takes ten times as long for what is a number times a width; a mapping of the file into memory, which
the system counts as the process's own.
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
"""In memory."""
GAP_MAX = 1 << 16
"""Missing sends before one that is there, beyond which a number is taken for nonsense."""

_POSITION = Struct("<q")  # 0 for a message that is not known
_Page = tuple[int, int]  # sender, and which of its pages


class Stamps:
    """The stamps of the messages of a trace, by sender and number, and where they were sent."""

    def __init__(self, processes: int, octets_max: int = STAMPS_OCTETS_MAX) -> None:
        self._n = processes
        self._width = 4 * processes + _POSITION.size
        self._per_page = max(PAGE_OCTETS // self._width, 1)
        self._pages_max = max(octets_max // (self._per_page * self._width), 1)
        self._pages: dict[_Page, bytearray] = {}  # in memory, the one that was asked for last at the end
        self._changed: set[_Page] = set()  # those of them that the file does not have so
        self._places: dict[_Page, int] = {}  # of pages that are in the file
        self._file: IO[bytes] | None = None
        self._last: list[int] = [0] * processes  # the highest number of each sender
        self.unstamped = 0  # messages that were sent without a past

    # ---- messages

    def add(self, src: int, seq: int, deps: bytes, pos: int = 1) -> None:
        """A message was sent with this past, at this position. What a broken trace leaves out stays unknown."""
        if not 0 < seq <= self._last[src] + GAP_MAX:
            return
        self._last[src] = max(self._last[src], seq)
        key, at = self._place(src, seq)
        page = self._page(key)
        page[at : at + self._width] = _POSITION.pack(pos) + deps
        self._changed.add(key)

    def find(self, src: int | None, seq: int | None) -> list[int] | None:
        """The stamp of a message, if its send is known."""
        if src is None or seq is None or not 0 < seq <= self._last[src]:
            return None
        key, at = self._place(src, seq)
        page = self._page(key)
        if not _POSITION.unpack_from(page, at)[0]:
            return None
        return stamp(unpack_deps(bytes(page[at + _POSITION.size : at + self._width])), src, seq)

    def sent_at(self, src: int, seq: int) -> int:
        """The position of a message's send at its sender, or of the last one that is known; 0 if there is none."""
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
        """The file goes."""
        if self._file is not None:
            self._file.close()

    # ---- where they come from

    @classmethod
    def of(cls, sent: Iterable[Row], processes: int) -> Self:
        """From rows, wherever they come from."""
        stamps = cls(processes)
        for row in sent:
            if row.step == "send" and row.src is not None and row.seq is not None and row.deps is not None:
                stamps.add(row.src, row.seq, pack_deps(row.deps, processes), row.pos)
        return stamps

    @classmethod
    def read(cls, trace: TracePath) -> Self:
        """From the files of a trace, of which only the columns that matter are read."""
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
    """A message's time stamp, as the lecture writes it: its past, itself included."""
    vector = list(deps)
    vector[src] = seq
    return vector
