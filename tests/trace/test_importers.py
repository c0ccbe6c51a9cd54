"""Foreign logs become traces: what is recognised, what is refused and where, what is left behind (nothing)."""

import gzip
import json
import os
import re
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.model.errors import IngaError, TraceError, UsageError
from inga.pipeline.jobs import check_trace
from inga.trace import Row, importers, read_manifest, read_processes, rows, write_shiviz
from inga.trace.importers import DEFAULT, TRIED_OCTETS, Roles, TableColumns, import_log, json_text, text
from inga.trace.importers import write as importing
from inga.trace.importers.shiviz import LINEAR
from inga.trace.importers.text import compile_pattern

LOG = """\
a {"a":1}
starts
b {"b":1}
starts too
a {"a":2}
sends
b {"b":2, "a":2}
receives
"""


def events(trace: Path) -> list[tuple[int, int | None, Any, str | None, str | None]]:
    return [(row.process, row.seq, row.deps, row.note, row.ref) for row in rows(trace) if row.step == "event"]


def write(tmp_path: Path, content: str, name: str = "x.log") -> Path:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    return path


def test_events_with_their_clocks_texts_and_lines(tmp_path: Path) -> None:
    found = import_log("shiviz", write(tmp_path, LOG), tmp_path / "out")
    assert (found.events, found.processes, found.skipped) == (4, 2, 0)
    assert events(tmp_path / "out") == [
        (0, 1, (0, 0), "starts", "x.log:1"),
        (0, 2, (1, 0), "sends", "x.log:5"),
        (1, 1, (0, 0), "starts too", "x.log:3"),
        (1, 2, (2, 1), "receives", "x.log:7"),
    ]
    manifest = read_manifest(tmp_path / "out")
    assert (manifest.source, manifest.guarantees, manifest.processes) == (
        "import:shiviz",
        ["clocks"],
        ["a", "b"],
    )
    assert all(file.complete for file in read_processes(tmp_path / "out"))


@pytest.mark.parametrize(
    "regex",
    [
        r"^(?<event>\w+) (?<host>\S+) (?<clock>{.*})$",
        r"^(?P<event>\w+) (?P<host>\S+) (?P<clock>\{.*\})$",
        r"(?<quote>)(?<event>\w+)\k<quote> (?<host>[^ ]+) (?<clock>{[^]*?})(?<=})",
    ],
)
def test_expressions_of_javascript_and_of_python(tmp_path: Path, regex: str) -> None:
    log = write(tmp_path, 'go a {"a":1}\nhear b {"a":1,"b":1}\n')
    import_log("shiviz", log, tmp_path / "out", regex=regex)
    assert [(seq, note) for _, seq, _, note, _ in events(tmp_path / "out")] == [(1, "go"), (1, "hear")]


def test_an_escaped_parenthesis_is_no_group(tmp_path: Path) -> None:
    log = write(tmp_path, '(?<x> a {"a":1}\n')
    import_log("shiviz", log, tmp_path / "out", regex=r"\(\?<x> (?<host>\S+) (?<clock>{.*})(?<event>.*)")
    assert len(events(tmp_path / "out")) == 1


def test_several_executions_are_several_traces(tmp_path: Path) -> None:
    log = write(tmp_path, f"=== one ===\n{LOG}=== two ===\n=== three ===\n" + 'c {"c":1}\nalone\n')
    found = import_log("shiviz", log, tmp_path / "out", executions="^=== (?<trace>.*) ===$")
    assert found.traces == [str(tmp_path / "out" / "1"), str(tmp_path / "out" / "2")]
    assert [read_manifest(path).group for path in found.traces] == ["one", "three"]
    assert [len(events(Path(path))) for path in found.traces] == [4, 1]
    assert events(tmp_path / "out" / "2") == [(0, 1, (0,), "alone", "x.log:12")]


def test_the_first_lines_may_say_how_to_read_the_log(tmp_path: Path) -> None:
    header = "(?<event>.*) (?<host>\\S*) (?<clock>{.*})\n^--$\n"
    log = write(tmp_path, header + 'x a {"a":1}\n--\ny a {"a":1}\n')
    found = import_log("shiviz", log, tmp_path / "out", trust=True)
    assert (len(found.traces), found.events, found.skipped) == (2, 2, 0)
    assert events(tmp_path / "out" / "2")[0][3:] == ("y", "x.log:5")


@pytest.mark.parametrize(
    "header",
    [
        "(?<host>(a|a)*)*(?<clock>{})(?<event>)\n\n",  # 2^n ways to read n characters
        DEFAULT + "\n(a|a)*b\n",
    ],
)
def test_expressions_of_the_file_are_not_run_unasked(tmp_path: Path, header: str) -> None:
    log = write(tmp_path, header + "a" * 64 + ' {"a":1}\n')
    with pytest.raises(UsageError, match=r"x\.log begins with .* say --trust-header"):
        import_log("shiviz", log, tmp_path / "out")
    assert os.listdir(tmp_path) == ["x.log"]


def test_the_default_needs_no_trust(tmp_path: Path) -> None:
    found = import_log("shiviz", write(tmp_path, f"{DEFAULT}\n\n{LOG}"), tmp_path / "out")
    assert (found.events, found.skipped) == (4, 0)
    divided = write(tmp_path, f"{DEFAULT}\n(a|a)*b\n{LOG}", "y.log")
    assert import_log("shiviz", divided, tmp_path / "other", executions="^--$").events == 4


@given(st.text(alphabet='a{}" \t\n\u00a0', max_size=40))
def test_the_default_finds_what_shiviz_finds(text: str) -> None:
    def found(pattern: str) -> list[tuple[str, str, str]]:
        matches = compile_pattern(pattern, "").finditer(text)
        return [(match["host"], match["clock"], match["event"]) for match in matches]

    assert found(LINEAR) == found(DEFAULT)


@pytest.mark.parametrize("line", ["x", " {", "{ ", " { }x", "\t", "} "])
def test_the_default_ends_soon_whatever_it_reads(tmp_path: Path, line: str) -> None:
    """As written, it begins again at every character: 10^11 steps and more."""
    found = import_log("shiviz", write(tmp_path, line * 500_000 + "\n" + LOG), tmp_path / "out")
    assert (found.events, found.skipped) == (4, 0 if line.isspace() else 1)


def test_the_log_of_one_host_leaves_the_others_open(tmp_path: Path) -> None:
    """What it names of them may be in their logs; what cannot be right whatever these say is wrong."""
    import_log("shiviz", write(tmp_path, 'a {"a":1}\nx\na {"a":2, "b":4}\ny\n'), tmp_path / "out")
    assert [(each.name, each.complete) for each in read_processes(tmp_path / "out")] == [
        ("a", True),
        ("b", False),
    ]
    (clocks,) = check_trace(str(tmp_path / "out"), master=None)[1].checks
    assert (clocks.verdict, clocks.reason) == ("unknown", "rows of b are missing altogether")
    import_log("shiviz", write(tmp_path, 'a {"a":1, "b":4}\nx\na {"a":2}\ny\n', "y.log"), tmp_path / "bad")
    (clocks,) = check_trace(str(tmp_path / "bad"), master=None)[1].checks
    assert (clocks.verdict, clocks.violations) == ("fail", 1)


def test_witnesses_cite_the_line_of_the_log(tmp_path: Path) -> None:
    log = LOG + 'b {"b":3, "a":2}\nreceives\n'
    roles = Roles(r"^send(?<message>s)", r"^receive(?<message>s)")
    import_log("shiviz", write(tmp_path, log), tmp_path / "out", roles=roles)
    checks = check_trace(str(tmp_path / "out"), ["integrity", "complete"], master=None)[1].checks
    assert [(each.line, each.pos) for each in checks[0].witnesses] == [("x.log:9", 7)]
    gone = LOG.replace("receives", "hears nothing")
    import_log("shiviz", write(tmp_path, gone, "y.log"), tmp_path / "gone", roles=roles)
    (complete,) = check_trace(str(tmp_path / "gone"), ["complete"], master=None)[1].checks
    assert [each.line for each in complete.witnesses] == ["y.log:5"], "where the message was sent"


def test_a_passing_log_has_something_to_draw(tmp_path: Path) -> None:
    from inga.pipeline.jobs import report_tables

    import_log("shiviz", write(tmp_path, LOG), tmp_path / "out")
    tables = report_tables(str(tmp_path / "out"), master=None)
    drawing = tables.drawing
    assert [drawing.texts[at] for at in drawing.text] == ["starts", "starts too", "sends", "receives"]
    assert tables.shown.startswith("Everything that happened")
    assert tables.trace.manifest.options["times"] == "lines"


def test_lines_that_belong_to_no_event_are_counted(tmp_path: Path) -> None:
    found = import_log("shiviz", write(tmp_path, "hello\n\n" + LOG + "what?\nwhat??\n"), tmp_path / "out")
    assert (found.skipped, found.skipped_first) == (
        3,
        ["x.log:1: hello", "x.log:11: what?", "x.log:12: what??"],
    )


