"""Names of hosts: looked up beside the loop, again from time to time, and never in the way of the group."""

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from threading import Event
from typing import Any

import pytest

import inga
from inga.net.hosts import LOOK_AGAIN, LOOKUPS_MAX, LOOKUPS_OF_OTHERS_MAX, OTHERS_MAX, RETRY_MAX, Hosts
from inga.stack.places import PLACES_MAX

from .helpers import FreePort, Run, skip, text, texts, until


class NameServer:
    """Says where hosts are whose names end in `.pod`: where `where` says, else that nobody knows them."""

    def __init__(self) -> None:
        self.where: dict[str, list[str]] = {}
        self.asked: Counter[str] = Counter()
        self.answers = Event()
        self.answers.set()
        self._ask: Callable[..., Any] = socket.getaddrinfo

    def __call__(self, host: Any, *more: Any, **others: Any) -> Any:
        if not str(host).endswith(".pod"):
            return self._ask(host, *more, **others)
        self.asked[host] += 1
        self.answers.wait(20)
        if host not in self.where:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_DGRAM, 17, "", (address, 0)) for address in self.where[host]]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameServer]:
    server = NameServer()
    monkeypatch.setattr("socket.getaddrinfo", server)
    yield server
    server.answers.set()


def test_an_address_is_known_at_once_and_nothing_else_is_asked_for(run: Run, server: NameServer) -> None:
    async def main() -> None:
        hosts = Hosts(["10.0.0.1:1"])
        assert hosts.find("10.0.0.2:7") == ("10.0.0.2", 7)
        assert hosts.find("nonsense") is hosts.find("bob.pod:0") is hosts.find(f"{'x' * 70}.pod:1") is None
        assert await hosts.open("127.0.0.1:5", "alice", ["10.0.0.3:1"]) == ("127.0.0.1", 5)

    run(main())
    assert not server.asked


def test_a_name_is_known_a_moment_later(run: Run, server: NameServer) -> None:
    async def main() -> None:
        hosts = Hosts()
        server.where["bob.pod"] = ["10.0.0.2"]
        server.answers.clear()
        assert hosts.find("bob.pod:7") is None is hosts.find("bob.pod:7")
        server.answers.set()
        await until(lambda: hosts.find("bob.pod:7"))
        assert hosts.find("bob.pod:8") == ("10.0.0.2", 8)
        assert server.asked == {"bob.pod": 1}

    run(main())


def test_what_was_not_found_is_looked_up_again(run: Run, server: NameServer) -> None:
    async def main() -> None:
        hosts = Hosts()
        assert hosts.find("bob.pod:7") is None
        await until(lambda: not hosts._pending)
        assert hosts.find("bob.pod:7") is None
        assert not hosts._pending, "not without a pause"
        server.where["bob.pod"] = ["10.0.0.2"]
        skip(RETRY_MAX)
        assert hosts.find("bob.pod:7") is None
        await until(lambda: hosts.find("bob.pod:7") == ("10.0.0.2", 7))

    run(main())


def test_a_host_that_moves_is_found_and_one_that_is_not_found_stays(run: Run, server: NameServer) -> None:
    async def main() -> None:
        server.where["bob.pod"] = ["10.0.0.2"]
        hosts, changes = Hosts(), []
        hosts.keep(["bob.pod:7"])
        hosts.follow(lambda: changes.append(hosts.find("bob.pod:7")))
        await until(lambda: changes)
        for addresses, now in (
            (["10.0.0.9", "10.0.0.2"], "10.0.0.2"),
            ([], "10.0.0.2"),
            (["10.0.0.3"], "10.0.0.3"),
        ):
            server.where = {"bob.pod": addresses} if addresses else {}
            asked = server.asked["bob.pod"]
            skip(2 * max(LOOK_AGAIN, RETRY_MAX))
            await until(lambda asked=asked: server.asked["bob.pod"] > asked and not hosts._pending)
            assert hosts.find("bob.pod:7") == (now, 7)
        assert changes == [("10.0.0.2", 7), ("10.0.0.3", 7)]
        hosts.close()

    run(main())


def test_strangers_have_few_names_looked_up_at_once_and_leave_room_for_members(
    run: Run, server: NameServer
) -> None:
    async def main() -> None:
        hosts = Hosts()
        server.answers.clear()
        for number in range(LOOKUPS_OF_OTHERS_MAX + 1):
            assert hosts.find(f"{number}.pod:7") is None
        assert len(hosts._pending) == LOOKUPS_OF_OTHERS_MAX
        hosts.keep([f"member{number}.pod:7" for number in range(LOOKUPS_MAX)])
        assert len(hosts._pending) == LOOKUPS_MAX
        server.answers.set()
        await until(lambda: len(server.asked) == LOOKUPS_OF_OTHERS_MAX + LOOKUPS_MAX)
        assert f"{LOOKUPS_OF_OTHERS_MAX}.pod" not in server.asked
        await until(lambda: not hosts._pending)

    run(main())


def test_names_of_others_are_forgotten_and_those_of_members_are_not(run: Run, server: NameServer) -> None:
    assert OTHERS_MAX == PLACES_MAX

    async def main() -> None:
        hosts = Hosts(["seed.pod:7"])
        hosts.keep(["member.pod:7"])
        for number in range(OTHERS_MAX):
            hosts.find(f"{number}.pod:7")
        assert len(hosts._names) == OTHERS_MAX + 2 and "0.pod" in hosts._names
        hosts.find("one-more.pod:7")
        assert len(hosts._names) == OTHERS_MAX + 2 and "0.pod" not in hosts._names
        assert {"seed.pod", "member.pod"} <= hosts._names.keys()
        await until(lambda: not hosts._pending)

    run(main())


