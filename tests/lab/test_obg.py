"""The evaluation of OBG: numbers near those of the specification, and claims judged by them."""

from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from inga.lab import bench_object, obg
from inga.lab.obg import COLUMNS, LoadPoint, loads, means, simulate, tabulate
from inga.lab.obg.claims import judge
from inga.lab.obg.load import METHODS, Load, LoadMeans

SEEDS = range(3)

# (model, n, share): wait at the receiver and send to start, object order
OBJECT = {
    ("methods", 3, 0): (2.10, 7.19),
    ("methods", 5, 60): (1.35, 6.37),
    ("methods", 10, 40): (3.27, 8.28),
    ("methods", 5, 100): (0.0, 4.99),
    ("pairs", 5, 60): (3.59, 8.62),
    ("pairs", 10, 90): (3.99, 9.00),
}
CAUSAL = {3: (95.0, 0.61, 5.36), 5: (92.2, 0.33, 5.24), 10: (88.5, 0.17, 5.17)}


def mean(model: str, n: int, share: int, order: str) -> LoadMeans:
    played = [(load, simulate(load)) for load in (Load(model, n, share, order, seed) for seed in SEEDS)]
    (found,) = means(played).values()
    return found


@pytest.mark.parametrize("at", OBJECT)
def test_object_order_waits_as_long_as_it_should(at: tuple[str, int, int]) -> None:
    found = mean(*at, "object")
    assert (found.wait, found.delay) == pytest.approx(OBJECT[at], abs=0.6)  # few seeds, other draws


@pytest.mark.parametrize("n", CAUSAL)
def test_causal_order_relates_most_and_waits_little(n: int) -> None:
    found = mean("methods", n, 0, "causal")
    assert (found.ordered, found.wait, found.delay) == pytest.approx(CAUSAL[n], abs=2.5)
    assert found.wait < 1


@pytest.mark.parametrize("share", [20, 60, 90])
def test_the_share_of_ordered_pairs_follows_the_share_of_what_conflicts(share: int) -> None:
    left = 1 - share / 100
    assert mean("methods", 5, share, "object").ordered == pytest.approx(100 * left**2, abs=8)
    assert mean("pairs", 5, share, "object").ordered == pytest.approx(100 * left, abs=8)


def test_taken_literally_more_is_ordered_and_precedence_alone_little() -> None:
    found = mean("methods", 5, 100, "object")
    assert found.ordered == 0.0 and found.literal == found.precede == pytest.approx(0.7, abs=0.4)
    found = mean("methods", 5, 40, "object")
    assert found.ordered < found.literal < found.ordered + found.precede
    assert found.precede == pytest.approx(6.1, abs=2)


def test_total_order_is_object_order_in_which_everything_conflicts() -> None:
    total, strict = mean("methods", 4, 0, "total"), mean("methods", 4, 0, "object")
    assert total == strict and total.ordered == 100.0


def test_every_order_meets_the_same_requests_and_delays() -> None:
    one, other = Load("methods", 4, 20, "object", 3), Load("pairs", 4, 80, "causal", 3)
    assert one.plan == other.plan
    assert one.delay(7, 0, 1) == other.delay(7, 0, 1) and one.delay(7, 2, 2) == 0.0
    assert {len(load.conflicts) for load in (one, other)} == {36, 11}, "8 methods; a fifth of 55 pairs"
    assert len(Load("pairs", 4, 80, "total", 3).conflicts) == METHODS * (METHODS + 1) // 2


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    out = tmp_path_factory.mktemp("obg")
    return obg.run(out, True, lambda text: None), out


def test_tables_and_page(outcome: tuple[Any, Path]) -> None:
    found, out = outcome
    assert set(found.tables) >= {"pairs", "wait"}
    for table in found.tables.values():
        assert table.columns == COLUMNS == ["model", "n", "share", "order", "value"]
    assert {row[3] for row in found.tables["pairs"].rows} == {"object", "causal", "total"}
    page = (out / "obg.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 4 and "not reproduced" in page
    assert "causal order" in found.text


def test_the_claim_is_judged_honestly(outcome: tuple[Any, Path]) -> None:
    found, _ = outcome
    verdicts = {claim.id: claim.verdict for claim in found.claims}
    assert verdicts == {
        "fewer": "holds",
        "faster, methods": "holds",
        "faster, pairs": "not reproduced",
        "faster than causal": "not reproduced",
        "free": "holds",
    }


def made(wait: float, *, free: float = 0.0) -> dict[LoadPoint, LoadMeans]:
    """Results as a paper might have wished them: everything in proportion."""
    found = {}
    for model in ("methods", "pairs"):
        for share in (0, 50, 100):
            left = 1 - share / 100
            found[LoadPoint(model, 3, share, "object")] = LoadMeans(90 * left, wait * left or free, 5.0)
        found[LoadPoint(model, 3, 0, "causal")] = LoadMeans(95.0, 9.0, 5.0)
        found[LoadPoint(model, 3, 0, "total")] = LoadMeans(100.0, wait, 5.0)
    return found


def test_claims_can_hold_and_fail() -> None:
    assert {claim.verdict for claim in judge(made(4.0))} == {"holds"}
    late = {claim.id: claim.verdict for claim in judge(made(4.0, free=0.5))}
    assert late["free"] == "not reproduced"


def test_all_that_is_asked_for_is_simulated() -> None:
    points = {LoadPoint(load.model, load.n, load.share, load.order) for load in loads(False)}
    assert {point.n for point in points} == set(range(3, 11))
    assert {point.share for point in points if point.order == "object"} == {0, 20, 40, 60, 80, 90, 100}
    table = tabulate({point: LoadMeans(1.0, 2.0, 3.0) for point in points})["wait"]
    assert len(table.rows) == 2 * 8 * 7 * 3
    assert fmean(row[4] for row in table.rows) == 2.0


def test_the_bench_shows_what_waits_and_what_does_not() -> None:
    rows = {row.case: row for row in bench_object.run(lambda text: None, quick=True, count=8)}
    assert rows["compatible message, 5 ms"].ratio == rows["compatible request, 5 ms"].ratio == 1.0
    for case in ("conflicting message", "conflicting request"):
        assert 1.5 < rows[f"{case}, 5 ms"].ratio <= 2.0, case
    assert 1.0 < rows["message in total order, 5 ms"].ratio < 2.0, "what the sequencer says waits for nobody"
    assert rows["conflicting message, clocks not asked for, 5 ms"].ratio > 2.0
