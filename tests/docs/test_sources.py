"""The page of the documents is what its data say, and these name what is there."""

from typing import Any

import pytest

from .sources import NEEDS, PAGE, faults, page, sources


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
    ],
)
def test_a_row_that_is_not_whole_is_noticed(change: dict[str, Any], fault: str) -> None:
    rows = sources()
    row = next(row for row in rows["co"] if row["verdict"] == "holds")
    row.update(change)
    assert [each.split(": ", 2)[-1] for each in faults(rows)] == [fault]
