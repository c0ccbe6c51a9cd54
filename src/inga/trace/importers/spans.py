"""Spans of any tracing system as messages between services.

Spans have no vector clocks, but they tell which service called which:

    process    a service, with its instance if there is one
    event      the start of a span, and its end
    message    from a span to one of another process that has it as parent or links to it: sent after the
               start of the first, received before the start of the second
    reply      from a SERVER span to its CLIENT parent: sent before the end of the first, received after the
               end of the second

Times are used only to order the rows of one process. Rows have no `deps`, since spans have no vectors; `inga stamp` computes them.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from inga.model.errors import TraceError
from inga.trace.directory import whole_directory
from inga.trace.importers.record import BadLines, fault
from inga.trace.importers.source import LogText
from inga.trace.importers.write import (
    HOSTS_MAX,
    SEGMENT_ROWS_MAX,
    Imported,
    ImportOptions,
    run_script,
    scratch_tables,
)
from inga.trace.manifest import RECEIVERS, Manifest, shown
from inga.trace.writer import TraceWriter

KINDS = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
SERVER, CLIENT = KINDS.index("SERVER"), KINDS.index("CLIENT")
TIME_MAX = (
    1 << 62
)  # nanoseconds: so low that differences of times, which are floats for a while, never exceed 64 bits
SHARED = "/server"
"""The suffix for the identifier of a server's span that shares its identifier with the client's span, as Zipkin allows."""


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of work of one service, and the spans that caused it."""

    line: int
    service: str
    trace: str
    span: str
    name: str
    kind: int
    start: int  # nanoseconds
    stop: int
    parents: list[tuple[str, str]] = field(default_factory=list)  # trace and span
    links: list[tuple[str, str]] = field(default_factory=list)


class ReadSpans(Protocol):
    """Reads the spans of a file. Those that cannot be read are added to `bad`."""

    def __call__(self, log: LogText, encoding: str, bad: BadLines) -> Iterator[Span]: ...


_TABLES = """
PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-32768;
CREATE TABLE span (id INTEGER PRIMARY KEY, trace TEXT, span TEXT, process INT, name TEXT, kind INT,
                   start INT, stop INT, line INT, UNIQUE (trace, span));
CREATE TABLE cause (effect INT, trace TEXT, span TEXT, is_parent INT);
CREATE INDEX by_cause ON cause (trace, span);
BEGIN;
"""

