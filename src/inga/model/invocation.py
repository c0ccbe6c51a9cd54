"""What objects of a group say to each other, and what their members say about it.

A `Message` invokes, answers, commits or aborts. The rest keeps the messages' order and completeness: `Heartbeat`
shows a clock and counts, `Nack` asks again, `Announce` tells those outside that a clock is wanted, `Flush` hands
round what a member said that is gone.

Objects are known by their place: the index of one copy of one object, at one member, in the group's `Roster`.
Vectors have one entry for each place, sequence numbers belong to pairs of members.
"""

from typing import Any, NamedTuple, TypeAlias

SYNCHRONOUS, ASYNCHRONOUS, ONE_WAY, RESPONSE, COMMIT, ABORT = "s", "a", "o", "r", "c", "x"
"""What a message can be."""

REQUESTS = (SYNCHRONOUS, ASYNCHRONOUS, ONE_WAY)

FAIL, CHILD, DEADLOCK, GONE, ORPHAN = "fail", "child", "deadlock", "gone", "orphan"
"""Why an instance aborted: its body failed; a call it made aborted; it died waiting, so that others can go on; a
member it had called is gone; the member that had called it is gone."""

REASONS = (FAIL, CHILD, DEADLOCK, GONE, ORPHAN)

ANY_KEY = "key *"
"""Among the conflicts of a manifest: two messages of one key conflict, whatever keys a function gives them. Their
methods are `key ` and the key."""


class StartId(NamedTuple):
    """When and where an instance began: the object's clock, then the place. The papers' sid."""

    clock: int
    place: int


class SendId(NamedTuple):
    """A send, named by its instance and its place in it. The papers' sid:no."""

    start: StartId
    number: int


CallId: TypeAlias = tuple[int, ...]
"""A call, by where its instance comes from and which of its calls it is. Copies of a replicated object that run the
same instance give the same call the same name: (clock, place, call) for a call of a root, and for one of an instance
that a request started, (clock, place, number) of that request, the object, and the call."""

Path: TypeAlias = tuple[Any, ...]
"""The lineage of an instance or a request: a tuple that names the root, then in turn the number of a call and the
object that runs it. Of two paths the smaller is the older; an ancestor's is a prefix."""

Numbers: TypeAlias = tuple[tuple[int, int], ...]
"""(member, number) for each member that a message goes to."""

OrderKey: TypeAlias = tuple[int, int]
"""Clock and sender of a message. Smaller is earlier, at every destination."""


class Message(NamedTuple):
    """One message, as all its destinations get it."""

    kind: str
    src: int  # place
    dst: tuple[int, ...]  # places
    id: SendId
    ts: int  # the sender's clock
    ev: int  # which of the sending object's messages
    vector: tuple[int, ...]  # of the sending instance before this send
    sq: Numbers
    cohort: StartId  # shared by compatible instances running together; nothing depends on it
    call: CallId = ()  # the call that is made, answered or aborted; commits: what those of the instance begin with
    op: str = ""
    args: tuple[Any, ...] = ()  # commits: which of the instance's calls
    named: tuple[tuple[str, Any], ...] = ()
    path: Path = ()  # requests: the lineage
    hosts: tuple[tuple[int, ...], ...] = ()  # requests: the places of each instance in the lineage
    holds: bool = False  # requests: some instance in the lineage can block others
    value: Any = None  # responses: what came out of it
    reason: str = ""  # responses: why it aborted; empty if it committed
    text: str = ""  # the same for a person
    view: int = 0  # how many members were gone, as its sender had agreed upon

    @property
    def key(self) -> OrderKey:
        """Its place in the order."""
        return self.ts, self.src


class Heartbeat(NamedTuple):
    """A member's clock, and how far it got with one other."""

    member: int
    ts: int
    sent: int  # messages to the receiver so far
    ack: int  # of the receiver's messages, all up to this one are here
    evs: tuple[int, ...]  # messages of each of the member's places, in order
    settled: int  # everything stamped up to here is everywhere
    wanted: bool = False  # answer with a heartbeat
    waits: int = 0  # bytes of the receiver's messages that wait here, of those up to `ack`


class Nack(NamedTuple):
    """Please send these numbers again."""

    member: int
    numbers: tuple[int, ...]


class Announce(NamedTuple):
    """Those members want to see a clock of at least `ts`."""

    member: int
    ts: int
    dst: tuple[int, ...]  # members


class Flush(NamedTuple):
    """What the suspects said to more than one, as far as it is here."""

    member: int
    ts: int
    sq: Numbers
    suspects: tuple[int, ...]
    messages: tuple[Message, ...]


Spoken: TypeAlias = Message | Heartbeat | Nack | Announce | Flush
