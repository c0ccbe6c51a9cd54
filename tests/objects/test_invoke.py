"""Methods that call methods: what callers see, what aborts take back, and how deadlocks end."""

from typing import Any

import pytest

from inga.model.errors import UsageError
from inga.model.invocation import Announce, Heartbeat, Message, Spoken
from inga.objects.declare import Abort, ObjectClass, method
from inga.objects.invoke import InstanceContext, InvocationAborted, Root

from .party import Party, is_message


class Account(ObjectClass):
    def initial(self) -> int:
        return 100

    @method(compatible=("deposit",), undo="take_back")
    async def deposit(self, ctx: InstanceContext, x: int) -> None:
        ctx.effect(lambda state: state + x)

    @method(undo="deposit")
    async def withdraw(self, ctx: InstanceContext, x: int) -> int:
        if self.state < x:
            raise Abort("insufficient funds")
        ctx.effect(lambda state: state - x)
        return int(self.state - x)

    @method
    async def take_back(self, ctx: InstanceContext, x: int) -> None:
        ctx.effect(lambda state: state - x)

    @method(identity=True, compatible=("balance",))
    async def balance(self, ctx: InstanceContext) -> int:
        return int(self.state)


class Lock(ObjectClass):
    """Holds itself while it calls."""

    def initial(self) -> tuple[str, ...]:
        return ()

    @method
    async def hold(self, ctx: InstanceContext, name: str, then: list[Any]) -> str:
        ctx.effect(lambda state: (*state, name))
        await ctx.pause(5)
        if then:
            await ctx.call(then[0], "hold", name, then[1:])
        return name

    @method(compatible=("look", "hold"))
    async def look(self, ctx: InstanceContext) -> int:
        return len(self.state)

    @method(compatible=("look", "hold", "spoil"))
    async def spoil(self, ctx: InstanceContext) -> None:
        ctx.effect(lambda state: 1 / 0)

    @method(compatible=("look", "hold", "odd"))
    async def odd(self, ctx: InstanceContext) -> Any:
        return object()


class Teller(ObjectClass):
    @method(compatible=("transfer",))
    async def transfer(self, ctx: InstanceContext, a: str, b: str, x: int) -> list[int]:
        await ctx.call(a, "withdraw", x)
        deposit = ctx.start(b, "deposit", x)
        await deposit
        return await ctx.all(ctx.start(a, "balance"), ctx.start(b, "balance"))

    @method(compatible=("transfer", "generous"))
    async def generous(self, ctx: InstanceContext, b: str, a: str, x: int) -> None:
        """Gives before it takes."""
        await ctx.call(b, "deposit", x)
        await ctx.call(a, "withdraw", x)


def bank(**options: Any) -> Party:
    objects: dict[str, Any] = {"a": (Account, (0,)), "b": (Account, (1,)), "teller": (Teller, (2,))}
    return Party(3, objects, **options)


def locks(**options: Any) -> Party:
    return Party(2, {"x": (Lock, (0,)), "y": (Lock, (1,))}, **options)


def test_calls_within_calls() -> None:
    party = bank()
    assert party.ask(0, "teller", "transfer", "a", "b", 30) == [70, 130]
    assert (party.state(0, "a"), party.state(1, "b")) == (70, 130)
    assert all(host.engine.undoable == 0 for host in party.hosts.values())


def test_an_abort_undoes_what_was_called_and_reaches_the_caller() -> None:
    party = bank()
    with pytest.raises(InvocationAborted, match="insufficient funds") as caught:
        party.ask(0, "teller", "generous", "b", "a", 500)
    assert caught.value.reason == "child"
    assert (party.state(0, "a"), party.state(1, "b")) == (100, 100)
    assert party.hosts[1].engine.counts["undone"] == 1
    aborted = {member: host.engine.counts["aborted"] for member, host in party.hosts.items()}
    assert aborted == {0: 2, 1: 0, 2: 1}, (
        "what was asked of the account and the teller, and the call of the client"
    )


