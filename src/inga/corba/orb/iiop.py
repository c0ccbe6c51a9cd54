"""GIOP over TCP: the server's and the client's end of IIOP connections.

No peer can cost more than the bounds in `Limits`:

    a call too large                         IMP_LIMIT for this one, from GIOP 1.2 on; its octets are dropped as they arrive
    any other message too large, or no GIOP  MessageError, and the connection is closed
    no message, or no handshake, in time     closed
    a message that is not finished in time   closed
    replies that are not read                reading is paused, then the connection is closed
    too many requests under way              reading is paused; in all: TRANSIENT at once, except for the only one of a connection
    too many connections, in all or of one   the one idle for longest is closed; its client may reconnect
    host; a long time without a request
    too much buffered in all                 the connection that holds most of it is closed

Connections take turns of one message each, so that a client that sends a single message waits for at most one message of each
other client, and not for all that they have sent.

A client keeps one connection to each server and sends all requests over it. Replies come in any order. A server may
close an idle connection in good order (CloseConnection): requests that it had not begun are then sent again.
"""

import asyncio
import inspect
import os
import ssl
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, cast

from inga.corba.broker.dispatch import (
    TEXT_UNAGREED,
    Broker,
    Exchange,
    ForwardRequest,
    ServantCall,
    agreed_text,
)
from inga.corba.broker.idl import SystemException, UserException
from inga.corba.orb.tls import CALLER, Tls, TlsChannel
from inga.corba.orb.turns import Turns
from inga.corba.wire import giop
from inga.corba.wire.framing import MESSAGE_MAX, Framer, Oversized
from inga.corba.wire.giop import (
    CancelRequest,
    CloseConnection,
    Decoded,
    KeyAddr,
    LocateReply,
    LocateRequest,
    MessageError,
    Reply,
    Request,
)
from inga.corba.wire.reference import address_text
from inga.model.errors import IngaError, KeysError, UsageError, WireError
from inga.model.packet import Buffer
from inga.net.log import report

REQUEST_ID_MAX = (1 << 32) - 1
HANDSHAKE = "handshake"
"""The reason for refusing a connection whose TLS handshake fails."""
FAREWELL_SECONDS = 1.0
"""Seconds to wait for a server to close TLS in good order, before the connection is aborted."""
LOOKED_AT = 1 << 14
"""Octets that are parsed in one turn."""
BEGUN_AGAIN_MAX = 3
"""How often a request is tried if the server closes the connection before it begins with it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What peers may cost. Octets, counts and seconds."""

    message_max: int = MESSAGE_MAX
    """Octets of one message."""
    buffered_max: int = 64 << 20
    """Octets kept for messages that are not complete or not begun, all connections together."""
    connections_max: int = 512
    host_connections_max: int = 256
    """Connections from one host."""
    requests_max: int = 64
    """Requests under way on one connection."""
    running_max: int = 1024
    """Requests under way in all. Beyond it each connection may have one."""
    greeting_seconds: float = 10.0
    """Seconds for a new connection to complete the handshake, with TLS, and to begin its first message."""
    idle_seconds: float = 180.0
    """Seconds after which a connection without requests is closed in good order."""
    message_seconds: float = 30.0
    """Seconds for a message, once begun, to arrive; and for the peer to read replies."""
    connect_seconds: float = 10.0
    write_buffer: int = 1 << 20
    """Octets of unread replies beyond which no more requests are taken."""
    fragment_size: int = 0
    """Larger messages are sent in pieces of this many octets, from GIOP 1.2 on; 0: messages are never cut."""

    def __post_init__(self) -> None:
        if self.fragment_size:
            giop.fragments(b"", self.fragment_size)  # raises if it is too small


class Endpoint(NamedTuple):
    """Where a server listens; with TLS, whose certificate it has to show: a member's or, without one, the host's."""

    host: str
    port: int
    tls: bool = False
    member: str | None = None

    def __str__(self) -> str:
        return address_text(self.host, self.port)


