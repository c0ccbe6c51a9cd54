"""Interfaces as IDL: text that a compiler takes, and names that are kept where they travel."""

import enum
from dataclasses import dataclass

import pytest

from inga.corba.broker.idl import (
    Long,
    Short,
    UserException,
    interface,
    oneway,
    operation,
    raises,
    user_exception,
)
from inga.corba.broker.idl_text import to_idl
from inga.corba.broker.naming import NamingContextExt
from inga.corba.wire.reference import Reference
from inga.model.errors import UsageError


class Colour(enum.Enum):
    RED = 1
    ANY = 2


@dataclass
class Cell:
    colour: Colour
    values: list[list[Short]]
    string: bytes


@user_exception("IDL:test/Full:1.0")
class Full(UserException):
    left: Long


@user_exception("IDL:other.org/else/Gone:1.0")
class Gone(UserException):
    pass


@interface("IDL:test/Base:1.0")
class Base:
    @operation("_get_size")
    def size(self) -> Long: ...  # type: ignore[empty-body]


@interface("IDL:test/Sheet:1.0")
class Sheet(Base):
    @raises(Full, Gone)
    def put(self, cell: Cell, at: int) -> tuple[bool, Colour]: ...  # type: ignore[empty-body]

    @oneway
    def module(self, cells: list[Cell]) -> None: ...

    def find(self, text: str) -> Reference | None: ...

    @operation("_strange")
    def strange(self) -> None: ...


EXPECTED = """\
module test {
  interface Base {
    readonly attribute long size;
  };
  enum Colour { RED, ANY_ };
  typedef sequence<short> ShortSeq;
  typedef sequence<ShortSeq> ShortSeqSeq;
  typedef sequence<octet> OctetSeq;
  struct Cell {
    Colour colour_;
    ShortSeqSeq values;
    OctetSeq string_;
  };
  exception Full {
    long left;
  };
  exception Gone {
  };
  #pragma ID Gone "IDL:other.org/else/Gone:1.0"
  typedef sequence<Cell> CellSeq;
  interface Sheet : Base {
    boolean put(in Cell cell_, in long long at, out Colour out1) raises (Full, Gone);
    oneway void _module(in CellSeq cells);
    Object find(in string text);
    // _strange cannot be declared in IDL
  };
};
"""


def test_everything_is_declared_before_it_is_used() -> None:
    assert to_idl(Sheet) == EXPECTED


def test_an_interface_without_a_module() -> None:
    @interface
    class Plain:
        def go(self) -> None: ...

    assert to_idl(Plain) == (
        'module inga {\n  interface Plain {\n    void go();\n  };\n  #pragma ID Plain "IDL:Plain:1.0"\n};\n'
    )


def test_prefixes_are_no_modules() -> None:
    text = to_idl(NamingContextExt)
    assert text.startswith("module CosNaming {\n")
    assert '#pragma ID NamingContext "IDL:omg.org/CosNaming/NamingContext:1.0"' in text


def test_two_types_of_one_name() -> None:
    def other() -> type:
        @dataclass
        class Cell:
            x: Long

        return Cell

    different = other()

    @interface
    class Both:
        def go(self, a: Cell, b: different) -> None: ...  # type: ignore[valid-type]

    with pytest.raises(UsageError, match="Two different types are called Cell"):
        to_idl(Both)


def test_ids_that_are_none() -> None:
    @interface("nonsense")
    class Odd:
        def go(self) -> None: ...

    with pytest.raises(UsageError, match="no repository id"):
        to_idl(Odd)
