"""The broker of objects, without its network: references, dispatch, replies.

A servant is an object whose class declares an interface. An adapter keeps servants under object ids; the key in a
reference leads to one of them. A request comes in as a decoded GIOP message and becomes invocations: one for an
object, one for each member of a group. The driver calls them, since a method may be a coroutine, and hands the
outcome back for the reply:

    KeyAddr            the servant under that key
    ProfileAddr        TAG_INTERNET_IOP: as above; TAG_UIPMC: all members of the group
    ReferenceAddr      as the selected profile

Groups are told apart by (domain, group id, version). One object id may belong to several groups and a group may have
several ids; an id without an active servant is skipped.

A request over a connection may say which version of a group's reference its caller uses (FT-CORBA's FT_GROUP_VERSION). If its object
is a member of that group, the version is compared with the newest that is known here:

    the same    the request is executed
    older       nothing is executed; the caller gets the newest reference permanently (LOCATION_FORWARD_PERM), and calls that
    newer       INV_OBJREF: no such version is known here

An object that is a member of several groups accepts any version: a request does not say which group it means.
"""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from inga.corba.broker.idl import (
    IdlInterface,
    Operation,
    SystemException,
    UserException,
    interface,
    interface_of,
    operation,
)
from inga.corba.wire import giop
from inga.corba.wire.cdr import Decoder, Encoder
from inga.corba.wire.giop import (
    CODE_SETS,
    Decoded,
    KeyAddr,
    LocateReply,
    LocateRequest,
    LocateStatus,
    ProfileAddr,
    Reply,
    Request,
    Status,
    SystemFailure,
    Tagged,
    TargetAddress,
)
from inga.corba.wire.group_request import GroupRequest, encode_request
from inga.corba.wire.reference import (
    TAG_INTERNET_IOP,
    TAG_UIPMC,
    Iiop,
    Reference,
    Uipmc,
    decode_iiop,
    put_reference,
)
from inga.model.errors import IngaError, RemoteError, UsageError, WireError

UTF_8, LATIN_1, ASCII, UTF_16 = 0x05010001, 0x00010001, 0x00010020, 0x00010109
"""Code sets by their numbers in the registry of the Open Group."""
CODECS = {UTF_8: "utf-8", LATIN_1: "latin-1", ASCII: "latin-1"}
TEXT_UNAGREED = "latin-1"
"""The encoding of strings where none was agreed on."""
EXCEPTION_DETAIL = 14
"""The service context in which a reply has the text of its exception."""
FT_GROUP_VERSION = 12
"""The service context with the version of the group reference that a caller uses."""
KEY_MAX = 1024
DETAIL_MAX = 500
"""Characters of an exception's text that are sent along."""

GroupKey = tuple[str, int, int]


class NotAGroupObject(UsageError):
    """A reference without the identity of a group, where a group is needed."""


class ForwardRequest(IngaError):
    """Raised by a servant: the object is at another reference now, and the client should send the request there."""

    def __init__(self, reference: Reference, *, permanent: bool = False) -> None:
        super().__init__(f"forwarded to {reference.type_id or 'another object'}")
        self.reference = reference
        self.permanent = permanent