def test_windows_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However the text is cut into windows, the same records are found at the same lines."""
    random = Random(5)
    counts = {"a": 0, "b": 0}
    parts = []
    for _ in range(200):
        host = random.choice("ab")
        counts[host] += 1
        if random.random() < 0.2:
            parts.append(random.choice(["noise\n", "\n", "=== x ===\n"]))
            if parts[-1].startswith("="):
                counts = {"a": 0, "b": 0, host: 1}
        parts.append(f"{host} {json.dumps({host: counts[host]})}\n{'word ' * random.randrange(9)}\n")
    log = write(tmp_path, "".join(parts))

    def read(out: str) -> Any:
        found = import_log("shiviz", log, tmp_path / out, executions="^=== .* ===$")
        return found.skipped, [events(Path(trace)) for trace in found.traces]

    whole = read("whole")
    assert len(whole[1]) > 3 and whole[0] > 3
    monkeypatch.setattr(text, "RECORD_MAX", 120)
    for window in (150, 211, 1024):
        monkeypatch.setattr(text, "WINDOW", window)
        assert read(f"in {window}") == whole


def test_no_record_begins_in_one_file_and_ends_in_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is read at a time; lines of an old Macintosh are lines."""
    logs = tmp_path / "logs"
    logs.mkdir()
    for at in range(1, 6):
        (logs / f"{at}.log").write_bytes(b'a {"a":%d}\rx\r\n' % at * (at % 2) + b'b {"b":%d}' % at)
    (logs / "6.log").write_text('c {"c":1}\ny\n')
    for window in (7, 64, 1 << 20):
        monkeypatch.setattr(text, "WINDOW", window)
        found = import_log("shiviz", logs, tmp_path / str(window), noise=True)
        assert (found.events, found.skipped, found.processes) == (9, 0, 3)
        told = [(row.ref, row.note or "") for row in rows(tmp_path / str(window))]
        assert told == [
            ("1.log:1", "x"), ("3.log:1", "x"), ("5.log:1", "x"),
            ("1.log:3", ""), ("2.log:1", ""), ("3.log:3", ""), ("4.log:1", ""), ("5.log:3", ""), ("6.log:1", "y"),
        ]  # fmt: skip


def test_exporting_and_importing_again_gives_the_same_events(tmp_path: Path) -> None:
    import_log("shiviz", write(tmp_path, LOG), tmp_path / "out")
    with (tmp_path / "again.log").open("w") as out:
        assert write_shiviz(tmp_path / "out", out).steps == 4
    import_log("shiviz", tmp_path / "again.log", tmp_path / "again")
    assert [each[:4] for each in events(tmp_path / "again")] == [
        each[:4] for each in events(tmp_path / "out")
    ]


def test_govector_with_times_levels_and_long_texts(tmp_path: Path) -> None:
    log = write(
        tmp_path,
        'client {"client":1}\nINFO Initialization Complete\n'
        '1563 server {"server":1, "client":1}\nDEBUG got\n  two lines\nclient {"client":2}\nbye\n',
    )
    import_log("govector", log, tmp_path / "out")
    assert [(seq, note, ref) for _, seq, _, note, ref in events(tmp_path / "out")] == [
        (1, "INFO Initialization Complete", "x.log:1"),
        (2, "bye", "x.log:6"),
        (1, "DEBUG got\n  two lines", "x.log:3"),
    ]
    assert read_manifest(tmp_path / "out").source == "import:govector"


def test_sends_deliveries_and_crashes_by_their_texts(tmp_path: Path) -> None:
    log = write(
        tmp_path,
        'a {"a":1}\nnothing\na {"a":2}\ncast <m>\nb {"a":2,"b":1}\ngot <m>\nb {"a":2,"b":2}\ncast <k>\n'
        'c {"c":1}\ndies\na {"a":3,"b":2}\ngot <k>\n',
    )
    roles = Roles("cast <(?<message>.*)>", "got <(?<message>.*)>", "^dies$")
    found = import_log("shiviz", log, tmp_path / "out", roles=roles, claims=["atomic"])
    assert (found.messages, found.deliveries) == (2, 2)
    messages = [row for row in rows(tmp_path / "out") if row.step in ("send", "deliver")]
    assert [(row.process, row.step, row.src, row.seq, row.deps, row.dst) for row in messages] == [
        (0, "send", 0, 1, (0, 0, 0), None),
        (0, "deliver", 1, 1, (1, 0, 0), None),
        (1, "deliver", 0, 1, (0, 0, 0), None),
        (1, "send", 1, 1, (1, 0, 0), None),
    ]
    assert read_manifest(tmp_path / "out").guarantees == ["clocks", "integrity", "atomic"]
    assert [file.crashed for file in read_processes(tmp_path / "out")] == [False, False, True]


# ---- tracechecker


def line(host: str, tag: str, clock: dict[str, int], token: str | None = None) -> str:
    body = {} if token is None else {"Token": token}
    content = {"TracerIdentity": host, "TraceID": 1, "Tag": tag, "Body": body, "VectorClock": clock}
    return json.dumps(content) + "\n"


TOKENS = (
    line("a", "Start", {"a": 1})
    + line("a", "GenerateTokenTrace", {"a": 2}, "t1")
    + line("b", "ReceiveTokenTrace", {"a": 2, "b": 1}, "t1")
    + line("b", "GenerateTokenTrace", {"a": 2, "b": 2}, "t2")
    + line("a", "ReceiveTokenTrace", {"a": 3, "b": 2}, "t2")
    + line("a", "GenerateTokenTrace", {"a": 4, "b": 2}, "lost")
)


def test_tokens_pair_sends_and_receipts(tmp_path: Path) -> None:
    found = import_log("tracechecker", write(tmp_path, TOKENS), tmp_path / "out")
    assert (found.events, found.messages, found.deliveries, found.unmatched) == (6, 3, 2, 0)
    messages = [row for row in rows(tmp_path / "out") if row.step != "event"]
    assert [(row.process, row.step, row.src, row.seq, row.deps, row.dst) for row in messages] == [
        (0, "send", 0, 1, (0, 0), 2),
        (0, "receive", 1, 1, None, None),
        (0, "deliver", 1, 1, (1, 0), None),
        (0, "send", 0, 2, (1, 1), 0),
        (1, "receive", 0, 1, None, None),
        (1, "deliver", 0, 1, (0, 0), None),
        (1, "send", 1, 1, (1, 0), 1),
    ]
    assert read_manifest(tmp_path / "out").guarantees == ["clocks", "stamps"]


def test_a_receipt_of_what_nobody_sent_is_an_event_only(tmp_path: Path) -> None:
    log = write(tmp_path, line("a", "ReceiveTokenTrace", {"a": 1}, "nobody's"))
    assert import_log("tracechecker", log, tmp_path / "out").unmatched == 1
    assert read_manifest(tmp_path / "out").guarantees == ["clocks", "stamps"]


# ---- otel


def spans(service: str, *spans: dict[str, Any]) -> dict[str, Any]:
    attributes = [{"key": "service.name", "value": {"stringValue": service}}]
    return {"resource": {"attributes": attributes}, "scopeSpans": [{"spans": list(spans)}]}


def span(name: str, parent: str, kind: Any, start: int, end: int, *links: str) -> dict[str, Any]:
    times = {"startTimeUnixNano": str(10**18 + start), "endTimeUnixNano": str(10**18 + end)}
    found = {
        "traceId": "T",
        "spanId": name,
        "parentSpanId": parent,
        "name": name.upper(),
        "kind": kind,
        **times,
    }
    return {**found, "links": [{"traceId": "t", "spanId": each} for each in links]}


SPANS = [
    spans("web", span("c", "", 3, 0, 100), span("p", "", "SPAN_KIND_PRODUCER", 110, 120)),
    spans("shop", span("s", "c", 2, 10, 90), span("inner", "s", 1, 20, 30), span("q", "", 5, 200, 300, "p")),
]


@pytest.mark.parametrize("form", ["document", "pretty", "lines"])
def test_spans_and_links_are_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.setattr(json_text, "BLOCK", 7)
    whole: Any = {"before": [1.5, {}], "resourceSpans": SPANS, "after": None}
    if form == "lines":
        content = "\n".join(json.dumps({"resourceSpans": [each]}) for each in SPANS)
    else:
        content = json.dumps(whole, indent=2 if form == "pretty" else None)
    found = import_log("otel", write(tmp_path, content), tmp_path / "out")
    assert (found.events, found.messages, found.deliveries) == (10, 3, 3)
    told = [(r.process, r.step, r.src, r.seq, r.op) for r in rows(tmp_path / "out") if r.step != "receive"]
    assert told == [
        (0, "event", 0, 1, "C"), (0, "send", 0, 1, "C"), (0, "event", 0, 2, "C"), (0, "deliver", 1, 1, "C"),
        (0, "event", 0, 3, "P"), (0, "send", 0, 2, "P"), (0, "event", 0, 4, "P"),
        (1, "deliver", 0, 1, "S"), (1, "event", 1, 1, "S"), (1, "event", 1, 2, "INNER"),
        (1, "event", 1, 3, "INNER"), (1, "send", 1, 1, "S"), (1, "event", 1, 4, "S"),
        (1, "deliver", 0, 2, "Q"), (1, "event", 1, 5, "Q"), (1, "event", 1, 6, "Q"),
    ]  # fmt: skip
    times = [row.time for row in rows(tmp_path / "out", 0)]
    assert times[0] == 10**18 and times == sorted(times)
    assert read_manifest(tmp_path / "out").guarantees == ["integrity"]


