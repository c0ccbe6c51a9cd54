"""What of a trace is in the diagram of its report."""

import json
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from inga.lab.traces import TraceRecipe, make
from inga.pipeline import diagram
from inga.pipeline.diagram import SPARE, TimeWindow
from inga.pipeline.files import files_of
from inga.pipeline.jobs import Tables, report_tables
from inga.pipeline.storage import open_trace
from inga.sim.trials import simulate_trial
from inga.trace import Manifest, Row, drawing, rows
from inga.trace.drawing import STEPS_DRAWN, Drawing, from_rows
from inga.trace.importers import import_log
from inga.trial.trial import Trial


def drawn(path: Path, checks: list[str] | None = None, events_max: int = 1 << 20) -> Tables:
    return report_tables(str(path), checks, master=None, events_max=events_max)


def steps_of(found: Drawing) -> set[str]:
    return {STEPS_DRAWN[code] for code in found.step.tolist()}


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


def test_clocks_of_imported_events_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As columns and as rows, all at once and a few at a time: the same arrows."""
    random, clocks = Random(3), [[0] * 4 for _ in range(4)]
    lines = []
    for _ in range(120):
        here, other = random.sample(range(4), 2)
        if random.random() < 0.6:
            clocks[here] = list(map(max, clocks[here], clocks[other]))
        clocks[here][here] += 1
        known = {"abcd"[at]: count for at, count in enumerate(clocks[here]) if count}
        lines.append(f"{'abcd'[here]} {json.dumps(known)}\nhello\n")
    (tmp_path / "x.log").write_text("".join(lines))
    import_log("shiviz", tmp_path / "x.log", tmp_path / "t")
    expected = from_rows(rows(tmp_path / "t")).cause.tolist()
    assert sum(cause >= 0 for cause in expected) > 30
    for block in (1, 7, 1 << 14):
        monkeypatch.setattr(drawing, "BLOCK", block)
        assert drawn(tmp_path / "t").drawing.cause.tolist() == expected
    monkeypatch.setattr(diagram, "CLOCKS_MAX", 4 * 119)
    assert "deps" not in TimeWindow(files_of(None, open_trace(str(tmp_path / "t")), silent))._columns


def silent(what: str, done: int, total: int) -> None:
    pass


@pytest.mark.parametrize("defect", [None, "swap"])
def test_no_more_is_kept_than_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, defect: str | None
) -> None:
    """Whatever a trace holds: of 20 segments at most three are in memory beside what was picked."""
    make(tmp_path / "t", TraceRecipe(20_000, 4, seed=2, defect=defect), segment_rows=1000)
    most, kept = 0, 0
    joined, table = diagram._joined, TimeWindow._table

    def watched(tables: Iterable[Any]) -> Any:
        nonlocal most
        found = joined(tables)
        most = max(most, found.num_rows)
        return found

    def keeping(window: TimeWindow, segment: int) -> Any:
        nonlocal kept
        found = table(window, segment)
        kept = max(kept, window._rows_kept())
        return found

    monkeypatch.setattr(diagram, "_joined", watched)
    monkeypatch.setattr(diagram, "ROWS_KEPT_MAX", 3000)
    monkeypatch.setattr(TimeWindow, "_table", keeping)
    found = drawn(tmp_path / "t", ["causal"], 2000).drawing
    assert 1900 < len(found) <= 2000
    assert 2000 <= most <= SPARE * 2000 + 1000
    assert 2000 < kept <= 3000 if defect else not kept
