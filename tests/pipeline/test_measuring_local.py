"""Measured here and measured by Spark: the same numbers."""

from pathlib import Path
from typing import Any

import pytest

from inga.pipeline.files import files_of
from inga.pipeline.jobs import measure_trace
from inga.pipeline.measuring_local import measure
from inga.pipeline.storage import open_trace
from inga.sim.trials import simulate_trial
from inga.trace import Manifest
from inga.trial.trial import Trial

RATES = ("sends", "deliveries", "holds", "control", "repair")


def silent(what: str, done: int, total: int) -> None:
    pass


def rounded(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {key: round(each, 6) if isinstance(each, float) else each for key, each in row.items()}
        for row in rows
    ]


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_the_same_as_spark(spark: Any, tmp_path: Path) -> None:
    trial = Trial("causal", members=3, messages=25, loss=0.2, window=600, seed=3)
    simulate_trial(trial, tmp_path / "run")
    path = str(tmp_path / "run")
    theirs = {name: table.to_pylist() for name, table in measure_trace(path, session=spark).tables.items()}
    ours = measure(files_of(None, open_trace(path), silent), comparable=True)
    assert len(theirs["held_by"]) > 5 and len(theirs["delays"]) > 10
    for name in ("holds", "delays"):
        theirs[name] = [row for row in theirs[name] if row["src"] is None]  # per link is Spark's alone
    theirs["steps"] = [row for row in theirs["steps"] if row["peer"] is None]
    for name in ("holds", "held_by", "windows"):
        assert rounded(ours[name]) == rounded(theirs[name]), name
    for name in ("steps", "delays"):
        key = ("step", "process")
        line = {tuple(row[each] for each in key): row for row in rounded(theirs[name])}
        assert {tuple(row[each] for each in key): row for row in rounded(ours[name])} == line, name
    for at, row in enumerate(ours["rates"]):
        parts = [each for each in theirs["rates"] if abs(each["from_ms"] - row["from_ms"]) < 1e-6]
        assert {each: row[each] for each in RATES} == {each: sum(p[each] for p in parts) for each in RATES}, (
            at
        )


def test_a_trace_without_rows(tmp_path: Path) -> None:
    Manifest("g", ["a"], "sim", "causal", "take", "virtual", ["causal"]).write(tmp_path)
    found = measure(files_of(None, open_trace(str(tmp_path)), silent), comparable=True)
    assert found["holds"][0]["count"] == 0
    assert {name: rows for name, rows in found.items() if rows} == {"holds": found["holds"]}
