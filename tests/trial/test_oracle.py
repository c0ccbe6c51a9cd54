"""The judge itself: runs made by hand, one for each way to break a promise."""

from itertools import permutations
from random import Random

import pytest

from inga.trial.oracle import FORGET_EVERY, WITNESSES_MAX, Oracle
from inga.trial.result import judge

A, B, C, D = range(4)


def violations(oracle: Oracle) -> dict[str, int]:
    oracle.finish()
    return {name: number for name, number in oracle.violations.items() if number}


def test_a_run_as_it_should_be() -> None:
    oracle = Oracle(3)
    oracle.send(A, 1)
    oracle.take(B, 1)
    oracle.send(B, 2)
    for site, message in ((C, 1), (C, 2), (A, 2)):
        oracle.take(site, message)
    assert violations(oracle) == {}
    assert (oracle.sent, oracle.taken, oracle.expected, oracle.related) == (2, 4, 4, 1)
    assert oracle.witnesses == []


def test_a_message_that_never_comes() -> None:
    oracle = Oracle(3)
    oracle.send(A, 1)
    oracle.take(B, 1)
    assert violations(oracle) == {"complete": 1}
    assert oracle.witnesses == ["complete: site 2 never took message 1"]


def test_a_message_taken_twice() -> None:
    oracle = Oracle(2)
    oracle.send(A, 1)
    oracle.take(B, 1)
    oracle.take(B, 1)
    assert violations(oracle) == {"integrity": 1}
    assert oracle.taken == 2


def test_a_message_nobody_sent() -> None:
    oracle = Oracle(2)
    oracle.take(B, 7)
    assert violations(oracle) == {"integrity": 1}
    assert "nobody sent" in oracle.witnesses[0]


def test_a_message_for_others() -> None:
    oracle = Oracle(3)
    oracle.send(A, 1, 1 << B)
    oracle.take(B, 1)
    oracle.take(C, 1)
    assert violations(oracle) == {"integrity": 1}
    assert "not for it" in oracle.witnesses[0]


def test_an_own_message_is_for_others_unless_addressed_to_oneself() -> None:
    oracle = Oracle(2)
    oracle.send(A, 1)
    oracle.take(A, 1)
    oracle.take(B, 1)
    assert violations(oracle) == {"integrity": 1}
    oracle = Oracle(2)
    oracle.send(A, 1, 0b11)
    oracle.take(A, 1)
    oracle.take(B, 1)
    assert violations(oracle) == {}


def test_a_sender_overtaken_by_itself() -> None:
    oracle = Oracle(2)
    oracle.send(A, 1)
    oracle.send(A, 2)
    oracle.take(B, 2)
    oracle.take(B, 1)
    assert violations(oracle) == {"fifo": 1, "causal": 1}, "causal contains fifo"
    assert "fifo: site 1 took 2 before 1 of the same sender" in oracle.witnesses


def test_the_numbers_of_messages_mean_nothing() -> None:
    """What was sent first counts, whatever it is called: also 0."""
    for first, second in permutations((0, 5, 9), 2):
        oracle = Oracle(2)
        oracle.send(A, first)
        oracle.send(A, second)
        oracle.take(B, second)
        oracle.take(B, first)
        assert violations(oracle) == {"fifo": 1, "causal": 1}
        oracle = Oracle(2)
        oracle.send(A, first)
        oracle.send(A, second)
        oracle.take(B, first)
        oracle.take(B, second)
        assert violations(oracle) == {}


def test_an_effect_before_its_cause() -> None:
    oracle = Oracle(3)
    oracle.send(A, 1)
    oracle.take(B, 1)
    oracle.send(B, 2)
    oracle.take(C, 2)
    oracle.take(C, 1)
    oracle.take(A, 2)
    assert violations(oracle) == {"causal": 1}
    assert oracle.witnesses == ["causal: site 2 took message 2 before its cause 1"]


def test_a_cause_of_a_cause() -> None:
    oracle = Oracle(4)
    oracle.send(A, 1, 1 << B | 1 << D)
    oracle.take(B, 1)
    oracle.send(B, 2, 1 << C)
    oracle.take(C, 2)
    oracle.send(C, 3, 1 << D)
    oracle.take(D, 3)
    oracle.take(D, 1)
    assert violations(oracle) == {"causal": 1}