class _Connection(asyncio.Protocol):
    """The common part of both ends: messages in, messages out."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.framer = Framer(limits.message_max, passes_over=True)
        self.transport: asyncio.Transport | None = None
        self.loop = asyncio.get_running_loop()
        self.used = self.loop.time()
        self.begun: float | None = None
        """When the message that is still incomplete began to arrive."""
        self.blocked: float | None = None
        """Since when the peer has not read what we send."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass of it
        self.transport.set_write_buffer_limits(high=self.limits.write_buffer)

    def pause_writing(self) -> None:
        self.blocked = self.loop.time()

    def resume_writing(self) -> None:
        self.blocked = None

    def write(self, data: bytes) -> None:
        """Send a message, if the connection is still there."""
        if self.transport is None or self.transport.is_closing():
            return
        size = self.limits.fragment_size
        if 0 < size < len(data) and data[5] >= 2:
            self.transport.writelines(map(self.sealed, giop.fragments(data, size)))
        else:
            self.transport.write(self.sealed(data))

    def sealed(self, data: bytes) -> bytes:
        """The octets to send over the connection for these: encrypted, if we and not the transport do TLS."""
        return data

    def close(self, message: giop.GiopMessage | None = None) -> None:
        """Close the connection, after a last message, if given."""
        if message is not None:
            self.write(giop.encode(message))
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        """Close the connection at once, and drop what is still to be sent."""
        if self.transport is not None:
            self.transport.abort()

    def messages(self, data: Buffer) -> list[bytes]:
        """Add received octets; return the messages that are complete now."""
        found = self.framer.feed(data)
        while self.framer.oversized:
            self.oversized(self.framer.oversized.pop(0))
        now = self.loop.time()
        if found:
            self.used = now
        if not self.framer.buffered:
            self.begun = None
        elif found or self.begun is None:
            self.begun = now
        return found

    def oversized(self, message: Oversized) -> None:
        """A call is too large to be accepted; the others over this connection go on."""
        raise NotImplementedError

    def is_late(self, now: float) -> bool:
        """Whether the peer has exceeded its time to finish a message or to read."""
        since = [moment for moment in (self.begun, self.blocked) if moment is not None]
        return bool(since) and now - min(since) > self.limits.message_seconds


