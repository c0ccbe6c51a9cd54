"""The encoding of messages between objects, and between their members.

    message    0, kind, two rows, and by kind
                 requests    op, arguments by place and by name
                 responses   op, value, text
                 aborts      op
    heartbeat  1, a row: member, ts, sent, ack, settled, waits, wanted, counts of its places
    nack       2, a row: member, numbers
    announce   3, a row: member, ts, members
    flush      4, a row: member, ts, the counts of numbers, suspects and messages, then numbers and suspects; the messages follow

The first row of a message has small numbers, places and lengths: src, the place where its instance started, the place of its
cohort, the lengths of dst, sq, vector and call, dst, the members of sq; then for requests holds, the length of
the root, hosts, each with its length; for responses the reason. The second row has counts: the clock at which its instance started,
its number, ts, ev, clock of the cohort, view, vector, numbers of sq, call; then for requests the path; for commits
numbers of calls. Rows are those of `inga.wire.row`, values those of `inga.wire.value`.

All that a member sends in one turn shares a packet, whose body has one part after the other, each as

    an octet: the size of the bit set; 0: the part is for all members that get the body
    a bit set of members, low byte first
    four bytes: the length of what follows
    a message, heartbeat, nack, announce or flush
"""

from collections.abc import Sequence
from itertools import chain, pairwise
from struct import Struct
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
    Flush,
    Heartbeat,
    Message,
    Nack,
    SendId,
    Spoken,
    StartId,
)
from inga.model.packet import Buffer
from inga.wire import row, value

KINDS = (*REQUESTS, RESPONSE, COMMIT, ABORT)
KIND_NUMBERS = {kind: number for number, kind in enumerate(KINDS)}
MESSAGE, HEARTBEAT, NACK, ANNOUNCE, FLUSH = range(5)
LEAST = (0, 7, 1, 2, 5)
"""The least number of numbers in the row of each kind."""

PATH_MAX = 1 << 10
"""The most numbers in a path behind its root: two for each nested call."""

CALL_LENGTHS = (3, 5)
BASE_LENGTHS = (2, 4)
"""The possible lengths of a call's id, and of the prefix that the calls of an instance share."""

ROOT_LENGTHS = (2, 3, 4, 5)


LENGTH = Struct(">I")


class RosterShape(Protocol):
    """The valid places and members of a group, by which numbers are checked."""

    @property
    def places(self) -> Sequence[Any]: ...
    @property
    def members(self) -> Sequence[int]: ...


def encode(spoken: Spoken) -> bytes:
    """The bytes of one message."""
    out = bytearray()
    match spoken:
        case Message():
            _put_message(out, spoken)
        case Heartbeat(member, ts, sent, ack, evs, settled, wanted, waits):
            out.append(HEARTBEAT)
            row.put(out, (member, ts, sent, ack, settled, waits, wanted, *evs))
        case Nack(member, numbers):
            out.append(NACK)
            row.put(out, (member, *numbers))
        case Announce(member, ts, dst):
            out.append(ANNOUNCE)
            row.put(out, (member, ts, *dst))
        case Flush(member, ts, sq, suspects, messages):
            out.append(FLUSH)
            lengths = (len(sq), len(suspects), len(messages))
            row.put(out, (member, ts, *lengths, *chain.from_iterable(sq), *suspects))
            for message in messages:
                _put_message(out, message)
    return bytes(out)


def enclose(spoken: bytes, members: int = 0) -> bytes:
    """An encoded message as a part of a body, for the members of a bit set; 0: for all members that get the body."""
    size = (members.bit_length() + 7) // 8
    return bytes((size,)) + members.to_bytes(size, "little") + LENGTH.pack(len(spoken)) + spoken


def enclosed(body: Buffer, member: int) -> list[bytes]:
    """The parts of a body that are for `member`; WireError if the body is invalid."""
    data, at, found = bytes(body), 0, []
    if not data:
        raise WireError("truncated", "an empty body")
    while at < len(data):
        start = at + 1 + data[at]
        end = start + LENGTH.size
        if end > len(data):
            raise WireError("truncated", "in a body")
        members = data[at + 1 : start]
        at = end + LENGTH.unpack_from(data, start)[0]
        if at > len(data):
            raise WireError("truncated", "in a body")
        if not members or int.from_bytes(members, "little") >> member & 1:
            found.append(data[end:at])
    return found


