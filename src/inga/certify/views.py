"""Views: all members of a view agree on its members and on the view before, and deliver in it the messages sent in it;
members that go on to the next view together have delivered the same messages.

Each row names the view it belongs to, and view rows say when a process was in which view; so the summaries show whether a row
belongs to another view than its process was in. View rows are few, and all of them are in the summaries. Messages are read only
of sources for which the sums of sends and deliveries differ in some view, a range of their numbers at a time, as for `atomic`.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from inga.certify import compare, work
from inga.certify.chain import Step
from inga.certify.chunk import Bools, InstalledView, Ints
from inga.certify.compare import Range, Sends
from inga.certify.evidence import Evidence
from inga.certify.membership import UNSAID, Key
from inga.certify.pairs import ROWS_AT_ONCE, meant_for
from inga.certify.roots import Bad, Cause
from inga.certify.scan import Summary
from inga.certify.work import Fates, RowKey, Strays

NOWHERE = -1  # the view of a message that was not delivered


def views(evidence: Evidence) -> Iterator[Bad]:
    """View rows that contradict others; messages sent or delivered in a view that they do not belong to; messages
    that some survivor of a view delivered in it and another survivor did not."""
    if not any(summary.views for summary in evidence.summaries):
        return
    yield from _Rows(evidence).judge()
    yield from _strays(evidence)
    judge = _Messages(evidence)
    sources = {pair.source for pair in evidence.unequal}
    width = max(ROWS_AT_ONCE // len(evidence.processes), 1)
    for source in sorted(sources):
        high = max((_high(summary, source) for summary in evidence.summaries), default=0)
        segments = [link.segment for link in evidence.links]
        for numbers in evidence.ranges([source], 1, high, width, segments):
            questions = [
                (link.segment, (evidence.keys, source, numbers))
                for link in evidence.links
                if link.summary.process == source or _has(link.summary, source, numbers)
            ]
            found = evidence.ask("segments compared", work.fates, questions)
            yield from judge.judge(source, numbers, [part for _, part in found])


def _high(summary: Summary, source: int) -> int:
    sent = summary.sent_high if summary.process == source else 0
    return max(sent, int(summary.delivered_high[source]))


def _has(summary: Summary, source: int, numbers: Range) -> bool:
    low, high = summary.delivered_low[source], summary.delivered_high[source]
    return bool(low < numbers.high and high >= numbers.low)


def step_of(process: int, view: InstalledView) -> Step:
    """A view row as a link of a chain, with the view's leader and number in place of a message."""
    return Step(process, view.pos, "view", (max(view.leader, 0), view.number))


