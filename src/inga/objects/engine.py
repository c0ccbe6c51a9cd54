"""Everything one member does for the objects it has: order, invocation, commit and abort, members that fail.

Time and packets go in, actions come out: `Send` these, `Run` that instance, `Resume` another one. Bodies are not
run here; `inga.objects.invoke.Host` does that, and is what drivers use.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from inga.model.invocation import Message, Spoken
from inga.objects.instance import Instance, Pending
from inga.objects.roster import Roster


@dataclass(frozen=True, slots=True)
class Options:
    """Times are in seconds, or whatever unit `now` is in."""

    delta: float = 0.05  # between heartbeats, the papers' δ
    grace: float | None = None  # how long a request waits before it may die; None = 3 delta
    announce: bool = True  # tell those outside a request's destinations that their clocks are wanted (L6)
    quiet: bool = False  # heartbeats only while somebody has use for them
    reliable: bool = False  # what is below loses nothing: keep no copies, ask for nothing
    invoking: Mapping[str, Iterable[int]] = field(default_factory=dict)  # object -> members that call it


class Send(NamedTuple):
    """Transmit this to these members."""

    members: tuple[int, ...]
    packet: Spoken


class Run(NamedTuple):
    """Begin with the body of this instance."""

    instance: Instance


class Resume(NamedTuple):
    """What the instance waited for has come."""

    instance: Instance
    value: Any


class Cancel(NamedTuple):
    """The instance was aborted: end its body."""

    instance: Instance
    reason: str
    text: str


Action = Send | Run | Resume | Cancel


class Observer(Protocol):
    """Told of every step of objects: request, start, commit, abort, response, undo; and receive, hold, take, die."""

    def note(
        self, step: str, now: float, place: int, message: Message | None, instance: Instance | None
    ) -> None: ...


class Engine:
    """One member's part in the objects of its group."""

    def __init__(
        self,
        me: int,
        roster: Roster,
        options: Options | None = None,
        *,
        now: float = 0.0,
        observer: Observer | None = None,
    ) -> None:
        self.counts: Counter[str] = Counter()  # held, died, undone, committed, aborted, repaired, ...
        self.wake: float | None = None  # when tick is wanted

    # From the network and the clock

    def receive(self, now: float, packet: Spoken) -> list[Action]:
        """Something came; whatever it is, nothing is raised."""
        raise NotImplementedError

    def tick(self, now: float) -> list[Action]:
        """The time `wake` has come."""
        raise NotImplementedError

    def suspect(self, now: float, member: int) -> list[Action]:
        """A member is taken for dead: hear nothing of it any more, and hand round what it said."""
        raise NotImplementedError

    def view(self, now: float, members: Iterable[int]) -> list[Action]:
        """Only these are left."""
        raise NotImplementedError

    # From bodies

    def begin(self, now: float, place: int, *, retry_of: Instance | None = None) -> Instance:
        """A root; a retry keeps the age of the first attempt. Its `Run` comes with the next actions."""
        raise NotImplementedError

    def call(
        self,
        instance: Instance,
        kind: str,
        dst: tuple[int, ...],
        op: str,
        args: tuple[Any, ...] = (),
        named: Mapping[str, Any] | None = None,
        *,
        first: bool = False,
    ) -> Pending:
        """Invoke `op` at these places."""
        raise NotImplementedError

    def wait(self, instance: Instance, calls: Sequence[Pending], *, any: bool = False) -> None:
        """The body waits; a `Resume` follows with what each place answered: one dictionary for each call, or for
        `any` the call that won."""
        raise NotImplementedError

    def finish(self, instance: Instance, result: Any) -> None:
        """The body has ended. It commits once all its calls have."""
        raise NotImplementedError

    def fail(self, instance: Instance, text: str, reason: str = "fail") -> None:
        """The body has failed, or does not want to go on."""
        raise NotImplementedError

    def actions(self, now: float) -> list[Action]:
        """What bodies have caused since."""
        raise NotImplementedError

    # Questions

    def precedes(self, one: Message, other: Message) -> bool:
        """Whether `one` is known to precede `other` significantly."""
        return one.ev <= other.vector[one.src]

    def blocked(self) -> list[tuple[int, Message, list[Instance]]]:
        """Requests that wait, where, and the running instances they wait for."""
        raise NotImplementedError

    @property
    def idle(self) -> bool:
        """Whether nothing runs, waits or is on its way from here."""
        raise NotImplementedError


Done = Callable[[Any, BaseException | None], None]
