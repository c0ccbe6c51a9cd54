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

A crash, and leaving in the middle of it, are not treated here yet.
"""

import json
from collections.abc import Callable
from typing import Any

from inga.layers.order import Order
from inga.model.errors import UsageError
from inga.model.packet import Packet
from inga.model.view import Member, View
from inga.stack.layer import Layer

PAUSE, PAUSE_MAX = 0.005, 0.1
"""Seconds before a question is repeated: first, and after doubling."""

WARN_AFTER = 5.0
"""Seconds of a change under way before a person is told for whom it waits."""

Done = Callable[[str | None], None]
"""Told of the end of a change one asked for: nothing, or why it did not come about."""


class Membership(Layer):
    """Leads view changes, and follows."""

    name = "membership"
    id = 3
    grows = True
    stays = True

    def __init__(self, build: Callable[[str], list[Layer]]) -> None:
        """`build` makes the layers of a recipe by its name."""
        self._build = build
        self.accepts: Callable[[Member], str | None] | None = None  # the driver's objections
        self._wish: tuple[str, Done] | None = None
        self._change: _Change | None = None  # which we lead
        self._closing: _Closing | None = None  # which we follow
        self._bases: dict[str, int] = {}  # what the newcomer of this view has to know of us
        self.cuts: list[int] = []  # what members had sent in views that are closed, if any
        self._since = 0.0
        self._warned = False
        self._pause = PAUSE

    # What drivers do

    def propose(self, recipe: str, done: Done) -> None:
        """Ask for another recipe in the whole group."""
        if self._wish is not None:
            raise UsageError("this member has asked for a change of order that is still under way")
        self._build(recipe)  # or it raises what is wrong with it
        if recipe == self.stack.view.recipe:
            done(None)
            return
        self._wish = (recipe, done)
        self._begin()
        self._work()

    @property
    def settled(self) -> bool:
        """Whether no change is under way."""
        return self._change is None and self._closing is None and self._wish is None

    # Hooks

    def view(self, view: View) -> None:
        """Another recipe is installed; the first view comes here too."""
        self._closing = None
        if self._change is not None:
            self._change.installed = True
            self._change.unconfirmed = set(self.stack.peers())
            self._tell(None, "install", number=view.number)
        if self._wish is not None and self._wish[0] == view.recipe:
            self._end_wish(None)

    def gone(self, member: int) -> None:
        change, name = self._change, self.stack.view.names[member]
        if change is not None:
            change.unconfirmed.discard(member)
            if change.recipe is not None and not change.installed:
                self._give_up(f"{name} left")
        if self._closing is not None and not self._closing.reached:
            self._resume(f"{name} left")

    def ahead(self, number: int) -> None:
        """Whoever is in the next view knows that everybody has reached the cut."""
        closing = self._closing
        if closing is not None and closing.reached and closing.number == number:
            self._install(closing)

    def tick(self, now: float) -> None:
        self._pause = min(2 * self._pause, PAUSE_MAX)
        self._work()

    def control(self, packet: Packet) -> None:
        try:
            told = json.loads(packet.ext or b"")
            answer = _ANSWERS[told["do"]]
            answer(self, packet.src, told)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            self.stack.reject("malformed", packet)
            return
        self._pause = PAUSE
        self._work()

    # The work to be done, again and again until it is

    def _work(self) -> None:
        if self._closing is not None:
            self._follow(self._closing)
        if self._change is not None:
            self._lead(self._change)
        if self._wish is not None and self._closing is None:
            self._ask(self._wish[0])
        self.wake = self.stack.now + self._pause if not self.settled else None

    def _ask(self, recipe: str) -> None:
        leader = self._leader()
        if leader == self.stack.me:
            if self._change is None:
                self._start(recipe)
        else:
            self._tell(leader, "use", recipe=recipe)

    def _follow(self, closing: "_Closing") -> None:
        stack = self.stack
        order = self._order()
        if closing.counts is None and not any(layer.waiting for layer in stack.layers):
            closing.counts = order.sent()
        if closing.cut is None:
            if closing.counts is not None:
                self._tell_leader("flushed", number=closing.number, counts=closing.counts)
        elif closing.reached or order.has(closing.cut):
            closing.reached = True
            self._tell_leader("reached", number=closing.number)

    def _lead(self, change: "_Change") -> None:
        stack = self.stack
        everybody = {stack.me, *stack.peers()}
        if change.recipe is not None and not change.installed:
            if missing := everybody - change.counts.keys():
                self._tell_some(missing, "flush", number=change.number, recipe=change.recipe)
            elif missing := everybody - change.reached:
                counts = [change.counts[member] for member in range(len(stack.view))]
                self._tell_some(missing, "cut", number=change.number, counts=counts)
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
                self._tell_some(missing, "install", number=change.number)
            else:
                self._tell_some(missing, "view", True, **_described(stack.view, stack.sizes, self.cuts))
        self._warn(missing)

    def _warn(self, missing: set[int]) -> None:
        if not self._warned and self.stack.now - self._since >= WARN_AFTER:
            self._warned = True
            names = ", ".join(self.stack.view.names[member] for member in sorted(missing))
            self.stack.notice(f"a change of the view has waited {WARN_AFTER:g} s for {names}")

    def _begin(self) -> None:
        self._since, self._warned, self._pause = self.stack.now, False, PAUSE

    # Another recipe

    def _on_use(self, src: int, told: dict[str, Any]) -> None:
        recipe = str(told["recipe"])
        if self._leader() == self.stack.me and self._change is None and recipe != self.stack.view.recipe:
            self._start(recipe)

    def _start(self, recipe: str) -> None:
        stack = self.stack
        if stack.left:
            names = ", ".join(stack.view.names[member] for member in sorted(stack.left))
            self._refuse(f"{names} left, and views without a former member are not built yet")
            return
        self._begin()
        self._change = _Change(stack.view.number + 1, recipe)
        self._on_flush(stack.me, {"number": self._change.number, "recipe": recipe})

    def _on_flush(self, src: int, told: dict[str, Any]) -> None:
        number, recipe = int(told["number"]), str(told["recipe"])
        stack = self.stack
        if self._closing is not None or number != stack.view.number + 1:
            return
        try:
            layers = self._build(recipe)
        except UsageError as error:
            self._tell(src, "refused", why=f"{stack.view.names[stack.me]}: {error}")
            return
        self._closing = _Closing(number, recipe, layers)
        stack.closing = True
        stack.writable = False
        stack.flush()

    def _on_flushed(self, src: int, told: dict[str, Any]) -> None:
        counts = [int(count) for count in told["counts"]]
        change = self._change
        if change is not None and told["number"] == change.number and len(counts) == len(self.stack.view):
            change.counts.setdefault(src, counts)

    def _on_cut(self, src: int, told: dict[str, Any]) -> None:
        closing, n = self._closing, len(self.stack.view)
        counts = [[int(count) for count in row] for row in told["counts"]]
        if len(counts) != n or any(len(row) != n for row in counts):
            raise ValueError("a cut of another size")
        if closing is not None and told["number"] == closing.number and closing.cut is None:
            closing.cut = [row[self.stack.me] for row in counts]
            closing.sent = [max(row) for row in counts]

    def _on_reached(self, src: int, told: dict[str, Any]) -> None:
        if self._change is not None and told["number"] == self._change.number:
            self._change.reached.add(src)

    def _on_install(self, src: int, told: dict[str, Any]) -> None:
        if told["number"] == self.stack.view.number:
            self._tell(src, "installed", number=self.stack.view.number)

    def _install(self, closing: "_Closing") -> None:
        if closing.installing:
            return
        closing.installing = True
        before = self.cuts + [0] * (len(closing.sent) - len(self.cuts))
        self.cuts = [past + count for past, count in zip(before, closing.sent, strict=True)]
        self.stack.install(self.stack.view.reordered(closing.recipe), closing.layers, closing.sent)

    def _on_refused(self, src: int, told: dict[str, Any]) -> None:
        """To the leader: somebody cannot follow. From the leader: the change does not come about."""
        why = str(told["why"])
        if self._leader() == self.stack.me:
            if self._change is not None and not self._change.installed:
                self._give_up(why)
        elif src == self._leader():
            self._resume(why)

    def _give_up(self, why: str) -> None:
        """As the leader: everybody goes on as before."""
        self._change = None
        self._refuse(why)

    def _refuse(self, why: str) -> None:
        self._tell(None, "refused", why=why)
        self._resume(why)

    def _resume(self, why: str) -> None:
        if self._closing is not None:
            self._closing = None
            self.stack.closing = False
            self.stack.writable = True
        self._end_wish(why)

    def _end_wish(self, why: str | None) -> None:
        if self._wish is not None:
            _, done = self._wish
            self._wish = None
            done(why)

    # A member more

    def _on_hello(self, src: int, told: dict[str, Any]) -> None:
        newcomer = Member(str(told["name"]), int(told["incarnation"]), str(told["address"]))
        stack = self.stack
        if self._leader() != stack.me or newcomer in stack.view.members or self._change is not None:
            return  # not ours to answer; or its view is on the way; or it has to wait
        why = self._objection(newcomer)
        if why is not None:
            self._tell(None, "closed", name=newcomer.name, why=why)
            return
        self._begin()
        self._change = _Change(stack.view.number + 1, None)
        self._change.unconfirmed = {*stack.peers(), len(stack.view)}
        self._extend(stack.view.extended(newcomer))

    def _objection(self, newcomer: Member) -> str | None:
        """Why somebody cannot join, if so."""
        stack = self.stack
        if not newcomer.name or newcomer.name in stack.view.names:
            return f"there is a member {newcomer.name!r} already"
        if stack.left:
            return "a member has left, and joining after that is not built yet"
        fixed = [layer.name for layer in stack.layers if not layer.grows]
        if fixed:
            return f"its order {stack.view.recipe!r} works with a fixed group only"
        return None if self.accepts is None else self.accepts(newcomer)

    def _on_view(self, src: int, told: dict[str, Any]) -> None:
        stack = self.stack
        view = view_described(told)
        if view.number == stack.view.number + 1 and self._closing is None:
            if view.members[:-1] != stack.view.members:
                raise ValueError("a view of other members")
            self._extend(view)
        if view.number == stack.view.number:
            self._tell(src, "installed", number=view.number)

    def _extend(self, view: View) -> None:
        self._bases = self.stack.extend(view, now=self.stack.now)
        self._tell_base()

    def _on_bases(self, src: int, told: dict[str, Any]) -> None:
        """The newcomer has not heard from us."""
        if told["number"] == self.stack.view.number and self._bases:
            self._tell_base()

    def _tell_base(self) -> None:
        self._tell(None, "base", False, number=self.stack.view.number, **self._bases)

    def _on_installed(self, src: int, told: dict[str, Any]) -> None:
        if self._change is not None and told["number"] == self._change.number:
            self._change.unconfirmed.discard(src)

    def _on_nothing(self, src: int, told: dict[str, Any]) -> None:
        """Meant for a newcomer, or heard of already."""

    # Packets

    def _leader(self) -> int:
        stack = self.stack
        return next(member for member in range(len(stack.view)) if member not in stack.left)

    def _order(self) -> Order:
        return next(layer for layer in self.stack.layers if isinstance(layer, Order))

    def _tell_leader(self, do: str, **what: Any) -> None:
        self._tell(self._leader(), do, **what)

    def _tell_some(self, members: set[int], do: str, earlier: bool = False, /, **what: Any) -> None:
        for member in sorted(members):
            self._tell(member, do, earlier, **what)

    def _tell(self, to: int | None, do: str, earlier: bool = False, /, **what: Any) -> None:
        """`earlier`: readable for those who have not installed the view that is told of."""
        stack = self.stack
        if to == stack.me:
            _ANSWERS[do](self, stack.me, what)
            return
        number = stack.view.number
        packet = Packet(stack.me, number - 1 if earlier else number, kind=self.id)
        packet.to = to
        packet.ext = said(do, **what)
        stack.emit([packet])


class _Change:
    """What a leader knows of the change it leads."""

    def __init__(self, number: int, recipe: str | None) -> None:
        self.number = number
        self.recipe = recipe  # None: somebody joins
        self.counts: dict[int, list[int]] = {}  # what each member has sent to each
        self.reached: set[int] = set()
        self.installed = False
        self.unconfirmed: set[int] = set()  # who may not be in the new view yet


class _Closing:
    """What a member knows of the end of its view."""

    def __init__(self, number: int, recipe: str, layers: list[Layer]) -> None:
        self.number = number
        self.recipe = recipe
        self.layers = layers
        self.counts: list[int] | None = None  # what we have sent, once all of it has left
        self.cut: list[int] | None = None  # what we must have got
        self.sent: list[int] = []  # what everybody has sent
        self.reached = False
        self.installing = False


def said(do: str, **what: Any) -> bytes:
    """The contents of a packet."""
    return json.dumps({"do": do, **what}, separators=(",", ":")).encode()


def _described(view: View, sizes: dict[int, int], cuts: list[int]) -> dict[str, Any]:
    members = [[member.name, member.incarnation, member.address] for member in view.members]
    return {
        "number": view.number,
        "members": members,
        "recipe": view.recipe,
        "traced": view.traced,
        "sizes": sorted(sizes.items()),
        "cuts": cuts,
    }


def view_described(told: dict[str, Any]) -> View:
    """The extended view that a leader tells of; raises ValueError, TypeError or KeyError."""
    members = tuple(
        Member(str(name), int(incarnation), str(address)) for name, incarnation, address in told["members"]
    )
    if len(members) < 2:
        raise ValueError("a view for nobody to join")
    return View(int(told["number"]), members, str(told["recipe"]), bool(told["traced"]), (members[-1].name,))


_ANSWERS: dict[str, Callable[[Membership, int, dict[str, Any]], None]] = {
    "use": Membership._on_use,
    "flush": Membership._on_flush,
    "flushed": Membership._on_flushed,
    "cut": Membership._on_cut,
    "reached": Membership._on_reached,
    "install": Membership._on_install,
    "installed": Membership._on_installed,
    "refused": Membership._on_refused,
    "hello": Membership._on_hello,
    "view": Membership._on_view,
    "bases": Membership._on_bases,
    "base": Membership._on_nothing,
    "closed": Membership._on_nothing,
}
