"""A shop of four processes that know nothing of inga, and log what they send and handle: docs/own-logs.md certifies it.

    python examples/shop.py logs

`web` takes orders, `stock` reserves, `billing` charges, `mail` writes to customers. They talk by HTTP, with nothing but the
standard library, and each has a directory of its own in LOGS. Two customers order. As in many a shop, all is well in the
tests of each process, and three things are not: `web` has its letters sent by a job that runs later; `billing` sends again
what was not confirmed in time, and `stock` was only slow; and whoever sends to `mail` does not look at the answer.
"""

import csv
import json
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

NAMES = ("web", "billing", "stock", "mail")  # each sends to those behind it
PATIENCE = 1.5  # seconds until what was not confirmed is sent again,
SLOW = 2.0  # and those that it takes to fetch what is in the other hall
LATER = 1.0  # until letters are sent that are no hurry


class Service:
    """One process: what it does with each message, and its log."""

    def __init__(self, name: str, logs: Path) -> None:
        self.name = name
        self.places: dict[str, int] = {}
        self._fetched: set[str] = set()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        (logs / name).mkdir(parents=True, exist_ok=True)
        self._file = (logs / name / "messages.csv").open("w", newline="", buffering=1)
        self._log = csv.writer(self._file, lineterminator="\n")
        self._log.writerow(["at", "service", "op", "id", "to"])

    def note(self, op: str, message: str, to: str = "") -> None:
        with self._lock:
            at = datetime.now(UTC).isoformat(timespec="microseconds")
            self._log.writerow([at, self.name, op, message, to])

    def take(self, message: str) -> None:
        """A request has come."""
        what, _, number = message.partition("-")
        if what == "customer":
            self.publish(f"order-{number}", "stock", "billing")
            self.publish(f"order-{number}", "mail", after=LATER)
            return
        if (self.name, message) == ("mail", "paid-2"):
            raise KeyError("address")  # the customer gave none
        self.note("handle", message)
        if self.name == "billing":
            self.publish(f"paid-{number}", "mail", "stock")
        elif (self.name, message) == ("stock", "paid-2") and message not in self._fetched:
            self._fetched.add(message)
            time.sleep(SLOW)

    def publish(self, message: str, *receivers: str, after: float = 0) -> None:
        for receiver in receivers:
            self.note("publish", message, receiver)
        thread = threading.Timer(after, self._post, (message, receivers))
        self._threads.append(thread)
        thread.start()

    def _post(self, message: str, receivers: tuple[str, ...]) -> None:
        for receiver in receivers:
            try:
                post(self.places[receiver], message)
            except TimeoutError:
                post(self.places[receiver], message)

    def end(self) -> None:
        for thread in self._threads:
            thread.join()
        self._file.close()


def post(port: int, message: str) -> None:
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("POST", f"/{message}")
        connection.getresponse().read()
    finally:
        connection.close()


def serve(name: str, logs: Path) -> None:
    """Say where this process listens, hear where the others do, and serve until standard input ends."""
    service = Service(name, logs)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status = 200
            try:
                service.take(self.path.removeprefix("/"))
            except KeyError:
                status = 500
            try:
                self.send_response(status)
                self.end_headers()
            except OSError:
                pass  # who asked has given up

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    service.places = json.loads(sys.stdin.readline())
    threading.Thread(target=server.serve_forever).start()
    sys.stdin.read()
    service.end()
    server.shutdown()
    server.server_close()


def main(logs: Path) -> None:
    command = [sys.executable, __file__, str(logs)]
    processes = {
        name: subprocess.Popen([*command, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for name in NAMES
    }
    places = {name: int(each.stdout.readline()) for name, each in processes.items() if each.stdout}
    for each in processes.values():
        assert each.stdin
        print(json.dumps(places), file=each.stdin, flush=True)
    for customer in (1, 2):
        post(places["web"], f"customer-{customer}")
        time.sleep(1.5 * LATER)
    for each in processes.values():  # those first to whom nobody sends any more: the order of NAMES
        each.communicate()
    print(f"two orders; what was sent and handled is in {logs}")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: shop.py LOGS   (a directory for what the processes log)")
    if len(sys.argv) == 3:
        serve(sys.argv[2], Path(sys.argv[1]))
    else:
        main(Path(sys.argv[1]))
