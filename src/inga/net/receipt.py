"""A receipt one can await."""

import asyncio
from typing import ClassVar

from inga.model.errors import UsageError
from inga.model.receipt import LEVELS, Receipt


class LiveReceipt(Receipt):
    """What `Group.send` returns."""

    __slots__ = ()
    levels: ClassVar[tuple[str, ...]] = ()  # those the recipe can reach

    async def reached(self, level: str) -> None:
        """Wait until the message got so far."""
        if level not in self.levels:
            known = ", ".join(self.levels) or "none"
            what = "a level of this group's order" if level in LEVELS else "a level"
            raise UsageError(f"{level!r} is not {what}; a receipt here can reach: {known}")
        if self.has(level):
            return
        future = asyncio.get_running_loop().create_future()
        self.when(level, lambda: None if future.done() else future.set_result(None))
        await future
