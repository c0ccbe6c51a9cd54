"""IDL by type hints: what each hint means on the wire, and what is refused when a class is declared."""

import contextlib
import enum
import pickle
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.corba.broker.idl import (
    NIL,
    Char,
    Float,
    Long,
    LongLong,
    Octet,
    Operation,
    Short,
    SystemException,
    ULong,
    ULongLong,
    UserException,
    UShort,
    WChar,
    WString,
    idl_type,
    interface,
    interface_of,
    oneway,
    operation,
    raises,
    user_exception,
)
from inga.corba.wire.cdr import Decoder, Encoder
from inga.corba.wire.reference import Reference, read
from inga.model.errors import UsageError, WireError


class Colour(enum.Enum):
    RED = 10
    GREEN = 20


@dataclass
class Point:
    x: Short
    y: float
    colour: Colour


@dataclass
class Line:
    points: list[Point]
    name: str = ""


HERE = read("corbaloc:iiop:1.2@127.0.0.1:2809/here")

# hint, IDL, value, octets in big endian
GOLDEN: list[tuple[Any, str, Any, str]] = [
    (bool, "boolean", True, "01"),
    (int, "long long", -1, "ff" * 8),
    (float, "double", 1.0, "3ff0000000000000"),
    (str, "string", "hi", "00000003686900"),
    (bytes, "sequence<octet>", b"hi", "000000026869"),
    (Octet, "octet", 7, "07"),
    (Short, "short", -2, "fffe"),
    (UShort, "unsigned short", 2, "0002"),
    (Long, "long", -2, "fffffffe"),
    (ULong, "unsigned long", 2, "00000002"),
    (LongLong, "long long", 2, "0000000000000002"),
    (ULongLong, "unsigned long long", 2, "0000000000000002"),
    (Float, "float", 1.0, "3f800000"),
    (Char, "char", "c", "63"),
    (WChar, "wchar", "λ", "0203bb"),
    (WString, "wstring", "λ", "0000000203bb"),
    (Annotated[int, "a remark"], "long long", 2, "0000000000000002"),
    (list[Short], "sequence<short>", [1, 2], "0000000200010002"),
    (list[list[str]], "sequence<sequence<string>>", [[], ["a"]], "00000002" "00000000" "00000001" "000000026100"),
    (Colour, "enum Colour", Colour.GREEN, "00000001"),
    (Point, "struct Point", Point(1, 1.0, Colour.RED), "0001" + "00" * 6 + "3ff0000000000000" "00000000"),
    (Reference | None, "Object", None, "00000001" "00000000" "00000000"),
]  # fmt: skip


@pytest.mark.parametrize(("hint", "name", "value", "octets"), GOLDEN)
def test_golden_octets(hint: Any, name: str, value: Any, octets: str) -> None:
    mapped = idl_type(hint)
    assert mapped.name == name
    out = Encoder()
    mapped.put(out, value)
    assert out.data().hex() == octets
    assert mapped.least <= len(out)
    assert mapped.get(Decoder(out.data())) == value


def test_references_travel_as_they_are() -> None:
    for hint in (Reference, Reference | None):
        out = Encoder()
        idl_type(hint).put(out, HERE)
        assert idl_type(hint).get(Decoder(out.data())) == HERE
    out = Encoder()
    idl_type(Reference | None).put(out, None)
    with pytest.raises(WireError, match="nil"):
        idl_type(Reference).get(Decoder(out.data()))
    with pytest.raises(UsageError, match="not a Reference"):
        idl_type(Reference).put(out, None)
    assert NIL.is_nil


