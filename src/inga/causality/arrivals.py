"""Which numbers of a sequence without gaps have arrived, where they may arrive in any order."""

from collections.abc import Iterable

from inga.model.compiled import mypyc_attr
from inga.model.packet import Runs


@mypyc_attr(allow_interpreted_subclasses=True)
class Arrivals:
    """The numbers that arrived from one sender: all below `expected`, and those in `early`, each with the bytes that came with it."""

    __slots__ = ("early", "early_bytes", "expected")

    def __init__(self) -> None:
        self.expected = 1
        self.early: dict[int, int] = {}
        self.early_bytes = 0

    def add(self, number: int, size: int = 0) -> bool:
        """Add a number that arrived with `size` bytes; whether it is new. The caller refuses numbers that are too far ahead."""
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
        """Stop expecting the missing numbers below the highest one that arrived. One that arrives later counts as a duplicate."""
        self.expected = max(self.early, default=self.expected - 1) + 1
        self.early.clear()
        self.early_bytes = 0

    def missing(self, below: int) -> Runs:
        """The maximal runs `[low, high)` of numbers under `below` that have not arrived."""
        return missing_runs(self.expected, self.early, below)


def numbers_in(runs: Runs, first: int, end: int, most: int) -> list[int]:
    """The numbers in these runs from `first` on and below `end`, at most the first `most` of them."""
    numbers: list[int] = []
    for low, high in runs:
        numbers += range(max(low, first), min(high, end))[: most - len(numbers)]
    return numbers


def missing_runs(expected: int, early: Iterable[int], below: int) -> Runs:
    """The maximal runs `[low, high)` of numbers from `expected` on and under `below` that are not in `early`."""
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
