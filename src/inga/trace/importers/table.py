"""Tables of sends and receipts: CSV, JSON, Parquet. A mapping says what each column means.

    process, kind, message           one row for each event: the process, what happened, to which message
    sender, receiver, message        one row for each message, with the times `sent` and `received`, both of which are needed

Further columns are optional: `time`, by which the rows of a process are sorted (else they keep the order of the table);
`sender`, if messages are identified only together with their sender; `receiver`, the destination of the message; `clock`, a
vector clock as a JSON object of counts by process.

With clocks, rows are events as in ShiViz's logs. Without them, rows say what was sent, received and delivered, but carry no
vectors; `inga stamp` computes those.
"""

import csv
import json
import sqlite3
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO

from inga.model.errors import TraceError, UsageError
from inga.trace.directory import whole_directory
from inga.trace.importers.json_text import JsonText, items_of_part
from inga.trace.importers.record import (
    BadLines,
    Log,
    NotJson,
    Record,
    check_clock,
    fault,
    parse_clock,
    parse_object,
)
from inga.trace.importers.source import LogText
from inga.trace.importers.text import not_text, open_text
from inga.trace.importers.times import FineTime, parse_time, parse_zone
from inga.trace.importers.write import (
    HOSTS_MAX,
    SEGMENT_ROWS_MAX,
    Imported,
    ImportOptions,
    run_script,
    scratch_tables,
    write_log,
)
from inga.trace.manifest import LINES, RECEIVERS, Manifest, shown, whole
from inga.trace.schema import load_pyarrow
from inga.trace.writer import TraceWriter

FIELDS = ("process", "kind", "message", "time", "sender", "receiver", "sent", "received", "clock", "text")
SEND, RECEIVE, DELIVER, EVENT = "send", "receive", "deliver", "event"
KINDS = {
    SEND: (
        "send",
        "sent",
        "produce",
        "produced",
        "publish",
        "published",
        "emit",
        "enqueue",
        "request",
        "out",
    ),
    RECEIVE: ("receive", "received", "recv", "consume", "consumed", "poll", "dequeue", "in"),
    DELIVER: ("deliver", "delivered", "handle", "handled", "process", "processed", "apply", "applied"),
}
"""The words for the kind of a row, in upper or lower case, unless `kinds` says otherwise. Any other word is an event."""

PARQUET = b"PAR1"
ROWS_AT_ONCE = 4096  # of Parquet
DELIMITERS = ",;\t|"
HEAD_LINES = 64  # lines at the beginning of a file that tell its form
HEAD_CHARACTERS = 1 << 16  # the most characters read of one of these lines
LINE_NANOSECONDS = 1_000_000  # virtual time for each line, in a table without times
KINDS_SHOWN_MAX = 8
KIND_SHOWN_MAX = 40  # characters of one kind


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The meaning of columns. `zone` applies to times without a zone; `time_format` is as for Python's strptime."""

    map: dict[str, str] = field(default_factory=dict)  # by field: the column; dots lead into nested objects
    kinds: dict[str, tuple[str, ...]] = field(default_factory=dict)
    zone: str = "UTC"
    time_format: str | None = None

    def check(self) -> None:
        if not self.map:
            raise UsageError("say which column means what: --map process=COLUMN kind=COLUMN message=COLUMN")
        for name in self.map:
            if name not in FIELDS:
                raise UsageError(f"--map knows no {name!r}; there are {', '.join(FIELDS)}")
        for name in self.kinds:
            if name not in KINDS:
                raise UsageError(f"--kinds knows no {name!r}; there are {', '.join(KINDS)}")
        self._check_words()
        parse_zone(self.zone)
        if "message" not in self.map:
            raise UsageError("--map has to name the column with the message: message=COLUMN")
        is_pair = "sender" in self.map and "receiver" in self.map
        times = {"sent", "received"} & self.map.keys()
        if "kind" in self.map:
            if "process" not in self.map and not is_pair:
                raise UsageError(
                    "--map has to say where rows happened: process=COLUMN, or sender and receiver"
                )
        elif not is_pair or not times:
            raise UsageError(
                "--map has to name kind=COLUMN, for a row each event, or sender, receiver, sent and received, for a row each message"
            )
        elif missing := {"sent", "received"} - times:
            raise UsageError(
                f"--map has to name {missing.pop()}=COLUMN, too: with one of the times of a message nothing says what a process "
                "had received when it sent something"
            )
        if "kind" in self.map and times:
            raise UsageError(
                f"--map {min(times)}=COLUMN is for a row each message; with kind=COLUMN, for a row each event, say time=COLUMN"
            )
        if "clock" in self.map and "kind" not in self.map:
            raise UsageError("clocks belong to events: --map clock=COLUMN goes with kind=COLUMN")

    def _check_words(self) -> None:
        """Check that every word for a kind means one kind only."""
        meant: dict[str, str] = {}
        for kind, words in self.kinds.items():
            for word in words:
                if not word.strip():
                    raise UsageError(f"--kinds {kind}={','.join(words)} has a word that is empty")
                other = meant.setdefault(word.strip().lower(), kind)
                if other != kind:
                    raise UsageError(f"--kinds says of {word!r} that it is {other}, and that it is {kind}")


