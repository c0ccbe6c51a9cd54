"""What is lost is repaired: soon, without end where somebody still lacks it, and not a moment longer."""

import itertools
from collections import Counter

import pytest

from inga.model.errors import Gap
from inga.model.receipt import Receipt

from .group import CASES, PAGE, A, B, C, Case, Group, apart, carries, cut

PAUSE_MAX = 3.0
"""Seconds between two repetitions of anything, with its random part."""

BURST_MAX = 64
"""Packets that are sent again at once."""

DELTA = 0.05
"""Seconds between heartbeats of objects, unless told."""


def settled_twin(case: Case, *, small: bool = False) -> Group:
    """What is kept by a group that never had any trouble."""
    group = Group(case, small=small)
    group.chatter(rounds=2)
    group.heal()
    group.check_working()
    return group


def talked(case: Case, *, small: bool = False, **more: object) -> Group:
    group = Group(case, small=small, **more)
    group.chatter(rounds=2)
    group.heal()
    return group


# Memory and quiet


def test_a_busy_group_keeps_nothing(case: Case) -> None:
    group = talked(case)
    for k in range(20):
        for member in group.present:
            group.say(member, f"{member} talks {k}")
        group.settle()
    group.heal()
    group.check_complete()
    group.check_working()
    group.check_memory(settled_twin(case))


@pytest.mark.parametrize("seed", range(2))
def test_a_storm_leaves_nothing(case: Case, seed: int) -> None:
    """A third of all copies is lost, whatever they are; some messages take several packets."""
    group = talked(case)
    group.rng.seed(seed)
    for k in range(15):
        for member in group.present:
            if group.stacks[member].writable:
                group.say(member, f"{member} shouts {k} ".ljust(4 * PAGE if k % 5 == 0 else 0, "!"))
        group.wait(0.01, lambda flight: group.rng.random() < 0.33)
    group.heal()
    group.check_complete()
    group.check_working()
    group.check_memory(settled_twin(case))


def test_who_has_everything_is_silent(case: Case) -> None:
    group = talked(case)
    before = len(group.log)
    group.wait(1000.0)
    assert len(group.log) == before


# Timers


def test_there_is_a_timer_while_acknowledgements_are_missing(case: Case) -> None:
    group = talked(case)
    receipt = group.say(A, f"{A} is not answered")
    lost = cut((B, A), (C, A))
    for _ in range(40):
        group.wait(0.5, lost)
        assert group.wake[A] is not None
    assert not receipt.has("confirmed")
    group.heal()
    assert receipt.has("confirmed") or not group.confirms()


def test_there_is_a_timer_while_something_is_missing(case: Case) -> None:
    """The sender has gone silent, and who lacks something asks."""
    group = talked(case)
    make_hole(group)
    group.wait(0.3, apart(C))
    for _ in range(20):
        group.wait(0.5, apart(C))
        assert group.wake[C] is not None or group.wake[A] is not None
    group.heal()
    group.check_complete()


def test_what_is_missing_comes_in_a_moment(case: Case) -> None:
    group = talked(case)
    make_hole(group)
    group.wait(0.25)
    group.check_complete(C)


def make_hole(group: Group, *texts: str) -> None:
    """C lacks some of what A says, and has got what follows."""
    texts = texts or ("lost",)
    for text in texts:
        group.say(A, f"{A} {text}")
        group.wait(0.0, lambda flight: flight.target == C)
    group.say(A, f"{A} after {'-'.join(texts)}")
    group.settle()


# Limits of repetition


def lose_all(case: Case, seconds: float) -> list[float]:
    """When A speaks to C, who does not hear a thing, after the first time."""
    group = talked(case)
    start = group.now
    group.say(A, f"{A} speaks to the wall")
    group.wait(seconds, apart(C))
    times = [at - start for at in group.times(A, C, start)]
    group.heal()
    group.check_complete()
    return times


