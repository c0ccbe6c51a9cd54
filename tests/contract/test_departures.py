"""A member leaves while work is outstanding: the others go on, and keep nothing for it."""

import pytest

from inga.recipes import find, names
from inga.sim import Sim

from .group import CASES, PAGE, A, B, C, Case, Group, apart, carries, cut


def after_leaving(case: Case) -> Group:
    """What is kept by a group that one has left without any trouble."""
    group = Group(case, small=True)
    group.chatter(rounds=2)
    group.heal()
    group.leave(C)
    group.heal()
    group.check_working()
    return group


def check_goes_on(group: Group) -> None:
    group.heal()
    group.check_working()
    group.check_memory(after_leaving(group.case))


def test_every_reliable_recipe_is_a_case() -> None:
    wanted = {find(name).name for name in names()} - {"miop"}  # which repairs nothing
    assert {case.order for case in CASES} == wanted


def test_others_wait_for_its_acknowledgements(case: Case) -> None:
    group = Group(case, small=True)
    group.chatter(rounds=2)
    group.wait(1)
    receipts = (
        group.fill(A) if case.small or case.window else [group.say(A, f"{A} and {k}") for k in range(9)]
    )
    group.wait(0.5, cut((C, A), (C, B)))
    if group.confirms():
        assert not receipts[-1].has("confirmed")
    group.leave(C)
    group.heal()
    if group.confirms():
        assert all(receipt.has("confirmed") for receipt in receipts)
    check_goes_on(group)
    group.check_complete(B)


def test_it_has_holes(case: Case) -> None:
    """It asks for what nobody may repair, until it leaves."""
    group = Group(case, small=True)
    group.chatter(rounds=2)
    group.wait(1)
    for k in range(12):
        if group.stacks[A].writable:
            group.say(A, f"{A} hole {k}.")
        group.wait(0.02, lambda f: f.target == C and any(carries(f, f"hole {n}.") for n in range(0, 12, 2)))
    group.leave(C, lose=lambda f: f.target == C and carries(f, "hole"))
    check_goes_on(group)
    group.check_complete(B)


def test_it_leaves_holes(case: Case) -> None:
    """What is lost of it at both others is lost for good, and nobody waits for it."""
    group = Group(case, small=True)
    group.chatter(rounds=2)
    group.wait(1)
    sent = 0
    for k in range(12):
        if group.stacks[C].writable:
            group.say(C, f"{C} hole {k}.")
            sent += 1
        group.wait(0.02, lambda f: f.source == C and (carries(f, "hole 1.") or carries(f, "hole 3.")))
    assert sent > 2 and "2 hole 1." not in group.texts(A)
    group.leave(C, lose=lambda f: f.source == C and carries(f, "hole"))
    group.heal()
    for member in (A, B):
        assert group.stacks[member].writable
        group.say(member, f"{member} is still here")
    check_goes_on(group)


def test_it_leaves_in_the_middle_of_a_message(case: Case) -> None:
    """Only the first piece of a message gets through, which is of no use to anybody."""
    group = Group(case, small=True)
    group.chatter(rounds=2)
    group.wait(1)
    group.send(C, b"begins here ".ljust(4 * PAGE, b"."))
    lost = "." * 200
    group.wait(0.05, lambda f: f.source == C and carries(f, lost) and not carries(f, "begins here"))
    group.leave(C, lose=lambda f: f.source == C and carries(f, lost))
    check_goes_on(group)


def test_a_partial_bundle_is_on_its_way_to_it(case: Case) -> None:
    """The next bundle waits for company until somebody has the last one: nobody will say so any more."""
    group = Group(case)
    group.chatter(rounds=2)
    group.wait(1)
    group.say(A, f"{A} for the one who leaves", to=1 << C)
    group.say(A, f"{A} for the one who stays", to=1 << B)
    group.wait(0.1, apart(C))
    group.leave(C)
    group.heal()
    assert f"{A} for the one who stays" in group.texts(B)
    group.say(A, f"{A} and on")
    group.heal()
    assert f"{A} and on" in group.texts(B)


@pytest.mark.parametrize("deaf", [(A,), (A, B)])
def test_its_goodbyes_are_lost_for_a_while(case: Case, deaf: tuple[int, ...]) -> None:
    group = Group(case, small=True)
    group.chatter(rounds=2)
    group.wait(1)
    group.stacks[C].goodbye(now=group.now)
    group.turn(C)
    group.wait(1.0, lambda flight: flight.source == C and flight.target in deaf)
    assert not group.stacks[C].has_left
    group.wait(2.0)
    assert group.stacks[C].has_left
    group.end(C)
    group.say(A, f"{A} goes on")
    check_goes_on(group)


def test_it_leaves_before_it_has_been_told_of(case: Case) -> None:
    """One of the others never hears a goodbye: it asks, and is told by the one who has."""
    group = Group(case, small=True)
    group.chatter(rounds=2)
    group.wait(1)
    group.stacks[C].goodbye(now=group.now)
    group.turn(C)
    group.wait(20.0, lambda flight: flight.source == C and flight.target == A)
    group.end(C)
    group.fill(A)
    group.wait(30.0)
    assert group.names(A) == ("alice", "bob")
    check_goes_on(group)


def test_who_has_left_says_nothing_more(case: Case) -> None:
    """However long its driver goes on: it neither asks nor answers, and has no timer."""
    group = Group(case, small=True)
    group.chatter(rounds=2)
    group.fill(C)
    group.stacks[C].goodbye(now=group.now)
    group.turn(C)
    group.wait(5.0)
    assert group.stacks[C].has_left
    for member in (A, B):
        group.say(member, f"{member} goes on")
    before = len(group.heard)
    group.wait(60.0)
    assert not [flight for _, flight in group.heard[before:] if flight.source == C]
    assert group.wake[C] is None


def test_it_does_not_wait_for_others_to_fall_silent(case: Case) -> None:
    """There is always something under way between the others; that is no reason to stay."""
    sim = Sim("alice", "bob", "cathy", order=case.order, options=case.options(), record=False)
    for site in sim.sites:
        site.send(b"here")
    sim.run(1.0)
    now = 1.0
    while not sim["cathy"].has_left:
        assert now < 2.0, "it would wait for ever"
        for name in ("alice", "bob"):
            sim[name].send(bytes(100))
        now += 0.005
        sim.run(now)
        if sim["cathy"].is_member:
            sim["cathy"].leave()
    sim.run()
    assert not sim.gave_up
    sim.check()