def test_a_failed_method_says_fail() -> None:
    party = bank()
    with pytest.raises(InvocationAborted, match="insufficient funds") as caught:
        party.ask(0, "a", "withdraw", 500)
    assert caught.value.reason == "child"


@pytest.mark.parametrize(
    ("target", "op", "args", "text"),
    [
        ("x", "fly", (), "has no method 'fly'"),
        ("x", "hold", (), "TypeError"),
        ("x", "spoil", (), "an effect raised ZeroDivisionError"),
        ("x", "odd", (), "not object"),
    ],
)
def test_errors_cross_the_wire(target: str, op: str, args: tuple[Any, ...], text: str) -> None:
    party = locks()
    with pytest.raises(InvocationAborted, match=text):
        party.ask(1, target, op, *args)
    assert party.ask(1, "x", "look") == 0


def test_what_cannot_be_sent_is_refused_where_it_is_said() -> None:
    party = locks()
    with pytest.raises(UsageError, match="not set"):
        party.ask(1, "x", "hold", {1, 2}, [])
    with pytest.raises(UsageError, match="there is no object 'z'"):
        party.ask(1, "z", "hold", "me", [])
    with pytest.raises(UsageError, match="at least one object"):
        party.ask(1, [], "hold", "me", [])


def test_a_call_back_into_an_ancestor_is_let_in() -> None:
    party = locks()
    assert party.ask(1, "x", "hold", "me", ["y", "x"]) == "me"
    assert party.state(0, "x") == ("me", "me")


def test_two_roots_that_lock_each_other_end_with_one_retry() -> None:
    """The younger gives way; tried again, it keeps its age and gets through."""
    party = locks()

    def body(name: str, first: str, then: str) -> Any:
        async def run(ctx: InstanceContext) -> Any:
            return await ctx.call(first, "hold", name, [then])

        return run

    roots: list[Root] = [party.begin(0, body("p", "x", "y")), party.begin(1, body("q", "y", "x"))]
    assert party.run(1000)
    failed = [root for root in roots if root.error is not None]
    assert len(failed) == 1
    assert isinstance(failed[0].error, InvocationAborted) and failed[0].error.reason == "deadlock"
    died = [event for event in party.log.events if event.step == "die"]
    assert len(died) == 1
    steps = [each for each in party.log.events if each.message is died[0].message and each.step == "receive"]
    assert died[0].time - steps[0].time >= party.hosts[0].engine.options.patience, "not before it has waited"
    again = party.begin(roots.index(failed[0]), failed[0].body, retry_of=failed[0])
    assert party.done(again) in ("p", "q")
    assert again.instance.path[0][:2] == failed[0].instance.path[0]
    assert sorted(party.state(0, "x")) == sorted(party.state(1, "y")) == ["p", "q"]


def test_a_retried_root_is_older_than_whatever_began_since() -> None:
    party = locks()

    async def nothing(ctx: InstanceContext) -> None:
        return None

    first = party.begin(0, nothing)
    party.done(first)
    for _ in range(3):
        party.done(party.begin(0, nothing))
    younger = party.begin(0, nothing)
    retry = party.begin(0, nothing, retry_of=first)
    again = party.begin(0, nothing, retry_of=retry)
    assert first.instance.path < retry.instance.path < again.instance.path < younger.instance.path
    assert not first.instance.is_ancestor_of(retry.instance.path)


def test_all_and_any() -> None:
    party = bank()

    async def both(ctx: InstanceContext) -> Any:
        return await ctx.all(ctx.start("a", "balance"), ctx.start("b", "balance"))

    async def either(ctx: InstanceContext) -> Any:
        return await ctx.any(ctx.start("a", "withdraw", 500), ctx.start("b", "withdraw", 10))

    async def neither(ctx: InstanceContext) -> Any:
        return await ctx.any(ctx.start("a", "withdraw", 500), ctx.start("b", "withdraw", 500))

    assert party.done(party.begin(2, both)) == [100, 100]
    assert party.done(party.begin(2, either)) == 90
    assert (party.state(0, "a"), party.state(1, "b")) == (100, 90)
    with pytest.raises(InvocationAborted):
        party.done(party.begin(2, neither))


