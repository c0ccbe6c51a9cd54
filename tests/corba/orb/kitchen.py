"""The interface of kitchen.idl, declared in Python."""

import enum
from dataclasses import dataclass

from inga.corba.broker.idl import (
    Char,
    Float,
    Long,
    LongLong,
    Octet,
    Short,
    ULong,
    ULongLong,
    UserException,
    UShort,
    WString,
    interface,
    oneway,
    operation,
    raises,
    user_exception,
)
from inga.corba.wire.reference import Reference


class Course(enum.Enum):
    STARTER = "starter"
    MAIN = "main"
    DESSERT = "dessert"


@dataclass
class Dish:
    name: str
    course: Course
    price: float
    scores: list[Short]
    vegan: bool


@dataclass
class Numbers:
    octet: Octet
    short: Short
    ushort: UShort
    long: Long
    ulong: ULong
    longlong: LongLong
    ulonglong: ULongLong
    float: Float
    double: float
    boolean: bool
    char: Char


@user_exception("IDL:demo/SoldOut:1.0")
class SoldOut(UserException):
    dish: str
    left: Long


@user_exception("IDL:demo/Closed:1.0")
class Closed(UserException):
    pass


@interface("IDL:demo/Room:1.0")
class Room:
    def area(self) -> float:
        raise NotImplementedError

    @operation("_get_title")
    def title(self) -> str:
        raise NotImplementedError


@interface("IDL:demo/Kitchen:1.0")
class Kitchen(Room):
    def greet(self, name: str) -> str:
        raise NotImplementedError

    def widen(self, text: WString) -> WString:
        raise NotImplementedError

    def echo(self, numbers: Numbers) -> Numbers:
        raise NotImplementedError

    def total(self, values: list[Long]) -> LongLong:
        raise NotImplementedError

    def reverse(self, data: bytes) -> bytes:
        raise NotImplementedError

    def menu(self, course: Course) -> list[Dish]:
        raise NotImplementedError

    @raises(SoldOut, Closed)
    def order(self, name: str, count: Long) -> Dish:
        raise NotImplementedError

    def divide(self, a: Long, b: Long) -> tuple[Long, Long]:
        raise NotImplementedError

    def itself(self) -> Reference | None:
        raise NotImplementedError

    @oneway
    def note(self, text: str) -> None:
        raise NotImplementedError

    def notes(self) -> list[str]:
        raise NotImplementedError


MENU = [
    Dish("soup", Course.STARTER, 4.5, [3, -4, 5], True),
    Dish("stew", Course.MAIN, 11.25, [], False),
    Dish("cake", Course.DESSERT, 3.75, [7], True),
]


class OurKitchen(Kitchen):
    """What the C++ server does too."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.reference: Reference | None = None

    def area(self) -> float:
        return 12.5

    def title(self) -> str:
        return "Küche"

    def greet(self, name: str) -> str:
        return f"Hello, {name}!"

    def widen(self, text: str) -> str:
        return text + text

    def echo(self, numbers: Numbers) -> Numbers:
        return numbers

    async def total(self, values: list[int]) -> int:
        return sum(values)

    def reverse(self, data: bytes) -> bytes:
        return data[::-1]

    def menu(self, course: Course) -> list[Dish]:
        return [dish for dish in MENU if dish.course is course]

    def order(self, name: str, count: int) -> Dish:
        for dish in MENU:
            if dish.name == name:
                if count > 3:
                    raise SoldOut(name, 3)
                return dish
        raise Closed()

    def divide(self, a: int, b: int) -> tuple[int, int]:
        return a // b, a % b  # b = 0 becomes UNKNOWN

    def itself(self) -> Reference | None:
        return self.reference

    def note(self, text: str) -> None:
        self.said.append(text)

    def notes(self) -> list[str]:
        return self.said
