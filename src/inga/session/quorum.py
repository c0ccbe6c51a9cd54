"""Whether a part of a group may go on without the rest, according to the option `partition`.

    all        every part goes on by itself, and parts that hear each other again merge: `parts`
    primary    the part with a majority of the view in force goes on, not counting members that have said goodbye; half of them
               suffices if that half has the first member that is not gone. All others *pause*: no member is excluded, nothing is
               sent, and the view stays in force

A pause ends by itself when enough members are heard again, with nothing lost; or, if the others have gone on, by coming back as
a new member. If a majority is lost for good, a person can decide to go on without it: `go_on`.

Why two parts never go on: any two majorities of one view have a member in common, and a member follows one
change at a time. Three things could break that, and are prevented:

* A member says goodbye after it has agreed to a change (it is *bound*). Members that follow that change count it as
  one that stays, so no other member may count it as one that has left.
* A view with many newcomers is installed by few members: the others, which were in the view before and do not know of the new one, may be
  a majority of the view before. So no member is excluded from a view before a majority of those that come from the view before is known
  to be in it: the members that were heard in it, and the leader of the change to it, which is its first member.
* A member gives its membership up, since others have gone on or are about to. It never takes part in another change of
  this view, so it is not counted any more, unless it is bound to a leader that may have installed the next view.

Two parts may each have begun to go on without the other, and both have lost their majority since. Then the part gives up
that has excluded nobody, or else the part whose leader comes later: `yields`.

A member may have installed a view that no other member is in: it was too late, the others excluded it, and the members that followed have
said goodbye. Then this member counts on the others in its view, they count on it in the view before, and neither has a majority. When it
hears that all of them are paused in the view before and do not expect its view any more, it gives up both views. Then no member
can go on in its view, and the members in the view before do not count it. (A member that still expects its view could install that later and
go on there, while others go on in the view before.)

Or several members are in that view, and one that had agreed to it has since begun another change of the view before, in which nobody answers. When
that one hears that the others are paused, it gives up, since no member follows it there and its consent may be all that the others lack: they
do not count it any more. Only one of the two sides ever gives up: members that have heard others in their view stay.
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
"""The values of `partition`."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Quorum:
    """Counts the members that are present, and pauses this one without a majority; part of the session."""

    def __init__(self, session: "Session", partition: str | None) -> None:
        """`partition`: None means what the order prefers."""
        check_partition(partition)
        self._session = session
        self._partition = partition
        self._discounted: set[int] = set()  # members that gave up, or that a person has decided to do without
        self.waived: set[int] = set()  # of these, the members that a person has decided to do without
        self._bound: set[int] = set()  # members that said goodbye and had agreed to a change
        self._is_told = False  # the application was told of a pause
        self.promised: set[int] = set()  # the leaders of changes to which we have agreed
        self._agreed: dict[int, int | None] = {}  # by leader, the tag of the view to which we last agreed
        self._tag: int | None = None  # tag of the view in force
        self._before: int | None = None  # tag of the view before, if we were in it
        self._behind: set[int] = set()  # members that are paused in the view before, and do not expect ours

    @property
    def is_primary(self) -> bool:
        """Whether only one part of the group may go on."""
        session = self._session
        preferred = getattr(session.stack.chain.order, "partition", "all")
        return (self._partition or preferred) == "primary"

    @property
    def is_paused(self) -> bool:
        return self._session.stack.paused is not None

    @property
    def is_held(self) -> bool:
        """Whether the view cannot change: we are paused, and no person has decided to go on."""
        return self.is_paused and not (self.waived and self.is_enough(self._missing))

    @property
    def _missing(self) -> set[int]:
        return self._session.silence.failed | self._session.stack.failed

    # Events

    def view(self) -> None:
        """A view is installed."""
        for kept in (self._discounted, self.waived, self._bound, self.promised, self._behind):
            kept.clear()
        self._agreed.clear()
        stack = self._session.stack
        self._before = None if stack.member.name in stack.view.joined else self._tag
        self._tag = stack.wire.tag_of(stack.view)
        if self._is_told:  # installing the view has ended the pause of the stack
            self._resumed()

    def review(self) -> None:
        """The members that are present may have changed: pause, or go on."""
        session = self._session
        if not self.is_primary or session.parts.is_homeless or session.stack.leaving:
            return
        missing = self._missing
        if missing and not self.is_enough(missing):
            # When a partition ends, members hear each other again one by one, and that shall not cause a second pause.
            if self.is_paused or session.stack.now >= session.silence.lenient_until:
                self._pause(missing)
        elif self.is_paused and not missing & self.waived:
            session.stack.views.pause(None)
            session.silence.be_lenient()
            session.pressure.be_patient()
            self._resumed()
            session.changes.wake_soon(at_once=True)

    def lose_home(self) -> None:
        """We are in no view any more: if only one part may go on, pause until it admits us. A process that has just started was in
        no view, and does not pause."""
        stack = self._session.stack
        if self.is_primary and (stack.met or stack.view.attempt):
            self._pause({*stack.peers} | stack.failed)

    def go_on(self) -> None:
        """A person has decided to go on without the missing members."""
        stack = self._session.stack
        if stack.paused is None:
            raise UsageError("this part of the group is not paused: there is nothing to decide")
        if self._session.parts.is_homeless:
            self._session.changes.go_on_alone()
        else:
            self.waive({stack.view.names.index(name) for name in stack.paused.missing})
            self._session.silence.conclude()

    def waive(self, members: Collection[int]) -> None:
        """A person has decided, here or at another member of this part, to do without these members."""
        fresh = {member for member in members if member < len(self._session.stack.view)} - self.waived
        if fresh:
            self.waived |= fresh
            self._discounted |= fresh
            self.review()

    def bind(self, member: int) -> None:
        """A member says goodbye after it has agreed to a change."""
        self._bound.add(member)

    def is_bound(self, member: int) -> bool:
        return member in self._bound

    def on_hello(self, told: Told) -> None:
        """A process without a view asks for admission: if it was a member of our view, that incarnation never comes back."""
        stack = self._session.stack
        was, spoken_in, bound = told.people("was"), told.large("spoken_in"), told.numbers("bound")
        member = stack.view.index(Member(*was[0][:2])) if was else None
        if member is not None and spoken_in in self._agreed.values():
            # It gave up without having installed the view to which we agreed with it.
            self.promised.discard(member)
        if spoken_in != stack.wire.tag_of(stack.view):
            return
        void = self._discounted | {stack.me}  # leaders that have given up have not installed the next view
        if member is not None and void.issuperset(bound):
            self.discount(member)

    def on_lost(
        self, who: tuple[str, int], spoken_in: int, next_: int, attempt: int, *, has_company: bool
    ) -> None:
        """Another member is paused as well, perhaps in the view before ours; it knows of `attempt` attempts to change that view, and expects the
        view with the tag `next_`. If all members that count in our view are paused in the view before, and none of them can install ours any
        more, we give up both views. Or it is in a view after ours, and has heard others there: then we give up too, if we agreed
        to that view and to no other, and cannot install it any more."""
        session = self._session
        stack = session.stack
        member = stack.view.index(Member(*who))
        if member in (None, stack.me):
            return
        if has_company and spoken_in != stack.wire.next_tag and self._has_agreed_only_to(spoken_in):
            self.promised.clear()  # that change was completed
            session.changes.leave_home(tag=spoken_in)
            return
        if spoken_in != self._before or self.promised:
            return
        assert member is not None
        if next_ == self._tag or attempt < stack.view.attempt:
            return  # it will install ours when it hears from us, or sent this before it agreed to ours
        self._behind.add(member)
        others = {*self._counted} - {stack.me}
        if others <= self._behind and not any(map(session.silence.has_spoken, others)):
            session.changes.leave_home(tag=self._before)

    def _has_agreed_only_to(self, tag: int) -> bool:
        """Whether we agreed to that view, and no leader can have installed another one with our consent."""
        leaders = {leader for leader, agreed in self._agreed.items() if agreed == tag}
        return bool(leaders) and self.promised <= leaders

    def discount(self, member: int) -> None:
        """Stop counting a member that never takes part in another change of this view."""
        if member not in self._discounted:
            self._discounted.add(member)
            self.review()

    def promise(self, leader: int) -> None:
        """We agree to the change of this leader, which may install the view that we expect from now on."""
        expected = self._session.stack.wire.next_tag
        if leader != self._session.stack.me:
            self.promised.add(leader)
            self._agreed[leader] = expected

    def yields(self, leader: int) -> bool:
        """Whether we give up in favour of the part of `leader`, which goes on without us and has not installed the next view yet."""
        if not self.is_primary or not self._session.stack.failed:
            return True
        return leader <= self._session.changes.leader

    def turn_away(self, told: Told, address: Hashable) -> Member | None:
        """Answer a newcomer that asks while we are paused: another part may admit it. A former member gets no answer and
        waits, and so does a newcomer while we may soon be admitted to another part ourselves. If the newcomer is a member of our view already, return it."""
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
        """Whether the members of the view that are neither `missing` nor gone may go on."""
        if not self.is_primary:
            return True
        stack, counted = self._session.stack, self._counted
        here = {m for m in counted if m not in stack.left and m not in missing}
        return is_majority(here, counted) and self._is_settled(counted)

    @property
    def _counted(self) -> list[int]:
        """The members of this view that have neither said goodbye nor given up."""
        stack = self._session.stack
        said_goodbye = stack.left - stack.failed - self._bound
        return [m for m in range(len(stack.view)) if m not in said_goodbye and m not in self._discounted]

    def _is_settled(self, counted: Sequence[int]) -> bool:
        """Whether the members of the view before cannot go on there without knowing of this view."""
        stack, session = self._session.stack, self._session
        if not stack.view.attempt:
            return True
        old = [m for m in counted if stack.view.names[m] not in stack.view.joined]
        # The first member led the change to this view, and installed it before any other member could.
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
    """Whether these members are more than half of those counted, or half of them with the first."""
    return 2 * len(here) > len(counted) or (2 * len(here) == len(counted) and counted[0] in here)