@pytest.mark.parametrize("how", ["all", "any"])
def test_a_body_goes_on_once_for_what_it_waited_for(how: str) -> None:
    """An answer that comes later is none of what it waits for by then."""
    party = locks()

    async def body(ctx: InstanceContext) -> float:
        slow = ctx.start("x", "hold", "me", [])
        await getattr(ctx, how)(ctx.start("x", "look"), ctx.start("y", "look"))
        assert party.now < 5
        await ctx.pause(50)
        await slow
        return party.now

    assert party.done(party.begin(0, body)) >= 50


def test_any_takes_back_those_that_lose() -> None:
    party = bank()

    async def either(ctx: InstanceContext) -> Any:
        return await ctx.any(ctx.start("a", "withdraw", 10), ctx.start("b", "withdraw", 10))

    party.done(party.begin(2, either))
    assert sorted((party.state(0, "a"), party.state(1, "b"))) == [90, 100]


def test_what_is_taken_back_before_it_began_is_told_to_whoever_looks_on() -> None:
    party = locks()

    async def either(ctx: InstanceContext) -> Any:
        return await ctx.any(ctx.start("x", "hold", "second", []), ctx.start("y", "look"))

    party.begin(0, lambda ctx: ctx.call("x", "hold", "first", ["y"]))
    party.done(party.begin(1, either))
    cancelled = [event.message for event in party.log.events if event.step == "cancel"]
    assert [message.args[0] for message in cancelled if message] == ["second"]
    assert party.state(0, "x") == ("first",)


def test_several_objects_are_one_call() -> None:
    party = bank()
    assert party.ask(2, ["a", "b"], "balance") == [100, 100]
    with pytest.raises(InvocationAborted):
        party.ask(2, ["a", "b"], "withdraw", 101)

    async def drain(ctx: InstanceContext) -> Any:
        await ctx.call("a", "withdraw", 60)
        return await ctx.call(["a", "b"], "withdraw", 60)

    with pytest.raises(InvocationAborted):
        party.done(party.begin(2, drain))
    assert (party.state(0, "a"), party.state(1, "b")) == (100, 100)


def test_one_way_calls_stand_on_their_own() -> None:
    party = bank()

    async def shout(ctx: InstanceContext) -> None:
        ctx.oneway(("a", "b"), "deposit", 1)
        raise Abort("and that is that")

    with pytest.raises(Abort, match="that is that"):
        party.done(party.begin(2, shout))
    assert (party.state(0, "a"), party.state(1, "b")) == (101, 101)


def test_answers_of_copies() -> None:
    party = Party(3, {"a": (Account, (0, 1, 2))})
    assert party.ask(0, "a", "withdraw", 10) == 90
    assert party.ask(0, "a", "balance", answers="all") == [90, 90, 90]
    assert party.ask(0, "a", "balance", first=True) == 90
    with pytest.raises(UsageError, match="answers is"):
        party.ask(0, "a", "balance", answers="some")


def test_a_client_goes_on_with_the_first_answer_and_commits_with_the_last() -> None:
    party = Party(3, {"a": (Account, (0, 1, 2))}, drop=lambda src, to, packet: to == 2 and party.now < 100)
    seen: list[float] = []

    async def body(ctx: InstanceContext) -> Any:
        await ctx.call("a", "balance", first=True)
        seen.append(party.now)

    root = party.begin(0, body)
    party.run(90)
    assert not root.done
    party.done(root)
    assert root.done and party.now > 100


def test_a_replicated_object_asks_once() -> None:
    objects: dict[str, Any] = {"teller": (Teller, (0, 1, 2)), "a": (Account, (0, 1)), "b": (Account, (2,))}
    party = Party(3, objects)
    assert party.ask(1, "teller", "transfer", "a", "b", 30, answers="all") == [[70, 130]] * 3
    asked = [event.message for event in party.log.events if event.step == "request"]
    assert sorted(message.op for message in asked if message) == [
        "balance",
        "balance",
        "deposit",
        "transfer",
        "withdraw",
    ]
    assert (party.state(0, "a"), party.state(1, "a"), party.state(2, "b")) == (70, 70, 130)
    with pytest.raises(InvocationAborted):
        party.ask(1, "teller", "generous", "b", "a", 500)
    assert (party.state(0, "a"), party.state(1, "a"), party.state(2, "b")) == (70, 70, 130)


