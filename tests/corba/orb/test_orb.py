"""Objects over IIOP in one process: proxies, deadlines, connections that are shared, closed, refused, broken."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from inga.corba.broker.dispatch import ForwardRequest
from inga.corba.broker.idl import Long, SystemException, interface, oneway
from inga.corba.broker.naming import BindingIterator, NamingContextExt, NotFound, to_name
from inga.corba.orb.iiop import Client, Endpoint, Limits
from inga.corba.orb.lookup import find, resolve, serve_names
from inga.corba.orb.orb import Orb, within
from inga.corba.wire import giop
from inga.corba.wire.framing import MESSAGE_MAX
from inga.corba.wire.giop import (
    CancelRequest,
    CloseConnection,
    KeyAddr,
    LocateReply,
    LocateRequest,
    Reply,
    Request,
)
from inga.corba.wire.reference import (
    MEMBER,
    Iiop,
    Reference,
    SecureTransport,
    encode_iiop,
    encode_secure,
    read,
    to_corbaloc,
    to_ior,
)
from inga.model.errors import UsageError

from ...net.helpers import LOOPS, FreePort, Run, skip, until
from .kitchen import Course, Kitchen, OurKitchen, Room, SoldOut

pytestmark = pytest.mark.network


@interface("IDL:test/Slow:1.0")
class Slow:
    """Operations that end when the test says so."""

    def __init__(self) -> None:
        self.begun = 0
        self.ended: list[str] = []
        self.gate = asyncio.Event()

    async def wait(self, name: str) -> str:
        self.begun += 1
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        self.ended.append(name)
        return name

    @oneway
    async def later(self, name: str) -> None:
        await self.gate.wait()
        self.ended.append(name)

    def quick(self, name: str) -> str:
        return name

    def large(self, size: Long) -> bytes:
        return bytes(size)

    def cancelled_at_once(self) -> None:
        raise asyncio.CancelledError

    async def cancelled(self, inside: bool) -> None:
        if inside:
            task = asyncio.ensure_future(self.gate.wait())
            task.cancel()
            await task
        raise asyncio.CancelledError

    def moved(self) -> Long:
        raise ForwardRequest(read("corbaloc::127.0.0.1:1/gone"))


class OtherSlow(Slow):
    def __init__(self, there: Reference) -> None:
        super().__init__()
        self.there = there

    def quick(self, name: str) -> str:
        raise ForwardRequest(self.there)


def proxy_of(orb: Orb, reference: Reference | str, **options: Any) -> Any:
    return orb.proxy(Slow, reference, **options)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_proxy_calls_a_servant(run: Run, loop: str, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with Orb() as server, Orb() as client:
            servant = OurKitchen()
            servant.reference = server.activate(servant)
            for where in (servant.reference, to_ior(servant.reference), to_corbaloc(servant.reference)):
                kitchen: Any = client.proxy(Kitchen, where)
                assert await kitchen.greet("Jörg λ 😀") == "Hello, Jörg λ 😀!"
                assert await kitchen.widen("λ😀") == "λ😀λ😀"
                assert await kitchen.divide(17, b=5) == (3, 2)
                assert [dish.name for dish in await kitchen.menu(Course.MAIN)] == ["stew"]
                assert await kitchen.total([]) == 0
                with pytest.raises(SoldOut, match=r"SoldOut\(dish='soup', left=3\)"):
                    await kitchen.order("soup", 4)
                with pytest.raises(SystemException, match="UNKNOWN: ZeroDivisionError"):
                    await kitchen.divide(1, 0)
                assert await kitchen.itself() == servant.reference
                await kitchen.note("x")
                assert await kitchen.notes() == ["x"]
                servant.said.clear()
            assert client.client.connections == 1
            assert len(server.server.connections) == 1
            assert await client.is_a(servant.reference, Room)
            assert not await client.is_a(servant.reference, Slow)
            room: Any = client.proxy(Room, servant.reference)
            assert await room.area() == 12.5
            with pytest.raises(AttributeError, match="has no method 'greet'"):
                room.greet("x")
            assert repr(room) == "<proxy of IDL:demo/Room:1.0>"

    with caplog.at_level(logging.CRITICAL, "inga"):
        run(main(), loop=loop)


def test_what_a_servant_did_not_mean_to_raise_is_logged(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with Orb() as orb:
            kitchen: Any = orb.proxy(Kitchen, orb.activate(OurKitchen()))
            with pytest.raises(SystemException):
                await kitchen.divide(1, 0)

    run(main())
    (record,) = caplog.records
    assert record.getMessage() == "Kitchen.divide failed"


def test_wrong_arguments_never_leave(run: Run) -> None:
    async def main() -> None:
        async with Orb() as orb:
            kitchen: Any = orb.proxy(Kitchen, "corbaloc::127.0.0.1:1/nobody")
            with pytest.raises(
                UsageError, match=r"Kitchen\.divide, parameter a: 'x' does not fit into a long"
            ):
                await kitchen.divide("x", 1)
            with pytest.raises(UsageError, match=r"Kitchen\.divide: missing a required argument: 'b'"):
                await kitchen.divide(1)
            with pytest.raises(UsageError, match="no reference"):
                orb.proxy(Kitchen, "file:///etc/passwd")

    run(main())


def test_requests_share_a_connection_and_replies_overtake(run: Run) -> None:
    async def main() -> None:
        async with Orb() as orb:
            servant = Slow()
            slow = proxy_of(orb, orb.activate(servant))
            waiting = [asyncio.ensure_future(slow.wait(str(number))) for number in range(20)]
            await until(lambda: servant.begun == 20)
            assert await slow.quick("me first") == "me first"
            assert not any(each.done() for each in waiting)
            servant.gate.set()
            assert await asyncio.gather(*waiting) == [str(number) for number in range(20)]
            assert orb.client.connections == 1

    run(main())


def test_a_deadline_ends_a_call_and_tells_the_server(run: Run) -> None:
    async def main() -> None:
        async with Orb() as orb:
            servant = Slow()
            slow = proxy_of(orb, orb.activate(servant), deadline=30.0)
            call = asyncio.ensure_future(slow.wait("never"))
            await until(lambda: servant.begun)
            skip(31.0)
            with pytest.raises(SystemException, match=r"TIMEOUT: Slow\.wait: no answer within 30 s"):
                await call
            await until(lambda: servant.ended == ["cancelled"])
            assert await slow.quick("still there") == "still there"
            again = asyncio.ensure_future(within(slow, 3.0).wait("never"))
            await until(lambda: servant.begun == 2)
            skip(4.0)
            with pytest.raises(SystemException, match="within 3 s"):
                await again

    run(main())


def test_a_deadline_of_nothing_is_not_the_default(run: Run) -> None:
    async def main() -> None:
        async with Orb() as orb, Orb(deadline=0) as hasty:
            servant = Slow()
            reference = orb.activate(servant)
            for proxy in (
                within(proxy_of(orb, reference), 0),
                proxy_of(orb, reference, deadline=0.0),
                proxy_of(hasty, reference),
            ):
                with pytest.raises(SystemException, match=r"TIMEOUT: Slow\.wait: no answer within 0 s"):
                    await proxy.wait("never")
            assert await within(proxy_of(hasty, reference), 30).quick("patient") == "patient"
            for wrong in (-1.0, float("nan"), "3"):
                with pytest.raises(UsageError, match="A deadline is a number of seconds"):
                    within(proxy_of(orb, reference), wrong)  # type: ignore[type-var]
                with pytest.raises(UsageError, match="A deadline is a number of seconds"):
                    Orb(deadline=wrong)  # type: ignore[arg-type]

    run(main())


@pytest.mark.parametrize("how", ["at once", "awaited", "inside"])
def test_a_servant_whose_own_work_is_cancelled_answers(
    run: Run, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Not the call was cancelled, but something in it: whoever waits is told."""

    async def main() -> None:
        async with Orb() as orb:
            slow = proxy_of(orb, orb.activate(Slow()))
            with pytest.raises(SystemException, match="UNKNOWN: CancelledError"):
                await (slow.cancelled_at_once() if how == "at once" else slow.cancelled(how == "inside"))
            assert await slow.quick("goes on") == "goes on"
            assert orb.client.connections == 1
            assert not orb.server.running
        assert "failed" in caplog.text

    run(main())


