"""Joining: what is refused, and in which words."""

import asyncio
import gc
import socket
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import inga
from inga.keys.secret import Secret
from inga.model.view import MEMBERS_MAX
from inga.net.address import Interface, Via, choose_interface, parse_host_port, parse_via
from inga.net.carrier import MulticastCarrier
from inga.recipes import Recipe, find

from .helpers import CARRIERS, LOOPS, FreePort, Party, Place, Run, texts, until

pytestmark = pytest.mark.network

MEMBERS = ["alice", "bob"]
NOWHERE = "udp://239.7.7.7:9"
"""For joins that never come so far as to open a socket."""


async def joined(name: str, **options: Any) -> None:
    async with inga.join("lunch", name, **options):
        pass


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"members": "alice"}, "members is a list of names"),
        ({"members": ["alice", ""]}, "members is a list of names"),
        ({"members": []}, "'alice' is not among the members"),
        ({"members": ["bob", "cathy"]}, "'alice' is not among the members: bob, cathy"),
        ({"members": ["alice", "bob", "bob"]}, "two members of one name"),
        (
            {"members": ["alice", *map(str, range(MEMBERS_MAX))]},
            "1025 members are too many: a group has at most 1024",
        ),
        ({"order": "chaos"}, "no order 'chaos'; there are causal"),
        ({"order": "strict"}, "order 'strict' is there to learn from .*say unsafe=True"),
        ({"order": "released", "unsafe": False}, "order 'released' is there to learn from"),
        ({"deliver": "soon"}, "deliver is one of received, accepted, causal"),
        ({"deliver": "confirmed"}, "order 'vector' delivers at level 'causal', not 'confirmed'"),
        ({"order": "fifo", "deliver": "causal"}, "order 'fifo' delivers at level 'accepted'"),
        ({"secret": b"psst"}, "secret is a Secret, its text, or the path"),
        ({"on_concurrent": "panic"}, "on_concurrent is one of deliver, error, ignore"),
        ({"datagram_max": 100}, "datagram_max is between 256 and 65000"),
        ({"datagram_max": 65001}, "datagram_max is between 256 and 65000"),
        ({"trace_level": "some"}, "trace_level is full or deliveries, not 'some'"),
        ({"interface": "nowhere0"}, "no interface 'nowhere0' with an IPv4 address; there are .*lo"),
        ({"via": "unicast"}, "via='unicast' needs addresses"),
        ({"via": "tcp"}, "via='tcp' needs addresses"),
        ({"via": "pigeon"}, "via is udp://239.x.y.z:port, unicast or tcp"),
        ({"via": 7400}, "via is udp://239.x.y.z:port, unicast or tcp, not 7400"),
        ({"order": ["causal"]}, r"an order is a name, not \['causal'\]; there are causal"),
        ({"members": {"alice", "bob"}}, "members is a list of names.* in every process, in the same order"),
        ({"members": (name for name in MEMBERS)}, "members is a list of names.*, not <generator"),
        ({"members": ["alice", 5]}, "the name of a member is text, not 5"),
        ({"trace": 5}, "trace is a directory that members share, not 5"),
        ({"late": "false"}, "late is True or False, not 'false'"),
        ({"echo": "no"}, "echo is True or False, not 'no'"),
        ({"rejoin": None}, "rejoin is True or False, not None"),
        ({"datagram_max": "1400"}, "datagram_max is a whole number of bytes, not '1400'"),
        ({"queue_max": None}, "queue_max is a whole number of bytes, not None"),
        ({"queue_max": 10}, "queue_max is at least 1024 bytes, not 10"),
        ({"window": True}, "window is a whole number of bytes, not True"),
        (
            {"objects": ["hits"], "order": "object"},
            r"objects is a dict of names and classes.*, not \['hits'\]",
        ),
        ({"protocol": "window"}, "protocol is a dict .*, not 'window'"),
        ({"seeds": 7400, "members": None, "via": "tcp"}, r"seeds is a list of addresses.*, not 7400"),
        ({"identity": 5}, "identity is an Identity, or the path of a file with one, not 5"),
        ({"identity": "none.pem"}, "none.pem cannot be read: No such file"),
        ({"secret": "file:none.secret"}, "none.secret cannot be read: No such file"),
        ({"secret": "lunch.secret"}, "this is no secret.* named as 'file:PATH'"),
        ({"faults": {"loss": 0.1}}, r"faults is inga.Faults, .*, not \{'loss': 0.1\}"),
        ({"seed": "x"}, "seed is a whole number, not 'x'"),
        ({"via": "tcp", "members": {"alice": "0.0.0.0:7400"}}, "nobody reaches 0.0.0.0:7400"),
        (
            {"via": "tcp", "members": None, "address": "0.0.0.0:7400", "seeds": ["b:1"]},
            "nobody reaches 0.0.0.0",
        ),
    ],
)
def test_what_cannot_be_meant(run: Run, options: dict[str, Any], words: str) -> None:
    with pytest.raises(inga.UsageError, match=words):
        run(joined("alice", **{"members": MEMBERS, "via": NOWHERE, "interface": "lo", **options}))


