"""A group that is sorted in parts is numbered and marked as it is in one: what a part is told of those before it is enough."""

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from inga.pipeline.ordering import PART, _carried, _each_anew, _numbered
from inga.pipeline.restore import Base
from inga.pipeline.surveying import ColumnNames, Survey, _read

from .messages import Talk

NAMES = ColumnNames("src", "seq", "deps", None)
OWNED = ColumnNames("src", "seq", "deps", "own")


def sorted_rows(seed: int, own: int) -> list[dict[str, Any]]:
    """Messages of which some are missing and some are there twice, by height."""
    talk, random = Talk(seed, count=80), Random(seed)
    kept = [id_ for id_ in talk.ids if random.random() < 0.9]
    kept += random.sample(kept, 6)
    found = [(len(talk.past[id_]) + 1, *id_) for id_ in kept]
    return [
        {"src": src, "seq": seq, "deps": talk.deps((src, seq)), "own": own, "height": height}
        for height, src, seq in sorted(found)
    ]


def batches(rows: list[dict[str, Any]], size: int) -> Iterator[Any]:
    return (pa.RecordBatch.from_pylist(rows[at : at + size]) for at in range(0, len(rows), size))


def marked(run: Iterator[Any]) -> list[tuple[int, int, int, bool, bool]]:
    found = []
    for _, part, state in run:
        order = range(state.order + 1 - part.num_rows, state.order + 1)
        columns = (part.column("src").to_pylist(), part.column("seq").to_pylist())
        found += zip(
            order,
            *columns,
            np.asarray(state.concurrent).tolist(),
            np.asarray(state.gap).tolist(),
            strict=True,
        )
    return found


@pytest.mark.parametrize("base", [(), (3, 1), "first"])
@pytest.mark.parametrize("names", [NAMES, OWNED])
@pytest.mark.parametrize("seed", range(6))
def test_parts_are_marked_like_the_whole(seed: int, names: ColumnNames, base: Base) -> None:
    rows = sorted_rows(seed, own=1)
    whole = marked(_numbered(batches(rows, 1000), None, _each_anew(base), names))
    heights = sorted({row["height"] for row in rows})
    bounds = sorted(Random(seed).sample(heights[1:], 4))
    for row in rows:
        row[PART] = sum(row["height"] >= bound for bound in bounds)
    once = list({(row["height"], row["src"], row["seq"]): row for row in rows}.values())
    surveyed = Survey.sum([_read(batch, names) for batch in batches(once, 7)])
    summaries = surveyed.summaries(bounds)
    # Tasks get parts in any order.
    mixed = sorted(rows, key=lambda row: (row[PART] % 2, row[PART]))
    found = marked(_numbered(batches(mixed, 7), PART, _carried(base, summaries), names))
    assert sorted(found) == whole
    assert any(gap for *_, gap in whole) and not all(gap for *_, gap in whole)
