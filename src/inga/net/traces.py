"""The traces that a live member writes: its own, and those of the copies of objects that it has.

One that the others had taken for dead and that comes back is another process: what it wrote so far ends, and other
traces begin.
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
"""The option of a manifest that says how many of its processes are members, in a group that founded itself."""


class LiveTraces(Census):
    """Opens traces when they are first asked for, in a directory that members share; whoever comes first writes the
    manifest, and who joins later is known by its process file."""

    def __init__(
        self, directory: Path, manifest: Manifest, stack: Stack, *, founders: int, full: bool
    ) -> None:
        """`founders`: how many members the manifest names; 0: who joins a group that founded itself does not know."""
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
        self._ended: list[asyncio.Future[None]] = []  # traces of what we were before, that are being closed
        self._disclaimed: list[str] = []

    def trace(self, process: int, name: str = "") -> Trace:
        """Raises what is wrong with the directory when we begin. When we come back, in the middle of a change, the group
        fails of it instead, and nobody reads the rows that are still written."""
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
        """A number is reserved by a file in the directory, which only one can make. If that cannot be done, numbers are
        given all the same: a view is worth more than a trace of it."""
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
        """Reserve the number of a member, and of the copies of objects that it will have."""
        mine, *copies = self.numbers(process)
        if not claim(self._directory, mine):
            return False
        for copy in copies:
            claim(self._directory, copy)
        return True

    def disclaim(self, *checks: str) -> None:
        """Say that the run no longer claims these, for what is done at this member."""
        self._disclaimed += checks
        for trace in self._open.values():
            trace.disclaim(*checks)

    def poll(self, now: float) -> None:
        """Let segments end by time, also when nothing happens."""
        for trace in self._open.values():
            trace.poll(now)

    async def close(self, complete: bool, *, crashed: bool = False) -> None:
        """Write what is left. `crashed`: the others went on without us."""
        closing = [self._close(trace, complete, crashed) for trace in self._open.values()]
        await asyncio.shield(asyncio.gather(*self._ended, *closing))

    def _end(self) -> None:
        """Whatever we were before is over, and nothing that it wrote is lost."""
        self._ended += [self._close(trace, True, True) for trace in self._open.values()]
        self._open.clear()

    def _close(self, trace: TraceWriter, complete: bool, crashed: bool) -> asyncio.Future[None]:
        return self._loop.run_in_executor(None, lambda: trace.close(complete, crashed=crashed))

    def _name(self, index: int, process: int, name: str) -> str:
        """What the trace calls a process that begins; one that came back is another one than before. UsageError if
        somebody else has begun under its number, which then was not reserved."""
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
    """A trace that fails its group, instead of raising in the middle of whatever wrote a row."""

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
