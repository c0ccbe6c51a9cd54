"""Runs the bodies of methods without I/O: each is a coroutine that waits for calls and pauses alone.

`Host` is one member's objects with the instances that run in them. A driver gives it packets and the time, and gets the
messages to send, when to wake it, and how roots ended.

A body may also wait for an awaitable of the driver, such as an asyncio future, if the driver supports that: see `foreign`.
"""

from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple

from inga.model.errors import RemoteError, UsageError
from inga.model.invocation import ASYNCHRONOUS, GONE, ONE_WAY, SYNCHRONOUS, Message, Spoken
from inga.model.readonly import BY_EFFECT
from inga.objects.actions import Ended, EngineAction, Observer, Run, Transmit
from inga.objects.calling import AnswerShape, Calling, Invocation, find_method
from inga.objects.declare import Abort, Effect, ObjectClass, Target, error_text, show_state
from inga.objects.engine import Engine
from inga.objects.hosted import Stage
from inga.objects.instance import RUNNING, Instance, Pending
from inga.objects.options import EngineOptions
from inga.objects.roster import Roster
from inga.objects.state import State
from inga.wire.value import copied

Body = Callable[["InstanceContext"], Awaitable[Any]]
"""`async def body(ctx)`: what a root does."""

RootDone = Callable[["Root"], None]

PAUSE_MAX = 1_000_000
"""The longest pause, in seconds. All requests that conflict with the instance wait as long."""

NESTED_MAX = 256
"""How deep calls may be nested. Each level makes the lineage longer, which travels with every request."""


class InvocationAborted(RemoteError):
    """A call, or a whole root, has aborted. `reason` is one of fail, child, deadlock, gone, orphan."""

    def __init__(self, reason: str, text: str = "") -> None:
        super().__init__(text or reason)
        self.reason = reason
        self.text = text


class Root:
    """A transaction of a client, and how it ended."""

    __slots__ = ("body", "done", "error", "instance", "result", "when_done")

    def __init__(self, instance: Instance, body: Body, when_done: RootDone | None) -> None:
        self.instance = instance
        self.body = body
        self.when_done = when_done
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None  # InvocationAborted, or what the body raised


class _Waited(NamedTuple):
    """Yielded by a body that waits for all of these calls, or for any of them."""

    calls: Sequence[Pending]
    any: bool


class _Paused(NamedTuple):
    seconds: float


class Handle:
    """A call under way; awaiting it gives its result."""

    __slots__ = ("_shape", "call")

    def __init__(self, call: Pending, shape: AnswerShape) -> None:
        self.call = call
        self._shape = shape

    def __await__(self) -> Generator[_Waited, Any, Any]:
        if not self.call.done:
            yield _Waited((self.call,), False)
        return self.result

    @property
    def result(self) -> Any:
        """The result, once the call has been awaited."""
        return self._shape.result(self.call.answers)


class InstanceContext:
    """What a body uses to change the state, to call other objects, and to wait.

    `target` is the name of an object, or several names. All copies of a replicated object run the method; the result
    is that of its first copy, with `answers="all"` a list of all. For several objects it is a list, one for each. With
    `first=True` the body goes on with the first answer; the instance still commits only when all have answered. If the
    method itself has parameters of these names, the arguments are passed to it instead.
    """

    __slots__ = ("_host", "_instance")

    def __init__(self, host: "Host", instance: Instance) -> None:
        self._host = host
        self._instance = instance

    @property
    def state(self) -> Any:
        """The committed state of the object; None for a root."""
        return self._host.engine.hosted[self._instance.place].state.value

    @state.setter
    def state(self, value: Any) -> None:
        raise UsageError(BY_EFFECT)

    def effect(self, change: Effect) -> None:
        """Change the state, when the instance commits."""
        self._instance.effects.append(change)

    def call(self, target: Target, op: str, /, *args: Any, **named: Any) -> Handle:
        """Call and wait: to be awaited at once."""
        return self.make(self._host.calling.check(SYNCHRONOUS, target, op, args, named))

    def start(self, target: Target, op: str, /, *args: Any, **named: Any) -> Handle:
        """Call and go on; the instance does not commit before the answer is there."""
        return self.make(self._host.calling.check(ASYNCHRONOUS, target, op, args, named))

    def oneway(self, target: Target, op: str, /, *args: Any, **named: Any) -> None:
        """Call without an answer. The called instance is a root of its own: it is not undone if this one aborts."""
        self.make(self._host.calling.check(ONE_WAY, target, op, args, named))

    async def all(self, *calls: Handle) -> list[Any]:
        """Wait for all of these."""
        await _Yield(_Waited([each.call for each in calls], False))
        return [each.result for each in calls]

    async def any(self, *calls: Handle) -> Any:
        """Wait for the first of these that commits; the others are undone. Pass it calls that were just started: if one
        aborts while it is not awaited by `any`, the instance aborts."""
        if not calls:
            raise UsageError("any() needs at least one call to wait for")
        winner = await _Yield(_Waited([each.call for each in calls], True))
        return next(each.result for each in calls if each.call is winner)

    async def pause(self, seconds: float) -> None:
        """Let time pass."""
        _check_pause(seconds)
        await _Yield(_Paused(seconds))

    def make(self, invocation: Invocation) -> Handle:
        """Make a call that has been checked."""
        host, instance = self._host, self._instance
        if len(instance.path) > 2 * NESTED_MAX:
            raise UsageError(
                f"calls are nested more than {NESTED_MAX} deep: something calls itself without end"
            )
        kind, places, op, args, named, first, shape = invocation
        host.check_invoker(instance, places)
        if len(instance.path) > 1:
            host.calling.check_size((op, args, named, instance.path, instance.hosts))
        # All copies of an object have to go on with the same answer.
        first = first and len(instance.copies) == 1
        return Handle(host.engine.calls.call(instance, kind, places, op, args, named, first=first), shape)


