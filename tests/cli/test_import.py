"""`inga import` and the formats of `inga export` as a user calls them."""

import gzip
import io
import json
import os
import subprocess
import sys
from codecs import BOM_UTF8
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from inga.cli.main import main
from inga.sim.trials import simulate_trial
from inga.trace import read_processes, rows
from inga.trace.importers import DEFAULT, TableColumns, import_log
from inga.trial.trial import Trial

LOG = 'a {"a":1}\nstarts\nb {"a":1,"b":1}\nhears\n'


def test_a_sentence_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.log").write_text("noise\n" + LOG)
    assert main(["import", "shiviz", str(tmp_path / "x.log"), str(tmp_path / "out")]) == 0
    said, complained = capsys.readouterr()
    first, second = said.splitlines()
    assert first.startswith(f"2 events of 2 processes in {tmp_path / 'out'} (")
    assert second == "1 line belongs to no event; the first is x.log:1: noise"
    assert complained == ""


def test_a_summary_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, out = tmp_path / "x.log", tmp_path / "out"
    log.write_text(f"--\n{LOG}--\n{LOG}")
    assert main(["import", "shiviz", str(log), str(out), "--executions", "^--$", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found.pop("seconds") >= 0
    assert found == {
        "format": "shiviz", "file": str(log), "traces": [f"{out}/1", f"{out}/2"], "processes": 4, "events": 4,
        "messages": 0, "deliveries": 0, "unmatched": 0, "skipped": 0, "skipped_first": [], "bad": 0, "bad_first": [],
        "torn": 0, "repeated": 0, "shared": 0, "sample": [],
    }  # fmt: skip


def test_whose_messages_are_called_the_same_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.csv").write_text("at,op,no\na,send,1\nb,send,1\nc,receive,1\nc,receive,1\n")
    words = [
        "import",
        "table",
        str(tmp_path / "x.csv"),
        str(tmp_path / "out"),
        "--map",
        "process=at",
        "kind=op",
    ]
    assert main([*words, "message=no"]) == 0
    assert "1 message was sent by several processes, of which the first counts: " in capsys.readouterr().out


def test_the_place_may_be_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.log").write_text(LOG)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert main(["import", "shiviz", "../x.log", ".", "--json"]) == 0
    assert len(list(rows(tmp_path / "here"))) == 2
    assert sorted(os.listdir(tmp_path)) == ["here", "x.log"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("shiviz {d}/nowhere {d}/out", "{d}/nowhere cannot be read: No such file or directory"),
        ("shiviz /dev/null {d}/out", "/dev/null is not a plain file, and logs are read twice"),
        ("shiviz {d}/x.log {d}", "{d} exists already: choose another place"),
        ("shiviz {d}/x.log {d}/a/b", "there is no directory {d}/a to make b in"),
        ("shiviz {d}/x.log {d}/out --claims casual", "no check 'casual'; did you mean 'causal'?"),
        (
            "govector {d}/x.log {d}/out --regex x",
            "--regex, --executions, --trust-header and --noise are for shiviz",
        ),
        (
            "otel {d}/x.log {d}/out --trust-header",
            "--regex, --executions, --trust-header and --noise are for shiviz",
        ),
        ("otel {d}/x.log {d}/out --crash x", "--send, --deliver and --crash are for shiviz and govector"),
        ("tracechecker {d}/x.log {d}/out", "{d}/x.log:1: this is not JSON: "),
        (
            "table {d}/x.log {d}/out --map kind=a message=b process=c kind=d",
            "--map says kind= twice: a and d",
        ),
        ("table {d}/x.log {d}/out --map kind=a --map kind=d", "--map says kind= twice: a and d"),
        (
            "table {d}/x.log {d}/out --map kind=a --kinds send=A send=B",
            "--kinds says send= twice: A and B",
        ),
    ],
)
def test_bad_use_gets_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, sentence: str
) -> None:
    (tmp_path / "x.log").write_text(LOG)
    assert main(["import", *words.format(d=tmp_path).split()]) == 2
    said, complained = capsys.readouterr()
    assert said == "" and complained.startswith("inga import: " + sentence.format(d=tmp_path))
    assert complained.count("\n") == 1
    assert os.listdir(tmp_path) == ["x.log"]


