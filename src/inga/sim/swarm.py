"""Plans of the swarm. A seed determines a plan: a small group, its settings, and everything that happens to it.

Bugs hide where features meet, and a run that has all of them at once hides some behind others. So each seed draws a
random *set* of features, each in or out, and then the actions that these allow. A plan is data: it can be shrunk by leaving
things out, and printed as one line of text from which it can be played again.

From Groce et al., "Swarm testing", ISSTA 2012.
"""

from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from json import dumps, loads
from random import Random
from typing import Any, NamedTuple

from inga.layers.shape import Faults
from inga.model.errors import UsageError
from inga.model.packet import HEADER_MAX
from inga.recipes import Options, find
from inga.session.pieces import PIECES
from inga.session.pressure import QUEUE_MIN
from inga.session.quorum import PARTITIONS
from inga.session.slow import PATIENCE
from inga.sim.belongings import Belongings, Reluctance, StatePlan
from inga.sim.forger import NO_SECRET, SECRET, Forger, guards
from inga.sim.simulator import Sim
from inga.sim.site import Site
from inga.sim.tills import FILL, KINDS, Tills
from inga.trace.memory import MemoryTrace
from inga.trial.people import member_names
from inga.trial.workload import HEADER

CHANGING = ("none", "fifo", "vector", "relay", "co", "sco", "object", "total")
"""Orders that a group can change between, and that members join, leave and fail in."""

CARRIED = ("remiop", "remiop+vector", "remiop+co", "remiop+total", "remiop+object")
"""Orders over ReMIOP. With failure detection, groups can do the same with these; without it, members can only leave."""

FIXED = ("miop+acks",)
"""Orders with which members cannot join and the order cannot change."""

ORDERS = (*CHANGING, *CHANGING, *CHANGING, *CARRIED, *FIXED)
"""The orders to draw from. Those that allow more are drawn more often."""

FEATURES = tuple(
    "subset self burst sizes join leave use gate matrix echo level slow_reader stop_reading small_queue "
    "small_window small_datagram tuned loss duplicate reorder slow_links pause traced greet coarse answers crowd flood "
    "crash return rejoin part partition slow".split()
)

BUSY = (0.05, 0.2, 1.0)
"""Seconds of virtual time within which all actions happen: nearly at once, or one after another."""

FAULTS_END = 2.0
"""Seconds after which the network becomes calm, and applications read without long pauses."""

GATHERS = 0.2
"""The share of plans in which no members are listed and the group founds itself, of those in which members can join."""

SEVERED = 0.2
"""The share of plans in which nothing passes between two members, of those with failure detection."""

SECURED = 0.2
"""The share of plans with a secured group, of those with a small group that members can join."""

FOLLOWED = 0.4
"""The share of plans in which further members crash soon afterwards, of those in which a member crashes."""

SHARED = 0.2
"""The share of plans whose applications give newcomers a state or the last messages, of those with a small group that members can
join."""

RELUCTANT = 0.4
"""The share of plans in which some applications raise or pause while their states are drawn, of those with a state."""

HOSTING = ("object", "total", "remiop+object", "remiop+total")
"""Orders that have objects."""

HOSTED = 0.3
"""The share of plans in which members call objects, of those with such an order."""

TOGETHER = 0.5
"""The share of sends that are one call, of those with several messages."""

SENDS = ("send", "send_first", "send_many", "answer")
"""Actions by which an application sends messages."""

GOING = ("crash", "leave", "pause")
"""Actions after which a member is not present, for a while or for ever."""

CHANGES_WITHIN = 0.1
"""Seconds that a view change may take."""

GATHER_MAX = 8
"""The most members of a group that gathers: with more, each run would take minutes, as all members send heartbeats all the time."""

GATHERING = 1.0
"""Seconds by which faults end later in such plans: by then at the latest there is a group to which things can happen."""

FLOOD = 2.5
"""Seconds for which a member does not read in a flood, when all members send as much as they can."""

FLOODS = (300, None, 60)
"""A send in a flood, of which each member makes several: size, to all, number of messages."""