class Adapter:
    """Servants under their ids, and which of them are members of which group."""

    def __init__(self, name: str, keys: dict[bytes, tuple["Adapter", bytes]], broker: "Broker") -> None:
        self.name = name
        self._broker = broker
        self._prefix = f"{name}/".encode() if name else b""
        self._keys = keys  # shared by the adapters of a broker: no key leads to two objects
        self._servants: dict[bytes, Any] = {}
        self._groups: dict[GroupKey, dict[bytes, None]] = {}
        self._number = 0

    def activate(self, servant: Any, object_id: bytes | None = None) -> bytes:
        """Make an object callable; return its id, a new one unless it is given."""
        interface_of(servant)
        if object_id is None:
            object_id = self._new_id()
        key = self.key(object_id)
        if not 0 < len(key) <= KEY_MAX:
            raise UsageError(f"An object id of {len(object_id)} octets: there are 1 to {KEY_MAX}.")
        if object_id in self._servants or self._keys.get(key, (self, object_id)) != (self, object_id):
            raise UsageError(
                f"There is an object under {object_id!r} already: deactivate it, or take another id."
            )
        self._servants[object_id] = servant
        self._keys[key] = self, object_id
        return object_id

    def deactivate(self, object_id: bytes) -> None:
        """Let an object be called no longer. Its id stays a member of its groups, for the next object that is activated under it."""
        if self._servants.pop(object_id, None) is None:
            raise UsageError(f"There is no object under {object_id!r}.")
        del self._keys[self.key(object_id)]

    def servant(self, object_id: bytes) -> Any | None:
        """The object under an id."""
        return self._servants.get(object_id)

    def object_id(self, servant: Any) -> bytes | None:
        """The id under which an object is active."""
        return next((each for each, active in self._servants.items() if active is servant), None)

    def key(self, object_id: bytes) -> bytes:
        """The key by which references name an object of this adapter."""
        return self._prefix + object_id

    def create_id_for_reference(self, reference: Reference) -> bytes:
        """Make a new id a member of the group, and return it; `activate` a servant under it."""
        group_key(reference)
        object_id = self._new_id()
        self.associate_reference_with_id(reference, object_id)
        return object_id

    def associate_reference_with_id(self, reference: Reference, object_id: bytes) -> None:
        """Make an id a member of a group."""
        group = group_key(reference)
        self._groups.setdefault(group, {})[object_id] = None
        self._broker.joined(group, reference)

    def disassociate_reference_with_id(self, reference: Reference, object_id: bytes) -> None:
        """Remove an id from a group."""
        members = self._groups.get(group_key(reference), {})
        if members.pop(object_id, False) is False:
            raise UsageError(f"{object_id!r} is no member of this group.")
        if not members:
            del self._groups[group_key(reference)]
        self._broker.on_change()

    def reference_to_ids(self, reference: Reference) -> list[bytes]:
        """The ids of this adapter that are members of a group."""
        return list(self._groups.get(group_key(reference), ()))

    def members(self, group: GroupKey) -> Iterator[Any]:
        """The objects of this adapter to which a request to a group goes."""
        for object_id in self._groups.get(group, ()):
            if (servant := self._servants.get(object_id)) is not None:
                yield servant

    @property
    def groups(self) -> frozenset[GroupKey]:
        """The groups that have members here."""
        return frozenset(self._groups)

    def groups_of(self, object_id: bytes) -> set[tuple[str, int]]:
        """The groups that an id is a member of, without their versions."""
        return {group[:2] for group, members in self._groups.items() if object_id in members}

    def _new_id(self) -> bytes:
        while True:
            self._number += 1
            object_id = b"%d" % self._number
            if self.key(object_id) not in self._keys and not any(
                object_id in each for each in self._groups.values()
            ):
                return object_id


