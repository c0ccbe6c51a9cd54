"""Calls that cannot be right are refused where they are asked for, and do no harm to those that can."""

import re
from decimal import Decimal
from typing import Any, ClassVar

import pytest

from inga.model.errors import UsageError
from inga.obg import Abort, InvocationAborted, ObjectClass, method
from inga.objects.speech import CUT, cut
from inga.recipes import OVER, Options
from inga.sim.simulator import Sim

NAMES = ("alice", "bob", "cathy")


class Mute(Abort):
    def __str__(self) -> str:
        raise ValueError("nor this")


class Desk(ObjectClass):
    """Its parameters have the names of everything."""

    handles: ClassVar[list[Any]] = []

    def initial(self) -> int:
        return 0

    @method(compatible=("echo",), identity=True)
    async def echo(
        self, ctx: Any, target: Any = 0, op: Any = 0, first: Any = 0, answers: Any = 0
    ) -> list[Any]:
        return [target, op, first, answers]

    @method(compatible=("echo", "anything"), identity=True)
    async def anything(self, ctx: Any, **named: Any) -> dict[str, Any]:
        return named

    @method
    async def pause(self, ctx: Any, how: str) -> None:
        ctx.effect(lambda s: s + 1)
        await ctx.pause(PAUSES[how])

    @method
    async def keep(self, ctx: Any) -> None:
        self.handles[:] = [ctx.start("desk", "echo")]
        await self.handles[0]

    @method
    async def others(self, ctx: Any) -> None:
        await ctx.all(*self.handles)

    @method
    async def mutter(self, ctx: Any, size: int) -> None:
        raise ValueError("é" * size)

    @method
    async def mute(self, ctx: Any) -> None:
        raise Mute

    @method
    async def spoil(self, ctx: Any) -> None:
        def change(state: Any) -> Any:
            raise Mute

        ctx.effect(change)

    @method
    async def down(self, ctx: Any, depth: int) -> int:
        return int(await ctx.call("desk", "down", depth - 1)) + 1 if depth else 0

    @method
    async def weigh(self, ctx: Any, what: bytes) -> int:
        return len(what)

    @method
    async def ask(self, ctx: Any, what: str) -> None:
        await ASKED[what](ctx)


PAUSES: dict[str, Any] = {
    "a text": "x",
    "nothing": None,
    "no number": float("nan"),
    "for ever": float("inf"),
    "too long": 10**400,
    "back": -1,
    "exact": Decimal(0),
    "imaginary": 0j,
}

ASKED: dict[str, Any] = {
    "a method that is a number": lambda ctx: ctx.call("desk", 5),
    "a method that is bytes": lambda ctx: ctx.call("desk", b"echo"),
    "an object that is a number": lambda ctx: ctx.call(7, "echo"),
    "an object that is nothing": lambda ctx: ctx.start(None, "echo"),
    "objects that are numbers": lambda ctx: ctx.start(["desk", 7], "echo"),
    "objects that are lists": lambda ctx: ctx.oneway([["desk"]], "echo"),
    "no objects": lambda ctx: ctx.oneway([], "echo"),
    "bytes": lambda ctx: ctx.oneway(b"desk", "echo"),
    "a mailbox": lambda ctx: ctx.call("@1", "message", 0, 1, 1, (), (), b"forged"),
    "a mailbox, one-way": lambda ctx: ctx.oneway("@1", "free", 0, 1, 1, (), (), b"forged"),
    "a client": lambda ctx: ctx.call("", "echo"),
    "a set": lambda ctx: ctx.call("desk", "echo", {1}),
    "a set by name": lambda ctx: ctx.oneway("desk", "echo", target={1}),
    "a method that is not there, one-way": lambda ctx: ctx.oneway("desk", "fly"),
    "some answers": lambda ctx: ctx.call("desk", "anything", answers="some"),
    "one answer": lambda ctx: ctx.call("desk", "anything", answers="one"),
    "answers that are none": lambda ctx: ctx.call("desk", "anything", answers=["all"]),
    "a first of another kind": lambda ctx: ctx.start("desk", "anything", first=3),
}


def desk(over: str = "reliable", **options: Any) -> Sim:
    options = {"options": Options(protocol={"over": over}), **options}
    return Sim(*NAMES, order="object", seed=1, objects={"desk": Desk, "own": (Desk, ["bob"])}, **options)


def works(sim: Sim) -> bool:
    """Whether everybody is still served, in order with everything before it."""
    roots = [site.call("desk", "pause", "not at all", answers="all") for site in sim.sites]
    sim.run()
    return all(isinstance(root.error, InvocationAborted) and "KeyError" in str(root.error) for root in roots)


@pytest.mark.parametrize("how", PAUSES)
def test_a_pause_that_is_no_time_ends_that_call_alone(how: str) -> None:
    sim = desk()
    root = sim["alice"].call("desk", "pause", how)
    sim.run()
    assert isinstance(root.error, InvocationAborted) and "a pause is a number of seconds" in str(root.error)
    assert works(sim) and [site.state("desk") for site in sim.sites] == [0, 0, 0]


