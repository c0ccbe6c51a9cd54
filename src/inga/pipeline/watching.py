"""Certify a trace while it grows: each look reads the segments that are new, and no others.

From look to look the summaries of `inga.certify` are kept, with old ones merged (`remembering`): with them, a look at the whole
trace costs the driver a few vectors, and the workers only the new segments. While the trace grows, only those checks are judged
whose violations later rows cannot undo: `Check.growing` says when.

At the end all checks are answered from the same summaries, so the verdict is that of `inga check`.

Each violation is announced once. That is recorded afterwards, so a watcher that is killed in between announces it again; a
receiver recognises such a repeat by the numbers of the violations.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from time import perf_counter, sleep, time
from typing import Any

from inga.certify.certificate import WITNESSES, certify
from inga.certify.checks import CHECKS, WhileGrowing
from inga.certify.fold import Folded
from inga.certify.verdict import FAIL, Answer, Certificate
from inga.model.errors import TraceError
from inga.pipeline.files import TaskProgress, files_of
from inga.pipeline.jobs import choose_checks
from inga.pipeline.remembering import Memory, NewViolations, RememberingSource
from inga.pipeline.session import LOCAL, using
from inga.pipeline.storage import File, StoredTrace, is_remote, open_trace

GROWTH = 1.5  # of the trace, after which messages in flight are compared again
EXAMPLES_MAX = 200  # violations of a check among which new ones are searched
LAST_TRIES = 5  # repetitions of an announcement that failed, once nothing is left to look at


@dataclass(frozen=True, slots=True)
class Looked:
    """What one look found."""

    certificate: Certificate
    behind: float | None = None  # seconds since the oldest segment that was new appeared, if that is known


class Watch:
    """One trace, looked at again and again. After a violation nothing is judged until the trace ends, unless it `goes_on`."""

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
        self._compared = 0  # the number of segments when messages were last compared
        self._trouble: str | None = None  # the error of the last look
        self._last: Certificate | None = None  # the last one that was explained
        self._goes_on = goes_on
        self.violated: Certificate | None = None  # the first that had a violation
        self.behind: float | None = None  # at the last look

    def look(self, session: Any, progress: TaskProgress) -> Certificate | None:
        """The certificate of the trace so far, None if nothing is new; the final one is also in the memory."""
        try:
            certificate = self._look(session, progress)
        except TraceError as error:
            # Files may appear between two of our steps. A real error is there the next time too.
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
        fresh = [file for file in trace.files if not self.memory.knows(file.name)]
        new, since = len(fresh), _oldest(fresh)
        finished = is_finished(trace)
        judged = checks if finished else self._now(checks, len(trace.files), new)
        if not (finished or new or judged or self._trouble):
            return None
        source = RememberingSource(files_of(session, trace, progress), checks, self.memory)
        # While the trace grows, new violations are looked for among many.
        shown = max(self._witnesses, EXAMPLES_MAX if self._goes_on and not finished else 0)
        certificate = (self._certify_all if finished else self._certify_growing)(source, judged, shown)
        self.behind = None if since is None else max(time() - since, 0.0)
        if finished:
            self.memory.verdict = certificate
            return certificate
        if certificate.verdict == FAIL:
            self.violated = self.violated or certificate
        if self.memory.is_full() and set(judged) == _judged_growing(checks):
            self._fold(source, certificate)
        return certificate

    def _certify_all(self, source: RememberingSource, checks: Sequence[str], witnesses: int) -> Certificate:
        """The final verdict. If it needs rows that are in folds, all segments are summarised again."""
        asked: Any = {"seed": self.memory.seed, "witnesses": witnesses}
        if not self.memory.is_lossy:
            with suppress(Folded):
                return certify(source, checks, **asked)
        self.memory.unfold()
        return certify(source.again(), checks, **asked)

    def _certify_growing(
        self, source: RememberingSource, checks: Sequence[str], witnesses: int
    ) -> Certificate:
        """Judge the segments so far. Violations that were explained are not explained again; of the others, new ones come first."""
        asked: Any = {"seed": self.memory.seed, "growing": True, "witnesses": witnesses}
        asked["seen"] = source.seen()
        if self.memory.folds:
            counted = self._with_settled(certify(source, checks, explained=False, **asked))
            if (known := self._explained(counted)) is not None:
                return known
        self._last = self._with_settled(certify(source, checks, **asked))
        return self._last

    def _with_settled(self, certificate: Certificate) -> Certificate:
        """The certificate with the violations in folds added."""

        def whole(check: Answer) -> Answer:
            settled = self.memory.settled.get(check.name, 0)
            return replace(check, violations=check.violations + settled, verdict=FAIL) if settled else check

        return replace(certificate, checks=[whole(check) for check in certificate.checks])

    def _fold(self, source: RememberingSource, certificate: Certificate) -> None:
        """Fold old segments. The number of their violations is kept: of those that are no longer found afterwards."""
        self.memory.fold(source)
        asked: Any = {"seed": self.memory.seed, "growing": True, "explained": False}
        try:
            left = certify(source.again(), [check.name for check in certificate.checks], **asked)
        except BaseException:
            self.memory.unfold()
            raise
        pairs = zip(certificate.checks, left.checks, strict=True)
        self.memory.settle({before.name: before.violations - after.violations for before, after in pairs})

    def _explained(self, counted: Certificate) -> Certificate | None:
        """The same with the explanations of the last time, if there are no new violations; otherwise None."""
        last = {check.name: check for check in self._last.checks} if self._last is not None else {}
        checks = []
        for check in counted.checks:
            if check.violations:
                if check.name not in last or last[check.name].violations != check.violations:
                    return None
                check = replace(check, witnesses=last[check.name].witnesses)
            checks.append(check)
        groups = self._last.groups if self._last is not None else []
        is_broken = any(check.violations for check in checks)
        return replace(counted, checks=checks, groups=groups if is_broken else [])

    def _now(self, checks: Sequence[str], segments: int, new: int) -> list[str]:
        """The checks to judge while the trace grows. After a violation the rest is left to the end."""
        if (self.violated is not None and not self._goes_on) or not segments:
            return []
        is_due = segments >= GROWTH * self._compared if new else segments > self._compared
        # Before segments are folded their messages are compared, for the last time until the end.
        is_due |= self.memory.is_full(new)
        if not (new or is_due):
            return []
        if is_due:
            self._compared = segments
        due = {WhileGrowing.EVERY_LOOK, *([WhileGrowing.NOW_AND_THEN] if is_due else [])}
        return [check for check in checks if CHECKS[check].growing in due]


def _judged_growing(checks: Sequence[str]) -> set[str]:
    """Those of some checks that are judged while a trace grows."""
    return {check for check in checks if CHECKS[check].growing is not WhileGrowing.AT_THE_END}


def _oldest(files: Sequence[File]) -> float | None:
    """When the oldest of some segments appeared, if they are files of this machine."""
    try:
        return min((os.stat(file.path).st_mtime for file in files), default=None)
    except OSError:
        return None


def is_finished(trace: StoredTrace) -> bool:
    """Whether no more rows can be written."""
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

    With `until_complete` a violation does not end it. `tell` is called after every look that found something new, `announce` with
    every new violation, once: if it returns False, it is called again after the next look, and a few times after the last one.
    Violations that could not be announced even then are announced by the next watcher with that checkpoint. With neither session nor master the
    work is done in this process, without Spark.
    """
    started = perf_counter()
    memory = Memory(checkpoint)
    if not is_remote(path):
        trace = open_trace_leniently(path)
        choose_checks(trace, checks)  # raises if that is impossible
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
            watch.memory.verdict = watch.violated
        if watch.memory.verdict is not None:
            if teller.finish(poll):
                watch.memory.end()
            return watch.memory.verdict
        sleep(poll)


class _Teller:
    """Announces every violation once, and again if that failed."""

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

    def finish(self, pause: float) -> bool:
        """After the last look: repeat what could not be announced, with pauses. Whether all was announced."""
        for _ in range(LAST_TRIES):
            if not self._left:
                break
            sleep(pause)
            self.hear(None)
        return not self._left


def open_trace_leniently(path: str) -> StoredTrace:
    """Open a trace that is being written. Between the writing of two files it may look wrong, but not twice in the same way."""
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
