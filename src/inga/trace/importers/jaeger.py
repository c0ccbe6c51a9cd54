"""Jaeger: traces in JSON as its web page and its API provide them, `{"data": [...]}`, or one trace per line.

{"traceID": ..., "spans": [{"spanID": ..., "operationName": ..., "startTime": microseconds, "duration": ...,
 "references": [{"refType": "CHILD_OF", ...}], "processID": "p1", "tags": [...]}], "processes": {"p1": {"serviceName": ...}}}
"""

from collections.abc import Iterator
from typing import Any

from inga.model.errors import TraceError
from inga.trace.importers.json_text import read_items
from inga.trace.importers.record import BadLines, fault
from inga.trace.importers.source import LogText
from inga.trace.importers.spans import Span, identity, kind_of, list_of, moment, text_of
from inga.trace.manifest import shown

MICROSECOND = 1000


def read_spans(log: LogText, encoding: str, bad: BadLines) -> Iterator[Span]:
    for line, trace in read_items(log, encoding, bad, "data"):
        try:
            if not isinstance(trace, dict):
                raise fault(log, line, f"data holds {shown(trace)}, which is no object")
            spans = list_of(log, line, trace, "spans")
        except TraceError as error:
            bad.add(error)
            continue
        for span in spans:
            try:
                found = _span(log, line, trace.get("processes"), span)
            except TraceError as error:
                bad.add(error)
            else:
                yield found


def _span(log: LogText, line: int, processes: Any, span: Any) -> Span:
    if not isinstance(span, dict):
        raise fault(log, line, f"spans holds {shown(span)}, which is no object")
    key = identity(log, line, span.get("traceID"), span.get("spanID"), "traceID and spanID")
    start, length = (
        moment(log, line, name, span.get(name), MICROSECOND) for name in ("startTime", "duration")
    )
    parents: list[tuple[str, str]] = []
    links: list[tuple[str, str]] = []
    if span.get("parentSpanID"):  # in older versions
        parents.append(identity(log, line, key[0], span["parentSpanID"]))
    for each in list_of(log, line, span, "references"):
        if not isinstance(each, dict):
            raise fault(log, line, f"references of span {key[1]} holds {shown(each)}, which is no object")
        found = identity(log, line, each.get("traceID"), each.get("spanID"), "traceID and spanID")
        (parents if each.get("refType") == "CHILD_OF" else links).append(found)
    tags = _tags(list_of(log, line, span, "tags"))
    kind = kind_of(log, line, tags.get("span.kind", "unspecified"))
    process = span.get("process")
    if not isinstance(process, dict):
        named = text_of(span.get("processID"))
        process = processes.get(named) if isinstance(processes, dict) else None
    name = text_of(span.get("operationName", ""))
    return Span(line, _service(process), *key, name, kind, start, start + length, parents, links)


def _service(process: Any) -> str:
    described = process if isinstance(process, dict) else {}
    name = text_of(described.get("serviceName") or "unknown_service")
    tags = described.get("tags")
    instance = _tags(tags if isinstance(tags, list) else []).get("service.instance.id")
    return f"{name}/{text_of(instance)}" if instance else name


def _tags(tags: list[Any]) -> dict[str, Any]:
    found = [each for each in tags if isinstance(each, dict) and isinstance(each.get("key"), str)]
    return {each["key"]: each.get("value") for each in found}
