"""Which members are present, and which have left: greetings until all members were met, goodbyes until all of them know.

    here       with `greet`: who we are, and what we know of the group, until we have met all members; a greeting that asks for
               an answer gets one, also that of a stranger
    goodbye    we leave: repeated until every member that we met has said `farewell`. A member that has failed by an error says it, too
    farewell   the goodbye was received, and this member does not wait for the leaving one any more
    who        we have waited for these members: a member that knows that one of them has left says so

These messages belong to no view and carry a hash of the group's name alone, so that members that are in the
next view already can read them, and also processes with other options for the group: both sides report the difference, once.
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
"""Seconds between greetings until all members were met: the first wait, doubled each time, and the longest."""

GOODBYE, GOODBYE_MAX = 0.01, 0.25
"""The same between goodbyes; shorter, since people wait for a program to end."""

GOODBYES_MAX = 64
"""Goodbyes to members that do not answer: about a quarter of a minute."""

NAMES_MAX = 64
"""Members that are listed in a greeting; larger groups only give their number."""

CHALLENGES = 1 << 30
"""How many numbers there are that a member may be asked to repeat."""

DIFFERENCES_MAX = 64
"""Differences that are reported to a person; there may be any number of strangers."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Presence:
    """Sends and answers greetings and goodbyes; part of the session."""

    def __init__(self, session: "Session", *, greet: bool, config: dict[str, Any]) -> None:
        """`greet`: send greetings from the start. `config`: the settings that members have to agree on, in the form that people know."""
        self._session = session
        self.greets = greet
        self._config = config
        self.wake = NEVER  # for the next greeting, or goodbye
        self._greeting = Backoff(GREETING, GREETING_MAX)
        self._leaving = Backoff(GOODBYE, GOODBYE_MAX)
        self._goodbyes = 0
        self._unaware: set[int] = set()  # members that have not confirmed our goodbye
        self.early: list[Told] = []  # goodbyes in the next view, which is not installed here yet
        # The birth of the process that is each member, where it was told.
        self._births: dict[tuple[str, int], int] = {}
        # Of members that were asked whether they are here: the number that each has to repeat, and when each did so last.
        self._challenges: dict[tuple[str, int], int] = {}
        self._answered: dict[tuple[str, int], float] = {}
        self._introduced: set[int] = set()  # members whose greetings have brought the data that layers need
        self._told: set[tuple[str, str]] = set()  # differences that were reported to a person

    @property
    def has_left(self) -> bool:
        return not self._unaware

    @property
    def is_gathering(self) -> bool:
        """Whether we greet, and some members were not met yet."""
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
        self._challenges, self._answered = {}, {}
        if self.greets and self._unmet() and self.wake == NEVER:
            self._greeting.reset()
            self.wake = self._session.stack.now

    def turn(self) -> None:
        """Handle early goodbyes again: the view to which they belong may be installed by now."""
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
        """Say goodbye to all members, and wait for the answers of those that we have met."""
        stack = self._session.stack
        self._unaware = {m for m in stack.peers if m in stack.met or not self.greets}
        self.wake = NEVER
        self._say_goodbye(stack.now)

    def ask_about(self, members: set[int]) -> None:
        """Ask all whether these members, for which we wait, have left, and doubt the addresses we have of them."""
        session, people = self._session, self._session.stack.view.members
        if not members:
            return
        for member in members:
            session.stack.doubt(member)
        asked = [people[m].signed for m in sorted(members)]
        session.say_outside(None, "who", people=asked)

    def ask_whether_here(self, member: int) -> None:
        """Ask a member for an answer, since a newcomer has its name. The answer repeats a random number: other packets of the member may
        have been on their way when its process died, or were recorded by somebody who sends them now."""
        stack = self._session.stack
        number = self._challenges.setdefault(
            stack.view.members[member].identity, 1 + int(stack.rng.random() * CHALLENGES)
        )
        self._session.say_outside(member, "here", **self._ourselves(asks=True), number=number)

    def has_answered(self, member: int, since: float) -> bool:
        """Whether a member has answered since then that it is here."""
        return self._answered.get(self._session.stack.view.members[member].identity, since) > since

    # Control messages of others

    def on_here(self, packet: Packet, told: Told) -> None:
        """Handle a greeting, of this group or of another one of the same name."""
        stack, name = self._session.stack, told.text("name")
        if told.text("group") != self._session.digest:
            self._tell_difference(name, told)
            # It would not hear of us otherwise: we stop greeting once we have met all members.
            if told.flag("asks"):
                self._session.answer(packet.where, "here", **self._ourselves(asks=False))
            return
        person, number = Member(name, told.number("incarnation")), told.number("number", 0)
        if person.identity == stack.member.identity:
            return  # our own greeting
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
        packet.src = member  # its index in our view, which may differ from that in its own
        stack.meet(packet)
        stack.heard[packet.src] = stack.now
        self._introduced.add(member)
        self._session.got_to_know(packet, told)
        if told.flag("asks"):
            again = {"number": number} if number else {}
            self._session.say_outside(packet.src, "here", **self._ourselves(asks=False), **again)
        elif number and self._challenges.get(person.identity) == number:
            del self._challenges[person.identity]
            self._answered[person.identity] = stack.now

    def _is_the_one(self, person: Member, member: int, birth: int) -> bool:
        """Whether the greeting is of the process that we know by that name, which is the first one that greets."""
        if birth and self._births.setdefault(person.identity, birth) != birth:
            return False
        births = self._session.stack.wire.births
        if births is not None:
            births[member] = birth
        return True

    def _is_another(self, identity: tuple[str, int], birth: int) -> bool:
        return bool(birth) and self._births.get(identity, birth) != birth

    def on_double(self, told: Told) -> None:
        """We are told that another process has our name."""
        stack = self._session.stack
        names_us = (told.text("group"), told.text("name")) == (self._session.digest, stack.member.name)
        if names_us and told.number("birth") == stack.birth and not stack.leaving:
            why = f"another process is {stack.member.name!r} in this group, or was until just now"
            self._session.excluded(why, for_good=True)

    def on_goodbye(self, told: Told, where: Hashable = None) -> None:
        """Handle the goodbye of a member, or the report of one."""
        member, view = self._find(told), told.number("view")
        if told.flag("itself") and self._is_another(told.identity, told.number("birth")):
            return  # that process was refused, since we know another one by that name, which stays
        if member is None:
            person = told.identity
            if self._session.changes.dismiss(*person) and told.flag("itself"):
                self._session.answer(where, "farewell", **self._farewell(Member(*person)))
            return
        if view == self._session.stack.view.number + 1 and member != self._session.stack.me:
            # It has left in the next view, which is not installed here yet.
            if len(self.early) < GOODBYES_MAX:
                self.early.append(told)
            return
        stack = self._session.stack
        if member == stack.me:
            return  # our own goodbye
        if told.flag("itself"):
            self._session.say_outside(member, "farewell", **self._farewell(stack.view.members[member]))
        if member not in stack.left:
            if told.flag("bound"):
                self._session.quorum.bind(member)
            # A member that leaves in a later view had left our view behind before, and its last packets in ours may be lost.
            stack.gone(member, failed=view > stack.view.number)
        elif member in stack.failed and view == stack.view.number and not told.flag("bound"):
            # It was excluded for its silence, and by its goodbye takes part in no change any more.
            self._session.quorum.discount(member)

    def on_farewell(self, told: Told) -> None:
        member = self._find(told)
        if member is not None and told.people("leaver") == [self._person().signed]:
            self._unaware.discard(member)
            if told.number("view") > self._session.stack.view.number:
                # All members of a view without us know, also those whose farewell does not reach us.
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
        """Handle the message that others have gone on without us, from the view in which we still are."""
        stack = self._session.stack
        who = told.identity
        if told.text("group") != self._session.digest or who != stack.member.identity:
            return
        if told.large("spoken_in") != stack.wire.tag_of(stack.view):
            return
        if stack.leaving:  # then all members know that we are gone
            self._unaware.clear()
            self.wake = NEVER
            return
        leaders = told.numbers("leader")
        if not leaders or self._session.quorum.yields(leaders[0]):
            self._session.left_behind(is_slow=told.flag("slow"))
        elif packet.src in stack.peers:
            # It follows another leader, and we still count on it: tell it to give up instead.
            leader, person = self._session.changes.leader, stack.view.members[packet.src]
            self.say_excluded(person, stack.wire.tag_of(stack.view), packet.where, leader)

    # Control messages of ours

    def say_excluded(
        self,
        person: Member,
        spoken_in: int,
        where: Hashable,
        leader: int | None = None,
        *,
        is_slow: bool = False,
    ) -> None:
        """Tell a member that sends in a view which is closed here that it is not in the next one. It ignores this if it is in the view of
        another part of the group by now. With a `leader`, which leads the change to the next view, that view is not installed
        here yet. `is_slow`: it was excluded because it was too slow."""
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
        """Return the fields of our farewell to a leaving member."""
        session = self._session
        words = signed(self._person(), session.digest, session.stack.view.number)
        return {**words, "leaver": [to.signed]}

    def _find(self, told: Told) -> int | None:
        """Return the index of the member that a message names, if both are of this group."""
        who, group = Member(*told.identity), told.text("group")
        return self._session.stack.view.index(who) if group == self._session.digest else None

    def _tell_difference(self, name: str, told: Told) -> None:
        """The sender is in another group of this name: report to a person what differs, once."""
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
