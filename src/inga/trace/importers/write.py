"""From records to a trace. The log is read twice: first for the hosts and messages, then for the rows.

The first reading finds every defect of the log, so most failures occur before anything is written. An unfinished
trace is in a hidden directory, which is renamed when the trace is complete, or deleted after a failure.

    event    src = process, seq = its own entry, deps = its clock with that entry one less
    send     the seq-th message of its process; deps[h] = how many messages of h its clock covers
    deliver  after `receive`, with the deps of the send

Rows of a process keep the order of the file, so that a check can see where clocks contradict it. Memory does
not grow with the log, except by 8 bytes for each message sent.
"""

import sqlite3
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct

from inga.model.errors import TraceError
from inga.model.stamp import Deps
from inga.trace.directory import whole_directory
from inga.trace.importers.record import ForeignClock, Log, Record, fault
from inga.trace.manifest import LINES, RECEIVERS, Manifest
from inga.trace.writer import TraceWriter

HOSTS_MAX = 10_000
SECONDS_PER_LINE = 1e-3  # of virtual time: a log's own times are texts of any kind
COUNTS_OPEN_MAX = 1 << 26  # entries of vectors in the open segments of all processes
SEGMENT_ROWS_MAX = 1 << 15

Progress = Callable[[int | None], None]
"""Called with the number of events that are done, in both readings together; with None while a database sorts them, which may
take long."""
INSTRUCTIONS = 1_000_000
"""After this many instructions of its virtual machine, SQLite calls the progress function."""


@dataclass(slots=True)
class Imported:
    """The result of an import."""

    traces: list[str] = field(default_factory=list)
    processes: int = 0
    events: int = 0
    messages: int = 0
    deliveries: int = 0
    unmatched: int = 0  # receipts of messages that nobody sent
    skipped: int = 0  # lines that belong to no event
    skipped_first: list[str] = field(default_factory=list)  # some of them, with their places
    bad: int = 0  # lines that should be events and were left out
    bad_first: list[str] = field(default_factory=list)  # the errors of some of them
    torn: int = 0  # lines that were still being written when the log was copied
    repeated: int = 0  # spans or sends that occur again; only the first is used
    shared: int = 0  # messages that several processes sent; only the first send is used
    sample: list[str] = field(default_factory=list)  # if it was only tried: the first rows, in words


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """The options that every importer has."""

    encoding: str = "utf-8"
    claims: tuple[str, ...] = ()  # guarantees to claim in addition to those of the format
    disclaims: tuple[str, ...] = ()  # guarantees not to claim
    bad: int = 0  # how many lines that cannot be read may be left out
    progress: Progress = lambda done: None

    def guarantees(self, format: list[str]) -> list[str]:
        """The guarantees that a trace claims, given those of its format."""
        return [each for each in dict.fromkeys([*format, *self.claims]) if each not in self.disclaims]


@dataclass(slots=True)
class Execution:
    """The result of the first reading for one execution."""

    label: str
    seen: dict[str, int] = field(default_factory=dict)  # numbers of hosts, in the order of first mention
    hosts: dict[str, None] = field(default_factory=dict)  # hosts with events, in the order of their first
    sent: dict[str, "array[int]"] = field(default_factory=dict)  # by host: own entries of its sends' clocks
    events: int = 0
    messages: int = 0
    deliveries: int = 0
    unmatched: int = 0
    receives: bool = False  # whether some events have the role receive
    delivers: bool = False  # whether some events have the role deliver

    def processes(self) -> dict[str, int]:
        """Process numbers by host: hosts in the order of their first events, then hosts that only clocks name."""
        return {name: index for index, name in enumerate(dict.fromkeys([*self.hosts, *self.seen]))}


