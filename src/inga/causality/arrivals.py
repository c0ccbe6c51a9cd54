"""Which numbers of a gap-free sequence have come, when they may come in any order."""

from collections.abc import Iterable

from inga.model.compiled import mypyc_attr
from inga.model.packet import Runs


@mypyc_attr(allow_interpreted_subclasses=True)
class Arrivals:
    """The numbers seen from one sender: all below `expected`, and those in `early`, with the bytes that came with each."""

    __slots__ = ("early", "early_bytes", "expected")

    def __init__(self) -> None:
        self.expected = 1
        self.early: dict[int, int] = {}
        self.early_bytes = 0

    def add(self, number: int, size: int = 0) -> bool:
        """Whether it is new. Numbers far ahead are the caller's business to refuse."""
        if number == self.expected:
            number += 1
            early = self.early
            while number in early:
                self.early_bytes -= early.pop(number)
                number += 1
            self.expected = number
            return True
        if number < self.expected or number in self.early:
            return False
        self.early[number] = size
        self.early_bytes += size
        return True

    def give_up(self) -> None:
        """What is missing will not come any more; if it does, it counts as a duplicate."""
        self.expected = max(self.early, default=self.expected - 1) + 1
        self.early.clear()
        self.early_bytes = 0

    def missing(self, below: int) -> Runs:
        """Maximal runs `[low, high)` of numbers under `below` that have not come."""
        return missing_runs(self.expected, self.early, below)


def numbers_in(runs: Runs, first: int, end: int, most: int) -> list[int]:
    """The numbers of these runs from `first` up to `end`, the first `most` of them."""
    numbers: list[int] = []
    for low, high in runs:
        numbers += range(max(low, first), min(high, end))[: most - len(numbers)]
    return numbers


def missing_runs(expected: int, early: Iterable[int], below: int) -> Runs:
    """Maximal runs `[low, high)` from `expected` up to `below` of what is not in `early`."""
    runs: list[tuple[int, int]] = []
    low = expected
    for number in sorted(early):
        if number >= below:
            break
        if number > low:
            runs.append((low, number))
        low = number + 1
    if low < below:
        runs.append((low, below))
    return tuple(runs)
