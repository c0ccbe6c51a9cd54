"""Columns of events for the viewer, small enough to be in the page: integers, compressed, as text.

A million events take one to five megabytes this way; as JSON they would take sixty, and seconds to read. Ascending columns are
stored as differences, which compress well, and columns that the viewer can compute are left out. A column that is not stored as
differences is used in place, so opening a page costs little more than reading it.

Rejected: Arrow files. Their columns would be the same numbers, but each page would need a reader for their description.
"""

import json
import zlib
from base64 import b64encode
from typing import Any

from inga.report.section import Section
from inga.report.verdict import packets, short
from inga.trace.drawing import STEPS_DRAWN, TEXT_MAX, Drawing, from_rows

MEMBERS_TOLD = 12  # members listed of a set of receivers; the size of the set is stored, too
SPAN_MAX = 1 << 62  # the largest range of values whose differences are computed as integers

_WIDTHS = (("i1", 1 << 7), ("i2", 1 << 15), ("i4", 1 << 31))


def pack(number: int, section: Section) -> list[str]:
    """The HTML elements with a section's data: one with a description, one with all columns."""
    drawing = section.drawing if section.drawing is not None else from_rows(section.rows)
    columns, content, size = _columns(drawing)
    description = {
        "title": short(section.title),
        "names": [name[:TEXT_MAX] for name in section.names],
        "steps": STEPS_DRAWN,
        "texts": drawing.texts,
        "refs": drawing.refs,
        "sets": [[len(each), *each[:MEMBERS_TOLD]] for each in drawing.sets],
        "hasTimes": section.is_timed and _has_span(drawing),
        "receipt": section.receipt,
        "bundled": section.certificate["messages"] != section.certificate["payloads"],
        "witnesses": _witnesses(section, drawing),
        "columns": columns,
        "bytes": size,
    }
    return [
        f'<script type="application/json" id="data-{number}">{safe_json(description)}</script>',
        f'<script type="text/plain" id="columns-{number}">{b64encode(content).decode()}</script>',
    ]


def _has_span(drawing: Drawing) -> bool:
    return len(drawing) > 0 and bool(drawing.time[-1] > drawing.time[0])


def _columns(drawing: Drawing) -> tuple[list[list[Any]], bytes, int]:
    """The description of each column (name, type, encoding, length, base); all columns, compressed; and their size before
    compression."""
    import numpy as np

    def column(name: str) -> Any:
        return getattr(drawing, name).astype(
            np.int64
        )  # whatever type it has in the drawing: sums and differences have to fit

    process, (number, seen) = column("process"), _in_order(column("message"))
    described: list[list[Any]] = []
    parts = [_kept(name, column(name), described) for name in ("process", "step", "view", "peer", "n")]
    parts += [_kept(name, column(name), described) for name in ("text", "ref", "cause")]
    parts += [_kept(name, column(name)[seen], described) for name in ("src", "dst")]
    for name, values, groups in (
        ("time", column("time"), np.zeros_like(process)),
        ("pos", column("pos"), process),
        ("seq", column("seq")[seen], column("src")[seen]),
    ):
        base = int(values.min(initial=SPAN_MAX)) if len(values) else 0
        parts.append(_packed(name, _differences(values, groups), "sums", base, described))
    parts.append(_packed("message", _distances(number, process), "distances", 0, described))
    content = b"".join(parts)
    return described, zlib.compress(content, 6), len(content)


def _in_order(messages: Any) -> tuple[Any, Any]:
    """Renumber messages in the order of their first events: the new number for each event, and the old number for each new one.

    With this numbering, a member's next event is mostly about the next message, and steps of one compress very well.
    """
    import numpy as np

    about = np.flatnonzero(messages >= 0)
    old, first = np.unique(messages[about], return_index=True)
    seen = old[np.argsort(first, kind="stable")]
    new = np.empty(len(seen), np.int64)
    new[seen] = np.arange(len(seen))
    number = np.full(len(messages), -1, np.int64)
    number[about] = new[messages[about]]
    return number, seen


def _distances(numbers: Any, groups: Any) -> Any:
    """The difference of each number from the previous one of the same group (for the first, from 0), plus one if it is not
    negative. Numbers of -1 are skipped and become 0, which no difference is."""
    import numpy as np

    about = np.flatnonzero(numbers >= 0)
    order = about[np.argsort(groups[about], kind="stable")]
    found = np.zeros(len(numbers), np.int64)
    if not len(order):
        return found
    steps = np.diff(numbers[order], prepend=0)
    begins = np.concatenate([[True], np.diff(groups[order]) != 0])
    steps[begins] = numbers[order][begins]
    found[order] = steps + (steps >= 0)
    return found


def _differences(values: Any, groups: Any) -> Any:
    """The difference of each value from the previous one of the same group; for the first of a group, from the lowest of all."""
    import numpy as np

    if not len(values):
        return values
    if int(values.max()) - int(values.min()) > SPAN_MAX:
        values = values.astype(np.float64)
    order = np.argsort(groups, kind="stable")
    sorted_values, sorted_groups = values[order] - values.min(), groups[order]
    steps = np.diff(sorted_values, prepend=0)
    begins = np.concatenate([[True], np.diff(sorted_groups) != 0])
    steps[begins] = sorted_values[begins]
    found = np.empty_like(steps)
    found[order] = steps
    return found


def _kept(name: str, values: Any, described: list[list[Any]]) -> bytes:
    """A column without encoding; if all its values are equal, only that value, in the description."""
    import numpy as np

    values = np.minimum(values, SPAN_MAX)
    if len(values) and values.min() == values.max():
        described.append([name, _kind(values), "same", len(values), int(values[0])])
        return b""
    return _packed(name, values, "kept", 0, described)


def _packed(name: str, values: Any, how: str, base: int, described: list[list[Any]]) -> bytes:
    kind = _kind(values)
    content: bytes = values.astype(f"<{kind}").tobytes()
    described.append([name, kind, how, len(values), base])
    return content + bytes(-len(content) % 8)  # typed arrays need columns that begin at multiples of 8


def _kind(values: Any) -> str:
    """The smallest integer type that holds all values; if none does, floating point."""
    least, largest = int(values.min(initial=0)), int(values.max(initial=0))
    return next((kind for kind, limit in _WIDTHS if -limit <= least and largest < limit), "f8")


def _witnesses(section: Section, drawing: Drawing) -> list[dict[str, Any]]:
    """The violations, each with the indices of its events in the drawing. Events that are not drawn are left out of a chain, and
    None elsewhere."""
    found = []
    for check in section.certificate["checks"]:
        for witness in check["witnesses"]:
            steps = [(step["process"], step["pos"]) for step in witness["chain"]]
            chain = [drawing.find(*step) for step in steps]
            found.append(
                {
                    "check": check["name"],
                    "promised": section.is_promised(check["name"]),
                    "text": short(packets(witness["text"], section)),
                    "chain": [event for event in chain if event is not None],
                    "late": drawing.find(witness["process"], witness["pos"]),
                    "early": drawing.find(witness["process"], witness["other_pos"] or 0),
                    "process": witness["process"],
                    "message": witness["message"],
                }
            )
    return found


def safe_json(content: dict[str, Any]) -> str:
    """JSON that cannot end the HTML element that it is in."""
    text = json.dumps(content, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
