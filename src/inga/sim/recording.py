"""The trace of a simulated run: its files are created before the run begins, and marked as complete when it has ended."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from uuid import UUID

from inga.sim.simulator import Sim
from inga.stack.stack import Stack
from inga.trace.manifest import Manifest
from inga.trace.numbering import Census
from inga.trace.writer import TraceWriter


class Recording(Census):
    """A manifest and a writer for each of its processes."""

    def __init__(self, directory: Path, manifest: Manifest, founders: int, *, full: bool) -> None:
        """The id of the run is derived from the seed, since the same seed gives the same trace."""
        super().__init__(manifest.processes, founders)
        run = str(UUID(int=Random(manifest.seed).getrandbits(128), version=4))
        self._manifest = replace(manifest, run=run, complete=False)
        self._directory = directory
        self._full = full
        self._manifest.write(directory)
        self._writers: dict[int, TraceWriter] = {}
        self._people: dict[int, str] = {}  # names of members that joined later, by process number
        for index in range(len(self.names)):
            self._add(index, self.names[index], len(self.names))

    def book(self, stack: Stack) -> "MemberTraces":
        """Return the traces of one member."""
        return MemberTraces(self, stack)

    def trace(self, process: int, name: str = "", stack: Stack | None = None) -> TraceWriter:
        """Return the writer of a process. That of a member that joined later is opened now, and gets its name from its stack."""
        index = self.number(process, name)
        if index not in self._writers:
            assert stack is not None, f"nobody opens the trace of process {process}"
            if process not in self._people:  # a member that returned is another process
                person = stack.member.name
                known = {*self.names, *self._people.values()}
                self._people[process] = f"{person} ({self.number(process)})" if person in known else person
            person = self._people[process]
            self._add(index, f"{person}/{name}" if name else person, self.size(stack.view.total))
        return self._writers[index]

    def _add(self, index: int, name: str, n: int) -> None:
        self._writers[index] = TraceWriter(
            self._directory, index, name, n, full=self._full, clock="virtual", background=False
        )

    def run(self, sim: Sim, until_done: Callable[[], None]) -> None:
        """Run the simulation to the end. If it breaks off, what was written before stays, marked as incomplete."""
        complete = False
        try:
            until_done()
            complete = True
        finally:
            self.end(sim, complete=complete)

    def end(self, sim: Sim, *, complete: bool) -> None:
        """Close the trace of a run that has ended or broken off."""
        stacks = [site.stack for site in sim.sites if site.has_crashed and site.newcomer is None]
        gone = {stack.view.processes[stack.me] for stack in stacks}
        crashed = {index for process in gone for index in self.numbers(process)}
        total = max(site.stack.view.total for site in sim.sites if site.newcomer is None)
        for index in sorted({*range(self.size(total))} - self._writers.keys()):
            crashed.add(index)  # this process was admitted, and crashed before it learned of that
            self._add(index, f"process {index}", self.size(total))
        for index, writer in self._writers.items():
            writer.close(complete=complete, crashed=index in crashed)
        if complete:
            replace(self._manifest, complete=True).write(self._directory)


class MemberTraces:
    """The part of a recording that one member's stack uses."""

    def __init__(self, recording: Recording, stack: Stack) -> None:
        self._recording = recording
        self._stack = stack
        self.number, self.past, self.reserve = recording.number, recording.past, recording.reserve

    def trace(self, process: int, name: str = "") -> TraceWriter:
        return self._recording.trace(process, name, self._stack)
