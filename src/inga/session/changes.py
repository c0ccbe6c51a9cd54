"""Views that change while nobody fails: a member more, or another recipe for all.

The member of lowest index leads, one change at a time, and repeats what is not answered.

Somebody joins: the view is *extended*, and nothing stops.

    newcomer   hello                       to all, until the view comes
    leader     view                        to all; everybody appends the newcomer, says `installed`,
                                           and from then on sends to it as well
    all        base                        how far they had counted: there the newcomer starts
    newcomer   once it has all the bases   says `installed`, and is a member

The recipe changes: the view is *closed*, and counts begin anew.

    anybody    use                         to the leader
    leader     flush                       stop sending; say how much you have sent
    all        flushed                     so much
    leader     cut                         all that was sent: say when you have it
    all        reached
    leader     install                     in the new view, which alone is reason enough to install it

Who cannot follow says `cannot`; then the leader tells all that the change is `refused`, and they go on
as before. Attempts have numbers, so that an answer that comes late is not taken for one to a later
question. Whoever still speaks of an attempt that has ended is told so again.

Somebody who leaves before the cut is reached ends the attempt. Crashes are not treated here yet, nor
views without a member that has left.
"""

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

from inga.model.errors import UsageError, WireError
from inga.model.view import Member, View
from inga.session.alarms import NEVER, Backoff
from inga.session.door import Accepts, Door
from inga.session.pressure import WARN_AFTER
from inga.stack.layer import Layer
from inga.stack.stack import Done, Stack
from inga.wire.told import TEXT_MAX, Told

if TYPE_CHECKING:
    from inga.session.session import Session

