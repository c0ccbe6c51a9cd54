"""IDL by type hints: what Python signatures mean on CORBA's wire.

    bool                          boolean
    int, LongLong, ULongLong      long long, unsigned long long (a plain `int` is a long long)
    Long, ULong, Short, UShort    long, unsigned long, short, unsigned short
    Octet                         octet
    float, Double, Float          double, double, float
    str, WString, Char, WChar     string, wstring, char, wchar
    bytes                         sequence<octet>
    list[T]                       sequence<T>
    a dataclass                   struct, members in their order
    an enum.Enum                  enum, members in their order
    Reference, Reference | None   object reference; None is the nil reference, where it is allowed
    -> None                       void
    -> tuple[A, B, C]             the result and then the out and inout parameters, in their order
    @raises(E), E made by         raises (E); the fields of E are its members
      @user_exception
    @oneway                       oneway
    @operation("_get_total")      another name on the wire, such as that of an attribute

`@interface` reads a class once, when it is declared. A type without a mapping is a `UsageError` then, which names class,
method and parameter, so that no request can fail for it later.
"""

import dataclasses
import enum
import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, TypeVar, Union, dataclass_transform, get_args, get_origin

from inga.corba.wire.cdr import Decoder, Encoder
from inga.corba.wire.reference import Reference, get_reference, put_reference
from inga.model.errors import RemoteError, UsageError, WireError

C = TypeVar("C", bound=type)
E = TypeVar("E", bound="UserException")
F = TypeVar("F", bound=Callable[..., Any])


@dataclasses.dataclass(frozen=True, slots=True)
class Basic:
    """The mark of a primitive type in an `Annotated` hint."""

    kind: str


Octet = Annotated[int, Basic("octet")]
Short = Annotated[int, Basic("short")]
UShort = Annotated[int, Basic("ushort")]
Long = Annotated[int, Basic("long")]
ULong = Annotated[int, Basic("ulong")]
LongLong = Annotated[int, Basic("longlong")]
ULongLong = Annotated[int, Basic("ulonglong")]
Float = Annotated[float, Basic("float")]
Double = Annotated[float, Basic("double")]
Char = Annotated[str, Basic("char")]
WChar = Annotated[str, Basic("wchar")]
WString = Annotated[str, Basic("wstring")]

_PLAIN: dict[Any, str] = {bool: "boolean", int: "longlong", float: "double", str: "string", bytes: "octets"}
_WORDS = {
    "ushort": "unsigned short",
    "ulong": "unsigned long",
    "longlong": "long long",
    "ulonglong": "unsigned long long",
    "octets": "sequence<octet>",
}
_LEAST = {"short": 2, "ushort": 2, "long": 4, "ulong": 4, "float": 4, "octets": 4, "string": 5, "wstring": 4}
_LEAST |= {"longlong": 8, "ulonglong": 8, "double": 8, "wchar": 2}

RESERVED = "_"
"""Methods whose names begin with this are no operations, unless they are marked, as by `@operation`."""


class UserException(RemoteError):
    """An exception that an interface declares. Subclasses are made by `@user_exception`.

    One without members may be raised with a text, which travels between inga programs.
    """

    repository_id: typing.ClassVar[str]

    @property
    def text(self) -> str:
        """Its text; empty if it has members, which say more."""
        is_bare = not hasattr(type(self), "__dataclass_fields__")
        return str(self.args[0]) if is_bare and self.args else ""

    def __str__(self) -> str:
        if hasattr(type(self), "__dataclass_fields__"):
            return repr(self)
        return self.text or type(self).__name__


