"""What is held, and for what: rows of one process, in as many files as there may be."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inga.pipeline import waiting
from inga.pipeline.jobs import measure_trace
from inga.trace import Manifest, TraceWriter

A, B, C = range(3)
Rows = list[tuple[str, int | None, int | None, tuple[int, int, int] | None]]


def measured(path: Path, rows: Rows, segment_rows: int) -> dict[str, Any]:
    """Tables about process A, whose rows are a second apart."""
    Manifest("g", ["a", "b", "c"], "sim", "vector", "deliver", "virtual").write(path)
    for process, mine in enumerate([rows, [], []]):
        with TraceWriter(
            path, process, "abc"[process], 3, clock="virtual", segment_rows=segment_rows
        ) as trace:
            for now, (step, src, seq, deps) in enumerate(mine):
                trace.row(step, float(now), 1, src, seq, deps=deps)
    tables = measure_trace(str(path), master=None).tables
    return {name: tables[name].to_pylist() for name in ("holds", "held_by")}


@pytest.mark.parametrize("segment_rows", [1, 2, 1000])
def test_the_last_cause_that_came_meanwhile_is_what_held(tmp_path: Path, segment_rows: int) -> None:
    rows: Rows = [
        ("deliver", B, 1, (0, 0, 0)),
        ("hold", C, 1, None),  # for B 3
        ("hold", C, 1, None),  # once more, which changes nothing
        ("deliver", B, 2, (0, 1, 0)),
        ("deliver", B, 3, (0, 2, 0)),
        ("deliver", A, 1, (0, 0, 0)),  # which precedes nothing
        ("deliver", C, 1, (0, 3, 0)),
        ("hold", C, 1, None),  # a copy of what is through already
        ("deliver", C, 1, (0, 3, 0)),
        ("hold", B, 2, None),  # and of one that never waited
        ("hold", B, 9, None),  # which is never let through
    ]
    found = measured(tmp_path / "run", rows, segment_rows)
    assert [(row["process"], row["src"], row["count"], row["max"]) for row in found["holds"]] == [
        (None, None, 1, 5000.0), (A, None, 1, 5000.0), (A, C, 1, 5000.0),
    ]  # fmt: skip
    assert found["held_by"] == [{"process": A, "src": B, "seq": 3, "held": 1, "ms": 5000.0, "ms_max": 5000.0}]


@pytest.mark.parametrize("missing", ["src", "seq"])
def test_a_row_that_names_no_message_is_no_wait(tmp_path: Path, missing: str) -> None:
    """An answer that an object holds back is none of anybody's messages."""
    nothing: dict[str, int | None] = {"src": A, "seq": 1, missing: None}
    rows: Rows = [
        ("hold", nothing["src"], nothing["seq"], None),
        ("hold", C, 1, None),
        ("deliver", B, 1, (0, 0, 0)),
        ("deliver", C, 1, (0, 1, 0)),
    ]
    found = measured(tmp_path / "run", rows, 1000)
    assert [(row["process"], row["src"], row["count"], row["max"]) for row in found["holds"]] == [
        (None, None, 1, 2000.0), (A, None, 1, 2000.0), (A, C, 1, 2000.0),
    ]  # fmt: skip
    assert [(row["src"], row["seq"], row["held"]) for row in found["held_by"]] == [(B, 1, 1)]


@pytest.mark.parametrize("segment_rows", [7, 1000])
def test_a_cause_far_back_is_found(tmp_path: Path, segment_rows: int) -> None:
    between = 2 * waiting.STEPS_BACK
    rows: Rows = [("hold", C, 1, None), ("deliver", B, 1, (0, 0, 0))]
    rows += [("deliver", A, 1 + at, (at, 0, 0)) for at in range(between)]
    rows += [("deliver", C, 1, (0, 1, 0))]
    found = measured(tmp_path / "run", rows, segment_rows)
    assert [(row["src"], row["seq"], row["held"]) for row in found["held_by"]] == [(B, 1, 1)]


def test_causes_that_came_before_or_later_are_nobodys_reason(tmp_path: Path) -> None:
    rows: Rows = [
        ("deliver", B, 1, (0, 0, 0)),
        ("hold", C, 1, None),
        ("deliver", C, 1, (0, 2, 0)),  # without B 2
        ("deliver", B, 2, (0, 1, 0)),
    ]
    found = measured(tmp_path / "run", rows, 1000)
    assert found["holds"][0]["count"] == 1 and found["held_by"] == []


def test_a_copy_of_what_is_through_is_not_kept() -> None:
    """Else it would be kept for good, and with it all that is let through from then on."""
    through, none = waiting._Through(), np.zeros(0, np.int64)
    key = np.array([waiting.message_key(C, 1)])
    assert through.add(key, np.array([True])).tolist() == [0]
    one = np.array([1])
    copy = waiting._Rows(one, one, key, np.array([False]), np.zeros((1, 3), np.int32), np.array([False]))
    nothing = waiting.HeldMessages(none, none, none)
    assert len(waiting._put_aside(nothing, copy, through.add(key, copy.is_through), through).key) == 0
    other = replace(copy, key=key + 1)
    assert waiting._put_aside(nothing, other, none, through).key.tolist() == other.key.tolist()