PAUSE, PAUSE_MAX = 0.005, 0.1
"""Seconds before a question is repeated: first, and after doubling."""

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
        self._attempts = 0  # attempts to change the recipe that we led
        self._ended = 0  # the last attempt that we could not follow, or that was refused
        self._why = ""  # the reason for which we could not follow the last attempt
        self._change: _Change | None = None  # the change that we lead
        self._closing: _Closing | None = None  # the change that we follow
        self.cuts: list[int] = []  # what members had sent in views that are closed, if any
        self._since = 0.0
        self._warned = False
        self._pause = Backoff(PAUSE, PAUSE_MAX, 0.0)
        self._asked: set[tuple[Any, ...]] = set()  # (member, question) asked since the last tick
        self.wake = NEVER

    @property
    def stack(self) -> Stack:
        return self._session.stack

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
        return self._change is None and self._closing is None and self._wish is None

    def view(self, view: View) -> None:
        """Another recipe is installed; the first view comes here too."""
        self._closing = None
        if self._change is not None:
            self._change.installed = True
            self._change.unconfirmed = set(self.stack.peers)
            self._tell(None, "install", number=view.number)
        if self._wish is not None and self._wish.recipe == view.recipe:
            self._end_wish(None)

    def gone(self, member: int) -> None:
        change, closing = self._change, self._closing
        why = f"{self.stack.view.names[member]} left"
        if change is not None:
            change.unconfirmed.discard(member)
        if closing is None or closing.installing:
            return
        if change is not None:
            self._give_up(change, why)
        elif member < self._leader():  # the leader, who alone knows when to install
            self._reopen(closing)
        elif not closing.reached:
            self._cannot(closing, why)

    def stop(self) -> None:
        """We leave: our own request for another recipe ends; a change under way goes on without us, or fails."""
        self._end_wish("this member leaves the group")

    def ahead(self, number: int) -> None:
        """A member that is in the next view knows that every member has reached the cut."""
        closing = self._closing
        if closing is not None and closing.reached and closing.number == number:
            self._install(closing)

    def tick(self, now: float) -> None:
        self.wake = NEVER
        self._asked.clear()
        self._work()

    def hear(self, src: int, told: Told) -> None:
        """Handle a session message of a member; WireError if its content cannot be right."""
        answer = _ANSWERS.get(told.do)
        if answer is None:
            raise WireError("malformed", f"nobody does {told.do!r}")
        answer(self, src, told)
        self._work()

    def hear_newcomer(self, told: Told, address: Hashable) -> None:
        """A newcomer asks to be let in, or what it has to know of us."""
        if told.do == "hello":
            self._on_hello(told, address)
        elif told.do == "bases":
            self._door.on_bases(told)
        else:
            raise WireError("stranger", f"not a member, and says {told.do!r}")
        self._work()

    # The work to be done, again and again until it is

    def _work(self) -> None:
        if self._wish is not None and self._closing is None:
            self._ask(self._wish)
        if self._closing is not None:
            self._follow(self._closing)
        if self._change is not None:
            self._lead(self._change)
        if self.settled:
            self.wake = NEVER
        elif self.wake == NEVER:  # answers that keep coming do not put off what has to be repeated
            self.wake = self.stack.now + self._pause.next(self.stack.rng)

    def _ask(self, wish: "_Wish") -> None:
        leader = self._leader()
        if wish.recipe == self.stack.view.recipe:
            self._end_wish(None)
        elif leader == self.stack.me:
            if self._change is None:
                self._start(wish.recipe, leader, wish.number)
        else:
            self._question({leader}, "use", recipe=wish.recipe, wish=wish.number)

    def _follow(self, closing: "_Closing") -> None:
        stack = self.stack
        order = stack.chain.order
        if closing.counts is None and not stack.chain.waiting:
            closing.counts = order.sent()
        if closing.cut is None:
            if closing.counts is not None:
                self._question({self._leader()}, "flushed", **closing.key, counts=closing.counts)
        elif closing.reached or order.has(closing.cut):
            closing.reached = True
            self._question({self._leader()}, "reached", **closing.key)

    def _lead(self, change: "_Change") -> None:
        stack = self.stack
        everybody = {stack.me, *stack.peers}
        if change.recipe is not None and not change.installed:
            if missing := everybody - change.counts.keys():
                self._question(missing, "flush", **change.key, recipe=change.recipe)
            elif missing := everybody - change.reached:
                counts = [change.counts[member] for member in range(len(stack.view))]
                self._question(missing, "cut", **change.key, counts=counts)
            else:
                assert self._closing is not None
                self._install(self._closing)
                return
        else:
            missing = change.unconfirmed
            if not missing:
                self._change = None
                return
            if change.recipe is not None:
                self._question(missing, "install", number=change.number)
            else:
                self._question(missing, "view", True, **view_for_newcomer(stack.view, stack.sizes, self.cuts))
        self._warn(missing)

    def _warn(self, missing: set[int]) -> None:
        if not self._warned and self.stack.now - self._since >= WARN_AFTER:
            self._warned = True
            self.stack.notice(
                f"a change of the view has waited {WARN_AFTER:g} s for {self.stack.view.listed(missing)}"
            )

    def _begin(self) -> None:
        self._since, self._warned = self.stack.now, False
        self._pause.reset()
        self._asked.clear()

    # Another recipe

    def _on_use(self, src: int, told: Told) -> None:
        recipe, wish = told.text("recipe"), told.number("wish")
        if self._leader() == self.stack.me and self._change is None and recipe != self.stack.view.recipe:
            self._start(recipe, src, wish)

    def _start(self, recipe: str, asker: int, wish: int) -> None:
        stack = self.stack
        self._attempts += 1
        change = _Change(stack.view.number + 1, recipe, self._attempts, asker, wish)
        if stack.left:
            who = stack.view.listed(stack.left)
            self._refuse(change, f"{who} left, and views without a former member are not built yet")
            return
        self._begin()
        self._change = change
        self._on_flush(stack.me, Told({**change.key, "recipe": recipe}))

    def _on_flush(self, src: int, told: Told) -> None:
        number, attempt, recipe = told.number("number"), told.number("attempt"), told.text("recipe")
        stack, closing = self.stack, self._closing
        if src != self._leader() or number != stack.view.number + 1:
            return
        if attempt <= self._ended:
            self._tell_leader("cannot", number=number, attempt=attempt, why=self._why)
            return
        if closing is not None:
            if closing.attempt >= attempt:
                return
            self._reopen(closing)  # of an attempt whose refusal has not reached us
        try:
            layers = made(self._build, recipe)
        except UsageError as error:
            self._ended, self._why = attempt, f"{stack.view.names[stack.me]}: {error}"[:TEXT_MAX]
            self._tell_leader("cannot", number=number, attempt=attempt, why=self._why)
            return
        self._begin()
        self._closing = _Closing(number, attempt, recipe, layers)
        stack.views.close()

    def _on_flushed(self, src: int, told: Told) -> None:
        counts = told.numbers("counts", len(self.stack.view))
        if (change := self._led(src, told)) is not None:
            change.counts.setdefault(src, counts)

    def _on_cut(self, src: int, told: Told) -> None:
        n, closing = len(self.stack.view), self._closing
        key, counts = _key(told), told.table("counts", n, n)
        if src != self._leader():
            return
        if closing is None or closing.key != key:
            if key["number"] == self.stack.view.number + 1 and key["attempt"] <= self._ended:
                self._tell_leader("cannot", **key, why=self._why)
        elif closing.cut is None:
            closing.cut = [row[self.stack.me] for row in counts]
            closing.sent = [max(row) for row in counts]

    def _on_reached(self, src: int, told: Told) -> None:
        if (change := self._led(src, told)) is not None:
            change.reached.add(src)

    def _led(self, src: int, told: Told) -> "_Change | None":
        """The change that a member speaks of, if we lead it; if it was given up, it has not heard."""
        change, key = self._change, _key(told)
        if change is not None and change.key == key and change.recipe is not None:
            return change
        if self._leader() == self.stack.me and key["number"] == self.stack.view.number + 1:
            self._tell(src, "refused", **key, asker=src, wish=0, why="that attempt has ended")
        return None

    def _on_install(self, src: int, told: Told) -> None:
        if told.number("number") == self.stack.view.number:
            self._tell(src, "installed", number=self.stack.view.number)

    def _install(self, closing: "_Closing") -> None:
        if closing.installing:
            return
        closing.installing = True
        before = self.cuts + [0] * (len(closing.sent) - len(self.cuts))
        self.cuts = [past + count for past, count in zip(before, closing.sent, strict=True)]
        self.stack.views.install(self.stack.view.reordered(closing.recipe), closing.layers, closing.sent)

    def _cannot(self, closing: "_Closing", why: str) -> None:
        """As a follower: refuse the change, and go on in this view."""
        self._ended, self._why = closing.attempt, why
        self._reopen(closing)
        self._tell_leader("cannot", **closing.key, why=why)

    def _on_cannot(self, src: int, told: Told) -> None:
        """To the leader: a member cannot follow the change."""
        key, why = _key(told), told.text("why")
        change, closing = self._change, self._closing
        is_decided = closing is not None and closing.installing
        if change is not None and change.key == key and not change.installed and not is_decided:
            self._give_up(change, why)

    def _give_up(self, change: "_Change", why: str) -> None:
        """As the leader: give the change up; all members go on in this view."""
        self._change = None
        self._refuse(change, why)

    def _refuse(self, change: "_Change", why: str) -> None:
        told = {**change.key, "asker": change.asker, "wish": change.wish, "why": why[:TEXT_MAX]}
        self._tell(None, "refused", **told)
        self._on_refused(self.stack.me, Told(told))

    def _on_refused(self, src: int, told: Told) -> None:
        """From the leader: the change does not come about."""
        key, asker, wish, why = _key(told), told.number("asker"), told.number("wish"), told.text("why")
        if src != self._leader():
            return
        if key["number"] == self.stack.view.number + 1:
            self._ended = max(self._ended, key["attempt"])
            if self._closing is not None and self._closing.key == key:
                self._reopen(self._closing)
        if self._wish is not None and (asker, wish) == (self.stack.me, self._wish.number):
            self._end_wish(why)

    def _reopen(self, closing: "_Closing") -> None:
        """The view is not closed after all."""
        assert closing is self._closing and not closing.installing
        self._closing = None
        self.stack.views.reopen()

    def _end_wish(self, why: str | None) -> None:
        wish, self._wish = self._wish, None
        if wish is not None:
            wish.done(why)

    # A newcomer joins

    def _on_hello(self, told: Told, address: Hashable) -> None:
        if self._leader() != self.stack.me:
            return  # not ours to answer
        newcomer = self._door.look(told, address)
        if newcomer is not None and self._change is None:  # else the newcomer has to wait
            view = self.stack.view.extended(newcomer)
            self._begin()
            self._change = _Change(view.number, None)
            self._change.unconfirmed = {*self.stack.peers, len(view) - 1}
            self._door.let_in(view)

    def _on_view(self, src: int, told: Told) -> None:
        stack = self.stack
        view = view_described(told)
        if src != self._leader():
            return
        if view.number == stack.view.number + 1 and self._closing is None:
            if view.members[:-1] != stack.view.members or stack.views.fixed:
                raise WireError("malformed", "a view that this one cannot become")
            self._door.let_in(view)
        if view.number == stack.view.number:
            self._tell(src, "installed", number=view.number)

    def _on_installed(self, src: int, told: Told) -> None:
        if self._change is not None and told.number("number") == self._change.number:
            self._change.unconfirmed.discard(src)

    # Packets

    def _leader(self) -> int:
        stack = self.stack
        return next(member for member in range(len(stack.view)) if member not in stack.left)

    def _tell_leader(self, do: str, **what: Any) -> None:
        self._tell(self._leader(), do, **what)

    def _question(self, members: set[int], do: str, earlier: bool = False, /, **what: Any) -> None:
        """What is repeated until it is answered: to each member once between two ticks. Who hears what is
        meant for others answers as well, and if answers made us ask again, there would be no end of it."""
        for member in sorted(members):
            asked = (member, do, what.get("number"), what.get("attempt"))
            if asked not in self._asked:
                self._asked.add(asked)
                self._tell(member, do, earlier, **what)

    def _tell(self, to: int | None, do: str, earlier: bool = False, /, **what: Any) -> None:
        """`earlier`: readable for those who have not installed the view that is told of."""
        stack = self.stack
        if to == stack.me:
            _ANSWERS[do](self, stack.me, Told(what))
            return
        self._session.say(to, stack.view.number - earlier, do, what)


