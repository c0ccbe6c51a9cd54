"""Strangers at the door: whatever reaches a member's sockets is counted, and the group's messages all come."""

import asyncio
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from random import Random
from typing import Any

import pytest

import inga
from inga.keys.secret import Secret
from inga.model.packet import Packet
from inga.net import tcp
from inga.net.address import parse_host_port
from inga.net.hosts import Hosts
from inga.net.join import identity
from inga.net.tcp import (
    BUFFER_MIN,
    CALLED_MAX,
    DOUBLES_MAX,
    FRAME_MAX,
    FRAMES_TURN,
    GREETING_MAX,
    HELLO,
    OUTSIDERS_MAX,
    RECONNECT,
    RECONNECT_MAX,
    STRANGERS_OF_HOST_MAX,
    TcpCarrier,
)
from inga.recipes import Options, find
from inga.secure.shares import SHARE, FairSupply
from inga.session.alarms import Backoff
from inga.session.session import Session
from inga.stack.native import Outsider
from inga.stack.stack import Stack
from inga.trial.people import member_names
from inga.trial.workload import Workload
from inga.wire.packet import OUTSIDE, encode, group_id
from inga.wire.told import said

from ..stack.harness import resealed
from .helpers import LOOPS, FreePort, Party, Place, Run, skip, take, text, texts, until
from .trials import judged, play

pytestmark = pytest.mark.network

REASONS = {"truncated", "foreign", "version", "check", "group", "stranger", "length", "view"}


