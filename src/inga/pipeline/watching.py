"""Certifying a trace while it grows: each look reads the segments that are new, and no others.

What is carried from look to look are the summaries of `inga.certify`: with them, a look at the whole trace costs
the driver a few vectors per segment, and the workers only what has come since. While the trace grows, only what
can never be put right again is judged: `Check.growing` says when.

At the end all checks are answered from the same summaries, so the verdict is that of `inga check`.
"""

import json
import os
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from random import SystemRandom
from time import perf_counter, sleep
from typing import Any

from inga.certify import work
from inga.certify.certificate import WITNESSES, certify
from inga.certify.checks import CHECKS, WhileGrowing
from inga.certify.chunk import Chunk
from inga.certify.scan import Summary
from inga.certify.verdict import FAIL, Certificate
from inga.model.errors import TraceError, UsageError
from inga.pipeline.certify import FileSource
from inga.pipeline.files import Files, TaskProgress, files_of
from inga.pipeline.jobs import choose_checks
from inga.pipeline.session import LOCAL, using
from inga.pipeline.storage import StoredTrace, is_remote, open_trace

GROWTH = 1.5  # of the trace, after which messages under way are compared again
FORMAT = 6


class Memory:
    """What was learned so far: the summaries of segments, and the verdict once there is one.

    With a directory it outlives the process. Every look adds one file, which appears whole; a file that was not
    finished is as if the look had not been.
    """

    def __init__(self, directory: str | None = None) -> None:
        self.directory = None if directory is None else Path(directory)
        self.seed = SystemRandom().getrandbits(64)
        self.summaries: dict[str, Summary] = {}  # by the name of the segment
        self.verdict: Certificate | None = None
        self._run = ""
        self._asked: list[str] | None = None  # None: what the run claims, which may become less
        self._n = self._looks = 0
        if self.directory is not None and (self.directory / "head.json").exists():
            self._load(self.directory)

    def bind(self, trace: StoredTrace, asked: Sequence[str] | None) -> None:
        """See that this is memory of that trace. If the trace has more processes now, vectors have more
        entries, and all has to be read again."""
        wanted = None if asked is None else list(asked)
        if self._run and (self._run, self._asked) != (trace.manifest.run, wanted):
            raise UsageError(
                f"{self.directory} remembers another trace or other checks: name a new directory"
            )
        if self._n == trace.n:
            return
        self._run, self._asked, self._n, self._looks = trace.manifest.run, wanted, trace.n, 0
        self.summaries.clear()
        if self.directory is not None:
            head = {
                "format": FORMAT,
                "run": self._run,
                "checks": self._asked,
                "n": self._n,
                "seed": self.seed,
            }
            _put(self.directory / "head.json", json.dumps(head).encode())

    def add(self, new: dict[str, Summary]) -> None:
        if new:
            self.summaries |= new
            if self.directory is not None:
                _put(self.directory / f"{self._n}-{self._looks:06}.pickle", pickle.dumps(new))
            self._looks += 1

    def end(self, verdict: Certificate) -> None:
        self.verdict = verdict
        if self.directory is not None:
            _put(self.directory / "verdict.pickle", pickle.dumps(verdict))

    def _load(self, directory: Path) -> None:
        try:
            head = json.loads((directory / "head.json").read_bytes())
            if head["format"] != FORMAT:
                raise UsageError(f"{directory} was written by another version: name a new directory")
            self._run, self._asked, self._n = head["run"], head["checks"], head["n"]
            self.seed = head["seed"]
            for path in sorted(directory.glob(f"{self._n}-*.pickle")):
                self.summaries |= pickle.loads(path.read_bytes())
                self._looks += 1
            if (directory / "verdict.pickle").exists():
                self.verdict = pickle.loads((directory / "verdict.pickle").read_bytes())
        except (ValueError, KeyError, TypeError, pickle.UnpicklingError, EOFError) as error:
            raise UsageError(f"{directory} is no checkpoint of inga watch: name a new directory") from error


class RememberingSource(FileSource):
    """Does not summarise a segment twice."""

    def __init__(self, files: Files, checks: Sequence[str], memory: Memory) -> None:
        super().__init__(files, checks)
        self._memory = memory

    def map(
        self, what: str, function: Callable[[Chunk, Any], Any], questions: Sequence[tuple[int, Any]]
    ) -> list[tuple[int, Any]]:
        if function is not work.summarise:
            return super().map(what, function, questions)
        names, known = self.segment_names, self._memory.summaries
        found = [(at, known[names[at]]) for at, _ in questions if names[at] in known]
        new = super().map(what, function, [each for each in questions if names[each[0]] not in known])
        self._memory.add({names[at]: summary for at, summary in new})
        return found + new


