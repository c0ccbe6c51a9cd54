"""State for newcomers over real sockets: whoever joins has what the others have, and then the same deliveries."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from random import Random
from typing import Any, cast

import pytest

import inga
from inga.model.view import Member, View
from inga.net.reading import Reading
from inga.net.states import StateHooks, States
from inga.recipes import Options, find
from inga.session.session import Session
from inga.session.transfer import AHEAD, IncomingState
from inga.stack.stack import Stack
from inga.trial.people import member_names

from .helpers import FreePort, Place, Run, take, text, texts, until

pytestmark = pytest.mark.network

DETECT = 0.5

FOUNDERS = member_names(3)


class Shelf:
    """An application: it keeps everything that was ever said, and gives it to those who join."""

    def __init__(self, filling: int = 0) -> None:
        self.said: list[str] = []
        self.begun: list[str] | None = None  # with what it began, if it got a state
        self.asked = 0
        self.group: inga.Group | None = None
        self._filling = b" " * filling

    @property
    def hooks(self) -> dict[str, Any]:
        return {"on_state_request": self.give, "on_state": self.take}

    def give(self) -> Iterator[bytes]:
        self.asked += 1
        yield "\n".join(self.said).encode()
        for at in range(0, len(self._filling), 8192):
            yield self._filling[at : at + 8192]

    async def take(self, chunks: AsyncIterator[bytes]) -> None:
        assert self.begun is None
        state = b"".join([chunk async for chunk in chunks])
        assert state.endswith(self._filling)
        self.begun = state.decode().rstrip(" ").splitlines()
        self.said = list(self.begun)

    async def read(self) -> None:
        assert self.group is not None
        async for delivery in self.group:
            self.said.append(f"{delivery.sender} {text(delivery)}")

    async def talk(self, stop: asyncio.Event) -> None:
        assert self.group is not None
        number = 0
        while not stop.is_set():
            await self.group.send(b"%d" % number)
            number += 1
            await asyncio.sleep(0.002)


Meet = Callable[..., AbstractAsyncContextManager[tuple[dict[str, Shelf], Callable[..., Any]]]]


@pytest.fixture
def meet(place: Place, free_port: FreePort, group_name: str) -> Meet:
    """Three members that talk all the time, and a way for others to join."""

    @asynccontextmanager
    async def meeting(
        via: str = "udp", filling: int = 0, **options: Any
    ) -> AsyncIterator[tuple[dict[str, Shelf], Callable[..., Any]]]:
        where = {**place(via, 3), "echo": True, "detect": DETECT, **options}
        shelves: dict[str, Shelf] = {}
        tasks: list[asyncio.Task[None]] = []
        stop = asyncio.Event()
        async with asyncio.timeout(40), _Closing() as closing:

            async def come(name: str, **more: Any) -> Shelf:
                shelf = shelves[name] = Shelf(filling)
                if name not in FOUNDERS:
                    more |= {"late": True}
                    if via != "udp":
                        more |= {"address": f"127.0.0.1:{free_port()}"}
                shelf.group = await closing.enter(
                    inga.join(group_name, name, **{**where, **shelf.hooks, **more})
                )
                tasks.append(asyncio.create_task(shelf.read()))
                return shelf

            for name in FOUNDERS:
                await come(name)
            await asyncio.gather(*(shelf.group.ready() for shelf in shelves.values() if shelf.group))
            talking = [asyncio.create_task(shelf.talk(stop)) for shelf in shelves.values()]
            await until(lambda: all(len(shelf.said) > 100 for shelf in shelves.values()))
            yield shelves, come
            stop.set()
            await asyncio.wait(talking)
            await until(lambda: len({tuple(sorted(shelf.said)) for shelf in shelves.values()}) == 1)
            for task in tasks:
                task.cancel()

    return meeting


class _Closing:
    """Groups that are left at once at the end, whatever has become of them."""

    def __init__(self) -> None:
        self._groups: list[AbstractAsyncContextManager[inga.Group]] = []

    async def enter(self, group: AbstractAsyncContextManager[inga.Group]) -> inga.Group:
        entered = await group.__aenter__()
        self._groups.append(group)
        return entered

    async def __aenter__(self) -> "_Closing":
        return self

    async def __aexit__(self, *error: object) -> None:
        await asyncio.gather(*(group.__aexit__(None, None, None) for group in self._groups))


@pytest.mark.parametrize(
    ("via", "order"), [("udp", "causal"), ("tcp", "causal"), ("unicast", "total"), ("udp", "co")]
)
def test_a_newcomer_has_all_that_the_others_have(run: Run, meet: Meet, via: str, order: str) -> None:
    async def main() -> None:
        async with meet(via, 4 * AHEAD, order=order) as (shelves, come):
            dave = await come("dave")
            await until(lambda: dave.begun is not None and len(dave.said) > len(dave.begun) + 100)
            assert len(dave.begun) >= 100
            assert sum(shelf.asked for shelf in shelves.values()) == 1
        assert len(dave.said) == len(shelves["alice"].said)

    run(main())


def test_the_one_who_gives_is_killed(run: Run, meet: Meet) -> None:
    """Cathy is killed when some of her state has come. The newcomer begins with that of another, at the next cut."""

    async def main() -> None:
        async with meet(filling=100 * AHEAD) as (shelves, come):
            dave = await come("dave")
            incoming = dave.group.stack.layer("session").transfer
            await until(lambda: incoming.incoming is not None and incoming.incoming.offset > AHEAD)
            cathy = shelves.pop("cathy")
            assert cathy.asked == 1 and dave.begun is None
            cathy.group.carrier.close()
            await until(lambda: dave.begun is not None)
            assert shelves["bob"].asked == 1 and dave.group.view.failed == ("cathy",)
        assert not any(line in dave.said for line in set(cathy.said) - set(shelves["bob"].said))

    run(main())


def test_nobody_gives_a_state(
    run: Run, place: Place, group_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A newcomer that would take one begins without, and says so."""

    async def main() -> None:
        where, shelf = place(members=1), Shelf()
        async with (
            inga.join(group_name, "alice", **where) as alice,
            inga.join(group_name, "bob", late=True, on_state=shelf.take, **where) as bob,
        ):
            await alice.ready(2)
            await alice.send(b"one")
            assert await texts(bob, 1) == ["one"] and shelf.begun is None

    with caplog.at_level(logging.WARNING, "inga"):
        run(main())
    assert "we begin without the state of the group: nobody here gives one" in caplog.text


