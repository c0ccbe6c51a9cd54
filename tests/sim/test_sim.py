"""Groups in virtual time: the lecture's scene, determinism, bad networks, and what a run reports."""

from collections import Counter

import pytest

from inga.layers.shape import Faults
from inga.model.errors import Gap, UsageError
from inga.model.packet import Packet
from inga.recipes import Options, find
from inga.sim import Sim
from inga.sim.simulator import Unquiet
from inga.stack.layer import Layer
from inga.trace.memory import MemoryTrace
from inga.trace.schema import Row
from inga.trial.workload import Workload

PEOPLE = "alice bob cathy dave erin frank grace heidi".split()
BAD = Faults(loss=0.4, duplicate=0.2, reorder=0.3, delay_min=0.001, delay_max=0.01)
DEAD = Faults(loss=0.999999)
ORDERS = ("none", "fifo", "causal")


def test_effect_waits_for_cause() -> None:
    """design.md, section 1, word for word."""
    sim = Sim("alice", "bob", "cathy", order="causal", seed=1)
    sim.link("alice", "cathy").delay = 20
    sim["bob"].react = lambda d: b"yes" if bytes(d.data) == b"lunch?" else None
    sim["alice"].send(b"lunch?")
    sim.run()
    assert sim["cathy"].texts == ["lunch?", "yes"]
    sim.check()  # safety, liveness, integrity, trace order

    weak = Sim("alice", "bob", "cathy", order="fifo", seed=1, like=sim)  # same arrivals
    assert weak["cathy"].texts == ["yes", "lunch?"]


def test_the_same_scene_told_as_a_schedule() -> None:
    sim = Sim("alice", "bob", "cathy", order="causal", seed=1)
    sim.link("alice", "cathy").delay = 20
    sim["bob"].react = lambda d: b"yes" if bytes(d.data) == b"lunch?" else None
    sim["alice"].send(b"lunch?")
    sim.run()
    events = [str(event) for event in sim.schedule.events]
    assert events[:4] == ["A!1", "1>B", "B?1", "B!2"]
    assert events.index("2>C") < events.index("1>C") < events.index("C?1") < events.index("C?2")
    weak = Sim("alice", "bob", "cathy", order="fifo", like=sim)
    assert weak["alice"].texts == ["yes"] and weak["bob"].texts == ["lunch?"]
    assert [delivery.sender for delivery in weak["cathy"].taken] == ["bob", "alice"]
    assert weak.oracle.violations["causal"] == 1
    weak.check()  # fifo never promised it
    again = Sim("alice", "bob", "cathy", order="causal", like=sim)
    assert again["cathy"].texts == sim["cathy"].texts
    again.check()


# Everything from the seed


def run(seed: int, order: str = "causal", **more: object) -> Sim:
    sim = Sim(*PEOPLE[:5], order=order, seed=seed, faults=BAD, **more)  # type: ignore[arg-type]
    sim.load(Workload(5, 15))
    sim.run()
    return sim


@pytest.mark.parametrize("order", ORDERS)
def test_the_same_seed_is_the_same_run(order: str) -> None:
    first, second, other = run(7, order), run(7, order), run(8, order)
    assert str(first.schedule) == str(second.schedule)
    assert (first.pdus, first.bytes, first.now) == (second.pdus, second.bytes, second.now)
    assert [site.texts for site in first.sites] == [site.texts for site in second.sites]
    assert str(other.schedule) != str(first.schedule)
    assert other.now != first.now


def test_recording_changes_nothing() -> None:
    recorded, bare = run(7), run(7, record=False)
    assert (recorded.pdus, recorded.bytes, recorded.now) == (bare.pdus, bare.bytes, bare.now)
    with pytest.raises(UsageError, match="record"):
        assert bare.schedule


def test_tracing_changes_only_what_is_carried_for_it() -> None:
    """The vector recipe needs nothing more to be traced, so its run is the same byte for byte."""
    rows: list[Row] = []
    plain = run(7)
    traced = run(7, traces=[MemoryTrace(me, 5, rows) for me in range(5)])
    assert (traced.bytes, traced.now, str(traced.schedule)) == (plain.bytes, plain.now, str(plain.schedule))
    assert Counter(row.step for row in rows)["send"] > 20


def test_a_recorded_run_plays_again_on_a_board() -> None:
    sim = run(3)
    again = Sim(*PEOPLE[:5], order="causal", like=sim)
    again.check()
    for site in sim.sites:
        assert sorted(site.texts) == sorted(again[site.name].texts)


