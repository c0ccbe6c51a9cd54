"""Requests for admission: validated here, then refused, or kept until the next view includes the newcomer. The members' side of `newcomer`."""

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING

from inga.model.compiled import mypyc_attr
from inga.model.errors import WireError
from inga.model.view import MEMBERS_MAX, Member
from inga.session.description import named
from inga.wire.told import TEXT_MAX, Told, said

if TYPE_CHECKING:
    from inga.session.session import Session

NAME_MAX = 255
"""Characters of a newcomer's name, of its address, and of the kind of state that it wants."""

AT_ONCE_BYTES = 16 * 1024
"""Bytes by which all newcomers of one view may make the messages of the change longer; the first newcomer is always admitted. These messages
have to fit a datagram, however long the names of 64 newcomers are."""

REFUSED_MAX = 64
"""Newcomers that are remembered as refused, and as many that wait."""

FORMER_MAX = 256
"""Former members that are remembered: a newcomer that was admitted, and excluded before it heard of that, asks again."""

ASKS_WITHIN = 2.0
"""Seconds after which a newcomer that does not ask again has given up: many times the pause between two of its requests."""

SPEAKS_FOR = 5.0
"""Seconds after which a member that sends, but does not answer whether it is here, counts as present: our questions may not reach it."""

PART_WITHIN = 0.3
"""Seconds within which all members of a dissolved part have asked for admission: they begin at the same moment."""

