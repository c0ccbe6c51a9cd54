"""Real logs of other systems: each imports, its clocks are right, and what is known of it is found again.

The logs are no part of this repository: they are looked for beside it, or where INGA_FOREIGN_LOGS says, and without them these
tests are skipped.
"""

import gzip
import os
import re
from pathlib import Path

import pytest

from inga.certify.certificate import certify
from inga.certify.chunk import JUDGED_COLUMNS, PLACE_COLUMN, from_table
from inga.certify.combine import Process
from inga.certify.local import Chunks
from inga.certify.verdict import Certificate
from inga.model.errors import TraceError
from inga.trace import read_manifest, read_processes, read_segment, rows, segments, write_shiviz
from inga.trace.importers import Imported, Roles, import_log

DATA = Path(
    os.environ.get("INGA_FOREIGN_LOGS") or Path(__file__).resolve().parents[2].parent / "shared" / "data"
)

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"the logs of other systems are not in {DATA}")

SIMPLEDB = r"(?<event>.*)\n(?<host>\S*) (?<clock>{.*})"
AKKA = r"\[\w+\] \[(?<date>([^ ]+ [^ ]+))\] [^ ]+ \[akka://Broadcast/user/(?<host>\w+)\] (?<clock>.*\}) (?<event>.*)"
TSVIZ = r"(?<timestamp>(\d*)) (?<event>.*)\n(?<host>\w*) (?<clock>.*)"
VOLDEMORT = (
    r"\[(?<date>\d{4}-\d{2}-\d{2} (\d{2}:){2}\d{2},\d{3}) (?<path>\S*)\] (?<priority>(INFO|WARN)) "
    r"(?<event>.*)\n(?<host>.*?) (?<clock>{.*})"
)
FACEBOOK = (
    r"(?<ip>(\d{1,3}\.){3}\d{1,3}) (?<date>(\d{1,2}/){2}\d{4} (\d{2}:){2}\d{2} (AM|PM)) "
    r"(?<action>(INFO|GET|POST)) (?<event>.*)\n(?<host>\w*) (?<clock>.*)"
)
EXECUTIONS = r"^=== (?<trace>.*) ===$"

SHIVIZ = [
    # file, expression, executions, their events, processes in all
    ("shiviz/chord.log", None, None, [1235], 8),
    ("shiviz/RpcClientServer.log", None, None, [10], 2),
    ("tracechecker/trace_log_shiviz.txt", None, None, [169], 3),
    ("shiviz/simpledb.log", SIMPLEDB, None, [509], 5),
    ("shiviz/reliable-broadcast.log", AKKA, None, [116], 4),
    ("shiviz/simple-reliable-broadcast.log", AKKA, None, [39], 3),
    ("shiviz/tsviz_fslock_24t_4sp.log", TSVIZ, None, [2001], 30),
    ("shiviz/tsviz_shared_var_4_threads.log", TSVIZ, None, [5000], 4),
    ("shiviz/voldemort-simple-threadnames.log", VOLDEMORT, None, [863], 19),
    ("shiviz/voldemort.log", VOLDEMORT, None, [864], 20),
    ("shiviz/facebook.log", FACEBOOK, None, [47], 4),
    ("shiviz/facebook-study.log", FACEBOOK, None, [47], 4),
    ("shiviz/facebook-multiple.log", FACEBOOK, EXECUTIONS, [47, 41], 8),
    ("shiviz/facebook-multiple-study.log", FACEBOOK, EXECUTIONS, [47, 41], 8),
    ("shiviz/multiple-comparison.log", FACEBOOK, EXECUTIONS, [8] * 5, 10),
]

TRACECHECKER = [
    # file, events, processes, messages, deliveries
    ("example1.log", 809, 11, 179, 179),
    ("example2.log", 625, 2, 150, 149),
    ("nim_trace_output1.log", 36, 1, 0, 0),
    ("nim_trace_output2.log", 49, 1, 0, 0),
    ("trace_log.txt", 169, 3, 40, 40),
]


def certified(trace: Path | str, checks: list[str] | None = None) -> Certificate:
    manifest, n = read_manifest(trace), len(read_manifest(trace).processes)
    chunks = []
    for each in segments(trace):
        part = read_segment(each.path, n, process=each.process, columns=(*JUDGED_COLUMNS, PLACE_COLUMN))
        chunks.append(from_table(part, each.process, n, manifest.receipt, where=str(each.path), width=n))
    processes = [
        Process(file.name, file.first_view, file.last_pos, file.complete, file.crashed)
        for file in read_processes(trace)
    ]
    return certify(Chunks(chunks, processes, manifest.receipt), checks or manifest.guarantees)


@pytest.mark.parametrize(("file", "regex", "executions", "events", "processes"), SHIVIZ)
def test_shiviz_logs(
    tmp_path: Path, file: str, regex: str | None, executions: str | None, events: list[int], processes: int
) -> None:
    found = import_log("shiviz", DATA / file, tmp_path / "out", regex=regex, executions=executions)
    assert (found.events, found.processes, len(found.traces)) == (sum(events), processes, len(events))
    for trace, count in zip(found.traces, events, strict=True):
        certificate = certified(trace)
        assert (certificate.verdict, certificate.events) == ("pass", count), certificate.to_json()
        late = ["file order contradicts the clocks in 2 places: chord.log:1829, chord.log:2051"]
        assert certificate.checks[0].warnings == (late if "chord" in file else [])


