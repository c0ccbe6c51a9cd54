"""The evaluation of ReMIOP: pacing that must come out, claims that can fail, real paths, one page."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from inga.cli.main import main
from inga.corba.multicast.rate import Rate
from inga.corba.multicast.remiop import ReMiop
from inga.corba.wire.miop import ControlPacket
from inga.lab import remiop
from inga.lab.bench_remiop import processing
from inga.lab.experiments import BY_CONSTRUCTION, HOLDS, NOT_REPRODUCED, ROUGHLY, Table
from inga.lab.remiop import live
from inga.lab.remiop.claims import judge
from inga.lab.remiop.live import FREE, SLOW_READERS, measure, narrow_path
from inga.lab.remiop.omission import (
    EXPERIMENTS,
    MESSAGES,
    OD,
    BeyondOd,
    OmissionSeen,
    judge_omission,
    omission_table,
)
from inga.lab.remiop.page import describe, render
from inga.lab.remiop.slow import EXPERIMENT, QUICK, picture, slow_table
from inga.lab.remiop.trips import FAST_RATES, MEMBERS, SLOW_RATES, Setup, Trip, pacing_ms
from inga.lab.remiop.virtual import LAN, MESSAGE_MAX, simulate
from inga.model.errors import UsageError
from inga.model.packet import Packet
from inga.model.view import View
from inga.recipes import Options
from inga.sim.simulator import Sim

from ..docs.sources import disagreements

# In virtual time


@pytest.mark.parametrize("rate", SLOW_RATES)
def test_round_trips_take_what_the_rate_makes_of_the_packets(rate: int) -> None:
    """Begun half way between Rmin and Rmax, which is 3/4 of it."""
    trip = simulate(Setup("remiop", 50_000, rate), rounds=1)
    assert trip.ms == pytest.approx(pacing_ms(trip.trial, 0.75 * rate), abs=40)
    assert (trip.lost, trip.nacks, trip.repairs) == (0, 0, 0)


@pytest.mark.parametrize(("rate", "loses"), [(100, False), (1000, True)])
def test_the_narrow_path_loses_what_comes_too_fast(rate: int, loses: bool) -> None:
    trip = simulate(Setup("remiop", 75_000, rate), rounds=1, narrow=True)
    assert trip.ms is not None
    assert (trip.lost > 0, trip.nacks > 0, trip.repairs > 0) == (loses, loses, loses)


def test_one_packet_is_not_paced() -> None:
    trip = simulate(Setup("remiop", 1000, 10), rounds=3)
    assert trip.ms is not None and trip.ms < 25


@pytest.mark.parametrize("size", [1000, 1280, 10_000, 50_000, 75_000, 150_000])
def test_packets_are_counted_as_they_are_sent(size: int) -> None:
    sim = Sim(*MEMBERS, order="miop", options=Options(), faults=LAN, datagram_max=MESSAGE_MAX, record=False)
    sim[MEMBERS[0]].send(b"Q" * size)
    sim.run()
    assert sim.sites[0].stack.counts["data"] == Setup("miop", size).packets


# Between processes


@pytest.mark.network
def test_real_round_trips() -> None:
    trials = [Setup("remiop", 5000, 1000), Setup("miop", 5000), Setup("sockets", 5000), Setup("miop", 500)]
    said: list[str] = []
    trips = measure(trials, FREE, 1, said.append)
    assert [trip.trial for trip in trips] == trials and len(said) == len(trials)
    assert all(trip.ms is not None and not trip.lost for trip in trips)
    slow, fast = trips[0].ms, trips[1].ms
    assert slow is not None and fast is not None and slow >= pacing_ms(trials[0], 1000)


def check_narrow(path: live.NetworkPath) -> None:
    """MIOP loses the end of a burst; ReMIOP loses as much and brings it over all the same."""
    trials = [Setup("miop", 40_000), Setup("remiop", 40_000, 20_000), Setup("sockets", 40_000)]
    plain, reliable, sockets = measure(trials, path, 1, lambda what: None)
    assert plain.ms is None and plain.lost > 0 and sockets.ms is None and sockets.lost > 0
    assert reliable.ms is not None and reliable.lost > 0 and reliable.repairs > 0


@pytest.mark.network
def test_a_narrow_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the experiment, only faster."""
    monkeypatch.setattr(live, "RATE", 5000)
    monkeypatch.setattr(live, "QUEUE", 16 * 1024)
    path = narrow_path()
    if not path.prefix:
        pytest.skip("network namespaces with a token bucket are not permitted here")
    assert "5000 Kbit/s and a queue of 16 KiB" in path.name
    check_narrow(path)


@pytest.mark.network
def test_slow_readers() -> None:
    check_narrow(replace(SLOW_READERS, rate=5000, buffer=8 * 1024, pause=0.002))