def test_a_state_that_cannot_be_given(
    run: Run, place: Place, group_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    def give() -> Iterator[bytes]:
        yield b"half"
        raise ValueError("torn")

    async def main() -> None:
        where, shelf = place(members=1), Shelf()
        async with inga.join(group_name, "alice", on_state_request=give, **where) as alice:
            reading = asyncio.create_task(anext(aiter(alice)))
            async with inga.join(group_name, "bob", late=True, on_state=shelf.take, **where) as bob:
                with pytest.raises(
                    inga.UsageError, match=r"no state for one who joins, from alice: ValueError: torn"
                ):
                    await texts(bob, 1)
                assert shelf.begun is None
            reading.cancel()

    run(main())
    assert "the application could not give its state" in caplog.text


def test_a_state_that_is_none(run: Run, place: Place, group_name: str) -> None:
    async def main() -> None:
        where, shelf = place(members=1), Shelf()
        async with inga.join(group_name, "alice", on_state_request=lambda: 5, **where) as alice:
            reading = asyncio.create_task(anext(aiter(alice)))
            async with inga.join(group_name, "bob", late=True, on_state=shelf.take, **where) as bob:
                with pytest.raises(
                    inga.UsageError, match="on_state_request gives bytes, or an iterator of bytes, not int"
                ):
                    await texts(bob, 1)
            reading.cancel()

    run(main())


def test_a_state_that_cannot_be_taken(run: Run, place: Place, group_name: str) -> None:
    async def take(chunks: AsyncIterator[bytes]) -> None:
        async for chunk in chunks:
            raise ValueError(chunk)

    async def give() -> AsyncIterator[bytes]:
        yield b"strange"

    async def main() -> None:
        where = place(members=1)
        async with inga.join(group_name, "alice", on_state_request=give, **where) as alice:
            reading = asyncio.create_task(anext(aiter(alice)))
            async with inga.join(group_name, "bob", late=True, on_state=take, **where) as bob:
                for _ in range(2):
                    with pytest.raises(ValueError, match="strange"):
                        await texts(bob, 1)
            reading.cancel()

    run(main())


def test_who_gives_more_than_is_asked_for_waits_each_time(run: Run) -> None:
    """It would keep the loop busy otherwise."""

    async def main() -> None:
        states = States.__new__(States)
        states._waiter = None
        for _ in range(2):
            waiting = asyncio.create_task(states._until_asked())
            for _ in range(3):
                await asyncio.sleep(0)
            assert not waiting.done()
            cast(Any, states._waiter).set_result(None)  # as `follow` does
            await waiting

    run(main())


async def something_cancelled() -> None:
    """What a callback waits for is cancelled by somebody else, as by a library that shuts down."""
    waiting = asyncio.get_running_loop().create_future()
    waiting.cancel()
    await waiting


def test_a_state_whose_giving_is_cancelled_from_inside(run: Run, place: Place, group_name: str) -> None:
    asked = 0

    async def give() -> AsyncIterator[bytes]:
        nonlocal asked
        asked += 1
        yield b"half"
        await something_cancelled()

    async def main() -> None:
        where, shelf = place(members=1), Shelf()
        async with inga.join(group_name, "alice", on_state_request=give, **where) as alice:
            reading = asyncio.create_task(anext(aiter(alice)))
            async with inga.join(group_name, "bob", late=True, on_state=shelf.take, **where) as bob:
                with pytest.raises(
                    inga.UsageError, match="no state for one who joins, from alice: Cancelled"
                ):
                    await texts(bob, 1)
            assert asked == 1
            reading.cancel()

    run(main())


def test_a_state_whose_taking_is_cancelled_from_inside(run: Run, place: Place, group_name: str) -> None:
    """Without its state the application is not to go on, as if it had it."""

    async def take(chunks: AsyncIterator[bytes]) -> None:
        await something_cancelled()

    async def main() -> None:
        where, shelf = place(members=1), Shelf()
        async with inga.join(group_name, "alice", on_state_request=shelf.give, **where) as alice:
            reading = asyncio.create_task(anext(aiter(alice)))
            async with inga.join(group_name, "bob", late=True, on_state=take, **where) as bob:
                await alice.send(b"more")
                for _ in range(2):
                    with pytest.raises(inga.UsageError, match="on_state was cancelled"):
                        await texts(bob, 1)
            reading.cancel()

    run(main())


def test_an_iteration_that_is_broken_off_breaks_no_state_off(run: Run, place: Place, group_name: str) -> None:
    """Both sides read with a timeout that is much shorter than a transfer takes."""
    go_on = asyncio.Event()

    async def give() -> AsyncIterator[bytes]:
        yield b"one "
        await go_on.wait()
        yield b"two "

    taken: list[bytes] = []

    async def take_(chunks: AsyncIterator[bytes]) -> None:
        await go_on.wait()
        taken.append(b"".join([chunk async for chunk in chunks]))

    async def glance(group: inga.Group) -> str | None:
        try:
            async with asyncio.timeout(0.01):
                return (await texts(group, 1))[0]
        except TimeoutError:
            return None

    async def main() -> None:
        where = place(members=1)
        async with (
            inga.join(group_name, "alice", on_state_request=give, **where) as alice,
            inga.join(group_name, "bob", late=True, on_state=take_, **where) as bob,
        ):
            await alice.send(b"three")
            for _ in range(5):
                assert await glance(alice) is None and await glance(bob) is None
            go_on.set()
            said = None
            while said is None:
                assert await glance(alice) is None
                said = await glance(bob)
            assert (said, taken) == ("three", [b"one two "])

    run(main())


@pytest.mark.parametrize("told", [0, 1, 2], ids=["nothing", "a piece", "all"])
def test_a_state_whose_end_came_in_the_turn_in_which_it_is_read(run: Run, told: int) -> None:
    """The iteration may look before the driver has told of what came last, or of anything."""
    taken: list[bytes] = []

    async def take_(chunks: AsyncIterator[bytes]) -> None:
        taken.append(b"".join([chunk async for chunk in chunks]))

    async def main() -> None:
        view = View(1, (Member("alice"), Member("bob")), "vector")
        stack = Stack(find("vector").build(Options(wants="state")), 1, view, rng=Random(0), now=0.0)
        transfer = cast(Session, stack.layer("session")).transfer
        reading = Reading(view, lambda batch: None, lambda view: None)
        states = States(StateHooks(None, take_, None, None), stack, reading, lambda: None)
        incoming = transfer.incoming = IncomingState(view)
        transfer.stop_at = view
        for number, piece in enumerate((b"one ", b"two")):
            incoming.pieces.append(piece)
            if number < told:
                states.follow(())
        incoming.is_whole = True
        await states.attend(view)
        states.follow(())

    run(main())
    assert taken == [b"one two"]


@pytest.mark.interpreted
def test_one_that_comes_back_takes_the_state_anew(run: Run, meet: Meet) -> None:
    """Cathy's process does nothing for a while, and is excluded; with `rejoin` it is a new member, with a new state."""

    async def main() -> None:
        async with meet(rejoin=True) as (shelves, _):
            cathy = shelves["cathy"]
            cathy.group.carrier.transmit, transmit = lambda *_: None, cathy.group.carrier.transmit  # type: ignore[method-assign]
            await until(lambda: shelves["alice"].group.view.failed == ("cathy",))
            cathy.group.carrier.transmit = transmit  # type: ignore[method-assign]
            await until(lambda: cathy.begun is not None)
            assert cathy.group.view.joined == ("cathy",)

    run(main())


# The last messages instead


@pytest.mark.parametrize("echo", [True, False])
def test_a_newcomer_reads_the_last_messages_first(
    run: Run, place: Place, group_name: str, echo: bool
) -> None:
    async def main() -> None:
        where = {**place(members=2), "history": 3, "echo": echo}
        async with (
            inga.join(group_name, "alice", **where) as alice,
            inga.join(group_name, "bob", **where) as bob,
        ):
            await asyncio.gather(alice.ready(), bob.ready())
            for word in (b"one", b"two", b"three", b"four", b"five"):
                for _ in range(2 if word == b"five" else 1):
                    await alice.send(word)
            await until(lambda: bob.stack.delivered and not bob.stack.held)
            assert (await texts(bob, 6))[-1] == "five"
            async with inga.join(group_name, "cathy", late=True, **where) as cathy:
                await asyncio.gather(alice.ready(3), bob.ready(3), cathy.ready())
                await bob.send(b"six")
                items = cathy.items()
                view, *deliveries = await take(items, 5)
                assert view == cathy.view
                assert [text(delivery) for delivery in deliveries] == ["four", "five", "five", "six"]
                assert [delivery.sender for delivery in deliveries] == ["alice"] * 3 + ["bob"]
                assert [delivery.replayed for delivery in deliveries] == [True, True, True, False]

    run(main())


# What can be said


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"history": 0}, "history is a number of messages"),
        ({"history": True}, "history is a number of messages"),
        ({"history": float("inf")}, "history is a number of messages"),
        ({"history": "ten"}, "history is a number of messages"),
        ({"history": 3, "on_state": print}, "history and on_state do not go together"),
        ({"on_state_request": b"state"}, "on_state_request is a function"),
        ({"history": 3, "order": "remiop", "detect": None}, "nobody can join"),
    ],
    ids=str,
)
def test_what_cannot_be(run: Run, place: Place, group_name: str, options: dict[str, Any], why: str) -> None:
    async def main() -> None:
        with pytest.raises(inga.UsageError, match=why):
            async with inga.join(group_name, "alice", **{**place(members=2), **options}):
                pass

    run(main())
