"""Options of the order of objects: those of the engine, and those that users choose."""

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
    announce: bool = True  # ask members that a request does not go to for their clocks (L6)
    quiet: bool = False  # send heartbeats only to members that need them
    reliable: bool = False  # the layers below lose nothing: keep no copies, send no nacks
    window: int = WINDOW  # bytes of one member that may wait at another
    # The most bytes of arguments, of a result or of an error's text that the layers below can carry; None: no limit.
    room: int | None = None
    invoking: Mapping[str, Iterable[int]] = field(default_factory=dict)  # object -> members that may call it

    @property
    def patience(self) -> float:
        """How long a request waits before it may die."""
        return 3 * self.delta if self.grace is None else self.grace


@dataclass(frozen=True, slots=True)
class ObjectSettings:
    """The options that users choose. Times are in seconds."""

    delta: float = 0.05  # between heartbeats while a member needs them
    grace: float | None = None  # how long a call waits before it may be given up to end a deadlock
    announce: bool = True  # ask members that a request does not go to for their clocks at once
    window: int = WINDOW  # bytes of one member that may wait at another
    # Computes the key of a plain message. Messages of equal keys are ordered with each other; None = all messages are.
    key: KeyFunction | None = None
    keys: int | None = None  # without `key`: use so many keys, computed from a message's first four bytes
    # By object, the names of the members that may call it, or have copies of objects that do; None, and for objects that
    # are not listed: all members. A request waits for the clocks of these members alone. The same at all members.
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
        """The options of the engine. `reliable`: the layers below lose nothing."""
        return EngineOptions(
            self.delta, self.grace, bool(self.announce), quiet=True, reliable=reliable, window=self.window
        )


def invoking_of(
    said: Mapping[str, Iterable[str]] | None, names: Sequence[str], objects: Container[str]
) -> dict[str, frozenset[int]]:
    """The setting `members_invoking` with the indices of members in a view, for the objects of that view."""
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
