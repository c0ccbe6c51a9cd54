"""Checks of calls, at the moment the application makes them.

An invalid call, such as one of an unknown object or with an argument that cannot be encoded, raises an error in the
caller. Once a call is on its way there is no caller to raise the error in, and all calls behind it in the same group
would stop.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from inspect import signature
from typing import Any, NamedTuple

from inga.model.errors import UsageError
from inga.model.invocation import ONE_WAY
from inga.objects.declare import Method, ObjectClass, Target
from inga.objects.roster import Roster
from inga.wire.value import copied, put

FIRST, ALL = ANSWERS = ("first", "all")
"""The result of a call to a replicated object: the answer of one copy, or a list of all copies' answers."""


class AnswerShape(NamedTuple):
    """How the answers to a call become its result."""

    copies: tuple[tuple[int, ...], ...]  # the places of each called object
    several: bool  # several objects were called: a list with a result for each
    all: bool  # the result for an object is a list of all its copies' answers

    def result(self, answers: Mapping[int, Any]) -> Any:
        """The result, from answers by place."""
        values = [self._of(answers, copies) for copies in self.copies]
        return values if self.several else values[0]

    def _of(self, answers: Mapping[int, Any], copies: tuple[int, ...]) -> Any:
        given = [answers[place] for place in copies if place in answers]
        return given if self.all else given[0] if given else None


class Invocation(NamedTuple):
    """A call that has been checked."""

    kind: str
    places: tuple[int, ...]
    op: str
    args: tuple[Any, ...]
    named: dict[str, Any]
    first: bool  # go on with the first answer
    shape: AnswerShape


class Calling:
    """Checks the calls of one member to the objects of its group."""

    def __init__(
        self,
        roster: Roster,
        classes: Mapping[str, type[ObjectClass]],
        room: int | None = None,
        closed: Container[str] = (),
    ) -> None:
        """`room`: the most bytes of arguments or of a result that the layers below can carry; None: no limit. `closed`: objects
        that this member may not call."""
        self._roster = roster
        self._classes = classes
        self._room = room
        self._closed = closed

    def check(
        self,
        kind: str,
        target: Target,
        op: str,
        args: tuple[Any, ...],
        named: dict[str, Any],
        *,
        first: bool = False,
        answers: str = FIRST,
    ) -> Invocation:
        """Check a call; UsageError if it is invalid. If it has answers, `first` and `answers` in `named` replace our own
        parameters, unless the method has parameters of those names."""
        names = self._names(target)
        if type(op) is not str:
            raise UsageError(f"a method is called by its name, not by {op!r}")
        if kind == ONE_WAY:
            for name in names:  # for other calls the answer reports a missing method
                find_method(self._classes[name], name, op)
        else:
            if "first" in named and not self._takes(names, op, "first"):
                first = named.pop("first")
            if "answers" in named and not self._takes(names, op, "answers"):
                answers = named.pop("answers")
        if not isinstance(first, bool):
            raise UsageError(f"first is True or False, not {first!r}: {op!r} has no parameter of that name")
        check_answers(answers)
        args, named = copied(args), copied(named)
        self.check_size((op, args, named))
        copies = tuple(self._roster.copies[name] for name in names)
        shape = AnswerShape(copies, not isinstance(target, str), answers == ALL)
        places = self._roster.find(names)
        return Invocation(kind, places, op, args, named, first and not shape.all, shape)

    def check_size(self, value: Any) -> None:
        """Raise UsageError if a value is too large for the layers below."""
        if self._room is None:
            return
        out = bytearray()
        put(out, value)
        if len(out) > self._room:
            raise UsageError(
                f"{len(out)} bytes of arguments or result do not fit a datagram with room for {self._room}; "
                "over='reliable' takes more"
            )

    def _names(self, target: Target) -> tuple[str, ...]:
        """The names of the called objects, checked. Mailboxes have places as objects have, but cannot be called."""
        if not isinstance(target, Iterable):
            raise UsageError(f"an object is called by its name, or several by theirs, not by {target!r}")
        names: Sequence[Any] = (target,) if isinstance(target, str) else tuple(target)
        if not names:
            raise UsageError("nobody is called: name at least one object")
        for name in names:
            if not isinstance(name, str) or name not in self._classes:
                known = ", ".join(self._classes) or "none"
                raise UsageError(f"there is no object {name!r} in this group; the objects are {known}")
            if name in self._closed:
                raise UsageError(
                    f"members_invoking does not name this member among those that call {name!r}; name it there, at every member"
                )
        return tuple(dict.fromkeys(names))

    def _takes(self, names: Iterable[str], op: str, parameter: str) -> bool:
        """Whether the method has a parameter of that name, at any of these objects."""
        methods = (self._classes[name].methods.get(op) for name in names)
        return any(parameter in signature(each.function).parameters for each in methods if each is not None)


def check_answers(answers: str) -> None:
    """Raise UsageError if it is not one of `ANSWERS`."""
    if answers not in ANSWERS:
        raise UsageError(f"answers is {FIRST!r} or {ALL!r}, not {answers!r}")


def find_method(cls: type[ObjectClass], name: str, op: str) -> Method:
    """The method `op` of a class, or UsageError; `name` is that of the object."""
    method = cls.methods.get(op)
    if method is None:
        known = ", ".join(cls.methods) or "none"
        raise UsageError(f"object {name!r} has no method {op!r}; the methods are {known}")
    return method
