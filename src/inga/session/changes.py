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
from typing import TYPE_CHECKING, Any, NamedTuple

from inga.model.errors import UsageError, WireError
from inga.model.view import Member, View
from inga.session.alarms import NEVER, Backoff
from inga.session.description import described, view_told
from inga.session.door import Accepts, Door
from inga.session.pressure import WARN_AFTER
from inga.session.transfer import People
from inga.stack.hooks import Holdings
from inga.stack.layer import Layer
from inga.stack.stack import Done, Stack
from inga.wire.told import TEXT_MAX, Told

if TYPE_CHECKING:
    from inga.session.session import Session

PAUSE, PAUSE_MAX = 0.005, 0.1
"""Seconds before a question is repeated: first, and after doubling."""

LENT_MAX = 64
"""Packets that are sent for one that is gone, for one request."""

DISSOLVES = 3
"""Times that members are told at once that they are let go."""

BuildByName = Callable[[str], list[Layer]]
"""Makes the layers of a recipe by its name."""


class Changes:
    """Leads view changes, and follows; part of the session."""

    def __init__(self, session: "Session", build: BuildByName | None, accepts: Accepts | None) -> None:
        self._session = session
        self._build = build
        self._door = Door(session, accepts)
        self._wish: _Wish | None = None
        self._wishes = 0  # so far
        self._request: _Request | None = None  # as the leader: another recipe that somebody wants
        self._refusal: dict[str, Any] | None = None  # as the leader: what came of the last attempt, in words
        self._attempt = 0  # the latest that we know of in this view
        self._change: _Change | None = None  # the change that we lead
        self._closing: _Closing | None = None  # the change that we follow
        # As the leader: members that may not have installed the view in force.
        self._unaware: set[int] = set()
        # Who spoke in a closed view and was told so, since the last tick.
        self._reminded: set[tuple[str, int]] = set()
        self.cuts: list[int] = []  # of each process, what it had sent in views that are closed: for a trace
        self._dissolves: tuple[str, int] | None = None  # as the leader: who leads the part that takes us in
        self._renews = False  # another view of the same members is wanted
        self._is_held = False  # more is about to be said
        self._is_put_off = False  # as the leader: a change waits until everybody was met
        self._since = 0.0
        self._warned = False
        self._pause = Backoff(PAUSE, PAUSE_MAX, 0.0)
        self._asked: set[tuple[Any, ...]] = set()  # (member, question) asked since the last tick
        self.wake = NEVER

    @property
    def stack(self) -> Stack:
        return self._session.stack

    # What happens

    def propose(self, recipe: str, done: Done) -> None:
        """Ask for another recipe in the whole group."""
        if self._build is None:
            raise UsageError(f"order {self.stack.view.recipe!r} cannot be changed while the group runs")
        if self._wish is not None:
            raise UsageError("this member has asked for a change of order that is still under way")
        made(self._build, recipe)  # or it raises what is wrong with it
        self._wishes += 1
        self._wish = _Wish(self._wishes, recipe, done)
        self._begin()
        self._work()

    @property
    def settled(self) -> bool:
        """Whether no change is under way."""
        is_asked = self._wish is not None or self._renews or bool(self._unaware)
        return self._change is None and self._closing is None and not is_asked

    def view(self, view: View) -> None:
        """A view is installed; the first one comes here too."""
        led, self._change, self._closing, self._attempt = self._change, None, None, 0
        self._dissolves = self._refusal = None
        self._unaware.clear()
        self._asked.clear()
        if led is not None:
            self._unaware = set(self.stack.others)
            self._tell(None, "install", number=view.number)
        elif view.attempt:
            self._tell(self._leader(), "installed", number=view.number)
        if self._wish is not None and self._wish.recipe == view.recipe:
            self._end_wish(None)
        self._request = None
        self._renews = self._is_put_off = False
        # There may be more to do, but not before all layers know of this view; in a first one there cannot be.
        self.wake = self.stack.now if view.attempt else NEVER

    def gone(self, member: int) -> None:
        """A member has left or failed. Whatever is under way begins again without it."""
        self._unaware.discard(member)
        self._door.part_with(self.stack.view.members[member])
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
        return self._leader() == self.stack.me

    def dissolve(self, host: tuple[str, int]) -> None:
        """As the leader: close this view and let everybody go, who then ask the leader of another part to let them in."""
        if self._dissolves is None:
            self._dissolves, self._change = host, None
            self._work()

    def leave_home(self, host: tuple[str, int] | None = None) -> None:
        """We are in no view from now on; `host` is asked to let us into another."""
        if self.stack.views.next is not None:
            return  # we are in another one already
        self._closing = self._change = self._request = None
        self._unaware.clear()
        if not self.stack.closing:
            self.stack.views.close()
        self.stack.wire.next_tag = None
        self._session.parts.leave_home(host)
        self.wake = NEVER

    def enter(self, view: View, cuts: list[int]) -> None:
        """One that was without a view is in one."""
        self.cuts = cuts
        self.stack.views.install(view, made(self._build, view.recipe), None)

    def go_on_alone(self) -> None:
        """Nobody lets us in: we go on in a view of our own, as the new member that we wanted to be. What we had not
        delivered in the view that we left is lost for us."""
        stack = self.stack
        before = stack.view.members[stack.me]
        view = replace(
            stack.view,
            number=stack.view.number + 1,
            members=(stack.member,),
            joined=(),
            left=(),
            failed=tuple(name for name in stack.view.names if name != before.name),
            leader=stack.member.incarnation,
            attempt=self._attempt + 1,
            processes=(stack.view.total,),
            total=stack.view.total + 1,
        )
        stack.views.install(view, made(self._build, view.recipe), None)

    def renew(self) -> None:
        """Ask for another view, if only of the same members: for its cut."""
        self._renews, self.wake = True, self.stack.now

    def stop(self) -> None:
        """We leave: our own request for another recipe ends; a change under way goes on without us."""
        self._end_wish("this member leaves the group")

    def ahead(self, number: int) -> None:
        """A member that is in the next view knows that every member has reached the cut."""
        if self._closing is not None and self._closing.reached:
            self._install(self._closing)

    def late(self, view: View, source: int, address: Hashable) -> None:
        """A member of a view that is closed speaks in it: it does not know of the next, or is not in it."""
        if source >= len(view):
            return
        person = view.members[source]
        if person.identity in self._reminded:
            return
        self._reminded.add(person.identity)
        member = self.stack.view.index(person)
        if member is None:
            spoken_in = self.stack.wire.tag_of(view)
            self._session.presence.say_excluded(person, spoken_in, address)
        elif member != self.stack.me:
            self._tell(member, "install", number=self.stack.view.number)
        self._wake_soon()

    def tick(self, now: float) -> None:
        self.wake = NEVER
        self._asked.clear()
        self._reminded.clear()
        self._work()

    def turn(self) -> None:
        """What has come in this turn may be all that was missing."""
        if self._closing is not None or self._is_put_off:
            self._work()

    def hear(self, src: int, told: Told) -> None:
        """Handle a session message of a member; WireError if its content cannot be right."""
        answer = _ANSWERS.get(told.do)
        if answer is None:
            raise WireError("malformed", f"nobody does {told.do!r}")
        answer(self, src, told)
        self._work()

    def hear_newcomer(self, told: Told, address: Hashable) -> None:
        """Somebody asks to be let in."""
        if told.do != "hello":
            raise WireError("stranger", f"not a member, and says {told.do!r}")
        if not self.leads or self._dissolves is not None or self._session.parts.is_homeless:
            return  # not ours to answer
        host, is_ours = told.people("host"), told.text("group") == self._session.digest
        if not host and is_ours:
            self._session.answer(address, "part", **self._session.parts.part())
            return
        if host and host != [self.stack.member.signed]:
            return  # another part is asked
        member = self._door.look(told, address)
        if member is not None:
            self._welcome(member, address)
        self._work()

    # The work to be done, again and again until it is

    def _work(self) -> None:
        if self._is_installing or self._is_held or self.stack.leaving or self._session.parts.is_homeless:
            return
        if self._wish is not None and self._closing is None:
            self._ask(self._wish)
        if self._renews and self._closing is None and not self.leads:
            self._question({self._leader()}, "renew")
        if self._change is None and self.leads:
            self._look_for_work()
        if self._closing is not None:
            self._follow(self._closing)
        if self._change is not None:
            self._lead(self._change)
        if self._unaware:
            self._question(self._unaware, "install", number=self.stack.view.number)
            self._warn(self._unaware)
            for member in self._unaware:
                if self.stack.view.names[member] in self.stack.view.joined:
                    self._welcome(self.stack.view.members[member], self.stack.addresses.get(member))
        self._wake_soon()

    def _wake_soon(self) -> None:
        if self.settled and not self._reminded and not self._is_put_off:
            self.wake = NEVER
        elif self.wake == NEVER:  # answers that keep coming do not put off what has to be repeated
            self.wake = self.stack.now + self._pause.next(self.stack.rng)

    @property
    def _is_installing(self) -> bool:
        return self._closing is not None and self._closing.installing

    def _ask(self, wish: "_Wish") -> None:
        leader = self._leader()
        if wish.recipe == self.stack.view.recipe:
            self._end_wish(None)
        elif leader == self.stack.me:
            if self._request is None:
                self._request = _Request(wish.recipe, leader, wish.number)
        else:
            self._question({leader}, "use", recipe=wish.recipe, wish=wish.number)

    def _look_for_work(self) -> None:
        """As the leader: is there a reason for another view?"""
        stack, request = self.stack, self._request
        if request is not None and request.recipe == stack.view.recipe:
            request = self._request = None
        newcomers, number = self._door.newcomers(), self._door.highest_view
        if self._dissolves is not None:
            newcomers = []
        is_shrinking = bool(stack.left) and stack.views.follow
        is_wanted = self._renews or request is not None or self._dissolves is not None
        if not newcomers and not is_shrinking and not is_wanted:
            return
        # A founder that is not there yet would keep the view closed, and everybody from sending, until it comes. Where
        # somebody is gone, the others go on without it, and let it in when it comes.
        is_gathering = self._closing is None and self._session.presence.is_gathering
        self._is_put_off = is_gathering and not (is_shrinking and self._session.silence.is_long)
        if self._is_put_off:
            return
        if is_gathering:
            self._session.exclude({member for member in stack.peers if member not in stack.met})
            return
        if self._closing is None or self._closing.leader != stack.me:
            self._begin()
        self._attempt += 1
        view = self._next_view(
            max(stack.view.number, number) + 1, [person for person, _ in newcomers], request
        )
        self._change = _Change(view, stack.left, self._dissolves)
        self._change.lack = [(*person.identity, self._door.wants(person)) for person, _ in newcomers]
        self._asked.clear()
        self._on_flush(stack.me, Told({**described(view), "gone": sorted(stack.left)}))

    def _next_view(self, number: int, newcomers: list[Member], request: "_Request | None") -> View:
        stack = self.stack
        view, left, failed = stack.view, stack.left - stack.failed, stack.failed
        stay = [index for index in range(len(view)) if index not in stack.left]
        fresh = range(view.total, view.total + len(newcomers))
        return View(
            number,
            (*(view.members[index] for index in stay), *newcomers),
            view.recipe if request is None else request.recipe,
            view.traced,
            joined=tuple(person.name for person in newcomers),
            left=tuple(view.names[index] for index in sorted(left)),
            failed=tuple(view.names[index] for index in sorted(failed)),
            leader=stack.member.incarnation,
            attempt=self._attempt,
            processes=(*(view.processes[index] for index in stay), *fresh),
            total=view.total + len(newcomers),
        )

    # As one of those who follow

    def _follow(self, closing: "_Closing") -> None:
        stack = self.stack
        if closing.sent is None and not stack.chain.waiting:
            closing.sent = stack.chain.order.sent()
        cut = closing.cut
        if cut is None or not cut.round:
            self._report(closing)
        if cut is not None and (closing.reached or self._has_reached(closing, cut)):
            closing.reached = True
            told = {"round": cut.round, "count": self._count()}
            self._question({closing.leader}, "reached", **closing.key, **told)

    def _report(self, closing: "_Closing") -> None:
        """Say what we have of those who are gone; and what we have sent, once all of it has left. It may have to wait
        for what others get from us."""
        n, lender = len(self.stack.view), self.stack.chain.lender
        report = {
            "round": int(closing.sent is not None),
            "sent": closing.sent or [0] * n,
            "count": self._count(),
            "seen": [self._seen(m) if m in closing.gone else 0 for m in range(n)],
            "held": {str(m): [] if lender is None else lender.holdings(m) for m in sorted(closing.gone)},
            **self._session.transfer.report(closing.gone),
        }
        self._question({closing.leader}, "flushed", **closing.key, **report)

    def _count(self) -> int:
        lender = self.stack.chain.lender
        count: int = 0 if lender is None else lender.count()
        return count

    def _seen(self, member: int) -> int:
        """The highest number of a member's that any layer has seen: a bound for all that will be delivered of it."""
        return max([seen(member) for seen in self.stack.chain.hooks("seen")], default=0)

    def _has_reached(self, closing: "_Closing", cut: "_Cut") -> bool:
        """Whether everything is here; what is not, we ask for."""
        stack = self.stack
        lender = stack.chain.lender
        if lender is not None:
            is_lent = True
            for gone, dealt in cut.dealt.items():
                for holder, runs in lender.lacking(gone, dealt).items():
                    is_lent = False
                    self._question(
                        {holder} & {*stack.peers}, "want", src=gone, runs=[list(run) for run in runs]
                    )
            if not is_lent:
                return False
            if not closing.is_lent:
                closing.is_lent = True
                for gone in sorted(cut.dealt):
                    lender.bereft(gone)
            if not cut.round or not lender.come(cut.counts):
                return False
        if not cut.round:
            return False  # somebody has not sent everything yet
        if cut.dealt and not closing.forgone:
            closing.forgone = True
            for forgo in stack.chain.hooks("forgo"):
                forgo()
        has: bool = stack.chain.order.has(cut.sent)
        return has

    def _on_flush(self, src: int, told: Told) -> None:
        stack, closing = self.stack, self._closing
        view, gone = view_told(told), set(told.numbers("gone"))
        if view.number <= stack.view.number or (closing is not None and closing.installing):
            return
        if max(gone, default=0) >= len(stack.view):
            raise WireError("malformed", "somebody is gone who never was here")
        # Who leads after another has outlived it, however many attempts that one made.
        if closing is not None and (closing.leader, closing.attempt) >= (src, view.attempt):
            return
        if any(member not in gone for member in range(src)) or src in gone:
            return  # others come before that one
        stay = [index for index in range(len(stack.view)) if index not in gone]
        if [index for person in view.members if (index := stack.view.index(person)) is not None] != stay:
            raise WireError("malformed", "a view that does not follow this one")
        if view.index(stack.member) is None:
            self._session.excluded()
            return
        try:
            layers = made(self._build, view.recipe)
        except UsageError as error:
            why = f"{stack.member.name}: {error}"[:TEXT_MAX]
            self._tell(src, "cannot", number=view.number, attempt=view.attempt, why=why)
            return
        if src != stack.me:
            self._begin()
            self._change = None
        self._attempt = max(self._attempt, view.attempt)
        failed = {i for i, name in enumerate(stack.view.names) if name in view.failed}
        for member in sorted(gone - stack.left):
            stack.gone(member, failed=member in failed)
        if self._closing is not closing:
            return  # that somebody is gone made us lead a change of our own
        self._closing = _Closing(src, view, layers, gone)
        stack.views.expect(view)
        if closing is None:
            stack.views.close()

    def _on_cut(self, src: int, told: Told) -> None:
        closing, n = self._closing, len(self.stack.view)
        key = _key(told)
        cut = _Cut(
            told.number("round"),
            told.numbers("sent", n),
            told.numbers("counts", n),
            told.numbers("most", n),
            told.tables("dealt", 3),
            told.people("lack"),
            told.people("give"),
        )
        if closing is None or closing.key != key or src != closing.leader:
            return
        if closing.cut is not None and closing.cut.round >= cut.round:
            return
        if not cut.dealt.keys() <= closing.gone:
            raise WireError("malformed", "packets are dealt of one that is not gone")
        closing.cut, closing.reached = cut, False

    def _on_want(self, src: int, told: Told) -> None:
        """A member lacks something that we have, of one that is gone."""
        stack = self.stack
        lender, gone = stack.chain.lender, told.number("src")
        runs = tuple((low, high) for low, high in told.pairs("runs"))
        if lender is None or gone not in stack.left:
            return
        batch = [packet.lent_to(src) for packet in lender.lend(gone, runs)[:LENT_MAX]]
        for packet in batch:
            for restore in stack.chain.hooks("restore"):
                restore(packet)
        if batch:
            stack.counts["lent"] += len(batch)
            stack.emit(batch)

    def _on_dissolve(self, src: int, told: Told) -> None:
        """Everybody in this view has the same: we ask to be let into that of another part."""
        closing, host = self._closing, told.people("host")
        if len(host) != 1:
            raise WireError("malformed", "nobody to be asked, or several")
        if closing is not None and closing.key == _key(told) and src == closing.leader and closing.reached:
            self.leave_home(host[0][:2])

    def _on_install(self, src: int, told: Told) -> None:
        if told.number("number") == self.stack.view.number:
            self._tell(src, "installed", number=self.stack.view.number)

    def _install(self, closing: "_Closing") -> None:
        if closing.installing:
            return
        closing.installing = True
        assert closing.cut is not None
        view, stack = closing.view, self.stack
        if view.traced:
            self.cuts += [0] * (stack.view.total - len(self.cuts))
            for process, most in zip(stack.view.processes, closing.cut.most, strict=True):
                self.cuts[process] += most
        self._session.transfer.learn(closing.cut.lack, closing.cut.give)
        stack.views.install(view, closing.layers, closing.cut.most)

    def _on_refused(self, src: int, told: Told) -> None:
        key, asker, wish = _key(told), told.number("asker"), told.number("wish")
        why, closing = told.text("why"), self._closing
        if closing is not None and closing.key == key and not closing.installing:
            self._closing = None
            self.stack.views.reopen()
        if self._wish is not None and (asker, wish) == (self.stack.me, self._wish.number):
            self._end_wish(why)

    # As the one who leads

    def _lead(self, change: "_Change") -> None:
        stack = self.stack
        everybody = {stack.me, *stack.peers}
        if missing := everybody - change.reports.keys():
            self._question(missing, "flush", **described(change.view), gone=sorted(change.gone))
        elif missing := everybody - change.reached:
            if change.dealt is None and not self._deal(change):
                return
            assert change.dealt is not None
            if not change.round and all(report.is_all for report in change.reports.values()):
                change.round = 1
            for member in sorted(missing):
                self._question({member}, "cut", **change.key, **change.cut_for(member, stack.view))
        elif change.host is not None:
            for _ in range(DISSOLVES):  # who does not hear it goes on alone, and hears of the other part then
                self._tell(None, "dissolve", **change.key, host=[(*change.host, "")])
            self.leave_home(change.host)
            return
        else:
            assert self._closing is not None
            self._install(self._closing)
            return
        self._warn(missing)

    def _deal(self, change: "_Change") -> bool:
        """Of each that is gone: who lacks what, and who has it. If what they say of that cannot be, all are asked again."""
        lender, reports = self.stack.chain.lender, change.reports
        try:
            change.dealt = {
                gone: lender.deal({member: report.held[gone] for member, report in reports.items()})
                for gone in sorted(change.gone if lender is not None else ())
            }
        except WireError as error:
            self.stack.reject(error.reason)
            reports.clear()
        return change.dealt is not None

    def _on_use(self, src: int, told: Told) -> None:
        recipe, wish = told.text("recipe"), told.number("wish")
        if self.leads and self._request is None and recipe != self.stack.view.recipe:
            self._request = _Request(recipe, src, wish)

    def _on_renew(self, src: int, told: Told) -> None:
        self._renews = self._renews or self.leads

    def _on_flushed(self, src: int, told: Told) -> None:
        n = len(self.stack.view)
        is_all = told.number("round") > 0
        sent, count, seen = told.numbers("sent", n), told.number("count"), told.numbers("seen", n)
        states = told.text("lacks"), told.text("gives")
        report = _Report(is_all, sent, count, seen, told.tables("held", 3), *states)
        change, refusal = self._led(told), self._refusal
        if refusal is not None and _key(told).items() <= refusal.items():
            self._tell(src, "refused", **refusal)  # it has not heard of that
        if change is None or report.held.keys() != change.gone:
            return
        before = change.reports.get(src)
        if before is None:
            change.reports[src] = report
        elif is_all and not before.is_all:  # what it has is dealt already
            change.reports[src] = before._replace(is_all=True, sent=sent, packets=count)

    def _on_reached(self, src: int, told: Told) -> None:
        change, count, round_ = self._led(told), told.number("count"), told.number("round")
        if change is None or round_ != change.round or src not in change.reports:
            return
        if change.reports[src].packets < count:
            # It had to say more meanwhile, which may make others say more.
            change.reports[src] = change.reports[src]._replace(packets=count)
            change.round += 1
            change.reached.clear()
            self._asked.clear()
        else:
            change.reached.add(src)

    def _on_installed(self, src: int, told: Told) -> None:
        if told.number("number") == self.stack.view.number:
            self._unaware.discard(src)

    def _on_cannot(self, src: int, told: Told) -> None:
        """A member cannot follow to another recipe."""
        change, request, why = self._led(told), self._request, told.text("why")
        if change is not None and request is not None and change.view.recipe == request.recipe:
            self._change = self._request = None
            words = {"asker": request.asker, "wish": request.wish, "why": why}
            self._refusal = {**change.key, **words}
            self._tell(None, "refused", **self._refusal)
            self._on_refused(self.stack.me, Told(self._refusal))

    def _led(self, told: Told) -> "_Change | None":
        """The change that a member speaks of, if we lead it."""
        change, key = self._change, _key(told)
        return change if change is not None and change.key == key else None

    def _welcome(self, person: Member, address: Hashable) -> None:
        """Tell a newcomer that it is a member: in which view, and what was before."""
        asked = (person.identity, "welcome")
        if asked not in self._asked:
            self._asked.add(asked)
            self._session.answer(
                address, "welcome", **described(self.stack.view), cuts=self.cuts, group=self._session.digest
            )

    # Both

    def _begin(self) -> None:
        self._since, self._warned = self.stack.now, False
        self._pause.reset()
        self._asked.clear()

    def _warn(self, missing: set[int]) -> None:
        if not self._warned and self.stack.now - self._since >= WARN_AFTER:
            self._warned = True
            self.stack.notice(
                f"a change of the view has waited {WARN_AFTER:g} s for {self.stack.view.listed(missing)}"
            )

    def _end_wish(self, why: str | None) -> None:
        wish, self._wish = self._wish, None
        if wish is not None:
            wish.done(why)

    def _leader(self) -> int:
        stack = self.stack
        return next(member for member in range(len(stack.view)) if member not in stack.left)

    def _question(self, members: set[int], do: str, /, **what: Any) -> None:
        """What is repeated until it is answered: to each member once between two ticks. Who hears what is
        meant for others answers as well, and if answers made us ask again, there would be no end of it."""
        for member in sorted(members):
            asked = (member, do, what.get("attempt"), what.get("src"), what.get("round"))
            if asked not in self._asked:
                self._asked.add(asked)
                self._tell(member, do, **what)

    def _tell(self, to: int | None, do: str, /, **what: Any) -> None:
        stack = self.stack
        if to == stack.me:
            _ANSWERS[do](self, stack.me, Told(what))
            return
        self._session.say(to, stack.view.number, do, what)


