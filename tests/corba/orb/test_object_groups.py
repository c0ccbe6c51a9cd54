"""Groups of objects: oneway requests by MIOP and ReMIOP, answers and gateways by IIOP, members that come and go."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from inga.corba.broker import managed
from inga.corba.broker.dispatch import NotAGroupObject
from inga.corba.broker.groups import CREATE_ADDRESS_DEFERED, GroupManager, reliable
from inga.corba.broker.idl import Long, SystemException, interface, oneway
from inga.corba.broker.managed import (
    ObjectGroupManager,
    ObjectNotAdded,
    PresentMember,
    ServedGroups,
    UnknownGroup,
    UnknownMember,
)
from inga.corba.broker.naming import NamingContext, to_name
from inga.corba.orb.lookup import resolve, serve_groups, serve_names
from inga.corba.orb.memberships import Multicast
from inga.corba.orb.orb import Orb
from inga.corba.wire.reference import Iiop, Reference, read, to_ior
from inga.layers.shape import Faults
from inga.model.errors import UsageError

from ...net.helpers import LOOPS, SECONDS, FreePort, Run, until

pytestmark = pytest.mark.network

LO = Multicast(interface="lo")


@interface("IDL:test/Forum:1.0")
class Forum:
    def __init__(self) -> None:
        self.heard: list[str] = []

    @oneway
    async def say(self, text: str, number: Long = 0) -> None:
        await asyncio.sleep(0)
        self.heard.append(text)

    @oneway
    def shout(self, text: str) -> None:
        self.heard.append(text.upper())

    @oneway
    def stumble(self) -> None:
        raise ValueError("over a word")

    @oneway
    async def give_up(self) -> None:
        raise asyncio.CancelledError

    def count(self) -> Long:
        return len(self.heard)


@interface("IDL:test/Stage:1.0")
class Stage:
    """What somebody takes a forum for who does not know it."""

    @oneway
    def shout(self, text: str) -> None: ...

    @oneway
    def dance(self) -> None: ...

    @oneway
    def say(self, loudness: Long) -> None: ...


def new_group(free_port: FreePort, **properties: Any) -> Reference:
    return GroupManager().create_object("IDL:test/Forum:1.0", {"port": free_port(), **properties})[0]


@asynccontextmanager
async def orbs(number: int, how: Multicast = LO) -> AsyncIterator[list[Orb]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(Orb(multicast=how)) for _ in range(number)]


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("repaired", [False, True])
def test_a_request_to_a_group_reaches_all_members(
    run: Run, free_port: FreePort, loop: str, repaired: bool
) -> None:
    group = new_group(free_port, reliable=repaired)

    async def main() -> None:
        async with orbs(3) as (first, second, caller):
            members = [Forum() for _ in range(4)]
            for orb, member in zip((first, second, second, caller), members, strict=True):
                await orb.join(to_ior(group), member)
            forum: Any = caller.proxy(Forum, group)
            await forum.say("Grüße λ")
            await forum.shout("hey")
            await forum.say("x" * 5000, number=1)  # of several packets
            expected = ["Grüße λ", "HEY", "x" * 5000]
            for member in members:
                await until(lambda member=member: member.heard == expected)  # type: ignore[misc]

    run(main(), loop=loop)


def test_what_is_refused_is_counted_at_its_channel(run: Run, free_port: FreePort) -> None:
    group = new_group(free_port)
    (way,) = group.multicast()
    nobody = read(f"corbaloc:miop:1.0@1.0-inga-99/{way.address}:{way.port}")

    async def main() -> None:
        async with orbs(2) as (orb, caller):
            member = Forum()
            await orb.join(group, member)
            wrong: list[Any] = [
                caller.proxy(Stage, nobody),
                caller.proxy(Stage, group),
                caller.proxy(Stage, group),
            ]
            await wrong[0].shout("nobody")
            await wrong[1].dance()
            await wrong[2].say(1)
            forum: Any = caller.proxy(Forum, group)
            await forum.shout("last")
            await until(lambda: member.heard == ["LAST"])
            here, there = (each.channels.group(way) for each in (orb, caller))
            assert here is not None and here.stack.rejected == {
                "no_such_group": 1,
                "bad_operation": 1,
                "bad_args": 1,
            }
            assert there is not None and not there.stack.rejected, "requests of its own are no news to it"

    run(main())


def test_a_member_whose_own_work_is_cancelled_hears_the_next_request(run: Run, free_port: FreePort) -> None:
    group = new_group(free_port)

    async def main() -> None:
        async with orbs(2) as (orb, caller):
            member = Forum()
            await orb.join(group, member)
            forum: Any = caller.proxy(Forum, group)
            await forum.give_up()
            await forum.shout("still here")
            await until(lambda: member.heard == ["STILL HERE"])

    run(main())


def test_members_come_and_go(run: Run, free_port: FreePort) -> None:
    group, other = (new_group(free_port, domain=name) for name in ("one", "other"))
    elsewhere = read(f"corbaloc:miop:1.0@1.0-one-2/239.255.0.1:{next(group.multicast()).port}")

    async def main() -> None:
        async with orbs(2) as (orb, caller):
            member, stranger = Forum(), Forum()
            object_id = await orb.join(group, member)
            await orb.join(elsewhere, stranger)  # another group at the same address
            await orb.join(other, member, object_id)  # one object in two groups
            assert len(orb.channels.places) == 2
            assert orb.adapter().reference_to_ids(group) == [object_id]
            one: Any = caller.proxy(Forum, group)
            two: Any = caller.proxy(Forum, other)
            await one.say("a")
            await until(lambda: member.heard == ["a"])
            await two.say("b")
            await until(lambda: member.heard == ["a", "b"])
            await orb.leave(group, object_id)
            await orb.leave(other, object_id)
            assert len(orb.channels.places) == 1  # the stranger is still there
            third: Any = caller.proxy(Forum, elsewhere)
            await one.say("c")
            await third.say("d")
            await until(lambda: stranger.heard == ["d"])
            assert member.heard == ["a", "b"]

    run(main())


def test_the_operations_of_an_adapter(run: Run, free_port: FreePort) -> None:
    """As a program does it that was written for CORBA: without `join` and `leave`."""
    group = new_group(free_port)

    async def main() -> None:
        async with orbs(2) as (orb, caller):
            adapter, member = orb.adapter("room"), Forum()
            object_id = adapter.create_id_for_reference(group)
            await orb.settled()
            forum: Any = caller.proxy(Forum, group)
            await forum.say("nobody is here yet")
            adapter.activate(member, object_id)
            again = adapter.create_id_for_reference(group)
            adapter.associate_reference_with_id(group, object_id)
            adapter.disassociate_reference_with_id(group, again)
            await forum.say("hello")
            await until(lambda: "hello" in member.heard)
            assert member.heard[-1:] == ["hello"]
            adapter.disassociate_reference_with_id(group, object_id)
            await orb.settled()
            assert orb.channels.places == []

    run(main())


def test_a_member_that_fails_does_not_stop_the_others(
    run: Run, free_port: FreePort, caplog: pytest.LogCaptureFixture
) -> None:
    group = new_group(free_port)

    async def main() -> None:
        async with orbs(1) as (orb,):
            member = Forum()
            await orb.join(group, member)
            forum: Any = orb.proxy(Forum, group)
            await forum.stumble()
            await forum.say("and up again")
            await until(lambda: member.heard == ["and up again"])

    run(main())
    assert "Forum.stumble failed" in caplog.text


def test_a_group_answers_by_iiop_or_not_at_all(run: Run, free_port: FreePort) -> None:
    async def main() -> None:
        async with orbs(2) as (orb, caller):
            leader = Forum()
            (way,) = orb.activate(leader, "leader").iiop()
            mute = new_group(free_port)
            answering = new_group(free_port, group_iiop=Iiop(way.host, way.port, way.key))
            await orb.join(answering, leader, b"leader")
            forum: Any = caller.proxy(Forum, answering)
            await forum.say("one")
            await until(lambda: leader.heard)
            assert await forum.count() == 1
            assert await caller.is_a(answering, Forum)
            silent: Any = caller.proxy(Forum, mute)
            with pytest.raises(UsageError, match="A group answers nothing"):
                await silent.count()

    run(main())


def test_whoever_asks_with_an_old_reference_is_told_the_newest(run: Run, free_port: FreePort) -> None:
    """Questions are sent to the newest reference for good; oneway requests to a version nobody is a member of are refused."""

    async def main() -> None:
        async with orbs(2) as (orb, caller):
            leader = Forum()
            (way,) = orb.activate(leader, "leader").iiop()
            manager = GroupManager()
            serve_groups(orb, manager)
            answers = Iiop(way.host, way.port, way.key)
            port = free_port()
            old, _ = manager.create_object("IDL:test/Forum:1.0", {"port": port, "group_iiop": answers})
            forum: Any = caller.proxy(Forum, old)
            await orb.join(old, leader, b"leader")
            assert await forum.count() == 0
            new = manager.set_properties_dynamically(old, {"address": "239.255.3.4"})
            assert await forum.count() == 0
            assert forum.__reference__ == new != old
            await orb.join(new, leader, b"leader")
            await orb.leave(old, b"leader")
            stale: Any = caller.proxy(Forum, read(f"corbaloc:miop:1.0@1.0-inga-1/239.255.3.4:{port}"))
            await stale.say("by the old version, at the new address")
            await forum.say("by the new one")
            await until(lambda: leader.heard == ["by the new one"])
            channel = orb.channels.group(next(new.multicast()))
            assert channel is not None and channel.stack.rejected == {"no_such_group": 1}

    run(main())


def test_a_gateway_for_those_without_multicast(run: Run, free_port: FreePort) -> None:
    group = new_group(free_port, reliable=True)

    async def main() -> None:
        async with orbs(2) as (orb, caller):
            member = Forum()
            await orb.join(group, member)
            with_gateway = orb.gateway(group, "gateway")
            assert with_gateway.profiles[0] == group.profiles[0]
            (through,) = with_gateway.iiop()
            assert through.group == next(group.multicast()).group
            only = Reference("", with_gateway.profiles[1:])  # as somebody sees it who knows IIOP alone
            assert await caller.is_a(only, Forum)
            forum: Any = caller.proxy(Forum, only)
            await forum.say("über die Brücke", 7)
            await until(lambda: member.heard == ["über die Brücke"])
            assert caller.channels.places == []
            with pytest.raises(SystemException, match="NO_IMPLEMENT: a group answers nothing"):
                await forum.count()
            with pytest.raises(NotAGroupObject):
                orb.gateway(only)
            orb.adapter().associate_reference_with_id(group, b"gateway")  # which would go round for ever
            await forum.say("once")
            await forum.say("more")
            await until(lambda: member.heard[1:] == ["once", "more"])

    run(main())


def test_a_group_is_published_by_name(run: Run, free_port: FreePort) -> None:
    group = new_group(free_port, reliable=True)

    async def main() -> None:
        async with orbs(3) as (names, orb, caller):
            root = serve_names(names)
            await orb.proxy(NamingContext, root).bind(to_name("lunch.group"), group)
            member = Forum()
            await orb.join(group, member)
            forum: Any = caller.proxy(Forum, await resolve(caller, root, "lunch.group"))
            await forum.say("found you")
            await until(lambda: member.heard == ["found you"])

    run(main())


def test_members_are_managed_from_elsewhere(run: Run, free_port: FreePort) -> None:
    """The operations of PortableGroup::ObjectGroupManager, called by another broker that finds it by its key."""
    manager = GroupManager()
    group, number = manager.create_object("IDL:test/Forum:1.0", {"port": free_port()})

    async def main() -> None:
        async with orbs(2) as (orb, caller):
            serve_groups(orb, manager)
            where = read(f"corbaloc::127.0.0.1:{orb.port}/GroupManager")
            far: Any = caller.proxy(ObjectGroupManager, where)
            member = caller.activate(Forum())
            here = to_name("host.lan/1")
            assert await far.add_member(group, here, member) == group
            assert manager.get_member_ref(group, "host.lan/1") == member
            assert await far.locations_of_members(group) == [here]
            assert await far.get_member_ref(group, here) == member
            assert await far.get_object_group_id(group) == number
            moved = manager.set_properties_dynamically(group, {"port": 7401})
            assert await far.get_object_group_ref(group) == moved != group
            with pytest.raises(PresentMember, match="There is a member at"):
                await far.add_member(group, here, member)
            assert await far.remove_member(group, here) == moved
            assert await far.locations_of_members(group) == []
            for wrong in (here, []):
                with pytest.raises(UnknownMember):
                    await far.remove_member(group, wrong)
            for nobody in (None, member, GroupManager().create_object("IDL:x:1.0", {"domain": "x"})[0]):
                with pytest.raises(UnknownGroup):
                    await far.locations_of_members(nobody)
            for place, nothing in ((here, None), ([], member)):
                with pytest.raises(ObjectNotAdded):
                    await far.add_member(group, place, nothing)

    run(main())


def test_a_group_has_room_for_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(managed, "MEMBERS_MAX", 2)
    manager = GroupManager()
    group, _ = manager.create_object("IDL:test/Forum:1.0")
    servant = ServedGroups(manager)

    async def fill() -> None:
        for place in "ab":
            await servant.add_member(group, to_name(place), group)
        with pytest.raises(ObjectNotAdded, match="at most 2 members"):
            await servant.add_member(group, to_name("c"), group)

    asyncio.run(fill())


def test_what_cannot_be_a_group(run: Run, free_port: FreePort) -> None:
    async def main() -> None:
        async with orbs(1) as (orb,):
            deferred = new_group(free_port, creation_mode=CREATE_ADDRESS_DEFERED)
            with pytest.raises(UsageError, match="has no address yet"):
                await orb.join(deferred, Forum())
            assert orb.adapter().reference_to_ids(deferred) == []
            with pytest.raises(UsageError, match="has no address yet"):
                await orb.proxy(Forum, deferred).say("x")
            with pytest.raises(NotAGroupObject):
                await orb.join("corbaloc::127.0.0.1:1/x", Forum())
            plain = new_group(free_port)
            await orb.join(plain, Forum())
            with pytest.raises(
                UsageError, match=r"is used by MIOP here; a group by ReMIOP needs another address"
            ):
                await orb.join(reliable(plain), Forum())

    run(main())


def test_an_interface_that_is_not_there(run: Run, free_port: FreePort) -> None:
    async def main() -> None:
        async with orbs(1, Multicast(interface="nowhere0")) as (orb,):
            group = new_group(free_port)
            with pytest.raises(UsageError, match="nowhere0"):
                await orb.join(group, Forum())
            with pytest.raises(UsageError, match="nowhere0"):
                await orb.proxy(Forum, group).say("x")
            assert orb.channels.places == []

    run(main())


def test_calls_in_a_loop_do_not_outrun_the_members(run: Run, free_port: FreePort) -> None:
    """More than members keep for repair, by somebody who never waits for anything else."""
    group = new_group(free_port, reliable=True)

    async def main() -> None:
        async with orbs(3, Multicast(interface="lo", faults=Faults(loss=0.1), seed=4)) as (
            first,
            second,
            caller,
        ):
            members = [Forum(), Forum()]
            for orb, member in zip((first, second), members, strict=True):
                await orb.join(group, member)
            forum: Any = caller.proxy(Forum, group)
            for number in range(1200):
                await forum.say(str(number))
            for member in members:
                await until(lambda member=member: len(member.heard) >= 1200)  # type: ignore[misc]
                assert sorted(member.heard, key=int) == [str(number) for number in range(1200)]

    run(main())


MEMBER = """
import asyncio, json, sys
from inga.layers.shape import Faults
from inga.corba.orb.memberships import Multicast
from inga.corba.orb.orb import Orb
from inga.corba.broker.idl import Long, interface, oneway

