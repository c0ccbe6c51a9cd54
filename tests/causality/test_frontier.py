"""Open ends of history: the invariants of branches, after every send and take of random runs."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.causality.frontier import Frontier
from inga.model.stamp import Deps

from . import world
from .world import Id, Message, Site, World, choices, long_run


def test_without_concurrency_there_is_one_branch_for_ever() -> None:
    frontier = Frontier()
    assert frontier.add(0, 1, (0, 0)) == (1, ())
    assert frontier.add(1, 1, (1, 0)) == (1, ())
    assert frontier.add(0, 2, (1, 1)) == (1, ())
    assert frontier.ends == [(1, 0, 2)]


def test_branches_open_and_merge_into_the_oldest() -> None:
    frontier = Frontier()
    assert frontier.add(0, 1, (0, 0, 0)) == (1, ())
    assert frontier.add(1, 1, (0, 0, 0)) == (2, ())
    assert frontier.add(2, 1, (0, 0, 0)) == (3, ())
    assert frontier.add(2, 2, (0, 1, 1)) == (2, (3,))
    assert frontier.ends == [(1, 0, 1), (2, 2, 2)]
    assert frontier.add(0, 2, (1, 1, 2)) == (1, (2,))
    assert frontier.add(1, 2, (0, 1, 0)) == (4, ())  # a number is never used again
    assert frontier.ends == [(1, 0, 2), (4, 1, 2)]


class Watched(World):
    """Compares the frontier with its definition whenever it changes."""

    def __init__(self, sites: int) -> None:
        super().__init__(sites)
        self.opened: dict[int, set[int]] = {site: set() for site in range(sites)}
        self.merges = 0
        self.most = 0

    def added(self, site: Site, message: Message) -> None:
        before = {(src, seq): branch for branch, src, seq in site.frontier.ends}
        followed = sorted(branch for id_, branch in before.items() if id_ in message.causes)
        branch, merged = site.frontier.add(message.src, message.seq, message.deps)
        if followed:
            assert (branch, merged) == (followed[0], tuple(followed[1:]))
        else:
            assert merged == ()
            assert branch not in self.opened[site.index], "branch ids are unique"
            self.opened[site.index].add(branch)
        self.merges += bool(merged)
        self.check(site, message.id, branch)

    def check(self, site: Site, newest: Id, branch: int) -> None:
        ends = {(src, seq): branch for branch, src, seq in site.frontier.ends}
        open_ = {i for i in site.known if not any(i in self.messages[j].causes for j in site.known)}
        assert set(ends) == open_, "the ends are the known messages that no known message follows"
        assert ends[newest] == branch
        assert len(set(ends.values())) == len(ends)
        # What follows from it (causality.md 5.4).
        for a, b in combinations(ends, 2):
            assert a not in self.messages[b].causes and b not in self.messages[a].causes
        assert len({src for src, _ in ends}) == len(ends) <= len(self.sites)
        join = [max(counts) for counts in zip(*(self.messages[i].vector for i in ends), strict=True)]
        assert join == site.clock.vector
        concurrent = any(
            a not in self.messages[b].causes and b not in self.messages[a].causes
            for a, b in combinations(site.known, 2)
        )
        if not concurrent:
            assert len(ends) == 1
        self.most = max(self.most, len(ends))


@given(st.integers(2, 6), choices)
def test_the_ends_are_those_of_the_definition(sites: int, run: list[int]) -> None:
    watched = Watched(sites).run(run)
    assert all(len(opened) >= bool(watched.messages) for opened in watched.opened.values())


def test_long_runs_have_branches_and_merges() -> None:
    """Else the property above would say little."""
    watched = Watched(5)
    watched.run(long_run(1)[:250])
    assert watched.most == 5
    assert watched.merges >= 20


class NeverMerges(Frontier):
    """A tree: what follows several branches goes on with the oldest, and closes none of the others."""

    def add(self, src: int, seq: int, deps: Deps) -> tuple[int, tuple[int, ...]]:
        before = list(self.ends)
        branch, merged = super().add(src, seq, deps)
        self.ends = sorted([*self.ends, *(end for end in before if end[0] in merged)])
        return branch, ()


@pytest.mark.interpreted
def test_branches_that_never_merge_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "Frontier", NeverMerges)
    with pytest.raises(AssertionError):
        Watched(5).run(long_run(1)[:250])
