"""Spans of OpenTelemetry (OTLP as JSON, one document or one a line) as messages between services.

OpenTelemetry has no clocks of causality, but its spans say who called whom:

    process    a service (`service.name`, with `service.instance.id` if there is one)
    event      the start of a span, and its end
    message    from a span to one of another process that has it as parent or links to it: sent after the
               start of the first, received before the start of the second
    reply      from a SERVER span to its CLIENT parent: sent before the end of the first, received after the
               end of the second

Times only order the rows of one process. Rows have no `deps`: nothing in the spans says what was known.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from inga.model.errors import TraceError
from inga.trace.directory import whole_directory
from inga.trace.importers.record import bad, is_text
from inga.trace.importers.text import open_text
from inga.trace.importers.write import HOSTS_MAX, SEGMENT_ROWS_MAX, Imported, Progress
from inga.trace.manifest import Manifest, shown
from inga.trace.writer import TraceWriter

KINDS = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
SERVER, CLIENT = KINDS.index("SERVER"), KINDS.index("CLIENT")
BLOCK = 1 << 20  # characters
TIME_MAX = (
    1 << 62
)  # nanoseconds: far from where differences of times, which are floats for a while, leave 64 bits

_TABLES = """
PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-32768;
CREATE TABLE span (id INTEGER PRIMARY KEY, trace TEXT, span TEXT, process INT, name TEXT, kind INT,
                   start INT, stop INT, line INT, UNIQUE (trace, span));
CREATE TABLE cause (effect INT, trace TEXT, span TEXT, is_parent INT);
BEGIN;
"""

# A message, by the rows of its two ends. `turn` puts rows of one instant in order: what is received comes
# before the event that it starts, what is sent after; at the end of a span it is the other way round.
_STEPS = """
CREATE TABLE message (source INT, target INT, is_reply INT);
INSERT INTO message SELECT a.id, b.id, 0 FROM cause JOIN span a USING (trace, span) JOIN span b ON b.id = effect
    WHERE a.process != b.process;
INSERT INTO message SELECT b.id, a.id, 1 FROM cause JOIN span a USING (trace, span) JOIN span b ON b.id = effect
    WHERE a.process != b.process AND is_parent AND a.kind = {client} AND b.kind = {server};
CREATE TABLE step (process INT, time INT, turn INT, what TEXT, span INT, message INT, seq INT);
INSERT INTO step SELECT process, start, 1, 'start', id, NULL, NULL FROM span;
INSERT INTO step SELECT process, stop, 4, 'end', id, NULL, NULL FROM span;
INSERT INTO step SELECT s.process, iif(is_reply, stop, start), iif(is_reply, 3, 2), 'send', s.id, m.rowid, NULL
    FROM message m JOIN span s ON s.id = source;
INSERT INTO step SELECT s.process, iif(is_reply, stop, start), iif(is_reply, 5, 0), 'deliver', s.id, m.rowid, NULL
    FROM message m JOIN span s ON s.id = target;
CREATE TABLE sent (message INTEGER PRIMARY KEY, process INT, seq INT, receiver INT);
INSERT INTO sent SELECT st.message, st.process,
    row_number() OVER (PARTITION BY st.process ORDER BY st.time, st.turn, st.rowid), t.process
    FROM step st JOIN message m ON m.rowid = st.message JOIN span t ON t.id = m.target WHERE st.what = 'send';
