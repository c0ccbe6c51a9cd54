"""An interface as IDL, for the compilers of other ORBs.

Everything that the interface uses is declared before it, in one module: enums, structs, names for sequences,
exceptions, the interfaces it is derived from. Names of members and parameters are not on the wire; one that IDL reserves, or
that only differs from a type by its case, gets a trailing underscore.
"""

from inga.corba.broker.idl import (
    Enumeration,
    IdlInterface,
    IdlType,
    Operation,
    Primitive,
    Sequence,
    Struct,
    interface_of,
)
from inga.model.errors import UsageError

RESERVED = frozenset(
    """abstract any attribute boolean case char component const consumes context custom default double emits enum
    eventtype exception factory false finder fixed float getraises home import in inout interface local long module
    multiple native object octet oneway out primarykey private provides public publishes raises readonly sequence
    setraises short string struct supports switch true truncatable typedef typeid typeprefix union unsigned uses
    valuebase valuetype void wchar wstring""".split()
)
INDENT = "  "


def to_idl(cls: type) -> str:
    """The IDL of an interface and of all that it needs."""
    return _Text(cls).text()


class _Text:
    """Collects declarations, in the order that IDL requires."""

    def __init__(self, cls: type) -> None:
        self._classes = [each for each in reversed(cls.__mro__) if "__interface__" in vars(each)]
        self._declared: dict[str, list[str]] = {}
        self._module = _path(interface_of(cls).repository_id)[:-1] or ["inga"]

    def text(self) -> str:
        """All declarations as one file."""
        for each in self._classes:
            self._interface(each)
        lines = [line for block in self._declared.values() for line in block]
        depth = len(self._module)
        head = [f"{INDENT * level}module {name} {{" for level, name in enumerate(self._module)]
        foot = [f"{INDENT * level}}};" for level in reversed(range(depth))]
        return "\n".join([*head, *(INDENT * depth + line for line in lines), *foot, ""])

    def _interface(self, cls: type) -> None:
        declared: IdlInterface = vars(cls)["__interface__"]
        name = _path(declared.repository_id)[-1]
        bases = [
            _path(vars(base)["__interface__"].repository_id)[-1]
            for base in cls.__bases__
            if "__interface__" in vars(base)
        ]
        inherited = {each for base in cls.__mro__[1:] for each in _operations(base)}
        own = [each for key, each in declared.operations.items() if key not in inherited]
        body = [line for each in own for line in self._operation(each)]
        derived = f" : {', '.join(bases)}" if bases else ""
        self._declare(name, [f"interface {name}{derived} {{", *body, "};"], declared.repository_id)

    def _operation(self, each: Operation) -> list[str]:
        if each.name.startswith("_get_") and not each.parameters and len(each.results) == 1:
            return [f"{INDENT}readonly attribute {self._type(each.results[0])} {_escaped(each.name[5:])};"]
        if each.name.startswith("_"):
            return [f"{INDENT}// {each.name} cannot be declared in IDL"]
        result = self._type(each.results[0]) if each.results else "void"
        parameters = [f"in {self._type(kind)} {self._name(name)}" for name, kind in each.parameters]
        parameters += [f"out {self._type(kind)} out{at}" for at, kind in enumerate(each.results[1:], 1)]
        raised = [
            self._exception(repository_id, members) for repository_id, (_, members) in each.raises.items()
        ]
        clause = f" raises ({', '.join(raised)})" if raised else ""
        oneway = "oneway " if each.oneway else ""
        return [f"{INDENT}{oneway}{result} {_escaped(each.name)}({', '.join(parameters)}){clause};"]

    def _exception(self, repository_id: str, members: Struct | None) -> str:
        name = _path(repository_id)[-1]
        body = [] if members is None else self._members(members)
        self._declare(name, [f"exception {name} {{", *body, "};"], repository_id)
        return name

    def _type(self, kind: IdlType) -> str:
        """The name of a type where it is used. Declares the type, if necessary."""
        if isinstance(kind, Primitive) and kind.kind == "octets":
            return self._sequence("octet")
        if isinstance(kind, Sequence):
            return self._sequence(self._type(kind.element))
        if isinstance(kind, Enumeration):
            name = kind.cls.__name__
            members = ", ".join(each.name + "_" * (each.name.lower() in RESERVED) for each in kind.members)
            self._declare(name, [f"enum {name} {{ {members} }};"])
            return name
        if isinstance(kind, Struct):
            name = kind.cls.__name__
            self._declare(name, [f"struct {name} {{", *self._members(kind), "};"])
            return name
        return kind.name

    def _sequence(self, element: str) -> str:
        name = "".join(word.capitalize() if word.islower() else word for word in element.split()) + "Seq"
        self._declare(name, [f"typedef sequence<{element}> {name};"])
        return name

    def _members(self, struct: Struct) -> list[str]:
        return [f"{INDENT}{self._type(kind)} {self._name(name)};" for name, kind in struct.members]

    def _declare(self, name: str, lines: list[str], repository_id: str = "") -> None:
        if repository_id and repository_id != f"IDL:{'/'.join([*self._module, name])}:1.0":
            lines = [*lines, f'#pragma ID {name} "{repository_id}"']
        if self._declared.setdefault(name, lines) != lines:
            raise UsageError(f"Two different types are called {name}; IDL needs two names.")

    def _name(self, name: str) -> str:
        taken = {each.lower() for each in self._declared} | {each.lower() for each in self._module}
        return f"{name}_" if name.lower() in RESERVED | taken else name


def _escaped(name: str) -> str:
    """The name of an operation, which is on the wire: a leading underscore only says that it is no keyword, and is not sent."""
    return f"_{name}" if name.lower() in RESERVED else name


def _operations(cls: type) -> list[str]:
    declared = vars(cls).get("__interface__")
    return [] if declared is None else list(declared.operations)


def _path(repository_id: str) -> list[str]:
    """Modules and name in a repository id; a prefix such as omg.org is no module."""
    parts = repository_id.split(":")
    if len(parts) != 3 or parts[0] != "IDL":
        raise UsageError(f"{repository_id!r} is no repository id such as IDL:demo/Kitchen:1.0.")
    names = parts[1].split("/")
    return names[1:] if "." in names[0] else names