GIVES_UP = 0.3
"""Seconds after which a send that waits for a message to answer leaves without one."""


class Action(NamedTuple):
    """Something that a member, its application or its network does. `argument` depends on what that is:
    for sends (size, destinations as indices or None, how many), for `use` the order, for `gate` its state, for `call` (kind, object,
    other object, amount), else seconds."""

    at: float
    who: int
    do: str
    argument: Any = None


@dataclass(frozen=True, slots=True)
class Plan:
    """One run, complete. Times in seconds, sizes in bytes."""

    order: str
    members: int  # at the start
    seed: int = 0  # of the simulator: for the network and for randomness in the protocols
    actions: tuple[Action, ...] = ()
    deliver: str | None = None
    echo: bool = False
    matrix: bool = False
    coarse: bool = False
    greet: bool = False
    traced: bool = False
    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    delay: float = 0.01  # the longest of a link
    datagram: int = 60 * 1024
    window: int = 1 << 20
    queue: int = 16 << 20
    option: tuple[tuple[str, Any], ...] = ()  # options of the order's own
    detect: float | None = None  # seconds of silence after which a member counts as failed; None: never
    rejoin: bool = False  # excluded members rejoin by themselves
    partition: str | None = None  # which parts of a group that is cut go on
    slow: str = "wait"  # what becomes of members that hold up the others
    patience: float = PATIENCE  # after so many seconds
    gather: bool = (
        False  # no members are listed: they start, at once unless they join later, and found the group
    )
    severed: tuple[
        tuple[int, int], ...
    ] = ()  # links, from one member to another, over which nothing ever passes
    seeds: int = 0  # if not 0: no multicast, and the addresses of the first so many members are known
    secured: bool = False  # members share a secret
    forged: int = (
        0  # datagrams of an attacker that reads everything and has only the keys of members that are gone
    )
    state: tuple[int, int, int] | None = None  # the fields of `StatePlan`
    reluctant: tuple[
        tuple[int, str, int], ...
    ] = ()  # members whose applications raise or pause, with the fields of `Reluctance`
    objects: tuple[tuple[int, ...], ...] = ()  # for each tally, the members that have a copy; empty: all have
    history: int | float | None = None  # how many last messages a newcomer gets, or of how many seconds

    def __str__(self) -> str:
        """Return one line from which `parse` makes the same plan: the fields that differ from their defaults, as JSON."""
        told = {field.name: getattr(self, field.name) for field in fields(self)}
        plain = {field.name: field.default for field in fields(self)}
        return dumps({name: value for name, value in told.items() if value != plain[name]})

    @classmethod
    def parse(cls, text: str) -> "Plan":
        try:
            told = {name: _frozen(value) for name, value in dict(loads(text)).items()}
            told["actions"] = tuple(Action(*each) for each in told.get("actions", ()))
            return cls(**told)
        except (ValueError, TypeError) as error:
            raise UsageError(f"this is no plan that could be played: {error}") from None

    @property
    def newcomers(self) -> list[int]:
        """The members that join later, as indices."""
        return sorted({action.who for action in self.actions if action.do == "join"})

    @property
    def starts(self) -> dict[int, float]:
        """By index, the times at which processes start that have to find the group."""
        starts = dict.fromkeys(range(self.members), 0.0) if self.gather else {}
        joins = [action for action in self.actions if action.do == "join"]
        return starts | {each.who: each.at for each in joins if self.gather or each.who >= self.members}

    @property
    def faults_end(self) -> float:
        """The time at which the network becomes calm, and applications read without long pauses."""
        return FAULTS_END + GATHERING * self.gather

    def _has(self, do: str) -> bool:
        return any(action.do == do for action in self.actions)

    def options(self) -> Options:
        return Options(
            echo=self.echo or None,
            coarse=self.coarse,
            matrix=self.matrix,
            deliver=self.deliver,
            greet=self.greet
            or self.gather
            or self._has("leave"),  # otherwise a member that was never met could leave unnoticed
            queue_max=self.queue,
            protocol=dict(self.option),
            detect=self.detect,
            rejoin=self.rejoin,
            partition=self.partition,
            slow=self.slow,
            patience=self.patience,
            flow={"window": self.window},
        )

    def sim(self) -> Sim:
        """Return the group, with all actions of the plan scheduled."""
        faults = Faults(self.loss, self.duplicate, self.reorder, min(0.001, self.delay), self.delay)
        people = () if self.gather else member_names(self.members)
        traces = [MemoryTrace(me, len(people)) for me in range(len(people))] if self.traced else None
        belongings = None
        if self.state is not None or self.history is not None:
            names = member_names(
                max([self.members - 1, *self.newcomers, *(each[0] for each in self.reluctant)]) + 1
            )
            reluctant = {names[who]: Reluctance(do, chunks) for who, do, chunks in self.reluctant}
            state = StatePlan(*self.state) if self.state is not None else None
            belongings = Belongings(state, self.history, reluctant)
        gives = belongings is not None and self.history is None
        tills = Tills(self.objects, is_lossy=self.partition == "all") if self.objects else None
        sim = Sim(
            *people,
            order=self.order,
            seed=self.seed,
            faults=faults,
            options=self.options(),
            datagram_max=self.datagram,
            record=False,
            traces=traces,
            gather=self.gather,
            seeds=member_names(self.seeds) if self.gather and self.seeds else None,
            guard=guards(SECRET, self.seed) if self.secured else None,
            give=belongings.give if belongings is not None and gives else None,
            take=belongings.take if belongings is not None and gives else None,
            history=self.history,
            objects=tills.declared if tills is not None else None,
        )
        sim.watched = True
        if tills is not None:
            tills.watch(sim)
        if belongings is not None:
            belongings.watch(sim)
        if self.traced:
            sim.trace_newcomers(lambda index, name, n, newcomer: MemoryTrace(index, n))
        _Play(sim, self, tills).begin()
        if self.forged:
            Forger(sim, self.seed, self.forged, self.faults_end, guards(NO_SECRET, self.seed))
        return sim