class _Rows:
    """Judges whether view rows agree with each other; each that does not is reported with one that it contradicts."""

    def __init__(self, evidence: Evidence) -> None:
        self._names = evidence.names
        self._installed = evidence.membership.installed

    def judge(self) -> Iterator[Bad]:
        same: dict[Key, list[tuple[int, InstalledView]]] = {}
        for process, installed in enumerate(self._installed):
            for view in installed:
                if view.leader != UNSAID:
                    same.setdefault(view.key, []).append((process, view))
            yield from self._order(process, installed)
        for group in same.values():
            yield from self._members(group)
            yield from self._predecessors(group)

    def _order(self, process: int, installed: list[InstalledView]) -> Iterator[Bad]:
        for before, view in pairwise(installed):
            if view.number <= before.number:
                what = f"installed view {view.number} after view {before.number}"
                yield self._bad(process, view, what, [step_of(process, before)])

    def _members(self, group: list[tuple[int, InstalledView]]) -> Iterator[Bad]:
        """Processes whose row differs from most others of the view, or that installed a view they are not in."""
        counts = Counter(view.members for _, view in group)
        agreed = counts.most_common(1)[0][0]
        there, other = next((process, view) for process, view in group if view.members == agreed)
        for process, view in group:
            assert view.members is not None and agreed is not None
            if view.members != agreed:
                besides = [f"also {self._listed(view.members - agreed)}"] if view.members - agreed else []
                besides += [f"not {self._listed(agreed - view.members)}"] if agreed - view.members else []
                what = f"has {' and '.join(besides)} in view {view.number}, unlike {self._names[there]}"
                yield self._bad(process, view, what, [step_of(there, other)])
            elif process not in view.members:
                yield self._bad(process, view, f"installed view {view.number}, which it is not in", [])

    def _predecessors(self, group: list[tuple[int, InstalledView]]) -> Iterator[Bad]:
        """All processes that were in the group before must come from the same view, so that none skipped one."""
        before = {process: self._before(process, view) for process, view in group}
        known = {
            process: each for process, each in before.items() if each is not None and each.leader != UNSAID
        }
        if len({each.key for each in known.values()}) < 2:
            return
        usual = Counter(each.key for each in known.values()).most_common(1)[0][0]
        there = next(process for process, each in known.items() if each.key == usual)
        for process, view in group:
            if process in known and known[process].key != usual:
                what = (
                    f"came to view {view.number} from view {known[process].number}, but {self._names[there]} from "
                    f"view {usual[0]}"
                )
                chain = [step_of(process, known[process]), step_of(there, known[there])]
                yield self._bad(process, view, what, chain)

    def _before(self, process: int, view: InstalledView) -> InstalledView | None:
        at = self._installed[process].index(view)
        return self._installed[process][at - 1] if at else None

    def _listed(self, members: frozenset[int]) -> str:
        return ", ".join(self._names[at] for at in sorted(members) if at < len(self._names))

    def _bad(self, process: int, view: InstalledView, what: str, others: list[Step]) -> Bad:
        own = step_of(process, view)
        row = RowKey(process, view.pos, *own.message)
        chain = [*others, own]
        blames = f"{self._names[process]} {what}"
        return Bad("views", process, process, what, 1, [row], blames=blames, chain=chain, step="view")


def _strays(evidence: Evidence) -> Iterator[Bad]:
    """Sends and deliveries that belong to a view that was not in force. A process whose views are out of order is left out: that
    violation is reported already."""
    questions = []
    for process, line in enumerate(evidence.lines):
        numbers = [view.number for view in evidence.membership.installed[process]]
        if any(view <= before for before, view in pairwise(numbers)):
            continue
        in_force = NOWHERE
        for link in line:
            views = [in_force, *(view.number for view in link.summary.views)]
            labels = zip(views, link.summary.labels.tolist(), strict=True)
            if any(
                view != NOWHERE and low <= high and (low, high) != (view, view)
                for view, (low, high) in labels
            ):
                questions.append((link.segment, (in_force, evidence.listed_max)))
            in_force = views[-1]
    for _, found in evidence.ask("rows held against views", work.strays, questions):
        for each in found:
            yield _stray(evidence, each)


def _stray(evidence: Evidence, found: Strays) -> Bad:
    here = found.rows[0].process
    name, done = evidence.names[here], {"send": "sent", "deliver": "delivered"}[found.step]
    what = f"was {done} at {name} as one of view {found.view}, when it was in view {found.in_force}"
    text = f"{name} {done} messages of view {found.view} when it was in view {found.in_force}"
    cause = Cause(("stray", here, found.view, found.in_force, found.step), text, found.rows[0])
    installed = evidence.membership.installed[here]
    chain = [step_of(here, view) for view in installed if view.number == found.in_force]
    return Bad(
        "views", here, found.source, what, found.count, found.rows, cause=cause, chain=chain, step=found.step
    )


def _most_common(found: NDArray[np.int32]) -> NDArray[np.int32]:
    """The view that most lines have in each column, the lowest of several; NOWHERE if none has any."""
    views = np.unique(found)
    counts = np.stack([(found == view).sum(axis=0) * (view != NOWHERE) for view in views])
    return np.where(counts.any(axis=0), views[counts.argmax(axis=0)], np.int32(NOWHERE))