class _Yield:
    """Yields a wish, to wait for calls or to pause, to the host, and returns the value with which the host resumes the body."""

    __slots__ = ("_wish",)

    def __init__(self, wish: Any) -> None:
        self._wish = wish

    def __await__(self) -> Generator[Any, Any, Any]:
        return (yield self._wish)


class _Task:
    """The body of one instance."""

    __slots__ = ("coroutine", "error", "root", "target")

    def __init__(
        self, coroutine: Coroutine[Any, Any, Any], target: ObjectClass | None, root: Root | None
    ) -> None:
        self.coroutine = coroutine
        self.target = target
        self.root = root
        self.error: BaseException | None = None  # what it raised


class Host:
    """The objects of one member, and the instances that run in them."""

    def __init__(
        self,
        me: int,
        roster: Roster,
        classes: Mapping[str, type[ObjectClass]],
        options: EngineOptions | None = None,
        *,
        mail: Mapping[int, Callable[[Message], None]] | None = None,
        now: float = 0.0,
        observer: Observer | None = None,
    ) -> None:
        """`classes` are those of all objects that can be called; `mail`: places whose
        requests are handed to a function when they start, instead of a method."""
        self.roster = roster
        self.engine = Engine(me, roster, options, now=now, observer=observer)
        invoking = self.engine.options.invoking
        self._invoking = {name: frozenset(members) for name, members in invoking.items()}
        closed = {name for name, members in self._invoking.items() if me not in members}
        self.calling = Calling(roster, classes, self.engine.options.room, closed)
        self.foreign: Callable[[Any, Instance], None] | None = None
        """Called with an awaitable of the driver, such as an asyncio future, and the instance that waits for it: it arranges
        that `resume` is called when the awaitable is done. Without it, a body that waits for one fails."""
        self._mail = mail or {}
        self._targets: dict[int, ObjectClass] = {}
        self._pauses: list[tuple[float, int, Instance]] = []
        self._paused = 0
        self._roots: dict[Instance, Root] = {}
        for place, hosted in self.engine.hosted.items():
            name = roster.places[place].object
            if name in classes:
                target = self._targets[place] = classes[name]()
                hosted.state = State(target.initial())

    def check_invoker(self, instance: Instance, places: tuple[int, ...]) -> None:
        """Raise UsageError if some copies of the caller's object are at members that `members_invoking` does not name for a
        called object. At those members `calling` refuses the call; here the other copies refuse it, since all have to do
        the same."""
        roster = self.roster
        for name, members in self._invoking.items():
            is_called = not set(places).isdisjoint(roster.copies[name])
            if is_called and any(roster.member_of[place] not in members for place in instance.copies):
                caller = roster.places[instance.place].object
                raise UsageError(
                    f"members_invoking does not name all members that have a copy of {caller!r}, which calls {name!r}; "
                    "name them there, at every member"
                )

    # What drivers do

    def receive(self, now: float, packets: Iterable[Spoken]) -> list[Transmit]:
        """Handle arriving packets."""
        sends: list[Transmit] = []
        has_run = False
        for packet in packets:
            has_run |= self._act(self.engine.receive(now, packet), sends)
        return sends + self.sends(now) if has_run else sends

    def tick(self, now: float) -> list[Transmit]:
        """The time `wake` has come."""
        self.engine.local.now = now
        while self._pauses and self._pauses[0][0] <= now:
            instance = heappop(self._pauses)[2]
            if instance.status == RUNNING:
                self._step(instance, None)
        return self.sends(now, self.engine.tick(now))

    def begin(
        self,
        now: float,
        body: Body,
        done: RootDone | None = None,
        *,
        at: int | None = None,
        retry_of: Root | None = None,
    ) -> Root:
        """Start a root, as the member's client or at another place of ours; `sends` returns its messages. `done` is called
        when it has ended. A retry is as old as the root that it repeats."""
        place = self.roster.client(self.engine.me) if at is None else at
        path = None if retry_of is None else retry_of.instance.path
        instance = self.engine.begin(now, place, retry_of=path)
        root = self._roots[instance] = Root(instance, body, done)
        return root

    def tell(self, now: float, dst: tuple[int, ...], op: str, *args: Any) -> None:
        """Send one request of our client that has no answer; `sends` returns it."""
        self.engine.tell(now, self.roster.client(self.engine.me), dst, op, args)

    def sends(self, now: float, actions: Sequence[EngineAction] = ()) -> list[Transmit]:
        """Carry out these actions, then those of the engine until it has none left. Returns the messages to send."""
        sends: list[Transmit] = []
        while self._act(actions or self.engine.actions(now), sends):
            actions = ()
        return sends

    def resume(self, now: float, instance: Instance) -> list[Transmit]:
        """Continue an instance: the `foreign` awaitable that it waited for is done."""
        self.engine.local.now = now
        if instance.status == RUNNING:
            self._step(instance, None)
        return self.sends(now)

    def cancel(self, now: float, root: Root, text: str = "it was given up") -> list[Transmit]:
        """Abort a root from outside."""
        self.engine.local.now = now
        self.engine.endings.fail(root.instance, text)
        return self.sends(now)

    def cancel_all(self, now: float, text: str) -> list[Transmit]:
        """Abort every root of ours."""
        self.engine.local.now = now
        for instance in list(self.engine.local.running):
            if instance.request is None:
                self.engine.endings.fail(instance, text)
        return self.sends(now)

    def suspect(self, now: float, member: int) -> list[Transmit]:
        """Suspect a member."""
        return self.sends(now, self.engine.suspect(now, member))

    def view(self, now: float, members: Iterable[int]) -> list[Transmit]:
        """Only these members remain."""
        return self.sends(now, self.engine.view(now, members))

    def close(self, why: str) -> None:
        """End everything that runs, since the objects end; all roots end with a UsageError of this text."""
        for instance, root in list(self._roots.items()):
            _close(root, instance, None, UsageError(why))
        self._roots.clear()
        for instance in self.engine.close():
            task: _Task | None = instance.data
            if task is not None:
                _end(task.coroutine, InvocationAborted(GONE, why))
                if task.root is not None:
                    _close(task.root, instance, None, UsageError(why))

    @property
    def wake(self) -> float | None:
        """When `tick` has to be called."""
        while self._pauses and self._pauses[0][2].status != RUNNING:
            heappop(self._pauses)
        wake = self.engine.wake
        if not self._pauses:
            return wake
        return self._pauses[0][0] if wake is None else min(wake, self._pauses[0][0])

    @property
    def idle(self) -> bool:
        """Whether nothing runs or waits here, and no message of ours is in flight."""
        return self.engine.idle

    def state(self, name: str) -> Any:
        """The state of our copy of that object."""
        for place in self._targets:
            if self.roster.places[place].object == name:
                return self.engine.hosted[place].state.value
        raise UsageError(f"there is no copy of an object {name!r} at this member")

    def states(self) -> dict[str, Any]:
        """The states of our copies, by object."""
        return {
            self.roster.places[place].object: self.engine.hosted[place].state.value for place in self._targets
        }

    def restore(self, name: str, value: Any) -> None:
        """Set the state of our copy of that object, if we have one, and forget what could be undone."""
        for place in self._targets:
            if self.roster.places[place].object == name:
                self.engine.hosted[place].state = State(value)

    @property
    def is_over(self) -> bool:
        """Whether nothing is under way here, and nothing can be undone any more."""
        engine = self.engine
        if not engine.idle or engine.failures.suspects:
            return False
        # Refused calls wait for the abort of their invoker, which may be gone; there is nothing left to undo.
        return all(call.stage is Stage.REFUSED for h in engine.hosted.values() for call in h.asked.values())

    # Actions of the engine

    def _act(self, actions: Iterable[EngineAction], sends: list[Transmit]) -> bool:
        """Carry out actions. Returns whether the engine may have more then, because a body went on or ended."""
        has_run = False
        for action in actions:
            if isinstance(action, Transmit):
                sends.append(action)
                continue
            has_run = True
            if isinstance(action, Ended):
                self._ended(*action)
            elif action.instance.status == RUNNING:
                if isinstance(action, Run):
                    self._run(action.instance)
                else:
                    self._step(action.instance, action.value)
        return has_run

    def _run(self, instance: Instance) -> None:
        if (take := self._mail.get(instance.place)) is not None and instance.request is not None:
            take(instance.request)
            self.engine.endings.finish(instance, None)
            return
        root = self._roots.pop(instance, None)
        context = InstanceContext(self, instance)
        target = self._targets.get(instance.place)
        try:
            if root is not None:
                coroutine = root.body(context)
            else:
                coroutine = self._body(instance, target, context)
        except Exception as error:  # arguments that do not fit, a missing method
            coroutine = _raising(error)
        instance.data = _Task(_as_coroutine(coroutine), target, root)
        self._step(instance, None)

    def _body(
        self, instance: Instance, target: ObjectClass | None, context: InstanceContext
    ) -> Awaitable[Any]:
        op, args, named = instance.call
        if target is None:
            raise UsageError("a client has no methods: call those of an object")
        method = find_method(type(target), self.roster.places[instance.place].object, op)
        if instance.undoes is not None:
            # Another copy may have got the abort before the instance began. An undone instance has to leave the same state
            # as one that never began, so replicated objects remove its effects, whatever came after them.
            if method.undo is None or self.roster.is_replicated[instance.place]:
                raise Abort
            method = target.methods[method.undo]
        # Copies: other instances at this member may have got the same values.
        body: Awaitable[Any] = method.function(target, context, *copied(args), **copied(dict(named)))
        return body

    def _step(self, instance: Instance, value: Any) -> None:
        """Let the body go on until it waits or ends."""
        task: _Task = instance.data
        if task.target is not None:
            show_state(task.target, self.engine.hosted[instance.place].state.value)
        try:
            wish = task.coroutine.send(value)
        except StopIteration as end:
            self._finish(instance, end.value)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # including a driver's own kind of cancellation
            task.error = error
            self.engine.endings.fail(instance, error_text(error))
        else:
            if instance.undoes is not None:
                self.engine.endings.fail(instance, "what undoes something waits for nothing")
            else:
                self._wait(instance, wish)

    def _finish(self, instance: Instance, result: Any) -> None:
        if instance.request is not None:
            try:
                result = copied(result)
                self.calling.check_size((instance.call.op, result))
            except UsageError as error:
                self.engine.endings.fail(instance, f"{instance.call.op}: {error}")
                return
        self.engine.endings.finish(instance, result)

    def _wait(self, instance: Instance, wish: Any) -> None:
        if isinstance(wish, _Waited):
            if all(instance.calls.get(call.id) is call for call in wish.calls):
                self.engine.calls.wait(instance, wish.calls, any=wish.any)
            else:  # the body would wait for ever
                self.engine.endings.fail(instance, "a body waits for calls of its own, and not for another's")
        elif isinstance(wish, _Paused):
            self._paused += 1
            heappush(self._pauses, (self.engine.local.now + wish.seconds, self._paused, instance))
        elif self.foreign is not None:
            self.foreign(wish, instance)
        else:
            self.engine.endings.fail(instance, "a body waits for calls and pauses, and for nothing else here")

    def _ended(self, instance: Instance, reason: str, text: str) -> None:
        task: _Task | None = instance.data
        if task is None:  # aborted before it began
            root = self._roots.pop(instance, None)
            if root is not None:
                _close(root, instance, None, InvocationAborted(reason, text))
            return
        if reason:
            _end(task.coroutine, InvocationAborted(reason, text))
        if task.root is not None:
            error = (task.error or InvocationAborted(reason, text)) if reason else None
            _close(task.root, instance, instance.result, error)


def _check_pause(seconds: object) -> None:
    """Raise UsageError for an invalid pause: it must not get into the heap of times, which all bodies of a member share."""
    if not isinstance(seconds, int | float) or not 0 <= seconds <= PAUSE_MAX:
        raise UsageError(f"a pause is a number of seconds from 0 to {PAUSE_MAX}, not {seconds!r}")


def _close(root: Root, instance: Instance, result: Any, error: BaseException | None) -> None:
    root.done, root.result, root.error = True, result, error
    if root.when_done is not None:
        root.when_done(root)


def _end(coroutine: Coroutine[Any, Any, Any], error: InvocationAborted) -> None:
    """Let a body that was aborted clean up; it cannot go on."""
    try:
        coroutine.throw(error)
        coroutine.close()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # whatever the body does with the error
        return


async def _raising(error: Exception) -> None:
    raise error


def _as_coroutine(body: Any) -> Coroutine[Any, Any, Any]:
    if isinstance(body, Coroutine):
        return body

    async def wrapped() -> Any:
        return await body

    return wrapped()
