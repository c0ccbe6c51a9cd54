"""The native wire: packets of every order and their sections, and members that receive them.

Samples are datagrams of groups in virtual time to which everything happens that the swarm knows: members join, leave
and fail, the order changes, packets are lost. Each is kept together with the member that was about to receive it.
"""

import json
import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from random import Random
from struct import pack
from typing import Any, NamedTuple
from zlib import crc32

from inga.lab.fuzz.decoder import FuzzedDecoder
from inga.lab.fuzz.mutate import Field, Form, FuzzSample, fields_of, json_texts, json_values, sample, varints
from inga.model.errors import WireError
from inga.model.invocation import Announce, Flush, Heartbeat, Message, Nack, SendId, Spoken, StartId
from inga.model.packet import Packet
from inga.model.stamp import Stamp
from inga.session.description import view_told
from inga.session.history import read_history
from inga.session.newcomer import Newcomer
from inga.session.session import Session
from inga.sim.site import Site
from inga.sim.swarm import plan
from inga.stack.stack import Stack, joined
from inga.wire import (
    bundle,
    co,
    invocation,
    matrix,
    packet,
    relay,
    selective,
    sequence,
    shares,
    value,
    varint,
)
from inga.wire.packet import CHECK, COUNT_MAX, COVERED, HEAD, INDEX_MAX, OUTSIDE, group_id, view_of
from inga.wire.told import Told, said

MEMBERS, ME = 4, 1
"""The group in which sections are read that do not contain the number of members: its size, and the index of the reader."""

MANY = 40
"""The size of a group that is so large that its stamps and vectors are encoded as columns."""

PLANS = {
    "none": (0, 7, 18), "fifo": (0, 7, 20), "vector": (0, 6, 18), "relay": (0, 5, 18), "co": (17,), "sco": (1, 9),
    "object": (13, 17), "total": (1, 17), "remiop": (14,), "remiop+vector": (14, 22), "remiop+co": (19,),
    "remiop+total": (5, 14), "remiop+object": (5, 14), "miop+acks": (14,),
}  # fmt: skip
"""Seeds of the swarm whose groups send many kinds of datagrams in little time: of the first seeds of each order, those that together
have most kinds."""

STEP, STEPS = 0.05, 36
"""Seconds of virtual time between two looks at a group, and how many there are."""

_VIEW = {
    "number": 2, "attempt": 1, "leader": 1, "recipe": "fifo", "traced": False, "members": [["a", 1, ""], ["b", 1, ""]],
    "processes": [0, 1], "total": 2, "joined": ["b"], "left": [], "failed": [], "merged": [["a"], ["b"]],
}  # fmt: skip
WORDS: dict[str, dict[str, Any]] = {
    "again": {}, "closed": {"why": "no"}, "paused": {"why": "no"}, "soon": {}, "lost": {"name": "a", "incarnation": 1, "spoken_in": 5, "next": 0, "attempt": 1, "view": 1, "company": True, "address": "a"},
    "ask": {"topic": "t", "offset": 0, "pieces": 8, "among": [0, 1]}, "lack": {"topic": "t", "among": [0, 1], "since": 1},
    "piece": {"topic": "t", "offset": 0, "total": 5, "ask": True}, "none": {"topic": "t", "why": "no"},
    "fetch": {"offset": 0, "pieces": 8, "all": False}, "state": {"offset": 0, "ask": True, "all": True},
    "stateless": {"why": "no", "nobody": True}, "cannot": {"number": 2, "attempt": 1, "why": "no"},
    "refused": {"number": 2, "attempt": 1, "asker": 0, "wish": 1, "why": "no"}, "double": {"birth": 1},
    "excluded": {"spoken_in": 1, "leader": [1], "slow": False}, "installed": {"number": 2},
    "want": {"number": 2, "attempt": 1, "src": 0, "runs": [[1, 3]]}, "suspect": {"waived": [], "members": [1]},
    "use": {"recipe": "fifo", "wish": 1}, "who": {"people": [["a", 1, ""]]}, "alive": {}, "complete": {"ask": True}, "install": {"number": 2},
    "farewell": {"leaver": [["a", 1, ""]]}, "part": {"size": 2, "spoken_in": 5, "address": ""},
    "hello": {"address": "", "view": 0, "wants": "", "host": [], "was": [], "spoken_in": 0, "bound": [], "part": [], "places": []},
    "reached": {"number": 2, "attempt": 1, "count": 1, "round": 1, "released": [1, 1], "holds": True},
    "flushed": {
        "number": 2, "attempt": 1, "round": 1, "sent": [1, 1], "count": 1, "seen": [1, 1], "held": {"0": [[1, 2, 1]]},
        "said": [1, 1], "whole": 1, "heard": [1, 1], "lacks": "", "gives": "",
    },
    "flush": _VIEW | {"gone": [], "slow": []}, "welcome": _VIEW | {"cuts": [1, 1], "missed": {"a": 1}},
    "unmet": {"members": [1]}, "pass": {"member": 1, "needs": True}, "passed": {"member": 1, "needs": True},
    "knock": {"process": "00" * 16}, "reply": {"name": "dave", "incarnation": 7},
    "goodbye": {"view": 1, "itself": True, "bound": False}, "here": {"birth": 1, "asks": True, "order": "fifo", "members": ["a"]}, "heard": {"member": 1}, "slow": {"members": [1]}, "owed": {"members": [1]}, "reading": {}, "dissolve": {"number": 2, "attempt": 1, "host": [["a", 1, ""]]},
    "cut": {
        "number": 2, "attempt": 1, "round": 1, "sent": [1, 1], "counts": [1, 1], "most": [1, 1], "dealt": {"0": [[1, 2, 1]]},
        "whole": [1, 1], "missed": {"0": [[1, 1]]}, "lack": [], "give": [["a", 1, ""]], "released": [1, 1],
    },
}  # fmt: skip
"""All control messages of sessions, without the fields about the sender, which every one has. Some are rare."""