@contextmanager
def scratch_tables(out: Path) -> Iterator[None]:
    """Turn an operational error of a database in a scratch file into a `TraceError`: a full disk is not a bug of ours."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise TraceError(f"{out} cannot be written: {error}.") from None


def run_script(base: sqlite3.Connection, script: str, progress: Progress) -> None:
    """Run statements that may take long, and call `progress` meanwhile. An exception that it raises, such as an interrupt, stops
    the statements at once."""
    failed: list[BaseException] = []

    def still_here() -> bool:
        try:
            progress(None)
        except BaseException as error:  # the database would replace it by an error of its own
            failed.append(error)
        return bool(failed)

    base.set_progress_handler(still_here, INSTRUCTIONS)
    try:
        base.executescript(script)
    except sqlite3.OperationalError:
        if failed:
            raise failed[0] from None
        raise
    finally:
        base.set_progress_handler(None, 0)


def write_log(log: Log, out: Path, asked: ImportOptions, *, noise: bool = False) -> Imported:
    """Import a log: into `out`, or into numbered directories below it if it has several executions. With `noise`, lines that belong
    to no event may outnumber the events."""
    with (
        scratch_tables(out),
        whole_directory(out) as directory,
        closing(_Messages(directory / "messages.tmp")) as messages,
    ):
        log.bad.most = asked.bad
        executions = _survey(log, messages, asked.progress, noise)
        found = _Import(log, directory, executions, messages, asked)
        found.run()
    return found.summary(out)


# ---- the first reading


def _survey(log: Log, messages: "_Messages", progress: Progress, noise: bool) -> list[Execution]:
    executions: list[Execution] = []
    read = 0
    for read, record in enumerate(log.records(), 1):
        if record.execution == len(executions):
            executions.append(Execution(record.label))
        _note(log, record, executions[-1], messages)
        progress(read)
    log.bad.check(read)
    if not executions:
        what = f"has no event that the {log.source} reader recognises"
        if not log.skipped.samples:
            raise TraceError(f"{log.text.said} {what}.")
        first, text = log.skipped.samples[0]
        raise fault(log.text, first, f"the log {what}; this is the first line that matches nothing: {text}")
    if not noise:
        _check_fit(log)
    return executions


def _check_fit(log: Log) -> None:
    """Refuse a log with files that the pattern does not fit, unless that many lines may be left out."""
    unfit = [file for _, file in sorted(log.skipped.files.items()) if file.is_bad]
    lines = log.bad.count + sum(file.unmatched for file in unfit)
    for file in unfit:
        first, text = file.first
        events = f"{file.events:,} events" if file.events > 1 else "one event" if file.events else "no event"
        found = f"{events} in all, and {file.unmatched:,} lines that belong to none, this one first: {text}"
        error = fault(log.text, first, found)
        if lines > log.bad.most:
            others = f" So it is with {len(unfit) - 1:,} other files." if len(unfit) > 1 else ""
            raise TraceError(
                f"{error}{others} Either the pattern does not fit (--regex), or they are no events (--noise), or they "
                f"cannot be read (--bad {lines})."
            )
        log.bad.add_file(error, file.unmatched)


def _note(log: Log, record: Record, execution: Execution, messages: "_Messages") -> None:
    execution.events += 1
    execution.hosts[record.host] = None
    for name in (record.host, *record.clock):
        execution.seen.setdefault(name, len(execution.seen))
    if len(execution.seen) > HOSTS_MAX:
        raise fault(log.text, record.line, f"there are more than {HOSTS_MAX:,} hosts by now, which cannot be")
    if record.role == "send":
        sent = execution.sent.setdefault(record.host, array("q"))
        own = record.clock[record.host]
        # If a host's clock falls back to an earlier number, its messages still keep the order of the file.
        own = max(own, sent[-1]) if sent else own
        sent.append(own)
        place = execution.seen[record.host], len(sent)
        vector = {execution.seen[name]: count for name, count in record.clock.items()}
        if not messages.add(record.execution, record.message, *place, vector):
            raise fault(log.text, record.line, f"message {record.message} is sent a second time")
    elif record.role in ("receive", "deliver"):
        execution.receives |= record.role == "receive"
        execution.delivers |= record.role == "deliver"
        if log.to_receivers:
            messages.received(record.execution, record.message, execution.seen[record.host])


class _Messages:
    """The messages of a log by their names in it, kept in a database file since there may be very many."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._base = sqlite3.connect(path, isolation_level=None)
        self._base.executescript(
            "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-32768;"
            "CREATE TABLE sent (execution INT, name TEXT, src INT, seq INT, clock BLOB,"
            " PRIMARY KEY (execution, name)) WITHOUT ROWID;"
            "CREATE TABLE received (execution INT, name TEXT, process INT);"
            "CREATE INDEX by_name ON received (execution, name); BEGIN"
        )

    def add(self, execution: int, name: str, src: int, seq: int, clock: dict[int, int]) -> bool:
        """Store the send of a message; return False if a message of that name was sent before."""
        flat = [number for pair in clock.items() for number in pair]
        packed = Struct(f"<{len(flat)}i").pack(*flat)
        found = self._base.execute(
            "INSERT OR IGNORE INTO sent VALUES (?, ?, ?, ?, ?)", (execution, name, src, seq, packed)
        )
        return found.rowcount == 1

    def received(self, execution: int, name: str, process: int) -> None:
        self._base.execute("INSERT INTO received VALUES (?, ?, ?)", (execution, name, process))

    def find(self, execution: int, name: str) -> tuple[int, int, dict[int, int]] | None:
        """The sender of a message, its number, and the clock of its send by host number; None if its send is not known."""
        query = "SELECT src, seq, clock FROM sent WHERE execution = ? AND name = ?"
        row = self._base.execute(query, (execution, name)).fetchone()
        if row is None:
            return None
        src, seq, packed = row
        flat = Struct(f"<{len(packed) // 4}i").unpack(packed)
        return src, seq, dict(zip(flat[::2], flat[1::2], strict=True))

    def receivers(self, execution: int, name: str) -> list[int]:
        query = "SELECT DISTINCT process FROM received WHERE execution = ? AND name = ?"
        return [process for (process,) in self._base.execute(query, (execution, name))]

    def close(self) -> None:
        self._base.close()
        self._path.unlink(missing_ok=True)


