"""The order of messages at several processes: `total`, `object` and `views`, against their statements."""

from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inga.certify import agree
from inga.certify.certificate import certify
from inga.certify.chain import Step
from inga.certify.combine import Process
from inga.certify.local import Chunks
from inga.certify.orders import KEYS_MAX
from inga.certify.scan import NEVER
from inga.certify.verdict import Answer
from inga.model.invocation import ANY_KEY
from inga.trace import Row

from .world import Trace, misplaced, renumbered, source

METHODS = ("a", "b", "c")


def answer(made: Chunks, check: str, **more: Any) -> Answer:
    return certify(made, [check], **more).checks[0]


def sent(at: int, seq: int, n: int, **more: Any) -> Row:
    return Row(at, 0, 0, "send", more.get("view", 1), at, seq, more.get("dst"), (0,) * n, 1, n=1)


def got(at: int, src: int, seq: int, n: int, step: str = "deliver", **more: Any) -> Row:
    deps = more.get("deps", (0,) * n)
    return Row(at, 0, 0, step, more.get("view", 1), src, seq, None, deps, sum(deps) + 1, op=more.get("op"))


def nearly_total(random: Random, n: int, messages: int, step: str = "deliver", **more: Any) -> Trace:
    """All have the same order, but for some messages that a process lacks, and some that it has elsewhere."""
    order = [(random.randrange(n), 0) for _ in range(messages)]
    counts = [0] * n
    for at, (src, _) in enumerate(order):
        counts[src] += 1
        order[at] = (src, counts[src])
    if more.get("shuffled_senders"):  # numbers do not say when: no process has them in order
        random.shuffle(order)
    method = {message: random.choice(METHODS) for message in order}
    trace: Trace = []
    for at in range(n):
        mine = [message for message in order if random.random() < more.get("share", 0.8)]
        for _ in range(random.randrange(3) if more.get("broken") else 0):
            if mine:
                message = mine.pop(random.randrange(len(mine)))
                mine.insert(random.randrange(len(mine) + 1), message)
        rows = [
            got(
                at,
                *message,
                n,
                step,
                op=method[message],
                deps=_some(random, n, counts, more.get("past", 0.0)),
            )
            for message in mine
        ]
        rows += [sent(at, seq, n) for seq in range(1, counts[at] + 1)]
        trace.append(renumbered(rows))
    return trace


def _some(random: Random, n: int, counts: list[int], share: float) -> tuple[int, ...]:
    return tuple(random.randrange(count + 1) if random.random() < share else 0 for count in counts)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(2, 5),
    messages=st.integers(1, 40),
    cuts=st.integers(0, 8),
    share=st.sampled_from([0.3, 0.8, 1.0]),
    broken=st.booleans(),
    shuffled_senders=st.booleans(),
)
def test_late_in_another_order(
    seed: int, n: int, messages: int, cuts: int, share: float, broken: bool, shuffled_senders: bool
) -> None:
    random = Random(seed)
    trace = nearly_total(random, n, messages, share=share, broken=broken, shuffled_senders=shuffled_senders)
    expected = misplaced(trace, "deliver", lambda at, one, other: True)
    check = answer(source(random, trace, cuts=cuts), "total", witnesses=10**6)
    assert check.violations == len(expected)
    is_judged = any(row.step == "deliver" for rows in trace for row in rows)
    assert check.verdict == ("fail" if expected else "pass" if is_judged else "unknown")
    assert {(each.process, *each.message) for each in check.witnesses} == expected
    for each in check.witnesses:
        assert each.other is not None and each.against is not None
        here, there = trace[each.process], trace[each.against[0]]
        message, other = each.message, each.other
        assert [(here[pos - 1].src, here[pos - 1].seq) for pos in (each.pos, each.other_pos)] == [
            message,
            other,
        ]
        assert [(there[pos - 1].src, there[pos - 1].seq) for pos in each.against[1:]] == [message, other]
        assert each.other_pos < each.pos and each.against[1] < each.against[2]
        assert_linked(each.chain, trace, {message, other})


