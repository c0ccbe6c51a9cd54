"""Questions that a member repeats until they are answered.

A question goes to each member at most once between two ticks of the clock. A member that receives a question meant for others answers
it as well, so if each answer made us ask again at once, questions and answers would never end.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from inga.model.compiled import mypyc_attr
from inga.session.alarms import Backoff
from inga.session.pressure import ASK_AFTER, WARN_AFTER
from inga.wire.told import Told

if TYPE_CHECKING:
    from inga.session.session import Session

PAUSE, PAUSE_MAX = 0.005, 0.1
"""Seconds before a question is repeated: first, and after doubling."""

Hears = Callable[[str, int, Told], None]
"""Handles a control message of a member: its kind, the member's index, its contents."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Questions:
    """Sends the control messages of a view change, and remembers which questions were asked since the last tick."""

    def __init__(self, session: "Session", hears: Hears) -> None:
        """`hears` handles messages of this member to itself: the leader of a change also takes part in it as a member."""
        self._session = session
        self._hears = hears
        self._asked: set[tuple[Any, ...]] = set()
        self._pause = Backoff(PAUSE, PAUSE_MAX, 0.0)
        self._since = 0.0
        self._warned = False

    def begin(self) -> None:
        """A change begins: reset the backoff, and allow a new warning."""
        self._since, self._warned = self._session.stack.now, False
        self._pause.reset()
        self._asked.clear()

    def renew(self) -> None:
        """Allow every question to be asked again."""
        self._asked.clear()

    def next_wake(self) -> float:
        """Return the time at which unanswered questions are asked again."""
        stack = self._session.stack
        return stack.now + self._pause.next(stack.rng)

    def is_first(self, *question: Any) -> bool:
        """Whether this question was not asked since the last tick; mark it as asked."""
        if question in self._asked:
            return False
        self._asked.add(question)
        return True

    def ask(self, whom: set[int], do: str, **what: Any) -> None:
        """Send this question to each of these members, unless it was sent since the last tick. The address that we have of a member that has not
        answered for `ASK_AFTER` seconds is doubted: another process may have sent in its name before we met it. `what` has fields of any name
        but `whom` and `do`."""
        stack = self._session.stack
        for member in sorted(whom):
            if stack.now - self._since >= ASK_AFTER:
                stack.doubt(member)
            if self.is_first(member, do, what.get("attempt"), what.get("src"), what.get("round")):
                self.tell(member, do, **what)

    def tell(self, whom: int | None, do: str, **what: Any) -> None:
        """Send a control message now, to one member or to all."""
        stack = self._session.stack
        if whom == stack.me:
            self._hears(do, stack.me, Told(what))
        else:
            self._session.say(whom, stack.view.number, do, what)

    def warn(self, missing: set[int]) -> None:
        """Name the members that a change waits for in a notice, once, after `WARN_AFTER` seconds."""
        stack = self._session.stack
        if not self._warned and stack.now - self._since >= WARN_AFTER:
            self._warned = True
            waited = f"a change of the view has waited {WARN_AFTER:g} s for {stack.view.listed(missing)}"
            stack.notice("view.waits", waited)