# Bad networks


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", range(2))
def test_eight_members_on_a_very_bad_network(order: str, seed: int) -> None:
    """40 % loss, 20 % duplicates, reordering: it ends, delivers everything, and goes quiet."""
    rows: list[Row] = []
    traces = [MemoryTrace(me, 8, rows) for me in range(8)]
    sim = Sim(*PEOPLE, order=order, seed=seed, faults=BAD, traces=traces)
    sim.load(Workload(8, 20))
    sim.run()  # comes back only when nobody has anything left to do
    sim.check()
    oracle = sim.oracle
    assert oracle.sent == 160 and oracle.taken == oracle.expected == 160 * 7
    assert oracle.related > 500
    assert all(len(site.taken) == 140 for site in sim.sites)
    steps = Counter(row.step for row in rows)
    assert steps["repair"] > 100 and steps["duplicate"] > 100, "it was a bad network"
    assert sim.pdus["repair"] > 100
    last = max(row.time for row in rows if row.step in ("take", "send"))
    said = sum(row.step == "datagram_out" and row.time > last + 60e9 for row in rows)
    assert said == 0, "quiet soon after the last message was taken"


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "more",
    [
        {"datagram_max": 300},
        {"options": Options(echo=True)},
        {"options": Options(flow={"window": 1})},
        {"options": Options(coarse=True)},
        {"options": Options(flow={"queue_max": 200}), "datagram_max": 1472},
    ],
    ids=["fragments", "echo", "window", "coarse", "slow readers"],
)
def test_every_option_over_a_bad_network(order: str, more: dict[str, object]) -> None:
    sim = Sim(*PEOPLE[:4], order=order, seed=5, faults=BAD, **more)  # type: ignore[arg-type]
    sim.load(Workload(4, 15, size=500, subset=2))
    sim.run()
    sim.check()
    assert sim.oracle.taken == sim.oracle.expected > 100


def test_questions_that_are_never_heard_end_in_a_gap() -> None:
    sim = Sim("alice", "bob", seed=1, options=Options(reliable={"patience": 2.0}))
    sim.link("alice", "bob").faults = sim.link("bob", "alice").faults = DEAD
    sim["alice"].send(b"one")
    sim.link("alice", "bob").faults = Faults()
    with pytest.raises(Gap, match="alice did not repair"):
        sim.run(until=30.0)
    assert 2.0 < sim.now < 4.0


class Chatter(Layer):
    """Says something every millisecond, although nobody wants to know."""

    name = "chatter"
    id = 99
    wake = 0.0

    def tick(self, now: float) -> None:
        self.wake = now + 0.001
        self.below([Packet(self.stack.me, self.stack.view.number, kind=self.id)])


def test_a_run_that_never_goes_quiet_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inga.sim.simulator.EVENTS_MAX", 5000)
    sim = Sim("alice", "bob", seed=1, build=lambda options: [*find("vector").build(options)[:-1], Chatter()])
    sim["alice"].send(b"once upon a time")
    with pytest.raises(Unquiet, match="not quiet"):
        sim.run()


# What can be asked for


def test_wrong_names_are_refused() -> None:
    sim = Sim("alice", "bob")
    for wrong in (
        lambda: sim["carol"],
        lambda: sim.link("alice", "carol"),
        lambda: sim["alice"].send(b"", to="x"),
    ):
        with pytest.raises(UsageError, match="no member"):
            wrong()
    with pytest.raises(UsageError, match="at least one destination"):
        sim["alice"].send(b"", to=[])
    with pytest.raises(UsageError, match="at least one member"):
        Sim()
    with pytest.raises(UsageError, match="no order"):
        Sim("alice", order="cuasal")


def test_some_and_oneself() -> None:
    sim = Sim("alice", "bob", "cathy", seed=2)
    sim["alice"].send(b"for bob", to="bob")
    sim["alice"].send(b"for bob and cathy", to=["bob", "cathy"])
    sim["alice"].send(b"for cathy and me", to=["cathy", "alice"])
    sim.run()
    sim.check()
    assert sim["alice"].texts == ["for cathy and me"]
    assert sim["bob"].texts == ["for bob", "for bob and cathy"]
    assert sim["cathy"].texts == ["for bob and cathy", "for cathy and me"]


def test_alone() -> None:
    sim = Sim("alice", options=Options(echo=True))
    for text in (b"one", b"two", b"three"):
        sim["alice"].send(text)
    sim.run()
    sim.check()
    assert sim["alice"].texts == ["one", "two", "three"]


def test_large_and_small_messages_one_after_the_other() -> None:
    sim = Sim("alice", "bob", seed=1)
    for size in (200_000, 5, 70_000, 0, 61_000):
        sim["alice"].send(b"x" * size)
    sim.run()
    sim.check()
    assert [len(text) for text in sim["bob"].texts] == [200_000, 5, 70_000, 0, 61_000]


def test_running_until() -> None:
    sim = Sim("alice", "bob", seed=1)
    sim.link("alice", "bob").delay = 3.0
    sim["alice"].send(b"one")
    sim.run(until=2.0)
    assert sim.now == 2.0 and sim["bob"].texts == []
    sim.run(until=4.0)
    assert sim["bob"].texts == ["one"]
    assert sim.link("alice", "bob").delay == 3.0


@pytest.mark.parametrize("seed", range(6))
def test_coarse_bundles_may_hide_concurrency(seed: int) -> None:
    """That is what they are: no reason to call a flag wrong."""
    sim = Sim(*PEOPLE[:4], seed=seed, options=Options(coarse=True), record=False)
    sim.load(Workload(4, 50))
    sim.run()
    sim.check()


def test_a_check_says_what_is_wrong_and_which_seed_showed_it() -> None:
    sim = Sim("alice", "bob", "cathy", seed=12)
    sim.link("alice", "cathy").faults = DEAD
    sim["alice"].send(b"one")
    sim.run(until=1.0)
    with pytest.raises(AssertionError, match="seed 12: complete: site 2 never took message 1"):
        sim.check()
