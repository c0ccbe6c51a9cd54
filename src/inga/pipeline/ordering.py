"""Causal order for tables and streams of messages, as functions on DataFrames.

A table is sorted: heights grow along causality, so by (height, sender, number) causes come before effects. In a
stream, messages are held back: one state per group, one blob per state, as `Restorer` packs it.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np
import pyarrow as pa

from inga.certify.chunk import Bools, Ints
from inga.model.errors import UsageError
from inga.pipeline.restore import (
    NOBODY,
    Base,
    Marker,
    Restored,
    Restorer,
    read_heights,
    read_message,
    read_owner,
    read_places,
    vector_slices,
)
from inga.pipeline.session import equip
from inga.pipeline.surveying import ColumnNames, PartSummary, survey

ADDED = ("order", "concurrent", "gap")
UNKNOWN = -(1 << 63)  # in place of a height that is null
PART = "_inga_part"  # a column with the part of each row, while one group is sorted in parts
NUMBERS = ("int", "bigint", "smallint", "tinyint")
VECTORS = ("binary", "array<int>", "array<bigint>")

ROCKSDB = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


def keep_state_on_disk(session: Any) -> None:
    """Let streams of this session keep their state in RocksDB, and write only what changed to checkpoints."""
    for key, value in ROCKSDB.items():
        session.conf.set(key, value)


def causal_order(
    messages: Any,
    group: str | None = None,
    *,
    base: Base = (),
    give_up: float | None = None,
    src: str = "src",
    seq: str = "seq",
    deps: str = "deps",
    own: str | None = None,
) -> Any:
    """Put the messages of each group into causal order; works for tables and for streams.

    `messages` has a column for the sender (an index from 0), its number (from 1) and what precedes it (`deps`: per
    sender the highest number, as array or as little-endian int32). The result has all its columns and

        order       1, 2, 3, ... in the group: tables have no order of their own
        height      how many messages precede it, itself included, unless there is such a column
        concurrent  whether something before it did not cause it
        gap         whether something it names did not come before it

    Copies of a message, of one sender, number and height, are dropped. A stream waits for what is missing, at most `give_up` seconds if that is given;
    what is released then has `gap`, and so has what comes later all the same. A table is complete as it is. `base`
    are the counts per sender that were over before the first row, or "first": begin with the first number seen. `own`
    names a column with the index of the member that was given the messages of a group: its own need not be among them.
    """
    types = dict(messages.dtypes)
    _check_columns(types, group, src, seq, deps, own)
    if give_up is not None and not give_up >= 0:
        raise UsageError(f"give_up is a number of seconds, not {give_up!r}")
    base = _checked_base(base)
    names = ColumnNames(src, seq, deps, own)
    equip(messages.sparkSession)
    if messages.isStreaming:
        return _restore_stream(messages, group, base, give_up, names)
    return _restore_table(messages, group, base, names)


def _check_columns(
    types: dict[str, str], group: str | None, src: str, seq: str, deps: str, own: str | None
) -> None:
    kinds = [(src, NUMBERS), (seq, NUMBERS), (deps, VECTORS), (own, NUMBERS), (group, ())]
    if "height" in types:
        kinds.append(("height", NUMBERS))
    for name, wanted in kinds:
        if name is None:
            continue
        if name not in types:
            raise UsageError(f"there is no column {name!r}; there are {', '.join(types)}")
        if wanted and types[name] not in wanted:
            raise UsageError(f"column {name!r} is one of {', '.join(wanted)}, not {types[name]}")
    for name in ADDED:
        if name in types:
            raise UsageError(f"there is a column {name!r} already, which the result needs")


def _checked_base(base: Base) -> Base:
    if isinstance(base, str) and base == "first":
        return base
    if not isinstance(base, str):
        with suppress(TypeError):
            counts = tuple(index(count) for count in base)
            if all(0 <= count < 1 << 63 for count in counts):
                return counts
    raise UsageError(f'base is a list of counts from 0 on, or "first", not {base!r}')


def _result_schema(messages: Any) -> Any:
    from pyspark.sql.types import BooleanType, LongType, StructField, StructType

    fields = [*messages.schema.fields, StructField("order", LongType(), False)]
    if "height" not in messages.columns:
        fields.append(StructField("height", LongType(), False))
    return StructType([*fields, *(StructField(name, BooleanType(), False) for name in ADDED[1:])])


# ---- tables


def _restore_table(messages: Any, group: str | None, base: Base, names: ColumnNames) -> Any:
    from pyspark.sql import functions as F

    src, seq, deps, _ = names
    schema = _result_schema(messages)
    if "height" not in messages.columns:
        messages = messages.withColumn("height", _height(messages, src, seq, deps))
    columns = [F.col(name) for name in ("height", src, seq)]
    order = [field.name for field in schema.fields]
    if group is not None:
        placed = messages.repartition(F.col(group)).sortWithinPartitions(F.col(group), *columns)
        begin = _each_anew(base)
    elif bounds := (found := survey(messages, names)).bounds():
        group, begin = _free_name(PART, messages.columns), _carried(base, found.summaries(bounds))
        placed = messages.withColumn(group, _part(bounds)).repartitionById(len(bounds) + 1, group)
        placed = placed.sortWithinPartitions(group, *columns)
    else:
        placed, begin = messages.coalesce(1).sortWithinPartitions(*columns), _each_anew(base)

    def number(batches: Iterator[Any]) -> Iterator[Any]:
        for _, part, run in _numbered(batches, group, begin, names):
            added = {
                "order": pa.array(np.arange(run.order + 1 - part.num_rows, run.order + 1)),
                "concurrent": pa.array(run.concurrent),
                "gap": pa.array(run.gap),
            }
            arrays = [added[name] if name in added else part.column(name) for name in order]
            yield pa.RecordBatch.from_arrays(arrays, names=order)

    return placed.mapInArrow(number, schema)


def _free_name(name: str, taken: list[str]) -> str:
    """That name, or a longer one that no column has. Spark does not distinguish upper and lower case."""
    while name in map(str.lower, taken):
        name += "_"
    return name


def _part(bounds: list[int]) -> Any:
    from pyspark.sql import functions as F

    beyond = [(F.col("height") >= bound).cast("int") for bound in bounds]
    return F.coalesce(sum(beyond[1:], beyond[0]), F.lit(0))


Begin = Callable[[tuple[Any, ...], int], "NumberingRun"]
"""Returns what the numbering of a group, or of a part of one, begins with: given its key, and the member that received it."""


@dataclass(slots=True)
class NumberingRun:
    """The state of numbering a group."""

    marker: Marker
    order: int = 0
    last: tuple[int, ...] | None = None
    concurrent: Any = None  # of the rows that were numbered last
    gap: Any = None


def _each_anew(base: Base) -> Begin:
    return lambda key, own: NumberingRun(Marker.of(base, own))


def _carried(base: Base, summaries: list[PartSummary]) -> Begin:
    def begin(key: tuple[Any, ...], own: int) -> NumberingRun:
        run = NumberingRun(Marker.of(base, own))
        for each in summaries[: key[0]]:
            run.order += each.messages
            run.marker.pass_over(each.came, each.named)
        return run

    return begin


def _height(messages: Any, src: str, seq: str, deps: str) -> Any:
    """A column with the messages in the past, itself included; the sender's own entry may or may not count the message."""
    from pyspark.sql import functions as F

    if dict(messages.dtypes)[deps] != "binary":
        long = F.transform(F.col(deps), lambda count: count.cast("bigint"))
        total = F.aggregate(long, F.lit(0).cast("bigint"), lambda sum_, count: sum_ + count)
        own = F.coalesce(F.get(F.col(deps), F.col(src).cast("int")), F.lit(0))
        return F.col(seq) + total - own

    heights = F.udf(lambda src, seq, deps: read_message(src, seq, deps).height, "bigint")
    return heights(F.col(src), F.col(seq), F.col(deps))


