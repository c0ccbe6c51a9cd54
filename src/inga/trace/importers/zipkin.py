"""Zipkin: spans in the JSON of version 2 of its API: a list, a list of traces, or one span per line.

    {"traceId": ..., "id": ..., "parentId": ..., "kind": "SERVER", "name": ..., "timestamp": microseconds, "duration": ...,
     "localEndpoint": {"serviceName": ...}, "shared": true}

The span of a server may share the identifier of the client's span. Here it is a span of its own, and the client's span is its parent.
"""

from collections.abc import Iterator
from typing import Any

from inga.model.errors import TraceError
from inga.trace.importers.json_text import read_items
from inga.trace.importers.record import BadLines, fault
from inga.trace.importers.source import LogText
from inga.trace.importers.spans import SHARED, Span, identity, kind_of, moment, text_of
from inga.trace.manifest import shown

MICROSECOND = 1000


def read_spans(log: LogText, encoding: str, bad: BadLines) -> Iterator[Span]:
    for line, item in read_items(log, encoding, bad):
        for span in item if isinstance(item, list) else [item]:
            try:
                found = _span(log, line, span)
            except TraceError as error:
                bad.add(error)
            else:
                yield found


def _span(log: LogText, line: int, span: Any) -> Span:
    if not isinstance(span, dict):
        raise fault(log, line, f"the list holds {shown(span)}, which is no object")
    trace, name = identity(log, line, span.get("traceId"), span.get("id"), "traceId and id")
    parent = span.get("parentId")
    parents = [identity(log, line, trace, text_of(parent))] if parent else []
    if span.get("shared") is True:
        parents, name = [(trace, name)], name + SHARED
    start = moment(log, line, "timestamp", span.get("timestamp"), MICROSECOND)
    length = moment(log, line, "duration", span.get("duration", 0), MICROSECOND)
    kind = kind_of(log, line, span.get("kind", "unspecified"))
    endpoint = span.get("localEndpoint")
    service = endpoint.get("serviceName") if isinstance(endpoint, dict) else None
    return Span(
        line, text_of(service or "unknown_service"), trace, name, text_of(span.get("name", "")), kind, start,
        start + length, parents,
    )  # fmt: skip
