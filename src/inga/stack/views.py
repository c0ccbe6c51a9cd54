"""How a stack goes from one view to the next: the old one is closed, and layers begin anew with the members of the next."""

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
        # to be installed
        self.next: tuple[View, Sequence[Layer], Sequence[int] | None, Sequence[int]] | None = None
        self.retired: list[tuple[int, list[Layer]]] = []  # of closed views, for what is not taken yet
        self._delivered = 0  # packets, as the view in force was installed
        self._abandoned = 0  # the last view in which we were another member
        self.since = stack.now  # when the view in force was installed
        self._resumed_at = -inf  # when its last pause was over
        self.totals = Totals()  # messages of views before it

    def begin(self, bases: dict[str, list[int]] | None, cuts: Sequence[int]) -> None:
        """Our first view counts from here: from nothing, or, for one that joins a board, from the others' bases. `cuts`:
        what each process had sent in views before."""
        stack = self.stack
        if stack.view.attempt:
            self._begin_traces(cuts)
        known = (
            (0,) * len(stack.view) if stack.view.attempt else None
        )  # what was sent in views before is past
        if bases is not None:
            for adopt in stack.chain.hooks("adopt"):
                adopt(bases)
            known = tuple(bases["seq"])
        self._record(known, stack.view.names)

    @property
    def follow(self) -> bool:
        """Whether a view without a member follows when it goes."""
        return any(layer.changes_views for layer in self.stack.chain.having("propose"))

    def extend(self, view: View, *, now: float) -> dict[str, int]:
        """Install a view with members appended while counts go on, as the lecture's groups do; what a newcomer has to
        know of us to start. Groups of ours close a view instead: see `session.changes`."""
        stack = self.stack
        stack.now = self.since = now
        stack.flush()  # what was sent so far is not for the newcomer
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
        """What a newcomer has to know of us if it starts now."""
        return {key: count for base in self.stack.chain.hooks("base") for key, count in base().items()}

    def replace(self, name: str, layer: Layer) -> None:
        """Put another layer in the place of the one called `name`; what that held goes through it."""
        stack = self.stack
        stack.refuse_if_failed()
        at = next((i for i, old in enumerate(stack.layers) if old.name == name), None)
        if at is None:
            raise UsageError(f"no layer {name!r} here, only {', '.join(x.name for x in stack.layers)}")
        old = stack.layers[at]
        layers = [*stack.layers[:at], layer, *stack.layers[at + 1 :]]
        check(tuple(map(type, layers)), stack.beneath)  # before the old one lets go
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
        """Packets that were delivered and that the application has not taken."""
        return self.stack.delivered - self.stack.taken_count

    @property
    def is_cut_off(self) -> bool:
        """Whether nobody here can be to blame that nothing moves: we are paused, or in no view."""
        return self.stack.paused is not None or self.stack.is_homeless

    def close(self) -> None:
        """Nothing more is sent in this view; what waits for company leaves."""
        stack = self.stack
        if stack.trace is not None and not stack.closing:
            stack.trace.row("flush", stack.now, stack.view.number)
        stack.closing = True
        stack.review()
        stack.flush()
        for closing in stack.chain.hooks("closing"):
            closing()

    def pause(self, why: NoMajority | None) -> None:
        """Nothing is sent for that reason, and the view goes on; or, with None, for none any more."""
        if why is None:
            self._resumed_at = self.stack.now
        self.stack.paused = why
        self.stack.review()

    def forgives(self, patience: float) -> bool:
        """Whether what did not come may have been cut off from us: we are, or were so within these seconds."""
        return self.is_cut_off or self.stack.now - self._resumed_at <= patience

    def excuse(self, is_excused: bool) -> None:
        """Whether a view that closes goes on without what our application has not read: it waits for a state itself, or for one
        that gets its state."""
        self.stack.skips = is_excused

    def refuse_if_paused(self) -> None:
        """Raise why nothing can be sent until somebody is heard again; anew, as each error has a history of its own."""
        paused = self.stack.paused
        if paused is not None:
            raise NoMajority(str(paused), paused.missing)

    def abandon(self) -> None:
        """We are in no view from now on. Who took what we say there for a sign of a member would wait for it."""
        if not self.stack.closing:
            self.close()
        self.stack.is_homeless = True
        self.stack.wire.next_tag = None

    def be_reborn(self, least: int = 0) -> None:
        """We ask to be let into another view as a new member, at least the `least`-th of our name."""
        self.stack.member = self.stack.member.reborn(least)

    def was_another(self, view: View) -> bool:
        """Whether we were another member in that view, which is closed."""
        return view.number <= self._abandoned

    def reopen(self) -> None:
        """The view goes on after all."""
        self.stack.closing = False
        self.stack.wire.next_tag = None
        self.stack.review()

    def expect(self, view: View) -> None:
        """If a packet of that view comes, its sender has installed it."""
        self.stack.wire.next_tag = self.stack.wire.tag_of(view)

    def install(
        self, view: View, layers: Sequence[Layer], cut: Sequence[int] | None, cuts: Sequence[int] = ()
    ) -> None:
        """Close the view in force, of which everybody who stays has `cut` packets of each member, and go on
        with other layers, which count anew: once all that is being done in the old view is done. Without a `cut` we
        are a new member there, with a trace of its own, and `cuts` is what each process had sent before."""
        self.next = (view, layers, cut, cuts)

    def change(self) -> None:
        """Do what `install` was told, now that nothing of the old view is being done."""
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
        if self.untaken and stack.delivered > self._delivered:  # else nobody will ask for these layers
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
        """Let the layers know that delivered packets of closed views; the rest is of views in force."""
        rest = []
        for packet in packets:
            layers = next((layers for last, layers in self.retired if packet.view <= last), None)
            if layers is None:
                rest.append(packet)
                continue
            with self._silenced(packet.view):  # nobody is there any more to whom they could say anything
                for layer in layers:
                    layer.taken([packet])
        if rest or not self.untaken:
            self.retired.clear()  # packets are taken in the order in which they were delivered
        return rest

    def _renumber(self, view: View) -> None:
        """The next view has other members, and other indices for those that stay: what is known of them goes along."""
        stack = self.stack
        before = {member.identity: index for index, member in enumerate(stack.view.members)}
        places = [before.get(member.identity) for member in view.members]
        for index, member in enumerate(stack.view.members):
            if index not in places and index not in stack.left - stack.failed:
                stack.places.learn(member.address)  # it may live, in another part of the group
        me = view.index(stack.member)
        assert me is not None
        stack.me = me
        stack.met = {new for new, old in enumerate(places) if old in stack.met}
        known = {new: stack.addresses[old] for new, old in enumerate(places) if old in stack.addresses}
        stack.doubted.clear()
        stack.addresses.clear()  # drivers look into it
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
        """What is sent meanwhile is not, nor are there rows about it; of a view in which we were another member none
        at all: its trace has ended."""
        stack, trace = self.stack, self.stack.trace
        count, stack.is_silenced = len(stack.to_send), True
        if view <= self._abandoned:
            stack.trace = None
        yield
        stack.is_silenced, stack.trace = False, trace
        del stack.to_send[count:]

    def revive(self) -> None:
        """After a copy: layers of closed views belong to this stack, too."""
        for _, layers in self.retired:
            for layer in layers:
                layer.stack = self.stack

    # Traces

    def _copies(self, view: View) -> list[tuple[int, str]]:
        """The processes of a view besides members: copies of objects, by member and name."""
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
        """Our own trace, and those of our copies among these."""
        stack, book = self.stack, self.stack.book
        if book is None or stack.trace is None:
            return [] if stack.trace is None else [stack.trace]
        mine = stack.view.processes[stack.me]
        return [stack.trace, *(book.trace(mine, name) for member, name in copies if member == stack.me)]

    def _cut_traces(self, view: View, cut: Sequence[int], copies: list[tuple[int, str]]) -> None:
        """Our traces go on in the numbers of the next view; `copies` are those of the view that is closed."""
        past = None if self.stack.book is None else self.stack.book.past(view.number)
        for trace in self._ours(copies):
            trace.cut(self.stack.view.number, cut if past is None else past, self._processes(view))

    def _end_traces(self) -> None:
        """The others went on without us: what we were ends here, and does not see what follows."""
        stack = self.stack
        if stack.trace is not None:
            stack.trace.row("crash", stack.now, stack.view.number, peer=stack.me)
        stack.trace, self._abandoned = None, stack.view.number

    def _begin_traces(self, cuts: Sequence[int]) -> None:
        """We are a new member of a group that has had views before."""
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
        """Rows of a view and of its new members. `known`: what its installation makes known here; `closed`: the view
        of which those who left or failed were members."""
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
                peer=0,  # who led the change to it: always the first of those who stayed
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
