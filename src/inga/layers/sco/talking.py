"""The control messages of SCO, and when they are sent: confirmations, requests and polls.

    confirmation  what we have accepted that concerns the receiver, and our own numbers             K1, K2
    request       the numbers that are missing on the receiver's link to us                         L1
    poll          a confirmation that asks for one in return                                        Q1, Q2

A stamp names preceding messages, but does not say whether they are for us. `covered` does: every message that a member sends
us carries its newest number, and if nothing on its link is missing, we have all its messages to us up to there. If
a message waits for such a number, and none arrives, we poll the member (Q1).
"""

from math import inf

from inga.layers.machine import ALL, GaveUp
from inga.layers.sco.ordering import LSN_WINDOW, ScoOrdering
from inga.layers.sco.parts import Control, NumberPairs, ScoControlSent, ScoMessage, ScoNack, ScoSettings
from inga.model.compiled import mypyc_attr
from inga.model.packet import Runs
from inga.session.alarms import NEVER

SLOWER_MAX = 4.0
"""Waits become at most so many times as long as they were set."""

CONFIRM, FOUND, ASK, PROBE, POLL, RESEND, FLOW = range(7)
"""Kinds of alarms, in the order of `handlers`."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Talking(ScoOrdering):
    """The order at one member, and the control messages that it sends about it."""

    def __init__(self, me: int, members: int, settings: ScoSettings) -> None:
        super().__init__(me, members, settings)
        self._answer_time = 0.0  # seconds until we learn that a copy was accepted, smoothed
        # confirmations
        self.lsn = [1] * members  # LSN: of our next message to each member
        self.owed_since: dict[int, float] = {}  # ACC
        self._relevant: dict[int, set[int]] = {}  # by member, the sources whose messages concern it
        # Of these, the sources of which we have accepted messages since our last data message to that member.
        self._due: dict[int, set[int]] = {}
        self._accepted_since: dict[int, int] = {}  # by source, messages accepted since our last message to it
        self._to_confirm: set[int] = set()  # sources for which that number has reached `confirm_every`
        every = settings.confirm_every
        self._confirm_every: float = (settings.window + 1) // 2 if every is None else every or inf
        self._told_behind: set[int] = set()
        # requests and polls
        # By source with missing messages: when we last received anything new about it.
        self._lacking_since: dict[int, float] = {}
        # By source: numbers below this were requested before, and only the timer requests them again.
        self._asked_below: dict[int, int] = {}
        self._to_answer: set[int] = set()
        self._polled_at: dict[int, float] = {}  # when we polled members that have not answered yet

    # Inputs

    def receive(self, message: ScoMessage) -> str | None:
        """R1, R2, A2: process a copy that arrived. Returns the reason to reject it, if there is one."""
        if message.lsn < self.expected_lsn[message.src]:
            self._owe(message.src)  # a duplicate: its sender may have missed our confirmation
        return super().receive(message)

    def control(self, control: Control) -> str | None:
        """K2: process a confirmation or a poll. Returns the reason to reject it, if there is one."""
        src = control.src
        if control.seq < 1 or control.lsn < 1:
            return "forged"
        if control.lsn > self.expected_lsn[src] + LSN_WINDOW:
            return "lsn"
        if self._exceeds(control.ack):
            return "forged"
        self._polled_at.pop(src, None)
        self._merge(src, control.ack, control.buf, control.have)
        if control.lsn <= self.expected_lsn[src]:
            self._cover(src, control.seq)
        elif control.lsn > self.known_sent.get(src, 1):
            self.known_sent[src] = control.lsn
            self._heard_of.add(src)
        if control.denies:
            self._forget_rumours(src, control.lsn)
        if control.poll:
            if not self._answers[src].take(self.now):
                return "budget"
            self._to_answer.add(src)
        return None

    def _forget_rumours(self, src: int, lsn: int) -> None:
        """A member denies that it has used the numbers from `lsn` on, which another member claimed: they are not missing. If it
        has used them by now, it sends them until they are accepted."""
        known = max(lsn, self.expected_lsn[src], max(self.early.get(src, ()), default=0) + 1)
        self.known_sent[src] = known
        self._asked_below[src] = min(self._asked_below.get(src, 1), known)
        self._heard_of.add(src)

    def confirm_now(self, member: int) -> None:
        """If a confirmation is owed to a member, send it at once, not piggybacked on later data."""
        if member in self.owed_since:
            self._tell(member, poll=False)

    def caught_up(self) -> None:
        """Our application keeps up again: send confirmations to the members to which we may have reported no free buffers."""
        self.is_behind = False
        for member in sorted(self._told_behind):
            self._tell(member, poll=False)
        self._told_behind.clear()

    # C4, K1: confirmations

    def _report(self, message: ScoMessage) -> None:
        """C4: owe a confirmation of an accepted message to its sender and to all its other destinations."""
        src = message.src
        concerned = message.dst | 1 << src
        for member in self._remote(concerned):
            self._relevant.setdefault(member, set()).add(src)
            self._due.setdefault(member, set()).add(src)
            self._owe(member)
        super()._report(message)
        if src != self.me:
            count = self._accepted_since[src] = self._accepted_since.get(src, 0) + 1
            if count >= self._confirm_every:
                self._to_confirm.add(src)

    def _owe(self, member: int) -> None:
        if member != self.me and member not in self.owed_since and member not in self.gone:
            self.owed_since[member] = self.now
            self._alarms.sooner((CONFIRM, member), self.now + self.settings.confirm_delay)

    def _forget_debt(self, member: int) -> None:
        self.owed_since.pop(member, None)
        self._accepted_since.pop(member, None)

    def _on_confirm(self, member: int) -> None:
        """K1: send an owed confirmation that could not be piggybacked on data in time."""
        since = self.owed_since.get(member)
        if since is None:
            return
        due = since + self.settings.confirm_delay
        if due <= self.now:
            self._tell(member, poll=False)
        else:
            self._alarms.set((CONFIRM, member), due)

    def _tell(self, member: int, *, poll: bool, denies: bool = False) -> None:
        """Send a control message (CTL), with all that we have accepted and that concerns its receiver."""
        self._forget_debt(member)
        if self.is_behind:
            self._told_behind.add(member)
        numbers = (self.seq, self.lsn[member], self._acks_for(member), self.buffers_free)
        self.events.append(
            ScoControlSent(member, Control(self.me, *numbers, poll, self.expected_lsn[member], denies))
        )

    def _acks_for(self, member: int) -> NumberPairs:
        reported = self.known_accepted.get(self.me, {})
        relevant = sorted(self._relevant.get(member, ()))
        return tuple([(source, reported[source]) for source in relevant])

    # L1: requests

    def _ask(self, src: int) -> None:
        """L1: request (RET) missing messages that were not requested before; the timer repeats requests for the others."""
        runs = self.missing(src)
        self._lacking_since[src] = self.now  # the caller has learnt something new about this source
        if not runs or src in self.gone:
            del self._lacking_since[src]
            self._alarms.clear((ASK, src))
            self._alarms.clear((FOUND, src))
            return
        if runs[-1][1] > self._asked_below.get(src, 1):
            if not self.settings.nack_delay:
                self._ask_for_new(src, runs)
            elif (FOUND, src) not in self._alarms:  # the missing message may only have been overtaken
                wait = self._pace(self.settings.nack_delay, 0.5)
                self._alarms.set((FOUND, src), self.now + wait)
        elif (ASK, src) not in self._alarms:  # a message that had arrived was evicted
            self._alarms.set((ASK, src), self.now + self._pace(self.settings.nack_again, 0.5))

    def _ask_for_new(self, src: int, runs: Runs) -> None:
        asked = self._asked_below.get(src, 1)
        self._asked_below[src] = runs[-1][1]
        self._alarms.progress((ASK, src))
        self._request(src, tuple([(max(low, asked), high) for low, high in runs if high > asked]))

    def _on_found(self, src: int) -> None:
        runs = self.missing(src)
        if runs and runs[-1][1] > self._asked_below.get(src, 1):
            self._ask_for_new(src, runs)

    def _on_ask(self, src: int) -> None:
        runs = self.missing(src)
        if not runs:
            return
        self._request(src, runs)
        if self.now - self._lacking_since.get(src, self.now) > self.settings.patience:
            self.events.append(GaveUp(src))

    def _request(self, src: int, runs: Runs) -> None:
        have = self.expected_lsn[src]
        self.events.append(
            ScoControlSent(src, ScoNack(self.me, runs, self._acks_for(src), self.buffers_free, have))
        )
        self._alarms.again((ASK, src), self.now, self._pace(self.settings.nack_again, 0.5))

    # Q1, Q2: polls

    def _watch_top(self, top: ScoMessage) -> None:
        """Q1: if the message stays at the top of its queue, the members that block it will be polled."""
        super()._watch_top(top)
        self._alarms.sooner((PROBE, ALL), self.now + self._pace(self.settings.probe_after, 0.5))

    def _move(self, top: ScoMessage) -> None:
        super()._move(top)
        self._alarms.progress((PROBE, ALL))

    def _on_probe(self, _: int) -> None:
        """Q1: poll the members whose silence has held up a top for long enough."""
        wait = self._pace(self.settings.probe_after, 0.5)
        blockers: set[int] = set()
        ripe, younger = False, NEVER
        for queue in self.accepted.values():
            top = queue[0]
            if top.since + wait <= self.now:
                ripe = True
                blockers |= self._silent_blockers(top)
            else:
                younger = min(younger, top.since + wait)
        for member in sorted(blockers):
            self._poll(member)
        if ripe:
            self._alarms.again((PROBE, ALL), self.now, max(wait, self._pace(self.settings.poll_after)))
        self._alarms.sooner((PROBE, ALL), younger)

    def _enter_log(self, message: ScoMessage) -> None:
        """Q2: if the message stays in the log, the members that have not confirmed it will be polled."""
        super()._enter_log(message)
        self._alarms.sooner((POLL, ALL), self.now + self._pace(self.settings.poll_after))

    def _leave_log(self, src: int) -> None:
        super()._leave_log(src)
        self._alarms.progress((POLL, ALL))

    def _on_poll(self, _: int) -> None:
        """Q2: poll the members that are not known to have accepted a message that has been in the log for long enough."""
        wait = self._pace(self.settings.poll_after)
        missing, younger = 0, NEVER
        for queue in self.log.values():
            for message in queue:
                if message.since + wait <= self.now:
                    missing |= message.missing
                else:
                    younger = min(younger, message.since + wait)
        for member in self._remote(missing):
            self._poll(member)
        if missing:
            self._alarms.again((POLL, ALL), self.now, wait)
        self._alarms.sooner((POLL, ALL), younger)

    def _poll(self, member: int) -> None:
        """Poll a member, unless its answer to the last poll may still arrive."""
        asked = self._polled_at.get(member)
        if asked is None or asked + self._pace(self.settings.poll_after) <= self.now:
            self._polled_at[member] = self.now
            self._tell(member, poll=True)

    def _pace(self, wait: float, answers: float = 2.0) -> float:
        """A wait as it was set, or stretched to `answers` times the usual answer time, if that is longer: on a busy machine, early
        polls only make it busier."""
        return max(wait, min(answers * self._answer_time, SLOWER_MAX * wait))