def test_a_cause_that_was_never_addressed_here_is_no_reason_to_wait() -> None:
    oracle = Oracle(3)
    oracle.send(A, 1, 1 << B)
    oracle.take(B, 1)
    oracle.send(B, 2)
    oracle.take(C, 2)
    oracle.take(A, 2)
    assert violations(oracle) == {}


def test_what_was_never_taken_caused_nothing() -> None:
    oracle = Oracle(3)
    oracle.send(A, 1)
    oracle.send(B, 2)  # B has not taken 1
    oracle.take(C, 2)
    for site in (B, C):
        oracle.take(site, 1)
    oracle.take(A, 2)
    assert violations(oracle) == {}
    assert oracle.related == 0


def test_a_late_message_counts_once_where_it_is_taken() -> None:
    oracle = Oracle(3)
    oracle.send(A, 1)
    oracle.take(B, 1)
    for message in (2, 3, 4):
        oracle.send(B, message)
        oracle.take(C, message)
    oracle.take(C, 1)
    assert oracle.violations == {"causal": 1}


def test_whether_a_message_is_concurrent_with_something_known() -> None:
    oracle = Oracle(3)
    oracle.send(A, 1)
    assert not oracle.take(B, 1)
    oracle.send(B, 2)
    oracle.send(C, 3)
    assert oracle.take(C, 1), "C knows its own 3"
    assert oracle.take(B, 3), "B knows 1 and 2"
    assert not oracle.take(A, 2), "2 follows all that A knows"
    assert oracle.take(A, 3)


def test_what_is_known_only_by_hearsay_is_not_known() -> None:
    """C took 2, whose cause 1 was for B alone: 3 is concurrent with 1, but C never saw 1."""
    oracle = Oracle(4)
    oracle.send(A, 1, 1 << B)
    oracle.take(B, 1)
    oracle.send(B, 2, 1 << C)
    assert not oracle.take(C, 2)
    oracle = Oracle(3)
    oracle.send(A, 1, 1 << B)
    oracle.send(A, 2, 1 << C)
    assert not oracle.take(C, 2)


def test_an_echo_is_never_concurrent() -> None:
    oracle = Oracle(2)
    oracle.send(A, 1, 0b11)
    oracle.send(B, 2)
    oracle.take(A, 2)
    assert not oracle.take(A, 1)


def test_related_pairs() -> None:
    oracle = Oracle(2)
    for message in range(5):
        oracle.send(A, message)
    assert oracle.related == 0 + 1 + 2 + 3 + 4
    oracle.take(B, 1)  # it knows 0 by hearsay: as a cause of 1
    oracle.send(B, 5)
    assert oracle.related == 10 + 2


def test_all_are_counted_and_some_described() -> None:
    oracle = Oracle(2)
    for message in range(100):
        oracle.send(A, message)
    assert violations(oracle) == {"complete": 100}
    assert len(oracle.witnesses) == WITNESSES_MAX


def test_a_message_is_sent_once() -> None:
    oracle = Oracle(2)
    oracle.send(A, 1)
    with pytest.raises(AssertionError, match="sent twice"):
        oracle.send(B, 1)


def test_promised_and_unpromised() -> None:
    oracle = Oracle(3)
    oracle.send(A, 1)
    oracle.send(A, 2)
    oracle.take(B, 2)
    oracle.take(B, 1)
    oracle.finish()
    assert judge(oracle, ("integrity", "fifo")) == (1, {"complete": 2, "causal": 1})
    assert judge(oracle, ("integrity",)) == (0, {"complete": 2, "fifo": 1, "causal": 1})
    assert judge(oracle, ("integrity", "complete", "fifo", "causal")) == (4, {})
    oracle.blame("flags", "a wrong flag is nobody's promise and everybody's")
    assert judge(oracle, ("integrity",))[0] == 1


