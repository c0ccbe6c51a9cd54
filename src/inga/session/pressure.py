"""Which members hold the group up: detected in one place for all orders, investigated, and reported to a person.

Windows tell whether they are closed, and which members they wait for; orders tell what they hold, and whose packets are missing. After a second
the others are asked whether those members have left: a goodbye may have been lost on its way to us, and
the address that we have of a member may be wrong. After five seconds a notice tells a person, once for each wait.
"""

from typing import TYPE_CHECKING

from inga.model.compiled import mypyc_attr
from inga.session.alarms import NEVER, Backoff

if TYPE_CHECKING:
    from inga.session.session import Session
    from inga.stack.stack import Stack

ASK_AFTER, ASK_AFTER_MAX = 1.0, 60.0
"""Seconds of waiting for a member before others are asked about it; and between two such questions, at most."""

ASKS_MAX = 16
"""Questions while nothing moves: about ten minutes of them."""

WARN_AFTER = 5.0
"""Seconds of waiting before a notice names the members that are waited for."""

WAITS = {"sending": "sending.waits", "delivery": "delivery.waits"}
"""The two kinds of waiting, and the event of each in the log."""

WAITS_MAX = 64
"""Members whose waits are remembered."""

QUEUE_MIN = 1024
"""The least value of `queue_max`: any message would fill a smaller queue, and nothing would ever be read."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Unread:
    """Whether our application is behind with reading: from `limit` unread bytes, until half of that is left."""

    __slots__ = ("behind", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.behind = False

    def is_behind(self, unread: int) -> bool:
        self.behind = unread > self.limit // 2 if self.behind else unread >= self.limit
        return self.behind


def queued_in(stack: "Stack") -> int:
    """Return the bytes delivered and not taken for which senders may have to wait."""
    return 0 if stack.closing and stack.skips else stack.queued


def unread_in(stack: "Stack") -> int:
    """Return the bytes for which senders may have to wait: delivered and not taken, or held. When a view closes, held packets do not count: they
    may wait for packets that nobody has, and are given up only after every member has sent everything, which must not wait for them in turn."""
    return queued_in(stack) if stack.closing else stack.queued + stack.held


@mypyc_attr(allow_interpreted_subclasses=True)
class Pressure:
    """Watches sending and delivery; part of the session."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._sending_since: float | None = None  # since when nothing may be sent
        self._holding_since: float | None = None  # since when packets are held and none is released
        self._blaming_since = 0.0  # waiting before this time is blamed on no member
        self._released = 0  # packets delivered and calls begun, when that began
        self._held = 0  # bytes held at the last tick
        self._waits: dict[str, float] = {}  # seconds by name, of waits that are over
        self._awaited: set[str] = set()  # names of the members for which sending waits now
        self._warned: set[str] = set()
        self._asking = Backoff(ASK_AFTER, ASK_AFTER_MAX)
        self._asks = 0
        self.wake = NEVER

    def sending(self, is_open: bool) -> None:
        """The windows have closed, or are open again."""
        self._waits, self._awaited = self.waits, set()
        self._sending_since = None if is_open else self._session.stack.now
        self._warned.discard("sending")
        self._watch()

    def be_patient(self) -> None:
        """We were cut off, or our process was stopped: blame no member for the waiting meanwhile."""
        self._blaming_since = self._session.stack.now
        self._session.slow.be_patient()
        self._watch()

    def turn(self) -> None:
        """The turn has ended: check whether packets are held, and whether any were released."""
        stack = self._session.stack
        held = stack.held
        if not held:
            if self._holding_since is not None:
                self._holding_since = None
                self._warned.discard("delivery")
                self._watch()
        elif self._holding_since is None or stack.delivered + stack.chain.begun != self._released:
            # After progress the questions start anew, unless sending waits as well: questions about a closed window go on.
            begins = self._holding_since is None or (self._asks > 0 and self._sending_since is None)
            self._holding_since, self._released = stack.now, stack.delivered + stack.chain.begun
            self._warned.discard("delivery")
            if begins or self.wake == NEVER:
                self._watch()
        elif self.wake == NEVER and held > self._held:  # more is stuck than when we stopped asking
            self._watch()

    def tick(self, now: float) -> None:
        """Look at what waits, and since when; that may have changed since the alarm was set."""
        stack = self._session.stack
        if now - self.wake > ASK_AFTER:  # our process was stopped
            self.be_patient()
        watched = {
            "sending": (self._sending_since, stack.chain.blockers),
            "delivery": (self._holding_since, stack.chain.awaited),
        }
        asked: set[int] = set()
        moments: list[float] = []  # when the next question or notice is due
        for what, (since, members) in watched.items():
            if since is None:
                continue
            blames_since = max(since, self._blaming_since)
            moments += [at for at in (since + ASK_AFTER, blames_since + WARN_AFTER) if at > now]
            if since + ASK_AFTER <= now:
                slow = members() - stack.left
                asked |= slow
                if what == "sending":
                    self._awaited = {stack.view.names[member] for member in slow}
                    moments.append(self._session.slow.complain(slow, blames_since))
                is_long = blames_since + WARN_AFTER <= now
                if is_long and what not in self._warned and not stack.views.is_cut_off:
                    self._warn(what, slow)
        if self._asks < ASKS_MAX and (asked or self._sending_since is not None):
            self._asks += 1
            if asked:
                self._session.presence.ask_about(asked)
            if self._asks < ASKS_MAX:
                moments.append(now + self._asking.next(stack.rng))
        self._held = stack.held
        self.wake = min(moments, default=NEVER)

    @property
    def blocked_for(self) -> float:
        """Seconds for which a closed window has blocked sending."""
        return 0.0 if self._sending_since is None else self._session.stack.now - self._sending_since

    @property
    def held_for(self) -> float:
        """Seconds for which packets have been held and none was released."""
        return 0.0 if self._holding_since is None else self._session.stack.now - self._holding_since

    @property
    def waits(self) -> dict[str, float]:
        """Seconds for which sending has waited in all, by the name of the member that it waited for; waits of less than a second are not counted."""
        since, now = self._sending_since, self._session.stack.now
        waits = self._waits.copy()
        for name in self._awaited if since is not None else ():
            waits[name] = waits.get(name, 0.0) + now - (since or 0.0)
        return dict(sorted(waits.items(), key=lambda each: -each[1])[:WAITS_MAX])

    def _warn(self, what: str, slow: set[int]) -> None:
        stack = self._session.stack
        if slow:
            whom = f" for {stack.view.listed(slow)}"
        elif what == "sending":
            whom = ": our own application does not read"
        else:
            return  # the missing packets are those of a member that has left
        self._warned.add(what)
        stack.notice(WAITS[what], f"{what} has waited {WARN_AFTER:g} s{whom}")

    def _watch(self) -> None:
        """Sending or delivery has begun to wait, or waits no more: set the alarm."""
        if self._sending_since is None and self._holding_since is None:
            self.wake = NEVER
        else:
            soon = self._session.stack.now + self._asking.start()
            self._asks = 0
            self.wake = min(soon, self.wake)