ALIKE_MAX = 2
"""The most datagrams of one order with the same sections or the same control message."""


HOMELESS_MAX = 4
"""The most datagrams for members that are in no view any more."""


class Arrival(NamedTuple):
    """A datagram in flight, and the member that receives it."""

    datagram: bytes  # without its checksum, since nearly all mutations would fail the check
    members: int  # the size of the view in which it is read; 0 if it is read by a newcomer
    stack: bytes | None  # the receiver, pickled; None if it cannot be pickled
    address: str
    now: float


@cache
def arrivals() -> tuple[Arrival, ...]:
    """Return datagrams of every kind and order, always the same ones."""
    found = [each for order, seeds in PLANS.items() for each in _arrivals(order, seeds)]
    speaking = [each for each in found if _words_at(each.datagram) >= 0 and each.stack is not None]
    chance = Random(0)
    rare = [
        each._replace(datagram=_saying(each.datagram, do, what))
        for do, what in WORDS.items()
        for each in chance.sample(speaking, 4)
    ]
    return (*found, *rare, *_homeless(found))


def _homeless(found: Sequence[Arrival]) -> list[Arrival]:
    """Return some of these datagrams for members that have just lost their view, which is rare."""
    outside = [
        each
        for each in found
        if _words_at(each.datagram) >= 0 and each.members > 1 and view_of(each.datagram) == OUTSIDE
    ]
    made: list[Arrival] = []
    for each in outside:
        stack: Stack | Newcomer | None = None if each.stack is None else pickle.loads(each.stack)
        if not isinstance(stack, Stack) or stack.leaving or stack.closing or len(made) == HOMELESS_MAX:
            continue
        session = next((layer for layer in stack.layers if isinstance(layer, Session)), None)
        if session is not None:
            stack.advance(each.now)
            session.changes.leave_home()
            made.append(each._replace(stack=_frozen(stack)))
    return made


