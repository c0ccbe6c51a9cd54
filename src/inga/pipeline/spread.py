"""Distributions that can be added up: how often each value occurred on each of many lines of a table.

A task makes one from the values it reads, and sends that instead of the values. A line with few different values keeps them
exactly. A line with more of them than `exact_max` keeps the leading bits of each, as a floating-point number does, so
that its size is bounded and percentiles are off by a known share at most. Counts, sums and extremes stay exact.

The result for a line depends on all its values together, not on how they were distributed over tasks: no part of them can have
more different values than all of them, so a part is never coarser than the whole.

Rejected: sketches that bound the error of ranks (Greenwald and Khanna, KLL, t-digest). Their answers depend on the order
in which they are merged, and far out, at the 99th percentile and beyond, ranks say little about values.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inga.certify.chunk import Bools, Ints

Floats = NDArray[np.float64]
KEY_BITS, KEY_MAX = 62, 2**62


class Resolution(NamedTuple):
    """How much a line keeps: up to `exact_max` different values exactly, of more than these the leading `bits` of each."""

    exact_max: int
    bits: int


FINE = Resolution(4096, 12)  # off by 1 in 4,096 at most
COARSE = Resolution(256, 7)  # off by 1 in 128 at most


@dataclass(frozen=True, slots=True)
class Spread:
    """Lines in ascending order, each with its different values in ascending order and how often each occurred."""

    resolution: Resolution
    line: Ints  # the names of lines
    rounded: Bools  # whether the values of a line are rounded
    count: Ints
    total: Floats
    low: Ints
    high: Ints
    begins: Ints  # the index of a line's first value; one more entry with the number of all values
    value: Ints
    weight: Ints

    @classmethod
    def of(cls, resolution: Resolution, line: Ints, value: Ints) -> "Spread":
        """The spread of values, each on its line."""
        line, value, weight = _counted(line, value, None)
        starts = _starts(line)
        begins = np.append(starts, len(line))
        if not len(line):
            none = np.zeros(0, np.int64)
            return cls(resolution, none, none > 0, none, np.zeros(0), none, none, begins, value, weight)
        return cls(
            resolution, line[starts], np.zeros(len(starts), np.bool_), np.add.reduceat(weight, starts),
            np.add.reduceat(value * weight.astype(np.float64), starts), value[starts], value[begins[1:] - 1],
            begins, value, weight,
        )._bounded()  # fmt: skip

    @classmethod
    def sum(cls, parts: Sequence["Spread"]) -> "Spread":
        """The sum of spreads, of which there is at least one."""

        def column(name: str) -> Any:
            return np.concatenate([getattr(part, name) for part in parts])

        sizes = np.concatenate([np.diff(part.begins) for part in parts])
        begins = np.append(0, np.cumsum(sizes))
        side_by_side = Spread(
            parts[0].resolution, column("line"), column("rounded"), column("count"), column("total"),
            column("low"), column("high"), begins, column("value"), column("weight"),
        )  # fmt: skip
        return side_by_side.renamed(side_by_side.line)

    def renamed(self, names: Ints) -> "Spread":
        """The same with other names of lines; lines of one name are merged."""
        line, where = np.unique(names, return_inverse=True)
        rounded = np.zeros(len(line), np.bool_)
        rounded[where[self.rounded]] = True
        count, total = np.zeros(len(line), np.int64), np.zeros(len(line))
        np.add.at(count, where, self.count)
        np.add.at(total, where, self.total)
        low, high = np.full(len(line), KEY_MAX), np.full(len(line), -KEY_MAX)
        np.minimum.at(low, where, self.low)
        np.maximum.at(high, where, self.high)
        at = np.repeat(where, np.diff(self.begins))
        value = np.where(rounded[at], rounded_down(self.value, self.resolution.bits), self.value)
        at, value, weight = _counted(at, value, self.weight)
        begins = np.append(_starts(at), len(at))
        return Spread(
            self.resolution, line, rounded, count, total, low, high, begins, value, weight
        )._bounded()

    def percentile(self, share: float) -> Ints:
        """For each line, the least value that is not exceeded by at least this share of its values."""
        upto = np.cumsum(self.weight)
        before = np.append(0, upto)[self.begins[:-1]]
        rank = np.maximum(np.ceil(share * self.count), 1).astype(np.int64)
        value = self.value[np.searchsorted(upto, before + rank)]
        middle = value + np.sign(value) * (_unit(value, self.resolution.bits) // 2)
        found: Ints = np.where(self.rounded, np.clip(middle, self.low, self.high), value)
        return found

    def _bounded(self) -> "Spread":
        """The same, with rounded values on lines that have too many different ones."""
        many = ~self.rounded & (np.diff(self.begins) > self.resolution.exact_max)
        if not many.any():
            return self
        at = np.repeat(np.arange(len(self.line)), np.diff(self.begins))
        value = np.where(many[at], rounded_down(self.value, self.resolution.bits), self.value)
        at, value, weight = _joined(at, value, self.weight)  # rounding keeps them in order
        begins = np.append(_starts(at), len(at))
        return replace(self, rounded=self.rounded | many, begins=begins, value=value, weight=weight)


def rounded_down(value: Ints, bits: int) -> Ints:
    """Keep only the leading bits of values, rounding towards zero. This is idempotent, and order is kept."""
    unit = _unit(value, bits)
    found: Ints = np.sign(value) * (np.abs(value) // unit * unit)
    return found


def _unit(value: Ints, bits: int) -> Ints:
    """The distance between neighbouring rounded values of the size of these."""
    length = np.frexp(np.abs(value).astype(np.float64))[1]
    unit: Ints = np.left_shift(np.int64(1), np.maximum(length - bits, 0).astype(np.int64))
    return unit


def _counted(line: Ints, value: Ints, weight: Ints | None) -> tuple[Ints, Ints, Ints]:
    """Pairs in ascending order, each once, with the sum of its weights; without weights each counts 1."""
    if not len(line):
        return line, value, np.zeros(0, np.int64)
    first, base = int(line.min()), int(value.min())
    bits = (int(value.max()) - base).bit_length()
    if (int(line.max()) - first).bit_length() + bits < KEY_BITS:
        key = (line - first) << bits | (value - base)  # sorting one number is several times faster than two
        if weight is None:
            key.sort()
        else:
            order = np.argsort(key)
            key, weight = key[order], weight[order]
        line, value = first + (key >> bits), base + (key & ((1 << bits) - 1))
    else:
        order = np.lexsort((value, line))
        line, value = line[order], value[order]
        weight = None if weight is None else weight[order]
    return _joined(line, value, np.ones(len(line), np.int64) if weight is None else weight)


def _joined(line: Ints, value: Ints, weight: Ints) -> tuple[Ints, Ints, Ints]:
    """Merge equal neighbours."""
    if not len(line):
        return line, value, weight
    starts = np.flatnonzero(np.append(True, (np.diff(line) != 0) | (np.diff(value) != 0)))
    return line[starts], value[starts], np.add.reduceat(weight, starts)


def _starts(line: Ints) -> Ints:
    return np.flatnonzero(np.append(True, np.diff(line) != 0)) if len(line) else np.empty(0, np.int64)
