"""A live member: one stack, driven by an event loop and sockets.

The driver does nothing per message. It reads a burst, gives it to the stack, sends what the stack
wants sent, puts what it delivers into a queue, and re-arms one timer. When the application is about
to answer what was just delivered, the turn ends only after it had its chance, so that its answer and
our acknowledgement leave in one datagram.
"""

import asyncio
import warnings
import weakref
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from itertools import repeat
from types import TracebackType
from typing import Any, Self, TypeVar

from inga.model.delivery import Batch, Delivery
from inga.model.errors import Concurrent, IngaError, NotReady, TraceError, UsageError, WouldBlock
from inga.model.view import View
from inga.net.address import parse_host_port
from inga.net.carrier import Arrivals, Carrier
from inga.net.log import log
from inga.net.objects import RETRIES, Calls, Proxy, Transaction, answers_of
from inga.net.receipt import LiveReceipt
from inga.objects.declare import ObjectClass, Target
from inga.objects.invoke import Body
from inga.objects.layer import ObjectOrder
from inga.recipes import find
from inga.stack.stack import Ready, Stack
from inga.trace.manifest import CHECKS
from inga.trace.writer import TraceWriter
from inga.wire.bundle import split

MISSED_SECONDS = 5.0
"""After which a warning names the members that somebody waits for."""

LINGER, FAREWELL = 2.0, 0.5
"""Seconds a leaving member waits for the others to have all it sent and to know that it leaves; and at least for the
second."""

POLITE = 16
"""Batches an iteration yields before others in the loop get a turn."""

Listener = Callable[[str], None]
T = TypeVar("T")


