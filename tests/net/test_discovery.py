"""Members that nobody has named find each other: by multicast, at seed addresses, in a file."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import inga
from inga.net.address import parse_host_port
from inga.net.join import _Door
from inga.net.seeds import LINES_MAX, SeedFile
from inga.obg import ObjectClass, method
from inga.stack.backlog import Backlog
from inga.trace import read_manifest

from .helpers import FreePort, Party, Run, texts, until
from .test_views import verdicts

pytestmark = pytest.mark.network

WAYS = ("udp", "unicast seeds", "tcp seeds", "unicast file", "tcp file")
ABC = ("alice", "bob", "cathy")

Find = Callable[[str], dict[str, Any]]
Come = Callable[..., Any]
Gather = Callable[..., AbstractAsyncContextManager[tuple[list[inga.Group], Come]]]


@pytest.fixture
def find(free_port: FreePort, tmp_path: Path) -> Callable[[str], Find]:
    """How a member says where to look for the others, by its name."""

    def choose(way: str) -> Find:
        via, _, how = way.partition(" ")
        if via == "udp":
            where = {"via": f"udp://239.7.7.7:{free_port()}", "interface": "lo"}
            return lambda name: where
        seeds: Any = tmp_path / "seeds" if how == "file" else [f"127.0.0.1:{free_port()}"]

        def look(name: str) -> dict[str, Any]:
            is_seed = name == "bob" and how == "seeds"
            address = seeds[0] if is_seed else f"127.0.0.1:{free_port()}"
            return {"via": via, "address": address, "seeds": seeds}

        return look

    return choose


@pytest.fixture
def gather(find: Callable[[str], Find], group_name: str) -> Gather:
    """A group of three that started at once, and how others come."""

    @asynccontextmanager
    async def meet(way: str = "udp", **options: Any) -> AsyncIterator[tuple[list[inga.Group], Come]]:
        where = find(way)
        async with AsyncExitStack() as stack:

            async def come(name: str, **more: Any) -> inga.Group:
                joining = inga.join(group_name, name, **{**where(name), **options, **more})
                return await stack.enter_async_context(joining)

            groups = await asyncio.gather(*map(come, ABC))
            for group in groups:
                await group.ready(3)
            yield groups, come

    return meet


@pytest.mark.parametrize("way", WAYS)
def test_who_starts_at_once_is_in_one_view_and_others_come_and_go(run: Run, gather: Gather, way: str) -> None:
    async def main() -> None:
        async with gather(way) as ((alice, bob, cathy), come):
            assert {*alice.view.names} == {*ABC}
            assert alice.view == bob.view == cathy.view
            await alice.send(b"hello")
            assert await texts(bob, 1) == await texts(cathy, 1) == ["hello"]
            dave = await come("dave")
            assert {*dave.view.names} == {*ABC, "dave"}
            for group in (alice, bob, cathy, dave):
                await group.ready(members=["dave", *ABC])
            await bob.close()
            await until(lambda: alice.view == cathy.view == dave.view and "bob" not in dave.view.names)
            await (await dave.send(b"from dave")).reached("confirmed")
            assert await texts(alice, 1) == await texts(cathy, 1) == ["from dave"]

    run(main())


def test_a_file_has_those_who_are_there(run: Run, gather: Gather, tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "seeds"
        path.write_text(
            "nonsense\n127.0.0.1:9 somebody who was killed\nno.such.host.invalid:1 another\n\xff\n"
        )
        async with gather("unicast file") as ((alice, bob, _), _):
            lines = path.read_text().splitlines()
            assert sorted(line.split()[1] for line in lines[-3:]) == [*ABC]
            assert lines[1] == "127.0.0.1:9 somebody who was killed"
            await bob.close()
            assert {*alice.view.names} >= {"alice", "cathy"}
        assert [line.split()[0] for line in path.read_text().splitlines()][1:3] == [
            "127.0.0.1:9",
            "no.such.host.invalid:1",
        ]
        assert not {*ABC} & {*path.read_text().split()}

    run(main())


def test_groups_that_were_founded_apart_become_one_when_somebody_knows_both(
    run: Run, group_name: str, free_port: FreePort
) -> None:
    async def main() -> None:
        one, other, third = (f"127.0.0.1:{free_port()}" for _ in range(3))
        async with (
            inga.join(group_name, "alice", via="unicast", address=one, seeds=one) as alice,
            inga.join(group_name, "bob", via="unicast", address=other, seeds=[other]) as bob,
        ):
            assert (alice.view.names, bob.view.names) == (("alice",), ("bob",))
            async with inga.join(
                group_name, "cathy", via="unicast", address=third, seeds=[one, other]
            ) as cathy:
                await asyncio.gather(*(group.ready(3, timeout=20) for group in (alice, bob, cathy)))
                assert alice.view == bob.view == cathy.view
                await cathy.send(b"all of you")
                assert await texts(alice, 1) == await texts(bob, 1) == ["all of you"]

    run(main())


@pytest.mark.interpreted
@pytest.mark.parametrize("via", ["unicast", "tcp"])
def test_who_was_cut_off_is_found_again_at_its_address(run: Run, party: Party, via: str) -> None:
    """It is in no view any more that would say where it is. Also of members that were named."""

    async def main() -> None:
        async with party(3, via, detect=0.3) as groups:
            alice, bob, cathy = groups
            writes = [group.carrier._write for group in groups]  # type: ignore[attr-defined]
            for group in groups:  # nothing passes between cathy and the others
                group.carrier._write = _cut(group.carrier._write, cathy, is_cut=group is cathy)  # type: ignore[attr-defined]
            await until(lambda: alice.view.names == bob.view.names == ("alice", "bob"))
            await until(lambda: cathy.view.names == ("cathy",))
            for group, write in zip(groups, writes, strict=True):
                group.carrier._write = write  # type: ignore[attr-defined]
            await until(lambda: alice.view == bob.view == cathy.view)
            assert alice.view.names == ("alice", "bob", "cathy")

    run(main())


def _cut(write: Any, member: inga.Group, *, is_cut: bool) -> Any:
    """Writes nothing to that member, or nothing at all."""
    place = parse_host_port(member.view.members[member.stack.me].address, member.me)

    def written(*arguments: Any) -> None:
        if not is_cut and place not in arguments:
            write(*arguments)

    return written


def test_a_name_is_for_one_process(run: Run, gather: Gather) -> None:
    async def main() -> None:
        async with gather(detect=30.0) as (_, come):
            with pytest.raises(inga.UsageError, match="there is a member 'bob' already"):
                await come("bob")

    run(main())


def test_who_means_another_order_is_told_so(run: Run, gather: Gather) -> None:
    async def main() -> None:
        async with gather() as (_, come):
            with pytest.raises(inga.UsageError, match="this group has another order"):
                await come("dave", order="fifo")
            with pytest.raises(inga.UsageError, match="this group has another order, other founders"):
                await come("dave", members=[*ABC], late=True)

    run(main())


def test_who_says_late_founds_nothing(run: Run, find: Callable[[str], Find], group_name: str) -> None:
    async def main() -> None:
        where = find("udp")("")
        waiting = inga.join(group_name, "bob", late=True, **where)
        coming = asyncio.create_task(waiting.__aenter__())
        await asyncio.sleep(0.8)
        assert not coming.done()
        async with inga.join(group_name, "alice", **where) as alice:
            bob = await coming
            assert bob.view.names == ("alice", "bob")
            await alice.ready(2)
            await waiting.__aexit__(None, None, None)

    run(main())


def test_ready_waits_for_whom_one_wants(run: Run, gather: Gather) -> None:
    async def main() -> None:
        async with gather() as ((alice, *_), come):
            await alice.ready()
            await alice.ready(members="bob")
            with pytest.raises(inga.NotReady, match=r"waited 0.05 s: 3 of 4 members are here$"):
                await alice.ready(4, timeout=0.05)
            words = r"waited 0.05 s: 1 of 3 members are here, missing are dave, erin"
            with pytest.raises(inga.NotReady, match=words) as caught:
                await alice.ready(members=["erin", "alice", "dave"], timeout=0.05)
            assert caught.value.missing == ("dave", "erin")
            waiting = asyncio.create_task(alice.ready(members=["dave"]))
            await come("dave")
            await waiting

    run(main())


class Tally(ObjectClass):
    def initial(self) -> int:
        return 0

    @method()
    async def add(self, ctx, amount):  # type: ignore[no-untyped-def]
        ctx.effect(lambda state: state + amount)


@pytest.mark.parametrize("order", ["object", "total"])
def test_objects_are_at_whoever_is_there(run: Run, gather: Gather, order: str) -> None:
    async def main() -> None:
        async with gather(order=order, objects={"tally": Tally}) as (groups, come):
            for group in groups:
                await group.call("tally", "add", 1)
            dave = await come("dave")
            await dave.call("tally", "add", 1)
            await until(lambda: [group.state("tally") for group in (*groups, dave)] == [4] * 4)

    run(main())


@pytest.mark.parametrize("order", ["causal", "total"])
def test_a_trace_of_a_group_that_founded_itself(run: Run, gather: Gather, tmp_path: Path, order: str) -> None:
    path = tmp_path / "trace"

    async def main() -> None:
        async with gather(order=order, trace=path) as (groups, come):
            everybody = [*groups, await come("dave")]
            for group in everybody:
                await group.ready(4)
            for group in everybody:
                await (await group.send(group.me.encode())).reached("confirmed")
            own = int(order == "total")
            for group in everybody:
                await texts(group, 3 + own)

    run(main())
    assert read_manifest(path).processes[3:] == ["dave"]
    assert sorted(read_manifest(path).processes[:3]) == [*ABC]
    assert set(verdicts(path).values()) == {"pass"}


def test_a_trace_is_shared(run: Run, gather: Gather, tmp_path: Path) -> None:
    async def main() -> None:
        async with gather(trace=tmp_path / "trace") as (_, come):
            with pytest.raises(inga.UsageError, match="elsewhere holds no trace of this group"):
                await come("dave", trace=tmp_path / "elsewhere")

    run(main())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"via": "unicast"},
            r"needs addresses: members=\{name: 'host:port'\}, or address='host:port' and seeds",
        ),
        ({"via": "tcp", "seeds": ["127.0.0.1:9"]}, "via='tcp' with seeds needs address='host:port'"),
        ({"seeds": ["127.0.0.1:9"]}, "by multicast members find each other without"),
        ({"members": ["alice"], "seeds": ["127.0.0.1:9"]}, "pass seeds or members, not both"),
        ({"via": "tcp", "address": "here", "seeds": ["127.0.0.1:9"]}, "the address of alice is host:port"),
        ({"via": "tcp", "address": "127.0.0.1:9", "seeds": []}, "seeds names nobody"),
        (
            {"via": "tcp", "address": "127.0.0.1:9", "seeds": ["nowhere"]},
            "the address of seed 1 is host:port",
        ),
        (
            {"via": "tcp", "address": "127.0.0.1:9", "seeds": ["127.0.0.1:8", f"{'x' * 70}.net:9"]},
            "'x+.net' of seed 2 cannot be the name of a host",
        ),
        ({"order": "miop+acks"}, "name all its members at the start"),
        ({"name": ""}, "a member needs a name"),
        ({"name": "x" * 256}, "a member needs a name, of at most 255 characters"),
        (
            {"order": "total", "objects": {"tally": (Tally, ["alice"])}},
            r"object 'tally' names the members that have a copy: pass members=\[...\]",
        ),
    ],
)
def test_what_cannot_be_meant(run: Run, options: dict[str, Any], words: str) -> None:
    async def main() -> None:
        async with inga.join("lunch", options.pop("name", "alice"), **options):
            pass

    with pytest.raises(inga.UsageError, match=words):
        run(main())


def test_a_file_that_cannot_be_written(run: Run, tmp_path: Path, free_port: FreePort) -> None:
    async def main() -> None:
        path, address = tmp_path / "missing" / "seeds", f"127.0.0.1:{free_port()}"
        async with inga.join("lunch", "alice", via="unicast", address=address, seeds=f"file:{path}"):
            pass

    with pytest.raises(inga.UsageError, match="missing/seeds cannot be written: No such file or directory"):
        run(main())


STARTS = """
import asyncio, inga, sys
from time import time