def test_an_experiment_that_ends_early_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    """Each stack and rate has a process of its own, and none of them says anything."""
    trials = [Setup("miop", 1000), Setup("remiop", 1000, 500)]
    with live.SideBySide(trials, replace(SLOW_READERS, prefix=("false",)), 1) as trips:
        trips.wait_until_begun(print)
        with pytest.raises(UsageError, match="ended early within loopback"):
            trips.gather(print)
    assert capfd.readouterr().out == ""


def test_where_namespaces_are_not_permitted_readers_are_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "is_permitted", lambda command, *needed: False)
    path = narrow_path()
    assert path is SLOW_READERS and "readers" in path.name and path.rate == live.RATE


# Claims


def free() -> list[Trip]:
    trips = []
    for size in (1000, 50_000, 100_000):
        for rate in (*SLOW_RATES, *FAST_RATES):
            trial = Setup("remiop", size, rate)
            trips.append(Trip(trial, 2.0 + pacing_ms(trial, 0.8 * rate), 0, 0, 0))
        trips += [
            Trip(Setup("miop", size), 1.0 + size / 20_000, 0, 0, 0),
            Trip(Setup("sockets", size), 1.0, 0, 0, 0),
        ]
    return trips


def narrow() -> list[Trip]:
    trips = []
    for size in (50_000, 75_000, 100_000):
        large = size > 50_000
        trips += [
            Trip(Setup("remiop", size, 100), size / 10, 0, 0, 0),
            Trip(Setup("remiop", size, 500), size / 16, 5.0 * large, 4, 6),
            Trip(Setup("remiop", size, 1000), size / 15, 20.0 * large, 9, 18),
            Trip(Setup("miop", size), None if large else 2700.0, 39.0 * large, 0, 0),
            Trip(Setup("sockets", size), None if large else 2600.0, 36.0 * large, 0, 0),
        ]
    return trips


def careful() -> list[Trip]:
    return [Trip(Setup("remiop", 75_000, rate), 75_000 * 8 / rate, 0, 0, 0) for rate in SLOW_RATES]


def omission() -> list[OmissionSeen]:
    return [
        OmissionSeen(0.1, OD, False, None, MESSAGES, 0.8, MESSAGES),
        OmissionSeen(0.1, None, False, None, MESSAGES, 0.8, MESSAGES),
        OmissionSeen(0.95, OD, True, 1.8, MESSAGES, 1.7, 3),
        OmissionSeen(0.95, None, False, None, 17, None, 11),
    ]


def verdicts(
    free: list[Trip],
    narrow: list[Trip],
    careful: list[Trip] | None = None,
    omission: list[OmissionSeen] | None = None,
) -> dict[str, str]:
    found = judge(free, narrow, CAREFUL if careful is None else careful, omission or OMISSION)
    return {claim.id: claim.verdict for claim in found}


CAREFUL = careful()
OMISSION = omission()


def but(
    trips: list[Trip], stack: str, rate: int | None, size: int, change: Callable[[Trip], Trip]
) -> list[Trip]:
    """The same, but one."""
    return [change(each) if each.trial == Setup(stack, size, rate) else each for each in trips]


def test_claims_are_judged_by_what_was_found() -> None:
    found = verdicts(free(), narrow())
    assert found == {
        **dict.fromkeys("1358", HOLDS),
        "4": ROUGHLY,
        **dict.fromkeys("267", BY_CONSTRUCTION),
    }
    assert list(disagreements("remiop", found)) == []


@pytest.mark.parametrize(
    "id, trips, stack, rate, size, change, verdict",
    [
        ("1", "free", "remiop", 500, 50_000, lambda trip: replace(trip, ms=1e6), NOT_REPRODUCED),
        ("1", "free", "remiop", 1000, 50_000, lambda trip: replace(trip, ms=None), NOT_REPRODUCED),
        ("2", "careful", "remiop", 50, 75_000, lambda trip: replace(trip, nacks=1), NOT_REPRODUCED),
        ("2", "careful", "remiop", 10, 75_000, lambda trip: replace(trip, lost=1), NOT_REPRODUCED),
        ("2", "free", "miop", None, 50_000, lambda trip: replace(trip, ms=4000), ROUGHLY),
        ("3", "free", "remiop", 10, 50_000, lambda trip: replace(trip, ms=1e6), ROUGHLY),
        ("4", "free", "miop", None, 1000, lambda trip: replace(trip, ms=-10.0), NOT_REPRODUCED),
        ("4", "free", "miop", None, 1000, lambda trip: replace(trip, ms=-3.0), HOLDS),
        ("4", "free", "miop", None, 1000, lambda trip: replace(trip, ms=2.5), NOT_REPRODUCED),
        ("5", "free", "remiop", 1000, 100_000, lambda trip: replace(trip, ms=1e5), NOT_REPRODUCED),
        ("5", "narrow", "remiop", 100, 75_000, lambda trip: replace(trip, lost=500), NOT_REPRODUCED),
        ("5", "narrow", "remiop", 100, 75_000, lambda trip: replace(trip, nacks=500), ROUGHLY),
        ("6", "narrow", "remiop", 1000, 75_000, lambda trip: replace(trip, ms=10.0), ROUGHLY),
        ("7", "narrow", "miop", None, 50_000, lambda trip: replace(trip, ms=None), ROUGHLY),
        ("7", "narrow", "sockets", None, 75_000, lambda trip: replace(trip, ms=9.0), ROUGHLY),
    ],
)
def test_every_claim_can_fail(
    id: str, trips: str, stack: str, rate: int | None, size: int, change: Callable[[Trip], Trip], verdict: str
) -> None:
    found = {"free": free(), "narrow": narrow(), "careful": careful()}
    found[trips] = but(found[trips], stack, rate, size, change)
    assert verdicts(**found)[id] == verdict


