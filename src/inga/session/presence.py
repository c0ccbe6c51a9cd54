"""Who is here and who has left: greetings until everybody was met, goodbyes until everybody knows.

    here       with `greet`, who we are and what we take the group for, until we have met everybody; whoever asks is
               answered, strangers too
    goodbye    we leave: repeated until everybody we met has said `farewell`. A member that failed says it, too
    farewell   that was heard, and nobody waits for that member any more
    who        we have waited for these members: whoever knows that one of them has left says so

All of it belongs to no view and carries the group's name alone, so that it is understood by members that are in the
next view already, and by those who were told something else about the group: they say what differs, once.
"""

from typing import TYPE_CHECKING, Any

from inga.model.errors import Excluded
from inga.model.packet import Packet
from inga.model.view import Member
from inga.session.alarms import NEVER, Backoff
from inga.wire.told import TEXT_MAX, Told

if TYPE_CHECKING:
    from inga.session.session import Session

GREETING, GREETING_MAX = 0.02, 1.0
"""Seconds between greetings while somebody was not met: the first wait, doubled each time, and the longest."""

GOODBYE, GOODBYE_MAX = 0.01, 0.25
"""The same between goodbyes, which people wait for."""

GOODBYES_MAX = 64
"""Goodbyes to those who do not answer: about a quarter of a minute."""

NAMES_MAX = 64
"""Members that are listed in a greeting; larger groups say how many they are."""

DIFFERENCES_MAX = 64
"""Differences told to a person; there may be any number of strangers."""


