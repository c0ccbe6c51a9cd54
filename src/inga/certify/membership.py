"""Which process was in which view, according to its own rows.

A view row names the members of the view and the leader of the change to it. Number and leader identify a view: in a
partitioned network each part of a group goes on, and two parts may both have a view 5. Messages sent in a view are for its
members, are delivered in it, and are owed to the members that go on from it together; parts owe each other nothing.

A trace of another system may have views without members, or no views. Then a process is in all views from its first one on,
views of one number are one view, and messages lost in a view that was closed were given up by agreement.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from inga.certify.chunk import Bools, InstalledView, Ints
from inga.certify.combine import Line, Process

Key = tuple[int, int]
"""Number and leader of a view."""

UNSAID = -1
"""In place of the leader of a view whose rows name none."""

END: Key = (-1, -1)
"""In place of the next view of a process that was present to the end and has no next view."""


@dataclass(frozen=True, slots=True)
class Camps:
    """Numbers by process and view; processes whose numbers differ in a view are not compared in it. View numbers may have gaps."""

    views: Ints  # the numbers of all views that any process installed, in order
    number: Ints  # a line for each process, a column for each of these

    def of(self, process: int, views: Any) -> Any:
        """The numbers of rows of a process, by the views that they belong to; views after the last count as the last."""
        views = np.minimum(views, self.views[-1])
        at = np.searchsorted(self.views, views)
        return np.where(self.views[at] == views, self.number[process, at], 0)


class Membership:
    """Views by process, and what follows for messages from one process to another."""

    def __init__(self, lines: Sequence[Line], processes: Sequence[Process]) -> None:
        self._processes = processes
        self.installed = [[view for link in line for view in link.summary.views] for line in lines]
        self._of = [{view.number: view for view in reversed(views)} for views in self.installed]
        self._says = [any(view.members is not None for view in views) for views in self.installed]
        self._crashed = crashed(lines, processes)
        self._left = [has_left(line) for line in lines]
        self._settled = [any(link.summary.settled for link in line) for line in lines]
        self._closed = max((link.summary.flushed for line in lines for link in line), default=-1)
        self.is_split = self._find_split()
        # All but those that wrote no row and need not have any: a manifest may name a million of them.
        self.present = [at for at, line in enumerate(lines) if line or not self._crashed[at]]

    def key(self, process: int, number: int) -> Key | None:
        """The view of that number at a process, None if it never installed one."""
        view = self._of[process].get(number)
        if view is not None:
            return view.key
        if self._says[process] or not is_member(self._processes[process], number):
            return None
        return number, UNSAID

    def is_shared(self, one: int, other: int, number: int) -> bool:
        """Whether both were in the same view of that number, as far as rows say."""
        keys = self.key(one, number), self.key(other, number)
        return None not in keys and (keys[0] == keys[1] or UNSAID in (keys[0][1], keys[1][1]))  # type: ignore[index]

    def meant(self, source: int, number: int) -> Bools:
        """By destination: whether a message to all that a process sends in that view is for it."""
        view = self._of[source].get(number)
        if view is None or view.members is None:
            found = np.array([is_member(process, number) for process in self._processes])
        else:
            found = np.zeros(len(self._processes), np.bool_)
            found[[member for member in view.members if member < len(found)]] = True
        found &= self.reachable(source, number)
        found[source] = False
        return found

    def reachable(self, source: int, number: int) -> Bools:
        """By destination: whether it is not known to be in another view of that number. A process that was admitted, but never
        installed the view, may have been in the same."""
        found = np.ones(len(self._processes), np.bool_)
        if self.is_split:
            for destination in range(len(found)):
                if self.key(destination, number) is not None:
                    found[destination] = self.is_shared(source, destination, number)
        return found

    def next(self, process: int, number: int) -> InstalledView | None:
        """The view that a process went on to from that one."""
        return next((view for view in self.installed[process] if view.number > number), None)

    def camp(self, process: int, number: int) -> Key | None:
        """The view that a process went on to, or END: all processes with the same answer must have delivered the same messages.
        None if the process did not come through the view."""
        following = self.next(process, number)
        if following is not None:
            return following.key
        return None if self._crashed[process] or self._left[process] else END

    def is_together(self, one: int, other: int, number: int) -> bool:
        """Whether two processes were in the same part of the group when that view ended for them."""
        ends = self.camp(one, number), self.camp(other, number)
        return ends[0] == ends[1] if None not in ends else not self.is_split

    def survivors(self, source: int, number: int) -> list[list[int]]:
        """The processes, besides a source, that were in a view with it and came through it, grouped by the view they went on to."""
        camps: dict[Key, list[int]] = {}
        for process in range(len(self._processes)):
            camp = self.camp(process, number)
            if process != source and camp is not None and self.is_shared(source, process, number):
                camps.setdefault(camp, []).append(process)
        return list(camps.values())

    def owes(self, destination: int, source: int, number: int, *, relayed: bool) -> bool | None:
        """Whether a destination must deliver the messages of that view; None if that depends on how the two processes ended.

        `relayed`: messages went through the first member of the view, and those that it had not passed on are lost with it.
        """
        view, following = self._of[source].get(number), self.next(destination, number)
        if view is None or view.members is None or (following is not None and following.members is None):
            return None if number > self._closed else False
        if not self.is_shared(source, destination, number):
            return False
        if following is None:
            went_on = self.next(source, number)
            is_together = went_on is None or went_on.members is None or destination in went_on.members
            return None if is_together else False
        assert following.members is not None
        if relayed and view.leader not in following.members:
            return False
        return source in following.members or self._has_left_well(source, number)

    def _find_split(self) -> bool:
        """Whether views of one number differ anywhere."""
        keys = {view.key for views in self.installed for view in views}
        return len({number for number, _ in keys}) < len(keys)

    @cached_property
    def camps(self) -> Camps | None:
        """Numbers, by process and view, that differ between processes that went on to different views. None if the group never
        split, so that all processes can be compared with each other."""
        return self._numbered(self._camp_apart) if self.is_split else None

    @cached_property
    def orders(self) -> Camps | None:
        """Numbers, by process and view, that differ between processes that may have delivered the messages of a view in different
        orders. Processes that went on to the same view have one order. So has a process that ended in the view, since all follow
        its first member: it is compared with those that went on with the first member, or stayed when that left well. If the first
        member failed, the process may have learnt an order from it that no other process has. A view that goes on has one order."""
        return self._numbered(self._camp_in_order)

    def _numbered(self, camp_of: Callable[[int, int, Key, set[Key]], object]) -> Camps | None:
        """Numbers for camps, by process and view; None if there is one camp in every view."""
        numbers = sorted({view.number for views in self.installed for view in views})
        found = np.zeros((len(self._processes), len(numbers)), np.int64)
        for at, number in enumerate(numbers):
            keys = [self.key(process, number) for process in range(len(found))]
            ends = [self.camp(process, number) for process in range(len(found))]
            known: dict[object, int] = {}
            parts: dict[Key | None, set[Key]] = {key: set() for key in keys}
            for key, end in zip(keys, ends, strict=True):
                if end not in (None, END):
                    parts[key].add(end)
            for process, key in enumerate(keys):
                if key is not None:
                    camp = camp_of(process, number, key, parts[key])
                    found[process, at] = known.setdefault(camp, len(known))
        return Camps(np.array(numbers), found) if found.any() else None

    def _camp_apart(self, process: int, number: int, key: Key, parts: set[Key]) -> object:
        """If several parts went on, it is not known to which of them a process belonged that ended in this view."""
        if len(parts) <= 1:
            return key
        following = self.next(process, number)
        return process if following is None else (key, following.key)

    def _camp_in_order(self, process: int, number: int, key: Key, parts: set[Key]) -> object:
        following, leader = self.next(process, number), key[1]
        if following is not None:
            return key, following.key
        if leader == UNSAID or not parts:
            return (key, *parts) if len(parts) <= 1 else process
        with_leader = {
            view.key
            for views in self.installed
            for view in views
            if view.key in parts and (self._has_left_well(leader, number) or leader in (view.members or ()))
        }
        return (key, *with_leader) if len(with_leader) == 1 else process

    def _has_left_well(self, process: int, number: int) -> bool:
        """Whether a process left in that view, when all members had everything it had sent."""
        return self._settled[process] and self.next(process, number) is None


def is_member(process: Process, view: int) -> bool:
    """Whether a message to all in this view is also for this process, if nothing but its first view is known."""
    return process.first_view is None or process.first_view <= view


def crashed(lines: Sequence[Line], processes: Sequence[Process]) -> list[bool]:
    """By process, whether it crashed, so that it need not deliver and its messages need not be delivered. A process with missing
    rows may have crashed."""
    return [
        process.crashed or not process.complete or any(link.summary.crashed for link in line)
        for process, line in zip(processes, lines, strict=True)
    ]


def has_left(line: Line) -> bool:
    """Whether a process left, by its own rows. Rows of others about it prove nothing: a goodbye may be forged."""
    return any(link.summary.left for link in line)
