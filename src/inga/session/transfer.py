"""States of applications for newcomers: the state that a member had when it had taken everything before the cut.

    fetch      a newcomer requests the state from this octet on, in so many pieces; to all members until one has answered
    state      one piece, from this octet on
    stateless  there is no state for you: no member gives one, or the chosen giver cannot

The giver has to know its task before its application goes on from the cut, since afterwards the application has another state. So
members report while a view is closed whether they give or lack a state, and the cut tells all members: for each that lacks a state anew
one giver is chosen by the same rule everywhere. The giver draws the state from its application at the place of the
view in the stream of deliveries, somewhat ahead of the requests, and its application waits there until all of
it is drawn. A state that is small enough to be drawn ahead as a whole causes no wait.

A transfer goes on through later views as long as both members are present. If the giver is gone, the newcomer lacks a
state anew: that at the next cut, which includes all that was delivered before. If the giver cannot give the state after all, the
newcomer asks the leader for another view of the same members, in which another giver is chosen.

Rejected: to ask any member at any time. That member has passed the cut, or would have to keep a state for every view.
"""

from typing import TYPE_CHECKING, Any

from inga.model.compiled import mypyc_attr
from inga.model.errors import UsageError, WireError
from inga.model.packet import Packet
from inga.model.text import printable
from inga.model.view import Member, View
from inga.session.alarms import NEVER, Backoff
from inga.session.description import People
from inga.session.handover import REMINDS, REMINDS_MAX, STATE_MAX
from inga.session.pieces import ANSWER_MAX, EarlyPieces, FetchPace, answer_size, note_state, piece_size
from inga.session.pressure import WARN_AFTER
from inga.wire.told import TEXT_MAX, Told

if TYPE_CHECKING:
    from inga.session.session import Session

AHEAD = ANSWER_MAX
"""Octets that are drawn from an application before they are requested, plus one chunk of any size."""

REFUSES_FOR = 10.0
"""Seconds for which a member is not chosen again after its application could not give its state."""

NOBODY = "nobody here gives one"
"""Why a newcomer begins without a state, if no member gives one."""

NO_STATE = "no state for one who joins, from "
"""The beginning of the error of a newcomer that was refused a state, and has no other member to ask."""

GOES_ON = "+"
"""What a newcomer reports to lack while a present member is sending it the state."""

Person = tuple[str, int]


@mypyc_attr(allow_interpreted_subclasses=True)
class OutgoingState:
    """A state on its way to one newcomer. The driver, which draws it from the application, looks at `cut` and `is_hungry`."""

    def __init__(self, cut: View) -> None:
        self.cut = cut  # the view at whose place among the deliveries it is drawn
        self.is_drawn = False  # the whole state was drawn
        self.is_gone = False  # the newcomer does not wait for it any more
        self.why: str | None = None  # why it cannot be given
        self.drawn = bytearray()  # octets drawn, and not known to have arrived
        self.offset = 0  # where these octets begin in the state
        self.asked = 0  # pieces requested and not sent yet

    @property
    def is_open(self) -> bool:
        """Whether more is to be drawn from the application."""
        return not (self.is_drawn or self.is_gone)

    @property
    def is_hungry(self) -> bool:
        """Whether more is to be drawn now, without another request."""
        return self.is_open and len(self.drawn) < AHEAD


@mypyc_attr(allow_interpreted_subclasses=True)
class IncomingState:
    """A state on its way to us; for another cut there is a new one."""

    def __init__(self, cut: View) -> None:
        self.cut = cut  # the state is that of members which have taken everything before this view
        self.pieces: list[bytes] = []  # octets that have arrived and that the driver has not taken
        self.early = EarlyPieces()
        self.offset = 0
        self.is_whole = False
        self.is_given_up = False  # no member has it

    def taken(self) -> list[bytes]:
        """Return the octets that have arrived since the last call."""
        pieces, self.pieces = self.pieces, []
        return pieces


