"""From a failing run to the smallest one that still fails.

A schedule is shrunk by leaving out messages, then single events, as long as it still breaks the same
promise on a board. What fails only with loss and repair is shrunk as a case: fewer members, fewer
messages, fewer faults, under the same seed.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from inga.recipes import Options, find
from inga.sim.board import Board, Build, lossless
from inga.sim.case import Case
from inga.sim.schedule import Schedule, Send, Take

ROUNDS_MAX = 50


def breaks(schedule: Schedule, build: Build, guarantees: tuple[str, ...], sites: int = 0) -> bool:
    """Whether playing it violates one of these."""
    board = Board(max(2, sites, schedule.sites), build)
    return board.play(schedule).count((*guarantees, "flags")) > 0


def shrink_schedule(schedule: Schedule, fails: Callable[[Schedule], bool]) -> Schedule:
    """A schedule from which nothing can be left out any more without losing the failure."""
    assert fails(schedule), "only a failing schedule can be shrunk"
    for _ in range(ROUNDS_MAX):
        smaller = next((s for s in _smaller(schedule) if fails(s)), None)
        if smaller is None:
            break
        schedule = smaller
    return schedule


def shrink_case(case: Case, fails: Callable[[Case], bool]) -> Case:
    """Fewer of everything, as long as it fails."""
    for _ in range(ROUNDS_MAX):
        smaller = next((c for c in _smaller_cases(case) if fails(c)), None)
        if smaller is None:
            break
        case = smaller
    return case


def fails(case: Case) -> bool:
    """Whether a case breaks a promise, does not end, or raises."""
    try:
        return case.run().violations > 0
    except Exception:  # any failure is one
        return True


def smallest(case: Case) -> tuple[Case, Schedule | None]:
    """The least of a failing case, and a schedule of it if the order alone is to blame."""
    case = shrink_case(case, fails)
    if not find(case.order).direct:
        return case, None
    sim = case.sim(record=True)
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
    about = [getattr(event, "message", None) for event in events]  # waits and views concern none
    for number in sorted({message for message in about if message is not None}, reverse=True):
        yield Schedule(tuple(event for event, each in zip(events, about, strict=True) if each != number))
    if any(isinstance(event, Take) for event in events):
        yield Schedule(tuple(event for event in events if not isinstance(event, Take)))
    for at, event in enumerate(events):
        if not isinstance(event, Send):
            yield Schedule(events[:at] + events[at + 1 :])


def _smaller_cases(case: Case) -> Iterator[Case]:
    if case.members > 2:
        subset = None if case.subset is None else min(case.subset, case.members - 2)
        yield replace(case, members=case.members - 1, subset=subset)
    for messages in {case.messages // 2, case.messages - 1}:
        if 0 < messages < case.messages:
            yield replace(case, messages=messages)
    plain = Case()
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
