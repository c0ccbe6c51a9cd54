"""Whether a run of the swarm was as it should be: safety, liveness, receipts, quiet, memory.

A plan is played until its faults have ended and the group is at rest. Then every member says one thing more, for
whoever can do that is not stuck. What is found has a *kind*, by which two failures are told to be the same.
"""

from collections.abc import Iterable
from itertools import combinations, compress
from traceback import extract_tb
from typing import NamedTuple

from inga.model.errors import IngaError
from inga.model.view import Member, View
from inga.recipes import find
from inga.session.parts import PART
from inga.session.quorum import is_majority
from inga.session.session import Session, session_of
from inga.session.silence import BEATS
from inga.sim.memory import leaks
from inga.sim.simulator import Sim, Unquiet
from inga.sim.site import Site
from inga.sim.swarm import SENDS, Action, Plan
from inga.trial.result import packets_sent
from inga.trial.workload import HEADER

CALM_WITHIN = 40.0
"""Seconds after the end of all faults within which everything has arrived and nobody says anything more."""

QUIET_FOR = 10.0
"""Of these, the last ones, in which nobody says anything: longer than any pause between repetitions."""

SLOW_MAX = 600.0
"""Seconds after which the slowest plan is over: a packet at a time, and a reader that takes a rest after each."""

PACKETS = 4
"""Of a sender, besides its window: one that was let through alone, one that waits, one in the making, one to spare."""

HEARD_WITHIN = 20.0
"""Seconds within which all have what one says in a group at rest: many times the longest pause of a protocol. Objects
over ReMIOP with a window of four packets need most, 13 s in a group of eight, all of whose clocks pass those windows."""


class Bounds(NamedTuple):
    """How long things may take, in seconds."""

    calm: float
    heard: float
    is_quiet: bool  # in the end nobody says anything


UNWATCHED = Bounds(CALM_WITHIN, HEARD_WITHIN, True)

WATCHED = Bounds(10.0, 1.0, False)
"""Where members listen for silence somebody always speaks, and what is slow by nature is not drawn."""

IDLE_FOR = 2.0
"""Seconds for which they are then watched."""

PACED = WATCHED._replace(heard=HEARD_WITHIN)
"""The same where senders keep to a rate, and buffers hold a few packets."""

LOOKS_EVERY = 1.0
"""Seconds after which we look whether what somebody has said was heard, and whether a group in which somebody always
speaks is at rest."""

LOOKS_AGAIN = 0.37
"""Seconds after which we look whether a member still keeps something: no part of any pause between two words."""

SPEAKERS_MAX = 8
"""Members that say something in the end: of a crowd not all."""


LATE = 6
"""Times the delay of a link after which nothing of a dead process can come any more: a copy that is disordered takes three of
them, and may go round by another member."""


PAUSED = "cannot join: paused"
"""What one is told where those who are there are no majority."""


class Finding(NamedTuple):
    """Something wrong: of which kind, and in words."""

    kind: str
    text: str


def judge(plan: Plan) -> list[Finding]:
    """Play a plan, and say what is wrong with it."""
    try:
        sim = plan.sim()
        sim.run(plan.faults_end)
        sim.calm()
        watched = WATCHED if find(plan.order).wire == "inga" else PACED
        bounds = UNWATCHED if plan.detect is None else watched
        found = _rest(sim, plan.faults_end, "", bounds)
        if not found:
            found = _speak(sim, bounds) or _rest(sim, sim.now, " again", bounds)
        sim.finish()
        has_lost_majority = _has_lost_majority(sim)
        if not found and not has_lost_majority:
            found = _idle(sim, plan, bounds)
        return [
            *_broken(sim),
            *_ended(sim, plan),
            *(() if plan.detect is not None else _excluded(sim)),
            *_split(sim, plan),
            *found,
            *(() if has_lost_majority else _receipts(sim)),
            *(() if found or has_lost_majority else _applications(sim)),
            *_pressure(sim, plan),
            *(() if found or has_lost_majority else _memory(sim, plan, bounds)),
        ]
    except IngaError as error:
        return [Finding(f"error: {type(error).__name__}", f"{type(error).__name__}: {error}")]
    except Unquiet as error:
        return [Finding("unquiet", str(error))]
    except Exception as error:  # whatever a layer raises is a find
        where = extract_tb(error.__traceback__)[-1]
        kind = f"{type(error).__name__} in {where.name}"
        return [Finding(kind, f"{kind}, line {where.lineno} of {where.filename}: {error}")]


