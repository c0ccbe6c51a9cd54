"""MIOP and ReMIOP in virtual time: promises under faults, hunts, traces, and a receiver that cannot follow."""

from collections.abc import Iterable, Sequence
from statistics import fmean

import pytest

from inga.corba.multicast.envelope import OPERATION
from inga.corba.multicast.fragments import MiopFragments, Strategy
from inga.corba.multicast.rate import Rate
from inga.corba.multicast.remiop import ReMiop
from inga.corba.multicast.reported import Stream
from inga.corba.multicast.transport import Miop
from inga.corba.wire import miop
from inga.corba.wire.group_request import decode_request, read_octets
from inga.lab.remiop.receiver import SlowReceiver
from inga.layers.causal import Causal
from inga.layers.fifo import Unreliable
from inga.layers.shape import Faults
from inga.model.errors import UsageError
from inga.model.packet import Packet
from inga.recipes import NONE, Options, Ordering, causal, compose, find
from inga.recipes import recipe as registry
from inga.recipes.standard import plain
from inga.sim import Sim
from inga.sim.board import replay
from inga.sim.hunt import hunt
from inga.sim.network import Network
from inga.sim.trials import simulate_trial
from inga.stack.layer import Layer
from inga.trace.memory import MemoryTrace
from inga.trial.trial import Trial
from inga.trial.workload import Workload

PEOPLE = ("alice", "bob", "cathy", "dave", "erin", "frank")
ROUGH = Faults(loss=0.2, duplicate=0.1, reorder=0.2, delay_min=0.001, delay_max=0.01)
RELIABLE = ["miop+acks", "remiop", "remiop+vector", "remiop+co"]


def test_by_acknowledgements_a_large_message_outlives_any_cut() -> None:
    """Its sender repeats only what was not acknowledged, so the rest is kept as long."""
    sim = Sim(*PEOPLE[:3], order="miop+acks", faults=Faults(loss=0.4, delay_max=0.01), record=False)
    sim.run(until=1.0)
    for number in range(8):
        for site in sim.sites:
            site.send(bytes(4000))
        sim.run(until=1.0 + 0.002 * (number + 1))
    sim.network.part(sim.sites[:1], sim.sites[1:])
    sim.run(until=200.0)
    sim.network.heal()
    sim.run(until=260.0)
    for site in sim.sites:
        assert len(site.texts) == 16 and not site.stack.rejected["expired"]
        (fragments,) = (layer for layer in site.stack.layers if isinstance(layer, MiopFragments))
        assert not fragments.reassembly.open


@pytest.mark.parametrize("order", RELIABLE)
def test_every_promise_is_kept(order: str) -> None:
    sim = Sim(*PEOPLE[:5], order=order, seed=5, faults=ROUGH, record=False)
    sim.load(Workload(5, 25))
    sim.run(until=60.0)
    sim.check()
    assert sim.oracle.taken == sim.oracle.expected == 500
    assert sim.oracle.related
    assert not sum((site.stack.rejected for site in sim.sites), start=type(sim.sites[0].stack.rejected)())


class AsksForNothing(ReMiop):
    """What is lost stays lost."""

    def _request(self, stream: Stream, numbers: Iterable[int]) -> None:
        pass


@pytest.mark.parametrize(
    ("ordering", "strategy", "broken"),
    [(NONE, ReMiop, "causal"), (causal(Causal), AsksForNothing, "complete")],
    ids=["no order above it", "it asks for nothing"],
)
def test_an_order_whose_basis_is_broken_is_noticed(
    ordering: Ordering, strategy: type[ReMiop], broken: str
) -> None:
    compose("broken", ordering, Miop(strategy), guarantees=find("remiop+vector").guarantees)
    try:
        with pytest.raises(AssertionError, match=broken):
            test_every_promise_is_kept("broken")
    finally:
        del registry._recipes["broken"]


def test_plain_miop_loses_and_does_nothing_else() -> None:
    sim = Sim(*PEOPLE[:4], order="miop", seed=5, faults=ROUGH, record=False)
    sim.load(Workload(4, 50))
    sim.run()
    sim.check()
    lost = sim.oracle.violations["complete"]
    assert 0.1 * sim.oracle.expected < lost < 0.3 * sim.oracle.expected
    assert sim.pdus["control"] == sim.pdus["repair"] == 0


@pytest.mark.parametrize("order", RELIABLE)
def test_large_messages_in_many_packets(order: str) -> None:
    sim = Sim(*PEOPLE[:3], order=order, seed=2, faults=ROUGH, record=False)
    sim.load(Workload(3, 2, size=100_000, rate=10))
    sim.run()
    sim.check()
    assert sim.oracle.taken == 12
    assert sim.pdus["data"] > 6 * 100_000 / 1440


