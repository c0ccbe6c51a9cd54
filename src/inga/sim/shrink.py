"""Shrinking: from a failing run to the smallest one that still fails.

A schedule is shrunk by leaving out messages, then single events, as long as it still breaks a
promise on a board. A failure that needs loss and repair is shrunk as a case: fewer members, fewer
messages, fewer faults, under the same seed. A plan of the swarm loses actions, members and settings, as long as it
fails in the same way.
"""

from collections.abc import Callable, Iterator
from dataclasses import fields, replace

from inga.recipes import Options, find
from inga.sim.board import Board, Build, lossless
from inga.sim.schedule import Schedule, Send, Take
from inga.sim.swarm import SENDS, Action, Plan
from inga.sim.trials import group_of, load, simulate_trial
from inga.trial.trial import Trial

ROUNDS_MAX = 50

TRIES_MAX = 2000
"""The most plans that are played while one is shrunk."""


def breaks(schedule: Schedule, build: Build, guarantees: tuple[str, ...], sites: int = 0) -> bool:
    """Whether playing a schedule violates one of these guarantees."""
    board = Board(max(2, sites, schedule.sites), build)
    return board.play(schedule).count((*guarantees, "flags")) > 0


def shrink_schedule(schedule: Schedule, fails: Callable[[Schedule], bool]) -> Schedule:
    """Return a schedule from which nothing more can be left out without losing the failure."""
    assert fails(schedule), "only a failing schedule can be shrunk"
    for _ in range(ROUNDS_MAX):
        smaller = next((s for s in _smaller(schedule) if fails(s)), None)
        if smaller is None:
            break
        schedule = smaller
    return schedule


def shrink_case(case: Trial, fails: Callable[[Trial], bool]) -> Trial:
    """Reduce the numbers and settings of a case as long as it fails."""
    for _ in range(ROUNDS_MAX):
        smaller = next((c for c in _smaller_cases(case) if fails(c)), None)
        if smaller is None:
            break
        case = smaller
    return case


def shrink_plan(plan: Plan, fails: Callable[[Plan], bool], tries: int = TRIES_MAX) -> Plan:
    """Return the smallest part of a failing plan found that still fails in that way."""
    while tries > 0:
        for candidate in _smaller_plans(plan):
            tries -= 1
            if fails(candidate):
                plan = candidate
                break
            if tries <= 0:
                break
        else:
            break
    return plan


def fails(case: Trial) -> bool:
    """Whether a case breaks a promise, does not end, or raises."""
    try:
        return simulate_trial(case).violations > 0
    except Exception:  # any failure is one
        return True


def smallest(case: Trial) -> tuple[Trial, Schedule | None]:
    """Return the smallest failing part of a case, and a schedule of it if the order alone is to blame."""
    case = shrink_case(case, fails)
    if not find(case.order).direct:
        return case, None
    sim = group_of(case, record=True)
    load(sim, case)
    try:
        sim.run()
    except Exception:  # not a matter of order
        return case, None
    build = lossless(case.order, Options(matrix=case.matrix))

    def broken(schedule: Schedule) -> bool:
        return breaks(schedule, build, sim.guarantees, case.members)

    schedule = sim.schedule
    return case, shrink_schedule(schedule, broken) if broken(schedule) else None


def _smaller(schedule: Schedule) -> Iterator[Schedule]:
    events = schedule.events
    about = [getattr(event, "message", None) for event in events]  # waits and views concern no message
    for number in sorted({message for message in about if message is not None}, reverse=True):
        yield Schedule(tuple(event for event, each in zip(events, about, strict=True) if each != number))
    if any(isinstance(event, Take) for event in events):
        yield Schedule(tuple(event for event in events if not isinstance(event, Take)))
    for at, event in enumerate(events):
        if not isinstance(event, Send):
            yield Schedule(events[:at] + events[at + 1 :])


def _smaller_cases(case: Trial) -> Iterator[Trial]:
    if case.members > 2:
        subset = None if case.subset is None else min(case.subset, case.members - 2)
        yield replace(case, members=case.members - 1, subset=subset)
    for messages in {case.messages // 2, case.messages - 1}:
        if 0 < messages < case.messages:
            yield replace(case, messages=messages)
    plain = Trial()
    for name in (
        "loss",
        "dup",
        "reorder",
        "subset",
        "size",
        "datagram",
        "window",
        "echo",
        "coarse",
        "matrix",
    ):
        if getattr(case, name) != getattr(plain, name):
            yield replace(case, **{name: getattr(plain, name)})


def _smaller_plans(plan: Plan) -> Iterator[Plan]:
    """Yield slightly smaller plans, the most promising first."""
    actions = plan.actions
    part = len(actions) // 2
    while part > 1:
        for start in range(0, len(actions), part):
            yield replace(plan, actions=actions[:start] + actions[start + part :])
        part //= 2
    people = sorted({*range(plan.members), *plan.newcomers}, reverse=True)
    for who in people:
        if who >= plan.members or plan.members > 1:
            yield _without_member(plan, who)
    for at in range(len(actions)):
        yield replace(plan, actions=actions[:at] + actions[at + 1 :])
    plain = Plan(plan.order, plan.members)
    kept = {"order", "members", "seed", "actions", "option"}
    if plan.gather or plan.severed or any(action.do == "crash" for action in actions):
        kept.add("detect")  # without it the others wait for ever, which is another failure
    for field in fields(Plan):
        if field.name not in kept:
            default = getattr(plain, field.name)
            if getattr(plan, field.name) != default:
                yield replace(plan, **{field.name: default})
    for at in range(len(plan.objects) if len(plan.objects) > 1 else 0):
        yield replace(plan, objects=plan.objects[:at] + plan.objects[at + 1 :])
    for at in range(len(plan.reluctant) if len(plan.reluctant) > 1 else 0):
        yield replace(plan, reluctant=plan.reluctant[:at] + plan.reluctant[at + 1 :])
    for at in range(len(plan.option)):
        yield replace(plan, option=plan.option[:at] + plan.option[at + 1 :])
    for at, action in enumerate(actions):
        for simpler in _simpler(action):
            yield replace(plan, actions=(*actions[:at], simpler, *actions[at + 1 :]))


def _simpler(action: Action) -> Iterator[Action]:
    if action.do in ("send_first", "send_many", "answer"):
        yield action._replace(do="send")
    if action.do in SENDS:
        size, destinations, count = action.argument
        if count > 1:
            yield action._replace(argument=(size, destinations, count // 2))
        if destinations is not None:
            yield action._replace(argument=(size, None, count))
        if size > 40:
            yield action._replace(argument=(40, destinations, count))


def _without_member(plan: Plan, who: int) -> Plan:
    """Return the plan without one member; each member after it moves one index down."""

    def moved(member: int) -> int:
        return member - (member > who)

    actions = []
    for action in plan.actions:
        if action.who == who:
            continue
        argument = action.argument
        if action.do in SENDS and argument[1] is not None:
            size, destinations, count = argument
            destinations = tuple(moved(each) for each in destinations if each != who)
            if not destinations:
                continue
            argument = (size, destinations, count)
        actions.append(action._replace(who=moved(action.who), argument=argument))
    members = plan.members - (who < plan.members)
    severed = tuple((moved(one), moved(other)) for one, other in plan.severed if who not in (one, other))
    objects = tuple(tuple(moved(each) for each in copies if each != who) for copies in plan.objects)
    reluctant = tuple((moved(each), do, after) for each, do, after in plan.reluctant if each != who)
    return replace(
        plan, members=members, actions=tuple(actions), severed=severed, objects=objects, reluctant=reluctant
    )