def _speak(sim: Sim, bounds: Bounds) -> list[Finding]:
    """One after the other says something: what others say could set free what is stuck."""
    speakers = [site for site in sim.sites if site.is_member and not _is_away(site)]
    speakers.sort(key=lambda site: not site.receipts)  # who has sent before is more likely to be stuck
    for site in speakers[:SPEAKERS_MAX]:
        site.say(HEADER, None)
        until = sim.now + bounds.heard
        while True:
            sim.run(min(sim.now + LOOKS_EVERY, until))
            found = _undelivered(sim, f" after {site.name} spoke")
            if not found or sim.now >= until:
                break
        if found:
            return found
    return []


def _progress(sim: Sim) -> tuple[int, int]:
    """Messages that were taken, and packets that were sent for the first time."""
    stacks = [site.stack for site in sim.sites if site.newcomer is None]
    return sim.oracle.taken, packets_sent(stack.counts for stack in stacks)["data"]


def _rest(sim: Sim, since: float, when: str, bounds: Bounds) -> list[Finding]:
    """Let it come to rest, and say what does not. As long as something new is sent or arrives it has time: some plans
    are slow, and one large message may go in many pieces. Where somebody always speaks, rest is when nothing is wrong
    and nothing new is said from one look to the next."""
    before, until = (-1, -1), since + bounds.calm
    while True:
        found = _settle(sim, until, when, bounds)
        now = _progress(sim)
        if found is None:
            return []
        if now <= before or until >= SLOW_MAX:
            break
        before, until = now, until + bounds.calm
    is_loud = sim.network.sent_at > until - QUIET_FOR and any(site.is_member for site in sim.sites)
    if not found and bounds.is_quiet and is_loud:
        found.append(Finding("unquiet", f"somebody still sends, {sim.network.sent_at:g} s from the start"))
    return found


def _settle(sim: Sim, until: float, when: str, bounds: Bounds) -> list[Finding] | None:
    """Run until then, and say what is wrong; None: it came to rest on the way."""
    if bounds.is_quiet:
        sim.run(until)
        return _unrest(sim, when)
    before: tuple[int, int] | None = None
    while True:
        sim.run(min(sim.now + LOOKS_EVERY, until))
        found, now = _unrest(sim, when), _progress(sim)
        is_awake = all(site.has_left or max(site.awake_at, site.reads_at) <= sim.now for site in sim.sites)
        if not found and now == before and is_awake:
            return None
        before = None if found else now
        if sim.now >= until:
            return found


def _unrest(sim: Sim, when: str) -> list[Finding]:
    """Who waits for something, as things are now."""
    if _has_lost_majority(sim):
        asking = [site.name for site in sim.sites if site.newcomer is not None and not site.has_left]
        return [Finding("stuck: join", f"{name} was not told that nobody is let in") for name in asking]
    found = []
    for site in sim.sites:
        name = site.name
        if site.has_left:
            if site in sim.gave_up:
                found.append(Finding("stuck: leave", f"{name} waited in vain to leave"))
        elif site.newcomer is not None and (sim.gathers or any(other.is_member for other in sim.sites)):
            found.append(Finding("stuck: join", f"{name} was neither let in nor refused"))
        elif site.is_member and (site.waiting or not site.stack.writable):
            found.append(Finding("stuck: send", f"{name} cannot send{when}"))
    found += [
        Finding("stuck: use", f"the change that {site.name} asked for did not end")
        for site in sim.asked
        if not site.has_left
    ]
    waits = [Finding(*each) for onlooker in sim.onlookers for each in onlooker.waits()]
    return found + waits + _undelivered(sim, when) + _parted(sim)