@pytest.mark.parametrize("order", [*RELIABLE, "miop"])
def test_a_short_hunt(order: str) -> None:
    assert hunt(order, 20 if order == "remiop+co" else 50, 1)[1] is None


@pytest.mark.hunt
@pytest.mark.parametrize("order", [*RELIABLE, "miop"])
def test_a_long_hunt(order: str) -> None:
    assert hunt(order, 5000, 10_000)[1] is None


@pytest.mark.parametrize("options", [{"od": 3}, {"repeats": 40}, {"size": 8}, {"rmin": 5e4, "rmax": 2e5}])
def test_with_other_options(options: dict[str, float]) -> None:
    sim = Sim(
        *PEOPLE[:4], order="remiop", seed=7, faults=ROUGH, record=False, options=Options(protocol=options)
    )
    sim.load(Workload(4, 20))
    sim.run()
    sim.check()


def test_the_same_seed_is_the_same_run() -> None:
    one, two = (
        simulate_trial(Trial("remiop+vector", members=4, messages=20, loss=0.3, seed=9)) for _ in range(2)
    )
    one.cpu_seconds = two.cpu_seconds = 0
    assert one == two
    assert one.recovery["lost"] > one.recovery["nack"] > 0


def test_a_run_is_retold_as_a_schedule_and_replayed() -> None:
    sim = Sim(*PEOPLE[:3], order="remiop+vector", seed=3, faults=ROUGH)
    sim.load(Workload(3, 8))
    sim.run()
    board = replay(str(sim.schedule), "remiop+vector")
    assert not board.oracle.count(find("remiop+vector").guarantees)


def test_the_trace_shows_who_repaired_whose_packet_and_who_did_not_ask() -> None:
    traces = [MemoryTrace(index, 6) for index in range(6)]
    sim = Sim(*PEOPLE, order="remiop", seed=1, faults=Faults(loss=0.2), traces=traces, record=False)
    sim.load(Workload(6, 30))
    sim.run()
    sim.check()
    rows = [row for trace in traces for row in trace.rows]
    count = {step: sum(row.step == step for row in rows) for step in {row.step for row in rows}}
    repairs = [row for row in rows if row.step == "repair"]
    assert len(repairs) == sim.recovery["repair"]
    assert (
        sum(row.peer != row.process for row in repairs) == sim.recovery["repair_of_others"] > len(repairs) / 2
    )
    assert count["nack_suppressed"] == sim.recovery["nack_suppressed"] > 0
    assert count["repair_suppressed"] == sim.recovery["repair_suppressed"] > 0
    assert count["nack"] <= sim.recovery["nack"] < sim.recovery["lost"]
    assert {row.note for row in rows if row.step == "control"} == {"state"}


def test_nobody_joins_later() -> None:
    sim = Sim(*PEOPLE[:2], order="remiop", record=False)
    with pytest.raises(UsageError, match="nobody can join a group of order 'remiop' later"):
        sim.join("zoe")


def test_options_are_those_of_all_layers() -> None:
    with pytest.raises(UsageError, match="order 'remiop' has no option 'widow'; there are datagram") as why:
        find("remiop").build(Options(protocol={"widow": 1}))
    for name in ("datagram", "collect", "rmin", "rmax", "tnack", "trepair", "od", "size", "wait"):
        assert name in str(why.value)
    assert "announced" not in str(why.value), "which is not for the user to say"
    with pytest.raises(UsageError, match="'miop' has no option 'tnack'"):
        find("miop").build(Options(protocol={"tnack": 1}))
    assert "window" not in str(why.value)
    find("remiop+co").build(Options(protocol={"window": 3, "tnack": 0.01}))


# A slow receiver


def test_what_is_held_when_a_view_ends_keeps_nobody_from_sending() -> None:
    """Of bob's last words nobody has the first, so that the second waits until the view ends; by then alice has to have sent
    more than fits her window."""
    options = Options(detect=0.5, queue_max=1024, protocol={"size": 4})
    sim = Sim(*PEOPLE[:4], order="remiop+vector", options=options, record=False)
    alice, bob, *others = sim.sites
    sim.run(0.1)
    sim.network.part([bob], [alice, *others])
    bob.send(b"lost")
    sim.run(0.11)
    sim.network.heal()
    bob.send(b"." * 1200)
    sim.run(0.115)
    bob.crash()
    for number in range(20):
        alice.send(b"%d" % number)
    sim.run(5.0)
    for site in others:
        assert "bob" not in site.stack.view.names and len(site.texts) == 20
    sim.check()