def _frozen(value: Any) -> Any:
    """Convert lists, as JSON has them, to tuples, as a plan has them."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


class _Play:
    """Carries out the actions of a plan, each at its time if it makes sense then."""

    def __init__(self, sim: Sim, plan: Plan, tills: Tills | None) -> None:
        self._sim = sim
        self._plan = plan
        self._tills = tills
        last = max([plan.members - 1, *plan.newcomers])
        self._names = member_names(last + 1)
        self._sites = dict(enumerate(sim.sites))
        self._relays = plan.order == "relay" or any(action.argument == "relay" for action in plan.actions)

    def begin(self) -> None:
        sim = self._sim
        for who, at in self._plan.starts.items():
            self._sites[who] = sim.join(self._names[who], at)
        for source, target in self._plan.severed:
            if source in self._sites and target in self._sites:
                sim.network.sever(self._sites[source], self._sites[target])
        for action in self._plan.actions:
            if action.do != "join" and action.who in self._sites:
                site = self._sites[action.who]
                act = self._return if action.do == "return" else self._do
                sim.at(action.at, site, partial(act, action, site))

    def _return(self, action: Action, site: Site) -> None:
        """Let a crashed member return. The plan's remaining actions of its earlier process are not carried out."""
        if site.has_crashed and self._sites[action.who] is site:
            self._sites[action.who] = self._sim.join(site.name)

    def _do(self, action: Action, site: Site) -> None:
        if action.do == "call":
            if self._tills is not None and site.starts_at <= self._sim.now:
                self._tills.ask(site, *action.argument)
            return
        if self._plan.gather and site.newcomer is not None:
            self._do_outside(action, site)
        if not site.is_member:
            return
        match action.do:
            case do if do in SENDS:
                self._send(action, site)
            case "use" | "gate":
                with suppress(UsageError):  # a request of its is pending, or the order does not allow this
                    getattr(site, action.do)(action.argument)
            case "leave":
                # Without the relay the others could not go on.
                if (site.index or not self._relays) and (self._plan.detect is None or self._was_met(site)):
                    site.leave()
            case "crash":
                if (site.index or not self._relays) and self._was_met(site):
                    site.crash()
            case "part":
                self._part(site, action.argument)
            case "pause":
                site.pause(action.argument)
            case "stop_reading":
                site.stop_reading(action.argument)
            case "read_slowly":
                site.pause_max = action.argument

    def _do_outside(self, action: Action, site: Site) -> None:
        """Carry out an action of a process that is in no view yet."""
        has_started = site.starts_at <= self._sim.now and not site.has_left
        match action.do:
            case do if do in SENDS:
                self._send(action, site)  # the message leaves once the process is in a view
            case "leave" if has_started and self._plan.detect is not None:
                site.leave()
            case "crash" if has_started and self._plan.detect is not None:
                site.crash()
            case "part":
                self._part(site, action.argument)
            case "pause" if has_started:
                site.pause(action.argument)

    def _was_met(self, site: Site) -> bool:
        """Whether some other member has met it. If members greet, the others wait for a founder that they have never met, so it must
        not leave or crash before."""
        if self._plan.gather:
            return True  # every member of a view was admitted, so all know of it
        others = [each.stack for each in self._sim.sites if each.is_member and each is not site]
        if not site.stack.layer("session").presence.greets:  # type: ignore[union-attr]
            return True
        return any(stack.view.index(site.stack.member) in stack.met for stack in others)

    def _part(self, site: Site, seconds: float) -> None:
        """Cut the network for a while: this site and about a third of all in one part, the others in the other."""
        sim = self._sim
        if self._relays:
            return  # without the relay the others could not go on
        sites = [each for each in sim.sites if not each.has_left]
        here = [each for each in sites if each is site or each.index % 3 == site.index % 3]
        sim.network.part(here, [each for each in sites if each not in here])
        sim.at(sim.now + seconds, site, sim.network.heal)

    def _send(self, action: Action, site: Site) -> None:
        size, destinations, count = action.argument
        dst = None
        if destinations is not None:
            present = [self._sites[each] for each in destinations if each in self._sites]
            dst = sum(1 << each.index for each in present)
            if not dst or (site.newcomer is None and not site.members(dst)):
                return
        if action.do in ("send_first", "send_many"):
            site.say(size, dst, count, waits=action.do == "send_first")
            return
        for _ in range(count):
            if action.do == "answer":
                site.answer(size, dst, GIVES_UP)
            else:
                site.say(size, dst)


