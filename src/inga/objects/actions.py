"""The actions that an engine returns, and the observer of its steps."""

from typing import Any, NamedTuple, Protocol

from inga.model.invocation import Message, Spoken
from inga.objects.instance import Instance


class Transmit(NamedTuple):
    """Send this packet to these members."""

    members: tuple[int, ...]
    packet: Spoken


class Run(NamedTuple):
    """Start the body of this instance; `finish` or `fail` ends it."""

    instance: Instance


class Resume(NamedTuple):
    """Continue the body of this instance with `value`: the answers that it waited for have arrived."""

    instance: Instance
    value: Any


class Ended(NamedTuple):
    """The instance has committed, or was aborted: end its body, if it has not ended itself."""

    instance: Instance
    reason: str  # empty if it committed
    text: str


EngineAction = Transmit | Run | Resume | Ended


class Observer(Protocol):
    """Is notified of every step: request, receive, start, response, take, hold, commit, abort, end, die, cancel, undo, undone,
    tell commit, tell abort. The message is the one that is sent or taken, else the one that started the instance."""

    def note(
        self, step: str, now: float, place: int, message: Message | None, instance: Instance | None
    ) -> None: ...