def test_only_calls_of_copies_are_remembered_after_their_end() -> None:
    objects: dict[str, Any] = {"teller": (Teller, (0, 1)), "a": (Account, (2,)), "b": (Account, (2,))}
    party = Party(3, objects)
    party.ask(2, "teller", "transfer", "a", "b", 30)
    seen = [len(hosted.seen) for host in party.hosts.values() for hosted in host.engine.hosted.values()]
    assert sorted(seen)[-2:] == [2, 2] and sum(seen) == 4, (
        "what the copies of the teller asked of the accounts"
    )


class Late(ObjectClass):
    @method
    async def refuse(self, ctx: InstanceContext) -> None:
        await ctx.pause(50)
        raise Abort("and late")


class Chooser(ObjectClass):
    @method
    async def choose(self, ctx: InstanceContext) -> Any:
        return await ctx.any(ctx.start("a", "balance"), ctx.start("late", "refuse"))


def test_copies_choose_when_the_last_alternative_has_failed() -> None:
    party = Party(3, {"chooser": (Chooser, (0, 1)), "a": (Account, (2,)), "late": (Late, (2,))})
    assert party.ask(2, "chooser", "choose", answers="all") == [100, 100]


def test_another_copy_speaks_for_one_that_is_gone() -> None:
    """The first copy is cut off before anybody hears what it calls; the second says it again."""
    objects: dict[str, Any] = {"teller": (Teller, (0, 1)), "a": (Account, (1,)), "b": (Account, (2,))}
    crash = (0, 30.0, [60.0, 61.0, 62.0])
    cut_off = lambda src, to, packet: src == 0 and is_message(packet, op="withdraw")  # noqa: E731
    party = Party(3, objects, drop=cut_off, crash=crash)

    async def body(ctx: InstanceContext) -> Any:
        return await ctx.call("teller", "transfer", "a", "b", 30)

    root = party.begin(2, body)
    assert party.done(root) == [70, 130]
    assert (party.state(1, "a"), party.state(2, "b")) == (70, 130)
    assert not any(hosted.unspoken for hosted in party.hosts[1].engine.hosted.values())


def test_what_a_crashed_member_said_to_some_is_said_to_all() -> None:
    """F2: a one-way request that one of two destinations had is started at both."""
    objects: dict[str, Any] = {"a": (Account, (1,)), "b": (Account, (2,))}
    party = Party(
        3, objects, drop=lambda src, to, packet: (src, to) == (0, 2), crash=(0, 5.0, [20.0, 21.0, 30.0])
    )

    async def body(ctx: InstanceContext) -> None:
        ctx.oneway(("a", "b"), "deposit", 1)

    party.begin(0, body)
    assert party.run(500)
    assert (party.state(1, "a"), party.state(2, "b")) == (101, 101)


def test_calls_on_a_member_that_is_gone_abort() -> None:
    party = Party(3, {"a": (Account, (0,)), "b": (Account, (1,))}, crash=(0, 5.0, [20.0, 21.0, 22.0]))
    party.run(4.0)

    async def late(ctx: InstanceContext) -> Any:
        await ctx.call("b", "deposit", 5)
        await ctx.pause(10)
        return await ctx.call("a", "withdraw", 1)

    root = party.begin(2, late)
    with pytest.raises(InvocationAborted) as caught:
        party.done(root)
    assert caught.value.reason == "gone"
    assert party.state(1, "b") == 100
    with pytest.raises(InvocationAborted, match="nobody is left"):
        party.ask(1, "a", "balance")


