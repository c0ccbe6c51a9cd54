"""Columns of events for the viewer, small enough to be in the page: integers, compressed, as text.

A million events are some ten megabytes this way; as JSON they would be sixty, and take seconds to read. What counts up
is kept as differences, which compress well.
"""

import json
import zlib
from base64 import b64encode
from typing import Any

from inga.report.section import Section
from inga.report.verdict import packets, short
from inga.trace.drawing import STEPS_DRAWN, TEXT_MAX, Drawing, from_rows

SPAN_MAX = 1 << 62  # of values whose differences are whole numbers

_WIDTHS = (("u1", 1 << 8), ("u2", 1 << 16), ("u4", 1 << 32))


def pack(number: int, section: Section) -> list[str]:
    """The elements that carry a section's data: a description, and one for all columns."""
    drawing = section.drawing if section.drawing is not None else from_rows(section.rows)
    columns, content = _columns(drawing)
    description = {
        "title": short(section.title),
        "names": [name[:TEXT_MAX] for name in section.names],
        "steps": STEPS_DRAWN,
        "texts": drawing.texts,
        "refs": drawing.refs,
        "sets": drawing.sets,
        "firstPos": int(drawing.pos.min(initial=1 << 62)) if len(drawing) else 0,
        "hasTimes": section.is_timed and _has_span(drawing),
        "receipt": section.receipt,
        "bundled": section.certificate["messages"] != section.certificate["payloads"],
        "witnesses": _witnesses(section, drawing),
        "columns": columns,
    }
    return [
        f'<script type="application/json" id="data-{number}">{safe_json(description)}</script>',
        f'<script type="text/plain" id="columns-{number}">{b64encode(content).decode()}</script>',
    ]


def _has_span(drawing: Drawing) -> bool:
    return len(drawing) > 0 and bool(drawing.time[-1] > drawing.time[0])


def _columns(drawing: Drawing) -> tuple[list[list[Any]], bytes]:
    """Name, type, how to undo it and length of each column; and all of them, compressed."""
    import numpy as np

    described: list[list[Any]] = []
    parts = []
    for name in (
        "process",
        "pos",
        "time",
        "step",
        "view",
        "message",
        "copy",
        "peer",
        "n",
        "text",
        "ref",
        "cause",
    ):
        values, how = getattr(drawing, name), "one more"  # so that none is 0
        if name == "time":
            values, how = _differences(values, np.zeros(len(values), np.int64)), "differences"
        elif name == "pos":
            values, how = _differences(values, drawing.process), "differences by process"
        parts.append(_packed(name, values, how, described))
    parts += [_packed(name, getattr(drawing, name), "one more", described) for name in ("src", "seq", "dst")]
    return described, zlib.compress(b"".join(parts), 6)


def _differences(values: Any, groups: Any) -> Any:
    """From each value of a group to the next one; the first is left as the difference from the lowest of all."""
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


def _packed(name: str, values: Any, how: str, described: list[list[Any]]) -> bytes:
    import numpy as np

    values = np.minimum(values.astype(np.int64), SPAN_MAX) + 1 if how == "one more" else values
    largest, least = int(values.max(initial=0)), int(values.min(initial=0))
    kind = next((kind for kind, limit in _WIDTHS if least >= 0 and largest < limit), "f8")
    content: bytes = values.astype(f"<{kind}").tobytes()
    padding = -len(content) % 8  # so that every column begins where an array may
    described.append([name, kind, how, len(values)])
    return content + bytes(padding)


def _witnesses(section: Section, drawing: Drawing) -> list[dict[str, Any]]:
    """What each violation is about, as numbers of events; those that are not drawn are left out."""
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
    """JSON in which nothing can end the element that it is in."""
    text = json.dumps(content, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
