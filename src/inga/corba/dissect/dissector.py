"""Decodes the packets of a capture: MIOP fragments, the messages they make, ReMIOP's control packets; GIOP over TCP."""

from collections import Counter
from collections.abc import Iterator
from math import inf
from typing import Any

from inga.corba.dissect import pcap
from inga.corba.dissect.described import group_of, group_text, key_text
from inga.corba.dissect.pcap import TcpSegment, UdpDatagram, UnreadFrame
from inga.corba.dissect.streams import Streams, Whole
from inga.corba.multicast.envelope import DOMAIN, OPERATION
from inga.corba.multicast.fragments import Piece, Reassembly
from inga.corba.wire import giop, miop
from inga.corba.wire.giop import KeyAddr, ProfileAddr, Request
from inga.corba.wire.group_request import decode_request
from inga.corba.wire.reference import TAG_UIPMC, address_text, decode_uipmc
from inga.model.errors import WireError
from inga.model.packet import Buffer
from inga.model.text import printable
from inga.wire.packet import HEAD
from inga.wire.packet import MAGIC as INGA

OPEN_MAX = 4096
OCTETS_MAX = 1 << 30
"""Messages that are incomplete at the same time, and their octets; beyond, the least recently used is dropped."""
RECENT = 1 << 16
"""Finished messages that are remembered, so that their repeated fragments are recognised."""

CONTROL_KINDS = {miop.NACK: "NACK", miop.STATE: "STATE"}
TARGETS = {giop.KeyAddr: "key", giop.ProfileAddr: "profile", giop.ReferenceAddr: "reference"}


class Dissector:
    """Takes packets in the order of a capture; describes each, and each message once it is complete.

    It decodes datagrams that begin as MIOP does, with a port also all others that go there, and TCP streams of GIOP messages.
    """

    def __init__(self, port: int | None = None) -> None:
        self._port = port
        self.datagrams = self.segments = 0
        self.unread: Counter[int] = Counter()  # frames of unknown link layers, by link layer
        self._streams = Streams()
        self.counters: dict[str, int] = {}
        self._frames: dict[bytes, list[int]] = {}  # of incomplete messages, by unique id
        self._trouble = ""  # the anomaly found when the last fragment was joined
        self._reassembly = Reassembly(
            self._note, collect=inf, collections_max=OPEN_MAX, octets_max=OCTETS_MAX, ring=RECENT
        )

    @property
    def incomplete(self) -> int:
        """Messages of which fragments are missing."""
        return self._reassembly.open

    def take(self, packet: UdpDatagram | TcpSegment | UnreadFrame) -> Iterator[dict[str, Any]]:
        """What is in a packet, and the messages that it completes."""
        if isinstance(packet, UnreadFrame):
            self.unread[packet.link] += 1
            return iter(())
        return self._datagram(packet) if isinstance(packet, UdpDatagram) else self._segment(packet)

    def finish(self) -> Iterator[dict[str, Any]]:
        """At the end of the capture: the messages behind segments that were not captured."""
        return self._iiop(self._streams.flush())

    def _segment(self, segment: TcpSegment) -> Iterator[dict[str, Any]]:
        self.segments += 1
        return self._iiop(self._streams.take(segment))

    def _iiop(self, messages: list[Whole]) -> Iterator[dict[str, Any]]:
        for frames, octets, last in messages:
            source, target = address_text(*last.source), address_text(*last.target)
            self._count("iiop")
            content = {"frames": frames, "from": source, "to": target, **_message(octets, to_group=False)}
            seen = {"frame": last.frame, "at": round(last.at, 9), "source": source, "target": target}
            yield {**seen, "message": content}

    def _datagram(self, datagram: UdpDatagram) -> Iterator[dict[str, Any]]:
        self.datagrams += 1
        to_us = datagram.target[1] == self._port
        if not to_us and bytes(datagram.payload[:4]) != miop.MAGIC:
            return
        seen = {
            "frame": datagram.frame,
            "at": round(datagram.at, 9),
            "source": address_text(*datagram.source),
            "target": address_text(*datagram.target),
        }
        if datagram.is_cut:
            self._count("cut")
            yield {**seen, "refused": "cut", "why": "the capture does not hold all of it"}
            return
        try:
            fragment = miop.decode(datagram.payload)
            said = miop.decode_control(fragment) if fragment.is_control else None
        except WireError as error:
            self._count(error.reason)
            yield {**seen, "refused": error.reason, "why": str(error)}
            return
        seen["miop"] = _fragment(fragment)
        if said is not None:
            self._count(CONTROL_KINDS[said.kind].lower())
            yield {**seen, "control": _control(said)}
            return
        self._count("data")
        whole = self._join(fragment, datagram)
        yield {**seen, "note": self._trouble} if self._trouble else seen
        if whole is not None:
            frames, message = whole
            content = {"frames": frames, "unique_id": fragment.unique_id.hex(), **_message(message)}
            self._count(content.get("refused", "messages"))
            yield {**seen, "message": content}

    def _count(self, name: str) -> None:
        self.counters[name] = self.counters.get(name, 0) + 1

    def _note(self, trouble: str) -> None:
        self._trouble = trouble
        self._count(trouble)

    def _join(self, fragment: miop.MiopPacket, datagram: UdpDatagram) -> tuple[list[int], bytes] | None:
        """The frames and octets of a message that this fragment completes."""
        unique_id = fragment.unique_id
        piece = Piece(unique_id, 0, 0, fragment.number, fragment.count, fragment.is_last, 0)
        self._trouble = ""
        message = self._reassembly.add(piece, fragment.payload, datagram.at)
        if self._trouble in ("", "evicted"):
            self._frames.setdefault(unique_id, []).append(datagram.frame)
        if len(self._frames) > 2 * OPEN_MAX:
            del self._frames[next(iter(self._frames))]
        if message is None:
            return None
        return self._frames.pop(unique_id, [datagram.frame]), bytes(message)