def test_questions_are_repeated_with_growing_bounded_pauses(case: Case) -> None:
    times = lose_all(case, 60.0)
    pauses = [later - at for at, later in itertools.pairwise(times)]
    assert max(pauses) <= PAUSE_MAX, "it goes on asking"
    if case.steady:
        assert len(times) <= 1.1 * 60.0 / DELTA
        return
    assert 15 <= len(times) <= 400, "but not all the time"
    early, late = pauses[: len(pauses) // 4], pauses[-len(pauses) // 4 :]
    assert sum(late) / len(late) >= sum(early) / len(early), "less and less"


def test_a_lost_acknowledgement_does_not_lead_to_endless_repair(case: Case) -> None:
    """Only the words of C are lost, for a minute: what it has is sent again now and then, and no more."""
    group = talked(case)
    for k in range(10):
        group.say(A, f"{A} number {k}")
        group.settle()
    start, before = group.now, group.stacks[A].counts["repair"]
    group.say(A, f"{A} and one more")
    group.wait(60.0, cut((C, A), (C, B)))
    pace = 2 * DELTA if case.steady else 0.35  # at which the slowest repetitions come
    assert group.stacks[A].counts["repair"] - before <= 11 * 60.0 / pace
    assert len(group.times(A, C, start)) <= 3 * 60.0 / pace
    group.heal()
    group.check_complete()
    group.check_working()  # with what C says next, B learns that C has what B keeps for it
    group.check_memory(settled_twin(case))


def test_repairs_for_one_request_are_bounded(case: Case) -> None:
    """A long hole is filled piece by piece: at no moment does more of it leave for C than a burst."""
    group = talked(case)
    for k in range(150):
        if not group.stacks[A].writable:
            break
        group.say(A, f"{A} long hole {k} ".ljust(PAGE, "."))
        group.wait(0.0, lambda flight: flight.target == C)
    repaired = group.stacks[A].counts["repair"]
    group.heal()
    group.check_complete()
    at_once = Counter(
        at for at, f in group.heard if f.target == C and f.source == A and carries(f, "long hole")
    )
    if group.stacks[A].counts["repair"] > repaired + BURST_MAX:
        assert max(list(at_once.values())[1:]) <= 2 * BURST_MAX


# Second episodes


def test_a_second_loss_is_repaired_as_soon_as_the_first(case: Case) -> None:
    """Waits that have grown shrink again when something comes of them."""
    group = talked(case)
    waits = []
    for episode in range(3):
        start = group.now
        group.say(A, f"{A} in episode {episode}")
        group.wait(20.0, apart(C))
        times = [at - start for at in group.times(A, C, start)][:6]
        assert len(times) == 6
        waits.append(times[-1])
        group.heal()
    assert max(waits[1:]) <= case.stretch * waits[0] + 0.01
    group.check_complete()


def test_a_second_hole_is_asked_for_as_soon_as_the_first(case: Case) -> None:
    group = talked(case)
    waits = []
    for episode in range(3):
        make_hole(group, f"hole {episode}")
        start = group.now
        group.wait(20.0, cut((C, A), (C, B)))
        times = [at - start for at in group.times(C, A, start)][:5]
        waits.append(times[-1] if len(times) == 5 else 20.0)
        group.heal()
    assert max(waits[1:]) <= case.stretch * waits[0] + 0.01
    group.check_complete()


STALLING = [case for case in CASES if case.small or case.window]


@pytest.mark.parametrize("case", STALLING, ids=[case.name for case in STALLING])
def test_every_stall_is_told_once(case: Case) -> None:
    group = talked(case, small=True)
    for episode in range(3):
        told = len(group.told[A])
        group.fill(A)
        group.wait(0.1, apart(C))
        group.fill(A)
        assert not group.stacks[A].writable
        group.wait(12.0, apart(C))
        notices = [text for text in group.told[A][told:] if text.startswith("sending has waited")]
        assert len(notices) == 1 and "cathy" in notices[0], f"episode {episode}: {notices}"
        group.heal()
        assert group.stacks[A].writable
    group.check_complete()


@pytest.mark.parametrize("case", STALLING, ids=[case.name for case in STALLING])
def test_a_window_fills_again_and_again(case: Case) -> None:
    group = talked(case, small=True)
    for _ in range(12):
        receipts: list[Receipt] = group.fill(A)
        assert 0 < len(receipts) < 40
        group.heal()
        assert group.stacks[A].writable
        assert receipts[-1].has("confirmed") or not group.confirms()
    group.check_complete()
    group.check_memory(settled_twin(case, small=True))


# Patience

PATIENCE = 6.0
PATIENT = {
    "none": {"patience": PATIENCE},
    "fifo": {"patience": PATIENCE},
    "vector": {"patience": PATIENCE},
    "relay": {"patience": PATIENCE},
    "object": {"patience": PATIENCE},
    "total": {"patience": PATIENCE},
    "co": {},
    "sco": {},
}
"""Recipes whose members give up what nobody repairs after a time."""


def impatient(order: str) -> Group:
    own = {"patience": PATIENCE} if not PATIENT[order] else {}
    group = Group(Case(order, own), **PATIENT[order])
    group.chatter(rounds=2)
    group.heal()
    return group


@pytest.mark.parametrize("order", PATIENT)
def test_what_is_not_repaired_is_a_gap_after_patience(order: str) -> None:
    group = impatient(order)
    source = A
    make_hole(group, "lost")
    lose = cut((C, A), (C, B), (A, C))
    group.wait(0.7 * PATIENCE, lose)
    assert group.errors[C] is None
    group.wait(1.0 * PATIENCE, lose)
    assert isinstance(group.errors[C], Gap)
    assert group.stacks[C].view.names[source] in str(group.errors[C])


@pytest.mark.parametrize("order", PATIENT)
def test_patience_begins_anew_with_every_progress(order: str) -> None:
    """A hole that is filled in part is not lost: the sender is there."""
    group = impatient(order)
    missing = ["first", "second", "third"]
    make_hole(group, *missing)
    for _ in range(2):
        group.wait(0.5 * PATIENCE, cut((A, C)))
        missing.pop(0)
        group.wait(
            1.5, lambda flight: flight.target == C and any(carries(flight, f"{A} {text}") for text in missing)
        )
        assert group.errors[C] is None
    group.wait(0.5 * PATIENCE, cut((A, C)))
    assert group.errors[C] is None
    group.wait(PATIENCE, cut((A, C)))
    assert isinstance(group.errors[C], Gap)


@pytest.mark.parametrize("order", PATIENT)
def test_a_second_hole_has_all_the_patience(order: str) -> None:
    group = impatient(order)
    for episode in range(3):
        make_hole(group, f"hole {episode}")
        group.wait(0.7 * PATIENCE, cut((A, C)))
        assert group.errors[C] is None
        group.heal()
    group.check_complete()