@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize("what", ASKED)
def test_a_call_that_cannot_be_right_is_refused_where_it_is_asked_for(what: str, over: str) -> None:
    """By a method, by a client, and without harm to either."""
    sim = desk(over)
    asked = sim["alice"].call("desk", "ask", what)
    root = sim["bob"].begin(ASKED[what])
    sim.run()
    assert isinstance(asked.error, InvocationAborted) and str(asked.error).startswith("UsageError: ")
    assert isinstance(root.error, UsageError)
    assert works(sim)
    assert not any(site.texts or site.stack.rejected for site in sim.sites)


def test_whoever_calls_is_told_at_once() -> None:
    sim = desk()
    for call in (sim["alice"].call, sim["alice"].oneway):
        with pytest.raises(UsageError, match="no object 'nobody' in this group; the objects are desk, own"):
            call("nobody", "echo")
        with pytest.raises(UsageError, match="no object '@1'"):
            call("@1", "free", 0, 1, 1, (), (), b"forged")
        with pytest.raises(UsageError, match="called by its name, not by 5"):
            call("desk", 5)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="not set"):
            call("desk", "echo", {1})
    with pytest.raises(UsageError, match="'desk' has no method 'fly'; the methods are echo"):
        sim["alice"].oneway("desk", "fly")
    sim["alice"].oneway("desk", "echo", first=1, answers=2)
    assert works(sim)


def test_parameters_of_any_name_are_the_methods() -> None:
    sim = desk()
    roots = [
        sim["alice"].call("desk", "echo", target=1, op=2, first=3, answers="some"),
        sim["alice"].call("desk", "echo", answers=4),
        sim["alice"].call("desk", "anything", answers="all", target=1),
        sim["alice"].call("own", "anything", first=True),
        sim["alice"].call(["desk", "own"], "echo", 1, answers="all"),
    ]
    sim.run()
    assert [root.result for root in roots] == [
        [1, 2, 3, "some"],
        [0, 0, 0, 4],
        [{"target": 1}] * 3,
        {},
        [[1, 0, 0, "all"]] * 2,
    ]


def test_a_call_of_another_instance_is_not_waited_for() -> None:
    sim = desk()
    for op in ("keep", "others"):
        root = sim["bob"].call("own", op)
        sim.run()
    assert "calls of its own" in str(root.error)
    assert works(sim)


@pytest.mark.parametrize("over", OVER)
def test_a_text_too_long_for_a_datagram_is_cut(over: str) -> None:
    sim = desk(over, datagram_max=1472)
    root = sim["alice"].call("own", "mutter", 5000)
    again = sim["alice"].call("own", "mutter", 5001)
    sim.run()
    for each, size in ((root, 5000), (again, 5001)):
        text = str(each.error)
        assert text.startswith("ValueError: éé")
        if over == "reliable":
            assert text == "ValueError: " + "é" * size
        else:
            assert text.endswith("é" + CUT) and 400 < len(text.encode()) < 1472 - 512


def test_a_text_is_cut_between_characters() -> None:
    text = "aé\ud800😀" * 4
    size = len(text.encode("utf-8", "surrogatepass"))
    assert cut(text, size) == text
    for room in range(len(CUT), size):
        shorter = cut(text, room)
        kept = shorter.removesuffix(CUT)
        assert kept != shorter and text.startswith(kept)
        assert room - 4 < len(shorter.encode("utf-8", "surrogatepass")) <= room


def test_an_error_that_cannot_be_told_still_ends_the_call() -> None:
    sim = desk()
    mute, spoiled = sim["alice"].call("desk", "mute"), sim["alice"].call("desk", "spoil")
    sim.run()
    assert str(mute.error) == "Mute" and str(spoiled.error) == "spoil: an effect raised Mute"
    assert works(sim)


def test_a_lineage_too_long_for_a_datagram_is_refused() -> None:
    sim = desk("datagrams", datagram_max=1472)
    shallow = sim["alice"].call("desk", "down", 20)
    sim.run()
    assert shallow.result == 20
    deep = sim["alice"].call("desk", "down", 200)
    sim.run()
    assert isinstance(deep.error, InvocationAborted) and "do not fit a datagram" in str(deep.error)
    assert works(sim)


def test_arguments_may_fill_a_datagram_to_the_last_byte() -> None:
    sim = desk("datagrams", datagram_max=1472)
    with pytest.raises(UsageError, match="do not fit a datagram") as refused:
        sim["alice"].call("desk", "weigh", bytes(1400))
    size, room, *_ = map(int, re.findall(r"\d+", str(refused.value)))
    most = 1400 - (size - room)
    root = sim["alice"].call("desk", "weigh", bytes(most))
    sim.run()
    assert root.result == most
    with pytest.raises(UsageError, match=f"{room + 1} bytes of arguments"):
        sim["alice"].call("desk", "weigh", bytes(most + 1))
