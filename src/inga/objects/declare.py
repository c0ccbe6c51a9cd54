"""Classes of objects, and which of their methods are compatible.

    class Counter(ObjectClass):
        def initial(self): return 0
        @method(compatible=("inc", "dec"), undo="dec")
        async def inc(self, ctx, k=1): ctx.effect(lambda s: s + k)
        ...

Two methods are *compatible* if, in every state, both orders lead to the same state and give each of them the same
result. That cannot be computed, so it is declared; whatever is not declared conflicts, a method with itself too.
Declarations are closed under symmetry, and nothing else: the relation is not transitive.

    compatible   methods that are compatible with this one
    identity     it changes nothing; two such methods are always compatible
    absorbs      methods whose effect is lost if this one follows: for readers alone, checked by `check_compatible`
    undo         the method that reverses it, called with the same arguments; without it, its effects are removed
                 from the state and all later ones are applied again
    conflict_if  decides by the arguments: called for two calls of methods that both have one

`check_compatible` tests declarations on states and calls, and shows counterexamples.
"""

import inspect
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar, overload

from inga.model.errors import UsageError
from inga.model.readonly import BY_EFFECT, read_only
from inga.model.text import suggest

Effect = Callable[[Any], Any]
"""Returns a new state made from the old one, which it does not modify."""


class Call(NamedTuple):
    """A method and what it is called with: all that `conflict_if` gets to see."""

    op: str
    args: tuple[Any, ...] = ()
    named: Mapping[str, Any] = {}

    def __str__(self) -> str:
        words = [*map(repr, self.args), *(f"{name}={value!r}" for name, value in self.named.items())]
        return f"{self.op}({', '.join(words)})"


ConflictIf = Callable[[Call, Call], bool]


class Abort(Exception):
    """Raised by a method: the instance ends without effect, and its caller is told why."""


def error_text(error: BaseException) -> str:
    """The text of an error for the caller: that of an `Abort`, else the type and the text of the exception."""
    name = type(error).__name__
    try:
        text = f"{error}"
    except Exception:  # its `__str__` fails, too
        return name
    return text if isinstance(error, Abort) else f"{name}: {text}"


class Context(Protocol):
    """What a method uses to change the state and to call other objects; its argument `ctx`.

    `target` is the name of an object, or several of them; a call to several is one call, answered by all. For a
    replicated object the result is that of its first copy, with `first=True` the first that arrives, with
    `answers="all"` a list of all copies' results. If the called method has parameters of these names, it gets them instead.
    """

    @property
    def state(self) -> Any:
        """The committed state of the object; None for a root."""

    def effect(self, change: Effect) -> None:
        """Change the state, when the instance commits."""

    def call(self, target: "Target", op: str, /, *args: Any, **named: Any) -> Awaitable[Any]:
        """Call and wait."""

    def start(self, target: "Target", op: str, /, *args: Any, **named: Any) -> Awaitable[Any]:
        """Call and go on; the instance does not commit before the answer is there."""

    def oneway(self, target: "Target", op: str, /, *args: Any, **named: Any) -> None:
        """Call without an answer. The called instance is a root of its own: it is not undone if this one aborts."""

    def all(self, *calls: Awaitable[Any]) -> Awaitable[list[Any]]:
        """Wait for all of these."""

    def any(self, *calls: Awaitable[Any]) -> Awaitable[Any]:
        """Wait for the first of these that commits; the others are undone."""

    def pause(self, seconds: float) -> Awaitable[None]:
        """Let time pass."""


Target = str | Sequence[str]


@dataclass(frozen=True, slots=True)
class Method:
    """One method as it was declared. In the body of its class it stands for the function, until the class is created."""

    name: str
    function: Callable[..., Any]
    compatible: tuple[str, ...]
    identity: bool
    absorbs: tuple[str, ...]
    undo: str | None
    conflict_if: ConflictIf | None