def _arrivals(order: str, seeds: Sequence[int]) -> Iterator[Arrival]:
    seen: Counter[Any] = Counter()
    for seed in seeds:
        sim = plan(seed, (order,)).sim()
        for step in range(1, STEPS):
            sim.run(step * STEP)
            for _, _, act, site, argument in sim.timeline.heap:
                if act is not Site.arrive:
                    continue
                datagram, address = _unsealed(argument[0]), argument[1]
                looks = _looks(datagram), site.newcomer is None
                seen[looks] += 1
                if seen[looks] <= ALIKE_MAX:
                    who = site.stack if site.newcomer is None else site.newcomer
                    members = len(site.stack.view) if site.newcomer is None else 0
                    yield Arrival(datagram, members, _frozen(who), address, sim.now)
            for site in sim.sites:
                cuts = _cuts_for(site.stack) if site.newcomer is None else ()
                seen["cut"] += len(cuts) > 0
                if seen["cut"] <= ALIKE_MAX:
                    for cut in cuts:
                        yield Arrival(cut, len(site.stack.view), _frozen(site.stack), "", sim.now)


def _cuts_for(stack: Stack) -> tuple[bytes, ...]:
    """Return two cuts for a member that waits for one and of whose view some members are gone: in one their packets are dealt out
    to members that send them again, in the other they are listed as missed. Few runs have such cuts."""
    session = next((layer for layer in stack.layers if isinstance(layer, Session)), None)
    closing = None if session is None else session.changes.closing
    if closing is None or closing.installing or not closing.gone or closing.leader == stack.me:
        return ()
    n, gone = len(stack.view), [str(member) for member in sorted(closing.gone)]
    here = [member for member in stack.peers if member != closing.leader] or [closing.leader]
    told = {
        "round": 1 + (closing.cut.round if closing.cut is not None else 0),
        "sent": [0] * n, "counts": [0] * n, "most": [0] * n, "whole": [0] * n,
        "lack": [], "give": [], "released": [],
    }  # fmt: skip
    deals = {"dealt": {key: [[closing.leader, 1, 2], [here[0], 2, 3]] for key in gone}, "missed": {}}
    misses = {"dealt": {}, "missed": {key: [[0] * n] for key in gone}}
    found = []
    for what in (deals, misses):
        saying = Packet(closing.leader, stack.view.number, kind=Session.id)
        saying.ext = said("cut", **closing.key, **told, **what)
        found.append(_unsealed(joined(packet.encode(saying, stack.wire.group_of(saying)))))
    return tuple(found)


def _unsealed(datagram: bytes) -> bytes:
    """Return a packet without its checksum."""
    if not datagram.startswith(b"in") or len(datagram) < HEAD.size + CHECK.size:
        return datagram
    sections, size = HEAD.unpack_from(datagram)[4::3]
    end = len(datagram) - (0 if sections & COVERED else size)
    return datagram[: end - CHECK.size] + datagram[end:]


def _sealed(datagram: bytes) -> bytes:
    """Return a packet with its checksum."""
    if not datagram.startswith(b"in") or len(datagram) < HEAD.size:
        return datagram
    sections, size = HEAD.unpack_from(datagram)[4::3]
    end = len(datagram) - (0 if sections & COVERED else min(size, len(datagram)))
    return datagram[:end] + CHECK.pack(crc32(datagram[:end])) + datagram[end:]


def _words_at(datagram: bytes) -> int:
    """Return where the session's control message begins; -1 if there is none, or if it is in MIOP packets."""
    return datagram.find(b'{"do":"') if datagram.startswith(b"in") else -1


def _saying(datagram: bytes, do: str, what: dict[str, Any]) -> bytes:
    """Return the datagram with another control message, which has the same fields about its sender."""
    at = _words_at(datagram)
    end = _end_of_json(datagram, at)
    content = json.loads(datagram[at:end])
    words = said(do, **{key: value for key, value in (content | what).items() if key != "do"})
    return _with_words(datagram, words, at, end)


def _with_words(datagram: bytes, words: bytes, at: int, end: int) -> bytes:
    """Return the datagram with this control message in the place of the one from `at` to `end`."""
    before = at - 2 if datagram[at - 2] & 0x80 else at - 1
    return datagram[:before] + varint.pack([len(words)]) + words + datagram[end:]


def _looks(datagram: bytes) -> Any:
    """Return what distinguishes kinds of datagrams: the kind of packet and its sections, or the name of the control message."""
    at = _words_at(datagram)
    if at >= 0:
        return datagram[at : datagram.find(b",", at)]
    if len(datagram) < HEAD.size or not datagram.startswith(b"in"):
        return len(datagram).bit_length(), datagram[4:6]
    return HEAD.unpack_from(datagram)[2::2][:2]


