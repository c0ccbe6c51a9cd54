"""Data messages: what an instance and those it has invoked tell each other while both run.

The paper names them (sections 2.1 and 3.1): instances exchange data if one of them invokes the other asynchronously or
one-way. It gives no rule of their own for them. They are not part of the objects that users have, where arguments and results
are all that travels; here the same engine is given them, to see whether its vectors are enough to keep them in order:

    send     like any message of the instance: a number for each link, a stamp, the vector
    early    data for an instance that has not started wait for it: its request comes first
    take     when nothing for the same instance can still come that precedes them, neither data nor an answer;
             answers wait for data in the same way, so whoever has an answer has all data that were sent before it
    late     data for an instance that has ended, or never starts, are dropped
"""

from collections.abc import Iterable, Mapping
from typing import Any

from inga.model.errors import UsageError
from inga.model.invocation import ASYNCHRONOUS, ONE_WAY, CallId, Message
from inga.objects.actions import Observer
from inga.objects.calls import Calls
from inga.objects.declare import ObjectClass
from inga.objects.endings import Endings
from inga.objects.engine import Engine
from inga.objects.failures import Failures
from inga.objects.incoming import Incoming
from inga.objects.instance import Instance, Pending
from inga.objects.invoke import Host
from inga.objects.local import Local
from inga.objects.options import EngineOptions
from inga.objects.order import precedes
from inga.objects.roster import Roster

DATA = "d"
"""The kind of these messages, beside those of the protocol."""

UP, DOWN = "up", "down"
"""To the invoker; to what was invoked. An object may invoke itself, so that the place alone does not tell."""

DataEnd = tuple[int, str, CallId]
"""Who is meant: a place, the direction, and the call that connects the two."""


class DataExchange:
    """The data of all instances of one member."""

    def __init__(self, local: Local, outer: Observer | None) -> None:
        self._local = local
        self._outer = outer
        self._ends: dict[DataEnd, Instance] = {}
        self._held: list[tuple[DataEnd, Message]] = []
        self.dropped = 0
        self.is_used = True  # else answers wait for answers alone, as without data

    def tell_invoker(self, instance: Instance, value: Any) -> None:
        """From an instance to the one that has invoked it."""
        request = instance.request
        if request is None or request.kind not in (ASYNCHRONOUS, ONE_WAY):
            raise UsageError("data go to an invoker that does not wait: it calls by start or oneway")
        self._say(instance, UP, request.call, (request.src,), value)

    def tell_invoked(self, instance: Instance, call: Pending, value: Any) -> None:
        """From an instance to those that a call of it has started."""
        if call.kind not in (ASYNCHRONOUS, ONE_WAY):
            raise UsageError(
                "data go to what was invoked by start or oneway: who calls and waits tells nothing"
            )
        self._say(instance, DOWN, call.id, call.dst, value)

    def take(self, message: Message) -> None:
        """Data came."""
        for place in message.dst:
            if self._local.roster.member_of[place] == self._local.me:
                self._held.append(((place, message.op, message.call), message))

    def release(self) -> bool:
        """Hand over one message that nothing can precede any more; whether there was one."""
        for at, (end, message) in enumerate(self._held):
            instance = self._ends.get(end)
            if instance is not None and self.is_next(instance, message):
                del self._held[at]
                self._local.hosted[instance.place].order.deliver(instance, message)
                self._local.note("take", instance, message)
                return True
        return False

    def is_next(self, instance: Instance, message: Message) -> bool:
        """Whether nothing for the instance can still come, or waits here, that precedes the message."""
        received, vector = self._local.links.received, message.vector
        if any(received[place] < vector[place] for place in _sources(instance)):
            return False
        waiting = [each for end, each in self._held if self._ends.get(end) is instance]
        return not any(precedes(each, message) for each in (*waiting, *instance.held) if each is not message)

    def note(
        self, step: str, now: float, place: int, message: Message | None, instance: Instance | None
    ) -> None:
        """What the engine observes: who begins and ends."""
        if self._outer is not None:
            self._outer.note(step, now, place, message, instance)
        if step == "end" and instance is not None:
            self._forget([end for end, each in self._ends.items() if each is instance])
        elif message is None or message.kind not in (ASYNCHRONOUS, ONE_WAY):
            return
        elif step in ("start", "request") and instance is not None:
            self._ends[place, DOWN if step == "start" else UP, message.call] = instance
        elif step in ("die", "cancel"):
            self._forget([(place, DOWN, message.call)])

    def _forget(self, ends: Iterable[DataEnd]) -> None:
        for end in ends:
            self._ends.pop(end, None)
            kept = [held for held in self._held if held[0] != end]
            self.dropped += len(self._held) - len(kept)
            self._held = kept

    def _say(
        self, instance: Instance, direction: str, call: CallId, dst: tuple[int, ...], value: Any
    ) -> None:
        local = self._local
        members = local.roster.members_at(dst)
        numbers = local.links.number(sorted(members - {local.me}))
        order = local.hosted[instance.place].order
        message = order.send(
            instance, DATA, dst, numbers, view=local.gone, call=call, op=direction, value=value
        )
        local.note("data", instance, message)
        local.links.transmit(local.now, message)
        if local.me in members:
            local.inbox.append(message)


