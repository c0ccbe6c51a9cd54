"""The judge of the swarm: safety, liveness, receipts, quiet, memory.

A plan is played until its faults have ended and the group is at rest. Then every member sends one more message, to show
that none is stuck. Each finding has a *kind*: two failures of the same kind count as the same.
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
"""Seconds after the end of all faults within which everything has arrived and no member sends anything more."""

QUIET_FOR = 10.0
"""The last seconds of these, in which no member sends anything: longer than any pause between repetitions."""

SLOW_MAX = 600.0
"""Seconds after which even the slowest plan is over, in which packets go one at a time and the reader pauses after each."""

PACKETS = 4
"""Packets of a sender that may be in flight besides its window: one that was admitted alone, one that waits, one being filled, one
to spare."""

HEARD_WITHIN = 20.0
"""Seconds within which a message reaches all members of a group at rest: many times the longest pause of a protocol. Objects
over ReMIOP with a window of four packets need most, 13 s in a group of eight, as the clocks of all of them pass those windows."""


class Bounds(NamedTuple):
    """How long things may take, in seconds."""

    calm: float
    heard: float
    is_quiet: bool  # in the end no member sends anything


UNWATCHED = Bounds(CALM_WITHIN, HEARD_WITHIN, True)
"""Bounds for groups without failure detection."""

WATCHED = Bounds(10.0, 1.0, False)
"""Bounds for groups with failure detection: their members never stop sending, and no settings are drawn that make them slow."""

IDLE_FOR = 2.0
"""Seconds for which the traffic of such a group at rest is then measured."""

PACED = WATCHED._replace(heard=HEARD_WITHIN)
"""The same where senders keep to a rate, and buffers hold a few packets."""

LOOKS_EVERY = 1.0
"""Seconds between two looks at whether a message was delivered, and whether a group whose members never stop sending is at rest."""

LOOKS_AGAIN = 0.37
"""Seconds after which a container that keeps something is examined again: not a fraction of any pause between control messages."""

SPEAKERS_MAX = 8
"""The most members that send a message in the end: in a large group not all."""


LATE = 6
"""The delays of a link after which no datagram of a dead process can arrive any more: a reordered copy takes three of
them, and may take a detour by another member."""


PAUSED = "cannot join: paused"
"""Part of the reason for which a newcomer is refused if the present members are no majority."""


class Finding(NamedTuple):
    """Something wrong: its kind, and a description."""

    kind: str
    text: str


def judge(plan: Plan) -> list[Finding]:
    """Play a plan, and return what is wrong with it."""
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
        is_apart = not _is_connected(sim, plan)
        is_hopeless = is_apart or _has_lost_majority(sim)
        if is_apart:
            found = []
        elif not found and not is_hopeless:
            found = _idle(sim, plan, bounds)
        return [
            *_broken(sim),
            *_ended(sim, plan),
            *(() if plan.detect is not None else _excluded(sim)),
            *_split(sim, plan),
            *found,
            *(() if is_hopeless else _receipts(sim)),
            *(() if found or is_hopeless else _applications(sim)),
            *_pressure(sim, plan),
            *(() if found or is_hopeless else _memory(sim, plan, bounds)),
        ]
    except IngaError as error:
        return [Finding(f"error: {type(error).__name__}", f"{type(error).__name__}: {error}")]
    except Unquiet as error:
        return [Finding("unquiet", str(error))]
    except Exception as error:  # any exception of a layer is a finding
        where = extract_tb(error.__traceback__)[-1]
        kind = f"{type(error).__name__} in {where.name}"
        return [Finding(kind, f"{kind}, line {where.lineno} of {where.filename}: {error}")]


def _speak(sim: Sim, bounds: Bounds) -> list[Finding]:
    """Let members send one message each, and judge after each: a later message of another member could free one that is stuck."""
    speakers = [site for site in sim.sites if site.is_member and not _is_away(site)]
    speakers.sort(key=lambda site: not site.receipts)  # members that sent before are more likely to be stuck
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
    """Return how many messages were taken, and how many packets were sent, without repairs."""
    stacks = [site.stack for site in sim.sites if site.newcomer is None]
    return sim.oracle.taken, packets_sent(stack.counts for stack in stacks)["data"]


def _rest(sim: Sim, since: float, when: str, bounds: Bounds) -> list[Finding]:
    """Let the group come to rest, and return what does not. As long as new packets are sent or messages taken, its time is extended:
    some plans are slow, and one large message may go in many pieces. A group with failure detection is at rest when nothing is wrong
    and nothing new was sent or taken from one look to the next."""
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
    """Run until that time, and return what is wrong. With failure detection, stop as soon as the group is at rest, and return None."""
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
    """Return a finding for each member that is waiting for something now."""
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
    """Check that a group with failure detection at rest sends nothing but heartbeats and *part*, so no request in vain.
    Some last datagrams may still be on a detour: then look once more later."""
    if plan.detect is None or find(plan.order).wire != "inga":
        return []
    for pause in (0.0, bounds.calm):
        sim.run(sim.now + pause)
        before, members = sim.network.sent, sum(site.is_member for site in sim.sites)
        sim.run(sim.now + IDLE_FOR)
        most = members * IDLE_FOR * (BEATS / plan.detect + 1 / PART)
        if plan.severed:
            most *= 3  # a datagram on a detour is sent three times
        sent = sim.network.sent - before
        if sent <= most:
            return []
    return [Finding("unquiet", f"{sent} datagrams in {IDLE_FOR:g} s, more than {most:g}")]


def _parted(sim: Sim) -> list[Finding]:
    """Check that all present members are in one view, and no others are in it."""
    members = [site for site in sim.sites if site.is_member and site.stack.views.follow]
    here = {site.stack.member.identity for site in members}
    for site in members:
        view = site.stack.view
        if {person.identity for person in view.members} != here or view.text != members[0].stack.view.text:
            names = ", ".join(sorted(name for name, _ in here))
            text = f"{site.name} is in view {view.number} of {', '.join(view.names)}; here are {names}"
            return [Finding("stuck: view", text)]
    return []


def _is_connected(sim: Sim, plan: Plan) -> bool:
    """Whether datagrams of each present process can reach every other one, if need be by way of others. The member that heard two
    which do not hear each other may have been excluded for its silence."""
    present = [site.index for site in sim.sites if not site.has_left]
    cut = set(plan.severed)
    for start in present if cut else []:
        reached, frontier = {start}, [start]
        while frontier:
            source = frontier.pop()
            found = [each for each in present if each not in reached and (source, each) not in cut]
            reached.update(found)
            frontier += found
        if len(reached) < len(present):
            return False
    return True


def _has_lost_majority(sim: Sim) -> bool:
    """Whether all remaining members are paused, and have to be, since too many of their last view are gone without a goodbye."""
    there = [site for site in sim.sites if site.newcomer is None and not site.has_left]
    members = [site for site in there if not site.stack.leaving]
    if not members or not all(map(_is_away, members)):
        return False
    view = max((site.stack.view for site in members), key=lambda view: view.number)
    fates = [_fate(sim, person, view) for person in view.members]
    old = [name not in view.joined for name in view.names]
    return not (_suffices(fates) and (not view.attempt or _suffices(compress(fates, old))))


def _is_away(site: Site) -> bool:
    """Whether a member is paused, or in no view: one that gave up its membership before it had met any other is not `paused`."""
    return site.stack.paused is not None or site.stack.is_homeless


def _fate(sim: Sim, person: Member, view: View) -> bool | None:
    """Whether a member of a view is still present; None if it does not count for the majority, as it announced in that view that
    it is gone."""
    site = sim.site_of(person)
    if site.newcomer is not None:
        return False  # it was admitted, and was gone before it learned of that
    session = site.stack.layer("session")
    assert isinstance(session, Session)
    if site.has_crashed:
        return False
    if not site.has_left and not site.stack.leaving and site.stack.member.identity == person.identity:
        return True
    # Another member may have completed a change to which this one had agreed before it left.
    return False if session.quorum.promised or site.stack.view.text != view.text else None


def _suffices(fates: Iterable[bool | None]) -> bool:
    """Whether the present members are a majority of those that count."""
    counted = [fate for fate in fates if fate is not None]
    here = {index for index, fate in enumerate(counted) if fate}
    return not counted or is_majority(here, range(len(counted)))


def _split(sim: Sim, plan: Plan) -> list[Finding]:
    """Check that, if only one part of a group may go on, no view is followed by two views without a common member."""
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
    """Check that without failure detection no member was excluded."""
    return [Finding("excluded", f"{site.name} was taken for dead") for site in sim.sites if site.is_excluded]


def _ended(sim: Sim, plan: Plan) -> list[Finding]:
    """Check that newcomers were admitted, and that excluded members which should rejoin by themselves did so."""
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
    """Whether a newcomer was rightly refused: another process has its name, or datagrams of such a process may still arrive; the
    present members are paused and may admit nobody; or no member is present."""
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
    """Return the guarantees of views that were broken."""
    oracle = sim.oracle
    found = []
    for guarantee in oracle.broken:
        if guarantee != "complete":  # `_undelivered` reports that, with the members that are stuck
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
    """Check that a member which does not read was never sent more than its queue, besides what may be in flight from each sender. With
    a sequencer, as much again may wait for its place: packets that others keep for that count at the sequencer. In each view
    senders begin anew, and no view change waits until a member that waits for a state has read."""
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
    """Return the first finding of each kind about applications; further ones mostly follow from it."""
    found: dict[str, Finding] = {}
    for onlooker in sim.onlookers:
        for kind, text in onlooker.faults():
            found.setdefault(kind, Finding(kind, text))
    return list(found.values())


def _memory(sim: Sim, plan: Plan, bounds: Bounds) -> list[Finding]:
    """Return the containers that keep something although all is done. With failure detection the group never falls silent: a last
    control message may still be on a detour, or one packet of several just be in flight. So look once more later, and again a little
    later."""
    found = _kept(sim)
    for pause in () if plan.detect is None else (bounds.calm, LOOKS_AGAIN):
        if found:
            sim.run(sim.now + pause)
            still = {each.kind for each in _kept(sim)}
            found = [each for each in found if each.kind in still]
    return found


def _kept(sim: Sim) -> list[Finding]:
    """Return the containers that keep something now, without those of leaving members, which will be gone soon."""
    found: dict[str, Finding] = {}
    for site in sim.sites:
        if site.newcomer is None and not site.has_left and not site.stack.leaving:
            for place, what in leaks(site.stack):
                found.setdefault(place, Finding(f"memory: {place}", f"{site.name} still has {place}: {what}"))
    return list(found.values())
