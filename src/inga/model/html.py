"""How values are shown in a notebook: as a small table, in which foreign text is escaped."""

from collections.abc import Iterable, Sequence
from html import escape


def html_table(head: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """A table of text and numbers; numbers are aligned to the right."""
    titles = "".join([f"<th>{escape(each)}</th>" for each in head])
    body = "".join(["<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows])
    said = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{said}<thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        text = f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
        return f'<td style="text-align:right">{text}</td>'
    return f"<td>{escape(str(value))}</td>"
