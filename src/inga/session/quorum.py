"""Whether a part of a group may go on without the rest: what `partition` says.

    all        every part goes on by itself, and they find together when they hear each other again: `parts`
    primary    those go on who are a majority of the view in force, not counting members that have said goodbye; half of them
               if the first that is not gone is among them. All others *pause*: nobody is excluded, nothing is sent, and the
               view stays in force

A pause ends by itself when enough are heard again, with nothing lost; or, when the others have gone on, by coming back as
a new member. If a majority is lost for good, a person can decide to go on without it: `go_on`.

Why there are never two parts that go on: any two majorities of one view have a member in common, and a member follows one
change at a time. Three things would spoil that, and are looked after:

* Somebody says goodbye when it has agreed to a change already (it is *bound*). Those who follow that change count it as
  one that stays, so nobody else may count it as one that has left.
* A view with many newcomers, installed by few: those who were in the one before and do not know of it may be a majority
  there. So nobody is excluded from a view before a majority of those who come from the one before is known to be in it:
  whoever was heard in it, and the one that led the change to it, which is its first member.
* A member gives its membership up, since others have gone on or are about to. As it never takes part in another change of
  this view it is not counted any more, unless it is bound to somebody who may have installed the next one.

Two parts may each have begun to go on, each without the other, and neither have a majority any more. Then those give up
who have excluded nobody, or whose leader comes later: `yields`.

One may have installed a view that nobody else is in: it was too late, the others excluded it, and those who followed have said
goodbye. Then it counts on them here, and they on it in the view before, and nobody has a majority. It hears that all of them
are paused there, and do not expect this view any more, and gives up both. Nobody can go on with this one then, and those in the
view before do not count it. One that still expects it could install it later and go on there, while others go on in the one before.

Or several are in that view, and one that had agreed to it has begun another change since, of the view before, in which nobody answers. If
it hears that they are paused it gives up, as nobody follows it there and it may be all that they lack: they do not count it any more.
Only one side ever gives up for the other: those who have heard somebody in their view stay.
"""

from collections.abc import Collection, Hashable, Sequence
from typing import TYPE_CHECKING

from inga.model.compiled import mypyc_attr
from inga.model.errors import NoMajority, UsageError
from inga.model.event import Paused, Resumed
from inga.model.view import Member
from inga.session.description import named
from inga.wire.told import TEXT_MAX, Told

if TYPE_CHECKING:
    from inga.session.session import Session