def _frozen(who: Stack | Newcomer) -> bytes | None:
    try:
        return pickle.dumps(who)
    except (pickle.PicklingError, AttributeError, TypeError):  # objects refer to functions of the application
        return None


# ---- packets


class _AnyView:
    """The sizes of views, for the decoder: all views have this size, and packets outside of views may have any index as sender."""

    def __init__(self, members: int) -> None:
        self._members = members

    def get(self, view: int) -> int:
        return INDEX_MAX if view == OUTSIDE else self._members


def _packets() -> list[FuzzSample]:
    """Make samples: one octet for the number of members, then the datagram. If the octet is 128 or more, no checksum is added."""
    rng = Random(0)
    captured = [
        bytes((each.members,)) + each.datagram
        for each in arrivals()
        if each.members and each.datagram.startswith(b"in")
    ]
    made = [
        bytes((members,)) + _unsealed(joined(packet.encode(_packet(rng, members), 1)))
        for members in (MEMBERS, MANY)
        for _ in range(60)
    ]
    return [sample(each, _packet_fields) for each in (*captured, *made)]


def _packet(rng: Random, members: int) -> Packet:
    """Return a packet with random sections."""

    def some(made: Callable[[], Any]) -> Any:
        return made() if rng.random() < 0.4 else None

    def number() -> int:
        return rng.choice((1, 2, 127, 128, 300, COUNT_MAX))

    def vector() -> tuple[int, ...]:
        return tuple(number() for _ in range(members))

    made = Packet(rng.randrange(members), 1, rng.choice((b"", b"\0hello", b"x" * 200)), kind=rng.randrange(9))
    made.seq, made.lsn = some(number) or 0, some(number) or 0
    made.stamp = some(
        lambda: Stamp(tuple((each, number()) for each in range(members) if each != made.src), 9)
    )
    made.ack, made.room, made.trace = some(vector), some(vector), some(vector)
    made.runs = some(lambda: ((1, 4), (9, 10), (200, 5000)))
    made.frag = some(lambda: (1, 3))
    made.dst = some(lambda: rng.randrange(1 << members))
    made.ext = some(lambda: said("piece", topic="a", offset=3, size=9))
    made.count = some(lambda: 5) or 1
    made.urgent, made.partial, made.lent = (rng.random() < 0.3 for _ in range(3))
    return made


_HEAD = (
    (2, Form.BIG),
    (1, Form.BIG),
    (1, Form.BIG),
    (4, Form.BIG),
    (2, Form.BIG),
    (2, Form.BIG),
    (4, Form.BIG),
    (4, Form.BIG),
)


def _packet_fields(data: bytes, start: int = 1) -> list[Field]:
    """Find the fields of the header, of the control message if there is one, and the numbers around it."""
    fields, at = [], start
    for size, form in _HEAD:
        fields.append(Field(at, at + size, form))
        at += size
    length = int.from_bytes(data[at - 4 : at])
    words = data.find(b'{"do":"', at)
    body = len(data) - length
    fields += varints(data, at, body if words < 0 else words)
    if words >= 0:
        end = _end_of_json(data, words)
        fields += [
            Field(field.start + words, field.end + words, field.form)
            for field in json_values(data[words:end])
        ]
    fields += varints(data, body, min(len(data), body + 64))
    return fields


def _end_of_json(data: bytes, start: int) -> int:
    text = data[start:].decode("latin-1")
    return start + json.JSONDecoder().raw_decode(text)[1]


def _mend_packet(data: bytearray, octets: bytes, start: int = 1) -> None:
    """Correct the length of the control message, or else that of the body, as if its content had been changed on purpose."""
    end = start + HEAD.size
    if len(data) < end or not data.startswith(b"in", start):
        return
    body = int.from_bytes(data[end - 4 : end])
    words = data.find(b'{"do":"', end)
    if words > end:
        before = words - 2 if data[words - 2] & 0x80 else words - 1
        data[before:words] = varint.pack([max(0, len(data) - body - words)])
    else:
        data[end - 4 : end] = ((body + len(data) - len(octets)) % (1 << 32)).to_bytes(4)


