"""What `inga bench pipeline` measures, on a trace of a thousand rows."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from inga.lab import bench_pipeline
from inga.lab.bench_check import CpuMeter, in_turn
from inga.lab.traces import TraceRecipe, make
from inga.model.errors import UsageError
from inga.pipeline.jobs import check_trace
from inga.trace import rows


def test_actions_take_turns_after_all_were_warmed_up() -> None:
    done: list[str] = []
    spent = in_turn({"a": lambda: done.append("a"), "b": lambda: done.append("b")}, 2)
    assert "".join(done) == "ab" + "abab" and set(spent) == {"a", "b"}


def test_every_command_is_held_against_a_scan() -> None:
    assert set(bench_pipeline.COLUMNS_READ) == {*bench_pipeline.ACTIONS, *bench_pipeline.ALONE}


def test_the_cost_of_an_entry_is_compared_with_that_in_a_smaller_group() -> None:
    costs = {("stamp", 8, 1000): 1.0, ("stamp", 64, 1000): 6.4, ("stamp", 1000, 1000): 300.0}
    (row,) = bench_pipeline._entries(costs)
    assert row.baseline_is == "n = 64" and row.ratio == pytest.approx(3.0)


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_command_is_measured(spark: Any) -> None:
    found = bench_pipeline.run(
        lambda what: None, members=[3], sizes=[1000], repetitions=1, commands=["metrics"]
    )
    assert [row.unit for row in found] == ["cpu s", "s", *["MB"] * 4]
    assert all(row.value >= 0 and row.baseline >= 0 for row in found) and found[1].baseline > 0
    java, driver, everything = (row.value for row in found[3:])
    assert 0 < driver < everything and java <= everything


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_commands_without_spark_are_measured(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(bench_pipeline, "ALONE_EVENTS_MAX", 1000)
    found = bench_pipeline.run(
        said.append, members=[3], sizes=[1000, 2000], repetitions=1, commands=["report", "export", "import"]
    )
    assert [row.unit for row in found] == ["cpu s", "MB"] * 3 and all(row.value > 0 for row in found[1::2])
    assert sum("nothing of more than 1,000 events" in each for each in said) == 3


def test_a_large_trace_is_warmed_up_for_by_a_small_one() -> None:
    done: list[str] = []
    said: list[str] = []
    warmups = {"a": lambda: done.append("small a"), "b": lambda: done.append("small b")}
    in_turn(
        {"a": lambda: done.append("a"), "b": lambda: done.append("b")},
        1,
        warmups=warmups,
        progress=said.append,
    )
    assert done == ["small a", "small b", "a", "b"]
    assert said == ["a, warming up", "b, warming up", "a, 1 of 1", "b, 1 of 1"]


def test_traces_are_made_once(tmp_path: Path) -> None:
    said: list[str] = []
    path = bench_pipeline.made(tmp_path, 2000, 3, said.append)
    assert said[0] == "2,000 events, n = 3: making the trace" and said[-1].endswith(
        "100 % of the trace are made"
    )
    before = (path / "manifest.json").read_bytes()
    assert bench_pipeline.made(tmp_path, 2000, 3, said.append) == path
    assert (path / "manifest.json").read_bytes() == before and len(list(tmp_path.iterdir())) == 1
    assert check_trace(str(path), master=None)[1].verdict == "pass"


def test_what_a_process_used_counts_when_it_has_ended() -> None:
    """Also if nobody waits for it: a grandchild whose parent is killed."""
    program = "import os, time; os.fork(); end = time.process_time() + 0.3\nwhile time.process_time() < end: pass\nprint(flush=True); time.sleep(60)"
    meter = CpuMeter()
    before = meter.seconds()
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True
    ) as child:
        assert child.stdout is not None
        for _ in range(2):
            child.stdout.readline()
        during = meter.seconds()
        os.killpg(child.pid, signal.SIGKILL)
    assert during - before >= 0.55 and meter.seconds() >= during


def test_where_few_talk_the_others_only_listen(tmp_path: Path) -> None:
    make(tmp_path / "trace", TraceRecipe(1200, 10, burst=2, talkers=3), segment_rows=50)
    found = list(rows(tmp_path / "trace"))
    assert {row.process for row in found} == set(range(10))
    assert {row.src for row in found} == {row.process for row in found if row.step == "send"} == {0, 1, 2}
    assert max(max(row.deps or (0,)) for row in found) > 4
    assert check_trace(str(tmp_path / "trace"), master=None)[1].verdict == "pass"
    with pytest.raises(UsageError, match="all of them where there is a defect"):
        TraceRecipe(1200, 10, talkers=3, defect="swap")
