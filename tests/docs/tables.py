"""Tables of pages that list what is declared in code. `python tests/docs/tables.py` brings the pages up to date."""

from collections.abc import Callable, Iterable
from pathlib import Path

from inga.certify.checks import CHECKS
from inga.trace.importers import IMPORTERS, OPTIONS
from inga.trace.schema import COLUMNS, schema

DOCS = Path(__file__).resolve().parents[2] / "docs"


def table(head: tuple[str, ...], lines: Iterable[tuple[str, ...]]) -> list[str]:
    first, *others = [f"| {' | '.join(cells)} |" for cells in (head, *lines)]
    return [first, "|" + "---|" * len(head), *others]


def checks() -> list[str]:
    lines = [(f"`{each.name}`", each.statement, each.counted) for each in CHECKS.values()]
    return table(("check", "statement", "counted"), lines)


def formats() -> list[str]:
    lines = [
        (f"`{each.name}`", each.reads, "; ".join(dict.fromkeys(OPTIONS[name] for name in each.options)))
        for each in IMPORTERS.values()
    ]
    return table(("format", "reads", "options of its own"), lines)


TABLES: list[tuple[str, Callable[[], list[str]]]] = [("checks.md", checks), ("import.md", formats)]


def rewritten(text: str, made: list[str]) -> str:
    """A page with the table that has the same head replaced."""
    lines = text.split("\n")
    first = lines.index(made[0])
    last = next(at for at in range(first, len(lines)) if not lines[at].startswith("|"))
    return "\n".join([*lines[:first], *made, *lines[last:]])


def kinds() -> dict[str, str]:
    """The type of each column of a trace, in the words of docs/trace.md."""
    types = {field.name: str(field.type) for field in schema(1)}
    words = {"step": "string", "deps": "binary, 4 bytes a process"}
    return {name: words.get(name, types[name]) for name in COLUMNS}


if __name__ == "__main__":
    for page, make in TABLES:
        path = DOCS / page
        path.write_text(rewritten(path.read_text(encoding="utf-8"), make()), encoding="utf-8")