@contextmanager
def stranger() -> Iterator[socket.socket]:
    """A socket of nobody's, whose multicasts stay on loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        sock.setblocking(False)
        yield sock


def datagrams_of(group: str, me: int = 0, birth: int = 1) -> list[bytes]:
    """Some real ones, of one of three members; as if of its own process, if they have its birth."""
    view = inga.View.of(*member_names(3), recipe="vector")
    layers = find("vector").build(Options(greet=True))
    known_as = identity(group, "vector", view.names)
    stack = Stack(layers, me, view, rng=Random(0), group=known_as, birth=birth)
    stack.send(b"hello", now=0)
    stack.tick(1)
    stack.send(bytes(2000), now=2)
    stack.send(bytes(100), 0b100, now=2)
    return [bytes(data) for _, data in stack.ready().send]


def nonsense(rng: Random, groups: list[inga.Group]) -> Iterator[bytes]:
    """Without end, and something for each reason to refuse it."""
    ours, theirs = list[bytes](), datagrams_of("dinner")
    for me, group in enumerate(groups[:2]):
        assert group.stack.birth is not None
        ours += datagrams_of(group.name, me, group.stack.birth)
    unheard_of = Packet(7, OUTSIDE, kind=Session.id)
    unheard_of.ext = said("somersaults")
    while True:
        some = rng.choice(ours)
        yield bytes(encode(unheard_of, group_id(groups[0].name)))  # type: ignore[arg-type]  # it has no body
        yield rng.randbytes(rng.choice((0, 1, 19, 20, 100, 1400, 60_000)))
        yield some[: rng.randrange(len(some))]
        yield rng.choice(theirs)
        yield some[:2] + b"\7" + some[3:]  # another version
        yield resealed(some[:10] + b"\0\7" + some[12:])  # no member
        yield resealed(some[:12] + b"\0\0\0\7" + some[16:])  # another view
        yield resealed(some + b"more")
        yield some[:-1] + bytes([some[-1] ^ 1])  # a wrong bit


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("via", ["udp", "unicast"])
def test_nonsense_while_members_talk(run: Run, party: Party, via: str, loop: str) -> None:
    workload = Workload(members=3, messages=400, size=300)

    async def main() -> Any:
        async with party(3, via) as groups:
            own = [group.carrier._own.getsockname() for group in groups]  # type: ignore[attr-defined]
            targets = own if via == "unicast" else [*own, groups[0].carrier._target]  # type: ignore[attr-defined]

            async def disturb() -> None:
                rng, rubbish = Random(3), nonsense(Random(4), groups)
                while True:
                    for _ in range(8):
                        sock.sendto(next(rubbish), rng.choice(targets))
                    await asyncio.sleep(0)

            with stranger() as sock:
                noise = asyncio.create_task(disturb())
                diaries = await play(groups, workload)
                await until(lambda: all(set(group.stack.rejected) >= REASONS for group in groups))
                noise.cancel()
            assert [set(group.stack.addresses.values()) <= set(own) for group in groups] == [True] * 3
            return diaries

    assert judged(run(main(), loop=loop), workload) == {}


def test_members_of_another_group_at_the_same_place(run: Run, place: Place, group_name: str) -> None:
    where = place("udp", 2)

    async def main() -> None:
        async with (
            inga.join(group_name, "alice", **where) as alice,
            inga.join("dinner", "alice", **where) as diner,
            inga.join(group_name, "bob", **where) as bob,
            inga.join("dinner", "bob", **where) as guest,
        ):
            await asyncio.gather(alice.ready(), bob.ready(), diner.ready(), guest.ready())
            alice.post(b"Lunch?")
            diner.post(b"Dinner?")
            assert (await texts(bob, 1), await texts(guest, 1)) == (["Lunch?"], ["Dinner?"])
            assert bob.stack.rejected["group"] and guest.stack.rejected["group"]

    run(main())


# TCP


async def hung_up(reader: asyncio.StreamReader) -> None:
    """The other side closes, without having said anything."""
    with suppress(ConnectionResetError):
        assert await reader.read() == b""


def frame(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        frame(b""),
        frame(b"hello?"),
        frame(HELLO + b"nowhere"),
        frame(HELLO + b"localhost:80"),  # members say addresses, and no caller lets us ask name servers
        frame(HELLO + b"\xff\xfe"),
        frame(HELLO + b"h" * GREETING_MAX + b":80"),
        struct.pack(">I", FRAME_MAX + 1),
    ],
)
def test_a_caller_who_is_no_member(
    run: Run, party: Party, said: bytes, loop: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with party(3, "tcp") as (alice, bob, _cathy):
            host, port = bob.carrier.place  # type: ignore[attr-defined]
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(said)
            await hung_up(reader)
            writer.close()
            assert bob.carrier.counts["refused"] == 1
            alice.post(b"still here")
            assert await texts(bob, 1) == ["still here"]

    run(main(), loop=loop)
    assert "a TCP connection was closed: " in caplog.text


def test_a_caller_who_says_nothing_or_half_of_it(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2, "tcp") as (alice, bob):
            host, port = bob.carrier.place  # type: ignore[attr-defined]
            for said in (b"", b"\0\0", frame(HELLO)[:6]):
                _, writer = await asyncio.open_connection(host, port)
                writer.write(said)
                await writer.drain()
                alice.post(b"x")
                assert await texts(bob, 1) == ["x"]
                writer.close()

    run(main())


@pytest.mark.parametrize("loop", LOOPS)
def test_a_frame_too_large_ends_the_connection_and_not_the_talk(run: Run, party: Party, loop: str) -> None:
    async def main() -> None:
        async with party(2, "tcp") as (alice, bob):
            carrier: Any = alice.carrier
            bobs: Any = bob.carrier
            before = carrier.connections[bobs.place]
            before._transport.write(struct.pack(">I", FRAME_MAX + 1) + bytes(1000))
            alice.post(b"behind it")
            assert await texts(bob, 1) == ["behind it"]
            assert bob.carrier.counts["refused"] == 1
            assert carrier.connections[bobs.place] is not before

    run(main(), loop=loop)


def test_rubbish_in_frames_is_counted(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(3, "tcp") as (alice, bob, _):
            carrier: Any = alice.carrier
            rubbish = nonsense(Random(5), [alice, bob])
            for _ in range(200):
                carrier.connections[bob.carrier.place].write(next(rubbish))  # type: ignore[attr-defined]
            alice.post(b"and this")
            assert await texts(bob, 1) == ["and this"]
            assert set(bob.stack.rejected) >= REASONS and bob.carrier.counts["refused"] == 0

    run(main())


@pytest.mark.parametrize("via", ["udp", "unicast"])
def test_the_application_is_told_what_was_dropped_by_reason(
    run: Run, place: Place, group_name: str, via: str
) -> None:
    told: list[dict[str, int]] = []

    async def scenario() -> None:
        where = place(via)
        async with inga.join(
            group_name, "alice", on_forged=lambda counts: told.append(dict(counts)), **where
        ) as alice:
            target = (
                ("239.7.7.7", int(where["via"].rpartition(":")[2]))
                if via == "udp"
                else parse_host_port(where["members"]["alice"], "alice")
            )
            (hello, *_) = datagrams_of("dinner")
            with stranger() as sock:
                for data, count in ((b"in", 5), (bytes(40), 3), (hello, 2), (hello[:-1] + b"?", 4)):
                    for _ in range(count):
                        sock.sendto(data, target)
                await until(lambda: sum(alice.rejected.values()) >= 14)
                await until(lambda: bool(told) and sum(told[-1].values()) >= 14)
            assert told[-1] == alice.rejected == {"truncated": 5, "foreign": 3, "group": 2, "check": 4}

    run(scenario())


def test_a_frame_larger_than_the_buffer(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2, "tcp") as (alice, bob):
            carriers: list[Any] = [alice.carrier, bob.carrier]
            to_bob = carriers[0].connections[carriers[1].place]
            to_bob.write(b"in" + bytes(FRAME_MAX - 2))
            to_bob.write([b"in", bytes(FRAME_MAX - 2)])
            alice.post(b"and this")
            assert await texts(bob, 1) == ["and this"]
            assert bob.carrier.counts["refused"] == 0 and bob.stack.rejected["version"] == 2

    run(main())


@pytest.mark.parametrize("loop", LOOPS)
def test_connections_cut_while_members_talk(run: Run, party: Party, loop: str) -> None:
    """By either side, in the middle of a frame: they come back, and nothing is lost."""
    workload = Workload(members=3, messages=500, size=2000)

    async def main() -> Any:
        async with party(3, "tcp") as groups:
            playing = asyncio.create_task(play(groups, workload))
            cuts = 0
            for number in range(6):
                await asyncio.sleep(0.01)
                carrier: Any = groups[number % 3].carrier
                for connection in list(carrier.connections.values()):
                    connection._transport.write(struct.pack(">I", 1000) + b"half a frame")
                    connection._transport.abort()
                    cuts += 1
            assert cuts
            diaries = await playing
            carriers: list[Any] = [group.carrier for group in groups]
            await until(lambda: all(len(carrier.connections) == 2 for carrier in carriers))
            return diaries

    assert judged(run(main(), loop=loop), workload) == {}


def greeting(place: tuple[str, int]) -> bytes:
    """What a member says first that listens there."""
    return frame(HELLO + "{}:{}".format(*place).encode())


@pytest.mark.parametrize("loop", LOOPS)
def test_an_impostor_does_not_take_the_place_of_a_member(run: Run, party: Party, loop: str) -> None:
    """Nothing is signed, so it can greet as alice; as long as alice is connected that brings it nothing."""

    async def main() -> None:
        async with party(2, "tcp") as (alice, bob):
            carrier: Any = bob.carrier
            place = alice.carrier.place  # type: ignore[attr-defined]
            alices = carrier.connections[place]
            calls = [await asyncio.open_connection(*carrier.place) for _ in range(DOUBLES_MAX + 1)]
            for _, writer in calls:
                writer.write(greeting(place))
            await until(lambda: carrier.counts["refused"] == 2)  # too many of them; the latest are there
            assert carrier.connections[place] is alices
            bob.post(b"to alice")
            assert await texts(alice, 1) == ["to alice"]
            alices._transport.abort()
            await until(lambda: carrier.connections[place] is not alices)
            for reader, writer in calls:
                writer.close()
                while await reader.read(1 << 16):
                    pass
            bob.post(b"once more")
            assert await texts(alice, 1) == ["once more"]

    run(main(), loop=loop)


@pytest.mark.parametrize("loop", LOOPS)
def test_an_impostor_does_not_take_the_place_of_a_member_that_comes_back(
    run: Run, party: Party, loop: str
) -> None:
    """In a secured group: it is there before her, and stays there."""

    async def main() -> None:
        async with party(2, "tcp", secret=Secret(bytes(range(32)))) as (alice, bob):
            carrier: Any = bob.carrier
            place = alice.carrier.place  # type: ignore[attr-defined]
            calls = [await asyncio.open_connection(*carrier.place) for _ in range(DOUBLES_MAX - 1)]
            for _, writer in calls:
                writer.write(greeting(place))
            await until(lambda: [each.place for each in carrier._all].count(place) == DOUBLES_MAX)
            for _ in range(2):
                alices = carrier.connections[place]
                alices._transport.abort()
                await until(lambda: carrier.connections.get(place) not in (alices, None))  # noqa: B023
                alice.post(b"I am back")
                assert await texts(bob, 1) == ["I am back"]
                await until(
                    lambda: carrier.connections[place].is_proven
                )  # and the others get nothing any more
                bob.post(b"to alice")
                assert await texts(alice, 1) == ["to alice"]
            for _, writer in calls:
                writer.close()

    run(main(), loop=loop)


@pytest.mark.parametrize("loop", LOOPS)
def test_an_impostor_that_is_there_first_does_not_keep_a_member_out(
    run: Run, place: Place, group_name: str, loop: str
) -> None:
    where, secret = place("tcp", 2), Secret(bytes(range(32)))

    async def main() -> None:
        async with inga.join(group_name, "bob", secret=secret, **where) as bob:
            carrier: Any = bob.carrier
            members = carrier._members
            (alices,) = [each for each in members if each != carrier.place]
            calls = [await asyncio.open_connection(*carrier.place) for _ in range(2)]
            for _, writer in calls:
                writer.write(greeting(alices))
            await until(lambda: alices in carrier.connections)
            async with inga.join(group_name, "alice", secret=secret, **where) as alice:
                await asyncio.gather(alice.ready(), bob.ready())
                bob.post(b"to alice")
                assert await texts(alice, 1) == ["to alice"]
            for _, writer in calls:
                writer.close()

    run(main(), loop=loop)


@pytest.mark.parametrize("loop", LOOPS)
def test_who_claims_many_hosts_has_the_share_of_one(run: Run, free_port: FreePort, loop: str) -> None:
    """What is shared out goes by the host that calls, and what is answered by the place that it says."""
    count, most = 20, 64.0
    places = [(f"10.0.0.{number}", 80) for number in range(count)]

    async def main() -> None:
        carrier, heard = TcpCarrier(0, [f"127.0.0.1:{free_port()}"], Hosts()), list[Any]()
        await carrier.open(lambda burst: heard.extend(address for _, address in burst))
        calls = [await asyncio.open_connection(*carrier.place) for _ in places]
        for place, (_, writer) in zip(places, calls, strict=True):
            writer.write(greeting(place) + frame(b"knock"))
        await until(lambda: len(heard) == count)
        assert {*heard} == {*places} == {*carrier.connections}
        turns = FairSupply(0.0, most)
        while not turns.is_busy(0.0):
            turns.take("somebody:1", 0.0)
        assert sum(turns.take(address, 0.0) for address in heard) == most / SHARE
        assert not turns.take(("127.0.0.1", 1), 0.0) and turns.take(places[0], 0.0)
        for _, writer in calls:
            writer.close()
        carrier.close()

    run(main(), loop=loop)


@pytest.mark.parametrize("loop", LOOPS)
def test_callers_that_do_not_greet_make_room(run: Run, party: Party, loop: str) -> None:
    """They cost little, and none of them keeps a member out."""

    async def main() -> None:
        async with party(2, "tcp") as (alice, bob):
            carrier: Any = bob.carrier
            calls = [await asyncio.open_connection(*carrier.place) for _ in range(STRANGERS_OF_HOST_MAX + 3)]
            await until(lambda: carrier.counts["refused"] == 3)
            for reader, _ in calls[:3]:
                await hung_up(reader)
            strangers = [each for each in carrier._all if each.place is None]
            assert len(strangers) == STRANGERS_OF_HOST_MAX
            assert sum(len(each._buffer) for each in strangers) < 64 * 512
            carrier.connections[alice.carrier.place]._transport.abort()  # type: ignore[attr-defined]
            alice.post(b"back again")
            assert await texts(bob, 1) == ["back again"]
            for _, writer in calls:
                writer.close()

    run(main(), loop=loop)


def test_a_caller_that_does_not_greet_in_time(
    run: Run, party: Party, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tcp, "GREETED_WITHIN", 0.05)

    async def main() -> None:
        async with party(2, "tcp") as (alice, bob):
            reader, writer = await asyncio.open_connection(*bob.carrier.place)  # type: ignore[attr-defined]
            writer.write(greeting(("127.0.0.1", 9))[:-1])
            await hung_up(reader)
            writer.close()
            alice.post(b"x")
            assert await texts(bob, 1) == ["x"] and bob.carrier.counts["refused"] == 1

    run(main())


@pytest.mark.parametrize("loop", LOOPS)
def test_memory_grows_with_what_was_sent_and_turns_end(run: Run, party: Party, loop: str) -> None:
    """A stranger that announces much gets no memory for it, and one that says much in little frames gets no longer turns."""

    async def main() -> None:
        async with party(2, "tcp") as (_alice, bob):
            carrier: Any = bob.carrier
            calls = []
            for number in range(OUTSIDERS_MAX + 1):
                place = ("127.0.0.1", 20_000 + number)
                calls.append(await asyncio.open_connection(*carrier.place))
                calls[-1][1].write(greeting(place) + struct.pack(">I", FRAME_MAX))
                await until(lambda place=place: place in carrier.connections)
            assert carrier.counts["refused"] == 1
            outsiders = [each for each in carrier._all if each.place not in carrier._members]
            assert len(outsiders) == OUTSIDERS_MAX
            assert sum(len(each._buffer) for each in outsiders) <= OUTSIDERS_MAX * BUFFER_MIN
            turns: list[int] = []
            outsiders[-1]._deliver = lambda burst: turns.append(len(burst))
            calls[-1][1].write(bytes(FRAME_MAX) + struct.pack(">I", 0) * 10_000)
            await until(lambda: sum(turns) == 10_001)
            assert max(turns) <= FRAMES_TURN
            calls[-1][1].write(struct.pack(">I", 0))
            await until(lambda: sum(turns) == 10_002)  # who had its turn is read again afterwards
            for _, writer in calls:
                writer.close()

    run(main(), loop=loop)


def test_after_a_good_connection_it_is_called_again_at_once(
    run: Run, place: Place, group_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often that has broken, as long as each lasted for a while."""
    pauses: list[float] = []

    class Kept(Backoff):
        def next(self, rng: Any) -> float:
            pauses.append(super().next(rng))
            return 0.0

    monkeypatch.setattr(tcp, "Backoff", Kept)
    where = place("tcp", 2)

    async def main() -> None:
        def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            skip(RECONNECT_MAX + 1)
            writer.close()

        host, port = where["members"]["bob"].split(":")
        server = await asyncio.start_server(hang_up, host, int(port))
        async with inga.join(group_name, "alice", **where, detect=None):
            await until(lambda: len(pauses) >= 6)
        server.close()
        assert max(pauses) < 2 * RECONNECT

    run(main())


