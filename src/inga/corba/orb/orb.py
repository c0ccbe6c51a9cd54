"""An object request broker for asyncio: objects of this process for others, and objects of others for this process.

    async with Orb() as orb:
        reference = orb.activate(Account())                    # others call it
        bank = orb.proxy(Bank, "corbaloc::127.0.0.1:2809/bank")  # we call others
        await bank.deposit("alice", 30)

A proxy has the methods of its interface, to be awaited. Each call ends by its deadline: with a result, with an
exception that the interface declares, or with a `SystemException` that says what is wrong.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from ssl import SSLContext
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from inga.corba.broker.call import Answered, OutgoingCall, code_set_component, ways
from inga.corba.broker.dispatch import Adapter, Broker, Gateway, ImplicitObject, NotAGroupObject
from inga.corba.broker.idl import IdlInterface, Operation, SystemException, interface_of
from inga.corba.orb.iiop import REQUEST_ID_MAX, Client, Endpoint, Limits, Server, answered_within
from inga.corba.orb.memberships import Channels, Multicast
from inga.corba.orb.tls import Tls
from inga.corba.wire.giop import Tagged
from inga.corba.wire.reference import (
    TAG_GROUP,
    Iiop,
    Reference,
    SecureTransport,
    Uipmc,
    address_text,
    encode_iiop,
    encode_member,
    encode_secure,
    read,
)
from inga.keys.identity import Identity
from inga.model.errors import IngaError, UsageError, WireError
from inga.net.log import report

T = TypeVar("T")

DEADLINE = 10.0
"""Seconds until a call is given up, unless its proxy has another deadline."""


class Orb:
    """Everything that one process needs to call objects and to have its own called.

    `host` and `port` are where it listens; `published` is the host that references name, if others have to use another
    name for it. `deadline` is in seconds, None for none. With `tls` nothing goes over a connection in the clear: references name
    a port for TLS alone, and objects that have none are not called.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        published: str | None = None,
        deadline: float | None = DEADLINE,
        limits: Limits | None = None,
        tls: Tls | Identity | SSLContext | None = None,
        multicast: Multicast | None = None,
        little: bool = False,
    ) -> None:
        self.host, self.port = host, port
        self.published = published or host
        self.deadline = _checked(deadline)
        self.broker = Broker()
        self.tls = None if tls is None else Tls.of(tls)
        self.server = Server(self.broker, limits, self.tls)
        self.client = Client(limits, self.tls)
        self.channels = Channels(self.broker, multicast or Multicast())
        self._following: set[asyncio.Task[None]] = set()
        self._request_number = 0
        self._little = little
        self._open = False

    async def __aenter__(self) -> Self:
        if self.serves:
            self.port = await self.server.open(self.host, self.port)
        self._open = True
        self.broker.on_change = self._follow
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open = False
        self.broker.on_change = lambda: None
        await self.server.close()
        await self.settled()
        await self.channels.close()
        await self.client.close()

    # Our objects

    @property
    def serves(self) -> bool:
        """Whether others can call us: with TLS, whether there is a certificate to show them."""
        return self.tls is None or self.tls.serving is not None

    def adapter(self, name: str = "") -> Adapter:
        """An adapter: a room of object ids of its own."""
        return self.broker.adapter(name)

    def activate(self, servant: Any, object_id: bytes | str | None = None, adapter: str = "") -> Reference:
        """Let others call an object; the reference to give them. An id makes it one they can know beforehand."""
        room = self.adapter(adapter)
        wanted = object_id.encode() if isinstance(object_id, str) else object_id
        return self.reference(room.activate(servant, wanted), adapter)

    def reference(self, object_id: bytes, adapter: str = "") -> Reference:
        """The reference to an object of ours."""
        if not self._open:
            raise UsageError("The Orb does not listen yet: use it as `async with Orb() as orb`.")
        room = self.adapter(adapter)
        servant = room.servant(object_id)
        if servant is None:
            raise UsageError(f"There is no object under {object_id!r}.")
        if not self.serves:
            raise UsageError(
                "The Orb was given a TLS context to call with, and none to serve with: pass tls=Tls(serving, calling), or an Identity."
            )
        where = self._where(room.key(object_id))
        return Reference(interface_of(servant).repository_id, (encode_iiop(where),))

    def _where(self, key: bytes) -> Iiop:
        """The way to an object of this process."""
        components: tuple[Tagged, ...] = (code_set_component(),)
        if self.tls is None:
            return Iiop(self.published, self.port, key, components=components)
        components += (encode_secure(SecureTransport(self.port)),)
        if self.tls.member is not None:
            components += (encode_member(self.tls.member),)
        return Iiop(self.published, 0, key, components=components)

    def local(self, reference: Reference) -> Any | None:
        """Our object, if the reference leads to one."""
        for way in reference.iiop():
            port = way.port if self.tls is None else getattr(way.secure, "port", None)
            if (way.host, port) == (self.published, self.port):
                return self.broker.servant(way.key)
        return None

    # Groups

    async def join(
        self, group: Reference | str, servant: Any, object_id: bytes | str | None = None, adapter: str = ""
    ) -> bytes:
        """Make an object a member of a group, and listen for the group's requests; the object's id."""
        reference = as_reference(group)
        room = self.adapter(adapter)
        wanted = object_id.encode() if isinstance(object_id, str) else object_id
        if wanted is None:
            wanted = room.create_id_for_reference(reference)
        else:
            room.associate_reference_with_id(reference, wanted)
        if room.servant(wanted) is not servant:
            room.activate(servant, wanted)
        try:
            await self.channels.follow()
        except IngaError:
            room.disassociate_reference_with_id(reference, wanted)
            raise
        return wanted

    async def leave(self, group: Reference | str, object_id: bytes, adapter: str = "") -> None:
        """An object is no member any more. The last one closes the channel."""
        self.adapter(adapter).disassociate_reference_with_id(as_reference(group), object_id)
        await self.settled()

    def gateway(self, group: Reference | str, object_id: bytes | str | None = None) -> Reference:
        """Pass requests on to a group, for clients that cannot multicast; a reference that says so, too."""
        reference = as_reference(group)
        for way in reference.multicast():
            through = self.activate(Gateway(reference, partial(self.channels.send, way)), object_id)
            (own,) = through.iiop()
            components = (*own.components, *(each for each in way.components if each.tag == TAG_GROUP))
            return Reference(
                reference.type_id, (*reference.profiles, encode_iiop(replace(own, components=components)))
            )
        raise NotAGroupObject("This reference does not say where the group is reached by multicast.")

    async def settled(self) -> None:
        """Wait until the channels that memberships need are open, and all others closed."""
        while self._following:
            await asyncio.wait(self._following)

    def _follow(self) -> None:
        task = asyncio.get_running_loop().create_task(self._follow_memberships())
        self._following.add(task)
        task.add_done_callback(self._following.discard)

    async def _follow_memberships(self) -> None:
        try:
            await self.channels.follow()
        except IngaError as error:
            report("orb.unjoined", "a group cannot be joined: %s", error)

    # Objects of others

    def proxy(self, cls: type[T], reference: Reference | str, *, deadline: float | None = None) -> T:
        """An object that has the methods of `cls` and calls another with them; `deadline` in place of the Orb's."""
        return cast(T, OrbProxy(self, interface_of(cls), as_reference(reference), _checked(deadline)))

    async def is_a(self, reference: Reference | str, cls: type) -> bool:
        """Ask an object whether it has an interface."""
        implicit: Any = self.proxy(ImplicitObject, reference)
        answer: bool = await implicit.is_a(interface_of(cls).repository_id)
        return answer

    async def invoke(
        self, reference: Reference, called: Operation, arguments: list[Any], deadline: float | None = None
    ) -> Any:
        """Call an operation by its declaration."""
        return await self._invoke(OutgoingCall(called, arguments, reference, called.oneway), deadline)

    async def _invoke(self, call: OutgoingCall, deadline: float | None) -> Any:
        seconds = self.deadline if deadline is None else deadline
        return await answered_within(self._carry_out(call), seconds, call.called.where)

    async def _carry_out(self, call: OutgoingCall) -> Any:
        while True:
            with _decoding_references():
                way = ways(call.reference, oneway=call.oneway)
            if isinstance(way, Uipmc):
                return await self._multicast(call, way)
            outcome = await self._first_reached(call, way)
            if outcome is not None:
                return outcome.value

    async def _first_reached(self, call: OutgoingCall, found: tuple[Iiop, ...]) -> Answered | None:
        """Try one way after the other, as long as no server was reached that could have begun the request."""
        for last, way in enumerate(found, 1 - len(found)):
            try:
                with _decoding_references():
                    endpoint, make = self._endpoint(way), call.writer(way, little=self._little)
                if call.oneway:
                    await self.client.send(endpoint, make)
                    return Answered(None)
                return call.take(await self.client.call(endpoint, make))
            except SystemException as error:
                if last == 0 or error.completed != "no" or error.name != "TRANSIENT":
                    raise
        raise AssertionError("a reference without profiles was refused before")

    def _endpoint(self, way: Iiop) -> Endpoint:
        """Where to connect to. An Orb with TLS makes no unencrypted calls, whatever a reference says."""
        if self.tls is None:
            if way.port:
                return Endpoint(way.host, way.port)
            why = f"the object at {way.host} is reached by TLS only: Orb(tls=...)"
        elif (secure := way.secure) is None:
            why = f"{address_text(way.host, way.port)} is not reached by TLS, and nothing is called in the clear"
        elif not self.tls.calls:
            why = "the Orb was given no TLS context to call with"
        else:
            return Endpoint(way.host, secure.port, tls=True, member=way.member)
        raise SystemException("NO_PERMISSION", why, completed="no")

    async def _multicast(self, call: OutgoingCall, way: Uipmc) -> None:
        self._request_number = self._request_number % REQUEST_ID_MAX + 1
        with _decoding_references():
            make = call.writer(way, little=self._little)
        await self.channels.send(way, make(self._request_number))


