"""The trace of a simulated run: there before it begins, complete when it has ended."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from uuid import UUID

from inga.sim.simulator import Sim
from inga.trace.manifest import Manifest
from inga.trace.writer import TraceWriter


class Recording:
    """A manifest and a writer for each of its processes."""

    def __init__(self, directory: Path, manifest: Manifest, *, full: bool) -> None:
        """The same seed gives the same trace, so it also gives the number of the run."""
        run = str(UUID(int=Random(manifest.seed).getrandbits(128), version=4))
        self._manifest = replace(manifest, run=run, complete=False)
        self._directory = directory
        self._full = full
        self.writers: list[TraceWriter] = []
        self._manifest.write(directory)
        for index, name in enumerate(manifest.processes):
            self.add(index, name, len(manifest.processes))

    def add(self, index: int, name: str, n: int) -> TraceWriter:
        """One more process, which begins in a group of n."""
        writer = TraceWriter(
            self._directory, index, name, n, full=self._full, clock="virtual", background=False
        )
        self.writers.append(writer)
        return writer

    @property
    def names(self) -> list[str]:
        """Processes at the start."""
        return self._manifest.processes

    def run(self, sim: Sim, until_done: Callable[[], None]) -> None:
        """Run it to the end. What was written before it broke off stays, marked as incomplete."""
        complete = False
        try:
            until_done()
            complete = True
        finally:
            crashed = [site.stack.trace for site in sim.sites if site.has_crashed and site.newcomer is None]
            for writer in self.writers:
                writer.close(complete=complete, crashed=any(writer is each for each in crashed))
        replace(self._manifest, complete=True).write(self._directory)