def test_a_oneway_request_is_carried_out_though_its_client_is_gone(run: Run) -> None:
    async def main() -> None:
        async with Orb() as server:
            servant = Slow()
            reference = server.activate(servant)
            async with Orb() as client:
                await proxy_of(client, reference).later("done")
                await until(lambda: server.server.running)
            await until(lambda: not server.server.connections)
            servant.gate.set()
            await until(lambda: servant.ended == ["done"])
            await until(lambda: not server.server.running)

    run(main())


def test_nobody_there(run: Run, free_port: FreePort) -> None:
    async def main() -> None:
        async with Orb() as orb:
            port = free_port()
            slow = proxy_of(orb, f"corbaloc::127.0.0.1:{port}/x")
            with pytest.raises(
                SystemException,
                match=rf"TRANSIENT: 127\.0\.0\.1:{port} cannot be reached: Connection refused",
            ) as caught:
                await slow.quick("x")
            assert caught.value.completed == "no"
            nowhere = Reference("", (encode_iiop(Iiop("a..b", 9, b"x")),))
            with pytest.raises(
                SystemException, match=r"TRANSIENT: a\.\.b:9 cannot be reached: there can be no host"
            ):
                await proxy_of(orb, nowhere).quick("x")
            reference = orb.activate(Slow(), "here")
            both = f"corbaloc::127.0.0.1:{port},:127.0.0.1:{orb.port}/here"
            assert await proxy_of(orb, both).quick("the second") == "the second"
            orb.adapter().deactivate(b"here")
            with pytest.raises(SystemException, match="OBJECT_NOT_EXIST"):
                await proxy_of(orb, reference).quick("x")

    run(main())


