"""The application's side of delivery: deliveries and views in their order, read by one iteration at a time."""

import asyncio
import weakref
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, Protocol, TypeVar

from inga.model.delivery import Batch, Delivery
from inga.model.errors import UsageError
from inga.model.event import Incident
from inga.model.view import View

POLITE = 16
"""Batches that an iteration yields before other tasks of the event loop run."""

T = TypeVar("T")


class Passing(Protocol):
    """Decides whether the iteration waits at a view: `states.States`."""

    def follow(self, items: Iterable[Batch | View | Incident]) -> None: ...

    def waits_at(self, view: View) -> bool: ...

    def is_clear(self, view: View) -> bool: ...

    async def attend(self, view: View) -> None: ...


class Reading:
    """The queue between the driver and the application."""

    def __init__(self, first: View, take: Callable[[Batch], None], reach: Callable[[View], None]) -> None:
        """`take` is called when the application begins to process a packet, `reach` when it reaches a view."""
        self.queue: deque[Batch | View | Incident] = deque([first])
        self.reader: asyncio.Future[None] | None = None  # the future that a waiting iteration awaits
        self.error: BaseException | None = None  # raised when everything before it is read
        self.stop: BaseException | None = None  # the error that ended the iteration for good
        self.closed = False
        self.states: Passing | None = None  # may make the iteration wait at views
        self._take = take
        self._reach = reach
        self._iteration: weakref.ref[AsyncGenerator[Any, None]] | None = None  # the one in use
        self._rest: Iterator[Delivery] = iter(())  # of the packet that is being read
        self._polite = POLITE  # batches that it may yield before other tasks run
        self._loop = asyncio.get_running_loop()

    def add(self, items: Iterable[Batch | View | Incident]) -> None:
        self.queue.extend(items)
        self.wake()

    def wake(self) -> None:
        """Wake the iteration, so that it checks the queue again."""
        reader = self.reader
        if reader is not None:
            self.reader = None
            if not reader.done():
                reader.set_result(None)

    def claim(self, iteration: AsyncGenerator[T, None]) -> AsyncIterator[T]:
        """Register an iteration, and refuse a second one at a time. A loop that ended by `break` has released its iteration, and the
        next one goes on where it stopped, also within a packet."""
        other = None if self._iteration is None else self._iteration()
        if getattr(other, "ag_frame", None) is not None:  # alive, and not at its end
            raise UsageError("this group is being iterated already; there is one iterator per group")
        self._iteration = weakref.ref(iteration)
        return iteration

    def skip_to(self, view: View) -> None:
        """Drop all that was delivered before this view, as if it were taken: it is part of a state that the application takes."""
        while (item := self.queue[0]) is not view:
            self.queue.popleft()
            if isinstance(item, Batch):
                self._take(item)

    def insert(self, batches: Sequence[Batch]) -> None:
        """Insert batches behind the view at which the iteration is."""
        view = self.queue.popleft()
        self.queue.extendleft(reversed(batches))
        self.queue.appendleft(view)

    async def deliveries(self) -> AsyncGenerator[Delivery, None]:
        for delivery in self._rest:
            yield delivery
        while (item := self._next()) is not None or await self._more():
            if isinstance(item, Batch):
                self._rest = map(Delivery, repeat(item), range(len(item.payloads)))
                for delivery in self._rest:
                    yield delivery

    async def deliveries_and_views(self) -> AsyncGenerator[Delivery | View | Incident, None]:
        for delivery in self._rest:
            yield delivery
        while (item := self._next()) is not None or await self._more():
            if isinstance(item, Batch):
                self._rest = map(Delivery, repeat(item), range(len(item.payloads)))
                for delivery in self._rest:
                    yield delivery
            elif item is not None:
                yield item

    async def batches(self) -> AsyncGenerator[Batch, None]:
        rest = list(self._rest)
        if rest:
            batch = Batch(rest[0].sender, rest[0].batch.packet)
            batch.payloads = [delivery.data for delivery in rest]
            yield batch
        while (item := self._next()) is not None or await self._more():
            if isinstance(item, Batch):
                yield item

    def _next(self) -> Batch | View | Incident | None:
        """The item that the application begins now; None: the iteration has to wait first."""
        if self.stop is not None:
            raise self.stop
        if not self.queue or not self._polite:
            return None
        item = self.queue[0]
        if isinstance(item, View) and self.states is not None:
            passes = self.states.is_clear(item) and not self.states.waits_at(item)
            if not passes:
                return None
        self._polite -= 1
        self.queue.popleft()
        if isinstance(item, Batch):
            if not item.replayed:
                self._take(item)
        elif isinstance(item, View):
            self._reach(item)
        return item

    async def _more(self) -> bool:
        """Wait until the iteration may check the queue again; False: no item will follow."""
        head = self.queue[0] if self.queue else None
        states = self.states
        if head is None or (states is not None and isinstance(head, View) and states.waits_at(head)):
            if self.error is not None:
                raise self.error
            if self.closed:
                return False
            reader = self.reader = self._loop.create_future()
            try:
                await reader
            finally:
                if self.reader is reader:  # the wait was cancelled
                    self.reader = None
            self._polite = POLITE
        elif not self._polite:
            self._polite = POLITE
            await asyncio.sleep(0)
        elif states is not None and isinstance(head, View):
            await states.attend(head)
        return True
