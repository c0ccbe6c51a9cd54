"""Whether a run of the swarm was as it should be: safety, liveness, receipts, quiet, memory.

A plan is played until its faults have ended and the group is at rest. Then every member says one thing more, for
whoever can do that is not stuck. What is found has a *kind*, by which two failures are told to be the same.
"""

from traceback import extract_tb
from typing import NamedTuple

from inga.model.errors import IngaError
from inga.sim.memory import leaks
from inga.sim.simulator import Sim, Unquiet
from inga.sim.swarm import FAULTS_END, Plan
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

SPEAKERS_MAX = 8
"""Members that say something in the end: of a crowd not all."""


class Finding(NamedTuple):
    """Something wrong: of which kind, and in words."""

    kind: str
    text: str


def judge(plan: Plan) -> list[Finding]:
    """Play a plan, and say what is wrong with it."""
    try:
        sim = plan.sim()
        sim.run(FAULTS_END)
        sim.calm()
        found = _rest(sim, FAULTS_END + CALM_WITHIN, "")
        if not found:
            found = _speak(sim) or _rest(sim, sim.now + CALM_WITHIN, " again")
        sim.finish()
        return [
            *_broken(sim),
            *found,
            *_receipts(sim),
            *_pressure(sim, plan),
            *(() if found else _memory(sim)),
        ]
    except IngaError as error:
        return [Finding(f"error: {type(error).__name__}", f"{type(error).__name__}: {error}")]
    except Unquiet as error:
        return [Finding("unquiet", str(error))]
    except Exception as error:  # whatever a layer raises is a find
        where = extract_tb(error.__traceback__)[-1]
        kind = f"{type(error).__name__} in {where.name}"
        return [Finding(kind, f"{kind}, line {where.lineno} of {where.filename}: {error}")]


def _speak(sim: Sim) -> list[Finding]:
    """One after the other says something: what others say could set free what is stuck."""
    speakers = [site for site in sim.sites if site.is_member]
    speakers.sort(key=lambda site: not site.receipts)  # who has sent before is more likely to be stuck
    for site in speakers[:SPEAKERS_MAX]:
        site.say(HEADER, None)
        sim.run(sim.now + HEARD_WITHIN)
        if found := _undelivered(sim, f" after {site.name} spoke"):
            return found
    return []


def _progress(sim: Sim) -> tuple[int, int]:
    """Messages that were taken, and packets that were sent for the first time."""
    stacks = [site.stack for site in sim.sites if site.newcomer is None]
    return sim.oracle.taken, packets_sent(stack.counts for stack in stacks)["data"]


def _rest(sim: Sim, until: float, when: str) -> list[Finding]:
    """Let it come to rest, and say what does not. As long as something new is sent or arrives it has time: some plans
    are slow, and one large message may go in many pieces."""
    before = (-1, -1)
    sim.run(until)
    while (now := _progress(sim)) > before and until < SLOW_MAX:
        before, until = now, until + CALM_WITHIN
        sim.run(until)
    found = []
    for site in sim.sites:
        name = site.name
        if site.has_left:
            if site in sim.gave_up:
                found.append(Finding("stuck: leave", f"{name} waited in vain to leave"))
        elif site.newcomer is not None and any(other.is_member for other in sim.sites):
            found.append(Finding("stuck: join", f"{name} was neither let in nor refused"))
        elif site.is_member and (site.waiting or not site.stack.writable):
            found.append(Finding("stuck: send", f"{name} cannot send{when}"))
    found += [
        Finding("stuck: use", f"the change that {site.name} asked for did not end")
        for site in sim.asked
        if not site.has_left
    ]
    found += _undelivered(sim, when)
    if not found and sim.network.sent_at > until - QUIET_FOR and any(site.is_member for site in sim.sites):
        found.append(Finding("unquiet", f"somebody still sends, {sim.network.sent_at:g} s from the start"))
    return found


def _undelivered(sim: Sim, when: str) -> list[Finding]:
    missing = [sim.sites[site].name for site, _, promised in sim.oracle.missing() if promised]
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


def _pressure(sim: Sim, plan: Plan) -> list[Finding]:
    """Who does not read is not sent more than it asked for, besides what is under way from each sender."""
    largest = max(
        [action.argument[0] for action in plan.actions if action.do in ("send", "answer")], default=0
    )
    each = 2 * plan.window + PACKETS * max(largest, plan.datagram)
    bound = plan.queue + len(sim.sites) * each
    for site in sim.sites:
        if site.owed_most > bound and not site.has_left:
            text = f"{site.owed_most} bytes were under way to {site.name}, more than {bound}"
            return [Finding("pressure", text)]
    return []


def _memory(sim: Sim) -> list[Finding]:
    """Containers that keep something although all is done."""
    found: dict[str, Finding] = {}
    for site in sim.sites:
        if site.newcomer is None and not site.has_left:
            for place, what in leaks(site.stack):
                found.setdefault(place, Finding(f"memory: {place}", f"{site.name} still has {place}: {what}"))
    return list(found.values())