def _idle(sim: Sim, plan: Plan, bounds: Bounds) -> list[Finding]:
    """Where members always speak, to be heard and to look for others, they say nothing else: nothing is asked in vain.
    Some last words may still go round: then we look once more later."""
    if plan.detect is None or find(plan.order).wire != "inga":
        return []
    for pause in (0.0, bounds.calm):
        sim.run(sim.now + pause)
        before, members = sim.network.sent, sum(site.is_member for site in sim.sites)
        sim.run(sim.now + IDLE_FOR)
        most = members * IDLE_FOR * (BEATS / plan.detect + 1 / PART)
        if plan.severed:
            most *= 3  # what goes round is said three times
        sent = sim.network.sent - before
        if sent <= most:
            return []
    return [Finding("unquiet", f"{sent} datagrams in {IDLE_FOR:g} s, more than {most:g}")]


def _parted(sim: Sim) -> list[Finding]:
    """All who are here are in one view, and nobody else is."""
    members = [site for site in sim.sites if site.is_member and site.stack.views.follow]
    here = {site.stack.member.identity for site in members}
    for site in members:
        view = site.stack.view
        if {person.identity for person in view.members} != here or view.text != members[0].stack.view.text:
            names = ", ".join(sorted(name for name, _ in here))
            text = f"{site.name} is in view {view.number} of {', '.join(view.names)}; here are {names}"
            return [Finding("stuck: view", text)]
    return []


def _has_lost_majority(sim: Sim) -> bool:
    """Whether all who are left are paused, and have to be: too many of their last view are gone without a word."""
    there = [site for site in sim.sites if site.newcomer is None and not site.has_left]
    members = [site for site in there if not site.stack.leaving]
    if not members or not all(map(_is_away, members)):
        return False
    view = max((site.stack.view for site in members), key=lambda view: view.number)
    fates = [_fate(sim, person, view) for person in view.members]
    old = [name not in view.joined for name in view.names]
    return not (_suffices(fates) and (not view.attempt or _suffices(compress(fates, old))))


def _is_away(site: Site) -> bool:
    """Whether it is paused, or in no view: one that gave its membership up before it had met anybody calls that no pause."""
    return site.stack.paused is not None or site.stack.is_homeless


def _fate(sim: Sim, person: Member, view: View) -> bool | None:
    """Of a member of a view: whether it is still there, None if it does not count any more, as it has said so there."""
    site = sim.site_of(person)
    if site.newcomer is not None:
        return False  # it was let in, and was gone before it heard of that
    session = site.stack.layer("session")
    assert isinstance(session, Session)
    if site.has_crashed:
        return False
    if not site.has_left and not site.stack.leaving and site.stack.member.identity == person.identity:
        return True
    # What it had agreed to before, somebody else may have brought about.
    return False if session.quorum.promised or site.stack.view.text != view.text else None


def _suffices(fates: Iterable[bool | None]) -> bool:
    """Whether those who are there are a majority of those that count."""
    counted = [fate for fate in fates if fate is not None]
    here = {index for index, fate in enumerate(counted) if fate}
    return not counted or is_majority(here, range(len(counted)))


def _split(sim: Sim, plan: Plan) -> list[Finding]:
    """Where one part alone goes on, no two views without a common member follow one."""
    followers: dict[str, list[View]] = {}
    for before, view in sim.ledger.steps:
        if (plan.partition or find(before.recipe).partition) == "primary":
            followers.setdefault(before.text, []).append(view)
    for views in followers.values():
        for one, other in combinations(views, 2):
            if not {each.identity for each in one.members} & {each.identity for each in other.members}:
                text = f"{', '.join(one.names)} and {', '.join(other.names)} both went on"
                return [Finding("split", text)]
    return []


def _excluded(sim: Sim) -> list[Finding]:
    """Where nobody listens for silence, nobody is taken for dead."""
    return [Finding("excluded", f"{site.name} was taken for dead") for site in sim.sites if site.is_excluded]


def _ended(sim: Sim, plan: Plan) -> list[Finding]:
    """Who wants to be a member is let in, and who comes back by itself when it was excluded does so."""
    found = []
    for site in sim.sites:
        newcomer, error = site.newcomer, site.excluded
        if newcomer is not None and newcomer.refused is not None and not _may_be_refused(sim, plan, site):
            found.append(Finding("refused", f"{site.name} was refused: {newcomer.refused}"))
        elif error is not None and plan.detect is not None:
            is_slow = str(error) == session_of(site.stack).slow.why
            if plan.rejoin or (is_slow and plan.slow != "expel"):
                found.append(Finding("ended", f"{site.name} did not come back: {error}"))
    return found


