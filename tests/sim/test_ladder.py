"""The rungs against the truth: equal where nothing is concurrent, exact where they should be, and found
out by search where they are not."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest

from inga.certify.certificate import certify
from inga.certify.chunk import from_table
from inga.certify.combine import Process
from inga.certify.local import Chunks
from inga.lab.ladder.search import smallest
from inga.lab.rungs.counters import Scalar
from inga.lab.rungs.rung import Waiting
from inga.recipes import find, ladder
from inga.sim import Sim
from inga.sim.board import Board, Build, lossless
from inga.sim.explore import Explorer
from inga.sim.hunt import hunt
from inga.sim.schedule import Schedule
from inga.sim.trials import simulate_trial
from inga.stack.layer import Layer
from inga.trace import read_processes
from inga.trial.trial import Trial

from .walks import Eager, one_after_the_other, serial, wander_to_some

# Serial histories


def check_serial_histories(build: Build) -> None:
    """That everything is delivered in order, and as under the standard rule."""
    for seed in range(60):
        rng = Random(seed)
        sites = 2 + seed % 5
        for history in (serial, one_after_the_other):
            schedule = history(rng, sites, 1 + rng.randrange(15))
            boards = [Board(sites, each) for each in (build, lossless("vector"))]
            for board in boards:
                assert board.play(schedule).violations.total() == 0, schedule
            assert boards[0].taken == boards[1].taken


@pytest.mark.parametrize("order", ["strict", "scalar", "tree", "head-only", "broadcast", "history"])
def test_equal_to_the_standard_rule_on_serial_histories(order: str) -> None:
    check_serial_histories(lossless(order))


class OwnAlone(Scalar):
    """The counter is not copied from what is delivered."""

    def _count(self, waiting: Waiting[int]) -> None:
        pass


class AnyLater(Scalar):
    """Whatever is higher than the counter is next."""

    def _passes(self, waiting: Waiting[int]) -> bool:
        return waiting.stamp > self._known


@pytest.mark.parametrize("broken", [OwnAlone, AnyLater])
def test_one_counter_with_another_rule_is_noticed_on_serial_histories(broken: type[Scalar]) -> None:
    def build() -> list[Layer]:
        layers = lossless("scalar")()
        return [broken() if isinstance(layer, Scalar) else layer for layer in layers]

    with pytest.raises(AssertionError):
        check_serial_histories(build)


@pytest.mark.parametrize("history", [serial, one_after_the_other])
def test_a_serial_history_has_nothing_concurrent(history: Callable[[Random, int, int], Schedule]) -> None:
    board = Board(4, lossless("vector"))
    board.play(history(Random(1), 4, 20))
    assert board.oracle.related == 20 * 19 // 2


# Exactness


@pytest.mark.parametrize("order", ["history", "vector"])
def test_exact_for_arbitrary_subsets(order: str) -> None:
    promises = find(order).guarantees
    for seed in range(150):
        board = wander_to_some(Random(seed), 2 + seed % 5, 1 + seed % 15, lossless(order))
        assert board.oracle.count(promises) == 0, (seed, board.oracle.witnesses)


@pytest.mark.parametrize(("order", "subsets"), [("history", True), ("history-blind", False)])
def test_nothing_is_held_without_need(order: str, subsets: bool) -> None:
    """After every event, whatever is held lacks a cause that was sent here."""
    held = needless = 0
    for seed in range(80):
        eager = Eager(4)
        wander_to_some(Random(seed), 4, 10, lossless(order), eager)
        held += eager.held
        needless += len(eager.needless)
    assert held > 100, "otherwise this proves nothing"
    assert (needless == 0) == subsets


def test_the_exact_rungs_are_clean_in_every_small_schedule() -> None:
    for order in ("history", "broadcast"):
        assert Explorer(2, 4, lossless(order)).run().violations == 0
        assert Explorer(3, 2, lossless(order)).run().violations == 0
        assert Explorer(3, 2, lossless(order), queues=True).run().violations == 0


@pytest.mark.hunt
@pytest.mark.parametrize(("order", "runs"), [("strict", 4000), ("scalar", 4000), ("tree", 1500)])
def test_equal_on_thousands_of_serial_histories(order: str, runs: int) -> None:
    for seed in range(runs):
        rng = Random(seed)
        sites = 2 + seed % 5
        schedule = rng.choice((serial, one_after_the_other))(rng, sites, 1 + rng.randrange(25))
        boards = [Board(sites, lossless(each)) for each in (order, "vector")]
        for board in boards:
            board.play(schedule)
        assert boards[0].taken == boards[1].taken, schedule


@pytest.mark.hunt
def test_history_is_exact_on_thousands_of_subsets() -> None:
    for seed in range(2000):
        eager = Eager(2 + seed % 5)
        board = wander_to_some(Random(seed), 2 + seed % 5, 1 + seed % 25, lossless("history"), eager)
        assert board.oracle.count(find("history").guarantees) == 0, seed
        assert eager.needless == [], seed


# Found by search


SMALLEST = {
    "none": (2, 2, "A!1 A!2 2>B"),  # V0
    "pairwise": (2, 3, "A!1 1>B B!2 2>C"),  # V1
    "fifo": (2, 3, "A!1 1>B B!2 2>C"),
    "scalar": (2, 2, "A!1 B!2 1>B 2>A"),  # V5
    "last-sender": (2, 2, "A!1 A!2 2>B"),  # V7
    "last-sender-own": (3, 2, "A!1 B!2 1>B B!3 3>A"),  # V9, without FIFO
    "strict": (2, 2, "A!1 B!2 1>B 2>A"),  # V10
    "at-once-replace": (3, 2, "A!1 A!2 B!3 2>B"),  # V12
    "at-once-keep": (3, 2, "A!1 A!2 B!3 2>B"),
    "at-once-count": (3, 2, "A!1 A!2 B!3 2>B"),
    "tree": (3, 2, "A!1 A!2 B!3 2>B"),
}
"""Of each scheme the fewest messages and sites, and what goes wrong then."""


@pytest.mark.parametrize("scheme", SMALLEST)
def test_the_smallest_counterexample_is_the_listed_one(scheme: str) -> None:
    messages, sites, _, first, _ = smallest(scheme)
    assert (messages, sites, first) == SMALLEST[scheme]


class Blocking(Explorer):
    """Looks for what is held for ever, and for nothing else."""

    def _judge(self, state, site, taken):  # type: ignore[no-untyped-def]
        known, seen = state.known[site], state.seen[site]
        for message, _ in taken:
            known |= 1 << message | state.causes[message]
            seen |= 1 << message
        put = lambda values, value: (*values[:site], value, *values[site + 1 :])  # noqa: E731
        return state._replace(known=put(state.known, known), seen=put(state.seen, seen)), ""


def test_v14b_is_the_smallest_that_blocks_a_kept_stamp() -> None:
    report = Blocking(2, 3, lossless("at-once-keep")).run()
    assert str(report.first) == "A!1 A!2 2>B B!3 1>B 3>A"
    assert Blocking(2, 2, lossless("at-once-keep")).run().violations == 0
    assert Blocking(3, 2, lossless("at-once-keep")).run().violations == 0


def test_counting_what_is_delivered_at_once_blocks_nothing() -> None:
    """It is unsafe all the same (V12), and a single duplicate blocks it (V11)."""
    for sites, messages in ((2, 3), (2, 4), (3, 2)):
        assert Blocking(sites, messages, lossless("at-once-count")).run().violations == 0


@pytest.mark.hunt
def test_nor_does_it_block_in_any_schedule_of_three_by_three() -> None:
    assert Blocking(3, 3, lossless("at-once-count")).run().violations == 0


@pytest.mark.parametrize("order", ladder())
def test_a_hunt_tells_the_weak_from_the_exact(order: str) -> None:
    """Whole groups with loss and repair, and random schedules; a find is shrunk."""
    done, failure = hunt(order, 30)
    if order in ("history", "pairwise") or order.startswith(("join-", "gate-")):
        assert failure is None, "exact, or promises less, or wrong only where views change and gates open"
    else:
        assert failure is not None and done < 30


# Traces


def certificate(order: str, path: Path) -> dict[str, str]:
    """The verdicts on a traced run, by the kernels of `inga check`."""
    simulate_trial(Trial(order, members=3, messages=25, loss=0.1, delay=(0.001, 0.1), seed=4), path)
    processes = [
        Process(each.name, 1, each.last_pos, complete=each.complete, crashed=each.crashed)
        for each in read_processes(path)
    ]
    chunks = [
        from_table(pq.read_table(file), int(file.name.partition("-")[0]), 3, "take", where=file.name)
        for file in sorted(path.glob("events/*.parquet"))
    ]
    found = certify(Chunks(chunks, processes, "take"), find("vector").guarantees)
    return {check.name: check.verdict for check in found.checks}


@pytest.mark.parametrize("order", ["realtime", "last-sender-atleast", "at-once-count", "tree"])
def test_the_trace_of_a_weak_scheme_shows_the_violation(order: str, tmp_path: Path) -> None:
    verdicts = certificate(order, tmp_path / "trace")
    assert verdicts["causal"] == "fail"
    assert verdicts["stamps"] == verdicts["integrity"] == "pass", "the vector of the trace is the truth"


def test_the_trace_of_an_exact_scheme_passes(tmp_path: Path) -> None:
    assert set(certificate("history", tmp_path / "trace").values()) == {"pass"}


@pytest.mark.parametrize("order", ["strict", "scalar"])
def test_the_trace_of_a_blocking_scheme_is_incomplete(order: str, tmp_path: Path) -> None:
    assert certificate(order, tmp_path / "trace")["complete"] == "fail"


# The lecture's scene


@pytest.mark.parametrize(
    ("order", "seen"),
    [
        ("pairwise", ["yes", "lunch?"]),
        ("realtime", ["yes", "lunch?"]),
        ("history", ["lunch?", "yes"]),
        ("scalar", ["lunch?", "yes"]),
        ("last-sender", ["lunch?", "yes"]),
        ("strict", ["lunch?", "yes"]),
        ("tree", ["lunch?", "yes"]),
    ],
)
def test_lunch_on_every_rung(order: str, seen: list[str]) -> None:
    """A question, an answer, and a link that takes 20 s: a serial history, which most rungs get right."""
    sim = Sim("alice", "bob", "cathy", order=order)
    sim.link("alice", "cathy").delay = 20
    sim["bob"].react = lambda d: b"yes" if bytes(d.data) == b"lunch?" else None
    sim["alice"].send(b"lunch?")
    sim.run()
    assert sim["cathy"].texts == seen
