"""One numbering for the whole run. The rules are checked against a replay that counts messages one by one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.model.errors import UsageError
from inga.trace.numbering import Numbering


def test_the_first_frame_changes_nothing() -> None:
    frame = Numbering.of(3).frame(7)
    assert frame.is_plain
    assert (frame.process(2), frame.seq(2, 5), frame.mask(0b101), frame.deps((1, 2, 3))) == (
        2, 5, 0b101, (1, 2, 3),
    )  # fmt: skip


def test_after_a_closed_view_counts_go_on_and_indices_stay_those_of_the_run() -> None:
    # Members 0, 1, 2 sent 4, 5 and 6 messages; then 1 left, so 2 is now the second member.
    frame = Numbering.of(3).cut(1, (4, 5, 6), (0, 2)).frame(2)
    assert frame.process(1) == 2
    assert frame.seq(1, 1) == 7
    assert frame.mask(0b10) == 0b100
    # Nobody can send in the new view without knowing all that the old one agreed on.
    assert frame.deps((0, 0)) == (4, 5, 6)
    assert frame.deps((3, 1)) == (7, 5, 7)
    assert frame.height(3 + 1 + 1) == 7 + 5 + 7 + 1


def test_a_row_is_numbered_by_its_view() -> None:
    numbering = Numbering.of(2).cut(3, (10, 20)).cut(8, (1, 1))
    assert [numbering.frame(view).seq(1, 1) for view in (0, 3, 4, 8, 9)] == [1, 1, 21, 21, 22]


def test_whoever_joins_is_appended() -> None:
    numbering = Numbering.of(3).cut(1, (4, 5, 6), (0, 2)).grow(4)
    frame = numbering.frame(3)
    assert frame.indices == (0, 2, 3)
    assert frame.seq(2, 1) == 1
    assert frame.deps((0, 0, 1)) == (4, 5, 6, 1)
    assert numbering.frame(1).deps((1, 1, 1)) == (1, 1, 1, 0)


def test_a_closing_view_may_bring_newcomers() -> None:
    numbering = Numbering.of(2).cut(1, (4, 5), (1, 2))
    assert numbering.n == 3
    assert numbering.frame(2).deps((0, 2)) == (4, 5, 2)


def test_a_newcomer_begins_with_the_sum_of_all_cuts() -> None:
    old = Numbering.of(3).cut(1, (4, 5, 6), (0, 2)).cut(2, (1, 1), (2, 3))
    new = Numbering.of(4).cut(2, (5, 5, 7), (2, 3))
    assert old.frame(3) == new.frame(3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Numbering.of(0), "at least one process"),
        (lambda: Numbering.of(3).grow(2), "cannot shrink"),
        (lambda: Numbering.of(3).cut(4, ()).cut(4, ()), "View 4 is closed already"),
        (lambda: Numbering.of(3).cut(4, (1, 1, 1, 1)), "4 counts for 3 members"),
        (lambda: Numbering.of(3).cut(4, (), (1, 1)), r"cannot be the processes \[1, 1\]"),
        (lambda: Numbering.of(3).cut(4, (), (-1, 1)), r"cannot be the processes \[-1, 1\]"),
        (lambda: Numbering.of(3).cut(4, (), ()), r"cannot be the processes \[\]"),
    ],
)
def test_impossible_changes_are_refused(call: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        call()  # type: ignore[operator]


@given(st.data())
def test_messages_are_numbered_as_if_there_were_no_views(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 4))
    numbering, sent, members, view = Numbering.of(n), [0] * n, list(range(n)), 1
    for _ in range(data.draw(st.integers(0, 4))):
        counts = data.draw(st.lists(st.integers(0, 3), min_size=len(members), max_size=len(members)))
        for member, count in enumerate(counts):
            for seq in range(1, count + 1):
                sent[members[member]] += 1
                frame = numbering.frame(view)
                assert (frame.process(member), frame.seq(member, seq)) == (
                    members[member],
                    sent[members[member]],
                )
        assert numbering.frame(view).deps(tuple(counts)) == tuple(sent)
        members = data.draw(st.permutations([*members, len(sent)]))[: len(members)]
        sent += [0] * (max([*members, len(sent) - 1]) + 1 - len(sent))
        numbering = numbering.cut(view, counts, members)
        view += data.draw(st.integers(1, 3))
