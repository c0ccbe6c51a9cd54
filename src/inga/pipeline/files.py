"""Work on the segments of a trace, in this process or in tasks of Spark: a task gets files, and returns a small answer for each."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any
from uuid import uuid4

from inga.certify import local
from inga.certify.local import PieceQuestions
from inga.model.errors import TraceError
from inga.pipeline.session import equip, is_connect
from inga.pipeline.storage import File, StoredTrace

TaskProgress = Callable[[str, int, int], None]
"""Called with the name of the work, how many pieces of it are done, and how many there are."""

Work = Callable[[File, bytes | None, Any], Any]
"""The function of a task: of a file, its bytes if Spark transferred them, and a question."""

UnitWork = Callable[[Iterable[tuple[File, bytes | None]], Any], Any]
"""The same for several files."""

Unit = tuple[Sequence[int], Any]
"""The numbers of some files, and the question about them."""

TASKS_PER_CORE = 4  # enough to share the work evenly and to show progress
BYTES_PER_TASK = 1 << 20  # less is not worth another task, of which each costs a twentieth of a second
FILES_PER_TASK = 16
POLL_SECONDS = 0.1
FAILED = -1  # in place of a file that is to answer: the error of a file that could not ask


def files_of(session: Any, trace: StoredTrace, progress: TaskProgress) -> "Files":
    """The segments of a trace, as that session works on them; without one they are worked on in this process."""
    if session is None:
        return Files(trace, progress)
    equip(session)
    if is_connect(session):
        from inga.pipeline.connect import ConnectFiles  # which imports this module

        return ConnectFiles(session, trace, progress)
    return SparkFiles(session, trace, progress)


class Files:
    """The segments of one trace, numbered as in `trace.files`, worked on in this process: one after the other."""

    def __init__(self, trace: StoredTrace, progress: TaskProgress) -> None:
        self.trace = trace
        self._progress = progress

    def run(self, what: str, function: Callable[[Any], Any], pieces: Sequence[Any], size: int) -> list[Any]:
        """Apply a function to pieces of work, which name the files they read themselves; return the answers in their order.
        `size`: bytes of all these files. `what` is shown as progress."""
        answers = []
        for done, piece in enumerate(pieces):
            self._progress(what, done, len(pieces))
            answers.append(function(piece))
        self._progress(what, len(pieces), len(pieces))
        return answers

    def map(self, what: str, function: Work, questions: PieceQuestions) -> list[tuple[int, Any]]:
        """Apply a function to files and their questions; the answers are in no particular order."""

        def apply(piece: tuple[int, File, Any]) -> tuple[int, Any]:
            at, file, question = piece
            return at, function(file, None, question)

        work = [(at, self.trace.files[at], question) for at, question in questions]
        return self.run(what, apply, work, _size(work))

    def units(self, what: str, function: UnitWork, units: Sequence[Unit]) -> list[Any]:
        """Apply a function to units of several files, which it reads one after the other. The files of a remote trace are read
        in this process, one at a time, unless each is a unit of its own."""
        if self.trace.is_remote:
            if all(len(numbers) == 1 for numbers, _ in units):

                def alone(file: File, content: bytes | None, question: Any) -> Any:
                    return function([(file, content)], question)

                asked = [(numbers[0], question) for numbers, question in units]
                answers = dict(self.map(what, alone, asked))
                return [answers[at] for at, _ in asked]

            def through_here(unit: Unit) -> Any:
                return function(((self.trace.files[at], self.content(at)) for at in unit[0]), unit[1])

            return Files.run(self, what, through_here, units, 0)

        def apply(piece: tuple[list[File], Any]) -> Any:
            return function(((file, None) for file in piece[0]), piece[1])

        work = [([self.trace.files[at] for at in numbers], question) for numbers, question in units]
        return self.run(what, apply, work, sum(file.size for files, _ in work for file in files))

    def exchange(
        self,
        what: str,
        ask: Work,
        merge: Callable[[Any, Any], Any],
        answer: Callable[[File, bytes | None, Any, Any], Any],
        questions: PieceQuestions,
    ) -> list[tuple[int, Any]]:
        """Let files query each other: `ask` returns queries by the file that is to answer, which gets all of its queries merged."""
        return local.exchange(partial(self.map, what), ask, merge, answer, questions)

    def gather(
        self, what: str, function: Work, questions: PieceQuestions, join: Callable[[int, list[Any]], Any]
    ) -> list[Any]:
        """Apply a function to files that returns its results under keys; `join` gets all results of one key."""
        return local.gather(partial(self.map, what), function, questions, join)

    def content(self, segment: int) -> bytes | None:
        """The bytes of a segment, if this process cannot open the file itself."""
        return None


class SparkFiles(Files):
    """The segments of one trace, worked on by tasks of Spark. Of a remote trace, Spark transfers whole files as bytes."""

    def __init__(self, session: Any, trace: StoredTrace, progress: TaskProgress) -> None:
        super().__init__(trace, progress)
        self._session = session

    def run(self, what: str, function: Callable[[Any], Any], pieces: Sequence[Any], size: int) -> list[Any]:
        if not pieces:
            return []

        def apply(piece: tuple[int, Any]) -> tuple[int, Any]:
            try:
                return piece[0], function(piece[1])
            except TraceError as error:
                return piece[0], error

        tasks = self._session.sparkContext.parallelize(
            list(enumerate(pieces)), self.tasks_for(size, len(pieces))
        )
        return [answer for _, answer in self._answers(tasks.map(apply), what, len(pieces))]

    def map(self, what: str, function: Work, questions: PieceQuestions) -> list[tuple[int, Any]]:
        if not self.trace.is_remote:
            return super().map(what, function, questions)
        work = [(at, self.trace.files[at], question) for at, question in questions]
        if not work:
            return []

        def apply(part: Iterator[tuple[int, File, Any, bytes | None]]) -> Iterator[tuple[int, Any]]:
            for at, file, question, content in part:
                try:
                    yield at, function(file, content, question)
                except TraceError as error:
                    yield at, error

        return self._answers(self._bytes(work).mapPartitions(apply), what, len(work))

    def exchange(
        self,
        what: str,
        ask: Work,
        merge: Callable[[Any, Any], Any],
        answer: Callable[[File, bytes | None, Any, Any], Any],
        questions: PieceQuestions,
    ) -> list[tuple[int, Any]]:
        """One shuffle. For a remote trace, whose files Spark has to transfer, the queries go through the driver."""
        if self.trace.is_remote or not questions:
            return super().exchange(what, ask, merge, answer, questions)
        asked = dict(questions)
        files = self.trace.files

        def asking(part: Iterator[tuple[int, File, Any, bytes | None]]) -> Iterator[tuple[int, Any]]:
            for _, file, question, content in part:
                try:
                    yield from ask(file, content, question).items()
                except TraceError as error:
                    yield FAILED, error

        def answering(part: Iterator[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
            for at, gathered in part:
                if at == FAILED:
                    yield at, gathered
                    continue
                try:
                    yield at, answer(files[at], None, asked[at], gathered)
                except TraceError as error:
                    yield at, error

        def merging(left: Any, right: Any) -> Any:
            return left if isinstance(left, TraceError) else merge(left, right)

        tasks = self._paths([(at, files[at], question) for at, question in questions])
        shuffled = tasks.mapPartitions(asking).reduceByKey(merging, tasks.getNumPartitions())
        return self._answers(shuffled.mapPartitions(answering), what, len(questions))

    def gather(
        self, what: str, function: Work, questions: PieceQuestions, join: Callable[[int, list[Any]], Any]
    ) -> list[Any]:
        """One shuffle."""
        work = [(at, self.trace.files[at], question) for at, question in questions]
        if not work:
            return []

        def deal(part: Iterator[tuple[int, File, Any, bytes | None]]) -> Iterator[tuple[int, Any]]:
            for _, file, question, content in part:
                try:
                    yield from function(file, content, question)
                except TraceError as error:
                    yield FAILED, error

        def meet(pair: tuple[int, Iterable[Any]]) -> tuple[int, Any]:
            key, parts = pair[0], list(pair[1])
            return key, parts[0] if key == FAILED else join(key, parts)

        tasks = self._bytes(work) if self.trace.is_remote else self._paths(work)
        cores = self._session.sparkContext.defaultParallelism
        slices = min(TASKS_PER_CORE * cores, max(cores, len(work) // FILES_PER_TASK))
        met = tasks.mapPartitions(deal).groupByKey(slices).map(meet)
        return [each for _, each in self._answers(met, what, len(work))]

    def _answers(self, rdd: Any, what: str, total: int) -> list[tuple[int, Any]]:
        """The answers of a job. Bad input is among the answers, since a failed task would be retried; here it is raised."""
        found: list[tuple[int, Any]] = collect(self._session, rdd, what, total, self._progress)
        for _, answer in found:
            if isinstance(answer, TraceError):
                raise answer
        return found

    def tasks_for(self, size: int, pieces: int) -> int:
        """The number of tasks for so many bytes in so many pieces."""
        cores = self._session.sparkContext.defaultParallelism
        tasks = min(TASKS_PER_CORE * cores, max(cores, size // BYTES_PER_TASK))
        return int(min(max(tasks, pieces // FILES_PER_TASK), pieces))

    def content(self, segment: int) -> bytes | None:
        return content_of(self._session, self.trace, segment)

    def _paths(self, work: list[tuple[int, File, Any]]) -> Any:
        tasks = self.tasks_for(_size(work), len(work))
        return self._session.sparkContext.parallelize([(*each, None) for each in work], tasks)

    def _bytes(self, work: list[tuple[int, File, Any]]) -> Any:
        by_path = {file.path: (at, file, question) for at, file, question in work}
        files = self._session.read.format("binaryFile").load(list(by_path))
        return files.select("path", "content").rdd.map(lambda row: (*by_path[row.path], bytes(row.content)))


def content_of(session: Any, trace: StoredTrace, segment: int) -> bytes | None:
    """The bytes of a segment, if Spark has to transfer them."""
    if not trace.is_remote:
        return None
    (row,) = session.read.format("binaryFile").load(trace.files[segment].path).select("content").collect()
    return bytes(row.content)


def _size(work: Sequence[tuple[int, File, Any]]) -> int:
    return sum(file.size for _, file, _ in work)


def collect(session: Any, rdd: Any, what: str, total: int, progress: TaskProgress) -> list[Any]:
    """Run a job and return its results, with progress while it runs; an interruption cancels it."""
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
    """The part of `total` that corresponds to the share of finished tasks."""
    tracker = context.statusTracker()
    done = tasks = 0
    for job in tracker.getJobIdsForGroup(group):
        stages = tracker.getJobInfo(job)
        for stage in stages.stageIds if stages else ():
            info = tracker.getStageInfo(stage)
            if info is not None:
                done, tasks = done + info.numCompletedTasks, tasks + info.numTasks
    return total * done // tasks if tasks else 0
