"""A shared to-do list that survives kills. In several terminals of one machine:

    python examples/todo.py alice
    python examples/todo.py bob

Type `milk` to add a line, `-milk` to strike it out. Kill any of them with `kill -9`, start it again: it has the list, from
the others. Everybody has the same list, since `total` is one order for all. The list is gone when the last member is.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator

import inga

VIA = os.environ.get("INGA_VIA", "udp://239.7.7.7:7400?interface=lo")


class Todo:
    """The state of which every member has a copy."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def apply(self, text: str) -> None:
        if not text.startswith("-"):
            self.lines.append(text)
        elif text[1:] in self.lines:
            self.lines.remove(text[1:])

    def give(self) -> Iterator[bytes]:
        """Asked of one member when somebody joins, at the place of its view in the order."""
        yield json.dumps(self.lines).encode()

    async def take(self, chunks: AsyncIterator[bytes]) -> None:
        """At the newcomer, before its first message."""
        self.lines = json.loads(b"".join([chunk async for chunk in chunks]))


async def follow(group: inga.Group, todo: Todo) -> None:
    async for item in group.items():
        if isinstance(item, inga.View):
            print(f"* {', '.join(sorted(item.names))}", flush=True)
        elif isinstance(item, inga.Delivery):
            todo.apply(bytes(item.data).decode())
        print(f"  {'; '.join(todo.lines) or '(nothing to do)'}", flush=True)


async def main(name: str) -> None:
    todo, typed = Todo(), asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(typed), sys.stdin)
    # partition="all": the last one that is left may go on alone, which a bank should not.
    hooks = {"on_state_request": todo.give, "on_state": todo.take}
    async with inga.join(
        "todo", name, via=VIA, order="total", echo=True, detect=1.0, partition="all", **hooks
    ) as group:
        following = asyncio.create_task(follow(group, todo))
        async for line in typed:
            await group.send(line.strip())
        following.cancel()


if __name__ == "__main__":
    inga.run(main(sys.argv[1]))
