"""The addresses of a group: `via` strings, member addresses, and the interface for outgoing multicast."""

import errno
import fcntl
import os
import socket
import struct
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from inga.model.errors import UsageError

SIOCGIFADDR, SIOCGIFMTU = 0x8915, 0x8921
LOOPBACK_DATAGRAM = 60 * 1024
"""Bytes of the largest datagram on loopback."""

UDP_OVERHEAD = 28
"""Bytes of IP and UDP headers in every datagram."""

HostPort = tuple[str, int]
"""The address of a process: host and port."""

MTU_FLOOR = 576
INTERFACE_VARIABLE = "INGA_INTERFACE"
"""Environment variable that chooses the interface if neither `via` nor an option does."""


@dataclass(frozen=True, slots=True)
class Via:
    """A parsed `via`: `udp` with a multicast group and port, or `unicast`, or `tcp`."""

    kind: str
    group: str = ""
    port: int = 0
    interface: str | None = None


@dataclass(frozen=True, slots=True)
class Interface:
    """The interface for outgoing multicast: its address, why it was chosen, and the bytes of the largest datagram."""

    address: str
    reason: str
    datagram_max: int


def parse_via(via: str) -> Via:
    """`udp://239.x.y.z:port`, optionally `?interface=NAME or ADDRESS`; `unicast`; `tcp`."""
    if via in ("unicast", "tcp"):
        return Via(via)
    if not isinstance(via, str):
        raise UsageError(f"via is udp://239.x.y.z:port, unicast or tcp, not {via!r}")
    try:
        parts = urlsplit(via)
        port = parts.port
    except ValueError:
        raise UsageError(f"via {via!r} has a port that is none") from None
    if parts.scheme != "udp" or not parts.hostname or not port:
        raise UsageError(f"via is udp://239.x.y.z:port, unicast or tcp, not {via!r}")
    try:
        first = socket.inet_aton(parts.hostname)[0]
    except OSError:
        raise UsageError(f"{parts.hostname!r} in via is no IPv4 address") from None
    if not 224 <= first <= 239:
        raise UsageError(f"{parts.hostname} is no multicast address; those are 224.0.0.0 to 239.255.255.255")
    query = parse_qs(parts.query)
    unknown = set(query) - {"interface"}
    if unknown:
        raise UsageError(f"via has no option {', '.join(sorted(unknown))}; there is interface=")
    return Via("udp", parts.hostname, port, query.get("interface", [None])[-1])


def parse_host_port(text: object, name: str) -> HostPort:
    """Parse the `host:port` of one member. The host may be a name, which is not resolved here."""
    host, _, port = text.rpartition(":") if isinstance(text, str) else ("", "", "")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise UsageError(f"the address of {name} is host:port, not {text!r}")
    try:
        host.encode("idna")
    except UnicodeError:
        raise UsageError(f"{host!r} of {name} cannot be the name of a host") from None
    return host, int(port)


def is_address(host: str) -> bool:
    """Whether `host` is an IPv4 address, not a name."""
    try:
        socket.inet_pton(socket.AF_INET, host)
    except (OSError, ValueError):
        return False
    return True


def why_not(error: OSError) -> str:
    """Why a socket cannot be opened at an address, and what to do about it."""
    advice = {
        errno.EADDRINUSE: "; choose another port, or end the program that has this one",
        errno.EADDRNOTAVAIL: "; this machine has no such address: `ip address` lists those it has",
        errno.ENODEV: "; this machine has no such interface: `ip address` lists those it has",
        errno.EACCES: "; ports below 1024 take the rights of root: choose a higher one",
    }.get(error.errno or 0, "")
    # asyncio puts the system's text at the end of its own, so `error.strerror` would be too long.
    return f"{os.strerror(error.errno) if error.errno else error}{advice}"


def choose_interface(via: Via, wanted: str | None) -> Interface:
    """The interface chosen by option, by `via` or by environment, else the one to which the kernel routes the group; loopback if there
    is no route."""
    for name, reason in (
        (wanted, "by option"),
        (via.interface, "by via"),
        (os.environ.get(INTERFACE_VARIABLE), f"by {INTERFACE_VARIABLE}"),
    ):
        if name:
            address = _address_of(name)
            return Interface(address, f"{name}, {reason}", _datagram_max(address))
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((via.group, via.port))
            address = probe.getsockname()[0]
        reason = "by route"
    except OSError:
        address, reason = "127.0.0.1", "no route, so loopback"
    return Interface(address, reason, _datagram_max(address))


def _address_of(interface: str) -> str:
    """The IPv4 address of an interface, given by name or by that address."""
    try:
        socket.inet_aton(interface)
        return interface
    except OSError:
        pass
    try:
        return socket.inet_ntoa(_ioctl(interface, SIOCGIFADDR)[20:24])
    except OSError:
        known = ", ".join(name for _, name in socket.if_nameindex())
        raise UsageError(f"no interface {interface!r} with an IPv4 address; there are {known}") from None


def _datagram_max(address: str) -> int:
    """The bytes of the largest datagram that IP does not fragment."""
    for _, name in socket.if_nameindex():
        try:
            if socket.inet_ntoa(_ioctl(name, SIOCGIFADDR)[20:24]) != address:
                continue
            mtu: int = struct.unpack_from("i", _ioctl(name, SIOCGIFMTU), 16)[0]
        except OSError:
            continue
        return LOOPBACK_DATAGRAM if mtu >= 65536 else max(mtu, MTU_FLOOR) - UDP_OVERHEAD
    return LOOPBACK_DATAGRAM if address.startswith("127.") else 1500 - UDP_OVERHEAD


def _ioctl(interface: str, request: int) -> bytes:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        return fcntl.ioctl(probe, request, struct.pack("256s", interface.encode()[:15]))
