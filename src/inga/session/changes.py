"""Views that change: members join, leave or fail, or the group takes another recipe. One way for all of it.

The member of lowest index that is neither gone nor suspected leads, one change at a time, and repeats what is not
answered. The view in force is *closed*: nothing more is sent in it, everybody who stays gets everything that any of them
has, and then all go on in the next one, in which everything is counted anew.

    newcomer   hello                       to all, until it is welcome
    anybody    use                         to the leader: please, another recipe
    leader     flush                       the next view; stop sending, say what you have sent, and have of those who are gone
    all        flushed                     so much; once more when all of it has left
    leader     cut                         what you lack of those who are gone, and who has it; then all that was sent
    all        want                        to whoever has it, who sends it again in the name of its sender
    all        reached                     everything is here; whoever had to say more meanwhile, in answer to what was
                                           under way, makes the leader ask once more
    leader     install                     in the new view, which alone is reason enough to install it; `welcome` for newcomers
    all        installed
    newcomer   renew                       to the leader: please, another view of the same members; see `transfer`

Whoever goes on the way, the leader among them, makes it begin again with fewer: attempts are numbered, and a later one
ends an earlier one. A member that has installed the next view already says so to whoever still asks about the old one;
nobody installs it before all who are to be in it have reached the cut, so that those who go on together have delivered
the same. Who cannot follow another recipe says `cannot`; then the leader tells all that it is `refused`, and they go on
as before.

Rejected: to let members join while everything goes on, with counts that begin where each member was when it heard of the
newcomer. Then the view is installed at another place of the order at each member, nobody can say what was delivered in
it, and a member that fails meanwhile leaves some of the others in one view and some in the next.
"""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from inga.model.compiled import mypyc_attr
from inga.model.errors import UsageError, WireError
from inga.model.view import Member, View
from inga.session.alarms import NEVER
from inga.session.closing import ClosingView, Cut, key_of, lend
from inga.session.description import PROCESSES_MAX, described, host_told, named, next_view, view_told
from inga.session.door import Accepts, Door
from inga.session.leading import FlushReport, Leading
from inga.session.questions import Questions
from inga.session.reserved import ReservedNumbers
from inga.session.wishes import BuildByName, RecipeRequest, Wishes, made
from inga.stack.stack import Done, Stack
from inga.wire.told import TEXT_MAX, Told

if TYPE_CHECKING:
    from inga.session.session import Session

ATTEMPTS_MAX = 1024
"""Attempts by which another member can be ahead of us: each has its reason, and a later one ends it within moments."""

VIEWS_MAX = 1 << 20
"""Views by which another part of the group can be ahead of ours."""

