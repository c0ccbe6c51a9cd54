"""Rows to columns and back: the conversion between Python values and Arrow arrays.

The expensive part of tracing is here. It handles a few thousand rows at a time and, in a live member, runs in another thread.
"""

from collections.abc import Iterator
from itertools import groupby, starmap
from struct import Struct, iter_unpack
from typing import Any

from inga.model.stamp import Deps
from inga.trace.numbering import Frame, Numbering
from inga.trace.rows import FIELDS, VIEW, WIDTH, RowCells
from inga.trace.schema import (
    COUNT_MAX,
    SECONDS_MAX,
    STEP_NAMES,
    Row,
    check_seconds,
    load_pyarrow,
    pack_dst,
    unpack_dst,
)

_CODES = {name: code for code, name in enumerate(STEP_NAMES)}


def to_batches(
    cells: RowCells, process: int, first: int, numbering: Numbering, schema: Any, origin: int = 0
) -> Iterator[Any]:
    """Convert rows to record batches, one for each run of rows with the same frame. Positions start at `first`; `origin`
    nanoseconds are added to times."""
    views = cells[VIEW::WIDTH]
    frame = numbering.frame(min(views))
    if frame is numbering.frame(max(views)):
        yield _to_batch(cells, process, first, frame, schema, origin)
        return
    start = 0
    for frame, run in groupby(map(numbering.frame, views)):
        end = start + sum(1 for _ in run)
        part = cells[start * WIDTH : end * WIDTH]
        yield _to_batch(part, process, first + start, frame, schema, origin)
        start = end


def _to_batch(cells: RowCells, process: int, first: int, frame: Frame, schema: Any, origin: int) -> Any:
    import numpy as np

    pa = load_pyarrow()
    given = {field: cells[at::WIDTH] for at, field in enumerate(FIELDS)}
    if not frame.is_plain:
        given["seq"] = list(map(frame.seq, given["src"], given["seq"]))
        given["src"] = list(map(frame.process, given["src"]))
        given["peer"] = list(map(frame.process, given["peer"]))
    count, n = len(given["step"]), schema.field("deps").type.byte_width // 4
    vectors, heights = _deps_columns(given["deps"], given["height"], n, frame)
    made = {
        "process": pa.array(np.full(count, process, np.int32)),
        "pos": pa.array(np.arange(first, first + count, dtype=np.int64)),
        "time": pa.array(_nanoseconds(np.array(given["now"], np.float64), origin)),
        "step": _step_column(given["step"]),
        "src": _index_column(given["src"], n),
        "dst": _dst_column(given["dst"], n, frame),
        "deps": vectors,
        "height": heights,
        "peer": _index_column(given["peer"], n),
    }
    columns = [
        made[field.name] if field.name in made else _column(given[field.name], field.type) for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _nanoseconds(seconds: Any, origin: int) -> Any:
    import numpy as np

    since = seconds + origin / 1e9
    check_seconds(
        since.flat[np.argmax(~(np.abs(since) <= SECONDS_MAX))]
    )  # the first time that is out of range; if none is, argmax returns 0 and a valid time passes
    return np.rint(seconds * 1e9).astype(np.int64) + origin


def _step_column(steps: list[str]) -> Any:
    import numpy as np

    pa = load_pyarrow()
    try:
        codes = np.frombuffer(bytes(map(_CODES.__getitem__, steps)), np.uint8)
    except KeyError as error:
        raise AssertionError(f"there is no step {error}") from None
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(STEP_NAMES))


def _column(values: list[Any], kind: Any) -> Any:
    pa = load_pyarrow()
    if values.count(None) == len(values):
        return pa.nulls(len(values), kind)
    return pa.array(values, kind)


def _index_column(values: list[int | None], n: int) -> Any:
    pa = load_pyarrow()
    column = _column(values, pa.int32())
    if column.null_count < len(column):
        bounds = pa.compute.min_max(column).as_py()
        assert bounds["min"] >= 0 and bounds["max"] < n, f"{bounds} are not indices of {n} processes"
    return column


def _dst_column(masks: list[int | None], n: int, frame: Frame) -> Any:
    pa = load_pyarrow()
    if masks.count(None) == len(masks):
        return pa.nulls(len(masks), pa.binary())
    # Groups address few different sets, so each is packed once.
    packed: dict[int | None, bytes | None] = {None: None}
    for mask in set(masks) - {None}:
        renamed = mask if frame.is_plain else frame.mask(mask)
        assert mask is not None and renamed is not None
        assert not renamed >> n, f"dst has a bit for process {renamed.bit_length() - 1} of {n}"
        packed[mask] = pack_dst(renamed, n)
    return pa.array([packed[mask] for mask in masks], pa.binary())


