"""A capture file of what a multicast group on loopback says, without rights and without another program."""

import socket
from pathlib import Path
from threading import Thread
from time import time
from types import TracebackType
from typing import Self

from inga.corba.dissect.pcap import HEADER, record
from inga.net.carrier import _enlarge
from inga.runs.live import free_ports

HOST = "239.7.7.11"
LOOPBACK = "127.0.0.1"


class Capture:
    """Listens until the block ends, and has then written everything to the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._target = (HOST, free_ports(1, socket.SOCK_DGRAM)[0])
        self._heard: list[bytes] = []
        self._is_over = False

    @property
    def via(self) -> str:
        return f"udp://{self._target[0]}:{self._target[1]}?interface=lo"

    def __enter__(self) -> Self:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _enlarge(self._socket)
        self._socket.bind(self._target)
        membership = socket.inet_aton(HOST) + socket.inet_aton(LOOPBACK)
        self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
        self._socket.settimeout(0.1)
        self._thread = Thread(target=self._listen, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_over = True
        self._thread.join()
        self._socket.close()
        self._path.write_bytes(HEADER + b"".join(self._heard))

    def _listen(self) -> None:
        """Until it is over and nothing more comes."""
        while True:
            try:
                data, source = self._socket.recvfrom(65536)
            except TimeoutError:
                if self._is_over:
                    return
                continue
            self._heard.append(record(time(), source, self._target, data))
