"""A trace for others: the lecture's steps in the lecture's order, each with what it records."""

import io
import json
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from inga.sim.trials import simulate_trial
from inga.trace import MemoryTrace, Row, Stamps, pack_deps, rows, steps, write_jsonl
from inga.trace.stamps import PAGE_OCTETS
from inga.trial.trial import Trial

from .lecture import out_of_place, told_in_place, told_wrong

NAMES = ("alice", "bob", "cathy")
SHORT = {
    "VectorTimeStampCreated": "created",
    "UserAddedToVectorTimeStamp": "added",
    "LocalCountIncrementedInSiteVectorTimeStamp": "local",
    "VectorTimeStampedMessageSent": "sent",
    "VectorTimeStampedMessageReceived": "received",
    "ConcurrentVectorTimeStampedMessageDetected": "concurrent",
    "VectorTimeStampCopiedAndNewBufferCreated": "copied",
    "VectorTimeStampedMessageBuffered": "buffered",
    "VectorTimeStampedMessageRemovedFromBuffer": "removed",
    "RemoteCountIncrementedInSiteVectorTimeStamp": "remote",
    "VectorTimeStampedMessageDelivered": "delivered",
}
"""The table of the lecture's steps, all of them."""

IN_ORDER = re.compile(
    r"received( concurrent)?( copied)? buffered( concurrent)?( copied)? removed remote delivered( concurrent)?( copied)?( merge)? take"
)
"""Of one message at one receiver. Concurrency may be noticed at the arrival, when what it builds on has come, or show only at
the take."""


def lecture(trace: Iterable[Row], sent: Iterable[Row] = ()) -> list[dict[str, Any]]:
    """The steps under the lecture's names, shortened."""
    trace = list(trace)
    found = list(steps(trace, Stamps.of([*trace, *sent], len(NAMES)), NAMES, "dewan"))
    return [{**step, "step": SHORT.get(step["step"], step["step"])} for step in found]


def names_of(found: Iterable[dict[str, Any]], src: int, seq: int) -> str:
    return " ".join(step["step"] for step in found if (step.get("src"), step.get("seq")) == (src, seq))


def by_hand() -> list[Row]:
    """Cathy's part of a run: bob's answer comes before alice's question, then one of alice's that knows
    nothing of what cathy has said meanwhile."""
    trace = MemoryTrace(2, 3)
    trace.row("view", 0.0, 1)
    for member in range(3):
        trace.row("join", 0.0, 1, peer=member)
    trace.row("receive", 0.1, 1, 1, 1)
    trace.row("hold", 0.1, 1, 1, 1, n=1)
    trace.row("receive", 0.2, 1, 0, 1)
    trace.row("deliver", 0.2, 1, 0, 1, deps=(0, 0, 0), height=1, n=1)
    trace.row("deliver", 0.2, 1, 1, 1, deps=(1, 0, 0), height=2, n=1)
    trace.row("take", 0.3, 1, 0, 1, deps=(0, 0, 0), height=1, n=1)
    trace.row("take", 0.3, 1, 1, 1, deps=(1, 0, 0), height=2, n=1)
    trace.row("send", 0.4, 1, 2, 1, deps=(1, 1, 0), height=3, n=1)
    trace.row("deliver", 0.4, 1, 2, 1, deps=(1, 1, 0), height=3, n=1)
    trace.row("receive", 0.5, 1, 0, 2)
    trace.row("concurrent", 0.5, 1, 0, 2)
    trace.row("branch", 0.5, 1, 0, 2, n=2)
    trace.row("deliver", 0.5, 1, 0, 2, deps=(1, 0, 0), height=2, n=1)
    trace.row("view", 0.6, 2)
    trace.row("datagram_out", 0.7, 2, peer=1, n=48)
    return trace.rows


def sends() -> list[Row]:
    """What the others' parts say of it."""
    trace = MemoryTrace(0, 3)
    trace.row("send", 0.0, 1, 0, 1, deps=(0, 0, 0), height=1, n=1)
    trace.row("send", 0.3, 1, 0, 2, deps=(1, 0, 0), height=2, n=1)
    other = MemoryTrace(1, 3)
    other.row("send", 0.0, 1, 1, 1, dst=0b101, deps=(1, 0, 0), height=2, n=1)
    return [*trace.rows, *other.rows]


# By hand, step by step


def test_every_step_of_the_table_is_rendered() -> None:
    assert {step["step"] for step in lecture(by_hand(), sends())} >= set(SHORT.values())


@pytest.mark.parametrize(
    ("message", "order"),
    [
        ((0, 1), "received buffered removed remote delivered take"),  # accepted
        ((1, 1), "received buffered removed remote delivered take"),  # held
        ((0, 2), "received concurrent copied buffered removed remote delivered"),  # concurrent
        ((2, 1), "local sent delivered"),  # our own, echoed
    ],
)
def test_the_order_of_the_lecture(message: tuple[int, int], order: str) -> None:
    assert names_of(lecture(by_hand(), sends()), *message) == order