def test_a_host_that_does_not_answer(run: Run) -> None:
    """The queue of a listener that accepts nobody is full: further calls hear nothing."""

    async def main() -> None:
        with socket.socket() as deaf:
            deaf.bind(("127.0.0.1", 0))
            deaf.listen(0)
            fillers = [socket.socket() for _ in range(4)]
            try:
                for filler in fillers:
                    filler.setblocking(False)
                    filler.connect_ex(deaf.getsockname())
                async with Orb() as orb:
                    where = f"corbaloc::127.0.0.1:{deaf.getsockname()[1]}/x"
                    impatient = asyncio.ensure_future(proxy_of(orb, where, deadline=5.0).quick("x"))
                    patient = asyncio.ensure_future(proxy_of(orb, where, deadline=60.0).quick("x"))
                    await until(lambda: orb.client._connecting)
                    skip(6.0)
                    with pytest.raises(SystemException, match=r"TIMEOUT: Slow\.quick: no answer within 5 s"):
                        await impatient
                    skip(6.0)
                    with pytest.raises(
                        SystemException, match=r"TRANSIENT: .* cannot be reached: no answer within 10 s"
                    ):
                        await patient
                    assert not orb.client._connecting
                    last = asyncio.ensure_future(proxy_of(orb, where).quick("x"))
                    await until(lambda: orb.client._connecting)
                with pytest.raises(SystemException, match="this side was closed"):
                    await last
            finally:
                for filler in fillers:
                    filler.close()

    run(main())


def test_a_server_that_breaks_off(run: Run) -> None:
    """Whoever waits learns at once; what was not begun is sent again."""

    async def main() -> None:
        async with Orb() as client, Orb() as server:
            servant = Slow()
            slow = proxy_of(client, server.activate(servant))
            call = asyncio.ensure_future(slow.wait("x"))
            await until(lambda: servant.begun)
            next(iter(server.server.connections)).abort()
            with pytest.raises(SystemException, match=r"COMM_FAILURE: .* is gone: ") as caught:
                await call
            assert caught.value.completed == "maybe"
            assert await slow.quick("again") == "again"  # by another connection
            next(iter(server.server.connections)).close(CloseConnection())
            assert await slow.quick("and again") == "and again"

    run(main())


