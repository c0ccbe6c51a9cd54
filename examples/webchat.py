"""A chat in the browser: each gateway is a member of the group, and serves a page to people who are not.

    python examples/webchat.py alice 8001          # then open http://127.0.0.1:8001
    python examples/webchat.py bob 8002            # on this machine, or on another one of the network

Only the standard library: messages go up by POST, and down as server-sent events, in the order in which the member delivers them.
"""

import asyncio
import json
import os
import sys

import inga

VIA = os.environ.get("INGA_VIA", "udp://239.7.7.7:7400?interface=lo")
BODY_MAX = 4096
PAGE = """<!doctype html><meta charset="utf-8"><title>chat</title>
<ul id="said"></ul><form id="form"><input id="text" autofocus autocomplete="off"><button>say</button></form>
<script>
  new EventSource("/events").onmessage = (event) => {
    const line = document.createElement("li"), {sender, text} = JSON.parse(event.data);
    line.textContent = `${sender}: ${text}`;            // never innerHTML: others wrote it
    said.append(line);
  };
  form.onsubmit = (event) => {
    event.preventDefault();
    fetch("/say", {method: "POST", body: text.value});
    text.value = "";
  };
</script>"""


class Gateway:
    """One member, and the browsers that listen through it."""

    def __init__(self, group: inga.Group) -> None:
        self.group = group
        self.said: list[bytes] = []  # as events
        self.more = asyncio.Condition()

    async def follow(self) -> None:
        async for message in self.group:
            text = bytes(message.data).decode(errors="replace")
            self.said.append(f"data: {json.dumps({'sender': message.sender, 'text': text})}\n\n".encode())
            async with self.more:
                self.more.notify_all()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(10):
                method, path, *_ = (await reader.readline()).decode("latin-1").split()
                length = 0
                while (line := await reader.readline()).strip():
                    name, _, value = line.decode("latin-1").partition(":")
                    length = int(value) if name.lower() == "content-length" else length
                body = await reader.readexactly(min(length, BODY_MAX))
            if (method, path) == ("GET", "/events"):
                await self._stream(writer)
            elif (method, path) == ("POST", "/say"):
                await self.group.send(body)
                self._answer(writer, "204 No Content")
            else:
                self._answer(
                    writer, "200 OK" if path == "/" else "404 Not Found", PAGE if path == "/" else ""
                )
            await writer.drain()
        except (ValueError, OSError, TimeoutError, asyncio.IncompleteReadError):
            pass  # whoever does not speak HTTP, or has gone
        finally:
            writer.close()

    def _answer(self, writer: asyncio.StreamWriter, status: str, text: str = "") -> None:
        data = text.encode()
        head = f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + data)

    async def _stream(self, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n\r\n")
        seen = 0
        while True:
            writer.write(b"".join(self.said[seen:]))
            await writer.drain()
            seen = len(self.said)
            async with self.more:
                await self.more.wait_for(lambda: len(self.said) > seen)  # noqa: B023  # waited for at once


async def main(name: str, port: int) -> None:
    async with inga.join("webchat", name, via=VIA, echo=True, history=100) as group:
        gateway = Gateway(group)
        async with await asyncio.start_server(gateway.serve, "127.0.0.1", port):
            print(f"open http://127.0.0.1:{port}", flush=True)
            await gateway.follow()


if __name__ == "__main__":
    inga.run(main(sys.argv[1], int(sys.argv[2])))