def assert_linked(chain: list[Step], trace: Trace, ends: set[tuple[int, int]]) -> None:
    """From one message to the other, each step at its place, and each following from the one before."""
    if not chain:
        return
    assert {chain[0].message, chain[-1].message} == ends
    for step in chain:
        row = trace[step.process][step.pos - 1]
        assert (row.step, (row.src, row.seq)) == (step.step, step.message)
    for one, next_ in pairwise(chain):
        is_later = one.process == next_.process and one.pos < next_.pos
        is_received = one.step == "send" and next_.step != "send" and one.message == next_.message
        assert is_later or is_received


def test_messages_in_different_orders_may_be_cause_and_effect() -> None:
    n = 4
    answered = [
        renumbered([sent(0, 1, n)]),
        renumbered([got(1, 0, 1, n), sent(1, 1, n)]),
        renumbered([got(2, 0, 1, n), got(2, 1, 1, n)]),
        renumbered([got(3, 1, 1, n), got(3, 0, 1, n)]),
    ]
    (witness,) = answer(source(Random(1), answered), "total").witnesses
    assert witness.text.endswith(
        "; message 1 of p0 precedes message 1 of p1: p1 had message 1 of p0 when it sent message 1 of p1"
    )
    steps = [(0, 1, "send"), (1, 1, "deliver"), (1, 2, "send")]
    assert [(step.process, step.pos, step.step) for step in witness.chain] == steps
    (witness,) = answer(
        source(Random(1), [answered[0], renumbered([sent(1, 1, n)]), *answered[2:]]), "total"
    ).witnesses
    assert witness.text.endswith("; neither precedes the other") and witness.chain == []


def test_a_row_is_counted_once_however_many_are_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts list few of their late rows, and are asked again for those that lie across."""
    monkeypatch.setattr(agree, "LATE_MAX", 1)
    for seed in range(20):
        random = Random(seed)
        trace = nearly_total(random, 4, 40, shuffled_senders=True, broken=True)
        for _ in range(20):
            rows = random.choice(trace)
            rows.insert(random.randrange(len(rows) + 1), rows.pop(random.randrange(len(rows))))
        trace = [renumbered(rows) for rows in trace]
        expected = misplaced(trace, "deliver", lambda at, one, other: True)
        for witnesses in (0, 5):
            check = answer(source(random, trace, cuts=6), "total", witnesses=witnesses)
            assert (check.violations, check.reason) == (len(expected), "")
            assert len(check.witnesses) == min(witnesses, len(expected))


def test_messages_are_compared_across_parts() -> None:
    """The two lie a hundred messages and several segments apart: no part holds both."""
    n, count = 3, 100
    order = [(0, seq) for seq in range(1, count + 1)]
    moved = [*order[1:], order[0]]
    trace = [
        renumbered([*(sent(0, seq, n) for seq in range(1, count + 1))]),
        renumbered([got(1, *message, n) for message in order]),
        renumbered([got(2, *message, n) for message in moved]),
    ]
    check = answer(source(Random(1), trace, cuts=8), "total")
    assert check.violations == 1
    (witness,) = check.witnesses
    assert witness.text.startswith("p2 delivered message ") and witness.message == (0, 1)
    assert witness.against is not None and witness.against[:2] == (1, 1)


def disagreements_missed(seeds: range) -> int:
    """How many traces are judged otherwise than by the statement."""
    missed = 0
    for seed in seeds:
        random = Random(seed)
        trace = nearly_total(random, 4, 30, broken=True, shuffled_senders=seed % 2 == 0)
        expected = misplaced(trace, "deliver", lambda at, one, other: True)
        missed += answer(source(random, trace, cuts=6), "total").violations != len(expected)
    return missed


def test_without_a_look_across_parts_something_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert disagreements_missed(range(20)) == 0
    monkeypatch.setattr(agree.Agreement, "_across", lambda self, judged, highs: [])
    assert disagreements_missed(range(20)) > 0


def test_a_wrong_idea_of_what_lies_across_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if only later parts mattered."""

    def of(judged: list[agree.Judged], parts: int, n: int) -> agree.Edges:
        edges = right(judged, parts, n)
        edges.begun[:] = NEVER
        return edges

    right = agree.Edges.of
    monkeypatch.setattr(agree.Edges, "of", of)
    assert disagreements_missed(range(20)) > 0


