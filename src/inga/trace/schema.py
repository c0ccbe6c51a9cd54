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
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_type_hints

from inga.model.errors import TraceError, UsageError
from inga.model.stamp import Deps
from inga.model.steps import CONTROL, FOREIGN, GROUP, MESSAGE, NETWORK, OBJECT, REPAIR, STEPS

STEP_NAMES = (*MESSAGE, *REPAIR, *CONTROL, *NETWORK, *GROUP, *OBJECT, *FOREIGN)
"""All steps in the order of their codes in files. Codes are private to a file: readers get names."""

RECEIPTS = ("accept", "deliver", "take")
"""The steps that can make a message a cause at its receiver; the manifest says which one does."""

SECONDS_MAX = 2**63 // 10**9 - 1
"""The largest time in seconds that fits the column `time` in nanoseconds: the year 2262."""

COUNT_MAX = 2**31 - 1
"""The largest count that an entry of `deps` can hold."""


class ColumnKind(NamedTuple):
    """The types of a column, and its encoding in files."""

    arrow: Callable[[Any, int], Any]  # from pyarrow and the number of processes to the Arrow type
    spark: str  # the type in Spark; vectors of several widths, from a trace that grew, are all binary
    encoding: Literal["dictionary", "delta", "plain"] = "dictionary"  # in files: most columns repeat


_INT32 = ColumnKind(lambda pa, n: pa.int32(), "int")
_INT64 = ColumnKind(lambda pa, n: pa.int64(), "bigint")
_STRING = ColumnKind(lambda pa, n: pa.string(), "string")
Index = Annotated[int, _INT32]
Rising = Annotated[int, _INT64._replace(encoding="delta")]  # mostly counts up
Name = Annotated[str, ColumnKind(lambda pa, n: pa.dictionary(pa.int32(), pa.string()), "string")]
Mask = Annotated[int, ColumnKind(lambda pa, n: pa.binary(), "binary")]
Vector = Annotated[Deps, ColumnKind(lambda pa, n: pa.binary(4 * n), "binary", "plain")]
Number = Annotated[int, _INT64]
Text = Annotated[str, _STRING]


class Row(NamedTuple):
    """One event at one process: the columns of a trace. Their Arrow and Spark types are derived from these annotations.

    `dst` and `deps` are unpacked here: a bit mask, and a count per process.
    """

    process: Index
    pos: Rising
    time: Rising  # nanoseconds
    step: Name
    view: Index
    src: Index | None = None
    seq: Rising | None = None
    dst: Mask | None = None
    deps: Vector | None = None
    height: Rising | None = None
    peer: Index | None = None
    n: Number | None = None
    op: Text | None = None
    ref: Text | None = None
    note: Text | None = None


def _kind_of(hint: Any) -> ColumnKind:
    kind: ColumnKind = next(
        each for each in (hint, *get_args(hint)) if hasattr(each, "__metadata__")
    ).__metadata__[0]
    return kind


COLUMNS = Row._fields
KINDS = {name: _kind_of(hint) for name, hint in get_type_hints(Row, include_extras=True).items()}
REQUIRED = [name for name in COLUMNS if name not in Row._field_defaults]
"""The columns that are never null."""


def steps_left_out(full: bool, receipt: str | None) -> frozenset[str]:
    """The steps that a trace of this level omits. If `receipt` is None, all steps that may be the receipt step are kept."""
    if full:
        return frozenset()
    receipts = RECEIPTS if receipt is None else (receipt,)
    return STEPS - {"send", "deliver", *receipts, *GROUP}


def nanoseconds(seconds: float) -> int:
    check_seconds(seconds)
    return round(seconds * 1e9)


def check_seconds(seconds: float) -> None:
    """Refuse a time that the column `time` cannot hold: NaN, or one that was given in a smaller unit than seconds."""
    if not abs(seconds) <= SECONDS_MAX:
        raise TraceError(
            f"A row has the time {seconds}: times are seconds, and at most {SECONDS_MAX:,} of them."
        )


def pack_deps(deps: Sequence[int], n: int) -> bytes:
    """Pack a vector into bytes for n processes. The entries that a shorter vector lacks are 0."""
    assert len(deps) <= n, f"{len(deps)} entries for {n} processes"
    return struct.pack(f"<{len(deps)}i", *deps).ljust(4 * n, b"\0")


def unpack_deps(data: bytes, n: int = 0) -> Deps:
    """Unpack a vector, padded with zeros to n entries."""
    entries = struct.unpack(f"<{len(data) // 4}i", data)
    return entries + (0,) * (n - len(entries))


def pack_dst(mask: int, n: int) -> bytes:
    """Pack a bit mask of processes into the bytes of the column `dst`."""
    return mask.to_bytes((n + 7) // 8, "little")


def unpack_dst(data: bytes) -> int:
    """Unpack the column `dst` into a bit mask of processes."""
    return int.from_bytes(data, "little")


@cache
def schema(n: int) -> Any:
    """The pyarrow schema of a segment written while there are n processes."""
    pa = load_pyarrow()
    return pa.schema(
        [pa.field(name, kind.arrow(pa, n), nullable=name not in REQUIRED) for name, kind in KINDS.items()]
    )


def spark_schema(columns: Iterable[str]) -> str:
    """The Spark schema of some columns, as DDL text."""
    return ", ".join(f"{name} {KINDS[name].spark}" for name in columns)


def load_pyarrow() -> Any:
    """Import pyarrow with its Parquet part, and numpy. If one is missing, the `UsageError` says what to install."""
    try:
        import numpy  # noqa: F401  (pyarrow can do without, we cannot)
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError as error:
        raise UsageError(
            "traces on disk need pyarrow and numpy, which are not installed: pip install 'inga[trace]'"
        ) from error
    return pyarrow