def test_a_server_that_ends_while_it_works(run: Run) -> None:
    """What was begun is not sent again to whoever listens there next."""

    async def main() -> None:
        async with Orb() as client:
            async with Orb() as server:
                servant = Slow()
                slow = proxy_of(client, server.activate(servant))
                call = asyncio.ensure_future(slow.wait("x"))
                await until(lambda: servant.begun)
            with pytest.raises(SystemException, match="COMM_FAILURE") as caught:
                await call
            assert caught.value.completed == "maybe"
            assert servant.ended == ["cancelled"]

    run(main())


def test_a_closed_orb(run: Run) -> None:
    async def main() -> None:
        orb = Orb()
        with pytest.raises(UsageError, match="does not listen yet"):
            orb.activate(Slow())
        async with orb, Orb() as client:
            servant = Slow()
            call = asyncio.ensure_future(
                proxy_of(client, orb.reference(orb.adapter().activate(servant))).wait("x")
            )
            await until(lambda: servant.begun)
            await client.client.close()
            with pytest.raises(SystemException, match="this side was closed"):
                await call
        with pytest.raises(UsageError, match="does not listen"):
            orb.reference(b"1")
        async with Orb() as first:
            with pytest.raises(
                UsageError, match=rf"cannot listen at 127\.0\.0\.1:{first.port}: Address already in use"
            ):
                async with Orb(port=first.port):
                    pass

    run(main())


def test_a_request_is_forwarded(run: Run) -> None:
    async def main() -> None:
        async with Orb() as orb:
            there = orb.activate(Slow())
            here = orb.activate(OtherSlow(there))
            assert await proxy_of(orb, here).quick("found") == "found"
            with pytest.raises(SystemException, match="TRANSIENT"):
                await proxy_of(orb, here).moved()

    run(main())


@pytest.mark.parametrize("fragment_size", [0, 1000])
@pytest.mark.parametrize("message_max", [100_000, MESSAGE_MAX])
def test_a_call_that_is_too_large_fails_alone(run: Run, message_max: int, fragment_size: int) -> None:
    """By its request or by its answer; what else is under way on the connection ends as if nothing had been."""

    async def main() -> None:
        limits = Limits(message_max=message_max, fragment_size=fragment_size)
        async with Orb(limits=limits) as orb, Orb(limits=limits) as client:
            servant = Slow()
            slow = proxy_of(client, orb.activate(servant))
            fits = message_max // 2 if fragment_size else message_max - 1000
            assert len(await slow.large(fits)) == fits
            other = asyncio.ensure_future(slow.wait("other"))
            await until(lambda: servant.begun)
            with pytest.raises(SystemException, match=f"IMP_LIMIT: .*{message_max}") as answer:
                await slow.large(2 * message_max)
            assert answer.value.completed == "yes"
            with pytest.raises(SystemException, match=f"IMP_LIMIT: .*{message_max}") as request:
                await slow.quick(2 * message_max * "x")
            assert request.value.completed == "no"
            assert orb.server.counts == {"too_large": 1}
            assert client.client.connections == 1
            servant.gate.set()
            assert await other == "other"

    run(main())


def test_an_old_answer_that_is_too_large_ends_the_connection(run: Run) -> None:
    """GIOP 1.1 has no number at the beginning of a message; the text says what was wrong."""

    async def main() -> None:
        async with Orb(limits=Limits(message_max=100_000)) as orb:
            orb.activate(Slow(), "slow")
            old = proxy_of(orb, f"corbaloc:iiop:1.1@127.0.0.1:{orb.port}/slow")
            with pytest.raises(
                SystemException, match=r"COMM_FAILURE.*cannot be read .*too_large.*100000 at most"
            ):
                await old.large(200_000)
            assert await old.quick("goes on") == "goes on"

    run(main())


@pytest.mark.parametrize("loop", LOOPS)
def test_large_messages_may_travel_in_pieces(run: Run, loop: str) -> None:
    async def main() -> None:
        async with Orb(limits=Limits(fragment_size=100)) as orb:
            reference = orb.activate(OurKitchen(), "kitchen")
            kitchen: Any = orb.proxy(Kitchen, reference)
            data = bytes(range(256)) * 40
            calls = (kitchen.reverse(data + bytes(number)) for number in range(20))
            assert await asyncio.gather(*calls) == [bytes(number) + data[::-1] for number in range(20)]
            old: Any = orb.proxy(Kitchen, f"corbaloc:iiop:1.1@127.0.0.1:{orb.port}/kitchen")
            assert await old.reverse(data) == data[::-1]  # in one, since nothing would say where it belongs
        with pytest.raises(UsageError, match="A fragment has at least 32 octets"):
            Limits(fragment_size=8)

    run(main(), loop=loop)


