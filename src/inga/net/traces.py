"""The traces that a live member writes: its own, and those of its copies of objects.

A member that was excluded and returns is another process of the trace: its traces so far end, and others begin.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from inga.model.errors import IngaError, TraceError, UsageError
from inga.model.steps import Trace
from inga.stack.stack import Stack
from inga.trace.manifest import Manifest, claim
from inga.trace.memory import MemoryTrace
from inga.trace.numbering import Census
from inga.trace.reader import read_description
from inga.trace.writer import TraceWriter

FOUNDERS = "founders"
"""The option of a manifest with the number of founders among its processes, in a group without listed members."""


class LiveTraces(Census):
    """Opens traces when they are first requested, in a directory that members share. The first member writes the
    manifest; a member that joins later has a process file instead."""

    def __init__(
        self, directory: Path, manifest: Manifest, stack: Stack, *, founders: int, full: bool
    ) -> None:
        """`founders`: the number of members that the manifest names; 0: unknown to a newcomer in a group without listed members."""
        names = manifest.processes
        if not (directory / "manifest.json").exists():
            if not names:
                raise UsageError(
                    f"{directory} holds no trace of this group, which runs already: members share one"
                )
            manifest.write(directory)
        else:
            found = read_description(directory)
            known = found.manifest.processes[: found.named]
            if known[: len(names)] != names[: len(known)]:
                raise UsageError(f"{directory} holds a trace of another group")
            names = known
            founders = founders or found.manifest.options.get(FOUNDERS, len(known))
        super().__init__(names, founders)
        self._directory = directory
        self._stack = stack
        self._full = full
        self._loop = asyncio.get_running_loop()
        self._origin = time.time() - self._loop.time()
        self._open: dict[tuple[int, str], _LiveTrace] = {}
        self._ended: list[asyncio.Future[None]] = []  # traces of our previous incarnations, being closed
        self._disclaimed: list[str] = []

    def trace(self, process: int, name: str = "") -> Trace:
        """The trace of a process, opened when it is first requested. If the directory has an error, this raises it when we join; when we
        return, in the middle of a view change, the group fails with it instead, and further rows go nowhere."""
        if (process, name) not in self._open:
            if not name:
                self._end()
            index, n = self.number(process, name), max(self.size(self._stack.view.total), len(self.names))
            try:
                self._open[process, name] = self._begin(index, self._name(index, process, name), n)
            except IngaError as error:
                if not self._ended:
                    raise
                self._stack.fail(error)
                return MemoryTrace(index, n)
        return self._open[process, name]

    def _begin(self, index: int, name: str, n: int) -> "_LiveTrace":
        failed = self._stack.fail
        trace = _LiveTrace(
            self._directory, index, name, n, full=self._full, origin=self._origin, on_failure=failed
        )
        trace.disclaim(*self._disclaimed)
        return trace

    def reserve(self, count: int, least: int) -> Sequence[int]:
        """Reserve numbers by files in the directory, each of which only one member can create. If that fails, numbers are returned
        all the same, with a notice: the view is worth more than its trace."""
        found: list[int] = []
        process = least
        try:
            while len(found) < count:
                if self._claim(process):
                    found.append(process)
                process += 1
        except TraceError as error:
            self._stack.notice(
                "trace.numbers", f"other parts of the group may give newcomers the same numbers: {error}"
            )
            found += range(process, process + count - len(found))
        return found

    def _claim(self, process: int) -> bool:
        """Reserve the number of a member, and those of its future copies of objects."""
        mine, *copies = self.numbers(process)
        if not claim(self._directory, mine):
            return False
        for copy in copies:
            claim(self._directory, copy)
        return True

    def disclaim(self, *checks: str) -> None:
        """Record that the run no longer claims these checks, because of what was done at this member."""
        self._disclaimed += checks
        for trace in self._open.values():
            trace.disclaim(*checks)

    def poll(self, now: float) -> None:
        """Let segments end by time, even if nothing happens."""
        for trace in self._open.values():
            trace.poll(now)

    async def close(self, complete: bool, *, crashed: bool = False) -> None:
        """Write the remaining rows. `crashed`: the others went on without us."""
        closing = [self._close(trace, complete, crashed) for trace in self._open.values()]
        await asyncio.shield(asyncio.gather(*self._ended, *closing))

    def _end(self) -> None:
        """Close the traces of our previous incarnation; all its rows are written."""
        self._ended += [self._close(trace, True, True) for trace in self._open.values()]
        self._open.clear()

    def _close(self, trace: TraceWriter, complete: bool, crashed: bool) -> asyncio.Future[None]:
        return self._loop.run_in_executor(None, lambda: trace.close(complete, crashed=crashed))

    def _name(self, index: int, process: int, name: str) -> str:
        """The name of a new process in the trace; a member that has returned has another name than before. Raises UsageError if
        another process has begun under that number, which then was not reserved."""
        if index < len(self.names):
            return self.names[index]
        found = read_description(self._directory)
        if index in found.known and found.known[index].has_begun:
            raise UsageError(
                f"{self._directory} has a process {index} already, {found.known[index].name!r}: two parts of the group "
                "have let somebody in under that number"
            )
        person = self._stack.member.name
        if person in found.manifest.processes[: self.number(process)]:
            person = f"{person} ({self.number(process)})"
        return f"{person}/{name}" if name else person


class _LiveTrace(TraceWriter):
    """A trace that makes its group fail on an error, instead of raising it in the code that writes a row."""

    def __init__(self, *where: Any, on_failure: Callable[[IngaError], None], **options: Any) -> None:
        self._on_failure = on_failure
        super().__init__(*where, **options)

    def _hand_over(self, seal: bool = False) -> None:
        try:
            super()._hand_over(seal)
        except TraceError as error:
            if self._closed:
                raise
            self._on_failure(error)
