"""Files that other programs may have written: traces, the log of a tap, and logs of other systems."""

import atexit
import dataclasses
import io
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from inga.lab.fuzz.decoder import FuzzedDecoder
from inga.lab.fuzz.mutate import Field, Form, FuzzSample, json_values, sample, tokens, words
from inga.model.errors import TraceError, UsageError
from inga.trace.columns import to_rows
from inga.trace.importers import IMPORTERS, Roles, TableColumns, govector, import_log, shiviz, tracechecker
from inga.trace.importers.record import Log
from inga.trace.importers.source import LogText
from inga.trace.log import LogFile, LoggedMessage, LogWriter, log_files, read_records
from inga.trace.manifest import Manifest, ProcessFile
from inga.trace.reader import read_segment, rows
from inga.trace.schema import load_pyarrow
from inga.trace.writer import TraceWriter

PROCESSES = 3
WINDOWS = 1 << 25
"""Bytes of the buffers of readers of text, which are as large for short texts."""

ROWS = 6


@cache
def _scratch() -> Path:
    """Return the directory for all files. It is removed when the process ends that called this first."""
    made = tempfile.TemporaryDirectory(prefix="inga-fuzz-")
    atexit.register(made.cleanup)
    return Path(made.name)


def _place(name: str) -> Path:
    """Return a path for a file or directory of this process alone; child processes have others."""
    directory = _scratch() / str(os.getpid())
    directory.mkdir(exist_ok=True)
    return directory / name


# ---- traces


def _json(content: Any) -> bytes:
    return json.dumps(content, indent=2).encode()


def _manifests() -> list[FuzzSample]:
    plain = Manifest(
        "lunch",
        ["alice", "bob", "carol"],
        "live",
        "vector",
        "deliver",
        "wall",
        ["causal", "integrity"],
        run="r",
    )
    pairs = {"alice": [["get", "put"]]}
    rich = dataclasses.replace(
        plain,
        options={"window": 5},
        seed=7,
        conflicts=pairs,
        undecided=pairs,
        complete=True,
        extra={"note": [1]},
    )
    return [sample(_json(each.to_json()), json_values) for each in (plain, rich)]


def _processes() -> list[FuzzSample]:
    plain = ProcessFile(0, "alice")
    rich = ProcessFile(2, "carol", 1, 9, True, True, ["integrity"], {"note": None})
    return [sample(_json(each.to_json()), json_values) for each in (plain, rich)]


def _again(kind: type[Manifest] | type[ProcessFile], found: Manifest | ProcessFile) -> Manifest | ProcessFile:
    return kind.parse(_json(found.to_json()), "again")


def _written(segment_rows: int) -> list[bytes]:
    """Return the segments of a trace that a member writes."""
    directory = _place("written")
    writer = TraceWriter(
        directory,
        1,
        "bob",
        PROCESSES,
        clock="virtual",
        background=False,
        segment_rows=segment_rows,
        full=True,
    )
    for number in range(1, ROWS):
        writer.row("send", number * 0.5, 1, 1, number, dst=5, deps=(0, number - 1, 2), n=1)
        writer.row("receive", number * 0.5, 1, 0, number, peer=0)
        writer.row(
            "deliver",
            number * 0.5,
            1,
            0,
            number,
            deps=(number - 1, 0, 0),
            n=1,
            op="say",
            ref="a",
            note="text",
        )
    writer.close()
    found = [path.read_bytes() for path in sorted((directory / "events").iterdir())]
    shutil.rmtree(directory)
    return found


def _segments() -> list[FuzzSample]:
    found = _written(100) + _written(4)
    for compression in ("none", "snappy"):
        out = io.BytesIO()
        load_pyarrow().parquet.write_table(
            _table(json.loads(_columns()[0].octets)), out, compression=compression, store_schema=False
        )
        found.append(out.getvalue())
    return [sample(each, _parquet_fields) for each in found]


def _parquet_fields(data: bytes) -> list[Field]:
    """Find the length of the footer, and its octets, which include all other lengths; besides, aligned numbers."""
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    return [
        Field(len(data) - 8, len(data) - 4, Form.LITTLE),
        *(Field(at, at + 1, Form.VARINT) for at in range(footer, len(data) - 8)),
        *words(data, Form.LITTLE),
    ]


def _read_segment(octets: bytes) -> list[Any]:
    """Read a segment from memory that Arrow allocated. An Arrow thread that releases a Python object becomes a Python thread for
    a moment, and CPython 3.11 may crash if the measurement of memory ends just then."""
    pa = load_pyarrow()
    buffer = pa.allocate_buffer(len(octets))
    memoryview(buffer).cast("B")[:] = octets
    return list(to_rows(read_segment(pa.BufferReader(buffer), PROCESSES, name="a segment")))