@pytest.mark.parametrize(
    ("hint", "value", "says"),
    [
        (bool, 1, "neither True nor False"),
        (bytes, "text", "not bytes"),
        (str, b"octets", "not text"),
        (list[Long], 5, "not a list"),
        (list[Long], ["x"], "does not fit into a long"),
        (Short, 40_000, "does not fit into a short"),
        (Colour, 10, "not a Colour"),
        (Point, (1, 2.0, Colour.RED), "not a Point"),
        (Point, Point(70_000, 1.0, Colour.RED), "x of Point: 70000 does not fit"),
        (Line, Line([Point(1, 1.0, 5)]), "points of Line: colour of Point: 5 is not a Colour"),  # type: ignore[arg-type]
    ],
)
def test_a_value_of_another_type(hint: Any, value: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        idl_type(hint).put(Encoder(), value)


def test_an_enum_has_no_such_member() -> None:
    with pytest.raises(WireError, match="member 2 of Colour"):
        idl_type(Colour).get(Decoder(bytes((0, 0, 0, 2))))


def test_a_count_is_held_against_the_size_of_elements() -> None:
    data = (100).to_bytes(4, "big") + bytes(100)
    with pytest.raises(WireError, match="truncated"):
        idl_type(list[Point]).get(Decoder(data))


@user_exception("IDL:test/Broken:1.0")
class Broken(UserException):
    part: str
    age: Long = 3


@user_exception("IDL:test/Lost:1.0")
class Lost(UserException):
    pass


@interface
class Thing:
    def touch(self) -> None: ...


@interface("IDL:test/Machine:1.0")
class Machine(Thing):
    @raises(Broken, Lost)
    async def work(self, hours: Long, how: str = "fast") -> float: ...  # type: ignore[empty-body]

    def both(self) -> tuple[Long, str]: ...  # type: ignore[empty-body]

    @oneway
    def stop(self, why: str) -> None: ...

    @operation("_get_speed")
    def speed(self) -> Short: ...  # type: ignore[empty-body]

    def _helper(self, anything: object) -> object:
        return anything


def called(name: str) -> Operation:
    return interface_of(Machine).operations[name]


def test_an_interface_is_read_once() -> None:
    declared = interface_of(Machine)
    assert declared.repository_id == "IDL:test/Machine:1.0"
    assert declared.ids == ("IDL:test/Machine:1.0", "IDL:Thing:1.0")
    assert sorted(declared.operations) == ["_get_speed", "both", "stop", "touch", "work"]
    assert called("_get_speed").method == "speed"
    assert called("stop").oneway
    assert not called("work").oneway
    assert declared.is_a("IDL:Thing:1.0")
    assert declared.is_a("IDL:omg.org/CORBA/Object:1.0")
    assert not declared.is_a("IDL:test/Other:1.0")
    assert interface_of(Machine()) is declared


def test_arguments_by_place_by_name_and_by_default() -> None:
    work = called("work")
    assert work.bind((3,), {}) == [3, "fast"]
    assert work.bind((), {"how": "slow", "hours": 2}) == [2, "slow"]
    with pytest.raises(UsageError, match=r"Machine\.work: missing"):
        work.bind((), {})
    with pytest.raises(UsageError, match=r"Machine\.work, parameter hours: 'x' does not fit"):
        work.put_arguments(Encoder(), ["x", "fast"])


def test_several_results_are_a_tuple() -> None:
    out = Encoder()
    called("both").put_results(out, (7, "x"))
    assert called("both").get_results(Decoder(out.data())) == (7, "x")
    for wrong in (7, (7,), (7, "x", 1), None):
        with pytest.raises(UsageError, match=r"Machine\.both"):
            called("both").put_results(Encoder(), wrong)
    called("touch").put_results(out := Encoder(), None)
    assert len(out) == 0
    assert called("touch").get_results(Decoder(b"")) is None
    with pytest.raises(UsageError, match=r"Machine\.work, result"):
        called("work").put_results(Encoder(), "fast")


def test_declared_exceptions_keep_their_members() -> None:
    out = Encoder()
    called("work").put_exception(out, Broken("belt", 9))
    raised = called("work").get_exception(Decoder(out.data()))
    assert isinstance(raised, Broken)
    assert (raised.part, raised.age) == ("belt", 9)
    assert str(raised) == "Broken(part='belt', age=9)"
    called("work").put_exception(out := Encoder(), Lost())
    again = called("work").get_exception(Decoder(out.data()))
    assert isinstance(again, Lost)
    assert str(again) == "Lost"


def test_an_exception_that_is_not_declared_is_unknown() -> None:
    out = Encoder()
    out.string("IDL:test/Other:1.0")
    raised = called("work").get_exception(Decoder(out.data()))
    assert isinstance(raised, SystemException)
    assert (raised.name, raised.completed) == ("UNKNOWN", "yes")


def test_exceptions_can_be_pickled() -> None:
    raised = pickle.loads(pickle.dumps(SystemException("TIMEOUT", "late", minor=3, completed="no")))
    assert (raised.name, raised.text, raised.minor, raised.completed) == ("TIMEOUT", "late", 3, "no")
    assert str(raised) == "TIMEOUT: late"
    assert raised.repository_id == "IDL:omg.org/CORBA/TIMEOUT:1.0"


def refused(says: str, **methods: Any) -> None:
    with pytest.raises(UsageError, match=says):
        interface(type("Odd", (), methods))


@dataclass
class Nothing:
    pass


@dataclass
class Loop:
    inner: "list[Loop]"


class Blank(enum.Enum):
    pass


@dataclass
class Holder:
    anything: dict[str, int]


def test_what_has_no_mapping_is_named() -> None:
    for hint, says in [
        (dict[str, int], r"dict\[str, int\] has no counterpart"),
        (object, "object has no counterpart"),
        (Any, "Any has no counterpart"),
        (set[int], r"set\[int\] has no counterpart"),
        (list, "list has no counterpart"),
        (int | None, r"int \| None has no counterpart"),
        (complex, "complex has no counterpart"),
        (tuple[int, int], r"tuple\[int, int\] has no counterpart"),
        (Nothing, "Nothing has no members"),
        (Blank, "Blank has no members"),
        (Loop, "member inner: Loop contains itself"),
        (Holder, r"member anything: dict\[str, int\] has no counterpart"),
        ("NotThere", "names what is not there"),
    ]:

        def method(self: object, size: Any) -> None: ...

        method.__annotations__["size"] = hint
        where = r"Odd\.method" if hint == "NotThere" else r"Odd\.method, parameter size"
        refused(rf"{where}.*{says}", method=method)


def test_signatures_that_are_none() -> None:
    def untyped(self, size) -> None: ...  # type: ignore[no-untyped-def]

    def no_result(self, size: int): ...  # type: ignore[no-untyped-def]

    def many(self, *sizes: int) -> None: ...

    def named(self, **sizes: int) -> None: ...

    def one(self) -> tuple[int]: ...  # type: ignore[empty-body]

    def open_ended(self) -> tuple[int, ...]: ...  # type: ignore[empty-body]

    @oneway
    def answers(self) -> int: ...  # type: ignore[empty-body]

    @oneway
    @raises(Lost)
    def raising(self) -> None: ...

    @raises(ValueError)  # type: ignore[arg-type]
    def undeclared(self) -> None: ...

    @operation("untyped_as")
    def other(self) -> None: ...

    @operation("untyped_as")
    def same(self) -> None: ...

    refused(r"Odd\.method, parameter size: it needs a type hint", method=untyped)
    refused(r"Odd\.method, result: it needs a type hint", method=no_result)
    refused(r"Odd\.method, parameter sizes: IDL has no variable", method=many)
    refused(r"Odd\.method, parameter sizes: IDL has no variable", method=named)
    refused(r"Odd\.method, result: a tuple", method=one)
    refused(r"Odd\.method, result: a tuple", method=open_ended)
    refused(r"Odd\.method: a oneway operation returns nothing", method=answers)
    refused(r"Odd\.method: a oneway operation returns nothing", method=raising)
    refused(r"Odd\.method: .*ValueError.* not declared with @user_exception", method=undeclared)
    refused(r"Odd\.second: Odd\.first is called 'untyped_as' too", first=other, second=same)
    refused(r"Odd\.shape: a property is no operation", shape=property(lambda self: 1))
    refused(r"Odd\.shape: a staticmethod is no operation", shape=staticmethod(lambda: 1))


def test_what_is_no_interface_or_exception() -> None:
    with pytest.raises(UsageError, match="int is no interface"):
        interface_of(5)
    with pytest.raises(UsageError, match="has to be a subclass of UserException"):
        user_exception("IDL:x:1.0")(ValueError)  # type: ignore[type-var]


VALUES: dict[Any, st.SearchStrategy[Any]] = {
    bool: st.booleans(),
    int: st.integers(-(1 << 63), (1 << 63) - 1),
    Octet: st.integers(0, 255),
    float: st.floats(allow_nan=False),
    str: st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=5),
    bytes: st.binary(max_size=5),
    Colour: st.sampled_from(Colour),
    Point: st.builds(Point, st.integers(-9, 9), st.floats(allow_nan=False), st.sampled_from(Colour)),
}


@given(st.data(), st.lists(st.sampled_from(list(VALUES)), max_size=6), st.booleans())
def test_round_trips_of_any_signature(data: st.DataObject, hints: list[Any], little: bool) -> None:
    mapped = [idl_type(list[hint] if at % 2 else hint) for at, hint in enumerate(hints)]
    values = [
        data.draw(st.lists(VALUES[hint], max_size=3) if at % 2 else VALUES[hint])
        for at, hint in enumerate(hints)
    ]
    out = Encoder(little=little)
    for each, value in zip(mapped, values, strict=True):
        each.put(out, value)
    decoder = Decoder(out.data(), little=little)
    assert [each.get(decoder) for each in mapped] == values
    decoder.finish()


@given(st.binary(max_size=60))
def test_any_octets_are_a_value_or_a_wire_error(data: bytes) -> None:
    for hint in (Line, list[Line], Reference, list[list[bytes]], WString):
        with contextlib.suppress(WireError):
            idl_type(hint).get(Decoder(data))