def plan(
    seed: int,
    orders: tuple[str, ...] = ORDERS,
    *,
    forged: bool = False,
    states: bool = False,
    objects: bool = False,
) -> Plan:
    """Return the plan of a seed. With `forged` the group is secured and an attacker forges datagrams, unless the group cannot be
    secured or is very large; with `states` newcomers get a state or the last messages, unless no member can join or the group is very
    large; with `objects` members call objects, if the order has any and the group is not very large."""
    drawn = _followed(_plan(seed, orders), Random(f"follow {seed}"))
    drawn = _together(drawn, Random(f"together {seed}"))
    drawn = _secured(drawn, Random(f"secure {seed}"), forged)
    drawn = _shared(drawn, Random(f"share {seed}"), states)
    drawn = _given_reluctantly(drawn, Random(f"give {seed}"))
    return _hosting(drawn, Random(f"host {seed}"), objects)


def _secured(drawn: Plan, rng: Random, forged: bool) -> Plan:
    """Return the plan with a secret, and perhaps an attacker that forges datagrams."""
    if (
        drawn.order not in CHANGING
        or drawn.members > GATHER_MAX
        or rng.random() >= (1 if forged else SECURED)
    ):
        return drawn
    return replace(drawn, secured=True, forged=rng.choice((100, 300) if forged else (0, 100, 300)))


def _shared(drawn: Plan, rng: Random, states: bool) -> Plan:
    """Return the plan with applications that give newcomers a state, or the last messages."""
    pick, chance = rng.choice, rng.random()
    if not _can_join(drawn) or drawn.members > GATHER_MAX or chance >= (1 if states else SHARED):
        return drawn
    drawn = _visited(drawn, rng)
    if rng.random() < 0.3:
        return replace(drawn, history=pick((1, 3, 20, 0.1, 1.0)))
    pieces, more = pick((0, 0, 1, 2, PIECES, PIECES + 1, 2 * PIECES)), pick((-1, 0, 1))
    return replace(drawn, state=(pieces, more, pick((7, 1000, 1 << 14, 1 << 20))))


