"""A live member: one stack, and its interface for an application."""

import asyncio
import warnings
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, NoReturn, Self

from inga.certify.checks import CHECKS
from inga.model.delivery import Batch, Delivery
from inga.model.errors import Concurrent, Excluded, IngaError, NoMajority, TraceError, UsageError, WouldBlock
from inga.model.event import Incident
from inga.model.stats import Stats
from inga.model.text import suggest
from inga.model.view import View
from inga.net.carrier import Carrier
from inga.net.company import Company, NameListener, ViewListener
from inga.net.driver import Driver
from inga.net.log import report
from inga.net.objects import ObjectCalls
from inga.net.options import ForgedListener
from inga.net.reading import Reading
from inga.net.receipt import LiveReceipt, Receipts
from inga.net.states import StateHooks, States
from inga.net.traces import LiveTraces
from inga.recipes import find
from inga.session.session import session_of
from inga.session.snapshot import snapshot
from inga.stack.stack import Stack
from inga.wire.bundle import split

LINGER, FAREWELL = 2.0, 0.5
"""Seconds for which a leaving member waits until the others have all that it sent and know that it leaves; and the least time
for the latter."""


def _as_text(group: "Group") -> str:
    state = "failed" if group._error is not None else "closed" if group._closed else ", ".join(group.here)
    return f"<inga.Group {group.name!r}, {group.me!r} in it: {state}>"


def _refuse_copies(group: "Group", protocol: Any) -> NoReturn:
    raise TypeError(
        "a Group is neither copied nor pickled: it is a member with sockets, in this process; another process joins itself"
    )


