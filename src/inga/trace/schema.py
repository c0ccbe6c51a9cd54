"""The columns of a trace, as code.

A trace row says what happened at one process. On disk a row is a line of a Parquet file with the columns
below; in memory it is a `Row`. Two columns are packed, so that one schema does for any number of
processes and numpy can read them without a loop:

    deps  n little-endian int32: how many messages of each process precede the message
    dst   a little-endian bit set over processes: bit i of byte i // 8 stands for process i

pyarrow and numpy are loaded only when a trace is really written or read: the simulator and live groups
start without them.
"""

import struct
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from inga.model.errors import UsageError
from inga.model.stamp import Deps
from inga.model.steps import CONTROL, FOREIGN, GROUP, MESSAGE, NETWORK, OBJECT, REPAIR, STEPS

STEP_NAMES = (*MESSAGE, *REPAIR, *CONTROL, *NETWORK, *GROUP, *OBJECT, *FOREIGN)
"""All steps in the order of their codes in files. Codes are private to a file: readers get names."""

RECEIPTS = ("accept", "deliver", "take")
"""The steps that can make a message a cause at its receiver; the manifest says which one does."""

COUNT_MAX = 2**31 - 1
"""What an entry of `deps` can hold."""


class Row(NamedTuple):
    """One event at one process. `dst` and `deps` are unpacked: a bit mask, and a count per process."""

    process: int
    pos: int
    time: int  # nanoseconds
    step: str
    view: int
    src: int | None = None
    seq: int | None = None
    dst: int | None = None
    deps: Deps | None = None
    height: int | None = None
    peer: int | None = None
    n: int | None = None
    op: str | None = None
    ref: str | None = None
    note: str | None = None


COLUMNS = Row._fields
REQUIRED = COLUMNS[:5]
"""The columns that are never null."""


def steps_left_out(full: bool, receipt: str | None) -> frozenset[str]:
    """The steps a trace of this level does not hold; while `receipt` is not known, any may be it."""
    if full:
        return frozenset()
    receipts = RECEIPTS if receipt is None else (receipt,)
    return STEPS - {"send", "deliver", *receipts, *GROUP}


def nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)


def pack_deps(deps: Sequence[int], n: int) -> bytes:
    """The vector as bytes for n processes; what a shorter one does not name counts as 0."""
    assert len(deps) <= n, f"{len(deps)} entries for {n} processes"
    return struct.pack(f"<{len(deps)}i", *deps).ljust(4 * n, b"\0")


def unpack_deps(data: bytes, n: int = 0) -> Deps:
    """The vector again, with zeros up to n entries."""
    entries = struct.unpack(f"<{len(data) // 4}i", data)
    return entries + (0,) * (n - len(entries))


def pack_dst(mask: int, n: int) -> bytes:
    return mask.to_bytes((n + 7) // 8, "little")


def unpack_dst(data: bytes) -> int:
    return int.from_bytes(data, "little")


@cache
def schema(n: int) -> Any:
    """The pyarrow schema of a segment written while there are n processes."""
    pa = load_pyarrow()
    types = {
        "process": pa.int32(),
        "pos": pa.int64(),
        "time": pa.int64(),
        "step": pa.dictionary(pa.int32(), pa.string()),
        "view": pa.int32(),
        "src": pa.int32(),
        "seq": pa.int64(),
        "dst": pa.binary(),
        "deps": pa.binary(4 * n),
        "height": pa.int64(),
        "peer": pa.int32(),
        "n": pa.int64(),
        "op": pa.string(),
        "ref": pa.string(),
        "note": pa.string(),
    }
    return pa.schema([pa.field(name, types[name], nullable=name not in REQUIRED) for name in COLUMNS])


def load_pyarrow() -> Any:
    """pyarrow, with its Parquet part and numpy; who lacks them is told what to install."""
    try:
        import numpy  # noqa: F401  (pyarrow can do without, we cannot)
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError as error:
        raise UsageError(
            "Traces on disk need pyarrow and numpy, which are not installed: pip install inga[spark]"
        ) from error
    return pyarrow
