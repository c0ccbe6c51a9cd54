"""What a watcher knows of a trace: summaries of its segments, what it told, and the verdict once there is one.

A trace may grow for months, and a few vectors for each of its segments would fill any memory. So segments become *folds*, one
summary for all of a process but the last ones, whose messages may still be under way. Of what is wrong in a fold the number is kept: it was
told before. What is remembered then depends on the number of processes, and not on how long a trace is or how much of it is wrong.

A fold cannot be asked for rows. While the trace grows, what only they would say of a violation is left out. At the end nothing is: all
segments are summarised again if something is wrong, or if a check hears `Folded`. That costs as much as `inga check`.
"""

import json
import pickle
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom
from typing import Any

import numpy as np

from inga.certify import work
from inga.certify.chunk import Chunk, Ints
from inga.certify.combine import PlacedChunk, line_up
from inga.certify.fold import Folded, folded, old_chunks
from inga.certify.pairs import sent_high
from inga.certify.scan import Summary
from inga.certify.verdict import Certificate, Witness
from inga.model.errors import UsageError
from inga.pipeline.certify import FileSource
from inga.pipeline.files import Files
from inga.pipeline.storage import StoredTrace
from inga.trace.directory import whole_file

FORMAT = 10
LOOKS_KEPT = 256  # files of a checkpoint, after which they are made one
TOLD_MAX = 1000  # violations of which is remembered that they were told
SEGMENTS_KEPT = 16  # of each process, which are not folded,
SEGMENTS_FULL = 64  # and how many there are of each, all in all, before some are

_NUMBER = re.compile(r".*/(\d+)-(\d+)\.parquet")


@dataclass(frozen=True, slots=True)
class Fold:
    """Segments of one process that follow each other: from a number to before another."""

    process: int
    first: int
    end: int
    summary: Summary
    has_events: bool  # imported ones, whose clocks are judged at the end


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
        """The same if it is told again, unless more have come since."""
        return f"{self.run}/{self.check}/{self.since + 1}-{self.total}"

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.name,
            "run": self.run,
            "check": self.check,
            "since": self.since,
            "new": self.total - self.since,
            "total": self.total,
            "examples": [{"id": f"{self.run}/{_example(each)}", **each.to_json()} for each in self.examples],
        }


class Memory:
    """What was learned so far.

    With a directory it outlives the process. Every look adds one file, which appears whole; a file that was not
    finished is as if the look had not been.
    """

    def __init__(self, directory: str | None = None) -> None:
        self.directory = None if directory is None else Path(directory)
        self.seed = SystemRandom().getrandbits(64)
        self.summaries: dict[str, Summary] = {}  # by the name of the segment, but for those in
        self.folds: list[Fold] = []
        self.settled: dict[str, int] = {}  # violations that are in folds, by check
        self._unfolded = 0  # summaries that were left when segments were last folded
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
        self.unfold()
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
        if len(self._files(directory)) >= LOOKS_KEPT:
            self._keep_all(directory)
        else:
            _put(self._next_file(directory), pickle.dumps(([], {}, new)))

    def _files(self, directory: Path) -> list[Path]:
        """What looks have left, in their order."""
        return sorted(directory.glob(f"{self._n}-*.pickle"), key=_look_of)

    def _next_file(self, directory: Path) -> Path:
        return directory / f"{self._n}-{self._looks:06}.pickle"

    def _keep_all(self, directory: Path) -> None:
        """All that is known in one file."""
        old = self._files(directory)
        _put(self._next_file(directory), pickle.dumps((self.folds, self.settled, self.summaries)))
        for (
            each
        ) in old:  # whoever is killed here knows some segments twice, and forgets that when it begins again
            if each != self._next_file(directory):
                each.unlink(missing_ok=True)

    # ---- folds

    def knows(self, name: str) -> bool:
        return name in self.summaries or self.fold_of(name) is not None

    def fold_of(self, name: str) -> Fold | None:
        process, number = _place(name)
        return next(
            (each for each in self.folds if each.process == process and each.first <= number < each.end), None
        )

    def is_full(self, new: int = 0) -> bool:
        """Whether it is time to fold, with so many new segments."""
        return len(self.summaries) + new - self._unfolded > SEGMENTS_FULL * self._n

    def fold(self, source: "RememberingSource") -> None:
        """Forget single segments of long ago. `settle` says what was wrong in them, and makes it last."""
        lines = line_up(source.known(), source.processes)
        sent = np.array([sent_high(line) for line in lines], np.int64)
        for line in lines:
            if links := old_chunks(line, SEGMENTS_KEPT):
                self._fold_line(links, source.segment_names, sent)
        self._unfolded = len(self.summaries)

    def _fold_line(self, links: Sequence[PlacedChunk], names: Sequence[str], sent: Ints) -> None:
        ends = [_place(names[link.segment]) for link in links]
        process = ends[0][0]
        # The number of a fold in a line is that of its last segment.
        first = ends[0][1] - links[0].summary.segments + 1
        earlier = [each for each in self.folds if each.process == process]
        has_events = any(each.has_events for each in earlier) or any(len(link.summary.runs) for link in links)
        self.folds = [each for each in self.folds if each.process != process]
        self.folds.append(Fold(process, first, ends[-1][1] + 1, folded(links, sent), has_events))
        for link in links:
            self.summaries.pop(names[link.segment], None)
            self.rescans.pop(names[link.segment], None)

    def settle(self, violations: dict[str, int]) -> None:
        """So many violations are in folds, by check."""
        self.settled = violations
        self._looks += 1
        if self.directory is not None:
            self._keep_all(self.directory)

    @property
    def is_lossy(self) -> bool:
        """Whether a final answer needs rows that are in folds."""
        return any(self.settled.values()) or any(each.has_events for each in self.folds)

    def unfold(self) -> None:
        """Know nothing of what is in folds: who wants to know more summarises it again."""
        self.folds.clear()
        self.settled.clear()
        self._unfolded = 0

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
            for path in self._files(directory):
                folds, settled, summaries = pickle.loads(path.read_bytes())
                if folds:
                    self.folds, self.settled = folds, settled
                self.summaries |= summaries
                self._looks = _look_of(path)
            for name in [each for each in self.summaries if self.fold_of(each) is not None]:
                del self.summaries[name]
            if (directory / "told.json").exists():
                content = json.loads((directory / "told.json").read_bytes())
                self.told, self._examples = content["told"], content["examples"]
            if (directory / "verdict.pickle").exists():
                self.verdict = pickle.loads((directory / "verdict.pickle").read_bytes())
        except (ValueError, KeyError, TypeError, pickle.UnpicklingError, EOFError) as error:
            raise UsageError(f"{directory} is no checkpoint of inga watch: name a new directory") from error