def _given_reluctantly(drawn: Plan, rng: Random) -> Plan:
    """Return the plan with some applications that raise while their state is drawn, or pause."""
    if drawn.state is None or rng.random() >= RELUCTANT:
        return drawn
    pick, people = rng.choice, range(max([drawn.members - 1, *drawn.newcomers]) + 1)
    if 0 < drawn.seeds < len(people):
        return drawn  # if a member whose address is known failed for lack of a state, parts might never find each other
    who = sorted(rng.sample(people, min(len(people), pick((1, 1, 2, len(people))))))
    how = [(each, pick(("once", "always", "pauses")), pick((0, 1, 3, 20))) for each in who]
    return replace(drawn, reluctant=tuple(how))


def _hosting(drawn: Plan, rng: Random, objects: bool) -> Plan:
    """Return the plan with objects that members call, and changes of the order only to others that have objects."""
    pick, chance = rng.choice, rng.random()
    if drawn.order not in HOSTING or drawn.members > GATHER_MAX or chance >= (1 if objects else HOSTED):
        return drawn
    if _can_join(drawn) and not drawn.history and drawn.state is None:
        drawn = _visited(drawn, rng)
    people = range(max([drawn.members - 1, *drawn.newcomers]) + 1)
    actions = [action for action in drawn.actions if action.do != "use" or action.argument in HOSTING]
    within, since = pick((0.05, 0.3, 1.0, drawn.faults_end)), GATHERING * drawn.gather * rng.random()
    for who in people:
        for _ in range(pick((0, 1, 2, 4, 8))):
            kind, one, other = pick(KINDS), rng.randrange(2), rng.randrange(2)
            amount = rng.randint(1, 9) + 10 * (pick((0, 1, 2, PIECES, PIECES + 1)) if kind == FILL else 0)
            actions.append(
                Action(round(since + within * rng.random(), 4), who, "call", (kind, one, other, amount))
            )
    some = tuple(sorted(rng.sample(people, rng.randint(1, min(3, len(people))))))
    copies = pick((((),), ((), ()), ((), some), (some,)))
    actions.sort(key=lambda action: (action.at, action.who))
    # Only recordings, which are files, have traces of copies.
    return replace(drawn, actions=tuple(actions), objects=copies, traced=False)


def _can_join(drawn: Plan) -> bool:
    return drawn.order in CHANGING or (drawn.order in CARRIED and drawn.detect is not None)


def _visited(drawn: Plan, rng: Random) -> Plan:
    """Return the plan, mostly with one more newcomer, and others that die, leave, pause or are cut off just then: perhaps the member
    that gives the newcomer its state."""
    pick, actions = rng.choice, list(drawn.actions)
    at, people = (
        drawn.faults_end * rng.random() * pick((0.2, 1.0)),
        max([drawn.members - 1, *drawn.newcomers]) + 1,
    )
    if rng.random() >= 0.6:
        return drawn
    actions.append(Action(round(at, 4), people, "join"))
    going = ["pause", *(("crash", "leave", "part") if drawn.detect is not None else ())]
    # In groups that are severed or know few addresses, some members have to be present all the time.
    if not drawn.severed and not drawn.seeds and rng.random() < 0.7:
        for _ in range(pick((1, 1, 2))):
            do, who = pick(going), rng.randrange(people + 1)
            argument = pick((0.05, 0.3, 1.0)) if do in ("pause", "part") else None
            actions.append(Action(round(at + rng.random() * pick((0.05, 0.5)), 4), who, do, argument))
    option = dict(drawn.option)
    if option.get("capacity"):
        option["capacity"] = max(option["capacity"], people + 1)  # at least a message of each member
    actions.sort(key=lambda action: (action.at, action.who))
    return replace(drawn, actions=tuple(actions), option=tuple(option.items()))