class Broker:
    """All adapters of a process; dispatches the requests to their objects."""

    def __init__(self) -> None:
        self._keys: dict[bytes, tuple[Adapter, bytes]] = {}
        self._adapters: dict[str, Adapter] = {}
        self._places: dict[GroupKey, Uipmc] = {}
        self._newest: dict[tuple[str, int], Reference] = {}  # of the groups that objects here were members of
        self.managed: Callable[[str, int], Reference | None] = lambda domain, number: (
            None
        )  # the newest reference that a manager in this process has
        self.on_change: Callable[[], None] = lambda: None  # the driver's: called when memberships change
        self.root = self.adapter("")

    def adapter(self, name: str) -> Adapter:
        """The adapter of that name, made when first requested."""
        if name not in self._adapters:
            self._adapters[name] = Adapter(name, self._keys, self)
        return self._adapters[name]

    @property
    def groups(self) -> frozenset[GroupKey]:
        """The groups that have members in this process."""
        return frozenset().union(*(each.groups for each in self._adapters.values()))

    @property
    def places(self) -> list[Uipmc]:
        """The ways by which requests to those groups arrive."""
        return [self._places[group] for group in self.groups if group in self._places]

    def joined(self, group: GroupKey, reference: Reference) -> None:
        """An adapter has a new member of a group: note how the group is reached, and its newest reference."""
        for way in reference.multicast():
            self._places[group] = way
            break
        known = self._newest.get(group[:2])
        if known is None or group_key(known)[2] <= group[2]:
            self._newest[group[:2]] = reference
        self.on_change()

    def servant(self, key: bytes) -> Any | None:
        """The object under a key."""
        adapter, object_id = self._keys.get(key, (None, b""))
        return None if adapter is None else adapter.servant(object_id)

    def locate(self, decoded: Decoded) -> bytes:
        """The reply to a LocateRequest."""
        message = decoded.message
        assert isinstance(message, LocateRequest)
        try:
            here = self.servant(_key(message.target)) is not None
        except (SystemException, WireError):
            here = False
        status = LocateStatus.OBJECT_HERE if here else LocateStatus.UNKNOWN_OBJECT
        header = decoded.header
        return giop.encode(LocateReply(message.request_id, status), minor=header.minor, little=header.little)

    def request(self, decoded: Decoded) -> "ServantCall | bytes | None":
        """Dispatch a Request over a connection: the call to make, or if it fails at once the reply, None if none is wanted."""
        message = decoded.message
        assert isinstance(message, Request)
        exchange = Exchange.of(decoded, message)
        try:
            key = _key(message.target)
            servant = self.servant(key)
            if servant is None:
                raise SystemException("OBJECT_NOT_EXIST", completed="no")
            if message.contexts:
                self._check_version(key, message.contexts)
            return ServantCall.of(exchange, servant, decoded.body)
        except (RemoteError, WireError, ForwardRequest) as error:
            return exchange.failed(None, error)

    def _check_version(self, key: bytes, contexts: tuple[Tagged, ...]) -> None:
        """Refuse a request whose caller uses another than the newest reference of the group."""
        used = used_version(contexts)
        if used is None:
            return
        adapter, object_id = self._keys[key]
        groups = adapter.groups_of(object_id)
        if len(groups) != 1:
            return
        (group,) = groups
        known = [each for each in (self._newest.get(group), self.managed(*group)) if each is not None]
        newest = max(known, key=lambda reference: group_key(reference)[2])
        version = group_key(newest)[2]
        if used < version:
            raise ForwardRequest(newest, permanent=True)
        if used > version:
            raise SystemException(
                "INV_OBJREF", f"version {used} of the group; known here is {version}", completed="no"
            )

    def group_request(self, request: GroupRequest) -> "list[ServantCall]":
        """Dispatch a request to a group: the calls to make, one for each member here that can execute it.

        If none can, it raises WireError, whose reason is the counter to increment: no_such_group, bad_operation, bad_args.
        """
        group = request.group[:3]
        if not any(group in each._groups for each in self._adapters.values()):
            raise WireError("no_such_group", f"{request.group}")
        exchange = Exchange(
            Request(request.request_id, KeyAddr(b""), request.operation, response_flags=0), 2, False, "utf-8"
        )
        try:
            text = agreed_text(request.contexts) or TEXT_UNAGREED
        except (SystemException, WireError) as error:
            raise WireError("bad_args", str(error)) from None
        found = []
        refused: WireError | None = None
        for adapter in self._adapters.values():
            for servant in adapter.members(group):
                if isinstance(servant, Gateway):
                    continue  # It would send the request to the group again, without end.
                own = request.arguments.copy()  # Each member decodes arguments of its own.
                own.text = text
                try:
                    found.append(ServantCall.of(exchange, servant, own))
                except SystemException as error:
                    refused = WireError("bad_operation", str(error))
                except WireError as error:
                    refused = WireError("bad_args", str(error))
        if refused is not None and not found:
            raise refused
        return found


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request, and the format of its reply."""

    request: Request
    minor: int
    little: bool
    text: str

    @classmethod
    def of(cls, decoded: Decoded, message: Request) -> "Exchange":
        """The exchange of a request that arrived over a connection."""
        return cls(message, decoded.header.minor, decoded.header.little, decoded.body.text)

    @property
    def wants_reply(self) -> bool:
        """Whether the client waits for a reply."""
        return self.request.expects_reply

    def reply(self, status: Status, body: Callable[[Encoder], None] | None, detail: str = "") -> bytes | None:
        """The encoded reply; None for a oneway request."""
        if not self.wants_reply:
            return None
        contexts = (_detail_context(detail),) if detail else ()
        return giop.encode(
            Reply(self.request.request_id, status, contexts),
            body,
            minor=self.minor,
            little=self.little,
            text=self.text,
        )

    def failed(self, called: Operation | None, error: BaseException) -> bytes | None:
        """The reply with an exception."""
        if isinstance(error, ForwardRequest):
            status = Status.LOCATION_FORWARD
            if error.permanent and self.minor >= 2:
                status = Status.LOCATION_FORWARD_PERM
            reference = error.reference
            return self.reply(status, lambda out: put_reference(out, reference))
        if isinstance(error, UserException) and called and error.repository_id in called.raises:
            raised = error
            try:
                return self.reply(
                    Status.USER_EXCEPTION, lambda out: called.put_exception(out, raised), raised.text
                )
            except UsageError as wrong:
                error = wrong
        system = as_system_exception(error)
        completed = SystemException.COMPLETED.index(system.completed)
        failure = SystemFailure(system.repository_id, system.minor, completed)
        return self.reply(Status.SYSTEM_EXCEPTION, lambda out: giop.put_failure(out, failure), system.text)


@dataclass(frozen=True, slots=True)
class ServantCall:
    """One method to be called on one servant."""

    exchange: Exchange
    servant: Any
    called: Operation
    arguments: list[Any]

    @classmethod
    def of(cls, exchange: Exchange, servant: Any, body: Decoder) -> "ServantCall":
        """The call that a request asks for at a servant."""
        name = exchange.request.operation
        if isinstance(servant, Gateway):
            declared = servant.declared
            called = None if name.startswith("_") else _PASS_ON
            if called is not None:
                return cls(exchange, servant, called, [servant._rewritten(exchange, body)])
        else:
            declared = interface_of(servant)
            called = declared.operations.get(name)
        if called is None:
            called = interface_of(ImplicitObject).operations.get(name)
            if called is None:
                raise SystemException("BAD_OPERATION", f"there is no operation {name[:80]!r}", completed="no")
            servant = ImplicitObject(declared)
        return cls(exchange, servant, called, called.get_arguments(body))

    def call(self) -> Any:
        """Call the method. The result may have to be awaited."""
        return getattr(self.servant, self.called.method)(*self.arguments)

    def returned(self, value: Any) -> bytes | None:
        """The reply with what the method returned."""
        if self.called.oneway and self.exchange.wants_reply:
            return self.exchange.reply(Status.NO_EXCEPTION, None)
        if not self.exchange.wants_reply:
            return None
        try:
            return self.exchange.reply(Status.NO_EXCEPTION, lambda out: self.called.put_results(out, value))
        except UsageError as error:
            return self.failed(SystemException("MARSHAL", str(error), completed="yes"))

    def failed(self, error: BaseException) -> bytes | None:
        """The reply with what the method raised."""
        return self.exchange.failed(self.called, error)


@interface("IDL:omg.org/CORBA/Object:1.0")
class ImplicitObject:
    """The operations that every object has."""

    def __init__(self, declared: IdlInterface) -> None:
        self._declared = declared

    @operation("_is_a")
    def is_a(self, repository_id: str) -> bool:
        """Whether the object can be used as that interface."""
        return self._declared.is_a(repository_id)

    @operation("_non_existent")
    def non_existent(self) -> bool:
        """Whether the object does not exist any more: never, if this method is called."""
        return False

    @operation("_not_existent")
    def not_existent(self) -> bool:
        """The same under the name that some clients of GIOP 1.0 and 1.1 use."""
        return False

    @operation("_repository_id")
    def repository_id(self) -> str:
        """The repository id of the object's most derived interface."""
        return self._declared.repository_id

    @operation("_component")
    def component(self) -> Reference | None:
        """The component that the object belongs to: none."""
        return None

    @operation("_interface")
    def interface(self) -> Reference | None:
        """Refused: there is no interface repository."""
        raise SystemException("INTF_REPOS", "there is no interface repository", completed="no")


