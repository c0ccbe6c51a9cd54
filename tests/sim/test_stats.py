"""What a snapshot says is what has happened, under every order, and across views."""

import json
from collections import Counter
from dataclasses import FrozenInstanceError

import pytest

from inga.layers.shape import Faults
from inga.model.stats import Stats
from inga.recipes import Options, names
from inga.sim import Sim

NOTHING_LOST = Faults(delay_min=0.001, delay_max=0.004)
CUT = Faults(delay_min=1000.0, delay_max=1000.0)


def by_sender(stats: Stats) -> dict[str, int]:
    return {member.name: member.delivered for member in stats.members if member.delivered}


@pytest.mark.parametrize("order", names())
def test_every_message_is_counted_where_it_was_sent_and_delivered(order: str) -> None:
    sim = Sim("alice", "bob", "cathy", order=order, record=False)
    for number in range(6):
        for site in sim.sites:
            sim.at(1.0 + number, site, lambda site=site: site.send(b"hello"))  # type: ignore[misc]
    sim.run()
    for site in sim.sites:
        stats = site.stats()
        assert stats.sent == 6
        assert stats.delivered == len(site.taken) >= 12
        assert by_sender(stats) == Counter(delivery.sender for delivery in site.taken)
        assert stats.state == "open"
        assert stats.here == (("alice", "bob", "cathy") if order != "miop" else (site.name,)), (
            "nobody acknowledges or greets there"
        )
        assert (stats.unread_packets, stats.unread_bytes, stats.held_bytes) == (0, 0, 0)
        assert all(window.open and not window.waiting for window in stats.windows)
        assert not any(member.behind or member.blocks or member.awaited for member in stats.members)
        assert stats.slowest is None
        assert stats.packets_data and stats.view_age == sim.now


def test_messages_to_some_are_counted_once() -> None:
    sim = Sim("alice", "bob", "cathy", record=False)
    sim["alice"].send(b"for both", to=["bob", "cathy"])
    sim["alice"].send(b"for one", to="bob")
    sim.run()
    assert sim["alice"].stats().sent == 2
    assert [sim[name].stats().delivered for name in ("bob", "cathy")] == [2, 1]


def test_counts_go_on_in_the_next_view_and_its_age_begins_anew() -> None:
    sim = Sim("alice", "bob", "cathy", record=False)
    alice, bob, cathy = sim.sites
    sim.at(1.0, bob, lambda: bob.send(b"before"))
    sim.at(2.0, cathy, lambda: cathy.send(b"last words"))
    sim.at(3.0, cathy, cathy.leave)
    sim.at(6.0, bob, lambda: bob.send(b"after"))
    sim.run()
    stats = alice.stats()
    assert stats.view == 2 and 3.0 < sim.now - stats.view_age < 6.0
    assert [member.name for member in stats.members] == ["alice", "bob"]
    assert stats.delivered == 3 and by_sender(stats) == {"bob": 2}
    assert bob.stats().sent == 2


@pytest.mark.parametrize("order", ["causal", "fifo", "co", "sco", "remiop"])
def test_who_does_not_hear_us_is_behind_and_blocks(order: str) -> None:
    sim = Sim("alice", "bob", "cathy", order=order, faults=NOTHING_LOST, record=False)
    alice = sim["alice"]
    sim.at(1.0, alice, lambda: alice.send(b"hello"))
    sim.run(until=2.0)
    round_trip = alice.stats().round_trip
    assert round_trip is None if order == "remiop" else round_trip is not None and 0.0 < round_trip < 0.02
    sim.link("alice", "bob").faults = CUT
    start = sim.now
    for _ in range(3):
        alice.send(b"nobody tells bob")
    sim.run(until=start + 0.5)
    stats = alice.stats()
    behind = {member.name: member.behind for member in stats.members}
    assert behind["bob"] > 0 == behind["cathy"] == behind["alice"]
    assert stats.slowest is not None and stats.slowest.name == "bob"
    assert stats.slowest.behind_for == pytest.approx(0.5, abs=0.01)
    if order == "remiop":
        return  # its window has room for 512 packets, and its rate for few at a time
    while alice.stack.writable:
        alice.send(b"." * 30_000)
    closed = sim.now
    sim.run(until=closed + 3.0)
    stats = alice.stats()
    assert stats.state == "waiting" and stats.blocked_by == ("bob",)
    assert stats.blocked_for == pytest.approx(3.0)
    bob = next(member for member in stats.members if member.name == "bob")
    assert bob.waited == pytest.approx(3.0)
    assert not all(window.open for window in stats.windows)


def test_what_is_held_names_whose_message_is_missing_and_since_when() -> None:
    sim = Sim("alice", "bob", "cathy", faults=NOTHING_LOST, record=False)
    sim.link("alice", "cathy").faults = CUT
    sim["bob"].react = lambda delivery: b"an answer"
    sim["alice"].send(b"a question")
    sim.run(until=1.0)
    stats = sim["cathy"].stats()
    assert stats.held_by == ("alice",) and stats.held_bytes > len(b"an answer")
    assert stats.held_for == pytest.approx(1.0, abs=0.02)
    assert stats.delivered == 0


def test_repairs_are_those_that_were_asked_for_and_given() -> None:
    sim = Sim("alice", "bob", "cathy", faults=Faults(loss=0.3, delay_min=0.001, delay_max=0.002), seed=3)
    for _ in range(40):
        sim["alice"].send(b"." * 20_000)
    sim.run()
    every = [site.stats() for site in sim.sites]
    assert sum(stats.repairs_asked for stats in every) == sim.recovery["nack"] > 0
    assert sum(stats.repairs_given for stats in every) == sim.recovery["repair"] > 0


def test_what_the_application_has_not_read_is_unread() -> None:
    sim = Sim("alice", "bob", record=False)
    sim["bob"].stop_reading(10.0)
    sim["alice"].send(b"." * 1000)
    sim.run(until=1.0)
    stats = sim["bob"].stats()
    assert (stats.unread_packets, stats.delivered) == (1, 1) and stats.unread_bytes >= 1000


def test_small_windows_say_how_much_they_admit() -> None:
    sim = Sim("alice", "bob", order="causal", options=Options(flow={"window": 5000}))
    (window,) = sim["alice"].stats().windows
    assert (window.layer, window.limit) == ("flow", 5000)


def test_a_snapshot_does_not_change_and_travels_as_json() -> None:
    stats = Sim("alice", "bob")["alice"].stats()
    with pytest.raises(FrozenInstanceError):
        stats.sent = 7  # type: ignore[misc]
    assert json.loads(json.dumps(stats.as_dict()))["members"][1]["name"] == "bob"