class Peer:
    """Somebody who speaks GIOP by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def to(cls, orb: Orb) -> "Peer":
        return cls(*await asyncio.open_connection("127.0.0.1", orb.port))

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def message(self) -> giop.Decoded:
        head = await self.reader.readexactly(giop.HEADER_SIZE)
        return giop.decode(head + await self.reader.readexactly(giop.read_header(head).size))

    async def close(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


def quick(number: int, text: str, minor: int = 2, contexts: tuple[giop.Tagged, ...] = ()) -> bytes:
    request = Request(number, KeyAddr(b"slow"), "quick", contexts=contexts)
    return giop.encode(request, lambda out: out.string(text), minor=minor, text="latin-1")


def test_messages_by_hand(run: Run) -> None:
    """Locating, cancelling, fragments, several in one segment, one in several segments."""

    async def main() -> None:
        async with Orb() as orb:
            servant = Slow()
            orb.activate(servant, "slow")
            peer = await Peer.to(orb)
            for key, status in ((b"slow", 1), (b"fast", 0)):
                for minor in (0, 1, 2):
                    peer.send(giop.encode(LocateRequest(3, KeyAddr(key)), minor=minor))
                    located = await peer.message()
                    assert located.header.minor == minor
                    assert located.message == LocateReply(3, giop.LocateStatus(status))
            peer.send(b"".join(quick(number, f"é{number}", number % 3) for number in range(9)))
            for number in range(9):
                header, message, body = await peer.message()
                body.text = "latin-1"
                assert (header.minor, message, body.string()) == (number % 3, Reply(number), f"é{number}")
            pieces = giop.fragments(quick(7, "x" * 500), 64)
            for piece in pieces:
                for octet in range(0, len(piece), 7):
                    peer.send(piece[octet : octet + 7])
                    await peer.writer.drain()
            assert (await peer.message()).body.string() == "x" * 500
            peer.send(pieces[0] + giop.encode(CancelRequest(7)) + pieces[1] + quick(8, "after"))
            assert (await peer.message()).message == Reply(8)
            wait = Request(9, KeyAddr(b"slow"), "wait")
            peer.send(giop.encode(wait, lambda out: out.string("x")))
            await until(lambda: servant.begun)
            peer.send(giop.encode(CancelRequest(9)) + quick(10, "next"))
            assert (await peer.message()).message == Reply(10)
            assert servant.ended == ["cancelled"]
            peer.send(giop.encode(CloseConnection()))
            assert await peer.reader.read() == b""
            await peer.close()
            assert orb.server.counts == {}

    run(main())


def test_a_code_set_that_we_do_not_have(run: Run) -> None:
    async def main() -> None:
        async with Orb() as orb:
            orb.activate(Slow(), "slow")
            peer = await Peer.to(orb)
            foreign = giop.Tagged(1, bytes.fromhex("000000001002002500010109"))
            peer.send(quick(1, "x", contexts=(foreign,)))
            reply = await peer.message()
            assert giop.get_failure(reply.body).exception_id == "IDL:omg.org/CORBA/CODESET_INCOMPATIBLE:1.0"
            await peer.close()

    run(main())


# Clients of servers that misbehave


def test_a_server_that_is_none(run: Run) -> None:
    answers: list[Callable[[bytes], bytes]] = [
        lambda request: b"HTTP/1.1 400 Bad Request\r\n\r\n",
        lambda request: giop.encode(giop.MessageError()),
        lambda request: giop.encode(Request(1, KeyAddr(b"x"), "call_back")),
        lambda request: giop.MAGIC + bytes((1, 2, 0, 1)) + b"\xff\xff\xff\xff",
        lambda request: b"",
    ]

    async def main() -> None:
        for answer in answers:

            async def serve(
                reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Any = answer
            ) -> None:
                writer.write(answer(await reader.read(1000)))
                writer.close()

            server = await asyncio.start_server(serve, "127.0.0.1", 0)
            async with Orb() as orb:
                port = server.sockets[0].getsockname()[1]
                with pytest.raises(SystemException, match=r"COMM_FAILURE: .* is gone: "):
                    await proxy_of(orb, f"corbaloc::127.0.0.1:{port}/x").quick("x")
            server.close()
            await server.wait_closed()

    run(main())


def test_answers_to_nobody_are_passed_over(run: Run) -> None:
    async def main() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1000)
            for number in (77, 1):
                writer.write(giop.encode(Reply(number), lambda out: out.string("x")))
            await reader.read()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with Orb() as orb:
            port = server.sockets[0].getsockname()[1]
            assert await proxy_of(orb, f"corbaloc::127.0.0.1:{port}/x").quick("x") == "x"
        server.close()

    run(main())


def test_an_answer_of_another_kind_is_none(run: Run) -> None:
    """A LocateReply that has the request's number, to somebody that has not asked where the object is."""

    async def main() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1000)
            writer.write(giop.encode(LocateReply(1)))
            await reader.read()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with Orb() as orb:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(
                SystemException, match=r"MARSHAL: .*quick.*an answer that is no Reply"
            ) as failed:
                await proxy_of(orb, f"corbaloc::127.0.0.1:{port}/x").quick("x")
            assert failed.value.completed == "maybe"
        server.close()

    run(main())