# Each message gets a row at both ends. `turn` orders rows of the same time: a receipt comes before the start of
# the span that it causes, a send after the start; at the end of a span, sends come before it and receipts after it.
_STEPS = """
UPDATE cause SET span = span || '{shared}' WHERE effect NOT IN (SELECT id FROM span WHERE span LIKE '%{shared}')
    AND EXISTS (SELECT 1 FROM span s WHERE s.trace = cause.trace AND s.span = cause.span || '{shared}')
    AND NOT EXISTS (SELECT 1 FROM span c JOIN span e ON e.id = effect AND e.process = c.process
        WHERE c.trace = cause.trace AND c.span = cause.span);
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


def import_spans(
    read: ReadSpans, source: str, expected: str, log: LogText, out: Path, asked: ImportOptions
) -> Imported:
    """Make a trace from spans. They are sorted in a file, so memory does not depend on their number."""
    bad = BadLines(asked.bad)
    with (
        scratch_tables(out),
        whole_directory(out) as directory,
        closing(sqlite3.connect(scratch := directory / "spans.tmp", isolation_level=None)) as base,
    ):
        base.executescript(_TABLES)
        found = Imported(traces=[str(out)])
        names = _collect(read(log, asked.encoding, bad), log, base, asked, found)
        bad.check(len(names))
        if not names:
            raise TraceError(f"{log.said} has no span: {expected} is expected.")
        script = _STEPS.format(client=CLIENT, server=SERVER, shared=SHARED)
        run_script(base, script, asked.progress)
        _write(log, directory, base, list(names), source, asked, bad, found)
        scratch.unlink()
    found.bad, found.torn, found.bad_first = bad.count, bad.torn, [str(error) for error in bad.errors]
    return found


def _collect(
    spans: Iterator[Span], log: LogText, base: sqlite3.Connection, asked: ImportOptions, found: Imported
) -> dict[str, int]:
    """Store the spans in a table; return the services by name, with their process numbers."""
    names: dict[str, int] = {}
    for count, span in enumerate(spans, 1):
        process = names.setdefault(span.service, len(names))
        if len(names) > HOSTS_MAX:
            raise fault(log, span.line, f"there are more than {HOSTS_MAX:,} services by now, which cannot be")
        row = base.execute(
            "INSERT OR IGNORE INTO span VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)",
            (span.trace, span.span, process, span.name, span.kind, span.start, span.stop, span.line),
        )
        asked.progress(count)
        if row.rowcount != 1:  # exporters repeat a span that was not acknowledged
            found.repeated += 1
            continue
        causes = {(*each, 1) for each in span.parents}
        causes |= {(*each, 0) for each in span.links if (*each, 1) not in causes}
        base.executemany(
            "INSERT INTO cause VALUES (?, ?, ?, ?)", [(row.lastrowid, *each) for each in sorted(causes)]
        )
    return names


# ---- values that each tracing system writes in its own way


def identity(
    log: LogText, line: int, trace: Any, span: Any, what: str = "traceId and spanId"
) -> tuple[str, str]:
    """The identity of a span: its trace and its own identifier. Hexadecimal digits may be upper or lower case."""
    if not isinstance(trace, str) or not isinstance(span, str) or not trace or not span:
        raise fault(log, line, f"a span or link has no {what}")
    return _lower(trace), _lower(span)


def _lower(name: str) -> str:
    return name if name.endswith("=") else name.lower()  # base64 of 8 or 16 octets ends with =


def moment(log: LogText, line: int, key: str, value: Any, nanoseconds: int = 1) -> int:
    """Parse a time in units of `nanoseconds` nanoseconds."""
    try:
        time = int(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else -1
    except ValueError:
        time = -1
    if not 0 <= time * nanoseconds < TIME_MAX:
        unit = {1: "nanoseconds", 1000: "microseconds"}[nanoseconds]
        raise fault(log, line, f"{key} must be {unit}, not {shown(value)}")
    return time * nanoseconds


def kind_of(log: LogText, line: int, kind: Any) -> int:
    if isinstance(kind, str) and kind.upper().removeprefix("SPAN_KIND_") in KINDS:
        return KINDS.index(kind.upper().removeprefix("SPAN_KIND_"))
    if type(kind) is int and 0 <= kind < len(KINDS):
        return kind
    raise fault(log, line, f"there is no kind {shown(kind)} of spans")


def list_of(log: LogText, line: int, content: Any, key: str) -> list[Any]:
    found = content.get(key, []) if isinstance(content, dict) else None
    if not isinstance(found, list):
        raise fault(log, line, f"{key} must be a list")
    return found


def text_of(value: Any) -> str:
    """A value that should be a text; any other value is shown as JSON."""
    return value if isinstance(value, str) else shown(value)


# ---- writing


def _write(
    log: LogText,
    directory: Path,
    base: sqlite3.Connection,
    names: list[str],
    source: str,
    asked: ImportOptions,
    bad: BadLines,
    found: Imported,
) -> None:
    origin, spans = base.execute("SELECT min(start), count(*) FROM span").fetchone()
    Manifest(
        group=Path(log.name).stem or "spans",
        processes=names,
        source=f"import:{source}",
        order="foreign",
        receipt="deliver",
        clock="wall",
        guarantees=asked.guarantees(["integrity"]),
        options={"file": log.name, "destinations": RECEIVERS},
        complete=True,
    ).write(directory)
    found.processes = len(names)
    for process, name in enumerate(names):
        with TraceWriter(
            directory, process, name, len(names), segment_seconds=float("inf"), segment_rows=SEGMENT_ROWS_MAX,
            origin=origin / 1e9, background=False, receipt="deliver",
        ) as writer:  # fmt: skip
            for done in _write_process(log, base, process, origin, writer, found):
                asked.progress(spans + done)
            writer.close(complete=not bad.count)


def _write_process(
    log: LogText, base: sqlite3.Connection, process: int, origin: int, writer: TraceWriter, found: Imported
) -> Iterator[int]:
    """Write the rows of one process; yield how many rows of all processes are done."""
    rows = base.execute(
        "SELECT time, what, line, name, kind, stop - start, sent.process, sent.seq, sent.receiver FROM step "
        "JOIN span ON span.id = step.span LEFT JOIN sent ON sent.message = step.message "
        "WHERE step.process = ? ORDER BY time, turn, step.rowid",
        (process,),
    )
    own = 0
    for time, what, line, name, kind, length, src, seq, receiver in rows:
        now, ref = (time - origin) / 1e9, log.ref(line)
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
        yield found.events + found.messages + found.deliveries