@pytest.mark.parametrize(
    ("which", "change"),
    [
        (0, {"excluded": True}),
        (0, {"itself": MESSAGES - 1}),
        (1, {"excluded": True}),
        (2, {"excluded": False}),
        (2, {"done": None}),
        (3, {"excluded": True}),
        (3, {"done": 2.0}),
    ],
)
def test_the_claim_of_the_omission_degree_can_fail(which: int, change: dict[str, object]) -> None:
    found = omission()
    found[which] = found[which]._replace(**change)  # type: ignore[arg-type]
    assert verdicts(free(), narrow(), omission=found)["8"] == NOT_REPRODUCED


# ReMIOP, changed on purpose


class Unpaced(ReMiop):
    """Sends what there is."""

    def _due(self, since: float) -> float:
        return since


class NeverFaster(ReMiop):
    """Whatever it is told, it keeps to the rate that the narrow path loses nothing of."""

    def view(self, view: View) -> None:
        super().view(view)
        self.rate = Rate(50_000, 100_000, self.size)


class HesitatesFirst(ReMiop):
    """Every packet waits for a moment."""

    def _due(self, since: float) -> float:
        return super()._due(since) + 0.02


def played(strategy: type[ReMiop] | None) -> dict[str, str]:
    """Verdicts on round trips in virtual time, of all stacks."""
    size, large = 50_000, 75_000
    found = [
        simulate(Setup("remiop", size, rate), 1, strategy=strategy) for rate in (*SLOW_RATES, *FAST_RATES)
    ]
    one_packet = [
        Trip(Setup(stack, 1000, rate), ms, 0, 0, 0)
        for stack, rate, ms in (("remiop", 1000, 2.5), ("miop", None, 2.0))
    ]
    through = [
        simulate(Setup("remiop", large, rate), 1, narrow=True, strategy=strategy)
        for rate in (100, *FAST_RATES)
    ]
    plain = simulate(Setup("miop", size), 1), simulate(Setup("miop", large), 1, narrow=True)
    narrow = [*through, plain[1], replace(plain[1], trial=Setup("sockets", large))]
    return verdicts([*found, *one_packet, plain[0]], narrow, through[:1])


def test_every_claim_about_rates_holds_in_virtual_time() -> None:
    found = {id: verdict for id, verdict in played(None).items() if id in "12356"}
    assert found == {**dict.fromkeys("135", HOLDS), **dict.fromkeys("26", BY_CONSTRUCTION)}


@pytest.mark.parametrize(
    ("ids", "strategy"), [("1235", Unpaced), ("1356", NeverFaster)], ids=["Unpaced", "NeverFaster"]
)
def test_a_changed_strategy_fails_the_claims(ids: str, strategy: type[ReMiop]) -> None:
    found = played(strategy)
    assert {id: found[id] for id in ids} == dict.fromkeys(ids, NOT_REPRODUCED)


def test_a_strategy_that_hesitates_costs_too_much() -> None:
    """What it adds to a round trip in virtual time, on top of what ReMIOP adds in real time."""
    trial = Setup("remiop", 1000, 1000)
    usual, late = (simulate(trial, 1, strategy=each).ms for each in (ReMiop, HesitatesFirst))
    assert usual is not None and late is not None

    def slower(trip: Trip) -> Trip:
        assert trip.ms is not None
        return replace(trip, ms=trip.ms + late - usual)

    assert verdicts(but(free(), "remiop", 1000, 1000, slower), narrow())["4"] == NOT_REPRODUCED