def _deps_columns(deps: list[Deps | None], height: list[int | None], n: int, frame: Frame) -> tuple[Any, Any]:
    """The vectors as fixed binary, and their heights. A row without a vector keeps the height it was given."""
    import numpy as np

    pa = load_pyarrow()
    if not frame.is_plain:
        height = list(map(frame.height, height))
    vectors = [vector for vector in deps if vector is not None]
    if not vectors:
        return pa.nulls(len(deps), pa.binary(4 * n)), _column(height, pa.int64())
    matrix = _matrix(vectors, n, frame)
    sums = matrix.sum(axis=1, dtype=np.int64) + 1
    if len(vectors) == len(deps):
        return fixed_binary(matrix, None), pa.array(sums)
    present = np.array([vector is not None for vector in deps])
    table = np.zeros((len(deps), n), "<i4")
    table[present] = matrix
    known = iter(sums.tolist())
    heights = [given if vector is None else next(known) for vector, given in zip(deps, height, strict=True)]
    return fixed_binary(table, present), pa.array(heights, pa.int64())


def _matrix(vectors: list[Deps], n: int, frame: Frame) -> Any:
    """A matrix with one row of n counts for each vector, in the numbering of the run."""
    import numpy as np

    members = len(frame.indices)
    lengths = set(map(len, vectors))
    assert max(lengths) <= members, f"deps has {max(lengths)} entries, but there are {members} members"
    if lengths != {members}:
        vectors = [vector + (0,) * (members - len(vector)) for vector in vectors]
    pack = Struct(f"<{members}i").pack
    matrix = np.frombuffer(b"".join(starmap(pack, vectors)), "<i4").reshape(-1, members)
    if frame.is_plain and members == n:
        return matrix
    wide = np.zeros((len(vectors), n), np.int64)
    wide[:, : len(frame.offsets)] = frame.offsets
    wide[:, frame.indices] += matrix
    assert wide.max() <= COUNT_MAX, f"a count of {wide.max()} does not fit deps"
    return wide.astype("<i4")


def fixed_binary(matrix: Any, present: Any) -> Any:
    """A fixed-size binary array over the rows of a matrix of int32, without copying it."""
    import numpy as np

    pa = load_pyarrow()
    count, n = matrix.shape
    valid = None if present is None else pa.py_buffer(np.packbits(present, bitorder="little"))
    data = pa.py_buffer(np.ascontiguousarray(matrix))
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(4 * n), count, [valid, data])


def widen(deps: Any, n: int) -> Any:
    """Convert a binary column of vectors, of fixed width or not, to fixed binary for n processes, padded with zeros."""
    import numpy as np

    pa = load_pyarrow()
    kind = pa.binary(4 * n)
    if deps.type == kind:
        return deps
    if pa.types.is_fixed_size_binary(deps.type):
        width = deps.type.byte_width // 4
        chunks = []
        for chunk in deps.chunks:
            data = np.frombuffer(chunk.buffers()[1] or b"", "<i4")
            matrix = np.zeros((len(chunk), n), "<i4")
            matrix[:, :width] = data[chunk.offset * width :][: len(chunk) * width].reshape(-1, width)
            chunks.append(fixed_binary(matrix, chunk.is_valid().to_numpy(zero_copy_only=False)))
        return pa.chunked_array(chunks, kind)
    padded = [None if value is None else value.ljust(4 * n, b"\0") for value in deps.to_pylist()]
    return pa.chunked_array([pa.array(padded, kind)])


def to_rows(table: Any) -> Iterator[Row]:
    """The rows of a table from `reader`, which makes `deps` fixed binary."""
    return map(Row._make, zip(*(_values(table.column(name), name) for name in Row._fields), strict=True))


def _values(column: Any, name: str) -> list[Any]:
    if column.null_count == len(column):
        return [None] * len(column)
    if name == "dst":
        return [None if value is None else unpack_dst(value) for value in column.to_pylist()]
    if name == "deps":
        packed = column.to_pylist()
        width = column.type.byte_width
        zeros = bytes(width)
        vectors = iter_unpack(f"<{width // 4}i", b"".join(value or zeros for value in packed))
        return [vector if value else None for vector, value in zip(vectors, packed, strict=True)]
    values: list[Any]
    if name == "step":
        values = column.cast(load_pyarrow().string()).to_pylist()
    elif column.null_count == 0 and load_pyarrow().types.is_integer(column.type):
        values = column.to_numpy().tolist()  # twice as fast
    else:
        values = column.to_pylist()
    return values
