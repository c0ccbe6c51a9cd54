"""Schedules played move by move: stacks over a network where every arrival is a decision.

Copies are never lost here, only late or duplicated (unless a member crashes), so the stacks are the recipe's without repair and
flow control: this is where orders are judged, and where counterexamples are small. Loss is left to `Sim`.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from inga.causality.cut import closed_cut, gapless_cut
from inga.layers.causal import Causal
from inga.model.compiled import mypyc_attr
from inga.model.delivery import Batch
from inga.model.errors import UsageError
from inga.model.packet import DATA, Buffer, Packet
from inga.model.stamp import Delta, Deps
from inga.model.steps import Trace
from inga.model.view import Member, View
from inga.recipes import Options, find
from inga.sim.schedule import Arrive, Event, Gate, Install, Join, Leave, Schedule, Send, Take, Wait, letter
from inga.stack.layer import Layer
from inga.stack.stack import Rng, Stack, joined
from inga.trial.oracle import Oracle
from inga.trial.workload import HEADER, number_of
from inga.wire.packet import decode, kind_of, view_of

Build: TypeAlias = Callable[[], list[Layer]]

WAITS_MAX = 100
"""The most timers of a site that fire when a schedule is over; some layers always set another one."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Still:
    """A random generator that is not random, for stacks whose every move is decided elsewhere."""

    def random(self) -> float:
        return 0.0


def lossless(order: str, options: Options | None = None) -> Build:
    """Return what builds the layers of a recipe for a network that loses nothing."""
    recipe = find(order)
    if not recipe.direct:
        why = "asks for clocks before it delivers" if recipe.objects else "passes messages on"
        raise UsageError(f"order {recipe.name!r} {why}, so no schedule can say what arrives where")
    options = replace(options or Options(), lossless=True)
    recipe.check(options)
    return lambda: recipe.make(options)


ENTRIES = ("announced", "zero", "copy", "copy late")
"""Where a newcomer's counts start: at the bases that all members announce (the right way), at zero, or at what the
member that joined last before it has released: when the newcomer asks for admission, or when that member admits it."""


PARTINGS = {"closed": closed_cut, "gapless": gapless_cut, "none": None, "forgotten": None}
"""What survivors do about a crash: pool the crashed member's packets and keep a cut of them that is causally closed (the right
way), or one that is only free of gaps; nothing; or ignore at once every dependency on the crashed member."""