def _may_be_refused(sim: Sim, plan: Plan, site: Site) -> bool:
    """Whether another process has its name, or may still be heard under it; those who are there may let nobody in; or nobody
    is there."""
    assert site.newcomer is not None
    since = site.starts_at - LATE * plan.delay
    others = [other for other in sim.sites if other is not site]
    is_taken = any(
        other.name == site.name and other.starts_at <= site.ended_at and other.ended_at > since
        for other in others
    )
    is_alone = all(other.newcomer is not None or other.ended_at <= site.ended_at for other in others)
    return is_taken or is_alone or PAUSED in str(site.newcomer.refused)


def _undelivered(sim: Sim, when: str) -> list[Finding]:
    missing = [sim.ledger.roll.name_of(site) for site, _, promised in sim.oracle.missing() if promised]
    who = ", ".join(sorted(set(missing)))
    return [Finding("stuck: deliver", f"{who} did not get {len(missing)} messages{when}")] if missing else []


def _broken(sim: Sim) -> list[Finding]:
    """Promises of views."""
    oracle = sim.oracle
    found = []
    for guarantee in oracle.broken:
        if guarantee != "complete":  # which is said better as who is stuck
            text = next((each for each in oracle.witnesses if each.startswith(f"{guarantee}:")), guarantee)
            found.append(Finding(guarantee, text))
    return found


def _receipts(sim: Sim) -> list[Finding]:
    lacking = {message for _, message, _ in sim.oracle.missing()}
    for site in sim.sites:
        for message, receipt in site.receipts:
            for level in ("confirmed", "acknowledged"):
                if message in lacking and receipt.has(level):
                    text = f"message {message} of {site.name} is {level}, and did not come"
                    return [Finding(f"receipt: {level}", text)]
    return []


def _size_of_call(action: Action) -> int:
    size, _, count = action.argument
    return int(size) * (count if action.do == "send_many" else 1)


def _pressure(sim: Sim, plan: Plan) -> list[Finding]:
    """Who does not read is not sent more than it asked for, besides what is under way from each sender. Where a sequencer
    orders, as much again may wait for its place: what others keep for that counts at the sequencer. In each view senders begin
    anew, and no view waits until one that waits for a state has read."""
    largest = max([_size_of_call(action) for action in plan.actions if action.do in SENDS], default=0)
    each = 2 * plan.window + PACKETS * max(largest, plan.datagram)
    orders = {plan.order, *(action.argument for action in plan.actions if action.do == "use")}
    queues = 1 + any(find(order).sequenced for order in orders)
    bound = queues * plan.queue + len(sim.sites) * each
    for site in sim.sites:
        most = bound * max(site.waited_in, 1)
        if site.owed_most > most and not site.has_left:
            text = f"{site.owed_most} bytes were under way to {site.name}, more than {most}"
            return [Finding("pressure", text)]
    return []


def _applications(sim: Sim) -> list[Finding]:
    """Of each kind the first: what follows from that is no news."""
    found: dict[str, Finding] = {}
    for onlooker in sim.onlookers:
        for kind, text in onlooker.faults():
            found.setdefault(kind, Finding(kind, text))
    return list(found.values())


def _memory(sim: Sim, plan: Plan, bounds: Bounds) -> list[Finding]:
    """Containers that keep something although all is done. Where somebody always speaks nobody waits until the last word
    has gone round by long ways, and what is said may be cut into packets, of which one is under way just now: so we look
    once more later, and a little later still."""
    found = _kept(sim)
    for pause in () if plan.detect is None else (bounds.calm, LOOKS_AGAIN):
        if found:
            sim.run(sim.now + pause)
            still = {each.kind for each in _kept(sim)}
            found = [each for each in found if each.kind in still]
    return found


def _kept(sim: Sim) -> list[Finding]:
    """Containers that keep something. Who has said goodbye is gone soon, with all it has."""
    found: dict[str, Finding] = {}
    for site in sim.sites:
        if site.newcomer is None and not site.has_left and not site.stack.leaving:
            for place, what in leaks(site.stack):
                found.setdefault(place, Finding(f"memory: {place}", f"{site.name} still has {place}: {what}"))
    return list(found.values())
