"""State for newcomers, live: the state that an application gives to a newcomer, and gets when it joins itself.

A state is drawn from the application when its iteration reaches the view with the newcomer, before it goes on. The newcomer
stores it as it arrives, in memory or a temporary file, and gives it to its application when it is complete:
no application sees half a state.
"""

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import aclosing, suppress
from tempfile import SpooledTemporaryFile
from typing import Any, NamedTuple, cast

from inga.model.delivery import Batch
from inga.model.errors import UsageError, WireError
from inga.model.event import Incident
from inga.model.packet import Buffer
from inga.model.view import View
from inga.net.log import report
from inga.net.options import GiveState, JoinOptions, TakeState
from inga.net.reading import Reading
from inga.recipes import find
from inga.session.history import KIND, LastMessages
from inga.session.session import Session
from inga.session.transfer import IncomingState, OutgoingState
from inga.stack.stack import Stack

SPOOL = 1 << 20
"""The most octets of a state that are kept in memory; a larger state goes to a temporary file."""

CHUNK = 64 * 1024
"""Octets in each chunk that an application gets."""


class StateHooks(NamedTuple):
    """The options of `inga.join` about states."""

    give: GiveState | None
    take: TakeState | None
    history: int | float | None
    echo: bool | None

    @classmethod
    def of(cls, said: JoinOptions) -> "StateHooks":
        return cls(said["on_state_request"], said["on_state"], said["history"], said["echo"])

    @property
    def gives(self) -> str:
        """The kind of state that others can get from us."""
        return KIND if self.history is not None else "state" if self.give is not None else ""

    @property
    def wants(self) -> str:
        """The kind of state that we take when we join."""
        return KIND if self.history is not None else "state" if self.take is not None else ""