@pytest.mark.parametrize(
    ("group", "name", "words"),
    [
        (5, "alice", "the name of a group is text, not 5"),
        (None, "alice", "the name of a group is text, not None"),
        ("", "alice", "a group needs a name"),
        ("lunch", None, "the name of a member is text, not None"),
        ("lunch", b"alice", "the name of a member is text, not b'alice'"),
        ("lunch", "", "a member needs a name"),
    ],
)
def test_a_name_that_is_none(run: Run, group: Any, name: Any, words: str) -> None:
    async def main() -> None:
        async with inga.join(group, name, via=NOWHERE, interface="lo"):
            pass

    with pytest.raises(inga.UsageError, match=words):
        run(main())


@pytest.mark.parametrize("options", [{}, {"secret": Secret(bytes(32))}], ids=["plain", "secured"])
@pytest.mark.parametrize(
    ("group", "name", "members"),
    [
        ("lunch", "al\udcfe", None),
        ("lunch", "al\udcfe", ["al\udcfe", "bob"]),
        ("lunch", "alice", ["alice", "al\udcfe"]),
        ("al\udcfe", "alice", None),
        ("al\udcfe", "alice", MEMBERS),
    ],
)
def test_a_name_with_half_a_character_in_it(
    run: Run, group: str, name: str, members: list[str] | None, options: dict[str, Any]
) -> None:
    """As of an argument that is no UTF-8."""

    async def main() -> None:
        async with inga.join(group, name, members=members, via=NOWHERE, interface="lo", **options):
            pass

    with pytest.raises(inga.UsageError, match=r"'al\\udcfe' is no name: there is half a character in it"):
        run(main())


@pytest.mark.parametrize(
    ("via", "words"),
    [
        ("", "via is udp://"),
        ("udp://239.7.7.7", "via is udp://"),
        ("udp://:7400", "via is udp://"),
        ("http://239.7.7.7:80", "via is udp://"),
        ("udp://239.7.7.7:lunch", "has a port that is none"),
        ("udp://239.7.7.7:70000", "has a port that is none"),
        ("udp://localhost:7400", "'localhost' in via is no IPv4 address"),
        ("udp://127.0.0.1:7400", "127.0.0.1 is no multicast address"),
        ("udp://239.7.7.7:7400?ttl=9", "via has no option ttl; there is interface="),
    ],
)
def test_a_via_that_is_none(via: str, words: str) -> None:
    with pytest.raises(inga.UsageError, match=words):
        parse_via(via)


def test_a_via_names_a_place() -> None:
    assert parse_via("tcp") == Via("tcp")
    assert parse_via("udp://239.7.7.7:7400") == Via("udp", "239.7.7.7", 7400)
    assert parse_via("udp://239.7.7.7:7400?interface=lo") == Via("udp", "239.7.7.7", 7400, "lo")


@pytest.mark.parametrize(
    "address",
    [
        "",
        "127.0.0.1",
        "127.0.0.1:",
        ":7400",
        "127.0.0.1:0",
        "127.0.0.1:65536",
        "127.0.0.1:-1",
        "127.0.0.1:x",
        7400,
    ],
)
def test_an_address_is_host_and_port(address: object) -> None:
    with pytest.raises(inga.UsageError, match="the address of bob is host:port, not"):
        parse_host_port(address, "bob")


def test_a_host_that_cannot_be_a_name() -> None:
    # So long a label is refused before anybody is asked.
    with pytest.raises(inga.UsageError, match=r"'x+' of bob cannot be the name of a host"):
        parse_host_port(f"{'x' * 70}:7400", "bob")


def test_the_interface_is_chosen_by_option_then_via_then_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INGA_INTERFACE", "127.0.0.3")
    plain, with_interface = Via("udp", "239.7.7.7", 7400), Via("udp", "239.7.7.7", 7400, "127.0.0.2")
    assert choose_interface(with_interface, "lo").reason == "lo, by option"
    assert choose_interface(with_interface, "lo").address == "127.0.0.1"
    assert choose_interface(with_interface, None).reason == "127.0.0.2, by via"
    assert choose_interface(plain, None).reason == "127.0.0.3, by INGA_INTERFACE"
    monkeypatch.delenv("INGA_INTERFACE")
    assert "route" in choose_interface(plain, None).reason, "which only looks, and sends nothing"


def test_an_interface_of_somebody_else(run: Run) -> None:
    """It must not stay half open: without its interface a socket would multicast by the default route."""

    async def main() -> None:
        carrier = MulticastCarrier(parse_via(NOWHERE), Interface("198.51.100.7", "by option", 1000))
        with pytest.raises(inga.UsageError, match=r"cannot receive multicast at .* on 198.51.100.7: Cannot"):
            await carrier.open(lambda burst: None)
        assert carrier._own is None

    run(main())
    gc.collect()  # a socket left open would warn