@interface("IDL:omg.org/CORBA/Object:1.0")
class Gateway:
    """Passes oneway requests on to a group, for clients that cannot multicast. It needs no knowledge of types."""

    def __init__(self, reference: Reference, send: Callable[[bytes], Awaitable[None]]) -> None:
        """`send` takes a request as octets, to the group of the reference."""
        group_key(reference)
        self._profile = next((each for each in reference.profiles if each.tag == TAG_UIPMC), None)
        if self._profile is None:
            raise NotAGroupObject("This reference does not say where the group is reached by multicast.")
        self._send = send
        self.declared = IdlInterface(reference.type_id, (reference.type_id,), {})

    @operation("_pass_on")
    async def pass_on(self, request: bytes) -> None:
        """Send a request to the group."""
        await self._send(request)

    def _rewritten(self, exchange: Exchange, body: Decoder) -> bytes:
        """The request to send to the group: the same but for the target."""
        asked = exchange.request
        if exchange.wants_reply:
            raise SystemException("NO_IMPLEMENT", "a group answers nothing", completed="no")
        if body.remaining and body.at % 8:
            raise SystemException(
                "NO_IMPLEMENT", "arguments are passed on from GIOP 1.2 only", completed="no"
            )
        contexts = asked.contexts
        if not any(each.tag == CODE_SETS for each in contexts):  # agreed on by an earlier request, or never
            contexts = (*contexts, code_set_context(UTF_8 if exchange.text == "utf-8" else LATIN_1))
        assert self._profile is not None
        return encode_request(
            asked.request_id,
            self._profile,
            asked.operation,
            body.rest(),
            contexts=contexts,
            little=exchange.little,
        )