def _plan(seed: int, orders: tuple[str, ...]) -> Plan:
    drawn = _Draw(Random(seed), seed, orders).plan()
    rng = Random(f"gather {seed}")  # a generator of its own: other seeds keep their meaning
    gathers = drawn.order in CHANGING and drawn.members <= GATHER_MAX and rng.random() < GATHERS
    if gathers:
        return _gathered(drawn, rng)
    rng = Random(f"sever {seed}")
    # On other wire formats no datagram takes a detour: acknowledgements reach the sender directly, or not at all.
    is_watched = drawn.detect is not None and drawn.slow == "wait" and drawn.members > 2
    is_watched = is_watched and drawn.order in CHANGING
    return _severed(drawn, rng) if is_watched and rng.random() < SEVERED else drawn


def _followed(drawn: Plan, rng: Random) -> Plan:
    """Return the plan, sometimes with further members that crash during the view change after a crash. Groups that are severed or
    know few addresses are left as they are, since some of their members have to be present all the time."""
    deaths = [action for action in drawn.actions if action.do == "crash"]
    is_free = drawn.detect is not None and drawn.members > 2 and not drawn.severed and not drawn.seeds
    if not is_free or not deaths or rng.random() >= FOLLOWED:
        return drawn
    assert drawn.detect is not None
    actions, at = list(drawn.actions), rng.choice(deaths).at
    for who in rng.sample(range(drawn.members), rng.choice((1, 1, 2))):
        at += rng.choice((0.0, drawn.detect)) + rng.random() * CHANGES_WITHIN
        actions.append(Action(round(at, 4), who, "crash"))
    return replace(drawn, actions=tuple(sorted(actions, key=lambda action: (action.at, action.who))))


