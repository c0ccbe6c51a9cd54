"""Crashes on a board: survivors agree on a cut, nothing stays held, and weaker cuts are found out."""

from random import Random

import pytest

from inga.sim.board import Board, lossless
from inga.sim.schedule import Schedule


def wander(seed: int, parting: str) -> Board:
    """Random sends and arrivals, one or two crashes, then more of both among those who are left."""
    rng = Random(seed)
    sites = rng.randint(3, 5)
    board = Board(sites, lossless("causal"), parting=parting)
    crash_at = sorted(rng.randint(4, 30) for _ in range(rng.randint(1, 2)))
    message = 0
    for move in range(40):
        alive = [site for site in range(sites) if site not in board.gone]
        if move in crash_at and len(alive) > 1:
            board.leave(rng.choice(alive))
            continue
        if board.gone and rng.random() < 0.1 and (late := [s for s in alive if s not in board._parted]):
            board.install(rng.choice(late))
        elif message < 15 and rng.random() < 0.35:
            message += 1
            board.send(rng.choice(alive), message)
        elif board.under_way:
            board.arrive(*rng.choice(board.under_way))
    board.finish()
    return board


def agree(board: Board) -> bool:
    """Whether all survivors took the same messages of those who are gone."""
    lost = {message for site in board.gone for message in board.sent[site]}
    views = {frozenset(lost.intersection(t)) for s, t in enumerate(board.taken) if s not in board.gone}
    return len(views) <= 1


def is_clean(board: Board) -> bool:
    return not board.oracle.count(("integrity", "complete", "fifo", "causal")) and agree(board)


@pytest.mark.parametrize(
    "count", [pytest.param(400, id="some"), pytest.param(6000, id="many", marks=pytest.mark.hunt)]
)
def test_survivors_agree_and_nothing_stays_held(count: int) -> None:
    for seed in range(count):
        board = wander(seed, "closed")
        assert is_clean(board), (seed, board.oracle.witnesses, " ".join(map(str, board.played)))


@pytest.mark.parametrize(("parting", "least"), [("gapless", 1), ("none", 50), ("forgotten", 20)])
def test_weaker_partings_are_found_out(parting: str, least: int) -> None:
    broken = sum(not is_clean(wander(seed, parting)) for seed in range(400))
    assert broken >= least


@pytest.mark.parametrize(
    ("text", "flaw", "taken", "broken"),
    [
        # V22: who lacks a message waits for ever
        ("A!1 1>B A- B!2 2>C", "none", [[], [1], [1, 2]], [[], [1], []]),
        # V23: a cut that is only free of gaps keeps a message whose cause is lost
        ("A!1 1>B B!2 2>C A- B-", "gapless", [[], [1], []], [[], [1], []]),
        # V24: a component that is forgotten too early is not waited for
        ("A!1 1>B A- C= B!2 2>C", "forgotten", [[], [1], [1, 2]], [[], [1], [2, 1]]),
    ],
    ids=["V22", "V23", "V24"],
)
def test_the_lectures_crashes(text: str, flaw: str, taken: list[list[int]], broken: list[list[int]]) -> None:
    schedule = Schedule.parse(text)
    board = Board(schedule.sites, lossless("causal"))
    assert not board.play(schedule).violations and board.taken == taken
    board = Board(schedule.sites, lossless("causal"), parting=flaw)
    assert board.play(schedule).count(("complete", "causal")) and board.taken == broken
