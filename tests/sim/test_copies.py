"""Copies of objects at newcomers, where those that had the state are gone: all end with the same one."""

from itertools import combinations
from typing import Any

import pytest

from inga.layers.shape import Faults
from inga.model.view import View
from inga.obg import ObjectClass, method
from inga.recipes import OVER, Options
from inga.session.pieces import PIECE, PIECES
from inga.sim.simulator import Sim
from inga.sim.site import Site

LARGE = 20 * PIECES * PIECE + 1
"""Bytes of a state for which a newcomer asks several times."""


class Sheet(ObjectClass):
    """A state of any size."""

    def initial(self) -> bytes:
        return b""

    @method
    async def write(self, ctx: Any, size: int, mark: int) -> None:
        ctx.effect(lambda state: bytes([mark]) * size)


def group(*names: str, at: list[str], over: str = "reliable", partition: str = "primary") -> Sim:
    options = Options(protocol={"over": over}, detect=0.5, partition=partition)
    faults = Faults(delay_min=0.004, delay_max=0.004)
    objects = {"sheet": (Sheet, at)}
    return Sim(*names, order="object", objects=objects, options=options, faults=faults, seed=3, record=False)


def joined(over: str) -> tuple[Sim, Site, Site]:
    """Alice alone has a large sheet, bob none; cathy and dave are to have one, and have just come in."""
    sim = group("alice", "bob", at=["alice", "cathy", "dave"], over=over)
    written = sim["alice"].call("sheet", "write", LARGE, 7)
    sim.run(until=1.0)
    assert written.done and written.error is None
    sim.join("erin")  # the other two ask while the view changes for her, and come in together
    sim.run(until=sim.now + 0.01)
    cathy, dave = sim.join("cathy"), sim.join("dave")
    while dave.newcomer is not None or cathy.newcomer is not None:
        sim.run(until=sim.now + 0.001)
    assert cathy.stack.view == dave.stack.view and {*dave.stack.view.joined} == {"cathy", "dave"}
    return sim, cathy, dave


def lack(site: Site) -> bool:
    return bool(site.objects.lacks())


@pytest.mark.parametrize("over", OVER)
def test_a_newcomer_has_it_from_another_that_got_everything(over: str) -> None:
    sim, cathy, dave = joined(over)
    sim.link("alice", "dave").delay = 0.4
    while lack(cathy):
        sim.run(until=sim.now + 0.001)
    assert lack(dave)
    sim["alice"].crash()
    sim.run(until=sim.now + 3.0)
    assert {*cathy.stack.view.names} == {"bob", "cathy", "dave", "erin"}
    assert cathy.state("sheet") == dave.state("sheet") == b"\7" * LARGE
    for site in (cathy, dave):
        assert not site.objects.incomplete(), "and what was kept for the other is let go"
        assert not site.stack.layer("session").handover._come  # type: ignore[union-attr]
    written = dave.call("sheet", "write", 2, 9)
    sim.run(until=sim.now + 1.0)
    assert written.error is None and cathy.state("sheet") == dave.state("sheet") == b"\t\t"


@pytest.mark.parametrize("over", OVER)
def test_newcomers_that_all_lack_it_begin_anew(over: str) -> None:
    """One of them has had most of it."""
    sim, cathy, dave = joined(over)
    sim.link("alice", "dave").delay = 60.0
    come = cathy.stack.layer("session").handover._come  # type: ignore[union-attr]
    while "sheet" not in come or len(come["sheet"].data) < PIECE:
        assert lack(cathy) and lack(dave)
        sim.run(until=sim.now + 0.001)
    sim["alice"].crash()
    sim.run(until=sim.now + 3.0)
    assert not lack(cathy) and not lack(dave)
    assert cathy.state("sheet") == dave.state("sheet") == b""
    written = dave.call("sheet", "write", 2, 9)
    sim.run(until=sim.now + 1.0)
    assert written.error is None and cathy.state("sheet") == dave.state("sheet") == b"\t\t"


def test_a_word_that_is_lost_is_repeated() -> None:
    """What two newcomers ask each other does not come through at first."""
    sim, cathy, dave = joined("reliable")
    sim.link("alice", "dave").delay = sim.link("alice", "cathy").delay = 60.0
    sim["alice"].crash()
    while sim["alice"].index in cathy.stack.peers or sim["alice"].index in dave.stack.peers:
        sim.run(until=sim.now + 0.001)
    sim.network.part([sim["bob"], sim["erin"]], [cathy], [dave])
    sim.run(until=sim.now + 0.2)
    assert lack(cathy) and lack(dave)
    sim.network.heal()
    sim.run(until=sim.now + 2.0)
    assert not lack(cathy) and not lack(dave)
    assert {*cathy.stack.view.names} == {"bob", "cathy", "dave", "erin"}


@pytest.mark.parametrize("seed", range(8))
def test_several_that_come_back_go_on_with_the_latest_state(seed: int) -> None:
    """Bob and cathy have the only copies. First bob is cut off, then cathy, who writes something more in a later view of her own.
    Both find the others again, who have none."""
    sim = group("alice", "bob", "cathy", "dave", at=["bob", "cathy"], partition="all")
    sim["alice"].call("sheet", "write", 3, 1)
    sim.run(until=0.5)
    alice, bob, cathy, dave = (sim[name] for name in ("alice", "bob", "cathy", "dave"))
    sim.network.part([bob], [alice, cathy, dave])
    sim.run(until=2.0)
    sim.network.part([bob], [cathy], [alice, dave])
    sim.run(until=4.0 + 0.05 * seed)
    assert bob.stack.view.number < cathy.stack.view.number
    cathy.call("sheet", "write", 5, 2)
    sim.run(until=sim.now + 0.1)
    came: list[View] = []
    sim.network.heal()
    while not came or len(came[-1]) < 4:
        sim.run(until=sim.now + 0.01)
        if not came or came[-1] != alice.stack.view:
            came.append(alice.stack.view)
    sim.run(until=sim.now + 2.0)
    together = [view for view in came if {"bob", "cathy"} <= {*view.joined}]
    first = next(name for view in came for name in view.joined if name in ("bob", "cathy"))
    expected = b"\2" * 5 if together or first == "cathy" else b"\1" * 3
    assert bob.state("sheet") == cathy.state("sheet") == expected


def test_all_who_lack_it_agree_whoever_is_gone() -> None:
    """Four newcomers, one that dies right after the one who had it, at any moment of that."""
    names = ["cathy", "dave", "erin", "frank"]
    for step in range(12):
        sim = group("alice", "bob", at=["alice", *names])
        sim["alice"].call("sheet", "write", LARGE, 7)
        sim.run(until=1.0)
        sites = [sim.join(name) for name in names]
        while any(site.newcomer is not None for site in sites) or len(sites[0].stack.view) < 6:
            sim.run(until=sim.now + 0.001)
        for name in names[1:]:
            sim.link("alice", name).delay = 60.0
        sim.run(until=sim.now + 0.004 * step)
        sim["alice"].crash()
        sim.run(until=sim.now + 0.5 + 0.01 * step)
        sites[step % 2].crash()
        sim.run(until=sim.now + 4.0)
        left = [site for site in sites if not site.has_crashed]
        assert not any(lack(site) for site in left)
        for one, other in combinations(left, 2):
            assert one.state("sheet") == other.state("sheet"), step