def _read_packet(octets: bytes) -> tuple[Packet, int]:
    first, data = (octets[0] if octets else 1), octets[1:]
    members = first % 128 or 1
    tag = packet.tag_of(data) if len(data) >= HEAD.size else 0
    sizes = _AnyView(members)
    found = packet.decode(data if first & 128 else _sealed(data), tag, sizes, INDEX_MAX)  # type: ignore[arg-type]
    assert found is not None
    return found, members


def _packet_again(result: tuple[Packet, int]) -> tuple[Packet, int]:
    found, members = result
    return _read_packet(bytes((members,)) + _unsealed(joined(packet.encode(found, 1))))


def _slots(result: tuple[Packet, int]) -> list[Any]:
    found, _ = result
    return [
        bytes(each) if isinstance(each, memoryview) else each
        for each in (getattr(found, slot) for slot in Packet.__slots__)
    ]


# ---- sections


def _vector(rng: Random) -> tuple[int, ...]:
    return tuple(rng.choice((0, 1, 5, 128, 70_000, COUNT_MAX)) for _ in range(MEMBERS))


def _some(rng: Random, *without: int) -> tuple[tuple[int, int], ...]:
    members = [each for each in range(MEMBERS) if each not in without and rng.random() < 0.6]
    return tuple((each, rng.choice((1, 2, 200, 1 << 40))) for each in members)


def _made(make: Callable[[Random], bytes], count: int = 40) -> list[FuzzSample]:
    rng = Random(1)
    return [sample(make(rng), varints) for _ in range(count)]


def _co(rng: Random) -> bytes:
    full = rng.random() < 0.5
    section = co.CoExtension(
        rng.randrange(300),
        _vector(rng) if full else None,
        None if full else _some(rng, ME),
        _vector(rng) if rng.random() < 0.5 else None,
        ((1, 3), (300, 301)) if rng.random() < 0.5 else None,
    )
    return co.pack(section)


def _selective(rng: Random) -> bytes:
    noted = tuple((member, some) for member in range(MEMBERS) if rng.random() < 0.4 and (some := _some(rng)))
    return selective.pack(
        rng.randrange(300), rng.randrange(300), _some(rng), _some(rng),
        noted if rng.random() < 0.5 else None, _share(rng) if rng.random() < 0.5 else b"",
    )  # fmt: skip


def _share(rng: Random) -> bytes:
    places = sorted(rng.sample(range(400), rng.randrange(1, 9)))
    return shares.put([(place, rng.randrange(1, 1 << MEMBERS)) for place in places], MEMBERS)


