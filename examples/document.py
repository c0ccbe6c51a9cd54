"""A shared document: edits of different places go on at once, edits of the same place are in one order everywhere.

    python examples/document.py

Two edits conflict if their ranges of lines overlap: `conflict_if` looks at the arguments. Everybody edits a part of
its own, and all edit the title; in the end all copies are the same, title included.
"""

import asyncio
import os
from typing import Any

import inga
from inga.obg import Call, ObjectClass, method

NAMES = ("alice", "bob", "cathy")
VIA = os.environ.get("INGA_VIA", "udp://239.7.7.7:7400?interface=lo")
LINES = 13


def overlap(mine: Call, other: Call) -> bool:
    """Both are about lines first to last."""
    return bool(mine.args[0] <= other.args[1] and other.args[0] <= mine.args[1])


class Document(ObjectClass):
    def initial(self) -> list[str]:
        return [""] * LINES

    @method(conflict_if=overlap)
    async def edit(self, ctx: Any, first: int, last: int, text: str) -> None:
        ctx.effect(lambda s: [*s[:first], *([text] * (last + 1 - first)), *s[last + 1 :]])

    @method(conflict_if=overlap)
    async def upper(self, ctx: Any, first: int, last: int) -> None:
        ctx.effect(lambda s: [*s[:first], *(line.upper() for line in s[first : last + 1]), *s[last + 1 :]])

    @method(compatible=("render",), identity=True)
    async def render(self, ctx: Any) -> list[str]:
        return list(self.state)


async def write(name: str) -> list[list[str]]:
    """One author: the own part line by line, and the title now and then."""
    async with inga.join(
        "document", name, members=NAMES, via=VIA, order="object", objects={"text": Document}
    ) as group:
        await group.ready()
        text = group.proxy(Document, "text", answers="all")
        first = 1 + 4 * NAMES.index(name)
        for line in range(first, first + 4):
            await text.edit(line, line, f"{name} {line}")
            await text.edit(0, 0, f"by {name}")
        await text.upper(first, first + 1)
        await group.send(b"written")
        written = 0
        async for _ in group:
            written += 1
            if written == len(NAMES):
                break
        return list(await text.render())


async def main() -> None:
    copies = [copy for seen in await asyncio.gather(*map(write, NAMES)) for copy in seen]
    assert all(copy == copies[0] for copy in copies), "every copy, seen by everybody"
    print("the title is by one of them:", copies[0][0] in {f"by {name}" for name in NAMES})
    print(*copies[0][1:], sep="\n")


if __name__ == "__main__":
    asyncio.run(main())
