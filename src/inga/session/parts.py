"""How parts of a group that cannot hear each other, and members without a view, find each other again.

Where the network is cut, or a member was silent for too long, each part takes the other for dead and goes on by itself.
So the leader of a part in which a member has failed sends from time to time, to all processes that know the group's name:

    part       the size of its part, and its leader. The leader of a smaller part closes its view in the ordinary way, so that all
               its members have delivered the same, and dissolves it; of two parts of equal size the one whose leader has the
               lower name stays
    hello      a process without a view asks for admission, under a new incarnation. It names the leader that it asks, so that
               no two parts admit it; a process that knows no leader is answered `part` by every leader, and asks the first it hears
    welcome    the view that includes it
    lost       a paused member asks: has anybody gone on without me? A member that has gone on answers `part`. Members that did not
               have it in their view, or have forgotten that they had, would never tell it by themselves

An excluded member with `rejoin` does the same. A process that is not admitted for a while goes on alone, as a part of one.

Rejected: to agree on a common view between two leaders. Either may fail meanwhile, and then four sets of members have
to be kept apart; members that ask for admission one by one need nothing that newcomers do not need anyway.
"""

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from inga.model.compiled import mypyc_attr
from inga.model.errors import Excluded
from inga.model.view import Member, View
from inga.session.alarms import NEVER, Backoff
from inga.session.asking import Asking, Was
from inga.session.description import named, view_told
from inga.wire.told import Told

if TYPE_CHECKING:
    from inga.session.session import Session

PART = 0.5
"""Seconds between two `part` messages of a leader, at least; twice as many at most."""

ASKING, ASKING_MAX = 0.005, 0.1
"""Seconds between two requests for admission: first, and after doubling."""

ALONE_AFTER, ALONE_AFTER_MAX = 3.0, 24.0
"""Seconds without an admission after which a process without a view goes on alone: first, and after doubling each time in a row.
Without the doubling, parts of one would come and go for ever on machines so busy that a view change takes longer."""