class Group:
    """What `inga.join` gives: send, iterate, know who is here."""

    def __init__(
        self,
        name: str,
        me: str,
        stack: Stack,
        carrier: Carrier,
        addresses: list[tuple[str, int]] | None,
        receipts: type[LiveReceipt],
    ) -> None:
        self.name = name
        self.me = me
        self.stack = stack
        self.carrier = carrier
        self.receipts = receipts  # a class of this group alone
        self._addresses = addresses  # of members, where they are reached one by one
        self._loop = asyncio.get_running_loop()
        self._time = self._loop.time
        self._queue: deque[Batch | View] = deque([stack.view])
        self._error: BaseException | None = None
        self._stop: Concurrent | None = None  # what ended the iteration for good
        self._reader: asyncio.Future[None] | None = None  # an iteration waits for it
        self._writers: deque[asyncio.Future[None]] = deque()  # sends the window keeps out
        self._counts = (0, 0)  # members heard of, and that have left, when we last looked
        self._watchers: list[tuple[int, asyncio.Future[None]]] = []  # ready() calls
        self._on_join: list[Listener] = []
        self._on_leave: list[Listener] = []
        self._present: set[int] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._ending = False  # the end of this turn is scheduled
        self._iteration: weakref.ref[AsyncGenerator[Any, None]] | None = None  # the one there is
        self._rest: Iterator[Delivery] = iter(())  # of the packet it is at
        self._closed = False
        self._changes: set[asyncio.Future[None]] = set()  # use() calls
        self._object_calls: Calls | None = None  # of the order in force, if it has objects
        self.trace: TraceWriter | None = None
        self.fits = False  # windows follow what the kernel grants
        self._know_view()

    # Sending

    async def send(self, data: bytes, to: str | Iterable[str] | None = None) -> LiveReceipt:
        """Queue one message for everybody else, or for some; waits only while the window is closed."""
        stack = self.stack
        if self._ending and to is None and type(data) is bytes and stack.writable and not self._writers:
            # The common case of a fast sender: the turn's end is scheduled, the group is open.
            receipt: LiveReceipt = self._put([data], None)
            if stack.has_output:
                self._act(stack.ready(turn=False))
            return receipt
        while not stack.writable or self._writers:
            self._check_open()
            await self._wait_writable()
        return self._send([_immutable(data)], to)

    def post(self, data: bytes, to: str | Iterable[str] | None = None) -> LiveReceipt:
        """The same without waiting: raises WouldBlock while the window is closed."""
        if not self.stack.writable or self._writers:
            self._check_open()
            raise WouldBlock("the flow window is closed")
        return self._send([_immutable(data)], to)

    async def send_many(
        self, messages: Iterable[bytes], to: str | Iterable[str] | None = None
    ) -> LiveReceipt:
        """Many at once; the receipt is that of the last."""
        payloads = list(messages)
        if set(map(type, payloads)) != _JUST_BYTES:
            payloads = list(map(_immutable, payloads))
        if not payloads:
            raise UsageError("nothing to send")
        receipt: LiveReceipt | None = None
        at = 0
        while at < len(payloads):
            while not self.stack.writable or self._writers:
                self._check_open()
                await self._wait_writable()
            part = payloads[at : at + 512] if len(payloads) > 512 else payloads
            receipt = self._send(part, to)
            at += len(part)
        assert receipt is not None
        return receipt

    # Receiving

    def __aiter__(self) -> AsyncIterator[Delivery]:
        return self._claim(self._deliveries())

    def batches(self) -> AsyncIterator[Batch]:
        """Whole packets, each taken at once: the fast way."""
        return self._claim(self._batches())

    def items(self) -> AsyncIterator[Delivery | View]:
        """Deliveries and views, each view at its exact place in the order."""
        return self._claim(self._deliveries_and_views())

    async def _deliveries(self) -> AsyncGenerator[Delivery, None]:
        for delivery in self._rest:
            yield delivery
        async for item in self._items():
            if isinstance(item, Batch):
                self._rest = map(Delivery, repeat(item), range(len(item.payloads)))
                for delivery in self._rest:
                    yield delivery

    async def _deliveries_and_views(self) -> AsyncGenerator[Delivery | View, None]:
        for delivery in self._rest:
            yield delivery
        async for item in self._items():
            if isinstance(item, View):
                yield item
            else:
                self._rest = map(Delivery, repeat(item), range(len(item.payloads)))
                for delivery in self._rest:
                    yield delivery

    async def _batches(self) -> AsyncGenerator[Batch, None]:
        rest = list(self._rest)
        if rest:
            batch = Batch(rest[0].sender, rest[0].batch.packet)
            batch.payloads = [delivery.data for delivery in rest]
            yield batch
        async for item in self._items():
            if isinstance(item, Batch):
                yield item

    def _claim(self, iteration: AsyncGenerator[T, None]) -> AsyncIterator[T]:
        """One at a time. Who broke out of a loop has let go of its iteration, and the next one goes on
        where it stopped, within a packet too."""
        other = None if self._iteration is None else self._iteration()
        if getattr(other, "ag_frame", None) is not None:  # alive, and not at its end
            raise UsageError("this group is being iterated already; there is one iterator per group")
        self._iteration = weakref.ref(iteration)
        return iteration

    async def _items(self) -> AsyncGenerator[Batch | View, None]:
        queue = self._queue
        polite = POLITE
        while True:
            if self._stop is not None:
                raise self._stop
            if not queue:
                if self._error is not None:
                    raise self._error
                if self._closed:
                    return
                reader = self._reader = self._loop.create_future()
                try:
                    await reader
                finally:
                    if self._reader is reader:  # nobody woke us
                        self._reader = None
                polite = POLITE
                continue
            polite -= 1
            if not polite:
                polite = POLITE
                await asyncio.sleep(0)
                continue
            item = queue.popleft()
            if isinstance(item, Batch):
                self._take(item)
            yield item

    # Who is here

    @property
    def view(self) -> View:
        """The members everybody agrees on."""
        return self.stack.view

    @property
    def here(self) -> tuple[str, ...]:
        """Members heard of that have not left, ourselves included."""
        mine = self.stack.me
        return tuple(n for i, n in enumerate(self.view.names) if i == mine or i in self._present)

    def all_but(self, *names: str) -> list[str]:
        """Everybody else but these: `to=group.all_but(d.sender)` is for all who did not ask."""
        left_out = {self.stack.me, *map(self._member, names)}
        return [name for index, name in enumerate(self.view.names) if index not in left_out]

    async def ready(self, at_least: int | None = None, timeout: float | None = None) -> None:
        """Wait until so many members are here, ourselves included; all of them if not said.

        After `timeout` seconds it raises `NotReady`, which names those that are missing. Without one it waits
        as long as it takes; a warning then names them once.
        """
        wanted = len(self.view) if at_least is None else at_least
        if wanted > len(self.view):
            raise UsageError(f"ready(at_least={wanted}): the group has {len(self.view)} members")
        self._check_open()
        if len(self.here) >= wanted:
            return
        watcher = wanted, self._loop.create_future()
        self._watchers.append(watcher)
        warning = self._loop.call_later(MISSED_SECONDS, self._warn_of_missing, wanted)
        try:
            async with asyncio.timeout(timeout):
                await watcher[1]
        except TimeoutError:
            raise NotReady(f"{self._who_is_missing(wanted)} after {timeout:g} s", self._missing) from None
        finally:
            warning.cancel()
            if watcher in self._watchers:
                self._watchers.remove(watcher)

    @property
    def _missing(self) -> tuple[str, ...]:
        here = set(self.here)
        return tuple(name for name in self.view.names if name not in here)

    def _who_is_missing(self, wanted: int) -> str:
        return f"{len(self.here)} of {wanted} members are here, missing are {', '.join(self._missing)}"

    def _warn_of_missing(self, wanted: int) -> None:
        log.warning("group %s: %s", self.name, self._who_is_missing(wanted))

    def on_join(self, listener: Listener) -> None:
        """Call with a member's name when it is first heard of; at once for those already here.

        What a listener raises goes to the event loop's exception handler, and concerns nobody else.
        """
        self._on_join.append(listener)
        for name in self.here:
            if name != self.me:
                self._tell(listener, name)

    def on_leave(self, listener: Listener) -> None:
        """Call with a member's name when it leaves; what it raises is treated as in `on_join`."""
        self._on_leave.append(listener)

    def _tell(self, listener: Listener, name: str) -> None:
        try:
            listener(name)
        except Exception as error:
            self._loop.call_exception_handler(
                {"message": "Exception in a listener for members that join or leave", "exception": error}
            )

    def delay(self, to: str, seconds: float, jitter: float = 0.0, *, keep_order: bool = False) -> None:
        """For tests: everything we send to `to` leaves at least so much later."""
        self._check_open()
        member = self._member(to)
        if member == self.stack.me:
            raise UsageError("a delay to oneself has no effect; name another member")
        self.stack.delay(member, seconds, jitter, keep_order, now=self._time())

    async def use(self, order: str) -> View:
        """Change the order for the whole group, between two messages: everybody gets all that was sent
        before under the old one, and all that is sent afterwards under the new one."""
        self._check_open()
        recipe = find(order)
        future: asyncio.Future[None] = self._loop.create_future()

        def done(why: str | None) -> None:
            if future.done():
                return
            if why is None:
                future.set_result(None)
            else:
                future.set_exception(UsageError(f"the order stays {self.recipe.name!r}: {why}"))

        self.stack.propose(recipe.name, done, now=self._time())
        self._end_turn()
        self._changes.add(future)
        try:
            await future
        finally:
            self._changes.discard(future)
        return self.view

    def gate(self, state: str) -> None:
        """`open`: deliver here as messages come, in whatever order; `closed`: hold again what comes
        before its cause. Only this member is concerned, and messages are stamped all the while."""
        self._check_open()
        self.stack.gate(state, now=self._time())
        if state == "open" and self.trace is not None:
            self.trace.disclaim("fifo", "stamps", "causal")
        self._end_turn()

    # Objects

    async def call(self, target: Target, op: str, *args: Any, answers: str = "first", **named: Any) -> Any:
        """Call a method of an object, or of several, and wait for what it gives. Of a replicated object the
        first answer counts, or with `answers="all"` there is a list of all. A method that fails raises
        `RemoteError` here, and has done nothing."""
        calls, how = self._calls(), answers_of(answers)
        return await calls.run(lambda ctx: ctx.call(target, op, *args, **how, **named))

    def oneway(self, target: Target, op: str, *args: Any, **named: Any) -> None:
        """Call without an answer."""

        async def body(ctx: Any) -> None:
            ctx.oneway(target, op, *args, **named)

        self._calls().begin(body)

    def proxy(self, cls: type[ObjectClass], name: Target, *, answers: str = "first") -> Proxy:
        """An object by the methods of its class: `await group.proxy(Counter, "hits").inc()`."""
        self._calls()
        return Proxy(self, cls, name, answers)

    def transaction(self) -> Transaction:
        """Several calls of which all take effect or none: `async with group.transaction() as tx`."""
        return Transaction(self._calls())

    async def transact(self, body: Body, *, retries: int = RETRIES) -> Any:
        """Run `async def body(ctx)` as a transaction, and begin again if it was given up to end a deadlock."""
        return await self._calls().run(body, retries)

    def state(self, name: str) -> Any:
        """The state of our own copy of an object, as committed."""
        return self._calls().order.host.state(name)

    def _calls(self) -> Calls:
        self._check_open()
        order = self.stack.layer("object")
        if not isinstance(order, ObjectOrder):
            raise UsageError(
                f"order {self.recipe.name!r} has no objects: join with order='object' or 'total'"
            )
        if self._object_calls is None or self._object_calls.order is not order:
            self._object_calls = Calls(order, self._loop, self._schedule_end)
        return self._object_calls

    # Living and leaving

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def begin(self, bases: dict[str, list[int]] | None = None) -> None:
        """The sockets are open: the first view begins, for a newcomer where the others are."""
        self.stack.begin(bases, now=self._time())
        self._end_turn()
        if self.trace is not None:
            self._poll_trace()

    async def close(self, *, linger: float = LINGER) -> None:
        """Leave: wait a moment for the others to have all we sent, say goodbye, close everything."""
        if self._closed:
            return
        deadline = self._time() + linger
        try:
            if self._error is None:
                self.stack.flush()
                self._end_turn()
                await self._until(lambda: self.stack.settled, deadline)
                self.stack.goodbye(now=self._time())
            self._end_turn()
            await self._until(lambda: self.stack.has_left, max(deadline, self._time() + FAREWELL))
        finally:
            self._shut()
            if self.trace is not None:
                complete = self._error is None
                await asyncio.shield(self._loop.run_in_executor(None, self.trace.close, complete))

    def __del__(self) -> None:
        if not getattr(self, "_closed", True):
            warnings.warn(f"group {self.name!r} was never closed", ResourceWarning, source=self, stacklevel=2)
            self.carrier.close()

    async def _until(self, is_so: Callable[[], bool], deadline: float) -> None:
        """Wait for something that nobody announces, but not for ever."""
        while not is_so() and self._time() < deadline:
            await asyncio.sleep(0.005)

    def _shut(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self.carrier.close()
        self.stack.trace = None  # what is read from now on is read after the end of the trace
        self._dismiss("the group is closed")

    # The driver

    def _poll_trace(self) -> None:
        """Let segments end by time, also when nothing happens."""
        if self.trace is not None and not self._closed and self._error is None:
            try:
                self.trace.poll(self._time())
            except TraceError as error:
                self.stack.fail(error)
                self._end_turn()
            self._loop.call_later(1.0, self._poll_trace)

    def receive(self, burst: Arrivals) -> None:
        """What the sockets have for us."""
        stack = self.stack
        stack.receive(burst, now=self._time())
        self._notice_members()
        # An application that waits for what this burst delivers gets to answer before the turn ends.
        if self._reader is not None:
            self._act(stack.ready(turn=False))
            self._schedule_end()
        else:
            self._act(stack.ready())

    def _on_timer(self) -> None:
        self._timer = None
        self.stack.tick(self._time())
        self._notice_members()  # what was delayed on purpose comes now
        self._act(self.stack.ready())

    def _schedule_end(self) -> None:
        if not self._ending:
            self._ending = True
            self._loop.call_soon(self._end_turn)

    def _end_turn(self) -> None:
        self._ending = False
        if not self._closed:
            self._act(self.stack.ready(now=self._time()))

    def _act(self, ready: Ready) -> None:
        if self.stack.view is not self._view:
            self._know_view()
        transmit = self.carrier.transmit
        for address, datagram in ready.send:
            transmit(address, datagram)
        if ready.deliver:
            self._queue.extend(ready.deliver)
            self._wake_reader()
        wake = ready.wake
        if wake is not None and (self._timer is None or wake < self._timer_at):
            if self._timer is not None:
                self._timer.cancel()
            self._timer_at = wake
            self._timer = self._loop.call_at(wake, self._on_timer)
        if self._writers and ready.writable:
            self._wake_writers()
        for text in ready.notices:
            log.warning("group %s: %s", self.name, text)
        if ready.error is not None and self._error is None:
            self._fail(ready.error)

    def _send(self, payloads: list[bytes], to: str | Iterable[str] | None) -> LiveReceipt:
        self._check_open()
        stack = self.stack
        dst = None if to is None else self._mask(to)
        receipt = stack.send_many(payloads, dst, now=self._time())
        if stack.has_output:
            self._act(stack.ready(turn=False))
        if not self._ending:
            self._ending = True
            self._loop.call_soon(self._end_turn)
        return receipt  # type: ignore[return-value]  # the stack makes LiveReceipts

    def _take(self, batch: Batch) -> None:
        """The application begins a packet: it becomes a cause of what is sent from here on."""
        stack = self.stack
        stack.taken([batch.packet], now=self._time())
        if stack.has_output or stack.report_wanted:
            self._schedule_end()
        if self._raises and batch.concurrent:
            self._stop = self._complaint(batch)
            raise self._stop

    def _complaint(self, batch: Batch) -> Concurrent:
        """Neither caused the other: the error that ends the iteration, with both."""
        member, _, seq = batch.concurrent_with[0]
        packet = self.stack.chain.order.latest.get(member)
        other = None
        if packet is not None and packet.seq == seq:
            if packet.payloads is None:  # our own, as it was sent
                packet.payloads = split(packet.body)
            other = Batch(self.view.names[member], packet)
        return Concurrent(f"{batch!r} is concurrent with {batch.concurrent_with}", batch, other)

    def _wake_reader(self) -> None:
        reader = self._reader
        if reader is not None:
            self._reader = None
            if not reader.done():
                reader.set_result(None)

    async def writable(self) -> None:
        """Wait until `post` may go through."""
        while not self.stack.writable:
            self._check_open()
            await self._wait_writable()

    async def _wait_writable(self) -> None:
        future = self._loop.create_future()
        self._writers.append(future)
        self._schedule_end()
        try:
            await future
        finally:
            if future in self._writers:
                self._writers.remove(future)

    def _wake_writers(self) -> None:
        """Let everybody who waited try; who finds the window closed again waits again."""
        writers, self._writers = self._writers, deque()
        for future in writers:
            if not future.done():
                future.set_result(None)

    def _know_view(self) -> None:
        """What depends on who is in the group, and on its order."""
        stack = self.stack
        self._view = view = stack.view
        self._index = {member: index for index, member in enumerate(view.names)}
        self.recipe = find(view.recipe)
        if self.trace is not None:
            self.trace.disclaim(*(set(CHECKS) - set(self.recipe.guarantees)))
        self.receipts.levels = stack.chain.levels
        self._put: Callable[[list[bytes], int | None], Any] = stack.entrance  # makes LiveReceipts
        self._know_objects()
        self._raises = any(getattr(layer, "on_concurrent", "") == "error" for layer in stack.layers)
        known = self._addresses
        if known is not None and len(view) > len(known):
            learn_addresses(known, view)
            self.carrier.knows(stack.me, known)
        if self.fits:
            stack.fit(self.carrier.granted)

    def _know_objects(self) -> None:
        """Whether the order has objects. Calls under another order have come to nothing."""
        order, calls = self.stack.layer("object"), self._object_calls
        if calls is not None and calls.order is not order:
            calls.dismiss("the order of the group has changed")
            self._object_calls = None
        if self._object_calls is None and isinstance(order, ObjectOrder):
            self._object_calls = Calls(order, self._loop, self._schedule_end)

    def _notice_members(self) -> None:
        stack = self.stack
        if (counts := (len(stack.met), len(stack.left))) == self._counts:
            return
        present = stack.met - stack.left
        names = self.view.names
        joined, left = present - self._present, self._present - present
        self._present, self._counts = present, counts
        for member in sorted(joined):
            for listener in self._on_join:
                self._tell(listener, names[member])
        for member in sorted(left):
            for listener in self._on_leave:
                self._tell(listener, names[member])
        if joined:
            count = len(present) + 1
            for wanted, future in self._watchers:
                if count >= wanted and not future.done():
                    future.set_result(None)
            self._watchers = [(wanted, future) for wanted, future in self._watchers if not future.done()]

    def _fail(self, error: IngaError) -> None:
        self._error = error
        self._dismiss(f"the group has failed: {error}")

    def _dismiss(self, why: str) -> None:
        """Nothing will come of what anybody waits for."""
        watchers = [future for _, future in self._watchers]
        if self._object_calls is not None:
            self._object_calls.dismiss(why)
        for future in (*self._writers, *watchers, *self._changes, *self.receipts.waiting):
            if not future.done():
                future.set_exception(UsageError(why))
        self._writers.clear()
        self._watchers.clear()
        self.receipts.ended = why
        self._wake_reader()

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError("the group is closed")
        if self._error is not None:
            raise UsageError(f"the group has failed: {self._error}")

    def _mask(self, to: str | Iterable[str]) -> int:
        if isinstance(to, str):
            return 1 << self._member(to)
        mask = 0
        for name in to:
            mask |= 1 << self._member(name)
        if not mask:
            raise UsageError("a message needs at least one destination")
        return mask

    def _member(self, name: str) -> int:
        index = self._index.get(name)
        if index is None:
            raise UsageError(f"{name!r} is not a member of this group; there are {', '.join(self._index)}")
        return index


def learn_addresses(known: list[tuple[str, int]], view: View) -> None:
    """Add those of members that joined later, as the view has them."""
    known += [parse_host_port(member.address, member.name) for member in view.members[len(known) :]]


_JUST_BYTES = {bytes}


def _immutable(data: Any) -> bytes:
    """What is sent must not change afterwards."""
    if type(data) is bytes:
        return data
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    raise UsageError(f"a message is bytes, not {type(data).__name__}; encode text first")
