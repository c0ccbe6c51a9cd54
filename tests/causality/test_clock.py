"""Stamps: deltas that rebuild to the full past, heights, and the relation of two packets."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.causality.clock import SiteClock, relation
from inga.model.errors import UsageError
from inga.model.packet import Packet
from inga.model.stamp import Stamp

from .world import Message, World, choices, long_run


def test_the_first_stamps_of_a_site() -> None:
    clock = SiteClock(1, 3)
    assert clock.stamp() == (1, (0, 0, 0), Stamp((), 1))
    clock.take(2, 1)
    clock.take(0, 1)
    clock.take(0, 2)
    assert clock.stamp() == (2, (2, 1, 1), Stamp(((0, 2), (2, 1)), 5))
    assert clock.stamp() == (3, (2, 2, 1), Stamp((), 6))
    assert clock.vector == [2, 3, 1]
    assert clock.height == 6


def test_a_stamp_is_a_copy() -> None:
    clock = SiteClock(0, 2)
    clock.take(1, 1)
    _, deps, stamp = clock.stamp()
    clock.take(1, 2)
    clock.stamp()
    assert (deps, stamp) == ((0, 1), Stamp(((1, 1),), 2))


def test_taking_something_older_changes_nothing() -> None:
    clock = SiteClock(0, 2)
    clock.take(1, 5)
    clock.stamp()
    clock.take(1, 5)
    clock.take(1, 3)
    assert clock.stamp() == (2, (1, 5), Stamp((), 7))


def test_joining_a_past_that_names_what_was_never_addressed_here() -> None:
    clock = SiteClock(0, 4)
    clock.take(1, 1)
    clock.stamp()
    clock.join((9, 1, 4, 0))  # nobody knows better than this site what it has sent
    assert clock.vector == [1, 1, 4, 0]
    assert clock.height == 6
    assert clock.stamp() == (2, (1, 1, 4, 0), Stamp(((2, 4),), 7))


def test_a_restated_clock_carries_everything() -> None:
    clock = SiteClock(0, 3)
    clock.take(1, 1)
    clock.take(2, 4)
    clock.stamp()
    clock.restate()
    assert clock.stamp()[2] == Stamp(((1, 1), (2, 4)), 7)


def test_newcomers_count_from_zero_and_get_the_full_vector_first() -> None:
    clock = SiteClock(0, 2)
    clock.take(1, 3)
    clock.stamp()
    clock.grow(4)
    assert clock.stamp() == (2, (1, 3, 0, 0), Stamp(((1, 3),), 5))


@given(st.integers(2, 6), choices)
def test_deltas_rebuild_the_past_that_truly_was(sites: int, run: list[int]) -> None:
    world = World(sites).run(run)
    for site in world.sites:
        rebuilt = [0] * sites
        for seq in range(1, site.clock.vector[site.index] + 1):
            message = world.messages[site.index, seq]
            for k, count in message.stamp.delta:
                assert k != site.index
                assert count > rebuilt[k], "a delta lists what changed, and nothing else"
                rebuilt[k] = count
            rebuilt[site.index] = seq
            assert rebuilt == message.vector
            assert list(message.deps) == [c - (k == site.index) for k, c in enumerate(message.vector)]
            assert message.stamp.height == len(message.causes) + 1
    # Everything was taken everywhere.
    counts = [site.clock.vector[site.index] for site in world.sites]
    assert all(site.clock.vector == counts and site.clock.height == sum(counts) for site in world.sites)


def by_vectors(a: Message, b: Message) -> str:
    """The definition: all components, one by one."""
    pairs = list(zip(a.vector, b.vector, strict=True))
    if all(x == y for x, y in pairs):
        return "=="
    if all(x <= y for x, y in pairs):
        return "<"
    if all(x >= y for x, y in pairs):
        return ">"
    return "||"


@given(st.integers(2, 5), choices)
def test_the_relation_is_that_of_vectors_and_of_sets(sites: int, run: list[int]) -> None:
    check_relations(World(sites).run(run))


def check_relations(world: World) -> None:
    for message in world.messages.values():
        assert relation(message, message) == "=="
    for a, b in combinations(world.messages.values(), 2):
        truth = "<" if a.id in b.causes else ">" if b.id in a.causes else "||"
        assert relation(a, b) == by_vectors(a, b) == truth
        assert relation(b, a) == {"<": ">", ">": "<", "||": "||"}[truth]


class OwnSendsAlone(SiteClock):
    """What was received is not counted."""

    def take(self, src: int, seq: int) -> None:
        pass


def test_a_clock_that_does_not_count_what_was_received_is_noticed() -> None:
    with pytest.raises(AssertionError):
        check_relations(World(3, clock=OwnSendsAlone).run(long_run(0)))


def test_an_earlier_view_precedes_a_later_one_whatever_the_numbers_are() -> None:
    """Members have other indices in another view, and everything is counted anew."""
    before, after = Packet(1, 3), Packet(1, 4)
    before.seq, before.deps = 7, (2, 6)
    after.seq, after.deps = 1, (0, 0)
    assert relation(before, after) == "<" and relation(after, before) == ">"
    other = Packet(0, 4)
    other.seq, other.deps = 7, (6, 0)
    assert relation(other, before) == ">" and relation(before, other) == "<"
    assert relation(other, after) == "||", "in one view the vectors decide"
    other.deps = None
    assert relation(before, other) == "<", "what was in a view is past in the next, vectors or not"


def test_packets_without_vectors_are_related_only_within_a_sender() -> None:
    first, second, other = Packet(0, 1), Packet(0, 1), Packet(1, 1)
    first.seq, second.seq, other.seq = 1, 2, 1
    assert relation(first, second) == "<"
    with pytest.raises(UsageError, match=r"message 1 of member 0 has no vector, .* vector, co and sco"):
        relation(first, other)
    first.deps = (0, 0)
    for one, two in ((first, other), (other, first)):
        with pytest.raises(UsageError, match="message 1 of member 1 has no vector"):
            relation(one, two)