def test_a_mapping_may_be_said_in_several_options(tmp_path: Path) -> None:
    """The last one alone was taken."""
    (tmp_path / "x.csv").write_text("p,k,m\na,PUT,1\nb,GET,1\n")
    told = "--map process=p kind=k --map message=m --kinds send=PUT --kinds deliver=GET".split()
    assert main(["import", "table", str(tmp_path / "x.csv"), str(tmp_path / "out"), "--quiet", *told]) == 0
    assert [row.step for row in rows(tmp_path / "out")] == ["send", "deliver"]


def test_a_log_may_be_compressed_in_parts_or_come_by_standard_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of these are the same log: as it is, with CRLF and a byte order mark, compressed, a directory, piped."""
    whole = LOG.encode()
    cut = whole.index(b"\n", whole.index(b"\n") + 1)  # after the first event, without the end of its line
    (tmp_path / "x.log").write_bytes(whole)
    (tmp_path / "windows.log").write_bytes(BOM_UTF8 + whole.replace(b"\n", b"\r\n"))
    (tmp_path / "x.log.gz").write_bytes(gzip.compress(whole))
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "1.log").write_bytes(BOM_UTF8 + whole[:cut])
    (parts / "2.log.gz").write_bytes(gzip.compress(whole[cut + 1 :]))
    (parts / ".hidden").write_bytes(b"no log")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(gzip.compress(whole)))))
    found = []
    for at, name in enumerate(["x.log", "windows.log", "x.log.gz", "parts", "-"]):
        log = name if name == "-" else str(tmp_path / name)
        assert main(["import", "shiviz", log, str(tmp_path / f"out{at}"), "--quiet"]) == 0
        found.append([row._replace(ref=None) for row in rows(tmp_path / f"out{at}")])
    assert len(found[0]) == 2 and all(each == found[0] for each in found)
    cited = [next(iter(rows(tmp_path / f"out{at}"))).ref for at in range(5)]
    assert cited == ["x.log:1", "windows.log:1", "x.log:1", "1.log:1", "stdin:1"]


def test_a_pattern_that_does_not_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It finds an event here and there, and most of the log is left over."""
    log = tmp_path / "x.log"
    log.write_text(LOG + "".join(f"[node{at % 3}] received {at}\n" for at in range(30)))
    words = ["import", "shiviz", str(log), str(tmp_path / "out"), "--quiet"]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.startswith(
        f"inga import: {log}:5: 2 events in all, and 30 lines that belong to none, this one first: "
    )
    assert "[node0] received 0" in said and "--regex" in said and not (tmp_path / "out").exists()
    assert main([*words, "--noise"]) == 0
    assert "30 lines belong to no event; the first is x.log:5" in capsys.readouterr().out