class Conflicts:
    """Which calls conflict at an object of one class: the symmetric closure of its declarations, fixed with the class."""

    def __init__(self, methods: Mapping[str, Method]) -> None:
        self.methods = methods
        self._compatible = {
            frozenset((one.name, other.name))
            for one, other in combinations_with_replacement(methods.values(), 2)
            if other.name in one.compatible
            or one.name in other.compatible
            or (one.identity and other.identity)
        }
        self._conflicting = {
            name: frozenset(other for other in methods if frozenset((name, other)) not in self._compatible)
            for name in methods
        }

    def of(self, op: str) -> frozenset[str]:
        """The methods that may conflict with this one; for a method that the class lacks, none: calling it
        fails, and changes nothing."""
        return self._conflicting.get(op, frozenset())

    def between(self, one: Call, other: Call) -> bool:
        """Whether these two calls conflict."""
        if other.op not in self.of(one.op):
            return False
        mine, theirs = self.methods[one.op].conflict_if, self.methods[other.op].conflict_if
        if mine is None or theirs is None:
            return True
        return _says(mine, one, other) or _says(theirs, other, one)

    @property
    def pairs(self) -> list[list[str]]:
        """The pairs of methods that may conflict, in the form of a manifest."""
        names = sorted(self.methods)
        return [
            [one, other] for one, other in combinations_with_replacement(names, 2) if other in self.of(one)
        ]


def _says(conflict_if: ConflictIf, one: Call, other: Call) -> bool:
    """What `conflict_if` returns. Arguments come from the network: if it raises, the calls conflict."""
    try:
        return bool(conflict_if(one, other))
    except Exception:
        return True


class ObjectClass:
    """The base of classes whose objects live in a group."""

    methods: ClassVar[Mapping[str, Method]] = {}
    conflicts: ClassVar[Conflicts] = Conflicts({})

    def initial(self) -> Any:
        """The state of a new object."""
        return None

    @property
    def state(self) -> Any:
        """What has been committed."""
        return vars(self).get("state")

    @state.setter
    def state(self, value: Any) -> None:
        raise UsageError(BY_EFFECT)

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        methods = dict(cls.methods)
        for name, value in list(vars(cls).items()):
            if name == "state" or (name == "initial" and isinstance(value, Method)):
                raise UsageError(f"{cls.__name__}.{name} hides what every object has: choose another name")
            if isinstance(value, Method):
                methods[name] = replace(value, name=name)
                setattr(cls, name, value.function)
            elif name in methods:
                raise UsageError(
                    f"{cls.__name__}.{name} hides a method of its base: declare it with @method again"
                )
        _check_names(cls.__name__, methods)
        cls.methods = methods
        cls.conflicts = Conflicts(methods)


def show_state(target: ObjectClass, value: Any) -> None:
    """Let methods see this as `self.state`, which they cannot set."""
    vars(target)["state"] = value


F = TypeVar("F", bound=Callable[..., Any])


@overload
def method(function: F) -> F: ...


@overload
def method(
    *,
    compatible: Iterable[str] = (),
    identity: bool = False,
    absorbs: Iterable[str] = (),
    undo: str | None = None,
    conflict_if: ConflictIf | None = None,
) -> Callable[[F], F]: ...


def method(
    function: Any = None,
    *,
    compatible: Iterable[str] = (),
    identity: bool = False,
    absorbs: Iterable[str] = (),
    undo: str | None = None,
    conflict_if: ConflictIf | None = None,
) -> Any:
    """Declare a method of an `ObjectClass`: `async def name(self, ctx, ...)`."""

    def declare(function: Any) -> Any:
        if not inspect.iscoroutinefunction(function):
            raise UsageError(f"a method is async def name(self, ctx, ...), which {_name(function)} is not")
        names = _tuple(compatible, "compatible"), _tuple(absorbs, "absorbs")
        return Method(function.__name__, function, names[0], identity, names[1], undo, conflict_if)

    _check_kinds(identity, undo, conflict_if)

    return declare if function is None else declare(function)


def _check_kinds(identity: object, undo: object, conflict_if: object) -> None:
    if not isinstance(identity, bool):
        raise UsageError(f"identity is True or False, not {identity!r}")
    if not isinstance(undo, str | None):
        raise UsageError(f"undo is the name of a method, not {undo!r}")
    if conflict_if is not None and (not callable(conflict_if) or inspect.iscoroutinefunction(conflict_if)):
        raise UsageError(
            f"conflict_if is a function that says of two calls whether they conflict, not {conflict_if!r}"
        )


