"""The evidence that judges work on: the summaries of all chunks, and a source that answers further questions."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Protocol, TypeVar

from inga.certify import work
from inga.certify.checks import CHECKS, Needs
from inga.certify.chunk import Chunk
from inga.certify.combine import Line, Pair, PlacedChunk, Process, unequal_pairs
from inga.certify.compare import Range
from inga.certify.fingerprint import Keys
from inga.certify.membership import Membership
from inga.certify.roots import EXPLAINED_MAX
from inga.certify.scan import Summary
from inga.certify.work import RowKey

Found = TypeVar("Found")

RANGES_MAX = 64  # ranges of numbers that are all gone through, without asking first which of them have rows

HOLES_NAMED = 50
"""The most processes with missing rows that are named as reasons why a check is undecided; of further ones the number is given."""

_IS_THERE: dict[Needs, Callable[[Summary], bool]] = {
    Needs.MESSAGES: lambda summary: bool(summary.sends or summary.deliveries),
    Needs.SENDS: lambda summary: bool(summary.sends),
    Needs.DELIVERIES: lambda summary: bool(summary.deliveries),
    Needs.OUTCOMES: lambda summary: bool(summary.deliveries or summary.confirms),
    Needs.REQUESTS: lambda summary: bool(summary.starts),
    Needs.EVENTS: lambda summary: bool(len(summary.runs)),
    Needs.VIEWS: lambda summary: bool(summary.views),
    Needs.ROWS: lambda summary: bool(summary.events),
}


class Source(Protocol):
    """A trace whose chunks are numbered."""

    processes: Sequence[Process]
    receipt: str
    guarantees: Sequence[str]  # what the run claims
    order: str  # the name of its recipe
    is_import: bool  # made from another system's log: rows name its lines, and lines may have been left out
    knows_receivers: bool  # sends name their destinations, and not only the processes that received them
    segment_names: Sequence[str]
    quiet_seconds: float  # the time after the last progress within which control traffic has to end
    conflicts: dict[str, list[list[str]]] | None  # object runs: per process, pairs of methods
    undecided: dict[str, list[list[str]]] | None  # the same, of methods whose arguments decide

    def map(
        self, what: str, function: Callable[[Chunk, Any], Any], questions: Sequence[tuple[int, Any]]
    ) -> list[tuple[int, Any]]:
        """Apply a function to chunks, given as (number, question); `what` is shown as progress."""
        ...

    def exchange(
        self,
        what: str,
        ask: Callable[[Chunk, Any], dict[int, Any]],
        merge: Callable[[Any, Any], Any],
        answer: Callable[[Chunk, Any, Any], Any],
        questions: Sequence[tuple[int, Any]],
    ) -> list[tuple[int, Any]]:
        """Let chunks query each other: `ask` returns a chunk's queries, by the chunk that is to answer; `merge` joins
        all queries to a chunk, and `answer` gets them together with that chunk's own question."""
        ...

    def gather(
        self,
        what: str,
        function: Callable[[Chunk, Any], list[tuple[int, Any]]],
        questions: Sequence[tuple[int, Any]],
        join: Callable[[int, list[Any]], Any],
    ) -> list[Any]:
        """Apply a function to chunks that returns its results under keys; `join` gets all results of one key."""
        ...

    def read(self, segment: int) -> Chunk: ...


class Evidence:
    """All that is known of one trace while its checks are judged, and what the judges have noted."""

    def __init__(
        self,
        source: Source,
        lines: list[Line],
        wanted: Iterable[str],
        keys: Keys,
        witnesses: int,
        growing: bool = False,
    ) -> None:
        self.source = source
        self.processes = source.processes
        self.names = [process.name for process in source.processes]
        self.lines = lines
        self.links: list[PlacedChunk] = [link for line in lines for link in line]
        self.summaries = [link.summary for link in self.links]
        self.wanted = frozenset(wanted)  # names of checks
        self.keys = keys
        self.witnesses = witnesses
        self.growing = growing  # more rows will follow, so that messages in folds may be left for the end
        self.listed_max = max(witnesses, EXPLAINED_MAX)  # violations of one kind to list
        self.open: dict[str, list[str]] = {}  # per check, why it cannot be decided
        self.warnings: dict[str, list[str]] = {}  # per check, what is strange but breaks nothing
        self.restarts: dict[int, RowKey] = {}  # where a process began to count its messages again
        self._done: dict[Any, Any] = {}
        self._find_holes()

    def ask(
        self, what: str, function: Callable[[Chunk, Any], Any], questions: Sequence[tuple[int, Any]]
    ) -> list[tuple[int, Any]]:
        """`Source.map`, with the answers in the order of segments; nothing is started if nothing is asked."""
        answers = self.source.map(what, function, questions) if questions else []
        return sorted(answers, key=lambda answer: answer[0])

    def ranges(
        self, sources: Iterable[int], first: int, high: int, width: int, segments: Iterable[int]
    ) -> Iterator[Range]:
        """The numbers of some sources, `width` at a time. If that makes very many ranges, as when one number is wrong, the
        segments are asked first in which of them they have rows."""
        every = range(-(-(high + 1 - first) // width))
        found: Sequence[int] = every
        if len(every) > RANGES_MAX:
            asked = (sorted(sources), first, width)
            answers = self.ask("numbers looked up", work.blocks, [(each, asked) for each in segments])
            found = sorted({each for _, part in answers for each in part.tolist() if each in every})
        for each in found:
            low = first + each * width
            yield Range(low, min(low + width, high + 1))

    def once(self, function: Callable[["Evidence"], Found]) -> Found:
        """The result of a function that several judges need, computed for the first of them."""
        if function not in self._done:
            self._done[function] = function(self)
        found: Found = self._done[function]
        return found

    def doubt_receivers(self, check: str) -> None:
        """Leave a check undecided that compares deliveries with destinations, if the log does not name destinations."""
        if not self.source.knows_receivers:
            self.leave_open(check, "the log does not say for whom messages were")

    def leave_open(self, check: str, reason: str) -> None:
        self.open.setdefault(check, []).append(reason)

    @cached_property
    def unequal(self) -> list[Pair]:
        """Pairs of processes for which sends and deliveries differ."""
        return unequal_pairs(self.lines, self.membership)

    @cached_property
    def membership(self) -> Membership:
        """Who was in which view."""
        return Membership(self.lines, self.processes)

    def link_at(self, process: int, pos: int) -> PlacedChunk:
        """The chunk that has the row at a position."""
        return next(link for link in self.lines[process] if link.summary.first <= pos <= link.summary.last)

    def _find_holes(self) -> None:
        holes = [at for at, process in enumerate(self.processes) if not process.complete]
        for check in self.wanted:
            for at in holes[:HOLES_NAMED]:
                last = self.lines[at][-1].summary.last if self.lines[at] else 0
                what = f"after position {last:,}" if last else "altogether"
                self.leave_open(check, f"rows of {self.names[at]} are missing {what}")
            if len(holes) > HOLES_NAMED:
                self.leave_open(check, f"rows of {len(holes) - HOLES_NAMED:,} more processes are missing")
            needs = CHECKS[check].needs
            if not any(map(_IS_THERE[needs], self.summaries)):
                self.leave_open(check, needs.value)
