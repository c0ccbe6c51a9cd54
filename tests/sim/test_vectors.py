"""The counterexamples V0 to V28: broken as listed under the weaker scheme, clean under the right rule.

What exactly comes of each is in tests/scenarios/causality.
"""

from pathlib import Path

import pytest

from inga.lab.ladder.vectors import FOR_SUBSETS, VECTORS, Show
from inga.sim.board import Board, replay

from ..scenarios.play_causality import CausalityScript
from .mutants import on_board

SCENARIOS = Path(__file__).parents[1] / "scenarios" / "causality"

OF_VIEWS = "V19 V20 V21 V22 V23 V24 V25 V27 V28".split()
"""What these are about no rung knows: joins, crashes, gates."""

each = pytest.mark.parametrize(
    ("name", "show"),
    [(vector.id, show) for vector in VECTORS.values() for show in vector.shows],
    ids=lambda each: f"{each.scheme}-{each.schedule.replace(' ', '_')}" if isinstance(each, Show) else each,
)


def stamps(name: str, order: str, at: int = 0) -> list[str]:
    return list(VECTORS[name].shows[at].under(order).stamps.values())


def test_every_counterexample_is_a_scenario() -> None:
    numbers = [f"V{n}" for n in range(29) if n != 14]
    assert set(VECTORS) == {*numbers, "V14a", "V14b"}
    script = CausalityScript()
    for path in SCENARIOS.iterdir():
        script.replay(path.read_text())
    shipped = {(vector.id, show.name) for vector in VECTORS.values() for show in vector.shows}
    assert set(script.played) == shipped


@each
def test_broken_under_the_weaker_scheme(name: str, show: Show) -> None:
    scene = show.broken()
    assert scene.broken and set(scene.found) == set(show.found), "as the table says"


@each
def test_clean_under_the_right_rule(name: str, show: Show) -> None:
    for order in VECTORS[name].right:
        scene = show.under(order)
        assert (scene.broken, scene.found) == (set(), ())


def test_which_rules_are_right_where_not_everybody_is_addressed() -> None:
    assert VECTORS["V4"].right == VECTORS["V18"].right == FOR_SUBSETS
    assert set(FOR_SUBSETS) == {"history", "vector", "matrix"}


@each
def test_the_exact_rungs_are_clean_as_well(name: str, show: Show) -> None:
    """History everywhere; whole vectors wherever everybody is addressed."""
    for order in () if name in OF_VIEWS else ("history", "broadcast"):
        if order == "broadcast" and ":" in show.schedule:
            continue
        assert show.under(order).found == ()


# The stamps that the outcomes speak of


def test_what_messages_carry() -> None:
    assert stamps("V3", "realtime") == ["11 s", "5 s"]
    assert stamps("V5", "scalar") == ["1", "1"]
    assert stamps("V8", "last-sender") == ["after –", "after –", "after A1"]
    assert stamps("V10", "strict") == ["(1,0)", "(0,1)"]
    assert stamps("V12", "tree", 3) == ["(1,0)", "(2,0)", "(0,1)"]
    assert stamps("V13", "at-once-keep") == ["(1,0,0)", "(0,1,0)", "(1,0,1)"]
    assert stamps("V14a", "at-once-replace") == ["(1,0)", "(2,0)", "(0,1)", "(2,1)"]
    assert stamps("V14a", "vector")[-1] == "(2,2)", "which is what it should have said"
    assert stamps("V15", "live-vector") == ["(2,0)", "(2,0)"]
    assert stamps("V15", "vector") == ["(1,0)", "(2,0)"]
    assert stamps("V17", "tree")[-1] == "(1,2)"
    assert stamps("V26", "released") == ["(1,0)", "(1,1)"]
    assert stamps("V26", "vector") == ["(1,0)", "(0,1)"]


def states(name: str, order: str, site: int) -> list[str]:
    scene = VECTORS[name].shows[0].under(order)
    return [moment.state for moment in scene.moments if moment.event.site == site]


def test_what_becomes_of_vectors() -> None:
    assert states("V14a", "at-once-replace", 0)[-1] == "(0,1)", "it went back"
    assert states("V14b", "at-once-keep", 1)[-1] == "(0,1)", "1 was delivered and not counted"
    assert states("V17", "tree", 0)[-1] == "leaves (1,0) (0,1)"
    assert states("V8", "last-sender", 2)[-1] == "counts A2 B0 C0"


def test_v6_holds_1_where_links_keep_order() -> None:
    scene = VECTORS["V6"].shows[1].under("scalar")
    arrival = next(m for m in scene.moments if str(m.event) == "1>B")
    assert arrival.held == [1]


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
    assert replay("A!1 A!2 2>B B.", "realtime").taken == [[], [2, 1]]