@pytest.mark.parametrize(
    "others", ["[node0] received 0\n", "[node0] received 0\n[node1] received 1\n" + LOG[:17] + "[node2]\n"]
)
def test_a_pattern_that_does_not_fit_one_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], others: str
) -> None:
    """However short it is, and however well it fits the others."""
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "1.log").write_text("a banner\n" + LOG)
    (logs / "2.log").write_text(others)
    (logs / "3.log").write_text("")
    words = ["import", "shiviz", "--quiet", str(logs)]
    count = others.count("[")
    assert main([*words, str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    events = "one event" if count > 1 else "no event"
    assert said.startswith(
        f"inga import: {logs}/2.log:1: {events} in all, and {count} lines that belong to none, this one first: [node0] received 0"
    )
    assert said.endswith(f"(--bad {count}).\n") and not (tmp_path / "out").exists()
    assert main([*words, str(tmp_path / "out"), "--bad", str(count - 1)]) == 2
    capsys.readouterr()

    assert main([*words, str(tmp_path / "out"), "--bad", str(count)]) == 0
    said = capsys.readouterr().out
    what = "1 line cannot be read, and is" if count == 1 else f"{count} lines cannot be read, and are"
    assert f"{what} left out, so nothing that is checked can pass:\n  {logs}/2.log:1: " in said
    assert not any(file.complete for file in read_processes(tmp_path / "out"))
    assert main([*words, str(tmp_path / "noisy"), "--noise"]) == 0
    assert f"{count + 1} lines belong to no event" in capsys.readouterr().out
    assert all(file.complete for file in read_processes(tmp_path / "noisy"))


def test_a_file_that_only_says_how_it_is_to_be_read_fits(tmp_path: Path) -> None:
    """Every process of GoVector begins its log so."""
    logs = tmp_path / "logs"
    logs.mkdir()
    for at, content in enumerate((LOG, "", "")):
        (logs / f"{at}.log").write_text(f"{DEFAULT}\n\n{content}")
    assert import_log("shiviz", logs, tmp_path / "out").skipped == 0


def test_errors_name_the_file_of_a_directory_and_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "1.log").write_text(LOG)
    (parts / "2.log").write_text(LOG.replace("a {", 'a {"a": "much", "x": {'))
    assert main(["import", "shiviz", str(parts), str(tmp_path / "out"), "--quiet"]) == 2
    assert f"{parts}/2.log:1: " in capsys.readouterr().err

    (tmp_path / "empty").mkdir()
    assert main(["import", "shiviz", str(tmp_path / "empty"), str(tmp_path / "out")]) == 2
    assert "empty is a directory without any files" in capsys.readouterr().err
    (tmp_path / "torn.gz").write_bytes(gzip.compress(LOG.encode())[:-9])
    assert main(["import", "shiviz", str(tmp_path / "torn.gz"), str(tmp_path / "out")]) == 2
    assert "torn.gz is compressed, but not whole: " in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_trying_shows_what_would_come_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "x.csv"
    log.write_text("at,op,id\na,send,m1\nb,receive,m1\nb,receive\n")
    words = ["import", "table", str(log), "--try", "--quiet", "--map", "process=at", "kind=op", "message=id"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert said.startswith("2 events of 2 processes in the beginning (")
    assert (
        f"1 line cannot be read, and is left out, so nothing that is checked can pass:\n  {log}:4: 2 cells"
        in said
    )
    assert said.endswith(
        "x.csv:2  a  send  message 1 of a  m1\nx.csv:3  b  receive  message 1 of a  m1\n"
        "x.csv:3  b  deliver  message 1 of a  m1\n"
    )
    (tmp_path / "y.log").write_text(LOG + "noise\n" * 50)
    assert main(["import", "shiviz", str(tmp_path / "y.log"), "--try"]) == 0
    said = capsys.readouterr().out
    assert "50 lines belong to no event; the first is y.log:5: noise\n  y.log:6: noise\n" in said
    assert sorted(os.listdir(tmp_path)) == ["x.csv", "y.log"]
    assert main(["import", "shiviz", str(log)]) == 2
    assert main([*words, str(tmp_path / "out"), "--bad", "-1"]) == 2


def test_a_large_log_is_tried_by_its_beginning(tmp_path: Path) -> None:
    line = json.dumps({"p": "a", "k": "note", "m": "", "text": "x" * 400}) + "\n"
    (tmp_path / "x.jsonl").write_text(
        line.replace("note", "send").replace('"m": ""', '"m": "1"') + line * 5000
    )
    columns = TableColumns({"process": "p", "kind": "k", "message": "m"})
    found = import_log("table", tmp_path / "x.jsonl", None, columns=columns)
    assert 2000 < found.events < 3000 and (found.torn, found.bad) == (0, 0) and len(found.sample) == 20


def test_help_shows_examples() -> None:
    words = [sys.executable, "-m", "inga", "import", "--help"]
    shown = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout
    assert "inga import shiviz chord.log chord" in shown and r"(?<clock>{.*})" in shown


def test_importing_loads_no_spark(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text(LOG)
    program = (
        "import sys; from inga.cli.main import main; "
        f"main(['import', 'shiviz', {str(tmp_path / 'x.log')!r}, {str(tmp_path / 'out')!r}]); "
        "assert 'pyspark' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


# ---- export


def test_perfetto_gets_tracks_slices_and_arrows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    simulate_trial(Trial(members=3, messages=10, loss=0.2, seed=2), tmp_path / "run")
    file = tmp_path / "run.json"
    assert main(["export", str(tmp_path / "run"), str(file), "--format", "perfetto", "--quiet"]) == 0
    entries = json.loads(file.read_text())["traceEvents"]
    trace = list(rows(tmp_path / "run"))
    steps = Counter(row.step for row in trace)
    phases = Counter(entry["ph"] for entry in entries)
    assert phases["X"] + phases["i"] == len(trace)
    # Every delivery is the end of an arrow that begins in its send, in a slice of that instant.
    begins = {entry["id"]: entry for entry in entries if entry["ph"] == "s"}
    ends = [entry for entry in entries if entry["ph"] == "f"]
    assert len(ends) == steps["deliver"] == len({entry["id"] for entry in ends})
    slices = {(entry["pid"], entry["ts"]) for entry in entries if entry["ph"] == "X"}
    for end in ends:
        begin = begins[end["id"]]
        assert begin["ts"] <= end["ts"] and begin["pid"] != end["pid"]
        assert {(each["pid"], each["ts"]) for each in (begin, end)} <= slices
    # Holds begin and end, each once, at one process.
    opened: dict[str, float] = {}
    for entry in entries:
        if entry["ph"] == "b":
            assert entry["id"] not in opened
            opened[entry["id"]] = entry["ts"]
        elif entry["ph"] == "e":
            assert entry["ts"] >= opened[entry["id"]]
    assert phases["b"] == phases["e"] == steps["hold"] > 0
    assert [entry["args"]["name"] for entry in entries if entry["name"] == "process_name"] == [
        "alice",
        "bob",
        "cathy",
    ]


def test_perfetto_shows_imported_events_by_their_texts(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text(LOG)
    main(["import", "shiviz", str(tmp_path / "x.log"), str(tmp_path / "t"), "--quiet"])
    main(["export", str(tmp_path / "t"), str(tmp_path / "x"), "--format", "perfetto", "--quiet"])
    entries = json.loads((tmp_path / "x").read_text())["traceEvents"]
    assert [(entry["pid"], entry["name"]) for entry in entries if entry["ph"] == "i"] == [
        (0, "starts"),
        (1, "hears"),
    ]


def test_slices_of_one_process_never_cross(tmp_path: Path) -> None:
    simulate_trial(Trial(members=3, messages=10, loss=0.2, seed=2), tmp_path / "run")
    main(["export", str(tmp_path / "run"), str(tmp_path / "x"), "--format", "perfetto", "--quiet"])
    entries = json.loads((tmp_path / "x").read_text())["traceEvents"]
    for process in range(3):
        mine = [(e["ts"], e["ts"] + e["dur"]) for e in entries if e["ph"] == "X" and e["pid"] == process]
        for (_, end), (following, _) in pairwise(mine):
            assert following >= end


def test_shiviz_under_the_names_of_a_paper(tmp_path: Path) -> None:
    simulate_trial(Trial(members=2, messages=3, seed=2), tmp_path / "run")
    words = [str(tmp_path / "run"), str(tmp_path / "x"), "--format", "shiviz", "--alias", "co", "--quiet"]
    assert main(["export", *words]) == 0
    text = (tmp_path / "x").read_text()
    assert 'alice {"alice": 1}\nview' in text and "DT sent: message 1 of alice" in text


def test_messages_without_vectors_have_no_clocks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from inga.trace import Manifest, TraceWriter

    Manifest("g", ["a b", "a_b"], "sim", "none", "take", "virtual").write(tmp_path / "t")
    with TraceWriter(tmp_path / "t", 0, "a b", 2) as trace:
        trace.row("send", 0.0, 1, 0, 1)
    assert main(["export", str(tmp_path / "t"), str(tmp_path / "x"), "--format", "shiviz"]) == 2
    assert "has messages without vectors" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