def messages(trace: Path) -> list[tuple[str, str, int | None, str | None]]:
    """Sends and deliveries: where, what, which message by sender and number, and who wrote it down."""
    names = read_manifest(trace).processes
    return [
        (names[row.process], row.step, f"{names[row.src]}{row.seq}", row.note or row.op)  # type: ignore[misc, index]
        for row in rows(trace)
        if row.step in ("send", "deliver")
    ]


def test_spans_of_older_collectors(tmp_path: Path) -> None:
    """Scopes under their old name, names with underscores, identifiers in base64."""
    trace, client, server = (
        "w6vDLCKJ0k2+ZOEnaOoOBA==",
        "7v2sNmC2Z7Q=",
        "7V2SnMC2z7q=",
    )  # they differ in their case

    def found(service: str, key: str, **rest: object) -> dict[str, object]:
        times = {"start_time_unix_nano": "100", "end_time_unix_nano": "200"}
        one = {"trace_id": trace, "span_id": key, "name": service, **times, **rest}
        resource = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
        return {"resource": resource, "instrumentationLibrarySpans": [{"spans": [one]}]}

    content = {
        "resource_spans": [
            found("web", client, kind="SPAN_KIND_CLIENT"),
            found("db", server, kind="SPAN_KIND_SERVER", parent_span_id=client),
        ]
    }
    import_log("otel", write(tmp_path, json.dumps(content)), tmp_path / "out")
    assert [each[:3] for each in messages(tmp_path / "out")] == [
        ("web", "send", "web1"), ("web", "deliver", "db1"), ("db", "deliver", "web1"), ("db", "send", "db1")
    ]  # fmt: skip


def test_a_span_that_is_exported_again_counts_once_and_a_torn_line_not_at_all(tmp_path: Path) -> None:
    whole = [json.dumps({"resourceSpans": [each]}) for each in (*SPANS, SPANS[0])]
    log = write(tmp_path, "\n".join([*whole, whole[0][:70]]))
    found = import_log("otel", log, tmp_path / "out")
    assert (found.events, found.messages) == (10, 3)
    assert (found.torn, found.bad, found.repeated) == (1, 0, len(SPANS[0]["scopeSpans"][0]["spans"]))
    assert all(file.complete for file in read_processes(tmp_path / "out"))


JAEGER = {
    "data": [
        {
            "traceID": "T1",
            "spans": [
                {"traceID": "t1", "spanID": "1", "operationName": "get", "startTime": 10, "duration": 20, "processID": "p1",
                 "references": [], "tags": [{"key": "span.kind", "type": "string", "value": "client"}]},
                {"traceID": "t1", "spanID": "2", "operationName": "find", "startTime": 12, "duration": 5, "processID": "p2",
                 "references": [{"refType": "CHILD_OF", "traceID": "t1", "spanID": "1"}],
                 "tags": [{"key": "span.kind", "value": "server"}]},
                {"traceID": "t1", "spanID": "3", "operationName": "mail", "startTime": 40, "duration": 1, "processID": "p3",
                 "references": [{"refType": "FOLLOWS_FROM", "traceID": "t1", "spanID": "2"}]},
            ],
            "processes": {"p1": {"serviceName": "web"}, "p2": {"serviceName": "db"}, "p3": {"serviceName": "mail"}},
        }
    ],
    "total": 0,
}  # fmt: skip


@pytest.mark.parametrize("form", ["page", "lines"])
def test_of_a_log_without_receivers_nobody_knows_what_is_missing(tmp_path: Path, form: str) -> None:
    if form == "page":
        import_log("jaeger", write(tmp_path, json.dumps(JAEGER)), tmp_path / "out")
    else:
        import_log("table", write(tmp_path, CSV), tmp_path / "out", columns=TableColumns(MAPPED))
    for check in check_trace(str(tmp_path / "out"), ["complete", "atomic"], master=None)[1].checks:
        assert (check.verdict, check.reason) == ("unknown", "the log does not say for whom messages were")


@pytest.mark.parametrize("form", ["page", "lines"])
def test_traces_of_jaeger(tmp_path: Path, form: str) -> None:
    content = json.dumps(JAEGER if form == "page" else JAEGER["data"][0])  # type: ignore[index]
    found = import_log("jaeger", write(tmp_path, content), tmp_path / "out")
    assert (found.events, found.processes) == (6, 3)
    assert messages(tmp_path / "out") == [
        ("web", "send", "web1", "get"), ("web", "deliver", "db2", "get"), ("db", "deliver", "web1", "find"),
        ("db", "send", "db1", "find"), ("db", "send", "db2", "find"), ("mail", "deliver", "db1", "mail"),
    ]  # fmt: skip
    assert next(rows(tmp_path / "out", 2)).time == 40_000


def test_spans_of_zipkin_that_share_an_identifier(tmp_path: Path) -> None:
    """The server's span has the client's identifier, and what the server does has that as parent."""

    def span(key: str, service: str, kind: str | None, at: int, **rest: object) -> dict[str, object]:
        known = {"traceId": "t", "id": key, "timestamp": at, "duration": 10, "name": service, **rest}
        return {**known, "localEndpoint": {"serviceName": service}, **({"kind": kind} if kind else {})}

    content = [
        span("1", "web", "CLIENT", 10),
        span("1", "db", "SERVER", 12, shared=True),
        span("2", "db", None, 13, parentId="1"),
        span("3", "disk", "SERVER", 14, parentId="2"),
        # What the client does meanwhile is no message of the server's.
        span("4", "web", None, 11, parentId="1"),
    ]
    for form in (content, [content]):
        out = tmp_path / f"out{form is content}"
        import_log("zipkin", write(tmp_path, json.dumps(form)), out)
        assert [each[:3] for each in messages(out)] == [
            ("web", "send", "web1"), ("web", "deliver", "db2"), ("db", "deliver", "web1"), ("db", "send", "db1"),
            ("db", "send", "db2"), ("disk", "deliver", "db1"),
        ]  # fmt: skip


# ---- tables

CSV = """\
service;op;id;at;note
web;publish;m1;2026-03-29T01:59:59.5+01:00;
db;CONSUMED;m1;2026-03-29 03:00:00;
web;published;m2;1774746000.25;
db;consumed;m2;1774746000500;second
db;backup;;1774746001000000;nightly
"""
MAPPED = {"process": "service", "kind": "op", "message": "id", "time": "at", "text": "note"}


def test_a_table_of_events(tmp_path: Path) -> None:
    """Times with and without a zone, in seconds, milliseconds and microseconds."""
    found = import_log(
        "table", write(tmp_path, CSV), tmp_path / "out", columns=TableColumns(MAPPED, zone="Europe/Berlin")
    )
    assert (found.events, found.processes, found.messages, found.deliveries) == (5, 2, 2, 2)
    told = [(row.process, row.step, row.src, row.seq, row.dst, row.ref) for row in rows(tmp_path / "out")]
    assert told == [
        (0, "send", 0, 1, 2, "x.log:2"), (0, "send", 0, 2, 2, "x.log:4"),
        (1, "receive", 0, 1, None, "x.log:3"), (1, "deliver", 0, 1, None, "x.log:3"),
        (1, "receive", 0, 2, None, "x.log:5"), (1, "deliver", 0, 2, None, "x.log:5"), (1, "event", 1, 1, None, "x.log:6"),
    ]  # fmt: skip
    summer = 1774746000 * 10**9  # two at night, when the hour is taken away
    assert [row.time - summer for row in rows(tmp_path / "out")] == [
        -500_000_000, 250_000_000, 0, 0, 500_000_000, 500_000_000, 10**9
    ]  # fmt: skip
    manifest = read_manifest(tmp_path / "out")
    assert (manifest.source, manifest.guarantees, manifest.clock) == ("import:table", ["integrity"], "wall")


@pytest.mark.parametrize("form", ["lines", "parquet", "directory"])
def test_a_row_for_each_message(tmp_path: Path, form: str) -> None:
    """Sent to several, received by some; without times a table is in order."""
    content: list[dict[str, Any]] = [
        {"message": {"from": "a", "to": "b", "no": 1}, "sent": 5, "got": 7},
        {"message": {"from": "a", "to": "c", "no": 1}, "sent": 5, "got": None},
        {"message": {"from": "b", "to": "a", "no": 1}, "sent": 9, "got": 11},
        {"message": {"from": "c", "to": "a", "no": 8}, "sent": None, "got": 12},
    ]
    path = write(tmp_path, "\n".join(map(json.dumps, content)))
    if form != "lines":
        import pyarrow.parquet as pq

        path = tmp_path / "table"
        path.mkdir()
        for at, part in enumerate((content[:2], content[2:])):
            pq.write_table(pa.Table.from_pylist(part), path / f"part-{at}.parquet")
        (path / "_SUCCESS").touch()
        if form == "parquet":
            whole = pa.concat_tables(pq.read_table(each) for each in sorted(path.glob("*.parquet")))
            path = tmp_path / "one.parquet"
            pq.write_table(whole, path)
    mapped = {
        "sender": "message.from",
        "receiver": "message.to",
        "message": "message.no",
        "sent": "sent",
        "received": "got",
    }
    found = import_log("table", path, tmp_path / "out", columns=TableColumns(mapped))
    assert (found.messages, found.deliveries, found.processes) == (2, 3, 3)
    certificate = check_trace(str(tmp_path / "out"), ["integrity", "complete"], master=None)[1]
    assert [(each.name, each.violations) for each in certificate.checks] == [
        ("integrity", 1),
        ("complete", 1),
    ]
    place = "part-1.parquet:2" if form == "directory" else "one.parquet:4" if form == "parquet" else "x.log:4"
    assert certificate.checks[0].witnesses[0].line == place
    assert [witness.text for each in certificate.checks for witness in each.witnesses] == [
        "a delivered message 1 of c, which was never sent",
        "message 1 of a was never delivered at c",
    ]


