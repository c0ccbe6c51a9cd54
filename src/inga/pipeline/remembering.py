"""What a watcher remembers of a trace: summaries of its segments, what it reported, and the verdict once there is one.

A trace may grow for months, and a few vectors for each of its segments would fill any memory. So the segments of a process are
merged into a *fold* with one summary, except the last ones, whose messages may still be in flight. Of the violations in a fold only
the number is kept, since they were reported before. The size of the memory then depends on the number of processes, and not on the
length of the trace or the number of its violations.

The rows of a fold cannot be read. While the trace grows, details of a violation that only these rows contain are omitted. At the end
nothing is omitted: all segments are summarised again if folds have violations, or if a check meets `Folded`. That costs as much as
`inga check`.
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
LOOKS_KEPT = 256  # files of a checkpoint, after which they are merged into one
TOLD_MAX = 1000  # reported violations that are remembered
SEGMENTS_KEPT = 16  # the last ones of each process, which are not folded,
SEGMENTS_FULL = 64  # and the new ones per process, on average, after which the others are folded

_NUMBER = re.compile(r".*/(\d+)-(\d+)\.parquet")


@dataclass(frozen=True, slots=True)
class Fold:
    """Consecutive segments of one process: from number `first` up to, but without, `end`."""

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
        """The id of the report, the same if it is repeated, unless there are more violations by then."""
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
    """What a watcher has learnt so far.

    With a directory, it outlives the process. Every look adds one file, which appears only when it is complete; if it was
    not finished, the look counts for nothing.
    """

    def __init__(self, directory: str | None = None) -> None:
        self.directory = None if directory is None else Path(directory)
        self.seed = SystemRandom().getrandbits(64)
        self.summaries: dict[str, Summary] = {}  # by name of segment, but for those in
        self.folds: list[Fold] = []
        self.settled: dict[str, int] = {}  # violations that are in folds, by check
        self._unfolded = 0  # summaries that were left when segments were last folded
        self.verdict: Certificate | None = None
        self.rescans: dict[
            str, Any
        ] = {}  # findings of second scans, by name of segment: they do not change, as the rows before do not
        self.told: dict[str, int] = {}  # how many violations of each check were reported,
        self._examples: list[str] = []  # and the last ones of them
        self._run = ""
        self._asked: list[str] | None = None  # None: the checks that the run claims, which may become fewer
        self._n = self._looks = 0
        if self.directory is not None and (self.directory / "head.json").exists():
            self._load(self.directory)

    def bind(self, trace: StoredTrace, asked: Sequence[str] | None) -> None:
        """Verify that this is the memory of that trace. If the trace has more processes now, vectors have more
        entries, and everything has to be read again."""
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
        """The files of earlier looks, in their order."""
        return sorted(directory.glob(f"{self._n}-*.pickle"), key=_look_of)

    def _next_file(self, directory: Path) -> Path:
        return directory / f"{self._n}-{self._looks:06}.pickle"

    def _keep_all(self, directory: Path) -> None:
        """Write everything that is known to one file."""
        old = self._files(directory)
        _put(self._next_file(directory), pickle.dumps((self.folds, self.settled, self.summaries)))
        for (
            each
        ) in old:  # a watcher that is killed here has some segments twice, until `_load` drops those in folds
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
        """Merge old segments into folds. `settle` has to follow: it takes the number of their violations, and writes a checkpoint."""
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
        """Record how many violations are in folds, by check."""
        self.settled = violations
        self._looks += 1
        if self.directory is not None:
            self._keep_all(self.directory)

    @property
    def is_lossy(self) -> bool:
        """Whether a final answer needs rows that are in folds."""
        return any(self.settled.values()) or any(each.has_events for each in self.folds)

    def unfold(self) -> None:
        """Forget all folds, so that their segments are summarised again."""
        self.folds.clear()
        self.settled.clear()
        self._unfolded = 0

    def notices(self, certificate: Certificate, examples_max: int) -> list[NewViolations]:
        """The violations of a certificate that were not reported yet, by check."""
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
        """Remember that violations were reported."""
        self.told[notice.check] = notice.total
        self._examples = [*self._examples, *map(_example, notice.examples)][-TOLD_MAX:]
        if self.directory is not None:
            content = {"told": self.told, "examples": self._examples}
            _put(self.directory / "told.json", json.dumps(content).encode())

    def end(self) -> None:
        """Record the verdict in the checkpoint, once all its violations were reported: a watcher that finds it there reports nothing more."""
        if self.directory is not None:
            _put(self.directory / "verdict.pickle", pickle.dumps(self.verdict))

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
    """A source that summarises no segment twice. A fold takes the place of its last segment."""

    def __init__(self, files: Files, checks: Sequence[str], memory: Memory) -> None:
        super().__init__(files, checks)
        self._checks = checks
        self._memory = memory
        self._in_fold = [memory.fold_of(name) is not None for name in self.segment_names]
        ends = {(each.process, each.end - 1): each for each in memory.folds}
        places = ((at, _place(name)) for at, name in enumerate(self.segment_names) if ends)
        self._fold_at = {at: ends[place] for at, place in places if place in ends}

    def again(self) -> "RememberingSource":
        """A source for the same trace, with the present content of the memory."""
        return RememberingSource(self._files, self._checks, self._memory)

    def known(self) -> list[tuple[int, Summary]]:
        """The summaries of segments and folds, by number of segment."""
        names, known = self.segment_names, self._memory.summaries
        found = [(at, known[name]) for at, name in enumerate(names) if name in known]
        return found + [(at, each.summary) for at, each in self._fold_at.items()]

    def seen(self) -> list[int]:
        """By process, the last position that is summarised."""
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
        """Scan each suspect segment once: the rows before it do not change, so neither do its violations."""
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
    """The number of the look that wrote a file of a checkpoint."""
    return int(path.stem.partition("-")[2])


def _example(witness: Witness) -> str:
    """The id of a violation, the same in every report."""
    return "/".join(map(str, (witness.check, witness.process, witness.pos, *witness.message)))


def _put(path: Path, content: bytes) -> None:
    with whole_file(path, lasting=True) as hidden:
        hidden.write_bytes(content)
