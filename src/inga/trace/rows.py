"""Rows as a member writes them: the arguments of `Trace.row`, end to end in one list.

`row` only appends its arguments; the subclass that keeps the rows does all expensive work later.
"""

from typing import Any

from inga.model.stamp import Deps
from inga.trace.schema import COLUMNS, steps_left_out

FIELDS = ("now", *COLUMNS[3:])
"""The cells of a collected row, in this order: without process and position, the time in seconds, indices and counts in the
numbering of the row's view."""

WIDTH = len(FIELDS)
NOW = FIELDS.index("now")
VIEW = FIELDS.index("view")

RowCells = list[Any]
"""Rows end to end in one flat list, WIDTH cells each. A tuple per row costs more than twice as
much: the garbage collector has to look at each of them, and they do not slice into columns."""


class Rows:
    """Collects rows, and hands them over when there are enough.

    A lean trace (`full=False`) keeps sends, deliveries, group steps and the `receipt` step of the order; if `receipt` is
    None, every step that can be the receipt step.
    """

    def __init__(self, full: bool, receipt: str | None, limit: int) -> None:
        self.full = full
        self._left_out = steps_left_out(full, receipt)
        self._cells: RowCells = []
        self._limit = limit  # cells to collect before they are handed over

    def row(
        self,
        step: str,
        now: float,
        view: int,
        src: int | None = None,
        seq: int | None = None,
        *,
        dst: int | None = None,
        deps: Deps | None = None,
        height: int | None = None,
        peer: int | None = None,
        n: int | None = None,
        op: str | None = None,
        ref: str | None = None,
        note: str | None = None,
    ) -> None:
        """Append one row. `now` is in seconds; `src`, `seq`, `dst`, `deps`, `peer` are in the numbers of `view`."""
        if step in self._left_out:
            return
        cells = self._cells
        cells += (now, step, view, src, seq, dst, deps, height, peer, n, op, ref, note)
        if len(cells) >= self._limit:
            self._hand_over()

    def _hand_over(self) -> None:
        """Take over the collected rows and empty the list; subclasses implement it."""
        raise NotImplementedError
