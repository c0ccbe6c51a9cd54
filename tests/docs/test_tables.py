"""Pages list what there is."""

import re

import pytest

from .tables import DOCS, TABLES, kinds, rewritten


@pytest.mark.parametrize(("page", "make"), TABLES)
def test_tables_list_what_is_declared(page: str, make: object) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert callable(make)
    assert text == rewritten(text, make()), "python tests/docs/tables.py writes it"


def test_the_page_of_traces_has_all_columns() -> None:
    text = (DOCS / "trace.md").read_text(encoding="utf-8")
    section = text[text.index("## Rows") : text.index("| family | steps |")]
    assert dict(re.findall(r"^\| `(\w+)` \| ([\w, ]+) \|", section, re.MULTILINE)) == kinds()


def test_every_format_has_a_section() -> None:
    text = (DOCS / "import.md").read_text(encoding="utf-8")
    from inga.trace.importers import IMPORTERS

    assert [name for name in re.findall(r"^## (\w+)$", text, re.MULTILINE) if name in IMPORTERS] == list(
        IMPORTERS
    )
