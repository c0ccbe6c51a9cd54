"""Whatever comes to an IIOP port: it is refused, bounded and counted, and others are served meanwhile."""

import asyncio
import os
import resource
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Any

import pytest

from inga.corba.broker.idl import Long, SystemException, interface, oneway
from inga.corba.orb.iiop import Limits
from inga.corba.orb.orb import Orb, within
from inga.corba.wire import giop
from inga.corba.wire.giop import KeyAddr, LocateRequest, Request

from ...net.helpers import LOOPS, SECONDS, Run, skip, until

pytestmark = pytest.mark.network

HUGE = giop.MAGIC + bytes((1, 2, 0, 0)) + b"\xff\xff\xff\xff"


@interface("IDL:test/Desk:1.0")
class Desk:
    def __init__(self) -> None:
        self.begun = 0
        self.notes = 0
        self.gate = asyncio.Event()

    def add(self, values: list[Long]) -> Long:
        return sum(values)

    def large(self, size: Long) -> bytes:
        return bytes(size)

    @oneway
    def note(self) -> None:
        self.notes += 1

    async def wait(self, number: Long) -> Long:
        self.begun += 1
        await self.gate.wait()
        return number


def request(name: str, write: Callable[[Any], None] | None = None, number: int = 1) -> bytes:
    return giop.encode(Request(number, KeyAddr(b"desk"), name), write)


HALF = request("large", lambda out: out.raw(bytes(60_000)))[:50_000]
WHOLE = request("add", lambda out: None)