class SystemException(RemoteError):
    """One of CORBA's own exceptions, such as OBJECT_NOT_EXIST, from the other side or from this one.

    `completed` says whether the operation was carried out: "yes", "no" or "maybe".
    """

    COMPLETED = ("yes", "no", "maybe")

    def __init__(self, name: str, text: str = "", *, minor: int = 0, completed: str = "maybe") -> None:
        self.name = name
        self.minor = minor
        self.completed = completed
        self.text = text
        super().__init__(f"{name}: {text}" if text else name)

    def __reduce__(self) -> Any:
        return _system_exception, (self.name, self.text, self.minor, self.completed)

    @property
    def repository_id(self) -> str:
        """Its id on the wire."""
        return f"IDL:omg.org/CORBA/{self.name}:1.0"


def _system_exception(name: str, text: str, minor: int, completed: str) -> SystemException:
    return SystemException(name, text, minor=minor, completed=completed)


class IdlType:
    """Encodes and decodes values of one type."""

    name: str
    """The type in IDL."""
    least: int
    """The fewest octets a value takes; at least 1, so that the octets of a message bound the elements of a sequence."""

    def put(self, out: Encoder, value: Any) -> None:
        """Write a value. One that is not of this type is a `UsageError`."""
        raise NotImplementedError

    def get(self, data: Decoder) -> Any:
        """Read a value."""
        raise NotImplementedError


