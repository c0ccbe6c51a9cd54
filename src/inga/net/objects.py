"""Calling objects from a live group: single calls, proxies, transactions.

A call of an application is a transaction with one call in it. A transaction is a root instance, whose body is run by
the host of this member like any method; the calls in the `async with` block reach it as commands, one at a time.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Self, cast

from inga.model.errors import NoMajority, UsageError, WouldBlock
from inga.model.invocation import ASYNCHRONOUS, DEADLOCK, ONE_WAY, SYNCHRONOUS
from inga.model.text import suggest
from inga.net.driver import Driver
from inga.objects.calling import FIRST, Invocation, check_answers
from inga.objects.declare import Abort, ObjectClass, Target
from inga.objects.instance import Instance
from inga.objects.invoke import Body, InvocationAborted, Root
from inga.objects.layer import ObjectOrder
from inga.stack.stack import Stack

RETRIES = 8
"""How often `transact` begins again after a deadlock, by default."""

REFUSED_AFTER = 0.01
"""Seconds after which a call in a paused group fails."""


class ClientCalls:
    """The client side of a group's objects. `schedule` has the stack's output sent at the end of this turn."""

    def __init__(
        self, order: ObjectOrder, loop: asyncio.AbstractEventLoop, schedule: Callable[[], None]
    ) -> None:
        self.order = order
        self.waiting: set[asyncio.Future[Any]] = set()
        self._ended: str | None = None  # why calls get no results any more
        self._loop = loop
        self._schedule = schedule
        order.host.foreign = self._when_done

    def check(
        self, kind: str, target: Target, op: str, args: Any, named: Any, answers: str = FIRST
    ) -> Invocation:
        """Check a call, and raise UsageError if it cannot be made. Clients get the first answer unless they ask for all."""
        calling = self.order.host.calling
        return calling.check(kind, target, op, args, named, first=True, answers=answers)

    async def run(self, body: Body, retries: int = 0) -> Any:
        """Run a root from its beginning to its end, and again, at most `retries` times, if it was aborted to resolve a deadlock. Each
        attempt has the age of the first, so that one succeeds in the end."""
        root: Root | None = None
        while True:
            root, ended = self.begin(body, root)
            try:
                if (
                    ended.done()
                ):  # no other member was involved: a loop of such calls must let other tasks run
                    await asyncio.sleep(0)
                with self.awaited(ended):
                    return await ended
            except asyncio.CancelledError:
                self.cancel(root)
                raise
            except NoMajority as error:
                self.cancel(root, str(error))
                raise
            except InvocationAborted as error:
                if retries <= 0 or error.reason != DEADLOCK:
                    raise
            retries -= 1

    def begin(self, body: Body, retry_of: Root | None = None) -> tuple[Root, "asyncio.Future[Any]"]:
        """Start a root; the future has its result."""
        ended: asyncio.Future[Any] = self._loop.create_future()

        def done(root: Root) -> None:
            if ended.done():
                return
            if root.error is None:
                ended.set_result(root.result)
            else:
                ended.set_exception(root.error)

        self.order.stack.advance(self._loop.time())
        root = self.order.begin(body, done, retry_of=retry_of)
        self._schedule()
        return root, ended

    def cancel(self, root: Root, why: str = "cancelled by its caller") -> None:
        """Abort a root whose result is not awaited any more, and undo its effects."""
        if not root.done:
            self.order.stack.advance(self._loop.time())
            self.order.cancel(root, why)
            self._schedule()

    def dismiss(self, why: str) -> None:
        """No call gets a result any more: raise UsageError in all that wait for one, and in transactions that wait for one later."""
        self._ended = why
        for future in self.waiting:
            if not future.done():
                future.set_exception(UsageError(why))

    def interrupt(self, why: NoMajority) -> None:
        """The group is paused: raise NoMajority in all tasks that wait for an outcome, which undoes calls that still can be undone."""
        for future in self.waiting:
            if not future.done():
                text = f"{why}; whether a call that was under way takes effect is not known"
                future.set_exception(NoMajority(text, why.missing))

    @contextmanager
    def awaited(self, future: "asyncio.Future[Any]") -> Iterator[None]:
        """While a task waits for this future, `dismiss` and `interrupt` end it."""
        if self._ended is not None and not future.done():
            raise UsageError(self._ended)
        self.waiting.add(future)
        try:
            yield
        finally:
            self.waiting.discard(future)

    def _when_done(self, awaited: Any, instance: Instance) -> None:
        """A body awaits an asyncio future, or, with None, the next iteration of the event loop: resume it then."""
        if awaited is None:
            self._loop.call_soon(self._go_on, instance)
        elif asyncio.isfuture(awaited):
            awaited._asyncio_future_blocking = False  # as asyncio.Task does with a future that it awaits
            awaited.add_done_callback(lambda _: self._go_on(instance))
        else:
            text = f"a method can wait for calls, pauses and futures, not for {awaited!r}"
            self.order.host.engine.endings.fail(instance, text)

    def _go_on(self, instance: Instance) -> None:
        self.order.stack.advance(self._loop.time())
        self.order.resume(instance)
        self._schedule()


class ObjectCalls:
    """The methods of `Group` for objects, if its order has them."""

    stack: Stack
    _driver: Driver
    _object_calls: ClientCalls | None = None  # of the order in force, if it has objects

    async def call(self, target: Target, op: str, /, *args: Any, **named: Any) -> Any:
        """Call a method of an object, or of several, and return its result. For a replicated object this is the
        first answer, or with `answers="all"` a list of all. A method that fails raises
        `RemoteError` here, and has no effect."""
        return await self._call(target, op, args, named)

    def oneway(self, target: Target, op: str, /, *args: Any, **named: Any) -> None:
        """Call without an answer: raises WouldBlock while the window is closed, as `post` does."""
        calls = self._calls()
        call = calls.check(ONE_WAY, target, op, args, named)
        if not self.stack.writable:
            self.stack.views.refuse_if_paused()
            raise WouldBlock(
                "the flow window is closed, as too much of ours is under way: use `await group.call(...)`, which waits"
            )
        calls.begin(lambda ctx: ctx.make(call))

    async def _call(self, target: Target, op: str, args: Any, named: Any, answers: str = FIRST) -> Any:
        def body(calls: ClientCalls) -> Body:
            call = calls.check(SYNCHRONOUS, target, op, args, named, answers)
            return lambda ctx: ctx.make(call)

        return await self._run(body)

    async def _run(self, body: Callable[[ClientCalls], Body], retries: int = 0) -> Any:
        """Run a root in the first view in which it can begin."""
        while True:
            calls = await self.open_calls()
            with suppress(WouldBlock):  # the view closed between two attempts
                return await calls.run(body(calls), retries)

    async def open_calls(self) -> ClientCalls:
        """The engine's client, once calls can begin: not during a view change."""
        calls = self._calls()
        await self._refuse_if_paused()
        while not calls.order.may_begin:
            await self.writable()
            await asyncio.sleep(0)
            calls = self._calls()
        return calls

    def proxy(self, cls: type[ObjectClass], name: Target, *, answers: str = FIRST) -> "Proxy":
        """A proxy for an object, with the methods of its class: `await group.proxy(Counter, "hits").inc()`."""
        self._calls()
        return Proxy(self, cls, name, answers)

    def transaction(self) -> "Transaction":
        """Several calls of which all take effect or none: `async with group.transaction() as tx`."""
        self._calls()
        return Transaction(self)

    async def transact(self, body: Body, *, retries: int = RETRIES) -> Any:
        """Run `async def body(ctx)` as a transaction, and repeat it if it was aborted to resolve a deadlock."""
        return await self._run(lambda calls: body, retries)

    def state(self, name: str) -> Any:
        """The state of our own copy of an object, as committed."""
        return self._calls().order.host.state(name)

    def _calls(self) -> ClientCalls:
        self._check_open()
        self._know_objects()
        if self._object_calls is None:
            order = self.stack.view.recipe
            raise UsageError(
                f"order {order!r} has no objects: join with order='object' or 'total', and objects="
            )
        return self._object_calls

    def _know_objects(self) -> None:
        """Find the layer of objects of the order in force. Calls under a previous order get no results any more."""
        order = cast(ObjectOrder | None, self.stack.layer(ObjectOrder.name))
        if self._object_calls is not None and self._object_calls.order is not order:
            self._dismiss_calls("the order of the group has changed")
            self._object_calls = None
        if self._object_calls is None and order is not None:
            self._object_calls = ClientCalls(order, asyncio.get_running_loop(), self._driver.schedule_end)

    def _interrupt_calls(self, why: NoMajority) -> None:
        if self._object_calls is not None:
            self._object_calls.interrupt(why)

    def _dismiss_calls(self, why: str) -> None:
        if self._object_calls is not None:
            self._object_calls.dismiss(why)

    def _check_open(self) -> None:
        raise NotImplementedError

    async def writable(self) -> None:
        """Wait until something can be sent."""
        raise NotImplementedError

    async def _refuse_if_paused(self) -> None:
        """Raise NoMajority if the group is paused. Not at once: a program that retries in a loop would leave
        the event loop no time for the datagrams that end the pause."""
        if self.stack.paused is not None:
            await asyncio.sleep(REFUSED_AFTER)
            self.stack.views.refuse_if_paused()


