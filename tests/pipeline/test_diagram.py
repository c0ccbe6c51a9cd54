"""What of a trace is in the diagram of its report."""

from pathlib import Path

import pytest

from inga.lab.traces import TraceRecipe, make
from inga.pipeline.jobs import Tables, report_tables
from inga.sim.trials import simulate_trial
from inga.trace import Manifest, Row, rows
from inga.trace.drawing import STEPS_DRAWN, Drawing, from_rows
from inga.trial.trial import Trial


def drawn(path: Path, checks: list[str] | None = None, events_max: int = 1 << 20) -> Tables:
    return report_tables(str(path), checks, master=None, events_max=events_max)


def steps_of(drawing: Drawing) -> set[str]:
    return {STEPS_DRAWN[code] for code in drawing.step.tolist()}


def test_rows_around_a_violation(tmp_path: Path) -> None:
    planted = make(tmp_path / "t", TraceRecipe(20_000, 4, seed=2, defect="swap"), segment_rows=1000)
    assert planted is not None
    tables = drawn(tmp_path / "t", ["causal"], 600)
    (witness,) = tables.certificate.checks[0].witnesses
    found = tables.drawing
    assert found.find(planted.process, planted.pos) is not None
    assert all(found.find(step.process, step.pos) is not None for step in witness.chain)
    places = set(zip(found.process.tolist(), found.pos.tolist(), strict=True))
    assert 500 < len(places) == len(found) <= 600, "as many as there is room for, and none twice"
    assert (found.time[1:] >= found.time[:-1]).all()
    assert tables.shown == f"{len(found)} events around 1 violation are here, of 20,032 rows in all"


def test_a_lost_message_is_shown_where_it_was_sent(tmp_path: Path) -> None:
    planted = make(tmp_path / "t", TraceRecipe(5_000, 4, seed=2, defect="loss"), segment_rows=500)
    assert planted is not None
    found = drawn(tmp_path / "t", ["complete"], 300).drawing
    numbers = set(zip(found.src.tolist(), found.seq.tolist(), strict=True))
    assert planted.message in numbers


def test_the_beginning_of_a_clean_trace(tmp_path: Path) -> None:
    make(tmp_path / "large", TraceRecipe(20_000, 4), segment_rows=1000)
    large = drawn(tmp_path / "large", events_max=600)
    assert len(large.drawing) == 600
    assert set(large.drawing.process.tolist()) == set(range(4))
    assert large.drawing.pos.min() == 1
    assert large.shown == "The first 600 events are here, of 20,032 rows in all"


@pytest.mark.parametrize("order", ["causal", "co"])
def test_all_of_a_small_one(tmp_path: Path, order: str) -> None:
    simulate_trial(Trial(order, members=3, messages=8, loss=0.3, seed=4), tmp_path)
    small = drawn(tmp_path)
    assert small.shown == "Everything that happened to messages is here"
    steps = steps_of(small.drawing)
    assert {"send", "hold", "deliver", "take", "gap", "nack", "repair", "view"} <= steps
    assert "datagram_out" not in steps and "control" not in steps
    others = from_rows(rows(tmp_path))
    for name in ("process", "pos", "time", "step", "message", "copy", "peer", "n", "src", "seq"):
        assert (getattr(small.drawing, name) == getattr(others, name)).all(), name
    assert list(small.drawing.texts) == list(others.texts) and small.drawing.sets == others.sets


def test_arrivals_are_shown_where_messages_had_to_wait(tmp_path: Path) -> None:
    simulate_trial(Trial("causal", members=3, messages=8, loss=0.3, seed=4), tmp_path)
    found = drawn(tmp_path).drawing
    assert "receive" not in steps_of(found), "what is put aside has a row that says so"
    arrived = [row for row in rows(tmp_path) if row.step == "receive"]
    assert len(arrived) > 10
    assert "receive" in steps_of(from_rows(arrived)), "and what became of it is not among these"


def test_nothing_at_all(tmp_path: Path) -> None:
    Manifest("g", ["a"], "sim", "causal", "take", "virtual", ["causal"]).write(tmp_path)
    found = drawn(tmp_path)
    assert len(found.drawing) == 0 and found.measured == {}


def test_events_of_an_imported_log_know_what_they_heard_of() -> None:
    """a tells b, b tells c; c hears of a by that, and not from a."""
    deps = {(0, 1): (0, 0, 0), (1, 1): (1, 0, 0), (2, 1): (0, 0, 0), (2, 2): (1, 1, 1)}
    found = from_rows(
        Row(process, seq, at, "event", 0, process, seq, deps=clock)
        for at, ((process, seq), clock) in enumerate(deps.items())
    )
    assert found.cause.tolist() == [-1, 0, -1, 1]