@pytest.mark.parametrize("secret", [None, Secret(bytes(range(32)))], ids=["plain", "secured"])
def test_a_flood_over_a_connection_that_was_greeted(run: Run, party: Party, secret: Secret | None) -> None:
    """In the name of a member and of nobody: all of it is counted, and members hear each other meanwhile."""
    count = 5_000

    async def main() -> None:
        async with party(2, "tcp", **({} if secret is None else {"secret": secret})) as (alice, bob):
            sealed = (b"iS" if secret is None else b"in") + bytes(60)
            before = sum(bob.rejected.values())
            writers = []
            for place in (alice.carrier.place, ("127.0.0.1", 9)):  # type: ignore[attr-defined]
                _, writer = await asyncio.open_connection(*bob.carrier.place)  # type: ignore[attr-defined]
                writer.write(greeting(place) + frame(sealed) * count)
                writers.append(writer)
            for number in range(20):
                alice.post(b"%d" % number)
            assert await texts(bob, 20) == [str(number) for number in range(20)]
            await until(lambda: sum(bob.rejected.values()) - before >= 2 * count)
            bob.post(b"and back")
            assert await texts(alice, 1) == ["and back"]
            for writer in writers:
                writer.close()

    run(main())


def test_calls_that_are_hung_up_are_not_repeated_without_pause(
    run: Run, place: Place, group_name: str
) -> None:
    where = place("tcp", 2)

    async def main() -> None:
        calls = 0

        def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal calls
            calls += 1
            writer.close()

        host, port = where["members"]["bob"].split(":")
        server = await asyncio.start_server(hang_up, host, int(port))
        async with inga.join(group_name, "alice", **where):
            await until(lambda: calls)
            await asyncio.sleep(5 * RECONNECT)
        server.close()
        assert calls <= 5

    run(main())