"""


def import_spans(path: Path, out: Path, claims: list[str], encoding: str, progress: Progress) -> Imported:
    """Make a trace of spans. They are sorted in a file, so memory does not depend on their number."""
    with (
        whole_directory(out) as directory,
        closing(sqlite3.connect(scratch := directory / "spans.tmp", isolation_level=None)) as base,
    ):
        base.executescript(_TABLES)
        names = _collect(path, encoding, base, progress)
        base.executescript(_STEPS.format(client=CLIENT, server=SERVER))
        found = _write(path, directory, base, list(names), claims)
        scratch.unlink()
    found.traces = [str(out)]
    return found


# ---- reading


def _collect(path: Path, encoding: str, base: sqlite3.Connection, progress: Progress) -> dict[str, int]:
    names: dict[str, int] = {}
    count = 0
    for line, resource in _resources(path, encoding):
        if not isinstance(resource, dict):
            raise bad(path, line, f"resourceSpans holds {shown(resource)}, which is no object")
        name = _service(resource)
        process = names.setdefault(name, len(names))
        if len(names) > HOSTS_MAX:
            raise bad(path, line, f"there are more than {HOSTS_MAX:,} services by now, which cannot be")
        for scope in _list(resource, "scopeSpans", path, line):
            for span in _list(scope, "spans", path, line):
                _add(base, span, process, path, line)
                count += 1
                progress(count)
    if not count:
        raise TraceError(f"{path} has no span: OTLP as JSON is expected, with resourceSpans.")
    return names


def _list(content: Any, key: str, path: Path, line: int) -> list[Any]:
    found = content.get(key, []) if isinstance(content, dict) else None
    if not isinstance(found, list):
        raise bad(path, line, f"{key} must be a list")
    return found


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
    name = _text(found.get("service.name") or "unknown_service")
    instance = found.get("service.instance.id")
    return f"{name}/{_text(instance)}" if instance else name


def _text(value: Any) -> str:
    """What should be a text, and is made one."""
    return value if isinstance(value, str) else shown(value)


def _add(base: sqlite3.Connection, span: Any, process: int, path: Path, line: int) -> None:
    if not isinstance(span, dict):
        raise bad(path, line, f"spans holds {shown(span)}, which is no object")
    key = _identity(span, path, line)
    start, stop = (_time(span, name, path, line) for name in ("startTimeUnixNano", "endTimeUnixNano"))
    if stop < start:
        raise bad(path, line, f"span {key[1]} ends before it starts")
    name, kind = _text(span.get("name", "")), _kind(span, path, line)
    row = base.execute(
        "INSERT OR IGNORE INTO span VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*key, process, name, kind, start, stop, line),
    )
    if row.rowcount != 1:
        raise bad(path, line, f"span {key[1]} of trace {key[0]} is there a second time")
    effect = row.lastrowid
    causes = set()
    if span.get("parentSpanId"):
        causes.add((key[0], _text(span["parentSpanId"]).lower(), 1))
    for link in _list(span, "links", path, line):
        if not isinstance(link, dict):
            raise bad(path, line, f"links of span {key[1]} holds {shown(link)}, which is no object")
        found = _identity(link, path, line)
        if (*found, 1) not in causes:
            causes.add((*found, 0))
    base.executemany("INSERT INTO cause VALUES (?, ?, ?, ?)", [(effect, *each) for each in sorted(causes)])


def _identity(content: dict[str, Any], path: Path, line: int) -> tuple[str, str]:
    trace, span = content.get("traceId"), content.get("spanId")
    if not isinstance(trace, str) or not isinstance(span, str) or not trace or not span:
        raise bad(path, line, "a span or link has no traceId and spanId")
    return trace.lower(), span.lower()


def _time(span: dict[str, Any], key: str, path: Path, line: int) -> int:
    value = span.get(key)
    try:
        time = int(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else -1
    except ValueError:
        time = -1
    if not 0 <= time < TIME_MAX:
        raise bad(path, line, f"{key} must be nanoseconds, not {shown(value)}")
    return time


def _kind(span: dict[str, Any], path: Path, line: int) -> int:
    kind = span.get("kind", 0)
    if isinstance(kind, str) and kind.removeprefix("SPAN_KIND_") in KINDS:
        return KINDS.index(kind.removeprefix("SPAN_KIND_"))
    if type(kind) is int and 0 <= kind < len(KINDS):
        return kind
    raise bad(path, line, f"there is no kind {shown(kind)} of spans")


def _resources(path: Path, encoding: str) -> Iterator[tuple[int, Any]]:
    """What is in `resourceSpans` of every document of the file, one by one."""
    with open_text(path, encoding) as file:
        text = _Json(path, file, encoding)
        while text.peek():
            text.expect("{")
            if text.peek() == "}":
                text.expect("}")
                continue
            while True:
                key = text.value()
                text.expect(":")
                if key == "resourceSpans" and text.peek() == "[":
                    yield from text.items()
                else:
                    text.value()
                if text.expect(",}") == "}":
                    break


class _Json:
    """JSON from a file, value by value: of a large document only what is asked for is in memory."""

    def __init__(self, path: Path, file: Any, encoding: str) -> None:
        self._path = path
        self._file = file
        self._encoding = encoding
        self._decoder = json.JSONDecoder()
        self._text = ""
        self._at = 0
        self._line = 1
        self._is_all = False

    def peek(self) -> str:
        """The next character that is no space; nothing at the end."""
        while True:
            at = self._at
            while at < len(self._text) and self._text[at] in " \t\r\n":
                at += 1
            self._advance(at)
            if at < len(self._text) or self._is_all:
                return self._text[at : at + 1]
            self._more()

    def expect(self, characters: str) -> str:
        found = self.peek()
        if not found or found not in characters:
            raise self._error(f"{' or '.join(characters)} is expected, not {found or 'the end'}")
        self._advance(self._at + 1)
        return found

    def value(self) -> Any:
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except RecursionError:
                raise self._error("this is nested too deeply") from None
            except ValueError as error:
                if self._is_all:
                    raise self._error(f"this is not JSON: {error}") from None
            else:
                if end < len(self._text) or self._is_all:
                    if not is_text(value, self._text[self._at : end]):
                        raise self._error("this holds half a character")
                    self._advance(end)
                    return value
            self._more(len(self._text))  # twice as much, so that a large value is not decoded often

    def items(self) -> Iterator[tuple[int, Any]]:
        self.expect("[")
        if self.peek() == "]":
            self.expect("]")
            return
        while True:
            self.peek()
            line = self._line
            yield line, self.value()
            if self.expect(",]") == "]":
                return

    def _advance(self, to: int) -> None:
        self._line += self._text.count("\n", self._at, to)
        self._at = to

    def _more(self, least: int = 0) -> None:
        try:
            more = self._file.read(max(BLOCK, least))
        except UnicodeDecodeError as error:
            raise self._error(f"here or later is text that is not {self._encoding}: {error.reason}") from None
        self._text, self._at = self._text[self._at :] + more, 0
        self._is_all = not more

    def _error(self, what: str) -> TraceError:
        return bad(self._path, self._line, what)


# ---- writing


def _write(
    path: Path, directory: Path, base: sqlite3.Connection, names: list[str], claims: list[str]
) -> Imported:
    (origin,) = base.execute("SELECT min(start) FROM span").fetchone()
    Manifest(
        group=path.stem or "spans",
        processes=names,
        source="import:otel",
        order="foreign",
        receipt="deliver",
        clock="wall",
        guarantees=list(dict.fromkeys(["integrity", *claims])),
        options={"file": path.name},
        complete=True,
    ).write(directory)
    found = Imported(processes=len(names))
    for process, name in enumerate(names):
        with TraceWriter(
            directory, process, name, len(names), segment_seconds=float("inf"), segment_rows=SEGMENT_ROWS_MAX,
            origin=origin / 1e9, background=False, receipt="deliver",
        ) as writer:  # fmt: skip
            _write_process(path, base, process, origin, writer, found)
    return found


def _write_process(
    path: Path, base: sqlite3.Connection, process: int, origin: int, writer: TraceWriter, found: Imported
) -> None:
    rows = base.execute(
        "SELECT time, what, line, name, kind, stop - start, sent.process, sent.seq, sent.receiver FROM step "
        "JOIN span ON span.id = step.span LEFT JOIN sent ON sent.message = step.message "
        "WHERE step.process = ? ORDER BY time, turn, step.rowid",
        (process,),
    )
    own = 0
    for time, what, line, name, kind, length, src, seq, receiver in rows:
        now, ref = (time - origin) / 1e9, f"{path.name}:{line}"
        if what == "send":
            writer.row("send", now, 0, src, seq, dst=1 << receiver, n=1, op=name, ref=ref)
            found.messages += 1
        elif what == "deliver":
            writer.row("receive", now, 0, src, seq, op=name, ref=ref)
            writer.row("deliver", now, 0, src, seq, n=1, op=name, ref=ref)
            found.deliveries += 1
        else:
            own += 1
            note = f"{name} {what}s" if what == "start" else f"{name} ends after {length / 1e6:.3f} ms"
            writer.row(
                "event", now, 0, process, own, op=name, ref=ref, note=f"{note} ({KINDS[kind].lower()})"
            )
            found.events += 1
