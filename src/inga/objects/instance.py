"""One execution of a method, the calls it has made, and what it waits for."""

from collections.abc import Sequence
from typing import Any

from inga.model.compiled import mypyc_attr
from inga.model.invocation import CallId, Message, Path, StartId
from inga.objects.declare import Call, Effect

RUNNING, COMMITTED, ABORTED = "running", "committed", "aborted"


@mypyc_attr(allow_interpreted_subclasses=True)
class Pending:
    """One call of an instance: to one place or several, each of which answers."""

    __slots__ = ("alternatives", "answers", "dropped", "dst", "first", "id", "kind", "missing", "request")

    def __init__(self, id: CallId, kind: str, dst: tuple[int, ...], first: bool = False) -> None:
        self.id = id
        self.kind = kind
        self.dst = dst
        self.first = first  # the body may go on with the first answer; the commit waits for all
        self.missing = set(dst)  # places that have not answered
        self.answers: dict[int, Any] = {}
        self.alternatives: Alternatives | None = None  # of which this call is one
        self.dropped = False  # an alternative that has lost or failed: its answers are ignored
        # Method, arguments.
        self.request: tuple[str, tuple[Any, ...], tuple[tuple[str, Any], ...]] = ("", (), ())

    @property
    def done(self) -> bool:
        """Whether the body may have the result."""
        return not self.missing or (self.first and bool(self.answers))


@mypyc_attr(allow_interpreted_subclasses=True)
class Alternatives:
    """Calls of which the first that commits is enough."""

    __slots__ = ("calls",)

    def __init__(self, calls: Sequence[Pending]) -> None:
        self.calls = list(calls)


@mypyc_attr(allow_interpreted_subclasses=True)
class Instance:
    """The state of one execution, at one place."""

    __slots__ = (
        "base",
        "call",
        "calls",
        "cohort",
        "copies",
        "data",
        "effects",
        "finished",
        "held",
        "holds",
        "hosts",
        "number",
        "path",
        "place",
        "request",
        "result",
        "sends",
        "start",
        "status",
        "undoes",
        "vector",
        "waits",
    )

    def __init__(self, place: int, start: StartId, path: Path, base: CallId, request: Message | None) -> None:
        self.place = place
        self.start = start
        self.path = path
        self.base = base  # the common beginning of the names of its calls
        self.request = request  # None for a root
        self.call: Call = Call("") if request is None else Call(request.op, request.args, dict(request.named))
        self.copies: tuple[int, ...] = (place,)  # the places that run the same instance, this one among them
        # The places of each instance in the lineage, this one last.
        self.hosts: tuple[tuple[int, ...], ...] = ()
        self.holds = False  # this instance or an ancestor can block others
        self.cohort = start
        self.vector: list[int] = []
        self.sends = 0  # messages so far: the number of the next
        self.number = 0  # calls so far
        self.calls: dict[CallId, Pending] = {}
        self.waits: AwaitedCalls | None = None
        self.held: list[Message] = []  # answers that other answers may still precede
        self.effects: list[Effect] = []
        self.status = RUNNING
        self.finished = False  # the body has ended
        self.result: Any = None
        self.undoes: Instance | None = None  # the committed instance that this one undoes
        self.data: Any = None  # set and used by the host, which runs the body

    @property
    def awaited(self) -> bool:
        """Whether its invoker waits for its outcome."""
        return self.request is not None and self.request.kind in "sa"

    @property
    def unanswered(self) -> bool:
        return any(call.missing and not call.dropped for call in self.calls.values())

    def is_ancestor_of(self, path: Path) -> bool:
        """Whether this instance made the call with that path, directly or through others. An instance that undoes another makes none."""
        mine = self.path
        return self.undoes is None and len(path) > len(mine) and path[: len(mine)] == mine


@mypyc_attr(allow_interpreted_subclasses=True)
class AwaitedCalls:
    """What a body waits for: all of these calls, or one of them."""

    __slots__ = ("alternatives", "calls")

    def __init__(self, calls: Sequence[Pending], alternatives: Alternatives | None = None) -> None:
        self.calls = calls
        self.alternatives = alternatives