DISSOLVES = 3
"""Times that members are told at once that they are let go."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Changes:
    """Leads view changes, and follows; part of the session."""

    def __init__(self, session: "Session", build: BuildByName | None, accepts: Accepts | None) -> None:
        self._session = session
        self._build = build
        self._door = Door(session, accepts)
        self._numbers = ReservedNumbers()
        self._questions = Questions(session, self._answer)
        self.wishes = Wishes(session, self._questions, build)
        self.attempt = 0  # the latest that we know of in this view
        self._change: Leading | None = None  # the change that we lead
        self.closing: ClosingView | None = None  # the change that we follow
        # As the leader: members that may not have installed the view in force.
        self._unaware: set[int] = set()
        # Members that spoke in a closed view, or in none while we are paused, and were told so, since the last tick.
        self._reminded: set[tuple[str, int]] = set()
        self.cuts: list[int] = []  # of each process, what it had sent in views that are closed: for a trace
        self._dissolves: tuple[str, int] | None = None  # as the leader: who leads the part that takes us in
        self._is_held = False  # more is about to be said
        self._is_put_off = False  # as the leader: a change waits until everybody was met
        self.wake = NEVER

    @property
    def stack(self) -> Stack:
        return self._session.stack

    # What happens

    def propose(self, recipe: str, done: Done) -> None:
        """Ask for another recipe in the whole group."""
        self.wishes.propose(recipe, done)
        self._questions.begin()
        self._work()

    @property
    def settled(self) -> bool:
        """Whether no change is under way."""
        is_idle = self._change is None and self.closing is None
        return is_idle and not self.wishes.is_open and not self._unaware

    def view(self, view: View) -> None:
        """A view is installed; the first one comes here too."""
        led, self._change, self.closing, self.attempt = self._change, None, None, 0
        self._dissolves = None
        self._unaware.clear()
        self._numbers.view()
        self._door.view()
        self._questions.renew()
        if led is not None:
            self._unaware = set(self.stack.others)
            self._questions.tell(None, "install", number=view.number)
        elif view.attempt and self.leads:  # we have founded it, or are alone
            self._unaware = set(self.stack.others)
            self._questions.begin()
        elif view.attempt:
            self._questions.tell(self.leader, "installed", number=view.number)
        self.wishes.view(view)
        self._is_put_off = False
        # There may be more to do, but not before all layers know of this view; in a first one there cannot be.
        self.wake = self.stack.now if view.attempt else NEVER

    def gone(self, member: int) -> None:
        """A member has left or failed. Whatever is under way begins again without it."""
        self._unaware.discard(member)
        is_slow = member in self._session.slow.expelled
        self._door.part_with(self.stack.view.members[member], is_slow=is_slow)
        self._change = None
        if not self._is_installing:
            self._work()

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Several members are gone at the same time: that is one change."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
        self._work()

    def dismiss(self, name: str, incarnation: int) -> bool:
        """Somebody says goodbye who is no member: a newcomer that has thought better of it, or a former member."""
        return self._door.dismiss(name, incarnation)

    @property
    def leads(self) -> bool:
        """Whether it is for us to lead changes of the view in force."""
        return self.leader == self.stack.me

    def dissolve(self, host: tuple[str, int]) -> None:
        """As the leader: close this view and let everybody go, who then ask the leader of another part to let them in."""
        if self._dissolves is None:
            self._dissolves, self._change = host, None
            self._work()

    def leave_home(self, host: tuple[str, int] | None = None, tag: int | None = None) -> None:
        """We are in no view from now on; `host` is asked to let us into another. `tag`: of the view that we give up, if that is
        not the one in force."""
        if self.stack.views.next is not None:
            return  # we are in another one already
        part = () if host is None or self.closing is None else self.closing.view.names
        self.closing = self._change = self.wishes.request = None
        self._unaware.clear()
        self.stack.views.abandon()
        self._session.parts.leave_home(host, part, tag)
        self.wake = NEVER

    def enter(self, view: View, told: Told) -> None:
        """One that was without a view is in one, and was told this about it."""
        self.cuts = cuts = told.numbers("cuts")
        if self.stack.guard is not None:
            secret = self.stack.guard.unwrap(host_told(told, view), told.text("secret"))
            self.stack.wire.prepare(view, secret)
        try:
            layers = made(self._build, view.recipe)
        except UsageError as error:  # the others have changed to an order that we do not know
            self.stack.fail(UsageError(f"{self.stack.member.name!r} cannot come back: {error}"))
            return
        self.stack.views.install(view, layers, None, cuts)

    def go_on_alone(self) -> None:
        """Nobody lets us in: we go on in a view of our own, as the new member that we wanted to be. What we had not
        delivered in the view that we left is lost for us."""
        stack = self.stack
        if stack.views.next is not None:
            return  # somebody has just let us in
        before = stack.view.members[stack.me]
        (mine,) = self._numbers.reserve(stack, [stack.member])
        view = replace(
            stack.view,
            number=stack.view.number + 1,
            members=(stack.member,),
            joined=(),
            left=(),
            failed=tuple(name for name in stack.view.names if name != before.name),
            merged=(),
            leader=stack.member.incarnation,
            attempt=self.attempt + 1,
            processes=(mine,),
            total=mine + 1,
        )
        if stack.guard is not None:
            self.stack.wire.prepare(view, stack.guard.fresh())
        stack.views.install(view, made(self._build, view.recipe), None, self.cuts)

    def ahead(self, number: int) -> None:
        """A member that is in the next view knows that every member has reached the cut."""
        if self.closing is not None and self.closing.reached:
            self._install(self.closing)

    def late(self, view: View, source: int, address: Hashable) -> None:
        """A member of a view that is closed speaks in it: it does not know of the next, or is not in it."""
        if source >= len(view):
            return
        person = view.members[source]
        if person.identity in self._reminded:
            return
        self._reminded.add(person.identity)
        member, spoken_in = self.stack.view.index(person), self.stack.wire.tag_of(view)
        say_excluded, is_slow = self._session.presence.say_excluded, self._door.was_slow(person)
        if member is None:
            # Who was excluded from it as well, or let go, does not know what became of the others.
            if not self.stack.views.was_another(view):
                say_excluded(person, spoken_in, address, is_slow=is_slow)
        elif view is self.stack.view:  # the view in which it speaks goes on without it
            if self._session.quorum.is_primary and not self._session.parts.is_homeless:
                say_excluded(person, spoken_in, address, self.leader, is_slow=is_slow)
        elif member != self.stack.me:
            self._questions.tell(member, "install", number=self.stack.view.number)
        self.wake_soon()

    def tick(self, now: float) -> None:
        self.wake = NEVER
        self._questions.renew()
        self._reminded.clear()
        self._work()

    def turn(self) -> None:
        """What has come in this turn may be all that was missing."""
        if self.closing is not None or self._is_put_off or self.wishes.renews:
            self._work()

    def hear(self, src: int, told: Told) -> None:
        """Handle a session message of a member; WireError if its content cannot be right."""
        self._answer(told.do, src, told)
        self._work()

    def hear_newcomer(self, told: Told, address: Hashable) -> None:
        """Somebody asks to be let in."""
        if told.do != "hello":
            raise WireError("stranger", f"not a member, and says {told.do!r}")
        if self._session.quorum.is_paused:
            # Nobody can be let in. One that has been, and has not heard of it, may be all that is missing, and who would tell
            # it may be gone: whoever hears it does.
            member = self._session.quorum.turn_away(told, address)
            if member is not None and told.identity not in self._reminded:
                self._reminded.add(told.identity)
                self._welcome(member, address)
                self.wake_soon()
            return
        if self._dissolves is not None or self._session.parts.is_homeless:
            return  # not ours to answer
        host, is_ours = told.people("host"), told.text("group") == self._session.digest
        if not host and is_ours:
            # Who speaks to one address at a time may know none but ours.
            if self.leads or told.text("address"):
                self._session.answer(address, "part", **self._session.parts.part())
                return
            if not told.number("view") and self._session.silence.stands_in(self.leader):
                self._session.answer(address, "soon", **named(Member(*told.identity)))
        if not self.leads or (host and host != [self.stack.member.signed]):
            return  # another one is asked
        if told.number("view") > self.stack.view.number + VIEWS_MAX:
            raise WireError("malformed", "a view far beyond ours")
        member = self._door.look(told, address)
        if member is not None:
            self._welcome(member, address)
        self._work()

    # The work to be done, again and again until it is

    def _work(self) -> None:
        if self._is_installing or self._is_held or self.stack.leaving or self._session.parts.is_homeless:
            return
        if self.closing is None:
            self.wishes.ask(self.leader)
        if self._change is None and self.leads and not self._session.quorum.is_held:
            self._look_for_work()
        if self.closing is not None:
            self.closing.work()
            if self.closing.reached:
                self._session.quorum.promise(self.closing.leader)
        if self._change is not None:
            self._lead(self._change)
        if self._unaware:
            self._questions.ask(self._unaware, "install", number=self.stack.view.number)
            self._questions.warn(self._unaware)
            for member in self._unaware:
                person = self.stack.view.members[member]
                if person.name in self.stack.view.joined:
                    self._welcome(person, self._door.where(person, self.stack.addresses.get(member)))
        self.wake_soon()

    def wake_soon(self, *, at_once: bool = False) -> None:
        """There may be something to ask, or to ask again."""
        if at_once:
            self.wake = self.stack.now
        elif self.settled and not self._reminded and not self._is_put_off:
            self.wake = NEVER
        elif self.wake == NEVER:  # answers that keep coming do not put off what has to be repeated
            self.wake = self._questions.next_wake()

    @property
    def _is_installing(self) -> bool:
        return self.closing is not None and self.closing.installing

    def _look_for_work(self) -> None:
        """As the leader: is there a reason for another view?"""
        stack, request = self.stack, self.wishes.wanted()
        newcomers, number = self._door.newcomers(), self._door.highest_view
        is_waiting = self._door.is_gathering and self.closing is None
        if self._dissolves is not None or is_waiting:
            newcomers = []
        is_shrinking = bool(stack.left) and stack.views.follow
        is_wanted = self.wishes.renews or request is not None or self._dissolves is not None
        if not newcomers and not is_shrinking and not is_wanted:
            self._is_put_off = is_waiting
            return
        # A founder that is not there yet would keep the view closed, and everybody from sending, until it comes. Where
        # somebody is gone, the others go on without it, and let it in when it comes. One that was met, and has not told yet
        # what layers have to know of it, is there: that is waited for.
        is_gathering = self.closing is None and self._session.presence.is_gathering
        unmet = {member for member in stack.peers if member not in stack.met}
        is_enough = self._session.silence.is_sure and self._session.quorum.is_enough(unmet)
        self._is_put_off = is_gathering and not (is_shrinking and unmet and is_enough)
        if self._is_put_off:
            return
        if is_gathering:
            self._session.exclude(unmet)
            return
        if self.closing is None or self.closing.leader != stack.me:
            self._questions.begin()
        self.attempt += 1
        people = [person for person, _ in newcomers]
        view = next_view(
            stack,
            max(stack.view.number, number) + 1,
            self.attempt,
            people,
            self._numbers.reserve(stack, people),
            recipe=stack.view.recipe if request is None else request.recipe,
            parts=self._door.parts(people),
        )
        wants = [(*person.identity, self._door.wants(person)) for person in people]
        slow = self._session.slow.expelled
        self._change = change = Leading(stack, self._questions, view, self._dissolves, wants, slow)
        self._questions.renew()
        self._questions.tell(stack.me, "flush", **change.flush)

    def _lead(self, change: Leading) -> None:
        if missing := change.work():
            self._questions.warn(missing)
            self._session.silence.go_on_without(change)
        elif change.host is not None:
            for _ in range(
                DISSOLVES
            ):  # a member that does not hear it goes on alone, and hears of the other part then
                self._questions.tell(None, "dissolve", **change.key, host=[(*change.host, "")])
            self.leave_home(change.host)
        else:
            assert self.closing is not None
            self._install(self.closing)

    def _install(self, closing: ClosingView) -> None:
        if closing.installing:
            return
        closing.installing = True
        assert closing.cut is not None
        view, stack = closing.view, self.stack
        if view.traced:
            self.cuts += [0] * (stack.view.total - len(self.cuts))
            for process, most in zip(stack.view.processes, closing.cut.most, strict=True):
                self.cuts[process] += most
        self._session.slow.count(closing.cut)
        self._session.transfer.learn(closing.cut.lack, closing.cut.give)
        stack.views.install(view, closing.layers, closing.cut.most)

    def _welcome(self, person: Member, address: Hashable) -> None:
        """Tell a newcomer that it is a member: in which view, and what was before."""
        if not self._questions.is_first(person.identity, "welcome"):
            return
        guard, secret = self.stack.guard, ""
        if guard is not None:
            address = guard.address_of(person.name)
            found = guard.secret_for(person.name)
            if found is None:
                return  # it is not known yet how to tell it in private
            secret = found
        what = {
            "cuts": self.cuts,
            "group": self._session.digest,
            "secret": secret,
            "host": self.stack.member.name,
        }
        missed = self._session.slow.missed_by(person)
        self._session.answer(address, "welcome", **described(self.stack.view), **what, missed=missed)

    @property
    def leader(self) -> int:
        """Who leads changes of the view in force."""
        stack = self.stack
        return next(member for member in range(len(stack.view)) if member not in stack.left)

    # What members say to each other

    def _answer(self, do: str, src: int, told: Told) -> None:
        answer = _ANSWERS.get(do)
        if answer is None:
            raise WireError("malformed", f"nobody does {do!r}")
        answer(self, src, told)

    def _on_use(self, src: int, told: Told) -> None:
        request = RecipeRequest(told.text("recipe"), src, told.number("wish"))
        if self.leads:
            self.wishes.on_use(request)

    def _on_flush(self, src: int, told: Told) -> None:
        stack, closing = self.stack, self.closing
        view, gone = view_told(told, traced=stack.trace is not None), set(told.numbers("gone"))
        slow = told.numbers("slow")
        if view.number <= stack.view.number or (closing is not None and closing.installing):
            return
        if max(gone, default=0) >= len(stack.view):
            raise WireError("malformed", "somebody is gone who never was here")
        if view.number > stack.view.number + VIEWS_MAX or view.attempt > self.attempt + ATTEMPTS_MAX:
            raise WireError("malformed", "a view far beyond those that can follow")
        if view.traced and stack.view.total > PROCESSES_MAX:
            raise WireError(
                "malformed", "a view that is traced, where more were members than in any such group"
            )
        if closing is not None and closing.rank >= (src, view.attempt):
            return
        if any(member not in gone for member in range(src)) or src in gone:
            return  # others come before that one
        stay = [index for index in range(len(stack.view)) if index not in gone]
        if [index for person in view.members if (index := stack.view.index(person)) is not None] != stay:
            raise WireError("malformed", "a view that does not follow this one")
        if view.index(stack.member) is None:
            if self._session.quorum.yields(src):
                self._session.left_behind(is_slow=stack.me in slow)
            return
        try:
            layers = made(self._build, view.recipe)
        except UsageError as error:
            why = f"{stack.member.name}: {error}"[:TEXT_MAX]
            self._questions.tell(src, "cannot", number=view.number, attempt=view.attempt, why=why)
            return
        if src != stack.me:
            self._questions.begin()
            self._change = None
        self.attempt = max(self.attempt, view.attempt)
        self._session.slow.expelled.update(slow)
        failed = {i for i, name in enumerate(stack.view.names) if name in view.failed}
        for member in sorted(gone - stack.left):
            stack.gone(member, failed=member in failed)
        if self.closing is not closing:
            return  # that somebody is gone made us lead a change of our own
        states = self._session.transfer.report()
        self.closing = ClosingView(stack, self._questions, src, view, layers, gone, states)
        stack.views.expect(view)
        if closing is None:
            stack.views.close()
        if stack.skips:
            stack.taken([], now=stack.now)  # as if our application kept up

    def _on_flushed(self, src: int, told: Told) -> None:
        report = FlushReport.read(told, len(self.stack.view))
        self.wishes.remind(src, key_of(told))
        change = self._led(told)
        if change is not None:
            change.on_flushed(src, report)

    def _on_cut(self, src: int, told: Told) -> None:
        cut, closing = Cut.read(told, len(self.stack.view)), self._followed(src, told)
        if closing is not None:
            if self.stack.guard is not None:
                name = self.stack.view.names[src]
                self.stack.wire.prepare(closing.view, self.stack.guard.unwrap(name, cut.secret))
            closing.hear_cut(cut)

    def _on_reached(self, src: int, told: Told) -> None:
        change, count, round_ = self._led(told), told.number("count"), told.number("round")
        released, holds = told.numbers("released", len(self.stack.view)), told.flag("holds")
        if change is not None:
            change.on_reached(src, count, round_, released, holds=holds)

    def _on_install(self, src: int, told: Told) -> None:
        if told.number("number") == self.stack.view.number:
            self._questions.tell(src, "installed", number=self.stack.view.number)

    def _on_installed(self, src: int, told: Told) -> None:
        if told.number("number") == self.stack.view.number:
            self._unaware.discard(src)

    def _on_dissolve(self, src: int, told: Told) -> None:
        """Everybody in this view has the same: we ask to be let into that of another part."""
        closing, host = self._followed(src, told), told.people("host")
        if len(host) != 1:
            raise WireError("malformed", "nobody to be asked, or several")
        if closing is not None and closing.reached:
            self.leave_home(host[0][:2])

    def _on_cannot(self, src: int, told: Told) -> None:
        """A member cannot follow to another recipe."""
        change, request, why = self._led(told), self.wishes.request, told.text("why")
        if change is not None and request is not None and change.view.recipe == request.recipe:
            self._change = None
            self.wishes.refuse(change.key, why)

    def _on_refused(self, src: int, told: Told) -> None:
        key, asker, wish = key_of(told), told.number("asker"), told.number("wish")
        why, closing = told.text("why"), self.closing
        if closing is not None and (closing.key, closing.leader) == (key, src) and not closing.installing:
            self.closing = None
            self._session.quorum.promised.discard(src)
            self.stack.views.reopen()
        self.wishes.on_refused(asker, wish, why)

    def _led(self, told: Told) -> Leading | None:
        """The change that a member speaks of, if we lead it."""
        change, key = self._change, key_of(told)
        return change if change is not None and change.key == key else None

    def _followed(self, src: int, told: Told) -> ClosingView | None:
        """The change that a leader speaks of, if we follow it."""
        closing, key = self.closing, key_of(told)
        return closing if closing is not None and closing.key == key and src == closing.leader else None


_ANSWERS: dict[str, Callable[[Changes, int, Told], None]] = {
    "use": Changes._on_use,
    "renew": lambda changes, src, told: changes.wishes.renew(),
    "flush": Changes._on_flush,
    "flushed": Changes._on_flushed,
    "cut": Changes._on_cut,
    "want": lambda changes, src, told: lend(changes.stack, src, told),
    "reached": Changes._on_reached,
    "install": Changes._on_install,
    "installed": Changes._on_installed,
    "dissolve": Changes._on_dissolve,
    "cannot": Changes._on_cannot,
    "refused": Changes._on_refused,
}
"""What members say to each other."""