def test_a_slow_receiver_drags_the_rate_to_its_speed_and_releases_it_again() -> None:
    experiment = SlowReceiver(slow_from=5, slow_until=20, end=30)
    samples = experiment.run()
    before = [sample for sample in samples if 3 < sample.seconds <= 5]
    slow = [sample for sample in samples if 6 < sample.seconds <= 20]
    after = [sample for sample in samples if sample.seconds > 28]
    assert {sample.rate for sample in before} == {sample.rate for sample in after} == {experiment.rmax}
    assert min(sample.rate for sample in slow) == experiment.rmin
    assert experiment.speed / 4 < fmean(sample.sent for sample in slow) < experiment.speed
    assert fmean(sample.rate for sample in slow) < experiment.speed, "it is the rate, not a full window"
    assert max(sample.lag for sample in slow) > experiment.size / 2
    assert max(sample.lag for sample in before + after) < experiment.size / 5
    assert samples == experiment.run(), "the same experiment is the same series"


def test_a_rate_that_the_fastest_receiver_decides_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what is reported in a period, the least lag would count: what slows the sender then is its window alone."""

    def report(self: Rate, lag: int) -> None:
        self.lag = max(0, lag) if self.lag is None else min(max(0, lag), self.lag)

    monkeypatch.setattr(Rate, "report", report)
    with pytest.raises(AssertionError, match="not a full window"):
        test_a_slow_receiver_drags_the_rate_to_its_speed_and_releases_it_again()


def test_a_receiver_fast_enough_drags_nothing() -> None:
    experiment = SlowReceiver(slow_from=5, slow_until=15, end=15, speed=5_000_000)
    assert {sample.rate for sample in experiment.run() if sample.seconds > 3} == {experiment.rmax}


# A strategy of one's own


class Doubled(Strategy):
    """The simplest thing against loss: everything twice."""

    name = "doubled"
    provides = frozenset({"reliable"})

    def down(self, batch: list[Packet]) -> None:
        self.below([packet for packet in batch for _ in range(2)])


class WithoutStrategy(Miop):
    """Whatever strategy there is has no place."""

    def layers(self, order: Layer, made: Sequence[Layer], options: Options, name: str) -> list[Layer]:
        kept = [layer for layer in made if not isinstance(layer, Strategy)]
        return super().layers(order, kept, options, name)


class AboveSegmentation(Miop):
    """The strategy has whole messages, instead of packets."""

    def layers(self, order: Layer, made: Sequence[Layer], options: Options, name: str) -> list[Layer]:
        fragments, strategy = made
        return super().layers(order, [strategy, fragments], options, name)


def test_a_strategy_of_ones_own_is_a_recipe(transport: type[Miop] = Miop) -> None:
    """Of messages in three packets: it is packets that come twice, or more messages would be lost."""
    compose("doubled", plain(Unreliable), transport(Doubled), guarantees=("integrity",))
    try:
        runs = [
            simulate_trial(Trial(order, members=3, messages=200, size=4000, loss=0.1, seed=1))
            for order in ("miop", "doubled")
        ]
    finally:
        del registry._recipes["doubled"]
    once, twice = (run.expected - run.delivered for run in runs)
    assert runs[1].violations == 0
    assert 0 < twice < once / 6


@pytest.mark.parametrize("transport", [WithoutStrategy, AboveSegmentation])
def test_a_strategy_in_another_place_is_noticed(transport: type[Miop]) -> None:
    with pytest.raises(AssertionError):
        test_a_strategy_of_ones_own_is_a_recipe(transport)


# What is on the wire


@pytest.mark.parametrize("order", [*RELIABLE, "miop"])
def test_every_datagram_is_a_miop_packet_and_every_message_a_request(
    order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    datagrams: list[bytes] = []
    transmit = Network.transmit

    def watched(network: Network, site: object, address: int | None, datagram: object) -> None:
        assert address is None, "a group has one address"
        datagrams.append(bytes(datagram))  # type: ignore[call-overload]
        transmit(network, site, address, datagram)  # type: ignore[arg-type]

    monkeypatch.setattr(Network, "transmit", watched)
    sim = Sim(*PEOPLE[:3], order=order, seed=4, faults=Faults(loss=0.1, delay_max=0.01), record=False)
    sim.load(Workload(3, 5, size=3000))
    sim.run()
    fragments = [miop.decode(datagram) for datagram in datagrams]
    messages: dict[bytes, dict[int, bytes]] = {}
    for fragment in fragments:
        if fragment.is_control:
            miop.decode_control(fragment)
        else:
            messages.setdefault(fragment.unique_id, {})[fragment.number] = bytes(fragment.payload)
    requests = [
        decode_request(b"".join(parts[at] for at in sorted(parts))) for _, parts in sorted(messages.items())
    ]
    assert {request.operation for request in requests} == {OPERATION}
    assert {request.group.domain for request in requests} == {"inga"}
    assert all(read_octets(request.arguments).startswith(b"in") for request in requests)
    assert max(map(len, datagrams)) <= 1472
    ids = [miop.read_id(unique_id) for unique_id in messages]
    assert {miop.quad(sender) for sender, _ in ids if sender} == {"127.0.0.1", "127.0.0.2", "127.0.0.3"}  # type: ignore[misc]
