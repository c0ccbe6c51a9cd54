"""How far each member is known to have the messages of each sender, and how far all members have them.

There is one number for every sender and reporter: the reporter has all of the sender's messages below it. Numbers only
rise. The lowest number of each sender is stored: it is computed again only when the last reporter with the lowest
number has risen, so most rises cost one comparison.
"""

from collections.abc import Callable

from inga.model.compiled import mypyc_attr

SAME, RISEN, ALL_RISEN = range(3)
"""Results of `rise`: nothing new; the entry rose; the entry rose, and with it the lowest number of its sender."""

FIRST = 1
"""The number of a reporter that is not known to have any message: it expects the first one."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Knowledge:
    """`rows[sender][reporter]`, and `lowest[sender]` over the reporters that count for that sender."""

    __slots__ = ("_counted", "_counts", "_holding", "lowest", "rows")

    def __init__(
        self, members: int, counts: Callable[[int, int], bool] = lambda sender, reporter: True
    ) -> None:
        """`counts(sender, reporter)` says whether the reporter counts for the sender; if no reporter does, the sender itself counts."""
        self.rows = [[FIRST] * members for _ in range(members)]
        self.lowest = [FIRST] * members
        self._counts = [[counts(sender, r) for r in range(members)] for sender in range(members)]
        for sender, row in enumerate(self._counts):
            row[sender] = row[sender] or not any(row)
        self._counted = [[r for r, does in enumerate(row) if does] for row in self._counts]
        self._holding = [len(counted) for counted in self._counted]  # per sender, reporters at the lowest

    def rise(self, sender: int, reporter: int, number: int) -> int:
        """Note that the reporter has all messages of the sender below `number`."""
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
        """The reporters that count for the sender and are not known to have its message `number`."""
        row = self.rows[sender]
        return [reporter for reporter in self._counted[sender] if row[reporter] <= number]

    def forget(self, reporter: int) -> list[int]:
        """The reporter has departed and does not count any more. Returns the senders whose lowest number rose because of that."""
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
