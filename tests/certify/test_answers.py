"""Traces small enough to read, one for each thing that a check can say."""

from random import Random

import pytest

from inga.certify.certificate import certify
from inga.certify.verdict import Answer, Certificate
from inga.trace import Row

from .world import Trace, renumbered, source


def send(at: int, seq: int, deps: tuple[int, ...], dst: int | None = None, **more: int) -> Row:
    return Row(at, 0, 0, "send", more.get("view", 1), at, seq, dst, deps, sum(deps) + 1, n=1)


def step(name: str, at: int, src: int, seq: int, deps: tuple[int, ...] | None, view: int = 1) -> Row:
    return Row(at, 0, 0, name, view, src, seq, None, deps, None if deps is None else sum(deps) + 1)


def deliver(at: int, src: int, seq: int, deps: tuple[int, ...] | None, view: int = 1) -> Row:
    return step("deliver", at, src, seq, deps, view)


ORDER = ("integrity", "complete", "fifo", "stamps", "causal")
"""The checks that need neither levels nor control rows."""


def lunch() -> Trace:
    """Alice asks, Bob answers, Cathy hears the answer first: the lecture's example."""
    question, answer = (0, 0, 0), (1, 0, 0)
    return [
        [send(0, 1, question), deliver(0, 1, 1, answer)],
        [deliver(1, 0, 1, question), send(1, 1, answer)],
        [deliver(2, 1, 1, answer), deliver(2, 0, 1, question)],
    ]


def judged(trace: Trace, receipt: str = "deliver", **changes: object) -> Certificate:
    rows = [renumbered(each) for each in trace]
    return certify(source(Random(1), rows, receipt, **changes), ORDER, seed=1)


def named(certificate: Certificate, name: str) -> Answer:
    return next(check for check in certificate.checks if check.name == name)


def failed(certificate: Certificate) -> list[str]:
    return [check.name for check in certificate.checks if check.verdict == "fail"]


def test_an_answer_before_its_question() -> None:
    certificate = judged(lunch())
    assert failed(certificate) == ["causal"]
    (witness,) = named(certificate, "causal").witnesses
    assert witness.text == (
        "p2 delivered message 1 of p1 before message 1 of p0, which precedes it: "
        "p1 had message 1 of p0 when it sent it"
    )
    assert (witness.process, witness.pos, witness.message) == (2, 2, (0, 1))
    assert (witness.other, witness.other_pos) == ((1, 1), 1)
    assert [(link.process, link.pos, link.step) for link in witness.chain] == [
        (0, 1, "send"),
        (1, 1, "deliver"),
        (1, 2, "send"),
    ]


def test_the_chain_is_the_shortest() -> None:
    """Dave knows of a:1 from Bob by way of Cathy, and later from Alice herself."""
    a, b, c = (0, 0, 0, 0), (1, 0, 0, 0), (1, 1, 0, 0)
    d = (1, 1, 1, 0)
    trace = [
        [send(0, 1, a)],
        [deliver(1, 0, 1, a), send(1, 1, b)],
        [deliver(2, 0, 1, a), deliver(2, 1, 1, b), send(2, 1, c)],
        [deliver(3, 2, 1, c), deliver(3, 0, 1, a), deliver(3, 1, 1, b), send(3, 1, d)],
    ]
    trace[0] += [deliver(0, 3, 1, d), deliver(0, 1, 1, b), deliver(0, 2, 1, c)]
    trace[1] += [deliver(1, 3, 1, d), deliver(1, 2, 1, c)]
    trace[2] += [deliver(2, 3, 1, d)]
    certificate = judged(trace)
    assert failed(certificate) == ["causal"]
    chains = {
        each.message: each.chain for each in named(certificate, "causal").witnesses if each.process == 3
    }
    assert [(link.process, link.message) for link in chains[0, 1]] == [(0, (0, 1)), (2, (0, 1)), (2, (2, 1))]