def test_the_sender_of_a_message_may_be_named_where_it_is_received(tmp_path: Path) -> None:
    """Numbers that each sender gives for itself; sends need not say who sent them."""
    content = "at,op,no,by\na,send,1,\nb,send,1,\nc,receive,1,a\nc,receive,1,b\n"
    columns = TableColumns({"process": "at", "kind": "op", "message": "no", "sender": "by"})
    found = import_log("table", write(tmp_path, content), tmp_path / "out", columns=columns)
    assert (found.messages, found.deliveries, found.repeated, found.unmatched) == (2, 2, 0, 0)
    assert [each[2] for each in messages(tmp_path / "out") if each[1] == "deliver"] == ["a1", "b1"]


def test_a_table_with_clocks_is_a_log_of_events(tmp_path: Path) -> None:
    content = [
        {"p": "a", "k": "send", "m": "x", "c": {"a": 1}},
        {"p": "b", "k": "receive", "m": "x", "c": '{"a": 1, "b": 1}'},
    ]
    log = write(tmp_path, "\n".join(map(json.dumps, content)))
    mapped = TableColumns({"process": "p", "kind": "k", "message": "m", "clock": "c"})
    import_log("table", log, tmp_path / "out", columns=mapped)
    assert events(tmp_path / "out") == [
        (0, 1, (0, 0), "send", "x.log:1"),
        (1, 1, (1, 0), "receive", "x.log:2"),
    ]
    assert check_trace(str(tmp_path / "out"), master=None)[1].verdict == "pass"


def test_a_table_with_clocks_may_tell_deliver_from_receive(tmp_path: Path) -> None:
    content = 'at;op;no;vc\na;send;x;{"a":1}\nb;receive;x;{"a":1,"b":1}\nb;deliver;x;{"a":1,"b":2}\n'
    mapped = TableColumns({"process": "at", "kind": "op", "message": "no", "clock": "vc"})
    found = import_log("table", write(tmp_path, content), tmp_path / "out", columns=mapped)
    assert found.deliveries == 1
    told = [(row.step, row.ref) for row in rows(tmp_path / "out", 1) if row.step != "event"]
    assert told == [("receive", "x.log:3"), ("deliver", "x.log:4")]
    assert check_trace(str(tmp_path / "out"), master=None)[1].verdict == "pass"


def test_who_is_not_named_as_a_receiver_is_not_left_out(tmp_path: Path) -> None:
    """Where a table leaves empty for whom a message was, those that received it are meant, and what is missing stays open."""
    content = "at,op,no,to\na,send,1,b\na,send,2,\nb,receive,1,\nb,receive,2,\n"
    mapped = TableColumns({"process": "at", "kind": "op", "message": "no", "receiver": "to"})
    import_log("table", write(tmp_path, content), tmp_path / "named", columns=mapped)
    content = "op,no,from,to\nsend,1,a,\nreceive,1,a,b\nsend,2,b,\nreceive,2,b,a\n"
    mapped = TableColumns({"kind": "op", "message": "no", "sender": "from", "receiver": "to"})
    import_log("table", write(tmp_path, content), tmp_path / "pairs", columns=mapped)
    for each in ("named", "pairs"):
        certificate = check_trace(str(tmp_path / each), ["integrity", "complete"], master=None)[1]
        assert [check.verdict for check in certificate.checks] == ["pass", "unknown"]


def test_spaces_around_a_kind_mean_nothing(tmp_path: Path) -> None:
    content = "at,op,no\na, send,1\nb,GOT ,1\n"
    mapped = TableColumns({"process": "at", "kind": "op", "message": "no"}, kinds={"receive": (" got",)})
    found = import_log("table", write(tmp_path, content), tmp_path / "out", columns=mapped)
    assert (found.messages, found.deliveries) == (1, 1)


def test_long_names_of_messages_are_told_apart(tmp_path: Path) -> None:
    def name(offset: int) -> dict[str, object]:
        return {"topic": "orders of a shop with a long name", "partition": 12, "offset": 10**9 + offset}

    content = [{"at": "a", "op": "send", "no": name(each)} for each in range(3)]
    content += [{"at": "b", "op": "receive", "no": name(each)} for each in range(3)]
    mapped = TableColumns({"process": "at", "kind": "op", "message": "no"})
    log = write(tmp_path, "\n".join(map(json.dumps, content)))
    found = import_log("table", log, tmp_path / "out", columns=mapped)
    assert (found.messages, found.deliveries, found.repeated) == (3, 3, 0)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_rows_are_put_in_order_by_nanoseconds(tmp_path: Path, form: str) -> None:
    log, second = tmp_path / "x", 1_767_225_600 * 10**9
    if form == "csv":
        log.write_text(
            "at,op,no,t\na,send,late,2026-01-01T00:00:00.000000900Z\na,send,early,2026-01-01 01:00:00.0000001+01:00\n"
        )
    else:
        import pyarrow.parquet as pq

        times = pa.array([second + 900, second + 100, None], pa.timestamp("ns", "UTC"))
        table = pa.table({"at": ["a"] * 3, "op": ["send"] * 3, "no": ["late", "early", "never"], "t": times})
        pq.write_table(table, log)
    mapped = TableColumns({"process": "at", "kind": "op", "message": "no", "time": "t"})
    found = import_log("table", log, tmp_path / "out", columns=mapped, bad=int(form == "parquet"))
    assert found.bad == int(form == "parquet")
    assert [row.note for row in rows(tmp_path / "out")] == ["early", "late"]


def test_a_form_of_times_is_also_that_of_numbers(tmp_path: Path) -> None:
    log = write(tmp_path, '{"at": "a", "op": "send", "no": 1, "t": 20260504}')
    mapped = {"process": "at", "kind": "op", "message": "no", "time": "t"}
    import_log("table", log, tmp_path / "out", columns=TableColumns(mapped, time_format="%Y%m%d"))
    assert [row.time for row in rows(tmp_path / "out")] == [1_777_852_800 * 10**9]


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({}, "--map process=COLUMN"),
        ({"process": "service", "kind": "op"}, "the column with the message"),
        ({"host": "service"}, "--map knows no 'host'"),
        ({"kind": "op", "message": "id"}, "where rows happened"),
        ({"process": "service", "message": "id"}, "kind=COLUMN"),
        # One time alone would put all that a process sends before what it receives, or behind it: causes out of thin air.
        ({"sender": "a", "receiver": "b", "message": "c"}, "sent and received, for a row each message"),
        ({"sender": "a", "receiver": "b", "message": "c", "sent": "at"}, "name received=COLUMN, too"),
        ({"sender": "a", "receiver": "b", "message": "c", "received": "at"}, "name sent=COLUMN, too"),
        # Whoever says so believes that rows are put in order by it.
        ({"process": "service", "kind": "op", "message": "id", "sent": "at"}, "say time=COLUMN"),
        (
            {"process": "a", "kind": "b", "message": "c"},
            "has no column 'a'; there are service, op, id, at, note",
        ),
    ],
)
def test_a_mapping_that_does_not_fit(tmp_path: Path, columns: dict[str, str], sentence: str) -> None:
    with pytest.raises(UsageError, match=re.escape(sentence)):
        import_log("table", write(tmp_path, CSV), tmp_path / "out", columns=TableColumns(columns))
    assert os.listdir(tmp_path) == ["x.log"]


