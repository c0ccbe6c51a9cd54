"""A receipt that can be awaited."""

import asyncio
from typing import ClassVar

from inga.model.errors import UsageError
from inga.model.receipt import LEVELS, Receipt


class LiveReceipt(Receipt):
    """What `Group.send` returns: how far the message got, to be awaited."""

    __slots__ = ()
    # These belong to one group under one order: `Receipts` makes a class for each.
    levels: ClassVar[tuple[str, ...]] = ()  # the levels that the order can reach
    waiting: ClassVar[set[asyncio.Future[None]]] = set()
    ended: ClassVar[str] = ""  # why no further level will be reached

    async def reached(self, level: str) -> None:
        """Wait until the message has reached this level. `confirmed`: every destination has it."""
        if self.has(level):
            return
        if level not in self.levels:
            known = ", ".join(self.levels) or "none"
            what = "a level of this group's order" if level in LEVELS else "a level"
            raise UsageError(f"{level!r} is not {what}; a receipt here can reach: {known}")
        if self.ended:
            raise UsageError(f"whether it was {level} will not be known: {self.ended}")
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def tell() -> None:
            if not future.done():
                future.set_result(None)

        self.when(level, tell)
        self.waiting.add(future)
        try:
            await future
        finally:
            self.waiting.discard(future)
            self.forget(level, tell)  # so that repeated waits with a timeout leave nothing behind

    @classmethod
    def end(cls, why: str, told: str) -> None:
        """No further level will be reached, for the reason `why`: raise UsageError, with the text `told`, in all tasks that wait."""
        cls.ended = why
        for future in cls.waiting:
            if not future.done():
                future.set_exception(UsageError(told))


class Receipts:
    """Makes the receipts of one group. The stack gets this object once; it stays when the member or the order changes."""

    def __init__(self) -> None:
        self.kind = _kind()

    def __call__(self) -> LiveReceipt:
        return self.kind()

    def renew(self, why: str) -> type[LiveReceipt]:
        """Make receipts of a new class from now on; those made before reach no further level, for the reason `why`."""
        before, self.kind = self.kind, _kind()
        before.end(why, f"whether it got there will not be known: {why}")
        return self.kind


def _kind() -> type[LiveReceipt]:
    """A class of receipts with levels and waiting tasks of its own."""
    return type("GroupReceipt", (LiveReceipt,), {"__slots__": (), "waiting": set()})