def test_messages_of_one_sender_out_of_order() -> None:
    first, second = (0, 0), (1, 0)
    trace = [
        [send(0, 1, first), send(0, 2, second)],
        [deliver(1, 0, 2, second), deliver(1, 0, 1, first)],
    ]
    certificate = judged(trace)
    assert failed(certificate) == ["fifo", "causal"]
    assert [(group.count, sorted(group.checks)) for group in certificate.groups] == [(1, ["causal", "fifo"])]


def test_more_violations_than_are_listed_still_have_their_groups() -> None:
    """Hundreds of late messages of one sender come before the first late one of another."""
    many = 3000
    trace: Trace = [
        [send(0, seq, (seq - 1, 0, 0)) for seq in range(1, many + 1)],
        [send(1, 1, (0, 0, 0)), send(1, 2, (0, 1, 0))],
        [
            deliver(2, 0, many, (many - 1, 0, 0)),
            *(deliver(2, 0, seq, (seq - 1, 0, 0)) for seq in range(1, many)),
            deliver(2, 1, 2, (0, 1, 0)),
            deliver(2, 1, 1, (0, 0, 0)),
        ],
    ]
    trace[0] += [deliver(0, 1, 1, (0, 0, 0)), deliver(0, 1, 2, (0, 1, 0))]
    trace[1] += [deliver(1, 0, seq, (seq - 1, 0, 0)) for seq in range(1, many + 1)]
    certificate = judged(trace)
    assert named(certificate, "causal").violations == many
    assert [group.count for group in certificate.groups] == [many - 1, 1]


def test_what_follows_from_one_row_a_thousand_times_goes_under_it() -> None:
    """A number that was never sent makes all that come after it late: too many to look at each."""
    many = 1000
    deps = [(seq, 0, 0) for seq in range(many)]
    trace: Trace = [
        [send(0, seq, deps[seq - 1]) for seq in range(1, many + 1)],
        [deliver(1, 0, seq, deps[seq - 1]) for seq in range(1, many + 1)],
        [
            deliver(2, 0, 5 * many, deps[0]),
            *(deliver(2, 0, seq, deps[seq - 1]) for seq in range(1, many + 1)),
        ],
    ]
    certificate = judged(trace)
    assert named(certificate, "causal").violations == many
    assert [(group.cause, group.count) for group in certificate.groups] == [
        ("p2 delivered a message of p0 that was never sent", many + 1)
    ]


def test_two_messages_that_name_each_other_are_a_cycle() -> None:
    one, two = (0, 1, 0), (1, 0, 0)
    trace: Trace = [
        [send(0, 1, one), deliver(0, 1, 1, two)],
        [send(1, 1, two), deliver(1, 0, 1, one)],
        [deliver(2, 0, 1, one), deliver(2, 1, 1, two)],
    ]
    assert "by their vectors the two are a cycle" in named(judged(trace), "causal").witnesses[0].text


def test_a_long_chain_is_told_by_its_ends() -> None:
    """A message goes from hand to hand; the last one has it before it has the first."""
    n = 40
    trace: Trace = [[] for _ in range(n)]
    for at in range(n - 1):
        past = [(1,) * src + (0,) * (n - src) for src in range(n)]
        if at:
            trace[at].append(deliver(at, at - 1, 1, past[at - 1]))
        trace[at].append(send(at, 1, past[at], dst=1 << at + 1 | (1 << n - 1 if at == 0 else 0)))
    trace[-1] = [deliver(n - 1, n - 2, 1, past[n - 2]), deliver(n - 1, 0, 1, past[0])]
    witness = named(judged(trace), "causal").witnesses[0]
    assert len(witness.chain) > n
    assert (
        "p3 when" not in witness.text and " more messages, and " in witness.text and len(witness.text) < 500
    )