NO_COLUMNS = TableColumns()


def import_table(
    log: LogText, out: Path, asked: ImportOptions, columns: TableColumns = NO_COLUMNS
) -> Imported:
    """Make a trace from a table."""
    columns.check()
    _check_forms(log)
    log = _by_rows(log) if _is_parquet(log) else log
    if "clock" in columns.map:
        return write_log(_with_clocks(log, asked, columns), out, asked)
    return _Table(log, columns, asked).write(out)


# ---- rows of a table


@dataclass(frozen=True, slots=True)
class TableRow:
    """The values of a row by the mapped fields, without empty ones."""

    line: int
    values: dict[str, Any]
    is_torn: bool = False  # the row ends a file without an end of line, so it may be incomplete

    def text(self, name: str) -> str:
        value = self.values.get(name)
        return value if isinstance(value, str) else "" if value is None else whole(value)


def read_table(log: LogText, encoding: str, columns: TableColumns, bad: BadLines) -> Iterator[TableRow]:
    """The rows of a table in CSV, JSON or Parquet."""
    for line, content, is_torn in _contents(log, encoding, columns, bad):
        found = {name: _cell(content, column) for name, column in columns.map.items()}
        values = {name: value for name, value in found.items() if value not in (None, "")}
        yield TableRow(line, values, is_torn)


Contents = Iterator[tuple[int, dict[str, Any], bool]]
"""Rows: the line number, the cells by column name, and whether the row may be incomplete."""


def _contents(log: LogText, encoding: str, columns: TableColumns, bad: BadLines) -> Contents:
    bad.begin()
    return _parquet(log, columns, bad) if _is_parquet(log) else _text(log, encoding, columns, bad)


def _check_columns(log: LogText, part: str, content: dict[str, Any], columns: TableColumns) -> None:
    """Check by the first row of a file that it has all mapped columns."""
    missing = [column for column in columns.map.values() if _cell(content, column, _NOTHING) is _NOTHING]
    if missing:
        several = len(log.parts) > 1
        said, hint = (part, ", and each file of a directory names its own") if several else (log.said, "")
        raise UsageError(
            f"{said} has no column {missing[0]!r}; there are {', '.join(map(str, content))}{hint}"
        )


def _check_names(said: str, names: list[str], columns: TableColumns) -> None:
    """Check that no mapped column occurs twice."""
    for column in columns.map.values():
        if names.count(column) > 1:
            raise UsageError(
                f"{said} has {names.count(column)} columns {column!r}: nothing says which is meant"
            )


def _check_object(log: LogText, content: dict[str, Any], columns: TableColumns) -> None:
    """Check by the first JSON object that the mapping fits. An object may lack some mapped columns, but not all."""
    missing = [column for column in columns.map.values() if _cell(content, column, _NOTHING) is _NOTHING]
    if len(missing) == len(columns.map):
        raise UsageError(f"{log.said} has no column {missing[0]!r}; there are {', '.join(map(str, content))}")


_NOTHING = object()


def _cell(content: dict[str, Any], column: str, default: Any = None) -> Any:
    if column in content:
        return content[column]
    found: Any = content
    for part in column.split("."):
        if not isinstance(found, dict) or part not in found:
            return default
        found = found[part]
    return found


