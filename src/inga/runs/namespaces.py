"""A network of real interfaces on one machine, which can be cut: a network namespace for each member, joined by a switch.

    member 1  eth0 ─── port1 ┐
    member 2  eth0 ─── port2 ┼─ bridge 0      the switch, in a namespace of its own
    member 3  eth0 ─── port3 ┘  bridge 1      to which ports are moved when the network is cut

None of this is visible to the rest of the machine. It needs root, and `ip` (iproute2).
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from inga.model.errors import UsageError

SUBNET = "10.77"
"""The first half of the addresses in the namespaces, which are not visible outside."""

PREFIX = "inga"


def is_permitted(command: Sequence[str], *needed: str) -> bool:
    """Whether a command that changes the network works here; `needed` are programs that it calls."""
    if not all(map(shutil.which, (command[0], *needed))):
        return False
    return subprocess.run([*command], capture_output=True, timeout=20, check=False).returncode == 0


class SwitchedNetwork:
    """A network with a namespace for each name. Use it as a context manager, which removes all of them at the end."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)
        self._hub = f"{PREFIX}-{os.getpid()}-switch"
        self._bridges = 1

    def __enter__(self) -> Self:
        _remove_orphans()
        if not is_permitted(["ip", "netns", "add", self._hub]):
            raise UsageError(
                "a network that can be cut is made of network namespaces, which takes the rights of root and the command "
                "ip (package iproute2); inga sim plays the same in virtual time"
            )
        try:
            self._build()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._remove()

    def host(self, name: str) -> str:
        """The address of a member."""
        at = self._names.index(name) + 1
        return f"{SUBNET}.{at // 250}.{at % 250 + 1}"

    def command(self, name: str) -> tuple[str, ...]:
        """The prefix for a command that is to run in the namespace of a member."""
        return ("ip", "netns", "exec", self._namespace(name))

    def cut(self, parts: Sequence[Sequence[str]]) -> None:
        """Cut the network between these parts. Members that are not named stay where they are."""
        while self._bridges < len(parts):
            self._add_bridge(self._bridges)
            self._bridges += 1
        moves = [
            f"link set dev {self._port(name)} master bridge{at}"
            for at, part in enumerate(parts)
            for name in part
        ]
        _ip(moves, self._hub)

    def heal(self) -> None:
        self.cut([self._names])

    def _namespace(self, name: str) -> str:
        return f"{PREFIX}-{os.getpid()}-{self._names.index(name) + 1}"

    def _port(self, name: str) -> str:
        return f"port{self._names.index(name) + 1}"

    def _build(self) -> None:
        self._add_bridge(0)
        for name in self._names:
            inside, port = self._namespace(name), self._port(name)
            _ip([f"netns add {inside}"])
            _ip([f"link add name {port} type veth peer name eth0 netns {inside}"], self._hub)
            _ip([f"link set dev {port} master bridge0", f"link set dev {port} up"], self._hub)
            address = f"addr add {self.host(name)}/16 dev eth0"
            _ip(["link set dev lo up", address, "link set dev eth0 up"], inside)

    def _add_bridge(self, at: int) -> None:
        # Without snooping a bridge forwards multicast to all ports, as a plain switch does.
        add = f"link add name bridge{at} type bridge mcast_snooping 0 stp_state 0 forward_delay 0"
        _ip([add, f"link set dev bridge{at} up"], self._hub)

    def _remove(self) -> None:
        for each in (*map(self._namespace, self._names), self._hub):
            _delete(each)


def _ip(lines: Sequence[str], namespace: str | None = None) -> None:
    """Run commands of `ip`, within a namespace if one is given."""
    where = [] if namespace is None else ["-n", namespace]
    text = "\n".join(lines) + "\n"
    done = subprocess.run(
        ["ip", *where, "-batch", "-"], input=text, text=True, capture_output=True, check=False
    )
    if done.returncode:
        raise UsageError(f"the network could not be made: {done.stderr.strip().splitlines()[0]}")


def _delete(namespace: str) -> None:
    subprocess.run(["ip", "netns", "delete", namespace], capture_output=True, check=False)


def _remove_orphans() -> None:
    """Remove the namespaces of runs that were killed: their names have the id of a process that does not exist any more."""
    with suppress(OSError):
        for path in Path("/run/netns").glob(f"{PREFIX}-*-*"):
            process = path.name.split("-")[1]
            if process.isdecimal() and not Path(f"/proc/{process}").exists():
                _delete(path.name)
