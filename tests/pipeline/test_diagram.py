"""The rows that a report shows."""

from pathlib import Path
from typing import Any

import pytest

from inga.lab.traces import TraceRecipe, make
from inga.pipeline.diagram import ROWS_MAX
from inga.pipeline.jobs import report_tables
from inga.sim.trials import simulate_trial
from inga.trial.trial import Trial

# One worker runs all Spark tests, so that there is one session for the whole run.
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def test_rows_around_a_violation(spark: Any, tmp_path: Path) -> None:
    planted = make(tmp_path / "t", TraceRecipe(20_000, 4, seed=2, defect="swap"), segment_rows=1000)
    assert planted is not None
    tables = report_tables(str(tmp_path / "t"), ["causal"], session=spark)
    shown = {(row.process, row.pos) for row in tables.rows}
    (witness,) = tables.certificate.checks[0].witnesses
    assert (planted.process, planted.pos) in shown
    assert {(step.process, step.pos) for step in witness.chain} <= shown
    assert len(shown) == len(tables.rows) <= ROWS_MAX
    assert tables.rows == sorted(tables.rows, key=lambda row: (row.time, row.process, row.pos))
    assert tables.shown == f"{len(shown)} steps around 1 violation are shown"


def test_a_lost_message_is_shown_where_it_was_sent(spark: Any, tmp_path: Path) -> None:
    planted = make(tmp_path / "t", TraceRecipe(5_000, 4, seed=2, defect="loss"), segment_rows=500)
    assert planted is not None
    rows = report_tables(str(tmp_path / "t"), ["complete"], session=spark).rows
    assert any(row.step == "send" and (row.src, row.seq) == planted.message for row in rows)


def test_the_beginning_of_a_clean_trace(spark: Any, tmp_path: Path) -> None:
    make(tmp_path / "large", TraceRecipe(20_000, 4), segment_rows=1000)
    large = report_tables(str(tmp_path / "large"), session=spark)
    assert len(large.rows) == ROWS_MAX
    assert {row.process for row in large.rows} == set(range(4))
    assert min(row.pos for row in large.rows) == 1
    assert large.shown.startswith("The first 600 steps")
    simulate_trial(Trial("causal", members=3, messages=8, loss=0.3, seed=4), tmp_path / "small")
    small = report_tables(str(tmp_path / "small"), session=spark)
    assert small.shown == f"All {len(small.rows)} steps that concern messages are shown"
    steps = {row.step for row in small.rows} - {"view", "join"}
    assert {"send", "receive", "deliver", "take"} == steps, "arrivals are shown where messages were held"
