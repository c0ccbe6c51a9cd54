"""Certifying a trace while it grows: each look reads the segments that are new, and no others.

What is carried from look to look are the summaries of `inga.certify`: with them, a look at the whole trace costs
the driver a few vectors per segment, and the workers only what has come since. While the trace grows, only what
can never be put right again is judged: `Check.growing` says when.

At the end all checks are answered from the same summaries, so the verdict is that of `inga check`.

Whoever wants to hear of violations as they come is told of each once. What was told is written down afterwards, so a watcher that is
killed in between tells it again, under the same name: the one who hears it can know that it is the same.
"""

import json
import os
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom
from time import perf_counter, sleep, time
from typing import Any

from inga.certify import work
from inga.certify.certificate import WITNESSES, certify
from inga.certify.checks import CHECKS, WhileGrowing
from inga.certify.chunk import Chunk
from inga.certify.scan import Summary
from inga.certify.verdict import FAIL, Certificate, Witness
from inga.model.errors import TraceError, UsageError
from inga.pipeline.certify import FileSource
from inga.pipeline.files import Files, TaskProgress, files_of
from inga.pipeline.jobs import choose_checks
from inga.pipeline.session import LOCAL, using
from inga.pipeline.storage import File, StoredTrace, is_remote, open_trace
from inga.trace.directory import whole_file

GROWTH = 1.5  # of the trace, after which messages under way are compared again
FORMAT = 7
LOOKS_KEPT = 256  # files of a checkpoint, after which they are made one
EXAMPLES_MAX = 200  # violations of a check that are looked through for new ones,
TOLD_MAX = 1000  # and those of which is remembered that they were told


@dataclass(frozen=True, slots=True)
class NewViolations:
    """Violations of one check that are new."""

    run: str
    check: str
    since: int  # how many there were before
    total: int
    examples: list[Witness]  # some of the new ones

    @property
    def name(self) -> str:
        """The same if it is told again."""
        return f"{self.run}/{self.check}/{self.since + 1}"

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.name,
            "run": self.run,
            "check": self.check,
            "new": self.total - self.since,
            "total": self.total,
            "examples": [witness.to_json() for witness in self.examples],
        }


@dataclass(frozen=True, slots=True)
class Looked:
    """What one look found."""

    certificate: Certificate
    behind: float | None = None  # seconds since the oldest segment that was new appeared, if that is known


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
        self.rescans: dict[
            str, Any
        ] = {}  # what was wrong in segments that were looked at twice; they do not change
        self.told: dict[str, int] = {}  # how many violations of each check,
        self._examples: list[str] = []  # and which of them, the last ones
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
            self._looks += 1
            if self.directory is not None:
                self._keep(self.directory, new)

    def _keep(self, directory: Path, new: dict[str, Summary]) -> None:
        old = sorted(directory.glob(f"{self._n}-*.pickle"))
        is_full = len(old) >= LOOKS_KEPT
        path = directory / f"{self._n}-{self._looks:06}.pickle"
        _put(path, pickle.dumps(self.summaries if is_full else new))
        for each in (
            old if is_full else ()
        ):  # whoever is killed here has some summaries twice, which are equal
            each.unlink(missing_ok=True)

    def notices(self, certificate: Certificate, examples_max: int) -> list[NewViolations]:
        """What a certificate has that was not told yet."""
        known = set(self._examples)
        return [
            NewViolations(
                self._run,
                check.name,
                self.told.get(check.name, 0),
                check.violations,
                [each for each in check.witnesses if _example(each) not in known][:examples_max],
            )
            for check in certificate.checks
            if check.violations > self.told.get(check.name, 0)
        ]

    def tell(self, notice: NewViolations) -> None:
        """Remember that somebody was told."""
        self.told[notice.check] = notice.total
        self._examples = [*self._examples, *map(_example, notice.examples)][-TOLD_MAX:]
        if self.directory is not None:
            content = {"told": self.told, "examples": self._examples}
            _put(self.directory / "told.json", json.dumps(content).encode())

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
                self._looks = int(path.stem.partition("-")[2])
            if (directory / "told.json").exists():
                content = json.loads((directory / "told.json").read_bytes())
                self.told, self._examples = content["told"], content["examples"]
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
        if function is work.rescan:
            return self._rescan(what, questions)
        if function is not work.summarise:
            return super().map(what, function, questions)
        names, known = self.segment_names, self._memory.summaries
        found = [(at, known[names[at]]) for at, _ in questions if names[at] in known]
        new = super().map(what, function, [each for each in questions if names[each[0]] not in known])
        self._memory.add({names[at]: summary for at, summary in new})
        return found + new

    def _rescan(self, what: str, questions: Sequence[tuple[int, Any]]) -> list[tuple[int, Any]]:
        """What is wrong with a segment stays so: what comes before it does not change."""
        names, known = self.segment_names, self._memory.rescans
        new = [each for each in questions if names[each[0]] not in known]
        known |= {names[at]: found for at, found in super().map(what, work.rescan, new)}
        return [(at, known[names[at]]) for at, _ in questions]