class TalkingCalls(Calls):
    """Answers that also wait for data."""

    data: DataExchange

    def _is_next(self, instance: Instance, response: Message) -> bool:
        is_next = super()._is_next(instance, response)
        return is_next and (not self.data.is_used or self.data.is_next(instance, response))


class TalkingEngine(Engine):
    """The engine of the product, and data messages."""

    def __init__(
        self,
        me: int,
        roster: Roster,
        options: EngineOptions | None = None,
        *,
        observer: Observer | None = None,
    ) -> None:
        watch = _Watch()
        super().__init__(me, roster, options, observer=watch)
        local, speech, early = self.local, self.speech, self.early
        watch.data = self.data = DataExchange(local, observer)
        calls = TalkingCalls(local, speech, early)
        calls.data = self.data
        self.calls = calls
        self.endings = calls.ends = Endings(local, speech, calls, early)
        self.incoming = self._make_incoming()
        self.failures = Failures(
            local,
            speech,
            early,
            calls,
            self.endings,
            self.incoming,
            hear=self._take_from,
            settle=self._settle,
        )

    def _make_incoming(self) -> Incoming:
        return Incoming(self.local, self.speech, self.early, self.endings)

    def _dispatch(self, message: Message) -> None:
        if message.kind == DATA:
            self.data.take(message)
        else:
            super()._dispatch(message)

    def _settle(self) -> None:
        super()._settle()
        while self.data.release():
            self.links.moved = True  # answers may have waited for it
            super()._settle()


class TalkingHost(Host):
    """A host whose bodies can tell each other data: by `host.engine.data`."""

    engine: TalkingEngine

    def __init__(self, engine: TalkingEngine, classes: Mapping[str, type[ObjectClass]]) -> None:
        super().__init__(engine.me, engine.local.roster, classes, engine.options)
        give_engine(self, engine)


def give_engine(host: Host, engine: Engine) -> None:
    """Let a host that has done nothing yet have an engine of another kind."""
    for place, hosted in host.engine.hosted.items():
        engine.hosted[place].state = hosted.state
    host.engine = engine


class _Watch:
    """Tells the exchange what happens, once there is one."""

    data: DataExchange

    def note(
        self, step: str, now: float, place: int, message: Message | None, instance: Instance | None
    ) -> None:
        self.data.note(step, now, place, message, instance)


def _sources(instance: Instance) -> set[int]:
    """The places from which something for the instance can come: its invoker, and those that it has called."""
    places = {place for call in instance.calls.values() for place in call.dst}
    return places if instance.request is None else places | {instance.request.src}