class RememberingSource(FileSource):
    """Does not summarise a segment twice, and knows folds as the last of their segments."""

    def __init__(self, files: Files, checks: Sequence[str], memory: Memory) -> None:
        super().__init__(files, checks)
        self._checks = checks
        self._memory = memory
        self._in_fold = [memory.fold_of(name) is not None for name in self.segment_names]
        ends = {(each.process, each.end - 1): each for each in memory.folds}
        places = ((at, _place(name)) for at, name in enumerate(self.segment_names) if ends)
        self._fold_at = {at: ends[place] for at, place in places if place in ends}

    def again(self) -> "RememberingSource":
        """The same trace, with what is in the memory now."""
        return RememberingSource(self._files, self._checks, self._memory)

    def known(self) -> list[tuple[int, Summary]]:
        """What is known of segments and folds, by number."""
        names, known = self.segment_names, self._memory.summaries
        found = [(at, known[name]) for at, name in enumerate(names) if name in known]
        return found + [(at, each.summary) for at, each in self._fold_at.items()]

    def seen(self) -> list[int]:
        """By process, the last position that is known."""
        last = [0] * len(self.processes)
        for _, summary in self.known():
            last[summary.process] = max(last[summary.process], summary.last)
        return last

    def map(
        self, what: str, function: Callable[[Chunk, Any], Any], questions: Sequence[tuple[int, Any]]
    ) -> list[tuple[int, Any]]:
        if function is work.rescan:
            return self._rescan(what, questions)
        if function is not work.summarise:
            self._check(questions)
            return super().map(what, function, questions)
        names, known = self.segment_names, self._memory.summaries
        wanted = [each for each in questions if names[each[0]] not in known and not self._in_fold[each[0]]]
        found = super().map(what, function, wanted)
        self._memory.add({names[at]: summary for at, summary in found})
        return self.known()

    def exchange(
        self,
        what: str,
        ask: Callable[[Chunk, Any], dict[int, Any]],
        merge: Callable[[Any, Any], Any],
        answer: Callable[[Chunk, Any, Any], Any],
        questions: Sequence[tuple[int, Any]],
    ) -> list[tuple[int, Any]]:
        self._check(questions)
        return super().exchange(what, ask, merge, answer, questions)

    def gather(
        self,
        what: str,
        function: Callable[[Chunk, Any], list[tuple[int, Any]]],
        questions: Sequence[tuple[int, Any]],
        join: Callable[[int, list[Any]], Any],
    ) -> list[Any]:
        self._check(questions)
        return super().gather(what, function, questions, join)

    def _read(self, segment: int) -> Chunk:
        self._check([(segment, None)])
        return super()._read(segment)

    def _check(self, questions: Sequence[tuple[int, Any]]) -> None:
        if any(at in self._fold_at for at, _ in questions):
            raise Folded

    def _rescan(self, what: str, questions: Sequence[tuple[int, Any]]) -> list[tuple[int, Any]]:
        """What is wrong with a segment stays so: what comes before it does not change."""
        self._check(questions)
        names, known = self.segment_names, self._memory.rescans
        new = [each for each in questions if names[each[0]] not in known]
        known |= {names[at]: found for at, found in super().map(what, work.rescan, new)}
        return [(at, known[names[at]]) for at, _ in questions]


def _place(name: str) -> tuple[int, int]:
    """Process and number of a segment."""
    found = _NUMBER.fullmatch(name)
    assert found is not None, f"{name} was listed as a segment"
    return int(found[1]), int(found[2])


def _look_of(path: Path) -> int:
    """The number of the look that a file of a checkpoint is of."""
    return int(path.stem.partition("-")[2])


def _example(witness: Witness) -> str:
    """A violation, whoever tells of it and when."""
    return "/".join(map(str, (witness.check, witness.process, witness.pos, *witness.message)))


def _put(path: Path, content: bytes) -> None:
    with whole_file(path, lasting=True) as hidden:
        hidden.write_bytes(content)
