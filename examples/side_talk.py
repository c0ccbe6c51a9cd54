"""A chat with side conversations: `@bob @cathy not a word to Dave` goes to Bob and Cathy, and to nobody else.

    python examples/side_talk.py alice alice bob cathy dave      and so on, one terminal each

Others are not sent it, and yet all that anybody sees is in causal order: who hears of something in a side
conversation never hears the answer before the question, whatever was said to whom.
"""

import asyncio
import os
import sys

import inga

VIA = os.environ.get("INGA_VIA", "udp://239.7.7.7:7400?interface=lo")


def addressed(line: str) -> tuple[list[str], str]:
    """The names in front of a line, and the rest."""
    words = line.split()
    count = next((at for at, word in enumerate(words) if not word.startswith("@")), len(words))
    return [word[1:] for word in words[:count]], " ".join(words[count:])


async def talk(group: inga.Group) -> None:
    """Send what is typed, until the end of the input."""
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    while line := await reader.readline():
        to, text = addressed(line.decode())
        strangers = [name for name in to if name not in group.view.names]
        if strangers:
            print(f"* nobody here is called {', '.join(strangers)}", flush=True)
        elif text:
            await group.send(f"{' '.join(to)}|{text}".encode(), to=to or None)


async def listen(group: inga.Group) -> None:
    async for delivery in group:
        said = "".join(filter(str.isprintable, bytes(delivery.data).decode(errors="replace")))
        to, _, text = said.partition("|")
        aside = f" (to {', '.join(to.split())})" if to else ""
        print(f"{delivery.sender}{aside}: {text}", flush=True)


async def main(name: str, members: list[str]) -> None:
    async with inga.join("side-talk", name, members=members, via=VIA, order="sco", deliver="causal") as group:
        await group.ready()
        print("* everybody is here", flush=True)
        listening = asyncio.create_task(listen(group))
        await talk(group)
        listening.cancel()


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in sys.argv[2:]:
        sys.exit("usage: side_talk.py NAME MEMBER MEMBER ...   (NAME is one of them)")
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