def test_ones_own_host_has_to_be_known(
    run: Run, server: NameServer, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        with pytest.raises(inga.UsageError, match=r"the host 'alice\.pod' of alice cannot be resolved"):
            async with inga.join("lunch", "alice", via="tcp", address="alice.pod:7400", seeds="127.0.0.1:9"):
                pass

    run(main())
    assert not caplog.records, "the error says it all"


def test_who_ends_waits_for_no_name_server(run: Run, server: NameServer) -> None:
    async def main() -> None:
        server.answers.clear()
        hosts = Hosts()
        hosts.find("bob.pod:7")
        hosts.close()
        hosts.find("cathy.pod:7")
        assert hosts._pending == {"bob.pod"}

    run(main())
    server.answers.set()


@pytest.mark.network
@pytest.mark.parametrize("via", ["unicast", "tcp"])
def test_a_name_that_is_not_known_any_more_costs_a_turn_nothing(
    run: Run, server: NameServer, free_port: FreePort, group_name: str, via: str
) -> None:
    """What the stack has handed over with a view was lost, sends and the view itself."""
    server.where = {f"{name}.pod": ["127.0.0.1"] for name in ("alice", "bob", "cathy")}
    ports = {name: free_port() for name in ("alice", "bob", "cathy")}
    seeds = [f"alice.pod:{ports['alice']}"]

    def come(name: str) -> Any:
        place = f"{name}.pod:{ports[name]}"
        return inga.join(group_name, name, via=via, address=place, seeds=seeds, detect=60.0)

    async def main() -> None:
        async with come("alice") as alice, come("bob") as bob, come("cathy") as cathy:
            await alice.ready(3)
            server.where.clear()
            server.asked.clear()
            skip(LOOK_AGAIN)
            await until(lambda: all(server.asked[f"{name}.pod"] >= 3 for name in ports))
            await cathy.close()
            async for item in alice.items():
                if isinstance(item, inga.View) and item.left == ("cathy",):
                    break
            await bob.ready(2)
            await (await alice.send(b"still here")).reached("confirmed")
            assert await texts(bob, 1) == ["still here"]

    run(main())


@pytest.mark.network
@pytest.mark.parametrize("via", ["unicast", "tcp"])
def test_a_seed_that_is_not_known_yet_is_found_once_it_is(
    run: Run,
    server: NameServer,
    free_port: FreePort,
    group_name: str,
    via: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    port = free_port()

    async def main() -> None:
        where = {"via": via, "seeds": [f"127.0.0.1:{free_port()}", f"alice.pod:{port}"]}
        waiting = inga.join(group_name, "bob", late=True, address=f"127.0.0.1:{free_port()}", **where)
        coming = asyncio.create_task(waiting.__aenter__())
        await until(lambda: server.asked["alice.pod"] > 1)
        server.where["alice.pod"] = ["127.0.0.1"]
        async with inga.join(group_name, "alice", address=f"alice.pod:{port}", **where) as alice:
            bob = await coming
            await alice.ready(2)
            await bob.send(b"found you")
            assert [text(await anext(aiter(alice)))] == ["found you"]
            await waiting.__aexit__(None, None, None)

    with caplog.at_level(logging.WARNING, "inga"):
        run(main())
    unknown = [record.getMessage() for record in caplog.records if record.event == "host.unknown"]  # type: ignore[attr-defined]
    assert unknown == [f"group {group_name}: the host alice.pod cannot be resolved, and is looked up again"]


@pytest.mark.network
@pytest.mark.parametrize("via", ["unicast", "tcp"])
def test_a_member_that_is_named_may_be_known_later(
    run: Run, server: NameServer, free_port: FreePort, group_name: str, via: str
) -> None:
    async def main() -> None:
        alice_port, bob_port = sorted((free_port(), free_port()))
        members = {"alice": f"127.0.0.1:{alice_port}", "bob": f"bob.pod:{bob_port}"}
        async with inga.join(group_name, "alice", members=members, via=via) as alice:
            alice.post(b"hello")
            assert alice.carrier.counts["unresolved"]
            server.where["bob.pod"] = ["127.0.0.1"]
            async with inga.join(group_name, "bob", members=members, via=via) as bob:
                assert await texts(bob, 1) == ["hello"]

    run(main())


@pytest.mark.network
@pytest.mark.parametrize("via", ["unicast", "tcp"])
def test_who_comes_back_at_another_address_is_found_there(
    run: Run, server: NameServer, free_port: FreePort, group_name: str, via: str
) -> None:
    """As a pod that is started again."""
    seed, place = f"127.0.0.1:{free_port()}", f"bob.pod:{free_port()}"

    def come(name: str, address: str) -> Any:
        return inga.join(group_name, name, via=via, address=address, seeds=seed, detect=1.0)

    async def main() -> None:
        server.where["bob.pod"] = ["127.0.0.1"]
        async with come("alice", seed) as alice, come("bob", place) as bob:
            await alice.ready(2)
            bob.carrier.close()  # as if it were killed
            await until(lambda: alice.view.names == ("alice",))
            server.where["bob.pod"] = ["127.0.0.2"]
            skip(LOOK_AGAIN)
            async with come("bob", place) as again:
                await alice.ready(2)
                await (await alice.send(b"welcome back")).reached("confirmed")
                assert await texts(again, 1) == ["welcome back"]

    run(main())