class Primitive(IdlType):
    """A type that CDR itself encodes."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.name = _WORDS.get(kind, kind)
        self.least = _LEAST.get(kind, 1)

    def put(self, out: Encoder, value: Any) -> None:
        if self.kind == "boolean" and not isinstance(value, bool):
            raise UsageError(f"{value!r} is neither True nor False.")
        if self.kind == "octets" and not isinstance(value, bytes | bytearray | memoryview):
            raise UsageError(f"{value!r} is not bytes.")
        getattr(out, self.kind)(value)

    def get(self, data: Decoder) -> Any:
        return getattr(data, self.kind)()


class Sequence(IdlType):
    """A `list[T]`."""

    least = 4

    def __init__(self, element: IdlType) -> None:
        self.element = element
        self.name = f"sequence<{element.name}>"

    def put(self, out: Encoder, value: Any) -> None:
        if not isinstance(value, list | tuple):
            raise UsageError(f"{value!r} is not a list.")
        out.ulong(len(value))
        put = self.element.put
        for each in value:
            put(out, each)

    def get(self, data: Decoder) -> list[Any]:
        get = self.element.get
        return [get(data) for _ in range(data.count(self.element.least))]


class Struct(IdlType):
    """A dataclass: its members one after the other."""

    def __init__(self, cls: type, members: Mapping[str, IdlType]) -> None:
        self.cls = cls
        self.members = tuple(members.items())
        self.name = f"struct {cls.__name__}"
        self.least = sum(member.least for member in members.values())

    def put(self, out: Encoder, value: Any) -> None:
        if not isinstance(value, self.cls):
            raise UsageError(f"{value!r} is not a {self.cls.__name__}.")
        for name, member in self.members:
            try:
                member.put(out, getattr(value, name))
            except UsageError as error:
                raise UsageError(f"{name} of {self.cls.__name__}: {error}") from None

    def get(self, data: Decoder) -> Any:
        return self.cls(*[member.get(data) for _, member in self.members])


class Enumeration(IdlType):
    """An `enum.Enum`: encoded as the index of the member, whatever its value."""

    least = 4

    def __init__(self, cls: type[enum.Enum]) -> None:
        self.cls = cls
        self.name = f"enum {cls.__name__}"
        self.members = list(cls)
        self.places = {member: place for place, member in enumerate(self.members)}

    def put(self, out: Encoder, value: Any) -> None:
        if not isinstance(value, self.cls):
            raise UsageError(f"{value!r} is not a {self.cls.__name__}.")
        out.ulong(self.places[value])

    def get(self, data: Decoder) -> Any:
        place = data.ulong()
        if place >= len(self.members):
            raise WireError("malformed", f"member {place} of {self.cls.__name__}")
        return self.members[place]


class ObjectReference(IdlType):
    """A `Reference`, or None for the nil reference."""

    least = 9
    name = "Object"

    def __init__(self, optional: bool) -> None:
        self.optional = optional

    def put(self, out: Encoder, value: Any) -> None:
        value = getattr(value, "__reference__", value)  # a proxy stands for the object that it calls
        if value is None and self.optional:
            value = NIL
        if not isinstance(value, Reference):
            raise UsageError(f"{value!r} is not a Reference.")
        put_reference(out, value)

    def get(self, data: Decoder) -> Reference | None:
        reference = get_reference(data)
        if reference.profiles:
            return reference
        if not self.optional:
            raise WireError("malformed", "a nil reference where an object is needed")
        return None


@dataclasses.dataclass(frozen=True, slots=True)
class Operation:
    """A method of an interface, as it is on the wire."""

    name: str
    method: str
    where: str
    """Class and method, for error messages."""
    signature: inspect.Signature
    parameters: tuple[tuple[str, IdlType], ...]
    results: tuple[IdlType, ...]
    raises: Mapping[str, tuple[type[UserException], Struct | None]]
    oneway: bool

    def bind(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> list[Any]:
        """The arguments of a call in the order of the parameters."""
        try:
            bound = self.signature.bind(*arguments, **named)
        except TypeError as error:
            raise UsageError(f"{self.where}: {error}.") from None
        bound.apply_defaults()
        return [bound.arguments[name] for name, _ in self.parameters]

    def put_arguments(self, out: Encoder, arguments: list[Any]) -> None:
        """Write the body of a Request."""
        for (name, each), value in zip(self.parameters, arguments, strict=True):
            try:
                each.put(out, value)
            except UsageError as error:
                raise UsageError(f"{self.where}, parameter {name}: {error}") from None

    def get_arguments(self, data: Decoder) -> list[Any]:
        """Read the body of a Request."""
        return [each.get(data) for _, each in self.parameters]

    def put_results(self, out: Encoder, value: Any) -> None:
        """Write the body of a Reply."""
        values = value if len(self.results) > 1 else (value,) if self.results else ()
        if not isinstance(values, tuple) or len(values) != len(self.results):
            raise UsageError(f"{self.where} returns {len(self.results)} values, not {value!r}.")
        for each, one in zip(self.results, values, strict=True):
            try:
                each.put(out, one)
            except UsageError as error:
                raise UsageError(f"{self.where}, result: {error}") from None

    def get_results(self, data: Decoder) -> Any:
        """Read the body of a Reply: None, one value, or several."""
        values = tuple(each.get(data) for each in self.results)
        return values if len(values) > 1 else values[0] if values else None

    def put_exception(self, out: Encoder, raised: UserException) -> None:
        """Write the body of a Reply with a declared exception."""
        _, members = self.raises[raised.repository_id]
        out.string(raised.repository_id)
        if members is not None:
            members.put(out, raised)

    def get_exception(self, data: Decoder, text: str = "") -> RemoteError:
        """Read the declared exception in a Reply, perhaps with a text; UNKNOWN if this operation does not declare it."""
        repository_id = data.string()
        if repository_id not in self.raises:
            return SystemException("UNKNOWN", f"{self.where} does not raise {repository_id}", completed="yes")
        cls, members = self.raises[repository_id]
        if members is not None:
            found: RemoteError = members.get(data)
            return found
        raised: RemoteError = cls()
        raised.args = (text,) if text else ()
        return raised


@dataclasses.dataclass(frozen=True, slots=True)
class IdlInterface:
    """The interface that a class declares: its operations by their names on the wire, those of its bases included."""

    repository_id: str
    ids: tuple[str, ...]
    """Its own repository id, then those of its bases."""
    operations: Mapping[str, Operation]

    def is_a(self, repository_id: str) -> bool:
        """Whether objects of this interface can be used as that one."""
        return repository_id in self.ids or repository_id == OBJECT_ID


NIL = Reference("", ())
OBJECT_ID = "IDL:omg.org/CORBA/Object:1.0"


@typing.overload
def interface(cls: C) -> C: ...
@typing.overload
def interface(cls: str) -> Callable[[C], C]: ...


def interface(cls: Any) -> Any:
    """Declare a class as an interface: `@interface("IDL:demo/Bank:1.0")`, or plain `@interface`.

    Its public methods are the operations. It may hold the code itself or be the base of classes that do.
    """
    if isinstance(cls, str):
        return lambda decorated: _declare(decorated, cls)
    return _declare(cls, f"IDL:{cls.__name__}:1.0")


def oneway(method: F) -> F:
    """Nobody waits for this operation: it returns nothing and raises nothing."""
    _notes(method)["oneway"] = True
    return method


def raises(*exceptions: type[UserException]) -> Callable[[F], F]:
    """The exceptions of an operation that reach the caller as themselves; all others arrive as UNKNOWN."""

    def mark(method: F) -> F:
        _notes(method)["raises"] = exceptions
        return method

    return mark


def operation(name: str) -> Callable[[F], F]:
    """The name of a method on the wire, where it is not its own."""

    def mark(method: F) -> F:
        _notes(method)["name"] = name
        return method

    return mark


@dataclass_transform(eq_default=False)
def user_exception(repository_id: str) -> Callable[[type[E]], type[E]]:
    """Declare an exception with members: its annotated fields, as in a dataclass."""

    def declare(cls: type[E]) -> type[E]:
        if not issubclass(cls, UserException):
            raise UsageError(f"{cls.__name__} has to be a subclass of UserException.")
        cls.repository_id = repository_id
        # Equality by fields would make it unhashable, and tracebacks put exceptions into sets.
        return dataclasses.dataclass(eq=False)(cls) if inspect.get_annotations(cls) else cls

    return declare


def interface_of(thing: Any) -> IdlInterface:
    """The interface that a class or an object declares."""
    cls = thing if isinstance(thing, type) else type(thing)
    found = getattr(cls, "__interface__", None)
    if not isinstance(found, IdlInterface):
        raise UsageError(f"{cls.__name__} is no interface: decorate it, or a base of it, with @interface.")
    return found


def idl_type(hint: Any, where: str = "this") -> IdlType:
    """The IDL type of a type hint. `where` says in the error where the hint is, if it has none."""
    return _mapped(hint, where, ())


def _notes(method: Any) -> dict[str, Any]:
    if not hasattr(method, "__idl__"):
        method.__idl__ = {}
    notes: dict[str, Any] = method.__idl__
    return notes


def _declare(cls: C, repository_id: str) -> C:
    operations: dict[str, Operation] = {}
    ids = [repository_id]
    for base in reversed(cls.__mro__[1:]):
        inherited = base.__dict__.get("__interface__")
        if inherited is not None:
            operations.update(inherited.operations)
            ids[1:1] = [each for each in inherited.ids if each not in ids]
    for name, method in _methods(cls):
        made = _operation(cls, name, method)
        other = operations.get(made.name)
        if other is not None and other.method != name:
            raise UsageError(f"{made.where}: {other.where} is called {made.name!r} too.")
        operations[made.name] = made
    cls.__interface__ = IdlInterface(repository_id, tuple(ids), operations)  # type: ignore[attr-defined]
    return cls


def _methods(cls: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, value in vars(cls).items():
        if isinstance(value, staticmethod | classmethod | property) and not name.startswith(RESERVED):
            kind = type(value).__name__
            raise UsageError(f"{cls.__name__}.{name}: a {kind} is no operation; name it with a leading _.")
        if inspect.isfunction(value) and (not name.startswith(RESERVED) or hasattr(value, "__idl__")):
            yield name, value


def _operation(cls: type, name: str, method: Callable[..., Any]) -> Operation:
    where = f"{cls.__name__}.{name}"
    notes: dict[str, Any] = getattr(method, "__idl__", {})
    hints = _hints(method, where)
    whole = inspect.signature(method)
    parameters = list(whole.parameters.values())[1:]
    for each in parameters:
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            raise UsageError(f"{where}, parameter {each.name}: IDL has no variable number of parameters.")
        if each.name not in hints:
            raise UsageError(f"{where}, parameter {each.name}: it needs a type hint.")
    if "return" not in hints:
        raise UsageError(f"{where}, result: it needs a type hint; `-> None` if there is none.")
    mapped = tuple(
        (each.name, idl_type(hints[each.name], f"{where}, parameter {each.name}")) for each in parameters
    )
    results = _results(hints["return"], f"{where}, result")
    thrown = dict(_thrown(each, where) for each in notes.get("raises", ()))
    is_oneway = bool(notes.get("oneway"))
    if is_oneway and (results or thrown):
        raise UsageError(f"{where}: a oneway operation returns nothing and raises nothing.")
    signature = whole.replace(parameters=parameters)
    return Operation(notes.get("name", name), name, where, signature, mapped, results, thrown, is_oneway)


def _hints(thing: Any, where: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(thing, include_extras=True)
    except NameError as error:
        raise UsageError(f"{where}: a type hint names what is not there: {error}.") from None


def _results(hint: Any, where: str) -> tuple[IdlType, ...]:
    if hint in (None, type(None)):
        return ()
    if get_origin(hint) is tuple:
        arguments = get_args(hint)
        if len(arguments) < 2 or Ellipsis in arguments:
            raise UsageError(f"{where}: a tuple stands for the result and out parameters, two or more.")
        return tuple(idl_type(each, where) for each in arguments)
    return (idl_type(hint, where),)


def _thrown(cls: Any, where: str) -> tuple[str, tuple[type[UserException], Struct | None]]:
    """An exception by its repository id, with its members if it has any."""
    if not (isinstance(cls, type) and issubclass(cls, UserException) and hasattr(cls, "repository_id")):
        raise UsageError(f"{where}: {cls!r} is not declared with @user_exception.")
    members = _struct(cls, where, ()) if hasattr(cls, "__dataclass_fields__") else None
    return cls.repository_id, (cls, members)


def _mapped(hint: Any, where: str, inside: tuple[type, ...]) -> IdlType:
    """`inside`: the structs that contain this type."""
    if get_origin(hint) is Annotated:
        marks = [each for each in get_args(hint)[1:] if isinstance(each, Basic)]
        return Primitive(marks[0].kind) if marks else _mapped(get_args(hint)[0], where, inside)
    if isinstance(hint, typing.Hashable) and hint in _PLAIN:
        return Primitive(_PLAIN[hint])
    if hint is Reference:
        return ObjectReference(optional=False)
    if get_origin(hint) in (Union, types.UnionType) and set(get_args(hint)) == {Reference, type(None)}:
        return ObjectReference(optional=True)
    if get_origin(hint) is list:
        return Sequence(_mapped(get_args(hint)[0], where, inside))
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        if not len(hint):
            raise UsageError(f"{where}: {hint.__name__} has no members.")
        return Enumeration(hint)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _struct(hint, where, inside)
    raise UsageError(f"{where}: {_shown(hint)} has no counterpart in IDL.")


def _struct(cls: type, where: str, inside: tuple[type, ...]) -> Struct:
    if cls in inside:
        raise UsageError(f"{where}: {cls.__name__} contains itself, which is not supported.")
    hints = _hints(cls, where)
    fields = [field for field in dataclasses.fields(cls) if field.init]
    if not fields:
        raise UsageError(f"{where}: {cls.__name__} has no members.")
    return Struct(
        cls,
        {
            field.name: _mapped(hints[field.name], f"{where}, member {field.name}", (*inside, cls))
            for field in fields
        },
    )


def _shown(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)