class Sets:
    """The same judgement with Python's own sets: slow and plain."""

    def __init__(self, members: int) -> None:
        self.known: list[set[int]] = [set() for _ in range(members)]
        self.order: list[list[int]] = [[] for _ in range(members)]
        self.causes: dict[int, set[int]] = {}
        self.sender: dict[int, int] = {}

    def send(self, site: int, message: int) -> None:
        self.causes[message] = set(self.known[site])
        self.sender[message] = site
        self.known[site].add(message)

    def take(self, site: int, message: int) -> bool:
        seen = {m for m in self.causes if self.sender[m] == site} | set(self.order[site])
        concurrent = {m for m in seen if m not in self.causes[message]}
        self.order[site].append(message)
        self.known[site] |= {message} | self.causes[message]
        return bool(concurrent)

    def late(self, *, own: bool) -> int:
        """Messages taken after something they caused; of the same sender only, if `own`."""
        return sum(
            any(
                message in self.causes[earlier] and (not own or self.sender[earlier] == self.sender[message])
                for earlier in order[:at]
            )
            for order in self.order
            for at, message in enumerate(order)
        )


@pytest.mark.parametrize("forget_every", [2, 8, FORGET_EVERY])
def test_like_plain_sets_on_random_runs(forget_every: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However early it forgets what is over."""
    monkeypatch.setattr("inga.trial.oracle.FORGET_EVERY", forget_every)
    total = 0
    for seed in range(150):
        rng = Random(seed)
        members = rng.randint(2, 5)
        oracle, sets = Oracle(members), Sets(members)
        under_way: list[tuple[int, int]] = []
        numbers = rng.sample(range(40), 20)
        while numbers or under_way:
            if numbers and rng.random() < 0.4:
                site, message = rng.randrange(members), numbers.pop()
                oracle.send(site, message)
                sets.send(site, message)
                under_way += [(other, message) for other in range(members) if other != site]
            elif under_way:
                site, message = under_way.pop(rng.randrange(len(under_way)))
                assert oracle.take(site, message) == sets.take(site, message)
        oracle.finish()
        expected = {"causal": sets.late(own=False), "fifo": sets.late(own=True)}
        assert dict(oracle.violations) == {name: n for name, n in expected.items() if n}
        assert oracle.related == sum(map(len, sets.causes.values()))
        total += oracle.violations["causal"]
    assert total > 500


def test_a_long_run_is_judged_in_the_memory_of_what_is_under_way() -> None:
    oracle = Oracle(3)
    for message in range(5 * FORGET_EVERY):
        oracle.send(message % 3, message)
        for site in range(3):
            if site != message % 3:
                assert not oracle.take(site, message)
    assert max(known.bit_length() for known in oracle._known) <= 2 * FORGET_EVERY
    assert violations(oracle) == {}
    assert oracle.related == oracle.sent * (oracle.sent - 1) // 2
    oracle.take(B, 3)
    assert oracle.violations == {"integrity": 1}, "what is forgotten was taken"


def test_what_is_forgotten_may_still_be_concurrent_with_what_comes() -> None:
    """C said y before it heard anything of A, and B gets y last of all."""
    oracle = Oracle(3)
    early = FORGET_EVERY // 2 + 10
    for message in range(early):
        oracle.send(A, message)
        oracle.take(B, message)
    y = early
    oracle.send(C, y)
    oracle.take(A, y)
    for message in range(early):
        oracle.take(C, message)
    for message in range(early + 1, FORGET_EVERY + 5):
        oracle.send(A, message, 1 << C)
        oracle.take(C, message)
    assert oracle.take(B, y), "concurrent with all that B took of A"
    assert violations(oracle) == {}


def test_it_sees_two_messages_in_different_orders_only_where_their_keys_are_equal() -> None:
    oracle = Oracle(4, {"total": lambda message: 0, "object": lambda message: message % 2 or None})
    for message, sender in ((1, 0), (2, 0), (3, 1)):
        oracle.send(sender, message, 0b1100)
    for message in (1, 2, 3):
        oracle.take(2, message)
    for message in (3, 2, 1):
        oracle.take(3, message)
    oracle.finish()
    assert oracle.violations["total"] == 2, "2 and 1 come after 3 here, before it there"
    assert oracle.violations["object"] == 1, "2 has no key, so it is in nobody's way"
    assert "object: site 3 took message 3 before 1, site 2 after it" in oracle.witnesses


def test_sites_that_agree_are_not_blamed_and_what_only_one_took_does_not_matter() -> None:
    oracle = Oracle(3, {"total": lambda message: 0})
    for message, sender, dst in ((1, 0, 0b110), (2, 1, 0b101), (3, 2, 0b011), (4, 0, 0b111)):
        oracle.send(sender, message, dst)
    for site, taken in enumerate([(3, 2, 4), (1, 3, 4), (1, 2, 4)]):
        for message in taken:
            oracle.take(site, message)
    oracle.finish()
    assert not oracle.count(("total", "integrity", "complete"))


# Orders that change


def changing() -> Oracle:
    """First without any order, then causal."""
    oracle = Oracle(3)
    oracle.promises = {1: ("integrity", "complete"), 2: ("integrity", "complete", "fifo", "causal")}
    return oracle


def broken(oracle: Oracle) -> dict[str, int]:
    oracle.finish()
    return {name: number for name, number in oracle.broken.items() if number}


@pytest.mark.parametrize(
    ("epoch", "expected"), [(1, {}), (2, {"fifo": 1, "causal": 1}), (3, {"fifo": 1, "causal": 1})]
)
def test_what_is_promised_depends_on_when_it_was_sent(epoch: int, expected: dict[str, int]) -> None:
    oracle = changing()
    oracle.send(A, 1, 1 << B, epoch=epoch)
    oracle.send(A, 2, 1 << B, epoch=epoch)
    oracle.take(B, 2)
    oracle.take(B, 1)
    assert broken(oracle) == expected
    assert violations(oracle) == {"fifo": 1, "causal": 1}, "counted all the same"


def test_nothing_of_an_order_comes_after_something_of_the_next() -> None:
    oracle = changing()
    oracle.send(A, 1, 1 << C, epoch=1)
    oracle.send(B, 2, 1 << C, epoch=2)
    oracle.take(C, 2)
    oracle.take(C, 1)
    assert broken(oracle) == {"views": 1}


def test_of_several_effects_one_that_was_promised_to_wait_counts() -> None:
    oracle = changing()
    oracle.send(A, 1, 1 << B, epoch=1)
    oracle.send(A, 2, 1 << B, epoch=1)
    oracle.send(A, 3, 1 << B, epoch=2)
    for message in (2, 3, 1):
        oracle.take(B, message)
    assert broken(oracle) == {"fifo": 1, "causal": 1, "views": 1}
    assert "causal: site 1 took message 3 before its cause 1" in oracle.witnesses


def test_completeness_may_not_be_promised() -> None:
    oracle = Oracle(2)
    oracle.promises = {0: ("integrity",)}
    oracle.send(A, 1)
    assert list(oracle.missing()) == [(B, 1, False)]
    assert broken(oracle) == {} and violations(oracle) == {"complete": 2}


# Who is not there any more, and who was not there yet


def go_on(oracle: Oracle, name: str, *members: int, left: tuple[int, ...] = ()) -> None:
    """These go on to the view of that name, after some have taken their leave."""
    for site in members:
        oracle.enter(site, name, members, left)


def test_what_one_who_left_sent_is_expected() -> None:
    for takers, expected in (((B,), {"complete": 1}), ((), {"complete": 2})):
        oracle = Oracle(3)
        go_on(oracle, "1", A, B, C)
        oracle.send(A, 1)
        for site in takers:
            oracle.take(site, 1)
        oracle.leave(A)
        go_on(oracle, "2", B, C, left=(A,))
        assert violations(oracle) == expected


@pytest.mark.parametrize(
    ("knows", "fails", "total", "takers", "expected"),
    [
        (True, True, False, (), {}),
        (True, True, False, (D,), {"complete": 1}),  # C got it, so B has to
        (True, False, False, (), {"complete": 4}),  # the cause is not lost: it is expected as well
        (False, True, False, (), {"complete": 2}),  # what is lost caused nothing
        (False, True, True, (), {}),  # but may stand before it, where there is one order of all
    ],
)
def test_what_one_who_left_sent_may_hang_on_what_is_lost_with_another(
    knows: bool, fails: bool, total: bool, takers: tuple[int, ...], expected: dict[str, int]
) -> None:
    """A knew it, and is gone with it; those who are left cannot get it, and may not take its effect without it."""
    oracle = Oracle(4, {"total": lambda number: 0} if total else None)
    go_on(oracle, "1", A, B, C, D)
    oracle.send(C, 1)
    if knows:
        oracle.take(A, 1)
    oracle.send(A, 2)
    oracle.take(C, 2)
    oracle.leave(A)
    if fails:
        oracle.crash(C)
        for site in takers:
            oracle.take(site, 2)
        go_on(oracle, "2", B, D, left=(A,))
    else:
        go_on(oracle, "2", B, C, D, left=(A,))
    found = violations(oracle)
    assert {name: count for name, count in found.items() if name == "complete"} == expected


@pytest.mark.parametrize("said_goodbye", [(), (A,)])  # before anybody had what it sent
@pytest.mark.parametrize(
    ("takers", "together", "expected"),
    [
        ((), True, {}),
        ((B,), True, {"survivors": 1}),
        ((B, C), True, {}),
        ((B,), False, {}),  # each goes on alone
    ],
)
def test_what_one_who_crashed_sent_last_is_taken_by_all_who_go_on_together_or_by_none(
    takers: tuple[int, ...], together: bool, expected: dict[str, int], said_goodbye: tuple[int, ...]
) -> None:
    oracle = Oracle(3)
    go_on(oracle, "1", A, B, C)
    oracle.send(A, 1)
    for site in takers:
        oracle.take(site, 1)
    oracle.crash(A)
    if together:
        go_on(oracle, "2", B, C, left=said_goodbye)
    else:
        go_on(oracle, "2 of B", B)
        go_on(oracle, "2 of C", C)
    assert violations(oracle) == expected


def test_who_took_it_and_is_gone_as_well_makes_nobody_lack_it() -> None:
    oracle = Oracle(4)
    go_on(oracle, "1", A, B, C, D)
    oracle.send(A, 1)
    oracle.take(B, 1)
    oracle.crash(A)
    oracle.crash(B)
    go_on(oracle, "2", C, D)
    assert violations(oracle) == {}


def test_a_crash_excuses_only_the_last_view() -> None:
    """What was sent in a view that was closed before, with its sender, is owed to everybody in the next."""
    oracle = Oracle(3)
    go_on(oracle, "1", A, B, C)
    oracle.send(A, 1, epoch=1)
    go_on(oracle, "2", A, B, C)
    oracle.send(A, 2, epoch=2)
    oracle.crash(A)
    go_on(oracle, "3", B, C)
    assert violations(oracle) == {"complete": 2}


def test_while_the_view_goes_on_nothing_is_known_of_what_one_who_crashed_sent_last() -> None:
    oracle = Oracle(3)
    go_on(oracle, "1", A, B, C)
    oracle.send(A, 1)
    oracle.take(B, 1)
    oracle.crash(A)
    assert violations(oracle) == {}


def test_what_is_sent_in_a_view_is_expected_of_those_who_stay_in_it() -> None:
    """Two parts go on without each other: what one says is not for the other, and each is judged by its own view."""
    oracle = Oracle(4)
    go_on(oracle, "1", A, B, C, D)
    oracle.send(A, 1)
    oracle.take(B, 1)
    go_on(oracle, "2 of A", A, B)
    go_on(oracle, "2 of C", C, D)
    assert violations(oracle) == {}
    oracle.take(C, 1)
    oracle.violations.clear()
    assert violations(oracle) == {"survivors": 1}, "dave, who is with cathy, never took it"


@pytest.mark.parametrize(("whole", "expected"), [(True, {"causal": 1}), (False, {})])
def test_nothing_is_taken_whose_cause_is_lost_for_all(whole: bool, expected: dict[str, int]) -> None:
    """Two are gone, and only they had the cause. Of a message to some, others may know no more than that it was."""
    oracle = Oracle(3)
    go_on(oracle, "1", A, B, C)
    oracle.send(A, 1, 1 << B | 1 << C, whole=whole)
    oracle.take(B, 1)
    oracle.send(B, 2)
    oracle.take(C, 2)
    oracle.crash(A)
    oracle.crash(B)
    go_on(oracle, "2", C)
    assert violations(oracle) == expected


@pytest.mark.parametrize(("epoch", "flagged"), [(1, True), (2, False)])
def test_a_message_is_concurrent_only_with_others_of_its_view(epoch: int, flagged: bool) -> None:
    """What was sent in the view before is past, for those as well who were not in it."""
    oracle = Oracle(2)
    oracle.send(A, 1, epoch=1)
    oracle.take(B, 1)
    oracle.admit(D)
    oracle.send(D, 2, epoch=epoch)
    assert oracle.take(B, 2) is flagged


def test_nothing_is_expected_of_one_who_left() -> None:
    oracle = Oracle(3)
    oracle.send(A, 1)
    oracle.take(B, 1)
    oracle.leave(C)
    assert violations(oracle) == {}


def test_what_a_newcomer_of_a_growing_view_knows_of_the_past() -> None:
    """All that had been sent when it was let in: whatever it says follows that."""
    oracle = Oracle(2)
    oracle.send(A, 1)
    oracle.admit(C)
    for site in (A, B):
        oracle.let_in(site)
    oracle.join(C)
    oracle.send(C, 2, 1 << B)
    oracle.take(B, 2)
    oracle.take(B, 1)
    assert violations(oracle) == {"causal": 1}


def test_an_own_message_waits_for_nothing_that_an_open_gate_let_pass() -> None:
    """2 came through the gate before its cause 1; what is sent then is echoed at once."""
    oracle = Oracle(2)
    oracle.send(B, 1)
    oracle.send(B, 2)
    oracle.take(A, 2, loose=True)
    oracle.send(A, 3, 0b11)
    oracle.take(A, 3)
    oracle.take(A, 1)
    oracle.take(B, 3)
    assert violations(oracle) == {}


# Who agrees on an order


@pytest.mark.parametrize(
    ("stay", "left", "blamed"),
    [
        ((), (), 1),  # the view goes on, and has one order
        ((A, B), (), 1),  # the first member does: whoever fails has followed it
        ((B,), (A,), 1),  # it left when all had everything
        ((B,), (), 0),  # it failed, and C with it, which may have heard more of it than B
        ((B, C), (), 1),  # it failed, and B and C agree
    ],
)
def test_who_goes_on_together_agrees_and_so_does_who_failed_unless_the_first_member_did(
    stay: tuple[int, ...], left: tuple[int, ...], blamed: int
) -> None:
    oracle = Oracle(3, {"total": lambda message: 0})
    go_on(oracle, "1", A, B, C)
    oracle.send(A, 1)
    oracle.send(A, 2)
    for site, taken in ((B, (1, 2)), (C, (2, 1))):
        for message in taken:
            oracle.take(site, message)
    for site in {A, B, C} - {*stay} if stay else ():
        (oracle.leave if site in left else oracle.crash)(site)
    go_on(oracle, "2", *stay, left=left)
    oracle.finish()
    assert oracle.violations["total"] == blamed


def test_parts_that_go_on_apart_agree_on_what_was_before_their_last_common_view() -> None:
    oracle = Oracle(3, {"total": lambda message: 0})
    for number, (first, last) in enumerate([((1, 2), (2, 1)), ((3, 4), (4, 3))], 1):
        go_on(oracle, str(number), A, B, C)
        for message in first:
            oracle.send(A, message, epoch=number)
        for site, taken in ((B, first), (C, last)):
            for message in taken:
                oracle.take(site, message)
    go_on(oracle, "3 of B", A, B)
    go_on(oracle, "3 of C", C)
    oracle.finish()
    assert oracle.violations["total"] == 1
    assert "total: site 2 took message 2 before 1, site 1 after it" in oracle.witnesses