class _Messages:
    """Judges whether messages are delivered in the view they were sent in, and by all members that go on together or by none."""

    def __init__(self, evidence: Evidence) -> None:
        self._processes = evidence.processes
        self._membership = evidence.membership
        self._listed_max = evidence.listed_max

    def judge(self, source: int, numbers: Range, parts: list[Fates]) -> Iterator[Bad]:
        n, width = len(self._processes), numbers.high - numbers.low
        delivered_in = np.full((n, width), NOWHERE, np.int32)
        positions = np.zeros((n, width), np.int64)
        for part in reversed(parts):  # so that the first delivery of a message counts
            at = part.delivered[::-1] - numbers.low
            delivered_in[part.process, at] = part.delivered_in[::-1]
            positions[part.process, at] = part.delivered_at[::-1]
        sends = compare.join_sends([part.sends for part in parts if part.sends is not None], n)
        sent_in = np.full(width, NOWHERE, np.int32)
        sent_in[sends.seq - numbers.low] = sends.view
        if not self._processes[source].complete:
            # A message is sent in one view. If its send is missing, that counts as the one in which most have delivered it.
            sent_in = np.where(sent_in == NOWHERE, _most_common(delivered_in), sent_in)
        for here in range(n):
            outside = (delivered_in[here] != sent_in) & (delivered_in[here] != NOWHERE) & (sent_in != NOWHERE)
            yield from self._outside(outside, numbers, here, source, positions[here], delivered_in[here])
        for view in np.unique(delivered_in[delivered_in != NOWHERE]).tolist():
            yield from self._unequal(delivered_in == view, sends, numbers, source, view)

    def _unequal(
        self, delivered: Bools, sends: Sends, numbers: Range, source: int, view: int
    ) -> Iterator[Bad]:
        """Messages that some of the processes that went on together from a view delivered in it and others did not."""
        for survivors in self._membership.survivors(source, view):
            for here in survivors:
                others = [other for other in survivors if other != here]
                lacking = delivered[others].any(axis=0) & ~delivered[here]
                if lacking.any():
                    lacking &= self._meant(sends, numbers, here, source)
                    yield from self._lacking(lacking, numbers, here, source, view)

    def _meant(self, sends: Sends, numbers: Range, here: int, source: int) -> Bools:
        """Which numbers are known to be for a process. Those whose sends are missing are not: their destinations are unknown."""
        meant = np.zeros(numbers.high - numbers.low, np.bool_)
        mine = meant_for(self._membership, sends, here, source)
        meant[sends.seq[mine] - numbers.low] = True
        return meant

    def _outside(
        self, outside: Bools, numbers: Range, here: int, source: int, positions: Ints, found_in: Ints
    ) -> Iterator[Bad]:
        name, sender = self._processes[here].name, self._processes[source].name
        is_known = self._processes[source].complete
        for view in np.unique(found_in[outside]).tolist():
            at = np.flatnonzero(outside & (found_in == view))
            why = "in which it was not sent" if is_known else "but elsewhere in another"
            what = f"was delivered at {name} in view {view}, {why}"
            rows = [
                RowKey(here, int(positions[each]), source, int(each) + numbers.low)
                for each in at[: self._listed_max].tolist()
            ]
            others = "they were sent in" if is_known else "others"
            blames = f"{name} delivered messages of {sender} in another view than {others}"
            chain = self._last(here, view)
            yield Bad("views", here, source, what, len(at), rows, blames=blames, chain=chain, view=view)

    def _lacking(self, lacking: Bools, numbers: Range, here: int, source: int, view: int) -> Iterator[Bad]:
        seqs = np.flatnonzero(lacking) + numbers.low
        if len(seqs):
            name = self._processes[here].name
            what = f"was delivered in view {view} by others that came through it, but not in it at {name}"
            rows = [RowKey(here, 0, source, seq) for seq in seqs[: self._listed_max].tolist()]
            sender = self._processes[source].name
            blames = f"{name} lacks messages of {sender} that others delivered in the same view"
            following = self._membership.next(here, view)
            chain = [] if following is None else [step_of(here, following)]
            yield Bad("views", here, source, what, len(seqs), rows, blames=blames, chain=chain, view=view)

    def _last(self, process: int, number: int) -> list[Step]:
        """The row of a process for the view of that number, if it has one."""
        return [
            step_of(process, view) for view in self._membership.installed[process] if view.number == number
        ][:1]