@mypyc_attr(allow_interpreted_subclasses=True)
class JoiningSite:
    """A newcomer that is joining."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.bases: dict[int, dict[str, int]] = {}  # announced by members that have installed the view
        self.early: list[bytes] = []  # datagrams that arrived before it could start


@mypyc_attr(allow_interpreted_subclasses=True)
class Board:
    """Sites, the copies in flight between them, and the oracle that watches."""

    def __init__(
        self,
        sites: int,
        build: Build,
        *,
        queues: bool = False,
        flags: bool = True,
        view: View | None = None,
        traces: list[Trace] | None = None,
        watch: Callable[[Event], None] = lambda event: None,
        entry: str = "announced",
        eager: bool = False,
        parting: str = "closed",
    ) -> None:
        """`queues`: released messages wait until a move takes them. `flags`: compare concurrency flags too. `watch`
        is called after each move, and after each message that is taken as soon as it is released. `entry` says
        where newcomers start. `eager`: members accept messages of a newcomer's view before they have
        installed it, as a group without numbered views would. `parting` says what survivors do about crashes."""
        view = view or View.of(*map(letter, range(sites)))
        assert entry in ENTRIES and parting in PARTINGS
        self._build = build
        self._view = view
        self.stacks = [
            self._stack(site, view, None if traces is None else traces[site]) for site in range(sites)
        ]
        for stack in self.stacks:
            stack.begin()
        self.oracle = Oracle(sites)
        self.under_way: list[tuple[int, int]] = []  # (message, site) of copies not yet arrived
        self.wakes: list[float | None] = [None] * sites  # when the timer of each fires
        self.in_queues = 0  # messages released and not yet taken
        self.taken: list[list[int]] = [[] for _ in range(sites)]
        self.played: list[Event] = []
        self._queues = queues
        self._explicit: set[tuple[int, int]] = set()  # (site, message) that a later move takes
        self._released: list[deque[Batch]] = [deque() for _ in range(sites)]
        self._copies: dict[tuple[int, int], list[Buffer]] = {}
        self.sent: list[list[int]] = [[] for _ in range(sites)]  # messages of each site, by number
        self.sees_concurrency = sees_concurrency(self.stacks[0])
        self._flags = flags and self.sees_concurrency
        self._watch = watch
        self._time = 0.0
        self._entry = entry
        self._eager = eager
        self._entering: JoiningSite | None = None
        self._parting = parting
        self.gone: set[int] = set()
        self._parted: set[int] = set()  # survivors that have installed the view after the last crash
        self._cut: dict[int, int] | None = None  # the last message that survivors keep of each crashed member
        self._open: set[int] = set()  # sites whose gate is open
        self.loose: set[tuple[int, int]] = set()  # (site, message) released while the gate was open

    def _stack(self, site: int, view: View, trace: Trace | None = None) -> Stack:
        return Stack(self._build(), site, view, rng=Still(), beneath=("reliable",), trace=trace)

    # Moves

    def send(self, site: int, message: int, dst: int | None = None) -> None:
        """Let a site send a message, to all others or to a bit set of sites."""
        event = Send(site, message, dst)
        self.played.append(event)
        stack = self.stacks[site]
        audience = dst
        if dst is None and self._entering is not None:
            audience = sum(1 << member for member in stack.others)
        self.oracle.send(site, message, audience)
        self.sent[site].append(message)
        stack.send(message.to_bytes(HEADER, "big"), dst, now=self._tick())
        self._collect(site, event)  # a site that is among its own destinations hears itself

    def arrive(self, message: int, site: int, *, duplicate: bool = False) -> None:
        """Let the copy of a message, or a duplicate of it, reach a site."""
        event = Arrive(message, site, duplicate)
        self.played.append(event)
        if not duplicate:
            self.under_way.remove((message, site))
        copies = self._copies[message, site]
        if site == len(self.stacks):
            assert self._entering is not None
            self._entering.early += map(bytes, copies)
            self._watch(event)
            return
        self.stacks[site].receive([(data, None) for data in copies], now=self._tick())
        self._collect(site, event)

    def join(self, site: int) -> None:
        """Let a newcomer ask to join: it gets the next index, and starts once all members have admitted it."""
        if site != len(self.stacks) or self._is_pending():
            raise UsageError(f"{letter(site)} cannot join: newcomers do so one after another, by letter")
        event = Join(site)
        self.played.append(event)
        self._entering = JoiningSite(self._view.extended(Member(letter(site))))
        self.wakes.append(None)
        self.taken.append([])
        self.sent.append([])
        self._released.append(deque())
        if self._eager:
            for stack in self.stacks:
                stack.views.extend(self._entering.view, now=self._tick())
        if self._entry == "zero":
            self._start(self._entering, {"seq": [0] * (site + 1)})
        elif self._entry == "copy":
            self._start(self._entering, {"seq": [*self._causal(site - 1).inbox.vector, 0]})
        self._watch(event)

    def leave(self, site: int) -> None:
        """Let a member crash: all copies in flight of its messages, and those to it, are lost."""
        event = Leave(site)
        self.played.append(event)
        lost = set(self.sent[site])
        self.under_way = [
            (message, member) for message, member in self.under_way if message not in lost and member != site
        ]
        self.gone.add(site)
        self.wakes[site] = None
        self.in_queues -= len(self._released[site])
        self._released[site].clear()
        self._parted.clear()
        self._cut = None
        self.oracle.crash(site)
        self._watch(event)

    def _part(self, site: int) -> None:
        """Let a survivor install the view without the crashed members."""
        event = Install(site)
        self.played.append(event)
        self._parted.add(site)
        inbox = self._causal(site).inbox
        choose = PARTINGS[self._parting]
        if self._parting == "forgotten":
            offer, gone = inbox.offer, self.gone

            def blind(src: int, seq: int, delta: Delta, item: Packet, out: list[Packet]) -> int:
                return offer(src, seq, tuple(pair for pair in delta if pair[0] not in gone), item, out)

            inbox.offer = blind  # type: ignore[method-assign]
        elif choose is not None:
            if self._cut is None:
                self._cut = choose(*self._pool())
            self._pass_on(site, self._cut)
            if choose is closed_cut:
                for sender, last in self._cut.items():
                    inbox.discard(sender, last)
        self._collect(site, event)

    def _part_at_last(self, survivors: list[int]) -> None:
        """Pass on after all, too late, the messages of crashed members that some survivor has."""
        cut = closed_cut(*self._pool())
        for site in survivors:
            self._pass_on(site, cut)
            self._collect(site, Install(site))
            while self._released[site]:
                self.take(site)

    def _pool(self) -> tuple[dict[int, int], dict[tuple[int, int], Deps]]:
        """Return the last message of each crashed member that a survivor has released, and the causal pasts of those that they hold."""
        survivors = [self._causal(site) for site in range(len(self.stacks)) if site not in self.gone]
        released: dict[int, int] = {}
        held: dict[tuple[int, int], Deps] = {}
        for sender in self.gone:
            deltas = {
                p.seq: p.stamp.delta
                for s in survivors
                for p in s.inbox.items()
                if p.src == sender and p.stamp
            }
            first = max(survivors, key=lambda each: each.inbox.vector[sender])
            released[sender] = number = first.inbox.vector[sender]
            past = list(first.past(sender))
            while (delta := deltas.get(number + 1)) is not None:
                number += 1
                for k, count in delta:
                    past[k] = count
                past[sender] = number - 1
                held[sender, number] = tuple(past)
        return released, held

    def _pass_on(self, site: int, cut: dict[int, int]) -> None:
        """Give a site the messages of crashed members that it lacks, up to the cut, as a survivor that has them would."""
        released = self._causal(site).inbox.vector
        for sender, last in cut.items():
            for message in self.sent[sender][released[sender] : last]:
                copies = self._copies.get((message, site)) or next(
                    copies for (number, _), copies in self._copies.items() if number == message
                )
                self.stacks[site].receive([(data, None) for data in copies], now=self._tick())

    def _causal(self, site: int) -> Causal:
        found = next((layer for layer in self.stacks[site].layers if isinstance(layer, Causal)), None)
        if found is None:
            raise UsageError(
                "only under causal order does a board know what to do about a crash: use order='causal', or Sim"
            )
        return found

    def install(self, site: int) -> None:
        """Let a member install the view with the newcomer, or the one without the crashed members; or hear of the
        newcomer again, which changes nothing."""
        if self.gone and site not in self._parted:
            self._part(site)
            return
        entering = self._entering
        if entering is None:
            raise UsageError(f"{letter(site)} has no view to install: nobody joins")
        event = Install(site)
        self.played.append(event)
        stack = self.stacks[site]
        now = self._tick()
        if stack.view.number < entering.view.number:
            stack.views.extend(entering.view, now=now)
        else:
            for extend in stack.chain.hooks("extend"):
                extend(entering.view)
        if site not in entering.bases:
            entering.bases[site] = stack.views.bases()
            self.oracle.admit(len(entering.view) - 1)
            self.oracle.let_in(site)
            founders = len(entering.view) - 1
            if self._entry == "copy late" and site == founders - 1:
                self._start(entering, {"seq": list(self._causal(site).inbox.vector)})
            if len(entering.bases) == founders:
                self.oracle.join(founders)
                if self._is_pending():
                    seqs = [entering.bases[member]["seq"] for member in range(founders)]
                    self._start(entering, {"seq": [*seqs, 0]})
        self._collect(site, event)

    def gate(self, site: int, is_open: bool) -> None:
        """Open or close the gate of a site. From then on flags of concurrency are not judged: they are computed from stamps,
        which may be incomplete then."""
        event = Gate(site, is_open)
        self.played.append(event)
        stack = self.stacks[site]
        self._flags = False
        (self._open.add if is_open else self._open.discard)(site)
        stack.gate("open" if is_open else "closed", now=self._tick())
        self._collect(site, event)

    def _is_pending(self) -> bool:
        """Whether the newcomer waits for its bases."""
        return self._entering is not None and len(self.stacks) < len(self._entering.view)

    def _start(self, entering: JoiningSite, bases: dict[str, list[int]]) -> None:
        view = entering.view
        stack = self._stack(len(view) - 1, view)
        stack.sizes[view.number - 1] = len(view) - 1
        stack.begin(bases)
        self.stacks.append(stack)
        self._view = view
        if entering.early:
            stack.receive([(data, None) for data in entering.early], now=self._tick())
            self._collect(stack.me, Install(stack.me))

    def wait(self, site: int) -> None:
        """Let the timer of a site fire; if none is set, nothing happens."""
        wake = self.wakes[site]
        if wake is None:
            return
        event = Wait(site)
        self.played.append(event)
        self._time = max(self._tick(), wake)
        self.stacks[site].tick(self._time)
        self._collect(site, event)

    def take(self, site: int) -> int:
        """Let the application take the oldest released message, and return its number."""
        batch = self._released[site].popleft()
        message = number_of(batch.payloads[0])
        event = Take(site, message)
        self.played.append(event)
        self._tick()
        self._take(site, batch, message)
        self._watch(event)
        return message

    def held(self, site: int) -> list[int]:
        """The messages that a site holds; only under causal order."""
        return [self.message(packet.src, packet.seq) for packet in self._causal(site).inbox.items()]

    def waiting(self, site: int) -> int:
        """The number of messages that are released at a site and not yet taken."""
        return len(self._released[site])

    def released(self, site: int) -> list[int]:
        """Those messages, oldest first."""
        return [number_of(batch.payloads[0]) for batch in self._released[site]]

    def finish(self) -> Oracle:
        """Let all remaining copies arrive and be taken, and timers fire; return the oracle with its verdict."""
        self._explicit.clear()
        survivors = [site for site in range(len(self.stacks)) if site not in self.gone]
        for site in survivors if self.gone else ():
            if site not in self._parted:
                self.install(site)
        for _ in range(WAITS_MAX):
            while self.under_way:
                self.arrive(*self.under_way[0])
            for site in range(len(self.stacks)):
                while self._released[site]:
                    self.take(site)
            waiting = [site for site, wake in enumerate(self.wakes) if wake is not None]
            if not waiting:
                break
            for site in waiting:
                self.wait(site)
        if self._parting == "forgotten" and self.gone:
            self._part_at_last(survivors)
        self.oracle.finish()
        for site in survivors if self.gone else ():
            for message in self.held(site):
                self.oracle.blame("complete", f"site {site} holds message {message} for ever")
        return self.oracle

    # Schedules

    def play(self, schedule: Schedule) -> Oracle:
        """Play a schedule to its end. Arrivals and takes that are impossible, as they may be in a shrunk schedule, are left out."""
        self._explicit = {(e.site, e.message) for e in schedule.events if isinstance(e, Take)}
        for event in schedule.events:
            match event:
                case Send(site, message, dst):
                    self.send(site, message, dst)
                case Arrive(message, site, duplicate):
                    if (message, site) in (self._copies if duplicate else self.under_way):
                        self.arrive(message, site, duplicate=duplicate)
                case Wait(site):
                    self.wait(site)
                case Join(site):
                    self.join(site)
                case Leave(site):
                    self.leave(site)
                case Install(site):
                    self.install(site)
                case Gate(site, is_open):
                    self.gate(site, is_open)
                case Take(site, message):
                    self._explicit.discard((site, message))
                    queue = self._released[site]
                    while any(number_of(batch.payloads[0]) == message for batch in queue):
                        self.take(site)
                    self._take_free(site)
        return self.finish()

    def copies(self, message: int) -> list[tuple[int, Packet]]:
        """Return the packets that carried a message, each with the member it was sent to."""
        return [
            (member, self._decoded(data))
            for (number, member), copies in self._copies.items()
            if number == message
            for data in copies
        ]

    def _collect(self, site: int, event: Event) -> None:
        """Carry out all that a stack requests after a move."""
        ready = self.stacks[site].ready()
        self.wakes[site] = ready.wake
        spoken: list[tuple[int, bytes]] = []
        for address, datagram in ready.send:
            data = joined(datagram)
            members = (address,) if isinstance(address, int) else self.stacks[site].others
            if kind_of(data, self.stacks[site].group) != DATA:
                spoken += [(member, data) for member in members]
                continue
            message = event.message if isinstance(event, Send) else self._message_in(data)
            for member in members:
                if member in self.gone:
                    continue
                copies = self._copies.setdefault((message, member), [])
                if not copies:
                    self.under_way.append((message, member))
                copies.append(data)
        batches = [item for item in ready.deliver if isinstance(item, Batch)]
        self.in_queues += len(batches)
        self._released[site].extend(batches)
        if site in self._open:
            self.loose.update((site, number_of(batch.payloads[0])) for batch in batches)
        self._watch(event)
        if not self._queues:
            self._take_free(site)
        # Packets of the layers themselves are not moves of the schedule: they arrive at once.
        for member, data in spoken:
            if member in self.gone:
                continue
            self.stacks[member].receive([(data, None)], now=self._time)
            self._collect(member, event)

    def _message_in(self, data: Buffer) -> int:
        """Return the message in a packet that left later than its send: here a site's n-th packet is its n-th send."""
        packet = self._decoded(data)
        return self.message(packet.src, packet.seq)

    def message(self, src: int, seq: int) -> int:
        """Return the message that a packet carries: as recorded when it left, or else the n-th send of its sender."""
        for (message, _), copies in self._copies.items():
            if any((packet.src, packet.seq) == (src, seq) for packet in map(self._decoded, copies)):
                return message
        return self.sent[src][seq - 1]

    def _decoded(self, data: Buffer) -> Packet:
        nobody = len(self.sent)
        packet = decode(data, self.stacks[0].group, {view_of(data): nobody}, me=nobody)
        assert packet is not None
        return packet

    def _take_free(self, site: int) -> None:
        """Take the released messages, up to the first one that a later move takes."""
        queue = self._released[site]
        while queue:
            message = number_of(queue[0].payloads[0])
            if (site, message) in self._explicit:
                break
            self._take(site, queue.popleft(), message)
            self._watch(Take(site, message))

    def _take(self, site: int, batch: Batch, message: int) -> None:
        self.in_queues -= 1
        self.stacks[site].taken([batch.packet], now=self._time)
        concurrent = self.oracle.take(site, message, loose=(site, message) in self.loose)
        if self._flags and concurrent != batch.concurrent:
            self.oracle.blame("flags", f"site {site} saw message {message} as {batch.concurrent=}")
        self.taken[site].append(message)

    def _tick(self) -> float:
        self._time += 1.0
        return self._time


