"""A counter that everybody has a copy of: additions go on at once, and whoever looks sees the same number.

    python examples/hits.py [ADDITIONS]

`inc` is declared compatible with `inc`: additions of different members are not ordered against each other, so none
of them waits. `show` conflicts with `inc`, so all copies run it after the same additions, and give the same answer.
"""

import asyncio
import os
import sys
from typing import Any

import inga
from inga.obg import ObjectClass, method

NAMES = ("alice", "bob", "cathy")
VIA = os.environ.get("INGA_VIA", "udp://239.7.7.7:7400?interface=lo")


class Counter(ObjectClass):
    def initial(self) -> int:
        return 0

    @method(compatible=("inc", "dec"), undo="dec")
    async def inc(self, ctx: Any, k: int = 1) -> None:
        ctx.effect(lambda s: s + k)

    @method(compatible=("inc", "dec"), undo="inc")
    async def dec(self, ctx: Any, k: int = 1) -> None:
        ctx.effect(lambda s: s - k)

    @method(compatible=("show",), identity=True)
    async def show(self, ctx: Any) -> int:
        return int(self.state)


async def visit(name: str, additions: int) -> list[str]:
    """One member: add, and look while the others are still adding."""
    async with inga.join(
        "hits", name, members=NAMES, via=VIA, order="object", objects={"hits": Counter}
    ) as group:
        await group.ready()
        counter = group.proxy(Counter, "hits", answers="all")
        for _ in range(additions):
            await counter.inc()
        copies = await counter.show()
        assert len(set(copies)) == 1, "copies look at the same moment, whatever is under way"
        await group.send(b"done")
        done = 0
        async for _ in group:  # our own comes back too, at its place
            done += 1
            if done == len(NAMES):
                break
        return [f"{name}: {each}" for each in set(await counter.show())]


async def main(additions: int) -> None:
    for lines in await asyncio.gather(*(visit(name, additions) for name in NAMES)):
        print(*lines, sep="\n")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20))