class Group(ObjectCalls):
    """A live member of a group: what `async with inga.join(...) as group` gives.

    `group.name` is the group's name, `group.me` this member's. Any task may send, one at a time iterates. All of them run in
    the event loop in which it was joined: from another thread, `asyncio.run_coroutine_threadsafe(group.send(...), loop)`.
    """

    def __init__(
        self,
        name: str,
        me: str,
        stack: Stack,
        carrier: Carrier,
        receipts: Receipts,
        *,
        is_addressed: bool = False,
        is_open: bool = False,
        refuses_concurrent: bool = False,
        states: StateHooks | None = None,
        on_forged: ForgedListener | None = None,
    ) -> None:
        """`is_addressed`: members are reached one by one, at the addresses in their view. `is_open`: members are not listed.
        `refuses_concurrent`: a message that is concurrent with one that the application knows ends its iteration. `states`: the
        application's functions that give a state to newcomers, and take one. `on_forged` is called with the numbers of dropped
        datagrams."""
        self.name = name
        self.me = me
        self.stack = stack
        self.carrier = carrier
        self._receipts = receipts  # makes the stack's receipts
        self.receipts = receipts.kind  # a class of this group alone
        self._identity = stack.member.identity
        self._refuses_concurrent = refuses_concurrent
        self._is_addressed = is_addressed
        self._loop = asyncio.get_running_loop()
        self._time = self._loop.time
        self._company = Company(name, stack, is_open=is_open, on_forged=on_forged)
        self._reading = Reading(stack.view, self._take, self._company.reach)
        self._error: BaseException | None = None
        self._driver = Driver(
            stack,
            carrier,
            self._reading,
            self._company,
            on_view=self._know_view,
            on_pause=self._know_pause,
            on_error=self._fail,
        )
        self._states: States | None = None
        if states is not None and (states.gives or states.wants):
            self._states = States(states, stack, self._reading, self._driver.schedule_end)
        self.receive = self._driver.receive  # for bursts of datagrams
        self._closed = False
        self._changes: set[asyncio.Future[None]] = set()  # use() and go_on() calls
        self._resuming: list[asyncio.Future[None]] = []  # those of them that wait for the end of a pause
        self.traces: LiveTraces | None = None
        self.recipe = find(stack.view.recipe)
        self.fits = False  # windows follow the buffers that the kernel grants
        self._know_view()

    # Sending

    async def send(self, data: bytes, to: str | Iterable[str] | None = None) -> LiveReceipt:
        """Send one message, of bytes, to all other members; `to` names one member or several instead.

        Returns once the message is queued, and waits only while too many of our messages are in flight (flow control). To
        know that it arrived, await `receipt.reached("confirmed")`. A call that is cancelled while it waits, as by
        `asyncio.timeout`, has sent nothing; once it has returned, the message is on its way and cannot be recalled.
        """
        stack = self.stack
        driver = self._driver
        is_simple = to is None and type(data) is bytes and stack.others
        if driver.is_ending and is_simple and stack.writable and not driver.writers:
            # The common case of a fast sender: the turn's end is scheduled, the group is open.
            receipt: LiveReceipt = self._put([data], None)
            if self._states is not None:
                self._states.sent([data])
            if stack.has_output:
                driver.hand_over()
            return receipt
        await self.writable()
        return self._send([_immutable(data)], to)

    def post(self, data: bytes, to: str | Iterable[str] | None = None) -> LiveReceipt:
        """The same without waiting, also outside of coroutines: raises `WouldBlock` while too many of our messages are in flight."""
        if not self.stack.writable or self._driver.writers:
            self._check_open()
            self.stack.views.refuse_if_paused()
            raise WouldBlock(
                "the flow window is closed, as too much of ours is under way: use `await group.send(...)`, which waits"
            )
        return self._send([_immutable(data)], to)

    async def send_many(
        self, messages: Iterable[bytes], to: str | Iterable[str] | None = None
    ) -> LiveReceipt:
        """Send many messages at once, in their order, which costs less than one by one. Returns the receipt of the last.

        It waits between some hundreds of them: a call that is cancelled there has sent the first ones.
        """
        if not isinstance(messages, Iterable):
            raise UsageError(f"send_many takes a list of messages, not {messages!r}")
        payloads = list(messages)
        if set(map(type, payloads)) != _JUST_BYTES:
            payloads = list(map(_immutable, payloads))
        if not payloads:
            raise UsageError("send_many was given no messages: pass at least one")
        receipt: LiveReceipt | None = None
        at = 0
        while at < len(payloads):
            await self.writable()
            part = payloads[at : at + 512] if len(payloads) > 512 else payloads
            receipt = self._send(part, to)
            at += len(part)
        assert receipt is not None
        return receipt

    # Receiving

    def __aiter__(self) -> AsyncIterator[Delivery]:
        """`async for delivery in group`: messages of others, in the order of the group.

        Taking a delivery makes it a cause of what is sent afterwards. The iteration ends when the group is closed, by `close` or at
        the end of `async with`, not when others leave. It raises `Excluded` if the others excluded this member, or
        the error that ended the group. After `break` another loop goes on where it stopped. There is one iteration at a time.
        """
        return self._reading.claim(self._reading.deliveries())

    def batches(self) -> AsyncIterator[Batch]:
        """`async for batch in group.batches()`: all messages of a packet at once, in `batch.payloads`; faster than one by one."""
        return self._reading.claim(self._reading.batches())

    def items(self) -> AsyncIterator[Delivery | View | Incident]:
        """`async for item in group.items()`: deliveries and views, each view at its exact place in the order, and the incidents
        `Paused`, `Resumed` and `Missed`."""
        return self._reading.claim(self._reading.deliveries_and_views())

    # Members

    @property
    def view(self) -> View:
        """The view in force: the members, as all of them agree."""
        return self.stack.view

    @property
    def here(self) -> tuple[str, ...]:
        """Members met that have not left, ourselves included."""
        return self._company.here

    @property
    def waits(self) -> dict[str, float]:
        """For each member that sending has waited for, how many seconds in all: it reads too slowly, or does not answer."""
        return session_of(self.stack).pressure.waits

    @property
    def rejected(self) -> dict[str, int]:
        """Number of dropped datagrams and packets, by reason: noise, strangers, forgeries. In a secured group
        `kernel` counts those that never reached us: there was no room, or they were large and from a stranger."""
        never_came = 0 if self.carrier.guard is None else self.carrier.dropped
        return {**self.stack.rejected, **({"kernel": never_came} if never_came else {})}

    def stats(self) -> Stats:
        """A snapshot of all figures of this member, as one value: see docs/operating.md."""
        state = "failed" if self._error is not None else "closed" if self._closed else None
        return snapshot(
            self.stack,
            group=self.name,
            now=self._time(),
            traffic=self.carrier.traffic,
            state=state,
            rejected=self.rejected,
        )

    def all_but(self, *names: str) -> list[str]:
        """All other members except these: with `to=group.all_but(d.sender)`, `d.sender` does not get the message."""
        left_out = {self.stack.me, *map(self._member, names)}
        return [name for index, name in enumerate(self.view.names) if index not in left_out]

    async def ready(
        self,
        at_least: int | None = None,
        timeout: float | None = None,
        *,
        members: Iterable[str] | None = None,
    ) -> None:
        """Wait until `at_least` members are here, ourselves included, or those named in `members`; by default all
        members of the view. If members are not listed, the view has those that have found each other so far.

        After `timeout` seconds it raises `NotReady`, which names the missing members. Without `timeout` it waits
        as long as it takes; a warning then names them once.
        """
        self._check_open()
        await self._company.ready(at_least, members, timeout)

    def on_join(self, listener: NameListener) -> None:
        """Call `listener` with a member's name when it is first met; at once for those already here.

        An exception in a listener goes to the event loop's exception handler, and has no other effect.
        """
        self._company.on_join(listener)

    def on_leave(self, listener: NameListener) -> None:
        """Call `listener` with a member's name when it leaves; exceptions are treated as in `on_join`."""
        self._company.on_leave(listener)

    def on_merge(self, listener: ViewListener) -> None:
        """Call `listener` with a view in which parts of the group merge (`view.merged`), when the iteration reaches it: after all
        messages of the view before, and before the first of this one. Exceptions are treated as in `on_join`."""
        self._company.on_merge(listener)

    def delay(self, to: str, seconds: float, jitter: float = 0.0, *, keep_order: bool = False) -> None:
        """For tests: delay everything we send to `to` by at least `seconds`."""
        self._check_open()
        member = self._member(to)
        if member == self.stack.me:
            raise UsageError("a delay to oneself has no effect; name another member")
        self.stack.delay(member, seconds, jitter, keep_order, now=self._time())

    async def use(self, order: str) -> View:
        """Change the order of the whole group, between two messages: all members deliver messages sent
        before it under the old order, and messages sent after it under the new one."""
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
        self._driver.end_turn()
        self._changes.add(future)
        try:
            await future
        finally:
            self._changes.discard(future)
        return self.view

    async def go_on(self) -> View:
        """Let this part of the group, which is paused, go on without the missing members.

        Call this only if a person knows that they are gone for good. If they go on as well, there are two groups with two
        states from then on; when they hear each other again, the state of the smaller part is lost.
        """
        self._check_open()
        self.stack.advance(self._time())
        session_of(self.stack).go_on()
        future: asyncio.Future[None] = self._loop.create_future()
        self._changes.add(future)
        self._resuming.append(future)
        self._driver.end_turn()
        try:
            await future
        finally:
            self._changes.discard(future)
        return self.view

    def gate(self, state: str) -> None:
        """`open`: deliver messages here as they arrive, in any order; `closed`: hold again messages that arrive
        before their causes. This affects only this member, and messages are stamped all the while."""
        self._check_open()
        self.stack.gate(state, now=self._time())
        if state == "open" and self.traces is not None:
            self.traces.disclaim("fifo", "stamps", "causal")
        self._driver.end_turn()

    # Living and leaving

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def begin(self, cuts: Sequence[int] = ()) -> None:
        """For `inga.join`, which has called it: the sockets are open, the first view begins. `cuts`: what each process had sent
        in views before."""
        self.stack.begin(cuts=cuts, now=self._time())
        report("group.joined", "%s is a member", self.me, group=self.name)
        self._driver.end_turn()
        if self.traces is not None:
            self._poll_trace()

    async def close(self, *, linger: float = LINGER) -> None:
        """Leave the group: wait up to `linger` seconds until the others have all we sent, say goodbye, close the sockets."""
        if self._closed:
            return
        deadline = self._time() + linger
        try:
            if self._error is None:
                self.stack.flush()
                self._driver.end_turn()
                await _until(lambda: self.stack.settled, deadline)
                self.stack.goodbye(now=self._time())
            self._driver.end_turn()
            await _until(lambda: self.stack.has_left, max(deadline, self._time() + FAREWELL))
        finally:
            self._shut()
            if self.traces is not None:
                is_out = isinstance(self._error, Excluded)  # then it has lost its membership, but no rows
                await self.traces.close(self._error is None or is_out, crashed=is_out)

    __repr__ = _as_text
    __reduce_ex__ = _refuse_copies

    def __del__(self) -> None:
        if not getattr(self, "_closed", True):
            warnings.warn(f"group {self.name!r} was never closed", ResourceWarning, source=self, stacklevel=2)
            self.carrier.close()

    def _shut(self) -> None:
        self._closed = self._reading.closed = True
        self._driver.stop()
        self.carrier.close()
        report("group.closed", "%s has left", self.me, group=self.name)
        self.stack.trace = None  # messages taken from now on are taken after the end of the trace
        self._dismiss("the group is closed")

    # Inside

    def _poll_trace(self) -> None:
        """Let trace segments end by time, even if nothing happens."""
        if self.traces is not None and not self._closed and self._error is None:
            try:
                self.traces.poll(self._time())
            except TraceError as error:
                self.stack.fail(error)
                self._driver.end_turn()
            self._loop.call_later(1.0, self._poll_trace)

    def _send(self, payloads: list[bytes], to: str | Iterable[str] | None) -> LiveReceipt:
        self._check_open()
        stack = self.stack
        dst = None if to is None else self._mask(to)
        receipt = stack.send_many(payloads, dst, now=self._time())
        if self._states is not None and dst is None:
            self._states.sent(payloads)
        if stack.has_output:
            self._driver.hand_over()
        self._driver.lead()
        return receipt  # type: ignore[return-value]  # the stack makes LiveReceipts

    def _take(self, batch: Batch) -> None:
        """The application begins to process a packet: it becomes a cause of messages sent from now on."""
        stack = self.stack
        stack.taken([batch.packet], now=self._time())
        if stack.has_output or stack.report_wanted:
            self._driver.schedule_end()
        if self._refuses_concurrent and batch.concurrent:
            self._reading.stop = _complaint(self.stack, batch)
            raise self._reading.stop

    async def writable(self) -> None:
        """Wait until `post` or `oneway` may go through."""
        if not self.stack.others:  # no window makes a loop of sends wait, so let other tasks run
            await asyncio.sleep(0)
        while not self.stack.writable or self._driver.writers:
            self._check_open()
            await self._refuse_if_paused()
            future = self._loop.create_future()
            self._driver.writers.append(future)
            self._driver.schedule_end()
            try:
                await future
            finally:
                if future in self._driver.writers:
                    self._driver.writers.remove(future)

    def _know_view(self) -> None:
        """A view is in force: update all that depends on its members and its order."""
        stack = self.stack
        if stack.member.identity != self._identity:
            self._begin_anew()
        view = stack.view
        self._index = {member: index for index, member in enumerate(view.names)}
        before, self.recipe = self.recipe, find(view.recipe)
        if self.recipe is not before:
            self.disclaim()
        if self.receipts.levels != stack.chain.levels:
            self.receipts = self._receipts.renew("the order has changed")
            self.receipts.levels = stack.chain.levels
        self._put: Callable[[list[bytes], int | None], Any] = stack.entrance  # makes LiveReceipts
        self._know_objects()
        report(
            "view.installed",
            "view %d: %s, order %s",
            view.number,
            ", ".join(view.names),
            view.recipe,
            group=self.name,
        )
        self.carrier.learns(stack.addresses)
        if self._is_addressed and view.number > 1:
            self.carrier.knows(stack.me, [member.address for member in view.members])
        if self.fits:
            stack.fit(self.carrier.granted)

    def _know_pause(self) -> None:
        """A pause begins or ends. At its beginning sends and calls that wait raise NoMajority; at its end `go_on` returns."""
        why = self.stack.paused
        if why is None:
            for future in self._resuming:
                if not future.done():
                    future.set_result(None)
            self._resuming.clear()
            return
        writers, self._driver.writers = self._driver.writers, deque()
        for future in writers:
            if not future.done():
                future.set_exception(NoMajority(str(why), why.missing))
        self._interrupt_calls(why)

    def disclaim(self) -> None:
        """For `inga.join` and `use`: the trace was begun under another order; withdraw its claims that this order does not promise."""
        if self.traces is not None:
            self.traces.disclaim(*(set(CHECKS) - set(self.recipe.claims(full=True))))

    def _begin_anew(self) -> None:
        """The others had excluded us, and we have joined as a new member: what we sent before may be lost, so its receipts end."""
        self._identity = self.stack.member.identity
        self.receipts = self._receipts.renew(
            "the others went on without us before it was known, and it may be lost"
        )

    def _fail(self, error: IngaError) -> None:
        if self._error is not None:
            return
        self._error = self._reading.error = error
        report("group.failed", "%s", error, group=self.name)
        self._dismiss(f"the group has failed: {error}")

    def _dismiss(self, why: str) -> None:
        """End everything that waits for the group, with the reason `why`."""
        watchers = [future for _, future in self._company.watchers]
        self._dismiss_calls(why)
        if self._states is not None:
            self._states.close()
        for future in (*self._driver.writers, *watchers, *self._changes):
            if not future.done():
                future.set_exception(UsageError(why))
        self._driver.writers.clear()
        self._company.watchers.clear()
        self.receipts.end(why, why)
        self._reading.wake()

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError("the group is closed: use it inside of `async with inga.join(...) as group`")
        if self._error is not None:
            raise UsageError(f"the group has failed: {self._error}")

    def _mask(self, to: str | Iterable[str]) -> int:
        if isinstance(to, str):
            return 1 << self._member(to)
        if not isinstance(to, Iterable):
            raise UsageError(f"to is the name of a member, or several of them, not {to!r}")
        mask = 0
        for name in to:
            mask |= 1 << self._member(name)
        if not mask:
            raise UsageError(
                "a message needs at least one destination: to=[] names nobody; leave `to` out for everybody"
            )
        return mask

    def _member(self, name: str) -> int:
        index = self._index.get(name)
        if index is None:
            raise UsageError(f"{name!r} is not a member of this group{suggest(name, self._index)}")
        return index


async def _until(is_so: Callable[[], bool], deadline: float) -> None:
    """Poll a condition that has no notification, until a deadline."""
    time = asyncio.get_running_loop().time
    while not is_so() and time() < deadline:
        await asyncio.sleep(0.005)


def _complaint(stack: Stack, batch: Batch) -> Concurrent:
    """The error that ends the iteration at a concurrent message, with both messages."""
    member, _, seq = batch.concurrent_with[0]
    packet = stack.recall(member, seq)
    other = None
    if packet is not None and packet.view == batch.view:  # in another view other packets have these numbers
        if packet.payloads is None:  # our own, as it was sent
            packet.payloads = split(packet.body)
        other = Batch(stack.view.names[member], packet)
    return Concurrent(f"{batch!r} is concurrent with {batch.concurrent_with}", batch, other)


_JUST_BYTES = {bytes}


def _immutable(data: Any) -> bytes:
    """The message as bytes, which cannot change after it is sent."""
    if type(data) is bytes:
        return data
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    raise UsageError(f"a message is bytes, not {type(data).__name__}; encode text first")