def _tuple(names: Any, what: str) -> tuple[str, ...]:
    if isinstance(names, str):
        raise UsageError(f"{what}={names!r} would be read letter by letter; write {what}=({names!r},)")
    found = tuple(names) if isinstance(names, Iterable) else (names,)
    if not all(isinstance(name, str) for name in found):
        raise UsageError(f"{what} are names of methods, not {names!r}")
    return found


def _name(function: Any) -> str:
    return getattr(function, "__qualname__", repr(function))


def _check_names(cls: str, methods: Mapping[str, Method]) -> None:
    """Check that methods which declarations name exist, and that all methods take `self` and `ctx`."""
    for each in methods.values():
        undo = () if each.undo is None else (each.undo,)
        for what, names in (("compatible", each.compatible), ("absorbs", each.absorbs), ("undo", undo)):
            for name in names:
                if name not in methods:
                    known = ", ".join(sorted(methods))
                    raise UsageError(f"{cls}.{each.name}: {what} names {name!r}; the methods are {known}")
        kinds = [parameter.kind for parameter in inspect.signature(each.function).parameters.values()]
        by_place = [kind for kind in kinds if kind <= inspect.Parameter.POSITIONAL_OR_KEYWORD]
        if len(by_place) < 2 and inspect.Parameter.VAR_POSITIONAL not in kinds:
            raise UsageError(
                f"{cls}.{each.name} takes (self, ctx, ...), so that it can change the state and call"
            )


# ---- Testing declarations


@dataclass(frozen=True, slots=True)
class Counterexample:
    """Two calls, or one, that do not behave as declared from some state."""

    what: str  # `compatible`, `identity`, `absorbs`, `undo`, `conflict_if`, or `runs`: it fails
    cls: str
    state: Any
    calls: tuple[Call, ...]
    found: str

    def __str__(self) -> str:
        words = {
            "compatible": "are declared compatible",
            "identity": "is declared to change nothing",
            "absorbs": "the second is declared to absorb the first",
            "undo": "the second is declared to undo the first",
            "conflict_if": "conflict_if depends on the order in which it is asked",
            "runs": "a method ends, or raises Abort",
        }
        calls = " and ".join(map(str, self.calls))
        return f"{self.cls}: {calls}: {words[self.what]}, but from state {self.state!r} {self.found}"


def check_compatible(
    cls: type[ObjectClass],
    states: Iterable[Any] | Callable[[Any], Any],
    calls: Iterable[Sequence[Any]] | Callable[[Any], Sequence[Any]],
    *,
    rng: Any = None,
    runs: int = 200,
    show: Callable[[str], None] | None = print,
) -> list[Counterexample]:
    """Run calls in both orders and report where a declaration does not hold; nothing found is no proof.

    `states` are states to start from and `calls` are `(name, *arguments)`: lists, or functions that are given `rng`
    and asked `runs` times. At most one counterexample for each kind and pair of methods, each told to `show`.
    A method that raises anything but `Abort` is one, too: it aborts, and is probably not meant to. Methods that call
    other objects cannot be looked at this way.
    """
    some_states = _drawn(states, rng, runs)
    some_calls = [Call(each[0], tuple(each[1:])) for each in _drawn(calls, rng, runs)]
    for call in some_calls:
        if call.op not in cls.methods:
            raise UsageError(f"{cls.__name__} has no method {call.op!r}{suggest(call.op, cls.methods)}")
    found: dict[tuple[str, ...], Counterexample] = {}
    for example in _examples(cls, some_states, some_calls):
        found.setdefault((example.what, *sorted(call.op for call in example.calls)), example)
    for example in found.values():
        if show is not None:
            show(str(example))
    return list(found.values())


def _drawn(given: Any, rng: Any, runs: int) -> list[Any]:
    if not callable(given):
        return list(given)
    if rng is None:
        raise UsageError("states and calls that are functions need chance: pass rng=random.Random(1)")
    return [given(rng) for _ in range(runs)]