class States:
    """The link between the session, which transfers states, and the application's iteration, which waits for them."""

    def __init__(
        self, hooks: StateHooks, stack: Stack, reading: Reading, schedule: Callable[[], None]
    ) -> None:
        """`schedule` has the stack's output sent at the end of this turn."""
        self._hooks = hooks
        self._stack = stack
        self._reading = reading
        self._schedule = schedule
        reading.states = self
        self._transfer = cast(Session, stack.layer("session")).transfer
        last = hooks.history
        self._history = None if last is None else LastMessages(last, stack.view, self._transfer)
        self._incoming: IncomingState | None = None
        self._spool: SpooledTemporaryFile[bytes] | None = None  # the part of it that has arrived
        self._task: asyncio.Task[None] | None = None  # in which the application gives states, or takes one
        self._waiter: asyncio.Future[None] | None = None  # done when more of a state may be requested
        self._closed = False

    # What the driver does

    def follow(self, items: Iterable[Batch | View | Incident]) -> None:
        """These items were delivered. Store newly arrived parts of a state, and go on drawing states that are requested."""
        if self._history is not None:
            self._history.follow(items, self._stack.now)
            if self._stack.has_output:
                self._schedule()
        incoming = self._transfer.incoming
        if incoming is not None and (incoming.pieces or incoming is not self._incoming):
            self._put_by(incoming)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        if self._transfer.stop_at is not None and not self._transfer.lacks:
            self._reading.wake()

    def sent(self, payloads: Iterable[Buffer]) -> None:
        """The application has sent messages to all members: keep them in the history, unless they are delivered to us, too."""
        stack = self._stack
        if self._history is not None and not find(stack.view.recipe).echoes(self._hooks.echo):
            self._history.sent(stack.member.name, stack.me, stack.view.number, payloads, stack.now)

    def close(self) -> None:
        """The group has ended."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
        self._forget()

    # What the iteration does

    def is_clear(self, view: View) -> bool:
        """Whether the iteration, which has reached this view, can go on."""
        transfer = self._transfer
        if self._closed and not transfer.waits_at(view):
            return True
        return self._task is None and view is not transfer.stop_at and not transfer.due(view)

    def waits_at(self, view: View) -> bool:
        """Whether the iteration has to wait at this view for a state to arrive."""
        return self._transfer.waits_at(view)

    async def attend(self, view: View) -> None:
        """The iteration is at this view: give and take the states that are due. If the iteration is cancelled, the
        transfer goes on."""
        if self._task is None:
            if view is self._transfer.stop_at:
                self._task = self._take_over()
            else:
                self._task = asyncio.create_task(self._give(view))
        task = self._task
        if task is not None:
            await asyncio.wait({task})
            self._task = None
            with suppress(asyncio.CancelledError):
                task.result()

    # As a newcomer

    def _put_by(self, incoming: IncomingState) -> None:
        if incoming is not self._incoming:
            self._forget()
            self._incoming = incoming
            self._spool = SpooledTemporaryFile(SPOOL)  # noqa: SIM115  # closed when it is taken or dropped
        assert self._spool is not None
        try:
            self._spool.writelines(incoming.taken())
        except OSError as error:
            self._stack.fail(UsageError(f"no room for the state of the group: {error}"))
            self._schedule()

    def _forget(self) -> None:
        if self._spool is not None:
            self._spool.close()
        self._spool = self._incoming = None

    def _take_over(self) -> "asyncio.Task[None] | None":
        """Our state has arrived, or there is none: let the application take it before it reads what follows the cut."""
        incoming = self._transfer.pass_stop()
        if incoming is None:
            self._forget()
            return None
        self._put_by(incoming)  # its end may have arrived in this turn, before the call of `follow`
        self._reading.skip_to(incoming.cut)
        spool, self._spool = self._spool, None
        assert spool is not None
        spool.seek(0)
        if self._history is None:
            return asyncio.create_task(self._hand_to_application(spool))
        with spool:
            try:
                self._reading.insert(self._history.restore(spool.read(), self._stack.now))
            except WireError as error:
                report("history.unreadable", "what was said before we joined cannot be read: %s", error)
        return None

    async def _hand_to_application(self, spool: "SpooledTemporaryFile[bytes]") -> None:
        assert self._hooks.take is not None
        with spool:
            try:
                taken = self._hooks.take(_chunks(spool))
                if inspect.isawaitable(taken):
                    await taken
            except asyncio.CancelledError:
                if _is_cancelled():
                    raise
                self._reading.stop = UsageError(
                    "on_state was cancelled before it had taken the state: let nothing cancel what it awaits"
                )
                raise self._reading.stop from None
            except Exception as error:
                self._reading.stop = error
                raise

    # As the giver

    async def _give(self, view: View) -> None:
        await asyncio.gather(*(self._draw(outgoing) for outgoing in self._transfer.due(view)))

    async def _draw(self, outgoing: OutgoingState) -> None:
        """Draw a state from the application, as the newcomer requests it."""
        transfer, time = self._transfer, asyncio.get_running_loop().time
        try:
            async with aclosing(_chunks_of(self._hooks.give)) as source:
                while outgoing.is_open:
                    if not outgoing.is_hungry:
                        await self._until_asked()
                        continue
                    chunk = await anext(source, None)
                    self._stack.advance(time())
                    if chunk is None:
                        transfer.end(outgoing)
                    else:
                        transfer.put(outgoing, _checked(chunk))
                    self._schedule()
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                raise
            report("state.failed", "the application could not give its state to one that joins", error=error)
            self._stack.advance(time())
            transfer.refuse(outgoing, f"{type(error).__name__}: {error}")
            self._schedule()

    async def _until_asked(self) -> None:
        if self._waiter is None or self._waiter.done():
            self._waiter = asyncio.get_running_loop().create_future()
        await asyncio.wait({self._waiter})


def _is_cancelled() -> bool:
    """Whether this task was cancelled, and not only something that the application awaits in it."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _chunks(spool: "SpooledTemporaryFile[bytes]") -> AsyncIterator[bytes]:
    while data := spool.read(CHUNK):
        yield data


async def _chunks_of(give: GiveState | None) -> AsyncGenerator[Any, None]:
    """The chunks of a state from the application: bytes, an iterator, an asynchronous one, or an awaitable that returns one of these."""
    assert give is not None
    given: Any = give()
    if inspect.isawaitable(given):
        given = await given
    if isinstance(given, bytes | bytearray | memoryview):
        given = [given]
    if hasattr(given, "aclose"):
        async with aclosing(given):
            async for chunk in given:
                yield chunk
    elif hasattr(given, "__aiter__"):
        async for chunk in given:
            yield chunk
    elif isinstance(given, Iterable):
        for chunk in given:
            yield chunk
    else:
        raise UsageError(f"on_state_request gives bytes, or an iterator of bytes, not {type(given).__name__}")


def _checked(chunk: Any) -> bytes:
    if not isinstance(chunk, bytes | bytearray | memoryview):
        raise UsageError(f"a state is made of bytes, not of {type(chunk).__name__}")
    return bytes(chunk)
