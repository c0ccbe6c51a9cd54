"""An outgoing call: which way it goes, how it is encoded, what its reply means.

The reference decides the way. A oneway operation of a group goes to all members by multicast; every other call
goes over a connection: to the object itself, to the one that answers for a group (TAG_GROUP_IIOP), or
to the gateway of a group.

    reply                      what follows
    NO_EXCEPTION               the results are returned
    USER_EXCEPTION             a declared exception is raised, UNKNOWN if it is not declared
    SYSTEM_EXCEPTION           a SystemException is raised
    LOCATION_FORWARD           the request is sent again to the reference in the reply, and so are later ones if it is permanent (`_PERM`)
    NEEDS_ADDRESSING_MODE      the request is sent again with the target in another form
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

from inga.corba.broker.dispatch import (
    CODECS,
    LATIN_1,
    UTF_8,
    UTF_16,
    NotAGroupObject,
    code_set_context,
    detail_of,
    group_key,
    version_context,
)
from inga.corba.broker.idl import Operation, SystemException
from inga.corba.wire import giop
from inga.corba.wire.cdr import Decoder, Encoder
from inga.corba.wire.giop import (
    CODE_SETS,
    Addressing,
    Decoded,
    KeyAddr,
    ProfileAddr,
    ReferenceAddr,
    Reply,
    Request,
    Status,
    Tagged,
    TargetAddress,
)
from inga.corba.wire.reference import (
    TAG_INTERNET_IOP,
    TAG_UIPMC,
    Iiop,
    Reference,
    Uipmc,
    encode_iiop,
    get_reference,
)
from inga.model.errors import UsageError, WireError

FORWARDS_MAX = 8
"""How often a request is forwarded before we take it for going in circles."""
REFERENCES_MAX = 1024
"""References whose ways are cached."""
_CORBA = "IDL:omg.org/CORBA/"


class Answered(NamedTuple):
    """What the operation returned."""

    value: Any


@lru_cache(maxsize=REFERENCES_MAX)
def ways(reference: Reference, *, oneway: bool) -> tuple[Iiop, ...] | Uipmc:
    """Where a request can go: to a group, or to one of several IIOP servers, in the order in which to try them."""
    if reference.is_nil:
        raise UsageError("A nil reference leads to no object: look whether it is nil before it is called.")
    groups = list(reference.multicast())
    if oneway and groups:
        return groups[0]
    found = [each.group_iiop for each in groups]
    connected = (*(each for each in found if each is not None), *reference.iiop())
    if connected:
        return connected
    if groups:
        raise UsageError(
            "A group answers nothing: only oneway operations can be called, unless its reference names an object "
            "that answers for it (;iiop:HOST:PORT/KEY)."
        )
    raise UsageError(
        "This reference has no profile by which the object could be reached: ask whoever made it for one with an IIOP or UIPMC profile."
    )


@lru_cache(maxsize=REFERENCES_MAX)
def version_contexts(reference: Reference) -> tuple[Tagged, ...]:
    """The service context with the version of a group's reference, for a request over a connection; none for other references."""
    try:
        return (version_context(group_key(reference)[2]),)
    except NotAGroupObject:
        return ()


@lru_cache(maxsize=REFERENCES_MAX)
def code_set(way: Iiop) -> int:
    """The code set of strings that go that way: the first of ours that the server knows."""
    for tag, data in way.components:
        if tag == CODE_SETS:
            decoder = Decoder.encapsulation(data)
            native = decoder.ulong()
            others = [decoder.ulong() for _ in range(decoder.count(4))]
            return UTF_8 if UTF_8 in (native, *others) else LATIN_1
    return UTF_8


def code_set_component() -> Tagged:
    """The code sets in our references: UTF-8 and UTF-16 preferred, Latin-1 understood."""
    out = Encoder.encapsulation()
    for native, others in ((UTF_8, (LATIN_1,)), (UTF_16, ())):
        out.ulong(native)
        out.ulong(len(others))
        for each in others:
            out.ulong(each)
    return Tagged(CODE_SETS, out.data())


