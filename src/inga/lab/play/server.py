"""A server for one person's browser, on this machine alone.

Other pages in the same browser can reach it, too, so it answers only requests with the token of its address, and only under
the names of this machine: a page whose own name resolves to 127.0.0.1 gets nothing (DNS rebinding). Requests are small, and
schedules are played quickly and one at a time.
"""

import json
from hmac import compare_digest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from secrets import token_urlsafe
from socket import socket
from threading import BoundedSemaphore, Lock
from typing import Any
from urllib.parse import parse_qs, urlsplit

from inga.lab.play.game import play
from inga.lab.play.page import page
from inga.model.errors import UsageError

BODY_MAX = 16_384
CONNECTIONS_MAX = 16
SECONDS_MAX = 10  # that a connection may take to send its request
HOST = "127.0.0.1"


class PlayServer(ThreadingHTTPServer):
    """Listens from its construction on; `serve_forever` answers requests."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, schedule: str, order: str, port: int = 0) -> None:
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise UsageError(f"port {port} cannot be used: {error.strerror}") from error
        self.token = token_urlsafe(24)
        self.start = {"schedule": schedule, "order": order}
        self.playing = Lock()
        self._room = BoundedSemaphore(CONNECTIONS_MAX)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_port}/?token={self.token}"

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: socket | tuple[bytes, socket], client_address: Any) -> None:
        """Ignore errors, such as a browser that closes its connection early."""


class _Handler(BaseHTTPRequestHandler):
    server: PlayServer
    timeout = SECONDS_MAX
    server_version, sys_version = "inga", ""

    def do_GET(self) -> None:
        if self._is_welcome() and urlsplit(self.path).path == "/":
            self._answer(200, page(self.server.start).encode(), "text/html; charset=utf-8")

    def do_POST(self) -> None:
        if not self._is_welcome():
            return
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > BODY_MAX:
            self._refuse(413, f"a schedule has at most {BODY_MAX} bytes")
            return
        try:
            asked = json.loads(self.rfile.read(int(length)))
            with self.server.playing:
                found = play(str(asked["schedule"]), str(asked["order"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            self._refuse(400, "that is no question")
        except UsageError as error:
            self._refuse(400, str(error))
        else:
            self._answer(200, json.dumps(found).encode(), "application/json")

    def _is_welcome(self) -> bool:
        """Whether a request has our token, is for this machine's names, and comes from a page of ours, if from any."""
        names = {f"{name}:{self.server.server_port}" for name in (HOST, "localhost")}
        given = parse_qs(urlsplit(self.path).query).get("token", [""])[0]
        origin = self.headers.get("Origin")
        if (
            self.headers.get("Host") in names
            and compare_digest(given.encode(), self.server.token.encode())
            and (origin is None or origin in {f"http://{name}" for name in names})
        ):
            return True
        self._refuse(403, "open the address that `inga play` printed")
        return False

    def _refuse(self, code: int, why: str) -> None:
        self._answer(code, json.dumps({"error": why}).encode(), "application/json")

    def _answer(self, code: int, content: bytes, kind: str) -> None:
        self.send_response(code)
        for name, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(content))),
            ("Cache-Control", "no-store"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
            ("X-Frame-Options", "DENY"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: every drag is a request."""
