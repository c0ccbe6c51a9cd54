"""The calls that instances make, from the request to the answers.

    call        the request goes to all its places; a place of ours gets it through the inbox
    answer      is taken when no answer to the same instance that precedes it can still arrive, else it is held
    wait        the body goes on when all the calls it waits for are answered, or one of several alternatives

`endings` decides what an answer means for the end of the instance.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from inga.model.compiled import mypyc_attr
from inga.model.invocation import CHILD, FAIL, GONE, ONE_WAY, CallId, Message
from inga.objects.actions import Resume
from inga.objects.early import Early
from inga.objects.instance import RUNNING, Alternatives, AwaitedCalls, Instance, Pending
from inga.objects.local import Local
from inga.objects.order import precedes
from inga.objects.speech import Speech


class Ends(Protocol):
    """The part of `endings` that calls need."""

    def abort(self, instance: Instance, reason: str, text: str) -> None: ...

    def try_commit(self, instance: Instance) -> None: ...


@mypyc_attr(allow_interpreted_subclasses=True)
class Calls:
    """All calls from the places of one member."""

    ends: Ends  # set by the engine, once all its parts are made

    def __init__(self, local: Local, speech: Speech, early: Early) -> None:
        self._local = local
        self._speech = speech
        self._early = early
        self._awaiting: dict[tuple[int, CallId], Instance] = {}
        self.holding: dict[Instance, None] = {}  # instances with held answers
        self._answered: deque[Instance] = deque()  # instances with answers from before the call
        self._lost: deque[tuple[Instance, Pending]] = deque()  # calls that no copy is left to answer

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
        local = self._local
        name = (*instance.base, instance.number)
        # Answers that arrived before the call, some of them perhaps from members that are gone by now.
        early = self._early.take(instance, name)
        call = Pending(name, kind, _with(local.alive_of(dst), early) if early else local.alive_of(dst), first)
        call.request = (op, args, tuple(named.items()) if named else ())
        if instance.status != RUNNING:
            return call  # the instance has been aborted, and its body is about to be ended
        instance.number += 1
        instance.calls[call.id] = call
        if kind == ONE_WAY:
            call.missing.clear()
        else:
            self._awaiting[instance.place, call.id] = instance
        # Early answers are taken once the body waits, when it is known what it waits for. A call that no copy is left
        # to answer fails then, too.
        if kind != ONE_WAY and call.dst != dst and local.objects_of(call.dst) != local.objects_of(dst):
            call.missing = set(dst)
            self._lost.append((instance, call))
        else:
            self._speech.request(instance, call)
            if early:
                instance.held += early
                self.holding[instance] = None
                self._answered.append(instance)
        return call

    def wait(self, instance: Instance, calls: Sequence[Pending], *, any: bool = False) -> None:
        """The body waits: a `Resume` follows with these calls once all are answered, or, with `any`, with the one that won."""
        if instance.status != RUNNING:
            return
        alternatives = None
        if any:
            alternatives = Alternatives(calls)
            for call in calls:
                call.alternatives = alternatives
        instance.waits = AwaitedCalls(calls, alternatives)
        self.look_at_wait(instance)

    def answer(self, place: int, response: Message) -> None:
        """Handle an arriving answer."""
        local = self._local
        instance = self._awaiting.get((place, response.call))
        if instance is None:
            self._early.keep(local.hosted[place], response)
            return
        call = instance.calls[response.call]
        if response.src not in call.missing or any(
            held.src == response.src and held.call == response.call for held in instance.held
        ):
            return
        if self._is_next(instance, response):
            self._take(instance, response)
            self.take_held(instance)
        else:
            instance.held.append(response)
            local.counts["held"] += 1
            local.note("hold", instance, response)
            self.holding[instance] = None

    def settle(self) -> None:
        """Take answers that came before their calls were made, and fail calls that no copy is left to answer."""
        while self._answered:
            self.take_held(self._answered.popleft())
        while self._lost:
            instance, call = self._lost.popleft()
            if instance.status == RUNNING and not call.dropped:
                text = f"{call.request[0]}: nobody is left who could do it"
                self._branch_failed(instance, call, GONE, text)

    def take_held(self, instance: Instance) -> None:
        """Take held answers that no other answer can still precede, in an order that respects precedence."""
        while instance.status == RUNNING:
            response = next((each for each in instance.held if self._is_next(instance, each)), None)
            if response is None:
                return
            instance.held.remove(response)
            if not instance.held:
                self.holding.pop(instance, None)
            self._take(instance, response)

    def look_at_wait(self, instance: Instance) -> None:
        """Let the body go on, if the answers for which it waits are here."""
        wait = instance.waits
        if wait is None:
            return
        if wait.alternatives is None:
            if all(call.done for call in wait.calls):
                instance.waits = None
                self._local.out.append(Resume(instance, wait.calls))
            return
        winner = self._winner(instance, wait.alternatives)
        if winner is not None:
            instance.waits = None
            for call in wait.alternatives.calls:
                if call is not winner and not call.dropped:
                    self._drop(instance, call)
            self._local.out.append(Resume(instance, winner))
            self.take_held(instance)

    def mourn(self, instance: Instance) -> None:
        """Members are gone: calls go on with the remaining copies, and fail if an object has none left."""
        local = self._local
        for call in list(instance.calls.values()):
            if instance.status != RUNNING:
                return
            alive = local.alive_of(call.dst)
            if call.dropped or not call.missing.difference(alive):
                continue
            if local.objects_of(alive) != local.objects_of(call.dst):
                text = f"{call.request[0]}: a member that it called is gone"
                self._branch_failed(instance, call, GONE, text)
            else:
                call.missing.intersection_update(alive)
        if instance.status == RUNNING:
            self.look_at_wait(instance)
            self.take_held(instance)
            self.ends.try_commit(instance)

    def forget(self, instance: Instance) -> None:
        """The instance has ended: answers to its calls are no longer awaited."""
        self.holding.pop(instance, None)
        instance.waits, instance.held = None, []
        for call in instance.calls:
            self._awaiting.pop((instance.place, call), None)

    def clear(self) -> None:
        for each in (self._awaiting, self.holding, self._answered, self._lost):
            each.clear()

    def _is_next(self, instance: Instance, response: Message) -> bool:
        """Whether no answer to the same instance that precedes this one can still arrive, or is held."""
        received, vector = self._local.links.received, response.vector
        for call in instance.calls.values():
            if call.dropped:
                continue
            for place in call.missing:
                if (place != response.src or call.id != response.call) and received[place] < vector[place]:
                    return False
        return not any(precedes(held, response) for held in instance.held if held is not response)

    def _take(self, instance: Instance, response: Message) -> None:
        call = instance.calls[response.call]
        self._local.hosted[instance.place].order.deliver(instance, response)
        self._local.note("take", instance, response)
        if call.dropped:
            return
        call.missing.discard(response.src)
        if response.reason:
            self._branch_failed(instance, call, response.reason, response.text)
            return
        call.answers[response.src] = response.value
        self.look_at_wait(instance)
        self.ends.try_commit(instance)

    def _branch_failed(self, instance: Instance, call: Pending, reason: str, text: str) -> None:
        """A call has aborted: if it was one of several alternatives the others go on, else the instance aborts."""
        if call.alternatives is not None:
            self._drop(instance, call)
        if call.alternatives is None or all(each.dropped for each in call.alternatives.calls):
            self.ends.abort(instance, CHILD if reason == FAIL else reason, text)
        else:
            self.look_at_wait(instance)
            self.ends.try_commit(instance)

    def _drop(self, instance: Instance, call: Pending) -> None:
        """Drop an alternative that is not needed any more, and tell the called places to abort it."""
        call.dropped = True
        self._awaiting.pop((instance.place, call.id), None)
        instance.held = [each for each in instance.held if each.call != call.id]
        if not instance.held:
            self.holding.pop(instance, None)
        self._speech.take_back(instance, call)

    def _winner(self, instance: Instance, alternatives: Alternatives) -> Pending | None:
        """The first alternative that all its places have committed. Copies of a replicated object get answers in different
        orders, so they wait for all alternatives, and choose the first in the order in which these were called."""
        left = [call for call in alternatives.calls if not call.dropped]
        if len(instance.copies) > 1 and any(call.missing for call in left):
            return None
        return next((call for call in left if not call.missing), None)


def _with(places: tuple[int, ...], answers: Iterable[Message]) -> tuple[int, ...]:
    """These places, and those whose answers have arrived already."""
    more = {answer.src for answer in answers}.difference(places)
    return tuple(sorted({*places, *more})) if more else places