@dataclass(slots=True)
class OutgoingCall:
    """One call, until its reply has been decoded."""

    called: Operation
    arguments: list[Any]
    reference: Reference
    """The target: another one once the request was forwarded."""
    oneway: bool = False
    addressing: Addressing = Addressing.KEY
    text: str = "utf-8"
    forwards: int = 0
    moved: Reference | None = None
    """The target of later requests, if this one was forwarded permanently."""

    def writer(self, way: Iiop | Uipmc, *, little: bool = False) -> Callable[[int], bytes]:
        """A function that encodes the request for that way, given a request id. Arguments that their types cannot hold raise here."""
        if isinstance(way, Uipmc):
            minor, number = giop.MINOR_MAX, UTF_8
            target: TargetAddress = ProfileAddr(
                next(each for each in self.reference.profiles if each.tag == TAG_UIPMC)
            )
        else:
            minor = min(way.version[1], giop.MINOR_MAX)
            number = code_set(way) if minor else LATIN_1  # GIOP 1.0 knows no other
            target = self._target(way)
        self.text = CODECS[number]
        contexts: tuple[Tagged, ...] = (code_set_context(number),) if minor else ()
        if isinstance(way, Iiop):
            contexts += version_contexts(self.reference)
        arguments = Encoder(little=little, text=self.text)
        self.called.put_arguments(arguments, self.arguments)
        # Where bodies are aligned (GIOP 1.2), these octets are the body; elsewhere the encoding depends on the head before it.
        body: giop.BodyWriter | bytes = arguments.data()
        if minor < 2:
            body = partial(self.called.put_arguments, arguments=self.arguments)
        flags = 0 if self.oneway else 3

        def write(request_id: int) -> bytes:
            request = Request(request_id, target, self.called.name, flags, contexts)
            return giop.encode(request, body, minor=minor, little=little, text=self.text)

        return write

    def take(self, decoded: Decoded) -> Answered | None:
        """Decode the reply: the outcome, or None if the request, as the reply has changed it, has to be sent again. Raises its exception."""
        message, body = decoded.message, decoded.body
        if not isinstance(message, Reply):
            raise SystemException(
                "MARSHAL", f"{self.called.where}: an answer that is no Reply", completed="maybe"
            )
        body.text = self.text
        try:
            return self._understood(message, body)
        except WireError as error:
            raise SystemException(
                "MARSHAL", f"{self.called.where}, the reply: {error}", completed="yes"
            ) from None

    def _understood(self, message: Reply, body: Decoder) -> Answered | None:
        match message.status:
            case Status.NO_EXCEPTION:
                return Answered(self.called.get_results(body))
            case Status.USER_EXCEPTION:
                raise self.called.get_exception(body, detail_of(message.contexts))
            case Status.SYSTEM_EXCEPTION:
                raise _system_exception(body, detail_of(message.contexts))
            case Status.NEEDS_ADDRESSING_MODE:
                mode = body.short()
                if mode not in list(Addressing):
                    raise WireError("malformed", f"addressing mode {mode}")
                self.addressing = Addressing(mode)
            case status:
                self.reference = get_reference(body)
                if status is Status.LOCATION_FORWARD_PERM:
                    self.moved = self.reference
        self.forwards += 1
        if self.forwards > FORWARDS_MAX:
            raise SystemException("TRANSIENT", "the request was forwarded in circles", completed="no")
        return None

    def _target(self, way: Iiop) -> TargetAddress:
        if self.addressing is Addressing.KEY or way.version < (1, 2):
            return KeyAddr(way.key)
        if self.addressing is Addressing.PROFILE:
            return ProfileAddr(encode_iiop(way))
        profiles = self.reference.profiles
        selected = next((at for at, each in enumerate(profiles) if each.tag == TAG_INTERNET_IOP), 0)
        return ReferenceAddr(selected, self.reference.type_id, profiles)


def _system_exception(body: Decoder, detail: str) -> SystemException:
    failure = giop.get_failure(body)
    name = failure.exception_id.removeprefix(_CORBA).removesuffix(":1.0")
    return SystemException(
        name, detail, minor=failure.minor, completed=SystemException.COMPLETED[failure.completed]
    )
