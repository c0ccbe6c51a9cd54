"""View changes: members join, leave or fail, or the group takes another recipe. One procedure for all of these.

The member of lowest index that is neither gone nor suspected leads, one change at a time, and repeats what is not
answered. The view in force is *closed*: nothing more is sent in it, every member that stays gets all packets that any of them
has, and then all go on in the next view, in which everything is counted anew.

    newcomer   hello                       to all, until it gets `welcome`
    member     use                         to the leader: a request for another recipe
    leader     flush                       the next view; stop sending, report what you have sent, and have of departed members
    all        flushed                     the report; once more when all that was sent has left
    leader     cut                         what you lack of departed members, and who has it; how much every member has sent
    all        want                        to a member that has such packets, which sends them again in the name of their sender
    all        reached                     everything up to the cut is here; if a member had to send more meanwhile, in answer to
                                           a call in progress, the leader asks all once more
    leader     install                     in the new view; any packet of that view is reason enough to install it; newcomers
                                           get `welcome`
    all        installed
    newcomer   renew                       to the leader: a request for another view of the same members; see `transfer`

If any member goes meanwhile, the leader included, the change begins again without it: attempts are numbered, and a later one
ends an earlier one. A member that has installed the next view already says so to members that still ask about the old one;
nobody installs it before all members that will be in it have reached the cut, so that members that go on together have delivered
the same. A member that does not know the new recipe answers `cannot`; then the leader tells all that the request is `refused`, and
they go on as before.

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
"""Attempts that another member may be ahead of us: each attempt has a cause, and is soon ended by a later one."""

VIEWS_MAX = 1 << 20
"""Views that another part of the group may be ahead of ours."""

DISSOLVES = 3
"""Copies of `dissolve` that are sent at once, since it is not repeated later."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Changes:
    """Leads view changes, and takes part in those that others lead; part of the session."""

    def __init__(self, session: "Session", build: BuildByName | None, accepts: Accepts | None) -> None:
        self._session = session
        self._build = build
        self._door = Door(session, accepts)
        self._numbers = ReservedNumbers()
        self._questions = Questions(session, self._answer)
        self.wishes = Wishes(session, self._questions, build)
        self.attempt = 0  # the latest attempt that we know of in this view
        self._change: Leading | None = None  # the change that we lead
        self.closing: ClosingView | None = None  # the change in which we take part, as its leader too
        # As the leader: members that may not have installed the view in force.
        self._unaware: set[int] = set()
        # Members that sent in a closed view, or outside all views while we are paused, and were answered since the last tick.
        self._reminded: set[tuple[str, int]] = set()
        self.cuts: list[int] = []  # how much each process had sent in closed views: for a trace
        # As the leader: the leader of the other part that admits our members.
        self._dissolves: tuple[str, int] | None = None
        self._is_held = False  # several members are being removed: no new attempt before all are
        # As the leader: a change waits until all founders were met, or a merging part is complete.
        self._is_put_off = False
        self.wake = NEVER

    @property
    def stack(self) -> Stack:
        return self._session.stack

    # Events

    def propose(self, recipe: str, done: Done) -> None:
        """Ask for another recipe in the whole group."""
        self.wishes.propose(recipe, done)
        self._questions.begin()
        self._work()

    @property
    def settled(self) -> bool:
        """Whether no change is in progress."""
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
        elif view.attempt and self.leads:  # we have founded the group, or are alone
            self._unaware = set(self.stack.others)
            self._questions.begin()
        elif view.attempt:
            self._questions.tell(self.leader, "installed", number=view.number)
        self.wishes.view(view)
        self._is_put_off = False
        # There may be more to do, but not before all layers know of this view; in a first one there cannot be.
        self.wake = self.stack.now if view.attempt else NEVER

    def gone(self, member: int) -> None:
        """A member has left or failed: a change in progress begins again without it."""
        self._unaware.discard(member)
        is_slow = member in self._session.slow.expelled
        self._door.part_with(self.stack.view.members[member], is_slow=is_slow)
        self._change = None
        if not self._is_installing:
            self._work()

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Remove several members at the same time, in one change."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
        self._work()

    def dismiss(self, name: str, incarnation: int) -> bool:
        """Handle the goodbye of a process that is not a member: a newcomer that withdraws, or a former member; return whether it is the latter."""
        return self._door.dismiss(name, incarnation)

    @property
    def leads(self) -> bool:
        """Whether we lead changes of the view in force."""
        return self.leader == self.stack.me

    def dissolve(self, host: tuple[str, int]) -> None:
        """As the leader: close this view and dissolve it; its members then ask `host`, the leader of another part, for admission."""
        if self._dissolves is None:
            self._dissolves, self._change = host, None
            self._work()

    def leave_home(self, host: tuple[str, int] | None = None, tag: int | None = None) -> None:
        """Give our membership up: we are in no view from now on, and ask `host` for admission. `tag`: of the view that we give up, if that is
        not the one in force."""
        if self.stack.views.next is not None:
            return  # we were admitted to another view already
        part = () if host is None or self.closing is None else self.closing.view.names
        self.closing = self._change = self.wishes.request = None
        self._unaware.clear()
        self.stack.views.abandon()
        self._session.parts.leave_home(host, part, tag)
        self.wake = NEVER

    def enter(self, view: View, told: Told) -> None:
        """We had no view, and were admitted to this one: install it, with what its `welcome` told."""
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
        """Nobody has admitted us: go on in a view of our own, under our new incarnation. What we had not
        delivered in the view that we left is lost for us."""
        stack = self.stack
        if stack.views.next is not None:
            return  # we have just been admitted
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
        """A packet of the next view has come: its sender has installed that view, so every member has reached the cut."""
        if self.closing is not None and self.closing.reached:
            self._install(self.closing)

    def late(self, view: View, source: int, address: Hashable) -> None:
        """Answer a member that has sent in a closed view: it has not heard of the next view, or is not in it."""
        if source >= len(view):
            return
        person = view.members[source]
        if person.identity in self._reminded:
            return
        self._reminded.add(person.identity)
        member, spoken_in = self.stack.view.index(person), self.stack.wire.tag_of(view)
        say_excluded, is_slow = self._session.presence.say_excluded, self._door.was_slow(person)
        if member is None:
            # A member that was itself excluded from the next view, or let go, does not know what became of the others.
            if not self.stack.views.was_another(view):
                say_excluded(person, spoken_in, address, is_slow=is_slow)
        elif view is self.stack.view:  # the view in which it sent is still in force, without it
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
        """A packet of this turn may have completed the change in progress."""
        if self.closing is not None or self._is_put_off or self.wishes.renews:
            self._work()

    def hear(self, src: int, told: Told) -> None:
        """Handle a control message of a member; WireError if its content is invalid."""
        self._answer(told.do, src, told)
        self._work()

    def hear_newcomer(self, told: Told, address: Hashable) -> None:
        """Handle a request for admission."""
        if told.do != "hello":
            raise WireError("stranger", f"not a member, and says {told.do!r}")
        if self._session.quorum.is_paused:
            # Nobody can be admitted. But a member that has not heard of its admission may be all that is missing for a majority, and the
            # leader that would tell it may be gone: so every member that hears it does.
            member = self._session.quorum.turn_away(told, address)
            if member is not None and told.identity not in self._reminded:
                self._reminded.add(told.identity)
                self._welcome(member, address)
                self.wake_soon()
            return
        if self._dissolves is not None or self._session.parts.is_homeless:
            return  # we admit nobody now
        host, is_ours = told.people("host"), told.text("group") == self._session.digest
        if not host and is_ours:
            # A newcomer that sends to single addresses may know no other address than ours.
            if self.leads or told.text("address"):
                self._session.answer(address, "part", **self._session.parts.part())
                return
            if not told.number("view") and self._session.silence.stands_in(self.leader):
                self._session.answer(address, "soon", **named(Member(*told.identity)))
        if not self.leads or (host and host != [self.stack.member.signed]):
            return  # it asks another member
        if told.number("view") > self.stack.view.number + VIEWS_MAX:
            raise WireError("malformed", "a view far beyond ours")
        member = self._door.look(told, address)
        if member is not None:
            self._welcome(member, address)
        self._work()

    # The work in progress, repeated until it is done

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
        """Set the alarm by which open questions are asked, or asked again."""
        if at_once:
            self.wake = self.stack.now
        elif self.settled and not self._reminded and not self._is_put_off:
            self.wake = NEVER
        elif self.wake == NEVER:  # a set alarm stays, or a stream of answers could put off repetitions
            self.wake = self._questions.next_wake()

    @property
    def _is_installing(self) -> bool:
        return self.closing is not None and self.closing.installing

    def _look_for_work(self) -> None:
        """As the leader: begin a change, if there is a reason for another view."""
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
        # A founder that is not present yet would keep the view closed, so that no member can send, until it comes. If a member
        # is gone, the others go on without that founder too, and admit it when it comes. A founder that was met, but whose greeting with
        # the data that layers need has not come, is present, and is waited for.
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
            ):  # a member that gets none of them goes on alone, and hears of the other part then
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
        """Send a newcomer its `welcome`: the view in which it is a member, and the counts of earlier views."""
        if not self._questions.is_first(person.identity, "welcome"):
            return
        guard, secret = self.stack.guard, ""
        if guard is not None:
            address = guard.address_of(person.name)
            found = guard.secret_for(person.name)
            if found is None:
                return  # there is no channel to it yet that can carry the secret
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
        """The member that leads changes of the view in force."""
        stack = self.stack
        return next(member for member in range(len(stack.view)) if member not in stack.left)

    # Control messages of members

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
            return  # another member leads before it
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
            return  # that members are gone made us lead a change of our own
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
        """All members of this view have delivered the same: ask the leader of another part for admission."""
        closing, host = self._followed(src, told), told.people("host")
        if len(host) != 1:
            raise WireError("malformed", "nobody to be asked, or several")
        if closing is not None and closing.reached:
            self.leave_home(host[0][:2])

    def _on_cannot(self, src: int, told: Told) -> None:
        """As the leader: a member cannot adopt the new recipe."""
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
        """The change to which a member's message refers, if we lead it."""
        change, key = self._change, key_of(told)
        return change if change is not None and change.key == key else None

    def _followed(self, src: int, told: Told) -> ClosingView | None:
        """The change to which a leader's message refers, if we take part in it."""
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
"""The handler of each control message of a view change."""