@pytest.mark.parametrize("is_tried", [False, True])
def test_kinds_of_which_none_is_a_send_or_a_receipt(tmp_path: Path, is_tried: bool) -> None:
    """Whoever maps the wrong column should hear of it before a check says that there was nothing to judge."""
    wrong = MAPPED | {"kind": "id", "message": "op"}
    sentence = "x.log is a send or a receipt: the kinds in column 'id' are m1, m2. Map another column"
    with pytest.raises(UsageError, match=re.escape(sentence)) as refused:
        import_log(
            "table", write(tmp_path, CSV), None if is_tried else tmp_path / "out", columns=TableColumns(wrong)
        )
    assert "--kinds send=" in str(refused.value) and os.listdir(tmp_path) == ["x.log"]
    meant = TableColumns(wrong, kinds={"send": ("M1",), "deliver": ("m2",)})
    assert import_log("table", tmp_path / "x.log", tmp_path / "out", columns=meant).messages
    many = write(tmp_path, "p,k,m\n" + "".join(f"a,{'k' * at},\n" for at in range(60)), "y.log")
    with pytest.raises(UsageError, match=r"kinds in column 'k' are k, kk, [k, ]*kkkkkkkk, \.\.\.\. Map"):
        import_log("table", many, None, columns=TableColumns({"process": "p", "kind": "k", "message": "m"}))
    filler = f"a,begun,,{'x' * 100}\n" * (TRIED_OCTETS // 100)
    long = write(tmp_path, f"p,k,m,x\n{filler}a,send,m1,\n", "z.log")
    short = TableColumns({"process": "p", "kind": "k", "message": "m"})
    with pytest.raises(
        UsageError, match=r"^no row in the beginning of .*z\.log is a send or a receipt: .* are begun\."
    ):
        import_log("table", long, None, columns=short)
    assert import_log("table", long, tmp_path / "long", columns=short).messages == 1


def test_kinds_that_are_given_outrank_the_usual_ones(tmp_path: Path) -> None:
    """What others call a receipt may be a send here."""
    content = "p,k,m\na,Consume,1\nb,deliver,2\na,publish,3\nb,in,1\n"
    columns = TableColumns({"process": "p", "kind": "k", "message": "m"}, {"send": ("consume", "DELIVER")})
    import_log("table", write(tmp_path, content), tmp_path / "out", columns=columns)
    found = [(row.process, row.step, row.note) for row in rows(tmp_path / "out")]
    assert found == [
        (0, "send", "1"), (0, "event", "publish"),
        (1, "send", "2"), (1, "receive", "1"), (1, "deliver", "1"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kinds", "sentence"),
    [
        (
            {"send": ("PUT",), "receive": ("put",)},
            "--kinds says of 'put' that it is send, and that it is receive",
        ),
        ({"send": ("PUT", "")}, "--kinds send=PUT, has a word that is empty"),
    ],
)
def test_a_kind_means_one_thing(tmp_path: Path, kinds: dict[str, tuple[str, ...]], sentence: str) -> None:
    with pytest.raises(UsageError, match=re.escape(sentence)):
        import_log("table", write(tmp_path, CSV), tmp_path / "out", columns=TableColumns(MAPPED, kinds))


def test_messages_that_nobody_sent_or_received(tmp_path: Path) -> None:
    mapped = TableColumns({"sender": "f", "receiver": "r", "message": "m", "sent": "s", "received": "t"})
    log = write(tmp_path, "f,r,m,s,t\na,b,m1,,\n")
    with pytest.raises(
        UsageError, match=r"x\.log was sent or received: there is nothing in columns 's' and 't'$"
    ):
        import_log("table", log, tmp_path / "out", columns=mapped)
    assert os.listdir(tmp_path) == ["x.log"]


# ---- lines that cannot be read


@pytest.mark.parametrize("format", ["tracechecker", "table", "otel"])
def test_bad_lines_are_shown_counted_and_left_out_if_that_is_meant(tmp_path: Path, format: str) -> None:
    good = {
        "tracechecker": TOKENS.splitlines(),
        "table": CSV.splitlines(),
        "otel": [json.dumps({"resourceSpans": [each]}) for each in SPANS],
    }[format]
    bad = "{not JSON" if format != "table" else "only;three;cells"
    log = write(
        tmp_path, "\n".join([*good[:2], bad, good[2] if len(good) > 2 else "", bad, *good[3:]]) + "\n"
    )
    options = {"columns": TableColumns(MAPPED)} if format == "table" else {}
    with pytest.raises(TraceError) as refused:
        import_log(format, log, tmp_path / "out", **options)  # type: ignore[arg-type]
    assert str(refused.value).startswith(f"{log}:3: ") and f"the others are {log}:5" in str(refused.value)
    assert str(refused.value).endswith("--bad 2 leaves them out.")
    found = import_log(format, log, tmp_path / "out", bad=2, **options)  # type: ignore[arg-type]
    assert (found.bad, len(found.bad_first), found.torn) == (2, 2, 0)
    assert not any(file.complete for file in read_processes(tmp_path / "out"))
    verdicts = {each.verdict for each in check_trace(str(tmp_path / "out"), master=None)[1].checks}
    assert verdicts == {"unknown"}, "what was left out may have held anything"


TORN = {
    # a log, the beginning of a line more, events
    "tracechecker": (TOKENS, TOKENS.splitlines()[0][:40], 6),
    "otel": ("".join(json.dumps({"resourceSpans": [each]}) + "\n" for each in SPANS), '{"resourceSpans": [{"sc', 10),
    "jaeger": (json.dumps(JAEGER["data"][0]) + "\n", '{"spans": [{"traceID": "t', 6),  # type: ignore[index]
    "table": (CSV, "web;publ", 5),
    "table, in its last cell but one": (CSV, "web;publish;m3;2026-;", 5),
    "table, in quotes": (CSV, 'web;publish;"m3', 5),
    "table of JSON": ('{"service": "a", "op": "send", "id": "1", "at": 1774746000}\n', '{"service": "b", "op', 1),
}  # fmt: skip


@pytest.mark.parametrize("form", ["plain", "compressed", "directory"])
def test_a_log_may_end_within_a_character(tmp_path: Path, form: str) -> None:
    for cut in (1, 2, 3):
        log = packed(tmp_path / str(cut), "who,op,id\na,send,1\nb,receive,1\nb,\U0001f600", form)
        file = log / "x.log" if form == "directory" else log
        content = gzip.decompress(file.read_bytes()) if form == "compressed" else file.read_bytes()
        file.write_bytes(gzip.compress(content[:-cut]) if form == "compressed" else content[:-cut])
        mapped = TableColumns({"process": "who", "kind": "op", "message": "id"})
        found = import_log("table", log, tmp_path / f"out{cut}", columns=mapped)
        assert (found.events, found.deliveries, found.torn) == (2, 1, 1)


@pytest.mark.parametrize("form", ["plain", "compressed", "directory"])
@pytest.mark.parametrize("name", TORN)
def test_a_last_line_that_is_torn_is_left_out(tmp_path: Path, name: str, form: str) -> None:
    whole, more, count = TORN[name]
    content, log = (whole + more).encode(), tmp_path / "x.log"
    if form == "directory":
        log.mkdir()
        (log / "1.log").write_bytes(content)
    else:
        log.write_bytes(gzip.compress(content) if form == "compressed" else content)
    columns = {"columns": TableColumns(MAPPED)} if name.startswith("table") else {}
    found = import_log(name.partition(" ")[0].rstrip(","), log, tmp_path / "out", **columns)  # type: ignore[arg-type]
    assert (found.events, found.torn, found.bad) == (count, 1, 0)
    assert all(file.complete for file in read_processes(tmp_path / "out"))


def document(format: str, *, line_breaks: bool, traces: int = 300) -> str:
    """Traces of two spans each, 2 megabytes in all."""
    item: dict[str, list[Any]] = {"jaeger": [], "otel": [], "zipkin": []}
    for at in range(traces):
        one = json.loads(json.dumps(JAEGER["data"][0]).replace("t1", f"t{at}"))  # type: ignore[index]
        one["spans"][0]["tags"].append({"key": "text", "value": "x" * 7000})
        item["jaeger"].append(one)
        called = {**span("s", "c", 2, 10, 90), "traceId": f"t{at}"}
        said = {**span("c", "", 3, 0, 100), "traceId": f"t{at}", "text": "x" * 7000}
        item["otel"] += [spans("web", said), spans("shop", called)]
        item["zipkin"] += [
            {"traceId": f"t{at}", "id": str(kind), "parentId": "1" if kind == 2 else None, "timestamp": 5, "duration": 1,
             "localEndpoint": {"serviceName": "ab"[kind - 1]}, "text": "x" * 3500} for kind in (1, 2)
        ]  # fmt: skip
    whole = {
        "jaeger": {"data": item["jaeger"]},
        "otel": {"resourceSpans": item["otel"]},
        "zipkin": item["zipkin"],
    }
    return json.dumps(whole[format], indent=1 if line_breaks else None)


@pytest.mark.parametrize("form", ["plain", "compressed", "directory"])
@pytest.mark.parametrize("line_breaks", [False, True])
@pytest.mark.parametrize("format", ["jaeger", "otel", "zipkin"])
def test_a_large_document_is_tried_by_its_first_items(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str, line_breaks: bool, form: str
) -> None:
    log = packed(tmp_path, document(format, line_breaks=line_breaks), form)
    found = import_log(format, log, None)
    assert (found.bad, found.torn, found.processes) == (0, 0, 3 if format == "jaeger" else 2)
    assert 200 < found.events < 1200 and found.messages and len(found.sample) == 20
    # What has to be copied is copied so far only.
    monkeypatch.setattr(importers, "ITEM_OCTETS_MAX", 100_000)
    found = import_log(format, log, None)
    assert (found.bad, found.torn) == (0, 0) and (found.events < 120) == (form != "plain")
    monkeypatch.setattr(importers, "ITEM_OCTETS_MAX", 2_000)
    if form != "plain":
        with pytest.raises(
            TraceError, match=r"has nothing that ends within its first [\d,]+ octets"
        ) as refused:
            import_log(format, log, None)
        assert "--bad" not in str(refused.value)


@pytest.mark.parametrize("form", ["plain", "compressed", "directory"])
@pytest.mark.parametrize("line_breaks", [False, True])
@pytest.mark.parametrize("format", ["jaeger", "otel", "zipkin"])
def test_a_document_that_is_cut_off_gives_what_is_whole(
    tmp_path: Path, format: str, line_breaks: bool, form: str
) -> None:
    content = document(format, line_breaks=line_breaks, traces=20)
    log = packed(tmp_path, content[: len(content) // 2], form)
    found = import_log(format, log, tmp_path / "out")
    assert (found.bad, found.torn) == (0, 1) and 10 < found.events < 80
    log = packed(tmp_path / "first", content[:200], form)
    with pytest.raises(TraceError, match=r"this is not JSON|is expected") as refused:
        import_log(format, log, tmp_path / "none")
    assert "--bad" not in str(refused.value), "nothing would be left"


def test_what_is_wrong_in_a_document_of_many_lines_counts_once(tmp_path: Path) -> None:
    content = document("otel", line_breaks=True, traces=5)
    log = write(tmp_path, f"{content.replace('SPAN', 'x').replace(',', ';', 60)}\n{content}\n")
    with pytest.raises(TraceError, match=r"--bad 1 leaves it out\.$"):
        import_log("otel", log, tmp_path / "out")
    assert import_log("otel", log, tmp_path / "out", bad=1).events == 20


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("indent", [None, 1])
def test_a_document_is_torn_where_its_file_ends_and_nowhere_else(
    tmp_path: Path, indent: int | None, end: str
) -> None:
    """Neither does another file go on with it, nor is what is wrong in the middle of it only its end."""
    content = json.dumps(
        [{"who": "a", "op": "send", "id": at, "x": ["\\", "\u00e9", 0.5, 1e-9, None]} for at in range(9)],
        indent=indent,
    )
    mapped = TableColumns({"process": "who", "kind": "op", "message": "id"})
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "2.json").write_text(content + end)
    for form in (tmp_path / "logs", tmp_path / "logs" / "1.json"):
        half = content.index("{", len(content) // 2)
        (logs / "1.json").write_text(content[:half] + "?" + content[half:] + end)
        with pytest.raises(TraceError, match=r"1\.json:\d+: this is not JSON: .* --bad 1 leaves it out\.$"):
            import_log("table", form, tmp_path / "out", columns=mapped)
        for cut in range(half, half + 130):
            (logs / "1.json").write_text(content[:cut])
            found = import_log("table", form, tmp_path / f"{form.stem}{cut}", columns=mapped)
            assert (found.torn, found.bad) == (1, 0), content[:cut]


@pytest.mark.parametrize("indent", [None, 1])
def test_a_number_that_is_too_long_to_read_is_a_bad_line(tmp_path: Path, indent: int | None) -> None:
    content = json.dumps(
        [{"who": "a", "op": "send", "id": 1}, {"who": "a", "op": "send", "id": "?"}], indent=indent
    )
    log = write(tmp_path, content + "\n" + content.replace('"?"', "7" * 5000) + "\n")
    mapped = TableColumns({"process": "who", "kind": "op", "message": "id"})
    with pytest.raises(TraceError, match=r"this is not JSON: Exceeds the limit .* --bad 1 leaves it out\.$"):
        import_log("table", log, tmp_path / "out", columns=mapped)
    assert import_log("table", log, tmp_path / "out", columns=mapped, bad=1).messages == 2


def packed(directory: Path, content: str, form: str) -> Path:
    """A log in one of the forms in which logs come."""
    directory.mkdir(exist_ok=True)
    if form == "plain":
        return write(directory, content)
    packed = directory / ("x.log.gz" if form == "compressed" else "logs")
    if form == "directory":
        packed.mkdir()
        write(packed, content)
    else:
        packed.write_bytes(gzip.compress(content.encode()))
    return packed


@pytest.mark.parametrize("form", ["plain", "compressed", "directory"])
@pytest.mark.parametrize("indent", [None, 2])
def test_a_table_may_be_a_list_of_json(tmp_path: Path, indent: int | None, form: str) -> None:
    content = [{"who": "a", "op": "send", "id": 1}, {"who": "b", "op": "receive", "id": 1}] * 2
    mapped = TableColumns({"process": "who", "kind": "op", "message": "id"})
    log = packed(tmp_path, json.dumps(content, indent=indent), form)
    found = import_log("table", log, tmp_path / "out", columns=mapped)
    assert (found.events, found.messages, found.deliveries) == (4, 1, 2)
    assert import_log("table", log, None, columns=mapped).events == 4
    several = write(tmp_path, "\n".join(json.dumps(each, indent=2) for each in content), "y.log")
    assert import_log("table", several, tmp_path / "several", columns=mapped).deliveries == 2
    wrong = write(tmp_path, json.dumps([*content, 5]), "z.log")
    with pytest.raises(
        TraceError, match=r"z\.log:1: an object is expected, not 5\. --bad 1 leaves it out\.$"
    ):
        import_log("table", wrong, tmp_path / "wrong", columns=mapped)


@pytest.mark.parametrize("called", ["[x", "[5]", '["c", "m1"]', '["a", "m1"]'])
def test_a_message_may_be_called_anything(tmp_path: Path, called: str) -> None:
    """Where some rows name its sender and some do not, it is no name with a sender in it."""
    mapped = TableColumns({"process": "who", "kind": "op", "message": "id", "sender": "by"})
    rows = [("a", "send", "m1", "a"), ("b", "receive", called, ""), ("b", "receive", "m1", "a")]
    log = write(tmp_path, "who;op;id;by\n" + "".join(";".join(row) + "\n" for row in rows))
    found = import_log("table", log, tmp_path / "out", columns=mapped)
    assert (found.processes, found.messages, found.deliveries, found.unmatched) == (2, 1, 1, 1)


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("row", ['b,receive,m1,"x', 'b,receive,"m1,x'])
@pytest.mark.parametrize("form", ["plain", "compressed", "directory"])
def test_quotes_that_nobody_closes_swallow_nothing_in_silence(
    tmp_path: Path, form: str, row: str, end: str
) -> None:
    mapped = TableColumns({"process": "who", "kind": "op", "message": "id"})
    log = packed(tmp_path, f'who,op,id,text\na,send,m1,"y\nz"\n{row}\na,send,m2,y{end}', form)
    with pytest.raises(
        TraceError, match=r"x\.log(\.gz)?:4: quotes in this row are not closed, .* --bad 1 leaves it out\.$"
    ):
        import_log("table", log, tmp_path / "out", columns=mapped)
    assert import_log("table", log, tmp_path / "out", columns=mapped, bad=1).events == 1


def test_a_time_of_parquet_may_be_too_late(tmp_path: Path) -> None:
    """As where a database says infinity."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    times = pa.array([10**15, 9_223_371_331_200_000_000, 2 * 10**15], pa.timestamp("us", "UTC"))
    table = pa.table({"who": ["a"] * 3, "op": ["send"] * 3, "id": ["1", "2", "3"], "at": times})
    pq.write_table(table, log := tmp_path / "x.parquet")
    mapped = TableColumns({"process": "who", "kind": "op", "message": "id", "time": "at"})
    with pytest.raises(TraceError, match=r"x\.parquet:2: a value is too large: .* --bad 1 leaves it out\.$"):
        import_log("table", log, tmp_path / "out", columns=mapped)
    assert import_log("table", log, tmp_path / "out", columns=mapped, bad=1).messages == 2


def test_a_row_of_csv_that_cannot_be_read_is_a_bad_line(tmp_path: Path) -> None:
    """As with a text that is longer than the reader takes, or in quotes that nobody closes."""
    rows = [f"a,send,m{at},{'x' * (200_000 if at == 1 else 9)}\n" for at in range(4)]
    log = write(
        tmp_path, "".join(["who,op,id,text\n", *rows, 'a,send,m4,"', "y" * 200_000, "\n", *rows[2:3]])
    )
    mapped = TableColumns({"process": "who", "kind": "op", "message": "id"})
    with pytest.raises(
        TraceError, match=r"x\.log:3: this is no CSV: .*x\.log:6\. --bad 2 leaves them out\.$"
    ):
        import_log("table", log, tmp_path / "out", columns=mapped)
    found = import_log("table", log, tmp_path / "out", columns=mapped, bad=2)
    assert (found.bad, found.events, found.messages) == (2, 4, 3)
    with pytest.raises(
        TraceError, match=r"y\.log:1: this is no CSV: field larger than field limit \(\d+\)\.$"
    ):
        import_log("table", write(tmp_path, "x" * 200_000, "y.log"), tmp_path / "other", columns=mapped)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32-be", "cp500"])
@pytest.mark.parametrize("form", ["plain", "compressed", "directory"])
def test_lines_need_not_end_with_one_octet(tmp_path: Path, form: str, encoding: str) -> None:
    """As on Windows: two octets a character, two characters at the end of a line, and a mark at the beginning of each file."""
    mark = "\ufeff" if encoding == "utf-16-le" else ""
    whole = f"{mark}who,op,id\r\né,send,m1\r\nb,receive,m1\r\n".encode(encoding)
    logs = tmp_path / "x.log"
    if form == "directory":
        logs.mkdir()
        (logs / "1.csv").write_bytes(whole)
        (logs / "2.csv").write_bytes(whole)
    else:
        logs.write_bytes(gzip.compress(whole) if form == "compressed" else whole)
    mapped = TableColumns({"process": "who", "kind": "op", "message": "id"})
    found = import_log("table", logs, tmp_path / "out", columns=mapped, encoding=encoding)
    count = 2 if form == "directory" else 1
    assert (found.processes, found.messages, found.deliveries, found.torn) == (2, 1, count, 0)
    assert {row.ref.rpartition(":")[2] for row in rows(tmp_path / "out") if row.ref} == {"2", "3"}
    assert import_log("table", logs, None, columns=mapped, encoding=encoding).deliveries == count
    if encoding != "cp500":  # in which all octets are characters
        (logs / "1.csv" if form == "directory" else logs).write_bytes("é".encode(encoding) + b"\xd8" * 8)
        with pytest.raises(TraceError, match=rf":1: here or later is text that is not {encoding}: "):
            import_log("table", logs, tmp_path / "wrong", columns=mapped, encoding=encoding)


@pytest.mark.parametrize("time", [{}, {"time": "at"}])
def test_each_file_of_a_directory_names_its_columns(tmp_path: Path, time: dict[str, str]) -> None:
    """In whatever order, and after a file that was torn within quotes; what is no table of these columns is refused."""
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "1.csv").write_text('at,op,id,who\n1,send,m1,a\n2,send,m2,a\n2,"se')
    (logs / "2.csv").write_text("\nwho;id;op;at\nb;m2;receive;3\nb;m1;receive;4")
    (logs / "3.csv").write_text("at,op,id,who\n")
    mapped = TableColumns({"process": "who", "kind": "op", "message": "id", **time})
    found = import_log("table", logs, tmp_path / "out", columns=mapped)
    assert (found.processes, found.events, found.deliveries, found.torn, found.bad) == (2, 4, 2, 1, 0)
    assert [(row.process, row.step, row.seq, row.ref) for row in rows(tmp_path / "out")] == [
        (0, "send", 1, "1.csv:2"), (0, "send", 2, "1.csv:3"),
        (1, "receive", 2, "2.csv:3"), (1, "deliver", 2, "2.csv:3"),
        (1, "receive", 1, "2.csv:4"), (1, "deliver", 1, "2.csv:4"),
    ]  # fmt: skip
    (logs / "2.csv").write_text("3,receive,m2,b\n4,receive,m1,b\n")
    sentence = f"{logs}/2.csv has no column 'who'; there are 3, receive, m2, b, and each file of a directory names its own"
    with pytest.raises(UsageError, match=f"^{re.escape(sentence)}$"):
        import_log("table", logs, tmp_path / "other", columns=mapped)


MIXED = {
    "1.csv": "who,op,id\na,send,1\n\n",
    "2.jsonl": 'Starting server\n[main] 2 workers\n{"who": "b", "op": "receive", "id": "1"}\n',
    "3.json": json.dumps([{"who": "b", "op": "send", "id": "2"}, {"who": "c", "op": "send", "id": "3"}], indent=1),
    "4.csv": "op;id;who\nreceive;2;a\nreceive;3;a\n",
    "5.jsonl": '{"who": "a", "op": "send", "id": "4"}\n' * 100 + '{"who": "b", "op": "rec',
}  # fmt: skip


def test_each_file_is_what_its_first_lines_say(tmp_path: Path) -> None:
    """A server that says that it starts has not written CSV; and what one file is says nothing of another."""
    logs = tmp_path / "logs"
    logs.mkdir()
    for name, content in MIXED.items():
        (logs / name).write_text(content)
    mapped = {"process": "who", "kind": "op", "message": "id"}
    with pytest.raises(TraceError) as refused:
        import_log("table", logs, tmp_path / "out", columns=TableColumns(mapped))
    assert str(refused.value).startswith(f"{logs}/2.jsonl:1: this is not JSON: ")
    assert str(refused.value).endswith(f"2.jsonl:2, {logs}/5.jsonl:101. --bad 2 leaves them out.")
    found = import_log("table", logs, tmp_path / "out", columns=TableColumns(mapped), bad=2)
    assert (found.processes, found.bad, found.torn) == (3, 2, 1)
    assert (found.messages, found.deliveries, found.repeated) == (4, 3, 99)
    places = sorted({row.ref for row in rows(tmp_path / "out") if row.ref})
    assert places == ["1.csv:2", "2.jsonl:3", "3.json:2", "3.json:7", "4.csv:2", "4.csv:3", "5.jsonl:1"]
    alone = tmp_path / "logs" / "2.jsonl"
    found = import_log("table", alone, None, columns=TableColumns(mapped))
    assert (found.events, found.bad) == (1, 2) and "2.jsonl:3" in found.sample[0]


def test_long_lines_are_read_as_short_ones(tmp_path: Path) -> None:
    """Also where they are longer than what is looked at, to know what a file is, and than what is read in one go."""
    row = {"who": "a", "op": "send", "id": "1", "text": "é" * (1 << 17)}
    many = [{**row, "id": str(at)} for at in range(9)]
    mapped = TableColumns({"process": "who", "kind": "op", "message": "id"})
    forms = {
        "lines": "\n".join(map(json.dumps, many)),
        "list": json.dumps(many, ensure_ascii=False),
        "long": "[\n" + ",\r\n".join(json.dumps(each, indent=2) for each in many) + "]",
        "csv": "who,op,id,text\n" + "".join(",".join(each.values())[:100_000] + "\r\n" for each in many),
    }
    logs = tmp_path / "logs"
    logs.mkdir()
    for name, content in forms.items():
        (logs / name).write_text(content)
        found = import_log("table", logs / name, tmp_path / name, columns=mapped)
        assert (found.messages, found.bad, found.torn) == (9, 0, 0), name
    found = import_log("table", logs, tmp_path / "all", columns=mapped)
    assert (found.messages, found.repeated) == (9, 27)
    assert {row.ref for row in rows(tmp_path / "all")} == {f"csv:{at}" for at in range(2, 11)}


def test_parquet_is_all_of_a_directory_or_none(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    logs = tmp_path / "logs"
    logs.mkdir()
    pq.write_table(pa.table({"who": ["a"], "op": ["send"], "id": ["1"]}), logs / "2.parquet")
    mapped = TableColumns({"process": "who", "kind": "op", "message": "id"})
    for other in ("1.csv", "3.csv"):
        (logs / other).write_text(MIXED["1.csv"])
        sentence = f"{logs}/2.parquet is Parquet, and {logs}/{other} is not: a directory has one or the other"
        with pytest.raises(UsageError, match=f"^{re.escape(sentence)}$"):
            import_log("table", logs, tmp_path / "out", columns=mapped)
        (logs / other).unlink()
    assert import_log("table", logs, tmp_path / "out", columns=mapped).messages == 1


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_column_that_is_meant_is_there_once(tmp_path: Path, form: str) -> None:
    """Else the last of them counted; others may be there as often as they like."""
    log, names = tmp_path / "x.log", ["who", "op", "id", "at", "at"]
    cells = [("a", "send", "1", "5", "6"), ("b", "receive", "1", "7", "8")]
    log.write_text("\n".join(map(",".join, [names, *cells])))
    if form == "parquet":
        pq = pytest.importorskip("pyarrow.parquet")
        columns = [pa.array(list(column)) for column in zip(*cells, strict=True)]
        pq.write_table(pa.Table.from_arrays(columns, names=names), log)
    mapped = {"process": "who", "kind": "op", "message": "id"}
    with pytest.raises(UsageError, match=r"x\.log has 2 columns 'at': nothing says which is meant$"):
        import_log("table", log, tmp_path / "out", columns=TableColumns({**mapped, "time": "at"}))
    assert import_log("table", log, tmp_path / "out", columns=TableColumns(mapped)).deliveries == 1


def test_tables_that_were_put_together_name_their_columns_again(tmp_path: Path) -> None:
    log = write(tmp_path, "who,op,id\na,send,1\nwho,op,id\nb,receive,1\n")
    mapped = TableColumns({"process": "who", "kind": "op", "message": "id"})
    found = import_log("table", log, tmp_path / "out", columns=mapped)
    assert (found.processes, found.events, found.deliveries) == (2, 2, 1)


def test_a_directory_is_read_with_all_below_it(tmp_path: Path) -> None:
    """Logs lie by host, under the same name; links may lead back to where they are."""
    logs = tmp_path / "logs"
    for at, host in enumerate(("b/host", "a", ".hidden", "_temporary")):
        (logs / host).mkdir(parents=True)
        content = TOKENS.splitlines(keepends=True)[3 * at : 3 * at + 3] if at < 2 else ["no log"]
        (logs / host / "app.log").write_text("".join(content))
    (logs / "b" / "again").symlink_to(logs)
    (logs / "b" / "nowhere").symlink_to(logs / "gone")
    found = import_log("tracechecker", logs, tmp_path / "out")
    assert (found.events, found.processes) == (6, 2)
    cited = {row.ref for row in rows(tmp_path / "out")}
    assert cited == {f"{file}/app.log:{line}" for file in ("a", "b/host") for line in (1, 2, 3)}
    (logs / "a" / "app.log").write_text("what?\n")
    with pytest.raises(TraceError, match=f"^{re.escape(str(logs / 'a' / 'app.log'))}:1: "):
        import_log("tracechecker", logs, tmp_path / "other")


def test_claims_are_taken_off(tmp_path: Path) -> None:
    import_log(
        "tracechecker", write(tmp_path, TOKENS), tmp_path / "out", claims=["integrity"], disclaims=["stamps"]
    )
    assert read_manifest(tmp_path / "out").guarantees == ["clocks", "integrity"]


# ---- what is wrong is said with its place, and nothing is left behind

TOKEN = '{"TracerIdentity": "a", "Tag": "TAG", "VectorClock": {"a": 1}}'
SPAN = (
    '{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "t", "spanId": "ID", '
    '"startTimeUnixNano": 100, "endTimeUnixNano": 200}]}]}]}'
)


def test_attributes_by_something_that_is_no_key_are_passed_over(tmp_path: Path) -> None:
    attributes = '"resource": {"attributes": [{"key": {}, "value": {"a": 1}}, {"key": "service.name", "value": {"a": [7]}}]}'
    content = SPAN.replace('"scopeSpans"', f'{attributes}, "scopeSpans"')
    import_log("otel", write(tmp_path, content), tmp_path / "out")
    assert read_manifest(tmp_path / "out").processes == ["[7]"]


@pytest.mark.parametrize(
    ("format", "content", "sentence"),
    [
        ("shiviz", 'a {"a":1}\nx\na {"a":}\ny\n', 'x.log:3: the clock "{\\"a\\":}" is not JSON'),
        ("shiviz", 'a {"a":1, "\\ud800":1}\nx\n', "x.log:1: the clock"),
        ("tracechecker", TOKEN.replace("TAG", "\\udfff"), "x.log:1: this holds half a character"),
        ("otel", SPAN.replace("ID", "\\ud800"), "x.log:1: this holds half a character"),
        ("otel", SPAN.replace("200", str((1 << 63) - 1)), "x.log:1: endTimeUnixNano must be nanoseconds"),
        ("shiviz", 'a {"b":1}\nx\n', 'x.log:1: the clock of an event of "a" does not count that event'),
        ("shiviz", 'a {"a":0}\nx\n', 'x.log:1: the clock of an event of "a" does not count that event'),
        ("shiviz", '\n\na {"a":-1}\nx\n', 'x.log:3: the clock counts -1 events of "a"'),
        ("shiviz", 'a {"a":1.5}\nx\n', 'x.log:1: the clock counts 1.5 events of "a"'),
        ("shiviz", 'a {"a":true}\nx\n', 'x.log:1: the clock counts true events of "a"'),
        ("shiviz", 'a {"a":3000000000}\nx\n', 'x.log:1: the clock counts 3000000000 events of "a"'),
        ("shiviz", 'a {"a":1,"a":2}\nx\n', "it names a host twice"),
        ("shiviz", ' {"a":1}\nx\n', "x.log:1: the event has no host"),
        ("shiviz", "\nhello\n", "x.log:2: the log has no event that the shiviz reader recognises; this is the first line that matches nothing: hello."),
        ("shiviz", "x" * 99, "matches nothing: " + "x" * 59 + "…."),
        ("shiviz", "", "has no event that the shiviz reader recognises."),
        ("govector", "a b c\n", "has no event that the govector reader recognises"),
        ("tracechecker", "{}\n", 'x.log:1: there is no "TracerIdentity"'),
        ("tracechecker", TOKENS + "\nnot JSON\n", "x.log:8: this is not JSON"),
        ("tracechecker", TOKENS + "[]\n", "x.log:7: an object is expected, not []"),
        ("tracechecker", line("a", "GenerateTokenTrace", {"a": 1}), "x.log:1: GenerateTokenTrace has no token"),
        ("tracechecker", TOKENS + line("a", "GenerateTokenTrace", {"a": 5}, "t1"), "x.log:7: message t1 is sent a second time"),
        ("otel", "{}", "has no span: OTLP as JSON, with resourceSpans, is expected"),
        ("otel", '{"resourceSpans": [\n\n5]}', "x.log:3: resourceSpans holds 5"),
        ("otel", '{"resourceSpans": [{}', "x.log:1: , or ] is expected, not the end"),
        ("otel", '{"resourceSpans"\n: [{"a" 1}]}', "x.log:2: this is not JSON"),
        ("otel", json.dumps({"resourceSpans": [spans("a", {**span("x", "", 1, 5, 4)})]}), "ends before it starts"),
        ("otel", json.dumps({"resourceSpans": [spans("a", span("x", "", 9, 1, 2))]}), "there is no kind 9"),
        ("otel", json.dumps({"resourceSpans": [spans("a", {"traceId": "t"})]}), "no traceId and spanId"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_file_and_line(
    tmp_path: Path, format: str, content: str, sentence: str
) -> None:
    log = write(tmp_path, content)
    with pytest.raises(TraceError, match=re.escape(sentence)):
        import_log(format, log, tmp_path / "out")
    assert os.listdir(tmp_path) == ["x.log"], "nothing is left behind"


@pytest.mark.parametrize("format", ["shiviz", "tracechecker", "otel"])
def test_bytes_that_are_no_text(tmp_path: Path, format: str) -> None:
    (tmp_path / "x.log").write_bytes(b"{\n\xff\xfe\n}")
    with pytest.raises(TraceError, match=r"x\.log:\d: here or .* not utf-8"):
        import_log(format, tmp_path / "x.log", tmp_path / "out")
    assert os.listdir(tmp_path) == ["x.log"]


def test_other_encodings_are_read(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "x.log").write_bytes('é {"é":1}\nvoilà'.encode("latin-1"))
    for at, log in enumerate(("logs", "logs/x.log")):
        import_log("shiviz", tmp_path / log, tmp_path / str(at), encoding="latin-1")
        assert events(tmp_path / str(at))[0][3] == "voilà"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"regex": "("}, "is not a regular expression"),
        ({"regex": "(?<host>x)(?<clock>y)"}, r"has no group \(\?<event>"),
        ({"executions": "x*"}, "matches where there is nothing"),
        ({"roles": Roles(send="(?<message>x)")}, "--send and --deliver go together"),
        ({"roles": Roles("x", "(?<message>y)")}, r"has no group \(\?<message>"),
        ({"encoding": "klingon"}, "there is no encoding 'klingon'"),
    ],
)
def test_bad_options(tmp_path: Path, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        import_log("shiviz", write(tmp_path, LOG), tmp_path / "out", **options)
    assert os.listdir(tmp_path) == ["x.log"]


def test_a_place_that_is_taken_stays_as_it_is(tmp_path: Path) -> None:
    log, out = write(tmp_path, LOG), tmp_path / "out"
    out.mkdir()
    (out / "mine").touch()
    with pytest.raises(UsageError, match="exists already: choose another place"):
        import_log("shiviz", log, out)
    assert os.listdir(out) == ["mine"]
    for wrong in (tmp_path / "no" / "where", log):
        with pytest.raises(IngaError):
            import_log("shiviz", log, wrong)
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        import_log("shiviz", tmp_path / "nothing", tmp_path / "other")


def test_a_failure_while_writing_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from inga.trace.importers import write as writing

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing._Writing, "write", fail)
    with pytest.raises(UsageError, match="out cannot be written: No space left"):
        import_log("shiviz", write(tmp_path, LOG), tmp_path / "out")
    assert os.listdir(tmp_path) == ["x.log"]


def test_own_runs_make_a_log_whose_clocks_are_right(tmp_path: Path) -> None:
    """Rows of a run of our own, exported and imported: every row is an event of its process."""
    from inga.sim.trials import simulate_trial
    from inga.trial.trial import Trial

    simulate_trial(Trial(members=3, messages=8, loss=0.2, seed=3), tmp_path / "run")
    with (tmp_path / "run.log").open("w") as out:
        write_shiviz(tmp_path / "run", out)
    import_log("shiviz", tmp_path / "run.log", tmp_path / "out")
    ours: list[Row] = list(rows(tmp_path / "run"))
    assert [(row.process, row.seq) for row in rows(tmp_path / "out")] == [
        (row.process, row.pos) for row in ours
    ]


# ---- long work


TWO_SPANS = {
    "resourceSpans": [
        {
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": name}}]},
            "scopeSpans": [
                {
                    "spans": [
                        {"traceId": "aa", "spanId": f"{at:02x}", "name": "work", "kind": 1}
                        | {"startTimeUnixNano": str(at), "endTimeUnixNano": str(at + 5)}
                    ]
                }
            ],
        }
        for at, name in enumerate("ab")
    ]
}


@pytest.mark.parametrize(
    ("format", "content", "options"),
    [
        ("shiviz", LOG, {}),
        ("otel", json.dumps(TWO_SPANS), {}),
        ("table", "p,k,m\na,send,1\nb,receive,1\n", {"columns": TableColumns({"process": "p", "kind": "k", "message": "m"})}),
    ],
)  # fmt: skip
def test_progress_goes_on_while_rows_are_sorted_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str, content: str, options: dict[str, Any]
) -> None:
    monkeypatch.setattr(importing, "INSTRUCTIONS", 1)
    told: list[int | None] = []
    found = import_log(format, write(tmp_path, content), tmp_path / "out", progress=told.append, **options)
    counts = [done for done in told if done is not None]
    read = {"shiviz": found.events, "otel": found.events // 2, "table": found.events}[format]
    assert counts == list(range(1, read + found.events + 1)), (
        "those that were read, then those that were written"
    )
    assert (None in told) == (format != "shiviz"), "which needs no sorting"


def test_sorting_can_be_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "INSTRUCTIONS", 1)

    def interrupt(done: int | None) -> None:
        if done is None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_log("otel", write(tmp_path, json.dumps(TWO_SPANS)), tmp_path / "out", progress=interrupt)
    assert [path.name for path in tmp_path.iterdir()] == ["x.log"]