def test_a_message_that_was_not_for_it() -> None:
    trace: Trace = [
        [send(0, 1, (0, 0, 0), dst=0b010)],
        [deliver(1, 0, 1, (0, 0, 0))],
        [deliver(2, 0, 1, (0, 0, 0))],
    ]
    certificate = judged(trace)
    assert failed(certificate) == ["integrity"]
    assert named(certificate, "integrity").witnesses[0].text == (
        "p2 delivered message 1 of p0, which was not addressed to it"
    )


def test_a_message_that_never_came() -> None:
    certificate = judged([[send(0, 1, (0, 0, 0))], [deliver(1, 0, 1, (0, 0, 0))], []])
    assert failed(certificate) == ["complete"]
    assert named(certificate, "complete").violations == 1
    assert certificate.groups[0].cause == "message 1 of p0 was lost"


def test_one_lost_message_is_one_cause() -> None:
    certificate = judged([[send(0, 1, (0, 0, 0))], [], []])
    assert [(group.cause, group.count) for group in certificate.groups] == [("message 1 of p0 was lost", 2)]


def test_a_wrong_stamp_is_the_root_of_what_it_makes_late() -> None:
    """p1 claims to have seen p0's second message, so everybody seems to deliver that one late."""
    claimed = (2, 0, 0)
    trace = [
        [send(0, 1, (0, 0, 0)), send(0, 2, (1, 0, 0)), deliver(0, 1, 1, claimed)],
        [deliver(1, 0, 1, (0, 0, 0)), send(1, 1, claimed), deliver(1, 0, 2, (1, 0, 0))],
        [deliver(2, 0, 1, (0, 0, 0)), deliver(2, 1, 1, claimed), deliver(2, 0, 2, (1, 0, 0))],
    ]
    certificate = judged(trace)
    assert failed(certificate) == ["stamps", "causal"]
    (group,) = certificate.groups
    assert group.cause == "p1 stamped message 1 of p1 with a wrong vector"
    assert group.count == 2
    assert "by its vector only" in named(certificate, "causal").witnesses[0].text


def test_a_restarted_process_is_one_cause() -> None:
    zero = (0, 0)
    trace = [
        [send(0, 1, zero), send(0, 2, (1, 0)), send(0, 1, zero)],
        [deliver(1, 0, 1, zero), deliver(1, 0, 2, (1, 0)), deliver(1, 0, 1, zero)],
    ]
    certificate = judged(trace)
    assert failed(certificate) == ["integrity", "fifo", "stamps", "causal"]
    (group,) = certificate.groups
    assert group.cause == "p0 counts again from message 1 at position 3"


def test_echoes_owe_nothing_but_must_be_sent() -> None:
    zero = (0, 0)
    echoed: Trace = [[send(0, 1, zero), deliver(0, 0, 1, zero), send(0, 2, (1, 0))], []]
    echoed[1] = [deliver(1, 0, 1, zero), deliver(1, 0, 2, (1, 0))]
    assert judged(echoed).verdict == "pass"  # one of two
    echoed[0].append(deliver(0, 0, 1, zero))
    assert "integrity" in failed(judged(echoed))
    echoed[0][-1] = deliver(0, 0, 7, zero)
    assert "integrity" in failed(judged(echoed))


@pytest.mark.parametrize("crashed", [True, False])
def test_a_killed_member_leaves_questions_open(crashed: bool) -> None:
    """p1 was killed after its first send: neither its lost rows nor what they would explain is a failure."""
    zero, second = (0, 0, 0), (0, 1, 0)
    trace = [
        [deliver(0, 1, 1, zero), deliver(0, 1, 2, second), send(0, 1, (0, 2, 0))],
        [send(1, 1, zero)],
        [deliver(2, 1, 1, zero), deliver(2, 1, 2, second), deliver(2, 0, 1, (0, 2, 0))],
    ]
    certificate = judged(trace, process_1={"complete": False, "crashed": crashed})
    assert [check.verdict for check in certificate.checks] == ["unknown"] * 5
    assert named(certificate, "complete").reason == "rows of p1 are missing after position 1"
    assert certificate.groups == []