def decode(data: Buffer, shape: RosterShape) -> Spoken:
    """Read what `encode` made, in a group of that shape; any other bytes raise WireError."""
    reader = _Reader(bytes(data), shape)
    spoken = reader.spoken()
    if reader.at != len(reader.data):
        raise WireError("malformed", "more than one thing")
    return spoken


def _put_message(out: bytearray, message: Message) -> None:
    kind, src, dst, ((clock, place), number), ts, ev, vector, sq, cohort, call, op, args, *_ = message
    out.append(MESSAGE)
    out.append(KIND_NUMBERS[kind])
    lengths = len(dst), len(sq), len(vector), len(call)
    small = [src, place, cohort.place, *lengths, *dst, *[to for to, _ in sq]]
    counts = [clock, number, ts, ev, cohort.clock, message.view, *vector, *[each for _, each in sq], *call]
    if kind in REQUESTS:
        root, *rest = message.path
        small += (message.holds, len(root))
        for places in message.hosts:
            small += (len(places), *places)
        counts += (*root, *rest)
    elif kind == RESPONSE:
        small.append(REASONS.index(message.reason) + 1 if message.reason else 0)
    elif kind == COMMIT:
        counts += args
    row.put(out, small)
    row.put(out, counts)
    if kind != COMMIT:
        value.put(out, op)
    if kind in REQUESTS:
        value.put(out, args)
        value.put(out, dict(message.named))
    elif kind == RESPONSE:
        value.put(out, message.value)
        value.put(out, message.text)