class Watch:
    """One trace, looked at again and again."""

    def __init__(
        self, path: str, checks: Sequence[str] | None, memory: Memory, witnesses: int = WITNESSES
    ) -> None:
        self.path = path
        self.memory = memory
        self._checks = checks
        self._witnesses = witnesses
        self._compared = 0  # segments there were when messages were last compared
        self._trouble: str | None = None  # what was wrong at the last look
        self.violated: Certificate | None = None  # the first that had a violation

    def look(self, session: Any, progress: TaskProgress) -> Certificate | None:
        """What is known now, if something is new; the final answer is also in the memory."""
        try:
            certificate = self._look(session, progress)
        except TraceError as error:
            # Files may come between two of our steps. What is really wrong is wrong the next time too.
            if self._trouble == str(error):
                raise
            self._trouble = str(error)
            return None
        self._trouble = None
        return certificate

    def _look(self, session: Any, progress: TaskProgress) -> Certificate | None:
        trace = open_trace(self.path, session, growing=True)
        checks = choose_checks(trace, self._checks)
        self.memory.bind(trace, self._checks)
        new = sum(file.name not in self.memory.summaries for file in trace.files)
        finished = is_finished(trace)
        judged = checks if finished else self._now(checks, len(trace.files), new)
        if not (finished or new or judged or self._trouble):
            return None
        source = RememberingSource(files_of(session, trace, progress), checks, self.memory)
        certificate = certify(
            source, judged, witnesses=self._witnesses, seed=self.memory.seed, growing=not finished
        )
        if finished:
            self.memory.end(certificate)
        elif certificate.verdict == FAIL:
            self.violated = self.violated or certificate
        return certificate

    def _now(self, checks: Sequence[str], segments: int, new: int) -> list[str]:
        """What to judge while the trace grows. After a violation the rest is left to the end."""
        if self.violated is not None or not segments:
            return []
        is_due = segments >= GROWTH * self._compared if new else segments > self._compared
        if not (new or is_due):
            return []
        if is_due:
            self._compared = segments
        due = {WhileGrowing.EVERY_LOOK, *([WhileGrowing.NOW_AND_THEN] if is_due else [])}
        return [check for check in checks if CHECKS[check].growing in due]


def is_finished(trace: StoredTrace) -> bool:
    """Whether no row can come any more."""
    return trace.manifest.complete or all(each.complete or each.crashed for each in trace.processes)


def watch_trace(
    path: str,
    checks: Sequence[str] | None = None,
    *,
    until_complete: bool = False,
    poll: float = 1.0,
    checkpoint: str | None = None,
    master: str | None = LOCAL,
    witnesses: int = WITNESSES,
    tell: Callable[[Certificate], None] = lambda certificate: None,
    progress: TaskProgress = lambda what, done, total: None,
    session: Any = None,
) -> Certificate:
    """Look at a trace every `poll` seconds until it is complete, or a violation is found.

    With `until_complete` a violation does not end it; `tell` hears of it at once, and of everything new. With neither
    session nor master it is done in this process, without Spark.
    """
    started = perf_counter()
    memory = Memory(checkpoint)
    if not is_remote(path):
        trace = open_trace_leniently(path)
        choose_checks(trace, checks)  # or why that cannot be
        memory.bind(trace, checks)
    if memory.verdict is not None:
        return memory.verdict
    watch = Watch(path, checks, memory, witnesses)
    with using(session, master) as spark:
        verdict = _keep_looking(watch, spark, until_complete, poll, tell, progress)
    verdict.seconds = perf_counter() - started
    return verdict


def _keep_looking(
    watch: Watch,
    session: Any,
    until_complete: bool,
    poll: float,
    tell: Callable[[Certificate], None],
    progress: TaskProgress,
) -> Certificate:
    while True:
        certificate = watch.look(session, progress)
        if certificate is not None:
            tell(certificate)
        if watch.violated is not None and not until_complete:
            watch.memory.end(watch.violated)
        if watch.memory.verdict is not None:
            return watch.memory.verdict
        sleep(poll)


def open_trace_leniently(path: str) -> StoredTrace:
    """A trace that is being written may be seen in between two of its files; not twice in the same way."""
    try:
        return open_trace(path)
    except TraceError as first:
        sleep(0.1)
        try:
            return open_trace(path)
        except TraceError as second:
            if str(first) == str(second):
                raise
            return open_trace(path)


def _put(path: Path, content: bytes) -> None:
    """A file that is there when it is whole, also after a power failure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name(f".{path.name}.{os.getpid()}")
    with hidden.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(hidden, path)
