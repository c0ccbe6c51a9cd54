"""Who is silent: members that are not heard for too long are suspected, and excluded once nobody else hears them either.

    alive      we are here: said to all when nothing else was for a while; whatever comes of a member counts as well
    suspect    we have not heard these for as long as the group forgives, or go on without them already; whoever is named and
               hears it says `alive`
    unmet      of founders: we have never heard these, which may not have started
    heard      to one that suspects: we have heard that member. Then the way between those two is bad, not the member, and
               what they have to say to each other goes by us: `detours`

A member is taken to have failed when all that are not suspected themselves suspect it. Who would lead without it then
begins the change of the view.

The clock that decides is our own. A process that was stopped, or did not get the processor, finds everybody silent
when it goes on; so whatever time our own alarm came late is not held against the others.

Rejected: to exclude a member on the word of one. One bad cable then costs a healthy member, and which of the two depends
on who is faster.
"""

from typing import TYPE_CHECKING

from inga.model.compiled import mypyc_attr
from inga.session.alarms import NEVER
from inga.session.leading import Leading
from inga.wire.told import Told

if TYPE_CHECKING:
    from inga.session.session import Session

BEATS = 4
"""Times that a member speaks, at least, within the silence that is forgiven."""

LOOK_MAX = 0.5
"""Seconds between two looks while somebody is suspected, at most: whoever is there again is heard within two."""

LOOKS = 8
"""Times that we look, within the same, while somebody is suspected; and what part of it our own alarm may be late."""

STANDS_IN_AFTER = 0.1
"""Seconds without a word of the leader after which others tell newcomers to wait: less than what these wait before they found a group."""

STAND_INS = 8
"""Members at most that do so: as many may fail at the same moment."""