def _columns() -> list[FuzzSample]:
    """Make samples: the columns of a segment as JSON, with vectors and sets in hexadecimal."""
    one = (1).to_bytes(4, "little").hex()
    content = {
        "process": [1, 1], "pos": [1, 2], "time": [5, 6], "step": ["send", "deliver"], "view": [1, 1], "src": [1, 0],
        "seq": [1, 1], "dst": ["05", None], "deps": [one * 3, None], "height": [4, None], "peer": [None, 0], "n": [1, 1],
        "op": [None, "say"], "ref": [None, None], "note": ["", "text"],
    }  # fmt: skip
    return [sample(_json(content), json_values), sample(_json({key: [] for key in content}), json_values)]


def _table(content: dict[str, list[Any]]) -> Any:
    pa = load_pyarrow()
    kinds = {
        "process": pa.int32(), "pos": pa.int64(), "time": pa.int64(), "step": pa.string(), "view": pa.int32(),
        "src": pa.int32(), "seq": pa.int64(), "height": pa.int64(), "peer": pa.int32(), "n": pa.int64(), "op": pa.string(),
        "ref": pa.string(), "note": pa.string(),
    }  # fmt: skip
    columns = {}
    for name, values in content.items():
        if name in ("dst", "deps"):
            columns[name] = pa.array(
                [None if each is None else bytes.fromhex(each) for each in values], pa.binary()
            )
            continue
        try:
            columns[name] = pa.array(values, kinds.get(name))
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            columns[name] = pa.array(values)  # of the type that they happen to have
    return pa.table(columns)


def _read_columns(octets: bytes) -> list[Any]:
    """Read a valid Parquet file with columns of any type and any values."""
    out = io.BytesIO()
    pa = load_pyarrow()
    try:
        pa.parquet.write_table(_table(json.loads(octets)), out)
    except (pa.ArrowException, ValueError, TypeError, OverflowError, AttributeError, RecursionError):
        raise TraceError("there is no such table") from None
    return _read_segment(out.getvalue())


def _logs() -> list[FuzzSample]:
    """Make a sample: the file of a tap with two records."""
    directory = _place("tap")
    writer = LogWriter(directory, "lunch")
    message = LoggedMessage(5_000, "alice", 1, 0, 1, 0, (1, 2, 3), 4, False, b"hello")
    writer.append([message, message._replace(deps=None, seq=2)])
    writer.close()
    (file,) = log_files(directory)
    octets = Path(file.path).read_bytes()
    shutil.rmtree(directory)
    return [sample(octets, _parquet_fields)]


def _read_log(octets: bytes) -> int:
    path = _place("records.parquet")
    path.write_bytes(octets)
    rows: int = read_records(LogFile(0, 2, str(path)), 0, 2).num_rows
    return rows


# ---- logs of other systems

ROLES = Roles(r"^send (?P<message>\S+)", r"^recv (?P<message>\S+)", "^crash")
SHIVIZ = """\
a {"a":1}
starts
b {"b":1}
send m1
a {"a":2, "b":1}
recv m1
b {"a":0, "b":2}
crash \u00e9
"""
GOVECTOR = """\
client {"client":1}
INFO send m1
12:00:01.5 server {"server":1, "client":1}
INFO recv m1
and a second line
"""
TRACECHECKER = [
    {"TracerIdentity": "a", "Tag": "GenerateTokenTrace", "Body": {"Token": "t"}, "VectorClock": {"a": 1}},
    {
        "TracerIdentity": "b",
        "Tag": "ReceiveTokenTrace",
        "Body": {"Token": "t"},
        "VectorClock": {"a": 1, "b": 1},
    },
    {"TracerIdentity": "b", "Tag": "Done", "Body": [1, None], "VectorClock": {"b": 2, "a": 1}},
]


def _span(number: int, **more: Any) -> dict[str, Any]:
    times = {"startTimeUnixNano": str(number), "endTimeUnixNano": number + 9}
    return {"traceId": "AB", "spanId": f"0{number}", "name": "say", "kind": 3, **times, **more}


TABLE: list[dict[str, Any]] = [
    {"at": "a", "what": "send", "id": "m1", "when": 1700000000},
    {"at": "b", "what": "receive", "id": "m1", "when": "2023-11-14T22:13:21+00:00"},
    {"at": "b", "what": "note", "id": "", "when": 1700000002000},
]
COLUMNS = TableColumns({"process": "at", "kind": "what", "message": "id", "time": "when"})
JAEGER = {
    "data": [
        {
            "traceID": "t1",
            "spans": [
                {"traceID": "t1", "spanID": "1", "operationName": "C", "startTime": 10, "duration": 20, "processID": "p1",
                 "tags": [{"key": "span.kind", "value": "client"}]},
                {"traceID": "t1", "spanID": "2", "operationName": "S", "startTime": 12, "duration": 5, "processID": "p2",
                 "references": [{"refType": "CHILD_OF", "traceID": "t1", "spanID": "1"}],
                 "tags": [{"key": "span.kind", "value": "server"}]},
            ],
            "processes": {"p1": {"serviceName": "web"}, "p2": {"serviceName": "db"}},
        }
    ]
}  # fmt: skip
ZIPKIN = [
    {"traceId": "t1", "id": "1", "kind": "CLIENT", "name": "get", "timestamp": 10, "duration": 20, "localEndpoint": {"serviceName": "web"}},
    {"traceId": "t1", "id": "1", "kind": "SERVER", "name": "get", "timestamp": 12, "duration": 5, "shared": True,
     "localEndpoint": {"serviceName": "db"}},
]  # fmt: skip