def test_the_held_one_is_buffered_when_it_comes_and_leaves_when_its_cause_has_left() -> None:
    found = [
        (step["step"], step.get("src"))
        for step in lecture(by_hand(), sends())
        if "src" in step and step["pos"] < 10
    ]
    assert found == [
        ("received", 1),
        ("buffered", 1),
        ("received", 0),
        ("buffered", 0),
        ("removed", 0),
        ("remote", 0),
        ("delivered", 0),
        ("removed", 1),
        ("remote", 1),
        ("delivered", 1),
    ]


def test_what_each_step_records() -> None:
    shown = [
        (step["step"], step.get("vector"), step.get("stamp"), step.get("position"))
        for step in lecture(by_hand(), sends())
        if step["step"] in SHORT.values()
    ]
    assert shown == [
        ("created", [0, 0, 0], None, None),
        ("added", [0, 0, 0], None, None),
        ("added", [0, 0, 0], None, None),
        ("added", [0, 0, 0], None, None),
        ("received", None, [1, 1, 0], None),
        ("buffered", None, [1, 1, 0], 1),
        ("received", None, [1, 0, 0], None),
        ("buffered", None, [1, 0, 0], 1),
        ("removed", None, [1, 0, 0], None),
        ("remote", [1, 0, 0], None, None),
        ("delivered", None, [1, 0, 0], None),
        ("removed", None, [1, 1, 0], None),
        ("remote", [1, 1, 0], None, None),
        ("delivered", None, [1, 1, 0], None),
        ("local", [1, 1, 1], None, None),
        ("sent", None, [1, 1, 1], None),
        ("delivered", None, [1, 1, 1], None),
        ("received", None, [2, 0, 0], None),
        ("concurrent", None, [2, 0, 0], None),
        ("copied", [2, 0, 0], None, None),
        ("buffered", None, [2, 0, 0], 1),
        ("removed", None, [2, 0, 0], None),
        ("remote", [2, 1, 1], None, None),
        ("delivered", None, [2, 0, 0], None),
    ]


def test_only_the_first_view_creates_a_vector() -> None:
    views = [step for step in lecture(by_hand(), sends()) if step["view"] == 2]
    assert [step["step"] for step in views] == ["view", "datagram_out"]
    both = [*by_hand(), *(row._replace(process=1) for row in by_hand())]
    assert sum(step["step"] == "created" for step in lecture(both, sends())) == 2


def test_a_newcomer_starts_with_what_the_others_had_sent() -> None:
    trace = MemoryTrace(2, 3)
    trace.row("view", 0.0, 2, deps=(4, 7, 0))
    trace.row("join", 0.0, 2, peer=2)
    trace.row("send", 0.1, 2, 2, 1, deps=(4, 7, 0), height=12, n=1)
    assert [step["vector"] for step in lecture(trace.rows) if "vector" in step] == [
        [4, 7, 0],
        [4, 7, 0],
        [4, 7, 1],
    ]


def test_our_own_names() -> None:
    found = list(steps([*sends(), *by_hand()], Stamps.of(sends(), 3), NAMES))
    assert [step["step"] for step in found] == [row.step for row in [*sends(), *by_hand()]]
    assert found[2] == {
        "process": 1, "name": "bob", "pos": 1, "time": 0, "step": "send", "view": 1, "src": 1, "seq": 1,
        "vector": [0, 1, 0], "stamp": [1, 1, 0], "dst": [0, 2], "deps": (1, 0, 0), "height": 2, "n": 1,
    }  # fmt: skip
    assert found[-1] == {
        "process": 2, "name": "cathy", "pos": 19, "time": 700_000_000, "step": "datagram_out", "view": 2,
        "peer": 1, "n": 48,
    }  # fmt: skip
    hold = next(step for step in found if step["step"] == "hold")
    assert (hold["position"], hold["stamp"], hold.get("n"), hold.get("vector")) == (1, [1, 1, 0], None, None)


@pytest.mark.parametrize("alias", ["co", "sco", "obg", "remiop"])
def test_other_papers_name_what_they_know(alias: str) -> None:
    trace = MemoryTrace(0, 3)
    trace.row("send", 0.0, 1, 0, 1, deps=(0, 0, 0), height=1, n=1)
    trace.row("nack", 0.0, 1, peer=1, n=2)
    trace.row("take", 0.0, 1, 0, 1)
    found = [step["step"] for step in steps(trace.rows, Stamps.of(trace.rows, 3), NAMES, alias)]
    assert found == {
        "co": ["DT sent", "RET sent", "take"],
        "sco": ["DT sent", "RET sent", "take"],
        "obg": ["send", "nack", "take"],
        "remiop": ["send", "NACK", "take"],
    }[alias]  # fmt: skip