# ---- the second reading


class _Import:
    def __init__(
        self,
        log: Log,
        directory: Path,
        executions: list[Execution],
        messages: _Messages,
        asked: ImportOptions,
    ) -> None:
        self._log = log
        self._directory = directory
        self._executions = executions
        self._messages = messages
        self._asked = asked
        self._events = 0

    def run(self) -> None:
        writing: _Writing | None = None
        read, before = 0, sum(each.events for each in self._executions)
        with ExitStack() as stack:
            for record in self._log.records():
                read += 1
                if writing is None or writing.number != record.execution:
                    stack.close()
                    writing = self._begin(record.execution)
                    stack.push(writing.close)
                writing.write(record)
                self._asked.progress(before + read)
        self._events = read

    def _begin(self, number: int) -> "_Writing":
        execution = self._executions[number]
        directory = self._directory
        if len(self._executions) > 1:
            directory = directory / str(number + 1)
        names = list(execution.processes())
        addressed = {"destinations": RECEIVERS} if self._log.to_receivers else {}
        Manifest(
            group=execution.label or Path(self._log.text.name).stem or "log",
            processes=names,
            source=f"import:{self._log.source}",
            order="foreign",
            receipt="deliver",
            clock="virtual",
            guarantees=self._asked.guarantees(_claimed(self._log)),
            options={"file": self._log.text.name, "times": LINES, **addressed, **self._log.options},
            complete=True,
        ).write(directory)
        return _Writing(self._log, directory, number, execution, self._messages)

    def summary(self, out: Path) -> Imported:
        executions, skipped = self._executions, self._log.skipped
        several = len(executions) > 1
        return Imported(
            traces=[str(out / str(at + 1)) if several else str(out) for at in range(len(executions))],
            processes=sum(len(each.seen) for each in executions),
            events=self._events,
            messages=sum(each.messages for each in executions),
            deliveries=sum(each.deliveries for each in executions),
            unmatched=sum(each.unmatched for each in executions),
            skipped=skipped.lines,
            skipped_first=[f"{self._log.text.ref(line)}: {text}" for line, text in skipped.samples],
            bad=self._log.bad.count,
            bad_first=[str(error) for error in self._log.bad.errors],
            torn=self._log.bad.torn,
        )


