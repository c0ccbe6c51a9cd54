"""The vectors of causality.md: clean under causal order, broken as listed under the weaker scheme."""

from pathlib import Path
from typing import NamedTuple

import pytest

from inga.sim.board import Board, replay
from inga.sim.schedule import Schedule, letter

from .mutants import Delay, on_board

TABLE = Path(__file__).parents[1] / "scenarios" / "vectors.txt"
LAYERS = {"delay": Delay}


class Vector(NamedTuple):
    name: str
    scheme: str
    below: str
    schedule: str
    under_causal: str
    under_scheme: str
    broken: str

    def play(self, scheme: str) -> Board:
        below = [LAYERS[name] for name in self.below.split()]
        schedule = Schedule.parse(self.schedule)
        board = Board(max(2, schedule.sites), on_board(scheme, *below))
        board.play(schedule)
        return board


VECTORS = [
    Vector(*(cell.strip() for cell in line.split("|")))
    for line in TABLE.read_text().splitlines()
    if line and not line.startswith("#")
]


def taken(board: Board) -> str:
    return " ".join(
        letter(site) + "".join(map(str, messages)) for site, messages in enumerate(board.taken) if messages
    )


def broken(board: Board) -> set[str]:
    return {name for name, number in board.oracle.violations.items() if number}


def test_the_table_is_complete() -> None:
    assert {vector.name for vector in VECTORS} == set("V0 V1 V10 V11 V12 V13 V15 V16 V26".split())


@pytest.mark.parametrize("scheme", ["causal", "scan"])
@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: f"{vector.name}-{vector.scheme}")
def test_clean_under_causal_order(vector: Vector, scheme: str) -> None:
    """Also with the plain hold queue that the mutants are made from: it is their rules that break."""
    board = vector.play(scheme)
    assert broken(board) == set(), board.oracle.witnesses
    assert taken(board) == vector.under_causal


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: f"{vector.name}-{vector.scheme}")
def test_broken_under_the_weaker_scheme(vector: Vector) -> None:
    board = vector.play(vector.scheme)
    assert broken(board) == set(vector.broken.split()), board.oracle.witnesses
    assert taken(board) == vector.under_scheme


def test_what_v15_sends_says_twice_the_same() -> None:
    """Both messages of V15 carry (2, 0)."""
    for scheme, numbers in (("causal", [1, 2]), ("live", [2, 2])):
        board = Vector("V15", scheme, "delay", "A!1 A!2", "", "", "").play(scheme)
        copies = board._copies[2, 1]
        assert [data[20] for data in copies] == numbers, "seq is the first section"


def test_what_v26_claims() -> None:
    """Under released counts 2 names 1 as its cause, and neither of the pair is flagged anywhere."""
    seen = {}
    for scheme in ("causal", "released"):
        board = Board(2, on_board(scheme), queues=True)
        board.send(0, 1)
        board.arrive(1, 1)
        board.send(1, 2)
        board.arrive(2, 0)
        first, second = board._released[1][0], board._released[0][0]
        board.take(1)
        board.take(0)
        seen[scheme] = (first.concurrent, second.concurrent, second.deps)
    assert seen == {"causal": (True, True, (0, 0)), "released": (False, False, (1, 0))}


def test_replay_by_name() -> None:
    assert replay("A!1 1>B B!2 2>C").taken == [[2], [1], [1, 2]]
    assert replay("A!1 1>B B!2 2>C", "fifo").taken == [[2], [1], [2, 1]]
    assert replay("A!1 A!2 2>B", "none", sites=3).taken == [[], [2, 1], [1, 2]]