SPANS = {
    "resourceSpans": [
        {
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]},
            "scopeSpans": [{"spans": [_span(1), _span(2, parentSpanId="01", kind="SPAN_KIND_INTERNAL")]}],
        },
        {
            "resource": {
                "attributes": [
                    {"key": "service.name", "value": {"stringValue": "bank"}},
                    {"key": "service.instance.id", "value": {"intValue": 7}},
                ]
            },
            "scopeSpans": [
                {"spans": [_span(3, parentSpanId="01", kind=2, links=[{"traceId": "ab", "spanId": "02"}])]}
            ],
        },
    ]
}


def _shiviz() -> list[FuzzSample]:
    header = r"(?<host>\S*) (?<clock>{.*})\n(?<event>.*)" + "\n\n"
    return [sample(text.encode(), tokens) for text in (SHIVIZ, header + SHIVIZ)]


def _govector() -> list[FuzzSample]:
    return [sample(GOVECTOR.encode(), tokens)]


def _tracechecker() -> list[FuzzSample]:
    return [sample(b"\n".join(json.dumps(each).encode() for each in TRACECHECKER), json_values)]


def _otel() -> list[FuzzSample]:
    return [sample(json.dumps(SPANS).encode(), json_values), sample(_json(SPANS), json_values)]


def _sent() -> list[FuzzSample]:
    lines = "\n".join(map(json.dumps, TABLE))
    cells = "\n".join([",".join(TABLE[0]), *(",".join(map(str, each.values())) for each in TABLE)])
    return [sample(lines.encode(), json_values), sample(cells.encode(), tokens)]


def _jaeger() -> list[FuzzSample]:
    return [sample(json.dumps(JAEGER).encode(), json_values)]


def _zipkin() -> list[FuzzSample]:
    return [sample(json.dumps(ZIPKIN).encode(), json_values)]


SAMPLES: dict[str, Callable[[], list[FuzzSample]]] = {
    "shiviz": _shiviz, "govector": _govector, "tracechecker": _tracechecker, "table": _sent, "otel": _otel,
    "jaeger": _jaeger, "zipkin": _zipkin,
}  # fmt: skip


def _import(name: str, octets: bytes) -> int:
    """Import a whole log, which reads it twice, sorts it and writes a trace, and check that the trace can be read."""
    path, out = _place("log"), _place("out")
    path.write_bytes(octets)
    roles = ROLES if "roles" in IMPORTERS[name].options else Roles()
    columns = COLUMNS if "columns" in IMPORTERS[name].options else TableColumns()
    try:
        found = import_log(name, path, out, roles=roles, columns=columns)
        try:
            for trace in found.traces:
                assert sum(1 for _ in rows(trace)) >= 1
        except TraceError as error:
            raise AssertionError(f"what was made of it is no trace: {error}") from None
        return found.events
    finally:
        shutil.rmtree(out, ignore_errors=True)


def _records(open_log: Callable[..., Log], octets: bytes) -> int:
    """Read the records of a log, without importing them."""
    path = _place("log")
    path.write_bytes(octets)
    return sum(1 for _ in open_log(LogText.plain(path), encoding="utf-8").records())


_FILE = (TraceError,)
_LOG = (TraceError, UsageError)

DECODERS: Sequence[FuzzedDecoder] = (
    FuzzedDecoder(
        "traces/manifest", _manifests, lambda octets: Manifest.parse(octets, "manifest"), _FILE, partial(_again, Manifest),
        weight=500,
    ),
    FuzzedDecoder(
        "traces/process", _processes, lambda octets: ProcessFile.parse(octets, "process"), _FILE, partial(_again, ProcessFile),
        weight=500,
    ),
    FuzzedDecoder("traces/segment", _segments, _read_segment, _FILE, weight=100, seconds=0.5, memory=None),
    FuzzedDecoder("traces/columns", _columns, _read_columns, _FILE, weight=50, seconds=0.5, octet_seconds=2e-5, memory=None),
    FuzzedDecoder("traces/tap", _logs, _read_log, _FILE, weight=20, seconds=0.5, memory=None),
    FuzzedDecoder("importers/shiviz", _shiviz, partial(_records, partial(shiviz.open_log, roles=ROLES)), _LOG, weight=50, memory=WINDOWS),
    FuzzedDecoder("importers/govector", _govector, partial(_records, govector.open_log), _LOG, weight=50, memory=WINDOWS),
    FuzzedDecoder("importers/tracechecker", _tracechecker, partial(_records, tracechecker.open_log), _LOG, weight=100),
    *(
        FuzzedDecoder(
            f"importers/{name}-whole", SAMPLES[name], partial(_import, name), _LOG, weight=8, seconds=2.0, octet_seconds=1e-3,
            memory=None,
        )
        for name in IMPORTERS
    ),
)  # fmt: skip
