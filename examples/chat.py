"""A chat in thirty lines. In three terminals of one machine:

    python examples/chat.py alice alice bob cathy
    python examples/chat.py bob alice bob cathy
    python examples/chat.py cathy alice bob cathy

First who you are, then everybody. Ctrl-D leaves. INGA_VIA names another place to meet than loopback.
`inga chat` is the same for daily use.
"""

import asyncio
import os
import sys

import inga

VIA = os.environ.get("INGA_VIA", "udp://239.7.7.7:7400?interface=lo")


async def show(group: inga.Group) -> None:
    async for d in group:
        text = "".join(filter(str.isprintable, bytes(d.data).decode(errors="replace")))
        print(f"{d.sender}{' (at the same time)' if d.concurrent else ''}: {text}", flush=True)


async def main(name: str, *members: str) -> None:
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async with inga.join("chat", name, members=members, via=VIA) as group:
        group.on_join(lambda who: print(f"* {who} is here", flush=True))
        group.on_leave(lambda who: print(f"* {who} has left", flush=True))
        listener = asyncio.create_task(show(group))
        async for line in lines:
            await group.send(line.rstrip(b"\n"))
        listener.cancel()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