def test_a_failure_outranks_a_hole() -> None:
    certificate = judged(lunch(), process_0={"complete": False, "crashed": True})
    assert certificate.verdict == named(certificate, "causal").verdict == "fail"
    assert named(certificate, "causal").reason


def test_who_crashed_need_not_deliver() -> None:
    trace: Trace = [[send(0, 1, (0, 0, 0))], [deliver(1, 0, 1, (0, 0, 0))], []]
    assert judged(trace, process_2={"complete": True, "crashed": True}).verdict == "pass"
    trace[2] = [Row(2, 0, 0, "leave", 1)]
    assert judged(trace).verdict == "pass"


def test_without_vectors_order_is_unknown_but_numbers_are_judged() -> None:
    trace: Trace = [
        [send(0, 1, (0, 0)), send(0, 2, (1, 0))],
        [deliver(1, 0, 1, None), deliver(1, 0, 2, None)],
    ]
    certificate = judged(trace)
    verdicts = {check.name: check.verdict for check in certificate.checks}
    assert verdicts == {
        "integrity": "pass",
        "complete": "pass",
        "fifo": "pass",
        "stamps": "unknown",
        "causal": "unknown",
    }
    assert named(certificate, "causal").reason == "2 deliveries have no deps"


def test_everybody_means_those_of_the_view() -> None:
    """p2 joined in view 2: what was sent in view 1 is not for it."""
    trace: Trace = [
        [send(0, 1, (0, 0, 0)), send(0, 2, (1, 0, 0), view=2)],
        [deliver(1, 0, 1, (0, 0, 0)), deliver(1, 0, 2, (1, 0, 0), view=2)],
        [deliver(2, 0, 2, (1, 0, 0), view=2)],
    ]
    rows = [renumbered(each) for each in trace]
    made = source(Random(1), rows)
    assert "complete" in failed(certify(made, ORDER))
    made.processes[2] = type(made.processes[2])("p2", 2, 1, complete=True, crashed=False)  # type: ignore[index]
    assert certify(made, ORDER).verdict == "pass"


def test_what_a_closed_view_lost_it_lost_by_agreement() -> None:
    trace: Trace = [[send(0, 1, (0, 0)), Row(0, 0, 0, "flush", 1), send(0, 2, (1, 0), view=2)], []]
    trace[1] = [Row(1, 0, 0, "flush", 1), deliver(1, 0, 2, (1, 0), view=2)]
    assert judged(trace).verdict == "pass"


def test_what_a_trace_cannot_tell_is_unknown() -> None:
    (check,) = certify(source(Random(1), [renumbered(each) for each in lunch()]), ["clocks"]).checks
    assert (check.verdict, check.reason) == ("unknown", "there are no events of an imported log")


def test_nothing_proves_nothing() -> None:
    assert judged([[], []]).verdict == "unknown"


def test_a_clock_that_goes_back_is_named_with_the_row() -> None:
    """Also across segments, and not for the later rows that are after it again."""
    times = [10, 20, 5, 30, 25, 40]
    rows = [send(0, seq, (seq - 1,))._replace(time=at * 10**9) for seq, at in enumerate(times, 1)]
    answer = certify(source(Random(3), [renumbered(rows)], "deliver"), ["time"]).checks[0]
    assert (answer.verdict, answer.violations) == ("fail", 2)
    assert [(each.pos, each.text) for each in answer.witnesses][:1] == [
        (3, "p0 has a time that is 15 s earlier than one before it")
    ]


def test_a_clock_may_go_back_by_more_than_a_number_of_64_bits_holds() -> None:
    rows = [send(0, seq, (seq - 1,))._replace(time=at) for seq, at in enumerate([2**62, -(2**62) - 1], 1)]
    answer = certify(source(Random(3), [renumbered(rows)], "deliver"), ["time"]).checks[0]
    assert answer.witnesses[0].text == "p0 has a time that is 9.22e+09 s earlier than one before it"