def _text(log: LogText, encoding: str, columns: TableColumns, bad: BadLines) -> Contents:
    """The rows of text files. Each file of a directory may have a form of its own."""
    is_checked = False
    with open_text(log, encoding) as file:
        lines = _Lines(file)
        try:
            for (_, part), until in zip(log.parts, [*(at for at, _ in log.parts[1:]), None], strict=True):
                form = _form(lines.head(until), columns)
                if form == CSV:
                    yield from _csv_part(log, part, lines, until, columns, bad)
                    continue
                read = _json_lines(log, lines, bad)
                if form == DOCUMENTS:
                    read = _documents(log, lines, until, encoding, bad)
                for line, content in read:
                    if not is_checked:
                        _check_object(log, content, columns)
                        is_checked = True
                    yield line, content, False
        except UnicodeDecodeError as error:
            raise not_text(log, lines.number + 1, encoding, error) from None


CSV, JSON_LINES, DOCUMENTS = "CSV", "JSON, an object a line", "JSON, in a list or over several lines"


def _form(head: list[str], columns: TableColumns) -> str:
    """The form of a file, judged by its first lines. The very first may be something else, such as a server's start message."""
    text = "".join(head).lstrip()
    if text.startswith("[") and text[1:].lstrip()[:1] in ("{", "]", ""):  # not a column name in brackets
        return DOCUMENTS
    first, *others = [line.strip() for line in head if line.strip()] or [""]
    if first.startswith("{"):
        return DOCUMENTS if first == "{" else JSON_LINES
    names = _header(first)[1]
    if isinstance(names, list) and any(column in names for column in columns.map.values()):
        return CSV
    for line in others:
        if line == "{":
            return DOCUMENTS
        if line.startswith("{") and _has_columns(line, columns):
            return JSON_LINES
    return CSV


def _has_columns(line: str, columns: TableColumns) -> bool:
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return any(_cell(content, column, _NOTHING) is not _NOTHING for column in columns.map.values())


def _json_lines(log: LogText, lines: "_Lines", bad: BadLines) -> Iterator[tuple[int, dict[str, Any]]]:
    for line in lines.lines():
        if not line.strip():
            continue
        try:
            content = parse_object(log, lines.number, line)
        except TraceError as error:
            is_cut = not lines.has_end or lines.number in log.torn
            bad.add(error, is_torn=is_cut and isinstance(error, NotJson))
        else:
            yield lines.number, content