class Transaction:
    """Several calls of which all take effect or none: `async with group.transaction() as tx`.

    It commits at the end of the block. An exception in the block aborts it, and so does a call that fails; calls that have
    committed by then are undone.
    """

    def __init__(self, group: ObjectCalls) -> None:
        self._group = group
        self._calls = group._calls()  # of the view in force when it begins
        self._commands: asyncio.Queue[Callable[[Any], Awaitable[Any]] | None] = asyncio.Queue()
        self._root: Root | None = None
        self._ended: asyncio.Future[Any] | None = None

    async def call(self, target: Target, op: str, /, *args: Any, **named: Any) -> Any:
        """Call a method and wait for its result."""
        return await self._call(target, op, args, named)

    def start(self, target: Target, op: str, /, *args: Any, **named: Any) -> "Started":
        """Call a method and go on. Await the value that this returns, or pass several to `all` or `any`. The commit waits for the call
        in any case."""
        return self._start(target, op, args, named)

    def oneway(self, target: Target, op: str, /, *args: Any, **named: Any) -> None:
        """Call without an answer. The call does not depend on whether the transaction commits."""
        call = self._calls.check(ONE_WAY, target, op, args, named)
        self._put(lambda ctx: ctx.make(call))

    async def _call(self, target: Target, op: str, args: Any, named: Any, answers: str = FIRST) -> Any:
        call = self._calls.check(SYNCHRONOUS, target, op, args, named, answers)
        return await self._do(lambda ctx: ctx.make(call))

    def _start(self, target: Target, op: str, args: Any, named: Any, answers: str = FIRST) -> "Started":
        return Started(self, self._calls.check(ASYNCHRONOUS, target, op, args, named, answers))

    async def all(self, *started: "Started") -> list[Any]:
        """Wait for all of these."""
        return list(await self._do(lambda ctx: ctx.all(*(each.handle for each in started))))

    async def any(self, *started: "Started") -> Any:
        """Wait for the first of these that commits; the others are undone."""
        return await self._do(lambda ctx: ctx.any(*(each.handle for each in started)))

    def proxy(self, cls: type[ObjectClass], name: Target, *, answers: str = FIRST) -> "Proxy":
        """An object whose methods are called inside this transaction."""
        return Proxy(self, cls, name, answers)

    def abort(self, why: str = "aborted by its client") -> None:
        """Abort the transaction: raises `Abort`, which the block must not catch."""
        raise Abort(why)

    async def __aenter__(self) -> Self:
        self._calls = await self._group.open_calls()
        self._root, self._ended = self._calls.begin(self._body)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._ended is not None and self._root is not None
        if error is not None:
            self._calls.cancel(self._root, str(error) or type(error).__name__)
            self._ended.add_done_callback(_forget)
            return
        self._put(None)
        with self._calls.awaited(self._ended):
            await self._ended

    async def _body(self, ctx: Any) -> None:
        while (command := await self._next()) is not None:
            await command(ctx)

    async def _next(self) -> Callable[[Any], Awaitable[Any]] | None:
        return await self._commands.get()

    def _put(self, command: Callable[[Any], Awaitable[Any]] | None) -> None:
        if self._root is None:
            raise UsageError(
                "a transaction is used inside `async with`: async with group.transaction() as tx"
            )
        if self._ended is not None and self._ended.done():
            raise self._ended.exception() or UsageError(
                "this transaction is over: begin another one with group.transaction()"
            )
        self._commands.put_nowait(command)

    async def _do(self, ask: Callable[[Any], Awaitable[Any]]) -> Any:
        """Have the body await something, and wait until it has, or until the transaction ends."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        async def command(ctx: Any) -> None:
            value = await ask(ctx)
            if not answer.done():
                answer.set_result(value)

        self._put(command)
        assert self._ended is not None
        with self._calls.awaited(answer):
            await asyncio.wait((answer, self._ended), return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            return answer.result()
        return self._ended.result()  # raises the reason of the end


class Started:
    """A call in progress in a transaction."""

    def __init__(self, transaction: Transaction, call: Invocation) -> None:
        self.handle: Any = None
        self._transaction = transaction

        async def begin(ctx: Any) -> None:
            self.handle = ctx.make(call)

        transaction._put(begin)

    def __await__(self) -> Any:
        return self._transaction._do(lambda ctx: self.handle).__await__()


class Proxy:
    """An object of the group, with the methods of its class.

        counter = group.proxy(Counter, "hits")
        await counter.inc(2)
        counter.inc.oneway(2)

    Arguments are checked against the class before anything is sent.
    """

    def __init__(self, caller: Any, cls: type[ObjectClass], name: Target, answers: str = FIRST) -> None:
        check_answers(answers)
        self._caller = caller
        self._cls = cls
        self._name = name
        self._answers = answers

    def __getattr__(self, op: str) -> "ProxyMethod":
        if op.startswith("_"):
            raise AttributeError(op)
        if op not in self._cls.methods:
            raise UsageError(f"{self._cls.__name__} has no method {op!r}{suggest(op, self._cls.methods)}")
        return ProxyMethod(self._caller, self._cls, self._name, op, self._answers)

    def __dir__(self) -> list[str]:
        return sorted(self._cls.methods)

    def __repr__(self) -> str:
        return f"<Proxy of {self._cls.__name__} {self._name!r}>"


class ProxyMethod:
    """A method of a proxy: await a call of it, `start` one in a transaction, or call it `oneway`."""

    def __init__(self, caller: Any, cls: type[ObjectClass], name: Target, op: str, answers: str) -> None:
        self._caller = caller
        self._cls = cls
        self._name = name
        self._op = op
        self._answers = answers

    def __call__(self, *args: Any, **named: Any) -> Awaitable[Any]:
        self._check(args, named)
        asked: Awaitable[Any] = self._caller._call(self._name, self._op, args, named, self._answers)
        return asked

    def start(self, *args: Any, **named: Any) -> Started:
        """Begin a call inside a transaction, and go on."""
        self._check(args, named)
        if not isinstance(self._caller, Transaction):
            raise UsageError("start belongs in a transaction: async with group.transaction() as tx")
        return self._caller._start(self._name, self._op, args, named, self._answers)

    def oneway(self, *args: Any, **named: Any) -> None:
        """Call without an answer."""
        self._check(args, named)
        self._caller.oneway(self._name, self._op, *args, **named)

    def _check(self, args: Sequence[Any], named: dict[str, Any]) -> None:
        method = self._cls.methods[self._op]
        try:
            inspect.signature(method.function).bind(None, None, *args, **named)
        except TypeError as error:
            raise UsageError(f"{self._cls.__name__}.{self._op}: {error}") from None


def _forget(future: "asyncio.Future[Any]") -> None:
    if not future.cancelled():
        future.exception()  # marks it as retrieved: the block has ended with an error of its own