def sees_concurrency(stack: Stack) -> bool:
    """Whether the stack flags messages that are concurrent with known ones."""
    return any(hasattr(layer, "frontier") for layer in stack.layers)


def replay(text: str, order: str = "causal", *, sites: int = 0, options: Options | None = None) -> Board:
    """Play a schedule under an order, and return the board, which shows what was taken where."""
    schedule = Schedule.parse(text)
    board = Board(max(sites, schedule.sites), lossless(order, options))
    board.play(schedule)
    return board


def wander(
    rng: Rng, sites: int, messages: int, build: Build, *, duplicates: float = 0.1, subsets: float = 0.0
) -> Board:
    """Play one random schedule: sends, arrivals, duplicates and takes in any order. A share `subsets` of the
    messages goes to a subset of the sites, which may include the sender."""
    board = Board(sites, build, queues=True)
    left = messages
    random = rng.random
    while left or board.under_way or board.in_queues:
        roll = random()
        if left and roll < 0.3:
            site = int(random() * sites)
            some = bool(subsets) and random() < subsets
            board.send(site, messages - left + 1, 1 + int(random() * ((1 << sites) - 1)) if some else None)
            left -= 1
        elif board.under_way and roll < 0.65:
            message, site = board.under_way[int(random() * len(board.under_way))]
            board.arrive(message, site)
            if random() < duplicates:
                board.arrive(message, site, duplicate=True)
        else:
            site = int(random() * sites)
            if board.waiting(site):
                board.take(site)
            elif board.wakes[site] is not None:
                board.wait(site)
    board.finish()
    return board
