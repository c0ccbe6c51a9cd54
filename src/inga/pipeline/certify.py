"""A trace as a source of chunks for `inga.certify`: tasks read files and return summaries."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any
from uuid import uuid4

from inga.certify.chunk import Chunk
from inga.certify.combine import Process
from inga.model.errors import TraceError
from inga.pipeline.storage import File, Trace, read_chunk

Progress = Callable[[str, int, int], None]
"""Told what is being done, how many are done, and of how many."""

TASKS_PER_CORE = 4  # enough to share the work evenly and to show progress
FILES_PER_TASK = 16
CHUNKS_KEPT = 8  # of those read again for explanations
POLL_SECONDS = 0.1


class SparkSource:
    """The chunks of a trace, worked on by Spark."""

    def __init__(self, session: Any, trace: Trace, progress: Progress) -> None:
        self._session = session
        self._trace = trace
        self._progress = progress
        self.processes: Sequence[Process] = trace.processes
        self.receipt = trace.receipt
        self.segment_names: Sequence[str] = [file.name for file in trace.files]
        self.read = lru_cache(CHUNKS_KEPT)(self._read)

    def map(
        self, what: str, function: Callable[[Chunk, Any], Any], questions: Sequence[tuple[int, Any]]
    ) -> list[tuple[int, Any]]:
        work = [(at, self._trace.files[at], question) for at, question in questions]
        if not work:
            return []
        n, receipt = self._trace.n, self._trace.receipt
        tasks = self._bytes(work) if self._trace.is_remote else self._paths(work)

        def apply(part: Iterator[tuple[int, File, Any, bytes | None]]) -> Iterator[tuple[int, Any]]:
            for at, file, question, content in part:
                try:
                    yield at, function(read_chunk(file, n, receipt, content), question)
                except TraceError as error:  # bad input is an answer; a failed task would be tried again
                    yield at, error

        found = collect(self._session, tasks.mapPartitions(apply), what, len(work), self._progress)
        for _, answer in found:
            if isinstance(answer, TraceError):
                raise answer
        return found

    def _paths(self, work: list[tuple[int, File, Any]]) -> Any:
        context = self._session.sparkContext
        slices = max(TASKS_PER_CORE * context.defaultParallelism, len(work) // FILES_PER_TASK)
        return context.parallelize([(*each, None) for each in work], min(slices, len(work)))

    def _bytes(self, work: list[tuple[int, File, Any]]) -> Any:
        by_path = {file.path: (at, file, question) for at, file, question in work}
        files = self._session.read.format("binaryFile").load(list(by_path))
        return files.select("path", "content").rdd.map(lambda row: (*by_path[row.path], bytes(row.content)))

    def _read(self, segment: int) -> Chunk:
        file, content = self._trace.files[segment], None
        if self._trace.is_remote:
            rows = self._session.read.format("binaryFile").load(file.path).select("content").collect()
            content = bytes(rows[0].content)
        return read_chunk(file, self._trace.n, self._trace.receipt, content)


def collect(session: Any, rdd: Any, what: str, total: int, progress: Progress) -> list[Any]:
    """What a job returns, with progress while it runs; an interruption cancels it."""
    from pyspark import InheritableThread

    context, group = session.sparkContext, uuid4().hex
    outcome: list[Any] = []
    failure: list[BaseException] = []

    def run() -> None:
        context.setJobGroup(group, what, interruptOnCancel=True)
        try:
            outcome.append(rdd.collect())
        except BaseException as error:  # raised again below, in the thread that waits
            failure.append(error)

    thread = InheritableThread(target=run, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(POLL_SECONDS)
            progress(what, _share_done(context, group, total), total)
    except BaseException:
        context.cancelJobGroup(group)
        raise
    if failure:
        raise failure[0]
    progress(what, total, total)
    found: list[Any] = outcome[0]
    return found


def _share_done(context: Any, group: str, total: int) -> int:
    tracker = context.statusTracker()
    done = tasks = 0
    for job in tracker.getJobIdsForGroup(group):
        stages = tracker.getJobInfo(job)
        for stage in stages.stageIds if stages else ():
            info = tracker.getStageInfo(stage)
            if info is not None:
                done, tasks = done + info.numCompletedTasks, tasks + info.numTasks
    return total * done // tasks if tasks else 0