def _numbered(
    batches: Iterator[Any], group: str | None, begin: Begin, names: ColumnNames
) -> Iterator[tuple[tuple[Any, ...], Any, NumberingRun]]:
    """Go through sorted rows, group after group: drop copies, number and mark the others."""
    src, seq, deps, own = names
    key, run = None, None
    for batch in batches:
        for part_key, part in _runs(batch, group):
            if run is None or part_key != key:
                whose = NOBODY if own is None else read_owner(part.column(own)[0].as_py())
                key, run = part_key, begin(part_key, whose)
            sources, numbers = read_places(part.column(src), part.column(seq))
            # Copies have the same height, too: a number that was used twice is two messages, perhaps in two parts.
            rows = np.stack([read_heights(part.column("height"), UNKNOWN), sources, numbers], axis=1)
            is_new = np.append(tuple(rows[0].tolist()) != run.last, (rows[1:] != rows[:-1]).any(axis=1))
            run.last = tuple(rows[-1].tolist())
            if not is_new.all():
                part, sources, numbers = part.filter(pa.array(is_new)), sources[is_new], numbers[is_new]
            run.concurrent, run.gap = _marked(run.marker, sources, numbers, part.column(deps))
            run.order += part.num_rows
            yield part_key, part, run


def _marked(marker: Marker, sources: Ints, numbers: Ints, deps: Any) -> tuple[Bools, Bools]:
    nothing = np.zeros(0, np.bool_)
    marks, at = [(nothing, nothing)], 0
    for vectors in vector_slices(deps):
        end = at + len(vectors)
        marks.append(marker.mark(sources[at:end], numbers[at:end], vectors))
        at = end
    return np.concatenate([each for each, _ in marks]), np.concatenate([each for _, each in marks])