class _Wish(NamedTuple):
    """What this member has asked for."""

    number: int
    recipe: str
    done: Done


class _Change:
    """What a leader knows of the change it leads."""

    def __init__(
        self, number: int, recipe: str | None, attempt: int = 0, asker: int = 0, wish: int = 0
    ) -> None:
        self.number = number
        self.recipe = recipe  # None: a newcomer joins
        self.attempt = attempt  # of those to change the recipe
        self.asker = asker  # the member that asked for the change, and the number of its request
        self.wish = wish
        self.counts: dict[int, list[int]] = {}  # what each member has sent to each
        self.reached: set[int] = set()
        self.installed = False
        self.unconfirmed: set[int] = set()  # members that may not have installed the new view yet

    @property
    def key(self) -> dict[str, int]:
        """The fields by which members tell this change from others."""
        return {"number": self.number, "attempt": self.attempt}


class _Closing:
    """What a member knows of the end of its view."""

    def __init__(self, number: int, attempt: int, recipe: str, layers: list[Layer]) -> None:
        self.number = number
        self.attempt = attempt
        self.recipe = recipe
        self.layers = layers
        self.counts: list[int] | None = None  # what we have sent, once all of it has left
        self.cut: list[int] | None = None  # how many packets of each member we must have received
        self.sent: list[int] = []  # how many packets each member has sent in this view
        self.reached = False
        self.installing = False

    @property
    def key(self) -> dict[str, int]:
        return {"number": self.number, "attempt": self.attempt}