def _example(witness: Witness) -> str:
    return f"{witness.check} {witness.process} {witness.pos} {witness.message[0]} {witness.message[1]}"


class Watch:
    """One trace, looked at again and again; after a violation only to its end, unless it `goes_on` to judge."""

    def __init__(
        self,
        path: str,
        checks: Sequence[str] | None,
        memory: Memory,
        witnesses: int = WITNESSES,
        *,
        goes_on: bool = False,
    ) -> None:
        self.path = path
        self.memory = memory
        self._checks = checks
        self._witnesses = witnesses
        self._compared = 0  # segments there were when messages were last compared
        self._trouble: str | None = None  # what was wrong at the last look
        self._goes_on = goes_on
        self.violated: Certificate | None = None  # the first that had a violation
        self.behind: float | None = None  # at the last look

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
        fresh = [file for file in trace.files if file.name not in self.memory.summaries]
        new, since = len(fresh), _oldest(fresh)
        finished = is_finished(trace)
        judged = checks if finished else self._now(checks, len(trace.files), new)
        if not (finished or new or judged or self._trouble):
            return None
        source = RememberingSource(files_of(session, trace, progress), checks, self.memory)
        # While the trace grows, new violations are looked for among many.
        shown = max(self._witnesses, EXAMPLES_MAX if self._goes_on and not finished else 0)
        certificate = certify(source, judged, witnesses=shown, seed=self.memory.seed, growing=not finished)
        self.behind = None if since is None else max(time() - since, 0.0)
        if finished:
            self.memory.end(certificate)
        elif certificate.verdict == FAIL:
            self.violated = self.violated or certificate
        return certificate

    def _now(self, checks: Sequence[str], segments: int, new: int) -> list[str]:
        """What to judge while the trace grows. After a violation the rest is left to the end."""
        if (self.violated is not None and not self._goes_on) or not segments:
            return []
        is_due = segments >= GROWTH * self._compared if new else segments > self._compared
        if not (new or is_due):
            return []
        if is_due:
            self._compared = segments
        due = {WhileGrowing.EVERY_LOOK, *([WhileGrowing.NOW_AND_THEN] if is_due else [])}
        return [check for check in checks if CHECKS[check].growing in due]


def _oldest(files: Sequence[File]) -> float | None:
    """When the oldest of some segments appeared, if they are files of this machine."""
    try:
        return min((os.stat(file.path).st_mtime for file in files), default=None)
    except OSError:
        return None


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
    tell: Callable[[Looked], None] = lambda looked: None,
    announce: Callable[[NewViolations], bool] = lambda notice: True,
    progress: TaskProgress = lambda what, done, total: None,
    session: Any = None,
) -> Certificate:
    """Look at a trace every `poll` seconds until it is complete, or a violation is found.

    With `until_complete` a violation does not end it. `tell` hears of every look that has something new, `announce` of every
    violation, once: if it returns False, it is told again after the next look. With neither session nor master it is done in
    this process, without Spark.
    """
    started = perf_counter()
    memory = Memory(checkpoint)
    if not is_remote(path):
        trace = open_trace_leniently(path)
        choose_checks(trace, checks)  # or why that cannot be
        memory.bind(trace, checks)
    if memory.verdict is not None:
        return memory.verdict
    watch = Watch(path, checks, memory, witnesses, goes_on=until_complete)
    with using(session, master) as spark:
        verdict = _keep_looking(
            watch, spark, until_complete, poll, tell, _Teller(memory, announce, witnesses), progress
        )
    verdict.seconds = perf_counter() - started
    return verdict


def _keep_looking(
    watch: Watch,
    session: Any,
    until_complete: bool,
    poll: float,
    tell: Callable[[Looked], None],
    teller: "_Teller",
    progress: TaskProgress,
) -> Certificate:
    while True:
        certificate = watch.look(session, progress)
        if certificate is not None:
            tell(Looked(certificate, watch.behind))
        teller.hear(certificate)
        if watch.violated is not None and not until_complete:
            watch.memory.end(watch.violated)
        if watch.memory.verdict is not None:
            return watch.memory.verdict
        sleep(poll)


class _Teller:
    """Tells somebody of every violation once, and again what did not arrive."""

    def __init__(self, memory: Memory, announce: Callable[[NewViolations], bool], examples_max: int) -> None:
        self._memory = memory
        self._announce = announce
        self._examples_max = examples_max
        self._left: dict[str, NewViolations] = {}  # by check

    def hear(self, certificate: Certificate | None) -> None:
        found = [] if certificate is None else self._memory.notices(certificate, self._examples_max)
        self._left |= {notice.check: notice for notice in found}
        for check, notice in list(self._left.items()):
            if self._announce(notice):
                self._memory.tell(notice)
                del self._left[check]


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
    with whole_file(path, lasting=True) as hidden:
        hidden.write_bytes(content)
