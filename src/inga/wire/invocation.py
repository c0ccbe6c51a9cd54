"""What objects and their members say to each other, as bytes.

    message    0, kind, then src, dst, id, ts, ev, vector, numbers, cohort, view, call, and by kind
                 requests    op, arguments, path, hosts, holds
                 responses   op, value, reason, text
                 aborts      op
                 commits     numbers of calls
    heartbeat  1, member, ts, sent, ack, settled, waits, wanted, counts of its places
    nack       2, member, numbers
    announce   3, member, ts, members
    flush      4, member, ts, numbers, suspects, messages, each with its length

All numbers are varints, lists begin with their length, values are those of `inga.wire.value`.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Protocol

from inga.model.errors import WireError
from inga.model.invocation import (
    ABORT,
    COMMIT,
    ONE_WAY,
    REASONS,
    REQUESTS,
    RESPONSE,
    Announce,
    CallId,
    Flush,
    Heartbeat,
    Message,
    Nack,
    Numbers,
    Path,
    SendId,
    Spoken,
    StartId,
)
from inga.model.packet import Buffer
from inga.wire import value, varint

KINDS = (*REQUESTS, RESPONSE, COMMIT, ABORT)
MESSAGE, HEARTBEAT, NACK, ANNOUNCE, FLUSH = range(5)

PATH_MAX = 1 << 10
"""Calls within calls, twice."""

CALL_LENGTHS = (3, 5)
BASE_LENGTHS = (2, 4)
"""Of the name of a call, and of what it begins with."""

ROOT_LENGTHS = (2, 3, 4, 5)


class RosterShape(Protocol):
    """What numbers can mean: the places of a group, and its members."""

    @property
    def places(self) -> Sequence[Any]: ...
    @property
    def members(self) -> Sequence[int]: ...


def encode(spoken: Spoken) -> bytes:
    """As bytes."""
    out = bytearray()
    match spoken:
        case Message():
            _put_message(out, spoken)
        case Heartbeat(member, ts, sent, ack, evs, settled, wanted, waits):
            out.append(HEARTBEAT)
            for number in (member, ts, sent, ack, settled, waits, int(wanted)):
                varint.put(out, number)
            _put_list(out, evs)
        case Nack(member, numbers):
            out.append(NACK)
            varint.put(out, member)
            _put_list(out, numbers)
        case Announce(member, ts, dst):
            out.append(ANNOUNCE)
            varint.put(out, member)
            varint.put(out, ts)
            _put_list(out, dst)
        case Flush(member, ts, sq, suspects, messages):
            out.append(FLUSH)
            varint.put(out, member)
            varint.put(out, ts)
            _put_pairs(out, sq)
            _put_list(out, suspects)
            varint.put(out, len(messages))
            for message in messages:
                _put_message(out, message)
    return bytes(out)


def decode(data: Buffer, shape: RosterShape) -> Spoken:
    """What `encode` made, in a group of that shape; WireError for anything else."""
    reader = _Reader(data, shape)
    spoken = reader.spoken()
    if reader.at != len(data):
        raise WireError("malformed", "more than one thing")
    return spoken


def _put_message(out: bytearray, message: Message) -> None:
    put = varint.put
    kind = message.kind
    out.append(MESSAGE)
    out.append(KINDS.index(kind))
    put(out, message.src)
    _put_list(out, message.dst)
    for number in (*message.id.start, message.id.number, message.ts, message.ev):
        put(out, number)
    _put_list(out, message.vector)
    _put_pairs(out, message.sq)
    for number in (*message.cohort, message.view):
        put(out, number)
    _put_list(out, message.call)
    if kind == COMMIT:
        _put_list(out, message.args)
    else:
        value.put(out, message.op)
    if kind in REQUESTS:
        value.put(out, message.args)
        value.put(out, dict(message.named))
        _put_list(out, message.path[0])
        _put_list(out, message.path[1:])
        put(out, len(message.hosts))
        for places in message.hosts:
            _put_list(out, places)
        out.append(message.holds)
    elif kind == RESPONSE:
        value.put(out, message.value)
        out.append(REASONS.index(message.reason) + 1 if message.reason else 0)
        value.put(out, message.text)


def _put_list(out: bytearray, numbers: Sequence[int]) -> None:
    varint.put(out, len(numbers))
    for number in numbers:
        varint.put(out, number)


def _put_pairs(out: bytearray, pairs: Numbers) -> None:
    varint.put(out, len(pairs))
    for one, other in pairs:
        varint.put(out, one)
        varint.put(out, other)


class _Reader:
    """Reads from `at` on, and believes nothing."""

    def __init__(self, data: Buffer, shape: RosterShape) -> None:
        self.data = data
        self.at = 0
        self.shape = shape
        self.width = len(shape.places)

    def spoken(self) -> Spoken:
        match self.octet(FLUSH):
            case 0:
                return self.message()
            case 1:
                member, ts, sent, ack, settled, waits = self.member(), *(self.number() for _ in range(5))
                wanted = bool(self.octet(1))
                return Heartbeat(member, ts, sent, ack, self.numbers(self.width), settled, wanted, waits)
            case 2:
                return Nack(self.member(), self.numbers(len(self.data)))
            case 3:
                return Announce(self.member(), self.number(), self.members())
            case _:
                return self.flush()

    def message(self) -> Message:
        kind = KINDS[self.octet(len(KINDS) - 1)]
        src, dst = self.place(), self.places()
        id = SendId(StartId(self.number(), self.place()), self.number())
        ts, ev = self.number(), self.number()
        vector = self.numbers(self.width)
        if len(vector) != self.width or not dst or id.start.place != src or not ts or not ev:
            raise WireError("malformed", "no message of this group")
        sq, cohort, view, call = (
            self.pairs(),
            StartId(self.number(), self.place()),
            self.number(),
            self.call(BASE_LENGTHS if kind == COMMIT else CALL_LENGTHS),
        )
        if kind == COMMIT:
            numbers = self.numbers(len(self.data))
            return Message(kind, src, dst, id, ts, ev, vector, sq, cohort, call, args=numbers, view=view)
        message = Message(kind, src, dst, id, ts, ev, vector, sq, cohort, call, self.text(), view=view)
        if kind in REQUESTS:
            return self.request(message)
        return self.response(message) if kind == RESPONSE else message

    def request(self, message: Message) -> Message:
        args, named = self.value(), self.value()
        if type(args) is not tuple or type(named) is not dict or not all(type(key) is str for key in named):
            raise WireError("malformed", "no arguments")
        path = self.path()
        count = self.count(PATH_MAX)
        hosts = tuple(self.places() for _ in range(count))
        holds = bool(self.octet(1))
        if not all(hosts) or (message.kind == ONE_WAY) == bool(hosts):
            raise WireError("malformed", "a request that nobody made")
        return message._replace(args=args, named=tuple(named.items()), path=path, hosts=hosts, holds=holds)

    def response(self, message: Message) -> Message:
        result = self.value()
        at = self.octet(len(REASONS))
        return message._replace(value=result, reason=REASONS[at - 1] if at else "", text=self.text())

    def flush(self) -> Flush:
        member, ts, sq, suspects = self.member(), self.number(), self.pairs(), self.members()
        messages = []
        for _ in range(self.count(len(self.data))):
            if self.octet(MESSAGE) != MESSAGE:
                raise WireError("malformed", "no message")
            messages.append(self.message())
        return Flush(member, ts, sq, suspects, tuple(messages))

    # Pieces

    def number(self) -> int:
        number, self.at = varint.get(self.data, self.at)
        if number >> 62:
            raise WireError("malformed", "a number that nobody counts to")
        return number

    def count(self, most: int) -> int:
        """Of things that take a byte each, at least."""
        number = self.number()
        if number > most or number > len(self.data) - self.at:
            raise WireError("truncated", "in a list")
        return number

    def octet(self, most: int) -> int:
        if self.at >= len(self.data):
            raise WireError("truncated", "at the end")
        found = self.data[self.at]
        self.at += 1
        if found > most:
            raise WireError("malformed", "no such kind")
        return found

    def numbers(self, most: int) -> tuple[int, ...]:
        return tuple([self.number() for _ in range(self.count(most))])

    def place(self) -> int:
        place = self.number()
        if place >= self.width:
            raise WireError("malformed", "no such place")
        return place

    def places(self) -> tuple[int, ...]:
        return _rising(tuple([self.place() for _ in range(self.count(self.width))]))

    def member(self) -> int:
        member = self.number()
        if member not in self.shape.members:
            raise WireError("malformed", "no such member")
        return member

    def members(self) -> tuple[int, ...]:
        return _rising(tuple([self.member() for _ in range(self.count(self.width))]))

    def pairs(self) -> Numbers:
        return tuple([(self.member(), self.number()) for _ in range(self.count(self.width))])

    def call(self, lengths: tuple[int, int]) -> CallId:
        call = self.numbers(max(lengths))
        if len(call) not in lengths or call[1] >= self.width:
            raise WireError("malformed", "no call")
        return call

    def path(self) -> Path:
        root = self.numbers(max(ROOT_LENGTHS))
        if len(root) not in ROOT_LENGTHS:
            raise WireError("malformed", "no lineage")
        return (root, *self.numbers(PATH_MAX))

    def value(self) -> Any:
        found, self.at = value.get(self.data, self.at)
        return found

    def text(self) -> str:
        found = self.value()
        if type(found) is not str:
            raise WireError("malformed", "no text")
        return found


def _rising(numbers: tuple[int, ...]) -> tuple[int, ...]:
    if any(one >= other for one, other in pairwise(numbers)):
        raise WireError("malformed", "a list out of order")
    return numbers