def test_too_much_across_leaves_it_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agree, "ACROSS_MAX", 3)
    trace = nearly_total(Random(3), 3, 40, shuffled_senders=True)
    check = answer(source(Random(3), trace, cuts=8), "total")
    assert check.verdict == "unknown" and "far from where others have them" in check.reason


def test_who_is_alone_is_the_cause() -> None:
    n = 4
    trace = [renumbered([got(at, 0, 1, n), got(at, 1, 1, n)]) for at in range(n)]
    trace[0] = renumbered([got(0, 1, 1, n), got(0, 0, 1, n)])
    certificate = certify(source(Random(1), trace), ["total"])
    assert [(group.cause, group.count) for group in certificate.groups] == [
        ("p0 delivered messages in another order than others", 3)
    ]


# ---- objects


def late_requests(trace: Trace, conflicts: dict[str, list[list[str]]]) -> list[tuple[int, int, int]]:
    """Rows after something that began before and depends on them, by the vectors alone."""
    found = []
    for at, rows in enumerate(trace):
        starts = [row for row in rows if row.step == "start"]
        for place, row in enumerate(starts):
            if any(
                other.deps[row.src] >= row.seq and concerned(conflicts, at, row, other)  # type: ignore[index, operator]
                for other in starts[:place]
            ):
                found.append((at, row.src, row.seq))
    return found  # type: ignore[return-value]


def concerned(conflicts: dict[str, list[list[str]]], at: int, one: Row, other: Row) -> bool:
    return any({one.op, other.op} == set(pair) for pair in conflicts.get(f"p{at}", []))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), n=st.integers(2, 4), messages=st.integers(1, 25), cuts=st.integers(0, 6))
def test_requests_that_conflict(seed: int, n: int, messages: int, cuts: int) -> None:
    random = Random(seed)
    pairs = [[one, other] for one in METHODS for other in METHODS if one <= other]
    conflicts = {f"p{at}": [pair for pair in pairs if random.random() < 0.5] for at in range(n)}
    past = random.choice([0.0, 0.05, 0.5])
    trace = nearly_total(random, n, messages, "start", broken=True, past=past)
    crossed = misplaced(trace, "start", lambda at, one, other: concerned(conflicts, at, one, other))
    late = late_requests(trace, conflicts)
    made = source(random, trace, cuts=cuts)
    made.conflicts = conflicts
    check = answer(made, "object", witnesses=10**6)
    assert check.violations == len(crossed) + len(late)
    assert {(each.process, *each.message) for each in check.witnesses} == crossed | set(late)
    for each in check.witnesses:
        assert each.other is not None and each.other_pos < each.pos
        row = trace[each.process][each.other_pos - 1]
        assert (row.src, row.seq) == each.other
        assert each.text


def test_requests_are_linked_by_what_began_with_them() -> None:
    n = 3
    trace = [
        renumbered([got(0, 0, 1, n, "request", op="inc")]),
        renumbered(
            [got(1, 0, 1, n, "start", op="inc"), got(1, 1, 1, n, "request", op="show", deps=(1, 0, 0))]
        ),
        renumbered([got(2, 1, 1, n, "start", op="show", deps=(1, 0, 0)), got(2, 0, 1, n, "start", op="inc")]),
    ]
    for cuts in (0, 3):
        made = source(Random(1), trace, cuts=cuts)
        made.conflicts = {name: [["inc", "show"]] for name in ("p0", "p1", "p2")}
        check = answer(made, "object")
        (witness,) = check.witnesses
        assert witness.text == (
            "p2 began message 1 of p0 after message 1 of p1, which it precedes: p1 had message 1 of p0 when it sent it"
        )
        steps = [(0, 1, "request"), (1, 1, "start"), (1, 2, "request")]
        assert [(step.process, step.pos, step.step) for step in witness.chain] == steps


