"""Which numbers a leader gives to newcomers, over the attempts of a change."""

from pathlib import Path
from random import Random

from inga.model.view import Member, View
from inga.recipes import Options, find
from inga.session.reserved import ReservedNumbers
from inga.session.session import Session
from inga.sim.recording import MemberTraces, Recording
from inga.stack.stack import Stack
from inga.trial.manifest import manifest_of

NAMES = ("alice", "bob")
CATHY, DAVE, ERIN = map(Member, ("cathy", "dave", "erin"))


def stack_of(me: int) -> Stack:
    view = View.of(*NAMES, recipe="vector", traced=True)
    return Stack(find("vector").build(Options()), me, view, rng=Random(0), now=0.0)


def test_without_a_trace_numbers_follow_those_of_the_view() -> None:
    alice, bob = ReservedNumbers(), ReservedNumbers()
    assert list(alice.reserve(stack_of(0), [CATHY, DAVE])) == [2, 3]
    assert list(alice.reserve(stack_of(0), [DAVE])) == [2]
    assert list(bob.reserve(stack_of(1), [ERIN])) == [2]


def recorded(directory: Path, *stacks: Stack) -> Recording:
    """All of these write to one trace."""
    manifest = manifest_of(find("vector"), NAMES, None, group="lunch", source="sim", full=True, seed=1)
    recording = Recording(directory, manifest, len(NAMES), full=True)
    for stack in stacks:
        stack.book = MemberTraces(recording, stack)
    return recording


def test_who_was_in_the_last_attempt_keeps_its_number(tmp_path: Path) -> None:
    here, there = stack_of(0), stack_of(1)
    recorded(tmp_path, here, there)
    alice, bob = ReservedNumbers(), ReservedNumbers()
    assert alice.reserve(here, [CATHY]) == [2]
    assert bob.reserve(there, [CATHY]) == [3], "another leader cannot know that"
    assert alice.reserve(here, [CATHY, DAVE]) == [2, 4]
    assert alice.reserve(here, [ERIN, DAVE]) == [5, 4]
    assert alice.reserve(here, [DAVE, CATHY]) == [4, 6], "cathy was gone for a while"
    alice.view()
    assert alice.reserve(here, [CATHY]) == [7], "in another view she may be another process already"


def test_one_that_goes_on_alone_is_a_process_that_nobody_else_is(tmp_path: Path) -> None:
    bob = stack_of(1)
    recorded(tmp_path, bob).reserve(3, 2)  # alice lets others in
    session = bob.layer(Session.name)
    assert isinstance(session, Session)
    session.changes.go_on_alone()
    assert bob.views.next is not None
    view, *_ = bob.views.next
    assert (view.names, view.processes, view.total) == (("bob",), (5,), 6)
