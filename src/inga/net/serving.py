"""Metrics and health of a member over HTTP, in its own event loop: for Prometheus, for probes, and for `inga top`.

    /metrics   all figures, in the text format of Prometheus
    /stats     the same as JSON
    /healthz   200 while the member works; 503 once it has failed or is closed
    /readyz    200 while it takes part: not paused, leaving or alone among members it has never met

An answer also shows that the event loop is running. The server reads one request of each connection, and nothing of its body: enough
HTTP for these clients, and simple enough to be safe.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from inga.model.errors import UsageError
from inga.model.stats import Stats
from inga.net.metrics import exposition

REQUEST_MAX = 8192
"""The most bytes of a request's head."""

PATIENCE = 10.0
"""Seconds that a client has for its request, and then for reading the answer."""

CONNECTIONS_MAX = 64
"""The most connections at the same time; further ones are closed."""

TEXT, METRICS, JSON = (
    "text/plain; charset=utf-8",
    "text/plain; version=0.0.4; charset=utf-8",
    "application/json",
)

WORKING = ("open", "waiting", "closing")
"""The states in which a member takes part in its group."""

REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    503: "Service Unavailable",
}

HttpAnswer = tuple[int, str, str]


class HasStats(Protocol):
    """An object with figures: a group."""

    def stats(self) -> Stats: ...


def is_healthy(stats: Stats) -> bool:
    """Whether the member works, or will work again without help."""
    return stats.state not in ("failed", "closed")


def is_ready(stats: Stats) -> bool:
    """Whether the member takes part in its group."""
    return stats.state in WORKING and (len(stats.members) == 1 or len(stats.here) > 1)


class MetricsServer(AbstractAsyncContextManager["MetricsServer"]):
    """Answers until it is closed. Use it as a context manager, or call `close`."""

    def __init__(self, groups: Sequence[HasStats]) -> None:
        self._groups = groups
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._pages: dict[str, Callable[[list[Stats]], HttpAnswer]] = {
            "/metrics": lambda every: (200, METRICS, exposition(every)),
            "/stats": lambda every: (200, JSON, json.dumps([stats.as_dict() for stats in every])),
            "/healthz": lambda every: _verdict(every, is_healthy),
            "/readyz": lambda every: _verdict(every, is_ready),
        }

    async def open(self, host: str, port: int) -> None:
        try:
            self._server = await asyncio.start_server(self._connected, host, port, limit=REQUEST_MAX)
        except OSError as error:
            raise UsageError(f"cannot serve metrics at {host}:{port}: {error.strerror}") from None

    @property
    def port(self) -> int:
        """The port on which it listens, which matters if port 0 was requested."""
        assert self._server is not None
        found: int = self._server.sockets[0].getsockname()[1]
        return found

    async def close(self) -> None:
        """Stop listening, and close all connections."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def answer(self, method: str, path: str) -> HttpAnswer:
        """The answer to one request: its status, type and text."""
        if method not in ("GET", "HEAD"):
            return 405, TEXT, "only GET and HEAD\n"
        page = self._pages.get(path.partition("?")[0])
        if page is None:
            return 404, TEXT, "".join([f"{path}\n" for path in self._pages])
        return page([group.stats() for group in self._groups])

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) >= CONNECTIONS_MAX:
            writer.close()
            return
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                head = await reader.readuntil(b"\r\n\r\n")
            request = head.decode("latin-1").partition("\r\n")[0].split(" ")
            method, answer = request[0], (400, TEXT, "what?\n")
            if len(request) == 3:
                answer = self.answer(method, request[1])
            writer.write(_response(answer, with_body=method != "HEAD"))
            writer.close()
            async with asyncio.timeout(PATIENCE):
                await writer.wait_closed()
        except (OSError, EOFError, asyncio.LimitOverrunError, TimeoutError):
            pass  # the request is invalid or late, or the client has gone
        finally:
            writer.transport.abort()  # frees the data that the client does not read


async def serve_metrics(*groups: HasStats, port: int, host: str = "127.0.0.1") -> MetricsServer:
    """Serve the figures of these groups at `http://host:port/metrics`; port 0 is a free one, told by `.port`.

    Whoever can connect can read them: names of groups and members, and how much they say. So it is this machine alone, unless
    `host` says otherwise.
    """
    if not groups:
        raise UsageError("serve_metrics needs a group")
    if not 0 <= port < 1 << 16:
        raise UsageError(f"a port is a number from 0 to 65535, not {port!r}")
    server = MetricsServer(groups)
    await server.open(host, port)
    return server


def _verdict(every: list[Stats], is_well: Callable[[Stats], bool]) -> HttpAnswer:
    text = "".join([f"{'ok' if is_well(stats) else 'no'} {stats.state}\n" for stats in every])
    return (200 if all(map(is_well, every)) else 503), TEXT, text


def _response(answer: HttpAnswer, *, with_body: bool) -> bytes:
    status, kind, text = answer
    body = text.encode(errors="backslashreplace")
    head = [
        f"HTTP/1.1 {status} {REASONS[status]}",
        f"Content-Type: {kind}",
        f"Content-Length: {len(body)}",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        "Connection: close",
    ]
    return "\r\n".join([*head, "", ""]).encode() + (body if with_body else b"")