Accepts = Callable[[Member], str | None]
"""Asks the driver about a newcomer; returns the reason why it cannot join, or None."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Door:
    """Decides on requests for admission; only the leader's decisions have an effect."""

    def __init__(self, session: "Session", accepts: Accepts | None) -> None:
        self._session = session
        self._accepts = accepts  # the driver's objections
        # A newcomer that was refused has given up: a late copy of its request must not let it in.
        self._refused: dict[Member, str] = {}
        self._waiting: dict[Member, _Caller] = {}
        # Former members, and whether they were excluded as too slow.
        self._former: dict[tuple[str, int], bool] = {}
        # The addresses of new members that may not have heard yet that they were admitted.
        self._asked_from: dict[tuple[str, int], Hashable] = {}

    def was_slow(self, person: Member) -> bool:
        """Whether the process was excluded because it was too slow."""
        return self._former.get(person.identity, False)

    def part_with(self, person: Member, *, is_slow: bool = False) -> None:
        """Remember a former member: this incarnation of it is never admitted again."""
        self._former[person.identity] = is_slow
        if len(self._former) > FORMER_MAX:
            del self._former[next(iter(self._former))]

    def look(self, told: Told, address: Hashable) -> Member | None:
        """Handle a request for admission. If the newcomer is in the view already, it has not heard of that: return it. Otherwise it waits for the
        next view, or is told why it is refused."""
        newcomer = Member(told.text("name"), told.number("incarnation"), told.text("address"))
        if self._session.stack.view.index(newcomer) is not None:
            before = self._asked_from.get(newcomer.identity, address)
            self._asked_from[newcomer.identity] = self._session.porter.better(before, address)
            return newcomer
        who = named(newcomer)
        if newcomer.identity in self._former:
            self._session.answer(address, "again", **who, free=self._free(newcomer.name))
            return None
        now = self._session.stack.now
        caller = self._waiting.get(newcomer) or _Caller(now, self._session.silence.forgiven)
        # Read all fields before any of them takes effect: a malformed one raises an error.
        number, wants, part = told.number("view"), told.text("wants"), tuple(told.texts("part"))
        if len(wants) > NAME_MAX:
            raise WireError("malformed", "a kind of state with a very long name")
        why = self._refused.get(newcomer) or self._difference(told) or self._objection(newcomer, caller)
        if why is None:
            if newcomer in self._waiting or len(self._waiting) < REFUSED_MAX:
                self._waiting[newcomer] = caller
                caller.asked, caller.address = now, self._session.porter.better(caller.address, address)
                caller.view, caller.wants, caller.part = number, wants, part
            return None
        self._waiting.pop(newcomer, None)
        self._refused[newcomer] = why
        if len(self._refused) > REFUSED_MAX:
            del self._refused[next(iter(self._refused))]
        self._session.answer(address, "closed", **who, why=why[:TEXT_MAX])
        return None

    def where(self, person: Member, known: Hashable) -> Hashable:
        """Return the address from which a member asked that has not heard of its admission yet; for all others the `known` one."""
        return self._asked_from.get(person.identity, known)

    def view(self) -> None:
        """Another view is installed, perhaps with newcomers that waited for it."""
        self._asked_from = {
            person.identity: caller.address
            for person, caller in self._waiting.items()
            if self._session.stack.view.index(person) is not None
        }

    def _free(self, name: str) -> int:
        """Return the first incarnation of that name that was never a member, as far as we remember."""
        people = [*self._former, *(person.identity for person in self._session.stack.view.members)]
        return 1 + max(incarnation for each, incarnation in people if each == name)

    def newcomers(self) -> list[tuple[Member, Hashable]]:
        """Return the newcomers for the next view, with their addresses: each name once, and none that a present member has. Newcomers
        that do not fit into the messages of the change wait for the view after that."""
        stack = self._session.stack
        self._waiting = {
            person: caller
            for person, caller in self._waiting.items()
            if stack.now - caller.asked < ASKS_WITHIN and stack.view.index(person) is None
        }
        taken = {stack.view.names[member] for member in (stack.me, *stack.peers)}
        found: list[tuple[Member, Hashable]] = []
        size = 0
        for person, caller in self._waiting.items():
            if person.name not in taken:
                # Its name occurs among the members, those that joined, the merging parts and those that lack a state.
                size += len(said("", all=[*4 * [person.name], person.address, caller.wants]))
                if (found and size > AT_ONCE_BYTES) or len(taken) == MEMBERS_MAX:
                    break
                taken.add(person.name)
                found.append((person, caller.address))
        return found

    def parts(self, newcomers: Iterable[Member]) -> list[tuple[str, ...]]:
        """Return the other parts of the group from which some of these newcomers come, each as the names of its members."""
        parts: dict[tuple[str, ...], list[str]] = {}
        for person in newcomers:
            if part := self._waiting[person].part:
                parts.setdefault(part, []).append(person.name)
        return list(map(tuple, parts.values()))

    @property
    def is_gathering(self) -> bool:
        """Whether some members of a dissolved part have asked just now, and the others are about to."""
        now, names = self._session.stack.now, {person.name for person in self._waiting}
        return any(
            now - caller.since < PART_WITHIN and not names.issuperset(caller.part)
            for caller in self._waiting.values()
        )

    def wants(self, person: Member) -> str:
        """The kind of state that a newcomer wants."""
        return self._waiting[person].wants

    @property
    def highest_view(self) -> int:
        """The highest number of a view in which a waiting newcomer was before: the next view gets a higher one."""
        return max([caller.view for caller in self._waiting.values()], default=0)

    def dismiss(self, name: str, incarnation: int) -> bool:
        """A newcomer has withdrawn its request, if it made one; return whether this process was a member before."""
        self._waiting = {p: c for p, c in self._waiting.items() if p.identity != (name, incarnation)}
        return (name, incarnation) in self._former

    def _difference(self, told: Told) -> str | None:
        if told.text("group") == self._session.digest:
            return None
        return (
            "this group has another order, other founders or other objects: "
            f"order {self._session.presence.order!r}, founded by {', '.join(self._session.stack.view.names)}"
        )

    def _objection(self, newcomer: Member, caller: "_Caller") -> str | None:
        stack = self._session.stack
        if not stack.views.follow:
            return f"its order {stack.view.recipe!r} works with a fixed group only"
        if not newcomer.name or max(len(newcomer.name), len(newcomer.address)) > NAME_MAX:
            return f"a name has 1 to {NAME_MAX} characters"
        if newcomer.name in stack.view.names:
            member = stack.view.names.index(newcomer.name)
            silence, presence = self._session.silence, self._session.presence
            # If our process was stopped since, the times at which members were heard were moved by as much; so is this one.
            since = caller.since + silence.forgiven - caller.forgiven
            speaks = stack.heard[member] > since + SPEAKS_FOR and silence.has_spoken(member)
            is_here = speaks or presence.has_answered(member, caller.since)
            if member == stack.me or (member in stack.peers and is_here):
                return f"there is a member {newcomer.name!r} already"
            if member in stack.peers:  # it may have failed, and the newcomer be its next incarnation
                presence.ask_whether_here(member)
        elif len(stack.view) - len(stack.left) >= MEMBERS_MAX:
            return f"it has {MEMBERS_MAX} members, and no group has more"
        return None if self._accepts is None else self._accepts(newcomer)


@mypyc_attr(allow_interpreted_subclasses=True)
class _Caller:
    """A newcomer that waits for admission."""

    __slots__ = ("address", "asked", "forgiven", "part", "since", "view", "wants")

    def __init__(self, now: float, forgiven: float) -> None:
        self.since = self.asked = now
        self.forgiven = forgiven  # seconds that `silence` had forgiven by then
        self.address: Hashable = None
        self.view = 0  # the number of the view in which it was before
        self.part: tuple[str, ...] = ()  # all members that left that view together with it
        self.wants = ""  # the kind of state that it lacks
