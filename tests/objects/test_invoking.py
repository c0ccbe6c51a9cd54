"""Objects that are told which members call them: `protocol={"members_invoking": ...}`. They wait for these alone, and nobody else may call."""

from typing import Any

import pytest

from inga.model.errors import UsageError
from inga.net.join import _same_objects
from inga.obg import InvocationAborted, ObjectClass, method
from inga.objects.hosting import Layout
from inga.recipes import Options
from inga.sim.simulator import Sim

from .classes import Account

NAMES = ("alice", "bob", "cathy")


class Clerk(ObjectClass):
    """Pays into the till when it is asked to."""

    @method
    async def pay(self, ctx: Any, amount: int) -> None:
        await ctx.call("till", "deposit", amount)


OBJECTS = {"till": (Account, ["bob"]), "clerk": (Clerk, ["alice"]), "clerks": (Clerk, ["alice", "cathy"])}


def group(*named: str, order: str = "object") -> Sim:
    protocol = {"members_invoking": {"till": named}} if named else {}
    sim = Sim(*NAMES, order=order, seed=1, objects=OBJECTS, options=Options(protocol=protocol))
    for source in NAMES:
        for target in NAMES:
            if source != target:
                sim.link(source, target).delay = 5.0 if source == "cathy" else 0.001
    return sim


@pytest.mark.parametrize(("named", "is_soon"), [(("alice", "bob"), True), (NAMES, False), ((), False)])
def test_an_object_waits_for_those_alone_who_call_it(named: tuple[str, ...], is_soon: bool) -> None:
    """Whatever cathy says comes late; nobody has to hear of her before the very first call. By default, all members may call."""
    sim = group(*named)
    sim["alice"].call("till", "deposit", 3)
    paid = sim["alice"].call("till", "deposit", 4)
    sim.run(until=sim.now + 1.0)
    assert paid.done is is_soon
    sim.run()
    assert paid.done and paid.error is None and sim["bob"].state("till") == 7


def test_nobody_else_may_call_it() -> None:
    sim = group("alice", "bob")
    for call in (sim["cathy"].call, sim["cathy"].oneway):
        with pytest.raises(
            UsageError, match="members_invoking does not name this member among those that call 'till'"
        ):
            call("till", "deposit", 1)
    paid = sim["cathy"].call("clerk", "pay", 2)  # alice's object calls
    sim.run()
    assert paid.error is None and sim["bob"].state("till") == 2


def test_copies_at_members_that_are_not_named_make_all_of_them_refuse() -> None:
    """Else some copies would have called, and others not."""
    sim = group("alice", "bob")
    paid = sim["alice"].call("clerks", "pay", 2, answers="all")
    sim.run()
    assert isinstance(paid.error, InvocationAborted) and "members_invoking does not name" in str(paid.error)
    assert sim["bob"].state("till") == 0
    named = group(*NAMES)
    paid = named["alice"].call("clerks", "pay", 2, answers="all")
    named.run()
    assert paid.error is None and named["bob"].state("till") == 2


def test_who_is_named_may_come_later_or_be_gone() -> None:
    sim = group("alice", "bob", "zoe")
    sim["alice"].call("till", "deposit", 3)
    paid = sim["alice"].call("till", "deposit", 4)
    sim.run(until=sim.now + 1.0)
    assert paid.done and paid.error is None


@pytest.mark.parametrize(
    ("objects", "order", "said"),
    [
        (OBJECTS, "object", {"safe": ["alice"]}),
        (OBJECTS, "total", {"till": ["alice"]}),
        (None, "object", {"till": ["alice"]}),
    ],
)
def test_it_is_for_objects_that_are_there(objects: Any, order: str, said: dict[str, list[str]]) -> None:
    with pytest.raises(UsageError, match="members_invoking is for objects under order='object'"):
        Sim(*NAMES, order=order, objects=objects, options=Options(protocol={"members_invoking": said}))


@pytest.mark.parametrize("said", [["till"], {"till": "alice"}, {"till": [1]}, {"till": 3}, "till"])
def test_it_names_members_for_each_object(said: Any) -> None:
    with pytest.raises(UsageError, match="members_invoking names for each object the members that call it"):
        Sim(*NAMES, order="object", objects=OBJECTS, options=Options(protocol={"members_invoking": said}))


def test_members_that_were_told_otherwise_are_in_another_group() -> None:
    layout = Layout(OBJECTS, NAMES)
    meant = [
        _same_objects(layout, protocol)
        for protocol in (
            {},
            {"members_invoking": {"till": ["alice", "bob"]}},
            {"members_invoking": {"till": ("bob", "alice")}},
            {"members_invoking": {"till": ["alice"]}},
        )
    ]
    assert meant[1] == meant[2] and len({*meant}) == 3