@pytest.mark.parametrize("tag", [1, 20, 39, MEMBER], ids=["code sets", "TLS", "group", "member"])
def test_a_reference_with_a_damaged_component_is_refused(run: Run, tag: int) -> None:
    """Whoever made it, and whatever was in it; it may have come in a reply."""

    async def main() -> None:
        async with Orb() as orb:
            here = orb.activate(Slow(), "slow")
            (whole,) = here.iiop()
            by_tls = tag in (20, MEMBER)
            secure = (encode_secure(SecureTransport(1)),) if tag == MEMBER else ()
            async with Orb(tls=ssl.create_default_context() if by_tls else None) as client:
                for data in (b"\xff", b"\1\xff\xff\xff\xff", b"\xff" * 40):
                    damaged = replace(whole, components=(*secure, giop.Tagged(tag, data)))
                    reference = Reference(here.type_id, (encode_iiop(damaged),))
                    for name in ("quick", "later"):
                        with pytest.raises(SystemException, match="INV_OBJREF") as failed:
                            await getattr(proxy_of(client, reference), name)("x")
                        assert failed.value.completed == "no"

    run(main())


def test_a_oneway_request_that_waits_for_a_connection_that_ends_goes_over_another(run: Run) -> None:
    async def main() -> None:
        ends, came = asyncio.Event(), asyncio.Event()
        heard: list[bytes] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if not ends.is_set():
                await ends.wait()
                writer.transport.abort()
                return
            heard.append(await reader.read(1000))
            came.set()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        client = Client()
        where = Endpoint("127.0.0.1", server.sockets[0].getsockname()[1])
        await client.send(where, lambda number: bytes(32 << 20))
        (connection,) = client._connections.values()
        assert connection.blocked is not None
        waits = asyncio.ensure_future(client.send(where, lambda number: b"it is late"))
        await until(lambda: connection._writers)
        ends.set()
        await waits
        await came.wait()
        assert heard == [b"it is late"]
        await client.close()
        server.close()

    run(main())


def test_numbers_of_requests_come_round(run: Run) -> None:
    async def main() -> None:
        async with Orb() as orb:
            slow = proxy_of(orb, orb.activate(Slow()))
            await slow.quick("a")
            (connection,) = orb.client._connections.values()
            connection._number = (1 << 32) - 2
            connection.waiting[1] = asyncio.get_running_loop().create_future()  # an old one, still under way
            for text in "bcd":
                assert await slow.quick(text) == text
            assert connection._number == 3
            connection.waiting.clear()

    run(main())