class ExcludesAtOnce(BeyondOd):
    """Whoever asks for anything is taken for crashed."""

    def _hear_request(self, control: ControlPacket) -> None:
        super()._hear_request(control)
        asker = self._streams.get(control.sender)
        if asker is not None:
            self._take_for_crashed(asker.member)


def test_a_receiver_beyond_the_omission_degree_is_excluded() -> None:
    found = [each.run() for each in EXPERIMENTS]
    claim = judge_omission(found)
    assert claim.verdict == HOLDS and "and it was alive" in claim.measured
    bad = found[2]
    assert bad.excluded and bad.others == MESSAGES > bad.itself
    assert found[3].others < MESSAGES, "who waits for it does not get on"
    assert len(omission_table(found).rows) == 4


@pytest.mark.parametrize("strategy", [ReMiop, ExcludesAtOnce])
def test_a_changed_rule_of_exclusion_fails_the_claim(strategy: type[ReMiop]) -> None:
    """The product, which leaves it to the one that lacks a packet, and a rule that is too strict."""
    found = [each.run(strategy) for each in EXPERIMENTS]
    assert judge_omission(found).verdict == NOT_REPRODUCED


def test_a_message_of_any_size_is_one_request() -> None:
    """What is cut is one GIOP message, whose size its header says."""
    sent: list[int] = []

    class Watched(ReMiop):
        def down(self, batch: list[Packet]) -> None:
            sent.extend(packet.lsn for packet in batch if packet.piece.index == 0)
            super().down(batch)

    assert simulate(Setup("remiop", 100_000, 1000), 1, strategy=Watched).ms is not None
    assert len(sent) == 1 + len(MEMBERS), "the question, and everybody's answer"


def test_claims_that_nothing_supports() -> None:
    quiet = [replace(trip, lost=0, nacks=0, repairs=0) for trip in narrow()]
    assert verdicts(free(), quiet)["6"] == verdicts(free(), quiet)["5"] == NOT_REPRODUCED
    whole = [replace(trip, ms=9.0) for trip in narrow()]
    assert verdicts(free(), whole)["7"] == NOT_REPRODUCED
    flat = [replace(trip, ms=9.0) for trip in free()]
    assert verdicts(flat, narrow())["3"] == NOT_REPRODUCED


# The page


def tables() -> dict[str, Table]:
    return {
        "round_trip": Table(remiop.COLUMNS, [trip.row() for trip in free()]),
        "constrained": Table(remiop.COLUMNS, [trip.row() for trip in narrow()]),
    }


def test_the_page_and_the_text_say_which_path_it_was() -> None:
    claims = judge(free(), narrow(), careful(), omission())
    html = render(tables(), claims, free(), narrow(), "a path of ours")
    assert html.count("<svg") == 3 and html.count('class="mark pass"') == 4 + 1, "one explains it"
    assert html.count(f'class="mark plain">{BY_CONSTRUCTION}<') == 3 + 1, "one explains it"
    assert "a path of ours" in html and "remiop 1000" in html
    text = describe(tables(), claims, "a path of ours")
    assert "a path of ours" in text and "holds  the higher Rmax" in text
    assert [line.split()[3] for line in text.splitlines() if line.split()[:1] == ["sockets"]][-1] == "-"


@pytest.mark.hunt
@pytest.mark.network
def test_the_whole_experiment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "remiop", "--quick", "--json", "--quiet", "--out", str(tmp_path)]) == 0
    content = json.loads(capsys.readouterr().out)
    assert set(content["tables"]) == {"round_trip", "constrained", "slow", "omission"}
    assert content["tables"]["round_trip"]["columns"] == "stack rmax bytes ms lost nacks repairs".split()
    found = {claim["id"]: claim["verdict"] for claim in content["claims"]}
    assert list(found) == list("12345678") and list(disagreements("remiop", found)) == []
    assert (tmp_path / "remiop.html").exists()


# The benchmark


@pytest.mark.parametrize("order", ["miop", "remiop"])
def test_the_stacks_alone_can_be_measured(order: str) -> None:
    assert processing(order, 100) > 0


# A slow receiver


def test_the_rate_over_time_is_in_the_page() -> None:
    samples = QUICK.run()
    found = slow_table(samples)
    assert len(found.rows) == QUICK.end / QUICK.every
    html = render(
        {**tables(), "slow": found},
        judge(free(), narrow(), careful(), omission()),
        free(),
        narrow(),
        "x",
        samples,
    )
    assert html.count("<svg") == 4 and "cannot follow" in html


def test_the_figure_in_the_docs_is_this_one() -> None:
    """Written by `picture(EXPERIMENT.run())`."""
    path = Path(__file__).parents[2] / "docs" / "protocols" / "img" / "remiop-rate.svg"
    assert path.read_text(encoding="utf-8") == picture(EXPERIMENT.run())