LOST_MAX = 256
"""Failed members that are remembered."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Parts:
    """Looks for other parts of the group, and for a view if there is none; part of the session."""

    def __init__(self, session: "Session", *, rejoin: bool, is_open: bool) -> None:
        """`rejoin`: come back when we were excluded. `is_open`: the members were not listed, so that others may have founded
        a part of the group of which we have never heard."""
        self._session = session
        self._is_open = is_open
        self.rejoin = rejoin
        self._since = 0.0
        self._alone_after = Backoff(ALONE_AFTER, ALONE_AFTER_MAX)
        self._patience = ALONE_AFTER
        self._asking = Asking(None, 0.0)
        self._was: Was | None = None  # our last membership, while we have no view
        # We were too slow, and ask only once our application has read what was delivered.
        self.reads_first = False
        self._lost: dict[str, None] = {}  # names of members that have failed and are not back
        self._pause = Backoff(ASKING, ASKING_MAX)
        self.wake = NEVER

    @property
    def is_homeless(self) -> bool:
        """Whether we are in no view."""
        return self._session.stack.is_homeless

    @property
    def is_entering(self) -> bool:
        """Whether we were admitted, and install that view when this turn has ended: a `welcome` may come twice in one burst."""
        return self.is_homeless and self._session.stack.views.next is not None

    def view(self, view: View) -> None:
        self.reads_first = False
        if len(view) > 1:
            self._alone_after.reset()
        for name in view.failed:
            self._lost[name] = None
        self._lost = {name: None for name in list(self._lost)[-LOST_MAX:] if name not in view.names}
        self._rearm()
        if self._is_open:
            self.wake = self._session.stack.now + PART * self._session.stack.rng.random()

    def tick(self, now: float) -> None:
        session = self._session
        if self.is_homeless:
            late, self.wake = now - self.wake, NEVER
            if late > ASKING_MAX:  # our process was stopped: it asked nobody meanwhile
                self._since += late
                self._asking.forgive(late)
            if not self.is_entering:
                self._ask(now)
            return
        stack = session.stack
        if session.quorum.is_paused:
            where = {"address": stack.member.address, "view": stack.view.number}
            tags = {"spoken_in": stack.wire.tag_of(stack.view), "next": stack.wire.next_tag or 0}
            tags["attempt"] = session.changes.attempt
            company = any(map(session.silence.has_spoken, stack.peers))
            who = {**named(stack.member), "group": session.digest, "company": company}
            session.say_outside(None, "lost", **who, **where, **tags)
        elif session.changes.leads:
            session.say_outside(None, "part", **self.part())
        self._rearm()

    @property
    def is_hopeful(self) -> bool:
        """Whether we have just begun to ask for admission."""
        return self.is_homeless and self._session.stack.now - self._since < ALONE_AFTER

    def look(self) -> None:
        """We are paused: begin to ask whether others have gone on."""
        if not self.is_homeless:
            self._rearm()

    def part(self) -> dict[str, Any]:
        """Return the fields of a `part` message, which the leader sends, or another member of its part."""
        stack = self._session.stack
        leader, spoken_in = stack.view.members[self._session.changes.leader], stack.wire.tag_of(stack.view)
        return {
            **named(leader),
            "address": leader.address,
            "group": self._session.digest,
            "size": len(stack.view),
            "spoken_in": spoken_in,
        }

    def leave_home(
        self, host: tuple[str, int] | None, part: tuple[str, ...] = (), tag: int | None = None
    ) -> None:
        """We are in no view any more: ask `host` for admission as a new member, together with the whole `part`. `tag`: of the
        view that we give up, if that is not the one in force."""
        session = self._session
        stack = session.stack
        session.quorum.lose_home()
        session.transfer.leave_home()
        tag, bound = (
            stack.wire.tag_of(stack.view) if tag is None else tag,
            tuple(sorted(session.quorum.promised)),
        )
        self._was = Was(stack.member, tag, bound, part)
        self._since = stack.now
        self._patience = self._alone_after.next(stack.rng)
        self._asking = Asking(host, stack.now)
        stack.views.be_reborn()
        stack.notice("group.homeless", "without a view: asking to be let in")
        self._pause.reset()
        self.wake = stack.now

    def on_part(self, told: Told, address: Hashable) -> None:
        """Handle the announcement of another part, by its leader or by another member of it."""
        session = self._session
        stack = session.stack
        leader, size, spoken_in = told.identity, told.number("size"), told.large("spoken_in")
        where = told.text("address", "")
        if told.text("group") != session.digest:
            return
        if self.is_homeless:
            if self._asking.heard(leader, stack.now):
                self.wake = stack.now
            return
        if session.quorum.is_paused:
            if spoken_in != stack.wire.tag_of(stack.view) and not stack.wire.is_past(spoken_in):
                session.excluded()  # the sender of `part` is not paused, and has gone on without us
            return
        if stack.wire.is_past(spoken_in) or any(each.identity == leader for each in stack.view.members):
            # This part is of a view that is closed here: its leader still counts us, and will hear that we went on. Or its leader is a member of ours.
            return
        if session.presence.greets and session.is_new:
            # A view of members that have met takes precedence over ours, however many founders were listed. Its members may all be unknown to
            # us; in a secured group we would not believe such processes that we were excluded.
            session.changes.leave_home(leader)
            return
        ours = stack.view.members[session.changes.leader]
        is_larger = (-size, leader) < (-len(stack.view), ours.identity)
        if not session.changes.leads:
            is_carried = session.porter.carries_part(leader)
            # A leader that sends to single addresses may know no other address than ours.
            if where or (is_carried and is_larger):
                part = {"group": session.digest, "size": size, "spoken_in": spoken_in}
                session.say_outside(
                    session.changes.leader, "part", **named(Member(*leader)), address=where, **part
                )
            if is_carried and not is_larger:
                session.answer(address, "part", **self.part())
        elif is_larger:
            session.changes.dissolve(leader)
        else:
            # The other part has to dissolve. We tell it of ours: we may have joined after it was lost, and not announce ourselves otherwise.
            session.say_outside(None, "part", **self.part())

    def on_lost(self, told: Told, address: Hashable) -> None:
        """A paused member asks whether others have gone on without it."""
        session, view = self._session, self._session.stack.view
        who, spoken_in, number = told.identity, told.large("spoken_in"), told.number("view")
        next_, attempt = told.large("next"), told.number("attempt")
        if told.text("group") != session.digest or self.is_homeless:
            return
        if session.quorum.is_paused:
            session.quorum.on_lost(who, spoken_in, next_, attempt, has_company=told.flag("company"))
        elif number <= view.number and spoken_in != session.stack.wire.tag_of(view):
            session.answer(address, "part", **self.part())

    def on_welcome(self, told: Told) -> None:
        """Handle an admission: install that view."""
        session = self._session
        view = view_told(told, traced=session.stack.book is not None)
        is_ours = told.text("group") == session.digest and view.index(session.stack.member) is not None
        if self.is_homeless and is_ours and not self.is_entering:
            if self.reads_first:
                session.slow.say_missed(told.counts("missed"))
            session.changes.enter(view, told)

    def on_refused(self, told: Told) -> None:
        """Handle a refusal: ask as another incarnation. This one was admitted, and excluded before it heard of that; or the one before it
        is still a member."""
        stack = self._session.stack
        if self.is_homeless and not self.is_entering and told.identity == stack.member.identity:
            if told.do == "closed" and not stack.met and not self.rejoin:
                stack.fail(Excluded(f"{stack.member.name!r} cannot join: {told.text('why')}"))
                return
            stack.views.be_reborn(told.number("free") if told.do == "again" else 0)

    def _ask(self, now: float) -> None:
        session = self._session
        # An application that waits for a state reads nothing before the state has come, which then includes the messages that it skips.
        if self.reads_first and session.stack.queued and not session.transfer.lacks:
            self._since, self.wake = now, now + ASKING_MAX
            return
        # Where only a majority may go on, a member that was a whole group by itself still is one.
        may_be_alone = not session.quorum.is_primary or len(session.stack.view) == 1
        if now - self._since >= self._patience and may_be_alone:
            session.changes.go_on_alone()
            return
        stack = session.stack
        wants, view = session.transfer.wants, stack.view.number
        hello = self._asking.hello(stack.member, session.digest, view, now, wants, self._was)
        session.say_outside(None, "hello", **hello)
        self.wake = now + self._pause.next(stack.rng)

    def _rearm(self) -> None:
        stack = self._session.stack
        is_looking = self._lost or self._is_open or self._session.quorum.is_paused
        self.wake = stack.now + PART * (1 + stack.rng.random()) if is_looking else NEVER