@pytest.mark.parametrize("via", CARRIERS)
def test_a_port_in_use(run: Run, place: Place, via: str) -> None:
    where = place(via, 2)
    address = where["via"][6:] if via == "udp" else where["members"]["alice"]
    host, port = address.split(":")
    kind = socket.SOCK_STREAM if via == "tcp" else socket.SOCK_DGRAM
    with closing(socket.socket(socket.AF_INET, kind)) as taken:
        taken.bind((host, int(port)))
        if via == "tcp":
            taken.listen()
        with pytest.raises(inga.UsageError, match=f"{host}:{port}.*[aA]ddress already in use"):
            run(joined("alice", **where))
    gc.collect()


def test_a_directory_with_another_trace(run: Run, place: Place, tmp_path: Path) -> None:
    where = place("udp", 2)
    run(joined("alice", **where, trace=tmp_path / "trace"))
    with pytest.raises(inga.UsageError, match="holds a trace of another group"):
        run(joined("alice", **{**where, "members": ["alice", "carol"]}, trace=tmp_path / "trace"))
    (tmp_path / "file").touch()
    with pytest.raises(inga.TraceError, match="cannot be written"):
        run(joined("alice", **where, trace=tmp_path / "file"))
    gc.collect()  # a group that never was would warn


@pytest.mark.parametrize("via", CARRIERS)
def test_one_that_does_not_know_the_order_of_the_group_leaves_it_at_once(
    run: Run, place: Place, free_port: FreePort, monkeypatch: pytest.MonkeyPatch, via: str
) -> None:
    """The others have changed to one that came with a later version: they are told, and nothing stays open."""

    def earlier(name: str) -> Recipe:
        return find("what is to come" if name == "fifo" else name)

    async def main() -> None:
        where, port = place(via, 1), free_port()
        mine = {} if via == "udp" else {"address": f"127.0.0.1:{port}"}
        async with inga.join("lunch", "alice", **where, order="vector") as alice:
            await alice.use("fifo")
            monkeypatch.setattr("inga.net.join.find", earlier)
            with pytest.raises(inga.UsageError, match="no order 'what is to come'"):
                await joined("bob", late=True, **where, **mine)
            await until(lambda: alice.view.left == ("bob",))
            assert alice.view.names == ("alice",)
            if via != "udp":
                kind = socket.SOCK_STREAM if via == "tcp" else socket.SOCK_DGRAM
                with closing(socket.socket(socket.AF_INET, kind)) as mine_again:
                    mine_again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    mine_again.bind(("127.0.0.1", port))

    run(main())
    gc.collect()


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("via", CARRIERS)
def test_members_meet_and_leave(run: Run, party: Party, via: str, loop: str) -> None:
    async def main() -> None:
        async with party(3, via) as (alice, bob, cathy):
            assert alice.view.names == ("alice", "bob", "cathy")
            assert (bob.me, bob.here) == ("bob", ("alice", "bob", "cathy"))
            await alice.send(b"Lunch?")
            assert await texts(bob, 1) == ["Lunch?"]
            await bob.send(b"yes")
            assert await texts(cathy, 2) == ["Lunch?", "yes"]
            assert await texts(alice, 1) == ["yes"]

    run(main(), loop=loop)


def test_members_may_have_addresses_they_do_not_need(run: Run, place: Place, free_port: FreePort) -> None:
    where = place("udp", 2)
    addresses = {name: f"127.0.0.1:{free_port()}" for name in MEMBERS}

    async def main() -> None:
        async with (
            inga.join("lunch", "alice", **{**where, "members": addresses}) as alice,
            inga.join("lunch", "bob", **where) as bob,
        ):
            await asyncio.gather(alice.ready(), bob.ready())

    run(main())


def test_the_interface_may_be_part_of_via(run: Run, place: Place) -> None:
    where = place("udp", 2)
    via = f"{where['via']}?interface=lo"

    async def main() -> None:
        async with (
            inga.join("lunch", "alice", members=MEMBERS, via=via) as alice,
            inga.join("lunch", "bob", members=MEMBERS, via=via, interface="127.0.0.1") as bob,
        ):
            await asyncio.gather(alice.ready(), bob.ready())

    run(main())


def test_members_who_mean_different_groups_do_not_mix(
    run: Run, place: Place, group_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Another list of members, or the same in another order, would give everybody other numbers. Both are told,
    though each has the other's index."""

    async def main() -> None:
        where = place(members=2)
        other = {**where, "members": list(reversed(where["members"]))}
        async with (
            inga.join(group_name, "alice", **where) as alice,
            inga.join(group_name, "bob", **other) as bob,
        ):
            await until(lambda: len(caplog.records) >= 2)
            told = sorted(record.getMessage().partition(": ")[2] for record in caplog.records)
            assert told[0].startswith(
                "alice is in a group of this name, but with the members alice, bob; here"
            )
            assert told[1].startswith("bob is in a group of this name, but with the members bob, alice; here")
            assert alice.here == ("alice",) and bob.here == ("bob",)

    run(main())