def dissect(data: Buffer, port: int | None = None) -> tuple[Dissector, Iterator[dict[str, Any]]]:
    """The entries of a capture file, and the dissector that counts them as they are read."""
    dissector = Dissector(port)

    def entries() -> Iterator[dict[str, Any]]:
        for packet in pcap.packets(data):
            yield from dissector.take(packet)
        yield from dissector.finish()

    return dissector, entries()


def _fragment(fragment: miop.MiopPacket) -> dict[str, Any]:
    content: dict[str, Any] = {
        "flags": fragment.flags,
        "length": len(fragment.payload),
        "number": fragment.number,
        "count": fragment.count,
        "unique_id": fragment.unique_id.hex(),
    }
    if (numbered := miop.read_id(fragment.unique_id)) is not None:
        sender, base = numbered
        content |= {"sender": miop.quad(sender), "sequence": base + fragment.number}
    return content


def _control(control: miop.ControlPacket) -> dict[str, Any]:
    return {
        "kind": CONTROL_KINDS[control.kind],
        "sender": miop.quad(control.sender),
        "entries": [[miop.quad(sender), number] for sender, number in control.entries],
    }


def _message(message: bytes, *, to_group: bool = True) -> dict[str, Any]:
    """Describe a GIOP message, even one that a group would refuse."""
    content: dict[str, Any] = {"octets": len(message)}
    try:
        if to_group:
            decode_request(message)
    except WireError as error:
        content |= {"refused": error.reason, "why": str(error)}
    try:
        header = giop.read_header(message)
        content |= {"giop": f"1.{header.minor}", "kind": header.kind.name.lower(), "size": header.size}
        content["little_endian"] = header.little
        _, decoded, body = giop.decode(message)
    except WireError:
        return content
    if isinstance(decoded, Request):
        content |= {
            "request_id": decoded.request_id,
            "response_flags": decoded.response_flags,
            "operation": decoded.operation,
            "contexts": [each.tag for each in decoded.contexts],
            "target": _target(decoded.target),
        }
    elif (request_id := getattr(decoded, "request_id", None)) is not None:
        content["request_id"] = request_id
        if (status := getattr(decoded, "status", None)) is not None:
            content["status"] = status.name.lower()
    rest = body.rest()
    if (packet := _packet(content, rest)) is not None:
        content["packet"] = packet
    return {**content, "body": rest.hex()}