def test_places_that_strangers_name_are_called_up_to_a_bound(run: Run, free_port: FreePort) -> None:
    """At the bound all of them are called; of one more, the first that does not answer is given up, and no member is."""

    async def main() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()

        ports = [free_port() for _ in range(3)]
        me, member, friend = (("127.0.0.1", port) for port in sorted(ports))
        server = await asyncio.start_server(answer, *friend)
        carrier = TcpCarrier(0, [f"{host}:{port}" for host, port in (me, member)], Hosts())
        await carrier.open(lambda _: None)
        places = [friend, *((f"127.9.{number >> 8}.{number & 255}", 9) for number in range(CALLED_MAX))]

        def call(place: tuple[str, int]) -> None:
            carrier.transmit(Outsider(f"{place[0]}:{place[1]}"), b"part")

        call(friend)
        await until(lambda: friend in carrier.connections)
        for place in places[1:CALLED_MAX]:
            call(place)
        assert [*carrier._connectors] == [member, *places[:CALLED_MAX]]
        call(places[CALLED_MAX])
        assert [*carrier._connectors] == [member, friend, *places[2:]]
        assert friend in carrier.connections
        carrier.close()
        server.close()

    run(main())


@pytest.mark.parametrize("loop", LOOPS)
def test_a_call_is_hung_up_though_another_was_used(run: Run, free_port: FreePort, loop: str) -> None:
    """In a secured group what is for one goes over the connection over which it spoke, whoever has called whom. Once nobody
    is to be there any more, no connection is left."""

    async def main() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()

        me, friend = (("127.0.0.1", free_port()) for _ in range(2))
        server = await asyncio.start_server(answer, *friend)
        carrier = TcpCarrier(0, [f"{host}:{port}" for host, port in (me,)], Hosts())
        await carrier.open(lambda _: None)
        carrier.transmit(Outsider(f"{friend[0]}:{friend[1]}"), b"part")
        await until(lambda: friend in carrier.connections)
        _, writer = await asyncio.open_connection(*me)
        writer.write(greeting(friend))
        await until(lambda: len(carrier._all) == 2 and all(each.place for each in carrier._all))
        carrier.proved([*carrier._all][-1])
        carrier.knows(0, carrier._places)
        await until(lambda: not carrier._all)
        carrier.close()
        server.close()
        writer.close()

    run(main(), loop=loop)