@pytest.mark.parametrize("lost_to", [(), (1,), (2,), (1, 2)])
def test_who_fails_while_it_commits_has_done_all_or_nothing(lost_to: tuple[int, ...]) -> None:
    """The last word of a client is that it commits, and not everybody gets it."""
    objects: dict[str, Any] = {"a": (Account, (1,)), "b": (Account, (2,))}

    async def transfer(ctx: InstanceContext) -> None:
        await ctx.call("a", "withdraw", 30)
        await ctx.call("b", "deposit", 30)

    calm = Party(3, objects)
    calm.done(calm.begin(0, transfer))
    committed = next(event.time for event in calm.log.events if event.step == "tell commit")

    def drop(src: int, to: int, packet: Spoken) -> bool:
        return is_message(packet, "c") and to in lost_to

    party = Party(3, objects, drop=drop, crash=(0, committed + 0.5, [committed + 20.0] * 3))
    party.begin(0, transfer)
    assert party.run(1000)
    is_lost = lost_to == (1, 2)
    assert (party.state(1, "a"), party.state(2, "b")) == ((100, 100) if is_lost else (70, 130))


def test_a_root_can_be_given_up() -> None:
    party = bank()

    async def slow(ctx: InstanceContext) -> None:
        await ctx.call("a", "withdraw", 10)
        await ctx.pause(500)

    root = party.begin(2, slow)
    party.run(44)
    host = party.hosts[2]
    party.now = 45.0
    party._transmit(2, host.cancel(party.now, root))
    assert [event.time for event in party.log.events if event.step == "abort"] == [45.0]
    with pytest.raises(InvocationAborted, match="given up"):
        party.done(root)
    assert party.state(0, "a") == 100


class Future:
    """Something of a driver's."""

    def __init__(self) -> None:
        self.value: Any = None

    def __await__(self) -> Any:
        yield self
        return self.value


def test_a_body_may_wait_for_what_a_driver_knows() -> None:
    party = locks()
    future = Future()

    async def body(ctx: InstanceContext) -> Any:
        return await future

    root = party.begin(0, body)
    with pytest.raises(InvocationAborted, match="waits for calls and pauses") as caught:
        party.done(root)
    assert caught.value.reason == "fail"
    waiting: list[Any] = []
    host = party.hosts[0]
    host.foreign = lambda wish, instance: waiting.append((wish, instance))
    root = party.begin(0, body)
    party.run(party.now + 5)
    ((wish, instance),) = waiting
    assert wish is future
    future.value = "now"
    host.resume(party.now, instance)
    assert party.done(root) == "now"


def test_a_body_that_was_aborted_can_clean_up_but_not_go_on() -> None:
    party = bank()
    cleaned: list[str] = []

    async def stubborn(ctx: InstanceContext) -> None:
        try:
            await ctx.call("a", "withdraw", 500)
        except InvocationAborted as error:
            cleaned.append(error.reason)
            await ctx.call("a", "withdraw", 1)

    with pytest.raises(InvocationAborted):
        party.done(party.begin(2, stubborn))
    assert cleaned == ["child"], "it is given up because a call of its own failed"
    assert party.state(0, "a") == 100


class Box(ObjectClass):
    """Keeps what it is given, and gives it out."""

    def initial(self) -> list[Any]:
        return []

    @method(undo="spill")
    async def put(self, ctx: InstanceContext, things: list[Any]) -> list[Any]:
        things.append("mine")
        ctx.effect(lambda state: things)
        return things

    @method
    async def spill(self, ctx: InstanceContext, things: list[Any]) -> None:
        ctx.effect(lambda state: 1 / 0)


def test_what_travels_is_copied_even_if_it_stays_here() -> None:
    party = Party(2, {"x": (Box, (0, 1)), "y": (Box, (0,))})
    given: list[Any] = [1]

    async def body(ctx: InstanceContext) -> None:
        found = await ctx.call("x", "put", given)
        found.append("spoilt")
        await ctx.call(["x", "y"], "put", [2])

    party.done(party.begin(0, body))
    assert given == [1]
    assert party.state(0, "x") == party.state(1, "x") == party.state(0, "y") == [2, "mine"]