def test_what_does_not_conflict_may_begin_in_any_order() -> None:
    n = 2
    trace = [
        renumbered([got(0, 0, 1, n, "start", op="inc"), got(0, 1, 1, n, "start", op="dec")]),
        renumbered([got(1, 1, 1, n, "start", op="dec"), got(1, 0, 1, n, "start", op="inc")]),
    ]
    made = source(Random(1), trace)
    made.conflicts = {"p0": [["inc", "show"]], "p1": [["inc", "dec"]]}
    assert answer(made, "object").verdict == "pass"  # they conflict at one of the two only
    made.conflicts = {"p0": [["inc", "dec"]], "p1": [["dec", "inc"]]}
    check = answer(made, "object")
    assert check.violations == 1
    assert check.witnesses[0].text == (
        "p1 began dec (message 1 of p1) before inc (message 1 of p0), but p0 the other way round, at positions 1 and 2"
    )


def test_without_declared_conflicts_objects_are_open() -> None:
    trace = [renumbered([got(0, 0, 1, 1, "start", op="inc")])]
    check = answer(source(Random(1), trace), "object")
    assert (check.verdict, check.reason) == ("unknown", "the manifest does not say which methods conflict")
    made = source(Random(1), [renumbered([sent(0, 1, 1)])])
    made.conflicts = {}
    assert answer(made, "object").reason == "no object began with a request"


@pytest.mark.parametrize("declared", [{}, {"p0": [["key 0", "key 0"]], "p1": [["key 0", "key 0"]]}])
def test_requests_whose_conflicts_their_arguments_decide_are_open(
    declared: dict[str, list[list[str]]],
) -> None:
    """Two keys that a function gave: nothing of this was compared, so nothing of it can pass."""
    n = 2
    trace = [
        renumbered([got(0, 0, 1, n, "start", op="key x"), got(0, 1, 1, n, "start", op="key x")]),
        renumbered([got(1, 1, 1, n, "start", op="key x"), got(1, 0, 1, n, "start", op="key x")]),
    ]
    made = source(Random(1), trace)
    made.conflicts = declared
    check = answer(made, "object")
    assert (check.verdict, check.violations) == ("unknown", 0)
    assert check.reason == (
        "no request that began has a method that the manifest's conflicts name: arguments may decide"
    )
    made.conflicts = {"p0": [["key x", "key x"]], "p1": [["key x", "key x"]]}
    assert answer(made, "object").violations == 1


def test_pairs_that_arguments_decide_leave_the_rest_open() -> None:
    """Edits that conflict or not by their paragraphs are not compared: what else was, passes or fails all the same."""
    n = 2
    edits = [("edit", 0, 1), ("render", 0, 2), ("edit", 1, 1), ("look", 1, 2)]

    def trace(*orders: list[int]) -> Trace:
        return [
            renumbered([got(at, edits[i][1], edits[i][2], n, "start", op=edits[i][0]) for i in order])
            for at, order in enumerate(orders)
        ]

    made = source(Random(1), trace([0, 1, 2, 3], [0, 1, 2, 3]))
    made.conflicts = {"p0": [["edit", "render"]], "p1": [["edit", "render"]]}
    assert answer(made, "object").verdict == "pass"
    made.undecided = {"p0": [["look", "render"], ["look", "look"]]}
    assert "at p0, p1: not judged" in (answer(made, "object").reason or ""), (
        "one that joined later is as others"
    )
    made.undecided = {"p0": [["look", "render"], ["look", "look"]], "p1": [["edit", "edit"]]}
    check = answer(made, "object")
    assert (check.verdict, check.violations) == ("unknown", 0)
    assert check.reason == (
        "arguments decide whether look and render conflict, at p0: not judged; "
        "arguments decide whether edit and edit conflict, at p1: not judged"
    ), "one look alone is in no order"
    made = source(Random(1), trace([0, 1, 2, 3], [1, 0, 2, 3]))
    made.conflicts = {"p0": [["edit", "render"]], "p1": [["edit", "render"]]}
    made.undecided = {"p1": [["edit", "edit"]]}
    assert answer(made, "object").verdict == "fail", "what is wrong is wrong"


