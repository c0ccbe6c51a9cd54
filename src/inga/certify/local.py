"""Sources that are judged in one process, a chunk after the other: no Spark."""

from collections.abc import Callable, Sequence
from typing import Any

from inga.certify.chunk import Chunk
from inga.certify.combine import Process


class LocalSource:
    """A trace whose chunks are here, or can be read here: `evidence.Source` but for what describes it."""

    def read(self, segment: int) -> Chunk:
        """One chunk, by its number."""
        raise NotImplementedError

    def map(
        self, what: str, function: Callable[[Chunk, Any], Any], questions: Sequence[tuple[int, Any]]
    ) -> list[tuple[int, Any]]:
        return [(at, function(self.read(at), question)) for at, question in questions]

    def exchange(
        self,
        what: str,
        ask: Callable[[Chunk, Any], dict[int, Any]],
        merge: Callable[[Any, Any], Any],
        answer: Callable[[Chunk, Any, Any], Any],
        questions: Sequence[tuple[int, Any]],
    ) -> list[tuple[int, Any]]:
        gathered: dict[int, Any] = {}
        for _, parts in self.map(what, ask, questions):
            for at, part in parts.items():
                gathered[at] = merge(gathered[at], part) if at in gathered else part
        asked = dict(questions)
        return [(at, answer(self.read(at), asked[at], part)) for at, part in gathered.items()]

    def gather(
        self,
        what: str,
        function: Callable[[Chunk, Any], list[tuple[int, Any]]],
        questions: Sequence[tuple[int, Any]],
        join: Callable[[int, list[Any]], Any],
    ) -> list[Any]:
        found: dict[int, list[Any]] = {}
        for _, parts in self.map(what, function, questions):
            for key, part in parts:
                found.setdefault(key, []).append(part)
        return [join(key, parts) for key, parts in found.items()]


class Chunks(LocalSource):
    """The chunks of all processes, in memory; those of one process in order."""

    def __init__(
        self,
        chunks: Sequence[Chunk],
        processes: Sequence[Process],
        receipt: str,
        quiet_seconds: float = 1.0,
        conflicts: dict[str, list[list[str]]] | None = None,
        guarantees: Sequence[str] = (),
        undecided: dict[str, list[list[str]]] | None = None,
        order: str = "",
    ) -> None:
        self._chunks = list(chunks)
        self.processes = processes
        self.receipt = receipt
        self.quiet_seconds = quiet_seconds
        self.conflicts = conflicts
        self.undecided = undecided
        self.guarantees = guarantees
        self.order = order
        self.segment_names = [f"{chunk.process} from {chunk.first}" for chunk in chunks]

    def read(self, segment: int) -> Chunk:
        return self._chunks[segment]
