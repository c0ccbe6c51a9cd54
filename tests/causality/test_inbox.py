"""The hold queue: by hand, and against a list scanned with full vectors on random runs."""

import pickle
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.causality.inbox import DUPLICATE, FORGED, HELD, RELEASED, Inbox
from inga.model.stamp import Delta

from .world import SEEDS, Message, World, choices, long_run


def test_the_next_of_its_sender_is_released() -> None:
    inbox: Inbox[str] = Inbox(0, 3)
    out: list[str] = []
    assert inbox.offer(1, 1, (), "a", out) == RELEASED
    assert inbox.offer(1, 2, (), "b", out) == RELEASED
    assert out == ["a", "b"]
    assert inbox.vector == [0, 2, 0]


def test_an_effect_waits_for_its_cause_and_wakes_what_waited_for_it() -> None:
    inbox: Inbox[str] = Inbox(2, 3)
    out: list[str] = []
    assert inbox.offer(1, 2, (), "later", out) == HELD
    assert inbox.offer(1, 1, ((0, 1),), "effect", out) == HELD
    assert inbox.missing() == [(0, 1, 1), (1, 1, 1)]
    assert inbox.held == 2
    assert out == []
    assert inbox.offer(0, 1, (), "cause", out) == RELEASED
    assert out == ["cause", "effect", "later"]
    assert inbox.missing() == []
    assert inbox.held == 0


def test_many_may_wait_for_one() -> None:
    inbox: Inbox[str] = Inbox(4, 5)
    out: list[str] = []
    for src in (1, 2, 3):
        assert inbox.offer(src, 1, ((0, 2),), f"from {src}", out) == HELD
    assert inbox.missing() == [(0, 2, 3)]
    inbox.offer(0, 1, (), "first", out)
    assert out == ["first"]
    inbox.offer(0, 2, (), "second", out)
    assert out[1] == "second"
    assert sorted(out[2:]) == ["from 1", "from 2", "from 3"]


def test_duplicates_of_released_and_of_held_are_dropped() -> None:
    inbox: Inbox[str] = Inbox(2, 3)
    out: list[str] = []
    inbox.offer(0, 1, (), "a", out)
    assert inbox.offer(0, 1, (), "a again", out) == DUPLICATE
    assert inbox.offer(0, 3, (), "c", out) == HELD  # waits for its sender's second
    assert inbox.offer(0, 3, (), "c again", out) == DUPLICATE
    assert inbox.offer(1, 1, ((0, 2),), "x", out) == HELD  # next of its sender, waits for a cause
    assert inbox.offer(1, 1, ((0, 2),), "x again", out) == DUPLICATE
    assert inbox.held == 2
    inbox.offer(0, 2, (), "b", out)
    assert out[:2] == ["a", "b"]
    assert sorted(out[2:]) == ["c", "x"]


def test_a_stamp_that_names_sends_we_never_made_is_forged() -> None:
    inbox: Inbox[str] = Inbox(0, 2)
    out: list[str] = []
    inbox.own(1)
    assert inbox.offer(1, 1, ((0, 2),), "forged", out) == FORGED
    assert (out, inbox.held) == ([], 0)
    assert inbox.offer(1, 1, ((0, 1),), "honest", out) == RELEASED


def test_own_sends_are_known_at_once() -> None:
    inbox: Inbox[str] = Inbox(0, 2)
    out: list[str] = []
    inbox.own(1)
    inbox.own(2)
    assert inbox.offer(1, 1, ((0, 2),), "answer", out) == RELEASED
    assert inbox.vector == [2, 1]


def test_drained_by_sender_and_number() -> None:
    inbox: Inbox[str] = Inbox(2, 3)
    out: list[str] = []
    for src, seq in ((1, 3), (0, 4), (1, 2), (0, 2)):
        inbox.offer(src, seq, (), f"{src}:{seq}", out)
    assert inbox.drain() == ["0:2", "0:4", "1:2", "1:3"]
    assert (inbox.held, inbox.missing(), out) == (0, [], [])
    assert inbox.offer(1, 2, (), "offered again", out) == HELD


def test_newcomers_count_from_zero() -> None:
    inbox: Inbox[str] = Inbox(0, 2)
    out: list[str] = []
    inbox.offer(1, 1, (), "old", out)
    inbox.grow(3)
    assert inbox.vector == [0, 1, 0]
    assert inbox.offer(2, 1, ((1, 1),), "new", out) == RELEASED


@given(st.integers(2, 6), choices)
def test_releases_what_a_scan_with_full_vectors_releases(sites: int, run: list[int]) -> None:
    """Each arrival is compared, with duplicates, in `World.arrive`; finally nothing is left."""
    assert_everything_was_released(World(sites).run(run))


def test_long_runs_release_what_a_scan_releases() -> None:
    held = 0
    for seed in SEEDS:
        world = World(2 + seed % 5).run(long_run(seed), finish=False)
        held += sum(site.inbox.held for site in world.sites)
        world.finish(seed)
        assert_everything_was_released(world)
    assert held > 200, "runs in which nothing waits show nothing"


class SendersAlone(Inbox[Message]):
    """What a stamp names of others is not looked at."""

    def offer(self, src: int, seq: int, delta: Delta, item: Message, out: list[Message]) -> int:
        return super().offer(src, seq, (), item, out)


def test_an_inbox_that_looks_at_senders_alone_is_noticed() -> None:
    with pytest.raises(AssertionError):
        assert_everything_was_released(World(3, inbox=SendersAlone).run(long_run(0)))


def assert_everything_was_released(world: World) -> None:
    for site in world.sites:
        others = {id_ for id_ in world.messages if id_[0] != site.index}
        assert len(site.released) == len(others)
        assert set(site.released) == others
        assert site.inbox.held == 0
        assert site.inbox.missing() == []


@given(st.integers(2, 4), choices, choices)
def test_a_pickled_inbox_goes_on_as_if_nothing_had_happened(
    sites: int, before: list[int], after: list[int]
) -> None:
    world = World(sites).run(before, finish=False)
    for site in world.sites:
        site.inbox = pickle.loads(pickle.dumps(site.inbox))
    world.run(after)
    assert all(site.inbox.held == 0 for site in world.sites)


def test_each_entry_of_a_stamp_is_looked_at_once() -> None:
    looks: list[tuple[int, int]] = []

    class Watched(tuple[tuple[int, int], ...]):
        def __iter__(self) -> Iterator[tuple[int, int]]:
            for pair in super().__iter__():
                looks.append(pair)
                yield pair

    inbox: Inbox[str] = Inbox(5, 6)
    out: list[str] = []
    needs = tuple((k, 1) for k in range(4))
    assert inbox.offer(4, 2, (), "second", out) == HELD
    assert inbox.offer(4, 1, Watched(needs), "first", out) == HELD
    for k in (2, 0, 3, 1):
        inbox.offer(k, 1, (), f"cause {k}", out)
    assert out[-2:] == ["first", "second"]
    assert tuple(looks) == needs