def _claimed(log: Log) -> list[str]:
    """The guarantees that a trace of this log may claim. Not `stamps` if lines were left out: without the receipts among them,
    vectors seem to know too much."""
    return [claim for claim in log.claims if claim != "stamps"] if log.bad.count else log.claims


class _Writing:
    """Writes the trace of one execution."""

    def __init__(
        self, log: Log, directory: Path, number: int, execution: Execution, messages: _Messages
    ) -> None:
        self.number = number
        self._log = log
        self._directory = directory
        self._execution = execution
        self._messages = messages
        self._index = execution.processes()
        self._process_of = [self._index[name] for name in execution.seen]  # by the host's number in `seen`
        self._names = list(self._index)
        self._n = n = len(self._index)
        self._crashed: set[int] = set()
        rows = max(min(COUNTS_OPEN_MAX // (n * n), SEGMENT_ROWS_MAX), 64)
        self._writers = [
            TraceWriter(
                directory, index, name, n, clock="virtual", background=False, segment_rows=rows, receipt="deliver"
            )
            for index, name in enumerate(self._names)
        ]  # fmt: skip

    def write(self, record: Record) -> None:
        process = self._index[record.host]
        writer, own = self._writers[process], record.clock[record.host]
        now = record.line * SECONDS_PER_LINE
        ref = self._log.text.ref(record.line)
        deps = self._vector(record.clock)
        deps[process] = own - 1
        writer.row("event", now, 0, process, own, deps=tuple(deps), ref=ref, note=record.text)
        if record.role == "send":
            self._send(writer, record, now, ref)
        elif record.role in ("receive", "deliver"):
            self._deliver(writer, record, now, ref)
        elif record.role == "crash":
            self._crashed.add(process)
            writer.row("crash", now, 0, ref=ref)

    def _send(self, writer: TraceWriter, record: Record, now: float, ref: str) -> None:
        found = self._find(record)
        assert found is not None, "the first reading has seen it"
        src, seq, clock = found
        dst = None
        if self._log.to_receivers:
            receivers = self._messages.receivers(self.number, record.message)
            dst = sum(1 << self._process_of[number] for number in receivers)
        writer.row("send", now, 0, src, seq, dst=dst, deps=self._deps(src, seq, clock), n=1, ref=ref)
        self._execution.messages += 1

    def _deliver(self, writer: TraceWriter, record: Record, now: float, ref: str) -> None:
        found = self._find(record)
        if found is None:
            if not self._execution.unmatched:
                writer.disclaim("integrity")  # a message without a known send has no number
            self._execution.unmatched += 1
            return
        src, seq, clock = found
        is_receipt = record.role == "receive"
        if is_receipt or not self._execution.receives:
            writer.row("receive", now, 0, src, seq, ref=ref)
        if not is_receipt or not self._execution.delivers:
            writer.row("deliver", now, 0, src, seq, deps=self._deps(src, seq, clock), n=1, ref=ref)
            self._execution.deliveries += 1

    def _find(self, record: Record) -> tuple[int, int, dict[int, int]] | None:
        """The process that sent a message, its number, and the clock of the send."""
        found = self._messages.find(self.number, record.message)
        return None if found is None else (self._process_of[found[0]], *found[1:])

    def _vector(self, clock: ForeignClock) -> list[int]:
        vector = [0] * self._n
        for name, count in clock.items():
            vector[self._index[name]] = count
        return vector

    def _deps(self, src: int, seq: int, clock: dict[int, int]) -> Deps:
        """The vector of a message whose send has this clock: how many messages of each process precede it."""
        deps = [0] * self._n
        for number, count in clock.items():
            process = self._process_of[number]
            deps[process] = bisect_right(self._execution.sent.get(self._names[process], ()), count)
        deps[src] = seq - 1
        return tuple(deps)

    def close(self, kind: type[BaseException] | None, *rest: object) -> None:
        for index, writer in enumerate(self._writers):
            # A host without events may have done anything, since its log is missing. So may any host in lines left out.
            is_there = self._names[index] in self._execution.hosts and not self._log.bad.count
            is_whole = kind is None and is_there
            writer.close(complete=is_whole, crashed=index in self._crashed)