def _packet(message: dict[str, Any], body: bytes) -> dict[str, Any] | None:
    """The header of the packet in a request of an inga group; the rest can only be decoded with the group's members."""
    group = message.get("target", {}).get("group")
    if message.get("operation") != OPERATION or not group or group["domain"] != DOMAIN:
        return None
    if len(body) < 4 + HEAD.size:
        return None
    magic, _, kind, _, _, src, view, size = HEAD.unpack_from(body, 4)
    # Its tag identifies the view and the process, not the group.
    if magic != INGA or size > len(body):
        return None
    return {"kind": kind, "src": src, "view": view, "octets": size}


def _target(target: giop.TargetAddress) -> dict[str, Any]:
    content: dict[str, Any] = {"by": TARGETS[type(target)]}
    if isinstance(target, KeyAddr):
        content["key"] = target.key.hex()
    if not isinstance(target, ProfileAddr):
        return content
    content |= {"tag": target.profile.tag, "profile": target.profile.data.hex()}
    if target.profile.tag == TAG_UIPMC:
        try:
            profile = decode_uipmc(target.profile.data)
            group = profile.group
        except WireError:
            return content
        content["address"] = address_text(profile.address, profile.port)
        content["group"] = None if group is None else group_of(group)
    return content


# As text


def line(entry: dict[str, Any], start: float) -> str:
    """One packet or message as a line; `start` is the time of the first one."""
    if "message" in entry and "miop" in entry:
        return f"{'':21}{_message_text(entry['message'])}"
    where = f"{entry['frame']:>6} {entry['at'] - start:>11.6f}  {entry['source']} > {entry['target']}  "
    if "message" in entry:
        return where + _message_text(entry["message"])
    if "refused" in entry:
        return f"{where}refused, {printable(entry['why'])}"
    if "control" in entry:
        return where + _control_text(entry["control"])
    note = f" ({entry['note']})" if "note" in entry else ""
    return where + _fragment_text(entry["miop"]) + note


def _fragment_text(fragment: dict[str, Any]) -> str:
    count = fragment["count"] or "?"
    last = ", last" if fragment["flags"] & miop.STOP and fragment["count"] != 1 else ""
    name = f"{fragment['sender']}#{fragment['sequence']}" if "sender" in fragment else fragment["unique_id"]
    return f"MIOP {name} fragment {fragment['number'] + 1} of {count}{last}, {fragment['length']} octets"


def _control_text(control: dict[str, Any]) -> str:
    verb = "misses" if control["kind"] == "NACK" else "has all up to"
    entries = ", ".join(f"{sender}#{number}" for sender, number in control["entries"])
    return f"ReMIOP {control['kind']} {control['sender']} {verb} {entries or 'nothing'}"


def _message_text(message: dict[str, Any]) -> str:
    refused = f"; refused, {printable(message['why'])}" if "refused" in message else ""
    if "giop" not in message:
        return f"message of {message['octets']} octets{refused}"
    text = f"GIOP {message['giop']} {message['kind']}"
    if "operation" in message:
        kind = "" if message["response_flags"] else "oneway "
        text += f" {message['request_id']}: {kind}{printable(message['operation'])}{_target_text(message['target'])}"
    elif "request_id" in message:
        text += f" {message['request_id']}" + (f": {message['status']}" if "status" in message else "")
    if message.get("body"):
        text += f", body of {len(message['body']) // 2} octets"
    if (packet := message.get("packet")) is not None:
        kind = f"of layer {packet['kind']}" if packet["kind"] else f"with {packet['octets']} octets of data"
        text += f": packet {kind} by member {packet['src']} in view {packet['view']}"
    frames = message["frames"]
    if len(frames) > 1:
        text += f", from {len(frames)} {'fragments' if 'unique_id' in message else 'segments'}"
    return text + refused


def _target_text(target: dict[str, Any]) -> str:
    if target.get("group"):
        return f" to group {group_text(target['group'])}"
    if "key" in target:
        return f" to key {key_text(target['key'])}"
    return f" to a {target['by']}"