async def main():
    inga.recipes.find("causal")
    print("here", flush=True)
    sys.stdin.readline()
    began = time()
    async with inga.join(sys.argv[1], sys.argv[2], via=sys.argv[3], interface="lo") as group:
        await group.ready(int(sys.argv[4]))
        print(time() - began, flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        print(*group.view.names, flush=True)
        await asyncio.to_thread(sys.stdin.readline)

import inga.recipes
inga.join
asyncio.run(main())
"""


def test_eight_processes_that_start_at_once(group_name: str, free_port: FreePort) -> None:
    """The measured time is of a machine that does little else; here it need only come about."""
    names = [f"m{number}" for number in range(8)]
    via = f"udp://239.7.7.7:{free_port()}"
    command = [sys.executable, "-c", STARTS, group_name]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen([*command, name, via, "8"], **pipes) for name in names]
    try:

        def ask(line: str | None) -> list[str]:
            if line is not None:
                for process in processes:
                    process.stdin.write(line)
                    process.stdin.flush()
            return [process.stdout.readline().strip() for process in processes]

        assert ask(None) == ["here"] * 8
        times = [float(text) for text in ask("start\n")]
        assert max(times) < 20.0
        (view,) = set(ask("say\n"))
        assert sorted(view.split()) == names
    finally:
        for process in processes:
            process.communicate("end\n", timeout=30)


def test_what_came_before_we_were_let_in_is_handed_on_once_and_not_kept() -> None:
    """The one who asks at the door is there as long as the member it became: up to 4 MiB."""
    came: list[Any] = []
    newcomer: Any = SimpleNamespace(backlog=Backlog(4))
    newcomer.backlog.keep(b"early", 0, "somewhere")
    nobody: Any = None
    door = _Door(nobody, newcomer, nobody, None, is_addressed=False)
    door.lead_to(came.extend)
    assert came == [(b"early", "somewhere")]
    assert not newcomer.backlog


def test_a_seed_file_does_not_grow_for_ever(tmp_path: Path) -> None:
    """Lines of processes that were killed stay, but no more than so many."""
    path = tmp_path / "seeds"
    for number in range(LINES_MAX + 10):
        found = SeedFile(path, f"member {number}", f"10.0.0.1:{1000 + number}").enter()
    assert len(found) == LINES_MAX - 1 == len(path.read_text().splitlines()) - 1
    assert found[0] == "10.0.0.1:1010"