class Enemy:
    """A connection that does not keep to the rules."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        with suppress(ConnectionError):  # already refused
            await self.writer.drain()

    async def rest(self) -> bytes:
        """What it gets until the server ends the connection."""
        heard = b""
        try:
            while data := await self.reader.read(1 << 16):
                heard += data
        except ConnectionError:
            pass
        return heard

    async def close(self) -> None:
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()


class Scene:
    """A server with one object, somebody who uses it properly, and others who do not."""

    def __init__(self, orb: Orb, client: Orb, desk: Desk) -> None:
        self.orb, self.client, self.desk = orb, client, desk
        self.server = orb.server
        self.proxy: Any = client.proxy(Desk, orb.activate(desk, "desk"))
        self.enemies: list[Enemy] = []

    async def enemy(self, data: bytes = b"") -> Enemy:
        made = Enemy(*await asyncio.open_connection("127.0.0.1", self.orb.port))
        self.enemies.append(made)
        if data:
            await made.say(data)
        return made

    async def goes_on(self) -> None:
        """Others are served."""
        assert await self.proxy.add([1, 2]) == 3


@asynccontextmanager
async def scene(**limits: Any) -> AsyncIterator[Scene]:
    async with Orb(limits=Limits(**limits)) as orb, Orb() as client:
        made = Scene(orb, client, Desk())
        await made.goes_on()
        yield made
        await made.goes_on()
        for enemy in made.enemies:
            await enemy.close()


def is_message_error(data: bytes) -> bool:
    return data == giop.encode(giop.MessageError())


def is_refused(data: bytes) -> bool:
    """Who is still sending when the connection is closed may not hear why."""
    return not data or is_message_error(data)


async def failure(enemy: Enemy) -> str:
    """The exception in the reply that comes next."""
    head = await enemy.reader.readexactly(giop.HEADER_SIZE)
    reply = giop.decode(head + await enemy.reader.readexactly(giop.read_header(head).size))
    return giop.get_failure(reply.body).exception_id


@pytest.mark.parametrize("loop", LOOPS)
def test_octets_that_are_no_giop(run: Run, loop: str) -> None:
    async def main() -> None:
        random = Random(1)
        async with scene() as it:
            for number in range(100):
                await it.enemy(random.randbytes(1 + number * 20))
            for enemy in it.enemies:
                assert is_message_error(await enemy.rest())
            await it.goes_on()
            assert it.server.counts == {"bad_magic": 100}
            await until(lambda: len(it.server.connections) == 1)
            assert it.server.buffered == 0

    run(main(), loop=loop)


def test_lengths_that_nobody_has_memory_for(run: Run) -> None:
    async def main() -> None:
        async with scene(message_max=100_000) as it:
            assert is_message_error(await (await it.enemy(HUGE)).rest())
            assert is_refused(await (await it.enemy(HUGE + bytes(100_000))).rest())
            enemy = await it.enemy(request("large", lambda out: out.raw(bytes(100_000))))
            assert await failure(enemy) == "IDL:omg.org/CORBA/IMP_LIMIT:1.0"
            assert it.server.counts == {"too_large": 3}
            assert it.server.buffered == 0
            enemy = await it.enemy(
                request("add", lambda out: out.ulong(0xFFFFFFFF))
            )  # so many elements, it says
            assert await failure(enemy) == "IDL:omg.org/CORBA/MARSHAL:1.0"
            for head in (b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff"):  # the key, the operation
                data = bytearray(WHOLE)
                data[24:28] = head
                assert is_message_error(await (await it.enemy(bytes(data))).rest())
            assert it.server.counts["truncated"] == 2

    run(main())


def test_messages_changed_at_random(run: Run) -> None:
    """Each gives an answer, or an error and the end of its connection; none has any other effect."""

    async def main() -> None:
        random = Random(7)
        valid = [
            WHOLE,
            giop.encode(LocateRequest(1, KeyAddr(b"desk"))),
            giop.fragments(request("add", lambda out: None), 64)[0],
        ]
        async with scene() as it:
            for _ in range(150):
                data = bytearray(random.choice(valid))
                for _ in range(random.randint(1, 3)):
                    data[random.randrange(len(data))] = random.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
                enemy = await it.enemy(bytes(data))
                enemy.writer.write_eof()
            for enemy in it.enemies:
                await enemy.rest()
            await it.goes_on()
            assert set(it.server.counts) <= {
                "bad_magic", "bad_version", "bad_target", "malformed", "too_large", "truncated", "bad_length", "not_understood"
            }  # fmt: skip

    run(main())


def test_slow_senders_and_half_messages(run: Run) -> None:
    async def main() -> None:
        async with scene() as it:
            halves = [await it.enemy(data) for data in (b"GI", HALF[:11], HALF[:40], HALF)]
            silent = await it.enemy()
            patient = await it.enemy(WHOLE)  # between two messages one may wait
            await until(lambda: it.server.buffered == 2 + 11 + 40 + len(HALF))
            skip(9.0)
            await it.goes_on()
            assert not silent.reader.at_eof()
            skip(11.0)
            await until(lambda: it.server.counts["late"] == 1)
            assert await silent.rest() == b""  # a first word is not waited for that long
            await halves[2].say(HALF[40:41])  # one octet more is no new beginning
            await it.goes_on()
            skip(20.0)
            await until(lambda: it.server.counts["late"] == 5)
            for enemy in halves:
                assert await enemy.rest() == b""
            assert it.server.buffered == 0
            await patient.say(WHOLE)
            assert (await patient.reader.readexactly(12))[:4] == giop.MAGIC

    run(main())


def test_replies_that_nobody_reads(run: Run) -> None:
    async def main() -> None:
        async with scene(write_buffer=1 << 16) as it:
            enemy = await it.enemy()
            ask = request("large", lambda out: out.long(500_000))
            await enemy.say(100 * ask)  # fifty megabytes, if all were answered
            await until(lambda: any(each.blocked is not None for each in it.server.connections))
            (serving,) = (each for each in it.server.connections if each.blocked is not None)
            assert serving.transport is not None
            assert serving.transport.get_write_buffer_size() <= 500_000 + (1 << 16) + 100
            assert 0 < serving.buffered <= 100 * len(ask)
            await it.goes_on()
            skip(31.0)
            await until(lambda: it.server.counts["late"] == 1)

    run(main())


def test_a_slow_reader_gets_everything(run: Run) -> None:
    async def main() -> None:
        async with scene(write_buffer=1 << 16) as it:
            enemy = await it.enemy(40 * request("large", lambda out: out.long(300_000)))
            await until(lambda: any(each.blocked is not None for each in it.server.connections))
            for _ in range(40):
                head = await enemy.reader.readexactly(giop.HEADER_SIZE)
                await enemy.reader.readexactly(giop.read_header(head).size)
            assert it.server.counts == {}

    run(main())


@pytest.fixture
def many_files() -> Iterator[None]:
    """Both ends of many connections are in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2500:
        pytest.skip("this process may not open enough files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2500), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
@pytest.mark.parametrize("loop", LOOPS)
def test_a_thousand_connections(run: Run, loop: str) -> None:
    async def main() -> None:
        async with scene(connections_max=100) as it:
            for number in range(1000):
                await it.enemy((b"", HALF[:100], WHOLE)[number % 3])
                if number % 50 == 0:
                    await it.goes_on()
            await it.goes_on()
            assert len(it.server.connections) <= 100
            assert it.server.counts["displaced"] >= 900
            assert it.server.counts["refused"] == 0

    run(main(), loop=loop)


def test_no_room_among_those_that_are_served(run: Run) -> None:
    async def main() -> None:
        async with scene(connections_max=5) as it:
            wait = request("wait", lambda out: out.long(1))
            busy = [await it.enemy(wait) for _ in range(4)]
            await until(lambda: it.desk.begun == 4)
            first = asyncio.ensure_future(it.proxy.wait(7))
            await until(lambda: it.desk.begun == 5)
            late = await it.enemy(WHOLE)
            assert await late.rest() == b""
            assert it.server.counts["refused"] == 1
            it.desk.gate.set()
            assert await first == 7
            for enemy in busy:
                assert (await enemy.reader.readexactly(4)) == giop.MAGIC

    run(main())


def test_what_is_buffered_is_bounded(run: Run) -> None:
    async def main() -> None:
        async with scene(buffered_max=500_000) as it:
            most = 0
            account = it.server.account

            def watched(connection: Any) -> None:
                nonlocal most
                account(connection)
                most = max(most, it.server.buffered)

            it.server.account = watched  # type: ignore[method-assign]
            for number in range(60):
                await it.enemy(HALF)
                if number % 10 == 0:
                    await it.goes_on()
            await until(lambda: it.server.counts["crowded_out"] == 50)
            assert 400_000 < most <= 500_000
            assert it.server.buffered == sum(each.buffered for each in it.server.connections)

    run(main())


def test_requests_under_way_are_bounded(run: Run) -> None:
    async def main() -> None:
        async with scene(requests_max=5, running_max=8) as it:
            wait = [request("wait", lambda out: out.long(1), number) for number in range(20)]
            first, second = await it.enemy(b"".join(wait)), None
            await until(lambda: it.desk.begun == 5)
            await it.goes_on()
            assert it.desk.begun == 5  # the others wait their turn
            second = await it.enemy(b"".join(wait[:5]))
            await until(lambda: it.desk.begun == 8)
            third = asyncio.ensure_future(it.proxy.wait(9))  # the first of its connection, whatever others do
            await until(lambda: it.desk.begun == 9)
            with pytest.raises(SystemException, match="TRANSIENT: too many requests") as caught:
                await it.proxy.wait(1)
            assert caught.value.completed == "no"
            it.desk.gate.set()
            assert await third == 9
            for enemy, replies in ((first, 20), (second, 5)):
                numbers = []
                for _ in range(replies):
                    head = await enemy.reader.readexactly(giop.HEADER_SIZE)
                    reply = giop.decode(head + await enemy.reader.readexactly(giop.read_header(head).size))
                    numbers.append(reply.message.request_id)  # type: ignore[union-attr]
                assert sorted(numbers) == list(range(replies))

    run(main())


def test_no_more_is_read_than_there_are_turns_for(run: Run) -> None:
    async def main() -> None:
        enemies, read_at_once, most = 60, 1 << 18, 0
        async with scene() as it:
            for _ in range(enemies):
                await it.enemy()
            for enemy in it.enemies:
                enemy.writer.write(
                    40_000 * giop.encode(LocateRequest(1, KeyAddr(b"desk")))
                )  # a megabyte and more
            for _ in range(15):
                await it.goes_on()
                most = max(most, *(each.buffered for each in it.server.connections))
            assert 0 < most < read_at_once + 1000
            for enemy in it.enemies:
                enemy.writer.transport.abort()

    run(main())


def test_no_more_is_read_than_can_be_begun(run: Run) -> None:
    async def main() -> None:
        async with scene(requests_max=5) as it:
            enemy = await it.enemy()
            enemy.writer.write(200_000 * request("wait", lambda out: out.long(1)))  # twelve megabytes
            await until(lambda: it.desk.begun == 5)
            for _ in range(100):  # in each of which a quarter of a megabyte could be read
                await it.goes_on()
            assert it.desk.begun == 5
            assert it.server.buffered < 1 << 20
            enemy.writer.transport.abort()  # it would wait for the rest to be read

    run(main())


def test_fragments_that_never_end(run: Run) -> None:
    async def main() -> None:
        async with scene(message_max=20_000) as it:
            piece = giop.encode(giop.GiopFragment(1), bytes(1000), more=True)
            begin = giop.encode(Request(1, KeyAddr(b"desk"), "large"), bytes(104), more=True)
            endless = await it.enemy(begin + 30 * piece)
            assert await failure(endless) == "IDL:omg.org/CORBA/IMP_LIMIT:1.0"
            await endless.say(1000 * piece + giop.encode(giop.CloseConnection()))
            assert await endless.rest() == b"", "it was told once"
            assert it.server.buffered == 0
            many = [
                giop.encode(Request(n, KeyAddr(b"desk"), "large"), bytes(104), more=True) for n in range(9)
            ]
            assert is_refused(await (await it.enemy(b"".join(many))).rest())
            assert it.server.counts == {"too_large": 1, "malformed": 1}

    run(main())


def test_nobody_waits_for_all_that_others_have_sent(run: Run) -> None:
    """Two hundred clients send questions without a pause. Whoever asks once waits for about one of each of them."""

    async def main() -> None:
        enemies, locates = 200, 0
        async with scene() as it:
            locate = it.orb.broker.locate

            def counted(decoded: Any) -> bytes:
                nonlocal locates
                locates += 1
                return locate(decoded)

            it.orb.broker.locate = counted  # type: ignore[method-assign]
            question = giop.encode(LocateRequest(1, KeyAddr(b"desk")))
            for _ in range(enemies):
                await it.enemy()
            await until(lambda: len(it.server.connections) == enemies + 1)
            for enemy in it.enemies:
                enemy.writer.write(80 * question)  # all at the same moment
            for _ in range(5):
                before = locates
                await it.goes_on()
                assert locates - before < 3 * enemies
            assert 0 < locates < 40 * enemies, "they were still at it"
            for enemy in it.enemies:
                enemy.writer.transport.abort()

    run(main())


def test_oneway_requests_of_somebody_who_is_gone(run: Run) -> None:
    async def main() -> None:
        async with scene() as it:
            note = giop.encode(Request(1, KeyAddr(b"desk"), "note", 0))
            enemy = await it.enemy()
            enemy.writer.write(500 * note)
            await enemy.close()
            await until(lambda: it.desk.notes == 500)
            await until(lambda: len(it.server.connections) == 1)
            assert it.server.buffered == 0

    run(main())


def test_idle_connections_end_in_good_order(run: Run) -> None:
    async def main() -> None:
        async with scene() as it:
            assert it.client.client.connections == 1
            idle = await it.enemy(giop.encode(LocateRequest(1, KeyAddr(b"desk"))))
            await idle.reader.readexactly(giop.HEADER_SIZE + 8)
            waiting = asyncio.ensure_future(within(it.proxy, 1000.0).wait(5))
            await until(lambda: it.desk.begun == 1)
            skip(181.0)
            await until(lambda: it.server.counts == {"idle": 1})
            assert await idle.rest() == giop.encode(giop.CloseConnection())
            it.desk.gate.set()
            assert await waiting == 5  # a connection that waits for an answer is not idle
            skip(181.0)
            await until(lambda: it.server.counts == {"idle": 2})
            await until(lambda: it.client.client.connections == 0)

    run(main())


def test_one_host_has_a_part_of_the_connections(run: Run) -> None:
    async def main() -> None:
        async with scene(connections_max=20, host_connections_max=4) as it:
            wait = request("wait", lambda out: out.long(1))
            for _ in range(3):
                await it.enemy(wait)
            await until(lambda: it.desk.begun == 3)
            await it.enemy(WHOLE)  # in the place of the one that is idle: the client's
            await until(lambda: it.server.counts == {"displaced": 1})
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", it.orb.port, local_addr=("127.0.0.2", 0)
            )
            writer.write(WHOLE)
            assert await reader.readexactly(4) == giop.MAGIC  # from elsewhere there is room
            writer.close()
            assert it.server.counts == {"displaced": 1}
            it.desk.gate.set()

    run(main())


