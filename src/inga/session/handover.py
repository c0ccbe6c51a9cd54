"""States of objects for newcomers: what the old members had when the view began, piece by piece, from one of them.

    ask        a newcomer to a member that has the state: a request from this octet on, in so many pieces
    piece      one piece, from this octet on, and the size of the whole state
    none       the state cannot be handed over, for this reason
    lack       we are newcomers as well and lack the state, and all old members are gone
    complete   a newcomer to all: it has everything that it lacked; or to a newcomer: the question whether it has

Layers say which states they lack and which members have them; the contents mean nothing here. A newcomer asks at its own pace, again if
nothing arrives, and another member if the one it asked is gone: all old members have the same state, since they began the view with it. They keep
it until every newcomer has said that it is complete, or is gone, and ask those that have not.

If all old members are gone, newcomers ask each other. One of them may have received the whole state: then the others get it
from that one. If all of them lack it, they go on with the state that one of them has itself: a member that was cut off comes back with
the state it had then. It is the member that had one in the latest view, and of several the first. All choose the same member, since `lack`
names the newcomers among which the choice is made: members that do not agree yet on who is gone ignore each other's.

Rejected: to let each newcomer go on with its own state. Copies would differ for good.
"""

from typing import TYPE_CHECKING, Any

from inga.model.compiled import mypyc_attr
from inga.model.errors import UsageError, WireError
from inga.model.packet import Packet
from inga.model.text import printable
from inga.session.alarms import NEVER, Backoff
from inga.session.pieces import EarlyPieces, FetchPace, answer_size, note_state, piece_size
from inga.stack.hooks import Lack
from inga.wire.told import TEXT_MAX, Told

if TYPE_CHECKING:
    from inga.session.session import Session

REMINDS, REMINDS_MAX = 0.5, 30.0
"""Seconds before a member that keeps a state for a newcomer asks whether it has arrived: first, and after doubling."""

STATE_MAX = 1 << 30
"""Octets of one state, at most."""


class _Coming:
    """A state that we are fetching."""

    __slots__ = ("data", "due", "early", "pace")

    def __init__(self) -> None:
        self.data = bytearray()
        self.early = EarlyPieces()
        self.pace = FetchPace()
        self.due = -NEVER  # when the request is repeated