OUT_OF_REACH = 2
"""Times the silence that is forgiven after which a change of the view goes on without members that do not answer."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Silence:
    """Listens for silence; part of the session."""

    def __init__(self, session: "Session", detect: float | None) -> None:
        """`detect`: seconds of silence that are forgiven; None: any."""
        self._session = session
        self.detect = detect
        self._votes: dict[int, set[int]] = {}  # of members that are suspected: by whom
        self.forgiven = 0.0  # seconds in all for which we were away
        self._vouched: dict[int, float] = {}  # members that others hear, and when they said so last
        self.lenient_until = 0.0  # nobody is excluded before
        self._asked_at = NEVER  # when we first said in this view that we have not met some founders
        self.wake = NEVER

    @property
    def suspects(self) -> set[int]:
        """The members that we suspect."""
        me = self._session.stack.me
        return {member for member, voters in self._votes.items() if me in voters}

    @property
    def is_long(self) -> bool:
        """Whether this view has been in force for longer than silence is forgiven."""
        return self.detect is not None and self._session.stack.now - self._began >= self.detect

    @property
    def is_sure(self) -> bool:
        """Whether whoever has met the founders that we have not has had the time to say so, if there are any."""
        since = self._session.stack.now - self._asked_at
        return self.is_long and (not self._absent or since >= (self.detect or 0.0) / 2)

    def view(self) -> None:
        """A view is installed: everybody in it was there just now."""
        stack = self._session.stack
        self._began = stack.now
        self._asked_at = NEVER
        self._votes.clear()
        self._vouched.clear()
        stack.heard[:] = [stack.now] * len(stack.heard)
        self._rearm()

    def gone(self, member: int) -> None:
        self._votes.pop(member, None)
        self._vouched.pop(member, None)
        for voters in self._votes.values():
            voters.discard(member)

    def tick(self, now: float) -> None:
        stack, detect = self._session.stack, self.detect
        assert detect is not None
        self._forgive()
        if now - stack.wire.spoke_at >= detect / BEATS:
            self._session.say(None, stack.view.number, "alive", {})
        for member in self._watched:
            if now - self._known(member) >= detect:
                self._suspect(member, stack.me)
            elif member in self._votes and now - self._known(member) < detect / 2:
                del self._votes[member]  # there it is
        self._session.detours.review(detect)
        suspects, waived = self.suspects, self._session.quorum.waived
        if suspects or waived or (stack.failed and self._session.quorum.is_paused):
            # Some may not have heard of a change without those whom we do not count any more, and its leader be silent, or pause.
            told = {"members": sorted(suspects | stack.failed), "waived": sorted(waived)}
            self._session.say(None, stack.view.number, "suspect", told)
        if self.is_long and self._absent:
            self._asked_at = min(self._asked_at, now)
            self._session.say(None, stack.view.number, "unmet", {"members": sorted(self._absent)})
        self.conclude()
        self._rearm()

    def _forgive(self) -> None:
        """Our own alarm may be late: we were away for as long, and what others have said meanwhile may still wait to be read.
        Drivers read what has come before they look at the clock, so whoever judges by silence asks for this first."""
        stack, detect = self._session.stack, self.detect
        now, late = stack.now, stack.now - self.wake
        if detect is None or late <= detect / LOOKS:
            return
        stack.heard[:] = [min(at + late, now) for at in stack.heard]
        self._vouched = {member: min(at + late, now) for member, at in self._vouched.items()}
        self._session.detours.forgive(late)
        self.forgiven += late
        self._began = min(self._began + late, now)
        self._asked_at += late
        self.lenient_until += late
        self.wake = now  # this is forgiven once

    def on_suspect(self, src: int, told: Told) -> None:
        """Another member has not heard these."""
        self._forgive()
        stack, detect = self._session.stack, self.detect
        if detect is None:
            detect = NEVER
        self._session.quorum.waive(told.numbers("waived"))
        for member in dict.fromkeys(
            told.numbers("members")
        ):  # each is answered for once, however often it is named
            if member == stack.me:
                self._session.say(None, stack.view.number, "alive", {})
            elif member in stack.left - stack.failed:  # whose goodbye did not come there
                self._session.presence.say_gone(src, stack.view.members[member])
            elif member in stack.peers:
                if stack.now - stack.heard[member] < detect / 2:
                    self._vouch(src, member)
                else:
                    self._suspect(member, src, stack.me)
        self.conclude()

    def on_unmet(self, src: int, told: Told) -> None:
        """Another member has not met these founders, which may not have started."""
        for member in set(told.numbers("members")) & set(self._watched):
            self._vouch(src, member)

    def _vouch(self, to: int, member: int) -> None:
        """Tell one that does not hear a member that we do, on the straight way."""
        if self._session.detours.hears(member, (self.detect or NEVER) / 2):
            self._session.say(to, self._session.stack.view.number, "heard", {"member": member})

    def _suspect(self, member: int, *voters: int) -> None:
        """We suspect it, and perhaps another does."""
        stack, votes = self._session.stack, self._votes.setdefault(member, set())
        if stack.trace is not None and stack.me not in votes:
            stack.trace.row("suspect", stack.now, stack.view.number, peer=member)
        votes.update(voters)

    def on_heard(self, src: int, told: Told) -> None:
        """Another member hears one that we suspect."""
        stack, member = self._session.stack, told.number("member")
        if member in self._votes or member in self._absent:
            self._votes.pop(member, None)
            self._vouched[member] = stack.now
            self._session.detours.begin(member, src)
            self._session.quorum.review()

    def be_lenient(self) -> None:
        """Enough are heard again to go on; the others are about to be heard, or are not excluded before long."""
        self.lenient_until = self._session.stack.now + (self.detect or 0.0) / 2

    def has_spoken(self, member: int) -> bool:
        """Whether a member has said something since this view was installed here, and in it."""
        return self._session.stack.heard[member] > self._began

    def stands_in(self, leader: int) -> bool:
        """Whether we tell newcomers to wait for the leader, which may just have failed. Who hears nobody founds a group of its own,
        and of two parts of one size that is the one that goes on which has nothing."""
        stack = self._session.stack
        before = sum(member not in stack.left for member in range(stack.me))
        is_quiet = stack.now - stack.heard[leader] > STANDS_IN_AFTER
        return self.detect is not None and is_quiet and before <= STAND_INS

    def go_on_without(self, change: Leading) -> None:
        """As the leader of a change: exclude members that do not answer, although others hear them. Otherwise one bad
        link would keep the whole group in a view that is closed."""
        if self.detect is None:
            return
        self._forgive()
        lost = change.out_of_reach(OUT_OF_REACH * self.detect)
        if not lost or not self._session.quorum.is_enough(lost | self.overdue):
            return
        for member in sorted(lost):
            self._session.stack.notice(
                "member.unreachable",
                f"{self._session.stack.view.names[member]} does not answer: the view changes without it",
            )
        self._session.exclude(lost)

    @property
    def _watched(self) -> list[int]:
        """Members that were here, for us or for others. A founder that nobody has met may not have started yet."""
        stack = self._session.stack
        if stack.view.attempt or not self._session.presence.greets:
            return stack.peers
        return [member for member in stack.peers if member in stack.met or member in self._votes]

    def _known(self, member: int) -> float:
        """When a member was alive for all we know; what others say is hearsay, and not passed on."""
        return max(self._session.stack.heard[member], self._vouched.get(member, 0.0))

    @property
    def _absent(self) -> set[int]:
        """Founders that we have not met, and nobody suspects."""
        return set(self._session.stack.peers) - set(self._watched)

    @property
    def overdue(self) -> set[int]:
        """Those who have spoken less than they do: they may be about to fail as well, as all do who are cut off."""
        if self.detect is None:
            return set()
        soonest = self._session.stack.now - self.detect / 2
        return {member for member in self._watched if self._known(member) < soonest}

    @property
    def failed(self) -> set[int]:
        """Those whom everybody suspects who is not suspected. If somebody is gone, the others have to go on without founders that
        nobody has met, too, or to pause: these count as well, once we can know that."""
        stack, suspects = self._session.stack, self.suspects
        judges = {stack.me, *self._watched} - suspects
        failed = {member for member in suspects if judges <= self._votes[member]}
        is_parting = failed or (stack.left and not suspects)
        return failed | self._absent if is_parting and self.is_sure else failed

    def conclude(self) -> None:
        """Exclude those who have failed, if it is for us to begin, and if those who are left may go on."""
        stack, quorum = self._session.stack, self._session.quorum
        quorum.review()
        failed = self.failed
        leads = all(member in failed | stack.left for member in range(stack.me))
        may_go_on = quorum.is_enough(failed | self.overdue)
        if failed and leads and may_go_on and stack.now >= self.lenient_until:
            for member in sorted(failed - self._absent):
                name = stack.view.names[member]
                stack.notice("member.failed", f"{name} has failed: not heard for {self.detect:g} s")
            self._session.exclude(failed)

    def _rearm(self) -> None:
        """When we have to speak, or somebody has been silent for too long, unless something comes in between."""
        stack, detect = self._session.stack, self.detect
        if detect is None or not stack.peers or self._session.parts.is_homeless:
            self.wake = NEVER
            return
        soon = stack.now + min(detect / LOOKS, LOOK_MAX)
        silent = min(map(self._known, self._watched), default=NEVER) + detect
        is_looking = self._votes or self._session.quorum.waived
        self.wake = soon if is_looking else max(soon, min(stack.wire.spoke_at + detect / BEATS, silent))
