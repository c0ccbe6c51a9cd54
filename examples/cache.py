"""A replicated cache: every member reads its own copy at once, and writes reach all copies in one order.

    python examples/cache.py [WRITES]

`Cache` is what to copy. Three members write the same keys at the same time; at the end all copies are equal. `put` returns when this
member's own copy has the value, so it reads what it wrote; who does not need that does not await it.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import inga

NAMES = ("alice", "bob", "cathy")
VIA = os.environ.get("INGA_VIA", "udp://239.7.7.7:7400?interface=lo")


class Cache:
    """Values by key, the same at all members."""

    def __init__(self) -> None:
        self.values: dict[str, object] = {}
        self._written: dict[int, asyncio.Future[None]] = {}  # our own writes that are under way
        self._writes = 0
        self._group: inga.Group | None = None

    def get(self, key: str) -> object:
        return self.values.get(key)

    async def put(self, key: str, value: object) -> None:
        assert self._group is not None, "use it inside of `async with cache.joined(...)`"
        self._writes = number = self._writes + 1
        self._written[number] = asyncio.get_running_loop().create_future()
        written = self._written[number]
        await self._group.send(json.dumps([number, key, value]).encode())
        await written

    @asynccontextmanager
    async def joined(self, name: str) -> AsyncIterator[inga.Group]:
        hooks = {"on_state_request": self._give, "on_state": self._take}
        async with inga.join(
            "cache", name, members=NAMES, via=VIA, order="total", echo=True, **hooks
        ) as self._group:
            following = asyncio.create_task(self._follow(self._group))
            await self._group.ready()
            yield self._group
            following.cancel()

    async def _follow(self, group: inga.Group) -> None:
        async for message in group:
            number, key, value = json.loads(bytes(message.data))
            self.values[key] = value
            if message.sender == group.me:
                self._written.pop(number).set_result(None)

    def _give(self) -> Iterator[bytes]:
        yield json.dumps(self.values).encode()

    async def _take(self, chunks: AsyncIterator[bytes]) -> None:
        self.values = json.loads(b"".join([chunk async for chunk in chunks]))


async def member(name: str, writes: int, end: asyncio.Barrier) -> Cache:
    cache = Cache()
    async with cache.joined(name):
        for number in range(writes):
            await cache.put(f"key{number % 5}", f"{name} {number}")
            assert cache.get(f"key{number % 5}") is not None
        await cache.put(name, "done")
        while not all(map(cache.get, NAMES)):  # until the others are done, too
            await asyncio.sleep(0.01)
        await end.wait()
    return cache


async def main(writes: int) -> None:
    end = asyncio.Barrier(len(NAMES))
    caches = await asyncio.gather(*(member(name, writes, end) for name in NAMES))
    same = all(cache.values == caches[0].values for cache in caches)
    print(
        f"{len(NAMES) * writes} writes of {len(NAMES)} members: copies are {'equal' if same else 'different'}"
    )


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 50))