def disguised(log: Path, directory: Path) -> list[Path]:
    """The same log compressed, with CRLF and a byte order mark, and as a directory."""
    content = log.read_bytes()
    (directory / "packed.gz").write_bytes(gzip.compress(content))
    (directory / "windows").write_bytes(
        b"\xef\xbb\xbf" + content.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    )
    (directory / "parts").mkdir()
    (directory / "parts" / "1.gz").write_bytes(gzip.compress(content))
    return [directory / name for name in ("packed.gz", "windows", "parts")]


@pytest.mark.parametrize(("file", "regex", "executions", "events", "processes"), SHIVIZ)
def test_shiviz_logs_in_other_forms(
    tmp_path: Path, file: str, regex: str | None, executions: str | None, events: list[int], processes: int
) -> None:
    for at, log in enumerate(disguised(DATA / file, tmp_path)):
        found = import_log("shiviz", log, tmp_path / str(at), regex=regex, executions=executions)
        assert (found.events, found.processes, len(found.traces)) == (sum(events), processes, len(events))


def test_logs_that_need_other_patterns_are_no_part_of_one(tmp_path: Path) -> None:
    """All of them as one directory: the default fits most of what is there, and nothing of some files."""
    with pytest.raises(TraceError) as refused:
        import_log("shiviz", DATA / "shiviz", tmp_path / "out")
    first = r"^\S+/reliable-broadcast\.log:1: no event in all, and \d+ lines that belong to none, this one first: \[INFO\] "
    assert re.match(first, str(refused.value)) and "So it is with 4 other files." in str(refused.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("file", [line[0] for line in TRACECHECKER])
def test_tracechecker_logs_in_other_forms(tmp_path: Path, file: str) -> None:
    (events,) = [line[1] for line in TRACECHECKER if line[0] == file]
    for at, log in enumerate(disguised(DATA / "tracechecker" / file, tmp_path)):
        assert import_log("tracechecker", log, tmp_path / str(at)).events == events


@pytest.mark.parametrize(("file", "events", "processes", "messages", "deliveries"), TRACECHECKER)
def test_tracechecker_logs(
    tmp_path: Path, file: str, events: int, processes: int, messages: int, deliveries: int
) -> None:
    found = import_log("tracechecker", DATA / "tracechecker" / file, tmp_path / "out")
    assert found == Imported([str(tmp_path / "out")], processes, events, messages, deliveries)
    certificate = certified(tmp_path / "out")
    wanted = "pass" if messages else "unknown"  # of no message nothing is known
    assert {check.name: check.verdict for check in certificate.checks} == {
        "clocks": "pass",
        "stamps": wanted,
    }


@pytest.mark.parametrize(
    ("file", "messages", "deliveries", "crashed"),
    [("reliable-broadcast", 3, 9, ["node1"]), ("simple-reliable-broadcast", 1, 3, [])],
)
def test_both_akka_runs_deliver_atomically(
    tmp_path: Path, file: str, messages: int, deliveries: int, crashed: list[str]
) -> None:
    roles = Roles(
        r"RBBroadcast\((?<message>.*)\)", r"RBDeliver of message (?<message>\S+) from", r"^Crashing$"
    )
    log = DATA / "shiviz" / f"{file}.log"
    found = import_log("shiviz", log, tmp_path / "out", regex=AKKA, roles=roles, claims=["atomic"])
    assert (found.messages, found.deliveries) == (messages, deliveries)
    assert [each.name for each in read_processes(tmp_path / "out") if each.crashed] == crashed
    certificate = certified(tmp_path / "out")
    assert {check.name: check.verdict for check in certificate.checks} == {
        "clocks": "pass",
        "integrity": "pass",
        "atomic": "pass",
    }


def test_a_delivery_taken_out_of_an_akka_run_is_missed(tmp_path: Path) -> None:
    text = (DATA / "shiviz" / "simple-reliable-broadcast.log").read_text()
    (tmp_path / "x.log").write_text(text.replace("RBDeliver of message", "RBDropped of message", 1))
    roles = Roles(r"RBBroadcast\((?<message>.*)\)", r"RBDeliver of message (?<message>\S+) from")
    import_log("shiviz", tmp_path / "x.log", tmp_path / "out", regex=AKKA, roles=roles)
    atomic = certified(tmp_path / "out", ["atomic"]).checks[0]
    assert (atomic.verdict, atomic.violations) == ("fail", 1)


@pytest.mark.parametrize("file", ["shiviz/chord.log", "shiviz/RpcClientServer.log"])
def test_a_log_exported_is_the_log_imported(tmp_path: Path, file: str) -> None:
    import_log("shiviz", DATA / file, tmp_path / "out")
    with (tmp_path / "again.log").open("w", encoding="utf-8") as out:
        write_shiviz(tmp_path / "out", out)
    import_log("shiviz", tmp_path / "again.log", tmp_path / "again")
    once, again = (
        [(row.process, row.pos, row.seq, row.deps, row.note) for row in rows(tmp_path / name)]
        for name in ("out", "again")
    )
    assert once == again
    assert read_manifest(tmp_path / "out").processes == read_manifest(tmp_path / "again").processes
