"""A receipt one can await."""

import asyncio
from typing import ClassVar

from inga.model.errors import UsageError
from inga.model.receipt import LEVELS, Receipt


class LiveReceipt(Receipt):
    """What `Group.send` returns: how far the message got, to be awaited."""

    __slots__ = ()
    # of one group under one order: `Receipts` makes a class for each
    levels: ClassVar[tuple[str, ...]] = ()  # those the order can reach
    waiting: ClassVar[set[asyncio.Future[None]]] = set()
    ended: ClassVar[str] = ""  # why nothing more will be reached

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
            self.forget(level, tell)  # else one who looks again and again leaves something each time

    @classmethod
    def end(cls, why: str, told: str) -> None:
        """Nothing more will be reached: those who wait are told."""
        cls.ended = why
        for future in cls.waiting:
            if not future.done():
                future.set_exception(UsageError(told))


class Receipts:
    """Makes the receipts of one group: the stack is given this once, whatever becomes of the member and the order."""

    def __init__(self) -> None:
        self.kind = _kind()

    def __call__(self) -> LiveReceipt:
        return self.kind()

    def renew(self, why: str) -> type[LiveReceipt]:
        """What is sent from now on has receipts of another kind; those there are reach nothing more, and why."""
        before, self.kind = self.kind, _kind()
        before.end(why, f"whether it got there will not be known: {why}")
        return self.kind


def _kind() -> type[LiveReceipt]:
    """A class of receipts that know the levels of one group, and who waits for them."""
    return type("GroupReceipt", (LiveReceipt,), {"__slots__": (), "waiting": set()})