class Till(ObjectClass):
    def initial(self) -> tuple[int, ...]:
        return ()

    @method(undo="refund")
    async def charge(self, ctx: InstanceContext, x: int) -> None:
        ctx.effect(lambda state: (*state, x))

    @method
    async def refund(self, ctx: InstanceContext, x: int) -> None:
        ctx.effect(lambda state: (*state, -x))


def test_what_an_undo_does_is_done_after_what_it_undoes() -> None:
    party = Party(2, {"till": (Till, (0,))})

    async def body(ctx: InstanceContext) -> None:
        await ctx.call("till", "charge", 5)
        raise Abort("no")

    with pytest.raises(Abort):
        party.done(party.begin(1, body))
    assert party.state(0, "till") == (5, -5)


def test_an_undo_that_fails_takes_the_effects_out() -> None:
    party = Party(2, {"y": (Box, (0,))})

    async def body(ctx: InstanceContext) -> None:
        await ctx.call("y", "put", [1])
        raise Abort("no")

    with pytest.raises(Abort):
        party.done(party.begin(1, body))
    assert party.state(0, "y") == []
    assert not party.hosts[0].engine.undoable


class Endless(ObjectClass):
    @method(compatible=("again",))
    async def again(self, ctx: InstanceContext, other: str, me: str) -> None:
        await ctx.call(other, "again", me, other)


def test_calls_without_end_come_to_an_end() -> None:
    party = Party(2, {"x": (Endless, (0,)), "y": (Endless, (1,))})
    with pytest.raises(InvocationAborted, match="nested more than"):
        party.ask(0, "x", "again", "y", "x")
    assert all(host.idle and not host.engine.undoable for host in party.hosts.values())


class Cancelled(BaseException):
    """As a driver may have it."""


def test_what_no_body_should_raise_aborts_it_like_anything_else() -> None:
    party = locks()

    async def body(ctx: InstanceContext) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        party.done(party.begin(0, body))
    assert party.ask(0, "x", "look") == 0


def test_free_requests_wait_for_nobody() -> None:
    """Nobody's clock is needed, nor is anything announced."""

    class Free(ObjectClass):
        @method(compatible=("ping",), identity=True)
        async def ping(self, ctx: InstanceContext) -> str:
            return "here"

    party = Party(
        3, {"x": (Free, (0,))}, drop=lambda src, to, packet: isinstance(packet, Heartbeat) and src == 2
    )

    async def body(ctx: InstanceContext) -> Any:
        return await ctx.call("x", "ping")

    root = party.begin(1, body)
    party.run(2.5)
    assert root.result == "here"
    assert not party.sent(Announce)


def test_an_announcement_saves_the_wait_for_heartbeats() -> None:
    def ended(announce: bool, *copies: int) -> float:
        party = Party(3, {"x": (Account, copies)}, announce=announce, delta=50.0)
        ends: list[float] = []

        async def body(ctx: InstanceContext) -> None:
            await ctx.call("x", "withdraw", 1)
            ends.append(party.now)

        root = party.begin(2, body)  # equal clocks of members before it could come first
        party.done(root)
        return ends[0]

    assert ended(True, 0) == ended(True, 0, 1) == 3.0  # there, or round by a third; then back
    assert ended(False, 0) > 50.0


def test_only_those_who_may_call_are_waited_for() -> None:
    silent = lambda src, to, packet: src == 2  # noqa: E731
    party = Party(3, {"x": (Account, (0,))}, drop=silent, invoking={"x": (0, 1)})

    async def body(ctx: InstanceContext) -> Any:
        return await ctx.call("x", "withdraw", 1)

    root = party.begin(1, body)
    party.run(100)
    assert root.result == 99


def test_a_quiet_group_falls_silent() -> None:
    party = bank(quiet=True)
    party.ask(0, "teller", "transfer", "a", "b", 30)
    for _ in range(200):
        if party.idle:
            break
        party.step()
    assert party.idle
    assert all(host.wake is None for host in party.hosts.values())
    assert 0 < party.sent(Heartbeat) < 2 * party.sent(Message)


