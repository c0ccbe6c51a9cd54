"""What happens is written down: rows of a full trace agree with what can be seen from outside."""

from collections import Counter
from itertools import groupby

import pytest

from inga.layers.shape import Faults
from inga.model.steps import STEPS
from inga.session.newcomer import Newcomer
from inga.session.session import Session
from inga.sim import Sim
from inga.trace.memory import MemoryTrace
from inga.trace.schema import Row

from .group import CASES, PAGE, A, B, C, Case, Group, apart
from .test_changes import ORDERS

GROUP_STEPS = frozenset("view join leave crash flush".split())
FOUNDERS = ("alice", "bob", "cathy")


def traced(case: Case, **more: bool) -> tuple[Group, list[list[Row]]]:
    """A group of which everything is written down."""
    group = Group(case, **more)
    traces = [MemoryTrace(me, len(group.stacks)) for me in range(len(group.stacks))]
    for stack, trace in zip(group.stacks, traces, strict=True):
        stack.trace = trace
    return group, [trace.rows for trace in traces]


def counted(rows: list[Row]) -> Counter[str]:
    return Counter(row.step for row in rows)


REPAIRING = [case for case in CASES if not case.protocol]  # links of objects have no rows of their own


@pytest.mark.parametrize("case", REPAIRING, ids=[case.name for case in REPAIRING])
def test_repair_is_written_down(case: Case) -> None:
    """As often as it is counted, at the time it happens, and with the member it is about."""
    group, everything = traced(case)
    group.chatter(rounds=2)
    for k in range(12):
        for member in group.present:
            if group.stacks[member].writable:
                group.say(member, f"{member} says {k} ".ljust(3 * PAGE if k % 4 == 0 else 0, "!"))
        group.wait(0.02, lambda flight: group.rng.random() < 0.3)
    group.heal()
    group.inject(A, b"no packet at all")
    for member, rows in enumerate(everything):
        stack, found = group.stacks[member], counted(rows)
        assert found.keys() <= STEPS
        assert found["nack"] == stack.counts["nack"]
        assert found["nack"] > 0 or case.order == "miop+acks"  # where senders repeat what is not acknowledged
        assert found["repair"] == stack.counts["repair"] > 0
        assert found["rejected"] == stack.rejected.total() == (member == A)
        assert {row.peer for row in rows if row.step in ("nack", "gap")} <= set(range(3)) - {member}
        assert all(row.n and row.n > 0 for row in rows if row.step in ("nack", "gap", "repair"))
        assert [row.time for row in rows] == sorted(row.time for row in rows)
        assert all(row.view == 1 for row in rows)


STALLING = [case for case in CASES if case.small or case.window]


@pytest.mark.parametrize("case", STALLING, ids=[case.name for case in STALLING])
def test_windows_are_written_down(case: Case) -> None:
    """Each time they close and open again, with what was on its way when they closed."""
    group, everything = traced(case, small=True)
    group.chatter()
    for _ in range(3):
        group.fill(A)
        group.wait(0.5, apart(C))
        group.fill(A)
        group.heal()
    for member in (A, B):
        rows = [row for row in everything[member] if row.step.startswith("window")]
        assert [step for step, _ in groupby(row.step for row in rows)] == [row.step for row in rows]
        assert not rows or (rows[0].step, rows[-1].step) == ("window_closed", "window_opened")
        assert all(row.n and row.n > 0 for row in rows if row.step == "window_closed")
    assert counted(everything[A])["window_closed"] >= 3


def of_group(rows: list[Row], view: int) -> list[tuple[object, ...]]:
    return [
        (row.step, row.peer, row.n, row.deps, row.note)
        for row in rows
        if row.step in GROUP_STEPS and row.view == view
    ]


def told(row: Row) -> tuple[object, ...]:
    """What a view row says of members, by process: who they are, and who came or went."""
    assert row.dst is not None
    return [at for at in range(row.dst.bit_length()) if row.dst >> at & 1], row.ref