class _Wish(NamedTuple):
    """What this member has asked for."""

    number: int
    recipe: str
    done: Done


class _Request(NamedTuple):
    """What a member has asked the leader for."""

    recipe: str
    asker: int
    wish: int


class _Report(NamedTuple):
    """What a member said when the view was closed for it."""

    is_all: bool  # it has sent everything
    sent: list[int]  # packets of the order, to each member
    packets: int  # that carry them
    seen: list[int]  # of each member that is gone, the highest number of the order that has come
    held: dict[int, Holdings]  # of each member that is gone, what it has
    lacks: str  # the kind of state that it lacks, and that it gives: see `transfer`
    gives: str


class _Cut(NamedTuple):
    """What has to be here before the next view."""

    round: int  # 0: not everybody has sent everything; more: somebody had to say more, to answer what was under way
    sent: list[int]  # packets of the order that each member has sent to us
    counts: list[int]  # packets that carry them
    most: list[int]  # packets of the order that each member has sent at all
    dealt: dict[int, Holdings]  # of each member that is gone, what we lack, and who has it
    lack: People  # who lacks a state, and who gives one
    give: People


class _Change:
    """What a leader knows of the change it leads."""

    def __init__(self, view: View, gone: set[int], host: tuple[str, int] | None) -> None:
        self.view = view
        self.gone = set(gone)
        self.host = host  # nobody goes on to that view: all ask this one to be let into another
        self.reports: dict[int, _Report] = {}
        self.dealt: dict[int, dict[int, Holdings]] | None = None
        self.reached: set[int] = set()
        self.lack: People = []  # the newcomers, and what state they want
        self.round = 0  # until everybody has sent everything

    @property
    def key(self) -> dict[str, int]:
        """The fields by which members tell this change from others."""
        return {"number": self.view.number, "attempt": self.view.attempt}

    def cut_for(self, member: int, before: View) -> dict[str, Any]:
        assert self.dealt is not None
        reports, n = self.reports, len(before)
        return {
            "round": self.round,
            "sent": [reports[k].sent[member] if k in reports else 0 for k in range(n)],
            "counts": [reports[k].packets if k in reports else 0 for k in range(n)],
            "most": [
                max(reports[k].sent if k in reports else [r.seen[k] for r in reports.values()])
                for k in range(n)
            ],
            "dealt": {str(gone): rows[member] for gone, rows in self.dealt.items()},
            **self._states(before),
        }

    def _states(self, before: View) -> dict[str, list[list[Any]]]:
        """Who lacks a state in the next view, and who gives one; newcomers come last, as in the view."""
        people = [(before.members[member].identity, self.reports[member]) for member in sorted(self.reports)]
        lack = [[*who, report.lacks] for who, report in people if report.lacks]
        give = [[*who, report.gives] for who, report in people if report.gives]
        return {"lack": lack + [list(each) for each in self.lack if each[2]], "give": give}


