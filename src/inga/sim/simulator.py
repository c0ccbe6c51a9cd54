"""Groups in virtual time: whole recipes over links that lose, duplicate, delay and reorder datagrams.

A run is a heap of events; each event is one turn of one member. All randomness comes from one seed and is drawn
in the order of events, so a run is the same on every machine. Applications read their queue after a random
pause, as real ones do.

    sim = Sim("alice", "bob", "cathy", order="causal", seed=1)
    sim.link("alice", "cathy").delay = 20
    sim["bob"].react = lambda d: b"yes" if bytes(d.data) == b"lunch?" else None
    sim["alice"].send(b"lunch?")
    sim.run()
    assert sim["cathy"].texts == ["lunch?", "yes"]
    sim.check()

Its parts:

    timeline  virtual time, the heap of events, the random generator
    network   links: their faults and their traffic
    sites     members: the stack and the application of each, and their actions
    ledger    what was promised, sent and taken, for the oracle
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from heapq import heappop
from typing import Any, Protocol

from inga.layers.shape import Faults
from inga.model.delivery import Batch, Delivery
from inga.model.errors import IngaError, UsageError
from inga.model.html import html_table
from inga.model.packet import Packet
from inga.model.steps import Book, Trace
from inga.model.text import suggest
from inga.model.view import Member, View
from inga.recipes import Options, find, refuse_late
from inga.session.history import KIND
from inga.session.newcomer import Newcomer
from inga.sim.board import Board, lossless, sees_concurrency
from inga.sim.ledger import Ledger
from inga.sim.network import Link, Network
from inga.sim.recorder import RecordingTrace
from inga.sim.schedule import Schedule
from inga.sim.site import PAUSE_MAX, Site
from inga.sim.states import SiteGives, SiteStates, SiteTakes
from inga.sim.timeline import Timeline
from inga.stack.guard import Guard
from inga.stack.layer import Layer
from inga.stack.places import Places
from inga.stack.stack import Stack
from inga.trial.oracle import Oracle
from inga.trial.result import packets_sent, recovered
from inga.trial.workload import Workload

DELAY = Faults(delay_min=0.001, delay_max=0.01)
"""The default links are those of a local network: they delay a datagram by 1 to 10 ms, and have no other faults."""

TEXTS_SHOWN = 8
"""The most messages of each member that a notebook shows."""

EVENTS_MAX = 200_000
"""A run is given up as `Unquiet` after this many events, or after a thousand for each expected delivery if that is more."""

INCARNATIONS = 1000
"""The number of incarnations reserved for each site; those of the next site of the same name follow."""

LateTrace = Callable[[int, str, int, Newcomer], Trace]
"""Makes the trace of a newcomer from its process number, its name, how many members the group has ever had, and the newcomer itself."""


class Books(Protocol):
    """The traces of a whole run."""

    def book(self, stack: Stack) -> Book:
        """Return the traces of one member."""
        ...


class Onlooker(Protocol):
    """Judges the applications of a run. Each finding is a pair: its kind, and a description."""

    def waits(self) -> Iterable[tuple[str, str]]:
        """Return a finding for each application that is waiting for something now."""
        ...

    def faults(self) -> Iterable[tuple[str, str]]:
        """Return what is wrong once the group is at rest."""
        ...


class Unquiet(AssertionError):
    """Raised when a run does not end, because members keep sending control messages."""


class Sim:
    """A group in virtual time."""

    def __init__(
        self,
        *names: str,
        order: str = "causal",
        deliver: str | None = None,
        seed: int = 0,
        faults: Faults = DELAY,
        options: Options | None = None,
        objects: Mapping[str, Any] | None = None,
        build: Callable[[Options], list[Layer]] | None = None,
        traces: Sequence[Trace] | None = None,
        recording: Books | None = None,
        datagram_max: int = 60 * 1024,
        record: bool = True,
        like: "Sim | None" = None,
        give: SiteGives | None = None,
        take: SiteTakes | None = None,
        history: int | float | None = None,
        gather: bool = False,
        guard: Callable[[str], Guard] | None = None,
        seeds: Sequence[str] | None = None,
    ) -> None:
        """`deliver` is the level at which messages are delivered. `objects` are the objects of the group, as in
        `inga.join`. `build` replaces the recipe's layers (by a mutation, say). Rows go to `traces`, one for each member; or to
        a `recording`, which also has the traces of members that join or return later, and of copies of objects. `record`
        keeps the run as a schedule. `like` replays the sends and arrivals of another run, at once, under this order
        and over links that lose nothing. `give` and `take` produce and accept the state of an application for a newcomer;
        `history` replays the last messages to newcomers instead. `gather`: no members are listed; they `join` and found the
        group themselves. With `seeds` there is no multicast: each member is reached at an address, which is its
        name, and the addresses in `seeds` are known to all. `guard` makes the guard of the member of a given name, which
        seals and opens its datagrams."""
        if gather and (names or record):
            raise UsageError("who gathers is not named beforehand, nor is such a run recorded: record=False")
        if seeds is not None and not gather:
            raise UsageError("seeds are for those who gather: pass gather=True, too")
        if not names and not gather:
            raise UsageError("a group needs at least one member: Sim('alice', 'bob')")
        if len(set(names)) < len(names):
            raise UsageError(f"members have names of their own, not {', '.join(names)}")
        recipe = find(order)
        options = options or Options()
        options = replace(options, deliver=recipe.level_of(deliver or options.deliver))
        if objects:
            options = replace(options, objects=objects)
        if gather:
            options = replace(options, open=True)
        kind = "state" if history is None else KIND
        keeps = history is not None
        gives, wants = kind * bool(give or keeps), kind * bool(take or keeps)
        options = replace(options, gives=gives, wants=wants)
        self._states = (give, take, history) if gives or wants else None
        self.order = recipe.name
        self.seed = seed
        self.watched = False  # keep receipts, and the bytes in flight to each member
        self.outcomes: list[str | None] = []  # of requested changes of order: None, or why they failed
        self.asked: list[Site] = []  # sites that requested a change which has not ended
        self.gave_up: list[Site] = []  # sites that left although other members lacked messages
        self.onlookers: list[Onlooker] = []  # judges of applications
        self.passed: Callable[[Site, View, str], None] | None = (
            None  # called when an application passes a view, with how it did
        )
        self.may_fail: Callable[[Site, IngaError], bool] | None = None  # whether an error was to be expected
        self._recipe = recipe  # of the first view
        self._options = options
        self._datagram_max = datagram_max
        self._late_trace: LateTrace | None = None
        self._recording = recording
        self._finished = False
        self._names = {name: index for index, name in enumerate(names)}
        self.timeline = Timeline(seed)
        self.rng = self.timeline.rng
        self.sites = [Site(self, index, name) for index, name in enumerate(names)]
        self.network = Network(self.timeline, self.sites, faults)
        self.ledger = Ledger(self.sites, recipe, options, record=record)
        self._is_traced = traces is not None or recording is not None
        view = View.of(*names, recipe=recipe.name, traced=self._is_traced)
        self._founds = recipe.name if gather else None
        self._guard = guard
        self._seeds = seeds
        for site in self.sites:
            trace = None if traces is None else traces[site.index]
            if self.ledger.recorder is not None:
                trace = RecordingTrace(self.ledger.recorder, site.index, trace)
            sealed_by = None if guard is None else guard(site.name)
            self._start(site, (build or recipe.build)(options), site.index, view, trace, guard=sealed_by)
            self.ledger.install(site, view)
        if options.detect is not None or guard is not None:
            for site in self.sites:
                site.pump()  # failure detection and key agreement begin at the start
        # Flags of concurrency are exact, unless the group ignores them or coarse bundles may hide concurrency.
        wanted = options.on_concurrent != "ignore" and not options.coarse
        self.ledger.judges_flags = wanted and not gather and sees_concurrency(self.sites[0].stack)
        if like is not None:
            self._play(like)

    # Members, results and settings

    def __getitem__(self, name: str) -> Site:
        """`sim["alice"]`: the member of that name."""
        try:
            return self.sites[self._names[name]]
        except KeyError:
            raise UsageError(f"no member {name!r}{suggest(name, self._names)}") from None

    def link(self, source: str, target: str) -> Link:
        """The way from one member to another."""
        return self.network.links[self[source].index][self[target].index]

    def mask(self, to: str | Sequence[str] | None) -> int | None:
        """Names as a bit set."""
        if to is None:
            return None
        names = [to] if isinstance(to, str) else list(to)
        if not names:
            raise UsageError(
                "a message needs at least one destination: to=[] names nobody; leave `to` out for everybody"
            )
        return sum({1 << self[name].index for name in names})

    @property
    def gathers(self) -> bool:
        """Whether members found the group themselves."""
        return self._founds is not None

    @property
    def has_addresses(self) -> bool:
        """Whether each member has to be reached at an address of its own."""
        return self._seeds is not None

    @property
    def now(self) -> float:
        """Seconds of virtual time."""
        return self.timeline.now

    @property
    def bytes(self) -> int:
        """Bytes of all datagrams that members sent; a datagram to everybody counts once."""
        return self.network.bytes

    @property
    def oracle(self) -> Oracle:
        """The judge of this run."""
        return self.ledger.oracle

    @property
    def guarantees(self) -> tuple[str, ...]:
        """The guarantees that hold for the whole run."""
        return self.ledger.guarantees

    @property
    def schedule(self) -> Schedule:
        """The run so far, message by message: sends, arrivals and takes."""
        if self.ledger.recorder is None:
            raise UsageError("the run was made with record=False, so it has no schedule: leave that out")
        return Schedule(tuple(self.ledger.recorder.events))

    @property
    def pdus(self) -> dict[str, int]:
        """Packets sent, by kind; a packet to everybody counts once."""
        return packets_sent([site.stack.counts for site in self.sites])

    @property
    def recovery(self) -> dict[str, int]:
        """Counts of lost copies and of what members did to recover them."""
        return recovered([{"lost": self.network.lost}, *(site.stack.counts for site in self.sites)])

    def deliveries(self) -> list[dict[str, Any]]:
        """What applications took, one row each, in the order of each member: for `pandas.DataFrame`, `pyarrow.Table.from_pylist`
        or `spark.createDataFrame`."""
        return [
            {
                "member": site.name,
                "n": n,
                "sender": delivery.sender,
                "view": delivery.batch.packet.view,
                "seq": delivery.batch.packet.seq,
                "data": bytes(delivery.data),
            }
            for site in self.sites
            for n, delivery in enumerate(site.taken, 1)
        ]

    def _repr_html_(self) -> str:
        rows = [
            (
                site.name,
                "member" if site.is_member else "crashed" if site.has_crashed else "left",
                site.stats().sent if site.is_member else "",
                len(site.taken),
                ", ".join(site.texts[:TEXTS_SHOWN]) + (", …" if len(site.taken) > TEXTS_SHOWN else ""),
            )
            for site in self.sites
        ]
        broken = sum(self.oracle.broken[name] for name in self.guarantees)
        verdict = f"{broken:,} times broken" if broken else "kept so far"
        caption = f"{self.order}, seed {self.seed}, {self.now:.3f} s: promises {verdict}"
        return html_table(("name", "is", "sent", "taken", "what it took"), rows, caption)

    # Scheduling

    def load(self, workload: Workload) -> None:
        """Give every member its sends, spread over virtual time."""
        for site in self.sites:
            site.load(workload, 0.0)

    def at(self, time: float, site: Site, act: Callable[[], Any]) -> None:
        """Call `act` at that time."""
        self.timeline.push(time, Site.act, site, act)

    def calm(self) -> None:
        """End all faults: from now on no datagram is lost, duplicated or reordered, and applications read without long pauses."""
        for site in self.sites:
            site.pause_max = PAUSE_MAX
        self.network.calm()

    def join(self, name: str, at: float | None = None, workload: Workload | None = None) -> Site:
        """Add a member that joins now or at that time, and from then on has a workload of its own. Its name is new, or that
        of a member that has crashed or left by then."""
        if self.ledger.recorder is not None:
            raise UsageError("a run with newcomers cannot be recorded: record=False")
        refuse_late(find(self.order), self._options.detect)
        namesakes = sum(site.name == name for site in self.sites)
        self._names[name] = index = len(self.sites)
        at = self.now if at is None else at
        address = name if self.has_addresses else ""
        newcomer = Newcomer(
            "",
            Member(name, namesakes * INCARNATIONS + 1, address),
            now=at,
            wants=self._options.wants,
            places=Places(self._seeds or (), address),
            founds=self._founds,
            traced=self._is_traced,
            guard=None if self._guard is None else self._guard(name),
        )
        site = Site(self, index, name, newcomer)
        self.sites.append(site)
        self.network.grow()
        site.wake = site.starts_at = at
        self.timeline.push(at, Site.knock, site, at)
        if workload is not None:
            site.load(workload, at)
        return site

    def trace_newcomers(self, trace: LateTrace) -> None:
        """Set the function that makes the trace of a newcomer once its process number is known."""
        self._late_trace = trace

    # Running

    def run(self, until: float | None = None) -> None:
        """Run until no events are left, or until that time."""
        timeline = self.timeline
        heap = timeline.heap
        events = 0
        while heap and (until is None or heap[0][0] <= until):
            timeline.now, _, act, site, argument = heappop(heap)
            events += 1
            if events > EVENTS_MAX and events > 1000 * self.oracle.expected:
                raise Unquiet(f"not quiet after {events} events, at {self.now:.3f} s of virtual time")
            if site.has_left and act is not Site.act:
                continue
            if site.awake_at > timeline.now:
                timeline.push(site.awake_at, act, site, argument)
                continue
            act(site, argument)
        if until is not None and timeline.now < until:
            timeline.now = until

    def check(self) -> None:
        """Raise AssertionError unless the run kept every promise of its order."""
        assert not self.finish().broken, f"seed {self.seed}: " + "; ".join(self.oracle.witnesses)

    def finish(self) -> Oracle:
        """End the run and return the oracle with its verdict."""
        if not self._finished:
            self._finished = True
            self.oracle.finish()
        return self.oracle

    # Membership

    def _start(
        self,
        site: Site,
        layers: list[Layer],
        me: int,
        view: View,
        trace: Trace | None,
        cuts: Sequence[int] = (),
        guard: Guard | None = None,
        places: Places | None = None,
    ) -> None:
        site.stack = Stack(
            layers,
            me,
            view,
            rng=self.rng,
            trace=trace,
            datagram_max=self._datagram_max,
            now=self.now,
            guard=guard,
            places=places,
        )
        site.view = view
        site.is_open = False
        if self._states is not None:
            site.states = SiteStates(site, *self._states)
            site.queue.append((site.number, view))
        if self._recording is not None:
            site.stack.record(self._recording.book(site.stack))
        site.stack.begin(cuts=cuts)

    def let_in(self, site: Site, newcomer: Newcomer) -> None:
        """Make a newcomer a member, in the view that admits it."""
        view = newcomer.view
        assert view is not None
        trace = None
        if self._late_trace is not None:
            trace = self._late_trace(view.processes[newcomer.me], site.name, view.total, newcomer)
        site.newcomer = site.wake = None
        recipe = find(view.recipe)
        layers = recipe.build(recipe.keep(self._options, self._recipe.name))
        self._start(
            site,
            layers,
            newcomer.me,
            view,
            trace,
            newcomer.cuts,
            guard=newcomer.guard,
            places=newcomer.places,
        )
        self.ledger.install(site, view)
        site.stack.receive(newcomer.backlog, now=self.now)
        site.pump()

    def site_of(self, person: Member) -> Site:
        """Return the site of a member. A member that crashes and returns is another site; one that was excluded and rejoins by
        itself is another incarnation at the same site."""
        namesakes = [site for site in self.sites if site.name == person.name]
        return namesakes[person.incarnation // INCARNATIONS]

    def at_address(self, address: str) -> Site | None:
        """Return the site that is reached at an address: the latest site of that name."""
        index = self._names.get(address)
        return None if index is None else self.sites[index]

    def change_ended(self, site: Site, why: str | None) -> None:
        """Note that the change of order which a site requested has ended: `why` is None if it succeeded, else the reason."""
        if site in self.asked:
            self.asked.remove(site)
        self.outcomes.append(why)

    # The same arrivals, another order

    def _play(self, like: "Sim") -> None:
        """Replay another run's messages on a board, and take over the result as if it had run here."""
        board = Board(len(self.sites), lossless(self.order), flags=self.ledger.judges_flags)
        board.oracle.promises[0] = self.guarantees
        self.ledger.oracle = board.play(like.schedule)
        for site, messages in zip(self.sites, board.taken, strict=True):
            for message in messages:
                sender, data = like.ledger.sends[message]
                site.taken.append(_replayed(self.sites[sender].name, data))


def _replayed(sender: str, data: bytes) -> Delivery:
    packet = Packet(0, 1)
    packet.payloads = [data]
    return Delivery(Batch(sender, packet), 0)
