"""Work on the segments of a trace where Spark is reached by Spark Connect.

Such a session has no RDDs: there are DataFrames and functions of Arrow batches. So pieces of work are pickled into rows of a
DataFrame, and a function of batches processes them one by one and returns its answers as rows. What tasks of other sessions
exchange in a shuffle goes through this process instead; it is summaries, not rows of the trace.
"""

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from inga.certify.local import PieceQuestions
from inga.model.errors import TraceError
from inga.pipeline.files import BYTES_PER_TASK, FILES_PER_TASK, Files, TaskProgress, Work, content_of
from inga.pipeline.session import first_reason
from inga.pipeline.storage import StoredTrace
from inga.trace.schema import load_pyarrow

TASKS_MAX = 32  # at once; the server does not say how many cores it has
ANSWER = "at int, answer binary"


class ConnectFiles(Files):
    """The segments of one trace, worked on by functions on DataFrames."""

    def __init__(self, session: Any, trace: StoredTrace, progress: TaskProgress) -> None:
        super().__init__(trace, progress)
        self._session = session

    def run(self, what: str, function: Callable[[Any], Any], pieces: Sequence[Any], size: int) -> list[Any]:
        if not pieces:
            return []
        pa = load_pyarrow()

        def apply(batches: Iterator[Any]) -> Iterator[Any]:
            for batch in batches:
                for at, piece in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    yield _answer(at, lambda: function(pickle.loads(piece)))  # noqa: B023 (called at once)

        packed = pa.array([pickle.dumps(piece) for piece in pieces], pa.binary())
        work = self._session.createDataFrame(
            pa.table({"at": pa.array(range(len(pieces)), pa.int32()), "piece": packed})
        )
        tasks = min(
            max(min(TASKS_MAX, size // BYTES_PER_TASK), len(pieces) // FILES_PER_TASK, 1), len(pieces)
        )
        answers = self._answers(work.repartition(int(tasks)).mapInArrow(apply, ANSWER), what, len(pieces))
        return [answers[at] for at in range(len(pieces))]

    def map(self, what: str, function: Work, questions: PieceQuestions) -> list[tuple[int, Any]]:
        if not self.trace.is_remote or not questions:
            return super().map(what, function, questions)
        by_path = {
            self.trace.files[at].path: (at, self.trace.files[at], question) for at, question in questions
        }

        def apply(batches: Iterator[Any]) -> Iterator[Any]:
            for batch in batches:
                for path, content in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    at, file, question = by_path[path]
                    yield _answer(at, lambda: function(file, content, question))  # noqa: B023 (called at once)

        files = self._session.read.format("binaryFile").load(list(by_path)).select("path", "content")
        return list(self._answers(files.mapInArrow(apply, ANSWER), what, len(questions)).items())

    def content(self, segment: int) -> bytes | None:
        return content_of(self._session, self.trace, segment)

    def _answers(self, frame: Any, what: str, total: int) -> dict[int, Any]:
        from pyspark.errors import PySparkException

        self._progress(what, 0, total)
        try:
            table = frame.toArrow()
        except PySparkException as error:
            raise TraceError(f"{self.trace.path} cannot be worked on: {first_reason(error)}") from error
        self._progress(what, total, total)
        answers = {}
        for at, packed in zip(*(column.to_pylist() for column in table.columns), strict=True):
            answers[at] = pickle.loads(packed)
            if isinstance(answers[at], TraceError):
                raise answers[at]
        return answers


def _answer(at: int, function: Callable[[], Any]) -> Any:
    """A batch of one row, with the answer. Bad input is an answer too, since a failed task would be retried."""
    pa = load_pyarrow()
    try:
        found = function()
    except TraceError as error:
        found = error
    columns = [pa.array([at], pa.int32()), pa.array([pickle.dumps(found)], pa.binary())]
    return pa.RecordBatch.from_arrays(columns, names=["at", "answer"])