def test_a_vector_shown_never_changes_afterwards() -> None:
    trace = MemoryTrace(0, 3)
    for seq in (1, 2, 3):
        trace.row("send", 0.0, 1, 0, seq, deps=(seq - 1, 0, 0), height=seq, n=1)
    found = list(steps(trace.rows, Stamps.of(trace.rows, 3), NAMES))
    assert [step["vector"][0] for step in found] == [1, 2, 3]


def test_stamps_of_sends_that_are_missing_are_unknown() -> None:
    stamps = Stamps(2)
    stamps.add(0, 3, bytes(8))
    stamps.add(0, 0, bytes(8))
    stamps.add(0, 2**40, bytes(8))
    assert stamps.find(0, 3) == [3, 0]
    for src, seq in ((0, 1), (0, 2), (0, 4), (0, 0), (0, -1), (1, 1), (None, 1), (0, None)):
        assert stamps.find(src, seq) is None


def test_stamps_beyond_what_fits_into_memory_are_in_a_file() -> None:
    """Of three pages at a time, all of which are written, put away and asked for again."""
    few = Stamps(3, octets_max=3 * PAGE_OCTETS)
    sent = [(src, seq) for seq in range(1, 2001) for src in range(3)]
    for src, seq in [*sent, (1, 7)]:  # which counts again from an earlier number
        few.add(src, seq, pack_deps((seq, src, 2 * seq), 3), pos=10 * seq + src)
    assert len(few._pages) == 3 < len(few._places)
    for src, seq in reversed(sent):
        vector = [seq, src, 2 * seq]
        vector[src] = seq
        assert few.find(src, seq) == vector and few.sent_at(src, seq) == 10 * seq + src
    assert few.sent_at(0, 5000) == 20_000, "the last one that is known"
    assert few.find(0, 2001) is None and few.sent_at(0, 0) == 0
    assert len(few._pages) == 3
    few.close()


# From runs


@pytest.mark.parametrize("words", [{}, {"subset": 1}, {"matrix": True, "subset": 2}, {"order": "relay"}])
def test_the_order_of_the_lecture_in_a_simulated_run(tmp_path: Path, words: dict[str, Any]) -> None:
    simulate_trial(Trial(members=3, messages=40, loss=0.1, reorder=0.3, seed=5, **words), tmp_path / "trace")
    out = io.StringIO()
    exported = write_jsonl(tmp_path / "trace", out, "dewan")
    found = [json.loads(line) for line in out.getvalue().splitlines()]
    assert exported.steps == len(found) > exported.rows == len(list(rows(tmp_path / "trace")))
    assert exported.incomplete == () and exported.processes == 3
    assert [(step["process"], step["pos"]) for step in found] == sorted(
        (s["process"], s["pos"]) for s in found
    )
    at: dict[tuple[int, int, int], list[str]] = defaultdict(list)
    held = 0
    for step in found:
        if "src" in step and step.get("note") != "bare":
            at[step["process"], step["src"], step["seq"]].append(SHORT.get(step["step"], step["step"]))
            assert (step["step"] in SHORT and "vector" in step) != ("stamp" in step)
        if SHORT.get(step["step"]) == "buffered":
            assert step["position"] >= 1
            held += step["position"] > 1
    assert held, "somebody had to wait behind another"
    for (process, src, seq), names in at.items():
        if process == src:
            assert names[:2] == ["local", "sent"], (process, src, seq)
        else:
            assert IN_ORDER.fullmatch(" ".join(names)), (process, src, seq, names)
            assert names.count("concurrent") <= 1 and names.count("copied") <= 1
    for process in range(3):
        trace = list(rows(tmp_path / "trace", process))
        assert not list(out_of_place(trace))
        if words.get("order") != "relay":
            assert told_in_place(trace) and not told_wrong(trace)


def test_a_step_out_of_place_is_noticed() -> None:
    trace = MemoryTrace(0, 3)
    trace.row("deliver", 0.0, 1, 1, 1)
    trace.row("branch", 0.0, 1, 1, 1)
    assert [row.step for row in out_of_place(trace.rows)] == ["branch"]
    assert not told_in_place(trace.rows)
    assert told_wrong(trace.rows) == {(1, 1)}


def test_vectors_of_a_run_end_at_what_was_sent(tmp_path: Path) -> None:
    simulate_trial(Trial(members=3, messages=20, seed=1), tmp_path / "trace")
    out = io.StringIO()
    write_jsonl(tmp_path / "trace", out)
    last: dict[int, list[int]] = {}
    sent = [0] * 3
    for line in out.getvalue().splitlines():
        step = json.loads(line)
        last[step["process"]] = step.get("vector", last.get(step["process"]))
        if step["step"] == "send":
            sent[step["src"]] = step["seq"]
            assert step["stamp"] == [
                *step["deps"][: step["src"]],
                step["seq"],
                *step["deps"][step["src"] + 1 :],
            ]
    assert list(last.values()) == [sent] * 3