def test_a_server_that_keeps_closing_is_given_up(run: Run) -> None:
    async def main() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1000)
            writer.write(giop.encode(CloseConnection()))
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with Orb() as orb:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(SystemException, match="it keeps closing the connection"):
                await proxy_of(orb, f"corbaloc::127.0.0.1:{port}/x").quick("x")
        server.close()

    run(main())


def test_a_client_keeps_a_bounded_number_of_connections(run: Run) -> None:
    async def main() -> None:
        async with Orb() as first, Orb() as second, Orb(limits=Limits(connections_max=1)) as client:
            servant = Slow()
            one, two = (proxy_of(client, each.activate(servant)) for each in (first, second))
            assert [await one.quick("a"), await two.quick("b"), await one.quick("c")] == ["a", "b", "c"]
            assert client.client.connections == 1
            call = asyncio.ensure_future(one.wait("x"))
            await until(lambda: servant.begun)
            with pytest.raises(SystemException, match="NO_RESOURCES"):
                await two.quick("d")
            servant.gate.set()
            await call

    run(main())


# Names


def test_names_over_the_network(run: Run) -> None:
    async def main() -> None:
        async with Orb() as here, Orb() as there, Orb() as client:
            ours, theirs = serve_names(here), serve_names(there)
            names = client.proxy(NamingContextExt, ours)
            target = read("corbaloc:miop:1.0@1.0-TestDomain-1/239.7.7.9:12345")
            await names.bind_context(to_name("far"), theirs)  # in another process, as it were
            await names.bind_new_context(to_name("far/forum"))
            await names.bind(to_name("far/forum/lunch.group"), target)
            assert await names.resolve_str("far/forum/lunch.group") == target
            assert await resolve(client, theirs, "forum/lunch.group") == target
            assert await find(client, f"corbaname::127.0.0.1:{here.port}#far/forum/lunch.group") == target
            assert await find(client, f"corbaname::127.0.0.1:{here.port}/NameService#far/forum") is not None
            assert await find(client, f"corbaname::127.0.0.1:{here.port}") == read(
                f"corbaloc::127.0.0.1:{here.port}/NameService"
            )
            assert await find(client, to_ior(target)) == target
            with pytest.raises(NotFound):
                await find(client, f"corbaname::127.0.0.1:{here.port}#nothing")
            for number in range(5):
                await names.bind(to_name(f"n{number}"), target)
            bindings, more = await names.list(2)
            assert len(bindings) == 2
            assert more is not None
            rest = client.proxy(BindingIterator, more)
            assert (await rest.next_one())[0]
            assert len((await rest.next_n(100))[1]) == 3
            assert await rest.next_n(100) == (False, [])
            await rest.destroy()
            with pytest.raises(SystemException, match="OBJECT_NOT_EXIST"):
                await rest.next_one()
            context = await names.bind_new_context(to_name("gone"))
            assert context is not None
            await client.proxy(NamingContextExt, context).destroy()
            with pytest.raises(SystemException, match="OBJECT_NOT_EXIST"):
                await client.proxy(NamingContextExt, context).list(1)
            assert await names.to_string(to_name("a.b/c")) == "a.b/c"

    run(main())


def test_proxies_stand_for_their_references(run: Run) -> None:
    async def main() -> None:
        async with Orb() as orb:
            names = orb.proxy(NamingContextExt, serve_names(orb))
            reference = orb.activate(Slow())
            slow = proxy_of(orb, reference)
            await names.bind(to_name("slow"), slow)
            assert await names.resolve(to_name("slow")) == reference
            assert await proxy_of(orb, slow).quick("x") == "x"
            with pytest.raises(UsageError, match="5 is no reference"):
                orb.proxy(Slow, 5)  # type: ignore[arg-type]

    run(main())


def test_references_name_the_published_host(run: Run) -> None:
    async def main() -> None:
        async with Orb(published="localhost") as orb:
            reference = orb.activate(Slow(), "slow", adapter="shop")
            (way,) = reference.iiop()
            assert (way.host, way.key) == ("localhost", b"shop/slow")
            assert isinstance(orb.local(reference), Slow)
            assert orb.local(Reference("", (encode_iiop(Iiop("127.0.0.1", 1, b"shop/slow")),))) is None
            assert await proxy_of(orb, reference).quick("x") == "x"

    run(main())
