"""CO in virtual time, on boards, explored, hunted; its traces."""

import pytest

from inga.layers.co.layer import Co
from inga.layers.co.lossless import LosslessCo
from inga.layers.shape import Faults
from inga.model.errors import UsageError
from inga.model.packet import Packet
from inga.recipes import Options, find
from inga.sim import Sim
from inga.sim.board import lossless, replay
from inga.sim.explore import Explorer
from inga.sim.hunt import case, hunt
from inga.sim.trials import simulate_trial
from inga.stack.layer import Layer
from inga.trace.memory import MemoryTrace
from inga.trial.trial import Trial
from inga.trial.workload import Workload


class NoGate(LosslessCo):
    """Accepts what is next of its sender, whatever precedes it."""

    def _is_acceptable(self, claims: object) -> bool:
        return True


def without_gate() -> list[Layer]:
    layers = find("co").build(Options(lossless=True))
    layers[2] = Co(deliver="causal", window=100, machine=NoGate)
    return layers


PEOPLE = ("alice", "bob", "cathy", "dave", "erin")


def test_the_answer_waits_for_the_question() -> None:
    sim = Sim(*PEOPLE[:3], order="co", deliver="causal", seed=1)
    sim.link("alice", "cathy").delay = 20
    sim["bob"].react = lambda d: b"yes" if bytes(d.data) == b"lunch?" else None
    sim["alice"].send(b"lunch?")
    sim.run()
    assert sim["cathy"].texts == ["lunch?", "yes"]
    sim.check()


@pytest.mark.parametrize("deliver", [None, "causal", "confirmed", "acknowledged"])
def test_every_level_keeps_every_promise(deliver: str | None) -> None:
    faults = Faults(loss=0.2, duplicate=0.1, reorder=0.2, delay_min=0.001, delay_max=0.01)
    sim = Sim(*PEOPLE, order="co", deliver=deliver, seed=5, faults=faults, record=False)
    sim.load(Workload(5, 30))
    sim.run()
    sim.check()
    assert sim.oracle.taken == sim.oracle.expected == 600
    assert sim.oracle.related


def test_a_level_it_lacks_is_named_with_those_it_has() -> None:
    with pytest.raises(UsageError, match="'co' delivers at level 'causal' or 'confirmed' or 'acknowledged'"):
        Sim(*PEOPLE, order="co", deliver="received")


def test_the_same_seed_is_the_same_run() -> None:
    one, two = (simulate_trial(Trial("co", members=4, messages=20, loss=0.3, seed=9)) for _ in range(2))
    one.cpu_seconds = two.cpu_seconds = 0
    assert one == two


def test_a_run_is_retold_as_a_schedule_and_replayed() -> None:
    sim = Sim(*PEOPLE[:3], order="co", seed=3, faults=Faults(loss=0.2, delay_min=0.001, delay_max=0.02))
    sim.load(Workload(3, 8))
    sim.run()
    sim.check()
    board = replay(str(sim.schedule), "co")
    assert not board.oracle.count(find("co").guarantees)
    weak = Sim(*PEOPLE[:3], order="none", like=sim)
    assert sum(len(site.taken) for site in weak.sites) == 48


def test_on_a_board_the_effect_waits() -> None:
    assert replay("A!1 1>B B!2 2>C 1>C", "co").taken == [[2], [1], [1, 2]]


def test_every_schedule_of_three_messages() -> None:
    report = Explorer(3, 3, lossless("co")).run()
    assert not report.violations, report
    assert report.schedules > 100


def test_exploring_finds_the_missing_gate() -> None:
    report = Explorer(3, 2, without_gate).run()
    assert report.violations and str(report.first).startswith("A!1 1>B B!2 2>C")


def test_hunting_tries_its_options_and_finds_nothing() -> None:
    cases = [case("co", seed) for seed in range(0, 80, 2)]
    assert {each.deliver for each in cases} == set(find("co").levels)
    assert {dict(each.option)["window"] for each in cases} == {1, 2, 4, 8}
    assert {dict(each.option)["confirm_every"] for each in cases} == {None, 0, 1}
    assert hunt("co", 60) == (60, None)


def test_a_hunted_case_is_one_command() -> None:
    command = case("co", 4).command()
    assert "--deliver" in command and "--option window=" in command
    assert "None" not in command


def test_rows_of_a_run() -> None:
    traces = [MemoryTrace(index, 3) for index in range(3)]
    sim = Sim(*PEOPLE[:3], order="co", seed=2, traces=traces, faults=Faults(loss=0.2, delay_max=0.01))
    sim.load(Workload(3, 10))
    sim.run()
    sent = sum(row.step == "send" for trace in traces for row in trace.rows)
    for trace in traces:
        steps = [row.step for row in trace.rows]
        foreign = sent - steps.count("send")
        for step in ("accept", "confirm", "acknowledge"):
            assert steps.count(step) == sent
        assert steps.count("deliver") == steps.count("take") == foreign
        for row in trace.rows:
            if row.step in ("send", "accept", "confirm", "acknowledge", "deliver"):
                assert row.deps is not None and row.deps[row.src] == row.seq - 1  # type: ignore[index, operator]
    assert any(row.step == "control" for trace in traces for row in trace.rows)


class Backwards(Layer):
    """Turns bodies around on their way, and back again."""

    name = "backwards"

    def down(self, batch: list[Packet]) -> None:
        for packet in batch:
            packet.body = bytes(packet.body)[::-1]
        self.below(batch)

    def up(self, batch: list[Packet]) -> None:
        for packet in batch:
            packet.body = bytes(packet.body)[::-1]
        self.above(batch)


@pytest.mark.parametrize("order", ["co", "sco", "vector", "fifo"])
def test_our_own_messages_come_back_as_we_sent_them_whatever_is_beneath(order: str) -> None:
    def build(options: Options) -> list[Layer]:
        layers = find(order).build(options)
        at = next(i for i, layer in enumerate(layers) if hasattr(layer, "sent"))
        return [*layers[: at + 1], Backwards(), *layers[at + 1 :]]

    sim = Sim("alice", "bob", order=order, build=build, options=Options(echo=True), record=False)
    for word in ("one", "two"):
        sim["alice"].send(word.encode())
    sim.run()
    sim.check()
    assert sim["alice"].texts == sim["bob"].texts == ["one", "two"]
