"""A trace that stays in memory: for simulators, tests and the oracle. It needs no extra package."""

from collections.abc import Sequence

from inga.model.stamp import Deps
from inga.trace.numbering import Numbering
from inga.trace.schema import Row, nanoseconds, steps_left_out


class MemoryTrace:
    """The rows of one process as a list of `Row`.

    Processes of one simulated run may share a list: then it also shows the global order of events, which
    files cannot. Positions are per process all the same.
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
        self.full = full
        self.process = process
        self.rows: list[Row] = [] if rows is None else rows
        self.pos = 0
        self._numbering = Numbering.of(n)
        self._plain = True  # no view was closed yet
        self._left_out = steps_left_out(full, receipt)

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
        if step in self._left_out:
            return
        self.pos += 1
        if not self._plain:
            frame = self._numbering.frame(view)
            if not frame.is_plain:  # in the first frame a short vector stays as it is
                src, seq, peer = frame.process(src), frame.seq(src, seq), frame.process(peer)
                dst, deps, height = frame.mask(dst), frame.deps(deps), frame.height(height)
        if deps is not None:
            height = sum(deps) + 1
        values = (
            self.process, self.pos, nanoseconds(now), step, view,
            src, seq, dst, deps, height, peer, n, op, ref, note,
        )  # fmt: skip
        self.rows.append(tuple.__new__(Row, values))  # cheaper than calling Row

    def grow(self, n: int) -> None:
        """From now on there are n processes. See `TraceWriter.grow`."""
        self._numbering = self._numbering.grow(n)

    def cut(self, view: int, seqs: Sequence[int], indices: Sequence[int] | None = None) -> None:
        """A view was closed. See `TraceWriter.cut`."""
        self._numbering = self._numbering.cut(view, seqs, indices)
        self._plain = False
