import subprocess
import sys
from inspect import signature

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.model.errors import UsageError
from inga.model.steps import STEPS, Trace
from inga.trace import MemoryTrace, Row
from inga.trace.rows import FIELDS, Rows
from inga.trace.schema import (
    COLUMNS,
    STEP_NAMES,
    pack_deps,
    pack_dst,
    schema,
    spark_schema,
    steps_left_out,
    unpack_deps,
    unpack_dst,
)


def test_deps_are_little_endian_int32() -> None:
    assert pack_deps((1, 258), 3).hex() == "010000000201000000000000"


def test_dst_is_a_little_endian_bit_set() -> None:
    assert pack_dst(1 << 0 | 1 << 9, 10).hex() == "0102"


@given(st.lists(st.integers(0, 2**31 - 1), max_size=40), st.integers(0, 10))
def test_deps_round_trip(deps: list[int], more: int) -> None:
    n = len(deps) + more
    assert unpack_deps(pack_deps(deps, n)) == (*deps, *[0] * more)
    assert unpack_deps(pack_deps(deps, len(deps)), n) == (*deps, *[0] * more)


@given(st.sets(st.integers(0, 300)))
def test_dst_round_trip(members: set[int]) -> None:
    mask = sum(1 << member for member in members)
    assert unpack_dst(pack_dst(mask, 301)) == mask


def test_the_schema_is_that_of_the_format() -> None:
    found = schema(5)
    assert tuple(found.names) == COLUMNS
    assert found.field("deps").type == pa.binary(20)
    assert found.field("step").type == pa.dictionary(pa.int32(), pa.string())
    assert [field.name for field in found if not field.nullable] == ["process", "pos", "time", "step", "view"]


def test_whoever_writes_rows_takes_what_the_columns_say() -> None:
    """`Trace.row` and `Rows.row` name the columns once more, for types and for speed: the same ones, in this order."""
    declared = signature(Trace.row)
    assert signature(Rows.row) == declared
    assert set(FIELDS) == set(declared.parameters) - {"self"}
    assert [name for name, each in declared.parameters.items() if each.default is None] == list(
        Row._field_defaults
    )
    trace = MemoryTrace(0, 2)
    trace.row("send", 1.5, 2, 0, 3, **{name: name for name in COLUMNS[7:] if name != "deps"})  # type: ignore[arg-type]
    assert trace.rows == [Row(0, 1, 1_500_000_000, "send", 2, 0, 3, "dst", None, *COLUMNS[9:])]  # type: ignore[arg-type]


def test_spark_is_told_the_types_of_the_format() -> None:
    told = "process int, seq bigint, step string, dst binary, deps binary, note string"
    assert spark_schema(("process", "seq", "step", "dst", "deps", "note")) == told


def test_every_step_has_one_code() -> None:
    assert set(STEP_NAMES) == STEPS
    assert len(STEP_NAMES) == len(STEPS)


def test_a_lean_trace_keeps_what_certifies() -> None:
    assert not steps_left_out(True, None)
    kept = STEPS - steps_left_out(False, "accept")
    group = {"view", "join", "leave", "suspect", "flush", "crash", "state"}
    assert kept == {"send", "accept", "deliver", *group}
    assert STEPS - steps_left_out(False, None) == kept | {"take"}


@pytest.mark.parametrize("package", ["pyarrow", "numpy"])
def test_who_lacks_a_package_is_told_what_to_install(package: str) -> None:
    program = f"import sys; sys.modules[{package!r}] = None; import inga.trace; inga.trace.schema(3)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert UsageError.__name__ in result.stderr
    assert "pip install 'inga[trace]'" in result.stderr
