"""The table of goals: each row is measured on the right orders, and set against its goal."""

from typing import Any

import pytest

from inga.lab import bench_goals
from inga.lab.bench import BenchRow
from inga.lab.bench_net import Variant

CPU = {"causal": [1.0, 2.0, 4.0], "fifo": [1.0, 1.0, 1.0], "total": [1.5, 1.0, 4.0], "co": [1.2, 1.3, 9.0]}
"""Of three runs that follow each other, of each order."""


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[float, float, str]]:
    """Value, goal and sense of every row, where costs are as above and round trips take 100, 40 and 150 microseconds."""
    asked: dict[tuple[str, str, int], int] = {}

    def cost(variant: Variant, members: int, size: int) -> dict[str, float]:
        assert members == 4
        key = (variant.order, variant.write, size)
        asked[key] = asked.get(key, -1) + 1
        cpu = CPU[variant.order][asked[key]] * (10 if variant.write == "each" else 1)
        return {"cpu": cpu * size, "rate": 1000 * size / cpu}

    def round_trips(
        job: str, members: int, rounds: int, order: str = "causal", **how: Any
    ) -> dict[str, float]:
        return {"p50": {"loop_latency": 40.0}.get(job, {"causal": 100.0, "total": 150.0}[order]) * members}

    monkeypatch.setattr(bench_goals, "cost", cost)
    monkeypatch.setattr(bench_goals, "round_trips", round_trips)
    monkeypatch.setattr(bench_goals, "_alone", lambda progress, *, quick: [])
    rows = bench_goals.run(lambda what: None, repetitions=3)
    assert len({row.case for row in rows}) == len(rows)
    return {row.case: (row.value, row.baseline, row.baseline_is) for row in rows}


def test_costs_are_medians(figures: dict[str, tuple[float, float, str]]) -> None:
    assert figures["4 x 1024 B causal, send_many + batches"] == (2.0 * 1024, 0.8, "goal: at most")
    assert figures["4 x 100 B causal, await send + async for"] == (2000.0, 0.45, "goal: at most")
    assert figures["4 x 100 B total, send_many + batches"][:2] == (pytest.approx(1e5 / 1.5), 1_000_000)


def test_orders_are_compared_run_by_run(figures: dict[str, tuple[float, float, str]]) -> None:
    """Not medians with medians: what slows the machine for a while slows the two runs of a pair alike."""
    assert figures["4 x 1024 B causal against fifo, CPU"][0] == 2.0
    assert figures["4 x 1024 B total against causal, CPU"][0] == 1.0
    assert figures["4 x 1024 B co against fifo, CPU"] == (1.3, 1.25, "goal: at most")


def test_round_trips_are_set_against_the_loop_and_against_causal_order(
    figures: dict[str, tuple[float, float, str]],
) -> None:
    assert figures["round trip, 4 members, p50"] == (400.0, 250, "goal: at most")
    assert figures["round trip, 4 members, against the event loop alone"][0] == 2.5
    assert figures["round trip, 2 members, total against causal"][0] == 1.5


def test_the_other_rows_are_taken_from_the_other_benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    live = BenchRow("live", 4.0, 5.0, "us CPU/delivery")
    control = BenchRow("control, 100 members", 6.0, 9.0, "packets/message")
    monkeypatch.setattr(bench_goals.bench_sco, "live", lambda messages: live)
    monkeypatch.setattr(bench_goals.bench_sco, "control", lambda members, messages: control)
    monkeypatch.setattr(bench_goals.bench_object, "call_cost", lambda op, count, at_once: 10.0 * at_once)
    monkeypatch.setattr(bench_goals.bench_sim, "REPETITIONS", 1)
    rows = {row.case: row for row in bench_goals._alone(lambda what: None, quick=True)}
    assert (rows["sco, live"].value, rows["sco, live"].baseline) == (5.0, 10)
    assert (
        rows["sco, control, 100 members against 10"].value,
        rows["a call of an object, 3 members, 8 at a time"].value,
    ) == (1.5, 80.0)
    assert rows["schedules, 3 members x 6 messages"].value > 0