SERVE = """
import asyncio, sys
from inga.corba.orb.iiop import Limits
from inga.corba.orb.lookup import serve_names
from inga.corba.orb.orb import Orb

async def main():
    async with Orb(limits=Limits(buffered_max=8 << 20)) as orb:
        serve_names(orb)
        print(orb.port, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)

asyncio.run(main())
"""


@pytest.mark.skipif(
    not os.path.exists("/proc/self/status"), reason="reads the memory of a process from /proc"
)
def test_the_memory_of_a_server_under_attack(run: Run) -> None:
    """Half messages of a hundred megabytes, all at the same time, to a server that may keep eight."""

    def peak(pid: int) -> int:
        with open(f"/proc/{pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

    async def attack(port: int) -> None:
        half = request("resolve", lambda out: out.raw(bytes(1_000_000)))[:250_000]
        enemies: list[Enemy] = []
        for _ in range(10):
            opened = await asyncio.gather(*(asyncio.open_connection("127.0.0.1", port) for _ in range(40)))
            enemies += [Enemy(*each) for each in opened]
            await asyncio.gather(*(enemy.say(half) for enemy in enemies[-40:]))
            await answers(port)
        for enemy in enemies:
            await enemy.close()

    async def answers(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(giop.encode(LocateRequest(1, KeyAddr(b"NameService"))))
        head = await reader.readexactly(giop.HEADER_SIZE)
        reply = giop.decode(head + await reader.readexactly(giop.read_header(head).size))
        assert reply.message == giop.LocateReply(1)
        writer.close()
        await writer.wait_closed()

    server = subprocess.Popen(
        [sys.executable, "-c", SERVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        run(answers(port))
        before = peak(server.pid)
        run(attack(port))
        run(answers(port))
        grown = peak(server.pid) - before
        # Python and its allocator take more than the octets themselves; a hundred would be no bound at all.
        assert grown < (8 + 32) << 10, f"{grown} KiB"
    finally:
        server.communicate(timeout=SECONDS)
    assert server.returncode == 0