def _key(told: Told) -> dict[str, int]:
    return {"number": told.number("number"), "attempt": told.number("attempt")}


def view_for_newcomer(view: View, sizes: dict[int, int], cuts: list[int]) -> dict[str, Any]:
    """What a newcomer is told of its first view."""
    return {
        "number": view.number,
        "members": [[member.name, member.incarnation, member.address] for member in view.members],
        "recipe": view.recipe,
        "traced": view.traced,
        "views": sorted(sizes),
        "sizes": [size for _, size in sorted(sizes.items())],
        "cuts": cuts,
    }


def view_described(told: Told) -> View:
    """The extended view that a leader tells of."""
    members = tuple(Member(*person) for person in told.people("members"))
    if len(members) < 2 or len({member.name for member in members}) < len(members):
        raise WireError("malformed", "a view for nobody to join")
    return View(told.number("number"), members, told.text("recipe"), told.flag("traced"), (members[-1].name,))


def made(build: BuildByName | None, recipe: str) -> list[Layer]:
    """The layers of a recipe to which a group that runs can change."""
    layers = [] if build is None else build(recipe)
    orders = [layer for layer in layers if hasattr(layer, "sent")]
    has_own_wire = any(hasattr(layer, "read") for layer in layers)
    if not any(layer.name == "session" for layer in layers) or not orders or has_own_wire:
        raise UsageError(f"a group that runs already cannot change to the order {recipe!r}")
    return layers


def _ignore(changes: Changes, src: int, told: Told) -> None:
    """A message for a newcomer, or one that repeats what is known here."""


_ANSWERS: dict[str, Callable[[Changes, int, Told], None]] = {
    "use": Changes._on_use,
    "flush": Changes._on_flush,
    "flushed": Changes._on_flushed,
    "cut": Changes._on_cut,
    "reached": Changes._on_reached,
    "install": Changes._on_install,
    "installed": Changes._on_installed,
    "cannot": Changes._on_cannot,
    "refused": Changes._on_refused,
    "view": Changes._on_view,
    "base": _ignore,
    "closed": _ignore,
}
"""What members say to each other."""
