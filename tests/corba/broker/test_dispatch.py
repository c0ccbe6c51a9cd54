"""The broker without a network: adapters, dispatch by every form of target, replies, groups, calls."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.corba.broker.call import Answered, OutgoingCall, code_set, code_set_component, ways
from inga.corba.broker.dispatch import (
    EXCEPTION_DETAIL,
    FT_GROUP_VERSION,
    Broker,
    Exchange,
    ForwardRequest,
    Gateway,
    NotAGroupObject,
    ServantCall,
    agreed_text,
    code_set_context,
    detail_of,
)
from inga.corba.broker.idl import (
    Long,
    SystemException,
    UserException,
    interface,
    interface_of,
    oneway,
    raises,
    user_exception,
)
from inga.corba.wire import giop
from inga.corba.wire.cdr import Encoder
from inga.corba.wire.giop import (
    CODE_SETS,
    Addressing,
    KeyAddr,
    LocateReply,
    LocateRequest,
    LocateStatus,
    ProfileAddr,
    ReferenceAddr,
    Reply,
    Request,
    Status,
    Tagged,
    decode,
    encode,
)
from inga.corba.wire.group_request import GroupRequest, decode_request
from inga.corba.wire.reference import (
    GroupIdentity,
    Iiop,
    Reference,
    Uipmc,
    encode_iiop,
    group_reference,
    read,
)
from inga.model.errors import UsageError, WireError


@user_exception("IDL:test/Overdrawn:1.0")
class Overdrawn(UserException):
    balance: Long


@user_exception("IDL:test/Secret:1.0")
class Secret(UserException):
    pass


@user_exception("IDL:test/Closed:1.0")
class Closed(UserException):
    """It has no members, but something to say."""


@interface("IDL:test/Account:1.0")
class Account:
    def __init__(self) -> None:
        self.balance = 0
        self.log: list[str] = []

    @raises(Overdrawn)
    def move(self, amount: Long) -> Long:
        if self.balance + amount < 0:
            raise Overdrawn(self.balance)
        self.balance += amount
        return self.balance

    @raises(Closed)
    def close(self, why: str) -> None:
        raise Closed(why) if why else Closed()

    def fail(self, how: str) -> None:
        raise {
            "user": Secret(),
            "value": ValueError("no"),
            "system": SystemException("NO_PERMISSION", "not you", minor=5, completed="no"),
            "later": NotImplementedError("soon"),
        }[how]

    def wrong(self) -> Long:
        return "text"  # type: ignore[return-value]

    def away(self, text: str) -> str:
        raise ForwardRequest(read(text))

    @oneway
    def note(self, text: str) -> None:
        self.log.append(text)


@interface("IDL:test/Dancer:1.0")
class Dancer:
    @oneway
    def dance(self) -> None:
        """To no music."""


ACCOUNT = interface_of(Account)
KEY = KeyAddr(b"account")
GROUP = group_reference("IDL:test/Account:1.0", GroupIdentity("bank", 7, 2), "239.1.2.3", 7000)


@pytest.fixture
def account() -> Account:
    return Account()


@pytest.fixture
def broker(account: Account) -> Broker:
    made = Broker()
    made.root.activate(account, b"account")
    return made


def ask(
    broker: Broker,
    name: str,
    *arguments: Any,
    target: giop.TargetAddress = KEY,
    minor: int = 2,
    little: bool = False,
    flags: int = 3,
    body: Callable[[Encoder], None] | None = None,
) -> giop.Decoded | None:
    """Carry out one request; its reply."""
    called = ACCOUNT.operations.get(name)

    def write(out: Encoder) -> None:
        if called is not None:
            called.put_arguments(out, list(arguments))

    data = encode(Request(9, target, name, flags), body or write, minor=minor, little=little)
    outcome = broker.request(decode(data))
    if isinstance(outcome, ServantCall):
        try:
            outcome = outcome.returned(outcome.call())
        except Exception as error:
            outcome = outcome.failed(error)
    return None if outcome is None else decode(outcome)


def failure(reply: giop.Decoded | None) -> tuple[str, int, int, str]:
    assert reply is not None
    assert isinstance(reply.message, Reply)
    assert reply.message.status is Status.SYSTEM_EXCEPTION
    name, minor, completed = giop.get_failure(reply.body)
    return name.removeprefix("IDL:omg.org/CORBA/"), minor, completed, detail_of(reply.message.contexts)


@pytest.mark.parametrize("minor", [0, 1, 2])
@pytest.mark.parametrize("little", [False, True])
def test_a_reply_is_of_the_version_and_byte_order_of_its_request(
    broker: Broker, minor: int, little: bool
) -> None:
    reply = ask(broker, "move", 30, minor=minor, little=little)
    assert reply is not None
    assert (reply.header.minor, reply.header.little) == (minor, little)
    assert reply.message == Reply(9, Status.NO_EXCEPTION)
    assert reply.body.long() == 30


PROFILE = encode_iiop(Iiop("127.0.0.1", 1, b"account"))


@pytest.mark.parametrize(
    "target", [KEY, ProfileAddr(PROFILE), ReferenceAddr(1, "IDL:x:1.0", (Tagged(77, b""), PROFILE))]
)
def test_targets_in_every_form(broker: Broker, target: giop.TargetAddress) -> None:
    reply = ask(broker, "move", 1, target=target)
    assert reply is not None
    assert reply.body.long() == 1
    located = decode(broker.locate(decode(encode(LocateRequest(4, target)))))
    assert located.message == LocateReply(4, LocateStatus.OBJECT_HERE)


def test_targets_that_lead_nowhere(broker: Broker) -> None:
    for target, name in [
        (KeyAddr(b"nobody"), "OBJECT_NOT_EXIST"),
        (ProfileAddr(Tagged(77, b"x")), "INV_OBJREF"),
        (ProfileAddr(GROUP.profiles[0]), "INV_OBJREF"),
        (ProfileAddr(Tagged(0, b"broken")), "MARSHAL"),
    ]:
        assert failure(ask(broker, "move", 1, target=target))[:1] == (f"{name}:1.0",)
        located = decode(broker.locate(decode(encode(LocateRequest(4, target)))))
        assert located.message == LocateReply(4, LocateStatus.UNKNOWN_OBJECT)


def test_a_declared_exception_travels_as_itself(broker: Broker) -> None:
    reply = ask(broker, "move", -5)
    assert reply is not None
    assert reply.message == Reply(9, Status.USER_EXCEPTION)
    assert (reply.body.string(), reply.body.long()) == ("IDL:test/Overdrawn:1.0", 0)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("user", ("UNKNOWN:1.0", 0, 2, "Secret: Secret")),
        ("value", ("UNKNOWN:1.0", 0, 2, "ValueError: no")),
        ("system", ("NO_PERMISSION:1.0", 5, 1, "not you")),
        ("later", ("NO_IMPLEMENT:1.0", 0, 1, "soon")),
    ],
)
def test_other_exceptions_travel_as_system_exceptions(broker: Broker, how: str, expected: Any) -> None:
    assert failure(ask(broker, "fail", how)) == expected


def test_requests_that_cannot_be_carried_out(broker: Broker) -> None:
    assert failure(ask(broker, "dance"))[0] == "BAD_OPERATION:1.0"
    assert failure(ask(broker, "move", body=lambda out: out.octet(1)))[::2] == (
        "MARSHAL:1.0",
        1,
    )
    name, _, completed, text = failure(ask(broker, "wrong"))
    assert (name, completed) == ("MARSHAL:1.0", 0)
    assert "Account.wrong, result" in text


def test_nobody_waits_for_a_oneway_operation(broker: Broker, account: Account) -> None:
    assert ask(broker, "note", "hi", flags=0) is None
    assert account.log == ["hi"]
    assert ask(broker, "note", "hi", flags=0, target=KeyAddr(b"nobody")) is None
    assert ask(broker, "fail", "value", flags=0) is None
    reply = ask(broker, "note", "there?", flags=1)  # the client wants to know that it was begun
    assert reply is not None
    assert reply.message == Reply(9, Status.NO_EXCEPTION)
    assert reply.body.remaining == 0


def test_what_every_object_can_do(broker: Broker) -> None:
    def said(name: str, *text: str) -> Any:
        reply = ask(broker, name, body=lambda out: [out.string(each) for each in text] and None)
        assert reply is not None
        return reply

    assert said("_is_a", "IDL:test/Account:1.0").body.boolean() is True
    assert said("_is_a", "IDL:omg.org/CORBA/Object:1.0").body.boolean() is True
    assert said("_is_a", "IDL:test/Other:1.0").body.boolean() is False
    assert said("_non_existent").body.boolean() is False
    assert said("_not_existent").body.boolean() is False
    assert said("_repository_id").body.string() == "IDL:test/Account:1.0"
    assert said("_component").body.string() == ""
    assert failure(said("_interface"))[0] == "INTF_REPOS:1.0"


def test_a_servant_may_send_a_request_on(broker: Broker) -> None:
    reply = ask(broker, "away", "corbaloc::127.0.0.1:9/there")
    assert reply is not None
    assert reply.message == Reply(9, Status.LOCATION_FORWARD)
    for minor, status in ((1, Status.LOCATION_FORWARD), (2, Status.LOCATION_FORWARD_PERM)):
        exchange = Exchange(Request(9, KEY, "away"), minor, False, "utf-8")
        answer = exchange.failed(None, ForwardRequest(SINGLE, permanent=True))
        assert answer is not None
        assert decode(answer).message == Reply(9, status)


# Adapters and groups


def test_ids_and_keys() -> None:
    broker = Broker()
    first, second = Account(), Account()
    shop = broker.adapter("shop")
    assert shop is broker.adapter("shop")
    object_id = shop.activate(first)
    assert broker.servant(shop.key(object_id)) is first
    assert shop.object_id(first) == object_id
    with pytest.raises(UsageError, match="already"):
        shop.activate(second, object_id)
    with pytest.raises(UsageError, match="already"):
        broker.root.activate(second, shop.key(object_id))  # no key leads to two objects
    shop.deactivate(object_id)
    assert broker.servant(shop.key(object_id)) is None
    with pytest.raises(UsageError, match="no object under"):
        shop.deactivate(object_id)
    shop.activate(second, object_id)
    with pytest.raises(UsageError, match="no interface"):
        shop.activate(object())
    for wrong in (b"", bytes(2000)):
        with pytest.raises(UsageError, match="octets"):
            broker.root.activate(second, wrong)


def test_members_of_groups() -> None:
    broker = Broker()
    adapter = broker.root
    object_id = adapter.create_id_for_reference(GROUP)
    assert adapter.reference_to_ids(GROUP) == [object_id]
    adapter.associate_reference_with_id(GROUP, b"other")
    adapter.associate_reference_with_id(GROUP, b"other")
    assert adapter.reference_to_ids(GROUP) == [object_id, b"other"]
    assert broker.groups == {("bank", 7, 2)}
    adapter.disassociate_reference_with_id(GROUP, object_id)
    assert adapter.reference_to_ids(GROUP) == [b"other"]
    with pytest.raises(UsageError, match="no member"):
        adapter.disassociate_reference_with_id(GROUP, object_id)
    adapter.disassociate_reference_with_id(GROUP, b"other")
    assert broker.groups == frozenset()
    single = read("corbaloc::127.0.0.1:1/x")
    for refused in (
        lambda: adapter.create_id_for_reference(single),
        lambda: adapter.associate_reference_with_id(single, b"x"),
        lambda: adapter.disassociate_reference_with_id(single, b"x"),
        lambda: adapter.reference_to_ids(single),
    ):
        with pytest.raises(NotAGroupObject):
            refused()


def to_group(broker: Broker, group: Reference, text: str) -> list[ServantCall]:
    call = OutgoingCall(ACCOUNT.operations["note"], [text], group, oneway=True)
    way = ways(group, oneway=True)
    assert isinstance(way, Uipmc)
    return broker.group_request(decode_request(call.writer(way)(1)))


def test_a_request_to_a_group_reaches_every_member_once(broker: Broker, account: Account) -> None:
    shop = broker.adapter("shop")
    others = [Account(), Account()]
    broker.root.associate_reference_with_id(GROUP, b"account")
    for other in others:
        shop.associate_reference_with_id(GROUP, shop.activate(other))
    shop.associate_reference_with_id(GROUP, b"inactive")
    invocations = to_group(broker, GROUP, "grüß λ")
    for each in invocations:
        assert each.returned(each.call()) is None
    assert [each.log for each in (account, *others)] == [["grüß λ"]] * 3
    assert not any(
        first.arguments is second.arguments
        for first in invocations
        for second in invocations
        if first is not second
    )
    newer = group_reference("", GroupIdentity("bank", 7, 3), "239.1.2.3", 7000)
    elsewhere = group_reference("", GroupIdentity("bank", 7, 2), "239.9.9.9", 9)
    with pytest.raises(WireError, match="no_such_group"):
        to_group(broker, newer, "x")
    assert len(to_group(broker, elsewhere, "x")) == 3  # address and port are not compared


def note(operation: str = "note", *contexts: Tagged, text: str | None = "x") -> GroupRequest:
    request = Request(1, ProfileAddr(GROUP.profiles[0]), operation, 0, contexts)
    return decode_request(encode(request, None if text is None else lambda out: out.string(text)))


@pytest.mark.parametrize(
    ("request_", "counter"),
    [
        (note("dance"), "bad_operation"),
        (note(text=None), "bad_args"),
        (note("note", code_set_context(0x12345678)), "bad_args"),
        (note("note", Tagged(CODE_SETS, b"?")), "bad_args"),
    ],
)
def test_what_no_member_can_do_has_a_counter(broker: Broker, request_: GroupRequest, counter: str) -> None:
    with pytest.raises(WireError, match="no_such_group"):
        broker.group_request(note())
    broker.root.associate_reference_with_id(GROUP, b"account")
    assert len(broker.group_request(note())) == 1
    with pytest.raises(WireError, match=counter):
        broker.group_request(request_)


def test_a_member_without_the_operation_is_passed_over(broker: Broker) -> None:
    broker.root.associate_reference_with_id(GROUP, b"account")
    broker.root.associate_reference_with_id(GROUP, broker.root.activate(Dancer()))
    (invocation,) = broker.group_request(note("dance", text=None))
    assert isinstance(invocation.servant, Dancer)


def test_a_gateway_rewrites_the_target_and_nothing_else() -> None:
    sent: list[bytes] = []

    async def send(data: bytes) -> None:
        sent.append(data)

    broker = Broker()
    broker.root.activate(Gateway(GROUP, send), b"gateway")

    def passed(request: Request, minor: int = 2, text: str = "utf-8", **arguments: Any) -> bytes | None:
        data = encode(request, minor=minor, **arguments)
        outcome = broker.request(decode(data, text=text))
        if isinstance(outcome, ServantCall):
            return outcome.returned(asyncio.run(outcome.call()))
        return outcome

    foreign = Tagged(77, b"kept")
    request = Request(3, KeyAddr(b"gateway"), "say", 0, (foreign,))
    assert passed(request, body=lambda out: out.string("hello"), little=True) is None
    got = decode_request(sent.pop())
    assert (got.request_id, got.operation, got.group) == (3, "say", GroupIdentity("bank", 7, 2))
    assert got.contexts[0] == foreign
    assert agreed_text(got.contexts) == "utf-8"
    assert got.arguments.string() == "hello"
    without_arguments = Request(4, KeyAddr(b"gateway"), "end", 0)  # in any version
    assert passed(without_arguments, 1, "latin-1") is None
    assert agreed_text(decode_request(sent.pop()).contexts) == "latin-1"
    for name in ("say", "talk"):  # before 1.2, bodies that are not aligned cannot be moved
        old = Request(5, KeyAddr(b"gateway"), name, 0)
        aligned = decode(encode(old, lambda out: out.string("hello"), minor=1)).body.at % 8 == 0
        assert passed(old, 1, body=lambda out: out.string("hello")) is None
        assert len(sent) == aligned == (name == "say")
        sent.clear()
    told = passed(Request(6, KeyAddr(b"gateway"), "count"))
    assert told is not None
    assert failure(decode(told))[0] == "NO_IMPLEMENT:1.0"
    with pytest.raises(NotAGroupObject):
        Gateway(SINGLE, send)


# Calls

SINGLE = read("corbaloc:iiop:1.2@127.0.0.1:2809/account")
GATEWAY = Iiop("127.0.0.1", 2810, b"gateway")
ANSWERING = Iiop("127.0.0.1", 2811, b"answering")


def test_the_reference_decides_the_way() -> None:
    full = group_reference(
        "", GroupIdentity("bank", 7), "239.1.2.3", 7000, group_iiop=ANSWERING, gateway=GATEWAY
    )
    assert isinstance(ways(GROUP, oneway=True), Uipmc)
    assert isinstance(ways(full, oneway=True), Uipmc)
    found = ways(full, oneway=False)
    assert isinstance(found, tuple)
    assert [each.port for each in found] == [2811, 2810]
    for oneway_too in (False, True):
        found = ways(SINGLE, oneway=oneway_too)
        assert isinstance(found, tuple)
        assert [each.key for each in found] == [b"account"]
    with pytest.raises(UsageError, match="A group answers nothing"):
        ways(GROUP, oneway=False)
    with pytest.raises(UsageError, match="no profile"):
        ways(Reference("", (Tagged(77, b""),)), oneway=False)
    with pytest.raises(UsageError, match="nil"):
        ways(Reference("", ()), oneway=False)


def call_of(name: str, *arguments: Any, reference: Reference = SINGLE) -> OutgoingCall:
    return OutgoingCall(ACCOUNT.operations[name], list(arguments), reference)


def only_way(reference: Reference) -> Iiop:
    found = ways(reference, oneway=False)
    assert isinstance(found, tuple)
    return found[0]


def through(broker: Broker, call: OutgoingCall) -> Any:
    """Send a call to a broker, and what the answer means."""
    outcome = broker.request(decode(call.writer(only_way(call.reference))(5), text=call.text))
    if isinstance(outcome, ServantCall):
        try:
            outcome = outcome.returned(outcome.call())
        except Exception as error:
            outcome = outcome.failed(error)
    assert isinstance(outcome, bytes)
    return call.take(decode(outcome))


def test_a_call_and_its_answer(broker: Broker) -> None:
    assert through(broker, call_of("move", 5)) == Answered(5)
    with pytest.raises(Overdrawn) as caught:
        through(broker, call_of("move", -50))
    assert caught.value.balance == 5
    with pytest.raises(SystemException, match="NO_PERMISSION: not you") as failed:
        through(broker, call_of("fail", "system"))
    assert (failed.value.minor, failed.value.completed) == (5, "no")


@pytest.mark.parametrize(("why", "text"), [("since noon", "since noon"), ("", "Closed")])
def test_an_exception_without_members_may_say_something(broker: Broker, why: str, text: str) -> None:
    """In the words that a system exception has, too; its body stays as others know it."""
    with pytest.raises(Closed) as caught:
        through(broker, call_of("close", why))
    assert (str(caught.value), caught.value.text) == (text, why)
    reply = ask(broker, "close", why)
    assert reply is not None and reply.body.string() == Closed.repository_id
    reply.body.finish()


def test_a_call_is_forwarded_but_not_forever(broker: Broker) -> None:
    call = call_of("away", "corbaloc::127.0.0.1:9/there")
    assert through(broker, call) is None
    assert only_way(call.reference).port == 9
    call = call_of("away", "corbaloc::127.0.0.1:9/account")
    with pytest.raises(SystemException, match="circles"):
        for _ in range(20):
            through(broker, call)


def of_version(version: int, number: int = 7) -> Reference:
    """A group whose questions are answered by the object `account`."""
    answers = Iiop("127.0.0.1", 2809, b"account")
    identity = GroupIdentity("bank", number, version)
    return group_reference("IDL:test/Account:1.0", identity, "239.1.2.3", 7000, group_iiop=answers)


def test_the_version_of_a_group_reference_is_checked(broker: Broker, account: Account) -> None:
    """FT-CORBA: an old one is replaced for good, and nothing is done; one that is too new is refused."""
    old, current, newer = map(of_version, (1, 2, 3))
    broker.root.associate_reference_with_id(current, b"account")
    assert through(broker, call_of("move", 5, reference=current)) == Answered(5)
    call = call_of("move", 5, reference=old)
    assert through(broker, call) is None and account.balance == 5
    assert call.moved == call.reference == current
    assert through(broker, call) == Answered(10)
    with pytest.raises(
        SystemException, match="INV_OBJREF: version 3 of the group; known here is 2"
    ) as caught:
        through(broker, call_of("move", 5, reference=newer))
    assert caught.value.completed == "no" and account.balance == 10
    broker.root.associate_reference_with_id(newer, b"account")
    broker.root.associate_reference_with_id(old, b"account")  # which makes it no older
    for reference, after in ((newer, 15), (SINGLE, 20)):
        assert through(broker, call_of("move", 5, reference=reference)) == Answered(after)
    assert through(broker, call_of("move", 5, reference=current)) is None
    broker.managed = lambda domain, number: of_version(4) if (domain, number) == ("bank", 7) else None
    call = call_of("move", 5, reference=newer)
    assert through(broker, call) is None and call.moved == of_version(4)
    broker.managed = lambda domain, number: None
    broker.root.associate_reference_with_id(of_version(9, number=8), b"account")
    assert through(broker, call_of("move", 5, reference=old)) == Answered(25), "of which group, nobody says"


def test_a_version_that_is_no_number(broker: Broker) -> None:
    broker.root.associate_reference_with_id(of_version(2), b"account")
    data = encode(Request(9, KEY, "close", 3, (Tagged(FT_GROUP_VERSION, b"\0\0"),)), b"", minor=2)
    outcome = broker.request(decode(data))
    assert isinstance(outcome, bytes) and failure(decode(outcome))[0] == "MARSHAL:1.0"


def test_a_oneway_request_with_an_old_reference_is_not_carried_out(broker: Broker, account: Account) -> None:
    broker.root.associate_reference_with_id(of_version(2), b"account")
    for version, heard in ((1, []), (2, ["x"])):
        call = call_of("note", "x", reference=of_version(version))
        call.oneway = True
        outcome = broker.request(decode(call.writer(only_way(call.reference))(5)))
        if isinstance(outcome, ServantCall):
            outcome.call()
        assert account.log == heard


def test_another_form_of_address_on_demand() -> None:
    call = call_of("move", 1)
    for mode, kind in ((Addressing.PROFILE, ProfileAddr), (Addressing.REFERENCE, ReferenceAddr)):
        reply = encode(Reply(5, Status.NEEDS_ADDRESSING_MODE), lambda out, mode=mode: out.short(mode))  # type: ignore[misc]
        assert call.take(decode(reply)) is None
        message = decode(call.writer(only_way(SINGLE))(6)).message
        assert isinstance(message, Request)
        assert isinstance(message.target, kind)
    group = group_reference("", GroupIdentity("bank", 7), "239.1.2.3", 7000, gateway=GATEWAY)
    call = call_of("move", 1, reference=group)
    call.addressing = Addressing.REFERENCE
    message = decode(call.writer(only_way(group))(6)).message
    assert isinstance(message, Request)
    assert message.target == ReferenceAddr(1, "", group.profiles)
    with pytest.raises(SystemException, match=r"MARSHAL.*addressing mode 9"):
        call.take(decode(encode(Reply(5, Status.NEEDS_ADDRESSING_MODE), lambda out: out.short(9))))


def test_answers_that_make_no_sense() -> None:
    call = call_of("move", 1)
    with pytest.raises(SystemException, match=r"MARSHAL.*Account.move, the reply"):
        call.take(decode(encode(Reply(5), lambda out: out.octet(1))))
    with pytest.raises(SystemException, match=r"MARSHAL: .*no Reply"):
        call.take(decode(encode(LocateReply(5))))


def test_code_sets() -> None:
    plain = Iiop("h", 1, b"k")
    ours = Iiop("h", 1, b"k", components=(code_set_component(),))
    old = Encoder.encapsulation()
    for number in (0x00010001, 0, 0x00010109, 0):
        old.ulong(number)
    latin = Iiop("h", 1, b"k", components=(Tagged(1, old.data()),))
    assert [code_set(each) for each in (plain, ours, latin)] == [0x05010001, 0x05010001, 0x00010001]
    assert agreed_text((code_set_context(0x05010001),)) == "utf-8"
    assert agreed_text((Tagged(99, b""), code_set_context(0x00010001))) == "latin-1"
    assert agreed_text(()) is None
    with pytest.raises(SystemException, match="CODESET_INCOMPATIBLE"):
        agreed_text((code_set_context(1),))
    with pytest.raises(UsageError, match="cannot be written in latin-1"):
        call_of("note", "λ").writer(latin)(1)
    call_of("note", "é").writer(latin)(1)


def test_the_version_of_a_profile_is_that_of_its_requests() -> None:
    for minor in (0, 1, 2):
        data = call_of("move", 1).writer(Iiop("h", 1, b"k", version=(1, minor)))(1)
        header, message, _ = decode(data)
        assert header.minor == minor
        assert isinstance(message, Request)
        assert bool(message.contexts) == (minor > 0)


def test_details_are_words_or_nothing() -> None:
    assert detail_of((Tagged(EXCEPTION_DETAIL, b"broken"),)) == ""
    assert detail_of(()) == ""


@given(st.binary(max_size=80), st.sampled_from(["move", "note", "_is_a", "fail"]))
def test_any_arguments_are_carried_out_or_refused(data: bytes, name: str) -> None:
    broker = Broker()
    broker.root.activate(Account(), b"account")
    request = encode(Request(9, KEY, name), data)
    outcome = broker.request(decode(request))
    assert isinstance(outcome, ServantCall | bytes)


def test_servants_may_be_coroutines() -> None:
    @interface
    class Slow:
        async def wait(self) -> Long:
            return 5

    broker = Broker()
    broker.root.activate(Slow(), b"slow")
    outcome = broker.request(decode(encode(Request(1, KeyAddr(b"slow"), "wait"))))
    assert isinstance(outcome, ServantCall)
    reply = outcome.returned(asyncio.run(outcome.call()))
    assert reply is not None
    assert decode(reply).body.long() == 5


@pytest.mark.parametrize(("text", "octets"), [("utf-8", "c3a9"), ("iso-8859-1", "e9")])
def test_a_reply_is_written_in_the_code_set_of_its_request(text: str, octets: str) -> None:
    data = Exchange(Request(9, KEY, "say"), 2, False, text).reply(
        Status.NO_EXCEPTION, lambda out: out.string("é")
    )
    assert data is not None and data.hex().endswith(octets + "00")