def test_what_is_closed_keeps_nothing() -> None:
    party = locks(quiet=True)
    for name in ("one", "two"):
        party.begin(0, lambda ctx, name=name: ctx.call("x", "hold", name, ["y"]))  # type: ignore[misc]
    party.run(3)
    host = party.hosts[0]
    assert host.engine.links.own and not host.engine.settled
    host.close("it is over")
    assert host.engine.idle and host.wake is None
    assert not host.engine.links.held and not host.engine.calls._awaiting


def test_nothing_begins_after_the_end() -> None:
    engine = bank().hosts[0].engine
    engine.begin(0.0, engine.local.roster.client(0))
    engine.close()
    assert engine.actions(0.0) == []


def test_blocked_says_who_waits_for_whom() -> None:
    party = locks()

    async def long(ctx: InstanceContext) -> Any:
        return await ctx.call("x", "hold", "first", [])

    roots = [party.begin(1, long), party.begin(0, long)]
    while not any(host.engine.blocked() and host.engine.blocked()[0][2] for host in party.hosts.values()):
        party.step()
    ((place, message, blockers),) = party.hosts[0].engine.blocked()
    assert party.roster.places[place].object == "x" and message.op == "hold"
    assert [each.call.op for each in blockers] == ["hold"]
    for root in roots:
        party.done(root)


class Board(ObjectClass):
    """Its state is a dictionary of lists; its methods try to change it in every way but one."""

    def initial(self) -> dict[str, list[str]]:
        return {"notes": ["welcome"]}

    @method
    async def assign(self, ctx: InstanceContext) -> None:
        self.state = {}

    @method
    async def assign_by_context(self, ctx: InstanceContext) -> None:
        ctx.state = {}

    @method
    async def put(self, ctx: InstanceContext) -> None:
        self.state["notes"] = []

    @method
    async def append(self, ctx: InstanceContext) -> None:
        ctx.state["notes"].append("me too")

    @method
    async def append_in_effect(self, ctx: InstanceContext) -> None:
        ctx.effect(lambda state: state["notes"].append("me too") or state)

    @method
    async def append_to_new(self, ctx: InstanceContext) -> None:
        ctx.effect(lambda state: {**state, "new": []})
        ctx.effect(lambda state: state["new"].append("me too") or state)

    @method
    async def pin(self, ctx: InstanceContext, note: str) -> Any:
        ctx.effect(lambda state: {**state, "notes": [*state["notes"], note]})
        return self.state


@pytest.mark.parametrize(
    "op", ["assign", "assign_by_context", "put", "append", "append_in_effect", "append_to_new"]
)
def test_a_state_is_changed_by_effects_alone(op: str) -> None:
    party = Party(2, {"board": (Board, (0, 1))})
    with pytest.raises(InvocationAborted, match=r"UsageError: .* changed by ctx\.effect\(f\)"):
        party.ask(0, "board", op)
    assert party.ask(0, "board", "pin", "first") == {"notes": ["welcome"]}
    assert type(party.ask(1, "board", "pin", "second")["notes"]) is list
    for member in (0, 1):
        assert party.state(member, "board") == {"notes": ["welcome", "first", "second"]}
        with pytest.raises(UsageError, match="changed by"):
            party.state(member, "board")["notes"].clear()


def test_a_state_from_elsewhere_is_not_shared() -> None:
    """What an initial state or an effect was made from may be changed later."""
    kept = ["welcome"]

    class Shared(Board):
        def initial(self) -> Any:
            return {"notes": kept}

        @method
        async def keep(self, ctx: InstanceContext) -> None:
            ctx.effect(lambda state: {"notes": kept})

    party = Party(1, {"board": (Shared, (0,))})
    kept.append("later")
    assert party.state(0, "board") == {"notes": ["welcome"]}
    party.ask(0, "board", "keep")
    kept.append("still later")
    assert party.state(0, "board") == {"notes": ["welcome", "later"]}