def _documents(
    log: LogText, lines: "_Lines", until: int | None, encoding: str, bad: BadLines
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file that has them in a list, or over several lines each."""
    text = JsonText(log, lines, encoding, lines.number + 1)
    for line, content in items_of_part(log, text, bad, is_last=until is None, is_any=lines.number > 0):
        if isinstance(content, dict):
            yield line, content
        else:
            bad.add(fault(log, line, f"an object is expected, not {shown(content)}"))


class _Lines:
    """The lines of a file, part by part. The first lines of each part can be peeked at before they are read."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._ahead: deque[str] = deque()  # lines that were peeked at; the last one may be incomplete
        self._until: int | None = None  # the last line of this part
        self.number = 0  # of the line that was read last
        self.has_end = True  # whether that line has an end
        self.is_over = False  # whether a reader asked for more lines than the part has

    def head(self, until: int | None) -> list[str]:
        """Begin a part, and peek at its first lines; of a long line only at its beginning."""
        self._until = until
        left = HEAD_LINES if until is None else min(HEAD_LINES, until - self.number)
        while len(self._ahead) < left and (piece := self._file.readline(HEAD_CHARACTERS)):
            self._ahead.append(piece)
            if not piece.endswith("\n"):
                break
        return [*self._ahead]

    def lines(self) -> Iterator[str]:
        """The lines of the part, and an empty one for a reader that asks for more than there are."""
        self.is_over = False
        while self._has_more and (line := self._piece(-1)):
            self.number += 1
            self.has_end = line.endswith("\n")
            yield line
        self.is_over = True
        yield ""

    def read(self, size: int) -> str:
        """Read `size` characters of the part, or all that remain."""
        found: list[str] = []
        while size > 0 and self._has_more and (piece := self._piece(size)):
            self.number += piece.endswith("\n")
            size -= len(piece)
            found.append(piece)
        return "".join(found)

    @property
    def _has_more(self) -> bool:
        return self._until is None or self.number < self._until

    def _piece(self, size: int) -> str:
        """Read up to the end of a line, but at most `size` characters; -1 for any number."""
        if not self._ahead:
            return self._file.readline(size)
        piece = self._ahead.popleft()
        if 0 <= size < len(piece):
            self._ahead.appendleft(piece[size:])
            return piece[:size]
        if not self._ahead and not piece.endswith("\n"):
            piece += self._file.readline(size if size < 0 else size - len(piece))
        return piece


def _csv_part(
    log: LogText, part: str, lines: _Lines, until: int | None, columns: TableColumns, bad: BadLines
) -> Contents:
    """The rows of one CSV file. Its first line names the columns, which may have another order than in other files."""
    text = lines.lines()
    delimiter, names = _header(next((line for line in text if line.strip()), ""))
    if isinstance(names, csv.Error):
        raise fault(log, lines.number, f"this is no CSV: {names}")
    is_checked = False
    line = lines.number + 1
    for cells in _cells(csv.reader(text, delimiter=delimiter)):
        if cells and not is_checked:
            _check_names(part if len(log.parts) > 1 else log.said, names, columns)
            _check_columns(log, part, dict.fromkeys(names), columns)
            is_checked = True
        is_torn = not lines.has_end or lines.number in log.torn
        if isinstance(cells, csv.Error):
            bad.add(fault(log, line, f"this is no CSV: {cells}"), is_torn=is_torn)
        elif cells and lines.is_over and lines.number > line:
            what = "quotes in this row are not closed, so all that follows would be in them"
            bad.add(fault(log, line, what), is_torn=log.is_cut and until is None)
        elif cells and len(cells) != len(names):
            what = f"{len(cells)} cells, where the first line names {len(names)} columns"
            bad.add(fault(log, line, what), is_torn=is_torn)
        elif cells and cells != names:  # the names occur again where tables were concatenated
            yield line, dict(zip(names, cells, strict=True)), is_torn
        line = lines.number + 1


def _header(line: str) -> tuple[str, list[str] | csv.Error]:
    """The delimiter between the names of columns, and the names."""
    delimiter = max(DELIMITERS, key=line.count)
    return delimiter, next(_cells(csv.reader([line], delimiter=delimiter)), [])


def _cells(reader: Iterator[list[str]]) -> Iterator[list[str] | csv.Error]:
    """The cells of each row, or its error: the reader continues with the next line."""
    while True:
        try:
            yield next(reader)
        except csv.Error as error:
            yield error
        except StopIteration:
            return


def _is_parquet(log: LogText) -> bool:
    return _begins_as_parquet(log.path)


def _begins_as_parquet(path: Path) -> bool:
    if not path.is_file():
        return False  # the function that opens it reports what it is
    with path.open("rb") as file:
        return file.read(len(PARQUET)) == PARQUET


def _check_forms(log: LogText) -> None:
    """Check that a directory does not mix Parquet with other forms. CSV and JSON may be mixed, but Parquet has no lines."""
    found: dict[bool, str] = {}
    for _, part in log.parts if len(log.parts) > 1 else ():
        found.setdefault(_begins_as_parquet(Path(part)), part)
    if len(found) > 1:
        raise UsageError(
            f"{found[True]} is Parquet, and {found[False]} is not: a directory has one or the other"
        )


def _by_rows(log: LogText) -> LogText:
    """The log with its parts counted by rows, since Parquet files have no lines."""
    parts, rows = [], 0
    for _, part in log.parts:
        parts.append((rows, part))
        with _opened(part) as file:
            rows += file.metadata.num_rows
    return replace(log, parts=tuple(parts))


def _parquet(log: LogText, columns: TableColumns, bad: BadLines) -> Contents:
    """The rows of Parquet files, one file after the other. Each original file is read, not the concatenated copy."""
    number = 0
    for _, part in log.parts:
        is_checked = False
        with _opened(part) as file:
            _check_names(part, file.schema_arrow.names, columns)
            for batch in file.iter_batches(ROWS_AT_ONCE):
                batch, finer = _to_microseconds(batch)
                try:
                    contents = batch.to_pylist()
                except (OverflowError, ValueError):
                    contents = _values(batch)
                if finer:
                    contents = _with_nanoseconds(contents, finer)
                for content in contents:
                    number += 1
                    if isinstance(content, Exception):
                        bad.add(fault(log, number, f"a value is too large: {content}"))
                        continue
                    if not is_checked:
                        _check_columns(log, part, content, columns)
                        is_checked = True
                    yield number, content, False
                if log.is_cut:
                    return


def _to_microseconds(batch: Any) -> tuple[Any, dict[str, list[int | None]]]:
    """Cut times to microseconds, the finest that Python holds. Return the batch and, for each column that was in nanoseconds, its
    values in nanoseconds since 1970."""
    pyarrow = load_pyarrow()
    finer: dict[str, list[int | None]] = {}
    for at, column in enumerate(batch.schema):
        if pyarrow.types.is_timestamp(column.type) and column.type.unit == "ns":
            finer[column.name] = batch.column(at).cast(pyarrow.int64()).to_pylist()
            whole = batch.column(at).cast(pyarrow.timestamp("us", column.type.tz), safe=False)
            batch = batch.set_column(at, column.name, whole)
    return batch, finer


def _with_nanoseconds(
    contents: Iterable[Any], finer: dict[str, list[int | None]]
) -> Iterator[dict[str, Any] | Exception]:
    for at, content in enumerate(contents):
        for name, times in finer.items() if isinstance(content, dict) else ():
            time = times[at]
            if time is not None and time % 1000:
                content[name] = FineTime.of(content[name], time % 1000)
        yield content


def _values(batch: Any) -> Iterator[dict[str, Any] | Exception]:
    """The rows one by one, or the error of a row: a column of times may hold values beyond Python's range, such as a database's
    infinity."""
    for at in range(batch.num_rows):
        try:
            yield batch.slice(at, 1).to_pylist()[0]
        except (OverflowError, ValueError) as error:
            yield error


@contextmanager
def _opened(part: str) -> Iterator[Any]:
    pyarrow = load_pyarrow()
    try:
        with pyarrow.parquet.ParquetFile(part) as file:
            yield file
    except (OSError, pyarrow.ArrowException) as error:
        what = (str(error).splitlines() or ["it is cut off"])[0]
        raise TraceError(f"{part} is not a readable Parquet file: {what}.") from None


def _kind(row: TableRow, names: dict[str, str]) -> str:
    return names.get(row.text("kind").strip().lower(), EVENT)


def _kind_names(columns: TableColumns) -> dict[str, str]:
    """Kinds by word. Words from `kinds` take precedence over the usual ones; a kind with such words keeps of the usual ones only
    its own name."""
    usual = {kind: () if kind in columns.kinds else words for kind, words in KINDS.items()}
    names = {word: kind for kind, words in usual.items() for word in (kind, *words)}
    return names | {word.strip().lower(): kind for kind, words in columns.kinds.items() for word in words}


def _process(row: TableRow, kind: str) -> str:
    """The process at which the event of a row happened."""
    return row.text("process") or row.text("sender" if kind == SEND else "receiver")


def _key(sender: str, message: str) -> str:
    """A name for a message that is unique in the table: the message's own, combined with the sender if one is given. A name that
    could be mistaken for such a combination is combined, too."""
    return json.dumps([sender, message]) if sender or message.startswith("[") else message


def _sender(key: str) -> str:
    """The sender of a message, if it is part of the key; else an empty text."""
    found: str = json.loads(key)[0] if key.startswith("[") else ""
    return found


# ---- with clocks


def _with_clocks(log: LogText, asked: ImportOptions, columns: TableColumns) -> Log:
    bad, names = BadLines(), _kind_names(columns)

    def records() -> Iterator[Record]:
        for row in read_table(log, asked.encoding, columns, bad):
            try:
                record = _record(log, row, names)
            except TraceError as error:
                bad.add(error, is_torn=row.is_torn)
            else:
                yield record

    claims = ["clocks", "integrity"]
    options = {"map": columns.map}
    return Log(log, records, "table", claims, options, bad=bad, to_receivers=True)


def _record(log: LogText, row: TableRow, names: dict[str, str]) -> Record:
    kind = _kind(row, names)
    host, clock, message = _process(row, kind), row.values.get("clock"), row.text("message")
    counts = (
        parse_clock(clock, host, log, row.line)
        if isinstance(clock, str)
        else check_clock(clock, host, log, row.line)
    )
    role = None if kind == EVENT else kind
    if role is not None and not message:
        raise fault(log, row.line, f"a row of the kind {row.text('kind')} names no message")
    return Record(host, counts, row.text("text") or row.text("kind"), row.line, role, message)


# ---- without clocks

_TABLES = """
PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-32768;
CREATE TABLE step (id INTEGER PRIMARY KEY, process INT, time INT, what TEXT, key TEXT, receiver INT, line INT, note TEXT);
BEGIN;
"""

# The first send of a message counts. A message that is received and has no send gets a number after those of its sender.
_MESSAGES = """
CREATE INDEX by_key ON step (key, what);
CREATE TABLE sent (key TEXT PRIMARY KEY, process INT, step INT, time INT, seq INT) WITHOUT ROWID;
INSERT OR IGNORE INTO sent SELECT key, process, id, time, NULL FROM step WHERE what = 'send' ORDER BY time, id;
CREATE TABLE ranked AS SELECT key, row_number() OVER (PARTITION BY process ORDER BY time, step) AS seq FROM sent;
CREATE UNIQUE INDEX by_rank ON ranked (key);
UPDATE sent SET seq = (SELECT seq FROM ranked WHERE ranked.key = sent.key);
CREATE TABLE unsent (key TEXT PRIMARY KEY, process INT, seq INT) WITHOUT ROWID;
CREATE INDEX by_process ON step (process, time, id);
"""


class _Table:
    """A table without clocks, kept in a database file, where messages are numbered and rows are sorted."""

    def __init__(self, log: LogText, columns: TableColumns, asked: ImportOptions) -> None:
        self._log = log
        self._columns = columns
        self._asked = asked
        self._bad = BadLines(asked.bad)
        self._zone = parse_zone(columns.zone)
        self._kinds = _kind_names(columns)
        self._names: dict[str, int] = {}
        self._there: set[int] = set()  # processes that have rows
        self._is_told = "kind" not in columns.map  # whether any row so far is a send or a receipt
        self._others: dict[str, None] = {}  # the first kinds that are neither
        self._rows = 0
        self._found = Imported()

    def write(self, out: Path) -> Imported:
        found = self._found
        with (
            scratch_tables(out),
            whole_directory(out) as directory,
            closing(sqlite3.connect(scratch := directory / "table.tmp", isolation_level=None)) as base,
        ):
            base.executescript(_TABLES)
            rows = taken = 0
            for rows, row in enumerate(
                read_table(self._log, self._asked.encoding, self._columns, self._bad), 1
            ):
                try:
                    steps = self._steps(row)
                except TraceError as error:
                    self._bad.add(error, is_torn=row.is_torn)
                    continue
                taken += 1
                base.executemany("INSERT INTO step VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", steps)
                self._asked.progress(rows)
            self._bad.check(taken)
            if not rows:
                raise TraceError(f"{self._log.said} has no row.")
            self._check_kinds()
            self._rows = rows
            run_script(base, _MESSAGES, self._asked.progress)
            self._write_all(directory, base)
            scratch.unlink()
        found.traces, found.processes = [str(out)], len(self._names)
        found.bad, found.torn = self._bad.count, self._bad.torn
        found.bad_first = [str(error) for error in self._bad.errors]
        return found

    def _check_kinds(self) -> None:
        """Refuse a table without sends and receipts: the mapping names the wrong column, or the wrong kinds."""
        if self._is_told:
            return
        shown = [
            each if len(each) <= KIND_SHOWN_MAX else f"{each[: KIND_SHOWN_MAX - 1]}…" for each in self._others
        ]
        more = ", ..." if len(shown) > KINDS_SHOWN_MAX else ""
        where = "in the beginning of" if self._log.is_cut else "of"
        raise UsageError(
            f"no row {where} {self._log.said} is a send or a receipt: the kinds in column {self._columns.map['kind']!r} are "
            f"{', '.join(shown[:KINDS_SHOWN_MAX]) or 'empty'}{more}. Map another column (--map kind=COLUMN), or say what they "
            "mean (--kinds send=A,B receive=C)"
        )

    # ---- from rows to steps

    def _steps(self, row: TableRow) -> list[tuple[Any, ...]]:
        sender = row.text("sender")
        kind = _kind(row, self._kinds) if "kind" in self._columns.map else ""
        if kind == EVENT and len(self._others) <= KINDS_SHOWN_MAX and row.text("kind"):
            self._others[row.text("kind")] = None
        self._is_told |= kind in (SEND, RECEIVE, DELIVER)
        if kind == SEND and "sender" in self._columns.map:
            sender = sender or _process(row, kind)
        if not row.text("message") and kind != EVENT:
            raise fault(self._log, row.line, "the row names no message")
        key = _key(sender, row.text("message"))
        if kind:
            target = self._process_of(row, "receiver") if kind == SEND and row.text("receiver") else None
            place = self._at(row, _process(row, kind), kind)
            note = row.text("text") or row.text("message" if kind != EVENT else "kind")
            return [(place, self._time(row, "time"), kind, key, target, row.line, note)]
        source = self._at(row, sender, "sender")
        target = self._process_of(row, "receiver")
        steps: list[tuple[Any, ...]] = []
        if "sent" in row.values:
            steps.append((source, self._time(row, "sent"), SEND, key, target, row.line, row.text("message")))
        if "received" in row.values:
            self._there.add(target)
            steps.append(
                (target, self._time(row, "received"), RECEIVE, key, None, row.line, row.text("message"))
            )
        return steps

    def _at(self, row: TableRow, name: str, what: str) -> int:
        if not name:
            raise fault(self._log, row.line, f"nothing says where this happened ({what})")
        process = self._number(row, name)
        self._there.add(process)
        return process

    def _process_of(self, row: TableRow, field: str) -> int:
        name = row.text(field)
        if not name:
            raise fault(self._log, row.line, f"the row has no {field}")
        return self._number(row, name)

    def _number(self, row: TableRow, name: str) -> int:
        number = self._names.setdefault(name, len(self._names))
        if len(self._names) > HOSTS_MAX:
            raise fault(
                self._log, row.line, f"there are more than {HOSTS_MAX:,} processes by now, which cannot be"
            )
        return number

    def _time(self, row: TableRow, field: str) -> int:
        if field not in self._columns.map:
            return row.line * LINE_NANOSECONDS
        value = row.values.get(field)
        time = parse_time(value, self._zone, self._columns.time_format)
        if time is None:
            raise fault(self._log, row.line, f"the time {shown(value)} is none")
        return time

    # ---- from steps to a trace

    def _write_all(self, directory: Path, base: sqlite3.Connection) -> None:
        timed = any(name in self._columns.map for name in ("time", "sent"))
        (origin,) = base.execute("SELECT min(time) FROM step").fetchone()
        if origin is None:
            sent, received = self._columns.map["sent"], self._columns.map["received"]
            raise UsageError(
                f"no row of {self._log.said} was sent or received: there is nothing in columns {sent!r} and {received!r}"
            )
        delivers = bool(base.execute("SELECT 1 FROM step WHERE what = 'deliver' LIMIT 1").fetchone())
        self._found.repeated = base.execute(
            "SELECT count(*) FROM step JOIN sent USING (key) WHERE what = 'send' AND step.id != sent.step "
            "AND (receiver IS NULL OR step.process != sent.process)"
        ).fetchone()[0]
        self._found.shared = base.execute(
            "SELECT count(DISTINCT key) FROM step JOIN sent USING (key) WHERE what = 'send' AND step.process != sent.process"
        ).fetchone()[0]
        self._number_unsent(base)
        names = list(self._names)
        is_open = self._found.unmatched > 0
        claims = [
            claim for claim in self._asked.guarantees(["integrity"]) if claim != "integrity" or not is_open
        ]
        options: dict[str, Any] = {"file": self._log.name, "map": self._columns.map}
        if "receiver" not in self._columns.map or self._has_open_sends(base):
            options["destinations"] = RECEIVERS
        Manifest(
            group=Path(self._log.name).stem or "table",
            processes=names,
            source="import:table",
            order="foreign",
            receipt="deliver",
            clock="wall" if timed else "virtual",
            guarantees=claims,
            options=options if timed else {**options, "times": LINES},
            complete=True,
        ).write(directory)
        for process, name in enumerate(names):
            with TraceWriter(
                directory, process, name, len(names), segment_seconds=float("inf"), segment_rows=SEGMENT_ROWS_MAX,
                origin=origin / 1e9, background=False, receipt="deliver",
            ) as writer:  # fmt: skip
                self._write_process(base, process, origin, writer, delivers)
                writer.close(complete=process in self._there and not self._bad.count)

    def _number_unsent(self, base: sqlite3.Connection) -> None:
        """Number the messages that were received and never sent: if the table names the sender, they follow the sender's others."""
        rows = base.execute(
            "SELECT key, count(*) FROM step WHERE what IN ('receive', 'deliver') AND key NOT IN (SELECT key FROM sent) "
            "GROUP BY key ORDER BY min(time), min(id)"
        )
        highest = dict(base.execute("SELECT process, max(seq) FROM sent GROUP BY process").fetchall())
        for key, count in rows:
            if not (sender := _sender(key)):
                self._found.unmatched += count
                continue
            process = self._names.setdefault(sender, len(self._names))
            highest[process] = highest.get(process, 0) + 1
            base.execute("INSERT INTO unsent VALUES (?, ?, ?)", (key, process, highest[process]))

    def _write_process(
        self, base: sqlite3.Connection, process: int, origin: int, writer: TraceWriter, delivers: bool
    ) -> None:
        rows = base.execute(
            "SELECT step.id, step.time, what, step.key, line, note, coalesce(sent.process, unsent.process), sent.step, "
            "coalesce(sent.seq, unsent.seq) FROM step LEFT JOIN sent ON sent.key = step.key "
            "LEFT JOIN unsent ON unsent.key = step.key WHERE step.process = ? ORDER BY step.time, step.id",
            (process,),
        )
        found, own = self._found, 0
        for at, time, what, key, line, note, src, first, seq in rows:
            now, ref = (time - origin) / 1e9, self._log.ref(line)
            found.events += 1
            self._asked.progress(self._rows + found.events)
            if what == SEND and at == first:
                dst = self._destinations(base, key)
                writer.row("send", now, 0, src, seq, dst=dst, n=1, ref=ref, note=note)
                found.messages += 1
            elif what in (RECEIVE, DELIVER) and src is not None:
                if what == RECEIVE:
                    writer.row("receive", now, 0, src, seq, ref=ref, note=note)
                if what == DELIVER or not delivers:
                    writer.row("deliver", now, 0, src, seq, n=1, ref=ref, note=note)
                    found.deliveries += 1
            elif what != SEND:
                own += 1
                writer.row("event", now, 0, process, own, ref=ref, note=note)

    def _has_open_sends(self, base: sqlite3.Connection) -> bool:
        """Whether some message was sent without any receiver named in its sends."""
        query = (
            "SELECT 1 FROM sent WHERE NOT EXISTS (SELECT 1 FROM step WHERE step.key = sent.key AND what = 'send' "
            "AND receiver IS NOT NULL) LIMIT 1"
        )
        return bool(base.execute(query).fetchone())

    def _destinations(self, base: sqlite3.Connection, key: str) -> int:
        """The receivers that the table names for a message or, if it names none, the processes that received it."""
        named = "SELECT DISTINCT receiver FROM step WHERE key = ? AND what = 'send' AND receiver IS NOT NULL"
        there = "SELECT DISTINCT process FROM step WHERE key = ? AND what IN ('receive', 'deliver')"
        found = base.execute(named, (key,)).fetchall() or base.execute(there, (key,)).fetchall()
        return sum(1 << process for (process,) in found)
