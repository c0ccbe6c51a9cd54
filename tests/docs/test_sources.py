"""The page of the documents is what its data say, and these name what is there."""

from typing import Any

import pytest

from .sources import NEEDS, PAGE, disagreements, faults, page, sources

pytestmark = pytest.mark.xdist_group("sources")  # which collects the tests once


def test_every_row_is_whole_and_names_what_is_there() -> None:
    assert list(faults(sources())) == []


def test_the_page_is_what_the_data_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python tests/docs/sources.py writes it"


def test_every_verdict_is_used_and_explained() -> None:
    used = {row["verdict"] for rows in sources().values() for row in rows}
    assert used == set(NEEDS)
    assert all(f"| {verdict} | " in page() for verdict in NEEDS)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"says": ""}, "holds, and no `says`"),
        ({"fails": []}, "holds, and no `fails`"),
        ({"test": []}, "holds, and no `test`"),
        ({"verdict": "proved"}, "no verdict: 'proved'"),
        ({"verdict": "corrected", "note": ""}, "corrected, and no `note`"),
        ({"because": "so"}, "what is `because`?"),
        ({"where": ["layers/causal.py:Casual"]}, "layers/causal.py:Casual is not there"),
        ({"where": ["layers/casual.py"]}, "layers/casual.py is not there"),
        ({"test": ["sim/test_co.py::test_nothing"]}, "sim/test_co.py::test_nothing is not there"),
        (
            {"fails": ["objects/test_sensitivity.py::test_a_changed_rule_is_noticed[Z9]"]},
            "objects/test_sensitivity.py::test_a_changed_rule_is_noticed[Z9] is not there",
        ),
        (
            {"fails": ["objects/test_sensitivity.py::test_a_changed_rule_is_noticed"]},
            "objects/test_sensitivity.py::test_a_changed_rule_is_noticed has cases, and none is named",
        ),
    ],
)
def test_a_row_that_is_not_whole_is_noticed(change: dict[str, Any], fault: str) -> None:
    rows = sources()
    row = next(row for row in rows["co"] if row["verdict"] == "holds")
    row.update(change)
    assert [each.split(": ", 2)[-1] for each in faults(rows)] == [fault]


# Experiments and the table


def as_in_the_table(document: str) -> dict[str, str]:
    """Verdicts of an experiment that finds of each claim what its row says."""
    found: dict[str, str] = {}
    for row in sources()[document]:
        for claim in row.get("claims", []):
            mended = row["verdict"] == "corrected"
            printed = mended and f"{claim}, corrected" in row["claims"]
            found[claim] = "not reproduced" if printed else "holds" if mended else row["verdict"]
    return found


@pytest.mark.parametrize("document", ["co", "sco", "obg", "remiop"])
def test_the_table_agrees_with_an_experiment_that_finds_the_same(document: str) -> None:
    found = as_in_the_table(document)
    assert len(found) > 7
    # Of these rows the experiment tells several claims apart, and the row has the worst of them.
    found.update({"buffer, equal": "holds"} if document == "co" else {})
    found.update({"communication, total": "roughly", "faster, methods": "holds"} if document == "obg" else {})
    assert list(disagreements(document, found)) == []


@pytest.mark.parametrize(
    ("document", "claim", "verdict"),
    [
        ("co", "header", "holds"),
        ("co", "buffer, unequal", "holds"),
        ("co", "own confirmed", "holds"),
        ("co", "confirmed", "roughly"),
        ("co", "theorem 1", "holds"),
        ("co", "theorem 1, corrected", "not reproduced"),
        ("sco", "below-C0", "roughly"),
        ("sco", "rates", "not reproduced"),
        ("remiop", "2", "holds"),
        ("remiop", "4", "holds"),
        ("remiop", "6", "holds"),
        ("remiop", "7", "not reproduced"),
    ],
)
def test_an_experiment_that_finds_otherwise_is_noticed(document: str, claim: str, verdict: str) -> None:
    found = as_in_the_table(document)
    if claim.startswith("buffer"):
        found["buffer, equal"] = "holds"
    found[claim] = verdict
    (said,) = disagreements(document, found)
    assert f"{claim} {verdict}" in said


def test_a_claim_without_a_row_and_a_row_without_its_claim_are_noticed() -> None:
    found = as_in_the_table("remiop")
    found["9"] = found.pop("8")
    assert [*disagreements("remiop", found)] == ["9: no row names it", "8: there is no such claim"]
