"""OpenTelemetry: OTLP as JSON, one document or one per line, as the collector's file exporter writes it.

It also reads `instrumentationLibrarySpans`, the name of scopes before 2022, keys with underscores, as programs write them that
print protocol buffers, and identifiers in base64.
"""

from collections.abc import Iterator
from typing import Any

from inga.model.errors import TraceError
from inga.trace.importers.json_text import read_items
from inga.trace.importers.record import BadLines, fault
from inga.trace.importers.source import LogText
from inga.trace.importers.spans import Span, identity, kind_of, list_of, moment, text_of
from inga.trace.manifest import shown

RESOURCES = ("resourceSpans", "resource_spans")
SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans", "instrumentation_library_spans")


def read_spans(log: LogText, encoding: str, bad: BadLines) -> Iterator[Span]:
    for line, resource in read_items(log, encoding, bad, *RESOURCES):
        try:
            if not isinstance(resource, dict):
                raise fault(log, line, f"resourceSpans holds {shown(resource)}, which is no object")
            service = _service(resource)
            spans = [
                span
                for key in SCOPES
                for scope in list_of(log, line, resource, key)
                for span in list_of(log, line, scope, "spans")
            ]
        except TraceError as error:
            bad.add(error)
            continue
        for span in spans:
            try:
                found = _span(log, line, service, span)
            except TraceError as error:
                bad.add(error)
            else:
                yield found


def _span(log: LogText, line: int, service: str, span: Any) -> Span:
    if not isinstance(span, dict):
        raise fault(log, line, f"spans holds {shown(span)}, which is no object")
    key = identity(log, line, _get(span, "traceId"), _get(span, "spanId"))
    start, stop = (
        moment(log, line, name, _get(span, name)) for name in ("startTimeUnixNano", "endTimeUnixNano")
    )
    if stop < start:
        raise fault(log, line, f"span {key[1]} ends before it starts")
    parent = _get(span, "parentSpanId")
    parents = [identity(log, line, key[0], text_of(parent))] if parent else []
    links = []
    for link in list_of(log, line, span, "links"):
        if not isinstance(link, dict):
            raise fault(log, line, f"links of span {key[1]} holds {shown(link)}, which is no object")
        links.append(identity(log, line, _get(link, "traceId"), _get(link, "spanId")))
    name, kind = text_of(span.get("name", "")), kind_of(log, line, span.get("kind", 0))
    return Span(line, service, *key, name, kind, start, stop, parents, links)


def _get(content: dict[str, Any], key: str) -> Any:
    """A value by its key, or by the same key with underscores."""
    if key in content:
        return content[key]
    return content.get("".join(f"_{each.lower()}" if each.isupper() else each for each in key))


def _service(resource: dict[str, Any]) -> str:
    described = resource.get("resource")
    attributes = described.get("attributes") if isinstance(described, dict) else None
    found: dict[str, Any] = {}
    for each in attributes if isinstance(attributes, list) else []:
        if (
            isinstance(each, dict)
            and isinstance(each.get("value"), dict)
            and isinstance(each.get("key"), str)
        ):
            found[each["key"]] = next(iter(each["value"].values()), None)
    name = text_of(found.get("service.name") or "unknown_service")
    instance = found.get("service.instance.id")
    return f"{name}/{text_of(instance)}" if instance else name
