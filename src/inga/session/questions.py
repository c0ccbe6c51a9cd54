"""Questions that a member repeats until they are answered.

A question goes to each member once between two ticks of the clock. A member that hears what is meant for others answers
as well, and if answers made us ask again at once, there would be no end of it.
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
"""Takes what a member says: what it is about, the member's index, the words."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Questions:
    """What this member says to others while a view changes, and what it has asked since the last tick."""

    def __init__(self, session: "Session", hears: Hears) -> None:
        """`hears` takes what this member says to itself: whoever leads a change follows it as well."""
        self._session = session
        self._hears = hears
        self._asked: set[tuple[Any, ...]] = set()
        self._pause = Backoff(PAUSE, PAUSE_MAX, 0.0)
        self._since = 0.0
        self._warned = False

    def begin(self) -> None:
        """A change begins: waits are short again, and a new warning may be due."""
        self._since, self._warned = self._session.stack.now, False
        self._pause.reset()
        self._asked.clear()

    def renew(self) -> None:
        """Everything may be asked again."""
        self._asked.clear()

    def next_wake(self) -> float:
        """When what was not answered is asked again."""
        stack = self._session.stack
        return stack.now + self._pause.next(stack.rng)

    def is_first(self, *question: Any) -> bool:
        """Whether this was not asked since the last tick; now it is."""
        if question in self._asked:
            return False
        self._asked.add(question)
        return True

    def ask(self, whom: set[int], do: str, **what: Any) -> None:
        """Say this to each of these members, unless it was said since the last tick. One that does not answer for long may
        not be where we think: somebody may have spoken in its name before we met it. `what` has words of any name
        but `whom` and `do`."""
        stack = self._session.stack
        for member in sorted(whom):
            if stack.now - self._since >= ASK_AFTER:
                stack.doubt(member)
            if self.is_first(member, do, what.get("attempt"), what.get("src"), what.get("round")):
                self.tell(member, do, **what)

    def tell(self, whom: int | None, do: str, **what: Any) -> None:
        """Say this now, to one member or to all."""
        stack = self._session.stack
        if whom == stack.me:
            self._hears(do, stack.me, Told(what))
        else:
            self._session.say(whom, stack.view.number, do, what)

    def warn(self, missing: set[int]) -> None:
        """Say once which members a change has waited for, when that takes long."""
        stack = self._session.stack
        if not self._warned and stack.now - self._since >= WARN_AFTER:
            self._warned = True
            waited = f"a change of the view has waited {WARN_AFTER:g} s for {stack.view.listed(missing)}"
            stack.notice("view.waits", waited)