PARTITIONS = ("primary", "all")
"""What `partition` can be."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Quorum:
    """Counts who is here, and pauses; part of the session."""

    def __init__(self, session: "Session", partition: str | None) -> None:
        """`partition`: None means what the order prefers."""
        check_partition(partition)
        self._session = session
        self._partition = partition
        self._discounted: set[int] = set()  # members that gave up, or that a person has decided to do without
        self.waived: set[int] = set()  # of these, the latter
        self._bound: set[int] = set()  # members that said goodbye and had agreed to a change
        self._is_told = False  # the application knows of a pause
        self.promised: set[int] = set()  # those who lead changes to which we have agreed
        self._agreed: dict[
            int, int | None
        ] = {}  # the tag of the view to which we agreed last, by who leads to it
        self._tag: int | None = None  # of the view in force
        self._before: int | None = None  # of the one before, if we were in it
        self._behind: set[int] = set()  # members that are paused in that one, and do not expect ours

    @property
    def is_primary(self) -> bool:
        """Whether one part alone may go on."""
        session = self._session
        preferred = getattr(session.stack.chain.order, "partition", "all")
        return (self._partition or preferred) == "primary"

    @property
    def is_paused(self) -> bool:
        return self._session.stack.paused is not None

    @property
    def is_held(self) -> bool:
        """Whether the view cannot change: we are paused, and nobody has decided to go on."""
        return self.is_paused and not (self.waived and self.is_enough(self._missing))

    @property
    def _missing(self) -> set[int]:
        return self._session.silence.failed | self._session.stack.failed

    # What happens

    def view(self) -> None:
        """A view is installed."""
        for kept in (self._discounted, self.waived, self._bound, self.promised, self._behind):
            kept.clear()
        self._agreed.clear()
        stack = self._session.stack
        self._before = None if stack.member.name in stack.view.joined else self._tag
        self._tag = stack.wire.tag_of(stack.view)
        if self._is_told:  # the stack is not paused any more
            self._resumed()

    def review(self) -> None:
        """Who is here may have changed: pause, or go on."""
        session = self._session
        if not self.is_primary or session.parts.is_homeless or session.stack.leaving:
            return
        missing = self._missing
        if missing and not self.is_enough(missing):
            # When a cut ends not all hear of all at the same moment, and one pause is enough.
            if self.is_paused or session.stack.now >= session.silence.lenient_until:
                self._pause(missing)
        elif self.is_paused and not missing & self.waived:
            session.stack.views.pause(None)
            session.silence.be_lenient()
            session.pressure.be_patient()
            self._resumed()
            session.changes.wake_soon(at_once=True)

    def lose_home(self) -> None:
        """We are in no view any more: where one part alone goes on, we wait until it lets us in. One that has just started
        was in none."""
        stack = self._session.stack
        if self.is_primary and (stack.met or stack.view.attempt):
            self._pause({*stack.peers} | stack.failed)

    def go_on(self) -> None:
        """A person has decided that those who are missing are not waited for."""
        stack = self._session.stack
        if stack.paused is None:
            raise UsageError("this part of the group is not paused: there is nothing to decide")
        if self._session.parts.is_homeless:
            self._session.changes.go_on_alone()
        else:
            self.waive({stack.view.names.index(name) for name in stack.paused.missing})
            self._session.silence.conclude()

    def waive(self, members: Collection[int]) -> None:
        """It was decided, here or elsewhere in this part, to do without these."""
        fresh = {member for member in members if member < len(self._session.stack.view)} - self.waived
        if fresh:
            self.waived |= fresh
            self._discounted |= fresh
            self.review()

    def bind(self, member: int) -> None:
        """A member says goodbye that has agreed to a change."""
        self._bound.add(member)

    def is_bound(self, member: int) -> bool:
        return member in self._bound

    def on_hello(self, told: Told) -> None:
        """One without a view asks to be let in: if it was in ours it never comes back as who it was."""
        stack = self._session.stack
        was, spoken_in, bound = told.people("was"), told.large("spoken_in"), told.numbers("bound")
        member = stack.view.index(Member(*was[0][:2])) if was else None
        if member is not None and spoken_in in self._agreed.values():
            self.promised.discard(member)  # it gave up without having installed what we agreed to with it
        if spoken_in != stack.wire.tag_of(stack.view):
            return
        void = self._discounted | {stack.me}  # who has given up has not installed anything
        if member is not None and void.issuperset(bound):
            self.discount(member)

    def on_lost(
        self, who: tuple[str, int], spoken_in: int, next_: int, attempt: int, *, has_company: bool
    ) -> None:
        """Somebody is paused as well, perhaps in the view before ours; it knows of so many attempts to end that, and expects the
        view `next_`. If all who count here are paused there, and none of them can come here any more, we give both up. Or it is in a
        view after ours and not alone: then we do so if we agreed to that one, and to no other, and cannot come there any more."""
        session = self._session
        stack = session.stack
        member = stack.view.index(Member(*who))
        if member in (None, stack.me):
            return
        if has_company and spoken_in != stack.wire.next_tag and self._has_agreed_only_to(spoken_in):
            self.promised.clear()  # that change came about
            session.changes.leave_home(tag=spoken_in)
            return
        if spoken_in != self._before or self.promised:
            return
        assert member is not None
        if next_ == self._tag or attempt < stack.view.attempt:
            return  # it has only to hear of ours, which we tell it all the time; or said so before it agreed to ours
        self._behind.add(member)
        others = {*self._counted} - {stack.me}
        if others <= self._behind and not any(map(session.silence.has_spoken, others)):
            session.changes.leave_home(tag=self._before)

    def _has_agreed_only_to(self, tag: int) -> bool:
        """Whether no leader but the one of that view could have installed another one with our consent."""
        leaders = {leader for leader, agreed in self._agreed.items() if agreed == tag}
        return bool(leaders) and self.promised <= leaders

    def discount(self, member: int) -> None:
        """A member of this view never takes part in another change of it."""
        if member not in self._discounted:
            self._discounted.add(member)
            self.review()

    def promise(self, leader: int) -> None:
        """We agree to the change that this one leads, and it may install the view that we expect."""
        expected = self._session.stack.wire.next_tag
        if leader != self._session.stack.me:
            self.promised.add(leader)
            self._agreed[leader] = expected

    def yields(self, leader: int) -> bool:
        """Whether we give up for a part that `leader` leads, that goes on without us and is not in the next view yet."""
        if not self.is_primary or not self._session.stack.failed:
            return True
        return leader <= self._session.changes.leader

    def turn_away(self, told: Told, address: Hashable) -> Member | None:
        """A newcomer asks while we are paused, and may find another part meanwhile. Who was a member before just waits. If we
        are about to be let in somewhere ourselves, it will be, too. Who is a member is not turned away: that one."""
        stack = self._session.stack
        member = stack.view.index(Member(*told.identity))
        if member is not None:
            return stack.view.members[member]
        is_ours = told.text("group") == self._session.digest
        if is_ours and not told.number("view") and not self._session.parts.is_hopeful:
            who = named(Member(*told.identity))
            self._session.answer(address, "paused", **who, why=str(stack.paused)[:TEXT_MAX])
        return None

    # Counting

    def is_enough(self, missing: Collection[int]) -> bool:
        """Whether those who are left without these, and without all that are gone, may go on."""
        if not self.is_primary:
            return True
        stack, counted = self._session.stack, self._counted
        here = {m for m in counted if m not in stack.left and m not in missing}
        return is_majority(here, counted) and self._is_settled(counted)

    @property
    def _counted(self) -> list[int]:
        """Members of this view that have neither said goodbye nor given up."""
        stack = self._session.stack
        said_goodbye = stack.left - stack.failed - self._bound
        return [m for m in range(len(stack.view)) if m not in said_goodbye and m not in self._discounted]

    def _is_settled(self, counted: Sequence[int]) -> bool:
        """Whether those of the view before cannot go on without knowing of this one."""
        stack, session = self._session.stack, self._session
        if not stack.view.attempt:
            return True
        old = [m for m in counted if stack.view.names[m] not in stack.view.joined]
        # The first member led the change to this view, and had installed it before anybody else could.
        known = {m for m in old if m in (0, stack.me) or session.silence.has_spoken(m)}
        return not old or is_majority(known, old)

    # Pausing

    def _pause(self, missing: set[int]) -> None:
        stack = self._session.stack
        names = tuple(stack.view.names[member] for member in sorted(missing))
        if stack.paused is not None and stack.paused.missing == names:
            return
        text = (
            f"paused: without {', '.join(names)} those who are here are no majority of "
            f"{', '.join(stack.view.names)}"
        )
        stack.views.pause(NoMajority(text, names))
        self._session.parts.look()
        if not self._is_told:
            self._is_told = True
            stack.notice("group.paused", text)
            self._session.changes.wishes.end(text)
            stack.to_deliver.append(Paused(stack.view, names))

    def _resumed(self) -> None:
        stack = self._session.stack
        self._is_told = False
        stack.notice("group.resumed", "the pause is over")
        stack.to_deliver.append(Resumed(stack.view))


def check_partition(partition: str | None) -> None:
    if partition is not None and partition not in PARTITIONS:
        raise UsageError(f"partition is {' or '.join(PARTITIONS)}, not {partition!r}")


def is_majority(here: Collection[int], counted: Sequence[int]) -> bool:
    """Whether these are more than half of those that count, or half of them with the first."""
    return 2 * len(here) > len(counted) or (2 * len(here) == len(counted) and counted[0] in here)
