"""A trace that stays in memory: for simulators, tests and the oracle. It needs no extra package."""

from collections.abc import Sequence

from inga.trace.numbering import Numbering
from inga.trace.rows import FIELDS, NOW, VIEW, WIDTH, Rows
from inga.trace.schema import Row, nanoseconds

_MESSAGE = slice(FIELDS.index("src"), FIELDS.index("peer") + 1)  # the cells in the numbering of a view
_DEPS, _HEIGHT = FIELDS.index("deps"), FIELDS.index("height")


class MemoryTrace(Rows):
    """The rows of one process as a list of `Row`.

    Processes of one simulated run may share a list, which then also shows the global order of events, as
    files cannot. Positions are counted per process even then.
    """

    def __init__(
        self,
        process: int,
        n: int,
        rows: list[Row] | None = None,
        *,
        full: bool = True,
        receipt: str | None = None,
    ) -> None:
        super().__init__(full, receipt, limit=WIDTH)  # every row is handed over immediately
        self.process = process
        self.rows: list[Row] = [] if rows is None else rows
        self.pos = 0
        self._numbering = Numbering.of(n)
        self._plain = True  # no view has been closed yet

    def _hand_over(self) -> None:
        cells = self._cells
        self.pos += 1
        if not self._plain:
            frame = self._numbering.frame(cells[VIEW])
            if not frame.is_plain:  # in the first frame a short vector stays as it is
                src, seq, dst, deps, height, peer = cells[_MESSAGE]
                cells[_MESSAGE] = (
                    frame.process(src), frame.seq(src, seq), frame.mask(dst), frame.deps(deps),
                    frame.height(height), frame.process(peer),
                )  # fmt: skip
        vector = cells[_DEPS]
        if vector is not None:
            cells[_HEIGHT] = sum(vector) + 1
        cells[: NOW + 1] = self.process, self.pos, nanoseconds(cells[NOW])
        self.rows.append(tuple.__new__(Row, cells))  # cheaper than calling Row
        cells.clear()

    def grow(self, n: int) -> None:
        """From now on there are n processes. See `TraceWriter.grow`."""
        self._numbering = self._numbering.grow(n)

    def cut(self, view: int, seqs: Sequence[int] | int, indices: Sequence[int] | None = None) -> None:
        """A view was closed. See `TraceWriter.cut`."""
        self._numbering = self._numbering.cut(view, seqs, indices)
        self._plain = False
