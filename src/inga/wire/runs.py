"""Ranges of sequence numbers, as in requests for packets: their count, then for each the gap to the range before it, and its
length."""

from inga.model.errors import WireError
from inga.model.packet import Buffer, Runs
from inga.wire import varint

RUNS_MAX = 1 << 10
"""The most ranges in one packet."""


def put_runs(out: bytearray, runs: Runs) -> None:
    """Append ranges, which are in ascending order and do not overlap."""
    varint.put(out, len(runs))
    previous = 0
    for low, high in runs:
        varint.put(out, low - previous)
        varint.put(out, high - low)
        previous = high


def get_runs(data: Buffer, at: int) -> tuple[Runs, int]:
    """The ranges, and the offset behind them."""
    count, at = varint.get(data, at)
    if count > RUNS_MAX:
        raise WireError("malformed", f"{count} runs")
    runs = []
    high = 0
    for _ in range(count):
        gap, at = varint.get(data, at)
        length, at = varint.get(data, at)
        if not length:
            raise WireError("malformed", "an empty run")
        runs.append((high + gap, high + gap + length))
        high += gap + length
    return tuple(runs), at