def _runs(batch: Any, group: str | None) -> Iterator[tuple[Any, Any]]:
    """The rows of each group in a batch, which lie side by side."""
    if not batch.num_rows:
        return
    if group is None:
        yield (), batch
        return
    column = batch.column(group)
    if column[0].as_py() == (key := column[-1].as_py()):  # they are sorted, so all are the same
        yield (key,), batch
        return
    keys = column.to_pylist()
    begin = 0
    for at in range(1, len(keys) + 1):
        if at == len(keys) or keys[at] != keys[begin]:
            yield (keys[begin],), batch.slice(begin, at - begin)
            begin = at


# ---- streams


def _restore_stream(
    messages: Any, group: str | None, base: Base, give_up: float | None, names: ColumnNames
) -> Any:
    from pyspark.sql import functions as F
    from pyspark.sql.streaming.state import GroupStateTimeout
    from pyspark.sql.types import StructField, StructType

    # As one value, a row passes through pandas unchanged. Its columns would not: integers beside nulls
    # would become floats, and times would have to be converted back from the session's time zone.
    key = F.lit(0) if group is None else F.col(f"`{group}`")
    packed = messages.select(key.alias("group"), F.struct(*messages.columns).alias("row"))
    added = [field for field in _result_schema(messages).fields if field.name not in messages.columns]
    restored = packed.groupBy("group").applyInPandasWithState(
        _restorer([field.name for field in added], base, give_up, names),
        outputStructType=StructType([StructField("row", messages.schema), *added]),
        stateStructType="blob binary",
        outputMode="append",
        timeoutConf=(
            GroupStateTimeout.NoTimeout if give_up is None else GroupStateTimeout.ProcessingTimeTimeout
        ),
    )
    return restored.select("row.*", *[field.name for field in added])


def _restorer(
    added: list[str], base: Base, give_up: float | None, names: ColumnNames
) -> Callable[[Any, Iterator[Any], Any], Iterator[Any]]:
    """The function that Spark applies to one group of one micro-batch."""
    src, seq, deps, own = names
    patience = None if give_up is None else give_up * 1000

    def restore(key: Any, frames: Iterator[Any], state: Any) -> Iterator[Any]:
        import pandas as pd

        now = state.getCurrentProcessingTimeMs()
        rows = [row for frame in frames for row in frame["row"].tolist()]
        whose = NOBODY if own is None or not rows else read_owner(rows[0][own])
        restorer = Restorer.loads(bytes(state.get[0])) if state.exists else Restorer(base, whose)
        released = restorer.offer([read_message(row[src], row[seq], row[deps], row) for row in rows], now)
        if patience is not None:
            released += restorer.give_up(now - patience)
        if released:
            found = pd.DataFrame(released, columns=list(Restored._fields))
            yield found[["row", *added]]
        state.update((restorer.dumps(),))
        oldest = restorer.oldest()
        if patience is not None and oldest is not None:
            state.setTimeoutDuration(int(max(oldest + patience - now, 1)))

    return restore