def test_whoever_comes_late_is_called_until_it_is_there(run: Run, place: Place, group_name: str) -> None:
    where = place("tcp", 2)

    async def main() -> None:
        async with inga.join(group_name, "alice", **where) as alice:
            await alice.send_many([b"1", b"2"])
            await until(lambda: alice.carrier.counts["unconnected"])
            async with inga.join(group_name, "bob", **where) as bob:
                heard = await take(aiter(bob), 2)
                assert [text(d) for d in heard] == ["1", "2"]

    run(main())


def test_a_reader_that_hangs_costs_a_bounded_queue(run: Run, place: Place, group_name: str) -> None:
    """A connection nobody reads from: beyond a bound frames are dropped, to be repaired."""
    where = place("tcp", 2)

    async def main() -> None:
        holding = asyncio.Event()

        async def never_read(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await holding.wait()
            writer.close()

        host, port = where["members"]["bob"].split(":")
        server = await asyncio.start_server(never_read, host, int(port), limit=1)
        async with inga.join(group_name, "alice", **where) as alice:
            carrier: Any = alice.carrier
            await until(lambda: carrier.connections)
            while not carrier.counts["dropped"]:
                carrier.transmit(None, bytes(60_000))
                await asyncio.sleep(0)
            (to_bob,) = carrier.connections.values()
            assert to_bob._transport.get_write_buffer_size() < 2 << 20
            to_bob._transport.abort()
            holding.set()
        server.close()

    run(main())
