"""Members that leave: nothing is held against them or their senders that follows from it, and all else is."""

from collections.abc import Sequence
from random import Random

import pytest

from inga.certify.certificate import certify
from inga.certify.verdict import Certificate
from inga.trace import Row

from .test_answers import deliver, failed, named, send, step
from .world import Trace, renumbered, source

FIFO = ("integrity", "complete", "fifo", "stamps")
CAUSAL = (*FIFO, "causal")
ALL = (*CAUSAL, "atomic", "total", "views")

FIRST, SECOND, THIRD = (0, 0, 0), (1, 0, 0), (2, 0, 0)
"""What precedes p0's messages."""


def leave(at: int, peer: int, view: int = 1) -> Row:
    return Row(at, 0, 0, "leave", view, peer=peer)


def view(at: int, number: int) -> Row:
    return Row(at, 0, 0, "view", number)


def judged(trace: Trace, guarantees: Sequence[str] = ALL) -> Certificate:
    made = source(Random(1), [renumbered(rows) for rows in trace])
    made.guarantees = guarantees
    return certify(made, ALL, seed=1)


def ordinary() -> Trace:
    """p2 leaves after p0's first message; the second was on its way, the third is sent afterwards."""
    return [
        [view(0, 1), send(0, 1, FIRST), send(0, 2, SECOND), leave(0, 2), send(0, 3, THIRD)],
        [
            view(1, 1),
            deliver(1, 0, 1, FIRST),
            leave(1, 2),
            deliver(1, 0, 2, SECOND),
            deliver(1, 0, 3, THIRD),
        ],
        [view(2, 1), deliver(2, 0, 1, FIRST), leave(2, 2)],
    ]


@pytest.mark.parametrize("guarantees", [ALL, FIFO, ("integrity", "complete")])
def test_an_ordinary_leave(guarantees: Sequence[str]) -> None:
    certificate = judged(ordinary(), guarantees)
    assert {check.name: check.verdict for check in certificate.checks} == dict.fromkeys(ALL, "pass")


def test_who_left_without_a_delivery() -> None:
    trace = ordinary()
    del trace[2][1]
    assert judged(trace).verdict == "pass"


def test_who_hears_a_goodbye_is_still_owed_everything() -> None:
    trace = ordinary()
    del trace[1][-1]
    certificate = judged(trace)
    assert failed(certificate) == ["complete"]
    assert named(certificate, "complete").violations == 1
    (witness,) = named(certificate, "complete").witnesses
    assert (witness.process, witness.message) == (1, (0, 3))


def test_what_others_say_of_a_member_excuses_nothing() -> None:
    """A forged goodbye: p2 never said that it left, and lacks two messages."""
    trace = ordinary()
    del trace[2][-1]
    certificate = judged(trace)
    assert failed(certificate) == ["complete", "atomic", "views"]
    assert named(certificate, "complete").violations == 2


def test_what_a_member_passed_over_before_it_left() -> None:
    """It delivered the third message, so it did not miss the second by leaving."""
    trace = ordinary()
    trace[2].insert(2, deliver(2, 0, 3, THIRD))
    certificate = judged(trace)
    assert failed(certificate) == ["complete"]
    (witness,) = named(certificate, "complete").witnesses
    assert (witness.process, witness.message) == (2, (0, 2))
    assert failed(judged(trace, FIFO)) == ["complete"]
    assert failed(judged(trace, ("integrity", "complete"))) == [], "without an order it may come later"


def test_what_a_delivered_message_depends_on() -> None:
    """p1 answers p0's first message; p2 has the answer and not what was answered."""
    answer = (1, 0, 0)
    trace: Trace = [
        [send(0, 1, FIRST), deliver(0, 1, 1, answer), leave(0, 2)],
        [deliver(1, 0, 1, FIRST), send(1, 1, answer), leave(1, 2)],
        [deliver(2, 1, 1, answer), leave(2, 2)],
    ]
    certificate = judged(trace, CAUSAL)
    assert failed(certificate) == ["complete"]
    assert [each.message for each in named(certificate, "complete").witnesses] == [(0, 1)]
    assert failed(judged(trace, FIFO)) == [], "fifo says nothing about two senders"


def test_what_a_member_delivered_before_it_left_is_judged() -> None:
    trace = ordinary()
    trace[2][1:2] = [deliver(2, 0, 2, SECOND), deliver(2, 0, 1, FIRST)]
    assert failed(judged(trace)) == ["fifo", "causal", "total"]


def test_what_a_member_sent_before_it_left_is_owed_to_those_who_stay() -> None:
    trace: Trace = [
        [send(0, 1, FIRST), leave(0, 0)],
        [deliver(1, 0, 1, FIRST), leave(1, 0)],
        [leave(2, 0)],
    ]
    certificate = judged(trace)
    assert failed(certificate) == ["complete", "atomic"]
    assert [(each.process, each.message) for each in named(certificate, "complete").witnesses] == [
        (2, (0, 1))
    ]
    trace[2].append(deliver(2, 0, 1, FIRST))
    assert failed(judged(trace)) == []


def test_two_leave_at_once() -> None:
    """Neither is owed the last words of the other."""
    trace: Trace = [[send(0, 1, FIRST), leave(0, 0)], [send(1, 1, FIRST), leave(1, 1)], []]
    trace[2] = [deliver(2, 0, 1, FIRST), leave(2, 0), deliver(2, 1, 1, FIRST), leave(2, 1)]
    assert failed(judged(trace)) == []


def test_what_is_confirmed_need_not_be_accepted_by_who_left() -> None:
    trace = ordinary()
    trace[1].append(step("confirm", 1, 0, 3, THIRD))
    trace[1].append(step("accept", 1, 0, 3, THIRD))
    assert failed(judged(trace)) == []
    del trace[2][-1]
    found = [each.text for each in named(judged(trace), "atomic").witnesses]
    assert any("was confirmed, but p2 never accepted it" in text for text in found), found


def test_a_view_that_a_member_came_through_before_it_left() -> None:
    """p2 installed view 2, so it owes what others delivered in view 1, and nothing of view 2."""
    trace: Trace = [
        [view(0, 1), send(0, 1, FIRST), view(0, 2), send(0, 2, SECOND, view=2), leave(0, 2, 2)],
        [view(1, 1), deliver(1, 0, 1, FIRST), view(1, 2), deliver(1, 0, 2, SECOND, view=2), leave(1, 2, 2)],
        [view(2, 1), deliver(2, 0, 1, FIRST), view(2, 2), leave(2, 2, 2)],
    ]
    assert failed(judged(trace)) == []
    del trace[2][1]
    assert failed(judged(trace)) == ["atomic", "views"], "it may have missed it by leaving, but not in view 1"
