"""How a stack changes from one view to the next: the old view is closed, and new layers begin with the members of the next."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING, Any

from inga.model.compiled import mypyc_attr, restore, state_of
from inga.model.errors import NoMajority, UsageError
from inga.model.packet import Packet
from inga.model.steps import Trace
from inga.model.view import View
from inga.stack.chain import check, has
from inga.stack.figures import Totals
from inga.stack.layer import Layer

if TYPE_CHECKING:
    from inga.stack.stack import Stack


@mypyc_attr(allow_interpreted_subclasses=True)
class Views:
    """The stack's part that installs views; the session decides when."""

    def __init__(self, stack: "Stack") -> None:
        self.stack = stack
        # what `install` is to do at the end of the turn
        self.next: tuple[View, Sequence[Layer], Sequence[int] | None, Sequence[int]] | None = None
        self.retired: list[tuple[int, list[Layer]]] = []  # of closed views with untaken packets
        self._delivered = 0  # packets delivered when the view in force was installed
        self._abandoned = 0  # the last view in which we were another member
        self.since = stack.now  # when the view in force was installed
        self._resumed_at = -inf  # when the last pause was over
        self.totals = Totals()  # message counts of closed views

    def begin(self, bases: dict[str, list[int]] | None, cuts: Sequence[int]) -> None:
        """Begin our first view. Counts start at zero, or, for a newcomer on a board, at the others' `bases`. `cuts`: how much each
        process had sent in views before."""
        stack = self.stack
        if stack.view.attempt:
            self._begin_traces(cuts)
        known = (
            (0,) * len(stack.view) if stack.view.attempt else None
        )  # messages of earlier views count as known
        if bases is not None:
            for adopt in stack.chain.hooks("adopt"):
                adopt(bases)
            known = tuple(bases["seq"])
        self._record(known, stack.view.names)

    @property
    def follow(self) -> bool:
        """Whether the view changes when a member goes."""
        return any(layer.changes_views for layer in self.stack.chain.having("propose"))

    def extend(self, view: View, *, now: float) -> dict[str, int]:
        """Install a view with members appended while counts go on, as in the lecture's groups; return what a newcomer has to
        know about us to start. Groups of ours close a view instead: see `session.changes`."""
        stack = self.stack
        stack.now = self.since = now
        stack.flush()  # messages sent so far are not for the newcomer
        stack.enter(view)
        stack.sizes[view.number] = len(view)
        for extend in stack.chain.hooks("extend"):
            extend(view)
        if stack.trace is not None:
            stack.trace.grow(len(view))
        self._record(None, view.joined)
        stack.to_deliver.append(view)  # in its place among the packets
        bases = self.bases()
        stack.wire.catch_up()
        stack.review()
        return bases

    def bases(self) -> dict[str, int]:
        """What a newcomer has to know about us if it starts now."""
        return {key: count for base in self.stack.chain.hooks("base") for key, count in base().items()}

    def replace(self, name: str, layer: Layer) -> None:
        """Replace the layer called `name` by another; packets that it held go up through the new one."""
        stack = self.stack
        stack.refuse_if_failed()
        at = next((i for i, old in enumerate(stack.layers) if old.name == name), None)
        if at is None:
            raise UsageError(f"no layer {name!r} here, only {', '.join(x.name for x in stack.layers)}")
        old = stack.layers[at]
        layers = [*stack.layers[:at], layer, *stack.layers[at + 1 :]]
        check(tuple(map(type, layers)), stack.beneath)  # before the old layer gives up its packets
        if has(old, "flush"):
            old.flush()  # type: ignore[attr-defined]  # `has` has looked
        held: list[Packet] = old.drain() if has(old, "drain") else []  # type: ignore[attr-defined]
        stack.bind(layers)
        layer.view(stack.view)
        if held:
            layer.up(held)
        stack.review()

    @property
    def untaken(self) -> int:
        """The number of packets that were delivered and that the application has not taken."""
        return self.stack.delivered - self.stack.taken_count

    @property
    def is_cut_off(self) -> bool:
        """Whether nothing can move since we are paused, or in no view, so that no member is to blame."""
        return self.stack.paused is not None or self.stack.is_homeless

    def close(self) -> None:
        """Let the application send nothing more in this view, and send the messages that wait for more."""
        stack = self.stack
        if stack.trace is not None and not stack.closing:
            stack.trace.row("flush", stack.now, stack.view.number)
        stack.closing = True
        stack.review()
        stack.flush()
        for closing in stack.chain.hooks("closing"):
            closing()

    def pause(self, why: NoMajority | None) -> None:
        """Pause sending for that reason while the view stays in force; None ends the pause."""
        if why is None:
            self._resumed_at = self.stack.now
        self.stack.paused = why
        self.stack.review()

    def forgives(self, patience: float) -> bool:
        """Whether a missing packet may be due to a cut network: we are cut off, or were paused until at most `patience` seconds ago."""
        return self.is_cut_off or self.stack.now - self._resumed_at <= patience

    def excuse(self, is_excused: bool) -> None:
        """Set whether a closing view does not wait for our application to read: it waits for a state itself, or for a newcomer that
        receives its state."""
        self.stack.skips = is_excused

    def refuse_if_paused(self) -> None:
        """Raise the reason of the pause, if there is one: a new error each time, since each has a traceback of its own."""
        paused = self.stack.paused
        if paused is not None:
            raise NoMajority(str(paused), paused.missing)

    def abandon(self) -> None:
        """We are in no view from now on, and send nothing in the old one: others would take us for a member and wait for us."""
        if not self.stack.closing:
            self.close()
        self.stack.is_homeless = True
        self.stack.wire.next_tag = None

    def be_reborn(self, least: int = 0) -> None:
        """Become a new member, which asks for admission to another view: the next incarnation, or number `least` if that is higher."""
        self.stack.member = self.stack.member.reborn(least)

    def was_another(self, view: View) -> bool:
        """Whether we were another member in that view, which is closed."""
        return view.number <= self._abandoned

    def reopen(self) -> None:
        """The view goes on after all: the change was cancelled."""
        self.stack.closing = False
        self.stack.wire.next_tag = None
        self.stack.review()

    def expect(self, view: View) -> None:
        """Recognize packets of that view, which may come next: they show that their sender has installed it."""
        self.stack.wire.next_tag = self.stack.wire.tag_of(view)

    def install(
        self, view: View, layers: Sequence[Layer], cut: Sequence[int] | None, cuts: Sequence[int] = ()
    ) -> None:
        """Close the view in force, of which all members that stay have `cut` packets of each member, and go on with other
        layers, which count anew. This happens in `change`, when no code of the old view is running. Without a `cut` we are a new member
        in `view`, with a trace of its own, and `cuts` says how much each process had sent before."""
        self.next = (view, layers, cut, cuts)

    def change(self) -> None:
        """Install the view that was given to `install`, now that no code of the old view is running."""
        while self.next is not None:
            change, self.next = self.next, None
            self._install(*change)

    def _install(
        self, view: View, layers: Sequence[Layer], cut: Sequence[int] | None, cuts: Sequence[int]
    ) -> None:
        stack, old, closed = self.stack, self.stack.layers, self.stack.view
        for end in stack.chain.hooks("closed" if cut is not None else "abandoned"):
            end()
        self.totals.close(stack.chain.account(), closed.names, view.names)
        if self.untaken and stack.delivered > self._delivered:  # if not, these layers are not needed any more
            self.retired.append((stack.view.number, old))
        self._delivered = stack.delivered
        before = {layer.name: layer for layer in old}
        for layer in layers:
            if layer.name in before and has(layer, "inherit"):
                layer.inherit(before[layer.name])  # type: ignore[attr-defined]  # `has` has looked
        staying = {layer.name: layer for layer in old if layer.stays}
        copies = self._copies(closed)
        stack.bind([staying.get(layer.name, layer) for layer in layers])
        if cut is None:
            self._end_traces()
        elif stack.trace is not None:
            self._cut_traces(view, cut, copies)
        stack.wire.close(stack.view)
        self._renumber(view)
        self.since = stack.now
        stack.enter(view)
        stack.sizes = {view.number: len(view)}
        stack.report_wanted = stack.closing = stack.is_homeless = False
        stack.paused = None
        for layer in reversed(stack.layers):
            layer.view(view)
        if cut is None:
            self._begin_traces(cuts)
        elif stack.book is not None and stack.trace is not None:
            stack.record(stack.book)
        stack.review()
        self._record((0,) * len(view), view.joined, closed)
        stack.to_deliver.append(view)  # in its place among the packets
        stack.wire.catch_up()

    def taken(self, packets: list[Packet]) -> list[Packet]:
        """Tell layers of closed views which of their packets were taken; return the packets of the view in force."""
        rest = []
        for packet in packets:
            layers = next((layers for last, layers in self.retired if packet.view <= last), None)
            if layers is None:
                rest.append(packet)
                continue
            with self._silenced(packet.view):  # whatever they send has no receiver any more
                for layer in layers:
                    layer.taken([packet])
        if rest or not self.untaken:
            self.retired.clear()  # packets are taken in the order in which they were delivered
        return rest

    def _renumber(self, view: View) -> None:
        """Carry over what is known about members that stay, whose indices in the next view are different."""
        stack = self.stack
        before = {member.identity: index for index, member in enumerate(stack.view.members)}
        places = [before.get(member.identity) for member in view.members]
        for index, member in enumerate(stack.view.members):
            if index not in places and index not in stack.left - stack.failed:
                stack.places.learn(member.address)  # it may be alive, in another part of the group
        me = view.index(stack.member)
        assert me is not None
        stack.me = me
        stack.met = {new for new, old in enumerate(places) if old in stack.met}
        known = {new: stack.addresses[old] for new, old in enumerate(places) if old in stack.addresses}
        stack.doubted.clear()
        stack.addresses.clear()  # in place, since drivers hold a reference to it
        stack.addresses.update(known)
        stack.heard = [stack.now if old is None else stack.heard[old] for old in places]
        stack.left, stack.failed = set(), set()
        now = {old: new for new, old in enumerate(places)}
        stack.to_send = [
            (now[to] if isinstance(to, int) else to, data)
            for to, data in stack.to_send
            if not isinstance(to, int) or to in now
        ]

    @contextmanager
    def _silenced(self, view: int) -> Iterator[None]:
        """Meanwhile, drop whatever is sent, and write no rows about it; in a view in which we were another member write no rows at
        all, since its trace has ended."""
        stack, trace = self.stack, self.stack.trace
        count, stack.is_silenced = len(stack.to_send), True
        if view <= self._abandoned:
            stack.trace = None
        yield
        stack.is_silenced, stack.trace = False, trace
        del stack.to_send[count:]

    def revive(self) -> None:
        """After a copy: bind the layers of closed views to this stack, too."""
        for _, layers in self.retired:
            for layer in layers:
                layer.stack = self.stack

    # Traces

    def _copies(self, view: View) -> list[tuple[int, str]]:
        """The processes of a view that are not members: copies of objects, by member and name."""
        copies = self.stack.chain.hook("copies")
        found: list[tuple[int, str]] = [] if copies is None or self.stack.book is None else copies(view)
        return found

    def _processes(self, view: View) -> list[int]:
        """The processes of a view by their numbers in the trace, in the order in which its rows number them."""
        book, of = self.stack.book, view.processes
        if book is None:
            return list(of)
        copies = [book.number(of[member], name) for member, name in self._copies(view)]
        return [*map(book.number, of), *copies]

    def _ours(self, copies: Iterable[tuple[int, str]]) -> list[Trace]:
        """Our own trace, and the traces of those of these copies that are ours."""
        stack, book = self.stack, self.stack.book
        if book is None or stack.trace is None:
            return [] if stack.trace is None else [stack.trace]
        mine = stack.view.processes[stack.me]
        return [stack.trace, *(book.trace(mine, name) for member, name in copies if member == stack.me)]

    def _cut_traces(self, view: View, cut: Sequence[int], copies: list[tuple[int, str]]) -> None:
        """Tell our traces that counts begin anew in the next view; `copies` are those of the view that is closed."""
        past = None if self.stack.book is None else self.stack.book.past(view.number)
        for trace in self._ours(copies):
            trace.cut(self.stack.view.number, cut if past is None else past, self._processes(view))

    def _end_traces(self) -> None:
        """The others went on without us: end the trace of the member that we were."""
        stack = self.stack
        if stack.trace is not None:
            stack.trace.row("crash", stack.now, stack.view.number, peer=stack.me)
        stack.trace, self._abandoned = None, stack.view.number

    def _begin_traces(self, cuts: Sequence[int]) -> None:
        """Begin our traces as a new member of a group that has had views before."""
        stack, book, view = self.stack, self.stack.book, self.stack.view
        if book is None:
            return
        stack.record(book)
        past = book.past(view.number)
        for trace in self._ours(self._copies(view)):
            trace.cut(view.number - 1, cuts if past is None else past, self._processes(view))

    def _record(
        self, known: tuple[int, ...] | None, joined: Sequence[str], closed: View | None = None
    ) -> None:
        """Write rows for a view and its new members. `known`: the vector of messages that count as known from its installation on;
        `closed`: the view whose members `view.left` and `view.failed` are."""
        trace, view, now = self.stack.trace, self.stack.view, self.stack.now
        if trace is None:
            return
        copies = self._copies(view)
        told = [("joined", view, joined)]
        if closed is not None:
            told += [("left", closed, view.left), ("failed", closed, view.failed)]
        changed = "; ".join(f"{what} {where.numbered(names)}" for what, where, names in told if names)
        for each in self._ours(copies):
            each.row(
                "view",
                now,
                view.number,
                dst=(1 << len(view) + len(copies)) - 1,
                deps=known,
                peer=0,  # the leader of the change: always the first of the members that stayed
                n=len(view),
                ref=changed or None,
                note=view.recipe,
            )
        for name in joined:
            trace.row("join", now, view.number, peer=view.names.index(name), note=name)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in state_of(self).items() if name != "stack"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        restore(self, state)
