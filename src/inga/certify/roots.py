"""Group violations by the root that they have in common, the most likely root first.

One wrong row can make many others wrong. So each violation is compared with those that may have caused it, at the
same process or at the sender of a message:

    a late delivery     follows from the one that came too early, if that is itself a violation, or if its vector is wrong
    a wrong vector      follows from a message that its process lacks, or had and should not have had; from rows in another
                        order around the send; from the wrong vector of a message that was received
    a second delivery   follows from a first one that was not what was sent
    a missing message   follows from a wrong one, of the same number or sender, that was delivered in its place

A process that counts again from an earlier number is the root of all violations about its messages. A violation that
follows from no other is a root. Roots are listed by the number of violations that follow from them; of equals, rows that
cannot be right come before rows that are in the wrong place, and these before vectors.

To trace a violation, rows have to be read again, so up to EXPLAINED_MAX violations of a check are traced one by one; of
more, the first of each process and sender represents the others.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol

from inga.certify.agree import Clash
from inga.certify.chain import MessageId, Step
from inga.certify.compare import REASONS, UNSENT
from inga.certify.verdict import ViolationGroup
from inga.certify.work import RowKey

EXPLAINED_MAX = 200  # violations of a check of which each is traced to its root
LOST_MAX = 50  # missing messages that are grouped one by one

ROW, PLACE, VECTOR = range(3)
"""Kinds of roots, in the order in which equals are listed: a row that cannot be right, rows in the wrong order, a vector."""


class Excess(NamedTuple):
    """An entry in which the vector of a send and what its process knew differ."""

    source: int
    stamped: int
    known: int


class RowReader(Protocol):
    """Reads rows of the trace again."""

    def effect(self, row: RowKey, check: str) -> RowKey | None:
        """The first delivery at that process that should have come after this one."""
        ...

    def excess(self, row: RowKey) -> list[Excess]:
        """What is wrong with the vector of a send."""
        ...

    def origin(self, row: RowKey, source: int, number: int) -> RowKey | None:
        """The first row before this one after which its process knew so many messages of a source."""
        ...


@dataclass(frozen=True, slots=True)
class Bad:
    """One kind of violation between a process and a sender: exact count, first examples."""

    check: str
    process: int
    source: int
    what: str  # what is wrong, in words
    count: int
    rows: list[RowKey]
    blames: str = ""  # its cause in words, unless it follows from another violation
    others: dict[RowKey, MessageId] = field(default_factory=dict)  # clocks: the event that each names
    cause: "Cause | None" = None  # if the judge knows it already
    clashes: list[Clash] = field(default_factory=list)  # of `total` and `object`: one for each row
    early: RowKey | None = None  # the request that began before the first row and should have begun after it
    step: str = "deliver"  # of `atomic` and `views`: the step of the message at other processes,
    view: int | None = None  # in which view, if that matters
    chain: list[Step] = field(default_factory=list)  # rows of views that a witness ends with


@dataclass(frozen=True, slots=True)
class Cause:
    """What violations follow from; those with equal keys are one group."""

    key: tuple[Any, ...]
    text: str
    row: RowKey


def named(names: list[str], message: MessageId) -> str:
    src, seq = message
    return f"message {seq} of {names[src]}"


class _Root(NamedTuple):
    """Where a group of violations comes from."""

    key: tuple[Any, ...]
    text: str
    row: RowKey
    rank: int


Traced = Iterator[tuple[_Root, int]]
"""Roots of some violations, each with the number of violations that follow from it."""


def group_by_root(
    names: list[str], bad: list[Bad], restarts: dict[int, RowKey], look: RowReader
) -> list[ViolationGroup]:
    """The most likely root first. `restarts`: where a process began to count again."""
    return _Roots(names, bad, restarts, look).groups()


class _Roots:
    def __init__(
        self, names: list[str], bad: list[Bad], restarts: dict[int, RowKey], look: RowReader
    ) -> None:
        self._names = names
        self._bad = bad
        self._restarts = restarts
        self._look = look
        self._counts = Counter[str]()
        for each in bad:
            self._counts[each.check] += each.count
        self._stamp_roots: dict[int, _Root] = {}

    def groups(self) -> list[ViolationGroup]:
        groups: dict[tuple[Any, ...], ViolationGroup] = {}
        ranks: dict[tuple[Any, ...], tuple[int, int]] = {}
        for each in self._bad:
            for root, count in self._traced(each):
                row = root.row
                first = {"process": row.process, "pos": row.pos, "message": [row.src, row.seq]}
                group = groups.setdefault(root.key, ViolationGroup(root.text, [], 0, first))
                ranks.setdefault(root.key, (root.rank, row.pos))
                group.count += count
                if each.check not in group.checks:
                    group.checks.append(each.check)
        listed = sorted(groups, key=lambda key: (-groups[key].count, *ranks[key]))
        return [groups[key] for key in listed]

    def _traced(self, each: Bad) -> Traced:
        if each.cause is not None:
            yield _Root(each.cause.key, each.cause.text, each.cause.row, ROW), each.count
        elif each.source in self._restarts:
            yield self._restart(each.source), each.count
        elif each.check == "stamps":
            yield self._stamp(each.process), each.count
        elif each.check in ("causal", "fifo"):
            # Deliveries that are late by `fifo` are among those that `causal` counts.
            is_counted = each.check == "causal" or not self._counts["causal"]
            yield from ((root, count * is_counted) for root, count in self._one_by_one(each, self._late))
        elif each.check == "integrity":
            yield from self._one_by_one(each, self._impossible)
        elif each.check == "complete" and self._counts["complete"] <= LOST_MAX:
            yield from self._one_by_one(each, self._lost)
        elif each.clashes:
            yield self._clash(each), each.count
        else:
            yield self._pair(each), each.count

    def _one_by_one(self, each: Bad, trace: Callable[[RowKey, Bad], _Root]) -> Traced:
        """Each violation with its root; if there are too many, the first row represents all."""
        rows = self._followed(each)
        for row in rows:
            yield trace(row, each), 1
        if each.count > len(rows):
            yield trace(rows[0], each), each.count - len(rows)

    def _followed(self, each: Bad) -> list[RowKey]:
        return each.rows if self._counts[each.check] <= EXPLAINED_MAX else each.rows[:1]

    def _restart(self, process: int) -> _Root:
        row = self._restarts[process]
        text = f"{self._names[process]} counts again from message {row.seq} at position {row.pos}"
        return _Root(("restart", process), text, row, ROW)

    def _pair(self, each: Bad) -> _Root:
        return _Root((each.check, each.blames, each.process, each.source), each.blames, each.rows[0], ROW)

    # ---- rows that cannot be right, and those that are not there

    @cached_property
    def _wrong(self) -> dict[tuple[int, int], tuple[RowKey, Bad]]:
        """Deliveries that cannot be right, by process and position."""
        return {
            (row.process, row.pos): (row, each)
            for each in self._bad
            if each.check == "integrity" and each.source not in self._restarts
            for row in each.rows
        }

    @cached_property
    def _unsent(self) -> dict[MessageId, set[int]]:
        """Messages that no process sent, and the processes that delivered them."""
        found: dict[MessageId, set[int]] = {}
        for row, each in self._wrong.values():
            if each.what == REASONS[UNSENT]:
                found.setdefault((row.src, row.seq), set()).add(row.process)
        return found

    @cached_property
    def _absent(self) -> dict[tuple[int, int, int], Bad]:
        """Messages that a process lacks, by process, sender and number."""
        return {
            (row.process, row.src, row.seq): each
            for check in ("atomic", "complete")  # if both report it, the second counts
            for each in self._bad
            if each.check == check
            for row in each.rows
            if not row.pos
        }

    def _impossible(self, row: RowKey, each: Bad) -> _Root:
        """The root of a delivery that cannot be right: the first wrong one of that message at the process, or the missing send."""
        if self._counts["integrity"] > EXPLAINED_MAX:  # too many to be compared with each other
            return self._pair(each)
        message = row.src, row.seq
        where = self._unsent.get(message, set())
        if len(where) > 1:
            text = f"{named(self._names, message)} was delivered at {len(where)} processes, and no row says that it was sent"
            return _Root(("unsent", *message), text, RowKey(row.src, 0, *message), ROW)
        same = [it for it in self._wrong.values() if _is_same(it[0], row) and it[0].pos <= row.pos]
        first, its = min(same, key=lambda it: it[0].pos, default=(row, each))
        return self._pair(its)._replace(row=first)

    def _lost(self, row: RowKey, each: Bad) -> _Root:
        """The root of a missing message: a wrong delivery of its number or sender in its place, if there is one."""
        instead = [
            (wrong, its)
            for wrong, its in self._wrong.values()
            if wrong.process == row.process and (wrong.seq == row.seq or wrong.src == row.src)
        ]
        if instead:
            return self._impossible(*min(instead, key=lambda it: it[0].pos))
        return _Root(
            ("lost", row.src, row.seq), f"{named(self._names, (row.src, row.seq))} was lost", row, ROW
        )

    # ---- rows in the wrong order

    @cached_property
    def _early(self) -> dict[RowKey, RowKey]:
        """For late deliveries, the delivery that came too early."""
        found: dict[RowKey, RowKey] = {}
        for each in self._bad:
            if each.check in ("causal", "fifo"):
                for row in self._followed(each):
                    effect = self._look.effect(row, each.check)
                    if effect is not None:
                        found.setdefault(row, effect)
        return found

    def _late(self, row: RowKey, each: Bad) -> _Root:
        early = self._early.get(row)
        if early is not None:
            wrong = self._wrong.get((early.process, early.pos))
            if wrong is not None:
                return self._impossible(*wrong)
            if self._is_stamped_wrong(early):
                return self._stamp(early.src)
            if len({late.src for late, its in self._early.items() if its == early}) > 1:
                message = named(self._names, (early.src, early.seq))
                text = f"{self._names[early.process]} delivered {message} before others that precede it"
                return _Root(("early", early.process, early.pos), text, early, PLACE)
        here, source = self._names[each.process], self._names[each.source]
        text = f"{here} delivered messages of {source} after others that they precede"
        return _Root(("late", each.process, each.source), text, each.rows[0], PLACE)

    def _clash(self, each: Bad) -> _Root:
        """The root of two orders that differ: the process that disagrees with more of the others, or else the one with another
        violation; if neither criterion decides, both are named."""
        clash, here, there = each.clashes[0], each.process, each.clashes[0].against
        pairs = {
            (bad.process, bad.clashes[0].against)
            for bad in self._bad
            if bad.check == each.check and bad.clashes
        }
        others = {bad.process for bad in self._bad if not bad.clashes}
        weight = {at: (sum(at in pair for pair in pairs), at in others) for at in (here, there)}
        root = max((here, there), key=lambda at: weight[at])
        preceded = self._preceded(root, _places(root, each.rows[0], clash))
        if preceded is not None:
            return self._pair(preceded)
        verb = "delivered messages"
        if each.check == "object":
            verb = f"began requests that conflict ({' and '.join(clash.methods)})"
        text = f"{self._names[root]} {verb} in another order than others"
        if weight[here] == weight[there]:
            both = " and ".join(self._names[at] for at in sorted((here, there)))
            text = f"{both} {verb} in different orders"
        pos = each.rows[0].pos if root == here else clash.against_pos
        row = RowKey(root, pos, each.rows[0].src, each.rows[0].seq)
        return _Root(("clash", each.check, root), text, row, PLACE)

    def _preceded(self, process: int, places: tuple[int, ...]) -> Bad | None:
        """A request that began at a process after one that it precedes, if the positions of the two overlap with these places."""
        for bad in self._bad:
            if bad.early is None or bad.process != process:
                continue
            if bad.early.pos <= max(places) and min(places) <= bad.rows[0].pos:
                return bad
        return None

    # ---- vectors

    @cached_property
    def _stamps(self) -> dict[int, RowKey]:
        """The first send of each process with a wrong vector."""
        found: dict[int, RowKey] = {}
        for each in self._bad:
            if each.check == "stamps" and each.rows:
                found.setdefault(each.process, each.rows[0])
        return found

    def _is_stamped_wrong(self, message: RowKey) -> bool:
        wrong = self._stamps.get(message.src)
        return wrong is not None and message.seq >= wrong.seq

    def _stamp(self, process: int) -> _Root:
        if process not in self._stamp_roots:
            row = self._stamps[process]
            message = named(self._names, (row.src, row.seq))
            text = f"{self._names[process]} stamped {message} with a wrong vector"
            # A call that comes back here while the root is being traced gets the vector itself, or two could follow from each other.
            self._stamp_roots[process] = _Root(("stamps", process), text, row, VECTOR)
            self._stamp_roots[process] = self._behind(row) or self._stamp_roots[process]
        return self._stamp_roots[process]

    def _behind(self, row: RowKey) -> _Root | None:
        """What made the vector of a send wrong, if it was not the sender."""
        if (row.src, row.seq - 1) in self._unsent:  # its own message before, the send of which has no row
            place = next(key for key, it in self._wrong.items() if _is_message(it[0], row.src, row.seq - 1))
            return self._impossible(*self._wrong[place])
        for late, early in self._early.items():
            if late.process == row.process and early.pos < row.pos < late.pos:
                return self._late(late, next(bad for bad in self._bad if late in bad.rows))
        for bad in self._bad:
            for at, clash in zip(bad.rows, bad.clashes, strict=False):
                places = _places(row.process, at, clash)
                if places and min(places) < row.pos < max(places):
                    return self._clash(bad)
        return next(filter(None, (self._brought(row, each) for each in self._look.excess(row))), None)

    def _brought(self, row: RowKey, excess: Excess) -> _Root | None:
        """The root of one wrong entry: a message that the process lacks, should not have had, or received with a wrong vector; None if
        there is no such message."""
        source, stamped, known = excess
        if stamped > known:
            absent = self._absent.get((row.process, source, stamped))
            if absent is None:
                return None
            lost = RowKey(row.process, 0, source, stamped)
            is_lost = absent.check == "complete" and self._counts["complete"] <= LOST_MAX
            return self._lost(lost, absent) if is_lost else self._pair(absent)
        origin = self._look.origin(row, source, known)
        if origin is None:
            return None
        wrong = self._wrong.get((origin.process, origin.pos))
        if wrong is not None:
            return self._impossible(*wrong)
        return self._stamp(origin.src) if origin.src != row.src and self._is_stamped_wrong(origin) else None


def _is_message(row: RowKey, src: int, seq: int) -> bool:
    return (row.src, row.seq) == (src, seq)


def _is_same(one: RowKey, other: RowKey) -> bool:
    """Whether two rows are about one message at one process."""
    return one.process == other.process and _is_message(one, other.src, other.seq)


def _places(process: int, row: RowKey, clash: Clash) -> tuple[int, ...]:
    """The positions at a process of the two messages that it and another process have in different orders."""
    if process == row.process:
        return row.pos, clash.other_pos
    return (clash.against_pos, clash.against_other_pos) if process == clash.against else ()