def test_messages_of_one_key_that_a_function_gave_are_judged() -> None:
    n = 2
    trace = [
        renumbered([got(0, 0, 1, n, "start", op="key 'x'"), got(0, 1, 1, n, "start", op="key 'x'")]),
        renumbered([got(1, 1, 1, n, "start", op="key 'x'"), got(1, 0, 1, n, "start", op="key 'x'")]),
    ]
    made = source(Random(1), trace)
    made.conflicts = {"p0": [[ANY_KEY, ANY_KEY]], "p1": [[ANY_KEY, ANY_KEY]]}
    assert answer(made, "object").violations == 1
    apart = [
        [rows[0]._replace(op=f"key {at}"), rows[1]._replace(op=f"key {1 - at}")]
        for at, rows in enumerate(trace)
    ]
    made = source(Random(1), apart)
    made.conflicts = {"p0": [[ANY_KEY, ANY_KEY]], "p1": [[ANY_KEY, ANY_KEY]]}
    assert answer(made, "object").verdict == "pass"


@pytest.mark.parametrize(("keys", "verdict"), [(KEYS_MAX, "pass"), (KEYS_MAX + 1, "unknown")])
def test_more_keys_than_are_compared_cannot_pass(keys: int, verdict: str) -> None:
    trace = [renumbered([got(0, 0, key + 1, 1, "start", op=f"key {key}") for key in range(keys)])]
    made = source(Random(1), trace)
    made.conflicts = {"p0": [[ANY_KEY, ANY_KEY]]}
    check = answer(made, "object")
    assert check.verdict == verdict
    assert (check.reason or "").startswith("messages have 65 keys") == (verdict == "unknown")


def test_requests_without_vectors_leave_precedence_open() -> None:
    trace = [renumbered([got(0, 0, 1, 1, "start", op="inc")._replace(deps=None)])]
    made = source(Random(1), trace)
    made.conflicts = {"p0": [["inc", "inc"]]}
    assert answer(made, "object").reason == "1 requests began without deps"


# ---- views


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), n=st.integers(2, 5), views=st.integers(1, 3), subsets=st.booleans())
def test_survivors_deliver_the_same(seed: int, n: int, views: int, subsets: bool) -> None:
    random = Random(seed)
    ends = [random.choice([views, views, random.randrange(1, views + 1)]) for _ in range(n)]
    begins = [random.choice([1, 1, random.randrange(1, end + 1)]) for end in ends]
    gone = [end < views or random.random() < 0.2 for end in ends]
    trace, meant = some_views(random, n, begins, ends, subsets)
    processes = [
        Process(f"p{at}", begins[at], len(rows), complete=True, crashed=gone[at])
        for at, rows in enumerate(trace)
    ]
    made = source(random, trace)
    made.processes = processes
    sent_in = {(r.src, r.seq): r.view for rows in trace for r in rows if r.step == "send"}
    expected = [
        (at, *message)
        for at, rows in enumerate(trace)
        for message in {(r.src, r.seq): None for r in rows if r.step == "deliver"}
        if next(r.view for r in rows if r.step == "deliver" and (r.src, r.seq) == message) != sent_in[message]
    ]
    for view in range(1, views + 1):
        through = [at for at in range(n) if begins[at] <= view and (ends[at] > view or not gone[at])]
        for message, targets in meant.items():
            has = {
                at: any(r.step == "deliver" and (r.src, r.seq, r.view) == (*message, view) for r in trace[at])
                for at in through
                if at != message[0]
            }
            expected += [(at, *message) for at in has if any(has.values()) and not has[at] and at in targets]
    for at, rows in enumerate(trace):
        for row in rows:
            in_force = [each.view for each in rows if each.step == "view" and each.pos <= row.pos][-1]
            expected += [(at, row.src, row.seq)] * (row.step != "view" and row.view != in_force)
    check = answer(made, "views", witnesses=10**6)
    assert {(each.process, *each.message) for each in check.witnesses} == set(expected)
    assert check.violations == len(expected)


