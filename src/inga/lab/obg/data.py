"""Data messages, which an instance and the instances that it has invoked exchange while both run.

The paper names them (sections 2.1 and 3.1): instances exchange data if one of them invokes the other asynchronously or
one-way. It has no separate rule for them. The objects of the product have none, they exchange only arguments and results; here the same
engine gets data messages, to test whether its vectors suffice to order them:

    send     like any message of the instance: a number for each link, a stamp, the vector
    early    data for an instance that has not started wait until its request has started it
    take     when no data and no answer that precede them can still arrive for the same instance;
             answers wait for data in the same way, so an instance that has an answer has all data that were sent before it
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
"""The kind of these messages, besides those of the protocol."""

UP, DOWN = "up", "down"
"""Directions: to the invoker, and to the invoked instance. An object may invoke itself, so the place alone does not determine the
direction."""

DataEnd = tuple[int, str, CallId]
"""A receiver of data: its place, the direction, and the call that connects the two instances."""


class DataExchange:
    """Sends, holds and delivers the data messages of all instances of one member."""

    def __init__(self, local: Local, outer: Observer | None) -> None:
        self._local = local
        self._outer = outer
        self._ends: dict[DataEnd, Instance] = {}
        self._held: list[tuple[DataEnd, Message]] = []
        self.dropped = 0
        self.is_used = True  # if not, answers wait only for answers, as without data

    def tell_invoker(self, instance: Instance, value: Any) -> None:
        """Send data from an instance to the one that has invoked it."""
        request = instance.request
        if request is None or request.kind not in (ASYNCHRONOUS, ONE_WAY):
            raise UsageError("data go to an invoker that does not wait: it calls by start or oneway")
        self._say(instance, UP, request.call, (request.src,), value)

    def tell_invoked(self, instance: Instance, call: Pending, value: Any) -> None:
        """Send data from an instance to those that a call of it has started."""
        if call.kind not in (ASYNCHRONOUS, ONE_WAY):
            raise UsageError(
                "data go to what was invoked by start or oneway: who calls and waits tells nothing"
            )
        self._say(instance, DOWN, call.id, call.dst, value)

    def take(self, message: Message) -> None:
        """Hold a data message that has arrived."""
        for place in message.dst:
            if self._local.roster.member_of[place] == self._local.me:
                self._held.append(((place, message.op, message.call), message))

    def release(self) -> bool:
        """Deliver one message that no other message can precede any more; return whether there was one."""
        for at, (end, message) in enumerate(self._held):
            instance = self._ends.get(end)
            if instance is not None and self.is_next(instance, message):
                del self._held[at]
                self._local.hosted[instance.place].order.deliver(instance, message)
                self._local.note("take", instance, message)
                return True
        return False

    def is_next(self, instance: Instance, message: Message) -> bool:
        """Whether no message for the instance that precedes this one can still arrive, or waits here."""
        received, vector = self._local.links.received, message.vector
        if any(received[place] < vector[place] for place in _sources(instance)):
            return False
        waiting = [each for end, each in self._held if self._ends.get(end) is instance]
        return not any(precedes(each, message) for each in (*waiting, *instance.held) if each is not message)

    def note(
        self, step: str, now: float, place: int, message: Message | None, instance: Instance | None
    ) -> None:
        """Note an event that the engine reports: instances that begin and end."""
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
    """Calls whose answers also wait for data."""

    data: DataExchange

    def _is_next(self, instance: Instance, response: Message) -> bool:
        is_next = super()._is_next(instance, response)
        return is_next and (not self.data.is_used or self.data.is_next(instance, response))


class TalkingEngine(Engine):
    """The product's engine, with data messages."""

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
            self.links.moved = True  # answers may have waited for these data
            super()._settle()


class TalkingHost(Host):
    """A host whose method bodies can exchange data, by `host.engine.data`."""

    engine: TalkingEngine

    def __init__(self, engine: TalkingEngine, classes: Mapping[str, type[ObjectClass]]) -> None:
        super().__init__(engine.me, engine.local.roster, classes, engine.options)
        give_engine(self, engine)


def give_engine(host: Host, engine: Engine) -> None:
    """Replace the engine of a host that has done nothing yet."""
    for place, hosted in host.engine.hosted.items():
        engine.hosted[place].state = hosted.state
    host.engine = engine


class _Watch:
    """An observer that passes events on to the data exchange, which is made after the engine's base."""

    data: DataExchange

    def note(
        self, step: str, now: float, place: int, message: Message | None, instance: Instance | None
    ) -> None:
        self.data.note(step, now, place, message, instance)


def _sources(instance: Instance) -> set[int]:
    """Return the places from which messages for the instance can arrive: its invoker's, and those that it has called."""
    places = {place for call in instance.calls.values() for place in call.dst}
    return places if instance.request is None else places | {instance.request.src}
