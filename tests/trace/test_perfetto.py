"""What is written for Perfetto, against the rules of the trace event format, for runs of several kinds."""

import json
from collections import Counter
from io import StringIO
from math import isfinite
from pathlib import Path
from typing import Any

import pytest

from inga.lab.traces import TraceRecipe, make
from inga.sim.trials import simulate_trial
from inga.trace import Manifest, TraceWriter, rows, write_perfetto
from inga.trial.trial import Trial

PHASES = {
    "X": {"cat", "dur", "args"},
    "i": {"cat", "s", "args"},
    "s": {"cat", "id"},
    "f": {"cat", "id", "bp"},
    "b": {"cat", "id"},
    "e": {"cat", "id"},
}
"""By phase, the keys that it has besides ph, name, pid, tid and ts."""

TITLES = {
    "process_name": ("name", str),
    "process_sort_index": ("sort_index", int),
    "thread_name": ("name", str),
}
"""What metadata says, and its one argument."""


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)


def check_entry(entry: dict[str, Any]) -> None:
    """The types and values that the format asks of one entry."""
    assert isinstance(entry["name"], str) and entry["name"]
    assert type(entry["pid"]) is int and type(entry["tid"]) is int
    if entry["ph"] == "M":
        key, kind = TITLES[entry["name"]]
        assert set(entry) == {"ph", "name", "pid", "tid", "args"} and set(entry["args"]) == {key}
        assert type(entry["args"][key]) is kind
        return
    assert set(entry) == {"ph", "name", "pid", "tid", "ts"} | PHASES[entry["ph"]]
    assert is_number(entry["ts"]) and entry["ts"] >= 0
    assert isinstance(entry["cat"], str) and entry["cat"]
    if entry["ph"] == "X":
        assert is_number(entry["dur"]) and entry["dur"] > 0
    if entry["ph"] == "i":
        assert entry["s"] in ("g", "p", "t")
    if entry["ph"] == "f":
        assert entry["bp"] == "e"
    if "id" in entry:
        assert type(entry["id"]) in (int, str) and (isinstance(entry["id"], str) or 0 <= entry["id"] < 2**53)
    if "args" in entry:
        assert isinstance(entry["args"], dict)


def check_flows(entries: list[dict[str, Any]], expected: Counter[str]) -> None:
    """An arrow is known by its category, name and id; it begins once and ends where there was a delivery."""
    ends: dict[str, Counter[Any]] = {"s": Counter(), "f": Counter()}
    slices = {(entry["pid"], entry["tid"], entry["ts"]) for entry in entries if entry["ph"] == "X"}
    for entry in entries:
        if entry["ph"] in ends:
            ends[entry["ph"]][entry["cat"], entry["name"], entry["id"]] += 1
            assert (entry["pid"], entry["tid"], entry["ts"]) in slices, "an arrow is bound to a slice"
    begun, ended = ends["s"], ends["f"]
    assert set(begun.values()) <= {1} and set(ended.values()) <= {1}
    assert set(ended) <= set(begun)
    assert (len(begun), len(ended)) == (expected["meant"], expected["delivered"])


def check_spans(entries: list[dict[str, Any]]) -> None:
    """What is asynchronous begins and ends in turn, with one name, not before it begins."""
    open_: dict[tuple[str, str], dict[str, Any]] = {}
    for entry in entries:
        key = entry.get("cat", ""), str(entry.get("id"))
        if entry["ph"] == "b":
            assert key not in open_
            open_[key] = entry
        elif entry["ph"] == "e":
            begin = open_.pop(key)
            assert (begin["name"], begin["pid"]) == (entry["name"], entry["pid"]) and begin["ts"] <= entry[
                "ts"
            ]
    assert not open_


def run(name: str, path: Path) -> None:
    if name == "loss":
        simulate_trial(Trial(members=4, messages=15, loss=0.3, seed=2), path)
    elif name == "subset":
        simulate_trial(Trial("sco", members=4, messages=15, loss=0.2, subset=2, seed=1), path)
    elif name == "window":
        Manifest("g", ["a"], "sim", "vector", "take", "virtual").write(path)
        with TraceWriter(path, 0, "a", 1, clock="virtual") as trace:
            for now, step in enumerate("window_closed window_closed window_opened window_closed".split()):
                trace.row(step, float(now), 1)
    elif name == "lost":
        assert make(path, TraceRecipe(600, 3, defect="loss"), segment_rows=100)
    else:
        make(path, TraceRecipe(600, 4, kind=name), segment_rows=100)


@pytest.mark.parametrize("name", ["loss", "subset", "window", "lost", "views", "objects"])
def test_the_rules_of_the_format(tmp_path: Path, name: str) -> None:
    run(name, tmp_path / "run")
    out = StringIO()
    write_perfetto(tmp_path / "run", out)
    content = json.loads(out.getvalue())
    assert set(content) == {"displayTimeUnit", "traceEvents"} and content["displayTimeUnit"] in ("ms", "ns")
    entries = content["traceEvents"]
    for entry in entries:
        check_entry(entry)
    trace = list(rows(tmp_path / "run"))
    others = len({row.process for row in trace}) - 1
    meant = sum(others if row.dst is None else row.dst.bit_count() for row in trace if row.step == "send")
    delivered = sum(row.step == "deliver" and row.src != row.process for row in trace)
    assert (meant > delivered) == (name == "lost")
    check_flows(entries, Counter(meant=meant, delivered=delivered))
    check_spans(entries)
    phases = Counter(entry["ph"] for entry in entries)
    assert phases["X"] + phases["i"] == len(trace)
    assert name != "window" or phases["b"] == 2, "one that is closed already, and one that stays closed"
