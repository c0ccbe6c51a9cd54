"""The messages between objects of a group, and those between their members that keep them ordered and complete.

A `Message` invokes, answers, commits or aborts. The others serve order and completeness: `Heartbeat` carries
a clock and counts, `Nack` requests messages again, `Announce` tells other members that some members wait for a clock, `Flush`
forwards messages of a failed member.

Objects are identified by their place: the index of one copy of one object, at one member, in the group's `Roster`.
Vectors have one entry for each place, sequence numbers belong to pairs of members.
"""

from typing import Any, NamedTuple, TypeAlias

SYNCHRONOUS, ASYNCHRONOUS, ONE_WAY, RESPONSE, COMMIT, ABORT = "s", "a", "o", "r", "c", "x"
"""The kinds of messages."""

REQUESTS = (SYNCHRONOUS, ASYNCHRONOUS, ONE_WAY)

FAIL, CHILD, DEADLOCK, GONE, ORPHAN = "fail", "child", "deadlock", "gone", "orphan"
"""The reasons why an instance aborted: its body failed; a call that it made aborted; it died while it waited, so that an older
instance can go on; a member that it had called is gone; the member that had called it is gone."""

REASONS = (FAIL, CHILD, DEADLOCK, GONE, ORPHAN)

ANY_KEY = "key *"
"""Among the conflicts in a manifest: two messages of one key conflict, whatever keys a function gives them. In rows, the
methods of such messages are `key ` and the key."""


class StartId(NamedTuple):
    """When and where an instance began: the object's clock, then the place. The papers' sid."""

    clock: int
    place: int


class SendId(NamedTuple):
    """A send, identified by its instance and its number in it. The papers' sid:no."""

    start: StartId
    number: int


CallId: TypeAlias = tuple[int, ...]
"""A call, identified by the origin of its instance and its number in it. Copies of a replicated object that run the
same instance give the same call the same id: (clock, place, call) for a call of a root, and for a call of an instance
that a request started, (clock, place, number) of that request, the object, and the call."""

Path: TypeAlias = tuple[Any, ...]
"""The ancestry of an instance or a request: a tuple that names the root, then in turn the number of a call and the
object that runs it. Of two paths the smaller is the older; the path of an ancestor is a prefix."""

Numbers: TypeAlias = tuple[tuple[int, int], ...]
"""(member, sequence number) for each member to which a message is sent."""

OrderKey: TypeAlias = tuple[int, int]
"""Clock and place of a message's sender. A smaller key is earlier, at every destination."""


class Message(NamedTuple):
    """One message, the same for all its destinations."""

    kind: str
    src: int  # place
    dst: tuple[int, ...]  # places
    id: SendId
    ts: int  # the sender's clock
    ev: int  # the number of this message among those of the sending place
    vector: tuple[int, ...]  # of the sending instance before this send
    sq: Numbers
    cohort: StartId  # shared by compatible instances running together; nothing depends on it
    call: CallId = ()  # the call that is made, answered or aborted; commits: the prefix of the instance's calls
    op: str = ""
    args: tuple[Any, ...] = ()  # commits: which of the instance's calls
    named: tuple[tuple[str, Any], ...] = ()
    path: Path = ()  # requests: the ancestry
    hosts: tuple[tuple[int, ...], ...] = ()  # requests: the places of each instance in the ancestry
    holds: bool = False  # requests: some instance in the ancestry can block others
    value: Any = None  # responses: the result
    reason: str = ""  # responses: why it aborted; empty if it committed
    text: str = ""  # the same for a person
    view: int = 0  # how many members were gone, as far as its sender had agreed with the others

    @property
    def key(self) -> OrderKey:
        """Its place in the order."""
        return self.ts, self.src


class Heartbeat(NamedTuple):
    """A member's clock, and what it has sent to the receiver and has received from it."""

    member: int
    ts: int
    sent: int  # messages to the receiver so far
    ack: int  # all of the receiver's messages up to this number have arrived
    evs: tuple[int, ...]  # messages of each of the member's places, in order
    settled: int  # all messages stamped up to this clock have arrived everywhere
    wanted: bool = False  # answer with a heartbeat
    waits: int = 0  # bytes of the receiver's messages up to `ack` that wait at the member


class Nack(NamedTuple):
    """A request to send the messages of these numbers again."""

    member: int
    numbers: tuple[int, ...]


class Announce(NamedTuple):
    """A notification that the members `dst` want to see a clock of at least `ts`."""

    member: int
    ts: int
    dst: tuple[int, ...]  # members


class Flush(NamedTuple):
    """Messages that failed members (`suspects`) sent to more than one member, as far as the sender has them."""

    member: int
    ts: int
    sq: Numbers
    suspects: tuple[int, ...]
    messages: tuple[Message, ...]


Spoken: TypeAlias = Message | Heartbeat | Nack | Announce | Flush