def _runs(rng: Random) -> bytes:
    """Make runs of two members in turn, so that most are valid and the others nearly so."""
    first, other = rng.sample(range(1, MEMBERS), 2)
    step = rng.choice((1, 100, 1 << 20))
    runs = [(other if at % 2 else first, (at // 2 + 1) * step) for at in range(rng.randrange(1, 17))]
    return sequence.put_runs(runs)


def _relay(rng: Random) -> bytes:
    return relay.put(
        relay.Origin(rng.randrange(MEMBERS), 1 + rng.randrange(300), rng.choice((None, 1, 7, 15)))
    )


def _matrix(rng: Random) -> bytes:
    cells = [
        (k, j, 1 + rng.randrange(300))
        for k in range(MEMBERS)
        for j in range(MEMBERS)
        if k != j and rng.random() < 0.5
    ]
    return matrix.put(_vector(rng), tuple(cells)) + b"body"


def _bundle(rng: Random) -> bytes:
    if rng.random() < 0.2:  # the encoding of long messages, with short ones
        return pack(">BIII", 3, 2, 3, 4) + bytes(7)
    sizes = rng.choice(([5], [3] * 4, [3] * 130, [1, 0, 7], [0, 0]))
    return bundle.join([bytes(size) for size in sizes])


def _bundled(octets: bytes) -> list[bytes]:
    return [bytes(each) for each in bundle.split(octets)]


# ---- values and invocations


def _value(rng: Random, depth: int = 0) -> Any:
    plain = [
        None,
        True,
        False,
        0,
        -1,
        1 << 62,
        -(1 << 63),
        1 << 64,
        -(1 << 400),
        0.5,
        float("nan"),
        "",
        "text",
        "\ud800",
        b"",
        b"12",
    ]
    match rng.randrange(8) if depth < 4 else 0:
        case 5:
            return [_value(rng, depth + 1) for _ in range(rng.randrange(5))]
        case 6:
            return tuple(_value(rng, depth + 1) for _ in range(rng.randrange(5)))
        case 7:
            keys = (None, 0, -5, 1.5, "a", b"a", (1, "b"), True)
            return {rng.choice(keys): _value(rng, depth + 1) for _ in range(rng.randrange(5))}
        case _:
            return rng.choice(plain)


def _packed(found: Any) -> bytes:
    out = bytearray()
    value.put(out, found)
    return bytes(out)


def _read_value(octets: bytes) -> Any:
    return value.get(octets, 0)[0]


class _Roster:
    """The roster of a group of three members with four places."""

    places = (0, 1, 2, 3)
    members = (0, 1, 2)


def _spoken() -> list[Spoken]:
    """Return all kinds of messages between objects."""
    start = StartId(7, 1)
    request = Message(
        "s", 1, (0, 2), SendId(start, 3), 300, 12, (0, 11, 2, 0), ((0, 5), (2, 1)), StartId(6, 1), (4, 0, 2, 1, 3),
        "inc", (1, "two", [3.5, b"4"]), (("k", None),), ((4, 0), 2, 1, 3), ((0,), (1, 3)), True, view=2,
    )  # fmt: skip
    response = Message(
        "r", 2, (1,), SendId(StartId(8, 2), 0), 301, 4, (0, 12, 3, 0), ((1, 9),), StartId(8, 2), (7, 1, 0), "inc",
        value={"a": 1}, reason="child", text="no luck",
    )  # fmt: skip
    abort = request._replace(kind="x", call=(7, 1, 0), args=(), named=(), path=(), hosts=(), holds=False)
    commit = abort._replace(kind="c", call=(7, 1), op="", args=(0, 2))
    one_way = request._replace(kind="o", path=((4, 0, 2, 1, 3),), hosts=(), holds=False)
    return [
        request, request._replace(kind="a"), one_way, response, response._replace(reason="", text=""), commit, abort,
        Heartbeat(1, 300, 5, 4, (9, 2), 280, True, 77), Nack(2, (3, 4, 9)), Announce(0, 77, (1, 2)),
        Flush(2, 303, ((0, 7), (1, 3)), (1,), (request, abort)), Flush(0, 1, (), (2,), ()),
    ]  # fmt: skip


def _body(rng: Random) -> bytes:
    """Return the body of a packet with several of these, some of them for a subset of the members."""
    spoken = [invocation.encode(each) for each in _spoken()]
    return b"".join(
        invocation.enclose(rng.choice(spoken), rng.randrange(1 << MEMBERS))
        for _ in range(rng.randrange(1, 5))
    )


def _read_spoken(octets: bytes) -> Spoken:
    return invocation.decode(octets, _Roster)


def _history() -> list[FuzzSample]:
    """Make samples: the last messages that a newcomer gets, and some in which one value has another type."""
    rng, row = Random(3), ["alice", 0, 1, 5, b"hello", 0.5]
    odd = [[*row[:at], _value(rng), *row[at + 1 :]] for at in range(len(row)) for _ in range(5)]
    return [
        sample(_packed(each), varints) for each in ([], [row], [row] * 20, *([row, each] for each in odd))
    ]


# ---- words


def _words() -> list[FuzzSample]:
    """Make samples: the control messages of all arrivals."""
    found = []
    for each in arrivals():
        at = _words_at(each.datagram)
        if at >= 0:
            found.append(each.datagram[at : _end_of_json(each.datagram, at)])
    return [sample(each, json_values) for each in dict.fromkeys(found)]


def _hear(octets: bytes) -> Told:
    """Read a control message, and ask for its fields by every method of `Told`."""
    told = Told.read(octets)
    keys = [key for key in json.loads(octets) if isinstance(key, str)]
    for key in keys[:12]:
        for ask in _asked(told):
            with suppress(WireError):
                ask(key)
    for whole in (lambda: told.do, lambda: told.identity, told.counts, lambda: view_told(told)):
        with suppress(WireError):
            whole()
    return told


def _asked(told: Told) -> tuple[Callable[[str], Any], ...]:
    return (
        told.text, told.number, told.large, told.counts, told.flag, told.numbers, told.texts, told.lists_of_texts, told.pairs,
        told.people, lambda key: told.table(key, 2, 2), lambda key: told.tables(key, 2),
    )  # fmt: skip


# ---- members


def _received() -> list[FuzzSample]:
    """Make samples: two octets for the arrival, then the datagram. If the highest bit is set, no checksum is added."""
    found = []
    for number, each in enumerate(arrivals()):
        if each.stack is not None:
            octets = number.to_bytes(2) + each.datagram
            layout = partial(_packet_fields, start=2) if each.datagram.startswith(b"in") else _miop_fields
            found.append(sample(octets, layout))
    return found


def _miop_fields(data: bytes) -> list[Field]:
    return [Field(at, at + 4, Form.BIG) for at in range(2, len(data) - 3, 4)]


def _receive(octets: bytes) -> None:
    """Let a member receive a datagram, and go on from there."""
    known = arrivals()
    first = int.from_bytes(octets[:2])
    arrival = known[first % (1 << 15) % len(known)]
    if arrival.stack is not None:
        _follow(arrival, octets[2:] if first >> 15 else _sealed(octets[2:]))


def _told() -> list[FuzzSample]:
    """Make samples: two octets for the arrival, then a control message in the place of its own. These are the arrivals' own control
    messages; and for members in every situation all control messages there are, as if they were about their receiver."""
    found: dict[bytes, None] = {}
    heard: Counter[Any] = Counter()
    speaking = [(number, each) for number, each in enumerate(arrivals()) if _words_at(each.datagram) >= 0]
    for number, each in speaking:
        if each.stack is None:
            continue
        who: Stack | Newcomer = pickle.loads(each.stack)
        at = _words_at(each.datagram)
        content = json.loads(each.datagram[at : _end_of_json(each.datagram, at)])
        found[number.to_bytes(2) + said(**content)] = None
        situation = _situation(who), view_of(each.datagram) == OUTSIDE
        heard[situation] += 1
        if heard[situation] <= ALIKE_MAX:
            for do, what in WORDS.items():
                words = content | _about(who, what) | {"do": do}
                found[number.to_bytes(2) + said(**words)] = None
    return [sample(each, _told_fields) for each in found]


def _situation(who: Stack | Newcomer) -> Any:
    """Return the state of a receiver on which the handling of a control message depends most."""
    if isinstance(who, Newcomer):
        return "newcomer"
    return (
        "homeless"
        if who.is_homeless
        else "paused"
        if who.paused
        else "closing"
        if who.closing
        else who.me == 0
    )


def _about(who: Stack | Newcomer, what: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a control message in the receiver's group, about the receiver and the next view."""
    member, number = who.member, 1 if isinstance(who, Newcomer) else who.view.number + 1
    group = who.group if isinstance(who, Newcomer) else group_id(who.identity)
    about: dict[str, Any] = json.loads(
        json.dumps(what).replace(
            '["a", 1, ""]', json.dumps([member.name, member.incarnation, member.address])
        )
    )
    about |= {
        "group": f"{group:08x}",
        "spoken_in": 5,
        "name": member.name,
        "incarnation": member.incarnation,
        "free": 1,
    }
    return about | ({"number": number} if "members" in what and "number" in what else {})


def _told_fields(data: bytes) -> list[Field]:
    return [Field(start + 2, end + 2, form) for start, end, form in json_texts(data[2:])]


def _hear_told(octets: bytes) -> None:
    """Let a member receive a control message, and go on from there."""
    known = arrivals()
    arrival = known[int.from_bytes(octets[:2]) % len(known)]
    at = _words_at(arrival.datagram)
    if arrival.stack is not None and at >= 0:
        end = _end_of_json(arrival.datagram, at)
        _follow(arrival, _sealed(_with_words(arrival.datagram, octets[2:], at, end)))


def _follow(arrival: Arrival, datagram: bytes) -> None:
    """Let a member receive a datagram, and let its timers fire then and later."""
    assert arrival.stack is not None
    who: Stack | Newcomer = pickle.loads(arrival.stack)  # safe, since it was pickled here
    batch = [(datagram, arrival.address)]
    for later in (0.0, 0.2, 5.0):
        now = arrival.now + later
        who.receive(batch, now=now)
        if isinstance(who, Stack):
            for ahead in who.chain.hooks("ahead"):
                ahead(who.view.number + 1)  # as if another member were in the next view
        who.tick(now)
        if isinstance(who, Stack):
            ready = who.ready(now=now)
            _read_by_people([*map(str, ready.notices), *who.view.names, str(ready.error or "")])
        elif who.refused is not None:
            _read_by_people([str(who.refused)])
        batch = []


def _read_by_people(texts: Sequence[str]) -> None:
    """Encode texts, as a log or a file does: none may have lone surrogates."""
    for text in texts:
        text.encode()


DECODERS: Sequence[FuzzedDecoder] = (
    FuzzedDecoder("packets", _packets, _read_packet, again=_packet_again, same=_slots, mend=_mend_packet, weight=4000),
    FuzzedDecoder(
        "packets/co", partial(_made, _co), lambda octets: co.unpack(octets, ME, MEMBERS),
        again=lambda found: co.unpack(co.pack(found), ME, MEMBERS),
    ),
    FuzzedDecoder(
        "packets/sco", partial(_made, _selective), lambda octets: selective.unpack(octets, MEMBERS),
        again=lambda found: selective.unpack(selective.pack(*found), MEMBERS),
    ),
    FuzzedDecoder(
        "packets/shares", partial(_made, _share), lambda octets: shares.get(octets, MEMBERS),
        again=lambda found: shares.get(shares.put(found, MEMBERS), MEMBERS), weight=500,
    ),
    FuzzedDecoder(
        "packets/relay", partial(_made, _relay), lambda octets: relay.get(octets, MEMBERS),
        again=lambda found: relay.get(relay.put(found), MEMBERS), weight=500,
    ),
    FuzzedDecoder(
        "packets/runs", partial(_made, _runs), lambda octets: sequence.get_runs(octets, MEMBERS),
        again=lambda found: sequence.get_runs(sequence.put_runs(found), MEMBERS), weight=500,
    ),
    FuzzedDecoder(
        "packets/known", partial(_made, lambda rng: sequence.put_known(rng.choice((0, 1, 300, COUNT_MAX)))), sequence.get_known,
        again=lambda found: sequence.get_known(sequence.put_known(found)), weight=100,
    ),
    FuzzedDecoder(
        "packets/matrix", partial(_made, _matrix), lambda octets: matrix.get(octets, MEMBERS)[:2],
        again=lambda found: matrix.get(matrix.put(*found), MEMBERS)[:2],
    ),
    FuzzedDecoder(
        "packets/bundle", partial(_made, _bundle), _bundled, again=lambda found: _bundled(bundle.join(found)), weight=500
    ),
    FuzzedDecoder(
        "packets/value", partial(_made, lambda rng: _packed(_value(rng)), 100), _read_value,
        again=lambda found: _read_value(_packed(found)), same=fields_of, weight=1500,
    ),
    FuzzedDecoder(
        "packets/objects", lambda: [sample(invocation.encode(each), varints) for each in _spoken()], _read_spoken,
        again=lambda found: _read_spoken(invocation.encode(found)), same=fields_of,
    ),
    FuzzedDecoder(
        "packets/body", partial(_made, _body), lambda octets: invocation.enclosed(octets, ME),
        again=lambda found: invocation.enclosed(b"".join(map(invocation.enclose, found)), ME) if found else found, weight=500,
    ),
    FuzzedDecoder("packets/history", _history, lambda octets: read_history(octets, 0.0), weight=400),
    FuzzedDecoder("told", _words, _hear, weight=2000, octet_seconds=2e-5),
    FuzzedDecoder("members", _received, _receive, errors=(), mend=partial(_mend_packet, start=2), weight=400, seconds=0.2, octet_seconds=2e-5, memory=1 << 22),
    FuzzedDecoder("members/texts", _told, _hear_told, errors=(), weight=400, seconds=0.2, octet_seconds=2e-5, memory=1 << 22),
)  # fmt: skip
