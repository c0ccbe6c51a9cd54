"""Show the CORBA traffic in a capture file: MIOP fragments, GIOP messages over MIOP and IIOP, ReMIOP's control packets.

  inga dissect traffic.pcap
  inga dissect traffic.pcapng --port 12345 --json
  tcpdump -i lo -w - -c 100 udp | inga dissect -

Reads pcap and pcapng with Ethernet, Linux cooked, loopback and bare IP frames; looks at UDP and TCP over IPv4
and IPv6. A datagram counts as MIOP if it begins like MIOP, or goes to --port.
A packet that a receiver would drop is shown with the counter that the receiver would increment. A file without any readable
frame is refused.
"""

import argparse
import sys
from pathlib import Path

from inga.cli.output import print_json, tell
from inga.corba.dissect.dissector import Dissector, dissect, line
from inga.model.errors import UsageError, WireError

STANDARD_INPUT = "-"
READ = "Ethernet, Linux cooked captures, loopback and bare IP"


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("file", metavar="FILE", help="a capture; - reads one from standard input")
    add("--port", type=int, metavar="P", help="treat every datagram to this port as MIOP")


def run(options: argparse.Namespace) -> int:
    if options.port is not None and not 0 < options.port < 1 << 16:
        raise UsageError(f"--port {options.port} is not between 1 and 65535")
    data = _read(options.file)
    dissector, entries = dissect(data, options.port)
    found = []
    start: float | None = None
    damage: WireError | None = None
    try:
        for entry in entries:
            if options.json:
                found.append(entry)
            else:
                start = entry["at"] if start is None else start
                tell(line(entry, start))
    except WireError as error:
        damage = error
    if dissector.unread and not dissector.datagrams + dissector.segments:
        raise UsageError(f"{options.file}: {_unread(dissector)}; inga reads {READ}")
    if options.json and (damage is None or found):
        print_json(
            {
                "file": options.file,
                "datagrams": dissector.datagrams,
                "segments": dissector.segments,
                "packets": [each for each in found if "message" not in each],
                "messages": [each["message"] for each in found if "message" in each],
                "incomplete": dissector.incomplete,
                "unread": dissector.unread,
                "counters": dissector.counters,
            }
        )
    elif damage is None and not options.quiet:
        tell(_summary(dissector), file=sys.stderr)
    if damage is not None:
        raise UsageError(f"{options.file}: {damage.detail}")
    return 0


def _read(name: str) -> bytes:
    if name == STANDARD_INPUT:
        return sys.stdin.buffer.read()
    path = Path(name)
    if path.is_dir():
        raise UsageError(f"{path} is a directory; name a capture file")
    if not path.exists():
        raise UsageError(f"there is no file {path}")
    return path.read_bytes()


def _summary(dissector: Dissector) -> str:
    counted = ", ".join(f"{count:,} {name}" for name, count in dissector.counters.items())
    open_messages = (
        f"; {dissector.incomplete:,} messages with fragments missing" if dissector.incomplete else ""
    )
    segments = f", {dissector.segments:,} TCP segments" if dissector.segments else ""
    unread = f"; {_unread(dissector)}" if dissector.unread else ""
    return f"{dissector.datagrams:,} datagrams{segments}: {counted or 'no MIOP'}{open_messages}{unread}"


def _unread(dissector: Dissector) -> str:
    links = ", ".join(map(str, dissector.unread))
    return f"{dissector.unread.total():,} frames are of link type {links}, which is not known here"
