"""Who is here and who has left: greetings until everybody was met, goodbyes until everybody knows.

    here       with `greet`, who we are and what we take the group for, until we have met everybody; whoever asks is
               answered, strangers too
    goodbye    we leave: repeated until everybody we met has said `farewell`. A member that failed says it, too
    farewell   that was heard, and nobody waits for that member any more
    who        we have waited for these members: whoever knows that one of them has left says so

All of it belongs to no view and carries the group's name alone, so that it is understood by members that are in the
next view already, and by those who were told something else about the group: they say what differs, once.
"""

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from inga.model.compiled import mypyc_attr
from inga.model.packet import Packet
from inga.model.view import Member
from inga.session.alarms import NEVER, Backoff
from inga.session.description import named, parting, signed
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


@mypyc_attr(allow_interpreted_subclasses=True)
class Presence:
    """Greets, answers and takes leave; part of the session."""

    def __init__(self, session: "Session", *, greet: bool, config: dict[str, Any]) -> None:
        """`greet`: say from the start that we are here. `config`: what members have to agree on, for people."""
        self._session = session
        self.greets = greet
        self._config = config
        self.wake = NEVER  # for the next greeting, or goodbye
        self._greeting = Backoff(GREETING, GREETING_MAX)
        self._leaving = Backoff(GOODBYE, GOODBYE_MAX)
        self._goodbyes = 0
        self._unaware: set[int] = set()  # members that have not confirmed our goodbye
        self.early: list[Told] = []  # goodbyes in a view that is not installed here yet
        self._births: dict[tuple[str, int], int] = {}  # which process each member is, where that was said
        self._introduced: set[int] = set()  # members that have told what layers have to know of them
        self._told: set[tuple[str, str]] = set()  # differences that a person was told of

    @property
    def has_left(self) -> bool:
        return not self._unaware

    @property
    def is_gathering(self) -> bool:
        """Whether somebody is not there yet, as far as we greet and can know."""
        return self.greets and bool(self._unmet())

    @property
    def order(self) -> str:
        """The order that the group was founded with, as people know it."""
        return str(self._config.get("order", self._session.stack.view.recipe))

    def view(self) -> None:
        """A view is installed, which may have new members: greet them."""
        self._introduced.clear()
        here = {person.identity for person in self._session.stack.view.members}
        self._births = {identity: birth for identity, birth in self._births.items() if identity in here}
        if self.greets and self._unmet() and self.wake == NEVER:
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
        self._unaware = {m for m in stack.peers if m in stack.met or not self.greets}
        self.wake = NEVER
        self._say_goodbye(stack.now)

    def ask_about(self, members: set[int]) -> None:
        """We wait for these members: ask all whether they have left, and doubt the addresses we have of them."""
        session, people = self._session, self._session.stack.view.members
        if not members:
            return
        for member in members:
            session.stack.doubt(member)
        asked = [people[m].signed for m in sorted(members)]
        session.say_outside(None, "who", people=asked)

    def ask_whether_here(self, member: int) -> None:
        """Somebody else has its name: whoever is there answers."""
        self._session.say_outside(member, "here", **self._ourselves(asks=True))

    # What others say

    def on_here(self, packet: Packet, told: Told) -> None:
        """A member greets, of this group or of what it takes for it."""
        stack, name = self._session.stack, told.text("name")
        if told.text("group") != self._session.digest:
            self._tell_difference(name, told)
            if told.flag("asks"):  # it would not hear of us else: we greet nobody once we have met everybody
                self._session.answer(packet.where, "here", **self._ourselves(asks=False))
            return
        person = Member(name, told.number("incarnation"))
        if person.identity == stack.member.identity:
            return  # our own, come back to us
        member, birth = stack.view.index(person), told.number("birth")
        if member is None:
            stack.reject("stranger")
            if told.flag("asks") and stack.view.attempt:
                self.say_excluded(person, stack.group, packet.where)  # it was a member once
            return
        if not self._is_the_one(person, member, birth):
            stack.reject("stranger")
            if told.flag("asks"):
                self._session.answer(
                    packet.where, "double", name=name, birth=birth, group=self._session.digest
                )
            return
        packet.src = member  # which may be another in its view
        stack.meet(packet)
        stack.heard[packet.src] = stack.now
        self._introduced.add(member)
        self._session.got_to_know(packet, told)
        if told.flag("asks"):
            self._session.say_outside(packet.src, "here", **self._ourselves(asks=False))

    def _is_the_one(self, person: Member, member: int, birth: int) -> bool:
        """Whether it is the process that we know by that name; the first one that greets is."""
        if birth and self._births.setdefault(person.identity, birth) != birth:
            return False
        births = self._session.stack.wire.births
        if births is not None:
            births[member] = birth
        return True

    def _is_another(self, identity: tuple[str, int], birth: int) -> bool:
        return bool(birth) and self._births.get(identity, birth) != birth

    def on_double(self, told: Told) -> None:
        """Another process has our name."""
        stack = self._session.stack
        names_us = (told.text("group"), told.text("name")) == (self._session.digest, stack.member.name)
        if names_us and told.number("birth") == stack.birth and not stack.leaving:
            why = f"another process is {stack.member.name!r} in this group, or was until just now"
            self._session.excluded(why, for_good=True)

    def on_goodbye(self, told: Told, where: Hashable = None) -> None:
        """A member leaves, or is reported to have left."""
        member, view = self._find(told), told.number("view")
        if told.flag("itself") and self._is_another(told.identity, told.number("birth")):
            return  # it was refused as we know another process by that name, which stays
        if member is None:
            person = told.identity
            if self._session.changes.dismiss(*person) and told.flag("itself"):
                self._session.answer(where, "farewell", **self._farewell(Member(*person)))
            return
        if view == self._session.stack.view.number + 1 and member != self._session.stack.me:
            # It has left in the next view, which is on its way to us.
            if len(self.early) < GOODBYES_MAX:
                self.early.append(told)
            return
        stack = self._session.stack
        if member == stack.me:
            return  # that is what we told them
        if told.flag("itself"):
            self._session.say_outside(member, "farewell", **self._farewell(stack.view.members[member]))
        if member not in stack.left:
            if told.flag("bound"):
                self._session.quorum.bind(member)
            # Who leaves in a view further on has left us behind before, and what it last sent in ours may be lost.
            stack.gone(member, failed=view > stack.view.number)
        elif member in stack.failed and view == stack.view.number and not told.flag("bound"):
            # It was silent for too long, and takes part in nothing any more.
            self._session.quorum.discount(member)

    def on_farewell(self, told: Told) -> None:
        member = self._find(told)
        if member is not None and told.people("leaver") == [self._person().signed]:
            self._unaware.discard(member)
            if told.number("view") > self._session.stack.view.number:
                # Those who are in a view without us all know, also those whose word does not come to us.
                self._unaware.clear()
            if not self._unaware and self._session.stack.leaving:
                self.wake = NEVER

    def on_who(self, packet: Packet, told: Told) -> None:
        stack = self._session.stack
        gone = {stack.view.members[member].identity for member in stack.left - stack.failed}
        asked = {(name, incarnation) for name, incarnation, _ in told.people("people")}
        for who in sorted(asked & gone):
            self.say_gone(None, Member(*who))

    def on_excluded(self, packet: Packet, told: Told) -> None:
        """Somebody has gone on without us, from the view in which we still are."""
        stack = self._session.stack
        who = told.identity
        if told.text("group") != self._session.digest or who != stack.member.identity:
            return
        if told.large("spoken_in") != stack.wire.tag_of(stack.view):
            return
        if stack.leaving:  # then everybody knows
            self._unaware.clear()
            self.wake = NEVER
            return
        leaders = told.numbers("leader")
        if not leaders or self._session.quorum.yields(leaders[0]):
            self._session.left_behind(is_slow=told.flag("slow"))
        elif packet.src in stack.peers:  # it follows another, and we count on it: then it has to give up
            leader, person = self._session.changes.leader, stack.view.members[packet.src]
            self.say_excluded(person, stack.wire.tag_of(stack.view), packet.where, leader)

    # What we say

    def say_excluded(
        self,
        person: Member,
        spoken_in: int,
        where: Hashable,
        leader: int | None = None,
        *,
        is_slow: bool = False,
    ) -> None:
        """Tell one that speaks in a view that we have left behind that it is not in the next one. It may be in that of
        another part of the group by now, and then this does not concern it. With a `leader`, who leads the change to the
        next one, we have not left it yet. `is_slow`: that is why."""
        leaders = [] if leader is None else [leader]
        told = {"group": self._session.digest, "spoken_in": spoken_in, "leader": leaders, "slow": is_slow}
        self._session.answer(where, "excluded", **named(person), **told)

    def say_gone(self, to: int | None, person: Member) -> None:
        """Tell others that another member has left."""
        member = self._session.stack.view.index(person)
        is_bound = member is not None and self._session.quorum.is_bound(member)
        self._session.say_outside(to, "goodbye", **self._parting(person, itself=False, bound=is_bound))

    def _say_here(self, now: float) -> None:
        if self._unmet():
            self._session.stack.row("control", note="greeting")
            self._session.say_outside(None, "here", **self._ourselves(asks=True))
            self.wake = now + self._greeting.next(self._session.stack.rng)

    def _say_goodbye(self, now: float) -> None:
        self._goodbyes += 1
        is_bound = bool(self._session.quorum.promised)
        self._session.say_outside(
            None, "goodbye", **self._parting(self._person(), itself=True, bound=is_bound)
        )
        if self._unaware and self._goodbyes < GOODBYES_MAX:
            self.wake = now + self._leaving.next(self._session.stack.rng)

    def _unmet(self) -> list[int]:
        stack = self._session.stack
        if stack.leaving or self._session.parts.is_homeless:
            return []
        known = stack.met & self._introduced if self._session.what_to_know() else stack.met
        return [m for m in stack.peers if m not in known]

    def _ourselves(self, *, asks: bool) -> dict[str, Any]:
        stack = self._session.stack
        names = stack.view.names
        return {
            **named(stack.member),
            "birth": stack.birth or 0,
            "group": self._session.digest,
            "asks": asks,
            "order": self.order,
            "members": list(names) if len(names) <= NAMES_MAX else [f"{len(names)} members"],
            "bases": self._session.what_to_know(),
        }

    def _person(self) -> Member:
        return self._session.stack.view.members[self._session.stack.me]

    def _parting(self, person: Member, *, itself: bool, bound: bool) -> dict[str, Any]:
        session = self._session
        birth = session.stack.birth or 0 if itself else 0
        return parting(
            person, session.digest, session.stack.view.number, itself=itself, bound=bound, birth=birth
        )

    def _farewell(self, to: Member) -> dict[str, Any]:
        """Signed by us, for one that leaves."""
        session = self._session
        words = signed(self._person(), session.digest, session.stack.view.number)
        return {**words, "leaver": [to.signed]}

    def _find(self, told: Told) -> int | None:
        """The member that a message names, if it is of this group."""
        who, group = Member(*told.identity), told.text("group")
        return self._session.stack.view.index(who) if group == self._session.digest else None

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
            self._session.stack.notice("group.differs", text[:TEXT_MAX])