def views_told(rows: list[Row], view: int) -> list[tuple[object, ...]]:
    return [told(row) for row in rows if row.step == "view" and row.view == view]


def joined(*names: str, first: int = 0) -> list[tuple[object, ...]]:
    return [("join", first + at, None, None, name) for at, name in enumerate(names)]


def sent_in(rows: list[Row], *views: int) -> int:
    """The packets that somebody has sent in some views."""
    return sum(row.step == "send" and row.view in views for row in rows)


@pytest.mark.parametrize("order", ORDERS)
def test_views_are_written_down(order: str) -> None:
    """Who is in it, since when, and what is past when it begins: for founders, for newcomers, after a change of order,
    after somebody has left or failed."""
    traces = {me: MemoryTrace(me, 3) for me in range(3)}
    sim = Sim(*FOUNDERS, order=order, traces=[*traces.values()], record=False, faults=Faults())

    def late(process: int, name: str, members: int, newcomer: Newcomer) -> MemoryTrace:
        trace = traces[process] = MemoryTrace(process, members)
        assert newcomer.view is not None
        trace.cut(newcomer.view.number - 1, newcomer.cuts, newcomer.view.processes)
        return trace

    def talk() -> None:
        for site in sim.sites:
            site.send(site.name.encode())
        sim.run()

    sim.trace_newcomers(late)
    talk()
    for me in range(3):
        assert of_group(traces[me].rows, 1) == [("view", A, 3, None, order), *joined(*FOUNDERS)]
        assert views_told(traces[me].rows, 1) == [([A, B, C], "joined 0, 1, 2")]
    past = tuple(sent_in(traces[me].rows, 1) for me in range(3))
    sim.join("dave")
    sim.run()
    talk()
    for me in range(3):
        assert of_group(traces[me].rows, 1)[-1] == ("flush", None, None, None, None)
        assert of_group(traces[me].rows, 2) == [
            ("view", A, 4, (*past, 0), order),
            *joined("dave", first=3),
        ]
        assert views_told(traces[me].rows, 2) == [([A, B, C, 3], "joined 3")]
    assert views_told(traces[3].rows, 2) == [([A, B, C, 3], "joined 0, 1, 2, 3")]
    other = "fifo" if order != "fifo" else "vector"
    past = tuple(sent_in(traces[me].rows, 1, 2) for me in range(4))
    sim["bob"].use(other)
    sim.run()
    talk()
    for trace in traces.values():
        assert of_group(trace.rows, 2)[-1] == ("flush", None, None, None, None)
        assert of_group(trace.rows, 3) == [("view", A, 4, past, other)]
        assert views_told(trace.rows, 3) == [([A, B, C, 3], None)]
    past = tuple(sent_in(traces[me].rows, 1, 2, 3) for me in range(4))
    sim["bob"].leave()
    sim.run()
    for me, trace in traces.items():
        owed = 0 if me == B else None  # it says of itself that nothing of it is missing anywhere
        assert of_group(trace.rows, 3)[1] == ("leave", B, owed, None, None)
        if me != B:
            assert of_group(trace.rows, 3)[2:] == [("flush", None, None, None, None)]
            assert of_group(trace.rows, 4) == [("view", A, 3, past, other)]
            assert views_told(trace.rows, 4) == [([A, C, 3], "left 1")]
    sim["dave"].crash()
    session = sim["alice"].stack.layer("session")
    assert isinstance(session, Session)
    session.exclude({2})
    sim["alice"].pump()
    sim.run(sim.now + 5.0)  # who has lost somebody looks for it from time to time
    for me in (A, C):
        assert of_group(traces[me].rows, 4)[1:3] == [
            ("crash", 3, None, None, None),  # known by its process, whatever its index
            ("flush", None, None, None, None),
        ]
        assert of_group(traces[me].rows, 5) == [("view", A, 2, past, other)]
        assert views_told(traces[me].rows, 5) == [([A, C], "failed 3")]