_PASS_ON = interface_of(Gateway).operations["_pass_on"]


# Helpers


@cache
def code_set_context(number: int) -> Tagged:
    """The service context that announces the code sets of strings."""
    out = Encoder.encapsulation()
    out.ulong(number)
    out.ulong(UTF_16)
    return Tagged(CODE_SETS, out.data())


def group_key(reference: Reference) -> GroupKey:
    """The identity of the group that a reference names."""
    named: list[Uipmc | Iiop] = [*reference.multicast(), *reference.iiop()]
    for way in named:
        if way.group is not None:
            return way.group.domain, way.group.group_id, way.group.ref_version
    raise NotAGroupObject("This reference does not name a group.")


def version_context(version: int) -> Tagged:
    """The service context that says which version of a group's reference is used."""
    out = Encoder.encapsulation()
    out.ulong(version)
    return Tagged(FT_GROUP_VERSION, out.data())


def used_version(contexts: tuple[Tagged, ...]) -> int | None:
    """The version of the group's reference that a caller uses; None if it does not say."""
    for tag, data in contexts:
        if tag == FT_GROUP_VERSION:
            return Decoder.encapsulation(data).ulong()
    return None


def agreed_text(contexts: tuple[Tagged, ...]) -> str | None:
    """The code set that a client announces for its strings; None if it does not."""
    for tag, data in contexts:
        if tag == CODE_SETS:
            number = Decoder.encapsulation(data).ulong()
            if number not in CODECS:
                raise SystemException(
                    "CODESET_INCOMPATIBLE", f"code set {number:#x} is not known", completed="no"
                )
            return CODECS[number]
    return None


def as_system_exception(error: BaseException) -> SystemException:
    """The system exception as which an undeclared exception is sent."""
    match error:
        case SystemException():
            return error
        case WireError():
            return SystemException("MARSHAL", str(error), completed="no")
        case NotImplementedError():
            return SystemException("NO_IMPLEMENT", str(error), completed="no")
        case _:
            return SystemException("UNKNOWN", f"{type(error).__name__}: {error}")


def detail_of(contexts: tuple[Tagged, ...]) -> str:
    """The text of the exception in a reply, empty if it has none."""
    for tag, data in contexts:
        if tag == EXCEPTION_DETAIL:
            try:
                return Decoder.encapsulation(data).wstring()
            except WireError:
                return ""
    return ""


def _detail_context(text: str) -> Tagged:
    out = Encoder.encapsulation()
    out.wstring(text[:DETAIL_MAX].encode("utf-8", "replace").decode())
    return Tagged(EXCEPTION_DETAIL, out.data())


def _key(target: TargetAddress) -> bytes:
    """The object key of a target in any form."""
    if isinstance(target, KeyAddr):
        return target.key
    profile = target.profile if isinstance(target, ProfileAddr) else target.profiles[target.selected]
    if profile.tag != TAG_INTERNET_IOP:
        raise SystemException(
            "INV_OBJREF", f"profile {profile.tag} is not called over a connection", completed="no"
        )
    return decode_iiop(profile.data).key
