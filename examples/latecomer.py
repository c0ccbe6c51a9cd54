"""A shared table that changes all the time, and somebody who joins late: dave ends with the same table as all.

    python examples/latecomer.py [CHANGES]

Under `total` everybody makes the same changes in the same order. Who joins gets the table as it was at one point of
that order, from one of the others (`on_state_request`, `on_state`), and then all changes after that point.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator

import inga

NAMES = ("alice", "bob", "cathy")
VIA = os.environ.get("INGA_VIA", "udp://239.7.7.7:7400?interface=lo")


class Table:
    """Rows by number; who wrote a row last."""

    def __init__(self) -> None:
        self.rows: dict[str, str] = {}
        self.changes = 0

    def give(self) -> Iterator[bytes]:
        """For one who joins: called when we have made all changes before it came, and none after."""
        yield json.dumps([self.changes, self.rows]).encode()

    async def take(self, chunks: AsyncIterator[bytes]) -> None:
        """We have joined: begin where the others are."""
        self.changes, self.rows = json.loads(b"".join([chunk async for chunk in chunks]))

    async def follow(self, group: inga.Group, changes: int) -> None:
        async for item in group.items():
            if isinstance(item, inga.Delivery):
                self.rows[bytes(item.data).decode()] = item.sender
                self.changes += 1
            if self.changes == changes:
                break


async def member(name: str, changes: int, end: asyncio.Barrier, *, late: bool) -> Table:
    table = Table()
    hooks = {"on_state_request": table.give, "on_state": table.take}
    async with inga.join("table", name, members=NAMES, via=VIA, order="total", late=late, **hooks) as group:
        following = asyncio.create_task(table.follow(group, changes * len(NAMES)))
        await group.ready()
        if not late:
            for number in range(changes):
                await group.send(str(number % 7).encode())
                await asyncio.sleep(0.001)
        await following
        await end.wait()  # nobody leaves before dave has come, and has everything
    return table


async def main(changes: int) -> None:
    end = asyncio.Barrier(len(NAMES) + 1)
    founders = [asyncio.create_task(member(name, changes, end, late=False)) for name in NAMES]
    await asyncio.sleep(0.2)  # they are busy by now
    tables = [await member("dave", changes, end, late=True), *await asyncio.gather(*founders)]
    for name, table in zip(("dave", *NAMES), tables, strict=True):
        print(f"{name}: {table.changes} changes")
    assert all(table.rows == tables[0].rows for table in tables)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