class OrbProxy:
    """The methods of an interface, called on a remote object. Made by `Orb.proxy`."""

    def __init__(
        self, orb: Orb, declared: IdlInterface, reference: Reference, deadline: float | None
    ) -> None:
        self._orb = orb
        self._declared = declared
        self._deadline = deadline
        self._methods = {each.method: each for each in declared.operations.values()}
        self.__reference__ = reference  # no operation has such a name

    def __getattr__(self, name: str) -> Callable[..., Any]:
        called = self.__dict__["_methods"].get(name) if "_methods" in self.__dict__ else None
        if called is None:
            raise AttributeError(f"{self._declared.repository_id} has no method {name!r}")
        return partial(_call, self, called)

    def __repr__(self) -> str:
        return f"<proxy of {self._declared.repository_id}>"


async def _call(proxy: OrbProxy, called: Operation, /, *arguments: Any, **named: Any) -> Any:
    call = OutgoingCall(called, called.bind(arguments, named), proxy.__reference__, called.oneway)
    try:
        return await proxy._orb._invoke(call, proxy._deadline)
    finally:
        if call.moved is not None:
            proxy.__reference__ = call.moved  # permanently, whatever the outcome of this request


def within(proxy: T, seconds: float) -> T:
    """The same proxy with another deadline; with 0, a call does not wait at all."""
    assert isinstance(proxy, OrbProxy)
    return cast(T, OrbProxy(proxy._orb, proxy._declared, proxy.__reference__, _checked(seconds)))


@contextmanager
def _decoding_references() -> Iterator[None]:
    """Whatever cannot be decoded is a damaged profile or component of the reference that is called."""
    try:
        yield
    except WireError as error:
        raise SystemException("INV_OBJREF", str(error), completed="no") from None


def _checked(deadline: Any) -> float | None:
    if deadline is None or (isinstance(deadline, int | float) and deadline >= 0):
        return deadline
    raise UsageError(f"A deadline is a number of seconds, not {deadline!r}.")


def as_reference(reference: Any) -> Reference:
    """A reference, given as itself, as text, or by a proxy."""
    if isinstance(reference, str):
        return read(reference)
    found = reference.__reference__ if isinstance(reference, OrbProxy) else reference
    if not isinstance(found, Reference):
        raise UsageError(f"{reference!r} is no reference.")
    return found
