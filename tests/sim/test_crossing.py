"""Crossing traffic: fifo breaks causality, causal order does not, in the eyes of two judges.

One is the oracle, which watches the applications. The other knows only the rows of the trace: it looks,
by brute force, for takes that came before a message their vector names, and checks the vectors too.
"""

import pytest

from inga.layers.shape import Faults
from inga.recipes import Options
from inga.sim import Sim
from inga.trace.memory import MemoryTrace
from inga.trace.schema import Row
from inga.trial.workload import Workload

FAULTS = Faults(loss=0.05, duplicate=0.1, reorder=0.4, delay_min=0.001, delay_max=0.03)
MEMBERS = 5
Id = tuple[int, int]


def traced(order: str, seed: int, subset: int | None = None) -> tuple[Sim, list[Row]]:
    """`matrix` is the order `vector` with that option."""
    rows: list[Row] = []
    names = "alice bob cathy dave erin".split()
    sim = Sim(
        *names,
        order="vector" if order == "matrix" else order,
        options=Options(matrix=order == "matrix"),
        seed=seed,
        faults=FAULTS,
        traces=[MemoryTrace(me, MEMBERS, rows) for me in range(MEMBERS)],
    )
    sim.load(Workload(MEMBERS, 30, subset=subset))
    sim.run()
    sim.finish()
    return sim, rows


def sends(rows: list[Row]) -> dict[Id, Row]:
    return {(row.src, row.seq): row for row in rows if row.step == "send"}  # type: ignore[misc]


def is_for(row: Row, process: int) -> bool:
    return process != row.src if row.dst is None else bool(row.dst >> process & 1)


def causal_violations(rows: list[Row], step: str) -> int:
    """Rows of that step that came before one of a message they depend on, found by trying all."""
    sent = sends(rows)
    found = 0
    for process in range(MEMBERS):
        position = {
            (row.src, row.seq): row.pos for row in rows if row.process == process and row.step == step
        }
        for row in rows:
            if row.process != process or row.step != step:
                continue
            assert row.deps is not None
            found += any(
                position.get((k, seq), 10**9) > row.pos
                for k, last in enumerate(row.deps)
                for seq in range(1, last + 1)
                if is_for(sent[k, seq], process)
            )
    return found


def true_pasts(rows: list[Row]) -> dict[Id, set[Id]]:
    """What caused what, from sends and takes alone; rows of all members stand in the order of events."""
    known: list[set[Id]] = [set() for _ in range(MEMBERS)]
    pasts: dict[Id, set[Id]] = {}
    for row in rows:
        if row.step not in ("send", "take"):
            continue
        id_: Id = (row.src, row.seq)  # type: ignore[assignment]
        if row.step == "send":
            pasts[id_] = set(known[row.process])
            known[row.process].add(id_)
        else:
            known[row.process] |= pasts[id_] | {id_}
    return pasts


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("order", ["causal", "matrix", "relay"])
def test_fifo_breaks_causality_and_causal_order_does_not(seed: int, order: str) -> None:
    weak, weak_rows = traced("fifo", seed)
    assert weak.oracle.violations["causal"] > 0
    assert causal_violations(weak_rows, "take") > 0
    assert causal_violations(weak_rows, "deliver") > 0
    weak.check()  # it keeps what it promises

    strong, strong_rows = traced(order, seed)
    assert strong.oracle.violations.total() == 0
    assert causal_violations(strong_rows, "take") == 0
    assert causal_violations(strong_rows, "deliver") == 0
    assert strong.oracle.related > 1000


def test_none_breaks_fifo_too() -> None:
    sim, rows = traced("none", 0)
    assert sim.oracle.violations["fifo"] > 0
    assert causal_violations(rows, "take") >= 1
    sim.check()


@pytest.mark.parametrize("order", ["none", "fifo", "causal", "matrix", "relay"])
@pytest.mark.parametrize("subset", [None, 2])
def test_vectors_in_a_trace_are_the_past_that_truly_was(order: str, subset: int | None) -> None:
    """In every order: what is carried for the trace is as right as what orders."""
    _, rows = traced(order, 4, subset)
    pasts = true_pasts(rows)
    assert len(pasts) > 100
    for row in rows:
        if row.step in ("send", "deliver", "take"):
            past = pasts[row.src, row.seq]  # type: ignore[index]
            counts = [max((seq for k, seq in past if k == member), default=0) for member in range(MEMBERS)]
            assert row.deps == tuple(counts)
            assert row.height == sum(counts) + 1


@pytest.mark.parametrize("order", ["none", "fifo", "causal", "matrix", "relay"])
def test_every_message_is_delivered_once_and_taken_once(order: str) -> None:
    _, rows = traced(order, 2, subset=2)
    sent = sends(rows)
    for process in range(MEMBERS):
        for step in ("deliver", "take"):
            ids = [(row.src, row.seq) for row in rows if row.process == process and row.step == step]
            assert len(ids) == len(set(ids))
            assert set(ids) == {id_ for id_, row in sent.items() if is_for(row, process)}


@pytest.mark.parametrize("order", ["causal", "matrix", "relay"])
@pytest.mark.parametrize("subset", [1, 2])
def test_subsets_keep_causal_order_in_the_eyes_of_both(order: str, subset: int) -> None:
    sim, rows = traced(order, 5, subset)
    sim.check()
    assert causal_violations(rows, "take") == causal_violations(rows, "deliver") == 0
    assert sim.oracle.related > 500
