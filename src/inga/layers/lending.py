"""Lending packets of a departed member: which numbers each survivor has, and which survivor lends them to which other.

The last packets of a departed member may have reached only some of the survivors. Each survivor reports which numbers it
has; the leader of the view change decides which member lends which numbers to which other; afterwards
all have every packet that any of them had. A packet to a subset of the group reached the other members as a bare header. Such a
header is lent only if no survivor has the body: then the message is lost, but its number still counts.

On the wire, each row is three numbers: holdings are (first, last + 1, whether these are bare), dealings (holder, first, last + 1).
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import count
from typing import ClassVar

from inga.causality.arrivals import missing_runs
from inga.model.compiled import mypyc_attr, trait
from inga.model.errors import WireError
from inga.model.packet import Packet, Runs
from inga.stack.hooks import SPREAD_MAX, Holdings
from inga.stack.stack import Stack


@trait
@mypyc_attr(allow_interpreted_subclasses=True)
class NumberedLender:
    """The hooks of a lender (`hooks.Lender`) for a layer in which all members know a packet by the same number. The layer says which
    numbers have arrived, and which packets it has kept."""

    stack: Stack
    takes_gapless: ClassVar[bool] = False
    """Whether the layer accepts the packets of a sender only in the order of their numbers."""

    def _came(self, member: int) -> tuple[int, Collection[int]]:
        """The numbers of a member's packets that have arrived: all below the first value, and those in the second."""
        raise NotImplementedError

    def _kept_of(self, member: int) -> Mapping[int, Packet]:
        """Kept packets of a member by number: all that another member may lack, and perhaps more."""
        raise NotImplementedError

    def come(self, counts: list[int]) -> bool:
        return all(self._came(member)[0] > counts[member] for member in self.stack.peers)

    def holdings(self, member: int) -> Holdings:
        bare = [number for number, packet in self._kept_of(member).items() if packet.bare]
        return holdings(*self._came(member), bare)

    def deal(self, held: Mapping[int, Holdings]) -> dict[int, Holdings]:
        return deal(held, is_gapless=self.takes_gapless)

    def lacking(self, member: int, dealt: Holdings) -> dict[int, Runs]:
        expected, early = self._came(member)
        return lacking(dealt, lambda number: number < expected or number in early)

    def lend(self, member: int, runs: Runs, to: int) -> list[Packet]:
        kept = self._kept_of(member).items()
        return [packet for number, packet in kept if any(low <= number < high for low, high in runs)]


def holdings(expected: int, early: Iterable[int], bare: Iterable[int]) -> Holdings:
    """Rows for all numbers below `expected` and those in `early`, of which those in `bare` arrived without their bodies."""
    early, bare = sorted(early), set(bare)
    below = max(early, default=expected - 1) + 1
    rows: Holdings = []
    low = 1
    for hole_low, hole_high in (*missing_runs(expected, early, below), (below, below)):
        rows += _parted(low, hole_low, bare)
        low = hole_high
    return rows


def _parted(low: int, high: int, bare: set[int]) -> Holdings:
    """Rows for a run of numbers, cut where bare headers begin and end."""
    rows: Holdings = []
    for number in sorted(each for each in bare if low <= each < high):
        if number > low:
            rows.append([low, number, 0])
        rows.append([number, number + 1, 1])
        low = number + 1
    if high > low:
        rows.append([low, high, 0])
    return rows


def deal(held: Mapping[int, Holdings], *, is_gapless: bool = False) -> dict[int, Holdings]:
    """For each member, the numbers that it lacks and another member has, and which member lends them. If packets are accepted only
    without gaps (`is_gapless`), leave out numbers beyond the first that no member has: these packets can never be accepted, and a
    member that knows this has dropped them."""
    base = min(_first_hole(rows) for rows in held.values())
    numbers: dict[int, set[int]] = {}
    # By number, a member that has the body; and a member that has the bare header.
    holders: tuple[dict[int, int], dict[int, int]] = ({}, {})
    for member, rows in sorted(held.items()):
        mine = numbers[member] = set()
        for low, high, bare in rows:
            if high > base + SPREAD_MAX or bare not in (0, 1):
                raise WireError("malformed", "holdings that nobody can have")
            for number in range(max(low, base), high):
                mine.add(number)
                holders[bare].setdefault(number, member)
    whole = holders[1] | holders[0]
    if is_gapless:
        hole = next(number for number in count(base) if number not in whole)
        whole = {number: holder for number, holder in whole.items() if number < hole}
    return {
        member: _joined((whole[number], number) for number in sorted(whole.keys() - mine))
        for member, mine in numbers.items()
    }


def _first_hole(rows: Holdings) -> int:
    end = 1
    for low, high, _ in sorted(rows):
        if low > end:
            break
        end = max(end, high)
    return end


def _joined(pairs: Iterable[tuple[int, int]]) -> Holdings:
    """Rows of (holder, number) pairs, in which consecutive numbers of one holder are joined."""
    rows: Holdings = []
    for holder, number in pairs:
        if rows and rows[-1][0] == holder and rows[-1][2] == number:
            rows[-1][2] = number + 1
        else:
            rows.append([holder, number, number + 1])
    return rows


def lacking(dealt: Holdings, has: Callable[[int], bool]) -> dict[int, Runs]:
    """By holder, the numbers that the holder is to lend us and that have not arrived yet."""
    wanted: dict[int, list[tuple[int, int]]] = {}
    left = SPREAD_MAX  # bounds the work: this runs for every arrival, and a leader may deal anything
    for holder, low, high in dealt:
        some = range(low, min(high, low + left))
        left -= len(some)
        for number in some:
            if not has(number):
                runs = wanted.setdefault(holder, [])
                if runs and runs[-1][1] == number:
                    runs[-1] = (runs[-1][0], number + 1)
                else:
                    runs.append((number, number + 1))
    return {holder: tuple(runs) for holder, runs in wanted.items()}