@interface("IDL:test/Forum:1.0")
class Forum:
    def __init__(self):
        self.heard = []
        self.enough = asyncio.Event()

    @oneway
    def say(self, text: str, number: Long) -> None:
        self.heard.append(number)

    @oneway
    def end(self) -> None:
        self.enough.set()

async def main(group, seed, expected):
    how = Multicast(interface="lo", faults=Faults(loss=0.1), seed=seed)
    async with Orb(multicast=how) as orb:
        forum = Forum()
        await orb.join(group, forum)
        print("ready", flush=True)
        while len(forum.heard) < expected:
            await asyncio.sleep(0.01)
        await forum.enough.wait()  # whatever is executed twice would have been by now
        print(json.dumps(forum.heard), flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)

asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
"""


def test_three_processes_execute_each_request_exactly_once_under_loss(run: Run, free_port: FreePort) -> None:
    """One in ten datagrams is lost at every receiver; requests are of one to four packets."""
    group = new_group(free_port, reliable=True)
    requests = 300

    @interface("IDL:test/Forum:1.0")
    class Speaking:
        @oneway
        async def say(self, text: str, number: Long) -> None: ...

        @oneway
        async def end(self) -> None: ...

    members = [
        subprocess.Popen(
            [sys.executable, "-c", MEMBER, to_ior(group), str(seed), str(requests)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for seed in range(3)
    ]  # fmt: skip

    def line(member: "subprocess.Popen[str]") -> str:
        assert member.stdout is not None
        return member.stdout.readline()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        how = Multicast(interface="lo", faults=Faults(loss=0.1), seed=9)
        async with Orb(multicast=how) as orb:
            for member in members:
                assert await loop.run_in_executor(None, line, member) == "ready\n"
            forum = orb.proxy(Speaking, group)
            for number in range(requests):
                await forum.say("x" * (number % 4 * 1400), number)
            await forum.end()
            for member in members:
                heard = json.loads(await loop.run_in_executor(None, line, member))
                assert sorted(heard) == list(range(requests))
            way = next(group.multicast())
            channel = orb.channels.group(way)
            assert channel is not None
            assert channel.stack.counts["repair"] > 0

    try:
        run(main())
    finally:
        for member in members:
            member.communicate(timeout=SECONDS)
    assert [member.returncode for member in members] == [0, 0, 0]