class _Closing:
    """What a member knows of the end of its view."""

    def __init__(self, leader: int, view: View, layers: list[Layer], gone: set[int]) -> None:
        self.leader = leader
        self.view = view
        self.layers = layers
        self.gone = gone
        self.sent: list[int] | None = None  # what we have sent, once all of it has left
        self.cut: _Cut | None = None
        self.is_lent = False  # all that anybody has of those who are gone has come
        self.forgone = False  # what waits for something that nobody has was let go
        self.reached = False
        self.installing = False

    @property
    def attempt(self) -> int:
        return self.view.attempt

    @property
    def key(self) -> dict[str, int]:
        return {"number": self.view.number, "attempt": self.view.attempt}


def _key(told: Told) -> dict[str, int]:
    return {"number": told.number("number"), "attempt": told.number("attempt")}


def made(build: BuildByName | None, recipe: str) -> list[Layer]:
    """The layers of a recipe to which a group that runs can change."""
    layers = [] if build is None else build(recipe)
    orders = [layer for layer in layers if hasattr(layer, "sent")]
    has_own_wire = any(hasattr(layer, "read") for layer in layers)
    if not any(layer.name == "session" for layer in layers) or not orders or has_own_wire:
        raise UsageError(f"a group that runs already cannot change to the order {recipe!r}")
    return layers


_ANSWERS: dict[str, Callable[[Changes, int, Told], None]] = {
    "use": Changes._on_use,
    "renew": Changes._on_renew,
    "flush": Changes._on_flush,
    "flushed": Changes._on_flushed,
    "cut": Changes._on_cut,
    "want": Changes._on_want,
    "reached": Changes._on_reached,
    "install": Changes._on_install,
    "installed": Changes._on_installed,
    "dissolve": Changes._on_dissolve,
    "cannot": Changes._on_cannot,
    "refused": Changes._on_refused,
}
"""What members say to each other."""
