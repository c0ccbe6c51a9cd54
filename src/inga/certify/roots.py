"""Violations under what they have in common.

A process that counts again from an earlier number spoils whatever is checked about its messages. A wrong vector
makes others look late that are not. One message that is lost is one cause, however many miss it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from inga.certify.agree import Clash
from inga.certify.chain import MessageId, Step
from inga.certify.verdict import ViolationGroup
from inga.certify.work import RowKey

EXPLAINED_MAX = 200  # late deliveries of which each is traced to its root; beyond that only counted
LOST_MAX = 50  # missing messages that are grouped one by one

FindEffect = Callable[[RowKey, str], RowKey | None]


@dataclass(frozen=True, slots=True)
class Bad:
    """One kind of violation between a process and a sender: exact count, first examples."""

    check: str
    process: int
    source: int
    what: str  # is wrong, in words
    count: int
    rows: list[RowKey]
    blames: str = ""  # what it is one of, in words, unless it follows from something else
    others: dict[RowKey, MessageId] = field(default_factory=dict)  # clocks: the event that each names
    cause: "Cause | None" = None  # if it is known already
    clashes: list[Clash] = field(default_factory=list)  # of `total` and `object`: one for each row
    early: RowKey | None = None  # what came before the first row and should not have
    step: str = "deliver"  # of `atomic` and `views`: what others have done with the message,
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


def group_by_root(
    names: list[str], bad: list[Bad], restarts: dict[int, RowKey], effect: FindEffect
) -> list[ViolationGroup]:
    """Largest first. `restarts`: where a process began to count again."""
    return _Roots(names, bad, restarts, effect).groups()


class _Roots:
    def __init__(
        self, names: list[str], bad: list[Bad], restarts: dict[int, RowKey], effect: FindEffect
    ) -> None:
        self._names = names
        self._bad = bad
        self._restarts = restarts
        self._effect = effect
        self._stamps: dict[int, RowKey] = {}  # the first wrong one of each process
        for each in bad:
            if each.check == "stamps" and each.rows:
                self._stamps.setdefault(each.process, each.rows[0])
        self._groups: dict[tuple[Any, ...], ViolationGroup] = {}

    def groups(self) -> list[ViolationGroup]:
        explained = self._count("causal") <= EXPLAINED_MAX
        one_by_one = self._count("complete") <= LOST_MAX
        for each in self._bad:
            if each.cause is not None:
                self._add(each.cause.key, each.cause.text, each.check, each.count, each.cause.row)
            elif each.source in self._restarts:
                self._add_restart(each)
            elif each.check == "stamps":
                self._add_stamps(each.process, each.check, each.count)
            elif each.check == "fifo" and self._count("causal"):
                self._add_late(replace(each, count=0), explained)  # causal counts the same deliveries
            elif each.check in ("causal", "fifo"):
                self._add_late(each, explained)
            elif each.check == "complete" and one_by_one:
                self._add_lost(each)
            elif each.clashes:
                self._add_clash(each)
            else:
                self._add_pair(each)
        return sorted(self._groups.values(), key=lambda group: -group.count)

    def _count(self, check: str) -> int:
        return sum(each.count for each in self._bad if each.check == check)

    def _add(self, key: tuple[Any, ...], cause: str, check: str, count: int, row: RowKey) -> None:
        first = {"process": row.process, "pos": row.pos, "message": [row.src, row.seq]}
        group = self._groups.setdefault(key, ViolationGroup(cause, [], 0, first))
        group.count += count
        if check not in group.checks:
            group.checks.append(check)

    def _add_restart(self, each: Bad) -> None:
        row = self._restarts[each.source]
        cause = f"{self._names[each.source]} counts again from message {row.seq} at position {row.pos}"
        self._add(("restart", each.source), cause, each.check, each.count, row)

    def _add_stamps(self, process: int, check: str, count: int) -> None:
        row = self._stamps[process]
        cause = f"{self._names[process]} stamped {named(self._names, (row.src, row.seq))} with a wrong vector"
        self._add(("stamps", process), cause, check, count, row)

    def _add_late(self, each: Bad, explained: bool) -> None:
        rest = each.count
        if explained and each.check == "causal":
            for row in each.rows:
                effect = self._effect(row, each.check)
                wrong = None if effect is None else self._stamps.get(effect.src)
                if effect is not None and wrong is not None and effect.seq >= wrong.seq:
                    self._add_stamps(effect.src, each.check, 1)
                    rest -= 1
        if rest or each.check == "fifo":
            here, source = self._names[each.process], self._names[each.source]
            cause = f"{here} delivered messages of {source} after others that they precede"
            self._add(("late", each.process, each.source), cause, each.check, rest, each.rows[0])

    def _add_lost(self, each: Bad) -> None:
        for row in each.rows:
            cause = f"{named(self._names, (row.src, row.seq))} was lost"
            self._add(("lost", row.src, row.seq), cause, each.check, 1, row)

    def _add_clash(self, each: Bad) -> None:
        """Two processes disagree; the one that disagrees with more of the others is named."""
        pairs = {
            (bad.process, bad.clashes[0].against)
            for bad in self._bad
            if bad.check == each.check and bad.clashes
        }
        clash = each.clashes[0]
        partners = {at: sum(at in pair for pair in pairs) for at in (each.process, clash.against)}
        root = max((each.process, clash.against), key=lambda at: partners[at])
        verb = "delivered messages"
        if each.check == "object":
            verb = f"began requests that conflict ({' and '.join(clash.methods)})"
        cause = f"{self._names[root]} {verb} in another order than others"
        row = RowKey(
            root,
            each.rows[0].pos if root == each.process else clash.against_pos,
            each.rows[0].src,
            each.rows[0].seq,
        )
        self._add(("clash", each.check, root), cause, each.check, each.count, row)

    def _add_pair(self, each: Bad) -> None:
        key = (each.check, each.blames, each.process, each.source)
        self._add(key, each.blames, each.check, each.count, each.rows[0])
