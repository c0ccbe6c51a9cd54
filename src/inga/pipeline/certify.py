"""A trace as a source of chunks for `inga.certify`: tasks read its files and return small answers."""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from inga.certify.checks import CHECKS
from inga.certify.chunk import JUDGED_COLUMNS, PLACE_COLUMN, Chunk
from inga.certify.combine import Process
from inga.pipeline.files import Files
from inga.pipeline.storage import File, read_chunk
from inga.trace.manifest import RECEIVERS

CHUNKS_KEPT = 8  # of those that are read again for explanations


class FileSource:
    """The chunks of a trace on disk. Only the columns that the checks need are read."""

    def __init__(self, files: Files, checks: Iterable[str]) -> None:
        trace = files.trace
        more = dict.fromkeys(column for check in checks for column in CHECKS[check].columns)
        self._columns = (*JUDGED_COLUMNS, *more)
        self.conflicts = trace.manifest.conflicts
        self.undecided = trace.manifest.undecided
        self.quiet_seconds = trace.quiet_seconds
        self._files = files
        self.processes: Sequence[Process] = trace.processes
        self.receipt = trace.receipt
        self.guarantees: Sequence[str] = trace.manifest.guarantees
        self.order = trace.manifest.order
        self.is_import = trace.manifest.is_import
        self.knows_receivers = trace.manifest.options.get("destinations") != RECEIVERS
        self.segment_names: Sequence[str] = [file.name for file in trace.files]
        self.read = lru_cache(CHUNKS_KEPT)(self._read)

    def map(
        self, what: str, function: Callable[[Chunk, Any], Any], questions: Sequence[tuple[int, Any]]
    ) -> list[tuple[int, Any]]:
        n, receipt, columns = len(self.processes), self.receipt, self._columns

        def work(file: File, content: bytes | None, question: Any) -> Any:
            return function(read_chunk(file, n, receipt, content, columns), question)

        return self._files.map(what, work, questions)

    def exchange(
        self,
        what: str,
        ask: Callable[[Chunk, Any], dict[int, Any]],
        merge: Callable[[Any, Any], Any],
        answer: Callable[[Chunk, Any, Any], Any],
        questions: Sequence[tuple[int, Any]],
    ) -> list[tuple[int, Any]]:
        n, receipt = len(self.processes), self.receipt

        def asking(file: File, content: bytes | None, question: Any) -> Any:
            return ask(read_chunk(file, n, receipt, content), question)

        def answering(file: File, content: bytes | None, question: Any, gathered: Any) -> Any:
            return answer(read_chunk(file, n, receipt, content), question, gathered)

        return self._files.exchange(what, asking, merge, answering, questions)

    def gather(
        self,
        what: str,
        function: Callable[[Chunk, Any], list[tuple[int, Any]]],
        questions: Sequence[tuple[int, Any]],
        join: Callable[[int, list[Any]], Any],
    ) -> list[Any]:
        n, receipt, columns = len(self.processes), self.receipt, self._columns

        def work(file: File, content: bytes | None, question: Any) -> list[tuple[int, Any]]:
            return function(read_chunk(file, n, receipt, content, columns), question)

        return self._files.gather(what, work, questions, join)

    def _read(self, segment: int) -> Chunk:
        file = self._files.trace.files[segment]
        content = self._files.content(segment)
        return read_chunk(file, len(self.processes), self.receipt, content, (*self._columns, PLACE_COLUMN))
