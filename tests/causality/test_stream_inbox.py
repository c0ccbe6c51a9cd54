"""The inbox of a stream: members that appear, holes given up, late arrivals, a blob in between."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.causality.inbox import DUPLICATE, HELD, LATE, RELEASED, Inbox

from ..pipeline.messages import Id, Talk


class Run(Talk):
    """Random messages, whose full past is known as explicit sets, offered to an inbox."""

    def delta(self, id_: Id) -> tuple[Id, ...]:
        return tuple([(k, count) for k, count in enumerate(self.deps(id_)) if count and k != id_[0]])

    def offer(self, inbox: Inbox[Id], id_: Id, out: list[Id]) -> int:
        inbox.grow(max(src for src, _ in (id_, *self.delta(id_))) + 1)
        return inbox.offer(*id_, self.delta(id_), id_, out)


@given(st.integers(0, 10_000), st.integers(0, 39))
def test_a_blob_in_between_changes_nothing(seed: int, at: int) -> None:
    run = Run(seed)
    inbox: Inbox[Id] = Inbox.for_stream()
    out: list[Id] = []
    for number, id_ in enumerate(run.ids):
        if number == at:
            inbox = Inbox.loads(inbox.dumps())
        run.offer(inbox, id_, out)
    assert sorted(out) == sorted(run.past) and not run.misplaced(out)
    assert inbox.held == 0


@given(st.integers(0, 10_000), st.integers(1, 12))
def test_giving_up_releases_everything_once_and_in_order(seed: int, lost: int) -> None:
    """Whatever is lost: what is there comes out, causes first; the lost, if they come, are late."""
    run = Run(seed)
    inbox: Inbox[Id] = Inbox.for_stream()
    out: list[Id] = []
    for id_ in run.ids[lost:]:
        run.offer(inbox, id_, out)
    held = set(inbox.items())
    inbox.give_up(lambda item: True, out)
    assert sorted(out) == sorted(run.ids[lost:])
    assert not run.misplaced(out)
    assert (inbox.held, inbox.missing()) == (0, [])
    assert held <= set(out)
    for id_ in run.ids[:lost]:
        answer = run.offer(inbox, id_, out)
        assert answer in (LATE, RELEASED, HELD)
        if answer == LATE:
            assert out.count(id_) == 1
            assert run.offer(inbox, id_, out) == DUPLICATE
    inbox.give_up(lambda item: True, out)
    assert sorted(out) == sorted(run.past)


@given(st.integers(0, 10_000), st.integers(1, 8), st.integers(0, 39))
def test_only_the_overdue_and_what_they_need_are_released(seed: int, lost: int, chosen: int) -> None:
    run = Run(seed)
    inbox: Inbox[Id] = Inbox.for_stream()
    out: list[Id] = []
    for id_ in run.ids[lost:]:
        run.offer(inbox, id_, out)
    if not inbox.held:
        return
    overdue = inbox.items()[chosen % inbox.held]
    before = len(out)
    inbox.give_up(lambda item: item == overdue, out)
    assert overdue in out[before:]
    assert not run.misplaced(out)
    for id_ in inbox.items():  # nothing stays that could go
        assert any(inbox.vector[k] < count for k, count in (*run.delta(id_), (id_[0], id_[1] - 1)))


def test_a_base_is_over_and_done_with() -> None:
    inbox: Inbox[str] = Inbox.for_stream([3, 1])
    out: list[str] = []
    assert inbox.offer(0, 3, (), "old", out) == DUPLICATE
    assert inbox.offer(0, 4, ((1, 1),), "new", out) == RELEASED


def test_beginning_with_the_first_number_seen() -> None:
    inbox: Inbox[str] = Inbox.for_stream()
    inbox.grow(2)
    out: list[str] = []
    assert inbox.offer(1, 1, ((0, 6),), "waits", out) == HELD
    inbox.begin(0, 7, out)
    assert out == ["waits"]
    assert inbox.offer(0, 7, (), "first", out) == RELEASED
    assert inbox.offer(0, 5, (), "from before", out) == LATE


def test_stamps_that_contradict_each_other_lose_nothing() -> None:
    """0:2 claims to follow 1:5, which claims to follow 0:3."""
    inbox: Inbox[str] = Inbox.for_stream()
    inbox.grow(2)
    out: list[str] = []
    inbox.offer(0, 2, ((1, 5),), "0:2", out)
    inbox.offer(1, 5, ((0, 3),), "1:5", out)
    inbox.give_up(lambda item: True, out)
    assert sorted(out) == ["0:2", "1:5"] and inbox.held == 0


def test_remembered_runs_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inga.causality.inbox.PASSED_MAX", 2)
    inbox: Inbox[int] = Inbox.for_stream()
    inbox.grow(1)
    out: list[int] = []
    for seq in (2, 4, 6):
        inbox.offer(0, seq, (), seq, out)
        inbox.give_up(lambda item: True, out)
    assert [inbox.offer(0, seq, (), seq, out) for seq in (1, 3, 5)] == [DUPLICATE, LATE, LATE]


def test_without_the_causes_that_are_held_giving_up_would_misorder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule that effects wait for held causes, broken: what is overdue goes at once."""

    def hasty(self: Inbox[Id], is_overdue: object, out: list[Id]) -> None:
        for src, held in enumerate(self._held):
            for seq in sorted(held, reverse=True):
                if seq in held:
                    self._force(src, seq, out)

    monkeypatch.setattr(Inbox, "give_up", hasty)
    found = 0
    for seed in range(20):
        run = Run(seed)
        inbox: Inbox[Id] = Inbox.for_stream()
        out: list[Id] = []
        for id_ in run.ids[6:]:
            run.offer(inbox, id_, out)
        inbox.give_up(lambda item: True, out)
        found += bool(run.misplaced(out))
    assert found
