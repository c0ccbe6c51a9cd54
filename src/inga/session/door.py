"""Who is let in, and what it has to know: the members' side of `newcomer`."""

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from inga.model.view import Member, View
from inga.wire.told import TEXT_MAX, Told

if TYPE_CHECKING:
    from inga.session.session import Session

NAME_MAX = 255
"""Characters of a newcomer's name, and of its address."""

REFUSED_MAX = 64
"""Newcomers that are remembered as refused."""

Accepts = Callable[[Member], str | None]
"""Asks the driver about a newcomer: the reason for which it cannot join, or None."""


class Door:
    """Looks at those who ask to be let in, and tells them where everybody had got to."""

    def __init__(self, session: "Session", accepts: Accepts | None) -> None:
        self._session = session
        self._accepts = accepts  # the driver's objections
        # A newcomer that was refused has given up: a late copy of its request must not let it in.
        self._refused: dict[Member, str] = {}
        self._bases: dict[str, int] = {}  # what the newcomer of this view has to know of us

    def look(self, told: Told, address: Hashable) -> Member | None:
        """The newcomer that asks, if it may join and is no member yet; otherwise it is told why not."""
        newcomer = Member(told.text("name"), told.number("incarnation"), told.text("address"))
        if newcomer in self._session.stack.view.members:
            return None  # its view is on the way
        why = self._refused.get(newcomer) or self._difference(told) or self._objection(newcomer)
        if why is None:
            return newcomer
        self._refused[newcomer] = why
        if len(self._refused) > REFUSED_MAX:
            del self._refused[next(iter(self._refused))]
        who = {"name": newcomer.name, "incarnation": newcomer.incarnation}
        self._session.answer(address, "closed", **who, why=why[:TEXT_MAX])
        return None

    def let_in(self, view: View) -> None:
        """Go on with a view that has a newcomer in it."""
        stack = self._session.stack
        self._bases = stack.views.extend(view, now=stack.now)
        self._tell_base()

    def on_bases(self, told: Told) -> None:
        """The newcomer has not heard from us, or from somebody who has left meanwhile."""
        stack = self._session.stack
        if told.number("number") == stack.view.number and self._bases:
            self._tell_base()
            for member in sorted(stack.left):
                self._session.presence.say_gone(None, stack.view.members[member])

    def _tell_base(self) -> None:
        """What the newcomer has to know; until that is all true, it goes on asking."""
        stack = self._session.stack
        if stack.views.is_flushed:
            number = stack.view.number
            self._session.say(None, number, "base", {"number": number, **self._bases})

    def _difference(self, told: Told) -> str | None:
        if told.text("group") == self._session.digest:
            return None
        return (
            "this group has another order, other founders or other objects: "
            f"order {self._session.presence.order!r}, founded by {', '.join(self._session.stack.view.names)}"
        )

    def _objection(self, newcomer: Member) -> str | None:
        stack = self._session.stack
        if not newcomer.name or max(len(newcomer.name), len(newcomer.address)) > NAME_MAX:
            return f"a name has 1 to {NAME_MAX} characters"
        if newcomer.name in stack.view.names:
            return f"there is a member {newcomer.name!r} already"
        if stack.left:
            return "a member has left, and joining after that is not built yet"
        if stack.views.fixed:
            return f"its order {stack.view.recipe!r} works with a fixed group only"
        return None if self._accepts is None else self._accepts(newcomer)
