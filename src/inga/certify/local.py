"""Work on pieces of a trace in one process, one after the other: no Spark."""

from collections.abc import Callable, Sequence
from typing import Any

from inga.certify.chunk import Chunk
from inga.certify.combine import Process

PieceQuestions = Sequence[tuple[int, Any]]
"""Questions to pieces of a trace, each with the number of its piece."""

Map = Callable[[Callable[..., Any], PieceQuestions], list[tuple[int, Any]]]
"""Applies a function to pieces and the questions to them; returns the answers, by number."""


def exchange(
    apply: Map,
    ask: Callable[..., dict[int, Any]],
    merge: Callable[[Any, Any], Any],
    answer: Callable[..., Any],
    questions: PieceQuestions,
) -> list[tuple[int, Any]]:
    """Let pieces query each other (`evidence.Source.exchange`) by applying functions to them twice."""
    gathered: dict[int, Any] = {}
    for _, parts in apply(ask, questions):
        for at, part in parts.items():
            gathered[at] = merge(gathered[at], part) if at in gathered else part
    asked = dict(questions)

    def answer_pair(*given: Any) -> Any:
        *piece, (question, part) = given
        return answer(*piece, question, part)

    return apply(answer_pair, [(at, (asked[at], part)) for at, part in gathered.items()])


def gather(
    apply: Map,
    function: Callable[..., list[tuple[int, Any]]],
    questions: PieceQuestions,
    join: Callable[[int, list[Any]], Any],
) -> list[Any]:
    """Apply a function to pieces, and `join` to all results of each key (`evidence.Source.gather`)."""
    found: dict[int, list[Any]] = {}
    for _, parts in apply(function, questions):
        for key, part in parts:
            found.setdefault(key, []).append(part)
    return [join(key, parts) for key, parts in found.items()]


class Chunks:
    """A source that holds a trace in memory: the chunks of all processes, those of one process in order."""

    def __init__(
        self,
        chunks: Sequence[Chunk],
        processes: Sequence[Process],
        receipt: str,
        quiet_seconds: float = 1.0,
        conflicts: dict[str, list[list[str]]] | None = None,
        guarantees: Sequence[str] = (),
        undecided: dict[str, list[list[str]]] | None = None,
        order: str = "",
        is_import: bool = False,
        knows_receivers: bool = True,
    ) -> None:
        self._chunks = list(chunks)
        self.processes = processes
        self.receipt = receipt
        self.quiet_seconds = quiet_seconds
        self.conflicts = conflicts
        self.undecided = undecided
        self.guarantees = guarantees
        self.order = order
        self.is_import = is_import
        self.knows_receivers = knows_receivers
        self.segment_names = [f"{chunk.process} from {chunk.first}" for chunk in chunks]

    def read(self, segment: int) -> Chunk:
        return self._chunks[segment]

    def map(
        self, what: str, function: Callable[[Chunk, Any], Any], questions: PieceQuestions
    ) -> list[tuple[int, Any]]:
        return self._apply(function, questions)

    def exchange(
        self,
        what: str,
        ask: Callable[[Chunk, Any], dict[int, Any]],
        merge: Callable[[Any, Any], Any],
        answer: Callable[[Chunk, Any, Any], Any],
        questions: PieceQuestions,
    ) -> list[tuple[int, Any]]:
        return exchange(self._apply, ask, merge, answer, questions)

    def gather(
        self,
        what: str,
        function: Callable[[Chunk, Any], list[tuple[int, Any]]],
        questions: PieceQuestions,
        join: Callable[[int, list[Any]], Any],
    ) -> list[Any]:
        return gather(self._apply, function, questions, join)

    def _apply(self, function: Callable[..., Any], questions: PieceQuestions) -> list[tuple[int, Any]]:
        return [(at, function(self._chunks[at], question)) for at, question in questions]
