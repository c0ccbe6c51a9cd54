"""Failure detection: members that are not heard for too long are suspected, and excluded once no other member hears them either.

    alive      we are present: sent to all when nothing else was for a while; any other packet of a member counts as well
    suspect    we have not heard these members for `detect` seconds, or go on without them already; a member that is named
               in it answers `alive`
    unmet      of listed founders: we have never heard these, which may not have started
    heard      to a member that suspects another: we have heard that one. Then the path between those two is bad, not the member,
               and their datagrams travel by way of us: `detours`

A member has failed when all members that are not suspected themselves suspect it. The member that would lead without it then
begins the view change.

Each member decides by its own clock. A process that was stopped, or did not get the processor, finds all others silent
when it goes on; so it does not hold the time by which its own alarm was late against the others.

Rejected: to exclude a member on the word of one other. One bad cable then costs a healthy member, and which of the two depends
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
"""How often a member sends to all, at least, within `detect` seconds."""

LOOK_MAX = 0.5
"""Seconds between two ticks while a member is suspected, at most: a member that is back is noticed within two ticks."""

LOOKS = 8
"""How often we look within `detect` seconds while a member is suspected; an alarm that is late by more than one such interval is forgiven."""

STANDS_IN_AFTER = 0.1
"""Seconds of silence of the leader after which other members tell newcomers to wait: less than newcomers wait before they found a group."""

STAND_INS = 8
"""Members that do so, after the leader in the order of the view: as many may fail at the same moment."""

OUT_OF_REACH = 2
"""Multiple of `detect` after which a view change goes on without members that do not answer."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Silence:
    """Detects silent members; part of the session."""

    def __init__(self, session: "Session", detect: float | None) -> None:
        """`detect`: seconds of silence after which a member is suspected; None: never."""
        self._session = session
        self.detect = detect
        self._votes: dict[int, set[int]] = {}  # for each suspected member, the members that suspect it
        self.forgiven = 0.0  # seconds in all for which our process was stopped
        self._vouched: dict[int, float] = {}  # when others last said that they hear a member
        self.lenient_until = 0.0  # before this time no member is excluded
        self._asked_at = NEVER  # when we first sent `unmet` in this view
        self.wake = NEVER

    @property
    def suspects(self) -> set[int]:
        """The members that we suspect."""
        me = self._session.stack.me
        return {member for member, voters in self._votes.items() if me in voters}

    @property
    def is_long(self) -> bool:
        """Whether this view has been in force for `detect` seconds."""
        return self.detect is not None and self._session.stack.now - self._began >= self.detect

    @property
    def is_sure(self) -> bool:
        """Whether members that have met the founders that we have not met had the time to say so."""
        since = self._session.stack.now - self._asked_at
        return self.is_long and (not self._absent or since >= (self.detect or 0.0) / 2)

    def view(self) -> None:
        """A view is installed: all its members were present just now."""
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
                del self._votes[member]  # it is heard again
        self._session.detours.review(detect)
        suspects, waived = self.suspects, self._session.quorum.waived
        if suspects or waived or (stack.failed and self._session.quorum.is_paused):
            # Some may not have heard of a change without members that we do not count any more, and its leader may be silent or paused.
            told = {"members": sorted(suspects | stack.failed), "waived": sorted(waived)}
            self._session.say(None, stack.view.number, "suspect", told)
        if self.is_long and self._absent:
            self._asked_at = min(self._asked_at, now)
            self._session.say(None, stack.view.number, "unmet", {"members": sorted(self._absent)})
        self.conclude()
        self._rearm()

    def _forgive(self) -> None:
        """If our own alarm is late, add that time to all times at which members were heard: our process was stopped meanwhile, and
        datagrams may still wait to be read. Drivers read datagrams before they look at the clock, so every decision about silence calls this first."""
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
        self.wake = now  # the same delay is forgiven once

    def on_suspect(self, src: int, told: Told) -> None:
        """Another member suspects these members."""
        self._forgive()
        stack, detect = self._session.stack, self.detect
        if detect is None:
            detect = NEVER
        self._session.quorum.waive(told.numbers("waived"))
        for member in dict.fromkeys(
            told.numbers("members")
        ):  # each is answered once, however often it is named
            if member == stack.me:
                self._session.say(None, stack.view.number, "alive", {})
            elif member in stack.left - stack.failed:  # the sender has not received its goodbye
                self._session.presence.say_gone(src, stack.view.members[member])
            elif member in stack.peers:
                if stack.now - stack.heard[member] < detect / 2:
                    self._vouch(src, member)
                else:
                    self._suspect(member, src, stack.me)
        self.conclude()

    def on_unmet(self, src: int, told: Told) -> None:
        """Another member has not met these founders: vouch for those that we hear."""
        for member in set(told.numbers("members")) & set(self._watched):
            self._vouch(src, member)

    def _vouch(self, to: int, member: int) -> None:
        """Tell a member that does not hear another one that we do, if we hear it directly."""
        if self._session.detours.hears(member, (self.detect or NEVER) / 2):
            self._session.say(to, self._session.stack.view.number, "heard", {"member": member})

    def _suspect(self, member: int, *voters: int) -> None:
        """Note that these members suspect the member; we are one of them."""
        stack, votes = self._session.stack, self._votes.setdefault(member, set())
        if stack.trace is not None and stack.me not in votes:
            stack.trace.row("suspect", stack.now, stack.view.number, peer=member)
        votes.update(voters)

    def on_heard(self, src: int, told: Told) -> None:
        """Another member hears a member that we suspect or have not met."""
        stack, member = self._session.stack, told.number("member")
        if member in self._votes or member in self._absent:
            self._votes.pop(member, None)
            self._vouched[member] = stack.now
            self._session.detours.begin(member, src)
            self._session.quorum.review()

    def be_lenient(self) -> None:
        """A pause is over: give members that are still missing half of `detect` before they are excluded."""
        self.lenient_until = self._session.stack.now + (self.detect or 0.0) / 2

    def has_spoken(self, member: int) -> bool:
        """Whether a packet of a member has come in this view since it was installed here."""
        return self._session.stack.heard[member] > self._began

    def stands_in(self, leader: int) -> bool:
        """Whether we tell newcomers to wait for the leader, which may just have failed. Newcomers that hear nobody would found a group of their own,
        and when two parts of equal size merge, the one without a state may be the one that stays."""
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
        """The members that were present, for us or for others. A founder that nobody has met may not have started yet."""
        stack = self._session.stack
        if stack.view.attempt or not self._session.presence.greets:
            return stack.peers
        return [member for member in stack.peers if member in stack.met or member in self._votes]

    def _known(self, member: int) -> float:
        """Return when a member was last known to be alive, by us or by others; hearsay is not passed on."""
        return max(self._session.stack.heard[member], self._vouched.get(member, 0.0))

    @property
    def _absent(self) -> set[int]:
        """The founders that we have not met, and nobody suspects."""
        return set(self._session.stack.peers) - set(self._watched)

    @property
    def overdue(self) -> set[int]:
        """The members that were not heard for half of `detect`: they may be cut off with the failed ones, and be about to be suspected, too."""
        if self.detect is None:
            return set()
        soonest = self._session.stack.now - self.detect / 2
        return {member for member in self._watched if self._known(member) < soonest}

    @property
    def failed(self) -> set[int]:
        """The members that are suspected by all members that are not suspected themselves. If a member is gone, the others have to go on, or
        pause, without founders that nobody has met as well: these are included once others had time to vouch for them."""
        stack, suspects = self._session.stack, self.suspects
        judges = {stack.me, *self._watched} - suspects
        failed = {member for member in suspects if judges <= self._votes[member]}
        is_parting = failed or (stack.left and not suspects)
        return failed | self._absent if is_parting and self.is_sure else failed

    def conclude(self) -> None:
        """Exclude the failed members, if we lead without them, and if the remaining members may go on."""
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
        """Set the alarm for when we have to send `alive`, or a member will have been silent for too long."""
        stack, detect = self._session.stack, self.detect
        if detect is None or not stack.peers or self._session.parts.is_homeless:
            self.wake = NEVER
            return
        soon = stack.now + min(detect / LOOKS, LOOK_MAX)
        silent = min(map(self._known, self._watched), default=NEVER) + detect
        is_looking = self._votes or self._session.quorum.waived
        self.wake = soon if is_looking else max(soon, min(stack.wire.spoke_at + detect / BEATS, silent))