def _edge(order: str, datagram: int, people: int) -> int:
    """Return about how many bytes a message has that just fills a datagram."""
    room = datagram if order in CHANGING else 1472
    return room - min(HEADER_MAX + 6 * people, room // 2)


def _together(drawn: Plan, rng: Random) -> Plan:
    """Return the plan with some sends of several messages in one call, some of these right after another message in the same
    turn, which about fills one or several datagrams and may have another destination."""
    people, actions = drawn.members + len(drawn.newcomers), list[Action]()
    edge = _edge(drawn.order, drawn.datagram, people)
    for action in drawn.actions:
        if action.do != "send" or action.argument[2] == 1 or rng.random() >= TOGETHER:
            actions.append(action)
            continue
        if rng.random() < TOGETHER:
            size = max(HEADER, rng.choice((1, 1, 2, 3)) * edge + rng.randint(-32, 8))
            is_apart = action.argument[1] is not None and rng.random() < TOGETHER
            first = (size, (rng.randrange(people),) if is_apart else None, 1)
            actions.append(action._replace(do="send_first", argument=first))
        actions.append(action._replace(do="send_many"))
    return replace(drawn, actions=tuple(actions))


def _severed(drawn: Plan, rng: Random) -> Plan:
    """Return the plan with two members between which nothing ever passes, in one direction or both. Some member that hears both
    is always present: the first member, which leads, or in larger groups all but the first one and these two."""
    one, other = rng.sample(range(1, max([drawn.members - 1, *drawn.newcomers]) + 1), 2)
    going = {0, one, other} if drawn.members > 3 and rng.random() < 0.5 else None
    kept = [
        each
        for each in drawn.actions
        if each.do != "part"
        and (each.do not in GOING or (each.who != 0 if going is None else each.who in going))
    ]
    ways = ((one, other),) if rng.random() < 0.4 else ((one, other), (other, one))
    return replace(drawn, actions=tuple(kept), severed=ways)


def _gathered(drawn: Plan, rng: Random) -> Plan:
    """Return the plan without listed members: all processes start within a while of each other and found the group. Meanwhile some
    are cut off from others, crash or leave."""
    pick, people = rng.choice, range(max([drawn.members - 1, *drawn.newcomers]) + 1)
    within, later = pick((0.0, 0.05, 0.3, 1.0)), pick((0.0, 0.5, GATHERING))
    seeds = pick((0, 0, 1, 2, len(people)))
    detect = drawn.detect or pick((0.5, 1.0))
    drawn_actions = [action for action in drawn.actions if action.argument != FLOODS]  # which takes minutes
    actions = [action._replace(at=round(action.at + later, 4)) for action in drawn_actions]
    actions += [Action(round(within * rng.random(), 4), who, "join") for who in range(drawn.members)]
    if rng.random() < 0.4:
        actions.append(Action(0.0, pick(people), "part", pick((0.4, 1.0, 2.0))))
    for _ in range(pick((0, 0, 1, 1, 2))):
        who, at = pick(people), round(rng.random() * 1.2, 4)
        actions.append(Action(at, who, pick(("crash", "leave"))))
        if rng.random() < 0.5:
            actions.append(Action(round(at + rng.random(), 4), who, "return"))
    has_few = 0 < seeds < len(people)
    if has_few:  # one known process that is present is enough, but there must be one: the first
        actions = [action for action in actions if action.who or action.do not in ("crash", "leave")]
    return replace(
        drawn,
        actions=tuple(sorted(actions, key=lambda action: (action.at, action.who))),
        detect=detect,
        rejoin=drawn.rejoin or has_few,
        loss=min(drawn.loss, 0.3),
        gather=True,
        seeds=seeds,
    )


class _Draw:
    """Draws the basic plan of a seed."""

    def __init__(self, rng: Random, seed: int, orders: tuple[str, ...]) -> None:
        self._rng = rng
        self._seed = seed
        self._orders = orders
        self._busy = rng.choice(BUSY)
        self._has = {feature: rng.random() < 0.4 for feature in FEATURES}

    def plan(self) -> Plan:
        rng, has, pick = self._rng, self._has, self._rng.choice
        order = pick(self._orders)
        recipe = find(order)
        is_carried = order in CARRIED
        others = CARRIED if is_carried else CHANGING
        changes = order in CHANGING or (is_carried and (has["crash"] or has["part"] or has["join"]))
        members = pick((1, 2, 2, 3, 3, 3, 4, 4, 5))
        datagram = pick((256, 512, 1472)) if has["small_datagram"] else 60 * 1024
        actions: list[Action] = []
        if has["crowd"] and rng.random() < 0.1:
            members, datagram = 8, 1472
            if (
                order == "relay" and rng.random() < 0.2
            ):  # large, since sets of destinations take room in packets; with other features it would take minutes
                members = 64
                has = self._has = dict.fromkeys(FEATURES, False) | {"subset": True, "sizes": True}
        people = members
        if has["join"] and changes:
            people += pick((1, 1, 2))
            actions += [self._action(who, "join") for who in range(members, people)]
        if order not in CHANGING:
            datagram = 60 * 1024  # these orders have an option of their own for the size
        edge = _edge(order, datagram, people)
        for who in range(people):
            for _ in range(pick((0, 1, 2, 3, 6)) if members < 8 else int(rng.random() < 5 / members)):
                actions.append(self._send(who, people, edge))
        if has["flood"] and order in CHANGING and members < 8 and rng.random() < 0.03:
            has["small_queue"] = has["small_window"] = True
            datagram = 512
            actions.append(Action(0.0, rng.randrange(members), "stop_reading", FLOOD))
            for who in range(members):
                actions += [self._action(who, "send", FLOODS) for _ in range(4)]
        if has["leave"]:
            actions += [self._action(rng.randrange(people), "leave") for _ in range(pick((1, 1, 2)))]
        detect = pick((0.5, 1.0)) if changes and (has["crash"] or has["part"] or is_carried) else None
        if has["part"] and changes:
            actions.append(self._action(rng.randrange(people), "part", pick((0.1, 0.7, 1.5))))
        if has["crash"] and changes:
            for _ in range(pick((1, 1, 2))):
                who = rng.randrange(people)
                actions.append(self._action(who, "crash"))
                if has["return"]:
                    actions.append(Action(round(FAULTS_END + rng.random(), 4), who, "return"))
        if has["use"] and changes:
            for _ in range(pick((1, 1, 2, 3))):
                actions.append(self._action(rng.randrange(people), "use", pick(others)))
        if has["gate"]:
            for _ in range(pick((1, 2, 3))):
                actions.append(self._action(rng.randrange(people), "gate", pick(("open", "open", "closed"))))
        for feature, do, seconds in (
            ("pause", "pause", (0.05, 0.3, 1.0)),
            ("stop_reading", "stop_reading", (0.2, 1.0, 3.0)),
            ("slow_reader", "read_slowly", (0.05, 0.3)),
        ):
            if has[feature]:
                at = 0.0 if rng.random() < 0.3 else self._busy * rng.random()
                actions.append(Action(round(at, 4), rng.randrange(people), do, pick(seconds)))
        is_hasty = has["slow"] and recipe.blames and detect is not None
        if is_hasty:
            has["small_queue"] = has["small_window"] = True
            actions.append(Action(0.0, rng.randrange(people), "stop_reading", pick((0.5, 1.5, 4.0))))
            actions += [self._action(who, "send", (300, None, 20)) for who in range(members)]
            actions = [action for action in actions if action.argument != "relay"]
        if is_carried and detect is not None:
            # A member could take a message through its open gate before the message's cause, and send one itself; then the sender
            # of the first could fail.
            actions = [action for action in actions if action.argument != "open"]
        deliver = pick(recipe.levels) if has["level"] else None
        tunings = {name: pick(tried) for name, tried in recipe.tunings.items()} if has["tuned"] else {}
        if is_hasty and is_carried:
            tunings["size"] = 4  # in packets, which is how these orders count windows
        if (tunings.get("capacity") or people) < people:
            tunings["capacity"] = people  # at least a message of each member
        return Plan(
            order=order,
            members=members,
            seed=self._seed,
            actions=tuple(sorted(actions, key=lambda action: (action.at, action.who))),
            deliver=None if deliver == recipe.level else deliver,
            echo=has["echo"],
            matrix=has["matrix"] and "matrix" in recipe.takes,
            coarse=has["coarse"] and "coarse" in recipe.takes,
            greet=has["greet"],
            traced=has["traced"],
            loss=pick((0.1, 0.3) if detect else (0.1, 0.3, 0.5)) if has["loss"] else 0.0,
            duplicate=0.2 if has["duplicate"] else 0.0,
            reorder=0.3 if has["reorder"] else 0.0,
            delay=pick((0.001, 0.1)) if has["slow_links"] else 0.01,
            datagram=datagram,
            window=pick((1, 2000, 8000)) if has["small_window"] else 1 << 20,
            queue=pick((QUEUE_MIN, 2000, 8000)) if has["small_queue"] else 16 << 20,
            option=tuple(tunings.items()),
            detect=detect,
            rejoin=detect is not None and has["rejoin"],
            partition=pick(PARTITIONS) if detect is not None and has["partition"] else None,
            slow=pick(("expel", "skip")) if is_hasty else "wait",
            patience=pick((0.2, 1.0)) if is_hasty else PATIENCE,
        )

    def _action(self, who: int, do: str, argument: Any = None) -> Action:
        return Action(round(self._busy * self._rng.random(), 4), who, do, argument)

    def _send(self, who: int, people: int, edge: int) -> Action:
        rng, has, pick = self._rng, self._has, self._rng.choice
        size = pick((HEADER, 40, 40, 300))
        if has["sizes"]:
            size = max(HEADER, pick((1, 1, 2, 3)) * edge + rng.randint(-32, 8))
        destinations: tuple[int, ...] | None = None
        if has["subset"] and rng.random() < 0.7:
            destinations = tuple(sorted(rng.sample(range(people), rng.randint(1, min(3, people)))))
        if has["self"] and rng.random() < 0.3:
            destinations = (who,)
        if size > 2000 and rng.random() < 0.5:
            size = 40
        count = pick((1, 5, 20)) if has["burst"] and size < 2000 else 1
        do = "answer" if has["answers"] and rng.random() < 0.4 else "send"
        return self._action(who, do, (size, destinations, count))