class _Reader:
    """Reads from `at` on, and checks every number."""

    def __init__(self, data: bytes, shape: RosterShape) -> None:
        self.data = data
        self.at = 0
        self.shape = shape
        self.width = len(shape.places)

    def spoken(self) -> Spoken:
        kind = self.octet(FLUSH)
        if kind == MESSAGE:
            return self.message()
        numbers = self.row()
        if len(numbers) < LEAST[kind]:
            raise WireError("truncated", "in a row of numbers")
        self.check_members(numbers[:1])
        if kind == HEARTBEAT:
            member, ts, sent, ack, settled, waits, wanted, *evs = numbers
            if wanted > 1 or len(evs) > self.width:
                raise WireError("malformed", "no heartbeat of this group")
            return Heartbeat(member, ts, sent, ack, tuple(evs), settled, bool(wanted), waits)
        if kind == NACK:
            return Nack(numbers[0], numbers[1:])
        if kind == ANNOUNCE:
            return Announce(numbers[0], numbers[1], self.check_members(_rising(numbers[2:])))
        return self.flush(numbers)

    def message(self) -> Message:
        kind, width = KINDS[self.octet(len(KINDS) - 1)], self.width
        small, counts = self.row(), self.row()
        if len(small) < 7:
            raise WireError("truncated", "in a message")
        src, place, cohort_place, to, pairs, places, names = small[:7]
        # The offsets of the members of sq, the numbers of sq and the call, and of the parts that depend on the kind.
        members, numbers = 7 + to, 6 + places
        at, named = members + pairs, numbers + pairs
        tail = named + names
        if len(small) < at or len(counts) < tail:
            raise WireError("truncated", "in a message")
        dst = _rising(small[7:members])
        clock, number, ts, ev, cohort_clock, view = counts[:6]
        call = counts[named:tail]
        if (
            not dst
            or max(src, cohort_place, dst[-1]) >= width
            or place != src
            or places != width
            or not (ts and ev)
            or names not in (BASE_LENGTHS if kind == COMMIT else CALL_LENGTHS)
            or call[1] >= width
        ):
            raise WireError("malformed", "no message of this group")
        head: tuple[Any, ...] = (
            kind,
            src,
            dst,
            SendId(StartId(clock, place), number),
            ts,
            ev,
            counts[6:numbers],
            tuple(zip(self.check_members(small[members:at]), counts[numbers:named], strict=True)),
            StartId(cohort_clock, cohort_place),
            call,
        )
        small, counts = small[at:], counts[tail:]
        if kind in REQUESTS:
            return self.request(head, view, small, counts)
        if kind == RESPONSE:
            return self.response(head, view, small, counts)
        if small or (counts and kind == ABORT):
            raise WireError("malformed", "more than a message has")
        if kind == COMMIT:
            return Message._make((*head, "", counts, (), (), (), False, None, "", "", view))
        return Message._make((*head, self.text(), (), (), (), (), False, None, "", "", view))

    def request(
        self, head: tuple[Any, ...], view: int, small: tuple[int, ...], counts: tuple[int, ...]
    ) -> Message:
        op, args, named = self.text(), self.value(), self.value()
        if type(args) is not tuple or type(named) is not dict or not all(type(key) is str for key in named):
            raise WireError("malformed", "no arguments")
        if len(small) < 2 or small[1] not in ROOT_LENGTHS or not 0 <= len(counts) - small[1] <= PATH_MAX:
            raise WireError("malformed", "no lineage")
        holds, root = small[0], small[1]
        hosts, at = [], 2
        while at < len(small):
            end = at + 1 + small[at]
            places = _rising(small[at + 1 : end])
            if not places or end > len(small) or places[-1] >= self.width:
                raise WireError("malformed", "no such places")
            hosts.append(places)
            at = end
        if holds > 1 or len(hosts) > PATH_MAX or (head[0] == ONE_WAY) == bool(hosts):
            raise WireError("malformed", "a request that nobody made")
        path = (counts[:root], *counts[root:])
        said = op, args, tuple(named.items())
        return Message._make((*head, *said, path, tuple(hosts), bool(holds), None, "", "", view))

    def response(
        self, head: tuple[Any, ...], view: int, small: tuple[int, ...], counts: tuple[int, ...]
    ) -> Message:
        if len(small) != 1 or small[0] > len(REASONS) or counts:
            raise WireError("malformed", "no response")
        reason = REASONS[small[0] - 1] if small[0] else ""
        op, result, text = self.text(), self.value(), self.text()
        return Message._make((*head, op, (), (), (), (), False, result, reason, text, view))

    def flush(self, numbers: tuple[int, ...]) -> Flush:
        member, ts, pairs, suspects, count = numbers[:5]
        at = 5 + 2 * pairs
        if len(numbers) != at + suspects or count > len(self.data):
            raise WireError("malformed", "no flush")
        members = self.check_members(numbers[5:at:2])
        sq = tuple(zip(members, numbers[6:at:2], strict=True))
        gone = self.check_members(_rising(numbers[at:]))
        messages = []
        for _ in range(count):
            if self.octet(MESSAGE) != MESSAGE:
                raise WireError("malformed", "no message")
            messages.append(self.message())
        return Flush(member, ts, sq, gone, tuple(messages))

    # Pieces

    def octet(self, most: int) -> int:
        if self.at >= len(self.data):
            raise WireError("truncated", "at the end")
        found = self.data[self.at]
        self.at += 1
        if found > most:
            raise WireError("malformed", "no such kind")
        return found

    def row(self) -> tuple[int, ...]:
        numbers, self.at = row.get(self.data, self.at)
        return numbers

    def check_members(self, members: tuple[int, ...]) -> tuple[int, ...]:
        """Return these members, if all of them are of this group."""
        known = self.shape.members
        for member in members:
            if member not in known:
                raise WireError("malformed", "no such member")
        return members

    def value(self) -> Any:
        found, self.at = value.get(self.data, self.at)
        return found

    def text(self) -> str:
        found = self.value()
        if type(found) is not str:
            raise WireError("malformed", "no text")
        return found


def _rising(numbers: tuple[int, ...]) -> tuple[int, ...]:
    if len(numbers) > 1 and any(one >= other for one, other in pairwise(numbers)):
        raise WireError("malformed", "a list out of order")
    return numbers
