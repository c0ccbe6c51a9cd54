"""The evaluation of ReMIOP: pacing that must come out, claims that can fail, real paths, one page."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from inga.cli.main import main
from inga.lab import remiop
from inga.lab.bench_remiop import processing
from inga.lab.experiments import BY_CONSTRUCTION, HOLDS, NOT_REPRODUCED, ROUGHLY, Table
from inga.lab.remiop import live
from inga.lab.remiop.claims import judge
from inga.lab.remiop.live import FREE, SLOW_READERS, measure, narrow_path
from inga.lab.remiop.page import describe, render
from inga.lab.remiop.slow import EXPERIMENT, QUICK, picture, slow_table
from inga.lab.remiop.trips import FAST_RATES, MEMBERS, SLOW_RATES, Setup, Trip, pacing_ms
from inga.lab.remiop.virtual import LAN, simulate
from inga.recipes import Options
from inga.sim.simulator import Sim

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
    sim = Sim(*MEMBERS, order="miop", options=Options(), faults=LAN, record=False)
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


def verdicts(free: list[Trip], narrow: list[Trip], careful: list[Trip] | None = None) -> dict[str, str]:
    return {claim.id: claim.verdict for claim in judge(free, narrow, CAREFUL if careful is None else careful)}


CAREFUL = careful()


def but(
    trips: list[Trip], stack: str, rate: int | None, size: int, change: Callable[[Trip], Trip]
) -> list[Trip]:
    """The same, but one."""
    return [change(each) if each.trial == Setup(stack, size, rate) else each for each in trips]


def test_claims_are_judged_by_what_was_found() -> None:
    assert verdicts(free(), narrow()) == {**dict.fromkeys("123456", HOLDS), "7": BY_CONSTRUCTION}


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
    claims = judge(free(), narrow(), careful())
    html = render(tables(), claims, free(), narrow(), "a path of ours")
    assert html.count("<svg") == 3 and html.count('class="mark pass"') == 6
    assert html.count(f'class="mark unknown">{BY_CONSTRUCTION}<') == 1
    assert "a path of ours" in html and "remiop 1000" in html
    text = describe(tables(), claims, "a path of ours")
    assert "a path of ours" in text and "holds  the higher Rmax" in text
    assert [line.split()[3] for line in text.splitlines() if line.split()[:1] == ["sockets"]][-1] == "-"


@pytest.mark.hunt
@pytest.mark.network
def test_the_whole_experiment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "remiop", "--quick", "--json", "--quiet", "--out", str(tmp_path)]) == 0
    content = json.loads(capsys.readouterr().out)
    assert set(content["tables"]) == {"round_trip", "constrained", "slow"}
    assert content["tables"]["round_trip"]["columns"] == "stack rmax bytes ms lost nacks repairs".split()
    assert [claim["id"] for claim in content["claims"]] == list("1234567")
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
        {**tables(), "slow": found}, judge(free(), narrow(), careful()), free(), narrow(), "x", samples
    )
    assert html.count("<svg") == 4 and "cannot follow" in html


def test_the_figure_in_the_docs_is_this_one() -> None:
    """Written by `picture(EXPERIMENT.run())`."""
    path = Path(__file__).parents[2] / "docs" / "protocols" / "img" / "remiop-rate.svg"
    assert path.read_text(encoding="utf-8") == picture(EXPERIMENT.run())