def _examples(
    cls: type[ObjectClass], states: Sequence[Any], calls: Sequence[Call]
) -> Generator[Counterexample, None, None]:
    for state in states:
        for call in calls:
            yield from _alone(cls, state, call)
        for one, other in combinations_with_replacement(calls, 2):
            yield from _together(cls, state, one, other)


def _alone(cls: type[ObjectClass], state: Any, call: Call) -> Generator[Counterexample, None, None]:
    declared = cls.methods[call.op]
    after, outputs = _run(cls, state, call)
    name = cls.__name__
    if outputs[0][0] == "raises":
        yield Counterexample("runs", name, state, (call,), f"it {' '.join(outputs[0])}")
    if declared.identity and after != state:
        yield Counterexample("identity", name, state, (call,), f"it leads to {after!r}")
    if declared.undo is not None and outputs[0][0] == "gives":
        back = Call(declared.undo, call.args, call.named)
        restored, _ = _run(cls, state, call, back)
        if restored != state:
            yield Counterexample("undo", name, state, (call, back), f"they lead to {restored!r}")


def _together(
    cls: type[ObjectClass], state: Any, one: Call, other: Call
) -> Generator[Counterexample, None, None]:
    name, methods = cls.__name__, cls.methods
    if not cls.conflicts.between(one, other):
        after, (first, second) = _run(cls, state, one, other)
        swapped, (second_first, first_second) = _run(cls, state, other, one)
        if after != swapped:
            found = f"the first order leads to {after!r}, the other to {swapped!r}"
            yield Counterexample("compatible", name, state, (one, other), found)
        for call, before, late in ((one, first, first_second), (other, second, second_first)):
            if before != late:
                found = f"{call} {' '.join(before)} in one order and {' '.join(late)} in the other"
                yield Counterexample("compatible", name, state, (one, other), found)
    for early, late_call in ((one, other), (other, one)):
        if early.op in methods[late_call.op].absorbs:
            both, outputs = _run(cls, state, early, late_call)
            single, alone = _run(cls, state, late_call)
            if both != single or outputs[1] != alone[0]:
                found = f"together they lead to {both!r}, the second alone to {single!r}"
                yield Counterexample("absorbs", name, state, (early, late_call), found)
    asked = methods[one.op].conflict_if
    shared = asked is not None and asked is methods[other.op].conflict_if
    if asked is not None and shared and _says(asked, one, other) != _says(asked, other, one):
        yield Counterexample("conflict_if", name, state, (one, other), "the answers differ")


def _run(cls: type[ObjectClass], state: Any, *calls: Call) -> tuple[Any, list[tuple[str, str]]]:
    """The state after these calls, one after the other, and the outcome of each."""
    target = cls()
    value = read_only(deepcopy(state))
    outputs = []
    for call in calls:
        context = _Alone(f"{cls.__name__}.{call.op}", value)
        show_state(target, value)
        try:
            result = _finished(cls.methods[call.op].function(target, context, *call.args, **call.named))
            after = value
            for change in context.effects:
                after = read_only(change(after))
        except _CannotTry:
            raise
        except Exception as error:
            outputs.append(("aborts" if isinstance(error, Abort) else "raises", f"({error_text(error)})"))
        else:
            outputs.append(("gives", repr(result)))
            value = after
    return value, outputs


def _finished(body: Any) -> Any:
    """The result of a coroutine that waits for nothing."""
    try:
        body.send(None)
    except StopIteration as end:
        return end.value
    body.close()
    raise _CannotTry("check_compatible cannot look at methods that wait for something")


class _CannotTry(UsageError):
    """A method cannot be tested here: it waits, or calls other objects."""


class _Alone:
    """A context without other objects."""

    def __init__(self, name: str, state: Any) -> None:
        self.state = state
        self.effects: list[Effect] = []
        self._name = name

    def effect(self, change: Effect) -> None:
        self.effects.append(change)

    def __getattr__(self, name: str) -> Any:
        raise _CannotTry(f"{self._name} calls other objects; check_compatible looks at one object alone")