class Server:
    """Listens, and passes requests to a broker. `counts` has the refusals by reason."""

    def __init__(self, broker: Broker, limits: Limits | None = None, tls: Tls | None = None) -> None:
        self.broker = broker
        self.limits = limits or Limits()
        self.tls = tls
        self.turns = Turns()
        self.counts: Counter[str] = Counter()
        self.connections: dict[_Serving, None] = {}
        self.buffered = 0
        self.running: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._sweep: asyncio.TimerHandle | None = None

    async def open(self, host: str, port: int) -> int:
        """Listen; return the port, one that was free if `port` is 0."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(lambda: _Serving(self), host, port, backlog=128)
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot listen at {host}:{port}: {_reason(error)}") from None
        self._sweep = loop.call_later(self._sweep_seconds, self._look)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def close(self) -> None:
        """Stop listening, cancel running requests, and close the connections."""
        if self._sweep is not None:
            self._sweep.cancel()
        self.turns.end()
        if self._server is not None:
            self._server.close()
        active = [each for each in self.connections if each.active]
        for connection in active:  # Not in good order: some requests were begun, and must not be sent again.
            connection.close()
        for task in list(self.running):
            task.cancel()
        if self.running:
            await asyncio.wait(self.running)
        for connection in list(self.connections):
            if connection not in active:
                connection.close(CloseConnection())
        await asyncio.sleep(0)  # The transports close in the next pass of the event loop.

    def admit(self, newcomer: "_Serving") -> bool:
        """Admit a connection, if necessary in place of the one idle for longest; return False if there is no room."""
        crowd = [each for each in self.connections if each.host == newcomer.host]
        is_full = len(crowd) >= self.limits.host_connections_max
        if not is_full:
            crowd = list(self.connections)
            is_full = len(crowd) >= self.limits.connections_max
        if is_full:
            idle = [each for each in crowd if not each.active]
            if not idle:
                self.counts["refused"] += 1
                return False
            # Connections that never sent a valid message go first.
            victim = min(idle, key=lambda each: (each.spoke, each.used))
            self.counts["displaced"] += 1
            victim.close(CloseConnection())
            self.forget(victim)
        self.connections[newcomer] = None
        return True

    def forget(self, connection: "_Serving") -> None:
        """Stop counting a connection that is closed or being closed."""
        if self.connections.pop(connection, 0) is None:
            self.buffered -= connection.counted
            connection.counted = 0

    def account(self, connection: "_Serving") -> None:
        """Update the count of buffered octets; beyond the bound, abort the connections that hold most."""
        if connection not in self.connections:
            return
        self.buffered += connection.buffered - connection.counted
        connection.counted = connection.buffered
        while self.buffered > self.limits.buffered_max:
            largest = max(self.connections, key=lambda each: each.counted)
            self.counts["crowded_out"] += 1
            self.forget(largest)
            largest.abort()

    @property
    def _sweep_seconds(self) -> float:
        limits = self.limits
        return min(limits.message_seconds, limits.greeting_seconds, limits.idle_seconds) / 4

    def _look(self) -> None:
        """Close the connections of peers that have exceeded their time, and those idle for too long."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection in list(self.connections):
            if connection.is_late(now):
                self.counts["late"] += 1
                self.forget(connection)
                connection.abort()
            elif not connection.active and now - connection.used > self.limits.idle_seconds:
                self.counts["idle"] += 1
                connection.close(CloseConnection())
                self.forget(connection)
        self._sweep = loop.call_later(self._sweep_seconds, self._look)