def some_views(
    random: Random, n: int, begins: list[int], ends: list[int], subsets: bool
) -> tuple[Trace, dict[tuple[int, int], set[int]]]:
    """In each view some messages, of which now and then one is lost, delivered only in the next view, or there as one of
    the view before."""
    late: Trace = [[] for _ in range(n)]  # the rows of these, until that view begins
    trace: Trace = [[] for _ in range(n)]
    meant: dict[tuple[int, int], set[int]] = {}
    counts = [0] * n
    for view in range(1, max(ends) + 1):
        members = [at for at in range(n) if begins[at] <= view <= ends[at]]
        for at in members:
            trace[at] += [Row(at, 0, 0, "view", view), *late[at]]
            late[at] = []
        for src in members:
            for _ in range(random.randrange(3)):
                counts[src] += 1
                dst = random.randrange(1 << n) & ~(1 << src) if subsets else None
                trace[src].append(sent(src, counts[src], n, view=view, dst=dst))
                targets = {at for at in range(n) if begins[at] <= view} - {src}
                if dst is not None:
                    targets = {at for at in range(n) if dst >> at & 1}
                meant[src, counts[src]] = targets
                for at in targets & set(members):
                    if random.random() < 0.9:
                        is_late = view < ends[at] and random.random() < 0.1
                        label = view + (is_late and random.random() < 0.5)
                        (late if is_late else trace)[at].append(got(at, src, counts[src], n, view=label))
    return [renumbered(rows) for rows in trace], meant


def test_without_views_there_is_nothing_to_survive() -> None:
    check = answer(source(Random(1), [renumbered([sent(0, 1, 1)])]), "views")
    assert (check.verdict, check.reason) == ("unknown", "no row tells of a view")


def test_a_message_that_one_survivor_lacks() -> None:
    n = 3
    trace: Trace = [
        [Row(0, 0, 0, "view", 1), sent(0, 1, n), Row(0, 0, 0, "view", 2)],
        [Row(1, 0, 0, "view", 1), got(1, 0, 1, n), Row(1, 0, 0, "view", 2)],
        [Row(2, 0, 0, "view", 1), Row(2, 0, 0, "view", 2)],
    ]
    rows = [renumbered(each) for each in trace]
    certificate = certify(source(Random(1), rows), ["views"])
    (witness,) = certificate.checks[0].witnesses
    assert witness.text == (
        "message 1 of p0 was delivered in view 1 by others that came through it, but not in it at p2; "
        "p1 has it at position 2"
    )
    assert [(step.process, step.pos, step.step) for step in witness.chain] == [
        (0, 2, "send"),
        (1, 2, "deliver"),
        (2, 2, "view"),
    ]
    assert witness.against == (1, 2, 0)
    assert certificate.groups[0].cause == "p2 lacks messages of p0 that others delivered in the same view"
    made = source(Random(1), [rows[0], rows[1], rows[2][:1]], process_2={"complete": True, "crashed": True})
    assert answer(made, "views").verdict == "pass"  # it did not come through
