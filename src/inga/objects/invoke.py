"""Bodies of methods, run without I/O: a coroutine is sent what it waits for, and waits for calls and pauses alone.

`Host` is one member's objects with everything that runs in them. A driver gives it packets and time, and gets what to
send, when to wake it, and how roots ended.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from inga.model.errors import RemoteError
from inga.model.invocation import Spoken
from inga.objects.declare import ObjectClass
from inga.objects.engine import Observer, Options, Send
from inga.objects.instance import Instance
from inga.objects.roster import Roster

Body = Callable[["Context"], Awaitable[Any]]
"""`async def body(ctx)`: what a root does."""

Done = Callable[["Root"], None]


class InvocationAborted(RemoteError):
    """A call, or a whole root, came to nothing. `reason` is one of fail, child, deadlock, gone, orphan."""

    def __init__(self, reason: str, text: str = "") -> None:
        super().__init__(text or reason)
        self.reason = reason


class Root:
    """A transaction of a client: how it goes, and how it ended."""

    instance: Instance
    done: bool = False
    result: Any = None
    error: BaseException | None = None


class Context:
    """What a body is given: see `inga.objects.declare.Context`, whose methods these are; besides

        ctx.call(target, op, *args, first=..., answers="one" | "all", **named)
        await ctx.pause(seconds)        virtual or real time passes
        ctx.state                       of the object, as committed

    `target` is the name of an object, or several names. Of a replicated object, all copies run the method and the
    result is that of its first copy (`answers="all"`: a list of all); of several objects, a list, one for each.
    """


class Host:
    """The objects of one member, and everything that runs in them."""

    def __init__(
        self,
        me: int,
        roster: Roster,
        classes: Mapping[str, type[ObjectClass]],
        options: Options | None = None,
        *,
        now: float = 0.0,
        observer: Observer | None = None,
    ) -> None:
        """`classes` are those of the objects that have a copy here."""
        self.foreign: Callable[[Any, Callable[[], None]], None] | None = None
        """What to do with an awaitable that is not ours, such as an asyncio future: call back when it is done."""

    def receive(self, now: float, packets: Iterable[Spoken]) -> list[Send]:
        raise NotImplementedError

    def tick(self, now: float) -> list[Send]:
        raise NotImplementedError

    def begin(
        self, now: float, body: Body, done: Done | None = None, *, retry_of: Root | None = None
    ) -> Root:
        """Start a root; what it sends comes from `sends`. `done` is called when it has ended."""
        raise NotImplementedError

    def sends(self, now: float) -> list[Send]:
        """What is to be sent since the last time."""
        raise NotImplementedError

    def suspect(self, now: float, member: int) -> list[Send]:
        raise NotImplementedError

    def view(self, now: float, members: Iterable[int]) -> list[Send]:
        raise NotImplementedError

    @property
    def wake(self) -> float | None:
        """When `tick` is wanted."""
        raise NotImplementedError

    def state(self, name: str) -> Any:
        """The state of our copy of that object."""
        raise NotImplementedError