class Presence:
    """Greets, answers and takes leave; part of the session."""

    def __init__(self, session: "Session", *, greet: bool, config: dict[str, Any]) -> None:
        """`greet`: say from the start that we are here. `config`: what members have to agree on, for people."""
        self._session = session
        self._greet = greet
        self._config = config
        self.wake = NEVER  # for the next greeting, or goodbye
        self._greeting = Backoff(GREETING, GREETING_MAX)
        self._leaving = Backoff(GOODBYE, GOODBYE_MAX)
        self._goodbyes = 0
        self._unaware: set[int] = set()  # members that have not confirmed our goodbye
        self.early: list[Told] = []  # goodbyes in a view that is not installed here yet
        self._told: set[tuple[str, str]] = set()  # differences that a person was told of

    @property
    def has_left(self) -> bool:
        return not self._unaware

    @property
    def order(self) -> str:
        """The order that the group was founded with, as people know it."""
        return str(self._config.get("order", self._session.stack.view.recipe))

    def view(self) -> None:
        """A view is installed, which may have new members: greet them."""
        if self._greet and self._unmet() and self.wake == NEVER:
            self._greeting.reset()
            self.wake = self._session.stack.now

    def turn(self) -> None:
        """Look again at goodbyes that came early: the view to which they belong may be installed by now."""
        early, self.early = self.early, []
        for told in early:
            self.on_goodbye(told)

    def tick(self, now: float) -> None:
        self.wake = NEVER
        if self._session.stack.leaving:
            self._say_goodbye(now)
        else:
            self._say_here(now)

    def gone(self, member: int) -> None:
        self._unaware.discard(member)

    def goodbye(self) -> None:
        """We leave. Those we never met are told as well, and not waited for."""
        stack = self._session.stack
        self._unaware = {m for m in stack.peers if m in stack.met or not self._greet}
        self.wake = NEVER
        self._say_goodbye(stack.now)

    def ask_about(self, members: set[int]) -> None:
        """We wait for these members: ask all whether they have left, and doubt the addresses we have of them."""
        session, people = self._session, self._session.stack.view.members
        if not members:
            return
        for member in members:
            session.stack.doubt(member)
        asked = [[people[m].name, people[m].incarnation, ""] for m in sorted(members)]
        session.say_outside(None, "who", people=asked)

    # What others say

    def on_here(self, packet: Packet, told: Told) -> None:
        """A member greets, of this group or of what it takes for it."""
        stack, name = self._session.stack, told.text("name")
        if told.text("group") != self._session.digest:
            self._tell_difference(name, told)
            if told.flag("asks"):  # it would not hear of us else: we greet nobody once we have met everybody
                self._session.answer(packet.where, "here", **self._ourselves(asks=False))
            return
        if packet.src == stack.me:
            return  # our own, come back to us
        if packet.src >= len(stack.view) or stack.view.names[packet.src] != name:
            stack.reject("stranger")
            return
        stack.meet(packet)
        self._session.got_to_know(packet, told)
        if told.flag("asks"):
            self._session.say_outside(packet.src, "here", **self._ourselves(asks=False))

    def on_goodbye(self, told: Told) -> None:
        """A member leaves, or is reported to have left."""
        member, view = self._find(told), told.number("view")
        if member is None:
            return
        if view == self._session.stack.view.number + 1:
            # A member that sends in the next view has installed it: in that view the member has left.
            self._session.changes.ahead(view)
            if len(self.early) < GOODBYES_MAX:
                self.early.append(told)
            return
        if told.flag("itself"):
            self._session.say_outside(member, "farewell", **self._signed(self._person()))
        stack = self._session.stack
        if member == stack.me:
            if not stack.leaving:  # else that is what we told them
                stack.fail(Excluded("the others do not take us for a member any more"))
        elif member not in stack.left:
            stack.gone(member)

    def on_farewell(self, told: Told) -> None:
        member = self._find(told)
        if member is not None:
            self._unaware.discard(member)
            if not self._unaware and self._session.stack.leaving:
                self.wake = NEVER

    def on_who(self, packet: Packet, told: Told) -> None:
        stack = self._session.stack
        if packet.src >= len(stack.view):
            stack.reject("stranger")
            return
        for name, incarnation, _ in told.people("people"):
            for member in stack.left:
                person = stack.view.members[member]
                if (person.name, person.incarnation) == (name, incarnation):
                    self.say_gone(packet.src, person)

    # What we say

    def say_gone(self, to: int | None, person: Member) -> None:
        """Tell others that another member has left."""
        self._session.say_outside(to, "goodbye", **self._signed(person), itself=False)

    def _say_here(self, now: float) -> None:
        if self._unmet():
            self._session.stack.row("control", note="greeting")
            self._session.say_outside(None, "here", **self._ourselves(asks=True))
            self.wake = now + self._greeting.next(self._session.stack.rng)

    def _say_goodbye(self, now: float) -> None:
        self._goodbyes += 1
        self._session.say_outside(None, "goodbye", **self._signed(self._person()), itself=True)
        if self._unaware and self._goodbyes < GOODBYES_MAX:
            self.wake = now + self._leaving.next(self._session.stack.rng)

    def _unmet(self) -> list[int]:
        stack = self._session.stack
        return [] if stack.leaving else [m for m in stack.peers if m not in stack.met]

    def _ourselves(self, *, asks: bool) -> dict[str, Any]:
        stack = self._session.stack
        names = stack.view.names
        return {
            "name": names[stack.me],
            "group": self._session.digest,
            "asks": asks,
            "order": self.order,
            "members": list(names) if len(names) <= NAMES_MAX else [f"{len(names)} members"],
            "bases": self._session.what_to_know(),
        }

    def _person(self) -> Member:
        return self._session.stack.view.members[self._session.stack.me]

    def _signed(self, person: Member) -> dict[str, Any]:
        return {
            "name": person.name,
            "incarnation": person.incarnation,
            "group": self._session.digest,
            "view": self._session.stack.view.number,
        }

    def _find(self, told: Told) -> int | None:
        """The member that a message names, if it is of this group."""
        who, group = (told.text("name"), told.number("incarnation")), told.text("group")
        if group != self._session.digest:
            return None
        people = self._session.stack.view.members
        return next((i for i, person in enumerate(people) if (person.name, person.incarnation) == who), None)

    def _tell_difference(self, name: str, told: Told) -> None:
        """The sender means another group by this name: tell a person what differs, once."""
        ours = self._ourselves(asks=False)
        order, members = told.text("order"), told.texts("members")
        if order != ours["order"]:
            what = f"order {order!r}, here it is {ours['order']!r}"
        elif members != ours["members"]:
            what = f"the members {', '.join(members)}; here they are {', '.join(ours['members'])}"
        else:
            what = "other objects or options than here"
        text = f"{name} is in a group of this name, but with {what}: no message passes between the two"
        if (name, text) not in self._told and len(self._told) < DIFFERENCES_MAX:
            self._told.add((name, text))
            self._session.stack.notice(text[:TEXT_MAX])
