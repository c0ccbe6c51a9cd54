"""Conclude from the summaries of chunks what is proven, and which chunks have to be read again.

All of this runs in one process and uses a few vectors per chunk. If nothing is suspect and all sums agree, the
trace passes without a row having been moved.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from inga.certify.chunk import Ints
from inga.certify.fingerprint import Words
from inga.certify.scan import Carry, Summary, Tally
from inga.model.errors import TraceError

if TYPE_CHECKING:
    from inga.certify.membership import Membership


@dataclass(frozen=True, slots=True)
class PlacedChunk:
    """A chunk at its place: the carry it starts with, and the highest number received before it."""

    summary: Summary
    segment: int  # which file it is
    carry: Carry
    received: Ints


@dataclass(frozen=True, slots=True)
class Process:
    """What is known about a process apart from its chunks."""

    name: str
    first_view: int | None
    last_pos: int
    complete: bool
    crashed: bool


Line = list[PlacedChunk]
"""The chunks of one process, in order."""


def line_up(summaries: Sequence[tuple[int, Summary]], processes: Sequence[Process]) -> list[Line]:
    """Put (segment, summary) pairs in order, and verify that no position is missing."""
    n = len(processes)
    lines: list[Line] = [[] for _ in processes]
    carries = [Carry.none(n)] * n
    received = [np.zeros(n, np.int64)] * n
    for segment, summary in sorted(summaries, key=lambda pair: (pair[1].process, pair[0])):
        at, line = summary.process, lines[summary.process]
        expected = line[-1].summary.last + 1 if line else 1
        if summary.events and summary.first != expected:
            raise TraceError(
                f"The rows of {processes[at].name} jump from position {expected - 1} to {summary.first}: a segment is missing."
            )
        if not summary.events:
            summary.first = expected
        line.append(PlacedChunk(summary, segment, carries[at], received[at]))
        carries[at] = carries[at].after(summary)
        received[at] = np.maximum(received[at], summary.received_high)
    for process, line in zip(processes, lines, strict=True):
        last = line[-1].summary.last if line else 0
        # While a run goes on, a segment may be newer than the process file, never the other way round.
        if last < process.last_pos or (process.complete and last > process.last_pos):
            raise TraceError(
                f"The rows of {process.name} end at position {last}, but its process file says {process.last_pos}."
            )
    return lines


def check_widths(summaries: Sequence[Summary], processes: Sequence[Process]) -> None:
    widest = max((summary.width for summary in summaries), default=0)
    wrote = {summary.process for summary in summaries}
    check_claims(len(processes), widest, wrote, lambda at: processes[at].complete)


def check_claims(n: int, widest: int, wrote: Container[int], is_complete: Callable[[int], bool]) -> None:
    """Raise `TraceError` if the manifest names a process that wrote nothing, is not complete, and has no entry in any vector."""
    silent = last_silent(n, wrote, is_complete)
    if silent is not None and 0 < widest <= silent:
        raise TraceError(
            f"The manifest names {n} processes, but the vectors in all segments are those of {widest}."
        )


def last_silent(n: int, wrote: Container[int], is_complete: Callable[[int], bool]) -> int | None:
    """The last process that wrote no rows, although its process file does not say that it is complete."""
    return next((at for at in reversed(range(n)) if at not in wrote and not is_complete(at)), None)


def suspects(lines: Iterable[Line], checks: Iterable[str]) -> list[PlacedChunk]:
    """The chunks that a second scan must judge, with their carry. Folds are left out: their chunks were judged before."""
    tests = [_SUSPICIONS[check] for check in checks if check in _SUSPICIONS]
    return [
        link
        for line in lines
        for link in line
        if link.summary.segments == 1 and any(test(link) for test in tests)
    ]


def _is_causally_suspect(link: PlacedChunk) -> bool:
    late = link.carry.required >= link.summary.delivered_low
    return link.summary.late_causal > 0 or bool(late.any())


def _is_fifo_suspect(link: PlacedChunk) -> bool:
    late = link.carry.delivered > link.summary.delivered_low
    return link.summary.late_fifo > 0 or bool(late.any())


def _is_stamp_suspect(link: PlacedChunk) -> bool:
    summary = link.summary
    if summary.wrong_stamps or not summary.first_send:
        return summary.wrong_stamps > 0
    expected = np.maximum(link.carry.known, summary.first_known)
    wrong = (summary.first_deps != expected).any() or summary.first_seq != expected[summary.process] + 1
    return bool(wrong)


_SUSPICIONS = {
    "causal": _is_causally_suspect,
    "fifo": _is_fifo_suspect,
    "stamps": _is_stamp_suspect,
}


# ---- who got what


@dataclass(frozen=True, slots=True, order=True)
class Pair:
    """A destination and a source whose messages have to be compared one by one."""

    destination: int
    source: int


def unequal_pairs(lines: Sequence[Line], membership: "Membership") -> list[Pair]:
    """The pairs for which sends and deliveries differ in some view."""
    present = membership.present
    unequal = set()
    for view, tallies in _tallies(lines, present):
        sent, sent_sum = _sent(tallies, view, membership)
        delivered = np.stack([tally.delivered for tally in tallies])
        delivered_sum = np.stack([tally.delivered_sum for tally in tallies])
        differ = (sent != delivered) | (sent_sum != delivered_sum)
        plain = [_is_echo_plain(tally, process) for process, tally in zip(present, tallies, strict=True)]
        differ[np.arange(len(present)), present] = np.logical_not(plain)
        unequal |= {Pair(present[i], j) for i, j in np.argwhere(differ).tolist()}
    # Sums cannot tell two messages of one number from one message that was delivered twice.
    repeating = [source for source, line in enumerate(lines) if _repeats(line)]
    unequal |= {Pair(destination, source) for source in repeating for destination in present}
    # Nor can they tell whether a send or its echo came first.
    unequal |= {Pair(process, process) for process, line in enumerate(lines) if _echoes_ahead(line)}
    return sorted(unequal)


def unaccepted_sources(lines: Sequence[Line], membership: "Membership") -> set[int]:
    """The sources of which some destination may not have accepted all messages that were sent to it.

    A process that has to see every number of a source accepts all of its messages, also those for others.
    """
    present = membership.present
    found: set[int] = set()
    for view, tallies in _tallies(lines, present):
        sent, sent_sum = _sent(tallies, view, membership)
        accepted = np.stack([tally.accepted for tally in tallies])
        accepted_sum = np.stack([tally.accepted_sum for tally in tallies])
        everything, everything_sum = np.zeros_like(sent[0]), np.zeros_like(sent_sum[0])
        everything[present] = [tally.sent for tally in tallies]
        everything_sum[present] = np.array([tally.sent_sum for tally in tallies], np.uint64)
        same = (accepted == sent) & (accepted_sum == sent_sum)
        same |= (accepted == everything) & (accepted_sum == everything_sum)
        same[np.arange(len(present)), present] = True
        found |= set(np.flatnonzero(~same.all(axis=0)).tolist())
    return found


def _repeats(line: Line) -> bool:
    """Whether a process used a number again."""
    highest = 0
    for link in line:
        if link.summary.repeats or link.summary.sent_low <= highest:
            return True
        highest = max(highest, link.summary.sent_high)
    return False


def _echoes_ahead(line: Line) -> bool:
    """Whether a process delivered a message of its own before it had sent one of that number."""
    highest = 0
    for link in line:
        if link.summary.echoed_ahead > highest:
            return True
        highest = max(highest, link.summary.sent_high)
    return False


def _tallies(lines: Sequence[Line], present: Sequence[int]) -> Iterator[tuple[int, list[Tally]]]:
    """View by view, the tallies of all processes that are present."""
    totals, empty = [_total(lines[process]) for process in present], Tally.empty(len(lines))
    for view in sorted({view for total in totals for view in total}):
        yield view, [total.get(view, empty) for total in totals]


def _total(line: Line) -> dict[int, Tally]:
    total: dict[int, Tally] = {}
    for link in line:
        for view, tally in link.summary.tallies.items():
            total.setdefault(view, Tally.empty(len(tally.delivered))).add(tally)
    return total


def _sent(tallies: Sequence[Tally], view: int, membership: "Membership") -> tuple[Ints, Words]:
    """Counts and sums of the messages that each source sent in a view to each process that is present: line = destination."""
    present = membership.present
    shape = len(present), len(membership.installed)
    counts: Ints = np.zeros(shape, np.int64)
    sums: Words = np.zeros(shape, np.uint64)
    for source, tally in zip(present, tallies, strict=True):
        if not tally.sent:
            continue
        counts[:, source], sums[:, source] = tally.addressed[present], tally.addressed_sum[present]
        if membership.is_split:
            elsewhere = ~membership.reachable(source, view)[present]
            counts[elsewhere, source], sums[elsewhere, source] = 0, 0
        meant = membership.meant(source, view)[present]
        counts[meant, source] += tally.everybody
        sums[meant, source] += np.uint64(tally.everybody_sum)
    return counts, sums


def _is_echo_plain(tally: Tally, process: int) -> bool:
    """Whether a member's own deliveries are none, all of its sends, or all that name itself.

    Anything else may be right too, as no process is obliged to echo, but has to be compared message by message.
    """
    echoed = int(tally.delivered[process]), int(tally.delivered_sum[process])
    named = int(tally.addressed[process]), int(tally.addressed_sum[process])
    return echoed in ((0, 0), named, (tally.sent, tally.sent_sum))