@mypyc_attr(allow_interpreted_subclasses=True)
class Handover:
    """Fetches and gives states of objects; part of the session."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._come: dict[str, _Coming] = {}  # by topic, each state that we lack and have requested
        # For each state that newcomers have to find among themselves: these newcomers; and which of them have said that they lack it, with the
        # last view in which each had one itself.
        self._among: dict[str, list[int]] = {}
        self._heard: dict[str, dict[int, int]] = {}
        self._given: dict[str, bytes] = {}  # states that were requested in this view
        # How far each member was sent each of them, in octets.
        self._given_to: dict[tuple[str, int], int] = {}
        self._reminding = Backoff(REMINDS, REMINDS_MAX)
        self._reminds_at = NEVER  # when to ask the newcomers for which we keep states
        self.wake = NEVER

    def view(self) -> None:
        self._come.clear()
        self._among.clear()
        self._heard.clear()
        self._given.clear()
        self._given_to.clear()
        self._reminds_at = NEVER
        # No member lacks a state in a first view of listed members; in any other view we look once all layers know of it.
        self.wake = self._session.stack.now if self._session.stack.view.attempt else NEVER

    def tick(self, now: float) -> None:
        self.wake = NEVER
        for topic, lack in self._lacking().items():
            coming = self._come.get(topic)
            if coming is None or now >= coming.due:
                coming = self._ask(topic, lack)
            if coming is not None:
                self.wake = min(self.wake, coming.due)
        self._remind(now)

    def on_ask(self, src: int, told: Told) -> None:
        """A newcomer requests a state, from some octet on."""
        topic, offset = told.text("topic"), told.large("offset")
        pieces, among = told.number("pieces"), told.numbers("among")
        lack = self._lacking().get(topic)
        if lack is not None:
            if among and among == self._company(topic, lack):
                self._say(src, "lack", {"topic": topic, "among": among, "since": lack.since})
            return
        try:
            state = self._state(topic)
        except UsageError as error:
            self._say(src, "none", {"topic": topic, "why": printable(str(error))[:TEXT_MAX]})
            return
        size = piece_size(self._session.stack)
        end = min(len(state), offset + answer_size(pieces, size))
        given, repeats = self._given_to.get((topic, src), 0), self._session.hearing.repeats
        if offset < given and not repeats(src, max(0, end - offset), self._session.stack.now):
            self._session.stack.reject("budget")
            return
        self._given_to[topic, src] = max(end, given)
        for at in range(offset, end, size):
            told_of = {"topic": topic, "offset": at, "total": len(state), "ask": at + size >= end}
            self._say(src, "piece", told_of, state[at : min(at + size, end)])

    def on_piece(self, packet: Packet, told: Told) -> None:
        stack, topic = self._session.stack, told.text("topic")
        offset, total = told.large("offset"), told.large("total")
        told.flag("ask")  # raises an error if it is missing
        lack = self._lacking().get(topic)
        if lack is None:
            return
        if total > STATE_MAX or offset + len(packet.body) > total:
            raise WireError("malformed", "a state larger than it says, or than any")
        coming = self._come.setdefault(topic, _Coming())
        pieces = coming.early.in_turn(len(coming.data), offset, bytes(packet.body), told)
        if not pieces:
            return
        for body, _ in pieces:
            coming.data += body
        self._session.hearing.wanted(packet.src, [len(body) for body, _ in pieces])
        asks = any(piece.flag("ask") for _, piece in pieces)
        coming.pace.came(stack.now, is_last=asks)
        if len(coming.data) >= total:
            self._take(topic, bytes(coming.data[:total]))
            note_state(stack, packet.src, total, topic)
            return
        if asks:
            self._ask(topic, lack)
        else:
            coming.due = stack.now + coming.pace.wait(stack.rng)
        self.wake = min(self.wake, coming.due)

    def on_none(self, told: Told) -> None:
        if told.text("topic") in self._lacking():
            self._session.stack.fail(UsageError(f"no state for one who joins: {told.text('why')}"))

    def on_lack(self, src: int, told: Told) -> None:
        """Another newcomer lacks the state as well."""
        topic, among, since = told.text("topic"), told.numbers("among"), told.number("since")
        lack = self._lacking().get(topic)
        if lack is not None and src in lack.others and among == self._company(topic, lack):
            self._heard[topic][src] = since
            self._choose(topic, lack)

    def on_complete(self, src: int, told: Told) -> None:
        """A newcomer has everything, or a member asks whether we have."""
        if not told.flag("ask"):
            self.complete(src)
        elif not self._lacking():
            self._say(src, "complete", {"ask": False})

    def complete(self, member: int) -> None:
        """A newcomer has everything, or is gone: once no newcomer is incomplete, drop the states kept for them."""
        for complete in self._session.stack.chain.hooks("complete"):
            complete(member)
        if not self._awaited():
            self._given.clear()

    def _awaited(self) -> set[int]:
        """Return the newcomers for which we keep states."""
        return {
            member for incomplete in self._session.stack.chain.hooks("incomplete") for member in incomplete()
        }

    def _remind(self, now: float) -> None:
        """Ask the newcomers for which we keep states whether they have them: their `complete` may be lost."""
        awaited, rng = self._awaited(), self._session.stack.rng
        if not awaited:
            self._reminds_at = NEVER
        elif self._reminds_at == NEVER:
            self._reminds_at = now + self._reminding.start()
        elif now >= self._reminds_at:
            for member in sorted(awaited):
                self._say(member, "complete", {"ask": True})
            self._reminds_at = now + self._reminding.next(rng)
        self.wake = min(self.wake, self._reminds_at)

    def _lacking(self) -> dict[str, Lack]:
        """Return the states that layers lack, by topic."""
        found: dict[str, Lack] = {}
        for lacks in self._session.stack.chain.hooks("lacks"):
            found |= lacks()
        return found

    def _ask(self, topic: str, lack: Lack) -> _Coming | None:
        """Request the rest of a state; return None if nobody is asked, since the group goes on with ours."""
        stack, among = self._session.stack, self._company(topic, lack)
        if among:
            whom = self._choose(topic, lack)
        else:
            whom = [next(member for member in lack.holders if member in stack.peers)]
        if not whom:
            return None
        coming = self._come.setdefault(topic, _Coming())
        asked = {"offset": len(coming.data), "pieces": coming.pace.ask(stack.now), "among": among}
        for member in whom:
            self._say(member, "ask", {"topic": topic, **asked})
        coming.due = stack.now + coming.pace.wait(stack.rng)
        return coming

    def _company(self, topic: str, lack: Lack) -> list[int]:
        """Return the newcomers that are still present, ourselves included, if all old members are gone; otherwise none. When that set changes,
        earlier statements and pieces are discarded."""
        stack = self._session.stack
        if any(member in stack.peers for member in lack.holders):
            return []
        among = sorted([stack.me, *(member for member in lack.others if member in stack.peers)])
        if among != self._among.get(topic):
            self._among[topic], self._heard[topic] = among, {stack.me: lack.since}
            self._come.pop(topic, None)
        return among

    def _choose(self, topic: str, lack: Lack) -> list[int]:
        """Return the newcomers to ask: those that have not said that they lack the state, or else the one with whose state the group goes on. If
        that is ours, take it, and return none."""
        among, heard = self._among[topic], self._heard[topic]
        unheard = [member for member in among if member not in heard]
        if unheard:
            return unheard
        chosen = min(among, key=lambda member: (-heard[member], member))
        if chosen != self._session.stack.me:
            return [chosen]
        if lack.since:
            text = f"nobody is here who was in the group and has the state of {topic!r}: ours of view {lack.since} goes on"
        else:
            text = f"all who had the state of {topic!r} are gone: it begins anew"
        self._session.stack.notice("state.lost", text)
        self._take(topic, None)
        return []

    def _take(self, topic: str, state: bytes | None) -> None:
        self._come.pop(topic, None)
        self._among.pop(topic, None)
        self._heard.pop(topic, None)
        for take_over in self._session.stack.chain.hooks("take_over"):
            take_over(topic, state)
        if not self._lacking():
            self._say(None, "complete", {"ask": False})
            self.wake = self._session.stack.now  # other newcomers may lack theirs still: remind them soon

    def _state(self, topic: str) -> bytes:
        state = self._given.get(topic)
        if state is None:
            hand_over = self._session.stack.chain.hook("hand_over")
            if hand_over is None:
                raise UsageError(f"there is no state of {topic!r}")
            state = self._given[topic] = hand_over(topic)
        return state

    def _say(self, to: int | None, do: str, what: dict[str, Any], body: bytes = b"") -> None:
        self._session.say(to, self._session.stack.view.number, do, what, body)
