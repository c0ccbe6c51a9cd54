"""Pages of experiments: tables that fit a screen, words that are explained, verdicts that say by what."""

import re
from pathlib import Path

import pytest

from inga.lab.evaluation import (
    MARKS,
    MEANINGS,
    ROWS_OPEN,
    SPREAD_MAX,
    figures_of,
    html_table,
    page,
    spread,
)
from inga.lab.experiments import HOLDS, VERDICTS, Claim, Table, writing
from inga.lab.papers.sources import SOURCES, source_of
from inga.lab.terms import TERMS
from inga.model.errors import UsageError


def test_words_of_a_column_become_columns() -> None:
    table = Table(["n", "order", "value"], [[3, "a", 1.0], [3, "b", 2.0], [5, "a", 3.0], [5, "b", 4.0]])
    assert spread(table) == Table(["n", "a", "b"], [[3, 1.0, 2.0], [5, 3.0, 4.0]])
    two = Table(["k", "scheme", "pdus", "ratio"], [[1, "C0", 15, 1.0], [1, "D0", 30, 2.0]])
    assert spread(two) == Table(
        ["k", "C0: pdus", "C0: ratio", "D0: pdus", "D0: ratio"], [[1, 15, 1.0, 30, 2.0]]
    )


@pytest.mark.parametrize(
    "table",
    [
        Table(["n", "order", "value"], [[3, "a", 1], [3, "b", 2], [5, "a", 3]]),  # one is missing
        Table(["n", "order", "value"], [[3, "a", 1], [3, "a", 2]]),  # one is there twice
        Table(["order", "value"], [["a", 1], ["b", 2]]),  # nothing to the left
        Table(["n", "order"], [[1, "a"], [1, "b"]]),  # nothing to the right
        Table(["n", "value"], [[1, 2], [3, 4]]),  # no words
        Table(["n", "name", "value"], [[1, f"w{at}", at] for at in range(SPREAD_MAX + 1)]),  # too many
        Table(["n"], []),
    ],
)
def test_other_tables_stay_as_they_are(table: Table) -> None:
    assert spread(table) is table


def test_a_column_with_dashes_is_one_of_numbers() -> None:
    found = html_table(Table(["stack", "round_trip"], [["miop", "-"], ["remiop", 2.5]]))
    assert '<td class="number">-</td>' in found and ">round trip<" in found
    assert '<td class="number">miop' not in found


def made(rows: int) -> str:
    claims = [Claim("confirmed", "a <claim>", "R", "1R", HOLDS)]
    table = Table(["k", "value"], [[at, at] for at in range(rows)])
    return page("t", "lead", claims, [("<svg></svg>", "one")], {"figure5": table}, {"figure5": "caption"}, source=source_of("co"))  # fmt: skip


def test_a_long_table_is_a_click_away() -> None:
    short, long = made(ROWS_OPEN), made(ROWS_OPEN + 1)
    assert "<h3>Figure 5</h3>" in short and "Caption." in short
    assert "rows</summary>" not in short and f"<summary>{ROWS_OPEN + 1} rows</summary>" in long


def test_a_verdict_stands_beside_what_it_was_judged_by() -> None:
    found = made(1)
    reading = source_of("co").reading("confirmed")
    assert "a &lt;claim&gt;" in found and reading.how in found and f"tolerance: {reading.tolerance}" in found
    assert MEANINGS[HOLDS] in found and "<dt>R</dt>" in found
    assert MARKS.keys() == MEANINGS.keys() == {*VERDICTS}


def test_figures_and_tables_are_found_again() -> None:
    figures, tables = figures_of(made(1))
    assert "<svg>" in figures and "<h3>" not in figures and "Figure 5" in tables and "<svg>" not in tables


@pytest.mark.parametrize("name", [source.name for source in SOURCES if source.name != "ladder"])
def test_letters_are_explained(name: str) -> None:
    """Single letters, and names such as C0, that occur in the readings of a source."""
    readings = source_of(name).readings.values()
    words = " ".join(f"{each.how} {each.tolerance}" for each in readings)
    told = " ".join(f"{term} {meaning}" for term, meaning in TERMS[name].items())
    used = {*re.findall(r"\b(?:[A-Z]\d|R|W|[kd]|Rm[ai][xn]|PDU|NACK)\b", words)}
    assert used <= {*re.findall(r"\w+", told)}, used - {*re.findall(r"\w+", told)}


def test_a_directory_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    out = tmp_path / "file"
    out.touch()
    with (
        pytest.raises(UsageError, match=rf"^{re.escape(str(out))} cannot be written to: Not a directory$"),
        writing(out),
    ):
        (out / "page.html").write_text("")
    with pytest.raises(ValueError), writing(out):
        raise ValueError
