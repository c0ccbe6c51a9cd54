"""What the application reads: deliveries and views in their order, by one iteration at a time."""

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
"""Batches an iteration yields before others in the loop get a turn."""

T = TypeVar("T")


class Passing(Protocol):
    """Lets the iteration wait at views, and go on."""

    def follow(self, items: Iterable[Batch | View | Incident]) -> None: ...

    def waits_at(self, view: View) -> bool: ...

    def is_clear(self, view: View) -> bool: ...

    async def attend(self, view: View) -> None: ...


class Reading:
    """The queue between the driver and the application."""

    def __init__(self, first: View, take: Callable[[Batch], None], reach: Callable[[View], None]) -> None:
        """`take` is called as the application begins a packet, `reach` as it comes to a view."""
        self.queue: deque[Batch | View | Incident] = deque([first])
        self.reader: asyncio.Future[None] | None = None  # an iteration waits for it
        self.error: BaseException | None = None  # raised when everything before it is read
        self.stop: BaseException | None = None  # what ended the iteration for good
        self.closed = False
        self.states: Passing | None = None  # who has a say at views
        self._take = take
        self._reach = reach
        self._iteration: weakref.ref[AsyncGenerator[Any, None]] | None = None  # the one there is
        self._rest: Iterator[Delivery] = iter(())  # of the packet it is at

    def add(self, items: Iterable[Batch | View | Incident]) -> None:
        self.queue.extend(items)
        self.wake()

    def wake(self) -> None:
        """Let the iteration look again."""
        reader = self.reader
        if reader is not None:
            self.reader = None
            if not reader.done():
                reader.set_result(None)

    def claim(self, iteration: AsyncGenerator[T, None]) -> AsyncIterator[T]:
        """One at a time. Who broke out of a loop has let go of its iteration, and the next one goes on
        where it stopped, within a packet too."""
        other = None if self._iteration is None else self._iteration()
        if getattr(other, "ag_frame", None) is not None:  # alive, and not at its end
            raise UsageError("this group is being iterated already; there is one iterator per group")
        self._iteration = weakref.ref(iteration)
        return iteration

    def skip_to(self, view: View) -> None:
        """What was delivered before this view is part of a state that the application takes."""
        while (item := self.queue[0]) is not view:
            self.queue.popleft()
            if isinstance(item, Batch):
                self._take(item)

    def insert(self, batches: Sequence[Batch]) -> None:
        """These come next, after the view at which the iteration is."""
        view = self.queue.popleft()
        self.queue.extendleft(reversed(batches))
        self.queue.appendleft(view)

    async def deliveries(self) -> AsyncGenerator[Delivery, None]:
        for delivery in self._rest:
            yield delivery
        async for item in self._items():
            if isinstance(item, Batch):
                self._rest = map(Delivery, repeat(item), range(len(item.payloads)))
                for delivery in self._rest:
                    yield delivery

    async def deliveries_and_views(self) -> AsyncGenerator[Delivery | View | Incident, None]:
        for delivery in self._rest:
            yield delivery
        async for item in self._items():
            if not isinstance(item, Batch):
                yield item
                continue
            self._rest = map(Delivery, repeat(item), range(len(item.payloads)))
            for delivery in self._rest:
                yield delivery

    async def batches(self) -> AsyncGenerator[Batch, None]:
        rest = list(self._rest)
        if rest:
            batch = Batch(rest[0].sender, rest[0].batch.packet)
            batch.payloads = [delivery.data for delivery in rest]
            yield batch
        async for item in self._items():
            if isinstance(item, Batch):
                yield item

    async def _items(self) -> AsyncGenerator[Batch | View | Incident, None]:
        queue = self.queue
        polite = POLITE
        while True:
            if self.stop is not None:
                raise self.stop
            head = queue[0] if queue else None
            is_waiting = self.states is not None and isinstance(head, View) and self.states.waits_at(head)
            if head is None or is_waiting:
                if self.error is not None:
                    raise self.error
                if self.closed:
                    return
                reader = self.reader = asyncio.get_running_loop().create_future()
                try:
                    await reader
                finally:
                    if self.reader is reader:  # nobody woke us
                        self.reader = None
                polite = POLITE
                continue
            polite -= 1
            if not polite:
                polite = POLITE
                await asyncio.sleep(0)
                continue
            if self.states is not None and isinstance(head, View) and not self.states.is_clear(head):
                await self.states.attend(head)
                continue
            item = queue.popleft()
            if isinstance(item, Batch) and not item.replayed:
                self._take(item)
            elif isinstance(item, View):
                self._reach(item)
            yield item
