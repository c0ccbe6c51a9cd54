"""What each member is known to have of each sender, and how far everybody is.

One number for every sender and reporter: the reporter has all of the sender's messages below it. Numbers only
rise. The lowest of each sender is kept as they do: it is looked for again only when the last of those who held
it back has moved, so a rise costs one comparison.
"""

from collections.abc import Callable

from inga.model.compiled import mypyc_attr

SAME, RISEN, ALL_RISEN = range(3)
"""Answers of `rise`: nothing new; the entry rose; and with it the lowest of its sender."""

FIRST = 1
"""Nothing is known to have come: the first message is expected."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Knowledge:
    """`rows[sender][reporter]`, and `lowest[sender]` over the reporters that count for that sender."""

    __slots__ = ("_counted", "_counts", "_holding", "lowest", "rows")

    def __init__(
        self, members: int, counts: Callable[[int, int], bool] = lambda sender, reporter: True
    ) -> None:
        """`counts(sender, reporter)` tells whose word is needed; if nobody's is, the sender's own."""
        self.rows = [[FIRST] * members for _ in range(members)]
        self.lowest = [FIRST] * members
        self._counts = [[counts(sender, r) for r in range(members)] for sender in range(members)]
        for sender, row in enumerate(self._counts):
            row[sender] = row[sender] or not any(row)
        self._counted = [[r for r, does in enumerate(row) if does] for row in self._counts]
        self._holding = [len(counted) for counted in self._counted]  # reporters that are at the lowest

    def rise(self, sender: int, reporter: int, number: int) -> int:
        """The reporter has everything of the sender below `number`."""
        row = self.rows[sender]
        old = row[reporter]
        if number <= old:
            return SAME
        row[reporter] = number
        if old != self.lowest[sender] or not self._counts[sender][reporter]:
            return RISEN
        self._holding[sender] -= 1
        if self._holding[sender]:
            return RISEN
        self._look(sender)
        return ALL_RISEN

    def lacking(self, sender: int, number: int) -> list[int]:
        """Those whose word is needed, and who are not known to have that message of the sender."""
        row = self.rows[sender]
        return [reporter for reporter in self._counted[sender] if row[reporter] <= number]

    def forget(self, reporter: int) -> list[int]:
        """The reporter is gone: nobody waits for its word. For which senders the lowest rose by that."""
        risen = []
        for sender, counted in enumerate(self._counted):
            if not self._counts[sender][reporter]:
                continue
            counted.remove(reporter)
            self._counts[sender][reporter] = False
            if not counted:
                counted.append(sender)
                self._counts[sender][sender] = True
            before = self.lowest[sender]
            self._look(sender)
            if self.lowest[sender] > before:
                risen.append(sender)
        return risen

    def _look(self, sender: int) -> None:
        row = self.rows[sender]
        numbers = [row[reporter] for reporter in self._counted[sender]]
        self.lowest[sender] = lowest = min(numbers)
        self._holding[sender] = numbers.count(lowest)