@mypyc_attr(allow_interpreted_subclasses=True)
class Transfer:
    """Fetches and gives states of applications; part of the session."""

    def __init__(self, session: "Session", gives: str, wants: str) -> None:
        """The kinds of state that our application gives and takes, if any."""
        self._session = session
        self.gives = gives
        self.wants = wants
        # Our application gives a state when its iteration reaches the view, and has the state for which it waits itself by then.
        self.gives_late = True
        self.wake = NEVER
        self.lacks = False
        self.incoming: IncomingState | None = None
        self.stop_at: View | None = None  # the view that our application cannot pass before it has a state
        self.outgoing: dict[Person, OutgoingState] = {}
        self._identity: Person | None = None  # our identity in the view before
        self._lack: People | None = None  # as the cut before this view told, if we took part in it
        self._give: People = []
        self._unserved: set[Person] = set()  # members that lack a state which no member gives
        # Members that wait for a newcomer which is still receiving the state.
        self._later: set[Person] = set()
        self._donor: Person | None = None
        self._is_anew = False  # we have reported that we lack a state anew
        self._refusal: str | None = None  # why the last giver did not give the state
        self._refuses_until = 0.0
        self.moved_at = 0.0  # when octets last arrived here, or were acknowledged
        self._is_warned = False
        self._pace = FetchPace()
        self._reminding = Backoff(REMINDS, REMINDS_MAX)
        self._reminds_at = NEVER

    # Events

    def report(self) -> dict[str, str]:
        """Return the kinds of state that we give and lack, for the report of a closing view; the gone members are known."""
        lacks, gives = "", ""
        if self.lacks:
            self._is_anew = self._is_anew or self._donor_index() is None
            lacks = self.wants if self._is_anew else GOES_ON
        elif self._session.stack.now >= self._refuses_until and (self.gives_late or self.stop_at is None):
            gives = self.gives
        # Our application waits for a state that comes after the cut, or for a newcomer that goes on fetching ours then: the view change
        # must not wait for our application in turn.
        is_giving = any(each.is_open for each in self.outgoing.values())
        self._session.stack.views.excuse(self._is_anew or is_giving)
        return {"gives": gives, "lacks": lacks}

    def learn(self, lack: People, give: People) -> None:
        """Note what the cut tells about the members of the next view."""
        self._lack, self._give = lack, give

    def view(self, view: View) -> None:
        """A view is installed: determine who gives a state to whom."""
        stack = self._session.stack
        lack, self._lack = self._lack, None
        mine = stack.member.identity
        # Founders have nothing to fetch: there were no members before them.
        is_new = bool(view.attempt) and view.number > 1 and mine != self._identity
        self._identity = mine
        self._is_anew, self._unserved, self._later = False, set(), set()
        stack.views.excuse(False)
        self._choose(view, lack or [])
        if is_new:
            self._refusal = None  # a refusal before concerned our former incarnation
        if is_new or (self.lacks and (*mine, self.wants) in (lack or [])):
            self._begin(view)
        elif self.lacks and self._donor is None:
            self._session.changes.wishes.renew()
        elif (
            not self.lacks and (*mine, GOES_ON) in (lack or []) and (self.gives_late or self.stop_at is None)
        ):
            self._serve()  # our state arrived while the view was closed
        self.wake = stack.now if self.lacks else self._reminds_at

    def gone(self, member: int) -> None:
        """A member has left or failed."""
        self._drop(self._session.stack.view.members[member].identity)

    def leave_home(self) -> None:
        """We are in no view any more: nobody requests the rest of the states that we give, and our application does not wait for that."""
        for person in [*self.outgoing]:
            self._drop(person)

    def tick(self, now: float) -> None:
        stack = self._session.stack
        if now >= self._reminds_at:
            self._remind()
        self.wake = self._reminds_at
        if not stack.closing:
            self._is_anew = False
            stack.views.excuse(False)
        # If we have reported that we lack a state anew, a giver may have been chosen already, for the next view.
        if self.lacks and self._identity in self._unserved and not self._is_anew:
            # Without a request: if all other members are newcomers, none of them can tell us.
            self._miss(NOBODY)
            self.wake = self._reminds_at
        if self.lacks and self.incoming is not None and not stack.leaving:
            self._fetch()
            self.wake = min(now + self._pace.wait(stack.rng), self._reminds_at)
            if not self._is_warned and now - self.moved_at >= WARN_AFTER:
                self._is_warned = True
                whom = "" if self._donor is None else f" for {self._donor[0]}"
                stack.notice("state.waits", f"the state of the group has waited {WARN_AFTER:g} s{whom}")

    # For drivers

    def waits_at(self, view: View) -> bool:
        """Whether the application cannot pass this view yet, since its state has not arrived."""
        return self.lacks and view is self.stop_at

    def pass_stop(self) -> IncomingState | None:
        """The application has reached the view at which it needs a state, and the wait is over: return the state if it has arrived
        whole. It includes all that was delivered before its cut."""
        self.stop_at = None
        if not self.gives_late:
            self._serve()
        incoming = self.incoming
        return incoming if incoming is not None and incoming.is_whole else None

    def _serve(self) -> None:
        """We have the state, and others wait for it: ask for another view, in which we may be chosen to give it."""
        if self._later:
            self._later.clear()
            self._session.changes.wishes.renew()

    def due(self, view: View) -> list[OutgoingState]:
        """Return the states to be drawn from the application at the place of this view, before it goes on."""
        return [each for each in self.outgoing.values() if each.cut is view and each.is_open]

    def put(self, outgoing: OutgoingState, data: bytes) -> None:
        """More of the state was drawn from the application."""
        if outgoing.is_gone:
            return  # the newcomer has left meanwhile
        outgoing.drawn += data
        if len(outgoing.drawn) >= AHEAD:
            self._pass_on(outgoing)

    def end(self, outgoing: OutgoingState) -> None:
        """The whole state was drawn."""
        outgoing.is_drawn = True
        self._pass_on(outgoing)

    def refuse(self, outgoing: OutgoingState, why: str) -> None:
        """The application cannot give its state."""
        outgoing.is_drawn, outgoing.why = True, printable(why)[:TEXT_MAX]
        outgoing.drawn.clear()
        if not outgoing.is_gone:
            self._refuses_until = self._session.stack.now + REFUSES_FOR
        self._pass_on(outgoing)

    # As a giver

    @property
    def undrawn(self) -> set[int]:
        """Newcomers for which we have to draw more from our application, whether they have requested it or not."""
        return self._whose(is_hungry=True)

    @property
    def unasked(self) -> set[int]:
        """Newcomers that have to request more before we draw it from our application, which waits for that."""
        return self._whose(is_hungry=False)

    def _whose(self, *, is_hungry: bool) -> set[int]:
        view = self._session.stack.view
        found = {
            view.index(Member(*person))
            for person, each in self.outgoing.items()
            if each.is_open and each.is_hungry is is_hungry
        }
        return {member for member in found if member is not None}

    def on_fetch(self, src: int, told: Told) -> None:
        """A newcomer requests more, and has everything before `offset`."""
        person = self._session.stack.view.members[src].identity
        offset, pieces, has_all = told.large("offset"), told.number("pieces"), told.flag("all")
        outgoing = self.outgoing.get(person)
        if outgoing is None:
            if person in self._unserved:
                self._say(src, "stateless", {"why": NOBODY, "nobody": True})
            return
        if outgoing.why is not None:
            offset = outgoing.offset  # however much has arrived, there is no more
        passed = offset - outgoing.offset
        if 0 <= passed <= len(outgoing.drawn):
            stack = self._session.stack
            size = min(answer_size(pieces, piece_size(stack)), len(outgoing.drawn))
            if passed:
                self.moved_at = stack.now
            elif not (has_all or self._session.hearing.repeats(src, size, stack.now)):
                stack.reject("budget")
                return
            del outgoing.drawn[:passed]
            outgoing.offset = offset
            outgoing.asked = max(pieces, 1)
            if has_all:
                self._drop(person)
            elif outgoing.drawn or outgoing.is_drawn:
                self._pass_on(outgoing)

    def _pass_on(self, outgoing: OutgoingState) -> None:
        """Send the requested pieces, as far as they were drawn."""
        if outgoing.is_gone or not outgoing.asked:
            return
        pieces, outgoing.asked = outgoing.asked, 0
        stack = self._session.stack
        person = next(each for each, other in self.outgoing.items() if other is outgoing)
        to = stack.view.index(Member(*person))
        if to is None:
            return
        if outgoing.why is not None:
            self._say(to, "stateless", {"why": outgoing.why, "nobody": False})
            return
        size = piece_size(stack)
        end = min(len(outgoing.drawn), answer_size(pieces, size))
        for at in range(0, max(end, 1), size):
            body = bytes(outgoing.drawn[at : min(at + size, end)])
            is_last = at + size >= end
            is_all = is_last and outgoing.is_drawn and end == len(outgoing.drawn)
            told = {"offset": outgoing.offset + at, "ask": is_last, "all": is_all}
            self._say(to, "state", told, body)
            if is_all:
                self._reminds_at = stack.now + self._reminding.start()
                self.wake = min(self.wake, self._reminds_at)

    def _remind(self) -> None:
        """Ask newcomers that were sent the whole state whether it has arrived: their message that says so may be lost, and
        we keep the state until then."""
        stack, self._reminds_at = self._session.stack, NEVER
        for person, outgoing in self.outgoing.items():
            to = stack.view.index(Member(*person))
            if to is None or not outgoing.is_drawn or outgoing.why is not None:
                continue
            end = outgoing.offset + len(outgoing.drawn)
            self._say(to, "state", {"offset": end, "ask": True, "all": True})
            if self._reminds_at == NEVER:
                self._reminds_at = stack.now + self._reminding.next(stack.rng)

    def _drop(self, person: Person) -> None:
        outgoing = self.outgoing.pop(person, None)
        if outgoing is not None:
            outgoing.is_gone = True
            outgoing.drawn.clear()

    def _choose(self, view: View, lack: People) -> None:
        """Choose a giver for each member that lacks a state: the last ones that give that kind, since the leader, which is the first, has
        enough to do. If there is none but another newcomer is receiving a state, the members wait until that one has it, for a later view."""
        going_on = {(name, incarnation) for name, incarnation, kind in lack if kind == GOES_ON}
        for person in set(self.outgoing) - going_on:
            self._drop(person)
        is_coming = any(view.index(Member(*person)) is not None for person in going_on)
        anew = [each for each in lack if each[2] != GOES_ON and view.index(Member(*each[:2])) is not None]
        for place, (name, incarnation, kind) in enumerate(anew):
            givers = [
                each[:2]
                for each in self._give
                if each[2] == kind and view.index(Member(*each[:2])) is not None
            ]
            if not givers:
                (self._later if is_coming else self._unserved).add((name, incarnation))
            elif givers[-1 - place % len(givers)] == self._identity:
                self.outgoing[name, incarnation] = OutgoingState(view)

    # As a newcomer

    def on_state(self, packet: Packet, told: Told) -> None:
        stack, incoming = self._session.stack, self.incoming
        offset, is_all = told.large("offset"), told.flag("all")
        told.flag("ask")  # raises an error if it is missing
        person = stack.view.members[packet.src].identity
        if not self.lacks and is_all:
            self._say(packet.src, "fetch", {"offset": offset, "pieces": 0, "all": True})
        if not self.lacks or incoming is None or (self._is_anew and stack.closing):
            return
        if self._donor not in (None, person) or (self._donor is None and offset != incoming.offset):
            return
        if offset + len(packet.body) > STATE_MAX:
            raise WireError("malformed", "a state larger than any")
        self._donor = person
        pieces = incoming.early.in_turn(incoming.offset, offset, bytes(packet.body), told)
        if not pieces:
            return
        for body, _ in pieces:
            incoming.offset += len(body)
            incoming.pieces.append(body)
            if body:
                self.moved_at, self._is_warned = stack.now, False
        self._session.hearing.wanted(packet.src, [len(body) for body, _ in pieces])
        asks = any(piece.flag("ask") for _, piece in pieces)
        self._pace.came(stack.now, is_last=asks)
        self.wake = stack.now + self._pace.wait(stack.rng)
        if any(piece.flag("all") for _, piece in pieces):
            incoming.is_whole, self.lacks, self.wake, self._refusal = True, False, NEVER, None
            incoming.early = EarlyPieces()
            note_state(stack, packet.src, incoming.offset, self.wants)
            if self.gives_late:
                self._serve()
        if asks:
            self._fetch()

    def on_stateless(self, src: int, told: Told) -> None:
        """No member gives a state; or the chosen giver cannot, and another one has to be chosen."""
        stack, why, nobody = self._session.stack, told.text("why"), told.flag("nobody")
        person = stack.view.members[src].identity
        if not self.lacks or self._donor not in (None, person) or (self._is_anew and stack.closing):
            return
        if not nobody:
            self._refusal, self._donor = f"{person[0]}: {why}", None
            stack.notice("state.refused", f"no state from {self._refusal}")
            self.wake = NEVER
            self._session.changes.wishes.renew()
            # Another giver is chosen at a later cut: this view change must not wait for the state.
            if stack.closing:
                stack.views.excuse(True)
                stack.taken([], now=stack.now)
        else:
            self._miss(why)

    def _miss(self, why: str) -> None:
        """No member gives us a state: fail if a giver refused it, otherwise go on without it."""
        if self._refusal is not None:
            self._session.stack.fail(UsageError(f"{NO_STATE}{self._refusal}"))
        else:
            self._give_up(why)

    def _begin(self, view: View) -> None:
        """Begin to fetch the state with which this view begins, if our application takes one and there are other members."""
        self._donor = None
        was_coming, self.lacks = self.lacks, False
        if len(view) > 1 and self.wants:
            self.lacks, self.incoming, self.stop_at = True, IncomingState(view), self.stop_at or view
            self.moved_at, self._is_warned = self._session.stack.now, False
            self._pace = FetchPace()
        elif was_coming:
            self._give_up("all who had it are gone")

    def _give_up(self, why: str) -> None:
        assert self.incoming is not None
        self.lacks, self.wake, self.incoming.is_given_up = False, NEVER, True
        self.incoming.pieces.clear()  # a partial state is useless
        self.incoming.early = EarlyPieces()
        self._session.stack.notice("state.missing", f"we begin without the state of the group: {why}")

    def _fetch(self) -> None:
        assert self.incoming is not None
        donor = self._donor_index()
        if self._donor is None or donor is not None:
            told = {"offset": self.incoming.offset, "all": self.incoming.is_whole}
            self._say(donor, "fetch", {**told, "pieces": self._pace.ask(self._session.stack.now)})

    def _donor_index(self) -> int | None:
        """Return the index of the member that gives us the state, if it is known and present."""
        stack = self._session.stack
        index = None if self._donor is None else stack.view.index(Member(*self._donor))
        return index if index in stack.peers else None

    def _say(self, to: int | None, do: str, what: dict[str, Any], body: bytes = b"") -> None:
        self._session.say(to, self._session.stack.view.number, do, what, body)
