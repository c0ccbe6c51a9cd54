"""What can be said about how objects are kept in order."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from inga.layers.numbers import check_number, check_seconds, check_switch
from inga.model.errors import UsageError
from inga.objects.hosting import KeyFunction
from inga.objects.window import WINDOW


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Times are in seconds, or whatever unit `now` is in."""

    delta: float = 0.05  # between heartbeats, the papers' δ
    grace: float | None = None  # how long a request waits before it may die; None = 3 delta
    announce: bool = True  # tell members that a request is not for that their clocks are wanted (L6)
    quiet: bool = False  # send heartbeats only while a member has use for them
    reliable: bool = False  # what is below loses nothing: keep no copies, ask for nothing
    window: int = WINDOW  # bytes of one member that may wait at another
    # Bytes of arguments, a result or an error that what is below can carry; None: any.
    room: int | None = None
    invoking: Mapping[str, Iterable[int]] = field(default_factory=dict)  # object -> members that may call it

    @property
    def patience(self) -> float:
        """How long a request waits before it may die."""
        return 3 * self.delta if self.grace is None else self.grace


@dataclass(frozen=True, slots=True)
class ObjectSettings:
    """What a user can choose. Times are in seconds."""

    delta: float = 0.05  # between heartbeats while anybody has use for them
    grace: float | None = None  # how long a call waits before it may be given up to end a deadlock
    announce: bool = True  # tell members that are not addressed at once that their clocks are wanted
    window: int = WINDOW  # bytes of one member that may wait at another
    # Plain messages of equal keys are in order with each other; None = all are.
    key: KeyFunction | None = None
    keys: int | None = None  # deal them out to so many by their first four bytes
    # By object, the names of the members that may call it, or have copies of objects that do; None, and objects that
    # are not named: all members. A request then waits for the clocks of these alone. All members say the same.
    members_invoking: Mapping[str, Iterable[str]] | None = None

    def __post_init__(self) -> None:
        check_seconds("delta", self.delta)
        if self.grace is not None:
            check_seconds("grace", self.grace)
        check_switch("announce", self.announce)
        check_number("window", self.window, 1)
        if self.key is not None and not callable(self.key):
            raise UsageError(f"key is a function from a message to a key, not {self.key!r}")
        if self.keys is not None:
            check_number("keys", self.keys, 1)
        if self.members_invoking is not None:
            _check_invoking(self.members_invoking)

    def options(self, *, reliable: bool) -> EngineOptions:
        """Of the engine, over something that loses nothing or not."""
        return EngineOptions(
            self.delta, self.grace, bool(self.announce), quiet=True, reliable=reliable, window=self.window
        )


def invoking_of(
    said: Mapping[str, Iterable[str]] | None, names: Sequence[str], objects: Container[str]
) -> dict[str, frozenset[int]]:
    """The setting `members_invoking` by the numbers of members in a view; of objects that the view has."""
    return {
        name: frozenset(at for at, member in enumerate(names) if member in set(members))
        for name, members in (said or {}).items()
        if name in objects
    }


def _check_invoking(said: object) -> None:
    is_right = isinstance(said, Mapping) and all(
        isinstance(members, Iterable)
        and not isinstance(members, str)
        and all(isinstance(each, str) for each in members)
        for members in said.values()
    )
    if not is_right:
        raise UsageError(
            f"members_invoking names for each object the members that call it, as in {{'till': ['alice', 'bob']}}, not {said!r}"
        )