class _Serving(_Connection):
    """The server's end of the connection of one client."""

    def __init__(self, server: Server) -> None:
        super().__init__(server.limits)
        self._server = server
        self._text = TEXT_UNAGREED
        self._unread: deque[memoryview] = deque()
        self._pending: deque[bytes] = deque()
        self._kept = 0  # octets in these two queues
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._channel = None if server.tls is None else server.tls.accept()
        self._lost = False
        self.host: str | None = None
        self.peer: str | None = None
        """The member whose certificate the client has shown."""
        self.under_way = 0
        self.counted = 0
        self.spoke = False

    @property
    def active(self) -> bool:
        """Whether a request of this client is being executed, or waits for its turn."""
        return bool(self.under_way or self._pending or self._unread)

    @property
    def buffered(self) -> int:
        """Octets that wait for the rest of their message, or for their turn."""
        return self.framer.buffered + self._kept

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.host = (transport.get_extra_info("peername") or (None,))[0]
        if not self._server.admit(self):
            self.abort()

    def write(self, data: bytes) -> None:
        if (
            self._channel is None or self._channel.is_open
        ):  # Before the handshake is complete, nothing can be sent.
            super().write(data)

    def close(self, message: giop.GiopMessage | None = None) -> None:
        if message is not None:
            self.write(giop.encode(message))
        if self._channel is not None and self.transport is not None and not self.transport.is_closing():
            self.transport.write(self._channel.end())
        super().close()

    def sealed(self, data: bytes) -> bytes:
        return data if self._channel is None else self._channel.send(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._lost, self.blocked = True, None
        self._server.turns.add(self)  # What has arrived is still executed: oneway requests want no answer.

    def data_received(self, data: bytes) -> None:
        if self not in self._server.connections:
            return  # It is being closed.
        self._unread.append(memoryview(data))
        self._kept += len(data)
        self._server.turns.add(self)
        if self._unread:  # Other connections have their turns first.
            self._read_on(False)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._server.turns.add(self)

    def is_late(self, now: float) -> bool:
        is_silent = not self.spoke and self.begun is None and not self.active
        return super().is_late(now) or (is_silent and now - self.used > self.limits.greeting_seconds)

    def oversized(self, message: Oversized) -> None:
        if message.header.kind is not giop.Kind.REQUEST:
            raise WireError("malformed", f"a {message.header.kind.name} to a server")
        self._server.counts["too_large"] += 1
        asked = Request(message.request_id, KeyAddr(b""), "", message.flags)
        exchange = Exchange(asked, message.header.minor, message.header.little, TEXT_UNAGREED)
        self._answer(exchange.failed(None, SystemException("IMP_LIMIT", message.why, completed="no")))

    def _refuse(self, error: WireError) -> None:
        """Close the connection: its input is invalid, and nothing after it can be parsed."""
        self._server.counts[error.reason] += 1
        self._discard()
        self.close(None if error.reason == HANDSHAKE else MessageError())
        self._server.forget(self)

    def _discard(self) -> None:
        """Drop all received input."""
        self._unread.clear()
        self._pending.clear()
        self._kept = 0

    def turn(self) -> bool:
        """Do the next piece of work; return whether another could be done now."""
        if self not in self._server.connections:
            self._discard()
            return False
        try:
            if self._may_begin:
                self._do_next()
        except WireError as error:
            self._refuse(error)
            return False
        is_left = bool(self._pending or self._unread)
        can_go_on = is_left and self._may_begin
        if self._lost and not can_go_on:
            self._discard()
            self._server.forget(self)
            return False
        self._read_on(not is_left and self.blocked is None)
        return can_go_on

    def _read_on(self, wanted: bool) -> None:
        """Go on reading from the connection, or pause; account for what is buffered."""
        if self.transport is not None and not self.transport.is_closing():
            if wanted:
                self.transport.resume_reading()
            else:
                self.transport.pause_reading()
        self._server.account(self)

    @property
    def _may_begin(self) -> bool:
        return self.blocked is None and self.under_way < self.limits.requests_max

    def _do_next(self) -> None:
        """Parse received octets if no message is pending, then carry out one message if there is one."""
        if not self._pending and self._unread:
            data = self._unread.popleft()
            if len(data) > LOOKED_AT:
                self._unread.appendleft(data[LOOKED_AT:])
            data = data[:LOOKED_AT]
            self._kept -= len(data)
            found = self.messages(data if self._channel is None else self._opened(self._channel, data))
            self._pending.extend(found)
            self._kept += sum(map(len, found))
        if self._pending:
            message = self._pending.popleft()
            self._kept -= len(message)
            self._message(giop.decode(message, text=self._text))

    def _opened(self, channel: TlsChannel, data: memoryview) -> bytes:
        """Decrypt received octets: empty until the handshake is complete."""
        assert self.transport is not None and self._server.tls is not None
        was_shaken = channel.is_shaken
        try:
            clear = channel.receive(data)
            if channel.is_shaken and not was_shaken:
                self.peer = self._server.tls.peer(channel.certificate())
        except ssl.SSLError as error:
            raise WireError("tls" if channel.is_shaken else HANDSHAKE, str(error)) from None
        except KeysError as error:
            raise WireError(HANDSHAKE, str(error)) from None
        finally:
            self.transport.write(channel.outgoing())  # also the reason, if it failed
        if channel.is_over:
            self.close()
        return clear

    def _message(self, decoded: Decoded) -> None:
        message = decoded.message
        self.spoke = True
        if isinstance(message, Request):
            self._request(decoded, message)
        elif isinstance(message, LocateRequest):
            if not self._lost:
                self.write(self._server.broker.locate(decoded))
        elif isinstance(message, CancelRequest):
            self.framer.forget(message.request_id)
            task = self._tasks.pop(message.request_id, None)
            if task is not None:
                task.cancel()
        elif isinstance(message, CloseConnection):
            self._discard()
            self.close()
        elif isinstance(message, MessageError):
            self._server.counts["not_understood"] += 1
            self._discard()
            self.close()
        else:
            raise WireError("malformed", f"a {decoded.header.kind.name} to a server")

    def _request(self, decoded: Decoded, message: Request) -> None:
        try:
            decoded.body.text = self._text = agreed_text(message.contexts) or self._text
        except SystemException as error:
            self._answer(Exchange.of(decoded, message).failed(None, error))
            return
        outcome = self._server.broker.request(decoded)
        if not isinstance(outcome, ServantCall):
            self._answer(outcome)
        elif self.under_way and len(self._server.running) >= self.limits.running_max:
            self._server.counts["busy"] += 1
            self._answer(outcome.failed(SystemException("TRANSIENT", "too many requests", completed="no")))
        else:
            self._begin(outcome)

    def _begin(self, invocation: ServantCall) -> None:
        token = CALLER.set(self.peer)  # a task that is created below inherits it
        try:
            result = invocation.call()
            if inspect.isawaitable(result):
                self._begin_task(invocation, result)
            else:
                self._answer(invocation.returned(result))
        except (Exception, asyncio.CancelledError) as error:
            self._answer(_failed(invocation, error))
        finally:
            CALLER.reset(token)

    def _begin_task(self, invocation: ServantCall, result: Awaitable[Any]) -> None:
        self.under_way += 1
        request_id = invocation.exchange.request.request_id
        task = self.loop.create_task(self._finish(invocation, result))
        self._server.running.add(task)
        if invocation.exchange.wants_reply:
            self._tasks[request_id] = task

    async def _finish(self, invocation: ServantCall, result: Awaitable[Any]) -> None:
        """Await a method that is a coroutine, and reply. It goes on if the connection is lost: the client has asked for it."""
        request_id = invocation.exchange.request.request_id
        task = asyncio.current_task()
        assert task is not None
        try:
            self._answer(invocation.returned(await result))
        except (Exception, asyncio.CancelledError) as error:
            if is_cancelled():
                raise  # The client has given up, or we close.
            self._answer(_failed(invocation, error))
        finally:
            self._server.running.discard(task)
            if self._tasks.get(request_id) is task:
                del self._tasks[request_id]
            self.under_way -= 1
            self.used = self.loop.time()
            self._server.turns.add(self)

    def _answer(self, reply: bytes | None) -> None:
        if reply is not None:
            self.write(reply)


def is_cancelled() -> bool:
    """Whether the current task was cancelled. If not, a CancelledError comes from something that a servant awaited."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _failed(invocation: ServantCall, error: BaseException) -> bytes | None:
    """The reply for an exception. Undeclared ones are logged here, since the client sees little of them."""
    if not isinstance(error, UserException | SystemException | ForwardRequest):
        report("orb.failed", "%s failed", invocation.called.where, error=error)
    return invocation.failed(error)


class NotBegun(IngaError):
    """The server closed the connection in good order before it began with this request."""


class _Calling(_Connection):
    """Our connection to one server."""

    def __init__(self, client: "Client", address: Endpoint) -> None:
        super().__init__(client.limits)
        self._client = client
        self.address = address
        self.waiting: dict[int, asyncio.Future[Decoded]] = {}
        self._number = 0
        self._writers: list[asyncio.Future[None]] = []
        self.gone: Exception | None = None
        self.heard = False
        self.ended = self.loop.create_future()

    def next_id(self) -> int:
        """A request id that no request under way has."""
        while True:
            self._number = self._number % REQUEST_ID_MAX + 1
            if self._number not in self.waiting:
                return self._number

    def data_received(self, data: bytes) -> None:
        self.heard = True
        try:
            for each in self.messages(data):
                self._message(giop.decode(each))
        except WireError as error:
            self._end(_broken(self.address, f"what came cannot be read ({error})"))

    def _message(self, decoded: Decoded) -> None:
        message = decoded.message
        if isinstance(message, Reply | LocateReply):
            future = self.waiting.pop(message.request_id, None)
            if future is not None and not future.done():
                future.set_result(decoded)
        elif isinstance(message, CloseConnection):
            self._end(NotBegun())
        elif isinstance(message, MessageError):
            self._end(_broken(self.address, "it did not understand a message of ours"))
        else:
            raise WireError("malformed", f"a {decoded.header.kind.name} to a client")

    def oversized(self, message: Oversized) -> None:
        if message.header.kind is not giop.Kind.REPLY:
            raise WireError("malformed", f"a {message.header.kind.name} to a client")
        future = self.waiting.pop(message.request_id, None)
        if future is not None and not future.done():
            why = f"the answer is {message.why} (Limits.message_max)"
            future.set_exception(SystemException("IMP_LIMIT", why, completed="yes"))

    def connection_lost(self, error: Exception | None) -> None:
        why = f"the connection broke ({error})" if error is not None else "it closed the connection"
        if self.address.tls and not self.heard:
            why += " before it said anything; it may not trust our certificate"
        self._end(_broken(self.address, why))
        self.ended.set_result(None)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._release()

    async def writable(self) -> None:
        """Wait until the server reads again."""
        while self.blocked is not None and self.gone is None:
            future = self.loop.create_future()
            self._writers.append(future)
            await future

    def shut(self) -> None:
        """Close the connection, since we do not need it any more."""
        self._end(SystemException("COMM_FAILURE", "this side was closed"), CloseConnection())

    def _end(self, reason: Exception, message: giop.GiopMessage | None = None) -> None:
        """End the connection: requests that wait for replies fail with `reason`."""
        if self.gone is not None:
            return
        self.gone = reason
        self._client.forget(self)
        for future in self.waiting.values():
            if not future.done():
                future.set_exception(reason)
        self.waiting.clear()
        self._release()
        self.close(message)

    def _release(self) -> None:
        for future in self._writers:
            if not future.done():
                future.set_result(None)
        self._writers.clear()


class Client:
    """Connections to servers, each shared by all requests to it."""

    def __init__(self, limits: Limits | None = None, tls: Tls | None = None) -> None:
        self.limits = limits or Limits()
        self.tls = tls
        self._connections: dict[Endpoint, _Calling] = {}
        self._connecting: dict[Endpoint, asyncio.Task[_Calling]] = {}

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self._connections)

    async def call(self, address: Endpoint, make: Callable[[int], bytes]) -> Decoded:
        """Send the request that `make` encodes with a request id, and wait for its reply.

        If the caller is cancelled, the server gets a CancelRequest.
        """
        for _ in range(BEGUN_AGAIN_MAX):
            connection = await self._connected(address)
            request_id = connection.next_id()
            data = make(request_id)
            future: asyncio.Future[Decoded] = connection.loop.create_future()
            connection.waiting[request_id] = future
            connection.write(data)
            try:
                return await future
            except NotBegun:
                continue
            except asyncio.CancelledError:
                if connection.waiting.pop(request_id, None) is not None:
                    connection.write(giop.encode(CancelRequest(request_id), minor=data[5]))
                raise
        raise _kept_closing(address)

    async def send(self, address: Endpoint, make: Callable[[int], bytes]) -> None:
        """Send a oneway request."""
        connection = await self._connected(address)
        connection.write(make(connection.next_id()))

    async def close(self) -> None:
        """Close all connections; calls that still wait raise."""
        tasks = list(self._connecting.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        connections = list(self._connections.values())
        for connection in connections:
            connection.shut()
        await asyncio.sleep(0)  # The transports close in the next pass of the event loop.
        farewells = [each.ended for each in connections if each.address.tls]
        if farewells:  # TLS waits for the server to close the session, too.
            await asyncio.wait(farewells, timeout=FAREWELL_SECONDS)
            for connection in connections:
                connection.abort()

    def forget(self, connection: _Calling) -> None:
        """Do not use this connection for further requests."""
        if self._connections.get(connection.address) is connection:
            del self._connections[connection.address]

    async def _connected(self, address: Endpoint) -> _Calling:
        """Return a connection to `address` that has not ended and whose server reads: it may end while we wait for that."""
        for _ in range(BEGUN_AGAIN_MAX):
            connection = await self._opened(address)
            if connection.blocked is not None:
                await connection.writable()
            if connection.gone is None:
                return connection
        assert connection.gone is not None
        raise _kept_closing(address) if isinstance(connection.gone, NotBegun) else connection.gone

    async def _opened(self, address: Endpoint) -> _Calling:
        connection = self._connections.get(address)
        if connection is None:
            task = self._connecting.get(address)
            if task is None:
                task = asyncio.get_running_loop().create_task(self._connect(address))
                self._connecting[address] = task
                task.add_done_callback(partial(self._no_longer_connecting, address))
            try:
                connection = await asyncio.shield(task)
            except asyncio.CancelledError:
                if not task.cancelled():
                    raise  # Our caller was cancelled; others may want the connection.
                raise SystemException("COMM_FAILURE", "this side was closed", completed="no") from None
        connection.used = connection.loop.time()
        return connection

    def _no_longer_connecting(self, address: Endpoint, task: asyncio.Task[_Calling]) -> None:
        del self._connecting[address]
        if not task.cancelled():
            task.exception()  # Retrieve it: all callers may have been cancelled before the attempt failed.

    async def _connect(self, address: Endpoint) -> _Calling:
        self._make_room(self._connections.values())
        try:
            async with asyncio.timeout(self.limits.connect_seconds):
                connection = await self._open(address)
        except TimeoutError:
            why = f"no answer within {self.limits.connect_seconds:g} s"
        except (ssl.SSLError, KeysError) as error:
            reason = error.verify_message if isinstance(error, ssl.SSLCertVerificationError) else str(error)
            why = f"{address} is not who it should be, or does not trust us: {reason}"
            raise SystemException("NO_PERMISSION", why, completed="no") from None
        except (OSError, ValueError) as error:
            why = _reason(error)
        else:
            self._connections[address] = connection
            return connection
        raise SystemException("TRANSIENT", f"{address} cannot be reached: {why}", completed="no")

    async def _open(self, address: Endpoint) -> _Calling:
        loop = asyncio.get_running_loop()
        secure: dict[str, Any] = {}
        if address.tls:
            assert self.tls is not None, "a way by TLS is chosen only where there is TLS"
            secure = {"ssl": self.tls.context_for(address.member), "server_hostname": address.host}
        transport, connection = await loop.create_connection(
            lambda: _Calling(self, address), address.host, address.port, **secure
        )
        if self.tls is not None and address.tls:
            try:
                shown = transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
                self.tls.peer(shown, address.member)
            except KeysError:
                connection.abort()
                raise
        return connection

    def _make_room(self, connections: Iterable[_Calling]) -> None:
        """At the bound, close the connection unused for longest; NO_RESOURCES if all are in use."""
        if len(self._connections) >= self.limits.connections_max:
            idle = [each for each in connections if not each.waiting]
            if not idle:
                raise SystemException("NO_RESOURCES", "too many servers are called at once", completed="no")
            min(idle, key=lambda each: each.used).shut()


def _broken(address: Endpoint, why: str, completed: str = "maybe") -> SystemException:
    return SystemException("COMM_FAILURE", f"{address} is gone: {why}", completed=completed)


def _kept_closing(address: Endpoint) -> SystemException:
    return _broken(address, "it keeps closing the connection", completed="no")


def _reason(error: OSError | ValueError) -> str:
    """The error in the words of the operating system; a ValueError means that there can be no such host name."""
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return "there can be no host of that name" if isinstance(error, ValueError) else str(error)


async def answered_within(work: Awaitable[Any], seconds: float | None, what: str) -> Any:
    """Await `work`; once the deadline has passed, cancel it and raise TIMEOUT."""
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError:
        raise SystemException("TIMEOUT", f"{what}: no answer within {seconds:g} s") from None
