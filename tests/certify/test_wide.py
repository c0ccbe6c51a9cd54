"""A group of very many of which few have left a trace: work and memory go by the rows that there are."""

import re
import tracemalloc
from random import Random

from inga.certify.certificate import certify
from inga.certify.chunk import from_table
from inga.certify.combine import Process
from inga.certify.evidence import HOLES_NAMED
from inga.certify.fingerprint import Keys
from inga.certify.local import Chunks
from inga.certify.verdict import Certificate, Witness
from inga.certify.work import summarise
from inga.trace import Row

from .world import Trace, renumbered, table, wander

CHECKED = "integrity complete fifo stamps causal atomic total views quiet time".split()
WIDE = 1000


def broken_run() -> Trace:
    """Four members who say that they are in a view, of whom one delivers in another order, and lacks a message."""
    trace = wander(Random(5), 4, 12, receipt="deliver", order="causal")
    rows = trace[1]
    at = [place for place, row in enumerate(rows) if row.step == "deliver"]
    rows[at[0]], rows[at[-1]] = rows[at[-1]], rows[at[0]]
    del rows[at[2]]
    confirmed = next(row for row in trace[0] if row.step == "send")
    return [
        [*each, *([confirmed._replace(step="confirm")] if not at else [])] for at, each in enumerate(trace)
    ]


def certified(trace: Trace, n: int) -> Certificate:
    """The verdict on a trace of `n` processes of which only these have rows."""

    def widened(row: Row) -> Row:
        return row if row.deps is None else row._replace(deps=(row.deps + (0,) * n)[:n])

    def rows_of(process: int) -> list[Row]:
        view = Row(process, 0, 0, "view", 1, dst=(1 << n) - 1, deps=(0,) * n, peer=0, n=n)
        return renumbered([view, *map(widened, trace[process])])

    rows = [rows_of(process) for process in range(len(trace))]
    processes = [
        Process(f"p{at}", 1, len(each), complete=True, crashed=False) for at, each in enumerate(rows)
    ]
    processes += [Process(f"p{at}", None, 0, complete=False, crashed=False) for at in range(len(trace), n)]
    chunks = [
        from_table(table(each, n), at, n, "deliver", where="test", width=n) for at, each in enumerate(rows)
    ]
    return certify(Chunks(chunks, processes, "deliver"), CHECKED, seed=1)


def told(witness: Witness) -> str:
    """Its sentence, without the zeros of the many."""
    return re.sub(r"(,0)+>", ",0>", witness.text)


def test_verdicts_are_those_of_a_small_group() -> None:
    few, many = certified(broken_run(), 6), certified(broken_run(), 300)
    assert {check.name for check in few.checks if check.violations} >= {
        "complete",
        "fifo",
        "atomic",
        "total",
        "views",
    }
    for one, other in zip(few.checks, many.checks, strict=True):
        assert (one.name, one.verdict, one.violations) == (other.name, other.verdict, other.violations)
        assert list(map(told, one.witnesses)) == list(map(told, other.witnesses))
    assert [group.to_json() for group in few.groups] == [group.to_json() for group in many.groups]


def test_memory_goes_by_the_rows() -> None:
    trace = broken_run()
    tracemalloc.start()
    try:
        certified(trace, WIDE)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * WIDE**2, "one number for each pair of processes is too much"


def test_many_whose_rows_are_missing_are_counted() -> None:
    answer = certified(broken_run(), HOLES_NAMED + 7).checks[0]
    reasons = answer.reason.split("; ")
    assert reasons[0] == "rows of p4 are missing altogether"
    assert reasons[-1] == "rows of 3 more processes are missing"
    assert len(reasons) == HOLES_NAMED + 1


def test_views_in_which_nobody_spoke_cost_nothing() -> None:
    """A sum for each process and view would be most of what a group that changes often needs."""
    rows = [Row(0, 0, 0, "view", number, dst=3, deps=(0, 0), peer=0, n=2) for number in range(1, 6)]
    rows.insert(3, Row(0, 0, 0, "send", 3, 0, 1, None, (0, 0), 1, n=1))
    chunk = from_table(table(renumbered(rows), 2), 0, 2, "deliver", where="test")
    assert list(summarise(chunk, Keys.draw(2, seed=1)).tallies) == [3]
